"""Searches: what they try, what they keep, how they go on from a file."""

from __future__ import annotations

import builtins
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold

import rankwise as rw
from rankers import RANKERS
from rankwise._study import Study
from rankwise.cli import main
from rankwise.space import Range, parse_space

TREES = "lambdamart(n_estimators=15, early_stopping_rounds=5)"


@pytest.fixture(scope="module")
def parts():
    return rw.make_queries(n_queries=60, n_docs=10).split((0.5, 0.3, 0.2))


def results(tuned):
    """Everything of a search that must not depend on how it ran."""
    return [(t.number, t.params, t.value, t.per_query.tobytes(), t.stopped) for t in tuned.trials]


# --- ranges ----------------------------------------------------------------------------------


@given(
    low=st.floats(1e-6, 10), width=st.floats(1e-3, 1e3), log=st.booleans(), seed=st.integers(0, 99)
)
def test_draws_stay_inside_and_are_spread(low, width, log, seed):
    r = Range(low, low + width, log=log)
    drawn = r.rvs(200, random_state=seed)
    assert all(v in r for v in drawn)
    middle = np.sqrt(r.low * r.high) if log else (r.low + r.high) / 2
    assert 60 < (drawn < middle).sum() < 140


def test_whole_numbers_are_equally_likely_up_to_both_ends():
    counts = np.bincount(Range(3, 6, integer=True).rvs(40_000, random_state=0), minlength=7)
    assert counts[:3].sum() == 0
    np.testing.assert_allclose(counts[3:], 10_000, rtol=0.05)
    logs = np.bincount(Range(1, 8, log=True, integer=True).rvs(40_000, random_state=0))
    share = np.diff(np.log(np.arange(0.5, 9))) / np.log(8.5 / 0.5)
    np.testing.assert_allclose(logs[1:] / 40_000, share, atol=0.01)


def test_values_of_a_range():
    assert Range(1e-2, 1e4, log=True).values(7) == tuple(10.0**e for e in range(-2, 5))
    assert Range(0, 1).values(3) == (0.0, 0.5, 1.0)
    assert Range(1, 3, integer=True).values(9) == (1, 2, 3)


@pytest.mark.parametrize(
    "r", [Range(1e-3, 5), Range(0.5, 2.5, log=True), Range(4, 64, log=True, integer=True)]
)
def test_range_text_round_trip(r):
    assert Range.parse(str(r)) == r


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Range(2, 1), "low must be below high"),
        (lambda: Range(0, 1, log=True), "low must be above 0 when log=True"),
        (lambda: Range(0.5, 3, integer=True), "low must be"),
        (lambda: Range(1, float("inf")), "must be"),
        (lambda: Range.parse("1..2 linear"), "must have the form LOW..HIGH"),
        (lambda: Range.parse("a..b"), "must have the form LOW..HIGH"),
        (lambda: parse_space(["alpha"]), "must have the form NAME=LOW..HIGH"),
        (lambda: Range(1, 2).values(1), "n must be"),
    ],
)
def test_bad_ranges(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_space_from_text():
    assert parse_space(["C=1e-3..10 log", "scale=None,std", "loss=lambdarank(metric='ap'),listnet"]) == {
        "C": Range(1e-3, 10, log=True),
        "scale": (None, "std"),
        "loss": ("lambdarank(metric='ap')", "listnet"),
    }  # fmt: skip


# --- the seam --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RANKERS)
def test_fits_that_share_work_are_the_same_fits(name, parts):
    """A second fit with what the first one left behind predicts what a fit alone does, to the last bit."""
    from sklearn.base import clone

    train, valid, test = parts
    alone = clone(RANKERS[name]).fit(train, eval_set=valid)
    shared: dict = {}
    for _ in range(2):
        ranker = clone(RANKERS[name]).fit_in_search(train, valid, shared)
        np.testing.assert_array_equal(ranker.predict(test), alone.predict(test))
    assert ranker.n_features_in_ == train.n_features


# --- what is tried and kept ------------------------------------------------------------------


def test_grid_is_the_loop_one_would_write(parts):
    train, valid, _ = parts
    space = {"scale": [None, "std"], "C": [1e-3, 1e-1, 10.0]}
    tuned = rw.tune(rw.RankSVM(), train, valid, space=space, method="grid", metric="ap")
    by = rw.parse_metric("ap")
    loop = []
    for scale in space["scale"]:
        for C in space["C"]:
            model = rw.RankSVM(C=C, scale=scale).fit(train)
            loop.append(
                ({"scale": scale, "C": C}, by.mean(valid.y, model.predict(valid), qid=valid.groups))
            )
    assert [t.params for t in tuned.trials] == [p for p, _ in loop]
    np.testing.assert_allclose([t.value for t in tuned.trials], [v for _, v in loop], atol=1e-12)
    assert tuned.params == max(loop, key=lambda row: row[1])[0]
    expected = rw.RankSVM(**tuned.params).fit(train)
    np.testing.assert_allclose(tuned.model.coef_, expected.coef_, rtol=1e-3, atol=1e-4)
    assert tuned.model.metric == by


@pytest.mark.parametrize("method", ["random", "tpe"])
def test_the_kept_ranker_is_the_one_its_text_makes(method, parts):
    train, valid, _ = parts
    tuned = rw.tune(TREES, train, valid, method=method, n_trials=4, random_state=3)
    again = rw.make_ranker(tuned.chosen).set_params(random_state=3)
    again.fit(train, eval_set=valid)
    np.testing.assert_array_equal(tuned.model.predict(valid), again.predict(valid))
    assert tuned.model.score(valid) == tuned.value
    assert tuned.value == max(t.value for t in tuned.trials)


@pytest.mark.parametrize("method", ["random", "tpe"])
def test_draws_come_from_the_space_and_start_with_the_defaults(method, parts):
    train, valid, _ = parts
    tuned = rw.tune(TREES, train, valid, method=method, n_trials=6)
    for trial in tuned.trials:
        assert list(trial.params) == list(tuned.space)
        for name, value in trial.params.items():
            assert value in tuned.space[name]
    first = tuned.trials[0].params
    assert (
        first["num_leaves"] == 31 and first["learning_rate"] == 0.1 and first["reg_lambda"] == 1e-3
    )
    assert len({repr(t.params) for t in tuned.trials}) == 6


def test_equal_seeds_equal_searches_and_others_differ(parts):
    train, valid, _ = parts
    one, two, other = (
        rw.tune("ranksvm", train, valid, method="random", n_trials=4, random_state=s)
        for s in (1, 1, 2)
    )
    assert results(one) == results(two)
    assert results(one) != results(other)


def test_folds_measure_every_query_by_a_ranker_that_has_not_seen_it(parts):
    train = parts[0]
    tuned = rw.tune(
        rw.RankSVM(), train, cv=3, space={"C": [0.01, 1.0]}, method="grid", metric="ndcg@5"
    )
    assert tuned.n_folds == 3 and tuned.n_queries == train.n_queries
    by = rw.parse_metric("ndcg@5")
    for trial in tuned.trials:
        values = []
        for rows, tested in rw.QueryKFold(3).split(train.X, qid=train.qid):
            model = rw.RankSVM(**trial.params).fit(
                train.X[rows], train.y[rows], qid=train.qid[rows]
            )
            values.append(
                by.per_query(train.y[tested], model.predict(train.X[tested]), qid=train.qid[tested])
            )
        assert trial.value == pytest.approx(np.nanmean(np.concatenate(values)), abs=1e-9)
    alone = rw.RankSVM(**tuned.params).fit(train)
    np.testing.assert_array_equal(tuned.model.coef_, alone.coef_)


def test_one_choice_for_published_folds(parts):
    queries = rw.concatenate(list(parts))
    folds = [(train, valid) for train, valid, _ in queries.folds(3)]
    tuned = rw.tune(rw.RankSVM(), folds, space={"C": [0.01, 1.0]}, method="grid", metric="ap")
    assert tuned.n_folds == 3 and tuned.n_queries == 60 and tuned.model is None
    by = rw.parse_metric("ap")
    for trial in tuned.trials:
        values = [
            by.per_query(
                valid.y, rw.RankSVM(**trial.params).fit(train).predict(valid), qid=valid.groups
            )
            for train, valid in folds
        ]
        np.testing.assert_allclose(trial.per_query, np.concatenate(values), atol=1e-9)
    with pytest.raises(ValueError, match="must hold different queries, got 36 in both"):
        rw.tune("ranksvm", [(queries.take(range(36)), queries)], method="grid")
    with pytest.raises(ValueError, match="a list of folds must come alone"):
        rw.tune("ranksvm", folds, cv=3, method="grid")
    with pytest.raises(TypeError, match="folds must be pairs"):
        rw.tune("ranksvm", [queries], method="grid")


def test_after_folds_trees_stop_where_the_folds_stopped(parts):
    train = parts[0]
    tuned = rw.tune(TREES, train, cv=3, method="random", n_trials=2)
    rounds = [s["n_estimators"] for s in tuned.best.stopped]
    assert len(rounds) == 3 and min(rounds) >= 1
    assert tuned.model.n_estimators == round(np.mean(rounds))
    assert tuned.model.early_stopping_rounds is None
    assert rw.tune(TREES, train, cv=3, method="random", n_trials=1, refit=False).model is None


def test_any_splitter_of_whole_queries(parts):
    train = parts[0]
    space = {"C": [0.1]}
    tuned = rw.tune(rw.RankSVM(), train, cv=GroupKFold(2), space=space, method="grid")
    assert tuned.n_folds == 2
    # scikit-learn warns that KFold does not look at groups.
    with (
        pytest.raises(ValueError, match="cv must not cut queries apart, got KFold"),
        pytest.warns(UserWarning, match="groups"),
    ):
        rw.tune(rw.RankSVM(), train, cv=KFold(4), space=space, method="grid")


def test_weights_of_queries_count(parts):
    train, valid, _ = parts
    weight = np.repeat(np.where(np.arange(valid.n_queries) < 3, 5.0, 0.1), valid.sizes)
    weighted = rw.Queries(valid.X, valid.y, valid.offsets, valid.ids, weight=weight)
    tuned = rw.tune("ranksvm", train, weighted, method="random", n_trials=2)
    assert tuned.value == tuned.model.score(weighted)
    assert tuned.value != pytest.approx(np.nanmean(tuned.best.per_query))
    assert tuned.interval is None


def test_the_interval_is_that_of_the_best_values(parts):
    train, valid, _ = parts
    tuned = rw.tune("ranksvm", train, valid, method="random", n_trials=3)
    assert tuned.interval == rw.bootstrap_interval(tuned.best.per_query)
    assert tuned.interval.low <= tuned.value <= tuned.interval.high
    assert f"{tuned.value:.4f} [{tuned.interval.low:.4f}" in str(tuned)


def test_a_small_space_is_used_up(parts):
    train, valid, _ = parts
    for method in ("random", "tpe"):
        tuned = rw.tune(
            rw.RankSVM(), train, valid, space={"C": [0.1, 1.0, 10.0]}, method=method, n_trials=20
        )
        assert sorted(t.params["C"] for t in tuned.trials) == [0.1, 1.0, 10.0]


def test_timeout_starts_no_further_trial(parts):
    train, valid, _ = parts
    assert len(rw.tune("ranksvm", train, valid, method="random", timeout=0).trials) == 1


def test_tpe_draws_closer_to_the_best_than_chance(parts):
    """On a smooth function of one parameter TPE's later draws crowd where values are high."""

    class Peak(rw.RandomRanker):
        def __init__(self, place=0.0, *, random_state=0, metric="ndcg@10"):
            super().__init__(random_state=random_state, metric=metric)
            self.place = place

        def _score(self, X):
            # Right for the labels' order by the first feature, spoiled away from 3.
            noise = super()._score(X)
            return X[:, 0] + abs(self.place - 3.0) * noise * np.ptp(X[:, 0])

    train, valid, _ = parts
    distance = {}
    for method in ("random", "tpe"):
        tuned = rw.tune(
            Peak(), train, valid, space={"place": Range(-10, 10)}, method=method, n_trials=40
        )
        distance[method] = np.mean([abs(t.params["place"] - 3) for t in tuned.trials[20:]])
    assert distance["tpe"] < 0.6 * distance["random"]


def test_what_a_ranker_refuses_is_a_failed_trial(parts):
    train, valid, _ = parts
    tuned = rw.tune(rw.RankSVM(), train, valid, space={"C": [1.0, -1.0, 0.1]}, method="grid")
    assert [bool(t.error) for t in tuned.trials] == [False, True, False]
    assert "C must be" in tuned.trials[1].error and np.isnan(tuned.trials[1].value)
    assert "1 trials failed" in str(tuned)
    with pytest.raises(ValueError, match="C must be"):
        rw.tune(rw.RankSVM(), train, valid, space={"C": [-1.0, -2.0]}, method="grid")


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"ranker": "rangsvm"}, ValueError, "unknown ranker 'rangsvm'"),
        ({"ranker": 3}, TypeError, "name of a recipe or a Ranker, got int"),
        ({"ranker": rw.RankSVM()}, ValueError, "space must be given for a ranker of your own"),
        ({"method": "bayes"}, ValueError, "method must be one of 'tpe', 'random', 'grid'"),
        ({"space": {"c": [1]}}, ValueError, "unknown parameter to search 'c'"),
        ({"space": {"C": []}}, ValueError, "a list of at least one value"),
        ({"space": {"C": "std"}}, ValueError, "a list of at least one value"),
        ({"space": [1]}, TypeError, "space must be a dictionary"),
        ({"space": {"C": Range(1, 2)}, "method": "grid"}, ValueError, "must be lists of values"),
        ({"ranker": "ranksvm(C=1)", "space": {"C": [1]}}, ValueError, "C must be fixed or searched"),
        ({"method": "grid", "n_trials": 3}, ValueError, "n_trials must be left out for a grid"),
        ({"n_trials": 0}, ValueError, "n_trials must be"),
        ({"timeout": -1}, ValueError, "timeout must be"),
        ({"random_state": -1}, ValueError, "random_state must be"),
        ({"cv": 3}, ValueError, "valid and cv must not be given together"),
        ({"valid": None, "cv": 1}, ValueError, "cv must be"),
        ({"train": 3}, TypeError, "train must be a Queries"),
        ({"metric": "ndgc"}, ValueError, "unknown metric"),
    ],
)  # fmt: skip
def test_bad_input(options, error, sentence, parts):
    arguments = {"ranker": "ranksvm", "train": parts[0], "valid": parts[1], "method": "random"}
    with pytest.raises(error, match=sentence):
        rw.tune(**{**arguments, **options})


def test_distributions_of_scipy_are_for_random_search(parts):
    from scipy.stats import loguniform

    train, valid, _ = parts
    space = {"C": loguniform(1e-3, 1)}
    tuned = rw.tune(rw.RankSVM(C=0.5), train, valid, space=space, method="random", n_trials=3)
    assert tuned.trials[0].params["C"] == 0.5
    assert all(1e-3 <= t.params["C"] <= 1 for t in tuned.trials)
    with pytest.raises(TypeError, match="use method='random'"):
        rw.tune(rw.RankSVM(), train, valid, space=space, method="tpe")


def test_without_optuna_the_extra_is_named(parts, monkeypatch):
    real = builtins.__import__

    def absent(name, *args, **kwargs):
        if name == "optuna":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=r"pip install \"rankwise\[tune\]\""):
        rw.tune("ranksvm", parts[0], parts[1], n_trials=2)
    assert len(rw.tune("ranksvm", *parts[:2], method="random", n_trials=2).trials) == 2


def test_importing_and_random_search_leave_optuna_alone():
    code = (
        "import sys, rankwise as rw; tr, va = rw.make_queries(n_queries=20).split([.5, .5]); "
        "rw.tune('ranksvm', tr, va, method='random', n_trials=2); "
        "sys.exit('optuna' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_trials_as_an_optuna_study(parts):
    import optuna

    tuned = rw.tune(TREES, *parts[:2], method="random", n_trials=3)
    study = tuned.to_optuna()
    assert study.best_value == tuned.value
    assert study.best_trial.params == tuned.params
    assert optuna.logging.get_verbosity() == optuna.logging.INFO


# --- going on from a file --------------------------------------------------------------------


@pytest.mark.parametrize("method", ["random", "tpe"])
def test_stopped_and_resumed_is_as_if_it_ran_through(method, parts, tmp_path):
    train, valid, _ = parts
    through = rw.tune(TREES, train, valid, method=method, n_trials=14)
    path = tmp_path / "study.db"
    for n in (3, 13, 14):
        parted = rw.tune(TREES, train, valid, method=method, n_trials=n, study=path)
    assert results(parted) == results(through)
    np.testing.assert_array_equal(parted.model.predict(valid), through.model.predict(valid))


def test_a_finished_search_is_read_without_a_fit_but_the_last(parts, tmp_path, monkeypatch):
    train, valid, _ = parts
    path = tmp_path / "s.db"
    first = rw.tune("ranksvm", train, valid, method="random", n_trials=5, study=path)
    fits = []
    real = rw.RankSVM.fit_in_search
    monkeypatch.setattr(
        rw.RankSVM, "fit_in_search", lambda self, *a: (fits.append(1), real(self, *a))[1]
    )
    again = rw.tune("ranksvm", train, valid, method="random", n_trials=5, study=path)
    assert results(again) == results(first)
    assert len(fits) == 1
    assert [t.seconds for t in again.trials] == [t.seconds for t in first.trials]
    fewer = rw.tune("ranksvm", train, valid, method="random", n_trials=2, study=path, refit=False)
    assert results(fewer) == results(first)[:2]


def test_losses_and_tuples_come_back_from_a_file(parts, tmp_path):
    train, valid, _ = parts
    space = {"loss": [rw.RankNet(sigma=2), rw.ListNet()], "alpha": [1.0]}
    path = tmp_path / "s.db"
    for _ in range(2):
        tuned = rw.tune(rw.LinearRanker(), train, valid, space=space, method="grid", study=path)
        assert [t.params["loss"] for t in tuned.trials] == space["loss"]


def test_a_study_refuses_other_searches(parts, tmp_path):
    train, valid, test = parts
    path = tmp_path / "s.db"
    common = {"method": "random", "n_trials": 2, "study": path}
    rw.tune("ranksvm", train, valid, **common)
    for other, sentence in [
        ({"metric": "ap"}, "a search with metric ndcg@10, wanted ap"),
        ({"random_state": 1}, "a search with random_state 0, wanted 1"),
        ({"ranker": "ranknet"}, "a search with ranker ranksvm, wanted ranknet"),
        ({"valid": test}, "a search on other data"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            rw.tune(**{"ranker": "ranksvm", "train": train, "valid": valid, **common, **other})


def test_bad_study_files(parts, tmp_path):
    train, valid, _ = parts

    def search(path):
        rw.tune("ranksvm", train, valid, method="random", n_trials=1, study=path)

    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(ValueError, match="a study must be a SQLite file"):
        search(tmp_path / "text.db")
    with sqlite3.connect(tmp_path / "other.db") as file:
        file.execute("CREATE TABLE shop (price REAL)")
    file.close()
    with pytest.raises(ValueError, match="got a database of something else"):
        search(tmp_path / "other.db")
    with pytest.raises(OSError, match="cannot read or write the study"):
        search(tmp_path / "nowhere" / "s.db")
    held = sqlite3.connect(tmp_path / "held.db")
    held.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ValueError, match="one search at a time"):
        search(tmp_path / "held.db")
    held.close()


# --- the comparison around it ----------------------------------------------------------------


def test_a_search_nested_in_a_comparison_never_sees_the_test_queries(parts):
    train, valid, test = parts
    outcomes = []
    for part in (test, test.with_features(test.X[::-1].copy())):
        experiment = rw.run_experiment(
            ["ranksvm", TREES], [rw.Fold(train, valid, part)], ["ndcg@5"],
            method="random", n_trials=3,
        )  # fmt: skip
        outcomes.append([o.choices[0] for o in experiment.outcomes])
    for one, other in zip(*outcomes, strict=True):
        assert one.params == other.params and one.value == other.value and one.tried == 3
    alone = rw.tune("ranksvm", train, valid, method="random", n_trials=3, metric="ndcg@5")
    assert outcomes[0][0].params == alone.params


def test_choose_by_grid_random_and_not_at_all(parts):
    train, valid, _ = parts
    assert rw.choose("ranksvm", train, valid, "ap").tried == 16
    assert rw.choose("ranksvm", train, valid, "ap", method="random", n_trials=2).tried == 2
    assert rw.choose("ranksvm", train, valid, "ap", tune=False).params == {}
    assert rw.choose("random", train, valid, "ap", method="random").tried == 1


def test_a_search_without_validation_queries_is_refused(parts):
    train, valid, test = parts
    for fold, options in [
        (rw.Fold(train, None, test), {"method": "random"}),
        (rw.Fold(train, None, test), {"n_trials": 3}),
        (rw.Fold(train, valid, test), {"method": "tpe", "tune": False}),
    ]:
        with pytest.raises(ValueError, match="method and n_trials are for a search"):
            rw.run_experiment(["ranksvm"], [fold], ["ap"], **options)


def test_trials_share_their_bins(parts, monkeypatch):
    import rankwise.trees as trees

    made = []
    real = trees.in_bins
    monkeypatch.setattr(trees, "in_bins", lambda *a: (made.append(1), real(*a))[1])
    rw.tune(TREES, *parts[:2], method="random", n_trials=4)
    assert len(made) == 2  # training and validation queries, once


@pytest.mark.parametrize("ranker", [rw.LinearRanker("ranknet"), rw.RankSVM(scale="std")])
def test_a_grid_walks_along_the_penalties(ranker, parts):
    """Each fit starts where the one before it ended: fewer steps, the same models."""
    train, valid, _ = parts
    name, values = next(
        (n, v)
        for n, v in {"alpha": [30.0, 10.0, 3.0, 1.0], "C": [1e-2, 3e-2, 0.1, 0.3]}.items()
        if n in ranker.get_params()
    )
    steps: dict[bool, list[int]] = {True: [], False: []}
    seen = {}
    real = type(ranker)._solve

    def solve(self, problem, *rest):
        real(self, problem, *rest)
        steps[self.warm_start].append(self.n_iter_)
        seen[self.warm_start, getattr(self, name)] = self.coef_

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(ranker), "_solve", solve)
        tuned = rw.tune(ranker, train, valid, space={name: values}, method="grid")
        for value in values:
            sklearn.base.clone(ranker).set_params(**{name: value}).fit(train)
    assert len(steps[True]) == len(values) - 1  # the first one starts from zero
    assert sum(steps[True]) < sum(steps[False][-len(values) + 1 :])
    for value in values[1:]:
        np.testing.assert_allclose(seen[True, value], seen[False, value], rtol=0.02, atol=2e-3)
    assert tuned.model.warm_start is False


def test_progress_counts_every_fit(parts):
    seen = []
    rw.run_experiment(
        ["ranksvm", "random"], [rw.Fold(*parts)], ["ap"], method="random", n_trials=3,
        progress=lambda done, total, text: seen.append((done, total)),
    )  # fmt: skip
    assert seen == [(0, 6), (1, 6), (2, 6), (3, 6), (6, 6)]


# --- the command -----------------------------------------------------------------------------


def letor(queries):
    lines = []
    for label, qid, row in zip(queries.y, queries.qid, queries.X.tolist(), strict=True):
        features = " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
        lines.append(f"{label:g} qid:{qid} {features}\n")
    return "".join(lines)


@pytest.fixture
def files(tmp_path, monkeypatch, parts):
    monkeypatch.chdir(tmp_path)
    for name, part in zip(("train", "vali", "test"), parts, strict=True):
        Path(f"{name}.txt").write_text(letor(part))
    return tmp_path


def run(capsys, *words):
    code = main([str(w) for w in words])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_tune_on_the_command_line(capsys, files):
    words = (
        "tune", "train.txt", TREES, "--valid", "vali.txt", "--trials", "4", "--study", "s.db",
        "-o", "model.rw", "--picture", "p.png",
    )  # fmt: skip
    code, out, err = run(capsys, *words)
    assert code == 0, err
    assert "4 trials (tpe)" in out and "best" in out and "model:   model.rw" in out
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")
    code, text, _ = run(capsys, *words, "--json")
    result = json.loads(text)
    train, valid = rw.read("train.txt"), rw.read("vali.txt")
    expected = rw.tune(TREES, train, valid, n_trials=4)
    assert result["params"] == expected.params and result["value"] == expected.value
    assert result["chosen"] in out
    assert rw.load("model.rw").score(valid) == expected.value
    assert [t["value"] for t in result["trials"]] == [t.value for t in expected.trials]


def test_tune_by_folds_and_a_space_of_ones_own(capsys, files):
    code, out, err = run(
        capsys, "tune", "train.txt", "ranknet", "--cv", "3", "--method", "random", "--trials", "3",
        "--space", "alpha=1e-1..1e2 log", "--space", "scale=None,std", "--metric", "ap", "--json",
    )  # fmt: skip
    assert code == 0, err
    result = json.loads(out)
    assert result["folds"] == 3 and result["model"] is None and result["queries"] == 30
    assert all(0.1 <= t["params"]["alpha"] <= 100 for t in result["trials"])
    assert result["space"] == {"alpha": "0.1..100 log", "scale": [None, "std"]}


def test_tune_a_folder_of_folds(capsys, files, parts):
    Path("letor").mkdir()
    for i, part in enumerate(parts, 1):
        Path(f"letor/S{i}.txt").write_text(letor(part))
    code, out, err = run(
        capsys, "tune", "letor", "ranksvm(scale=None)", "--method", "grid", "--json"
    )
    assert code == 0, err
    result = json.loads(out)
    assert result["folds"] == 3 and result["queries"] == 60 and len(result["trials"]) == 8
    code, _, err = run(capsys, "tune", "letor", "ranksvm", "-o", "model.rw")
    assert code == 2 and "must not be given together" in err


def test_compare_searches_in_each_fold(capsys, files):
    code, out, err = run(
        capsys, "compare", "train.txt", "--valid", "vali.txt", "--test", "test.txt", "--rankers",
        "ranksvm,random", "--metrics", "ap", "--method", "random", "--trials", "3",
    )  # fmt: skip
    assert code == 0, err
    assert "by random draws from the ranges" in out and "ranksvm: 3 combinations, kept" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nope"], "unknown ranker 'nope'"),
        (["ranksvm", "--space", "C"], "must have the form NAME=LOW..HIGH"),
        (["ranksvm", "--space", "gamma=1,2"], "unknown parameter to search 'gamma'"),
        (["ranksvm", "--method", "grid", "--trials", "3"], "n_trials must be left out for a grid"),
        (["ranksvm", "--picture", "p.bmp"], "must end in .png, .svg or .pdf"),
        (["ranksvm", "--cv", "99", "--trials", "1"], "n_splits must be at most"),
        (["ranksvm", "--cv", "3", "--valid", "vali.txt"], "valid and cv must not be given together"),
        (["ranksvm", "--study", "no/s.db", "--trials", "1"], "no/s.db: cannot read or write"),
    ],
)  # fmt: skip
def test_bad_words_get_a_sentence(capsys, files, words, sentence):
    code, out, err = run(capsys, "tune", "train.txt", *words)
    assert code == 2 and out == ""
    assert sentence in err and err.count("\n") == 1


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_search_that_is_killed_loses_nothing_that_was_finished(capsys, files, stop):
    """Interrupted in the middle and started again, it ends with the very trials of one that ran through."""
    ranker = "lambdamart(n_estimators=40)"
    words = ["tune", "train.txt", ranker, "--cv", "3", "--method", "random", "--trials", "24", "--json"]  # fmt: skip
    Study("empty.db", {}).close()
    empty = Path("empty.db").stat().st_size
    command = [sys.executable, "-m", "rankwise", *words, "--study", "s.db"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip

    def finished():
        """Several trials: the running search keeps its file to itself, but that grows."""
        return Path("s.db").exists() and Path("s.db").stat().st_size > empty

    deadline = time.monotonic() + 60
    while not finished() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(stop)
    out, err = process.communicate(timeout=60)
    if stop == signal.SIGINT:
        assert process.returncode == 130
        assert out == "" and "rankwise: interrupted" in err and "kept in s.db" in err
    with sqlite3.connect("s.db") as file:
        (kept,) = file.execute("SELECT count(*) FROM trial").fetchone()
    file.close()
    assert 0 < kept < 24
    code, text, _ = run(capsys, *words, "--study", "s.db")
    assert code == 0
    resumed = json.loads(text)
    _, text, _ = run(capsys, *words)
    through = json.loads(text)
    for result in (resumed, through):
        for trial in result["trials"]:
            trial.pop("seconds")
    assert resumed["trials"] == through["trials"]
    assert resumed["params"] == through["params"] and resumed["value"] == through["value"]


def test_picture_of_a_search(parts, tmp_path):
    tuned = rw.tune(TREES, *parts[:2], method="random", n_trials=6)
    figure = tuned.plot(path=tmp_path / "search.svg")
    names = [axes.get_xlabel() for axes in figure.axes]
    varied = [n for n in tuned.space if len({repr(t.params[n]) for t in tuned.trials}) > 1]
    assert names == ["trial", *varied]
    assert "learning_rate" in names and "n_estimators" not in names
    for axes, name in zip(figure.axes[1:], varied, strict=True):
        if name == "loss":
            continue
        drawn = axes.get_lines()[0].get_xdata()
        np.testing.assert_array_equal(drawn, [t.params[name] for t in tuned.trials])
    one = rw.tune(rw.RankSVM(), *parts[:2], space={"C": [1.0]}, method="grid")
    assert [axes.get_xlabel() for axes in one.plot().figure.axes] == ["trial"]
    with pytest.raises(ValueError, match=r"must end in .png, .svg or .pdf"):
        tuned.plot(path="search.gif")
