"""Boosted trees for any ranking loss: LambdaMART and its relatives.

:class:`TreeRanker` adds regression trees one after another, each fitted to the gradient of a
loss at the current scores and with leaves that take a Newton step. With LambdaRank's gradient it
is LambdaMART, with the squared loss pointwise boosted regression; any other loss of
:mod:`rankwise.losses`, or a function of yours, works the same way. LightGBM grows the trees; the
gradients, the validation metric and the rules about row order are ours.

>>> import rankwise as rw
>>> queries = rw.make_queries(n_queries=200)
>>> train, test = queries.take(range(100)), queries.take(range(100, 200))
>>> ranker = rw.TreeRanker(n_estimators=30, num_leaves=8).fit(train)
>>> ranker.predict(test).shape
(3000,)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise import _core, _validate
from rankwise._estimator import Ranker
from rankwise.data import Queries
from rankwise.losses import parse_loss
from rankwise.metrics import Metric, parse_metric

Floats = NDArray[np.float64]
Derivatives = Callable[[Floats], tuple[Floats, Floats]]


class TreeRanker(Ranker):
    """A sum of regression trees, boosted on the gradient of a ranking loss.

    ``score(x) = start + learning_rate * (t_1(x) + t_2(x) + ...)``. Tree ``m`` splits on the
    gradient ``G`` and curvature ``H`` of the loss at the scores so far and gives each leaf the
    Newton step ``-sum G / (sum H + reg_lambda)``.

    Parameters
    ----------
    loss : str, loss or callable
        ``"lambdarank"`` (LambdaMART), ``"squared"``, any other name of
        :data:`rankwise.losses.LOSSES`, a value such as ``LambdaRank(metric="ndcg@10")``, or a
        function ``(y, s, offsets, weight) -> (gradient, curvature)`` on flat lists.
    n_estimators : int
        Rounds of boosting, one tree each.
    learning_rate : float
        Share of each tree's Newton step that is taken, above 0.
    num_leaves : int
        Largest number of leaves of a tree; the leaf with the largest gain is split first.
    max_depth : int, optional
        Largest depth of a tree; None is no limit but ``num_leaves``.
    min_child_samples : int
        Fewest training documents in a leaf. LightGBM estimates their number from the leaf's
        share of the curvature.
    min_child_weight : float
        Smallest sum of curvatures in a leaf.
    min_split_gain : float
        Smallest gain of a split.
    reg_lambda : float
        L2 penalty on leaf values, added to the sum of curvatures.
    max_bin : int
        Bins per feature.
    subsample : float
        Share of the queries drawn anew for each tree; the others have no say in it.
    colsample_bytree : float
        Share of the features drawn for each tree.
    early_stopping_rounds : int, optional
        Stop when ``metric`` on ``eval_set`` has not risen for this many rounds.
    metric : str or Metric
        Watched on ``eval_set`` and used by ``score``.
    random_state : int, RandomState or None
        Seed of ``subsample`` and ``colsample_bytree``; equal seeds give equal models.
    n_jobs : int, optional
        Threads; -1 uses all, None one per million feature values. The model does not depend on it.

    Attributes
    ----------
    n_estimators_ : int
        Trees kept: up to the best validation round when ``eval_set`` was given.
    validation_scores_ : float64 array of shape (n_rounds,) or None
        ``metric`` on ``eval_set`` after each round that was run.
    feature_importances_ : float64 array of shape (n_features,)
        Share of each feature in the gain of all splits; sums to 1.
    start_ : float
        Score before the first tree: one Newton step along the constant, 0 for pairwise and
        listwise losses.
    model_text_ : str
        The trees in LightGBM's text format.

    Raises
    ------
    ValueError
        If a parameter is out of range, or early stopping is asked for without ``eval_set``.

    Notes
    -----
    Missing values (NaN) go to the side of a split that lowers the loss more, chosen in training.
    The model does not depend on the order in which rows are stored, also with ``subsample`` and
    with binning: rows are put in canonical order first, and losses treat tied scores by
    expectation. LightGBM runs deterministically and sums histograms feature by feature, so that
    threads do not change the model either.

    References
    ----------
    friedman2001, burges2010, ke2017lightgbm
    """

    def __init__(
        self,
        loss: Any = "lambdarank",
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        num_leaves: int = 31,
        max_depth: int | None = None,
        min_child_samples: int = 20,
        min_child_weight: float = 1e-3,
        min_split_gain: float = 0.0,
        reg_lambda: float = 0.0,
        max_bin: int = 255,
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        early_stopping_rounds: int | None = None,
        metric: str | Metric = "ndcg@10",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.min_child_samples = min_child_samples
        self.min_child_weight = min_child_weight
        self.min_split_gain = min_split_gain
        self.reg_lambda = reg_lambda
        self.max_bin = max_bin
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.early_stopping_rounds = early_stopping_rounds
        self.metric = metric
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        where = f"{type(self).__name__}.fit"
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        threads = _threads(self.n_jobs, train.n_docs * train.n_features)
        params = self._engine_params(where, seed, threads)
        if self.early_stopping_rounds is not None and valid is None:
            raise ValueError(
                f"{where}: early_stopping_rounds={self.early_stopping_rounds} needs validation "
                "queries; pass eval_set=, or leave it None"
            )
        metric = parse_metric(self.metric)
        derivatives = _prepare(where, self.loss, train, threads)
        self.start_ = _start(derivatives(np.zeros(train.n_docs)))
        if self.subsample < 1:
            derivatives = _on_drawn_queries(derivatives, train, self.subsample, seed)
        data = _dataset(train, self.start_, params)
        booster = lgb.Booster(params, data)
        watched = None
        if valid is not None:
            booster.add_valid(_dataset(valid, self.start_, params, reference=data), "valid")
            watched = _Watch(metric, valid)
        self.n_estimators_, scores = self._boost(booster, derivatives, watched)
        self.validation_scores_ = None if watched is None else np.array(scores)
        gain = booster.feature_importance("gain", iteration=self.n_estimators_)
        self.feature_importances_ = gain / gain.sum() if gain.sum() > 0 else gain
        text = booster.model_to_string(num_iteration=self.n_estimators_)
        # What follows are the settings of the run, among them the number of threads.
        self.model_text_ = text[: text.index("\nparameters:")] + "\n"
        self._booster = lgb.Booster(model_str=self.model_text_)
        if not gain.any():
            warnings.warn(
                f"{where}: no split of the {train.n_docs} documents leaves "
                f"min_child_samples={self.min_child_samples} of them and "
                f"min_child_weight={self.min_child_weight:g} of curvature on both sides and lowers "
                "the loss, so all scores are equal; lower the two, or check labels and features",
                UserWarning,
                stacklevel=3,
            )

    def _boost(
        self, booster: lgb.Booster, derivatives: Derivatives, watched: _Watch | None
    ) -> tuple[int, list[float]]:
        """Adds trees; the number to keep and the validation metric after each round."""

        def objective(scores: Floats, _: lgb.Dataset) -> tuple[Floats, Floats]:
            return derivatives(scores)

        rounds = int(self.n_estimators)
        patience = rounds if self.early_stopping_rounds is None else self.early_stopping_rounds
        history: list[float] = []
        best = 0
        for done in range(rounds):
            no_split = booster.update(fobj=objective)
            if no_split and self.subsample == 1 and self.colsample_bytree == 1:
                break  # the next round would find the same nothing
            if watched is None:
                continue
            history.append(watched(booster))
            if not history[done] <= history[best]:
                best = done
            if done - best >= patience:
                break
        kept = booster.num_trees() if watched is None else min(best + 1, booster.num_trees())
        return kept, history

    def _stopped_at(self) -> dict[str, Any]:
        return {"n_estimators": self.n_estimators_, "early_stopping_rounds": None}

    def _score(self, X: Any) -> Floats:
        threads = _threads(self.n_jobs, X.shape[0] * self.n_estimators_)
        raw = self._engine().predict(X, num_threads=threads, validate_features=False)
        return self.start_ + np.asarray(raw, dtype=np.float64)

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Scores after each tree; the last is ``predict(X)``.

        Parameters
        ----------
        X : array-like or CSR of shape (n_docs, n_features), or Queries

        Yields
        ------
        float64 array of shape (n_docs,)
        """
        check_is_fitted(self, "model_text_")
        where = f"{type(self).__name__}.staged_predict"
        features = self._checked(where, X)
        engine = self._engine()
        threads = _threads(self.n_jobs, features.shape[0])
        total = np.zeros(features.shape[0])
        for tree in range(self.n_estimators_):
            total = total + engine.predict(
                features,
                start_iteration=tree,
                num_iteration=1,
                num_threads=threads,
                validate_features=False,
            )
            yield self.start_ + total

    def _engine(self) -> lgb.Booster:
        """LightGBM's model, read from its text when it is first needed."""
        if getattr(self, "_booster", None) is None:
            self._booster = lgb.Booster(model_str=self.model_text_)
        return self._booster

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_booster", None)
        return state

    def _engine_params(self, where: str, seed: int, threads: int) -> dict[str, Any]:
        def number(name: str, **bounds: Any) -> Any:
            return _validate.number(where, name, getattr(self, name), **bounds)

        if self.early_stopping_rounds is not None:
            number("early_stopping_rounds", low=1, integer=True)
        number("n_estimators", low=1, integer=True)
        if self.n_jobs not in (None, -1):
            number("n_jobs", low=1, integer=True)
        number("subsample", low=0, high=1, open_low=True)
        depth = None if self.max_depth is None else number("max_depth", low=1, integer=True)
        return {
            "objective": "none",
            "metric": "None",
            "verbosity": -1,
            "learning_rate": number("learning_rate", low=0, open_low=True),
            "num_leaves": number("num_leaves", low=2, integer=True),
            "max_depth": -1 if depth is None else depth,
            "min_data_in_leaf": number("min_child_samples", low=1, integer=True),
            "min_sum_hessian_in_leaf": number("min_child_weight", low=0),
            "min_gain_to_split": number("min_split_gain", low=0),
            "lambda_l2": number("reg_lambda", low=0),
            "max_bin": number("max_bin", low=2, integer=True),
            "feature_fraction": number("colsample_bytree", low=0, high=1, open_low=True),
            "feature_fraction_seed": seed,
            # Bins come from a fixed draw of rows in canonical order.
            "data_random_seed": 1,
            "num_threads": threads,
            "deterministic": True,
            # One thread sums each histogram, in row order: sums do not depend on the threads.
            "force_col_wise": True,
            # Equal data must give equal bins for every setting of min_child_samples.
            "feature_pre_filter": False,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class _Watch:
    """The metric on the validation queries, from the booster's own running scores."""

    def __init__(self, metric: Metric, valid: Queries) -> None:
        self.metric, self.y, self.groups = metric, valid.y, valid.groups

    def __call__(self, booster: lgb.Booster) -> float:
        return float(booster.eval_valid(feval=self._value)[0][2])

    def _value(self, scores: Floats, _: lgb.Dataset) -> tuple[str, float, bool]:
        return "metric", self.metric.mean(self.y, scores, qid=self.groups), True


# Values of the features per thread when n_jobs is None: below, waking a thread costs more than it
# brings, and much more on a machine that is busy with other work.
_VALUES_PER_THREAD = 1_000_000


def _threads(n_jobs: int | None, n_values: int) -> int:
    """Number of threads; 0 is all that OpenMP offers."""
    if n_jobs is None:
        return max(1, min(_core.max_threads(), n_values // _VALUES_PER_THREAD))
    return 0 if n_jobs == -1 else n_jobs


def _dataset(
    queries: Queries, start: float, params: dict[str, Any], reference: lgb.Dataset | None = None
) -> lgb.Dataset:
    return lgb.Dataset(
        queries.X,
        label=queries.y,
        init_score=np.full(queries.n_docs, start) if start else None,
        reference=reference,
        params=params,
    )


def _prepare(where: str, loss: Any, train: Queries, threads: int) -> Derivatives:
    """Gradient and curvature on the training lists, as a function of the scores alone."""
    y, offsets, weight = train.y, train.offsets, train.weight
    function = loss if callable(loss) else None
    if function is None:
        value = parse_loss(loss)
        if hasattr(value, "prepare"):
            prepared: Derivatives = value.prepare(y, offsets, weight, n_threads=threads)
            return prepared
        function = value.derivatives

    def derivatives(scores: Floats) -> tuple[Floats, Floats]:
        gradient, curvature = function(y, scores, offsets, weight)
        for name, column in (("gradient", gradient), ("curvature", curvature)):
            if np.shape(column) != y.shape or not np.isfinite(column).all():
                raise ValueError(
                    f"{where}: the loss must return a finite {name} for each of the {len(y)} "
                    f"documents, got shape {np.shape(column)}"
                )
        return gradient, curvature

    return derivatives


def _on_drawn_queries(
    derivatives: Derivatives, train: Queries, share: float, seed: int
) -> Derivatives:
    """Derivatives that are 0 outside a share of the queries, drawn anew at every call.

    LightGBM's own ``bagging_by_query`` has no effect on gradients that are given to it.
    """
    rng = np.random.default_rng(seed)
    count = max(1, round(share * train.n_queries))

    def masked(scores: Floats) -> tuple[Floats, Floats]:
        drawn = np.zeros(train.n_queries)
        drawn[rng.choice(train.n_queries, count, replace=False)] = 1
        inside = np.repeat(drawn, train.sizes)
        gradient, curvature = derivatives(scores)
        return gradient * inside, curvature * inside

    return masked


def _start(at_zero: tuple[Floats, Floats]) -> float:
    """One Newton step along the constant; 0 for losses that a constant does not change."""
    gradient, curvature = at_zero
    total, bend = float(np.sum(gradient)), float(np.sum(curvature))
    if abs(total) <= 1e-9 * float(np.abs(gradient).sum()) or bend <= 0:
        return 0.0
    return -total / bend
