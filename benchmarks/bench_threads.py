"""What OpenMP's waiting threads cost: one training with two threads, spinning or passive.

    python benchmarks/bench_threads.py                     # on an idle machine
    python benchmarks/bench_threads.py --neighbours 2      # while two other processes compute

The threads of LightGBM, XGBoost and rankwise (each with an OpenMP runtime) meet at the end of every
parallel loop, thousands of times per training. Where the system is free to, a thread that waits
turns in a loop; when fewer processors are idle than threads wait, it takes the time of those it
waits for. The variable OMP_WAIT_POLICY must be set before the library is loaded, so each row is a
process of its own: the same training with one thread, with two threads of the runtime's default, and
with two that wait passively. Wall and CPU seconds, medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

ROWS = (("1", ""), ("2", ""), ("2", "active"), ("2", "passive"))
SYSTEMS = ("rankwise", "LightGBM", "XGBoost", "both")


def job(system: str, threads: int, n_queries: int, rounds: int) -> None:
    """Trains once and prints wall and CPU seconds."""
    import lightgbm as lgb
    import numpy as np
    import xgboost as xgb

    import rankwise as rw

    queries = rw.make_queries("web", n_queries=n_queries, rng=0, dtype=np.float32)

    def ours() -> None:
        loss = rw.LambdaRank(truncation=30, normalize="both")
        rw.TreeRanker(loss, n_estimators=rounds, num_leaves=31, n_jobs=threads).fit(queries)

    def lightgbm() -> None:
        lgb.LGBMRanker(n_estimators=rounds, num_leaves=31, n_jobs=threads, verbose=-1).fit(
            queries.X, queries.y, group=queries.sizes
        )

    def xgboost() -> None:
        xgb.XGBRanker(
            objective="rank:ndcg", tree_method="hist", grow_policy="lossguide", max_leaves=31,
            max_depth=0, n_estimators=rounds, n_jobs=threads,
        ).fit(queries.X, queries.y, qid=queries.qid)  # fmt: skip

    def both() -> None:
        """Two runtimes in one process, one after the other: the idle one's threads may still turn."""
        for _ in range(2):
            lightgbm()
            xgboost()

    jobs: dict[str, Callable[[], None]] = {
        "rankwise": ours,
        "LightGBM": lightgbm,
        "XGBoost": xgboost,
        "both": both,
    }
    wall, cpu = time.perf_counter(), time.process_time()
    jobs[system]()
    print(time.perf_counter() - wall, time.process_time() - cpu)


def run(system: str, threads: str, policy: str, args: argparse.Namespace) -> tuple[float, float]:
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    environment["OMP_NUM_THREADS"] = threads
    if policy:
        environment["OMP_WAIT_POLICY"] = policy
    words = [sys.executable, __file__, "--job", system, threads]
    words += ["--queries", str(args.queries), "--rounds", str(args.rounds)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    wall, cpu = done.stdout.split()[-2:]
    return float(wall), float(cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--neighbours", type=int, default=0, help="processes that compute meanwhile"
    )
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        job(args.job[0], int(args.job[1]), args.queries, args.rounds)
        return
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.neighbours)
    ]
    try:
        print(f"{os.cpu_count()} processors, {args.neighbours} busy neighbours; wall s / CPU s")
        print(f"{'':10}" + "".join(f"{t} thread(s) {p or 'default':10}" for t, p in ROWS))
        for system in SYSTEMS:
            cells = []
            for threads, policy in ROWS:
                found = [run(system, threads, policy, args) for _ in range(args.repeats)]
                wall, cpu = (statistics.median(column) for column in zip(*found, strict=True))
                cells.append(f"{wall:8.2f} /{cpu:7.2f}   ")
            print(f"{system:10}" + "  ".join(cells), flush=True)
    finally:
        for process in busy:
            process.kill()


if __name__ == "__main__":
    main()
