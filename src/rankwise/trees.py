"""Boosted trees for any ranking loss: LambdaMART and its relatives.

:class:`TreeRanker` adds regression trees one after another, each fitted to the gradient of a
loss at the current scores and with leaves that take a Newton step. With LambdaRank's gradient it
is LambdaMART, with the squared loss pointwise boosted regression; any other loss of
:mod:`rankwise.losses`, or a function of yours, works the same way. LightGBM grows the trees; the
gradients, the bins, the validation metric and the rules about row order are ours.

>>> import rankwise as rw
>>> queries = rw.make_queries(n_queries=200)
>>> train, test = queries.take(range(100)), queries.take(range(100, 200))
>>> ranker = rw.TreeRanker(n_estimators=30, num_leaves=8).fit(train)
>>> ranker.predict(test).shape
(3000,)
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import lightgbm as lgb
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise import _validate
from rankwise._estimator import Ranker
from rankwise._inputs import note_features
from rankwise.bins import (
    BinnedQueries,
    dataset_params,
    feature_number,
    feature_numbers,
    in_bins,
    n_threads,
)
from rankwise.data import Groups, Queries
from rankwise.losses import pairs_for, parse_loss
from rankwise.metrics import Metric, parse_metric
from rankwise.treetext import leaf_values, merged, trees_only

Floats = NDArray[np.float64]
Derivatives = Callable[[Floats], tuple[Floats, Floats]]

BOOSTING = ("gbdt", "dart", "goss")


class TreeRanker(Ranker):
    """A sum of regression trees, boosted on the gradient of a ranking loss.

    ``score(x) = start + rate_1 t_1(x) + rate_2 t_2(x) + ...``. Tree ``m`` splits on the gradient
    ``G`` and curvature ``H`` of the loss at the scores so far and gives each leaf the Newton step
    ``-sum G / (sum H + reg_lambda)``.

    Parameters
    ----------
    loss : str, loss or callable
        ``"lambdarank"`` (LambdaMART), ``"squared"``, any other name of
        :data:`rankwise.losses.LOSSES`, a value such as ``LambdaRank(metric="ndcg@10")``, or a
        function ``(y, s, offsets, weight) -> (gradient, curvature)`` on flat lists.
    n_estimators : int
        Rounds of boosting, one tree each.
    learning_rate : float, sequence of float or callable
        Share of each tree's Newton step that is taken, above 0: one for all rounds, one for each,
        or a function of the round, counted from 0.
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
    boosting : {"gbdt", "dart", "goss"}
        ``"gbdt"`` adds trees. ``"dart"`` drops a share of the earlier trees before each round and
        rescales them after it, so that no early tree decides alone (Vinayak & Gilad-Bachrach
        2015); the model has no best round, and early stopping is refused. ``"goss"`` grows each
        tree on the documents with the largest gradients and a sample of the others, weighted up
        (Ke et al. 2017); it is faster, and always runs on one thread.
    drop_rate, skip_drop : float
        With ``"dart"``: share of the trees that are dropped in a round, and the chance that a round
        drops none.
    top_rate, other_rate : float
        With ``"goss"``: share of the documents kept for their large ``|gradient * curvature|``,
        and share drawn from the others. Rounds before ``1 / learning_rate`` use all documents.
    gradient_bins : int, optional
        Round gradients and curvatures to this many levels, 2 to 126, before splits are searched
        (LightGBM's quantised training); leaf values are those of the exact ones. None does not
        round.
    monotone : mapping or sequence, optional
        Features in which the score must not fall (1) or not rise (-1), all others equal:
        ``{"pagerank": 1, 3: -1}`` by name or position, or one of -1, 0, 1 for every feature.
    categorical : sequence of int or str, optional
        Features, by position or name, whose values are categories: integers of at least 0 without
        an order. A split sends a set of categories to one side.
    early_stopping_rounds : int, optional
        Stop when ``metric`` on ``eval_set`` has not risen for this many rounds.
    metric : str or Metric
        Watched on ``eval_set`` and used by ``score``.
    warm_start : bool
        Whether ``fit`` goes on from the trees there are and grows the ``n_estimators`` that are
        still missing.
    random_state : int, RandomState or None
        Seed of everything drawn; equal seeds give equal models.
    n_jobs : int, optional
        Threads; -1 uses all, None one per million feature values. The model does not depend on it.

    Attributes
    ----------
    n_estimators_ : int
        Trees kept: up to the best validation round when ``eval_set`` was given, except with DART.
    validation_scores_ : float64 array of shape (n_rounds,) or None
        ``metric`` on ``eval_set`` after each round of the last ``fit``.
    feature_importances_ : float64 array of shape (n_features,)
        Share of each feature in the gain of all splits; sums to 1.
    split_counts_ : int64 array of shape (n_features,)
        Splits on each feature.
    start_ : float
        Score before the first tree: one Newton step along the constant, 0 for pairwise and
        listwise losses.
    init_model_ : Ranker or None
        Whose scores the trees are added to.
    model_text_ : str
        The trees in LightGBM's text format.

    Raises
    ------
    ValueError
        If a parameter is out of range, early stopping is asked for without ``eval_set`` or with
        DART, or ``subsample`` is below 1 with GOSS.

    Notes
    -----
    Missing values (NaN) go to the side of a split that lowers the loss more, chosen in training.
    The model does not depend on the order in which rows are stored, also when queries, documents
    or trees are drawn: rows are put in canonical order first, bins are cut from sorted columns,
    and losses treat tied scores by expectation. Nor does it depend on the number of threads: every
    sum is added up in row order, and GOSS, whose draw in LightGBM depends on the threads, gets one.

    References
    ----------
    friedman2001, burges2010, ke2017lightgbm, vinayak2015dart

    Examples
    --------
    >>> import rankwise as rw
    >>> train, valid = rw.make_queries(n_queries=200).split((0.5, 0.5))
    >>> ranker = rw.TreeRanker("ranknet", learning_rate=lambda i: 0.3 * 0.99**i, monotone={"x0": 1})
    >>> ranker.fit(train, eval_set=valid).score(valid) > 0.6
    True
    """

    _fit_options: ClassVar[tuple[str, ...]] = ("init_model", "init_score")
    takes_pairs: ClassVar[bool] = True
    model_text_: str

    def __init__(
        self,
        loss: Any = "lambdarank",
        *,
        n_estimators: int = 100,
        learning_rate: float | Sequence[float] | Callable[[int], float] = 0.1,
        num_leaves: int = 31,
        max_depth: int | None = None,
        min_child_samples: int = 20,
        min_child_weight: float = 1e-3,
        min_split_gain: float = 0.0,
        reg_lambda: float = 0.0,
        max_bin: int = 255,
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        boosting: str = "gbdt",
        drop_rate: float = 0.1,
        skip_drop: float = 0.5,
        top_rate: float = 0.2,
        other_rate: float = 0.1,
        gradient_bins: int | None = None,
        monotone: Mapping[int | str, int] | Sequence[int] | None = None,
        categorical: Sequence[int | str] | None = None,
        early_stopping_rounds: int | None = None,
        metric: str | Metric = "ndcg@10",
        warm_start: bool = False,
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
        self.boosting = boosting
        self.drop_rate = drop_rate
        self.skip_drop = skip_drop
        self.top_rate = top_rate
        self.other_rate = other_rate
        self.gradient_bins = gradient_bins
        self.monotone = monotone
        self.categorical = categorical
        self.early_stopping_rounds = early_stopping_rounds
        self.metric = metric
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | Groups | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: Any = None,
        init_model: Ranker | None = None,
        init_score: ArrayLike | None = None,
        **unknown: Any,
    ) -> Self:
        """Learn from judged lists.

        Parameters
        ----------
        X : array-like or CSR of shape (n_docs, n_features), frame, Queries or BinnedQueries
            Features. A frame may hold the query ids in a column named ``qid``. When ``X`` is a
            :class:`~rankwise.Queries` or comes from :func:`rankwise.bin_queries`, ``y`` and
            ``qid`` are left out.
        y : array-like of shape (n_docs,)
            Relevance labels, 0 or more, larger is better.
        qid : array-like of shape (n_docs,)
            Query id of each row, in any order and of any type.
        sample_weight : array-like of shape (n_docs,), optional
            Document weights, 0 or more; a query's weight is one that all its documents have.
        eval_set : Queries, BinnedQueries, (X, y, qid), or (X, y) with the ids in X, optional
            Validation queries: trees after the best round are dropped.
        init_model : Ranker, optional
            A fitted ranker whose scores the trees are added to, in training and in ``predict``.
        init_score : array-like of shape (n_docs,), optional
            Scores the trees are added to in training only: ``predict`` gives the trees' part.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If lengths differ, labels are negative or missing, or ``qid`` is not given.

        Notes
        -----
        The fitted model does not depend on the order of the rows or on the names of the queries,
        to the last bit.
        """
        where = f"{type(self).__name__}.fit"
        options: dict[str, Any] = {"init_model": init_model, "init_score": init_score}
        if not isinstance(X, BinnedQueries) and not isinstance(eval_set, BinnedQueries):
            return super().fit(
                X, y, qid=qid, sample_weight=sample_weight, eval_set=eval_set, **options, **unknown
            )
        if unknown:
            raise TypeError(f"{where}: unexpected keyword argument {next(iter(unknown))!r}")
        if not isinstance(X, BinnedQueries):
            raise TypeError(
                f"{where}: eval_set is in bins while X is not; pass "
                "bin_queries(train) as X, and bin_queries(valid, like=...) as eval_set"
            )
        if not (y is None and qid is None and sample_weight is None):
            raise TypeError(
                f"{where}: a BinnedQueries holds labels, query ids and weights already; "
                "leave y, qid and sample_weight out"
            )
        valid = eval_set
        if valid is not None and not isinstance(valid, BinnedQueries):
            valid = self._eval_queries(f"{where} (eval_set)", valid, X.queries)
        self._fit(X, valid, **options)
        names = X.queries.feature_names
        note_features(self, X.queries.n_features, None if names is None else list(names))
        return self

    def _fit(
        self,
        train: Queries | BinnedQueries,
        valid: Queries | BinnedQueries | None,
        *,
        init_model: Ranker | None = None,
        init_score: ArrayLike | None = None,
    ) -> None:
        where = f"{type(self).__name__}.fit"
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        self._check(where, valid)
        data, watched_data = self._in_bins(where, train, valid)
        lists = data.queries
        threads = self._threads(lists.X.shape)
        held = self._held(where, lists, init_model)
        if not held:
            self.init_model_ = init_model
        base = _initial(where, self.init_model_, init_score, lists, watched_data)
        derivatives = _prepare(where, self.loss, lists, threads)
        if not held:
            self.start_ = _start(derivatives(base))
        base += self.start_
        if self.subsample < 1:
            derivatives = _on_drawn_queries(derivatives, lists, self.subsample, seed, held)
        booster = self._booster_on(where, data, seed, threads, held)
        watched = None
        if watched_data is not None:
            booster.add_valid(watched_data.data, "valid")
            already = self.init_model_.predict(watched_data.queries) if self.init_model_ else 0.0
            already = already + self.start_
            if held:
                already = already + self._raw(watched_data.queries.X)
            watched = _Watch(parse_metric(self.metric), watched_data.queries, already)
        kept, scores = self._boost(booster, _from(derivatives, base), watched, held)
        self.validation_scores_ = None if watched is None else np.array(scores)
        grown = trees_only(booster.model_to_string(num_iteration=kept))
        self.model_text_ = merged(self.model_text_, grown) if held else grown
        self._booster = lgb.Booster(model_str=self.model_text_)
        self.n_estimators_ = held + kept
        self._importances()
        if not self.split_counts_.any():
            warnings.warn(
                f"{where}: no split of the {lists.n_docs} documents leaves "
                f"min_child_samples={self.min_child_samples} of them and "
                f"min_child_weight={self.min_child_weight:g} of curvature on both sides and lowers "
                "the loss, so all scores are equal; lower the two, or check labels and features",
                UserWarning,
                stacklevel=3,
            )

    def _fit_sharing(self, train: Queries, valid: Queries | None, shared: dict[Any, Any]) -> None:
        where = f"{type(self).__name__}.fit"
        key = ("bins", *self._bins_wanted(where, train))
        if key not in shared:
            shared[key] = self._in_bins(where, train, valid)
        self._fit(*shared[key])

    def _stopped_at(self) -> dict[str, Any]:
        rounds = self.n_estimators_
        one = callable(self.learning_rate) or np.ndim(self.learning_rate) == 0
        rates = {} if one else {"learning_rate": list(self.learning_rate)[:rounds]}  # type: ignore[arg-type]
        return {"n_estimators": rounds, "early_stopping_rounds": None, **rates}

    def _importances(self) -> None:
        gain = self._engine().feature_importance("gain")
        self.feature_importances_ = gain / gain.sum() if gain.sum() > 0 else gain
        self.split_counts_ = self._engine().feature_importance("split").astype(np.int64)

    def _in_bins(
        self, where: str, train: Queries | BinnedQueries, valid: Queries | BinnedQueries | None
    ) -> tuple[BinnedQueries, BinnedQueries | None]:
        """Both sets in the bins of the training queries, made here unless the user did."""
        lists = train.queries if isinstance(train, BinnedQueries) else train
        max_bin, categorical = self._bins_wanted(where, lists)
        threads = self._threads(lists.X.shape)
        if not isinstance(train, BinnedQueries):
            train = in_bins(where, lists, max_bin, categorical, None, threads)
        found = {"max_bin": train.max_bin, "categorical": list(train.categorical)}
        for name, own in (("max_bin", max_bin), ("categorical", list(categorical))):
            if found[name] != own:
                raise ValueError(
                    f"{where}: {name} must be that of the bins, {found[name]}, got {own}; "
                    f"give bin_queries and the ranker the same {name}"
                )
        if isinstance(valid, BinnedQueries):
            if valid.like is not train:
                raise ValueError(
                    f"{where}: eval_set must be in the bins of the training queries; "
                    "make it by bin_queries(valid, like=train)"
                )
            return train, valid
        return train, valid if valid is None else in_bins(
            where, valid, max_bin, categorical, train, threads
        )

    def _bins_wanted(self, where: str, lists: Queries) -> tuple[int, tuple[int, ...]]:
        """What the bins of a feature depend on: their largest number, and which are categories."""
        max_bin = int(_validate.number(where, "max_bin", self.max_bin, low=2, integer=True))
        names = _names(lists)
        return max_bin, feature_numbers(
            where, "categorical", self.categorical, lists.n_features, names
        )

    def _held(self, where: str, lists: Queries, init_model: Ranker | None) -> int:
        """Trees that a warm start goes on from."""
        if init_model is not None and not isinstance(init_model, Ranker):
            raise TypeError(
                f"{where}: init_model must be a fitted ranker of rankwise, "
                f"got {type(init_model).__name__}"
            )
        if init_model is not None and init_model._looks_at_lists():
            raise ValueError(
                f"{where}: init_model must score documents one by one, got a "
                f"{type(init_model).__name__} that looks at lists; give its scores as init_score="
            )
        if not (self.warm_start and hasattr(self, "model_text_")):
            return 0
        if lists.n_features != self.n_features_in_:
            raise ValueError(
                f"{where}: a warm start needs the {self.n_features_in_} features of the trees "
                f"there are, got {lists.n_features}"
            )
        if init_model is not None:
            raise ValueError(
                f"{where}: a warm start goes on from the trees there are, got init_model= as well; "
                "leave it out, or set warm_start=False"
            )
        if self.n_estimators < self.n_estimators_:
            raise ValueError(
                f"{where}: n_estimators must be at least the {self.n_estimators_} trees that a "
                f"warm start goes on from, got {self.n_estimators}"
            )
        return self.n_estimators_

    def _booster_on(
        self, where: str, data: BinnedQueries, seed: int, threads: int, held: int
    ) -> lgb.Booster:
        params = self._engine_params(where, data, seed, threads)
        # The engine's running scores go on from those of the trees there are, to the last bit;
        # the booster copies them, and the bins stay as they were.
        if held:
            data.data.set_field("init_score", self._raw(data.queries.X))
        try:
            booster = lgb.Booster(params, data.data)
        finally:
            if held:
                data.data.set_field("init_score", None)
        if self.boosting == "dart":
            # LightGBM may or may not draw before DART's first round: that depends on memory which
            # it has not set. Asking for the scores makes it do so, then the draw starts over.
            booster.eval_train(lambda *_: ("none", 0.0, True))
            booster.reset_parameter({"drop_seed": seed})
        return booster

    def _boost(
        self, booster: lgb.Booster, derivatives: Derivatives, watched: _Watch | None, held: int
    ) -> tuple[int, list[float]]:
        """Adds trees; the number to keep and the validation metric after each round."""

        def objective(scores: Floats, _: lgb.Dataset) -> tuple[Floats, Floats]:
            return derivatives(scores)

        rates = self._rates()
        rounds = int(self.n_estimators) - held
        patience = rounds if self.early_stopping_rounds is None else self.early_stopping_rounds
        drawn = self.subsample < 1 or self.colsample_bytree < 1 or self.boosting != "gbdt"
        history: list[float] = []
        best = 0
        rate = rates[0]
        for done in range(rounds):
            if rates[held + done] != rate:
                rate = rates[held + done]
                booster.reset_parameter({"learning_rate": rate})
            no_split = booster.update(fobj=objective)
            if no_split and not drawn:
                break  # the next round would find the same nothing
            if watched is None:
                continue
            history.append(watched(booster))
            if not history[done] <= history[best]:
                best = done
            if done - best >= patience:
                break
        grown = booster.num_trees()
        # Later rounds of DART rescale earlier trees: the first trees alone are no round of it.
        whole = watched is None or self.boosting == "dart"
        return grown if whole else min(best + 1, grown), history

    def _score(self, X: Any) -> Floats:
        scores = self.start_ + self._raw(X)
        return scores if self.init_model_ is None else self.init_model_.predict(X) + scores

    def _raw(self, X: Any) -> Floats:
        """The sum of the trees."""
        threads = n_threads(self.n_jobs, X.shape[0] * self.n_estimators_)
        raw = self._engine().predict(X, num_threads=threads, validate_features=False)
        return np.asarray(raw, dtype=np.float64)

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Scores after each tree; the last is ``predict(X)``.

        Parameters
        ----------
        X : array-like or CSR of shape (n_docs, n_features), or Queries

        Yields
        ------
        float64 array of shape (n_docs,)

        Notes
        -----
        Each tree is walked once. With ``boosting="dart"`` the trees have their final scale, so the
        stages are not the scores that training went through.
        """
        check_is_fitted(self, "model_text_")
        features = self._checked(f"{type(self).__name__}.staged_predict", X)
        values = leaf_values(self.model_text_)
        threads = n_threads(self.n_jobs, features.shape[0] * self.n_estimators_)
        before = None if self.init_model_ is None else self.init_model_.predict(features)
        total = np.zeros(features.shape[0])
        for first in range(0, self.n_estimators_, _STAGES):
            leaves = self._engine().predict(
                features,
                start_iteration=first,
                num_iteration=_STAGES,
                pred_leaf=True,
                num_threads=threads,
                validate_features=False,
            )
            for tree, leaf in enumerate(np.asarray(leaves).reshape(len(total), -1).T, first):
                total = total + values[tree][leaf]
                scores = self.start_ + total
                yield scores if before is None else before + scores

    def shap_values(self, X: Any) -> tuple[Floats, float]:
        """How much each feature pushed each score: exact Shapley values of the trees.

        Parameters
        ----------
        X : array-like or CSR of shape (n_docs, n_features), or Queries

        Returns
        -------
        values : float64 array of shape (n_docs, n_features)
            Positive where the feature raised the score.
        expected : float
            The mean score of the training documents, leaf by leaf: ``predict(X)`` is
            ``expected + values.sum(axis=1)`` up to rounding.

        Raises
        ------
        ValueError
            If the trees were added to the scores of a ranker that is no TreeRanker.

        Notes
        -----
        Features outside a set are averaged over the training documents along each tree's own paths
        (path-dependent TreeSHAP); time is ``O(n_docs n_trees num_leaves depth^2)``.

        References
        ----------
        lundberg2020
        """
        check_is_fitted(self, "model_text_")
        where = f"{type(self).__name__}.shap_values"
        features = self._checked(where, X)
        threads = n_threads(self.n_jobs, features.shape[0] * self.n_estimators_)
        parts = self._engine().predict(
            features, pred_contrib=True, num_threads=threads, validate_features=False
        )
        if hasattr(parts, "toarray"):
            parts = parts.toarray()
        parts = np.asarray(parts, dtype=np.float64)
        values, expected = np.ascontiguousarray(parts[:, :-1]), self.start_ + float(parts[0, -1])
        if self.init_model_ is None:
            return values, expected
        if not isinstance(self.init_model_, TreeRanker):
            raise ValueError(
                f"{where}: the trees are added to the scores of a "
                f"{type(self.init_model_).__name__}, which has no Shapley values of trees"
            )
        before, start = self.init_model_.shap_values(features)
        return before + values, start + expected

    def _engine(self) -> lgb.Booster:
        """LightGBM's model, read from its text when it is first needed."""
        if getattr(self, "_booster", None) is None:
            self._booster = lgb.Booster(model_str=self.model_text_)
        return self._booster

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_booster", None)
        return state

    def _threads(self, shape: tuple[int, int]) -> int:
        # LightGBM's GOSS chooses documents thread by thread.
        return 1 if self.boosting == "goss" else n_threads(self.n_jobs, shape[0] * shape[1])

    def _number(self, where: str, name: str, **bounds: Any) -> Any:
        return _validate.number(where, name, getattr(self, name), **bounds)

    def _check(self, where: str, valid: Queries | BinnedQueries | None) -> None:
        """Parameters that do not go to the engine as they are."""
        self._number(where, "n_estimators", low=1, integer=True)
        _validate.choice(where, "boosting", self.boosting, BOOSTING)
        self._number(where, "subsample", low=0, high=1, open_low=True)
        if self.n_jobs not in (None, -1):
            self._number(where, "n_jobs", low=1, integer=True)
        if self.boosting == "goss" and self.subsample < 1:
            raise ValueError(
                f"{where}: subsample must be 1 with boosting='goss', which draws documents by "
                f"itself, got {self.subsample:g}"
            )
        parse_metric(self.metric)
        if self.boosting == "dart" and len(set(self._rates())) > 1:
            raise ValueError(
                f"{where}: learning_rate must be one number with boosting='dart', since LightGBM "
                "forgets the weights of its trees when the rate changes, got a schedule"
            )
        if self.early_stopping_rounds is not None and self.boosting == "dart":
            self._number(where, "early_stopping_rounds", low=1, integer=True)
            raise ValueError(
                f"{where}: early_stopping_rounds={self.early_stopping_rounds} needs a best round, "
                "and DART has none, since later rounds rescale earlier trees; leave it None and "
                "choose n_estimators"
            )
        _validate.patience(where, self.early_stopping_rounds, valid)

    def _rates(self) -> list[float]:
        """The learning rate of each round."""
        where, given = f"{type(self).__name__}.fit", self.learning_rate
        rounds = int(self.n_estimators)
        if callable(given):
            rates: list[Any] = [given(i) for i in range(rounds)]
        elif isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
            rates = list(given)
            if len(rates) != rounds:
                raise ValueError(
                    f"{where}: learning_rate must be one number, a function of the round, or one "
                    f"number for each of the {rounds} rounds, got {len(rates)}"
                )
        else:
            rates = [given] * rounds
        return [
            _validate.number(where, "learning_rate", rate, low=0, open_low=True) for rate in rates
        ]

    def _engine_params(
        self, where: str, data: BinnedQueries, seed: int, threads: int
    ) -> dict[str, Any]:
        def number(name: str, **bounds: Any) -> Any:
            return self._number(where, name, **bounds)

        depth = None if self.max_depth is None else number("max_depth", low=1, integer=True)
        return {
            **dataset_params(data.max_bin),
            "objective": "none",
            "metric": "None",
            "verbosity": -1,
            "learning_rate": self._rates()[0],
            "num_leaves": number("num_leaves", low=2, integer=True),
            "max_depth": -1 if depth is None else depth,
            "min_data_in_leaf": number("min_child_samples", low=1, integer=True),
            "min_sum_hessian_in_leaf": number("min_child_weight", low=0),
            "min_gain_to_split": number("min_split_gain", low=0),
            "lambda_l2": number("reg_lambda", low=0),
            "feature_fraction": number("colsample_bytree", low=0, high=1, open_low=True),
            "feature_fraction_seed": seed,
            **self._boosting_params(where, seed),
            **self._monotone_params(where, data.queries),
            "num_threads": threads,
            "deterministic": True,
            # A histogram is summed in row order either way, so both give the same trees: by rows
            # is faster, but several threads would then each sum a part of the rows.
            "force_row_wise" if threads == 1 else "force_col_wise": True,
        }

    def _boosting_params(self, where: str, seed: int) -> dict[str, Any]:
        params: dict[str, Any] = {}
        if self.boosting == "dart":
            params = {
                "boosting": "dart",
                "drop_rate": self._number(where, "drop_rate", low=0, high=1),
                "skip_drop": self._number(where, "skip_drop", low=0, high=1),
                "drop_seed": seed,
            }
        elif self.boosting == "goss":
            top = self._number(where, "top_rate", low=0, high=1, open_low=True)
            other = self._number(where, "other_rate", low=0, high=1, open_low=True)
            if top + other > 1:
                raise ValueError(
                    f"{where}: top_rate + other_rate must be at most 1, got {top:g} + {other:g}"
                )
            params = {
                "data_sample_strategy": "goss",
                "top_rate": top,
                "other_rate": other,
                "bagging_seed": seed,
            }
        if self.gradient_bins is not None:
            bins = self._number(where, "gradient_bins", low=2, high=126, integer=True)
            params |= {
                "use_quantized_grad": True,
                "num_grad_quant_bins": bins,
                "quant_train_renew_leaf": True,
                # Rounding at random would depend on the number of threads.
                "stochastic_rounding": False,
            }
        return params

    def _monotone_params(self, where: str, lists: Queries) -> dict[str, Any]:
        if self.monotone is None:
            return {}
        n, names = lists.n_features, _names(lists)
        if isinstance(self.monotone, Mapping):
            signs: list[Any] = [0] * n
            for feature, sign in self.monotone.items():
                signs[feature_number(where, "monotone", feature, n, names)] = sign
        else:
            signs = list(self.monotone)
            if len(signs) != n:
                raise ValueError(
                    f"{where}: monotone must be a mapping, or give -1, 0 or 1 for each of the {n} "
                    f"features, got {len(signs)} entries"
                )
        for sign in signs:
            if isinstance(sign, bool) or sign not in (-1, 0, 1):
                raise ValueError(f"{where}: monotone must hold -1, 0 or 1, got {sign!r}")
        return {
            "monotone_constraints": ",".join(str(int(sign)) for sign in signs),
            "monotone_constraints_method": "intermediate",
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


# Trees whose leaves are looked up at once by staged_predict.
_STAGES = 64


@dataclass(frozen=True, eq=False)
class _Watch:
    """The metric on the validation queries, from the booster's own running scores."""

    metric: Metric
    lists: Queries
    base: Any

    def __call__(self, booster: lgb.Booster) -> float:
        return float(booster.eval_valid(feval=self._value)[0][2])

    def _value(self, scores: Floats, _: lgb.Dataset) -> tuple[str, float, bool]:
        lists = self.lists
        return "metric", self.metric.mean(lists.y, self.base + scores, qid=lists.groups), True


def _names(lists: Queries) -> list[str] | None:
    return None if lists.feature_names is None else list(lists.feature_names)


def _initial(
    where: str,
    init_model: Ranker | None,
    init_score: ArrayLike | None,
    lists: Queries,
    watched: BinnedQueries | None,
) -> Floats:
    """The scores of the training documents before the first tree, but for a constant."""
    if init_score is None:
        return np.zeros(lists.n_docs) if init_model is None else init_model.predict(lists).copy()
    if init_model is not None:
        raise ValueError(f"{where}: init_model and init_score must not both be given; sum them up")
    if watched is not None:
        raise ValueError(
            f"{where}: init_score says nothing of the queries in eval_set; give a ranker as "
            "init_model= instead, or leave eval_set out"
        )
    scores = _validate.vector(where, "init_score", init_score)
    if len(scores) != lists.n_docs or not np.isfinite(scores).all():
        raise ValueError(
            f"{where}: init_score must hold one finite score for each of the {lists.n_docs} "
            f"documents, got {len(scores)} of which {int(np.isfinite(scores).sum())} are finite"
        )
    return lists.from_input_order(scores).copy()


def _prepare(where: str, loss: Any, train: Queries, threads: int) -> Derivatives:
    """Gradient and curvature on the training lists, as a function of the scores alone."""
    y, offsets, weight = train.y, train.offsets, train.weight
    value = loss if callable(loss) else parse_loss(loss)
    given = pairs_for(where, value, train.pairs)
    if hasattr(value, "prepare"):
        prepared: Derivatives = value.prepare(y, offsets, weight, n_threads=threads, **given)
        return prepared
    function = value if callable(value) else value.derivatives

    def derivatives(scores: Floats) -> tuple[Floats, Floats]:
        gradient, curvature = function(y, scores, offsets, weight, **given)
        for name, column in (("gradient", gradient), ("curvature", curvature)):
            if np.shape(column) != y.shape or not np.isfinite(column).all():
                raise ValueError(
                    f"{where}: the loss must return a finite {name} for each of the {len(y)} "
                    f"documents, got shape {np.shape(column)}"
                )
        return gradient, curvature

    return derivatives


def _from(derivatives: Derivatives, base: Floats) -> Derivatives:
    """Derivatives at the running scores of the trees, which are added to ``base``."""
    return (lambda scores: derivatives(base + scores)) if base.any() else derivatives


def _on_drawn_queries(
    derivatives: Derivatives, train: Queries, share: float, seed: int, held: int
) -> Derivatives:
    """Derivatives that are 0 outside a share of the queries, drawn anew at every call.

    LightGBM's own ``bagging_by_query`` draws otherwise with another number of threads.
    """
    count = max(1, round(share * train.n_queries))
    rounds = itertools.count(held)

    def masked(scores: Floats) -> tuple[Floats, Floats]:
        rng = np.random.default_rng((seed, next(rounds)))
        drawn = np.zeros(train.n_queries)
        drawn[rng.choice(train.n_queries, count, replace=False)] = 1
        inside = np.repeat(drawn, train.sizes)
        gradient, curvature = derivatives(scores)
        return gradient * inside, curvature * inside

    return masked


def _start(at_base: tuple[Floats, Floats]) -> float:
    """One Newton step along the constant; 0 for losses that a constant does not change."""
    gradient, curvature = at_base
    total, bend = float(np.sum(gradient)), float(np.sum(curvature))
    if abs(total) <= 1e-9 * float(np.abs(gradient).sum()) or bend <= 0:
        return 0.0
    return -total / bend
