"""Do the tests keep their level and the intervals their coverage on real evaluation scores?

    python benchmarks/validity.py [folder of topic x system matrices] [--trials 4000]

Three tables from the score matrices of TREC ad hoc 5-8 and Web 2010-2013 (Urbano, Lima and
Hanjalic, SIGIR 2019):

1. **Level.** Two systems of a collection are drawn and the signs of their paired differences
   tossed: whatever the systems, the null hypothesis now holds. A test at 5 % should reject 5 %.
2. **Coverage.** The topics of a collection are taken for the whole population, n of them drawn
   with replacement. The 95 % interval should hold the population's mean 95 times in 100.
3. **Families.** For eight systems of a collection, the values of every topic are shuffled among
   the systems, so that none is better. How often does a table of 7 tests star anything, for a
   baseline that was named and for the best one, under each correction?
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import rankwise as rw
from rankwise.stats import TESTS, intervals

DATA = Path(__file__).parents[2] / "shared" / "data" / "trec" / "score-matrices"


def load(folder: Path) -> dict[str, list[np.ndarray]]:
    """Matrices by metric, topics in rows."""
    matrices: dict[str, list[np.ndarray]] = {}
    for path in sorted(folder.glob("*.csv")):
        metric = path.stem.split("_")[1]
        matrices.setdefault(metric, []).append(np.loadtxt(path, delimiter=",", skiprows=1))
    return matrices


def percent(hits: int, trials: int) -> str:
    share = hits / trials
    return f"{100 * share:5.2f} ±{200 * np.sqrt(share * (1 - share) / trials):4.2f}"


def level(matrices: dict[str, list[np.ndarray]], trials: int, rng: np.random.Generator) -> None:
    print(f"1. Rejections of a true null hypothesis, % of {trials:,} pairs (± 2 standard errors)\n")
    print(f"{'metric':8}{'level':>6}" + "".join(f"{name:>16}" for name in TESTS))
    for metric, collections in matrices.items():
        p = {name: np.empty(trials) for name in TESTS}
        for t in range(trials):
            x = collections[rng.integers(len(collections))]
            i, j = rng.choice(x.shape[1], 2, replace=False)
            d = (x[:, i] - x[:, j]) * rng.choice([-1, 1], len(x))
            zero = np.zeros(len(d))
            for name, test in TESTS.items():
                options = {"n_resamples": 9_999, "rng": rng} if name == "randomization" else {}
                p[name][t] = test(d, zero, **options).p_value
        for alpha in (0.05, 0.01):
            cells = [percent(int((p[name] <= alpha).sum()), trials) for name in TESTS]
            print(f"{metric:8}{100 * alpha:4.0f} %" + "".join(f"{cell:>16}" for cell in cells))
    print()


def coverage(matrices: dict[str, list[np.ndarray]], draws: int, rng: np.random.Generator) -> None:
    print(f"2. Coverage of 95 % intervals, %, over all systems and {draws} draws of a collection\n")
    print(f"{'metric':8}{'topics':>7}{'mean: t':>10}{'bca':>8}{'gap: t':>10}{'bca':>8}")
    for metric, collections in matrices.items():
        for n in (25, 50, 100):
            held = np.zeros(4)
            total = 0
            for x in collections:
                # Gaps between systems that follow each other in the file.
                both = np.stack([x, x - np.roll(x, 1, axis=1)])
                for _ in range(draws):
                    topics = rng.integers(len(x), size=n)
                    for g, values in enumerate(both):
                        truth = values.mean(axis=0)
                        rows = np.ascontiguousarray(values[topics].T)
                        for m, method in enumerate(("t", "bca")):
                            found = intervals(rows, method, 0.95, 1_999, rng)
                            held[2 * g + m] += sum(
                                i.low <= mean <= i.high
                                for i, mean in zip(found, truth, strict=True)
                            )
                    total += x.shape[1]
            cells = 100 * held / total
            print(f"{metric:8}{n:7}{cells[0]:10.2f}{cells[1]:8.2f}{cells[2]:10.2f}{cells[3]:8.2f}")
    print()


def families(matrices: dict[str, list[np.ndarray]], trials: int, rng: np.random.Generator) -> None:
    print(f"3. Tables with a star although no system is better, % of {trials:,} tables\n")
    print(f"{'metric':8}{'baseline':>10}{'none':>16}{'bh':>16}{'holm':>16}")
    names = [f"s{i}" for i in range(8)]
    for metric, collections in matrices.items():
        starred = {("s0", c): 0 for c in (None, "bh", "holm")}
        starred |= {("best", c): 0 for c in (None, "bh", "holm")}
        for _ in range(trials):
            x = collections[rng.integers(len(collections))]
            chosen = x[:, rng.choice(x.shape[1], 8, replace=False)]
            values = dict(zip(names, rng.permuted(chosen, axis=1).T, strict=True))
            for baseline, correction in starred:
                table = rw.compare(
                    {metric: values},
                    baseline=baseline,
                    correction=correction,
                    test="t",
                    interval="t",
                )
                gaps = [r.gap for r in table.results[metric].values() if r.gap]
                starred[baseline, correction] += any(g.p_corrected < 0.05 for g in gaps)
        for baseline, label in (("s0", "named"), ("best", "best")):
            cells = [percent(starred[baseline, c], trials) for c in (None, "bh", "holm")]
            print(f"{metric:8}{label:>10}" + "".join(f"{cell:>16}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    parser.add_argument("--trials", type=int, default=4_000)
    options = parser.parse_args()
    matrices = load(options.folder)
    if not matrices:
        parser.error(f"no *.csv in {options.folder}")
    rng = np.random.default_rng(0)
    level(matrices, options.trials, rng)
    coverage(matrices, max(options.trials // 200, 1), rng)
    families(matrices, options.trials // 2, rng)


if __name__ == "__main__":
    main()
