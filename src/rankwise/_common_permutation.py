r"""One order for all lists: fixed values in a common permutation that every list and X must explain.

A query's consensus t is a rearrangement of fixed values s. List j explains it by a generalised linear
model with one slope ``b_j >= 0``, the features by one with weights ``w``:

    D_j = sum over entries of D(t_i || g(b_j z_ij)) + l1 N_j b_j
    D_x = sum over items of D(t_i || g(x_i w)) + ridge N |w|^2 / 2
    J   = sum_j (N_j / N) log(u_j + cap) + log(u_x + cap),   u = D / (N D0)

with D0 the mean divergence of a model that says nothing. A round fits the slopes and weights, then
sorts each query by

    h_i = sum_j v_j b_j z_ij + v_x x_i w,   v = 1 / (u + cap)

By concavity of the logarithm and the rearrangement inequality J falls or t repeats, so it stops after
finitely many rounds. Where lists have gaps, what is missing is bounded by its divergence from the
last t, which keeps the descent and makes items of few lists slow to move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._rank_scores import Evidence, Floats, Offsets, ranked, uniform_values

Constrain = Callable[[Floats, Floats], Floats]


# --- generalised linear models -----------------------------------------------------------------


class _Squared:
    def __init__(self, offsets: Offsets) -> None:
        self.factor: Any = 1.0

    def values(self, base: Floats, offsets: Offsets) -> Floats:
        return _standard(base, offsets)

    def phi(self, t: Floats) -> Floats:
        return t**2 / 2

    def natural(self, t: Floats) -> Floats:
        return t

    def log_partition(self, eta: Floats) -> Floats:
        """The conjugate of phi, item by item, for one or many columns."""
        return eta**2 / 2

    def mean(self, eta: Floats) -> Floats:
        return eta

    def bend(self, eta: Floats, direction: Floats) -> Floats:
        """Derivative of the mean along a direction, times it, summed later over items."""
        return np.ones_like(eta) * direction


class _Logistic(_Squared):
    def values(self, base: Floats, offsets: Offsets) -> Floats:
        low, high = _extremes(base, offsets)
        n = np.repeat(np.diff(offsets), np.diff(offsets))
        return np.asarray(0.5 / n + (1 - 1 / n) * (base - low) / np.maximum(high - low, 1e-300))

    def phi(self, t: Floats) -> Floats:
        return np.asarray(t * np.log(t) + (1 - t) * np.log1p(-t))

    def natural(self, t: Floats) -> Floats:
        return np.asarray(np.log(t) - np.log1p(-t))

    def log_partition(self, eta: Floats) -> Floats:
        return np.asarray(np.logaddexp(0.0, eta))

    def mean(self, eta: Floats) -> Floats:
        return np.asarray(0.5 * (1 + np.tanh(eta / 2)))

    def bend(self, eta: Floats, direction: Floats) -> Floats:
        m = self.mean(eta)
        return np.asarray(m * (1 - m) * direction)


class _KL(_Squared):
    """Softmax over a query; a query counts with its size."""

    def __init__(self, offsets: Offsets) -> None:
        self.offsets, self.sizes = offsets, np.diff(offsets)
        self.factor = np.repeat(self.sizes, self.sizes).astype(np.float64)

    def _spread(self, values: Floats) -> Floats:
        return np.repeat(np.add.reduceat(values, self.offsets[:-1]), self.sizes, axis=0)

    def values(self, base: Floats, offsets: Offsets) -> Floats:
        low, _ = _extremes(base, offsets)
        positive = base if (low > 0).all() else base - low + 1e-3
        return np.asarray(positive / self._spread(positive))

    def phi(self, t: Floats) -> Floats:
        return np.asarray(t * np.log(t))

    def natural(self, t: Floats) -> Floats:
        return np.asarray(np.log(t))

    def log_partition(self, eta: Floats) -> Floats:
        top = np.repeat(np.maximum.reduceat(eta, self.offsets[:-1]), self.sizes, axis=0)
        total = np.log(self._spread(np.exp(eta - top))) + top
        n = self.factor.reshape(-1, *[1] * (eta.ndim - 1))
        return np.asarray(total / n)  # summed over a query: its log of sums

    def mean(self, eta: Floats) -> Floats:
        top = np.repeat(np.maximum.reduceat(eta, self.offsets[:-1]), self.sizes, axis=0)
        e = np.exp(eta - top)
        return np.asarray(e / self._spread(e))

    def bend(self, eta: Floats, direction: Floats) -> Floats:
        m = self.mean(eta)
        return np.asarray(m * (direction - self._spread(m * direction)))


MODELS: dict[str, Any] = {"squared": _Squared, "logistic": _Logistic, "kl": _KL}


def _extremes(base: Floats, offsets: Offsets) -> tuple[Floats, Floats]:
    sizes = np.diff(offsets)
    low, high = (f.reduceat(base, offsets[:-1]) for f in (np.minimum, np.maximum))
    return np.repeat(low, sizes), np.repeat(high, sizes)


def _standard(base: Floats, offsets: Offsets) -> Floats:
    sizes = np.diff(offsets)
    mean = np.repeat(np.add.reduceat(base, offsets[:-1]) / sizes, sizes)
    centred = base - mean
    size = np.sqrt(np.repeat(np.add.reduceat(centred**2, offsets[:-1]) / sizes, sizes))
    return np.asarray(np.where(size > 0, centred / np.where(size > 0, size, 1), 0.0))


# --- the alternation -----------------------------------------------------------------------------


@dataclass
class Permutation:
    """Where the alternation stopped."""

    values: Floats  # t on the lists' side
    feature_values: Floats  # the same order, in the values of the features' divergence
    slopes: Floats
    list_weights: Floats  # v_j, per unit of the linear score
    feature_weight: float
    coef: Floats
    score: Floats  # h / (sum of observed v)
    prediction: Floats | None = None  # natural parameters of the features' side
    objectives: list[float] = field(default_factory=list)
    converged: bool = False

    @property
    def bounds(self) -> list[float]:
        """Higher is better, as in the factor model."""
        return [-value for value in self.objectives]


class CommonPermutation:
    """The problem over given evidence and standardised features (or none); no empty queries."""

    def __init__(
        self,
        evidence: Evidence,
        X: Floats | None,
        *,
        divergence: str,
        feature_divergence: str,
        cap: float,
        ridge: float,
        l1: float,
        constrain: Constrain | None = None,
        predictor: Callable[[Floats], Floats] | None = None,
    ) -> None:
        self.Z, self.offsets = evidence.Z, evidence.offsets
        self.n, self.p = self.Z.shape
        self.X = X
        self.model = MODELS[divergence](self.offsets)
        self.feature_model = MODELS[feature_divergence](self.offsets)
        # A softmax needs whole lists: there, an unknown entry is the middle of its list.
        whole = divergence == "kl"
        self.seen = np.ones_like(evidence.seen) if whole else evidence.seen
        self.gaps = bool((self.seen == 0).any())
        self.entries = self.seen.sum(axis=0)
        self.used = evidence.seen.sum(axis=0) > 0
        self.cap, self.ridge, self.l1 = cap, ridge, l1
        self.constrain, self.predictor = constrain, predictor
        base = self._base("kl" in (divergence, feature_divergence))
        self.s = self.model.values(base, self.offsets)
        self.sx = self.feature_model.values(base, self.offsets)
        # t_x = const + slope t, so that one sort serves both sides.
        low, high = _extremes(self.s, self.offsets)
        low_x, high_x = _extremes(self.sx, self.offsets)
        self.link = np.where(
            high > low, (high_x - low_x) / np.where(high > low, high - low, 1), 0.0
        )
        self.d0 = self._idle(self.model, self.s)
        self.d0x = self._idle(self.feature_model, self.sx)

    def _base(self, discounted: bool) -> Floats:
        if not discounted:
            return uniform_values(self.offsets)
        place = np.arange(self.n) - np.repeat(self.offsets[:-1], np.diff(self.offsets)) + 1
        return np.asarray(1 / np.log2(1 + place))

    def _idle(self, model: Any, s: Floats) -> float:
        """Mean divergence of a model that says nothing."""
        return float((model.factor * (model.phi(s) + model.log_partition(np.zeros(self.n)))).mean())

    def fit(self, start: Floats, *, max_iter: int, tol: float = 0.0) -> Permutation:
        order = ranked(start, self.offsets)
        b, w = np.zeros(self.p), np.zeros(0 if self.X is None else self.X.shape[1])
        found = Permutation(self.s, self.sx, b, b, 0.0, w, start)
        for _ in range(max_iter):
            t, tx = np.empty(self.n), np.empty(self.n)
            t[order], tx[order] = self.s, self.sx
            b = self._slopes(t, b)
            w, eta = self._weights(tx, w)
            u, ux = self._misfit(t, b), self._feature_misfit(tx, w, eta)
            objective = float((self.entries / self.n * np.log(u + self.cap))[self.used].sum()) + (
                np.log(ux + self.cap) if eta is not None else 0.0
            )
            v = np.where(self.used, 1 / (u + self.cap), 0.0) / self.d0
            vx = 1 / (ux + self.cap) / self.d0x if eta is not None else 0.0
            found = self._found(found, t, tx, b, v, vx, w, eta, objective)
            new = self._sorted(found, order, eta)
            if np.array_equal(new, order):
                found.converged = True
                break
            order = new
        return found

    def _found(
        self, last: Permutation, t: Floats, tx: Floats, b: Floats, v: Floats, vx: float,
        w: Floats, eta: Floats | None, objective: float,
    ) -> Permutation:  # fmt: skip
        score = self.scores(b, v, vx, eta)
        return Permutation(
            t, tx, b, v, vx, w, score, eta, objectives=[*last.objectives, float(objective)]
        )

    def scores(self, b: Floats, v: Floats, vx: float, eta: Floats | None) -> Floats:
        """The linear score of every item over what is known of it."""
        seen = self.seen @ v + (vx if eta is not None else 0.0)
        return np.asarray(self._linear(b, v, vx, eta) / np.where(seen > 0, seen, 1.0))

    def _linear(self, b: Floats, v: Floats, vx: float, eta: Floats | None) -> Floats:
        h = self.model.factor * (self.Z @ (v * b))
        if eta is not None:
            h = h + self.link * self.feature_model.factor * vx * eta
        return np.asarray(h)

    def _sorted(self, f: Permutation, order: NDArray[np.int64], eta: Floats | None) -> Any:
        """The order of h, or of another candidate that lowers the surrogate more."""
        h = self._linear(f.slopes, f.list_weights, f.feature_weight, eta)
        v, seen = f.list_weights, self.seen @ f.list_weights
        absent = (1 - self.seen) @ v if self.gaps else np.zeros(self.n)
        pull = h + absent * self.model.factor * self.model.natural(f.values)
        candidates = [pull]
        if self.gaps:
            candidates.append(h / np.maximum(seen + f.feature_weight, 1e-300))
        if self.constrain is not None:
            candidates = [self.constrain(c, np.maximum(seen, 1e-3)) for c in candidates]
        place = np.empty(self.n)
        place[order] = -np.arange(self.n)
        best, least = order, self._surrogate(f.values, pull, seen + absent, seen)
        for c in candidates:
            new = ranked(c, self.offsets, place)
            t = np.empty(self.n)
            t[new] = self.s
            cost = self._surrogate(t, pull, seen + absent, seen)
            better = cost < least - 1e-13 * np.abs(least)
            if better.any():
                # Queries are separate: each takes the candidate that is best for it.
                rows = np.repeat(better, np.diff(self.offsets))
                best = np.where(rows, new, best)
                least = np.where(better, cost, least)
        return best

    def _surrogate(self, t: Floats, pull: Floats, mass: Floats, seen: Floats) -> Floats:
        """What t costs each query, apart from constants."""
        item = self.model.factor * mass * self.model.phi(t) - pull * t
        return np.asarray(np.add.reduceat(item, self.offsets[:-1]))

    # --- slopes and weights -------------------------------------------------------------------

    def _slopes(self, t: Floats, b: Floats) -> Floats:
        """The best slope of each list, at least 0."""
        c = self.model.factor
        pull = self.Z.T @ (c * t)
        penalty = self.l1 * self.entries
        if type(self.model) is _Squared:
            squares = np.maximum((self.Z**2).sum(axis=0), 1e-300)
            return np.asarray(np.maximum(0.0, (pull - penalty) / squares) * self.used)
        column = np.reshape(c, (-1, 1))
        rise = (column * self.Z * self.model.mean(np.zeros_like(self.Z))).sum(axis=0)
        moves = self.used & (pull - penalty > rise)  # otherwise 0 is best
        b = np.where(moves, np.maximum(b, 0.1), 0.0)
        low, high = np.zeros(self.p), np.full(self.p, np.inf)
        for _ in range(60):
            eta = self.Z * b
            slope = (column * self.Z * self.model.mean(eta)).sum(axis=0) - pull + penalty
            bend = (column * self.Z * self.model.bend(eta, self.Z)).sum(axis=0)
            low, high = np.where(slope < 0, b, low), np.where(slope < 0, high, b)
            step = b - slope / np.maximum(bend, 1e-300)
            middle = np.where(np.isfinite(high), (low + high) / 2, 2 * b)
            new = np.where((step > low) & (step < high), step, middle)
            new = np.where(moves, new, 0.0)
            done = np.abs(new - b) <= 1e-12 * (1 + b)
            b = new
            if done.all():
                break
        return b

    def _weights(self, tx: Floats, w: Floats) -> tuple[Floats, Floats | None]:
        """The features' weights by Newton steps with halving, and the natural parameters."""
        if self.predictor is not None:
            return w, self.predictor(tx)
        if self.X is None:
            return w, None
        X, model = self.X, self.feature_model
        c, lam = model.factor, self.ridge * self.n
        eye = np.eye(X.shape[1])

        def cost(w: Floats) -> float:
            eta = X @ w
            return float((c * (model.log_partition(eta) - tx * eta)).sum() + lam / 2 * (w @ w))

        value = cost(w)
        for _ in range(50):
            eta = X @ w
            gradient = X.T @ (c * (model.mean(eta) - tx)) + lam * w
            bent = np.column_stack([c * model.bend(eta, column) for column in X.T])
            step = np.linalg.solve(X.T @ bent + lam * eye, gradient)
            if not gradient @ step > 1e-22 * (1 + abs(value)):
                break
            length = 1.0
            while (new := cost(w - length * step)) > value and length > 1e-10:
                length /= 2
            if new >= value:
                break
            w, value = w - length * step, new
        return w, X @ w

    def _misfit(self, t: Floats, b: Floats) -> Floats:
        eta = self.Z * b
        item = self.model.phi(t)[:, None] - t[:, None] * eta + self.model.log_partition(eta)
        item *= np.reshape(self.model.factor, (-1, 1)) * self.seen
        D = item.sum(axis=0) + self.l1 * self.entries * b
        return np.asarray(np.maximum(D, 0) / np.maximum(self.entries, 1) / self.d0)

    def _feature_misfit(self, tx: Floats, w: Floats, eta: Floats | None) -> float:
        if eta is None:
            return 1.0
        model = self.feature_model
        item = model.factor * (model.phi(tx) - tx * eta + model.log_partition(eta))
        D = float(item.sum()) + self.ridge * self.n / 2 * float(w @ w)
        return float(max(D, 0.0) / self.n / self.d0x)
