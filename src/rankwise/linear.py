r"""Linear rankers: scores ``s = X w`` that make a ranking loss small.

:class:`LinearRanker` takes any loss of :mod:`rankwise.losses`; :class:`RankSVM` is the pairwise
support vector machine in the literature's form and parameter. Both are convex problems, solved to a
stated gradient norm by truncated Newton steps that pass over the features once each, so memory
and time grow with the documents and not with the pairs.

>>> import rankwise as rw
>>> queries = rw.make_queries()
>>> train, test = queries.take(range(300)), queries.take(range(300, 1300))
>>> model = rw.LinearRanker("ranknet", metric="ndcg@5").fit(train)
>>> round(model.score(test), 3)
0.646
>>> model.coef_.round(2)  # feature 5 is constant inside a query: no order depends on it
array([1.4 , 0.98, 0.08, 0.08, 0.04, 0.  ])

Which one? Pointwise squared loss is the quickest and a fair baseline; it spends its effort on
differences between queries as well. RankNet and RankSVM look at pairs inside a query only. ListNet
looks at the top. On small sets they differ less than the choice of the regularisation: choose it on
validation queries.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rankwise import _validate
from rankwise._cutting import Planes, minimize_cut
from rankwise._estimator import Ranker
from rankwise._estimator import _lists as lists_of
from rankwise._hinge import FIRST_WIDTH, minimize_hinge
from rankwise._linear_problem import LinearProblem, features_of, kernel_of
from rankwise._newton import (
    DENSE_UP_TO,
    Floats,
    Solution,
    minimize,
    minimize_by_gradient,
    minimize_shrunken,
    norm,
)
from rankwise.data import Queries, canonical_lists
from rankwise.losses import HingePairs, Loss, RankNet, SquaredHingePairs, parse_loss
from rankwise.metrics import Metric, parse_metric


class _Linear(Ranker):
    """What the linear rankers share: fitting a convex problem and scoring."""

    coef_: Floats
    intercept_: float
    n_iter_: int
    objective_: float
    gradient_norm_: float
    duality_gap_: float
    n_planes_: int
    best_score_: float

    takes_pairs: ClassVar[bool] = True
    _moves_rows = False
    _warm_path = True
    scale: str | None
    tol: float
    max_iter: int
    warm_start: bool

    def coefficients(self) -> dict[str, float]:
        """Name of each feature (``f1``, ``f2``, ... where they have none) -> its coefficient, the
        largest in size first.

        Sizes compare where the features have one scale; otherwise look at ``coef * std(feature)``.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "coef_")
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"f{j + 1}" for j in range(len(self.coef_))]
        order = np.argsort(-np.abs(self.coef_), kind="stable")
        return {str(names[j]): float(self.coef_[j]) for j in order}

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        self._solve(self._problem(train), valid)

    def _fit_sharing(self, train: Queries, valid: Queries | None, shared: dict[Any, Any]) -> None:
        key = "linear", type(self).__name__, str(self._loss()), self.scale
        if key not in shared:
            shared[key] = self._problem(train)
        self._solve(shared[key], valid)

    def _problem(self, train: Queries) -> LinearProblem:
        """What does not depend on the strength of the penalty."""
        where = f"{type(self).__name__}.fit"
        if self.scale is not None:
            _validate.choice(where, "scale", self.scale, ["std"])
        loss = self._loss()
        check_labels(where, train, loss)
        lists, order = canonical_lists(train)
        return LinearProblem(
            lists,
            order,
            lambda part: kernel_of(loss, part),
            has_intercept=not getattr(loss, "shift_invariant", False),
            scale=self.scale,
            where=where,
        )

    def _solve(self, problem: LinearProblem, valid: Queries | None) -> None:
        where = f"{type(self).__name__}.fit"
        tol = _validate.number(where, "tol", self.tol, low=0)
        max_iter = int(_validate.number(where, "max_iter", self.max_iter, low=1, integer=True))
        problem.factor, problem.ridge, l1 = self._strengths()
        if getattr(self._loss(), "piecewise_linear", False):
            self._cut(problem, l1, tol, max_iter)
            return
        start, first = self._start(problem, l1)
        if first != 0 and not _TINY < first < 1 / _TINY:
            raise ValueError(
                f"{where}: features must be of a size whose squares can be told from 0 and from "
                f"infinity, got a gradient of norm {first:.2g} at zero weights; scale the features, "
                "for example by scale='std'"
            )
        shrink = np.append(np.full(len(problem.inverse), l1), [0.0] * problem.has_intercept)
        if hasattr(problem.kernel, "set_width"):
            penalty, width = shrink if l1 else None, problem.kernel.width()
            found, reached = minimize_hinge(
                problem, start, penalty, first=first, tol=tol, max_iter=max_iter, width=width
            )
            self.duality_gap_ = reached
            measure = "duality gap must fall to {:g} of the objective"
        else:
            found = _smooth(problem, start, shrink, first=first, tol=tol, max_iter=max_iter)
            reached = found.gradient_norm / first if first > 0 else 0.0
            measure = "gradient norm must fall to {:g} of its first value"
            if not l1:
                # The penalty's half of Fenchel's inequality; the loss's half is an equality.
                gap = found.gradient_norm**2 / (2 * problem.ridge)
                self.duality_gap_ = gap / found.value if found.value > 0 else 0.0
        self.coef_, self.intercept_ = problem.weights(found.w)
        self.n_iter_ = found.n_iter
        self.objective_ = found.value
        self.gradient_norm_ = found.gradient_norm / first if first > 0 else 0.0
        if not reached <= tol:
            warnings.warn(
                f"{where}: the {measure.format(tol)}, reached {reached:.2g} after {found.n_iter} "
                "iterations; raise max_iter or tol, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _cut(self, problem: LinearProblem, l1: float, tol: float, max_iter: int) -> None:
        """Cutting planes, for a loss that is piecewise linear."""
        where, loss = f"{type(self).__name__}.fit", self._loss()
        if l1:
            raise ValueError(f"{where}: l1_ratio must be 0 for {loss}, got one above 0")
        C = problem.factor / problem.ridge
        start = self._cut_start(problem, loss.convex)
        solver = getattr(self, "solver", "queries")
        planes = None
        if solver != "stochastic":
            # Without a warm start a fit must not depend on those before it.
            kept = problem.planes.get(solver) if self.warm_start else None
            planes = Planes(np.zeros((0, problem.n))) if kept is None else kept
            problem.planes[solver] = planes
        rng = np.random.default_rng(getattr(self, "random_state", None) or 0)
        found = minimize_cut(problem, solver, C, start, tol, max_iter, loss.convex, planes, rng)
        self.coef_, self.intercept_ = problem.weights(found.v)
        self.n_iter_ = found.n_rounds
        self.objective_ = problem.ridge * found.objective
        self.duality_gap_ = found.gap
        self.n_planes_ = found.n_planes
        if not found.converged:
            warnings.warn(
                f"{where}: the duality gap must fall to {tol:g} of the objective, reached "
                f"{found.gap:.2g} after {found.n_rounds} rounds; raise max_iter or tol, or lower C",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _cut_start(self, problem: LinearProblem, convex: bool) -> Floats:
        """Where a reference that moves with the scores is first held: a rough RankNet solution."""
        if self.warm_start and hasattr(self, "coef_") and len(self.coef_) == len(problem.inverse):
            return problem.variables(self.coef_, self.intercept_)
        zero = np.zeros(problem.n)
        if convex:
            return zero
        rough = copy.copy(problem)
        rough.kernel, rough.factor, rough.ridge = kernel_of(RankNet(), problem.lists), 1.0, 1.0
        _, gradient = rough.evaluate(zero)
        first = norm(gradient)
        if not _TINY < first < 1 / _TINY:
            return zero
        return minimize(rough, zero, first=first, tol=_ROUGH_TOL, max_iter=20).w

    def _start(self, problem: LinearProblem, l1: float) -> tuple[Floats, float]:
        """Where the solver begins, and the gradient's norm at zero weights."""
        zero = np.zeros(problem.n)
        if hasattr(problem.kernel, "set_width"):
            problem.kernel.set_width(FIRST_WIDTH)
        with np.errstate(all="ignore"):  # what is lost here is refused
            _, gradient = problem.evaluate(zero)
        first = norm(gradient)
        if not _TINY < first < 1 / _TINY:
            return zero, first
        if self.warm_start and hasattr(self, "coef_") and len(self.coef_) == len(problem.inverse):
            return problem.variables(self.coef_, self.intercept_), first
        if not hasattr(problem.kernel, "set_width") and _has_valleys(self._loss()):
            convex = copy.copy(problem)
            convex.kernel = kernel_of(RankNet(), problem.lists)
            _, gradient = convex.evaluate(zero)
            return minimize(
                convex, zero, first=norm(gradient), tol=_ROUGH_TOL, max_iter=20
            ).w, first
        part = problem.sample(problem.factor)
        if part is None or l1:
            return zero, first
        _, gradient = part.evaluate(zero)
        size, tol = norm(gradient), _ROUGH_TOL
        if not hasattr(part.kernel, "set_width"):
            search = part.line_search
            return minimize(part, zero, first=size, tol=tol, max_iter=20, search=search).w, first
        rough, _ = minimize_hinge(part, zero, None, first=size, tol=tol, max_iter=50)
        problem.kernel.set_width(part.kernel.width())
        return rough.w, first

    def _loss(self) -> Any:
        raise TypeError(f"{type(self).__name__} must define _loss()")

    def _strengths(self) -> tuple[float, float, float]:
        """Factor of the loss, of half the squared norm, and of the L1 norm."""
        raise TypeError(f"{type(self).__name__} must define _strengths()")

    def _score(self, X: Any) -> Floats:
        scores = features_of(X).scores(self.coef_)
        return np.asarray(scores + self.intercept_)


def _smooth(
    problem: LinearProblem, start: Floats, l1: Floats, *, first: float, tol: float, max_iter: int
) -> Solution:
    """The solver for a loss without corners: by what it offers and by the penalty."""
    if l1.any():
        problem.evaluate(start)
        matrix = problem.matrix() if problem.n <= DENSE_UP_TO else None
        return minimize_shrunken(
            problem, start, l1, matrix, first=first, tol=tol, max_iter=max_iter
        )
    if not problem.has_products:
        return minimize_by_gradient(problem, start, first=first, tol=tol, max_iter=max_iter)
    return minimize(
        problem, start, first=first, tol=tol, max_iter=max_iter, search=problem.line_search
    )


_TINY = 1e-120  # below it, and above its inverse, squares of gradients are lost
_ROUGH_TOL = 1e-2  # of the solution on a sample, and of the convex one before another loss
_PATIENCE = 30  # steps without a better metric


def _has_valleys(loss: Any) -> bool:
    """A loss of this library that is not convex: where the solver begins decides where it ends."""
    if not getattr(loss, "minimizes", True):
        return True
    return isinstance(loss, Loss) and not hasattr(loss, "hessian_product")


SVM_LOSSES: dict[str, Any] = {"squared_hinge": SquaredHingePairs(), "hinge": HingePairs()}


class LinearRanker(_Linear):
    r"""Linear scores that minimise a ranking loss with an L2, L1 or mixed penalty.

    ``objective = sum of the loss over the queries
    + alpha ((1 - l1_ratio) / 2 |v|^2 + l1_ratio sum of |v_j|)``, where ``v_j = w_j scale_j``

    With ``scale="std"`` the penalty acts on the weights of features divided by their standard
    deviation, so that one ``alpha`` suits features of any size; with ``scale=None`` on the weights
    as they are. Reported coefficients always belong to the features as given.

    Parameters
    ----------
    loss : str or loss
        ``"ranknet"``, ``"listnet"``, ``"squared"``, ``"squared_hinge"``, a text form such as
        ``"ranknet(sigma=2)"``, or any object with ``value`` and ``derivatives`` (see
        :mod:`rankwise.losses`). ``"squared"`` is ridge regression of the labels with a free
        intercept.
    alpha : float
        Strength of the penalty, above 0. As losses are sums, 1.0 is a weak penalty on large data.
    l1_ratio : float
        Share of the L1 penalty, from 0 (L2 alone) to 1 (L1 alone; the lasso). Above 0, features of
        little use get a coefficient of exactly 0.
    scale : {"std", None}
    tol : float
        Stop when the norm of the gradient has fallen to ``tol`` times its norm at ``w = 0``.
    max_iter : int
        Newton steps (L-BFGS steps for a loss without ``hessian_product``).
    warm_start : bool
        Begin at the coefficients of the last fit.
    metric : str or Metric
        What :meth:`score` returns.

    Attributes
    ----------
    coef_ : float64 array of shape (n_features,)
        Weights of the features as given. With pairwise and listwise losses a feature that is
        constant inside every query has weight 0, as no order depends on it.
    intercept_ : float
        Only for losses that a constant added to the scores changes; 0 otherwise.
    n_iter_ : int
    objective_ : float
        The objective reached.
    gradient_norm_ : float
        Norm of its gradient (with an L1 penalty: of its least subgradient), relative to the norm
        of the loss's gradient at ``w = 0``.

    Raises
    ------
    ValueError
        If features are missing (NaN), or if the labels give no order to learn: every query holds
        one label only (for ``"squared"``: all labels are equal).

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` steps do not reach ``tol``; says what was reached.

    Notes
    -----
    Each step solves for a direction by preconditioned conjugate gradients; an iteration of those
    costs one pass over the features, plus the pairs (RankNet), plus n log n (squared hinge). The
    preconditioner is a Cholesky factor of the scatter inside a sample of queries up to 512
    features; beyond, it is a diagonal, and each step is searched along for its best length.
    float32 features are read as they are and summed in float64.

    Losses of this library that are not convex begin at a rough RankNet solution. LambdaRank, whose
    gradient belongs to no function, begins there too and takes Newton-like steps along its gradient
    with the curvature of the moment, ever shorter; the weights with the best value of its own
    metric, on ``eval_set`` where given and on the training queries else, are kept (``best_score_``).

    Features with heavy tails (counts, lengths) deserve ``log1p`` first, or
    :class:`rankwise.QueryScaler`.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_queries(n_queries=50)
    >>> rw.LinearRanker("listnet").fit(queries).coef_.shape
    (6,)
    """

    def __init__(
        self,
        loss: Any = "ranknet",
        *,
        alpha: float = 1.0,
        l1_ratio: float = 0.0,
        scale: str | None = "std",
        tol: float = 1e-6,
        max_iter: int = 200,
        warm_start: bool = False,
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.metric = metric

    def _loss(self) -> Any:
        return parse_loss(self.loss)

    def _solve(self, problem: LinearProblem, valid: Queries | None) -> None:
        loss = self._loss()
        if getattr(loss, "minimizes", True):
            super()._solve(problem, valid)
            return
        where = "LinearRanker.fit"
        max_iter = int(_validate.number(where, "max_iter", self.max_iter, low=1, integer=True))
        problem.factor, problem.ridge, l1 = self._strengths()
        if l1:
            raise ValueError(
                f"{where}: l1_ratio must be 0 for {loss}, whose gradient belongs to no function, "
                f"got {self.l1_ratio:g}"
            )
        metric = parse_metric(getattr(loss, "metric", self.metric))
        self._follow(problem, metric, valid, max_iter)

    def _follow(
        self, problem: LinearProblem, metric: Metric, valid: Queries | None, max_iter: int
    ) -> None:
        """Steps along a gradient that belongs to no function; the best by the metric is kept."""
        lists = problem.lists if valid is None else valid
        features = problem.features if valid is None else features_of(valid.X)

        def watched(x: Floats) -> float:
            w, shift = problem.weights(x)
            return metric.mean(lists.y, features.scores(w) + shift, qid=lists.groups)

        x, first = self._start(problem, 0.0)
        best, best_score, best_step = x, watched(x), 0
        for step in range(max_iter):
            _, gradient = problem.evaluate(x)
            # Newton steps with the curvature of the moment, shorter and shorter.
            x = x - problem.preconditioner()(gradient) / (1 + step / 10)
            score = watched(x)
            if score > best_score:
                best, best_score, best_step = x, score, step + 1
            elif step + 1 - best_step >= _PATIENCE:
                break
        self.objective_, gradient = problem.evaluate(best)
        self.coef_, self.intercept_ = problem.weights(best)
        self.n_iter_, self.best_score_ = best_step, best_score
        self.gradient_norm_ = norm(gradient) / first if first > 0 else 0.0

    def _strengths(self) -> tuple[float, float, float]:
        where = "LinearRanker.fit"
        alpha = _validate.number(where, "alpha", self.alpha, low=0, open_low=True)
        share = _validate.number(where, "l1_ratio", self.l1_ratio, low=0, high=1)
        return 1.0, alpha * (1 - share), alpha * share


class RankSVM(_Linear):
    r"""Linear ranking support vector machine.

    ``objective = 1/2 |w|^2 + C sum over pairs max(0, 1 - (s_i - s_j))^2``, or without the square

    over pairs of documents of one query with ``y_i > y_j``, ``s = X w``; a document weight
    multiplies the pairs that the document wins.

    Parameters
    ----------
    C : float
        Weight of the pairs against the penalty, above 0. The sum is over all pairs: where another
        program averages over pairs or queries, or halves the loss, convert (see
        ``docs/learning.md``).
    loss : {"squared_hinge", "hinge"}
        The literature's L2 loss, or its L1 loss (Joachims 2002).
    scale : {None, "std"}
        ``"std"`` divides each feature by its standard deviation in the objective. Features of very
        different size should be scaled, here or before.
    tol : float
        Stop when the norm of the gradient has fallen to ``tol`` times its norm at ``w = 0``; with
        the hinge, when the duality gap has fallen to ``tol`` times the objective.
    max_iter : int
        Newton steps.
    warm_start : bool
        Begin at the coefficients of the last fit.
    metric : str or Metric
        What :meth:`score` returns.

    Attributes
    ----------
    coef_ : float64 array of shape (n_features,)
        Weights of the features as given; exactly 0 for features constant inside every query.
    intercept_ : float
        Always 0.
    n_iter_ : int
    objective_ : float
        The objective reached.
    gradient_norm_ : float
        Norm of its gradient, relative to that at ``w = 0`` (hinge: with the corner rounded off).
    duality_gap_ : float
        What the objective is at most above the optimum, relative to the objective.

    Raises
    ------
    ValueError
        If features are missing (NaN), or if every query holds one label only, so that there is no
        pair.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` steps do not reach ``tol``; says what was reached.

    Notes
    -----
    Trust-region truncated Newton on the primal problem; for the hinge on a sequence of problems
    whose corner is rounded less and less, with a lower bound from the dual problem at each step.
    Value, gradient and Hessian products need only the number of active partners of each document
    and sums of their scores (O(n log n)), and each costs one pass over the features. Solver and
    preconditioner are those of :class:`LinearRanker`.

    References
    ----------
    joachims2002, chapelle2010, lee2014

    Examples
    --------
    One pair with difference (3, 4): ``w = 2 C d / (1 + 2 C |d|^2)``.

    >>> import rankwise as rw
    >>> model = rw.RankSVM(C=1.0).fit([[3.0, 4.0], [0.0, 0.0]], [1, 0], qid=[1, 1])
    >>> model.coef_.round(6), round(model.objective_, 7)
    (array([0.117647, 0.156863]), 0.0196078)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        scale: str | None = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        warm_start: bool = False,
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.C = C
        self.loss = loss
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.metric = metric

    def _loss(self) -> Any:
        return SVM_LOSSES[_validate.choice("RankSVM.fit", "loss", self.loss, SVM_LOSSES)]

    def _strengths(self) -> tuple[float, float, float]:
        return _validate.number("RankSVM.fit", "C", self.C, low=0, open_low=True), 1.0, 0.0


# --- what fit refuses ----------------------------------------------------------------------


def check_labels(where: str, train: Queries, loss: Any) -> None:
    """Refuses lists in which the loss finds no order to learn."""
    if train.pairs is not None:
        if len(train.pairs) == 0:
            raise ValueError(f"{where}: pairs must hold at least one pair, got none")
        return
    filled = train.offsets[:-1][train.sizes > 0]
    # NaN (no judgement) counts on neither side; a query of NaN alone holds no order either.
    highest, lowest = np.fmax.reduceat(train.y, filled), np.fmin.reduceat(train.y, filled)
    same = ~(highest > lowest)
    if getattr(loss, "shift_invariant", False) and same.all():
        raise ValueError(
            f"{where}: some query must hold documents with different labels, "
            f"got {train.n_queries} queries of one label each; there is no order to learn"
        )
    if np.nanmax(train.y) == np.nanmin(train.y):
        raise ValueError(
            f"{where}: labels must differ, got {np.nanmax(train.y):g} for all {train.n_docs} documents; "
            "there is no order to learn"
        )


# --- paths and conventions -------------------------------------------------------------------


def linear_path(
    ranker: Any,
    X: Any,
    y: Any = None,
    *,
    values: Sequence[float],
    qid: Any = None,
    sample_weight: Any = None,
    pairs: Any = None,
) -> list[Any]:
    """One fitted ranker for each strength of the penalty, faster than as many fits.

    Parameters
    ----------
    ranker : LinearRanker or RankSVM
        Left as it is; ``values`` take the place of its ``alpha``, or ``C`` for RankSVM.
    X, y, qid, sample_weight, pairs
        As for ``fit``.
    values : sequence of float
        Strengths, in any order.

    Returns
    -------
    list of rankers, in the order of ``values``. Each ends within the ranker's ``tol``.

    Notes
    -----
    Features are checked, put in order and measured once, and each solution is where the next
    strength begins, from the strongest penalty to the weakest.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise as rw
    >>> queries = rw.make_queries(n_queries=50)
    >>> lasso = rw.LinearRanker("ranknet", l1_ratio=1.0)
    >>> path = rw.linear_path(lasso, queries, values=[10000, 300, 3])
    >>> [int(np.count_nonzero(model.coef_)) for model in path]
    [0, 2, 5]
    """
    where = "linear_path"
    if not isinstance(ranker, LinearRanker | RankSVM):
        raise TypeError(
            f"{where}: ranker must be a LinearRanker or a RankSVM, got {type(ranker).__name__}"
        )
    name = "C" if isinstance(ranker, RankSVM) else "alpha"
    strengths = [_validate.number(where, name, v, low=0, open_low=True) for v in values]
    if not strengths:
        raise ValueError(f"{where}: values must hold at least one {name}, got none")
    weakest_last = sorted(
        range(len(strengths)), key=lambda i: strengths[i], reverse=name == "alpha"
    )
    models: list[Any] = [None] * len(strengths)
    features, names = ranker._input(where, X)
    train = lists_of(where, X, features, names, y, qid, sample_weight, pairs)
    shared: dict[Any, Any] = {"queries": (train, None, names)}
    last = None
    for i in weakest_last:
        model = clone(ranker).set_params(**{name: strengths[i]})
        if last is not None:
            model.coef_, model.intercept_ = last.coef_, last.intercept_
            model.set_params(warm_start=True)
        models[i] = last = model.fit_in_search(train, None, shared)
        model.set_params(warm_start=ranker.warm_start)
    return models


def ranksvm_C(
    C: float, source: str, *, n_pairs: int | None = None, n_queries: int | None = None
) -> float:
    """The ``C`` of :class:`RankSVM` that gives the model of another program's ``C``.

    ============================  =========================================================
    source                        its objective; the ``C`` here
    ============================  =========================================================
    ``"linearsvc"``               scikit-learn's on differences, each pair once: the same
    ``"liblinear"``               LIBLINEAR's ranksvm: the same
    ``"chapelle"``                ``1/2 |w|^2 + C/2 sum of max(0, .)^2``: ``C / 2``
    ``"mean over pairs"``         ``C / n_pairs`` before the sum (Chapelle's LETOR script, dlib)
    ``"svm_rank"``                ``C / n_queries`` before the sum (hinge): ``C / n_queries``
    ``"svm_light"``               SVMlight in ranking mode (hinge): the same
    ``"regularised mean"``        ``lambda/2 |w|^2 + mean over pairs``: ``1 / (lambda n_pairs)``
    ``"alpha"``                   ``LinearRanker(alpha)``, ``scale=None``: ``1 / alpha``
    ============================  =========================================================

    Parameters
    ----------
    C : float
        The other program's parameter, above 0.
    source : str
        One of the names above.
    n_pairs, n_queries : int, optional
        Of the training data, where the table needs them.

    Returns
    -------
    float

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ranksvm_C(20.0, "svm_rank", n_queries=100)
    0.2
    >>> rw.ranksvm_C(2.0**-6, "chapelle") == 2.0**-7
    True
    """
    where = "ranksvm_C"
    C = _validate.number(where, "C", C, low=0, open_low=True)
    _validate.choice(where, "source", source, _CONVENTIONS)
    factor, needs = _CONVENTIONS[source]
    counts = {"n_pairs": n_pairs, "n_queries": n_queries}
    n = 1.0
    if needs is not None:
        n = _validate.number(where, needs, counts[needs], low=1, integer=True)
    return factor(C, n)


_CONVENTIONS: dict[str, tuple[Callable[[float, float], float], str | None]] = {
    "linearsvc": (lambda C, n: C, None),
    "liblinear": (lambda C, n: C, None),
    "chapelle": (lambda C, n: C / 2, None),
    "mean over pairs": (lambda C, n: C / n, "n_pairs"),
    "svm_rank": (lambda C, n: C / n, "n_queries"),
    "svm_light": (lambda C, n: C, None),
    "regularised mean": (lambda C, n: 1 / (C * n), "n_pairs"),
    "alpha": (lambda C, n: 1 / C, None),
}
