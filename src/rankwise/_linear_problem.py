"""A linear ranker's training problem as a solver sees it: value, gradient, Hessian products.

The scores ``X w`` pass through a ranking loss; every product reads the features once. Rows are
taken in canonical order wherever they lie in memory, so that sums, and with them the model, do not
depend on how rows were stored.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise import _core
from rankwise._newton import Floats, Search, dot
from rankwise.data import Queries
from rankwise.losses import HingePairs, check_takes_pairs

Rows = NDArray[np.int64]


class LinearProblem:
    """``factor * loss(X w) + ridge / 2 |v|^2`` over the weights ``v`` of scaled features.

    ``w = v * inverse`` are the weights of the features as given. After ``v`` comes, where the
    loss needs one, the score of the mean row (an intercept without penalty).

    Parameters
    ----------
    lists : Queries
    order : int64 array or None
        As :func:`rankwise.data.canonical_lists` gives them.
    make_kernel : callable
        The loss over the labels or pairs of some lists.
    """

    def __init__(
        self,
        lists: Queries,
        order: Rows | None,
        make_kernel: Callable[[Queries], Any],
        *,
        has_intercept: bool,
        scale: str | None,
        where: str,
    ) -> None:
        self.lists, self.order, self.make_kernel = lists, order, make_kernel
        self.kernel = make_kernel(lists)
        self.has_intercept = has_intercept
        self.features = features_of(lists.X, order)
        self.factor = self.ridge = 1.0
        self.planes: dict[str, Any] = {}  # cutting planes met so far, by solver
        d = lists.n_features
        self.mean = np.zeros(0)
        self.inverse = np.ones(d)
        varies = self.features.varying_within(lists.offsets)
        if scale == "std" or has_intercept:
            self.mean, deviation = _moments(self.features, lists.n_docs, d)
            lost = ~np.isfinite(deviation) | ((deviation == 0) & varies & (self.mean < 1e-100))
            if lost.any():
                j = int(np.argmax(lost))
                raise ValueError(
                    f"{where}: features must be of a size whose squares can be told from 0 and from "
                    f"infinity, got a standard deviation of {deviation[j]:g} in column {j}; scale it"
                )
            self.inverse[deviation == 0] = 0.0
            if scale == "std":
                np.divide(1.0, deviation, out=self.inverse, where=deviation > 0)
        if not has_intercept:
            # Exact zeros instead of the rounding noise of large constants.
            self.inverse[~varies] = 0.0
        self.n = d + has_intercept
        # Of the point last evaluated; the scores only where steps are searched along.
        self.curvature = self.scores = np.zeros(0)

    dot = staticmethod(dot)

    @property
    def has_products(self) -> bool:
        return hasattr(self.kernel, "product_linear")

    @property
    def line_search(self) -> Search | None:
        """:meth:`search` where steps are best searched along: without a good preconditioner."""
        if len(self.inverse) > _FULL_UP_TO and hasattr(self.kernel, "product"):
            return self.search
        return None

    def evaluate(self, x: Floats) -> tuple[float, Floats]:
        v, w, shift = self._unpack(x)
        if self.line_search is not None:
            zero = not w.any()  # scores of 0 need no features
            scores = np.zeros(self.lists.n_docs) if zero else self.features.scores(w, quick=True)
            value, slopes = self._evaluate_scores(scores + shift, v)
            return value, self._pack(v, self.features.transposed(slopes), float(slopes.sum()))
        values, gradient, total, self.curvature = self.kernel.evaluate_linear(
            self.features, w, shift
        )
        return self._value(values, v), self._pack(v, gradient, total)

    def search(
        self, x: Floats, step: Floats, value: float, gradient: Floats
    ) -> tuple[float, float, Floats]:
        """How much of a step to go from ``x``, the point last evaluated; value and gradient there.

        Scores move on a line: however many lengths are tried, the features are read once for the
        scores of the step and once for the gradient at its end. Newton steps in one dimension, until
        the slope is a small share of the first.
        """
        (v, _, _), (p, u, shift) = self._unpack(x), self._unpack(step)
        start, moved = self.scores, self.features.scores(u, quick=True) + shift
        first, highest = dot(gradient, step), value + 1e-14 * abs(value)
        following, low, high = 1.0, 0.0, np.inf
        for _ in range(_LENGTHS):
            t = following
            value, slopes = self._evaluate_scores(start + t * moved, v + t * p)
            slope = self.factor * dot(slopes, moved) + self.ridge * dot(v + t * p, p)
            if abs(slope) <= _FLAT * abs(first) and value <= highest:
                break
            low, high = (t, high) if slope < 0 and value <= highest else (low, t)
            bend = self.factor * dot(moved, self.kernel.product(moved)) + self.ridge * dot(p, p)
            following = t - slope / bend if bend > 0 else np.inf
            if not low < following < high:
                following = 0.5 * (low + high) if high < np.inf else 2 * low
        sums, total = self.features.transposed(slopes), float(slopes.sum())
        return t, value, self._pack(v + t * p, sums, total)

    def _evaluate_scores(self, scores: Floats, v: Floats) -> tuple[float, Floats]:
        """Value and the loss's gradient in the scores."""
        self.scores = scores
        values, slopes, self.curvature = self.kernel.evaluate(scores)
        return self._value(values, v), slopes

    def _value(self, values: Floats, v: Floats) -> float:
        return self.factor * float(values.sum()) + 0.5 * self.ridge * dot(v, v)

    def product(self, x: Floats) -> Floats:
        v, w, shift = self._unpack(x)
        bent, total = self.kernel.product_linear(self.features, w, shift)
        return self._pack(v, bent, total)

    def pulled(self, sums: Floats) -> Floats:
        """Derivatives in the weights from rows of ``X^T z``, for a loss without an intercept."""
        return sums * self.inverse

    def weights(self, x: Floats) -> tuple[Floats, float]:
        """Coefficients and intercept for the features as given."""
        _, w, shift = self._unpack(x)
        return w, shift

    def variables(self, coef: Floats, intercept: float) -> Floats:
        """The solver's variables of a model for the features as given."""
        v = np.divide(coef, self.inverse, out=np.zeros(len(coef)), where=self.inverse > 0)
        return np.append(v, intercept + dot(self.mean, coef)) if self.has_intercept else v

    def sample(self, factor: float) -> LinearProblem | None:
        """The same problem on evenly spaced queries, or None where there are too few documents.

        ``factor`` times the curvature of all queries to that of the sample is its factor: call it
        after an evaluation at zero weights, where the curvature counts the pairs.
        """
        lists = self.lists
        wanted = max(_ROUGH_LEAST, _ROUGH * lists.n_features)
        stride = lists.n_docs // wanted
        if stride < _ROUGH_STRIDE or lists.pairs is not None or not self.has_products:
            return None
        chosen = np.arange(0, lists.n_queries, stride)
        rows = lists._rows(chosen)
        mass = float(self.curvature[rows].sum())
        if len(rows) < wanted // 2 or not mass > 0:
            return None
        part = copy.copy(self)
        part.lists = replace(
            lists,
            y=lists.y[rows],
            offsets=np.concatenate([[0], np.cumsum(lists.sizes[chosen])]).astype(np.int64),
            ids=lists.ids[chosen],
            docs=None,
            weight=None if lists.weight is None else lists.weight[rows],
            order=None,
        )
        part.order = rows if self.order is None else self.order[rows]
        part.features = features_of(lists.X, part.order)
        part.kernel = self.make_kernel(part.lists)
        part.factor = factor * float(self.curvature.sum()) / mass
        return part

    def preconditioner(self) -> Callable[[Floats], Floats]:
        """Solves with :meth:`matrix`, or with its diagonal where there are many features."""
        if len(self.inverse) > _FULL_UP_TO:
            diagonal = self._diagonal()
            return lambda r: r / diagonal
        matrix = self.matrix()
        width = len(matrix) + -len(matrix) % 8
        padded = np.eye(width)
        padded[: len(matrix), : len(matrix)] = matrix
        # Rounding can leave the matrix of nearly dependent features just indefinite.
        padded[np.diag_indices(width)] *= 1 + 1e-12 * width
        factor = _core.cholesky(padded)

        def solve(r: Floats) -> Floats:
            right = np.zeros(width)
            right[: len(r)] = r
            return np.asarray(_core.cholesky_solve(factor, right)[: len(r)])

        return solve

    def matrix(self) -> Floats:
        """An approximate Hessian at the point last evaluated.

        For a pairwise or listwise loss the Hessian in the scores of a query is close to
        ``diag(c) - c c^T / sum(c)`` with the curvature ``c``, which in the weights is the scatter
        of the documents about their mean; a sample of queries estimates it. The intercept stands
        alone, as features are centred.
        """
        d = len(self.inverse)
        out = np.zeros((self.n, self.n))
        curvature = np.maximum(self.curvature, 0.0)
        total = self.factor * float(curvature.sum())
        if self.has_intercept:
            out[d, d] = total if total > 0 else 1.0
        rows, offsets = _sample(self.lists, curvature, self._sample_size())
        if len(rows) > 0:
            c = curvature[rows] * (total / curvature[rows].sum())
            # Whole queries at a time, as many as stay in cache; a piece of a long one has about the
            # same mean as the whole.
            long = np.flatnonzero(np.diff(offsets) > 2 * _CHUNK)
            inner = [np.arange(offsets[q], offsets[q + 1] - _CHUNK, _CHUNK) for q in long]
            offsets = np.unique(np.concatenate([offsets, *inner]))
            cuts = np.searchsorted(offsets, [*range(0, len(rows), _CHUNK), len(rows)])
            for first, last in itertools.pairwise(np.unique(cuts)):
                a, b = offsets[first], offsets[last]
                scatter = self._scatter(rows[a:b], offsets[first : last + 1] - a, c[a:b])
                out[:d, :d] += _core.gram(scatter)[:d, :d]
        out[np.arange(d), np.arange(d)] += (
            self.ridge if self.ridge > 0 else 1e-12 * (total + 1e-300)
        )
        return out

    def _sample_size(self) -> int:
        """Documents behind the approximate Hessian."""
        least, most = (share * (len(self.inverse) + 8) for share in _SAMPLE)
        return min(max(least, self.lists.n_docs // 20), most)

    def _scatter(self, rows: Rows, offsets: Rows, c: Floats) -> Floats:
        """Scaled features of the rows about their queries' means, times ``sqrt(c)``, padded."""
        d = len(self.inverse)
        scatter = np.zeros((len(rows), d + -d % 8))
        scatter[:, :d] = self._scaled_rows(rows)
        if self.has_intercept:
            scatter[:, :d] -= self.mean * self.inverse
        else:
            mass = np.add.reduceat(c, offsets[:-1])
            means = np.add.reduceat(scatter * c[:, None], offsets[:-1])
            means /= np.where(mass > 0, mass, 1.0)[:, None]
            scatter -= np.repeat(means, np.diff(offsets), axis=0)
        scatter *= np.sqrt(c)[:, None]
        return scatter

    def _scaled_rows(self, rows: Rows) -> Any:
        """Scaled features of some documents."""
        X = self.lists.X[rows if self.order is None else self.order[rows]]
        return (X.toarray() if hasattr(X, "nnz") else X) * self.inverse

    def _diagonal(self) -> Floats:
        curvature = self.factor * np.maximum(self.curvature, 0.0)
        centre = self.mean if self.has_intercept else np.zeros(len(self.inverse))
        squares = self.features.squares(np.ascontiguousarray(curvature), centre)
        diagonal = self.ridge + squares * self.inverse**2
        if self.has_intercept:
            diagonal = np.append(diagonal, curvature.sum())
        return np.where(diagonal > 0, diagonal, 1.0)

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
        self.pairs = {} if train.pairs is None else {"pairs": train.pairs}
        self.scores = np.zeros(0)

    def evaluate_linear(
        self, features: Any, w: Floats, shift: float
    ) -> tuple[Floats, Floats, float, Floats]:
        train = self.train
        self.scores = features.scores(w) + shift
        arguments = (train.y, self.scores, train.offsets, train.weight)
        values = np.asarray(self.loss.value(*arguments, **self.pairs), dtype=np.float64)
        gradient, curvature = (
            np.ascontiguousarray(column, dtype=np.float64)
            for column in self.loss.derivatives(*arguments, **self.pairs)
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
            self.loss.hessian_product(
                train.y, self.scores, train.offsets, v, train.weight, **self.pairs
            ),
            dtype=np.float64,
        )
        return features.transposed(bent), float(bent.sum())


def kernel_of(loss: Any, lists: Queries) -> Any:
    """The loss over the labels of some lists, as :class:`LinearProblem` calls it.

    The hinge has a corner: its kernel is the rounded one that :mod:`rankwise._hinge` works with.
    """
    if lists.pairs is not None:
        check_takes_pairs("LinearRanker.fit", loss)
    if isinstance(loss, HingePairs):
        if lists.pairs is None:
            return _core.SmoothHingeLoss(lists.y, lists.offsets, lists.weight)
        pairs = lists.pairs
        columns = pairs.winner, pairs.loser, pairs.weight, pairs.target
        return _core.SmoothHingePairs(lists.offsets, lists.weight, *columns)
    if lists.pairs is not None and hasattr(loss, "_pair_kernel"):
        return loss._pair_kernel(lists.y, lists.offsets, lists.weight, lists.pairs)
    if lists.pairs is None and hasattr(loss, "_kernel"):
        kernel = loss._kernel(lists.y, lists.offsets, lists.weight)
        if hasattr(kernel, "evaluate_linear"):
            return kernel
    if hasattr(loss, "hessian_product"):
        return _ForeignLossWithProducts(loss, lists)
    return _ForeignLoss(loss, lists)


def features_of(X: Any, order: Rows | None = None) -> Any:
    """The native products with a checked matrix."""
    if hasattr(X, "nnz"):
        return _core.Features(X.data, X.indices, X.indptr, X.shape[1], order)
    return _core.Features(X, order)


def _moments(features: Any, n_docs: int, n_features: int) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each feature; exactly 0 where rounding is all there is."""
    ones = np.ones(n_docs)
    mean = features.transposed(ones) / n_docs
    with np.errstate(invalid="ignore"):
        deviation = np.sqrt(features.squares(ones, mean) / n_docs)
    deviation[deviation <= 1e-13 * np.abs(mean)] = 0.0
    return mean, deviation


# --- the sample behind the approximate Hessian ---------------------------------------------

_FULL_UP_TO = 512  # features; the factor costs d^3 / 6 products
_CHUNK = 512  # sampled documents at a time
_SAMPLE = 16, 48  # sampled documents per feature: at least, and at most

_LENGTHS = 20  # lengths of a step that are tried
_FLAT = 0.1  # share of the first slope that is flat enough

# A rough solution on a sample is a good start where the sample is a small share of the whole.
_ROUGH, _ROUGH_LEAST, _ROUGH_STRIDE = 64, 5000, 6


def _sample(lists: Queries, curvature: Floats, wanted: int) -> tuple[Rows, Rows]:
    """Rows of evenly spaced whole queries that matter, and their offsets.

    A few documents per feature are enough. Of a query longer than that only the first rows
    are taken: in canonical order they are as good as random.
    """
    sums = np.concatenate([[0.0], np.cumsum(curvature)])[lists.offsets]
    useful = np.flatnonzero(np.diff(sums) > 0)
    sizes = np.minimum(lists.sizes[useful], wanted)
    stride = max(1, int(sizes.sum()) // wanted)
    useful, sizes = useful[::stride], sizes[::stride]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]).astype(np.int64)
    shift = np.repeat(lists.offsets[useful] - offsets[:-1], sizes)
    return np.arange(offsets[-1], dtype=np.int64) + shift, offsets
