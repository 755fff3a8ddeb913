"""Retargeting studied: simulations, MQ2008's rank lists with features, features as experts, labels.

Prints the tables of docs/retarget.md. Real data: RANKWISE_DATA (../shared/data unless set).

    python benchmarks/study_retarget.py [simulations] [many] [lists] [coverage] [experts] [supervised]
"""

from __future__ import annotations

import csv
import itertools
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import rankwise as rw
from rankwise._rank_scores import (
    agreement_means,
    borda_means,
    prepare,
    query_means,
)

DATA = Path(os.environ.get("RANKWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEEDS = int(os.environ.get("SEEDS", "10"))
warnings.simplefilter("ignore")


# --- methods ----------------------------------------------------------------------------------


def first_component(Z, seen, offsets):
    """Scores on the first principal component of the standardised places, missing entries 0."""
    _values, vectors = np.linalg.eigh(Z.T @ Z)
    v = vectors[:, -1]
    return Z @ (v if v.sum() >= 0 else -v)


def regressed(target, X, offsets):
    """Ridge regression of a consensus on the features, query by query centred."""
    X = X - query_means(X, offsets)
    deviation = X.std(axis=0)
    X = X[:, deviation > 0] / deviation[deviation > 0]
    t = target - query_means(target, offsets)
    return X @ np.linalg.solve(X.T @ X + 1e-3 * len(X) * np.eye(X.shape[1]), X.T @ t)


def methods(X, R, offsets, missing, *, slow=True):
    """Name -> scores, of every aggregator compared."""
    qid = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    absent = {"ignore": "skip", "last": "last"}[missing]
    evidence = prepare(R, offsets, missing=missing, scores="rank")
    means = borda_means(evidence)
    out = {
        "Borda": means,
        "CombMNZ": rw.comb_mnz(R, qid=qid, norm="minmax"),
        "RRF": rw.rrf(R, qid=qid, missing=absent),
    }
    if slow:
        out["MC4"] = rw.mc4(R, qid=qid, missing=absent)
    out["first PC"] = first_component(evidence.Z, evidence.seen, offsets)
    out["reweighted"] = agreement_means(evidence, means)
    out["Borda on X"] = regressed(means, X, offsets)

    def fit(features=X, **options):
        return rw.RetargetedAggregation(missing=missing, max_iter=300, **options).fit(
            features, R, qid=qid
        )

    permutation, factorised = fit(method="permutation"), fit(posterior="factorised")
    joint, signed, alone = fit(), fit(signed=True), fit(None)
    out["B"] = permutation.scores_
    out["C factorised"] = factorised.scores_
    out["C"], out["C, X only"] = joint.scores_, joint.candidates_["features"]
    out["C, zbar"] = joint.candidates_["zbar"]
    out["C signed"], out["C without X"] = signed.scores_, alone.scores_
    return out


def heading(title, names):
    print(
        f"\n{title}\n\n| setting | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|"
    )


def row(setting, values, digits):
    """Mean and standard error (in the last digit) of every method."""
    cells = []
    for x in map(np.array, values.values()):
        cell = f"{x.mean():.{digits}f}".replace("0.", ".", 1)
        if len(x) > 1:
            cell += f" ({round(10**digits * x.std(ddof=1) / np.sqrt(len(x)))})"
        cells.append(cell)
    print(f"| {setting} | " + " | ".join(cells) + " |", flush=True)


def table(title, rows, digits=3):
    """Rows of (setting, {method: values}), printed as they come."""
    for number, (setting, values) in enumerate(rows):
        if number == 0:
            heading(title, values)
        row(setting, values, digits)


# --- simulations --------------------------------------------------------------------------------


def simulated(rng, kind, n, n_queries, bad, reverse, gone, p=20, d=5):
    N = n * n_queries
    X = rng.normal(size=(N, d))
    linear = X @ rng.normal(size=d)
    linear /= linear.std()
    noise = rng.normal(size=N)
    truth = {"linear": linear, "half": (linear + noise) / np.sqrt(2), "useless": noise}[kind]
    R = truth[:, None] + 1.5 * rng.normal(size=(N, p))
    R[:, :bad] = rng.normal(size=(N, bad))
    R[:, p - reverse :] *= -1
    R[rng.random((N, p)) < gone] = np.nan
    return X, R, truth, np.arange(n_queries + 1) * n


def tau(score, truth, offsets):
    from scipy.stats import kendalltau

    values = [kendalltau(score[a:b], truth[a:b]).statistic for a, b in itertools.pairwise(offsets)]
    return float(np.nan_to_num(np.mean(values)))


def simulate(title, settings, seeds):
    table(title, simulated_rows(settings, seeds))


def simulated_rows(settings, seeds):
    for kind, n, n_queries, bad, reverse, gone in settings:
        found = {}
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            X, R, truth, offsets = simulated(rng, kind, n, n_queries, bad, reverse, gone)
            for name, score in methods(X, R, offsets, "ignore", slow=n_queries == 1).items():
                found.setdefault(name, []).append(tau(score, truth, offsets))
        words = f"{kind}, {n} x {n_queries}, {bad} bad" + f", {reverse} reversed" * bool(reverse)
        yield words + f", {gone:.0%} missing" * bool(gone), found


def simulations():
    cases = [(0, 0, 0), (10, 0, 0), (15, 0, 0), (18, 0, 0), (5, 5, 0), (5, 0, 0.7), (5, 0, 0.9)]
    settings = [(k, 60, 1, *c) for k in ("linear", "half", "useless") for c in cases]
    simulate("Kendall tau with the truth, one query of 60", settings, SEEDS)


def many():
    cases = [(0, 0, 0), (15, 0, 0), (18, 0, 0), (10, 0, 0.9)]
    settings = [(k, 20, 200, *c) for k in ("linear", "half", "useless") for c in cases]
    simulate("Kendall tau with the truth, 200 queries of 20", settings, max(SEEDS // 4, 2))


# --- MQ2008 -------------------------------------------------------------------------------------


def mq2008():
    """Features, labels, offsets and the lists of MQ2008-agg on the same documents."""
    parts = [rw.read_letor(DATA / f"letor4/MQ2008/S{i}.txt") for i in range(1, 6)]
    queries = rw.concatenate(parts)
    place = {
        (str(q), str(d)): i
        for i, (q, d) in enumerate(
            zip(np.repeat(queries.ids, queries.sizes), queries.docs, strict=False)
        )
    }
    R = np.full((queries.n_docs, 25), np.nan)
    for i in range(1, 6):
        with (DATA / f"letor4/MQ2008-agg/rank_A{i}.csv").open() as file:
            for q, number, doc, value in csv.reader(file):
                R[place[q, doc], int(number) - 1] = float(value)
    return queries, R


def average_precision(queries, score):
    """MAP as LETOR counts it: a query without relevant documents has 0."""
    return float(
        np.nan_to_num(rw.Metric("ap").per_query(queries.y, score, qid=queries.groups)).mean()
    )


def spoil(R, rng, queries, share, how):
    """Lists chosen at random become noise (shuffled inside each query) or are reversed."""
    out = R.copy()
    chosen = rng.choice(R.shape[1], round(share * R.shape[1]), replace=False)
    for a, b in zip(queries.offsets, queries.offsets[1:], strict=False):
        for j in chosen:
            if how == "noise":
                out[a:b, j] = rng.permutation(out[a:b, j])
            else:  # the whole order, absent documents first
                column = -out[a:b, j]
                if np.isfinite(column).any():
                    out[a:b, j] = np.where(np.isnan(column), np.nanmax(column) + 1, column)
    return out


def lists():
    table("MAP on MQ2008, 25 lists of MQ2008-agg", list_rows(), digits=4)


def list_rows():
    queries, R = mq2008()
    settings = [(0.0, "noise", False)]
    settings += [(s, "noise", False) for s in (0.5, 0.75, 0.9)]
    settings += [(s, "reversed", False) for s in (0.25, 0.5)] + [(0.0, "noise", True)]
    for share, how, shuffled in settings:
        found = {}
        for seed in range(1 if share == 0 else max(SEEDS // 3, 2)):
            rng = np.random.default_rng(seed)
            X = rng.permutation(queries.X) if shuffled else queries.X
            spoilt = spoil(R, rng, queries, share, how)
            for name, score in methods(X, spoilt, queries.offsets, "last").items():
                found.setdefault(name, []).append(average_precision(queries, score))
        yield f"{share:.0%} {how}" + ", X shuffled" * shuffled, found


def coverage():
    table("MAP on MQ2008, documents without lists", coverage_rows(), digits=4)


def coverage_rows():
    queries, R = mq2008()
    for share in (0.3, 0.6, 0.9):
        found = {}
        for seed in range(2):
            rng = np.random.default_rng(seed)
            cut = R.copy()
            cut[rng.random(len(R)) < share] = np.nan
            for name, score in methods(queries.X, cut, queries.offsets, "last", slow=False).items():
                found.setdefault(name, []).append(average_precision(queries, score))
        yield f"{share:.0%} of documents in no list", found


def experts():
    """Single features as experts, without labels: the other features are X."""
    table("MAP with single features as experts", expert_rows(), digits=4)


def expert_rows():
    sets = {
        "MQ2008": [DATA / f"letor4/MQ2008/S{i}.txt" for i in range(1, 6)],
        "OHSUMED": [DATA / f"letor3/OHSUMED/QueryLevelNorm/Fold{i}-test.txt" for i in range(1, 6)],
    }
    for name, paths in sets.items():
        queries = rw.concatenate([rw.read_letor(path) for path in paths])
        varies = np.flatnonzero(np.ptp(queries.X, axis=0) > 0)
        for how, R, X in (
            ("every feature is an expert and in X", queries.X[:, varies], queries.X[:, varies]),
            ("every second feature an expert, the others X",
             queries.X[:, varies[::2]], queries.X[:, varies[1::2]]),
        ):  # fmt: skip
            found = {}
            for method, score in methods(X, R, queries.offsets, "ignore", slow=False).items():
                found[method] = [average_precision(queries, score)]
            single = [average_precision(queries, column) for column in R.T]
            found["best expert"], found["median expert"] = [max(single)], [float(np.median(single))]
            yield f"{name}: {how}", found


# --- supervised -----------------------------------------------------------------------------------


def supervised():
    print("\nMR and MEMR beside other linear losses, five folds\n")
    print("| data | ranker | MAP | nDCG@10 | fit, s |\n|---|---|---|---|---|")
    alphas = {"alpha": (10.0, 1.0, 0.1, 0.01)}
    grids = {"linear": {}, "ranknet": {}, "listnet": {}, "ranksvm": {}, "mr": alphas, "memr": {}}
    for data, _metrics in (
        ("letor4/MQ2008", "letor4"),
        ("letor3/OHSUMED/QueryLevelNorm", "letor3"),
    ):
        if data.startswith("letor4"):
            parts = [rw.read_letor(DATA / data / f"S{i}.txt") for i in range(1, 6)]
            tested = [
                (4, 3),
                (0, 4),
                (1, 0),
                (2, 1),
                (3, 2),
            ]  # test and validation part of each fold
        else:
            parts = [rw.read_letor(DATA / data / f"Fold{i}-test.txt") for i in range(1, 6)]
            tested = [(i, (i - 1) % 5) for i in range(5)]
        ap = rw.parse_metric("ap")
        ndcg = rw.parse_metric("ndcg@10")
        for name, grid in grids.items():
            recipe, values, spent = rw.RECIPES[name], [], 0.0
            grid = {**recipe.grid, **grid}
            combinations = [
                dict(zip(grid, v, strict=True)) for v in itertools.product(*grid.values())
            ]
            for test, valid in tested:
                data_train = rw.concatenate([parts[i] for i in range(5) if i not in (test, valid)])
                best = None
                for params in combinations:
                    t = time.process_time()
                    model = recipe.make(**params, tol=1e-4).fit(data_train)
                    spent += time.process_time() - t
                    v = parts[valid]
                    score = ap.mean(v.y, model.predict(v), qid=v.groups)
                    if best is None or score > best[0]:
                        best = score, model
                t = parts[test]
                s = best[1].predict(t)
                values.append([
                    float(np.nan_to_num(m.per_query(t.y, s, qid=t.groups)).mean())
                    for m in (ap, ndcg)
                ])  # fmt: skip
            mean = np.mean(values, axis=0)
            n_fits = 5 * len(combinations)
            cells = (
                data.split("/")[1],
                name,
                f"{mean[0]:.4f}",
                f"{mean[1]:.4f}",
                f"{spent / n_fits:.2f}",
            )
            print("| " + " | ".join(cells) + " |", flush=True)


PARTS = {f.__name__: f for f in (simulations, many, lists, coverage, experts, supervised)}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        began = time.process_time()
        PARTS[part]()
        print(f"\n({part}: {time.process_time() - began:.0f} s)", flush=True)
