"""Ensembles: averages of rankers, and bags with a greedy choice."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from sklearn.exceptions import NotFittedError

import rankwise as rw
from rankwise.ensembles import choose_greedily
from rankwise.metrics import NDCG

TRAIN, VALID, TEST = rw.make_queries(n_queries=90, n_docs=12, rng=1).split((0.4, 0.3, 0.3))
TREES = rw.TreeRanker(n_estimators=6, num_leaves=6, n_jobs=1)


def places(scores, queries):
    """Mean of (1 - (rank - 1/2) / n), query after query."""
    out = np.empty(len(scores))
    for begin, end in itertools.pairwise(queries.offsets):
        rank = scipy.stats.rankdata(-scores[begin:end])
        out[begin:end] = 1 - (rank - 0.5) / (end - begin)
    return out


def spread(scores, queries):
    lists = [scores[a:b] - scores[a:b].mean() for a, b in itertools.pairwise(queries.offsets)]
    return np.sqrt(np.mean(np.concatenate(lists) ** 2))


def test_scores_are_averaged_on_one_scale():
    both = rw.EnsembleRanker(["linear", TREES], weights=[1, 3]).fit(TRAIN)
    parts = [rw.make_ranker("linear").fit(TRAIN), rw.TreeRanker(**TREES.get_params()).fit(TRAIN)]
    wanted = sum(
        w * one.predict(TEST) / spread(one.predict(TRAIN), TRAIN)
        for w, one in zip((0.25, 0.75), parts, strict=True)
    )
    np.testing.assert_allclose(both.predict(TEST), wanted, rtol=1e-10)
    assert both.score(TEST) == NDCG(k=10).mean(TEST.y, both.predict(TEST), qid=TEST.qid)
    of = rw.EnsembleRanker.of(parts, TRAIN, weights=[1, 3])
    assert np.array_equal(of.predict(TEST), both.predict(TEST))


def test_places_are_averaged_with_ties_shared():
    coarse = rw.TreeRanker(n_estimators=1, num_leaves=3, n_jobs=1)  # many equal scores
    both = rw.EnsembleRanker([coarse, "ranksvm"], by="rank").fit(TRAIN)
    parts = [coarse.fit(TRAIN), rw.make_ranker("ranksvm").fit(TRAIN)]
    assert len(set(parts[0].predict(TEST))) <= 3
    wanted = np.mean([places(one.predict(TEST), TEST) for one in parts], axis=0)
    np.testing.assert_allclose(both.predict(TEST), wanted, rtol=1e-12)
    rows = np.random.default_rng(0).permutation(TEST.n_docs)
    mixed = both.predict(TEST.X[rows], qid=TEST.qid[rows])
    assert np.array_equal(mixed, both.predict(TEST)[rows])
    assert np.array_equal(both.rank(TEST.X, TEST.qid, k=3), both.rank(TEST, k=3))
    with pytest.raises(ValueError, match="qid must say which query each row belongs to"):
        both.predict(TEST.X)


@pytest.mark.parametrize(
    "make",
    [
        lambda: rw.EnsembleRanker(["linear", TREES]),
        lambda: rw.EnsembleRanker(["linear", TREES], by="rank"),
        lambda: rw.BaggedRanker(TREES, n_rankers=3, random_state=5),
        lambda: rw.BaggedRanker("ranknet", n_rankers=3, random_state=5),
    ],
)
def test_order_of_rows_and_files_change_nothing(make, tmp_path):
    one = make().fit(TRAIN, eval_set=VALID)
    rows = np.random.default_rng(0).permutation(TRAIN.n_docs)
    again = make().fit(TRAIN.X[rows], TRAIN.y[rows], qid=TRAIN.qid[rows], eval_set=VALID)
    assert np.array_equal(again.predict(TEST), one.predict(TEST))
    floor = rw.RandomRanker().fit(TRAIN).score(TEST)
    assert one.score(TEST) > floor + 0.15
    one.save(tmp_path / "model")
    loaded = rw.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(TEST), one.predict(TEST))
    assert [type(r) for r in loaded.rankers_] == [type(r) for r in one.rankers_]


def test_greedy_choice_by_hand():
    """Of three columns, each good for one query, the choice adds what the metric gains most by."""
    queries = rw.Queries.from_arrays(np.zeros((6, 1)), [1, 0, 1, 0, 1, 0], qid=[0, 0, 1, 1, 2, 2])
    good = [np.zeros(6) for _ in range(3)]
    for q, size in enumerate((3.0, 2.0, 1.0)):
        good[q][2 * q] = size
    bad = -sum(good)
    chosen, values = choose_greedily([bad, *good], queries, rw.parse_metric("precision@1"), 5)
    assert chosen == [1, 2, 3]
    # A query is worth 1 when right and 1/2, the mean over the orders of the tie, before.
    np.testing.assert_allclose(values, [2 / 3, 5 / 6, 1, 1, 1])


def test_bags_are_averaged_without_validation():
    bags = rw.BaggedRanker(TREES, n_rankers=4, bag=0.5, random_state=2).fit(TRAIN)
    assert len(bags.rankers_) == 4 and bags.validation_scores_ is None
    mean = np.mean([one.predict(TEST) for one in bags.rankers_], axis=0)
    np.testing.assert_allclose(bags.predict(TEST), mean, rtol=1e-12)
    assert len({one.score(TRAIN) for one in bags.rankers_}) > 1


def test_chosen_bags_are_no_worse_on_validation_than_the_best_of_them():
    bags = rw.BaggedRanker(TREES, n_rankers=6, n_chosen=8, random_state=0)
    bags.fit(TRAIN, eval_set=VALID)
    assert bags.weights_.sum() == pytest.approx(1)
    best = bags.validation_scores_.max()
    assert bags.score(VALID) == pytest.approx(best, abs=1e-12)
    assert best >= max(one.score(VALID) for one in bags.rankers_) - 1e-12


def test_what_is_refused():
    with pytest.raises(ValueError, match="must hold at least one ranker, got none"):
        rw.EnsembleRanker([]).fit(TRAIN)
    with pytest.raises(ValueError, match="one number of at least 0 for each of the 2 rankers"):
        rw.EnsembleRanker(["linear", "ranknet"], weights=[1, -1]).fit(TRAIN)
    with pytest.raises(ValueError, match="by must be"):
        rw.EnsembleRanker(["linear"], by="votes").fit(TRAIN)
    with pytest.raises(TypeError, match="an ensemble takes rankers of rankwise"):
        rw.EnsembleRanker([3]).fit(TRAIN)
    with pytest.raises(NotFittedError):
        rw.EnsembleRanker(["linear"]).predict(TEST)
    with pytest.raises(NotFittedError):
        rw.EnsembleRanker(["linear"], by="rank").predict(TEST)
    with pytest.raises(ValueError, match="n_rankers must be"):
        rw.BaggedRanker(TREES, n_rankers=0).fit(TRAIN)
