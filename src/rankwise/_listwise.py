"""Losses of whole lists: likelihoods of rankings, and smooth stand-ins for a metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankwise import _core, _validate
from rankwise._loss import ConvexLoss, Derivatives, Floats, Loss, Offsets
from rankwise._swaps import ideals, inverse, longest_list
from rankwise.data import Groups, Pairs, query_of
from rankwise.metrics import NDCG, Metric, parse_metric

_NDCG = Metric("ndcg")


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

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        return _core.SoftmaxLoss(y, offsets, weight, True)


@dataclass(frozen=True)
class SoftmaxCrossEntropy(ConvexLoss):
    r"""Cross entropy between the shares of gains and the softmax of scores.

    ``loss = - sum of w_i T_i log P_i,  T_i = g(y_i) / sum of g,  P = softmax(s)``

    A bound on nDCG's loss. Queries without gain teach nothing.

    Parameters
    ----------
    gain : {"exp2", "identity"} or tuple of float
        Gain of a label, as in :func:`rankwise.metrics.ndcg`.
    perturb : bool
        Takes ``g(y_i) + 1 - u_i`` with a fresh ``u_i`` between 0 and 1 for the gain: the target of
        XE-NDCG, LightGBM's ``rank_xendcg``. Every call of a prepared loss draws anew, so no function
        is minimised; ``value`` and ``derivatives`` use the first draw.
    seed : int
        Seed of the draws, which follow the order of the rows. Learners put rows into canonical
        order first, so their models do not depend on how rows are stored.

    Notes
    -----
    O(n). A document weight multiplies the document's share.

    References
    ----------
    bruch2021

    Examples
    --------
    One relevant document of two, equal scores: ``log 2``.

    >>> import rankwise as rw
    >>> rw.SoftmaxCrossEntropy().value([1, 0], [0.0, 0.0], [0, 2]).round(3)
    array([0.693])
    """

    gain: Any = "exp2"
    perturb: bool = False
    seed: int = 0
    name: ClassVar[str] = "softmax"

    def __post_init__(self) -> None:
        NDCG(gain=self.gain)  # refuses what is no gain
        seed = _validate.number("SoftmaxCrossEntropy", "seed", self.seed, low=0, integer=True)
        object.__setattr__(self, "seed", int(seed))
        object.__setattr__(self, "perturb", bool(self.perturb))

    @property
    def minimizes(self) -> bool:  # type: ignore[override]
        """False where each call has a target of its own."""
        return not self.perturb

    def prepare(
        self,
        y: ArrayLike | None,
        offsets: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        pairs: Pairs | None = None,
        n_threads: int = 0,
    ) -> Derivatives:
        if not self.perturb or pairs is not None:
            return super().prepare(y, offsets, weight, pairs=pairs, n_threads=n_threads)
        super().prepare(y, offsets, weight)  # checks
        labels = _validate.vector("SoftmaxCrossEntropy", "y", np.asarray(y))
        rng = np.random.default_rng(self.seed)

        def derivatives(s: ArrayLike) -> tuple[Floats, Floats]:
            draw = self._perturbed(labels, rng)
            weights = _validate.weights("SoftmaxCrossEntropy", weight, len(labels))
            kernel = _core.SoftmaxLoss(draw, np.asarray(offsets, np.int64), weights, False)
            scores = _validate.vector("SoftmaxCrossEntropy", "s", s)
            _, gradient, curvature = kernel.evaluate(scores, False, n_threads)
            return gradient, curvature

        return derivatives

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        gain = _gains(self.gain, y)
        if self.perturb:
            gain = self._perturbed(y, np.random.default_rng(self.seed))
        return _core.SoftmaxLoss(gain, offsets, weight, False)

    def _perturbed(self, y: Floats, rng: np.random.Generator) -> Floats:
        return _gains(self.gain, y) + 1 - rng.random(len(y))


@dataclass(frozen=True)
class ListMLE(ConvexLoss):
    r"""Likelihood of the order of labels when documents are chosen one after the other.

    ``loss = sum of w_i a_i log(sum over y_j <= y_i of exp(s_j - s_i))`` over all documents but those
    with the query's lowest label

    The Plackett-Luce likelihood of the sorted list: each document is the choice among those that
    are left. Of documents with equal labels each is a choice among all whose label is not higher
    (Breslow's form), so no order of theirs is preferred and row order does not matter; what is left
    at the end, the lowest label, is no choice. Without equal labels it is the exact likelihood.

    Parameters
    ----------
    position : {"none", "log2", "exp2"}
        The position weight ``a``: 1; ``1 / log2(1 + rank)``; or ``2^(1 - rank)``, the limit for long
        lists of the ``2^(n - rank) - 1`` of position-aware ListMLE, scaled to 1 at the top. Equal
        labels share the mean over the places they take.

    Notes
    -----
    O(n log n). Convex, and never below 0.

    References
    ----------
    xia2008, lan2014

    Examples
    --------
    The chance of the order (1, 2, 3) is .486:

    >>> import numpy as np
    >>> import rankwise as rw
    >>> np.exp(-rw.ListMLE().value([2, 1, 0], [2.0, 1.0, 0.0], [0, 3])).round(3)
    array([0.486])
    """

    position: str = "none"
    name: ClassVar[str] = "listmle"

    def __post_init__(self) -> None:
        _validate.choice("ListMLE", "position", self.position, _POSITIONS)

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        longest = int(np.diff(offsets).max(initial=0))
        return _core.ListMleLoss(y, offsets, weight, _POSITIONS[self.position](longest))


_POSITIONS: dict[str, Callable[[int], Floats | None]] = {
    "none": lambda n: None,
    "log2": lambda n: 1 / np.log2(np.arange(2.0, n + 2)),
    "exp2": lambda n: np.exp2(-np.arange(float(n))),
}


@dataclass(frozen=True)
class ApproxNDCG(Loss):
    r"""nDCG with smooth ranks: what a list loses of it.

    ``loss = 1 - 1/ideal sum of g(y_i) / log2(1 + r_i)``,
    ``r_i = 1 + sum over j of 1 / (1 + exp(alpha (s_i - s_j)))``

    With growing ``alpha`` the ranks become the real ones and the loss 1 - nDCG, but flat. Not
    convex.

    Parameters
    ----------
    gain : {"exp2", "identity"} or tuple of float
        Gain of a label, as in :func:`rankwise.metrics.ndcg`.
    alpha : float
        Steepness of the ranks, above 0.

    Notes
    -----
    A document weight multiplies the document's gain in the sum and in the best sum it is compared
    with, so that the loss is never below 0: ``(best sum of w_i g_i D - sum of w_i g_i D(r_i)) /
    ideal`` where ``ideal`` is without weights.

    Second derivatives have terms of both signs. With ``b_ij`` the slope of the smooth rank and
    ``c_i`` the derivative of the loss in it, ``M_i = sum over j of alpha b_ij (c_i + c_j)`` is
    never below the second derivative; the curvature given is the second derivative, but at least
    ``M_i / 4``. Time is quadratic in the length of a list, memory linear.

    References
    ----------
    qin2010approx

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.ApproxNDCG(alpha=100).value([2, 0, 1], [2.0, 1.0, 0.0], [0, 3]).round(3)
    array([0.036])
    >>> rw.metrics.ndcg([2, 0, 1], [2.0, 1.0, 0.0]).round(3)
    array([0.964])
    """

    gain: Any = "exp2"
    alpha: float = 1.0
    name: ClassVar[str] = "approx_ndcg"

    def __post_init__(self) -> None:
        NDCG(gain=self.gain)
        alpha = _validate.number("ApproxNDCG", "alpha", self.alpha, low=0, open_low=True)
        object.__setattr__(self, "alpha", alpha)

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        gain = _gains(self.gain, y)
        query = query_of(offsets)
        largest = np.zeros(len(offsets) - 1)
        np.fmax.at(largest, query, gain)
        gain = gain / np.where(largest > 0, largest, 1.0)[query]  # sums of gains stay finite
        scale = inverse(ideals(gain, offsets, NDCG.discounts(longest_list(offsets))))
        weighted = gain if weight is None else gain * weight
        return _core.ApproxNdcgLoss(weighted, offsets, scale, self.alpha)


@dataclass(frozen=True)
class BoltzRank(Loss):
    r"""Expected loss of a metric under a Boltzmann distribution over sampled rankings.

    ``loss = w [mix sum of P_m (best - M_m) + (1 - mix) KL(Q, P)]``,
    ``P_m ~ exp(F_m),  F_m = 2 sigma / (n (n - 1)) sum over i ranked before j in m of s_i - s_j``

    over a fixed sample of rankings ``m`` of each query; ``M`` is the metric, ``best`` its largest
    value in the sample, ``Q`` the distribution that the labels give in the place of scores. Not
    convex, unless ``mix`` is 0.

    Parameters
    ----------
    metric : str or Metric
        Any metric; queries it skips keep the second part only.
    n_samples : int
        Rankings per query. Ranking ``m`` sorts by ``a_m y + Gumbel noise`` with ``a_m`` from 0 (any
        order alike) to 4 (close to the ideal), so that the sample spans bad and good ones.
    mix : float
        Share of the metric's part, from 0 to 1.
    sigma : float
        Steepness, above 0.
    seed : int
        Seed of the sample, which follows the order of the rows; see
        :class:`SoftmaxCrossEntropy`.

    Notes
    -----
    ``F`` is linear in the scores with the places as its slopes, so the derivatives are moments of
    places: ``n_samples`` steps per document and pass, and as many bytes times four. A query counts
    with the mean weight of its documents. The curvature given is the second derivative, but at
    least a quarter of the variance of the place under P (times its slope squared, ``1 - mix`` and
    ``mix`` times the spread of the metric), which bounds it.

    References
    ----------
    volkovs2009

    Examples
    --------
    >>> import rankwise as rw
    >>> good = rw.BoltzRank().value([2, 0, 1], [2.0, 0.0, 1.0], [0, 3])
    >>> bad = rw.BoltzRank().value([2, 0, 1], [0.0, 2.0, 1.0], [0, 3])
    >>> bool(good[0] < bad[0])
    True
    """

    metric: str | Metric = _NDCG
    n_samples: int = 50
    mix: float = 0.5
    sigma: float = 1.0
    seed: int = 0
    name: ClassVar[str] = "boltzrank"

    def __post_init__(self) -> None:
        where = "BoltzRank"
        object.__setattr__(self, "metric", parse_metric(self.metric))
        for name, bounds in (
            ("n_samples", {"low": 2, "integer": True}),
            ("mix", {"low": 0, "high": 1}),
            ("sigma", {"low": 0, "open_low": True}),
            ("seed", {"low": 0, "integer": True}),
        ):
            number = _validate.number(where, name, getattr(self, name), **bounds)  # type: ignore[arg-type]
            object.__setattr__(self, name, number)

    def _kernel(self, y: Floats, offsets: Offsets, weight: Floats | None) -> Any:
        assert isinstance(self.metric, Metric)
        rng = np.random.default_rng(self.seed)
        pull = np.linspace(0, 4, self.n_samples)[:, None]
        place = np.full((self.n_samples, len(y)), -1, np.int32)
        for a, b in pairwise(offsets.tolist()):
            judged = np.flatnonzero(~np.isnan(y[a:b])) + a
            keys = pull * y[judged] + rng.gumbel(size=(self.n_samples, len(judged)))
            order = np.argsort(-keys, axis=1, kind="stable")
            np.put_along_axis(keys, order, np.arange(len(judged), dtype=float)[None, :], axis=1)
            place[:, judged] = keys
        groups = Groups(offsets, np.arange(len(offsets) - 1))
        values = np.zeros((self.n_samples, len(groups)))
        for m in range(self.n_samples):
            s = np.where(place[m] < 0, -np.inf, -place[m].astype(float))
            values[m] = self.metric.per_query(y, s, qid=groups)
        lost = np.nan_to_num(values.max(axis=0) - values, nan=0.0)
        blocks = [place[:, a:b].ravel() for a, b in pairwise(offsets.tolist())]
        return _core.BoltzRankLoss(
            y,
            offsets,
            weight,
            np.concatenate([np.zeros(0, np.int32), *blocks]),
            np.ascontiguousarray(lost.T).ravel(),
            self.n_samples,
            self.mix,
            self.sigma,
        )


def _gains(gain: Any, y: Floats) -> Floats:
    """Gains of labels, NaN where there is no judgement."""
    return np.where(np.isnan(y), np.nan, NDCG(gain=gain).gains(y))
