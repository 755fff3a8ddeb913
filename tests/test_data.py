"""Query groups and judged lists against slow references, and every way to pass query ids."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw
from rankwise.data import canonical, mix, row_hashes

ids = st.one_of(
    st.lists(st.integers(-3, 3), max_size=30),
    st.lists(st.sampled_from(["", "a", "b", "aa", "é"]), max_size=30),
    st.lists(st.integers(2**63, 2**63 + 3), max_size=30),
    st.lists(st.sampled_from([0.5, 1.0, -0.0, 0.0, 1e300]), max_size=30),
)


def rows_by_query(qid):
    """{id: [rows]} in order of first appearance."""
    found = {}
    for row, query in enumerate(qid):
        found.setdefault(query, []).append(row)
    return found


@given(ids)
def test_groups_equal_a_dictionary(qid):
    groups = rw.group_rows(qid)
    expected = rows_by_query(qid)
    assert len(groups) == len(expected)
    assert groups.n_docs == len(qid)
    assert groups.ids.tolist() == list(expected)
    order = np.arange(len(qid)) if groups.order is None else groups.order
    starts = groups.offsets
    assert starts.dtype == np.int64
    got = [order[a:b].tolist() for a, b in pairwise(starts)]
    assert got == list(expected.values())
    assert groups.sizes.tolist() == [len(rows) for rows in expected.values()]


@given(ids)
def test_gather_scatter_and_spread(qid):
    groups = rw.group_rows(qid)
    column = np.arange(len(qid))
    assert groups.scatter(groups.gather(column)).tolist() == column.tolist()
    numbers = {query: i for i, query in enumerate(rows_by_query(qid))}
    assert groups.spread(np.arange(len(groups))).tolist() == [numbers[q] for q in qid]


def test_contiguous_rows_need_no_order():
    assert rw.group_rows([3, 3, 1, 1, 2]).order is None
    assert rw.group_rows([3, 1, 3]).order is not None


TWO_QUERIES = {
    "int32": np.array([7, 7, 2], np.int32),
    "uint64": np.array([2**64 - 1, 2**64 - 1, 2], np.uint64),
    "float": np.array([7.0, 7.0, 2.0]),
    "bool": np.array([True, True, False]),
    "list of str": ["b", "b", "a"],
    "bytes": np.array([b"b", b"b", b"a"]),
    "object of str": np.array(["b", "b", "a"], dtype=object),
    "object of bytes": np.array([b"b", b"b", b"a"], dtype=object),
    "object of int": np.array([7, 7, 2], dtype=object),
    "object of huge int": [10**30, 10**30, 1],
    "int and float": np.array([7, 7.0, 2], dtype=object),
    "int and str": np.array([7, 7, "b"], dtype=object),
    "dates": np.array(["2024-01-01", "2024-01-01", "2024-01-02"], "M8[D]"),
    "column": np.array([[7], [7], [2]]),
    "pandas": pd.Series([7, 7, 2], index=[5, 1, 9]),
    "pandas Int64": pd.Series([7, 7, 2], dtype="Int64"),
    "pandas string": pd.Series(["b", "b", "a"], dtype="string"),
    "pandas categorical": pd.Series(["b", "b", "a"], dtype="category"),
    "polars": pl.Series([7, 7, 2]),
    "polars str": pl.Series(["b", "b", "a"]),
    "pyarrow": pa.array([7, 7, 2]),
    "pyarrow str": pa.array(["b", "b", "a"]),
    "pyarrow chunked": pa.chunked_array([["b"], ["b", "a"]]),
}


@pytest.mark.parametrize("name", TWO_QUERIES)
def test_ids_of_every_type(name):
    groups = rw.group_rows(TWO_QUERIES[name])
    assert groups.offsets.tolist() == [0, 2, 3]
    assert len(groups.ids) == 2
    assert groups.ids.dtype.kind != "O"


MISSING = {
    "NaN": [1.0, float("nan")],
    "None": np.array(["a", None], dtype=object),
    "NaN among text": np.array(["a", float("nan")], dtype=object),
    "NaT": np.array(["2024-01-01", "NaT"], "M8[D]"),
    "pandas NA": pd.Series([1, None], dtype="Int64"),
    "pandas NA as object": np.array([1, pd.NA], dtype=object),
    "pandas str": pd.Series(["a", None]),
    "polars": pl.Series([1, None]),
    "polars str": pl.Series(["a", None]),
    "pyarrow": pa.array(["a", None]),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_id_is_refused(name):
    with pytest.raises(ValueError, match=r"^group_rows: qid must not be missing, got .* at row 1$"):
        rw.group_rows(MISSING[name])


@pytest.mark.parametrize("qid", [[1, "1"], [b"a", "a"], [Decimal("1"), Decimal("1.0")], [(1,), []]])
def test_ids_that_text_cannot_tell_apart(qid):
    column = np.empty(2, dtype=object)
    column[:] = qid
    with pytest.raises(TypeError, match="group_rows: qid must hold ids of one type"):
        rw.group_rows(column)


def test_ids_of_two_dimensions():
    with pytest.raises(ValueError, match=re.escape("one id per document, got shape (2, 2)")):
        rw.group_rows([[1, 2], [3, 4]])


def test_groups_pass_through():
    groups = rw.group_rows([1, 2])
    assert rw.group_rows(groups) is groups


@given(st.lists(st.integers(0, 5), max_size=10))
def test_qid_from_sizes(sizes):
    qid = rw.qid_from_sizes(np.array(sizes, dtype=np.int64))
    assert np.bincount(qid, minlength=len(sizes)).tolist() == sizes
    assert (np.diff(qid) >= 0).all()


@pytest.mark.parametrize("bad", [[-1, 2], [1.5], [[1, 2]], ["a"]])
def test_qid_from_sizes_refuses(bad):
    with pytest.raises(ValueError, match="qid_from_sizes: group must be the sizes"):
        rw.qid_from_sizes(bad)


# --- Queries -----------------------------------------------------------------------------------


def some_queries(seed=0, n_queries=7, sparse=False, **columns):
    """Queries with lists of 1 to 4 documents, stored interleaved."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(n_queries) * 10, rng.integers(1, 5, n_queries)))
    X = rng.standard_normal((len(qid), 3))
    X[rng.random(X.shape) < 0.4] = 0.0
    y = rng.integers(0, 3, len(qid)).astype(float)
    X = sp.csr_matrix(X) if sparse else X
    return rw.Queries.from_arrays(X, y, qid, **columns)


def dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("sparse", [False, True])
@given(picks=st.lists(st.integers(-7, 6), max_size=10))
def test_take_equals_one_query_after_another(sparse, picks):
    queries = some_queries(sparse=sparse, docs=None)
    taken = queries.take(picks)
    each = list(queries)
    assert taken.ids.tolist() == [queries.ids[i] for i in picks]
    assert taken.y.tolist() == [v for i in picks for v in each[i].y]
    assert dense(taken.X).tolist() == [v for i in picks for v in dense(each[i].X).tolist()]
    assert taken.qid.tolist() == [queries.ids[i] for i in picks for _ in range(queries.sizes[i])]


def test_take_by_mask_and_by_range():
    queries = some_queries()
    mask = queries.sizes > 2
    assert queries.take(mask).ids.tolist() == queries.ids[mask].tolist()
    assert queries.take(range(2)).ids.tolist() == queries.ids[:2].tolist()


@pytest.mark.parametrize(
    ("picks", "error", "text"),
    [
        ([7], IndexError, "Queries.take: positions must be below the 7 queries, got 7"),
        ([-8], IndexError, "got -8"),
        ([0.5], TypeError, "positions or a mask"),
        ([[1]], TypeError, "positions or a mask"),
        ([True, False], ValueError, "one entry per query, got shape (2,) for 7 queries"),
    ],
)
def test_take_refuses(picks, error, text):
    with pytest.raises(error, match=re.escape(text)):
        some_queries().take(picks)


def test_columns_travel_with_their_rows():
    rng = np.random.default_rng(1)
    qid = rng.integers(0, 4, 20)
    row = np.arange(20.0)
    queries = rw.Queries.from_arrays(
        row[:, None], np.zeros(20), qid, docs=[f"d{i:.0f}" for i in row], weight=row
    )
    for q in queries:
        assert q.X[:, 0].tolist() == row[qid == q.ids[0]].tolist()
        assert q.weight.tolist() == q.X[:, 0].tolist()
        assert q.docs.tolist() == [f"d{i:.0f}" for i in q.weight]


def test_contiguous_rows_are_not_copied():
    X = np.ones((3, 2), np.float32)
    assert np.shares_memory(rw.Queries.from_arrays(X, [0, 1, 0], [1, 1, 2]).X, X)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"y": [1.0]}, "y must have one entry per row of X, got 1 for 3 rows"),
        ({"qid": [1, 1]}, "qid must have one entry per row of X, got 2 for 3 rows"),
        ({"docs": ["a"]}, "docs must have one entry per row of X, got 1 for 3 rows"),
        ({"weight": [1.0]}, "sample_weight must hold one weight per document, got 1 for 3"),
        ({"weight": [1.0, -1.0, 1.0]}, "at least 0 and finite, got -1.0 at row 1"),
        ({"y": [0, 1, -1]}, "at least 0 and finite, got -1 at row 2"),
        ({"X": [1.0, 2.0, 3.0]}, "must be two-dimensional"),
        ({"feature_names": ("a",)}, "must name each of the 2 features, got 1 names"),
    ],
)
def test_from_arrays_refuses(change, text):
    good = {"X": np.ones((3, 2)), "y": [0, 1, 2], "qid": [1, 1, 2]}
    with pytest.raises(ValueError, match=f"^Queries: .*{re.escape(text)}"):
        rw.Queries.from_arrays(**(good | change))


@pytest.mark.parametrize("fractions", [(0.6, 0.2, 0.2), (0.5, 0.25), (1.0,)])
def test_split_keeps_queries_whole(fractions):
    queries = some_queries(n_queries=40)
    parts = queries.split(fractions, rng=3)
    assert [len(p) for p in parts] == [round(40 * f) for f in fractions]
    seen = np.concatenate([p.ids for p in parts])
    assert len(np.unique(seen)) == len(seen)
    size = dict(zip(queries.ids.tolist(), queries.sizes.tolist(), strict=True))
    assert all(size[q] == n for p in parts for q, n in zip(p.ids, p.sizes, strict=True))
    again = queries.split(fractions, rng=3)
    assert all(np.array_equal(a.ids, b.ids) for a, b in zip(parts, again, strict=True))
    assert not np.array_equal(parts[0].ids, queries.split(fractions, rng=4)[0].ids) or (
        fractions == (1.0,)
    )


@pytest.mark.parametrize("fractions", [(0.8, 0.3), (0.0, 1.0), (-0.1,), (0.99, 0.01)])
def test_split_refuses(fractions):
    with pytest.raises(ValueError, match=r"Queries\.split: "):
        some_queries().split(fractions)


@pytest.mark.parametrize("n_folds", [3, 5])
def test_folds_rotate(n_folds):
    queries = some_queries(n_queries=13)
    folds = queries.folds(n_folds, rng=1)
    everything = set(queries.ids.tolist())
    tests = [set(test.ids.tolist()) for _, _, test in folds]
    assert set().union(*tests) == everything
    assert sum(map(len, tests)) == len(everything)
    for i, (train, valid, test) in enumerate(folds):
        parts = [set(p.ids.tolist()) for p in (train, valid, test)]
        assert set().union(*parts) == everything
        assert sum(map(len, parts)) == len(everything)
        assert set(valid.ids.tolist()) == tests[i - 1]


@pytest.mark.parametrize("n_folds", [2, 8])
def test_folds_refuse(n_folds):
    with pytest.raises(ValueError, match=r"Queries\.folds: n_folds must be at least 3"):
        some_queries().folds(n_folds)


@pytest.mark.parametrize("sparse", [False, True])
def test_concatenate_undoes_take(sparse):
    queries = some_queries(sparse=sparse)
    parts = [queries.take([0, 1]), queries.take([2]), queries.take(range(3, 7))]
    whole = rw.concatenate(parts)
    assert whole.offsets.tolist() == queries.offsets.tolist()
    assert whole.ids.tolist() == queries.ids.tolist()
    assert dense(whole.X).tolist() == dense(queries.X).tolist()
    assert whole.y.tolist() == queries.y.tolist()


def test_concatenate_dense_and_sparse():
    queries = some_queries()
    rest = queries.take(range(1, 7)).with_features(sp.csr_matrix(queries.take(range(1, 7)).X))
    whole = rw.concatenate([queries.take([0]), rest])
    assert whole.X.toarray().tolist() == queries.X.tolist()


def test_concatenate_refuses():
    a, b = some_queries().take([0]), some_queries().take([1])
    n = b.n_docs
    for parts, text in [
        ([], "at least one part"),
        ([a, a], "repeated query ids"),
        ([a, b.with_features(np.ones((n, 5)))], "same number of features, got 3 and 5"),
        ([a, rw.Queries.from_arrays(b.X, b.y, b.qid, docs=["d"] * n)], "have docs"),
        ([a, rw.Queries.from_arrays(b.X, b.y, b.qid, weight=np.ones(n))], "have weight"),
        ([a, rw.Queries.from_arrays(b.X, b.y, b.qid, feature_names=("p", "q", "r"))], "names"),
    ]:
        with pytest.raises(ValueError, match=f"concatenate: .*{text}"):
            rw.concatenate(parts)


def test_with_features():
    queries = rw.Queries.from_arrays(np.ones((2, 2)), [0, 1], [1, 1], feature_names=("a", "b"))
    assert queries.with_features(np.zeros((2, 2))).feature_names == ("a", "b")
    assert queries.with_features(np.zeros((2, 1))).feature_names is None
    with pytest.raises(ValueError, match="one row per document, got 3 for 2 documents"):
        queries.with_features(np.zeros((3, 2)))


# --- canonical order ---------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@given(seed=st.integers(0, 10**6))
def test_canonical_forgets_how_rows_were_stored(sparse, weighted, seed):
    rng = np.random.default_rng(seed)
    n = 25
    qid = rng.integers(0, 6, n)
    X = rng.integers(0, 2, (n, 2)).astype(float)  # many equal rows, and equal queries too
    y = rng.integers(0, 3, n).astype(float)
    w = rng.integers(0, 2, n).astype(float) if weighted else None
    names = rng.permutation(6)  # the queries under other names
    shuffle = rng.permutation(n)

    def sorted_lists(rows, ids):
        features = sp.csr_matrix(X[rows]) if sparse else X[rows]
        weight = None if w is None else w[rows]
        return canonical(rw.Queries.from_arrays(features, y[rows], ids[qid[rows]], weight=weight))

    a, b = sorted_lists(np.arange(n), np.arange(6)), sorted_lists(shuffle, names)
    assert a.offsets.tolist() == b.offsets.tolist()
    assert dense(a.X).tolist() == dense(b.X).tolist()
    assert a.y.tolist() == b.y.tolist()
    if weighted:
        assert a.weight.tolist() == b.weight.tolist()


def test_canonical_keeps_the_lists():
    queries = some_queries(n_queries=9)
    marked = rw.Queries.from_arrays(
        queries.X, queries.y, queries.qid, docs=np.arange(queries.n_docs)
    )
    moved = canonical(marked)
    for q in moved:
        rows = np.sort(q.docs)
        original = queries.take(queries.ids == q.ids[0])
        assert queries.X[rows].tolist() == original.X.tolist()
        assert queries.X[q.docs].tolist() == q.X.tolist()
        assert queries.y[q.docs].tolist() == q.y.tolist()


def test_equal_rows_hash_alike_in_every_form():
    X = np.array([[0.0, 1.5, np.nan], [-0.0, 1.5, np.nan], [1.5, 0.0, np.nan]])
    a = row_hashes(X)
    assert a[0] == a[1] != a[2]
    assert row_hashes(X.astype(np.float32)).tolist() == a.tolist()
    csr = sp.csr_matrix(X)
    assert row_hashes(csr).tolist() == a.tolist()
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    assert row_hashes(csr).tolist() == a.tolist()


def test_hashes_do_not_collide_or_depend_on_threads():
    from rankwise import _core

    X = np.random.default_rng(0).integers(0, 4, (100_000, 6)).astype(float)
    hashes = row_hashes(X)
    assert len(np.unique(hashes)) == len(np.unique(X, axis=0))
    assert np.array_equal(_core.hash_rows(X, 1), _core.hash_rows(X, 2))


def test_hash_kernels_refuse_other_layouts():
    from rankwise import _core

    X = np.ones((3, 2))
    for bad in (X.T, X.astype(int), X[:, ::2], X.ravel()):
        with pytest.raises(TypeError):
            _core.hash_rows(bad)
    with pytest.raises(ValueError, match="starts must rise"):
        _core.hash_rows_csr(np.ones(2), np.zeros(2, np.int32), np.array([0, 3, 2], np.int32))


def test_mix_is_splitmix64():
    # First outputs of SplitMix64 from seed 0: mix of multiples of the golden gamma.
    gamma = np.uint64(0x9E3779B97F4A7C15)
    state = np.cumsum(np.full(3, gamma), dtype=np.uint64)
    assert [hex(v) for v in mix(state)] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


# --- ranks -------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, -0.0, 1.0, 2.0, -np.inf]))),
    st.one_of(st.just(-1), st.integers(1, 6)),
)
def test_rank_within_equals_sorting(rows, k):
    from rankwise import _core

    rows = sorted(rows, key=lambda r: r[0])
    groups = rw.group_rows(np.array([q for q, _ in rows], dtype=np.int64))
    score = np.array([s for _, s in rows], dtype=np.float64)
    expected = np.zeros(len(rows), int)
    for a, b in pairwise(groups.offsets):
        best_first = sorted(range(a, b), key=lambda i: (-score[i], i))
        for place, i in enumerate(best_first, start=1):
            expected[i] = place if k < 0 or place <= k else 0
    assert _core.rank_within(score, groups.offsets, k).tolist() == expected.tolist()


@pytest.mark.parametrize("offsets", [[0, 2], [1, 3], [0, 2, 1, 3], []])
def test_rank_within_checks_offsets(offsets):
    from rankwise import _core

    with pytest.raises(ValueError, match="offsets must start at 0"):
        _core.rank_within(np.zeros(3), np.array(offsets, dtype=np.int64), -1)


def test_columns_go_to_input_order_and_back():
    queries = rw.Queries.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], ["b", "a", "b"])
    scores = np.array([1.0, 3.0, 2.0])
    assert queries.in_input_order(queries.X[:, 0]).tolist() == [1.0, 2.0, 3.0]
    assert queries.in_input_order(scores).tolist() == [1.0, 2.0, 3.0]
    assert queries.from_input_order(queries.in_input_order(scores)).tolist() == scores.tolist()
    assert queries.take([1]).order is None
