"""The most violated ranking: exact against SciPy and enumeration, whatever weights and scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from rankwise import _core


def solve(f, b, a, c, n_threads=1):
    columns = (np.asarray(x, dtype=float) for x in (f, b))
    offsets = np.array([0, len(f)])
    weights = (np.asarray(x, dtype=float) for x in (a, c))
    ranking, cost = _core.most_violated(*columns, offsets, *weights, n_threads)
    return ranking, cost[0]


def costs(f, b, a, c):
    return np.outer(a, b) - np.outer(c, f)


def weights(rng, n):
    """Places' weights of measures, random and integer ones, some cut."""
    i = np.arange(1, n + 1)
    kinds = [
        1 / np.log2(1 + i), 1 / (1 + i), i**-0.25, 1.0 * (n - i + 1), np.sort(rng.random(n))[::-1],
        np.sort(rng.integers(0, 6, n))[::-1], 2.0 ** ((1 - i) / 4), i <= 3, i <= 1, 1 / i,
    ]  # fmt: skip
    k = rng.choice([n, 1, 3, 10, max(1, n // 2)])
    out = []
    for share in (0.4, 0.3):
        w = np.array(kinds[rng.integers(len(kinds))], dtype=float)
        if rng.random() < share:
            w[k:] = 0
        out.append(w)
    return out


def case(rng, n):
    levels = rng.integers(1, 7) if rng.random() < 0.9 else n
    gains = np.sort(rng.random(levels) * 4) if rng.random() < 0.5 else 2.0 ** np.arange(levels) - 1
    b = rng.choice(gains[:60], n)
    scores = [
        rng.normal(size=n), np.zeros(n), rng.integers(-3, 4, n), b + 0.3 * rng.normal(size=n),
        100 * rng.normal(size=n), 0.01 * rng.normal(size=n),
    ]  # fmt: skip
    return np.array(scores[rng.integers(len(scores))], dtype=float), b, *weights(rng, n)


@pytest.mark.parametrize("seed", range(4))
def test_equals_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    for t in range(600):
        f, b, a, c = case(rng, int(rng.integers(1, (8, 30, 90)[t % 3])))
        ranking, cost = solve(f, b, a, c)
        matrix = costs(f, b, a, c)
        assert sorted(ranking) == list(range(len(f)))
        scale = max(1.0, np.abs(matrix).max())
        assert cost == pytest.approx(matrix[np.arange(len(f)), ranking].sum(), abs=1e-9 * scale)
        best = matrix[linear_sum_assignment(matrix)].sum()
        assert cost <= best + 1e-9 * scale


def test_equals_enumeration():
    rng = np.random.default_rng(5)
    for _ in range(60):
        f, b, a, c = case(rng, int(rng.integers(1, 7)))
        matrix = costs(f, b, a, c)
        every = itertools.permutations(range(len(f)))
        best = min(matrix[np.arange(len(f)), list(p)].sum() for p in every)
        assert solve(f, b, a, c)[1] == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize(
    ("a", "c", "f", "b", "best"),
    [
        # Any swap of two makes the greedy merge worse; a rotation makes it better.
        ([13, 6, 1], [10, 2, 1], [1, 0, 2], [0, 0, 1], -11),
        ([12, 6, 2], [12, 6, 1], [2, 3, 3], [0, 1, 1], -38),
        # Merging two levels at a time is stuck; a cycle of three is not.
        ([15, 7, 1], [9, 2, 1], [4, 3, 8], [0, 1, 3], -40),
    ],
)
def test_tempting_methods_are_wrong(a, c, f, b, best):
    assert solve(f, b, a, c)[1] == best


def test_equal_weights_are_a_sort_by_score_less_gain():
    rng = np.random.default_rng(1)
    f, b = rng.normal(size=50), rng.choice([0.0, 1.0, 3.0], 50)
    c = 1 / np.log2(1 + np.arange(1, 51))
    assert solve(f, b, c, c)[0].tolist() == np.argsort(-(f - b), kind="stable").tolist()


@pytest.mark.parametrize("levels", [2, 4])
@pytest.mark.parametrize("k", [10, 10_000])
def test_lists_of_ten_thousand(levels, k):
    """Optimal by duality: the prices of places and documents meet the cost."""
    rng = np.random.default_rng(levels)
    n = 10_000
    b = rng.choice(2.0 ** np.arange(levels) - 1, n)
    f = 0.2 * b + 0.3 * rng.normal(size=n)
    i = np.arange(1, n + 1)
    a, c = np.where(i <= k, 1 / np.log2(1 + i), 0), 1 / (1 + i)
    ranking, cost = solve(f, b, a, c)
    assert sorted(ranking) == list(range(n))
    # No swap of neighbours, nor of places far apart, lowers the cost.
    places = np.concatenate([np.arange(200), rng.integers(0, n, 3000)])
    others = np.concatenate([np.arange(1, 201), rng.integers(0, n, 3000)])
    x, y = ranking[places], ranking[others]
    da, dc = a[places] - a[others], c[places] - c[others]
    change = da * (b[y] - b[x]) - dc * (f[y] - f[x])
    assert (change >= -1e-9).all()
    assert cost == pytest.approx((a * b[ranking] - c * f[ranking]).sum())
    assert cost <= (a * np.sort(b) - c * f[np.argsort(b, kind="stable")]).sum()


def test_any_number_of_threads():
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 60, 200)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = int(offsets[-1])
    f, b = rng.normal(size=n), rng.choice([0.0, 1.0, 3.0], n)
    i = np.arange(1, 61)
    one, two = (
        _core.most_violated(f, b, offsets, 1 / np.log2(1 + i), 1 / (1 + i), t) for t in (1, 2)
    )
    assert np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1])
    q = 7
    rows = slice(offsets[q], offsets[q + 1])
    alone, _ = solve(f[rows], b[rows], 1 / np.log2(1 + i), 1 / (1 + i))
    assert np.array_equal(alone, one[0][rows])


def test_what_the_kernel_refuses():
    offsets, good = np.array([0, 2]), np.array([1.0, 0.5])
    for f, b, a, c in [
        ([np.nan, 0.0], good, good, good),
        (good, [np.inf, 0.0], good, good),
        (good, good, [0.5, 1.0], good),
        (good, good, good, [1.0]),
    ]:
        arrays = [np.asarray(x, dtype=float) for x in (f, b)]
        rest = [np.asarray(x, dtype=float) for x in (a, c)]
        with pytest.raises(ValueError, match=r"finite|rising"):
            _core.most_violated(*arrays, offsets, *rest, 0)
