"""Linear RankSVM: time to a given objective, against a plain NumPy Newton and explicit pairs.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_ranksvm.py [--queries 4350]
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_ranksvm.py --data long
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_ranksvm.py --data sparse

Data: the web-like synthetic set (136 features), float32, each feature divided by its standard
deviation; `long`: the same in lists of 10,000 documents; `sparse`: 50,000 features, 60 in a row.
All solve the same problem from the same arrays; loading is not counted. Each solver runs with the
loosest tolerance that reaches the wanted gap to the best objective known. CPU seconds, medians,
and ratios.

`numpy newton` is what a good engineer writes in an afternoon: trust-region truncated Newton (as
in LIBLINEAR), scores sorted once per evaluation, counts by searchsorted and sums by cumsum,
one pair of label levels at a time. `products alone` is the time of as many products X u, X^T v as
rankwise takes over all rows, by BLAS (SciPy where sparse). `cutting planes` is Joachims' one-slack
algorithm for the hinge over the same native counts, its quadratic program solved by coordinates.
"""

from __future__ import annotations

import argparse
import ctypes
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


def passes_of(queries, C, tol):
    """Evaluations and products over all rows that a fit takes."""
    from rankwise._linear_problem import LinearProblem

    counted = 0
    kept = LinearProblem.evaluate, LinearProblem.product

    def counting(method):
        def call(self, x):
            nonlocal counted
            counted += self.lists.n_docs == queries.n_docs
            return method(self, x)

        return call

    LinearProblem.evaluate, LinearProblem.product = map(counting, kept)
    try:
        rw.RankSVM(C, tol=tol).fit(queries)
    finally:
        LinearProblem.evaluate, LinearProblem.product = kept
    return counted


def cutting_planes(queries, C, tol, rounds=2000):
    """One-slack cutting planes; slopes and offsets of the cuts from the native hinge."""
    from rankwise import _core
    from rankwise._linear_problem import features_of

    features = features_of(queries.X)
    kernel = _core.SmoothHingeLoss(queries.y, queries.offsets, None)
    kernel.set_width(1e-12)
    d = queries.n_features
    w, best, bound, best_w = np.zeros(d), np.inf, -np.inf, np.zeros(d)
    slopes, offsets, a = np.zeros((1, d)), np.zeros(1), np.array([C])
    for _ in range(rounds):
        _, gradient, _, _ = kernel.evaluate_linear(features, w)
        value = 0.5 * w @ w + C * kernel.hinge()
        if value < best:
            best, best_w = value, w
        if best - bound <= tol * best:
            break
        slopes = np.vstack([slopes, -gradient])
        offsets = np.append(offsets, kernel.hinge() - gradient @ w)
        a = np.append(a, 0.0)
        gram = slopes @ slopes.T
        slope = offsets - gram @ a
        for _ in range(5000):
            up = int(np.argmax(slope))
            down = int(np.argmin(np.where(a > 0, slope, np.inf)))
            gain = slope[up] - slope[down]
            if gain * C <= 0.1 * tol * best:
                break
            bend = gram[up, up] + gram[down, down] - 2 * gram[up, down]
            t = min(a[down], gain / bend)
            a[up] += t
            a[down] -= t
            slope = slope - t * (gram[:, up] - gram[:, down])
        w = a @ slopes
        bound = max(bound, a @ offsets - 0.5 * w @ w)
    return best_w, len(slopes) - 1


def hinge(queries, C, repeats, slow=True):
    """To a certified gap: each stops by its own lower bound."""
    print("\nhinge, to a duality gap of          CPU s    cutting planes / this")
    for gap in (1e-2, 1e-3):
        times = []
        for _ in range(repeats):
            start = time.process_time()
            model = rw.RankSVM(C, loss="hinge", tol=gap).fit(queries)
            times.append(time.process_time() - start)
        ours = statistics.median(times)
        start = time.process_time()
        w, rounds = cutting_planes(queries, C, gap)
        planes = time.process_time() - start
        value = (
            0.5 * w @ w + C * rw.HingePairs().value(queries.y, queries.X @ w, queries.offsets).sum()
        )
        print(
            f"  {gap:g}: rankwise                  {ours:7.3f}    {planes / ours:5.2f}   f = {model.objective_:.4f}"
        )
        print(
            f"         cutting planes, {rounds:4d} rounds {planes:6.3f}    1.00   f = {value:.4f}"
        )


def peak_memory(fit):
    """Bytes of new memory at the highest point of a call (Linux)."""

    def status(name):
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))

    ctypes.CDLL("libc.so.6").malloc_trim(0)  # pages kept from before would not be counted
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    fit()
    return max(status("VmHWM") - before, 0)


def make_data(kind, n_queries):
    rng = np.random.default_rng(0)
    if kind == "sparse":
        import scipy.sparse as sp

        n, d = n_queries * 100, 50_000
        columns = rng.integers(0, d, (n, 60))
        starts = np.arange(0, 60 * n + 1, 60)
        X = sp.csr_matrix((rng.random(60 * n, np.float32), columns.ravel(), starts), (n, d))
        X.sum_duplicates()
        merit = X @ rng.normal(0, 1, d) + rng.normal(0, 1, n)
        y = np.digitize(merit, np.quantile(merit, [0.6, 0.85, 0.95])).astype(float)
        return rw.Queries.from_arrays(X, y, np.repeat(np.arange(n_queries), 100))
    queries = rw.make_queries("web", n_queries=n_queries, dtype=np.float32)
    spread = queries.X.std(axis=0, dtype=np.float64)
    X = np.divide(queries.X, spread.astype(np.float32))
    if kind == "web":
        return queries.with_features(X)
    n = queries.n_docs // 10_000 * 10_000
    return rw.Queries.from_arrays(X[:n], queries.y[:n], np.arange(n) // 10_000)


def compare(queries, C, repeats, best):
    tolerances = [0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7]
    for gap in (1e-3, 1e-6):
        ours, tol = seconds_to_gap(
            lambda t: rw.RankSVM(C, tol=t).fit(queries).coef_,
            queries, C, best, gap, tolerances, repeats,
        )  # fmt: skip
        passes = passes_of(queries, C, tol)
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
        print(f"  numpy newton                    {plain:7.3f}    1.00")
        print(f"  products alone ({passes:3d} passes)     {bare:7.3f}    {plain / bare:5.2f}")


def explicit(subset, C, repeats):
    """LinearSVC and SGD on the difference vectors, to a gap of 1e-3."""
    from sklearn.linear_model import SGDClassifier

    tolerances = [0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-5]
    best = rw.RankSVM(C, tol=1e-10).fit(subset).objective_
    start = time.process_time()
    pairs = explicit_pairs(subset)
    sign = np.where(np.arange(len(pairs)) % 2, -1.0, 1.0)
    pairs *= sign[:, None]
    making = time.process_time() - start

    def svc(tol):
        model = LinearSVC(loss="squared_hinge", fit_intercept=False, dual=False, C=C, tol=tol)
        return model.fit(pairs, sign).coef_[0]

    def sgd(tol):
        model = SGDClassifier(
            "squared_hinge", alpha=1 / (2 * C * len(pairs)), fit_intercept=False, max_iter=50,
            tol=tol, random_state=0, average=True, learning_rate="invscaling", eta0=1e-3,
        )  # fmt: skip
        return model.fit(pairs, sign).coef_[0]

    ours, _ = seconds_to_gap(
        lambda t: rw.RankSVM(C, tol=t).fit(subset).coef_, subset, C, best, 1e-3, tolerances, repeats
    )
    size = f"{len(pairs):,} explicit pairs ({pairs.nbytes / 1e6:.0f} MB)"
    print(f"\n{subset.n_queries} queries, {size}, gap 1e-3")
    print(f"  rankwise, whole fit             {ours:7.3f}    1.00")
    seconds, _ = seconds_to_gap(svc, subset, C, best, 1e-3, tolerances, 1)
    total = seconds + making
    print(f"  LinearSVC on explicit pairs     {total:7.3f}    {total / ours:.0f} times slower")
    start = time.process_time()
    w = sgd(1e-4)
    total = time.process_time() - start + making
    reached = objective(subset, w, C) / best - 1
    print(
        f"  SGD on explicit pairs           {total:7.3f}    {total / ours:.0f} times slower, gap {reached:.1g}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=["web", "long", "sparse"], default="web")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--subset", type=int, default=50, help="queries for explicit pairs")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--C", type=float)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    repeats = args.repeats
    C = args.C or {"web": 1e-4, "long": 1e-6, "sparse": 1e-2}[args.data]

    queries = make_data(args.data, args.queries)
    n_pairs = 0
    for a, b in itertools.pairwise(queries.offsets):
        counts = np.unique(queries.y[a:b], return_counts=True)[1]
        n_pairs += int(counts.sum() ** 2 - (counts**2).sum()) // 2
    rw.RankSVM(C).fit(queries.take(range(2)))  # imports are not a fit's memory
    extra = peak_memory(lambda: rw.RankSVM(C).fit(queries))
    best = rw.RankSVM(C, tol=1e-8).fit(queries).objective_
    print(f"{queries}, {n_pairs:,} pairs, C = {C:g}, best objective {best:.6f}")
    data = (
        queries.X.data.nbytes
        if args.data != "sparse"
        else queries.X.data.nbytes + queries.X.indices.nbytes
    )
    print(f"memory of a fit: data and {extra / data:.2f} times the data ({extra / 1e6:.0f} MB)")
    compare(queries, C, repeats, best)
    if args.data != "sparse" and queries.n_docs < 200_000:
        hinge(queries, C, repeats)
    if args.data == "web":
        start = time.process_time()
        model = rw.LinearRanker("ranknet", alpha=1e4, scale=None, tol=1e-3).fit(queries)
        seconds = time.process_time() - start
        extra = peak_memory(
            lambda: rw.LinearRanker("ranknet", alpha=1e4, scale=None, tol=1e-3).fit(queries)
        )
        print(
            f"\nlinear RankNet, {n_pairs:,} pairs, to a relative gradient of {model.gradient_norm_:.0e}: "
            f"{seconds:.1f} CPU s, {extra / 1e6:.0f} MB besides the data of {data / 1e6:.0f} MB"
        )
        explicit(queries.take(range(args.subset)), C, repeats)


if __name__ == "__main__":
    main()
