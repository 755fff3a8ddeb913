"""LambdaRank: gradients that move a ranking metric.

A ranking metric changes only when two documents swap places, so it has no useful derivative.
LambdaRank takes RankNet's pair forces and weights each by what the metric would change if the two
documents swapped places in the current ranking: a gradient without a function, whose ascent
raises the metric itself. Boosted trees on these gradients are LambdaMART
(:class:`rankwise.TreeRanker`).

>>> import numpy as np
>>> import rankwise as rw
>>> y = np.array([0.0, 3.0, 1.0, 0.0, 2.0, 0.0])
>>> s = np.array([2.5, 2.0, 1.5, 1.0, 0.5, 0.0])
>>> gradient, curvature = rw.LambdaRank().derivatives(y, s, np.array([0, 6]))
>>> (-gradient).round(3)
array([-0.383,  0.286, -0.005, -0.052,  0.184, -0.031])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _validate
from rankwise._loss import Summand
from rankwise._swaps import FORMS, kernel, swap_form
from rankwise._text import call_text
from rankwise.metrics import Metric, parse_metric

Floats = NDArray[np.float64]
Derivatives = Callable[[ArrayLike], tuple[Floats, Floats]]

TIES = ("average", "stable")
_NDCG = Metric("ndcg")
NORMALIZE = ("none", "gap", "query", "both")


@dataclass(frozen=True)
class LambdaRank(Summand):
    r"""RankNet's pair loss, each pair weighted by the change of a metric if the two swapped.

    For documents ``i, j`` of one query with labels ``y_i > y_j``, in the ranking by score::

        w_ij   = |metric - metric with i and j in each other's place|
        loss   = sum of w_ij log(1 + exp(-sigma (s_i - s_j))),    w_ij held fixed
        lambda_ij = sigma w_ij rho_ij,   rho_ij = 1 / (1 + exp(sigma (s_i - s_j)))
        gradient_i  = - sum of lambda_ij over losers + sum of lambda_ji over winners
        curvature_i = sum of sigma^2 w_ij rho_ij (1 - rho_ij) over both

    Parameters
    ----------
    metric : str or Metric
        Any metric whose swap changes are known: nDCG, DCG, MeanNDCG, ERU, precision, recall, F1,
        R-precision, RBP, WTA, AUC (gain times discount), AP, RR, success, ERR. With a cutoff
        (``"ndcg@10"``) pairs that are both below it have no weight; without one every pair counts.
    sigma : float
        Steepness of the pair loss, above 0.
    truncation : int, optional
        Keep only pairs with at least one document in the first ``truncation`` places; None keeps
        all.
    ties : {"average", "stable"}
        ``"average"`` takes the expectation of the weight over all orders of documents with equal
        scores, so that the gradient does not depend on how rows are stored. ``"stable"`` takes
        the row order for the ranking, as LightGBM and XGBoost do.
    normalize : {"none", "gap", "query", "both"}
        ``"gap"`` divides each weight by ``.01 + |s_i - s_j|`` (unless all scores of the query are
        equal); ``"query"`` multiplies a query by ``log2(1 + S) / S`` where ``S`` is the sum of its
        forces over documents; ``"both"`` is what LightGBM calls ``lambdarank_norm``.

    Notes
    -----
    For a sum of gain times discount ``w_ij = |g_i - g_j| |D(p_i) - D(p_j)| / ideal`` at places
    ``p_i, p_j``. Under ``ties="average"`` the expectation has a closed form for every metric, as no
    change of sign depends on the order of other documents. For a gain times discount it is the
    difference of the blocks' mean discounts for documents of two tied blocks, and the mean of
    ``|D(p) - D(q)|`` over two different places inside one. When all scores are equal, as in the
    first round of boosting, the gradient is that of RankNet weighted by the gain differences.

    Time is quadratic in the length of a list (one division and some fifteen other operations per
    pair; RR and success: proportional to the number of relevant documents times the place of the
    first), or proportional to ``truncation`` times the length; memory is linear. A tied block
    costs only a sort; with ERR its size times the square of its number of different labels.

    References
    ----------
    burges2010, mcsherry2008
    """

    metric: str | Metric = _NDCG
    sigma: float = 1.0
    truncation: int | None = None
    ties: str = "average"
    normalize: str = "none"
    name: ClassVar[str] = "lambdarank"
    shift_invariant: ClassVar[bool] = True
    takes_pairs: ClassVar[bool] = False
    minimizes: ClassVar[bool] = False  # the weights move with the scores: no function to minimise

    def __post_init__(self) -> None:
        where = "LambdaRank"
        metric = parse_metric(self.metric)
        if metric.name not in FORMS:
            raise ValueError(
                f"{where}: metric must be one whose swap changes are known, "
                f"{', '.join(sorted(FORMS))}; got {str(metric)!r}"
            )
        object.__setattr__(self, "metric", metric)
        object.__setattr__(
            self, "sigma", _validate.number(where, "sigma", self.sigma, low=0, open_low=True)
        )
        if self.truncation is not None:
            _validate.number(where, "truncation", self.truncation, low=1, integer=True)
        _validate.choice(where, "ties", self.ties, TIES)
        _validate.choice(where, "normalize", self.normalize, NORMALIZE)

    def value(
        self, y: ArrayLike, s: ArrayLike, offsets: ArrayLike, weight: ArrayLike | None = None
    ) -> Floats:
        """The weighted pair loss of each query at the weights of the current ranking.

        Returns
        -------
        float64 array of shape (n_queries,); 0 for a query without a pair.
        """
        kernel = self._kernel(y, offsets, weight)
        return kernel.values(_scores(s))  # type: ignore[no-any-return]

    def derivatives(
        self, y: ArrayLike, s: ArrayLike, offsets: ArrayLike, weight: ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """Gradient and curvature of the loss in each score, the pair weights held fixed.

        Parameters
        ----------
        y : array-like of shape (n_docs,)
            Labels, 0 or more; a NaN document is unjudged: it holds a place but forms no pair.
        s : array-like of shape (n_docs,)
            Scores, finite.
        offsets : int64 array of shape (n_queries + 1,)
        weight : array-like of shape (n_docs,), optional
            Document weights; a pair counts with its winner's.

        Returns
        -------
        gradient, curvature : float64 arrays of shape (n_docs,)
            The gradient sums to 0 in each query; the curvature is at least 0.
        """
        return self.prepare(y, offsets, weight)(s)

    def prepare(
        self,
        y: ArrayLike,
        offsets: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        n_threads: int = 0,
    ) -> Derivatives:
        """``derivatives`` as a function of the scores alone.

        Gains and ideals are computed once; learners that ask for the gradient many times use this.
        """
        kernel = self._kernel(y, offsets, weight)
        return lambda s: kernel.gradients(_scores(s), n_threads)

    def __str__(self) -> str:
        return call_text(self.name, self)

    def _kernel(self, y: ArrayLike, offsets: ArrayLike, weight: ArrayLike | None) -> Any:
        where = "LambdaRank"
        assert isinstance(self.metric, Metric)
        labels = _validate.labels(where, y)
        starts = _validate.offsets(where, offsets, len(labels))
        weights = _validate.weights(where, weight, len(labels))
        return kernel(
            swap_form(self.metric, labels, starts),
            starts,
            weights,
            sigma=self.sigma,
            truncation=self.truncation,
            stable=self.ties == "stable",
            by_gap=self.normalize in ("gap", "both"),
            by_query=self.normalize in ("query", "both"),
        )


def _scores(s: ArrayLike) -> Floats:
    return np.ascontiguousarray(s, dtype=np.float64)
