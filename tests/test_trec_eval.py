"""trec_eval's own test files and pytrec_eval: every measure we have, to every digit they print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rankwise as rw

pytestmark = pytest.mark.letor

# Not metrics: the name of the run, the number of topics (n_missing and ids say more), the
# relevance of the first documents as text.
NOT_METRICS = {"runid", "num_q", "relstring", "relstring_20"}
# Sums over topics in the line "all", where other measures are means.
SUMS = {"num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret"}


@pytest.fixture(scope="module")
def folder(letor_data: Path) -> Path:
    return letor_data / "trec" / "trec_eval-tests"


def expected(path: Path) -> dict[str, dict[str, str]]:
    """Measure -> topic (or "all") -> the number as printed."""
    table: dict[str, dict[str, str]] = {}
    for line in path.read_text().splitlines():
        name, topic, value = line.split()
        table.setdefault(name, {})[topic] = value
    return {name: values for name, values in table.items() if name not in NOT_METRICS}


def top(run: rw.Run, n: int) -> rw.Run:
    """The best n documents of each topic: trec_eval's -M."""
    nested = {
        qid: dict(sorted(docs.items(), key=lambda d: (d[1], d[0]), reverse=True)[:n])
        for qid, docs in run.to_dict().items()
    }
    return rw.Run.from_dict(nested)


def check(
    table: dict[str, dict[str, str]],
    qrels: rw.Qrels,
    run: rw.Run,
    change: Callable[[rw.Metric], rw.Metric] = lambda metric: metric,
) -> int:
    """Compares every number of an expected output; returns how many there were."""
    checked = 0
    for name, numbers in table.items():
        metric = change(parse(name))
        result = rw.evaluate_run(qrels, run, [metric])
        per_topic = dict(
            zip(result.ids.tolist(), result.per_query(metric)[0].tolist(), strict=True)
        )
        ours = {**per_topic, "all": result.means(metric)[0].value}
        for topic, printed in numbers.items():
            digits = len(printed.partition(".")[2])
            assert f"{ours[topic]:.{digits}f}" == printed, (name, topic, ours[topic], printed)
            checked += 1
    return checked


def parse(name: str) -> rw.Metric:
    """The measure under its name in trec_eval's output, with the parameters it prints."""
    if name.startswith("utility_"):
        weights = [float(w) for w in name.removeprefix("utility_").split(",")]
        return rw.parse_metric("utility", preset="trec_eval")(weights=weights)
    if name == "ndcg_1=3,2=9,4=4.5":
        return rw.parse_metric("ndcg", preset="trec_eval")(gain=[0, 3, 9, 9, 9])
    if name == "11pt_avg_.25,.5,.75":
        return rw.parse_metric("11pt_avg", preset="trec_eval")(recall=[0.25, 0.5, 0.75])
    return rw.parse_metric(name, preset="trec_eval")


# Output, qrels, run, -M, -l, and how many numbers the output holds.
OUTPUTS = [
    ("out.test", "qrels.test", "results.test", None, 1, 28),
    ("out.test.a", "qrels.test", "results.test", None, 1, 97),
    ("out.test.aq", "qrels.test", "results.test", None, 1, 382),
    ("out.test.aqc", "qrels.test", "results.trunc", None, 1, 382),
    ("out.test.aqcM", "qrels.test", "results.trunc", 100, 1, 382),
    ("out.test.aql", "qrels.rel_level", "results.test", None, 2, 382),
    ("out.test.meas_params", "qrels.test", "results.test", None, 1, 88),
]


@pytest.mark.parametrize(("output", "qrels", "run", "depth", "level", "n"), OUTPUTS)
def test_trec_evals_expected_outputs(
    folder: Path, output: str, qrels: str, run: str, depth: int | None, level: int, n: int
) -> None:
    retrieved = rw.read_run(folder / run)
    if depth is not None:
        retrieved = top(retrieved, depth)

    def at_level(metric: rw.Metric) -> rw.Metric:
        return metric(rel=level) if "rel" in metric.options else metric

    table = expected(folder / output)
    assert check(table, rw.read_qrels(folder / qrels), retrieved, at_level) == n


def test_trec_evals_z_scores(folder: Path) -> None:
    """-Z: each value as standard deviations from a stored mean; here from ours."""
    stored = {}
    for line in (folder / "zscores_file").read_text().splitlines():
        topic, name, mean, deviation = line.split()
        stored[name, topic] = float(mean), float(deviation)
    table = expected(folder / "out.test.aqZ")
    names = [name.removeprefix("Z") for name in table]
    names = [name for name in names if (name, "301") in stored]
    paths = folder / "qrels.test", folder / "results.test"
    result = rw.evaluate_files(*paths, names, preset="trec_eval")
    assert len(names) == 95
    for name in names:
        values = []
        for topic, value in zip(result.ids.tolist(), result.per_query(name)[0], strict=True):
            mean, deviation = stored[name, topic]
            values.append((value - mean) / deviation if deviation else value - mean)
            assert f"{values[-1] + 0.0:.4f}" == table[f"Z{name}"][topic], (name, topic)
        total = sum(values) / (1 if name in SUMS else len(values))
        assert f"{total + 0.0:.4f}" == table[f"Z{name}"]["all"], name


def test_files_give_what_columns_give(folder: Path) -> None:
    names = list(expected(folder / "out.test"))
    paths = folder / "qrels.test", folder / "results.test"
    files = rw.evaluate_files(*paths, names, preset="trec_eval")
    columns = rw.evaluate_run(
        rw.read_qrels(paths[0]), rw.read_run(paths[1]), names, preset="trec_eval"
    )
    assert files.runs == ("STANDARD",)
    for name, values in files.values.items():
        np.testing.assert_array_equal(values, columns.values[name])


# ------------------------------------------------------------------------------------ pytrec_eval


def robust03(letor_data: Path) -> list[Path]:
    return sorted((letor_data / "trec" / "robust03-top100").glob("*.run"))


def both_have() -> list[str]:
    """pytrec_eval's measures, in its output's spelling, that trec_eval 9 and rankwise share."""
    cuts = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
    return [
        *("map", "gm_map", "Rprec", "bpref", "recip_rank", "11pt_avg", "infAP", "gm_bpref"),
        *("ndcg", "Rndcg", "ndcg_rel", "binG", "G", "utility"),
        *("set_P", "set_relative_P", "set_recall", "set_map", "set_F"),
        *("num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret"),
        *(f"P_{k}" for k in cuts),
        *(f"recall_{k}" for k in cuts),
        *(f"map_cut_{k}" for k in cuts),
        *(f"ndcg_cut_{k}" for k in cuts),
        *(f"relative_P_{k}" for k in cuts),
        *(f"success_{k}" for k in (1, 5, 10)),
        *(f"iprec_at_recall_{i / 10:.2f}" for i in range(11)),
        *(f"Rprec_mult_{i / 5:.2f}" for i in range(1, 11)),
    ]


def test_trec_eval9_equals_pytrec_eval_on_robust03(letor_data: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels_path = letor_data / "trec" / "robust03-top100" / "qrels.txt"
    runs = robust03(letor_data)
    assert len(runs) == 17
    names = both_have()
    result = rw.evaluate_files(qrels_path, runs, names, preset="trec_eval9")
    with qrels_path.open() as file:
        qrels = pytrec_eval.parse_qrel(file)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, pytrec_eval.supported_measures)
    row = {qid: i for i, qid in enumerate(result.ids.tolist())}
    compared = 0
    for r, path in enumerate(runs):
        with path.open() as file:
            theirs = evaluator.evaluate(pytrec_eval.parse_run(file))
        assert {m for v in theirs.values() for m in v} - set(names) <= NOT_METRICS
        rows = [row[qid] for qid in theirs]
        for name in names:
            value = np.array([values[name] for values in theirs.values()])
            ours = result.per_query(name)[r, rows]
            if name.startswith("gm_"):  # pytrec_eval leaves the logarithm, for its own mean
                value, ours = np.exp(value), np.maximum(ours, 1e-5)
            np.testing.assert_allclose(ours, value, rtol=0, atol=1e-9, err_msg=f"{path} {name}")
            compared += len(rows)
    assert compared > 17 * 90 * len(names)


def test_trec_eval9_compares_scores_as_floats() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels = {"1": {"a": 1, "b": 0}}
    run = {"1": {"a": 0.30000000001, "b": 0.3}}  # one float, two doubles
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)["1"]["recip_rank"]
    columns = rw.Qrels.from_dict(qrels), rw.Run.from_dict(run)
    nine = rw.evaluate_run(*columns, "recip_rank", preset="trec_eval9")
    ten = rw.evaluate_run(*columns, "recip_rank", preset="trec_eval")
    assert nine.means("recip_rank")[0].value == theirs == 0.5  # b before a
    assert ten.means("recip_rank")[0].value == 1.0


def test_negative_judgements_as_in_trec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels = {"1": {"a": 1, "b": -1, "c": 0, "d": -1, "e": 1, "f": 2, "g": 0}}
    run = {"1": {doc: 10.0 - i for i, doc in enumerate("xbcadyezf")}}
    names = ["map", "bpref", "infAP", "ndcg", "P_5", "num_rel", "num_nonrel_judged_ret", "Rprec"]
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(names)).evaluate(run)["1"]
    result = rw.evaluate_run(
        rw.Qrels.from_dict(qrels), rw.Run.from_dict(run), names, preset="trec_eval9"
    )
    for name in names:
        value = theirs["P_5" if name == "P_5" else name]
        assert result.per_query(name)[0, 0] == pytest.approx(value, abs=1e-12), name
