r"""Kernel rankers at the price of linear ones: a map of the features, and a linear ranker behind it.

The scores are ``f(x) = w.psi(x)`` with an explicit map ``psi`` whose inner products are close to a
kernel (:mod:`rankwise.maps`), so time and memory grow with the number of documents and not with
its square. Any map goes with any loss of :mod:`rankwise.losses`.

>>> import rankwise as rw
>>> queries = rw.make_queries()
>>> train, test = queries.take(range(300)), queries.take(range(300, 1300))
>>> map = rw.Nystroem(200, gamma=0.05, landmarks="kmeans", random_state=0)
>>> round(rw.KernelRanker(map, C=0.1, metric="ndcg@5").fit(train).score(test), 2)
0.88
>>> round(rw.RankSVM(C=0.1, metric="ndcg@5").fit(train).score(test), 2)
0.65

:class:`RankNystrom` and :class:`RankRandomFourier` are the two rankers of Chen et al. (2017) by
name, with all their parameters side by side and the paper's settings as defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankwise import _core, _validate
from rankwise._linear_problem import LinearProblem, Rows, _sample, features_of, kernel_of
from rankwise._newton import Floats
from rankwise.data import Queries, row_hashes
from rankwise.linear import _Linear, check_labels
from rankwise.losses import parse_loss
from rankwise.maps import Nystroem, RandomFourierFeatures, _Map, one_thread
from rankwise.metrics import Metric

_NUMBERS = 1 << 22  # mapped features held at a time while scoring
_HELD = 1 << 27  # bytes of mapped documents that a search keeps besides the newest
_TILE = 256  # rows another library's map gets at a time


class _Mapped(_Linear):
    """What the kernel rankers share: mapping, fitting in the map's basis, scoring."""

    map_: Any
    _moves_rows: ClassVar[bool] = True
    scale = None
    loss: Any
    C: float

    def _map(self, where: str) -> Any:
        """The map to fit."""
        raise TypeError(f"{type(self).__name__} must define _map(where)")

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        self._fit_sharing(train, valid, {})

    def _fit_sharing(self, train: Queries, valid: Queries | None, shared: dict[Any, Any]) -> None:
        where = f"{type(self).__name__}.fit"
        loss = self._loss()
        check_labels(where, train, loss)
        wanted = self._map(where)
        settings = _settings(wanted)
        key = ("map", settings)
        if key not in shared:
            _make_room(shared)
            shared[key] = _learn_map(where, wanted, train.X, self._kept(settings, train))
        fitted, basis = shared[key]
        problem_key = ("mapped", settings, str(loss))
        if problem_key not in shared:
            shared[problem_key] = _problem(where, fitted, basis, train, loss)
        if getattr(self, "_settings_of_fit", None) != settings and hasattr(self, "coef_"):
            del self.coef_  # weights of another map are no place to start
        self.map_ = fitted
        self._solve(shared[problem_key], valid)
        self._settings_of_fit = settings

    def _kept(self, settings: Any, train: Queries) -> Any:
        """The map of the last fit, where a warm start goes on from it."""
        same = self.warm_start and getattr(self, "_settings_of_fit", None) == settings
        return self.map_ if same and self.map_.n_features_in_ == train.n_features else None

    def _loss(self) -> Any:
        loss = parse_loss(self.loss)
        if not getattr(loss, "minimizes", True):
            raise ValueError(
                f"{type(self).__name__}.fit: loss must be a function of the scores, got "
                f"{str(loss)!r}, whose gradient belongs to none; use TreeRanker or LinearRanker"
            )
        return loss

    def _strengths(self) -> tuple[float, float, float]:
        where = f"{type(self).__name__}.fit"
        return _validate.number(where, "C", self.C, low=0, open_low=True), 1.0, 0.0

    def coefficients(self) -> dict[str, float]:
        """Name of each feature of the map -> its coefficient, the largest in size first."""
        names = self.map_.get_feature_names_out()
        order = np.argsort(-np.abs(self.coef_), kind="stable")
        return {str(names[j]): float(self.coef_[j]) for j in order}

    def _score(self, X: Any) -> Floats:
        where = f"{type(self).__name__}.predict"
        change = self.map_._change() if isinstance(self.map_, _Map) else None
        w = self.coef_ if change is None else _core.Features(change).scores(self.coef_)
        scores = np.empty(X.shape[0])
        step = max(_TILE, _NUMBERS // len(w) // _TILE * _TILE)
        for start in range(0, X.shape[0], step):
            rows = slice(start, start + step)
            scores[rows] = features_of(_basis(where, self.map_, X[rows])).scores(w)
        return scores + self.intercept_


class KernelRanker(_Mapped):
    r"""Any map of the features, with any loss behind it.

    ``objective = 1/2 |w|^2 + C sum of the loss over the queries``, scores ``s = psi(X) w``

    Parameters
    ----------
    map : transformer, optional
        :class:`rankwise.Nystroem` (unless given), :class:`rankwise.RandomFourierFeatures`, or any
        transformer of scikit-learn's kind, such as ``sklearn.kernel_approximation.RBFSampler``. It
        is copied and fitted to the training documents, without labels.
    loss : str or loss
        ``"squared_hinge"`` (RankSVM), ``"hinge"``, or any loss of :class:`rankwise.LinearRanker`.
    C : float
        Weight of the loss against the penalty, above 0, as in :class:`rankwise.RankSVM`.
    tol : float
        Stop when the norm of the gradient has fallen to ``tol`` times its norm at ``w = 0``; with
        the hinge, when the duality gap has fallen to ``tol`` times the objective.
    max_iter : int
        Newton steps.
    warm_start : bool
        Keep the map of the last fit where its parameters are the same, and begin at its
        coefficients.
    metric : str or Metric
        What :meth:`score` returns.

    Attributes
    ----------
    map_ : fitted transformer
    coef_ : float64 array of shape (n_components,)
        Weights of the mapped features.
    intercept_ : float
        Only for losses that a constant added to the scores changes; 0 otherwise.
    n_iter_ : int
    objective_ : float
    gradient_norm_ : float
        Relative to the norm at ``w = 0``.
    duality_gap_ : float

    Raises
    ------
    ValueError
        If the mapped features do not differ inside any query, so that no order can be learned
        (``gamma`` far too small, or constant features), or are not finite.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` steps do not reach ``tol``; says what was reached.

    Notes
    -----
    With :class:`rankwise.Nystroem` the solver works in the basis ``k(x, b_1), ..., k(x, b_m)`` and
    applies ``W^(-1/2)`` to its vectors, so the documents are never multiplied by it: a fit costs
    the similarities, O(n m d), one factor, O(m^3), and O(n m) for each step of conjugate gradients.
    Scoring costs O(m d) a document.

    Equal rows get bit-equal scores with the maps of rankwise; with another library's map, equal
    rows of one call are mapped once.

    References
    ----------
    chen2017, chapelle2010

    Examples
    --------
    >>> import rankwise as rw
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> queries = rw.make_queries(n_queries=20)
    >>> ranker = rw.KernelRanker(RBFSampler(gamma=0.05, random_state=0), loss="listnet")
    >>> ranker.fit(queries).coef_.shape
    (100,)
    """

    def __init__(
        self,
        map: Any = None,
        *,
        loss: Any = "squared_hinge",
        C: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 200,
        warm_start: bool = False,
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.map = map
        self.loss = loss
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.metric = metric

    def _map(self, where: str) -> Any:
        if self.map is None:
            return Nystroem()
        if not all(hasattr(self.map, name) for name in ("fit", "transform", "get_params")):
            raise TypeError(
                f"{where}: map must be a transformer with fit and transform, got {self.map!r}; "
                "for example rankwise.Nystroem(500)"
            )
        return clone(self.map)


class RankNystrom(_Mapped):
    r"""RankSVM behind Nystrom's map (Chen et al. 2017).

    ``objective = 1/2 |w|^2 + C sum over pairs max(0, 1 - (s_i - s_j))^2``, ``s = psi(X) w``

    The same as ``KernelRanker(Nystroem(...))``, with the paper's settings as defaults. The C that the
    paper and its program print is twice this one: their loss carries a factor 1/2.

    Parameters
    ----------
    n_components, kernel, gamma, landmarks, threshold, relative, dtype, random_state
        Of :class:`rankwise.Nystroem`. The paper takes 500 landmarks at random (2,000 for MQ2007)
        and drops eigenvalues up to 1e-6.
    C, loss, tol, max_iter, warm_start, metric
        Of :class:`rankwise.KernelRanker`.

    Attributes
    ----------
    map_ : Nystroem
    coef_, intercept_, n_iter_, objective_, gradient_norm_, duality_gap_
        As in :class:`rankwise.KernelRanker`.

    References
    ----------
    chen2017

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_queries(n_queries=20)
    >>> rw.RankNystrom(50, gamma=0.05, C=0.1, random_state=0).fit(queries).map_.landmarks_.shape
    (50, 6)
    """

    def __init__(
        self,
        n_components: int = 500,
        *,
        gamma: float | None = None,
        C: float = 1.0,
        kernel: str = "rbf",
        landmarks: Any = "uniform",
        threshold: float | None = 1e-6,
        relative: bool = False,
        loss: Any = "squared_hinge",
        tol: float = 1e-4,
        max_iter: int = 200,
        warm_start: bool = False,
        dtype: str = "float64",
        random_state: Any = None,
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.C = C
        self.kernel = kernel
        self.landmarks = landmarks
        self.threshold = threshold
        self.relative = relative
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.dtype = dtype
        self.random_state = random_state
        self.metric = metric

    def _map(self, where: str) -> Nystroem:
        return Nystroem(
            self.n_components, kernel=self.kernel, gamma=self.gamma, landmarks=self.landmarks,
            threshold=self.threshold, relative=self.relative, dtype=self.dtype,
            random_state=self.random_state,
        )  # fmt: skip


class RankRandomFourier(_Mapped):
    r"""RankSVM behind random Fourier features (Chen et al. 2017).

    ``objective = 1/2 |w|^2 + C sum over pairs max(0, 1 - (s_i - s_j))^2``, ``s = psi(X) w``

    The same as ``KernelRanker(RandomFourierFeatures(...))``, with the paper's settings as defaults.
    The C that the paper and its program print is twice this one.

    Parameters
    ----------
    n_components, kernel, gamma, form, draw, dtype, random_state
        Of :class:`rankwise.RandomFourierFeatures`.
    C, loss, tol, max_iter, warm_start, metric
        Of :class:`rankwise.KernelRanker`.

    Attributes
    ----------
    map_ : RandomFourierFeatures
    coef_, intercept_, n_iter_, objective_, gradient_norm_, duality_gap_
        As in :class:`rankwise.KernelRanker`.

    References
    ----------
    chen2017, rahimi2007

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_queries(n_queries=20)
    >>> rw.RankRandomFourier(64, gamma=0.05, random_state=0).fit(queries).coef_.shape
    (64,)
    """

    def __init__(
        self,
        n_components: int = 500,
        *,
        gamma: float | None = None,
        C: float = 1.0,
        kernel: str = "rbf",
        form: str = "phase",
        draw: str = "independent",
        loss: Any = "squared_hinge",
        tol: float = 1e-4,
        max_iter: int = 200,
        warm_start: bool = False,
        dtype: str = "float64",
        random_state: Any = None,
        metric: str | Metric = "ndcg@10",
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.C = C
        self.kernel = kernel
        self.form = form
        self.draw = draw
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.dtype = dtype
        self.random_state = random_state
        self.metric = metric

    def _map(self, where: str) -> RandomFourierFeatures:
        return RandomFourierFeatures(
            self.n_components, kernel=self.kernel, gamma=self.gamma, form=self.form,
            draw=self.draw, dtype=self.dtype, random_state=self.random_state,
        )  # fmt: skip


# --- mapping ---------------------------------------------------------------------------------


def _settings(map: Any) -> Any:
    """What tells two unfitted maps apart, as a key."""
    params = sorted(map.get_params(deep=True).items())
    return type(map), tuple((name, _as_key(value)) for name, value in params)


def _as_key(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    return value if getattr(type(value), "__hash__", None) is not None else repr(value)


def _make_room(shared: dict[Any, Any]) -> None:
    """Lets go of the oldest maps of a search, when their documents take more than a share of memory."""
    maps = [key for key in shared if key[0] == "map"]
    held = [shared[key][1].nbytes for key in maps]
    while maps and sum(held) > _HELD:
        _, settings = oldest = maps.pop(0)
        held.pop(0)
        del shared[oldest]
        for key in [k for k in shared if k[0] == "mapped" and k[1] == settings]:
            del shared[key]


def _learn_map(where: str, map: Any, X: Any, kept: Any) -> tuple[Any, NDArray[Any]]:
    """A fitted map and the training documents in its basis."""
    if kept is None:
        with one_thread():
            map.fit(X)
        kept = map
    basis = _basis(where, kept, X)
    if not isinstance(kept, _Map) and not np.isfinite(basis).all():
        raise ValueError(
            f"{where}: the mapped features must be finite, got "
            f"{basis[~np.isfinite(basis)][0]} from {type(kept).__name__}; scale the features"
        )
    return kept, basis


def _basis(where: str, map: Any, X: Any) -> NDArray[Any]:
    return map._basis(where, X) if isinstance(map, _Map) else _foreign(where, map, X)


def _foreign(where: str, map: Any, X: Any) -> NDArray[Any]:
    """Another library's map, equal rows once and in blocks of one shape.

    What it gives for a row may depend on the row's place in a block, by rounding.
    """
    _, first, place = np.unique(row_hashes(X), return_index=True, return_inverse=True)
    blocks = []
    with one_thread():
        for start in range(0, len(first), _TILE):
            rows = first[start : start + _TILE]
            padded = np.concatenate([rows, np.repeat(rows[-1:], _TILE - len(rows))])
            Z = map.transform(X[padded])
            Z = np.asarray(Z.toarray() if hasattr(Z, "nnz") else Z)
            if Z.ndim != 2 or len(Z) != _TILE:
                raise ValueError(
                    f"{where}: map must return one row per document, got shape {Z.shape} from "
                    f"{type(map).__name__} for {_TILE} documents"
                )
            blocks.append(Z[: len(rows)])
    mapped = np.concatenate(blocks)
    if mapped.dtype not in (np.float32, np.float64):
        mapped = mapped.astype(np.float64)
    return np.ascontiguousarray(mapped[place])


# --- the problem -----------------------------------------------------------------------------


def _problem(where: str, map: Any, basis: NDArray[Any], train: Queries, loss: Any) -> LinearProblem:
    problem = _Problem(
        train.with_features(basis),
        None,
        lambda part: kernel_of(loss, part),
        has_intercept=not getattr(loss, "shift_invariant", False),
        scale=None,
        where=where,
    )
    if not problem.inverse.any():
        gamma = getattr(map, "gamma_", None)
        at = "" if gamma is None else f" at gamma={gamma:g}"
        raise ValueError(
            f"{where}: the mapped features must differ inside some query, got equal ones in all "
            f"{train.n_queries} queries{at}; scale the features or raise gamma"
        )
    change = map._change() if isinstance(map, _Map) else None
    return problem if change is None else _MappedProblem(problem, change)


_FULL_UP_TO = 4096  # features of the map for which the preconditioner is a full matrix
_PATIENCE = 0.15  # products with n documents, times d^2 / n, that cost what this matrix does


class _Problem(LinearProblem):
    """The linear problem over the features of a map: many, dense, and far from independent. So its
    preconditioner is a full matrix also where there are thousands, made by BLAS and kept from one
    fit to the next on the same queries, as long as about as many pairs are active.

    Random features under a strong penalty are close to independent, though. So a fit begins with
    the diagonal, until products have cost about what the matrix would.
    """

    _kept: tuple[float, Floats] | None = None  # the sum of curvatures, and its matrix without ridge
    _cheap_diagonal: ClassVar[bool] = True
    _diagonal_only = False
    _products = 0  # since the diagonal came into use
    _solve: Callable[[Floats], Floats]

    def product(self, x: Floats) -> Floats:
        self._products += 1
        return super().product(x)

    def _sample_size(self) -> int:
        d = len(self.inverse)
        return (16 if d <= 512 else 2) * (d + 8)

    def search(
        self, x: Floats, step: Floats, value: float, gradient: Floats
    ) -> tuple[float, float, Floats]:
        found = super().search(x, step, value, gradient)
        d = len(self.inverse)
        if self._diagonal_only and self._products * self.lists.n_docs > _PATIENCE * d * d:
            self._solve = self._factor()
        return found

    def preconditioner(self) -> Callable[[Floats], Floats]:
        d = len(self.inverse)
        if d > _FULL_UP_TO:
            return super().preconditioner()
        cheap = self._cheap_diagonal and d > 512 and self.line_search is not None
        self._diagonal_only = cheap and self._kept is None
        if self._diagonal_only:
            diagonal, self._products = self._diagonal(), 0
            self._solve = lambda r: r / diagonal
        else:
            self._solve = self._factor()
        return lambda r: self._solve(r)

    def _factor(self) -> Callable[[Floats], Floats]:
        """Solves with :meth:`matrix` at the point last evaluated."""
        from scipy.linalg.lapack import dpotrf, dpotrs

        self._diagonal_only = False
        with one_thread():
            matrix = self.matrix()
            matrix[np.diag_indices(self.n)] *= 1 + 1e-12 * self.n
            factor, failed = dpotrf(matrix, lower=1, overwrite_a=1)
        if failed:
            diagonal = self._diagonal()
            return lambda r: r / diagonal
        return lambda r: np.asarray(dpotrs(factor, r, lower=1)[0])

    def matrix(self) -> Floats:
        d = len(self.inverse)
        curvature = np.maximum(self.curvature, 0.0)
        total = float(curvature.sum())
        if self._kept is None or not 0.25 < total / self._kept[0] < 4.0:
            rows, offsets = _sample(self.lists, curvature, self._sample_size())
            gram = np.zeros((d, d))
            if len(rows) > 0:
                scatter = self._scatter(rows, offsets, curvature[rows] / curvature[rows].sum())
                with one_thread():
                    gram = scatter[:, :d].T @ scatter[:, :d]
            self._kept = total if total > 0 else 1.0, gram
        out = np.zeros((self.n, self.n))
        out[:d, :d] = self._kept[1] * (self.factor * total)
        out[np.arange(d), np.arange(d)] += self.ridge
        if self.has_intercept:
            out[d, d] = self.factor * total if total > 0 else 1.0
        return out

    def sample(self, factor: float) -> LinearProblem | None:
        part = super().sample(factor)
        if isinstance(part, _Problem):
            part._kept = None
        return part


class _MappedProblem(_Problem):
    """A problem over the weights of ``X @ change`` that never makes this product: ``change`` is
    applied to vectors instead.
    """

    _cheap_diagonal = False  # it takes the matrix

    def __init__(self, problem: LinearProblem, change: Floats) -> None:
        vars(self).update(vars(problem))
        self.change, self._change = _core.Features(change), change
        self.inverse = np.ones(change.shape[1])
        self.n = len(self.inverse) + self.has_intercept
        if self.has_intercept:
            self.mean = self.change.transposed(problem.mean)

    def weights(self, x: Floats) -> tuple[Floats, float]:
        v, _, shift = self._unpack(x)
        return v.copy(), shift

    def _unpack(self, x: Floats) -> tuple[Floats, Floats, float]:
        v, _, shift = super()._unpack(x)
        return v, self.change.scores(np.ascontiguousarray(v)), shift

    def _pack(self, v: Floats, sums: Floats, total: float) -> Floats:
        return super()._pack(v, self.change.transposed(np.ascontiguousarray(sums)), total)

    def pulled(self, sums: Floats) -> Floats:
        return sums @ self._change

    def _scaled_rows(self, rows: Rows) -> Any:
        with one_thread():
            return self.lists.X[rows].astype(np.float64) @ self._change

    def _diagonal(self) -> Floats:
        return np.diagonal(self.matrix()).copy()
