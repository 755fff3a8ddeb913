"""Rankings with least disagreement: Kemeny's (pairs) and the footrule's (places)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _validate
from rankwise._rank_lists import RankLists, list_weights, lists_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Largest set of items in a circle of majorities that ``kemeny`` orders exactly unless told.
EXACT_UP_TO = 40
_SUBSETS_UP_TO = 16  # beyond, a linear program is faster than the table of all subsets


@dataclass(frozen=True)
class Consensus:
    """A ranking with its disagreement, as :func:`kemeny_consensus` found it.

    Attributes
    ----------
    scores : float64 array of shape (n_items,)
        ``n - place``, higher is better.
    distance : float
        Disagreement with the lists, see :func:`kemeny_distance`.
    bound : float
        No ranking has less: the distance itself where ``exact``, otherwise the sum over pairs of
        the smaller side.
    exact : bool
        Whether the ranking is proved to be optimal.
    """

    scores: Floats
    distance: float
    bound: float
    exact: bool


def kemeny_distance(
    R: ArrayLike | RankLists,
    scores: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    missing: str = "skip",
) -> float:
    """The weight of all pairs, list by list, that a ranking orders the other way; one query.

    ``sum over i before j in the ranking of W[j, i]``, ``W`` from
    :func:`rankwise.pairwise_preferences`. A pair that a list or the ranking ties counts half.

    Parameters
    ----------
    R, weights, missing
        As in :func:`kemeny`.
    scores : array-like of shape (n_items,)
        The ranking, higher is better.

    Returns
    -------
    float

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([list("abc"), list("bca"), list("cab")])
    >>> rw.kemeny_distance(lists, [3, 2, 1])
    4.0
    """
    lists = _one_query("kemeny_distance", R)
    values = _validate.vector("kemeny_distance", "scores", scores)
    if len(values) != lists.n_items:
        raise ValueError(
            f"kemeny_distance: scores must hold one number per item, got {len(values)} for "
            f"{lists.n_items} items"
        )
    W = _preferences("kemeny_distance", lists, weights, missing, 0)
    return _distance(W, lists.groups.gather(values))


def kemeny(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    solver: str = "auto",
    exact_up_to: int = EXACT_UP_TO,
) -> Floats:
    """Kemeny's consensus: the ranking whose pairs disagree least with the lists'.

    Minimises ``sum over i before j of W[j, i]``. Items that no circle of majorities joins are
    ordered by their majorities, which is optimal; each circle is then solved by itself: over all
    subsets up to 16 items, by linear programming with triangle inequalities (integer where needed)
    up to ``exact_up_to``, by local Kemenisation beyond.

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
    solver : {"auto", "exact", "local"}
        ``"auto"`` as above; ``"exact"`` whatever the size; ``"local"`` only moves single items
        from the Borda order while that lowers the distance, so neighbours agree with majorities.
    exact_up_to : int
        Largest circle that ``"auto"`` solves exactly.

    Returns
    -------
    float64 array of shape (n_items,)
        ``n - place``. Where several rankings are optimal, one of them: the Borda order, then the
        order of rows, decides.

    Notes
    -----
    NP-hard in general. :func:`kemeny_consensus` also says whether the optimum is proved.

    References: ``kemeny1959``, ``dwork2001``, ``conitzer2006``.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([list("abc"), list("bca"), list("cab"), list("bac")])
    >>> lists.ranking(rw.kemeny(lists))
    ['b', 'a', 'c']
    """
    lists = lists_of("kemeny", R, qid)
    out = np.empty(lists.n_items)
    offsets = lists.groups.offsets
    for q in range(lists.n_queries):
        W = _preferences("kemeny", lists, weights, missing, q)
        out[offsets[q] : offsets[q + 1]] = _solve(W, solver, exact_up_to).scores
    return lists.groups.scatter(out)


def kemeny_consensus(
    R: ArrayLike | RankLists,
    *,
    weights: ArrayLike | None = None,
    missing: str = "skip",
    solver: str = "auto",
    exact_up_to: int = EXACT_UP_TO,
) -> Consensus:
    """Kemeny's consensus of one query with its distance, a bound, and whether it is optimal.

    Parameters
    ----------
    R, weights, missing, solver, exact_up_to
        As in :func:`kemeny`.

    Returns
    -------
    Consensus

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.RankLists.from_rankings([list("abc"), list("bca"), list("cab"), list("bac")])
    >>> found = rw.kemeny_consensus(lists)
    >>> found.distance, found.exact
    (5.0, True)
    """
    lists = _one_query("kemeny_consensus", R)
    W = _preferences("kemeny_consensus", lists, weights, missing, 0)
    found = _solve(W, solver, exact_up_to)
    return Consensus(lists.groups.scatter(found.scores), found.distance, found.bound, found.exact)


def _one_query(where: str, R: Any) -> RankLists:
    lists = lists_of(where, R, None)
    if lists.n_queries != 1:
        raise ValueError(f"{where}: one query is needed, got {lists.n_queries}")
    return lists


def _preferences(
    where: str, lists: RankLists, weights: ArrayLike | None, missing: str, query: int
) -> Floats:
    _validate.choice(where, "missing", missing, ("skip", "last"))
    weight = list_weights(where, lists, weights)
    return _core.lists_preferences(*lists._columns, weight, missing, query, 0)


def _distance(W: Floats, scores: Floats) -> float:
    before = np.subtract.outer(scores, scores)
    return float((W.T * ((before > 0) + 0.5 * (before == 0))).sum() - 0.5 * W.trace())


def _solve(W: Floats, solver: str, exact_up_to: int) -> Consensus:
    _validate.choice("kemeny", "solver", solver, ("auto", "exact", "local"))
    _validate.number("kemeny", "exact_up_to", exact_up_to, low=1, integer=True)
    n = len(W)
    start = np.argsort(-W.sum(axis=1) + W.sum(axis=0), kind="stable")
    bound = float(np.minimum(W, W.T)[np.triu_indices(n, 1)].sum())
    if solver == "local":
        order, exact = _local(W, start), False
    else:
        order, exact = _by_circles(W, start, n if solver == "exact" else exact_up_to)
    scores = np.empty(n)
    scores[order] = n - 1.0 - np.arange(n)
    distance = _distance(W, scores)
    exact = exact or distance <= bound
    return Consensus(scores, distance, distance if exact else bound, exact)


def _by_circles(W: Floats, start: Ints, limit: int) -> tuple[Ints, bool]:
    """Circles of strict majorities one after the other, each ordered by itself."""
    place = np.empty(len(W), np.int64)
    place[start] = np.arange(len(W))
    order: list[int] = []
    exact = True
    for circle in _circles(W, place):
        members = np.array(sorted(circle, key=place.__getitem__))
        if len(members) > 2:
            part = W[np.ix_(members, members)]
            if len(members) <= min(limit, _SUBSETS_UP_TO):
                members = members[_core.best_order(np.ascontiguousarray(part))]
            elif len(members) <= limit:
                members = members[_linear_program(part)]
            else:
                members, exact = members[_local(part, np.arange(len(members)))], False
        order += members.tolist()
    return np.array(order, np.int64), exact


def _circles(W: Floats, place: Ints) -> list[list[int]]:
    """Strongly connected sets of the majority graph, winners first, else by the Borda order."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    beats = W.T < W
    n_sets, label = connected_components(
        csr_matrix(beats.astype(np.int8)), directed=True, connection="strong"
    )
    members: list[list[int]] = [[] for _ in range(n_sets)]
    for item, name in enumerate(label.tolist()):
        members[name].append(item)
    # Sets that must come before each set; the free one whose first item is best goes next.
    above = np.zeros((n_sets, n_sets), bool)
    winners, losers = np.nonzero(beats)
    above[label[losers], label[winners]] = True
    np.fill_diagonal(above, False)
    waiting = above.sum(axis=1)
    best = np.array([min(place[i] for i in group) for group in members])
    done = np.zeros(n_sets, bool)
    result = []
    for _ in range(n_sets):
        free = np.flatnonzero((waiting == 0) & ~done)
        chosen = free[best[free].argmin()]
        done[chosen] = True
        waiting -= above[:, chosen]
        result.append(members[chosen])
    return result


def _local(W: Floats, order: Ints) -> Ints:
    """Moves single items to their best places until no move lowers the distance."""
    order = order.copy()
    improved = True
    while improved:
        improved = False
        for item in order.copy():
            rest = order[order != item]
            at = int(np.flatnonzero(order == item)[0])
            # Cost of standing at each place: those before prefer it, those behind do not.
            cost = np.concatenate([[0.0], np.cumsum(W[item, rest] - W[rest, item])])
            to = int(cost.argmin())
            if cost[to] < cost[at] - 1e-9:
                order = np.insert(rest, to, item)
                improved = True
    return order


def _linear_program(W: Floats) -> Ints:
    """One circle by linear programming: x[i, j] = 1 where i stands before j, i < j.

    Triangle inequalities come in as they are violated; integers are asked for only when the linear
    optimum is fractional, which real preferences seldom make it.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_matrix

    n = len(W)
    first, second = np.triu_indices(n, 1)
    column = np.zeros((n, n), np.int64)
    column[first, second] = np.arange(len(first))
    cost = W[second, first] - W[first, second]
    rows: list[tuple[int, int, int]] = []
    low: list[float] = []
    integral = 0
    while True:
        constraints = []
        if rows:
            table = csr_matrix(
                (
                    np.tile([1.0, 1.0, -1.0], len(rows)),
                    (np.repeat(np.arange(len(rows)), 3), np.array(rows).ravel()),
                ),
                shape=(len(rows), len(cost)),
            )
            constraints = [LinearConstraint(table, np.array(low), np.array(low) + 1)]
        found = milp(
            cost,
            integrality=np.full(len(cost), integral),
            bounds=Bounds(0, 1),
            constraints=constraints,
        )
        if found.x is None:
            raise ValueError(f"kemeny: the solver must find an optimum, got: {found.message}")
        new = _violated(found.x, column, n)
        if new:
            rows += new
            low += [0.0] * len(new)
            continue
        if np.abs(found.x - found.x.round()).max() > 1e-6:
            integral = 1
            continue
        x = np.zeros((n, n))
        x[first, second] = found.x.round()
        x[second, first] = 1 - x[first, second]
        return np.argsort(-x.sum(axis=1), kind="stable")


def _violated(x: Floats, column: Ints, n: int) -> list[tuple[int, int, int]]:
    """Triples i < j < k with x_ij + x_jk - x_ik outside [0, 1], the worst ones."""
    full = np.zeros((n, n))
    upper = np.triu_indices(n, 1)
    full[upper] = x
    total = full[:, :, None] + full[None, :, :] - full[:, None, :]
    i, j, k = np.ogrid[:n, :n, :n]
    excess = np.where((i < j) & (j < k), np.maximum(total - 1, -total), 0.0)
    found = np.flatnonzero(excess > 1e-6)
    worst = found[np.argsort(-excess.ravel()[found], kind="stable")[: 20 * n]]
    a, b, c = np.unravel_index(worst, excess.shape)
    triples = zip(column[a, b], column[b, c], column[a, c], strict=True)
    return [(int(p), int(q), int(r)) for p, q, r in triples]


def footrule(
    R: ArrayLike | RankLists,
    *,
    qid: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    missing: str = "skip",
) -> Floats:
    """Footrule-optimal aggregation: the ranking whose places are nearest to the lists' places.

    Minimises ``sum over lists l and items i of weight_l * |place(i) / n - rank_l(i) / n_l|``, a
    linear assignment of items to places (on full lists Spearman's footrule, divided by n). It is
    at most twice as far from the lists, in pairs, as Kemeny's consensus.

    Parameters
    ----------
    R, qid, weights
        As in :func:`kemeny`.
    missing : {"skip", "last"}
        The sum is over the items that a list holds, ranks scaled by its length ``n_l`` (the
        scaled footrule of Dwork et al.), or absent items share the list's last places.

    Returns
    -------
    float64 array of shape (n_items,)
        ``n - place``. Where several rankings are optimal, one of them, the same when all lists are
        repeated.

    Notes
    -----
    O(n^3) per query. Distances, as means over the lists, are told apart to 1e-12.

    References: ``dwork2001``.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.footrule([[3, 2, 3], [2, 3, 1], [1, 1, 2]])
    array([2., 1., 0.])
    """
    from scipy.optimize import linear_sum_assignment

    _validate.choice("footrule", "missing", missing, ("skip", "last"))
    lists = lists_of("footrule", R, qid)
    weight = list_weights("footrule", lists, weights)
    ranks = lists.groups.gather(lists.ranks())
    out = np.empty(lists.n_items)
    for q in range(lists.n_queries):
        rows = slice(*lists.groups.offsets[q : q + 2])
        mine = ranks[rows]
        n = len(mine)
        held = (~np.isnan(mine)).sum(axis=0)
        if missing == "last":
            mine = np.where(np.isnan(mine), (held + 1 + n) / 2, mine) / n
        else:
            mine = mine / np.maximum(held, 1)
        wanted = np.where(held > 0, weight, 0.0)
        gap = np.abs(mine[:, None, :] - (np.arange(1, n + 1) / n)[None, :, None])
        cost = np.nansum(gap * wanted, axis=2) / max(float(wanted.sum()), np.finfo(float).tiny)
        # Among equally near rankings rounding errors must not choose: repeating lists would.
        cost = np.round(cost, 12)
        item, place = linear_sum_assignment(cost)
        out[rows][item] = n - 1.0 - place
    return lists.groups.scatter(out)
