"""Does relaxing the whole permutation pay? NeuralNDCG beside the losses of the library, in a network.

    python benchmarks/study_neuralsort.py ../shared/data [--only mq2008,ohsumed]

NeuralSort (Grover et al. 2019) writes the sorting permutation as rows of a softmax,

    P[i] = softmax((n + 1 - 2 i) s - A 1, over documents, at temperature tau),   A[j, k] = |s_j - s_k|,

and NeuralNDCG (Pobrotyn and Bialobrzeski 2021) is nDCG of the gains it sorts, with P's rows and
columns first brought to sums of 1 (Sinkhorn). Here it is a loss of one's own whose gradient comes
from PyTorch. The network, its settings and the way they are chosen are those of study_losses.py. At
the end: one gradient of one list by its length, CPU time and peak memory of the matrices.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import itertools
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import rankwise as rw
from rankwise.stats import intervals
from study_losses import DATA, SCORERS, cell

LISTS = (100, 300, 1_000)


@dataclass(frozen=True)
class NeuralNDCG:
    """1 - nDCG of the gains sorted by a relaxed permutation."""

    tau: float = 1.0
    sinkhorn: int = 10
    shift_invariant = True

    def _one(self, y: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        gain = 2**y - 1
        n = len(y)
        discount = 1 / torch.log2(torch.arange(2, n + 2, dtype=s.dtype))
        ideal = (torch.sort(gain, descending=True).values * discount).sum()
        if ideal == 0:
            return 0 * s.sum()
        spread = (s[:, None] - s[None, :]).abs().sum(1)
        slope = n + 1 - 2 * torch.arange(1, n + 1, dtype=s.dtype)
        p = torch.softmax((slope[:, None] * s[None, :] - spread[None, :]) / self.tau, dim=1)
        for _ in range(self.sinkhorn):
            p = p / p.sum(0, keepdim=True).clamp(min=1e-10)
            p = p / p.sum(1, keepdim=True).clamp(min=1e-10)
        return 1 - ((p @ gain) * discount).sum() / ideal

    def _all(self, y: Any, s: Any, offsets: Any) -> tuple[list[Any], torch.Tensor]:
        leaf = torch.tensor(np.asarray(s, dtype=np.float64), requires_grad=True)
        label = torch.tensor(np.asarray(y, dtype=np.float64))
        values = [self._one(label[a:b], leaf[a:b]) for a, b in itertools.pairwise(offsets)]
        return values, leaf

    def value(self, y: Any, s: Any, offsets: Any, weight: Any = None) -> Any:
        with torch.no_grad():
            return np.array([float(v) for v in self._all(y, s, offsets)[0]])

    def derivatives(self, y: Any, s: Any, offsets: Any, weight: Any = None) -> tuple[Any, Any]:
        values, leaf = self._all(y, s, offsets)
        torch.stack(values).sum().backward()
        gradient = leaf.grad.numpy().copy()
        return gradient, np.ones_like(gradient)  # networks take no Newton step


def time_of(loss: Any, n: int) -> float:
    """Median CPU seconds of one gradient of one list."""
    rng = np.random.default_rng(0)
    y = rng.choice(5, n, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(float)
    s, spent = rng.normal(size=n), []
    for _ in range(5):
        start = time.process_time()
        loss.derivatives(y, s, np.array([0, n]))
        spent.append(time.process_time() - start)
    return statistics.median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder of letor4/, letor3/ and mslr-sample/")
    parser.add_argument("--only", default="mq2008,ohsumed", help="data sets, by commas")
    args = parser.parse_args()
    torch.set_num_threads(1)
    losses: dict[str, Any] = {
        "approx_ndcg": "approx_ndcg",
        "softmax": "softmax",
        "lambdarank": "lambdarank",
        **{f"NeuralNDCG, tau {tau:g}": NeuralNDCG(tau) for tau in (1.0, 0.1)},
        "NeuralNDCG, tau 1, no Sinkhorn": NeuralNDCG(1.0, sinkhorn=0),
    }
    make, space = SCORERS["neural"]
    for data in args.only.split(","):
        folds = DATA[data][1](args.data)
        print(f"\n{data:34}{'nDCG@10':>9}{'95 %':>16}{'CPU s':>9}")
        for name, loss in losses.items():
            found = cell(folds, make, space, loss)
            v = np.array(found["values"]["ndcg@10"], dtype=float)
            i = intervals(v[None, ~np.isnan(v)], "bca", 0.95, 9_999, 0)[0]
            print(
                f"{name:34}{i.mean:9.4f}{i.low:9.3f}{i.high:7.3f}{found['cpu_seconds']:9.1f}",
                flush=True,
            )
    print(f"\n{'CPU ms of one list':34}" + "".join(f"{n:>9,}" for n in LISTS))
    for name in ("approx_ndcg", "NeuralNDCG, tau 1"):
        loss = rw.parse_loss(losses[name])
        print(f"{name:34}" + "".join(f"{1e3 * time_of(loss, n):9.2f}" for n in LISTS), flush=True)


if __name__ == "__main__":
    main()
