"""Readers and writers of judged lists, against Python's own float() and the peers' readers."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import struct
import sys
import tempfile
from decimal import Decimal, localcontext
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise import _files, tables

REAL_FILES = [
    "letor4/MQ2008/S1.txt",
    "letor3/OHSUMED/QueryLevelNorm/Fold1-test.txt",
    "letor3/OHSUMED/Feature-null/Fold1-test.txt",
    "mslr-sample/train.txt",
    "lightgbm-lambdarank/rank.train",
    "fastrank/trec_news_2018.train",
]
FLOAT32_END = 3.4028235677973366e38  # from here on, rounding to float32 gives infinity
MISSING = {"nan", "null", "na", "-nan", "+nan"}


def text(*lines, end="\n"):
    return io.BytesIO("".join(line + end for line in lines).encode())


def value_of(token):
    return float("nan") if token.lower() in MISSING else float(token)


def slow_rows(lines):
    """Label, qid, features and comment of each document, by splitting strings."""
    for line in lines:
        body, _, comment = line.partition("#")
        fields = body.split()
        if fields:
            has_qid = len(fields) > 1 and fields[1].startswith("qid:")
            pairs = [f.split(":") for f in fields[1 + has_qid :]]
            features = {int(i): value_of(v) for i, v in pairs}
            yield value_of(fields[0]), fields[1][4:] if has_qid else None, features, comment.strip()


def slow_matrix(lines, absent=0.0, n_features=None):
    rows = list(slow_rows(lines))
    width = n_features or max(max(r[2], default=0) for r in rows)
    X = np.full((len(rows), width), absent)
    for i, row in enumerate(rows):
        for j, v in row[2].items():
            X[i, j - 1] = v
    return X, np.array([r[0] for r in rows]), [r[1] for r in rows]


def same_bits(a, b):
    """Equal to the last bit, where every NaN is the same."""
    signs = (np.signbit(x) & ~np.isnan(x) for x in (a, b))
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(*signs)


def assert_same(a, b):
    for name in ("y", "offsets", "weight"):
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None), name
        assert left is None or np.array_equal(left, right, equal_nan=True), name
    assert a.ids.tolist() == b.ids.tolist()
    assert (a.docs is None) == (b.docs is None)
    if a.docs is not None:
        assert a.docs.tolist() == b.docs.tolist()
    assert a.X.dtype == b.X.dtype
    left, right = (x.toarray() if sp.issparse(x) else x for x in (a.X, b.X))
    assert np.array_equal(left, right, equal_nan=True)


# ---------------------------------------------------------------- numbers

doubles = st.integers(0, 2**64 - 1).map(lambda b: struct.unpack("<d", struct.pack("<Q", b))[0])
finite = st.one_of(doubles, st.floats(allow_nan=False, allow_infinity=False)).filter(np.isfinite)


@st.composite
def halfway(draw):
    """The decimal exactly between a double and the next, or a hair beside it."""
    low = draw(st.floats(1e-300, 1e300))
    with localcontext() as context:
        context.prec = 1200
        middle = (Decimal(low) + Decimal(np.nextafter(low, np.inf).item())) / 2
        digits = f"{middle:e}"
        mantissa, exponent = digits.split("e")
        tail = draw(st.sampled_from(["", "0", "0" * 30 + "1", "1"]))
        return f"{mantissa}{tail}e{exponent}"


numbers = st.one_of(
    finite.map(repr),
    finite.map(lambda v: f"{v:.17g}"),
    finite.map(lambda v: f"{v:.25e}"),
    halfway(),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[+-]?[0-9]{0,24}\.[0-9]{1,24}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"[+-]?[0-9]{1,24}\.?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"-?[0-9]{1,9}\.[0-9]{0,9}", fullmatch=True),
    st.sampled_from(
        "5e-324 4.9e-324 2.4703282292062327e-324 2.4703282292062328e-324 1e-400 0e999 0.0e-999 "
        "2.2250738585072011e-308 1.7976931348623157e308 1.7976931348623158e308 9007199254740993 "
        f"9007199254740992.5 -0 -0.0 {'0' * 40} 0.{'0' * 400}1 1{'0' * 308} .{'0' * 9}12e9".split()
    ),
)


@settings(max_examples=200)
@given(st.lists(numbers, min_size=1, max_size=12))
def test_values_are_those_of_float(tokens):
    tokens = [t for t in tokens if np.isfinite(float(t))] or ["1"]
    line = "0 qid:1 " + " ".join(f"{i}:{t}" for i, t in enumerate(tokens, 1))
    expected = np.array([[float(t) for t in tokens]])
    assert same_bits(rw.read_letor(text(line)).X, expected)
    single = [t for t in tokens if abs(float(t)) < FLOAT32_END] or ["1"]
    line = "0 qid:1 " + " ".join(f"{i}:{t}" for i, t in enumerate(single, 1))
    expected = np.array([[float(t) for t in single]]).astype(np.float32)
    assert same_bits(rw.read_letor(text(line), dtype="float32").X, expected)


@given(st.lists(st.text("0123456789.eE+-_xnaifNULt", min_size=1, max_size=12), max_size=3))
def test_a_token_is_read_as_float_reads_it_or_refused(tokens):
    for token in tokens:
        source = text(f"0 qid:1 1:{token}")
        try:
            expected = value_of(token)
        except ValueError:
            expected = None
        if expected is None or "_" in token or np.isinf(expected):
            with pytest.raises(ValueError, match=r"^<file>:1: .*feature 1 ?"):
                rw.read_letor(source)
        else:
            assert same_bits(rw.read_letor(source).X, np.array([[expected]]))


def test_overflow_is_an_infinite_value():
    for token in ("1e309", "1.7976931348623159e308", "1" + "0" * 309, "-1e999", "inf", "-Infinity"):
        with pytest.raises(ValueError, match=r"feature 1 must be finite, got '"):
            rw.read_letor(text(f"0 qid:1 1:{token}"))


def test_a_double_that_float32_cannot_hold_is_refused():
    largest = "3.4028235677973362e38"  # the last double that rounds to a finite float
    X = rw.read_letor(text(f"0 qid:1 1:{largest}"), dtype="float32").X
    assert X[0, 0] == np.finfo(np.float32).max
    with pytest.raises(ValueError, match=r"does not fit float32, got '3\.4028235677973366e38'"):
        rw.read_letor(text("0 qid:1 1:3.4028235677973366e38"), dtype="float32")


# ---------------------------------------------------------------- forms of LETOR text


def test_example():
    lines = [
        "2 qid:10032 1:0.5 2:0 4:1 #docid = GX029-35-5894638 inc = 0.01 prob = 0.1",
        "",
        "# a line of its own",
        "0 qid:10032 2:-3 #docid = GX030-77-6315042",
        "1 qid:7 4:1e2",
    ]
    q = rw.read_letor(text(*lines))
    assert q.X.tolist() == [[0.5, 0, 0, 1], [0, -3, 0, 0], [0, 0, 0, 100]]
    assert q.y.tolist() == [2, 0, 1]
    assert q.ids.tolist() == [10032, 7]
    assert q.offsets.tolist() == [0, 2, 3]
    assert q.docs.tolist() == ["GX029-35-5894638", "GX030-77-6315042", ""]


@pytest.mark.parametrize("end", ["\n", "\r\n", " \t\n", "  # c\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends(end, last, mark):
    data = mark + text("1 qid:a 1:2\t2:3", "0   qid:b\t1:4", end=end).getvalue()
    q = rw.read_letor(io.BytesIO(data if last else data.rstrip()))
    assert q.X.tolist() == [[2, 3], [4, 0]]
    assert q.ids.tolist() == ["a", "b"]


def test_missing_values_and_absent_features():
    lines = ["1 qid:1 1:NULL 3:nan", "1 qid:1 1:NaN 2:-nan 3:NA", "1 qid:1 1:null 2:5"]
    nan = np.nan
    X = rw.read_letor(text(*lines)).X
    assert np.array_equal(X, [[nan, 0, nan], [nan, nan, nan], [nan, 5, 0]], equal_nan=True)
    X = rw.read_letor(text(*lines), absent=nan).X
    assert np.array_equal(X, [[nan, nan, nan], [nan, nan, nan], [nan, 5, nan]], equal_nan=True)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["1", "2"], [1, 2]),
        (["-5", "9223372036854775807"], [-5, 9223372036854775807]),
        (["01", "1"], ["01", "1"]),
        (["1", "9223372036854775808"], ["1", "9223372036854775808"]),
        (["q7", "ü"], ["q7", "ü"]),
        (["1.0", "-0"], ["1.0", "-0"]),
    ],
)
def test_query_ids_are_integers_when_all_of_them_are(tokens, expected):
    q = rw.read_letor(text(*(f"0 qid:{t} 1:1" for t in tokens)))
    assert q.ids.tolist() == expected
    assert q.ids.dtype.kind == ("i" if isinstance(expected[0], int) else "U")


def test_rows_of_a_query_need_not_be_together():
    q = rw.read_letor(text("0 qid:b 1:1 # x", "1 qid:a 1:2 # y", "2 qid:b 1:3 # z"))
    assert q.ids.tolist() == ["b", "a"]
    assert q.X.ravel().tolist() == [1, 3, 2]
    assert q.y.tolist() == [0, 2, 1]
    assert q.docs.tolist() == ["x", "z", "y"]
    assert q.order.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("comment", "doc"),
    [
        ("#docid = X inc = 1", "X"),
        ("# docid=X", "X"),
        ("#docid  =\tX", "X"),
        ("#   two words  ", "two words"),
        ("# docidx = 3", "docidx = 3"),
        ("#docid", "docid"),
        ("# # twice", "# twice"),
        ("# h\xe9 \U0001f600", "h\xe9 \U0001f600"),
        ("#", ""),
    ],
)
def test_comments_are_document_ids(comment, doc):
    q = rw.read_letor(text("1 qid:1 1:1 # other", f"1 qid:1 1:1 {comment}"))
    assert q.docs.tolist() == ["other", doc]
    assert rw.read_letor(text(f"1 qid:1 1:1 {comment}"), docs=False).docs is None


def test_a_long_comment_does_not_cost_its_length_for_every_row():
    lines = [f"1 qid:1 1:1 # d{i}" for i in range(20_000)] + ["1 qid:1 1:1 # " + "x" * 10_000]
    docs = rw.read_letor(text(*lines)).docs
    assert docs.dtype == object
    assert docs[7] == "d7"
    assert len(docs[-1]) == 10_000


def test_a_comment_that_is_not_utf8_gets_replacement_characters():
    q = rw.read_letor(io.BytesIO(b"1 qid:1 1:1 # a\xffb\n1 qid:1 1:1 # \xc3\x28\n"))
    assert q.docs.tolist() == ["a�b", "�("]


def test_number_of_features():
    source = ["1 qid:1 2:5"]
    assert rw.read_letor(text(*source), n_features=4).X.tolist() == [[0, 5, 0, 0]]
    assert rw.read_letor(text(*source), n_features=4, sparse=True).X.shape == (1, 4)
    wide = rw.read_letor(text("1 qid:1 1:1", "1 qid:1 5000:2", "1 qid:1 2:3"))
    assert wide.X.shape == (3, 5000)
    assert wide.X[1, 4999] == 2
    assert wide.X.sum() == 6


def test_unjudged():
    lines = ["nan qid:1 1:1", "-1 qid:1 1:1", "NULL qid:1 1:1", "0.5 qid:1 1:1"]
    y = rw.read_letor(text(*lines), unjudged="ignore").y
    assert np.array_equal(y, [np.nan, np.nan, np.nan, 0.5], equal_nan=True)


@st.composite
def documents(draw):
    n = draw(st.integers(1, 30))
    width = draw(st.integers(1, 6))
    values = st.one_of(
        st.sampled_from([0.0, 1.0, -0.5, 1e-9, 123456.0, np.nan]), finite, st.integers(-9, 99)
    )
    lines = []
    for _ in range(n):
        columns = draw(st.sets(st.integers(1, width)))
        pairs = " ".join(f"{j}:{draw(values)!r}" for j in sorted(columns))
        comment = draw(st.sampled_from(["", "", " # c", " #docid = d"]))
        blank = draw(st.sampled_from(["", "", "\n", "\n# c\n"]))
        lines.append(
            f"{draw(st.integers(0, 4))} qid:{draw(st.integers(1, 4))} {pairs}{comment}{blank}"
        )
    return [*lines, f"0 qid:9 {width}:1"]


@settings(max_examples=40)
@given(documents())
def test_equals_the_slow_reader(lines):
    flat = "\n".join(lines).split("\n")
    X, y, qid = slow_matrix(flat)
    expected = rw.Queries.from_arrays(X, y, np.array(qid).astype(int))
    for threads in (1, 2):
        q = rw.read_letor(text(*lines), docs=False, n_threads=threads)
        assert_same(q, expected)
    s = rw.read_letor(text(*lines), docs=False, sparse=True)
    assert (s.X.data != 0).all()
    assert s.X.has_canonical_format
    assert_same(s, expected)


@pytest.mark.letor
@pytest.mark.parametrize("name", REAL_FILES)
def test_real_files_equal_the_slow_reader(letor_data, name):
    path = letor_data / name
    X, y, qid = slow_matrix(path.read_text().splitlines())
    q = rw.read(path)
    assert same_bits(q.X, X)
    assert np.array_equal(q.y, y)
    if qid[0] is not None:
        assert q.qid.tolist() == [int(i) for i in qid]
    assert same_bits(rw.read(path, dtype="float32").X, X.astype(np.float32))
    assert np.array_equal(rw.read(path, sparse=True).X.toarray(), X, equal_nan=True)


@pytest.mark.letor
@pytest.mark.parametrize("name", ["letor4/MQ2008/S1.txt", "mslr-sample/test.txt"])
def test_equals_scikit_learn(letor_data, name):
    from sklearn.datasets import load_svmlight_file

    X, y, qid = load_svmlight_file(str(letor_data / name), query_id=True)
    q = rw.read(letor_data / name)
    assert np.array_equal(q.X, X.toarray())
    assert np.array_equal(q.y, y)
    assert np.array_equal(q.qid, qid)


@pytest.mark.letor
def test_query_sizes_beside_the_file(letor_data):
    path = letor_data / "lightgbm-lambdarank" / "rank.train"
    q = rw.read(path)
    sizes = [int(s) for s in (path.parent / "rank.train.query").read_text().split()]
    assert q.sizes.tolist() == sizes
    assert q.ids.tolist() == list(range(1, 202))
    assert q.X.shape == (3005, 300)


def test_side_files(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("1 1:1\n0 1:2\n2 2:3\n")
    with pytest.raises(ValueError, match=r"t\.txt:1: expected qid:ID after the label, got '1:1'"):
        rw.read(path)
    (tmp_path / "t.txt.query").write_text("2\n\n1\n")
    (tmp_path / "t.txt.weight").write_text("1\n.5\n2\n")
    q = rw.read(path)
    assert q.sizes.tolist() == [2, 1]
    assert q.weight.tolist() == [1, 0.5, 2]
    (tmp_path / "other").write_text("1\n2\n")
    assert rw.read(path, query=tmp_path / "other").sizes.tolist() == [1, 2]
    # Query ids in the text go before the side file.
    path.write_text("1 qid:4 1:1\n0 qid:5 1:2\n2 qid:5 2:3\n")
    assert rw.read(path).ids.tolist() == [4, 5]
    path.write_text("1 1:1\n0 qid:5 1:2\n2 qid:5 2:3\n")
    with pytest.raises(ValueError, match=r"t\.txt:2: qid must come once, directly after the label"):
        rw.read(path)


@pytest.mark.parametrize(
    ("ending", "content", "message"),
    [
        ("query", "2\n2\n", r"sizes of the queries must sum to the 3 documents, got 4"),
        (
            "query",
            "2\nx\n",
            r"t\.txt\.query:2: expected the number of doc.*, got 'x'",
        ),
        ("query", "4\n-1\n", r"t\.txt\.query:2: expected the number of documents"),
        ("weight", "1\n1\n", r"expected one weight for each of the 3 documents, got 2"),
        ("weight", "1\n1\ninf\n", r"t\.txt\.weight:3: expected a weight of at least 0, got 'inf'"),
    ],
)
def test_bad_side_files(tmp_path, ending, content, message):
    path = tmp_path / "t.txt"
    path.write_text("1 1:1\n0 1:2\n2 2:3\n")
    (tmp_path / "t.txt.query").write_text("3\n")
    (tmp_path / f"t.txt.{ending}").write_text(content)
    with pytest.raises(ValueError, match=message):
        rw.read(path)


# ---------------------------------------------------------------- errors

BAD_LINES = {
    "1 1:0.5": "expected qid:ID after the label, got '1:0.5'",
    "1": "expected qid:ID after the label, got the end of the line",
    "1 qid: 1:2": "expected a query id after 'qid:', got nothing",
    "1 qid:3 0:1": "feature indices count from 1, got '0:1'",
    "1 qid:3 -2:1": "feature indices count from 1, got '-2:1'",
    "1 qid:3 5:1 4:1": "feature indices must ascend, got '4:1' after 5",
    "1 qid:3 5:1 5:2": "feature 5 is given twice in the row",
    "1 qid:3 1:x": "expected a number for feature 1, got 'x'",
    "1 qid:3 1:1 2:": "expected a number for feature 2, got ''",
    "1 qid:3 1:1,5": "expected a number for feature 1, got '1,5'",
    "1 qid:3 1:1_0": "expected a number for feature 1, got '1_0'",
    "1 qid:3 1:0x10": "expected a number for feature 1, got '0x10'",
    "1 qid:3 1:1e999": "feature 1 must be finite, got '1e999'",
    "1 qid:3 2:inf": "feature 2 must be finite, got 'inf'",
    "1 qid:3 x": "expected feature:value, got 'x'",
    "1 qid:3 1:2 3": "expected feature:value, got '3'",
    "1 qid:3 1.5:2": "expected feature:value, got '1.5:2'",
    "1 qid:3 1:2 qid:4": "qid must come once, directly after the label, got 'qid:4'",
    "1 qid:3 2147483648:1": "feature indices must be at most 2147483647, got '2147483648:1'",
    "-1 qid:3 1:1": "labels must be at least 0, got '-1'; say unjudged=",
    "-2 qid:3 1:1": "labels must be at least 0, got '-2'",
    "nan qid:3 1:1": "labels must not be missing, got 'nan'; say unjudged=",
    "inf qid:3 1:1": "labels must be finite, got 'inf'",
    "good qid:3 1:1": "expected a relevance label (a number of at least 0), got 'good'",
    "qid:3 1:1": "expected a relevance label (a number of at least 0), got 'qid:3'",
    "1:1 qid:3": "expected a relevance label (a number of at least 0), got '1:1'",
    "\x00\x01": "expected a relevance label (a number of at least 0), got '\\x00\\x01'",
    "1 qid:3 1:1\x00": "expected feature:value, got '\\x00'",
}


@pytest.mark.parametrize("line", BAD_LINES)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_bad_line_is_named(tmp_path, line, sparse):
    path = tmp_path / "train.txt"
    path.write_text(f"0 qid:3 1:1\n\n# fine\n{line}\n0 qid:3 1:x\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}:4: {BAD_LINES[line]}")):
        rw.read(path, sparse=sparse)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_bad_line_is_reported(threads):
    lines = [f"0 qid:{i // 10} 1:{i} 2:0.5 3:0.25" for i in range(40_000)]
    for bad in (123, 39_000, 777, 20_000):
        lines[bad] = "0 qid:1 1:oops"
    with pytest.raises(ValueError, match=r"^<file>:124: "):
        rw.read_letor(text(*lines), n_threads=threads)


def test_no_documents():
    for content in (b"", b"\n\n", b"# only a comment\n"):
        with pytest.raises(
            ValueError, match=r"^<file>: expected at least one document, got an empty"
        ):
            rw.read_letor(io.BytesIO(content))
    with pytest.raises(
        ValueError, match="expected at least one feature, got rows with labels only"
    ):
        rw.read_letor(text("1 qid:3"))


def test_too_many_features_for_a_dense_matrix():
    lines = ["1 qid:3 1:1", "1 qid:3 2:1", "1 qid:3 2000000000:1"]
    with pytest.raises(
        ValueError, match=r"<file>:3: a dense matrix of 2000000000 features is out of"
    ):
        rw.read_letor(text(*lines))
    assert rw.read_letor(text(*lines), sparse=True).X.shape == (3, 2_000_000_000)
    # An earlier bad line goes first.
    with pytest.raises(ValueError, match=r"<file>:2: feature indices count from 1"):
        rw.read_letor(text(lines[0], "1 qid:3 0:1", lines[2]))


def test_more_features_than_asked_for():
    with pytest.raises(
        ValueError, match=r":2: expected feature indices of at most 3 \(n_features\), got 4"
    ):
        rw.read_letor(text("1 qid:1 3:1", "1 qid:1 4:1"), n_features=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features must be an integer of at least 1"),
        ({"dtype": "int32"}, "dtype must be float32 or float64, got int32"),
        ({"absent": 1.0}, "absent must be 0 or nan, got 1.0"),
        ({"absent": np.nan, "sparse": True}, "a sparse matrix holds 0 for absent features"),
        ({"unjudged": "drop"}, "unjudged must be one of 'refuse', 'ignore', got 'drop'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        rw.read_letor(text("1 qid:1 1:1"), **options)


def test_unknown_format():
    with pytest.raises(ValueError, match=r"unknown format 'parquett'; known: csv.*mean 'parquet'"):
        rw.read("x.txt", format="parquett")


# ---------------------------------------------------------------- sources

LETOR = b"".join(
    b"%d qid:%d 1:%d 2:0.125 #docid = d%d\n" % (i % 3, i // 7, i, i) for i in range(999)
)


def packed(kind):
    if kind == "zst":
        zstandard = pytest.importorskip("zstandard")
        return zstandard.ZstdCompressor().compress(LETOR)
    return {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}[kind](LETOR)


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "zst"])
def test_compressed(tmp_path, kind):
    plain = rw.read(io.BytesIO(LETOR))
    path = tmp_path / f"train.txt.{kind}"
    path.write_bytes(packed(kind))
    assert_same(rw.read(path), plain)
    assert_same(rw.read(io.BytesIO(packed(kind))), plain)
    path.write_bytes(packed(kind) * 2)  # two members one after the other
    assert rw.read(path).n_docs == 2 * plain.n_docs


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "zst"])
def test_truncated_or_damaged(tmp_path, kind):
    path = tmp_path / f"train.txt.{kind}"
    data = packed(kind)
    for cut in (len(data) // 2, len(data) - 3, 7):
        path.write_bytes(data[:cut])
        with pytest.raises(ValueError, match=rf"train\.txt\.{kind}: .*truncated or damaged"):
            rw.read(path)
    path.write_bytes(LETOR)
    with pytest.raises(ValueError, match=r"expected \w+ data by its name, got other bytes"):
        rw.read(path)


def test_zstd_without_its_package(tmp_path, monkeypatch):
    path = tmp_path / "train.txt.zst"
    path.write_bytes(packed("zst"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(
        ImportError, match=r"need the zstandard package; pip install 'rankwise\[zstd\]'"
    ):
        rw.read(path)


def test_standard_input(monkeypatch):
    class Input:
        buffer = io.BytesIO(gzip.compress(LETOR))

    monkeypatch.setattr(sys, "stdin", Input)
    assert rw.read("-").n_docs == 999
    Input.buffer = io.BytesIO(b"1 qid:1 x\n")
    with pytest.raises(ValueError, match=r"^<stdin>:1: expected feature:value"):
        rw.read("-")


def test_pipes_and_open_files(tmp_path):
    read_end, write_end = os.pipe()
    os.write(write_end, LETOR[:20_000].rsplit(b"\n", 1)[0])
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        assert rw.read(pipe).n_features == 2
    path = tmp_path / "a.txt"
    path.write_bytes(LETOR)
    with open(path, "rb") as file:
        assert rw.read(file).n_docs == 999
    with pytest.raises(TypeError, match="must be opened in binary mode"), open(path) as file:
        rw.read(file)
    with pytest.raises(TypeError, match="must be a path, '-' or a binary file object, got int"):
        rw.read(3)
    with pytest.raises(FileNotFoundError):
        rw.read(tmp_path / "nothing.txt")


@pytest.mark.parametrize("mapped", [True, False])
def test_blocks_of_any_size(tmp_path, monkeypatch, mapped):
    expected = rw.read(io.BytesIO(LETOR))
    path = tmp_path / "a.txt"
    path.write_bytes(LETOR)
    for block in (5, 64, 1000):
        monkeypatch.setattr(_files, "_BLOCK", block)
        for threads in (1, 2):
            assert_same(rw.read(path if mapped else io.BytesIO(LETOR), n_threads=threads), expected)


def test_a_line_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(_files, "_BLOCK", 100)
    monkeypatch.setattr(_files, "_LONGEST_LINE", 1000)
    with pytest.raises(ValueError, match="a line must be shorter than"):
        rw.read(io.BytesIO(b"1" * 5000))


def test_threads_do_not_change_the_result():
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.integers(5)} qid:{i // 50} "
        + " ".join(
            f"{j}:{v:.6g}" for j, v in enumerate(rng.normal(size=20), 1) if rng.random() < 0.8
        )
        + f" # d{i}"
        for i in range(5000)
    ]
    for sparse in (False, True):
        one, two = (rw.read_letor(text(*lines), sparse=sparse, n_threads=t) for t in (1, 2))
        assert_same(one, two)


# ---------------------------------------------------------------- round trips


@st.composite
def judged_lists(draw):
    n_queries = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, 4), min_size=n_queries, max_size=n_queries))
    n, width = sum(sizes), draw(st.integers(1, 4))
    single = draw(st.booleans())
    cell = st.one_of(
        st.sampled_from([0.0, 1.0, 1e-5, 100000.0, 1e22, np.nan]),
        st.floats(width=32 if single else 64, allow_infinity=False),
    )
    X = np.array(draw(st.lists(cell, min_size=n * width, max_size=n * width)))
    X = X.reshape(n, width).astype(np.float32 if single else np.float64)
    word = st.text("abcXYZ019-_.é", min_size=1, max_size=6)
    ids = draw(
        st.one_of(
            st.lists(st.integers(-9, 10**12), min_size=n_queries, max_size=n_queries, unique=True),
            st.lists(word, min_size=n_queries, max_size=n_queries, unique=True),
        )
    )
    docs = draw(
        st.one_of(
            st.none(),
            st.lists(word, min_size=n, max_size=n),
            st.lists(word.map(lambda w: f"{w} {w}"), min_size=n, max_size=n),
        )
    )
    labels = st.one_of(st.integers(0, 4).map(float), st.floats(0, 1e6))
    weight = draw(st.one_of(st.none(), st.lists(st.floats(0, 9), min_size=n, max_size=n)))
    return rw.Queries.from_arrays(
        X,
        np.array(draw(st.lists(labels, min_size=n, max_size=n))),
        np.repeat(np.array(ids), sizes),
        docs=docs,
        weight=weight,
    )


def read_back(queries, ending, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"a{ending}")
        rw.write(queries, path)
        return rw.read(path, **options)


@pytest.mark.parametrize("ending", [".txt", ".txt.gz", ".csv", ".parquet", ".npz"])
@settings(max_examples=12)
@given(queries=judged_lists())
def test_round_trip(queries, ending):
    back = read_back(queries, ending, **({} if ending == ".npz" else {"dtype": queries.X.dtype}))
    ids_as_text = [str(i) for i in queries.ids]
    assert [str(i) for i in back.ids] == ids_as_text
    assert same_bits(back.X, queries.X)
    assert np.array_equal(back.y, queries.y)
    assert back.offsets.tolist() == queries.offsets.tolist()
    assert (back.docs is None) == (queries.docs is None)
    if queries.docs is not None:
        assert [str(d) for d in back.docs] == queries.docs.tolist()
    assert (back.weight is None) == (queries.weight is None)
    if queries.weight is not None:
        assert np.array_equal(back.weight, queries.weight)


@settings(max_examples=12)
@given(queries=judged_lists())
def test_round_trip_sparse(queries):
    sparse = queries.with_features(sp.csr_matrix(queries.X))
    for ending in (".txt", ".npz"):
        options = {} if ending == ".npz" else {"dtype": queries.X.dtype, "sparse": True}
        back = read_back(sparse, ending, **options)
        assert back.X.shape == sparse.X.shape  # also where the last columns are zero
        assert np.array_equal(back.X.toarray(), sparse.X.toarray(), equal_nan=True)


def written(queries):
    """What goes to standard output."""
    out = io.BytesIO()
    with mock.patch.object(sys, "stdout", io.TextIOWrapper(out)):
        rw.write(queries, "-")
        return out.getvalue()


def test_written_text():
    q = rw.Queries.from_arrays(
        np.array([[0.1, 44152, -0.0], [1e-5, np.nan, 1e300]]),
        [2, 0.5],
        ["a", "a"],
        docs=["d1", "two words"],
    )
    assert written(q).decode().splitlines() == [
        "2 qid:a 1:0.1 2:44152 3:-0 #docid = d1",
        "0.5 qid:a 1:1e-05 2:nan 3:1e+300 # two words",
    ]


def test_float32_digits_read_back():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, 60_000, dtype=np.uint32).view(np.float32)
    X = bits[np.isfinite(bits)][:50_000].reshape(-1, 50)
    q = rw.Queries.from_arrays(X, np.zeros(len(X)), np.zeros(len(X), int))
    assert same_bits(rw.read(io.BytesIO(written(q)), dtype="float32").X, X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qid": ["a b"]}, "query ids must not be empty or hold white space or '#', got 'a b'"),
        ({"qid": ["a#"]}, "query ids must not be empty"),
        ({"docs": ["a\nb"]}, "a document id must fit a comment"),
        ({"docs": [" a"]}, "a document id must fit a comment"),
        ({"docs": ["docid = 3"]}, "a document id must fit a comment"),
    ],
)
def test_what_letor_text_cannot_hold(tmp_path, change, message):
    fields = {"X": [[1.0]], "y": [1.0], "qid": ["q"]} | change
    queries = rw.Queries.from_arrays(**fields)
    with pytest.raises(ValueError, match=message):
        rw.write(queries, tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


def test_infinite_features_are_not_written(tmp_path):
    queries = rw.make_queries(n_queries=2)
    X = queries.X.copy()
    X[3, 2] = np.inf
    with pytest.raises(ValueError, match="features and labels must be finite or NaN"):
        rw.write(queries.with_features(X), tmp_path / "a.txt")


def test_weights_of_another_file_are_not_taken_over(tmp_path):
    queries = rw.make_queries(n_queries=2)
    (tmp_path / "a.txt.weight").write_text("1\n")
    with pytest.raises(ValueError, match=r"a\.txt\.weight would be read as the weights"):
        rw.write(queries, tmp_path / "a.txt")


@pytest.mark.letor
@pytest.mark.parametrize("ending", [".txt", ".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("name", REAL_FILES)
def test_round_trip_of_real_files(letor_data, tmp_path, name, ending):
    queries = rw.read(letor_data / name)
    queries = queries.take(range(min(8, len(queries))))
    rw.write(queries, tmp_path / f"a{ending}")
    assert_same(rw.read(tmp_path / f"a{ending}"), queries)


# ---------------------------------------------------------------- tables


def frame_of(backend, columns):
    if backend == "pandas":
        return pytest.importorskip("pandas").DataFrame(columns)
    if backend == "polars":
        return pytest.importorskip("polars").DataFrame(columns)
    return pytest.importorskip("pyarrow").table(columns)


BACKENDS = ["pandas", "polars", "pyarrow"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_frames(backend):
    columns = {
        "bm25": [1.5, None, 3.0],
        "query": ["b", "a", "b"],
        "clicks": [1, 2, 3],
        "fresh": [True, False, True],
        "grade": [2, 0, 1],
        "doc": ["x", "y", "z"],
        "weight": [1.0, 2.0, 0.5],
    }
    q = rw.from_frame(frame_of(backend, columns), label="grade", qid="query")
    assert q.feature_names == ("bm25", "clicks", "fresh")
    assert np.array_equal(q.X, [[1.5, 1, 1], [3, 3, 1], [np.nan, 2, 0]], equal_nan=True)
    assert q.ids.tolist() == ["b", "a"]
    assert q.y.tolist() == [2, 1, 0]
    assert q.docs.tolist() == ["x", "z", "y"]
    assert q.weight.tolist() == [1, 0.5, 2]
    some = rw.from_frame(
        frame_of(backend, columns), label="grade", qid="query", features=["clicks"], doc=None
    )
    assert some.X.tolist() == [[1], [3], [2]]
    assert some.docs is None


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_frames_round_trip(backend, dtype):
    q = rw.make_queries(n_queries=5, dtype=dtype)
    back = rw.from_frame(rw.to_frame(q, backend))
    assert_same(back, q)
    assert back.feature_names == q.feature_names


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"label": None}, ValueError, "a column 'label' must be there, got 'f', 'qid'"),
        ({"f": ["x", "y"]}, TypeError, "feature columns must hold numbers, got 'f' of type String"),
        ({"label": ["x", "y"]}, TypeError, "column 'label' must hold numbers"),
        ({"label": [1.0, None]}, ValueError, "labels must not be missing, got none in row 1"),
        ({"label": [1.0, -1.0]}, ValueError, "labels of at least 0"),
        ({"qid": ["a", None]}, ValueError, "column 'qid' must not be missing, got none in row 1"),
        ({"f": [1.0, np.inf]}, ValueError, "infinity"),
        ({"f": None}, ValueError, "expected at least one feature column"),
    ],
)
def test_bad_frames(backend, change, error, message):
    columns = {"f": [1.0, 2.0], "qid": ["a", "b"], "label": [1.0, 0.0]} | change
    frame = frame_of(backend, {k: v for k, v in columns.items() if v is not None})
    with pytest.raises(error, match=message):
        rw.from_frame(frame)


def test_what_is_no_frame():
    with pytest.raises(TypeError, match="must be a pandas, polars or pyarrow frame, got list"):
        rw.from_frame([1, 2])
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match="collect a lazy frame first"):
        rw.from_frame(polars.LazyFrame({"qid": [1], "label": [1], "f": [1.0]}))


def test_a_sparse_matrix_is_no_table(tmp_path):
    q = rw.make_queries(n_queries=2)
    q = q.with_features(sp.csr_matrix(q.X))
    with pytest.raises(TypeError, match="a table holds dense features, got a sparse matrix"):
        rw.to_frame(q)
    with pytest.raises(TypeError, match="a table holds dense features"):
        rw.write(q, tmp_path / "a.csv")


CSV = 'qid,label,bm25,doc\na,1,0.1,x\na,0,NULL,"y,1"\nb,2,,z\n'


@pytest.fixture(params=["pyarrow", "csv"])
def csv_engine(request, monkeypatch):
    """Both ways to read CSV: with pyarrow and without."""
    if request.param == "csv":
        monkeypatch.setattr(tables, "_has", lambda module: False)
    else:
        pytest.importorskip("pyarrow")
    return request.param


def test_csv(csv_engine, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    q = rw.read(path)
    assert np.array_equal(q.X, [[0.1], [np.nan], [np.nan]], equal_nan=True)
    assert q.ids.tolist() == ["a", "b"]
    assert q.docs.tolist() == ["x", "y,1", "z"]
    path.write_text(CSV.replace("label", "grade"))
    assert rw.read(path, label="grade").y.tolist() == [1, 0, 2]
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write(CSV)
    assert rw.read(tmp_path / "a.csv.gz").n_docs == 3
    (tmp_path / "a.tsv").write_text("qid\tlabel\tf\n1\t2\t3\n")
    assert rw.read(tmp_path / "a.tsv").ids.dtype.kind == "i"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.1", "0.1x", r"a\.csv:2: expected a number in column 'bm25', got '0\.1x'"),
        ("0.1", "inf", r"a\.csv:2: column 'bm25' must be finite, got 'inf'"),
        ("b,2,,z", "b,2,z", r"a\.csv:4: expected 4 fields as in the header, got 3"),
        ("b,2,,z", "b,-2,,z", r"a\.csv:4: labels must be at least 0, got -2"),
        ("b,2,,z", "b,,,z", r"a\.csv:4: labels must not be missing"),
        ("b,2,,z", ",2,,z", r"a\.csv:4: expected a query id in column 'qid', got nothing"),
        ("label", "grade", r"a\.csv: a column 'label' must be there, got 'qid', 'grade'"),
        (CSV, "", r"a\.csv: a column 'label' must be there, got no columns"),
        (CSV, "qid,label,f\n", r"a\.csv: expected at least one document"),
        ("b,2,,z", "\xff,2,,z", r"a\.csv:4: expected UTF-8 text"),
    ],
)
def test_bad_csv(csv_engine, tmp_path, old, new, message):
    path = tmp_path / "a.csv"
    path.write_bytes(CSV.replace(old, new).encode("latin-1"))
    with pytest.raises(ValueError, match=message):
        rw.read(path)


@given(queries=judged_lists())
@settings(max_examples=15)
def test_csv_without_pyarrow_round_trips(queries):
    with mock.patch.object(tables, "_has", return_value=False):
        back = read_back(queries, ".csv", dtype=queries.X.dtype)
    assert same_bits(back.X, queries.X)
    assert np.array_equal(back.y, queries.y)


def test_parquet_errors(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"not parquet")
    with pytest.raises(ValueError, match=r"a\.parquet: expected a Parquet file, got other bytes"):
        rw.read(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"need pyarrow; pip install 'rankwise\[parquet\]'"):
        rw.read(path)


def test_npz_of_plain_arrays(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.eye(3), y=np.arange(3), qid=np.array(["a", "b", "a"]))
    q = rw.read(path)
    assert q.ids.tolist() == ["a", "b"]
    np.savez(path, X=np.eye(3), y=np.arange(3))
    with pytest.raises(ValueError, match=r"a\.npz: expected the arrays X, qid, y, got X, y"):
        rw.read(path)
    np.savez(path, X=np.eye(3), y=np.arange(2), qid=np.arange(3))
    with pytest.raises(ValueError, match=r"a\.npz: y must have one entry per row of X"):
        rw.read(path)
    np.savez(path, X=np.array([[{}]], dtype=object), y=np.arange(2), qid=np.arange(3))
    with pytest.raises(ValueError, match=r"a\.npz: expected NumPy's \.npz, got other or damaged"):
        rw.read(path)
    data = path.read_bytes()
    for cut in (0, 10, len(data) // 2):
        path.write_bytes(data[:cut])
        with pytest.raises(ValueError, match=r"a\.npz: "):
            rw.read(path)


# ---------------------------------------------------------------- writing


def test_a_killed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted():
        with _files.atomic_write(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_permissions_and_links(tmp_path):
    path, link = tmp_path / "a.txt", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    with _files.atomic_write(link, "w") as file:
        file.write("new")
    assert path.read_text() == "new"
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    fresh = tmp_path / "fresh"
    with _files.atomic_write(fresh) as file:
        file.write(b"x")
    mask = os.umask(0)
    os.umask(mask)
    assert fresh.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_path_that_cannot_be_written(tmp_path):
    queries = rw.make_queries(n_queries=2)
    for ending in ("txt", "csv", "parquet", "npz"):
        with pytest.raises(
            OSError, match=r"nowhere/a\.\w+: the output cannot be written: No such file"
        ):
            rw.write(queries, tmp_path / "nowhere" / f"a.{ending}")
    with pytest.raises(IsADirectoryError, match="the output must be a file, got a directory"):
        rw.write(queries, tmp_path)


def test_equal_lists_give_equal_gzip_files(tmp_path):
    queries = rw.make_queries(n_queries=2)
    for name in ("a", "b"):
        rw.write(queries, tmp_path / f"{name}.txt.gz")
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()


# ---------------------------------------------------------------- folds and description


def letor_lines(queries, width=3):
    return "".join(
        f"{q % 3} qid:{q} {width}:{q}.5\n1 qid:{q} 1:{i}\n" for i, q in enumerate(queries)
    )


def test_folds_in_folders(tmp_path):
    for i in (1, 2):
        (tmp_path / f"Fold{i}").mkdir()
        for j, name in enumerate(("train.txt", "vali.txt", "test.txt")):
            (tmp_path / f"Fold{i}" / name).write_text(letor_lines([10 * i + j], width=3 - j))
    first, second = rw.fold_paths(tmp_path)
    assert first.name == "Fold1"
    assert first.train == (tmp_path / "Fold1" / "train.txt",)
    assert second.valid == tmp_path / "Fold2" / "vali.txt"
    assert second.test == tmp_path / "Fold2" / "test.txt"
    for i, fold in enumerate(rw.read_folds(tmp_path), 1):
        assert [part.ids.tolist() for part in fold] == [[10 * i], [10 * i + 1], [10 * i + 2]]
        assert {part.n_features for part in fold} == {3}
    (tmp_path / "Fold2" / "vali.txt").unlink()
    with pytest.raises(ValueError, match=r"expected vali\.txt in .*Fold2, got no such file"):
        rw.fold_paths(tmp_path)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("names", "tested"), [("S{}.txt", [5, 1, 2, 3, 4]), ("Fold{}-test.txt", [1, 2, 3, 4, 5])]
)
def test_parts_that_rotate(tmp_path, names, tested, sparse):
    for i in range(1, 6):
        (tmp_path / names.format(i)).write_text(letor_lines([i], width=i))
    folds = list(rw.read_folds(tmp_path, sparse=sparse))
    assert [test.ids.tolist() for _, _, test in folds] == [[i] for i in tested]
    for (train, valid, test), i in zip(folds, tested, strict=True):
        before = (i - 2) % 5 + 1
        assert valid.ids.tolist() == [before]
        assert train.ids.tolist() == sorted({1, 2, 3, 4, 5} - {i, before})
        assert {part.n_features for part in (train, valid, test)} == {5}


def test_no_folds(tmp_path):
    with pytest.raises(ValueError, match="fold_paths: expected a folder, got"):
        rw.fold_paths(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"expected Fold1/, Fold2/, .* got none of them"):
        rw.fold_paths(tmp_path)
    for i in (1, 2, 4):
        (tmp_path / f"S{i}.txt").write_text("")
    with pytest.raises(ValueError, match="must be numbered from 1 without gaps, got 1, 2, 4"):
        rw.fold_paths(tmp_path)


@pytest.mark.letor
def test_folds_of_real_collections(letor_data):
    folds = rw.fold_paths(letor_data / "letor4" / "MQ2008")
    assert [f.test.stem for f in folds] == ["S5", "S1", "S2", "S3", "S4"]
    assert [f.valid.stem for f in folds] == ["S4", "S5", "S1", "S2", "S3"]
    assert [p.stem for p in folds[3].train] == ["S1", "S4", "S5"]
    ohsumed = rw.read_folds(letor_data / "letor3" / "OHSUMED" / "QueryLevelNorm")
    train, valid, _ = next(ohsumed)
    assert (train.n_docs, valid.n_docs) == (9219, 3538)


def slow_description(X, y, qid):
    def same(a, b):
        return a == b or (a != a and b != b)

    def constant(rows, j):
        return all(same(X[i, j], X[rows[0], j]) for i in rows)

    lists = [[i for i in range(len(y)) if qid[i] == q] for q in dict.fromkeys(qid)]
    everywhere = {j + 1 for j in range(X.shape[1]) if constant(range(len(y)), j)}
    inside = {j + 1 for j in range(X.shape[1]) if all(constant(rows, j) for rows in lists)}
    rows = [tuple("nan" if v != v else float(v) for v in row) for row in X]
    return {
        "constant_features": tuple(sorted(everywhere)),
        "query_constant_features": tuple(sorted(inside - everywhere)),
        "missing": {j + 1: int(n) for j, n in enumerate(np.isnan(X).sum(axis=0)) if n},
        "n_repeated": len(rows) - len(set(rows)),
        "n_repeated_in_query": len(rows) - len({(q, r) for q, r in zip(qid, rows, strict=True)}),
        "n_without_relevant": sum(not any(y[i] > 0 for i in rows) for rows in lists),
        "n_single_document": sum(len(rows) == 1 for rows in lists),
        "n_single_label": sum(
            len(rows) > 1 and len({y[i] for i in rows if y[i] == y[i]}) == 1 for rows in lists
        ),
    }


@given(st.data())
def test_describe(data):
    n, width = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4))
    cell = st.sampled_from([0.0, 0.0, 1.0, -0.0, np.nan])
    X = np.array(data.draw(st.lists(cell, min_size=n * width, max_size=n * width))).reshape(
        n, width
    )
    y = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, np.nan]), min_size=n, max_size=n)))
    qid = data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    expected = slow_description(X, y, qid)
    queries = rw.Queries.from_arrays(X, y, qid)
    for X_kept in (queries.X, queries.X.astype(np.float32), sp.csr_matrix(queries.X)):
        found = rw.describe(queries.with_features(X_kept))
        assert {name: getattr(found, name) for name in expected} == expected
        assert found.n_unjudged == np.isnan(y).sum()
        assert sum(found.labels.values()) + found.n_unjudged == n


@pytest.mark.letor
def test_describe_ohsumed(letor_data):
    folder = letor_data / "letor3" / "OHSUMED" / "QueryLevelNorm"
    found = rw.describe(rw.concatenate([rw.read(path) for path in sorted(folder.iterdir())]))
    assert (found.n_queries, found.n_docs, found.n_features) == (106, 16_140, 45)
    assert found.labels == {0.0: 11_303, 1.0: 2_585, 2.0: 2_252}
    assert found.constant_features == (5, 6, 7, 20, 21, 22, 35, 36, 37)
    assert found.n_repeated_in_query == 2052
    assert found.n_without_relevant == 1
    raw = rw.describe(rw.read(folder.parent / "Feature-null" / "Fold1-test.txt"))
    assert list(raw.missing) == [*range(11, 16), *range(26, 31), *range(41, 46)]


def test_a_description_is_plain_data():
    import json

    found = rw.describe(rw.make_queries(n_queries=3))
    assert json.loads(json.dumps(found.as_dict()))["n_docs"] == 90


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_moved_in_place(dtype):
    from rankwise import _core

    rng = np.random.default_rng(0)
    X = rng.normal(size=(57, 3)).astype(dtype)
    order = rng.permutation(57)
    expected = X[order]
    _core.permute_rows(X, order)
    assert np.array_equal(X, expected)
    for bad in (np.zeros(57, int), np.arange(57) + 1, np.arange(56)):
        with pytest.raises(ValueError, match="order must"):
            _core.permute_rows(X, bad)


def test_the_chapter_on_data_runs():
    import doctest
    from pathlib import Path

    pytest.importorskip("pandas")
    chapter = Path(__file__).parents[1] / "docs" / "data.md"
    failed, tried = doctest.testfile(str(chapter), module_relative=False)
    assert failed == 0
    assert tried > 5


@pytest.mark.parametrize("module", ["formats", "tables", "folds", "summary"])
def test_examples_in_docstrings(module):
    import doctest
    import importlib

    pytest.importorskip("polars")
    result = doctest.testmod(importlib.import_module(f"rankwise.{module}"))
    assert result.failed == 0
