"""Judged lists as flat columns and offsets.

A set of query lists is a feature matrix ``X``, a label vector ``y`` and ``offsets``: the documents
of query ``i`` are the rows ``offsets[i]:offsets[i+1]``. Public calls take ``qid``, one id per row,
in any order and of any type; :func:`group_rows` turns it into offsets once, at the door.

>>> import rankwise as rw
>>> rw.group_rows(["b", "a", "b"])
Groups(2 queries, 3 documents)
>>> rw.group_rows(["b", "a", "b"]).order
array([0, 2, 1])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _validate


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """Which rows belong to which query.

    Attributes
    ----------
    offsets : int64 array of shape (n_queries + 1,)
        Query ``i`` owns the positions ``offsets[i]:offsets[i+1]`` of the grouped order.
    ids : array of shape (n_queries,)
        The query ids, in order of first appearance.
    order : int64 array of shape (n_docs,) or None
        ``column[order]`` is grouped by query, rows of one query in input order. None when the
        rows already are.
    docs_descending : bool
        True when the documents of each query are stored by descending document id, as
        :func:`rankwise.join` leaves them; ``ties="trec"`` then needs no document ids.
    """

    offsets: NDArray[np.int64]
    ids: NDArray[Any]
    order: NDArray[np.int64] | None = None
    docs_descending: bool = False

    @property
    def n_docs(self) -> int:
        return int(self.offsets[-1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Documents per query."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"Groups({len(self)} queries, {self.n_docs} documents)"

    def gather(self, column: Any) -> Any:
        """The rows of a column in grouped order."""
        return column if self.order is None else column[self.order]

    def scatter(self, column: NDArray[Any]) -> NDArray[Any]:
        """A column in grouped order back in input order."""
        if self.order is None:
            return column
        out = np.empty_like(column)
        out[self.order] = column
        return out

    def spread(self, per_query: NDArray[Any]) -> NDArray[Any]:
        """One value per query, repeated for each of its rows, in input order."""
        return self.scatter(np.repeat(per_query, self.sizes))


def group_rows(qid: ArrayLike | Groups, *, where: str = "group_rows") -> Groups:
    """Groups of rows from one query id per row, in any order and of any hashable type.

    Parameters
    ----------
    qid : array-like of shape (n_docs,), or Groups
        Integers, strings, or anything NumPy can compare; a column of a pandas, polars or pyarrow
        frame. ``Groups`` pass through, so that a grouping made once can be used for many calls.

    Returns
    -------
    Groups

    Raises
    ------
    ValueError
        If an id is missing (NaN, NaT, None or a null of a frame).
    TypeError
        If ids of several types cannot be told apart once they are written as text.

    Notes
    -----
    O(n) when the rows of each query are contiguous, O(n log n) otherwise.

    Examples
    --------
    >>> import rankwise as rw
    >>> groups = rw.group_rows(["cat", "dog", "cat"])
    >>> groups.ids, groups.offsets
    (array(['cat', 'dog'], dtype='<U3'), array([0, 2, 3]))
    """
    if isinstance(qid, Groups):
        return qid
    ids = np.asarray(qid)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1:
        raise ValueError(f"{where}: qid must be one id per document, got shape {ids.shape}")
    n = len(ids)
    if n == 0:
        return Groups(np.zeros(1, np.int64), ids)
    if ids.dtype.kind == "O":
        ids = _uniform_ids(ids, where)
    if ids.dtype.kind in "fcmM":
        missing = np.isnat(ids) if ids.dtype.kind in "mM" else np.isnan(ids)
        if missing.any():
            row = int(np.argmax(missing))
            raise ValueError(f"{where}: qid must not be missing, got {ids[row]} at row {row}")
    starts = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    starts = np.concatenate([np.zeros(1, np.int64), starts])
    firsts = ids[starts]
    unique, first_run, run_of = np.unique(firsts, return_index=True, return_inverse=True)
    if len(unique) == len(firsts):
        return Groups(np.append(starts, n), firsts)
    # Number the ids by first appearance, then sort the rows stably by that number.
    by_appearance = np.argsort(first_run, kind="stable")
    number = np.empty(len(unique), np.int64)
    number[by_appearance] = np.arange(len(unique))
    query = np.repeat(number[run_of], np.diff(np.append(starts, n)))
    order = np.argsort(query, kind="stable")
    return Groups(_offsets(np.bincount(query)), unique[by_appearance], order)


def _offsets(sizes: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _uniform_ids(ids: NDArray[Any], where: str) -> NDArray[Any]:
    """Object ids as numbers or text; mixed types become text only if that keeps them apart."""
    values = ids.tolist()
    kinds = set(map(type, values))
    if kinds == {str}:
        return np.array(values)
    if all(issubclass(kind, Real) for kind in kinds):
        numbers = np.asarray(values)
        if numbers.dtype.kind in "biuf":
            return numbers
    for row, value in enumerate(values):
        # NaN, NaT and pandas' NA are the values that do not equal themselves.
        if value is None or (value == value) is not True:
            raise ValueError(f"{where}: qid must not be missing, got {value!r} at row {row}")
    text = np.array([v.decode() if isinstance(v, bytes) else str(v) for v in values])
    try:
        distinct = len(set(values))
    except TypeError:
        distinct = -1
    if distinct != len(set(text.tolist())):
        raise TypeError(
            f"{where}: qid must hold ids of one type, numbers or text, got "
            f"{', '.join(sorted(k.__name__ for k in kinds))}"
        )
    return text


def qid_from_sizes(group: ArrayLike) -> NDArray[np.int64]:
    """One query number per row from LightGBM's ``group``: the sizes of consecutive queries.

    >>> import rankwise as rw
    >>> rw.qid_from_sizes([2, 3])
    array([0, 0, 1, 1, 1])
    """
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ValueError(
            "qid_from_sizes: group must be the sizes of consecutive queries, integers of at least "
            f"0, got {_validate._example(sizes)}"
        )
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


@dataclass(frozen=True, eq=False, repr=False)
class Queries:
    """Judged query lists: features, labels and which rows belong to which query.

    Attributes
    ----------
    X : array of shape (n_docs, n_features), float32 or float64, or scipy CSR matrix
        Features; NaN is a missing value.
    y : float64 array of shape (n_docs,)
        Relevance labels, 0 or more, larger is better; NaN is an unjudged document.
    offsets : int64 array of shape (n_queries + 1,)
        Query ``i`` owns the rows ``offsets[i]:offsets[i+1]``.
    ids : array of shape (n_queries,)
        Query ids, integers or strings.
    docs : array of shape (n_docs,) or None
        Document ids or the comments of the file they came from.
    weight : float64 array of shape (n_docs,) or None
        Document weights.
    feature_names : tuple of str or None
    order : int64 array of shape (n_docs,) or None
        The row of the input each row came from, where the input was not grouped by query.
    """

    X: Any
    y: NDArray[np.float64]
    offsets: NDArray[np.int64]
    ids: NDArray[Any]
    docs: NDArray[Any] | None = None
    weight: NDArray[np.float64] | None = None
    feature_names: tuple[str, ...] | None = None
    order: NDArray[np.int64] | None = None

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | Groups,
        *,
        docs: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        feature_names: tuple[str, ...] | None = None,
    ) -> Queries:
        """Queries from one row per document, in any order; rows move only where they must."""
        where = "Queries"
        X = _validate.matrix(where, X)
        labels = _validate.labels(where, y)
        groups = group_rows(qid, where=where)
        kept = None if docs is None else np.asarray(docs)
        n = X.shape[0]
        for name, length in {
            "y": len(labels),
            "qid": groups.n_docs,
            "docs": n if kept is None else len(kept),
        }.items():
            if length != n:
                raise ValueError(
                    f"{where}: {name} must have one entry per row of X, got {length} for {n} rows"
                )
        weights = _validate.weights(where, weight, n)
        if feature_names is not None and len(feature_names) != X.shape[1]:
            raise ValueError(
                f"{where}: feature_names must name each of the {X.shape[1]} features, "
                f"got {len(feature_names)} names"
            )
        return cls(
            groups.gather(X),
            groups.gather(labels),
            groups.offsets,
            groups.ids,
            None if kept is None else groups.gather(kept),
            None if weights is None else groups.gather(weights),
            feature_names,
            groups.order,
        )

    @property
    def n_docs(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_queries(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Documents per query."""
        return np.diff(self.offsets)

    @property
    def groups(self) -> Groups:
        """The grouping, to pass as ``qid`` where many calls share it."""
        return Groups(self.offsets, self.ids)

    @property
    def qid(self) -> NDArray[Any]:
        """One query id per row."""
        return np.repeat(self.ids, self.sizes)

    def in_input_order(self, column: NDArray[Any]) -> NDArray[Any]:
        """A column of these lists, such as their scores, in the row order of the input."""
        return Groups(self.offsets, self.ids, self.order).scatter(column)

    def from_input_order(self, column: NDArray[Any]) -> NDArray[Any]:
        """A column in the row order of the input, in the order of these lists."""
        return column if self.order is None else column[self.order]

    def __len__(self) -> int:
        return self.n_queries

    def __repr__(self) -> str:
        kind = "sparse" if hasattr(self.X, "nnz") else "dense"
        return (
            f"Queries({self.n_queries} queries, {self.n_docs} documents, "
            f"{self.n_features} features, {kind} {self.X.dtype})"
        )

    def __iter__(self) -> Iterator[Queries]:
        return (self.take([i]) for i in range(self.n_queries))

    def rows(self, queries: ArrayLike) -> NDArray[np.int64]:
        """Row numbers of the given queries (positions or a mask), query after query."""
        return self._rows(self._positions("Queries.rows", queries))

    def take(self, queries: ArrayLike) -> Queries:
        """The given queries (positions or a mask over queries), in the given order."""
        index = self._positions("Queries.take", queries)
        rows = self._rows(index)
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            offsets=_offsets(self.sizes[index]),
            ids=self.ids[index],
            docs=None if self.docs is None else self.docs[rows],
            weight=None if self.weight is None else self.weight[rows],
            order=None,
        )

    def _positions(self, where: str, queries: ArrayLike) -> NDArray[np.int64]:
        index = np.asarray(queries)
        if index.dtype == bool:
            if index.shape != (self.n_queries,):
                raise ValueError(
                    f"{where}: a mask must have one entry per query, "
                    f"got shape {index.shape} for {self.n_queries} queries"
                )
            return np.flatnonzero(index)
        if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
            raise TypeError(
                f"{where}: queries must be a list of positions or a mask, got {queries!r}"
            )
        index = index.astype(np.int64)
        outside = index[(index < -self.n_queries) | (index >= self.n_queries)]
        if len(outside):
            raise IndexError(
                f"{where}: positions must be below the {self.n_queries} queries, got {outside[0]}"
            )
        positions: NDArray[np.int64] = np.where(index < 0, index + self.n_queries, index)
        return positions

    def _rows(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        sizes = self.sizes[index]
        ends = np.cumsum(sizes)
        rows: NDArray[np.int64] = np.arange(ends[-1] if len(ends) else 0, dtype=np.int64)
        rows += np.repeat(self.offsets[index] - (ends - sizes), sizes)
        return rows

    def with_features(self, X: Any) -> Queries:
        """The same lists with other features, for example scaled ones."""
        if X.shape[0] != self.n_docs:
            raise ValueError(
                f"Queries.with_features: X must have one row per document, "
                f"got {X.shape[0]} for {self.n_docs} documents"
            )
        names = self.feature_names if X.shape[1] == self.n_features else None
        return replace(self, X=X, feature_names=names)

    def split(
        self, fractions: ArrayLike = (0.6, 0.2, 0.2), *, rng: int | np.random.Generator | None = 0
    ) -> tuple[Queries, ...]:
        """Parts of whole queries, drawn at random.

        Parameters
        ----------
        fractions : sequence of float
            Shares of the queries; they must sum to at most 1.
        rng : int, Generator or None
            Seed of the draw.

        Returns
        -------
        tuple of Queries, one for each share; every query lands in at most one.
        """
        shares = np.asarray(fractions, dtype=np.float64)
        if shares.ndim != 1 or (shares <= 0).any() or shares.sum() > 1 + 1e-9:
            raise ValueError(
                f"Queries.split: fractions must be positive and sum to at most 1, got {fractions!r}"
            )
        cuts = np.round(np.cumsum(shares) * self.n_queries).astype(int)
        order = np.random.default_rng(rng).permutation(self.n_queries)
        starts = np.concatenate([[0], cuts[:-1]])
        if (cuts == starts).any():
            raise ValueError(
                f"Queries.split: {self.n_queries} queries are too few for the fractions "
                f"{fractions!r}; a part would be empty"
            )
        return tuple(self.take(np.sort(order[a:b])) for a, b in zip(starts, cuts, strict=True))

    def folds(
        self, n_folds: int = 5, *, rng: int | np.random.Generator | None = 0
    ) -> list[tuple[Queries, Queries, Queries]]:
        """``(train, valid, test)`` of each fold: parts rotate as in LETOR (n - 2 train, 1, 1)."""
        if n_folds < 3 or n_folds > self.n_queries:
            raise ValueError(
                "Queries.folds: n_folds must be at least 3 (train, validation, test) and at most "
                f"the {self.n_queries} queries, got {n_folds}"
            )
        parts = np.array_split(np.random.default_rng(rng).permutation(self.n_queries), n_folds)
        result = []
        for i in range(n_folds):
            test, valid = parts[i], parts[i - 1]
            train = np.concatenate(
                [parts[j] for j in range(n_folds) if j not in (i, (i - 1) % n_folds)]
            )
            result.append(tuple(self.take(np.sort(p)) for p in (train, valid, test)))
        return result  # type: ignore[return-value]


def concatenate(parts: Sequence[Queries]) -> Queries:
    """One set of queries out of several, for example the training parts of a fold.

    Raises
    ------
    ValueError
        If a query id, the number of features or their names differ where they may not, or if only
        some of the parts have document ids or weights.

    Examples
    --------
    >>> import rankwise as rw
    >>> one, two, rest = rw.make_queries(n_queries=10).split([0.2, 0.3, 0.5])
    >>> rw.concatenate([one, two])
    Queries(5 queries, 150 documents, 6 features, dense float64)
    """
    if not parts:
        raise ValueError("concatenate: at least one part is needed, got none")
    ids = np.concatenate([p.ids for p in parts])
    if len(np.unique(ids)) != len(ids):
        raise ValueError(
            "concatenate: the parts must hold different queries, got repeated query ids"
        )
    for what, found in (
        ("number of features", {p.n_features for p in parts}),
        ("feature names", {p.feature_names for p in parts}),
    ):
        if len(found) > 1:
            raise ValueError(
                f"concatenate: the parts must have the same {what}, "
                f"got {' and '.join(sorted(map(str, found)))}"
            )
    if any(hasattr(p.X, "nnz") for p in parts):
        import scipy.sparse as sp

        X = sp.vstack([sp.csr_matrix(p.X) for p in parts], format="csr")
    else:
        X = np.concatenate([p.X for p in parts])

    def joined(name: str) -> Any:
        columns = [getattr(p, name) for p in parts]
        if all(c is None for c in columns):
            return None
        if any(c is None for c in columns):
            raise ValueError(f"concatenate: all parts or none must have {name}, got some without")
        return np.concatenate(columns)

    return Queries(
        X,
        np.concatenate([p.y for p in parts]),
        _offsets(np.concatenate([p.sizes for p in parts])),
        ids,
        joined("docs"),
        joined("weight"),
        parts[0].feature_names,
    )


def canonical(queries: Queries) -> Queries:
    """The same lists in an order that depends on their content alone.

    Documents inside a query are sorted by a hash of their features, then weight, then label;
    queries by the sum of the hashes of their documents. A learner that works on this order gives
    the same model, to the last bit, for any order of the rows and for any names of the queries.
    """
    hashes = row_hashes(queries.X)
    columns = [queries.y] if queries.weight is None else [queries.y, queries.weight]
    content = hashes + np.uint64(1)  # mix(0) is 0: a document of zeros must count as well
    for column in columns:
        content = mix(content + mix((column + 0.0).view(np.uint64)))  # + 0.0: one zero only
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(content, dtype=np.uint64)])
    by_content = np.argsort(np.diff(totals[queries.offsets]), kind="stable")
    place = np.empty(queries.n_queries, np.int64)
    place[by_content] = np.arange(queries.n_queries)
    order = np.lexsort([*columns, hashes, np.repeat(place, queries.sizes)])
    return replace(
        queries,
        X=queries.X[order],
        y=queries.y[order],
        offsets=_offsets(queries.sizes[by_content]),
        ids=queries.ids[by_content],
        docs=None if queries.docs is None else queries.docs[order],
        weight=None if queries.weight is None else queries.weight[order],
        order=order if queries.order is None else queries.order[order],
    )


def mix(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scrambles 64-bit words one to one (the finaliser of SplitMix64, Steele et al. 2014)."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def row_hashes(X: Any) -> NDArray[np.uint64]:
    """One 64-bit hash per row of a checked matrix; equal rows, dense or sparse, hash alike."""
    from rankwise import _core

    if hasattr(X, "nnz"):
        hashes: NDArray[np.uint64] = _core.hash_rows_csr(X.data, X.indices, X.indptr)
    else:
        hashes = _core.hash_rows(X)
    return hashes
