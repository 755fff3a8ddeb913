"""TREC files: reading, writing, joining, evaluating, and every sentence for bad input."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw
import reference
from rankwise import _core
from rankwise.trec import Ids

# ------------------------------------------------------------------------------------- strategies

# Any text that a file can hold as one field: no white space, no control characters.
fields = st.text(
    st.characters(min_codepoint=33, exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]),
    min_size=1,
    max_size=6,
)
short = st.sampled_from([f"d{i}" for i in range(12)])
topics = st.sampled_from(["1", "2", "q3", "é"])
finite = st.floats(allow_nan=False, allow_infinity=False)
# Few values, so that ties are the rule; two differ only as doubles.
tied = st.sampled_from([0.0, -1.0, 2.5, 0.30000000001, 0.3, 1e9])
runs = st.dictionaries(topics, st.dictionaries(short, tied, min_size=1, max_size=12), min_size=1)
judgements = st.dictionaries(
    topics,
    st.dictionaries(short, st.sampled_from([-1, 0, 1, 2, 0.5]), min_size=1, max_size=12),
    min_size=1,
)


def run_text(nested: dict[str, dict[str, float]]) -> str:
    return "".join(
        f"{qid} Q0 {doc} {i} {score!r} t\n"
        for qid, docs in nested.items()
        for i, (doc, score) in enumerate(docs.items())
    )


def qrels_text(nested: dict[str, dict[str, float]]) -> str:
    return "".join(
        f"{q} 0 {d} {label!r}\n" for q, docs in nested.items() for d, label in docs.items()
    )


def as_file(text: str | bytes) -> io.BytesIO:
    return io.BytesIO(text if isinstance(text, bytes) else text.encode())


# ---------------------------------------------------------------------------------------- reading


def test_a_run_is_read_into_columns() -> None:
    run = rw.read_run(as_file("7 Q0 a 1 2.5 x\n7 Q0 b 2 -1e-3 x\n8 Q0 a 1 3 y\n"))
    assert run.to_dict() == {"7": {"a": 2.5, "b": -0.001}, "8": {"a": 3.0}}
    assert run.tag == "y"  # the last one, as in trec_eval
    assert run.ids.tolist() == ["7", "8"]
    assert run.qid.tolist() == ["7", "7", "8"]
    assert run.doc.tolist() == ["a", "b", "a"]
    assert run.offsets.tolist() == [0, 2, 3]
    assert (run.n_queries, run.n_docs, len(run)) == (2, 3, 2)


@pytest.mark.parametrize(
    "text",
    [
        "1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n",
        "1 Q0 a 1 2 t\n1 Q0 b 2 1 t",  # no line end
        "1 Q0 a 1 2 t\r\n1 Q0 b 2 1 t\r\n",
        "\n\n1 Q0 a 1 2 t\n  \t \n1 Q0 b 2 1 t\n\n",
        "  1\tQ0\t\ta   1 2\vt  \n1 Q0 b 2\f1 t \n",
        "# made by hand\n1 Q0 a 1 2 t\n  # and\n1 Q0 b 2 1 t\n#",
        "1 Q0 a 1 2 t more fields behind the tag\n1 Q0 b 2 1 t x\n",
        "\ufeff1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n",
        "1 Q0 a 1 +2.0e0 t\n1 Q0 b 2 .1e1 t\n",
        "1 Q0 a 1 2 t\n1 Q0 b 2 1 " + "t" * 300 + "\n" + "#" * 200,
    ],
)
def test_what_a_run_may_look_like(text: str) -> None:
    assert rw.read_run(as_file(text)).to_dict() == {"1": {"a": 2.0, "b": 1.0}}
    qrels = rw.Qrels.from_dict({"1": {"b": 1}})
    qrels_file = as_file("1 0 b 1")
    assert rw.evaluate_files(qrels_file, as_file(text), "rr").means("rr")[0].value == 0.5
    assert rw.evaluate_run(qrels, rw.read_run(as_file(text)), "rr").means("rr")[0].value == 0.5


@pytest.mark.parametrize(
    "text",
    [
        "1 0 a 1\n1 0 b -2\n2 0 a 0.5\n",
        "1 0 a 1\r\n\r\n# x\n1\t0\tb  -2 \n2 0 a 5e-1",
    ],
)
def test_what_qrels_may_look_like(text: str) -> None:
    qrels = rw.read_qrels(as_file(text))
    assert qrels.to_dict() == {"1": {"a": 1.0, "b": -2.0}, "2": {"a": 0.5}}
    assert qrels.subtopics is None


def test_rows_of_a_topic_need_not_be_together() -> None:
    run = rw.read_run(as_file("b Q0 x 1 3 t\na Q0 x 1 2 t\nb Q0 y 2 1 t\na Q0 y 2 1 t\n"))
    assert run.ids.tolist() == ["b", "a"]  # by first appearance
    assert run.doc.tolist() == ["x", "y", "x", "y"]
    assert run.score.tolist() == [3, 1, 2, 1]


def test_subtopics_are_kept_on_request() -> None:
    text = "1 s1 a 1\n1 s2 a 2\n1 s1 b 0\n"
    qrels = rw.read_qrels(as_file(text), subtopics=True)
    assert qrels.subtopics is not None
    assert qrels.subtopics.tolist() == ["s1", "s2", "s1"]
    assert qrels.without_subtopics().to_dict() == {"1": {"a": 2.0, "b": 0.0}}
    with pytest.raises(ValueError, match=r"appear once in a topic, got 'a' in topic '1' again"):
        rw.read_qrels(as_file(text))
    with pytest.raises(ValueError, match=r"got qrels with subtopics; take qrels\.without"):
        rw.join(qrels, rw.Run.from_dict({"1": {"a": 1.0}}))


def test_ranks_that_contradict_scores_are_counted_and_not_used() -> None:
    lines = ["1 Q0 a 1 5 t", "1 Q0 b 3 4 t", "1 Q0 c 2 3 t", "1 Q0 d x 9 t", "2 Q0 a 0 1 t"]
    run = rw.read_run(as_file("\n".join(lines)))
    assert run.rank_conflicts == 1  # c's rank puts it above b; d states none
    qrels = as_file("1 0 d 1\n2 0 a 1")
    result = rw.evaluate_files(qrels, as_file("\n".join(lines)), "rr")
    assert result.rank_conflicts == (1,)
    assert result.per_query("rr").tolist() == [[1.0, 1.0]]  # scores rule: d is first


@pytest.mark.parametrize("first", [0, 1])
def test_ranks_from_zero_and_tied_scores_are_no_conflict(first: int) -> None:
    text = "".join(f"1 Q0 d{i} {first + i} {s} t\n" for i, s in enumerate([9, 7, 7, 7, 1]))
    assert rw.read_run(as_file(text)).rank_conflicts == 0


@given(st.lists(st.tuples(st.integers(-2, 9), st.integers(0, 4)), min_size=1, max_size=12))
def test_rank_conflicts_by_definition(rows: list[tuple[int, int]]) -> None:
    text = "".join(f"1 Q0 d{i} {r} {s} t\n" for i, (r, s) in enumerate(rows))
    expected = sum(any(s2 > s and r2 > r for r2, s2 in rows) for r, s in rows)
    assert rw.read_run(as_file(text)).rank_conflicts == expected
    result = rw.evaluate_files(as_file("1 0 d0 1"), as_file(text), "rr")
    assert result.rank_conflicts == (expected,)


@given(
    st.one_of(finite, st.integers(-(10**20), 10**20)).map(str)
    | st.from_regex(r"\A[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?\Z")
)
def test_numbers_are_read_as_python_reads_them(text: str) -> None:
    for padding in ("", " " * 80):  # the last line of a file, and a line with more text behind it
        source = as_file(f"1 Q0 d 1 {text} t\n{padding}")
        if math.isinf(float(text)):
            with pytest.raises(ValueError, match="score must be a finite number"):
                rw.read_run(source)
        else:
            score = rw.read_run(source).score[0]
            assert score == float(text)
            assert math.copysign(1, score) == math.copysign(1, float(text))


@given(
    st.dictionaries(
        fields.filter(lambda t: t[0] != "#"),
        st.dictionaries(fields, finite, min_size=1),
        min_size=1,
    )
)
def test_a_run_survives_writing_and_reading(nested: dict[str, dict[str, float]]) -> None:
    run = rw.Run.from_dict(nested, tag="t")
    text = _core.format_run(
        *run.topics._columns, run.offsets, *run.docs._columns, run.score, np.frombuffer(b"t", "u1")
    )
    back = rw.read_run(as_file(text))
    assert back.to_dict() == nested
    assert back.rank_conflicts == 0
    assert back.tag == "t"
    for docs in nested.values():  # best first, ranks from 1
        del docs
    ranks = [int(line.split()[3]) for line in text.decode().split("\n")[:-1]]
    expected = [i + 1 for docs in back.to_dict().values() for i in range(len(docs))]
    assert ranks == expected


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_files_on_disk(tmp_path: Path, suffix: str) -> None:
    run = rw.Run.from_dict({"1": {"a": 0.1, "b": 2.0}, "2": {"c": -3.5}}, tag="mine")
    qrels = rw.Qrels.from_arrays(["1", "1"], ["a", "a"], [1, 0.5], subtopic=["x", "y"])
    run_path, qrels_path = tmp_path / f"run.txt{suffix}", tmp_path / f"qrels.txt{suffix}"
    rw.write_run(run, run_path)
    rw.write_qrels(qrels, qrels_path)
    back = rw.read_run(run_path)
    assert back.to_dict() == run.to_dict()
    assert back.tag == "mine"
    columns = rw.read_qrels(str(qrels_path), subtopics=True).to_frame()
    assert columns.to_dict("list") == qrels.to_frame().to_dict("list")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([run_path.name, qrels_path.name])
    rw.write_run(run, run_path, tag="other")
    assert rw.read_run(run_path).tag == "other"


def test_writing_is_deterministic_and_readable(tmp_path: Path) -> None:
    run = rw.Run.from_dict({"1": {"a": 1.0, "c": 1.0, "b": 2.25}})
    rw.write_run(run, tmp_path / "run")
    lines = (tmp_path / "run").read_text()
    assert lines == "1 Q0 b 1 2.25 rankwise\n1 Q0 c 2 1 rankwise\n1 Q0 a 3 1 rankwise\n"
    rw.write_qrels(rw.Qrels.from_dict({"1": {"a": 1, "b": 0.5}}), tmp_path / "qrels")
    assert (tmp_path / "qrels").read_text() == "1 0 a 1\n1 0 b 0.5\n"


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("old")
    run = rw.Run.from_dict({"1": {"a": 1.0}})
    with pytest.raises(ValueError, match="tag must not be empty or hold white space, got 'a b'"):
        rw.write_run(run, path, tag="a b")
    assert path.read_text() == "old"
    with pytest.raises(OSError, match="nowhere"):
        rw.write_run(run, tmp_path / "nowhere" / "run.txt")


def test_json_as_ranx_writes_it(tmp_path: Path) -> None:
    run, qrels = {"1": {"a": 0.5, "b": 0.25}}, {"1": {"b": 1}}
    (tmp_path / "mine.json").write_text(json.dumps(run))
    (tmp_path / "qrels.json").write_text(json.dumps(qrels))
    assert rw.read_run(tmp_path / "mine.json").to_dict() == run
    result = rw.evaluate_files(tmp_path / "qrels.json", tmp_path / "mine.json", "rr")
    assert result.means("rr")[0].value == 0.5
    assert result.runs == ("mine",)
    (tmp_path / "bad.json").write_text("[1, 2]")
    with pytest.raises(ValueError, match=r"bad\.json: expected an object of topics, got list"):
        rw.read_run(tmp_path / "bad.json")
    (tmp_path / "bad.json").write_text('{"1": 2}')
    with pytest.raises(TypeError, match="mapping of topics to mappings of documents is needed"):
        rw.read_run(tmp_path / "bad.json")


def test_standard_input() -> None:
    code = "import rankwise as rw; print(rw.read_run('-').to_dict())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="1 Q0 a 1 2 t\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "{'1': {'a': 2.0}}\n"


def test_evaluating_files_imports_numpy_alone(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("1 0 a 1\n")
    (tmp_path / "r").write_text("1 Q0 a 1 2 t\n")
    code = (
        "import sys, rankwise as rw; rw.evaluate_files('q', 'r', 'map', preset='trec_eval');"
        "print([m for m in ('scipy','sklearn','lightgbm','pandas','narwhals','rich','matplotlib')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


# -------------------------------------------------------------------------------------- bad input

RUN_ERRORS = [
    ("1 Q0 a 1 2 t\n1 Q0 b 1 2\n", r":2: expected 6 fields \(qid Q0 doc rank score tag\), got 5"),
    ("1 Q0 a 1 2 t\n\n# c\n1\n", r":4: expected 6 fields \(qid Q0 doc rank score tag\), got 1"),
    ("1 Q0 a 1 x t\n", ":1: score must be a finite number, got 'x'"),
    ("1 Q0 a 1 1.5x t\n", ":1: score must be a finite number, got '1.5x'"),
    ("1 Q0 a 1 nan t\n", ":1: score must be a finite number, got 'nan'"),
    ("1 Q0 a 1 inf t\n", ":1: score must be a finite number, got 'inf'"),
    ("1 Q0 a 1 -inf t\n", ":1: score must be a finite number, got '-inf'"),
    ("1 Q0 a 1 1e999 t\n", ":1: score must be a finite number, got '1e999'"),
    ("1 Q0 a 1 0x10 t\n", ":1: score must be a finite number, got '0x10'"),
    ("1 Q0 a 1 1#2 t\n", ":1: score must be a finite number, got '1#2'"),
    ("1 Q0 a 1 +-1 t\n", ":1: score must be a finite number, got"),
    ("1 Q0 a 1 - t\n", ":1: score must be a finite number, got '-'"),
    (
        "1 Q0 a 1 2 t\n# c\n1 Q0 b 2 1 t\n1 Q0 a 3 0 t\n",
        r":4: a document must appear once in a topic, got 'a' in topic '1' again \(first on line 1",
    ),
    (
        "1 Q0 a 1 2 t\n2 Q0 a 2 1 t\n1 Q0 a 3 0 t\n",
        r":3: a document must appear once in a topic, got 'a' in topic '1' again \(first on line 1",
    ),
    ("", ": expected at least one line, got an empty file"),
    ("# only\n\n", ": expected at least one line, got an empty file"),
    ("1 Q0 a\x00 1 2 t\n", ":1: expected text, got the byte 0x00; is the file compressed or bin"),
    ("1 Q0 a 1 2 t\x1b" + " " * 99, ":1: expected text, got the byte 0x1b"),
]

QRELS_ERRORS = [
    ("1 0 a\n", r":1: expected 4 fields \(qid iteration doc label\), got 3"),
    ("1 0 a 1\n1 0 b 1 5\n", r":2: expected 4 fields \(qid iteration doc label\), got 5"),
    ("1 0 a yes\n", ":1: label must be a finite number, got 'yes'"),
    ("1 0 a nan\n", ":1: label must be a finite number, got 'nan'"),
    ("1 0 a 1\n1 1 a 1\n", r":2: a document must appear once in a topic, got 'a' in topic '1' ag"),
    ("\n", ": expected at least one line, got an empty file"),
]


@pytest.mark.parametrize(("text", "message"), RUN_ERRORS)
def test_a_bad_run_is_refused_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "run.txt"
    path.write_bytes(text.encode())
    with pytest.raises(ValueError, match=r"run\.txt" + message):
        rw.read_run(path)
    with pytest.raises(ValueError, match=r"run\.txt" + message):
        rw.evaluate_files(as_file("1 0 a 1"), path, "ap")


@pytest.mark.parametrize(("text", "message"), QRELS_ERRORS)
def test_bad_qrels_are_refused_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "qrels.txt"
    path.write_bytes(text.encode())
    with pytest.raises(ValueError, match=r"qrels\.txt" + message):
        rw.read_qrels(path)


def test_damaged_archives() -> None:
    whole = b"1 Q0 a 1 2 t\n" * 1
    for pack in (gzip.compress, lzma.compress):
        packed = pack(whole)
        assert rw.read_run(io.BytesIO(packed)).to_dict() == {"1": {"a": 2.0}}
        with pytest.raises(ValueError, match=r"truncated|damaged"):
            rw.read_run(io.BytesIO(packed[:-6]))


def test_the_first_error_of_a_long_file_is_reported_for_any_number_of_threads() -> None:
    lines = [f"{i // 100} Q0 d{i} 1 {i} t" for i in range(40_000)]
    lines[30_007] = "300 Q0 d 1 x t"
    lines[20_002] = "200 Q0 d20001 1 5 t"
    lines[35_000] = "1 2 3"
    text = "\n".join(lines)
    for n_threads in (1, 2):
        with pytest.raises(ValueError, match=r"<file>:30008: score must be"):
            rw.read_run(as_file(text), n_threads=n_threads)
        with pytest.raises(ValueError, match=r"<file>:20003: a document must appear once.*20002"):
            rw.evaluate_files(as_file("1 0 d1 1"), as_file(text), "ap", n_threads=n_threads)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((["1"], ["a"], [math.nan]), "Run: score must be finite, got nan at row 0"),
        ((["1"], ["a"], [math.inf]), "Run: score must be finite, got inf at row 0"),
        ((["1"], ["a"], [-math.inf]), "Run: score must be finite, got -inf at row 0"),
        ((["1", "1"], ["a"], [1]), "Run: qid, doc and score must have the same length, got 2, 1"),
        ((["1"], ["a b"], [1]), "Run: doc must not be empty or hold white space, got 'a b' at ro"),
        ((["1", "2"], ["a", ""], [1, 2]), "Run: doc must not be empty .* got '' at row 1"),
        ((["#1"], ["a"], [1]), "Run: qid must not start with '#'"),
        (([1.5], ["a"], [1]), r"Run: qid must be strings or integers, got 1\.5 at row 0"),
        (([], [], []), "Run: at least one row is needed, got none"),
        (([1, 2, 1], ["a", "a", "a"], [1, 2, 3]), "got 'a' in topic '1' at rows 0 and 2"),
        (([[1]], ["a"], [1]), r"Run: qid must be one id per row, got shape \(1, 1\)"),
    ],
)
def test_bad_columns_are_refused(columns: tuple[list, list, list], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        rw.Run.from_arrays(*columns)


def test_a_run_without_any_judged_topic_is_refused() -> None:
    qrels = rw.Qrels.from_dict({"q1": {"a": 1}})
    run = rw.Run.from_dict({"1": {"a": 1.0}, "2": {"a": 1.0}})
    message = "at least one topic of the run must be judged, got none of its 2; .* such as 'q1'"
    with pytest.raises(ValueError, match=message):
        rw.join(qrels, run)
    with pytest.raises(ValueError, match="<file>: " + message):
        rw.evaluate_files(as_file("q1 0 a 1"), as_file(run_text(run.to_dict())), "ap")
    with pytest.raises(TypeError, match="a Qrels and a Run are needed, in this order, got Run"):
        rw.join(run, qrels)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ other forms


def test_frames_and_arrays() -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    nested = {"2": {"a": 0.5, "b": 0.25}, "1": {"a": 1.0}}
    run = rw.Run.from_dict(nested)
    for backend, kind in (
        ("pandas", pd.DataFrame),
        ("polars", pl.DataFrame),
        ("pyarrow", pa.Table),
    ):
        frame = run.to_frame(backend)
        assert isinstance(frame, kind)
        assert rw.Run.from_frame(frame).to_dict() == nested
    shuffled = pd.DataFrame({"query": [1, 2, 2], "docno": ["a", "b", "a"], "s": [1.0, 0.25, 0.5]})
    again = rw.Run.from_frame(shuffled, qid="query", doc="docno", score="s")
    assert again.to_dict() == nested
    with pytest.raises(
        ValueError, match="the frame must have a column 'doc', got 'query', 'docno'"
    ):
        rw.Run.from_frame(shuffled, qid="query")
    qrels = rw.Qrels.from_frame(pl.DataFrame({"qid": ["1"], "doc": ["a"], "label": [2]}))
    assert qrels.to_dict() == {"1": {"a": 2.0}}


@given(st.lists(fields))
def test_ids_are_a_column_of_strings(texts: list[str]) -> None:
    ids = Ids.from_values(np.array(texts, dtype=object))
    assert len(ids) == len(texts)
    assert ids.tolist() == texts
    assert np.asarray(ids).tolist() == texts
    assert [ids[i] for i in range(-len(texts), len(texts))] == texts * 2
    assert ids[::-1].tolist() == texts[::-1]


def test_bytes_that_are_not_utf8_survive(tmp_path: Path) -> None:
    raw = b"q\xe9 Q0 d\xff\xfe 1 2 t\xff\n"
    run = rw.read_run(io.BytesIO(raw))
    assert run.doc.tolist() == ["d\udcff\udcfe"]
    rw.write_run(run, tmp_path / "run")
    assert (tmp_path / "run").read_bytes() == raw
    assert rw.Run.from_dict(run.to_dict(), tag=run.tag).topics.data.tobytes() == b"q\xe9"


# ---------------------------------------------------------------------------------------- joining


def flat(judged: rw.Judged) -> list[tuple[str, list[tuple[str, float | None, float]]]]:
    """Topics with (doc, label or None, score), in stored order."""
    docs = judged.docs.tolist()
    labels = [None if math.isnan(v) else v for v in judged.y_true]
    rows = list(zip(docs, labels, judged.y_score.tolist(), strict=True))
    cuts = judged.groups.offsets.tolist()
    return [
        (qid, rows[a:b])
        for qid, a, b in zip(judged.groups.ids.tolist(), cuts[:-1], cuts[1:], strict=True)
    ]


@given(judgements, runs)
def test_join_equals_the_reference(
    qrels: dict[str, dict[str, float]], run: dict[str, dict[str, float]]
) -> None:
    if not set(qrels) & set(run):
        run[next(iter(qrels))] = {"d0": 1.0}
    columns = rw.Run.from_dict(run)
    judged = rw.join(rw.Qrels.from_dict(qrels), columns)
    expected = reference.join(qrels, run)
    assert [qid for qid, _ in flat(judged)] == list(expected)
    for qid, rows in flat(judged):
        retrieved = [r for r in rows if r[2] > -math.inf]
        rest = [r for r in rows if r[2] == -math.inf]
        wanted = expected[qid]
        assert sorted(retrieved, key=lambda r: r[0]) == sorted(wanted["retrieved"])
        assert sorted(rest) == sorted(wanted["missed"])
        for double in (np.float64, np.float32):  # equal scores: descending ids, either way
            keys = [(-double(r[2]), r[0].encode()) for r in retrieved]
            best = sorted(keys, key=lambda k: k[0])
            for value in {k[0] for k in best}:
                tied_docs = [k[1] for k in keys if k[0] == value]
                assert tied_docs == sorted(tied_docs, reverse=True)
    assert judged.groups.docs_descending
    assert judged.n_missing == len(set(qrels) - set(run))
    assert judged.n_unjudged == len(set(run) - set(qrels))
    pooled = {
        (qid, doc)
        for qid in qrels
        for doc, label in qrels[qid].items()
        if label < 0 and doc in run.get(qid, {})
    }
    found = (
        set()
        if judged.pooled is None
        else {
            (qid, doc)
            for qid, doc, is_pooled in zip(judged.qid, judged.docs, judged.pooled, strict=True)
            if is_pooled
        }
    )
    assert found == pooled
    assert columns.to_dict() == run  # evaluating never changes a run


@given(judgements, runs, st.booleans(), st.randoms(use_true_random=False))
def test_files_arrays_and_metrics_agree(
    qrels: dict[str, dict[str, float]], run: dict[str, dict[str, float]], shuffle: bool, rng
) -> None:
    if not set(qrels) & set(run):
        run[next(iter(qrels))] = {"d0": 1.0}
    lines = run_text(run).splitlines(keepends=True)
    if shuffle:  # topics interleaved: the file is read into columns first
        rng.shuffle(lines)
    metrics = "ndcg(gain=identity)@3,ap,rr,bpref,judged@2"
    for preset in (None, "trec_eval", "trec_eval9"):
        wanted = metrics if preset is None else "ndcg@3,ap,rr,bpref,judged@2"
        if preset is None:
            judged = rw.join(rw.Qrels.from_dict(qrels), rw.Run.from_dict(run))
            direct = rw.evaluate(wanted, judged.y_true, judged.y_score, qid=judged.groups)
        files = rw.evaluate_files(
            as_file(qrels_text(qrels)), as_file("".join(lines)), wanted, preset=preset
        )
        arrays = rw.evaluate_run(
            rw.Qrels.from_dict(qrels), rw.Run.from_dict(run), wanted, preset=preset
        )
        assert list(files.values) == list(arrays.values)
        assert files.n_missing == arrays.n_missing
        assert files.n_unjudged == arrays.n_unjudged
        for name in files.values:
            np.testing.assert_array_equal(files.values[name], arrays.values[name])
            if preset is None:
                np.testing.assert_array_equal(files.values[name][0], direct[name])


def long_files(n_topics: int = 120, n_docs: int = 300) -> tuple[str, str]:
    rng = np.random.default_rng(3)
    run, qrels = [], []
    for topic in range(n_topics):
        docs = rng.permutation(2 * n_docs)
        scores = np.round(rng.normal(size=n_docs), 1)  # many ties
        run += [f"{topic} Q0 x{d} {i} {s} t\n" for i, (d, s) in enumerate(zip(docs, scores))]  # noqa: B905
        qrels += [f"{topic} 0 x{d} {rng.integers(-1, 4)}\n" for d in docs[n_docs - 40 : n_docs + 9]]
    return "".join(qrels), "".join(run)


def test_one_and_two_threads_and_any_chunks_give_equal_results() -> None:
    qrels, run = long_files()
    metrics = "ndcg@10,ap,rr,bpref,precision@10,recall@100"
    results = [
        rw.evaluate_files(as_file(qrels), as_file(run), metrics, preset="trec_eval", n_threads=n)
        for n in (1, 2)
    ]
    columns = [rw.read_run(as_file(run), n_threads=n) for n in (1, 2)]
    assert (columns[0].score == columns[1].score).all()
    assert (columns[0].docs.data == columns[1].docs.data).all()
    joined = [rw.join(rw.read_qrels(as_file(qrels)), columns[0], n_threads=n) for n in (1, 2)]
    np.testing.assert_array_equal(joined[0].y_true, joined[1].y_true)
    np.testing.assert_array_equal(joined[0].y_score, joined[1].y_score)
    for name, values in results[0].values.items():
        np.testing.assert_array_equal(values, results[1].values[name])
    # Interleaved rows come out the same.
    lines = run.splitlines(keepends=True)
    mixed = "".join(lines[::2] + lines[1::2])
    again = rw.evaluate_files(as_file(qrels), as_file(mixed), metrics, preset="trec_eval")
    for name, values in results[0].values.items():
        np.testing.assert_array_equal(values, again.values[name])


# ------------------------------------------------------------------------------------- evaluating


def test_several_runs_are_aligned_by_topic() -> None:
    qrels = rw.Qrels.from_dict({"1": {"a": 1}, "2": {"b": 1}, "3": {"c": 0}})
    one = rw.Run.from_dict({"2": {"b": 1.0}, "9": {"a": 1.0}, "1": {"x": 2.0, "a": 1.0}}, tag="one")
    two = rw.Run.from_dict({"1": {"a": 1.0}}, tag="two")
    result = rw.evaluate_run(qrels, [one, two], "rr,ap")
    assert result.runs == ("one", "two")
    assert result.ids.tolist() == ["1", "2", "3"]
    np.testing.assert_array_equal(result.per_query("rr"), [[0.5, 1, np.nan], [1, 0, np.nan]])
    assert [(m.value, m.n_queries, m.n_skipped) for m in result.means("rr")] == [
        (0.75, 2, 1),
        (0.5, 2, 1),
    ]
    assert result.n_missing == (1, 2)
    assert result.n_unjudged == (1, 0)
    assert rw.evaluate_run(qrels, {"x": one}, "rr").runs == ("x",)
    assert rw.evaluate_run(qrels, [two, two], "rr").runs == ("two", "two (2)")
    with pytest.raises(ValueError, match=r"unknown metric 'ndgc'.*did you mean"):
        rw.evaluate_run(qrels, one, "ndgc")
    with pytest.raises(ValueError, match="unknown metric 'dcg'"):
        result.per_query("dcg")
    with pytest.raises(ValueError, match="at least one run is needed, got none"):
        rw.evaluate_run(qrels, [], "rr")


def test_runs_are_named_by_tag_or_file(tmp_path: Path) -> None:
    for name, tag in (("a.run", "x"), ("b.run", "y"), ("c.run", "x")):
        (tmp_path / name).write_text(f"1 Q0 a 1 2 {tag}\n")
    qrels = tmp_path / "qrels"
    qrels.write_text("1 0 a 1\n")
    paths = [tmp_path / n for n in ("a.run", "b.run", "c.run")]
    assert rw.evaluate_files(qrels, paths[:2], "rr").runs == ("x", "y")
    assert rw.evaluate_files(qrels, paths, "rr").runs == tuple(map(str, paths))
