"""Every loss and option: definitions, derivatives, invariances, sizes, and the learners they reach.

A loss that is listed in ``LOSSES`` is covered by most of these by being listed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
import reference
from rankwise.losses import LOSSES, ConvexLoss, LossSum

EXP2, SAME = (lambda y: 2**y - 1), (lambda y: y)

# Value of one query (y, s, weight), slow and obvious.
DEFINITIONS = {
    rw.Logistic(): reference.logistic(lambda y: float(y >= 1)),
    rw.Logistic(rel=2): reference.logistic(lambda y: float(y >= 2)),
    rw.Logistic(top=4): reference.logistic(lambda y: y / 4),
    rw.Poisson(): reference.poisson,
    rw.RankNet(equal_labels="half"): reference.even_ranknet,
    rw.HingePairs(): reference.pair_sum(lambda m: max(0.0, 1 - m)),
    rw.ExponentialPairs(): reference.pair_sum(lambda m: math.exp(-m)),
    rw.Fidelity(): reference.pair_sum(lambda m: 1 - 1 / math.sqrt(1 + math.exp(-m))),
    rw.Fidelity(sigma=2): reference.pair_sum(lambda m: 1 - 1 / math.sqrt(1 + math.exp(-2 * m))),
    rw.SoftmaxCrossEntropy(): reference.softmax(EXP2),
    rw.SoftmaxCrossEntropy(gain="identity"): reference.softmax(SAME),
    rw.ListMLE(): reference.listmle(lambda place: 1.0),
    rw.ListMLE(position="log2"): reference.listmle(lambda place: 1 / math.log2(1 + place)),
    rw.ListMLE(position="exp2"): reference.listmle(lambda place: 2.0 ** (1 - place)),
    rw.ApproxNDCG(): reference.approx_ndcg(EXP2, 1.0),
    rw.ApproxNDCG(gain="identity", alpha=3): reference.approx_ndcg(SAME, 3.0),
}
WHOLE = {
    rw.OrdinalLogit(): reference.ordinal(None, gaps=True),
    rw.OrdinalMargin(): reference.ordinal(lambda x: max(0.0, 1 + x) ** 2, gaps=False),
}
RANDOM = [
    rw.BoltzRank(n_samples=8),
    rw.BoltzRank(metric="err", n_samples=8, mix=1, sigma=3),
    rw.BoltzRank(n_samples=8, mix=0),
    rw.SoftmaxCrossEntropy(perturb=True, seed=3),
]
SUMS = [
    0.7 * rw.RankNet() + 0.3 * rw.Squared(),
    2 * rw.ListMLE() + rw.ApproxNDCG(),
    rw.OrdinalLogit() + 0.5 * rw.RankNet(sigma=2),
]
DEFAULTS = [kind() for name, kind in LOSSES.items() if name != "lambdarank"]
ALL = [*dict.fromkeys([*DEFAULTS, *DEFINITIONS, *WHOLE, *RANDOM]), *SUMS]
each = pytest.mark.parametrize("loss", ALL, ids=str)


def relative(losses):
    return pytest.mark.parametrize("loss", [x for x in losses if x.shift_invariant], ids=str)


def case(seed=1, sizes=(9, 1, 15), labels=(0.0, 1.0, 2.0, 4.0), scale=1.0):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = int(offsets[-1])
    return rng.choice(labels, n), rng.normal(0, scale, n), offsets, rng.uniform(0.5, 2, n)


@st.composite
def judged_lists(draw):
    sizes = draw(st.lists(st.integers(0, 7), min_size=1, max_size=4))
    n = sum(sizes)
    labels = draw(st.sampled_from([[0.0, 1.0, 2.0, np.nan], [0.0, 0.5, 1.25, 3.0, 4.0]]))
    y = draw(st.lists(st.sampled_from(labels), min_size=n, max_size=n))
    s = draw(st.lists(st.integers(-12, 12), min_size=n, max_size=n))
    weight = draw(st.none() | st.lists(st.sampled_from([0.0, 0.5, 3]), min_size=n, max_size=n))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    weight = None if weight is None else np.array(weight, dtype=float)
    return np.array(y, dtype=float), np.array(s) / 4, offsets, weight


@pytest.mark.parametrize("loss", DEFINITIONS, ids=str)
@settings(max_examples=20)
@given(lists=judged_lists())
def test_the_value_is_the_definition(loss, lists):
    y, s, offsets, weight = lists
    got = loss.value(y, s, offsets, weight)
    for q, (a, b) in enumerate(itertools.pairwise(offsets)):
        w = None if weight is None else weight[a:b]
        assert got[q] == pytest.approx(DEFINITIONS[loss](y[a:b], s[a:b], w), rel=1e-10, abs=1e-12)
    assert (got >= 0).all()


@pytest.mark.parametrize("loss", WHOLE, ids=str)
@pytest.mark.parametrize(("seed", "scale"), [(0, 0.3), (1, 2.0), (2, 0.3), (3, 2.0)])
def test_thresholds_are_the_best(loss, seed, scale):
    y, s, offsets, weight = case(seed, labels=(0.0, 1.0, 3.0, np.nan), scale=scale)
    got = loss.value(y, s, offsets, weight).sum()
    assert got == pytest.approx(WHOLE[loss](y, s, weight), rel=1e-8)


@each
@pytest.mark.parametrize("scale", [0.3, 1.5])
def test_finite_differences(loss, scale):
    y, s, offsets, weight = case(scale=scale)
    n, h, v = len(y), 1e-5, np.random.default_rng(3).normal(size=len(y))
    gradient, curvature = loss.derivatives(y, s, offsets, weight)

    def slope(at):
        return loss.derivatives(y, at, offsets, weight)[0]

    exact = isinstance(loss, ConvexLoss)
    for i in range(n):
        step = h * np.eye(n)[i]
        up, down = (loss.value(y, s + t * step, offsets, weight).sum() for t in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(gradient[i], rel=1e-6, abs=2e-8)
        bend = (slope(s + step) - slope(s - step))[i] / (2 * h)
        if exact:
            assert curvature[i] == pytest.approx(bend, rel=1e-5, abs=1e-7)
        else:  # never below the second derivative, and above 0 where there is a pull
            assert curvature[i] >= bend - 1e-7
            assert curvature[i] > 0 or gradient[i] == 0
    assert exact == hasattr(loss, "hessian_product")
    if exact:
        product = loss.hessian_product(y, s, offsets, v, weight)
        numeric = (slope(s + h * v) - slope(s - h * v)) / (2 * h)
        np.testing.assert_allclose(numeric, product, rtol=1e-5, atol=1e-6)
        diagonal = [loss.hessian_product(y, s, offsets, e, weight) @ e for e in np.eye(n)]
        np.testing.assert_allclose(diagonal, curvature, rtol=1e-9, atol=1e-12)
        assert v @ product >= -1e-10


@pytest.mark.parametrize("loss", [x for x in ALL if not isinstance(x, ConvexLoss)], ids=str)
def test_curvature_is_the_second_derivative_where_that_is_large(loss):
    """Near the end of training, where lists are in order, nothing but the derivative is given."""
    h, n, equal = 1e-4, 3, 0
    for seed in range(12):
        y = np.array([2.0, 1.0, 0.0])
        s = y * 2 + np.random.default_rng(seed).normal(0, 0.2, 3)
        _, curvature = loss.derivatives(y, s, [0, 3])
        for i in range(n):
            step = h * np.eye(n)[i]
            ends = [loss.derivatives(y, s + t * step, [0, 3])[0][i] for t in (1, -1)]
            bend = (ends[0] - ends[1]) / (2 * h)
            equal += abs(curvature[i] - bend) <= 1e-5 * abs(bend) + 1e-9
    # The hinge has no second derivative; retargeting gives that with its targets held fixed.
    if loss not in (rw.HingePairs(), rw.Retargeted()):
        assert equal >= 6


@relative(ALL)
@settings(max_examples=10)
@given(lists=judged_lists(), shift=st.sampled_from([-8.0, 0.5, 1024.0]))
def test_only_differences_inside_a_query_count(loss, lists, shift):
    y, s, offsets, weight = lists
    moved = s + np.repeat(shift * np.arange(len(offsets) - 1), np.diff(offsets))
    near = {"rtol": 1e-8, "atol": 1e-9}
    values = loss.value(y, s, offsets, weight)
    np.testing.assert_allclose(loss.value(y, moved, offsets, weight), values, **near)
    gradient, curvature = loss.derivatives(y, s, offsets, weight)
    np.testing.assert_allclose(loss.derivatives(y, moved, offsets, weight)[0], gradient, **near)
    sums = np.add.reduceat(np.append(gradient, 0.0), offsets[:-1]) * (np.diff(offsets) > 0)
    np.testing.assert_allclose(sums, 0, atol=1e-10)
    assert (curvature >= 0).all()


# Draws follow the rows, which learners put into one order first.
DRAWN = [*RANDOM, rw.BoltzRank()]


@pytest.mark.parametrize("loss", [x for x in ALL if x not in DRAWN], ids=str)
def test_the_order_of_rows_and_queries_does_not_matter(loss):
    y, s, offsets, weight = case(4)
    s[:5] = s[0]  # ties
    rng = np.random.default_rng(0)
    queries = rng.permutation(3)
    rows = np.concatenate([rng.permutation(np.arange(offsets[q], offsets[q + 1])) for q in queries])
    moved = np.concatenate([[0], np.cumsum(np.diff(offsets)[queries])])
    near = {"rtol": 1e-11, "atol": 1e-12}
    again = loss.value(y[rows], s[rows], moved, weight[rows])
    np.testing.assert_allclose(again, loss.value(y, s, offsets, weight)[queries], **near)
    ours = loss.derivatives(y, s, offsets, weight)
    for a, b in zip(ours, loss.derivatives(y[rows], s[rows], moved, weight[rows]), strict=True):
        np.testing.assert_allclose(b, a[rows], **near)


@each
def test_weights_are_homogeneous(loss):
    """Twice the weight of every document of a query is twice the query."""
    y, s, offsets, weight = case(5)
    if isinstance(loss, rw.OrdinalLogit | rw.OrdinalMargin) or "ordinal" in str(loss):
        factor = np.full(3, 2.5)  # the thresholds are shared: all queries or none
    else:
        factor = np.array([2.0, 3.0, 0.25])
    each_doc = np.repeat(factor, np.diff(offsets))
    values = loss.value(y, s, offsets, weight * each_doc)
    near = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(values, factor * loss.value(y, s, offsets, weight), **near)
    ours = loss.derivatives(y, s, offsets, weight)
    for a, b in zip(ours, loss.derivatives(y, s, offsets, weight * each_doc), strict=True):
        np.testing.assert_allclose(b, each_doc * a, **near)
    ones = loss.derivatives(y, s, offsets, np.ones(len(y)))
    for a, b in zip(ones, loss.derivatives(y, s, offsets), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


# In a loss that looks at places, an unjudged document holds one.
PLACELESS = [x for x in ALL if x not in (RANDOM[-1], rw.LambdaLoss())]


@pytest.mark.parametrize("loss", PLACELESS, ids=str)
def test_unjudged_documents_take_no_part(loss):
    y, s, offsets, weight = case(6, sizes=(12, 18))
    y[np.random.default_rng(2).random(30) < 0.3] = np.nan
    kept = ~np.isnan(y)
    fewer = np.concatenate([[0], np.cumsum(kept)])[offsets]
    near = {"rtol": 1e-9, "atol": 1e-11}
    part = loss.value(y[kept], s[kept], fewer, weight[kept])
    np.testing.assert_allclose(loss.value(y, s, offsets, weight), part, **near)
    whole = loss.derivatives(y, s, offsets, weight)
    parts = loss.derivatives(y[kept], s[kept], fewer, weight[kept])
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a[kept], b, **near)
        assert not a[~kept].any()


@each
def test_threads_do_not_change_a_bit(loss):
    queries = rw.make_queries(n_queries=150, n_docs=40, rng=5)
    s = queries.X @ np.array([1.0, 0.7, 0.1, 0, 0, 1.5])
    one, two = (loss.prepare(queries.y, queries.offsets, n_threads=t)(s) for t in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a, b)
    for a, b in zip(one, loss.derivatives(queries.y, s, queries.offsets), strict=True):
        assert np.array_equal(a, b)


@each
def test_degenerate_lists(loss):
    for y, sizes in (([], [0]), ([2.0], [1]), ([1.0, 1.0, 1.0], [3]), ([np.nan, np.nan], [2])):
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        s = np.linspace(-1, 1, len(y))
        values = loss.value(y, s, offsets)
        gradient, curvature = loss.derivatives(y, s, offsets)
        assert np.isfinite(values).all() and (values >= 0).all()
        assert np.isfinite(gradient).all() and (curvature >= 0).all()


PAIRWISE = [x for x in ALL if x.takes_pairs and not isinstance(x, LossSum)]


@pytest.mark.parametrize("loss", [*PAIRWISE, rw.ListMLE()], ids=str)
def test_equal_labels_pull_nowhere(loss):
    gradient, curvature = loss.derivatives([1, 1, 1], [3, 1, 2], [0, 3])
    if "half" in str(loss):
        assert gradient[0] > 0 > gradient[1]
        return
    assert not gradient.any() and not curvature.any()
    assert not loss.value([1, 1, 1], [3, 1, 2], [0, 3]).any()


@each
def test_scores_far_apart_stay_finite(loss):
    rng = np.random.default_rng(3)
    y, s = rng.integers(0, 4, 40).astype(float), rng.choice([-3000.0, 0.0, 1.0, 2500.0], 40)
    values = loss.value(y, s, [0, 40])
    gradient, curvature = loss.derivatives(y, s, [0, 40])
    for column in (values, gradient, curvature):
        assert np.isfinite(column).all()


@each
def test_lists_of_any_length(loss):
    """No limit of 10,000 documents per query; long lists of quadratic losses are cut short here."""
    linear = not any(name in str(loss) for name in ("ranknet", "fidelity", "approx"))
    n = 20_011 if linear else 2_003
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 5, n).astype(float), rng.normal(size=n)
    gradient, _ = loss.derivatives(y, s, [0, n])
    assert np.isfinite(gradient).all() and gradient.any()


def test_fractional_and_large_labels():
    y, s = np.array([0.25, 900.5, 12.0, 0.0]), np.array([0.1, 0.2, 0.3, 0.4])
    for loss in (
        rw.SoftmaxCrossEntropy(gain="identity"),
        rw.ApproxNDCG(gain="identity"),
        rw.SoftmaxCrossEntropy(),
        rw.ApproxNDCG(),
        rw.ListNet(),
        rw.ListMLE(),
        rw.RankNet(),
        rw.BoltzRank(metric="ndcg(gain='identity')", n_samples=6),
    ):
        gradient, curvature = loss.derivatives(y, s, [0, 4])
        assert np.isfinite(gradient).all() and np.isfinite(curvature).all()
        assert gradient[1] < 0  # the best document is pulled up
    table = rw.SoftmaxCrossEntropy(gain=(0, 1, 10))
    assert table.value([2, 1], [0.0, 0.0], [0, 2])[0] == pytest.approx(math.log(2))
    for loss in (rw.SoftmaxCrossEntropy(), rw.ApproxNDCG(), rw.BoltzRank()):
        with pytest.raises(ValueError, match=r"overflows for label 1200, the largest one"):
            loss.value([0, 1200], [0.0, 0.0], [0, 2])
    with pytest.raises(ValueError, match="labels must be at most top=4, got 5; raise top"):
        rw.Logistic(top=4).value([5, 0], [0.0, 0.0], [0, 2])
    many = np.arange(101.0)
    with pytest.raises(ValueError, match="at most 100 different values, got 101; round them"):
        rw.OrdinalLogit().value(many, many, [0, 101])


E_HALF = pytest.approx(math.exp(0.5), rel=1e-15)


class TestByHand:
    def test_exponential(self):
        # e^(1/2) for the pair in the wrong order by 1/2
        assert rw.ExponentialPairs().value([1, 0], [0.0, 0.5], [0, 2])[0] == E_HALF
        assert rw.ExponentialPairs().derivatives([1, 0], [0.0, 0.5], [0, 2])[0][0] == pytest.approx(
            -math.exp(0.5)
        )

    def test_the_exponential_is_capped(self):
        value = rw.ExponentialPairs().value([1, 0], [0.0, 5000.0], [0, 2])[0]
        assert value == pytest.approx(math.exp(600))
        pairs = rw.Pairs([0], [1])
        same = rw.ExponentialPairs().value(None, [0.0, 5000.0], [0, 2], pairs=pairs)[0]
        assert same == pytest.approx(value)

    @pytest.mark.parametrize("margin", [-30.0, -1.0, 0.0, 1e-9, 2.0, 40.0, 300.0])
    def test_fidelity_keeps_its_digits(self, margin):
        p, wrong = 1 / (1 + math.exp(-margin)), 1 / (1 + math.exp(margin))
        expected = wrong / (1 + math.sqrt(p))
        for kwargs in ({}, {"pairs": rw.Pairs([0], [1])}):
            value = rw.Fidelity().value([1, 0], [margin, 0.0], [0, 2], **kwargs)[0]
            assert value == pytest.approx(expected, rel=1e-12)

    def test_listmle_is_plackett_luce(self):
        s = np.array([2.0, 1.0, 0.0])
        loss = rw.ListMLE()
        chances = [
            math.exp(-loss.value(y, s, [0, 3])[0])
            for y in ([2, 1, 0], [2, 0, 1], [1, 2, 0], [0, 2, 1], [1, 0, 2], [0, 1, 2])
        ]
        assert sum(chances) == pytest.approx(1, abs=1e-14)
        assert chances[0] == pytest.approx(0.486, abs=1e-3)
        # One relevant document of several: the softmax, as ListNet's target on one document.
        softmax = rw.SoftmaxCrossEntropy().value([1, 0, 0], s, [0, 3])
        assert loss.value([1, 0, 0], s, [0, 3]) == pytest.approx(softmax, rel=1e-14)

    def test_two_documents_are_ranknet(self):
        for loss in (rw.ListMLE(), rw.SoftmaxCrossEntropy()):
            both = (
                loss.value([1, 0], [0.5, 1.0], [0, 2]),
                rw.RankNet().value([1, 0], [0.5, 1], [0, 2]),
            )
            assert both[0] == pytest.approx(both[1], rel=1e-14)

    def test_steep_approx_ndcg_is_ndcg(self):
        y, s, offsets, _ = case(8)
        smooth = rw.ApproxNDCG(alpha=1e5).value(y, s, offsets)[[0, 2]]
        ndcg = rw.metrics.ndcg(y, s, qid=np.repeat(range(3), np.diff(offsets)))[[0, 2]]
        np.testing.assert_allclose(smooth, 1 - ndcg, atol=1e-6)

    def test_boltzrank_over_all_rankings(self):
        """Two documents have two rankings, which a large sample holds alike."""
        loss = rw.BoltzRank(n_samples=4, mix=1)
        kernel_value = loss.value([1, 0], [0.7, 0.0], [0, 2])[0]
        # F is s_1 - s_2 or its opposite; find how many of the sample are in order.
        worst = 1 - 1 / math.log2(3)
        up, down = math.exp(0.7), math.exp(-0.7)
        candidates = [(4 - k) * down * worst / (k * up + (4 - k) * down) for k in range(1, 5)]
        assert any(kernel_value == pytest.approx(c, rel=1e-12) for c in candidates)

    def test_boltzrank_pulls_towards_the_labels(self):
        y, _, offsets, _ = case(9)
        for mix in (0.0, 0.5, 1.0):
            loss = rw.BoltzRank(mix=mix)
            assert loss.value(y, y, offsets).sum() < loss.value(y, -y, offsets).sum()
        # With the labels as scores and no metric nothing is left to learn.
        assert rw.BoltzRank(mix=0).value(y, y, offsets).sum() == pytest.approx(0, abs=1e-15)
        gradient, _ = rw.BoltzRank(mix=0).derivatives(y, y, offsets)
        np.testing.assert_allclose(gradient, 0, atol=1e-15)

    def test_perturbed_targets(self):
        y, s, offsets, _ = case(10)
        loss = rw.SoftmaxCrossEntropy(perturb=True, seed=7)
        assert not loss.minimizes and rw.SoftmaxCrossEntropy().minimizes
        run, again = loss.prepare(y, offsets), loss.prepare(y, offsets)
        first, second = run(s)[0], run(s)[0]
        assert not np.array_equal(first, second)  # drawn anew
        assert np.array_equal(again(s)[0], first) and np.array_equal(again(s)[0], second)
        assert np.array_equal(loss.derivatives(y, s, offsets)[0], first)
        other = rw.SoftmaxCrossEntropy(perturb=True, seed=8).derivatives(y, s, offsets)[0]
        assert not np.array_equal(other, first)
        # The mean target is that of gains raised by 1/2.
        draws = np.mean([run(s)[0] for _ in range(4000)], axis=0)
        p = np.exp(s[:9]) / np.exp(s[:9]).sum()
        target = (2 ** y[:9] - 0.5) / (2 ** y[:9] - 0.5).sum()
        np.testing.assert_allclose(p - draws[:9], target, atol=0.01)


class TestSums:
    def test_it_is_the_sum(self):
        y, s, offsets, weight = case(11)
        parts = rw.RankNet(), rw.Squared(), rw.Fidelity()
        loss = 0.5 * parts[0] + parts[1] * 2 + parts[2]
        assert loss.factors == (0.5, 2.0, 1.0)
        for method in ("value", "derivatives"):
            columns = [np.atleast_2d(getattr(p, method)(y, s, offsets, weight)) for p in parts]
            expected = sum(f * c for f, c in zip(loss.factors, columns, strict=True))
            got = np.atleast_2d(getattr(loss, method)(y, s, offsets, weight))
            np.testing.assert_allclose(got, expected, rtol=1e-14)
        assert (loss.shift_invariant, loss.minimizes, loss.takes_pairs) == (False, True, True)
        assert (rw.RankNet() + rw.ListNet()).shift_invariant
        assert not (rw.ListNet() + rw.Squared()).takes_pairs
        assert not (rw.LambdaRank() + rw.Squared()).minimizes

    @pytest.mark.parametrize("loss", SUMS, ids=str)
    def test_text(self, loss):
        assert rw.parse_loss(str(loss)) == loss
        assert hash(rw.parse_loss(str(loss))) == hash(loss)
        assert type(rw.parse_loss(str(loss))) is type(loss)

    def test_forms(self):
        loss = rw.parse_loss("ranknet(sigma=2)*0.5 + lambdarank(metric=ndcg@10) + 3 * squared")
        assert str(loss) == "0.5 * ranknet(sigma=2) + lambdarank(metric=ndcg@10) + 3 * squared"
        assert str(2 * (rw.RankNet() + 0.25 * rw.Squared())) == "2 * ranknet + 0.5 * squared"
        assert rw.parse_loss("2 * ranknet") == 2 * rw.RankNet()

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: rw.parse_loss("ranknet - squared"), "a sum must have the form"),
            (lambda: rw.parse_loss("ranknet * squared"), "a sum must have the form"),
            (lambda: rw.parse_loss("2 * 3 * ranknet"), "a sum must have the form"),
            (lambda: rw.parse_loss("2 * rankned"), "did you mean 'ranknet'"),
            (lambda: -1 * rw.RankNet(), "factor must be a number above 0, got -1"),
            (lambda: LossSum((), ()), "each of at least one part needs a factor"),
        ],
    )
    def test_refusals(self, make, message):
        with pytest.raises(ValueError, match=message):
            make()

    def test_pairs_go_to_the_parts_that_take_them(self):
        y, s, offsets, weight = case(12)
        pairs = rw.Pairs([0, 1, 12], [3, 2, 11])
        loss = 2 * rw.RankNet() + 3 * rw.Squared()
        got = loss.value(y, s, offsets, weight, pairs=pairs)
        first = rw.RankNet().value(None, s, offsets, weight, pairs=pairs)
        second = rw.Squared().value(y, s, offsets, weight)
        np.testing.assert_allclose(got, 2 * first + 3 * second, rtol=1e-13)

    def test_a_loss_of_your_own(self, tmp_path):
        class Distance:
            """Half the squared distance to the mean of the query's scores and labels."""

            shift_invariant = True

            def value(self, y, s, offsets, weight=None):
                _, r = self._rest(y, s, offsets)
                return 0.5 * np.add.reduceat(r**2, offsets[:-1])

            def derivatives(self, y, s, offsets, weight=None):
                _, r = self._rest(y, s, offsets)
                return r, np.ones(len(y))

            def _rest(self, y, s, offsets):
                r = s - y
                sizes = np.diff(offsets)
                return sizes, r - np.repeat(np.add.reduceat(r, offsets[:-1]) / sizes, sizes)

        queries = rw.make_queries(n_queries=40, n_docs=10)
        loss = 0.5 * rw.RankNet() + Distance()
        assert loss.shift_invariant and not hasattr(loss, "hessian_product")
        chance = rw.RandomRanker().fit(queries).score(queries)
        for ranker in (rw.LinearRanker(loss), rw.TreeRanker(loss, n_estimators=10, n_jobs=1)):
            assert ranker.fit(queries).score(queries) > chance
            with pytest.raises(TypeError, match="must have a form without pickle"):
                ranker.save(tmp_path / "model")

    def test_a_loss_that_breaks_its_promise(self):
        class Broken:
            def value(self, y, s, offsets, weight=None):
                return np.zeros(len(offsets) - 1)

            def derivatives(self, y, s, offsets, weight=None):
                return np.full(len(y), np.nan), np.ones(len(y))

        with pytest.raises(ValueError, match="the loss must return a finite gradient array of"):
            (rw.Squared() + Broken()).derivatives([1, 0], [0.0, 0.0], [0, 2])

    @pytest.mark.parametrize("ranker", [rw.LinearRanker, rw.TreeRanker])
    def test_saved_models(self, ranker, tmp_path):
        queries = rw.make_queries(n_queries=30, n_docs=10)
        model = ranker(0.9 * rw.RankNet(sigma=2) + 0.1 * rw.Squared()).fit(queries)
        model.save(tmp_path / "model")
        loaded = rw.load(tmp_path / "model")
        assert loaded.loss == model.loss
        assert np.array_equal(loaded.predict(queries), model.predict(queries))

    def test_a_little_squared_loss_calibrates(self):
        """Ranking scores mean nothing by themselves; with a pointwise part they predict labels."""
        queries = rw.make_queries(n_queries=120)
        ranking = rw.LinearRanker(rw.RankNet()).fit(queries)
        both = rw.LinearRanker(0.05 * rw.RankNet() + rw.Squared()).fit(queries)
        error = [((m.predict(queries) - queries.y) ** 2).mean() for m in (ranking, both)]
        assert error[1] < 0.5 * error[0]


QUERIES = rw.make_queries(n_queries=60, n_docs=20, rng=3)
FLOOR = rw.RandomRanker(metric="ndcg@5").fit(QUERIES).score(QUERIES)
LEARNED = [*DEFAULTS, *SUMS, rw.RankNet(equal_labels="half"), rw.ListMLE(position="log2")]


@pytest.mark.parametrize("loss", LEARNED, ids=str)
def test_linear_models_learn_it(loss):
    model = rw.LinearRanker(loss, metric="ndcg@5", tol=1e-4).fit(QUERIES)
    assert model.score(QUERIES) > FLOOR + 0.2
    if isinstance(loss, rw.HingePairs | rw.StructuredBound | rw.StructuredAP):
        assert model.duality_gap_ <= 1e-4
    elif loss.minimizes:
        assert model.gradient_norm_ <= 1e-4


@pytest.mark.parametrize("loss", [*LEARNED, RANDOM[-1]], ids=str)
def test_trees_learn_it(loss):
    model = rw.TreeRanker(loss, n_estimators=15, num_leaves=8, metric="ndcg@5", n_jobs=1)
    assert model.fit(QUERIES).score(QUERIES) > FLOOR + 0.2
    order = np.random.default_rng(0).permutation(QUERIES.n_docs)
    again = model.fit(QUERIES.X[order], QUERIES.y[order], qid=QUERIES.qid[order])
    mixed = again.predict(QUERIES.X)
    model.fit(QUERIES)
    assert np.array_equal(mixed, model.predict(QUERIES.X))


def test_linear_models_follow_perturbed_targets():
    model = rw.LinearRanker(rw.SoftmaxCrossEntropy(perturb=True), metric="ndcg@5")
    assert model.fit(QUERIES).score(QUERIES) > FLOOR + 0.2


@each
def test_text_round_trip(loss):
    assert rw.parse_loss(str(loss)) == loss
    assert hash(rw.parse_loss(str(loss))) == hash(loss)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rw.RankNet(equal_labels="all"), "equal_labels must be one of 'skip', 'half'"),
        (lambda: rw.Fidelity(sigma=0), "sigma must be a number above 0, got 0"),
        (lambda: rw.Logistic(rel=0), "rel must be a number above 0"),
        (lambda: rw.Logistic(top=-1), "top must be a number above 0"),
        (lambda: rw.ListMLE(position="linear"), "position must be one of 'none', 'log2', 'exp2'"),
        (lambda: rw.ApproxNDCG(alpha=0), "alpha must be a number above 0"),
        (lambda: rw.ApproxNDCG(gain="square"), "gain must be"),
        (lambda: rw.BoltzRank(n_samples=1), "n_samples must be an integer of at least 2, got 1"),
        (lambda: rw.BoltzRank(mix=1.5), "mix must be a number of at least 0 and at most 1"),
        (lambda: rw.SoftmaxCrossEntropy(seed=-1), "seed must be an integer of at least 0"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(ValueError, match=message):
        make()
