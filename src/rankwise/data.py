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
from itertools import pairwise
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
class Pairs:
    """Preferences given directly: document ``winner[p]`` should come before ``loser[p]``.

    What a click model, a comparison by people or another system yields, where labels would say
    too little. Documents are row numbers, from 0, of the rows the pairs are given with.

    Parameters
    ----------
    winner, loser : array-like of int of shape (n_pairs,)
        Rows of one query each. A pair given twice counts twice.
    weight : array-like of float of shape (n_pairs,), optional
        Weight of each pair, 0 or more; 1 where left out.
    target : array-like of float of shape (n_pairs,), optional
        The chance, from 0 to 1, that the winner is really the better one: 1 where left out, 1/2
        for documents of equal worth.

    Raises
    ------
    ValueError
        If lengths differ, a row is negative or preferred to itself, or a weight or target is out
        of range.

    See Also
    --------
    pairs_from_labels : pairs with targets from the labels of several assessors.

    Examples
    --------
    >>> import rankwise as rw
    >>> pairs = rw.Pairs([0, 0], [1, 2], target=[1.0, 0.8])
    >>> pairs
    Pairs(2 pairs)
    >>> X = [[3.0], [1.0], [2.0]]
    >>> ranker = rw.LinearRanker("ranknet").fit(X, qid=["a", "a", "a"], pairs=pairs)
    >>> bool(ranker.coef_[0] > 0)
    True
    """

    winner: NDArray[np.int64]
    loser: NDArray[np.int64]
    weight: NDArray[np.float64] | None = None
    target: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        for name in ("winner", "loser"):
            object.__setattr__(self, name, _validate.rows("Pairs", name, getattr(self, name)))
        for name, high in (("weight", np.inf), ("target", 1.0)):
            column = _validate.pair_column("Pairs", name, getattr(self, name), high)
            object.__setattr__(self, name, column)
        _validate.same_length(
            "Pairs", winner=self.winner, loser=self.loser, weight=self.weight, target=self.target
        )
        same = np.flatnonzero(self.winner == self.loser)
        if len(same):
            raise ValueError(
                "Pairs: winner and loser must be two documents, "
                f"got row {self.winner[same[0]]} twice in pair {same[0]}"
            )

    def __len__(self) -> int:
        return len(self.winner)

    def __repr__(self) -> str:
        return f"Pairs({len(self)} pairs)"

    def moved(self, place: NDArray[np.int64]) -> Pairs:
        """The same pairs after row ``i`` has gone to row ``place[i]``."""
        return replace(self, winner=place[self.winner], loser=place[self.loser])

    def checked(self, where: str, offsets: NDArray[np.int64]) -> Pairs:
        """The pairs sorted by query, winner, loser, target and weight, so that sums over them do
        not depend on how they were listed.

        Raises
        ------
        ValueError
            If a row does not exist or a pair is not inside one query.
        """
        n_docs = int(offsets[-1])
        for rows in (self.winner, self.loser):
            bad = np.flatnonzero(rows >= n_docs)
            if len(bad):
                raise ValueError(
                    f"{where}: pairs must hold rows below the {n_docs} documents, "
                    f"got row {rows[bad[0]]} in pair {bad[0]}"
                )
        query = np.searchsorted(offsets, self.winner, side="right")
        across = np.flatnonzero(query != np.searchsorted(offsets, self.loser, side="right"))
        if len(across):
            p = across[0]
            raise ValueError(
                f"{where}: pairs must stay inside one query, got rows {self.winner[p]} and "
                f"{self.loser[p]} of two queries in pair {p}"
            )
        keys = [c for c in (self.weight, self.target, self.loser, self.winner) if c is not None]
        return self._take(np.lexsort(keys))

    def _take(self, pairs: NDArray[Any]) -> Pairs:
        return Pairs(
            self.winner[pairs],
            self.loser[pairs],
            None if self.weight is None else self.weight[pairs],
            None if self.target is None else self.target[pairs],
        )


def pairs_from_labels(labels: ArrayLike, qid: ArrayLike | Groups) -> Pairs:
    """Every pair of a query with the share of assessors who prefer one document to the other.

    ``target = (assessors with label_i > label_j + 1/2 assessors with equal labels) / n_ij``,
    ``weight = n_ij``, the number of assessors who judged both

    Parameters
    ----------
    labels : array-like of shape (n_docs, n_assessors)
        One column for each assessor, or for each kind of label; NaN where there is no judgement.
    qid : array-like of shape (n_docs,), or Groups
        Query id of each row.

    Returns
    -------
    Pairs
        ``winner`` is the document that more assessors prefer, so ``target`` is at least 1/2. Pairs
        that no assessor judged are left out. The rows are those of the input.

    Notes
    -----
    Time and memory are proportional to the number of pairs (times assessors, for the time).

    Examples
    --------
    Two of three prefer the first document, and one cannot tell the others apart:

    >>> import numpy as np
    >>> import rankwise as rw
    >>> labels = [[2, 1, 1], [1, 2, 0], [np.nan, 2, 0]]
    >>> pairs = rw.pairs_from_labels(labels, ["q", "q", "q"])
    >>> pairs.winner, pairs.loser, pairs.target.round(2), pairs.weight
    (array([0, 0, 1]), array([1, 2, 2]), array([0.67, 0.5 , 0.5 ]), array([3., 2., 2.]))
    """
    where = "pairs_from_labels"
    table = _validate.label_table(where, labels)
    groups = group_rows(qid, where=where)
    if groups.n_docs != len(table):
        raise ValueError(
            f"{where}: qid must have one entry per row of labels, "
            f"got {groups.n_docs} for {len(table)} rows"
        )
    table = groups.gather(table)
    parts = [_compared(table, a, b) for a, b in pairwise(groups.offsets.tolist())]
    first, second, won, judged = (np.concatenate(column) for column in zip(*parts, strict=True))
    kept = judged > 0
    first, second, won, judged = first[kept], second[kept], won[kept], judged[kept]
    target = won / judged
    swap = target < 0.5
    pairs = Pairs(
        np.where(swap, second, first),
        np.where(swap, first, second),
        judged.astype(np.float64),
        np.where(swap, (judged - won) / judged, target),
    )
    return pairs if groups.order is None else pairs.moved(groups.order)


def _compared(
    table: NDArray[np.float64], start: int, end: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Both rows of every pair of one query, the assessors won by the first (half where equal) and
    the assessors who judged both.
    """
    i, j = np.triu_indices(end - start, 1)
    won, judged = np.zeros(len(i)), np.zeros(len(i), np.int64)
    for column in table[start:end].T:
        won += (column[i] > column[j]) + 0.5 * (column[i] == column[j])
        judged += ~np.isnan(column[i] - column[j])
    return i + start, j + start, won, judged


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
    pairs : Pairs or None
        Preferences between documents, as rows of these lists, from which losses over pairs learn
        instead of from the labels.
    """

    X: Any
    y: NDArray[np.float64]
    offsets: NDArray[np.int64]
    ids: NDArray[Any]
    docs: NDArray[Any] | None = None
    weight: NDArray[np.float64] | None = None
    feature_names: tuple[str, ...] | None = None
    order: NDArray[np.int64] | None = None
    pairs: Pairs | None = None

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: ArrayLike | None,
        qid: ArrayLike | Groups,
        *,
        docs: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        feature_names: tuple[str, ...] | None = None,
        pairs: Pairs | None = None,
    ) -> Queries:
        """Queries from one row per document, in any order; rows move only where they must.

        ``y`` may be None where ``pairs`` (rows of the input) say what to learn; all documents are
        then unjudged.
        """
        where = "Queries"
        X = _validate.matrix(where, X)
        if y is None:
            if pairs is None:
                raise ValueError(
                    f"{where}: y must hold one label per row of X, got None without pairs"
                )
            y = no_labels(X.shape[0])
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
            gather_pairs(where, pairs, groups),
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
            pairs=None if self.pairs is None else _pairs_of(self, index),
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

    if any(p.pairs is not None for p in parts) and any(p.pairs is None for p in parts):
        raise ValueError("concatenate: all parts or none must have pairs, got some without")
    return Queries(
        X,
        np.concatenate([p.y for p in parts]),
        _offsets(np.concatenate([p.sizes for p in parts])),
        ids,
        joined("docs"),
        joined("weight"),
        parts[0].feature_names,
        pairs=None if parts[0].pairs is None else _stacked(parts),
    )


def canonical(queries: Queries) -> Queries:
    """The same lists in an order that depends on their content alone.

    Documents inside a query are sorted by a hash of their features, then of everything else;
    queries by the sum of the hashes of their documents. A learner that works on this order gives
    the same model, to the last bit, for any order of the rows and for any names of the queries.
    """
    lists, order = canonical_lists(queries)
    return lists if order is None else replace(lists, X=queries.X[order])


def canonical_lists(queries: Queries) -> tuple[Queries, NDArray[np.int64] | None]:
    """:func:`canonical` for a learner that can read its rows in any order: all but ``X`` is moved.

    Returns
    -------
    lists : Queries
        Its ``X`` is that of ``queries``: document ``i`` is the row ``order[i]`` of it.
    order : int64 array of shape (n_docs,) or None
        None where the rows are in canonical order already.
    """
    from rankwise import _core

    hashes = row_hashes(queries.X)
    columns = [queries.y] if queries.weight is None else [queries.y, queries.weight]
    content = hashes + np.uint64(1)  # mix(0) is 0: a document of zeros must count as well
    for column in columns:
        content = mix(content + mix((column + 0.0).view(np.uint64)))  # + 0.0: one zero only
    if queries.pairs is not None:
        content = mix(content + _pair_hashes(queries.pairs, content))
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(content, dtype=np.uint64)])
    by_content = np.argsort(np.diff(totals[queries.offsets]), kind="stable")
    order = _core.sort_rows(hashes, content, queries.offsets, by_content)
    if np.array_equal(order, np.arange(len(order))):
        return queries, None
    lists = replace(
        queries,
        y=queries.y[order],
        offsets=_offsets(queries.sizes[by_content]),
        ids=queries.ids[by_content],
        docs=None if queries.docs is None else queries.docs[order],
        weight=None if queries.weight is None else queries.weight[order],
        order=order if queries.order is None else queries.order[order],
        pairs=None if queries.pairs is None else _placed(queries.pairs, order),
    )
    return lists, order


def query_of(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each document's query."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))


def _places_of(order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each row went: row ``order[i]`` to row ``i``."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def no_labels(n_docs: int) -> NDArray[np.float64]:
    """Labels of documents that nobody judged."""
    return np.full(n_docs, np.nan)


def gather_pairs(where: str, pairs: Pairs | None, groups: Groups) -> Pairs | None:
    """Pairs of rows of the input as pairs of rows in grouped order, checked and sorted."""
    if pairs is None:
        return None
    if not isinstance(pairs, Pairs):
        raise TypeError(
            f"{where}: pairs must be a rankwise.Pairs, got {type(pairs).__name__}; "
            "pass rankwise.Pairs(winner, loser, weight)"
        )
    if groups.order is not None:
        pairs.checked(where, np.array([0, groups.n_docs]))  # rows of the input must exist
        pairs = pairs.moved(_places_of(groups.order))
    return pairs.checked(where, groups.offsets)


def _placed(pairs: Pairs, order: NDArray[np.int64]) -> Pairs:
    """Pairs after the rows have been put in a new order, sorted again."""
    return pairs.moved(_places_of(order)).checked("Pairs", np.array([0, len(order)]))


def _pairs_of(queries: Queries, index: NDArray[np.int64]) -> Pairs:
    """The pairs of the given queries, as rows of ``queries.take(index)``."""
    assert queries.pairs is not None
    pairs = queries.pairs.checked("Queries", queries.offsets)
    bounds = np.searchsorted(pairs.winner, queries.offsets)
    counts = np.diff(bounds)[index]
    ends = np.cumsum(counts)
    kept = np.arange(ends[-1] if len(ends) else 0) + np.repeat(
        bounds[index] - ends + counts, counts
    )
    starts = _offsets(queries.sizes[index])[:-1]
    shift = np.repeat(starts - queries.offsets[index], counts)
    taken = pairs._take(kept)
    return replace(taken, winner=taken.winner + shift, loser=taken.loser + shift)


def _stacked(parts: Sequence[Queries]) -> Pairs:
    """The pairs of several parts, as rows of the parts one under the other."""
    starts = np.cumsum([0, *(p.n_docs for p in parts)])
    pairs = [p.pairs for p in parts if p.pairs is not None]

    def joined(name: str) -> Any:
        if all(getattr(p, name) is None for p in pairs):
            return None
        ones = [np.ones(len(p)) if getattr(p, name) is None else getattr(p, name) for p in pairs]
        return np.concatenate(ones)

    return Pairs(
        np.concatenate([p.winner + start for p, start in zip(pairs, starts, strict=False)]),
        np.concatenate([p.loser + start for p, start in zip(pairs, starts, strict=False)]),
        joined("weight"),
        joined("target"),
    )


def _pair_hashes(pairs: Pairs, content: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One hash per document of the pairs it is in: with which documents, on which side."""
    extra = np.zeros(len(pairs), np.uint64)
    for column in (pairs.weight, pairs.target):
        if column is not None:
            extra = mix(extra + mix((column + 0.0).view(np.uint64)))
    role = np.zeros(len(content), np.uint64)
    np.add.at(role, pairs.winner, mix(content[pairs.loser] + extra + np.uint64(1)))
    np.add.at(role, pairs.loser, mix(content[pairs.winner] + extra + np.uint64(2)))
    return role


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
