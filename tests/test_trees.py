"""Boosted trees: the course note's numbers, trees by hand, and that storage never matters."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pytest
import scipy.sparse as sp

import rankwise as rw
from rankwise.lambdas import LambdaRank
from rankwise.losses import RankNet, Squared
from rankwise.metrics import NDCG, parse_metric
from rankwise.trees import TreeRanker

LOSSES = ["lambdarank", "squared", "ranknet", "listnet"]
SMALL = {"n_estimators": 5, "num_leaves": 6, "min_child_samples": 3}


@pytest.fixture(scope="module")
def course():
    queries = rw.make_queries("course")
    return queries.take(range(300)), queries.take(range(300, 1300))


@pytest.fixture(scope="module")
def lists():
    """A few small queries of different lengths with a learnable order and repeated values."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 25, 40)
    X = rng.normal(size=(sizes.sum(), 4)).round(1)
    y = np.clip(np.round(X[:, 0] + X[:, 1] * (X[:, 2] > 0) + rng.normal(size=len(X)) * 0.3), 0, 4)
    return rw.Queries.from_arrays(X, y, np.repeat(np.arange(40), sizes))


def stored_otherwise(queries, seed=0):
    """The same lists with rows shuffled across queries, queries renamed: (X, y, qid)."""
    rows = np.random.default_rng(seed).permutation(queries.n_docs)
    names = np.array([f"query {i}" for i in np.random.default_rng(seed).permutation(len(queries))])
    return queries.X[rows], queries.y[rows], np.repeat(names, queries.sizes)[rows]


# --- the course note -----------------------------------------------------------------------------


def test_the_note_s_scikit_learn_trees(course):
    from sklearn.ensemble import GradientBoostingRegressor

    train, test = course
    model = GradientBoostingRegressor(n_estimators=100, max_depth=3, random_state=0)
    model.fit(train.X, train.y)
    ndcg = (NDCG @ 5).mean(test.y, model.predict(test.X), qid=test.groups)
    assert round(ndcg, 3) == 0.766
    assert model.feature_importances_.round(2).tolist() == [0.25, 0.13, 0.06, 0.06, 0.0, 0.51]


def test_lambdamart_beats_pointwise_trees_and_ignores_the_query_feature(course):
    train, test = course
    pointwise, lambdamart = (
        TreeRanker(loss, max_depth=3, num_leaves=8, metric="ndcg@5").fit(train)
        for loss in ("squared", "lambdarank")
    )
    assert 0.76 < pointwise.score(test) < 0.79
    assert 0.78 < lambdamart.score(test) < 0.84
    assert lambdamart.score(test) > pointwise.score(test)
    assert 0.45 < pointwise.feature_importances_[5] < 0.55
    assert lambdamart.feature_importances_[5] < 0.01
    assert lambdamart.feature_importances_.sum() == pytest.approx(1)


def test_lambdamart_is_ahead_of_pointwise_trees_on_five_draws():
    # The note's gaps, .007 to .048, are those of one order of ties; their sign is not.
    for seed in range(5):
        queries = rw.make_queries("course", rng=seed)
        train, test = queries.take(range(300)), queries.take(range(300, 1300))
        options = {"max_depth": 3, "num_leaves": 8, "metric": "ndcg@5", "n_jobs": 1}
        pointwise, lambdamart = (
            TreeRanker(loss, **options).fit(train).score(test) for loss in ("squared", "lambdarank")
        )
        assert 0.0 < lambdamart - pointwise < 0.06


def test_a_split_by_whole_queries_gains_nothing(course):
    # Forces sum to 0 in each query, so they do on either side of such a split; the squared loss's do not.
    train, _ = course
    high = train.X[:, 5] > 0
    start = np.zeros(train.n_docs)
    for loss, most in (("lambdarank", 1e-9), ("ranknet", 1e-9), ("listnet", 1e-9)):
        gradient, _ = rw.parse_loss(loss).derivatives(train.y, start, train.offsets)
        assert abs(gradient[high].sum()) < most * np.abs(gradient[high]).sum()
    gradient, _ = rw.Squared().derivatives(train.y, start + train.y.mean(), train.offsets)
    assert abs(gradient[high].sum()) > 0.1 * np.abs(gradient[high]).sum()


# --- trees by hand -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_leaves_of_the_first_tree_are_newton_steps(lists, loss):
    ranker = TreeRanker(loss, n_estimators=1, learning_rate=1.0, reg_lambda=0.25, num_leaves=5)
    ranker.fit(lists)
    start = np.full(lists.n_docs, ranker.start_)
    gradient, curvature = rw.parse_loss(loss).derivatives(lists.y, start, lists.offsets)
    scores = ranker.predict(lists)
    assert len(np.unique(scores)) == 5
    for leaf in np.unique(scores):
        inside = scores == leaf
        step = -gradient[inside].sum() / (curvature[inside].sum() + 0.25)
        assert leaf == pytest.approx(ranker.start_ + step, rel=1e-5, abs=1e-6)


def test_a_tree_of_two_leaves_takes_the_best_of_all_splits(lists):
    ranker = TreeRanker(n_estimators=1, num_leaves=2, min_child_samples=4, max_bin=1000).fit(lists)
    gradient, curvature = LambdaRank().derivatives(lists.y, np.zeros(lists.n_docs), lists.offsets)
    best = (-np.inf, None)
    for feature in range(4):
        # LightGBM puts at least three rows in a bin; its own edges are the candidates.
        for edge in bin_edges(lists.X[:, feature]):
            left = lists.X[:, feature] <= edge
            if min(left.sum(), (~left).sum()) < 4:
                continue
            gain = sum(gradient[s].sum() ** 2 / curvature[s].sum() for s in (left, ~left))
            best = max(best, (gain, (feature, left.tobytes())))
    found = ranker.predict(lists)
    feature = int(np.argmax(ranker.feature_importances_))
    sides = {(found == v).tobytes() for v in np.unique(found)}
    assert best[1][0] == feature
    assert best[1][1] in sides


def bin_edges(column):
    """Upper ends of LightGBM's bins: distinct values, at least three rows each, zero apart."""
    data = lgb.Dataset(column[:, None], params={"max_bin": 1000, "verbosity": -1, "min_data": 1})
    label = np.arange(len(column), dtype=float)
    booster = lgb.train(
        {"num_leaves": 1000, "min_data_in_leaf": 1, "verbosity": -1, "max_bin": 1000},
        data.set_label(label),
        1,
    )
    return sorted(set(booster.trees_to_dataframe()["threshold"].dropna()))


def test_first_tree_equals_lightgbm_s_own_lambdarank_under_its_definition(course):
    # Lists of 30: truncation at 30 keeps all pairs and the ideal is that of the whole list. Up to
    # 4,081 documents the bins are cut from all values, as LightGBM cuts them.
    train = rw.data.canonical(course[0].take(range(130)))
    ours = TreeRanker(LambdaRank(ties="stable", truncation=30), n_estimators=1, num_leaves=15)
    theirs = lgb.LGBMRanker(
        n_estimators=1,
        num_leaves=15,
        lambdarank_norm=False,
        lambdarank_truncation_level=30,
        force_col_wise=True,
        deterministic=True,
        verbose=-1,
    )
    theirs.fit(train.X, train.y.astype(int), group=train.sizes)
    np.testing.assert_allclose(
        ours.fit(train).predict(train), theirs.predict(train.X), rtol=1e-4, atol=1e-6
    )


# --- storage, threads, batches -------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "options", [{}, {"subsample": 0.5, "colsample_bytree": 0.5, "random_state": 7}]
)
def test_shuffled_rows_and_renamed_queries_give_the_same_model(lists, loss, options):
    a = TreeRanker(loss, **SMALL, **options).fit(lists)
    X, y, qid = stored_otherwise(lists)
    b = TreeRanker(loss, **SMALL, **options).fit(X, y, qid=qid)
    assert a.model_text_ == b.model_text_
    assert a.start_ == b.start_


def test_binning_of_more_rows_than_lightgbm_samples_does_not_depend_on_their_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(210_000, 2)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=len(X)) > 1).astype(float)
    queries = rw.Queries.from_arrays(X, y, rw.qid_from_sizes([100] * 2100))
    options = {"n_estimators": 2, "num_leaves": 31, "min_child_samples": 1}
    a = TreeRanker(**options).fit(queries)
    b = TreeRanker(**options).fit(*stored_otherwise(queries)[:2], qid=stored_otherwise(queries)[2])
    assert a.model_text_ == b.model_text_


@pytest.mark.parametrize("options", [{}, {"subsample": 0.7, "colsample_bytree": 0.5}])
def test_one_and_two_threads_give_the_same_model(course, options):
    train = course[0]
    one, two = (
        TreeRanker(n_estimators=3, random_state=1, n_jobs=n, **options).fit(train) for n in (1, 2)
    )
    assert one.model_text_ == two.model_text_
    assert one.predict(train).tobytes() == two.predict(train).tobytes()


def test_equal_seeds_give_equal_models_and_other_seeds_others(lists):
    def fit(seed):
        return TreeRanker(**SMALL, subsample=0.5, random_state=seed).fit(lists).model_text_

    assert fit(1) == fit(1) != fit(2)


def test_subsample_draws_whole_queries():
    # Feature q tells the documents of query q apart and is 0 elsewhere: a tree that did not draw
    # query q cannot split on it.
    X = np.zeros((200, 10))
    for q in range(10):
        X[q * 20 : (q + 1) * 20, q] = np.arange(20)
    y = np.tile(np.arange(20) >= 10, 10).astype(float)
    qid = rw.qid_from_sizes([20] * 10)
    options = {"n_estimators": 30, "min_child_samples": 1, "learning_rate": 1e-6}
    ranker = TreeRanker(**options, subsample=0.3, random_state=0).fit(X, y, qid=qid)
    trees = lgb.Booster(model_str=ranker.model_text_).trees_to_dataframe()
    used = trees.groupby("tree_index")["split_feature"].agg(lambda column: set(column.dropna()))
    assert {len(features) for features in used} == {3}
    assert len(set.union(*used)) == 10


@pytest.mark.parametrize("loss", ["lambdarank", "squared"])
def test_equal_rows_score_equal_bits_in_any_batch(lists, loss):
    ranker = TreeRanker(loss, **SMALL).fit(lists)
    whole = ranker.predict(lists)
    rows = np.concatenate([ranker.predict(lists.X[i : i + 1]) for i in range(lists.n_docs)])
    assert whole.tobytes() == rows.tobytes()
    assert whole[::-1].tobytes() == ranker.predict(lists.X[::-1]).tobytes()
    as_csr = ranker.predict(sp.csr_matrix(lists.X))
    assert whole.tobytes() == as_csr.tobytes()


def test_sparse_rows_give_the_model_of_dense_ones(lists):
    X = np.where(np.abs(lists.X) < 0.8, 0, lists.X)
    dense = TreeRanker(**SMALL).fit(X, lists.y, qid=lists.qid)
    sparse = TreeRanker(**SMALL).fit(sp.csr_matrix(X), lists.y, qid=lists.qid)
    assert dense.model_text_ == sparse.model_text_


def test_copies_and_pickles_score_the_same_bits(lists):
    ranker = TreeRanker("squared", **SMALL).fit(lists)
    scores = ranker.predict(lists)
    for other in (copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker))):
        assert other.predict(lists).tobytes() == scores.tobytes()
    fitted = {k: v for k, v in vars(ranker).items() if k.endswith("_")}
    kinds = (np.ndarray, float, int, str, type(None))
    assert all(isinstance(v, kinds) for v in fitted.values()), fitted


def test_a_file_scores_the_same_bits(lists, tmp_path):
    saving = pytest.importorskip("rankwise.saving")
    ranker = TreeRanker(LambdaRank("ndcg@5"), **SMALL).fit(lists, eval_set=lists)
    ranker.save(tmp_path / "trees.rank")
    read = saving.load(tmp_path / "trees.rank")
    assert read.predict(lists).tobytes() == ranker.predict(lists).tobytes()
    assert read.get_params() == ranker.get_params()
    np.testing.assert_array_equal(read.feature_importances_, ranker.feature_importances_)


# --- boosting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["lambdarank", "squared"])
def test_stages_end_at_predict_and_each_lowers_the_squared_loss(lists, loss):
    ranker = TreeRanker(loss, **SMALL).fit(lists)
    stages = list(ranker.staged_predict(lists))
    assert len(stages) == ranker.n_estimators_ == 5
    assert stages[-1].tobytes() == ranker.predict(lists).tobytes()
    if loss == "squared":
        values = [Squared().value(lists.y, s, lists.offsets).sum() for s in stages]
        assert (np.diff(values) < 0).all()


@pytest.mark.parametrize("metric", ["ndcg@5", "ap", "rr"])
def test_early_stopping_keeps_the_best_validation_round(course, metric):
    train, test = course[0].take(range(60)), course[1].take(range(100))
    ranker = TreeRanker(
        n_estimators=200, learning_rate=0.3, early_stopping_rounds=10, metric=metric
    ).fit(train, eval_set=(test.X, test.y, test.qid))
    every = TreeRanker(n_estimators=200, learning_rate=0.3).fit(train)
    m = parse_metric(metric)
    scores = [m.mean(test.y, s, qid=test.groups) for s in every.staged_predict(test)]
    rounds = len(ranker.validation_scores_)
    np.testing.assert_allclose(ranker.validation_scores_, scores[:rounds], rtol=1e-12)
    best = int(np.argmax(scores[:rounds]))
    assert ranker.n_estimators_ == best + 1
    assert rounds == best + 1 + 10 < 200
    assert ranker.score(test) == pytest.approx(max(scores[:rounds]), rel=1e-12)
    assert (ranker.predict(test) == list(ranker.staged_predict(test))[-1]).all()


def test_validation_queries_without_early_stopping_choose_among_all_rounds(course):
    train, test = course[0].take(range(30)), course[1].take(range(50))
    ranker = TreeRanker(n_estimators=30, learning_rate=0.5).fit(train, eval_set=test)
    assert len(ranker.validation_scores_) == 30
    assert ranker.n_estimators_ == np.argmax(ranker.validation_scores_) + 1


def test_pointwise_scores_start_at_the_weighted_mean_label(lists):
    weight = np.random.default_rng(0).uniform(0.5, 2, lists.n_docs)
    ranker = TreeRanker("squared", **SMALL).fit(
        lists.X, lists.y, qid=lists.qid, sample_weight=weight
    )
    assert ranker.start_ == pytest.approx(np.average(lists.y, weights=weight), rel=1e-12)
    assert TreeRanker("lambdarank", **SMALL).fit(lists).start_ == 0


def test_missing_values_go_where_they_help():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    relevant = rng.random(400) < 0.3
    X[relevant, 0] = np.nan  # missing means relevant
    qid = rw.qid_from_sizes([20] * 20)
    ranker = TreeRanker(n_estimators=5).fit(X, relevant.astype(float), qid=qid)
    assert ranker.score(X, relevant.astype(float), qid=qid) == 1
    for row in ([np.nan, 0.0], [np.nan, 3.0]):
        assert ranker.predict([row])[0] > ranker.predict([[0.0, 0.0]])[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_twice_as_large_change_nothing_and_uneven_ones_do(lists, loss):
    def scores(weight):
        ranker = TreeRanker(loss, **SMALL, min_child_weight=0)
        return ranker.fit(lists.X, lists.y, qid=lists.qid, sample_weight=weight).predict(lists)

    ones = np.ones(lists.n_docs)
    uneven = np.random.default_rng(0).uniform(0.1, 3, lists.n_docs)
    np.testing.assert_allclose(scores(2 * ones), scores(ones), rtol=1e-9, atol=1e-12)
    assert not np.allclose(scores(uneven), scores(ones))


def test_a_function_of_the_user_is_a_loss(lists):
    def ranknet(y, s, offsets, weight):
        return RankNet().derivatives(y, s, offsets, weight)

    ours = TreeRanker("ranknet", **SMALL).fit(lists)
    assert TreeRanker(ranknet, **SMALL).fit(lists).model_text_ == ours.model_text_


def test_queries_without_a_pair_do_not_change_the_splits(lists):
    # One document, one label, nothing relevant: no force, so the same trees up to the counts.
    extra = np.vstack([lists.X, lists.X[:6]])
    y = np.concatenate([lists.y, [2, 1, 1, 0, 0, 0]])
    qid = np.concatenate([lists.qid, [100, 101, 101, 102, 102, 102]])
    alone = TreeRanker(**SMALL | {"min_child_samples": 1}).fit(lists)
    more = TreeRanker(**SMALL | {"min_child_samples": 1}).fit(extra, y, qid=qid)
    np.testing.assert_allclose(more.predict(lists), alone.predict(lists), rtol=1e-5)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be an integer of at least 1, got 0"),
        ({"learning_rate": 0}, "learning_rate must be a number above 0, got 0"),
        ({"num_leaves": 1}, "num_leaves must be an integer of at least 2, got 1"),
        ({"max_depth": 0}, "max_depth must be an integer of at least 1, got 0"),
        ({"min_child_samples": 0}, "min_child_samples must be an integer of at least 1"),
        ({"reg_lambda": -1}, "reg_lambda must be a number of at least 0, got -1"),
        ({"subsample": 1.5}, "subsample must be a number above 0 and at most 1, got 1.5"),
        ({"colsample_bytree": 0}, "colsample_bytree must be a number above 0"),
        ({"max_bin": 1}, "max_bin must be an integer of at least 2, got 1"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"early_stopping_rounds": 5}, "early_stopping_rounds=5 needs validation queries"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds must be an integer of at least 1"),
        ({"loss": "lambdarnk"}, "unknown loss 'lambdarnk'.*did you mean 'lambdarank'"),
        ({"metric": "ndgc"}, "did you mean 'ndcg'"),
        ({"loss": lambda y, s, o, w: (y[:-1], y)}, "must return a finite gradient for each"),
        ({"loss": lambda y, s, o, w: (y, y * np.nan)}, "must return a finite curvature"),
    ],
)
def test_options_out_of_range_are_refused_at_fit(lists, options, message):
    with pytest.raises(ValueError, match=message):
        TreeRanker(**options).fit(lists)


def test_labels_whose_gain_overflows_are_refused_and_identity_gains_take_them(lists):
    y = lists.y.copy()
    y[3] = 2000
    with pytest.raises(ValueError, match="overflows for label 2000"):
        TreeRanker().fit(lists.X, y, qid=lists.qid)
    TreeRanker(LambdaRank("ndcg(gain='identity')"), **SMALL).fit(lists.X, y, qid=lists.qid)


def test_too_few_documents_for_a_split_warn(lists):
    few = lists.take(range(2))
    with pytest.warns(UserWarning, match=r"min_child_samples=1000 .* all scores are equal"):
        ranker = TreeRanker(min_child_samples=1000).fit(few)
    assert (ranker.predict(few) == ranker.start_).all()


def test_predicting_before_fitting_is_refused(lists):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        TreeRanker().predict(lists)
    with pytest.raises(NotFittedError):
        list(TreeRanker().staged_predict(lists))


def test_the_chapter_on_trees_runs(capsys):
    chapter = (Path(__file__).parents[1] / "docs" / "trees.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", chapter, flags=re.DOTALL):
        exec(code, names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("squared")
    assert lines[2].startswith("lambdarank")
    assert lines[2].endswith("0.  ]")  # nothing for the feature that is constant in a query
