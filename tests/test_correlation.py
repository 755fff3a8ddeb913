"""Correlations of rankings against SciPy, sums over pairs, and bounds by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw

VALUES = st.sampled_from([-2.0, -0.0, 0.0, 0.5, 1.0, 1e300])
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=40)


def equal(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@given(PAIRS)
@pytest.mark.filterwarnings("ignore::scipy.stats.ConstantInputWarning")
def test_short_lists_equal_scipy(pairs):
    x, y = np.array(pairs).T
    equal(rw.kendall_tau(x, y), scipy.stats.kendalltau(x, y).statistic)
    equal(rw.weighted_tau(x, y), scipy.stats.weightedtau(x, y).statistic)
    equal(rw.spearman_rho(x, y), scipy.stats.spearmanr(x, y).statistic)


@pytest.mark.parametrize("n", [2, 15, 16, 17, 33, 199, 201, 1000, 5000])
@pytest.mark.parametrize("levels", [None, 7])
def test_long_lists_equal_scipy(n, levels):
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n))
    y += x
    if levels:
        x, y = np.floor(x * levels), np.floor(y * levels)
    equal(rw.kendall_tau(x, y), scipy.stats.kendalltau(x, y).statistic)
    np.testing.assert_allclose(
        rw.weighted_tau(x, y), scipy.stats.weightedtau(x, y).statistic, atol=1e-10
    )
    equal(rw.spearman_rho(x, y), scipy.stats.spearmanr(x, y).statistic)
    rank = rng.permutation(n)
    theirs = scipy.stats.weightedtau(x, y, rank=rank, weigher=lambda r: 0.9**r).statistic
    ours = rw.weighted_tau(x, y, rank=rank, weigher=lambda r: 0.9**r)
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


@given(PAIRS, st.sampled_from([0.0, 0.5, 1.0]))
def test_distance_and_tau_a_by_pairs(pairs, p):
    x, y = np.array(pairs).T
    signs = [
        (np.sign(x[i] - x[j]), np.sign(y[i] - y[j]))
        for i, j in itertools.combinations(range(len(x)), 2)
    ]
    distance = sum(a * b < 0 for a, b in signs) + p * sum((a == 0) != (b == 0) for a, b in signs)
    equal(rw.kendall_distance(x, y, p=p), distance)
    equal(rw.kendall_tau(x, y, variant="a"), np.mean([a * b for a, b in signs]))


@pytest.mark.parametrize("function", [rw.kendall_tau, rw.weighted_tau, rw.spearman_rho])
def test_queries_missing_rows_and_threads(function):
    rng = np.random.default_rng(0)
    qid = rng.integers(50, size=4000)
    x, y = rng.normal(size=(2, 4000)).round(1)
    x[rng.random(4000) < 0.1], y[rng.random(4000) < 0.1] = np.nan, -np.inf
    values = function(x, y, qid=qid)
    groups = rw.group_rows(qid)
    for q, value in zip(groups.ids, values, strict=True):
        here = (qid == q) & np.isfinite(x) & np.isfinite(y)
        np.testing.assert_allclose(value, function(x[here], y[here]), atol=1e-12)
    np.testing.assert_array_equal(values, function(x, y, qid=qid, n_threads=2))
    assert function(x, x) == pytest.approx(1)
    assert function(x, -np.where(np.isinf(x), np.nan, x)) == pytest.approx(-1)


@pytest.mark.parametrize("function", [rw.kendall_tau, rw.weighted_tau, rw.spearman_rho])
def test_degenerate_and_bad_columns(function):
    for x, y in (([1.0], [2.0]), ([], []), ([1.0, 1.0], [1.0, 2.0]), ([1, 2], [np.nan, 1])):
        assert np.isnan(function(x, y))
    with pytest.raises(ValueError, match="x and y must have the same length, got 2 and 1"):
        function([1, 2], [1])
    with pytest.raises(ValueError, match=r"y must not hold .inf"):
        function([1, 2], [1, np.inf])
    with pytest.raises(ValueError, match="qid and x must have the same length"):
        function([1, 2], [1, 2], qid=[1])


def test_bad_weighers():
    with pytest.raises(ValueError, match="a finite weight of at least 0 for every rank"):
        rw.weighted_tau([1, 2, 3], [1, 2, 3], weigher=lambda r: -r)
    with pytest.raises(ValueError, match="a finite weight of at least 0 for every rank"):
        rw.weighted_tau([1, 2, 3], [1, 2, 3], weigher=lambda r: r[:1])


# --- rankings ---------------------------------------------------------------------------------


def slow_rbo(a, b, p, depth):
    """The sum itself, to a depth where nothing is left to add."""
    return (1 - p) * sum(
        p ** (d - 1) * len(set(a[:d]) & set(b[:d])) / d for d in range(1, depth + 1)
    )


def test_rbo_of_infinite_lists_is_its_sum():
    rng = np.random.default_rng(0)
    a, b = rng.permutation(400).tolist(), rng.permutation(400).tolist()
    for p in (0.5, 0.9):
        for form in ("ext", "min"):
            value = rw.rank_biased_overlap(a, b, p=p, form=form)
            assert value == pytest.approx(slow_rbo(a, b, p, 400), abs=1e-12)
        assert rw.rank_biased_overlap(a, b, p=p, form="res") == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("lengths", [(3, 3), (2, 4), (0, 2), (1, 1), (4, 1)])
def test_rbo_bounds_are_what_continuations_reach(lengths):
    """min: nothing more in common for ever; min + res: all unseen agrees as soon as it can."""
    rng = np.random.default_rng(sum(lengths))
    for _ in range(5):
        a, b = (rng.permutation(5)[:n].tolist() for n in lengths)
        p, depth = 0.7, 120
        least = rw.rank_biased_overlap(a, b, p=p, form="min")
        most = least + rw.rank_biased_overlap(a, b, p=p, form="res")
        apart = slow_rbo(
            a + [f"x{i}" for i in range(depth)], b + [f"y{i}" for i in range(depth)], p, depth
        )
        assert least == pytest.approx(apart, abs=1e-9)
        # The best continuation: first what only the other list holds, then the same new items.
        only_b, only_a = [i for i in b if i not in a], [i for i in a if i not in b]
        new = [f"n{i}" for i in range(depth)]
        best = max(
            slow_rbo(a + list(x) + new, b + list(y) + new, p, depth)
            for x in itertools.permutations(only_b)
            for y in itertools.permutations(only_a)
        )
        assert most == pytest.approx(best, abs=1e-9)
        assert least - 1e-12 <= rw.rank_biased_overlap(a, b, p=p) <= most + 1e-12


def test_rbo_of_equal_lengths_by_its_formula():
    a, b, p = ["a", "b", "c", "d"], ["b", "a", "e", "d"], 0.8
    seen = [0, 2, 2, 3]
    expected = seen[-1] / 4 * p**4 + (1 - p) / p * sum(x / d * p**d for d, x in enumerate(seen, 1))
    assert rw.rank_biased_overlap(a, b, p=p) == pytest.approx(expected)
    assert rw.rank_biased_overlap(a, a, p=p) == pytest.approx(1)
    assert rw.rank_biased_overlap(a, ["x", "y"], p=p) == 0
    assert rw.rank_biased_overlap([], []) == 1


@given(st.permutations(range(6)), st.permutations(range(6)), st.integers(1, 6), st.floats(0, 1))
def test_top_k_distances_by_their_words(a, b, k, p):
    first, second = a[:k], b[:k]
    total = 0.0
    for i, j in itertools.combinations(set(first) | set(second), 2):
        sides = []
        for top in (first, second):
            if i not in top and j not in top:
                sides.append(0)
            else:
                x, y = (top.index(item) if item in top else k for item in (i, j))
                sides.append(1 if x < y else -1)
        total += p if 0 in sides else float(sides[0] != sides[1])
    assert rw.kendall_distance_top_k(a, b, k=k, p=p) == pytest.approx(total)
    place = [{item: i + 1 for i, item in enumerate(top)} for top in (first, second)]
    foot = sum(
        abs(place[0].get(i, k + 1) - place[1].get(i, k + 1)) for i in set(first) | set(second)
    )
    assert rw.footrule_top_k(a, b, k=k) == foot
    assert rw.overlap_at_k(a, b, k=k) == pytest.approx(len(set(first) & set(second)) / k)


def test_disjoint_lists_are_at_distance_one():
    a, b = list("abc"), list("xyz")
    assert rw.kendall_distance_top_k(a, b, k=3, normalise=True) == 1
    assert rw.footrule_top_k(a, b, k=3, normalise=True) == 1
    assert rw.kendall_distance_top_k(a, a, k=3, normalise=True) == 0
    with pytest.raises(ValueError, match="an item must appear once in b, got 'x' twice"):
        rw.overlap_at_k(a, ["x", "x"], k=2)
    with pytest.raises(ValueError, match="p must be a number between 0 and 1"):
        rw.rank_biased_overlap(a, b, p=1.0)


# --- systems ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statistic", "options"),
    [
        ("kendall_tau", {}),
        ("weighted_tau", {}),
        ("spearman_rho", {}),
        ("rank_biased_overlap", {"p": 0.8}),
        ("overlap_at_k", {"k": 3}),
    ],
)
def test_agreement_of_runs_and_columns(statistic, options, tmp_path):
    rng = np.random.default_rng(1)
    qid = np.repeat([f"q{i}" for i in range(4)], 10)
    doc = [f"d{i}" for i in range(40)]
    scores = {name: rng.normal(size=40) for name in ("a", "b", "c")}
    scores["d"] = scores["a"] + 0.1 * rng.normal(size=40)
    runs = {name: rw.Run.from_arrays(qid, doc, s) for name, s in scores.items()}
    found = rw.agreement(runs, statistic, **options)
    columns = rw.agreement(scores, statistic, qid=qid, **options)
    np.testing.assert_allclose(found.values, columns.values, rtol=1e-12)
    np.testing.assert_array_equal(found.values, found.values.T)
    assert found.values[0, 3] == found.values[0, 1:].max()
    figure = rw.plot_agreement(found, path=tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert abs(labels.index("a") - labels.index("d")) == 1
    assert "a" in str(found)


def test_agreement_refuses():
    with pytest.raises(ValueError, match="at least two systems are needed, got 1"):
        rw.agreement({"a": [1, 2]})
    with pytest.raises(ValueError, match="statistic must be one of"):
        rw.agreement({"a": [1, 2], "b": [1, 2]}, "tau")
