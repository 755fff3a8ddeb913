"""DORM beside RankSVM and RankNet as training queries grow, and its cost as lists do.

    OMP_NUM_THREADS=1 python benchmarks/study_dorm.py curves DATA/letor4/MQ2008
    OMP_NUM_THREADS=1 python benchmarks/study_dorm.py cost

``curves``: nDCG@10 of the test queries, mean over the folds; penalties are chosen on the validation
queries from the grids of the recipes, training queries are the first of each fold in a seeded order.
``cost``: seconds of CPU for a whole fit on lists of growing length, 20,000 documents in all.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

import rankwise as rw

RANKERS = "ranksvm", "ranknet", "dorm", "dorm(places='reciprocal')"
SIZES = 25, 100, 400


def curves(folder: str) -> None:
    folds = list(rw.read_folds(folder))
    print("| training queries | " + " | ".join(f"`{r}`" for r in RANKERS) + " |")
    print("|---|" + "---|" * len(RANKERS))
    for size in SIZES:
        means = []
        for ranker in RANKERS:
            scores = []
            for train, valid, test in folds:
                useful = [q for q in range(train.n_queries) if np.ptp(train.y[_rows(train, q)]) > 0]
                some = np.random.default_rng(0).permutation(useful)[:size]
                fold = rw.Fold(train.take(np.sort(some)), valid, test)
                scores.append(_tested(ranker, fold))
            means.append(float(np.nanmean(np.concatenate(scores))))
        print(f"| {size} | " + " | ".join(f"{m:.4f}"[1:] for m in means) + " |", flush=True)


def _tested(ranker: str, fold: rw.Fold) -> Any:
    found = rw.run_experiment([ranker], [fold], ["ndcg@10"])
    return found.outcomes[0].per_query["ndcg@10"]


def _rows(lists: rw.Queries, q: int) -> slice:
    return slice(int(lists.offsets[q]), int(lists.offsets[q + 1]))


def cost() -> None:
    print("| documents a list | lists | `ranksvm` [s] | `dorm` [s] | rounds | ms a round |")
    print("|---|---|---|---|---|---|")
    for length in (20, 50, 100, 200, 500, 1000, 2000):
        lists = 20_000 // length
        queries = rw.make_queries("web", n_queries=lists, n_docs=length)
        took, rounds = [], 0
        for ranker in (rw.RankSVM(C=1e-4, scale="std"), rw.DORM(C=0.1)):
            start = time.process_time()
            ranker.fit(queries)
            took.append(time.process_time() - start)
            rounds = ranker.n_iter_
        each = 1e3 * took[1] / rounds
        print(
            f"| {length:,} | {lists:,} | {took[0]:.2f} | {took[1]:.2f} | {rounds} | {each:.0f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["curves", "cost"])
    parser.add_argument("folder", nargs="?")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.part == "cost":
        cost()
    elif arguments.folder is None:
        parser.error("curves needs the folder of a LETOR data set with folds")
    else:
        curves(arguments.folder)


if __name__ == "__main__":
    main()
