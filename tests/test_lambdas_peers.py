"""LambdaRank beside LightGBM's lambdarank and XGBoost's rank:ndcg, options switched to theirs; and
the local optimum of a linear model trained on it."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import rankwise as rw
from rankwise.metrics import dcg, parse_metric


def lists(seed=0, n_queries=40):
    """Queries of different lengths, no two documents alike."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(2, 40, n_queries))])
    n = int(offsets[-1])
    X = rng.normal(size=(n, 1)).astype(np.float32).astype(float)
    y = np.clip(np.round(X[:, 0] + rng.normal(size=n)), 0, 4)
    return X, y, offsets


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("truncation", [5, 1000])
@pytest.mark.parametrize("first_round", [True, False])
def test_leaves_of_a_tree_equal_lightgbm_s(norm, truncation, first_round):
    X, y, offsets = lists(n_queries=60)
    rng = np.random.default_rng(1)
    scores = np.zeros(len(y)) if first_round else rng.normal(size=len(y)).round(1)
    data = lgb.Dataset(
        X, label=y, group=np.diff(offsets), init_score=scores, params={"verbosity": -1}
    )
    params = {
        "objective": "lambdarank",
        "lambdarank_truncation_level": truncation,
        "lambdarank_norm": norm,
        "learning_rate": 1.0,
        "num_leaves": 60,
        "min_data_in_leaf": 3,
        "min_sum_hessian_in_leaf": 1e-3,
        "num_threads": 1,
        "verbosity": -1,
    }
    booster = lgb.Booster(params, data)
    booster.update()
    leaf = booster.predict(X, pred_leaf=True).ravel()
    step = booster.predict(X, raw_score=True)
    loss = rw.LambdaRank(
        "dcg", ties="stable", truncation=truncation, normalize="both" if norm else "none"
    )
    # LightGBM cuts the ideal at its truncation level, but not the discount of a pair's lower place.
    ideals = dcg(y, y, k=truncation, qid=np.repeat(np.arange(60), np.diff(offsets)), empty=0.0)
    weight = np.repeat(np.divide(1, ideals, out=np.zeros(60), where=ideals > 0), np.diff(offsets))
    gradient, curvature = loss.derivatives(y, scores, offsets, weight)
    assert len(np.unique(leaf)) > 40
    G, H = np.bincount(leaf, gradient), np.bincount(leaf, curvature)
    # LightGBM's sigmoid is a table of a million steps, its gradients are float32.
    np.testing.assert_allclose(step, (-G / H)[leaf], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("rounds", [1, 5])
def test_trees_equal_lightgbm_s_own_objective(rounds):
    queries = rw.make_queries("course", n_queries=60, rng=3)
    X, y, sizes = queries.X, queries.y, queries.sizes
    params = {
        "num_leaves": 8,
        "learning_rate": 0.1,
        "min_data_in_leaf": 5,
        "min_sum_hessian_in_leaf": 1e-3,
        "num_threads": 1,
        "verbosity": -1,
        "force_col_wise": True,
        "deterministic": True,
    }
    theirs = lgb.Booster(
        {**params, "objective": "lambdarank", "lambdarank_truncation_level": 1000},
        lgb.Dataset(X, label=y, group=sizes),
    )
    ours = lgb.Booster({**params, "objective": "none"}, lgb.Dataset(X, label=y, group=sizes))
    run = rw.LambdaRank(ties="stable", normalize="both").prepare(y, queries.offsets, n_threads=1)
    for _ in range(rounds):
        theirs.update()
        ours.update(fobj=lambda scores, _: run(scores))
    np.testing.assert_allclose(
        ours.predict(X, raw_score=True), theirs.predict(X, raw_score=True), rtol=2e-4, atol=2e-5
    )


@pytest.mark.parametrize("first_round", [True, False])
@pytest.mark.parametrize(("objective", "metric"), [("rank:ndcg", "ndcg"), ("rank:map", "ap")])
def test_the_first_tree_equals_xgboost_s_with_its_doubled_curvature(objective, metric, first_round):
    # One split per document is not to be had from depth-wise trees; two leaves are enough.
    X, y, offsets = lists(seed=2)
    if metric == "ap":
        y = (y >= 2).astype(float)
    rng = np.random.default_rng(3)
    scores = np.zeros(len(y)) if first_round else rng.normal(size=len(y)).round(6)
    matrix = xgb.DMatrix(X, y, qid=np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)))
    matrix.set_base_margin(scores)
    booster = xgb.train(
        {
            "objective": objective,
            "lambdarank_pair_method": "topk",
            "lambdarank_num_pair_per_sample": 1000,
            "lambdarank_normalization": False,
            "lambdarank_score_normalization": False,
            "max_depth": 1,
            "eta": 1.0,
            "reg_lambda": 0.0,
            "min_child_weight": 0.0,
            "tree_method": "exact",
            "nthread": 1,
            "base_score": 0.0,
        },
        matrix,
        1,
    )
    leaf = booster.predict(matrix, pred_leaf=True).ravel()
    step = booster.predict(matrix, output_margin=True) - scores
    gradient, curvature = rw.LambdaRank(metric, ties="stable").derivatives(y, scores, offsets)
    for value in np.unique(leaf):
        inside = leaf == value
        ours = -gradient[inside].sum() / (2 * curvature[inside].sum())
        assert step[inside].mean() == pytest.approx(ours, rel=1e-3)


@pytest.mark.parametrize("name", ["ndcg", "ap", "err"])
def test_a_trained_linear_model_is_a_local_optimum_of_its_metric(name):
    # Donmez, Svore & Burges 2009: where the lambda gradient of a model vanishes, the metric falls in
    # random directions. Not in the smallest: the metric is a step function, and the gradient that of
    # a smoothed one.
    queries = rw.make_queries("course", n_queries=300)
    X = queries.X[:, :5]  # the sixth feature is constant inside a query
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    run = rw.LambdaRank(name).prepare(queries.y, queries.offsets, n_threads=1)
    metric = parse_metric(name)
    size = 2.0  # of the weights: the metric does not see it, the sigmoids do

    def value(w):
        return metric.mean(queries.y, X @ w, qid=queries.groups)

    def across(v, w):
        return v - (v @ w) * w / (w @ w)

    w = np.full(5, size / np.sqrt(5))
    start = value(w)
    for i in range(400):
        gradient = across(X.T @ run(X @ w)[0], w)
        w = w - 0.2 * size / (1 + i / 10) * gradient / np.linalg.norm(gradient)
        w *= size / np.linalg.norm(w)
    here = value(w)
    assert here > start + 0.02
    rng = np.random.default_rng(0)
    for radius, share in ((0.1, 0.9), (0.2, 0.99)):
        directions = [across(v, w) for v in rng.normal(size=(150, 5))]
        falls = [value(w + radius * size * v / np.linalg.norm(v)) < here for v in directions]
        assert np.mean(falls) >= share
