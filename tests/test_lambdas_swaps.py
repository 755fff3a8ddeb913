"""What a swap changes in each metric: closed forms against swaps done one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from rankwise._swaps import FORMS, kernel, swap_form
from rankwise.metrics import parse_metric

METRICS = [
    "ndcg", "ndcg@3", "ndcg(gain=identity, discount=letor)@4", "ndcg(short=zero)@3", "dcg@2",
    "mean_ndcg", "eru", "eru(half_life=2, neutral=1)",
    "precision@2", "precision(short=cut)@4", "precision(short=zero)@3", "recall@2", "f1@3",
    "f1(short=cut)@4", "relative_precision@2", "r_precision", "r_precision(multiple=0.5)",
    "rbp", "rbp(p=0.5)@3", "rbp(relevance=graded)", "wta", "auc", "auc(rel=2)",
    "ap", "ap@2", "ap(norm=min)@3", "ap(rel=2)", "rr", "rr@2", "rr(rel=3)", "success@1",
    "success@3", "err", "err@2", "err(top=6)",
]  # fmt: skip

label = st.sampled_from([0.0, 0.0, 1.0, 1.0, 2.0, 4.0, np.nan])
lists = st.lists(st.tuples(label, st.integers(0, 2)), min_size=1, max_size=5)


def brute_force(metric, y, s, ties="average", truncation=None):
    """E |change| over all orders of ties, each swap done and measured."""
    n = len(y)
    orders = list(reference.orders_of(s))
    if ties == "stable":
        orders = [sorted(range(n), key=lambda i: (-s[i], i))]
    lists, pairs = [], []
    for order in orders:
        lists.append(y[order])
        pairs.append(None)
        for p, q in itertools.combinations(range(n), 2):
            i, j = order[p], order[q]
            if (truncation is None or p < truncation) and (y[i] < y[j] or y[j] < y[i]):
                swapped = list(order)
                swapped[p], swapped[q] = j, i
                lists.append(y[swapped])
                pairs.append((i, j))
    values = metric(empty=0.0).per_query(
        np.concatenate(lists),
        np.tile(-np.arange(n, dtype=float), len(lists)),
        qid=np.repeat(np.arange(len(lists)), n),
    )
    total = np.zeros((n, n))
    for value, pair in zip(values, pairs, strict=True):
        if pair is None:
            here = value
        else:
            total[pair] += abs(value - here)
    return (total + total.T) / len(orders)


def closed_form(metric, y, s, **options):
    offsets = np.array([0, len(y)])
    return kernel(swap_form(metric, y, offsets), offsets, **options).changes(s)


def test_every_metric_with_a_closed_form_is_tested():
    assert {parse_metric(m).name for m in METRICS} == set(FORMS)


@pytest.mark.parametrize("text", METRICS)
@settings(max_examples=40)
@given(lists, st.sampled_from([None, 1, 2, 4]), st.booleans())
def test_closed_forms_equal_swaps_done_one_by_one_over_all_orders_of_ties(
    text, rows, truncation, stable
):
    y, s = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    metric = parse_metric(text)
    if metric.name == "auc":
        y = np.nan_to_num(y)  # unjudged documents hold no place, see below
    got = closed_form(metric, y, s, truncation=truncation, stable=stable)
    expected = brute_force(metric, y, s, "stable" if stable else "average", truncation)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-13)
