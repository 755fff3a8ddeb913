"""LambdaLoss and ARP-loss: their definitions pair by pair, over all orders of ties."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from rankwise.lambdas import ARPLoss, LambdaLoss
from rankwise.losses import RankNet, parse_loss

label = st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0, np.nan])
lists = st.lists(st.tuples(label, st.integers(0, 2)), min_size=1, max_size=5)
losses = st.builds(
    LambdaLoss,
    kind=st.sampled_from(["ndcg1", "ndcg2", "ndcg2++"]),
    mu=st.sampled_from([0.0, 2.0, 10.0]),
    metric=st.sampled_from(["ndcg", "ndcg@2", "ndcg(gain=identity, discount=letor)@3"]),
    sigma=st.sampled_from([1.0, 0.5]),
    truncation=st.sampled_from([None, 1, 2, 4]),
    ties=st.sampled_from(["average", "stable"]),
    normalize=st.sampled_from(["none", "gap"]),
)


def one_query(n):
    return np.array([0, n])


def pair_weights(loss, y, s):
    """E w[winner, loser] over the orders of ties, by the definition."""
    n = len(y)
    known = np.nan_to_num(y)
    gains = loss.metric.gains(known)
    discount = loss.metric.discounts(n + 1)
    ideal = np.sort(gains)[::-1] @ discount[:n]
    if ideal == 0:
        return np.zeros((n, n))
    orders = list(reference.orders_of(s))
    if loss.ties == "stable":
        orders = [sorted(range(n), key=lambda i: (-s[i], i))]
    total = np.zeros((n, n))
    for order in orders:
        place = np.argsort(order)
        for i, j in itertools.permutations(range(n), 2):
            p, q = place[i], place[j]
            if np.isnan(y[i]) or np.isnan(y[j]):
                continue
            if loss.truncation is not None and min(p, q) >= loss.truncation:
                continue
            if loss.kind == "ndcg1":
                total[i, j] += gains[i] * discount[p]
            elif y[i] > y[j]:
                d = abs(p - q)
                delta = abs(discount[d - 1] - discount[d])
                rho = abs(discount[p] - discount[q])
                w = delta if loss.kind == "ndcg2" else rho + loss.mu * delta
                total[i, j] += abs(gains[i] - gains[j]) * w
    return total / len(orders) / ideal


def by_pairs(weights, s, sigma):
    """Value, gradient and curvature of the sum over ordered pairs."""
    margin = sigma * np.subtract.outer(s, s)
    rho = 1 / (1 + np.exp(margin))
    pull, bend = sigma * weights * rho, sigma**2 * weights * rho * (1 - rho)
    value = (weights * np.logaddexp(0, -margin)).sum()
    return value, pull.sum(axis=0) - pull.sum(axis=1), bend.sum(axis=0) + bend.sum(axis=1)


def assert_equal(loss, weights, y, s, documents=None):
    if documents is not None:
        weights = weights * documents[:, None]
    value, gradient, curvature = by_pairs(weights, s, loss.sigma)
    got = loss.derivatives(y, s, one_query(len(y)), documents)
    np.testing.assert_allclose(got[0], gradient, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(got[1], curvature, rtol=1e-10, atol=1e-12)
    value_of = loss.value(y, s, one_query(len(y)), documents)
    np.testing.assert_allclose(value_of, [value], rtol=1e-10, atol=1e-12)


@given(losses, lists, st.booleans())
def test_lambda_loss_equals_its_definition_over_all_orders_of_ties(loss, rows, weighted):
    y, s = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    s = 0.7 * s
    weights = pair_weights(loss, y, s)
    if loss.normalize == "gap" and len(set(s[~np.isnan(y)])) > 1:
        weights = weights / (0.01 + np.abs(np.subtract.outer(s, s)))
    documents = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    assert_equal(loss, weights, y, s, documents)


@given(st.sampled_from(["arp1", "arp2"]), lists, st.sampled_from([1.0, 2.0]), st.booleans())
def test_arp_loss_equals_its_definition(kind, rows, sigma, weighted):
    y, s = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    n = len(y)
    weights = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        if not (np.isnan(y[i]) or np.isnan(y[j])):
            weights[i, j] = y[i] if kind == "arp1" else max(y[i] - y[j], 0)
    documents = np.random.default_rng(0).uniform(0.5, 2, n) if weighted else None
    assert_equal(ARPLoss(kind, sigma=sigma), weights, y, s, documents)


@pytest.mark.parametrize("kind", ["arp1", "arp2"])
@pytest.mark.parametrize("tied", [False, True])
def test_arp_loss_is_the_function_its_gradient_belongs_to(kind, tied):
    loss = ARPLoss(kind)
    assert loss.minimizes
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, 9).astype(float)
    s = rng.normal(size=9).round(0 if tied else 6)
    gradient, curvature = loss.derivatives(y, s, one_query(9))
    h = 1e-4
    for i in range(9):
        step = h * (np.arange(9) == i)
        up, here, down = (loss.value(y, s + d * step, one_query(9))[0] for d in (1, 0, -1))
        assert gradient[i] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-7)
        assert curvature[i] == pytest.approx((up - 2 * here + down) / h**2, rel=1e-4)


def test_arp_loss_bounds_the_average_relevance_position():
    # sum of y_i rank_i = sum of y_i + sum over pairs of y_i [j above i] <= ... l / log 2.
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, s = rng.integers(0, 4, 12).astype(float), rng.normal(size=12)
        rank = np.argsort(np.argsort(-s)) + 1
        bound = y.sum() + ARPLoss("arp1").value(y, s, one_query(12))[0] / math.log(2)
        assert (y * rank).sum() <= bound


def test_arp2_with_binary_labels_is_ranknet():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, 40).astype(float), rng.normal(size=40).round(1)
    offsets = np.array([0, 15, 40])
    for a, b in zip(
        ARPLoss().derivatives(y, s, offsets), RankNet().derivatives(y, s, offsets), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_long_lists_with_ties_equal_the_pairs_one_by_one():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 60).astype(float)
    s = rng.integers(0, 12, 60) / 4
    discount = 1 / np.log2(np.arange(2, 63))
    # E delta over the places of two documents, from all pairs of places.
    d = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
    delta = np.where(d > 0, discount[d - 1] - discount[d], 0.0)
    blocks, block, size = np.unique(-s, return_inverse=True, return_counts=True)
    at = (np.sort(-s) == blocks[:, None]) / size[:, None]
    between = at @ delta @ at.T
    np.fill_diagonal(between, np.diag(between) * size / np.maximum(size - 1, 1))
    gains = 2**y - 1
    ideal = np.sort(gains)[::-1] @ discount[:60]
    weights = np.maximum(np.subtract.outer(gains, gains), 0) * between[np.ix_(block, block)] / ideal
    assert_equal(LambdaLoss("ndcg2"), weights, y, s)


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (LambdaLoss(), "lambdaloss"),
        (LambdaLoss("ndcg1", metric="ndcg@5"), "lambdaloss(kind='ndcg1', metric=ndcg@5)"),
        (ARPLoss("arp1", sigma=2), "arp(kind='arp1', sigma=2)"),
    ],
)
def test_text_round_trip(loss, text):
    assert str(loss) == text
    assert parse_loss(text) == loss


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LambdaLoss("ndcg3"), "kind must be one of 'ndcg1', 'ndcg2', 'ndcg2\\+\\+'"),
        (lambda: LambdaLoss(mu=-1), "mu must be a number of at least 0"),
        (lambda: LambdaLoss(metric="ap"), "metric must be ndcg, got 'ap'; see LambdaRank"),
        (lambda: LambdaLoss(pairs_per_doc=0), "pairs_per_doc must be an integer of at least 1"),
        (lambda: ARPLoss("arp"), "kind must be one of 'arp2', 'arp1'"),
    ],
)
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
