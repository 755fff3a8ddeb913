"""Losses of pairs: of two documents of a query, the one with the larger label should score higher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rankwise import _core, _validate
from rankwise._loss import ConvexLoss, Floats, Loss, Offsets, pair_columns
from rankwise.data import Pairs

EQUAL_LABELS = ("skip", "half")


def _sigma(where: str, loss: Any) -> None:
    sigma = _validate.number(where, "sigma", loss.sigma, low=0, open_low=True)
    object.__setattr__(loss, "sigma", sigma)


@dataclass(frozen=True)
class RankNet(ConvexLoss):
    """Logistic loss of every pair of documents with different labels.

    ``loss = sum over y_i > y_j of w_i log(1 + exp(-sigma (s_i - s_j)))``

    The model is ``P(i before j) = 1 / (1 + exp(-sigma (s_i - s_j)))``. A wrongly ordered pair costs
    at least ``log 2``, so the loss bounds the number of wrong pairs.

    With pairs that have a target ``t``, a pair costs ``t log(1 + exp(-m)) + (1 - t) log(1 +
    exp(m))`` at the margin ``m = sigma (s_i - s_j)``.

    Parameters
    ----------
    sigma : float
        Steepness, above 0.
    equal_labels : {"skip", "half"}
        ``"half"`` lets documents with equal labels form pairs with the target 1/2, weighted by the
        mean of both weights, which draws their scores together. Not read where pairs are given.

    Notes
    -----
    Time is proportional to the number of pairs (one division and a few products each, no
    exponential), memory to the number of documents.

    References
    ----------
    burges2005

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.RankNet().value([1, 0], [0.5, 1.0], [0, 2]).round(3)
    array([0.974])
    """

    sigma: float = 1.0
    equal_labels: str = "skip"
    name: ClassVar[str] = "ranknet"
    takes_pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _sigma("RankNet", self)
        _validate.choice("RankNet", "equal_labels", self.equal_labels, EQUAL_LABELS)

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return _core.RankNetLoss(y, offsets, weight, self.sigma, self.equal_labels == "half")

    def _pair_kernel(self, y: Floats, offsets: Offsets, weight: Floats | None, pairs: Pairs) -> Any:
        return _core.LogisticPairs(offsets, weight, *pair_columns(pairs), self.sigma)


@dataclass(frozen=True)
class SquaredHingePairs(ConvexLoss):
    """RankSVM's loss: the squared shortfall of each pair from a margin of 1.

    ``loss = sum over y_i > y_j of w_i max(0, 1 - (s_i - s_j))^2``

    The curvature is that of the generalised Hessian: pairs at exactly the margin count as
    met.

    Notes
    -----
    O(n log n) per query: only the number of active partners of a document and the sum of their
    scores are needed.

    References
    ----------
    joachims2002, chapelle2010, lee2014

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.SquaredHingePairs().value([2, 1, 0], [1.5, 1.0, 0.5], [0, 3])
    array([0.5])
    """

    name: ClassVar[str] = "squared_hinge"
    takes_pairs: ClassVar[bool] = True

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return _core.SquaredHingeLoss(y, offsets, weight)

    def _pair_kernel(self, y: Floats, offsets: Offsets, weight: Floats | None, pairs: Pairs) -> Any:
        return _core.SquaredHingePairs(offsets, weight, *pair_columns(pairs))


@dataclass(frozen=True)
class HingePairs(Loss):
    """The hinge: how far each pair falls short of a margin of 1.

    ``loss = sum over y_i > y_j of w_i max(0, 1 - (s_i - s_j))``

    Convex with a corner, so it has no second derivative: the curvature given is the weight of the
    active pairs of a document, for which a Newton step is of the size of the margin. Pairs at
    exactly the margin count as met. Linear models solve for it by rounding the corner off
    (:class:`rankwise.RankSVM`).

    Notes
    -----
    O(n log n) per query, as :class:`SquaredHingePairs`.

    References
    ----------
    joachims2002

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.HingePairs().value([2, 1, 0], [1.5, 1.0, 0.5], [0, 3])
    array([1.])
    """

    name: ClassVar[str] = "hinge"
    takes_pairs: ClassVar[bool] = True

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return _core.HingeLoss(y, offsets, weight)

    def _pair_kernel(self, y: Floats, offsets: Offsets, weight: Floats | None, pairs: Pairs) -> Any:
        return _core.HingePairs(offsets, weight, *pair_columns(pairs))


@dataclass(frozen=True)
class ExponentialPairs(ConvexLoss):
    """RankBoost's loss: the exponential of how far the loser is ahead.

    ``loss = sum over y_i > y_j of w_i exp(-(s_i - s_j))``

    A wrongly ordered pair costs at least 1. No other loss here punishes single bad pairs as hard,
    so wrong labels hurt.

    Notes
    -----
    O(n log n) per query: the exponential factorises, so all losers of a document count by one sum.
    Scores more than 300 from the middle of their query's range are counted as 300 away, which keeps
    every number finite.

    References
    ----------
    freund2003

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ExponentialPairs().value([1, 0, 0], [0.0, 0.0, -1.0], [0, 3]).round(3)
    array([1.368])
    """

    name: ClassVar[str] = "exponential"
    takes_pairs: ClassVar[bool] = True

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return _core.ExponentialLoss(y, offsets, weight)

    def _pair_kernel(self, y: Floats, offsets: Offsets, weight: Floats | None, pairs: Pairs) -> Any:
        return _core.ExponentialPairs(offsets, weight, *pair_columns(pairs))


@dataclass(frozen=True)
class Fidelity(Loss):
    """FRank's loss: one less the fidelity of each pair's chance and its target.

    ``loss = sum over y_i > y_j of w_i (1 - sqrt(p_ij)),  p_ij = 1 / (1 + exp(-sigma (s_i - s_j)))``

    Between 0 and 1 for each pair, so hopeless pairs lose their pull; the price is a loss that is
    not convex. With a target ``t`` a pair costs ``1 - sqrt(t p) - sqrt((1 - t) (1 - p))``.

    Parameters
    ----------
    sigma : float
        Steepness, above 0.

    Notes
    -----
    The second derivative of a pair in the margin is ``sigma^2 sqrt(p) (1 - p) (3 p - 1) / 4``,
    negative for ``p < 1/3``. The curvature given takes ``max(3 p - 1, 1/2)`` instead of the
    last factor: it equals the second derivative where the pair is in order (``p >= 1/2``) and lies
    above it elsewhere. Time is proportional to the number of pairs (a division and a root each).

    References
    ----------
    tsai2007

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.Fidelity().value([1, 0], [0.0, 0.0], [0, 2]).round(3)
    array([0.293])
    """

    sigma: float = 1.0
    name: ClassVar[str] = "fidelity"
    takes_pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _sigma("Fidelity", self)

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return _core.FidelityLoss(y, offsets, weight, self.sigma)

    def _pair_kernel(self, y: Floats, offsets: Offsets, weight: Floats | None, pairs: Pairs) -> Any:
        return _core.FidelityPairs(offsets, weight, *pair_columns(pairs), self.sigma)
