"""Losses of one document at a time: the score predicts the label, the order is a by-product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwise import _core, _validate
from rankwise._loss import ConvexArrayKernel, ConvexLoss, Floats, Offsets


@dataclass(frozen=True)
class Squared(ConvexLoss):
    """Half the squared error of scores as predictions of labels.

    ``loss = 1/2 sum of w_i (s_i - y_i)^2``

    Pointwise: a constant added to the scores changes it. Gradient ``w_i (s_i - y_i)``, curvature
    ``w_i``.

    Examples
    --------
    Close predictions in the wrong order cost less than a right order far away:

    >>> import rankwise as rw
    >>> rw.Squared().value([1, 2], [1.9, 1.1], [0, 2])
    array([0.81])
    >>> rw.Squared().value([1, 2], [-1.0, 0.0], [0, 2])
    array([4.])
    """

    name: ClassVar[str] = "squared"
    shift_invariant: ClassVar[bool] = False

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return _core.SquaredLoss(y, offsets, weight)


@dataclass(frozen=True)
class Logistic(ConvexLoss):
    """Cross entropy of each document's chance to be relevant.

    ``loss = - sum of w_i (t_i log p_i + (1 - t_i) log(1 - p_i)),  p_i = 1 / (1 + exp(-s_i))``

    The target is ``t_i = 1`` for labels of at least ``rel`` and 0 below, or ``y_i / top``.

    Parameters
    ----------
    rel : float
        Smallest label that counts as relevant, above 0. Not read where ``top`` is given.
    top : float, optional
        The largest label there can be, above 0: labels then are shares of it. Larger ones are
        refused.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.Logistic().value([1, 0], [0.0, 0.0], [0, 2]).round(3)
    array([1.386])
    >>> gradient, _ = rw.Logistic(top=4).derivatives([4, 1], [0.0, 0.0], [0, 2])
    >>> gradient
    array([-0.5 ,  0.25])
    """

    rel: float = 1.0
    top: float | None = None
    name: ClassVar[str] = "logistic"
    shift_invariant: ClassVar[bool] = False

    def __post_init__(self) -> None:
        rel = _validate.number("Logistic", "rel", self.rel, low=0, open_low=True)
        object.__setattr__(self, "rel", rel)
        if self.top is not None:
            top = _validate.number("Logistic", "top", self.top, low=0, open_low=True)
            object.__setattr__(self, "top", top)

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        if self.top is None:
            target = np.where(np.isnan(y), np.nan, (y >= self.rel).astype(np.float64))
        else:
            largest = float(np.fmax.reduce(y, initial=0.0))
            if largest > self.top:
                raise ValueError(
                    f"Logistic: labels must be at most top={self.top:g}, got {largest:g}; raise top"
                )
            target = y / self.top
        return _core.LogisticLoss(target, offsets, weight)


@dataclass(frozen=True)
class Poisson(ConvexLoss):
    """Half the Poisson deviance of labels that are counts, such as clicks.

    ``loss = sum of w_i (exp(s_i) - y_i s_i - y_i + y_i log y_i)``

    The score is the logarithm of the expected count; the smallest value is 0, at
    ``s_i = log y_i``.

    Notes
    -----
    Expected counts are capped at ``exp(300)``, so that values stay finite at any score.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise as rw
    >>> rw.Poisson().value([3, 1], np.log([3.0, 2.0]), [0, 2]).round(3)
    array([0.307])
    """

    name: ClassVar[str] = "poisson"
    shift_invariant: ClassVar[bool] = False

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return _core.PoissonLoss(y, offsets, weight)


# --- ordered classes -------------------------------------------------------------------------


@dataclass(frozen=True)
class OrdinalLogit(ConvexLoss):
    r"""Ordered classes by the cumulative logit model (proportional odds).

    ``loss = min over theta of - sum of w_i log P(y_i),  P(y <= k) = 1 / (1 + exp(s - theta_k))``

    One threshold lies between each two neighbouring labels, shared by all queries. The thresholds
    are no parameters of the model: at any scores the loss is the value at the best ones, so every
    learner can use it.

    Notes
    -----
    With the gap ``d_k = theta_k - theta_(k-1)`` a document of the label ``k`` costs
    ``log(1 + exp(s - theta_k)) + log(1 + exp(theta_(k-1) - s)) - log(1 - exp(-d_k))``, convex in
    scores and thresholds together, hence convex in the scores. The gradient at the best thresholds
    is that with the thresholds fixed (envelope theorem); curvature and Hessian products subtract
    what the thresholds give way (Schur complement). A constant added to all scores changes
    nothing, one added to a single query does. Labels may take 100 different values. O(n) for each
    Newton step on the thresholds.

    References
    ----------
    mccullagh1980

    Examples
    --------
    The best threshold between two documents at 1 and -1 is 0: twice ``log(1 + exp(-1))``.

    >>> import rankwise as rw
    >>> rw.OrdinalLogit().value([1, 0], [1.0, -1.0], [0, 2]).round(3)
    array([0.627])
    """

    name: ClassVar[str] = "ordinal_logit"
    shift_invariant: ClassVar[bool] = False
    separable: ClassVar[bool] = False

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return _Thresholds("OrdinalLogit", y, offsets, weight, margin=False)


@dataclass(frozen=True)
class OrdinalMargin(ConvexLoss):
    """Ordered classes by large margins around thresholds (the support vector method OC SVM).

    ``loss = min over theta of sum of w_i [max(0, 1 - (theta_k - s_i))^2 +
    max(0, 1 - (s_i - theta_(k-1)))^2]`` for a document of the label number ``k``

    A document should lie by a margin of 1 below the threshold over its label and above the one
    under it; the lowest and the highest label have one threshold only. The thresholds are shared by
    all queries and the best at the given scores.

    Notes
    -----
    The squares make the loss smooth, as in :class:`SquaredHingePairs`; the curvature is that of the
    generalised Hessian. Thresholds and derivatives as in :class:`OrdinalLogit`. Where a whole range
    of a threshold is best, value and gradient are the same all over it.

    References
    ----------
    shashua2003

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.OrdinalMargin().value([1, 0], [1.0, -1.0], [0, 2])
    array([0.])
    >>> rw.OrdinalMargin().value([1, 0], [0.0, 0.0], [0, 2])
    array([2.])
    """

    name: ClassVar[str] = "ordinal_margin"
    shift_invariant: ClassVar[bool] = False
    separable: ClassVar[bool] = False

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return _Thresholds("OrdinalMargin", y, offsets, weight, margin=True)


_MOST_LEVELS = 100
_STEPS = 200
_SETTLED = 1e-7  # largest step, relative to the thresholds' size, after which one more is exact


class _Thresholds(ConvexArrayKernel):
    """Sum of ``cost(s - theta_k) + cost(theta_(k-1) - s)`` at the best thresholds; without
    ``margin`` less ``log(1 - exp(-(theta_k - theta_(k-1))))`` for labels between two thresholds.

    The sums over documents are native; the thresholds are few.
    """

    def __init__(
        self, where: str, y: Floats, offsets: Offsets, weight: Floats | None, *, margin: bool
    ) -> None:
        self.n_docs, self.offsets, self.gaps = len(y), offsets, not margin
        judged = ~np.isnan(y)
        levels, found = np.unique(y[judged], return_inverse=True)
        if len(levels) > _MOST_LEVELS:
            raise ValueError(
                f"{where}: labels must take at most {_MOST_LEVELS} different values, got "
                f"{len(levels)}; round them"
            )
        self.n_thresholds = k = max(len(levels) - 1, 0)
        level = np.full(len(y), -1, np.int32)
        level[judged] = found
        self.mass = np.bincount(
            found, None if weight is None else weight[judged], minlength=k + 1
        ).astype(np.float64)
        # The start of the thresholds is where the mean score is; documents count by weight.
        self.share = np.where(judged, 1e-300 + (1.0 if weight is None else weight), 0.0)
        self.sides: Any = _core.OrdinalSides(level, weight, k, margin) if k > 0 else None
        self.inverse: Floats = np.zeros((k, k))

    def evaluate(
        self, s: Floats, values: bool = True, n_threads: int = 0
    ) -> tuple[Floats, Floats, Floats]:
        n_values = len(self.offsets) - 1 if values else 0
        if self.sides is None:
            return np.zeros(n_values), np.zeros(self.n_docs), np.zeros(self.n_docs)
        self.sides.set_scores(s, n_threads)
        theta = self._best(s, n_threads)
        self.inverse = np.ascontiguousarray(np.linalg.inv(self._model(theta, n_threads)[1]))
        extra = self._gap_terms(theta)[0] if self.gaps else np.zeros(len(theta) + 1)
        loss, gradient, curvature = self.sides.evaluate(
            theta, self.inverse, extra, values, n_threads
        )
        if values:
            ends = np.append(loss, 0.0)  # a query may be empty, and the last one end the column
            filled = np.diff(self.offsets) > 0
            loss = np.where(filled, np.add.reduceat(ends, self.offsets[:-1]), 0.0)
        return loss, gradient, curvature

    def product(self, v: Floats, n_threads: int = 0) -> Floats:
        if self.sides is None:
            return np.zeros(self.n_docs)
        out: Floats = self.sides.product(v, self.inverse, n_threads)
        return out

    def _model(self, theta: Floats, n_threads: int) -> tuple[Floats, Floats]:
        """Gradient and Hessian in the thresholds."""
        k = self.n_thresholds
        low_slope, low_bend, high_slope, high_bend = self.sides.sums(theta, n_threads)
        slope = high_slope[1:] - low_slope[:-1]
        diagonal = high_bend[1:] + low_bend[:-1]
        hessian = np.zeros((k, k))
        if self.gaps and k > 1:
            _, bent, bend = self._gap_terms(theta)
            pull, bend = (self.mass * bent)[1:-1], (self.mass * bend)[1:-1]
            slope[1:] += pull
            slope[:-1] -= pull
            hessian[range(k - 1), range(1, k)] = hessian[range(1, k), range(k - 1)] = -bend
            diagonal[1:] += bend
            diagonal[:-1] += bend
        # A threshold that nothing pulls at stays where it is.
        hessian[np.diag_indices(k)] = np.where(diagonal > 0, diagonal, 1.0)
        return slope, hessian

    def _gap_terms(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """``-log(1 - exp(-gap))`` of each label and its derivatives in the gap; 0 at both ends."""
        gap = np.diff(theta)
        rest = -np.expm1(-gap)
        inner = -np.log(rest), -np.exp(-gap) / rest, np.exp(-gap) / rest**2
        loss, slope, bend = (np.concatenate([[0.0], part, [0.0]]) for part in inner)
        return loss, slope, bend

    def _best(self, s: Floats, n_threads: int) -> Floats:
        """The best thresholds, by damped Newton steps from a start that depends on ``s`` alone.

        A step is halved while the slope along it, which only rises, ends up steeper uphill than
        half of what it was downhill.
        """
        k = self.n_thresholds
        middle = float((s * self.share).sum() / self.share.sum())
        if self.gaps:
            share = np.cumsum(self.mass + 1e-9 * self.mass.sum() + 1e-300)
            share = share[:-1] / share[-1]
            theta: Floats = middle + np.log(share) - np.log1p(-share)
        else:
            theta = np.full(k, middle)
        slope, hessian = self._model(theta, n_threads)
        for _ in range(_STEPS):
            step = -np.linalg.solve(hessian, slope)
            promise, size = -float(slope @ step), 1.0
            if not promise > 0 or not np.isfinite(step).all():
                break
            settled = np.abs(step).max() <= _SETTLED * (1 + np.abs(theta - middle).max())
            while self.gaps and (np.diff(theta + size * step) <= 0).any():
                size /= 2
            if settled and size == 1:
                return np.asarray(theta + step)
            while size > 1e-10:
                slope, hessian = self._model(theta + size * step, n_threads)
                if float(slope @ step) <= 0.5 * promise:
                    break
                size /= 2
            theta = np.asarray(theta + size * step)
        return theta
