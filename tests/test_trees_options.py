"""Boosted trees: DART, GOSS, schedules, constraints, categories, continued training, Shapley values."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import rankwise as rw
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
