"""Models with a strength per item (Bradley-Terry, Plackett-Luce), and robust rank aggregation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _validate
from rankwise._rank_lists import RankLists, list_weights, lists_of

Floats = NDArray[np.float64]
Step = Callable[[Floats], tuple[Floats, Floats]]


def bradley_terry(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    alpha: float = 0.1,
    tol: float = 1e-10,
    max_iter: int = 100_000,
) -> Floats:
    """Bradley-Terry: ``P(i before j) = e^s_i / (e^s_i + e^s_j)``, fitted to all pairs of all lists.

    Maximises ``sum of W[i, j] log P(i before j) + alpha * sum of (s_i - e^s_i)`` by Hunter's MM
    steps, ``W`` from :func:`rankwise.pairwise_preferences` (ties half a win each).

    Parameters
    ----------
    R : array-like of shape (n_items, n_lists), or RankLists
        Higher is better, NaN or -inf where a list does not hold the item.
    qid : array-like of shape (n_items,), optional
        The query of each row; None for one query.
    weights : array-like of shape (n_lists,), optional
        Weights of the lists, at least 0.
    missing : {"skip", "last"}
        A list says nothing about absent items, or ranks them behind its own.
    alpha : float
        Strength of the prior that keeps strengths together. 0 is maximum likelihood, which exists
        only if no set of items wins all its pairs against the others.
    tol : float
        Largest change of the scores in a step, summed, at which the fit ends.
    max_iter : int
        Steps at most.

    Returns
    -------
    float64 array of shape (n_items,)
        Strengths ``s`` with mean 0 in each query.

    Raises
    ------
    ValueError
        If ``alpha=0`` and there is no maximum, or the steps do not converge.

    Notes
    -----
    O(n^2) a step. The settings ``alpha`` and the result are those of choix's ``mm_pairwise``.

    References: ``hunter2004``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.bradley_terry([[2, 2, 2, 1], [1, 1, 1, 2]], alpha=0).round(4)  # 3 wins of 4
    array([ 0.5493, -0.5493])
    """
    where = "bradley_terry"
    _validate.choice(where, "missing", missing, ("skip", "last"))
    lists = lists_of(where, R, qid)
    weight = list_weights(where, lists, weights)

    def step_of(query: int) -> Step:
        W = _core.lists_preferences(*lists._columns, weight, missing, query, 0)
        if alpha == 0:
            _check_connected(where, W)
        wins, games = W.sum(axis=1), W + W.T

        def step(s: Floats) -> tuple[Floats, Floats]:
            return wins, (games / np.add.outer(s, s)).sum(axis=1)

        return step

    return _fit(where, lists, step_of, alpha, tol, max_iter)


def plackett_luce(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    alpha: float = 0.1,
    tol: float = 1e-10,
    max_iter: int = 100_000,
) -> Floats:
    """Plackett-Luce: a list is drawn item by item, each with chance ``e^s_i / sum of those left``.

    Maximises ``sum over lists of weight * log-likelihood + alpha * sum of (s_i - e^s_i)`` by
    Hunter's MM steps. Tied items of a list are all drawn from the items left before any of them
    (Breslow's rule).

    Parameters
    ----------
    R, qid, weights, alpha, tol, max_iter
        As in :func:`bradley_terry`.
    missing : {"skip", "last"}
        A list was drawn from the items it holds only, or from all items and then cut.

    Returns
    -------
    float64 array of shape (n_items,)
        Strengths ``s`` with mean 0 in each query.

    Raises
    ------
    ValueError
        If ``alpha=0`` and there is no maximum, or the steps do not converge.

    Notes
    -----
    O(entries) a step. ``alpha`` and the result are those of choix's ``mm_rankings``.

    References: ``hunter2004``.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([list("abc"), list("bca"), list("acb")])
    >>> rw.plackett_luce(lists, alpha=0).round(4)
    array([ 0.3353, -0.0702, -0.2651])
    """
    where = "plackett_luce"
    _validate.choice(where, "missing", missing, ("skip", "last"))
    lists = lists_of(where, R, qid)
    weight = list_weights(where, lists, weights)
    matrix = lists.groups.gather(lists.matrix())

    def step_of(query: int) -> Step:
        rows = slice(*lists.groups.offsets[query : query + 2])
        if alpha == 0:
            _check_connected(
                where, _core.lists_preferences(*lists._columns, weight, missing, query, 0)
            )
        return _draws(matrix[rows], weight, missing == "last")

    return _fit(where, lists, step_of, alpha, tol, max_iter)


def _draws(R: Floats, weight: Floats, last: bool) -> Step:
    """Wins of each item, and the sums of 1 / (strength left) over the draws it stood in."""
    n, p = R.shape
    keep = [c for c in range(p) if weight[c] > 0 and not np.isnan(R[:, c]).all()]
    score = np.where(np.isnan(R[:, keep]), -np.inf, R[:, keep]).T
    mass = weight[keep][:, None]
    order = np.argsort(-score, axis=1, kind="stable")
    ranked = np.take_along_axis(score, order, axis=1)
    held = ranked > -np.inf
    if len(keep) == 0:
        return lambda s: (np.zeros(n), np.zeros(n))
    # Blocks of tied items: first and last position of each position's block.
    new = np.ones_like(held)
    new[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    at = np.broadcast_to(np.arange(n), held.shape)
    first = np.maximum.accumulate(np.where(new, at, 0), axis=1)
    ends = np.ones_like(held)
    ends[:, :-1] = new[:, 1:]
    end = np.minimum.accumulate(np.where(ends, at, n)[:, ::-1], axis=1)[:, ::-1]
    sizes = held.sum(axis=1, keepdims=True)
    # A draw counts if something is left behind its block.
    left = n if last else sizes
    drawn = held & (end + 1 < left)
    wins = np.zeros(n)
    np.add.at(wins, order, mass * drawn)

    def step(s: Floats) -> tuple[Floats, Floats]:
        mine = s[order] if last else np.where(held, s[order], 0.0)
        rest = np.cumsum(mine[:, ::-1], axis=1)[:, ::-1]
        start = np.take_along_axis(rest, first, axis=1)
        share = np.where(drawn, mass / np.where(start > 0, start, 1.0), 0.0)
        stood = np.take_along_axis(np.cumsum(share, axis=1), end, axis=1)
        sums = np.zeros(n)
        np.add.at(sums, order, stood if last else np.where(held, stood, 0.0))
        return wins, sums

    return step


def _fit(
    where: str,
    lists: RankLists,
    step_of: Callable[[int], Step],
    alpha: float,
    tol: float,
    max_iter: int,
) -> Floats:
    alpha = _validate.number(where, "alpha", alpha, low=0)
    tol = _validate.number(where, "tol", tol, low=0, open_low=True)
    max_iter = int(_validate.number(where, "max_iter", max_iter, low=1, integer=True))
    out = np.empty(lists.n_items)
    offsets = lists.groups.offsets
    for q in range(lists.n_queries):
        n = int(offsets[q + 1] - offsets[q])
        out[offsets[q] : offsets[q + 1]] = _steps(where, n, step_of(q), alpha, tol, max_iter)
    return lists.groups.scatter(out)


def _steps(where: str, n: int, step: Step, alpha: float, tol: float, max_iter: int) -> Floats:
    """MM steps from equal strengths; strengths average 1, which is what ``alpha`` pulls to."""
    log_strength = np.zeros(n)
    if n < 2:
        return log_strength
    for _ in range(max_iter):
        strength = np.exp(log_strength)
        wins, sums = step(strength * (n / strength.sum()))
        new = np.log((wins + alpha) / (sums + alpha))
        new -= new.mean()
        change = np.abs(new - log_strength).sum()
        log_strength = new
        if change < tol * n:
            return log_strength
    raise ValueError(
        f"{where}: the fit must converge within max_iter={max_iter} steps, got a change of "
        f"{change:.2g} in the last one; take a larger alpha or tol"
    )


def _check_connected(where: str, W: Floats) -> None:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n_sets, _ = connected_components(
        csr_matrix((W > 0).astype(np.int8)), directed=True, connection="strong"
    )
    if n_sets > 1:
        raise ValueError(
            f"{where}: with alpha=0 every set of items must lose a pair to the others and win one, "
            f"got items that fall into {n_sets} sets; take alpha > 0"
        )


def robust_rank_aggregation(
    R: ArrayLike | RankLists, *, qid: ArrayLike | None = None, missing: str = "last"
) -> Floats:
    """Robust rank aggregation: items that stand better in some lists than chance explains.

    With relative ranks ``r_(1) <= ... <= r_(m)`` of an item in its m lists, ``rho = min over k of
    P(k of m uniform numbers <= r_(k))`` and ``s = -log10 rho``. Useless lists add little to an
    item's rho, which is what makes it robust.

    Parameters
    ----------
    R : array-like of shape (n_items, n_lists), or RankLists
        Higher is better, NaN or -inf where a list does not hold the item.
    qid : array-like of shape (n_items,), optional
        The query of each row; None for one query.
    missing : {"last", "skip"}
        An absent item has relative rank 1, or the list is left out for it.

    Returns
    -------
    float64 array of shape (n_items,)
        At least 0. :func:`rra_p_values` makes p-values of it.

    Raises
    ------
    ValueError
        If rank lists carry counts that are not integers.

    Notes
    -----
    Relative ranks are ranks over the number of items of the query, ties the mean. O(n n_lists).

    References: ``kolde2012``.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([list("abcd"), list("acdb"), list("dabc")])
    >>> rw.robust_rank_aggregation(lists).round(3)
    array([0.903, 0.074, 0.074, 0.238])
    """
    from scipy.special import betainc

    where = "robust_rank_aggregation"
    _validate.choice(where, "missing", missing, ("last", "skip"))
    lists = lists_of(where, R, qid)
    sizes = lists.groups.spread(np.diff(lists.groups.offsets).astype(np.float64))
    relative = lists.ranks() / sizes[:, None]
    if missing == "last":
        # An empty list takes no part.
        nothing = np.diff(lists.starts).reshape(lists.n_queries, lists.n_lists) == 0
        empty = lists.groups.scatter(np.repeat(nothing, np.diff(lists.groups.offsets), axis=0))
        relative = np.where(np.isnan(relative) & ~empty, 1.0, relative)
    if lists.count is not None:
        copies = lists.count.astype(np.int64)
        if (copies != lists.count).any():
            raise ValueError(f"{where}: counts of the lists must be integers, got {lists.count}")
        relative = np.repeat(relative, copies, axis=1)
    r = np.sort(relative, axis=1)
    m = (~np.isnan(r)).sum(axis=1, keepdims=True)
    k = np.arange(1, r.shape[1] + 1)[None, :]
    known = ~np.isnan(r)
    chance = betainc(k, np.maximum(m - k + 1, 1), np.where(known, r, 1.0))
    rho = np.where(known, chance, 1.0).min(axis=1, initial=1.0)
    with np.errstate(divide="ignore"):
        scores: Floats = np.maximum(0.0, -np.log10(np.maximum(rho, np.finfo(float).tiny)))
    return scores


def rra_p_values(scores: ArrayLike, n_lists: int) -> Floats:
    """Upper bounds of p-values from robust rank aggregation: ``min(1, n_lists * 10**-s)``.

    Parameters
    ----------
    scores : array-like of shape (n_items,)
        From :func:`robust_rank_aggregation`.
    n_lists : int
        How many lists were aggregated. (For a decision over all items also correct for their
        number, with :func:`rankwise.holm` or :func:`rankwise.benjamini_hochberg`.)

    Returns
    -------
    float64 array of shape (n_items,)

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([list("abcd"), list("abdc"), list("acbd")])
    >>> rw.rra_p_values(rw.robust_rank_aggregation(lists), 3).round(4)
    array([0.0469, 1.    , 1.    , 1.    ])
    """
    values = _validate.vector("rra_p_values", "scores", scores)
    count = int(_validate.number("rra_p_values", "n_lists", n_lists, low=1, integer=True))
    return np.minimum(1.0, count * 10.0**-values)
