"""Class probabilities as scores: the expected label."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import rankwise as rw

QUERIES = rw.make_queries(n_queries=60, n_docs=15, rng=2)


def test_the_score_is_the_expected_label():
    # Fractional labels, which a classifier would refuse as they are.
    y = np.array([0.0, 0.5, 3.0])[np.minimum(QUERIES.y, 2).astype(int)]
    ranker = rw.PointwiseRanker(LogisticRegression(max_iter=500)).fit(QUERIES.X, y, qid=QUERIES.qid)
    assert ranker.labels_.tolist() == [0.0, 0.5, 3.0]
    chances = ranker.estimator_.predict_proba(QUERIES.X)
    np.testing.assert_allclose(ranker.predict(QUERIES), chances @ [0.0, 0.5, 3.0], rtol=1e-12)
    assert ranker.score(QUERIES) > rw.RandomRanker().fit(QUERIES).score(QUERIES) + 0.2


def test_missing_classes_keep_their_labels():
    kept = QUERIES.y != 1
    ranker = rw.PointwiseRanker(LogisticRegression(max_iter=500))
    ranker.fit(QUERIES.X[kept], QUERIES.y[kept], qid=QUERIES.qid[kept])
    assert 1.0 not in ranker.labels_
    assert ranker.predict(QUERIES).max() > 1.5


def test_a_classifier_without_chances_is_refused():
    with pytest.raises(TypeError, match=r"must have predict_proba.*LinearSVC; wrap it in"):
        rw.PointwiseRanker(LinearSVC()).fit(QUERIES)


@pytest.mark.parametrize("name", ["mcrank", "mcrank_linear", "oc_svm", "listmle"])
def test_recipes(name):
    ranker = rw.make_ranker(name)
    order = np.random.default_rng(0).permutation(QUERIES.n_docs)
    first = ranker.fit(QUERIES).predict(QUERIES)
    assert ranker.score(QUERIES) > rw.RandomRanker().fit(QUERIES).score(QUERIES) + 0.2
    ranker.fit(QUERIES.X[order], QUERIES.y[order], qid=QUERIES.qid[order])
    assert np.array_equal(ranker.predict(QUERIES), first)
