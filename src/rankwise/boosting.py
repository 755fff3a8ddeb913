r"""Boosting of weak rankers: RankBoost on pairs, AdaRank on queries.

Both add up rankers that are hardly better than chance, one each round, and let the next round look
at what is still wrong. :class:`RankBoost` weighs pairs of documents and adds thresholds on one
feature, so its score is a sum of step functions, one per feature: as easy to read as a linear
model, and free to bend. :class:`AdaRank` weighs queries by a metric and adds whole features, so its
score is linear.

>>> import rankwise as rw
>>> queries = rw.make_queries()
>>> train, test = queries.take(range(300)), queries.take(range(300, 1300))
>>> boosted = rw.RankBoost(n_estimators=100, metric="ndcg@5").fit(train)
>>> linear = rw.AdaRank("ap", metric="ndcg@5").fit(train)
>>> round(boosted.score(test), 2), round(linear.score(test), 2)
(0.65, 0.65)

Which one? RankBoost takes missing values and features on any scale, since it sees their order only.
AdaRank is quick and its few weights can be written on a card; it needs features on one scale.
Gradient boosting (:class:`~rankwise.TreeRanker`) is nearly always more accurate than either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankwise import _core, _validate
from rankwise._estimator import Ranker, query_weights
from rankwise._inputs import column_of
from rankwise._progress import Progress
from rankwise.data import Queries
from rankwise.metrics import Metric, parse_metric

Floats = NDArray[np.float64]

# A stump that orders every pair has r = 1 and would get an infinite weight.
_LARGEST_R = 1 - 1e-6


class RankBoost(Ranker):
    r"""Sum of thresholds on single features that lowers the exponential loss of the pairs.

    .. math:: s(x) = \sum_t \alpha_t h_t(x), \qquad h_t(x) = [x_{j_t} > \theta_t], \qquad
              \alpha_t = \tfrac12 \ln \frac{1 + r_t}{1 - r_t}

    Round ``t`` weighs each pair (winner i, loser j) of a query by ``D(i, j)``, proportional to
    ``w_i exp(s_j - s_i)`` and summing to 1, and takes the feature and the threshold with the largest
    ``|r|``, where ``r = sum of D(i, j) (h(i) - h(j))``. The mean of ``exp(s_j - s_i)`` falls in each
    round at least by the factor ``sqrt(1 - r^2)``.

    Parameters
    ----------
    n_estimators : int
        Rounds of boosting, one threshold each.
    max_bin : int
        Largest number of thresholds tried per feature, up to 65,000. A feature with no more
        distinct values has all of them; of others, thresholds with about equal numbers of documents
        between them are taken.
    early_stopping_rounds : int, optional
        Stop when ``metric`` on ``eval_set`` has not risen for this many rounds.
    metric : str or Metric
        Watched on ``eval_set`` and used by ``score``.
    verbose : bool
        Show progress on standard error.
    n_jobs : int, optional
        Threads; None or -1 uses all. The model does not depend on it.

    Attributes
    ----------
    n_estimators_ : int
        Rounds kept: up to the best validation round when ``eval_set`` was given.
    features_ : int64 array of shape (n_estimators_,)
        Feature of each round.
    thresholds_ : float64 array of shape (n_estimators_,)
        Values above it answer 1. Infinity asks only whether the value is missing.
    missing_ : bool array of shape (n_estimators_,)
        The answer for a missing value.
    alphas_ : float64 array of shape (n_estimators_,)
        Weight of each round; negative where small values are better.
    losses_ : float64 array of shape (n_estimators_ + 1,)
        Weighted mean of ``exp(s_j - s_i)`` over the training pairs before the first round (1) and
        after each; at least the weighted share of pairs in the wrong order.
    validation_scores_ : float64 array of shape (n_rounds,) or None
        ``metric`` on ``eval_set`` after each round that was run.

    Raises
    ------
    ValueError
        If a parameter is out of range, every query holds one label only, or early stopping is asked
        for without ``eval_set``.

    Notes
    -----
    No pair is formed: ``exp(s_j - s_i)`` is a factor of the loser times one of the winner, so sums
    of factors by label give each document the total weight of the pairs it wins minus that of the
    pairs it loses. A round costs one pass over the binned features, O(n_docs n_features).

    A missing value (NaN) answers what makes ``|r|`` larger, 0 (the side of small values) where that
    does not matter or training had none missing. Boosting ends early when a threshold orders every
    pair, or when none is better than chance.

    A document weight multiplies the pairs that the document wins. All pairs of all queries count
    alike, so long queries dominate; weights of one over a query's number of pairs undo that.

    References
    ----------
    freund2003

    Examples
    --------
    Three of four pairs in order with weight 1/4 each: ``r = 1/2``, ``alpha = ln(3) / 2``.

    >>> import rankwise as rw
    >>> X, y = [[1.0], [3.0], [2.0], [4.0]], [0, 0, 1, 1]
    >>> model = rw.RankBoost(n_estimators=1).fit(X, y, qid=[7] * 4)
    >>> model.thresholds_, model.alphas_.round(4)
    (array([1.5]), array([0.5493]))
    """

    n_estimators_: int
    features_: NDArray[np.int64]
    thresholds_: Floats
    missing_: NDArray[np.bool_]
    alphas_: Floats
    losses_: Floats
    validation_scores_: Floats | None

    def __init__(
        self,
        *,
        n_estimators: int = 300,
        max_bin: int = 255,
        early_stopping_rounds: int | None = None,
        metric: str | Metric = "ndcg@10",
        verbose: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_bin = max_bin
        self.early_stopping_rounds = early_stopping_rounds
        self.metric = metric
        self.verbose = verbose
        self.n_jobs = n_jobs

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        where = "RankBoost.fit"
        rounds = int(
            _validate.number(where, "n_estimators", self.n_estimators, low=1, integer=True)
        )
        max_bin = int(
            _validate.number(where, "max_bin", self.max_bin, low=1, high=65_000, integer=True)
        )
        threads = _threads(where, self.n_jobs)
        watch = _Watch(where, self.early_stopping_rounds, parse_metric(self.metric), valid)
        pairs = _Pairs(where, train, threads)
        bins = _Bins(train.X, max_bin, pairs.order)
        seen = None if valid is None else _Bins(valid.X, max_bin, None, like=bins)
        stumps: list[tuple[int, int, bool, float]] = []
        scores = np.zeros(train.n_docs)
        shown = np.zeros(0 if valid is None else valid.n_docs)
        losses = [1.0]
        with Progress(quiet=not self.verbose) as progress:
            potential, total = pairs.potentials(scores)
            for done in range(rounds):
                feature, threshold, missing, gain = bins.best_stump(potential, threads)
                r = gain / total
                if feature < 0 or r == 0:
                    break
                r = float(np.clip(r, -_LARGEST_R, _LARGEST_R))
                stumps.append((feature, threshold, missing, float(np.arctanh(r))))
                scores += bins.answers(*stumps[-1][:3]) * stumps[-1][3]
                potential, total = pairs.potentials(scores)
                losses.append(total / pairs.total)
                if seen is not None:
                    shown += seen.answers(*stumps[-1][:3]) * stumps[-1][3]
                progress(done + 1, rounds, f"rankboost, loss {losses[-1]:.4f}")
                if watch.stops(shown) or abs(r) == _LARGEST_R:
                    break
        if not stumps:
            raise ValueError(
                f"{where}: some feature must order some documents better than chance, "
                f"got none among {train.n_features}; check labels and features"
            )
        self._keep(bins, stumps[: watch.best(len(stumps))])
        self.losses_ = np.array(losses[: self.n_estimators_ + 1])
        self.validation_scores_ = watch.scores

    def _keep(self, bins: _Bins, stumps: list[tuple[int, int, bool, float]]) -> None:
        self.n_estimators_ = len(stumps)
        self.features_ = np.array([s[0] for s in stumps], np.int64)
        self.thresholds_ = np.array([bins.value(s[0], s[1]) for s in stumps])
        self.missing_ = np.array([s[2] for s in stumps])
        self.alphas_ = np.array([s[3] for s in stumps])

    def _score(self, X: Any) -> Floats:
        scores = np.zeros(X.shape[0])
        for feature in np.unique(self.features_):
            thresholds, steps, missing = self.steps(int(feature))
            column = column_of(X, int(feature))
            # The sums by thresholds passed, and one more for what is missing.
            sums = np.append(steps, missing)
            place = np.searchsorted(thresholds, column, side="left")
            place[np.isnan(column)] = len(steps)
            scores += sums[place]
        return scores

    def steps(self, feature: int) -> tuple[Floats, Floats, float]:
        """What one feature adds to the score: a step function of its value.

        Parameters
        ----------
        feature : int
            Column number, from 0.

        Returns
        -------
        thresholds : float64 array of shape (n_steps,)
            Ascending.
        values : float64 array of shape (n_steps + 1,)
            ``values[k]`` is added where exactly the first ``k`` thresholds are below the value.
        missing : float
            What is added where the value is missing.

        Examples
        --------
        >>> import rankwise as rw
        >>> model = rw.RankBoost(n_estimators=3).fit(rw.make_queries())
        >>> thresholds, values, missing = model.steps(0)
        >>> thresholds.round(2), values.round(2), missing
        (array([0.16, 0.55]), array([0.  , 0.39, 0.64]), 0.0)
        """
        check_is_fitted(self, "alphas_")
        feature = int(
            _validate.number(
                "RankBoost.steps",
                "feature",
                feature,
                low=0,
                high=getattr(self, "n_features_in_", feature + 1) - 1,
                integer=True,
            )
        )
        mine = self.features_ == feature
        missing = float(self.alphas_[mine & self.missing_].sum())
        mine &= np.isfinite(self.thresholds_)
        thresholds, place = np.unique(self.thresholds_[mine], return_inverse=True)
        heights = np.bincount(place, self.alphas_[mine], minlength=len(thresholds))
        return thresholds, np.concatenate([np.zeros(1), np.cumsum(heights)]), missing

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class _Pairs:
    """The training pairs, as lists whose rows go by ascending label inside each query."""

    def __init__(self, where: str, train: Queries, threads: int) -> None:
        number = np.repeat(np.arange(train.n_queries), train.sizes)
        self.order = np.lexsort((train.y, number))
        self.y = train.y[self.order]
        self.weight = None if train.weight is None else train.weight[self.order]
        self.offsets, self.threads = train.offsets, threads
        self.total = 1.0
        self.total = self.potentials(np.zeros(train.n_docs))[1]
        if not self.total > 0:
            raise ValueError(
                f"{where}: some query must hold documents with different labels, the larger one "
                f"with a weight above 0, got none in {train.n_queries} queries; there is no order "
                "to learn"
            )

    def potentials(self, scores: Floats) -> tuple[Floats, float]:
        potential, total = _core.pair_potentials(
            self.y, scores, self.offsets, self.weight, self.threads
        )
        return potential, float(total.sum())


class _Bins:
    """Features as bins: bin ``b`` holds the values above ``b`` thresholds; after it, missing."""

    def __init__(
        self,
        X: Any,
        max_bin: int,
        order: NDArray[np.int64] | None,
        *,
        like: _Bins | None = None,
    ) -> None:
        n, d = X.shape
        kind = np.uint8 if max_bin <= 254 else np.uint16
        self.bins = np.empty((d, n), kind)
        self.thresholds: list[Floats] = []
        for j in range(d):
            column = column_of(X, j)
            if order is not None:
                column = column[order]
            cuts = _thresholds(column, max_bin) if like is None else like.thresholds[j]
            self.thresholds.append(cuts)
            self.bins[j] = np.searchsorted(cuts, column, side="left")
            self.bins[j, np.isnan(column)] = len(cuts) + 1
        self.counts = np.array([len(cuts) for cuts in self.thresholds], np.int64)

    def best_stump(self, potential: Floats, threads: int) -> tuple[int, int, bool, float]:
        found: tuple[int, int, bool, float] = _core.best_stump(
            self.bins, self.counts, potential, threads
        )
        return found

    def answers(self, feature: int, threshold: int, missing: bool) -> NDArray[np.bool_]:
        bins, last = self.bins[feature], self.counts[feature] + 1
        above = bins > threshold
        answer: NDArray[np.bool_] = (
            above & (bins != last) if not missing else above | (bins == last)
        )
        return answer

    def value(self, feature: int, threshold: int) -> float:
        cuts = self.thresholds[feature]
        return float(cuts[threshold]) if threshold < len(cuts) else np.inf


def _thresholds(column: Floats, max_bin: int) -> Floats:
    """Ascending values between neighbouring distinct values of the column, at most ``max_bin``."""
    ordered = np.sort(column[~np.isnan(column)])
    ends = np.flatnonzero(ordered[1:] > ordered[:-1])  # last place of each distinct value
    if len(ends) > max_bin:
        wanted = np.arange(1, max_bin + 1) * len(ordered) / (max_bin + 1)
        ends = np.unique(ends[np.minimum(np.searchsorted(ends, wanted), len(ends) - 1)])
    low, high = ordered[ends], ordered[ends + 1]
    middle = low / 2 + high / 2
    # Between neighbouring numbers there is none: x > low is then what tells them apart.
    return np.where((middle > low) & (middle < high), middle, low)


def _threads(where: str, n_jobs: int | None) -> int:
    if n_jobs in (None, -1):
        return 0
    return int(_validate.number(where, "n_jobs", n_jobs, low=1, integer=True))


class _Watch:
    """The metric on the validation queries, round by round, and when to stop."""

    def __init__(
        self, where: str, patience: int | None, metric: Metric, valid: Queries | None
    ) -> None:
        self.patience = _validate.patience(where, patience, valid)
        self.metric, self.valid = metric, valid
        self.history: list[float] = []
        self.first_best = 0

    def stops(self, scores: Floats) -> bool:
        """Takes note of one round's scores; whether it should be the last."""
        if self.valid is None:
            return False
        value = self.metric.mean(self.valid.y, scores, qid=self.valid.groups)
        self.history.append(value)
        if not value <= self.history[self.first_best]:
            self.first_best = len(self.history) - 1
        return self.patience is not None and (
            len(self.history) - 1 - self.first_best >= self.patience
        )

    def best(self, rounds: int) -> int:
        """How many rounds to keep: those up to the first best one, or all."""
        return rounds if self.valid is None else self.first_best + 1

    @property
    def scores(self) -> Floats | None:
        return None if self.valid is None else np.array(self.history)


class AdaRank(Ranker):
    r"""Linear scores made by boosting single features for a ranking metric.

    .. math:: s(x) = \sum_t \alpha_t \, x_{j_t}, \qquad
              \alpha_t = \tfrac12 \ln \frac{\sum_q P_t(q) (1 + E_t(q))}
                                           {\sum_q P_t(q) (1 - E_t(q))}

    Round ``t`` weighs query ``q`` by ``P_t(q)``, proportional to ``w_q exp(-E(q))`` with ``E(q)``
    the metric of the scores so far, and takes the feature whose own metric ``E_t``, weighed so, is
    largest.

    Parameters
    ----------
    objective : str or Metric, optional
        What is boosted: a metric between -1 and 1 per query. None is ``metric``.
    n_estimators : int
        Most rounds.
    repeats : {"apart", "any", "never"}
        When a feature may be chosen again: ``"apart"``, after another one has been; ``"any"``, always,
        as in the paper; ``"never"``. A feature that is chosen twice in a row changes no ranking and
        so no weight of a query, and under ``"any"`` is then chosen for ever.
    directions : {"up", "both"}
        ``"up"``: large values of a feature are good, as in the paper; ``"both"`` also tries each
        feature upside down, with a negative weight.
    tol : float
        A round is progress when it raises the mean training ``objective`` by more than ``tol``.
    patience : int
        Stop after this many rounds in a row without progress; they are dropped.
    early_stopping_rounds : int, optional
        Stop when ``metric`` on ``eval_set`` has not risen for this many rounds.
    metric : str or Metric
        Watched on ``eval_set`` and used by ``score``.
    verbose : bool
        Show progress on standard error.

    Attributes
    ----------
    coef_ : float64 array of shape (n_features,)
        Sum of the weights of each feature's rounds.
    features_ : int64 array of shape (n_estimators_,)
        Feature of each round kept.
    alphas_ : float64 array of shape (n_estimators_,)
        Weight of each round, negative for a feature taken upside down.
    train_scores_ : float64 array of shape (n_estimators_,)
        Mean training ``objective`` after each round kept.
    validation_scores_ : float64 array of shape (n_rounds,) or None
        ``metric`` on ``eval_set`` after each round that was run.
    n_estimators_ : int
        Rounds kept: up to the best validation round with ``eval_set``, else to the last progress.
    n_queries_ : int
        Training queries that have a value of ``objective`` and so a weight.

    Raises
    ------
    ValueError
        If features are missing (NaN), no training query has a value of ``objective``, a value lies
        outside -1 to 1, or a parameter is out of range.

    Notes
    -----
    The metric of every feature on every query is computed once, O(n_docs n_features log n); a round
    then costs O(n_queries n_features) for the choice and one evaluation of the sum. Features enter
    as they are, so they must be on one scale: put :class:`~rankwise.QueryScaler` before it.

    Queries without a value (no relevant document) are left out. A query's weight is the mean weight
    of its documents.

    References
    ----------
    xu2007

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_queries()
    >>> model = rw.AdaRank("ap", n_estimators=3).fit(queries)
    >>> model.features_, model.alphas_.round(3)
    (array([0, 1]), array([0.813, 0.625]))
    """

    coef_: Floats
    features_: NDArray[np.int64]
    alphas_: Floats
    train_scores_: Floats
    validation_scores_: Floats | None
    n_estimators_: int
    n_queries_: int

    def __init__(
        self,
        objective: str | Metric | None = None,
        *,
        n_estimators: int = 500,
        repeats: str = "apart",
        directions: str = "up",
        tol: float = 0.0,
        patience: int = 10,
        early_stopping_rounds: int | None = None,
        metric: str | Metric = "ndcg@10",
        verbose: bool = False,
    ) -> None:
        self.objective = objective
        self.n_estimators = n_estimators
        self.repeats = repeats
        self.directions = directions
        self.tol = tol
        self.patience = patience
        self.early_stopping_rounds = early_stopping_rounds
        self.metric = metric
        self.verbose = verbose

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        where = "AdaRank.fit"

        def whole(name: str, low: int = 1) -> int:
            return int(_validate.number(where, name, getattr(self, name), low=low, integer=True))

        rounds, patience = whole("n_estimators"), whole("patience")
        _validate.choice(where, "repeats", self.repeats, ["apart", "any", "never"])
        tol = _validate.number(where, "tol", self.tol, low=0)
        _validate.choice(where, "directions", self.directions, ["up", "both"])
        watch = _Watch(where, self.early_stopping_rounds, parse_metric(self.metric), valid)
        objective = parse_metric(self.metric if self.objective is None else self.objective)
        signs = (1.0,) if self.directions == "up" else (1.0, -1.0)
        target = _Target(where, objective, train)
        values = np.stack(
            [
                target.values(sign * column_of(train.X, j))
                for j in range(train.n_features)
                for sign in signs
            ]
        )
        _check_values(where, objective, values)
        scores = np.zeros(train.n_docs)
        shown = np.zeros(0 if valid is None else valid.n_docs)
        barred = np.zeros(train.n_features, bool)
        chosen: list[tuple[int, float]] = []
        history: list[float] = []
        best = 0
        share = target.weight / target.weight.sum()
        with Progress(quiet=not self.verbose) as progress:
            for done in range(rounds):
                mean = np.einsum("fq,q->f", values, share)
                mean[np.repeat(barred, len(signs))] = -np.inf
                pick = _first_best(mean)
                if mean[pick] == -np.inf:
                    break
                feature, sign = pick // len(signs), signs[pick % len(signs)]
                if self.repeats == "apart":
                    barred[:] = False
                barred[feature] = self.repeats != "any"
                alpha = sign * float(np.arctanh(np.clip(mean[pick], -_LARGEST_R, _LARGEST_R)))
                chosen.append((feature, alpha))
                scores += alpha * column_of(train.X, feature)
                now = target.values(scores)
                history.append(target.mean(now))
                if history[done] > history[best] + tol:
                    best = done
                if valid is not None:
                    shown += alpha * column_of(valid.X, feature)
                progress(done + 1, rounds, f"adarank, {objective} {history[-1]:.4f}")
                if watch.stops(shown) or done - best >= patience:
                    break
                share = target.weight * np.exp(-now)
                share /= share.sum()  # hard queries first
        kept = best + 1 if valid is None else watch.best(len(chosen))
        self._keep(train.n_features, chosen[:kept], history[:kept])
        self.n_queries_ = int((target.weight > 0).sum())
        self.validation_scores_ = watch.scores

    def _keep(self, d: int, chosen: list[tuple[int, float]], history: list[float]) -> None:
        self.n_estimators_ = len(chosen)
        self.features_ = np.array([feature for feature, _ in chosen], np.int64)
        self.alphas_ = np.array([alpha for _, alpha in chosen])
        coef: Floats = np.bincount(self.features_, self.alphas_, minlength=d).astype(np.float64)
        self.coef_ = coef
        self.train_scores_ = np.array(history)

    def _score(self, X: Any) -> Floats:
        from rankwise._linear_problem import features_of

        return np.asarray(features_of(X).scores(self.coef_))


class _Target:
    """A metric on the training queries: values, weights, and which queries have a value."""

    def __init__(self, where: str, metric: Metric, train: Queries) -> None:
        self.metric, self.y, self.groups = metric, train.y, train.groups
        first = metric.per_query(train.y, np.zeros(train.n_docs), qid=self.groups)
        weight = query_weights(self.groups, train.weight)
        self.weight = np.where(np.isnan(first), 0.0, 1.0 if weight is None else weight)
        self.total = float(self.weight.sum())
        filled = train.offsets[:-1][train.sizes > 0]
        ordered = np.fmax.reduceat(train.y, filled) > np.fmin.reduceat(train.y, filled)
        if not (self.weight[train.sizes > 0] * ordered).any():
            raise ValueError(
                f"{where}: some query with a value of {metric} and a weight above 0 must hold "
                f"documents with different labels, got none in {train.n_queries} queries; "
                "there is no order to learn"
            )

    def values(self, scores: Floats) -> Floats:
        """One value per query, 0 for those without (their weight is 0)."""
        found = self.metric.per_query(self.y, scores, qid=self.groups)
        return np.where(self.weight > 0, found, 0.0)

    def mean(self, values: Floats) -> float:
        return float((values * self.weight).sum()) / self.total


def _check_values(where: str, metric: Metric, values: Floats) -> None:
    worst = float(values.flat[np.argmax(np.abs(values))])
    if abs(worst) > 1:
        raise ValueError(
            f"{where}: objective must have values between -1 and 1, got {worst:g} from {metric}; "
            "take a normalised metric such as ndcg instead of dcg"
        )


# Means that differ by less are equal; which is larger would depend on the order of summation.
_ROUNDING = 1e-12


def _first_best(values: Floats) -> int:
    return int(np.argmax(values >= values.max() - _ROUNDING))
