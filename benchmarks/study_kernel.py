"""Kernel approximation on LETOR: quality against m, and kernels, maps and linear RankSVM side by side.

    python benchmarks/study_kernel.py figure DATA_FOLDER --preset letor3 --gamma -6 --C -7 --keep figure.jsonl
    python benchmarks/study_kernel.py table DATA_FOLDER --preset letor3 --gamma -6 --C -7 --keep table.jsonl

``figure`` is figure 2 of Chen et al. (2017): nDCG@1, nDCG@3, MeanNDCG and MAP on the test queries,
means over the folds and seeds, against the number of features m, for Nystrom's map with four kinds of
landmarks and random Fourier features with three kinds of draws, linear RankSVM as a line.
``table`` is their table 2: training time and quality of linear RankSVM, exact RBF kernels and
both maps, with squared and plain hinge.

``--gamma`` and ``--C`` are exponents of 2; C is that of the sum over pairs, half the paper's. Every
fit that is done is a line of the file ``--keep``: the same command goes on where it stopped. The
linear ranker's C is chosen on the validation queries by MAP, one for all folds.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import rankwise as rw

METRICS = ("ndcg@1", "ndcg@3", "mean_ndcg", "ap")
TITLES = {"ndcg@1": "nDCG@1", "ndcg@3": "nDCG@3", "mean_ndcg": "MeanNDCG", "ap": "MAP"}
SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000)
MAPS = {
    "Nystrom, uniform": ("nystrom", {"landmarks": "uniform"}),
    "Nystrom, k-means": ("nystrom", {"landmarks": "kmeans"}),
    "Nystrom, leverage": ("nystrom", {"landmarks": "leverage"}),
    "Nystrom, greedy": ("nystrom", {"landmarks": "greedy"}),
    "Fourier, independent": ("fourier", {"draw": "independent"}),
    "Fourier, orthogonal": ("fourier", {"draw": "orthogonal"}),
    "Fourier, quasi-random": ("fourier", {"draw": "quasi"}),
}


def mapped(kind, m, gamma, C, seed, loss="squared_hinge", **options):
    make = rw.RankNystrom if kind == "nystrom" else rw.RankRandomFourier
    tol = 1e-3 if loss == "hinge" else 1e-4
    return make(m, gamma=gamma, C=C, random_state=seed, loss=loss, tol=tol, **options)


class Runs:
    """Fits and their results, read from and written to a file of lines."""

    def __init__(self, folds, metrics, path):
        self.folds, self.metrics, self.path = folds, metrics, path
        self.done = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                self.done[row.pop("key")] = row

    def run(self, key, make, folds=None):
        """Means over the folds of each metric and of the seconds of a fit."""
        rows = []
        for i, fold in enumerate(self.folds[:folds]):
            name = f"{key}, fold {i + 1}"
            if name not in self.done:
                self.done[name] = self._fit(make(), fold)
                if self.path is not None:
                    with self.path.open("a") as file:
                        file.write(json.dumps({"key": name, **self.done[name]}) + "\n")
            rows.append(self.done[name])
        return {k: float(np.mean([r[k] for r in rows])) for k in rows[0]}

    def _fit(self, ranker, fold):
        train, _, test = fold
        start = time.process_time()
        ranker.fit(train)
        seconds = time.process_time() - start
        scores = ranker.predict(test)
        values = {k: m.mean(test.y, scores, qid=test.groups) for k, m in self.metrics.items()}
        return {"seconds": seconds, **values}


def linear_C(folds, metric):
    """The C of linear RankSVM that is best on the validation queries of all folds."""
    pairs = [(train, valid) for train, valid, _ in folds]
    space = {"C": 2.0 ** np.arange(-13, 6, 2)}
    return rw.tune(rw.RankSVM(), pairs, space=space, method="grid", metric=metric).params["C"]


def figure(runs, gamma, C, args):
    best = linear_C(runs.folds, runs.metrics["ap"])
    line = runs.run(f"linear RankSVM, C {best:g}", lambda: rw.RankSVM(best))
    sizes = [m for m in SIZES if m <= args.largest]
    curves = {}
    for name, (kind, options) in MAPS.items():
        for m in sizes:
            seeds = range(1 if options.get("landmarks") == "greedy" else args.seeds)
            found = [
                runs.run(
                    f"{name}, m {m}, gamma {gamma:g}, C {C:g}, seed {s}",
                    lambda kind=kind, m=m, s=s, options=options: mapped(
                        kind, m, gamma, C, s, **options
                    ),
                )
                for s in seeds
            ]
            curves[name, m] = {k: float(np.mean([f[k] for f in found])) for k in found[0]}
            print(f"  {name}, m = {m}: {curves[name, m]['seconds']:.2f} s", flush=True)
    for metric in (*METRICS, "seconds"):
        print(
            f"\n| {TITLES.get(metric, 'CPU s a fit')} | " + " | ".join(f"{m}" for m in sizes) + " |"
        )
        print("|---" * (len(sizes) + 1) + "|")
        form = "{:.2f}" if metric == "seconds" else "{:.4f}"
        for name in MAPS:
            cells = [form.format(curves[name, m][metric]).lstrip("0") for m in sizes]
            print(f"| {name} | " + " | ".join(cells) + " |")
        print(
            f"| linear, C = 2^{np.log2(best):g} | {form.format(line[metric]).lstrip('0')}"
            + " |" * len(sizes)
        )
    if args.picture:
        draw(curves, line, sizes, args)


def draw(curves, line, sizes, args):
    from matplotlib.figure import Figure

    picture = Figure(figsize=(11, 8), layout="constrained")
    for axes, metric in zip(picture.subplots(2, 2).ravel(), METRICS, strict=True):
        for name in MAPS:
            style = "-" if name.startswith("Nystrom") else "--"
            axes.plot(
                sizes, [curves[name, m][metric] for m in sizes], style, marker=".", label=name
            )
        axes.axhline(line[metric], color="black", linewidth=1, label="linear RankSVM")
        axes.set(xscale="log", xlabel="m", title=TITLES[metric])
    axes.legend(fontsize=8)
    picture.suptitle(f"{args.folder.name}, mean of test folds")
    picture.savefig(args.picture)


def table(runs, gamma, C, args):
    best = linear_C(runs.folds, runs.metrics["ap"])
    m = args.components
    exact = {"gamma": gamma, "C": C, "memory_limit": 4}
    rows = {
        "linear, squared hinge (RankSVM-Primal, TRON L2)": (lambda: rw.RankSVM(best), None),
        "linear, hinge (RankSVM-Struct, TRON L1)": (
            lambda: rw.RankSVM(best, loss="hinge", tol=1e-3), None
        ),
        "exact RBF, squared hinge (TRON L2)": (
            lambda: rw.KernelRankSVM("rbf", **exact), args.exact_folds
        ),
        "exact RBF, hinge (TRON L1)": (
            lambda: rw.KernelRankSVM("rbf", loss="hinge", tol=1e-3, **exact), args.exact_folds
        ),
    }  # fmt: skip
    for name, kind in (("RankNystrom", "nystrom"), ("RankRandomFourier", "fourier")):
        for loss, text in (("squared_hinge", "squared hinge"), ("hinge", "hinge")):
            rows[f"{name}, m = {m}, {text}"] = (
                lambda kind=kind, loss=loss: mapped(kind, m, gamma, C, 0, loss), None
            )  # fmt: skip
    print("| | CPU s a fit | " + " | ".join(TITLES.values()) + " | folds |\n" + "|---" * 7 + "|")
    for name, (make, folds) in rows.items():
        found = runs.run(f"table: {name}, gamma {gamma:g}, C {C:g}, linear C {best:g}", make, folds)
        cells = " | ".join(f"{found[k]:.4f}".lstrip("0") for k in METRICS)
        used = len(runs.folds[:folds])
        print(f"| {name} | {found['seconds']:.2f} | {cells} | {used} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("figure", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--preset", choices=("letor3", "letor4"), default="letor3")
    parser.add_argument("--gamma", type=float, default=-6, help="power of 2")
    parser.add_argument("--C", type=float, default=-7, help="power of 2")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--largest", type=int, default=2000, help="largest m of the figure")
    parser.add_argument("--components", type=int, default=500, help="m of the table")
    parser.add_argument("--exact-folds", type=int, help="exact kernels on so many folds only")
    parser.add_argument("--keep", type=Path, help="file of finished fits")
    parser.add_argument("--picture", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    metrics = dict(zip(METRICS, rw.parse_metrics(list(METRICS), preset=args.preset), strict=True))
    runs = Runs(list(rw.read_folds(args.folder)), metrics, args.keep)
    print(f"{args.folder}: gamma 2^{args.gamma:g}, C 2^{args.C:g}, {args.seeds} seeds")
    (figure if args.part == "figure" else table)(runs, 2.0**args.gamma, 2.0**args.C, args)


if __name__ == "__main__":
    main()
