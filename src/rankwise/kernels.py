r"""Kernel functions between rows: similarities ``k(x, z)`` that a linear ranker can use instead of features.

=================  ==========================================================================
``"linear"``       ``x.z``
``"poly"``         ``(gamma x.z + coef0)^degree``
``"rbf"``          ``exp(-gamma |x - z|^2)``
``"laplacian"``    ``exp(-gamma sum of |x_j - z_j|)``
``"matern"``       Matern's family, between the two above in smoothness; see :class:`Kernel`
``"chi2"``         ``exp(-gamma sum of (x_j - z_j)^2 / (x_j + z_j))``, for features of at least 0
a function         ``f(X, Z) -> (n_x, n_z)``, symmetric, positive semidefinite
=================  ==========================================================================

>>> import numpy as np, rankwise as rw
>>> rw.kernel_matrix(np.array([[0.0], [1.0]]), kernel="rbf", gamma=1.0).round(6)
array([[1.      , 0.367879],
       [0.367879, 1.      ]])

An entry depends on its two rows alone, to the last bit, wherever they stand: equal rows get equal
entries, ``k(x, x)`` of the exponential kernels is exactly 1, and no distance is a difference of large
numbers. Values far out in the tail, below the smallest normal number, are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise import _core, _validate

Floats = NDArray[np.float64]

# kernel -> what is summed over the features.
_SUMS = {
    "linear": "product",
    "poly": "product",
    "rbf": "square",
    "laplacian": "absolute",
    "matern": "square",
    "chi2": "chi_square",
}
KERNELS = tuple(_SUMS)
# Matern's closed forms, by smoothness.
_MATERN = {0.5: "matern1", 1.5: "matern3", 2.5: "matern5"}
_LOG2_E = float(np.log2(np.e))
_TILE = 256  # rows a function of the user's gets at a time


@dataclass(frozen=True)
class Kernel:
    r"""A kernel function and its parameters.

    Attributes
    ----------
    function : str or callable
        One of :data:`KERNELS`, or ``f(X, Z) -> (n_x, n_z)``.
    gamma : float
        Above 0: how fast the similarity falls with the distance.
    degree : int
    coef0 : float
        Of the polynomial kernel.
    nu : {0.5, 1.5, 2.5}
        Smoothness of Matern's kernel. With :math:`r = 2 \sqrt{\nu \gamma}\, |x - z|` it is
        :math:`e^{-r}`, :math:`(1 + r) e^{-r}` or :math:`(1 + r + r^2/3) e^{-r}`; for large ``nu``
        it tends to the RBF kernel of the same ``gamma``.
    """

    function: str | Callable[[Any, Any], Any] = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0
    nu: float = 1.5

    @property
    def bounded(self) -> bool:
        """Whether every value is between 0 and 1, and ``k(x, x)`` is 1."""
        return self.function in ("rbf", "laplacian", "matern", "chi2")

    def matrix(self, X: Any, Z: Floats, *, dtype: str = "float64") -> NDArray[Any]:
        """``k(x, z)`` of every row of ``X`` and every row of ``Z``."""
        out = np.empty((X.shape[0], len(Z)), dtype=dtype)
        self.against(Z, dtype)(X, out, 0)
        return out

    def against(self, Z: Floats, dtype: str) -> Callable[[Any, NDArray[Any], int], None]:
        """``into(X, out, n_threads)``, which writes ``k(x, z)``; ``Z`` is prepared once."""
        if callable(self.function):

            def foreign(X: Any, out: NDArray[Any], _: int) -> None:
                for start in range(0, X.shape[0], _TILE):
                    rows = dense(X[start : start + _TILE])
                    out[start : start + _TILE] = self._foreign(rows, Z)[: len(rows)]

            return foreign
        points = (_core.Points if dtype == "float64" else _core.Points32)(Z)
        told = self._native()

        def native(X: Any, out: NDArray[Any], n_threads: int) -> None:
            for rows in row_chunks(X):
                points.kernel(dense(X[rows]), out[rows], **told, n_threads=n_threads)

        return native

    def diagonal(self, X: Any) -> Floats:
        """``k(x, x)`` of every row."""
        n = X.shape[0]
        if self.bounded:
            return np.ones(n)
        if callable(self.function):
            rows = (dense(X[i : i + 1]) for i in range(n))
            return np.array([float(self.matrix(x, x)[0, 0]) for x in rows])
        norms = np.concatenate([np.square(dense(X[rows]).astype(float)).sum(axis=1)
                                for rows in row_chunks(X)])  # fmt: skip
        return (
            norms if self.function == "linear" else (self.gamma * norms + self.coef0) ** self.degree
        )

    def _native(self) -> dict[str, Any]:
        """What the native kernel is told: sum, shape and constants."""
        name = str(self.function)
        told: dict[str, Any] = {"sum": _SUMS[name], "shape": "power"}
        if name == "linear":
            told["shape"] = "none"
        elif name == "poly":
            told |= {"shape": "polynomial", "scale": self.gamma, "shift": self.coef0}
            told["degree"] = self.degree
        elif name == "matern":
            told |= {"shape": _MATERN[self.nu], "scale": 4 * self.nu * self.gamma}
        else:
            told["scale"] = self.gamma * _LOG2_E
        return told

    def _foreign(self, X: NDArray[Any], Z: Floats) -> Floats:
        """A user's function, on blocks of one shape so that no row depends on what is beside it."""
        rows = np.concatenate([X, np.repeat(X[-1:], _TILE - len(X), axis=0)])
        function: Any = self.function
        values = np.asarray(function(rows.astype(np.float64), Z), dtype=np.float64)
        if values.shape != (_TILE, len(Z)):
            raise ValueError(
                f"kernel: a function must return one value per pair of rows, shape "
                f"{(_TILE, len(Z))}, got {values.shape}"
            )
        return values


def checked_kernel(
    where: str,
    kernel: str | Callable[[Any, Any], Any],
    X: Any,
    *,
    gamma: float | None,
    degree: int,
    coef0: float,
    nu: float,
) -> Kernel:
    """The kernel for the features ``X``, its parameters checked; ``gamma=None`` is one over their
    number.
    """
    function = kernel if callable(kernel) else _validate.choice(where, "kernel", kernel, KERNELS)
    scale = 1.0 / X.shape[1]
    if gamma is not None:
        scale = _validate.number(where, "gamma", gamma, low=0, open_low=True)
    power = int(_validate.number(where, "degree", degree, low=1, high=100, integer=True))
    shift = _validate.number(where, "coef0", coef0, low=0)
    if nu not in _MATERN:
        raise ValueError(f"{where}: nu must be one of {', '.join(map(str, _MATERN))}, got {nu!r}")
    made = Kernel(function, scale, power, shift, float(nu))
    check_features(where, function, X)
    return made


def check_features(where: str, function: str | Callable[[Any, Any], Any], X: Any) -> None:
    """Refuses features for which a kernel function is not defined."""
    if function == "chi2":
        values = X.data if hasattr(X, "nnz") else X
        if values.size and values.min() < 0:
            raise ValueError(
                f"{where}: the chi2 kernel takes features of at least 0, got {values.min():g}; "
                "scale them to [0, 1]"
            )


def kernel_matrix(
    X: Any,
    Z: Any = None,
    *,
    kernel: str | Callable[[Any, Any], Any] = "rbf",
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 1.0,
    nu: float = 1.5,
    dtype: str = "float64",
) -> NDArray[Any]:
    """``k(x, z)`` of every row of ``X`` and every row of ``Z``.

    Parameters
    ----------
    X : array or CSR of shape (n_x, n_features)
    Z : array or CSR of shape (n_z, n_features), optional
        ``X`` itself unless given.
    kernel : str or callable
        See :mod:`rankwise.kernels`.
    gamma : float, optional
        Above 0; one over the number of features unless given.
    degree, coef0 : int, float
        Of the polynomial kernel.
    nu : {0.5, 1.5, 2.5}
        Of Matern's kernel.
    dtype : {"float64", "float32"}
        What is computed in.

    Returns
    -------
    array of shape (n_x, n_z)

    Raises
    ------
    ValueError
        If a parameter is out of range, or features are negative (chi2) or missing.

    Notes
    -----
    O(n_x n_z n_features), in parallel; sparse rows are filled up, a block at a time. Exponentials
    are within 3 units in the last place of a factor ``1 + |log k|`` (of the exponent's rounding).

    Examples
    --------
    >>> import numpy as np, rankwise as rw
    >>> rw.kernel_matrix(np.eye(2), np.array([[2.0, 1.0]]), kernel="linear")
    array([[2.],
           [1.]])
    """
    where = "kernel_matrix"
    X = _validate.matrix(where, X, nan=False)
    Z = X if Z is None else _validate.matrix(where, Z, n_features=X.shape[1], nan=False)
    _validate.choice(where, "dtype", dtype, DTYPES)
    made = checked_kernel(where, kernel, X, gamma=gamma, degree=degree, coef0=coef0, nu=nu)
    check_features(where, made.function, Z)
    return made.matrix(X, np.ascontiguousarray(dense(Z), dtype=np.float64), dtype=dtype)


DTYPES = ("float64", "float32")
_CHUNK = 1 << 22  # numbers of a sparse matrix filled up at a time


def row_chunks(X: Any) -> list[slice]:
    """Rows to take at a time: all of a dense matrix, blocks of a sparse one."""
    n = X.shape[0]
    step = max(1, _CHUNK // X.shape[1]) if hasattr(X, "nnz") else max(n, 1)
    return [slice(start, start + step) for start in range(0, n, step)]


def dense(X: Any) -> NDArray[Any]:
    """Checked rows as a C-contiguous matrix; sparse ones are filled up."""
    return np.ascontiguousarray(X.toarray() if hasattr(X, "nnz") else X)
