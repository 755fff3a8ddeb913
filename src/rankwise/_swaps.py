"""What a metric changes when two documents of a ranking swap places.

Each metric with a cheap swap change has one entry in :data:`FORMS`, a function of its options
and the labels that gives the columns the native kernel needs. The four kinds of change, and
their expectation over the orders of tied documents, are defined in ``native/lambdas_changes.hpp``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _validate
from rankwise._metric import Floats, Metric
from rankwise.data import query_of

Offsets = NDArray[np.int64]


@dataclass(frozen=True)
class SwapForm:
    """Columns of the native kernel for one metric on given lists.

    Attributes
    ----------
    kind : {"discount", "ap", "first", "cascade"}
        How a swap's change follows from them.
    gain : float64 array of shape (n_docs,)
        By document; NaN is unjudged.
    value : float64 array
        By place, never rising: one table for all queries, or (``per_document``) one entry per
        document, those of a query by its places.
    scale : float64 array of shape (n_queries,)
        Factor of each query, 0 for one whose order changes nothing.
    places : bool
        Whether unjudged documents hold places.
    """

    kind: str
    gain: Floats
    value: Floats
    scale: Floats
    per_document: bool = False
    places: bool = True


def swap_form(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    """The metric's swap changes as columns; the metric is one of :data:`FORMS`."""
    return FORMS[metric.name](metric, labels, offsets)


def kernel(
    form: SwapForm,
    offsets: Offsets,
    weight: Floats | None = None,
    *,
    sigma: float = 1.0,
    truncation: int | None = None,
    stable: bool = False,
    by_gap: bool = False,
    by_query: bool = False,
    pairs_per_doc: int | None = None,
    seed: int = 0,
    weights: str = "change",
    distance: Floats | None = None,
    constant: float = 1.0,
) -> Any:
    """The native kernel, a function of the scores."""
    if not form.places and np.isnan(form.gain).any():
        raise ValueError(
            "LambdaRank: auc counts places among judged documents only; leave out the documents "
            f"without a label, of which there are {int(np.isnan(form.gain).sum())}"
        )
    return _core.LambdaKernel(
        form.kind,
        np.ascontiguousarray(form.gain, dtype=np.float64),
        offsets,
        weight,
        np.ascontiguousarray(form.value, dtype=np.float64),
        np.ascontiguousarray(form.scale, dtype=np.float64),
        form.per_document,
        weights,
        np.empty(0) if distance is None else np.ascontiguousarray(distance, dtype=np.float64),
        constant,
        sigma,
        truncation or 0,
        stable,
        by_gap,
        by_query,
        pairs_per_doc or 0,
        seed,
    )


def swap_matrix(metric: Metric, y_true: ArrayLike, y_score: ArrayLike, ties: str) -> Floats:
    """What :meth:`Metric.swap_deltas` returns."""
    from rankwise import _orders

    where = f"{metric}.swap_deltas"
    labels = _validate.labels(where, y_true)
    scores = _validate.vector(where, "y_score", y_score)
    n = _validate.same_length(where, y_true=labels, y_score=scores)
    stable = _validate.choice(where, "ties", ties, ("average", "stable")) == "stable"
    if metric.name in FORMS:
        offsets = np.array([0, n])
        changes = kernel(swap_form(metric, labels, offsets), offsets, stable=stable).changes(scores)
        return np.asarray(changes)
    change_of = _orders.changes_by_swapping(where, metric)
    return _orders.expected_changes(change_of, labels, scores, None, stable)


# --- gain times discount -----------------------------------------------------------------------


def _gain_discount(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    """DCG, RBP: a sum of gain times discount as it is."""
    return SwapForm(
        "discount",
        _unjudged(labels, metric.gains(labels)),
        metric.discounts(longest_list(offsets)),
        np.ones(len(offsets) - 1),
    )


def _normalised(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    """nDCG, ERU: divided by the ideal."""
    form = _gain_discount(metric, labels, offsets)
    scale = inverse(ideals(form.gain, offsets, form.value))
    if metric.options.get("short") == "zero" and metric.k is not None:
        scale[np.diff(offsets) < metric.k] = 0
    return SwapForm("discount", form.gain, form.value, scale)


def _mean_ndcg(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    """The mean of nDCG@1 to nDCG@n: place p has D(p) times the mean over k >= p of 1 / ideal@k."""
    options = metric.options
    at_k = Metric("ndcg", None, {"gain": options["gain"], "discount": options["discount"]})
    gain = _unjudged(labels, at_k.gains(labels))
    table = at_k.discounts(longest_list(offsets))
    value, scale = np.zeros(len(labels)), np.zeros(len(offsets) - 1)
    for q, (start, end) in enumerate(itertools.pairwise(offsets)):
        best = -np.sort(-np.nan_to_num(gain[start:end], nan=0.0))
        if end > start and best[0] * table[0] > 0:
            discount = table[: end - start]
            inverse = 1 / np.cumsum(best * discount)
            value[start:end] = discount * np.cumsum(inverse[::-1])[::-1]
            scale[q] = 1 / (end - start)
    return SwapForm("discount", gain, value, scale, per_document=True)


def _graded_rbp(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    if metric.options["relevance"] == "binary":
        return _gain_discount(metric, labels, offsets)
    top = np.maximum(_per_query_max(labels, offsets), 1.0)
    return SwapForm("discount", labels, metric.discounts(longest_list(offsets)), 1 / top)


def _counting(divisor: Callable[..., Floats]) -> Callable[[Metric, Floats, Offsets], SwapForm]:
    """Metrics that are the relevant documents among the first k, over something of the query."""

    def form(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
        sizes = np.diff(offsets).astype(np.float64)
        relevant = _relevant(metric, labels)
        total = _sums(relevant, offsets)
        depth = sizes if metric.k is None else np.full(len(sizes), float(metric.k))
        short = metric.options.get("short", "pad")
        size = np.minimum(depth, sizes) if short == "cut" else depth
        scale = inverse(divisor(size=size, total=total, depth=depth))
        scale[total == 0] = 0
        if short == "zero":
            scale[sizes < depth] = 0
        return SwapForm("discount", relevant, _first_places(metric, offsets), scale)

    return form


def _r_precision(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    relevant = _relevant(metric, labels)
    depth = np.maximum(1, np.floor(metric.options["multiple"] * _sums(relevant, offsets) + 0.9))
    place = _places(offsets)
    value = (place < np.repeat(depth, np.diff(offsets))).astype(np.float64)
    return SwapForm("discount", relevant, value, 1 / depth, per_document=True)


def _wta(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    top = np.repeat(_per_query_max(labels, offsets), np.diff(offsets))
    gain = _unjudged(labels, (labels == top) & (top > 0))
    table = (np.arange(longest_list(offsets)) < 1).astype(np.float64)
    return SwapForm("discount", gain, table, np.ones(len(offsets) - 1))


def _auc(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    """A relevant document at judged place p stands above all but p of the judged ones."""
    relevant = _relevant(metric, labels)
    hits = _sums(relevant, offsets)
    others = _sums(_unjudged(labels, relevant == 0), offsets)
    longest = longest_list(offsets)
    table = np.arange(longest, 0, -1, dtype=np.float64)
    return SwapForm("discount", relevant, table, inverse(hits * others), places=False)


# --- other kinds -------------------------------------------------------------------------------


def _ap(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    relevant = _relevant(metric, labels)
    divisor = _sums(relevant, offsets)
    if metric.options["norm"] == "min" and metric.k is not None:
        divisor = np.minimum(divisor, metric.k)
    return SwapForm("ap", relevant, _reciprocal(metric, offsets), inverse(divisor))


def _rr(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    relevant = _relevant(metric, labels)
    return SwapForm("first", relevant, _reciprocal(metric, offsets), np.ones(len(offsets) - 1))


def _success(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    relevant = _relevant(metric, labels)
    return SwapForm("first", relevant, _first_places(metric, offsets), np.ones(len(offsets) - 1))


def _err(metric: Metric, labels: Floats, offsets: Offsets) -> SwapForm:
    top = metric.options["top"]
    if top > _LARGEST_TOP:
        raise ValueError(
            f"err: swap changes need a top grade of at most {_LARGEST_TOP}, got top={top:g}; "
            "1 - 2^-top is 1 in double precision beyond"
        )
    metric.check_labels(labels)
    stop = (np.exp2(labels) - 1) * np.exp2(-top)
    return SwapForm("cascade", stop, _reciprocal(metric, offsets), np.ones(len(offsets) - 1))


_LARGEST_TOP = 50

FORMS: dict[str, Callable[[Metric, Floats, Offsets], SwapForm]] = {
    "ndcg": _normalised,
    "dcg": _gain_discount,
    "eru": _normalised,
    "mean_ndcg": _mean_ndcg,
    "precision": _counting(lambda size, **_: size),
    "recall": _counting(lambda total, **_: total),
    "f1": _counting(lambda size, total, **_: (size + total) / 2),
    "relative_precision": _counting(lambda depth, total, **_: np.minimum(depth, total)),
    "r_precision": _r_precision,
    "rbp": _graded_rbp,
    "wta": _wta,
    "auc": _auc,
    "ap": _ap,
    "rr": _rr,
    "success": _success,
    "err": _err,
}
"""Name -> columns of the metrics whose swap changes have a closed form."""


# --- small tools over flat lists ---------------------------------------------------------------


def longest_list(offsets: Offsets) -> int:
    """Documents of the longest list."""
    return int(np.diff(offsets).max(initial=0))


def _unjudged(labels: Floats, gain: Any) -> Floats:
    return np.where(np.isnan(labels), np.nan, gain)


def _relevant(metric: Metric, labels: Floats) -> Floats:
    return _unjudged(labels, labels >= metric.options["rel"])


def _places(offsets: Offsets) -> NDArray[np.int64]:
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def _sums(column: Floats, offsets: Offsets) -> Floats:
    known = np.nan_to_num(column, nan=0.0)
    return np.bincount(query_of(offsets), known, minlength=len(offsets) - 1).astype(np.float64)


def _per_query_max(labels: Floats, offsets: Offsets) -> Floats:
    out = np.zeros(len(offsets) - 1)
    np.maximum.at(out, query_of(offsets), np.nan_to_num(labels, nan=0.0))
    return out


def inverse(x: Floats) -> Floats:
    """1 / x, and 0 where x is not above 0."""
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0)


def _reciprocal(metric: Metric, offsets: Offsets) -> Floats:
    """1 / rank, 0 beyond the cutoff."""
    return np.asarray(_first_places(metric, offsets) / np.arange(1, longest_list(offsets) + 1))


def _first_places(metric: Metric, offsets: Offsets) -> Floats:
    longest = longest_list(offsets)
    return (np.arange(longest) < (longest if metric.k is None else metric.k)).astype(np.float64)


def ideals(gain: Floats, offsets: Offsets, discount: Floats) -> Floats:
    """The largest sum of gain times discount of each query; unjudged documents gain nothing."""
    query = query_of(offsets)
    known = np.nan_to_num(gain, nan=0.0)
    best = known[np.lexsort((-known, query))]
    return np.bincount(query, best * discount[_places(offsets)], minlength=len(offsets) - 1).astype(
        np.float64
    )
