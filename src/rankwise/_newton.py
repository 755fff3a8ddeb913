"""Minimising a function of the weights, smooth or with an L1 penalty beside it.

=============================  ===================================================================
:func:`minimize`               truncated Newton in a trust region: needs Hessian products
:func:`minimize_by_gradient`   SciPy's L-BFGS: needs the gradient only
:func:`minimize_shrunken`      with an L1 penalty: exact zeros, to a stated distance from optimality
=============================  ===================================================================

Each Newton step minimises the quadratic model inside a ball by preconditioned conjugate gradients,
stopped early (Steihaug 1983), and needs only products with the Hessian. The ball is measured in the
preconditioner's norm and grows or shrinks with how well the model predicted. Nothing here calls
BLAS: sums are in one order, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise import _core

Floats = NDArray[np.float64]


class Objective(Protocol):
    """A function of the weights. Products are with the Hessian at the point last evaluated;
    gradients and products belong to the inner product ``dot``.
    """

    def dot(self, a: Floats, b: Floats) -> float: ...

    def evaluate(self, w: Floats) -> tuple[float, Floats]: ...

    def product(self, u: Floats) -> Floats: ...

    def preconditioner(self) -> Callable[[Floats], Floats]: ...


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped: the weights, the value, how many steps it took, and the norm of the
    gradient (with an L1 penalty: of the subgradient of smallest norm).
    """

    w: Floats
    value: float
    n_iter: int
    gradient_norm: float


def dot(a: Floats, b: Floats) -> float:
    """The inner product, summed in one order."""
    return float((a * b).sum())


def norm(a: Floats) -> float:
    """The Euclidean norm; infinity where an entry is not finite."""
    largest = float(np.abs(a).max(initial=0.0))
    if not np.isfinite(largest):
        return np.inf
    return largest * float(np.sqrt(((a / largest) ** 2).sum())) if largest > 0 else 0.0


# From a point along a step: how much of the step to go, and value and gradient there.
Search = Callable[[Floats, Floats, float, Floats], tuple[float, float, Floats]]

# A step is taken when it brings a thousandth of what the model promised; the ball shrinks below a
# quarter and grows above three quarters of it.
_TAKEN, _POOR, _GOOD = 1e-3, 0.25, 0.75
_CG_TOLERANCE = 0.1
_CG_SEARCH_TOLERANCE = 0.3  # where the length of a step is searched for, rougher directions do
_TRIES = 8  # steps where values no longer tell better from worse


def minimize(
    objective: Objective,
    start: Floats,
    *,
    first: float,
    tol: float,
    max_iter: int,
    done: Callable[[Floats], bool] | None = None,
    search: Search | None = None,
) -> Solution:
    """Stops where the norm of the gradient is at most ``tol * first`` (or where ``done(gradient)``
    says so), after ``max_iter`` steps, or where rounding leaves nothing to gain.

    With ``search(w, step, value, gradient)``, for convex functions, there is no ball: it says how
    much of each step to go.
    """

    def length_of(a: Floats) -> float:
        return norm(a) if objective.dot is dot else float(np.sqrt(max(objective.dot(a, a), 0.0)))

    w = start
    value, gradient = objective.evaluate(w)
    size = length_of(gradient)
    precondition = objective.preconditioner()
    radius, loosest = np.inf, _CG_SEARCH_TOLERANCE
    if search is None:
        radius = np.sqrt(max(objective.dot(gradient, precondition(gradient)), 0.0))
        loosest = _CG_TOLERANCE
    taken = blind = 0
    while size > tol * first and taken < max_iter and not (done is not None and done(gradient)):
        # The closer the end, the more exact the step: quadratic convergence.
        exactness = min(loosest, np.sqrt(size / first))
        if search is not None:
            # No more exact than it takes to arrive: products are what the time goes into.
            exactness = max(exactness, 0.5 * tol * first / size)
        step, predicted, length = _truncated_step(
            objective, gradient, precondition, radius, exactness
        )
        taken += 1
        if search is None:
            new_value, new_gradient = objective.evaluate(w + step)
        else:
            t, new_value, new_gradient = search(w, step, value, gradient)
            step = t * step
        new_size = length_of(new_gradient)
        noise = 1e-14 * abs(value)
        if search is not None:
            # The step has the length it deserves; one that brings nothing would come again.
            better = new_value < value or new_size < size
            blind += 0 if better else _TRIES + 1
        else:
            if predicted <= noise:
                # Values no longer tell the points apart; the gradient still may.
                better = new_size < size
                agreement = 1.0 if better else -1.0
            else:
                agreement = (value - new_value) / predicted if np.isfinite(new_value) else -1.0
                better = agreement > _TAKEN
            if agreement < _POOR:
                radius = 0.25 * min(length, radius)
            elif agreement > _GOOD:
                radius = max(radius, 3 * length)
        if better:
            w, value, gradient, size = w + step, new_value, new_gradient, new_size
        else:
            objective.evaluate(w)  # products are again those of the point we stay at
        blind += predicted <= noise
        if blind > _TRIES:
            break
    return Solution(w, value, taken, size)


def minimize_by_gradient(
    objective: Objective, start: Floats, *, first: float, tol: float, max_iter: int
) -> Solution:
    """The same by SciPy's L-BFGS, for functions without Hessian products."""
    largest = tol * first / np.sqrt(len(start))
    w, taken = _lbfgs(objective.evaluate, start, None, largest, max_iter)
    value, gradient = objective.evaluate(w)
    return Solution(w, value, taken, norm(gradient))


def _lbfgs(
    evaluate: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    bounds: list[tuple[float | None, float | None]] | None,
    largest: float,
    max_iter: int,
) -> tuple[Floats, int]:
    """Where SciPy's L-BFGS stops, by the largest component of the gradient, and its steps."""
    from scipy.optimize import minimize as scipy_minimize

    found = scipy_minimize(
        evaluate,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={
            "maxiter": max_iter,
            "maxfun": 20 * max_iter,
            "maxcor": 20,
            "ftol": 0.0,
            "gtol": largest,
        },
    )
    return np.asarray(found.x, dtype=np.float64), int(found.nit)


def _truncated_step(
    objective: Objective,
    gradient: Floats,
    precondition: Callable[[Floats], Floats],
    radius: float,
    exactness: float,
) -> tuple[Floats, float, float]:
    """A step inside the ball, the decrease its quadratic model promises, and its length in the
    preconditioner's norm.
    """
    dot = objective.dot
    step = np.zeros_like(gradient)
    residual = -gradient
    z = precondition(residual)
    direction = z
    rz = dot(residual, z)
    # Squared lengths and the angle between step and direction, in the preconditioner's norm,
    # follow from the recurrences of conjugate gradients.
    step2, angle, direction2 = 0.0, 0.0, rz
    goal = exactness**2 * rz
    for _ in range(max(2 * gradient.shape[-1], 20)):
        bent = objective.product(direction)
        curvature = dot(direction, bent)
        t = rz / curvature if curvature > 0 else np.inf
        if curvature <= 0 or step2 + t * (2 * angle + t * direction2) >= radius**2:
            root = np.sqrt(max(angle**2 + direction2 * (radius**2 - step2), 0.0))
            t = (radius**2 - step2) / (angle + root)
            step = step + t * direction
            residual = residual - t * bent
            step2 = radius**2
            break
        step = step + t * direction
        residual = residual - t * bent
        step2 += t * (2 * angle + t * direction2)
        z = precondition(residual)
        rz, old = dot(residual, z), rz
        if rz <= goal:
            break
        beta = rz / old
        direction = z + beta * direction
        angle = beta * (angle + t * direction2)
        direction2 = rz + beta**2 * direction2
    # model(step) = g.step + step.H.step / 2 and H step = -g - residual
    predicted = -0.5 * (dot(gradient, step) - dot(residual, step))
    return step, predicted, float(np.sqrt(max(step2, 0.0)))


# --- with an L1 penalty ----------------------------------------------------------------------

DENSE_UP_TO = 512  # variables for which an L1 penalty keeps a matrix


def least_subgradient(gradient: Floats, w: Floats, l1: Floats) -> Floats:
    """Of the subgradients of ``f(w) + sum of l1 |w|`` the one of smallest norm: 0 at the optimum."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
    return np.where(w == 0, at_zero, gradient + l1 * np.sign(w))


def minimize_shrunken(
    objective: Objective,
    start: Floats,
    l1: Floats,
    matrix: Floats | None,
    *,
    first: float,
    tol: float,
    max_iter: int,
) -> Solution:
    """Minimises ``f(w) + sum of l1 |w|`` to a least subgradient of norm ``tol * first``.

    With a ``matrix`` (an approximate Hessian at the start): proximal quasi-Newton steps. Each step
    minimises the quadratic model plus the penalty by coordinate descent; the model learns from the
    gradients met (BFGS). Without: L-BFGS on the positive and negative parts of the weights.
    """
    if matrix is None:
        return _split_parts(objective, start, l1, first=first, tol=tol, max_iter=max_iter)
    w = start
    smooth, gradient = objective.evaluate(w)
    value = smooth + dot(l1, np.abs(w))
    size = norm(least_subgradient(gradient, w, l1))
    taken = 0
    while size > tol * first and taken < max_iter:
        taken += 1
        # In units of the model's own decrease, far below what the step is worth.
        exactness = 1e-3 * size / np.sqrt(matrix.diagonal().max())
        step = _core.shrink_step(matrix, gradient, w, l1, exactness, 1000)
        promised = -dot(gradient, step) - dot(l1, np.abs(w + step) - np.abs(w))
        t, better = 1.0, False
        while promised > 0 and t > 1e-10:
            # A full step lands on exact zeros.
            to = w + step if t == 1 else w + t * step
            smooth, new_gradient = objective.evaluate(to)
            new_value = smooth + dot(l1, np.abs(to))
            new_size = norm(least_subgradient(new_gradient, to, l1))
            noise = t * promised <= 1e-13 * abs(value)
            better = new_size < size if noise else new_value <= value - 1e-4 * t * promised
            if better or noise:
                break
            t *= 0.5
        if not better:
            break
        _learn(matrix, to - w, new_gradient - gradient)
        w, value, gradient, size = to, new_value, new_gradient, new_size
    objective.evaluate(w)
    return Solution(w, value, taken, size)


def _learn(matrix: Floats, step: Floats, bent: Floats) -> None:
    """BFGS: the matrix afterwards maps ``step`` to ``bent`` and is still positive definite."""
    curvature = dot(step, bent)
    if curvature <= 1e-12 * norm(step) * norm(bent):
        return
    old = (matrix * step).sum(axis=1)
    matrix += np.multiply.outer(bent / curvature, bent)
    matrix -= np.multiply.outer(old / dot(step, old), old)


def _split_parts(
    objective: Objective, start: Floats, l1: Floats, *, first: float, tol: float, max_iter: int
) -> Solution:
    """L-BFGS over ``w = p - q`` with ``p, q >= 0``, where the penalty is linear."""
    n = len(start)
    free = l1 == 0  # no penalty: p alone, of either sign

    def evaluate(parts: Floats) -> tuple[float, Floats]:
        p, q = parts[:n], parts[n:]
        value, gradient = objective.evaluate(p - q)
        return value + dot(l1, p + q), np.concatenate([gradient + l1, l1 - gradient])

    positive = np.where(free, start, np.maximum(start, 0))
    parts, taken = _lbfgs(
        evaluate,
        np.concatenate([positive, np.maximum(-start, 0) * ~free]),
        [(None if f else 0, None) for f in free] + [(0, 0 if f else None) for f in free],
        tol * first / np.sqrt(n),
        max_iter,
    )
    w = parts[:n] - parts[n:]
    smooth, gradient = objective.evaluate(w)
    size = norm(least_subgradient(gradient, w, l1))
    return Solution(w, smooth + dot(l1, np.abs(w)), taken, size)
