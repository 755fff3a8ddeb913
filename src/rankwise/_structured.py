"""The structured bound of a ranking measure: the loss of DORM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _swaps, _validate
from rankwise._loss import Floats, Loss, Offsets, column
from rankwise._metric import Metric, parse_metric
from rankwise.data import query_of

PLACES = ("log2", "reciprocal", "linear")
REFERENCES = ("sorted", "fixed")
SEVERAL = ("refuse", "first")


@dataclass(frozen=True)
class StructuredBound(Loss):
    r"""The convex upper bound of what a ranking loses by a measure (DORM; Le & Smola 2007).

    ``loss = max over rankings pi of  Q(ref) - Q(pi) + sum_i c_i (s_{pi(i)} - s_{ref(i)})``

    with the measure ``Q(pi) = sum_i a_i b_{pi(i)}`` (discounts times gains, divided by the query's
    ideal where the measure is) and the reference order by label. It is never below what the sort
    by score loses: the loss bounds ``1 - nDCG@k`` itself, and is 0 only where every ranking's
    score falls below the reference's by as much as the ranking loses. The most violated ranking is
    a linear assignment, solved exactly by a method that uses how few levels labels have.

    Parameters
    ----------
    metric : str or Metric
        One that is a sum of gains times discounts: ndcg, dcg, mean_ndcg, eru, rbp, precision,
        recall, r_precision, wta, mwta, with any gain, discount and cutoff of theirs; and rr for
        queries with one relevant document.
    places : {"log2", "reciprocal", "linear"}, float or tuple of float
        ``c``, what the score at each place counts, falling: ``1 / log2(1 + i)``, ``1 / (1 + i)``
        (the paper's), ``1 - (i - 1) / n``, ``i^-p`` for a number ``p``, at the place ``i = 1, 2,
        ...``, or a table at least as long as the longest list. Two places of equal ``c`` leave the
        order of their documents free; a flat ``c`` asks for large gaps between scores far down.
    reference : {"sorted", "fixed"}
        How documents of equal gain stand in the reference: by score, or once and for all in the
        order of rows, as published. With the fixed order the loss is convex, but also punishes a
        model for how it orders documents that are equally good: with many equal labels its minimum
        can be the zero model. ``"sorted"`` drops that, stays an upper bound, and is convex for
        ``places="linear"``; elsewhere it is a difference of convex functions.
    several : {"refuse", "first"}
        For rr: refuse queries with several relevant documents, or look at the first of them in the
        order of rows.

    Notes
    -----
    A document's weight counts through its query: the mean of the query's weights. Queries that no
    order can make worse have loss 0. The function is piecewise linear. Its gradient, averaged over
    documents equal in gain and score, does not depend on the order of rows (with
    ``reference="sorted"``); the curvature given to trees is the largest gradient of the query.
    O(n log n) for two levels of labels in the usual case, see ``native/assignment.hpp``.

    References
    ----------
    le2007

    Examples
    --------
    >>> import rankwise as rw
    >>> loss = rw.StructuredBound("ndcg@3", places="reciprocal")
    >>> loss.value([2, 1, 0], [0.0, 0.0, 0.0], [0, 3]).round(6)
    array([0.413117])
    >>> loss.most_violated([2, 1, 0], [3.0, 2.0, 1.0], [0, 3]).tolist()  # rows, best place first
    [1, 0, 2]
    """

    metric: Any = "ndcg@10"
    places: Any = "log2"
    reference: str = "sorted"
    several: str = "refuse"
    name: ClassVar[str] = "structured"
    piecewise_linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        where = "StructuredBound"
        metric = parse_metric(self.metric)
        check_metric(where, metric)
        object.__setattr__(self, "metric", str(metric))
        object.__setattr__(self, "places", _places(where, self.places))
        _validate.choice(where, "reference", self.reference, REFERENCES)
        _validate.choice(where, "several", self.several, SEVERAL)

    @property
    def convex(self) -> bool:
        """Whether the loss is a convex function of the scores."""
        return self.reference == "fixed" or self.places == "linear"

    def most_violated(self, y: ArrayLike, s: ArrayLike, offsets: ArrayLike) -> NDArray[np.int64]:
        """The ranking in which the maximum of the loss is attained.

        Parameters
        ----------
        y, s, offsets
            Labels, all known, scores and offsets, as for :meth:`value`.

        Returns
        -------
        int64 array of shape (n_docs,)
            The rows of each query, the document of its first place first.
        """
        where = "StructuredBound.most_violated"
        labels = _validate.labels(where, y)
        if np.isnan(labels).any():
            raise ValueError(
                f"{where}: y must hold a label for every document, got {int(np.isnan(labels).sum())}"
                " without; leave those documents out"
            )
        starts = _validate.offsets(where, offsets, len(labels))
        scores = column(where, "s", s, len(labels))
        gain, measure, _ = self._columns(labels, starts)
        place = self._place_weights(labels, starts)
        ranking = np.empty(len(labels), np.int64)
        for q in range(len(starts) - 1):
            rows = slice(int(starts[q]), int(starts[q + 1]))
            one = np.array([0, rows.stop - rows.start])
            found, _ = _core.most_violated(
                scores[rows], gain[rows], one, measure[rows], place[rows], 1
            )
            ranking[rows] = found + rows.start
        return ranking

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        gain, measure, useful = self._columns(y, offsets)
        return _core.StructuredLoss(
            gain,
            offsets,
            measure,
            self._place_weights(y, offsets),
            useful * _mean_weights(y, offsets, weight),
            self.reference == "sorted",
        )

    def _columns(self, y: Floats, offsets: Offsets) -> tuple[Floats, Floats, Floats]:
        """Gain of each document over its query's ideal, ``a`` of each place, 1 per useful query."""
        metric = parse_metric(self.metric)
        form = _swaps.swap_form(metric, y, offsets)
        gain, scale = form.gain, form.scale
        if metric.name == "rr":
            gain = self._one_relevant(gain, offsets)
        gain = gain * np.repeat(scale, np.diff(offsets))
        value = form.value if form.per_document else form.value[_swaps._places(offsets)]
        best = np.zeros(len(offsets) - 1)
        np.maximum.at(best, query_of(offsets), np.nan_to_num(gain, nan=0.0))
        useful = (best > 0).astype(np.float64)
        return np.ascontiguousarray(gain), np.ascontiguousarray(value, dtype=np.float64), useful

    def _one_relevant(self, relevant: Floats, offsets: Offsets) -> Floats:
        """The relevant document of each query that counts."""
        query = query_of(offsets)
        rows = np.flatnonzero(np.nan_to_num(relevant, nan=0.0) > 0)
        first, counts = np.unique(query[rows], return_index=True, return_counts=True)[1:]
        if self.several == "refuse" and (counts > 1).any():
            raise ValueError(
                "StructuredBound: rr needs one relevant document in each query, got "
                f"{int(counts.max())} in a query and several in {int((counts > 1).sum())}; "
                "several='first' looks at the first of them, and ndcg or r_precision at all"
            )
        gain = np.where(np.isnan(relevant), np.nan, 0.0)
        gain[rows[first]] = 1.0
        return gain

    def _place_weights(self, y: Floats, offsets: Offsets) -> Floats:
        place = _swaps._places(offsets) + 1.0
        if self.places == "log2":
            return np.asarray(1 / np.log2(1 + place))
        if self.places == "reciprocal":
            return np.asarray(1 / (1 + place))
        if self.places == "linear":
            return np.asarray(1 - (place - 1) / np.repeat(np.diff(offsets), np.diff(offsets)))
        if isinstance(self.places, float):
            return np.asarray(place**-self.places)
        longest = _swaps.longest_list(offsets)
        if longest > len(self.places):
            raise ValueError(
                f"StructuredBound: places must be at least as many as the longest list has "
                f"documents, got {len(self.places)} for {longest}"
            )
        return np.asarray(self.places)[_swaps._places(offsets)]


@dataclass(frozen=True)
class StructuredAP(Loss):
    r"""The convex upper bound of what a ranking loses in average precision (SVM-MAP).

    ``loss = max over rankings pi of  1 - AP(pi) + mean over pairs of (y(pi) - 1) (s_i - s_j)``

    over pairs of a relevant document ``i`` and another one ``j``, with ``y(pi) = 1`` where ``i``
    stands before ``j`` and -1 elsewhere. It is never below ``1 - AP`` of the sort by score.

    Parameters
    ----------
    rel : float
        Smallest label that counts as relevant.

    Notes
    -----
    The most violated ranking is found exactly in O(relevant x others) a query. Weights, ties and
    curvature as in :class:`StructuredBound`. Queries without relevant documents, or without others,
    have loss 0.

    References
    ----------
    yue2007

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.StructuredAP().value([1, 0], [0.0, 0.0], [0, 2]).tolist()
    [0.5]
    """

    rel: float = 1.0
    name: ClassVar[str] = "structured_ap"
    piecewise_linear: ClassVar[bool] = True
    convex: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rel", _validate.number("StructuredAP", "rel", self.rel, low=0))

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        relevant = np.where(np.isnan(y), np.nan, (y >= self.rel).astype(np.float64))
        return _core.StructuredApLoss(relevant, offsets, _mean_weights(y, offsets, weight))


def check_metric(where: str, metric: Metric) -> None:
    """Refuses a metric that is no sum of gains times discounts that never rise."""
    if metric.name in BOUNDED:
        return
    raise ValueError(
        f"{where}: metric must be a sum of gains times discounts ({', '.join(BOUNDED)}), got "
        f"{metric}; StructuredAP is the bound of ap, and lambdarank takes any metric"
    )


BOUNDED = (
    "ndcg",
    "dcg",
    "mean_ndcg",
    "eru",
    "rbp",
    "precision",
    "recall",
    "f1",
    "relative_precision",
    "r_precision",
    "wta",
    "rr",
)
"""Names of the metrics that have a structured bound."""


def _places(where: str, places: Any) -> Any:
    if isinstance(places, str):
        return _validate.choice(where, "places", places, PLACES)
    if np.ndim(places) == 0:
        return float(_validate.number(where, "places", places, low=0, open_low=True))
    table = tuple(float(c) for c in _validate.vector(where, "places", places))
    if not table or not np.isfinite(table).all() or (np.diff(table) > 0).any():
        raise ValueError(
            f"{where}: places must be a table of finite numbers that never rise, got {places!r}"
        )
    return table


def _mean_weights(y: Floats, offsets: Offsets, weight: Floats | None) -> Floats:
    """The mean weight of each query's labelled documents."""
    n = len(offsets) - 1
    if weight is None:
        return np.ones(n)
    known = (~np.isnan(y)).astype(np.float64)
    query = query_of(offsets)
    total = np.bincount(query, known, minlength=n)
    sums = np.bincount(query, known * weight, minlength=n)
    return np.asarray(np.divide(sums, total, out=np.zeros(n), where=total > 0))
