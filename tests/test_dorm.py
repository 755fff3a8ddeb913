"""DORM: golden cases, the bound's properties, equal optima of all solvers, and what is refused."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import rankwise as rw
from rankwise._planes import solve_planes

QUERIES = rw.make_queries(n_queries=40)
LOSSES = [
    rw.StructuredBound(metric, places, reference)
    for metric in ("ndcg", "ndcg@3", "precision@2", "eru", "wta", "mean_ndcg", "r_precision")
    for places, reference in (("log2", "sorted"), ("reciprocal", "fixed"), ("linear", "sorted"))
]
each = pytest.mark.parametrize("loss", LOSSES, ids=str)


def one_list(seed, n=5):
    rng = np.random.default_rng(seed)
    y = rng.choice([0.0, 1.0, 2.0], n)
    y[0] = 2
    return y, np.round(rng.normal(size=n), 1) * rng.choice([0.1, 1, 3]), np.array([0, n])


def place_weights(loss, n):
    i = np.arange(1, n + 1)
    table = {"log2": 1 / np.log2(1 + i), "reciprocal": 1 / (1 + i), "linear": 1 - (i - 1) / n}
    return table[loss.places]


def worth(metric, y):
    """Gains as far as their order goes: labels the measure tells apart."""
    if metric.name in ("precision", "r_precision"):
        return (y >= 1) * 1.0
    return (y == y.max()) * 1.0 if metric.name == "wta" else y


def by_enumeration(loss, y, s):
    """The definition, over every ranking, with the metric's own value of each."""
    metric, n = rw.parse_metric(loss.metric), len(y)
    c = place_weights(loss, n)
    gain = worth(metric, y)
    keys = (-s, -gain) if loss.reference == "sorted" else (np.arange(n), -gain)
    reference = np.lexsort(keys)

    def measure(ranking):
        score = np.empty(n)
        score[list(ranking)] = -np.arange(n)
        return metric.per_query(y, score)[0]

    best = measure(reference)
    if np.isnan(best):
        return 0.0
    return max(
        best - measure(p) + c @ (s[list(p)] - s[reference])
        for p in itertools.permutations(range(n))
    )


# --- golden cases --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "value", "gradient"),
    [
        ([0, 0, 0], 0.413117, [-0.25, 0, 0.25]),
        ([1, 2, 3], 0.913117, None),
        ([3, 2, 1], 0.036626, [-1 / 6, 1 / 6, 0]),
        ([0, 0.5, 0], 0.413117, None),
    ],
)
def test_published_form_by_hand(f, value, gradient):
    loss = rw.StructuredBound("ndcg@3", places="reciprocal", reference="fixed")
    assert loss.value([2, 1, 0], f, [0, 3])[0] == pytest.approx(value, abs=5e-7)
    if gradient is not None:
        slopes = loss.derivatives([2, 1, 0], f, [0, 3])[0]
        assert slopes == pytest.approx(gradient, abs=1e-12)


@pytest.mark.parametrize("solver", ["queries", "bundle"])
@pytest.mark.parametrize(
    ("strength", "w", "objective"),
    [(1.0, 0.5, 0.288117), (0.1, 1.219755, 0.074390), (0.01, 1.219755, 0.00743901)],
)
def test_one_feature_by_hand(solver, strength, w, objective):
    model = rw.DORM(
        "ndcg@3", C=1 / strength, places="reciprocal", reference="fixed", scale=None,
        solver=solver, tol=1e-9,
    ).fit([[2.0], [1.0], [0.0]], [2, 1, 0], qid=[1, 1, 1])  # fmt: skip
    assert model.coef_[0] == pytest.approx(w, abs=1e-6)
    assert strength * model.objective_ == pytest.approx(objective, abs=5e-7)
    assert model.n_iter_ <= 4


# --- the bound -----------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("seed", range(4))
def test_the_value_is_the_maximum_over_all_rankings(loss, seed):
    y, s, offsets = one_list(seed)
    value = loss.value(y, s, offsets)[0]
    assert value == pytest.approx(by_enumeration(loss, y, s), abs=1e-10)


@each
@pytest.mark.parametrize("seed", range(6))
def test_it_bounds_what_the_sort_by_score_loses(loss, seed):
    y, s, offsets = one_list(seed, n=20)
    rng = np.random.default_rng(seed)
    metric = rw.parse_metric(loss.metric)
    ideal = metric.per_query(y, y + 1e-3 * rng.random(20))[0]
    for _ in range(10):
        s = rng.normal(size=20) * rng.choice([0.1, 1, 5])
        lost = ideal - metric.per_query(y, s)[0]
        assert loss.value(y, s, offsets)[0] >= lost - 1e-12 >= -1e-9


@pytest.mark.parametrize("loss", [x for x in LOSSES if x.convex], ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_convex_and_above_its_planes(loss, seed):
    y, _, offsets = one_list(seed, n=9)
    rng = np.random.default_rng(seed)
    s, u = rng.normal(size=(2, 9)) * rng.choice([0.2, 2])
    at, there = loss.value(y, s, offsets)[0], loss.value(y, u, offsets)[0]
    slope = loss.derivatives(y, s, offsets)[0]
    assert there >= at + slope @ (u - s) - 1e-10
    middle = loss.value(y, 0.5 * (s + u), offsets)[0]
    assert middle <= 0.5 * (at + there) + 1e-10


def test_the_sorted_reference_is_not_convex_for_other_places():
    loss, rng = rw.StructuredBound("ndcg"), np.random.default_rng(0)
    worst = 0.0
    for _ in range(100):
        y, offsets = rng.choice([0.0, 1.0], 6), [0, 6]
        s, u = rng.normal(size=(2, 6)) * 2
        ends = loss.value(y, s, offsets)[0] + loss.value(y, u, offsets)[0]
        worst = max(worst, loss.value(y, (s + u) / 2, offsets)[0] - ends / 2)
    assert not loss.convex and worst > 1e-3


@each
def test_gradients_sum_to_zero_and_shifts_change_nothing(loss):
    y, s, offsets = one_list(3, n=30)
    slope = loss.derivatives(y, s, offsets)[0]
    assert abs(slope.sum()) < 1e-12
    assert loss.value(y, s + 3, offsets)[0] == pytest.approx(loss.value(y, s, offsets)[0])


def test_tied_documents_share_the_gradient():
    y, s = [1, 0, 0, 1, 0], [0.0, 0.0, 0.0, 0.0, 0.3]
    slope = rw.StructuredBound("ndcg").derivatives(y, s, [0, 5])[0]
    assert slope[0] == slope[3] and slope[1] == slope[2] != slope[4]


def test_the_fixed_order_pays_for_ties_of_labels():
    """Two relevant documents in the wrong order cost something only if the order is fixed."""
    y, s = [1, 1, 0], [2.0, 9.0, -9.0]
    fixed, free = (
        rw.StructuredBound("ndcg@1", reference=r).value(y, s, [0, 3])[0]
        for r in ("fixed", "sorted")
    )
    assert fixed > 1 and free == 0


def test_loss_zero_needs_margins():
    y, offsets = [2, 1, 0], [0, 3]
    loss = rw.StructuredBound("ndcg")
    assert loss.value(y, [0.2, 0.1, 0.0], offsets)[0] > 0
    assert loss.value(y, [200.0, 100.0, 0.0], offsets)[0] == 0


def test_most_violated_ranking_attains_the_maximum():
    y, s, offsets = one_list(2, n=12)
    loss = rw.StructuredBound("ndcg@5", "reciprocal")
    ranking = loss.most_violated(y, s, offsets)
    score = np.empty(12)
    score[ranking] = -np.arange(12)
    c, metric = place_weights(loss, 12), rw.parse_metric(loss.metric)
    reference = np.lexsort((-s, -y))
    value = 1 - metric.per_query(y, score)[0] + c @ (s[ranking] - s[reference])
    assert loss.value(y, s, offsets)[0] == pytest.approx(value)


def test_reciprocal_rank():
    loss = rw.StructuredBound("rr", "reciprocal")
    assert loss.value([0, 1, 0], [0.0, 0.0, 0.0], [0, 3])[0] == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match=r"one relevant document .* got 2 in a query"):
        loss.value([1, 1, 0], [0.0, 0.0, 0.0], [0, 3])
    first = rw.StructuredBound("rr", several="first")
    assert first.value([1, 1, 0], [9.0, 0.0, 0.0], [0, 3])[0] == 0


def test_documents_without_labels_and_queries_without_relevant_ones():
    loss = rw.StructuredBound("ndcg@3")
    y, s = np.array([2, np.nan, 0, 1]), np.array([0.1, 5.0, 0.4, 0.2])
    known = ~np.isnan(y)
    assert loss.value(y, s, [0, 4])[0] == loss.value(y[known], s[known], [0, 3])[0]
    slope, _ = loss.derivatives(y, s, [0, 4])
    assert slope[1] == 0
    assert loss.value([0, 0, 1, 1, 3], np.arange(5.0), [0, 2, 4, 5]).tolist() == [0, 0, 0]
    assert loss.value([2, 0], [0.0, 9.0], [0, 2], [0.0, 0.0])[0] == 0


def test_cutoff_beyond_the_list_and_own_weights():
    y, s, offsets = one_list(1, n=6)
    assert rw.StructuredBound("ndcg@50").value(y, s, offsets) == rw.StructuredBound("ndcg").value(
        y, s, offsets
    )
    table = tuple(1 / np.log2(1 + np.arange(1, 7)))
    own = rw.StructuredBound(rw.metrics.NDCG(gain="identity"), table)
    same = rw.StructuredBound("ndcg(gain='identity')", "log2")
    assert own.value(y, s, offsets) == pytest.approx(same.value(y, s, offsets))
    power = rw.StructuredBound("ndcg", 0.25).value(y, s, offsets)
    assert power == pytest.approx(
        rw.StructuredBound("ndcg", tuple(np.arange(1, 7.0) ** -0.25)).value(y, s, offsets)
    )
    with pytest.raises(ValueError, match="as many as the longest list has documents, got 3 for 6"):
        rw.StructuredBound("ndcg", (3, 2, 1)).value(y, s, offsets)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "ap"}, "sum of gains times discounts .* got ap; StructuredAP is"),
        ({"metric": "err"}, "sum of gains times discounts"),
        ({"places": "log"}, "places"),
        ({"places": (1.0, 2.0)}, "never rise"),
        ({"places": -1.0}, "places must be"),
        ({"reference": "best"}, "reference"),
        ({"several": "all"}, "several"),
    ],
)
def test_what_the_loss_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        rw.StructuredBound(**options)


def ap_bound_by_enumeration(y, s):
    n, good = len(y), y >= 1
    if good.all() or not good.any():
        return 0.0
    pairs = list(itertools.product(np.flatnonzero(good), np.flatnonzero(~good)))
    best = 0.0
    for p in itertools.permutations(range(n)):
        place = np.argsort(p)
        wrong = sum(2 * (s[i] - s[j]) for i, j in pairs if place[i] > place[j])
        lost = 1 - rw.parse_metric("ap").per_query(y, -place.astype(float))[0]
        best = max(best, lost - wrong / len(pairs))
    return best


@pytest.mark.parametrize("seed", range(25))
def test_average_precision_is_the_maximum_over_all_rankings(seed):
    rng = np.random.default_rng(seed)
    y, s = (
        rng.integers(0, 2, 6).astype(float),
        np.round(rng.normal(size=6), 1) * rng.choice([0.1, 1]),
    )
    loss = rw.StructuredAP()
    value = loss.value(y, s, [0, 6])[0]
    assert value == pytest.approx(ap_bound_by_enumeration(y, s), abs=1e-10)
    u = rng.normal(size=6)
    slope = loss.derivatives(y, s, [0, 6])[0]
    assert abs(slope.sum()) < 1e-12
    assert loss.value(y, u, [0, 6])[0] >= value + slope @ (u - s) - 1e-10
    if y.any():
        assert value >= 1 - rw.parse_metric("ap").per_query(y, s + 1e-9 * u)[0] - 1e-6


def test_svm_map_solvers_agree_and_it_ranks():
    found = [
        rw.DORM("ap", C=0.1, solver=s, tol=t).fit(QUERIES).objective_
        for s, t in (("queries", 1e-6), ("bundle", 1e-6), ("stochastic", 1e-3))
    ]
    assert found[1] == pytest.approx(found[0], rel=1e-5)
    assert found[2] == pytest.approx(found[0], rel=2e-3)
    model = rw.make_ranker("svm_map(C=0.1)").fit(QUERIES)
    ap = rw.parse_metric("ap")
    zero = ap.mean(QUERIES.y, 0 * QUERIES.y, qid=QUERIES.qid)
    assert ap.mean(QUERIES.y, model.predict(QUERIES), qid=QUERIES.qid) > zero + 0.2
    with pytest.raises(ValueError, match="whole list, got ap@5"):
        rw.DORM("ap@5").fit(QUERIES)


# --- solvers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_programme_of_planes_against_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    m, n, blocks, C = 12, [3, 30][seed % 2], 4, 0.7
    V, b, block = rng.normal(size=(m, n)), rng.random(m), np.sort(rng.integers(0, blocks, m))
    found = solve_planes(V, b, block, blocks, C, 1e-10)
    dual = minimize(
        lambda a: 0.5 * np.sum((a @ V) ** 2) - a @ b,
        np.full(m, 0.01),
        jac=lambda a: V @ (a @ V) - b,
        bounds=[(0, None)] * m,
        constraints=[
            {"type": "ineq", "fun": lambda a, q=q: C - a[block == q].sum()} for q in range(blocks)
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.bound == pytest.approx(-dual.fun, rel=1e-6)
    room = np.zeros(blocks)
    np.maximum.at(room, block, b - V @ found.w)
    primal = 0.5 * found.w @ found.w + C * room.sum()
    assert found.bound <= primal + 1e-12
    assert primal == pytest.approx(found.bound, rel=1e-7)


CONVEX = [("fixed", "log2", "ndcg@5", 0.3), ("sorted", "linear", "ndcg", 0.05)]


@pytest.mark.parametrize(("reference", "places", "measure", "C"), CONVEX)
def test_solvers_agree(reference, places, measure, C):
    options = {"C": C, "reference": reference, "places": places, "tol": 2e-6, "max_iter": 3000}
    found = {}
    for solver in ("queries", "bundle", "stochastic"):
        accuracy = 1e-3 if solver == "stochastic" else 2e-6
        options["tol"] = accuracy
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            found[solver] = rw.DORM(measure, solver=solver, **options).fit(QUERIES)
        assert 0 <= found[solver].duality_gap_ <= accuracy
    best = found["queries"].objective_
    assert found["bundle"].objective_ == pytest.approx(best, rel=1e-5)
    assert found["stochastic"].objective_ == pytest.approx(best, rel=2e-3)
    assert found["stochastic"].objective_ >= best * (1 - 1e-5)


def test_the_objective_is_that_of_the_definition():
    model = rw.DORM("ndcg@5", C=0.2, scale=None, places="linear", tol=1e-6).fit(QUERIES)
    loss = rw.StructuredBound("ndcg@5", "linear")
    values = loss.value(QUERIES.y, QUERIES.X @ model.coef_, QUERIES.offsets)
    expected = 0.5 * model.coef_ @ model.coef_ + 0.2 * values.sum()
    assert model.objective_ == pytest.approx(expected, rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(50):  # and nothing near is better
        w = model.coef_ + 0.05 * rng.normal(size=len(model.coef_))
        near = loss.value(QUERIES.y, QUERIES.X @ w, QUERIES.offsets).sum()
        assert 0.5 * w @ w + 0.2 * near >= model.objective_ * (1 - 2e-6)


def test_holding_the_reference_never_makes_it_worse():
    short = {"C": 0.1, "tol": 1e-5, "warm_start": True}
    model = rw.DORM("ndcg", **short).fit(QUERIES)
    first = model.objective_
    again = model.fit(QUERIES).objective_
    assert again <= first * (1 + 1e-5)
    ranknet = rw.LinearRanker("ranknet").fit(QUERIES)
    assert model.score(QUERIES) > ranknet.score(QUERIES) - 0.05


@pytest.mark.parametrize("solver", ["queries", "bundle"])
def test_planes_are_kept_along_a_path(solver):
    ranker, shared = rw.DORM("ndcg@5", solver=solver, places="linear", tol=1e-5), {}
    rounds, alone = 0, 0
    for C in (0.01, 0.02, 0.04, 0.08):
        ranker.set_params(C=C)
        fresh = rw.DORM(**ranker.get_params()).fit(QUERIES)
        warm = rw.DORM(**ranker.get_params()).set_params(warm_start=True)
        shared_fit = warm.fit_in_search(QUERIES, None, shared)
        assert shared_fit.n_left_out_ == fresh.n_left_out_
        assert shared_fit.objective_ == pytest.approx(fresh.objective_, rel=2e-5)
        rounds, alone = rounds + shared_fit.n_iter_, alone + fresh.n_iter_
    assert rounds < alone


def test_sparse_and_float32_features_give_the_same_model():
    import scipy.sparse as sp

    dense = rw.DORM("ndcg@5", C=0.1, tol=1e-6, places="linear").fit(QUERIES)
    for X in (sp.csr_matrix(QUERIES.X), QUERIES.X.astype(np.float32)):
        other = rw.DORM("ndcg@5", C=0.1, tol=1e-6, places="linear")
        other.fit(X, QUERIES.y, qid=QUERIES.qid)
        assert other.objective_ == pytest.approx(dense.objective_, rel=1e-5)


def test_partial_fit_learns_and_meets_each_query():
    model = rw.DORM("ndcg@5", C=0.01, metric="ndcg@5")
    one = QUERIES.take([0])
    model.partial_fit(one)
    loss = model._loss().value(one.y, one.X @ model.coef_, one.offsets)[0]
    before = model._loss().value(one.y, 0 * one.y, one.offsets)[0]
    assert loss < before
    for q in range(1, 40):
        model.partial_fit(QUERIES.take([q]))
    zero = rw.parse_metric("ndcg@5").mean(QUERIES.y, 0 * QUERIES.y, qid=QUERIES.qid)
    assert model.score(QUERIES) > zero + 0.2
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(QUERIES.X[:10, :3], QUERIES.y[:10], qid=QUERIES.qid[:10])


def test_behind_a_kernel_map_all_documents_are_the_exact_kernel():
    small = QUERIES.take(range(6))
    n = small.n_docs
    loss = rw.StructuredBound("ndcg", "linear")
    ranker = rw.KernelRanker(rw.Nystroem(n, gamma=0.2, random_state=0), loss=loss, C=1.0, tol=1e-6)
    scores = ranker.fit(small).predict(small)
    values, vectors = np.linalg.eigh(rw.kernel_matrix(small.X, kernel="rbf", gamma=0.2))
    keep = values > 1e-9 * values.max()
    features = vectors[:, keep] * np.sqrt(values[keep])
    exact = rw.DORM("ndcg", places="linear", scale=None, tol=1e-6)
    expected = exact.fit(features, small.y, qid=small.qid).predict(features)
    assert np.corrcoef(scores, expected)[0, 1] > 0.99


def test_queries_left_out_are_counted_and_rounds_reported():
    X, y = [[1.0], [0.0], [2.0], [1.0], [3.0]], [1, 0, 0, 0, 2]
    model = rw.DORM(C=1.0).fit(X, y, qid=[1, 1, 2, 2, 3])
    assert model.n_left_out_ == 2
    with pytest.warns(ConvergenceWarning, match=r"duality gap must fall to 1e-06 .* 2 rounds"):
        rw.DORM(C=1.0, max_iter=2, tol=1e-6, solver="bundle", places="linear").fit(QUERIES)
    with pytest.raises(ValueError, match="solver"):
        rw.DORM(solver="newton").fit(QUERIES)
    with pytest.raises(ValueError, match="C must be"):
        rw.DORM(C=0).fit(QUERIES)
    with pytest.raises(ValueError, match="l1_ratio must be 0"):
        rw.LinearRanker("structured", l1_ratio=0.5).fit(QUERIES)
