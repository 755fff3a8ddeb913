"""Paths of penalties, warm starts, conventions of C, given pairs, starts on a sample, extremes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rankwise as rw
from rankwise import _core
from rankwise.data import canonical, canonical_lists
from test_linear import differences, lists

RANKERS = [
    rw.LinearRanker("ranknet", tol=1e-8),
    rw.LinearRanker("squared", l1_ratio=0.5, tol=1e-8),
    rw.RankSVM(tol=1e-8),
    rw.RankSVM(loss="hinge", tol=1e-5, max_iter=1000),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_a_path_gives_the_models_of_single_fits(ranker):
    queries = lists(30, seed=3, weighted=True)
    values = [1.0, 0.01, 30.0]
    name = "C" if isinstance(ranker, rw.RankSVM) else "alpha"
    path = rw.linear_path(ranker, queries, values=values)
    for value, model in zip(values, path, strict=True):
        assert getattr(model, name) == value and not model.warm_start
        alone = clone(ranker).set_params(**{name: value}).fit(queries)
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-5)
        np.testing.assert_allclose(model.predict(queries), alone.predict(queries), atol=2e-2)


def test_a_path_takes_fewer_steps():
    queries = rw.make_queries(n_queries=100)
    values = 10.0 ** np.arange(-3, 3, 0.5)
    ranker = rw.LinearRanker("ranknet", tol=1e-6)
    along = sum(m.n_iter_ for m in rw.linear_path(ranker, queries, values=values))
    alone = sum(clone(ranker).set_params(alpha=v).fit(queries).n_iter_ for v in values)
    assert along < alone


def test_a_path_refuses():
    with pytest.raises(TypeError, match="ranker must be a LinearRanker or a RankSVM, got TreeR"):
        rw.linear_path(rw.TreeRanker(), lists(), values=[1.0])
    with pytest.raises(ValueError, match="values must hold at least one alpha"):
        rw.linear_path(rw.LinearRanker(), lists(), values=[])
    with pytest.raises(ValueError, match="linear_path: C must be a number above 0"):
        rw.linear_path(rw.RankSVM(), lists(), values=[1.0, 0.0])


def test_warm_start_begins_at_the_last_fit():
    queries = lists(30)
    model = rw.LinearRanker("ranknet", tol=1e-8, warm_start=True).fit(queries)
    first, coef = model.n_iter_, model.coef_
    assert first > 0
    assert model.fit(queries).n_iter_ == 0
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-10)


class TestConventions:
    """Each against the other program's objective, written out over explicit pairs."""

    def solved(self, queries, objective):
        from scipy.optimize import minimize

        pairs, _ = differences(queries)
        found = minimize(
            lambda w: objective(w, np.maximum(0, 1 - pairs @ w)), np.zeros(4), tol=1e-12,
            method="BFGS", options={"gtol": 1e-9, "maxiter": 10**4},
        )  # fmt: skip
        return found.x

    @pytest.mark.parametrize(
        ("source", "C", "objective"),
        [
            ("linearsvc", 0.3, lambda w, t, p, q: 0.5 * w @ w + 0.3 * (t**2).sum()),
            ("liblinear", 0.3, lambda w, t, p, q: 0.5 * w @ w + 0.3 * (t**2).sum()),
            ("chapelle", 0.3, lambda w, t, p, q: 0.5 * w @ w + 0.3 / 2 * (t**2).sum()),
            ("mean over pairs", 9.0, lambda w, t, p, q: 0.5 * w @ w + 9 / p * (t**2).sum()),
            ("svm_rank", 4.0, lambda w, t, p, q: 0.5 * w @ w + 4 / q * (t**2).sum()),
            ("regularised mean", 0.2, lambda w, t, p, q: 0.1 * w @ w + (t**2).mean()),
            ("alpha", 5.0, lambda w, t, p, q: 2.5 * w @ w + (t**2).sum()),
        ],
    )
    def test_the_model_is_the_other_programs(self, source, C, objective):
        queries = lists(20)
        n_pairs = len(differences(queries)[0])
        counts = {"n_pairs": n_pairs, "n_queries": queries.n_queries}
        w = self.solved(queries, lambda w, t: objective(w, t, n_pairs, queries.n_queries))
        model = rw.RankSVM(rw.ranksvm_C(C, source, **counts), tol=1e-9).fit(queries)
        with warnings.catch_warnings():
            np.testing.assert_allclose(model.coef_, w, atol=1e-5)

    def test_alpha_is_linear_ranker(self):
        queries = lists(20)
        ranker = rw.LinearRanker("squared_hinge", alpha=5.0, scale=None, tol=1e-9).fit(queries)
        model = rw.RankSVM(rw.ranksvm_C(5.0, "alpha"), tol=1e-9).fit(queries)
        np.testing.assert_allclose(model.coef_, ranker.coef_, rtol=1e-6)

    def test_hinge_programs(self):
        assert rw.ranksvm_C(0.7, "svm_light") == 0.7
        assert rw.ranksvm_C(20.0, "svm_rank", n_queries=100) == 0.2

    def test_refusals(self):
        with pytest.raises(ValueError, match="source must be one of"):
            rw.ranksvm_C(1.0, "svm")
        with pytest.raises(ValueError, match="n_pairs must be an integer of at least 1, got None"):
            rw.ranksvm_C(1.0, "mean over pairs")
        with pytest.raises(ValueError, match="C must be a number above 0"):
            rw.ranksvm_C(0.0, "chapelle")


class TestGivenPairs:
    @pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
    def test_equal_those_of_labels(self, loss):
        queries = lists(20, weighted=True)
        documents = queries.with_features(np.eye(queries.n_docs))
        A, _ = differences(documents)
        pairs = rw.Pairs(A.argmax(axis=1), A.argmin(axis=1))
        tol = 1e-6 if loss == "hinge" else 1e-10
        model = rw.RankSVM(0.1, loss=loss, tol=tol, max_iter=1000).fit(queries)
        given = clone(model).fit(
            queries.X, qid=queries.qid, sample_weight=queries.weight, pairs=pairs
        )
        assert given.objective_ == pytest.approx(model.objective_, rel=1e-6)

    def test_a_target_is_a_mixture_of_both_directions(self):
        rng = np.random.default_rng(0)
        X, qid = rng.normal(0, 1, (12, 3)), np.repeat([0, 1], 6)
        winner, loser = np.array([0, 1, 6, 7]), np.array([2, 3, 8, 9])
        target, weight = np.array([1.0, 0.8, 0.5, 0.6]), np.array([1.0, 2.0, 0.5, 1.0])
        mixed = rw.Pairs(winner, loser, weight, target)
        both = rw.Pairs(
            np.concatenate([winner, loser]), np.concatenate([loser, winner]),
            np.concatenate([weight * target, weight * (1 - target)]),
        )  # fmt: skip
        for loss in ("hinge", "squared_hinge"):
            fits = [
                rw.RankSVM(1.0, loss=loss, tol=1e-6, max_iter=1000).fit(X, qid=qid, pairs=p)
                for p in (mixed, both)
            ]
            assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=1e-6)

    def test_rounded_hinge_over_pairs_equals_that_over_labels(self):
        queries = lists(15, levels=4, weighted=True)
        A, _ = differences(queries.with_features(np.eye(queries.n_docs)))
        order = np.argsort(A.argmax(axis=1), kind="stable")
        winner, loser = (
            np.ascontiguousarray(c[order]) for c in (A.argmax(axis=1), A.argmin(axis=1))
        )
        one = _core.SmoothHingeLoss(queries.y, queries.offsets, queries.weight)
        two = _core.SmoothHingePairs(
            queries.offsets,
            queries.weight,
            winner.astype(np.int64),
            loser.astype(np.int64),
            None,
            None,
        )
        s, v = np.random.default_rng(1).normal(0, 0.5, (2, queries.n_docs))
        for mu in (1.5, 0.1):
            for kernel in (one, two):
                kernel.set_width(mu)
            for a, b in zip(one.evaluate(s), two.evaluate(s), strict=True):
                np.testing.assert_allclose(a, b, atol=1e-9)
            assert one.hinge() == pytest.approx(two.hinge())
            assert one.slack() == pytest.approx(two.slack(), abs=1e-10)
            np.testing.assert_allclose(one.product(v), two.product(v), atol=1e-9)


class TestRowsWhereTheyLie:
    """Rows in canonical order by number are those moved there."""

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_products(self, sparse, dtype):
        queries = rw.make_queries("web", n_queries=20, n_docs=30, rng=1, dtype=dtype)
        X = queries.X * (queries.X > 0.5)
        X = sp.csr_matrix(X) if sparse else np.ascontiguousarray(X)
        queries = queries.with_features(X)
        listed, order = canonical_lists(queries)
        moved = canonical(queries)
        rng = np.random.default_rng(0)
        w, z = rng.normal(0, 1, 136), rng.normal(0, 1, queries.n_docs)
        parts = (X.data, X.indices, X.indptr, 136) if sparse else (X,)
        M = moved.X
        there = (M.data, M.indices, M.indptr, 136) if sparse else (M,)
        a, b = _core.Features(*parts, order), _core.Features(*there)
        assert np.array_equal(a.scores(w), b.scores(w))
        assert np.array_equal(a.transposed(z), b.transposed(z))
        centre = rng.normal(0, 1, 136)
        assert np.array_equal(a.squares(z, centre), b.squares(z, centre))
        dense = M.toarray() if sparse else M
        expected = (z[:, None] * (dense.astype(float) - centre) ** 2).sum(axis=0)
        np.testing.assert_allclose(a.squares(z, centre), expected, rtol=1e-9, atol=1e-9)
        assert np.array_equal(a.varying_within(listed.offsets), b.varying_within(moved.offsets))
        for loss in (_core.SquaredHingeLoss, _core.SmoothHingeLoss):
            kernel = loss(listed.y, listed.offsets, None)
            for one, two in zip(
                kernel.evaluate_linear(a, w), kernel.evaluate_linear(b, w), strict=True
            ):
                assert np.array_equal(one, two)

    def test_canonical_rows_are_not_copied(self):
        queries = canonical(rw.make_queries(n_queries=20))
        again, order = canonical_lists(queries)
        assert order is None and canonical(queries).X is queries.X and again.X is queries.X

    def test_bad_orders(self):
        with pytest.raises(ValueError, match="order must hold numbers of rows"):
            _core.Features(np.zeros((3, 2)), np.array([0, 3]))


@pytest.mark.parametrize("loss", ["ranknet", "squared_hinge", "hinge", "listnet", "squared"])
def test_a_start_on_a_sample_ends_at_the_same_model(loss):
    queries = rw.make_queries(n_queries=1500, n_docs=30)
    tol = 1e-4 if loss == "hinge" else 1e-8
    model = rw.LinearRanker(loss, tol=tol).fit(queries)
    cold = rw.LinearRanker(loss, tol=tol, warm_start=True)
    cold.coef_, cold.intercept_ = np.zeros(6), 0.0
    cold.fit(queries)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-4 if loss == "hinge" else 1e-9)
    order = np.random.default_rng(0).permutation(queries.n_docs)
    again = clone(model).fit(queries.X[order], queries.y[order], qid=queries.qid[order])
    assert np.array_equal(again.coef_, model.coef_)


class TestExtremes:
    @pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300, 1e307])
    @pytest.mark.parametrize("ranker", RANKERS, ids=str)
    @pytest.mark.parametrize("scale", ["std", None])
    def test_features_whose_squares_are_lost_are_refused(self, ranker, size, scale):
        queries = lists(20, seed=4)
        queries = queries.with_features(queries.X * size)
        with pytest.raises(ValueError, match=r"features must be of a size whose squares .* scale"):
            clone(ranker).set_params(scale=scale).fit(queries)

    def test_scaling_makes_them_learn_the_same(self):
        queries = lists(20, seed=4)
        plain = rw.LinearRanker("ranknet", tol=1e-8).fit(queries)
        for size in (1e-150, 1e-100, 1e100, 1e150):
            model = rw.LinearRanker("ranknet", tol=1e-8).fit(
                queries.with_features(queries.X * size)
            )
            np.testing.assert_allclose(model.coef_ * size, plain.coef_, rtol=1e-5)

    @pytest.mark.parametrize("ranker", RANKERS, ids=str)
    def test_one_document_queries_and_constant_features(self, ranker):
        queries = lists(10)
        single = rw.Queries.from_arrays(np.full((3, 4), 5.0), [1, 0, 2], [901, 902, 903])
        both = rw.concatenate([queries, single])
        both = both.with_features(np.hstack([both.X, np.full((both.n_docs, 2), 3.0)]))
        ranker = clone(ranker).set_params(scale=None)
        model = ranker.fit(both)
        assert (model.coef_[4:] == 0).all()
        if ranker.loss != "squared":
            alone = clone(ranker).fit(queries)
            np.testing.assert_allclose(model.coef_[:4], alone.coef_, atol=1e-3)

    @pytest.mark.parametrize("C", 10.0 ** np.arange(-9, 4, 2))
    def test_twelve_orders_of_c_scaled(self, C):
        model = rw.RankSVM(C, scale="std").fit(lists(30, seed=8))
        assert model.gradient_norm_ <= 1e-4


def test_coefficients_by_name():
    queries = lists(20)
    model = rw.LinearRanker("ranknet").fit(queries)
    found = model.coefficients()
    assert list(found) == [f"f{j + 1}" for j in np.argsort(-np.abs(model.coef_))]
    assert found["f1"] == model.coef_[0]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(queries.X, columns=["bm25", "length", "age", "clicks"])
    named = rw.LinearRanker("ranknet").fit(frame, queries.y, qid=queries.qid)
    assert named.coefficients()["length"] == model.coef_[1]


def test_a_recipe_of_one_loss_takes_no_other():
    with pytest.raises(TypeError, match=r"recipe: loss must be left out, .* 'ranknet', got 'list"):
        rw.make_ranker("ranknet(loss=listnet)")
    assert rw.make_ranker("ranknet(alpha=2)").alpha == 2
