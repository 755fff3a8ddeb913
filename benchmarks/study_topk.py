"""Does ListNet gain from more than the first place? Top-k targets by sampling, against top-1.

    python benchmarks/study_topk.py DATA_FOLDER [--samples 10]

The top-k cross entropy sums over all k-prefixes of rankings, so it is estimated: prefixes are drawn from
the Plackett-Luce model of the labels and each costs its Plackett-Luce likelihood under the scores, which is
ListMLE with the prefix as labels. Linear scores, alpha chosen on validation queries by nDCG@10.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import rankwise as rw


class TopK:
    """Mean of ``ListMLE`` over sampled prefixes of length k."""

    shift_invariant = True

    def __init__(self, k: int, samples: int) -> None:
        self.k, self.samples, self.drawn = k, samples, {}

    def __repr__(self) -> str:
        return f"TopK({self.k})"

    def _labels(self, y, offsets):
        key = len(y)
        if key not in self.drawn:
            rng = np.random.default_rng(0)
            query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
            self.drawn[key] = []
            for _ in range(self.samples):
                order = np.lexsort((-(y + rng.gumbel(size=len(y))), query))
                place = np.empty(len(y))
                place[order] = np.arange(len(y)) - np.repeat(offsets[:-1], np.diff(offsets))
                self.drawn[key].append(np.maximum(self.k - place, 0.0))
        return self.drawn[key]

    def _mean(self, method, y, offsets, *arguments):
        results = [
            np.array(getattr(rw.ListMLE(), method)(labels, *arguments))
            for labels in self._labels(y, offsets)
        ]
        return np.mean(results, axis=0)

    def value(self, y, s, offsets, weight=None):
        return self._mean("value", y, offsets, s, offsets, weight)

    def derivatives(self, y, s, offsets, weight=None):
        return tuple(self._mean("derivatives", y, offsets, s, offsets, weight))

    def hessian_product(self, y, s, offsets, v, weight=None):
        return self._mean("hessian_product", y, offsets, s, offsets, v, weight)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    metric = rw.parse_metric("ndcg@10")
    losses = {
        "listnet (top 1)": rw.ListNet(),
        "top 1, sampled": TopK(1, options.samples),
        "top 3, sampled": TopK(3, options.samples),
        "top 10, sampled": TopK(10, options.samples),
        "listmle": rw.ListMLE(),
    }
    folds = list(rw.read_folds(options.folder))
    print(f"{options.folder.name}: nDCG@10 on the test queries, mean of {len(folds)} folds")
    for name, loss in losses.items():
        start, found = time.process_time(), []
        for train, valid, test in folds:
            best = None
            for alpha in 10.0 ** np.arange(-1, 5):
                model = rw.LinearRanker(loss, alpha=alpha, tol=1e-3).fit(train)
                score = metric.mean(valid.y, model.predict(valid), qid=valid.groups)
                if best is None or score > best[0]:
                    best = score, model
            values = metric.per_query(test.y, best[1].predict(test), qid=test.groups)
            found.append(np.nanmean(values))
        took = time.process_time() - start
        print(
            f"  {name:18s} {np.mean(found):.4f} +- {np.std(found):.4f}  {took:6.1f} s", flush=True
        )


if __name__ == "__main__":
    main()
