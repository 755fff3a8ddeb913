"""LambdaMART beside LightGBM's lambdarank and XGBoost's rank:ndcg.

    python benchmarks/bench_lambdamart.py                    # 4,000 queries of about 120 documents
    python benchmarks/bench_lambdamart.py --queries 1000 --rounds 20 --repeats 1

Two tables on the same synthetic web-search lists (136 features), one thread (this script sets
OMP_NUM_THREADS=1), CPU seconds, systems taking turns, medians and the ratio to rankwise:

* the gradient of one round: ours called alone; the peers' by the difference between boosting two-leaf
  trees on their ranking objective and on squared error (one call of squared error is far below 1 ms);
* whole training, binning included, with the same number of trees, leaves and bins, and the nDCG@10
  of the result on other queries.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import statistics
import time
from collections.abc import Callable
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


def training(train: rw.Queries, test: rw.Queries, rounds: int, leaves: int, repeats: int) -> None:
    def rankwise(**options: Any) -> Callable[[], Any]:
        loss = rw.LambdaRank(**options)
        return lambda: rw.TreeRanker(
            loss, n_estimators=rounds, num_leaves=leaves, learning_rate=LEARNING_RATE, n_jobs=1
        ).fit(train)

    def lightgbm() -> Any:
        return lgb.LGBMRanker(
            n_estimators=rounds,
            num_leaves=leaves,
            learning_rate=LEARNING_RATE,
            max_bin=MAX_BIN,
            n_jobs=1,
            verbose=-1,
        ).fit(train.X, train.y, group=train.sizes)

    def xgboost() -> Any:
        return xgb.XGBRanker(
            objective="rank:ndcg",
            n_estimators=rounds,
            max_leaves=leaves,
            max_depth=0,
            grow_policy="lossguide",
            learning_rate=LEARNING_RATE,
            max_bin=MAX_BIN,
            n_jobs=1,
        ).fit(train.X, train.y, qid=train.qid)

    contenders = {
        "rankwise, all pairs": rankwise(),
        "rankwise, first 30 places": rankwise(truncation=30),
        "rankwise, normalize='both'": rankwise(normalize="both"),
        "LightGBM lambdarank": lightgbm,
        "XGBoost rank:ndcg": xgboost,
    }
    found = medians(repeats, contenders)
    base = found["rankwise, all pairs"][0]
    print(f"\n{f'{rounds} trees of {leaves} leaves':34}{'CPU s':>9}{'ratio':>8}{'nDCG@10':>10}")
    for name, (seconds, model) in found.items():
        ndcg = (NDCG @ 10).mean(test.y, model.predict(test.X), qid=test.groups)
        print(f"{name:34}{seconds:9.1f}{seconds / base:8.2f}{ndcg:10.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--queries", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--leaves", type=int, default=63)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    queries = rw.make_queries("web", n_queries=args.queries + 1000, dtype=np.float32)
    train, test = queries.take(range(args.queries)), queries.take(range(args.queries, len(queries)))
    print(f"{train}; LightGBM {lgb.__version__}, XGBoost {xgb.__version__}")
    gradients(train, max(3, args.rounds // 10), args.repeats)
    training(train, test, args.rounds, args.leaves, args.repeats)


if __name__ == "__main__":
    main()
