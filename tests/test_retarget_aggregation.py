"""Rank aggregation with features: the golden example, the properties, the traps, bad input."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import kendalltau
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeRegressor

import rankwise as rw
from rankwise._common_permutation import CommonPermutation
from rankwise._rank_scores import borda_means, prepare, query_means, rearranged, uniform_values
from rankwise._shared_factor import SharedFactor

GOLDEN_R = np.array(
    [[5, 4, 3, 2, 1], [5, 4, 3, 1, 2], [2, 5, 3, 4, 1], [5, 1, 2, 4, 3], [4, 1, 2, 5, 3]], float
).T
GOLDEN_X = np.array([[2.0], [1], [0], [-1], [-2]])
ONE = np.array([0, 5])


def crowd(seed=0, n=60, n_queries=1, bad=0, reverse=0, gone=0.0, kind="linear", p=20, d=5):
    """Experts who see a truth with noise of 1.5 standard deviations; some see nothing."""
    rng = np.random.default_rng(seed)
    N = n * n_queries
    X = rng.normal(size=(N, d))
    truth = X @ rng.normal(size=d)
    truth = rng.normal(size=N) if kind == "useless" else truth / truth.std()
    R = truth[:, None] + 1.5 * rng.normal(size=(N, p))
    R[:, :bad] = rng.normal(size=(N, bad))
    R[:, p - reverse :] *= -1
    R[rng.random((N, p)) < gone] = np.nan
    return X, R, truth, np.repeat(np.arange(n_queries), n)


def tau(score, truth, qid=None):
    qid = np.zeros(len(truth)) if qid is None else qid
    return np.mean([kendalltau(score[qid == q], truth[qid == q]).statistic for q in np.unique(qid)])


def quiet(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **kwargs)


# --- the golden example -----------------------------------------------------------------------


def golden_evidence(R=GOLDEN_R):
    evidence = prepare(R, ONE, missing="ignore", scores="rank")
    return evidence, (GOLDEN_X - GOLDEN_X.mean()) / GOLDEN_X.std()


def golden_factor(R=GOLDEN_R, **options):
    evidence, X = golden_evidence(R)
    start = rearranged(uniform_values(ONE), borda_means(evidence), ONE)
    model = SharedFactor(evidence, X, signed=False, min_noise=0.5, posterior="factorised")
    return model.fit(start, **options)


def test_golden_places_and_fixed_values():
    evidence, _ = golden_evidence()
    np.testing.assert_allclose(borda_means(evidence), [0.74, 0.5, 0.42, 0.54, 0.3])
    s = [1.414214, 0.707107, 0, -0.707107, -1.414214]
    np.testing.assert_allclose(uniform_values(ONE), s, atol=1e-6)


def test_golden_permutation_squared():
    model = rw.RetargetedAggregation("permutation", start="borda").fit(GOLDEN_X, GOLDEN_R)
    np.testing.assert_allclose(model.objective_, [3.138608, 2.711736, 2.212191], atol=1e-6)
    np.testing.assert_allclose(model.loadings_, [1, 0.9, 0.3, 0.1, 0], atol=1e-12)
    v = model.expert_weights_[:4] / model.loadings_[:4] / 2
    np.testing.assert_allclose(v, [1, 0.840336, 0.523560, 0.502513], atol=1e-6)
    h = model.scores_ * (v.sum() + 0.5 + 0.990196)
    np.testing.assert_allclose(h, [3.830273, 2.086197, -0.035533, -2.323325, -3.557612], atol=1e-5)
    assert model.coef_ * GOLDEN_X.std() == pytest.approx(0.990099, abs=1e-6)
    assert model.converged_


def test_golden_permutation_other_divergences():
    model = rw.RetargetedAggregation("permutation", divergence="logistic", start="borda")
    model.fit(GOLDEN_X, GOLDEN_R)
    np.testing.assert_allclose(model.objective_, [3.235787, 2.816645, 2.299519], atol=1e-6)
    np.testing.assert_allclose(
        model.loadings_, [1.431186, 1.218338, 0.345104, 0.113343, 0], atol=1e-6
    )
    assert model.coef_ * GOLDEN_X.std() == pytest.approx(1.326736, abs=1e-6)
    model = rw.RetargetedAggregation("permutation", divergence="kl", start="borda")
    model.fit(GOLDEN_X, GOLDEN_R)
    np.testing.assert_allclose(model.objective_, [2.795338], atol=1e-6)
    assert list(np.argsort(-model.scores_)) == [0, 3, 1, 2, 4]  # stays with Borda


def test_golden_factor_by_rounds():
    f = golden_factor(max_iter=2, tol=0)
    np.testing.assert_allclose(f.bounds, [-17.969487, -17.370889], atol=1e-6)
    mean = [1.225368, 0.284316, -0.183964, -0.306891, -1.018829]
    np.testing.assert_allclose(f.mean, mean, atol=1e-6)
    loading = [0.390659, 0.338999, 0.229470, 0.292590, 0.239803]
    np.testing.assert_allclose(f.loading, loading, atol=1e-6)
    assert (f.tau2, f.ridge) == pytest.approx((0.812238, 2.489653), abs=1e-6)
    assert f.coef[0] == pytest.approx(0.433316, abs=1e-6)
    f = golden_factor(max_iter=1, tol=0)
    np.testing.assert_allclose(f.mean[:2], [1.105560, 0.078489], atol=1e-6)
    assert (f.tau2, f.ridge) == pytest.approx((0.831863, 2.474276), abs=1e-6)


def test_golden_factor_in_the_limit():
    f = golden_factor(max_iter=5000, tol=1e-13)
    assert f.bounds[-1] == pytest.approx(-15.214358, abs=1e-6)
    np.testing.assert_allclose(f.mean, [1.39027, 0.69238, -0.01486, -0.73354, -1.33425], atol=1e-4)
    np.testing.assert_allclose(f.loading, [0.78024, 0.773, 0.33961, 0.23376, 0.09945], atol=1e-4)
    np.testing.assert_allclose(f.noise, [0.5, 0.5, 1.08623, 1.14206, 1.12009], atol=1e-4)
    np.testing.assert_allclose(f.keep[:, 0], [0.9909, 0.9823, 0.4327, 0.298, 0.1269], atol=1e-4)
    np.testing.assert_allclose(f.variance, 0.07162, atol=1e-5)
    assert f.typical == pytest.approx(0.78637, abs=1e-4)


def test_golden_factor_with_gaps():
    R = GOLDEN_R.copy()
    R[1, 0] = R[3, 4] = np.nan
    f = golden_factor(R, max_iter=1, tol=0)
    assert f.bounds[0] == pytest.approx(-16.812882, abs=1e-6)
    mean = [1.237141, -0.246307, -0.110601, -0.210792, -0.732575]
    np.testing.assert_allclose(f.mean, mean, atol=1e-6)
    variance = [0.425084, 0.513436, 0.425084, 0.471495, 0.425084]
    np.testing.assert_allclose(f.variance, variance, atol=1e-6)


# --- descent and ascent -------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6), gone=st.sampled_from([0.0, 0.3, 0.8]), signed=st.booleans(),
    posterior=st.sampled_from(["joint", "factorised"]), missing=st.sampled_from(["ignore", "last"]),
    known=st.booleans(),
)  # fmt: skip
def test_the_bound_never_falls(seed, gone, signed, posterior, missing, known):
    X, R, truth, qid = crowd(seed, n=8, n_queries=4, bad=6, p=9, gone=gone)
    y = np.where(np.arange(len(truth)) % 3 == 0, np.digitize(truth, [-1, 1]), np.nan)
    model = rw.RetargetedAggregation(
        missing=missing, signed=signed, posterior=posterior, max_iter=60, tol=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, R, qid=qid, y=y if known else None)
    assert (np.diff(model.objective_) >= -1e-9).all()
    assert np.isfinite(model.scores_).all()


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6), gone=st.sampled_from([0.0, 0.4]),
    divergence=st.sampled_from(["squared", "logistic", "kl"]),
    other=st.sampled_from(["squared", "logistic", "kl"]), l1=st.sampled_from([0.0, 0.1]),
)  # fmt: skip
def test_the_permutation_falls_and_stops(seed, gone, divergence, other, l1):
    X, R, _, qid = crowd(seed, n=7, n_queries=5, bad=5, p=8, gone=gone)
    model = rw.RetargetedAggregation(
        "permutation", missing="ignore", divergence=divergence, feature_divergence=other, l1=l1,
        max_iter=200,
    ).fit(X, R, qid=qid)  # fmt: skip
    assert model.converged_
    assert (np.diff(model.objective_) < 0).all()
    for q in range(5):  # rbar and zbar are fixed values in one order
        r, z = (model.candidates_[name][qid == q] for name in ("rbar", "zbar"))
        assert len(np.unique(r)) == 7
        assert list(np.argsort(r)) == list(np.argsort(z))


@pytest.mark.parametrize("divergence", ["squared", "logistic", "kl"])
def test_sorting_is_the_best_of_all_permutations(divergence):
    X, R, _, _ = crowd(3, n=5, p=4, d=2)
    evidence = prepare(R, ONE, missing="ignore", scores="rank")
    X = X - X.mean(axis=0)
    model = CommonPermutation(
        evidence,
        X,
        divergence=divergence,
        feature_divergence=divergence,
        cap=1.0,
        ridge=0.1,
        l1=0.0,
    )
    f = model.fit(borda_means(evidence), max_iter=100)
    h = model._linear(f.slopes, f.list_weights, f.feature_weight, f.prediction)
    best = max(itertools.permutations(range(5)), key=lambda order: model.s[np.argsort(order)] @ h)
    assert np.array_equal(f.values, model.s[np.argsort(best)])


@pytest.mark.parametrize("divergence", ["squared", "logistic", "kl"])
def test_slopes_and_weights_equal_a_general_solver(divergence):
    X, R, _, _qid = crowd(1, n=6, n_queries=4, p=3, d=2)
    offsets = np.arange(5) * 6
    evidence = prepare(R, offsets, missing="ignore", scores="rank")
    X = X - query_means(X, offsets)
    model = CommonPermutation(
        evidence,
        X,
        divergence=divergence,
        feature_divergence=divergence,
        cap=1.0,
        ridge=0.1,
        l1=0.05,
    )
    t = rearranged(model.s, borda_means(evidence), offsets)
    slopes = model._slopes(t, np.zeros(3))

    def cost(b):
        return (model._misfit(t, b) * model.entries).sum()

    found = minimize(cost, np.full(3, 0.3), bounds=[(0, None)] * 3, tol=1e-14)
    np.testing.assert_allclose(slopes, found.x, atol=1e-4)
    w, eta = model._weights(t, np.zeros(2))

    def feature_cost(w):
        return model._feature_misfit(t, w, X @ w)

    found = minimize(feature_cost, np.zeros(2), tol=1e-14)
    np.testing.assert_allclose(w, found.x, atol=1e-4)
    np.testing.assert_allclose(eta, X @ w)


# --- properties ---------------------------------------------------------------------------------

METHODS = [
    {}, {"signed": True}, {"posterior": "factorised"}, {"method": "permutation"},
    {"method": "permutation", "divergence": "logistic"},
]  # fmt: skip
each = pytest.mark.parametrize("options", METHODS, ids=str)


@each
def test_transforms_of_lists_and_scales_of_features_change_nothing(options):
    X, R, _, qid = crowd(2, n=8, n_queries=4, bad=5, gone=0.2)
    model = rw.RetargetedAggregation(missing="ignore", max_iter=40, **options)
    base = quiet(model, X, R, qid=qid).scores_
    moved = np.exp(R / 3) * (1 + np.arange(20))
    np.testing.assert_allclose(quiet(model, X, moved, qid=qid).scores_, base, atol=1e-9)
    scaled = X * [1, -2, 30, 0.1, 5] + 7
    np.testing.assert_allclose(quiet(model, scaled, R, qid=qid).scores_, base, atol=1e-6)


@each
def test_permuting_items_queries_and_experts(options):
    X, R, _, qid = crowd(4, n=8, n_queries=4, bad=5, gone=0.2)
    model = rw.RetargetedAggregation(missing="ignore", max_iter=40, **options)
    base = quiet(model, X, R, qid=qid)
    scores, weights = base.scores_, base.expert_weights_
    rows = np.random.default_rng(0).permutation(len(X))
    moved = quiet(model, X[rows], R[rows], qid=qid[rows])
    np.testing.assert_allclose(moved.scores_, scores[rows], atol=1e-6)
    lists = np.random.default_rng(1).permutation(20)
    moved = quiet(model, X, R[:, lists], qid=qid)
    np.testing.assert_allclose(moved.expert_weights_, weights[lists], atol=1e-6)


@each
def test_lists_that_say_nothing_weigh_nothing(options):
    X, R, _, qid = crowd(5, n=8, n_queries=4, bad=5)
    base = quiet(rw.RetargetedAggregation(max_iter=40, **options), X, R, qid=qid).scores_
    more = np.column_stack([R, np.ones(len(R)), np.full(len(R), np.nan)])
    model = rw.RetargetedAggregation(missing="ignore", max_iter=40, **options)
    quiet(model, X, more, qid=qid)
    np.testing.assert_allclose(model.scores_, base, atol=1e-9)
    assert (model.expert_weights_[20:] == 0).all()


@each
def test_unanimous_lists_are_followed_and_weigh_the_same(options):
    X, _, truth, qid = crowd(6, n=8, n_queries=4, kind="useless")
    R = np.tile(truth[:, None], (1, 4))
    model = quiet(rw.RetargetedAggregation(max_iter=40, **options), X, R, qid=qid)
    assert tau(model.scores_, truth, qid) > 1 - 1e-12
    np.testing.assert_allclose(model.expert_weights_, model.expert_weights_[0], rtol=1e-9)


def test_repeating_the_queries_changes_no_order():
    X, R, _, qid = crowd(7, n=10, n_queries=5, bad=5)
    model = rw.RetargetedAggregation("permutation", start="borda")
    base = model.fit(X, R, qid=qid).scores_
    twice = model.fit(np.tile(X, (2, 1)), np.tile(R, (2, 1)), qid=np.append(qid, qid + 5)).scores_
    np.testing.assert_allclose(twice, np.append(base, base), atol=1e-9)


def test_negating_a_list_negates_its_loading():
    X, R, _, qid = crowd(8, n=12, n_queries=5, bad=4)
    start = borda_means(prepare(R, np.arange(6) * 12, missing="ignore", scores="rank"))
    model = rw.RetargetedAggregation(signed=True, start=start, tol=1e-11, max_iter=3000)
    base = quiet(model, X, R, qid=qid)
    scores, loadings = base.scores_, base.loadings_
    R[:, 7] *= -1
    turned = quiet(model, X, R, qid=qid)
    np.testing.assert_allclose(turned.scores_, scores, atol=2e-3)
    assert turned.loadings_[7] == pytest.approx(-loadings[7], abs=2e-3)


def test_bad_experts_are_found_and_useless_features_stay_out():
    X, R, truth, qid = crowd(9, n=20, n_queries=100, bad=15, kind="useless")
    model = rw.RetargetedAggregation().fit(X, R, qid=qid)
    assert model.keep_[:15].max() < 0.1
    assert model.keep_[15:].min() > 0.9
    assert tau(model.scores_, truth, qid) > tau(rw.borda(R, qid=qid), truth, qid) + 0.15
    assert model.unexplained_ > 0.98
    alone = rw.RetargetedAggregation().fit(None, R, qid=qid)
    np.testing.assert_allclose(model.scores_, alone.scores_, atol=0.1)


def test_features_keep_the_answer_when_experts_are_bad():
    gains = []
    for seed in range(3):
        X, R, truth, _ = crowd(seed, bad=15)
        model = quiet(rw.RetargetedAggregation(), X, R)
        alone = quiet(rw.RetargetedAggregation(), None, R)
        gains.append(tau(model.scores_, truth) - tau(alone.scores_, truth))
        assert tau(model.predict(X), truth) > tau(rw.borda(R), truth) + 0.2
    assert min(gains) > 0.05


def test_items_without_lists_are_scored_by_their_features():
    X, R, _, qid = crowd(10, n=10, n_queries=6)
    R[[3, 17, 44]] = np.nan
    model = rw.RetargetedAggregation(missing="last", posterior="factorised")
    quiet(model, X, R, qid=qid)
    np.testing.assert_allclose(
        model.scores_[[3, 17, 44]], model.candidates_["features"][[3, 17, 44]], atol=1e-12
    )
    np.testing.assert_allclose(model.variance_[[3, 17, 44]], model.unexplained_, rtol=1e-12)
    centred = model.predict(X) - query_means(model.predict(X), np.arange(7) * 10)
    np.testing.assert_allclose(model.candidates_["features"], centred, atol=1e-9)


def test_a_query_of_one_item_disturbs_no_order():
    X, R, _, qid = crowd(11, n=10, n_queries=6)
    base = quiet(rw.RetargetedAggregation(), X, R, qid=qid).scores_
    more = quiet(
        rw.RetargetedAggregation(),
        np.vstack([X, X[:1]]),
        np.vstack([R, R[:1]]),
        qid=np.append(qid, 9),
    ).scores_
    assert more[-1] == pytest.approx(0, abs=1e-12)
    assert tau(more[:-1], base, qid) > 0.99


@each
def test_new_queries_with_lists(options):
    X, R, truth, qid = crowd(12, n=10, n_queries=12, bad=8)
    old, new = qid < 8, qid >= 8
    model = rw.RetargetedAggregation(**options)
    quiet(model, X, R, qid=qid)
    np.testing.assert_allclose(model.aggregate(X, R, qid=qid), model.scores_, atol=1e-9)
    quiet(model, X[old], R[old], qid=qid[old])
    score = model.aggregate(X[new], R[new], qid=qid[new])
    assert tau(score, truth[new], qid[new]) > tau(
        rw.borda(R[new], qid=qid[new]), truth[new], qid[new]
    )


def test_no_signal_falls_back_to_borda_with_a_warning():
    rng = np.random.default_rng(0)
    R = np.array(list(itertools.permutations(range(4)))).T.astype(float)  # every order once
    with pytest.warns(UserWarning, match="nothing in common"):
        model = quiet(rw.RetargetedAggregation(tol=1e-12), rng.normal(size=(4, 1)), R)
    assert model.fallback_
    assert np.isfinite(model.scores_).all()


# --- known order --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["factor", "permutation"])
def test_known_labels_and_pairs_hold(method):
    X, R, truth, qid = crowd(13, n=12, n_queries=5, bad=15, kind="useless")
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.4, np.digitize(truth, [-0.7, 0.7]), np.nan)
    model = rw.RetargetedAggregation(method)
    base = tau(quiet(model, X, R, qid=qid).scores_, truth, qid)
    scores = quiet(model, X, R, qid=qid, y=y).scores_
    assert tau(scores, truth, qid) > base
    for i, j in itertools.product(range(60), repeat=2):
        if qid[i] == qid[j] and y[i] > y[j]:
            assert scores[i] > scores[j]
    pairs = rw.Pairs([0, 1, 2, 30], [1, 2, 3, 29])
    scores = quiet(model, X, R, qid=qid, pairs=pairs).scores_
    assert (scores[pairs.winner] > scores[pairs.loser]).all()


def test_labels_turn_an_answer_that_experts_turned_round():
    _X, R, truth, qid = crowd(14, n=15, n_queries=10, reverse=13, kind="useless")
    lost = quiet(rw.RetargetedAggregation(), None, R, qid=qid)
    assert tau(lost.scores_, truth, qid) < -0.3
    y = np.where(np.arange(150) % 5 < 2, np.digitize(truth, [-1, 0, 1]), np.nan)
    known = quiet(rw.RetargetedAggregation(signed=True), None, R, qid=qid, y=y)
    unlabelled = np.isnan(y)
    assert tau(known.scores_[unlabelled], truth[unlabelled], qid[unlabelled]) > 0.5


def test_projection_on_pairs_equals_a_general_solver():
    from rankwise._known_order import KnownOrder
    from rankwise.data import group_rows

    rng = np.random.default_rng(0)
    pairs = rw.Pairs([0, 1, 1, 4], [1, 2, 3, 0])
    known = KnownOrder.of("test", None, pairs, group_rows(np.zeros(5, int)))
    values, weight = rng.normal(size=5), rng.uniform(0.5, 2, 5)
    got = known.nearest(values, weight)
    cons = [
        {"type": "ineq", "fun": lambda v, w=w, k=k: v[w] - v[k]}
        for w, k in zip(pairs.winner, pairs.loser, strict=False)
    ]
    found = minimize(
        lambda v: (weight * (v - values) ** 2).sum(), np.zeros(5), constraints=cons, tol=1e-14
    )
    np.testing.assert_allclose(got, found.x, atol=1e-5)


# --- the features' side -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["factor", "permutation"])
def test_other_regressors(method):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 2))
    truth = np.abs(X[:, 0]) - np.abs(X[:, 1])  # nothing linear about it
    R = np.column_stack([truth + 3 * rng.normal(size=300) for _ in range(6)])
    line = tau(quiet(rw.RetargetedAggregation(method), X, R).predict(X), truth)
    assert abs(line) < 0.4
    for regressor in (
        DecisionTreeRegressor(min_samples_leaf=10, random_state=0),
        rw.Nystroem(30, gamma=1.0, random_state=0),
    ):
        model = rw.RetargetedAggregation(method, regressor=regressor, max_iter=30)
        quiet(model, X, R)
        assert tau(model.predict(X), truth) > 0.5
        assert tau(model.scores_, truth) > tau(rw.borda(R), truth)


def test_l1_discards_lists():
    X, R, _, qid = crowd(15, n=12, n_queries=5, bad=10)
    model = rw.RetargetedAggregation("permutation", l1=0.25).fit(X, R, qid=qid)
    assert (model.expert_weights_[:10] == 0).sum() >= 8
    assert (model.expert_weights_[10:] > 0).sum() >= 8
    plain = rw.RetargetedAggregation("permutation").fit(X, R, qid=qid)
    assert (plain.expert_weights_ > 0).sum() > (model.expert_weights_ > 0).sum()


@pytest.mark.parametrize("start", ["mc4", "comb_sum", lambda R, qid: np.nansum(R, axis=1)])
def test_any_aggregator_is_a_start(start):
    X, R, truth, qid = crowd(16, n=12, n_queries=5, bad=5)
    model = quiet(rw.RetargetedAggregation(start=start), X, R, qid=qid)
    assert model.start_ == (start if isinstance(start, str) else "given")
    assert tau(model.scores_, truth, qid) > tau(rw.borda(R, qid=qid), truth, qid)


def test_saving(tmp_path):
    X, R, _, qid = crowd(17, n=8, n_queries=4)
    for options in (
        {},
        {"method": "permutation"},
        {"regressor": rw.Nystroem(10, gamma=0.1, random_state=0)},
    ):
        model = quiet(rw.RetargetedAggregation(**options), X, R, qid=qid)
        rw.save(model, tmp_path / "model.rank")
        again = rw.load(tmp_path / "model.rank")
        assert np.array_equal(again.predict(X), model.predict(X))
        assert np.array_equal(again.aggregate(X, R, qid=qid), model.aggregate(X, R, qid=qid))


def test_the_picture_of_the_experts(tmp_path):
    X, R, _, qid = crowd(19, n=15, n_queries=10, bad=5, reverse=3)
    model = quiet(rw.RetargetedAggregation(signed=True), X, R, qid=qid)
    figure = rw.plot_experts(model, path=tmp_path / "experts.png")
    assert (tmp_path / "experts.png").stat().st_size > 1000
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == [f"list {j + 1}" for j in np.argsort(-model.expert_weights_, kind="stable")]
    assert set(labels[-3:]) == {"list 18", "list 19", "list 20"}
    with pytest.raises(ValueError, match="one name per list, got 1 for 20"):
        rw.plot_experts(model, names=["a"])


# --- the traps (what the published alternation does) ---------------------------------------------


def published(X, R, start, rounds=30, ridge=1e-3, margins=False, unit_norm=True):
    """The alternation as printed: rbar near R beta, zbar near X omega, in a common order."""
    n = len(R)
    R = (R - R.mean(axis=0)) / R.std(axis=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    z, zeros = start - start.mean(), []
    shift = np.arange(n) / n if margins else np.zeros(n)
    for _ in range(rounds):
        for A in (R, X):
            w = np.linalg.solve(A.T @ A + ridge * n * np.eye(A.shape[1]), A.T @ z)
            fit = A @ w
            order = np.lexsort((fit, z))
            new = np.empty(n)
            new[order] = rw.isotonic(fit[order] - shift) + shift
            new -= new.mean()
            zeros.append(((new - fit) ** 2).sum())
            z = new / max(np.sqrt((new**2).mean()), 1e-300) if unit_norm else new
    return z, zeros


def test_the_published_alternation_collapses_freezes_and_trusts_noise():
    X, R, truth, _ = crowd(0, kind="useless")
    start = rw.borda(R)
    z, costs = published(X, R, start / start.std(), unit_norm=False, ridge=0.05)
    assert np.std(z) < 1e-3  # no scale: everything shrinks to a constant
    assert costs[-1] < 1e-3 * costs[0]
    z, _ = published(X, R, start, margins=True, unit_norm=False)
    strict = start[:, None] > start  # margins everywhere: nothing moves
    assert (z[:, None] > z)[strict].all()
    taus = []
    for seed in range(3):
        X, R, truth, _ = crowd(seed, kind="useless")
        taus.append((tau(published(X, R, rw.borda(R))[0], truth), tau(rw.borda(R), truth)))
    assert np.mean([a - b for a, b in taus]) < -0.05  # useless features decide


def test_without_a_smallest_noise_copies_drive_it_to_zero():
    X, R, _, _ = crowd(1, p=4)
    R = np.column_stack([R, R[:, 0]])
    model = quiet(rw.RetargetedAggregation(min_noise=1e-9, max_iter=300), X, R)
    assert model.noise_[[0, 4]].max() < 1e-3
    assert quiet(rw.RetargetedAggregation(), X, R).noise_.min() >= 0.5


# --- bad input ----------------------------------------------------------------------------------

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (ValueError, "missing must say", lambda m: m().fit([[1.0], [2]], [[1, NAN], [2, 1]])),
        (ValueError, "R must be finite or NaN", lambda m: m().fit([[1.0], [2]], [[1, INF], [2, 1]])),
        (ValueError, "R must be two-dimensional", lambda m: m().fit([[1.0], [2]], [1, 2])),
        (ValueError, "R must be two-dimensional", lambda m: m().fit(None, np.zeros((0, 3)))),
        (TypeError, "R must be numbers", lambda m: m().fit(None, [["a"], ["b"]])),
        (ValueError, "some list must order", lambda m: m().fit([[1.0], [2]], [[1, 3], [1, 3]])),
        (ValueError, "one row per item", lambda m: m().fit([[1.0]], [[1], [2]])),
        (ValueError, "qid must have one entry", lambda m: m().fit(None, [[1], [2]], qid=[1])),
        (ValueError, "all of its features or none",
         lambda m: m().fit([[1.0, NAN], [2, 1]], [[1], [2]])),
        (ValueError, "some item must have features", lambda m: m().fit([[NAN], [NAN]], [[1], [2]])),
        (ValueError, "must not hold infinity", lambda m: m().fit([[INF], [1]], [[1], [2]])),
        (ValueError, "method must be one of", lambda m: m("em").fit(None, [[1], [2]])),
        (ValueError, "l1 needs method", lambda m: m(l1=0.1).fit(None, [[1], [2]])),
        (ValueError, "signed=True needs", lambda m: m("permutation", signed=True).fit(None, [[1], [2]])),
        (ValueError, "start must be one of", lambda m: m(start="nobody").fit(None, [[1], [2]])),
        (ValueError, "start must hold one score", lambda m: m(start=[1.0]).fit(None, [[1], [2]])),
        (TypeError, "got y and pairs",
         lambda m: m().fit(None, [[1], [2]], y=[1, 0], pairs=rw.Pairs([0], [1]))),
        (ValueError, "must not contradict",
         lambda m: m().fit(None, [[1], [2]], pairs=rw.Pairs([0, 1], [1, 0]))),
        (TypeError, "regressor must be", lambda m: m(regressor=3).fit([[1.0], [2]], [[1], [2]])),
        (ValueError, "needs a model fitted with features",
         lambda m: m("permutation").fit(None, [[1], [2]]).predict([[1.0]])),
        (ValueError, "must have the 1 lists of fit",
         lambda m: m("permutation").fit(None, [[1], [2]]).aggregate(None, [[1, 2], [2, 1]])),
    ],
)  # fmt: skip
def test_bad_input_is_refused(error, words, call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.raises(error, match=words):
            call(rw.RetargetedAggregation)


def test_rows_without_features_and_one_list():
    X, R, _truth, qid = crowd(18, n=10, n_queries=6)
    X[[2, 30]] = np.nan
    model = quiet(rw.RetargetedAggregation(), X, R, qid=qid)
    assert np.isfinite(model.scores_).all()
    assert model.predict(X)[2] == pytest.approx(np.nanmean(X, axis=0) @ model.coef_)
    for method in ("factor", "permutation"):
        one = quiet(rw.RetargetedAggregation(method), None, R[:, :1], qid=qid)
        assert tau(one.scores_, R[:, 0], qid) > 1 - 1e-12
