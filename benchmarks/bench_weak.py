"""RankBoost, AdaRank and coordinate ascent: speed, and quality beside the published LETOR tables.

    python benchmarks/bench_weak.py                    # speed: plain NumPy and fastrank beside them
    python benchmarks/bench_weak.py DATA --quality     # MQ2008 and OHSUMED, five folds each

One thread (this script sets OMP_NUM_THREADS=1), CPU seconds, systems taking turns, medians and the ratio
to rankwise. The NumPy versions are what one would write without native code: RankBoost with its weights
over pairs, and with factors per document and sorted features; the metric of a line by one call of
the metric per step. fastrank (Rust) is optional: ``pip install fastrank``.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from rankwise.experiment import Fold, run_experiment
from rankwise.metrics import AP


def cpu(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def turns(repeats: int, contenders: dict[str, Callable[[], Any]]) -> dict[str, tuple[float, Any]]:
    """Median CPU seconds and last result of each contender."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    results = {}
    for _ in range(repeats):
        for name, function in contenders.items():
            spent, results[name] = cpu(function)
            seconds[name].append(spent)
    return {name: (statistics.median(seconds[name]), results[name]) for name in contenders}


def show(title: str, found: dict[str, tuple[float, Any]], extra: Callable[[Any], str]) -> None:
    first = next(iter(found.values()))[0]
    print(f"\n{title:44} {'CPU s':>8} {'ratio':>7}")
    for name, (seconds, result) in found.items():
        print(f"{name:44} {seconds:8.2f} {seconds / first:7.1f}  {extra(result)}", flush=True)


# --- RankBoost ------------------------------------------------------------------------------------


def pairs_of(queries: rw.Queries) -> tuple[Any, Any]:
    winners, losers = [], []
    for a, b in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        i, j = np.nonzero(queries.y[a:b, None] > queries.y[None, a:b])
        winners.append(i + a)
        losers.append(j + a)
    return np.concatenate(winners), np.concatenate(losers)


def numpy_by_pairs(queries: rw.Queries, rounds: int) -> float:
    """Weights over pairs; each round turns them into potentials and scans the sorted features."""
    i, j = pairs_of(queries)
    D = np.full(len(i), 1 / len(i))
    order = np.argsort(queries.X, axis=0, kind="stable")
    ends = np.diff(np.take_along_axis(queries.X, order, 0), axis=0) > 0
    n = queries.n_docs
    loss = 1.0
    for _ in range(rounds):
        potential = np.bincount(i, D, minlength=n) - np.bincount(j, D, minlength=n)
        above = -np.cumsum(potential[order], axis=0)[:-1] * ends
        t, f = np.unravel_index(np.argmax(np.abs(above)), above.shape)
        alpha = np.arctanh(above[t, f])
        h = np.zeros(n)
        h[order[t + 1 :, f]] = 1
        D *= np.exp(-alpha * (h[i] - h[j]))
        loss *= D.sum()
        D /= D.sum()
    return loss


def bench_rankboost(n_queries: int, rounds: int, repeats: int) -> None:
    queries = rw.make_queries("web", n_queries=n_queries, rng=0)
    i, _ = pairs_of(queries)
    found = turns(
        repeats,
        {
            "rankwise": lambda: (
                rw.RankBoost(n_estimators=rounds, n_jobs=1).fit(queries).losses_[-1]
            ),
            "NumPy, weights over pairs": lambda: numpy_by_pairs(queries, rounds),
        },
    )
    title = f"RankBoost, {rounds} rounds, {queries.n_docs} docs, {len(i)} pairs"
    show(title, found, lambda loss: f"loss {loss:.4f}")


# --- coordinate ascent ----------------------------------------------------------------------------


def bench_ascent(queries: rw.Queries, repeats: int, title: str) -> None:
    def ours(search: str) -> Callable[[], Any]:
        return lambda: rw.CoordinateAscent(
            "ap", search=search, n_restarts=1, scale=None, random_state=0, n_jobs=1
        ).fit(queries)

    contenders = {f"rankwise, {s}": ours(s) for s in ("steps", "exact")}
    try:
        import fastrank
    except ImportError:
        print("fastrank is not installed")
    else:

        def theirs() -> Any:
            request = fastrank.TrainRequest.coordinate_ascent()
            request.measure = "ap"
            request.params.num_restarts, request.params.seed, request.params.quiet = 1, 42, True
            request.params.init_random = False
            data = fastrank.CDataset.from_numpy(
                queries.X.astype(np.float32), queries.y, queries.qid.astype(np.int64)
            )
            model = data.train_model(request)
            scored = (
                model.predict_dense_scores(data) if hasattr(model, "predict_dense_scores") else None
            )
            return scored if scored is not None else data.predict_scores(model)

        contenders["fastrank"] = theirs

    def reached(result: Any) -> str:
        if isinstance(result, rw.CoordinateAscent):
            scores = result.predict(queries)
        else:
            scores = np.array([result[i] for i in range(queries.n_docs)])
        return f"training AP {AP.mean(queries.y, scores, qid=queries.groups):.4f}"

    show(title, turns(repeats, contenders), reached)


# --- quality --------------------------------------------------------------------------------------

PUBLISHED = {
    "MQ2008": (
        ["ap", "mean_ndcg", "ndcg@1", "ndcg@3", "ndcg@5"],
        {
            "published RankBoost": (0.4775, 0.4850, 0.3856, 0.4288, 0.4666),
            "published AdaRank-MAP": (0.4764, 0.4915, 0.3754, 0.4370, 0.4794),
            "published AdaRank-NDCG": (0.4824, 0.4950, 0.3826, 0.4420, 0.4821),
            "published RankSVM-Struct": (0.4696, 0.4832, 0.3627, 0.4286, 0.4695),
        },
    ),
    "OHSUMED": (
        ["ap", "ndcg@10", "ndcg@1", "ndcg@3", "ndcg@5"],
        {
            "published RankBoost": (0.4411, 0.4302, 0.4632, 0.4555, 0.4494),
            "published AdaRank-MAP": (0.4487, 0.4429, 0.5388, 0.4682, 0.4613),
            "published AdaRank-NDCG": (0.4498, 0.4496, 0.5330, 0.4673, None),
            "published FRank": (0.4439, 0.4433, 0.5300, 0.4812, 0.4588),
        },
    ),
}


def folds_of(data: Path, name: str) -> list[Fold]:
    if name == "MQ2008":
        parts = [rw.read_letor(data / f"letor4/MQ2008/S{i}.txt") for i in range(1, 6)]
        turn = [(5, 4), (1, 5), (2, 1), (3, 2), (4, 3)]
    else:
        folder = data / "letor3/OHSUMED/QueryLevelNorm"
        parts = [rw.read_letor(folder / f"Fold{i}-test.txt") for i in range(1, 6)]
        turn = [(1, 5), (2, 1), (3, 2), (4, 3), (5, 4)]
    return [
        Fold(
            rw.concatenate([parts[i - 1] for i in range(1, 6) if i not in (test, valid)]),
            parts[valid - 1],
            parts[test - 1],
        )
        for test, valid in turn
    ]


def quality(data: Path, rankers: list[str]) -> None:
    for name, (metrics, published) in PUBLISHED.items():
        preset = "letor4" if name == "MQ2008" else "letor3"
        wanted = rw.parse_metrics(",".join(metrics), preset=preset)
        start = time.process_time()
        found = run_experiment(rankers, folds_of(data, name), wanted, select="ap", random_state=0)
        table = found.compare()
        print(f"\n| {name} | {' | '.join(metrics)} |\n|---|{'---|' * len(metrics)}")
        for ranker in rankers:
            cells = []
            for metric in wanted:
                r = table.results[str(metric)][ranker]
                half = (r.interval.high - r.interval.low) / 2
                cells.append(f"{r.mean:.4f} ± {half:.3f}")
            print(f"| `{ranker}` | {' | '.join(cells)} |")
        for system, row in published.items():
            print(f"| {system} | {' | '.join('' if v is None else f'{v:.4f}' for v in row)} |")
        print(f"({time.process_time() - start:.0f} CPU s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="?", type=Path, help="folder of the data sets")
    parser.add_argument("--quality", action="store_true", help="LETOR tables instead of speed")
    parser.add_argument("--rankers", default="rankboost;adarank;coordinate_ascent;ranksvm")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    if args.quality:
        quality(args.data, args.rankers.split(";"))
        return
    # What is loaded and compiled at the first call is not measured.
    rw.RankBoost(n_estimators=1, n_jobs=1).fit(rw.make_queries(n_queries=5))
    bench_rankboost(args.queries, args.rounds, args.repeats)
    if args.data is not None:
        for name in PUBLISHED:
            train = folds_of(args.data, name)[0].train
            bench_ascent(
                train, args.repeats, f"one start on AP, {name} fold 1, {train.n_docs} docs"
            )


if __name__ == "__main__":
    main()
