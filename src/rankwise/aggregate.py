"""Rank aggregation: one score per item out of many lists that rank the items.

Every aggregator is a function ``(R, ...) -> scores``, higher is better. ``R`` holds *score columns*:
one row per item, one column per list, higher is better, NaN (or -inf) where a list does not hold
the item. With ``qid`` the rows belong to many queries, and each is aggregated by itself. Lists of
ids come as :class:`~rankwise.RankLists`; runs go through :func:`rankwise.fuse`.

>>> import numpy as np, rankwise as rw
>>> nan = np.nan
>>> R = np.array([[0.9, nan, 0.4], [0.5, 0.8, 0.3], [0.1, 0.7, nan], [nan, 0.2, nan]])
>>> rw.comb_mnz(R)  # four items A, B, C, D in three lists
array([2.6, 4.8, 1.6, 0.2])
>>> rw.rrf(R).round(6)
array([0.032787, 0.048652, 0.032002, 0.015873])
>>> lists = rw.RankLists.from_rankings(["ABCD"[i:] + "ABCD"[:i] for i in range(2)] and
...                                    [list("ABCD"), list("BADC"), list("CABD")])
>>> rw.borda(lists)
array([7., 6., 4., 1.])
>>> rw.mc4(lists).round(6)
array([0.869565, 0.082816, 0.031226, 0.016393])

Which one
---------
====================================  ============================================================
scores on one scale                   :func:`comb_sum` or :func:`comb_mnz` with ``norm=``
scores not comparable, ranks are      :func:`rrf` (top-heavy), :func:`borda` (every place counts)
a winner of majorities must win       :func:`condorcet`, :func:`copeland`, :func:`mc4`
the consensus with least disagreement :func:`kemeny` (pairs), :func:`footrule` (places)
a model with strengths                :func:`bradley_terry`, :func:`plackett_luce`
most lists useless                    :func:`robust_rank_aggregation`
====================================  ============================================================

Items that a list does not hold
-------------------------------
================  =============================================================================
``missing=``      meaning
================  =============================================================================
``"skip"``        The list says nothing about the item: no points, no pairs.
``"last"``        The list ranks the item behind all that it holds, tied with the other absent ones.
``"mean"``        Borda only: the mean over the lists that hold the item.
``"zero"``        Scores only: the list scores it 0.
``"min"``         Scores only: the list scores it as its worst item.
================  =============================================================================

Each function's default is its paper's. Ties inside a list count with the mean over the places
they take (``ties="average"``; also ``"stable"``, ``"worst"``, ``"best"``) and as half a win each
in pairs. A list without items takes no part. ``weights`` (one per list, at least 0) act as if a
list were there that many times, except where a function says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _validate
from rankwise._consensus import Consensus as Consensus
from rankwise._consensus import footrule as footrule
from rankwise._consensus import kemeny as kemeny
from rankwise._consensus import kemeny_consensus as kemeny_consensus
from rankwise._consensus import kemeny_distance as kemeny_distance
from rankwise._markov import markov_chain as markov_chain
from rankwise._markov import mc1 as mc1
from rankwise._markov import mc2 as mc2
from rankwise._markov import mc3 as mc3
from rankwise._markov import mc4 as mc4
from rankwise._rank_lists import TIES, list_weights, lists_of
from rankwise._rank_lists import RankLists as RankLists
from rankwise._strengths import bradley_terry as bradley_terry
from rankwise._strengths import plackett_luce as plackett_luce
from rankwise._strengths import robust_rank_aggregation as robust_rank_aggregation
from rankwise._strengths import rra_p_values as rra_p_values

Floats = NDArray[np.float64]

NORMS = ("minmax", "max", "sum", "zscore", "rank", "borda")


# --- Places -----------------------------------------------------------------------------------


def borda(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    missing: str = "last",
    ties: str = "average",
    n_threads: int = 0,
) -> Floats:
    """Borda count: ``s_i = sum over lists of weight * (items below i, a tied one counts 1/2)``.

    With weights this is the weighted Borda-fuse of Aslam and Montague.

    Parameters
    ----------
    R : array-like of shape (n_items, n_lists), or RankLists
        Higher is better, NaN or -inf where a list does not hold the item.
    qid : array-like of shape (n_items,), optional
        The query of each row; None for one query.
    weights : array-like of shape (n_lists,), optional
        Weights of the lists, at least 0.
    missing : {"last", "skip", "mean"}
        ``"last"``: absent items share the last places of a list. ``"skip"``: a list counts among
        its own items only. ``"mean"``: the mean over the lists that hold the item of the share of
        the list's other items below it (1/2 in a list of one; 0 for an item in no list).
    ties : {"average", "stable", "worst", "best"}
        The place of tied items: the mean of theirs, by row, the last, the first.
    n_threads : int
        0 for the default of the machine. The result does not depend on it.

    Returns
    -------
    float64 array of shape (n_items,)

    Raises
    ------
    ValueError
        If R holds +inf, or weights are negative, not finite or all 0.

    Notes
    -----
    O(n log n) in the number of entries, O(n) for lists stored best first.

    References: ``borda1781``, ``aslam2001``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.borda([[3, 1], [2, 2], [1, float("nan")]])
    array([3., 3., 0.])
    """
    return _positional("borda", "borda", R, qid, weights, missing, ties, n_threads)


def rrf(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    rank_constant: float = 60.0,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    ties: str = "average",
    n_threads: int = 0,
) -> Floats:
    """Reciprocal rank fusion: ``s_i = sum over lists of weight / (60 + rank of i)``.

    Parameters
    ----------
    R, qid, weights, ties, n_threads
        As in :func:`borda`.
    rank_constant : float
        The 60 of the formula, at least 0; the larger, the less the first places stand out.
    missing : {"skip", "last"}
        ``"last"`` gives absent items the mean over the places behind the list.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    References: ``cormack2009``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.rrf([[0.9, 10.0], [0.1, 30.0]], rank_constant=0)
    array([1.5, 1.5])
    """
    k = _validate.number("rrf", "rank_constant", rank_constant, low=0)
    return _positional("rrf", "rrf", R, qid, weights, missing, ties, n_threads, k=k)


def isr(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    ties: str = "average",
    n_threads: int = 0,
) -> Floats:
    """Inverse square rank: ``s_i = N_i * sum over lists of weight / rank^2``.

    ``N_i`` is the number of lists that hold the item (counted without weights).

    Parameters
    ----------
    R, qid, weights, missing, ties, n_threads
        As in :func:`rrf`.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    References: ``mourao2015``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.isr([[0.9, 10.0], [0.1, 30.0]])
    array([2.5, 2.5])
    """
    return _positional("isr", "isr", R, qid, weights, missing, ties, n_threads, hits="count")


def log_isr(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    sigma: float = 0.0,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    ties: str = "average",
    n_threads: int = 0,
) -> Floats:
    """Logarithmic ISR: ``s_i = log(N_i + sigma) * sum over lists of weight / rank^2``.

    With ``sigma=0`` (the paper's Log_ISR) an item of a single list scores 0; a small sigma (.01 in
    its LogN_ISR) keeps those in order.

    Parameters
    ----------
    R, qid, weights, missing, ties, n_threads
        As in :func:`rrf`.
    sigma : float
        At least 0.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    Repeating every list is not neutral here: the logarithm of the number of lists is in the score.

    References: ``mourao2015``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.log_isr([[0.9, 10.0], [0.1, 30.0]]).round(4)
    array([0.8664, 0.8664])
    """
    sigma = _validate.number("log_isr", "sigma", sigma, low=0)
    return _positional(
        "log_isr", "isr", R, qid, weights, missing, ties, n_threads, hits="log", sigma=sigma
    )


def _positional(
    where: str,
    points: str,
    R: Any,
    qid: Any,
    weights: ArrayLike | None,
    missing: str,
    ties: str,
    n_threads: int,
    *,
    k: float = 0.0,
    hits: str = "none",
    sigma: float = 0.0,
) -> Floats:
    known = ("last", "skip", "mean") if points == "borda" else ("skip", "last")
    _validate.choice(where, "missing", missing, known)
    _validate.choice(where, "ties", ties, TIES)
    lists = lists_of(where, R, qid)
    weight = list_weights(where, lists, weights)
    return lists.groups.scatter(
        _core.lists_positional(
            *lists._columns, weight, points, k, hits, sigma, ties, missing, n_threads
        )
    )


# --- Scores -----------------------------------------------------------------------------------


def normalise_scores(
    R: ArrayLike | RankLists, method: str, *, qid: ArrayLike | None = None, n_threads: int = 0
) -> Any:
    """Scores of every list on one scale, list by list and query by query.

    ========== ===================================================================================
    ``minmax`` ``(s - min) / (max - min)``; 1 where all are equal
    ``max``    ``s / max``; needs a positive maximum
    ``sum``    ``(s - min) / sum(s - min)``; 1 / n where all are equal
    ``zscore`` ``(s - mean) / standard deviation`` (over n); 0 where all are equal
    ``rank``   ``1 - (rank - 1) / n``, n items in the list
    ``borda``  the same, n items of the query; absent items get the mean of the places behind
    ========== ===================================================================================

    Parameters
    ----------
    R : array-like of shape (n_items, n_lists), or RankLists
        Higher is better, NaN or -inf where a list does not hold the item.
    method : str
        One of the table. Tied items share the mean of their places.
    qid : array-like of shape (n_items,), optional
        The query of each row.

    Returns
    -------
    float64 array of shape (n_items, n_lists), or RankLists
        As R was given.

    Raises
    ------
    ValueError
        For ``max`` where a list has no positive score.

    Notes
    -----
    References: ``lee1997``, ``renda2003``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.normalise_scores([[3.0, 10.0], [1.0, float("nan")], [2.0, 20.0]], "minmax")
    array([[1. , 0. ],
           [0. , nan],
           [0.5, 1. ]])
    """
    lists = normalised("normalise_scores", lists_of("normalise_scores", R, qid), method, n_threads)
    return lists if isinstance(R, RankLists) else lists.matrix()


def normalised(where: str, lists: RankLists, method: str, n_threads: int = 0) -> RankLists:
    """Rank lists with normalised scores; ``borda`` fills every list up."""
    _validate.choice(where, "norm", method, NORMS)
    values, refused = _core.lists_normalise(*lists._columns, method, n_threads)
    if refused >= 0:
        raise ValueError(
            f"{where}: norm 'max' needs a positive largest score, got "
            f"{lists.score[lists.starts[refused] : lists.starts[refused + 1]].max():g} in list "
            f"{refused % lists.n_lists}; take 'minmax' where scores may be negative"
        )
    scaled = lists.with_scores(values)
    return _filled(scaled) if method == "borda" else scaled


def _filled(lists: RankLists) -> RankLists:
    """Lists of Borda shares completed: absent items get the mean of the places behind."""
    offsets, starts = lists.groups.offsets, lists.starts
    table = _core.lists_matrix(*lists._columns, np.nan)
    sizes = np.diff(starts).reshape(lists.n_queries, lists.n_lists)
    n = np.diff(offsets)[:, None]
    # An empty list takes no part and stays empty.
    share = np.where(sizes > 0, (n - sizes + 1) / (2 * np.maximum(n, 1)), np.nan)
    rows = np.repeat(share, np.diff(offsets), axis=0)
    table = np.where(np.isnan(table), rows, table)
    starts, item, score = _core.lists_from_matrix(table, offsets)
    return RankLists(lists.groups, lists.n_lists, starts, item, score, lists.items, lists.count)


def comb_sum(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    norm: str | None = None,
    missing: str = "skip",
    n_threads: int = 0,
) -> Floats:
    """CombSUM: ``s_i = sum over lists of weight * score``; with weights, the weighted sum.

    Parameters
    ----------
    R : array-like of shape (n_items, n_lists), or RankLists
        Higher is better, NaN or -inf where a list does not hold the item.
    qid : array-like of shape (n_items,), optional
        The query of each row; None for one query.
    weights : array-like of shape (n_lists,), optional
        Weights of the lists, at least 0.
    norm : str, optional
        How the scores of each list are normalised first, see :func:`normalise_scores`.
    missing : {"skip", "zero", "min"}
        Absent items add nothing (``"skip"`` and ``"zero"`` are the same for a sum), or the score
        of the list's worst item, which is the safe choice where scores may be negative.
    n_threads : int
        0 for the default of the machine. The result does not depend on it.

    Returns
    -------
    float64 array of shape (n_items,)

    Raises
    ------
    ValueError
        If R holds +inf, or weights are negative, not finite or all 0.

    Notes
    -----
    O(n) in the number of entries.

    References: ``fox1994``, ``lee1997``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.comb_sum([[0.9, 0.4], [0.5, 0.3], [0.1, float("nan")]], weights=[1, 2])
    array([1.7, 1.1, 0.1])
    """
    return _comb("comb_sum", R, qid, weights, norm, missing, n_threads)


def comb_mnz(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    norm: str | None = None,
    missing: str = "skip",
    n_threads: int = 0,
) -> Floats:
    """CombMNZ: CombSUM times the number of lists that hold the item (counted without weights).

    Parameters
    ----------
    R, qid, weights, norm, n_threads
        As in :func:`comb_sum`.
    missing : {"skip", "zero", "min"}
        Only the lists that hold the item count; or absent items score 0, or as the list's worst.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    Scores should not be negative: a larger number of lists would then be a loss.

    References: ``fox1994``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.comb_mnz([[0.9, 0.4], [0.5, 0.3], [0.1, float("nan")]])
    array([2.6, 1.6, 0.1])
    """
    return _comb("comb_mnz", R, qid, weights, norm, missing, n_threads)


def comb_min(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    norm: str | None = None,
    missing: str = "skip",
    n_threads: int = 0,
) -> Floats:
    """CombMIN: the smallest score over the lists; -inf for an item that no list holds.

    Parameters
    ----------
    R, qid, weights, norm, n_threads
        As in :func:`comb_sum`.
    missing : {"skip", "zero", "min"}
        Only the lists that hold the item count; or absent items score 0, or as the list's worst.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    Weights count only as zero or not.

    References: ``fox1994``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.comb_min([[0.9, 0.4], [0.5, 0.3], [0.1, float("nan")]])
    array([0.4, 0.3, 0.1])
    """
    return _comb("comb_min", R, qid, weights, norm, missing, n_threads)


def comb_max(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    norm: str | None = None,
    missing: str = "skip",
    n_threads: int = 0,
) -> Floats:
    """CombMAX: the largest score over the lists; -inf for an item that no list holds.

    Parameters
    ----------
    R, qid, weights, norm, n_threads
        As in :func:`comb_sum`.
    missing : {"skip", "zero", "min"}
        Only the lists that hold the item count; or absent items score 0, or as the list's worst.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    Weights count only as zero or not.

    References: ``fox1994``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.comb_max([[0.9, 0.4], [0.5, 0.3], [0.1, float("nan")]])
    array([0.9, 0.5, 0.1])
    """
    return _comb("comb_max", R, qid, weights, norm, missing, n_threads)


def comb_med(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    norm: str | None = None,
    missing: str = "skip",
    n_threads: int = 0,
) -> Floats:
    """CombMED: the (weighted) median score over the lists; -inf for an item that no list holds.

    Parameters
    ----------
    R, qid, weights, norm, n_threads
        As in :func:`comb_sum`.
    missing : {"skip", "zero", "min"}
        Only the lists that hold the item count; or absent items score 0, or as the list's worst.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    Between two middle scores the mean.

    References: ``fox1994``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.comb_med([[0.9, 0.4], [0.5, 0.3], [0.1, float("nan")]])
    array([0.65, 0.4 , 0.1 ])
    """
    return _comb("comb_med", R, qid, weights, norm, missing, n_threads)


def comb_anz(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    norm: str | None = None,
    missing: str = "skip",
    n_threads: int = 0,
) -> Floats:
    """CombANZ: the (weighted) mean score over the lists; -inf for an item that no list holds.

    Parameters
    ----------
    R, qid, weights, norm, n_threads
        As in :func:`comb_sum`.
    missing : {"skip", "zero", "min"}
        Only the lists that hold the item count; or absent items score 0, or as the list's worst.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    With ``missing="zero"`` or ``"min"`` the mean is over all lists of the query.

    References: ``fox1994``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.comb_anz([[0.9, 0.4], [0.5, 0.3], [0.1, float("nan")]])
    array([0.65, 0.4 , 0.1 ])
    """
    return _comb("comb_anz", R, qid, weights, norm, missing, n_threads)


def _comb(
    where: str,
    R: Any,
    qid: Any,
    weights: ArrayLike | None,
    norm: str | None,
    missing: str,
    n_threads: int,
) -> Floats:
    _validate.choice(where, "missing", missing, ("skip", "zero", "min"))
    lists = lists_of(where, R, qid)
    weight = list_weights(where, lists, weights)
    if norm is not None:
        lists = normalised(where, lists, norm, n_threads)
    kind = where.removeprefix("comb_")
    return lists.groups.scatter(_core.lists_comb(*lists._columns, weight, kind, missing, n_threads))


# --- Majorities -------------------------------------------------------------------------------


def condorcet(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    missing: str = "last",
    n_threads: int = 0,
) -> Floats:
    """Condorcet-fuse: items sorted by majority, ``s_i = n - (place of i)``.

    Item i goes before j where the weight of the lists that rank i before j is the larger one. The
    sort starts from the Borda order (ties by the ranks in the first list, the second, ...) and
    moves an item only where a majority asks for it; so a Condorcet winner comes first, every pair
    of neighbours agrees with the majority, and where majorities run in a circle the Borda order
    decides where it is cut. Items that all lists treat alike share their places.

    Parameters
    ----------
    R : array-like of shape (n_items, n_lists), or RankLists
        Higher is better, NaN or -inf where a list does not hold the item.
    qid : array-like of shape (n_items,), optional
        The query of each row; None for one query.
    weights : array-like of shape (n_lists,), optional
        Weights of the lists, at least 0.
    missing : {"last", "skip"}
        Absent items lose to all that the list holds, or the list says nothing about them.
    n_threads : int
        0 for the default of the machine. The result does not depend on it.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    O(n log n) comparisons of n_lists ranks each; no matrix of pairs is made.

    References: ``montague2002``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.condorcet([[3, 2, 1], [2, 3, 3], [1, 1, 2]])
    array([1., 2., 0.])
    """
    return _by_pairs(_core.lists_condorcet, "condorcet", R, qid, weights, missing, n_threads)


def copeland(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    missing: str = "last",
    n_threads: int = 0,
) -> Floats:
    """Copeland: the number of items a majority ranks behind i, minus that of those before i.

    Parameters
    ----------
    R, qid, weights, missing, n_threads
        As in :func:`condorcet`.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    O(n^2 n_lists) per query, in O(n) memory.

    References: ``copeland1951``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.copeland([[3, 2, 1], [2, 3, 3], [1, 1, 2]])
    array([ 0.,  2., -2.])
    """
    return _by_pairs(_core.lists_copeland, "copeland", R, qid, weights, missing, n_threads)


def _by_pairs(
    kernel: Callable[..., Floats],
    where: str,
    R: Any,
    qid: Any,
    weights: ArrayLike | None,
    missing: str,
    n_threads: int,
) -> Floats:
    _validate.choice(where, "missing", missing, ("last", "skip"))
    lists = lists_of(where, R, qid)
    weight = list_weights(where, lists, weights)
    return lists.groups.scatter(kernel(*lists._columns, weight, missing, n_threads))


def pairwise_preferences(
    R: ArrayLike | RankLists,
    *,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    n_threads: int = 0,
) -> Floats:
    """``W[i, j]``: the weight of the lists that rank i before j, ties half; one query.

    Parameters
    ----------
    R, weights, missing, n_threads
        As in :func:`condorcet`.

    Returns
    -------
    float64 array of shape (n_items, n_items)

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.pairwise_preferences([[3, 2], [2, 3], [1, float("nan")]])
    array([[0., 1., 1.],
           [1., 0., 1.],
           [0., 0., 0.]])
    """
    where = "pairwise_preferences"
    _validate.choice(where, "missing", missing, ("skip", "last"))
    lists = lists_of(where, R, None)
    if lists.n_queries != 1:
        raise ValueError(f"{where}: one query is needed, got {lists.n_queries}")
    weight = list_weights(where, lists, weights)
    return _core.lists_preferences(*lists._columns, weight, missing, 0, n_threads)


#: Every aggregator by the name that ``fuse`` and the command line take.
AGGREGATORS: dict[str, Callable[..., Floats]] = {
    "borda": borda,
    "rrf": rrf,
    "isr": isr,
    "log_isr": log_isr,
    "comb_sum": comb_sum,
    "comb_mnz": comb_mnz,
    "comb_min": comb_min,
    "comb_max": comb_max,
    "comb_med": comb_med,
    "comb_anz": comb_anz,
    "condorcet": condorcet,
    "copeland": copeland,
    "mc1": mc1,
    "mc2": mc2,
    "mc3": mc3,
    "mc4": mc4,
    "kemeny": kemeny,
    "footrule": footrule,
    "bradley_terry": bradley_terry,
    "plackett_luce": plackett_luce,
    "rra": robust_rank_aggregation,
}
