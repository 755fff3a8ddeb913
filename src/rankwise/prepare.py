"""Preparing judged lists for learning: scaling inside a query, splitting by query.

Features of different queries are often not comparable: a BM25 score of 12 is high for one query and
low for the next. :class:`QueryScaler` brings each feature of each query to one scale, as the
``QueryLevelNorm`` files of LETOR did. :class:`QueryKFold` splits rows for cross-validation so that
all documents of a query stay together; a query cut in two would let a ranker be tested on a list
of which it has seen a part.

Both take ``qid`` and request it from scikit-learn's metadata routing by themselves. Routing is off
until the user switches it on:

>>> import sklearn, rankwise as rw
>>> from sklearn.model_selection import cross_validate
>>> from sklearn.pipeline import make_pipeline
>>> queries = rw.make_queries(n_queries=30)
>>> model = make_pipeline(rw.QueryScaler(), rw.FeatureRanker())
>>> with sklearn.config_context(enable_metadata_routing=True):
...     result = cross_validate(model, queries.X, queries.y, cv=rw.QueryKFold(3),
...                             params={"qid": queries.qid})
>>> result["test_score"].shape
(3,)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.validation import check_is_fitted

from rankwise import _validate
from rankwise._inputs import features_of, groups_of, note_features, same_features, with_features
from rankwise.data import Groups, Queries, row_hashes

# Rows scaled at a time: small enough to stay in the cache, large enough to forget the overhead.
_BLOCK = 4096


class QueryScaler(  # type: ignore[call-arg]
    OneToOneFeatureMixin, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    r"""Brings each feature to one scale inside each query.

    ``method="minmax"``: :math:`(x - \min_q x) / (\max_q x - \min_q x)`, from 0 to 1, as LETOR's
    ``QueryLevelNorm``; ``method="zscore"``: :math:`(x - \bar x_q) / s_q` with the standard
    deviation :math:`s_q` over the query (divided by n, not n - 1). A feature that is constant in a
    query becomes 0 there. Missing values (NaN) are left out of the minimum, maximum, mean and
    deviation, and stay missing.

    Nothing is learned from the training queries: ``fit`` only notes the features.

    Parameters
    ----------
    method : {"minmax", "zscore"}, default="minmax"

    Notes
    -----
    float32 stays float32; the arithmetic is in float64. A frame comes back as a frame of the same
    kind, with its ``qid`` column; a :class:`~rankwise.Queries` comes back as a Queries. The result
    for a document does not depend on the order of the rows, to the last bit.

    CSR matrices can be scaled by ``"minmax"`` as long as zeros stay zeros, that is, where no
    feature with a negative value in a query has a zero there too; everything else would fill the
    matrix and is refused.

    O(n_docs n_features); for ``"zscore"`` also a sort of the rows.

    Examples
    --------
    >>> import rankwise as rw
    >>> X = [[1.0, 5.0], [3.0, 5.0], [2.0, 0.0], [10.0, 4.0]]
    >>> rw.QueryScaler().fit_transform(X, qid=["a", "a", "a", "b"])
    array([[0. , 1. ],
           [1. , 1. ],
           [0.5, 0. ],
           [0. , 0. ]])
    """

    # Requested by class attribute, so that routing needs no set_fit_request.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"qid": True}

    n_features_in_: int

    def __init__(self, method: str = "minmax") -> None:
        self.method = method

    def fit(self, X: Any, y: object = None, *, qid: ArrayLike | Groups | None = None) -> Self:
        """Note the features; ``y`` is ignored and ``qid`` only checked."""
        self._checked("fit", X, qid, fitting=True)
        return self

    def transform(self, X: Any, *, qid: ArrayLike | Groups | None = None) -> Any:
        """The features on one scale inside each query.

        Parameters
        ----------
        X : array-like, CSR matrix or frame of shape (n_docs, n_features), or Queries
        qid : array-like of shape (n_docs,)
            Left out when ``X`` is a frame with a column ``qid``. A Queries keeps its own ids
            whatever is passed: Pipeline's ``transform_input`` transforms validation queries with
            the ``qid`` of the training rows.

        Returns
        -------
        The same kind of container as ``X``.
        """
        check_is_fitted(self, "n_features_in_")
        qid = None if isinstance(X, Queries) else qid
        return self._scaled(X, *self._checked("transform", X, qid))

    def fit_transform(
        self, X: Any, y: object = None, *, qid: ArrayLike | Groups | None = None
    ) -> Any:
        """``fit(X, qid=qid).transform(X, qid=qid)``, with one look at the data."""
        return self._scaled(X, *self._checked("fit_transform", X, qid, fitting=True))

    def _checked(
        self, method: str, X: Any, qid: Any, *, fitting: bool = False
    ) -> tuple[Any, Groups]:
        where = f"{type(self).__name__}.{method}"
        _validate.choice(type(self).__name__, "method", self.method, _METHODS)
        features, names = features_of(where, X)
        features = (
            _validate.matrix(where, features)
            if fitting
            else same_features(where, self, features, names)
        )
        if hasattr(features, "nnz") and self.method != "minmax":
            raise TypeError(
                f"{where}: method={self.method!r} would fill a sparse matrix; pass X.toarray() "
                "or use method='minmax', which keeps the zeros"
            )
        groups = groups_of(where, X, qid, features.shape[0])
        if fitting:
            note_features(self, features.shape[1], names)
        return features, groups

    def _scaled(self, X: Any, features: Any, groups: Groups) -> Any:
        if hasattr(features, "nnz"):
            scaled = _scale_sparse(type(self).__name__, features, groups)
        else:
            scaled = _scale_dense(features, groups, _METHODS[self.method])
        if isinstance(X, Queries):
            return X.with_features(scaled)
        return with_features(X, scaled)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self.method == "minmax"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _minmax(x: NDArray[np.float64], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
    low = np.fmin.reduceat(x, starts)
    high = np.fmax.reduceat(x, starts)
    x -= np.repeat(low, sizes, axis=0)
    width = high - low
    width[width == 0] = 1.0
    x /= np.repeat(width, sizes, axis=0)


def _zscore(x: NDArray[np.float64], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
    # The z-score of values between 0 and 1 is the same, and no square can overflow or vanish.
    _minmax(x, starts, sizes)
    known = ~np.isnan(x)
    n_known = np.maximum(np.add.reduceat(known, starts, dtype=np.int64), 1)
    mean = np.add.reduceat(np.where(known, x, 0.0), starts) / n_known
    x -= np.repeat(mean, sizes, axis=0)
    variance = np.add.reduceat(np.where(known, x * x, 0.0), starts) / n_known
    variance[variance == 0] = 1.0
    x /= np.repeat(np.sqrt(variance), sizes, axis=0)


_METHODS = {"minmax": _minmax, "zscore": _zscore}


def _scale_dense(X: NDArray[Any], groups: Groups, method: Any) -> NDArray[Any]:
    out = np.empty_like(X)
    order = groups.order
    if method is _zscore:
        # Sums depend on the order of their terms: take the rows in one that storage cannot change.
        order = np.lexsort([row_hashes(X), groups.spread(np.arange(len(groups)))])
    # Values beyond half the largest double could overflow in a difference.
    high, low = float(np.fmax.reduce(X, axis=None)), float(np.fmin.reduce(X, axis=None))
    factor = 0.5 if high > 4e307 or low < -4e307 else 1.0
    first = 0
    for last in _blocks(groups.offsets):
        begin, end = int(groups.offsets[first]), int(groups.offsets[last])
        rows: Any = slice(begin, end) if order is None else order[begin:end]
        x = X[rows].astype(np.float64) * factor
        method(x, groups.offsets[first:last] - begin, groups.sizes[first:last])
        out[rows] = x
        first = last
    return out


def _blocks(offsets: NDArray[np.int64]) -> Iterator[int]:
    """Ends of runs of whole queries of about ``_BLOCK`` rows."""
    first, n_queries = 0, len(offsets) - 1
    while first < n_queries:
        last = int(np.searchsorted(offsets, offsets[first] + _BLOCK, side="right")) - 1
        first = min(max(last, first + 1), n_queries)
        yield first


def _scale_sparse(name: str, X: Any, groups: Groups) -> Any:
    n_features = X.shape[1]
    query = groups.spread(np.arange(len(groups), dtype=np.int64))
    cell = np.repeat(query, np.diff(X.indptr)) * n_features + X.indices
    order = np.argsort(cell, kind="stable")
    sorted_cells = cell[order]
    starts = np.flatnonzero(np.diff(sorted_cells, prepend=-1))
    values = X.data[order].astype(np.float64)
    counts = np.diff(np.append(starts, len(values)))
    low, high = np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)
    # Where a query has more documents than stored values, the others are zeros.
    with_zeros = counts < groups.sizes[sorted_cells[starts] // n_features]
    spoiled = np.flatnonzero(with_zeros & (low < 0))
    if len(spoiled):
        column = int(sorted_cells[starts[spoiled[0]]] % n_features)
        raise ValueError(
            f"{name}: a sparse feature with zeros must not be negative, since its zeros would not "
            f"stay zeros, got {low[spoiled[0]]:g} in column {column}; pass X.toarray()"
        )
    low[with_zeros] = 0.0
    high = np.where(with_zeros, np.fmax(high, 0.0), high)
    width = high - low
    width[width == 0] = 1.0
    scaled = (values - np.repeat(low, counts)) / np.repeat(width, counts)
    out = X.copy()
    out.data[order] = scaled
    out.eliminate_zeros()
    return out


class QueryKFold(BaseCrossValidator):
    """Splits rows into folds of whole queries.

    Each fold tests on about ``n_queries / n_splits`` queries; their numbers differ by at most one.
    Queries, not documents, are balanced, because each query counts once in a mean.

    Parameters
    ----------
    n_splits : int, default=5
    shuffle : bool, default=True
        Draw the queries of a fold at random. Which query lands in which fold then depends on the
        set of query ids and the seed, not on the order of the rows. Otherwise folds are runs of
        consecutive queries, in order of first appearance.
    random_state : int, Generator or None, default=0
        Seed of the draw.

    Notes
    -----
    With scikit-learn's metadata routing switched on, ``qid`` reaches :meth:`split` by itself:
    ``cross_validate(ranker, X, y, cv=QueryKFold(), params={"qid": qid})``. Without routing, pass
    ``groups=qid``, or a frame with a column ``qid``.

    Examples
    --------
    >>> import rankwise as rw
    >>> qid = ["a", "b", "a", "c", "b", "d"]
    >>> for train, test in rw.QueryKFold(2, shuffle=False).split(qid, qid=qid):
    ...     print(train, test)
    [3 5] [0 1 2 4]
    [0 1 2 4] [3 5]
    """

    __metadata_request__split: ClassVar[dict[str, bool]] = {"qid": True, "groups": True}

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = True,
        random_state: int | np.random.Generator | None = 0,
    ) -> None:
        _validate.number("QueryKFold", "n_splits", n_splits, low=2, integer=True)
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(
        self, X: Any = None, y: Any = None, groups: Any = None, *, qid: Any = None
    ) -> int:
        """The number of folds."""
        return self.n_splits

    def split(
        self,
        X: Any,
        y: Any = None,
        groups: ArrayLike | Groups | None = None,
        *,
        qid: ArrayLike | Groups | None = None,
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield ``(train, test)`` row numbers, in input order, of each fold.

        Parameters
        ----------
        X : array-like of shape (n_docs, ...), frame or Queries
        y : ignored
        groups : array-like of shape (n_docs,), optional
            The query ids under scikit-learn's name for them.
        qid : array-like of shape (n_docs,), optional
            The query ids, unless ``X`` holds them.
        """
        where = f"{type(self).__name__}.split"
        if qid is not None and groups is not None:
            raise TypeError(
                f"{where}: the query ids must be given once, got qid and groups; leave groups out"
            )
        n_docs = X.n_docs if isinstance(X, Queries) else _n_rows(X)
        rows = groups_of(where, X, groups if qid is None else qid, n_docs)
        n_queries = len(rows)
        if n_queries < self.n_splits:
            raise ValueError(
                f"{where}: n_splits must be at most the number of queries, "
                f"got {self.n_splits} for {n_queries} queries"
            )
        fold = np.empty(n_queries, np.int64)
        fold_of_place = np.arange(n_queries) * self.n_splits // n_queries
        if self.shuffle:
            by_id = np.argsort(rows.ids, kind="stable")
            fold[np.random.default_rng(self.random_state).permutation(by_id)] = fold_of_place
        else:
            fold[:] = fold_of_place
        fold_of_row = rows.spread(fold)
        for i in range(self.n_splits):
            tested = fold_of_row == i
            yield np.flatnonzero(~tested), np.flatnonzero(tested)


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
