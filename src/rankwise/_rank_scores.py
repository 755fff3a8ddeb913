"""Rank lists with gaps as numbers that compare: standardised places, features, fixed values.

Rows are grouped by query; ``offsets`` says where each begins. What :mod:`rankwise._shared_factor`
and :mod:`rankwise._common_permutation` work on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Offsets = NDArray[np.int64]


@dataclass(frozen=True)
class Evidence:
    """Lists and features of some queries, prepared.

    Attributes
    ----------
    offsets : int64 array of shape (n_queries + 1,)
    places : float64 array of shape (n_items, n_lists)
        Place of an item in a list from just above 0 (last) to just below 1 (first); NaN unknown.
    Z : float64 array of shape (n_items, n_lists)
        Places with mean 0 and mean square 1 over the entries of a query; 0 where unknown.
    seen : float64 array of shape (n_items, n_lists)
        1 where an entry is known, else 0.
    """

    offsets: Offsets
    places: Floats
    Z: Floats
    seen: Floats

    @property
    def n_items(self) -> int:
        return len(self.Z)

    @property
    def sizes(self) -> Offsets:
        return np.diff(self.offsets)

    @property
    def query(self) -> Offsets:
        """The number of each item's query."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def prepare(R: Floats, offsets: Offsets, *, missing: str, scores: str) -> Evidence:
    """Evidence from score columns, NaN where a list does not hold an item.

    With ``missing="last"`` the items of a query that some list holds are tied below the entries of
    a list that does not hold them; a list without entries in the query stays unknown there.
    """
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    values = R.copy()
    known = ~np.isnan(R)
    if missing == "last":
        listed = np.asarray(known.any(axis=1))
        used = _sums(known, offsets)[query] > 0
        behind = ~known & used & listed[:, None]
        # Any value below the list's own will do for places; for raw values, its smallest.
        low = np.where(known, R, np.inf)
        filled = np.flatnonzero(np.diff(offsets) > 0)
        lowest = np.repeat(
            np.minimum.reduceat(low, offsets[:-1][filled]), np.diff(offsets)[filled], axis=0
        )
        values = np.where(behind, lowest if scores == "raw" else -np.inf, R)
    places = np.column_stack([_places(column, query) for column in values.T])
    Z = places if scores == "rank" else values
    Z, seen = standardised(Z, offsets)
    return Evidence(offsets, np.where(seen > 0, places, np.nan), Z, seen)


def _places(column: Floats, query: Offsets) -> Floats:
    """(mid-rank - 1/2) / entries of each known value in its query, the smallest first."""
    out = np.full(len(column), np.nan)
    rows = np.flatnonzero(~np.isnan(column))
    if len(rows) == 0:
        return out
    rows = rows[np.lexsort((column[rows], query[rows]))]
    q, v = query[rows], column[rows]
    new = np.append(True, (q[1:] != q[:-1]) | (v[1:] != v[:-1]))
    block = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(rows))
    first = np.searchsorted(q, q, side="left")
    count = np.searchsorted(q, q, side="right") - first
    out[rows] = ((starts + ends)[block] / 2 - first) / count
    return out


def standardised(values: Floats, offsets: Offsets) -> tuple[Floats, Floats]:
    """Values with mean 0 and mean square 1 over the known entries of each query and list.

    Returns them with 0 where unknown, and where they are known; a list without spread in a query
    says nothing about its order.
    """
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    count = np.maximum(_sums(known, offsets), 1)
    centred = np.where(known, filled - (_sums(filled, offsets) / count)[query], 0.0)
    size = np.sqrt(_sums(centred**2, offsets) / count)
    # Differences of rounding are no spread.
    scale = np.sqrt(_sums(filled**2, offsets) / count)
    flat = size <= 1e-12 * scale
    size[flat] = 1.0
    seen = known & ~flat[query]
    return np.where(seen, centred / size[query], 0.0), seen.astype(np.float64)


def _sums(values: NDArray[np.generic], offsets: Offsets) -> Floats:
    """Column sums of each query; 0 for an empty one."""
    filled = np.flatnonzero(np.diff(offsets) > 0)
    out = np.zeros((len(offsets) - 1, *values.shape[1:]))
    if len(filled):
        out[filled] = np.add.reduceat(values.astype(np.float64), offsets[:-1][filled], axis=0)
    return out


def query_means(values: Floats, offsets: Offsets) -> Floats:
    """The mean of each item's query, item by item."""
    sizes = np.diff(offsets)
    means = _sums(values, offsets) / np.maximum(sizes, 1).reshape(-1, *[1] * (values.ndim - 1))
    return np.repeat(means, sizes, axis=0)


def uniform_values(offsets: Offsets) -> Floats:
    """For each query, values of places 1, 2, ...: falling by even steps, mean 0, mean square 1."""
    sizes = np.diff(offsets)
    n = np.repeat(sizes, sizes).astype(np.float64)
    k = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    raw = (n - 1) / 2 - k
    return np.asarray(raw / np.sqrt(np.maximum((n**2 - 1) / 12, 1e-300)) * (n > 1))


def ranked(h: Floats, offsets: Offsets, ties: Floats | None = None) -> NDArray[np.int64]:
    """Items of each query by falling ``h``, then by falling ``ties``, then by row."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys = (-h, query) if ties is None else (-ties, -h, query)
    return np.lexsort(keys)


def rearranged(values: Floats, h: Floats, offsets: Offsets, *, even_ties: bool = False) -> Floats:
    """The fixed values of each query in the order of ``h``; tied items share theirs on request."""
    order = ranked(h, offsets)
    out = np.empty(len(values))
    if even_ties:
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        hs, qs = h[order], query[order]
        block = np.cumsum(np.append(True, (hs[1:] != hs[:-1]) | (qs[1:] != qs[:-1]))) - 1
        means = np.bincount(block, values) / np.bincount(block)
        values = means[block]
    out[order] = values
    return out


def borda_means(evidence: Evidence) -> Floats:
    """The mean place of each item over the lists that hold it; 1/2 for an item in no list."""
    count = evidence.seen.sum(axis=1)
    total = np.where(evidence.seen > 0, evidence.places, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), 0.5)


def agreement_means(evidence: Evidence, start: Floats, rounds: int = 20) -> Floats:
    """Mean places weighted by how well each list agrees with the mean, found by iteration."""
    values = uniform_values(evidence.offsets)
    places = np.where(evidence.seen > 0, evidence.places - 0.5, 0.0)
    entries = np.maximum(evidence.seen.sum(axis=0), 1)
    h, last = start, np.zeros(0)
    for _ in range(rounds):
        t = rearranged(values, h, evidence.offsets, even_ties=True)
        weight = np.maximum(evidence.Z.T @ t / entries, 0.0)
        if not weight.any() or np.array_equal(t, last):
            break
        last = t
        mass = evidence.seen @ weight
        h = np.where(mass > 0, places @ weight / np.maximum(mass, 1e-300), 0.0)
    return h
