"""Is it better to train on a metric's own lambda gradients than on nDCG's? And what are ties worth?

    python benchmarks/study_metric_lambdas.py ../shared/data              # all data sets and parts
    python benchmarks/study_metric_lambdas.py ../shared/data --only mq2008 --part own --seeds 1

``own``: for each target metric (AP, RR, ERR) boosted trees are trained twice with one budget, on
LambdaRank for the target and on LambdaRank for nDCG; both stop early by the *target* on the
validation queries of a fold and are measured by the target on its test queries. Seeds draw the queries
of each round. The difference is paired by query (each the mean over seeds), with its bootstrap
interval of 95 %.

``ties``: nDCG's lambdas with ``ties="average"`` against ``ties="stable"``, which gets a row order
drawn anew for every seed, as a stored file would have one.

``shuffle``: rows are shuffled inside their queries and models trained again; the largest change of a
prediction after five trees, beside the spread of the predictions.
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
from rankwise.stats import intervals
from study_losses import DATA as STUDIES

Folds = list[tuple[rw.Queries, rw.Queries, rw.Queries]]


def course(_: Path) -> Folds:
    """The course note's synthetic lists: 300 queries of 30 documents to learn from in each fold."""
    folds = []
    for seed in range(5):
        queries = rw.make_queries("course", n_queries=1000, rng=seed)
        train, valid, test = (queries.take(range(*r)) for r in ((0, 300), (300, 500), (500, 1000)))
        folds.append((train, valid, test))
    return folds


DATA = {key: (text.split(" (")[0], read) for key, (text, read) in STUDIES.items()}
DATA["course"] = ("synthetic", course)
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


def row(name: str, target: str, ours: np.ndarray, other: np.ndarray) -> None:
    kept = ~np.isnan(ours)
    gap = intervals((ours - other)[None, kept], "bca", 0.95, 9_999, 0)[0]
    print(
        f"| {name} | {target} | {ours[kept].mean():.4f} | {other[kept].mean():.4f} "
        f"| {gap.mean:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}] |",
        flush=True,
    )


def own(loaded: dict[str, Folds], seeds: int) -> None:
    print("\n| data | metric | its own lambda | nDCG's lambda | difference, 95 % |")
    print("|---|---|---|---|---|")
    for key, folds in loaded.items():
        for target in TARGETS:
            ours = values(folds, lambda _, m=target: rw.LambdaRank(m), target, seeds)  # type: ignore[misc]
            ndcg = values(folds, lambda _: rw.LambdaRank(), target, seeds)
            row(DATA[key][0], target, ours, ndcg)


def ties(loaded: dict[str, Folds], seeds: int) -> None:
    print('\n| data | metric | ties="average" | ties="stable", shuffled | difference, 95 % |')
    print("|---|---|---|---|---|")
    stable = rw.LambdaRank(ties="stable")
    for key, folds in loaded.items():
        average = values(folds, lambda _: rw.LambdaRank(), "ndcg@10", seeds)
        shuffled = values(folds, lambda seed: Shuffled(stable, seed), "ndcg@10", seeds)
        row(DATA[key][0], "ndcg@10", average, shuffled)


# --- what a shuffled file changes -----------------------------------------------------------------


def rankwise_scores(train: rw.Queries, X: Any) -> Any:
    return rw.TreeRanker(n_estimators=5, num_leaves=31, n_jobs=1).fit(train).predict(X)


def lightgbm_scores(train: rw.Queries, X: Any) -> Any:
    import lightgbm as lgb

    model = lgb.LGBMRanker(n_estimators=5, num_leaves=31, n_jobs=1, verbose=-1)
    return model.fit(train.X, train.y, group=train.sizes).predict(X)


def xgboost_scores(train: rw.Queries, X: Any) -> Any:
    import xgboost as xgb

    model = xgb.XGBRanker(n_estimators=5, max_depth=5, n_jobs=1)  # its default: rank:ndcg
    qid = np.repeat(np.arange(train.n_queries), train.sizes)
    return model.fit(train.X, train.y, qid=qid).predict(X)


PEERS: dict[str, Callable[[rw.Queries, Any], Any]] = {
    "rankwise": rankwise_scores,
    "LightGBM": lightgbm_scores,
    "XGBoost": xgboost_scores,
}


def shuffle(loaded: dict[str, Folds], seeds: int) -> None:
    print("\n| data | system | largest change | standard deviation of the predictions |")
    print("|---|---|---|---|")
    for key, folds in loaded.items():
        train, _, test = folds[0]
        query = np.repeat(np.arange(train.n_queries), train.sizes)
        for name, scores in PEERS.items():
            before, largest = scores(train, test.X), 0.0
            for seed in range(seeds):
                order = np.lexsort((np.random.default_rng(seed).random(train.n_docs), query))
                moved = rw.Queries.from_arrays(train.X[order], train.y[order], query)
                largest = max(largest, float(np.abs(scores(moved, test.X) - before).max()))
            print(f"| {DATA[key][0]} | {name} | {largest:.3g} | {before.std():.2f} |", flush=True)


PARTS: dict[str, Callable[[dict[str, Folds], int], None]] = {
    "own": own,
    "ties": ties,
    "shuffle": shuffle,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help=f"data sets by commas, of {', '.join(DATA)}")
    parser.add_argument("--part", default=",".join(PARTS), help="by commas (default: all)")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else list(DATA)
    loaded = {key: DATA[key][1](args.folder) for key in wanted}
    for part in args.part.split(","):
        PARTS[part](loaded, args.seeds)


if __name__ == "__main__":
    main()
