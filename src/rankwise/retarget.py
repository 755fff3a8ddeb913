r"""Monotone retargeting: linear rankers that fit the best vector in the order of the labels.

Regression takes labels for numbers. Retargeting lets the numbers go and keeps their order: the
target of a query is whatever vector in the order of its labels the scores come nearest to, in a
Bregman divergence whose generalised linear model they form. Given scores, that target costs one
sort and one pass (pool adjacent violators), so learning costs little more than regression.

>>> import rankwise as rw
>>> queries = rw.make_queries()
>>> train, test = queries.take(range(300)), queries.take(range(300, 1300))
>>> model = rw.MonotoneRetargeting("kl", alpha=0.01, metric="ndcg@5").fit(train)
>>> round(model.score(test), 2)
0.65

Which divergence? ``"kl"`` on the simplex looks most at the top of a list and is the default;
``"squared"`` with margins is a convex problem and the fastest. The loss itself,
:class:`Retargeted`, works in every other learner too: ``TreeRanker(loss="retargeted")``.

Aggregating rank lists without labels, by the same idea, is :mod:`rankwise.retarget_aggregation`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rankwise import _validate
from rankwise._retarget_loss import Retargeted
from rankwise.linear import _Linear
from rankwise.metrics import Metric

__all__ = ["MonotoneRetargeting", "Retargeted"]


class MonotoneRetargeting(_Linear):
    r"""Linear scores and targets in the order of the labels, fitted together (MR, MEMR).

    ``objective = sum over queries of (1/n_q) min over z, b of sum_i w_i D(z_i || g(x_i w + b))
    + alpha/2 |v|^2``, ``v_j = w_j scale_j``, ``z`` in the order of the labels, scale restricted

    Published as an alternation between targets and a generalised linear model. Here the target is
    minimised out, which leaves one smooth function of ``w`` (see :class:`Retargeted`) and reaches the
    alternation's fixed point in far fewer passes.

    Parameters
    ----------
    divergence : {"kl", "squared", "generalized", "logistic"}
    restriction : {"simplex", "margin"}
        What fixes the scale of targets: the simplex (MR), or margins between levels alone (MEMR).
    margin : float or None
        Between neighbouring levels of labels; see :class:`Retargeted`. With 0 on the simplex and a
        free constant per query, ``w = 0`` is a perfect fit: there is nothing to learn.
    offset : bool
        Whether each query has a free constant.
    alpha : float
        Strength of the ridge, above 0. On the simplex targets are small, and so must ``alpha`` be.
    scale : {"std", None}
        ``"std"`` penalises the weights of features divided by their standard deviation.
    tol : float
        Stop when the norm of the gradient has fallen to ``tol`` times its norm at ``w = 0``.
    max_iter : int
    warm_start : bool
        Begin at the coefficients of the last fit.
    metric : str or Metric
        What :meth:`score` returns.

    Attributes
    ----------
    coef_ : float64 array of shape (n_features,)
    intercept_ : float
        0 wherever queries have constants of their own.
    n_iter_ : int
    objective_, gradient_norm_ : float

    Raises
    ------
    ValueError
        If no query holds two labels, features are missing, or margins do not fit.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` steps do not reach ``tol``.

    Notes
    -----
    Convex for ``"squared"``. For the others a stationary point; the solver starts from a rough
    RankNet solution.

    References
    ----------
    acharyya2012, acharyya2014

    Examples
    --------
    Two documents one unit apart, a margin of 1: ``w = 1 / (1 + 4 alpha)``.

    >>> import rankwise as rw
    >>> model = rw.MonotoneRetargeting("squared", restriction="margin", alpha=1.0, scale=None)
    >>> model.fit([[1.0], [0.0]], [1, 0], qid=[1, 1]).coef_.round(6), round(model.objective_, 6)
    (array([0.2]), 0.1)
    """

    takes_pairs: ClassVar[bool] = False

    def __init__(
        self,
        divergence: str = "kl",
        *,
        restriction: str = "simplex",
        margin: float | None = None,
        offset: bool = True,
        alpha: float = 0.01,
        scale: str | None = "std",
        tol: float = 1e-6,
        max_iter: int = 1000,
        warm_start: bool = False,
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.divergence = divergence
        self.restriction = restriction
        self.margin = margin
        self.offset = offset
        self.alpha = alpha
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.metric = metric

    def _loss(self) -> Any:
        return Retargeted(self.divergence, self.restriction, self.margin, self.offset)

    def _strengths(self) -> tuple[float, float, float]:
        where = "MonotoneRetargeting.fit"
        return 1.0, _validate.number(where, "alpha", self.alpha, low=0, open_low=True), 0.0
