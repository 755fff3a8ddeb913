"""Monotone retargeting: pooling, the loss, the rankers, against solvers and by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression, minimize

import rankwise as rw
from rankwise import _core

KINDS = [
    ("squared", "simplex"), ("kl", "simplex"), ("generalized", "simplex"),
    ("logistic", "simplex"), ("squared", "margin"), ("logistic", "margin"),
]  # fmt: skip
each_kind = pytest.mark.parametrize(("divergence", "restriction"), KINDS)

values = st.lists(st.integers(-20, 20), min_size=1, max_size=30)


# --- pool adjacent violators -----------------------------------------------------------------


@given(y=values, seed=st.integers(0, 1000), increasing=st.booleans(), weighted=st.booleans())
def test_pooling_equals_scipy(y, seed, increasing, weighted):
    y = np.array(y) / 4
    w = np.random.default_rng(seed).uniform(0.1, 3, len(y)) if weighted else None
    got = rw.isotonic(y, weight=w, increasing=increasing)
    expected = isotonic_regression(y, weights=w, increasing=increasing).x
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)
    assert (np.diff(got) * (1 if increasing else -1) >= 0).all()


def test_pooling_by_hand():
    assert rw.isotonic([1, 3, 2, 4, 0], increasing=False).tolist() == [2.5] * 4 + [0]
    assert rw.isotonic([3, 1, 2, 0], increasing=False).tolist() == [3, 1.5, 1.5, 0]
    margin = np.array([3, 2, 1, 0]) * 0.5  # z_i - z_(i+1) >= .5: shift, pool, shift back
    fitted = rw.isotonic([3, 1, 2, 0] - margin, increasing=False) + margin
    assert fitted.tolist() == [3, 1.75, 1.25, 0]


@given(y=values, other=values, seed=st.integers(0, 1000))
def test_pooling_properties(y, other, seed):
    n = min(len(y), len(other))
    y, other = np.array(y[:n]) / 3, np.array(other[:n]) / 3
    w = np.random.default_rng(seed).uniform(0.1, 3, n)
    fit, fit_other = rw.isotonic(y, weight=w), rw.isotonic(other, weight=w)
    assert (w * fit).sum() == pytest.approx((w * y).sum(), abs=1e-9)
    np.testing.assert_allclose(rw.isotonic(fit, weight=w), fit, rtol=1e-14)
    plain = rw.isotonic(y)
    assert np.array_equal(rw.isotonic(plain), plain)  # to the last bit
    assert (w * (fit - fit_other) ** 2).sum() <= (w * (y - other) ** 2).sum() + 1e-9
    above = rw.isotonic(np.maximum(y, other), weight=w)
    assert (above >= fit - 1e-12).all()
    for value in np.unique(fit):  # each block is the mean of its values
        block = fit == value
        assert np.average(y[block], weights=w[block]) == pytest.approx(value, abs=1e-12)


def test_pooling_of_lists_in_any_order_and_with_any_number_of_threads():
    rng = np.random.default_rng(0)
    qid, y = rng.integers(0, 40, 90_000), rng.normal(size=90_000)
    got = rw.isotonic(y, qid=qid)
    for q in (0, 17, 39):
        assert np.array_equal(got[qid == q], rw.isotonic(y[qid == q]))
    offsets = np.arange(0, 90_001, 100)
    one = _core.isotonic(y, offsets, n_threads=1)
    assert np.array_equal(one, _core.isotonic(y, offsets, n_threads=2))
    assert len(rw.isotonic([])) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rw.isotonic([1, np.nan]), "y must be finite and at most 1e[+]140"),
        (lambda: rw.isotonic([1, np.inf]), "got inf at row 1"),
        (lambda: rw.isotonic([1, 2], weight=[1, 0]), "weight must be above 0"),
        (lambda: rw.isotonic([1, 2], weight=[1]), "same length"),
        (lambda: rw.isotonic([1, 2], qid=[1]), "qid must have one entry per value"),
        (lambda: rw.isotonic([[1, 2], [3, 4]]), "one-dimensional"),
    ],
)
def test_pooling_refuses(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# --- the loss --------------------------------------------------------------------------------

MEAN = {
    "squared": lambda t, w: t,
    "kl": lambda t, w: np.exp(t) / (w * np.exp(t)).sum(),
    "generalized": lambda t, w: np.exp(t),
    "logistic": lambda t, w: 1 / (1 + np.exp(-t)),
}


def divergence_of(name, z, m):
    log = lambda a, b: np.where(a > 0, a * np.log(np.maximum(a, 1e-300) / b), 0.0)  # noqa: E731
    return {
        "squared": lambda: (z - m) ** 2 / 2,
        "kl": lambda: log(z, m),
        "generalized": lambda: log(z, m) - z + m,
        "logistic": lambda: log(z, m) + log(1 - z, 1 - m),
    }[name]()


def room(y, w, divergence, restriction):
    level = np.unique(y, return_inverse=True)[1]
    if restriction == "simplex":
        return 0.5 / (w * level).sum()
    return 0.5 / level.max() if divergence == "logistic" else 1.0


def solved_by_scipy(y, s, w, divergence, restriction, offset):
    """The definition, by a general constrained solver over (z, b)."""
    n, w = len(y), w / w.mean()
    margin = room(y, w, divergence, restriction)
    level = np.unique(y, return_inverse=True)[1]
    pairs = [(i, j) for i in range(n) for j in range(n) if level[i] == level[j] + 1]
    cons = [{"type": "ineq", "fun": lambda v, i=i, j=j: v[i] - v[j] - margin} for i, j in pairs]
    if restriction == "simplex":
        cons.append({"type": "eq", "fun": lambda v: (w * v[:n]).sum() - 1})
    inside = divergence == "logistic" or restriction == "simplex"
    bounds = [(1e-12, 1 - 1e-12) if inside else (None, None)] * n
    bounds.append((None, None) if offset else (0, 0))

    def cost(v):
        m = MEAN[divergence](s + v[n], w)
        return (w * divergence_of(divergence, v[:n], m)).sum() / n

    start = level * margin + (0.1 / n if inside else 0)
    if restriction == "simplex":
        start = start + (1 - (w * start).sum()) / n
    found = minimize(
        cost, np.append(start, 0.0), constraints=cons, bounds=bounds, method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    return found.fun, found.x[:n]


@each_kind
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_the_best_that_a_general_solver_finds(divergence, restriction, offset, seed):
    rng = np.random.default_rng(seed)
    y, s = rng.permutation([0.0, 0, 1, 1, 3, 3]), rng.normal(-0.5, 0.8, 6)
    w = rng.uniform(0.5, 2, 6)
    loss = rw.Retargeted(divergence, restriction, offset=offset)
    got = loss.value(y, s, [0, 6], w)[0] / w.mean()
    expected, z = solved_by_scipy(y, s, w, divergence, restriction, offset)
    assert got == pytest.approx(expected, rel=2e-5, abs=1e-8)
    target = loss.target(y, s, [0, 6], w)
    if offset and restriction == "margin":  # only differences are determined where b is free
        target, z = target - target.mean(), z - z.mean()
    np.testing.assert_allclose(target, z, atol=3e-3)


def case(seed=0, sizes=(9, 1, 15)):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = offsets[-1]
    return rng.choice([0.0, 1, 2, 4], n), rng.normal(-0.5, 0.7, n), offsets, rng.uniform(0.5, 2, n)


@each_kind
@pytest.mark.parametrize("offset", [True, False])
def test_gradient_by_finite_differences_and_curvature_above(divergence, restriction, offset):
    loss = rw.Retargeted(divergence, restriction, offset=offset)
    y, s, offsets, w = case()
    gradient, curvature = loss.derivatives(y, s, offsets, w)
    h = 1e-5
    for i in range(len(y)):
        step = h * np.eye(len(y))[i]
        up, down = (loss.value(y, s + t * step, offsets, w).sum() for t in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(gradient[i], abs=1e-9)
        ends = [loss.derivatives(y, s + t * step, offsets, w)[0][i] for t in (1, -1)]
        assert curvature[i] >= (ends[0] - ends[1]) / (2 * h) - 1e-7
    assert loss.shift_invariant == (abs(gradient.sum()) < 1e-12)


@each_kind
def test_targets_keep_the_order_the_margins_and_the_simplex(divergence, restriction):
    loss = rw.Retargeted(divergence, restriction)
    y, s, offsets, w = case(3)
    y[2] = np.nan
    z = loss.target(y, s, offsets, w)
    assert np.isnan(z[[2, 9]]).all()  # not judged; alone in its query
    for a, b in ((0, 9), (10, 25)):
        judged = np.arange(a, b)[~np.isnan(y[a:b])]
        yq, zq, wq = y[judged], z[judged], w[judged] / w[judged].mean()
        margin = room(yq, wq, divergence, restriction)
        level = np.unique(yq, return_inverse=True)[1]
        for low, high in itertools.pairwise(range(level.max() + 1)):
            assert zq[level == high].min() - zq[level == low].max() >= margin * (1 - 1e-9)
        if restriction == "simplex":
            assert (wq * zq).sum() == pytest.approx(1, rel=1e-9)
            assert zq.min() >= 0


@each_kind
def test_only_the_order_of_labels_counts(divergence, restriction):
    loss = rw.Retargeted(divergence, restriction)
    y, s, offsets, w = case(1)
    value = loss.value(y, s, offsets, w)
    assert np.array_equal(value, loss.value(np.expm1(y), s, offsets, w))
    shifted = s + np.repeat([3.0, -1.0, 0.5], np.diff(offsets))
    np.testing.assert_allclose(loss.value(y, shifted, offsets, w), value, rtol=1e-8)
    if restriction == "margin":  # a document of weight 2 is two documents
        two = np.where(np.arange(9) < 4, 2.0, 1.0)
        rows = np.repeat(np.arange(9), two.astype(int))
        copied = loss.value(y[rows], s[rows], [0, len(rows)])[0]
        assert loss.value(y[:9], s[:9], [0, 9], two)[0] / two.mean() == pytest.approx(copied)


def test_without_margins_the_simplex_lets_everything_collapse():
    queries = rw.make_queries(n_queries=20)
    for divergence in ("kl", "squared", "logistic"):
        loss = rw.Retargeted(divergence, margin=0)
        flat = np.zeros(queries.n_docs)
        assert loss.value(queries.y, flat, queries.offsets).max() < 1e-12
        assert rw.Retargeted(divergence).value(queries.y, flat, queries.offsets).max() > 1e-4


def test_wide_margins_and_senseless_options_are_refused():
    for words, options in [
        ("divergence must be one of", {"divergence": "hinge"}),
        ("restriction must be one of", {"restriction": "cone"}),
        ("margin must be a number above 0", {"divergence": "squared", "restriction": "margin", "margin": 0.0}),
        ("needs restriction='simplex'", {"divergence": "kl", "restriction": "margin"}),
        ("needs restriction='simplex'", {"divergence": "generalized", "restriction": "margin"}),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=words):
            rw.Retargeted(**options)
    for options in [
        {"margin": 0.6},
        {"divergence": "logistic", "restriction": "margin", "margin": 0.5},
    ]:
        with pytest.raises(ValueError, match="margin must leave room"):
            rw.Retargeted(**options).value([0, 1, 2], [0.0, 0, 0], [0, 3])


# --- the rankers -----------------------------------------------------------------------------


def test_two_documents_by_hand():
    for alpha, w, f in ((1.0, 0.2, 0.1), (0.1, 0.7142857, 0.0357143)):
        model = rw.MonotoneRetargeting("squared", restriction="margin", alpha=alpha, scale=None)
        model.fit([[1.0], [0.0]], [1, 0], qid=[1, 1])
        assert model.coef_[0] == pytest.approx(w, abs=1e-6)
        assert model.objective_ == pytest.approx(f, abs=1e-7)


def alternation(queries, divergence, restriction, alpha, rounds):
    """The published algorithm: targets given the model, a generalised linear model given them."""
    loss = rw.Retargeted(divergence, restriction)
    w, costs = np.zeros(queries.n_features), []
    per_query = np.repeat(1 / queries.sizes, queries.sizes)

    def means(m):
        sums = np.add.reduceat(m, queries.offsets[:-1])
        return np.repeat(sums / queries.sizes[:, None], queries.sizes, axis=0)

    centred = queries.X - means(queries.X)
    for _ in range(rounds):
        s = queries.X @ w
        costs.append(loss.value(queries.y, s, queries.offsets).sum() + alpha / 2 * w @ w)
        z = np.nan_to_num(loss.target(queries.y, s, queries.offsets))
        if divergence == "squared":
            A = (centred * per_query[:, None]).T @ centred + alpha * np.eye(len(w))
            w = np.linalg.solve(A, (centred * per_query[:, None]).T @ z)
            continue

        def cost(v, z=z):  # KL: cross entropy of a softmax
            t = queries.X @ v
            value, grad = 0.0, alpha * v
            for a, b in itertools.pairwise(queries.offsets):
                top = t[a:b].max()
                p = np.exp(t[a:b] - top)
                value += (np.log(p.sum()) + top - z[a:b] @ t[a:b]) / (b - a)
                grad = grad + queries.X[a:b].T @ (p / p.sum() - z[a:b]) / (b - a)
            return value + alpha / 2 * v @ v, grad

        w = minimize(cost, w, jac=True, method="BFGS", options={"gtol": 1e-10}).x
    return w, np.array(costs)


@pytest.mark.parametrize(
    ("divergence", "restriction", "alpha"),
    [("squared", "margin", 0.5), ("squared", "simplex", 0.01), ("kl", "simplex", 0.05)],
)
def test_alternation_never_rises_and_ends_where_the_ranker_does(divergence, restriction, alpha):
    queries = rw.make_queries(n_queries=12, rng=3)
    keep = [q for q in range(12) if np.ptp(queries.y[slice(*queries.offsets[q : q + 2])]) > 0]
    queries = queries.take(keep)
    model = rw.MonotoneRetargeting(
        divergence, restriction=restriction, alpha=alpha, scale=None, tol=1e-7
    ).fit(queries)
    w, costs = alternation(queries, divergence, restriction, alpha, 60)
    assert (np.diff(costs) <= 1e-12).all()
    assert model.objective_ <= costs[-1] + 1e-9
    if divergence == "squared":  # jointly convex: one optimum
        np.testing.assert_allclose(model.coef_, w, atol=1e-4)


@each_kind
def test_the_ranker_finds_a_planted_order(divergence, restriction):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.digitize(X @ [2.0, -1, 0.5, 0], [-2, 0, 2]).astype(float)
    qid = np.repeat(np.arange(30), 10)
    model = rw.MonotoneRetargeting(divergence, restriction=restriction, alpha=1e-4)
    assert model.fit(X, y, qid=qid).score(X, y, qid=qid) > 0.97


def test_trees_take_the_loss():
    queries = rw.make_queries(n_queries=60)
    trees = rw.TreeRanker("retargeted", n_estimators=20, num_leaves=8, min_child_weight=0, n_jobs=1)
    assert trees.fit(queries).score(queries) > rw.RandomRanker().fit(queries).score(queries) + 0.1


def test_pairs_are_refused():
    with pytest.raises(TypeError, match="pairs need a ranker with a loss over pairs"):
        rw.MonotoneRetargeting().fit(
            [[1.0], [0.0]], qid=[1, 1], pairs=rw.Pairs(np.array([0]), np.array([1]))
        )
