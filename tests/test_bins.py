"""Features in bins: the same trees from shared, sparse, copied and large data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import rankwise as rw
from rankwise import bins
from rankwise.trees import TreeRanker

SMALL = {"n_estimators": 6, "num_leaves": 8, "n_jobs": 1}


@pytest.fixture(scope="module")
def parts():
    """Training queries with more documents than the places that bins are cut from, and others."""
    queries = rw.make_queries(n_queries=300, rng=2)
    X = queries.X.copy()
    X[np.abs(X) < 0.5] = 0  # many zeros, for the sparse form
    X[::17, 1] = np.nan
    queries = queries.with_features(X)
    return queries.take(range(200)), queries.take(range(200, 300))


def test_shared_bins_give_the_model_of_fresh_ones(parts):
    train, valid = parts
    shared = rw.bin_queries(train)
    watched = rw.bin_queries(valid, like=shared)
    for options in ({}, {"num_leaves": 4}, {"subsample": 0.5, "random_state": 1}):
        options = SMALL | options
        one = TreeRanker(**options).fit(shared, eval_set=watched)
        other = TreeRanker(**options).fit(train, eval_set=valid)
        mixed = TreeRanker(**options).fit(shared, eval_set=(valid.X, valid.y, valid.qid))
        assert one.model_text_ == other.model_text_ == mixed.model_text_
        assert np.array_equal(one.validation_scores_, other.validation_scores_)
        assert one.feature_names_in_.tolist() == list(train.feature_names)


def test_a_search_puts_features_into_bins_once(parts, monkeypatch):
    train, valid = parts
    made = []
    original = bins.in_bins
    monkeypatch.setattr("rankwise.trees.in_bins", lambda *a: made.append(1) or original(*a))
    request = "mart(n_estimators=5, early_stopping_rounds=None, num_leaves=4)"
    alone = rw.choose(request, train, valid, "ndcg@5")
    assert (alone.tried, len(made)) == (1, 2)
    made.clear()
    chosen = rw.choose("mart(n_estimators=5, early_stopping_rounds=None)", train, valid, "ndcg@5")
    assert chosen.tried == 3
    assert len(made) == 2  # training and validation queries
    again = TreeRanker(**chosen.ranker.get_params()).fit(train, eval_set=valid)
    assert again.model_text_ == chosen.ranker.model_text_


def test_dense_sparse_by_rows_and_by_columns_are_one(parts, monkeypatch):
    train, _ = parts
    dense = TreeRanker(**SMALL).fit(train)
    sparse = TreeRanker(**SMALL).fit(train.with_features(sp.csr_matrix(train.X)))
    assert sparse.model_text_ == dense.model_text_
    monkeypatch.setattr(bins, "_COPY_BYTES", 0)
    assert TreeRanker(**SMALL).fit(train).model_text_ == dense.model_text_


def test_float32_and_float64_of_the_same_values_are_one(parts):
    train, _ = parts
    single = train.with_features(train.X.astype(np.float32))
    double = train.with_features(single.X.astype(np.float64))
    assert (
        TreeRanker(**SMALL).fit(single).model_text_ == TreeRanker(**SMALL).fit(double).model_text_
    )


def test_bins_hold_about_equal_shares():
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(20_000, 1)) * 2)
    y = rng.random(20_000)  # no two bins with the same mean
    binned = rw.bin_queries(
        rw.Queries.from_arrays(X, y, np.repeat(np.arange(200), 100)), max_bin=50
    )
    # A tree with a leaf per bin shows the edges.
    options = {"n_estimators": 1, "num_leaves": 500, "min_child_samples": 1, "max_bin": 50}
    ranker = TreeRanker("squared", **options, min_child_weight=0).fit(binned)
    shares = np.unique(ranker.predict(X), return_counts=True)[1] / len(X)
    assert len(shares) >= 45
    assert shares.max() < 1.2 / 50


def test_a_rare_value_keeps_its_bin():
    # Two values, and one document in 10,000 with the larger: both ends of a column are looked at.
    X = np.zeros((10_000, 1))
    X[5] = 1
    y = X[:, 0].copy()
    ranker = TreeRanker(n_estimators=1, min_child_samples=1, min_child_weight=0, num_leaves=2)
    ranker.fit(X, y, qid=np.repeat(np.arange(100), 100))
    assert ranker.predict([[1.0]])[0] > ranker.predict([[0.0]])[0]


def test_copies_and_pickles_hold_the_same_bins(parts):
    train, valid = parts
    shared = rw.bin_queries(train, max_bin=20)
    assert len(shared) == 200
    assert "max_bin=20" in repr(shared)
    options = SMALL | {"max_bin": 20}
    again = pickle.loads(pickle.dumps(shared))
    watched = pickle.loads(pickle.dumps(rw.bin_queries(valid, like=shared)))
    wanted = TreeRanker(**options).fit(train).model_text_
    assert TreeRanker(**options).fit(again).model_text_ == wanted
    assert (watched.max_bin, watched.like.max_bin) == (20, 20)


def test_bins_are_never_changed_by_a_fit(parts):
    train, _ = parts
    shared = rw.bin_queries(train)
    warm = TreeRanker(**SMALL | {"n_estimators": 3}, warm_start=True).fit(shared)
    warm.set_params(n_estimators=6).fit(shared)
    whole = TreeRanker(**SMALL).fit(shared)
    assert warm.model_text_ == whole.model_text_
    assert shared.data.get_init_score() is None


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda t, v: rw.bin_queries(t.X), TypeError, "queries must be a Queries, got ndarray"),
        (lambda t, v: rw.bin_queries(t, max_bin=1), ValueError, "max_bin must be an integer of"),
        (lambda t, v: rw.bin_queries(t, categorical="x0"), TypeError, "must be a sequence of"),
        (lambda t, v: rw.bin_queries(t, categorical=["z"]), ValueError, "unknown feature in categ"),
        (lambda t, v: rw.bin_queries(t, categorical=[0]), ValueError, "feature 0 must hold integ"),
        (
            lambda t, v: rw.bin_queries(t.with_features(t.X[:, :2]), like=rw.bin_queries(v)),
            ValueError,
            "X has 2 features",
        ),
        (
            lambda t, v: TreeRanker(max_bin=60).fit(rw.bin_queries(t)),
            ValueError,
            "max_bin must be that of the bins, 255, got 60",
        ),
        (
            lambda t, v: TreeRanker().fit(rw.bin_queries(t), eval_set=rw.bin_queries(v)),
            ValueError,
            "eval_set must be in the bins of the training queries",
        ),
        (
            lambda t, v: TreeRanker().fit(t, eval_set=rw.bin_queries(v)),
            TypeError,
            "eval_set is in bins while X is not",
        ),
        (lambda t, v: TreeRanker().fit(rw.bin_queries(t), t.y), TypeError, "leave y, qid and"),
        (lambda t, v: TreeRanker().fit(rw.bin_queries(t), group=3), TypeError, "unexpected"),
    ],
)
def test_what_does_not_fit_together_is_refused(parts, make, kind, message):
    with pytest.raises(kind, match=message):
        make(*parts)
