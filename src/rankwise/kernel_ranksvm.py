r"""RankSVM with an exact kernel: scores ``f(x) = sum of beta_i k(x_i, x)`` over the training documents.

The problem is that of :class:`rankwise.RankSVM` in the kernel's feature space. Its number of
variables is the number of documents, never of pairs, but the Gram matrix has ``n^2`` entries: a few
ten thousand documents are the end of it, and far before that a map with a linear ranker behind
it (``KernelRanker``) gives the same quality in a fraction of the time.

>>> import rankwise as rw
>>> queries = rw.make_queries(n_queries=40, n_docs=15)
>>> train, test = queries.take(range(30)), queries.take(range(30, 40))
>>> model = rw.KernelRankSVM("rbf", gamma=0.1, C=0.1).fit(train)
>>> model.dual_coef_.shape == (len(model.support_vectors_),)
True
>>> model.memory_ == 30 * 15 * 30 * 15 * 8  # bytes
True

The kernels, for rows ``x`` and ``z``:

=================  ====================================================
``"linear"``       ``x.z``
``"poly"``         ``(gamma x.z + coef0)^degree``
``"rbf"``          ``exp(-gamma |x - z|^2)``
``"laplacian"``    ``exp(-gamma sum of |x_j - z_j|)``
``"chi2"``         ``exp(-gamma sum of (x_j - z_j)^2 / (x_j + z_j))``
``"precomputed"``  the matrix passed as ``X``
a function         ``f(X, Z) -> (n_x, n_z)``, symmetric, positive semidefinite
=================  ====================================================
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
from rankwise._hinge import minimize_hinge
from rankwise._linear_problem import kernel_of
from rankwise._newton import Floats, Solution, minimize
from rankwise.data import Queries, canonical_lists
from rankwise.kernels import Kernel, check_features, dense
from rankwise.linear import SVM_LOSSES, check_labels
from rankwise.metrics import Metric

_KERNELS = ("linear", "poly", "rbf", "laplacian", "chi2", "precomputed")
_GIGABYTE = 1e9


class KernelRankSVM(Ranker):
    r"""Ranking support vector machine with an exact kernel.

    ``objective = 1/2 beta' K beta + C sum over pairs max(0, 1 - (s_i - s_j))^2``, ``s = K beta``

    or without the square. Over pairs of documents of one query with ``y_i > y_j``; a document
    weight multiplies the pairs that the document wins.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "laplacian", "chi2", "precomputed"} or callable
        With ``"precomputed"``, ``fit`` takes the Gram matrix ``(n_docs, n_docs)`` and ``predict``
        the kernel between its rows and the documents of ``fit``.
    gamma : float, optional
        Above 0; one over the number of features unless given.
    degree : int
        Of the polynomial kernel.
    coef0 : float
        Of the polynomial kernel, at least 0.
    C : float
        Weight of the pairs, above 0, as in :class:`rankwise.RankSVM`.
    loss : {"squared_hinge", "hinge"}
    tol : float
        Squared hinge: stop when the norm of the gradient (in the kernel's feature space) has
        fallen to ``tol`` times its norm at zero. Hinge: when the duality gap has fallen to ``tol``
        times the objective.
    max_iter : int
        Newton steps.
    memory_limit : float
        Gigabytes (10^9 bytes) that the Gram matrix may take; ``fit`` refuses more.
    metric : str or Metric
        What :meth:`score` returns.

    Attributes
    ----------
    dual_coef_ : float64 array of shape (n_support,)
        ``beta`` of the documents that are in an active pair. They sum to 0 in each query.
    support_ : int64 array of shape (n_support,)
        Their rows, in the order of the input (only with ``"precomputed"``).
    support_vectors_ : float64 array of shape (n_support, n_features)
        Their features (not with ``"precomputed"``).
    n_iter_ : int
    objective_ : float
    gradient_norm_ : float
        Relative to the norm at zero.
    duality_gap_ : float
        What the objective is at most above the optimum, relative to the objective.
    memory_ : int
        Bytes of the Gram matrix, known before it is made.

    Raises
    ------
    ValueError
        If the Gram matrix would need more than ``memory_limit``, features are missing or (chi2)
        negative, or there is no pair.
    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` steps do not reach ``tol``; says what was reached.

    Notes
    -----
    Truncated Newton steps in the feature space, whose inner product of ``beta`` and ``delta`` is
    ``beta' K delta``: there the Hessian is the identity plus the pairs' part, and each product
    with it costs one product with K (O(n^2), in parallel) and O(n log n) for the pairs. The Gram
    matrix costs O(n^2 d). Where the kernel is singular, rounding ends at a relative gradient norm
    of about 1e-8. The hinge is solved as in :class:`rankwise.RankSVM`.

    References
    ----------
    joachims2002, kuo2014

    Examples
    --------
    The linear kernel gives RankSVM's scores:

    >>> import rankwise as rw
    >>> X, y, qid = [[3.0, 4.0], [0.0, 0.0]], [1, 0], [1, 1]
    >>> rw.KernelRankSVM("linear").fit(X, y, qid=qid).predict(X).round(6)
    array([0.980392, 0.      ])
    >>> rw.RankSVM().fit(X, y, qid=qid).predict(X).round(6)
    array([0.980392, 0.      ])
    """

    takes_pairs: ClassVar[bool] = True
    _moves_rows: ClassVar[bool] = False

    dual_coef_: Floats
    support_: NDArray[np.int64]
    support_vectors_: Floats
    n_iter_: int
    objective_: float
    gradient_norm_: float
    duality_gap_: float
    memory_: int

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        *,
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        C: float = 1.0,
        loss: str = "squared_hinge",
        tol: float = 1e-4,
        max_iter: int = 200,
        memory_limit: float = 4.0,
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.metric = metric

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        self._fit_sharing(train, valid, {})

    def _fit_sharing(self, train: Queries, valid: Queries | None, shared: dict[Any, Any]) -> None:
        where = "KernelRankSVM.fit"
        C = _validate.number(where, "C", self.C, low=0, open_low=True)
        tol = _validate.number(where, "tol", self.tol, low=0)
        max_iter = int(_validate.number(where, "max_iter", self.max_iter, low=1, integer=True))
        loss = SVM_LOSSES[_validate.choice(where, "loss", self.loss, SVM_LOSSES)]
        check_labels(where, train, loss)
        self.memory_ = self._afford(where, train.n_docs)
        gram = self._gram_function(where, train.n_features)
        key = "gram", self.kernel, self.gamma, self.degree, self.coef0
        if key not in shared:
            for other in [k for k in shared if k[0] == "gram"]:
                del shared[other]  # memory_limit is for one matrix
            shared[key] = self._training_matrix(where, train, gram)
        lists, order, rows, K = shared[key]
        problem = _KernelProblem(K, kernel_of(loss, lists), C)
        zero = np.zeros((2, lists.n_docs))
        _, gradient = problem.evaluate(zero)
        first = float(np.sqrt(problem.dot(gradient, gradient)))
        if self.loss == "hinge":
            found, gap = minimize_hinge(
                problem, zero, None, first=first, tol=tol, max_iter=max_iter
            )
        else:
            found = minimize(problem, zero, first=first, tol=tol, max_iter=max_iter)
            gap = found.gradient_norm**2 / (2 * found.value) if found.value > 0 else 0.0
        self.n_iter_, self.objective_, self.duality_gap_ = found.n_iter, found.value, gap
        self.gradient_norm_ = found.gradient_norm / first if first > 0 else 0.0
        beta = problem.settled(found, first * tol, 1 + 0.01 * tol)
        support = np.flatnonzero(beta)
        self.dual_coef_ = beta[support]
        if self.kernel == "precomputed":
            self.support_ = rows[support]
        else:
            self.support_vectors_ = _dense(train.X[support if order is None else order[support]])
        reached = gap if self.loss == "hinge" else self.gradient_norm_
        if not reached <= tol:
            measure = "duality gap" if self.loss == "hinge" else "relative gradient norm"
            warnings.warn(
                f"{where}: the {measure} must fall to {tol:g}, reached {reached:.2g} after "
                f"{found.n_iter} iterations; raise max_iter or tol, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _afford(self, where: str, n: int) -> int:
        """Bytes of the Gram matrix, if the user's limit allows it."""
        limit = _validate.number(where, "memory_limit", self.memory_limit, low=0, open_low=True)
        needed = 8 * n * n
        if needed > limit * _GIGABYTE:
            raise ValueError(
                f"{where}: the Gram matrix of {n} documents must fit in memory_limit={limit:g} "
                f"gigabytes, got {needed / _GIGABYTE:.3g}; use an approximation, "
                "KernelRanker(Nystroem(...)), or raise memory_limit"
            )
        return needed

    def _gram_function(self, where: str, d: int) -> Callable[[Any, Any], Any]:
        if callable(self.kernel):
            return self.kernel
        name = _validate.choice(where, "kernel", self.kernel, _KERNELS)
        gamma = 1.0 / d
        if self.gamma is not None:
            gamma = _validate.number(where, "gamma", self.gamma, low=0, open_low=True)
        degree = int(_validate.number(where, "degree", self.degree, low=1, integer=True))
        coef0 = _validate.number(where, "coef0", self.coef0, low=0)
        if name == "precomputed":
            return lambda X, Z: X
        return Kernel(name, gamma, degree, coef0).matrix

    def _training_matrix(
        self, where: str, train: Queries, gram: Callable[[Any, Any], Any]
    ) -> tuple[Queries, Any, Any, Floats]:
        """Lists, where their rows lie in X and (precomputed) in the input, and K between them."""
        if self.kernel == "precomputed":
            if train.n_features != train.n_docs:
                raise ValueError(
                    f"{where}: a precomputed X must be the square Gram matrix of the documents, "
                    f"got shape {train.X.shape}"
                )
            rows = np.arange(train.n_docs) if train.order is None else train.order
            K = train.X if train.order is None else train.X[:, train.order]
            return train, None, rows, _checked_gram(where, K, train.n_docs)
        lists, order = canonical_lists(train)
        X = _dense(train.X if order is None else train.X[order])
        check_features(where, self.kernel, X)
        return lists, order, None, _checked_gram(where, gram(X, X), train.n_docs)

    def _score(self, X: Any) -> Floats:
        where = "KernelRankSVM.predict"
        if self.kernel == "precomputed":
            chosen = _dense(X[:, self.support_])
            return np.asarray(_core.Features(chosen).scores(self.dual_coef_))
        gram = self._gram_function(where, self.n_features_in_)
        scores = np.zeros(X.shape[0])
        for start in range(0, X.shape[0], _TILE):
            part = _dense(X[start : start + _TILE])
            K = np.ascontiguousarray(gram(part, self.support_vectors_), dtype=np.float64)
            scores[start : start + len(part)] = _core.Features(K).scores(self.dual_coef_)
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel == "chi2"
        return tags


_TILE = 512  # rows scored at a time


class _KernelProblem:
    """RankSVM in the feature space of a kernel: an element is ``[beta, K beta]``, its inner product
    with another ``beta' K delta``. Evaluations and products need one product with K each.
    """

    ridge = 1.0
    line_search = None

    def __init__(self, K: Floats, kernel: Any, C: float) -> None:
        self.gram, self.kernel, self.factor = _core.Features(K), kernel, C
        self.n = len(K)
        self.inverse = np.ones(len(K))

    def dot(self, a: Floats, b: Floats) -> float:
        return float((a[0] * b[1]).sum())

    def evaluate(self, w: Floats) -> tuple[float, Floats]:
        values, slope, _ = self.kernel.evaluate(np.ascontiguousarray(w[1]))
        value = self.factor * float(values.sum()) + 0.5 * self.dot(w, w)
        return value, self._element(w[0] + self.factor * slope)

    def product(self, u: Floats) -> Floats:
        return self._element(u[0] + self.factor * self.kernel.product(np.ascontiguousarray(u[1])))

    def preconditioner(self) -> Callable[[Floats], Floats]:
        return lambda r: r

    def settled(self, found: Solution, norm: float, factor: float) -> Floats:
        """``beta`` of a solution, with exact zeros where a document is in no active pair.

        A vanishing gradient ``K r``, ``r = beta + C slopes``, says little about ``r`` where K is
        singular; ``-C slopes`` has the same scores and ``r = 0``. It is taken if the objective
        and the gradient are as good there; otherwise numbers next to 0 become 0.
        """
        _, slope, _ = self.kernel.evaluate(np.ascontiguousarray(found.w[1]))
        # Sums of weights may leave rounding noise where there is no active pair.
        slope[np.abs(slope) <= 1e-10 * np.abs(slope).max()] = 0.0
        point = self._element(-self.factor * slope)
        value, gradient = self.evaluate(point)
        good = self.dot(gradient, gradient) <= norm**2
        if hasattr(self.kernel, "hinge"):
            value = self.factor * self.kernel.hinge() + 0.5 * self.dot(point, point)
            good = True
        if good and value <= factor * found.value:
            return np.asarray(point[0])
        small = np.abs(found.w[0]) <= 1e-9 * np.abs(found.w[0]).max()
        return np.where((slope == 0) & small, 0.0, found.w[0])

    def matrix(self) -> Floats:
        raise TypeError("an L1 penalty has no meaning in the feature space of a kernel")

    def _element(self, beta: Floats) -> Floats:
        return np.stack([beta, self.gram.scores(beta)])


def _dense(X: Any) -> Floats:
    """Rows in float64; sparse ones are filled up."""
    return np.ascontiguousarray(dense(X), dtype=np.float64)


def _checked_gram(where: str, values: Any, n: int) -> Floats:
    K: Floats = np.ascontiguousarray(values, dtype=np.float64)
    if K.shape != (n, n):
        raise ValueError(f"{where}: the kernel must give a matrix of shape {(n, n)}, got {K.shape}")
    if not np.isfinite(K).all():
        raise ValueError(
            f"{where}: the kernel must be finite, got {K[~np.isfinite(K)][0]}; scale the features"
        )
    away = (
        float(np.abs(K - K.T).max()) if n <= 2000 else float(np.abs(K[:2000] - K[:, :2000].T).max())
    )
    if away > 1e-8 * max(float(np.abs(K.diagonal()).max()), 1e-300):
        raise ValueError(
            f"{where}: the kernel must be symmetric, got entries that differ by {away:g} "
            "from those across the diagonal"
        )
    return K
