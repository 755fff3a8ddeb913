"""Time and memory of the paired tests and intervals beside SciPy's general ones.

    python benchmarks/bench_stats.py

Same data, same number of resamples, same process, one thread; CPU seconds, median of three runs.
SciPy's functions take any statistic; rankwise's only the mean, which is all a table needs.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import scipy.stats
from threadpoolctl import threadpool_limits

import rankwise as rw
from rankwise.stats import intervals


def cpu(function: Callable[[], object]) -> float:
    seconds = []
    for _ in range(3):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return sorted(seconds)[1]


def peak(function: Callable[[], object]) -> float:
    tracemalloc.start()
    function()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 1e6


def row(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    a, b = cpu(ours), cpu(theirs)
    print(f"{name:46}{a:9.3f}{b:9.3f}{b / a:7.1f}{peak(ours):8.0f}{peak(theirs):9.0f}")


def main() -> None:
    print(f"{'':46}{'CPU s':>9}{'SciPy':>9}{'ratio':>7}{'MB':>8}{'SciPy':>9}")
    rng = np.random.default_rng(0)
    for n, draws in ((50, 100_000), (1_000, 100_000), (10_000, 10_000)):
        a, b = rng.random((2, n))
        row(
            f"randomization test, {n:,} x {draws:,}",
            lambda a=a, b=b, draws=draws: rw.randomization_test(a, b, n_resamples=draws),
            lambda a=a, b=b, draws=draws: scipy.stats.permutation_test(
                (a - b,),
                np.sum,
                permutation_type="samples",
                n_resamples=draws,
                vectorized=True,
                batch=max(1, 2**24 // len(a)),
                rng=0,
            ),
        )
    for n in (50, 1_000, 10_000):
        rows = rng.random((8, n))
        row(
            f"BCa intervals, 8 systems, {n:,} x 9,999",
            lambda rows=rows: intervals(rows, "bca", 0.95, 9_999, 0),
            lambda rows=rows: scipy.stats.bootstrap(
                (rows,), np.mean, axis=-1, method="BCa", batch=max(1, 2**21 // rows.shape[1]), rng=0
            ),
        )
    a, b = rng.random((2, 10_000))
    whole = cpu(lambda: rw.randomization_test(a, b, n_resamples=100_000))
    print(
        f"\nrandomization test, 10,000 x 100,000: {whole:.2f} CPU s, "
        f"{peak(lambda: rw.randomization_test(a, b, n_resamples=100_000)):.0f} MB"
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
