"""What ``rankwise fuse`` and ``rankwise aggregate`` do; see :mod:`rankwise.commands`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rankwise.commands import _finite, _note, _print_json


def fuse(args: argparse.Namespace) -> None:
    """Run files into one run file."""
    from rankwise.fusion import fuse as fuse_runs
    from rankwise.trec import read_run, write_run

    names = _stems(args.runs)
    runs = dict(zip(names, [read_run(path) for path in args.runs], strict=True))
    weights = _numbers("--weights", args.weights)
    if args.train is None and args.topics is not None:
        raise ValueError("--topics: names training topics; give judgements with --train")
    found = None
    if args.train is not None:
        if weights is not None:
            raise ValueError("--train finds weights; leave --weights out")
        found = _trained(args, runs)
        weights = [float(w) for w in found.weights]
    options = {} if args.missing is None else {"missing": args.missing}
    tag = args.tag or args.method.split("(")[0]
    fused = fuse_runs(
        runs,
        args.method,
        norm=args.norm,
        weights=weights,
        k=args.k,
        tag=tag,
        **options,
    )
    write_run(fused, args.output)
    partly = [n for n, run in runs.items() if run.n_queries < fused.n_queries]
    if args.json:
        _print_json(
            _finite(
                {
                    "runs": names,
                    "method": args.method,
                    "norm": args.norm,
                    "weights": weights,
                    "trained": None
                    if found is None
                    else {
                        "metric": args.metric,
                        "value": found.value,
                        "equal_weights": found.equal_value,
                        "topics": found.n_queries,
                    },
                    "topics": fused.n_queries,
                    "documents": fused.n_docs,
                    "output": args.output,
                }
            )
        )
        return
    for name in partly:
        _note(f"{name}: answers {runs[name].n_queries} of {fused.n_queries} topics.")
    if found is not None:
        _note(
            f"weights by {args.metric} on {found.n_queries} topics: {found.value:.4f} "
            f"(equal weights {found.equal_value:.4f})"
        )
        for name, weight in zip(found.names, found.weights, strict=True):
            _note(f"  {weight:.4f} {name}")
    print(
        f"{len(names)} runs, {fused.n_queries} topics, {fused.n_docs} documents by {args.method}: "
        f"{args.output}"
    )


def _trained(args: argparse.Namespace, runs: dict[str, Any]) -> Any:
    from rankwise.fusion import tune_weights
    from rankwise.trec import read_qrels

    topics = None
    if args.topics is not None:
        topics = Path(args.topics).read_text(encoding="utf-8").split()
    options = {} if args.missing is None else {"missing": args.missing}
    return tune_weights(
        runs,
        read_qrels(args.train),
        args.metric,
        args.method,
        norm=args.norm,
        topics=topics,
        **options,
    )


def _stems(paths: list[str]) -> list[str]:
    """Runs by the names of their files, or by their paths where those repeat."""
    stems = [Path(path).stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else paths
    if len(set(names)) < len(names):
        raise ValueError("a run file must be named once; give it a weight instead")
    return names


def _numbers(option: str, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"{option}: must be numbers, comma-separated, got {text!r}") from None


def aggregate(args: argparse.Namespace) -> None:
    """Rank lists into one ranking."""
    import numpy as np

    from rankwise.aggregate import kemeny_consensus, kemeny_distance, normalised
    from rankwise.fusion import _method, _scores
    from rankwise.rank_files import read_rankings

    lists = read_rankings(args.lists, format=args.format)
    name, function, options = _method(args.method)
    if args.missing is not None:
        options["missing"] = args.missing
    weights = _numbers("--weights", args.weights)
    given = None if weights is None else np.asarray(weights)
    if args.norm is not None:
        lists = normalised("aggregate", lists, args.norm)
    scores = _scores(lists, function, options, None, given, 0)
    order = np.argsort(-scores, kind="stable")
    ranks = 1 + np.array([(scores > s).sum() for s in scores], np.int64)
    missing = options.get("missing", "skip")
    pairs = "last" if missing == "last" else "skip"
    distance = kemeny_distance(lists, scores, weights=given, missing=pairs)
    best = kemeny_consensus(lists, weights=given, missing=pairs) if args.optimum else None
    items = [str(item) for item in np.asarray(lists.items)]
    shown = order if args.k is None else order[: args.k]
    rows = [
        {"rank": int(ranks[i]), "item": items[i], "score": float(scores[i])} for i in shown.tolist()
    ]
    if args.json:
        _print_json(
            _finite(
                {
                    "method": name,
                    "lists": lists.n_lists,
                    "items": lists.n_items,
                    "ranking": rows,
                    "kemeny_distance": distance,
                    "optimum": None
                    if best is None
                    else {
                        "distance": best.distance,
                        "bound": best.bound,
                        "exact": best.exact,
                    },
                }
            )
        )
        return
    width = max(map(len, items))
    print(f"{'rank':>4}  {'item':<{width}}  score")
    for row in rows:
        print(f"{row['rank']:>4}  {row['item']:<{width}}  {row['score']:.6g}")
    voters = "" if lists.count is None else f" of {lists.count.sum():g} voters"
    _note(
        f"{lists.n_lists} lists{voters}, {lists.n_items} items; "
        f"pairs against the lists (Kemeny distance): {distance:g}"
    )
    if best is not None:
        kind = "the least there is" if best.exact else f"local search; none is below {best.bound:g}"
        _note(f"Kemeny's consensus: {best.distance:g}, {kind}")


def aggregators(args: argparse.Namespace) -> None:
    """The aggregators there are, by name."""
    from rankwise.aggregate import AGGREGATORS

    about = {
        name: " ".join((f.__doc__ or "").split("\n\n")[0].split())
        for name, f in AGGREGATORS.items()
    }
    if args.json:
        _print_json(about)
        return
    width = max(map(len, about))
    for name, text in about.items():
        print(f"{name:<{width}} {text.replace('``', '')}")


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "fuse": fuse,
    "aggregate": aggregate,
    "aggregators": aggregators,
}
