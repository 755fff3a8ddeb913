r"""The mistakes of a ranker: which queries, which pairs of documents, which features pushed them.

A pair of documents is in the wrong order when the one with the smaller label scores higher. What it
costs is what the metric of the query gains when the two swap scores, for any metric; what pushed it is
the difference of the features' contributions to the two scores. :func:`worst_queries` says where to
look, :func:`explain_query` looks, :func:`contributions` is what it looks with.

>>> import rankwise as rw
>>> train, test = rw.make_queries(n_queries=200).split([0.5, 0.5])
>>> ranker = rw.LinearRanker("ranknet", metric="ndcg@5").fit(train)
>>> worst = rw.worst_queries(ranker, test, n=1)
>>> pair = rw.explain_query(ranker, test, worst.queries[0]).pairs[0]
>>> pair.worse_rank < pair.better_rank, pair.worse_label < pair.better_label, pair.cost > 0
(True, True, True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise import _validate
from rankwise._insight import (
    Floats,
    dense,
    feature_name,
    label_text,
    metric_of,
    query_means,
    scores_of,
    table_text,
    values_of,
)
from rankwise.data import Groups, Queries
from rankwise.metrics import Metric, parse_metric

# Documents measured in one call, which bounds the memory.
_CHUNK = 1_000_000


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
    X = dense(queries.X)
    return np.asarray((X - query_means(X, queries)) * ranker.coef_)


def _steps(ranker: Any, queries: Queries) -> Floats:
    X = dense(queries.X)
    out = np.zeros(X.shape)
    for j in np.unique(ranker.features_):
        thresholds, values, missing = ranker.steps(int(j))
        sums = np.append(values, missing)
        place = np.searchsorted(thresholds, X[:, j], side="left")
        place[np.isnan(X[:, j])] = len(values)
        out[:, j] = sums[place]
    return out - query_means(out, queries)


def _shap(ranker: Any, queries: Queries) -> Floats:
    values, _ = ranker.shap_values(queries)
    return np.asarray(values)


def _occlusion(ranker: Any, queries: Queries) -> Floats:
    X = dense(queries.X)
    base = scores_of(ranker, queries, X)
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
        out[:, j] = base - scores_of(ranker, queries, moved)
    return out


def _median(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")


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
            [f"{rank}", doc, label_text(label), f"{score:.4g}", f"{wrong}", f"{cost:.4f}"]
            for rank, doc, label, score, wrong, cost in zip(
                self.ranks, self.docs, self.labels, self.scores, self.n_wrong_by_doc, self.costs,
                strict=True,
            )
        ]  # fmt: skip
        head = ["rank", "document", "label", "score", "wrong pairs", "their cost"]
        return [table_text(head, rows, left=(1,))]

    def _mistakes(self) -> list[str]:
        if not self.pairs:
            return []
        lines = [f"largest mistakes (cost: what {self.metric} gains when the two swap places)"]
        for p in self.pairs:
            lines.append(
                f"{p.worse_doc} (label {label_text(p.worse_label)}, rank {p.worse_rank}) above "
                f"{p.better_doc} (label {label_text(p.better_label)}, rank {p.better_rank}): "
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
            lines.append(table_text([], rows, left=(0, 2)))
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
    measure = metric_of(where, ranker, metric)
    one = queries.take([_position(where, queries, query)])
    scores = scores_of(ranker, one, one.X)
    value = float(values_of(measure, one, scores)[0])
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
    X = dense(one.X[[i, k]])
    largest = np.argsort(-np.abs(parts), kind="stable")[:top]
    pushes = tuple(
        Push(feature_name(one, int(j)), int(j), float(parts[j]), float(X[0, j]), float(X[1, j]))
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
            + table_text(head, rows)
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
    measure = metric_of(where, ranker, metric)
    scores = scores_of(ranker, queries, queries.X)
    values = values_of(measure, queries, scores)
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
