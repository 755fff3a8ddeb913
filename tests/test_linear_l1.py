"""L1 and elastic-net penalties: other solvers' solutions, optimality conditions, exact zeros."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import ElasticNet, LogisticRegression

import rankwise as rw
import reference
from rankwise import _core
from rankwise._newton import least_subgradient
from test_linear import REFERENCE, differences, lists


@pytest.mark.parametrize("l1_ratio", [0.2, 0.7, 1.0])
@pytest.mark.parametrize("alpha", [0.3, 5.0, 60.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_squared_is_scikit_learns_elastic_net(alpha, l1_ratio, weighted):
    queries = lists(20, n_features=9, weighted=weighted)
    model = rw.LinearRanker("squared", alpha=alpha, l1_ratio=l1_ratio, scale=None, tol=1e-10)
    model.fit(queries)
    total = queries.n_docs if queries.weight is None else queries.weight.sum()
    # scikit-learn averages the squares.
    net = ElasticNet(alpha / total, l1_ratio=l1_ratio, tol=1e-12, max_iter=10**5)
    net.fit(queries.X, queries.y, sample_weight=queries.weight)
    np.testing.assert_allclose(model.coef_, net.coef_, atol=1e-7)
    assert np.array_equal(model.coef_ == 0, net.coef_ == 0)
    assert model.intercept_ == pytest.approx(net.intercept_, abs=1e-7)


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("alpha", [0.5, 20.0, 60.0])
def test_ranknet_is_penalised_logistic_regression_on_differences(alpha, l1_ratio):
    queries = lists(20, n_features=9, weighted=True)
    pairs, weights = differences(queries)
    signs = np.repeat([1.0, -1.0], len(pairs))
    logistic = LogisticRegression(
        solver="saga", fit_intercept=False, C=0.5 / alpha, l1_ratio=l1_ratio, tol=1e-10,
        max_iter=20000,
    )  # fmt: skip
    logistic.fit(np.vstack([pairs, -pairs]), signs, sample_weight=np.tile(weights, 2))
    model = rw.LinearRanker("ranknet", alpha=alpha, l1_ratio=l1_ratio, scale=None, tol=1e-9)
    model.fit(queries)
    np.testing.assert_allclose(model.coef_, logistic.coef_[0], atol=1e-5)
    assert np.array_equal(model.coef_ == 0, np.abs(logistic.coef_[0]) < 1e-7)


@pytest.mark.parametrize("loss", ["squared", "ranknet(sigma=2)", "listnet", "squared_hinge"])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
@pytest.mark.parametrize("alpha", [0.5, 10.0])
def test_optimality_by_the_reference(loss, l1_ratio, alpha):
    queries = lists(20, n_features=9, weighted=True)
    model = rw.LinearRanker(loss, alpha=alpha, l1_ratio=l1_ratio, scale=None, tol=1e-10)
    model.fit(queries)
    s = queries.X @ model.coef_ + model.intercept_
    values, z = REFERENCE[loss](queries.y, s, queries.offsets, queries.weight)[:2]
    gradient = queries.X.T @ z + alpha * (1 - l1_ratio) * model.coef_
    l1 = np.full(9, alpha * l1_ratio)
    np.testing.assert_allclose(least_subgradient(gradient, model.coef_, l1), 0, atol=1e-6)
    assert model.gradient_norm_ <= 1e-10
    penalty = l1 @ np.abs(model.coef_) + 0.5 * alpha * (1 - l1_ratio) * model.coef_ @ model.coef_
    assert model.objective_ == pytest.approx(np.sum(values) + penalty, rel=1e-10)


def test_the_hinge_with_an_l1_penalty():
    """Against a linear program on explicit pairs."""
    from scipy.optimize import linprog

    queries = lists(12, n_features=6, weighted=True)
    pairs, weights = differences(queries)
    m, d, alpha = len(pairs), 6, 15.0
    cost = np.concatenate([np.full(2 * d, alpha), weights])
    upper = np.hstack([-pairs, pairs, -np.eye(m)])
    program = linprog(cost, upper, -np.ones(m), bounds=(0, None))
    model = rw.LinearRanker("hinge", alpha=alpha, l1_ratio=1.0, scale=None, tol=1e-6)
    model.set_params(max_iter=2000).fit(queries)
    assert model.duality_gap_ <= 1e-6
    assert program.fun <= model.objective_ * (1 + 1e-9)
    assert model.objective_ == pytest.approx(program.fun, rel=1e-6)
    w = program.x[:d] - program.x[d : 2 * d]
    assert np.array_equal(model.coef_ == 0, w == 0)


def test_the_hinge_with_an_elastic_net_has_a_gap_too():
    queries = lists(20, n_features=6)
    fits = [
        rw.LinearRanker("hinge", alpha=20.0, l1_ratio=0.5, tol=t, max_iter=2000).fit(queries)
        for t in (1e-2, 1e-6)
    ]
    rough, exact = fits
    assert exact.objective_ <= rough.objective_
    assert rough.objective_ * (1 - rough.duality_gap_) <= exact.objective_


def test_a_strong_penalty_leaves_nothing():
    queries = lists(20)
    z = reference.loss_by_pairs(
        reference.ranknet_pair(1.0), queries.y, np.zeros(queries.n_docs), queries.offsets, None
    )[1]
    largest = np.abs(queries.X.T @ z).max()
    for factor, left in ((1.001, 0), (0.999, 1)):
        model = rw.LinearRanker("ranknet", alpha=factor * largest, l1_ratio=1.0, scale=None)
        assert np.count_nonzero(model.fit(queries).coef_) == left


def test_many_features():
    """Beyond the features that a dense matrix is kept for, sparse input."""
    rng = np.random.default_rng(0)
    X = sp.random(400, 900, density=0.05, random_state=6, format="csr")
    merit = X[:, :5].toarray() @ np.ones(5) * 3 + rng.normal(0, 0.1, 400)
    y, qid = np.digitize(merit, [0.1, 1.0]), np.repeat(np.arange(40), 10)
    model = rw.LinearRanker("ranknet", alpha=3.0, l1_ratio=1.0, scale=None, tol=1e-6, max_iter=2000)
    model.fit(X, y, qid=qid)
    kept = np.flatnonzero(model.coef_)
    assert set(range(5)) <= set(kept.tolist()) and len(kept) < 200
    # Those left alone have the same solution.
    few = rw.LinearRanker("ranknet", alpha=3.0, l1_ratio=1.0, scale=None, tol=1e-8)
    few.fit(X[:, kept], y, qid=qid)
    np.testing.assert_allclose(few.coef_, model.coef_[kept], atol=1e-3)
    dense = rw.LinearRanker("ranknet", alpha=3.0, l1_ratio=1.0, scale=None, tol=1e-6, max_iter=2000)
    np.testing.assert_allclose(dense.fit(X.toarray(), y, qid=qid).coef_, model.coef_, atol=1e-3)


@pytest.mark.parametrize("value", [-0.1, 1.1, "half"])
def test_bad_ratio(value):
    with pytest.raises(ValueError, match="fit: l1_ratio must be a number"):
        rw.LinearRanker(l1_ratio=value).fit(lists())


@settings(max_examples=40)
@given(d=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_the_step_solves_its_model(d, seed):
    rng = np.random.default_rng(seed)
    B = rng.normal(0, 1, (d + 3, d))
    H, g, l1 = B.T @ B, rng.normal(0, 3, d), rng.uniform(0, 4, d)
    x = np.where(rng.random(d) < 0.5, 0, rng.normal(0, 1, d))
    p = _core.shrink_step(H, g, x, l1, 1e-14, 100000)
    assert np.abs(least_subgradient(g + H @ p, x + p, l1)).max() < 1e-7
