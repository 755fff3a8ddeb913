"""LambdaRank and its relatives: gradients that move a ranking metric.

A ranking metric changes only when two documents swap places, so it has no useful derivative.
LambdaRank takes RankNet's pair forces and weights each by what the metric would change if the two
documents swapped places in the current ranking: a gradient without a function, whose ascent
raises the metric itself. Boosted trees on these gradients are LambdaMART
(:class:`rankwise.TreeRanker`).

====================  ==========================================================================
:class:`LambdaRank`   pairs weighted by a swap's change in any metric, or by a function of yours
:class:`LambdaLoss`   NDCG-Loss1, NDCG-Loss2, NDCG-Loss2++: bounds of nDCG's cost
:class:`ARPLoss`      ARP-Loss1, ARP-Loss2: bounds of the average relevance position
====================  ==========================================================================

>>> import numpy as np
>>> import rankwise as rw
>>> y = np.array([0.0, 3.0, 1.0, 0.0, 2.0, 0.0])
>>> s = np.array([2.5, 2.0, 1.5, 1.0, 0.5, 0.0])
>>> gradient, curvature = rw.LambdaRank().derivatives(y, s, np.array([0, 6]))
>>> (-gradient).round(3)
array([-0.383,  0.286, -0.005, -0.052,  0.184, -0.031])

With any metric, ``LambdaRank("ap")``; with a metric of your own, a function of labels and scores:

>>> def first_two(y_true, y_score):
...     best = np.argsort(-y_score)[:2]
...     return y_true[best].sum()
>>> gradient, _ = rw.LambdaRank(first_two).derivatives(y, s, np.array([0, 6]))
>>> (-gradient).round(3)
array([-2.493,  2.102, -0.024, -0.807,  1.579, -0.358])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _orders, _validate
from rankwise._loss import Summand
from rankwise._swaps import FORMS, SwapForm, kernel, longest_list, swap_form
from rankwise._text import call_text
from rankwise.metrics import Metric, parse_metric

Floats = NDArray[np.float64]
Derivatives = Callable[[ArrayLike], tuple[Floats, Floats]]

TIES = ("average", "stable")
NORMALIZE = ("none", "gap", "query", "both")
_NDCG = Metric("ndcg")


class PairForces(Summand):
    """What the losses of this module share: their methods over a kernel of pair forces.

    A subclass is a frozen dataclass of its options with ``_kernel(labels, offsets, weights)``.
    """

    sigma: float
    name: ClassVar[str]
    shift_invariant: ClassVar[bool] = True
    takes_pairs: ClassVar[bool] = False
    minimizes: ClassVar[bool] = False  # the weights move with the scores: no function to minimise

    def value(
        self, y: ArrayLike, s: ArrayLike, offsets: ArrayLike, weight: ArrayLike | None = None
    ) -> Floats:
        """The weighted pair loss of each query at the weights of the current ranking.

        Returns
        -------
        float64 array of shape (n_queries,); 0 for a query without a pair.
        """
        return self._checked_kernel(y, offsets, weight).values(_scores(s))  # type: ignore[no-any-return]

    def derivatives(
        self, y: ArrayLike, s: ArrayLike, offsets: ArrayLike, weight: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """Gradient and curvature of the loss in each score, the pair weights held fixed.

        Parameters
        ----------
        y : array-like of shape (n_docs,)
            Labels, 0 or more; a NaN document is unjudged: it holds a place but forms no pair.
        s : array-like of shape (n_docs,)
            Scores, finite.
        offsets : int64 array of shape (n_queries + 1,)
        weight : array-like of shape (n_docs,), optional
            Document weights; a pair counts with its winner's.

        Returns
        -------
        gradient, curvature : float64 arrays of shape (n_docs,)
            The gradient sums to 0 in each query; the curvature is at least 0.
        """
        return self.prepare(y, offsets, weight)(s)

    def prepare(
        self,
        y: ArrayLike,
        offsets: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        n_threads: int = 0,
    ) -> Derivatives:
        """:meth:`derivatives` as a function of the scores alone.

        Gains and ideals are computed once, and each sort starts from the order of the last call;
        learners that ask for the gradient many times use this.
        """
        forces = self._checked_kernel(y, offsets, weight)
        return lambda s: forces.gradients(_scores(s), n_threads)

    def __str__(self) -> str:
        return call_text(self.name, self)

    def _kernel(self, labels: Floats, offsets: NDArray[np.int64], weights: Floats | None) -> Any:
        raise TypeError(f"{type(self).__name__} must define _kernel(labels, offsets, weights)")

    def _checked_kernel(self, y: ArrayLike, offsets: ArrayLike, weight: ArrayLike | None) -> Any:
        where = type(self).__name__
        labels = _validate.labels(where, y)
        starts = _validate.offsets(where, offsets, len(labels))
        return self._kernel(labels, starts, _validate.weights(where, weight, len(labels)))

    def _check_sigma(self) -> None:
        where = type(self).__name__
        sigma = _validate.number(where, "sigma", self.sigma, low=0, open_low=True)
        object.__setattr__(self, "sigma", sigma)


class RankedPairForces(PairForces):
    """Those whose weights depend on the ranking, and the options that these have."""

    truncation: int | None
    pairs_per_doc: int | None
    random_state: int
    ties: str
    normalize: str

    def _check_options(self) -> None:
        where = type(self).__name__
        self._check_sigma()
        for name in ("truncation", "pairs_per_doc"):
            if getattr(self, name) is not None:
                _validate.number(where, name, getattr(self, name), low=1, integer=True)
        _validate.number(where, "random_state", self.random_state, low=0, integer=True)
        _validate.choice(where, "ties", self.ties, TIES)
        _validate.choice(where, "normalize", self.normalize, NORMALIZE)

    def _options(self) -> dict[str, Any]:
        """How pairs are formed and weighed, whatever the change of a swap is."""
        return {
            "sigma": self.sigma,
            "stable": self.ties == "stable",
            "truncation": self.truncation,
            "by_gap": self.normalize in ("gap", "both"),
            "by_query": self.normalize in ("query", "both"),
        }

    def _sample(self) -> dict[str, Any]:
        return {"pairs_per_doc": self.pairs_per_doc, "seed": self.random_state}


@dataclass(frozen=True)
class LambdaRank(RankedPairForces):
    r"""RankNet's pair loss, each pair weighted by the change of a metric if the two swapped.

    For documents ``i, j`` of one query with labels ``y_i > y_j``, in the ranking by score::

        w_ij   = |metric - metric with i and j in each other's place|
        loss   = sum of w_ij log(1 + exp(-sigma (s_i - s_j))),    w_ij held fixed
        lambda_ij = sigma w_ij rho_ij,   rho_ij = 1 / (1 + exp(sigma (s_i - s_j)))
        gradient_i  = - sum of lambda_ij over losers + sum of lambda_ji over winners
        curvature_i = sum of sigma^2 w_ij rho_ij (1 - rho_ij) over both

    Parameters
    ----------
    metric : str, Metric, callable or object with ``swap_deltas``
        A metric of rankwise. Those with a closed form cost one pass over the pairs: nDCG, DCG,
        MeanNDCG, ERU, precision, recall, F1, R-precision, RBP, WTA, AUC, AP, RR, success, ERR. For
        the others, and for your own function ``(y_true, y_score) -> value of one query``, each
        swap is done and measured, in lists of at most 200 documents. An object with
        ``swap_deltas(y_true, y_score) -> (n, n) array`` of changes is asked for them instead, with
        distinct scores, best document first. With a cutoff (``"ndcg@10"``) pairs that are both
        below it have no weight; without one every pair counts.
    force : callable, optional
        Your own weights in place of a metric's change: ``force(y_i, y_j, rank_i, rank_j)``, arrays
        of the winners' and losers' labels and of their ranks from 1, gives one weight of at least
        0 per pair.
    sigma : float
        Steepness of the pair loss, above 0.
    truncation : int, optional
        Keep only pairs with at least one document in the first ``truncation`` places; None keeps
        all.
    pairs_per_doc : int, optional
        For long lists: each document draws this many partners, more at the top, instead of meeting
        all. The gradient is that of all pairs on average over the draws. Lists in which a document
        has no more than twice as many others keep all pairs.
    random_state : int
        Seed of the draws. Equal seeds and scores give equal draws, whatever the row order and the
        number of threads; every new ranking is drawn anew.
    ties : {"average", "stable"}
        ``"average"`` takes the expectation of the weight over all orders of documents with equal
        scores, so that the gradient does not depend on how rows are stored. ``"stable"`` takes
        the row order for the ranking, as LightGBM and XGBoost do.
    normalize : {"none", "gap", "query", "both"}
        ``"gap"`` divides each weight by ``.01 + |s_i - s_j|`` (unless all judged documents of the
        query have equal scores); ``"query"`` multiplies a query by ``log2(1 + S) / S`` where ``S``
        is the sum of its forces over documents; ``"both"`` is what LightGBM calls ``lambdarank_norm``.

    Notes
    -----
    For a sum of gain times discount ``w_ij = |g_i - g_j| |D(p_i) - D(p_j)| / ideal`` at places
    ``p_i, p_j``. Under ``ties="average"`` the expectation has a closed form for all metrics that
    have one without ties: no change of sign depends on the order of other documents. When all
    scores are equal, as in the first round of boosting, nDCG's gradient is that of RankNet weighted
    by the gain differences. Functions of your own are averaged over all orders of the tied
    documents where there are at most 64 that differ in labels, and over 64 fixed draws otherwise;
    ``force`` is averaged over the places of the two documents, exactly.

    Time is quadratic in the length of a list (one division and some ten other operations per
    pair; RR and success: proportional to the place of the first relevant document times the
    length), or proportional to ``truncation`` or ``pairs_per_doc`` times the length; memory is
    linear. A tied block costs only a sort; with ERR its size times the square of its number of
    different labels. Your own functions cost a Python call per swap, or per query, and a matrix of
    the list's length squared.

    References
    ----------
    burges2010, donmez2009, mcsherry2008
    """

    metric: Any = _NDCG
    force: Callable[..., Any] | None = None
    sigma: float = 1.0
    truncation: int | None = None
    pairs_per_doc: int | None = None
    random_state: int = 0
    ties: str = "average"
    normalize: str = "none"
    name: ClassVar[str] = "lambdarank"

    def __post_init__(self) -> None:
        where = "LambdaRank"
        self._check_options()
        metric = parse_metric(self.metric) if isinstance(self.metric, str) else self.metric
        if isinstance(metric, Metric):
            if metric.name in _orders.ORDER_FREE:
                raise ValueError(
                    f"{where}: metric must depend on the order of judged documents, got "
                    f"{str(metric)!r}, which no swap of two of them changes"
                )
        elif isinstance(metric, type) or not (callable(metric) or hasattr(metric, "swap_deltas")):
            raise TypeError(
                f"{where}: metric must be a metric's name or Metric, a function (y_true, y_score) -> "
                f"number, or an object with swap_deltas(y_true, y_score), got {metric!r}"
            )
        object.__setattr__(self, "metric", metric)
        if self.force is not None and not callable(self.force):
            raise TypeError(
                f"{where}: force must be a function (y_i, y_j, rank_i, rank_j) -> weights, "
                f"got {self.force!r}"
            )
        if self.pairs_per_doc is not None and not self._has_columns:
            raise ValueError(
                f"{where}: pairs_per_doc needs a metric with a closed form ({_known()}); "
                "use truncation for others"
            )

    @property
    def _has_columns(self) -> bool:
        return isinstance(self.metric, Metric) and self.metric.name in FORMS and self.force is None

    def _kernel(self, labels: Floats, offsets: NDArray[np.int64], weights: Floats | None) -> Any:
        if self._has_columns:
            form = swap_form(self.metric, labels, offsets)
            return kernel(form, offsets, weights, **self._options(), **self._sample())
        changes = _orders.weights_of("LambdaRank", self.metric, self.force)
        return _orders.MatrixForces(changes, labels, offsets, weights, **self._options())


def _known() -> str:
    return ", ".join(sorted(FORMS))


KINDS = ("ndcg1", "ndcg2", "ndcg2++")


@dataclass(frozen=True)
class LambdaLoss(RankedPairForces):
    r"""The losses of LambdaLoss: bounds of nDCG's cost that pair weights of the ranking make.

    With ``G_i = gain_i / ideal``, places ``p``, discounts ``D(p)`` and
    ``l(x) = log(1 + exp(-sigma x))``::

        ndcg1:    sum over all i != j of   G_i D(p_i) l(s_i - s_j)
        ndcg2:    sum over y_i > y_j of    |G_i - G_j| delta_ij l(s_i - s_j)
        ndcg2++:  sum over y_i > y_j of    |G_i - G_j| (rho_ij + mu delta_ij) l(s_i - s_j)
        rho_ij = |D(p_i) - D(p_j)|,   delta_ij = |D(d) - D(d + 1)|,  d = |p_i - p_j|

    ``rho_ij`` is LambdaRank's weight; ``delta_ij`` is about neighbours in the ranking, wherever
    they stand. In ``ndcg1`` documents with equal labels form pairs too, and each document of a pair
    wins with its own weight.

    Parameters
    ----------
    kind : {"ndcg2++", "ndcg2", "ndcg1"}
    mu : float
        Share of ``delta_ij`` in ``ndcg2++``, 0 or more.
    metric : str or Metric
        ``"ndcg"`` with any gain and discount.
    sigma, truncation, pairs_per_doc, random_state, ties, normalize
        As in :class:`LambdaRank`. Under ``ties="average"`` every weight is its expectation.

    Notes
    -----
    The published losses have logarithms to base 2; natural ones here differ by a factor. Time and
    memory are those of :class:`LambdaRank`.

    References
    ----------
    wang2018
    """

    kind: str = "ndcg2++"
    mu: float = 10.0
    metric: Any = _NDCG
    sigma: float = 1.0
    truncation: int | None = None
    pairs_per_doc: int | None = None
    random_state: int = 0
    ties: str = "average"
    normalize: str = "none"
    name: ClassVar[str] = "lambdaloss"

    def __post_init__(self) -> None:
        where = "LambdaLoss"
        self._check_options()
        _validate.choice(where, "kind", self.kind, KINDS)
        object.__setattr__(self, "mu", _validate.number(where, "mu", self.mu, low=0))
        metric = parse_metric(self.metric)
        if metric.name != "ndcg":
            raise ValueError(f"{where}: metric must be ndcg, got {str(metric)!r}; see LambdaRank")
        object.__setattr__(self, "metric", metric)

    def _kernel(self, labels: Floats, offsets: NDArray[np.int64], weights: Floats | None) -> Any:
        form = swap_form(self.metric, labels, offsets)
        options = {**self._options(), **self._sample()}
        if self.kind == "ndcg1":
            return kernel(form, offsets, weights, weights="own", **options)
        longest = longest_list(offsets)
        discount = self.metric.discounts(longest + 2)
        distance = np.zeros(longest + 1)  # by distance; 0 is no pair
        distance[1:] = discount[:longest] - discount[1 : longest + 1]
        if self.kind == "ndcg2":
            form = SwapForm("constant", form.gain, np.ones(longest), form.scale)
            options["constant"] = 0.0
        else:
            distance *= self.mu
        return kernel(form, offsets, weights, weights="distance", distance=distance, **options)


@dataclass(frozen=True)
class ARPLoss(PairForces):
    r"""Bounds of the average relevance position, the mean rank of documents weighted by label.

    With ``l(x) = log(1 + exp(-sigma x))``::

        arp1:  sum over all i != j of   y_i l(s_i - s_j)
        arp2:  sum over y_i > y_j of    (y_i - y_j) l(s_i - s_j)

    The weights do not depend on the ranking, so both are convex functions of the scores that a
    solver can minimise. ``arp2`` is RankNet with pairs weighted by the difference of labels.

    Parameters
    ----------
    kind : {"arp2", "arp1"}
    sigma : float
        Steepness, above 0.

    References
    ----------
    wang2018

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ARPLoss().value([3, 1], [0.5, 1.0], [0, 2]).round(3)
    array([1.948])
    """

    kind: str = "arp2"
    sigma: float = 1.0
    name: ClassVar[str] = "arp"
    minimizes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_sigma()
        _validate.choice("ARPLoss", "kind", self.kind, ("arp2", "arp1"))

    def _kernel(self, labels: Floats, offsets: NDArray[np.int64], weights: Floats | None) -> Any:
        longest = longest_list(offsets)
        form = SwapForm("constant", labels, np.ones(longest), np.ones(len(offsets) - 1))
        kind = "own" if self.kind == "arp1" else "change"
        return kernel(form, offsets, weights, sigma=self.sigma, weights=kind)


def _scores(s: ArrayLike) -> Floats:
    return np.ascontiguousarray(s, dtype=np.float64)
