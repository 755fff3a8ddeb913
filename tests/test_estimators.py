"""The contract that every ranker keeps, run over all of them (``rankers.py``)."""

from __future__ import annotations

import inspect
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankwise as rw
from rankers import EXPECTED_FAILURES, FOREIGN, LISTWISE, RANKERS, fitted_values, one_query
from rankwise._estimator import Ranker
from rankwise.losses import parse_loss
from rankwise.metrics import AP, NDCG

each_ranker = pytest.mark.parametrize("name", RANKERS)


def ranker(name):
    return clone(RANKERS[name])


def planted(n_queries=60, seed=0, n_features=4):
    """Lists in which the first feature alone decides: every learner must find it."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 20, n_queries)
    qid = np.repeat(np.arange(n_queries), sizes)
    X = rng.standard_normal((len(qid), n_features))
    y = np.digitize(X[:, 0], [-0.5, 0.5, 1.2]).astype(float)
    return X, y, qid


def same_model(a, b, X, qid=None):
    """Equal to the last bit: scores, and everything that fit set."""
    if not np.array_equal(a.predict(X, qid=qid), b.predict(X, qid=qid)):
        return False
    fitted = [fitted_values(r) for r in (a, b)]
    if fitted[0].keys() != fitted[1].keys():
        return False
    return all(
        np.array_equal(v, fitted[1][k], equal_nan=isinstance(v, float))
        for k, v in fitted[0].items()
    )


def test_every_public_ranker_is_listed():
    public = {
        kind
        for kind in (getattr(rw, name) for name in rw.__all__)
        if inspect.isclass(kind) and issubclass(kind, Ranker)
    }
    # Rankers made of rankers have tests of their own: their fitted parts are rankers.
    assert public == {type(r) for r in RANKERS.values()} | {rw.BaggedRanker, rw.EnsembleRanker}


# --- scikit-learn's own checks -----------------------------------------------------------------


def _checked_rankers():
    made = {name: one_query(RANKERS[name]) for name in RANKERS}
    names = {id(r): name for name, r in made.items()}
    return list(made.values()), lambda r: EXPECTED_FAILURES.get(names[id(r)], {})


_ESTIMATORS, _EXPECTED = _checked_rankers()


# Trees warn where lists are too short for a split, as some of scikit-learn's are.
@pytest.mark.filterwarnings("ignore:TreeRanker.fit. no split:UserWarning")
@pytest.mark.filterwarnings("ignore:OneQueryTreeRanker.fit. no split:UserWarning")
@parametrize_with_checks(_ESTIMATORS, expected_failed_checks=_EXPECTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_expected_failures_name_rankers():
    assert EXPECTED_FAILURES.keys() <= RANKERS.keys()


# --- learning ----------------------------------------------------------------------------------


@each_ranker
def test_recovers_a_planted_ranking(name):
    X, y, qid = planted()
    fitted = ranker(name).fit(X, y, qid=qid)
    new_X, new_y, new_qid = planted(seed=1)
    score = fitted.score(new_X, new_y, qid=new_qid)
    if name == "random":
        assert score < 0.75
    else:
        assert score > 0.97


@each_ranker
def test_order_of_rows_and_names_of_queries_do_not_matter(name):
    X, y, qid = planted()
    X[::7] = X[0]  # equal rows, also inside one query
    weight = np.random.default_rng(5).integers(1, 4, len(y)).astype(float)
    rng = np.random.default_rng(2)
    texts = np.array([f"q{i}" for i in rng.permutation(qid.max() + 1)])[qid]
    base = ranker(name).fit(X, y, qid=qid, sample_weight=weight)
    for _ in range(2):
        rows = rng.permutation(len(y))
        for ids in (qid, texts):
            other = ranker(name).fit(X[rows], y[rows], qid=ids[rows], sample_weight=weight[rows])
            assert same_model(base, other, X, qid)


@each_ranker
def test_validation_rows_in_any_order(name):
    X, y, qid = planted()
    V, vy, vqid = planted(20, seed=3)
    rows = np.random.default_rng(0).permutation(len(vy))
    base = ranker(name).fit(X, y, qid=qid, eval_set=(V, vy, vqid))
    other = ranker(name).fit(X, y, qid=qid, eval_set=(V[rows], vy[rows], vqid[rows]))
    assert same_model(base, other, X, qid)


@each_ranker
def test_equal_fits_and_inputs_left_alone(name):
    X, y, qid = planted()
    weight = np.ones(len(y))
    before = [a.copy() for a in (X, y, qid, weight)]
    one = ranker(name)
    one.fit(X, y, qid=qid, sample_weight=weight)
    assert all(np.array_equal(a, b) for a, b in zip((X, y, qid, weight), before, strict=True))
    first = one.predict(X, qid=qid)
    again = one.fit(X, y, qid=qid, sample_weight=weight)
    assert np.array_equal(again.predict(X, qid=qid), first)
    assert np.array_equal(X, before[0])


@each_ranker
@pytest.mark.parametrize("kind", ["queries", "pandas", "polars", "pyarrow", "csr", "float32"])
def test_every_container_gives_the_same_ranks(name, kind):
    X, y, qid = planted()
    X = X.astype(np.float32)
    base = ranker(name).fit(X.astype(float), y, qid=qid)
    ranks = base.rank(X.astype(float), qid)
    columns = {f"f{j}": X[:, j] for j in range(X.shape[1])} | {"qid": qid}
    forms = {
        "queries": lambda: rw.Queries.from_arrays(X, y, qid),
        "pandas": lambda: pd.DataFrame(columns, index=np.arange(len(y))[::-1]),
        "polars": lambda: pl.DataFrame(columns),
        "pyarrow": lambda: pa.table(columns),
        "csr": lambda: sp.csr_matrix(X),
        "float32": lambda: X,
    }
    data = forms[kind]()
    ids = {"qid": qid} if kind in ("csr", "float32") else {}
    labels = {} if kind == "queries" else {"y": y}
    fitted = ranker(name).fit(data, **labels, **ids)
    assert np.array_equal(fitted.rank(data, **ids), ranks)
    expected = base.score(X.astype(float), y, qid=qid)
    assert fitted.score(data, **labels, **ids) == pytest.approx(expected, rel=1e-12)
    named = kind in ("pandas", "polars", "pyarrow")
    assert hasattr(fitted, "feature_names_in_") == named
    if named:
        assert fitted.feature_names_in_.tolist() == ["f0", "f1", "f2", "f3"]


@each_ranker
def test_documents_of_weight_zero_teach_no_order(name):
    """With weight on one query only, the others must not decide."""
    X, y, qid = planted()
    first = qid < 30
    y = np.where(first, y, y[::-1])
    fitted = ranker(name).fit(X, y, qid=qid, sample_weight=np.where(first, 1.0, 0.0))
    score = fitted.score(X[first], y[first], qid=qid[first])
    assert score > 0.95 or name == "random"


# --- scores and ranks --------------------------------------------------------------------------


@pytest.mark.parametrize("name", RANKERS.keys() - LISTWISE)
def test_equal_rows_have_equal_scores_in_any_batch(name):
    X, y, qid = planted(n_features=37)
    fitted = ranker(name).fit(X, y, qid=qid)
    scores = fitted.predict(X)
    assert scores.dtype == np.float64
    assert scores.shape == (len(y),)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(y), 3 * len(y))
    again = fitted.predict(X[rows])
    for row in range(len(y)):
        assert len(set(again[rows == row])) <= 1
    if name in FOREIGN:  # how another library's sums depend on the batch is not ours
        np.testing.assert_allclose(again, scores[rows], rtol=1e-12, atol=1e-12)
        return
    assert np.array_equal(again, scores[rows])
    for batch in (X[:1], X[1:2], X[3:10], X[:7][::-1], np.asfortranarray(X[:50])):
        start = {X[0, 0]: 0, X[1, 0]: 1, X[3, 0]: 3, X[6, 0]: 0}[batch[0, 0]]
        expected = scores[start : start + len(batch)]
        expected = expected[::-1] if batch[0, 0] == X[6, 0] else expected
        assert np.array_equal(fitted.predict(batch), expected)
    negative_zero = np.where(X == 0, -0.0, X)
    assert np.array_equal(fitted.predict(negative_zero), scores)


@pytest.mark.parametrize("name", LISTWISE)
def test_equal_lists_have_equal_scores_in_any_batch(name):
    X, y, qid = planted(n_features=37)
    X[qid == 3][1:3] = X[qid == 3][0]
    fitted = ranker(name).fit(X, y, qid=qid)
    scores = fitted.predict(X, qid=qid)
    assert scores.dtype == np.float64
    for query in range(0, 60, 7):
        rows = np.random.default_rng(query).permutation(np.flatnonzero(qid == query))
        alone = fitted.predict(X[rows], qid=np.zeros(len(rows)))
        assert np.array_equal(alone, scores[rows])
    rows = np.random.default_rng(0).permutation(len(y))
    for same in (X[rows], np.asfortranarray(X[rows]), sp.csr_matrix(X[rows])):
        assert np.array_equal(fitted.predict(same, qid=qid[rows]), scores[rows])
    twice = np.repeat(np.flatnonzero(qid == 5), 2)  # each document of a list twice
    pairs = fitted.predict(X[twice], qid=qid[twice]).reshape(-1, 2)
    assert np.array_equal(pairs[:, 0], pairs[:, 1])
    with pytest.raises(ValueError, match=r"\.predict: qid must say which query each row"):
        fitted.predict(X)


@each_ranker
@pytest.mark.parametrize("k", [None, 1, 3, 100])
def test_rank_counts_from_one_in_input_order(name, k):
    X, y, qid = planted()
    X[::5] = X[1]  # ties
    rows = np.random.default_rng(0).permutation(len(y))
    X, y, qid = X[rows], y[rows], qid[rows]
    fitted = ranker(name).fit(X, y, qid=qid)
    scores, ranks = fitted.predict(X, qid=qid), fitted.rank(X, qid, k=k)
    for query in np.unique(qid):
        mine = np.flatnonzero(qid == query)
        best_first = sorted(mine, key=lambda i: (-scores[i], i))
        for place, row in enumerate(best_first, start=1):
            assert ranks[row] == (place if k is None or place <= k else 0)


@each_ranker
def test_score_is_the_mean_of_the_metric(name):
    X, y, qid = planted()
    fitted = ranker(name).set_params(metric="ap(rel=2)@7").fit(X, y, qid=qid)
    weight = np.random.default_rng(1).random(len(y))
    per_query = AP(rel=2, k=7).per_query(y, fitted.predict(X, qid=qid), qid=qid)
    assert fitted.score(X, y, qid=qid) == pytest.approx(np.nanmean(per_query), rel=1e-12)
    weights = np.array([weight[qid == q].mean() for q in range(qid.max() + 1)])
    kept = ~np.isnan(per_query)
    expected = np.average(per_query[kept], weights=weights[kept])
    assert fitted.score(X, y, qid=qid, sample_weight=weight) == pytest.approx(expected, rel=1e-12)
    queries = rw.Queries.from_arrays(X, y, qid, weight=weight)
    assert fitted.score(queries) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", RANKERS.keys() - FOREIGN)
def test_scores_are_finite_or_refused(name):
    X, y, qid = planted()
    fitted = ranker(name).fit(X, y, qid=qid)
    linear = hasattr(fitted, "coef_") and not hasattr(fitted, "map_")
    huge = 1.7e308 * np.sign(fitted.coef_ if linear else X)
    if linear:
        fitted.coef_ = fitted.coef_ * 10
        with pytest.raises(ValueError, match=r"\.predict: scores must be finite, got inf at row 0"):
            fitted.predict(huge[None])
    elif isinstance(getattr(fitted, "map_", None), rw.RandomFourierFeatures):
        with pytest.raises(ValueError, match="the projections must stay below"):
            fitted.predict(huge)
    else:
        assert np.isfinite(fitted.predict(huge, qid=qid)).all()


# --- scikit-learn's model selection ------------------------------------------------------------


@each_ranker
def test_cross_validate_routes_qid(name):
    X, y, qid = planted(30)
    rows = np.random.default_rng(1).permutation(len(y))
    X, y, qid = X[rows], y[rows], qid[rows]
    weight = np.random.default_rng(2).integers(1, 3, len(y)).astype(float)
    model, splitter = ranker(name), rw.QueryKFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        result = cross_validate(
            model,
            X,
            y,
            cv=splitter,
            params={"qid": qid, "sample_weight": weight},
            error_score="raise",
        )
    expected = [
        ranker(name)
        .fit(X[a], y[a], qid=qid[a], sample_weight=weight[a])
        .score(X[b], y[b], qid=qid[b], sample_weight=weight[b])
        for a, b in splitter.split(X, qid=qid)
    ]
    assert result["test_score"].tolist() == expected


@each_ranker
def test_grid_search_over_a_pipeline(name):
    X, y, qid = planted(30)
    model = make_pipeline(rw.QueryScaler(), ranker(name))
    grid = {"queryscaler__method": ["minmax", "zscore"]}
    scoring = {"ndcg": (NDCG @ 3).scorer(), "ap": AP.scorer()}
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            model, grid, cv=rw.QueryKFold(3), scoring=scoring, refit="ndcg", error_score="raise"
        ).fit(X, y, qid=qid)
        scores = search.best_estimator_.predict(X, qid=qid)
        expected = (NDCG @ 3).mean(y, scores, qid=qid)
        assert search.score(X, y, qid=qid) == expected
    for i, method in enumerate(grid["queryscaler__method"]):
        for j, (a, b) in enumerate(rw.QueryKFold(3).split(X, qid=qid)):
            scaler = rw.QueryScaler(method)
            fitted = ranker(name).fit(scaler.fit_transform(X[a], qid=qid[a]), y[a], qid=qid[a])
            scores = fitted.predict(scaler.transform(X[b], qid=qid[b]), qid=qid[b])
            for key, metric in (("ndcg", NDCG @ 3), ("ap", AP)):
                got = search.cv_results_[f"split{j}_test_{key}"][i]
                assert got == metric.mean(y[b], scores, qid=qid[b])


@each_ranker
def test_frames_with_a_qid_column_need_no_routing(name):
    X, y, qid = planted(30)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(qid=[f"q{i}" for i in qid])
    model = make_pipeline(rw.QueryScaler(), ranker(name))
    result = cross_validate(
        model, frame, y, cv=rw.QueryKFold(3), scoring=NDCG.scorer(), error_score="raise"
    )
    default = cross_validate(model, frame, y, cv=rw.QueryKFold(3), error_score="raise")
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_validate(
            model,
            X,
            y,
            cv=rw.QueryKFold(3),
            params={"qid": frame["qid"]},
            scoring=NDCG.scorer(),
            error_score="raise",
        )
    assert result["test_score"].tolist() == routed["test_score"].tolist()
    assert np.isfinite(default["test_score"]).all()


def test_without_routing_model_selection_says_what_to_do():
    X, y, qid = planted(30)
    search = GridSearchCV(
        rw.LinearRanker(), {"alpha": [0.1, 1.0]}, cv=GroupKFold(3), error_score="raise"
    )
    with pytest.raises(ValueError, match=r"LinearRanker\.score: qid .*enable_metadata_routing"):
        search.fit(X, y, groups=qid, qid=qid)
    with pytest.raises(ValueError, match=r"QueryKFold\.split: qid .*enable_metadata_routing"):
        search.set_params(cv=rw.QueryKFold(3)).fit(X, y, qid=qid)
    search.set_params(scoring=NDCG.scorer())
    with pytest.raises(ValueError, match=r"scorer of ndcg: qid .*enable_metadata_routing"):
        search.fit(X, y, groups=qid, qid=qid)


def test_group_k_fold_with_routing():
    X, y, qid = planted(30)
    with sklearn.config_context(enable_metadata_routing=True):
        result = cross_validate(
            rw.LinearRanker(),
            X,
            y,
            cv=GroupKFold(3),
            params={"qid": qid, "groups": qid},
            error_score="raise",
        )
    expected = [
        rw.LinearRanker().fit(X[a], y[a], qid=qid[a]).score(X[b], y[b], qid=qid[b])
        for a, b in GroupKFold(3).split(X, y, qid)
    ]
    assert result["test_score"].tolist() == expected


def test_grid_search_finds_the_better_parameter():
    queries = rw.make_queries(n_queries=60)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            rw.TreeRanker(n_estimators=10, num_leaves=8),
            {"learning_rate": [1e-9, 0.2]},
            cv=rw.QueryKFold(3),
            error_score="raise",
        ).fit(queries.X, queries.y, qid=queries.qid)
    assert search.best_params_ == {"learning_rate": 0.2}


def test_eval_set_is_asked_for_by_the_user_and_transformed_if_told():
    X, y, qid = planted(30)
    V = rw.Queries.from_arrays(*planted(10, seed=4))
    trees = rw.TreeRanker(n_estimators=8, num_leaves=4, early_stopping_rounds=4)
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="eval_set"):
            make_pipeline(rw.QueryScaler(), trees).fit(X, y, qid=qid, eval_set=V)
        trees.set_fit_request(eval_set=True)
        model = make_pipeline(rw.QueryScaler(), trees, transform_input=["eval_set"])
        model.fit(X, y, qid=qid, eval_set=V.with_features(V.X))
    scaler = rw.QueryScaler()
    by_hand = clone(trees).fit(
        scaler.fit_transform(X, qid=qid), y, qid=qid, eval_set=scaler.transform(V)
    )
    assert same_model(model[-1], by_hand, X)


def test_scorer_is_a_value():
    scorer = (NDCG @ 5).scorer()
    assert clone(scorer).metric == NDCG @ 5
    request = dict(scorer.get_metadata_routing().score.requests)
    assert request == {"qid": True, "sample_weight": True}


# --- bad input ---------------------------------------------------------------------------------


def good():
    X, y, qid = planted(10)
    return {"X": X, "y": y, "qid": qid}


def changed(array, row, value):
    out = np.array(array, dtype=float)
    out[row] = value
    return out


N = len(good()["y"])

WITH_NAN, WITH_MINUS, WITH_INF = (changed(good()["y"], 3, v) for v in (np.nan, -1, np.inf))

# What is changed in a good call, the kind of error, and words of its sentence.
BAD_FITS = {
    "y is shorter": ({"y": np.ones(N - 1)}, ValueError, f"row of X, got {N - 1} for {N} rows"),
    "qid is longer": ({"qid": np.ones(N + 1)}, ValueError, f"row of X, got {N + 1} for {N} rows"),
    "no qid": ({"qid": None}, ValueError, "qid must say which query each row belongs to"),
    "no y": ({"y": None}, ValueError, "requires y to be passed"),
    "no label but NaN": ({"y": np.full(N, np.nan)}, ValueError, "y must hold at least one label"),
    "negative label": ({"y": WITH_MINUS}, ValueError, "at least 0 and finite, got -1 at row 3"),
    "infinite label": ({"y": WITH_INF}, ValueError, "at least 0 and finite, got inf at row 3"),
    "label of text": ({"y": ["good"] * N}, TypeError, "y must be numbers"),
    "missing qid": ({"qid": WITH_NAN}, ValueError, "qid must not be missing, got nan at row 3"),
    "infinite feature": (
        {"X": changed(good()["X"], (0, 1), np.inf)},
        ValueError,
        "X must not hold infinity",
    ),
    "feature of text": ({"X": np.full((N, 2), "a")}, ValueError, "X must be numbers"),
    "one-dimensional X": ({"X": good()["X"][:, 0]}, ValueError, "two-dimensional"),
    "no rows": ({"X": np.ones((0, 2)), "y": [], "qid": []}, ValueError, "at least one document"),
    "no features": ({"X": np.ones((N, 0))}, ValueError, "at least one feature"),
    "negative weight": (
        {"sample_weight": WITH_MINUS},
        ValueError,
        "sample_weight must be at least 0 and finite, got -1.0 at row 3",
    ),
    "too few weights": (
        {"sample_weight": [1.0]},
        ValueError,
        f"one weight per document, got 1 for {N} documents",
    ),
    "zero weights": ({"sample_weight": np.zeros(N)}, ValueError, "above 0 for at least one"),
    "group sizes": (
        {"group": [N]},
        TypeError,
        "got group= (sizes); pass qid=rankwise.qid_from_sizes(group)",
    ),
    "another keyword": ({"eval_group": [N]}, TypeError, "unexpected keyword argument 'eval_group'"),
    "eval_set is no triple": (
        {"eval_set": [(1, 2)]},
        TypeError,
        "eval_set must be a Queries or (X, y, qid), got list",
    ),
    "eval_set without qid": (
        {"eval_set": (good()["X"], good()["y"])},
        ValueError,
        " (eval_set): qid must say",
    ),
    "eval_set of other width": (
        {"eval_set": (np.ones((2, 9)), [0, 1], [1, 1])},
        ValueError,
        "X has 9 features",
    ),
    "NaN label in eval_set": (
        {"eval_set": (np.ones((1, 4)), [np.nan], [1])},
        ValueError,
        "y must hold at least one label, got NaN for all 1 documents",
    ),
    "pairs that are none": ({"pairs": [(0, 1)]}, TypeError, "pairs must be a rankwise.Pairs"),
    "a pair across queries": (
        {"pairs": rw.Pairs([0], [N - 1])},
        ValueError,
        "pairs must stay inside one query",
    ),
    "a pair beyond the rows": ({"pairs": rw.Pairs([N], [0])}, ValueError, f"below the {N} doc"),
}


@each_ranker
def test_unjudged_documents_teach_nothing(name):
    queries = rw.make_queries(n_queries=30, n_docs=12, rng=4)
    y = queries.y.copy()
    y[np.random.default_rng(1).random(len(y)) < 0.25] = np.nan
    ranker = clone(RANKERS[name]).fit(queries.X, y, qid=queries.qid)
    scores = ranker.predict(queries.X, qid=queries.qid)
    assert np.isfinite(scores).all()
    if name not in ("random",):
        assert ranker.score(queries) > rw.RandomRanker().fit(queries).score(queries)
    # The labels behind a NaN have no say: no two numbers could take its place alike.
    again = clone(RANKERS[name]).fit(queries.X[::-1], y[::-1], qid=queries.qid[::-1])
    assert np.array_equal(again.predict(queries.X, qid=queries.qid), scores)


@each_ranker
def test_pairs_are_learned_from_or_refused(name):
    queries = rw.make_queries(n_queries=30, n_docs=12, rng=4)
    winner = np.flatnonzero(queries.y > 0)
    loser = queries.offsets[winner // 12]
    kept = queries.y[winner] > queries.y[loser]
    pairs = rw.Pairs(winner[kept], loser[kept])
    ranker = clone(RANKERS[name])
    loss = getattr(ranker, "loss", "squared")
    if not (ranker.takes_pairs and parse_loss(loss).takes_pairs):
        with pytest.raises(TypeError, match=r"\.fit: pairs need a (ranker|loss)"):
            ranker.fit(queries.X, qid=queries.qid, pairs=pairs)
        return
    scores = ranker.fit(queries.X, qid=queries.qid, pairs=pairs).predict(queries.X, qid=queries.qid)
    assert (scores[pairs.winner] > scores[pairs.loser]).mean() > 0.7
    # The order of rows and of pairs does not matter, to the last bit.
    order = np.random.default_rng(0).permutation(queries.n_docs)
    place = np.argsort(order)
    mixed = np.random.default_rng(1).permutation(len(pairs))
    moved = rw.Pairs(place[pairs.winner[mixed]], place[pairs.loser[mixed]])
    again = clone(RANKERS[name]).fit(queries.X[order], qid=queries.qid[order], pairs=moved)
    assert np.array_equal(again.predict(queries.X, qid=queries.qid), scores)


@each_ranker
@pytest.mark.parametrize("case", BAD_FITS)
def test_bad_fits_are_refused_with_a_sentence(name, case):
    change, error, text = BAD_FITS[case]
    model = ranker(name)
    kind = type(model).__name__
    with pytest.raises(error, match=rf"^{kind}\.fit\b.*{re.escape(text)}"):
        model.fit(**(good() | change))
    with pytest.raises(NotFittedError):
        model.predict(good()["X"])


@each_ranker
def test_bad_predictions_are_refused_with_a_sentence(name):
    model = ranker(name)
    kind = type(model).__name__
    with pytest.raises(NotFittedError):
        model.predict(good()["X"])
    frame = pd.DataFrame(good()["X"], columns=list("abcd"))
    model.fit(frame, good()["y"], qid=good()["qid"])
    with pytest.raises(ValueError, match=rf"^{kind}\.predict: X has 3 features, but {kind} is exp"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(ValueError, match=rf"^{kind}\.predict: .*another order"):
        model.predict(frame[list("bacd")])
    with pytest.raises(ValueError, match=rf"^{kind}\.predict: .*lacks 'd' and adds 'e'"):
        model.predict(frame.rename(columns={"d": "e"}))
    with pytest.raises(ValueError, match=rf"^{kind}\.score: qid must say"):
        model.score(frame, good()["y"])
    with pytest.raises(ValueError, match=rf"^{kind}\.rank: qid must say"):
        model.rank(frame)
    with pytest.raises(ValueError, match=rf"^{kind}\.rank: qid must have one entry per row"):
        model.rank(frame, [1, 2])
    with pytest.raises(ValueError, match=rf"^{kind}\.score: requires y"):
        model.score(frame, qid=good()["qid"])
    with pytest.raises(ValueError, match=rf"^{kind}\.rank: k must be a positive integer or None"):
        model.rank(frame, good()["qid"], k=0)
    queries = rw.Queries.from_arrays(good()["X"], good()["y"], good()["qid"])
    with pytest.raises(TypeError, match=rf"^{kind}\.rank: .*got qid and a Queries"):
        model.rank(queries, good()["qid"])
    with pytest.raises(TypeError, match=rf"^{kind}\.score: .*leave y out"):
        model.score(queries, good()["y"])
    with pytest.raises(TypeError, match=rf"^{kind}\.fit: .*leave y out"):
        model.fit(queries, good()["y"])


@each_ranker
def test_missing_values_are_learned_from_or_refused(name):
    X, y, qid = planted()
    X[::9, 1] = np.nan
    model = ranker(name)
    if model.__sklearn_tags__().input_tags.allow_nan:
        assert np.isfinite(model.fit(X, y, qid=qid).predict(X, qid=qid)).all()
        return
    kind = type(model).__name__
    with pytest.raises(ValueError, match=rf"^{kind}\.fit: X must not hold NaN"):
        model.fit(X, y, qid=qid)
    model.fit(np.nan_to_num(X), y, qid=qid)
    with pytest.raises(ValueError, match=rf"^{kind}\.predict: X must not hold NaN"):
        model.predict(X)


LEARNS_NO_ORDER = {
    "one document per query": (np.arange(40), None),
    "one label per query": (np.repeat(np.arange(10), 4), np.repeat(np.arange(10) % 3, 4)),
    "no relevant documents": (np.repeat(np.arange(10), 4), np.zeros(40)),
}


@each_ranker
@pytest.mark.parametrize("case", LEARNS_NO_ORDER)
def test_lists_without_order(name, case):
    """A learner of orders says that there is none, or learns nothing; none invents one silently."""
    qid, y = LEARNS_NO_ORDER[case]
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = np.digitize(X[:, 0], [0.0, 1.0]) if y is None else y
    model = ranker(name)
    refusal = None
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y, qid=qid)
    except ValueError as error:
        refusal = str(error)
    if refusal is not None:
        assert re.match(rf"{type(model).__name__}\.fit: .*label", refusal)
        return
    scores = model.predict(X)
    assert np.isfinite(scores).all()
    pointwise = "pointwise" in name or "squared" in name or name in ("random", "feature")
    if not pointwise:
        assert len(set(scores)) == 1
        assert any("all scores are equal" in str(w.message) for w in caught)


@each_ranker
def test_queries_without_order_do_not_disturb_the_others(name):
    X, y, qid = planted()
    extra = np.random.default_rng(9).standard_normal((3, X.shape[1]))
    more_X = np.concatenate([X, extra])
    more_y, more_qid = np.append(y, [0, 0, 2]), np.append(qid, [1000, 1000, 2000])
    fitted = ranker(name).fit(more_X, more_y, qid=more_qid)
    score = fitted.score(X, y, qid=qid)
    assert score > 0.97 or name == "random"
    assert fitted.rank(extra, [1000, 1000, 2000]).tolist() in ([1, 2, 1], [2, 1, 1])


# --- baselines ---------------------------------------------------------------------------------


def test_random_scores_are_uniform_and_seeded():
    X = np.random.default_rng(0).standard_normal((20_000, 3))
    fits = {s: rw.RandomRanker(s).fit(X, np.zeros(len(X)), qid=np.zeros(len(X))) for s in (0, 1)}
    a, b = (fits[s].predict(X) for s in (0, 1))
    assert 0 <= a.min() < a.max() < 1
    counts = np.histogram(a, bins=20, range=(0, 1))[0]
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03
    assert abs(np.corrcoef(a, X[:, 0])[0, 1]) < 0.03
    assert np.array_equal(a, fits[0].predict(sp.csr_matrix(X)))
    unseeded = [rw.RandomRanker(None).fit(X[:2], [0, 1], qid=[1, 1]).seed_ for _ in range(2)]
    assert unseeded[0] != unseeded[1]


def test_random_on_the_course_data_is_as_in_the_note():
    queries = rw.make_queries()
    test = queries.take(range(300, 1300))
    means = [rw.RandomRanker(s, metric="ndcg@5").fit(queries).score(test) for s in range(20)]
    assert round(np.mean(means), 2) == 0.19
    assert round(means[0], 2) == 0.19


@pytest.mark.parametrize("seed", [-1, 1.5, "a", True])
def test_random_refuses_seeds(seed):
    with pytest.raises(ValueError, match="RandomRanker: random_state must be an integer of at"):
        rw.RandomRanker(seed).fit(**good())


def test_feature_ranker_chooses_feature_and_direction():
    X, y, qid = planted()
    for column in range(4):
        for sign in (1.0, -1.0):
            moved = np.roll(X, column, axis=1) * sign
            fitted = rw.FeatureRanker().fit(moved, y, qid=qid)
            assert (fitted.feature_, fitted.sign_) == (column, sign)


def test_feature_ranker_takes_the_first_of_equals():
    X, y, qid = planted()
    copies = np.column_stack([X[:, 1], X[:, 0], np.exp(X[:, 0]), -X[:, 0]])
    fitted = rw.FeatureRanker().fit(copies, y, qid=qid)
    assert (fitted.feature_, fitted.sign_) == (1, 1.0)


def test_feature_ranker_equals_trying_all():
    queries = rw.make_queries(n_queries=30)
    tried = {
        (j, up): rw.FeatureRanker(j, descending=up, metric="rr").fit(queries).score(queries)
        for j in range(6)
        for up in (True, False)
    }
    best = rw.FeatureRanker(metric="rr").fit(queries)
    assert best.score(queries) == max(tried.values())
    assert tried[best.feature_, best.sign_ > 0] == max(tried.values())


def test_feature_ranker_by_name_and_with_missing_values():
    frame = pd.DataFrame({"bm25": [1.0, np.nan, 3.0], "age": [3.0, 2.0, np.nan], "qid": 1})
    bm25 = rw.FeatureRanker("bm25").fit(frame, [0, 1, 2])
    assert bm25.rank(frame).tolist() == [2, 3, 1]
    young = rw.FeatureRanker("age", descending=False).fit(frame, [0, 1, 2])
    assert young.rank(frame).tolist() == [2, 1, 3]
    with pytest.raises(ValueError, match="got 'x'; known: bm25, age"):
        rw.FeatureRanker("x").fit(frame, [0, 1, 2])
    with pytest.raises(ValueError, match="got 'x'; the columns have no names"):
        rw.FeatureRanker("x").fit(np.ones((2, 2)), [0, 1], qid=[1, 1])
    for feature in (2, -1, 0.5):
        with pytest.raises(ValueError, match=r"FeatureRanker\.fit: feature must be an integer"):
            rw.FeatureRanker(feature).fit(np.ones((2, 2)), [0, 1], qid=[1, 1])


def test_pointwise_equals_the_regressor():
    from sklearn.linear_model import Ridge

    queries = rw.make_queries(n_queries=50)
    weight = np.random.default_rng(0).random(queries.n_docs)
    fitted = rw.PointwiseRanker(Ridge()).fit(
        queries.X, queries.y, qid=queries.qid, sample_weight=weight
    )
    expected = Ridge().fit(queries.X, queries.y, sample_weight=weight).predict(queries.X)
    np.testing.assert_allclose(fitted.predict(queries), expected, rtol=1e-9)


def test_pointwise_on_the_course_data_is_as_in_the_note():
    from sklearn.linear_model import Ridge

    queries = rw.make_queries()
    fitted = rw.PointwiseRanker(Ridge(), metric="ndcg@5").fit(queries.take(range(300)))
    assert round(fitted.score(queries.take(range(300, 1300))), 3) == 0.647


def test_pointwise_refuses():
    from sklearn.linear_model import LinearRegression
    from sklearn.neighbors import KNeighborsRegressor

    with pytest.raises(TypeError, match=r"estimator must be .* or classifier, got 'ridge'"):
        rw.PointwiseRanker("ridge").fit(**good())
    neighbours = rw.PointwiseRanker(KNeighborsRegressor())
    with pytest.raises(TypeError, match="sample_weight needs an estimator whose fit takes it"):
        neighbours.fit(**good(), sample_weight=np.ones(N))
    two = rw.PointwiseRanker(LinearRegression()).fit(**good())
    two.estimator_.fit(good()["X"], np.ones((N, 2)))
    with pytest.raises(ValueError, match="one number per document"):
        two.predict(good()["X"])
