"""Training of networks beside plain PyTorch, where the pairs of a list are a broadcast matrix.

    python benchmarks/bench_neural.py                  # 400 queries of about 120 documents
    python benchmarks/bench_neural.py --quality DATA   # nDCG@10 on real data (the folder of sets)

The plain program is what one writes with PyTorch alone: lists padded to the longest of the batch,
a matrix of score differences for each, its logistic loss masked to the pairs with different
labels, autograd through all of it, ``torch.optim.Adam``. Both train the same network on RankNet's
loss with the same batches, one thread, CPU seconds, taking turns; medians and the ratio. Memory is
what one step on a single long list adds to the peak of a fresh process.

The table of quality fits every ranker on the training queries with its recipe's grid chosen on the
validation queries, and shows the mean over folds (MQ2008) or draws (the course's synthetic set).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

import rankwise as rw

BATCH = 16
RATE = 1e-3


def lists_like_the_web(n_queries: int, length: int, n_features: int = 136) -> rw.Queries:
    rng = np.random.default_rng(0)
    sizes = np.maximum(2, rng.poisson(length, n_queries))
    X = rng.standard_normal((sizes.sum(), n_features), dtype=np.float32)
    z = X[:, 0] + 0.7 * X[:, 1] + X[:, 2] * X[:, 3] + 0.7 * rng.standard_normal(len(X))
    y = np.digitize(z, [0.5, 1.5, 2.5, 3]).astype(float)
    return rw.Queries.from_arrays(X, y, np.repeat(np.arange(n_queries), sizes))


# --- plain PyTorch ------------------------------------------------------------------------------


def plain_network(n_features: int, hidden: tuple[int, ...]) -> torch.nn.Module:
    layers: list[torch.nn.Module] = []
    for a, b in zip((n_features, *hidden), hidden, strict=False):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear((n_features, *hidden)[-1], 1))


def broadcast_loss(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """RankNet's loss of padded lists (n_lists, longest); padding has the label NaN."""
    better = labels[:, :, None] > labels[:, None, :]
    differences = scores[:, :, None] - scores[:, None, :]
    return F.softplus(-differences).masked_fill(~better, 0.0).sum()


def plain_epoch(queries: rw.Queries, network: Any, optimizer: Any, rng: Any) -> None:
    X, y = torch.from_numpy(queries.X), torch.from_numpy(queries.y.astype(np.float32))
    for batch in np.array_split(rng.permutation(queries.n_queries), -(-queries.n_queries // BATCH)):
        starts, ends = queries.offsets[batch], queries.offsets[batch + 1]
        pad = torch.nn.utils.rnn.pad_sequence
        x = pad([X[a:b] for a, b in zip(starts, ends, strict=True)], batch_first=True)
        labels = pad([y[a:b] for a, b in zip(starts, ends, strict=True)], True, float("nan"))
        optimizer.zero_grad()
        loss = broadcast_loss(network(x)[:, :, 0], labels) / len(batch)
        loss.backward()
        optimizer.step()


# --- seconds and memory -------------------------------------------------------------------------


def ours(queries: rw.Queries, hidden: tuple[int, ...], epochs: int) -> None:
    rw.NeuralRanker(
        "ranknet", hidden=hidden, n_epochs=epochs, batch_queries=BATCH, learning_rate=RATE,
        scale=None, random_state=0,
    ).fit(queries)  # fmt: skip


def plain(queries: rw.Queries, hidden: tuple[int, ...], epochs: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = plain_network(queries.n_features, hidden)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    for _ in range(epochs):
        plain_epoch(queries, network, optimizer, np.random.default_rng(0))


CONTENDERS = {"rankwise": ours, "plain PyTorch": plain}


def seconds_per_epoch(n_queries: int, repeats: int) -> None:
    for length in (20, 120, 500):
        queries = lists_like_the_web(max(BATCH, n_queries * 120 // max(length, 120)), length)
        for hidden in ((), (64, 32), (256, 128)):
            spent: dict[str, list[float]] = {name: [] for name in CONTENDERS}
            for repeat in range(repeats + 1):
                for name, run in CONTENDERS.items():
                    both = []
                    for epochs in (1, 3):  # the difference is two epochs without the start
                        start = time.process_time()
                        run(queries, hidden, epochs)
                        both.append(time.process_time() - start)
                    if repeat:
                        spent[name].append((both[1] - both[0]) / 2)
            a, b = (statistics.median(spent[name]) for name in CONTENDERS)
            print(
                f"{queries.n_queries:5d} queries x {length:4d}, hidden {hidden!s:10}  "
                f"rankwise {a:6.3f} s  plain {b:6.3f} s  ratio {b / a:5.2f}"
            )


def peak(name: str, length: int) -> float:
    """Megabytes that one step on a list of this length adds to the peak of a fresh process."""
    out = subprocess.run(
        [sys.executable, __file__, "--step", name, str(length)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(out.stdout)


def resident(what: str) -> float:
    """Kilobytes now (VmRSS) or at the peak (VmHWM), as Linux counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(what)))


def step(name: str, length: int) -> None:
    CONTENDERS[name](lists_like_the_web(2, 30), (64, 32), 1)  # everything is imported and warm
    queries = lists_like_the_web(1, length)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    CONTENDERS[name](queries, (64, 32), 1)
    print((resident("VmHWM") - before) / 1024)


# --- quality ------------------------------------------------------------------------------------

RANKERS = [
    "ranknet", "listnet", "lambdamart",
    "ranknet_mlp", "lambdarank_mlp", "listnet_mlp", "context",
]  # fmt: skip


def quality(folder: Path, which: list[str]) -> None:
    sets = {
        "course": lambda: [rw.Fold(q.take(range(200)), q.take(range(200, 300)), q.take(range(300, 1300)))
                           for q in [rw.make_queries()]],
        "MQ2008": lambda: [rw.Fold(*fold) for fold in _mq2008(folder)],
        "MSLR sample": lambda: [_mslr(folder)],
    }  # fmt: skip
    for name in which:
        start = time.process_time()
        experiment = rw.run_experiment(RANKERS, sets[name](), ["ndcg@5", "ndcg@10"])
        print(f"\n{name}, {time.process_time() - start:.0f} CPU seconds in all")
        print(experiment.compare().to_text(), flush=True)


def _mq2008(folder: Path) -> Any:
    return [
        (fold.train, fold.valid, fold.test) for fold in rw.read_folds(folder / "letor4" / "MQ2008")
    ]


def _mslr(folder: Path) -> rw.Fold:
    parts = [rw.read_letor(folder / "mslr-sample" / f"{p}.txt") for p in ("train", "vali", "test")]
    return rw.Fold(*parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--quality", type=Path, help="folder of the data sets")
    parser.add_argument("--sets", default="course,MQ2008,MSLR sample")
    args = parser.parse_args()
    if args.step:
        step(args.step[0], int(args.step[1]))
    elif args.quality:
        quality(args.quality, args.sets.split(","))
    else:
        print(f"rankwise {rw.__version__}, PyTorch {torch.__version__}, one thread, CPU s an epoch")
        seconds_per_epoch(args.queries, args.repeats)
        print("\nmegabytes of one step on one list")
        for length in (1000, 2000, 4000):
            a, b = (peak(name, length) for name in CONTENDERS)
            print(f"{length:5d} documents  rankwise {a:6.1f}  plain {b:7.1f}")


if __name__ == "__main__":
    main()
