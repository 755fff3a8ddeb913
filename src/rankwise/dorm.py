r"""DORM: linear rankers that minimise a bound of the ranking measure itself.

A structural support vector machine whose structured outputs are rankings (Le & Smola 2007): for
every query, the reference ranking must beat every other one by as much as the other loses in nDCG
(or MRR, precision, ERU, ...). Which ranking violates this most is a linear assignment problem; it
is solved exactly, in about the time of a few sorts.

>>> import rankwise as rw
>>> queries = rw.make_queries()
>>> train, test = queries.take(range(100)), queries.take(range(300, 1300))
>>> model = rw.DORM("ndcg@5", C=0.1, metric="ndcg@5").fit(train)
>>> round(model.score(test), 2)
0.65
>>> model.duality_gap_ < 1e-3
True

Which measure? ``"ndcg"`` without a cutoff is the most robust target, also where only the top
counts: every document of the list gives a gradient. Measures that see one place (WTA, P@1) give cuts that
see one document.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from rankwise import _validate
from rankwise._cutting import SOLVERS
from rankwise._estimator import _lists as lists_of
from rankwise._linear_problem import LinearProblem
from rankwise._newton import Floats, dot
from rankwise._structured import StructuredAP, StructuredBound
from rankwise.data import Queries, canonical_lists
from rankwise.linear import _Linear
from rankwise.metrics import Metric, parse_metric


class DORM(_Linear):
    r"""Direct optimisation of a ranking measure by structured estimation.

    ``objective = 1/2 |w|^2 + C sum over queries of l_q(w)``, with the bound ``l_q`` of
    :class:`rankwise.StructuredBound`

    Parameters
    ----------
    measure : str or Metric
        What the bound is of; see :class:`rankwise.StructuredBound`. ``"ap"`` makes this SVM-MAP
        (:class:`rankwise.StructuredAP`), whose scores know no places and no reference order.
    C : float
        Weight of the bound, above 0. The paper divides by the number of queries: its ``C`` is this
        one times ``n_queries``.
    places : {"log2", "reciprocal", "linear"}, float or tuple of float
        What the score at each place counts; the paper's experiments use ``"reciprocal"``.
    reference : {"sorted", "fixed"}
        Order of documents with equal gains in the reference; ``"fixed"`` is the published one.
    several : {"refuse", "first"}
        For RR: what to do with queries of several relevant documents.
    solver : {"queries", "bundle", "stochastic"}
        One cutting plane per query and round with a slack for each (the paper's column generation,
        all queries a round); one plane for the sum (bundle method); or block-coordinate
        Frank-Wolfe, one query at a time. All three end at the same optimum.
    scale : {None, "std"}
        ``"std"`` divides each feature by its standard deviation in the objective.
    tol : float
        Stop when the duality gap has fallen to ``tol`` times the objective.
    max_iter : int
        Rounds of planes, or passes over the queries (stochastic), for each reference that is held.
    warm_start : bool
        Begin with the planes of the last fit on the same queries (in a search), and, where the
        reference is sorted, hold it first at the last fit's model.
    random_state : int or None
        Order of the queries (stochastic); None is 0.
    metric : str or Metric
        What :meth:`score` returns.

    Attributes
    ----------
    coef_ : float64 array of shape (n_features,)
    intercept_ : float
        Always 0.
    objective_ : float
        The objective reached.
    duality_gap_ : float
        What the objective is at most above the optimum, relative to it. Where the loss is not
        convex (``reference="sorted"`` without ``places="linear"``): above the optimum of the
        convex problem whose reference is held where the last round found it.
    n_iter_ : int
        Rounds.
    n_planes_ : int
        Planes kept at the end.
    n_left_out_ : int
        Training queries that no order can make worse: without relevant documents or of one label.

    Raises
    ------
    ValueError
        If features are missing (NaN), if no query holds different labels, or if the measure is no
        sum of gains times discounts.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` rounds do not reach ``tol``; says what was reached.

    Notes
    -----
    A fit from zero or from a rough RankNet solution (where the reference is sorted by score) costs
    a few dozen rounds; each reads the features twice. A grid over ``C`` starts each fit with the
    planes of the last. Kernels come through maps: ``KernelRanker(map, loss=StructuredBound())``.

    References
    ----------
    le2007, yue2007, joachims2009, lacostejulien2013

    Examples
    --------
    >>> import rankwise as rw
    >>> model = rw.DORM("ndcg@3", C=1.0, places="reciprocal", scale=None)
    >>> model.fit([[2.0], [1.0], [0.0]], [2, 1, 0], qid=[1, 1, 1]).coef_.round(3).tolist()
    [0.5]
    >>> round(model.objective_, 5)
    0.28812
    """

    n_left_out_: int
    takes_pairs = False

    def __init__(
        self,
        measure: str | Metric = "ndcg",
        *,
        C: float = 1.0,
        places: Any = "log2",
        reference: str = "sorted",
        several: str = "refuse",
        solver: str = "queries",
        scale: str | None = "std",
        tol: float = 1e-3,
        max_iter: int = 500,
        warm_start: bool = False,
        random_state: int | None = None,
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.measure = measure
        self.C = C
        self.places = places
        self.reference = reference
        self.several = several
        self.solver = solver
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.metric = metric

    def _loss(self) -> StructuredBound | StructuredAP:
        measure = parse_metric(self.measure)
        if measure.name == "ap":
            rel = measure.options["rel"]
            if measure != Metric("ap", None, {"rel": rel}):
                raise ValueError(
                    f"DORM.fit: the bound of ap is that of the whole list, got {measure}; leave out "
                    "its cutoff and other options than rel"
                )
            return StructuredAP(rel)
        return StructuredBound(self.measure, self.places, self.reference, self.several)

    def _strengths(self) -> tuple[float, float, float]:
        return _validate.number("DORM.fit", "C", self.C, low=0, open_low=True), 1.0, 0.0

    def _solve(self, problem: LinearProblem, valid: Queries | None) -> None:
        _validate.choice("DORM.fit", "solver", self.solver, SOLVERS)
        self.n_left_out_ = _left_out(problem.lists)
        super()._solve(problem, valid)

    def partial_fit(
        self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None
    ) -> DORM:
        """Learns from a few more queries, each looked at once; those without an order teach nothing.

        Each query moves the weights just far enough to meet its bound at the present reference, and
        no further than ``C`` allows: one step of the dual problem in the query's own variable
        (passive-aggressive learning). The first call starts at zero weights.

        Parameters
        ----------
        X, y, qid, sample_weight
            As for ``fit``; ``scale`` is not applied, because a stream has no spread yet.

        Returns
        -------
        DORM
            Itself.
        """
        where = "DORM.partial_fit"
        C, _, _ = self._strengths()
        first = not hasattr(self, "coef_")
        features, names = self._input(where, X) if first else (self._checked(where, X), None)
        train = lists_of(where, X, features, names, y, qid, sample_weight, None)
        if first:
            self.coef_, self.intercept_ = np.zeros(train.n_features), 0.0
            self.n_features_in_ = train.n_features
            if names is not None:
                self.feature_names_in_ = np.asarray(names, dtype=object)
        lists, order = canonical_lists(train)
        kernel = self._loss()._kernel(lists.y, lists.offsets, lists.weight)
        w = self.coef_.copy()
        for q, (a, b) in enumerate(itertools.pairwise(lists.offsets)):
            rows = np.arange(a, b) if order is None else order[a:b]
            part = lists.X[rows]
            X_q = np.asarray(part.toarray() if hasattr(part, "nnz") else part, dtype=np.float64)
            loss, g = kernel.evaluate_query(q, np.ascontiguousarray(X_q @ w))
            step: Floats = X_q.T @ g
            square = dot(step, step)
            if square > 0:
                w -= min(C, loss / square) * step
        self.coef_ = w
        return self


def _left_out(train: Queries) -> int:
    highest = np.fmax.reduceat(train.y, train.offsets[:-1][train.sizes > 0])
    lowest = np.fmin.reduceat(train.y, train.offsets[:-1][train.sizes > 0])
    return int((~(highest > lowest)).sum() + (train.sizes == 0).sum())
