"""Rank lists of one or many queries, flat: what every aggregator takes in the end.

:class:`RankLists` holds for each query the items and, for each of ``n_lists`` lists, the items that
the list holds with their scores there. Score columns, lists of ids, preference profiles and runs
all become this one form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _validate
from rankwise.data import Groups, group_rows

Floats = NDArray[np.float64]
Columns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], Floats]


@dataclass(frozen=True, eq=False, repr=False)
class RankLists:
    """Lists that rank items, for one or many queries.

    Attributes
    ----------
    groups : Groups
        The items of each query.
    n_lists : int
        Lists per query; an empty one takes no part.
    starts : int64 array of shape (n_queries * n_lists + 1,)
        List ``l`` of query ``q`` owns the entries ``starts[a]:starts[a + 1]``, ``a = q * n_lists + l``.
    item : int32 array of shape (n_entries,)
        Number of the entry's item inside its query.
    score : float64 array of shape (n_entries,)
        Finite scores, higher is better; equal ones are ties of the list.
    items : array of shape (n_items,) or None
        Ids of the items, query after query; None where rows of a matrix are the items.
    count : float64 array of shape (n_lists,) or None
        How many voters gave each list (preference profiles); it multiplies the list's weight.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([["a", "b", "c"], ["b", "a"]])
    >>> lists
    RankLists(3 items, 2 lists, 5 entries)
    >>> rw.borda(lists), lists.items
    (array([3., 3., 0.]), array(['a', 'b', 'c'], dtype='<U1'))
    """

    groups: Groups
    n_lists: int
    starts: NDArray[np.int64]
    item: NDArray[np.int32]
    score: Floats
    items: NDArray[Any] | None = None
    count: Floats | None = None

    @property
    def n_items(self) -> int:
        """Items of all queries together."""
        return self.groups.n_docs

    @property
    def n_queries(self) -> int:
        return len(self.groups)

    def __repr__(self) -> str:
        queries = "" if self.n_queries == 1 else f"{self.n_queries} queries, "
        return (
            f"RankLists({queries}{self.n_items} items, {self.n_lists} lists, "
            f"{len(self.item)} entries)"
        )

    @property
    def _columns(self) -> Columns:
        return self.groups.offsets, self.starts, self.item, self.score

    @classmethod
    def from_matrix(
        cls,
        R: ArrayLike,
        *,
        qid: ArrayLike | Groups | None = None,
        items: ArrayLike | None = None,
        where: str = "RankLists",
    ) -> RankLists:
        """Score columns: one row per item, one column per list, NaN or -inf where it is absent.

        Parameters
        ----------
        R : array-like of shape (n_items, n_lists)
            Higher is better. NaN or -inf: the list does not hold the item.
        qid : array-like of shape (n_items,), or Groups, optional
            The query of each row, in any order; None for one query.
        items : array-like of shape (n_items,), optional
            Ids of the rows.

        Raises
        ------
        ValueError
            If R has another shape or holds +inf, or lengths differ.
        """
        values = _matrix(where, R)
        n = len(values)
        if qid is None:
            groups = Groups(np.array([0, n], np.int64), np.zeros(1, np.int64))
        else:
            groups = group_rows(qid, where=where)
            if groups.n_docs != n:
                raise ValueError(
                    f"{where}: qid must have one entry per row of R, "
                    f"got {groups.n_docs} for {n} rows"
                )
        names = None
        if items is not None:
            names = np.asarray(items)
            _validate.same_length(where, items=names, R=values)
            names = groups.gather(names)
        grouped = np.ascontiguousarray(groups.gather(values))
        starts, item, score = _core.lists_from_matrix(grouped, groups.offsets)
        return cls(groups, values.shape[1], starts, item, score, names)

    @classmethod
    def from_rankings(
        cls,
        rankings: Iterable[Sequence[Any]],
        *,
        count: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> RankLists:
        """Lists of ids, best first; a list, tuple or set inside one holds tied ids.

        Parameters
        ----------
        rankings : iterable of sequences
            Full or partial rankings. Scores become n, n - 1, ..., 1 over the places of a list.
        count : array-like of shape (n_lists,), optional
            How many voters gave each ranking.
        items : array-like, optional
            All ids there are, where some may be in no ranking; by default those of the rankings,
            in order of first appearance.

        Raises
        ------
        ValueError
            If an id appears twice in a ranking or is not in ``items``, or there is no ranking.
        TypeError
            If a ranking is a string.

        Examples
        --------
        >>> import rankwise as rw
        >>> lists = rw.RankLists.from_rankings([["a", ("b", "c")], ["c"]], count=[2, 1])
        >>> lists.matrix()
        array([[ 2., nan],
               [ 1., nan],
               [ 1.,  1.]])
        """
        where = "RankLists"
        number: dict[Any, int] = {}
        fixed = items is not None
        if items is not None:
            number = {name: i for i, name in enumerate(np.asarray(items).tolist())}
        item: list[int] = []
        score: list[float] = []
        starts = [0]
        for position, ranking in enumerate(rankings):
            _one_ranking(where, position, ranking, number, fixed, item, score)
            starts.append(len(item))
        n_lists = len(starts) - 1
        if n_lists == 0:
            raise ValueError(f"{where}: at least one ranking is needed, got none")
        groups = Groups(np.array([0, len(number)], np.int64), np.zeros(1, np.int64))
        return cls(
            groups,
            n_lists,
            np.array(starts, np.int64),
            np.array(item, np.int32),
            np.array(score, np.float64),
            _ids(list(number)),
            None if count is None else weights_of(where, count, n_lists, name="count"),
        )

    def matrix(self) -> Floats:
        """Score columns of shape (n_items, n_lists), NaN where a list does not hold the item."""
        return self.groups.scatter(_core.lists_matrix(*self._columns, np.nan))

    def ranks(self, *, ties: str = "average") -> Floats:
        """Ranks from 1 in each list, of shape (n_items, n_lists), NaN where absent."""
        _validate.choice("RankLists.ranks", "ties", ties, TIES)
        places = _core.lists_ranks(*self._columns, ties)
        offsets, starts, item, _ = self._columns
        return self.groups.scatter(_core.lists_matrix(offsets, starts, item, places, np.nan))

    def with_scores(self, score: Floats) -> RankLists:
        """The same lists with other scores of their entries."""
        return replace(self, score=score)

    def ranking(self, scores: ArrayLike) -> list[Any]:
        """The items of a single query by descending score, ties in their order; ids if they have."""
        if self.n_queries != 1:
            raise ValueError(
                f"RankLists.ranking: one query is needed, got {self.n_queries}; sort the scores"
            )
        order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
        names = np.arange(self.n_items) if self.items is None else self.items
        return list(names[order].tolist())


TIES = ("average", "stable", "worst", "best")


def _matrix(where: str, R: ArrayLike) -> Floats:
    try:
        values = np.asarray(R, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{where}: R must be numbers, one row per item and one column per list; "
            "for lists of ids take RankLists.from_rankings"
        ) from None
    if values.ndim != 2:
        raise ValueError(
            f"{where}: R must be two-dimensional, (n_items, n_lists), got shape {values.shape}"
        )
    if 0 in values.shape:
        raise ValueError(
            f"{where}: R must hold at least one item and one list, got shape {values.shape}"
        )
    high = values == np.inf
    if high.any():
        row, column = np.argwhere(high)[0]
        raise ValueError(
            f"{where}: R must not hold +inf, got it at item {row} of list {column}; "
            "an item that a list does not hold is NaN or -inf"
        )
    return np.ascontiguousarray(values)


def _one_ranking(
    where: str,
    position: int,
    ranking: Any,
    number: dict[Any, int],
    fixed: bool,
    item: list[int],
    score: list[float],
) -> None:
    if isinstance(ranking, str | bytes) or not isinstance(ranking, Iterable):
        raise TypeError(
            f"{where}: a ranking must be a list of ids, best first, got {ranking!r} "
            f"as ranking {position}"
        )
    places = [
        sorted(p, key=str) if isinstance(p, set | frozenset) else p
        for p in (p if isinstance(p, list | tuple | set | frozenset) else (p,) for p in ranking)
    ]
    seen: set[Any] = set()
    for place, tied in enumerate(places):
        for name in tied:
            if name in seen:
                raise ValueError(
                    f"{where}: an item must appear once in a ranking, got {name!r} twice "
                    f"in ranking {position}"
                )
            seen.add(name)
            if fixed and name not in number:
                raise ValueError(
                    f"{where}: every ranked item must be one of items, got {name!r} "
                    f"in ranking {position}"
                )
            item.append(number.setdefault(name, len(number)))
            score.append(float(len(places) - place))


def _ids(names: list[Any]) -> NDArray[Any]:
    kinds = {type(name) for name in names}
    if kinds <= {str} or kinds <= {int}:
        return np.array(names) if names else np.empty(0, "U1")
    array = np.empty(len(names), object)
    array[:] = names
    return array


def weights_of(
    where: str, weights: ArrayLike | None, n_lists: int, name: str = "weights"
) -> Floats:
    """Weights of the lists: at least 0, finite, not all 0; 1 each where None."""
    if weights is None:
        return np.ones(n_lists)
    array = _validate.vector(where, name, weights)
    if len(array) != n_lists:
        raise ValueError(
            f"{where}: {name} must hold one number per list, got {len(array)} for {n_lists} lists"
        )
    if not (np.isfinite(array).all() and (array >= 0).all() and array.any()):
        raise ValueError(
            f"{where}: {name} must be finite, at least 0 and not all 0, got {array.tolist()}"
        )
    return array


def lists_of(where: str, R: Any, qid: Any) -> RankLists:
    """What an aggregator was given, as rank lists."""
    if isinstance(R, RankLists):
        if qid is not None:
            raise TypeError(f"{where}: qid must be left out, RankLists know their queries")
        return R
    return RankLists.from_matrix(R, qid=qid, where=where)


def list_weights(where: str, lists: RankLists, weights: ArrayLike | None) -> Floats:
    """The weight of every list, times its count."""
    array = weights_of(where, weights, lists.n_lists)
    return array if lists.count is None else array * lists.count
