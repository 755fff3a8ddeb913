"""Fusion of runs, weights, rank files and their commands."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rankwise as rw
from rankwise.cli import main

R1 = {"q": {"A": 0.9, "B": 0.5, "C": 0.1}}
R2 = {"q": {"B": 0.8, "C": 0.7, "D": 0.2}}
R3 = {"q": {"A": 0.4, "B": 0.3}}
DICTS = [R1, R2, R3]
RRF = {"B": 1 / 62 + 1 / 61 + 1 / 62, "A": 2 / 61, "C": 1 / 63 + 1 / 62, "D": 1 / 63}


def random_runs(seed=0, n_runs=3, n_topics=12, n_docs=300, pool=700):
    """Runs {topic: {doc: score}} with ties, docs in no order, some topics unanswered."""
    rng = np.random.default_rng(seed)
    runs = []
    for _ in range(n_runs):
        run = {}
        for t in range(n_topics):
            if rng.random() < 0.2:
                continue
            docs = rng.choice(pool, size=rng.integers(1, n_docs), replace=False)
            scores = rng.normal(size=len(docs)).round(2)
            run[str(t)] = {str(d): float(s) for d, s in zip(docs, scores, strict=True)}
        runs.append(run)
    return runs


def columns(run):
    rows = [(int(q), int(d), s) for q, docs in run.items() for d, s in docs.items()]
    qid, doc, score = zip(*rows, strict=True)
    return np.array(qid), np.array(doc), np.array(score)


def test_golden_rrf():
    fused = rw.fuse(DICTS, "rrf")
    assert list(fused["q"]) == ["B", "A", "C", "D"]
    assert fused["q"] == pytest.approx(RRF)


@pytest.mark.parametrize("method", ["rrf", "borda", "comb_mnz", "comb_med", "condorcet", "mc3"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_runs_dictionaries_columns_and_a_matrix_agree(method, n_threads):
    dicts = random_runs()
    fused = rw.fuse(dicts, method, n_threads=n_threads)
    again = rw.fuse([rw.Run.from_dict(d) for d in dicts], method, n_threads=n_threads)
    assert again.to_dict() == fused
    assert [list(docs) for docs in again.to_dict().values()] == [list(d) for d in fused.values()]
    qid, doc, score = rw.fuse([columns(d) for d in dicts], method, n_threads=n_threads)
    rows = [(str(q), str(d), s) for q, docs in fused.items() for d, s in docs.items()]
    assert list(zip(map(str, qid), map(str, doc), score, strict=True)) == [
        (str(q), str(d), s) for q, d, s in rows
    ]
    for topic, docs in fused.items():
        union = sorted({d for run in dicts for d in run.get(topic, {})})
        R = np.array([[run.get(topic, {}).get(d, np.nan) for run in dicts] for d in union])
        expected = rw.AGGREGATORS[method](R)
        np.testing.assert_allclose([docs[d] for d in union], expected, rtol=1e-9)
        assert (np.diff(list(docs.values())) <= 0).all()


def test_order_of_rows_and_of_topics_does_not_matter():
    dicts = random_runs(1)
    rng = np.random.default_rng(0)
    mixed = []
    for run in dicts:
        topics = list(run)
        rng.shuffle(topics)
        mixed.append({t: dict(rng.permutation(list(run[t].items())).tolist()) for t in topics})
    mixed = [{t: {d: float(s) for d, s in docs.items()} for t, docs in r.items()} for r in mixed]
    for method in ("rrf", "borda", "condorcet", "comb_sum"):
        assert rw.fuse(dicts, method) == rw.fuse(mixed, method)


def test_depth_norm_weights_and_options():
    fused = rw.fuse(DICTS, "comb_sum", norm="minmax", weights=[2, 1, 0], k=2)
    assert fused == {"q": {"A": 2.0, "B": 2.0}}
    named = {"x": rw.Run.from_dict(R1), "y": rw.Run.from_dict(R2)}
    run = rw.fuse(named, "rrf(rank_constant=0)", weights={"y": 1, "x": 3}, tag="mine")
    assert run.tag == "mine"
    assert run.to_dict()["q"] == pytest.approx({"A": 3, "B": 2.5, "C": 1.5, "D": 1 / 3})
    last = rw.fuse(DICTS, "rrf", missing="last")["q"]
    assert last["D"] == pytest.approx(1 / 64 + 1 / 63 + (1 / 63 + 1 / 64) / 2)
    own = rw.fuse(DICTS, lambda lists: np.nan_to_num(lists.matrix()[:, 0]))
    assert own["q"]["A"] == 0.9


def test_an_absent_document_never_beats_a_retrieved_one_with_missing_min():
    """The trap of a z-score: an absent document adds 0, which is more than a low score."""
    runs = [{"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"q": {"d": 0.0}}]
    plain = rw.fuse(runs, "comb_sum", norm="zscore")["q"]
    assert plain["d"] > plain["c"]
    safe = rw.fuse(runs, "comb_sum", norm="zscore", missing="min")["q"]
    assert safe["d"] == safe["c"]


def test_a_single_run_and_a_topic_of_one_run():
    assert list(rw.fuse([R1], "borda")["q"]) == ["A", "B", "C"]
    fused = rw.fuse([R1, {"p": {"Z": 1.0}}], "rrf")
    assert fused["p"] == {"Z": pytest.approx(1 / 61)}
    assert list(fused["q"]) == ["A", "B", "C"]


def test_align_runs_gives_what_aggregators_take():
    lists = rw.align_runs([rw.Run.from_dict(d) for d in random_runs(2)])
    scores = rw.borda(lists)
    fused = rw.fuse(random_runs(2), "borda")
    topic = np.repeat(lists.groups.ids, lists.groups.sizes)
    got = {}
    for t, d, s in zip(topic, lists.items, scores, strict=True):
        got.setdefault(str(t), {})[str(d)] = s
    assert got == fused
    by_column = rw.align_runs([columns(d) for d in random_runs(2)])
    np.testing.assert_array_equal(by_column.items, lists.items.astype(int))


@pytest.mark.parametrize(
    ("runs", "kind", "sentence"),
    [
        ([], ValueError, "at least one run is needed, got none"),
        (R1, TypeError, "put a single run into a list"),
        (rw.Run.from_dict(R1), TypeError, "must be a sequence or a mapping of runs, got one Run"),
        ([R1, rw.Run.from_dict(R1)], TypeError, "all .*, got dict, Run"),
        ([{"q": {"a": np.nan}}], ValueError, "scores must be finite, got nan"),
        ([{"q": {"a": np.inf}}], ValueError, "scores must be finite, got inf"),
        ([{"q": {1.5: 1.0}}], TypeError, "a document must be a string or an integer"),
        ([{"q": [1, 2]}], TypeError, "a run must map topics to dictionaries of documents"),
        (
            [([1, 1], [5, 5], [1.0, 2.0])],
            ValueError,
            "must appear once in a topic, got 5 at rows 0 and 1 of run 0",
        ),
        ([([1], [5.5], [1.0])], TypeError, "documents of columns must be integers"),
        ([([1], [5, 6], [1.0])], ValueError, "must have the same length"),
        ([([1], [5], [np.nan])], ValueError, "scores must be finite"),
    ],
)
def test_bad_runs_are_one_sentence(runs, kind, sentence):
    with pytest.raises(kind, match=sentence):
        rw.fuse(runs, "rrf")


def test_bad_methods_are_one_sentence():
    with pytest.raises(
        ValueError, match=r"unknown aggregator 'rff'; known: .* .did you mean 'rrf'"
    ):
        rw.fuse(DICTS, "rff")
    with pytest.raises(
        ValueError, match="unknown option of rrf 'eps'; known: missing, rank_constant"
    ):
        rw.fuse(DICTS, "rrf", eps=0.1)
    with pytest.raises(ValueError, match="takes no weights; leave them out"):
        rw.fuse(DICTS, "rra", weights=[1, 2, 3])
    with pytest.raises(ValueError, match=r"must name every run once, got none for .'y'. and .'z'."):
        rw.fuse({"x": R1, "y": R2}, weights={"x": 1, "z": 2})
    with pytest.raises(ValueError, match="weights must hold one number per list, got 2 for 3"):
        rw.fuse(DICTS, "rrf", weights=[1, 2])
    with pytest.raises(ValueError, match="k must be a positive integer"):
        rw.fuse(DICTS, "rrf", k=0)
    with pytest.raises(ValueError, match=r"one number per item, 4, got 4 .1 of them NaN"):
        rw.fuse(DICTS, lambda lists: lists.matrix()[:, 0])


# --- the same as ranx -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ranx_agrees():
    """Full lists of distinct scores: where both define a method, scores are equal."""
    ranx = pytest.importorskip("ranx")
    rng = np.random.default_rng(5)
    dicts = []
    for _ in range(3):
        run = {}
        for t in range(4):
            docs = rng.choice(30, size=12, replace=False)
            run[f"q{t}"] = dict(zip([f"d{d}" for d in docs], rng.random(12) * 9, strict=True))
        dicts.append(run)
    runs = [ranx.Run(d) for d in dicts]
    norms = {
        "minmax": "min-max",
        "max": "max",
        "sum": "sum",
        "zscore": "zmuv",
        "rank": "rank",
        "borda": "borda",
    }
    methods = {
        "comb_sum": "sum", "comb_mnz": "mnz", "comb_min": "min", "comb_max": "max",
        "comb_med": "med", "comb_anz": "anz",
    }  # fmt: skip
    for ours, theirs in methods.items():
        for norm, their_norm in {None: None, **norms}.items():
            expected = ranx.fuse(runs, norm=their_norm, method=theirs).to_dict()
            same(rw.fuse(dicts, ours, norm=norm), expected)
    for ours, theirs in {"rrf": "rrf", "isr": "isr", "log_isr": "log_isr"}.items():
        same(rw.fuse(dicts, ours), ranx.fuse(runs, norm=None, method=theirs).to_dict())
    same(
        rw.fuse(dicts, "log_isr", sigma=0.01),
        ranx.fuse(runs, norm=None, method="logn_isr").to_dict(),
    )
    # ranx gives n points to the first place, we n - 1: one less for each run.
    shifted = {
        q: {d: s - 3 for d, s in docs.items()}
        for q, docs in ranx.fuse(runs, norm=None, method="bordafuse").to_dict().items()
    }
    same(rw.fuse(dicts, "borda"), shifted)
    weighted = ranx.fuse(runs, norm=None, method="w_bordafuse", params={"weights": [1, 2, 3]})
    same(
        rw.fuse(dicts, "borda", weights=[1, 2, 3]),
        {q: {d: s - 6 for d, s in docs.items()} for q, docs in weighted.to_dict().items()},
    )
    weighted = ranx.fuse(runs, norm="min-max", method="wsum", params={"weights": [1, 2, 3]})
    same(rw.fuse(dicts, "comb_sum", norm="minmax", weights=[1, 2, 3]), weighted.to_dict())
    # Condorcet: where majorities make one order, it is the same.
    full = [{"q": {d: -i for i, d in enumerate(order)}} for order in ("abcde", "bacde", "abdce")]
    theirs = ranx.fuse(
        [ranx.Run({"q": {d: float(s) for d, s in r["q"].items()}}) for r in full],
        norm=None,
        method="condorcet",
    ).to_dict()
    ours = rw.fuse(full, "condorcet")
    assert sorted(theirs["q"], key=theirs["q"].get) == sorted(ours["q"], key=ours["q"].get)


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for q in ours:
        assert dict(ours[q]) == pytest.approx(dict(theirs[q]), rel=1e-9, abs=1e-12)


# --- weights ----------------------------------------------------------------------------------


def judged():
    """Ten topics of one relevant document, one good run and two of noise."""
    rng = np.random.default_rng(0)
    qrels, runs = {}, {"good": {}, "noise": {}, "more": {}}
    for t in range(10):
        docs = [f"d{i}" for i in range(20)]
        qrels[f"t{t}"] = {"d0": 1}
        for name in runs:
            scores = rng.random(20)
            if name == "good":
                scores[0] += 0.8
            runs[name][f"t{t}"] = dict(zip(docs, scores.tolist(), strict=True))
    return rw.Qrels.from_dict(qrels), {n: rw.Run.from_dict(r) for n, r in runs.items()}


@pytest.mark.parametrize("method", ["comb_sum", "rrf", "borda", "condorcet"])
def test_weights_find_the_good_run_on_training_topics(method):
    qrels, runs = judged()
    train = [f"t{i}" for i in range(5)]
    found = rw.tune_weights(runs, qrels, "rr", method, topics=train)
    assert found.names == ("good", "noise", "more")
    assert found.n_queries == 5
    assert found.value >= found.equal_value
    assert found.weights.argmax() == 0
    assert found.weights.sum() == pytest.approx(1)
    values = rw.evaluate_run(qrels, rw.fuse(runs, method, weights=found), "rr").per_query("rr")[0]
    assert values[:5].mean() == pytest.approx(found.value)
    again = rw.tune_weights(runs, qrels, "rr", method, topics=train)
    np.testing.assert_array_equal(again.weights, found.weights)


def test_weights_refuse():
    qrels, runs = judged()
    with pytest.raises(ValueError, match="training topics must be judged, got 'x'"):
        rw.tune_weights(runs, qrels, "rr", topics=["t1", "x"])
    empty = rw.Qrels.from_dict({"t1": {"d0": 0}})
    with pytest.raises(ValueError, match="must be defined on a training topic, got none"):
        rw.tune_weights(runs, empty, "rr")


# --- files ------------------------------------------------------------------------------------

TOI = """# FILE NAME: x.toi
# NUMBER ALTERNATIVES: 3
# ALTERNATIVE NAME 1: tea
# ALTERNATIVE NAME 2: milk, cold
# ALTERNATIVE NAME 3: rum
5: 1,{2,3}
2: 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toi").write_text(TOI)
    (tmp_path / "x.csv").write_text("tea,rum\nrum,milk,tea\n")
    (tmp_path / "t.csv").write_text("item,list,rank\ntea,a,1\nrum,a,2\nrum,b,1\n")
    (tmp_path / "x.json").write_text('[["tea", ["rum", "milk"]], ["rum"]]')
    for i, d in enumerate(DICTS):
        rw.write_run(rw.Run.from_dict(d), f"r{i}.run")
    (tmp_path / "qrels.txt").write_text("q 0 C 1\nq 0 A 0\n")
    return tmp_path


def test_files_of_rank_lists(folder):
    lists = rw.read_rankings("x.toi")
    assert lists.items.tolist() == ["tea", "milk, cold", "rum"]
    assert lists.count.tolist() == [5, 2]
    np.testing.assert_array_equal(lists.matrix(), [[2, np.nan], [1, np.nan], [1, 1]])
    np.testing.assert_array_equal(rw.borda(lists, missing="skip"), [10, 2.5, 2.5])
    assert rw.read_rankings("x.csv").n_lists == 2
    table = rw.read_rankings("t.csv")
    np.testing.assert_array_equal(table.matrix(), [[-1, np.nan], [-2, -1]])
    assert rw.read_rankings("x.json").items.tolist() == ["tea", "rum", "milk"]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.soc", "3: 1,2\n2 1,2\n", "a.soc:2: expected 'count: item,item"),
        ("a.soc", "x: 1,2\n", "a.soc:1: expected 'count"),
        ("a.soc", "-1: 1,2\n", "a.soc:1: expected 'count"),
        ("a.toc", "1: 1,{2,3\n", "a.toc:1: expected 'count"),
        ("a.soc", "1: 1,2,1\n", "a.soc: an item must appear once in a ranking, got '1' twice"),
        ("a.soc", "# nothing\n", "a.soc: at least one ranking is needed"),
        ("a.csv", "", "a.csv: at least one ranking is needed"),
        ("a.csv", "a,b,a\n", "got 'a' twice in ranking 0"),
        ("a.csv", "list,item\na,b\n", "a.csv:1: a table of lists needs a column 'score' or 'rank'"),
        ("a.csv", "list,item,score\na,b,x\n", "a.csv:2: expected a list, an item and a number"),
        ("a.csv", "list,item,score\na,b,nan\n", "a.csv:2: score must be finite"),
        ("a.csv", "list,item,score\na,b,1\na,b,2\n", "a.csv:3: an item must appear once in a list"),
        ("a.json", "{", "a.json: expected JSON"),
        ("a.json", "3", "a.json: expected a list of rankings, got int"),
        ("a.json", '{"lists": []}', "a.json: an object of rank lists holds 'rankings'"),
        ("a.json", '["ab"]', "a.json: a ranking must be a list of ids"),
        ("a.txt", "a,b", "a.txt: the ending must say the format"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path, name, text, sentence, capsys):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        rw.read_rankings(path)
    assert main(["aggregate", str(path)]) == 2
    err = capsys.readouterr().err
    assert sentence in err and "Traceback" not in err


def cli(capsys, *words):
    code = main([str(w) for w in words])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_fuse_on_the_command_line(folder, capsys):
    code, out, _ = cli(capsys, "fuse", "r0.run", "r1.run", "r2.run", "-o", "fused.run")
    assert code == 0
    assert out == "3 runs, 1 topics, 4 documents by rrf: fused.run\n"
    fused = rw.read_run("fused.run")
    assert fused.tag == "rrf"
    assert fused.to_dict()["q"] == pytest.approx(RRF)
    code, out, _ = cli(
        capsys, "fuse", "r0.run", "r1.run", "--method", "comb_mnz", "--norm", "minmax",
        "--weights", "1,3", "--k", "2", "--tag", "mine", "-o", "two.run", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["documents"] == 2
    expected = rw.fuse([R1, R2], "comb_mnz", norm="minmax", weights=[1, 3], k=2)
    assert rw.read_run("two.run").to_dict()["q"] == pytest.approx(expected["q"])


def test_weights_on_the_command_line(folder, capsys):
    words = ("fuse", "r0.run", "r1.run", "r2.run", "--method", "comb_sum", "-o", "f.run")
    code, out, err = cli(capsys, *words, "--train", "qrels.txt", "--metric", "rr", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["weights"][1] == max(
        found["weights"]
    )  # r0 and r2 put the relevant C last or miss it
    assert found["trained"]["value"] > found["trained"]["equal_weights"]
    (folder / "topics.txt").write_text("q\n")
    code, _, err = cli(capsys, *words, "--train", "qrels.txt", "--topics", "topics.txt")
    assert code == 0
    assert "weights by ap on 1 topics" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("fuse", "r0.run", "none.run", "-o", "f"), "none.run: No such file"),
        (("fuse", "r0.run", "r0.run", "-o", "f"), "a run file must be named once"),
        (("fuse", "r0.run", "--method", "best", "-o", "f"), "unknown aggregator 'best'"),
        (("fuse", "r0.run", "--method", "rrf(eps=1)", "-o", "f"), "unknown option of rrf 'eps'"),
        (("fuse", "r0.run", "--method", "rrf(", "-o", "f"), "must have the form name or name"),
        (("fuse", "r0.run", "--weights", "a", "-o", "f"), "--weights: must be numbers"),
        (("fuse", "r0.run", "--weights", "1,2", "-o", "f"), "one number per list, got 2 for 1"),
        (("fuse", "r0.run", "--missing", "mean", "-o", "f"), "missing must be one of 'skip', 'last'"),
        (("fuse", "r0.run", "--topics", "t", "-o", "f"), "give judgements with --train"),
        (("fuse", "r0.run", "--k", "0", "-o", "f"), "k must be a positive integer"),
        (("aggregate", "x.toi", "--method", "borda(alpha=1)"), "unknown option of borda 'alpha'"),
        (("aggregate", "x.toi", "--weights", "1"), "one number per list, got 1 for 2"),
    ],
)  # fmt: skip
def test_bad_words_get_a_sentence(folder, capsys, words, sentence):
    code, out, err = cli(capsys, *words)
    assert code == 2 and out == ""
    assert sentence in err and "Traceback" not in err
    assert not (folder / "f").exists()


def test_aggregate_on_the_command_line(folder, capsys):
    code, out, err = cli(capsys, "aggregate", "x.toi", "--method", "borda", "--optimum")
    assert code == 0
    assert out.splitlines()[0].split() == ["rank", "item", "score"]
    assert out.splitlines()[1].split() == ["1", "tea", "11"]
    assert "2 lists of 7 voters, 3 items" in err
    assert "the least there is" in err
    code, out, _ = cli(capsys, "aggregate", "x.csv", "--method", "kemeny", "--k", "1", "--json")
    assert code == 0
    assert json.loads(out)["ranking"][0]["rank"] == 1
    code, out, _ = cli(capsys, "aggregators", "--json")
    assert set(json.loads(out)) == set(rw.AGGREGATORS)
    code, out, _ = cli(capsys, "aggregators")
    assert "rrf" in out


# --- real data --------------------------------------------------------------------------------


@pytest.mark.letor
def test_preflib_profiles(letor_data):
    """Every profile is read; no aggregator beats Kemeny's consensus where that is proved."""
    files = sorted((letor_data / "rankagg" / "preflib").glob("*/*.[st]o[ci]"))
    assert len(files) > 100
    for path in files[::12]:
        lists = rw.read_rankings(path)
        text = path.read_text().splitlines()
        n = next(int(t.split(":")[1]) for t in text if "NUMBER ALTERNATIVES" in t)
        voters = next(int(t.split(":")[1]) for t in text if "NUMBER VOTERS" in t)
        assert lists.n_items == n
        assert lists.count.sum() == voters
        if n > 30:
            continue
        best = rw.kemeny_consensus(lists)
        assert best.exact
        for name in ("borda", "copeland", "mc4", "footrule", "condorcet"):
            scores = rw.AGGREGATORS[name](lists)
            assert rw.kemeny_distance(lists, scores) >= best.distance - 1e-9


@pytest.mark.letor
def test_robust03_fusion_beats_the_median_run(letor_data):
    folder = letor_data / "trec" / "robust03-top100"
    runs = {p.stem: rw.read_run(p) for p in sorted(folder.glob("*.run"))}
    qrels = rw.read_qrels(folder / "qrels.txt")
    single = [m.value for m in rw.evaluate_run(qrels, runs, "ap").means("ap")]
    for method in ("rrf", "borda", "mc4"):
        fused = rw.evaluate_run(qrels, rw.fuse(runs, method), "ap").means("ap")[0].value
        assert fused > np.median(single)
