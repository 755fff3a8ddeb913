"""The command line as a user meets it: results, files, exit codes, sentences."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rankwise as rw
from rankwise.cli import build_parser, main


def letor(queries: rw.Queries) -> str:
    lines = []
    for i, (label, qid) in enumerate(zip(queries.y, queries.qid, strict=True)):
        features = " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(queries.X[i].tolist()))
        lines.append(f"{label:g} qid:{qid} {features} # doc{i}\n")
    return "".join(lines)


@pytest.fixture(scope="module")
def course():
    return rw.make_queries(n_queries=90, n_docs=8)


@pytest.fixture
def files(tmp_path, monkeypatch, course):
    """A folder with train.txt, vali.txt and test.txt, which is also the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, part in zip(("train", "vali", "test"), course.split(), strict=True):
        Path(f"{name}.txt").write_text(letor(part))
    Path("all.txt").write_text(letor(course))
    return tmp_path


def run(capsys, *words):
    """Exit code, standard output, standard error."""
    code = main([str(w) for w in words])
    out = capsys.readouterr()
    return code, out.out, out.err


def run_json(capsys, *words):
    code, out, err = run(capsys, *words, "--json")
    assert code == 0, err
    return json.loads(out)


def test_compare_three_files(capsys, files):
    code, out, err = run(
        capsys, "compare", "train.txt", "--valid", "vali.txt", "--test", "test.txt",
        "--rankers", "random,ranksvm,mart(n_estimators=20)", "--metrics", "ndcg@10,ap",
        "--picture", "means.png",
    )  # fmt: skip
    assert code == 0, err
    assert "random" in out and "ranksvm" in out and "ndcg@10" in out
    assert "chosen by ndcg@10 on the validation queries" in out
    assert Path("means.png").read_bytes().startswith(b"\x89PNG")


def test_compare_measures_what_the_library_measures(capsys, files):
    result = run_json(
        capsys, "compare", "train.txt", "--test", "test.txt",
        "--rankers", "ranksvm(C=0.1)", "--metrics", "ndcg@5",
    )  # fmt: skip
    train, test = rw.read("train.txt"), rw.read("test.txt")
    expected = rw.RankSVM(C=0.1).fit(train)
    value = rw.parse_metric("ndcg@5").mean(test.y, expected.predict(test), qid=test.groups)
    shown = result["rankers"]["ranksvm(C=0.1)"]["fold_means"]["ndcg@5"][0]
    assert shown == pytest.approx(value, abs=1e-12)


def test_hyperparameters_never_see_the_test_queries(capsys, files):
    """Labels of the test queries change; what is chosen does not."""
    words = (
        "compare", "train.txt", "--valid", "vali.txt", "--test", "test.txt",
        "--rankers", "ranksvm", "--metrics", "ndcg@5",
    )  # fmt: skip
    before = run_json(capsys, *words)["rankers"]["ranksvm"]
    rows = Path("test.txt").read_text().splitlines()
    Path("test.txt").write_text("".join(f"{i % 3}{r[1:]}\n" for i, r in enumerate(rows)))
    after = run_json(capsys, *words)["rankers"]["ranksvm"]
    assert before["chosen"] == after["chosen"]
    assert before["combinations"][0] > 1
    assert before["fold_means"] != after["fold_means"]


def test_compare_folds_of_one_file(capsys, files):
    result = run_json(
        capsys, "compare", "all.txt", "--folds", "3", "--rankers", "random,linear(alpha=1)",
        "--metrics", "rr",
    )  # fmt: skip
    assert [f["test"] for f in result["folds"]] == [30, 30, 30]
    assert len(result["rankers"]["random"]["fold_means"]["rr"]) == 3


def test_compare_explicit_folds_and_letor_folder(capsys, files):
    words = ("--rankers", "linear(alpha=1)", "--metrics", "ndcg@10")
    explicit = run_json(
        capsys, "compare", "--fold", "train.txt,vali.txt,test.txt",
        "--fold", "test.txt,train.txt,vali.txt", *words,
    )  # fmt: skip
    for fold, names in (("Fold1", "train vali test"), ("Fold2", "test train vali")):
        Path("letor", fold).mkdir(parents=True)
        for role, name in zip(("train", "vali", "test"), names.split(), strict=True):
            Path("letor", fold, f"{role}.txt").write_text(Path(f"{name}.txt").read_text())
    folder = run_json(capsys, "compare", "letor", *words)
    means = [r["rankers"]["linear(alpha=1)"]["fold_means"] for r in (explicit, folder)]
    assert means[0] == means[1]


@pytest.mark.parametrize("form", ["markdown", "latex", "csv"])
def test_compare_formats(capsys, files, form):
    code, out, _ = run(
        capsys, "compare", "train.txt", "--test", "test.txt", "--rankers", "random,linear",
        "--output-format", form, "--no-tune",
    )  # fmt: skip
    assert code == 0
    assert {"markdown": "| --- |", "latex": r"\toprule", "csv": "metric,"}[form] in out


def test_train_then_predict_then_eval(capsys, files):
    code, out, err = run(
        capsys, "train", "train.txt", "--valid", "vali.txt", "--ranker", "ranksvm", "-o", "m.rw"
    )
    assert code == 0, err
    assert "chosen from" in out and "m.rw" in out
    assert run(capsys, "predict", "m.rw", "test.txt", "-o", "scores.txt")[0] == 0
    test = rw.read("test.txt")
    scores = np.array([float(x) for x in Path("scores.txt").read_text().split()])
    np.testing.assert_array_equal(scores, rw.load("m.rw").predict(test))
    result = run_json(capsys, "eval", "test.txt", "scores.txt", "--metrics", "ndcg@10")
    shown = result["metrics"]["ndcg@10"]["scores"]
    values = rw.metrics.ndcg(test.y, scores, qid=test.groups, k=10)
    assert shown["mean"] == pytest.approx(np.nanmean(values), abs=1e-12)
    assert shown["queries"] == (~np.isnan(values)).sum()


def test_scores_follow_the_lines_of_a_file_with_interleaved_queries(capsys, files):
    rows = Path("test.txt").read_text().splitlines(keepends=True)
    order = np.random.default_rng(0).permutation(len(rows))
    Path("mixed.txt").write_text("".join(rows[i] for i in order))
    run(capsys, "train", "train.txt", "--ranker", "linear", "-o", "m.rw")
    run(capsys, "predict", "m.rw", "test.txt", "-o", "a.txt")
    run(capsys, "predict", "m.rw", "mixed.txt", "-o", "b.txt")
    a, b = (Path(n).read_text().split() for n in ("a.txt", "b.txt"))
    assert [a[i] for i in order] == b
    first = run_json(capsys, "eval", "test.txt", "a.txt")["metrics"]
    second = run_json(capsys, "eval", "mixed.txt", "b.txt")["metrics"]
    for metric in first:
        assert first[metric]["a"]["mean"] == pytest.approx(second[metric]["b"]["mean"], abs=1e-12)


def test_predict_writes_a_run_that_eval_reads(capsys, files):
    run(capsys, "train", "train.txt", "--ranker", "linear", "-o", "m.rw")
    assert (
        run(capsys, "predict", "m.rw", "test.txt", "--run", "--tag", "mine", "-o", "t.run")[0] == 0
    )
    test = rw.read("test.txt")
    lines = [f"{q} 0 {d} {y:g}" for q, d, y in zip(test.qid, test.docs, test.y, strict=True)]
    Path("qrels.txt").write_text("\n".join(lines) + "\n")
    by_run = run_json(capsys, "eval", "qrels.txt", "t.run")["metrics"]
    run(capsys, "predict", "m.rw", "test.txt", "-o", "scores.txt")
    by_scores = run_json(capsys, "eval", "test.txt", "scores.txt")["metrics"]
    for metric in by_run:
        assert by_run[metric]["mine"] == pytest.approx(by_scores[metric]["scores"])


QRELS = "1 0 a 2\n1 0 b 0\n2 0 a 1\n2 0 c 0\n3 0 d 0\n"
RUN = "1 Q0 b 1 3.0 {0}\n1 Q0 a 2 2.0 {0}\n2 Q0 a 1 1.0 {0}\n9 Q0 z 1 1.0 {0}\n"


def test_eval_one_run(capsys, tmp_path):
    (tmp_path / "q").write_text(QRELS)
    (tmp_path / "r").write_text(RUN.format("mine"))
    code, out, err = run(capsys, "eval", tmp_path / "q", tmp_path / "r", "--metrics", "rr,P@1")
    assert code == 0
    assert out.splitlines()[0].split("\t") == ["rr", "all", "0.7500", "(2 queries, 1 skipped)"]
    assert "1 topics without judgements are left out" in err
    _, out, _ = run(capsys, "eval", tmp_path / "q", tmp_path / "r", "--metrics", "rr", "-q")
    assert out.splitlines()[:3] == ["rr\t1\t0.5000", "rr\t2\t1.0000", "rr\t3\tskipped"]


def test_eval_several_runs_with_significance(capsys, tmp_path):
    (tmp_path / "q").write_text(QRELS)
    (tmp_path / "r1").write_text(RUN.format("one"))
    (tmp_path / "r2").write_text(RUN.format("two").replace("b 1 3.0", "b 1 1.5"))
    words = ("eval", tmp_path / "q", tmp_path / "r1", tmp_path / "r2", "--metrics", "rr")
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "one" in out and "two" in out and "randomization" in out
    assert run_json(capsys, *words)["correction"] == "holm"


def test_convert_round_trip_and_describe(capsys, files):
    assert run(capsys, "convert", "test.txt", "test.parquet")[0] == 0
    assert run(capsys, "convert", "test.parquet", "again.txt.gz")[0] == 0
    before, after = rw.read("test.txt"), rw.read("again.txt.gz")
    np.testing.assert_array_equal(before.X, after.X)
    np.testing.assert_array_equal(before.qid, after.qid)
    assert before.docs.tolist() == after.docs.tolist()
    code, out, _ = run(capsys, "describe", "test.txt")
    assert code == 0
    assert str(before.n_queries) in out
    assert run_json(capsys, "describe", "test.txt")["n_queries"] == before.n_queries


def test_lists(capsys):
    names = run_json(capsys, "rankers")
    assert set(names) == set(rw.RECIPES)
    assert all(v["summary"] and v["reference"] for v in names.values())
    assert "lambdamart" in run(capsys, "rankers")[1]
    known = run_json(capsys, "metrics")
    assert {"ndcg", "ap", "rr", "err"} <= set(known)
    assert "ndcg" in run(capsys, "metrics")[1]


def test_demo(capsys, tmp_path, monkeypatch):
    """The course note's numbers come out of the command a newcomer runs first."""
    monkeypatch.chdir(tmp_path)
    start = time.perf_counter()
    result = run_json(capsys, "demo")
    assert time.perf_counter() - start < 120  # promised below 60 s on an idle machine
    rows = [r for r in result["results"] if r["metric"] == "ndcg@5"]
    mean = {r["system"]: r["mean"] for r in rows}
    assert mean["random"] == pytest.approx(0.19, abs=0.01)
    assert mean["linear"] == pytest.approx(0.647, abs=0.0006)
    assert mean["ranknet"] == pytest.approx(0.646, abs=0.0006)
    assert 0.76 <= mean["mart"] <= 0.79
    assert 0.78 <= mean["lambdamart"] <= 0.84
    assert mean["lambdamart"] > mean["mart"]
    assert result["split_gain"]["mart"][5] == pytest.approx(0.5, abs=0.06)
    assert result["split_gain"]["lambdamart"][5] < 0.03
    assert (result["train_queries"], result["test_queries"]) == (300, 1000)
    assert all(r["n_queries"] == 932 for r in rows)
    assert Path("rankwise-demo.png").stat().st_size > 10_000


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["compare", "train.txt"], "test queries must be given"),
        (["compare"], "name a training file"),
        (["compare", "nowhere.txt", "--test", "test.txt"], "nowhere.txt: No such file"),
        (["compare", "train.txt", "--test", "train.txt"], "train and test must hold different queries"),
        (["compare", "train.txt", "--test", "test.txt", "--rankers", "lambdamrt"], "did you mean 'lambdamart'?"),
        (["compare", "train.txt", "--test", "test.txt", "--rankers", "ranksvm(c=1)"],
         "unknown parameter of ranksvm 'c'"),
        (["compare", "train.txt", "--test", "test.txt", "--rankers", "ranksvm(1)"], "name(option=value, ...)"),
        (["compare", "train.txt", "--test", "test.txt", "--metrics", "ndgc@10"], "did you mean 'ndcg'?"),
        (["compare", "train.txt", "--test", "test.txt", "--metrics", "ndcg@0"], "positive integer"),
        (["compare", "train.txt", "--test", "test.txt", "--folds", "3"], "must not be given together"),
        (["compare", "--fold", "train.txt,test.txt"], "TRAIN,VALID,TEST"),
        (["compare", "all.txt", "--folds", "1"], "n_folds must be at least 3"),
        (["compare", "missing.txt", "--test", "test.txt", "--rankers", "mart,ranksvm"], "missing (NaN) for ranksvm"),
        (["compare", "train.txt", "--test", "test.txt", "--rankers", "ranksvm(C=-1)"], "C must be"),
        (["train", "train.txt", "-o", "no/such/folder/m.rw", "--ranker", "linear"], "no/such/folder"),
        (["predict", "train.txt", "test.txt"], "train.txt"),
        (["predict", "nowhere.rw", "test.txt"], "nowhere.rw"),
        (["eval", "nowhere", "alsonowhere"], "nowhere"),
        (["convert", "train.txt", "train.xyz"], "xyz"),
        (["describe", "empty.txt"], "empty.txt"),
        (["describe", "noqid.txt"], "noqid.txt:1"),
        (["describe", "cut.txt.gz"], "cut.txt.gz"),
        (["train", "train.txt", "--ranker", "linear", "-o", "m.rw", "--features", "3"], "train.txt:1"),
    ],
    ids=lambda v: " ".join(v)[:60] if isinstance(v, list) else None,
)  # fmt: skip
def test_bad_input_gets_a_sentence(capsys, files, words, sentence):
    Path("empty.txt").write_text("")
    Path("noqid.txt").write_text("1 1:0.5\n")
    Path("missing.txt").write_text("1 qid:m 1:0.5\n0 qid:m 1:NULL\n")
    import gzip

    Path("cut.txt.gz").write_bytes(gzip.compress(Path("train.txt").read_bytes())[:-50])
    code, out, err = run(capsys, *words)
    assert code == 2
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err
    assert out == ""


def test_unknown_command_and_no_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["frobnicate"])
    assert stop.value.code == 2
    assert run(capsys)[0] == 0
    assert run(capsys, "--version")[1].split()[1] == rw.__version__


def test_predict_on_another_number_of_features(capsys, files):
    run(capsys, "train", "train.txt", "--ranker", "linear", "-o", "m.rw")
    Path("wide.txt").write_text("1 qid:1 9:1.0\n")
    code, _, err = run(capsys, "predict", "m.rw", "wide.txt")
    assert code == 2
    assert "wide.txt:1" in err


def test_old_file_is_kept_when_a_run_fails(capsys, files):
    Path("m.rw").write_text("precious")
    code, _, _ = run(capsys, "train", "noqid.txt", "--ranker", "linear", "-o", "m.rw")
    assert code == 2
    assert Path("m.rw").read_text() == "precious"
    names = sorted(p.name for p in files.iterdir())
    assert names == ["all.txt", "m.rw", "test.txt", "train.txt", "vali.txt"]


def test_interrupt_leaves_the_old_file(files):
    Path("m.rw").write_text("precious")
    process = subprocess.Popen(
        [sys.executable, "-m", "rankwise", "train", "train.txt", "-o", "m.rw",
         "--ranker", "lambdamart(n_estimators=1000000)"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted" in err
    assert Path("m.rw").read_text() == "precious"


def test_broken_pipe_is_quiet(files):
    script = f"{sys.executable} -m rankwise predict m.rw all.txt | head -1"
    subprocess.run(
        [sys.executable, "-m", "rankwise", "train", "train.txt", "--ranker", "linear", "-o", "m.rw"],
        check=True, capture_output=True,
    )  # fmt: skip
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert len(result.stdout.splitlines()) == 1
    assert "Traceback" not in result.stderr and "Broken" not in result.stderr


def test_help_of_every_command_has_examples(capsys):
    for name in (
        "demo",
        "compare",
        "train",
        "predict",
        "eval",
        "convert",
        "describe",
        "fuse",
        "aggregate",
        "rankers",
        "metrics",
        "aggregators",
    ):
        with pytest.raises(SystemExit) as stop:
            main([name, "--help"])
        assert stop.value.code == 0
        text = capsys.readouterr().out
        assert "examples:" in text
        for line in text.split("examples:")[1].splitlines():
            if line.strip().startswith("rankwise"):
                command = line.split("(a ")[0].split(" > ")[0].strip()
                import shlex

                build_parser().parse_args(shlex.split(command)[1:])


def test_progress_goes_to_standard_error(files):
    result = subprocess.run(
        [sys.executable, "-m", "rankwise", "compare", "train.txt", "--test", "test.txt",
         "--rankers", "random,linear", "--no-tune", "--output-format", "csv"],
        capture_output=True, text=True, env={**os.environ}, check=True,
    )  # fmt: skip
    assert result.stdout.startswith("metric,")


# --- explain -------------------------------------------------------------------------------------


@pytest.fixture
def model(capsys, files):
    run(capsys, "train", "train.txt", "--ranker", "ranknet(alpha=1.0)", "-o", "model.rw", "--quiet")
    return rw.load("model.rw")


def test_explain_lists_the_worst_queries(capsys, model):
    code, out, err = run(capsys, "explain", "model.rw", "test.txt", "--worst", "3")
    assert code == 0, err
    test = rw.read("test.txt")
    assert out.rstrip("\n") == str(rw.worst_queries(model, test, n=3))
    assert out.startswith("ndcg@10 is ")
    found = run_json(capsys, "explain", "model.rw", "test.txt", "--metric", "ap")
    assert found["metric"] == "ap"
    assert found["mean"] == rw.parse_metric("ap").mean(test.y, model.predict(test), qid=test.groups)


def test_explain_one_query(capsys, model):
    worst = run_json(capsys, "explain", "model.rw", "test.txt")["worst"][0]
    found = run_json(
        capsys, "explain", "model.rw", "test.txt", "--query", worst["query"],
        "--pairs", "2", "--top", "3",
    )  # fmt: skip
    assert found["value"] == pytest.approx(worst["value"])
    assert found["wrong_pairs"] == worst["wrong_pairs"]
    assert len(found["mistakes"]) == min(2, found["wrong_pairs"])
    mistake = found["mistakes"][0]
    assert len(mistake["pushes"]) == 3
    total = sum(f["amount"] for f in mistake["pushes"]) + mistake["rest"]
    assert total == pytest.approx(mistake["gap"])
    assert mistake["better_doc"].startswith("doc")
    code, out, err = run(
        capsys, "explain", "model.rw", "test.txt", "--query", worst["query"], "-o", "query.png"
    )
    assert code == 0, err
    assert "largest mistakes" in out
    assert err == "picture: query.png\n"
    assert Path("query.png").read_bytes().startswith(b"\x89PNG")


def test_explain_importance_and_dependence(capsys, model):
    found = run_json(
        capsys, "explain", "model.rw", "test.txt", "--importance", "--repeats", "2", "--seed", "4",
        "-o", "importance.svg",
    )  # fmt: skip
    test = rw.read("test.txt")
    expected = rw.permutation_importance(model, test, n_repeats=2, rng=4)
    assert found == json.loads(json.dumps(expected.as_dict()))
    assert Path("importance.svg").exists()
    found = run_json(capsys, "explain", "model.rw", "test.txt", "--dependence", "1")
    assert found["column"] == 0
    assert found["feature"] == "feature 1"
    slope = (found["points"][-1]["score"] - found["points"][0]["score"]) / (
        found["points"][-1]["value"] - found["points"][0]["value"]
    )
    assert slope == pytest.approx(model.coef_[0])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--query", "zzz"], "query must be one of the 18 in the data, got 'zzz'"),
        (["--dependence", "0"], "must be a number from 1 to 6, got 0"),
        (["--dependence", "x"], "must be a column of the data, got 'x'"),
        (["--importance", "-o", "x.doc"], "must end in .png, .svg or .pdf"),
        (["-o", "x.png"], "the list of worst queries has none"),
        (["--metric", "nope"], "unknown metric 'nope'"),
        (["--importance", "--repeats", "0"], "n_repeats must be an integer of at least 1"),
    ],
)
def test_explain_refuses(capsys, model, words, sentence):
    code, out, err = run(capsys, "explain", "model.rw", "test.txt", *words)
    assert (code, out) == (2, "")
    assert err.startswith("rankwise explain: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_explain_answers_one_thing_at_a_time(capsys, model):
    with pytest.raises(SystemExit) as exit:
        main(["explain", "model.rw", "test.txt", "--importance", "--query", "1"])
    assert exit.value.code == 2
    assert "not allowed with" in capsys.readouterr().err
