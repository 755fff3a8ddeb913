"""Many features, where steps are searched along; and what solvers of one problem agree on."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import LinearSVC

import rankwise as rw
from rankwise import _core, _linear_problem
from test_linear import differences, lists


def wide(n_queries=40, n_features=700, seed=0, density=0.02):
    """Sparse lists with more features than a Cholesky factor is made for."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 20, n_queries)
    n = int(sizes.sum())
    X = sp.random(n, n_features, density, "csr", np.float64, random_state=rng)
    merit = X @ rng.normal(0, 2, n_features) + rng.normal(0, 0.3, n)
    y = np.digitize(merit, np.quantile(merit, [0.5, 0.8])).astype(float)
    return rw.Queries.from_arrays(X, y, np.repeat(np.arange(n_queries), sizes))


WIDE = [
    rw.RankSVM(0.3, tol=1e-9),
    rw.RankSVM(0.01, scale="std", tol=1e-9),
    rw.RankSVM(0.003, loss="hinge", tol=1e-5),
    rw.LinearRanker("ranknet", tol=1e-9),
    rw.LinearRanker("logistic", tol=1e-9),
    rw.LinearRanker("listnet", tol=1e-9, scale=None),
    rw.LinearRanker("ordinal_logit", tol=1e-7),
]


@pytest.mark.parametrize("model", WIDE, ids=str)
class TestSearchedSteps:
    def test_reach_the_optimum_of_the_trust_region(self, model, monkeypatch):
        queries = wide()
        searched = clone(model).fit(queries)
        monkeypatch.setattr(_linear_problem, "_FULL_UP_TO", 10_000)
        other = clone(model).fit(queries)
        tight = 2e-5 if model.loss == "hinge" else 1e-9
        assert searched.objective_ == pytest.approx(other.objective_, rel=tight)
        np.testing.assert_allclose(
            searched.predict(queries), other.predict(queries), atol=1e-2 if tight > 1e-8 else 1e-4
        )

    def test_stored_order_and_threads_do_not_matter(self, model, monkeypatch):
        queries = wide(seed=1)
        fitted = clone(model).fit(queries)
        order = np.random.default_rng(2).permutation(queries.n_docs)
        again = clone(model).fit(queries.X[order], queries.y[order], qid=queries.qid[order])
        assert np.array_equal(fitted.coef_, again.coef_)
        assert np.array_equal(fitted.predict(queries), fitted.predict(queries.X.toarray()))


@pytest.mark.parametrize("C", 10.0 ** np.arange(-9, 4, 3))
def test_twelve_orders_of_c_with_many_features(C):
    model = rw.RankSVM(C).fit(wide(seed=3))
    assert model.gradient_norm_ <= 1e-4


def test_equals_linear_svc_on_separable_pairs():
    """Where a trust region needs hundreds of steps: many features, almost no penalty."""
    queries = wide()
    model = rw.RankSVM(30.0, tol=1e-9).fit(queries)
    assert model.duality_gap_ <= 1e-6
    pairs, _ = differences(queries.with_features(queries.X.toarray()))
    short = np.maximum(0, 1 - pairs @ model.coef_)
    assert model.objective_ == pytest.approx(
        0.5 * model.coef_ @ model.coef_ + 30 * short @ short, rel=1e-9
    )
    sign = np.where(np.arange(len(pairs)) % 2, -1.0, 1.0)
    svc = LinearSVC(fit_intercept=False, dual=True, C=30.0, tol=1e-8, max_iter=100_000)
    w = svc.fit(pairs * sign[:, None], sign).coef_[0]
    short = np.maximum(0, 1 - pairs @ w)
    assert model.objective_ <= (0.5 * w @ w + 30 * short @ short) * (1 + 1e-6)
    np.testing.assert_allclose(model.coef_, w, atol=1e-3)


def test_far_too_long_a_first_step_is_shortened():
    """From wrong weights far away, the way back is searched for."""
    queries = wide(seed=4)
    best = rw.RankSVM(0.1, tol=1e-9).fit(queries)
    model = rw.RankSVM(0.1, tol=1e-9, warm_start=True)
    model.coef_, model.intercept_ = np.random.default_rng(0).normal(0, 1e3, 700), 0.0
    model.fit(queries)
    assert model.objective_ == pytest.approx(best.objective_, rel=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_columns_that_vary_inside_a_query_of_sparse_rows(share):
    """Stored zeros, columns stored in all rows of a query, queries of one row."""
    rng = np.random.default_rng(5)
    dense = rng.integers(0, 2, (60, 25)) * np.where(rng.random(25) < share, 1.0, 2.0)
    dense[:, 0], dense[:, 1], dense[:7, 2] = 0, 4, 4
    dense[7:, 2] = 0
    X = sp.csr_matrix(dense)
    X.data[::5] = 0.0
    offsets = np.array([0, 7, 8, 30, 60])
    found = _core.Features(X.data, X.indices, X.indptr, 25).varying_within(offsets)
    full = X.toarray()
    parts = [full[a:b] for a, b in itertools.pairwise(offsets)]
    assert np.array_equal(found, np.any([(p != p[0]).any(axis=0) for p in parts], axis=0))


# --- what must hold of RankSVM's objective -----------------------------------------------------


@pytest.mark.parametrize("levels", [2, 4, 20])
def test_a_hessian_product_is_the_change_of_the_gradient(levels):
    queries = lists(30, seed=levels, levels=levels)
    features = _core.Features(queries.X)
    kernel = _core.SquaredHingeLoss(queries.y, queries.offsets, None)
    rng = np.random.default_rng(0)
    for _ in range(5):
        w, u, h = rng.normal(0, 0.5, 4), rng.normal(0, 1, 4), 1e-7

        def active(w):
            return differences(queries)[0] @ w < 1

        # Away from kinks only: the same pairs are active at both ends.
        if not np.array_equal(active(w - h * u), active(w + h * u)):
            continue
        ahead = kernel.evaluate_linear(features, w + h * u)[1]
        behind = kernel.evaluate_linear(features, w - h * u)[1]
        kernel.evaluate_linear(features, w)
        product, _ = kernel.product_linear(features, u)
        np.testing.assert_allclose(product, (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("levels", [2, 5, 20])
def test_every_active_pair_is_counted_once_on_each_side(levels):
    """The curvature counts each active pair twice for its winner and twice for its loser."""
    queries = lists(30, n_docs=30, seed=levels, levels=levels)
    w = np.random.default_rng(1).normal(0, 0.4, 4)
    pairs, _ = differences(queries)
    n_active = int((pairs @ w < 1).sum())
    scores = queries.X @ w
    _, gradient, curvature = _core.SquaredHingeLoss(queries.y, queries.offsets, None).evaluate(
        scores
    )
    assert curvature.sum() == 4 * n_active
    assert abs(gradient.sum()) <= 1e-9 * np.abs(gradient).sum()
    _, slopes, _ = _core.SmoothHingeLoss(queries.y, queries.offsets, None).evaluate(scores)
    assert abs(slopes.sum()) <= 1e-9 * np.abs(slopes).sum()


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_solvers_agree_on_the_objective(C):
    queries = lists(30, seed=6)
    pairs = np.concatenate(
        [
            np.argwhere(queries.y[a:b, None] > queries.y[a:b]) + a
            for a, b in itertools.pairwise(queries.offsets)
        ]
    )
    y, qid = queries.y, queries.qid
    found = {
        "primal": rw.RankSVM(C, tol=1e-8).fit(queries),
        "by alpha": rw.LinearRanker("squared_hinge", alpha=1 / C, scale=None, tol=1e-8).fit(
            queries
        ),
        "pairs": rw.RankSVM(C, tol=1e-8).fit(queries.X, qid=qid, pairs=rw.Pairs(*pairs.T)),
        "kernel": rw.KernelRankSVM("linear", C=C, tol=1e-8).fit(queries.X, y, qid=qid),
    }
    values = {name: m.objective_ * (C if name == "by alpha" else 1) for name, m in found.items()}
    for name, value in values.items():
        assert value == pytest.approx(values["primal"], rel=1e-6), name


@pytest.mark.parametrize("density", [0.02, 1.0])
@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_sizes_that_are_refused_with_many_features(size, density):
    queries = wide(10, 600, density=density)
    X = queries.X if density < 1 else queries.X.toarray()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"features must be of a size whose squares"):
            rw.RankSVM().fit(X * size, queries.y, qid=queries.qid)
