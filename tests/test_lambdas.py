"""LambdaRank: the worked numbers, brute force over tie orders, finite differences."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from rankwise.lambdas import LambdaRank
from rankwise.losses import parse_loss
from rankwise.metrics import parse_metric

NOTE_LABELS = np.array([0.0, 3.0, 1.0, 0.0, 2.0, 0.0])
NOTE_SCORES = np.array([2.5, 2.0, 1.5, 1.0, 0.5, 0.0])
METRICS = ["ndcg", "ndcg@3", "ndcg(gain=identity, discount=letor)@4", "dcg", "precision@2", "rbp"]


def one_query(n):
    return np.array([0, n])


def form(metric, y):
    """Gains, discounts and ideal of one query."""
    m = parse_metric(metric)
    gains, discount = m.gains(y), m.discounts(len(y))
    ideal = float(np.sort(gains)[::-1] @ discount) if m.name == "ndcg" else 1.0
    return gains, discount, ideal


def expected(loss, y, s, weight=None):
    gains, discount, ideal = form(loss.metric, y)
    if ideal == 0:
        return 0.0, np.zeros(len(y)), np.zeros(len(y))
    weights = reference.swap_weights(
        gains, s, discount, ideal, ties=loss.ties, truncation=loss.truncation
    )
    if loss.normalize in ("gap", "both") and len(set(s)) > 1:
        weights = weights / (0.01 + np.abs(np.subtract.outer(s, s)))
    value, gradient, curvature = reference.lambda_loss(
        gains, s, weights, sigma=loss.sigma, documents=weight
    )
    if loss.normalize in ("query", "both"):
        total = pair_force(loss, gains, s, weights, weight)
        scale = math.log2(1 + total) / total if total > 0 else 1.0
        gradient, curvature = gradient * scale, curvature * scale
    return value, gradient, curvature


def pair_force(loss, gains, s, weights, weight):
    """The sum of all forces, both ends of every pair."""
    w = np.where(np.greater.outer(gains, gains), weights, 0.0)
    w = w if weight is None else w * weight[:, None]
    return 2 * loss.sigma * (w / (1 + np.exp(loss.sigma * np.subtract.outer(s, s)))).sum()


labels = st.integers(0, 4).map(float)
lists = st.lists(st.tuples(labels, st.integers(-2, 2)), min_size=1, max_size=5)
losses = st.builds(
    LambdaRank,
    metric=st.sampled_from(METRICS),
    sigma=st.sampled_from([1.0, 0.5, 3.0]),
    truncation=st.sampled_from([None, 1, 2, 4]),
    ties=st.sampled_from(["average", "stable"]),
    normalize=st.sampled_from(["none", "gap", "query", "both"]),
)


def test_forces_and_newton_weights_of_the_course_note():
    gradient, curvature = LambdaRank().derivatives(NOTE_LABELS, NOTE_SCORES, one_query(6))
    assert (-gradient).round(3).tolist() == [-0.383, 0.286, -0.005, -0.052, 0.184, -0.031]
    expected = [0.095665, 0.150634, 0.038876, 0.034366, 0.046391, 0.02608]
    np.testing.assert_allclose(curvature, expected, atol=5e-6)
    assert np.argmax(-gradient) == 1  # RankNet pushes the document at place 5 hardest


def test_swap_changes_of_the_course_note():
    gains, discount, ideal = form("ndcg", NOTE_LABELS)
    w = reference.swap_weights(gains, NOTE_SCORES, discount, ideal)
    assert [round(w[1, 0], 3), round(w[1, 4], 3), round(w[2, 4], 3)] == [0.275, 0.104, 0.024]


def test_without_discount_steps_the_note_s_ranknet_forces_come_out():
    # Pairs of unit weight: gains 0/1 cannot give them, so each pair of levels is added on its own.
    forces = np.zeros(6)
    for i in range(6):
        for j in range(6):
            if NOTE_LABELS[i] > NOTE_LABELS[j]:
                y = np.array([1.0, 0.0])
                s = NOTE_SCORES[[i, j]]
                loss = LambdaRank(metric="precision@1")  # a swap of two changes it by 1
                g, _ = loss.derivatives(y, s, one_query(2))
                forces[[i, j]] -= g
    assert forces.round(3).tolist() == [-2.234, 1.571, 0.182, -1.269, 2.429, -0.679]


@given(losses, lists, st.booleans(), st.integers(0, 5))
def test_equals_brute_force_over_the_orders_of_tied_documents(loss, rows, weighted, seed):
    y = np.array([row[0] for row in rows])
    s = np.array([row[1] * 0.7 for row in rows])
    weight = np.random.default_rng(seed).uniform(0.5, 2, len(y)) if weighted else None
    value, gradient, curvature = expected(loss, y, s, weight)
    offsets = one_query(len(y))
    got = loss.derivatives(y, s, offsets, weight)
    np.testing.assert_allclose(got[0], gradient, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(got[1], curvature, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(loss.value(y, s, offsets, weight), [value], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("truncation", [None, 1, 3, 7, 30])
@pytest.mark.parametrize("distinct", [1, 3, 10_000])
@pytest.mark.parametrize("n", [2, 5, 31, 32, 33, 64, 65, 97, 300])
def test_long_lists_equal_a_loop_over_pairs(n, distinct, truncation):
    rng = np.random.default_rng(n * distinct)
    y = rng.integers(0, 5, n).astype(float)
    s = rng.integers(0, distinct, n) / distinct * 6
    discount = 1 / np.log2(np.arange(2, n + 2))
    kept = np.arange(n) < (n if truncation is None else truncation)
    # E |D(p) - D(q)| over the places of two documents, from all pairs of places.
    place_pairs = np.abs(np.subtract.outer(discount, discount)) * (kept[:, None] | kept)
    # at[b, p]: place p belongs to the b-th best block of equal scores.
    values, block, size = np.unique(-s, return_inverse=True, return_counts=True)
    at = (np.sort(-s) == values[:, None]) / size[:, None]
    between = at @ place_pairs @ at.T
    inside = np.diag(between) * size / np.maximum(size - 1, 1)  # two different places
    np.fill_diagonal(between, inside)
    weights = np.abs(np.subtract.outer(2**y, 2**y)) * between[np.ix_(block, block)]
    ideal = np.sort(2**y - 1)[::-1] @ discount
    if ideal == 0:
        ideal = 1.0
    _, gradient, curvature = reference.lambda_loss(2**y - 1, s, weights / ideal)
    got = LambdaRank(truncation=truncation).derivatives(y, s, one_query(n))
    np.testing.assert_allclose(got[0], gradient, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(got[1], curvature, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("loss", [LambdaRank(), LambdaRank("dcg", sigma=2.0, truncation=3)])
def test_gradient_and_curvature_are_finite_differences_with_the_weights_held_fixed(loss):
    # Steps smaller than the gaps keep the ranking, hence the weights.
    rng = np.random.default_rng(1)
    y, s = rng.integers(0, 4, 8).astype(float), rng.permutation(8) * 0.3
    offsets = one_query(8)
    gradient, curvature = loss.derivatives(y, s, offsets)
    h = 1e-4
    for i in range(8):
        step = h * (np.arange(8) == i)
        up, here, down = (loss.value(y, s + d * step, offsets)[0] for d in (1, 0, -1))
        assert gradient[i] == pytest.approx((up - down) / (2 * h), rel=1e-6)
        assert curvature[i] == pytest.approx((up - 2 * here + down) / h**2, rel=1e-5)


@given(losses, lists)
def test_gradients_sum_to_0_and_curvatures_are_not_negative(loss, rows):
    y, s = np.array(rows, dtype=float).T.copy()
    gradient, curvature = loss.derivatives(y, s, one_query(len(y)))
    assert abs(gradient.sum()) <= 1e-12 * np.abs(gradient).sum()
    assert (curvature >= 0).all()


@given(losses, lists, st.sampled_from([-1024.0, 0.5, 64.0]))
def test_a_constant_added_to_a_query_changes_nothing(loss, rows, shift):
    y, s = np.array(rows, dtype=float).T.copy()
    offsets = one_query(len(y))
    for a, b in zip(
        loss.derivatives(y, s, offsets), loss.derivatives(y, s + shift, offsets), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)


@given(lists, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter_under_average_ties(rows, random):
    y, s = np.array(rows, dtype=float).T.copy()
    order = list(range(len(y)))
    random.shuffle(order)
    offsets = one_query(len(y))
    for a, b in zip(
        LambdaRank().derivatives(y, s, offsets),
        LambdaRank().derivatives(y[order], s[order], offsets),
        strict=True,
    ):
        np.testing.assert_allclose(a[order], b, rtol=1e-12, atol=1e-15)


def test_when_all_scores_are_equal_the_forces_are_the_gain_differences():
    # E|D(p) - D(q)| = c for all pairs: force_i = c / (2 ideal) * sum over j of (g_i - g_j).
    y = np.array([0.0, 2.0, 1.0, 0.0])
    gains, discount, ideal = form("ndcg", y)
    c = np.mean([abs(discount[p] - discount[q]) for p in range(4) for q in range(4) if p != q])
    gradient, _ = LambdaRank().derivatives(y, np.zeros(4), one_query(4))
    np.testing.assert_allclose(-gradient, c / 2 / ideal * (4 * gains - gains.sum()), rtol=1e-13)


def test_queries_without_a_pair_have_no_force():
    y = np.array([2.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    s = np.arange(6.0)
    offsets = np.array([0, 1, 4, 4, 6])  # one document; one label; no document; nothing relevant
    for column in LambdaRank().derivatives(y, s, offsets):
        assert not column.any()
    assert LambdaRank().value(y, s, offsets).tolist() == [0, 0, 0, 0]


def test_an_unjudged_document_holds_a_place_but_takes_part_in_no_pair():
    y = np.array([0.0, np.nan, 1.0])
    s = np.array([3.0, 2.0, 1.0])
    gradient, curvature = LambdaRank().derivatives(y, s, one_query(3))
    change = 1 * (1 - 1 / math.log2(4)) / 1  # places 1 and 3
    rho = 1 / (1 + math.exp(-2.0))
    np.testing.assert_allclose(gradient, [change * rho, 0, -change * rho], rtol=1e-14)
    bend = change * rho * (1 - rho)
    np.testing.assert_allclose(curvature, [bend, 0, bend], rtol=1e-13)


def test_a_pair_counts_with_the_weight_of_its_winner():
    y, s = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 2.0])
    one = LambdaRank().derivatives(y, s, one_query(3))[0]
    three = LambdaRank().derivatives(y, s, one_query(3), np.array([3.0, 7.0, 11.0]))[0]
    np.testing.assert_allclose(three, 3 * one, rtol=1e-14)


def test_scores_far_apart_neither_overflow_nor_lose_the_wrongly_ordered_pair():
    y, s = np.array([1.0, 0.0, 0.0]), np.array([-5000.0, 0.0, 5000.0])
    gradient, curvature = LambdaRank().derivatives(y, s, one_query(3))
    d = 1 / np.log2([2, 3, 4])
    forces = [d[0] - d[2], d[1] - d[2]]  # rho = 1 for both pairs
    np.testing.assert_allclose(gradient, [-sum(forces), forces[1], forces[0]], rtol=1e-14)
    assert np.isfinite(curvature).all()
    value = LambdaRank().value(y, s, one_query(3))[0]
    assert value == pytest.approx(forces[0] * 10_000 + forces[1] * 5_000, rel=1e-14)


@pytest.mark.parametrize("loss", [LambdaRank(), LambdaRank(truncation=5, normalize="both")])
def test_results_do_not_depend_on_the_number_of_threads(loss):
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 200, 300))])
    y = rng.integers(0, 5, offsets[-1]).astype(float)
    s = rng.normal(size=offsets[-1]).round(1)
    one, two = (loss.prepare(y, offsets, n_threads=t)(s) for t in (1, 2))
    assert one[0].tobytes() == two[0].tobytes()
    assert one[1].tobytes() == two[1].tobytes()


def test_inputs_are_not_modified_and_the_loss_is_a_value():
    y, s = NOTE_LABELS.copy(), NOTE_SCORES.copy()
    LambdaRank().derivatives(y, s, one_query(6))
    assert (y == NOTE_LABELS).all()
    assert (s == NOTE_SCORES).all()
    assert LambdaRank("ndcg@10") == LambdaRank(parse_metric("ndcg@10"))
    assert len({LambdaRank("ndcg@10"), LambdaRank(), LambdaRank("nDCG@10")}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        LambdaRank().sigma = 2.0


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (LambdaRank(), "lambdarank"),
        (LambdaRank("ndcg@10", truncation=30), "lambdarank(metric=ndcg@10, truncation=30)"),
        (LambdaRank(sigma=2, ties="stable"), "lambdarank(sigma=2, ties='stable')"),
    ],
)
def test_text_round_trip(loss, text):
    assert str(loss) == text
    assert parse_loss(text) == loss


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"metric": "judged"}, "must depend on the order of judged documents, got 'judged'"),
        ({"metric": "ndgc"}, "did you mean 'ndcg'"),
        ({"sigma": 0}, "sigma must be a number above 0, got 0"),
        ({"truncation": 0}, "truncation must be an integer of at least 1, got 0"),
        ({"ties": "worst"}, "ties must be one of 'average', 'stable', got 'worst'"),
        ({"normalize": "yes"}, "normalize must be one of 'none', 'gap', 'query', 'both'"),
    ],
)
def test_options_out_of_range_are_refused(keywords, message):
    with pytest.raises(ValueError, match=message):
        LambdaRank(**keywords)


def test_labels_whose_gain_overflows_are_refused_with_the_largest_named():
    y = np.array([0.0, 2000.0, 3.0])
    with pytest.raises(ValueError, match=r"overflows for label 2000.*gain='identity'"):
        LambdaRank().derivatives(y, np.zeros(3), one_query(3))
    gradient, _ = LambdaRank("ndcg(gain='identity')").derivatives(y, np.zeros(3), one_query(3))
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_must_be_finite(bad):
    with pytest.raises(ValueError, match=r"scores must be finite, got .* at document 1"):
        LambdaRank().derivatives([1.0, 0.0], [0.0, bad], one_query(2))


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="one score per document, got 1 for 2 documents"):
        LambdaRank().derivatives([1.0, 0.0], [0.0], one_query(2))
    with pytest.raises(ValueError, match="offsets must be integers that start at 0"):
        LambdaRank().derivatives([1.0, 0.0], [0.0, 1.0], np.array([0, 3]))


def test_the_kernel_takes_no_silent_copies():
    kernel = LambdaRank()._kernel([1.0, 0.0], one_query(2), None)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        kernel.gradients(np.zeros(2, dtype=np.float32))
