"""Linear rankers: golden cases, other solvers' solutions, invariances, and the native products."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import rankwise as rw
import reference
from rankwise import _core
from rankwise._newton import minimize


def differences(queries):
    """Winner minus loser of every pair, and the winner's weight."""
    rows, weights = [], []
    for a, b in itertools.pairwise(queries.offsets):
        for i, j in itertools.product(range(a, b), range(a, b)):
            if queries.y[i] > queries.y[j]:
                rows.append(queries.X[i] - queries.X[j])
                weights.append(1.0 if queries.weight is None else queries.weight[i])
    return np.array(rows), np.array(weights)


def lists(n_queries=12, n_docs=9, n_features=4, seed=0, *, levels=3, weighted=False):
    """Lists of different lengths (one of a single document) around a planted direction."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, n_docs, n_queries)
    sizes[0] = 1
    n = sizes.sum()
    X = rng.normal(0, 1, (n, n_features))
    merit = X @ np.linspace(1, -0.5, n_features) + rng.normal(0, 0.7, n)
    y = np.digitize(merit, np.linspace(-1, 1.5, levels - 1)).astype(float)
    weight = rng.uniform(0.2, 2, n) if weighted else None
    qid = np.repeat(np.arange(n_queries), sizes)
    return rw.Queries.from_arrays(X, y, qid, weight=weight)


@pytest.fixture(scope="module")
def course():
    queries = rw.make_queries()
    return queries.take(range(300)), queries.take(range(300, 1300))


# --- RankSVM -------------------------------------------------------------------------------


class TestRankSVM:
    @pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 1e3])
    def test_one_pair(self, C):
        d = np.array([3.0, 4.0])
        model = rw.RankSVM(C=C, tol=1e-12).fit(np.array([d, [0, 0]]), [1, 0], qid=[7, 7])
        np.testing.assert_allclose(model.coef_, 2 * C * d / (1 + 2 * C * 25), rtol=1e-7)
        assert model.objective_ == pytest.approx(C / (1 + 2 * C * 25), rel=1e-9)

    @pytest.mark.parametrize(
        ("C", "w", "f"), [(0.01, 0.09375, 0.024375), (0.1, 6 / 19, 21 / 190), (1.0, 2 / 3, 1 / 3)]
    )
    def test_three_documents(self, C, w, f):
        model = rw.RankSVM(C=C, tol=1e-12).fit([[0.0], [1], [3]], [0, 1, 2], qid=[1, 1, 1])
        assert model.coef_[0] == pytest.approx(w, rel=1e-9)
        assert model.objective_ == pytest.approx(f, rel=1e-9)

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("levels", [2, 4, 30])
    @pytest.mark.parametrize("C", [0.01, 10.0])
    def test_equals_linear_svc_on_explicit_pairs(self, C, levels, weighted):
        queries = lists(levels=levels, weighted=weighted, seed=levels)
        pairs, weights = differences(queries)
        sign = np.where(np.arange(len(pairs)) % 2, -1.0, 1.0)
        svc = LinearSVC(
            loss="squared_hinge", fit_intercept=False, dual=False, C=C, tol=1e-10, max_iter=10000
        )
        svc.fit(pairs * sign[:, None], sign, sample_weight=weights)
        model = rw.RankSVM(C=C, tol=1e-10).fit(queries)
        np.testing.assert_allclose(model.coef_, svc.coef_[0], rtol=1e-6, atol=1e-7)
        short = np.maximum(0, 1 - pairs @ model.coef_)
        expected = 0.5 * model.coef_ @ model.coef_ + C * (weights * short**2).sum()
        assert model.objective_ == pytest.approx(expected, rel=1e-10)
        assert model.gradient_norm_ <= 1e-10

    def test_starts_at_c_times_pairs_and_only_falls(self):
        queries = lists(40)
        pairs, _ = differences(queries)
        sizes, losses = [], []
        for C in (1e-4, 1e-2, 1.0, 100.0):
            model = rw.RankSVM(C=C, tol=1e-8).fit(queries)
            assert model.objective_ <= C * len(pairs)
            sizes.append(np.linalg.norm(model.coef_))
            losses.append((np.maximum(0, 1 - pairs @ model.coef_) ** 2).sum())
        assert sizes == sorted(sizes)
        assert losses == sorted(losses, reverse=True)

    def test_repeating_every_query_is_doubling_c(self):
        queries = lists()
        twice = rw.concatenate(
            [queries, rw.Queries(queries.X, queries.y, queries.offsets, queries.ids + 100)]
        )
        once = rw.RankSVM(C=1.0, tol=1e-10).fit(queries)
        both = rw.RankSVM(C=0.5, tol=1e-10).fit(twice)
        np.testing.assert_allclose(both.coef_, once.coef_, rtol=1e-8)

    def test_scaling_features(self):
        queries = lists()
        model = rw.RankSVM(C=0.3, tol=1e-10).fit(queries)
        scaled = rw.RankSVM(C=0.3 / 16, tol=1e-10).fit(queries.with_features(queries.X * 4))
        np.testing.assert_allclose(scaled.coef_, model.coef_ / 4, rtol=1e-8)
        assert scaled.objective_ == pytest.approx(model.objective_ / 16)

    def test_a_query_feature_changes_nothing(self):
        queries = lists()
        mark = np.repeat(np.arange(queries.n_queries) * 1e6, queries.sizes)[:, None]
        model = rw.RankSVM(tol=1e-10).fit(queries)
        wider = rw.RankSVM(tol=1e-10).fit(queries.with_features(np.hstack([mark, queries.X])))
        assert wider.coef_[0] == 0
        np.testing.assert_allclose(wider.coef_[1:], model.coef_, rtol=1e-8)

    def test_order_of_queries_does_not_matter(self):
        queries = lists(weighted=True)
        model = rw.RankSVM().fit(queries)
        other = rw.RankSVM().fit(queries.take(np.arange(queries.n_queries)[::-1]))
        assert np.array_equal(model.coef_, other.coef_)

    def test_hessian_is_symmetric_and_at_least_one(self):
        queries = lists(30, seed=4)
        kernel = _core.SquaredHingeLoss(queries.y, queries.offsets, None)
        features = _core.Features(queries.X)
        kernel.evaluate_linear(features, np.array([0.3, -0.2, 0.1, 0.4]))
        columns = [kernel.product_linear(features, column)[0] for column in np.eye(4)]
        hessian = np.eye(4) + np.array(columns)
        np.testing.assert_allclose(hessian, hessian.T, rtol=1e-10)
        assert np.linalg.eigvalsh(hessian).min() >= 1

    @pytest.mark.parametrize("C", [1e-12, 1e-6, 1e6, 1e9])
    def test_twelve_orders_of_c(self, C):
        queries = lists(30, seed=8)
        model = rw.RankSVM(C=C).fit(queries)
        assert model.gradient_norm_ <= 1e-4
        assert np.isfinite(model.coef_).all()


# --- any loss ------------------------------------------------------------------------------


class TestLinearRanker:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_squared_is_ridge_regression(self, weighted):
        queries = lists(weighted=weighted)
        model = rw.LinearRanker("squared", alpha=2.0, scale=None, tol=1e-12).fit(queries)
        ridge = Ridge(2.0).fit(queries.X, queries.y, sample_weight=queries.weight)
        np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-9)
        assert model.intercept_ == pytest.approx(ridge.intercept_)
        np.testing.assert_allclose(model.predict(queries), ridge.predict(queries.X))

    @pytest.mark.parametrize("weighted", [False, True])
    def test_ranknet_is_logistic_regression_on_differences(self, weighted):
        queries = lists(weighted=weighted)
        pairs, weights = differences(queries)
        signs = np.repeat([1.0, -1.0], len(pairs))
        logistic = LogisticRegression(fit_intercept=False, C=0.5 / 3, tol=1e-10, max_iter=1000)
        logistic.fit(np.vstack([pairs, -pairs]), signs, sample_weight=np.tile(weights, 2))
        model = rw.LinearRanker("ranknet", alpha=3.0, scale=None, tol=1e-9).fit(queries)
        np.testing.assert_allclose(model.coef_, logistic.coef_[0], rtol=1e-5)

    @pytest.mark.parametrize("loss", ["squared", "ranknet(sigma=2)", "listnet", "squared_hinge"])
    @pytest.mark.parametrize("scale", [None, "std"])
    def test_gradient_vanishes_by_the_reference(self, loss, scale):
        queries = lists(weighted=True)
        model = rw.LinearRanker(loss, alpha=0.7, scale=scale, tol=1e-10).fit(queries)
        s = queries.X @ model.coef_ + model.intercept_
        z = REFERENCE[loss](queries.y, s, queries.offsets, queries.weight)[1]
        size = queries.X.std(axis=0) if scale == "std" else np.ones(4)
        gradient = queries.X.T @ z + 0.7 * size**2 * model.coef_
        np.testing.assert_allclose(gradient, 0, atol=1e-7)
        if loss == "squared":
            assert z.sum() == pytest.approx(0, abs=1e-7)
        else:
            assert model.intercept_ == 0

    def test_coefficients_belong_to_the_features_as_given(self):
        queries = lists()
        sizes = np.array([1e-6, 1.0, 1e3, 1e8])
        model = rw.LinearRanker("ranknet", tol=1e-10).fit(queries)
        other = rw.LinearRanker("ranknet", tol=1e-10).fit(queries.with_features(queries.X * sizes))
        np.testing.assert_allclose(other.coef_ * sizes, model.coef_, rtol=1e-6)
        assert other.objective_ == pytest.approx(model.objective_)

    def test_numbers_of_the_course_note(self, course):
        train, test = course
        for loss, expected in (("squared", 0.647), ("ranknet", 0.646)):
            model = rw.LinearRanker(loss, metric="ndcg@5").fit(train)
            assert model.score(test) == pytest.approx(expected, abs=5e-4)
            # As in the note: Ridge(1.0) and LogisticRegression(C=1) on features as they are.
            model = rw.LinearRanker(loss, scale=None, metric="ndcg@5").fit(train)
            assert model.score(test) == pytest.approx(expected, abs=5e-4)
        for model in (rw.LinearRanker("listnet"), rw.RankSVM()):
            assert 0.64 < model.set_params(metric="ndcg@5").fit(train).score(test) < 0.65
        random = np.random.default_rng(1).standard_normal(test.n_docs)
        metric = rw.parse_metric("ndcg@5")
        assert metric.mean(test.y, random, qid=test.groups) == pytest.approx(0.19, abs=0.01)

    @pytest.mark.parametrize(
        "model", [rw.RankSVM(100.0), *map(rw.LinearRanker, ("ranknet", "listnet", "squared"))]
    )
    def test_recovers_a_planted_ranking(self, model):
        rng = np.random.default_rng(3)
        X = rng.normal(0, 1, (600, 5)) * [1, 10, 0.1, 1, 1]
        merit = X @ [1.0, 0.1, -10.0, 0.5, 0.0]
        qid = np.repeat(np.arange(30), 20)
        y = np.digitize(merit, np.quantile(merit, [0.2, 0.4, 0.6, 0.8])).astype(float)
        model = clone(model).fit(X, y, qid=qid)
        assert model.score(X, y, qid=qid) > 0.98
        fresh = rng.normal(0, 1, (500, 5)) * [1, 10, 0.1, 1, 1]
        truth = fresh @ [1.0, 0.1, -10.0, 0.5, 0.0]
        assert np.corrcoef(model.predict(fresh), truth)[0, 1] > 0.98

    @pytest.mark.parametrize("loss", ["lambdarank", "lambdarank(metric='ndcg@5', sigma=2)"])
    def test_lambdarank_raises_its_own_metric(self, course, loss):
        train, test = course
        metric = rw.parse_metric(rw.parse_loss(loss).metric)
        convex = rw.LinearRanker("ranknet", tol=1e-2).fit(train)
        model = rw.LinearRanker(loss).fit(train)
        value = metric.mean(train.y, model.predict(train), qid=train.groups)
        assert value == pytest.approx(model.best_score_, abs=1e-12)
        assert value >= metric.mean(train.y, convex.predict(train), qid=train.groups)
        watched = rw.LinearRanker(loss).fit(train, eval_set=test)
        best = metric.mean(test.y, watched.predict(test), qid=test.groups)
        assert best == pytest.approx(watched.best_score_, abs=1e-12)
        order = np.random.default_rng(0).permutation(train.n_docs)
        again = rw.LinearRanker(loss).fit(train.X[order], train.y[order], qid=train.qid[order])
        assert np.array_equal(again.coef_, model.coef_)

    def test_lambdarank_stands_at_a_local_optimum(self, course):
        """Burges 2010: in hundreds of random directions the metric falls."""
        train, _ = course
        model = rw.LinearRanker("lambdarank", metric="ndcg").fit(train)
        metric = rw.parse_metric("ndcg")
        rng = np.random.default_rng(0)
        spread = train.X.std(axis=0)
        length = np.linalg.norm(model.coef_ * spread)

        def at(w):
            return metric.mean(train.y, train.X @ w, qid=train.groups)

        top, falls = at(model.coef_), []
        for _ in range(300):
            direction = rng.normal(0, 1, len(spread))
            direction /= np.linalg.norm(direction)
            falls.append(at(model.coef_ + 0.3 * length * direction / spread) < top)
        assert np.mean(falls) > 0.95

    def test_lambdarank_takes_no_l1_penalty(self):
        with pytest.raises(ValueError, match="l1_ratio must be 0 for lambdarank"):
            rw.LinearRanker("lambdarank", l1_ratio=0.5).fit(lists())


REFERENCE = {
    "squared": reference.squared,
    "listnet": reference.listnet,
    "ranknet(sigma=2)": lambda *a: reference.loss_by_pairs(reference.ranknet_pair(2.0), *a),
    "squared_hinge": lambda *a: reference.loss_by_pairs(reference.squared_hinge_pair, *a),
}


class OwnRankNet:
    """A user's loss: no base class, no text form."""

    shift_invariant = True

    def value(self, y, s, offsets, weight=None):
        return rw.RankNet().value(y, s, offsets, weight)

    def derivatives(self, y, s, offsets, weight=None):
        return rw.RankNet().derivatives(y, s, offsets, weight)


class OwnRankNetWithProducts(OwnRankNet):
    def hessian_product(self, y, s, offsets, v, weight=None):
        return rw.RankNet().hessian_product(y, s, offsets, v, weight)


class OwnPoisson:
    """Pointwise, and not shift invariant: needs the intercept."""

    def value(self, y, s, offsets, weight=None):
        return np.add.reduceat(np.exp(s) - y * s, offsets[:-1])

    def derivatives(self, y, s, offsets, weight=None):
        return np.exp(s) - y, np.exp(s)


class TestOwnLosses:
    @pytest.mark.parametrize("loss", [OwnRankNet(), OwnRankNetWithProducts()])
    def test_equal_the_built_in(self, loss):
        queries = lists(weighted=True)
        built_in = rw.LinearRanker("ranknet", tol=1e-8).fit(queries)
        own = rw.LinearRanker(loss, tol=1e-8, max_iter=500).fit(queries)
        np.testing.assert_allclose(own.coef_, built_in.coef_, rtol=1e-6)
        assert own.objective_ == pytest.approx(built_in.objective_)

    def test_pointwise(self):
        from sklearn.linear_model import PoissonRegressor

        queries = lists(40)
        own = rw.LinearRanker(OwnPoisson(), alpha=1.0, scale=None, tol=1e-9).fit(queries)
        # scikit-learn averages the loss over documents.
        other = PoissonRegressor(alpha=1 / queries.n_docs, tol=1e-10, max_iter=1000)
        other.fit(queries.X, queries.y)
        np.testing.assert_allclose(own.coef_, other.coef_, rtol=1e-5)
        assert own.intercept_ == pytest.approx(other.intercept_, rel=1e-5)

    def test_a_broken_loss_is_named(self):
        class Broken(OwnRankNet):
            def derivatives(self, y, s, offsets, weight=None):
                return np.full(len(y), np.nan), np.ones(len(y))

        with pytest.raises(ValueError, match="finite gradient array of length"):
            rw.LinearRanker(Broken()).fit(lists())


# --- what no model may depend on -----------------------------------------------------------

MODELS = [
    rw.RankSVM(0.1),
    rw.LinearRanker("squared"),
    rw.LinearRanker("ranknet"),
    rw.LinearRanker("listnet", scale=None),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{type(m).__name__}-{m.loss}")


@each_model
class TestEveryModel:
    def test_row_order(self, model):
        queries = rw.make_queries(n_queries=60, n_docs=20)
        rng = np.random.default_rng(0)
        order = rng.permutation(queries.n_docs)
        first = clone(model).fit(queries)
        second = clone(model).fit(queries.X[order], queries.y[order], qid=queries.qid[order])
        assert np.array_equal(first.coef_, second.coef_)
        assert first.intercept_ == second.intercept_
        assert np.array_equal(first.predict(queries.X[order]), second.predict(queries.X[order]))

    def test_threads(self, model):
        queries = rw.make_queries("web", n_queries=60, n_docs=60, rng=1)
        fits = []
        for n in (1, 2):
            with threadpool_limits(n):
                fits.append(clone(model).set_params(scale="std").fit(queries).coef_)
        assert np.array_equal(*fits)

    def test_sparse_float32_and_frames(self, model):
        pd = pytest.importorskip("pandas")
        queries = lists(30, seed=5)
        X = np.where(np.abs(queries.X) < 0.5, 0, np.round(queries.X, 2))
        y, qid = queries.y, queries.qid
        dense = clone(model).set_params(tol=1e-10).fit(X, y, qid=qid)
        sparse = clone(dense).fit(sp.csr_matrix(X), y, qid=qid)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-7)
        assert np.array_equal(dense.predict(X), dense.predict(sp.csr_matrix(X)))
        narrow = clone(dense).fit(X.astype(np.float32), y, qid=qid)
        np.testing.assert_allclose(narrow.coef_, dense.coef_, rtol=1e-4)
        frame = pd.DataFrame(X, columns=list("abcd")).assign(qid=qid)
        framed = clone(dense).fit(frame, y)
        assert np.array_equal(framed.coef_, dense.coef_)
        assert list(framed.feature_names_in_) == list("abcd")

    def test_more_features_than_documents(self, model):
        rng = np.random.default_rng(6)
        X = sp.random(200, 900, density=0.05, random_state=6, format="csr")
        y, qid = rng.integers(0, 3, 200), np.repeat(np.arange(20), 10)
        sparse = clone(model).set_params(tol=1e-8).fit(X, y, qid=qid)
        dense = clone(sparse).fit(X.toarray(), y, qid=qid)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-4, atol=1e-6)
        assert max(sparse.gradient_norm_, dense.gradient_norm_) <= 1e-8

    def test_missing_values_are_refused(self, model):
        queries = lists()
        X = queries.X.copy()
        X[3, 1] = np.nan
        with pytest.raises(ValueError, match=r"fit: X must not hold NaN.*SimpleImputer"):
            clone(model).fit(X, queries.y, qid=queries.qid)
        with pytest.raises(ValueError, match="predict: X must not hold NaN"):
            clone(model).fit(queries).predict(X)

    def test_labels_without_an_order(self, model):
        with pytest.raises(ValueError, match="there is no order to learn"):
            clone(model).fit(np.eye(4), [0, 0, 0, 0], qid=[1, 1, 2, 2])
        if model.loss != "squared":
            with pytest.raises(ValueError, match="got 2 queries of one label each"):
                clone(model).fit(np.eye(4), [1, 1, 0, 0], qid=[1, 1, 2, 2])
        with pytest.raises(ValueError, match="there is no order to learn"):
            clone(model).fit(np.eye(1), [1], qid=[1])

    def test_features_without_use(self, model):
        queries = lists(8)
        constant = np.full((queries.n_docs, 1), 1e8)
        fitted = clone(model).fit(queries.with_features(constant))
        assert fitted.coef_.tolist() == [0]
        assert len(set(fitted.predict(constant))) == 1
        fitted = clone(model).fit(queries.with_features(np.hstack([constant, queries.X])))
        assert fitted.coef_[0] == 0

    def test_bad_parameters(self, model):
        strength = "C" if isinstance(model, rw.RankSVM) else "alpha"
        for name, value in ((strength, 0), (strength, "1"), ("tol", -1), ("max_iter", 0)):
            with pytest.raises(ValueError, match=rf"fit: {name} must be"):
                clone(model).set_params(**{name: value}).fit(lists())
        with pytest.raises(ValueError, match="scale must be one of"):
            clone(model).set_params(scale="max").fit(lists())
        with pytest.raises(ValueError, match="loss"):
            clone(model).set_params(loss="hing").fit(lists())

    def test_says_when_it_did_not_converge(self, model):
        queries = rw.make_queries("web", n_queries=20, n_docs=30, rng=1)
        hasty = clone(model).set_params(max_iter=1, tol=1e-15, scale="std")
        with pytest.warns(
            ConvergenceWarning, match=r"reached .* after 1 iterations; raise max_iter"
        ):
            hasty.fit(queries)
        assert hasty.gradient_norm_ > 1e-15


@pytest.mark.letor
def test_raw_web_features_converge(letor_data):
    train = rw.read(letor_data / "mslr-sample" / "train.txt")
    assert np.abs(train.X).max() > 1e6
    for model in (*MODELS[1:3], rw.LinearRanker("listnet"), rw.RankSVM(1e-3, scale="std")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert clone(model).fit(train).score(train) > 0.4


# --- the solver and the native products ----------------------------------------------------


class Rosenbrock:
    """Not convex: the Hessian is indefinite where the valley bends."""

    start = np.array([-1.2, 1.0])

    def evaluate(self, w):
        x, y = self.at = w + self.start
        gradient = np.array([-400 * x * (y - x * x) - 2 * (1 - x), 200 * (y - x * x)])
        return 100 * (y - x * x) ** 2 + (1 - x) ** 2, gradient

    def product(self, u):
        x, y = self.at
        hessian = np.array([[1200 * x * x - 400 * y + 2, -400 * x], [-400 * x, 200]])
        return hessian @ u

    def dot(self, a, b):
        return float(a @ b)

    def preconditioner(self):
        return lambda r: r


def test_trust_region_follows_a_curved_valley():
    solution = minimize(Rosenbrock(), np.zeros(2), first=233.0, tol=1e-10, max_iter=100)
    np.testing.assert_allclose(solution.w + Rosenbrock.start, [1, 1], rtol=1e-8)
    assert solution.n_iter < 60


matrices = st.tuples(st.integers(1, 40), st.integers(1, 70), st.integers(0, 10**6))


class TestProducts:
    @settings(max_examples=40)
    @given(shape=matrices, dtype=st.sampled_from([np.float32, np.float64]))
    def test_equal_numpy(self, shape, dtype):
        n, d, seed = shape
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((n, d)) < 0.6, rng.normal(0, 1, (n, d)), 0).astype(dtype)
        w, z = rng.normal(0, 1, d), rng.normal(0, 1, n)
        z[rng.random(n) < 0.3] = 0
        S = sp.csr_matrix(X)
        wide = S.indices.astype(np.int64), S.indptr.astype(np.int64)
        dense = _core.Features(X)
        for features in (
            dense,
            _core.Features(S.data, S.indices, S.indptr, d),
            _core.Features(S.data, *wide, d),
        ):
            scores = features.scores(w)
            np.testing.assert_allclose(scores, X.astype(float) @ w, rtol=1e-12, atol=1e-12)
            # A sparse row and its dense form have the same score to the last bit.
            assert np.array_equal(scores, dense.scores(w))
            sums = features.transposed(z)
            np.testing.assert_allclose(sums, X.astype(float).T @ z, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("d", [1, 7, 16, 136])
    def test_a_score_depends_on_its_row_alone(self, dtype, d):
        rng = np.random.default_rng(d)
        X = rng.normal(0, 1, (5000, d)).astype(dtype)
        w = rng.normal(0, 1, d)
        whole = _core.Features(X).scores(w)
        order = rng.permutation(5000)
        assert np.array_equal(_core.Features(X[order]).scores(w), whole[order])
        assert np.array_equal(_core.Features(X[77:78].copy()).scores(w), whole[77:78])

    def test_threads_do_not_change_a_bit(self):
        rng = np.random.default_rng(0)
        X = rng.normal(0, 1, (20000, 30))
        w, z = rng.normal(0, 1, 30), rng.normal(0, 1, 20000)
        S = sp.csr_matrix(np.where(X > 0, X, 0))
        for features in (_core.Features(X), _core.Features(S.data, S.indices, S.indptr, 30)):
            assert np.array_equal(*(features.scores(w, n_threads=t) for t in (1, 2)))
            assert np.array_equal(*(features.transposed(z, n_threads=t) for t in (1, 2)))

    @settings(max_examples=40)
    @given(seed=st.integers(0, 10**6))
    def test_columns_that_vary_inside_a_query(self, seed):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(0, 5, 6)
        X = rng.integers(0, 2, (sizes.sum(), 9)) * rng.integers(0, 2, 9).astype(float)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        X[offsets[1] : offsets[2]] = 1.0
        parts = [X[a:b] for a, b in itertools.pairwise(offsets) if b > a]
        expected = np.any([np.ptp(part, axis=0) > 0 for part in parts] or [np.zeros(9)], axis=0)
        S = sp.csr_matrix(X)
        for features in (_core.Features(X), _core.Features(S.data, S.indices, S.indptr, 9)):
            assert np.array_equal(features.varying_within(offsets), expected)

    @pytest.mark.parametrize("d", [8, 40, 136])
    def test_gram_and_cholesky(self, d):
        rng = np.random.default_rng(d)
        B = rng.normal(0, 1, (300, d))
        gram = _core.gram(B)
        np.testing.assert_allclose(gram, B.T @ B, rtol=1e-12, atol=1e-11)
        assert np.array_equal(gram, gram.T)
        assert np.array_equal(gram, _core.gram(B, n_threads=2))
        b = rng.normal(0, 1, d)
        solved = _core.cholesky_solve(_core.cholesky(gram), b)
        np.testing.assert_allclose(gram @ solved, b, rtol=1e-8, atol=1e-9)
        with pytest.raises(ValueError, match="positive definite"):
            _core.cholesky(-gram)

    def test_bad_matrices_are_refused(self):
        with pytest.raises(TypeError):
            _core.Features(np.zeros((3, 3)).T[::2])
        for columns, starts in (([5, 0], [0, 1, 2]), ([0, 0], [0, 2, 1]), ([0, 0], [0, 1, 3])):
            with pytest.raises(ValueError, match="CSR"):
                _core.Features(
                    np.ones(2), np.array(columns, np.int32), np.array(starts, np.int32), 2
                )
        with pytest.raises(ValueError, match="w must have 2 entries"):
            _core.Features(np.zeros((3, 2))).scores(np.zeros(3))
