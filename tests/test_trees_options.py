"""Boosted trees: DART, GOSS, schedules, constraints, categories, continued training, Shapley values."""

from __future__ import annotations

import itertools
import math
import pickle

import lightgbm as lgb
import numpy as np
import pytest

import rankwise as rw
from rankwise.metrics import NDCG
from rankwise.trees import TreeRanker

SMALL = {"n_estimators": 8, "num_leaves": 6, "min_child_samples": 3, "random_state": 0}
# What draws, rounds or constrains; each must keep the promises about storage and threads.
OPTIONS = {
    "dart": {"boosting": "dart", "drop_rate": 0.5, "skip_drop": 0.2},
    "dart sampled": {"boosting": "dart", "drop_rate": 0.5, "skip_drop": 0.0, "subsample": 0.6},
    "goss": {"boosting": "goss", "learning_rate": 0.5},
    "gradient_bins": {"gradient_bins": 16},
    "schedule": {"learning_rate": [0.5 / (i + 1) for i in range(8)]},
    "monotone": {"monotone": {0: 1, 3: -1}},
    "categorical": {"categorical": [4]},
    "categorical sampled": {"categorical": [4], "subsample": 0.7, "colsample_bytree": 0.5},
}


@pytest.fixture(scope="module")
def lists():
    """Queries of different lengths; feature 4 is a category that matters, feature 3 has holes."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 40, 60)
    n = sizes.sum()
    X = np.column_stack([rng.normal(size=(n, 4)).round(1), rng.integers(0, 12, n)])
    X[rng.random(n) < 0.2, 3] = np.nan
    effect = rng.permutation(12) / 4
    z = X[:, 0] + X[:, 1] * (X[:, 2] > 0) + effect[X[:, 4].astype(int)]
    y = np.clip(np.round(z + rng.normal(size=n) * 0.3), 0, 4)
    return rw.Queries.from_arrays(X, y, np.repeat(np.arange(60), sizes))


@pytest.fixture(scope="module")
def course():
    queries = rw.make_queries("course")
    return queries.take(range(200)), queries.take(range(300, 500))


@pytest.fixture(scope="module")
def plain(lists):
    return TreeRanker(**SMALL).fit(lists)


def stored_otherwise(queries, seed=0):
    """The same lists with rows shuffled across queries, queries renamed: (X, y, qid)."""
    rows = np.random.default_rng(seed).permutation(queries.n_docs)
    names = np.array([f"query {i}" for i in np.random.default_rng(seed).permutation(len(queries))])
    return queries.X[rows], queries.y[rows], np.repeat(names, queries.sizes)[rows]


# --- promises that hold for every option ---------------------------------------------------------


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_has_an_effect_that_storage_and_threads_do_not_have(lists, plain, name):
    options = SMALL | OPTIONS[name]
    one = TreeRanker(**options, n_jobs=1).fit(lists)
    X, y, qid = stored_otherwise(lists)
    other = TreeRanker(**options, n_jobs=2).fit(X, y, qid=qid)
    assert one.model_text_ == other.model_text_
    assert one.model_text_ != plain.model_text_
    assert TreeRanker(**options).fit(lists).model_text_ == one.model_text_


@pytest.mark.parametrize("name", OPTIONS)
def test_a_file_and_a_copy_score_the_same_bits(lists, name, tmp_path):
    ranker = TreeRanker(**SMALL | OPTIONS[name]).fit(lists)
    ranker.save(tmp_path / "trees.rank")
    for read in (rw.load(tmp_path / "trees.rank"), pickle.loads(pickle.dumps(ranker))):
        assert read.predict(lists).tobytes() == ranker.predict(lists).tobytes()
        assert read.get_params() == ranker.get_params()
        np.testing.assert_array_equal(read.split_counts_, ranker.split_counts_)


@pytest.mark.parametrize("name", OPTIONS)
def test_stages_end_at_predict(lists, name):
    ranker = TreeRanker(**SMALL | OPTIONS[name]).fit(lists)
    stages = list(ranker.staged_predict(lists))
    assert len(stages) == ranker.n_estimators_ == 8
    assert stages[-1].tobytes() == ranker.predict(lists).tobytes()


def test_more_rows_and_threads_than_a_block_of_the_engine(course):
    # LightGBM draws and sums in blocks of 1,024 rows or so; 6,000 rows fill several.
    train = course[0]
    for options in OPTIONS.values():
        options = {k: v for k, v in options.items() if k not in ("categorical", "learning_rate")}
        one, two = (
            TreeRanker(n_estimators=15, random_state=1, n_jobs=n, **options).fit(train)
            for n in (1, 2)
        )
        assert one.model_text_ == two.model_text_


# --- what boosted trees must do whatever the options -----------------------------------------------


def test_a_tree_of_two_leaves_by_hand():
    # Three equal queries (LightGBM wants three rows in a bin) of labels 2, 1, 0; DCG's gains 3, 1, 0.
    # All scores are equal, so rho = 1/2, and each pair's swap change is its difference of gains times
    # the mean D of |D(p) - D(q)| over the pairs of places: 2 D, 3 D and 1 D.
    X, y = np.tile([[3.0], [2.0], [1.0]], (3, 1)), np.tile([2.0, 1.0, 0.0], 3)
    D = (1 - 1 / np.log2(4)) * 2 / 3  # (D1 - D2 + D1 - D3 + D2 - D3) / 3
    force, weight = (
        np.array([2 + 3, 1 - 2, -3 - 1]) * D / 2,
        np.array([2 + 3, 2 + 1, 3 + 1]) * D / 4,
    )
    options = {"num_leaves": 2, "min_child_samples": 1, "min_child_weight": 0, "learning_rate": 1}
    ranker = TreeRanker(rw.LambdaRank("dcg"), n_estimators=1, reg_lambda=0.5, **options)
    ranker.fit(X, y, qid=np.repeat([0, 1, 2], 3))
    # The best split puts the first documents on one side.
    gains = [
        sum(
            (3 * force[s].sum()) ** 2 / (3 * weight[s].sum() + 0.5) for s in (slice(k), slice(k, 3))
        )
        for k in (1, 2)
    ]
    assert gains[0] > gains[1]
    leaves = [3 * force[s].sum() / (3 * weight[s].sum() + 0.5) for s in (slice(1), slice(1, 3))]
    np.testing.assert_allclose(ranker.predict(X[:3]), [leaves[0], leaves[1], leaves[1]], rtol=1e-6)


def test_the_metric_of_a_stage_is_that_of_the_summed_trees(course):
    train, valid = course
    ranker = TreeRanker(n_estimators=12, num_leaves=8).fit(train, eval_set=valid)
    booster = lgb.Booster(model_str=ranker.model_text_)
    stages = list(ranker.staged_predict(valid))
    for count, scores in enumerate(stages, 1):
        assert np.array_equal(scores, booster.predict(valid.X, num_iteration=count))
        value = (NDCG @ 10).mean(valid.y, scores, qid=valid.groups)
        assert ranker.validation_scores_[count - 1] == pytest.approx(value, rel=1e-12)


def test_order_of_features_changes_nothing_but_their_numbers(lists):
    order = np.array([3, 0, 4, 2, 1])
    one = TreeRanker(**SMALL).fit(lists)
    other = TreeRanker(**SMALL).fit(lists.with_features(lists.X[:, order]))
    # Rows are put in another order, so sums are rounded otherwise.
    np.testing.assert_allclose(other.predict(lists.X[:, order]), one.predict(lists), rtol=1e-6)
    assert other.split_counts_.tolist() == one.split_counts_[order].tolist()


def test_a_rising_transform_of_a_feature_changes_nothing():
    queries = rw.make_queries(n_queries=100)  # few enough documents for bins of single values
    X = queries.X.copy()
    X[:, 0], X[:, 2] = np.exp(X[:, 0]), X[:, 2] ** 3
    options = SMALL | {"max_bin": 5000}
    one = TreeRanker(**options).fit(queries)
    other = TreeRanker(**options).fit(queries.with_features(X))
    np.testing.assert_allclose(other.predict(X), one.predict(queries), rtol=1e-6)


def test_a_query_of_one_document_contributes_nothing(lists):
    X = np.vstack([lists.X, [[9.0, 9.0, 9.0, 9.0, 11.0]]])
    y, qid = np.append(lists.y, 4), np.append(lists.qid, 1000)
    gradient, curvature = rw.LambdaRank().derivatives(y[-1:], [0.0], [0, 1])
    assert gradient.tolist() == curvature.tolist() == [0]
    options = SMALL | {"min_child_samples": 1, "max_bin": 5000}
    alone, more = TreeRanker(**options).fit(lists), TreeRanker(**options).fit(X, y, qid=qid)
    np.testing.assert_allclose(more.predict(lists), alone.predict(lists), rtol=1e-5)


@pytest.mark.parametrize("loss", ["lambdarank", "squared", "listnet"])
def test_a_query_weight_is_a_query_seen_that_often(lists, loss):
    # Copies of a query force what one query of that weight forces, and count as more documents.
    options = SMALL | {"min_child_samples": 1, "max_bin": 5000, "min_child_weight": 0}
    times = np.random.default_rng(0).integers(1, 4, len(lists))
    weighted = TreeRanker(loss, **options).fit(
        lists.X, lists.y, qid=lists.qid, sample_weight=np.repeat(times, lists.sizes)
    )
    copies = [lists.take(np.flatnonzero(times > i)) for i in range(3)]
    again = TreeRanker(loss, **options).fit(
        np.vstack([c.X for c in copies]),
        np.concatenate([c.y for c in copies]),
        qid=np.concatenate([c.qid + 1000 * i for i, c in enumerate(copies)]),
    )
    np.testing.assert_allclose(again.predict(lists), weighted.predict(lists), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("text", [f"lambdarank(metric='{m}')" for m in ("ap", "rr", "err")])
def test_lambdamart_for_another_metric_by_its_text(course, text):
    train, valid = course
    metric = text.split("'")[1]
    ranker = rw.make_ranker(
        f'lambdamart(loss="{text}", n_estimators=60, num_leaves=8, metric="{metric}")'
    ).fit(train)
    assert ranker.score(valid) > rw.RandomRanker(metric=metric).fit(train).score(valid) + 0.2
    assert ranker.model_text_ != TreeRanker(n_estimators=60, num_leaves=8).fit(train).model_text_


# --- each option ------------------------------------------------------------------------------------


def test_a_schedule_is_its_numbers_and_a_constant_one_is_no_schedule(lists, plain):
    halves = TreeRanker(**SMALL | {"learning_rate": lambda i: 0.4 * 0.5**i}).fit(lists)
    listed = TreeRanker(**SMALL | {"learning_rate": [0.4 * 0.5**i for i in range(8)]}).fit(lists)
    assert halves.model_text_ == listed.model_text_
    rates = [line for line in halves.model_text_.split("\n") if line.startswith("shrinkage=")]
    np.testing.assert_allclose(
        [float(line.split("=")[1]) for line in rates], 0.4 * 0.5 ** np.arange(8), rtol=1e-5
    )
    constant = TreeRanker(**SMALL | {"learning_rate": lambda i: 0.1}).fit(lists)
    assert constant.model_text_ == plain.model_text_


def test_dart_keeps_all_trees_and_rescales_them(course):
    train, valid = course
    options = {"boosting": "dart", "drop_rate": 0.3, "skip_drop": 0.0, "random_state": 0}
    ranker = TreeRanker(n_estimators=15, num_leaves=8, **options).fit(train, eval_set=valid)
    assert ranker.n_estimators_ == len(ranker.validation_scores_) == 15
    assert ranker.score(valid) == pytest.approx(ranker.validation_scores_[-1], rel=1e-9)
    shrinkages = {x for x in ranker.model_text_.split("\n") if x.startswith("shrinkage=")}
    assert len(shrinkages) > 3
    none = {**options, "drop_rate": 0.0}
    never = TreeRanker(n_estimators=15, num_leaves=8, **none).fit(train)
    plain = TreeRanker(n_estimators=15, num_leaves=8, random_state=0).fit(train)
    np.testing.assert_allclose(never.predict(valid), plain.predict(valid), rtol=1e-9)


def test_goss_grows_trees_on_a_part_of_the_documents(course):
    # All at rates that sum to 1 and no other documents to weight up: what GOSS leaves out is counted.
    train, _ = course
    options = {"n_estimators": 4, "learning_rate": 0.5, "num_leaves": 4, "random_state": 0}
    ranker = TreeRanker(boosting="goss", top_rate=0.2, other_rate=0.1, **options).fit(train)
    counts = [
        sum(map(int, line.split("=")[1].split()))
        for line in ranker.model_text_.split("\n")
        if line.startswith("leaf_count=")
    ]
    assert counts[0] == train.n_docs  # the first 1 / learning_rate rounds use all
    assert all(c == pytest.approx(0.3 * train.n_docs, rel=0.05) for c in counts[2:])


def test_rounded_gradients_approach_the_exact_ones(course):
    train, valid = course
    scores = {
        bins: TreeRanker(n_estimators=30, num_leaves=8, gradient_bins=bins).fit(train).score(valid)
        for bins in (2, 126, None)
    }
    assert abs(scores[126] - scores[None]) < 0.02
    assert scores[2] < scores[126]


@pytest.mark.parametrize("monotone", [{"x0": 1, 1: -1}, [1, -1, 0, 0, 0, 0]])
def test_monotone_constraints_hold_everywhere(course, monotone):
    train, _ = course
    ranker = TreeRanker(n_estimators=20, num_leaves=12, monotone=monotone).fit(train)
    X = np.repeat(train.X[:40], 50, axis=0)
    for feature, sign in ((0, 1), (1, -1)):
        line = X.copy()
        line[:, feature] = np.tile(np.linspace(-3, 3, 50), 40)
        steps = np.diff(ranker.predict(line).reshape(40, 50), axis=1)
        assert (sign * steps >= 0).all()
        free = TreeRanker(n_estimators=20, num_leaves=12).fit(train).predict(line).reshape(40, 50)
        assert (sign * np.diff(free, axis=1) < 0).any()
    assert ranker.split_counts_[0] > 0


def test_a_category_is_split_by_sets():
    rng = np.random.default_rng(1)
    category = rng.integers(0, 16, 3000)
    good = np.isin(category, [1, 2, 5, 7, 11, 13, 14])  # no threshold tells these apart
    X = np.column_stack([category, rng.normal(size=3000)])
    qid = np.repeat(np.arange(100), 30)
    options = {"n_estimators": 1, "num_leaves": 2, "learning_rate": 1.0}
    sets = TreeRanker(**options, categorical=[0]).fit(X, good.astype(float), qid=qid)
    assert np.array_equal(sets.predict(X) > 0, good)
    numbers = TreeRanker(**options).fit(X, good.astype(float), qid=qid)
    assert not np.array_equal(numbers.predict(X) > 0, good)
    unseen = sets.predict([[99.0, 0.0], [np.nan, 0.0]])
    assert unseen[0] == unseen[1] < 0
    named = rw.Queries.from_arrays(X, good.astype(float), qid, feature_names=("kind", "noise"))
    by_name = TreeRanker(**options, categorical=["kind"]).fit(named)
    assert by_name.model_text_ == sets.model_text_


# --- continued training -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"subsample": 0.6}, {"categorical": [4]}])
def test_a_warm_start_goes_on_to_the_bits_of_one_training(lists, options):
    whole = TreeRanker(**SMALL | {"n_estimators": 12}, **options).fit(lists)
    parts = TreeRanker(**SMALL | {"n_estimators": 5}, **options, warm_start=True).fit(lists)
    parts.set_params(n_estimators=12).fit(lists)
    assert parts.n_estimators_ == 12
    assert parts.predict(lists).tobytes() == whole.predict(lists).tobytes()
    assert parts.model_text_ == whole.model_text_
    np.testing.assert_array_equal(parts.split_counts_, whole.split_counts_)
    with pytest.raises(ValueError, match="at least the 12 trees that a warm start goes on from"):
        parts.set_params(n_estimators=3).fit(lists)


def test_a_warm_start_watches_the_sum_of_all_trees(course):
    train, valid = course
    ranker = TreeRanker(n_estimators=5, num_leaves=8, warm_start=True).fit(train)
    ranker.set_params(n_estimators=12).fit(train, eval_set=valid)
    assert len(ranker.validation_scores_) == 7
    best = ranker.validation_scores_.max()
    assert ranker.score(valid) == pytest.approx(best, rel=1e-12)
    assert 5 < ranker.n_estimators_ <= 12


@pytest.mark.parametrize("first", [rw.RankSVM(C=0.01), TreeRanker("squared", n_estimators=6)])
def test_trees_are_added_to_the_scores_of_a_ranker(course, first, tmp_path):
    train, valid = course
    first = first.fit(train)
    ranker = TreeRanker(n_estimators=20, num_leaves=8).fit(train, init_model=first, eval_set=valid)
    assert ranker.score(valid) == pytest.approx(ranker.validation_scores_.max(), rel=1e-12)
    assert ranker.score(valid) > first.score(valid)
    stages = list(ranker.staged_predict(valid))
    assert np.array_equal(stages[-1], ranker.predict(valid))
    # The same trees, given the scores instead of the ranker.
    alone = TreeRanker(n_estimators=ranker.n_estimators_, num_leaves=8)
    alone.fit(train, init_score=first.predict(train))
    assert alone.model_text_ == ranker.model_text_
    np.testing.assert_allclose(
        alone.predict(valid) + first.predict(valid), ranker.predict(valid), rtol=1e-12
    )
    ranker.save(tmp_path / "both")
    assert np.array_equal(rw.load(tmp_path / "both").predict(valid), ranker.predict(valid))


def test_initial_scores_follow_their_rows(lists):
    init = np.random.default_rng(0).normal(size=lists.n_docs)
    rows = np.random.default_rng(1).permutation(lists.n_docs)
    one = TreeRanker(**SMALL).fit(lists, init_score=init)
    X, y, qid = lists.X[rows], lists.y[rows], lists.qid[rows]
    other = TreeRanker(**SMALL).fit(X, y, qid=qid, init_score=init[rows])
    binned = TreeRanker(**SMALL).fit(rw.bin_queries(lists), init_score=init)
    assert one.model_text_ == other.model_text_ == binned.model_text_
    assert one.model_text_ != TreeRanker(**SMALL).fit(lists).model_text_


# --- Shapley values -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIONS)
def test_shapley_values_sum_to_the_score(lists, name):
    ranker = TreeRanker(**SMALL | OPTIONS[name]).fit(lists)
    values, expected = ranker.shap_values(lists)
    assert values.shape == lists.X.shape
    np.testing.assert_allclose(expected + values.sum(axis=1), ranker.predict(lists), rtol=1e-9)
    assert (values[:, ranker.split_counts_ == 0] == 0).all()


def test_shapley_values_add_up_over_a_ranker_and_its_trees(lists):
    first = TreeRanker("squared", **SMALL).fit(lists)
    ranker = TreeRanker(**SMALL).fit(lists, init_model=first)
    values, expected = ranker.shap_values(lists)
    np.testing.assert_allclose(expected + values.sum(axis=1), ranker.predict(lists), rtol=1e-9)
    other = TreeRanker(**SMALL).fit(lists.with_features(np.nan_to_num(lists.X)))
    linear = rw.RankSVM().fit(lists.with_features(np.nan_to_num(lists.X)))
    other.fit(lists.with_features(np.nan_to_num(lists.X)), init_model=linear)
    with pytest.raises(ValueError, match="RankSVM, which has no Shapley values of trees"):
        other.shap_values(np.nan_to_num(lists.X))


def test_shapley_values_equal_their_definition():
    """All subsets of four features; features outside a subset are averaged along the tree's paths."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).round(2)
    y = np.clip(np.round(X[:, 0] * X[:, 1] + X[:, 2] + 1), 0, 4)
    ranker = TreeRanker(n_estimators=2, num_leaves=6).fit(X, y, qid=np.repeat(np.arange(15), 20))
    trees = lgb.Booster(model_str=ranker.model_text_).dump_model()["tree_info"]

    def mean(node, x, known):
        if "leaf_value" in node:
            return node["leaf_value"]
        sides = node["left_child"], node["right_child"]
        if node["split_feature"] in known:
            return mean(sides[int(x[node["split_feature"]] > node["threshold"])], x, known)
        n = [s.get("leaf_count", s.get("internal_count")) for s in sides]
        return sum(k * mean(s, x, known) for k, s in zip(n, sides, strict=True)) / sum(n)

    def value(x, known):
        return sum(mean(t["tree_structure"], x, known) for t in trees)

    found, expected = ranker.shap_values(X[:5])
    assert expected == pytest.approx(value(X[0], ()), rel=1e-9)
    for x, row in zip(X[:5], found, strict=True):
        for j in range(4):
            others = [i for i in range(4) if i != j]
            wanted = sum(
                math.factorial(size) * math.factorial(3 - size) / math.factorial(4)
                * (value(x, (*known, j)) - value(x, known))
                for size in range(4)
                for known in itertools.combinations(others, size)
            )  # fmt: skip
            assert row[j] == pytest.approx(wanted, rel=1e-7, abs=1e-9)


# --- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"boosting": "rf"}, "boosting must be one of 'gbdt', 'dart', 'goss', got 'rf'"),
        ({"boosting": "dart", "early_stopping_rounds": 5}, "needs a best round, and DART has none"),
        ({"boosting": "dart", "learning_rate": [0.1] * 7 + [0.2]}, "one number with boosting='da"),
        ({"boosting": "dart", "drop_rate": 2}, "drop_rate must be a number of at least 0 and at m"),
        ({"boosting": "goss", "subsample": 0.5}, "subsample must be 1 with boosting='goss'"),
        ({"boosting": "goss", "top_rate": 0.9, "other_rate": 0.2}, "must be at most 1, got 0.9"),
        ({"learning_rate": [0.1, 0.2]}, "one number for each of the 8 rounds, got 2"),
        ({"learning_rate": lambda i: -i}, "learning_rate must be a number above 0, got 0"),
        ({"learning_rate": "fast"}, "learning_rate must be a number above 0, got 'fast'"),
        ({"gradient_bins": 1}, "gradient_bins must be an integer of at least 2 and at most 126"),
        ({"monotone": [1]}, "give -1, 0 or 1 for each of the 5 features, got 1 entries"),
        ({"monotone": {0: 2}}, "monotone must hold -1, 0 or 1, got 2"),
        ({"monotone": {7: 1}}, "monotone must hold positions from 0 to 4, got 7"),
        ({"monotone": {"x0": 1}}, "positions where the features have no names, got 'x0'"),
        ({"categorical": [0]}, "categorical feature 0 must hold integers from 0"),
        ({"categorical": [4, 4]}, "must name each feature once"),
    ],
)
def test_options_out_of_range_are_refused(lists, options, message):
    with pytest.raises(ValueError, match=message):
        TreeRanker(**SMALL | options).fit(lists, eval_set=lists)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"init_model": "ranksvm"}, TypeError, "must be a fitted ranker of rankwise, got str"),
        ({"init_score": [1.0]}, ValueError, "one finite score for each of the"),
        ({"init_model": rw.RandomRanker(), "init_score": [1.0]}, ValueError, "not both be given"),
        ({"group": [3]}, TypeError, "queries are given by qid"),
        ({"colour": 3}, TypeError, "unexpected keyword argument 'colour'"),
    ],
)
def test_arguments_of_fit_are_refused(lists, given, kind, message):
    with pytest.raises(kind, match=message):
        TreeRanker(**SMALL).fit(lists, **given)


def test_initial_scores_and_validation_queries_are_refused_together(lists):
    with pytest.raises(ValueError, match="init_score says nothing of the queries in eval_set"):
        TreeRanker(**SMALL).fit(lists, init_score=np.zeros(lists.n_docs), eval_set=lists)
    warm = TreeRanker(**SMALL, warm_start=True).fit(lists)
    with pytest.raises(ValueError, match="a warm start goes on from the trees there are"):
        warm.fit(lists, init_model=rw.RandomRanker().fit(lists))
    with pytest.raises(ValueError, match="a warm start needs the 5 features"):
        warm.fit(lists.with_features(lists.X[:, :3]))


def test_a_function_as_schedule_has_no_file(lists, tmp_path):
    ranker = TreeRanker(**SMALL | {"learning_rate": lambda i: 0.1}).fit(lists)
    with pytest.raises(TypeError, match=r"TreeRanker\.learning_rate must have a form without"):
        ranker.save(tmp_path / "trees")


def test_a_set_of_categories_that_does_not_fit_is_refused(lists):
    from rankwise.saving import _Damaged, check_trees

    text = TreeRanker(**SMALL, categorical=[4]).fit(lists).model_text_
    check_trees(text, 5, 8)
    assert "cat_boundaries=0 1" in text
    for old, new in (("cat_boundaries=0 1", "cat_boundaries=0 9"), ("num_cat=1", "num_cat=2")):
        assert old in text
        with pytest.raises(_Damaged, match="tree"):
            check_trees(text.replace(old, new, 1), 5, 8)
