"""RankSVM with an exact kernel: every property it must have, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise
from threadpoolctl import threadpool_limits

import rankwise as rw
from rankwise import _core
from rankwise.saving import load, save
from test_linear import differences, lists

LOSSES = ("squared_hinge", "hinge")
each_loss = pytest.mark.parametrize("loss", LOSSES)


def fitted(queries, kernel="rbf", *, loss="squared_hinge", **params):
    tol = {"squared_hinge": 1e-7, "hinge": 1e-6}[loss]
    params = {"gamma": 0.3, "C": 0.2, "tol": tol, "max_iter": 1000} | params
    return rw.KernelRankSVM(kernel, loss=loss, **params).fit(queries)


def incidence(queries):
    """A, one row a pair, over documents; and the pairs' weights."""
    documents = queries.with_features(np.eye(queries.n_docs))
    return differences(documents)


@each_loss
def test_the_linear_kernel_is_linear_ranksvm(loss):
    queries = lists(20, weighted=True)
    model = fitted(queries, "linear", loss=loss)
    linear = rw.RankSVM(0.2, loss=loss, tol=model.tol, max_iter=1000).fit(queries)
    assert model.objective_ == pytest.approx(linear.objective_, rel=2e-6)
    w = model.support_vectors_.T @ model.dual_coef_
    atol = 1e-6 if loss == "squared_hinge" else 2e-3
    np.testing.assert_allclose(w, linear.coef_, atol=atol)
    scores = model.predict(queries) - linear.predict(queries)
    np.testing.assert_allclose(scores, 0, atol=10 * atol)


@pytest.mark.parametrize(
    ("kernel", "peer"),
    [
        ("linear", lambda X: X @ X.T),
        ("poly", lambda X: (0.3 * X @ X.T + 1) ** 3),
        ("rbf", lambda X: pairwise.rbf_kernel(X, gamma=0.3)),
        ("laplacian", lambda X: pairwise.laplacian_kernel(X, gamma=0.3)),
        ("chi2", lambda X: pairwise.chi2_kernel(X, gamma=0.3)),
    ],
)
@each_loss
def test_kernels_are_those_of_their_formulas(kernel, peer, loss):
    queries = lists(15, seed=2)
    queries = queries.with_features(np.abs(queries.X))
    model = fitted(queries, kernel, loss=loss)
    K = peer(queries.X)
    again = fitted(queries.with_features(K), "precomputed", loss=loss)
    assert model.objective_ == pytest.approx(again.objective_, rel=3e-6)
    atol = 1e-6 if loss == "squared_hinge" else 2e-2
    np.testing.assert_allclose(model.predict(queries), again.predict(K), atol=atol)
    own = fitted(queries, lambda X, Z: peer(np.vstack([X, Z]))[: len(X), len(X) :], loss=loss)
    assert own.objective_ == pytest.approx(model.objective_, rel=3e-6)


@each_loss
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_dual_equals_primal(loss, C):
    """The dual problem over explicit pairs, by an independent solver."""
    queries = lists(8, 6, weighted=True, seed=5)
    A, weights = incidence(queries)
    K = pairwise.rbf_kernel(queries.X, gamma=0.3)
    Q = A @ K @ A.T
    if loss == "squared_hinge":
        Q = Q + np.diag(1 / (2 * C * weights))
    top = C * weights if loss == "hinge" else np.full(len(A), np.inf)
    dual = scipy_minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1),
        np.zeros(len(A)),
        jac=True,
        bounds=list(zip(np.zeros(len(A)), top, strict=True)),
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10**5, "maxfun": 10**6},
    )
    model = fitted(queries, loss=loss, C=C)
    assert model.objective_ == pytest.approx(-dual.fun, rel=2e-6)
    assert -dual.fun <= model.objective_ * (1 + 1e-9)
    if loss == "squared_hinge":
        # beta = A' a, a = 2 C w max(0, 1 - A K beta)
        s = model.predict(queries)
        a = 2 * C * weights * np.maximum(0, 1 - A @ s)
        beta = A.T @ a
        order = [np.flatnonzero((v == queries.X).all(axis=1))[0] for v in model.support_vectors_]
        np.testing.assert_allclose(model.dual_coef_, beta[order], atol=1e-5)
        np.testing.assert_allclose(a, dual.x, atol=1e-4)
    assert model.duality_gap_ <= 1e-6


@each_loss
def test_beta_sums_to_zero_and_rests_where_nothing_is_active(loss):
    queries = lists(20, seed=7)
    # Two documents of a query of their own with equal labels are in no pair.
    alone = rw.Queries.from_arrays(np.ones((2, 4)), np.ones(2), [999, 999])
    queries = rw.concatenate([queries, alone])
    model = fitted(queries, loss=loss, C=5.0)
    beta = np.zeros(queries.n_docs)
    for vector, value in zip(model.support_vectors_, model.dual_coef_, strict=True):
        beta[np.flatnonzero((vector == queries.X).all(axis=1))[0]] = value
    sums = np.add.reduceat(beta, queries.offsets[:-1])
    np.testing.assert_allclose(sums, 0, atol=1e-7)
    assert (beta[-2:] == 0).all()
    A, _ = incidence(queries)
    s = model.predict(queries)
    slack = 1 - A @ s
    quiet = ~((np.abs(A) * (slack > -1e-3)[:, None]).any(axis=0))
    assert np.abs(beta[quiet]).max(initial=0) <= 1e-6 * np.abs(beta).max()


def test_a_constant_added_to_the_kernel_moves_scores_by_one_number():
    queries = lists(20)
    K = pairwise.rbf_kernel(queries.X, gamma=0.3)
    model = fitted(queries.with_features(K), "precomputed")
    moved = fitted(queries.with_features(K + 7.0), "precomputed")
    assert moved.objective_ == pytest.approx(model.objective_, rel=1e-9)
    difference = moved.predict(K + 7.0) - model.predict(K)
    assert np.ptp(difference) < 1e-6


def test_scores_become_constant_as_gamma_vanishes():
    queries = lists(20)
    ranges = [np.ptp(fitted(queries, gamma=g).predict(queries)) for g in (1e-1, 1e-4, 1e-7)]
    assert ranges[0] > 10 * ranges[1] > 1000 * ranges[2]


@each_loss
def test_row_order_threads_and_equal_rows(loss):
    queries = rw.make_queries("web", n_queries=12, n_docs=40, rng=1)
    X = np.log1p(np.maximum(queries.X[:, :20], 0))
    X[5] = X[311] = X[401]
    queries = queries.with_features(X)
    model = fitted(queries, loss=loss, gamma=0.01, tol=1e-3)
    order = np.random.default_rng(0).permutation(queries.n_docs)
    with threadpool_limits(1):
        again = fitted(
            rw.Queries.from_arrays(X[order], queries.y[order], queries.qid[order]),
            loss=loss, gamma=0.01, tol=1e-3,
        )  # fmt: skip
    assert np.array_equal(again.predict(X), model.predict(X))
    scores = model.predict(X)
    assert scores[5] == scores[311] == scores[401]
    assert np.array_equal(model.predict(X[order]), scores[order])
    assert model.predict(X[311:312]) == scores[311]


@pytest.mark.letor
def test_repeated_documents_get_equal_scores(letor_data):
    train, _, test = next(iter(rw.read_folds(letor_data / "letor3" / "OHSUMED" / "QueryLevelNorm")))
    small = train.take(range(12))
    model = rw.KernelRankSVM("rbf", gamma=2.0**-6, C=2.0**-7).fit(small)
    scores = model.predict(test)
    _, group = np.unique(test.X, axis=0, return_inverse=True)
    repeated = np.bincount(group) > 1
    assert repeated.sum() > 20
    for g in np.flatnonzero(repeated):
        assert len(set(scores[group == g].tolist())) == 1


def test_given_pairs_replace_labels():
    queries = lists(15)
    A, _ = incidence(queries)
    pairs = rw.Pairs(A.argmax(axis=1), A.argmin(axis=1))
    for loss in LOSSES:
        from_labels = fitted(queries, loss=loss)
        given = rw.KernelRankSVM("rbf", **{
            k: getattr(from_labels, k) for k in ("gamma", "C", "loss", "tol", "max_iter")
        }).fit(queries.X, qid=queries.qid, pairs=pairs)  # fmt: skip
        assert given.objective_ == pytest.approx(from_labels.objective_, rel=2e-6)


def test_a_search_shares_the_gram_matrix():
    queries = lists(15)
    shared = {}
    for C in (0.1, 1.0):
        model = rw.KernelRankSVM("rbf", C=C).fit_in_search(queries, None, shared)
        plain = rw.KernelRankSVM("rbf", C=C).fit(queries)
        assert np.array_equal(model.predict(queries), plain.predict(queries))


class TestRefusals:
    def test_memory(self):
        queries = lists(30)
        needed = 8 * queries.n_docs**2
        with pytest.raises(
            ValueError, match=r"must fit in memory_limit=1e-05 .* KernelRanker\(Nys"
        ):
            rw.KernelRankSVM(memory_limit=1e-5).fit(queries)
        assert rw.KernelRankSVM(memory_limit=needed / 1e9).fit(queries).memory_ == needed

    def test_kernels(self):
        queries = lists()
        with pytest.raises(ValueError, match=r"kernel must be one of 'linear', .*got 'gauss'"):
            rw.KernelRankSVM("gauss").fit(queries)
        with pytest.raises(ValueError, match="square Gram matrix"):
            rw.KernelRankSVM("precomputed").fit(queries)
        with pytest.raises(ValueError, match="must be symmetric"):
            rw.KernelRankSVM(lambda X, Z: np.arange(len(X) * len(Z)).reshape(len(X), -1)).fit(
                queries
            )
        with pytest.raises(ValueError, match="must give a matrix of shape"):
            rw.KernelRankSVM(lambda X, Z: np.ones((2, 2))).fit(queries)
        with pytest.raises(ValueError, match="chi2 kernel takes features of at least 0"):
            rw.KernelRankSVM("chi2").fit(queries)
        with pytest.raises(ValueError, match="must be finite"):
            rw.KernelRankSVM("poly", degree=9).fit(queries.with_features(queries.X * 1e100))

    @pytest.mark.parametrize(
        ("name", "value"),
        [("gamma", 0), ("C", -1), ("degree", 0.5), ("coef0", -1), ("tol", -1), ("max_iter", 0),
         ("memory_limit", 0), ("loss", "log")],
    )  # fmt: skip
    def test_parameters(self, name, value):
        with pytest.raises(ValueError, match=rf"fit: {name} must be"):
            rw.KernelRankSVM("rbf").set_params(**{name: value}).fit(lists())

    @each_loss
    def test_too_few_steps(self, loss):
        with pytest.warns(ConvergenceWarning, match="after 1 iterations"):
            rw.KernelRankSVM(loss=loss, C=100.0, max_iter=1, tol=1e-12).fit(lists(30))

    def test_a_function_cannot_be_saved(self, tmp_path):
        model = rw.KernelRankSVM(lambda X, Z: X @ Z.T).fit(lists())
        with pytest.raises(TypeError, match="save: "):
            save(model, tmp_path / "model.rank")

    def test_saved_and_read(self, tmp_path):
        queries = lists()
        K = queries.X @ queries.X.T
        model = rw.KernelRankSVM("precomputed").fit(queries.with_features(K))
        save(model, tmp_path / "model.rank")
        assert np.array_equal(load(tmp_path / "model.rank").predict(K), model.predict(K))


@pytest.mark.parametrize("C", [1e-9, 1e-3, 1.0, 1e3])
@each_loss
def test_many_orders_of_c(C, loss):
    model = rw.KernelRankSVM("rbf", C=C, loss=loss, tol=1e-3, max_iter=2000).fit(lists(20))
    assert np.isfinite(model.dual_coef_).all()
    assert (model.duality_gap_ if loss == "hinge" else model.gradient_norm_) <= 1e-3


def between(X, Z, what, n_threads=0):
    """The sums over the features that every kernel is a function of."""
    out = np.empty((len(X), len(Z)))
    _core.Points(Z).kernel(X, out, what, "none", n_threads=n_threads)
    return out


@pytest.mark.parametrize("d", [1, 5, 16, 37])
def test_numbers_between_rows(d):
    rng = np.random.default_rng(d)
    X, Z = rng.random((70, d)), rng.random((33, d))
    expected = {
        "product": X @ Z.T,
        "square": ((X[:, None] - Z[None]) ** 2).sum(axis=2),
        "absolute": np.abs(X[:, None] - Z[None]).sum(axis=2),
        "chi_square": ((X[:, None] - Z[None]) ** 2 / (X[:, None] + Z[None])).sum(axis=2),
    }
    for what, numbers in expected.items():
        found = between(X, Z, what)
        np.testing.assert_allclose(found, numbers, rtol=1e-13, atol=1e-14)
        assert np.array_equal(found, between(Z, X, what).T)
        assert np.array_equal(found, between(X, Z, what, n_threads=2))
    for what in ("square", "absolute", "chi_square"):
        assert (between(X, X, what).diagonal() == 0).all()
    assert (between(np.zeros((1, d)), np.zeros((1, d)), "chi_square") == 0).all()
    with pytest.raises(ValueError, match="as many columns"):
        between(X, np.zeros((2, d + 1)), "product")
    with pytest.raises(ValueError, match="unknown sum"):
        between(X, Z, "cosine")
