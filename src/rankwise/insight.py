r"""Looking inside a ranker: what it relies on, where it errs, and what pushed the wrong document up.

* :func:`permutation_importance`: how much a metric falls when a feature is shuffled.
* :func:`worst_queries`: the queries a ranker serves worst, with their pairs in the wrong order.
* :func:`explain_query`: one query in detail: its documents, the wrong pairs by what each costs, and
  the features that pushed them.
* :func:`partial_dependence`: the score as a function of one feature.
* :func:`contributions`: what each feature adds to each score.

All take a fitted ranker (anything with ``predict``) and judged lists, and return frozen values that
print as a table and turn into plain types with ``as_dict()``. ``rankwise explain`` shows the same
on the command line.

>>> import rankwise as rw
>>> train, test = rw.make_queries(n_queries=200).split([0.5, 0.5])
>>> ranker = rw.LinearRanker("ranknet", metric="ndcg@5").fit(train)
>>> importance = rw.permutation_importance(ranker, test, n_repeats=3)
>>> print(importance)
ndcg@5 is 0.6988 on 92 queries; shuffling a feature inside each query (3 times) lowers it by
feature     drop      95 % interval  between repeats
x0        0.4051   [0.3525, 0.4578]           0.0164
x1        0.2075   [0.1705, 0.2445]           0.0085
x3        0.0102  [-0.0040, 0.0244]           0.0023
x5        0.0000   [0.0000, 0.0000]           0.0000
x2       -0.0002  [-0.0080, 0.0077]           0.0014
x4       -0.0007  [-0.0087, 0.0073]           0.0011
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise import _validate
from rankwise.data import Groups, Queries, canonical
from rankwise.metrics import Metric, parse_metric
from rankwise.stats import Interval, t_interval

Floats = NDArray[np.float64]
Seed = int | np.random.Generator | None

# Documents scored or measured in one call, which bounds the memory.
_CHUNK = 1_000_000


# --- importance ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Importance:
    """How much a metric falls when features are shuffled; largest falls first.

    Attributes
    ----------
    metric : str
    baseline : float
        Mean of the metric with every feature in place.
    names : tuple of str
        Feature or group of features.
    columns : tuple of tuple of int
        The columns of each, from 0.
    drops : float64 array of shape (n_features,)
        Mean fall of the metric over queries and repeats; negative where shuffling helps.
    intervals : tuple of Interval
        Student's interval of each drop over the queries.
    spreads : float64 array of shape (n_features,)
        Standard deviation of the mean drop between repeats.
    per_query : float64 array of shape (n_features, n_queries)
        Mean drop over the repeats; NaN where the metric has no value.
    within : {"query", "all"}
    n_repeats, n_queries : int
        ``n_queries`` counts those with a value of the metric.
    confidence : float
    """

    metric: str
    baseline: float
    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    drops: Floats
    intervals: tuple[Interval, ...]
    spreads: Floats
    per_query: Floats
    within: str
    n_repeats: int
    n_queries: int
    confidence: float

    def as_dict(self) -> dict[str, Any]:
        """Plain types, ready for JSON; without the values of each query."""
        return {
            "metric": self.metric,
            "baseline": self.baseline,
            "within": self.within,
            "repeats": self.n_repeats,
            "queries": self.n_queries,
            "confidence": self.confidence,
            "features": [
                {
                    "name": name,
                    "columns": list(columns),
                    "drop": float(drop),
                    "low": interval.low,
                    "high": interval.high,
                    "spread": float(spread),
                }
                for name, columns, drop, interval, spread in zip(
                    self.names, self.columns, self.drops, self.intervals, self.spreads, strict=True
                )
            ],
        }

    def __str__(self) -> str:
        where = "inside each query" if self.within == "query" else "over all documents"
        times = "once" if self.n_repeats == 1 else f"{self.n_repeats} times"
        rows = [
            [name, f"{drop:.4f}", f"[{i.low:.4f}, {i.high:.4f}]", f"{spread:.4f}"]
            for name, drop, i, spread in zip(
                self.names, self.drops, self.intervals, self.spreads, strict=True
            )
        ]
        head = ["feature", "drop", f"{100 * self.confidence:g} % interval", "between repeats"]
        return (
            f"{self.metric} is {self.baseline:.4f} on {self.n_queries} queries; shuffling a feature "
            f"{where} ({times}) lowers it by\n" + _table(head, rows)
        )


def permutation_importance(
    ranker: Any,
    queries: Queries,
    *,
    metric: str | Metric | None = None,
    features: Sequence[int | str] | Mapping[str, Sequence[int | str]] | None = None,
    within: str = "query",
    n_repeats: int = 10,
    confidence: float = 0.95,
    rng: Seed = 0,
    progress: Callable[[int, int, str], None] | None = None,
) -> Importance:
    r"""How much a metric falls when the values of a feature are shuffled.

    .. math:: \mathrm{drop}_j = \frac{1}{n} \sum_q
              \bigl( M_q(s(X)) - \tfrac{1}{T} \sum_t M_q(s(X^{(j,t)})) \bigr)

    where ``X^(j,t)`` has column ``j`` shuffled.

    Parameters
    ----------
    ranker : fitted ranker, or anything with ``predict(X)``
    queries : Queries
        Judged lists that the ranker did not learn from, unless it is what it memorised that you ask.
    metric : str or Metric, optional
        None is the ranker's own ``metric``.
    features : sequence of int or str, or mapping of name to such sequences, optional
        Column numbers from 0, or names. In a mapping the features of an entry are shuffled
        together: the fair way to treat features that say the same. None is each feature by itself.
    within : {"query", "all"}
        Shuffle among the documents of each query (what a feature does to orders; a feature that is
        constant in a query has no importance), or among all documents.
    n_repeats : int
        Shuffles. All features of a repeat are shuffled alike, so that they can be compared.
    confidence : float
        Coverage of the intervals, between 0 and 1.
    rng : int, Generator or None
        Seed. The result does not depend on the order of the rows.
    progress : callable, optional
        Called as ``progress(done, total, text)``.

    Returns
    -------
    Importance

    Raises
    ------
    ValueError
        For an unknown feature, no repeat, or fewer than two queries with a value of the metric.

    Notes
    -----
    ``n_features * n_repeats`` predictions. Features that stand in for one another share their
    importance, down to nothing; group them with a mapping.

    References
    ----------
    breiman2001

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_queries(n_queries=50)
    >>> ranker = rw.FeatureRanker(0).fit(queries)
    >>> importance = rw.permutation_importance(ranker, queries, n_repeats=2)
    >>> importance.names[0], bool((importance.drops[1:] == 0).all())
    ('x0', True)
    """
    where = "permutation_importance"
    _validate.choice(where, "within", within, ["query", "all"])
    repeats = int(_validate.number(where, "n_repeats", n_repeats, low=1, integer=True))
    level = _validate.fraction(where, "confidence", confidence)
    measure = _metric_of(where, ranker, metric)
    lists = canonical(queries)
    groups = _feature_groups(where, features, lists)
    generator = np.random.default_rng(rng)
    number = np.repeat(np.arange(lists.n_queries), lists.sizes)
    shuffles = [_shuffle(number, within, generator) for _ in range(repeats)]
    base = _values(measure, lists, _scores(ranker, lists, lists.X))
    if (~np.isnan(base)).sum() < 2:
        raise ValueError(
            f"{where}: at least two queries must have a value of {measure}, "
            f"got {int((~np.isnan(base)).sum())} of {lists.n_queries}"
        )
    drops = np.empty((len(groups), repeats, lists.n_queries))
    for g, (name, columns) in enumerate(groups):
        for t, rows in enumerate(shuffles):
            X = _with_columns(lists.X, columns, rows)
            drops[g, t] = base - _values(measure, lists, _scores(ranker, lists, X))
            if progress is not None:
                progress(g * repeats + t + 1, len(groups) * repeats, f"importance of {name}")
    by_repeat = np.nanmean(drops, axis=2)
    mean = drops.mean(axis=1)
    total = by_repeat.mean(axis=1)
    order = np.argsort(-total, kind="stable")
    place = {query: i for i, query in enumerate(lists.ids.tolist())}
    back = np.array([place[query] for query in queries.ids.tolist()])
    return Importance(
        str(measure),
        float(np.nanmean(base)),
        tuple(groups[i][0] for i in order),
        tuple(groups[i][1] for i in order),
        total[order],
        tuple(t_interval(mean[i], confidence=level) for i in order),
        by_repeat.std(axis=1)[order],
        mean[order][:, back],
        within,
        repeats,
        int((~np.isnan(base)).sum()),
        level,
    )


def _shuffle(number: NDArray[np.int64], within: str, rng: np.random.Generator) -> NDArray[np.int64]:
    """Row numbers in random order, each inside its own query if asked."""
    keys = rng.random(len(number))
    return np.lexsort((keys, number)) if within == "query" else np.argsort(keys)


def _with_columns(X: Any, columns: Sequence[int], rows: Any) -> Any:
    """A copy with some columns replaced by their values in other rows."""
    if hasattr(X, "nnz"):
        import scipy.sparse as sp

        by_column = X.tocsc()
        parts = [
            by_column[:, [j]][rows] if j in columns else by_column[:, [j]]
            for j in range(X.shape[1])
        ]
        return sp.hstack(parts, format="csr")
    out = X.copy()
    out[:, columns] = X[rows][:, columns]
    return out


def _feature_groups(
    where: str, features: Any, queries: Queries
) -> list[tuple[str, tuple[int, ...]]]:
    if features is None:
        features = range(queries.n_features)
    if isinstance(features, Mapping):
        groups = [
            (str(name), tuple(_column_number(where, f, queries) for f in members))
            for name, members in features.items()
        ]
    else:
        columns = [_column_number(where, f, queries) for f in features]
        groups = [(_name(queries, j), (j,)) for j in columns]
    if not groups or not all(columns for _, columns in groups):
        raise ValueError(f"{where}: features must name at least one feature, got {features!r}")
    return groups


def _column_number(where: str, feature: object, queries: Queries) -> int:
    if isinstance(feature, str):
        names = queries.feature_names or ()
        if feature not in names:
            raise ValueError(
                f"{where}: a feature must be a column of the data, got {feature!r}; "
                + (f"known: {', '.join(names)}" if names else "its columns have no names")
            )
        return names.index(feature)
    high = queries.n_features - 1
    return int(_validate.number(where, "a feature", feature, low=0, high=high, integer=True))


def _name(queries: Queries, column: int) -> str:
    """A feature's name, or its number from 1, as files count."""
    names = queries.feature_names
    return f"feature {column + 1}" if names is None else names[column]


# --- what each feature adds to a score ---------------------------------------------------------


@dataclass(frozen=True)
class Contributions:
    """What each feature adds to each score.

    Attributes
    ----------
    values : float64 array of shape (n_docs, n_features)
        Rows in the order of the lists. Differences between two documents of a query say what
        pushed one above the other.
    method : {"linear", "steps", "shap", "occlusion"}
        How they were found; the first three sum to the score up to a constant per query.
    """

    values: Floats
    method: str

    @property
    def exact(self) -> bool:
        """Whether the contributions of two documents differ in sum as their scores do."""
        return self.method != "occlusion"


def contributions(ranker: Any, queries: Queries, *, method: str = "auto") -> Contributions:
    r"""What each feature adds to each score, against the middle of the document's own query.

    Parameters
    ----------
    ranker : fitted ranker
    queries : Queries
        Labels are not used.
    method : {"auto", "linear", "steps", "shap", "occlusion"}
        ``"linear"``: :math:`w_j (x_{ij} - \bar x_j)` with the mean over the query, for rankers with
        weights; ``"steps"``: RankBoost's step functions, less their mean over the query; ``"shap"``:
        exact Shapley values of trees, for :class:`~rankwise.TreeRanker`; ``"occlusion"``:
        :math:`s(x_i) - s(x_i \text{ with } x_{ij} = \text{the query's median})`, for any ranker.
        ``"auto"`` is the first that fits.

    Returns
    -------
    Contributions

    Raises
    ------
    ValueError
        If the ranker has not the form that ``method`` needs.

    Notes
    -----
    Occlusion takes one prediction of all documents per feature, and leaves out what features do
    together, so its sums are not differences of scores.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_queries(n_queries=20)
    >>> ranker = rw.LinearRanker("ranknet").fit(queries)
    >>> found = rw.contributions(ranker, queries)
    >>> s = ranker.predict(queries)
    >>> sums = found.values.sum(axis=1)
    >>> bool(abs((sums[0] - sums[1]) - (s[0] - s[1])) < 1e-12)
    True
    """
    where = "contributions"
    if method == "auto":
        method = next(m for m, (fits, _) in _METHODS.items() if fits(ranker))
    _validate.choice(where, "method", method, _METHODS)
    fits, compute = _METHODS[method]
    if not fits(ranker):
        raise ValueError(
            f"{where}: method {method!r} must fit the ranker, got {type(ranker).__name__}; "
            "method='occlusion' takes any"
        )
    return Contributions(compute(ranker, queries), method)


def _linear(ranker: Any, queries: Queries) -> Floats:
    X = _dense(queries.X)
    return np.asarray((X - _spread_means(X, queries)) * ranker.coef_)


def _steps(ranker: Any, queries: Queries) -> Floats:
    X = _dense(queries.X)
    out = np.zeros(X.shape)
    for j in np.unique(ranker.features_):
        thresholds, values, missing = ranker.steps(int(j))
        sums = np.append(values, missing)
        place = np.searchsorted(thresholds, X[:, j], side="left")
        place[np.isnan(X[:, j])] = len(values)
        out[:, j] = sums[place]
    return out - _spread_means(out, queries)


def _shap(ranker: Any, queries: Queries) -> Floats:
    values, _ = ranker.shap_values(queries)
    return np.asarray(values)


def _occlusion(ranker: Any, queries: Queries) -> Floats:
    X = _dense(queries.X)
    base = _scores(ranker, queries, X)
    out = np.empty(X.shape)
    number = np.repeat(np.arange(queries.n_queries), queries.sizes)
    for j in range(X.shape[1]):
        middle = np.array(
            [
                _median(X[a:b, j])
                for a, b in zip(queries.offsets[:-1], queries.offsets[1:], strict=True)
            ]
        )
        moved = X.copy()
        moved[:, j] = middle[number]
        out[:, j] = base - _scores(ranker, queries, moved)
    return out


def _median(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _dense(X: Any) -> Floats:
    return np.asarray(X.toarray() if hasattr(X, "nnz") else X, dtype=np.float64)


def _spread_means(columns: Floats, queries: Queries) -> Floats:
    """The mean of each column over each query, repeated for its rows."""
    filled = queries.sizes > 0
    means = np.add.reduceat(columns, queries.offsets[:-1][filled], axis=0)
    means /= queries.sizes[filled][:, None]
    return np.repeat(means, queries.sizes[filled], axis=0)


def _is(*names: str) -> Callable[[Any], bool]:
    def fits(ranker: Any) -> bool:
        import rankwise

        return isinstance(ranker, tuple(getattr(rankwise, name) for name in names))

    return fits


_METHODS: dict[str, tuple[Callable[[Any], bool], Callable[[Any, Queries], Floats]]] = {
    "linear": (_is("LinearRanker", "RankSVM", "AdaRank", "CoordinateAscent"), _linear),
    "steps": (_is("RankBoost"), _steps),
    "shap": (_is("TreeRanker"), _shap),
    "occlusion": (lambda r: True, _occlusion),
}


# --- errors ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Push:
    """What one feature did to a pair in the wrong order.

    Attributes
    ----------
    name : str
    column : int
        From 0.
    amount : float
        Its part of the score gap: above 0 it pushed the worse document up.
    better_value, worse_value : float
        The feature in the two documents.
    """

    name: str
    column: int
    amount: float
    better_value: float
    worse_value: float


@dataclass(frozen=True)
class WrongPair:
    """Two documents of a query in the wrong order.

    Attributes
    ----------
    better, worse : int
        Positions in the query, from 0; ``better`` has the larger label.
    better_doc, worse_doc : str
    better_label, worse_label : float
    better_rank, worse_rank : int
    gap : float
        Score of the worse document less that of the better one, above 0.
    cost : float
        What the metric gains when the two swap scores.
    pushes : tuple of Push
        The features with the largest parts of the gap, either way, largest first.
    rest : float
        The part of the gap that the other features (and what no single feature explains) make.
    """

    better: int
    worse: int
    better_doc: str
    worse_doc: str
    better_label: float
    worse_label: float
    better_rank: int
    worse_rank: int
    gap: float
    cost: float
    pushes: tuple[Push, ...]
    rest: float


@dataclass(frozen=True)
class QueryExplanation:
    """One query: its ranking, its pairs in the wrong order, and what pushed them.

    Attributes
    ----------
    query : str
    metric : str
    value : float
        NaN where the metric has none.
    docs : tuple of str
        Documents by rank, as are the columns that follow.
    ranks : int64 array of shape (n_docs,)
    labels, scores : float64 array of shape (n_docs,)
    n_wrong_by_doc : int64 array of shape (n_docs,)
        Pairs in the wrong order that the document is in.
    costs : float64 array of shape (n_docs,)
        Sum of what those pairs cost.
    n_pairs, n_wrong, n_tied : int
        Pairs of documents with different labels; those in the wrong order; those with one score.
    pairs : tuple of WrongPair
        The most expensive ones, most expensive first.
    method : str
        How the parts of the features were found, see :class:`Contributions`.
    """

    query: str
    metric: str
    value: float
    docs: tuple[str, ...]
    ranks: NDArray[np.int64]
    labels: Floats
    scores: Floats
    n_wrong_by_doc: NDArray[np.int64]
    costs: Floats
    n_pairs: int
    n_wrong: int
    n_tied: int
    pairs: tuple[WrongPair, ...]
    method: str

    def as_dict(self) -> dict[str, Any]:
        """Plain types, ready for JSON."""
        from dataclasses import asdict

        documents = [
            {
                "rank": int(rank),
                "doc": doc,
                "label": float(label),
                "score": float(score),
                "wrong_pairs": int(wrong),
                "cost": float(cost),
            }
            for rank, doc, label, score, wrong, cost in zip(
                self.ranks, self.docs, self.labels, self.scores, self.n_wrong_by_doc, self.costs,
                strict=True,
            )
        ]  # fmt: skip
        return {
            "query": self.query,
            "metric": self.metric,
            "value": self.value,
            "pairs": self.n_pairs,
            "wrong_pairs": self.n_wrong,
            "tied_pairs": self.n_tied,
            "method": self.method,
            "documents": documents,
            "mistakes": [asdict(pair) for pair in self.pairs],
        }

    def __str__(self) -> str:
        return "\n".join([self._head(), *self._documents(), *self._mistakes()])

    def _head(self) -> str:
        value = "no value" if np.isnan(self.value) else f"{self.value:.4f}"
        tied = f", {self.n_tied} tied" if self.n_tied else ""
        return (
            f"query {self.query}: {self.metric} {value}, {len(self.docs)} documents, "
            f"{self.n_wrong} of {self.n_pairs} pairs in the wrong order{tied}"
        )

    def _documents(self) -> list[str]:
        rows = [
            [f"{rank}", doc, _plain(label), f"{score:.4g}", f"{wrong}", f"{cost:.4f}"]
            for rank, doc, label, score, wrong, cost in zip(
                self.ranks, self.docs, self.labels, self.scores, self.n_wrong_by_doc, self.costs,
                strict=True,
            )
        ]  # fmt: skip
        head = ["rank", "document", "label", "score", "wrong pairs", "their cost"]
        return [_table(head, rows, left=(1,))]

    def _mistakes(self) -> list[str]:
        if not self.pairs:
            return []
        lines = [f"largest mistakes (cost: what {self.metric} gains when the two swap places)"]
        for p in self.pairs:
            lines.append(
                f"{p.worse_doc} (label {_plain(p.worse_label)}, rank {p.worse_rank}) above "
                f"{p.better_doc} (label {_plain(p.better_label)}, rank {p.better_rank}): "
                f"cost {p.cost:.4f}, score gap {p.gap:.4g}"
            )
            rows = [
                [
                    f"  {f.name}",
                    f"{f.amount:+.4g}",
                    f"{f.worse_value:.4g} against {f.better_value:.4g}",
                ]
                for f in p.pushes
            ]
            if abs(p.rest) > 1e-9 * max(p.gap, 1e-300):
                what = "all else" if self.method != "occlusion" else "all else, joint effects"
                rows.append([f"  {what}", f"{p.rest:+.4g}", ""])
            lines.append(_table([], rows, left=(0, 2)))
        return lines


def explain_query(
    ranker: Any,
    queries: Queries,
    query: Any,
    *,
    metric: str | Metric | None = None,
    n_pairs: int = 5,
    n_features: int = 5,
    method: str = "auto",
) -> QueryExplanation:
    """One query in detail: which pairs are wrong, what each costs, which features pushed them.

    A pair is wrong when the document with the smaller label has the larger score. Its cost is what
    the metric of the query gains when the two documents swap their scores.

    Parameters
    ----------
    ranker : fitted ranker, or anything with ``predict(X)``
    queries : Queries
    query : int or str
        Id of the query.
    metric : str or Metric, optional
        None is the ranker's own ``metric``.
    n_pairs : int
        Wrong pairs listed, the most expensive ones; 0 lists none.
    n_features : int
        Features listed for each, those with the largest parts of the score gap.
    method : {"auto", "linear", "steps", "shap", "occlusion"}
        See :func:`contributions`.

    Returns
    -------
    QueryExplanation

    Raises
    ------
    ValueError
        If there is no such query.

    Notes
    -----
    Every wrong pair is measured by the metric itself, so any metric will do: O(n) work for each of
    up to n (n - 1) / 2 pairs.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.Queries.from_arrays([[1.0, 0.0], [0.2, 0.1]], [0, 1], [7, 7])
    >>> ranker = rw.FeatureRanker(0).fit(lists)
    >>> print(rw.explain_query(ranker, lists, 7, metric="rr"))
    query 7: rr 0.5000, 2 documents, 1 of 1 pairs in the wrong order
    rank  document  label  score  wrong pairs  their cost
       1  1             0      1            1      0.5000
       2  2             1    0.2            1      0.5000
    largest mistakes (cost: what rr gains when the two swap places)
    1 (label 0, rank 1) above 2 (label 1, rank 2): cost 0.5000, score gap 0.8
      feature 1  +0.8  1 against 0.2
      feature 2    +0  0 against 0.1
    """
    where = "explain_query"
    shown = int(_validate.number(where, "n_pairs", n_pairs, low=0, integer=True))
    top = int(_validate.number(where, "n_features", n_features, low=1, integer=True))
    measure = _metric_of(where, ranker, metric)
    one = queries.take([_position(where, queries, query)])
    scores = _scores(ranker, one, one.X)
    value = float(_values(measure, one, scores)[0])
    docs = _doc_names(one)
    ranks = _ranks(scores)
    better, worse = np.nonzero(
        (one.y[:, None] > one.y[None, :]) & (scores[:, None] < scores[None, :])
    )
    costs = _swap_gains(measure, one, scores, value, better, worse)
    order = np.lexsort((ranks[better], ranks[worse], -costs))[:shown]
    parts = contributions(ranker, one, method=method)
    pairs = []
    for p in order:
        i, k = int(better[p]), int(worse[p])
        gap = float(scores[k] - scores[i])
        pushes, rest = _pushes(one, parts.values[k] - parts.values[i], i, k, top, gap)
        pairs.append(
            WrongPair(
                i, k, docs[i], docs[k], float(one.y[i]), float(one.y[k]),
                int(ranks[i]), int(ranks[k]), gap, float(costs[p]), pushes, rest,
            )
        )  # fmt: skip
    by_rank = np.argsort(ranks)
    n = one.n_docs
    wrong = np.bincount(better, minlength=n) + np.bincount(worse, minlength=n)
    lost = np.zeros(n)
    np.add.at(lost, better, costs)
    np.add.at(lost, worse, costs)
    different = one.y[:, None] > one.y[None, :]
    return QueryExplanation(
        str(one.ids[0]),
        str(measure),
        value,
        tuple(docs[i] for i in by_rank),
        ranks[by_rank],
        one.y[by_rank],
        scores[by_rank],
        wrong[by_rank],
        lost[by_rank],
        int(different.sum()),
        len(better),
        int((different & (scores[:, None] == scores[None, :])).sum()),
        tuple(pairs),
        parts.method,
    )


def _pushes(
    one: Queries, parts: Floats, i: int, k: int, top: int, gap: float
) -> tuple[tuple[Push, ...], float]:
    X = _dense(one.X[[i, k]])
    largest = np.argsort(-np.abs(parts), kind="stable")[:top]
    pushes = tuple(
        Push(_name(one, int(j)), int(j), float(parts[j]), float(X[0, j]), float(X[1, j]))
        for j in largest
    )
    return pushes, gap - float(parts[largest].sum())


def _swap_gains(
    measure: Metric,
    one: Queries,
    scores: Floats,
    value: float,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
) -> Floats:
    """What the metric gains when two documents swap their scores, for each pair."""
    n = one.n_docs
    gains = np.zeros(len(first))
    if np.isnan(value):
        return gains
    step = max(1, _CHUNK // n)
    for start in range(0, len(first), step):
        a, b = first[start : start + step], second[start : start + step]
        swapped = np.tile(scores, (len(a), 1))
        row = np.arange(len(a))
        swapped[row, a], swapped[row, b] = scores[b], scores[a]
        copies = Groups(np.arange(len(a) + 1, dtype=np.int64) * n, row)
        docs = None if one.docs is None else np.tile(one.docs, len(a))
        found = measure.per_query(np.tile(one.y, len(a)), swapped.ravel(), qid=copies, docs=docs)
        gains[start : start + step] = found - value
    return gains


@dataclass(frozen=True)
class WorstQueries:
    """Queries by the value of a metric, smallest first.

    Attributes
    ----------
    metric : str
    mean : float
    n_queries, n_skipped : int
        With and without a value.
    queries : tuple of str
        Ids of those listed; the columns that follow go with them.
    values : float64 array
    n_docs, n_relevant, n_pairs : int64 array
        Documents, those with a label above 0, and pairs with different labels.
    n_wrong : float64 array
        Pairs in the wrong order; a tied pair counts 1/2.
    """

    metric: str
    mean: float
    n_queries: int
    n_skipped: int
    queries: tuple[str, ...]
    values: Floats
    n_docs: NDArray[np.int64]
    n_relevant: NDArray[np.int64]
    n_pairs: NDArray[np.int64]
    n_wrong: Floats

    def as_dict(self) -> dict[str, Any]:
        """Plain types, ready for JSON."""
        return {
            "metric": self.metric,
            "mean": self.mean,
            "queries": self.n_queries,
            "skipped": self.n_skipped,
            "worst": [
                {
                    "query": q,
                    "value": float(v),
                    "documents": int(n),
                    "relevant": int(r),
                    "pairs": int(p),
                    "wrong_pairs": float(w),
                }
                for q, v, n, r, p, w in zip(
                    self.queries, self.values, self.n_docs, self.n_relevant, self.n_pairs,
                    self.n_wrong, strict=True,
                )
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        rows = [
            [q, f"{v:.4f}", f"{n}", f"{r}", f"{w:g} of {p}"]
            for q, v, n, r, p, w in zip(
                self.queries, self.values, self.n_docs, self.n_relevant, self.n_pairs, self.n_wrong,
                strict=True,
            )
        ]  # fmt: skip
        skipped = f" ({self.n_skipped} without a value)" if self.n_skipped else ""
        head = ["query", self.metric, "documents", "relevant", "wrong pairs"]
        return (
            f"{self.metric} is {self.mean:.4f} on {self.n_queries} queries{skipped}; the worst\n"
            + _table(head, rows)
        )


def worst_queries(
    ranker: Any, queries: Queries, *, metric: str | Metric | None = None, n: int = 10
) -> WorstQueries:
    """The queries a ranker serves worst.

    Parameters
    ----------
    ranker : fitted ranker, or anything with ``predict(X)``
    queries : Queries
    metric : str or Metric, optional
        None is the ranker's own ``metric``.
    n : int
        Queries listed; queries of one value are in the order of the data.

    Returns
    -------
    WorstQueries

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.make_queries(n_queries=30)
    >>> ranker = rw.LinearRanker().fit(lists)
    >>> worst = rw.worst_queries(ranker, lists, n=3)
    >>> len(worst.queries), bool((worst.values[:-1] <= worst.values[1:]).all())
    (3, True)
    """
    where = "worst_queries"
    count = int(_validate.number(where, "n", n, low=1, integer=True))
    measure = _metric_of(where, ranker, metric)
    scores = _scores(ranker, queries, queries.X)
    values = _values(measure, queries, scores)
    worst = np.argsort(values, kind="stable")[: min(count, int((~np.isnan(values)).sum()))]
    filled = np.repeat(np.arange(queries.n_queries), queries.sizes)
    relevant = np.bincount(filled[queries.y > 0], minlength=queries.n_queries)
    n_pairs, wrong = _count_pairs(queries, scores, worst)
    mean = measure.average(values)
    return WorstQueries(
        str(measure),
        mean.value,
        mean.n_queries,
        mean.n_skipped,
        tuple(str(q) for q in queries.ids[worst]),
        values[worst],
        queries.sizes[worst],
        relevant[worst],
        n_pairs,
        wrong,
    )


def _count_pairs(
    queries: Queries, scores: Floats, chosen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Floats]:
    """Pairs with different labels of each chosen query, and those in the wrong order."""
    pairs, wrong = np.zeros(len(chosen), np.int64), np.zeros(len(chosen))
    accuracy = parse_metric("pairwise_accuracy").per_query(queries.y, scores, qid=queries.groups)
    for place, q in enumerate(chosen):
        y = queries.y[queries.offsets[q] : queries.offsets[q + 1]]
        counts = np.unique(y[~np.isnan(y)], return_counts=True)[1]
        pairs[place] = (counts.sum() ** 2 - (counts**2).sum()) // 2
        if pairs[place]:
            # A count of halves; rounding takes away what the division left.
            wrong[place] = round(2 * pairs[place] * (1 - accuracy[q])) / 2
    return pairs, wrong


# --- dependence --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dependence:
    """The score as a function of one feature.

    Attributes
    ----------
    name : str
    column : int
        From 0.
    values : float64 array of shape (n_points,)
        Values of the feature, ascending.
    scores : float64 array of shape (n_points,)
        Mean score with every document given that value.
    low, high : float64 array of shape (n_points,)
        The 10th and 90th percentile over the documents.
    missing : float or None
        Mean score with the value missing, where the data have such documents.
    centred : bool
        Whether scores are relative to the mean score of the document's query.
    n_docs, n_queries : int
        What the means are over.
    """

    name: str
    column: int
    values: Floats
    scores: Floats
    low: Floats
    high: Floats
    missing: float | None
    centred: bool
    n_docs: int
    n_queries: int

    @property
    def range(self) -> float:
        """Largest mean score less the smallest."""
        return float(np.ptp(self.scores))

    def as_dict(self) -> dict[str, Any]:
        """Plain types, ready for JSON."""
        return {
            "feature": self.name,
            "column": self.column,
            "centred": self.centred,
            "documents": self.n_docs,
            "queries": self.n_queries,
            "missing": self.missing,
            "points": [
                {"value": float(v), "score": float(s), "low": float(a), "high": float(b)}
                for v, s, a, b in zip(self.values, self.scores, self.low, self.high, strict=True)
            ],
        }

    def __str__(self) -> str:
        rows = [
            [f"{v:.4g}", f"{s:+.4f}", f"[{a:+.4f}, {b:+.4f}]"]
            for v, s, a, b in zip(self.values, self.scores, self.low, self.high, strict=True)
        ]
        if self.missing is not None:
            rows.append(["missing", f"{self.missing:+.4f}", ""])
        against = " relative to the mean of the query" if self.centred else ""
        return (
            f"mean score{against} by {self.name}, over {self.n_docs} documents of "
            f"{self.n_queries} queries\n" + _table([self.name, "score", "80 % of documents"], rows)
        )


def partial_dependence(
    ranker: Any,
    queries: Queries,
    feature: int | str,
    *,
    values: Sequence[float] | None = None,
    n_points: int = 20,
    centred: bool = True,
    max_docs: int = 5_000,
    rng: Seed = 0,
) -> Dependence:
    r"""How the score depends on one feature, all others as they are.

    .. math:: f(v) = \frac{1}{n} \sum_i \bigl( s(x_i \text{ with } x_{ij} = v) - \bar s_{q(i)} \bigr)

    Parameters
    ----------
    ranker : fitted ranker, or anything with ``predict(X)``
    queries : Queries
        Labels are not used.
    feature : int or str
        Column number from 0, or name.
    values : sequence of float, optional
        Where to look. None takes ``n_points`` quantiles of the feature, each value once.
    n_points : int
    centred : bool
        Take off the mean score of each document's query, since scores mean something inside a
        query only: a document enters with where the value would put it among its competitors.
    max_docs : int
        Where there are more documents, whole queries are drawn until there are as many.
    rng : int, Generator or None
        Seed of that draw.

    Returns
    -------
    Dependence

    Raises
    ------
    ValueError
        For an unknown feature, one without any value, or a value that is not finite.

    Notes
    -----
    ``n_points`` predictions of the documents. The curve shows the ranker, not the world: it asks
    about documents that may not exist where features go together.

    References
    ----------
    friedman2001

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.make_queries(n_queries=30)
    >>> ranker = rw.LinearRanker().fit(lists)
    >>> found = rw.partial_dependence(ranker, lists, 0, values=[0.0, 1.0])
    >>> bool(abs(found.range - ranker.coef_[0]) < 1e-9)
    True
    """
    where = "partial_dependence"
    points = int(_validate.number(where, "n_points", n_points, low=2, integer=True))
    limit = int(_validate.number(where, "max_docs", max_docs, low=1, integer=True))
    column = _column_number(where, feature, queries)
    held = _dense(queries.X[:, [column]])[:, 0]
    grid = _grid(where, held, values, points, _name(queries, column))
    lists = _sample(queries, limit, np.random.default_rng(rng))
    X = _dense(lists.X)
    level = np.zeros(lists.n_docs)
    if centred:
        level = _spread_means(_scores(ranker, lists, X)[:, None], lists)[:, 0]

    def at(value: float) -> Floats:
        moved = X.copy()
        moved[:, column] = value
        return _scores(ranker, lists, moved) - level

    curves = np.array([at(value) for value in grid])
    low, high = np.quantile(curves, [0.1, 0.9], axis=1)
    return Dependence(
        _name(queries, column),
        column,
        grid,
        curves.mean(axis=1),
        low,
        high,
        float(at(np.nan).mean()) if np.isnan(held).any() else None,
        centred,
        lists.n_docs,
        lists.n_queries,
    )


def _grid(where: str, held: Floats, values: Any, points: int, name: str) -> Floats:
    if values is not None:
        grid = _validate.vector(where, "values", values)
        if len(grid) == 0 or not np.isfinite(grid).all():
            raise ValueError(f"{where}: values must be finite, at least one, got {values!r}")
        return np.unique(grid)
    known = held[~np.isnan(held)]
    if len(known) == 0:
        raise ValueError(f"{where}: {name} must have some value, got missing ones only")
    distinct = np.unique(known)
    if len(distinct) <= points:
        return distinct
    quantiles = np.linspace(0, 1, points)
    return np.unique(np.quantile(known, quantiles, method="closest_observation"))


def _sample(queries: Queries, max_docs: int, rng: np.random.Generator) -> Queries:
    """Whole queries drawn until they hold ``max_docs`` documents; at least one."""
    if queries.n_docs <= max_docs:
        return queries
    drawn = rng.permutation(queries.n_queries)
    count = max(1, int(np.searchsorted(np.cumsum(queries.sizes[drawn]), max_docs, side="right")))
    return queries.take(np.sort(drawn[:count]))


# --- shared ------------------------------------------------------------------------------------


def _scores(ranker: Any, queries: Queries, X: Any) -> Floats:
    from rankwise._estimator import Ranker, _predict

    if isinstance(ranker, Ranker):
        return np.asarray(ranker.predict(queries.with_features(X)), dtype=np.float64)
    return np.asarray(_predict(ranker, X, queries.qid), dtype=np.float64)


def _values(measure: Metric, queries: Queries, scores: Floats) -> Floats:
    return measure.per_query(queries.y, scores, qid=queries.groups, docs=queries.docs)


def _metric_of(where: str, ranker: Any, metric: str | Metric | None) -> Metric:
    own = getattr(ranker, "metric", None)
    if metric is None and not isinstance(own, str | Metric):
        raise ValueError(
            f"{where}: metric must be given, since {type(ranker).__name__} has none of its own"
        )
    return parse_metric(own if metric is None else metric)  # type: ignore[arg-type]


def _position(where: str, queries: Queries, query: Any) -> int:
    ids = queries.ids.astype(str)
    found = np.flatnonzero(ids == str(query))
    if len(found) == 0:
        raise ValueError(
            f"{where}: query must be one of the {len(ids)} in the data, got {query!r}; "
            f"among them {', '.join(ids[:3])}"
        )
    return int(found[0])


def _doc_names(one: Queries) -> list[str]:
    """Ids of the documents, or their numbers in the query from 1."""
    if one.docs is None:
        return [str(i + 1) for i in range(one.n_docs)]
    return [str(d) or str(i + 1) for i, d in enumerate(one.docs)]


def _ranks(scores: Floats) -> NDArray[np.int64]:
    ranks = np.empty(len(scores), np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


def _plain(label: float) -> str:
    return "-" if np.isnan(label) else f"{label:g}"


def _table(head: list[str], rows: list[list[str]], left: Sequence[int] = (0,)) -> str:
    """Columns two spaces apart, those in ``left`` flush left and the others right."""
    lines = [head, *rows] if head else rows
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i in left else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
