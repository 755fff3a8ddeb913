"""What each command of the command line does.

Every command takes the parsed arguments and prints its result on standard output: text for people,
or with ``--json`` one object for programs. Progress and notes go to standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwise.compare import Comparison
    from rankwise.data import Queries
    from rankwise.experiment import Experiment, Fold
    from rankwise.metrics import Metric


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=_plain, allow_nan=False))


def _plain(value: Any) -> Any:
    """NumPy values as JSON's; NaN cannot be written there and becomes null upstream."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def _finite(value: Any) -> Any:
    """NaN and infinities as None, all the way down."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _metrics_of(args: argparse.Namespace) -> list[Metric]:
    from rankwise.metrics import parse_metric
    from rankwise.recipes import split_names

    return [parse_metric(m, preset=args.preset) for m in split_names(args.metrics)]


def _read(args: argparse.Namespace, path: str, n_features: int | None = None) -> Queries:
    from rankwise.formats import read

    return read(path, format=args.format, n_features=n_features or args.features, sparse=args.sparse)


def _read_alike(args: argparse.Namespace, paths: list[str]) -> list[Queries]:
    """Several files with one number of features: the widest file sets it."""
    parts = [_read(args, p) for p in paths]
    width = max(p.n_features for p in parts)
    return [
        q if q.n_features == width else _read(args, p, width)
        for p, q in zip(paths, parts, strict=True)
    ]


# --- demo ---------------------------------------------------------------------------------------

_TREES = "n_estimators=100, max_depth=3, num_leaves=8, learning_rate=0.1"
_DEMO_RANKERS = (
    "random",
    "linear(alpha=1.0)",
    "ranknet(C=1.0)",
    "listnet(C=1.0)",
    "ranksvm(C=1.0)",
    f"mart({_TREES})",
    f"lambdamart({_TREES})",
)


def demo(args: argparse.Namespace) -> None:
    from rankwise._progress import Progress
    from rankwise.experiment import Fold, run_experiment
    from rankwise.recipes import parse_ranker
    from rankwise.synthetic import make_queries

    queries = make_queries(rng=args.seed)
    train, test = queries.take(range(300)), queries.take(range(300, queries.n_queries))
    requests = [parse_ranker(text) for text in _DEMO_RANKERS]
    with Progress(quiet=args.quiet) as progress:
        experiment = run_experiment(
            requests,
            [Fold(train, None, test)],
            ["ndcg@5", "ndcg@10", "ap", "rr"],
            tune=False,
            random_state=args.seed,
            progress=progress,
        ).renamed({r.text: r.recipe.name for r in requests})
    comparison = experiment.compare(rng=args.seed)
    gains = {
        o.name: o.choices[0].ranker.feature_importances_
        for o in experiment.outcomes
        if hasattr(o.choices[0].ranker, "feature_importances_")
    }
    _save_picture(comparison, args.picture)
    if args.json:
        _print_json(
            _finite(
                {
                    "train_queries": train.n_queries,
                    "test_queries": test.n_queries,
                    **comparison.to_dict(),
                    "split_gain": {name: list(g) for name, g in gains.items()},
                    "picture": args.picture,
                }
            )
        )
        return
    print(
        f"{queries.n_queries:,} synthetic judged queries of 30 documents (make_queries, seed {args.seed}): "
        f"{train.n_queries} train, {test.n_queries:,} test.\n"
        "Nothing is tuned: trees have depth 3, 8 leaves and 100 rounds at learning rate .1; linear rankers C = 1.\n"
    )
    print(comparison.to_text())
    print("\nShare of the split gain that each tree ranker takes from each feature (x5 is the same for")
    print("all documents of a query, so it cannot change an order):")
    for name, gain in gains.items():
        print(f"  {name:<11}" + "  ".join(f"x{j} {g:.2f}" for j, g in enumerate(gain)))
    print(f"\npicture: {args.picture}")
    print("next:    rankwise compare --help   (the same for files of your own)")


def _save_picture(comparison: Comparison, path: str) -> None:
    from rankwise.plots import plot_means

    plot_means(comparison, path=path)


# --- compare ------------------------------------------------------------------------------------


def compare(args: argparse.Namespace) -> None:
    from rankwise._progress import Progress
    from rankwise.experiment import run_experiment
    from rankwise.metrics import parse_metric
    from rankwise.recipes import parse_ranker, split_names

    metrics = _metrics_of(args)
    requests = [parse_ranker(text) for text in split_names(args.rankers)]
    select = parse_metric(args.select, preset=args.preset) if args.select else None
    folds = [_scaled(f, args.scale) for f in _folds(args)]
    with Progress(quiet=args.quiet) as progress:
        experiment = run_experiment(
            requests,
            folds,
            metrics,
            select=select,
            tune=not args.no_tune,
            random_state=args.seed,
            progress=progress,
        )
    comparison = experiment.compare(**_statistics_of(args))
    if args.picture:
        _save_picture(comparison, args.picture)
    if args.json:
        _print_json(_finite(_experiment_dict(experiment, comparison, folds)))
        return
    print(_render(comparison, args.output_format))
    if args.output_format == "table":
        print()
        print("\n".join(_selection_lines(experiment, folds)))


def _statistics_of(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "baseline": args.baseline,
        "test": args.statistic,
        "correction": None if args.correction == "none" else args.correction,
        "rng": args.seed,
    }


def _render(comparison: Comparison, form: str) -> str:
    forms: dict[str, Callable[[], str]] = {
        "table": comparison.to_text,
        "markdown": comparison.to_markdown,
        "latex": comparison.to_latex,
        "csv": comparison.to_csv,
    }
    return forms[form]()


def _scaled(fold: Fold, method: str) -> Fold:
    if method == "none":
        return fold
    from rankwise.experiment import Fold
    from rankwise.prepare import QueryScaler

    scaler = QueryScaler(method=method).fit(fold.train)
    valid = None if fold.valid is None else scaler.transform(fold.valid)
    return Fold(scaler.transform(fold.train), valid, scaler.transform(fold.test))


def _folds(args: argparse.Namespace) -> list[Fold]:
    """The folds that the arguments describe: explicit ones, a folder, one file, or three files."""
    from rankwise.experiment import Fold
    from rankwise.formats import fold_paths

    if args.fold:
        _refuse(args, "--fold", ("data", "valid", "test", "folds"))
        triples = [tuple(text.split(",")) for text in args.fold]
        for text, triple in zip(args.fold, triples, strict=True):
            if len(triple) != 3:
                raise ValueError(
                    f"--fold: must be TRAIN,VALID,TEST, got {text!r}; name the three files of the fold"
                )
        return _explicit_folds(args, triples)
    if args.data is None:
        raise ValueError("name a training file, a LETOR folder, or folds with --fold; see --help")
    if Path(args.data).is_dir():
        _refuse(args, "a folder of folds", ("valid", "test", "folds"))
        return _explicit_folds(args, [(p.train, p.valid, p.test) for p in fold_paths(args.data)])
    if args.folds is not None:
        _refuse(args, "--folds", ("valid", "test"))
        parts = _read(args, args.data).folds(args.folds, rng=args.seed)
        return [Fold(*part) for part in parts]
    if args.test is None:
        raise ValueError(
            "test queries must be given: --test FILE, or --folds N to split one file by query"
        )
    names = [args.data, args.test] + ([args.valid] if args.valid else [])
    train, test, *valid = _read_alike(args, names)
    return [Fold(train, valid[0] if valid else None, test)]


def _refuse(args: argparse.Namespace, what: str, others: tuple[str, ...]) -> None:
    for name in others:
        if getattr(args, name) is not None:
            shown = "a data file" if name == "data" else f"--{name}"
            raise ValueError(f"{what} and {shown} must not be given together; leave one out")


def _explicit_folds(args: argparse.Namespace, triples: list[tuple[Any, ...]]) -> list[Fold]:
    """Folds from triples of files, or of lists of files to be joined; each file is read once."""
    from rankwise.data import concatenate
    from rankwise.experiment import Fold

    as_lists = [[[p] if isinstance(p, str | Path) else list(p) for p in t] for t in triples]
    names = sorted({str(p) for triple in as_lists for part in triple for p in part})
    read = dict(zip(names, _read_alike(args, names), strict=True))
    return [
        Fold(*(concatenate([read[str(p)] for p in part]) for part in triple)) for triple in as_lists
    ]


def _selection_lines(experiment: Experiment, folds: list[Fold]) -> list[str]:
    from rankwise.experiment import words

    lines = []
    if experiment.select is None:
        lines.append("Nothing was chosen on validation queries: one fit per ranker and fold.")
    else:
        lines.append(
            f"Hyperparameters chosen by {experiment.select} on the validation queries, from "
            "(see 'rankwise rankers'):"
        )
        for o in experiment.outcomes:
            if o.choices[0].tried > 1:
                kept = "; ".join(words(c.params) for c in o.choices)
                lines.append(f"  {o.name}: {o.choices[0].tried} combinations, kept {kept}")
    if len(folds) > 1:
        lines.append("Means over folds (as LETOR publishes them):")
        for m in experiment.metrics:
            means = experiment.fold_means(m)
            lines.append(f"  {m}: " + "  ".join(f"{n} {v.mean():.4f}" for n, v in means.items()))
    return lines


def _experiment_dict(
    experiment: Experiment, comparison: Comparison, folds: list[Fold]
) -> dict[str, Any]:
    return {
        **comparison.to_dict(),
        "select": None if experiment.select is None else str(experiment.select),
        "folds": [
            {
                "train": f.train.n_queries,
                "valid": 0 if f.valid is None else f.valid.n_queries,
                "test": f.test.n_queries,
            }
            for f in folds
        ],
        "rankers": {
            o.name: {
                "chosen": [c.params for c in o.choices],
                "combinations": [c.tried for c in o.choices],
                "fit_seconds": o.fit_seconds,
                "tune_seconds": o.tune_seconds,
                "score_seconds": o.score_seconds,
                "fold_means": {str(m): experiment.fold_means(m)[o.name] for m in experiment.metrics},
            }
            for o in experiment.outcomes
        },
    }


# --- train and predict --------------------------------------------------------------------------


def train(args: argparse.Namespace) -> None:
    from rankwise._progress import Progress
    from rankwise.experiment import choose, words
    from rankwise.metrics import parse_metric
    from rankwise.recipes import parse_ranker

    request = parse_ranker(args.ranker)
    metric = parse_metric(args.metric, preset=args.preset)
    data, *valid = _read_alike(args, [args.data] + ([args.valid] if args.valid else []))
    with Progress(quiet=args.quiet) as progress:
        choice = choose(
            request,
            data,
            valid[0] if valid else None,
            metric,
            random_state=args.seed,
            progress=progress,
        )
    choice.ranker.save(args.output)
    if args.json:
        _print_json(
            _finite(
                {
                    "ranker": request.text,
                    "chosen": choice.params,
                    "combinations": choice.tried,
                    "metric": str(metric),
                    "valid": choice.value,
                    "fit_seconds": choice.fit_seconds,
                    "model": args.output,
                }
            )
        )
        return
    print(f"{request.text}: {data.n_queries} queries, {data.n_docs} documents, {choice.fit_seconds:.2f} s")
    if choice.tried > 1:
        print(f"chosen from {choice.tried} combinations: {words(choice.params)}")
    if choice.value is not None:
        print(f"{metric} on {valid[0].n_queries} validation queries: {choice.value:.4f}")
    print(f"model: {args.output}")


def predict(args: argparse.Namespace) -> None:
    from rankwise._files import atomic_write
    from rankwise.saving import load

    ranker = load(args.model)
    queries = _read(args, args.data, ranker.n_features_in_)
    y_score = ranker.predict(queries)
    if args.run:
        from rankwise.trec import Run

        docs = queries.docs
        if docs is None or len(set(docs.tolist())) < len(docs):
            docs = [f"{q}-{i}" for q, n in zip(queries.ids, queries.sizes, strict=True) for i in range(1, n + 1)]
            _note("no document ids in the data; documents are named query-number")
        text = Run.from_arrays(queries.qid, docs, y_score, tag=args.tag).to_text()
    else:
        text = "".join(f"{s!r}\n" for s in y_score.tolist())
    if args.output is None:
        sys.stdout.write(text)
        return
    with atomic_write(args.output, "w") as out:
        out.write(text)
    _note(f"{len(y_score)} scores: {args.output}")


# --- convert, describe, lists -------------------------------------------------------------------


def convert(args: argparse.Namespace) -> None:
    from rankwise.formats import write

    queries = _read(args, args.source)
    write(queries, args.target, format=args.to)
    if args.json:
        _print_json(
            {"queries": queries.n_queries, "documents": queries.n_docs, "features": queries.n_features,
             "target": args.target}
        )  # fmt: skip
    else:
        print(f"{queries.n_queries} queries, {queries.n_docs} documents, {queries.n_features} features: "
              f"{args.target}")  # fmt: skip


def describe(args: argparse.Namespace) -> None:
    from rankwise.formats import describe as describe_queries

    description = describe_queries(_read(args, args.data))
    if args.json:
        _print_json(_finite(description.to_dict()))
    else:
        print(description)


def rankers(args: argparse.Namespace) -> None:
    from rankwise.recipes import RECIPES

    if args.json:
        _print_json(
            {
                r.name: {"summary": r.summary, "reference": r.reference, "grid": dict(r.grid)}
                for r in RECIPES.values()
            }
        )
        return
    for r in RECIPES.values():
        print(f"{r.name:<11} {r.summary}")
        print(f"{'':<11} {r.reference}")
        for name, values in r.grid.items():
            print(f"{'':<11} chosen from: {name} = {', '.join(f'{v:g}' for v in values)}")


def metrics(args: argparse.Namespace) -> None:
    from rankwise.metrics import METRICS

    if args.json:
        _print_json({name: {"summary": m.summary, "reference": m.reference} for name, m in METRICS.items()})
        return
    for name, m in METRICS.items():
        print(f"{name:<18} {m.summary}")
        print(f"{'':<18} {m.reference}")


def evaluate(args: argparse.Namespace) -> None:
    from rankwise._evaluate import run

    run(args)


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "demo": demo,
    "compare": compare,
    "train": train,
    "predict": predict,
    "eval": evaluate,
    "convert": convert,
    "describe": describe,
    "rankers": rankers,
    "metrics": metrics,
}
