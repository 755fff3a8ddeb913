"""Ranking metrics: functions that give one number per query, and :class:`Metric` values that name them.

Every function takes ``(y_true, y_score, *, qid=...)`` and returns an array with one value per
query, in order of first appearance. Labels are at least 0 and larger is better; NaN marks an
unjudged document. Higher scores rank first; -inf marks a document that was not retrieved: it
occupies no rank and counts only among the relevant documents and in the ideal.

Conventions are keywords, the same everywhere:

``ties``
    ``"average"``: the expected value over the orders of tied documents [McSherry2008]_;
    ``"stable"``: input order; ``"trec"``: document id, descending (needs ``docs``); ``"worst"`` and
    ``"best"``: smaller or larger labels first.
``empty``
    Value of a query without relevant documents: ``"skip"`` (NaN, left out of means), 0.0 or 1.0.
``rel``
    The smallest label that counts as relevant, in metrics of binary relevance.

>>> import numpy as np
>>> from rankwise.metrics import NDCG, ap, ndcg, parse_metric
>>> labels = [0, 3, 1, 0, 2, 0]
>>> scores = [6, 5, 4, 3, 2, 1]
>>> ndcg(labels, scores).round(3)
array([0.647])
>>> ap([0, 3, 1, 0, 2, 0, 1, 0, 0, 1], [6, 5, 4, 3, 2, 1, 4, 3, 2, 1], qid=[1] * 6 + [2] * 4)
array([0.58888889, 0.75      ])
>>> (NDCG @ 3).mean(labels, scores) == parse_metric("ndcg@3").mean(labels, scores)
True
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from rankwise import _metric
from rankwise._metric import (
    Floats,
    Mean,
    Metric,
    evaluate,
    parse_metric,
    parse_metrics,
)
from rankwise._presets import PRESETS
from rankwise.data import Groups

Qid = ArrayLike | Groups | None


def _value(
    name: str, y_true: ArrayLike, y_score: ArrayLike, qid: Qid, docs: Any, **options: Any
) -> Floats:
    k = options.pop("k", None)
    return _metric.compute(name, [Metric(name, k, options)], y_true, y_score, qid, docs)[0]


def ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    gain: Any = "exp2",
    discount: Any = "log2",
    short: str = "pad",
    ties: str = "average",
    empty: Any = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    """Normalised discounted cumulative gain, DCG@k / ideal DCG@k, from 0 to 1."""
    return _value("ndcg", y_true, y_score, qid, docs, k=k, gain=gain, discount=discount, short=short, ties=ties, empty=empty)


NDCG = Metric("ndcg")
DCG = Metric("dcg")
MEAN_NDCG = Metric("mean_ndcg")
ERU = Metric("eru")
PRECISION = Metric("precision")
RECALL = Metric("recall")
F1 = Metric("f1")
SUCCESS = Metric("success")
AP = Metric("ap")
R_PRECISION = Metric("r_precision")
RR = Metric("rr")
ERR = Metric("err")
RBP = Metric("rbp")
RBP_RESIDUAL = Metric("rbp_residual")
BPREF = Metric("bpref")
JUDGED = Metric("judged")
WTA = Metric("wta")
