"""Networks on ranking losses: gradients, learning, batches, threads, files, and life without PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import rankwise as rw
from rankwise import _core, _networks
from rankwise._transforms import fit_table, transformed
from rankwise.losses import LOSSES, parse_loss
from rankwise.neural import ACTIVATIONS, Architecture, _Forces, _parts

OFFSETS = np.array([0, 5, 6, 6, 13])


def lists(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, OFFSETS[-1]).astype(float)
    # Scores far enough apart that no finite difference passes a tie, and off every margin.
    s = rng.permutation(len(y)) * 0.37 + rng.random(len(y)) * 0.1
    return y, s, rng.integers(1, 4, len(y)).astype(float)


@pytest.fixture(scope="module")
def course():
    queries = rw.make_queries(n_queries=400)
    return [queries.take(range(*part)) for part in ((0, 150), (150, 220), (220, 400))]


SMALL = {"hidden": (16,), "n_epochs": 6, "learning_rate": 0.01, "random_state": 0}


def fitted(queries, **params):
    return rw.NeuralRanker(**{**SMALL, **params}).fit(queries)


# --- the losses in PyTorch ---------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_every_loss_are_finite_differences(name, weighted):
    y, s, weight = lists()
    loss = rw.torch_loss(name)
    scores = torch.tensor(s, dtype=torch.float64, requires_grad=True)
    # A different factor for each list, so that each list's gradient must get its own.
    factor = torch.tensor([1.0, 2.0, 3.0, -0.5], dtype=torch.float64)
    if not getattr(LOSSES[name], "separable", True):
        with pytest.raises(
            ValueError, match="torch_loss: all lists must have one factor in ordinal"
        ):
            (loss(scores, y, OFFSETS) * factor).sum().backward()
        assert torch.autograd.gradcheck(lambda at: loss(at, y, OFFSETS).mean(), scores, atol=1e-5)
        return
    assert torch.autograd.gradcheck(
        lambda at: loss(at, y, OFFSETS, weight if weighted else None) * factor, scores, atol=1e-5
    )


@pytest.mark.parametrize("name", LOSSES)
def test_torch_losses_are_the_losses(name):
    y, s, weight = lists()
    value = parse_loss(name)
    scores = torch.tensor(s, dtype=torch.float64, requires_grad=True)
    found = rw.torch_loss(value)(
        scores, torch.tensor(y), torch.tensor(OFFSETS), torch.tensor(weight)
    )
    assert np.array_equal(found.detach().numpy(), value.value(y, s, OFFSETS, weight))
    found.sum().backward()
    assert np.array_equal(scores.grad.numpy(), value.derivatives(y, s, OFFSETS, weight)[0])


def test_torch_loss_in_a_loop_of_ones_own(course):
    train = course[0]
    model = torch.nn.Linear(train.n_features, 1)
    with torch.no_grad():
        model.weight.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    loss = rw.torch_loss("listnet")
    x = torch.tensor(train.X, dtype=torch.float32)
    for _ in range(60):
        optimizer.zero_grad()
        value = loss(model(x).squeeze(-1), train.y, train.offsets).mean()
        value.backward()
        optimizer.step()
    best = rw.LinearRanker("listnet", alpha=1e-6).fit(train)
    lowest = rw.ListNet().value(train.y, best.predict(train), train.offsets).mean()
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(lowest, rel=2e-3)


def test_torch_loss_takes_pairs_and_refuses(course):
    y, s, _ = lists()
    pairs = rw.Pairs([0, 6], [1, 8])
    scores = torch.tensor(s, requires_grad=True)
    found = rw.torch_loss("ranknet")(scores, None, OFFSETS, pairs=pairs)
    assert np.array_equal(found.detach(), rw.RankNet().value(None, s, OFFSETS, pairs=pairs))
    with pytest.raises(TypeError, match="torch_loss: pairs"):
        rw.torch_loss("listnet")(scores, y, OFFSETS, pairs=pairs)
    with pytest.raises(ValueError, match=r"torch_loss: scores must be a tensor of shape \(n_docs,"):
        rw.torch_loss("ranknet")(scores[:, None], y, OFFSETS)
    with pytest.raises(ValueError, match="unknown loss 'ranket'"):
        rw.torch_loss("ranket")


# --- learning ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_teaches_a_network(name, course):
    train, _, test = course
    ranker = fitted(train, loss=name, metric="ndcg@5", n_epochs=8)
    assert ranker.score(test) > 0.6  # random order has .21


@pytest.mark.parametrize("name", ["squared", "ranknet", "listnet", "squared_hinge"])
def test_a_network_without_hidden_layers_reaches_the_linear_optimum(name, course):
    """Adam on one batch of all queries ends where the Newton solver does."""
    train = course[0]
    n = train.n_queries
    linear = rw.LinearRanker(name, alpha=0.01 * n, scale="std", tol=1e-8).fit(train)
    network = rw.NeuralRanker(
        name, hidden=(), scale="std", batch_queries=n, weight_decay=0.01, learning_rate=0.05,
        n_epochs=500, random_state=0,
    ).fit(train)  # fmt: skip
    loss = parse_loss(name)

    def objective(ranker, w):
        values = loss.value(train.y, ranker.predict(train), train.offsets)
        return values.mean() + 0.01 / 2 * (w**2).sum()

    deviation = train.X.std(axis=0)
    ours = objective(network, network.weights_[:-1].astype(float))
    best = objective(linear, linear.coef_ * deviation)
    assert ours == pytest.approx(best, rel=1e-5)
    np.testing.assert_allclose(network.weights_[:-1], linear.coef_ * deviation, atol=2e-3)


def test_attention_learns_what_depends_on_the_list():
    """The best document is the one closest to its list's mean: no score by itself can tell."""
    rng = np.random.default_rng(0)
    centre = np.repeat(rng.normal(0, 3, 300), 8)
    X = np.stack([centre + rng.normal(size=2400), rng.normal(size=2400)], axis=1)
    offsets = np.arange(0, 2401, 8)
    mean = np.repeat(np.add.reduceat(X[:, 0], offsets[:-1]) / 8, 8)
    y = (np.abs(X[:, 0] - mean) < 0.5).astype(float)
    queries = rw.Queries.from_arrays(X, y, np.repeat(np.arange(300), 8))
    train, test = queries.take(range(200)), queries.take(range(200, 300))
    options = {
        "scale": "std",
        "n_epochs": 20,
        "hidden": (16, 16),
        "metric": "ndcg",
        "batch_queries": 8,
    }
    attention = fitted(train, network="attention", **options).score(test)
    alone = fitted(train, **options).score(test)
    assert attention > 0.9
    assert alone < 0.85


def test_early_stopping_keeps_the_best_epoch(course):
    train, valid, _ = course
    options = {"learning_rate": 0.05, "dropout": 0.3, "metric": "ndcg@5"}
    ranker = rw.NeuralRanker(**{**SMALL, **options, "n_epochs": 30, "early_stopping_rounds": 3})
    ranker.fit(train, eval_set=valid)
    history = ranker.validation_scores_
    assert len(history) == ranker.n_epochs_ + 3 < 30
    assert ranker.n_epochs_ == int(np.argmax(history)) + 1
    assert ranker.score(valid) == pytest.approx(history.max(), rel=1e-12)
    alone = rw.NeuralRanker(**{**SMALL, **options, "n_epochs": ranker.n_epochs_}).fit(train)
    assert np.array_equal(alone.weights_, ranker.weights_)
    assert ranker._stopped_at() == {"n_epochs": ranker.n_epochs_, "early_stopping_rounds": None}
    assert alone.validation_scores_ is None


def test_epochs_without_patience_keep_the_best_too(course):
    train, valid, _ = course
    ranker = rw.NeuralRanker(**{**SMALL, "learning_rate": 0.1}).fit(train, eval_set=valid)
    assert len(ranker.validation_scores_) == 6
    assert ranker.score(valid) == pytest.approx(ranker.validation_scores_.max(), rel=1e-12)


def test_a_function_is_a_loss(course):
    train = course[0]

    def mine(y, s, offsets, weight):
        return rw.Squared().derivatives(y, s, offsets, weight)

    assert np.array_equal(fitted(train, loss=mine).weights_, fitted(train, loss="squared").weights_)
    with pytest.raises(ValueError, match="the loss must return a finite gradient for each of the"):
        fitted(train, loss=lambda y, s, offsets, weight: (np.array([1.0]), s))


def test_weights_of_a_query_are_its_repetitions():
    """One step on all queries: weight 2 is the query twice, up to the number it is divided by."""
    queries = rw.make_queries(n_queries=6)
    twice = rw.concatenate([queries, replace(queries, ids=np.arange(100, 106))])
    options = {"n_epochs": 1, "batch_queries": 100, "scale": None}
    double = rw.NeuralRanker(**{**SMALL, **options}).fit(
        queries.X, queries.y, qid=queries.qid, sample_weight=np.full(queries.n_docs, 2.0)
    )
    np.testing.assert_allclose(double.weights_, fitted(twice, **options).weights_, atol=1e-3)


# --- determinism -------------------------------------------------------------------------------


@pytest.mark.parametrize("network", ["mlp", "attention"])
def test_seeds_and_threads(network, course):
    # Batches of several parts, so that two threads have something to share.
    train = rw.make_queries(n_queries=250, rng=3)
    options = {"network": network, "batch_queries": 200, "n_epochs": 3, "dropout": 0.2}
    one = fitted(train, **options)
    before = torch.get_num_threads()
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    two = fitted(train, n_jobs=2, **options)
    assert torch.get_num_threads() == before
    assert torch.equal(torch.random.get_rng_state(), state)
    assert np.array_equal(one.weights_, two.weights_)
    assert np.array_equal(one.predict(train), two.predict(train))
    other = fitted(train, **{**options, "random_state": 1})
    assert not np.array_equal(one.weights_, other.weights_)


def test_parts_hold_every_query_once():
    rng = np.random.default_rng(0)
    for padded in (False, True):
        sizes = rng.integers(1, 900, 40)
        sizes[3] = 5000
        parts = _parts(sizes, padded=padded)
        assert sorted(np.concatenate(parts).tolist()) == list(range(40))
        for part in parts:
            documents = len(part) * sizes[part].max() if padded else sizes[part].sum()
            assert documents <= 2048 or len(part) == 1


# --- networks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sizes", [(5,), (5, 3), (7, 16, 1, 9)])
def test_native_scores_are_those_of_the_network(activation, sizes):
    architecture = Architecture("mlp", sizes, activation)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=architecture.n_weights())
    X = rng.normal(size=(23, sizes[0]))
    with torch.no_grad():
        wanted = _networks.forward(
            architecture,
            torch.tensor(weights),
            torch.tensor(X),
            np.array([0, 23]),
            _networks.no_drop,
        )
    layers, kind = np.array([*sizes, 1]), ACTIVATIONS.index(activation)
    found = _core.network_scores(X, weights, layers, kind)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-11, atol=1e-12)
    # Each row alone, and in any place of a block, to the last bit.
    for i in range(23):
        for j in range(4):
            assert (
                _core.network_scores(X[max(i - j, 0) : i + 1], weights, layers, kind)[-1]
                == found[i]
            )
    many = np.tile(X, (2000, 1))
    for threads in (1, 2):
        assert np.array_equal(
            _core.network_scores(many, weights, layers, kind, threads), np.tile(found, 2000)
        )


def test_native_scores_refuse():
    X = np.ones((2, 3))
    for weights, sizes, kind in [
        (np.ones(4), [2, 1], 0),
        (np.ones(4), [3, 2], 0),
        (np.ones(5), [3, 1], 0),
        (np.ones(3), [3, 1], 0),
        (np.ones(4), [3], 0),
        (np.ones(4), [3, 1], 9),
        (np.ones(4), [3, 1], -1),
        (np.ones(9), [3, 2**62, 1], 0),
        (np.ones(9), [3, -1, 1], 0),
    ]:
        with pytest.raises(ValueError, match="must"):
            _core.network_scores(X, weights, np.array(sizes), kind)
    with pytest.raises(TypeError):
        _core.network_scores(X.astype(np.float32), np.ones(4), np.array([3, 1]), 0)


ATTENTION = Architecture("attention", (4, 8), "relu", heads=2, blocks=2)


def attention_scores(X, offsets, dtype=torch.float64):
    weights = ATTENTION.first_weights(np.random.default_rng(0))
    flat = torch.tensor(weights, dtype=dtype)
    x = torch.tensor(X, dtype=dtype)
    with torch.no_grad():
        return _networks.forward(ATTENTION, flat, x, offsets, _networks.no_drop).numpy()


def test_other_lists_and_padding_change_no_score():
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 30, 12)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(offsets[-1], 4))
    together = attention_scores(X, offsets)
    for a, b in pairwise(offsets):
        alone = attention_scores(X[a:b], np.array([0, b - a]))
        np.testing.assert_allclose(together[a:b], alone, rtol=1e-12, atol=1e-13)
    # And the rest of its own list does.
    cut = attention_scores(X[:3], np.array([0, 3]))
    assert not np.allclose(cut, together[:3])


def test_permuted_documents_have_permuted_scores():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 4))
    order = rng.permutation(20)
    straight = attention_scores(X, np.array([0, 20]))
    np.testing.assert_allclose(
        attention_scores(X[order], np.array([0, 20])), straight[order], rtol=1e-12
    )


def test_attention_equals_a_plain_one():
    """Every step of the network again, list by list and head by head."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9, 4))
    flat = ATTENTION.first_weights(np.random.default_rng(0)).astype(float)
    parts, at = [], 0
    for _, shape in ATTENTION.shapes():
        parts.append(flat[at : at + int(np.prod(shape))].reshape(shape))
        at += int(np.prod(shape))
    left = iter(parts)

    def linear(x):
        return x @ next(left) + next(left)

    def norm(x):
        middle = x - x.mean(axis=1, keepdims=True)
        spread = np.sqrt((middle**2).mean(axis=1, keepdims=True) + 1e-5)
        return middle / spread * next(left) + next(left)

    x = np.maximum(linear(X), 0)
    for _ in range(2):
        q, k, v = np.split(linear(norm(x)), 3, axis=1)
        heads = []
        for h in (slice(0, 4), slice(4, 8)):
            z = np.exp(q[:, h] @ k[:, h].T / np.sqrt(4))
            heads.append(z / z.sum(axis=1, keepdims=True) @ v[:, h])
        x = x + linear(np.concatenate(heads, axis=1))
        x = x + linear(np.maximum(linear(norm(x)), 0))
    expected = linear(norm(x))[:, 0]
    np.testing.assert_allclose(attention_scores(X, np.array([0, 9])), expected, rtol=1e-10)


def test_dropout_widens_what_it_keeps_and_repeats_itself():
    ones = torch.ones(200, 300)
    kept = _networks.dropout(0.25, 7)(ones)
    assert set(np.unique(kept)) == {0.0, np.float32(1 / 0.75)}
    assert float(kept.mean()) == pytest.approx(1, abs=0.01)
    assert torch.equal(_networks.dropout(0.25, 7)(ones), kept)
    assert _networks.dropout(0.0, 7)(ones) is ones


def test_adam_equals_pytorchs():
    rng = np.random.default_rng(0)
    start = torch.tensor(rng.normal(size=5), dtype=torch.float64)
    theirs = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([theirs], lr=0.1, weight_decay=0.3)
    ours = start.clone()
    adam = _networks.Adam(ours, torch.full((5,), 0.3, dtype=torch.float64))
    for _ in range(20):
        gradient = torch.tensor(rng.normal(size=5), dtype=torch.float64)
        adam.step(gradient, 0.1)
        theirs.grad = gradient
        optimizer.step()
    np.testing.assert_allclose(ours, theirs.detach(), rtol=1e-10)


# --- features ----------------------------------------------------------------------------------


def test_scales():
    rng = np.random.default_rng(0)
    X = np.stack([np.exp(rng.normal(0, 3, 5000)), rng.integers(0, 3, 5000), np.full(5000, 7.1)], 1)
    X[::10, 0] = np.nan
    known = ~np.isnan(X[:, 0])
    for kind in ("std", "log1p", "quantile"):
        table = fit_table(kind, X)
        Z = transformed(kind, table, X, slice(None))
        assert np.isfinite(Z).all()
        assert not Z[~known, 0].any()
        assert not Z[:, 2].any() or kind == "quantile"
        order = np.argsort(X[known, 0])
        assert (np.diff(Z[known, 0][order]) >= 0).all()
        for rows in ([7], [3, 7], slice(6, 9)):
            part = transformed(kind, table, X, rows)
            assert np.array_equal(part, Z[rows])
        if kind != "quantile":
            np.testing.assert_allclose(Z[known, 0].mean(), 0, atol=1e-9)
            np.testing.assert_allclose(Z[:, 1].mean(), 0, atol=1e-9)
            np.testing.assert_allclose([Z[known, 0].std(), Z[:, 1].std()], 1, rtol=1e-9)
        sparse = sp.csr_matrix(np.nan_to_num(X))
        dense = fit_table(kind, np.nan_to_num(X))
        assert np.array_equal(fit_table(kind, sparse), dense)
    table = fit_table("log1p", X)
    u = np.log1p(X[known, 0])
    np.testing.assert_allclose(table[:, 0], [u.mean(), 1 / u.std()], rtol=1e-12)
    back = transformed("log1p", table, np.array([[-3.0, 0, 7.1]]), slice(None))
    np.testing.assert_allclose(back[0, 0], (-np.log(4) - u.mean()) / u.std(), rtol=1e-12)


def test_quantiles_are_normal_scores_of_places():
    from scipy.stats import norm, rankdata

    x = np.array([3.0, 1, 1, 2, 9, 9, 9, 4])
    table = fit_table("quantile", x[:, None])
    Z = transformed("quantile", table, x[:, None], slice(None))[:, 0]
    np.testing.assert_allclose(Z, norm.ppf((rankdata(x) - 0.5) / 8), rtol=1e-12)
    outside = transformed("quantile", table, np.array([[-5.0], [1e308]]), slice(None))[:, 0]
    assert outside.tolist() == [Z.min(), Z.max()]
    many = np.random.default_rng(0).normal(size=(20000, 1)) ** 3
    Z = transformed("quantile", fit_table("quantile", many), many, slice(None))[:, 0]
    exact = norm.ppf((rankdata(many[:, 0]) - 0.5) / 20000)
    inside = np.abs(exact) < 2
    assert np.abs(Z - exact)[inside].max() < 0.02


def test_sparse_features_give_the_dense_model(course):
    train = course[0].with_features(np.where(course[0].X > 0, course[0].X, 0))
    dense = fitted(train, batch_queries=4)
    sparse = fitted(train.with_features(sp.csr_matrix(train.X)), batch_queries=4)
    assert np.array_equal(dense.weights_, sparse.weights_)
    assert np.array_equal(dense.predict(train.X), sparse.predict(sp.csr_matrix(train.X)))


def test_missing_values_need_a_scale(course):
    train = course[0]
    X = train.X.copy()
    X[::5, 2] = np.nan
    assert np.isfinite(fitted(train.with_features(X)).predict(X)).all()
    with pytest.raises(ValueError, match="must not hold NaN, since this ranker has no rule"):
        fitted(train.with_features(X), scale=None)


# --- networks of one's own ---------------------------------------------------------------------


def own(n_features):
    return torch.nn.Sequential(
        torch.nn.Linear(n_features, 16),
        torch.nn.BatchNorm1d(16),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.1),
        torch.nn.Linear(16, 1),
    )


class MeanAware(torch.nn.Module):
    """Scores of features less their list's mean."""

    listwise = True

    def __init__(self, n_features):
        super().__init__()
        self.inner = torch.nn.Linear(n_features, 1)

    def forward(self, x, offsets):
        parts = [x[a:b] - x[a:b].mean(0) for a, b in pairwise(offsets)]
        return self.inner(torch.cat(parts))


def test_a_network_of_ones_own(course, tmp_path):
    train, valid, test = course
    state = torch.random.get_rng_state()
    ranker = rw.NeuralRanker(**{**SMALL, "network": own, "metric": "ndcg@5"})
    ranker.fit(train, eval_set=valid)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert ranker.score(test) > 0.7
    assert ranker.score(valid) == pytest.approx(ranker.validation_scores_.max(), rel=1e-12)
    again = rw.NeuralRanker(**{**SMALL, "network": own, "metric": "ndcg@5"}).fit(
        train, eval_set=valid
    )
    assert np.array_equal(again.predict(test), ranker.predict(test))
    with pytest.raises(TypeError, match=r"^save: NeuralRanker\.network must have a form without"):
        ranker.save(tmp_path / "model.rank")
    lists = fitted(train, network=MeanAware, n_epochs=20)
    assert lists.score(test) > 0.5
    with pytest.raises(ValueError, match=r"NeuralRanker\.predict: qid must say"):
        lists.predict(test.X)
    some = test.take(range(3))
    np.testing.assert_allclose(lists.predict(some), lists.predict(test)[: some.n_docs], rtol=1e-5)


def test_networks_that_cannot_be_trained(course):
    train = course[0]
    with pytest.raises(TypeError, match=r"fit: network must return a torch\.nn\.Module, got int"):
        fitted(train, network=lambda n: n)
    with pytest.raises(ValueError, match="network must have parameters to train, got none"):
        fitted(train, network=lambda n: torch.nn.ReLU())
    with pytest.raises(ValueError, match=r"one score per document, got shape \(450, 2\) for 450"):
        fitted(train, network=lambda n: torch.nn.Linear(n, 2))


# --- bad parameters ----------------------------------------------------------------------------

BAD = {
    "network": ({"network": "transformer"}, "network must be one of 'mlp', 'attention', got"),
    "activation": ({"activation": "swish"}, "activation must be one of 'relu'"),
    "scale": ({"scale": "minmax"}, "scale must be one of 'std', 'log1p', 'quantile', got 'minmax'"),
    "hidden": ({"hidden": (8, 0)}, "hidden must be an integer of at least 1, got 0"),
    "heads": (
        {"network": "attention", "hidden": (9,)},
        r"the last of hidden must be a multiple of heads=2 for attention, got hidden=\(9,\)",
    ),
    "no width": ({"network": "attention", "hidden": ()}, "the last of hidden must be a multiple"),
    "dropout": ({"dropout": 1.0}, "dropout must be below 1, got 1.0"),
    "epochs": ({"n_epochs": 0}, "n_epochs must be an integer of at least 1, got 0"),
    "batch": ({"batch_queries": 2.5}, "batch_queries must be an integer of at least 1, got 2.5"),
    "rate": ({"learning_rate": 0}, "learning_rate must be a number above 0, got 0"),
    "decay": ({"weight_decay": -1}, "weight_decay must be a number of at least 0, got -1"),
    "threads": ({"n_jobs": 0}, "n_jobs must be an integer of at least 1, got 0"),
    "patience": ({"early_stopping_rounds": 5}, "early_stopping_rounds=5 needs validation queries"),
    "loss": ({"loss": "listnat"}, "unknown loss 'listnat'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_named(name, course):
    params, text = BAD[name]
    with pytest.raises(ValueError, match=text):
        fitted(course[0], **params)


def test_other_refusals(course):
    train = course[0]
    with pytest.raises(TypeError, match=r"hidden must be a sequence of layer sizes, got 64; one"):
        fitted(train, hidden=64)
    with pytest.raises(ValueError, match="without any force on equal scores; check the labels"):
        fitted(rw.Queries(train.X, np.ones(train.n_docs), train.offsets, train.ids))
    with pytest.raises(ValueError, match="scores must stay finite while the network learns"):
        fitted(train, loss="squared", learning_rate=1e30)


# --- files and life without PyTorch ------------------------------------------------------------

BLOCKED = """
import importlib.abc, sys
class NoTorch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("blocked", name="torch")
sys.meta_path.insert(0, NoTorch())
import numpy as np, rankwise as rw
queries = rw.make_queries(n_queries=20)
ranker = rw.load("model.rank")
np.save("scores.npy", ranker.predict(queries))
assert "torch" not in sys.modules
for call in (lambda: rw.NeuralRanker().fit(queries), lambda: rw.torch_loss("listnet"),
             lambda: rw.load("attention.rank")):
    try:
        call()
    except ModuleNotFoundError as error:
        assert str(error).endswith('need PyTorch, which is not installed; pip install "rankwise[neural]"'), error
    else:
        raise SystemExit("no error")
"""


def test_perceptrons_score_without_pytorch(tmp_path):
    queries = rw.make_queries(n_queries=20)
    ranker = fitted(queries)
    ranker.save(tmp_path / "model.rank")
    fitted(queries, network="attention").save(tmp_path / "attention.rank")
    subprocess.run([sys.executable, "-c", BLOCKED], check=True, cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "scores.npy"), ranker.predict(queries))


@pytest.mark.parametrize(
    "text",
    [
        "mlp(sizes=(6, 99), activation='relu')",
        "mlp(sizes=(6, 16), activation='relux')",
        "mlp(sizes=(6, 16.0), activation='relu')",
        "mlp(sizes=(6, -16), activation='relu')",
        "mlp(sizes=(6, 0), activation='relu')",
        "mlp(sizes=6, activation='relu')",
        "mlp()",
        "conv(sizes=(6, 16), activation='relu')",
        "attention(sizes=(6, 16), activation='relu', heads=3, blocks=2)",
        "attention(sizes=(6, 16), activation='relu', heads=0, blocks=2)",
        "attention(sizes=(6, 16), activation='relu', heads=2, blocks=1000000000)",
        "__import__('os')",
    ],
)
@pytest.mark.parametrize("network", ["mlp", "attention"])
def test_hostile_architectures_are_refused(text, network, tmp_path):
    path = tmp_path / "model.rank"
    fitted(rw.make_queries(n_queries=10), network=network, n_epochs=1).save(path)
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(contents["ranker.json"])
    header["fitted"]["architecture_"] = text
    contents["ranker.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    with pytest.raises(ValueError, match="must be a ranker file written by rankwise"):
        rw.load(path)


def test_forces_are_those_of_one_thread(course):
    """The loss's own threads do not multiply ours; with or without them the forces are equal."""
    lists = course[0]
    scores = np.random.default_rng(0).normal(size=lists.n_docs)
    forces = _Forces("test", "lambdarank")(lists, scores)
    expected = rw.LambdaRank().derivatives(lists.y, scores, lists.offsets)[0]
    assert np.array_equal(forces, expected)


def test_verbose_shows_epochs(course, capsys, monkeypatch):
    import rankwise._progress as progress

    clock = iter(range(0, 10_000, 6))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    train, valid, _ = course
    rw.NeuralRanker(**{**SMALL, "verbose": True}).fit(train, eval_set=valid)
    shown = capsys.readouterr().err
    assert "epoch 2: ndcg@10 ." in shown.replace("0.", ".")
    monkeypatch.undo()
    fitted(train)
    assert capsys.readouterr() == ("", "")


def test_networks_on_the_command_line(tmp_path, capsys, monkeypatch):
    from rankwise.cli import main

    monkeypatch.chdir(tmp_path)
    queries = rw.make_queries(n_queries=40)
    for name, part in {"train": range(20), "valid": range(20, 30), "test": range(30, 40)}.items():
        rw.write_letor(queries.take(part), f"{name}.txt")
    for recipe in ("listnet_mlp", "context"):
        request = f"{recipe}(hidden=(8, 8), n_epochs=3, dropout=0.0, learning_rate=0.01)"
        words = ["train", "train.txt", "--ranker", request, "--valid", "valid.txt"]
        assert main([*words, "--output", "m.rw"]) == 0
        assert main(["predict", "m.rw", "test.txt", "--output", "scores.txt"]) == 0
        test = rw.read_letor("test.txt")
        expected = rw.load("m.rw").predict(test)
        np.testing.assert_allclose(np.loadtxt("scores.txt"), test.in_input_order(expected))
    rankers = f"random,{request}"
    files = ["compare", "train.txt", "--valid", "valid.txt", "--test", "test.txt"]
    assert main([*files, "--rankers", rankers, "--metrics", "ndcg@5"]) == 0
    assert "context(hidden=(8, 8)" in capsys.readouterr().out
