"""Losses of one document at a time: the score predicts the label, the order is a by-product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

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

# A threshold between two neighbouring labels should lie above the scores of the lower and below
# those of the upper one. What a distance x on the wrong side costs, and its two derivatives:
Cost = Callable[[Floats], tuple[Floats, Floats, Floats]]


def _softplus(x: Floats) -> tuple[Floats, Floats, Floats]:
    small = np.exp(-np.abs(x))
    up, down = np.where(x < 0, small, 1.0) / (1 + small), np.where(x < 0, 1.0, small) / (1 + small)
    return np.maximum(x, 0) + np.log1p(small), up, up * down


def _squared_margin(x: Floats) -> tuple[Floats, Floats, Floats]:
    short = np.maximum(1 + x, 0.0)
    return short**2, 2 * short, np.where(x > -1, 2.0, 0.0)


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
        return _Thresholds("OrdinalLogit", y, offsets, weight, _softplus, gaps=True)


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
        return _Thresholds("OrdinalMargin", y, offsets, weight, _squared_margin, gaps=False)


def _sums(index: NDArray[np.int64], values: Floats, n: int) -> Floats:
    return np.bincount(index, values, n).astype(np.float64)


_MOST_LEVELS = 100
_STEPS = 200


class _Thresholds(ConvexArrayKernel):
    """Sum of ``cost(s - theta_k) + cost(theta_(k-1) - s)`` at the best thresholds; with ``gaps``
    less ``log(1 - exp(-(theta_k - theta_(k-1))))`` for labels between two thresholds.
    """

    def __init__(
        self, where: str, y: Floats, offsets: Offsets, weight: Floats | None, cost: Cost, gaps: bool
    ) -> None:
        self.n_docs, self.n_queries = len(y), len(offsets) - 1
        self.rows = np.flatnonzero(~np.isnan(y))
        levels, self.level = np.unique(y[self.rows], return_inverse=True)
        if len(levels) > _MOST_LEVELS:
            raise ValueError(
                f"{where}: labels must take at most {_MOST_LEVELS} different values, got "
                f"{len(levels)}; round them"
            )
        self.n_thresholds = max(len(levels) - 1, 0)
        self.query = np.repeat(np.arange(self.n_queries), np.diff(offsets))[self.rows]
        self.weight = np.ones(len(self.rows)) if weight is None else weight[self.rows]
        self.cost, self.gaps = cost, gaps
        # Rows with a threshold over, and under, their label; and that threshold.
        self.low = np.flatnonzero(self.level < self.n_thresholds)
        self.high = np.flatnonzero(self.level > 0)
        self.over, self.under = self.level[self.low], self.level[self.high] - 1
        self.mass = _sums(self.level, self.weight, self.n_thresholds + 1)
        self.bends = np.zeros(len(self.low)), np.zeros(len(self.high))
        self.inverse: Floats = np.zeros((self.n_thresholds, self.n_thresholds))

    def evaluate(
        self, s: Floats, values: bool = True, n_threads: int = 0
    ) -> tuple[Floats, Floats, Floats]:
        n_values = self.n_queries if values else 0
        out = np.zeros(n_values), np.zeros(self.n_docs), np.zeros(self.n_docs)
        if self.n_thresholds == 0:
            return out
        scores = s[self.rows]
        theta = self._best(scores)
        below, above, hessian = self._sides(scores, theta)
        loss, gradient, curvature = (np.zeros(len(scores)) for _ in range(3))
        for column, low, high in zip((loss, gradient, curvature), below, above, strict=True):
            column[self.low] += low
            column[self.high] += -high if column is gradient else high
        if self.gaps:
            loss += self.weight * self._gap_terms(theta)[0][self.level]
        self.bends, self.inverse = (below[2], above[2]), np.asarray(np.linalg.inv(hessian))
        # What the thresholds give way: C inverse C^T on the diagonal, C with two entries per row.
        full = np.zeros((len(scores), 2))
        full[self.low, 0], full[self.high, 1] = below[2], above[2]
        over = np.minimum(self.level, self.n_thresholds - 1)
        under = np.maximum(self.level - 1, 0)
        curvature -= full[:, 0] ** 2 * self.inverse[over, over]
        curvature -= full[:, 1] ** 2 * self.inverse[under, under]
        curvature -= 2 * full[:, 0] * full[:, 1] * self.inverse[over, under]
        if values:
            out[0][:] = _sums(self.query, loss, self.n_queries)
        out[1][self.rows], out[2][self.rows] = gradient, np.maximum(curvature, 0.0)
        return out

    def product(self, v: Floats, n_threads: int = 0) -> Floats:
        out = np.zeros(self.n_docs)
        if self.n_thresholds == 0:
            return out
        moved, k = v[self.rows], self.n_thresholds
        low, high = self.bends
        flow_low, flow_high = low * moved[self.low], high * moved[self.high]
        pull = _sums(self.over, flow_low, k) + _sums(self.under, flow_high, k)
        give = self.inverse @ pull
        product = np.zeros(len(self.rows))
        product[self.low] += flow_low - low * give[self.over]
        product[self.high] += flow_high - high * give[self.under]
        out[self.rows] = product
        return out

    def _sides(self, s: Floats, theta: Floats) -> tuple[Any, Any, Floats]:
        """Weighted cost and derivatives under and over the thresholds; Hessian in the thresholds."""
        low, high, k = self.low, self.high, self.n_thresholds
        below = [self.weight[low] * part for part in self.cost(s[low] - theta[self.over])]
        above = [self.weight[high] * part for part in self.cost(theta[self.under] - s[high])]
        diagonal: Floats = _sums(self.over, below[2], k) + _sums(self.under, above[2], k)
        hessian = np.zeros((k, k))
        if self.gaps and k > 1:
            bend = self.mass[1:-1] * self._gap_terms(theta)[2][1:-1]
            hessian[range(k - 1), range(1, k)] = hessian[range(1, k), range(k - 1)] = -bend
            diagonal[1:] += bend
            diagonal[:-1] += bend
        # A threshold that nothing pulls at stays where it is.
        hessian[np.diag_indices(k)] = np.where(diagonal > 0, diagonal, 1.0)
        return below, above, hessian

    def _gap_terms(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """``-log(1 - exp(-gap))`` of each label and its derivatives in the gap; 0 at both ends."""
        gap = np.diff(theta)
        rest = -np.expm1(-gap)
        inner = -np.log(rest), -np.exp(-gap) / rest, np.exp(-gap) / rest**2
        loss, slope, bend = (np.concatenate([[0.0], part, [0.0]]) for part in inner)
        return loss, slope, bend

    def _best(self, s: Floats) -> Floats:
        """The best thresholds, by damped Newton steps from a start that depends on ``s`` alone."""
        k, middle = self.n_thresholds, float(np.average(s, weights=self.weight + 1e-300))
        if self.gaps:
            share = np.cumsum(self.mass + 1e-9 * self.mass.sum() + 1e-300)
            share = share[:-1] / share[-1]
            theta = middle + np.log(share) - np.log1p(-share)
        else:
            theta = np.full(k, middle)
        value, slope, hessian = self._objective(s, theta)
        for _ in range(_STEPS):
            step = -np.linalg.solve(hessian, slope)
            promise = -float(slope @ step)
            if not promise > 1e-15 * (abs(value) + 1e-300):
                break
            size = 1.0
            while size > 1e-10:
                trial = self._objective(s, theta + size * step)
                if trial[0] <= value - 1e-4 * size * promise + 1e-15 * abs(value):
                    break
                size /= 2
            else:
                break
            theta = theta + size * step
            value, slope, hessian = trial
        # One more step: the gradient's error is that of the thresholds, the value's its square.
        last: Floats = theta - np.linalg.solve(hessian, slope)
        ordered = not self.gaps or bool((np.diff(last) > 0).all())
        return last if ordered and np.isfinite(last).all() else theta

    def _objective(self, s: Floats, theta: Floats) -> tuple[float, Floats, Floats]:
        """Value, gradient and Hessian in the thresholds; infinite where they are out of order."""
        k = self.n_thresholds
        if self.gaps and k > 1 and not (np.diff(theta) > 0).all():
            return np.inf, np.zeros(k), np.eye(k)
        below, above, hessian = self._sides(s, theta)
        value = float(below[0].sum() + above[0].sum())
        slope = _sums(self.under, above[1], k) - _sums(self.over, below[1], k)
        if self.gaps and k > 1:
            loss, bent, _ = self._gap_terms(theta)
            value += float((self.mass * loss).sum())
            pull = (self.mass * bent)[1:-1]
            slope[1:] += pull
            slope[:-1] -= pull
        return value, slope, hessian
