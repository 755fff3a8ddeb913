"""Judged lists as flat columns and offsets.

A set of query lists is a feature matrix ``X``, a label vector ``y`` and ``offsets``: the documents
of query ``i`` are the rows ``offsets[i]:offsets[i+1]``. Public calls take ``qid``, one id per row, in
any order and of any type; :func:`group_rows` turns it into offsets once, at the door.

>>> import rankwise as rw
>>> rw.group_rows(["b", "a", "b"])
Groups(2 queries, 3 documents)
>>> rw.group_rows(["b", "a", "b"]).order
array([0, 2, 1])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
        Integers, strings, or anything NumPy can compare. ``Groups`` pass through, so that a
        grouping made once can be used for many calls.

    Returns
    -------
    Groups

    Raises
    ------
    ValueError
        If an id is missing (NaN or None).

    Notes
    -----
    O(n) when the rows of each query are contiguous, O(n log n) otherwise.
    """
    if isinstance(qid, Groups):
        return qid
    if hasattr(qid, "to_numpy"):
        qid = qid.to_numpy()
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
    if ids.dtype.kind == "f" and np.isnan(ids).any():
        row = int(np.flatnonzero(np.isnan(ids))[0])
        raise ValueError(f"{where}: qid must not be missing, got NaN at row {row}")
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
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(query))])
    return Groups(offsets.astype(np.int64), unique[by_appearance], order)


def _uniform_ids(ids: NDArray[Any], where: str) -> NDArray[Any]:
    """Object ids as integers or strings; mixed types become strings only if that keeps them apart."""
    missing = [i for i, v in enumerate(ids) if v is None or v != v]
    if missing:
        raise ValueError(
            f"{where}: qid must not be missing, got {ids[missing[0]]!r} at row {missing[0]}"
        )
    kinds = {type(v) for v in ids}
    if kinds <= {int, bool, np.int64, np.int32}:
        return ids.astype(np.int64)
    as_text = ids.astype(str)
    if len(kinds) > 1 and len(set(ids)) != len(set(as_text)):
        raise TypeError(
            f"{where}: qid must hold ids of one type, got "
            f"{', '.join(sorted(k.__name__ for k in kinds))} that read the same as text"
        )
    return as_text


def qid_from_sizes(group: ArrayLike) -> NDArray[np.int64]:
    """One query number per row from LightGBM's ``group``: the sizes of consecutive queries.

    >>> import rankwise as rw
    >>> rw.qid_from_sizes([2, 3])
    array([0, 0, 1, 1, 1])
    """
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ValueError(
            "qid_from_sizes: group must be the sizes of consecutive queries, integers of at least 0, "
            f"got {_validate._example(sizes)}"
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
    """

    X: Any
    y: NDArray[np.float64]
    offsets: NDArray[np.int64]
    ids: NDArray[Any]
    docs: NDArray[Any] | None = None
    weight: NDArray[np.float64] | None = None
    feature_names: tuple[str, ...] | None = None

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
        """Queries from one row per document, in any order; rows are copied only if they must move."""
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
        index = np.asarray(queries)
        if index.dtype == bool:
            if len(index) != self.n_queries:
                raise ValueError(
                    f"Queries.rows: a mask must have one entry per query, "
                    f"got {len(index)} for {self.n_queries} queries"
                )
            index = np.flatnonzero(index)
        index = index.astype(np.int64, copy=False)
        sizes = self.sizes[index]
        ends = np.cumsum(sizes)
        shift = np.repeat(self.offsets[index] - (ends - sizes), sizes)
        return np.arange(len(shift), dtype=np.int64) + shift

    def take(self, queries: ArrayLike) -> Queries:
        """The given queries (positions or a mask over queries), in the given order."""
        rows = self.rows(queries)
        index = np.asarray(queries)
        sizes = self.sizes[index]
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]).astype(np.int64),
            ids=self.ids[index],
            docs=None if self.docs is None else self.docs[rows],
            weight=None if self.weight is None else self.weight[rows],
        )

    def with_features(self, X: Any) -> Queries:
        """The same lists with other features, for example scaled ones."""
        return replace(self, X=X, feature_names=None if X.shape[1] != self.n_features else self.feature_names)

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
                f"Queries.split: {self.n_queries} queries are too few for the fractions {fractions!r}; "
                "a part would be empty"
            )
        return tuple(
            self.take(np.sort(order[a:b])) for a, b in zip(starts, cuts, strict=True)
        )

    def folds(
        self, n_folds: int = 5, *, rng: int | np.random.Generator | None = 0
    ) -> list[tuple[Queries, Queries, Queries]]:
        """``(train, valid, test)`` of each fold: parts rotate as in LETOR (n - 2 train, 1, 1)."""
        if n_folds < 3 or n_folds > self.n_queries:
            raise ValueError(
                f"Queries.folds: n_folds must be at least 3 (train, validation, test) and at most the "
                f"{self.n_queries} queries, got {n_folds}"
            )
        parts = np.array_split(np.random.default_rng(rng).permutation(self.n_queries), n_folds)
        result = []
        for i in range(n_folds):
            test, valid = parts[i], parts[i - 1]
            train = np.concatenate([parts[j] for j in range(n_folds) if j not in (i, (i - 1) % n_folds)])
            result.append(tuple(self.take(np.sort(p)) for p in (train, valid, test)))
        return result  # type: ignore[return-value]


def concatenate(parts: list[Queries]) -> Queries:
    """One set of queries out of several; query ids must not repeat across parts."""
    if not parts:
        raise ValueError("concatenate: at least one part is needed, got none")
    ids = np.concatenate([p.ids for p in parts])
    if len(np.unique(ids)) != len(ids):
        raise ValueError("concatenate: the parts must hold different queries, got repeated query ids")
    widths = {p.n_features for p in parts}
    if len(widths) > 1:
        raise ValueError(
            f"concatenate: the parts must have the same number of features, got {sorted(widths)}"
        )
    if any(hasattr(p.X, "nnz") for p in parts):
        import scipy.sparse as sp

        X = sp.vstack([sp.csr_matrix(p.X) for p in parts], format="csr")
    else:
        X = np.concatenate([p.X for p in parts])
    sizes = np.concatenate([p.sizes for p in parts])

    def joined(columns: list[Any]) -> Any:
        return None if any(c is None for c in columns) else np.concatenate(columns)

    return Queries(
        X,
        np.concatenate([p.y for p in parts]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]).astype(np.int64),
        ids,
        joined([p.docs for p in parts]),
        joined([p.weight for p in parts]),
        parts[0].feature_names,
    )


def canonical(queries: Queries) -> Queries:
    """The same lists in an order that does not depend on how the rows were stored.

    Queries are sorted by id, documents inside a query by a hash of their features, then label
    and weight. A learner that works on this order gives the same model, to the last bit, for any
    order of the rows.
    """
    from rankwise import _core

    by_id = np.argsort(queries.ids, kind="stable")
    number = np.empty(queries.n_queries, np.int64)
    number[by_id] = np.arange(queries.n_queries)
    X = queries.X
    if hasattr(X, "nnz"):
        hashes = _core.hash_rows_csr(X.data, X.indices, X.indptr)
    else:
        hashes = _core.hash_rows(X)
    keys = [hashes.view(np.int64), np.repeat(number, queries.sizes)]
    if queries.weight is not None:
        keys.insert(0, queries.weight)
    keys.insert(0, queries.y)
    order = np.lexsort(keys)
    sizes = queries.sizes[by_id]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]).astype(np.int64)
    if np.array_equal(order, np.arange(len(order))):
        return replace(queries, offsets=offsets, ids=queries.ids[by_id])
    return replace(
        queries,
        X=X[order],
        y=queries.y[order],
        offsets=offsets,
        ids=queries.ids[by_id],
        docs=None if queries.docs is None else queries.docs[order],
        weight=None if queries.weight is None else queries.weight[order],
    )
