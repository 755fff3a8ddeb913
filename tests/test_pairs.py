"""Preferences given as pairs: their checks, their way through Queries, and what losses make of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.data import canonical
from rankwise.losses import LOSSES

OVER_PAIRS = [name for name, loss in LOSSES.items() if loss.takes_pairs]


def label_pairs(y, offsets):
    """Every pair with different labels, as the labels themselves form them."""
    found = [
        (i, j)
        for a, b in itertools.pairwise(offsets)
        for i in range(a, b)
        for j in range(a, b)
        if y[i] > y[j]
    ]
    winner, loser = np.array(found, dtype=np.int64).reshape(-1, 2).T
    return rw.Pairs(winner, loser)


@st.composite
def lists(draw):
    sizes = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = int(offsets[-1])
    y = rng.choice([0.0, 1.0, 2.5, np.nan], n)
    weight = draw(st.sampled_from([None, rng.choice([0.0, 0.5, 2.0], n)]))
    return y, rng.normal(0, 1.5, n), offsets, weight


@pytest.mark.parametrize("name", OVER_PAIRS)
@settings(max_examples=15)
@given(case=lists())
def test_the_pairs_of_the_labels_give_the_loss_of_the_labels(name, case):
    y, s, offsets, weight = case
    loss, pairs = rw.parse_loss(name), label_pairs(y, offsets)
    near = {"rtol": 1e-11, "atol": 1e-11}
    given_ = loss.value(None, s, offsets, weight, pairs=pairs)
    np.testing.assert_allclose(given_, loss.value(y, s, offsets, weight), **near)
    ours = loss.derivatives(None, s, offsets, weight, pairs=pairs)
    for a, b in zip(ours, loss.derivatives(y, s, offsets, weight), strict=True):
        np.testing.assert_allclose(a, b, **near)
    prepared = loss.prepare(y, offsets, weight, pairs=pairs)(s)
    assert all(np.array_equal(a, b) for a, b in zip(ours, prepared, strict=True))
    if hasattr(loss, "hessian_product"):
        v = np.cos(np.arange(len(s)))
        product = loss.hessian_product(None, s, offsets, v, weight, pairs=pairs)
        expected = loss.hessian_product(y, s, offsets, v, weight)
        np.testing.assert_allclose(product, expected, **near)


@pytest.mark.parametrize("name", OVER_PAIRS)
def test_targets_and_weights(name):
    rng = np.random.default_rng(0)
    offsets, n = np.array([0, 8, 20]), 20
    rows = np.array(
        [(i, j) for a, b in [(0, 8), (8, 20)] for i in range(a, b) for j in range(a, i)]
    )
    weight, target = rng.uniform(0, 2, len(rows)), rng.choice([0, 0.2, 0.5, 1], len(rows))
    pairs = rw.Pairs(*rows.T, weight, target)
    s, documents, v = rng.normal(size=n), rng.uniform(0.5, 2, n), rng.normal(size=n)
    loss = rw.parse_loss(name)
    gradient, curvature = loss.derivatives(None, s, offsets, documents, pairs=pairs)
    h = 1e-6

    def moved(step):
        return loss.derivatives(None, s + step, offsets, documents, pairs=pairs)[0]

    for i in range(n):
        step = h * np.eye(n)[i]
        up, down = (
            loss.value(None, s + t * step, offsets, documents, pairs=pairs).sum() for t in (1, -1)
        )
        assert (up - down) / (2 * h) == pytest.approx(gradient[i], rel=1e-6, abs=1e-6)
        if hasattr(loss, "hessian_product"):
            bend = (moved(step) - moved(-step))[i] / (2 * h)
            assert bend == pytest.approx(curvature[i], rel=1e-5, abs=1e-5)
    if hasattr(loss, "hessian_product"):
        product = loss.hessian_product(None, s, offsets, v, documents, pairs=pairs)
        slope = (moved(h * v) - moved(-h * v)) / (2 * h)
        np.testing.assert_allclose(slope, product, rtol=1e-5, atol=1e-5)
    # A pair read the other way round is the same pair.
    turned = rw.Pairs(pairs.loser, pairs.winner, weight, 1 - target)
    again, _ = loss.derivatives(None, s, offsets, documents, pairs=turned)
    np.testing.assert_allclose(again, gradient, atol=1e-12)
    # The order of the list of pairs does not matter, to the last bit.
    order = rng.permutation(len(rows))
    mixed = rw.Pairs(*rows[order].T, weight[order], target[order])
    assert np.array_equal(loss.derivatives(None, s, offsets, documents, pairs=mixed)[0], gradient)


@pytest.mark.parametrize("name", sorted(set(LOSSES) - set(OVER_PAIRS)))
def test_other_losses_refuse_pairs(name):
    queries = rw.make_queries(n_queries=2, n_docs=4)
    pairs = rw.Pairs([0], [1])
    with pytest.raises(TypeError, match=r"TreeRanker\.fit: pairs need a loss .*ranknet.* got"):
        rw.TreeRanker(name).fit(queries, pairs=pairs)


def test_one_pair_by_hand():
    # log(1 + e) for target 0, log(1 + 1/e) for target 1, at a margin of 1
    for target, expected in ((0.0, np.log1p(np.e)), (1.0, np.log1p(1 / np.e))):
        pairs = rw.Pairs([0], [1], [3.0], [target])
        value = rw.RankNet().value(None, [1.0, 0.0], [0, 2], pairs=pairs)
        assert value[0] == pytest.approx(3 * expected, rel=1e-14)
    # Even pairs weigh the mean of both documents, sure ones the winner's weight.
    even, sure = rw.Pairs([0], [1], target=[0.5]), rw.Pairs([0], [1])
    for pairs, factor in ((even, 3.0), (sure, 2.0)):
        weighted = rw.RankNet().value(None, [1.0, 0.0], [0, 2], [2.0, 4.0], pairs=pairs)
        plain = rw.RankNet().value(None, [1.0, 0.0], [0, 2], pairs=pairs)
        assert weighted[0] == pytest.approx(factor * plain[0], rel=1e-14)


class TestQueries:
    def queries(self):
        # Rows of two queries, interleaved; the pairs are rows of this input.
        pairs = rw.Pairs([0, 1, 4, 5], [2, 3, 2, 1], [1.0, 2.0, 3.0, 4.0], [1.0, 0.9, 0.8, 0.7])
        X = np.arange(12.0).reshape(6, 2)
        return rw.Queries.from_arrays(X, None, list("ababab"), pairs=pairs)

    def named(self, queries):
        """The pairs by the features of their documents, which rows cannot change."""
        p = queries.pairs
        weight = np.ones(len(p)) if p.weight is None else p.weight
        first = np.asarray(queries.X)[:, 0]
        return sorted(zip(first[p.winner], first[p.loser], weight, p.target, strict=True))

    ALL = ((0.0, 4.0, 1.0, 1.0), (2.0, 6.0, 2.0, 0.9), (8.0, 4.0, 3.0, 0.8), (10.0, 2.0, 4.0, 0.7))

    def test_from_arrays_follows_the_rows(self):
        queries = self.queries()
        assert tuple(self.named(queries)) == self.ALL
        assert np.isnan(queries.y).all()

    def test_take_concatenate_split_folds(self):
        queries = self.queries()
        b, a = queries.take([1]), queries.take([0])
        assert self.named(b) == [self.ALL[1], self.ALL[3]]
        assert self.named(a) == [self.ALL[0], self.ALL[2]]
        assert tuple(self.named(rw.concatenate([b, a]))) == self.ALL
        twice = queries.take([0, 0])
        assert len(twice.pairs) == 4
        assert sorted(twice.pairs.winner) == [0, 2, 3, 5]
        parts = queries.split([0.5, 0.5])
        assert tuple(sorted(pair for p in parts for pair in self.named(p))) == self.ALL
        many = rw.make_queries(n_queries=9, n_docs=4)
        many = rw.Queries(
            many.X, many.y, many.offsets, many.ids, pairs=label_pairs(many.y, many.offsets)
        )
        for parts in many.folds(3):
            assert sum(len(p.pairs) for p in parts) == len(many.pairs)
            for part in parts:
                expected = label_pairs(part.y, part.offsets)
                assert np.array_equal(part.pairs.winner, expected.winner)
                assert np.array_equal(part.pairs.loser, expected.loser)

    def test_concatenate_needs_all_or_none(self):
        queries = self.queries()
        bare = rw.Queries(queries.X, np.zeros(6), queries.offsets, np.array(["c", "d"]))
        with pytest.raises(ValueError, match="all parts or none must have pairs"):
            rw.concatenate([queries, bare])

    def test_canonical_follows_the_rows(self):
        queries = self.queries()
        assert tuple(self.named(canonical(queries))) == self.ALL

    def test_canonical_tells_equal_documents_apart_by_their_pairs(self):
        X = np.array([[1.0], [1.0], [0.0], [2.0]])
        for order in itertools.permutations(range(4)):
            place = np.argsort(order)
            pairs = rw.Pairs(place[[0, 3, 1]], place[[2, 1, 3]])
            one = canonical(rw.Queries.from_arrays(X[list(order)], None, [0] * 4, pairs=pairs))
            base = canonical(
                rw.Queries.from_arrays(X, None, [0] * 4, pairs=rw.Pairs([0, 3, 1], [2, 1, 3]))
            )
            assert np.array_equal(one.X, base.X)
            assert np.array_equal(one.pairs.winner, base.pairs.winner)
            assert np.array_equal(one.pairs.loser, base.pairs.loser)


class TestAssessors:
    def test_targets_count_the_assessors(self):
        rng = np.random.default_rng(3)
        labels = rng.choice([0.0, 1.0, 2.0, np.nan], (14, 5))
        qid = rng.integers(0, 3, 14)
        pairs = rw.pairs_from_labels(labels, qid)
        assert (pairs.target >= 0.5).all()
        seen = {}
        for i, j, w, t in zip(pairs.winner, pairs.loser, pairs.weight, pairs.target, strict=True):
            seen[i, j] = (w, t)
            seen[j, i] = (w, 1 - t)
        for i, j in itertools.permutations(range(14), 2):
            both = [(a, b) for a, b in zip(labels[i], labels[j], strict=True) if a == a and b == b]
            if qid[i] != qid[j] or not both:
                assert (i, j) not in seen
                continue
            won = sum((a > b) + 0.5 * (a == b) for a, b in both)
            assert seen[i, j] == (len(both), pytest.approx(won / len(both), abs=1e-15))

    def test_one_assessor_is_ranknet_with_even_ties(self):
        y = np.array([2.0, 0.0, 2.0, 1.0])
        pairs = rw.pairs_from_labels(y[:, None], [7] * 4)
        assert len(pairs) == 6
        assert pairs.target[(y[pairs.winner] == y[pairs.loser])].tolist() == [0.5]
        # What the tied pair adds is the mean of both directions.
        s = np.array([0.3, -1.0, 0.9, 2.0])
        tie = 0.5 * (np.logaddexp(0, 0.6) + np.logaddexp(0, -0.6))
        whole = rw.RankNet().value(None, s, [0, 4], pairs=pairs)[0]
        assert whole == pytest.approx(rw.RankNet().value(y, s, [0, 4])[0] + tie, rel=1e-13)

    def test_the_sum_over_assessors(self):
        """The loss of the shares is the sum of the losses of each assessor's labels."""
        rng = np.random.default_rng(5)
        labels, s = rng.integers(0, 3, (10, 4)).astype(float), rng.normal(size=10)
        one_by_one = sum(
            rw.RankNet().value(
                None, s, [0, 10], pairs=rw.pairs_from_labels(labels[:, [a]], np.zeros(10))
            )[0]
            for a in range(4)
        )
        together = rw.pairs_from_labels(labels, np.zeros(10))
        assert rw.RankNet().value(None, s, [0, 10], pairs=together)[0] == pytest.approx(one_by_one)

    @pytest.mark.parametrize(
        ("labels", "qid", "message"),
        [
            ([1, 2], [0, 0], r"labels must be two-dimensional, \(n_docs, n_assessors\)"),
            ([[1], [-2]], [0, 0], "labels must be at least 0 and finite, got .* at row 1"),
            ([[1], [2]], [0], "qid must have one entry per row of labels, got 1 for 2"),
        ],
    )
    def test_refusals(self, labels, qid, message):
        with pytest.raises(ValueError, match=message):
            rw.pairs_from_labels(labels, qid)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0], [1, 2]), ValueError, "winner and loser must have the same length, got 1 and 2"),
        (([0], [0]), ValueError, "must be two documents, got row 0 twice in pair 0"),
        (([-1], [0]), ValueError, "winner must hold row numbers of at least 0, got -1"),
        (([0.5], [0]), TypeError, "winner must be a list of row numbers"),
        (
            ([0], [1], [-1.0]),
            ValueError,
            "weight must be at least 0 and finite, got -1.0 at pair 0",
        ),
        (([0], [1], None, [1.5]), ValueError, "target must be between 0 and 1, got 1.5 at pair 0"),
        (([0], [1], None, [np.nan]), ValueError, "target must be between 0 and 1, got nan"),
    ],
)
def test_bad_pairs(arguments, error, message):
    with pytest.raises(error, match=message):
        rw.Pairs(*arguments)


def test_pairs_must_fit_the_lists():
    loss, s = rw.RankNet(), np.zeros(4)
    with pytest.raises(ValueError, match="RankNet: pairs must hold rows below the 4 documents"):
        loss.value(None, s, [0, 4], pairs=rw.Pairs([4], [0]))
    with pytest.raises(
        ValueError, match="RankNet: pairs must stay inside one query, got rows 0 and 3"
    ):
        loss.value(None, s, [0, 2, 4], pairs=rw.Pairs([0], [3]))
    with pytest.raises(ValueError, match="y must hold one label per document, got None"):
        loss.value(None, s, [0, 4])
    with pytest.raises(TypeError, match="ListNet: pairs need a loss that is a sum over pairs"):
        rw.ListNet().value(None, s, [0, 4], pairs=rw.Pairs([0], [1]))
