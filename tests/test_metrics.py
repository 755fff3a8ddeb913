"""Metrics: worked values, the slow reference under every convention, properties, errors."""

from __future__ import annotations

import itertools
import pickle
import re
import subprocess
import sys
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
import reference
from rankwise import _core, metrics
from rankwise._metric import SPECS, compute
from rankwise.metrics import (
    AP,
    ERR,
    METRICS,
    NDCG,
    PRECISION,
    PRESETS,
    RBP,
    RR,
    Metric,
    evaluate,
    parse_metric,
    parse_metrics,
)
from strategies import ranked_lists

NAN, MISSED = np.nan, -np.inf
TIES = ("average", "stable", "worst", "best")


def one(text, labels, scores=None, **options):
    """Value of a metric for one query; labels in rank order unless scores are given."""
    scores = range(len(labels), 0, -1) if scores is None else scores
    return parse_metric(text)(**options).per_query(labels, list(scores))[0]


# --- worked values -----------------------------------------------------------------------------

NOTE = [0, 3, 1, 0, 2, 0]  # the running example of the course note, in rank order


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("precision@1", 0),
        ("precision@3", 2 / 3),
        ("precision@5", 0.6),
        ("ap", 0.588888888888888888),
        ("rr", 0.5),
        ("dcg@6", 6.077066700028),
        ("ndcg@6", 0.646992770104),
        ("ndcg@3", 0.523434325),
        ("ndcg", 0.646992770104),
    ],
)
def test_course_note(text, value):
    assert one(text, NOTE) == pytest.approx(value, abs=1e-8)


def test_course_note_gains_and_discounts():
    assert NDCG.gains(NOTE).tolist() == [0, 7, 1, 0, 3, 0]
    expected = [1, 0.631, 0.5, 0.431, 0.387, 0.356]
    assert NDCG.discounts(6) == pytest.approx(expected, abs=5e-4)
    contributions = NDCG.gains(NOTE) * NDCG.discounts(6)
    assert contributions == pytest.approx([0, 4.417, 0.5, 0, 1.161, 0], abs=5e-4)
    ideal = one("dcg", sorted(NOTE, reverse=True))
    assert ideal == pytest.approx(9.393, abs=5e-4)
    assert 1 / NDCG.discounts(2)[1] == pytest.approx(1.585, abs=5e-4)


def test_course_note_means_over_two_queries():
    y, s = [*NOTE, 1, 0, 0, 1], [6, 5, 4, 3, 2, 1, 4, 3, 2, 1]
    qid = [1] * 6 + [2] * 4
    assert AP.per_query(y, s, qid=qid) == pytest.approx([0.5888888889, 0.75])
    assert AP.mean(y, s, qid=qid) == pytest.approx(0.66944444444)
    assert RR.mean(y, s, qid=qid) == 0.75


def test_course_note_swap_changes():
    base, ideal = one("dcg", NOTE), one("dcg", sorted(NOTE, reverse=True))
    for i, j, change in [(1, 0, 0.275), (1, 4, 0.104), (2, 4, 0.024)]:
        swapped = list(NOTE)
        swapped[i], swapped[j] = swapped[j], swapped[i]
        assert abs(one("dcg", swapped) - base) / ideal == pytest.approx(change, abs=5e-4)


def test_course_data_empty_queries_and_random_scores():
    """68 of the note's 1000 test queries have no relevant document; random scores reach .19."""
    queries = rw.make_queries("course")
    train, test = queries.take(np.arange(300)), queries.take(np.arange(300, 1300))
    assert int((train.y.reshape(300, 30).max(axis=1) == 0).sum()) == 30
    assert int((test.y.reshape(1000, 30).max(axis=1) == 0).sum()) == 68
    scores = np.random.default_rng(5).normal(size=test.n_docs)
    values = (NDCG @ 5).per_query(test.y, scores, qid=test.groups)
    mean = NDCG.average(values)
    assert mean.n_queries == 932
    assert mean.n_skipped == 68
    assert mean.value == pytest.approx(0.19, abs=0.015)


def test_letor_script():
    labels = [0, 2, 1, 0, 2]
    values = [one(f"ndcg(discount=letor)@{k}", labels) for k in range(1, 6)]
    assert values == pytest.approx([0, 0.5, 0.5476, 0.5476, 0.7424], abs=5e-5)
    assert one("mean_ndcg(discount=letor)", labels) == pytest.approx(0.4675, abs=5e-5)
    assert one("ap", labels) == pytest.approx(0.5889, abs=5e-5)
    expected = [0, 0.5, 0.6667, 0.5, 0.6, 0.5, 0.4286, 0.375, 0.3333, 0.3]
    values = [one(f"precision@{k}", labels) for k in range(1, 11)]
    assert values == pytest.approx(expected, abs=5e-5)
    letor4 = [parse_metric(f"ndcg@{k}", preset="letor4") for k in range(1, 11)]
    values = [m.per_query(labels, [5, 4, 3, 2, 1])[0] for m in letor4]
    assert values == pytest.approx([0, 0.5, 0.5476, 0.5476, 0.7424, 0, 0, 0, 0, 0], abs=5e-5)


def test_rank_correlations():
    assert one("tau_a", [1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(1 / 3)
    assert one("rho", [1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6)
    assert one("tau_a", [1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(5 / 6)
    assert one("tau_b", [1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.912871, abs=1e-6)
    assert one("rho", [1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.948683, abs=1e-6)


def test_conventions_side_by_side():
    labels = [1, 3, 0, 2]
    assert one("ndcg(gain=identity)@3", labels) == pytest.approx(0.6074915180, abs=1e-10)
    assert one("ndcg(gain=identity)@4", labels) == pytest.approx(0.7883773915, abs=1e-10)
    assert one("ndcg@3", labels) == pytest.approx(0.5766666455, abs=1e-10)
    assert one("ndcg@4", labels) == pytest.approx(0.7142221297, abs=1e-10)
    assert one("ap", labels) == pytest.approx(0.9166666667, abs=1e-10)
    assert one("rr", labels) == 1
    assert one("precision@5", labels) == pytest.approx(0.6)
    by_r = [one(f"ap@{k}", [1, 0, 1, 1, 0]) for k in (1, 2, 3, 5)]
    by_min = [one(f"ap(norm=min)@{k}", [1, 0, 1, 1, 0]) for k in (1, 2, 3, 5)]
    assert by_r == pytest.approx([0.3333, 0.3333, 0.5556, 0.8056], abs=5e-5)
    assert by_min == pytest.approx([1, 0.5, 0.5556, 0.8056], abs=5e-5)


def test_four_answers_for_equal_scores():
    y, s, qid = [1, 0, 0, 0, 0, 0, 0, 1], np.ones(8), np.repeat([1, 2], 4)
    docs = ["a", "b", "c", "d"] * 2
    expected = {
        "average": [0.6404, 0.6404],
        "stable": [1, 0.4307],
        "trec": [0.4307, 1],
        "worst": [0.4307, 0.4307],
        "best": [1, 1],
    }
    for ties, values in expected.items():
        got = NDCG(ties=ties).per_query(y, s, qid=qid, docs=docs)
        assert got == pytest.approx(values, abs=5e-5), ties


def test_err_and_rbp_by_hand():
    # R = 7/16, 1/16, 3/16 at ranks 2, 3, 5.
    expected = 7 / 16 / 2 + 9 / 16 * (1 / 16 / 3 + 15 / 16 * 3 / 16 / 5)
    assert one("err", NOTE) == pytest.approx(expected)
    assert one("rbp(p=0.5)", NOTE) == pytest.approx(0.5 * (0.5 + 0.25 + 0.0625))
    assert one("rbp_residual(p=0.5)", [1, NAN, 0]) == pytest.approx(0.25 + 0.125)


# --- the reference, every convention -----------------------------------------------------------

# One or more settings of every metric: (text, options given to the reference).
SETTINGS = [
    ("ndcg", {}),
    ("ndcg@2", {"k": 2}),
    ("ndcg(short=zero)@4", {"k": 4, "short": "zero"}),
    ("ndcg(gain=identity, discount=letor)@3", {"k": 3, "gain": "identity", "discount": "letor"}),
    ("ndcg(discount=(1, 0.5, 0.1))", {"discount": (1, 0.5, 0.1)}),
    ("dcg@3", {"k": 3}),
    ("mean_ndcg", {}),
    ("mean_ndcg(discount=letor)", {"discount": "letor"}),
    ("eru(half_life=3, neutral=0.5)", {"half_life": 3, "neutral": 0.5}),
    ("precision@3", {"k": 3}),
    ("precision", {}),
    ("precision(short=cut, rel=2)@4", {"k": 4, "short": "cut", "rel": 2}),
    ("precision(short=zero)@3", {"k": 3, "short": "zero"}),
    ("recall@2", {"k": 2}),
    ("recall", {}),
    ("f1@2", {"k": 2}),
    ("f1(short=cut)@4", {"k": 4, "short": "cut"}),
    ("success@2", {"k": 2}),
    ("ap", {}),
    ("ap@2", {"k": 2}),
    ("ap(norm=min, rel=0.5)@2", {"k": 2, "norm": "min", "rel": 0.5}),
    ("r_precision", {}),
    ("r_precision(multiple=0.4)", {"multiple": 0.4}),
    ("rr", {}),
    ("rr@2", {"k": 2}),
    ("err", {}),
    ("err(top=5)@3", {"k": 3, "top": 5}),
    ("rbp", {}),
    ("rbp(relevance=graded, p=0.9)@3", {"k": 3, "p": 0.9, "relevance": "graded"}),
    ("rbp_residual(p=0.9)", {"p": 0.9}),
    ("rbp_residual(tail=if_unjudged)", {"tail": "if_unjudged"}),
    ("wta", {}),
    ("bpref", {}),
    ("bpref(rel=2)", {"rel": 2}),
    ("infap", {}),
    ("judged@3", {"k": 3}),
    ("judged(short=cut)@4", {"k": 4, "short": "cut"}),
    ("unjudged@3", {"k": 3}),
    ("pairwise_accuracy", {}),
    ("auc", {}),
    ("auc(rel=2)", {"rel": 2}),
    ("tau_a", {}),
    ("tau_b", {}),
    ("rho", {}),
    ("relative_precision@3", {"k": 3}),
    ("set_ap", {}),
    ("interpolated_precision(recall=(0, 0.3, 1))", {"recall": (0, 0.3, 1)}),
    ("interpolated_precision(recall=(0.3, 0.6), rounding=up)",
     {"recall": (0.3, 0.6), "rounding": "up"}),
    ("bin_g", {}),
    ("g", {}),
    ("g(gain=exp2)", {"gain": "exp2"}),
    ("ndcg_rel", {}),
    ("r_ndcg(gain=identity)", {"gain": "identity"}),
]  # fmt: skip
COUNTS = {"utility", "retrieved", "relevant", "relevant_retrieved", "nonrelevant_retrieved"}


def test_every_metric_is_checked_against_the_reference():
    assert {parse_metric(text).name for text, _ in SETTINGS} == set(SPECS) - COUNTS


def rules(metric):
    if "ties" not in SPECS[metric.name].defaults:
        return [{}]
    return [{"ties": t} for t in TIES if not (SPECS[metric.name].ordered and t == "average")]


def expected_values(metric, y, s, qid, given, docs=None, **more):
    groups = rw.group_rows(qid)
    values = []
    for id_ in groups.ids:
        rows = np.flatnonzero(np.asarray(qid) == id_)
        ids = None if docs is None else [docs[i] for i in rows]
        values.append(reference.metric(metric.name, y[rows], s[rows], docs=ids, **given, **more))
    return np.array(values, dtype=float)


def same(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("text", "given"), SETTINGS, ids=[text for text, _ in SETTINGS])
def test_reference(text, given):
    metric = parse_metric(text)

    @settings(max_examples=15)
    @hypothesis.given(ranked_lists(max_docs=5, max_queries=2))
    def check(lists):
        y, s, qid = lists
        for rule in rules(metric):
            m = metric(**rule)
            if m.options["ties"] == "stable":
                m = m(ties="stable")
            got = m.per_query(y, s, qid=qid)
            options = dict(given, **({"ties": m.options["ties"]} if rule else {}))
            same(got, expected_values(metric, y, s, qid, options))
            # Sorting all documents must agree with counting the ones above each relevant one.
            both = compute("test", [m, Metric("judged", None, rule)], y, s, qid, None)
            np.testing.assert_array_equal(both[0], got)

    check()


@pytest.mark.parametrize("empty", [0.0, 1.0])
@pytest.mark.parametrize(("text", "given"), SETTINGS, ids=[text for text, _ in SETTINGS])
def test_empty_queries(text, given, empty):
    """Only queries that are skipped change, and they get the value asked for."""
    metric = parse_metric(text)
    if "empty" not in SPECS[metric.name].defaults:
        assert np.isfinite(metric.per_query([0, 0], [2, 1]))
        pytest.skip("defined for every query")
    y, s, qid = [0, 0, 1, 0, 0, 4], [2, 1, 2, 1, 1, 2], [0, 0, 1, 1, 2, 2]
    skipped = metric.per_query(y, s, qid=qid)
    filled = metric(empty=empty).per_query(y, s, qid=qid)
    assert np.isnan(skipped).tolist() == [True, *np.isnan(skipped)[1:]]
    np.testing.assert_array_equal(filled, np.where(np.isnan(skipped), empty, skipped))


@given(ranked_lists(max_docs=6, labels=[0.0, 1.0, 2.0]), st.data())
@settings(max_examples=30)
def test_trec_ties_follow_document_ids(lists, data):
    y, s, qid = lists
    docs = np.array(data.draw(st.permutations([f"d{i}" for i in range(len(y))])))
    for text, given_options in [("ap", {}), ("ndcg@3", {"k": 3}), ("bpref", {})]:
        metric = parse_metric(text)(ties="trec")
        got = metric.per_query(y, s, qid=qid, docs=docs)
        same(got, expected_values(metric, y, s, qid, given_options, docs, ties="trec"))


@given(ranked_lists(max_docs=7))
@settings(max_examples=50)
def test_ap_with_ties_together(lists):
    y, s, qid = lists
    for text, options in [("ap", {}), ("ap(rel=2)@4", {"rel": 2, "k": 4})]:
        got = parse_metric(text)(ties="together").per_query(y, s, qid=qid)
        same(got, expected_values(AP, y, s, qid, options, ties="together"))


@given(ranked_lists(max_docs=5, max_queries=1, labels=[-1.0, 0.0, 1.0]))
@settings(max_examples=50)
def test_infap_with_a_sampled_pool(lists):
    y, s, qid = lists
    for ties in TIES:
        if ties in ("worst", "best"):
            continue  # unjudged documents stay tied among themselves
        got = metrics.infap(y, s, qid=qid, ties=ties)
        same(got, [reference.metric("infap", y, s, ties=ties)])


def test_counts():
    y, s = [2, 1, 0, 0, NAN, 1], [5, 4, 3, MISSED, 2, MISSED]
    values = {name: one(name, y, s) for name in sorted(COUNTS)}
    assert values == {
        "nonrelevant_retrieved": 1,
        "relevant": 3,
        "relevant_retrieved": 2,
        "retrieved": 4,
        "utility": 0,
    }
    assert one("utility(weights=(1, -0.5, -2, 0))", y, s) == 2 - 1 - 2
    total = parse_metric("num_rel").average([3.0, 4.0])
    assert total == (7.0, 2, 0)


# --- long lists: both ways of ranking, all rules ------------------------------------------------

LONG = ["ndcg@10", "ap", "rr", "precision@10", "recall@100", "err(top=6)", "mean_ndcg", "wta"]


def long_list(kind, n, share, seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, rng.integers(1, 5, n), 0).astype(float)
    s = {
        "normal": lambda: rng.normal(size=n),
        "ties": lambda: rng.integers(0, max(n // 7, 1), n).astype(float),
        "equal": lambda: np.ones(n),
        "outlier": lambda: np.append(rng.normal(size=n - 1) * 1e-9, 1e12),
        "extremes": lambda: rng.choice([-1.7e308, 1.7e308, 0.0, 5e-324], n),
        "missed": lambda: np.where(rng.random(n) < 0.5, MISSED, rng.normal(size=n)),
        "sorted": lambda: np.arange(n, dtype=float),
    }[kind]()
    return y, s


KINDS = ["normal", "ties", "equal", "outlier", "extremes", "missed", "sorted"]


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("share", [0.05, 0.8])
@pytest.mark.parametrize("kind", KINDS)
def test_long_lists(kind, share, ties):
    y, s = long_list(kind, 150, share, seed=1)
    wanted = [m(ties=ties) for m in parse_metrics(LONG)]
    got = compute("test", wanted, y, s, None, None)[:, 0]
    both = compute("test", [*wanted, Metric("judged", None, {"ties": ties})], y, s, None, None)
    np.testing.assert_array_equal(got, both[:-1, 0])
    if ties != "average":
        for metric, value in zip(wanted, got, strict=True):
            options = {"top": 6} if metric.name == "err" else {}
            options |= {"k": metric.k} if metric.k else {}
            same(value, reference.metric(metric.name, y, s, ties=ties, **options))
    elif kind in ("normal", "missed", "sorted"):  # no ties: all rules agree
        stable = compute("test", [m(ties="stable") for m in wanted], y, s, None, None)
        same(got, stable[:, 0])


@pytest.mark.parametrize("text", [*LONG, "bpref", "infap", "auc", "pairwise_accuracy", "judged@7"])
def test_average_ties_on_long_lists_by_sampling(text):
    """The closed forms against 1,500 random orders of the tied documents."""
    rng = np.random.default_rng(3)
    y = np.where(rng.random(150) < 0.5, rng.integers(1, 5, 150), 0).astype(float)
    y[rng.random(150) < 0.2] = NAN
    s = rng.integers(0, 9, 150).astype(float)
    metric = parse_metric(text)
    n = 1500
    jitter = rng.random((n, 150)) * 0.5
    sampled = metric.per_query(
        np.tile(y, n), (s + jitter).ravel(), qid=np.repeat(np.arange(n), 150)
    )
    error = sampled.std() / np.sqrt(n)
    assert abs(metric.per_query(y, s)[0] - sampled.mean()) < 4.5 * error + 1e-9


def test_hundred_thousand_documents():
    y, s = long_list("normal", 100_000, 0.3, seed=2)
    order = np.argsort(-s, kind="stable")
    relevant = y[order] > 0
    precision_at = np.cumsum(relevant) / np.arange(1, len(y) + 1)
    assert metrics.ap(y, s)[0] == pytest.approx(precision_at[relevant].mean(), rel=1e-12)
    gain = (2 ** y[order] - 1) @ NDCG.discounts(len(y))
    ideal = (2 ** np.sort(y)[::-1] - 1) @ NDCG.discounts(len(y))
    assert metrics.ndcg(y, s)[0] == pytest.approx(gain / ideal, rel=1e-12)


# --- properties --------------------------------------------------------------------------------

RANKED = [m for m in METRICS if m not in COUNTS and m != "dcg"]


def default(name):
    return Metric(name)


@pytest.mark.parametrize("name", RANKED)
@given(ranked_lists(max_docs=8))
@settings(max_examples=10)
def test_bounds(name, lists):
    values = default(name).per_query(lists[0], lists[1], qid=lists[2])
    values = values[~np.isnan(values)]
    low = -1 if name in ("tau_a", "tau_b", "rho") else 0
    assert (values >= low - 1e-12).all()
    assert (values <= 1 + 1e-12).all()


@pytest.mark.parametrize("name", list(METRICS))
@given(ranked_lists(max_docs=8), st.randoms())
@settings(max_examples=10)
def test_invariance(name, lists, random):
    """Increasing maps of the scores and the order of the queries change nothing."""
    y, s, qid = lists
    metric = default(name)
    expected = metric.per_query(y, s, qid=qid)
    ranks = np.where(s == MISSED, MISSED, np.searchsorted(np.unique(s), s) * 3.0 - 7)
    np.testing.assert_array_equal(metric.per_query(y, ranks, qid=qid), expected)
    np.testing.assert_array_equal(metric.per_query(y, s, qid=[f"q{q}" for q in qid]), expected)
    ids = list(dict.fromkeys(qid))
    random.shuffle(ids)
    rows = np.concatenate([np.flatnonzero(qid == i) for i in ids])
    shuffled = metric.per_query(y[rows], s[rows], qid=qid[rows])
    by_id = dict(zip(ids, shuffled, strict=True))
    np.testing.assert_array_equal([by_id[i] for i in dict.fromkeys(qid)], expected)


@pytest.mark.parametrize("name", [n for n in METRICS if "ties" in SPECS[n].defaults])
@given(ranked_lists(max_docs=8, unjudged=False), st.randoms())
@settings(max_examples=10)
def test_average_ties_do_not_depend_on_row_order(name, lists, random):
    if SPECS[name].ordered:
        return
    y, s, qid = lists
    rows = list(range(len(y)))
    random.shuffle(rows)
    metric = default(name)
    got = dict(zip(dict.fromkeys(qid), metric.per_query(y, s, qid=qid), strict=True))
    moved = metric.per_query(y[rows], s[rows], qid=qid[rows])
    for id_, value in zip(dict.fromkeys(qid[rows]), moved, strict=True):
        np.testing.assert_allclose(value, got[id_], rtol=1e-13)


MONOTONE = "ndcg dcg mean_ndcg ap rr err precision rbp recall f1 success eru wta bpref auc"


@pytest.mark.parametrize("name", MONOTONE.split())
@given(ranked_lists(max_docs=8))
@settings(max_examples=10)
def test_worst_is_below_every_rule_and_best_above(name, lists):
    y, s, qid = lists
    k = 3 if SPECS[name].has_k else None
    values = {t: Metric(name, k, {"ties": t}).per_query(y, s, qid=qid) for t in TIES}
    for ties in ("average", "stable"):
        with np.errstate(invalid="ignore"):
            assert not (values["worst"] > values[ties] + 1e-12).any()
            assert not (values["best"] < values[ties] - 1e-12).any()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_ndcg_of_a_perfect_order_is_exactly_one(labels):
    values = [one(f"ndcg@{k}", labels, labels) for k in range(1, 10)]
    assert all(v == 1 for v in values) or max(labels) == 0


@given(st.integers(1, 9), st.integers(0, 8), st.integers(0, 3))
def test_ap_of_one_relevant_document_is_rr(n, place, level):
    y = np.zeros(n)
    y[place % n] = 1
    s = np.arange(n) // (level + 1)
    assert one("ap", y, s) == pytest.approx(one("rr", y, s), rel=1e-13)


@given(st.permutations(range(7)))
def test_tau_counts_inversions(scores):
    inversions = sum(a > b for a, b in itertools.combinations(scores, 2))
    assert one("tau_a", range(7), scores) == pytest.approx(1 - 2 * inversions / 21)
    assert one("tau_b", range(7), scores) == one("tau_a", range(7), scores)


@given(ranked_lists(max_docs=8, labels=[0.0, 1.0]))
@settings(max_examples=30)
def test_auc_is_pairwise_accuracy_of_binary_labels(lists):
    y, s, qid = lists
    same(metrics.auc(y, s, qid=qid), metrics.pairwise_accuracy(y, s, qid=qid))


# --- documents that were not retrieved ---------------------------------------------------------


def test_missed_documents_count_in_r_and_the_ideal_only():
    y, s = [1, 0, 2, 1], [2.0, 1.0, MISSED, MISSED]
    assert one("recall", y, s) == pytest.approx(1 / 3)
    assert one("ap", y, s) == pytest.approx(1 / 3)
    assert one("rr", y, s) == 1
    assert one("precision", y, s) == 0.5  # of two retrieved
    assert one("precision@4", y, s) == 0.25
    assert one("ndcg", y, s) == pytest.approx(1 / one("dcg", [2, 1, 1]))
    assert one("mean_ndcg", y, s) == pytest.approx((1 / 3 + 1 / (3 + NDCG.discounts(2)[1])) / 2)


@pytest.mark.parametrize("name", [n for n in RANKED if n not in ("rbp_residual",)])
def test_a_query_that_a_run_does_not_answer_has_value_zero(name):
    y, s = [1.0, 0.0, 2.0], [MISSED] * 3
    assert default(name).per_query(y, s).tolist() == [0]


def test_rr_is_skipped_without_relevant_documents_and_zero_when_they_are_missed():
    assert np.isnan(one("rr", [0, 0], [2, 1]))
    assert one("rr", [0, 1], [2, MISSED]) == 0


def test_unjudged_documents():
    y, s = [NAN, 1, NAN, 0, 1], [5, 4, 3, 2, 1]
    assert one("precision@2", y, s) == 0.5
    assert one("ap", y, s) == one("ap", [0, 1, 0, 0, 1], s)
    assert one("ndcg", y, s) == one("ndcg", [0, 1, 0, 0, 1], s)
    assert one("bpref", y, s) == one("bpref", [1, 0, 1], [3, 2, 1])
    assert one("auc", y, s) == one("auc", [1, 0, 1], [3, 2, 1])
    assert one("judged@3", y, s) == pytest.approx(1 / 3)
    assert one("unjudged@10", y, s) == pytest.approx(0.2)


# --- means -------------------------------------------------------------------------------------


def test_mean_says_how_many_queries_it_covers():
    y, s, qid = [1, 0, 0, 0, 0, 1], [2, 1, 2, 1, 2, 1], [1, 1, 2, 2, 3, 3]
    values = AP.per_query(y, s, qid=qid)
    assert AP.average(values) == (0.75, 2, 1)
    assert AP.mean(y, s, qid=qid) == 0.75
    assert AP.mean(y, s, qid=qid, query_weight=[3, 9, 1]) == pytest.approx((3 + 0.5) / 4)
    assert AP.average(values, [0, 1, 1]) == (0.5, 1, 1)


def test_mean_without_any_relevant_document_is_nan_over_no_query():
    values = AP.per_query([0, 0, 0], [3, 2, 1], qid=[1, 1, 2])
    mean = AP.average(values)
    assert np.isnan(mean.value)
    assert mean[1:] == (0, 2)
    assert np.isnan(AP.mean([0, 0], [2, 1]))
    assert AP(empty=0.0).average(AP(empty=0.0).per_query([0, 0], [2, 1])) == (0.0, 1, 0)


def test_geometric_mean_has_a_floor():
    values = [0.5, 0.0, 0.125]
    expected = (0.5 * 1e-5 * 0.125) ** (1 / 3)
    assert parse_metric("gm_map").average(values).value == pytest.approx(expected)


def test_no_rows_no_queries():
    assert AP.per_query([], [], qid=[]).shape == (0,)
    assert AP.average(AP.per_query([], [], qid=[]))[1:] == (0, 0)


# --- metrics as values -------------------------------------------------------------------------


def test_text_form():
    assert str(NDCG) == "ndcg"
    assert str(NDCG(gain="identity") @ 10) == "ndcg(gain='identity')@10"
    assert str(NDCG(gain="exp2", ties="average")) == "ndcg"
    assert str(AP(empty=0, rel=2)) == "ap(rel=2, empty=0)"
    assert repr(RR @ 5) == 'Metric("rr@5")'
    assert str(NDCG(gain=[0, 1, 3])) == "ndcg(gain=(0, 1, 3))"
    assert str(RBP(p=0.1 + 0.2)) == "rbp(p=0.30000000000000004)"


@pytest.mark.parametrize("text", [text for text, _ in SETTINGS])
def test_round_trip(text):
    metric = parse_metric(text)
    assert parse_metric(str(metric)) == metric
    assert pickle.loads(pickle.dumps(metric)) == metric
    assert parse_metric(metric) is metric


@pytest.mark.parametrize("preset", list(PRESETS))
def test_presets_round_trip(preset):
    for name in PRESETS[preset]:
        metric = parse_metric(name, preset=preset)
        assert parse_metric(str(metric)) == metric


def test_equality_and_hash_do_not_depend_on_keyword_order():
    a = NDCG(gain="identity", ties="worst") @ 10
    b = (NDCG @ 10)(ties="worst")(gain="identity")
    assert a == b
    assert hash(a) == hash(b)
    assert len({a, b, NDCG @ 10, NDCG(k=10)}) == 2
    assert a != NDCG(gain="identity") @ 10
    assert NDCG(gain=[0, 1]) == NDCG(gain=(0.0, 1.0))


@pytest.mark.parametrize(
    ("spelled", "metric"),
    [
        ("nDCG@10", "ndcg@10"),
        ("ndcg_cut_10", "ndcg@10"),
        ("ndcg_cut.10", "ndcg@10"),
        ("NDCG@5", "ndcg@5"),
        ("map", "ap"),
        ("MAP@100", "ap@100"),
        ("map_cut_20", "ap@20"),
        ("recip_rank", "rr"),
        ("mrr", "rr"),
        ("MRR@10", "rr@10"),
        ("P_5", "precision@5"),
        ("P@5", "precision@5"),
        ("pre@5", "precision@5"),
        ("R@100", "recall@100"),
        ("recall_100", "recall@100"),
        ("Rprec", "r_precision"),
        ("Rprec_mult_0.20", "r_precision(multiple=0.2)"),
        ("iprec_at_recall_0.10", "interpolated_precision(recall=0.1)"),
        ("11pt_avg", "interpolated_precision"),
        ("success_1", "success@1"),
        ("ERR@20", "err@20"),
        ("RBP(p=0.8)", "rbp"),
        ("gm_map", "ap(mean='geometric')"),
        ("MeanNDCG", "mean_ndcg"),
        ("infAP", "infap"),
        ("Judged@10", "judged@10"),
        ("set_P", "precision"),
        ("unj_5", "unjudged@5"),
        (" ndcg ( gain = identity ) @ 10 ", "ndcg(gain='identity')@10"),
        ("ndcg(gain=[0, 1, 5])", "ndcg(gain=(0, 1, 5))"),
    ],
)
def test_spellings(spelled, metric):
    assert str(parse_metric(spelled)) == metric


def test_parse_several():
    text = "ndcg(gain=(0, 1, 3), ties=worst)@10,ap , rr@5"
    expected = [NDCG(gain=(0, 1, 3), ties="worst") @ 10, AP, RR @ 5]
    assert parse_metrics(text) == expected
    assert parse_metrics([AP, "rr@5"]) == [AP, RR @ 5]
    assert parse_metrics(AP) == [AP]


def test_options_in_the_text_go_before_the_preset():
    metric = parse_metric("ndcg(empty=0)@10", preset="lightgbm")
    assert metric == NDCG(ties="stable", empty=0) @ 10


def test_evaluate_shares_one_pass():
    y, s = NOTE, [6, 5, 4, 3, 2, 1]
    values = evaluate("ndcg@3,bpref,ap(ties=worst),ap", y, s)
    assert list(values) == ["ndcg@3", "bpref", "ap(ties='worst')", "ap"]
    for text, array in values.items():
        np.testing.assert_array_equal(array, parse_metric(text).per_query(y, s))


def test_functions_equal_their_metrics():
    y, s, qid = [0, 3, 1, 0, 2, 0], [3, 3, 2, 1, 1, 0], [1, 1, 1, 2, 2, 2]
    functions = [name for name in METRICS if hasattr(metrics, name)]
    assert len(functions) == 24
    for name in functions:
        value = getattr(metrics, name)(y, s, qid=qid)
        np.testing.assert_array_equal(value, Metric(name).per_query(y, s, qid=qid))
        assert getattr(metrics, name.upper()) == Metric(name)
        assert METRICS[name].summary
        assert METRICS[name].reference


def test_gains_and_discounts_rebuild_the_metric():
    y, s = np.array([0, 3, 1, 0, 2, 0.0]), np.array([6, 5, 4, 3, 2, 1.0])
    for metric in [
        NDCG @ 3, metrics.DCG(discount="letor"), metrics.ERU(neutral=1.0), RBP(p=0.5) @ 4,
        PRECISION @ 5, NDCG(gain=(0, 1, 1, 9)),
    ]:  # fmt: skip
        gain, discount = metric.gains(y), metric.discounts(len(y))
        assert discount.shape == (6,)
        total = gain @ discount
        if metric.name in ("ndcg", "eru"):
            total /= np.sort(gain)[::-1] @ discount
        assert metric.per_query(y, s)[0] == pytest.approx(total, rel=1e-14)
    with pytest.raises(ValueError, match="ap: is not a sum of gain times discount"):
        AP.gains(y)
    with pytest.raises(ValueError, match="rr: is not a sum of gain times discount"):
        RR.discounts(3)


# --- input and threads -------------------------------------------------------------------------


def test_columns_of_any_kind():
    expected = NDCG.per_query(NOTE, [6.0, 5, 4, 3, 2, 1])
    for y in (np.array(NOTE, np.int8), np.array(NOTE, np.float32), np.array(NOTE)[:, None]):
        np.testing.assert_array_equal(NDCG.per_query(y, np.arange(6, 0, -1)), expected)
    strided = np.repeat(NOTE, 2)[::2]
    np.testing.assert_array_equal(NDCG.per_query(strided, [6, 5, 4, 3, 2, 1]), expected)


def test_inputs_are_not_modified():
    y, s, qid = np.array(NOTE, float), np.array([1.0, 2, 3, 3, 2, 1]), np.array([1, 2, 1, 2, 1, 2])
    copies = y.copy(), s.copy(), qid.copy()
    evaluate("ndcg(ties=worst),ap(scores=float32),bpref", y, s, qid=qid)
    for kept, column in zip(copies, (y, s, qid), strict=True):
        np.testing.assert_array_equal(kept, column)


def test_threads_do_not_change_results():
    rng = np.random.default_rng(4)
    qid = np.repeat(np.arange(3000), rng.integers(1, 60, 3000))
    y = rng.integers(0, 4, len(qid)).astype(float)
    s = rng.integers(0, 20, len(qid)).astype(float)
    wanted = [m for name in METRICS for m in [Metric(name)]]
    one_thread = compute("test", wanted, y, s, qid, None, n_threads=1)
    two_threads = compute("test", wanted, y, s, qid, None, n_threads=2)
    np.testing.assert_array_equal(one_thread, two_threads)


def test_float32_scores_tie_and_stay_retrieved():
    y, s = [0, 1], [0.30000000001, 0.3]
    assert one("rr", y, s) == 0.5
    assert one("rr(scores=float32)", y, s) == 0.75
    assert one("rr(scores=float32)", [1, 0], [-1e300, MISSED]) == 1


def test_import_needs_numpy_only():
    code = (
        "import sys, rankwise.metrics as m; m.AP.mean([1, 0], [2, 1]);"
        "print([x for x in ('sklearn', 'scipy', 'lightgbm', 'pandas') if x in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_kernel_refuses_other_dtypes_and_layouts():
    offsets = np.array([0, 2])
    request = SPECS["ap"].request("ap", None, AP.options, 2)
    y, s = np.array([1.0, 0.0]), np.array([1.0, 2.0])
    with pytest.raises(TypeError):
        _core.compute_metrics([request], "average", False, False, y.astype(int), s, offsets)
    with pytest.raises(TypeError):
        _core.compute_metrics([request], "average", False, False, y, np.ones(4)[::2], offsets)
    with pytest.raises(ValueError, match="offsets must start at 0"):
        _core.compute_metrics([request], "average", False, False, y, s, np.array([0, 3]))


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NDCG @ 0, r"ndcg: k must be a positive integer or None, got 0"),
        (lambda: parse_metric("ndcg@0"), r"k must be a positive integer or None, got 0"),
        (lambda: parse_metric("ndcg@ten"), r"'ndcg@ten': k must be a positive integer, got 'ten'"),
        (lambda: metrics.ap([1], [1], k=-3), r"ap: k must be a positive integer"),
        (lambda: metrics.ap([1], [1], k=2.5), r"ap: k must be a positive integer"),
        (lambda: metrics.ap([1], [1], k=True), r"ap: k must be a positive integer"),
        (lambda: parse_metric("ndgc@10"),
         r"unknown metric 'ndgc@10'; known: ap, auc, .*\(did you mean 'ndcg'\?\)"),
        (lambda: Metric("foo"), r"unknown metric 'foo'; known: ap, auc"),
        (lambda: parse_metric("ndcg", preset="letor5"),
         r"unknown preset 'letor5'; known: .*\(did you mean 'letor4'\?\)"),
        (lambda: parse_metric("err", preset="lightgbm"),
         r"preset 'lightgbm' has no metric 'err'; it covers: ap, ndcg"),
        (lambda: parse_metric("ndcg(10)"), r"must have the form option=value, got \(10\)"),
        (lambda: parse_metric("ndcg(gain=)"), r"must have the form option=value"),
        (lambda: parse_metric("ndcg)@3"), r"unknown metric 'ndcg\)@3'|must have the form"),
        (lambda: parse_metric(""), r"must have the form name"),
        (lambda: NDCG(gain="exp"), r"ndcg: gain must be one of 'exp2', 'identity', got 'exp'"),
        (lambda: NDCG(gain=[1, 2]), r"a gain per label 0, 1, 2, ..., starting at 0 and never"),
        (lambda: NDCG(gain=[0, 2, 1]), r"never falling, got \[0, 2, 1\]"),
        (lambda: NDCG(discount=[1, 2]), r"a discount per rank, at least 0 and never rising"),
        (lambda: NDCG(discount=[]), r"a discount per rank"),
        (lambda: NDCG(discount=[1, NAN]), r"a discount per rank"),
        (lambda: NDCG(ties="random"), r"ndcg: ties must be one of 'average', .* got 'random'"),
        (lambda: NDCG(short="cut"), r"ndcg: short must be one of 'pad', 'zero', got 'cut'"),
        (lambda: NDCG(empty=0.5), r"ndcg: empty must be 'skip', 0.0 or 1.0, got 0.5"),
        (lambda: AP(rel=0), r"ap: rel must be a number above 0, got 0"),
        (lambda: RBP(p=1), r"rbp: p must be below 1, got 1"),
        (lambda: RBP(p=0), r"rbp: p must be a number above 0 and at most 1, got 0"),
        (lambda: metrics.ERU(half_life=1), r"eru: half_life must be a number above 1, got 1"),
        (lambda: metrics.MEAN_NDCG @ 3, r"mean_ndcg: has no cutoff, got k=3"),
        (lambda: NDCG(ties="together"), r"ndcg: has no definition under ties='together', which is"),
        (lambda: parse_metric("g(ties=average)"), r"g: has no definition under ties='average'"),
        (lambda: metrics.ndcg([1, 0], [1]),
         r"ndcg: y_true and y_score must have the same length, got 2 and 1"),
        (lambda: metrics.ndcg([1, 0], [1, 2], qid=[1]),
         r"ndcg: qid must hold one id per document, got 1 ids for 2 documents"),
        (lambda: metrics.ndcg([1, -1], [1, 2]), r"ndcg: y_true must be .* at least 0 .* got -1"),
        (lambda: metrics.ndcg([1, np.inf], [1, 2]), r"ndcg: y_true must be .* finite, got inf"),
        (lambda: metrics.ap([1, 0], [1, NAN]), r"ap: y_score must not hold NaN or \+inf, got nan"),
        (lambda: metrics.ap([1, 0], [1, np.inf]), r"ap: y_score must not hold NaN or \+inf"),
        (lambda: metrics.ap([1, 0, 1], [1, 2, NAN], qid=[1, 2, 1]), r"got nan at row 2"),
        (lambda: metrics.infap([1, -2], [1, 2]), r"infap: y_true must be .* got -2"),
        (lambda: metrics.ndcg([[1, 0]], [1, 2]), r"ndcg: y_true must be one-dimensional"),
        (lambda: metrics.ndcg([2000.0, 0], [1, 2]),
         r"ndcg: gain 'exp2' \(2\^label - 1\) overflows for label 2000"),
        (lambda: NDCG.gains([0, 5000]), r"overflows for label 5000"),
        (lambda: metrics.err([5, 0], [1, 2]),
         r"err: labels must be at most the top grade 4, got label 5; pass top=5"),
        (lambda: metrics.ndcg([3, 0], [1, 2], gain=[0, 1, 3]),
         r"ndcg: the gain table covers labels 0 to 2, got label 3"),
        (lambda: metrics.ndcg([0.5, 0], [1, 2], gain=[0, 1, 3]), r"got label 0.5"),
        (lambda: metrics.ndcg([1, 0], [1, 2], ties="trec"),
         r"ties='trec' orders tied documents by id, got no document ids; pass docs="),
        (lambda: metrics.ndcg([1, 0], [1, 2], ties="trec", docs=["a"]),
         r"docs must hold one id per document, got shape \(1,\) for 2 documents"),
        (lambda: AP.mean([1, 0], [1, 2], query_weight=[1, 2]),
         r"ap: query_weight must hold one weight per query, got 2 for 1 queries"),
        (lambda: AP.mean([1, 0], [1, 2], query_weight=[-1]),
         r"ap: query_weight must be at least 0 and finite, got -1"),
        (lambda: parse_metric("interpolated_precision(recall=1.5)"), r"recall must be a number"),
        (lambda: parse_metric("utility(weights=(1, 2))"), r"weights must hold four numbers"),
    ],
)  # fmt: skip
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NDCG(gian="exp2"), r"ndcg: unknown option 'gian'; .*\(did you mean 'gain'\?\)"),
        (lambda: ERR(gain="exp2"), r"err: unknown option 'gain'; known: k, empty, "),
        (lambda: parse_metric(3), r"a metric must be text or a Metric, got 3"),
        (lambda: metrics.ndcg(["a", "b"], [1, 2]), r"ndcg: y_true must be numbers, got .*'a'"),
    ],
)
def test_type_errors(call, message):
    with pytest.raises(TypeError, match=message):
        call()


# --- documentation -----------------------------------------------------------------------------


def test_the_chapter_lists_every_preset_metric_and_option():
    page = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text()
    words = set(re.findall(r"\w+", page))
    assert words >= set(PRESETS)
    assert words >= {name for name in METRICS if name not in COUNTS}
    assert words >= {"ties", "empty", "gain", "discount", "rel", "norm", "short", "top", "scores"}


def test_every_reference_is_in_the_bibliography():
    bib = (Path(__file__).parents[1] / "docs" / "references.bib").read_text()
    keys = set(re.findall(r"@\w+\{(\w+),", bib))
    cited = set()
    for name in METRICS:
        function = getattr(metrics, name, None)
        cited |= set(re.findall(r"\[(\w+\d{4}\w*)\]_", function.__doc__ if function else ""))
    assert len(cited) > 15
    assert cited <= keys


# --- scikit-learn ------------------------------------------------------------------------------


def test_scorer():
    class Identity:
        def predict(self, X):
            return X[:, 0]

    X = np.array([[2.0], [1], [1], [2]])
    scorer = (NDCG @ 5).scorer()
    value = scorer(Identity(), X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    assert value == pytest.approx((1 + NDCG.discounts(2)[1]) / 2)


def test_scorer_in_cross_validation():
    import sklearn
    from sklearn.model_selection import cross_validate

    queries = rw.make_queries("course", n_queries=40)
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            rw.LinearRanker(),
            queries.X,
            queries.y,
            cv=rw.QueryKFold(2),
            params={"qid": queries.qid},
            scoring={"rr": RR.scorer(), "ndcg": (NDCG @ 5).scorer()},
        )
    assert (found["test_rr"] > 0.5).all()
    assert (found["test_ndcg"] > 0.4).all()
