"""Evaluating TREC files: rankwise against pytrec_eval, polars, ir_measures and ranx.

Every contender runs in a process of its own, from the shell's point of view: start Python, import,
read the two files, compute nDCG@10, AP, RR, P@10 and recall@100, print the means. Contenders take
turns, each several times; the table shows medians of wall and CPU seconds, the peak memory, and how
many times rankwise's time each one takes. The means are compared: all must agree.

    python benchmarks/bench_trec.py                       # 50 topics x 1,000 documents, cold
    python benchmarks/bench_trec.py --topics 10000 --repeats 3 --peers pytrec_eval,polars
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SCRIPTS = {
    "rankwise": """
import sys, rankwise as rw
result = rw.evaluate_files(sys.argv[2], sys.argv[1],
                           "ndcg_cut_10,map,recip_rank,P_10,recall_100", preset="trec_eval")
print(*(result.means(m)[0].value for m in result.metrics))
""",
    "rankwise, 1 thread": """
import sys, rankwise as rw
result = rw.evaluate_files(sys.argv[2], sys.argv[1], "ndcg_cut_10,map,recip_rank,P_10,recall_100",
                           preset="trec_eval", n_threads=1)
print(*(result.means(m)[0].value for m in result.metrics))
""",
    "pytrec_eval": """
import sys, pytrec_eval
names = ["ndcg_cut_10", "map", "recip_rank", "P_10", "recall_100"]
with open(sys.argv[2]) as f: qrels = pytrec_eval.parse_qrel(f)
with open(sys.argv[1]) as f: run = pytrec_eval.parse_run(f)
values = pytrec_eval.RelevanceEvaluator(qrels, set(names)).evaluate(run)
print(*(sum(v[n] for v in values.values()) / len(values) for n in names))
""",
    "polars": """
import sys, polars as pl
read = dict(separator=" ", has_header=False)
run = (pl.scan_csv(sys.argv[1], new_columns=["qid", "q0", "doc", "rank", "score", "tag"], **read)
       .select(pl.col("qid").cast(pl.Int64), "doc", pl.col("score").cast(pl.Float64)).collect())
qrels = pl.read_csv(sys.argv[2], new_columns=["qid", "q0", "doc", "label"], **read)
rank = pl.int_range(1, pl.len() + 1).over("qid")
found = (run.sort(["qid", "score", "doc"], descending=[False, True, True])
         .with_columns(rank=rank).join(qrels, on=["qid", "doc"], how="inner")
         .filter(pl.col("label") > 0).sort(["qid", "rank"]).with_columns(n=rank))
gain = pl.col("label") / (pl.col("rank") + 1).log(2)
sums = found.group_by("qid").agg(
    dcg=gain.filter(pl.col("rank") <= 10).sum(), ap=(pl.col("n") / pl.col("rank")).sum(),
    rr=1 / pl.col("rank").min(), p=(pl.col("rank") <= 10).sum() / 10,
    recall=(pl.col("rank") <= 100).sum())
ideal = (qrels.filter(pl.col("label") > 0).sort(["qid", "label"], descending=[False, True])
         .with_columns(rank=rank).group_by("qid")
         .agg(ideal=gain.filter(pl.col("rank") <= 10).sum(), R=pl.len()))
table = qrels.select("qid").unique().join(ideal, on="qid", how="left") \\
             .join(sums, on="qid", how="left").fill_null(0)
print(*table.select(
    (pl.col("dcg") / pl.col("ideal")).fill_nan(0).mean(),
    (pl.col("ap") / pl.col("R")).fill_nan(0).alias("ap").mean(), pl.col("rr").mean(),
    pl.col("p").mean(), (pl.col("recall") / pl.col("R")).fill_nan(0).alias("recall").mean()).row(0))
""",
    "ir_measures": """
import sys, ir_measures
from ir_measures import AP, P, R, RR, nDCG
names = [nDCG @ 10, AP, RR, P @ 10, R @ 100]
values = ir_measures.calc_aggregate(names, ir_measures.read_trec_qrels(sys.argv[2]),
                                    ir_measures.read_trec_run(sys.argv[1]))
print(*(values[n] for n in names))
""",
    "ranx": """
import sys
from ranx import Qrels, Run, evaluate
names = ["ndcg@10", "map", "mrr", "precision@10", "recall@100"]
values = evaluate(Qrels.from_file(sys.argv[2], kind="trec"),
                  Run.from_file(sys.argv[1], kind="trec"), names)
print(*(values[n] for n in names))
""",
}


def write_files(folder: Path, n_topics: int, n_docs: int, n_judged: int) -> tuple[Path, Path]:
    """A run and qrels of the given size: about half of the judged documents are retrieved."""
    rng = np.random.default_rng(0)
    run, qrels = folder / "bench.run", folder / "bench.qrels"
    with run.open("w") as run_file, qrels.open("w") as qrels_file:
        for topic in range(1, n_topics + 1):
            docs = rng.choice(5_000_000, n_docs + n_judged, replace=False)
            scores = np.sort(rng.normal(12, 4, n_docs))[::-1]
            rows = zip(docs[:n_docs].tolist(), scores.tolist(), strict=True)
            run_file.writelines(
                f"{topic} Q0 D{doc:07d} {i} {score:.5f} bench\n"
                for i, (doc, score) in enumerate(rows, start=1)
            )
            judged = docs[n_docs - n_judged // 2 :][:n_judged]
            labels = rng.choice(4, n_judged, p=[0.7, 0.2, 0.07, 0.03])
            qrels_file.writelines(
                f"{topic} 0 D{doc:07d} {label}\n"
                for doc, label in zip(judged.tolist(), labels.tolist(), strict=True)
            )
    return run, qrels


def run_once(script: str, files: tuple[Path, Path]) -> tuple[float, float, float, list[float]]:
    """Wall and CPU seconds, peak megabytes and the printed means of one process."""
    start = time.perf_counter()
    # Without its bytecode caches Python would compile the package again in every process.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, files)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"a contender failed with status {status}")
    means = [float(x) for x in out.split()]
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--docs", type=int, default=1000, help="documents per topic")
    parser.add_argument("--judged", type=int, default=20, help="judged documents per topic")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", default="pytrec_eval,polars,ir_measures,ranx")
    arguments = parser.parse_args()
    names = ["rankwise", "rankwise, 1 thread", *filter(None, arguments.peers.split(","))]
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), arguments.topics, arguments.docs, arguments.judged)
        size = files[0].stat().st_size / 1e6
        print(f"{arguments.topics} topics x {arguments.docs} documents, {size:.1f} MB")
        if arguments.topics <= 100:  # a first round, uncounted, fills the caches of a cold start
            for name in names:
                run_once(SCRIPTS[name], files)
        results: dict[str, list[tuple[float, float, float, list[float]]]] = {n: [] for n in names}
        for _ in range(arguments.repeats):
            for name in names:
                results[name].append(run_once(SCRIPTS[name], files))
    ours = results["rankwise"][0][3]
    base = [statistics.median(r[i] for r in results["rankwise"]) for i in range(3)]
    print(f"{'':20} {'wall s':>8} {'CPU s':>8} {'MB':>7}   wall x  CPU x   MB x")
    for name in names:
        median = [statistics.median(r[i] for r in results[name]) for i in range(3)]
        ratio = [m / b for m, b in zip(median, base, strict=True)]
        print(
            f"{name:20} {median[0]:8.3f} {median[1]:8.3f} {median[2]:7.0f}   "
            f"{ratio[0]:6.2f} {ratio[1]:6.2f} {ratio[2]:6.2f}"
        )
        if not np.allclose(results[name][0][3], ours, rtol=1e-9, atol=1e-12):
            raise SystemExit(f"{name} disagrees: {results[name][0][3]} instead of {ours}")


if __name__ == "__main__":
    main()
