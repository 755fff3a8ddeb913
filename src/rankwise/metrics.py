"""Ranking metrics: functions that give one number per query, and values that name them.

Every function takes ``(y_true, y_score, *, qid=...)`` and returns an array with one value per
query, in order of first appearance. Labels are at least 0 and larger is better; NaN marks an
unjudged document. Higher scores rank first; -inf marks a document that was not retrieved: it
occupies no rank and counts only among the relevant documents and in the ideal.

Conventions are keywords, the same everywhere:

``ties``
    ``"average"``: the expected value over the orders of tied documents [mcsherry2008]_;
    ``"stable"``: input order; ``"trec"``: document id, descending (needs ``docs``); ``"worst"`` and
    ``"best"``: smaller or larger labels first; ``"together"``, for AP only: the documents of a tie
    enter at once, all of them at its last rank.
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

import inspect
from typing import NamedTuple

from numpy.typing import ArrayLike

from rankwise._metric import (
    SPECS,
    Floats,
    Mean,
    Metric,
    Qid,
    Table,
    evaluate,
    parse_metric,
    parse_metrics,
    value,
)
from rankwise._order_metrics import (
    auc,
    bpref,
    infap,
    judged,
    pairwise_accuracy,
    rbp_residual,
    rho,
    tau_a,
    tau_b,
    unjudged,
)
from rankwise._presets import PRESETS


def ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    gain: Table = "exp2",
    discount: Table = "log2",
    short: str = "pad",
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    r"""Normalised discounted cumulative gain: DCG@k over the DCG@k of the ideal order.

    .. math:: \mathrm{DCG}@k = \sum_{r \le k} g(y_{(r)}) \, d(r), \qquad
              \mathrm{nDCG}@k = \mathrm{DCG}@k / \max_\pi \mathrm{DCG}@k

    The ideal is taken over the whole list, documents that were not retrieved included. A query is
    empty when no document has a gain.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    k : int, optional
        Cutoff; the whole list unless given.
    gain : {"exp2", "identity"} or sequence of float
        2^y - 1, y, or a table by label that starts at 0 and never falls.
    discount : {"log2", "letor"} or sequence of float
        1 / log2(1 + rank); 1, 1, 1 / log2(3), 1 / log2(4), ...; or a table by rank.
    short : {"pad", "zero"}
        A list of fewer than ``k`` documents: nothing special, or the value 0.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import ndcg
    >>> ndcg([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1], k=3).round(4)
    array([0.5234])

    References
    ----------
    [jarvelin2002]_, gains of [burges2005]_
    """
    return value(
        "ndcg",
        y_true,
        y_score,
        qid,
        docs,
        k=k,
        gain=gain,
        discount=discount,
        short=short,
        ties=ties,
        empty=empty,
    )


def dcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    gain: Table = "exp2",
    discount: Table = "log2",
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    r"""Discounted cumulative gain: the sum of gain times discount over the first k ranks.

    .. math:: \mathrm{DCG}@k = \sum_{r \le k} g(y_{(r)}) \, d(r)

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    k : int, optional
        Cutoff; the whole list unless given.
    gain : {"exp2", "identity"} or sequence of float
        2^y - 1, y, or a table by label that starts at 0 and never falls.
    discount : {"log2", "letor"} or sequence of float
        1 / log2(1 + rank); 1, 1, 1 / log2(3), 1 / log2(4), ...; or a table by rank.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 upwards, higher is better

    Examples
    --------
    >>> from rankwise.metrics import dcg
    >>> dcg([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1]).round(3)
    array([6.077])

    References
    ----------
    [jarvelin2002]_
    """
    return value(
        "dcg", y_true, y_score, qid, docs, k=k, gain=gain, discount=discount, ties=ties, empty=empty
    )


def mean_ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    gain: Table = "exp2",
    discount: Table = "log2",
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    r"""Mean of nDCG@1, nDCG@2, ..., nDCG@n of the query's n retrieved documents.

    .. math:: \frac{1}{n} \sum_{k=1}^{n} \mathrm{nDCG}@k

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    gain : {"exp2", "identity"} or sequence of float
        2^y - 1, y, or a table by label that starts at 0 and never falls.
    discount : {"log2", "letor"} or sequence of float
        1 / log2(1 + rank); 1, 1, 1 / log2(3), 1 / log2(4), ...; or a table by rank.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import mean_ndcg
    >>> mean_ndcg([0, 2, 1, 0, 2], [5, 4, 3, 2, 1], discount="letor").round(4)
    array([0.4675])

    References
    ----------
    MeanNDCG of the LETOR evaluation scripts [qin2010letor]_
    """
    return value(
        "mean_ndcg",
        y_true,
        y_score,
        qid,
        docs,
        gain=gain,
        discount=discount,
        ties=ties,
        empty=empty,
    )


def eru(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    half_life: float = 5.0,
    neutral: float = 0.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    r"""Expected rank utility: exponentially discounted labels above a neutral one, normalised.

    .. math:: \sum_r 2^{(1-r)/(\alpha-1)} \max(y_{(r)} - d, 0) \Big/ \text{its maximum}

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    half_life : float
        Rank at which the discount is 1/2, above 1.
    neutral : float
        Label that is worth nothing.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import eru
    >>> eru([0, 1, 1], [3, 2, 1], half_life=2).round(4)
    array([0.5])

    References
    ----------
    [breese1998]_
    """
    return value(
        "eru",
        y_true,
        y_score,
        qid,
        docs,
        half_life=half_life,
        neutral=neutral,
        ties=ties,
        empty=empty,
    )


def precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    short: str = "pad",
    rel: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    """Precision: relevant documents among the first k, over k.

    Without ``k`` the depth is the number of retrieved documents.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    k : int, optional
        Cutoff; the whole list unless given.
    short : {"pad", "cut", "zero"}
        A list of fewer than ``k`` documents divides by ``k``, or by its length, or has value 0.
    rel : float
        Smallest label that is relevant.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import precision
    >>> precision([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1], k=5)
    array([0.6])

    References
    ----------
    [manning2008]_
    """
    return value(
        "precision", y_true, y_score, qid, docs, k=k, short=short, rel=rel, ties=ties, empty=empty
    )


def recall(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    rel: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    """Recall: relevant documents among the first k, over all relevant documents.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    k : int, optional
        Cutoff; the whole list unless given.
    rel : float
        Smallest label that is relevant.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import recall
    >>> recall([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1], k=2).round(4)
    array([0.3333])

    References
    ----------
    [manning2008]_
    """
    return value("recall", y_true, y_score, qid, docs, k=k, rel=rel, ties=ties, empty=empty)


def f1(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    short: str = "pad",
    rel: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    """F1: harmonic mean of precision and recall at k, 2 * hits / (k + R).

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    k : int, optional
        Cutoff; the whole list unless given.
    short : {"pad", "cut"}
        A list of fewer than ``k`` documents divides by ``k``, or by its length.
    rel : float
        Smallest label that is relevant.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import f1
    >>> f1([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1], k=3).round(4)
    array([0.6667])

    References
    ----------
    [manning2008]_
    """
    return value(
        "f1", y_true, y_score, qid, docs, k=k, short=short, rel=rel, ties=ties, empty=empty
    )


def success(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    rel: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    """Success: 1 if one of the first k documents is relevant, else 0 (hit rate).

    Under average ties it is the probability of that.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    k : int, optional
        Cutoff; the whole list unless given.
    rel : float
        Smallest label that is relevant.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import success
    >>> success([0, 1, 0], [1, 1, 0], k=1)
    array([0.5])

    References
    ----------
    [manning2008]_
    """
    return value("success", y_true, y_score, qid, docs, k=k, rel=rel, ties=ties, empty=empty)


def ap(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    norm: str = "R",
    rel: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    r"""Average precision: mean over the relevant documents of the precision at their ranks.

    .. math:: \frac{1}{R} \sum_{r \le k,\ y_{(r)}\ \mathrm{relevant}} \mathrm{P}@r

    Relevant documents that were not retrieved count 0. In a block of ties, a relevant document
    at place j has on average a share (j - 1) / (size - 1) of the block's others above it.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    k : int, optional
        Cutoff; the whole list unless given.
    norm : {"R", "min"}
        Divide by all R relevant documents, or by min(R, k).
    rel : float
        Smallest label that is relevant.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import ap
    >>> ap([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1]).round(4)
    array([0.5889])

    References
    ----------
    [buckley2000]_; ties [mcsherry2008]_
    """
    return value("ap", y_true, y_score, qid, docs, k=k, norm=norm, rel=rel, ties=ties, empty=empty)


def r_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    multiple: float = 1.0,
    rel: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    """R-precision: precision at rank R, the number of relevant documents.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    multiple : float
        The cutoff is this multiple of R, rounded up from .1.
    rel : float
        Smallest label that is relevant.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import r_precision
    >>> r_precision([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1]).round(4)
    array([0.6667])

    References
    ----------
    [buckley2000]_
    """
    return value(
        "r_precision",
        y_true,
        y_score,
        qid,
        docs,
        multiple=multiple,
        rel=rel,
        ties=ties,
        empty=empty,
    )


def rr(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    rel: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    """Reciprocal rank of the first relevant document; 0 if none is among the first k.

    Under average ties, with r relevant documents in the first block of b that has one, the
    expectation over its place: O(b).

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    k : int, optional
        Cutoff; the whole list unless given.
    rel : float
        Smallest label that is relevant.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import rr
    >>> rr([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1])
    array([0.5])

    References
    ----------
    [voorhees1999]_
    """
    return value("rr", y_true, y_score, qid, docs, k=k, rel=rel, ties=ties, empty=empty)


def err(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    top: float = 4.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    r"""Expected reciprocal rank of a user who stops at y with probability (2^y - 1) / 2^top.

    .. math:: \sum_{r \le k} \frac{1}{r} R_{(r)} \prod_{l < r} (1 - R_{(l)}),
              \qquad R = (2^{y} - 1) / 2^{\mathrm{top}}

    Average ties cost O(b^2) in a block of b documents.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    k : int, optional
        Cutoff; the whole list unless given.
    top : float
        Top grade of the label scale; larger labels are refused.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import err
    >>> err([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1], k=3).round(4)
    array([0.2305])

    References
    ----------
    [chapelle2009]_
    """
    return value("err", y_true, y_score, qid, docs, k=k, top=top, ties=ties, empty=empty)


def rbp(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    p: float = 0.8,
    relevance: str = "binary",
    rel: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    r"""Rank-biased precision of a user who looks at the next document with probability p.

    .. math:: (1 - p) \sum_r p^{r-1} [y_{(r)}\ \mathrm{relevant}]

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    k : int, optional
        Cutoff; the whole list unless given.
    p : float
        Persistence, above 0 and below 1.
    relevance : {"binary", "graded"}
        0 or 1 by ``rel``, or the label over the query's largest (trec_eval 10).
    rel : float
        Smallest label that is relevant.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import rbp
    >>> rbp([0, 3, 1, 0, 2, 0], [6, 5, 4, 3, 2, 1], p=0.5).round(4)
    array([0.4062])

    References
    ----------
    [moffat2008]_
    """
    return value(
        "rbp",
        y_true,
        y_score,
        qid,
        docs,
        k=k,
        p=p,
        relevance=relevance,
        rel=rel,
        ties=ties,
        empty=empty,
    )


def wta(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    """Winner takes all: 1 if the first document has the query's top label, else 0.

    Under average ties, the share of top labels in the first block.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import wta
    >>> wta([0, 3, 1], [1, 3, 2])
    array([1.])

    References
    ----------
    [le2007]_
    """
    return value("wta", y_true, y_score, qid, docs, ties=ties, empty=empty)


# Each metric as a value: the function's name in capitals.
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
WTA = Metric("wta")
BPREF = Metric("bpref")
INFAP = Metric("infap")
JUDGED = Metric("judged")
UNJUDGED = Metric("unjudged")
PAIRWISE_ACCURACY = Metric("pairwise_accuracy")
AUC = Metric("auc")
TAU_A = Metric("tau_a")
TAU_B = Metric("tau_b")
RHO = Metric("rho")


class MetricInfo(NamedTuple):
    """What a metric is, in one line, and where it is defined."""

    summary: str
    reference: str


# Measures of trec_eval that have no function here, only a name for :func:`parse_metric`.
_TREC_ONLY = {
    "relative_precision": "Precision at k over the best possible one: hits / min(k, R).",
    "set_ap": "Precision times recall of the retrieved set.",
    "interpolated_precision": "Largest precision at or after a recall level, averaged over levels.",
    "utility": "Weighted sum of the four counts of (not) relevant documents (not) retrieved.",
    "bin_g": "Mean over relevant documents of 1 / log2(2 + other documents above).",
    "g": "Gain over the log of the gain lost so far, normalised.",
    "ndcg_rel": "Mean of nDCG at the ranks of the documents with gain.",
    "r_ndcg": "Mean of nDCG at the ranks where the ideal gain changes.",
    "retrieved": "Number of documents retrieved.",
    "relevant": "Number of relevant documents.",
    "relevant_retrieved": "Number of relevant documents retrieved.",
    "nonrelevant_retrieved": "Number of judged nonrelevant documents retrieved.",
}


def _info(name: str) -> MetricInfo:
    if name in _TREC_ONLY:
        return MetricInfo(_TREC_ONLY[name], "trec_eval")
    lines = inspect.cleandoc(globals()[name].__doc__).splitlines()
    return MetricInfo(lines[0], lines[-1].replace("[", "").replace("]_", ""))


METRICS = {name: _info(name) for name in SPECS}

__all__ = [
    "AP",
    "AUC",
    "BPREF",
    "DCG",
    "ERR",
    "ERU",
    "F1",
    "INFAP",
    "JUDGED",
    "MEAN_NDCG",
    "METRICS",
    "NDCG",
    "PAIRWISE_ACCURACY",
    "PRECISION",
    "PRESETS",
    "RBP",
    "RBP_RESIDUAL",
    "RECALL",
    "RHO",
    "RR",
    "R_PRECISION",
    "SUCCESS",
    "TAU_A",
    "TAU_B",
    "UNJUDGED",
    "WTA",
    "Mean",
    "Metric",
    "MetricInfo",
    "ap",
    "auc",
    "bpref",
    "dcg",
    "err",
    "eru",
    "evaluate",
    "f1",
    "infap",
    "judged",
    "mean_ndcg",
    "ndcg",
    "pairwise_accuracy",
    "parse_metric",
    "parse_metrics",
    "precision",
    "r_precision",
    "rbp",
    "rbp_residual",
    "recall",
    "rho",
    "rr",
    "success",
    "tau_a",
    "tau_b",
    "unjudged",
    "wta",
]
