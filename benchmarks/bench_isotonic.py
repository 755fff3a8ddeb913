"""Pool adjacent violators beside SciPy's and scikit-learn's: one long vector, lists of 100.

    OMP_NUM_THREADS=1 python benchmarks/bench_isotonic.py

CPU nanoseconds an element, best of five, same data in the same process. The peers fit one list a call.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.isotonic import isotonic_regression as of_sklearn

import rankwise as rw


def best(function: Callable[[], object]) -> float:
    seconds = []
    for _ in range(5):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def line(name: str, n: int, ours: float, scipy: float, sklearn: float) -> None:
    print(
        f"| {name} | {1e9 * ours / n:.1f} | {1e9 * scipy / n:.1f} ({scipy / ours:.1f}x) | "
        f"{1e9 * sklearn / n:.1f} ({sklearn / ours:.1f}x) |"
    )


def main() -> None:
    rng = np.random.default_rng(0)
    print("| data | rankwise | SciPy | scikit-learn |\n|---|---|---|---|")
    n = 1_000_000
    for name, y in (
        ("noise, one list of 1e6", rng.normal(size=n)),
        ("noise and trend, one list of 1e6", rng.normal(size=n) + np.linspace(0, 100, n)),
        ("falling, one list of 1e6", -np.arange(n, dtype=float)),
    ):
        w = rng.uniform(0.5, 2, n)
        line(
            name,
            n,
            best(lambda y=y: rw.isotonic(y)),
            best(lambda y=y: isotonic_regression(y)),
            best(lambda y=y: of_sklearn(y)),
        )
        line(
            f"{name}, weighted",
            n,
            best(lambda y=y, w=w: rw.isotonic(y, weight=w)),
            best(lambda y=y, w=w: isotonic_regression(y, weights=w)),
            best(lambda y=y, w=w: of_sklearn(y, sample_weight=w)),
        )
    lists = rng.normal(size=(2000, 100))
    qid = rw.group_rows(np.repeat(np.arange(2000), 100))
    flat = lists.ravel()
    line(
        "noise, 2,000 lists of 100",
        flat.size,
        best(lambda: rw.isotonic(flat, qid=qid)),
        best(lambda: [isotonic_regression(y) for y in lists]),
        best(lambda: [of_sklearn(y) for y in lists[:200]]) * 10,
    )


if __name__ == "__main__":
    main()
