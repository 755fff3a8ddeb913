r"""Losses of ranked lists: what a scoring function is trained to make small.

A loss takes labels, scores and the offsets of the queries, and gives one value per query and, per
document, the derivative in its score. Linear models, trees, networks and your own optimiser take
the same losses by the same names, and a loss of your own works wherever these do: an object with
``value(y, s, offsets, weight)`` and ``derivatives(y, s, offsets, weight)``.

============================  =========  ======================================================
:class:`Squared`              pointwise  predicts the label itself; the order is a by-product
:class:`Logistic`             pointwise  the chance that a document is relevant
:class:`Poisson`              pointwise  expected counts, such as clicks
:class:`OrdinalLogit`         pointwise  ordered classes, cumulative logit model
:class:`OrdinalMargin`        pointwise  ordered classes, large margins (OC SVM)
:class:`RankNet`              pairwise   logistic loss of every pair with different labels
:class:`HingePairs`           pairwise   RankSVM's: a margin of 1
:class:`SquaredHingePairs`    pairwise   the same, squared
:class:`ExponentialPairs`     pairwise   RankBoost's
:class:`Fidelity`             pairwise   FRank's: bounded, gives up on hopeless pairs
:class:`ListNet`              listwise   cross entropy of the chances to come first
:class:`SoftmaxCrossEntropy`  listwise   the same with gains as target; XE-NDCG's draws
:class:`ListMLE`              listwise   likelihood of the order of labels
:class:`ApproxNDCG`           listwise   nDCG with smooth ranks
:class:`BoltzRank`            listwise   expected metric over sampled rankings
:class:`LambdaRank`           metric     RankNet's pairs, weighted by what a swap changes
:class:`LambdaLoss`           metric     NDCG-Loss1, 2 and 2++: bounds of nDCG's shortfall
:class:`ARPLoss`              metric     a bound of the average relevance position
:class:`StructuredBound`      metric     a bound of the measure itself (DORM)
:class:`StructuredAP`         metric     a bound of average precision (SVM-MAP)
============================  =========  ======================================================

>>> import numpy as np
>>> import rankwise as rw
>>> y = np.array([0.0, 3.0, 1.0, 0.0, 2.0, 0.0])
>>> s = np.array([2.5, 2.0, 1.5, 1.0, 0.5, 0.0])
>>> gradient, curvature = rw.RankNet().derivatives(y, s, np.array([0, 6]))
>>> -gradient.round(3)  # the force on each score: up where positive
array([-2.234,  1.571,  0.182, -1.269,  2.429, -0.679])

Losses add up: a ranking loss with a little of a pointwise one is calibrated.

>>> loss = 0.9 * rw.RankNet() + 0.1 * rw.Squared()
>>> str(loss), rw.parse_loss("0.9 * ranknet + 0.1 * squared") == loss
('0.9 * ranknet + 0.1 * squared', True)

Conventions. Values are sums, not means. Documents with equal labels form no pair. A document
weight multiplies the pairs that the document wins, or its share of the target in listwise losses,
so that a weight that is constant in a query is a weight of the query. The gradients of pairwise and
listwise losses sum to 0 in each query, and adding a constant to the scores of a query changes
nothing. A document whose label is NaN takes no part. Losses over pairs also take pairs that are
given (:class:`rankwise.Pairs`).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from rankwise import _validate
from rankwise._listwise import ApproxNDCG, BoltzRank, ListMLE, ListNet, SoftmaxCrossEntropy
from rankwise._loss import (
    ArrayKernel,
    ConvexArrayKernel,
    ConvexLoss,
    Floats,
    Loss,
    Offsets,
    check_takes_pairs,
    pairs_for,
)
from rankwise._pairwise import ExponentialPairs, Fidelity, HingePairs, RankNet, SquaredHingePairs
from rankwise._pointwise import Logistic, OrdinalLogit, OrdinalMargin, Poisson, Squared
from rankwise._retarget_loss import Retargeted
from rankwise._structured import StructuredAP, StructuredBound
from rankwise._text import parse_call
from rankwise.data import Pairs
from rankwise.lambdas import ARPLoss, LambdaLoss, LambdaRank

__all__ = [
    "LOSSES",
    "ARPLoss",
    "ApproxNDCG",
    "BoltzRank",
    "ConvexLoss",
    "ExponentialPairs",
    "Fidelity",
    "HingePairs",
    "LambdaLoss",
    "LambdaRank",
    "ListMLE",
    "ListNet",
    "Logistic",
    "Loss",
    "LossSum",
    "OrdinalLogit",
    "OrdinalMargin",
    "Poisson",
    "RankNet",
    "Retargeted",
    "SoftmaxCrossEntropy",
    "Squared",
    "SquaredHingePairs",
    "StructuredAP",
    "StructuredBound",
    "check_takes_pairs",
    "has_text",
    "pairs_for",
    "parse_loss",
    "sum_of",
]

LOSSES: dict[str, Any] = {
    loss.name: loss
    for loss in (
        Squared,
        Logistic,
        Poisson,
        OrdinalLogit,
        OrdinalMargin,
        RankNet,
        HingePairs,
        SquaredHingePairs,
        ExponentialPairs,
        Fidelity,
        ListNet,
        SoftmaxCrossEntropy,
        ListMLE,
        ApproxNDCG,
        BoltzRank,
        LambdaRank,
        LambdaLoss,
        ARPLoss,
        StructuredBound,
        StructuredAP,
        Retargeted,
    )
}
"""Name -> class of every loss that can be named in text."""


# --- sums of losses --------------------------------------------------------------------------


@dataclass(frozen=True)
class LossSum(Loss):
    """A weighted sum of losses; written ``0.7 * RankNet() + 0.3 * Squared()``.

    Parameters
    ----------
    parts : tuple of losses
        A loss of your own may be among them.
    factors : tuple of float
        One for each part, above 0.

    Notes
    -----
    It is shift invariant, or a function to minimise, if all of its parts are. Given pairs go to
    the parts that take them. With convex parts only it has Hessian products.

    Examples
    --------
    >>> import rankwise as rw
    >>> loss = 2 * rw.RankNet() + rw.Squared()
    >>> loss
    2 * ranknet + squared
    >>> bool(loss.value([1, 0], [0.0, 0.0], [0, 2])[0] == 2 * np.log(2) + 0.5)
    True
    """

    parts: tuple[Any, ...]
    factors: tuple[float, ...]
    name: ClassVar[str] = "sum"

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.factors) or not self.parts:
            raise ValueError(
                f"LossSum: each of at least one part needs a factor, got {len(self.parts)} parts "
                f"and {len(self.factors)} factors"
            )
        factors = tuple(
            _validate.number("LossSum", "factor", f, low=0, open_low=True) for f in self.factors
        )
        object.__setattr__(self, "factors", factors)

    @property
    def shift_invariant(self) -> bool:  # type: ignore[override]
        return all(getattr(part, "shift_invariant", False) for part in self.parts)

    @property
    def minimizes(self) -> bool:  # type: ignore[override]
        return all(getattr(part, "minimizes", True) for part in self.parts)

    @property
    def takes_pairs(self) -> bool:  # type: ignore[override]
        return any(getattr(part, "takes_pairs", False) for part in self.parts)

    @property
    def separable(self) -> bool:  # type: ignore[override]
        return all(getattr(part, "separable", True) for part in self.parts)

    def __str__(self) -> str:
        terms = zip(self.factors, self.parts, strict=True)
        return " + ".join(f"{_number(f)} * {part}" if f != 1 else str(part) for f, part in terms)

    __repr__ = __str__

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return self._joined([_kernel_of(part, y, offsets, weight) for part in self.parts])

    def _pair_kernel(self, y: Floats, offsets: Offsets, weight: Floats | None, pairs: Pairs) -> Any:
        kernels = [
            part._pair_kernel(y, offsets, weight, pairs)
            if getattr(part, "takes_pairs", False) and hasattr(part, "_pair_kernel")
            else _kernel_of(part, y, offsets, weight)
            for part in self.parts
        ]
        return self._joined(kernels)

    def _joined(self, kernels: list[Any]) -> Any:
        convex = all(hasattr(kernel, "product") for kernel in kernels)
        return (_ConvexSumKernel if convex else _SumKernel)(self.factors, kernels)


@dataclass(frozen=True, repr=False)
class _ConvexSum(LossSum, ConvexLoss):
    """A sum of convex losses."""


def sum_of(*terms: tuple[Any, Any]) -> LossSum:
    """The sum of ``(factor, loss)`` terms; sums among them are taken apart."""
    parts: list[Any] = []
    factors: list[float] = []
    for factor, loss in terms:
        factor = _validate.number("LossSum", "factor", factor, low=0, open_low=True)
        loss = parse_loss(loss)
        inner = loss if isinstance(loss, LossSum) else None
        parts += inner.parts if inner else (loss,)
        factors += [factor * f for f in inner.factors] if inner else [factor]
    kind = _ConvexSum if all(hasattr(p, "hessian_product") for p in parts) else LossSum
    return kind(tuple(parts), tuple(factors))


class _SumKernel(ArrayKernel):
    """Kernels of the parts, side by side."""

    def __init__(self, factors: tuple[float, ...], kernels: list[Any]) -> None:
        self.terms = list(zip(factors, kernels, strict=True))

    def evaluate(
        self, s: Floats, values: bool = True, n_threads: int = 0
    ) -> tuple[Floats, Floats, Floats]:
        columns = [(f, kernel.evaluate(s, values, n_threads)) for f, kernel in self.terms]
        loss, gradient, curvature = (sum(f * column[i] for f, column in columns) for i in range(3))
        return loss, gradient, curvature


class _ConvexSumKernel(_SumKernel, ConvexArrayKernel):
    def product(self, v: Floats, n_threads: int = 0) -> Floats:
        total: Floats = sum(f * kernel.product(v, n_threads) for f, kernel in self.terms)
        return total


class _OwnKernel(ArrayKernel):
    """A loss of the user's, with the methods of a native kernel."""

    def __init__(self, loss: Any, y: Floats, offsets: Offsets, weight: Floats | None) -> None:
        self.loss, self.y, self.rest = loss, y, (offsets, weight)
        self.scores = np.zeros(0)

    def evaluate(
        self, s: Floats, values: bool = True, n_threads: int = 0
    ) -> tuple[Floats, Floats, Floats]:
        self.scores = s
        value = self.loss.value(self.y, s, *self.rest) if values else np.zeros(0)
        gradient, curvature = self.loss.derivatives(self.y, s, *self.rest)
        n_queries = len(self.rest[0]) - 1 if values else 0
        columns = {"value": (value, n_queries), "gradient": (gradient, len(self.y))}
        columns["curvature"] = curvature, len(self.y)
        for name, (column, n) in columns.items():
            if np.shape(column) != (n,) or not np.isfinite(column).all():
                raise ValueError(
                    f"{self.loss}: the loss must return a finite {name} array of length {n}, "
                    f"got shape {np.shape(column)}"
                )
        return tuple(np.asarray(c, dtype=np.float64) for c, _ in columns.values())  # type: ignore[return-value]


class _OwnConvexKernel(_OwnKernel, ConvexArrayKernel):
    def product(self, v: Floats, n_threads: int = 0) -> Floats:
        offsets, weight = self.rest
        bent = self.loss.hessian_product(self.y, self.scores, offsets, v, weight)
        return np.asarray(bent, dtype=np.float64)


def _kernel_of(part: Any, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
    if isinstance(part, Loss):
        return part._kernel(y, offsets, weight)
    convex = hasattr(part, "hessian_product")
    return (_OwnConvexKernel if convex else _OwnKernel)(part, y, offsets, weight)


# --- losses as text --------------------------------------------------------------------------


def parse_loss(loss: Any) -> Any:
    """A loss from its text form, ``"ranknet"``, ``"ranknet(sigma=2)"`` or ``"0.9 * ranknet + 0.1 *
    squared"``; a loss passes through.

    Parameters
    ----------
    loss : str or loss
        Names in :data:`LOSSES`, with options in parentheses, and sums of them with factors; or any
        object with ``value`` and ``derivatives``.

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
    RankNet(sigma=2.0, equal_labels='skip')
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
    text = loss.strip()
    terms = _terms(text)
    if terms is not None:
        return sum_of(*terms)
    name, options = parse_call("parse_loss", text)
    if name not in LOSSES:
        raise _validate.unknown("loss", name, LOSSES)
    known = [field.name for field in fields(LOSSES[name])]
    for option in options:
        if option not in known:
            raise TypeError(
                f"parse_loss: {name} takes {', '.join(known) or 'no options'}, got {option!r}"
            )
    return LOSSES[name](**options)


def has_text(loss: Any) -> bool:
    """Whether a loss can be read back from its text, which one of your own cannot."""
    if isinstance(loss, LossSum):
        return all(has_text(part) for part in loss.parts)
    return type(loss) in LOSSES.values() and parse_loss(str(loss)) == loss


def _terms(text: str) -> list[tuple[float, str]] | None:
    """The terms of a sum, or None where the text is a single loss or none at all."""
    try:
        tree: ast.expr = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(tree, ast.BinOp):
        return None
    found: list[tuple[float, str]] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add):
        found.append(_term(text, tree.right))
        tree = tree.left
    return [_term(text, tree), *reversed(found)]


def _term(text: str, tree: ast.expr) -> tuple[float, str]:
    factor: ast.expr = ast.Constant(1.0)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
        left = isinstance(tree.left, ast.Constant)
        factor, tree = (tree.left, tree.right) if left else (tree.right, tree.left)
    number = factor.value if isinstance(factor, ast.Constant) else None
    if not isinstance(number, int | float) or not isinstance(tree, ast.Name | ast.Call):
        raise ValueError(
            "parse_loss: a sum must have the form number * loss + number * loss + ..., "
            f"got {text!r}"
        )
    return number, str(ast.get_source_segment(text, tree))


def _number(value: float) -> str:
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)
