"""Statistics: classical published data, exact enumeration, SciPy and hypothesis as oracles."""

from __future__ import annotations

import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.stats import CORRECTIONS, EXACT_PAIRS, TESTS, intervals

# Student's (1908) ten patients: additional hours of sleep under two drugs.
SLEEP_A = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
SLEEP_B = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
# Darwin's fifteen pairs of maize, differences in eighths of an inch, as Fisher (1935) used them.
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]

# P@10, the metric with the most ties: multiples of a tenth.
tenths = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=8)


def enumerated_p(differences: list[int]) -> float:
    """The randomization test by its definition, on integers."""
    observed = abs(sum(differences))
    patterns = itertools.product([1, -1], repeat=len(differences))
    sums = [abs(sum(s * d for s, d in zip(p, differences, strict=True))) for p in patterns]
    return sum(s >= observed for s in sums) / len(sums)


def convolved_p(differences: list[int]) -> float:
    """The same for any number of integer differences: the distribution of the sum, term by term."""
    counts = {0: 1}
    for d in differences:
        new: dict[int, int] = {}
        for total, n in counts.items():
            for t in (total + d, total - d):
                new[t] = new.get(t, 0) + n
        counts = new
    observed = abs(sum(differences))
    return float(
        Fraction(sum(n for t, n in counts.items() if abs(t) >= observed), 2 ** len(differences))
    )


# ------------------------------------------------------------------------------------- tests


def test_t_on_students_sleep_data():
    test = rw.paired_t_test(SLEEP_A, SLEEP_B)
    assert test.statistic == pytest.approx(4.0621, abs=5e-5)
    assert test.p_value == pytest.approx(0.002833, abs=5e-7)
    assert (test.n_queries, test.n_skipped, test.n_resamples) == (10, 0, None)


def test_randomization_on_darwins_maize_counts_what_fisher_counted():
    # "The Design of Experiments", section 21: 863 of 32,768 arrangements reach the observed sum.
    test = rw.randomization_test(MAIZE, np.zeros(15))
    assert test.p_value == 2 * 863 / 32768
    assert test.n_resamples is None
    t = rw.paired_t_test(MAIZE, np.zeros(15))
    assert t.statistic == pytest.approx(2.148, abs=5e-4)
    assert t.p_value == pytest.approx(0.0497, abs=5e-5)


@given(tenths)
def test_exact_randomization_equals_enumeration_whatever_the_rounding(pairs):
    a, b = zip(*pairs, strict=True)
    expected = enumerated_p([x - y for x, y in pairs])
    # The same numbers three ways; tenths are not representable, so their sums round differently.
    for first, second in (
        (np.array(a) / 10, np.array(b) / 10),
        (np.array(a) * 0.1, np.array(b) * 0.1),
        (np.array(a) / 10 + 0.7, np.array(b) / 10 + 0.7),
    ):
        assert rw.randomization_test(first, second).p_value == expected


@pytest.mark.parametrize("n", [EXACT_PAIRS, EXACT_PAIRS + 1, 100])
def test_randomization_near_and_past_the_exact_limit(n):
    rng = np.random.default_rng(n)
    d = rng.integers(1, 6, n) * rng.choice([-1, 1], n, p=[0.4, 0.6])
    expected = convolved_p(d.tolist())
    test = rw.randomization_test(d / 10, np.zeros(n), n_resamples=20_000)
    if n <= EXACT_PAIRS:
        assert test.n_resamples is None
        assert test.p_value == expected
    else:
        assert test.n_resamples == 20_000
        error = np.sqrt(expected * (1 - expected) / 20_000)
        assert abs(test.p_value - expected) < 5 * error


def test_randomization_p_is_never_zero_and_counts_the_observed_pattern():
    assert rw.randomization_test(np.ones(60), np.zeros(60), n_resamples=99).p_value == 0.01


def test_randomization_draws_depend_on_the_seed_alone():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 200))
    first = rw.randomization_test(a, b, n_resamples=999, rng=7)
    assert rw.randomization_test(a, b, n_resamples=999, rng=7) == first
    assert rw.randomization_test(a, b, n_resamples=999, rng=np.random.default_rng(7)) == first
    others = {rw.randomization_test(a, b, n_resamples=999, rng=s).p_value for s in range(20)}
    assert len(others) > 1


def test_randomization_of_many_queries_takes_little_memory():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 2_000))  # 1.6 GB as a table of signs
    tracemalloc.start()
    rw.randomization_test(a, b, n_resamples=100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6


@settings(max_examples=30)  # SciPy enumerates permutations
@given(tenths)
def test_sign_and_wilcoxon_equal_scipy(pairs):
    a, b = (np.array(x) / 10 for x in zip(*pairs, strict=True))
    wins, losses = int((a > b).sum()), int((a < b).sum())
    sign, wilcoxon = rw.sign_test(a, b), rw.wilcoxon_test(a, b)
    assert sign.statistic == wins
    if wins + losses == 0:
        assert sign.p_value == wilcoxon.p_value == 1
        return
    assert sign.p_value == pytest.approx(
        scipy.stats.binomtest(wins, wins + losses).pvalue, rel=1e-9
    )
    # SciPy gets integers: in tenths, rounding would split ties between absolute differences.
    integers = np.array([x - y for x, y in pairs])
    expected = scipy.stats.wilcoxon(integers[integers != 0])
    assert wilcoxon.p_value == expected.pvalue
    assert wilcoxon.statistic == expected.statistic


def test_sign_on_a_count_anyone_can_check():
    # 8 wins, 1 loss: 2 * (1 + 9) / 2 ** 9.
    test = rw.sign_test([1] * 8 + [0, 0.5], [0] * 8 + [1, 0.5])
    assert test.p_value == pytest.approx(2 * 10 / 512)
    assert test.n_queries == 10


@pytest.mark.parametrize("name", TESTS)
class TestEveryTest:
    def test_nan_pairs_are_left_out_and_counted(self, name):
        a = [0.1, np.nan, 0.7, 0.8, 0.9, 0.2, np.nan]
        b = [0.2, 0.5, 0.5, np.nan, 0.3, 0.4, np.nan]
        test = TESTS[name](a, b)
        clean = TESTS[name]([0.1, 0.7, 0.9, 0.2], [0.2, 0.5, 0.3, 0.4])
        assert (test.n_queries, test.n_skipped) == (4, 3)
        assert test.p_value == clean.p_value
        assert test.statistic == clean.statistic

    def test_swapping_the_systems_keeps_p(self, name):
        rng = np.random.default_rng(2)
        a, b = rng.random((2, 40))
        assert TESTS[name](a, b).p_value == pytest.approx(TESTS[name](b, a).p_value)

    def test_equal_systems_have_p_one(self, name):
        x = np.random.default_rng(1).random(30)
        test = TESTS[name](x, x)
        assert test.p_value == 1
        assert test.statistic == 0

    def test_differences_of_rounding_are_ties(self, name):
        assert TESTS[name]([0.1 + 0.2, 0.7 + 0.1], [0.3, 0.8]).p_value == 1

    def test_inputs_are_not_modified(self, name):
        a, b = np.array([0.3, 0.2, 0.8]), np.array([0.1 + 0.2, 0.4, 0.1])
        kept = a.copy(), b.copy()
        TESTS[name](a, b)
        np.testing.assert_array_equal((a, b), kept)

    def test_is_two_sided_and_between_zero_and_one(self, name):
        rng = np.random.default_rng(5)
        for shift in (-0.5, 0.0, 0.5):
            p = TESTS[name](rng.random(25) + shift, rng.random(25)).p_value
            assert 0 < p <= 1
            assert (p < 0.05) == (shift != 0)

    @pytest.mark.parametrize(
        ("a", "b", "sentence"),
        [
            ([0.1], [0.2], "at least 2 queries must have a value in both a and b, got 1"),
            ([], [], "got 0"),
            ([0.1, np.nan, 0.3], [0.2, 0.1, np.nan], r"got 1 \(3 queries, 2 with NaN\)"),
            ([0.1, 0.2], [0.2], "a and b must have the same length, got 2 and 1"),
            ([0.1, np.inf], [0.2, 0.1], "a must be finite or NaN .* got inf at query 1"),
            ([[0.1, 0.2]], [0.1, 0.2], "a must be one-dimensional, one value per query"),
        ],
    )
    def test_says_what_is_wrong(self, name, a, b, sentence):
        with pytest.raises(ValueError, match=sentence):
            TESTS[name](a, b)

    def test_refuses_text(self, name):
        with pytest.raises(TypeError, match="must be numbers"):
            TESTS[name](["x", "y"], [0.1, 0.2])


def test_t_of_a_constant_difference_is_infinite():
    test = rw.paired_t_test([0.3, 0.4, 0.5], [0.4, 0.5, 0.6])
    assert (test.statistic, test.p_value) == (-np.inf, 0)
    assert rw.effect_size([0.3, 0.4, 0.5], [0.2, 0.3, 0.4]) == np.inf


def test_t_equals_scipy():
    rng = np.random.default_rng(3)
    for n in (2, 3, 50, 1000):
        a, b = rng.random((2, n))
        expected = scipy.stats.ttest_rel(a, b)
        test = rw.paired_t_test(a, b)
        assert test.statistic == pytest.approx(expected.statistic, rel=1e-12)
        assert test.p_value == pytest.approx(expected.pvalue, rel=1e-10)
        # t is the effect size times the square root of n.
        assert rw.effect_size(a, b) * np.sqrt(n) == pytest.approx(test.statistic, rel=1e-12)


def test_effect_size_by_hand():
    # Differences 1, 2, 3: mean 2, standard deviation 1.
    assert rw.effect_size([2, 4, 6], [1, 2, 3]) == pytest.approx(2)
    assert rw.effect_size([1, 2, 3], [1, 2, 3]) == 0


def test_win_tie_loss_counts_pairs_with_both_values():
    outcome = rw.win_tie_loss([0.5, 0.5, 0.1, np.nan, 0.3], [0.1, 0.5, 0.2, 0.1, np.nan])
    assert (outcome.wins, outcome.ties, outcome.losses) == (1, 1, 1)
    empty = rw.win_tie_loss([np.nan], [1.0])
    assert (empty.wins, empty.ties, empty.losses) == (0, 0, 0)


# --------------------------------------------------------------------------------- intervals


def test_t_interval_of_students_sleep_data():
    interval = rw.t_interval(np.subtract(SLEEP_A, SLEEP_B))
    assert interval.mean == pytest.approx(1.58)
    assert (interval.low, interval.high) == pytest.approx((0.7001, 2.4599), abs=5e-5)


def bca_by_scipy(x, resampled, confidence):
    """SciPy's BCa, given the resampled means instead of drawing its own."""
    drawn = scipy.stats._resampling.BootstrapResult(None, resampled, 0.0)
    found = scipy.stats.bootstrap(
        (x,),
        np.mean,
        n_resamples=0,
        bootstrap_result=drawn,
        confidence_level=confidence,
        method="BCa",
    )
    return found.confidence_interval


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("kind", ["uniform", "skewed", "tenths", "binary", "tiny"])
def test_bca_equals_scipy_on_the_same_resamples(kind, confidence):
    from rankwise.stats import _bca, _resampled_means

    rng = np.random.default_rng(8)
    x = {
        "uniform": rng.random(50),
        "skewed": rng.lognormal(size=200),
        "tenths": rng.integers(0, 11, 40) / 10,
        "binary": (rng.random(30) < 0.2).astype(float),
        "tiny": np.array([0.2, 0.9]),
    }[kind]
    resampled = _resampled_means(x[None], 1999, np.random.default_rng(0))[0]
    ours = _bca(x, resampled, confidence)
    # Ties of a resampled mean with the mean are SciPy's only where rounding leaves them equal.
    nudged = np.where(np.abs(resampled - x.mean()) < 1e-12, x.mean(), resampled)
    low, high = bca_by_scipy(x, nudged, confidence)
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=1e-9)
    assert ours.method == "bca"


def test_bootstrap_interval_agrees_with_scipys_own_draws():
    x = np.random.default_rng(4).beta(0.5, 2, size=80)
    ours = rw.bootstrap_interval(x)
    theirs = scipy.stats.bootstrap((x,), np.mean, method="BCa", rng=1).confidence_interval
    width = ours.high - ours.low
    assert abs(ours.low - theirs.low) < 0.04 * width
    assert abs(ours.high - theirs.high) < 0.04 * width
    # The sample is skewed to the right, so the interval reaches further that way.
    assert ours.high - ours.mean > ours.mean - ours.low


def test_resampled_means_are_means_of_resamples():
    from rankwise.stats import _resampled_means

    x = np.array([0.0, 1.0, 10.0, 100.0])
    means = _resampled_means(x[None], 4000, np.random.default_rng(0))[0]
    possible = {sum(c) / 4 for c in itertools.combinations_with_replacement(x, 4)}
    assert {round(m, 9) for m in means} <= possible
    # Each of the 4 ** 4 draws is as likely: the variance of the mean is that of x over n.
    assert means.var() == pytest.approx(x.var() / 4, rel=0.1)
    assert means.mean() == pytest.approx(x.mean(), rel=0.05)


def test_intervals_do_not_depend_on_neighbours_or_threads():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    rows = np.random.default_rng(0).random((23, 700))
    alone = [rw.bootstrap_interval(x, n_resamples=500) for x in rows]
    for n_threads in (1, 2):
        with threadpoolctl.threadpool_limits(n_threads):
            assert intervals(rows, "bca", 0.95, 500, 0) == alone


@pytest.mark.parametrize("make", [rw.t_interval, rw.bootstrap_interval])
class TestEveryInterval:
    def test_of_equal_values_is_that_value(self, make):
        for value in (0.0, 0.1, 1.0, -3.7):
            interval = make(np.full(13, value))
            assert interval.low == pytest.approx(value, abs=1e-14)
            assert interval.high == pytest.approx(value, abs=1e-14)
            assert interval.n_queries == 13

    def test_leaves_nan_out(self, make):
        assert make([0.1, np.nan, 0.5, 0.7]) == make([0.1, 0.5, 0.7])

    def test_holds_the_mean_and_widens_with_confidence(self, make):
        x = np.random.default_rng(0).random(40)
        narrow, wide = make(x, confidence=0.8), make(x, confidence=0.99)
        assert wide.low < narrow.low < x.mean() < narrow.high < wide.high

    @pytest.mark.parametrize("scale", [1e-90, 1e-9, 1e9, 1e90])
    def test_scales_with_the_values(self, make, scale):
        x = np.random.default_rng(0).random(40)
        plain, scaled = make(x), make(x * scale)
        assert scaled.low == pytest.approx(plain.low * scale, rel=1e-8)
        assert scaled.high == pytest.approx(plain.high * scale, rel=1e-8)

    @pytest.mark.parametrize("values", [[], [0.5], [np.nan, 0.5, np.nan]])
    def test_needs_two_values(self, make, values):
        with pytest.raises(ValueError, match="at least 2 queries must have a value, got"):
            make(values)

    @pytest.mark.parametrize("confidence", [0, 1, 1.0, 95, -0.5, float("nan"), "0.95", None])
    def test_confidence_is_a_fraction(self, make, confidence):
        with pytest.raises(ValueError, match="confidence must be a number between 0 and 1, got"):
            make([0.1, 0.2], confidence=confidence)


def test_bootstrap_says_where_bca_is_undefined():
    # One query in forty carries everything and the tail asked for is beyond z = 7.
    x = np.zeros(40)
    x[0] = 1
    extreme = rw.bootstrap_interval(x, confidence=1 - 1e-13)
    assert extreme.method == "percentile"
    assert 0 <= extreme.low <= extreme.mean <= extreme.high <= 1
    assert rw.bootstrap_interval(x).method == "bca"


def test_n_resamples_must_be_positive():
    for function in (rw.randomization_test, lambda a, b, **kw: rw.bootstrap_interval(a, **kw)):
        for bad in (0, -1, 1.5, True, "many"):
            with pytest.raises(ValueError, match="n_resamples must be an integer of at least 1"):
                function([0.1, 0.2, 0.4], [0.2, 0.1, 0.1], n_resamples=bad)


# ------------------------------------------------------------------------------- corrections


def test_corrections_by_hand():
    p = [0.01, 0.04, 0.03, 0.005]
    np.testing.assert_allclose(rw.holm(p), [3 * 0.01, 2 * 0.03, 2 * 0.03, 4 * 0.005])
    np.testing.assert_allclose(
        rw.benjamini_hochberg(p), [4 / 2 * 0.01, 0.04, 4 / 3 * 0.03, 4 / 2 * 0.01]
    )


probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(probabilities, st.floats(0.001, 0.5))
def test_holm_rejects_what_the_step_down_procedure_rejects(p, level):
    adjusted = rw.holm(p)
    rejected = set()
    order = sorted(range(len(p)), key=lambda i: p[i])
    for step, i in enumerate(order):
        if p[i] * (len(p) - step) > level:
            break
        rejected.add(i)
    assert {i for i, x in enumerate(adjusted) if x <= level} == rejected


@given(probabilities)
def test_benjamini_hochberg_equals_scipy(p):
    np.testing.assert_allclose(
        rw.benjamini_hochberg(p), scipy.stats.false_discovery_control(p), rtol=1e-12
    )


@pytest.mark.parametrize("correct", CORRECTIONS.values(), ids=CORRECTIONS)
class TestEveryCorrection:
    @given(probabilities)
    def test_keeps_the_order_and_never_lowers_p(self, correct, p):
        adjusted = correct(p)
        order = np.argsort(p, kind="stable")
        assert (np.diff(adjusted[order]) >= 0).all()
        assert (adjusted >= np.array(p) * (1 - 1e-15)).all()
        assert (adjusted <= 1).all()

    def test_one_test_needs_none(self, correct):
        assert correct([0.03]) == [0.03]

    def test_nan_is_no_test(self, correct):
        with_nan = correct([np.nan, 0.01, 0.04, np.nan])
        np.testing.assert_array_equal(with_nan[1:3], correct([0.01, 0.04]))
        assert np.isnan(with_nan[[0, 3]]).all()
        assert len(correct([])) == 0

    @pytest.mark.parametrize("bad", [-0.1, 1.1])
    def test_refuses_what_is_no_probability(self, correct, bad):
        with pytest.raises(
            ValueError, match=r"p_values must lie between 0 and 1, got .* at test 1"
        ):
            correct([0.5, bad])


# ---------------------------------------------------------------------- behaviour on real data


@pytest.fixture(scope="module")
def score_matrices(letor_data):
    """Topics by systems, AP, P@10, RR, ERR@20 and nDCG@20 of nine TREC collections."""
    paths = sorted((letor_data / "trec" / "score-matrices").glob("*.csv"))
    assert len(paths) == 20
    return [np.loadtxt(path, delimiter=",", skiprows=1) for path in paths]


@pytest.mark.letor
def test_error_rates_on_trec_topics(score_matrices):
    """With the signs of real paired differences tossed, 5 % of the tests reject at 5 %."""
    rng = np.random.default_rng(1)
    trials = 1000
    rejected = dict.fromkeys(("t", "randomization"), 0)
    for _ in range(trials):
        x = score_matrices[rng.integers(len(score_matrices))]
        i, j = rng.choice(x.shape[1], 2, replace=False)
        d = (x[:, i] - x[:, j]) * rng.choice([-1, 1], len(x))
        zero = np.zeros(len(x))
        rejected["t"] += rw.paired_t_test(d, zero).p_value <= 0.05
        test = rw.randomization_test(d, zero, n_resamples=999, rng=rng)
        rejected["randomization"] += test.p_value <= 0.05
    # Three standard errors of 1,000 coin tosses at .05 are .021.
    assert abs(rejected["randomization"] / trials - 0.05) < 0.021
    assert abs(rejected["t"] / trials - 0.05) < 0.021


@pytest.mark.letor
@pytest.mark.parametrize("method", ["t", "bca"])
def test_intervals_cover_the_mean_of_trec_topics(score_matrices, method):
    """Fifty topics drawn from a collection's topics: 95 % of the intervals hold its mean."""
    rng = np.random.default_rng(2)
    shares = []
    for x in score_matrices * 5:
        some = x[:, ::4]
        drawn = np.ascontiguousarray(some[rng.integers(len(x), size=50)].T)
        found = intervals(drawn, method, 0.95, 999, rng)
        pairs = zip(found, some.mean(axis=0), strict=True)
        shares.append(np.mean([i.low <= mean <= i.high for i, mean in pairs]))
    # Systems share the topics of a draw, so only the 100 draws count as independent.
    error = np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert error < 0.02
    assert abs(np.mean(shares) - 0.95) < 3 * error
