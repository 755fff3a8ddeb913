"""Is it better to train on a metric's own lambda gradients than on nDCG's?

    python benchmarks/study_metric_lambdas.py ../shared/data              # all three data sets
    python benchmarks/study_metric_lambdas.py ../shared/data --only mq2008 --seeds 1

For each target metric (AP, RR, ERR) boosted trees are trained twice with one budget, on LambdaRank
for the target and on LambdaRank for nDCG; both stop early by the *target* on the validation queries of
a fold and are measured by the target on its test queries. Seeds draw the queries of each round. The
difference is paired by query (each the mean over seeds), with its bootstrap interval of 95 %.

A second table asks what the treatment of tied scores is worth: nDCG's lambdas with ``ties="average"``
against ``ties="stable"``. "stable, shuffled" gives the trees a row order that is drawn anew for every
seed, as a stored file would.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from rankwise.metrics import parse_metric

Folds = list[tuple[rw.Queries, rw.Queries, rw.Queries]]


def mslr(folder: Path) -> Folds:
    names = ("train", "vali", "test")
    queries = rw.concatenate([rw.read(folder / "mslr-sample" / f"{name}.txt") for name in names])
    return queries.folds(5, rng=0)


def course(_: Path) -> Folds:
    """The course note's synthetic lists: 300 queries of 30 documents to learn from in each fold."""
    folds = []
    for seed in range(5):
        queries = rw.make_queries("course", n_queries=1000, rng=seed)
        parts = (range(300), range(300, 500), range(500, 1000))
        folds.append(tuple(queries.take(part) for part in parts))
    return folds


DATA: dict[str, tuple[str, Callable[[Path], Folds]]] = {
    "mq2008": ("MQ2008", lambda folder: list(rw.read_folds(folder / "letor4" / "MQ2008"))),
    "ohsumed": (
        "OHSUMED",
        lambda folder: list(rw.read_folds(folder / "letor3" / "OHSUMED" / "QueryLevelNorm")),
    ),
    "mslr": ("MSLR sample", mslr),
    "course": ("synthetic", course),
}
TARGETS = ("ap", "rr", "err")


class Shuffled:
    """A loss under another row order, for ``ties="stable"``."""

    shift_invariant = True
    minimizes = False

    def __init__(self, loss: Any, seed: int) -> None:
        self.loss, self.seed = loss, seed

    def value(self, *args: Any) -> Any:
        return self.loss.value(*args)

    def derivatives(self, y: Any, s: Any, offsets: Any, weight: Any = None) -> Any:
        return self.prepare(y, offsets, weight)(s)

    def prepare(self, y: Any, offsets: Any, weight: Any = None, *, n_threads: int = 0) -> Any:
        rng = np.random.default_rng(self.seed)
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        order = np.lexsort((rng.random(len(y)), query))
        moved = None if weight is None else np.asarray(weight)[order]
        run = self.loss.prepare(np.asarray(y)[order], offsets, moved, n_threads=n_threads)
        back = np.argsort(order)

        def derivatives(s: Any) -> Any:
            gradient, curvature = run(np.asarray(s)[order])
            return gradient[back], curvature[back]

        return derivatives


def values(folds: Folds, loss: Callable[[int], Any], target: str, seeds: int) -> np.ndarray:
    """The target metric of every test query, the mean over seeds; NaN where it has none."""
    metric = parse_metric(target)
    total = []
    for seed in range(seeds):
        per_query = []
        for train, valid, test in folds:
            model = rw.TreeRanker(
                loss(seed), metric=metric, n_estimators=300, num_leaves=7, learning_rate=0.1,
                subsample=0.8, early_stopping_rounds=30, random_state=seed, n_jobs=1,
            )  # fmt: skip
            model.fit(train, eval_set=valid)
            per_query.append(metric.per_query(test.y, model.predict(test), qid=test.groups))
        total.append(np.concatenate(per_query))
    return np.mean(total, axis=0)


def compare(name: str, target: str, ours: np.ndarray, other: np.ndarray, labels: Any) -> None:
    kept = ~np.isnan(ours)
    difference = ours[kept] - other[kept]
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(difference), (5000, len(difference)))
    low, high = np.quantile(difference[draws].mean(axis=1), [0.025, 0.975])
    print(
        f"| {name} | {target} | {ours[kept].mean():.4f} | {other[kept].mean():.4f} "
        f"| {difference.mean():+.4f} [{low:+.4f}, {high:+.4f}] |" + labels,
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="data sets, by comma")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else list(DATA)
    loaded = {key: DATA[key][1](args.folder) for key in wanted}
    print(
        "| data | metric | its own lambda | nDCG's lambda | difference, 95 % |\n|---|---|---|---|---|"
    )
    for key in wanted:
        for target in TARGETS:
            own = values(loaded[key], lambda _, m=target: rw.LambdaRank(m), target, args.seeds)
            ndcg = values(loaded[key], lambda _: rw.LambdaRank(), target, args.seeds)
            compare(DATA[key][0], target, own, ndcg, "")
    print(
        "\n| data | metric | average | stable, shuffled | difference, 95 % |\n|---|---|---|---|---|"
    )
    stable = rw.LambdaRank(ties="stable")
    for key in wanted:
        average = values(loaded[key], lambda _: rw.LambdaRank(), "ndcg@10", args.seeds)
        shuffled = values(loaded[key], lambda seed: Shuffled(stable, seed), "ndcg@10", args.seeds)
        compare(DATA[key][0], "ndcg@10", average, shuffled, "")


if __name__ == "__main__":
    main()
