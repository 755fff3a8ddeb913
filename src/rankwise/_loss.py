"""What the losses share: their methods over a kernel, checks, arithmetic, and kernels in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _validate
from rankwise._text import call_text
from rankwise.data import Pairs, no_labels

if TYPE_CHECKING:
    from rankwise.losses import LossSum

Floats = NDArray[np.float64]
Offsets = NDArray[np.int64]
Derivatives = Callable[[ArrayLike], tuple[Floats, Floats]]


class Summand:
    """A loss that can be written in sums: ``0.7 * RankNet() + 0.3 * Squared()``."""

    def __add__(self, other: Any) -> LossSum:
        from rankwise.losses import sum_of

        return sum_of((1.0, self), (1.0, other))

    def __mul__(self, factor: Any) -> LossSum:
        from rankwise.losses import sum_of

        return sum_of((factor, self))

    __rmul__ = __mul__


class Loss(Summand):
    """What the losses of this module share: their methods over a native kernel.

    A subclass is a frozen dataclass of the loss's options with ``_kernel(y, offsets, weight)`` and,
    where ``takes_pairs`` is True, ``_pair_kernel(y, offsets, weight, pairs)``.

    Attributes
    ----------
    name : str
        The name in :data:`LOSSES` and in text.
    shift_invariant : bool
        True when adding a constant to the scores of one query changes nothing.
    minimizes : bool
        True when the gradient is that of the value, so that a solver may compare values.
    takes_pairs : bool
        True for sums over pairs, which can be given as :class:`~rankwise.Pairs`.
    separable : bool
        True when the loss of a query depends on the scores of that query alone.
    """

    name: ClassVar[str]
    shift_invariant: ClassVar[bool] = True
    minimizes: ClassVar[bool] = True
    takes_pairs: ClassVar[bool] = False
    separable: ClassVar[bool] = True

    def value(
        self,
        y: ArrayLike | None,
        s: ArrayLike,
        offsets: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        pairs: Pairs | None = None,
    ) -> Floats:
        """The loss of each query.

        Parameters
        ----------
        y : array-like of shape (n_docs,)
            Labels, 0 or more, larger is better; a document whose label is NaN takes no part.
        s : array-like of shape (n_docs,)
            Scores, finite, higher is better.
        offsets : int64 array of shape (n_queries + 1,)
            Query ``i`` owns the documents ``offsets[i]:offsets[i+1]``.
        weight : array-like of shape (n_docs,), optional
            Document weights, 0 or more.
        pairs : Pairs, optional
            Preferences that take the place of the pairs that labels form; ``y`` is not read then
            and may be None. Only for losses that are sums over pairs.

        Returns
        -------
        float64 array of shape (n_queries,), at least 0. A query without a pair has loss 0 in the
        pairwise losses.
        """
        kernel, scores = self._at(y, s, offsets, weight, pairs)
        return kernel.evaluate(scores)[0]  # type: ignore[no-any-return]

    def derivatives(
        self,
        y: ArrayLike | None,
        s: ArrayLike,
        offsets: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        pairs: Pairs | None = None,
    ) -> tuple[Floats, Floats]:
        """Derivatives of the summed loss in each score; parameters as in :meth:`value`.

        Returns
        -------
        gradient : float64 array of shape (n_docs,)
        curvature : float64 array of shape (n_docs,)
            Second derivative in the document's own score, at least 0. A loss that is not convex
            says what it gives where the second derivative is not positive.
        """
        kernel, scores = self._at(y, s, offsets, weight, pairs)
        _, gradient, curvature = kernel.evaluate(scores, values=False)
        return gradient, curvature

    def prepare(
        self,
        y: ArrayLike | None,
        offsets: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        pairs: Pairs | None = None,
        n_threads: int = 0,
    ) -> Derivatives:
        """:meth:`derivatives` as a function of the scores alone.

        Labels are sorted once; learners that ask for the gradient many times use this.
        """
        kernel, n_docs = self._checked_kernel(y, offsets, weight, pairs)

        def derivatives(s: ArrayLike) -> tuple[Floats, Floats]:
            scores = column(self._where("derivatives"), "s", s, n_docs)
            _, gradient, curvature = kernel.evaluate(scores, values=False, n_threads=n_threads)
            return gradient, curvature

        return derivatives

    def __str__(self) -> str:
        return call_text(self.name, self)

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        raise TypeError(f"{type(self).__name__} must define _kernel(y, offsets, weight)")

    def _pair_kernel(self, y: Floats, offsets: Offsets, weight: Floats | None, pairs: Pairs) -> Any:
        raise TypeError(
            f"{type(self).__name__} must define _pair_kernel(y, offsets, weight, pairs)"
        )

    def _where(self, method: str) -> str:
        return f"{type(self).__name__}.{method}"

    def _checked_kernel(
        self, y: ArrayLike | None, offsets: ArrayLike, weight: ArrayLike | None, pairs: Pairs | None
    ) -> tuple[Any, int]:
        """The kernel and the number of documents."""
        where = type(self).__name__
        if pairs is not None:
            check_takes_pairs(where, self)
            y = no_labels(int(np.asarray(offsets)[-1])) if y is None else y
        if y is None:
            raise ValueError(f"{where}: y must hold one label per document, got None without pairs")
        labels = _validate.labels(where, y)
        weights = _validate.weights(where, weight, len(labels))
        starts = _validate.offsets(where, offsets, len(labels))
        if pairs is None:
            return self._kernel(labels, starts, weights), len(labels)
        pairs = pairs.checked(where, starts)
        return self._pair_kernel(labels, starts, weights, pairs), len(labels)

    def _at(
        self,
        y: ArrayLike | None,
        s: ArrayLike,
        offsets: ArrayLike,
        weight: ArrayLike | None,
        pairs: Pairs | None,
    ) -> tuple[Any, Floats]:
        kernel, n_docs = self._checked_kernel(y, offsets, weight, pairs)
        return kernel, column(type(self).__name__, "s", s, n_docs)


class ConvexLoss(Loss):
    """A convex loss: its curvature is exact and products with its Hessian are known, so that
    linear models take Newton steps.
    """

    def hessian_product(
        self,
        y: ArrayLike | None,
        s: ArrayLike,
        offsets: ArrayLike,
        v: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        pairs: Pairs | None = None,
    ) -> Floats:
        """The matrix of second derivatives in the scores times ``v``, without forming it.

        Parameters
        ----------
        v : array-like of shape (n_docs,)
            The other parameters are those of :meth:`value`.

        Returns
        -------
        float64 array of shape (n_docs,)
        """
        kernel, scores = self._at(y, s, offsets, weight, pairs)
        kernel.evaluate(scores, values=False)
        return kernel.product(column(self._where("hessian_product"), "v", v, len(scores)))  # type: ignore[no-any-return]


def check_takes_pairs(where: str, loss: Any) -> None:
    """Refuses pairs for a loss that is no sum over pairs."""
    if not getattr(loss, "takes_pairs", False):
        from rankwise.losses import LOSSES

        known = ", ".join(name for name, kind in LOSSES.items() if kind.takes_pairs)
        raise TypeError(
            f"{where}: pairs need a loss that is a sum over pairs ({known}), got {loss}, "
            "which learns from labels"
        )


def pairs_for(where: str, loss: Any, pairs: Pairs | None) -> dict[str, Pairs]:
    """The keyword that hands pairs to a loss, for learners: empty without pairs."""
    if pairs is None:
        return {}
    check_takes_pairs(where, loss)
    return {"pairs": pairs}


def pair_columns(pairs: Pairs) -> tuple[Any, Any, Any, Any]:
    """Pairs as the native kernels take them."""
    return pairs.winner, pairs.loser, pairs.weight, pairs.target


def column(where: str, name: str, values: ArrayLike, n_docs: int) -> Floats:
    """Finite numbers, one per document."""
    numbers = _validate.vector(where, name, values)
    if len(numbers) != n_docs or not np.isfinite(numbers).all():
        raise ValueError(
            f"{where}: {name} must hold one finite number per document, "
            f"got {len(numbers)} for {n_docs} documents"
            + ("" if np.isfinite(numbers).all() else " and NaN or infinity among them")
        )
    return numbers


# --- kernels in NumPy ------------------------------------------------------------------------


class ArrayKernel:
    """A loss computed by NumPy, with the methods of a native kernel.

    A subclass writes ``evaluate``, and ``product`` where it derives from
    :class:`ConvexArrayKernel`.
    """

    def evaluate(
        self, s: Floats, values: bool = True, n_threads: int = 0
    ) -> tuple[Floats, Floats, Floats]:
        """Values per query, gradient and curvature per document at ``s``."""
        raise TypeError(f"{type(self).__name__} must define evaluate(s, values, n_threads)")

    def evaluate_linear(
        self, features: Any, w: Floats, shift: float = 0.0, n_threads: int = 0
    ) -> tuple[Floats, Floats, float, Floats]:
        """At the scores ``X w + shift``: values, X^T gradient, sum of the gradient, curvature."""
        values, gradient, curvature = self.evaluate(features.scores(w, n_threads) + shift)
        sums = features.transposed(gradient, n_threads)
        return values, sums, float(gradient.sum()), curvature


class ConvexArrayKernel(ArrayKernel):
    """One whose Hessian is known."""

    def product(self, v: Floats, n_threads: int = 0) -> Floats:
        """Hessian at the scores last evaluated, times v."""
        raise TypeError(f"{type(self).__name__} must define product(v, n_threads)")

    def product_linear(
        self, features: Any, u: Floats, shift: float = 0.0, n_threads: int = 0
    ) -> tuple[Floats, float]:
        """X^T H (X u + shift) and the sum of H (X u + shift)."""
        bent = self.product(features.scores(u, n_threads) + shift, n_threads)
        return features.transposed(bent, n_threads), float(bent.sum())
