"""Kernel rankers: the exact solution where the map is exact, published numbers, extremes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem as SklearnNystroem
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures
from threadpoolctl import threadpool_limits

import rankwise as rw
from rankwise import kernel_ranker
from rankwise.losses import LOSSES

CONVEX = [
    name for name, kind in LOSSES.items()
    if hasattr(kind, "hessian_product") or name == "hinge"
]  # fmt: skip


def lists(n_queries=30, n_docs=12, seed=0):
    return rw.make_queries(n_queries=n_queries, n_docs=n_docs, rng=seed)


def objective(scores, w, queries, C):
    """1/2 |w|^2 + C sum over pairs, pair by pair."""
    total = 0.5 * w @ w
    for a, b in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        y, s = queries.y[a:b], scores[a:b]
        lost = np.maximum(0, 1 - (s[:, None] - s))[y[:, None] > y]
        total += C * (lost**2).sum()
    return total


def refusal(ranker, queries):
    """What fit says where it refuses; None where it does not."""
    try:
        ranker.fit(queries)
    except ValueError as error:
        return str(error)
    return None


class TestExact:
    @pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
    def test_all_documents_as_landmarks_give_kernel_ranksvm(self, kernel):
        queries = lists()
        exact = rw.KernelRankSVM(kernel, gamma=0.2, C=0.3, tol=1e-9).fit(queries)
        ranker = rw.KernelRanker(rw.Nystroem(10_000, kernel=kernel, gamma=0.2), C=0.3, tol=1e-10)
        ranker.fit(queries)
        assert ranker.objective_ == pytest.approx(exact.objective_, rel=1e-9)
        new = lists(seed=1)
        np.testing.assert_allclose(ranker.predict(new), exact.predict(new), atol=1e-7)

    def test_with_the_hinge(self):
        queries = lists(20)
        exact = rw.KernelRankSVM("rbf", gamma=0.2, C=0.3, loss="hinge", tol=1e-5).fit(queries)
        map = rw.Nystroem(10_000, gamma=0.2)
        ranker = rw.KernelRanker(map, C=0.3, loss="hinge", tol=1e-5).fit(queries)
        assert ranker.objective_ == pytest.approx(exact.objective_, rel=2e-5)

    def test_linear_kernel_gives_ranksvm(self):
        queries = lists()
        linear = rw.RankSVM(C=0.1, tol=1e-10).fit(queries)
        map = rw.Nystroem(200, kernel="linear", random_state=0)
        ranker = rw.KernelRanker(map, C=0.1, tol=1e-10).fit(queries)
        assert ranker.objective_ == pytest.approx(linear.objective_, rel=1e-9)
        within = ranker.predict(queries) - linear.predict(queries)
        within -= np.repeat(np.add.reduceat(within, queries.offsets[:-1]) / 12, 12)
        np.testing.assert_allclose(within, 0, atol=1e-6)

    @pytest.mark.parametrize("m", [40, 600])  # with and without all features in the preconditioner
    @pytest.mark.parametrize("gamma", [0.02, 1.0])  # eigenvectors; a Cholesky factor
    def test_the_basis_gives_what_the_features_give(self, m, gamma):
        queries = lists(60)
        map = rw.Nystroem(m, gamma=gamma, random_state=0)
        ranker = rw.KernelRanker(map, C=0.2, tol=1e-9).fit(queries)
        Z = ranker.map_.transform(queries)
        assert ranker.coef_.shape == (ranker.map_.n_components_,)
        np.testing.assert_allclose(Z.X @ ranker.coef_, ranker.predict(queries), atol=1e-7)
        value = objective(Z.X @ ranker.coef_, ranker.coef_, queries, 0.2)
        assert ranker.objective_ == pytest.approx(value, rel=1e-9)
        plain = rw.RankSVM(C=0.2, tol=1e-9).fit(Z)
        assert ranker.objective_ == pytest.approx(plain.objective_, rel=1e-8)
        np.testing.assert_allclose(ranker.coef_, plain.coef_, atol=1e-5)

    @pytest.mark.parametrize("loss", CONVEX)
    @pytest.mark.parametrize("kind", ["nystroem", "fourier"])
    def test_every_convex_loss(self, loss, kind):
        queries = lists()
        map = {
            "nystroem": rw.Nystroem(30, gamma=0.1, random_state=0),
            "fourier": rw.RandomFourierFeatures(30, gamma=0.1, random_state=0),
        }[kind]
        tol = 1e-4 if loss == "hinge" else 1e-8
        ranker = rw.KernelRanker(map, loss=loss, C=0.5, tol=tol, max_iter=2000).fit(queries)
        mapped = ranker.map_.transform(queries)
        plain = rw.LinearRanker(loss, alpha=2.0, scale=None, tol=tol, max_iter=2000).fit(mapped)
        # LinearRanker: loss + alpha / 2 |w|^2; here 1 / alpha times that.
        assert ranker.objective_ == pytest.approx(plain.objective_ / 2, rel=3 * tol + 1e-7)
        np.testing.assert_allclose(
            ranker.predict(queries) - ranker.intercept_,
            mapped.X @ ranker.coef_, atol=1e-7,
        )  # fmt: skip

    @pytest.mark.parametrize("loss", [n for n in LOSSES if n not in CONVEX])
    def test_every_other_loss_is_fitted_or_refused(self, loss):
        queries = lists()
        map = rw.Nystroem(30, gamma=0.05, random_state=0)
        ranker = rw.KernelRanker(map, loss=loss, C=0.5, max_iter=300)
        if getattr(LOSSES[loss], "minimizes", True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                assert ranker.fit(queries).score(queries) > 0.5
        else:
            with pytest.raises(ValueError, match="loss must be a function of the scores"):
                ranker.fit(queries)

    def test_rotations_leave_scores(self):
        queries = lists()
        B = queries.X[:25]

        class Rotated(rw.Nystroem):
            def transform(self, X):
                Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((25, 25)))
                return super().transform(X) @ Q

        rotated = Pipeline([("map", Rotated(25, gamma=0.5, landmarks=B))])
        a, b = (
            rw.KernelRanker(map, C=0.2, tol=1e-10).fit(queries)
            for map in (rw.Nystroem(25, gamma=0.5, landmarks=B), rotated)
        )
        assert np.abs(a.coef_ - b.coef_).max() > 0.01
        np.testing.assert_allclose(a.predict(queries), b.predict(queries), atol=1e-7)

    def test_pairs(self):
        queries = lists()
        pairs = rw.pairs_from_labels(queries.y[:, None], queries.qid)
        decided = pairs.target > 0.5
        pairs = rw.Pairs(pairs.winner[decided], pairs.loser[decided])
        map = rw.Nystroem(30, gamma=0.1, landmarks=queries.X[:30])
        by_labels = rw.KernelRanker(map, C=0.2, tol=1e-9).fit(queries)
        by_pairs = rw.KernelRanker(map, C=0.2, tol=1e-9).fit(
            queries.X, qid=queries.qid, pairs=pairs
        )
        np.testing.assert_allclose(by_pairs.coef_, by_labels.coef_, atol=1e-5)

    def test_sparse_and_float32(self):
        queries = lists()
        map = rw.Nystroem(30, gamma=0.1, random_state=0)
        dense = rw.KernelRanker(map, C=0.2).fit(queries)
        sparse = rw.KernelRanker(map, C=0.2).fit(queries.with_features(sp.csr_matrix(queries.X)))
        assert (sparse.predict(queries) == dense.predict(queries)).all()
        single = rw.KernelRanker(rw.Nystroem(30, gamma=0.1, random_state=0, dtype="float32"), C=0.2)
        np.testing.assert_allclose(single.fit(queries).predict(queries), dense.predict(queries),
                                   atol=2e-3)  # fmt: skip


class TestMaps:
    def test_equal_rows_equal_scores(self):
        queries = lists(40)
        X = queries.X.copy()
        places = np.array([0, 17, 100, 255, 256, 400])
        X[places] = X[0]
        for map in (
            rw.Nystroem(70, gamma=0.05), rw.Nystroem(70, gamma=3.0),
            rw.RandomFourierFeatures(70, gamma=0.1, form="paired"),
            RBFSampler(gamma=0.1), SklearnNystroem(gamma=0.1),
        ):  # fmt: skip
            ranker = rw.KernelRanker(map.set_params(random_state=0), C=0.1).fit(queries)
            scores = ranker.predict(X)
            assert (scores[places] == scores[0]).all()
            if type(map).__module__.startswith("rankwise"):
                assert ranker.predict(X[:1])[0] == scores[0]
                assert (ranker.predict(X[5:300]) == scores[5:300]).all()

    def test_threads_do_not_matter(self):
        queries = lists(100)
        for map in (rw.Nystroem(300, gamma=0.02), rw.RandomFourierFeatures(300, gamma=0.02)):
            map.set_params(random_state=0)
            many = rw.KernelRanker(map, C=0.1).fit(queries)
            with threadpool_limits(1):
                one = rw.KernelRanker(map, C=0.1).fit(queries)
            assert (one.coef_ == many.coef_).all()

    def test_scikit_learns_maps(self):
        queries = lists()
        sampler = rw.KernelRanker(RBFSampler(gamma=0.1, n_components=200, random_state=0), C=0.1)
        assert sampler.fit(queries).coef_.shape == (200,)
        assert not hasattr(sampler.map, "random_weights_")  # copied, not changed
        squares = rw.KernelRanker(PolynomialFeatures(2, include_bias=False), C=0.01).fit(queries)
        linear = rw.RankSVM(C=0.01).fit(queries)
        assert squares.objective_ < linear.objective_
        assert list(squares.coefficients()) and "x0 x1" in squares.coefficients()

    def test_the_named_rankers_are_kernel_rankers(self):
        queries = lists()
        named = rw.RankNystrom(30, gamma=0.1, C=0.2, random_state=5).fit(queries)
        map = rw.Nystroem(30, gamma=0.1, threshold=1e-6, relative=False, random_state=5)
        assert (named.coef_ == rw.KernelRanker(map, C=0.2).fit(queries).coef_).all()
        named = rw.RankRandomFourier(30, gamma=0.1, C=0.2, random_state=5).fit(queries)
        map = rw.RandomFourierFeatures(30, gamma=0.1, random_state=5)
        assert (named.coef_ == rw.KernelRanker(map, C=0.2).fit(queries).coef_).all()
        for name, kind in (("ranknystrom", rw.RankNystrom),
                           ("rankrandomfourier", rw.RankRandomFourier)):  # fmt: skip
            made = rw.make_ranker(f"{name}(n_components=20, gamma=0.1)")
            assert isinstance(made, kind) and made.n_components == 20
            grid = rw.RECIPES[name].grid
            assert len(grid["gamma"]) == 15 and len(grid["C"]) == 10
            # The paper's 2^-12 ... 2^6, in our convention half of it.
            assert [2 * C for C in grid["C"]] == [2.0**e for e in range(-12, 7, 2)]

    def test_search_shares_maps_and_walks_along_C(self, monkeypatch):
        queries = lists(60)
        train, valid = queries.take(range(40)), queries.take(range(40, 60))
        fitted = []
        learn = rw.Nystroem._learn
        monkeypatch.setattr(
            rw.Nystroem, "_learn", lambda s, w, X: (fitted.append(s.gamma), learn(s, w, X))
        )
        space = {"gamma": (0.01, 0.1, 1.0), "C": (0.001, 0.01, 0.1, 1.0)}
        tuned = rw.tune("ranknystrom(n_components=50)", train, valid=valid, metric="ap",
                        method="grid", space=space)  # fmt: skip
        assert len(tuned.trials) == 12
        assert sorted(fitted) == [0.01, 0.1, 1.0]
        for trial in tuned.trials:
            alone = rw.RankNystrom(50, **trial.params, random_state=0, metric="ap").fit(train)
            assert alone.score(valid) == pytest.approx(trial.value, abs=0.02)
        assert tuned.best.value == max(t.value for t in tuned.trials)

    def test_warm_start(self):
        queries = lists(60)
        ranker = rw.RankNystrom(60, gamma=0.1, C=0.1, random_state=0, tol=1e-8, warm_start=True)
        steps = ranker.fit(queries).n_iter_
        first = ranker.map_
        assert ranker.fit(queries).n_iter_ < steps
        assert ranker.map_ is first
        ranker.set_params(gamma=0.5).fit(queries)
        assert ranker.map_ is not first
        cold = rw.RankNystrom(60, gamma=0.5, C=0.1, random_state=0, tol=1e-8).fit(queries)
        np.testing.assert_allclose(ranker.coef_, cold.coef_, atol=1e-6)


def test_a_search_shares_maps_and_lets_go_of_old_ones(monkeypatch):
    made, held = [], []
    real_learn, real_room = kernel_ranker._learn_map, kernel_ranker._make_room

    def room(shared):
        real_room(shared)
        held.append(sum(key[0] == "map" for key in shared))

    monkeypatch.setattr(kernel_ranker, "_learn_map", lambda *a: (made.append(1), real_learn(*a))[1])
    monkeypatch.setattr(kernel_ranker, "_make_room", room)
    monkeypatch.setattr(kernel_ranker, "_HELD", 3 * 8 * 20 * lists().n_docs)
    space = {"gamma": 2.0 ** np.arange(-6.0, 2.0), "C": [0.01, 0.1, 1.0]}
    train, valid = lists(), lists(seed=9)
    tuned = rw.tune(
        rw.RankNystrom(20, random_state=0), train, valid, space=space, method="grid", metric="ap"
    )
    assert len(made) == 8
    assert held == [0, 1, 2, 3, 3, 3, 3, 3]
    best = rw.RankNystrom(20, random_state=0, **tuned.params, tol=1e-8).fit(train)
    np.testing.assert_allclose(tuned.model.predict(valid), best.predict(valid), atol=2e-2)


@pytest.mark.parametrize("patience", [0.0, 0.15, 1e9])
@pytest.mark.parametrize("C", [1e-3, 10.0])
def test_diagonal_and_matrix_end_at_the_same_weights(monkeypatch, patience, C):
    """Random features begin with the diagonal and go on with the matrix: the way, not the end."""
    monkeypatch.setattr(kernel_ranker, "_PATIENCE", patience)
    queries = lists()
    map = rw.RandomFourierFeatures(600, gamma=0.2, random_state=0)
    ranker = rw.KernelRanker(map, C=C, tol=1e-8).fit(queries)
    Z = ranker.map_.transform(queries)
    by_itself = rw.RankSVM(C, tol=1e-8).fit(Z)
    assert ranker.objective_ == pytest.approx(by_itself.objective_, rel=1e-9)
    np.testing.assert_allclose(ranker.coef_, by_itself.coef_, atol=1e-4 * abs(ranker.coef_).max())


class TestExtremes:
    @pytest.mark.parametrize("make", [rw.RankNystrom, rw.RankRandomFourier])
    def test_gamma_and_C_over_many_orders(self, make):
        queries = lists()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for gamma in (1e-12, 1e-6, 1.0, 1e6):
                for C in (1e-6, 1.0, 1e6):
                    ranker = make(40, gamma=gamma, C=C, random_state=0)
                    if make is rw.RankNystrom:
                        ranker.set_params(threshold=None, relative=True)
                    said = refusal(ranker, queries)
                    if said is None:
                        assert np.isfinite(ranker.predict(queries)).all()
                        assert ranker.gradient_norm_ < 1e-2
                    else:
                        assert "the mapped features must differ" in said
                        assert gamma <= 1e-12

    def test_queries_of_one_document(self):
        queries = lists()
        one = lists(25, 1, seed=5)
        qid = np.concatenate([queries.qid, one.qid + 1000])
        both = rw.Queries.from_arrays(
            np.vstack([queries.X, one.X]), np.concatenate([queries.y, one.y]), qid
        )
        for map in (rw.Nystroem(40, gamma=0.1, landmarks=queries.X[:40]),
                    rw.RandomFourierFeatures(40, gamma=0.1, random_state=0)):  # fmt: skip
            a = rw.KernelRanker(map, C=0.1, tol=1e-10).fit(queries)
            b = rw.KernelRanker(map, C=0.1, tol=1e-10).fit(both)
            np.testing.assert_allclose(b.predict(both.X), a.predict(both.X), atol=1e-7)

    def test_a_kernel_that_is_the_same_everywhere(self):
        queries = lists()
        with pytest.raises(ValueError, match=r"must differ inside some query.*at gamma=1e-300"):
            rw.RankNystrom(40, gamma=1e-300).fit(queries)
        with pytest.raises(ValueError, match="must differ inside some query"):
            rw.RankNystrom(40).fit(queries.with_features(np.ones_like(queries.X)))

    def test_constant_and_repeated_features(self):
        queries = lists()
        X = np.column_stack([queries.X, np.full(len(queries.y), 7.0)])
        a = rw.RankNystrom(40, gamma=0.1, C=0.1, random_state=0).fit(queries)
        b = rw.KernelRanker(rw.Nystroem(40, gamma=0.1, landmarks=np.column_stack(
            [a.map_.landmarks_, np.full(40, 7.0)]), threshold=1e-6, relative=False), C=0.1)  # fmt: skip
        b.fit(queries.with_features(X))
        np.testing.assert_allclose(a.predict(queries), b.predict(X), atol=1e-9)

    def test_huge_and_tiny_features(self):
        queries = lists()
        tiny = rw.RankNystrom(40, gamma=0.1, random_state=0)
        with pytest.raises(ValueError, match="must differ inside some query"):
            tiny.fit(queries.with_features(queries.X * 1e-300))
        huge = rw.RankNystrom(40, gamma=0.1, random_state=0)
        assert np.isfinite(
            huge.fit(queries.with_features(queries.X * 1e300)).predict(queries.X * 1e300)
        ).all()
        with pytest.raises(ValueError, match="the projections must stay below"):
            rw.RankRandomFourier(40, gamma=0.1).fit(queries.with_features(queries.X * 1e300))

    def test_duplicated_landmarks(self):
        queries = lists()
        B = np.repeat(queries.X[:10], 4, axis=0)
        many = rw.KernelRanker(rw.Nystroem(40, gamma=0.5, landmarks=B), C=0.1, tol=1e-9)
        few = rw.KernelRanker(rw.Nystroem(10, gamma=0.5, landmarks=B[::4]), C=0.1, tol=1e-9)
        np.testing.assert_allclose(
            many.fit(queries).predict(queries), few.fit(queries).predict(queries), atol=1e-6
        )

    def test_refusals(self):
        queries = lists()
        with pytest.raises(TypeError, match="map must be a transformer with fit and transform"):
            rw.KernelRanker("nystroem").fit(queries)
        with pytest.raises(ValueError, match=r"KernelRanker\.fit: C must be a number above 0"):
            rw.KernelRanker(C=0).fit(queries)
        with pytest.raises(
            ValueError, match="some query must hold documents with different labels"
        ):
            rw.KernelRanker().fit(queries.X, np.ones(len(queries.y)), qid=queries.qid)

        class Broken(RBFSampler):
            def transform(self, X):
                return super().transform(X) * np.inf

        with pytest.raises(ValueError, match=r"mapped features must be finite.*from Broken"):
            rw.KernelRanker(Broken()).fit(queries)

    def test_a_foreign_map_is_not_saved(self, tmp_path):
        ranker = rw.KernelRanker(RBFSampler(random_state=0), C=0.1).fit(lists())
        with pytest.raises(TypeError, match=r"save: KernelRanker\.map must have a form"):
            ranker.save(tmp_path / "a.rank")


# --- published numbers ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ohsumed(letor_data):
    folder = letor_data / "letor3" / "OHSUMED" / "QueryLevelNorm"
    parts = [rw.read_letor(folder / f"Fold{i}-test.txt") for i in range(1, 6)]
    folds = []
    for i in range(5):
        rest = [parts[j] for j in range(5) if j not in (i, (i - 1) % 5)]
        folds.append(rw.Fold(rw.concatenate(rest), parts[(i - 1) % 5], parts[i]))
    return folds


def fold_means(folds, ranker, preset):
    ap, mean_ndcg = rw.parse_metrics(["ap", "mean_ndcg"], preset=preset)
    values = []
    for fold in folds:
        scores = ranker.fit(fold.train).predict(fold.test)
        values.append([m.mean(fold.test.y, scores, qid=fold.test.groups) for m in (ap, mean_ndcg)])
    return np.array(values).T


@pytest.mark.letor
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ohsumed_as_published(ohsumed, seed):
    C = rw.ranksvm_C(2.0**-6, "chapelle")
    ranker = rw.RankNystrom(500, gamma=2.0**-6, C=C, random_state=seed)
    ap, mean_ndcg = fold_means(ohsumed, ranker, "letor3")
    np.testing.assert_allclose(ap, [0.3529, 0.4461, 0.4491, 0.5160, 0.4725], atol=0.001)
    assert ap.mean() == pytest.approx(0.4473, abs=0.001)
    assert mean_ndcg.mean() == pytest.approx(0.5378, abs=0.001)


@pytest.mark.letor
@pytest.mark.parametrize("landmarks", ["kmeans", "greedy"])
def test_ohsumed_with_better_landmarks(ohsumed, landmarks):
    C = rw.ranksvm_C(2.0**-6, "chapelle")
    ranker = rw.RankNystrom(500, gamma=2.0**-6, C=C, landmarks=landmarks, random_state=0)
    ap, mean_ndcg = fold_means(ohsumed, ranker, "letor3")
    assert ap.mean() == pytest.approx(0.4473, abs=0.001)
    assert mean_ndcg.mean() == pytest.approx(0.5378, abs=0.0015)


@pytest.mark.letor
def test_equal_rows_of_ohsumed(ohsumed):
    fold = ohsumed[0]
    X = np.concatenate([fold.train.X, fold.valid.X, fold.test.X])
    _, first, place = np.unique(X, axis=0, return_index=True, return_inverse=True)
    assert len(X) - len(first) > 2000
    C = rw.ranksvm_C(2.0**-6, "chapelle")
    for ranker in (rw.RankNystrom(500, gamma=2.0**-6, C=C, random_state=0),
                   rw.RankRandomFourier(500, gamma=2.0**-6, C=C, random_state=0)):  # fmt: skip
        scores = ranker.fit(fold.train).predict(X)
        assert (scores == scores[first][place.ravel()]).all()
