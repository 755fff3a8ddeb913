"""LambdaMART beside LightGBM's lambdarank, XGBoost's rank:ndcg and CatBoost's YetiRank.

    python benchmarks/bench_lambdamart.py                    # 1,000 queries of about 120 documents
    python benchmarks/bench_lambdamart.py --part quality --seeds 5
    python benchmarks/bench_lambdamart.py --part mslr --data ../shared/data

Synthetic web-search lists (136 features) or the MSLR sample; CPU seconds, systems taking turns,
medians and the ratio to rankwise. OMP_NUM_THREADS is 1 unless ``--threads`` says otherwise, and
OpenMP's idle threads do not spin. Parts:

* ``gradient``: one round's. Ours called alone; the peers' by the difference between boosting two-leaf
  trees on their ranking objective and on squared error (one call of squared error is far below 1 ms);
* ``training``: all of it, binning included, with the same number of trees, leaves (CatBoost: its
  lossguide trees) and bins, and the nDCG@10 of the result on other queries;
* ``shares``: where the time of our training goes, the engine's part and ours;
* ``search``: a grid of six fits, with bins made for each and with shared bins;
* ``quality``, ``mslr``: nDCG@10 over seeds, and the paired difference from LightGBM with its interval.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["OMP_WAIT_POLICY"] = "passive"

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import rankwise as rw
from rankwise.metrics import NDCG

LEARNING_RATE = 0.1
MAX_BIN = 255


def cpu(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def medians(repeats: int, contenders: dict[str, Callable[[], Any]]) -> dict[str, tuple[float, Any]]:
    """Median CPU seconds and last result of each contender; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    results = {}
    for _ in range(repeats):
        for name, function in contenders.items():
            spent, results[name] = cpu(function)
            seconds[name].append(spent)
    return {name: (statistics.median(seconds[name]), results[name]) for name in contenders}


# --- one gradient ---------------------------------------------------------------------------------


def lightgbm_rounds(data: lgb.Dataset, rounds: int, **params: Any) -> float:
    """CPU seconds a round of boosting two-leaf trees."""
    settings = {"num_leaves": 2, "verbosity": -1, "force_col_wise": True, "metric": "None"}
    booster = lgb.Booster({**settings, **params}, data)
    booster.update()
    return cpu(lambda: [booster.update() for _ in range(rounds)])[0] / rounds


def xgboost_rounds(data: xgb.QuantileDMatrix, rounds: int, objective: str) -> float:
    settings = {"max_leaves": 2, "grow_policy": "lossguide", "max_bin": MAX_BIN, "nthread": 1}
    booster = xgb.train({**settings, "objective": objective}, data, 1)

    def more() -> None:
        for i in range(rounds):
            booster.update(data, i + 1)

    return cpu(more)[0] / rounds


def gradients(train: rw.Queries, rounds: int, repeats: int) -> None:
    data = lgb.Dataset(train.X, label=train.y, group=train.sizes, params={"max_bin": MAX_BIN})
    data.construct()
    dmatrix = xgb.QuantileDMatrix(train.X, train.y, qid=train.qid, max_bin=MAX_BIN)
    # Scores as they are after some rounds: many ties inside a query at first, few later.
    model = rw.TreeRanker(n_estimators=20, num_leaves=63, n_jobs=1).fit(train)
    scores = model.predict(train)

    def ours(truncation: int | None) -> Callable[[], float]:
        run = rw.LambdaRank(truncation=truncation).prepare(train.y, train.offsets, n_threads=1)
        return lambda: cpu(lambda: [run(scores) for _ in range(rounds)])[0] / rounds

    def lightgbm(truncation: int) -> Callable[[], float]:
        def by_difference() -> float:
            # Truncation beyond the longest list keeps all pairs.
            ranking = lightgbm_rounds(
                data, rounds, objective="lambdarank", lambdarank_truncation_level=truncation
            )
            return ranking - lightgbm_rounds(data, rounds, objective="regression")

        return by_difference

    def xgboost() -> float:
        ranking = xgboost_rounds(dmatrix, rounds, "rank:ndcg")
        return ranking - xgboost_rounds(dmatrix, rounds, "reg:squarederror")

    contenders = {
        "rankwise, first 30 places": ours(30),
        "LightGBM, first 30 places": lightgbm(30),
        "rankwise, all pairs": ours(None),
        "LightGBM, all pairs": lightgbm(100_000),
        "XGBoost rank:ndcg (its pairs)": xgboost,
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, function in contenders.items():
            seconds[name].append(function())
    print(f"\n{'one lambda gradient':34}{'CPU ms':>9}{'ratio':>8}")
    for name, values in seconds.items():
        ms = 1e3 * statistics.median(values)
        base = "rankwise, first 30 places" if "30" in name else "rankwise, all pairs"
        print(f"{name:34}{ms:9.1f}{ms / (1e3 * statistics.median(seconds[base])):8.2f}")


# --- whole training -------------------------------------------------------------------------------

LIGHTGBM_S = {"truncation": 30, "normalize": "both"}  # the options of its lambdarank
Fit = Callable[[rw.Queries, int], Any]


def systems(rounds: int, leaves: int, threads: int, *, catboost: bool) -> dict[str, Fit]:
    """Each system as a function of training queries and a seed."""

    def rankwise(loss: rw.LambdaRank, **options: Any) -> Fit:
        return lambda train, seed: rw.TreeRanker(
            loss,
            n_estimators=rounds,
            num_leaves=leaves,
            learning_rate=LEARNING_RATE,
            max_bin=MAX_BIN,
            random_state=seed,
            n_jobs=threads,
            **options,
        ).fit(train)

    def lightgbm(train: rw.Queries, seed: int) -> Any:
        return lgb.LGBMRanker(
            n_estimators=rounds,
            num_leaves=leaves,
            learning_rate=LEARNING_RATE,
            max_bin=MAX_BIN,
            random_state=seed,
            n_jobs=threads,
            verbose=-1,
        ).fit(train.X, train.y, group=train.sizes)

    def xgboost(train: rw.Queries, seed: int) -> Any:
        # XGBoost's bins are upper ends, so 255 of them are what LightGBM calls max_bin=255.
        return xgb.XGBRanker(
            objective="rank:ndcg",
            tree_method="hist",
            n_estimators=rounds,
            max_leaves=leaves,
            max_depth=0,
            grow_policy="lossguide",
            learning_rate=LEARNING_RATE,
            max_bin=MAX_BIN,
            random_state=seed,
            n_jobs=threads,
        ).fit(train.X, train.y, qid=rw.qid_from_sizes(train.sizes))

    def yetirank(train: rw.Queries, seed: int) -> Any:
        from catboost import CatBoostRanker

        return CatBoostRanker(
            loss_function="YetiRank",
            iterations=rounds,
            grow_policy="Lossguide",
            max_leaves=leaves,
            learning_rate=LEARNING_RATE,
            border_count=MAX_BIN,
            random_seed=seed,
            thread_count=threads,
            verbose=False,
            allow_writing_files=False,
        ).fit(train.X, train.y, group_id=rw.qid_from_sizes(train.sizes))

    found = {
        "rankwise, LightGBM's options": rankwise(rw.LambdaRank(**LIGHTGBM_S)),
        "rankwise, gradient_bins=126": rankwise(rw.LambdaRank(**LIGHTGBM_S), gradient_bins=126),
        "rankwise, normalize='both'": rankwise(rw.LambdaRank(normalize="both")),
        "rankwise, all pairs": rankwise(rw.LambdaRank()),
        "LightGBM lambdarank": lightgbm,
        "XGBoost rank:ndcg": xgboost,
    }
    return found | {"CatBoost YetiRank": yetirank} if catboost else found


def training(args: argparse.Namespace, train: rw.Queries, test: rw.Queries) -> None:
    found = medians(
        args.repeats,
        {
            name: lambda fit=fit: fit(train, 0)  # type: ignore[misc]
            for name, fit in systems(
                args.rounds, args.leaves, args.threads, catboost=args.catboost
            ).items()
        },
    )
    base = found["rankwise, LightGBM's options"][0]
    print(
        f"\n{f'{args.rounds} trees of {args.leaves} leaves':34}{'CPU s':>9}{'ratio':>8}{'nDCG@10':>10}"
    )
    for name, (seconds, model) in found.items():
        print(f"{name:34}{seconds:9.2f}{seconds / base:8.2f}{ndcg_at_10(model, test):10.4f}")


def ndcg_at_10(model: Any, test: rw.Queries) -> float:
    return (NDCG @ 10).mean(test.y, model.predict(test.X), qid=test.groups)


class Timed:
    """A loss that notes the CPU seconds of its gradients."""

    def __init__(self, loss: rw.LambdaRank) -> None:
        self.loss, self.seconds = loss, 0.0

    def prepare(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        run = self.loss.prepare(*args, **options)

        def timed(scores: Any) -> Any:
            seconds, result = cpu(lambda: run(scores))
            self.seconds += seconds
            return result

        return timed

    def value(self, *args: Any) -> Any:
        return self.loss.value(*args)

    def derivatives(self, *args: Any) -> Any:
        return self.loss.derivatives(*args)


def shares(args: argparse.Namespace, train: rw.Queries) -> None:
    """Seconds of canonical order, bins, gradients, and the engine with everything else."""
    rows: list[list[float]] = []
    for _ in range(args.repeats):
        order = cpu(lambda: rw.data.canonical(train))[0]
        in_bins, binned = cpu(lambda: rw.bin_queries(train, max_bin=MAX_BIN, n_jobs=args.threads))
        loss = Timed(rw.LambdaRank(**LIGHTGBM_S))
        ranker = rw.TreeRanker(
            loss, n_estimators=args.rounds, num_leaves=args.leaves, n_jobs=args.threads
        )
        grow = cpu(partial(ranker.fit, binned))[0]
        rows.append([order, in_bins - order, loss.seconds, grow - loss.seconds])
    print(f"\n{'where our time goes':34}{'CPU s':>9}{'share':>8}")
    found = [statistics.median(column) for column in zip(*rows, strict=True)]
    names = ("rows in canonical order", "bins", "gradients", "LightGBM growing trees")
    for name, seconds in zip(names, found, strict=True):
        print(f"{name:34}{seconds:9.2f}{seconds / sum(found):8.0%}")


def search(args: argparse.Namespace, train: rw.Queries, valid: rw.Queries) -> None:
    grid = [{"num_leaves": n, "min_child_samples": m} for n in (8, 16, 31) for m in (5, 50)]
    common = {"n_estimators": args.rounds, "n_jobs": args.threads}

    def anew() -> list[Any]:
        return [rw.TreeRanker(**common, **g).fit(train, eval_set=valid) for g in grid]

    def shared() -> list[Any]:
        bins = rw.bin_queries(train, n_jobs=args.threads)
        watched = rw.bin_queries(valid, like=bins, n_jobs=args.threads)
        return [rw.TreeRanker(**common, **g).fit(bins, eval_set=watched) for g in grid]

    found = medians(args.repeats, {"bins for each fit": anew, "shared bins": shared})
    texts = [[r.model_text_ for r in models] for _, models in found.values()]
    assert texts[0] == texts[1]
    base = found["shared bins"][0]
    print(f"\n{f'{len(grid)} fits of {args.rounds} trees':34}{'CPU s':>9}{'ratio':>8}")
    for name, (seconds, _) in found.items():
        print(f"{name:34}{seconds:9.2f}{seconds / base:8.2f}")


# --- quality ---------------------------------------------------------------------------------------


def quality(args: argparse.Namespace, sets: list[list[tuple[rw.Queries, rw.Queries]]]) -> None:
    """nDCG@10 of each system for each seed: the mean over the seed's (train, test) pairs."""
    fits = systems(args.rounds, args.leaves, args.threads, catboost=args.catboost)
    values = {
        name: np.array(
            [
                np.mean([ndcg_at_10(fit(train, seed), test) for train, test in pairs])
                for seed, pairs in enumerate(sets)
            ]
        )
        for name, fit in fits.items()
    }
    against = values["LightGBM lambdarank"]
    print(f"\n{f'nDCG@10, {len(sets)} seeds':34}{'mean':>8}{'- LightGBM':>12}{'95 % interval':>20}")
    for name, column in values.items():
        gap = column - against
        _, low, high = interval(gap)
        text = (
            ""
            if name == "LightGBM lambdarank"
            else f"{gap.mean():+12.4f}{low:+11.4f} to {high:+.4f}"
        )
        print(f"{name:34}{column.mean():8.4f}{text}")


def interval(values: Any) -> tuple[float, float, float]:
    """Mean and the ends of its 95 % t interval."""
    from scipy import stats

    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean(), values.mean() - half, values.mean() + half


def mslr(folder: Path, seeds: int) -> list[list[tuple[rw.Queries, rw.Queries]]]:
    """The 89 queries of the sample in five folds, cut anew for each seed."""
    names = ("train", "vali", "test")
    queries = rw.concatenate([rw.read(folder / "mslr-sample" / f"{name}.txt") for name in names])
    return [
        [
            (rw.concatenate([train, valid]), test)
            for train, valid, test in queries.folds(5, rng=seed)
        ]
        for seed in range(seeds)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", default="gradient,training,shares,search")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--leaves", type=int, default=63)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--catboost", action="store_true", help="also CatBoost YetiRank, which is slow"
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    args = parser.parse_args()
    parts = args.part.split(",")
    print(f"LightGBM {lgb.__version__}, XGBoost {xgb.__version__}, {args.threads} thread(s)")
    if {"gradient", "training", "shares", "search"} & set(parts):
        train, test = web(args.queries, 0)
        print(train)
        if "gradient" in parts:
            gradients(train, max(3, args.rounds // 10), args.repeats)
        if "training" in parts:
            training(args, train, test)
        if "shares" in parts:
            shares(args, train)
        if "search" in parts:
            search(args, train, test)
    if "quality" in parts:
        quality(args, [[web(args.queries, seed)] for seed in range(args.seeds)])
    if "mslr" in parts:
        quality(args, mslr(args.data, args.seeds))


def web(n_queries: int, seed: int) -> tuple[rw.Queries, rw.Queries]:
    queries = rw.make_queries("web", n_queries=n_queries + 500, rng=seed, dtype=np.float32)
    return queries.take(range(n_queries)), queries.take(range(n_queries, len(queries)))


if __name__ == "__main__":
    main()
