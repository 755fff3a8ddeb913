"""Presets against the programs they stand for, and stored results of others."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import rankwise as rw
from rankwise.metrics import PRESETS, parse_metric


def random_lists(seed, *, sizes=(1, 13), grades=5):
    """Lists with many ties, some without relevant documents, many shorter than the cutoffs."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(*sizes, 60)
    qid = np.repeat(np.arange(60), lengths)
    y = rng.integers(0, grades, len(qid)).astype(float)
    y[np.isin(qid, rng.choice(60, 12, replace=False))] = 0
    s = rng.integers(-3, 4, len(qid)) * 0.25
    return y, s, qid, lengths


def ours(preset, name, y, s, qid):
    return parse_metric(name, preset=preset).mean(y, s, qid=qid)


# --- gradient boosting libraries ---------------------------------------------------------------


def lightgbm_values(y, s, lengths, cuts):
    """LightGBM's own metrics of given scores: a model without trees on top of init scores."""
    lgb = pytest.importorskip("lightgbm")
    features = np.arange(len(y), dtype=float)[:, None]
    data = lgb.Dataset(features, y, group=lengths, init_score=s, params={"verbosity": -1})
    record = {}
    lgb.train(
        {
            "objective": lambda score, data: (np.zeros(len(y)), np.ones(len(y))),  # no split
            "metric": ["ndcg", "map"],
            "eval_at": list(cuts),
            "verbosity": -1,
            "num_threads": 1,
        },
        data,
        1,
        valid_sets=[data],
        valid_names=["lists"],
        callbacks=[lgb.record_evaluation(record)],
    )
    return {name: values[0] for name, values in record["lists"].items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(4))
def test_lightgbm(seed):
    y, s, qid, lengths = random_lists(seed)
    theirs = lightgbm_values(y, s, lengths, (1, 3, 5, 20))
    assert set(theirs) == {f"{m}@{k}" for m in ("ndcg", "map") for k in (1, 3, 5, 20)}
    for name, value in theirs.items():
        assert ours("lightgbm", name, y, s, qid) == pytest.approx(value, rel=1e-12)
    assert set(PRESETS["lightgbm"]) == {"ndcg", "ap"}


def xgboost_values(names, y, s, qid):
    xgb = pytest.importorskip("xgboost")
    data = xgb.DMatrix(np.zeros((len(y), 1)), label=y, base_margin=s, qid=qid)
    booster = xgb.train(
        {"objective": "rank:pairwise", "eval_metric": names, "base_score": 0.0, "nthread": 1},
        data,
        num_boost_round=0,
    )
    text = booster.eval(data)
    return {m: float(v) for m, v in re.findall(r"eval-(\S+?):(\S+)", text)}


@pytest.mark.parametrize("seed", range(4))
def test_xgboost(seed):
    y, s, qid, _ = random_lists(seed)
    names = [f"ndcg@{k}" for k in (1, 3, 5, 20)] + ["ndcg"]
    for name, value in xgboost_values(names, y, s, qid).items():
        assert ours("xgboost", name, y, s, qid) == pytest.approx(value, abs=1e-6), name
    binary = np.minimum(y, 1)
    names = [f"{m}@{k}" for m in ("map", "pre") for k in (1, 3, 5, 20)] + ["map"]
    theirs = xgboost_values(names, binary, s, qid)
    assert len(theirs) == 9
    for name, value in theirs.items():
        assert ours("xgboost", name, binary, s, qid) == pytest.approx(value, abs=1e-6), name


CATBOOST = {
    "NDCG:top={k}": "ndcg@{k}",
    "NDCG:top={k};type=Exp": "ndcg(gain=exp2)@{k}",
    "DCG:top={k}": "dcg@{k}",
    "DCG:top={k};type=Exp": "dcg(gain=exp2)@{k}",
    "MAP:top={k}": "ap@{k}",
    "PrecisionAt:top={k}": "precision@{k}",
    "RecallAt:top={k}": "recall@{k}",
    "MRR:top={k}": "rr@{k}",
    "QueryAUC:type=Ranking": "pairwise_accuracy",
}


@pytest.mark.parametrize("seed", range(3))
def test_catboost(seed):
    utils = pytest.importorskip("catboost.utils")
    y, s, qid, _ = random_lists(seed)
    covered = set()
    for theirs, name in CATBOOST.items():
        for k in (1, 3, 5, 20) if "{k}" in theirs else (0,):
            value = utils.eval_metric(y, s, theirs.format(k=k), group_id=qid, thread_count=1)[0]
            metric = parse_metric(name.format(k=k), preset="catboost")
            covered.add(metric.name)
            assert metric.mean(y, s, qid=qid) == pytest.approx(value, rel=1e-9), theirs
    value = utils.eval_metric(np.minimum(y, 1), s, "QueryAUC:type=Classic", group_id=qid)[0]
    assert ours("catboost", "auc", y, s, qid) == pytest.approx(value, rel=1e-9)
    assert covered | {"auc"} == set(PRESETS["catboost"])


# --- scikit-learn ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore:No positive class found:UserWarning")
def test_sklearn(seed):
    sk = pytest.importorskip("sklearn.metrics")
    y, s, qid, lengths = random_lists(seed, sizes=(2, 13))
    ends = np.cumsum(lengths)[:-1]
    lists = list(zip(np.split(y, ends), np.split(s, ends), strict=True))
    for k in (1, 3, 5, 20, None):
        at = "" if k is None else f"@{k}"
        for name, function in (("ndcg", sk.ndcg_score), ("dcg", sk.dcg_score)):
            theirs = [function([a], [b], k=k) for a, b in lists]
            got = parse_metric(name + at, preset="sklearn").per_query(y, s, qid=qid)
            np.testing.assert_allclose(got, theirs, rtol=1e-12, atol=1e-15)
    binary = [(np.minimum(a, 1), b) for a, b in lists]
    theirs = [sk.average_precision_score(a, b) for a, b in binary]
    got = parse_metric("ap", preset="sklearn").per_query(y, s, qid=qid)
    np.testing.assert_allclose(got, theirs, rtol=1e-12)
    both = [i for i, (a, _) in enumerate(binary) if 0 < a.mean() < 1]
    theirs = [sk.roc_auc_score(*binary[i]) for i in both]
    got = parse_metric("auc", preset="sklearn").per_query(y, s, qid=qid)
    np.testing.assert_allclose(got[both], theirs, rtol=1e-12)
    assert np.isnan(np.delete(got, both)).all()
    assert set(PRESETS["sklearn"]) == {"ndcg", "dcg", "ap", "auc"}


@pytest.mark.parametrize("seed", range(3))
def test_scipy_correlations(seed):
    stats = pytest.importorskip("scipy.stats")
    y, s, qid, lengths = random_lists(seed, sizes=(2, 13))
    ends = np.cumsum(lengths)[:-1]
    tau = rw.metrics.tau_b(y, s, qid=qid)
    rho = rw.metrics.rho(y, s, qid=qid)
    for i, (a, b) in enumerate(zip(np.split(y, ends), np.split(s, ends), strict=True)):
        if len(set(a)) < 2:
            assert np.isnan(tau[i])
            assert np.isnan(rho[i])
        elif len(set(b)) < 2:
            assert tau[i] == rho[i] == 0
        else:
            assert tau[i] == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)
            assert rho[i] == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)


# --- trec_eval ---------------------------------------------------------------------------------

NO_VALUES = {"num_q", "runid", "relstring"}  # not measures of a ranking


def read_trec(path):
    """{topic: {doc: number}} of a run or of qrels."""
    table: dict[str, dict[str, float]] = {}
    for line in Path(path).read_text().splitlines():
        fields = line.split()
        topic, doc, value = fields[0], fields[2], fields[3 if len(fields) == 4 else 4]
        table.setdefault(topic, {})[doc] = float(value)
    return table


def join(qrels, run):
    """Columns (y_true, y_score, qid, docs) by the definition, without rankwise.trec."""
    rows = []
    for topic, judged in qrels.items():
        answers = run.get(topic, {})
        for doc in {**answers, **judged}:
            label = judged.get(doc, math.nan)
            rows.append((label, answers.get(doc, -math.inf), topic, doc))
    y, s, qid, docs = zip(*rows, strict=True)
    return np.array(y), np.array(s), np.array(qid), np.array(docs)


def unjudged(y):
    """Labels below 0 are unjudged for every metric but infAP."""
    return np.where(y < 0, np.nan, y)


@pytest.mark.letor
@pytest.mark.parametrize(
    ("expected", "qrels", "run", "rel"),
    [
        ("out.test.aq", "qrels.test", "results.test", 1),
        ("out.test.aqc", "qrels.test", "results.trunc", 1),
        ("out.test.meas_params", "qrels.test", "results.test", 1),
        ("out.test.aql", "qrels.rel_level", "results.test", 2),
    ],
)
def test_trec_eval_10(letor_data, expected, qrels, run, rel):
    """Every measure of trec_eval's own tests, by topic and as a mean, to the digits printed."""
    folder = letor_data / "trec" / "trec_eval-tests"
    y, s, qid, docs = join(read_trec(folder / qrels), read_trec(folder / run))
    topics = rw.group_rows(qid).ids
    rename = {
        "utility_2,-1,0,0": "utility(weights=(2, -1, 0, 0))",
        "11pt_avg_.25,.5,.75": "interpolated_precision(recall=(.25, .5, .75))",
        "ndcg_1=3,2=9,4=4.5": "ndcg(gain=(0, 3, 9))",  # its labels are 0 and 1
    }
    n_checked = 0
    for line in (folder / expected).read_text().splitlines():
        measure, topic, printed = line.split("\t")
        if measure.strip().rsplit("_20")[0] in NO_VALUES:
            continue
        metric = parse_metric(rename.get(measure.strip(), measure.strip()), preset="trec_eval")
        if "rel" in metric.options:
            metric = metric(rel=rel)
        labels = y if metric.name == "infap" else unjudged(y)
        values = metric.per_query(labels, s, qid=qid, docs=docs)
        got = metric.average(values).value if topic == "all" else values[list(topics).index(topic)]
        assert got == pytest.approx(float(printed), abs=5.001e-5), (measure, topic)
        n_checked += 1
    assert n_checked > 80


@pytest.mark.letor
def test_trec_eval_9(letor_data):
    """Every measure of pytrec_eval on the 17 runs, topic by topic."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    folder = letor_data / "trec" / "robust03-top100"
    qrels = {
        t: {d: int(v) for d, v in j.items()} for t, j in read_trec(folder / "qrels.txt").items()
    }
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, pytrec_eval.supported_measures)
    runs = sorted(folder.glob("*.run"))
    assert len(runs) == 17
    for path in runs:
        run = read_trec(path)
        theirs = evaluator.evaluate(run)
        y, s, qid, docs = join(qrels, run)
        groups = rw.group_rows(qid)
        answered = np.isin(groups.ids, list(theirs))
        measures = sorted(set(theirs[groups.ids[answered][0]]) - NO_VALUES)
        wanted = [parse_metric(measure, preset="trec_eval9") for measure in measures]
        values = rw.evaluate(wanted, unjudged(y), s, qid=groups, docs=docs)
        for measure, metric in zip(measures, wanted, strict=True):
            got = values[str(metric)][answered]
            if metric.options["mean"] == "geometric":
                got = np.log(np.maximum(got, 1e-5))
            expected = [theirs[topic][measure] for topic in groups.ids[answered]]
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9, err_msg=measure)


# --- LETOR's evaluation scripts ----------------------------------------------------------------

TEST_FOLDS = ("S5", "S1", "S2", "S3", "S4")


def labels_of(path):
    """Labels and query ids of a feature file."""
    rows = [line.split(None, 2)[:2] for line in path.read_text().splitlines()]
    return np.array([float(a) for a, _ in rows]), np.array([b for _, b in rows])


def scores_of(path):
    return np.array([float(line.split()[-1]) for line in path.read_text().splitlines()])


@pytest.fixture(scope="module")
def mq2008(letor_data):
    folder = letor_data / "letor4"
    return [
        (
            *labels_of(folder / "MQ2008" / f"{part}.txt"),
            folder / "MQ2008-system-scores" / f"Fold{i}",
        )
        for i, part in enumerate(TEST_FOLDS, 1)
    ]


@pytest.fixture(scope="module")
def ohsumed(letor_data):
    folder = letor_data / "letor3"
    return [
        (
            *labels_of(folder / "OHSUMED" / "QueryLevelNorm" / f"Fold{i}-test.txt"),
            folder / "OHSUMED-system-scores" / f"Fold{i}",
        )
        for i in range(1, 6)
    ]


def stored_results(path):
    """{measure: mean} of a result file of the LETOR 4.0 script."""
    rows = [line.split("\t") for line in path.read_text().splitlines() if line.strip()]
    heads = [i for i, row in enumerate(rows) if row[0].strip() == "qid"]
    return {
        name.strip(): float(value)
        for i in heads
        for row in rows[i + 1 :][:1]
        for name, value in zip(rows[i][1:], row[1:], strict=False)
    }


def swap_places(y, s, groups, query, i, j):
    """Labels with those at two places (from 0) of a query's ranking exchanged."""
    number = list(groups.ids).index(query)
    rows = np.arange(groups.offsets[number], groups.offsets[number + 1])
    ranking = rows[np.argsort(-s[rows], kind="stable")]
    assert s[ranking[i]] == s[ranking[j]]
    swapped = y.copy()
    swapped[ranking[[i, j]]] = y[ranking[[j, i]]]
    return swapped


@pytest.mark.letor
def test_letor4_stored_results(mq2008):
    n_files = 0
    for y, qid, folder in mq2008:
        groups = rw.group_rows(qid)
        for path in sorted((folder / "perf").glob("*.txt")):
            stored = stored_results(path)
            assert len(stored) == 22
            s = scores_of(folder / path.name)
            labels = y
            if path.match("Fold3/perf/francelabs-RankLib1_test.txt"):
                # Whoever made this file had two of the ten equal scores of one query the other
                # way round; two of its 22 numbers (P@9 and NDCG@9) tell.
                labels = swap_places(y, s, groups, "qid:12604", 8, 9)
            for name, value in stored.items():
                got = ours("letor4", name, labels, s, groups)
                assert got == pytest.approx(value, abs=5.1e-5), (path, name)
            n_files += 1
    assert n_files >= 20


def fold_mean(folds, system, name, preset):
    values = [ours(preset, name, y, scores_of(f / f"{system}.txt"), qid) for y, qid, f in folds]
    return np.mean(values)


@pytest.mark.letor
@pytest.mark.parametrize(
    ("system", "mean_ap", "mean_ndcg"),
    [
        ("svm_rank", 0.4677, 0.4825),
        ("AdaRank", 0.4766, 0.4854),
        ("RankBoost", 0.4752, 0.4835),
        ("ListNet", 0.4415, 0.4554),
    ],
)
def test_letor4_means(mq2008, system, mean_ap, mean_ndcg):
    assert fold_mean(mq2008, system, "ap", "letor4") == pytest.approx(mean_ap, abs=5e-5)
    assert fold_mean(mq2008, system, "mean_ndcg", "letor4") == pytest.approx(mean_ndcg, abs=5e-5)


@pytest.mark.letor
@pytest.mark.parametrize(
    ("system", "mean_ap", "ndcg_10"),
    [
        ("svm_rank", 0.4436, 0.4537),
        ("AdaRank", 0.4464, 0.4507),
        ("RankBoost", 0.4429, 0.4399),
        ("ListNet", 0.4443, 0.4435),
        ("RankNet", 0.4040, 0.3483),
    ],
)
def test_letor3_means(ohsumed, system, mean_ap, ndcg_10):
    assert fold_mean(ohsumed, system, "ap", "letor3") == pytest.approx(mean_ap, abs=5e-5)
    assert fold_mean(ohsumed, system, "ndcg@10", "letor3") == pytest.approx(ndcg_10, abs=5e-5)
