"""Lambda gradients alone: one call a round, beside LightGBM's lambdarank and XGBoost's.

    python benchmarks/bench_lambdas.py                  # 4,000 queries of about 120 documents, 400 of 1,000
    python benchmarks/bench_lambdas.py --queries 1000 --repeats 3
    python benchmarks/bench_lambdas.py --only slope     # cost against the length of the list, to 10,000

One thread (this script sets OMP_NUM_THREADS=1), CPU seconds, systems taking turns, medians and ratios
of one run. Scores are those of a model after some rounds; each call gets scores that moved as in one
round, so that sorting starts from the last order as in training. The peers' gradients are timed by the
difference between boosting two-leaf trees on their ranking objective and on squared error.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import argparse
import functools
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import rankwise as rw

ROUNDS = 10


def cpu(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def ours(loss: Any, data: rw.Queries, scores: list[np.ndarray]) -> Callable[[], float]:
    run = loss.prepare(data.y, data.offsets, n_threads=1)
    run(scores[0])
    turns = itertools.cycle(scores)
    return lambda: cpu(lambda: [run(next(turns)) for _ in range(ROUNDS)]) / ROUNDS


def lightgbm_rounds(data: lgb.Dataset, **params: Any) -> float:
    """CPU seconds a round of boosting two-leaf trees."""
    settings = {"num_leaves": 2, "verbosity": -1, "force_col_wise": True, "metric": "None"}
    booster = lgb.Booster({**settings, **params}, data)
    booster.update()
    return cpu(lambda: [booster.update() for _ in range(ROUNDS)]) / ROUNDS


def lightgbm(data: lgb.Dataset, truncation: int) -> Callable[[], float]:
    def by_difference() -> float:
        ranking = lightgbm_rounds(
            data, objective="lambdarank", lambdarank_truncation_level=truncation
        )
        return ranking - lightgbm_rounds(data, objective="regression")

    return by_difference


def xgboost_rounds(data: xgb.QuantileDMatrix, objective: str) -> float:
    settings = {"max_leaves": 2, "grow_policy": "lossguide", "nthread": 1, "objective": objective}
    booster = xgb.train(settings, data, 1)
    turns = itertools.count(1)
    return cpu(lambda: [booster.update(data, next(turns)) for _ in range(ROUNDS)]) / ROUNDS


def xgboost(data: xgb.QuantileDMatrix, objective: str) -> Callable[[], float]:
    return lambda: xgboost_rounds(data, objective) - xgboost_rounds(data, "reg:squarederror")


def table(title: str, contenders: dict[str, Callable[[], float]], repeats: int) -> None:
    """``base`` of a contender is the first one whose name ends alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, function in contenders.items():
            seconds[name].append(function())
    print(f"\n{title:46}{'CPU ms':>9}{'ratio':>8}")
    for name, values in seconds.items():
        kind = name.split(", ")[-1]
        base = next(statistics.median(seconds[n]) for n in seconds if n.endswith(kind))
        ms = statistics.median(values)
        print(f"{name:46}{1e3 * ms:9.2f}{ms / base:8.2f}")


def lists(n_queries: int, size: int, features: int) -> rw.Queries:
    """Web-search like lists of about ``size`` documents with few features."""
    queries = rw.make_queries("web", n_queries=n_queries * size // 115, dtype=np.float32)
    X = np.ascontiguousarray(queries.X[:, :features])
    if size < 200:
        return rw.Queries(X, queries.y, queries.offsets, queries.ids)
    offsets = np.append(np.arange(0, queries.n_docs - size + 1, size), [])
    n = int(offsets[-1])
    return rw.Queries(X[:n], queries.y[:n], offsets.astype(np.int64), np.arange(len(offsets) - 1))


def moving_scores(data: rw.Queries) -> list[np.ndarray]:
    """The scores of a boosted model from its 15th round on, one per round."""
    model = rw.TreeRanker(n_estimators=15 + 6, num_leaves=63, n_jobs=1).fit(data)
    return list(model.staged_predict(data))[14:]


def compare(n_queries: int, size: int, repeats: int) -> None:
    data = lists(n_queries, size, 20)
    scores = moving_scores(data)
    there_and_back = scores + scores[-2:0:-1]
    frame = lgb.Dataset(data.X, label=data.y, group=data.sizes, params={"max_bin": 255})
    frame.construct()
    binary = (data.y > 0).astype(np.float32)
    matrix = xgb.QuantileDMatrix(data.X, data.y, qid=data.qid)
    relevance = xgb.QuantileDMatrix(data.X, binary, qid=data.qid)
    print(f"\n{data}")

    def run(**options: Any) -> Callable[[], float]:
        return ours(rw.LambdaRank(**options), data, there_and_back)

    table(
        "one gradient",
        {
            "rankwise, first 30 places": run(truncation=30),
            "rankwise, normalize='both', first 30 places": run(truncation=30, normalize="both"),
            "LightGBM lambdarank, first 30 places": lightgbm(frame, 30),
            "rankwise, all pairs": run(),
            "rankwise, normalize='both', all pairs": run(normalize="both"),
            "LightGBM lambdarank, all pairs": lightgbm(frame, 100_000),
            "XGBoost rank:ndcg, its own pairs": xgboost(matrix, "rank:ndcg"),
            "rankwise ap, AP": run(metric="ap"),
            "XGBoost rank:map, AP": xgboost(relevance, "rank:map"),
            "rankwise rr, RR": run(metric="rr"),
            "rankwise err, ERR": run(metric="err"),
            "rankwise lambdaloss ndcg2++, LambdaLoss": ours(rw.LambdaLoss(), data, there_and_back),
        },
        repeats,
    )


def slope(repeats: int) -> None:
    """CPU ms of one list by its length: all pairs, a truncation, drawn pairs; exponent at the end."""
    sizes = (300, 1_000, 3_000, 10_000)
    kinds = {
        "all pairs": {},
        "truncation=30": {"truncation": 30},
        "pairs_per_doc=32": {"pairs_per_doc": 32},
        "ap, all pairs": {"metric": "ap"},
        "ap, pairs_per_doc=32": {"metric": "ap", "pairs_per_doc": 32},
        "err, truncation=30": {"metric": "err", "truncation": 30},
        "all scores tied": {},
    }
    print(f"\n{'CPU ms a list of':22}" + "".join(f"{n:>10,}" for n in sizes) + f"{'exponent':>10}")
    rng = np.random.default_rng(0)
    for name, options in kinds.items():
        cost = []
        for n in sizes:
            count = max(1, 30_000 // n)
            y = rng.choice(5, n * count, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(float)
            s = rng.normal(size=n * count) * (name != "all scores tied")
            run = rw.LambdaRank(**options).prepare(y, np.arange(count + 1) * n, n_threads=1)
            run(s)
            again = functools.partial(run, s)
            cost.append(statistics.median(cpu(again) for _ in range(repeats)) / count)
        exponent = np.log(cost[-1] / cost[-2]) / np.log(sizes[-1] / sizes[-2])
        print(f"{name:22}" + "".join(f"{1e3 * c:10.2f}" for c in cost) + f"{exponent:10.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--queries", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("short", "long", "slope"))
    args = parser.parse_args()
    print(f"rankwise {rw.__version__}, LightGBM {lgb.__version__}, XGBoost {xgb.__version__}")
    if args.only in (None, "short"):
        compare(args.queries, 115, args.repeats)
    if args.only in (None, "long"):
        compare(args.queries // 10, 1000, args.repeats)
    if args.only in (None, "slope"):
        slope(args.repeats)


if __name__ == "__main__":
    main()
