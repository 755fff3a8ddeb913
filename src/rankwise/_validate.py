"""Checks of user input, and every sentence that reports a bad one.

All messages have one form: **where: what must hold, what came; the remedy.** A check returns
the value in the form the kernels take (contiguous, float64 or int64) or raises ``ValueError`` or
``TypeError``. Nothing here modifies its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def unknown(kind: str, name: object, known: Iterable[str]) -> ValueError:
    """The error for a name that is not in a list, with the closest known one."""
    import difflib

    names = sorted(known)
    lower = {known_name.lower(): known_name for known_name in names}
    close = difflib.get_close_matches(str(name).lower(), lower, n=1, cutoff=0.5)
    hint = f" (did you mean {lower[close[0]]!r}?)" if close else ""
    return ValueError(f"unknown {kind} {name!r}; known: {', '.join(names)}{hint}")


def vector(where: str, name: str, values: ArrayLike) -> Floats:
    """A one-dimensional contiguous float64 array; integers and booleans are converted."""
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"{where}: {name} must be one-dimensional, one value per document, "
            f"got shape {array.shape}"
        )
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{where}: {name} must be numbers, got {_example(array)}") from None
    return np.ascontiguousarray(array, dtype=np.float64)


def same_length(where: str, **columns: Any) -> int:
    """Checks that all columns have the same number of rows and returns it."""
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        names = list(lengths)
        raise ValueError(
            f"{where}: {_and(names)} must have the same length, "
            f"got {_and([str(lengths[n]) for n in names])}"
        )
    return next(iter(lengths.values()))


def scores(where: str, y_score: ArrayLike) -> Floats:
    """Scores: finite or minus infinity ("not retrieved"), never NaN."""
    array = vector(where, "y_score", y_score)
    # A sum is NaN or +inf whenever an entry is; -inf alone is allowed, so look closer only then.
    with np.errstate(invalid="ignore", over="ignore"):
        total = array.sum()
    if np.isnan(total) or total == np.inf or total == -np.inf:
        bad = np.flatnonzero(np.isnan(array) | (array == np.inf))
        if len(bad):
            raise ValueError(
                f"{where}: y_score must not hold NaN or +inf, got {array[bad[0]]} at row "
                f"{bad[0]} ({len(bad)} such rows); a document that was not retrieved scores -inf"
            )
    return array


def labels(where: str, y_true: ArrayLike, name: str = "y_true") -> Floats:
    """Relevance labels: nonnegative and finite; NaN marks an unjudged document."""
    array = vector(where, name, y_true)
    if len(array) == 0:
        return array
    low, high = np.fmin.reduce(array), np.fmax.reduce(array)
    if low < 0 or high == np.inf:
        bad = np.flatnonzero((array < 0) | (array == np.inf))
        raise ValueError(
            f"{where}: {name} must be relevance labels of at least 0 and finite, "
            f"got {array[bad[0]]:g} at row {bad[0]} ({len(bad)} such rows)"
        )
    return array


def weights(where: str, sample_weight: ArrayLike | None, n_docs: int) -> Floats | None:
    """Document weights: nonnegative and finite, one per document, or None."""
    if sample_weight is None:
        return None
    array = vector(where, "sample_weight", sample_weight)
    if len(array) != n_docs:
        raise ValueError(
            f"{where}: sample_weight must hold one weight per document, "
            f"got {len(array)} for {n_docs} documents"
        )
    bad = np.flatnonzero(~(array >= 0) | (array == np.inf))
    if len(bad):
        raise ValueError(
            f"{where}: sample_weight must be at least 0 and finite, "
            f"got {array[bad[0]]} at row {bad[0]}"
        )
    return array


def offsets(where: str, values: ArrayLike, n_docs: int) -> NDArray[np.int64]:
    """Offsets of queries: integers from 0, never falling, up to the number of documents."""
    array = np.asarray(values)
    ok = array.ndim == 1 and len(array) > 0 and array.dtype.kind in "iu"
    if not ok or array[0] != 0 or array[-1] != n_docs or (array[1:] < array[:-1]).any():
        raise ValueError(
            f"{where}: offsets must be integers that start at 0, never fall and end at the number "
            f"of documents, {n_docs}, got {_example(array)}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def rows(where: str, name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Row numbers: integers of at least 0."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"{where}: {name} must be a list of row numbers, integers from 0, "
            f"got {_example(array)} of shape {array.shape}"
        )
    array = np.ascontiguousarray(array, dtype=np.int64)
    bad = np.flatnonzero(array < 0)
    if len(bad):
        raise ValueError(
            f"{where}: {name} must hold row numbers of at least 0, got {array[bad[0]]} at {bad[0]}"
        )
    return array


def pair_column(where: str, name: str, values: ArrayLike | None, high: float) -> Floats | None:
    """Weights or chances of pairs: finite numbers from 0 to ``high``, or None."""
    if values is None:
        return None
    array = vector(where, name, values)
    bad = np.flatnonzero(~((array >= 0) & (array <= high)) | np.isinf(array))
    if len(bad):
        bounds = "at least 0 and finite" if np.isinf(high) else f"between 0 and {high:g}"
        raise ValueError(f"{where}: {name} must be {bounds}, got {array[bad[0]]} at pair {bad[0]}")
    return array


def label_table(where: str, values: ArrayLike) -> Floats:
    """Labels of several assessors, one column each; NaN where there is no judgement."""
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{where}: labels must be numbers, one column per assessor") from None
    if table.ndim != 2:
        raise ValueError(
            f"{where}: labels must be two-dimensional, (n_docs, n_assessors), "
            f"got shape {table.shape}"
        )
    if np.isinf(table).any() or (table < 0).any():
        row = int(np.flatnonzero((np.isinf(table) | (table < 0)).any(axis=1))[0])
        raise ValueError(
            f"{where}: labels must be at least 0 and finite, got {table[row]} at row {row}"
        )
    return np.ascontiguousarray(table)


def patience(where: str, rounds: object, valid: object) -> int | None:
    """Rounds without a better validation metric after which a learner stops, or None."""
    if rounds is None:
        return None
    checked = int(number(where, "early_stopping_rounds", rounds, low=1, integer=True))
    if valid is None:
        raise ValueError(
            f"{where}: early_stopping_rounds={rounds} needs validation queries; "
            "pass eval_set=, or leave it None"
        )
    return checked


def depth(where: str, k: object) -> int:
    """A cutoff as the kernels take it: a positive integer, or -1 for the whole list."""
    if k is None:
        return -1
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"{where}: k must be a positive integer or None, got {k!r}")
    return int(k)


def choice(where: str, name: str, value: object, known: Iterable[str]) -> str:
    """One of a few words."""
    options = list(known)
    if value not in options:
        raise ValueError(
            f"{where}: {name} must be one of {', '.join(map(repr, options))}, got {value!r}"
        )
    return str(value)


def number(
    where: str,
    name: str,
    value: object,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    integer: bool = False,
) -> float:
    """A finite number inside a range."""
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    if (
        isinstance(value, kinds)
        and not isinstance(value, bool)
        and np.isfinite(value)
        and (value > low if open_low else value >= low)
        and value <= high
    ):
        return int(value) if integer else float(value)
    bounds = []
    if np.isfinite(low):
        bounds.append(f"{'above' if open_low else 'of at least'} {low:g}")
    if np.isfinite(high):
        bounds.append(f"at most {high:g}")
    kind = " ".join(["an integer" if integer else "a number", " and ".join(bounds)]).strip()
    raise ValueError(f"{where}: {name} must be {kind}, got {value!r}")


def matrix(where: str, X: Any, *, n_features: int | None = None, nan: bool = True) -> Any:
    """Features as a C-contiguous float32/float64 matrix or a canonical CSR one.

    NaN means missing and stays where ``nan`` allows it; infinite values are refused.
    """
    if hasattr(X, "tocsr") and hasattr(X, "nnz"):
        X = _csr(where, X)
        values = X.data
    else:
        X = _dense(where, X)
        values = X
    if X.shape[1] == 0:
        raise ValueError(
            f"{where}: X must have at least one feature, got 0 feature(s) (shape={X.shape}) "
            "while a minimum of 1 is required."
        )
    if X.shape[0] == 0:
        raise ValueError(
            f"{where}: X must have at least one document, got 0 sample(s) (shape={X.shape}) "
            "while a minimum of 1 is required."
        )
    # A sum is finite only if all terms are, and costs one pass; look closer only otherwise.
    with np.errstate(all="ignore"):
        total = values.sum(dtype=np.float64)
    if not np.isfinite(total):
        if np.isinf(values).any():
            raise ValueError(
                f"{where}: X must not hold infinity; clip the values or mark them as NaN"
            )
        if not nan and np.isnan(values).any():
            raise ValueError(
                f"{where}: X must not hold NaN, since this ranker has no rule for missing values; "
                "fill them in first, for example with sklearn.impute.SimpleImputer"
            )
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(
            f"{where}: X has {X.shape[1]} features, but {where.split('.')[0]} is expecting "
            f"{n_features} features as input, the number it was fitted with"
        )
    return X


def _csr(where: str, X: Any) -> Any:
    import scipy.sparse as sp

    if X.dtype.kind not in "biuf":
        raise ValueError(f"{where}: X must be real. Complex data not supported, got {X.dtype}")
    X = sp.csr_matrix(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _dense(where: str, X: Any) -> NDArray[Any]:
    if hasattr(X, "nnz"):
        raise TypeError(
            f"{where}: a sparse X must be convertible to CSR, got {type(X).__name__}; "
            "pass X.tocsr()"
        )
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"{where}: X must be two-dimensional, (n_docs, n_features), got shape {X.shape}. "
            "Reshape your data: X.reshape(-1, 1) for a single feature, "
            "X.reshape(1, -1) for a single document"
        )
    if X.dtype.kind == "c":
        raise ValueError(f"{where}: X must be real. Complex data not supported, got {X.dtype}")
    if X.dtype not in (np.float32, np.float64):
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as e:
            kind = TypeError if isinstance(e, TypeError) else ValueError
            raise kind(f"{where}: X must be numbers, got {_example(X)}: {e}") from None
    return np.ascontiguousarray(X)


def _example(array: NDArray[Any]) -> str:
    flat = array.ravel()
    return f"{flat[0]!r} ({array.dtype})" if flat.size else str(array.dtype)


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def per_query(where: str, name: str, values: ArrayLike) -> Floats:
    """Values of a metric, one per query: finite, or NaN for a query the metric skips."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(
            f"{where}: {name} must be one-dimensional, one value per query, got shape {array.shape}"
        )
    array = vector(where, name, array)
    bad = np.flatnonzero(np.isinf(array))
    if len(bad):
        raise ValueError(
            f"{where}: {name} must be finite or NaN (a skipped query), "
            f"got {array[bad[0]]} at query {bad[0]}"
        )
    return array


def p_values(where: str, values: ArrayLike) -> Floats:
    """Probabilities between 0 and 1; NaN where there was no test."""
    array = per_query(where, "p_values", values)
    bad = np.flatnonzero((array < 0) | (array > 1))
    if len(bad):
        raise ValueError(
            f"{where}: p_values must lie between 0 and 1, got {array[bad[0]]:g} at test {bad[0]}"
        )
    return array


def fraction(where: str, name: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    if not isinstance(value, float | np.floating) or not 0 < value < 1:
        raise ValueError(f"{where}: {name} must be a number between 0 and 1, got {value!r}")
    return float(value)
