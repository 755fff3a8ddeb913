r"""Explicit features whose inner products are close to a kernel: Nystrom and random Fourier maps.

A kernel ranker costs the square of the number of documents. A map ``psi`` with ``psi(x).psi(z)``
close to ``k(x, z)`` costs their number: map the documents once, and rank them with any linear
ranker (:class:`rankwise.KernelRanker` does both).

>>> import rankwise as rw
>>> queries = rw.make_queries(n_queries=20)
>>> Z = rw.Nystroem(50, gamma=0.01, random_state=0).fit_transform(queries.X)
>>> bool(abs(Z @ Z.T - rw.kernel_matrix(queries.X, gamma=0.01)).max() < 0.01)
True

Which one? :class:`Nystroem` looks at the data and needs far fewer features for the same quality
where the kernel's spectrum falls fast, as it does on most ranking features; better landmarks
(``"kmeans"``, ``"greedy"``) save more of them. :class:`RandomFourierFeatures` needs no data, costs no
factorisation, and its error falls as ``1 / sqrt(n_components)`` whatever the data.

Both are scikit-learn transformers. The features of a row depend on the row and the fitted map
alone, to the last bit: not on the other rows, nor on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise import _core, _validate
from rankwise._inputs import features_of, note_features, same_features
from rankwise.data import Queries, row_hashes
from rankwise.kernels import (
    DTYPES,
    Floats,
    Kernel,
    check_features,
    checked_kernel,
    dense,
    row_chunks,
)

_BLOCK = 2048  # rows worked on at a time


class _Map(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What the maps share: checking, containers, chunks.

    ``_basis(X)`` are features that the native code makes row by row; the map is ``_basis(X)`` times
    the matrix ``_change()``, if there is one. A linear ranker can work in the basis and skip the
    product.
    """

    n_features_in_: int
    n_components_: int
    dtype: str

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the map from the rows of ``X`` (array, CSR, frame or Queries); ``y`` is ignored."""
        where = f"{type(self).__name__}.fit"
        features, names = features_of(where, X)
        features = _validate.matrix(where, features, nan=False)
        _validate.choice(where, "dtype", self.dtype, DTYPES)
        self._learn(where, features)
        note_features(self, features.shape[1], names)
        return self

    def transform(self, X: Any) -> Any:
        """The mapped rows.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_docs, n_features), or Queries

        Returns
        -------
        array of shape (n_docs, n_components_), of the map's ``dtype``; a Queries for a Queries
        """
        where = f"{type(self).__name__}.transform"
        check_is_fitted(self, "n_components_")
        features, names = features_of(where, X)
        Z = self._mapped(where, same_features(where, self, features, names, nan=False))
        return X.with_features(Z) if isinstance(X, Queries) else Z

    def _learn(self, where: str, X: Any) -> None:
        raise TypeError(f"{type(self).__name__} must define _learn(where, X)")

    def _basis(self, where: str, X: Any) -> NDArray[Any]:
        raise TypeError(f"{type(self).__name__} must define _basis(where, X)")

    def _change(self) -> Floats | None:
        return None

    def _mapped(self, where: str, X: Any) -> NDArray[Any]:
        return self._basis(where, X)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class Nystroem(_Map):
    r"""Nystrom's map: features from the similarities to a few landmarks.

    ``psi(x) = W^(-1/2) (k(x, b_1), ..., k(x, b_m))``, with ``W`` the kernel between the landmarks

    so that ``psi(x).psi(z) = k(x, B) W^+ k(B, z)``, which is exact where ``x`` or ``z`` is a landmark,
    and never above in the sense that the error of the Gram matrix is positive semidefinite. Any
    ``W^(-1/2)`` gives the same inner products: a Cholesky factor where ``W`` is well conditioned,
    its eigenvectors otherwise.

    Parameters
    ----------
    n_components : int
        Landmarks, ``m``. Where there are fewer distinct rows, all of them are taken, and the map
        is exact on them.
    kernel : str or callable
        See :mod:`rankwise.kernels`.
    gamma : float, optional
        Above 0; one over the number of features unless given.
    degree, coef0, nu : int, float, float
        Of the polynomial and of Matern's kernel.
    landmarks : {"uniform", "kmeans", "leverage", "greedy"} or array of shape (m, n_features)
        How landmarks are chosen: ``"uniform"`` among the distinct rows; ``"kmeans"``, the centres
        after five of Lloyd's iterations; ``"leverage"``, rows at random by how hard they are to
        reach from the others (approximate ridge leverage scores); ``"greedy"``, one after
        another the row that the landmarks before explain least (pivoted Cholesky). Or the
        landmarks themselves.
    rank : int, optional
        Keep the ``rank`` largest eigenvalues of ``W`` only.
    threshold : float, optional
        Eigenvalues of ``W`` up to this are dropped, as near-copies among the landmarks would blow
        up rounding errors. Unless given, 1e-12 (float32: 1e-6) of the largest.
    relative : bool
        Whether ``threshold`` is a share of the largest eigenvalue. ``threshold=1e-6,
        relative=False`` is the rule of Chen et al.'s program.
    dtype : {"float64", "float32"}
        Of the features, and what they are computed in.
    random_state : int, RandomState or None

    Attributes
    ----------
    landmarks_ : float64 array of shape (m, n_features)
    transform_ : float64 array of shape (m, n_components_)
        ``W^(-1/2)``: upper triangular, or eigenvectors divided by the roots of their eigenvalues.
    triangular_ : bool
    n_components_ : int
        Features of the map: ``m`` less what was dropped.
    gamma_ : float

    Raises
    ------
    ValueError
        If no eigenvalue is above the threshold, or the kernel overflows.

    Notes
    -----
    O(n m d) for the similarities, O(m^3) once, O(n m^2) for the product (half of it with a Cholesky
    factor), which :class:`rankwise.KernelRanker` does without. Rows are worked on in blocks: memory
    is the result, plus ``m^2``. ``"kmeans"`` costs five times the similarities, ``"leverage"``
    O(n p^2) with ``p = min(m, 512)``, ``"greedy"`` O(min(n, 10000) m^2) among at most 10,000 rows
    taken at random.

    References
    ----------
    williams2001, chen2017, zhang2008, musco2017, fine2001

    Examples
    --------
    >>> import numpy as np, rankwise as rw
    >>> B = np.array([[0.0], [1.0]])
    >>> Z = rw.Nystroem(2, gamma=1.0, landmarks=B).fit(B).transform([[0.0], [0.5]])
    >>> (Z @ Z.T).round(6)
    array([[1.      , 0.778801],
           [0.778801, 0.886819]])
    """

    landmarks_: Floats
    transform_: Floats
    triangular_: bool
    gamma_: float

    def __init__(
        self,
        n_components: int = 100,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        nu: float = 1.5,
        landmarks: Any = "uniform",
        rank: int | None = None,
        threshold: float | None = None,
        relative: bool = True,
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.nu = nu
        self.landmarks = landmarks
        self.rank = rank
        self.threshold = threshold
        self.relative = relative
        self.dtype = dtype
        self.random_state = random_state

    def _learn(self, where: str, X: Any) -> None:
        m = int(_validate.number(where, "n_components", self.n_components, low=1, integer=True))
        rank = self.rank
        if rank is not None:
            rank = int(_validate.number(where, "rank", rank, low=1, integer=True))
        threshold = 1e-12 if self.dtype == "float64" else 1e-6
        if self.threshold is not None:
            threshold = _validate.number(where, "threshold", self.threshold, low=0)
        kernel = self._kernel(where, X, self.gamma)
        self.gamma_ = kernel.gamma
        with one_thread():
            self.landmarks_ = self._chosen(where, kernel, X, m)
            W = _finite(where, kernel, kernel.matrix(self.landmarks_, self.landmarks_))
            self.transform_, self.triangular_ = _inverse_root(
                where, W, rank, threshold, self.relative
            )
        self.n_components_ = self.transform_.shape[1]

    def _chosen(self, where: str, kernel: Kernel, X: Any, m: int) -> Floats:
        if not isinstance(self.landmarks, str):
            given = _validate.matrix(f"{where} (landmarks)", self.landmarks, nan=False)
            _validate.matrix(f"{where} (landmarks)", given, n_features=X.shape[1])
            check_features(f"{where} (landmarks)", kernel.function, given)
            return np.ascontiguousarray(dense(given), dtype=np.float64)
        _validate.choice(where, "landmarks", self.landmarks, LANDMARKS)
        random = check_random_state(self.random_state)
        _, distinct = np.unique(row_hashes(X), return_index=True)
        distinct.sort()
        if m >= len(distinct) and self.landmarks != "kmeans":
            return _rows(X, distinct)
        return LANDMARKS[self.landmarks](kernel, X, distinct, min(m, len(distinct)), random)

    def _kernel(self, where: str, X: Any, gamma: float | None) -> Kernel:
        return checked_kernel(
            where, self.kernel, X,
            gamma=gamma, degree=self.degree, coef0=self.coef0, nu=self.nu,
        )  # fmt: skip

    def _basis(self, where: str, X: Any) -> NDArray[Any]:
        kernel = self._kernel(where, X, self.gamma_)
        return _finite(where, kernel, kernel.matrix(X, self.landmarks_, dtype=self.dtype))

    def _change(self) -> Floats:
        return self.transform_

    def _mapped(self, where: str, X: Any) -> NDArray[Any]:
        kernel = self._kernel(where, X, self.gamma_)
        into = kernel.against(self.landmarks_, self.dtype)
        columns = np.ascontiguousarray(self.transform_.T)
        change = (_core.Points if self.dtype == "float64" else _core.Points32)(columns)
        out = np.empty((X.shape[0], self.n_components_), dtype=self.dtype)
        block = np.empty((min(_BLOCK, X.shape[0]), len(self.landmarks_)), dtype=self.dtype)
        for start in range(0, X.shape[0], _BLOCK):
            rows = X[start : start + _BLOCK]
            similar = block[: rows.shape[0]]
            into(rows, similar, 0)
            change.multiply(similar, out[start : start + _BLOCK], self.triangular_)
        return _finite(where, kernel, out)


def _finite(where: str, kernel: Kernel, values: NDArray[Any]) -> NDArray[Any]:
    """Refuses what an unbounded kernel may give for large features."""
    if not kernel.bounded and not np.isfinite(values).all():
        raise ValueError(
            f"{where}: the kernel must be finite, got {values[~np.isfinite(values)][0]}; "
            "scale the features"
        )
    return values


def _inverse_root(
    where: str, W: Floats, rank: int | None, threshold: float, relative: bool
) -> tuple[Floats, bool]:
    """``T`` with ``T T' = W^+``, and whether it is upper triangular."""
    from scipy.linalg import eigh
    from scipy.linalg.lapack import dpocon, dpotrf, dtrtri

    m = len(W)
    if rank is None or rank >= m:
        size = float(np.abs(W).sum(axis=0).max())
        factor, info = dpotrf(W, lower=1, clean=1)
        if info == 0:
            # The smallest eigenvalue is at least this, times the largest's bound; 10 for the
            # estimate being one.
            reciprocal, _ = dpocon(factor, size, uplo="L")
            if reciprocal * (1.0 if relative else size) > 10 * threshold:
                inverse, _ = dtrtri(factor, lower=1)
                return np.ascontiguousarray(inverse.T), True
    values, vectors = eigh(W)
    values, vectors = values[::-1], vectors[:, ::-1]
    limit = threshold * (max(values[0], 0.0) if relative else 1.0)
    kept = int(np.count_nonzero(values > limit))
    if kept == 0:
        raise ValueError(
            f"{where}: some eigenvalue of the kernel between the landmarks must be above "
            f"{limit:g}, got {values[0]:g} at most; lower threshold, or scale the features"
        )
    kept = kept if rank is None else min(kept, rank)
    return np.ascontiguousarray(vectors[:, :kept] / np.sqrt(values[:kept])), False


# --- landmarks -------------------------------------------------------------------------------

_LLOYD = 5  # iterations of k-means, as in Chen et al.'s program
_PILOT = 512  # landmarks at most behind approximate leverage scores
_POOL = 10_000  # rows the greedy choice looks at

Random = np.random.RandomState
Chooser = Callable[[Kernel, Any, NDArray[np.int64], int, Random], Floats]


def _rows(X: Any, rows: NDArray[np.int64]) -> Floats:
    return np.ascontiguousarray(dense(X[rows]), dtype=np.float64)


def _uniform(kernel: Kernel, X: Any, distinct: NDArray[np.int64], m: int, random: Random) -> Floats:
    return _rows(X, np.sort(random.choice(distinct, m, replace=False)))


def _kmeans(kernel: Kernel, X: Any, distinct: NDArray[np.int64], m: int, random: Random) -> Floats:
    """Lloyd's iterations from distinct rows; centres that lose all their rows are dropped."""
    centres = _uniform(kernel, X, distinct, m, random)
    for _ in range(_LLOYD):
        points = _core.Points(centres)
        sums, counts = np.zeros_like(centres), np.zeros(len(centres))
        distances = np.empty((_BLOCK, len(centres)))
        for start in range(0, X.shape[0], _BLOCK):
            rows = np.ascontiguousarray(dense(X[start : start + _BLOCK]), dtype=np.float64)
            here = distances[: len(rows)]
            points.kernel(rows, here, "square", "none")
            nearest = here.argmin(axis=1)
            order = np.argsort(nearest, kind="stable")
            own, first = np.unique(nearest[order], return_index=True)
            sums[own] += np.add.reduceat(rows[order], first)
            counts += np.bincount(nearest, minlength=len(centres))
        used = counts > 0
        centres = np.ascontiguousarray(sums[used] / counts[used, None])
    return centres


def _by_leverage(
    kernel: Kernel, X: Any, distinct: NDArray[np.int64], m: int, random: Random
) -> Floats:
    """Rows at random, by ridge leverage scores with respect to a pilot map.

    The ridge is the one at which the effective dimension is half of ``m``.
    """
    pilot = _uniform(kernel, X, distinct, min(m, _PILOT), random)
    T, _ = _inverse_root("Nystroem.fit", kernel.matrix(pilot, pilot), None, 1e-10, True)
    gram = np.zeros((T.shape[1], T.shape[1]))
    for Z in _pilot_features(kernel, X, distinct, pilot, T):
        gram += Z.T @ Z
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    diagonal = kernel.diagonal(X[distinct])
    left = float(diagonal.sum()) - float(values.sum())  # trace the pilot does not explain
    ridge = _ridge_for(values, max(left, 0.0), m / 2)
    scores = []
    start = 0
    for Z in _pilot_features(kernel, X, distinct, pilot, T):
        turned = np.square(Z @ vectors)
        unexplained = diagonal[start : start + len(Z)] - turned.sum(axis=1)
        scores.append((turned / (values + ridge)).sum(axis=1) + np.maximum(unexplained, 0) / ridge)
        start += len(Z)
    share = np.concatenate(scores) + 1e-12
    chosen = random.choice(distinct, m, replace=False, p=share / share.sum())
    return _rows(X, np.sort(chosen))


def _pilot_features(
    kernel: Kernel, X: Any, rows: NDArray[np.int64], pilot: Floats, T: Floats
) -> Iterator[Floats]:
    for start in range(0, len(rows), _BLOCK):
        yield kernel.matrix(_rows(X, rows[start : start + _BLOCK]), pilot) @ T


def _ridge_for(values: Floats, left: float, dimension: float) -> float:
    """The ridge at which ``sum of v / (v + ridge) + left / ridge`` is ``dimension``."""
    low, high = -300.0, 300.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        ridge = 10.0**middle
        if (values / (values + ridge)).sum() + left / ridge > dimension:
            low = middle
        else:
            high = middle
    return float(10.0**high)


def _greedy(kernel: Kernel, X: Any, distinct: NDArray[np.int64], m: int, random: Random) -> Floats:
    """Pivoted Cholesky: the row whose similarity to itself the landmarks before explain least."""
    if len(distinct) > _POOL:
        distinct = np.sort(random.choice(distinct, max(_POOL, m), replace=False))
    pool = _rows(X, distinct)
    residual = kernel.diagonal(pool)
    enough = 1e-12 * float(residual.max())
    factor = np.zeros((m, len(pool)))
    pivots: list[int] = []
    for j in range(m):
        pivot = int(residual.argmax())
        if not residual[pivot] > enough:
            break
        column = kernel.matrix(pool, pool[pivot : pivot + 1])[:, 0]
        column -= factor[:j, pivot] @ factor[:j]
        factor[j] = column / np.sqrt(residual[pivot])
        residual -= factor[j] ** 2
        residual[pivot] = 0.0
        pivots.append(pivot)
    return pool[pivots]


LANDMARKS: dict[str, Chooser] = {
    "uniform": _uniform,
    "kmeans": _kmeans,
    "leverage": _by_leverage,
    "greedy": _greedy,
}


# --- random Fourier features -----------------------------------------------------------------


class RandomFourierFeatures(_Map):
    r"""Random features of a shift-invariant kernel: cosines of random projections.

    ``psi(x) = sqrt(2 / m) (cos(w_j.x + b_j))_j``, or ``sqrt(2 / m) (cos(w_j.x), sin(w_j.x))_j``

    with ``w`` drawn from the kernel's spectrum (RBF: normal with variance ``2 gamma``; Laplacian:
    Cauchy with scale ``gamma``; Matern: Student's t) and ``b`` uniform on ``[0, 2 pi]``, so that
    ``psi(x).psi(z)`` is ``k(x, z)`` on average over the draws.

    Parameters
    ----------
    n_components : int
        Features, ``m``; even with ``form="paired"``.
    kernel : {"rbf", "laplacian", "matern"}
    gamma : float, optional
        Above 0; one over the number of features unless given.
    nu : {0.5, 1.5, 2.5}
        Of Matern's kernel.
    form : {"phase", "paired"}
        ``"paired"`` uses ``m / 2`` frequencies twice; its error is smaller where similarities are
        near 1, and ``psi(x).psi(x)`` is exactly 1.
    draw : {"independent", "orthogonal", "quasi"}
        ``"orthogonal"``: frequencies at right angles in blocks of ``n_features`` (RBF and Matern);
        ``"quasi"``: from scrambled Sobol points, which cover the spectrum more evenly.
    dtype : {"float64", "float32"}
        Of the features, and what they are computed in.
    random_state : int, RandomState or None

    Attributes
    ----------
    frequencies_ : float64 array of shape (n_frequencies, n_features)
    phases_ : float64 array of shape (n_components,) or None
        In radians; None with ``form="paired"``.
    n_components_ : int
    gamma_ : float

    Raises
    ------
    ValueError
        If ``transform`` gets features so large that the projections have no fraction left.

    Notes
    -----
    O(n m d). Projection, phase, cosine and scale are one pass over a block in the cache. With ``t``
    the difference of two rows the variance of the estimate is
    ``(1/2 + (1 + k(2t))/2 - k(t)^2) / m`` in the phase form and ``((1 + k(2t))/2 - k(t)^2) / (m/2)``
    in the paired one.

    References
    ----------
    rahimi2007, yu2016, avron2016, chen2017

    Examples
    --------
    >>> import rankwise as rw
    >>> Z = rw.RandomFourierFeatures(4, gamma=0.5, random_state=0).fit_transform([[0.0], [1.0]])
    >>> Z.shape
    (2, 4)
    """

    frequencies_: Floats
    phases_: Floats | None
    gamma_: float

    def __init__(
        self,
        n_components: int = 100,
        *,
        kernel: str = "rbf",
        gamma: float | None = None,
        nu: float = 1.5,
        form: str = "phase",
        draw: str = "independent",
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.nu = nu
        self.form = form
        self.draw = draw
        self.dtype = dtype
        self.random_state = random_state

    def _learn(self, where: str, X: Any) -> None:
        m = int(_validate.number(where, "n_components", self.n_components, low=1, integer=True))
        _validate.choice(where, "kernel", self.kernel, SPECTRA)
        _validate.choice(where, "form", self.form, ["phase", "paired"])
        _validate.choice(where, "draw", self.draw, DRAWS)
        if self.form == "paired" and m % 2:
            raise ValueError(f"{where}: n_components must be even with form='paired', got {m}")
        if self.draw == "orthogonal" and self.kernel == "laplacian":
            raise ValueError(
                f"{where}: orthogonal draws need a spectrum that is the same in all directions, "
                "got kernel='laplacian'; use draw='quasi' or 'independent'"
            )
        kernel = checked_kernel(
            where, self.kernel, X, gamma=self.gamma, degree=1, coef0=0.0, nu=self.nu
        )
        random = check_random_state(self.random_state)
        with one_thread():
            frequencies = DRAWS[self.draw](kernel, m if self.form == "phase" else m // 2,
                                           X.shape[1], random)  # fmt: skip
        self.phases_ = random.uniform(0, 2 * np.pi, m) if self.form == "phase" else None
        self.frequencies_ = np.ascontiguousarray(frequencies)
        self.gamma_ = kernel.gamma
        self.n_components_ = m

    def _basis(self, where: str, X: Any) -> NDArray[Any]:
        self._check_size(where, X)
        double = self.dtype == "float64"
        points = (_core.Points if double else _core.Points32)(self.frequencies_ / (2 * np.pi))
        out = np.empty((X.shape[0], self.n_components_), dtype=self.dtype)
        told: dict[str, Any] = {"shape": "cosine_sine"}
        if self.phases_ is not None:
            turns = self.phases_ / (2 * np.pi)
            told = {"shape": "cosine", "offset": turns.astype(self.dtype)}
        scale = float(np.sqrt(2.0 / self.n_components_))
        for rows in row_chunks(X):
            points.kernel(dense(X[rows]), out[rows], "product", scale=scale, **told)
        return out

    def _check_size(self, where: str, X: Any) -> None:
        """Refuses projections so large that only rounding is left of their place in the circle."""
        values = X.data if hasattr(X, "nnz") else X
        largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
        reach = float(np.abs(self.frequencies_).sum(axis=1).max()) / (2 * np.pi)
        limit = 2.0**50 if self.dtype == "float64" else 2.0**21
        if not largest <= limit / max(reach, 1e-300):
            raise ValueError(
                f"{where}: the projections must stay below {limit:.2g} turns, got features up to "
                f"{largest:.3g} with gamma={self.gamma_:g}; scale the features or lower gamma"
            )


def _normal(kernel: Kernel, u: Floats) -> Floats:
    from scipy.special import ndtri

    return np.asarray(np.sqrt(2 * kernel.gamma) * ndtri(u))


def _cauchy(kernel: Kernel, u: Floats) -> Floats:
    return np.asarray(kernel.gamma * np.tan(np.pi * (u - 0.5)))


def _student(kernel: Kernel, u: Floats) -> Floats:
    """Normal directions, stretched by the last coordinate."""
    return _normal(kernel, u[:, :-1]) * _stretch(kernel, u[:, -1])[:, None]


def _stretch(kernel: Kernel, u: Floats) -> Floats:
    from scipy.special import chdtri

    return np.asarray(np.sqrt(2 * kernel.nu / chdtri(2 * kernel.nu, u)))


# kernel -> frequencies from uniform numbers, and how many of these beyond one a feature.
SPECTRA: dict[str, tuple[Callable[[Kernel, Floats], Floats], int]] = {
    "rbf": (_normal, 0),
    "laplacian": (_cauchy, 0),
    "matern": (_student, 1),
}


def _independent(kernel: Kernel, n: int, d: int, random: Random) -> Floats:
    if kernel.function == "rbf":
        return np.asarray(np.sqrt(2 * kernel.gamma) * random.standard_normal((n, d)))
    if kernel.function == "laplacian":
        return np.asarray(kernel.gamma * random.standard_cauchy((n, d)))
    normal = np.sqrt(2 * kernel.gamma) * random.standard_normal((n, d))
    stretch = np.sqrt(2 * kernel.nu / random.chisquare(2 * kernel.nu, n))
    return np.asarray(normal * stretch[:, None])


def _orthogonal(kernel: Kernel, n: int, d: int, random: Random) -> Floats:
    """Directions at right angles, block by block; lengths as independent draws would have them."""
    blocks = []
    for _ in range(-(-n // d)):
        Q, R = np.linalg.qr(random.standard_normal((d, d)))
        blocks.append((Q * np.sign(R.diagonal())).T)
    lengths = np.sqrt(2 * kernel.gamma * random.chisquare(d, n))
    if kernel.function == "matern":
        lengths *= np.sqrt(2 * kernel.nu / random.chisquare(2 * kernel.nu, n))
    return np.asarray(np.concatenate(blocks)[:n] * lengths[:, None])


def _quasi(kernel: Kernel, n: int, d: int, random: Random) -> Floats:
    from scipy.stats import qmc

    spectrum, more = SPECTRA[str(kernel.function)]
    if d + more > qmc.Sobol.MAXDIM:
        raise ValueError(
            f"RandomFourierFeatures.fit: draw='quasi' takes up to {qmc.Sobol.MAXDIM - more} "
            f"features, got {d}; use draw='orthogonal' or 'independent'"
        )
    seed = int(random.randint(np.iinfo(np.int32).max))
    points = qmc.Sobol(d + more, scramble=True, seed=seed)
    u = points.random_base2(max(0, int(np.ceil(np.log2(n)))))[:n]
    return spectrum(kernel, np.clip(u, 1e-12, 1 - 1e-12))


DRAWS: dict[str, Callable[[Kernel, int, int, Random], Floats]] = {
    "independent": _independent,
    "orthogonal": _orthogonal,
    "quasi": _quasi,
}


# --- threads ---------------------------------------------------------------------------------


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS on the calling thread alone: how it shares out work changes the last bits."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
