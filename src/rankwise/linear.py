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

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankwise import _core, _validate
from rankwise._estimator import Ranker
from rankwise._newton import Floats, Solution, dot, minimize, minimize_by_gradient
from rankwise.data import Queries
from rankwise.losses import SquaredHingePairs, check_takes_pairs, parse_loss
from rankwise.metrics import Metric


class _Linear(Ranker):
    """What the linear rankers share: fitting a convex problem and scoring."""

    coef_: Floats
    intercept_: float
    n_iter_: int
    objective_: float
    gradient_norm_: float

    takes_pairs: ClassVar[bool] = True
    scale: str | None
    tol: float
    max_iter: int

    def _solve(self, train: Queries, loss: Any, *, factor: float, ridge: float) -> None:
        where = f"{type(self).__name__}.fit"
        if self.scale is not None:
            _validate.choice(where, "scale", self.scale, ["std"])
        tol = _validate.number(where, "tol", self.tol, low=0)
        max_iter = int(_validate.number(where, "max_iter", self.max_iter, low=1, integer=True))
        _check_labels(where, train, loss)
        problem = _LinearProblem(train, loss, factor, ridge, self.scale)
        solve = minimize if problem.has_products else minimize_by_gradient
        solution = solve(problem, problem.n, tol=tol, max_iter=max_iter)
        self.coef_, self.intercept_ = problem.weights(solution.w)
        self.n_iter_ = solution.n_iter
        self.objective_ = solution.value
        self.gradient_norm_ = solution.gradient_norm
        if not solution.gradient_norm <= tol:
            warnings.warn(_not_converged(where, solution, tol), ConvergenceWarning, stacklevel=4)

    def _score(self, X: Any) -> Floats:
        scores = _features(X).scores(self.coef_)
        return np.asarray(scores + self.intercept_)


class LinearRanker(_Linear):
    r"""Linear scores that minimise a ranking loss with an L2 penalty.

    ``objective = sum of the loss over the queries + alpha / 2 |v|^2``, where ``v_j = w_j scale_j``

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
    scale : {"std", None}
    tol : float
        Stop when the norm of the gradient has fallen to ``tol`` times its norm at ``w = 0``.
    max_iter : int
        Newton steps (L-BFGS steps for a loss without ``hessian_product``).
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
        Norm of its gradient, relative to that at ``w = 0``.

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
    preconditioner is a Cholesky factor of the scatter inside a sample of queries (up to 512
    features; a diagonal beyond). float32 features are read as they are and summed in float64.

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
        scale: str | None = "std",
        tol: float = 1e-6,
        max_iter: int = 200,
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.metric = metric

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        where = "LinearRanker.fit"
        alpha = _validate.number(where, "alpha", self.alpha, low=0, open_low=True)
        loss = parse_loss(self.loss)
        if not getattr(loss, "minimizes", True):
            raise ValueError(
                f"{where}: loss must be a function of the scores, got {str(loss)!r}, whose "
                "gradient belongs to none; use TreeRanker"
            )
        self._solve(train, loss, factor=1.0, ridge=alpha)


class RankSVM(_Linear):
    r"""Linear ranking support vector machine.

    ``objective = 1/2 |w|^2 + C sum over pairs max(0, 1 - (s_i - s_j))^2``

    over pairs of documents of one query with ``y_i > y_j``, ``s = X w``; a document weight
    multiplies the pairs that the document wins.

    Parameters
    ----------
    C : float
        Weight of the pairs against the penalty, above 0. The sum is over all pairs: where another
        program averages over pairs or queries, or halves the loss, convert (see
        ``docs/learning.md``).
    loss : {"squared_hinge"}
        The L2 loss of the literature.
    scale : {None, "std"}
        ``"std"`` divides each feature by its standard deviation in the objective. Features of very
        different size should be scaled, here or before.
    tol : float
        Stop when the norm of the gradient has fallen to ``tol`` times its norm at ``w = 0``.
    max_iter : int
        Newton steps.
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
        Norm of its gradient, relative to that at ``w = 0``.

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
    Trust-region truncated Newton on the primal problem. Value, gradient and Hessian products need
    only the number of active partners of each document and sums of their scores (O(n log n)), and
    each costs one pass over the features. Solver and preconditioner are those of
    :class:`LinearRanker`.

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
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.C = C
        self.loss = loss
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.metric = metric

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        where = "RankSVM.fit"
        C = _validate.number(where, "C", self.C, low=0, open_low=True)
        _validate.choice(where, "loss", self.loss, ["squared_hinge"])
        self._solve(train, SquaredHingePairs(), factor=C, ridge=1.0)


# --- the problem ---------------------------------------------------------------------------


class _LinearProblem:
    """``factor * loss(X w) + ridge / 2 |v|^2`` as the solver sees it.

    The variables are the weights ``v`` of scaled features, ``w = v * inverse``, and after them,
    where the loss needs one, the score of the mean row (an intercept without penalty).
    """

    def __init__(
        self, train: Queries, loss: Any, factor: float, ridge: float, scale: str | None
    ) -> None:
        self.train, self.factor, self.ridge = train, factor, ridge
        self.features = _features(train.X)
        self.has_intercept = not getattr(loss, "shift_invariant", False)
        self.kernel = _kernel(loss, train)
        self.has_products = hasattr(self.kernel, "product_linear")
        self.mean = np.zeros(0)
        self.inverse = np.ones(train.n_features)
        if scale == "std" or self.has_intercept:
            self.mean, deviation = _moments(train.X)
            self.inverse[deviation == 0] = 0.0
            if scale == "std":
                np.divide(1.0, deviation, out=self.inverse, where=deviation > 0)
        if not self.has_intercept:
            # Exact zeros instead of the rounding noise of large constants.
            self.inverse[~self.features.varying_within(train.offsets)] = 0.0
        self.n = train.n_features + self.has_intercept
        self.curvature = np.zeros(0)

    def evaluate(self, x: Floats) -> tuple[float, Floats]:
        v, w, shift = self._unpack(x)
        values, gradient, total, self.curvature = self.kernel.evaluate_linear(
            self.features, w, shift
        )
        value = self.factor * float(values.sum()) + 0.5 * self.ridge * dot(v, v)
        return value, self._pack(v, gradient, total)

    def product(self, x: Floats) -> Floats:
        v, w, shift = self._unpack(x)
        bent, total = self.kernel.product_linear(self.features, w, shift)
        return self._pack(v, bent, total)

    def weights(self, x: Floats) -> tuple[Floats, float]:
        """Coefficients and intercept for the features as given."""
        _, w, shift = self._unpack(x)
        return w, shift

    def preconditioner(self) -> Callable[[Floats], Floats]:
        return _preconditioner(self)

    def _unpack(self, x: Floats) -> tuple[Floats, Floats, float]:
        v = x[: len(self.inverse)]
        w = np.ascontiguousarray(v * self.inverse)
        return v, w, float(x[-1]) - dot(self.mean, w) if self.has_intercept else 0.0

    def _pack(self, v: Floats, sums: Floats, total: float) -> Floats:
        """Derivatives in the variables from ``X^T z`` and the sum of ``z``."""
        if not self.has_intercept:
            return self.factor * sums * self.inverse + self.ridge * v
        centred = (sums - self.mean * total) * self.inverse
        return np.append(self.factor * centred + self.ridge * v, self.factor * total)


class _ForeignLoss:
    """A user's loss in the form of the native ones."""

    def __init__(self, loss: Any, train: Queries) -> None:
        self.loss, self.train = loss, train
        self.scores = np.zeros(0)

    def evaluate_linear(
        self, features: Any, w: Floats, shift: float
    ) -> tuple[Floats, Floats, float, Floats]:
        train = self.train
        self.scores = features.scores(w) + shift
        arguments = (train.y, self.scores, train.offsets, train.weight)
        values = np.asarray(self.loss.value(*arguments), dtype=np.float64)
        gradient, curvature = (
            np.ascontiguousarray(column, dtype=np.float64)
            for column in self.loss.derivatives(*arguments)
        )
        for name, column, n in (
            ("value", values, train.n_queries),
            ("gradient", gradient, train.n_docs),
        ):
            if column.shape != (n,) or not np.isfinite(column).all():
                raise ValueError(
                    f"LinearRanker.fit: the loss must return a finite {name} array of length {n}, "
                    f"got shape {column.shape}"
                )
        return values, features.transposed(gradient), float(gradient.sum()), curvature


class _ForeignLossWithProducts(_ForeignLoss):
    def product_linear(self, features: Any, u: Floats, shift: float) -> tuple[Floats, float]:
        train = self.train
        v = features.scores(u) + shift
        bent = np.ascontiguousarray(
            self.loss.hessian_product(train.y, self.scores, train.offsets, v, train.weight),
            dtype=np.float64,
        )
        return features.transposed(bent), float(bent.sum())


def _kernel(loss: Any, train: Queries) -> Any:
    if train.pairs is not None:
        check_takes_pairs("LinearRanker.fit", loss)
        return loss._pair_kernel(train.offsets, train.weight, train.pairs)
    if hasattr(loss, "_kernel"):
        return loss._kernel(train.y, train.offsets, train.weight)
    if hasattr(loss, "hessian_product"):
        return _ForeignLossWithProducts(loss, train)
    return _ForeignLoss(loss, train)


def _features(X: Any) -> Any:
    if hasattr(X, "nnz"):
        return _core.Features(X.data, X.indices, X.indptr, X.shape[1])
    return _core.Features(X)


_CHUNK = 1 << 20  # numbers converted to float64 at a time


def _row_chunks(X: Any) -> list[slice]:
    step = max(1, _CHUNK // X.shape[1])
    return [slice(start, start + step) for start in range(0, X.shape[0], step)]


def _moments(X: Any) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each feature; exactly 0 where rounding is all there is."""
    n, d = X.shape
    sums, squares = np.zeros(d), np.zeros(d)
    if hasattr(X, "nnz"):
        mean = np.bincount(X.indices, X.data, minlength=d) / n
        away = np.bincount(X.indices, (X.data - mean[X.indices]) ** 2, minlength=d)
        squares = away + (n - np.bincount(X.indices, minlength=d)) * mean**2
    else:
        for rows in _row_chunks(X):
            sums += X[rows].sum(axis=0, dtype=np.float64)
        mean = sums / n
        for rows in _row_chunks(X):
            squares += ((X[rows] - mean) ** 2).sum(axis=0)
    deviation = np.sqrt(squares / n)
    deviation[deviation <= 1e-13 * np.abs(mean)] = 0.0
    return mean, deviation


# --- the preconditioner --------------------------------------------------------------------

_FULL_UP_TO = 512  # features; the factor costs d^3 / 6 products
_SAMPLE = 16  # sampled documents per feature


def _preconditioner(problem: _LinearProblem) -> Callable[[Floats], Floats]:
    """Solves with an approximate Hessian at the point last evaluated.

    For a pairwise or listwise loss the Hessian in the scores of a query is close to
    ``diag(c) - c c^T / sum(c)`` with the curvature ``c``, which in the weights is the scatter of
    the documents about their mean; a sample of queries estimates it. The intercept stands alone,
    as features are centred.
    """
    queries, d = problem.train, len(problem.inverse)
    curvature = np.maximum(problem.curvature, 0.0)
    total = problem.factor * float(curvature.sum())
    tail = np.array([total if total > 0 else 1.0]) if problem.has_intercept else np.zeros(0)
    rows, offsets = _sample(queries, curvature)
    if len(rows) == 0:
        return lambda r: r / problem.ridge if not problem.has_intercept else r
    c = curvature[rows] * (total / curvature[rows].sum())
    if d > _FULL_UP_TO:
        diagonal = np.append(problem.ridge + _weighted_squares(problem, rows, c), tail)
        return lambda r: r / diagonal
    X = queries.X[rows]
    X = X.toarray() if hasattr(X, "nnz") else X
    width = d + -d % 8
    scatter = np.zeros((len(rows), width))
    np.multiply(X, problem.inverse, out=scatter[:, :d])
    if problem.has_intercept:
        scatter[:, :d] -= problem.mean * problem.inverse
    else:
        mass = np.add.reduceat(c, offsets[:-1])
        means = np.add.reduceat(scatter * c[:, None], offsets[:-1])
        means /= np.where(mass > 0, mass, 1.0)[:, None]
        scatter -= np.repeat(means, np.diff(offsets), axis=0)
    scatter *= np.sqrt(c)[:, None]
    matrix = _core.gram(scatter)
    matrix[np.diag_indices(width)] += problem.ridge
    # Rounding can leave the matrix of nearly dependent features just indefinite.
    matrix[np.diag_indices(width)] *= 1 + 1e-12 * width
    factor = _core.cholesky(matrix)

    def solve(r: Floats) -> Floats:
        padded = np.zeros(width)
        padded[:d] = r[:d]
        head = _core.cholesky_solve(factor, padded)[:d]
        return np.append(head, r[d:] / tail) if problem.has_intercept else head

    return solve


def _sample(queries: Queries, curvature: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of evenly spaced whole queries that matter, and their offsets.

    A few documents per feature are enough. Of a query longer than that only the first rows
    are taken: in canonical order they are as good as random.
    """
    wanted = _SAMPLE * (queries.n_features + 8)
    sums = np.concatenate([[0.0], np.cumsum(curvature)])[queries.offsets]
    useful = np.flatnonzero(np.diff(sums) > 0)
    sizes = np.minimum(queries.sizes[useful], wanted)
    stride = max(1, int(sizes.sum()) // wanted)
    useful, sizes = useful[::stride], sizes[::stride]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]).astype(np.int64)
    shift = np.repeat(queries.offsets[useful] - offsets[:-1], sizes)
    return np.arange(offsets[-1], dtype=np.int64) + shift, offsets


def _weighted_squares(problem: _LinearProblem, rows: NDArray[np.int64], c: Floats) -> Floats:
    """Sum of ``c x^2`` of each scaled feature: over all rows where sparse, over the sample else."""
    X, d = problem.train.X, len(problem.inverse)
    if not hasattr(X, "nnz"):
        centre = X[rows].mean(axis=0, dtype=np.float64)
        centred = (X[rows] - centre) * problem.inverse
        return np.asarray((centred**2 * c[:, None]).sum(axis=0))
    sums = np.zeros(d)
    curvature = problem.factor * np.maximum(problem.curvature, 0.0)
    for part in _row_chunks(X):
        X_part = X[part]
        weights = np.repeat(curvature[part], np.diff(X_part.indptr))
        sums += np.bincount(X_part.indices, weights * X_part.data.astype(float) ** 2, minlength=d)
    return sums * problem.inverse**2


# --- what fit refuses and warns about ------------------------------------------------------


def _check_labels(where: str, train: Queries, loss: Any) -> None:
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


def _not_converged(where: str, solution: Solution, tol: float) -> str:
    return (
        f"{where}: the gradient norm must fall to {tol:g} of its first value, reached "
        f"{solution.gradient_norm:.2g} after {solution.n_iter} iterations; raise max_iter or tol, "
        "or scale the features"
    )
