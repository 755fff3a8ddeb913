r"""Linear models of a piecewise linear loss: cutting planes, to a proved duality gap.

The objective is ``1/2 |v|^2 + C sum over queries of l_q(v)``. Where the most violated rankings of a
model are known, every ``l_q`` lies above a plane that touches it there; minimising the penalty over
all planes met so far gives the next model and a lower bound. With one plane per query and round
("queries") few rounds are needed; with the sum of them ("bundle") the programme stays small.
"stochastic" looks at one query at a time (block-coordinate Frank-Wolfe), for lists that are too
many for either.

A loss whose reference moves with the scores is a difference of convex functions: its reference is
held where it is, the convex problem solved, and held again at the new model, which never makes the
objective larger. What the planes look like then does not depend on the reference, so they are kept
from round to round, and from one C to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise._linear_problem import LinearProblem
from rankwise._newton import Floats, dot
from rankwise._planes import solve_planes

SOLVERS = ("queries", "bundle", "stochastic")
_HELD_ROUNDS = 30
_IDLE = 4  # rounds after which a plane without a multiplier is dropped
_USED = 1e-3  # share of C that makes a plane one of those that carry the optimum
_MOST_QUERIES = 20_000  # planes of so many queries are kept apart; beyond, they are summed


@dataclass
class Planes:
    """Planes of the part of the loss that does not depend on the reference, kept between fits."""

    V: Floats
    b: Floats = field(default_factory=lambda: np.zeros(0))
    block: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    idle: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, V: Floats, b: Floats, block: NDArray[np.int64]) -> None:
        self.V = np.concatenate([self.V, V])
        self.b = np.concatenate([self.b, b])
        self.block = np.concatenate([self.block, block])
        self.idle = np.concatenate([self.idle, np.zeros(len(b), np.int64)])

    def drop_idle(self, active: NDArray[np.bool_]) -> None:
        self.idle = np.where(active, 0, self.idle + 1)
        kept = self.idle <= _IDLE
        if not kept.all():
            self.V, self.b = self.V[kept], self.b[kept]
            self.block, self.idle = self.block[kept], self.idle[kept]


@dataclass(frozen=True)
class Cut:
    """What a solver found."""

    v: Floats
    objective: float
    bound: float
    n_rounds: int
    n_planes: int
    converged: bool = True

    @property
    def gap(self) -> float:
        """How far the objective may be above the minimum, relative to it."""
        excess = self.objective - self.bound
        return max(0.0, excess) / self.objective if self.objective > 0 else 0.0


def minimize_cut(
    problem: LinearProblem, solver: str, C: float, start: Floats, tol: float, max_iter: int,
    convex: bool, planes: Planes | None, rng: np.random.Generator,
) -> Cut:  # fmt: skip
    """The minimum, or for a loss that is not convex a point no held reference improves.

    ``planes`` are those of earlier fits on the same problem with the same solver, and get new ones.
    """
    held = np.zeros(problem.lists.n_docs)
    if solver == "queries" and problem.lists.n_queries > _MOST_QUERIES:
        solver = "bundle"

    def convex_part(v: Floats, kept: Planes | None) -> Cut:
        reference = _Held(problem, held)
        if solver == "stochastic":
            return _by_query(problem, reference, C, v, tol, max_iter, rng)
        return _by_planes(problem, reference, C, v, tol, max_iter, solver == "bundle", kept)

    if convex:
        return convex_part(start, planes)
    v, rounds = start, 0
    best = objective(problem, C, v)
    found = Cut(v, best, 0.0, 0, 0)
    for _ in range(_HELD_ROUNDS):
        held = problem.kernel.hold(scores(problem, v))
        try:
            found = convex_part(v, planes)
        finally:
            problem.kernel.release()
        rounds += found.n_rounds
        value = objective(problem, C, found.v)
        if not value < best - tol * abs(best):
            break
        v, best = found.v, value
    if value <= best:
        v, best = found.v, value
    # The gap is that of the last convex problem.
    bound = best - max(0.0, found.objective - found.bound)
    return Cut(v, best, bound, rounds, found.n_planes, found.converged)


def scores(problem: LinearProblem, v: Floats) -> Floats:
    _, w, shift = problem._unpack(v)
    return np.asarray(problem.features.scores(w)) + shift


def objective(problem: LinearProblem, C: float, v: Floats) -> float:
    """The objective at v, with the reference the kernel has now."""
    return 0.5 * dot(v, v) + C * float(problem.kernel.evaluate(scores(problem, v))[0].sum())


class _Held:
    """The part of a held reference in every plane: ``X' c`` of each query, and their sum."""

    def __init__(self, problem: LinearProblem, held: Floats) -> None:
        self.held = held
        self.none = not held.any()
        self.rows = None if self.none else sums_by_query(problem, held)

    def of(self, block: NDArray[np.int64], joined: bool) -> Any:
        if self.rows is None:
            return 0.0
        return self.rows.sum(axis=0)[None, :] if joined else self.rows[block]


def sums_by_query(problem: LinearProblem, g: Floats) -> Floats:
    """``X_q' g_q`` of every query, in the solver's variables."""
    lists = problem.lists
    rows = np.arange(lists.n_docs) if problem.order is None else problem.order
    picked = sp.csr_matrix((g, rows, lists.offsets), shape=(lists.n_queries, lists.X.shape[0]))
    sums = picked @ lists.X
    return problem.pulled(np.asarray(sums.toarray() if sp.issparse(sums) else sums))


def _by_planes(
    problem: LinearProblem, reference: _Held, C: float, start: Floats, tol: float, max_iter: int,
    joined: bool, planes: Planes | None,
) -> Cut:  # fmt: skip
    n_queries = problem.lists.n_queries
    blocks = 1 if joined else n_queries
    planes = Planes(np.zeros((0, len(start)))) if planes is None else planes
    best_v, best, bound = start, np.inf, 0.0
    v, height = start, np.zeros(blocks)
    ids = np.repeat(np.arange(n_queries), np.diff(problem.lists.offsets))
    for n_rounds in range(1, max_iter + 1):
        s = scores(problem, v)
        values, g, _ = problem.kernel.evaluate(s)
        value = 0.5 * dot(v, v) + C * float(values.sum())
        if value < best:
            best_v, best = v, value
        if best - bound <= tol * best:
            break
        b = values - np.bincount(ids, g * s, minlength=n_queries)
        if joined:
            step = problem.features.transposed(g + reference.held)
            planes.add(-problem.pulled(step[None, :]), np.array([b.sum()]), np.zeros(1, np.int64))
        else:
            least = 0.1 * tol * best / (C * n_queries)
            # The first model is where the solver begins, which no programme has chosen.
            block = np.flatnonzero((values > height + least) | (n_rounds == 1))
            if len(block) == 0:
                break
            planes.add(-sums_by_query(problem, g + reference.held)[block], b[block], block)
        V = planes.V + reference.of(planes.block, joined)
        found = solve_planes(V, planes.b, planes.block, blocks, C, 0.01 * tol)
        v, height, bound = found.w, found.height, max(bound, found.bound)
        planes.drop_idle(found.alpha > _USED * C)
    return Cut(best_v, best, bound, n_rounds, len(planes.b), best - bound <= tol * best)


def _by_query(
    problem: LinearProblem, reference: _Held, C: float, start: Floats, tol: float, max_iter: int,
    rng: np.random.Generator,
) -> Cut:  # fmt: skip
    """Block-coordinate Frank-Wolfe on the dual, one query at a time; the gap is exact."""
    n_queries = problem.lists.n_queries
    # The dual point: one plane per query, a mixture of those met; 0 is the plane of xi >= 0.
    V, b = np.zeros((n_queries, len(start))), np.zeros(n_queries)
    v, best_v, best, bound = np.zeros(len(start)), start, np.inf, 0.0
    part = _Rows(problem)
    epoch = 0
    for _ in range(max_iter):
        epoch += 1
        values, _, _ = problem.kernel.evaluate(scores(problem, v))
        value = 0.5 * dot(v, v) + C * float(values.sum())
        if value < best:
            best_v, best = v.copy(), value
        bound = max(bound, float(b.sum()) - 0.5 * dot(v, v))
        if best - bound <= tol * best:
            break
        for q in rng.permutation(n_queries):
            X = part.of(q)
            s = np.asarray(X @ v)
            loss, g = problem.kernel.evaluate_query(int(q), s)
            new_v, new_b = -C * (X.T @ g), C * (loss - dot(g, s))
            change = new_v - V[q]
            square = dot(change, change)
            rise = new_b - b[q] - dot(v, change)
            t = 1.0 if square == 0 and rise > 0 else (rise / square if square > 0 else 0.0)
            t = min(1.0, max(0.0, t))
            V[q] += t * change
            b[q] += t * (new_b - b[q])
            v += t * change
        v = V.sum(axis=0)  # what rounding left in the running sum
    return Cut(best_v, best, bound, epoch, n_queries, best - bound <= tol * best)


class _Rows:
    """The scaled features of one query at a time."""

    def __init__(self, problem: LinearProblem) -> None:
        self.problem = problem
        self.offsets = problem.lists.offsets

    def of(self, q: int) -> Floats:
        rows = np.arange(self.offsets[q], self.offsets[q + 1])
        return np.asarray(self.problem._scaled_rows(rows), dtype=np.float64)
