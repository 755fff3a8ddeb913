"""Metrics from arrays: rankwise against hand-written NumPy, scikit-learn, pytrec_eval and ranx.

nDCG@10, AP, RR, P@10 and recall@100 together, over many queries of equal length, so that NumPy can
work on a dense matrix. CPU time of one thread, medians of alternating repeats, and the ratio to
rankwise. The peers that want dictionaries get them built beforehand; they run on fewer
queries and are scaled up where --peer-queries is smaller than --queries.

    OMP_NUM_THREADS=1 python benchmarks/bench_metrics.py
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import importlib.util
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np

import rankwise as rw

METRICS = "ndcg@10,ap,rr,precision@10,recall@100"


def make_lists(n_queries: int, n_docs: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Labels 0 to 4 with the given share of relevant documents, and scores without ties."""
    rng = np.random.default_rng(0)
    shape = (n_queries, n_docs)
    labels = np.where(rng.random(shape) < share, rng.integers(1, 5, shape), 0).astype(float)
    return labels, rng.normal(size=shape)


def numpy_dense(Y: np.ndarray, S: np.ndarray) -> list[np.ndarray]:
    """What a careful user writes by hand: one sort per query, everything else dense."""
    n = Y.shape[1]
    ranked = np.take_along_axis(Y, np.argsort(-S, axis=1), axis=1)
    ideal = -np.sort(-np.partition(Y, n - 10, axis=1)[:, -10:], axis=1)
    discount = 1 / np.log2(np.arange(2, 12))
    relevant = ranked >= 1
    found = np.cumsum(relevant, axis=1)
    total = found[:, -1]
    with np.errstate(invalid="ignore", divide="ignore"):
        ndcg = ((2.0 ** ranked[:, :10] - 1) @ discount) / ((2.0**ideal - 1) @ discount)
        ap = (found * relevant / np.arange(1, n + 1)).sum(axis=1) / total
        rr = np.where(total > 0, 1 / (relevant.argmax(axis=1) + 1), np.nan)
        recall = found[:, 99] / total
    precision = np.where(total > 0, found[:, 9] / 10, np.nan)
    return [ndcg, ap, rr, precision, recall]


def as_dicts(Y: np.ndarray, S: np.ndarray) -> tuple[dict, dict]:
    docs = [f"d{j}" for j in range(Y.shape[1])]
    qrels = {
        f"q{i}": {d: int(v) for d, v in zip(docs, row, strict=True)} for i, row in enumerate(Y)
    }
    run = {f"q{i}": dict(zip(docs, map(float, row), strict=True)) for i, row in enumerate(S)}
    return qrels, run


def pytrec_eval_job(Y: np.ndarray, S: np.ndarray) -> Callable[[], object]:
    import pytrec_eval

    qrels, run = as_dicts(Y, S)
    measures = {"ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100"}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, measures)
    return lambda: evaluator.evaluate(run)


def ranx_job(Y: np.ndarray, S: np.ndarray) -> Callable[[], object]:
    from ranx import Qrels, Run, evaluate

    qrels, run = as_dicts(Y, S)
    judged, answers = Qrels(qrels), Run(run)
    measures = ["ndcg_burges@10", "map", "mrr", "precision@10", "recall@100"]
    return lambda: evaluate(judged, answers, measures, threads=1)


def sklearn_job(Y: np.ndarray, S: np.ndarray) -> Callable[[], object]:
    from sklearn.metrics import ndcg_score

    return lambda: ndcg_score(2**Y - 1, S, k=10)


def medians(jobs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median CPU seconds of each job, in alternation after one call to warm up."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(repeats):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def check(Y: np.ndarray, S: np.ndarray, groups: rw.Groups) -> None:
    """Both give the same numbers before either is timed."""
    ours = rw.evaluate(METRICS, Y.ravel(), S.ravel(), qid=groups).values()
    for a, b in zip(ours, numpy_dense(Y, S), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def dense_table(n_queries: int, n_docs: int, share: float, repeats: int) -> float:
    Y, S = make_lists(n_queries, n_docs, share)
    labels, scores = Y.ravel(), S.ravel()
    qid = np.repeat(np.arange(n_queries), n_docs)
    groups = rw.group_rows(qid)
    check(Y, S, groups)
    times = medians(
        {
            "rankwise, Groups": lambda: rw.evaluate(METRICS, labels, scores, qid=groups),
            "rankwise, qid per row": lambda: rw.evaluate(METRICS, labels, scores, qid=qid),
            "rankwise, ties=trec": lambda: rw.evaluate(
                METRICS,
                labels,
                scores,
                qid=rw.Groups(groups.offsets, groups.ids, docs_descending=True),
                preset="trec_eval",
            ),
            "NumPy, dense": lambda: numpy_dense(Y, S),
        },
        repeats,
    )
    print(f"\n{n_queries:,} queries x {n_docs:,} documents, {share:.1%} relevant")
    base = times["rankwise, Groups"]
    for name, seconds in times.items():
        per_doc = seconds / (n_queries * n_docs) * 1e9
        print(f"  {name:<24}{seconds:9.4f} s  {per_doc:7.2f} ns/doc  ratio {seconds / base:6.1f}")
    return base


def peer_table(n_queries: int, n_docs: int, share: float, base: float, scale: float) -> None:
    Y, S = make_lists(n_queries, n_docs, share)
    builders = {"sklearn": sklearn_job, "pytrec_eval": pytrec_eval_job, "ranx": ranx_job}
    print(f"\npeers on {n_queries:,} of them, scaled by {scale:g}")
    for name, build in builders.items():
        if importlib.util.find_spec(name) is None:
            print(f"  {name:<24} not installed")
            continue
        seconds = medians({name: build(Y, S)}, 3)[name] * scale
        note = {"sklearn": "nDCG@10 only", "ranx": "warm"}.get(name, "dicts built before")
        print(f"  {name:<24}{seconds:9.2f} s  ratio {seconds / base:7.1f}  ({note})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--docs", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peer-queries", type=int, default=1_000)
    parser.add_argument("--no-peers", action="store_true")
    args = parser.parse_args()
    print(f"rankwise {rw.__version__}, NumPy {np.__version__}, {platform.machine()}, one thread")
    base = dense_table(args.queries, args.docs, 0.02, args.repeats)
    for share in (0.005, 0.1, 0.5):
        dense_table(args.queries // 4, args.docs, share, args.repeats)
    if not args.no_peers:
        peers = min(args.peer_queries, args.queries)
        peer_table(peers, args.docs, 0.02, base, args.queries / peers)


if __name__ == "__main__":
    main()
