"""Aggregators: golden cases, independent slow versions, and what every one of them must do."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rankwise as rw

nan = np.nan
GOLDEN = np.array([[0.9, nan, 0.4], [0.5, 0.8, 0.3], [0.1, 0.7, nan], [nan, 0.2, nan]])
FULL = [list("ABCD"), list("BADC"), list("CABD")]
PARTIAL = [list("ABC"), list("BD"), list("CADE")]
THREE = [list("ABC"), list("ACB"), list("BAC")]
CYCLE = [list("ABC"), list("BCA"), list("CAB")]
CHAINS = {1: rw.mc1, 2: rw.mc2, 3: rw.mc3, 4: rw.mc4}
METHODS = list(rw.AGGREGATORS.items())
IDS = [name for name, _ in METHODS]
# Rankings without ties, one of several optimal ones: what is unique is their distance.
STRICT = ("kemeny", "footrule")


def without(*names):
    """Parameters for all aggregators but some."""
    chosen = [(name, function) for name, function in METHODS if name not in names]
    return pytest.mark.parametrize(("name", "function"), chosen, ids=[name for name, _ in chosen])


def accepted(function, **options):
    """The options that an aggregator takes."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in known}


def lists(rankings):
    """Rank lists whose items stand in the order of the alphabet."""
    items = sorted({name for ranking in rankings for name in ranking})
    return rw.RankLists.from_rankings(rankings, items=items)


# --- golden cases -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "comb_sum": [1.3, 1.6, 0.8, 0.2],
        "comb_min": [0.4, 0.3, 0.1, 0.2],
        "comb_max": [0.9, 0.8, 0.7, 0.2],
        "comb_med": [0.65, 0.5, 0.4, 0.2],
        "comb_anz": [0.65, 1.6 / 3, 0.4, 0.2],
        "comb_mnz": [2.6, 4.8, 1.6, 0.2],
        "rrf": [1 / 61 + 1 / 61, 1 / 62 + 1 / 61 + 1 / 62, 1 / 63 + 1 / 62, 1 / 63],
    }.items(),
)
def test_golden_fusion(name, expected):
    np.testing.assert_allclose(rw.AGGREGATORS[name](GOLDEN), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("kind", "eps", "expected"),
    [
        (1, 0.0, [0.425246, 0.306177, 0.229185, 0.039391]),
        (2, 0.0, [0.422732, 0.317049, 0.233300, 0.026919]),
        (3, 0.0, [0.505319, 0.303191, 0.170213, 0.021277]),
        (4, 0.0, [1, 0, 0, 0]),
        (1, 0.05, [0.412291, 0.303708, 0.230229, 0.053771]),
        (2, 0.05, [0.408846, 0.314113, 0.234807, 0.042234]),
        (3, 0.05, [0.474374, 0.305905, 0.180515, 0.039206]),
        (4, 0.05, [0.869565, 0.082816, 0.031226, 0.016393]),
    ],
)
def test_golden_chains_on_full_lists(kind, eps, expected):
    np.testing.assert_allclose(CHAINS[kind](lists(FULL), eps=eps), expected, atol=5.1e-7)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (1, [0.438206, 0.230577, 0.296950, 0.021153, 0.013115]),
        (2, [0.420297, 0.227503, 0.317379, 0.021707, 0.013115]),
        (3, [0.514801, 0.236521, 0.210583, 0.024980, 0.013115]),
        (4, [0.777032, 0.114650, 0.071117, 0.021072, 0.016129]),
    ],
)
def test_golden_chains_on_partial_lists(kind, expected):
    np.testing.assert_allclose(CHAINS[kind](lists(PARTIAL)), expected, atol=5.1e-7)


@pytest.mark.parametrize(
    ("kind", "eps", "expected"),
    [
        (1, 0.0, [0.577778, 0.333333, 0.088889]),
        (2, 0.0, [0.638889, 0.305556, 0.055556]),
        (3, 0.0, [0.684211, 0.263158, 0.052632]),
        (4, 0.0, [1, 0, 0]),
        (4, 0.05, [0.909091, 0.066519, 0.024390]),
    ],
)
def test_golden_chains_on_three_items(kind, eps, expected):
    np.testing.assert_allclose(CHAINS[kind](lists(THREE), eps=eps), expected, atol=5.1e-7)


def test_golden_rows_of_the_chains():
    P = rw.markov_chain(lists(FULL), 1)
    expected = [[0.6, 0.2, 0.2, 0], [1 / 3, 1 / 2, 1 / 6, 0], [0.25, 0.25, 0.375, 0.125]]
    np.testing.assert_allclose(P, [*expected, [3 / 11, 3 / 11, 2 / 11, 3 / 11]])
    np.testing.assert_allclose(rw.markov_chain(lists(FULL), 2)[0], [2 / 3, 1 / 6, 1 / 6, 0])
    np.testing.assert_allclose(rw.markov_chain(lists(FULL), 3)[0], [5 / 6, 1 / 12, 1 / 12, 0])
    expected = [[1, 0, 0, 0], [0.25, 0.75, 0, 0], [0.25, 0.25, 0.5, 0], [0.25] * 4]
    np.testing.assert_allclose(rw.markov_chain(lists(FULL), 4), expected)


def test_golden_borda():
    np.testing.assert_array_equal(rw.borda(lists(FULL)), [7, 6, 4, 1])


@pytest.mark.parametrize("kind", CHAINS)
def test_a_circle_of_majorities_is_a_tie(kind):
    for eps in (0.0, 0.05):
        np.testing.assert_allclose(CHAINS[kind](lists(CYCLE), eps=eps), [1 / 3] * 3, rtol=1e-12)


# --- slow versions ----------------------------------------------------------------------------

VALUES = [nan, -np.inf, -1.0, 0.0, 0.5, 0.5, 2.0]


@st.composite
def score_columns(draw, *, full=False, max_items=6, max_lists=4):
    n, p = draw(st.integers(1, max_items)), draw(st.integers(1, max_lists))
    value = st.sampled_from(VALUES[2:] if full else VALUES)
    return np.array(draw(st.lists(value, min_size=n * p, max_size=n * p))).reshape(n, p)


def held(R):
    return np.isfinite(R)


def places(R, missing):
    """Mean rank of each item in each list; with 'last' absent items share the last places."""
    out = np.full(R.shape, nan)
    for col in range(R.shape[1]):
        here = held(R)[:, col]
        if not here.any():
            continue
        for i in range(len(R)):
            if here[i]:
                above = (R[here, col] > R[i, col]).sum()
                out[i, col] = above + (1 + (R[here, col] == R[i, col]).sum()) / 2
            elif missing == "last":
                out[i, col] = here.sum() + (1 + (~here).sum()) / 2
    return out


def slow_preferences(R, missing):
    n = len(R)
    ranks = places(R, missing)
    W = np.zeros((n, n))
    for col in range(R.shape[1]):
        for i, j in itertools.permutations(range(n), 2):
            if ranks[i, col] < ranks[j, col]:
                W[i, j] += 1
            elif ranks[i, col] == ranks[j, col]:
                W[i, j] += 0.5
    return W


@given(score_columns(), st.sampled_from(["skip", "last"]))
def test_preferences_borda_and_copeland_by_hand(R, missing):
    W = slow_preferences(R, missing)
    np.testing.assert_array_equal(rw.pairwise_preferences(R, missing=missing), W)
    np.testing.assert_allclose(rw.borda(R, missing=missing), W.sum(axis=1), atol=1e-12)
    np.testing.assert_array_equal(
        rw.copeland(R, missing=missing), (W > W.T).sum(axis=1) - (W < W.T).sum(axis=1)
    )


def mean_points(points, R, missing):
    """Sum over lists of the mean of points(rank) over the places an item may take."""
    out = np.zeros(len(R))
    for col in range(R.shape[1]):
        here = held(R)[:, col]
        if not here.any():
            continue
        for i in range(len(R)):
            if here[i]:
                above = (R[here, col] > R[i, col]).sum()
                span = range(above + 1, above + 1 + (R[here, col] == R[i, col]).sum())
            elif missing == "last":
                span = range(here.sum() + 1, len(R) + 1)
            else:
                continue
            out[i] += np.mean([points(rank) for rank in span])
    return out


@given(score_columns(), st.sampled_from(["skip", "last"]))
def test_points_are_means_over_tied_places(R, missing):
    square = mean_points(lambda rank: 1 / rank**2, R, missing)
    hits = held(R).sum(axis=1)
    close = {"rtol": 1e-12, "atol": 1e-15}
    expected = mean_points(lambda rank: 1 / (60 + rank), R, missing)
    np.testing.assert_allclose(rw.rrf(R, missing=missing), expected, **close)
    np.testing.assert_allclose(rw.isr(R, missing=missing), hits * square, **close)
    logs = np.where(hits > 0, np.log(np.maximum(hits, 1) + 0.01), 0)
    np.testing.assert_allclose(rw.log_isr(R, sigma=0.01, missing=missing), logs * square, **close)


@given(score_columns(), st.sampled_from(["skip", "zero", "min"]), st.data())
def test_combinations_by_hand(R, missing, data):
    weights = np.array(
        data.draw(st.lists(st.sampled_from([1, 2, 3]), min_size=R.shape[1], max_size=R.shape[1]))
    )
    expected = {name: [] for name in ("sum", "mnz", "min", "max", "med", "anz")}
    for row in R:
        values, mass = [], []
        for col, value in enumerate(row):
            column = R[held(R)[:, col], col]
            if not len(column) or (missing == "skip" and not np.isfinite(value)):
                continue
            fill = column.min() if missing == "min" else 0.0
            values.append(value if np.isfinite(value) else fill)
            mass.append(weights[col])
        total = float(np.dot(values, mass))
        repeated = np.repeat(values, mass) if values else np.array([-np.inf])
        expected["sum"].append(total)
        expected["mnz"].append(total * np.isfinite(row).sum())
        expected["min"].append(repeated.min())
        expected["max"].append(repeated.max())
        expected["med"].append(np.median(repeated) if values else -np.inf)
        expected["anz"].append(total / sum(mass) if values else -np.inf)
    for name, values in expected.items():
        got = rw.AGGREGATORS[f"comb_{name}"](R, missing=missing, weights=weights)
        np.testing.assert_allclose(got, values, rtol=1e-12, atol=1e-12, err_msg=name)


def slow_chain(R, kind, missing):
    """Dwork's chains by their words, one state at a time."""
    n, ranks = len(R), places(R, missing)
    P = np.zeros((n, n))
    W = slow_preferences(R, missing)
    for i in range(n):
        mine = [col for col in range(R.shape[1]) if np.isfinite(ranks[i, col])]
        if not mine:
            P[i] = 1 / n
            continue
        for col in mine:
            members = [j for j in range(n) if np.isfinite(ranks[j, col])]
            above = [j for j in members if ranks[j, col] <= ranks[i, col]]
            if kind == 1:
                P[i, above] += 1
            elif kind == 2:
                P[i, above] += 1 / len(mine) / len(above)
            elif kind == 3:
                for j in members:
                    P[i, j if ranks[j, col] < ranks[i, col] else i] += 1 / len(mine) / len(members)
        if kind == 1:
            P[i] /= P[i].sum()
        if kind == 4:
            for j in range(n):
                P[i, j if W[j, i] > W[i, j] else i] += 1 / n
    return P


@given(score_columns(), st.sampled_from(["skip", "last"]), st.sampled_from([1, 2, 3, 4]))
def test_chains_by_hand(R, missing, kind):
    P = rw.markov_chain(R, kind, missing=missing)
    np.testing.assert_allclose(P, slow_chain(R, kind, missing), atol=1e-12)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    n, eps = len(R), 0.05
    x = np.linalg.solve(np.eye(n) - (1 - eps) * P.T, np.full(n, eps / n))
    np.testing.assert_allclose(CHAINS[kind](R, missing=missing), x, atol=1e-9)


@given(score_columns(full=True))
def test_one_step_of_mc3_is_borda_and_of_mc4_copeland(R):
    """On full lists; from a uniform start."""
    start = np.full(len(R), 1 / len(R))
    step = start @ rw.markov_chain(R, 3)
    np.testing.assert_allclose(
        step,
        start + (rw.borda(R) - rw.borda(R).mean()) / (len(R) ** 2 * R.shape[1]) * 2,
        atol=1e-12,
    )
    step = start @ rw.markov_chain(R, 4)
    np.testing.assert_allclose(step, start + rw.copeland(R) / len(R) ** 2, atol=1e-12)


@given(score_columns(), st.sampled_from(["skip", "last"]))
def test_neighbours_in_condorcet_agree_with_the_majority(R, missing):
    W = rw.pairwise_preferences(R, missing=missing)
    scores = rw.condorcet(R, missing=missing)
    assert scores.sum() == pytest.approx(len(R) * (len(R) - 1) / 2)
    order = np.argsort(-scores, kind="stable")
    for a, b in itertools.pairwise(order):
        if scores[a] > scores[b]:
            below = [c for c in order if scores[c] == scores[b]]
            assert any(W[a, c] >= W[c, a] for c in below)
        else:
            np.testing.assert_array_equal(
                W[a, np.arange(len(R)) != b], W[a, np.arange(len(R)) != b]
            )


# --- what every aggregator must do ------------------------------------------------------------


@without(*STRICT)
@given(R=score_columns(), data=st.data())
@settings(max_examples=20)
def test_renaming_items_renames_the_result(name, function, R, data):
    order = data.draw(st.permutations(range(len(R))))
    np.testing.assert_allclose(function(R[order]), function(R)[order], rtol=1e-9, atol=1e-12)


@without("rra", "bradley_terry", "plackett_luce")
@given(R=score_columns())
@example(R=np.array([[0.0, -1.0], [0.0, -1.0], [-1.0, 0.0]]))  # several nearest rankings
@settings(max_examples=20)
def test_repeating_all_lists_changes_no_order(name, function, R):
    options = {"sigma": 0.0} if name == "log_isr" else {}
    once, twice = function(R, **options), function(np.hstack([R, R]), **options)
    once, twice = (np.maximum(x, -1e6) for x in (once, twice))  # -inf: in no list
    if name == "log_isr":  # the number of lists is in the score: only equal counts compare
        counts = held(R).sum(axis=1)
        groups = [counts == c for c in set(counts)]
    else:
        groups = [np.ones(len(R), bool)]
    for rows in groups:
        gap = np.subtract.outer(once[rows], once[rows])
        again = np.subtract.outer(twice[rows], twice[rows])
        clear = np.abs(gap) > 1e-9
        assert (np.sign(gap)[clear] == np.sign(again)[clear]).all()


@pytest.mark.parametrize(("name", "function"), METHODS, ids=IDS)
def test_unanimous_lists_are_returned(name, function):
    rng = np.random.default_rng(0)
    for n, p in ((2, 1), (5, 3), (40, 4)):
        order = rng.permutation(n)
        R = np.repeat(-order[:, None].astype(float) + n, p, axis=1)
        options = {"sigma": 0.5} if name == "log_isr" else {}
        scores = function(R, **options)
        assert np.argsort(-scores, kind="stable").tolist() == np.argsort(order).tolist()
        assert len(set(scores)) == n


@pytest.mark.parametrize("name", ["condorcet", "copeland", "mc4", "kemeny"])
@given(R=score_columns(full=True))
def test_a_condorcet_winner_comes_first(name, R):
    W = rw.pairwise_preferences(R)
    wins = (W > W.T).sum(axis=1) == len(R) - 1
    if wins.any():
        scores = rw.AGGREGATORS[name](R)
        assert scores.argmax() == wins.argmax()
        assert (scores == scores.max()).sum() == 1


@without(*STRICT)
def test_all_ties_and_equal_rows_are_ties(name, function):
    scores = function(np.full((5, 3), 2.5))
    assert len(set(scores)) == 1
    R = np.random.default_rng(1).normal(size=(6, 4)).round(1)
    scores = function(np.vstack([R, R[2:3]]))
    assert scores[2] == scores[6]


@pytest.mark.parametrize(("name", "function"), METHODS, ids=IDS)
def test_queries_are_aggregated_by_themselves(name, function):
    rng = np.random.default_rng(2)
    R = rng.normal(size=(60, 4)).round(1)
    R[rng.random(R.shape) < 0.3] = nan
    qid = rng.permutation(np.repeat(["x", "y", "z"], [30, 10, 20]))
    whole = function(R, qid=qid)
    for q in "xyz":
        np.testing.assert_array_equal(whole[qid == q], function(R[qid == q]))
    np.testing.assert_array_equal(whole, function(R, qid=qid, **accepted(function, n_threads=2)))


@pytest.mark.parametrize(("name", "function"), METHODS, ids=IDS)
def test_an_empty_list_takes_no_part(name, function):
    R = GOLDEN
    empty = np.full((4, 1), nan)
    np.testing.assert_array_equal(function(np.hstack([R, empty])), function(R))


@pytest.mark.parametrize("name", [n for n in IDS if n not in ("comb_mnz", "isr", "log_isr", "rra")])
def test_a_weight_is_a_repetition(name):
    function = rw.AGGREGATORS[name]
    doubled = function(np.hstack([GOLDEN, GOLDEN[:, :1]]))
    weighted = function(GOLDEN, weights=[2, 1, 1])
    np.testing.assert_allclose(weighted, doubled, rtol=1e-8)
    np.testing.assert_array_equal(
        function(GOLDEN, weights=[1, 0, 1]), function(np.where([True, False, True], GOLDEN, nan))
    )


@pytest.mark.parametrize(("name", "function"), METHODS, ids=IDS)
def test_bad_input_is_one_sentence(name, function):
    with pytest.raises(
        ValueError, match=f"{function.__name__}: R must not hold .inf, got it at item 1 of list 0"
    ):
        function([[1.0, 2.0], [np.inf, 1.0]])
    with pytest.raises(ValueError, match=f"{function.__name__}: R must be two-dimensional"):
        function([1.0, 2.0])
    with pytest.raises(ValueError, match="at least one item and one list"):
        function(np.empty((0, 2)))
    with pytest.raises(TypeError, match=r"RankLists\.from_rankings"):
        function([["a", "b"], ["b", "a"]])
    if accepted(function, weights=1):
        with pytest.raises(ValueError, match="one number per list"):
            function(GOLDEN, weights=[1, 2])
    for bad in ([1, -1, 1], [nan, 1, 1], [0, 0, 0], [np.inf, 1, 1]):
        if not accepted(function, weights=bad):
            continue
        with pytest.raises(ValueError, match="weights must be finite, at least 0 and not all 0"):
            function(GOLDEN, weights=bad)
    with pytest.raises(ValueError, match="missing must be one of"):
        function(GOLDEN, missing="nothing")
    with pytest.raises(ValueError, match="qid must have one entry per row of R, got 2 for 4"):
        function(GOLDEN, qid=[1, 2])


# --- rank lists -------------------------------------------------------------------------------


def test_rankings_become_columns_and_back():
    lists = rw.RankLists.from_rankings([["a", ("b", "c"), "d"], [], ["d"]])
    np.testing.assert_array_equal(
        lists.matrix(), [[3, nan, nan], [2, nan, nan], [2, nan, nan], [1, nan, 1]]
    )
    np.testing.assert_array_equal(lists.ranks()[:, 0], [1, 2.5, 2.5, 4])
    np.testing.assert_array_equal(lists.ranks(ties="worst")[:, 0], [1, 3, 3, 4])
    assert lists.ranking(rw.borda(lists)) == ["a", "d", "b", "c"]
    same = rw.RankLists.from_matrix(lists.matrix(), items=lists.items)
    np.testing.assert_array_equal(rw.borda(same), rw.borda(lists))


def test_counts_multiply_weights():
    once = rw.RankLists.from_rankings([list("abc"), list("cab")], count=[3, 1])
    plain = rw.RankLists.from_rankings([list("abc")] * 3 + [list("cab")])
    np.testing.assert_array_equal(rw.borda(once), rw.borda(plain))
    np.testing.assert_array_equal(
        rw.borda(once, weights=[1, 3]),
        3 * rw.borda(rw.RankLists.from_rankings([list("abc"), list("cab")])),
    )


def test_bad_rankings_are_one_sentence():
    make = rw.RankLists.from_rankings
    with pytest.raises(ValueError, match="an item must appear once in a ranking, got 'a' twice"):
        make([["a", "b"], ["a", "b", "a"]])
    with pytest.raises(ValueError, match="at least one ranking is needed, got none"):
        make([])
    with pytest.raises(TypeError, match="a ranking must be a list of ids, best first, got 'ab'"):
        make(["ab", "ba"])
    with pytest.raises(ValueError, match="every ranked item must be one of items, got 'z'"):
        make([["a", "z"]], items=["a", "b"])


# --- normalisation ----------------------------------------------------------------------------


def test_norms_by_hand():
    R = np.array([[3.0, 1.0], [1.0, nan], [1.0, 4.0], [nan, nan]])
    expected = {
        "minmax": [[1, 0], [0, nan], [0, 1], [nan, nan]],
        "max": [[1, 0.25], [1 / 3, nan], [1 / 3, 1], [nan, nan]],
        "sum": [[1, 0], [0, nan], [0, 1], [nan, nan]],
        "zscore": [[np.sqrt(2), -1], [-np.sqrt(0.5), nan], [-np.sqrt(0.5), 1], [nan, nan]],
        "rank": [[1, 0.5], [0.5, nan], [0.5, 1], [nan, nan]],
        "borda": [[1, 0.75], [0.625, 0.375], [0.625, 1], [0.25, 0.375]],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(rw.normalise_scores(R, name), values, rtol=1e-14, err_msg=name)
    flat = rw.normalise_scores(np.full((4, 1), 7.0), "minmax")
    np.testing.assert_array_equal(flat, np.ones((4, 1)))
    np.testing.assert_array_equal(rw.normalise_scores(np.full((4, 1), 7.0), "sum"), flat / 4)
    np.testing.assert_array_equal(rw.normalise_scores(np.full((4, 1), 0.1), "zscore"), 0 * flat)
    with pytest.raises(
        ValueError, match="norm 'max' needs a positive largest score, got -1 in list 1"
    ):
        rw.comb_sum([[1.0, -1.0], [0.5, -2.0]], norm="max")


def test_borda_is_the_sum_of_borda_norms():
    rng = np.random.default_rng(3)
    R = rng.normal(size=(9, 4)).round(1)
    R[rng.random(R.shape) < 0.4] = nan
    points = rw.comb_sum(R, norm="borda") * len(R) - R.shape[1]
    np.testing.assert_allclose(points, rw.borda(R), rtol=1e-12)
