"""Minimising a smooth convex function of the weights: truncated Newton in a trust region.

Each step minimises the quadratic model inside a ball by preconditioned conjugate gradients,
stopped early (Steihaug 1983), and needs only products with the Hessian. The ball is measured in the
preconditioner's norm and grows or shrinks with how well the model predicted. Where the function
gives no Hessian products, SciPy's L-BFGS takes over. Nothing here calls BLAS: sums are in one
order, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Objective(Protocol):
    """A function of the weights. Products are with the Hessian at the point last evaluated."""

    def evaluate(self, w: Floats) -> tuple[float, Floats]: ...

    def product(self, u: Floats) -> Floats: ...

    def preconditioner(self) -> Callable[[Floats], Floats]: ...


@dataclass(frozen=True)
class Solution:
    """Where the solver stopped: the weights, the value, how many steps, and the gradient's norm
    relative to the norm at zero weights.
    """

    w: Floats
    value: float
    n_iter: int
    gradient_norm: float


def dot(a: Floats, b: Floats) -> float:
    return float((a * b).sum())


def norm(a: Floats) -> float:
    largest = float(np.abs(a).max(initial=0.0))
    return largest * float(np.sqrt(((a / largest) ** 2).sum())) if largest > 0 else 0.0


# A step is taken when it brings a thousandth of what the model promised; the ball shrinks below a
# quarter and grows above three quarters of it.
_TAKEN, _POOR, _GOOD = 1e-3, 0.25, 0.75
_CG_TOLERANCE = 0.1


def minimize(objective: Objective, n: int, *, tol: float, max_iter: int) -> Solution:
    """Starts at zero and stops where the norm of the gradient is at most ``tol`` times its
    first value, after ``max_iter`` steps, or where rounding leaves nothing to gain.
    """
    w = np.zeros(n)
    value, gradient = objective.evaluate(w)
    first = size = norm(gradient)
    if first == 0:
        return Solution(w, value, 0, 0.0)
    precondition = objective.preconditioner()
    radius = np.sqrt(dot(gradient, precondition(gradient)))
    taken = 0
    while size > tol * first and taken < max_iter:
        # The closer the end, the more exact the step: quadratic convergence.
        exactness = min(_CG_TOLERANCE, np.sqrt(size / first))
        step, predicted, length = _truncated_step(
            objective.product, gradient, precondition, radius, exactness
        )
        taken += 1
        new_value, new_gradient = objective.evaluate(w + step)
        new_size = norm(new_gradient)
        noise = 1e-14 * abs(value)
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
        elif predicted <= noise:
            break
        else:
            objective.evaluate(w)  # products are again those of the point we stay at
    return Solution(w, value, taken, size / first)


def minimize_by_gradient(objective: Objective, n: int, *, tol: float, max_iter: int) -> Solution:
    """The same by SciPy's L-BFGS, for functions without Hessian products."""
    from scipy.optimize import minimize as scipy_minimize

    _, gradient = objective.evaluate(np.zeros(n))
    first = norm(gradient)
    if first == 0:
        return minimize(objective, n, tol=tol, max_iter=max_iter)
    found = scipy_minimize(
        objective.evaluate,
        np.zeros(n),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": max_iter,
            "maxfun": 20 * max_iter,
            "maxcor": 20,
            "ftol": 0.0,
            "gtol": tol * first / np.sqrt(n),  # SciPy compares the largest component
        },
    )
    w = np.asarray(found.x, dtype=np.float64)
    value, gradient = objective.evaluate(w)
    return Solution(w, value, int(found.nit), norm(gradient) / first)


def _truncated_step(
    product: Callable[[Floats], Floats],
    gradient: Floats,
    precondition: Callable[[Floats], Floats],
    radius: float,
    exactness: float,
) -> tuple[Floats, float, float]:
    """A step inside the ball, the decrease its quadratic model promises, and its length in the
    preconditioner's norm.
    """
    step = np.zeros_like(gradient)
    residual = -gradient
    z = precondition(residual)
    direction = z
    rz = dot(residual, z)
    # Squared lengths and the angle between step and direction, in the preconditioner's norm,
    # follow from the recurrences of conjugate gradients.
    step2, angle, direction2 = 0.0, 0.0, rz
    goal = exactness * np.sqrt(rz)
    for _ in range(max(2 * len(gradient), 20)):
        bent = product(direction)
        curvature = dot(direction, bent)
        t = rz / curvature if curvature > 0 else np.inf
        if curvature <= 0 or step2 + t * (2 * angle + t * direction2) >= radius**2:
            root = np.sqrt(angle**2 + direction2 * (radius**2 - step2))
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
        if np.sqrt(rz) <= goal:
            break
        beta = rz / old
        direction = z + beta * direction
        angle = beta * (angle + t * direction2)
        direction2 = rz + beta**2 * direction2
    # model(step) = g.step + step.H.step / 2 and H step = -g - residual
    predicted = -0.5 * (dot(gradient, step) - dot(residual, step))
    return step, predicted, float(np.sqrt(step2))
