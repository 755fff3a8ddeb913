"""What each command of the command line does.

Every command takes the parsed arguments and prints its result on standard output: text for people,
or with ``--json`` one object for programs. Progress and notes go to standard error.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwise.comparison import Comparison
    from rankwise.data import Queries
    from rankwise.experiment import Choice, Experiment, Fold
    from rankwise.metrics import Metric
    from rankwise.trec import Run
    from rankwise.tuning import Tuned


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
    from rankwise.metrics import parse_metrics

    return parse_metrics(args.metrics, preset=args.preset)


def _reading_options(args: argparse.Namespace) -> dict[str, Any]:
    """What the user said of the data files, for the reader of their format."""
    options: dict[str, Any] = {}
    if args.format is not None:
        options["format"] = args.format
    if args.features is not None:
        options["n_features"] = args.features
    if args.sparse:
        options["sparse"] = True
    return options


def _read(args: argparse.Namespace, path: str, **more: Any) -> Queries:
    from rankwise.formats import read

    return read(path, **_reading_options(args), **more)


def _read_alike(args: argparse.Namespace, paths: list[str]) -> list[Queries]:
    """Several files with one number of features: the widest file sets it."""
    from rankwise.folds import same_width

    return same_width([_read(args, p) for p in paths])


# --- demo ---------------------------------------------------------------------------------------

_TREES = "n_estimators=100, max_depth=3, num_leaves=8, learning_rate=0.1"
_DEMO_RANKERS = (
    "random",
    "linear(alpha=1.0)",
    "ranknet(alpha=1.0)",
    "listnet(alpha=1.0)",
    "ranksvm(C=1.0)",
    f"mart({_TREES})",
    f"lambdamart({_TREES})",
)


def demo(args: argparse.Namespace) -> None:
    """Seven rankers on the course note's synthetic queries, with the split gains of the trees."""
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
                    **json.loads(comparison.to_json()),
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
    comparison.show()
    print(
        "\nShare of the split gain that each tree ranker takes from each feature (x5 is the same for"
    )
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
    """Rankers chosen on validation queries and compared on test queries."""
    from rankwise._progress import Progress
    from rankwise._text import split_names
    from rankwise.experiment import run_experiment
    from rankwise.metrics import parse_metric
    from rankwise.recipes import parse_ranker

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
            method=args.method,
            n_trials=args.trials,
            random_state=args.seed,
            progress=progress,
        )
    names = _names(args, metrics)
    comparison = experiment.compare(metric_names=names, **_statistics_of(args))
    if args.picture:
        _save_picture(comparison, args.picture)
    if args.json:
        _print_json(_finite(_experiment_dict(experiment, comparison, folds, names)))
        return
    _print_comparison(comparison, args.output_format)
    if args.output_format == "table":
        print()
        print("\n".join(_selection_lines(experiment, folds, names, args.method)))


def _statistics_of(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "baseline": args.baseline,
        "test": args.statistic,
        "correction": None if args.correction == "none" else args.correction,
        "rng": args.seed,
    }


def _print_comparison(comparison: Comparison, form: str) -> None:
    if form == "table":
        comparison.show()
        return
    forms: dict[str, Callable[[], str]] = {
        "markdown": comparison.to_markdown,
        "latex": comparison.to_latex,
        "csv": comparison.to_csv,
    }
    print(forms[form]().rstrip("\n"))


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

    if args.fold:
        _refuse(args, "--fold", ("data", "valid", "test", "folds"))
        triples = [text.split(",") for text in args.fold]
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
        return _folds_of(args.data, args)
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


def _folds_of(folder: str, args: argparse.Namespace) -> list[Fold]:
    from rankwise.experiment import Fold
    from rankwise.folds import read_folds

    return [Fold(*parts) for parts in read_folds(folder, **_reading_options(args))]


def _refuse(args: argparse.Namespace, what: str, others: tuple[str, ...]) -> None:
    for name in others:
        if getattr(args, name) is not None:
            shown = "a data file" if name == "data" else f"--{name}"
            raise ValueError(f"{what} and {shown} must not be given together; leave one out")


def _explicit_folds(args: argparse.Namespace, triples: list[list[str]]) -> list[Fold]:
    """Folds from triples of files; a file in several folds is read once."""
    from rankwise.experiment import Fold

    names = sorted({path for triple in triples for path in triple})
    read = dict(zip(names, _read_alike(args, names), strict=True))
    return [Fold(*(read[path] for path in triple)) for triple in triples]


def _names(args: argparse.Namespace, metrics: list[Metric]) -> dict[str, str]:
    """Headings of metrics: short ones under a preset, which is named beside the table."""
    from rankwise._conventions import short_names

    return short_names(metrics) if args.preset else {str(m): str(m) for m in metrics}


_SEARCHED = {
    "grid": "from the grids",
    "random": "by random draws from the ranges",
    "tpe": "by TPE from the ranges",
}


def _selection_lines(
    experiment: Experiment, folds: list[Fold], names: dict[str, str], method: str
) -> list[str]:
    lines = []
    if experiment.select is None:
        lines.append("Nothing was chosen on validation queries: one fit per ranker and fold.")
    else:
        lines.append(
            f"Hyperparameters chosen by {names.get(str(experiment.select), experiment.select)} on the "
            f"validation queries, {_SEARCHED[method]} that 'rankwise rankers' lists:"
        )
        lines += [
            f"  {o.name}: {_kept(o.choices)}" for o in experiment.outcomes if o.choices[0].tried > 1
        ]
    if len(folds) > 1:
        lines.append("Means over folds (as LETOR publishes them):")
        for m in experiment.metrics:
            means = experiment.fold_means(m)
            lines.append(
                f"  {names[str(m)]}: " + "  ".join(f"{n} {v.mean():.4f}" for n, v in means.items())
            )
    return lines


def _kept(choices: list[Choice]) -> str:
    """What was chosen: first what all folds share, then what each fold kept."""
    from rankwise._text import words

    params = [c.params for c in choices]
    shared = {k: v for k, v in params[0].items() if all(p[k] == v for p in params)}
    kept = [words(shared)] if shared else []
    if len(shared) < len(params[0]):
        folds = [words({k: v for k, v in p.items() if k not in shared}) for p in params]
        kept.append(f"by fold {' | '.join(folds)}")
    return f"{choices[0].tried} combinations, kept {'; '.join(kept)}"


def _experiment_dict(
    experiment: Experiment, comparison: Comparison, folds: list[Fold], names: dict[str, str]
) -> dict[str, Any]:
    return {
        **json.loads(comparison.to_json()),
        "metric_texts": {short: full for full, short in names.items()},
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
                "fold_means": {
                    names[str(m)]: experiment.fold_means(m)[o.name] for m in experiment.metrics
                },
            }
            for o in experiment.outcomes
        },
    }


# --- train and predict --------------------------------------------------------------------------


def train(args: argparse.Namespace) -> None:
    """One ranker, fitted, chosen and saved."""
    from rankwise._progress import Progress
    from rankwise._text import words
    from rankwise.experiment import choose
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
    print(
        f"{request.text}: {data.n_queries} queries, {data.n_docs} documents, {choice.fit_seconds:.2f} s"
    )
    if choice.tried > 1:
        print(f"chosen from {choice.tried} combinations: {words(choice.params)}")
    if choice.value is not None:
        print(f"{metric} on {valid[0].n_queries} validation queries: {choice.value:.4f}")
    print(f"model: {args.output}")


def tune(args: argparse.Namespace) -> None:
    """Hyperparameters searched on validation queries, in a file that a later run goes on with."""
    from rankwise._progress import Progress
    from rankwise.metrics import parse_metric
    from rankwise.recipes import parse_ranker
    from rankwise.space import parse_space
    from rankwise.tuning import tune as search

    request = parse_ranker(args.ranker)
    metric = parse_metric(args.metric, preset=args.preset)
    space = parse_space(args.space) if args.space else None
    if args.picture:
        from rankwise.plots import file_kind

        file_kind(args.picture)  # a bad ending is said before the search, not after it
    data: Any
    valid: list[Queries] = []
    if Path(args.data).is_dir():
        _refuse(args, "a folder of folds", ("valid", "cv", "output"))
        data = [(fold.train, fold.valid) for fold in _folds_of(args.data, args)]
    else:
        data, *valid = _read_alike(args, [args.data] + ([args.valid] if args.valid else []))
    try:
        with Progress(quiet=args.quiet) as progress:
            tuned = search(
                request, data, valid[0] if valid else None,
                cv=args.cv, space=space, metric=metric, method=args.method, n_trials=args.trials,
                timeout=args.timeout, random_state=args.seed, study=args.study,
                refit=args.output is not None, progress=progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        if args.study:
            _note(f"finished trials are kept in {args.study}; the same command goes on with them")
        raise
    if args.picture:
        tuned.plot(path=args.picture)
    if tuned.model is not None:
        tuned.model.save(args.output)
    if args.json:
        _print_json(_finite(_tuned_dict(tuned, args)))
        return
    print(tuned)
    print(f"ranker:  {tuned.chosen}")
    for name in ("study", "picture", "output"):
        if getattr(args, name):
            print(f"{('model' if name == 'output' else name) + ':':<8} {getattr(args, name)}")


def _tuned_dict(tuned: Tuned, args: argparse.Namespace) -> dict[str, Any]:
    interval = tuned.interval
    return {
        "ranker": tuned.ranker,
        "chosen": tuned.chosen,
        "metric": str(tuned.metric),
        "method": tuned.method,
        "params": tuned.params,
        "value": tuned.value,
        "interval": None if interval is None else [interval.low, interval.high],
        "queries": tuned.n_queries,
        "folds": tuned.n_folds,
        "space": {k: list(v) if isinstance(v, tuple) else str(v) for k, v in tuned.space.items()},
        "trials": [
            {
                "number": t.number,
                "params": t.params,
                "value": t.value,
                "seconds": t.seconds,
                "error": t.error or None,
            }
            for t in tuned.trials
        ],
        "seconds": tuned.seconds,
        "study": args.study,
        "picture": args.picture,
        "model": args.output,
    }


def predict(args: argparse.Namespace) -> None:
    """Scores of documents, one per line or as a TREC run."""
    from rankwise.formats import write_scores
    from rankwise.saving import load
    from rankwise.trec import write_run

    ranker = load(args.model)
    width = {} if args.features is not None else {"n_features": ranker.n_features_in_}
    queries = _read(args, args.data, **width)
    y_score = ranker.predict(queries)
    target = "-" if args.output is None else args.output
    if args.run:
        write_run(_as_run(queries, y_score, args.tag), target)
    else:
        write_scores(queries.in_input_order(y_score), target)
    if args.output is not None:
        _note(f"{len(y_score)} scores: {args.output}")


def _as_run(queries: Queries, y_score: Any, tag: str) -> Run:
    """Scores as a TREC run; documents without ids are named by their number in the query."""
    import numpy as np

    from rankwise.trec import Run

    qid, docs = queries.qid, queries.docs
    if docs is None:
        _note("the data has no document ids; documents are named 1, 2, ... in each query")
        first = queries.offsets[:-1].repeat(queries.sizes)
        docs = (np.arange(queries.n_docs) - first + 1).astype(str)
    return Run.from_arrays(qid, docs, y_score, tag=tag)


# --- explain ------------------------------------------------------------------------------------


def explain(args: argparse.Namespace) -> None:
    """What a saved ranker does: to one query, or with its features."""
    from rankwise.metrics import parse_metric
    from rankwise.saving import load

    ranker = load(args.model)
    width = {} if args.features is not None else {"n_features": ranker.n_features_in_}
    queries = _read(args, args.data, **width)
    metric = ranker.metric if args.metric is None else args.metric
    metric = parse_metric(metric, preset=args.preset)
    answer = next(
        find
        for asked, find in (
            (args.query is not None, _explain_one),
            (args.importance, _explain_importance),
            (args.dependence is not None, _explain_dependence),
            (True, _explain_worst),
        )
        if asked
    )
    found, draw = answer(args, ranker, queries, metric)
    if args.json:
        _print_json(_finite(found.as_dict()))
    else:
        print(found)
    if args.picture is not None:
        draw(found, path=args.picture)
        _note(f"picture: {args.picture}")


def _explain_one(args: argparse.Namespace, ranker: Any, queries: Queries, metric: Metric) -> Any:
    from rankwise import mistakes, plots

    _checked_picture(args)
    found = mistakes.explain_query(
        ranker, queries, args.query, metric=metric, n_pairs=args.pairs, n_features=args.top
    )
    return found, plots.plot_mistakes


def _explain_importance(
    args: argparse.Namespace, ranker: Any, queries: Queries, metric: Metric
) -> Any:
    from rankwise import insight, plots
    from rankwise._progress import Progress

    _checked_picture(args)
    with Progress(quiet=args.quiet) as progress:
        found = insight.permutation_importance(
            ranker,
            queries,
            metric=metric,
            within=args.within,
            n_repeats=args.repeats,
            rng=args.seed,
            progress=progress,
        )
    return found, plots.plot_importance


def _explain_dependence(
    args: argparse.Namespace, ranker: Any, queries: Queries, metric: Metric
) -> Any:
    from rankwise import insight, plots

    _checked_picture(args)
    feature = args.dependence
    if feature not in (queries.feature_names or ()) and re.fullmatch(r"[+-]?\d+", feature):
        feature = int(feature) - 1
        if not 0 <= feature < queries.n_features:
            raise ValueError(
                f"--dependence: a feature must be a number from 1 to {queries.n_features}, "
                f"got {args.dependence}"
            )
    found = insight.partial_dependence(ranker, queries, feature, rng=args.seed)
    return found, plots.plot_dependence


def _explain_worst(args: argparse.Namespace, ranker: Any, queries: Queries, metric: Metric) -> Any:
    from rankwise import mistakes

    if args.picture is not None:
        raise ValueError(
            "--picture: the list of worst queries has none; "
            "ask for --query, --importance or --dependence"
        )
    return mistakes.worst_queries(ranker, queries, metric=metric, n=args.worst), None


def _checked_picture(args: argparse.Namespace) -> None:
    """A bad ending is refused before anything is computed."""
    from rankwise.plots import file_kind

    file_kind(args.picture)


# --- convert, describe, lists -------------------------------------------------------------------


def convert(args: argparse.Namespace) -> None:
    """Judged queries from one format to another."""
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
    """What is in a file of judged queries."""
    from rankwise.summary import describe as describe_queries

    description = describe_queries(_read(args, args.data))
    if args.json:
        _print_json(_finite(description.as_dict()))
    else:
        print(description)


def rankers(args: argparse.Namespace) -> None:
    """The recipes there are, with their grids."""
    from rankwise.recipes import RECIPES

    if args.json:
        _print_json(
            {
                r.name: {
                    "summary": r.summary,
                    "reference": r.reference,
                    "grid": dict(r.grid),
                    "ranges": {k: str(v) for k, v in r.ranges.items()},
                }
                for r in RECIPES.values()
            }
        )
        return
    for r in RECIPES.values():
        print(f"{r.name:<11} {r.summary}")
        print(f"{'':<11} {r.reference}")
        for name, values in r.grid.items():
            print(f"{'':<11} chosen from: {name} = {', '.join(map(_short, values))}")
        for name, where in r.ranges.items():
            print(f"{'':<11} searched in: {name} = {where}")


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else repr(value)


def metrics(args: argparse.Namespace) -> None:
    """The metrics there are, with their references."""
    from rankwise.metrics import METRICS

    if args.json:
        _print_json(
            {name: {"summary": m.summary, "reference": m.reference} for name, m in METRICS.items()}
        )
        return
    width = max(map(len, METRICS))
    for name, m in METRICS.items():
        print(f"{name:<{width}} {m.summary}")
        print(f"{'':<{width}} {_citation(m.reference)}")
    print("\nFull references: docs/references.bib; options and presets: docs/metrics.md")


def _citation(keys: str) -> str:
    """Bibliography keys, such as ``jarvelin2002``, as author and year."""
    return re.sub(r"\b([a-z]+)(\d{4})[a-z]*", lambda m: f"{m[1].title()} {m[2]}", keys)


# --- eval ---------------------------------------------------------------------------------------


def evaluate(args: argparse.Namespace) -> None:
    """Runs against judgements, or score files against labels; several with significance."""
    from rankwise._conventions import conventions

    kind = args.kind or _kind_of(args.truth)
    metrics = _metrics_of(args)
    values, ids, notes = (_eval_runs if kind == "trec" else _eval_scores)(args, metrics)
    notes.insert(0, conventions(metrics))
    names = _names(args, metrics)
    if len(next(iter(values.values()))) > 1 and not args.per_query:
        from rankwise.comparison import compare as compare_systems

        shown = {names[text]: row for text, row in values.items()}
        comparison = compare_systems(shown, ids=ids, notes=notes, **_statistics_of(args))
        if args.picture:
            _save_picture(comparison, args.picture)
        if args.json:
            print(comparison.to_json())
        else:
            _print_comparison(comparison, args.output_format)
        return
    if args.picture:
        raise ValueError("--picture: compares systems; give at least two, without --per-query")
    _print_values(args, values, names, ids, notes)


Values = dict[str, dict[str, Any]]  # metric -> system -> value of each query


def _kind_of(path: str) -> str:
    """Judgements hold four columns; a row of a feature file names its query with ``qid:``."""
    if path == "-":
        return "trec"
    from rankwise._files import opened

    with opened(path) as text:
        line = text.first_line()
    if "qid:" in line or Path(path).suffix in (".csv", ".parquet", ".npz"):
        return "features"
    return "trec"


def _eval_runs(args: argparse.Namespace, metrics: list[Metric]) -> tuple[Values, Any, list[str]]:
    from rankwise.evaluation import evaluate_files

    result = evaluate_files(args.truth, args.runs, metrics)
    values = {
        text: dict(zip(result.runs, rows, strict=True)) for text, rows in result.values.items()
    }
    notes = []
    for i, run in enumerate(result.runs):
        if result.n_missing[i]:
            notes.append(
                f"{run}: {result.n_missing[i]} judged topics without documents count as 0."
            )
        if result.n_unjudged[i]:
            notes.append(f"{run}: {result.n_unjudged[i]} topics without judgements are left out.")
        if result.rank_conflicts[i]:
            notes.append(
                f"{run}: {result.rank_conflicts[i]} lines whose rank contradicts the score; "
                "scores decide."
            )
    return values, result.ids, notes


def _eval_scores(args: argparse.Namespace, metrics: list[Metric]) -> tuple[Values, Any, list[str]]:
    from rankwise.formats import read_scores
    from rankwise.metrics import evaluate as evaluate_scores

    queries = _read(args, args.truth)
    values: Values = {str(m): {} for m in metrics}
    names = [Path(p).stem for p in args.runs]
    if len(set(names)) < len(names):
        names = list(args.runs)
    for path, name in zip(args.runs, names, strict=True):
        y_score = queries.from_input_order(read_scores(path, queries.n_docs))
        for text, v in evaluate_scores(metrics, queries.y, y_score, qid=queries.groups).items():
            values[text][name] = v
    return values, queries.ids, []


def _print_values(
    args: argparse.Namespace, values: Values, names: dict[str, str], ids: Any, notes: list[str]
) -> None:
    """Means of one system, or with ``--per-query`` the values of every query as well."""
    from rankwise.metrics import parse_metric

    systems = list(next(iter(values.values())))
    means = {
        names[text]: {s: parse_metric(text).average(v) for s, v in row.items()}
        for text, row in values.items()
    }
    values = {names[text]: row for text, row in values.items()}
    if args.json:
        out: dict[str, Any] = {
            "metrics": {
                text: {
                    s: {"mean": m.value, "queries": m.n_queries, "skipped": m.n_skipped}
                    for s, m in row.items()
                }
                for text, row in means.items()
            },
            "notes": notes,
        }
        if args.per_query:
            out["per_query"] = {
                text: {s: dict(zip(ids.tolist(), v.tolist(), strict=True)) for s, v in row.items()}
                for text, row in values.items()
            }
        _print_json(_finite(out))
        return
    for s in systems:
        prefix = f"{s}\t" if len(systems) > 1 else ""
        if args.per_query:
            for i, qid in enumerate(ids.tolist()):
                for text, row in values.items():
                    v = row[s][i]
                    print(f"{prefix}{text}\t{qid}\t{'skipped' if v != v else f'{v:.4f}'}")
        for text, row in means.items():
            m = row[s]
            skipped = f", {m.n_skipped} skipped" if m.n_skipped else ""
            value = f"{m.value:.4f}" if m.n_queries else "undefined"
            print(f"{prefix}{text}\tall\t{value}\t({m.n_queries} queries{skipped})")
    for note in notes:
        _note(note)


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "demo": demo,
    "compare": compare,
    "train": train,
    "tune": tune,
    "predict": predict,
    "explain": explain,
    "eval": evaluate,
    "convert": convert,
    "describe": describe,
    "rankers": rankers,
    "metrics": metrics,
}
