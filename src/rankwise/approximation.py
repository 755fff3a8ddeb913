r"""How close a map's inner products come to its kernel, before anything is learned with it.

>>> import rankwise as rw
>>> queries = rw.make_queries(n_queries=20)
>>> for m in (10, 100):
...     map = rw.Nystroem(m, gamma=0.01, random_state=0).fit(queries)
...     print(m, round(rw.map_quality(map, queries).gram_error, 4))
10 0.0047
100 0.0

What is enough? A kernel ranker with penalty ``1 / C`` uses about as many directions as the kernel
matrix has eigenvalues above it: its effective dimension. With fewer components than that a map
loses something, with several times as many it loses next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise import _validate
from rankwise._inputs import features_of, same_features
from rankwise.kernels import Kernel, checked_kernel, dense
from rankwise.maps import Nystroem, RandomFourierFeatures, one_thread


@dataclass(frozen=True)
class MapQuality:
    r"""A map against its kernel, on a sample of rows with kernel matrix :math:`K`, features :math:`Z`.

    Attributes
    ----------
    gram_error : float
        :math:`\|K - Z Z'\|_F / \|K\|_F`; 0 is exact.
    spectral_error : float
        :math:`\|K - Z Z'\|_2 / \|K\|_2`.
    trace_error : float
        :math:`\operatorname{tr}(K - Z Z') / \operatorname{tr}(K)`; never negative for Nystrom's map.
    largest_error : float
        The largest :math:`|k(x, z) - \psi(x) \cdot \psi(z)|`.
    effective_dimension : float
        :math:`\sum_i \lambda_i / (\lambda_i + \text{ridge})` over the eigenvalues of :math:`K`.
    n_components, n_rows : int
        Features of the map, rows of the sample.
    """

    gram_error: float
    spectral_error: float
    trace_error: float
    largest_error: float
    effective_dimension: float
    n_components: int
    n_rows: int


def map_quality(
    map: Nystroem | RandomFourierFeatures,
    X: Any,
    *,
    ridge: float = 1.0,
    n_rows: int = 1000,
    random_state: Any = 0,
) -> MapQuality:
    """How well a fitted map approximates its kernel on the rows of ``X``.

    Parameters
    ----------
    map : Nystroem or RandomFourierFeatures
        Fitted.
    X : array-like or CSR of shape (n_docs, n_features), frame, or Queries
    ridge : float
        Above 0: from which size of eigenvalue on a direction counts in ``effective_dimension``.
    n_rows : int
        At most so many rows are looked at, drawn at random.
    random_state : int, RandomState or None

    Returns
    -------
    MapQuality

    Notes
    -----
    O(n_rows^3).

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_queries(n_queries=10)
    >>> map = rw.Nystroem(300, gamma=0.1).fit(queries)  # all rows are landmarks
    >>> rw.map_quality(map, queries).gram_error < 1e-9
    True
    """
    where = "map_quality"
    if not isinstance(map, Nystroem | RandomFourierFeatures):
        raise TypeError(
            f"{where}: map must be a Nystroem or RandomFourierFeatures, got {type(map).__name__}; "
            "other maps do not say which kernel they stand for"
        )
    check_is_fitted(map, "n_components_")
    ridge = _validate.number(where, "ridge", ridge, low=0, open_low=True)
    wanted = int(_validate.number(where, "n_rows", n_rows, low=1, integer=True))
    features, names = features_of(where, X)
    features = same_features(where, map, features, names, nan=False)
    if features.shape[0] > wanted:
        chosen = check_random_state(random_state).choice(features.shape[0], wanted, replace=False)
        features = features[np.sort(chosen)]
    rows = np.ascontiguousarray(dense(features), dtype=np.float64)
    K = _kernel(where, map, rows).matrix(rows, rows)
    Z = map.transform(rows).astype(np.float64)
    with one_thread():
        away = K - Z @ Z.T
        values = np.maximum(np.linalg.eigvalsh(K), 0.0)
        errors = np.abs(np.linalg.eigvalsh(away))
    return MapQuality(
        gram_error=float(np.linalg.norm(away) / np.linalg.norm(K)),
        spectral_error=float(errors.max() / values.max()),
        trace_error=float(np.trace(away) / np.trace(K)),
        largest_error=float(np.abs(away).max()),
        effective_dimension=float((values / (values + ridge)).sum()),
        n_components=map.n_components_,
        n_rows=len(rows),
    )


def _kernel(where: str, map: Nystroem | RandomFourierFeatures, X: Any) -> Kernel:
    if isinstance(map, Nystroem):
        return map._kernel(where, X, map.gamma_)
    return checked_kernel(
        where, map.kernel, X, gamma=map.gamma_, degree=1, coef0=0.0, nu=map.nu
    )  # fmt: skip
