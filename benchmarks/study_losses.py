"""Every loss with every scoring function on real data: one command makes the table of docs/losses_table.md.

    python benchmarks/study_losses.py ../shared/data --cache ../losses_cache
    python benchmarks/study_losses.py ../shared/data --cache ../losses_cache --only mslr,linear,listnet

A cell is a data set, a scoring function and a loss. In each of five folds a few settings are fitted
to the training queries and the one with the best nDCG@10 on the validation queries scores the
test queries, once. The settings are the same for all losses of a scoring function (SCORERS below),
so the table compares losses under one small budget, not each at its very best.

Every finished cell is a file in the cache: the study can be stopped and started again, a cell whose
settings have changed is made anew, and ``--only`` names the data sets, scoring functions or losses
to fill in (the page shows every cell that the cache holds). A pair that a ranker refuses is a dash
with the reason.
"""

from __future__ import annotations

import os

# Read by OpenMP when the libraries load: waiting threads must not take the processor from others.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import hashlib
import itertools
import json
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import rankwise as rw
from rankwise.losses import LOSSES
from rankwise.stats import intervals

METRICS = ("ndcg@10", "ap")
Folds = list[tuple[rw.Queries, rw.Queries, rw.Queries]]


def mslr(folder: Path) -> Folds:
    """Five folds of the 89 queries of the sample; 18 test queries alone would decide nothing."""
    names = ("train", "vali", "test")
    queries = rw.concatenate([rw.read(folder / "mslr-sample" / f"{name}.txt") for name in names])
    return queries.folds(5, rng=0)


DATA: dict[str, tuple[str, Callable[[Path], Folds]]] = {
    "mq2008": (
        "MQ2008 (LETOR 4.0, five folds, {n} test queries)",
        lambda folder: list(rw.read_folds(folder / "letor4" / "MQ2008")),
    ),
    "ohsumed": (
        "OHSUMED (LETOR 3.0, five folds, {n} test queries)",
        lambda folder: list(rw.read_folds(folder / "letor3" / "OHSUMED" / "QueryLevelNorm")),
    ),
    "mslr": ("A sample of MSLR-WEB (raw features, five folds of {n} queries)", mslr),
}


def linear(loss: Any) -> Any:
    return rw.LinearRanker(loss)


def trees(loss: Any) -> Any:
    return rw.TreeRanker(
        loss, n_estimators=300, learning_rate=0.1, subsample=0.8, colsample_bytree=0.8,
        early_stopping_rounds=30, random_state=0, n_jobs=1,
    )  # fmt: skip


def neural(loss: Any) -> Any:
    import torch

    torch.set_num_threads(1)
    return rw.NeuralRanker(loss, n_epochs=30, early_stopping_rounds=5, random_state=0)


# The scoring function and the settings tried, the same for every loss.
SCORERS: dict[str, tuple[Callable[[Any], Any], dict[str, list[Any]]]] = {
    "linear": (linear, {"alpha": [1e5, 1e3, 1e1, 1e-1]}),
    "trees": (trees, {"num_leaves": [7, 31]}),
    "neural": (neural, {"learning_rate": [1e-3, 1e-2]}),
}

# Rows beside the losses by themselves: LambdaRank on the swaps of other metrics.
VARIANTS = (
    "lambdarank(metric='ap')",
    "lambdarank(metric='rr')",
    "lambdarank(metric='err')",
    "lambdarank(metric='ndcg@10', normalize='both')",
)


def rows() -> list[str]:
    """The losses of the table, as text."""
    return [*LOSSES, *VARIANTS]


# --- a cell ----------------------------------------------------------------------------------


def cell(
    folds: Folds, make: Callable[[Any], Any], space: dict[str, list[Any]], loss: str
) -> dict[str, Any]:
    """Test values of every query, what was chosen, and the time; or why there is nothing."""
    start, cpu = time.perf_counter(), time.process_time()
    values: dict[str, list[np.ndarray]] = {m: [] for m in METRICS}
    chosen = []
    try:
        value = rw.parse_loss(loss)
        for train, valid, test in folds:
            with warnings.catch_warnings():
                # The weakest penalties are slow to converge; validation queries judge what they give.
                warnings.simplefilter("ignore", ConvergenceWarning)
                tuned = rw.tune(
                    make(value), train, valid, space=space, metric=METRICS[0], method="grid"
                )
            y_score = tuned.model.predict(test)
            for m, v in rw.evaluate(METRICS, test.y, y_score, qid=test.groups).items():
                values[m].append(v)
            chosen.append(tuned.params)
    except (ValueError, TypeError) as error:
        return {"refused": str(error), "cpu_seconds": time.process_time() - cpu}
    return {
        "values": {m: np.concatenate(v).tolist() for m, v in values.items()},
        "chosen": chosen,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
    }


def stored(path: Path, settings: str) -> dict[str, Any] | None:
    """The content of a cell's file if it was made with these settings."""
    content = json.loads(path.read_text()) if path.exists() else {}
    return content if content.get("settings") == settings else None


def store(path: Path, content: dict[str, Any]) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(content))
    unfinished.replace(path)


def slug(loss: str) -> str:
    """A file name for a loss, short and its own."""
    return re.sub(r"[^a-z0-9]+", "-", loss.lower()).strip("-")[:40] + (
        "-" + hashlib.sha1(loss.encode()).hexdigest()[:6] if not loss.isidentifier() else ""
    )


# --- the page --------------------------------------------------------------------------------

_PAGE = """# All losses with all scoring functions

Mean test nDCG@10 and AP with 95 % bootstrap intervals over queries (rankwise's own conventions: queries without
relevant documents are left out), made by

    python benchmarks/study_losses.py DATA --cache CACHE

In each fold the settings below are fitted and the one with the best nDCG@10 on the validation queries scores the
test queries, once. The budget is small and the same for every loss, so a difference between two rows is one between
losses under equal treatment, not between each at its best; the intervals say how much a mean would move with other
queries. The best of a column is bold. What the table says is in [Losses](losses.md#which-one-measured).

{settings}

Processor time: {total} in all, on one core{missing}.
"""


def page(cells: dict[tuple[str, str, str], dict[str, Any]], sizes: dict[str, int]) -> str:
    """The Markdown page of the cells there are."""
    scorers = [s for s in SCORERS if any(key[1] == s for key in cells)]
    settings = "\n".join(
        f"- {s}: `{_text(SCORERS[s][0])}`"
        + "".join(f"; {k} in {', '.join(f'{v:g}' for v in vs)}" for k, vs in SCORERS[s][1].items())
        for s in scorers
    )
    total = sum(c["cpu_seconds"] for c in cells.values())
    absent = [s for s in SCORERS if s not in scorers]
    missing = f" ({', '.join(absent)}: not there yet)" if absent else ""
    parts = [_PAGE.format(settings=settings, total=f"{total / 60:.0f} minutes", missing=missing)]
    reasons: dict[str, list[str]] = {}
    for name, n in sizes.items():
        if not any(key[0] == name for key in cells):
            continue
        parts.append(_table(name, n, {k[1:]: c for k, c in cells.items() if k[0] == name}, scorers))
    for (_, scorer, loss), content in cells.items():
        if "refused" in content:
            reasons.setdefault(content["refused"], []).append(f"{loss} ({scorer})")
    if reasons:
        parts.append("## Dashes\n\nPairs that the ranker refuses, in its words:\n")
        parts += [f"- {', '.join(dict.fromkeys(who))}: {why}" for why, who in reasons.items()]
    return "\n".join(parts).rstrip() + "\n"


def _text(make: Callable[[Any], Any]) -> str:
    """How the ranker of a column is made."""
    return (
        re.sub(r"\s+", " ", repr(make("LOSS")))
        .replace("loss='LOSS', ", "")
        .replace("'LOSS'", "loss")
    )


def _table(
    name: str, n_queries: int, cells: dict[tuple[str, str], dict[str, Any]], scorers: list[str]
) -> str:
    columns = [(m, s) for m in METRICS for s in scorers]
    head = [f"{s}, {m}" for m, s in columns]
    lines = [f"## {DATA[name][0].format(n=n_queries)}\n", f"| loss | {' | '.join(head)} |"]
    lines.append("|---" * (1 + len(head)) + "|")
    found = {}
    for m, s in columns:
        for (scorer, loss), content in cells.items():
            if scorer == s and "values" in content:
                v = np.array(content["values"][m], dtype=float)
                found[m, s, loss] = intervals(v[None, ~np.isnan(v)], "bca", 0.95, 9_999, 0)[0]
    best = {
        c: max((i.mean for (m, s, _), i in found.items() if (m, s) == c), default=np.nan)
        for c in columns
    }
    for loss in dict.fromkeys(loss for _, loss in cells):
        row = []
        for m, s in columns:
            i = found.get((m, s, loss))
            if i is None:
                row.append("-" if (s, loss) in cells else "")
                continue
            mean = f"**{_n(i.mean)}**" if i.mean == best[m, s] else _n(i.mean)
            row.append(f"{mean} [{_n(i.low, 3)}, {_n(i.high, 3)}]")
        lines.append(f"| `{loss}` | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _n(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def present() -> list[str]:
    """The scoring functions whose libraries are there; says which are not."""
    names = []
    for name, (make, _) in SCORERS.items():
        try:
            make("ranknet")
            names.append(name)
        except (AttributeError, ImportError) as error:
            print(f"{name}: left out ({error})", flush=True)
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder of letor4/, letor3/ and mslr-sample/")
    parser.add_argument("--cache", type=Path, required=True, help="folder for finished cells")
    parser.add_argument(
        "--only", default="", help="data sets, scoring functions and losses to fill in, by commas"
    )
    parser.add_argument("--output", type=Path, help="page to write (default: docs/losses_table.md)")
    args = parser.parse_args()
    from rankwise._text import split_names

    wanted = split_names(args.only)
    known = {*DATA, *SCORERS, *rows()}
    for word in wanted:
        if word not in known:
            parser.error(f"--only: unknown {word!r}; known: {', '.join(sorted(known))}")

    def asked(*words: str) -> bool:
        """Whether --only names the cell: for each of its words, that word or none of its kind."""
        kinds = (DATA, SCORERS, rows())
        return all(
            word in wanted or not set(kind) & set(wanted)
            for word, kind in zip(words, kinds, strict=True)
        )

    args.cache.mkdir(parents=True, exist_ok=True)
    cells: dict[tuple[str, str, str], dict[str, Any]] = {}
    sizes: dict[str, int] = {}
    scorers = present()
    for data, (_, read) in DATA.items():
        folds = read(args.data)
        sizes[data] = sum(test.n_queries for _, _, test in folds)
        for scorer, loss in itertools.product(scorers, rows()):
            make, space = SCORERS[scorer]
            settings = f"{_text(make)} {space} {METRICS} {loss}"
            path = args.cache / f"{data}-{scorer}-{slug(loss)}.json"
            content = stored(path, settings)
            if content is None and not asked(data, scorer, loss):
                continue
            if content is None:
                content = {"settings": settings, **cell(folds, make, space, loss)}
                store(path, content)
                print(_line(data, scorer, loss, content), flush=True)
            cells[data, scorer, loss] = content
    output = args.output or Path(__file__).parents[1] / "docs" / "losses_table.md"
    output.write_text(page(cells, sizes))
    cpu = sum(c["cpu_seconds"] for c in cells.values())
    print(f"{len(cells)} cells, {cpu / 60:.1f} CPU minutes: {output}")


def _line(data: str, scorer: str, loss: str, content: dict[str, Any]) -> str:
    head = f"{data:8} {scorer:7} {loss:48}"
    if "refused" in content:
        return f"{head} - {content['refused'][:90]}"
    means = "  ".join(
        f"{m} {np.nanmean(np.array(v, float)):.4f}" for m, v in content["values"].items()
    )
    return f"{head} {means}  {content['cpu_seconds']:.1f} s"


if __name__ == "__main__":
    main()
