"""Scaling inside a query and splitting by query."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.model_selection import GridSearchCV, check_cv, cross_validate
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankwise as rw

METHODS = ["minmax", "zscore"]


def scaled_slowly(X, qid, method):
    """One value list at a time, in exact order, with Python floats."""
    out = np.array(X, dtype=float)
    for query in set(qid):
        rows = [i for i, q in enumerate(qid) if q == query]
        for j in range(out.shape[1]):
            known = [float(X[i][j]) for i in rows if not np.isnan(X[i][j])]
            if not known:
                continue
            low, width = min(known), max(known) - min(known)
            mean = sum(known) / len(known)
            deviation = (sum((v - mean) ** 2 for v in known) / len(known)) ** 0.5
            for i in rows:
                v = float(X[i][j])
                if np.isnan(v):
                    continue
                if width == 0:
                    out[i, j] = 0.0
                elif method == "minmax":
                    out[i, j] = (v - low) / width
                else:
                    out[i, j] = (v - mean) / deviation
    return out


values = st.one_of(st.integers(-50, 50).map(float), st.just(float("nan")))
lists = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, (n, 3), elements=values),
        st.lists(st.sampled_from("abc"), min_size=n, max_size=n),
    )
)


@pytest.mark.parametrize("method", METHODS)
@given(lists)
def test_scaler_equals_the_slow_way(method, data):
    X, qid = data
    before = X.copy()
    got = rw.QueryScaler(method).fit_transform(X, qid=qid)
    np.testing.assert_allclose(got, scaled_slowly(X, qid, method), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("method", METHODS)
@given(lists, st.randoms(use_true_random=False))
def test_scaler_does_not_see_the_order_of_rows(method, data, random):
    X, qid = data
    shuffle = list(range(len(qid)))
    random.shuffle(shuffle)
    a = rw.QueryScaler(method).fit_transform(X, qid=qid)
    b = rw.QueryScaler(method).fit_transform(X[shuffle], qid=[qid[i] for i in shuffle])
    np.testing.assert_array_equal(a[shuffle], b)


@given(lists)
def test_sparse_equals_dense(data):
    X, qid = data
    X = np.abs(X)
    got = rw.QueryScaler().fit_transform(sp.csr_matrix(X), qid=qid)
    assert sp.issparse(got)
    np.testing.assert_array_equal(got.toarray(), rw.QueryScaler().fit_transform(X, qid=qid))


def test_many_queries_across_blocks():
    rng = np.random.default_rng(0)
    sizes = np.concatenate([rng.integers(1, 300, 60), [9000], np.ones(5000, int)])
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.standard_normal((len(qid), 2)).astype(np.float32)
    low = np.minimum.reduceat(X, np.cumsum(sizes) - sizes)[qid]
    high = np.maximum.reduceat(X, np.cumsum(sizes) - sizes)[qid]
    expected = (X - low) / np.where(high > low, high - low, 1)
    shuffle = rng.permutation(len(qid))
    for rows in (np.arange(len(qid)), shuffle):
        got = rw.QueryScaler().fit_transform(X[rows], qid=qid[rows])
        np.testing.assert_allclose(got, expected[rows], rtol=1e-6, atol=1e-7)
    z = rw.QueryScaler("zscore").fit_transform(X, qid=qid)
    sums = np.add.reduceat(z.astype(float), np.cumsum(sizes) - sizes)
    np.testing.assert_allclose(sums, 0, atol=1e-3)
    big = z[qid == 60].astype(float)
    np.testing.assert_allclose(big.std(axis=0), 1, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_stays(method, dtype):
    X = np.array([[1, 2], [3, 4]], dtype)
    assert rw.QueryScaler(method).fit_transform(X, qid=[1, 1]).dtype == dtype
    assert rw.QueryScaler(method).fit_transform(X.astype(int), qid=[1, 1]).dtype == np.float64


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e308, 1.7e308, 1e-300, 5e-324])
def test_extreme_values_neither_overflow_nor_vanish(method, scale):
    X = np.array([[-scale], [scale], [scale]])
    got = rw.QueryScaler(method).fit_transform(X, qid=[1, 1, 1])
    plain = rw.QueryScaler(method).fit_transform(np.array([[-1.0], [1.0], [1.0]]), qid=[1, 1, 1])
    np.testing.assert_allclose(got, plain, rtol=1e-12)


def test_a_large_offset_costs_no_digits():
    X = np.array([[1e15], [1e15 + 1], [1e15 + 2]])
    got = rw.QueryScaler("zscore").fit_transform(X, qid=[1, 1, 1])
    np.testing.assert_allclose(got.ravel(), np.array([-1, 0, 1]) * np.sqrt(1.5), rtol=1e-12)


def test_equal_scores_are_constant_in_float():
    X = np.full((7, 1), 0.1)
    assert (rw.QueryScaler("zscore").fit_transform(X, qid=[1] * 7) == 0).all()


FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns, index=[5, 3, 9]),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_come_back_as_frames(kind):
    frame = FRAMES[kind]({"a": [1, 3, 8], "qid": ["x", "x", "y"], "b": [0.5, 0.25, 7.0]})
    scaler = rw.QueryScaler().fit(frame)
    scaled = scaler.transform(frame)
    assert type(scaled) is type(frame)
    assert scaler.feature_names_in_.tolist() == ["a", "b"]
    assert scaler.get_feature_names_out().tolist() == ["a", "b"]
    columns = scaled.to_pydict() if kind == "pyarrow" else scaled
    assert {c: list(columns[c]) for c in ("a", "qid", "b")} == {
        "a": [0.0, 1.0, 0.0],
        "qid": ["x", "x", "y"],
        "b": [1.0, 0.0, 0.0],
    }
    if kind == "pandas":
        assert scaled.index.tolist() == [5, 3, 9]
        assert scaled.columns.tolist() == ["a", "qid", "b"]


def test_frame_without_the_column_and_qid_apart():
    frame = pd.DataFrame({"a": [1, 3, 8]})
    scaled = rw.QueryScaler().fit_transform(frame, qid=[1, 1, 1])
    assert scaled["a"].tolist() == [0.0, 2 / 7, 1.0]


def test_queries_come_back_as_queries():
    queries = rw.make_queries(n_queries=4)
    scaled = rw.QueryScaler().fit_transform(queries)
    assert isinstance(scaled, rw.Queries)
    np.testing.assert_array_equal(
        scaled.X, rw.QueryScaler().fit_transform(queries.X, qid=queries.qid)
    )
    assert scaled.feature_names == queries.feature_names
    assert (scaled.X[:, 5] == 0).all()


BAD = [
    ({"X": [[1.0]]}, ValueError, "qid must say which query each row belongs to, got None"),
    ({"X": [[1.0]], "qid": [1, 2]}, ValueError, "one entry per row of X, got 2 for 1 rows"),
    ({"X": [1.0], "qid": [1]}, ValueError, "two-dimensional"),
    ({"X": [[np.inf]], "qid": [1]}, ValueError, "infinity"),
    ({"X": rw.make_queries(n_queries=1), "qid": [1]}, TypeError, "got qid and a Queries"),
    ({"X": pd.DataFrame({"a": [1], "qid": [1]}), "qid": [1]}, TypeError, "a column qid in X"),
    ({"X": pd.DataFrame({"qid": [1]})}, ValueError, "at least one feature"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), BAD)
def test_scaler_refuses(arguments, error, text):
    with pytest.raises(error, match=rf"^QueryScaler\.fit: .*{re.escape(text)}"):
        rw.QueryScaler().fit(**arguments)
    with pytest.raises(error, match=rf"^QueryScaler\.fit_transform: .*{re.escape(text)}"):
        rw.QueryScaler().fit_transform(**arguments)


def test_scaler_refuses_other_features():
    scaler = rw.QueryScaler().fit(pd.DataFrame({"a": [1.0], "b": [2.0]}), qid=[1])
    with pytest.raises(ValueError, match="X has 3 features, but QueryScaler is expecting 2"):
        scaler.transform(np.ones((2, 3)), qid=[1, 1])
    with pytest.raises(ValueError, match=r"features must be those of fit.*another order"):
        scaler.transform(pd.DataFrame({"b": [1.0], "a": [2.0]}), qid=[1])
    with pytest.raises(ValueError, match="lacks 'b' and adds 'c'"):
        scaler.transform(pd.DataFrame({"a": [1.0], "c": [2.0]}), qid=[1])
    scaler.transform(np.ones((1, 2)), qid=[1])  # without names, the number must do


def test_scaler_refuses_an_unknown_method():
    with pytest.raises(ValueError, match="QueryScaler: method must be one of 'minmax', 'zscore'"):
        rw.QueryScaler("max").fit([[1.0]], qid=[1])


def test_sparse_refusals():
    X = sp.csr_matrix([[-1.0, 0.0], [0.0, 2.0]])
    with pytest.raises(TypeError, match="method='zscore' would fill a sparse matrix"):
        rw.QueryScaler("zscore").fit_transform(X, qid=[1, 1])
    with pytest.raises(ValueError, match=r"must not be negative.*got -1 in column 0"):
        rw.QueryScaler().fit_transform(X, qid=[1, 1])
    full = sp.csr_matrix([[-1.0], [3.0]])  # no zeros to spoil
    got = rw.QueryScaler().fit_transform(full, qid=[1, 1])
    assert got.toarray().tolist() == [[0.0], [1.0]]
    assert full.toarray().tolist() == [[-1.0], [3.0]]


class OneQueryScaler(rw.QueryScaler):
    """For scikit-learn's checks, which know no qid: all rows are one query."""

    def fit(self, X, y=None, *, qid=None):
        return super().fit(X, y, qid=_one_query(X, qid))

    def transform(self, X, *, qid=None):
        return super().transform(X, qid=_one_query(X, qid))

    def fit_transform(self, X, y=None, *, qid=None):
        return super().fit_transform(X, y, qid=_one_query(X, qid))


def _one_query(X, qid):
    if qid is not None:
        return qid
    return np.zeros(X.shape[0] if sp.issparse(X) else np.asarray(X).shape[:1], int)


@parametrize_with_checks(
    [OneQueryScaler("minmax"), OneQueryScaler("zscore")],
    expected_failed_checks=lambda _: {
        "check_methods_subset_invariance": "a value is scaled by the others of its query"
    },
)
def test_scaler_as_scikit_learn_wants_it(estimator, check):
    check(estimator)


@pytest.mark.letor
def test_scaler_equals_letor(letor_data):
    """OHSUMED's QueryLevelNorm file from its raw one, as close as six printed digits allow."""

    def read(path):
        X, qid = [], []
        for line in path.read_text().splitlines():
            words = line.partition("#")[0].split()
            values = [w.partition(":")[2] for w in words[2:]]
            X.append([float("nan") if v == "NULL" else float(v) for v in values])
            qid.append(words[1])
        return np.array(X), qid

    folder = letor_data / "letor3" / "OHSUMED"
    raw, qid = read(folder / "Feature-null" / "Fold1-test.txt")
    normalised, same_qid = read(folder / "QueryLevelNorm" / "Fold1-test.txt")
    assert qid == same_qid
    # LETOR put 0 for a missing BM25 (two features in each of three fields), so it counted in the
    # minimum there; other missing values did not.
    bm25 = [10, 11, 25, 26, 40, 41]
    raw[:, bm25] = np.nan_to_num(raw[:, bm25])
    got = rw.QueryScaler().fit_transform(raw, qid=qid)
    known = ~np.isnan(raw)
    assert known.mean() > 0.9
    assert np.abs(got - normalised)[known].max() < 5.01e-7


# --- QueryKFold --------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60),
    st.integers(2, 5),
    st.booleans(),
    st.integers(0, 3),
)
def test_folds_are_whole_queries(qid, n_splits, shuffle, seed):
    splitter = rw.QueryKFold(n_splits, shuffle=shuffle, random_state=seed)
    n_queries = len(set(qid))
    X = np.zeros((len(qid), 1))
    if n_queries < n_splits:
        with pytest.raises(ValueError, match=f"got {n_splits} for {n_queries} queries"):
            next(splitter.split(X, qid=qid))
        return
    tested = []
    queries_per_fold = []
    for train, test in splitter.split(X, qid=qid):
        assert sorted([*train, *test]) == list(range(len(qid)))
        assert list(test) == sorted(test)
        trained_on, tested_on = {qid[i] for i in train}, {qid[i] for i in test}
        assert trained_on.isdisjoint(tested_on)
        queries_per_fold.append(len(tested_on))
        tested.extend(test)
    assert sorted(tested) == list(range(len(qid)))
    assert len(queries_per_fold) == n_splits == splitter.get_n_splits()
    assert max(queries_per_fold) - min(queries_per_fold) <= 1


def queries_of_folds(splitter, qid):
    qid = np.asarray(qid)
    return [set(qid[test].tolist()) for _, test in splitter.split(qid, qid=qid)]


@given(st.randoms(use_true_random=False))
def test_folds_do_not_see_the_order_of_rows(random):
    qid = [q for q in range(12) for _ in range(q % 3 + 1)]
    shuffled = qid.copy()
    random.shuffle(shuffled)
    splitter = rw.QueryKFold(4)
    assert queries_of_folds(splitter, qid) == queries_of_folds(splitter, shuffled)


def test_folds_and_seeds():
    qid = np.arange(40)
    a, b = rw.QueryKFold(4, random_state=1), rw.QueryKFold(4, random_state=2)
    assert queries_of_folds(a, qid) == queries_of_folds(a, qid)
    assert queries_of_folds(a, qid) != queries_of_folds(b, qid)
    unseeded = rw.QueryKFold(4, random_state=None)
    assert queries_of_folds(unseeded, qid) != queries_of_folds(unseeded, qid)
    in_order = rw.QueryKFold(4, shuffle=False)
    assert queries_of_folds(in_order, qid) == [set(range(i, i + 10)) for i in range(0, 40, 10)]


def test_ids_from_wherever_they_are():
    qid = ["a", "b", "a", "c"]
    splitter = rw.QueryKFold(3)
    expected = [test.tolist() for _, test in splitter.split(np.zeros((4, 1)), qid=qid)]
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "qid": qid})
    sources = [(np.zeros((4, 1)), {"groups": qid}), (frame, {}), ([0, 0, 0, 0], {"qid": qid})]
    for X, keywords in sources:
        assert [test.tolist() for _, test in splitter.split(X, **keywords)] == expected
    queries = rw.make_queries(n_queries=6)
    rows = [test for _, test in splitter.split(queries)]
    assert [np.unique(queries.qid[r]).tolist() for r in rows] == [
        sorted(fold) for fold in queries_of_folds(splitter, queries.qid)
    ]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ({}, ValueError, "qid must say which query.*enable_metadata_routing"),
        ({"qid": [1], "groups": [1]}, TypeError, "got qid and groups; leave groups out"),
        ({"qid": [1, 2]}, ValueError, "one entry per row of X, got 2 for 1 rows"),
    ],
)
def test_splitter_refuses(call, error, text):
    with pytest.raises(error, match=rf"^QueryKFold\.split: .*{text}"):
        next(rw.QueryKFold().split([[0.0]], **call))


@pytest.mark.parametrize("n_splits", [1, 0, 2.5, "3"])
def test_splitter_refuses_numbers(n_splits):
    with pytest.raises(ValueError, match="n_splits must be an integer of at least 2"):
        rw.QueryKFold(n_splits)


def test_splitter_as_scikit_learn_knows_it():
    splitter = rw.QueryKFold(3, random_state=4)
    assert check_cv(splitter) is splitter
    assert repr(splitter) == "QueryKFold(n_splits=3, random_state=4, shuffle=True)"
    request = splitter.get_metadata_routing().split.requests
    assert request["qid"] is True


def test_routing_reaches_the_splitter_and_the_scaler():
    """A foreign regressor behind the scaler: every query is scaled apart and never cut."""
    queries = rw.make_queries(n_queries=12)
    qid = queries.qid
    model = make_pipeline(rw.QueryScaler(), KNeighborsRegressor())
    with sklearn.config_context(enable_metadata_routing=True):
        result = cross_validate(
            model,
            queries.X,
            queries.y,
            cv=rw.QueryKFold(3),
            params={"qid": qid},
            return_indices=True,
            return_estimator=True,
            error_score="raise",
        )
        for fitted, rows in zip(result["estimator"], result["indices"]["test"], strict=True):
            scaled = rw.QueryScaler().fit_transform(queries.X[rows], qid=qid[rows])
            np.testing.assert_array_equal(
                fitted.predict(queries.X[rows], qid=qid[rows]), fitted[-1].predict(scaled)
            )
    assert [set(qid[r]) for r in result["indices"]["test"]] == queries_of_folds(
        rw.QueryKFold(3), qid
    )


def test_without_routing_the_splitter_says_so():
    queries = rw.make_queries(n_queries=6)
    search = GridSearchCV(
        KNeighborsRegressor(), {"n_neighbors": [1, 2]}, cv=rw.QueryKFold(3), error_score="raise"
    )
    with pytest.raises(ValueError, match=r"QueryKFold\.split.*enable_metadata_routing=True"):
        search.fit(queries.X, queries.y)
    search.fit(queries.X, queries.y, groups=queries.qid)
    assert search.best_params_["n_neighbors"] in (1, 2)
