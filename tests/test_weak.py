"""RankBoost, AdaRank and coordinate ascent: golden cases, brute force over pairs and orders."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise import _core
from rankwise.ascent import _Lines
from rankwise.boosting import _Bins, _thresholds
from rankwise.metrics import AP, ERR, NDCG, RR, parse_metric


def lists(
    n_queries=15,
    seed=0,
    *,
    n_features=3,
    levels=3,
    values=6,
    missing=0.0,
    weighted=False,
    noise=0.7,
):
    """Short lists with few distinct values, so that ties are everywhere."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, n_queries)
    n = sizes.sum()
    X = rng.integers(0, values, (n, n_features)).astype(float)
    y = np.clip(np.round(2 * X[:, 0] / values + rng.normal(0, noise, n)), 0, levels - 1)
    X[rng.random(X.shape) < missing] = np.nan
    weight = rng.uniform(0, 2, n) * (rng.random(n) < 0.9) if weighted else None
    qid = np.repeat(np.arange(n_queries), sizes)
    return rw.Queries.from_arrays(X, y, qid, weight=weight)


def pairs_of(queries):
    """(winner, loser, weight of the winner) of every pair, one by one."""
    found = []
    for a, b in itertools.pairwise(queries.offsets):
        for i, j in itertools.permutations(range(a, b), 2):
            if queries.y[i] > queries.y[j]:
                found.append((i, j, 1.0 if queries.weight is None else queries.weight[i]))
    return (
        np.array([p[0] for p in found]),
        np.array([p[1] for p in found]),
        np.array([p[2] for p in found]),
    )


# --- RankBoost: the sums -----------------------------------------------------------------------


@given(
    seed=st.integers(0, 10_000),
    spread=st.sampled_from([0.0, 1.0, 40.0, 600.0]),
    weighted=st.booleans(),
)
@settings(max_examples=60)
def test_potentials_equal_sums_over_pairs(seed, spread, weighted):
    queries = lists(seed=seed, weighted=weighted)
    rng = np.random.default_rng(seed)
    # Winners above losers: exp(s_j - s_i) stays finite whatever the spread.
    s = queries.y * spread + rng.normal(0, 1, queries.n_docs)
    order = np.lexsort((queries.y, np.repeat(np.arange(len(queries)), queries.sizes)))
    weight = None if queries.weight is None else queries.weight[order]
    got, total = _core.pair_potentials(queries.y[order], s[order], queries.offsets, weight)
    i, j, w = pairs_of(queries)
    expected, by_query = np.zeros(queries.n_docs), np.zeros(len(queries))
    number = np.repeat(np.arange(len(queries)), queries.sizes)
    for winner, loser, pair in zip(i, j, w, strict=True):
        mass = pair * math.exp(s[loser] - s[winner])
        expected[winner] += mass
        expected[loser] -= mass
        by_query[number[winner]] += mass
    np.testing.assert_allclose(got, expected[order], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(total, by_query, rtol=1e-9, atol=1e-300)
    assert abs(got.sum()) <= 1e-9 * max(np.abs(got).sum(), 1)


def test_potentials_of_scores_too_far_apart_for_factors():
    y, s = np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0, 795.0, 800.0, 1600.0])
    got, total = _core.pair_potentials(y, s, np.array([0, 4]))
    # Between documents 1600 apart nothing is left; 800 and 795 apart still underflow to about 0.
    np.testing.assert_allclose(got, 0, atol=1e-300)
    assert total[0] == pytest.approx(0, abs=1e-300)
    s[1:] = [795.0, 5.0, 1600.0]
    got, total = _core.pair_potentials(y, s, np.array([0, 4]))
    assert total[0] == pytest.approx(math.exp(-5), rel=1e-12)
    np.testing.assert_allclose(got, np.array([-1, 0, 1, 0]) * math.exp(-5), rtol=1e-12, atol=1e-300)


def test_unjudged_documents_are_in_no_pair():
    y, s = np.array([0.0, 1.0, np.nan]), np.array([0.3, 0.1, 9.0])
    got, total = _core.pair_potentials(y, s, np.array([0, 3]))
    np.testing.assert_allclose(got, np.array([-1, 1, 0]) * math.exp(0.2))
    assert total[0] == pytest.approx(math.exp(0.2))


def best_by_brute_force(X, thresholds, potential):
    """|r| of every feature, threshold and side, from the definition."""
    found = []
    for f in range(X.shape[1]):
        gone = np.isnan(X[:, f])
        for t, threshold in enumerate([*thresholds[f], np.inf]):
            for missing in (False, True):
                answer = np.where(gone, missing, X[:, f] > threshold)
                found.append((f, t, missing, float((potential * answer).sum())))
    return found


@given(
    seed=st.integers(0, 10_000),
    missing=st.sampled_from([0.0, 0.3]),
    max_bin=st.sampled_from([2, 255, 300]),
)
@settings(max_examples=60)
def test_best_stump_is_the_best(seed, missing, max_bin):
    queries = lists(seed=seed, missing=missing)
    potential = np.random.default_rng(seed).normal(0, 1, queries.n_docs)
    bins = _Bins(queries.X, max_bin, None)
    assert bins.bins.dtype == (np.uint8 if max_bin < 255 else np.uint16)
    f, t, side, gain = bins.best_stump(potential, 1)
    every = best_by_brute_force(queries.X, bins.thresholds, potential)
    assert abs(gain) == pytest.approx(max(abs(e[3]) for e in every), rel=1e-12)
    assert gain == pytest.approx(next(e[3] for e in every if e[:3] == (f, t, side)), rel=1e-12)
    np.testing.assert_array_equal(
        bins.answers(f, t, side),
        np.where(np.isnan(queries.X[:, f]), side, queries.X[:, f] > bins.value(f, t)),
    )
    assert bins.best_stump(potential, 2) == (f, t, side, gain)


def test_equal_stumps_take_the_first():
    X = np.array([[1.0, 1.0], [2.0, 2.0]])
    bins = _Bins(X, 10, None)
    assert bins.best_stump(np.array([-1.0, 1.0]), 1) == (0, 0, False, 1.0)


def test_thresholds_lie_between_neighbouring_values():
    column = np.array([3.0, 1.0, np.nan, 1.0, 7.0])
    np.testing.assert_array_equal(_thresholds(column, 10), [2.0, 5.0])
    assert len(_thresholds(column, 1)) == 1
    assert len(_thresholds(np.full(4, 2.0), 10)) == 0
    close = np.array([1.0, np.nextafter(1.0, 2)])
    np.testing.assert_array_equal(_thresholds(close, 10), [1.0])
    huge = np.array([-1.7e308, 1.7e308])
    np.testing.assert_array_equal(_thresholds(huge, 10), [0.0])
    many = np.random.default_rng(0).normal(0, 1, 10_000)
    cuts = _thresholds(many, 99)
    assert len(cuts) == 99
    assert np.abs(np.histogram(many, np.r_[-9, cuts, 9])[0] - 100).max() <= 1


# --- RankBoost: the estimator ------------------------------------------------------------------


def slow_rankboost(queries, rounds):
    """The paper's algorithm with a weight for every pair; thresholds at midpoints."""
    i, j, w = pairs_of(queries)
    D = w / w.sum()
    scores, losses = np.zeros(queries.n_docs), [1.0]
    cuts = [_thresholds(queries.X[:, f], 10_000) for f in range(queries.X.shape[1])]
    for _ in range(rounds):
        best, chosen = 0.0, None
        for f, thresholds in enumerate(cuts):
            for threshold in thresholds:
                h = (queries.X[:, f] > threshold).astype(float)
                r = float((D * (h[i] - h[j])).sum())
                if abs(r) > abs(best) + 1e-12:
                    best, chosen = r, h
        alpha = 0.5 * math.log((1 + best) / (1 - best))
        scores += alpha * chosen
        D = D * np.exp(-alpha * (chosen[i] - chosen[j]))
        losses.append(losses[-1] * D.sum())
        D /= D.sum()
    return scores, losses


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equals_boosting_with_every_pair(seed, weighted):
    queries = lists(30, seed, weighted=weighted)
    model = rw.RankBoost(n_estimators=15).fit(queries)
    scores, losses = slow_rankboost(queries, 15)
    got = model.predict(queries)
    np.testing.assert_allclose(got - got[0], scores - scores[0], atol=1e-9)
    np.testing.assert_allclose(model.losses_, losses, rtol=1e-9)


def test_golden_rounds_by_hand():
    # Labels 1 1 0 0, one query; feature 0 orders three of the four pairs.
    X = np.array([[4.0, 1.0], [2.0, 0.0], [3.0, 0.0], [1.0, 0.0]])
    y = [1, 1, 0, 0]
    model = rw.RankBoost(n_estimators=2).fit(X, y, qid=[0] * 4)
    # Round 1: thresholds 1.5 and 3.5 on feature 0 and 0.5 on feature 1 all have r = 1/2.
    assert (model.features_[0], model.thresholds_[0]) == (0, 1.5)
    assert model.alphas_[0] == pytest.approx(math.log(3) / 2)
    # The document with 1 loses to both: their two pairs shrink by sqrt 3, the two others stay.
    #   Z = (2 + 2 / sqrt 3) / 4
    assert model.losses_[1] == pytest.approx((2 + 2 / math.sqrt(3)) / 4)
    # Round 2: D = (1, 1, g, g) / (2 + 2 g), g = 1 / sqrt 3, on pairs (4,3), (2,3), (4,1), (2,1);
    # above 3.5: r = (1 + g) / (2 + 2 g) = 1/2.
    assert model.thresholds_[1] == 3.5
    assert model.alphas_[1] == pytest.approx(math.log(3) / 2)
    a = math.log(3) / 2
    np.testing.assert_allclose(model.predict(X), [2 * a, a, a, 0])


def test_loss_falls_by_the_bound_and_bounds_the_errors():
    queries = rw.make_queries(n_queries=40)
    model = rw.RankBoost(n_estimators=40).fit(queries)
    factor = model.losses_[1:] / model.losses_[:-1]
    r = np.tanh(model.alphas_)
    assert (factor <= np.sqrt(1 - r**2) + 1e-12).all()
    i, j, _ = pairs_of(queries)
    s = model.predict(queries)
    assert model.losses_[-1] == pytest.approx(np.exp(s[j] - s[i]).mean(), rel=1e-9)
    assert (s[j] >= s[i]).mean() <= model.losses_[-1]


def test_perfect_feature_ends_boosting():
    X, y = [[3.0, 0.0], [2.0, 5.0], [1.0, 5.0]], [1, 1, 0]
    model = rw.RankBoost().fit(X, y, qid=[0] * 3)
    assert model.n_estimators_ == 1
    assert model.thresholds_[0] == 1.5
    assert np.isfinite(model.alphas_).all()


def test_missing_values_take_the_better_side():
    nan = np.nan
    y, qid = [1, 0, 1, 0], [0, 0, 1, 1]
    high = rw.RankBoost(n_estimators=1).fit([[nan], [1.0], [nan], [2.0]], y, qid=qid)
    assert high.missing_[0]
    assert high.alphas_[0] > 0
    low = rw.RankBoost(n_estimators=1).fit([[1.0], [nan], [2.0], [nan]], y, qid=qid)
    s = low.predict([[1.5], [nan]])
    assert s[0] > s[1]
    none = rw.RankBoost(n_estimators=1).fit([[2.0], [1.0], [2.0], [1.0]], y, qid=qid)
    s = none.predict([[nan], [1.0], [2.0]])
    assert s[0] == s[1] < s[2]  # as a small value, where training had none missing


def test_steps_sum_to_the_score():
    queries = lists(40, missing=0.2)
    model = rw.RankBoost(n_estimators=30).fit(queries)
    total = np.zeros(queries.n_docs)
    for f in range(3):
        thresholds, values, missing = model.steps(f)
        assert len(values) == len(thresholds) + 1
        assert (np.diff(thresholds) > 0).all()
        x = queries.X[:, f]
        place = (x[:, None] > thresholds).sum(axis=1)
        total += np.where(np.isnan(x), missing, values[place])
    np.testing.assert_allclose(model.predict(queries), total, rtol=1e-12)
    by_round = sum(
        a * np.where(np.isnan(queries.X[:, f]), m, queries.X[:, f] > t)
        for f, t, m, a in zip(
            model.features_, model.thresholds_, model.missing_, model.alphas_, strict=True
        )
    )
    np.testing.assert_allclose(model.predict(queries), by_round, rtol=1e-9, atol=1e-12)


def test_rankboost_validation_and_threads():
    train, valid = rw.make_queries(n_queries=80).split([0.5, 0.5])
    full = rw.RankBoost(n_estimators=60, n_jobs=1).fit(train, eval_set=valid)
    assert len(full.validation_scores_) == 60
    assert full.n_estimators_ == np.argmax(full.validation_scores_) + 1
    best = full.validation_scores_.max()
    assert full.score(valid) == pytest.approx(best, rel=1e-9)
    early = rw.RankBoost(n_estimators=60, early_stopping_rounds=3, n_jobs=2)
    early.fit(train, eval_set=valid)
    n = len(early.validation_scores_)
    assert n < 60
    assert n - early.n_estimators_ == 3
    np.testing.assert_array_equal(early.validation_scores_, full.validation_scores_[:n])
    assert (early.alphas_ == full.alphas_[: early.n_estimators_]).all()


def test_frank_is_a_sum_of_thresholds_on_single_features():
    queries = rw.make_queries(n_queries=40)
    model = rw.make_ranker("frank(n_estimators=30)").fit(queries)
    assert str(model.loss) == "fidelity"
    assert model.split_counts_.sum() == model.n_estimators_
    X = queries.X[:40].copy()
    base = model.predict(X)
    # Additive: two features moved together change the score by the sum of what each changes.
    moved = [X.copy() for _ in range(3)]
    moved[0][:, 0] += 1.3
    moved[1][:, 1] -= 0.8
    moved[2][:, 0] += 1.3
    moved[2][:, 1] -= 0.8
    one, two, both = (model.predict(m) - base for m in moved)
    np.testing.assert_allclose(both, one + two, atol=1e-12)


# --- AdaRank -----------------------------------------------------------------------------------


def slow_adarank(queries, metric, rounds, *, never=False):
    E = np.array([metric.per_query(queries.y, x, qid=queries.groups) for x in queries.X.T])
    kept = ~np.isnan(E[0])
    P = np.full(kept.sum(), 1 / kept.sum())
    chosen, s = [], np.zeros(queries.n_docs)
    for _ in range(rounds):
        mean = (E[:, kept] * P).sum(axis=1)
        barred = [f for f, _ in chosen] if never else [f for f, _ in chosen[-1:]]
        mean[barred] = -np.inf
        f = int(np.argmax(mean))
        up, down = (P * (1 + E[f, kept])).sum(), (P * (1 - E[f, kept])).sum()
        chosen.append((f, 0.5 * math.log(up / down)))
        s = s + chosen[-1][1] * queries.X[:, f]
        now = metric.per_query(queries.y, s, qid=queries.groups)[kept]
        P = np.exp(-now) / np.exp(-now).sum()
    return chosen


@pytest.mark.parametrize("metric", [AP, NDCG @ 3, RR, ERR])
def test_adarank_equals_the_paper_step_by_step(metric):
    queries = lists(40, 3, n_features=5, values=50, noise=1.5)
    model = rw.AdaRank(metric, n_estimators=6, patience=99).fit(queries)
    expected = slow_adarank(queries, metric, 6)[: model.n_estimators_]
    assert model.features_.tolist() == [f for f, _ in expected]
    np.testing.assert_allclose(model.alphas_, [a for _, a in expected], rtol=1e-12)
    assert (
        model.n_queries_
        == (~np.isnan(metric.per_query(queries.y, queries.y, qid=queries.groups))).sum()
    )


def test_adarank_golden_round():
    # Two queries of two documents, one relevant each; RR of feature 0 is 1 and 1/2, of feature 1
    # 1/2 and 1/2. Mean 3/4: alpha = ln(1.75 / .25) / 2 = ln(7) / 2.
    X = [[2.0, 0.0], [1.0, 1.0], [1.0, 0.0], [2.0, 1.0]]
    model = rw.AdaRank("rr", n_estimators=1).fit(X, [1, 0, 1, 0], qid=[0, 0, 1, 1])
    assert model.features_.tolist() == [0]
    assert model.alphas_[0] == pytest.approx(math.log(7) / 2)
    np.testing.assert_allclose(model.coef_, [math.log(7) / 2, 0])
    assert model.train_scores_[0] == pytest.approx(0.75)


def test_adarank_repeats():
    queries = lists(40, 3, n_features=4, values=50)
    kept = {
        r: rw.AdaRank("ap", repeats=r, n_estimators=12, patience=99, tol=0).fit(
            queries, eval_set=queries
        )
        for r in ("any", "apart", "never")
    }
    assert len(kept["never"].validation_scores_) == 4
    assert len(kept["any"].validation_scores_) == 12
    never = kept["never"].features_.tolist()
    assert len(set(never)) == len(never)
    apart = kept["apart"].features_
    assert (apart[1:] != apart[:-1]).all()


def test_adarank_directions():
    X, y, qid = [[1.0], [2.0], [1.0], [2.0]], [1, 0, 1, 0], [0, 0, 1, 1]
    assert rw.AdaRank("rr").fit(X, y, qid=qid).score(X, y, qid=qid) < 1
    both = rw.AdaRank("rr", directions="both").fit(X, y, qid=qid)
    assert both.coef_[0] < 0
    assert both.score(X, y, qid=qid) == 1


def test_adarank_query_weights():
    # The feature that serves the heavy query wins.
    X = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    y, qid = [1, 0, 1, 0], [0, 0, 1, 1]
    first = rw.AdaRank("rr", n_estimators=1)
    assert first.fit(X, y, qid=qid, sample_weight=[3, 3, 1, 1]).features_[0] == 0
    assert first.fit(X, y, qid=qid, sample_weight=[1, 1, 3, 3]).features_[0] == 1
    assert first.alphas_[0] == pytest.approx(np.arctanh(0.75 + 0.25 / 2))


def test_adarank_stops_and_keeps_progress():
    queries = rw.make_queries(n_queries=60)
    model = rw.AdaRank("ap", patience=3).fit(queries)
    assert model.n_estimators_ == len(model.train_scores_) == np.argmax(model.train_scores_) + 1
    watched = rw.AdaRank("ap", patience=9, early_stopping_rounds=2).fit(queries, eval_set=queries)
    assert watched.n_estimators_ == np.argmax(watched.validation_scores_) + 1


# --- coordinate ascent: the line ---------------------------------------------------------------


LINE_METRICS = ["ndcg", "ndcg@3", "ap", "ap@2", "rr", "err", "precision@3", "rbp", "wta", "bpref",
                "pairwise_accuracy", "auc", "mean_ndcg", "r_precision", "ndcg(ties=stable)@2",
                "ap(ties=worst)", "ndcg(ties=best)", "recall@2", "dcg@2", "tau_b"]  # fmt: skip


def on_a_line(seed, values, metric):
    queries = lists(8, seed, values=values)
    lines = _Lines("test", queries, parse_metric(metric), None, 1)
    rng = np.random.default_rng(seed + 1)
    scores = np.round(rng.normal(0, 2, queries.n_docs), 1 if values < 50 else 9)
    return queries, lines, scores


@pytest.mark.parametrize("metric", LINE_METRICS)
@given(seed=st.integers(0, 10_000), values=st.sampled_from([2, 6, 1000]))
@settings(max_examples=12)
def test_stretches_hold_the_metric_everywhere(metric, seed, values):
    queries, lines, scores = on_a_line(seed, values, metric)
    j = int(lines.useful[0])
    column = lines.columns[j]
    middle, width, value = lines.stretches(scores, j)
    wide = width > 1e-9
    direct = np.array([lines.value(scores + t * column) for t in middle[wide]])
    np.testing.assert_allclose(value[wide], direct, atol=1e-10)
    # No change is missed: any other t agrees with the stretch it falls into.
    at = _core.metric_breaks(*lines.asked, scores, column, queries.offsets, lines.target.weight)[0]
    for t in np.random.default_rng(seed).normal(0, 3, 20):
        if len(at) == 0 or np.abs(at - t).min() > 1e-9:
            k = int(np.searchsorted(at, t))
            assert value[k] == pytest.approx(lines.value(scores + t * column), abs=1e-10)


@pytest.mark.parametrize("metric", LINE_METRICS)
def test_steps_equal_the_metric(metric):
    _, lines, scores = on_a_line(5, 6, metric)
    steps = np.array([0.0, -1.5, 0.25, 2.0])
    for j in lines.useful:
        direct = [lines.value(scores + t * lines.columns[int(j)]) for t in steps]
        np.testing.assert_allclose(lines.at(scores, int(j), steps), direct, rtol=1e-13)


def test_exact_line_by_hand():
    # s = 0, 1; x = 2, 0: document 0 (relevant) passes at t = 1/2. RR: 1/2 before, 1 after.
    at, change, first = _core.metric_breaks(
        *_Lines(
            "test", rw.Queries.from_arrays([[2.0], [0.0]], [1, 0], [0, 0]), RR, None, 1
        ).asked,
        np.array([0.0, 1.0]), np.array([2.0, 0.0]), np.array([0, 2]), np.array([1.0]),
    )  # fmt: skip
    assert (at.tolist(), change.tolist(), first.tolist()) == ([0.5], [0.5], [0.5])


# --- coordinate ascent: the estimator ----------------------------------------------------------


@pytest.mark.parametrize("search", ["exact", "steps"])
def test_no_coordinate_improves_what_ascent_returns(search):
    queries = rw.make_queries(n_queries=30)
    model = rw.CoordinateAscent("ap", search=search, tol=0, n_restarts=1, random_state=0)
    model.fit(queries)
    canonical = rw.data.canonical(queries)
    lines = _Lines("test", canonical, AP, "std", 1)
    w = np.divide(model.coef_, lines.inverse, out=np.zeros(lines.d), where=lines.inverse > 0)
    assert np.abs(w).sum() == pytest.approx(1)
    scores = lines.scores(w)
    assert lines.value(scores) == pytest.approx(model.objective_, abs=1e-12)
    assert (np.diff(model.train_scores_) >= 0).all()
    if search == "exact":
        for j in lines.useful:
            _, width, value = lines.stretches(scores, int(j))
            assert value[width > 1e-6].max() <= model.objective_ + 1e-9


def test_exact_reaches_the_best_of_a_plane():
    # Two features: every direction of the plane can be tried.
    queries = lists(12, 4, n_features=2, values=1000)
    model = rw.CoordinateAscent(
        "ap", search="exact", scale=None, tol=0, n_restarts=8, random_state=0
    ).fit(queries)
    angles = np.linspace(0, 2 * np.pi, 20_001)
    best = max(
        AP.mean(queries.y, queries.X @ [np.cos(a), np.sin(a)], qid=queries.groups)
        for a in angles[::20]
    )
    assert model.objective_ >= best - 1e-12


def test_steps_are_ranklibs():
    """All weights tried from 1/2: 0, and 1/2 + .025 (2^k - 1) up and down."""
    from rankwise.ascent import _by_steps

    class Seen:
        def at(self, scores, j, steps):
            self.steps = steps
            return np.zeros(len(steps))

    seen = Seen()
    _by_steps(seen, None, np.array([0.5, 0.5]), 0, 1.0, lambda w: 0.0, 3)
    np.testing.assert_allclose(
        seen.steps, [-0.5, 0.025, 0.075, 0.175, -0.025, -0.075, -0.175], rtol=1e-12
    )


def test_penalty_pulls_to_equal_weights():
    queries = rw.make_queries(n_queries=40)
    near, far = (
        rw.CoordinateAscent("ap", alpha=a, random_state=0, scale=None, n_restarts=1).fit(queries)
        for a in (10.0, 0.0)
    )
    d = np.count_nonzero(near.coef_)
    assert np.ptp(near.coef_[near.coef_ != 0]) == pytest.approx(0, abs=1e-12)
    assert near.coef_[0] == pytest.approx(1 / d)
    assert far.objective_ > near.objective_


def test_validation_chooses_the_pass():
    train, valid = rw.make_queries(n_queries=100).split([0.3, 0.7])
    model = rw.CoordinateAscent("ap", metric="ap", n_restarts=3, tol=0, random_state=1)
    model.fit(train, eval_set=valid)
    assert model.n_iter_ == np.argmax(model.validation_scores_) + 1
    assert model.score(valid) == pytest.approx(model.restart_scores_.max(), abs=1e-12)
    assert len(model.restart_scores_) == 3
    early = rw.CoordinateAscent(
        "ap", metric="ap", n_restarts=1, tol=0, random_state=1, early_stopping_rounds=1
    ).fit(train, eval_set=valid)
    assert len(early.validation_scores_) - early.n_iter_ <= 1


def test_seeds_threads_and_constant_features():
    queries = rw.make_queries(n_queries=40)
    fits = [
        rw.CoordinateAscent(n_restarts=2, random_state=s, n_jobs=n).fit(queries).coef_
        for s, n in ((3, 1), (3, 2), (4, 1))
    ]
    assert (fits[0] == fits[1]).all()
    assert not (fits[0] == fits[2]).all()
    assert fits[0][5] == 0  # constant inside a query


# --- what is refused ---------------------------------------------------------------------------


ONE_LABEL = ([[1.0], [2.0]], [0, 0], [0, 0])
GOOD = ([[1.0], [2.0]], [0, 1], [0, 0])


@pytest.mark.parametrize(
    ("ranker", "data", "words"),
    [
        (rw.RankBoost(), ONE_LABEL, "documents with different labels"),
        (rw.RankBoost(n_estimators=0), GOOD, "n_estimators must be an integer of at least 1"),
        (rw.RankBoost(max_bin=70_000), GOOD, "max_bin must be .* at most 65000"),
        (rw.RankBoost(early_stopping_rounds=3), GOOD, "needs validation queries"),
        (rw.RankBoost(), ([[1.0], [1.0]], [0, 1], [0, 0]), "better than chance"),
        (rw.AdaRank("ap"), ONE_LABEL, "a value of ap .* different labels"),
        (rw.AdaRank("dcg"), GOOD, "values between -1 and 1"),
        (rw.AdaRank(repeats=3), GOOD, "repeats must be one of"),
        (rw.AdaRank(patience=0), GOOD, "patience must be an integer of at least 1"),
        (rw.AdaRank("nope"), GOOD, "unknown metric"),
        (rw.AdaRank(), ([[np.nan], [1.0]], [0, 1], [0, 0]), "must not hold NaN"),
        (rw.CoordinateAscent(), ONE_LABEL, "a value of ndcg@10 .* different labels"),
        (rw.CoordinateAscent(search="line"), GOOD, "search must be one of"),
        (rw.CoordinateAscent(alpha=-1), GOOD, "alpha must be a number of at least 0"),
        (rw.CoordinateAscent(), ([[1.0], [1.0]], [0, 1], [0, 0]), "differ inside some query"),
        (rw.CoordinateAscent(early_stopping_rounds=1), GOOD, "needs validation queries"),
    ],
)
def test_sentences(ranker, data, words):
    X, y, qid = data
    if words == "values between -1 and 1":
        y = [0, 3]
    with pytest.raises(ValueError, match=words):
        ranker.fit(X, y, qid=qid)


def test_kernels_refuse_what_does_not_fit():
    offsets = np.array([0, 2])
    with pytest.raises(ValueError, match="score must have length 2"):
        _core.pair_potentials(np.zeros(2), np.zeros(3), offsets)
    with pytest.raises(TypeError):
        _core.pair_potentials(np.zeros(2, np.float32), np.zeros(2), offsets)
    bins, counts = np.array([[0, 9]], np.uint8), np.array([2])
    with pytest.raises(ValueError, match="a bin must be at most"):
        _core.best_stump(bins, counts, np.zeros(2))
    with pytest.raises(ValueError, match="potential must have length 2"):
        _core.best_stump(bins, counts, np.zeros(3))


def test_progress_is_shown_on_request(capsys):
    queries = rw.make_queries(n_queries=20)
    for ranker in (
        rw.RankBoost(n_estimators=2, verbose=True),
        rw.AdaRank("ap", n_estimators=2, verbose=True),
        rw.CoordinateAscent(n_restarts=1, max_iter=1, random_state=0, verbose=True),
    ):
        ranker.fit(queries)
    assert capsys.readouterr().out == ""


# --- real data ---------------------------------------------------------------------------------


@pytest.mark.letor
def test_rankboost_on_ohsumed_is_as_published(letor_data):
    parts = [
        rw.read_letor(letor_data / "letor3/OHSUMED/QueryLevelNorm" / f"Fold{i}-test.txt")
        for i in range(1, 6)
    ]
    train, valid, test = rw.concatenate(parts[1:4]), parts[4], parts[0]
    model = rw.RankBoost(metric="ap", n_estimators=300).fit(train, eval_set=valid)
    scores = model.predict(test)
    found = AP.mean(test.y, scores, qid=test.groups)
    stored = np.loadtxt(letor_data / "letor3/OHSUMED-system-scores/Fold1/RankBoost.txt")
    theirs = AP.mean(test.y, stored[:, -1] if stored.ndim > 1 else stored, qid=test.groups)
    assert found > theirs - 0.01
