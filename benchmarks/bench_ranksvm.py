"""Linear RankSVM: time to a given objective, against a plain NumPy Newton and explicit pairs.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_ranksvm.py

Data: the web-like synthetic set (1,000 queries, about 115,000 documents, 136 features, 5.5 million
pairs), float32, each feature divided by its standard deviation, C = 1e-4. All solve the same
problem from the same arrays; loading is not counted. Each solver runs with the loosest tolerance
that reaches the wanted gap to the best objective known. CPU seconds, medians, and ratios.

`numpy newton` is what a good engineer writes in an afternoon: trust-region truncated Newton (as
in LIBLINEAR), scores sorted once per evaluation, counts by searchsorted and sums by cumsum,
one pair of label levels at a time. `products alone` is the time of as many products X u, X^T v as
rankwise takes, by BLAS.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import rankwise as rw


class NumpyRankSVM:
    """Value, gradient and Hessian products of RankSVM's objective in plain NumPy."""

    def __init__(self, queries: rw.Queries, C: float) -> None:
        self.X, self.C, self.n_passes = queries.X, C, 0
        self.query = np.repeat(np.arange(queries.n_queries), queries.sizes)
        self.levels = [np.flatnonzero(queries.y == v) for v in np.unique(queries.y)]
        edges = np.arange(queries.n_queries + 1)
        self.edges = [np.searchsorted(self.query[rows], edges) for rows in self.levels]

    def evaluate(self, w):
        s = (self.X @ w.astype(self.X.dtype)).astype(np.float64)
        key = s + self.query * (s.max() - s.min() + 2)
        self.orders, keys = [], []
        for rows in self.levels:
            order = rows[np.argsort(key[rows])]
            self.orders.append(order)
            keys.append(key[order])
        # For each pair of levels: where the active winners over a loser end in the sorted winners,
        # and where the active losers under a winner begin.
        self.bounds = {}
        up, down = np.zeros(len(s)), np.zeros(len(s))
        for low, high in itertools.combinations(range(len(self.levels)), 2):
            end = np.searchsorted(keys[high], keys[low] + 1, side="left")
            start = np.searchsorted(keys[low], keys[high] - 1, side="right")
            self.bounds[low, high] = end, start
            losers, winners = self.orders[low], self.orders[high]
            up[losers] += end - self.edges[high][self.query[losers]]
            down[winners] += self.edges[low][self.query[winners] + 1] - start
        self.degree = up + down
        half = self._laplacian(s) - (down - up)
        value = 0.5 * w @ w + self.C * (s @ (half - (down - up)) + down.sum())
        self.n_passes += 2
        return value, w + 2 * self.C * (self.X.T @ half.astype(self.X.dtype))

    def product(self, u):
        v = (self.X @ u.astype(self.X.dtype)).astype(np.float64)
        self.n_passes += 2
        return u + 2 * self.C * (self.X.T @ self._laplacian(v).astype(self.X.dtype))

    def _laplacian(self, v):
        out = self.degree * v
        sums = [np.concatenate([[0.0], np.cumsum(v[order])]) for order in self.orders]
        for (low, high), (end, start) in self.bounds.items():
            losers, winners = self.orders[low], self.orders[high]
            out[losers] -= sums[high][end] - sums[high][self.edges[high][self.query[losers]]]
            out[winners] -= sums[low][self.edges[low][self.query[winners] + 1]] - sums[low][start]
        return out


def numpy_newton(queries, C, tol, max_iter=100):
    """Trust-region Newton with the settings of LIBLINEAR's TRON."""
    problem = NumpyRankSVM(queries, C)
    w = np.zeros(queries.n_features)
    value, gradient = problem.evaluate(w)
    first = radius = np.linalg.norm(gradient)
    for step_number in range(max_iter):
        if np.linalg.norm(gradient) <= tol * first:
            break
        step, residual = np.zeros_like(w), -gradient
        direction, rr = residual.copy(), residual @ residual
        goal = 0.1 * np.linalg.norm(gradient)
        while np.sqrt(rr) > goal:
            bent = problem.product(direction)
            alpha = rr / (direction @ bent)
            if np.linalg.norm(step + alpha * direction) >= radius:
                a, b = direction @ direction, step @ direction
                c = radius**2 - step @ step
                alpha = c / (b + np.sqrt(b * b + a * c))
                step, residual = step + alpha * direction, residual - alpha * bent
                break
            step, residual = step + alpha * direction, residual - alpha * bent
            rr, old = residual @ residual, rr
            direction = residual + rr / old * direction
        length = np.linalg.norm(step)
        radius = min(radius, length) if step_number == 0 else radius
        predicted = -0.5 * (gradient @ step - step @ residual)
        new_value, new_gradient = problem.evaluate(w + step)
        ratio = (value - new_value) / predicted
        if ratio < 0.25:
            radius = max(0.25 * min(length, radius), 0.25 * radius)
        elif ratio > 0.75:
            radius = max(radius, 4 * length)
        if ratio > 1e-4:
            w, value, gradient = w + step, new_value, new_gradient
        else:
            problem.evaluate(w)
    return w, problem.n_passes


def objective(queries, w, C):
    values = rw.SquaredHingePairs().value(queries.y, queries.X @ w, queries.offsets)
    return 0.5 * w @ w + C * values.sum()


def seconds_to_gap(fit, queries, C, best, gap, tolerances, repeats):
    """Median CPU seconds of the loosest tolerance that reaches the gap."""
    for tol in tolerances:
        w = fit(tol)
        if objective(queries, w, C) <= best * (1 + gap):
            break
    else:
        return float("nan"), float("nan")
    times = []
    for _ in range(repeats):
        start = time.process_time()
        fit(tol)
        times.append(time.process_time() - start)
    return statistics.median(times), tol


def explicit_pairs(queries):
    parts = []
    for a, b in itertools.pairwise(queries.offsets):
        i, j = np.nonzero(queries.y[a:b, None] > queries.y[None, a:b])
        parts.append(queries.X[a + i] - queries.X[a + j])
    return np.concatenate(parts).astype(np.float64)


def solver_seconds(queries, C, tol, repeats):
    """The solver alone: without checks and the canonical order that every fit of a ranker makes."""
    from rankwise._newton import minimize

    times = []
    for _ in range(repeats):
        start = time.process_time()
        problem = _LinearProblem(queries, rw.SquaredHingePairs(), C, 1.0, None)
        counted = _Counted(problem)
        minimize(counted, problem.n, tol=tol, max_iter=200)
        times.append(time.process_time() - start)
    return statistics.median(times), counted.n


class _Counted:
    def __init__(self, problem) -> None:
        self.problem, self.n = problem, 0
        self.preconditioner = problem.preconditioner

    def evaluate(self, w):
        self.n += 1
        return self.problem.evaluate(w)

    def product(self, u):
        self.n += 1
        return self.problem.product(u)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--subset", type=int, default=50, help="queries for explicit pairs")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--C", type=float, default=1e-4)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    C, repeats = args.C, args.repeats
    tolerances = [0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7]

    queries = rw.make_queries("web", n_queries=args.queries, dtype=np.float32)
    spread = queries.X.std(axis=0, dtype=np.float64)
    queries = queries.with_features((queries.X / spread).astype(np.float32))
    labels = np.split(queries.y, queries.offsets[1:-1])
    n_pairs = sum(int((y[:, None] > y).sum()) for y in labels)
    best = rw.RankSVM(C, tol=1e-10).fit(queries).objective_
    print(f"{queries}, {n_pairs:,} pairs, C = {C:g}, best objective {best:.6f}")
    for gap in (1e-3, 1e-6):
        ours, tol = seconds_to_gap(
            lambda t: rw.RankSVM(C, tol=t).fit(queries).coef_,
            queries, C, best, gap, tolerances, repeats,
        )  # fmt: skip
        solver, passes = solver_seconds(queries, C, tol, repeats)
        plain, _ = seconds_to_gap(
            lambda t: numpy_newton(queries, C, t)[0],
            queries, C, best, gap, tolerances, repeats,
        )  # fmt: skip
        u, v = np.ones(queries.n_features, np.float32), np.ones(queries.n_docs, np.float32)
        times = []
        for _ in range(repeats):
            start = time.process_time()
            for _ in range(passes):
                queries.X @ u
                queries.X.T @ v
            times.append(time.process_time() - start)
        bare = statistics.median(times)
        print(f"\nto a relative gap of {gap:g}         CPU s    numpy newton / this")
        print(f"  rankwise, whole fit             {ours:7.3f}    {plain / ours:5.2f}")
        print(f"  rankwise, solver ({passes:3d} passes)    {solver:7.3f}    {plain / solver:5.2f}")
        print(f"  numpy newton                    {plain:7.3f}    1.00")
        print(f"  products alone (BLAS, {passes:3d})       {bare:7.3f}    {plain / bare:5.2f}")

    subset = queries.take(range(args.subset))
    best = rw.RankSVM(C, tol=1e-10).fit(subset).objective_
    start = time.process_time()
    pairs = explicit_pairs(subset)
    sign = np.where(np.arange(len(pairs)) % 2, -1.0, 1.0)
    pairs *= sign[:, None]
    making = time.process_time() - start

    def svc(tol):
        model = LinearSVC(loss="squared_hinge", fit_intercept=False, dual=False, C=C, tol=tol)
        return model.fit(pairs, sign).coef_[0]

    ours, _ = seconds_to_gap(
        lambda t: rw.RankSVM(C, tol=t).fit(subset).coef_, subset, C, best, 1e-3, tolerances, repeats
    )
    explicit, _ = seconds_to_gap(svc, subset, C, best, 1e-3, tolerances, 1)
    size = f"{len(pairs):,} explicit pairs ({pairs.nbytes / 1e6:.0f} MB)"
    total = explicit + making
    print(f"\n{args.subset} queries, {size}, gap 1e-3")
    print(f"  rankwise, whole fit             {ours:7.3f}    1.00")
    print(f"  LinearSVC on explicit pairs     {total:7.3f}    {total / ours:.0f} times slower")


if __name__ == "__main__":
    main()
