"""Features in bins, as boosted trees read them: once, for any number of fits.

Trees do not look at the values of a feature but at the number of the bin each value falls into.
Putting a training set into bins takes as long as growing some ten trees, so a search over the
parameters of :class:`rankwise.TreeRanker` does it once and passes the result in place of the
queries. :func:`rankwise.choose` does so by itself.

>>> import rankwise as rw
>>> queries = rw.make_queries(n_queries=200)
>>> train = rw.bin_queries(queries.take(range(100)))
>>> valid = rw.bin_queries(queries.take(range(100, 200)), like=train)
>>> for leaves in (4, 8, 16):
...     ranker = rw.TreeRanker(n_estimators=20, num_leaves=leaves).fit(train, eval_set=valid)

The edges of the bins are cut at evenly spaced places of the sorted values of each feature, of all
documents, so they do not depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from rankwise import _core, _validate
from rankwise._inputs import column_of
from rankwise.data import Queries, canonical

# Places of the sorted values of a feature that its bins are cut from, for each bin: a bin holds
# its share of the documents to within a sixteenth.
_PLACES_PER_BIN = 16

# A dense matrix is handed over by columns, which halves the time, when its copy (a value and a row
# number each) stays below this many bytes; by rows, without a copy, above.
_COPY_BYTES = 2**30


@dataclass(frozen=True, eq=False, repr=False)
class BinnedQueries:
    """Judged queries with their features in bins; made by :func:`bin_queries`.

    Attributes
    ----------
    queries : Queries
        The lists, in the canonical order in which trees are grown.
    max_bin : int
        Most bins of a feature.
    categorical : tuple of int
        Features whose values are categories.
    like : BinnedQueries or None
        The queries whose bins these use.
    data : lightgbm.Dataset
        The engine's copy; it is never changed.
    """

    queries: Queries
    max_bin: int
    categorical: tuple[int, ...]
    like: BinnedQueries | None
    data: lgb.Dataset

    def __repr__(self) -> str:
        return f"BinnedQueries({self.queries!r}, max_bin={self.max_bin})"

    def __len__(self) -> int:
        return self.queries.n_queries

    def __reduce__(self) -> Any:
        return _again, (self.queries, self.max_bin, self.categorical, self.like)


def bin_queries(
    queries: Queries,
    *,
    max_bin: int = 255,
    categorical: Sequence[int | str] | None = None,
    like: BinnedQueries | None = None,
    n_jobs: int | None = None,
) -> BinnedQueries:
    """Put the features of judged queries into bins, for several fits of tree rankers.

    Parameters
    ----------
    queries : Queries
        With labels (NaN where there is none); weights and pairs are kept.
    max_bin : int
        Most bins of a feature, at least 2. Missing values have a bin of their own.
    categorical : sequence of int or str, optional
        Features whose values are categories: their positions, or their names where the features
        have names. Values must be integers of at least 0, or missing.
    like : BinnedQueries, optional
        Training queries whose bins are used: give it for validation queries. ``max_bin`` and
        ``categorical`` are then those of ``like``.
    n_jobs : int, optional
        Threads; -1 uses all, None one per million feature values. The bins do not depend on it.

    Returns
    -------
    BinnedQueries

    Raises
    ------
    TypeError
        If ``queries`` is no Queries.
    ValueError
        For negative labels, infinite features, a feature that does not exist, or categories that
        are no integers of at least 0.

    Notes
    -----
    Each feature is sorted, and up to ``16 max_bin`` evenly spaced places of the sorted column,
    both ends among them, are what LightGBM cuts into bins of about equal size. Time is
    ``O(n_features n_docs log n_docs)``, mostly spent finding the bin of each value. A category
    that none of those places hits counts as missing.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.bin_queries(rw.make_queries(n_queries=50), max_bin=63)
    BinnedQueries(Queries(50 queries, 1500 documents, 6 features, dense float64), max_bin=63)
    """
    where = "bin_queries"
    if not isinstance(queries, Queries):
        raise TypeError(
            f"{where}: queries must be a Queries, got {type(queries).__name__}; "
            "make one by Queries.from_arrays(X, y, qid)"
        )
    _validate.labels(where, queries.y)
    features = _validate.matrix(
        where, queries.X, n_features=None if like is None else like.queries.n_features
    )
    if like is not None:
        chosen, max_bin = like.categorical, like.max_bin
    else:
        names = None if queries.feature_names is None else list(queries.feature_names)
        chosen = feature_numbers(where, "categorical", categorical, queries.n_features, names)
        max_bin = int(_validate.number(where, "max_bin", max_bin, low=2, integer=True))
    threads = n_threads(n_jobs, queries.n_docs * queries.n_features)
    lists = canonical(replace(queries, X=features, order=None))
    return in_bins(where, lists, max_bin, chosen, like, threads)


def in_bins(
    where: str,
    queries: Queries,
    max_bin: int,
    categorical: tuple[int, ...],
    like: BinnedQueries | None,
    threads: int,
) -> BinnedQueries:
    """Checked queries in canonical order, in bins."""
    _check_categories(where, queries.X, categorical)
    params = {**dataset_params(max_bin), "num_threads": threads, "verbosity": -1}
    edges = _edges(queries.X, max_bin, categorical, params) if like is None else like.data
    columns = _by_columns(queries.X)
    data = lgb.Dataset(
        columns, label=np.nan_to_num(queries.y), reference=edges, params=params
    ).construct()
    return BinnedQueries(queries, max_bin, categorical, like, data)


def dataset_params(max_bin: int) -> dict[str, Any]:
    """What decides LightGBM's bins; the same words must be given to every booster on them."""
    return {
        "max_bin": max_bin,
        # The columns of the sample are sorted one by one: its rows are no documents, and say
        # nothing about which features could share a column.
        "enable_bundle": False,
        # Equal data must give equal bins for every setting of min_child_samples.
        "feature_pre_filter": False,
        "bin_construct_sample_cnt": 2**31 - 1,
    }


def n_threads(n_jobs: int | None, n_values: int) -> int:
    """Number of threads; 0 is all that OpenMP offers."""
    if n_jobs is None:
        return max(1, min(_core.max_threads(), n_values // _VALUES_PER_THREAD))
    return 0 if n_jobs == -1 else n_jobs


# Values of the features per thread when n_jobs is None: below, waking a thread costs more than it
# brings, and much more on a machine that is busy with other work.
_VALUES_PER_THREAD = 1_000_000


def feature_numbers(
    where: str,
    option: str,
    chosen: Sequence[int | str] | None,
    n_features: int,
    names: Sequence[str] | None,
) -> tuple[int, ...]:
    """The positions of features that a user gave by position or name, in rising order."""
    if chosen is None:
        return ()
    if isinstance(chosen, str | bytes) or not hasattr(chosen, "__len__"):
        raise TypeError(
            f"{where}: {option} must be a sequence of feature positions or names, got {chosen!r}"
        )
    found = {feature_number(where, option, one, n_features, names) for one in chosen}
    if len(found) < len(chosen):
        raise ValueError(f"{where}: {option} must name each feature once, got {list(chosen)!r}")
    return tuple(sorted(found))


def feature_number(
    where: str, option: str, one: object, n_features: int, names: Sequence[str] | None
) -> int:
    """The position of a feature that a user gave by position or name."""
    if isinstance(one, str):
        if names is None:
            raise ValueError(
                f"{where}: {option} must hold positions where the features have no names, "
                f"got {one!r}; pass a frame, or Queries with feature_names"
            )
        if one not in names:
            raise _validate.unknown(f"feature in {option}", one, names)
        return list(names).index(one)
    if isinstance(one, bool) or not isinstance(one, int | np.integer):
        raise TypeError(f"{where}: {option} must hold feature positions or names, got {one!r}")
    if not 0 <= one < n_features:
        raise ValueError(
            f"{where}: {option} must hold positions from 0 to {n_features - 1}, got {one}"
        )
    return int(one)


def _again(
    queries: Queries, max_bin: int, categorical: tuple[int, ...], like: BinnedQueries | None
) -> BinnedQueries:
    """Bins do not depend on threads, so a copy (joblib's, say) makes its own."""
    return in_bins("bin_queries", queries, max_bin, categorical, like, 1)


def _check_categories(where: str, X: Any, categorical: tuple[int, ...]) -> None:
    for j in categorical:
        values = column_of(X, j)
        known = values[~np.isnan(values)]
        bad = np.flatnonzero((known < 0) | (known != np.floor(known)) | (known >= 2**31))
        if len(bad):
            raise ValueError(
                f"{where}: categorical feature {j} must hold integers from 0 below 2**31, or NaN, got "
                f"{known[bad[0]]:g}; number the categories from 0, most frequent first"
            )


def _edges(
    X: Any, max_bin: int, categorical: tuple[int, ...], params: dict[str, Any]
) -> lgb.Dataset:
    """A small set whose columns are evenly spaced places of the sorted columns of ``X``."""
    n_docs = X.shape[0]
    n_places = min(n_docs, _PLACES_PER_BIN * max_bin + 1)
    places = np.arange(n_places) * (n_docs - 1) // max(n_places - 1, 1)
    pick = _places_of_sparse if hasattr(X, "nnz") else _places_of_dense
    sample = pick(X, places)
    return lgb.Dataset(sample, params=params, categorical_feature=list(categorical)).construct()


# Columns taken out of a matrix of rows at once: a cache line of float32.
_BLOCK = 16


def _places_of_dense(X: NDArray[Any], places: NDArray[np.int64]) -> NDArray[Any]:
    sample = np.empty((len(places), X.shape[1]), dtype=X.dtype)
    for first in range(0, X.shape[1], _BLOCK):
        block = X[:, first : first + _BLOCK].T.copy()
        block.sort(axis=1)  # NaN last
        sample[:, first : first + _BLOCK] = block[:, places].T
    return sample


def _places_of_sparse(X: Any, places: NDArray[np.int64]) -> Any:
    import scipy.sparse as sp

    n_docs, n_features = X.shape
    by_column = X.tocsc()
    values, rows, counts = [], [], []
    for j in range(n_features):
        stored = np.sort(by_column.data[by_column.indptr[j] : by_column.indptr[j + 1]])
        n_negative = int(np.searchsorted(stored, 0.0))
        n_zero = n_docs - len(stored)
        # The zeros that are not stored lie between the negative values and the others.
        found = (places < n_negative) | (places >= n_negative + n_zero)
        at = np.where(places < n_negative, places, places - n_zero)[found]
        values.append(stored[at])
        rows.append(np.flatnonzero(found))
        counts.append(len(at))
    starts = np.concatenate([[0], np.cumsum(counts)])
    return sp.csc_matrix(
        (np.concatenate(values), np.concatenate(rows), starts), shape=(len(places), n_features)
    )


def _by_columns(X: Any) -> Any:
    """The form in which LightGBM reads a matrix fastest, where the copy is not too large."""
    n_docs, n_features = X.shape
    if hasattr(X, "nnz"):
        return X.tocsc()
    if X.size * (X.itemsize + 4) > _COPY_BYTES:
        return X
    import scipy.sparse as sp

    rows = np.tile(np.arange(n_docs, dtype=np.int32), n_features)
    starts = np.arange(n_features + 1, dtype=np.int32) * np.int32(n_docs)
    return sp.csc_matrix((X.T.ravel(), rows, starts), shape=X.shape)
