"""Kernel maps against scikit-learn's: random Fourier features and Nystrom, and whole fits.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/bench_maps.py [--docs 70000]

Part 1: fit and transform of n x 46 features to 2,000. Part 2: RankSVM behind each map, to the same
relative gradient norm: scikit-learn's map and rankwise's RankSVM on what it gives, against
KernelRanker, which solves in the kernel's own basis. CPU seconds, the best of some repeats.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler

import rankwise as rw


def seconds(work, repeats):
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def ours_and_theirs(m, gamma, dtype):
    """Name -> (rankwise's map, scikit-learn's)."""
    told = {"gamma": gamma, "dtype": dtype, "random_state": 0}
    theirs = {"gamma": gamma, "n_components": m, "random_state": 0}
    return {
        "random Fourier features": (rw.RandomFourierFeatures(m, **told), RBFSampler(**theirs)),
        "Nystrom": (rw.Nystroem(m, **told), Nystroem(**theirs)),
    }


def maps(queries, m, gamma, repeats):
    print(f"{queries.n_docs} x {queries.n_features} to {m}, gamma {gamma:g}")
    print(f"{'':34s} rankwise s  scikit-learn s  ratio")
    for dtype in ("float64", "float32"):
        X = queries.X.astype(dtype)
        for name, (ours, theirs) in ours_and_theirs(m, gamma, dtype).items():
            a = seconds(partial(ours.fit_transform, X), repeats)
            b = seconds(partial(theirs.fit_transform, X), max(1, repeats - 1))
            print(f"  {name + ', ' + dtype:32s} {a:10.2f} {b:15.2f} {b / a:6.1f}", flush=True)


def fits(queries, m, gamma, C):
    print(f"\nmap and RankSVM, C {C:g}, relative gradient norm 1e-4")
    print(f"{'':34s} rankwise s  scikit-learn s  ratio  objectives")
    for dtype in ("float64", "float32"):
        lists = queries.with_features(queries.X.astype(dtype))
        for name, (ours, theirs) in ours_and_theirs(m, gamma, dtype).items():
            kernel = rw.KernelRanker(ours, C=C)
            linear = rw.RankSVM(C)

            def behind(map=theirs, linear=linear, lists=lists):
                linear.fit(lists.with_features(map.fit_transform(lists.X)))

            a = seconds(lambda kernel=kernel, lists=lists: kernel.fit(lists), 1)
            b = seconds(behind, 1)
            print(
                f"  {name + ', ' + dtype:32s} {a:10.2f} {b:15.2f} {b / a:6.1f}  "
                f"{kernel.objective_:.6g}, {linear.objective_:.6g}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=int, default=70_000)
    parser.add_argument("--components", type=int, default=2000)
    parser.add_argument("--gamma", type=float, default=1.0)
    parser.add_argument("--C", type=float, default=0.01)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--part", choices=("maps", "fits"), help="one of the two parts only")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.random((args.docs, 46))
    y = np.clip(np.round(2 * np.sin(3 * X[:, 0]) * X[:, 1] + rng.normal(0, 0.3, args.docs)), 0, 2)
    queries = rw.Queries.from_arrays(X, y, np.arange(args.docs) // 100)
    # Memory that the system hands out for the first time costs the first one measured seconds.
    np.ones(2 * args.docs * args.components).sum()
    if args.part != "fits":
        maps(queries, args.components, args.gamma, args.repeats)
    if args.part != "maps":
        fits(queries, args.components, args.gamma, args.C)


if __name__ == "__main__":
    main()
