"""Losses: nanoseconds per document and per pair of one gradient, with NumPy and PyTorch beside them.

    OMP_NUM_THREADS=1 python benchmarks/bench_losses.py [--docs 480000] [--repeats 3] [--no-torch] [--no-xgboost]

The peers compute the same gradient the usual way: NumPy with one matrix of pairs per query, PyTorch
by automatic differentiation of a padded batch. Their gradients are compared with ours before they are
timed. XGBoost's rank:pairwise over all pairs is timed by the difference between boosting two-leaf trees
on it and on squared error. Memory is the growth of the peak, each in a process of its own.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import rankwise as rw
from bench_ranksvm import peak_memory

Floats = np.ndarray
LOSSES = [
    "squared",
    "logistic",
    "poisson",
    "ordinal_logit",
    "ordinal_margin",
    "ranknet",
    "ranknet(equal_labels='half')",
    "hinge",
    "squared_hinge",
    "exponential",
    "fidelity",
    "listnet",
    "softmax",
    "listmle",
    "approx_ndcg",
    "boltzrank",
]


def numpy_pairs(slope: Callable[[Floats], Floats]) -> Callable[..., Floats]:
    """Gradient of a sum over pairs, from the matrix of margins of each query."""

    def gradient(y: Floats, s: Floats, length: int) -> Floats:
        out = np.empty_like(s)
        for a in range(0, len(y), length):
            rows = slice(a, a + length)
            margin = s[rows, None] - s[rows]
            pull = np.where(y[rows, None] > y[rows], slope(margin), 0.0)
            out[rows] = pull.sum(axis=1) - pull.sum(axis=0)
        return out

    return gradient


NUMPY = {
    "ranknet": numpy_pairs(lambda m: -1 / (1 + np.exp(m))),
    "hinge": numpy_pairs(lambda m: -1.0 * (m < 1.0)),
    "squared_hinge": numpy_pairs(lambda m: -2 * np.maximum(1 - m, 0)),
    "exponential": numpy_pairs(lambda m: -np.exp(-m)),
    "fidelity": numpy_pairs(lambda m: -0.5 / np.sqrt(1 + np.exp(-m)) / (1 + np.exp(m))),
}


def torch_peers() -> dict[str, Callable[..., Floats]]:
    import torch

    torch.set_num_threads(1)

    def by_autograd(loss: Callable[[Any, Any], Any]) -> Callable[..., Floats]:
        def gradient(y: Floats, s: Floats, length: int) -> Floats:
            out = np.empty_like(s)
            batch = max(1, 200_000 // length**2) * length  # matrices of a few MB
            for a in range(0, len(y), batch):
                labels = torch.from_numpy(y[a : a + batch]).view(-1, length)
                scores = torch.from_numpy(s[a : a + batch]).view(-1, length).requires_grad_()
                loss(labels, scores).backward()
                out[a : a + batch] = scores.grad.numpy().ravel()
            return out

        return gradient

    def ranknet(y: Any, s: Any) -> Any:
        wins = y[:, :, None] > y[:, None, :]
        return (torch.nn.functional.softplus(s[:, None, :] - s[:, :, None]) * wins).sum()

    def listnet(y: Any, s: Any) -> Any:
        return -(torch.softmax(y, 1) * torch.log_softmax(s, 1)).sum()

    def approx_ndcg(y: Any, s: Any) -> Any:
        gain = 2**y - 1
        off = ~torch.eye(y.shape[1], dtype=torch.bool)
        rank = 1 + (torch.sigmoid(s[:, None, :] - s[:, :, None]) * off).sum(2)
        best = torch.sort(gain, 1, descending=True).values
        place = torch.arange(1, y.shape[1] + 1)
        ideal = (best / torch.log2(1.0 + place)).sum(1)
        return -((gain / torch.log2(1 + rank)).sum(1) / ideal).sum()

    losses = {"ranknet": ranknet, "listnet": listnet, "approx_ndcg": approx_ndcg}
    return {name: by_autograd(loss) for name, loss in losses.items()}


def xgboost_pairwise(y: Floats, length: int, repeats: int) -> float:
    """CPU seconds of one gradient of rank:pairwise over all pairs."""
    import xgboost as xgb

    rng = np.random.default_rng(1)
    X = rng.normal(size=(len(y), 2)).astype(np.float32)
    data = xgb.QuantileDMatrix(X, y, qid=np.arange(len(y)) // length, max_bin=16)
    settings = {"max_leaves": 2, "grow_policy": "lossguide", "nthread": 1, "max_bin": 16}
    pairs = {"lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": length}
    took = []
    for objective in ({"objective": "rank:pairwise", **pairs}, {"objective": "reg:squarederror"}):
        booster = xgb.train({**settings, **objective}, data, 1)
        took.append(cpu(lambda b=booster: b.update(data, 1), repeats))
    return took[0] - took[1]


def cpu(call: Callable[[], Any], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def lists(n_docs: int, length: int) -> tuple[Floats, Floats, Floats]:
    """Labels 0 to 4 in MSLR's shares, and scores that know a little about them."""
    rng = np.random.default_rng(0)
    n_docs -= n_docs % length
    y = rng.choice(np.arange(5.0), n_docs, p=[0.52, 0.32, 0.13, 0.02, 0.01])
    return y, 0.5 * y + rng.normal(size=n_docs), np.arange(0, n_docs + 1, length)


def peak(text: str, length: int) -> None:
    """Prints by how much one gradient of a million documents raises the peak of this process."""
    y, s, offsets = lists(1_000_000, length)
    rw.parse_loss(text).prepare(y[:length], offsets[:2], n_threads=1)(s[:length])
    grown = peak_memory(lambda: rw.parse_loss(text).prepare(y, offsets, n_threads=1)(s))
    print(round(grown / len(y)))


def table(
    y: Floats,
    s: Floats,
    offsets: Floats,
    length: int,
    peers: dict[str, Any],
    repeats: int,
    with_xgboost: bool,
) -> None:
    counts = np.stack([(y.reshape(-1, length) == k).sum(1) for k in range(5)])
    pairs = int((length**2 - (counts**2).sum(0)).sum() // 2)
    print(f"\n{len(offsets) - 1:,} queries x {length:,} documents, {pairs:,} pairs")
    print(f"  {'loss':30s} {'ns/doc':>9s} {'ns/pair':>8s}")
    few = len(y) // 20 // length * length
    for text in LOSSES:
        run = rw.parse_loss(text).prepare(y, offsets, n_threads=1)
        ours = cpu(partial(run, s), repeats)
        line = f"  {text:30s} {ours / len(y) * 1e9:9.1f} {ours / pairs * 1e9:8.2f}"
        for name, kinds in peers.items():
            if text not in kinds:
                continue
            gradient = kinds[text](y[:few], s[:few], length)
            np.testing.assert_allclose(gradient, run(s)[0][:few], rtol=1e-8, atol=1e-8)
            took = cpu(partial(kinds[text], y[:few], s[:few], length), 1)
            line += f"   {name} {took / few / (ours / len(y)):6.1f}x"
        if text == "ranknet" and with_xgboost:
            line += f"   XGBoost {xgboost_pairwise(y, length, repeats) / ours:6.1f}x"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=int, default=480_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--no-xgboost", action="store_true")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, default=100, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        peak(options.peak, options.length)
        return
    print(f"rankwise {rw.__version__}, NumPy {np.__version__}, {platform.machine()}, one thread")
    peers = {"NumPy": NUMPY}
    if not options.no_torch:
        peers["PyTorch"] = torch_peers()
    for length in (120, 1000):
        data = lists(options.docs, length)
        table(*data, length, peers, options.repeats, not options.no_xgboost)
    print("\npeak memory of one gradient, bytes per document, by length of the lists")
    for text in (
        "ranknet",
        "hinge",
        "exponential",
        "fidelity",
        "listmle",
        "approx_ndcg",
        "boltzrank",
    ):
        grown = [
            subprocess.run(
                [sys.executable, __file__, "--peak", text, "--length", str(length)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for length in (100, 1000, 10_000)
        ]
        print(f"  {text:30s} " + " ".join(f"{length:>8s}" for length in grown), flush=True)


if __name__ == "__main__":
    main()
