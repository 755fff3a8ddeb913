r"""The quadratic programme of cutting planes, by an interior point method.

``min over w, xi >= 0 of  1/2 |w|^2 + C sum_q xi_q   with   xi_q >= b_r - v_r . w``   for the planes
``r`` of each block ``q``; its dual is ``max b.alpha - 1/2 |V' alpha|^2`` over ``alpha >= 0`` with
``sum of alpha over a block <= C``. Newton's equations are reduced to one system of the size of
``w``, whose matrix is ``I`` plus the planes' weighted scatter about the mean of their block: no
digits are lost, and a thousand planes of 50 features take milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from rankwise._newton import Floats

_ITERATIONS = 80
_TO_BOUNDARY = 0.995


@dataclass(frozen=True)
class PlaneSolution:
    """``w``, the heights ``xi`` of the blocks, the planes' multipliers and a proved lower bound."""

    w: Floats
    height: Floats
    alpha: Floats
    bound: float


def solve_planes(
    V: Floats, b: Floats, block: NDArray[np.int64], n_blocks: int, C: float, tol: float
) -> PlaneSolution:
    """The minimum to a duality gap of ``tol`` times the objective.

    Parameters
    ----------
    V : float64 array of shape (n_planes, n)
    b : float64 array of shape (n_planes,)
    block : int64 array of shape (n_planes,)
    n_blocks : int
    C : float
        Above 0.
    tol : float
    """
    full = V
    if V.shape[0] < V.shape[1]:
        # In the span of the planes: an n_planes x n_planes problem with the same inner products.
        values, vectors = np.linalg.eigh(V @ V.T)
        V = vectors * np.sqrt(np.maximum(values, 0.0))
    m, n = V.shape
    count = np.bincount(block, minlength=n_blocks)
    # Sums over the planes of a block.
    order = np.argsort(block, kind="stable")
    starts = np.concatenate([[0], np.cumsum(count)])
    picked = sp.csr_matrix((np.zeros(m), order, starts), shape=(n_blocks, m))
    # A point inside: alpha and the multiplier of xi >= 0 share C evenly.
    beta = C / (count + 1.0)
    alpha = beta[block]
    w = V.T @ alpha
    room = b - V @ w
    height = np.zeros(n_blocks)
    np.maximum.at(height, block, room)
    height += 0.1 + 0.1 * np.abs(height)
    for _ in range(_ITERATIONS):
        slack = np.maximum(height[block] - room, 1e-300)
        gap = float(slack @ alpha + height @ beta)
        value = 0.5 * float(w @ w) + C * float(height.sum())
        if gap <= tol * abs(value) or value < 1e-300:
            break
        mean_gap = gap / (m + n_blocks)
        D, D0 = alpha / slack, beta / height
        mass = np.bincount(block, D, minlength=n_blocks) + D0
        picked.data[:] = D[order]
        centre = np.asarray(picked @ V) / mass[:, None]
        about = np.sqrt(D)[:, None] * (V - centre[block])
        matrix = np.eye(n) + about.T @ about + (D0[:, None] * centre).T @ centre
        factor = cho_factor(matrix, lower=True, check_finite=False)
        rest = C - np.bincount(block, alpha, minlength=n_blocks) - beta
        lag = w - V.T @ alpha

        newton = _Newton(V, block, slack, height, D, D0, mass, centre, factor, rest, lag)
        _, dheight, dslack, dalpha, dbeta = newton.step(-slack * alpha, -height * beta)
        p = _reach(slack, dslack, height, dheight)
        d = _reach(alpha, dalpha, beta, dbeta)
        reached = float((slack + p * dslack) @ (alpha + d * dalpha))
        reached += float((height + p * dheight) @ (beta + d * dbeta))
        aim = mean_gap * min(1.0, max(reached / gap, 0.0)) ** 3
        dw, dheight, dslack, dalpha, dbeta = newton.step(
            aim - slack * alpha - dslack * dalpha, aim - height * beta - dheight * dbeta
        )
        p = min(1.0, _TO_BOUNDARY * _reach(slack, dslack, height, dheight))
        d = min(1.0, _TO_BOUNDARY * _reach(alpha, dalpha, beta, dbeta))
        # w belongs to both sides; equal steps keep the problem linear.
        t = min(p, d)
        w, height = w + t * dw, np.maximum(height + t * dheight, 1e-300)
        alpha, beta = np.maximum(alpha + t * dalpha, 1e-300), np.maximum(beta + t * dbeta, 1e-300)
        room = b - V @ w
    over = np.bincount(block, alpha, minlength=n_blocks) / C
    alpha = alpha / np.maximum(over, 1.0)[block]
    best = full.T @ alpha
    bound = float(b @ alpha - 0.5 * best @ best)
    return PlaneSolution(best, height, alpha, bound)


@dataclass(frozen=True)
class _Newton:
    """Newton's equations at a point, with everything but ``w`` eliminated."""

    V: Floats
    block: NDArray[np.int64]
    slack: Floats
    height: Floats
    D: Floats
    D0: Floats
    mass: Floats
    centre: Floats
    factor: Any
    rest: Floats
    lag: Floats

    def step(self, rc: Floats, rc0: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Changes of w, the heights, the slacks and both kinds of multipliers.

        ``rc`` and ``rc0`` are what the products of slacks and multipliers should change by.
        """
        h, h0 = rc / self.slack, rc0 / self.height
        sums = np.bincount(self.block, h, minlength=len(self.mass))
        lifted = (sums + h0 - self.rest) / self.mass
        right = self.V.T @ (h - self.D * lifted[self.block]) - self.lag
        dw = cho_solve(self.factor, right, check_finite=False)
        dheight = lifted - self.centre @ dw
        dslack = self.V @ dw + dheight[self.block]
        return dw, dheight, dslack, h - self.D * dslack, h0 - self.D0 * dheight


def _reach(x: Any, dx: Any, z: Any, dz: Any) -> float:
    """The longest step, at most 1, that leaves both positive."""
    longest = 1.0
    for values, change in ((x, dx), (z, dz)):
        down = change < 0
        if down.any():
            longest = min(longest, float((values[down] / -change[down]).min()))
    return longest
