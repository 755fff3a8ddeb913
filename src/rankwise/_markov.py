"""The Markov chains MC1 to MC4 of Dwork, Kumar, Naor and Sivakumar (2001).

A walker stands on an item and steps to items that lists rank higher; where it is found in the long
run is the score. The four chains differ in how a step is drawn. They are the paper's, not the
simplified ones that some packages give these names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _validate
from rankwise._rank_lists import RankLists, list_weights, lists_of

Floats = NDArray[np.float64]

_TOLERANCE = 1e-14  # of the total change in a sweep; chances sum to 1
_MAX_SWEEPS = 10_000


def mc1(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    eps: float = 0.05,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    n_threads: int = 0,
) -> Floats:
    """MC1: a step goes to a place drawn from all those at or above the item, all lists pooled.

    ``x = (1 - eps) x P + eps / n``, where ``P[i, j]`` is the (weighted) number of lists that hold
    both and rank j at or above i, over the number of such places of all j.

    Parameters
    ----------
    R : array-like of shape (n_items, n_lists), or RankLists
        Higher is better, NaN or -inf where a list does not hold the item.
    qid : array-like of shape (n_items,), optional
        The query of each row; None for one query.
    eps : float
        Chance of a jump to any item, from 0 (none) to 1. With 0 the score is the limit of the
        walk from a uniform start, and items that the walk leaves for good score 0.
    weights : array-like of shape (n_lists,), optional
        Weights of the lists, at least 0.
    missing : {"skip", "last"}
        The list says nothing about absent items, as in the paper, or ranks them behind its own,
        tied. From an item that no list holds the walker jumps.
    n_threads : int
        0 for the default of the machine. The result does not depend on it.

    Returns
    -------
    float64 array of shape (n_items,)
        At least 0; they sum to 1 in each query. Chances within 1e-10 of each other, relatively,
        are solver noise and returned as one.

    Raises
    ------
    ValueError
        If R holds +inf, eps is not in [0, 1], or weights are negative, not finite or all 0.

    Notes
    -----
    O(n^2 n_lists) to build the chain and O(n^2) a sweep; tens of sweeps. O(n^2) memory a thread.

    References: ``dwork2001``.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([list("ABCD"), list("BADC"), list("CABD")])
    >>> rw.mc1(lists).round(6)
    array([0.412291, 0.303708, 0.230229, 0.053771])
    """
    return _markov(1, R, qid, eps, weights, missing, n_threads)


def mc2(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    eps: float = 0.05,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    n_threads: int = 0,
) -> Floats:
    """MC2: a list that holds the item is drawn, then one of its items at or above it.

    Parameters
    ----------
    R, qid, eps, weights, missing, n_threads
        As in :func:`mc1`.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    References: ``dwork2001``.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([list("ABCD"), list("BADC"), list("CABD")])
    >>> rw.mc2(lists).round(6)
    array([0.408846, 0.314113, 0.234807, 0.042234])
    """
    return _markov(2, R, qid, eps, weights, missing, n_threads)


def mc3(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    eps: float = 0.05,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    n_threads: int = 0,
) -> Floats:
    """MC3: a list that holds the item is drawn, then any of its items; move if it ranks higher.

    Parameters
    ----------
    R, qid, eps, weights, missing, n_threads
        As in :func:`mc1`.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    On full lists one step from the uniform start orders the items as :func:`rankwise.borda` does.

    References: ``dwork2001``.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([list("ABCD"), list("BADC"), list("CABD")])
    >>> rw.mc3(lists).round(6)
    array([0.474374, 0.305905, 0.180515, 0.039206])
    """
    return _markov(3, R, qid, eps, weights, missing, n_threads)


def mc4(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    eps: float = 0.05,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    n_threads: int = 0,
) -> Floats:
    """MC4: any item of the query is drawn; move if most lists that rank both prefer it.

    Parameters
    ----------
    R, qid, eps, weights, missing, n_threads
        As in :func:`mc1`.

    Returns
    -------
    float64 array of shape (n_items,)

    Notes
    -----
    A Condorcet winner comes first. One step from the uniform start orders the items as
    :func:`rankwise.copeland` does.

    References: ``dwork2001``.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([list("ABCD"), list("BADC"), list("CABD")])
    >>> rw.mc4(lists).round(6)
    array([0.869565, 0.082816, 0.031226, 0.016393])
    """
    return _markov(4, R, qid, eps, weights, missing, n_threads)


def markov_chain(
    R: ArrayLike | RankLists,
    kind: int,
    *,
    weights: ArrayLike | None = None,
    missing: str = "skip",
) -> Floats:
    """The matrix ``P[i, j]`` of the chances of a step from i to j, without the jump; one query.

    Parameters
    ----------
    R, weights, missing
        As in :func:`mc1`.
    kind : {1, 2, 3, 4}
        Which chain.

    Returns
    -------
    float64 array of shape (n_items, n_items)
        Rows sum to 1.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([list("ABCD"), list("BADC"), list("CABD")])
    >>> rw.markov_chain(lists, 4)[1]
    array([0.25, 0.75, 0.  , 0.  ])
    """
    where = "markov_chain"
    _validate.choice(where, "missing", missing, ("skip", "last"))
    if kind not in (1, 2, 3, 4):
        raise ValueError(f"{where}: kind must be 1, 2, 3 or 4, got {kind!r}")
    lists = lists_of(where, R, None)
    if lists.n_queries != 1:
        raise ValueError(f"{where}: one query is needed, got {lists.n_queries}")
    return _core.lists_chain(*lists._columns, list_weights(where, lists, weights), missing, kind, 0)


def _markov(
    kind: int,
    R: Any,
    qid: Any,
    eps: float,
    weights: ArrayLike | None,
    missing: str,
    n_threads: int,
) -> Floats:
    where = f"mc{kind}"
    _validate.choice(where, "missing", missing, ("skip", "last"))
    eps = _validate.number(where, "eps", eps, low=0, high=1)
    lists = lists_of(where, R, qid)
    weight = list_weights(where, lists, weights)
    if eps == 0:
        return lists.groups.scatter(_limits(lists, weight, missing, kind))
    scores, failed = _core.lists_markov(
        *lists._columns, weight, missing, kind, eps, _TOLERANCE, _MAX_SWEEPS, n_threads
    )
    if failed:
        raise ValueError(
            f"{where}: the chain must mix within {_MAX_SWEEPS} sweeps, {failed} queries did not "
            f"at eps={eps:g}; take a larger eps"
        )
    return lists.groups.scatter(scores)


def _limits(lists: RankLists, weight: Floats, missing: str, kind: int) -> Floats:
    """Where the walk without jumps ends from a uniform start: every state may stay, so P^t settles.

    Squaring takes t steps in log2(t) products, slow leaks between items included.
    """
    offsets = lists.groups.offsets
    scores = np.empty(lists.n_items)
    for q in range(lists.n_queries):
        P = _core.lists_chain(*lists._columns, weight, missing, kind, q)
        for _ in range(64):
            squared = P @ P
            squared /= squared.sum(axis=1, keepdims=True)
            settled = np.abs(squared - P).max(initial=0.0) < 1e-15
            P = squared
            if settled:
                break
        x = P.mean(axis=0) if len(P) else P[0:0].sum(axis=0)
        scores[offsets[q] : offsets[q + 1]] = np.where(x < 1e-15, 0.0, x)
    return scores
