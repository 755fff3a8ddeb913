"""Looking inside a ranker: every number again from its definition, on rankers of every kind."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwise as rw
from rankwise import insight, mistakes
from rankwise._metric import SPECS
from rankwise.metrics import METRICS, parse_metric
from rankwise.stats import t_interval


@pytest.fixture(scope="module")
def lists():
    return rw.make_queries(n_queries=40, n_docs=12)


@pytest.fixture(scope="module")
def linear(lists):
    return rw.LinearRanker("ranknet", metric="ndcg@5").fit(lists)


@pytest.fixture(scope="module")
def trees(lists):
    return rw.TreeRanker(n_estimators=15, num_leaves=6, n_jobs=1).fit(lists)


@pytest.fixture(scope="module")
def boosted(lists):
    return rw.RankBoost(n_estimators=40, n_jobs=1).fit(lists)


def shuffled(queries, rng):
    """Rows in another order, queries too; same documents."""
    rows = rng.permutation(queries.n_docs)
    return rw.Queries.from_arrays(
        queries.X[rows], queries.y[rows], queries.qid[rows], feature_names=queries.feature_names
    )


# --- permutation importance ----------------------------------------------------------------------


@pytest.mark.parametrize("within", ["query", "all"])
def test_importance_from_its_definition(lists, linear, within):
    found = rw.permutation_importance(linear, lists, within=within, n_repeats=4, rng=3)
    # The same shuffles, made here: keys for the rows in canonical order.
    rows = rw.data.canonical(lists)
    rng = np.random.default_rng(3)
    metric = parse_metric("ndcg@5")
    base = metric.per_query(rows.y, linear.predict(rows), qid=rows.groups)
    number = np.repeat(np.arange(len(rows)), rows.sizes)
    orders = []
    for _ in range(4):
        keys = rng.random(rows.n_docs)
        orders.append(np.lexsort((keys, number)) if within == "query" else np.argsort(keys))
    for name, columns, drop, interval, spread, per_query in zip(
        found.names, found.columns, found.drops, found.intervals, found.spreads, found.per_query,
        strict=True,
    ):  # fmt: skip
        (j,) = columns
        assert name == lists.feature_names[j]
        falls = []
        for order in orders:
            X = rows.X.copy()
            X[:, j] = X[order, j]
            falls.append(base - metric.per_query(rows.y, linear.predict(X), qid=rows.groups))
        assert drop == pytest.approx(np.nanmean(falls), abs=1e-14)
        assert spread == pytest.approx(np.nanmean(falls, axis=1).std(), abs=1e-14)
        expected = t_interval(np.mean(falls, axis=0))
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
        by_id = dict(zip(rows.ids.tolist(), np.mean(falls, axis=0), strict=True))
        np.testing.assert_allclose(per_query, [by_id[q] for q in lists.ids.tolist()], atol=1e-14)
    assert found.baseline == pytest.approx(np.nanmean(base))
    assert found.n_queries == (~np.isnan(base)).sum()
    assert (np.diff(found.drops) <= 0).all()


def test_shuffles_stay_inside_queries_or_do_not():
    number = np.repeat(np.arange(50), 4)
    rng = np.random.default_rng(0)
    inside = insight._shuffle(number, "query", rng)
    assert (number[inside] == number).all()
    assert (np.sort(inside) == np.arange(200)).all()
    assert (inside != np.arange(200)).any()
    over = insight._shuffle(number, "all", rng)
    assert (number[over] != number).mean() > 0.9
    assert (np.sort(over) == np.arange(200)).all()


def test_importance_does_not_depend_on_rows(lists, trees):
    one = rw.permutation_importance(trees, lists, n_repeats=2)
    other = shuffled(lists, np.random.default_rng(1))
    two = rw.permutation_importance(trees, other, n_repeats=2)
    assert one.names == two.names
    assert (one.drops == two.drops).all()
    place = {q: i for i, q in enumerate(other.ids.tolist())}
    back = [place[q] for q in lists.ids.tolist()]
    np.testing.assert_array_equal(one.per_query, two.per_query[:, back])


def test_feature_of_queries_matters_only_over_all(lists):
    """A ranker that multiplies by a feature of the query: shuffled inside, nothing changes."""

    class Product:
        metric = "ap"

        def predict(self, X):
            return X[:, 0] * np.sign(X[:, 5])

    inside = rw.permutation_importance(Product(), lists, n_repeats=2)
    over = rw.permutation_importance(Product(), lists, n_repeats=2, within="all")
    drop = [dict(zip(i.names, i.drops, strict=True))["x5"] for i in (inside, over)]
    assert drop[0] == 0
    assert drop[1] != 0


def test_importance_of_groups_and_of_some_features(lists, linear):
    every = rw.permutation_importance(linear, lists, n_repeats=3)
    some = rw.permutation_importance(linear, lists, n_repeats=3, features=["x1", 3])
    by_name = dict(zip(every.names, every.drops, strict=True))
    assert dict(zip(some.names, some.drops, strict=True)) == {n: by_name[n] for n in ("x1", "x3")}
    twins = rw.Queries.from_arrays(
        np.column_stack([lists.X[:, 0], lists.X[:, 0]]), lists.y, lists.qid
    )
    ranker = rw.LinearRanker().fit(twins)
    found = rw.permutation_importance(ranker, twins, n_repeats=3)
    both = rw.permutation_importance(ranker, twins, n_repeats=3, features={"both": [0, 1]})
    assert set(found.names) == {"feature 1", "feature 2"}
    assert both.names == ("both",)
    assert both.columns == ((0, 1),)
    assert both.drops[0] > found.drops.max()


def test_importance_of_sparse_features(lists):
    X = np.round(lists.X) * (np.abs(lists.X) > 0.5)
    dense = rw.Queries.from_arrays(X, lists.y, lists.qid)
    sparse = rw.Queries.from_arrays(sp.csr_matrix(X), lists.y, lists.qid)
    ranker = rw.LinearRanker().fit(dense)
    a, b = (rw.permutation_importance(ranker, q, n_repeats=2) for q in (dense, sparse))
    assert a.names == b.names
    np.testing.assert_allclose(a.drops, b.drops, atol=1e-12)


def test_any_predictor_with_a_metric_given(lists):
    model = make_pipeline(StandardScaler(), Ridge()).fit(lists.X, lists.y)
    found = rw.permutation_importance(model, lists, metric="ap", n_repeats=1)
    assert found.names[0] == "x0"
    with pytest.raises(ValueError, match="metric must be given, since Pipeline has none"):
        rw.permutation_importance(model, lists)


# --- contributions -----------------------------------------------------------------------------


def differences(values, queries):
    """Every document less the next one of its query."""
    same = np.repeat(np.arange(len(queries)), queries.sizes)
    keep = same[1:] == same[:-1]
    return (values[:-1] - values[1:])[keep]


@pytest.mark.parametrize("name", ["linear", "trees", "boosted"])
def test_contributions_sum_to_the_gaps(name, lists, request):
    ranker = request.getfixturevalue(name)
    found = rw.contributions(ranker, lists)
    assert found.method == {"linear": "linear", "trees": "shap", "boosted": "steps"}[name]
    assert found.exact
    gaps = differences(ranker.predict(lists), lists)
    np.testing.assert_allclose(differences(found.values.sum(axis=1), lists), gaps, atol=1e-10)


def test_linear_contributions(lists, linear):
    found = rw.contributions(linear, lists).values
    x = differences(lists.X, lists)
    np.testing.assert_allclose(differences(found, lists), x * linear.coef_, atol=1e-12)


def test_occlusion_from_its_definition(lists, trees):
    found = rw.contributions(trees, lists, method="occlusion")
    assert not found.exact
    for j in (0, 4):
        X = lists.X.copy()
        for a, b in itertools.pairwise(lists.offsets):
            X[a:b, j] = np.median(X[a:b, j])
        np.testing.assert_array_equal(found.values[:, j], trees.predict(lists) - trees.predict(X))
    assert rw.contributions(rw.FeatureRanker(0).fit(lists), lists).method == "occlusion"


def test_contributions_with_missing_values(lists):
    X = lists.X.copy()
    X[::5, 0] = np.nan
    queries = rw.Queries.from_arrays(X, lists.y, lists.qid)
    ranker = rw.RankBoost(n_estimators=30, n_jobs=1).fit(queries)
    gaps = differences(ranker.predict(queries), queries)
    sums = rw.contributions(ranker, queries).values.sum(axis=1)
    np.testing.assert_allclose(differences(sums, queries), gaps, atol=1e-10)
    assert np.isfinite(rw.contributions(ranker, queries, method="occlusion").values).all()


def test_method_must_fit(lists, linear):
    with pytest.raises(ValueError, match="method 'shap' must fit the ranker, got LinearRanker"):
        rw.contributions(linear, lists, method="shap")
    with pytest.raises(ValueError, match="method must be one of"):
        rw.contributions(linear, lists, method="magic")


# --- one query -----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["ndcg@5", "ap", "rr", "err", "pairwise_accuracy", "dcg"])
def test_costs_are_swaps_of_scores(lists, boosted, metric):
    """RankBoost's scores are tied often, so swaps cross blocks of ties."""
    measure = parse_metric(metric)
    q = int(np.nanargmin(measure.per_query(lists.y, boosted.predict(lists), qid=lists.groups)))
    found = rw.explain_query(boosted, lists, lists.ids[q], metric=metric, n_pairs=10_000)
    one = lists.take([q])
    s, y = boosted.predict(one), one.y
    expected = {}
    for i, k in itertools.permutations(range(len(y)), 2):
        if y[i] > y[k] and s[i] < s[k]:
            t = s.copy()
            t[i], t[k] = s[k], s[i]
            expected[i, k] = measure.per_query(y, t)[0] - measure.per_query(y, s)[0]
    assert {(p.better, p.worse) for p in found.pairs} == expected.keys()
    assert found.n_wrong == len(expected) > 0
    for p in found.pairs:
        assert p.cost == pytest.approx(expected[p.better, p.worse], abs=1e-14)
        assert p.gap == s[p.worse] - s[p.better] > 0
        assert (p.better_label, p.worse_label) == (y[p.better], y[p.worse])
    costs = [p.cost for p in found.pairs]
    assert costs == sorted(costs, reverse=True)
    assert found.value == measure.per_query(y, s)[0]
    assert found.n_wrong_by_doc.sum() == 2 * found.n_wrong
    assert found.costs.sum() == pytest.approx(2 * sum(costs))
    tied = sum(y[i] > y[k] and s[i] == s[k] for i, k in itertools.permutations(range(len(y)), 2))
    assert found.n_tied == tied


def test_listed_by_rank(lists, trees):
    found = rw.explain_query(trees, lists, lists.ids[3])
    one = lists.take([3])
    assert found.ranks.tolist() == list(range(1, 13))
    assert (np.diff(found.scores) <= 0).all()
    order = np.argsort(-trees.predict(one), kind="stable")
    np.testing.assert_array_equal(found.labels, one.y[order])
    for p in found.pairs:
        assert trees.rank(one)[p.better] == p.better_rank > p.worse_rank


@pytest.mark.parametrize("name", ["linear", "trees", "boosted"])
def test_pushes_and_rest_make_the_gap(name, lists, request):
    ranker = request.getfixturevalue(name)
    query = rw.worst_queries(ranker, lists, n=1).queries[0]
    full = rw.explain_query(ranker, lists, query, n_features=6)
    short = rw.explain_query(ranker, lists, query, n_features=2)
    assert full.pairs
    for a, b in zip(full.pairs, short.pairs, strict=True):
        assert (len(a.pushes), len(b.pushes)) == (6, 2)
        assert a.pushes[:2] == b.pushes
        assert a.rest == pytest.approx(0, abs=1e-9)
        assert sum(f.amount for f in b.pushes) + b.rest == pytest.approx(b.gap, abs=1e-9)
        sizes = [abs(f.amount) for f in a.pushes]
        assert sizes == sorted(sizes, reverse=True)
        one = lists.take([lists.ids.astype(str).tolist().index(query)])
        for f in a.pushes:
            assert (f.better_value, f.worse_value) == (
                one.X[a.better, f.column],
                one.X[a.worse, f.column],
            )


def test_linear_pushes_by_hand():
    lists = rw.Queries.from_arrays(
        [[1.0, 0.0], [0.0, 3.0]], [1, 0], ["q", "q"], docs=["good", "bad"]
    )
    ranker = rw.LinearRanker().fit(lists)
    ranker.coef_ = np.array([2.0, 1.0])
    found = rw.explain_query(ranker, lists, "q", metric="rr")
    (pair,) = found.pairs
    assert (pair.worse_doc, pair.better_doc, pair.gap, pair.cost) == ("bad", "good", 1.0, 0.5)
    assert [(f.column, f.amount) for f in pair.pushes] == [(1, 3.0), (0, -2.0)]
    text = str(found)
    assert "bad (label 0, rank 1) above good (label 1, rank 2): cost 0.5000, score gap 1" in text
    assert "+3  3 against 0" in text


def test_unjudged_and_empty_queries():
    lists = rw.Queries.from_arrays(
        [[3.0], [2.0], [1.0], [1.0], [2.0]], [np.nan, 0, 2, 0, 0], [1, 1, 1, 2, 2]
    )
    ranker = rw.FeatureRanker(0).fit(rw.Queries.from_arrays([[1.0], [2.0]], [0, 1], [0, 0]))
    found = rw.explain_query(ranker, lists, 1, metric="ap")
    assert (found.n_pairs, found.n_wrong) == (1, 1)
    assert "-" in str(found).splitlines()[2].split()
    empty = rw.explain_query(ranker, lists, 2, metric="ap")
    assert np.isnan(empty.value)
    assert empty.pairs == ()
    assert "ap no value, 2 documents, 0 of 0 pairs" in str(empty)
    worst = rw.worst_queries(ranker, lists, metric="ap")
    assert worst.queries == ("1",)
    assert worst.n_skipped == 1


def test_unknown_query(lists, linear):
    with pytest.raises(ValueError, match="query must be one of the 40 in the data, got 'nope'"):
        rw.explain_query(linear, lists, "nope")


def test_chunks_give_the_same(lists, trees, monkeypatch):
    query = rw.worst_queries(trees, lists, n=1).queries[0]
    before = rw.explain_query(trees, lists, query)
    monkeypatch.setattr(mistakes, "_CHUNK", 30)
    assert rw.explain_query(trees, lists, query).pairs == before.pairs


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_every_metric_explains(metric, lists, linear):
    options = "(ties='stable')" if SPECS[metric].ordered else ""
    found = rw.explain_query(linear, lists, lists.ids[0], metric=metric + options, n_pairs=2)
    assert json.dumps(found.as_dict())


# --- worst queries -------------------------------------------------------------------------------


def test_worst_queries_count_pairs(lists, boosted):
    found = rw.worst_queries(boosted, lists, metric="ap", n=40)
    s = boosted.predict(lists)
    values = parse_metric("ap").per_query(lists.y, s, qid=lists.groups)
    assert found.n_queries + found.n_skipped == 40
    assert len(found.queries) == (~np.isnan(values)).sum()
    assert (np.diff(found.values) >= 0).all()
    names = lists.ids.astype(str).tolist()
    for q, value, n, r, p, w in zip(
        found.queries, found.values, found.n_docs, found.n_relevant, found.n_pairs, found.n_wrong,
        strict=True,
    ):  # fmt: skip
        a, b = lists.offsets[names.index(q)], lists.offsets[names.index(q) + 1]
        pairs = [
            (i, k) for i, k in itertools.permutations(range(a, b), 2) if lists.y[i] > lists.y[k]
        ]
        wrong = sum((s[i] < s[k]) + (s[i] == s[k]) / 2 for i, k in pairs)
        assert (n, r, p, w) == (b - a, (lists.y[a:b] > 0).sum(), len(pairs), wrong)
        assert value == values[names.index(q)]


# --- partial dependence --------------------------------------------------------------------------


@pytest.mark.parametrize("centred", [True, False])
def test_dependence_from_its_definition(lists, trees, centred):
    found = rw.partial_dependence(trees, lists, "x1", centred=centred, n_points=7)
    assert found.column == 1
    base = trees.predict(lists)
    level = np.zeros(lists.n_docs)
    if centred:
        for a, b in itertools.pairwise(lists.offsets):
            level[a:b] = base[a:b].mean()
    for v, score, low, high in zip(found.values, found.scores, found.low, found.high, strict=True):
        X = lists.X.copy()
        X[:, 1] = v
        curve = trees.predict(X) - level
        assert score == pytest.approx(curve.mean(), abs=1e-12)
        assert (low, high) == pytest.approx(tuple(np.quantile(curve, [0.1, 0.9])), abs=1e-12)
    assert len(found.values) == 7
    assert (np.diff(found.values) > 0).all()
    assert set(found.values) <= set(lists.X[:, 1])


def test_dependence_of_a_linear_ranker_is_a_line(lists, linear):
    found = rw.partial_dependence(linear, lists, 0)
    slope = np.diff(found.scores) / np.diff(found.values)
    np.testing.assert_allclose(slope, linear.coef_[0], rtol=1e-9)


def test_dependence_of_rankboost_is_its_steps(lists, boosted):
    found = rw.partial_dependence(boosted, lists, 0)
    thresholds, values, _ = boosted.steps(0)
    expected = values[np.searchsorted(thresholds, found.values)]
    np.testing.assert_allclose(found.scores - found.scores[0], expected - expected[0], atol=1e-10)


def test_dependence_with_missing_values(lists):
    X = lists.X.copy()
    X[::4, 0] = np.nan
    queries = rw.Queries.from_arrays(X, lists.y, lists.qid)
    ranker = rw.TreeRanker(n_estimators=10, num_leaves=5, n_jobs=1).fit(queries)
    found = rw.partial_dependence(ranker, queries, 0, centred=False)
    X[:, 0] = np.nan
    assert found.missing == pytest.approx(ranker.predict(X).mean(), abs=1e-12)
    assert "missing" in str(found)
    assert rw.partial_dependence(ranker, queries, 1).missing is None


def test_dependence_on_a_draw_of_queries(lists, linear):
    found = rw.partial_dependence(linear, lists, 0, max_docs=100, rng=5)
    assert (found.n_docs, found.n_queries) == (96, 8)
    assert found.as_dict() == rw.partial_dependence(linear, lists, 0, max_docs=100, rng=5).as_dict()
    assert rw.partial_dependence(linear, lists, 0, max_docs=1).n_queries == 1


# --- what is refused, printed, drawn -------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r, q: rw.permutation_importance(r, q, within="list"), "within must be one of"),
        (lambda r, q: rw.permutation_importance(r, q, n_repeats=0), "n_repeats must be an integer"),
        (
            lambda r, q: rw.permutation_importance(r, q, features=["z"]),
            "column of the data, got 'z'",
        ),
        (
            lambda r, q: rw.permutation_importance(r, q, features=[6]),
            "a feature must be .* at most 5",
        ),
        (lambda r, q: rw.permutation_importance(r, q, features=[]), "at least one feature"),
        (lambda r, q: rw.permutation_importance(r, q.take([0])), "at least two queries"),
        (lambda r, q: rw.explain_query(r, q, q.ids[0], n_pairs=-1), "n_pairs must be an integer"),
        (lambda r, q: rw.explain_query(r, q, q.ids[0], n_features=0), "n_features must be"),
        (lambda r, q: rw.worst_queries(r, q, n=0), "n must be an integer of at least 1"),
        (lambda r, q: rw.partial_dependence(r, q, 0, values=[np.inf]), "values must be finite"),
        (lambda r, q: rw.partial_dependence(r, q, 0, n_points=1), "n_points must be"),
    ],
)
def test_sentences(call, words, lists, linear):
    with pytest.raises(ValueError, match=words):
        call(linear, lists)


def test_values_are_frozen_print_and_turn_into_json(lists, linear):
    for found in (
        rw.permutation_importance(linear, lists, n_repeats=1),
        rw.explain_query(linear, lists, lists.ids[0]),
        rw.worst_queries(linear, lists),
        rw.partial_dependence(linear, lists, 2),
    ):
        assert json.loads(json.dumps(found.as_dict())) == found.as_dict()
        lines = str(found).splitlines()
        assert len(lines) > 3
        assert all(line == line.rstrip() for line in lines)
        with pytest.raises(AttributeError):
            found.metric = found.name = "other"


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_pictures(suffix, lists, trees, tmp_path):
    query = rw.worst_queries(trees, lists, n=1).queries[0]
    drawn = {
        "i": rw.plot_importance(
            rw.permutation_importance(trees, lists, n_repeats=1), path=tmp_path / f"i.{suffix}"
        ),
        "d": rw.plot_dependence(
            rw.partial_dependence(trees, lists, 0), path=tmp_path / f"d.{suffix}"
        ),
        "m": rw.plot_mistakes(
            rw.explain_query(trees, lists, query, n_pairs=2), path=tmp_path / f"m.{suffix}"
        ),
    }
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    for name in drawn:
        assert (tmp_path / f"{name}.{suffix}").read_bytes().startswith(start)
    assert len(drawn["m"].axes) == 2
    bars = drawn["m"].axes[0].patches
    assert len(bars) == 6
    pair = rw.explain_query(trees, lists, query).pairs[0]
    assert sum(bar.get_width() for bar in bars) == pytest.approx(pair.gap)
    assert drawn["i"].axes[0].get_yticklabels()[0].get_text() == "x0"


def test_no_mistakes_no_picture(lists):
    perfect = rw.Queries.from_arrays([[1.0], [0.0]], [1, 0], [0, 0])
    ranker = rw.FeatureRanker(0).fit(perfect)
    found = rw.explain_query(ranker, perfect, 0)
    assert found.pairs == ()
    with pytest.raises(ValueError, match="must hold a pair in the wrong order"):
        rw.plot_mistakes(found)
