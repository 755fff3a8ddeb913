r"""Losses of ranked lists: what a scoring function is trained to make small.

A loss takes labels, scores and the offsets of the queries, and gives one value per query and, per
document, the derivative in its score. Linear models, trees and your own optimiser take the same
losses by the same names, and a loss of your own works wherever these do: an object with
``value(y, s, offsets, weight)`` and ``derivatives(y, s, offsets, weight)``.

==========================  =========  ========================================================
:class:`Squared`            pointwise  predicts the label itself; the order is a by-product
:class:`RankNet`            pairwise   logistic loss of every pair with different labels
:class:`SquaredHingePairs`  pairwise   RankSVM's: a margin of 1, squared
:class:`ListNet`            listwise   cross entropy of the chances to come first
:class:`LambdaRank`         metric     RankNet's pairs, weighted by what a swap changes
==========================  =========  ========================================================

>>> import numpy as np
>>> import rankwise as rw
>>> y = np.array([0.0, 3.0, 1.0, 0.0, 2.0, 0.0])
>>> s = np.array([2.5, 2.0, 1.5, 1.0, 0.5, 0.0])
>>> gradient, curvature = rw.RankNet().derivatives(y, s, np.array([0, 6]))
>>> -gradient.round(3)  # the force on each score: up where positive
array([-2.234,  1.571,  0.182, -1.269,  2.429, -0.679])

Conventions. Values are sums, not means. Documents with equal labels form no pair. A document
weight multiplies the pairs that the document wins, or its share of the target in ListNet. The
gradients of pairwise and listwise losses sum to 0 in each query, and adding a constant to the
scores of a query changes nothing. A document whose label is NaN takes no part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _validate
from rankwise._text import call_text, parse_call
from rankwise.data import Pairs
from rankwise.lambdas import LambdaRank

Floats = NDArray[np.float64]
Derivatives = Callable[[ArrayLike], tuple[Floats, Floats]]


class Loss:
    """What the losses of this module share: their methods over a native kernel.

    A subclass is a frozen dataclass of the loss's options with ``_kernel(y, offsets, weight)`` and,
    where ``takes_pairs`` is True, ``_pair_kernel(offsets, weight, pairs)``.

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
    """

    name: ClassVar[str]
    shift_invariant: ClassVar[bool] = True
    minimizes: ClassVar[bool] = True
    takes_pairs: ClassVar[bool] = False

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
            scores = _column(self._where("derivatives"), "s", s, n_docs)
            _, gradient, curvature = kernel.evaluate(scores, values=False, n_threads=n_threads)
            return gradient, curvature

        return derivatives

    def __str__(self) -> str:
        return call_text(self.name, self)

    def _kernel(self, y: Floats, offsets: NDArray[np.int64], weight: Floats | None) -> Any:
        raise TypeError(f"{type(self).__name__} must define _kernel(y, offsets, weight)")

    def _pair_kernel(self, offsets: NDArray[np.int64], weight: Floats | None, pairs: Pairs) -> Any:
        raise TypeError(f"{type(self).__name__} must define _pair_kernel(offsets, weight, pairs)")

    def _where(self, method: str) -> str:
        return f"{type(self).__name__}.{method}"

    def _checked_kernel(
        self, y: ArrayLike | None, offsets: ArrayLike, weight: ArrayLike | None, pairs: Pairs | None
    ) -> tuple[Any, int]:
        """The kernel and the number of documents."""
        where = type(self).__name__
        if pairs is not None:
            check_takes_pairs(where, self)
            starts = _validate.offsets(where, offsets, int(np.asarray(offsets)[-1]))
            n_docs = int(starts[-1])
            weights = _validate.weights(where, weight, n_docs)
            return self._pair_kernel(starts, weights, pairs.checked(where, starts)), n_docs
        if y is None:
            raise ValueError(f"{where}: y must hold one label per document, got None without pairs")
        labels = _validate.labels(where, y)
        weights = _validate.weights(where, weight, len(labels))
        starts = _validate.offsets(where, offsets, len(labels))
        return self._kernel(labels, starts, weights), len(labels)

    def _at(
        self,
        y: ArrayLike | None,
        s: ArrayLike,
        offsets: ArrayLike,
        weight: ArrayLike | None,
        pairs: Pairs | None,
    ) -> tuple[Any, Floats]:
        kernel, n_docs = self._checked_kernel(y, offsets, weight, pairs)
        return kernel, _column(type(self).__name__, "s", s, n_docs)


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
        return kernel.product(_column(self._where("hessian_product"), "v", v, len(scores)))  # type: ignore[no-any-return]


def check_takes_pairs(where: str, loss: Any) -> None:
    """Refuses pairs for a loss that is no sum over pairs."""
    if not getattr(loss, "takes_pairs", False):
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


@dataclass(frozen=True)
class Squared(ConvexLoss):
    """Half the squared error of scores as predictions of labels.

    ``loss = 1/2 sum of w_i (s_i - y_i)^2``

    Pointwise: the only loss here that a constant added to the scores changes. Gradient
    ``w_i (s_i - y_i)``, curvature ``w_i``.

    Examples
    --------
    Close predictions in the wrong order cost less than a right order far away:

    >>> import rankwise as rw
    >>> rw.Squared().value([1, 2], [1.9, 1.1], [0, 2])
    array([0.81])
    >>> rw.Squared().value([1, 2], [-1.0, 0.0], [0, 2])
    array([4.])
    """

    name: ClassVar[str] = "squared"
    shift_invariant: ClassVar[bool] = False

    def _kernel(self, y: Floats, offsets: NDArray[np.int64], weight: Floats | None) -> Any:
        return _core.SquaredLoss(y, offsets, weight)


@dataclass(frozen=True)
class RankNet(ConvexLoss):
    """Logistic loss of every pair of documents with different labels.

    ``loss = sum over y_i > y_j of w_i log(1 + exp(-sigma (s_i - s_j)))``

    The model is ``P(i before j) = 1 / (1 + exp(-sigma (s_i - s_j)))``. A wrongly ordered pair costs
    at least ``log 2``, so the loss bounds the number of wrong pairs.

    Parameters
    ----------
    sigma : float
        Steepness, above 0.

    Notes
    -----
    Time is proportional to the number of pairs (one division and a few products each, no
    exponential), memory to the number of documents.

    References
    ----------
    burges2005

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.RankNet().value([1, 0], [0.5, 1.0], [0, 2]).round(3)
    array([0.974])
    """

    sigma: float = 1.0
    name: ClassVar[str] = "ranknet"
    takes_pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        sigma = _validate.number("RankNet", "sigma", self.sigma, low=0, open_low=True)
        object.__setattr__(self, "sigma", sigma)

    def _kernel(self, y: Floats, offsets: NDArray[np.int64], weight: Floats | None) -> Any:
        return _core.RankNetLoss(y, offsets, weight, self.sigma)

    def _pair_kernel(self, offsets: NDArray[np.int64], weight: Floats | None, pairs: Pairs) -> Any:
        return _core.LogisticPairs(offsets, weight, *_columns(pairs), self.sigma)


@dataclass(frozen=True)
class SquaredHingePairs(ConvexLoss):
    """RankSVM's loss: the squared shortfall of each pair from a margin of 1.

    ``loss = sum over y_i > y_j of w_i max(0, 1 - (s_i - s_j))^2``

    The curvature is that of the generalised Hessian: pairs at exactly the margin count as
    met.

    Notes
    -----
    O(n log n) per query: only the number of active partners of a document and the sum of their
    scores are needed.

    References
    ----------
    joachims2002, chapelle2010, lee2014

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.SquaredHingePairs().value([2, 1, 0], [1.5, 1.0, 0.5], [0, 3])
    array([0.5])
    """

    name: ClassVar[str] = "squared_hinge"
    takes_pairs: ClassVar[bool] = True

    def _kernel(self, y: Floats, offsets: NDArray[np.int64], weight: Floats | None) -> Any:
        return _core.SquaredHingeLoss(y, offsets, weight)

    def _pair_kernel(self, offsets: NDArray[np.int64], weight: Floats | None, pairs: Pairs) -> Any:
        return _core.SquaredHingePairs(offsets, weight, *_columns(pairs))


@dataclass(frozen=True)
class ListNet(ConvexLoss):
    """Cross entropy between the chances of labels and of scores to come first.

    ``loss = - sum of w_i T_i log P_i,  T = softmax(y),  P = softmax(s)``

    Both are the top-one probabilities of a Plackett-Luce model. The gradient is ``P_i - T_i`` where
    all weights are 1; the smallest value is the entropy of the target, reached exactly where
    ``s - y`` is constant.

    Notes
    -----
    O(n).

    References
    ----------
    cao2007

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ListNet().value([2, 0, 1], [2.0, 1.0, 0.0], [0, 3]).round(3)
    array([0.987])
    """

    name: ClassVar[str] = "listnet"

    def _kernel(self, y: Floats, offsets: NDArray[np.int64], weight: Floats | None) -> Any:
        return _core.ListNetLoss(y, offsets, weight)


LOSSES: dict[str, Any] = {
    loss.name: loss for loss in (Squared, RankNet, SquaredHingePairs, ListNet, LambdaRank)
}
"""Name -> class of every loss that can be named in text."""


def parse_loss(loss: Any) -> Any:
    """A loss from its text form, ``"ranknet"`` or ``"ranknet(sigma=2)"``; a loss passes through.

    Parameters
    ----------
    loss : str or loss
        A name in :data:`LOSSES`, with options in parentheses; or any object with ``value`` and
        ``derivatives``.

    Raises
    ------
    ValueError
        For an unknown name, with the closest known one.
    TypeError
        For an unknown option, or an object that is no loss.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.parse_loss("ranknet(sigma=2)")
    RankNet(sigma=2.0)
    >>> str(rw.RankNet(sigma=2))
    'ranknet(sigma=2)'
    """
    if not isinstance(loss, str):
        if isinstance(loss, type) or not (hasattr(loss, "value") and hasattr(loss, "derivatives")):
            raise TypeError(
                "parse_loss: a loss must be a name or an object with value(y, s, offsets, weight) "
                f"and derivatives(y, s, offsets, weight), got {loss!r}"
            )
        return loss
    name, options = parse_call("parse_loss", loss)
    if name not in LOSSES:
        raise _validate.unknown("loss", name, LOSSES)
    known = [field.name for field in fields(LOSSES[name])]
    for option in options:
        if option not in known:
            raise TypeError(
                f"parse_loss: {name} takes {', '.join(known) or 'no options'}, got {option!r}"
            )
    return LOSSES[name](**options)


def _column(where: str, name: str, values: ArrayLike, n_docs: int) -> Floats:
    column = _validate.vector(where, name, values)
    if len(column) != n_docs or not np.isfinite(column).all():
        raise ValueError(
            f"{where}: {name} must hold one finite number per document, "
            f"got {len(column)} for {n_docs} documents"
            + ("" if np.isfinite(column).all() else " and NaN or infinity among them")
        )
    return column


def _columns(pairs: Pairs) -> tuple[Any, Any, Any, Any]:
    return pairs.winner, pairs.loser, pairs.weight, pairs.target
