"""Losses: values, gradients, curvatures and Hessian products against one pair at a time."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
import reference
from rankwise import _core
from rankwise.losses import LOSSES, Loss

OWN = {
    rw.Squared(): reference.squared,
    rw.ListNet(): reference.listnet,
    rw.RankNet(): lambda *a: reference.loss_by_pairs(reference.ranknet_pair(1.0), *a),
    rw.RankNet(sigma=2.5): lambda *a: reference.loss_by_pairs(reference.ranknet_pair(2.5), *a),
    rw.SquaredHingePairs(): lambda *a: reference.loss_by_pairs(reference.squared_hinge_pair, *a),
}
each_loss = pytest.mark.parametrize("loss", OWN, ids=str)
each_relative = pytest.mark.parametrize("loss", [x for x in OWN if x.shift_invariant], ids=str)

OFFSETS = np.array([0, 6])
LABELS = np.array([0.0, 3.0, 1.0, 0.0, 2.0, 0.0])
SCORES = np.array([2.5, 2.0, 1.5, 1.0, 0.5, 0.0])


@st.composite
def judged_lists(draw, unjudged=True):
    """Labels, scores on a grid of quarters (so that ties and kinks are met exactly), offsets,
    weights.
    """
    sizes = draw(st.lists(st.integers(0, 14), min_size=1, max_size=5))
    n = sum(sizes)
    few = [0.0, 1.0, 2.0, *([float("nan")] if unjudged else [])]
    many = [x / 4 for x in range(40)]
    labels = draw(st.sampled_from([few, many]))
    y = draw(st.lists(st.sampled_from(labels), min_size=n, max_size=n))
    step = draw(st.sampled_from([0.25, 1.0, 64.0]))
    s = draw(st.lists(st.integers(-12, 12), min_size=n, max_size=n))
    weight = draw(st.none() | st.lists(st.sampled_from([0.0, 0.5, 1, 3]), min_size=n, max_size=n))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return (
        np.array(y, dtype=float),
        np.array(s, dtype=float) * step,
        offsets,
        None if weight is None else np.array(weight, dtype=float),
    )


@each_loss
@settings(max_examples=50)
@given(lists=judged_lists(), seed=st.integers(0, 9))
def test_equals_the_reference(loss, lists, seed):
    y, s, offsets, weight = lists
    v = np.random.default_rng(seed).standard_normal(len(y))
    values, gradient, hessian = OWN[loss](y, s, offsets, weight)
    size = 1 + np.abs(s).max(initial=0) ** 2
    near = {"rtol": 1e-11, "atol": 1e-11 * size}
    np.testing.assert_allclose(loss.value(y, s, offsets, weight), values, **near)
    got, curvature = loss.derivatives(y, s, offsets, weight)
    np.testing.assert_allclose(got, gradient, **near)
    np.testing.assert_allclose(curvature, np.diag(hessian), **near)
    product = loss.hessian_product(y, s, offsets, v, weight)
    np.testing.assert_allclose(product, hessian @ v, **near)


@each_relative
@settings(max_examples=50)
@given(lists=judged_lists(), shifts=st.lists(st.sampled_from([-8.0, 0.5, 1024.0]), min_size=5))
def test_only_differences_inside_a_query_count(loss, lists, shifts):
    y, s, offsets, weight = lists
    moved = s + np.repeat(np.array(shifts)[: len(offsets) - 1], np.diff(offsets))
    size = 1 + np.abs(s).max(initial=0) ** 2
    near = {"rtol": 1e-10, "atol": 1e-10 * size}
    np.testing.assert_allclose(
        loss.value(y, moved, offsets, weight), loss.value(y, s, offsets, weight), **near
    )
    gradient, curvature = loss.derivatives(y, s, offsets, weight)
    again, _ = loss.derivatives(y, moved, offsets, weight)
    np.testing.assert_allclose(again, gradient, **near)
    sums = [gradient[a:b].sum() for a, b in itertools.pairwise(offsets)]
    np.testing.assert_allclose(sums, 0, atol=1e-11 * size)
    assert (curvature >= 0).all()


@each_loss
def test_finite_differences(loss):
    rng = np.random.default_rng(1)
    offsets = np.array([0, 9, 10, 25])
    y, s = rng.integers(0, 3, 25).astype(float), rng.normal(0, 1, 25)
    weight, v = rng.uniform(0.5, 2, 25), rng.normal(0, 1, 25)
    gradient, curvature = loss.derivatives(y, s, offsets, weight)
    h = 1e-6
    for i in range(25):
        step = np.zeros(25)
        step[i] = h
        up = loss.value(y, s + step, offsets, weight).sum()
        down = loss.value(y, s - step, offsets, weight).sum()
        assert (up - down) / (2 * h) == pytest.approx(gradient[i], rel=1e-6, abs=1e-7)
        up, down = (loss.derivatives(y, s + t * step, offsets, weight)[0] for t in (1, -1))
        assert (up - down)[i] / (2 * h) == pytest.approx(curvature[i], rel=1e-5, abs=1e-7)
    up, down = (loss.derivatives(y, s + t * h * v, offsets, weight)[0] for t in (1, -1))
    product = loss.hessian_product(y, s, offsets, v, weight)
    np.testing.assert_allclose((up - down) / (2 * h), product, rtol=1e-5, atol=1e-6)


class TestWorkedNumbers:
    """The course note's running example."""

    def test_squared_error_does_not_see_the_order(self):
        # "MSE" there is the mean over two documents: equal to half the sum.
        assert rw.Squared().value([1, 2], [1.9, 1.1], [0, 2])[0] == pytest.approx(0.81)
        assert rw.Squared().value([1, 2], [-1, 0], [0, 2])[0] == pytest.approx(4)

    @pytest.mark.parametrize(
        ("scores", "loss", "force"),
        [((0.5, 1.0), 0.974, 0.622), ((2.0, 0.0), 0.127, 0.119), ((1.0, 1.0), 0.693, 0.5)],
    )
    def test_ranknet_pairs(self, scores, loss, force):
        assert rw.RankNet().value([1, 0], scores, [0, 2])[0] == pytest.approx(loss, abs=5e-4)
        gradient, _ = rw.RankNet().derivatives([1, 0], scores, [0, 2])
        np.testing.assert_allclose(gradient, [-force, force], atol=5e-4)

    def test_ranknet_bounds_the_number_of_wrong_pairs(self):
        for margin in np.linspace(-3, 3, 61):
            bound = rw.RankNet().value([1, 0], [margin, 0], [0, 2])[0] / math.log(2)
            assert (margin <= 0) <= bound + 1e-15
        assert rw.RankNet().value([1, 0], [1, 1], [0, 2])[0] == math.log(2)

    def test_ranknet_forces(self):
        gradient, _ = rw.RankNet().derivatives(LABELS, SCORES, OFFSETS)
        forces = [-2.234, 1.571, 0.182, -1.269, 2.429, -0.679]
        np.testing.assert_allclose(-gradient, forces, atol=5e-4)

    def test_listnet(self):
        y, s = np.array([2.0, 0.0, 1.0]), np.array([2.0, 1.0, 0.0])
        gradient, _ = rw.ListNet().derivatives(y, s, [0, 3])
        p, t = np.array([0.665, 0.245, 0.090]), np.array([0.665, 0.090, 0.245])
        np.testing.assert_allclose(gradient, p - t, atol=1e-3)
        assert rw.ListNet().value(y, s, [0, 3])[0] == pytest.approx(0.987, abs=5e-4)
        assert rw.ListNet().value(y, y, [0, 3])[0] == pytest.approx(0.8324, abs=5e-5)
        # The lowest value is the entropy of the target, reached where s - y is constant.
        assert rw.ListNet().value(y, y - 7, [0, 3])[0] == pytest.approx(0.8324, abs=5e-5)
        np.testing.assert_allclose(rw.ListNet().derivatives(y, y + 3, [0, 3])[0], 0, atol=1e-15)

    def test_top_one_chances_sum_plackett_luce_orders(self):
        # P of order (1, 2, 3) is .665 e / (e + 1) = .486; ListNet's P_i sums the orders it opens.
        s = np.array([2.0, 1.0, 0.0])
        chance = {}
        for order in itertools.permutations(range(3)):
            p = 1.0
            for place in range(3):
                p *= math.exp(s[order[place]]) / sum(math.exp(s[i]) for i in order[place:])
            chance[order] = p
        assert sum(chance.values()) == pytest.approx(1)
        assert chance[0, 1, 2] == pytest.approx(0.486, abs=1e-3)
        # With one target at a time the gradient is P - e_i, so P is the gradient plus e_i.
        for i in range(3):
            weight = np.eye(3)[i]
            gradient, _ = rw.ListNet().derivatives(np.zeros(3), s, [0, 3], 3 * weight)
            opens = sum(p for order, p in chance.items() if order[0] == i)
            assert gradient[i] + 1 == pytest.approx(opens)


def test_a_query_of_one_label_pulls_nowhere():
    offsets = np.array([0, 3, 4])
    for loss in (rw.RankNet(), rw.SquaredHingePairs()):
        gradient, curvature = loss.derivatives([1, 1, 1, 2], [3, 1, 2, 0], offsets)
        assert not gradient.any()
        assert not curvature.any()
        assert not loss.value([1, 1, 1, 2], [3, 1, 2, 0], offsets).any()
    # ListNet pulls scores of equal labels together, and a single document has no choice.
    gradient, _ = rw.ListNet().derivatives([1, 1, 1, 2], [3, 1, 2, 0], offsets)
    assert gradient[0] > 0 > gradient[1]
    assert gradient[3] == 0


@each_loss
def test_unjudged_documents_take_no_part(loss):
    rng = np.random.default_rng(2)
    y, s = rng.integers(0, 3, 30).astype(float), rng.normal(size=30)
    y[rng.random(30) < 0.3] = np.nan
    kept = ~np.isnan(y)
    offsets = np.array([0, 12, 30])
    fewer = np.concatenate([[0], np.cumsum(kept)])[offsets]
    np.testing.assert_allclose(loss.value(y, s, offsets), loss.value(y[kept], s[kept], fewer))
    for whole, part in zip(
        loss.derivatives(y, s, offsets), loss.derivatives(y[kept], s[kept], fewer), strict=True
    ):
        np.testing.assert_allclose(whole[kept], part)
        assert not whole[~kept].any()


@pytest.mark.parametrize("margin", [0.0, 1e-9, 0.4, 0.9, 20.0, 40.0, 300.0, 699.0, -30.0, -1e4])
def test_ranknet_keeps_its_digits(margin):
    loss, slope, bend = reference.ranknet_pair(1.0)(margin, 0.0)
    y, s = [1, 0], [margin + 5, 5.0]
    exact = {"rel": 1e-13 if margin in (0.0, 20.0, 40.0) else 1e-9, "abs": 0}
    assert rw.RankNet().value(y, s, [0, 2])[0] == pytest.approx(loss, **exact)
    gradient, curvature = rw.RankNet().derivatives(y, s, [0, 2])
    assert gradient[0] == pytest.approx(slope, **exact)
    if bend > 1e-300:
        assert curvature[0] == pytest.approx(bend, **exact)


def test_ranknet_lists_wider_than_the_exponential():
    rng = np.random.default_rng(3)
    y, s = rng.integers(0, 4, 40).astype(float), rng.choice([-3000.0, 0.0, 1.0, 2500.0], 40)
    expected = reference.loss_by_pairs(reference.ranknet_pair(1.0), y, s, [0, 40])
    np.testing.assert_allclose(rw.RankNet().value(y, s, [0, 40]), expected[0], rtol=1e-12)
    gradient, curvature = rw.RankNet().derivatives(y, s, [0, 40])
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(curvature, np.diag(expected[2]), rtol=1e-12, atol=1e-12)
    v = rng.normal(size=40)
    product = rw.RankNet().hessian_product(y, s, [0, 40], v)
    np.testing.assert_allclose(product, expected[2] @ v, rtol=1e-12, atol=1e-12)


@each_loss
def test_threads_do_not_change_a_bit(loss):
    queries = rw.make_queries(n_queries=400, n_docs=60, rng=5)
    s = queries.X @ np.array([1.0, 0.7, 0.1, 0, 0, 1.5])
    one, two = (loss.prepare(queries.y, queries.offsets, n_threads=t)(s) for t in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a, b)
    for a, b in zip(one, loss.derivatives(queries.y, s, queries.offsets), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("levels", [2, 5, 8, 9, 1000])
def test_squared_hinge_counts_in_long_lists(levels):
    rng = np.random.default_rng(levels)
    n = 700
    y, s = np.round(rng.uniform(0, 4, n) * levels / 4) / 8, np.round(rng.normal(0, 2, n) * 8) / 8
    weight = rng.uniform(0, 2, n)
    active = (y[:, None] > y) & (s[:, None] < s + 1)
    short = np.where(active, 1 - (s[:, None] - s), 0.0)
    loss = rw.SquaredHingePairs()
    value = loss.value(y, s, [0, n], weight)[0]
    assert value == pytest.approx((weight[:, None] * short**2).sum(), rel=1e-11)
    gradient, curvature = loss.derivatives(y, s, [0, n])
    np.testing.assert_allclose(gradient, 2 * (short.sum(0) - short.sum(1)), atol=1e-8)
    assert np.array_equal(curvature, 2.0 * (active.sum(0) + active.sum(1)))
    # Both ends of every active pair are counted: sum l+ = sum l- = number of active pairs.
    assert curvature.sum() == 4 * active.sum()


@each_loss
def test_inputs_stay_as_they_are(loss):
    columns = [LABELS.copy(), SCORES.copy(), OFFSETS.copy(), np.ones(6)]
    for column in columns:
        column.flags.writeable = False
    loss.value(*columns)
    loss.derivatives(*columns)


class TestText:
    @pytest.mark.parametrize("loss", OWN, ids=str)
    def test_round_trip(self, loss):
        assert rw.parse_loss(str(loss)) == loss
        assert hash(rw.parse_loss(str(loss))) == hash(loss)
        assert rw.parse_loss(loss) is loss

    def test_every_name(self):
        for name, loss in LOSSES.items():
            assert name == loss.name
            assert rw.parse_loss(name) == loss()
            assert str(loss()) == name

    def test_forms(self):
        assert str(rw.RankNet(sigma=2)) == "ranknet(sigma=2)"
        assert str(rw.RankNet(sigma=0.1 + 0.2)) == "ranknet(sigma=0.30000000000000004)"
        assert rw.parse_loss(" ranknet( sigma = 2 ) ") == rw.RankNet(sigma=2)

    @pytest.mark.parametrize(
        ("text", "error", "message"),
        [
            ("ranknett", ValueError, r"unknown loss 'ranknett'.*did you mean 'ranknet'"),
            ("ranknet(sigm=2)", TypeError, "ranknet takes sigma, equal_labels, got 'sigm'"),
            ("squared(sigma=2)", TypeError, "squared takes no options, got 'sigma'"),
            ("ranknet(sigma=-1)", ValueError, "sigma must be a number above 0, got -1"),
            ("ranknet(sigma=x)", ValueError, "sigma must be a number above 0, got 'x'"),
            ("ranknet(2)", ValueError, "must have the form"),
            ("ranknet(**x)", ValueError, "must have the form"),
            ("rank net", ValueError, "must have the form"),
            (rw.RankNet, TypeError, "must be a name or an object"),
            (3, TypeError, "must be a name or an object"),
        ],
    )
    def test_refusals(self, text, error, message):
        with pytest.raises(error, match=message):
            rw.parse_loss(text)


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([1, 0], [1, np.nan], [0, 2]), "RankNet: s must hold one finite number per document"),
            (([1, 0], [1, np.inf], [0, 2]), "NaN or infinity"),
            (([1, 0], [1, 2, 3], [0, 2]), "got 3 for 2 documents"),
            (([1, 0], [1, 2], [0, 3]), "offsets must be integers"),
            (([1, 0], [1, 2], [0, 2, 1, 2]), "offsets must be integers"),
            (([1, 0], [1, 2], [0.0, 2.0]), "offsets must be integers"),
            (([1, 0], [1, 2], []), "offsets must be integers"),
            (([1, -1], [1, 2], [0, 2]), "labels of at least 0"),
            (([1, 0], [1, 2], [0, 2], [1, -1]), "sample_weight must be at least 0"),
        ],
    )
    def test_sentences(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            rw.RankNet().value(*arguments)
        with pytest.raises(ValueError, match=message):
            rw.RankNet().derivatives(*arguments)

    def test_wrong_types_never_become_silent_copies(self):
        y, offsets = np.zeros(2), np.array([0, 2])
        with pytest.raises(TypeError):
            _core.SquaredLoss(y.astype(np.float32), offsets, None)
        with pytest.raises(TypeError):
            _core.SquaredLoss(y, offsets.astype(np.int32), None)
        kernel = _core.SquaredLoss(y, offsets, None)
        with pytest.raises(TypeError):
            kernel.evaluate(np.zeros(4)[::2])
        with pytest.raises(ValueError, match="s must have 2 entries, got 3"):
            kernel.evaluate(np.zeros(3))
        with pytest.raises(ValueError, match="offsets"):
            _core.RankNetLoss(y, np.array([0, 5]), None, 1.0, False)

    def test_a_loss_must_define_its_kernel(self):
        class Nothing(Loss):
            name = "nothing"

        with pytest.raises(TypeError, match="must define _kernel"):
            Nothing().value([1, 0], [1, 2], [0, 2])
