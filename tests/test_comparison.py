"""The comparison: what it computes, and that every rendering says the same."""
# ruff: noqa: RUF001 (en dashes are what is printed)

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import rankwise as rw
from rankwise import _render
from rankwise.stats import TESTS

SYSTEMS = {
    "random": -0.4,
    "pointwise linear": 0.0,
    "RankNet linear": 0.0,
    "ListNet linear": 0.01,
    "RankSVM": 0.01,
    "pointwise trees": 0.1,
    "LambdaMART": 0.14,
}
METRICS = ("ndcg@5", "ndcg@10", "ap", "rr")


def demo_values(n_queries=200, n_skipped=13):
    """Seven systems on common queries under four metrics."""
    rng = np.random.default_rng(0)
    query = rng.normal(0, 0.15, n_queries)
    values = {}
    for metric in METRICS:
        values[metric] = {}
        for system, shift in SYSTEMS.items():
            x = np.clip(0.6 + shift + query + rng.normal(0, 0.1, n_queries), 0, 0.995)
            x[:n_skipped] = np.nan
            values[metric][system] = x
    return values


@pytest.fixture(scope="module")
def values():
    return demo_values()


@pytest.fixture(scope="module")
def demo(values):
    return rw.compare(
        values,
        columns={
            "train [s]": dict(zip(SYSTEMS, [0, 0.011, 0.82, 1.3, 0.4, 2.12, 129.4], strict=True)),
            "score [s]": {"LambdaMART": 0.061, "RankSVM": 0.0008},
            "chosen": {"LambdaMART": "8 leaves", "RankSVM": "C 1"},
        },
        notes=["Tied scores are averaged."],
        n_resamples=2_000,
    )


# ------------------------------------------------------------------------------ what it computes


def test_every_number_equals_its_function(values, demo):
    for metric in METRICS:
        best = values[metric]["LambdaMART"]
        for system, x in values[metric].items():
            result = demo.results[metric][system]
            assert result.interval == rw.bootstrap_interval(x)
            assert result.mean == np.mean(x[13:])
            assert result.n_queries == 187
            if system == "LambdaMART":
                assert result.gap is None
                continue
            gap = result.gap
            assert gap.baseline == "LambdaMART"
            assert gap.interval == rw.bootstrap_interval(x - best)
            assert gap.p_value == rw.randomization_test(x, best, n_resamples=2_000).p_value
            assert gap.effect_size == rw.effect_size(x, best)
            assert (gap.wins, gap.ties, gap.losses) == tuple(
                vars(rw.win_tie_loss(x, best)).values()
            )


@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_one_correction_runs_over_all_systems_and_metrics(values, correction):
    table = rw.compare(values, test="t", interval="t", correction=correction)
    gaps = [r.gap for row in table.results.values() for r in row.values() if r.gap]
    assert table.n_tests == len(gaps) == 6 * 4
    correct = {"holm": rw.holm, "bh": rw.benjamini_hochberg}[correction]
    np.testing.assert_array_equal(
        [gap.p_corrected for gap in gaps], correct([gap.p_value for gap in gaps])
    )


def test_without_correction_p_stays(values):
    table = rw.compare(values, test="t", interval="t", correction=None)
    for row in table.results.values():
        assert all(r.gap is None or r.gap.p_corrected == r.gap.p_value for r in row.values())
    assert "not corrected; * below .05" in str(table)


@pytest.mark.parametrize("test", TESTS)
def test_every_test_can_be_chosen(values, test):
    table = rw.compare({"ap": values["ap"]}, test=test, n_resamples=500, interval="t")
    x, best = values["ap"]["RankSVM"], values["ap"]["LambdaMART"]
    options = {"n_resamples": 500} if test == "randomization" else {}
    assert table.results["ap"]["RankSVM"].gap.p_value == TESTS[test](x, best, **options).p_value


def test_a_named_baseline_serves_every_metric(values):
    table = rw.compare(values, baseline="RankSVM", test="t", interval="t")
    for metric in METRICS:
        assert table.baseline_of(metric) == "RankSVM"
        assert table.results[metric]["RankSVM"].gap is None
        assert (
            table.results[metric]["LambdaMART"].gap.mean
            > 0
            > (table.results[metric]["random"].gap.mean)
        )
    assert "gap to RankSVM" in str(table)
    assert "slightly too large" not in str(table)


def test_the_best_may_differ_between_metrics():
    table = rw.compare({"ap": {"a": [0.1, 0.2], "b": [0.3, 0.4]}, "rr": {"a": [1, 1], "b": [0, 1]}})
    assert (table.baseline_of("ap"), table.baseline_of("rr")) == ("b", "a")


def test_numbers_do_not_depend_on_the_rest_of_the_table(values):
    whole = rw.compare(values, baseline="RankSVM", correction=None, n_resamples=500)
    part = rw.compare(
        {"ap": {s: values["ap"][s] for s in ("LambdaMART", "RankSVM")}},
        baseline="RankSVM",
        correction=None,
        n_resamples=500,
    )
    for system in ("LambdaMART", "RankSVM"):
        assert part.results["ap"][system] == whole.results["ap"][system]


def test_seeds(values):
    def p_values(rng):
        table = rw.compare({"ap": values["ap"]}, n_resamples=99, rng=rng)
        return [r.gap.p_value for r in table.results["ap"].values() if r.gap]

    assert p_values(3) == p_values(3)
    assert p_values(np.random.default_rng(3)) == p_values(np.random.default_rng(3))


def test_inputs_stay_and_lists_are_taken():
    x = np.array([0.1, np.nan, 0.3])
    table = rw.compare({"ap": {"a": x, "b": [1, 0, 1]}}, ids=["q1", "q2", "q3"])
    np.testing.assert_array_equal(x, [0.1, np.nan, 0.3])
    assert table.ids.tolist() == ["q1", "q2", "q3"]
    assert repr(table) == "Comparison(2 systems, 1 metrics, 3 queries)"


# ------------------------------------------------------------------------------------- edge cases


def test_identical_systems_tie_everywhere():
    x = np.random.default_rng(0).random(30)
    for test in TESTS:
        table = rw.compare({"ap": {"a": x, "b": x.copy()}}, test=test)
        assert table.baseline_of("ap") == "a"
        gap = table.results["ap"]["b"].gap
        assert (gap.mean, gap.interval.low, gap.interval.high) == (0, 0, 0)
        assert (gap.p_value, gap.p_corrected, gap.effect_size) == (1, 1, 0)
        assert (gap.wins, gap.ties, gap.losses) == (0, 30, 0)
        assert re.search(r"^ +\S+ p=1$", str(table), re.M)


def test_a_metric_with_too_few_queries_keeps_its_mean_and_says_so():
    table = rw.compare(
        {"ap": {"a": [0.5, np.nan], "b": [0.3, np.nan]}, "rr": {"a": [1, 0.5], "b": [0.5, 0.2]}}
    )
    result = table.results["ap"]["b"]
    assert result.mean == 0.3
    assert np.isnan([result.interval.low, result.gap.p_value, result.gap.p_corrected]).all()
    assert result.gap.mean == pytest.approx(-0.2)
    assert table.n_tests == 1
    assert "Too few queries for an interval or a test: ap." in str(table)


def test_systems_without_a_shared_query_have_means_but_no_test():
    table = rw.compare({"ap": {"a": [0.5, 0.4, np.nan], "b": [np.nan, np.nan, 0.3]}})
    gap = table.results["ap"]["b"].gap
    assert gap.n_queries == 0
    assert np.isnan([gap.mean, gap.p_value, gap.effect_size]).all()
    assert "ap 2 (b 1)" in str(table)
    assert "Gaps are taken on shared queries." in str(table)


def test_no_query_with_a_value():
    table = rw.compare({"ap": {"a": [np.nan] * 3, "b": [np.nan] * 3}})
    assert table.baseline_of("ap") is None
    assert np.isnan(table.results["ap"]["a"].mean)
    assert table.n_tests == 0
    text = str(table)
    assert "Every mean covers 0 of 3 queries" in text
    assert "p: two-sided" not in text
    named = rw.compare({"ap": {"a": [np.nan] * 3, "b": [np.nan] * 3}}, baseline="a")
    assert "base" in str(named)


def test_one_system_alone():
    text = str(rw.compare({"ap": {"a": [0.1, 0.2, 0.4]}}))
    assert text.startswith("   ap\n")
    for absent in ("best", "gap", "p:", "corrected"):
        assert absent not in text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"baseline": "RankSWM"}, r"unknown baseline 'RankSWM'; .*did you mean 'RankSVM'\?"),
        ({"test": "anova"}, "compare: test must be one of 'randomization', 't', .* got 'anova'"),
        ({"correction": "bonferroni"}, "correction must be one of 'holm', 'bh', got 'bonferroni'"),
        ({"interval": "normal"}, "interval must be one of 'bca', 't', got 'normal'"),
        ({"confidence": 95}, "confidence must be a number between 0 and 1, got 95"),
        ({"n_resamples": 0}, "n_resamples must be an integer of at least 1, got 0"),
        ({"ids": [1, 2]}, r"ids must name each of the 3 queries, got shape \(2,\)"),
        ({"ids": [1, 2, 1]}, "ids must be all different, got .*1.* more than once"),
        ({"columns": {"train": {"ranksvm": 1}}}, "unknown system .*did you mean 'RankSVM'"),
        ({"per_query": {}}, "at least one metric and one system are needed, got none"),
        ({"per_query": {"ap": {}}}, "at least one metric and one system are needed, got none"),
        ({"per_query": {"ap": {"a": []}}}, "at least one query is needed, got 0"),
        (
            {"per_query": {"ap": {"a": [0.1, 0.2], "b": [0.1]}}},
            "ap of a and ap of b must have the same length, got 2 and 1",
        ),
        (
            {"per_query": {"ap": {"a": [0.1]}, "rr": {"b": [0.1]}}},
            "every metric must name the same systems, got 'a' under only one of 'ap' and 'rr'",
        ),
        ({"per_query": {"ap": {"a": [0.1, np.inf]}}}, "ap of a must be finite or NaN"),
        ({"per_query": {"ap": {"a": [[0.1]]}}}, "ap of a must be one-dimensional"),
        ({"per_query": {"ap": {"best": [0.1]}}}, "a system has that name; rename it"),
    ],
)
def test_says_what_is_wrong(change, sentence):
    good = {"per_query": {"ap": {"RankSVM": [0.1, 0.2, 0.3], "random": [0.0, 0.1, 0.0]}}}
    arguments = good | change
    per_query = arguments.pop("per_query")
    with pytest.raises(ValueError, match=sentence):
        rw.compare(per_query, **arguments)


def test_arrays_without_systems_are_refused():
    with pytest.raises(TypeError, match="must map each metric to a mapping of system to values"):
        rw.compare({"ap": [0.1, 0.2]})


def test_unknown_metric_has_a_suggestion(demo):
    with pytest.raises(ValueError, match=r"unknown metric 'ndgc@5'; .*did you mean 'ndcg@5'"):
        demo.baseline_of("ndgc@5")


# ------------------------------------------------------------------------------------- renderings


def test_plain_table_to_the_letter():
    a = [0.5, 0.7, 0.2, 0.9, 0.4, 0.6]
    b = [0.4, 0.6, 0.2, 0.7, 0.1, 0.5]
    table = rw.compare(
        {"ap": {"new": a, "old": b}, "dcg@10": {"new": [9, 8, 7, 9, 8, 7], "old": [9] * 6}},
        test="t",
        interval="t",
        columns={"train [s]": {"new": 12.34, "old": 0.5}, "chosen": {"new": "C 10"}},
        notes=["Read from new.txt and old.txt."],
    )
    assert str(table) == (
        "     ap                dcg@10              train [s]\n"
        "----------------------------------------------------\n"
        "new  .550      best    8.000       -1.000       12.3\n"
        "     .295–.805         7.061–8.939 p=.050\n"
        "old  .417      -.133   9.000       best          0.5\n"
        "     .174–.660 p=.050  9.000–9.000\n"
        "\n"
        "Each cell: mean and gap to the best of each metric; below, 95 % interval of the mean "
        "(Student's t),\n"
        "  corrected p.\n"
        "Every mean covers all 6 queries.\n"
        "p: two-sided paired t test, Holm correction over 2 tests; * below .05.\n"
        "The best is chosen on these queries: the gaps to it are slightly too large.\n"
        "Chosen: new: C 10.\n"
        "Read from new.txt and old.txt.\n"
    )


def test_seven_systems_and_four_metrics_fit_100_columns(demo):
    for layout in ("wide", "long"):
        text = demo.to_text(layout=layout)
        assert max(map(len, text.splitlines())) <= 100
        assert text.count("\n---") == 1, "one panel"
        for word in (*SYSTEMS, *METRICS):
            assert word in text


@pytest.mark.parametrize("layout", ["wide", "long"])
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_text_keeps_to_the_width(demo, layout, width):
    lines = demo.to_text(layout=layout, width=width).splitlines()
    assert max(map(len, lines)) <= width
    # Whatever the number of panels, nothing is lost.
    assert sum("RankSVM" in line for line in lines) >= sum(line.startswith("---") for line in lines)


def test_long_names_are_wrapped_not_cut():
    system = "runs/2024/some-team.some-system-with-a-long-name.txt"
    metric = "ndcg(gain='identity',discount='letor',ties='trec')@10"
    table = rw.compare({metric: {system: [0.1, 0.2], "b": [0.2, 0.4]}}, test="t", interval="t")
    for layout in ("wide", "long"):
        text = table.to_text(layout=layout)
        assert max(map(len, text.splitlines())) <= 100
        squeezed = re.sub(r"\s", "", "".join(line[:26] for line in text.splitlines()))
        assert "some-system-with-a-long-name.txt" in squeezed.replace("b", "b")
    assert metric in table.to_text(layout="long")
    assert metric in table.to_csv().replace('"', "")


def test_the_best_is_strong_and_stars_mark_small_p(demo):
    markdown = demo.to_markdown()
    row = next(line for line in markdown.splitlines() if line.startswith("| LambdaMART"))
    assert row.count("**") == 2 * len(METRICS)
    assert row.count(" best<br>") == len(METRICS)
    random = next(line for line in markdown.splitlines() if line.startswith("| random"))
    assert random.count("\\*<br>") == len(METRICS)
    # 2,000 random patterns and 24 tests leave no p below 24 / 2,001.
    assert random.count(" p=.012") == len(METRICS)


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_markdown_is_a_table(demo, layout):
    lines = [x for x in demo.to_markdown(layout=layout).splitlines() if x.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert set(lines[1]) <= set("|-: ")
    n_rows = len(SYSTEMS) * (1 if layout == "wide" else len(METRICS))
    assert len(lines) == 2 + n_rows


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_latex_rows_fill_the_columns(demo, layout):
    text = demo.to_latex(layout=layout)
    n_columns = len(re.search(r"\\begin\{tabular\}\{(\w+)\}", text)[1])
    rows = [line for line in text.split(r"\end{tabular}")[0].splitlines() if "&" in line]
    assert len(rows) >= len(SYSTEMS)
    for row in rows:
        # A \multicolumn{2} takes the place of two cells.
        assert row.count("&") + row.count("multicolumn") == n_columns - 1
        assert row.rstrip().endswith((r"\\", r"\\[2pt]"))
    assert text.count("{") == text.count("}")
    for command in (r"\toprule", r"\bottomrule", r"\textbf{"):
        assert command in text


def test_latex_and_markdown_escape_names():
    table = rw.compare({"ndcg(gain={0: 1})@5": {"a_b|c&50%": [0.1, 0.2], "#2^~\\": [0.1, 0.4]}})
    latex = table.to_latex()
    assert r"a\_b|c\&50\%" in latex
    assert r"\#2\textasciicircum{}\textasciitilde{}\textbackslash{}" in latex
    assert r"ndcg(gain=\{0: 1\})@5" in latex
    assert r"a\_b\|c&50%" in table.to_markdown()


def test_csv_holds_all_numbers_unrounded(demo):
    rows = list(csv.DictReader(io.StringIO(demo.to_csv())))
    assert len(rows) == len(METRICS) * len(SYSTEMS)
    for row in rows:
        result = demo.results[row["metric"]][row["system"]]
        assert float(row["mean"]) == result.mean
        assert float(row["high"]) == result.interval.high
        assert int(row["n_queries"]) == result.n_queries
        if result.gap is None:
            assert row["p_value"] == row["gap"] == row["baseline"] == ""
        else:
            assert float(row["p_value"]) == result.gap.p_value
            assert float(row["p_corrected"]) == result.gap.p_corrected
            assert float(row["gap_low"]) == result.gap.interval.low
            assert int(row["losses"]) == result.gap.losses
    assert rows[-1]["chosen"] == "8 leaves"
    assert rows[0]["score [s]"] == ""


def test_json_holds_everything(demo, values):
    whole = json.loads(demo.to_json(per_query=True))
    assert whole["systems"] == list(SYSTEMS)
    assert whole["metrics"] == list(METRICS)
    assert (whole["test"], whole["correction"], whole["n_tests"]) == ("randomization", "holm", 24)
    assert (whole["confidence"], whole["n_resamples"], whole["seed"]) == (0.95, 2_000, 0)
    assert whole["notes"] == ["Tied scores are averaged."]
    assert whole["columns"]["chosen"] == {"LambdaMART": "8 leaves", "RankSVM": "C 1"}
    assert whole["ids"] == list(range(200))
    for r in whole["results"]:
        assert r["mean"] == demo.results[r["metric"]][r["system"]].mean
        kept = whole["per_query"][r["metric"]][r["system"]]
        assert kept[:13] == [None] * 13
        np.testing.assert_array_equal(kept[13:], values[r["metric"]][r["system"]][13:])
    assert "per_query" not in json.loads(demo.to_json())


def test_json_and_csv_without_values():
    table = rw.compare(
        {"ap": {"a": [np.nan, 0.1], "b": [np.nan, 0.3]}, "rr": {"a": [1, 0.5], "b": [0, -0.5]}}
    )
    rows = json.loads(table.to_json())["results"]
    assert rows[0]["p_value"] is None
    # A difference that is the same on every query has an infinite effect size.
    assert rows[3]["effect_size"] == "-inf"
    assert next(csv.DictReader(io.StringIO(table.to_csv())))["p_value"] == ""


def test_every_format_gives_the_same_rounded_mean(demo):
    mean = f"{demo.results['ap']['RankSVM'].mean:.3f}"[1:]
    for text in (demo.to_text(), demo.to_markdown(), demo.to_latex(), demo.to_text(layout="long")):
        assert mean in text


def test_rich_shows_what_the_plain_text_says(demo):
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=100, force_terminal=True).print(demo)
    assert "\x1b[" in out.getvalue()
    shown = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    words = demo.to_text().replace("-" * 99, "").split()
    assert sorted(shown.replace("─", "").split()) == sorted(words)
    assert max(map(len, shown.splitlines())) <= 100


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_show_colours_a_terminal_and_nothing_else(demo, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    plain, terminal = io.StringIO(), Terminal()
    demo.show(file=plain)
    demo.show(file=terminal, layout="long")
    assert plain.getvalue() == demo.to_text()
    assert "\x1b[" in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    again = Terminal()
    demo.show(file=again)
    assert again.getvalue() == demo.to_text()


def test_show_survives_an_encoding_without_dashes(demo):
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    demo.show(file=out)
    out.flush()
    assert raw.getvalue().decode("ascii") == demo.to_text().replace("–", "-")


def test_print_goes_to_standard_output(demo, capsys):
    demo.show()
    assert capsys.readouterr().out == demo.to_text()


@pytest.mark.parametrize("render", ["to_text", "to_markdown", "to_latex", "show"])
def test_unknown_layout(demo, render):
    with pytest.raises(ValueError, match=f"{render}: layout must be one of 'wide', 'long', got"):
        getattr(demo, render)(layout="tall")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, ".500"),
        (-0.5, "-.500"),
        (-0.0001, ".000"),
        (0.0, ".000"),
        (1.0, "1.000"),
        (12.3456, "12.346"),
        (float("nan"), "-"),
        (float("-inf"), "-inf"),
    ],
)
def test_numbers_read(value, text):
    assert _render.TEXT.number(value) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [(0, "<.001"), (0.00099, "<.001"), (0.001, ".001"), (0.0496, ".050"), (0.9996, "1"), (1, "1")],
)
def test_probabilities_read(p, text):
    assert _render.TEXT.probability(p) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (31, "31"),
        (1234567, "1.2e+06"),
        (12345, "12,345"),
        (129.4, "129"),
        (12.34, "12.3"),
        (1.234, "1.23"),
        (0.5, "0.5"),
        (0.01234, "0.012"),
        (0.00008123, "8.1e-05"),
        (-2.5, "-2.50"),
        ("C 1", "C 1"),
        (None, ""),
    ],
)
def test_facts_read(value, text):
    assert _render._fact(value) == text


def test_starts_with_numpy_alone():
    """Comparing runs from the shell must not wait for SciPy, matplotlib or Rich."""
    code = """
import sys, numpy as np, rankwise as rw
x = np.random.default_rng(0).random((2, 50))
table = rw.compare({"ap": {"a": x[0], "b": x[1]}})
table.show(); table.to_json(); table.to_latex(); table.to_markdown(); table.to_csv()
heavy = {"scipy", "sklearn", "lightgbm", "matplotlib", "rich", "narwhals"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
