"""Several rankers as one: averages of any rankers, and bags of one ranker with the best kept.

:class:`EnsembleRanker` averages the scores, or the places, that different rankers give.
:class:`BaggedRanker` fits one ranker to many random parts of the training queries and keeps those
whose average does best on validation queries; with LambdaMART inside it is BL-MART.

>>> import rankwise as rw
>>> train, valid, test = rw.make_queries(n_queries=300).split()
>>> both = rw.EnsembleRanker(["lambdamart(n_estimators=20, early_stopping_rounds=None)", "ranksvm"])
>>> both.fit(train).predict(test).shape
(1800,)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise import _validate
from rankwise._estimator import Ranker
from rankwise.data import Groups, Queries, canonical, query_of
from rankwise.metrics import Metric, parse_metric
from rankwise.recipes import make_ranker

Floats = NDArray[np.float64]


class EnsembleRanker(Ranker):
    """The average of several rankers.

    ``score = sum of w_r s_r / spread_r`` over the rankers ``r``, or with ``by="rank"`` the mean of
    ``w_r (1 - (rank_r - 1/2) / n)``, where ``rank_r`` is the place, from 1, that ranker ``r`` gives
    the document among the ``n`` of its query. Weights sum to 1.

    Parameters
    ----------
    rankers : sequence of Ranker or str
        Rankers, which are copied before they are fitted, or names of recipes such as ``"ranksvm"``.
    by : {"score", "rank"}
        ``"score"`` divides the scores of each ranker by their spread: the root mean square
        distance from the query's mean, over the training documents. ``"rank"`` looks at places
        only, so ``predict`` must know the queries: pass ``qid``, a frame with it, or Queries.
    weights : sequence of float, optional
        One for each ranker, at least 0; equal unless given.
    metric : str or Metric
        Used by ``score``.

    Attributes
    ----------
    rankers_ : list of Ranker
        The fitted rankers.
    weights_, spreads_ : float64 arrays of shape (n_rankers,)

    Raises
    ------
    ValueError
        If there is no ranker, or weights are negative or not one for each ranker.

    Notes
    -----
    Tied documents have the mean of the places they share. :meth:`of` averages rankers that are
    fitted already.

    Examples
    --------
    >>> import rankwise as rw
    >>> train, test = rw.make_queries(n_queries=200).split((0.5, 0.5))
    >>> places = rw.EnsembleRanker(["linear", "ranksvm"], by="rank").fit(train)
    >>> bool(places.predict(test.X, qid=test.qid).max() < 1)
    True
    """

    def __init__(
        self,
        rankers: Sequence[Ranker | str] = ("lambdamart", "ranksvm"),
        *,
        by: str = "score",
        weights: ArrayLike | None = None,
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.rankers = rankers
        self.by = by
        self.weights = weights
        self.metric = metric

    @classmethod
    def of(
        cls,
        rankers: Sequence[Ranker],
        queries: Queries,
        *,
        by: str = "score",
        weights: ArrayLike | None = None,
        metric: str | Metric = "ndcg@10",
    ) -> Self:
        """The average of rankers that are fitted already.

        Parameters
        ----------
        rankers : sequence of fitted Ranker
            They are kept as they are, not copied.
        queries : Queries
            On which the spread of each ranker's scores is measured; labels do not matter.
        by, weights, metric
            As in the class.

        Returns
        -------
        A fitted EnsembleRanker.
        """
        ensemble = cls(list(rankers), by=by, weights=weights, metric=metric)
        ensemble._keep(f"{cls.__name__}.of", list(rankers), canonical(queries))
        ensemble.n_features_in_ = queries.n_features
        if queries.feature_names is not None:
            ensemble.feature_names_in_ = np.asarray(queries.feature_names, dtype=object)
        return ensemble

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        where = f"{type(self).__name__}.fit"
        self._keep(where, [_fitted(where, one, train, valid) for one in self.rankers], train)

    def _keep(self, where: str, rankers: list[Ranker], queries: Queries) -> None:
        _validate.choice(where, "by", self.by, ("score", "rank"))
        parse_metric(self.metric)
        if not rankers:
            raise ValueError(f"{where}: rankers must hold at least one ranker, got none")
        for one in rankers:
            check_is_fitted(one)
        self.weights_ = _shares(where, self.weights, len(rankers))
        self.rankers_ = rankers
        self.spreads_ = np.ones(len(rankers))
        if self.by == "score":
            self.spreads_ = np.array([_spread(one.predict(queries), queries) for one in rankers])

    def _looks_at_lists(self) -> bool:
        return self.by == "rank" or any(
            one._looks_at_lists() for one in getattr(self, "rankers_", [])
        )

    def _score(self, X: Any) -> Floats:
        return self._mean([one.predict(X) for one in self.rankers_])

    def _score_lists(self, X: Any, offsets: NDArray[np.int64]) -> Floats:
        groups = Groups(offsets, np.arange(len(offsets) - 1))
        columns = [one.predict(X, qid=groups) for one in self.rankers_]
        if self.by == "rank":
            columns = [_places(column, groups) for column in columns]
        return self._mean(columns)

    def _mean(self, columns: list[Floats]) -> Floats:
        return _weighted(self.weights_ / self.spreads_, columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [_as_ranker(one).__sklearn_tags__().input_tags for one in self.rankers]
        tags.input_tags.allow_nan = all(one.allow_nan for one in inner)
        tags.input_tags.sparse = all(one.sparse for one in inner)
        return tags


class BaggedRanker(Ranker):
    """One ranker fitted to many random parts of the training queries; the best are averaged.

    With validation queries, rankers are chosen greedily (Caruana et al. 2004): from none, always the
    one whose addition to the sum of scores makes ``metric`` on the validation queries largest; a
    ranker may be chosen again, which raises its weight. The rounds up to the best are kept. Without
    validation queries all are averaged. With LambdaMART inside this is BL-MART
    (Ganjisaffar et al. 2011).

    Parameters
    ----------
    ranker : Ranker or str
        What is fitted, or the name of a recipe.
    n_rankers : int
        Parts drawn and rankers fitted.
    bag : float
        Share of the training queries in each part, drawn without putting back.
    n_chosen : int
        Rounds of the greedy choice.
    metric : str or Metric
        What the choice goes by; used by ``score``.
    random_state : int, RandomState or None
        Seed of the parts, and of the rankers where they take one.

    Attributes
    ----------
    rankers_ : list of Ranker
        The rankers that were chosen, each once.
    weights_ : float64 array of shape (len(rankers_),)
        Their shares of the sum.
    validation_scores_ : float64 array of shape (n_chosen,) or None
        ``metric`` on the validation queries after each round of the choice.

    Notes
    -----
    The scores of the rankers are added as they are, since one loss gave them one scale. Validation
    queries choose trees (early stopping) and rankers, so their metric is too good an estimate.

    References
    ----------
    ganjisaffar2011, caruana2004

    Examples
    --------
    >>> import rankwise as rw
    >>> train, valid, test = rw.make_queries(n_queries=300).split()
    >>> trees = rw.TreeRanker(n_estimators=20, num_leaves=8)
    >>> bagged = rw.BaggedRanker(trees, n_rankers=5, random_state=0).fit(train, eval_set=valid)
    >>> len(bagged.rankers_) <= 5
    True
    """

    def __init__(
        self,
        ranker: Ranker | str = "lambdamart",
        *,
        n_rankers: int = 20,
        bag: float = 0.7,
        n_chosen: int = 20,
        metric: str | Metric = "ndcg@10",
        random_state: Any = None,
    ) -> None:
        self.ranker = ranker
        self.n_rankers = n_rankers
        self.bag = bag
        self.n_chosen = n_chosen
        self.metric = metric
        self.random_state = random_state

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        where = f"{type(self).__name__}.fit"
        count = int(_validate.number(where, "n_rankers", self.n_rankers, low=1, integer=True))
        share = _validate.number(where, "bag", self.bag, low=0, high=1, open_low=True)
        rounds = int(_validate.number(where, "n_chosen", self.n_chosen, low=1, integer=True))
        metric = parse_metric(self.metric)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        size = max(1, round(share * train.n_queries))
        rankers = []
        for _ in range(count):
            part = train.take(np.sort(rng.choice(train.n_queries, size, replace=False)))
            one = clone(_as_ranker(self.ranker))
            if "random_state" in one.get_params(deep=False):
                one.set_params(random_state=int(rng.integers(2**31 - 1)))
            rankers.append(one.fit(part, eval_set=valid))
        self.validation_scores_ = None
        times = np.ones(count)
        if valid is not None:
            columns = [one.predict(valid) for one in rankers]
            chosen, scores = choose_greedily(columns, valid, metric, rounds)
            self.validation_scores_ = scores
            times = np.bincount(chosen, minlength=count).astype(np.float64)
        self.rankers_ = [one for one, n in zip(rankers, times, strict=True) if n]
        self.weights_ = times[times > 0] / times.sum()

    def _looks_at_lists(self) -> bool:
        return any(one._looks_at_lists() for one in getattr(self, "rankers_", []))

    def _score(self, X: Any) -> Floats:
        return _weighted(self.weights_, [one.predict(X) for one in self.rankers_])

    def _score_lists(self, X: Any, offsets: NDArray[np.int64]) -> Floats:
        groups = Groups(offsets, np.arange(len(offsets) - 1))
        return _weighted(self.weights_, [one.predict(X, qid=groups) for one in self.rankers_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = _as_ranker(self.ranker).__sklearn_tags__().input_tags
        tags.input_tags.allow_nan, tags.input_tags.sparse = inner.allow_nan, inner.sparse
        return tags


def choose_greedily(
    columns: Sequence[Floats], queries: Queries, metric: Metric, rounds: int
) -> tuple[list[int], Floats]:
    """Which score columns to add up, a column several times if need be, and the metric on the way.

    Parameters
    ----------
    columns : sequence of float64 array of shape (n_docs,)
    queries : Queries
        With the labels that ``metric`` looks at.
    metric : Metric
    rounds : int

    Returns
    -------
    chosen : list of int
        Columns in the order of their choice, up to the round with the best value; among equally
        good ones the first.
    values : float64 array of shape (rounds,)
    """
    total = np.zeros(queries.n_docs)
    chosen, values = [], np.empty(rounds)
    for i in range(rounds):
        found = [metric.mean(queries.y, total + one, qid=queries.groups) for one in columns]
        chosen.append(int(np.nanargmax(found)) if not np.isnan(found).all() else 0)
        values[i] = found[chosen[-1]]
        total = total + columns[chosen[-1]]
    best = int(np.nanargmax(values)) if not np.isnan(values).all() else 0
    return chosen[: best + 1], values


def _weighted(weights: Floats, columns: list[Floats]) -> Floats:
    total = np.zeros(len(columns[0]))
    for weight, column in zip(weights, columns, strict=True):
        total += weight * column
    return total


def _as_ranker(given: Any) -> Ranker:
    if isinstance(given, str):
        return make_ranker(given)
    if isinstance(given, Ranker):
        return given
    raise TypeError(
        "an ensemble takes rankers of rankwise, or names of recipes, got "
        f"{type(given).__name__}; wrap a scikit-learn regressor in PointwiseRanker"
    )


def _fitted(where: str, given: Any, train: Queries, valid: Queries | None) -> Ranker:
    one: Ranker = clone(_as_ranker(given))
    return one.fit(train, eval_set=valid)


def _shares(where: str, weights: ArrayLike | None, count: int) -> Floats:
    if weights is None:
        return np.full(count, 1 / count)
    values = _validate.vector(where, "weights", weights)
    if (
        len(values) != count
        or not np.isfinite(values).all()
        or (values < 0).any()
        or not values.any()
    ):
        raise ValueError(
            f"{where}: weights must hold one number of at least 0 for each of the {count} rankers, "
            f"not all 0, got {values.tolist()}"
        )
    return np.asarray(values / values.sum())


def _spread(scores: Floats, queries: Queries) -> float:
    """Root mean square distance from the query's mean; 1 where all scores of a query are equal."""
    means = np.add.reduceat(scores, queries.offsets[:-1]) / queries.sizes
    spread = float(np.sqrt(np.mean((scores - np.repeat(means, queries.sizes)) ** 2)))
    return spread if spread > 0 else 1.0


def _places(scores: Floats, groups: Groups) -> Floats:
    """``1 - (rank - 1/2) / n`` in input order; tied documents share the mean of their places."""
    grouped = groups.gather(scores)
    query = query_of(groups.offsets)
    order = np.lexsort((-grouped, query))
    ordered, which = grouped[order], query[order]
    new = np.r_[True, (ordered[1:] != ordered[:-1]) | (which[1:] != which[:-1])]
    starts = np.flatnonzero(new)
    ends = np.r_[starts[1:], len(ordered)]
    before = np.repeat(groups.offsets[:-1], groups.sizes)[order]
    middle = np.repeat((starts + ends) / 2, ends - starts) - before  # the mean rank less a half
    places = np.empty(len(scores))
    places[order] = 1 - middle / groups.sizes[which]
    return groups.scatter(places)
