"""The loss of monotone retargeting: the distance to the best target in the order of the labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankwise import _core, _validate
from rankwise._loss import ArrayKernel, Floats, Loss, Offsets, column

DIVERGENCES = "squared", "kl", "generalized", "logistic"
RESTRICTIONS = "simplex", "margin"


@dataclass(frozen=True)
class Retargeted(Loss):
    r"""Monotone retargeting: how far scores are from some vector in the order of the labels.

    ``loss = (1/n) min over z and b of  sum_i w_i D(z_i || g(s_i + b))``

    over targets ``z`` with ``z_i >= z_j + margin`` wherever ``y_i`` lies a level above ``y_j``. ``D``
    is a Bregman divergence and ``g`` the mean map of its generalised linear model. Labels are only
    compared: any increasing transform of them gives the same loss.

    Parameters
    ----------
    divergence : {"squared", "kl", "generalized", "logistic"}
        ===============  ===============================================  ===================
        name             ``D(z || m)``, summed                            ``m = g(t)``
        ===============  ===============================================  ===================
        ``squared``      ``(z - m)^2 / 2``                                ``t``
        ``kl``           ``z log(z / m)``                                 ``softmax(t)``
        ``generalized``  ``z log(z / m) - z + m``                         ``exp(t)``
        ``logistic``     ``z log(z / m) + (1 - z) log((1-z) / (1-m))``    ``1 / (1 + exp(-t))``
        ===============  ===============================================  ===================
    restriction : {"simplex", "margin"}
        ``"simplex"``: targets of a query are at least 0 and sum to 1. ``"margin"``: margins alone
        keep their scale; for ``"squared"`` and ``"logistic"``, as the other two flatten with the
        size of targets: a large constant added to all makes any margin cost nothing.
    margin : float or None
        How far targets of neighbouring levels of labels lie apart at least. None is half of what
        there is room for in the query, on the simplex or below 1 with ``"logistic"``, and otherwise 1. 0, on
        the simplex only, leaves the order alone: then scores without spread have loss 0.
    offset : bool
        Whether each query has a free constant ``b``; without it the scores themselves must match,
        and the loss changes when a constant is added to them.

    Raises
    ------
    ValueError
        When it meets a query for whose levels ``margin`` is too wide.

    Notes
    -----
    O(n log n): documents of equal labels are sorted by score, pool adjacent violators fits the
    natural parameters, and the simplex shifts them (squared: cuts them at 0). Margins in divergences
    other than the squared pool with one small equation per block. The gradient is ``w (g(s + b) - z)/n``.
    With the squared divergence and with KL the loss is convex in the scores or not far from it; the
    curvature given is that of the generalised linear model with ``z`` and ``b`` held fixed, never
    below the second derivative. A query with one label teaches nothing; a document of weight 2 is
    two documents, and a query counts with the mean weight of its documents.

    References
    ----------
    acharyya2012, acharyya2014

    Examples
    --------
    Two documents in the right order, half a margin apart:

    >>> import rankwise as rw
    >>> loss = rw.Retargeted("squared", restriction="margin")
    >>> loss.value([1, 0], [0.5, 0.0], [0, 2])
    array([0.03125])
    >>> loss.target([1, 0], [0.5, 0.0], [0, 2])
    array([1., 0.])
    """

    divergence: str = "kl"
    restriction: str = "simplex"
    margin: float | None = None
    offset: bool = True
    name: ClassVar[str] = "retargeted"

    def __post_init__(self) -> None:
        _validate.choice("Retargeted", "divergence", self.divergence, DIVERGENCES)
        _validate.choice("Retargeted", "restriction", self.restriction, RESTRICTIONS)
        object.__setattr__(self, "offset", bool(self.offset))
        simplex = self.restriction == "simplex"
        if self.divergence in ("kl", "generalized") and not simplex:
            raise ValueError(
                f"Retargeted: divergence={self.divergence!r} needs restriction='simplex', got "
                f"{self.restriction!r}: large targets make margins cost nothing; the simplex takes a "
                "margin too"
            )
        if self.margin is None:
            return
        margin = _validate.number("Retargeted", "margin", self.margin, low=0, open_low=not simplex)
        object.__setattr__(self, "margin", margin)

    @property
    def shift_invariant(self) -> bool:  # type: ignore[override]
        """False where the scores themselves must match: ``offset=False``."""
        squared_margin = self.divergence == "squared" and self.restriction == "margin"
        return self.offset or self.divergence == "kl" or squared_margin

    def target(
        self,
        y: ArrayLike,
        s: ArrayLike,
        offsets: ArrayLike,
        weight: ArrayLike | None = None,
    ) -> Floats:
        """The best targets ``z`` for the scores; parameters as in :meth:`value`.

        Returns
        -------
        float64 array of shape (n_docs,). NaN for documents that take no part: without judgement,
        of weight 0, or in a query of one label.
        """
        kernel, n_docs = self._checked_kernel(y, offsets, weight, None)
        return kernel.solve(column("Retargeted.target", "s", s, n_docs))[3]  # type: ignore[no-any-return]

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return _Kernel(self, y, offsets, weight)


class _Kernel(ArrayKernel):
    def __init__(
        self, loss: Retargeted, y: Floats, offsets: Offsets, weight: Floats | None
    ) -> None:
        margin = np.nan if loss.margin is None else loss.margin
        self.how = loss.divergence, loss.restriction, margin, loss.offset
        self.lists = y, offsets, weight

    def solve(self, s: Floats, n_threads: int = 0) -> tuple[Floats, Floats, Floats, Floats]:
        y, offsets, weight = self.lists
        return _core.retargeted(
            *self.how, y, np.ascontiguousarray(s), offsets, weight, n_threads=n_threads
        )

    def evaluate(
        self, s: Floats, values: bool = True, n_threads: int = 0
    ) -> tuple[Floats, Floats, Floats]:
        return self.solve(s, n_threads)[:3]
