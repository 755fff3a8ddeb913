"""LambdaRank with functions of the user's own, with drawn pairs, and what rows in any order give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from rankwise import _orders
from rankwise.lambdas import ARPLoss, LambdaLoss, LambdaRank
from rankwise.metrics import Metric, parse_metric
from test_lambdas_swaps import brute_force, lists

ALL = [
    "lambdarank", "ndcg@10", "dcg", "ap", "ap@5", "rr", "err", "precision@5", "mean_ndcg", "success@3",
]  # fmt: skip


def loss_named(name, **options):
    return LambdaRank(**options) if name == "lambdarank" else LambdaRank(name, **options)


def one_query(n):
    return np.array([0, n])


def columns(rows):
    return (np.array(column, dtype=float) for column in zip(*rows, strict=True))


class Ndcg:
    """nDCG as a user would write it."""

    def __call__(self, y_true, y_score):
        gains = np.exp2(np.nan_to_num(y_true)) - 1
        discount = 1 / np.log2(np.arange(2, len(gains) + 2))
        ideal = np.sort(gains)[::-1] @ discount
        return gains[np.argsort(-y_score)] @ discount / ideal if ideal > 0 else 0.0


class WithSwaps(Ndcg):
    def swap_deltas(self, y_true, y_score):
        return parse_metric("ndcg").swap_deltas(y_true, y_score)


# --- a metric of one's own ------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.sampled_from([Ndcg(), WithSwaps()]),
    lists,
    st.sampled_from(["average", "stable"]),
    st.sampled_from([None, 2]),
    st.sampled_from(["none", "gap", "query", "both"]),
    st.booleans(),
)
def test_a_function_gives_the_gradient_of_the_same_metric_with_a_closed_form(
    metric, rows, ties, truncation, normalize, weighted
):
    y, s = columns(rows)
    options = {"ties": ties, "truncation": truncation, "normalize": normalize, "sigma": 0.5}
    weight = np.linspace(0.5, 2, len(y)) if weighted else None
    own, known = LambdaRank(metric, **options), LambdaRank("ndcg", **options)
    for a, b in zip(
        (*own.derivatives(y, s, one_query(len(y)), weight), own.value(y, s, one_query(len(y)))),
        (*known.derivatives(y, s, one_query(len(y)), weight), known.value(y, s, one_query(len(y)))),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("text", ["tau_a", "bpref", "pairwise_accuracy", "set_ap@2", "infap"])
@settings(max_examples=30)
@given(rows=lists, stable=st.booleans())
def test_metrics_without_a_closed_form_swap_by_swap(text, rows, stable):
    y, s = columns(rows)
    metric = parse_metric(text)
    got = metric.swap_deltas(y, s, ties="stable" if stable else "average")
    expected = brute_force(metric, y, s, "stable" if stable else "average")
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_swap_deltas_of_the_course_note():
    changes = parse_metric("ndcg").swap_deltas([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1])
    assert [changes[p].round(3) for p in [(1, 0), (1, 4), (2, 4)]] == [0.275, 0.104, 0.024]


def test_many_orders_of_ties_are_drawn_and_near_their_expectation():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 3, 14).astype(float), rng.integers(0, 3, 14).astype(float)
    drawn, _ = LambdaRank(Ndcg()).derivatives(y, s, one_query(14))
    exact, _ = LambdaRank().derivatives(y, s, one_query(14))
    assert 0 < np.abs(drawn - exact).max() < 0.15 * np.abs(exact).max()
    assert abs(drawn.sum()) < 1e-12


def test_long_lists_are_refused_with_their_length():
    y = np.arange(201.0) % 3
    with pytest.raises(ValueError, match=r"Ndcg.*at most 200 documents, got one of 201"):
        LambdaRank(Ndcg()).derivatives(y, -y, one_query(201))
    with pytest.raises(ValueError, match=r"tau_a has no swap changes.*got one of 201"):
        LambdaRank("tau_a").derivatives(y, -y, one_query(201))
    gradient, _ = LambdaRank(WithSwaps(), ties="stable").derivatives(y, -y, one_query(201))
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LambdaRank("judged@5"), ValueError, "must depend on the order .* got 'judged@5'"),
        (lambda: LambdaRank(3.0), TypeError, "metric must be a metric's name or Metric"),
        (lambda: LambdaRank(Ndcg), TypeError, "metric must be a metric's name or Metric"),
        (lambda: LambdaRank(force=1), TypeError, "force must be a function"),
        (lambda: LambdaRank(Ndcg(), pairs_per_doc=5), ValueError, "needs a metric with a closed"),
        (lambda: LambdaRank(pairs_per_doc=0), ValueError, "pairs_per_doc must be an integer"),
        (lambda: LambdaRank(random_state=-1), ValueError, "random_state must be an integer"),
    ],
)
def test_what_is_no_metric_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_what_a_function_returns_is_checked():
    y, s = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    with pytest.raises(ValueError, match="must return one finite number"):
        LambdaRank(lambda y, s: y).derivatives(y, s, one_query(2))

    class Wrong:
        def swap_deltas(self, y_true, y_score):
            return np.zeros(2)

    with pytest.raises(ValueError, match=r"must return a finite matrix of shape \(2, 2\)"):
        LambdaRank(Wrong()).derivatives(y, s, one_query(2))
    for force in (lambda *a: -np.ones(len(a[0])), lambda *a: 1.0):
        with pytest.raises(ValueError, match="force must return one finite weight of at least 0"):
            LambdaRank(force=force).derivatives(y, s, one_query(2))


# --- a force of one's own -------------------------------------------------------------------------


def some_force(y_i, y_j, rank_i, rank_j):
    return (y_i - y_j) * np.abs(1 / np.sqrt(rank_i) - 1 / rank_j**2) + rank_i / 10


@given(lists, st.sampled_from([None, 1, 3]), st.booleans())
def test_a_force_is_averaged_over_the_places_of_the_two_documents(rows, truncation, stable):
    y, s = columns(rows)
    n = len(y)
    orders = list(reference.orders_of(s))
    if stable:
        orders = [sorted(range(n), key=lambda i: (-s[i], i))]
    weights = np.zeros((n, n))
    for order in orders:
        rank = np.argsort(order) + 1
        for i, j in itertools.permutations(range(n), 2):
            if y[i] > y[j] and (truncation is None or min(rank[i], rank[j]) <= truncation):
                weights[i, j] += some_force(y[i], y[j], rank[i], rank[j]) / len(orders)
    _, gradient, curvature = reference.lambda_loss(np.nan_to_num(y, nan=-1), s, weights)
    loss = LambdaRank(
        force=some_force, truncation=truncation, ties="stable" if stable else "average"
    )
    got = loss.derivatives(y, s, one_query(n))
    np.testing.assert_allclose(got[0], gradient, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(got[1], curvature, rtol=1e-10, atol=1e-13)


def test_a_force_of_gain_and_discount_is_lambdarank():
    def force(y_i, y_j, r_i, r_j):
        return (2**y_i - 2**y_j) * np.abs(1 / np.log2(1 + r_i) - 1 / np.log2(1 + r_j))

    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 5, 50).astype(float), rng.integers(0, 9, 50).astype(float)
    offsets = np.array([0, 20, 20, 50])
    for a, b in zip(
        LambdaRank(force=force).derivatives(y, s, offsets),
        LambdaRank("dcg").derivatives(y, s, offsets),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


# --- every metric's gradient ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("distinct", [1, 4, 10_000])
def test_gradients_are_those_of_the_swap_changes_in_long_lists(name, distinct):
    rng = np.random.default_rng(distinct)
    y = rng.choice([0.0, 0.0, 1.0, 2.0, 4.0, np.nan], 70)
    s = rng.integers(0, distinct, 70) / distinct * 5
    weight = rng.uniform(0.5, 2, 70)
    loss = loss_named(name, sigma=0.7)
    changes = loss.metric.swap_deltas(y, s)
    gains = np.nan_to_num(y, nan=-1)  # any column that orders the pairs
    _, gradient, curvature = reference.lambda_loss(gains, s, changes, sigma=0.7, documents=weight)
    got = loss.derivatives(y, s, one_query(70), weight)
    np.testing.assert_allclose(got[0], gradient, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(got[1], curvature, rtol=1e-9, atol=1e-13)


EVERY_LOSS = [loss_named(name) for name in ALL] + [
    LambdaRank(truncation=7, normalize="both"),
    LambdaRank(pairs_per_doc=4),
    LambdaRank("ap", pairs_per_doc=4),
    LambdaLoss(),
    LambdaLoss("ndcg1"),
    LambdaLoss("ndcg2", pairs_per_doc=4),
    ARPLoss(),
    ARPLoss("arp1"),
    LambdaRank(force=some_force),
    LambdaRank(WithSwaps()),
]


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=str)
@pytest.mark.parametrize("distinct", [1, 6, 10_000])
def test_shuffled_rows_and_more_threads_give_the_same_bits(loss, distinct):
    rng = np.random.default_rng(distinct)
    offsets = np.array([0, 1, 30, 30, 90])
    y = rng.choice([0.0, 1.0, 2.0, 4.0, np.nan], 90, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    s = rng.integers(0, distinct, 90) / distinct * 4
    weight = rng.choice([0.5, 1.0, 3.0], 90)
    plain = loss.prepare(y, offsets, weight, n_threads=1)(s)
    shuffled = np.concatenate(
        [rng.permutation(np.arange(a, b)) for a, b in itertools.pairwise(offsets)]
    )
    run = loss.prepare(y[shuffled], offsets, weight[shuffled], n_threads=2)
    run(rng.normal(size=90))  # a last order to start from
    again = run(s[shuffled])
    native = not isinstance(loss._kernel(y, offsets, None), _orders.MatrixForces)
    for a, b in zip(plain, again, strict=True):
        if native:
            assert a[shuffled].tobytes() == b.tobytes()
        else:
            np.testing.assert_allclose(a[shuffled], b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=str)
def test_gradients_sum_to_0_and_a_constant_changes_nothing(loss):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 5, 80).astype(float)
    s = rng.integers(0, 40, 80) / 8
    gradient, curvature = loss.derivatives(y, s, one_query(80))
    assert abs(gradient.sum()) <= 1e-12 * np.abs(gradient).sum()
    assert (curvature >= 0).all()
    moved = loss.derivatives(y, s + 64, one_query(80))
    np.testing.assert_allclose(moved[0], gradient, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(moved[1], curvature, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=str)
def test_a_query_weight_is_a_factor(loss):
    rng = np.random.default_rng(6)
    y, s = rng.integers(0, 5, 40).astype(float), rng.normal(size=40)
    if getattr(loss, "normalize", "none") in ("query", "both"):
        pytest.skip("rescaling a query by the logarithm of its forces is not linear in them")
    one = loss.derivatives(y, s, one_query(40))
    three = loss.derivatives(y, s, one_query(40), np.full(40, 3.0))
    np.testing.assert_allclose(three[0], 3 * one[0], rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(three[1], 3 * one[1], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", ["lambdarank", "ap", "rr", "err"])
def test_gradient_and_curvature_are_finite_differences_with_the_weights_held_fixed(name):
    # Steps smaller than the gaps keep the ranking, hence the weights.
    loss = loss_named(name)
    rng = np.random.default_rng(1)
    y, s = rng.integers(0, 4, 9).astype(float), rng.permutation(9) * 0.3
    gradient, curvature = loss.derivatives(y, s, one_query(9))
    h = 1e-4
    for i in range(9):
        step = h * (np.arange(9) == i)
        up, here, down = (loss.value(y, s + d * step, one_query(9))[0] for d in (1, 0, -1))
        assert gradient[i] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-9)
        assert curvature[i] == pytest.approx((up - 2 * here + down) / h**2, rel=1e-4, abs=1e-6)


# --- drawn pairs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: LambdaRank(pairs_per_doc=6, random_state=seed),
        lambda seed: LambdaRank("ap", pairs_per_doc=6, random_state=seed),
        lambda seed: LambdaRank("err", pairs_per_doc=6, random_state=seed, truncation=20),
        lambda seed: LambdaLoss("ndcg1", pairs_per_doc=6, random_state=seed),
        lambda seed: LambdaLoss(pairs_per_doc=6, random_state=seed),
    ],
)
@pytest.mark.parametrize("distinct", [12, 10_000])
def test_drawn_pairs_give_the_gradient_of_all_pairs_on_average(make, distinct):
    rng = np.random.default_rng(0)
    y = rng.choice([0.0, 0.0, 1.0, 2.0, 4.0], 120)
    s = rng.integers(0, distinct, 120) / distinct * 3
    weight = rng.choice([1.0, 2.0], 120)
    fields = {**make(0).__dict__, "pairs_per_doc": None}
    exact = type(make(0))(**fields).derivatives(y, s, one_query(120), weight)
    draws = np.array([make(seed).derivatives(y, s, one_query(120), weight) for seed in range(400)])
    for column in (0, 1):
        mean, spread = draws[:, column].mean(axis=0), draws[:, column].std(axis=0)
        error = np.abs(mean - exact[column])
        # 120 means of 400 draws: beyond 4.5 standard errors with a chance below .001.
        assert (error <= 4.5 * spread / np.sqrt(400) + 1e-12).all()
        assert spread.max() > 0
        # More draws are nearer to all pairs than none at all.
        assert error.max() < 0.2 * np.abs(exact[column]).max()


def test_equal_seeds_give_equal_draws_and_every_ranking_another():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 5, 100).astype(float), rng.normal(size=100)
    one = LambdaRank(pairs_per_doc=3).prepare(y, one_query(100))
    first = one(s)[0]
    other = LambdaRank(pairs_per_doc=3, random_state=1).derivatives(y, s, one_query(100))[0]
    assert (one(s)[0] == first).all()
    assert (other != first).any()
    nearly = s.copy()
    nearly[np.argsort(-s)[[50, 51]]] = nearly[np.argsort(-s)[[51, 50]]]
    assert np.abs(one(nearly)[0] - first).max() > 0.01 * np.abs(first).max()


def test_short_lists_keep_all_pairs():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 5, 21).astype(float), rng.normal(size=21)
    drawn = LambdaRank(pairs_per_doc=10).derivatives(y, s, one_query(21))
    exact = LambdaRank().derivatives(y, s, one_query(21))
    assert drawn[0].tobytes() == exact[0].tobytes()


# --- labels and lists of any size ---------------------------------------------------------------


def test_fractional_and_huge_labels_and_a_list_of_20_000_documents():
    rng = np.random.default_rng(0)
    y = rng.uniform(0, 1e6, 20_000)
    s = rng.normal(size=20_000)
    loss = LambdaRank("ndcg(gain='identity')", truncation=10)
    gradient, _ = loss.derivatives(y, s, one_query(20_000))
    assert np.isfinite(gradient).all()
    assert (gradient != 0).mean() > 0.99
    with pytest.raises(
        ValueError, match=r"overflows for label 999.*the largest one.*gain='identity'"
    ):
        LambdaRank().derivatives(y, s, one_query(20_000))
    table = LambdaRank(Metric("ndcg", None, {"gain": (0, 1, 5)}))
    with pytest.raises(ValueError, match="the gain table covers labels 0 to 2"):
        table.derivatives([3.0, 0.0], [0.0, 1.0], one_query(2))
    with pytest.raises(ValueError, match="labels must be at most the top grade 4, got label 5"):
        LambdaRank("err").derivatives([5.0, 0.0], [0.0, 1.0], one_query(2))


def test_err_with_a_top_grade_that_stops_almost_everyone():
    y, s = np.array([20.0, 0.0, 20.0, 3.0, 19.0]), np.array([1.0, 1.0, 1.0, 0.0, -1.0])
    metric = parse_metric("err(top=20)")
    np.testing.assert_allclose(
        metric.swap_deltas(y, s), brute_force(metric, y, s), rtol=1e-9, atol=1e-15
    )
    with pytest.raises(ValueError, match="top grade of at most 50, got top=60"):
        LambdaRank("err(top=60)").derivatives(y, s, one_query(5))


def test_auc_counts_places_among_judged_documents():
    with pytest.raises(ValueError, match=r"auc counts places among judged documents only.* 1$"):
        LambdaRank("auc").derivatives([1.0, np.nan, 0.0], [0.0, 1.0, 2.0], one_query(3))
