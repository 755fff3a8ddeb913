"""The command line: ``rankwise <command>``, thin over the library.

This module parses arguments and turns errors into one sentence and an exit code: 0 for success, 2
for bad input, 130 when interrupted. What the commands do is in :mod:`rankwise.commands`, which is
imported when a command runs, so that ``rankwise eval`` starts with NumPy alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

_FORMATS = ("letor", "csv", "parquet", "npz")


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=100)


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    help: str,
    examples: str,
) -> argparse.ArgumentParser:
    lines = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    parser = commands.add_parser(
        name,
        help=help,
        description=help[0].upper() + help[1:] + ".",
        epilog=f"examples:\n{lines}",
        formatter_class=_Help,
    )
    parser.set_defaults(command=name)
    return parser


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object for programs")


def _reading(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--format", choices=_FORMATS, help="format of the data files (default: by their ending)"
    )
    group.add_argument("--features", type=int, metavar="N", help="number of features to expect")
    group.add_argument("--sparse", action="store_true", help="keep features sparse (CSR)")


def _metrics(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--metrics",
        default=default,
        metavar="LIST",
        help=f"metrics, comma-separated, see 'rankwise metrics' (default: {default})",
    )
    parser.add_argument(
        "--preset",
        metavar="NAME",
        help="conventions of another system: trec_eval, trec_eval9, letor3, letor4, mslr, lightgbm, "
        "xgboost, catboost, sklearn",
    )


def _statistics(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("statistics")
    group.add_argument(
        "--baseline", default="best", help="what the gaps are measured from (default: best)"
    )
    group.add_argument(
        "--statistic",
        choices=("randomization", "t"),
        default="randomization",
        help="paired test on the per-query values (default: randomization)",
    )
    group.add_argument(
        "--correction",
        choices=("holm", "bh", "none"),
        default="holm",
        help="correction over all tests of the table (default: holm)",
    )
    group.add_argument(
        "--output-format",
        choices=("table", "markdown", "latex", "csv"),
        default="table",
        help="how the table is printed (default: table)",
    )
    group.add_argument(
        "--picture", metavar="FILE", help="save means with intervals (.png, .svg, .pdf)"
    )


def _seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of everything random (default: 0)"
    )


def _quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="rankwise",
        description="Learning to rank: train, compare and measure rankers on judged lists.",
        epilog="'rankwise COMMAND --help' shows the options and examples of a command.",
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_demo(commands)
    _add_compare(commands)
    _add_train(commands)
    _add_tune(commands)
    _add_predict(commands)
    _add_explain(commands)
    _add_eval(commands)
    _add_convert(commands)
    _add_describe(commands)
    _add_fuse(commands)
    _add_aggregate(commands)
    for name, what in (
        ("rankers", "rankers"),
        ("metrics", "metrics"),
        ("aggregators", "ways to aggregate rank lists"),
    ):
        p = _command(
            commands,
            name,
            f"list the {what} there are, by the literature's name",
            f"rankwise {name}\nrankwise {name} --json",
        )
        _json(p)
    return parser


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = _command(
        commands,
        "demo",
        "compare seven rankers on synthetic judged queries, in under a minute",
        "rankwise demo\nrankwise demo --picture demo.svg --seed 1",
    )
    p.add_argument(
        "--picture",
        default="rankwise-demo.png",
        metavar="FILE",
        help="where the picture goes (default: rankwise-demo.png)",
    )
    _seed(p)
    _quiet(p)
    _json(p)


def _add_compare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = _command(
        commands,
        "compare",
        "fit rankers, choose their hyperparameters on validation queries, compare them on test queries",
        """
rankwise compare train.txt --valid vali.txt --test test.txt --rankers lambdamart,ranksvm,listnet
rankwise compare all.txt --folds 5 --metrics ndcg@10,ap,rr
rankwise compare all.txt --folds 5 --method random --trials 30
rankwise compare MQ2008/ --preset letor4 --select ap      (a LETOR folder of folds)
rankwise compare --fold a.txt,b.txt,c.txt --fold b.txt,c.txt,a.txt --rankers "ranksvm(C=0.01),mart"
""",
    )
    p.add_argument(
        "data", nargs="?", help="training file, or with --folds the only file, or a LETOR folder"
    )
    p.add_argument("--valid", metavar="FILE", help="validation queries, to choose and to stop by")
    p.add_argument("--test", metavar="FILE", help="test queries")
    p.add_argument(
        "--folds",
        type=int,
        metavar="N",
        help="split the file into N parts by query and rotate them",
    )
    p.add_argument(
        "--fold",
        action="append",
        metavar="TRAIN,VALID,TEST",
        help="one explicit fold; repeat for more",
    )
    p.add_argument(
        "--rankers",
        default="linear,ranknet,listnet,ranksvm,mart,lambdamart",
        metavar="LIST",
        help="rankers, comma-separated, parameters in brackets are fixed, "
        "see 'rankwise rankers' (default: all but random)",
    )
    _metrics(p, "ndcg@10,ap,rr")
    p.add_argument(
        "--select",
        metavar="METRIC",
        help="what hyperparameters and early stopping go by on validation queries "
        "(default: the first of --metrics)",
    )
    p.add_argument("--no-tune", action="store_true", help="fit each ranker once, with its defaults")
    p.add_argument(
        "--method",
        choices=("grid", "random", "tpe"),
        default="grid",
        help="how hyperparameters are searched in each fold (default: grid)",
    )
    p.add_argument(
        "--trials",
        type=int,
        metavar="N",
        help="trials per ranker and fold of --method random and tpe (default: 50)",
    )
    p.add_argument(
        "--scale",
        choices=("none", "minmax", "zscore"),
        default="none",
        help="normalise features inside each query first (default: none)",
    )
    _statistics(p)
    _reading(p)
    _seed(p)
    _quiet(p)
    _json(p)


def _add_train(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = _command(
        commands,
        "train",
        "fit one ranker and save it",
        """
rankwise train train.txt --valid vali.txt --ranker lambdamart --output model.rw
rankwise train train.txt --ranker "ranksvm(C=0.01)" --output model.rw
""",
    )
    p.add_argument("data", help="training queries, '-' for standard input")
    p.add_argument("--valid", metavar="FILE", help="validation queries, to choose and to stop by")
    p.add_argument("--ranker", default="lambdamart", help="ranker (default: lambdamart)")
    p.add_argument("--metric", default="ndcg@10", help="metric to choose by (default: ndcg@10)")
    p.add_argument("--preset", metavar="NAME", help="conventions of the metric")
    p.add_argument("--output", "-o", required=True, metavar="MODEL", help="where the model goes")
    _reading(p)
    _seed(p)
    _quiet(p)
    _json(p)


def _add_tune(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = _command(
        commands,
        "tune",
        "search for the hyperparameters that are best on validation queries",
        """
rankwise tune train.txt lambdamart --valid vali.txt --trials 50 --output model.rw
rankwise tune all.txt ranksvm --cv 5 --method grid --metric ap
rankwise tune MQ2008/ ranksvm --method grid --metric ap --preset letor4      (one choice for all folds)
rankwise tune all.txt lambdamart --study search.db --picture search.png   (go on with the same line)
rankwise tune all.txt "lambdamart(n_estimators=300)" --space "num_leaves=8..64 log integer" --method random
""",
    )
    p.add_argument(
        "data",
        help="training queries, '-' for standard input, or a LETOR folder of folds: one set of "
        "parameters for all of them, by their validation queries",
    )
    p.add_argument(
        "ranker",
        help="ranker, parameters in brackets are fixed, see 'rankwise rankers'",
    )
    p.add_argument("--valid", metavar="FILE", help="validation queries, to measure and to stop by")
    p.add_argument(
        "--cv",
        type=int,
        metavar="N",
        help="folds of whole queries, where there is no --valid (default: 5)",
    )
    p.add_argument("--metric", default="ndcg@10", help="metric to go by (default: ndcg@10)")
    p.add_argument("--preset", metavar="NAME", help="conventions of the metric")
    p.add_argument(
        "--method",
        choices=("tpe", "random", "grid"),
        default="tpe",
        help="how to search; tpe needs the extra 'tune' (default: tpe)",
    )
    p.add_argument(
        "--trials",
        type=int,
        metavar="N",
        help="trials in all, with those that a study holds (default: 50; a grid has its own number)",
    )
    p.add_argument("--timeout", type=float, metavar="S", help="start no trial after S seconds")
    p.add_argument(
        "--space",
        action="append",
        default=[],
        metavar="NAME=WHERE",
        help="where to search a parameter: LOW..HIGH [log] [integer], or VALUE,VALUE,...; "
        "repeat for more (default: the recipe's space, see 'rankwise rankers')",
    )
    p.add_argument(
        "--study",
        metavar="FILE",
        help="SQLite file that keeps every trial; an old one is gone on with",
    )
    p.add_argument(
        "--output", "-o", metavar="MODEL", help="where the ranker fitted with the best goes"
    )
    p.add_argument(
        "--picture", metavar="FILE", help="save the trials as a picture (.png, .svg, .pdf)"
    )
    _reading(p)
    _seed(p)
    _quiet(p)
    _json(p)


def _add_predict(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = _command(
        commands,
        "predict",
        "score documents with a saved ranker",
        """
rankwise predict model.rw test.txt --output scores.txt
rankwise predict model.rw test.txt --run --tag mine > mine.run
""",
    )
    p.add_argument("model", help="file written by 'rankwise train' or Ranker.save")
    p.add_argument("data", help="documents to score, '-' for standard input")
    p.add_argument(
        "--output", "-o", metavar="FILE", help="where the scores go (default: standard output)"
    )
    p.add_argument(
        "--run", action="store_true", help="write a TREC run instead of one score per line"
    )
    p.add_argument("--tag", default="rankwise", help="name of the run (default: rankwise)")
    _reading(p)


def _add_explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = _command(
        commands,
        "explain",
        "look inside a saved ranker: its worst queries, one query's mistakes, what features do",
        """
rankwise explain model.rw test.txt                                (the queries it serves worst)
rankwise explain model.rw test.txt --query 17                     (wrong pairs, and what pushed them)
rankwise explain model.rw test.txt --query 17 --metric ap --pairs 3 -o query.png
rankwise explain model.rw test.txt --importance -o importance.svg
rankwise explain model.rw test.txt --dependence 12 --json
""",
    )
    p.add_argument("model", help="file written by 'rankwise train' or Ranker.save")
    p.add_argument("data", help="judged queries, '-' for standard input")
    what = p.add_mutually_exclusive_group()
    what.add_argument(
        "--query", metavar="ID", help="one query: its ranking, its wrong pairs, what pushed them"
    )
    what.add_argument(
        "--importance",
        action="store_true",
        help="how much the metric falls when each feature is shuffled",
    )
    what.add_argument(
        "--dependence",
        metavar="FEATURE",
        help="the score as a function of a feature, given by name or by number from 1",
    )
    p.add_argument("--metric", help="metric to go by (default: the ranker's own)")
    p.add_argument("--preset", metavar="NAME", help="conventions of the metric")
    p.add_argument(
        "--pairs", type=int, default=5, metavar="N", help="wrong pairs shown (default: 5)"
    )
    p.add_argument(
        "--top",
        type=int,
        default=5,
        metavar="N",
        help="features shown for each pair (default: 5)",
    )
    p.add_argument("--worst", type=int, default=10, metavar="N", help="queries shown (default: 10)")
    p.add_argument(
        "--within",
        choices=("query", "all"),
        default="query",
        help="shuffle inside each query, or over all documents (default: query)",
    )
    p.add_argument(
        "--repeats", type=int, default=10, metavar="N", help="shuffles per feature (default: 10)"
    )
    p.add_argument(
        "--picture", "-o", metavar="FILE", help="save the answer as a picture (.png, .svg, .pdf)"
    )
    _reading(p)
    _seed(p)
    _quiet(p)
    _json(p)


def _add_eval(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = _command(
        commands,
        "eval",
        "measure TREC runs against judgements, or score files against a feature file",
        """
rankwise eval qrels.txt bm25.run
rankwise eval qrels.txt bm25.run dense.run fused.run --metrics ndcg@10,ap,recall@100
rankwise eval test.txt scores.txt --preset letor4 --metrics ap,mean_ndcg
rankwise eval qrels.txt bm25.run --per-query --json
""",
    )
    p.add_argument("truth", help="TREC judgements (qrels), or a feature file with labels")
    p.add_argument("runs", nargs="+", help="TREC runs, or files with one score per line")
    _metrics(p, "ndcg@10,ap,rr")
    p.add_argument("--per-query", "-q", action="store_true", help="print the values of each query")
    p.add_argument(
        "--kind",
        choices=("trec", "features"),
        help="what the truth file is (default: by its first line)",
    )
    _statistics(p)
    _reading(p)
    _seed(p)
    _json(p)


def _add_convert(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = _command(
        commands,
        "convert",
        "convert judged queries between LETOR text, CSV, Parquet and NumPy files",
        """
rankwise convert train.txt train.parquet
rankwise convert train.csv train.txt.gz
""",
    )
    p.add_argument("source", help="file to read, '-' for standard input")
    p.add_argument("target", help="file to write; its ending says the format")
    p.add_argument("--to", choices=_FORMATS, help="format to write (default: by the ending)")
    _reading(p)
    _json(p)


def _add_describe(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = _command(
        commands,
        "describe",
        "say what is in a file of judged queries",
        "rankwise describe train.txt\nrankwise describe train.parquet --json",
    )
    p.add_argument("data", help="file to read, '-' for standard input")
    _reading(p)
    _json(p)


def _aggregating(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--method",
        default=default,
        metavar="NAME",
        help=f"aggregator, options in brackets, see 'rankwise aggregators' (default: {default})",
    )
    parser.add_argument(
        "--norm",
        choices=("minmax", "max", "sum", "zscore", "rank", "borda"),
        help="how the scores of each list are normalised first (default: not)",
    )
    parser.add_argument(
        "--missing",
        choices=("skip", "last", "mean", "zero", "min"),
        help="what a list says of items it does not hold: nothing, that they come last, ... "
        "(default: the aggregator's)",
    )
    parser.add_argument(
        "--weights", metavar="W,W,...", help="weights of the lists, at least 0 (default: equal)"
    )
    parser.add_argument("--k", type=int, metavar="N", help="keep the first N only")


def _add_fuse(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = _command(
        commands,
        "fuse",
        "fuse TREC runs into one, topic by topic",
        """
rankwise fuse bm25.run dense.run splade.run --method rrf -o fused.run
rankwise fuse bm25.run dense.run --method comb_mnz --norm minmax --weights 1,2 -o fused.run
rankwise fuse a.run b.run --method "rrf(rank_constant=10)" --k 100 -o fused.run
rankwise fuse a.run b.run --method comb_sum --norm zscore --missing min --train qrels.txt --metric ap -o fused.run
""",
    )
    p.add_argument("runs", nargs="+", metavar="RUN", help="run files, plain or compressed")
    _aggregating(p, "rrf")
    p.add_argument("--output", "-o", required=True, metavar="RUN", help="where the fused run goes")
    p.add_argument("--tag", help="name of the fused run (default: the aggregator's)")
    group = p.add_argument_group("finding weights")
    group.add_argument("--train", metavar="QRELS", help="judgements to find the weights by")
    group.add_argument(
        "--topics", metavar="FILE", help="training topics, one a line (default: all judged)"
    )
    group.add_argument("--metric", default="ap", help="metric to go by (default: ap)")
    _json(p)


def _add_aggregate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = _command(
        commands,
        "aggregate",
        "aggregate rank lists into one ranking",
        """
rankwise aggregate votes.soi --method borda
rankwise aggregate judges.csv --method kemeny --missing last
rankwise aggregate lists.json --method "mc4(eps=0.1)" --k 10 --json
rankwise aggregate profile.toc --method copeland --optimum
""",
    )
    p.add_argument(
        "lists", help="PrefLib profile (.soc, .soi, .toc, .toi), CSV or JSON; '-' is standard input"
    )
    p.add_argument(
        "--format",
        choices=("soc", "soi", "toc", "toi", "csv", "json"),
        help="format of the file (default: by its ending)",
    )
    _aggregating(p, "borda")
    p.add_argument(
        "--optimum",
        action="store_true",
        help="also find Kemeny's consensus and its distance to the lists",
    )
    _json(p)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.version:
        from rankwise import __version__

        print(f"rankwise {__version__}")
        return 0
    if args.command is None:
        parser.print_help()
        return 0
    try:
        from rankwise import commands, commands_fusion

        {**commands.COMMANDS, **commands_fusion.COMMANDS}[args.command](args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("rankwise: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (for example `| head`); nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        print(f"rankwise {args.command}: {_sentence(error)}", file=sys.stderr)
        return 2
    return 0


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename is not None else ""
        return f"{name}{error.strerror}"
    if isinstance(error, MemoryError) and not str(error):
        return "not enough memory for this data; --sparse keeps zeros out of it"
    return str(error)
