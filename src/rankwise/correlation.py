"""Agreement of rankings: Kendall's tau, its weighted form, Spearman's rho, overlaps of top lists.

Functions of two score columns take ``qid`` and then give one value per query; a row where either
column is NaN or -inf (not in that list) is left out. Functions of two *rankings* take ids, best
first. :func:`agreement` compares every pair of systems.

>>> import rankwise as rw
>>> rw.kendall_tau([3, 2, 1, 0], [3, 1, 2, 0]).round(4)
np.float64(0.6667)
>>> rw.rank_biased_overlap(["a", "b", "c"], ["b", "a", "d"], p=0.9).round(4)
np.float64(0.63)

=================================  ==========================================================
every place counts the same        :func:`kendall_tau` (pairs), :func:`spearman_rho` (places)
the top counts more                :func:`weighted_tau`, :func:`rank_biased_overlap`
only the first k are there         :func:`kendall_distance_top_k`, :func:`footrule_top_k`,
                                   :func:`overlap_at_k`
=================================  ==========================================================
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _validate
from rankwise.data import Groups, group_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


def _columns(
    where: str, x: ArrayLike, y: ArrayLike, qid: Any, *extra: Floats
) -> tuple[Floats, Floats, NDArray[np.int64], list[Floats]]:
    """Both columns grouped by query, rows that are in one of them only left out."""
    first, second = _validate.vector(where, "x", x), _validate.vector(where, "y", y)
    n = _validate.same_length(where, x=first, y=second)
    for name, column in (("x", first), ("y", second)):
        if (column == np.inf).any():
            raise ValueError(f"{where}: {name} must not hold +inf; a missing value is NaN or -inf")
    if qid is None:
        groups = Groups(np.array([0, n], np.int64), np.zeros(1, np.int64))
    else:
        groups = group_rows(qid, where=where)
        _validate.same_length(where, qid=range(groups.n_docs), x=first)
    first, second = groups.gather(first), groups.gather(second)
    more = [groups.gather(column) for column in extra]
    known = (first > -np.inf) & (second > -np.inf)
    if known.all():
        return first, second, groups.offsets, more
    cuts = np.concatenate([[0], np.cumsum(known)])[groups.offsets]
    return first[known], second[known], cuts, [column[known] for column in more]


def _answer(values: Floats, qid: Any) -> Any:
    return values[0] if qid is None else values


def kendall_tau(
    x: ArrayLike,
    y: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    variant: str = "b",
    n_threads: int = 0,
) -> Any:
    """Kendall's tau: concordant minus discordant pairs, over the pairs there are.

    ``tau_b = (C - D) / sqrt((P - T_x) (P - T_y))`` with P pairs, T_x of them tied in x;
    ``tau_a = (C - D) / P``.

    Parameters
    ----------
    x, y : array-like of shape (n_docs,)
        Scores; a row where one is NaN or -inf is left out.
    qid : array-like of shape (n_docs,), optional
        The query of each row.
    variant : {"b", "a"}
        What is divided by.
    n_threads : int
        0 for the default of the machine. The result does not depend on it.

    Returns
    -------
    float, or float64 array of shape (n_queries,)
        From -1 to 1, 1 for the same order; NaN with fewer than two rows, and for ``"b"`` where
        one column is constant.

    Notes
    -----
    O(n log n). References: ``knight1966``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.kendall_tau([1, 2, 3, 3, 2, 1], [1, 2, 3, 1, 2, 3], qid=[1, 1, 1, 2, 2, 2])
    array([ 1., -1.])
    """
    _validate.choice("kendall_tau", "variant", variant, ("b", "a"))
    first, second, offsets, _ = _columns("kendall_tau", x, y, qid)
    counts = _core.kendall_counts(first, second, offsets, n_threads).astype(np.float64)
    discordant, tied_x, tied_y, both = counts.T
    n = np.diff(offsets).astype(np.float64)
    pairs = n * (n - 1) / 2
    difference = pairs - tied_x - tied_y + both - 2 * discordant
    with np.errstate(invalid="ignore", divide="ignore"):
        norm = pairs if variant == "a" else np.sqrt(pairs - tied_x) * np.sqrt(pairs - tied_y)
        tau = difference / norm
    return _answer(np.where(np.isfinite(tau), np.clip(tau, -1, 1), np.nan), qid)


def kendall_distance(
    x: ArrayLike,
    y: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    p: float = 0.5,
    n_threads: int = 0,
) -> Any:
    """Kendall's distance: pairs in opposite order, plus ``p`` for pairs tied in one column only.

    Parameters
    ----------
    x, y, qid, n_threads
        As in :func:`kendall_tau`.
    p : float
        Penalty from 0 to 1 of a pair that one column ties and the other does not.

    Returns
    -------
    float, or float64 array of shape (n_queries,)

    Notes
    -----
    O(n log n). References: ``fagin2003``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.kendall_distance([3, 2, 1], [1, 2, 2])
    np.float64(2.5)
    """
    p = _validate.number("kendall_distance", "p", p, low=0, high=1)
    first, second, offsets, _ = _columns("kendall_distance", x, y, qid)
    counts = _core.kendall_counts(first, second, offsets, n_threads)
    discordant, tied_x, tied_y, both = counts.T
    return _answer(discordant + p * (tied_x + tied_y - 2 * both), qid)


def weighted_tau(
    x: ArrayLike,
    y: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    weigher: Callable[[Floats], ArrayLike] | None = None,
    rank: ArrayLike | None = None,
    n_threads: int = 0,
) -> Any:
    """Vigna's weighted tau: a pair weighs ``w(r_i) + w(r_j)``, by default ``w(r) = 1 / (1 + r)``.

    Ranks r count from 0 by descending x, ties by descending y; the value is the mean of that and
    of the same with x and y exchanged.

    Parameters
    ----------
    x, y, qid, n_threads
        As in :func:`kendall_tau`.
    weigher : callable, optional
        Weights, at least 0, of an array of ranks from 0.
    rank : array-like of shape (n_docs,), optional
        Ranks from 0 to weigh by, instead of those of the columns.

    Returns
    -------
    float, or float64 array of shape (n_queries,)
        From -1 to 1; NaN where one column is constant.

    Notes
    -----
    O(n log n). Equal to ``scipy.stats.weightedtau``. References: ``vigna2015``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.weighted_tau([4, 3, 2, 1], [3, 4, 2, 1]).round(4)  # the first two exchanged
    np.float64(0.52)
    >>> rw.weighted_tau([4, 3, 2, 1], [4, 3, 1, 2]).round(4)  # the last two
    np.float64(0.8133)
    """
    where = "weighted_tau"
    extra = []
    if rank is not None:
        extra.append(_validate.vector(where, "rank", rank))
        _validate.same_length(where, rank=extra[0], x=np.asarray(x))
    first, second, offsets, more = _columns(where, x, y, qid, *extra)
    largest = int(np.diff(offsets).max(initial=0))
    if weigher is None:

        def weigher(r: Floats) -> Floats:
            return 1 / (1 + r)

    by_rank = _weights(where, weigher, np.arange(largest, dtype=np.float64))
    if more:
        own = _weights(where, weigher, more[0])
        return _answer(_core.weighted_taus(first, second, offsets, by_rank, own, n_threads), qid)
    forth = _core.weighted_taus(first, second, offsets, by_rank, None, n_threads)
    back = _core.weighted_taus(second, first, offsets, by_rank, None, n_threads)
    return _answer((forth + back) / 2, qid)


def _weights(where: str, weigher: Callable[[Floats], ArrayLike], ranks: Floats) -> Floats:
    weights = _validate.vector(where, "the weigher's values", weigher(ranks))
    if len(weights) != len(ranks) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            f"{where}: weigher must return a finite weight of at least 0 for every rank"
        )
    return weights


def spearman_rho(
    x: ArrayLike, y: ArrayLike, *, qid: ArrayLike | None = None, n_threads: int = 0
) -> Any:
    """Spearman's rho: the correlation of the ranks, tied rows with their mean rank.

    Parameters
    ----------
    x, y, qid, n_threads
        As in :func:`kendall_tau`.

    Returns
    -------
    float, or float64 array of shape (n_queries,)
        From -1 to 1; NaN with fewer than two rows or a constant column.

    Notes
    -----
    O(n log n).

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.spearman_rho([1, 2, 3, 4], [2, 1, 4, 3])
    np.float64(0.6)
    """
    first, second, offsets, _ = _columns("spearman_rho", x, y, qid)
    rows = np.arange(len(first)) - np.repeat(offsets[:-1], np.diff(offsets))
    item = rows.astype(np.int32)
    a, b = (
        _core.lists_ranks(offsets, offsets, item, column, "average", n_threads)
        for column in (first, second)
    )
    n = np.diff(offsets).astype(np.float64)
    middle = np.repeat((n + 1) / 2, np.diff(offsets))
    a, b = a - middle, b - middle

    def total(values: Floats) -> Floats:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        return np.diff(sums[offsets])

    with np.errstate(invalid="ignore", divide="ignore"):
        rho = total(a * b) / np.sqrt(total(a * a)) / np.sqrt(total(b * b))
    return _answer(np.where(np.isfinite(rho), np.clip(rho, -1, 1), np.nan), qid)


# --- Rankings of ids --------------------------------------------------------------------------


def _ranking(where: str, name: str, ranking: Sequence[Hashable]) -> list[Hashable]:
    if isinstance(ranking, str | bytes):
        raise TypeError(f"{where}: {name} must be a list of ids, best first, got {ranking!r}")
    items = ranking.tolist() if isinstance(ranking, np.ndarray) else list(ranking)
    if len(set(items)) < len(items):
        twice = next(i for i in items if items.count(i) > 1)
        raise ValueError(f"{where}: an item must appear once in {name}, got {twice!r} twice")
    return items


def _overlaps(a: list[Hashable], b: list[Hashable]) -> NDArray[np.int64]:
    """Items common to the first d of both, d = 1 to the longer length."""
    place = {item: i for i, item in enumerate(a)}
    met = np.zeros(max(len(a), len(b)), np.int64)
    for i, item in enumerate(b):
        if item in place:
            met[max(i, place[item])] += 1
    return np.cumsum(met)


def rank_biased_overlap(
    a: Sequence[Hashable], b: Sequence[Hashable], *, p: float = 0.9, form: str = "ext"
) -> Any:
    """Rank-biased overlap: ``(1 - p) sum over d of p^(d - 1) * (overlap of the first d) / d``.

    Parameters
    ----------
    a, b : sequence of ids
        Best first, without ties; they need not be of one length.
    p : float
        Between 0 and 1: the chance to look one place further. The first d places carry
        ``1 - p^(d - 1) + ((1 - p) / p) d (ln(1 / (1 - p)) - sum over i < d of p^i / i)``.
    form : {"ext", "min", "res"}
        Extrapolated beyond the lists' ends; the least it can be; how much more it may become
        (the residual).

    Returns
    -------
    float
        From 0 to 1; two empty lists agree fully.

    Notes
    -----
    O(n). References: ``webber2010``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.rank_biased_overlap("abcd", ["a", "b", "c", "d"])
    Traceback (most recent call last):
    TypeError: rank_biased_overlap: a must be a list of ids, best first, got 'abcd'
    >>> rw.rank_biased_overlap(["a", "b"], ["b", "a"], p=0.5)
    np.float64(0.5)
    """
    where = "rank_biased_overlap"
    p = _validate.fraction(where, "p", p)
    _validate.choice(where, "form", form, ("ext", "min", "res"))
    first, second = _ranking(where, "a", a), _ranking(where, "b", b)
    short, long = sorted((len(first), len(second)))
    common = _overlaps(first, second).astype(np.float64)
    d = np.arange(1, long + 1, dtype=np.float64)
    powers = p**d
    if form == "ext":
        return np.float64(_extrapolated(common, d, powers, short, long, p))
    least = _least(common, d, powers, long, p)
    if form == "min":
        return np.float64(least)
    return np.float64(_most(common, short, long, p) - least)


def _extrapolated(
    common: Floats, d: Floats, powers: Floats, short: int, long: int, p: float
) -> float:
    """Webber et al., equation 32: agreement goes on as it is at the ends."""
    if long == 0:
        return 1.0
    if short == 0:
        return 0.0
    at_short, at_long = common[short - 1], common[long - 1]
    total = (common / d * powers).sum()
    beyond = d[short:]
    total += (at_short * (beyond - short) / (short * beyond) * powers[short:]).sum()
    end = (at_long - at_short) / long + at_short / short
    return float((1 - p) / p * total + end * p**long)


def _least(common: Floats, d: Floats, powers: Floats, long: int, p: float) -> float:
    """What the seen places alone give, and what stays common for ever (equation 11)."""
    if long == 0:
        return 0.0
    end = common[-1]
    tail = -np.log1p(-p) - (powers / d).sum()
    return float((1 - p) / p * ((common / d * powers).sum() + end * tail))


def _most(common: Floats, short: int, long: int, p: float) -> float:
    """All that was not seen agrees as soon as it can."""
    if long == 0:
        return 1.0
    # At depth d the shorter list may have held any item: d - short more, up to all d places.
    end = common[-1]
    full = long + short - int(end)
    d = np.arange(1, full + 1, dtype=np.float64)
    seen = np.concatenate([common, np.full(full - long, end)])
    hidden = np.maximum(d - short, 0) + np.maximum(d - long, 0)
    agreement = np.minimum(1.0, (seen + hidden) / d)
    return float((1 - p) / p * (agreement * p**d).sum() + p**full)


def overlap_at_k(a: Sequence[Hashable], b: Sequence[Hashable], *, k: int) -> Any:
    """The share of the first k that two rankings have in common.

    Parameters
    ----------
    a, b : sequence of ids
        Best first.
    k : int
        Depth; a shorter list counts as k places all the same.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.overlap_at_k(["a", "b", "c"], ["c", "a", "x"], k=2)
    np.float64(0.5)
    """
    k = int(_validate.number("overlap_at_k", "k", k, low=1, integer=True))
    first, second = (_ranking("overlap_at_k", n, r)[:k] for n, r in (("a", a), ("b", b)))
    return np.float64(len(set(first) & set(second)) / k)


def kendall_distance_top_k(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    k: int,
    p: float = 0.5,
    normalise: bool = False,
) -> Any:
    """Kendall's distance of two top-k lists: Fagin, Kumar and Sivakumar's ``K^(p)``.

    An item in one list only stands behind all of the other. Pairs in opposite order count 1, pairs
    whose order one list cannot tell (both absent there) count p.

    Parameters
    ----------
    a, b : sequence of ids
        Best first; only the first k count.
    k : int
        Depth.
    p : float
        From 0 (the optimistic distance) to 1.
    normalise : bool
        Whether to divide by the distance of lists that share nothing.

    Returns
    -------
    float

    Notes
    -----
    O(k^2). References: ``fagin2003``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.kendall_distance_top_k(["a", "b", "c"], ["b", "a", "d"], k=3)
    np.float64(2.0)
    """
    where = "kendall_distance_top_k"
    k = int(_validate.number(where, "k", k, low=1, integer=True))
    p = _validate.number(where, "p", p, low=0, high=1)
    first, second = _ranking(where, "a", a)[:k], _ranking(where, "b", b)[:k]
    ranks = _union_ranks(first, second)
    i, j = np.triu_indices(ranks.shape[1], 1)
    order = np.sign(ranks[:, i] - ranks[:, j])
    opposite = (order[0] * order[1] < 0).sum()
    untold = ((order == 0).sum(axis=0) == 1).sum()
    distance = opposite + p * untold
    if normalise:
        m, n = len(first), len(second)
        most = m * n + p * (m * (m - 1) + n * (n - 1)) / 2
        distance = distance / most if most else 0.0
    return np.float64(distance)


def footrule_top_k(
    a: Sequence[Hashable], b: Sequence[Hashable], *, k: int, normalise: bool = False
) -> Any:
    """Spearman's footrule of two top-k lists: sum of rank differences, absent items at k + 1.

    Parameters
    ----------
    a, b, k, normalise
        As in :func:`kendall_distance_top_k`.

    Returns
    -------
    float

    Notes
    -----
    O(k). References: ``fagin2003``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.footrule_top_k(["a", "b", "c"], ["b", "a", "d"], k=3)
    np.float64(4.0)
    """
    where = "footrule_top_k"
    k = int(_validate.number(where, "k", k, low=1, integer=True))
    first, second = _ranking(where, "a", a)[:k], _ranking(where, "b", b)[:k]
    ranks = np.minimum(_union_ranks(first, second), k + 1.0)
    distance = np.abs(ranks[0] - ranks[1]).sum()
    if normalise:
        most = sum(k + 1.0 - r for n in (len(first), len(second)) for r in range(1, n + 1))
        distance = distance / most if most else 0.0
    return np.float64(distance)


def _union_ranks(a: list[Hashable], b: list[Hashable]) -> Floats:
    """Ranks from 1 of all items in both lists, infinity where absent (a large number, to compare)."""
    union = {item: i for i, item in enumerate(dict.fromkeys([*a, *b]))}
    ranks = np.full((2, len(union)), 1e18)
    for row, items in enumerate((a, b)):
        ranks[row, [union[item] for item in items]] = np.arange(1, len(items) + 1)
    return ranks


# --- Agreement of systems ---------------------------------------------------------------------

_BY_SCORES: dict[str, Callable[..., Any]] = {
    "kendall_tau": kendall_tau,
    "weighted_tau": weighted_tau,
    "spearman_rho": spearman_rho,
}
_BY_RANKINGS: dict[str, Callable[..., Any]] = {
    "rank_biased_overlap": rank_biased_overlap,
    "overlap_at_k": overlap_at_k,
}


@dataclass(frozen=True)
class Agreement:
    """How much every two of several systems agree, from :func:`agreement`.

    Attributes
    ----------
    names : tuple of str
    values : float64 array of shape (n_systems, n_systems)
        Means over the queries where both rank; NaN where there is none. 1 on the diagonal.
    statistic : str
    """

    names: tuple[str, ...]
    values: Floats
    statistic: str

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = [f"{self.statistic}, mean over queries"]
        for name, row in zip(self.names, self.values, strict=True):
            lines.append(f"{name:<{width}} " + " ".join(f"{v:6.3f}" for v in row))
        return "\n".join(lines)


def agreement(
    systems: Mapping[str, Any],
    statistic: str = "kendall_tau",
    *,
    qid: ArrayLike | None = None,
    **options: Any,
) -> Agreement:
    """The agreement of every two systems, averaged over queries.

    Parameters
    ----------
    systems : mapping of names to Run, or to score columns of shape (n_docs,)
        Score columns are of the same rows; ``qid`` groups them.
    statistic : str
        ``"kendall_tau"``, ``"weighted_tau"`` or ``"spearman_rho"`` over the documents that both
        rank; ``"rank_biased_overlap"`` or ``"overlap_at_k"`` (needs ``k=``) over the rankings.
    qid : array-like of shape (n_docs,), optional
        The query of each row of score columns.
    **options
        Of the statistic, such as ``p=0.95``.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.agreement({"a": [3, 2, 1], "b": [3, 1, 2]}).values.round(3)
    array([[1.   , 0.333],
           [0.333, 1.   ]])
    """
    from rankwise._rank_lists import RankLists
    from rankwise.fusion import align_runs
    from rankwise.trec import Run

    known = {**_BY_SCORES, **_BY_RANKINGS}
    _validate.choice("agreement", "statistic", statistic, known)
    if len(systems) < 2:
        raise ValueError(f"agreement: at least two systems are needed, got {len(systems)}")
    names = tuple(systems)
    if all(isinstance(system, Run) for system in systems.values()):
        lists = align_runs(systems)
    else:
        columns = [_validate.vector("agreement", name, column) for name, column in systems.items()]
        _validate.same_length("agreement", **dict(zip(names, columns, strict=True)))
        lists = RankLists.from_matrix(np.column_stack(columns), qid=qid, where="agreement")
    compare = _scores_of if statistic in _BY_SCORES else _rankings_of
    values = np.eye(len(names))
    pairs = compare(lists, known[statistic], options)
    for i in range(len(names)):
        for j in range(i):
            found = pairs(i, j)
            found = found[~np.isnan(found)]
            values[i, j] = values[j, i] = found.mean() if len(found) else np.nan
    return Agreement(names, values, statistic)


def _scores_of(
    lists: Any, function: Callable[..., Any], options: dict[str, Any]
) -> Callable[[int, int], Floats]:
    table = lists.groups.gather(lists.matrix())
    groups = Groups(lists.groups.offsets, lists.groups.ids)
    return lambda i, j: np.asarray(function(table[:, i], table[:, j], qid=groups, **options))


def _rankings_of(
    lists: Any, function: Callable[..., Any], options: dict[str, Any]
) -> Callable[[int, int], Floats]:
    """Rankings of every list; a query counts where one of the two systems answers it."""
    rankings = []
    for a in range(len(lists.starts) - 1):
        rows = slice(*lists.starts[a : a + 2])
        order = np.argsort(-lists.score[rows], kind="stable")
        rankings.append(lists.item[rows][order].tolist())

    def pairs(i: int, j: int) -> Floats:
        found = []
        for q in range(lists.n_queries):
            a, b = (rankings[q * lists.n_lists + s] for s in (i, j))
            if a or b:
                found.append(function(a, b, **options))
        return np.array(found, np.float64)

    return pairs


def plot_agreement(agreement: Agreement, *, path: str | os.PathLike[str] | None = None) -> Figure:
    """The agreement of every two systems as a table of shaded cells, similar systems together.

    Systems are ordered by average-linkage clustering of ``1 - agreement``; the value stands in
    each cell.

    Parameters
    ----------
    agreement : Agreement
    path : path-like, optional
        Where to save the figure: ``.png``, ``.svg`` or ``.pdf``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        For a path with another suffix.
    """
    from matplotlib.figure import Figure
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    from rankwise.plots import INK, MUTED, _saved, _short, file_kind

    kind = file_kind(path)
    values, n = agreement.values, len(agreement.names)
    distance = np.where(np.isnan(values), 2.0, 1 - values)
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    order = leaves_list(tree)
    shown = values[np.ix_(order, order)].copy()
    np.fill_diagonal(shown, np.nan)
    names = [_short(agreement.names[i]) for i in order]
    side = 1.6 + 0.42 * n + 0.06 * max(map(len, names))
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    axes = figure.subplots()
    low = min(0.0, float(np.nanmin(shown, initial=0.0)))
    image = axes.imshow(shown, cmap="Blues", vmin=low, vmax=1)
    for i in range(n):
        for j in range(n):
            if not np.isnan(shown[i, j]):
                dark = (shown[i, j] - low) / (1 - low) > 0.6
                axes.text(
                    j, i, f"{shown[i, j]:.2f}".replace("0.", "."), ha="center", va="center",
                    fontsize=7, color="white" if dark else INK,
                )  # fmt: skip
    axes.set_xticks(range(n), names, rotation=90, fontsize=8, color=INK)
    axes.set_yticks(range(n), names, fontsize=8, color=INK)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    title = f"{agreement.statistic.replace('_', ' ')}, mean over queries"
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    bar = figure.colorbar(image, ax=axes, shrink=0.6)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=MUTED)
    return _saved(figure, path, kind)
