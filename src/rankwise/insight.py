r"""What a ranker does with its features: what it relies on, and how scores move with one.

* :func:`permutation_importance`: how much a metric falls when a feature is shuffled.
* :func:`partial_dependence`: the score as a function of one feature.

Its mistakes, query by query and pair by pair, are in :mod:`rankwise.mistakes`. All take a fitted ranker
(anything with ``predict``) and judged lists, and return frozen values that print as a table and turn
into plain types with ``as_dict()``; ``rankwise explain`` shows them on the command line.

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
from rankwise._insight import (
    Floats,
    Seed,
    column_number,
    dense,
    feature_name,
    metric_of,
    query_means,
    scores_of,
    table_text,
    values_of,
)
from rankwise.data import Queries, canonical
from rankwise.metrics import Metric
from rankwise.stats import Interval, t_interval

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
            f"{where} ({times}) lowers it by\n" + table_text(head, rows)
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
    measure = metric_of(where, ranker, metric)
    lists = canonical(queries)
    groups = _feature_groups(where, features, lists)
    generator = np.random.default_rng(rng)
    number = np.repeat(np.arange(lists.n_queries), lists.sizes)
    shuffles = [_shuffle(number, within, generator) for _ in range(repeats)]
    base = values_of(measure, lists, scores_of(ranker, lists, lists.X))
    if (~np.isnan(base)).sum() < 2:
        raise ValueError(
            f"{where}: at least two queries must have a value of {measure}, "
            f"got {int((~np.isnan(base)).sum())} of {lists.n_queries}"
        )
    drops = np.empty((len(groups), repeats, lists.n_queries))
    for g, (name, columns) in enumerate(groups):
        for t, rows in enumerate(shuffles):
            X = _with_columns(lists.X, columns, rows)
            drops[g, t] = base - values_of(measure, lists, scores_of(ranker, lists, X))
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
            (str(name), tuple(column_number(where, f, queries) for f in members))
            for name, members in features.items()
        ]
    else:
        columns = [column_number(where, f, queries) for f in features]
        groups = [(feature_name(queries, j), (j,)) for j in columns]
    if not groups or not all(columns for _, columns in groups):
        raise ValueError(f"{where}: features must name at least one feature, got {features!r}")
    return groups


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
            f"{self.n_queries} queries\n"
            + table_text([self.name, "score", "80 % of documents"], rows)
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
    column = column_number(where, feature, queries)
    held = dense(queries.X[:, [column]])[:, 0]
    grid = _grid(where, held, values, points, feature_name(queries, column))
    lists = _sample(queries, limit, np.random.default_rng(rng))
    X = dense(lists.X)
    level = np.zeros(lists.n_docs)
    if centred:
        level = query_means(scores_of(ranker, lists, X)[:, None], lists)[:, 0]

    def at(value: float) -> Floats:
        moved = X.copy()
        moved[:, column] = value
        return scores_of(ranker, lists, moved) - level

    curves = np.array([at(value) for value in grid])
    low, high = np.quantile(curves, [0.1, 0.9], axis=1)
    return Dependence(
        feature_name(queries, column),
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
