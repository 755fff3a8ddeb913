"""LambdaMART and its peers, each tuned with the same random draws from the same ranges.

    python benchmarks/study_lambdamart_tuned.py ../shared/data --cache ../tuned_cache --trials 8

For every fold of MQ2008, OHSUMED and the MSLR sample, each system is fitted with ``--trials`` sets of
parameters; the sets are drawn once and given to all systems under each one's own names (``SYSTEMS``
says how). Every fit stops by its own library's nDCG@10 on the validation queries, the set with the
best nDCG@10 there (measured by rankwise for all) scores the test queries, once. All of it is done
with ``--seeds`` seeds of the subsampling, a query's value is the mean over them, and systems are
compared query by query with rankwise's. Beside LambdaMART stand trees on LambdaLoss's weights of
the same pairs (NDCG-Loss2++; they have no normalisation to choose) and an average of five LambdaMARTs
(BL-MART). Finished data sets of a system are files in the cache.
"""

from __future__ import annotations

import os

# Read by OpenMP when the libraries load: waiting threads must not take the processor from others.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from rankwise.space import Range
from study_losses import DATA, Folds, store, stored

METRICS = ("ndcg@10", "ap")
ROUNDS, PATIENCE = 300, 30
Scorer = Callable[[rw.Queries], Any]

SPACE: dict[str, Any] = {
    "learning_rate": Range(0.03, 0.2, log=True),
    "num_leaves": Range(4, 64, log=True, integer=True),
    "min_child_samples": Range(5, 100, log=True, integer=True),
    "reg_lambda": Range(1e-3, 10, log=True),
    "subsample": Range(0.5, 1.0),
    "colsample_bytree": Range(0.3, 1.0),
    "normalize": (False, True),
}


def draws(n: int) -> list[dict[str, Any]]:
    """The sets of parameters, the same for every system, fold and data set."""
    from sklearn.model_selection import ParameterSampler

    return list(ParameterSampler(SPACE, n, random_state=0))


def rankwise(train: rw.Queries, valid: rw.Queries, p: dict[str, Any], seed: int) -> Scorer:
    own = {k: v for k, v in p.items() if k != "normalize"}
    loss = rw.LambdaRank(normalize="both" if p["normalize"] else "none")
    ranker = rw.TreeRanker(
        loss,
        n_estimators=ROUNDS,
        early_stopping_rounds=PATIENCE,
        random_state=seed,
        n_jobs=1,
        **own,
    )
    return ranker.fit(train, eval_set=valid).predict


def lambdaloss(train: rw.Queries, valid: rw.Queries, p: dict[str, Any], seed: int) -> Scorer:
    own = {k: v for k, v in p.items() if k != "normalize"}
    ranker = rw.TreeRanker(
        rw.LambdaLoss("ndcg2++"),
        n_estimators=ROUNDS,
        early_stopping_rounds=PATIENCE,
        random_state=seed,
        n_jobs=1,
        **own,
    )
    return ranker.fit(train, eval_set=valid).predict


def bagged(train: rw.Queries, valid: rw.Queries, p: dict[str, Any], seed: int) -> Scorer:
    """BL-MART of five: about the processor time of CatBoost's one model."""
    own = {k: v for k, v in p.items() if k != "normalize"}
    loss = rw.LambdaRank(normalize="both" if p["normalize"] else "none")
    trees = rw.TreeRanker(
        loss, n_estimators=ROUNDS, early_stopping_rounds=PATIENCE, n_jobs=1, **own
    )  # fmt: skip
    bag = rw.BaggedRanker(trees, n_rankers=5, bag=0.8, n_chosen=10, random_state=seed)
    return bag.fit(train, eval_set=valid).predict


def lightgbm(train: rw.Queries, valid: rw.Queries, p: dict[str, Any], seed: int) -> Scorer:
    import lightgbm as lgb

    own = {k: v for k, v in p.items() if k != "normalize"}
    model = lgb.LGBMRanker(
        n_estimators=ROUNDS, lambdarank_norm=p["normalize"], subsample_freq=1, bagging_by_query=True,
        random_state=seed, n_jobs=1, verbose=-1, **own,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions would rather have eval_X
        model.fit(
            train.X, train.y, group=train.sizes, eval_set=[(valid.X, valid.y)],
            eval_group=[valid.sizes], eval_metric="ndcg", eval_at=[10],
            callbacks=[lgb.early_stopping(PATIENCE, verbose=False)],
        )  # fmt: skip
    return lambda queries: model.predict(queries.X)


def xgboost(train: rw.Queries, valid: rw.Queries, p: dict[str, Any], seed: int) -> Scorer:
    """XGBoost limits the curvature of a leaf, not its documents: a tenth of their number."""
    import xgboost as xgb

    model = xgb.XGBRanker(
        objective="rank:ndcg", tree_method="hist", grow_policy="lossguide", max_depth=0,
        n_estimators=ROUNDS, early_stopping_rounds=PATIENCE, eval_metric="ndcg@10",
        learning_rate=p["learning_rate"], max_leaves=p["num_leaves"],
        min_child_weight=p["min_child_samples"] / 10, reg_lambda=p["reg_lambda"],
        subsample=p["subsample"], colsample_bytree=p["colsample_bytree"],
        lambdarank_normalization=p["normalize"], random_state=seed, n_jobs=1,
    )  # fmt: skip
    model.fit(
        train.X, train.y, qid=_numbers(train), eval_set=[(valid.X, valid.y)],
        eval_qid=[_numbers(valid)], verbose=False,
    )  # fmt: skip
    return lambda queries: model.predict(queries.X)


def catboost(train: rw.Queries, valid: rw.Queries, p: dict[str, Any], seed: int) -> Scorer:
    """CatBoost's YetiRank has no normalisation to choose."""
    import catboost as cb

    model = cb.CatBoostRanker(
        loss_function="YetiRank", eval_metric="NDCG:top=10;type=Exp", iterations=ROUNDS,
        early_stopping_rounds=PATIENCE, grow_policy="Lossguide", max_leaves=p["num_leaves"],
        learning_rate=p["learning_rate"], min_data_in_leaf=p["min_child_samples"],
        l2_leaf_reg=p["reg_lambda"], bootstrap_type="Bernoulli", subsample=p["subsample"],
        rsm=p["colsample_bytree"], random_seed=seed, thread_count=1, verbose=False,
        allow_writing_files=False,
    )  # fmt: skip
    model.fit(_pool(train), eval_set=_pool(valid))
    return lambda queries: model.predict(queries.X)


def _numbers(queries: rw.Queries) -> Any:
    return np.repeat(np.arange(queries.n_queries), queries.sizes)


def _pool(queries: rw.Queries) -> Any:
    import catboost as cb

    return cb.Pool(queries.X, queries.y, group_id=_numbers(queries))


SYSTEMS: dict[str, Callable[[rw.Queries, rw.Queries, dict[str, Any], int], Scorer]] = {
    "rankwise LambdaMART": rankwise,
    "rankwise LambdaLoss": lambdaloss,
    "LightGBM lambdarank": lightgbm,
    "XGBoost rank:ndcg": xgboost,
    "CatBoost YetiRank": catboost,
    "rankwise BL-MART of 5": bagged,
}


SLUGS = {"rankwise BL-MART of 5": "bagged", "rankwise LambdaLoss": "lambdaloss"}


def tuned(folds: Folds, fit: Any, sets: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    """Test values of every query by the set that is best on the validation queries of each fold."""
    by = rw.parse_metric(METRICS[0])
    values: dict[str, list[np.ndarray]] = {m: [] for m in METRICS}
    kept, cpu = [], time.process_time()
    for train, valid, test in folds:
        scorers = [fit(train, valid, p, seed) for p in sets]
        means = [by.mean(valid.y, score(valid), qid=valid.groups) for score in scorers]
        best = int(np.argmax(means))
        kept.append(best)
        for m, v in rw.evaluate(METRICS, test.y, scorers[best](test), qid=test.groups).items():
            values[m].append(v)
    return {
        "values": {m: np.concatenate(v).tolist() for m, v in values.items()},
        "kept": kept,
        "cpu_seconds": time.process_time() - cpu,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder of letor4/, letor3/ and mslr-sample/")
    parser.add_argument("--cache", type=Path, required=True, help="folder for finished results")
    parser.add_argument("--trials", type=int, default=8, help="sets of parameters (default: 8)")
    parser.add_argument("--seeds", type=int, default=1, help="seeds of each fit (default: 1)")
    parser.add_argument("--only", default="", help=f"data sets by commas, of {', '.join(DATA)}")
    parser.add_argument("--no-bags", action="store_true", help="leave BL-MART out")
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    sets = draws(args.trials)
    systems = {n: f for n, f in SYSTEMS.items() if not (args.no_bags and f is bagged)}
    for data in args.only.split(",") if args.only else DATA:
        folds = DATA[data][1](args.data)
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in systems}
        for (name, fit), seed in itertools.product(systems.items(), range(args.seeds)):
            settings = f"{SPACE} {args.trials} {ROUNDS} {PATIENCE} {METRICS}"
            path = args.cache / f"tuned-{data}-{SLUGS.get(name, name.split()[0])}-{seed}.json"
            content = stored(path, settings)
            if content is None:
                content = {"settings": settings, **tuned(folds, fit, sets, seed)}
                store(path, content)
            results[name].append(content)
        values = {
            m: {
                s: np.mean([np.array(r["values"][m], float) for r in rs], axis=0)
                for s, rs in results.items()
            }
            for m in METRICS
        }
        n = len(values[METRICS[0]]["rankwise LambdaMART"])
        head = f"{args.trials} draws per fold, {args.seeds} seeds"
        print(f"\n## {DATA[data][0].format(n=n)}, {head}\n")
        comparison = rw.compare(
            values,
            baseline="rankwise LambdaMART",
            columns={
                "CPU [s]": {s: sum(r["cpu_seconds"] for r in rs) for s, rs in results.items()}
            },
        )
        print(comparison.to_markdown(), flush=True)


if __name__ == "__main__":
    main()
