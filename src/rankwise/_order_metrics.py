"""Metrics of incomplete judgements and of the whole order; public in :mod:`rankwise.metrics`."""

from __future__ import annotations

from numpy.typing import ArrayLike

from rankwise._metric import Floats, Qid, value


def bpref(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    rel: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    r"""Binary preference: share of judged nonrelevant documents ranked below, by relevant document.

    .. math:: \frac{1}{R} \sum_{r} \Big(1 - \frac{\min(n_r, R)}{\min(N, R)}\Big)

    with N judged nonrelevant documents, of which n_r stand above the relevant one. Unjudged
    documents are left out.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    rel : float
        Smallest label that is relevant.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import bpref
    >>> bpref([0, 1, float("nan"), 1], [4, 3, 2, 1])
    array([0.])

    References
    ----------
    [buckley2004]_, as in trec_eval
    """
    return value("bpref", y_true, y_score, qid, docs, rel=rel, ties=ties, empty=empty)


def infap(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    rel: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    """Inferred average precision, an estimate of AP from a judged sample of a pool.

    Unjudged documents (NaN) were outside the pool and count as not relevant; label -1 marks a
    document that was pooled and not judged, assumed relevant as often as the judged ones. This
    is the only metric that takes a label below 0. Average ties cost O(b^2) in a block of b.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    rel : float
        Smallest label that is relevant.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import infap
    >>> infap([1, -1, 1, 0], [4, 3, 2, 1]).round(4)
    array([1.])

    References
    ----------
    [yilmaz2006]_, as in trec_eval
    """
    return value("infap", y_true, y_score, qid, docs, rel=rel, ties=ties, empty=empty)


def rbp_residual(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    p: float = 0.8,
    tail: str = "always",
    ties: str = "average",
    docs: ArrayLike | None = None,
) -> Floats:
    """What RBP could still gain: the weight of unjudged ranks and of the ranks after the last.

    Defined for every query. RBP of the complete judgements lies between RBP and RBP + residual.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    p : float
        Persistence, above 0 and below 1.
    tail : {"always", "if_unjudged"}
        Whether the unseen tail counts in a list that is judged throughout.
    ties, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, lower is better

    Examples
    --------
    >>> from rankwise.metrics import rbp_residual
    >>> rbp_residual([1, float("nan")], [2, 1], p=0.5)
    array([0.5])

    References
    ----------
    [moffat2008]_
    """
    return value("rbp_residual", y_true, y_score, qid, docs, p=p, tail=tail, ties=ties)


def judged(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    short: str = "pad",
    ties: str = "average",
    docs: ArrayLike | None = None,
) -> Floats:
    """Share of judged documents among the first k.

    Defined for every query; 0 if nothing was retrieved.

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
    ties, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import judged
    >>> judged([1, float("nan"), 0], [3, 2, 1], k=2)
    array([0.5])

    References
    ----------
    Judged@k of ir-measures
    """
    return value("judged", y_true, y_score, qid, docs, k=k, short=short, ties=ties)


def unjudged(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    k: int | None = None,
    ties: str = "average",
    docs: ArrayLike | None = None,
) -> Floats:
    """Unjudged documents among the first k, over k; missing places are not unjudged.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    k : int, optional
        Cutoff; the whole list unless given.
    ties, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, lower is better

    Examples
    --------
    >>> from rankwise.metrics import unjudged
    >>> unjudged([1, float("nan"), 0], [3, 2, 1], k=4)
    array([0.25])

    References
    ----------
    unj of trec_eval 10
    """
    return value("unjudged", y_true, y_score, qid, docs, k=k, ties=ties)


def pairwise_accuracy(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    """Share of pairs with different labels of which the better document ranks higher.

    A tied pair is half right under average ties; a pair of which neither document was
    retrieved is wrong. Unjudged documents form no pairs. A query with one label is empty.

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
    >>> from rankwise.metrics import pairwise_accuracy
    >>> pairwise_accuracy([0, 1, 2], [1, 3, 2]).round(4)
    array([0.6667])

    References
    ----------
    [joachims2002]_
    """
    return value("pairwise_accuracy", y_true, y_score, qid, docs, ties=ties, empty=empty)


def auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    rel: float = 1.0,
    ties: str = "average",
    empty: str | float = "skip",
    docs: ArrayLike | None = None,
) -> Floats:
    """Area under the ROC curve within the query: share of relevant-other pairs ranked right.

    A query without relevant or without judged nonrelevant documents is empty.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    rel : float
        Smallest label that is relevant.
    ties, empty, docs
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), 0 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import auc
    >>> auc([0, 1, 2], [1, 3, 2])
    array([1.])

    References
    ----------
    [hanley1982]_
    """
    return value("auc", y_true, y_score, qid, docs, rel=rel, ties=ties, empty=empty)


def tau_a(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    empty: str | float = "skip",
) -> Floats:
    """Kendall's tau-a of scores and labels: (concordant - discordant) / C(n, 2), from -1 to 1.

    Over the judged documents that were retrieved; ties count for neither. A query with one
    label is empty.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    empty
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), -1 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import tau_a
    >>> tau_a([1, 2, 2, 3], [1, 2, 3, 4]).round(4)
    array([0.8333])

    References
    ----------
    [kendall1945]_
    """
    return value("tau_a", y_true, y_score, qid, None, empty=empty)


def tau_b(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    empty: str | float = "skip",
) -> Floats:
    r"""Kendall's tau-b: tau with the pairs that are tied in either column left out of the norm.

    .. math:: \frac{\mathrm{con} - \mathrm{dis}}{\sqrt{(N - T_y)(N - T_s)}}

    Over the judged documents that were retrieved. A query with one label is empty; equal
    scores for all documents give 0.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    empty
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), -1 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import tau_b
    >>> tau_b([1, 2, 2, 3], [1, 2, 3, 4]).round(4)
    array([0.9129])

    References
    ----------
    [kendall1945]_
    """
    return value("tau_b", y_true, y_score, qid, None, empty=empty)


def rho(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Qid = None,
    empty: str | float = "skip",
) -> Floats:
    """Spearman's rho: Pearson correlation of the mid-ranks of scores and labels.

    Over the judged documents that were retrieved. A query with one label is empty; equal
    scores for all documents give 0.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_docs,)
        Labels and scores.
    qid : array-like of shape (n_docs,) or Groups, optional
        Query of each document.
    empty
        See :mod:`rankwise.metrics`.

    Returns
    -------
    float64 array of shape (n_queries,), -1 to 1, higher is better

    Examples
    --------
    >>> from rankwise.metrics import rho
    >>> rho([1, 2, 2, 3], [1, 2, 3, 4]).round(4)
    array([0.9487])

    References
    ----------
    [spearman1904]_
    """
    return value("rho", y_true, y_score, qid, None, empty=empty)
