"""Reading LETOR text: rankwise against XGBoost, LightGBM and scikit-learn.

Makes a file of judged lists with 136 features in the shape of a web-search collection (counts,
lengths, ratios of at most six decimals, about a fifth of them zero) and lets every reader turn it
into its own data structure. Each run is a process of its own in which the clock starts after the
imports; contenders take turns, and the table shows medians of CPU and wall seconds, megabytes of
text per CPU second, the peak of memory above the start, and how many times rankwise's CPU time each
one takes. One thread each, unless the row says otherwise. LightGBM's time includes the binning of
features, which its reader cannot do without; scikit-learn is slower than linear in the size and
gets a file of a few megabytes.

    python benchmarks/bench_read.py                    # 500 MB
    python benchmarks/bench_read.py --megabytes 50 --repeats 1
    python benchmarks/bench_read.py --sparse           # a million rows, 20 of 100,000 features each
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

FRAME = """
import json, os, resource, sys, time, warnings
warnings.simplefilter("ignore")
path, threads = sys.argv[1], int(sys.argv[2])
{imports}
with open("/proc/self/clear_refs", "w") as f: f.write("5")  # the peak of memory starts again here
def kib(key):
    return int(next(l for l in open("/proc/self/status") if l.startswith(key)).split()[1])
before, cpu, wall = kib("VmRSS"), time.process_time(), time.perf_counter()
{read}
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
print(json.dumps([cpu, wall, (kib("VmHWM") - before) * 1024, {size}]))
"""
RANKWISE = "import numpy, scipy.sparse, rankwise as rw, rankwise._core; rw.read"
DENSE_SIZE = "data.X.nbytes"
SPARSE_SIZE = "data.X.data.nbytes + data.X.indices.nbytes + data.X.indptr.nbytes"


def rankwise(options: str, size: str) -> tuple[str, str, str]:
    return RANKWISE, f"data = rw.read(path, n_threads=threads, {options})", size


CONTENDERS = {
    "rankwise float32": rankwise("dtype='float32'", DENSE_SIZE),
    "rankwise float64": rankwise("dtype='float64'", DENSE_SIZE),
    "rankwise sparse float32": rankwise("dtype='float32', sparse=True", SPARSE_SIZE),
    "xgboost": (
        "import xgboost",
        "data = xgboost.DMatrix(path + '?format=libsvm', nthread=threads)",
        "0",
    ),
    "lightgbm": (
        "import lightgbm",
        "data = lightgbm.Dataset(path + '.bare', params={'num_threads': threads, 'verbose': -1})\n"
        "data.construct()",
        "0",
    ),
    "scikit-learn": (
        "from sklearn.datasets import load_svmlight_file",
        "data = load_svmlight_file(path + '.small', dtype='float32', query_id=True)",
        "0",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--peers", default="xgboost,lightgbm,scikit-learn")
    parser.add_argument("--two-threads", action="store_true", help="also rankwise with 2 threads")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lists.txt"
        if options.sparse:
            write_sparse(path)
        else:
            write_dense(path, options.megabytes)
        rows = contenders(options)
        results: dict[str, list[list[float]]] = {name: [] for name, _ in rows}
        for _ in range(options.repeats):
            for name, threads in rows:
                results[name].append(run(name.partition(",")[0], path, threads))
        report(path, results)


def contenders(options: argparse.Namespace) -> list[tuple[str, int]]:
    ours = [n for n in CONTENDERS if n.startswith("rankwise")]
    if options.sparse:
        ours = [n for n in ours if "sparse" in n]
    rows = [(name, 1) for name in ours]
    if options.two_threads:
        rows += [(f"{ours[0]}, 2 threads", 2)]
    return rows + [(name, 1) for name in options.peers.split(",") if name]


def write_dense(path: Path, megabytes: int) -> None:
    """Lists of about 120 documents; 1.2 KB of text each."""
    import rankwise as rw

    n_docs = int(megabytes * 1e6 / 1150)
    queries = rw.make_queries("web", n_queries=max(2, n_docs // 120), dtype=np.float32)
    # Six decimals at most, as collections have them.
    X = np.round(queries.X.astype(np.float64), 6)
    rw.write(queries.with_features(X), path)
    small = queries.take(range(min(len(queries), 40))).with_features(X[: queries.offsets[40]])
    rw.write(small, f"{path}.small", format="letor")
    # LightGBM does not read query ids in text.
    with open(path, "rb") as source, open(f"{path}.bare", "wb") as bare:
        for line in source:
            label, _, features = line.split(b" ", 2)
            bare.write(label + b" " + features)
    Path(f"{path}.bare.query").write_text("".join(f"{n}\n" for n in queries.sizes))


def write_sparse(path: Path) -> None:
    """A million rows of 20 values out of 100,000 features."""
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        for block in range(100):
            columns = np.sort(rng.integers(1, 100_001, (10_000, 20)), axis=1)
            values = rng.integers(1, 10**6, (10_000, 20))
            for i in range(10_000):
                row = dict(zip(columns[i].tolist(), values[i].tolist(), strict=True))
                pairs = " ".join(f"{j}:0.{v:06d}" for j, v in row.items())
                file.write(f"{i % 5} qid:{block * 100 + i // 100} {pairs}\n")


def run(name: str, path: Path, threads: int) -> list[float]:
    imports, read, size = CONTENDERS[name]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "passive",
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            FRAME.format(imports=imports, read=read, size=size),
            path,
            str(threads),
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{name} failed:\n{done.stderr}")
    text = Path(f"{path}.small" if name == "scikit-learn" else path)
    return [*json.loads(done.stdout.splitlines()[-1]), text.stat().st_size]


def report(path: Path, results: dict[str, list[list[float]]]) -> None:
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in results.items()
    }
    print(f"{path.stat().st_size / 1e6:.0f} MB of text")
    print("| reader | MB | CPU s | wall s | MB per CPU s | peak MB | of the result | times |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    base_cpu, _, _, _, base_size = next(iter(medians.values()))
    for name, (cpu, wall, peak, size, text) in medians.items():
        ratio = (cpu / text) / (base_cpu / base_size)
        print(
            f"| {name} | {text / 1e6:.0f} | {cpu:.2f} | {wall:.2f} | {text / 1e6 / cpu:.0f} "
            f"| {peak / 1e6:.0f} | {f'{peak / size:.2f}' if size else ''} | {ratio:.1f} |"
        )


if __name__ == "__main__":
    main()
