r"""The hinge of pairs, ``sum of max(0, t)`` with ``t = 1 - (s_i - s_j)``, to a stated duality gap.

The hinge has a corner, so Newton steps do not apply to it. Its corner is replaced by a parabola
of width ``mu`` (:class:`SmoothHinge` of the core); the minimum of the rounded problem is found by
truncated Newton steps, and ``mu`` shrinks, each time from the last minimum, until the gap is small
enough. The slopes ``a`` of the rounded hinge lie between 0 and 1, so they are a feasible point of
the dual problem of the hinge itself, and every step gives a lower bound. With penalty ``R`` and
``u = -factor X^T (slopes)``::

    hinge objective - bound = R(v) + R*(u) - u.v  +  factor * sum over pairs of (t - a t)

for the L2 penalty ``|u - ridge v|^2 / (2 ridge)`` and the slack of the pairs inside the parabola,
both sums of squares: no digit is lost. The number of those pairs falls with ``mu`` as well, so the
gap falls like ``mu^2`` on large data, where cutting planes (Joachims 2006) need hundreds of passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rankwise._newton import (
    DENSE_UP_TO,
    Floats,
    Objective,
    Search,
    Solution,
    dot,
    minimize,
    minimize_shrunken,
)

# At zero weights every pair (t = 1) is inside the first parabola.
FIRST_WIDTH, _LAST_WIDTH = 1.5, 1e-10
# Of the gap, what may be left over from minimising the rounded problem.
_SHARE = 0.1
_STALLED = 5  # rounds that bring nothing: rounding errors are all there is


class HingeProblem(Objective, Protocol):
    """``factor * kernel(scores) + ridge / 2 |w|^2`` with a :class:`SmoothHinge` as its kernel."""

    kernel: Any
    factor: float
    ridge: float
    inverse: Floats
    n: int

    @property
    def line_search(self) -> Search | None: ...

    def matrix(self) -> Floats: ...


@dataclass(frozen=True)
class _Best:
    """The best weights met, the hinge objective there, and the best lower bound met."""

    w: Floats
    value: float
    bound: float
    n_iter: int
    gradient_norm: float

    @property
    def gap(self) -> float:
        """Relative to the objective."""
        if not np.isfinite(self.bound):
            return np.inf
        return max(self.value - self.bound, 0.0) / self.value if self.value > 0 else 0.0


def minimize_hinge(
    problem: HingeProblem,
    start: Floats,
    l1: Floats | None,
    *,
    first: float,
    tol: float,
    max_iter: int,
    width: float = FIRST_WIDTH,
) -> tuple[Solution, float]:
    """Minimises ``factor * hinge(X w) + ridge / 2 |v|^2 + sum of l1 |v|`` to a relative gap of
    ``tol``; returns the solution and the gap reached. ``width`` is where the rounding begins: as
    it stands, wide enough for zero weights. The kernel must be a :class:`SmoothHinge`.
    """
    best, bound, taken = _Best(start, np.inf, -np.inf, 0, 1.0), -np.inf, 0
    w, rounding = start, 1e-3
    # The curvature of many pairs hardly changes with the width, so what was learnt of it stays.
    matrix = None
    if l1 is not None and problem.n <= DENSE_UP_TO:
        problem.kernel.set_width(width)
        problem.evaluate(start)
        matrix = problem.matrix()
    last: tuple[Floats, float] | None = None
    last_width: float | None = None
    stalled, last_gap = 0, np.inf
    while True:
        problem.kernel.set_width(width)
        begin = w if last is None else _ahead(problem, w, l1, *last)
        solution = _rounded(problem, begin, l1, matrix, rounding, tol, first, max_iter - taken)
        before, w, taken = w, solution.w, taken + solution.n_iter
        value, gap, kept = _gap(problem, w, l1)
        bound = max(bound, value - gap)
        if value < best.value:
            best = _Best(w, value, bound, taken, solution.gradient_norm)
        best = _Best(best.w, best.value, bound, taken, best.gradient_norm)
        stalled = stalled + 1 if best.gap > 0.9 * last_gap else 0
        last_gap = best.gap
        if best.gap <= tol or taken >= max_iter or width <= _LAST_WIDTH or stalled > _STALLED:
            return Solution(best.w, best.value, best.n_iter, best.gradient_norm), best.gap
        # The gap falls with the width, at best like its square.
        wanted = 0.7 * np.sqrt(tol * value / gap) if gap > 0 else 1.0
        if kept > _SHARE * gap and rounding > 1e-9:
            rounding *= 0.1
            continue
        thinner = max(width * min(max(wanted, 0.05), 0.3), _LAST_WIDTH)
        # Of the change per unit of width, what the next change of width would bring.
        if last_width is not None:
            last = w - before, (width - thinner) / (last_width - width)
        last_width, width = width, thinner


def _ahead(
    problem: HingeProblem, w: Floats, l1: Floats | None, change: Floats, share: float
) -> Floats:
    """The minimum moves almost linearly with the width: one step ahead, where that is lower.

    Without it, the pairs inside the parabola would all fall out of a thinner one, and their
    curvature with them.
    """
    values = []
    points = [w, w + share * change]
    for point in points:
        value, _ = problem.evaluate(point)
        values.append(value + (0.0 if l1 is None else dot(l1, np.abs(point))))
    return points[int(np.argmin(values))]


def _rounded(
    problem: HingeProblem,
    start: Floats,
    l1: Floats | None,
    matrix: Floats | None,
    rounding: float,
    tol: float,
    first: float,
    max_iter: int,
) -> Solution:
    """The minimum of the rounded problem, as exact as its own gap deserves."""
    steps = max(max_iter, 1)
    if l1 is not None:
        return minimize_shrunken(
            problem, start, l1, matrix, first=first, tol=1e-2 * rounding, max_iter=steps
        )

    def done(gradient: Floats) -> bool:
        left = problem.dot(gradient, gradient) / (2 * problem.ridge)
        slack = problem.factor * problem.kernel.slack()
        wanted = tol * problem.factor * problem.kernel.hinge()
        return bool(left <= 0.5 * _SHARE * max(slack, wanted))

    return minimize(
        problem, start, first=first, tol=0.0, max_iter=steps, done=done, search=problem.line_search
    )


def _gap(problem: HingeProblem, w: Floats, l1: Floats | None) -> tuple[float, float, float]:
    """The hinge objective, its duality gap, and the part of it the penalty's side is to blame for."""
    _, gradient = problem.evaluate(w)
    kernel, factor, ridge = problem.kernel, problem.factor, problem.ridge
    hinge, slack = factor * kernel.hinge(), factor * kernel.slack()
    if l1 is None:
        kept = problem.dot(gradient, gradient) / (2 * ridge)
        return hinge + 0.5 * ridge * problem.dot(w, w), kept + slack, kept
    penalty = 0.5 * ridge * dot(w, w) + dot(l1, np.abs(w))
    u = ridge * w - gradient
    over = np.maximum(np.abs(u) - l1, 0.0)
    if ridge > 0:
        kept = penalty + dot(over, over) / (2 * ridge) - dot(u, w)
        return hinge + penalty, kept + slack, kept
    # Without a ridge the dual point must obey |u| <= l1: all slopes are made smaller alike.
    used = problem.inverse > 0
    theta = min(1.0, float((l1[used] / np.maximum(np.abs(u[used]), 1e-300)).min(initial=1.0)))
    kept = penalty - theta * dot(u, w) + (1 - theta) * (hinge - slack)
    return hinge + penalty, kept + slack, kept
