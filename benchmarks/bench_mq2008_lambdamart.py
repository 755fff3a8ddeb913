"""LambdaMART on MQ2008 (5 folds) and the MSLR sample, beside LightGBM's own lambdarank.

    python benchmarks/bench_mq2008_lambdamart.py ../shared/data

Both systems get the same budget: up to 500 trees with early stopping after 50 rounds, learning rate
.05, 80 % of the features and of the queries or rows a tree, and the number of leaves and the
normalisation of the lambdas chosen on the validation queries (six combinations each), for each
fold and seed anew. Test queries are scored once, with the LETOR 4.0 conventions; means over three seeds.
The MSLR sample is cut into five folds of whole queries, once with its raw features and once with the
query-level normalised ones beside them; linear rankers on the same features are added, their
penalty chosen likewise (they standardise features by themselves).
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np

import rankwise as rw
from rankwise.metrics import Metric, parse_metrics

LEAVES = (7, 15, 31)
SEEDS = 3
Fold = tuple[rw.Queries, rw.Queries, rw.Queries]
Scorer = Callable[[rw.Queries], Any]


def mq2008(folder: Path) -> list[Fold]:
    """Fold i tests on S5, S1, S2, S3, S4 and validates on S4, S5, S1, S2, S3."""
    parts = [rw.read(folder / "letor4" / "MQ2008" / f"S{i}.txt") for i in range(1, 6)]
    folds = []
    for i in range(5):
        test, valid = (4 + i) % 5, (3 + i) % 5
        train = rw.concatenate([p for j, p in enumerate(parts) if j not in (test, valid)])
        folds.append((train, parts[valid], parts[test]))
    return folds


def mslr(folder: Path, *, normalised: bool) -> list[Fold]:
    """Five folds of the 89 queries of the sample; 18 test queries alone would decide nothing."""
    names = ("train", "vali", "test")
    queries = rw.concatenate([rw.read(folder / "mslr-sample" / f"{name}.txt") for name in names])
    if normalised:
        scaled = rw.QueryScaler().fit_transform(queries.X, qid=queries.groups)
        queries = queries.with_features(np.hstack([queries.X, scaled]))
    return queries.folds(5, rng=0)


def rankwise_trees(
    train: rw.Queries, valid: rw.Queries, metric: Metric, seed: int
) -> Iterator[Scorer]:
    for leaves, normalize in itertools.product(LEAVES, ("none", "both")):
        yield (
            rw.TreeRanker(
                rw.LambdaRank(normalize=normalize),
                n_estimators=500,
                learning_rate=0.05,
                num_leaves=leaves,
                subsample=0.8,
                colsample_bytree=0.8,
                early_stopping_rounds=50,
                metric=metric,
                random_state=seed,
                n_jobs=1,
            )
            .fit(train, eval_set=valid)
            .predict
        )


def lightgbm_trees(
    train: rw.Queries, valid: rw.Queries, metric: Metric, seed: int
) -> Iterator[Scorer]:
    own = {"ap": ("map", 1000), "ndcg": ("ndcg", 10)}[metric.name]
    for leaves, norm in itertools.product(LEAVES, (False, True)):
        model = lgb.LGBMRanker(
            n_estimators=500,
            learning_rate=0.05,
            num_leaves=leaves,
            subsample=0.8,
            subsample_freq=1,
            colsample_bytree=0.8,
            random_state=seed,
            n_jobs=1,
            verbose=-1,
            lambdarank_norm=norm,
        )
        model.fit(
            train.X,
            train.y,
            group=train.sizes,
            eval_set=[(valid.X, valid.y)],
            eval_group=[valid.sizes],
            eval_metric=own[0],
            eval_at=[own[1]],
            callbacks=[lgb.early_stopping(50, verbose=False)],
        )
        yield lambda queries, model=model: model.predict(queries.X)  # type: ignore[misc]


def linear(loss: str) -> Callable[..., Iterator[Scorer]]:
    def fits(train: rw.Queries, valid: rw.Queries, metric: Metric, seed: int) -> Iterator[Scorer]:
        for alpha in 10.0 ** np.arange(0, 6):
            yield rw.LinearRanker(loss, alpha=alpha).fit(train).predict

    return fits


def compare(name: str, folds: list[Fold], metrics: list[Metric], systems: dict[str, Any]) -> None:
    """The mean over folds and seeds of each metric; the first metric is the one tuned on."""
    print(f"\n{name:28}" + "".join(f"{str(m).split('(')[0]:>14}" for m in metrics))
    for system, fits in systems.items():
        rows = []
        seeds = 1 if "linear" in system else SEEDS
        for (train, valid, test), seed in itertools.product(folds, range(seeds)):

            def on(queries: rw.Queries, score: Scorer, metric: Metric) -> float:
                return metric.mean(queries.y, score(queries), qid=queries.groups)

            candidates = list(fits(train, valid, metrics[0], seed))
            best = max(candidates, key=lambda score: on(valid, score, metrics[0]))
            rows.append([on(test, best, metric) for metric in metrics])
        values = np.array(rows).reshape(len(folds), seeds, len(metrics)).mean(axis=0)
        cells = [f"{m:9.4f}±{s:.4f}" for m, s in zip(values.mean(0), values.std(0), strict=True)]
        print(f"{system:28}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder of letor4/ and mslr-sample/")
    folder = parser.parse_args().data
    trees = {"rankwise LambdaMART": rankwise_trees, "LightGBM lambdarank": lightgbm_trees}
    letor = parse_metrics("ap,mean_ndcg", preset="letor4")
    compare("MQ2008, tuned on AP", mq2008(folder), letor, trees)
    lines = {f"linear {loss}": linear(loss) for loss in ("squared", "ranknet", "listnet")}
    ndcg = parse_metrics("ndcg@10,ap")
    for name, normalised in (("MSLR sample, raw", False), ("MSLR sample, raw and scaled", True)):
        compare(name, mslr(folder, normalised=normalised), ndcg, trees | lines)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
