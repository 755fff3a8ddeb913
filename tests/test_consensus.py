"""Kemeny and footrule against enumeration, models against choix, RRA against binomials."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise import _consensus

nan = np.nan


def random_lists(seed, n, p, *, holes=0.3, levels=None):
    rng = np.random.default_rng(seed)
    R = rng.random((n, p)) if levels is None else rng.integers(levels, size=(n, p)).astype(float)
    R[rng.random(R.shape) < holes] = nan
    return R


def slow_distance(R, scores, missing):
    """Pairs that list and ranking order differently, a tie on either side half."""
    total = 0.0
    for column in R.T:
        x = np.where(np.isnan(column), -np.inf, column)
        if not np.isfinite(x).any():
            continue
        for i, j in itertools.combinations(range(len(R)), 2):
            if missing == "skip" and (np.isnan(column[i]) or np.isnan(column[j])):
                continue
            a, b = np.sign(scores[i] - scores[j]), (x[i] > x[j]) * 1.0 - (x[i] < x[j])
            total += 0.5 if a == 0 or b == 0 else float(a != b)
    return total


@pytest.mark.parametrize("missing", ["skip", "last"])
@pytest.mark.parametrize("seed", range(8))
def test_kemeny_is_the_best_of_all_orders(seed, missing):
    n = 2 + seed % 5
    R = random_lists(seed, n, 4, levels=None if seed % 2 else 3)
    best = min(slow_distance(R, p, missing) for p in itertools.permutations(range(n)))
    found = rw.kemeny_consensus(R, missing=missing)
    assert found.exact
    assert found.distance == pytest.approx(best)
    assert found.bound == found.distance
    assert rw.kemeny_distance(R, found.scores, missing=missing) == pytest.approx(best)
    assert slow_distance(R, found.scores, missing) == pytest.approx(best)
    tied = np.floor(found.scores / 2)
    assert rw.kemeny_distance(R, tied, missing=missing) == pytest.approx(
        slow_distance(R, tied, missing)
    )


@pytest.mark.parametrize("seed", range(4))
def test_linear_program_and_subsets_agree(seed):
    rng = np.random.default_rng(seed)
    W = rng.integers(0, 10, size=(9, 9)).astype(float)
    np.fill_diagonal(W, 0)

    def cost(order):
        return W[np.ix_(order, order)][np.tril_indices(9, -1)].sum()

    from rankwise import _core

    subsets, program = _core.best_order(W), _consensus._linear_program(W)
    assert sorted(program) == sorted(subsets) == list(range(9))
    assert cost(program) == pytest.approx(cost(subsets))
    local = _consensus._local(W, np.arange(9))
    assert cost(local) >= cost(subsets)
    for a in range(9):  # no single item gains by moving
        for to in range(9):
            moved = np.insert(np.delete(local, a), to, local[a])
            assert cost(moved) >= cost(local) - 1e-9


def test_a_circle_larger_than_the_table_of_subsets_is_solved():
    """Twenty items in a circle: each list is the identity, turned."""
    R = np.array([[(i + 7 * turn) % 20 for turn in range(5)] for i in range(20)], float)
    found = rw.kemeny_consensus(R)
    assert found.exact
    local = rw.kemeny_consensus(R, solver="local")
    assert found.distance <= local.distance
    small = rw.kemeny_consensus(R, exact_up_to=5)
    assert not small.exact
    assert small.bound <= found.distance <= small.distance


def test_extended_condorcet():
    """A set that wins all its pairs against the rest comes first, also without an exact solver."""
    rng = np.random.default_rng(3)
    top, rest = rng.permuted(np.tile(np.arange(5), (7, 1)), axis=1), None
    rest = rng.permuted(np.tile(np.arange(6), (7, 1)), axis=1)
    R = np.hstack([top + 100, rest]).T.astype(float)
    for solver in ("auto", "local"):
        scores = rw.kemeny(R, solver=solver)
        assert scores[:5].min() > scores[5:].max()


@pytest.mark.parametrize("missing", ["skip", "last"])
@pytest.mark.parametrize("seed", range(6))
def test_footrule_is_the_best_of_all_orders(seed, missing):
    n = 3 + seed % 4
    R = random_lists(seed, n, 4, levels=None if seed % 2 else 3)
    held = ~np.isnan(R)

    def distance(place):
        total = 0.0
        for col in range(R.shape[1]):
            here = held[:, col]
            if not here.any():
                continue
            for i in range(n):
                if here[i]:
                    rank = (R[here, col] > R[i, col]).sum() + (
                        1 + (R[here, col] == R[i, col]).sum()
                    ) / 2
                elif missing == "skip":
                    continue
                else:
                    rank = (here.sum() + 1 + n) / 2
                total += abs(rank / (here.sum() if missing == "skip" else n) - place[i] / n)
        return total

    best = min(distance(p) for p in itertools.permutations(range(1, n + 1)))
    scores = rw.footrule(R, missing=missing)
    assert sorted(scores) == list(range(n))
    assert distance(n - scores) == pytest.approx(best)


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_footrule_is_at_most_twice_kemeny(seed):
    R = random_lists(seed, 6, 5, holes=0)
    kemeny = rw.kemeny_consensus(R).distance
    assert rw.kemeny_distance(R, rw.footrule(R)) <= 2 * kemeny + 1e-9


# --- models -----------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.1, 2.0])
def test_bradley_terry_equals_choix(alpha):
    choix = pytest.importorskip("choix")
    R = random_lists(1, 6, 12)
    pairs = [(i, j) for c in R.T for i, j in itertools.permutations(range(6), 2) if c[i] > c[j]]
    expected = choix.mm_pairwise(6, pairs, alpha=alpha, tol=1e-11)
    np.testing.assert_allclose(rw.bradley_terry(R, alpha=alpha), expected, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 2.0])
def test_plackett_luce_equals_choix(alpha):
    choix = pytest.importorskip("choix")
    R = random_lists(2, 6, 12)
    ranked = [[i for i in np.argsort(-c) if not np.isnan(c[i])] for c in R.T]
    expected = choix.mm_rankings(6, [r for r in ranked if len(r) > 1], alpha=alpha, tol=1e-11)
    np.testing.assert_allclose(rw.plackett_luce(R, alpha=alpha), expected, atol=1e-8)


def log_likelihood(R, s, missing):
    """Of Plackett-Luce, ties all drawn from those left before them."""
    total = 0.0
    for column in R.T:
        x = np.where(np.isnan(column), -np.inf, column)
        for i in np.flatnonzero(np.isfinite(x)):
            left = (x <= x[i]) & (np.isfinite(x) | (missing == "last"))
            if (x[left] < x[i]).any():
                total += s[i] - math.log(np.exp(s[left]).sum())
    return total


@pytest.mark.parametrize("missing", ["skip", "last"])
def test_plackett_luce_is_a_maximum(missing):
    """With ties and absent items: no small step raises likelihood plus prior."""
    R = random_lists(5, 5, 9, levels=4)
    s = rw.plackett_luce(R, missing=missing, alpha=0.3)
    # The fixed point is stationary where strengths average 1.
    s = s - math.log(np.exp(s).mean())

    def goal(s):
        return log_likelihood(R, s, missing) + 0.3 * (s - np.exp(s)).sum()

    rng = np.random.default_rng(0)
    for _ in range(50):
        step = 1e-3 * rng.normal(size=5)
        assert goal(s + step) < goal(s)


def test_bradley_terry_and_plackett_luce_agree_on_pairs():
    R = np.array([[2, 1, nan, 2, 1], [1, nan, 2, nan, 2], [nan, 2, 1, 1, nan]])
    np.testing.assert_allclose(
        rw.bradley_terry(R, alpha=0), rw.plackett_luce(R, alpha=0), atol=1e-9
    )


@pytest.mark.parametrize("function", [rw.bradley_terry, rw.plackett_luce])
def test_models_scale_with_their_prior_and_say_when_there_is_no_maximum(function):
    R = random_lists(4, 6, 5)
    twice = function(np.hstack([R, R]), alpha=0.2)
    np.testing.assert_allclose(twice, function(R, alpha=0.1), atol=1e-8)
    with pytest.raises(ValueError, match="with alpha=0 every set of items must lose a pair"):
        function([[2, 2], [1, 1]], alpha=0)
    with pytest.raises(ValueError, match="must converge within max_iter=3 steps"):
        function(R, max_iter=3)


# --- robust rank aggregation ------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["last", "skip"])
def test_rra_by_binomials(missing):
    R = random_lists(6, 8, 5)
    n = len(R)
    expected = []
    for i in range(n):
        r = []
        for c in R.T:
            if np.isnan(c[i]):
                r += [1.0] if missing == "last" else []
            else:
                r.append((np.nansum(c > c[i]) + 1) / n)
        r.sort()
        m = len(r)
        tails = [
            sum(math.comb(m, h) * x**h * (1 - x) ** (m - h) for h in range(k, m + 1))
            for k, x in enumerate(r, start=1)
        ]
        expected.append(-math.log10(min(tails, default=1.0)))
    scores = rw.robust_rank_aggregation(R, missing=missing)
    np.testing.assert_allclose(scores, np.maximum(expected, 0), atol=1e-12)
    np.testing.assert_allclose(
        rw.rra_p_values(scores, 5), np.minimum(1, 5 * 10.0 ** -np.array(expected)), rtol=1e-10
    )


def test_rra_keeps_the_answer_when_most_lists_are_useless():
    rng = np.random.default_rng(8)
    good = np.repeat(np.arange(40.0)[:, None], 6, axis=1)
    R = np.hstack([good, rng.random((40, 14))])
    assert rw.robust_rank_aggregation(R).argmax() == 39


def test_counts_are_copies():
    lists = rw.RankLists.from_rankings([list("abc"), list("cab")], count=[2, 1])
    plain = rw.RankLists.from_rankings([list("abc")] * 2 + [list("cab")])
    for name in ("rra", "kemeny", "footrule", "bradley_terry", "plackett_luce"):
        function = rw.AGGREGATORS[name]
        np.testing.assert_allclose(function(lists), function(plain), atol=1e-9, err_msg=name)
