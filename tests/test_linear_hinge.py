"""RankSVM with the hinge: golden cases, quadratic programs, cutting planes, bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import rankwise as rw
from rankwise import _core
from test_linear import differences, lists


def hinge_objective(queries, w, C):
    pairs, weights = differences(queries)
    return 0.5 * w @ w + C * (weights * np.maximum(0, 1 - pairs @ w)).sum()


def cutting_planes(queries, C, tol=1e-4, rounds=500):
    """Joachims 2006 on explicit pairs: one slack, one cut a round; best value and lower bound."""
    pairs, weights = differences(queries)
    d = pairs.shape[1]
    w, slopes, offsets = np.zeros(d), np.zeros((0, d)), np.zeros(0)
    best, bound = np.inf, -np.inf
    for _ in range(rounds):
        active = weights * (pairs @ w < 1)
        best = min(best, hinge_objective(queries, w, C))
        if best - bound <= tol * best:
            break
        slopes = np.vstack([slopes, active @ pairs])
        offsets = np.append(offsets, active.sum())
        # max over a >= 0, sum a <= C, of  offsets.a - |slopes^T a|^2 / 2: projected gradient with
        # the simplex handled by an extra slack cut of zeros, solved as bounded least squares.
        a = _simplex_qp(np.vstack([slopes, np.zeros(d)]), np.append(offsets, 0.0), C)
        w = a[:-1] @ slopes
        bound = max(bound, a[:-1] @ offsets - 0.5 * w @ w)
    return best, bound


def _simplex_qp(S, b, C):
    """max b.a - |S^T a|^2 / 2 over a >= 0, sum a = C, by pairwise exact coordinate steps."""
    a = np.zeros(len(b))
    a[-1] = C
    gram = S @ S.T
    gradient = b - gram @ a
    for _ in range(20000):
        up = int(np.argmax(gradient))
        down = int(np.argmin(np.where(a > 0, gradient, np.inf)))
        gain = gradient[up] - gradient[down]
        if gain <= 1e-10 * max(1.0, abs(b).max()):
            break
        bend = gram[up, up] + gram[down, down] - 2 * gram[up, down]
        t = min(a[down], gain / bend if bend > 0 else np.inf)
        a[up] += t
        a[down] -= t
        gradient = gradient - t * (gram[:, up] - gram[:, down])
    return a


class TestGolden:
    @pytest.mark.parametrize("C", [0.01, 0.03, 1.0, 1e3])
    def test_one_pair(self, C):
        # w = min(C, 1 / |d|^2) d
        d = np.array([3.0, 4.0])
        model = rw.RankSVM(C, loss="hinge", tol=1e-6, max_iter=1000).fit(
            [d, [0, 0]], [1, 0], qid=[7, 7]
        )
        a = min(C, 1 / 25)
        np.testing.assert_allclose(model.coef_, a * d, rtol=1e-3)
        assert model.objective_ == pytest.approx(12.5 * a**2 + C * (1 - 25 * a), rel=2e-6)

    @pytest.mark.parametrize("C", [1e-3, 0.05, 0.2, 1.0, 10.0])
    def test_three_documents(self, C):
        # Differences 1, 2, 3: f = w^2 / 2 + C (sum of max(0, 1 - d w)), a minimum over a line.
        model = rw.RankSVM(C, loss="hinge", tol=1e-6, max_iter=1000).fit(
            [[0.0], [1], [3]], [0, 1, 2], qid=[1] * 3
        )
        candidates = np.concatenate([[C, 3 * C, 6 * C], [1, 1 / 2, 1 / 3]])
        values = [0.5 * w * w + C * sum(max(0, 1 - d * w) for d in (1, 2, 3)) for w in candidates]
        assert model.objective_ == pytest.approx(min(values), rel=2e-6)
        assert model.coef_[0] == pytest.approx(candidates[int(np.argmin(values))], rel=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("levels", [2, 4, 30])
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_equals_the_dual_quadratic_program(C, levels, weighted):
    """The box-constrained dual by an independent solver, and scikit-learn's coordinate ascent."""
    queries = lists(8, 6, levels=levels, weighted=weighted, seed=levels)
    pairs, weights = differences(queries)
    # max 1'a - |P'a|^2 / 2 = -|P'a - t|^2 / 2 + const has no exact t; add the linear term by a
    # column: |[P, e]'a - [0, 1/e]|^2 with a small e^2 |1'a|^2 that shifts the solution by O(e^2).
    model = rw.RankSVM(C, loss="hinge", tol=1e-6, max_iter=2000).fit(queries)
    assert model.objective_ == pytest.approx(hinge_objective(queries, model.coef_, C), rel=1e-12)
    e = 1e-3
    left = np.hstack([pairs, np.full((len(pairs), 1), e)]).T
    dual = lsq_linear(left, np.append(np.zeros(4), 1 / e), (0, C * weights), tol=1e-14).x
    w = dual @ pairs
    assert hinge_objective(queries, w, C) >= model.objective_ * (1 - 1e-6)
    bound = dual.sum() - 0.5 * w @ w
    assert bound <= model.objective_ * (1 + 1e-12)
    sign = np.where(np.arange(len(pairs)) % 2, -1.0, 1.0)
    svc = LinearSVC(loss="hinge", fit_intercept=False, C=C, tol=1e-8, max_iter=10**6)
    svc.fit(pairs * sign[:, None], sign, sample_weight=weights)
    best = hinge_objective(queries, svc.coef_[0], C)
    assert model.objective_ == pytest.approx(best, rel=2e-6)
    np.testing.assert_allclose(model.coef_, svc.coef_[0], atol=5e-3 * np.abs(model.coef_).max())


@pytest.mark.parametrize("C", [0.003, 0.3])
def test_lies_between_the_bounds_of_cutting_planes(C):
    queries = lists(30, 12, seed=11)
    best, bound = cutting_planes(queries, C)
    model = rw.RankSVM(C, loss="hinge", tol=1e-8, max_iter=2000).fit(queries)
    assert bound <= model.objective_ <= best * (1 + 1e-12)
    assert best - bound <= 1e-4 * best


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5])
def test_the_gap_is_a_bound(tol):
    queries = rw.make_queries(n_queries=60, n_docs=20)
    best = rw.RankSVM(0.1, loss="hinge", tol=1e-6, max_iter=2000).fit(queries).objective_
    model = rw.RankSVM(0.1, loss="hinge", tol=tol).fit(queries)
    assert 0 <= model.duality_gap_ <= tol
    assert best <= model.objective_ * (1 + 1e-12)
    assert model.objective_ * (1 - model.duality_gap_) <= best * (1 + 1e-12)


@pytest.mark.parametrize("C", [1e-12, 1e-6, 1e-3, 1.0, 1e4])
def test_many_orders_of_c(C):
    model = rw.RankSVM(C, loss="hinge", tol=1e-3, max_iter=1000).fit(lists(30, seed=8))
    assert model.duality_gap_ <= 1e-3
    assert np.isfinite(model.coef_).all()


def test_says_what_gap_was_reached():
    with pytest.warns(
        ConvergenceWarning, match=r"duality gap must fall to .* reached .* after 1 it"
    ):
        rw.RankSVM(loss="hinge", tol=1e-12, max_iter=1).fit(lists(30))


class TestRoundedHinge:
    """The native kernel against pairs written out."""

    @pytest.mark.parametrize("levels", [2, 4, 40])
    @pytest.mark.parametrize("mu", [2.0, 0.3, 1e-3])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_equals_explicit_pairs(self, levels, mu, weighted):
        rng = np.random.default_rng(levels)
        n = 60
        y, s = rng.integers(0, levels, n).astype(float), rng.normal(0, 0.7, n)
        weight = rng.uniform(0.1, 2, n) if weighted else None
        w = np.ones(n) if weight is None else weight
        i, j = np.nonzero(y[:, None] > y[None, :])
        t = 1 - (s[i] - s[j])
        a = w[i] * np.clip(t / mu, 0, 1)
        kernel = _core.SmoothHingeLoss(y, np.array([0, n]), weight)
        kernel.set_width(mu)
        value, gradient, curvature = kernel.evaluate(s)
        rounded = np.where(t <= 0, 0, np.where(t < mu, t * t / (2 * mu), t - mu / 2))
        assert value[0] == pytest.approx((w[i] * rounded).sum(), rel=1e-10)
        expected = np.bincount(j, a, n) - np.bincount(i, a, n)
        np.testing.assert_allclose(gradient, expected, atol=1e-9)
        inside = w[i] * ((t > 0) & (t < mu)) / mu
        degree = np.bincount(i, inside, n) + np.bincount(j, inside, n)
        np.testing.assert_allclose(curvature, degree, atol=1e-9 / mu)
        hinge = w[i] * np.maximum(t, 0)
        assert kernel.hinge() == pytest.approx(hinge.sum(), rel=1e-12)
        assert kernel.slack() == pytest.approx((hinge - a * np.maximum(t, 0)).sum(), abs=1e-9)
        v = rng.normal(0, 1, n)
        flow = inside * (v[i] - v[j])
        product = np.bincount(i, flow, n) - np.bincount(j, flow, n)
        np.testing.assert_allclose(kernel.product(v), product, atol=1e-9 / mu)
