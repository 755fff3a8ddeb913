"""Kernel functions and maps: formulas, golden cases, properties, the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_approximation import Nystroem as SklearnNystroem
from sklearn.metrics import pairwise
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import rankwise as rw
from rankwise import _core
from rankwise.maps import DRAWS, LANDMARKS

GAMMA = 0.3
PEERS = {
    "linear": lambda X, Z: X @ Z.T,
    "poly": lambda X, Z: pairwise.polynomial_kernel(X, Z, gamma=GAMMA, degree=3, coef0=1.0),
    "rbf": lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=GAMMA),
    "laplacian": lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=GAMMA),
    "chi2": lambda X, Z: pairwise.chi2_kernel(X, Z, gamma=GAMMA),
    "matern": lambda X, Z: Matern(length_scale=(2 * GAMMA) ** -0.5, nu=1.5)(X, Z),
}


def rows(n=40, d=5, seed=0):
    return np.random.default_rng(seed).random((n, d))


# --- cosines and powers ------------------------------------------------------------------------


def ulps(found, exact, dtype):
    """Errors in units in the last place of the exact value."""
    return np.abs(found.astype(np.longdouble) - exact) / np.spacing(np.abs(exact).astype(dtype))


def one_feature(x, dtype, **told):
    """The native function of given sums: one feature against the point 1 (or 0 for squares)."""
    points = (_core.Points if dtype == np.float64 else _core.Points32)(np.ones((1, 1)))
    wide = 2 if told["shape"] == "cosine_sine" else 1
    out = np.empty((len(x), wide), dtype=dtype)
    points.kernel(np.ascontiguousarray(x[:, None].astype(dtype)), out, "product", **told)
    return out


@pytest.mark.parametrize(("dtype", "largest"), [(np.float64, 1e6), (np.float32, 1e3)])
def test_cosine_and_sine_of_turns(dtype, largest):
    rng = np.random.default_rng(0)
    near = rng.integers(-40, 40, 20_000) / 8 + rng.normal(0, 1e-4, 20_000)
    t = np.concatenate([rng.uniform(-2, 2, 50_000), rng.uniform(-largest, largest, 50_000), near])
    t = t.astype(dtype)
    found = one_feature(t, dtype, shape="cosine_sine", scale=1.0)
    # Taking off the nearest integer is exact, so extended precision of what is left is exact enough.
    angle = 2 * np.arctan2(np.longdouble(0), np.longdouble(-1)) * (t - np.round(t))
    for column, exact in zip(found.T, (np.cos(angle), np.sin(angle)), strict=True):
        away = np.abs(column.astype(np.longdouble) - exact)
        assert away.max() <= 2 * np.finfo(dtype).eps  # of numbers up to 1
        sure = np.abs(exact) > 1e-3
        assert ulps(column, exact, dtype)[sure].max() <= 3


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float64, -1022.0), (np.float32, -126.0)])
def test_powers_of_two(dtype, lowest):
    x = np.random.default_rng(0).uniform(lowest, 0, 100_000).astype(dtype)
    found = one_feature(-x, dtype, shape="power", scale=1.0)[:, 0]
    assert ulps(found, np.exp2(x.astype(np.longdouble)), dtype).max() <= 2
    edge = np.array([0.0, lowest, lowest * 1.001, -1e5, -np.inf], dtype=dtype)
    assert one_feature(-edge, dtype, shape="power", scale=1.0)[:, 0].tolist() == [
        1.0, 2.0**lowest, 0.0, 0.0, 0.0
    ]  # fmt: skip


# --- kernels -----------------------------------------------------------------------------------


class TestKernels:
    @pytest.mark.parametrize("name", PEERS)
    @pytest.mark.parametrize("shape", [(1, 1, 1), (7, 9, 3), (50, 33, 46), (300, 17, 5)])
    def test_equals_scikit_learn(self, name, shape):
        n, m, d = shape
        X, Z = rows(n, d), rows(m, d, seed=1)
        found = rw.kernel_matrix(X, Z, kernel=name, gamma=GAMMA)
        np.testing.assert_allclose(found, PEERS[name](X, Z), rtol=2e-13, atol=1e-15)
        single = rw.kernel_matrix(X, Z, kernel=name, gamma=GAMMA, dtype="float32")
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, found, rtol=3e-5, atol=1e-6)

    @pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
    def test_matern(self, nu):
        X = rows() * 3
        found = rw.kernel_matrix(X, kernel="matern", gamma=GAMMA, nu=nu)
        np.testing.assert_allclose(found, Matern((2 * GAMMA) ** -0.5, nu=nu)(X), rtol=1e-12)

    @pytest.mark.parametrize("name", PEERS)
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_equal_rows_equal_bits(self, name, dtype):
        X = rows(200, 11)
        places = np.array([0, 3, 7, 50, 121, 199])
        X[places] = X[0]
        K = rw.kernel_matrix(X, kernel=name, dtype=dtype)
        assert (K[places] == K[0]).all()
        assert (K[:, places] == K[:, :1]).all()
        assert (K == K.T).all()
        alone = rw.kernel_matrix(X[:1], X, kernel=name, dtype=dtype)
        assert (alone == K[:1]).all()
        if name in ("rbf", "laplacian", "matern", "chi2"):
            assert (K.diagonal() == 1).all()

    def test_sparse_equals_dense(self):
        X = rows(90, 30)
        X[X < 0.7] = 0
        for name in PEERS:
            dense = rw.kernel_matrix(X, kernel=name)
            assert (rw.kernel_matrix(sp.csr_matrix(X), kernel=name) == dense).all()

    def test_callable_on_blocks_of_one_shape(self):
        shapes = set()

        def kernel(X, Z):
            shapes.add(X.shape)
            return X @ Z.T

        X = rows(300, 4)
        X[299] = X[0]
        K = rw.kernel_matrix(X, kernel=kernel)
        np.testing.assert_allclose(K, X @ X.T)
        assert shapes == {(256, 4)}
        assert (K[299] == K[0]).all()

    def test_extremes(self):
        X = np.array([[1e300], [-1e300], [1e-300], [0.0]])
        for name in ("rbf", "laplacian", "matern"):
            for gamma in (1e-300, 1.0, 1e300):
                K = rw.kernel_matrix(X, kernel=name, gamma=gamma)
                assert ((K >= 0) & (K <= 1)).all()
                assert (K.diagonal() == 1).all()

    def test_threads_do_not_matter(self):
        X = rows(500, 46)
        points = _core.Points(X)
        out = [np.empty((500, 500)) for _ in range(2)]
        for threads, K in zip((1, 3), out, strict=True):
            points.kernel(X, K, "square", "power", scale=0.1, n_threads=threads)
        assert (out[0] == out[1]).all()

    def test_refusals(self):
        X = rows(3, 2)
        with pytest.raises(ValueError, match=r"kernel_matrix: kernel must be one of .*got 'rbg'"):
            rw.kernel_matrix(X, kernel="rbg")
        with pytest.raises(ValueError, match=r"gamma must be a number above 0, got 0"):
            rw.kernel_matrix(X, gamma=0)
        with pytest.raises(ValueError, match="chi2 kernel takes features of at least 0, got -1"):
            rw.kernel_matrix(-np.ones((2, 2)), kernel="chi2")
        with pytest.raises(ValueError, match=r"nu must be one of 0\.5, 1\.5, 2\.5, got 1"):
            rw.kernel_matrix(X, kernel="matern", nu=1)
        with pytest.raises(ValueError, match=r"return one value per pair of rows.*got \(256,\)"):
            rw.kernel_matrix(X, kernel=lambda X, Z: np.ones(len(X)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 7, 3), (200, 33, 1100), (49, 1040, 1040)])
def test_products(dtype, shape):
    n, m, d = shape
    A, B = rows(n, d).astype(dtype), rows(m, d, seed=1)
    points = (_core.Points if dtype == np.float64 else _core.Points32)(B)
    out = np.full((n, m), np.nan, dtype=dtype)
    points.multiply(A, out)
    tolerance = 4 * np.finfo(dtype).eps * np.sqrt(d)
    np.testing.assert_allclose(out, A @ B.astype(dtype).T, rtol=tolerance)
    alone = np.empty((1, m), dtype=dtype)
    points.multiply(A[n // 2 : n // 2 + 1], alone)
    assert (alone[0] == out[n // 2]).all()
    threads = np.empty_like(out)
    points.multiply(A, threads, n_threads=3)
    assert (threads == out).all()
    with pytest.raises(ValueError, match="as many columns as the points"):
        points.multiply(np.zeros((2, d + 1), dtype), out)
    with pytest.raises(ValueError, match="a column per point"):
        points.multiply(A, np.zeros((n, m + 1), dtype))
    if d == m:
        points = (_core.Points if dtype == np.float64 else _core.Points32)(np.tril(B))
        whole, upper = np.empty_like(out), A.copy()
        points.multiply(A, whole)
        points.multiply(upper, upper, upper=True)  # in its own place
        assert (upper == whole).all()


# --- Nystrom -----------------------------------------------------------------------------------


class TestNystroem:
    def test_golden_case(self):
        B = np.array([[0.0], [1.0]])
        Z = rw.Nystroem(2, gamma=1.0, landmarks=B).fit(B).transform([[0.0], [1], [0.5], [2]])
        expected = [
            [1, 0.367879, 0.778801, 0.018316],
            [0.367879, 1, 0.778801, 0.367879],
            [0.778801, 0.778801, 0.886819, 0.21988],
            [0.018316, 0.367879, 0.21988, 0.151172],
        ]
        np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-6)

    @pytest.mark.parametrize("name", PEERS)
    def test_all_rows_as_landmarks_give_the_kernel(self, name):
        X = rows(40, 6)
        Z = rw.Nystroem(40, kernel=name, gamma=GAMMA).fit_transform(X)
        np.testing.assert_allclose(Z @ Z.T, PEERS[name](X, X), atol=1e-9)
        if name == "laplacian":  # well conditioned
            np.testing.assert_allclose(Z @ Z.T, PEERS[name](X, X), atol=1e-13)

    @pytest.mark.parametrize("landmarks", LANDMARKS)
    def test_error_is_positive_semidefinite_and_landmarks_are_exact(self, landmarks):
        X = rows(60, 4)
        K = pairwise.rbf_kernel(X, gamma=1.0)
        traces = []
        for m in (3, 10, 25, 60):
            map = rw.Nystroem(m, gamma=1.0, landmarks=landmarks, random_state=1).fit(X)
            Z = map.transform(X)
            assert np.linalg.eigvalsh(K - Z @ Z.T).min() > -1e-9
            traces.append(np.trace(K - Z @ Z.T))
            B = map.transform(map.landmarks_)
            np.testing.assert_allclose(
                B @ B.T, pairwise.rbf_kernel(map.landmarks_, gamma=1.0), atol=1e-9
            )
        assert (np.diff(traces) < 0).all()
        assert traces[-1] < 1e-9 or landmarks == "kmeans"

    def test_more_landmarks_never_hurt(self):
        X = rows(40, 4)
        errors = []
        for m in (2, 5, 10, 20, 40):  # nested
            Z = rw.Nystroem(m, gamma=1.0, landmarks=X[:m]).fit(X).transform(X)
            errors.append(40 - np.trace(Z @ Z.T))
        assert (np.diff(errors) < 0).all() and errors[-1] < 1e-9

    def test_equals_scikit_learn_on_the_same_landmarks(self):
        X = rows(300, 5)
        peer = SklearnNystroem(gamma=0.7, n_components=30, random_state=0).fit(X)
        ours = rw.Nystroem(30, gamma=0.7, landmarks=peer.components_).fit(X)
        A, Z = peer.transform(X), ours.transform(X)
        np.testing.assert_allclose(Z @ Z.T, A @ A.T, atol=1e-8)

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("gamma", [5.0, 0.001])  # a Cholesky factor; eigenvectors
    def test_equal_rows_equal_bits(self, dtype, gamma):
        X = rows(2300, 9)
        places = np.concatenate([np.arange(300), [511, 513, 2047, 2048, 2299]])
        X[places] = X[0]
        map = rw.Nystroem(100, gamma=gamma, dtype=dtype, random_state=0).fit(X)
        assert map.triangular_ == (gamma == 5.0)
        Z = map.transform(X)
        assert Z.dtype == dtype
        assert (Z[places] == Z[0]).all()
        assert (map.transform(X[:1]) == Z[:1]).all()
        assert (map.transform(X[3:301]) == Z[3:301]).all()
        with threadpool_limits(1):
            assert (map.transform(X) == Z).all()
            again = rw.Nystroem(100, gamma=gamma, dtype=dtype, random_state=0).fit(X)
            assert (again.transform_ == map.transform_).all()
        assert (map.transform(sp.csr_matrix(X)) == Z).all()

    def test_rank_keeps_the_largest_eigenvalues(self):
        X = rows(50, 3)
        W = pairwise.rbf_kernel(X, gamma=1.0)
        Z = rw.Nystroem(50, gamma=1.0, rank=7).fit_transform(X)
        values, vectors = np.linalg.eigh(W)
        best = (vectors[:, -7:] * values[-7:]) @ vectors[:, -7:].T
        assert Z.shape == (50, 7)
        np.testing.assert_allclose(Z @ Z.T, best, atol=1e-10)

    def test_thresholds(self):
        X = rows(80, 3)
        values = np.linalg.eigvalsh(pairwise.rbf_kernel(X, gamma=0.5))
        for threshold in (1e-6, 1e-3):
            absolute = rw.Nystroem(80, gamma=0.5, threshold=threshold, relative=False).fit(X)
            assert absolute.n_components_ == (values > threshold).sum()
            relative = rw.Nystroem(80, gamma=0.5, threshold=threshold).fit(X)
            assert relative.n_components_ == (values > threshold * values.max()).sum()

    def test_the_factor_is_used_only_where_nothing_would_be_dropped(self):
        for gamma in (0.01, 0.1, 1.0, 3.0, 10.0, 100.0):
            X = rows(60, 4, seed=3)
            map = rw.Nystroem(60, gamma=gamma, threshold=1e-8).fit(X)
            values = np.linalg.eigvalsh(pairwise.rbf_kernel(X, gamma=gamma))
            if map.triangular_:
                assert values.min() > 1e-8 * values.max()
            else:
                assert map.n_components_ == (values > 1e-8 * values.max()).sum()

    def test_repeated_rows_and_landmarks(self):
        X = np.repeat(rows(10, 3), 20, axis=0)
        map = rw.Nystroem(50, gamma=1.0, random_state=0).fit(X)
        assert len(map.landmarks_) == 10
        doubled = rw.Nystroem(20, gamma=1.0, landmarks=np.concatenate([X[::20], X[::20]])).fit(X)
        assert doubled.n_components_ == 10
        K = pairwise.rbf_kernel(X, gamma=1.0)
        for fitted in (map, doubled):
            Z = fitted.transform(X)
            np.testing.assert_allclose(Z @ Z.T, K, atol=1e-9)

    def test_better_landmarks_are_better(self):
        rng = np.random.default_rng(0)
        # Many rows in one place, a few elsewhere: what uniform landmarks miss.
        X = np.concatenate([rng.normal(0, 0.05, (1900, 4)), rng.normal(0, 3, (100, 4))])
        errors = {}
        for landmarks in LANDMARKS:
            maps = [
                rw.Nystroem(60, gamma=0.3, landmarks=landmarks, random_state=s) for s in range(3)
            ]
            unexplained = [1 - np.square(map.fit_transform(X)).sum(axis=1).mean() for map in maps]
            errors[landmarks] = np.mean(unexplained)
        assert errors["leverage"] < 0.6 * errors["uniform"]
        assert errors["greedy"] < 0.6 * errors["uniform"]
        assert errors["kmeans"] < 0.99 * errors["uniform"]

    def test_greedy_is_pivoted_cholesky(self):
        X = rows(80, 3)
        K = pairwise.rbf_kernel(X, gamma=2.0)
        left, chosen = K.copy(), []
        for _ in range(8):
            pivot = int(left.diagonal().argmax())
            chosen.append(pivot)
            left -= np.outer(left[:, pivot], left[pivot]) / left[pivot, pivot]
        found = rw.Nystroem(8, gamma=2.0, landmarks="greedy").fit(X).landmarks_
        np.testing.assert_array_equal(found, X[chosen])

    def test_degenerate_kernels(self):
        X = rows(30, 3)
        flat = rw.Nystroem(30, gamma=1e-300).fit(X)
        assert flat.n_components_ == 1
        np.testing.assert_allclose(flat.transform(X) ** 2, 1, rtol=1e-12)
        apart = rw.Nystroem(30, gamma=1e300).fit(X)
        np.testing.assert_allclose(apart.transform(X) @ apart.transform(X).T, np.eye(30))
        constant = rw.Nystroem(30, gamma=1.0).fit(np.ones((9, 4)))
        assert constant.n_components_ == 1

    def test_refusals(self):
        X = rows(20, 3)
        with pytest.raises(ValueError, match=r"Nystroem\.fit: the kernel must be finite, got inf"):
            rw.Nystroem(5, kernel="poly").fit(X * 1e200)
        with pytest.raises(ValueError, match=r"some eigenvalue .* must be above 1000, got 1\d\."):
            rw.Nystroem(20, gamma=0.1, threshold=1e3, relative=False).fit(X)
        with pytest.raises(ValueError, match=r"landmarks must be one of .*got 'best'"):
            rw.Nystroem(5, landmarks="best").fit(X)
        with pytest.raises(ValueError, match="X has 2 features"):
            rw.Nystroem(5, landmarks=X[:, :2]).fit(X)
        with pytest.raises(
            ValueError, match="n_components must be an integer of at least 1, got 0"
        ):
            rw.Nystroem(0).fit(X)
        with pytest.raises(ValueError, match=r"dtype must be one of .* got 'int'"):
            rw.Nystroem(5, dtype="int").fit(X)

    @settings(max_examples=25)
    @given(
        n=st.integers(1, 30), d=st.integers(1, 6), m=st.integers(1, 40),
        scale=st.sampled_from([1e-300, 1e-3, 1.0, 1e3, 1e300]),
        kernel=st.sampled_from(["rbf", "laplacian", "matern", "chi2"]),
        landmarks=st.sampled_from(list(LANDMARKS)), seed=st.integers(0, 99),
    )  # fmt: skip
    def test_never_far_from_a_kernel(self, n, d, m, scale, kernel, landmarks, seed):
        X = np.round(rows(n, d, seed), 1) * scale  # with repeated rows
        Z = rw.Nystroem(m, kernel=kernel, landmarks=landmarks, random_state=seed).fit_transform(X)
        assert np.isfinite(Z).all()
        assert (np.square(Z).sum(axis=1) <= 1 + 1e-6).all()


# --- random Fourier features -------------------------------------------------------------------


class TestRandomFourier:
    @pytest.mark.parametrize("form", ["phase", "paired"])
    @pytest.mark.parametrize("draw", DRAWS)
    def test_equals_the_formula(self, form, draw):
        X = rows(70, 6) * 4
        map = rw.RandomFourierFeatures(64, gamma=0.5, form=form, draw=draw, random_state=0).fit(X)
        angles = X @ map.frequencies_.T
        if form == "phase":
            expected = np.sqrt(2 / 64) * np.cos(angles + map.phases_)
        else:
            assert map.phases_ is None
            expected = np.sqrt(2 / 64) * np.hstack([np.cos(angles), np.sin(angles)])
        np.testing.assert_allclose(map.transform(X), expected, atol=1e-14)
        map.set_params(dtype="float32").fit(X)
        np.testing.assert_allclose(map.transform(X), expected, atol=2e-5)

    @pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern"])
    @pytest.mark.parametrize("form", ["phase", "paired"])
    @pytest.mark.parametrize("draw", DRAWS)
    def test_inner_products_are_the_kernel_on_average(self, kernel, form, draw):
        if (kernel, draw) == ("laplacian", "orthogonal"):
            pytest.skip("refused")
        X = rows(12, 4)
        total = np.zeros((12, 12))
        n_draws, m = 25, 512
        for seed in range(n_draws):
            map = rw.RandomFourierFeatures(
                m, kernel=kernel, gamma=0.7, form=form, draw=draw, random_state=seed
            )
            Z = map.fit_transform(X)
            total += Z @ Z.T
        K = rw.kernel_matrix(X, kernel=kernel, gamma=0.7)
        # Standard deviation of the mean: below sqrt(1.5 / (512 * 25)) = .0109.
        assert np.abs(total / n_draws - K).max() < 4.5 * 0.0109
        if form == "paired":
            np.testing.assert_allclose(total.diagonal() / n_draws, 1, rtol=1e-12)

    @pytest.mark.parametrize("form", ["phase", "paired"])
    def test_variance(self, form):
        X = np.array([[0.0, 0.0], [0.4, 0.3]])
        m, n = 16, 4000  # n estimates from m features each: blocks of one large map
        map = rw.RandomFourierFeatures(m * n, gamma=1.0, form=form, random_state=0)
        product = np.multiply(*map.fit_transform(X)) * n
        if form == "paired":  # all cosines, then all sines
            product = product.reshape(2, -1).sum(axis=0)
        estimates = product.reshape(n, -1).sum(axis=1)
        k, k2 = np.exp(-0.25), np.exp(-1.0)
        spread = (1 + k2) / 2 - k**2
        expected = (0.5 + spread) / m if form == "phase" else spread / (m / 2)
        assert np.var(estimates) == pytest.approx(expected, rel=0.1)

    def test_error_falls_with_the_root_of_m(self):
        X = rows(30, 5)
        K = rw.kernel_matrix(X, gamma=0.5)
        errors = []
        for m in (10, 100, 1000):
            maps = [rw.RandomFourierFeatures(m, gamma=0.5, random_state=s) for s in range(10)]
            away = [np.abs((Z := p.fit_transform(X)) @ Z.T - K).mean() for p in maps]
            errors.append(np.mean(away) * np.sqrt(m))
        assert max(errors) < 1.25 * min(errors)

    def test_better_draws_are_better(self):
        X = rows(60, 6)
        K = rw.kernel_matrix(X, gamma=0.3)
        errors = {}
        for draw in DRAWS:
            maps = [rw.RandomFourierFeatures(96, gamma=0.3, form="paired", draw=draw, random_state=s)
                    for s in range(20)]  # fmt: skip
            errors[draw] = np.mean(
                [np.square((Z := p.fit_transform(X)) @ Z.T - K).mean() for p in maps]
            )
        assert errors["orthogonal"] < 0.8 * errors["independent"]
        assert errors["quasi"] < 0.8 * errors["independent"]

    def test_orthogonal_blocks(self):
        map = rw.RandomFourierFeatures(10, gamma=0.5, draw="orthogonal", random_state=0)
        W = map.fit(rows(5, 4)).frequencies_
        assert W.shape == (10, 4)
        for block in (W[:4], W[4:8]):
            gram = block @ block.T
            np.testing.assert_allclose(gram - np.diag(gram.diagonal()), 0, atol=1e-12)

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("form", ["phase", "paired"])
    def test_equal_rows_equal_bits(self, dtype, form):
        X = rows(500, 7)
        places = np.array([0, 1, 47, 48, 333, 499])
        X[places] = X[0]
        map = rw.RandomFourierFeatures(38, form=form, dtype=dtype, random_state=0).fit(X)
        Z = map.transform(X)
        assert (Z[places] == Z[0]).all()
        assert (map.transform(X[7:60]) == Z[7:60]).all()
        assert (map.transform(sp.csr_matrix(X)) == Z).all()
        assert map.transform(X.astype(np.float32)).dtype == dtype

    def test_refusals(self):
        X = rows(20, 3)
        with pytest.raises(ValueError, match="n_components must be even with form='paired', got 7"):
            rw.RandomFourierFeatures(7, form="paired").fit(X)
        with pytest.raises(ValueError, match="same in all directions, got kernel='laplacian'"):
            rw.RandomFourierFeatures(8, kernel="laplacian", draw="orthogonal").fit(X)
        map = rw.RandomFourierFeatures(8, gamma=1.0, random_state=0).fit(X)
        with pytest.raises(ValueError, match=r"below 1\.1e\+15 turns, got features up to 1e\+300"):
            map.transform(np.full((2, 3), 1e300))
        assert np.isfinite(map.transform(np.full((2, 3), 1e-300))).all()
        assert np.isfinite(map.transform(np.full((2, 3), 1e12))).all()


# --- containers, quality, scikit-learn ------------------------------------------------------------


@parametrize_with_checks(
    [rw.Nystroem(10, random_state=0), rw.RandomFourierFeatures(10, random_state=0)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("map", [rw.Nystroem(20, random_state=0), rw.RandomFourierFeatures(20)])
def test_containers(map, tmp_path):
    queries = rw.make_queries(n_queries=10)
    map.fit(queries)
    mapped = map.transform(queries)
    assert isinstance(mapped, rw.Queries)
    assert (map.transform(queries.X) == mapped.X).all()
    assert (mapped.y == queries.y).all() and (mapped.offsets == queries.offsets).all()
    assert len(map.get_feature_names_out()) == 20
    rw.save(map, tmp_path / "map.rank")
    assert (rw.load(tmp_path / "map.rank").transform(queries).X == mapped.X).all()
    with pytest.raises(ValueError, match="X has 2 features"):
        map.transform(np.zeros((3, 2)))


def test_map_quality():
    X = rows(150, 4)
    K = pairwise.rbf_kernel(X, gamma=0.5)
    map = rw.Nystroem(20, gamma=0.5, random_state=0).fit(X)
    Z = map.transform(X)
    found = rw.map_quality(map, X, ridge=0.1)
    away = K - Z @ Z.T
    assert found.gram_error == pytest.approx(np.linalg.norm(away) / np.linalg.norm(K))
    assert found.spectral_error == pytest.approx(np.linalg.norm(away, 2) / np.linalg.norm(K, 2))
    assert found.trace_error == pytest.approx(np.trace(away) / 150)
    assert found.largest_error == pytest.approx(np.abs(away).max())
    assert found.effective_dimension == pytest.approx(
        np.trace(K @ np.linalg.inv(K + 0.1 * np.eye(150)))
    )
    assert (found.n_components, found.n_rows) == (20, 150)
    assert rw.map_quality(map, X, n_rows=40).n_rows == 40
    fourier = rw.RandomFourierFeatures(20, gamma=0.5, random_state=0).fit(X)
    assert rw.map_quality(fourier, X).gram_error > found.gram_error
    with pytest.raises(TypeError, match="map must be a Nystroem or RandomFourierFeatures"):
        rw.map_quality(SklearnNystroem(), X)
