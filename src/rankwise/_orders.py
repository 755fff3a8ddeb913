"""Swap changes and pair weights of the user's own functions, and of metrics without a closed form.

A function of a ranking says nothing about ties, so its expectation is taken here: over every
order of the tied documents where these are few, over a fixed seeded draw of orders otherwise. A
function of two labels and two ranks is averaged over the places of the two documents, exactly.

Tied documents with equal labels are interchangeable. They form one class, and classes, not rows,
carry the results: so these do not depend on how rows are stored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._metric import SPECS, Floats, Metric

BRUTE_FORCE_LIMIT = 200
"""Longest list of which every swap is done and measured."""

N_ORDERS = 64
"""Orders of tied documents over which a function of a ranking is averaged."""

ORDER_FREE = {
    "judged", "unjudged", "rbp_residual", "utility",
    "retrieved", "relevant", "relevant_retrieved", "nonrelevant_retrieved",
}  # fmt: skip
"""Metrics that no swap of two judged documents changes."""

ChangeOfPlaces = Callable[[Floats], Floats]
"""Labels in ranked order -> matrix of changes by places."""


# --- functions of a ranking, done swap by swap ---------------------------------------------------


def changes_by_swapping(where: str, metric: Any) -> ChangeOfPlaces:
    """Every swap of two differently labelled documents, done and measured."""
    measure = _measure_library(metric) if isinstance(metric, Metric) else _measure_user(metric)

    def changes(labels: Floats) -> Floats:
        n = len(labels)
        if n > BRUTE_FORCE_LIMIT:
            raise ValueError(
                f"{where}: {_name(metric)} has no swap changes of its own, so each swap is done and "
                f"measured, in lists of at most {BRUTE_FORCE_LIMIT} documents, got one of {n}; give "
                "it a method swap_deltas(y_true, y_score), or train on a metric that has them"
            )
        upper, lower = np.nonzero(np.triu(_differ(labels)))
        lists = np.tile(labels, (len(upper) + 1, 1))
        rows = np.arange(len(upper))
        lists[rows, upper], lists[rows, lower] = labels[lower], labels[upper]
        values = measure(lists)
        out = np.zeros((n, n))
        out[upper, lower] = out[lower, upper] = np.abs(values[:-1] - values[-1])
        return out

    return changes


def _measure_library(metric: Metric) -> Callable[[Floats], Floats]:
    plain = metric(empty=0.0) if "empty" in SPECS[metric.name].defaults else metric

    def measure(lists: Floats) -> Floats:
        count, n = lists.shape
        scores = np.tile(-np.arange(n, dtype=np.float64), count)
        return plain.per_query(lists.ravel(), scores, qid=np.repeat(np.arange(count), n))

    return measure


def _measure_user(function: Callable[..., Any]) -> Callable[[Floats], Floats]:
    def measure(lists: Floats) -> Floats:
        scores = -np.arange(lists.shape[1], dtype=np.float64)
        return np.array([_number(function, row, scores) for row in lists])

    return measure


def _number(function: Any, labels: Floats, scores: Floats) -> float:
    value = np.asarray(function(labels, scores), dtype=np.float64)
    if value.size != 1 or not np.isfinite(value).all():
        raise ValueError(
            f"LambdaRank: metric {_name(function)} must return one finite number for the labels and "
            f"scores of a query, got {value.tolist()!r}"
        )
    return float(value.reshape(-1)[0])


def changes_by_method(metric: Any) -> ChangeOfPlaces:
    """The user's own ``swap_deltas(y_true, y_score)``, called with distinct scores, best first."""

    def changes(labels: Floats) -> Floats:
        n = len(labels)
        got = np.asarray(metric.swap_deltas(labels, -np.arange(n, dtype=np.float64)), dtype=float)
        if got.shape != (n, n) or not np.isfinite(got).all():
            raise ValueError(
                f"LambdaRank: swap_deltas of {_name(metric)} must return a finite matrix of shape "
                f"({n}, {n}), one row and column per document, got shape {got.shape}"
            )
        return np.where(_differ(labels), np.abs(got), 0.0)

    return changes


def _differ(labels: Floats) -> NDArray[np.bool_]:
    """Pairs with different labels; NaN is not judged and forms no pair."""
    return np.less.outer(labels, labels) | np.greater.outer(labels, labels)


def _name(metric: Any) -> str:
    return getattr(metric, "__name__", None) or str(metric)


# --- the expectation over orders of tied documents -----------------------------------------------


@dataclass(frozen=True)
class Ranked:
    """One query by descending score, equal scores by descending label, unjudged last.

    ``block`` numbers the tied blocks by place, ``kind`` the classes of equal score and label.
    """

    order: NDArray[np.int64]
    labels: Floats
    block: NDArray[np.int64]
    kind: NDArray[np.int64]


def ranked(labels: Floats, scores: Floats, stable: bool) -> Ranked:
    """One query's documents in ranked order, with their tied blocks and classes."""
    if stable:
        order = np.argsort(-scores, kind="stable")
        each = np.arange(len(order))
        return Ranked(order, labels[order], each, each)
    known = np.where(np.isnan(labels), -1.0, labels)
    order = np.lexsort((-known, -scores))
    s, y = scores[order], known[order]
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = s[1:] != s[:-1]
    kinds = starts.copy()
    kinds[1:] |= y[1:] != y[:-1]
    return Ranked(order, labels[order], np.cumsum(starts) - 1, np.cumsum(kinds) - 1)


def expected_changes(
    change_of: ChangeOfPlaces, labels: Floats, scores: Floats, reach: int | None, stable: bool
) -> Floats:
    """E |change| of every pair of one query, a matrix in row order."""
    query = ranked(labels, scores, stable)
    n, n_kinds = len(labels), int(query.kind[-1]) + 1
    by_kind, n_orders = np.zeros((n_kinds, n_kinds)), 0
    size = np.bincount(query.kind)
    for places in _orders(query):
        change = change_of(query.labels[places])
        if reach is not None:
            change[reach:, reach:] = 0
        kind = query.kind[places]
        # Sums over the places of two classes: rows, then columns.
        rows = np.zeros((n_kinds, n))
        np.add.at(rows, kind, change)
        total = np.zeros((n_kinds, n_kinds))
        np.add.at(total.T, kind, rows.T)
        by_kind += total / np.outer(size, size)
        n_orders += 1
    kind = np.empty(n, dtype=np.int64)
    kind[query.order] = query.kind
    return np.asarray(by_kind[np.ix_(kind, kind)] / n_orders)


def _orders(query: Ranked) -> Iterator[NDArray[np.int64]]:
    """Orders of the tied documents, each as likely as the others: all, or a fixed draw."""
    blocks = np.split(np.arange(len(query.block)), np.flatnonzero(np.diff(query.block)) + 1)
    n_orders = math.prod(_n_arrangements(query.kind[block]) for block in blocks)
    if n_orders <= N_ORDERS:
        choices = [list(_arrangements(query.kind[block], block)) for block in blocks]
        for parts in itertools.product(*choices):
            yield np.concatenate(parts)
        return
    rng = np.random.default_rng(0)
    for _ in range(N_ORDERS):
        yield np.concatenate([rng.permutation(block) for block in blocks])


def _n_arrangements(kind: NDArray[np.int64]) -> int:
    counts = np.unique(kind, return_counts=True)[1]
    return math.factorial(len(kind)) // math.prod(math.factorial(int(c)) for c in counts)


def _arrangements(kind: NDArray[np.int64], members: NDArray[np.int64]) -> Iterator[Any]:
    """Orders of the members of a block that differ in the classes by place."""
    if len(members) == 0:
        yield members
        return
    for first in np.unique(kind, return_index=True)[1]:
        rest = np.delete(np.arange(len(members)), first)
        for tail in _arrangements(kind[rest], members[rest]):
            yield np.concatenate([members[first : first + 1], tail])


# --- functions of two labels and two ranks -------------------------------------------------------


def expected_forces(
    function: Callable[..., Any], labels: Floats, scores: Floats, reach: int | None, stable: bool
) -> Floats:
    """The mean of ``function`` over the places of two documents, a matrix [winner, loser]."""
    query = ranked(labels, scores, stable)
    n = len(labels)
    rank = np.arange(1, n + 1)
    size_of_block = np.bincount(query.block)
    first_of_kind = np.unique(query.kind, return_index=True)[1]
    out = np.zeros((n, n))
    for first in first_of_kind:
        y = query.labels[first]
        losers = np.flatnonzero(query.labels < y)
        # One loser of each class stands for it, at all the places of its block.
        losers = losers[np.unique(query.kind[losers], return_index=True)[1]]
        if len(losers) == 0:
            continue
        own = rank[query.block == query.block[first]]
        theirs = np.concatenate([rank[query.block == query.block[j]] for j in losers])
        loser = np.repeat(np.arange(len(losers)), size_of_block[query.block[losers]])
        i, j = (a.ravel() for a in np.meshgrid(own, theirs, indexing="ij"))
        which = np.tile(loser, len(own))
        apart = i != j
        i, j, which = i[apart], j[apart], which[apart]
        weights = _weights(function, np.full(len(i), y), query.labels[losers][which], i, j)
        if reach is not None:
            weights = np.where(np.minimum(i, j) > reach, 0.0, weights)
        mean = np.bincount(which, weights, len(losers)) / np.bincount(which, minlength=len(losers))
        mean_of_kind = np.zeros(int(query.kind[-1]) + 1)
        mean_of_kind[query.kind[losers]] = mean
        out[query.kind == query.kind[first]] = mean_of_kind[query.kind]
    unsorted = np.empty_like(out)
    unsorted[np.ix_(query.order, query.order)] = out
    return unsorted


def _weights(function: Callable[..., Any], *arguments: Any) -> Floats:
    got = np.asarray(function(*arguments), dtype=np.float64)
    if got.shape != arguments[0].shape or not np.isfinite(got).all() or (got < 0).any():
        raise ValueError(
            "LambdaRank: force must return one finite weight of at least 0 for each pair, given "
            "arrays of the winners' and losers' labels and of their ranks; "
            f"got shape {got.shape} for {arguments[0].shape[0]} pairs"
        )
    return got


# --- pair forces from matrices of weights --------------------------------------------------------

Weights = Callable[[Floats, Floats, int | None, bool], Floats]
"""Labels, scores, reach, stable -> matrix of weights [winner, loser] of one query."""


def weights_of(where: str, metric: Any, force: Callable[..., Any] | None) -> Weights:
    """Pair weights of a query: those of the user's force, or the changes of the metric."""
    if force is not None:
        return lambda *query: expected_forces(force, *query)
    own = not isinstance(metric, Metric) and hasattr(metric, "swap_deltas")
    change_of = changes_by_method(metric) if own else changes_by_swapping(where, metric)
    return lambda *query: expected_changes(change_of, *query)


class MatrixForces:
    """Lambda gradients from one matrix of pair weights per query; stands in for the native kernel."""

    def __init__(
        self,
        weights_of_query: Weights,
        labels: Floats,
        offsets: NDArray[np.int64],
        document_weights: Floats | None,
        *,
        sigma: float,
        truncation: int | None,
        stable: bool,
        by_gap: bool,
        by_query: bool,
    ) -> None:
        self.weights_of_query, self.labels, self.offsets = weights_of_query, labels, offsets
        self.document_weights, self.sigma, self.reach = document_weights, sigma, truncation
        self.stable, self.by_gap, self.by_query = stable, by_gap, by_query

    def gradients(self, scores: Floats, n_threads: int = 0) -> tuple[Floats, Floats]:
        gradient, curvature = np.zeros(len(self.labels)), np.zeros(len(self.labels))
        for rows, weights, margin in self._queries(scores):
            rho = np.exp(-np.logaddexp(0.0, margin))
            force = self.sigma * weights * rho
            bend = self.sigma * force * (1 - rho)
            total = 2 * force.sum()
            scale = np.log2(1 + total) / total if self.by_query and total > 0 else 1.0
            gradient[rows] = scale * (force.sum(axis=0) - force.sum(axis=1))
            curvature[rows] = scale * (bend.sum(axis=0) + bend.sum(axis=1))
        return gradient, curvature

    def values(self, scores: Floats, n_threads: int = 0) -> Floats:
        out = np.zeros(len(self.offsets) - 1)
        for rows, weights, margin in self._queries(scores):
            query = np.searchsorted(self.offsets, rows.start, side="right") - 1
            out[query] = (weights * np.logaddexp(0.0, -margin)).sum()
        return out

    def _queries(self, scores: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """Rows, weights [winner, loser] and margins of each query with a pair."""
        if len(scores) != len(self.labels) or not np.isfinite(scores).all():
            raise ValueError(
                "LambdaRank: s must hold one finite score per document, "
                f"got {len(scores)} for {len(self.labels)} documents"
            )
        for start, end in itertools.pairwise(self.offsets):
            y, s = self.labels[start:end], scores[start:end]
            wins = np.greater.outer(y, y)
            if not wins.any():
                continue
            weights = np.where(wins, self.weights_of_query(y, s, self.reach, self.stable), 0.0)
            gap = np.subtract.outer(s, s)
            scored = s[~np.isnan(y)]
            if self.by_gap and scored.min() < scored.max():
                weights = weights / (0.01 + np.abs(gap))
            if self.document_weights is not None:
                weights = weights * self.document_weights[start:end, None]
            yield slice(start, end), weights, self.sigma * gap
