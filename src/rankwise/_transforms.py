"""Input transforms of networks: fitted on the training rows, one feature at a time.

A fitted transform is one float64 array, so that it can be saved; applying it maps a row to a row,
whatever else is in the batch.

============  ================================================================================
``"std"``     ``(x - mean) / deviation``
``"log1p"``   ``u = sign(x) log(1 + |x|)``, then ``"std"`` of ``u``: counts and lengths lose
              their long tails (Qin et al. 2021)
``"quantile"``  the normal score of the value's place among the training values, straight lines
              between at most 256 of them; nothing lies outside the training range
============  ================================================================================

A feature that is constant in training becomes 0. A missing value (NaN) becomes 0, which is the
training mean, or with ``"quantile"`` the middle of the scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_KNOTS = 256
_AT_ONCE = 1 << 20  # numbers converted to float64 at a time


def chunks(X: Any) -> list[slice]:
    """Slices of rows, about a million numbers each."""
    step = max(1, _AT_ONCE // X.shape[1])
    return [slice(start, start + step) for start in range(0, X.shape[0], step)]


def dense(X: Any, rows: Any) -> Floats:
    """Some rows of a dense or sparse matrix, as a dense float64 one of their own."""
    part = X[rows]
    part = part.toarray() if hasattr(part, "nnz") else part
    return np.array(part, dtype=np.float64, order="C")


def _signed_log(values: Floats) -> Floats:
    return np.copysign(np.log1p(np.abs(values)), values)


def _fit_moments(X: Any, squash: Callable[[Floats], Floats]) -> Floats:
    """Mean and one over the deviation of each feature, of shape (2, n_features)."""
    d = X.shape[1]
    count, sums, squares = np.zeros(d), np.zeros(d), np.zeros(d)
    for rows in chunks(X):
        values = squash(dense(X, rows))
        known = ~np.isnan(values)
        count += known.sum(axis=0)
        sums += np.where(known, values, 0.0).sum(axis=0)
    mean = sums / np.maximum(count, 1)
    for rows in chunks(X):
        away = squash(dense(X, rows)) - mean
        squares += np.where(np.isnan(away), 0.0, away**2).sum(axis=0)
    deviation = np.sqrt(squares / np.maximum(count, 1))
    inverse = np.zeros(d)
    varies = deviation > 1e-13 * np.abs(mean)  # below is the rounding noise of a constant
    np.divide(1.0, deviation, out=inverse, where=varies)
    return np.stack([mean, inverse])


def _fit_quantiles(X: Any, _: Any) -> Floats:
    """Values and their normal scores at up to 256 places, of shape (2, 256, n_features)."""
    from scipy.special import ndtri

    n, d = X.shape
    table = np.zeros((2, min(_KNOTS, n), d))
    columns = X.tocsc() if hasattr(X, "nnz") else X
    for j in range(d):
        column = dense(columns, (slice(None), [j]))[:, 0]
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        if len(values) < 2:
            table[0, :, j] = values[0] if len(values) else 0.0
            continue
        share = (np.cumsum(counts) - counts / 2) / counts.sum()
        if len(values) > _KNOTS:
            grid = (np.arange(_KNOTS - 1) + 0.5) / (_KNOTS - 1)
            kept = np.unique(np.r_[0, np.searchsorted(share, grid), len(values) - 1])
            kept = kept[kept < len(values)][-_KNOTS:]
            values, share = values[kept], share[kept]
        # The last place repeats, so that every feature has the same number.
        place = np.minimum(np.arange(table.shape[1]), len(values) - 1)
        table[:, :, j] = values[place], ndtri(share)[place]
    return table


def _apply_moments(values: Floats, table: Floats) -> Floats:
    scaled: Floats = (values - table[0]) * table[1]
    return scaled


def _apply_quantiles(values: Floats, table: Floats) -> Floats:
    for j in range(values.shape[1]):
        values[:, j] = np.interp(values[:, j], table[0, :, j], table[1, :, j])
    return values


_SQUASH: dict[str, Callable[[Floats], Floats]] = {"log1p": _signed_log}
_FIT: dict[str, Callable[[Any, Any], Floats]] = {
    "std": _fit_moments,
    "log1p": _fit_moments,
    "quantile": _fit_quantiles,
}
_APPLY = {"std": _apply_moments, "log1p": _apply_moments, "quantile": _apply_quantiles}
TRANSFORMS = tuple(_FIT)


def _same(values: Floats) -> Floats:
    return values


def fit_table(kind: str | None, X: Any) -> Floats:
    """What :func:`transformed` needs to know of the training rows; empty for ``None``."""
    if kind is None:
        return np.zeros((0, X.shape[1]))
    table: Floats = _FIT[kind](X, _SQUASH.get(kind, _same))
    return table


def transformed(kind: str | None, table: Floats, X: Any, rows: Any) -> Floats:
    """Some rows of ``X`` as a network sees them: dense float64 without missing values."""
    values = dense(X, rows)
    if kind is None:
        return values
    values = _APPLY[kind](_SQUASH.get(kind, _same)(values), table)
    values[np.isnan(values)] = 0.0
    return values
