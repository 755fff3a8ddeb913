"""What an exact kernel costs: training time and quality against the number of documents.

    python benchmarks/bench_kernel_ranksvm.py [--mq2008 FOLDER] [--largest 10000] [--hinge 5000]

Part 1: growing subsamples of a web-like set of 40,000 documents (136 features, each scaled inside
its query): exact RBF kernels with squared hinge and hinge up to the sizes given, as their cost grows
with the square; linear RankSVM and both maps on all sizes; the slope of log seconds against log
documents. Part 2: fold 1 of MQ2008, MeanNDCG (LETOR 4). CPU seconds; quality on test queries.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import rankwise as rw


def rankers(gamma, C, m):
    """Name -> ranker. C is that of the sum over pairs."""
    return {
        "linear RankSVM": rw.RankSVM(C),
        "exact RBF, squared hinge": rw.KernelRankSVM("rbf", gamma=gamma, C=C, memory_limit=16),
        "exact RBF, hinge": rw.KernelRankSVM(
            "rbf", gamma=gamma, C=C, loss="hinge", tol=1e-3, memory_limit=16
        ),
    } | approximations(gamma, C, m)


def approximations(gamma, C, m):
    return {
        f"Nystrom, m = {m}": rw.KernelRanker(
            rw.Nystroem(gamma=gamma, n_components=m, random_state=0), C=C
        ),
        f"random features, m = {m}": rw.KernelRanker(
            rw.RandomFourierFeatures(gamma=gamma, n_components=m, random_state=0), C=C
        ),
    }


def measure(model, train, test, metric):
    start = time.process_time()
    model.fit(train)
    fitting = time.process_time() - start
    start = time.process_time()
    scores = model.predict(test)
    scoring = time.process_time() - start
    return fitting, scoring, metric.mean(test.y, scores, qid=test.groups)


def growing(largest, largest_hinge):
    metric = rw.parse_metric("ndcg@10")
    queries = rw.make_queries("web", n_queries=450, rng=2)
    queries = rw.QueryScaler().fit_transform(queries)
    train, test = queries.take(range(350)), queries.take(range(350, 450))
    sizes = (1250, 2500, 5000, 10_000, 20_000, 40_000)
    limits = {"exact RBF, squared hinge": largest, "exact RBF, hinge": largest_hinge}
    rows: dict[str, list[tuple[int, float]]] = {}
    print(f"web-like set, {train.n_docs} documents\n")
    print("documents  ranker                       fit s  score s  nDCG@10")
    for n in sizes:
        part = train.take(np.flatnonzero(train.offsets[1:] <= n))
        for name, model in rankers(0.1, 1e-2 * 5000 / n, 500).items():
            if n > limits.get(name, n):
                continue
            fitting, scoring, quality = measure(model, part, test, metric)
            rows.setdefault(name, []).append((part.n_docs, fitting))
            print(
                f"{part.n_docs:9d}  {name:26s} {fitting:7.2f}  {scoring:7.2f}   {quality:.4f}",
                flush=True,
            )
    print("\nslope of log seconds against log documents (the three largest)")
    for name, points in rows.items():
        n, seconds = np.log(np.array(points)).T
        print(f"  {name:26s} {np.polyfit(n[-3:], seconds[-3:], 1)[0]:5.2f}")


def mq2008(folder):
    train, _, test = next(iter(rw.read_folds(folder)))
    metric = rw.parse_metric("mean_ndcg", preset="letor4")
    print(f"\nMQ2008, fold 1, {train.n_docs} documents\n")
    print("ranker                         fit s  score s  MeanNDCG")
    for name, model in rankers(2.0**-4, 2.0**-6, 2000).items():
        fitting, scoring, quality = measure(model, train, test, metric)
        print(f"{name:28s} {fitting:7.2f}  {scoring:7.2f}    {quality:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mq2008", help="folder of MQ2008")
    parser.add_argument("--largest", type=int, default=10_000)
    parser.add_argument("--hinge", type=int, default=5_000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    growing(args.largest, args.hinge)
    if args.mq2008:
        mq2008(args.mq2008)


if __name__ == "__main__":
    main()
