"""The most violated ranking of DORM beside general assignment solvers: SciPy's and lap's.

    OMP_NUM_THREADS=1 python benchmarks/bench_assignment.py

Scores and labels of one query as they are in training: nDCG gains over the ideal, most documents at
the lowest level, scores that partly follow the labels; weights of nDCG and nDCG@10 against 1/(1+i).
CPU time of a call, medians over queries; the peers' cost matrices are built before. Every answer is
checked against SciPy's where that ran.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from rankwise import _core

try:
    from lap import lapjv  # the package lapx
except ImportError:
    lapjv = None

QUERIES, MOST_SCIPY, MOST_LAP = 12, 500, 200


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def queries(n: int, levels: int, cut: int | None) -> list[Any]:
    rng = np.random.default_rng(n + levels)
    i = np.arange(1, n + 1)
    a, c = 1 / np.log2(1 + i), 1 / (1.0 + i)
    if cut is not None:
        a[cut:] = 0
    share = np.array([0.6] + [0.4 / (levels - 1)] * (levels - 1))
    gains, out = 2.0 ** np.arange(levels) - 1, []
    for _ in range(QUERIES):
        b = rng.choice(gains, n, p=share)
        f = (b / gains[-1] + 0.5 * rng.normal(size=n)) * rng.choice([0.01, 0.1, 1.0])
        out.append((f, b / (np.sort(b)[::-1] @ a), a, c))
    return out


def main() -> None:
    offsets = np.zeros(2, np.int64)
    print(
        "| documents | levels | measure | rankwise [us] | SciPy | lap |\n|---|---|---|---|---|---|"
    )
    for n in (50, 100, 200, 500, 1000, 10_000):
        for levels in (2, 3, 5):
            for cut in (None, 10):
                offsets[1] = n
                ours, scipy, lap = [], [], []
                for number, (f, b, a, c) in enumerate(queries(n, levels, cut)):
                    arguments = f, b, offsets, a, c, 1
                    took, (_, cost) = min(
                        (seconds(lambda x=arguments: _core.most_violated(*x)) for _ in range(3)),
                        key=lambda pair: pair[0],
                    )
                    ours.append(took)
                    if n > MOST_SCIPY or number >= 3:
                        continue
                    matrix = np.outer(a, b) - np.outer(c, f)
                    took, (rows, columns) = seconds(lambda m=matrix: linear_sum_assignment(m))
                    scipy.append(took)
                    assert abs(matrix[rows, columns].sum() - cost[0]) < 1e-9
                    if lapjv is not None and n <= MOST_LAP:
                        lap.append(seconds(lambda m=matrix: lapjv(m))[0])
                us = 1e6 * float(np.median(ours))
                ratios = [f"{1e6 * np.median(t) / us:,.0f}x" if t else "" for t in (scipy, lap)]
                measure = "nDCG" if cut is None else f"nDCG@{cut}"
                print(f"| {n:,} | {levels} | {measure} | {us:,.0f} | {ratios[0]} | {ratios[1]} |")


if __name__ == "__main__":
    main()
