"""Synthetic queries: the course note's generator drawn again, the shape of the web-like one."""

from __future__ import annotations

import re

import numpy as np
import pytest

import rankwise as rw


def course_again(seed=0, n_queries=1300, n_docs=30):
    """The note's generator, one document at a time, from the same stream of numbers."""
    rng = np.random.default_rng(seed)
    X = [[rng.standard_normal(6) for _ in range(n_docs)] for _ in range(n_queries)]
    query_feature = [rng.standard_normal() for _ in range(n_queries)]
    labels = []
    for q in range(n_queries):
        for d in range(n_docs):
            X[q][d][5] = query_feature[q]
            x = X[q][d]
            z = x[0] + 0.7 * x[1] + x[2] * x[3] + 1.5 * x[5] + 0.7 * rng.standard_normal()
            labels.append(sum(z >= cut for cut in (1, 2, 3, 4)))
    return np.concatenate([np.array(lists) for lists in X]), np.array(labels, dtype=float)


@pytest.fixture(scope="module")
def course():
    return rw.make_queries()


def test_course_equals_the_note(course):
    X, y = course_again()
    assert np.array_equal(course.X, X)
    assert np.array_equal(course.y, y)
    assert course.sizes.tolist() == [30] * 1300
    assert course.ids.tolist() == list(range(1, 1301))


def test_course_queries_without_relevant_documents(course):
    relevant = course.y.reshape(1300, 30).max(axis=1) > 0
    assert (~relevant[:300]).sum() == 30
    assert (~relevant[300:]).sum() == 68


def test_course_feature_5_is_constant_inside_a_query(course):
    x = course.X[:, 5].reshape(1300, 30)
    assert (x == x[:, :1]).all()
    assert len(np.unique(x[:, 0])) == 1300


def test_course_random_scorer_as_in_the_note():
    """The note draws the random scores of the 1,000 test queries after the data; nDCG@5 is .19."""
    rng = np.random.default_rng(0)
    rng.standard_normal((1300, 30, 6)), rng.standard_normal((1300, 1))
    rng.normal(0.0, 0.7, (1300, 30))
    scores = rng.standard_normal((1000, 30))
    labels = rw.make_queries().y.reshape(1300, 30)[300:]
    discount = 1 / np.log2(2 + np.arange(5))
    gain = 2**labels - 1
    best_first = np.argsort(-scores, axis=1)[:, :5]
    dcg = np.take_along_axis(gain, best_first, axis=1) @ discount
    ideal = -np.sort(-gain, axis=1)[:, :5] @ discount
    mean = np.mean(dcg[ideal > 0] / ideal[ideal > 0])
    assert round(mean, 2) == 0.19


def test_course_size_and_seed():
    a, b = (
        rw.make_queries(n_queries=5, n_docs=4, rng=7),
        rw.make_queries(n_queries=5, n_docs=4, rng=7),
    )
    X, y = course_again(7, 5, 4)
    assert np.array_equal(a.X, X)
    assert np.array_equal(a.y, y)
    assert np.array_equal(a.X, b.X)
    assert not np.array_equal(a.X, rw.make_queries(n_queries=5, n_docs=4, rng=8).X)


@pytest.fixture(scope="module")
def web():
    return rw.make_queries("web", n_queries=400, dtype=np.float32)


def test_web_label_shares_are_those_of_mslr(web):
    shares = np.bincount(web.y.astype(int), minlength=5) / web.n_docs
    assert np.abs(shares - [0.515, 0.325, 0.134, 0.018, 0.008]).max() < 1e-3


def test_web_shape(web):
    assert web.n_queries == 400
    assert web.X.shape == (web.n_docs, 136)
    assert web.X.dtype == np.float32
    assert 100 < web.sizes.mean() < 140
    assert web.sizes.min() >= 1
    assert np.isfinite(web.X).all()
    skewness = ((web.X - web.X.mean(0)) ** 3).mean(0) / web.X.std(0) ** 3
    assert (skewness > 1).sum() > 60


def test_web_has_features_of_the_query_alone(web):
    spread = [np.ptp(q.X, axis=0) for q in web if q.n_docs > 1]
    constant = (np.max(spread, axis=0) == 0).sum()
    assert 0 < constant < 68


def test_web_features_say_something_about_labels(web):
    correlation = [abs(np.corrcoef(np.argsort(np.argsort(x)), web.y)[0, 1]) for x in web.X.T]
    assert max(correlation) > 0.3


def test_web_is_reproducible():
    a, b = (rw.make_queries("web", n_queries=20, rng=3) for _ in range(2))
    assert np.array_equal(a.X, b.X)
    assert np.array_equal(a.y, b.y)
    assert np.array_equal(a.offsets, b.offsets)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ({"kind": "mslr"}, "make_queries: kind must be one of 'course', 'web', got 'mslr'"),
        ({"n_queries": 0}, "make_queries: n_queries must be an integer of at least 1, got 0"),
        ({"n_docs": 1.5}, "make_queries: n_docs must be an integer of at least 1, got 1.5"),
        ({"n_docs": True}, "got True"),
    ],
)
def test_bad_arguments(call, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        rw.make_queries(**call)
