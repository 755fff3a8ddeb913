r"""The shared-factor model of rank lists: what all lists and the features have in common.

    t_i = x_i w + e_i,        e_i ~ N(0, tau2),    w ~ N(0, tau2 / ridge)
    z_ij = a_j t_i + f_ij,    f_ij ~ N(0, s2_j),   s2_j >= min_noise
    a_j = 0 with chance pi_0, else ~ N(abar, psi), or N(-abar, psi) where reversed lists are allowed

Variational inference with q(t, w) prod_j q(a_j, class_j), everything else maximised, in units in
which the variance of t is 1. Every step below maximises one lower bound of the likelihood over one
block, so the bound never falls.

``posterior="joint"`` keeps the dependence between t and w: given the lists, both are Gaussian and
their posterior is exact. ``"factorised"`` lets it go, which makes a round cheaper and the rounds
many: where features explain nearly everything, t and w then move in tiny steps behind each other.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._rank_scores import Evidence

Floats = NDArray[np.float64]
Constrain = Callable[[Floats, Floats], Floats]

_RIDGE = 1e-3, 1e9  # how weak and how strong the ridge may become
_SPREAD = 1e-3  # psi is at least this share of abar^2
_LEAST_ROUNDS = 6
_SWEEPS = 5  # between constrained means of t and of the weights
_LONGEST = 64.0  # stride of the scales


@dataclass
class Factor:
    """The state of the model: parameters, posterior, and the bound of every round."""

    mean: Floats  # of t
    variance: Floats
    loading: Floats  # E a_j
    square: Floats  # E a_j^2
    noise: Floats  # s2_j
    keep: Floats  # chance that a list is used, per sign
    typical: float  # abar
    spread: float  # psi
    chances: Floats  # pi
    tau2: float
    ridge: float
    coef: Floats
    coef_cov: Floats  # of the weights; in the basis of X'X where factorised
    bounds: list[float] = field(default_factory=list)
    converged: bool = False

    @property
    def weights(self) -> Floats:
        """What a standardised place counts in the consensus."""
        return self.loading / self.noise


class SharedFactor:
    """The model over given evidence and standardised features (or none)."""

    def __init__(
        self,
        evidence: Evidence,
        X: Floats | None,
        *,
        signed: bool,
        min_noise: float,
        posterior: str = "joint",
        constrain: Constrain | None = None,
        predictor: Callable[[Floats], Floats] | None = None,
    ) -> None:
        self.Z, self.seen = evidence.Z, evidence.seen
        self.n, self.p = self.Z.shape
        self.X = np.zeros((self.n, 0)) if X is None else X
        self.d = self.X.shape[1]
        self.signs = np.array([1.0, -1.0]) if signed else np.array([1.0])
        self.min_noise = min_noise
        self.joint = posterior == "joint" and predictor is None
        self.constrain, self.predictor = constrain, predictor
        self.entries = self.seen.sum(axis=0)
        self.squares = (self.Z**2).sum(axis=0)
        self.used = self.entries > 0
        if not self.joint and self.d:
            self.eigen, self.basis = np.linalg.eigh(self.X.T @ self.X)
            self.eigen = np.maximum(self.eigen, 0.0)
        self.prediction = np.zeros(self.n)  # x_i w
        self.residual = 0.0  # sum of E (t - x w)^2
        self.energy = 0.0  # E |w|^2
        self.log_det = 0.0  # of the weights' covariance
        self.given_coef = np.ones(self.n)  # variance of t given the weights

    # --- rounds ------------------------------------------------------------------------------

    def fit(self, start: Floats, *, max_iter: int, tol: float) -> Factor:
        """From a vector of mean square 1 in each query to a maximum of the bound."""
        p, k = self.p, 1 + len(self.signs)
        state = Factor(
            mean=0.7 * start, variance=np.full(self.n, 0.5), loading=np.zeros(p),
            square=np.zeros(p), noise=np.full(p, max(0.75, self.min_noise)),
            keep=np.zeros((p, len(self.signs))), typical=0.5, spread=0.1,
            chances=np.append(0.2, np.full(k - 1, 0.8 / (k - 1))), tau2=1.0,
            ridge=float(max(self.d, 1)), coef=np.zeros(self.d),
            coef_cov=np.zeros((self.d, self.d)),
        )  # fmt: skip
        stride = 1.0
        for number in range(max_iter):
            prior = self.experts(state)
            before = copy.copy(state), self._moments()
            if number > 0 and self.joint:
                self.scales(state, stride)
            else:
                self.features(state)
            self.rescale(state)
            self.consensus(state)
            bound = self.bound(state, prior)
            if stride > 1 and not bound >= state.bounds[-1]:
                # Too long a step: take the plain one, which cannot fall.
                state, stride = before[0], 1.0
                self._moments(before[1])
                self.scales(state, stride)
                self.rescale(state)
                self.consensus(state)
                bound = self.bound(state, prior)
            elif number > 0 and self.joint:
                stride = min(1.6 * stride, _LONGEST)
            state.bounds.append(bound)
            if number + 1 >= _LEAST_ROUNDS and state.bounds[-1] - state.bounds[-2] < tol * self.n:
                state.converged = True
                break
        return state

    def _moments(self, values: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
        """What the model holds of the posterior; given values, takes those."""
        if values is not None:
            self.prediction, self.residual, self.energy, self.log_det, self.given_coef = values
        return self.prediction, self.residual, self.energy, self.log_det, self.given_coef

    def experts(self, f: Factor) -> float:
        """Loadings, the distribution they come from, the noise of each list; their part of the
        bound apart from the fit.
        """
        q2 = f.mean**2 + f.variance
        M, y = self.seen.T @ q2, self.Z.T @ f.mean
        V = 1 / (M / f.noise + 1 / f.spread)
        mu = V[:, None] * ((y / f.noise)[:, None] + self.signs * f.typical / f.spread)
        mu = np.where(mu * self.signs < 0, 0.0, mu)
        off = (mu - self.signs * f.typical) ** 2 + V[:, None]
        gain = (y[:, None] * mu - M[:, None] * (mu**2 + V[:, None]) / 2) / f.noise[:, None]
        gain += (np.log(V)[:, None] - np.log(f.spread) - off / f.spread + 1) / 2
        logit = np.log(f.chances) + np.column_stack([np.zeros(self.p), gain])
        logit -= logit.max(axis=1, keepdims=True)
        g = np.exp(logit)
        g /= g.sum(axis=1, keepdims=True)
        g[~self.used] = f.chances  # nothing is known of a list without entries
        f.keep = g[:, 1:]
        f.loading = (f.keep * mu).sum(axis=1)
        f.square = (f.keep * (mu**2 + V[:, None])).sum(axis=1)
        f.loading[~self.used] = f.square[~self.used] = 0.0
        keep = np.where(self.used[:, None], f.keep, 0.0)
        mass = max(keep.sum(), 1e-300)
        typical = (keep * self.signs * mu).sum() / mass
        f.typical = float(min(max(typical, 0.0), np.sqrt(f.spread / _SPREAD)))
        off = (mu - self.signs * f.typical) ** 2 + V[:, None]
        f.spread = float(max((keep * off).sum() / mass, _SPREAD * f.typical**2, 1e-12))
        prior = (np.log(V)[:, None] - np.log(f.spread) - off / f.spread + 1) / 2
        counted = g[self.used]
        f.chances = (counted.sum(axis=0) + 1) / (len(counted) + len(f.chances))
        misfit = self.squares - 2 * f.loading * y + f.square * M
        f.noise = np.maximum(self.min_noise, misfit / np.maximum(self.entries, 1))
        f.noise[~self.used] = 1.0
        classes = counted * (np.log(f.chances) - np.log(np.maximum(counted, 1e-300)))
        return float((keep * prior).sum() + classes.sum() + np.log(f.chances).sum())

    def features(self, f: Factor) -> None:
        """The weights of the features given t (factorised), and the scales they tell."""
        if self.predictor is not None:
            self.prediction = self.predictor(f.mean)
            f.tau2 = float(((f.mean - self.prediction) ** 2 + f.variance).mean())
            self.residual = f.tau2 * self.n
            return
        if self.d == 0:
            self.residual = float((f.mean**2 + f.variance).sum())
            f.tau2 = self.residual / self.n
            return
        if self.joint:  # only where there is no joint posterior yet
            A = self.X.T @ self.X + f.ridge * np.eye(self.d)
            f.coef = np.asarray(np.linalg.solve(A, self.X.T @ f.mean), np.float64)
            f.coef_cov = np.asarray(f.tau2 * np.linalg.inv(A), np.float64)
            self.prediction = self.X @ f.coef
            spread = float(((self.X @ f.coef_cov) * self.X).sum())
            self.energy = float(f.coef @ f.coef + np.trace(f.coef_cov))
        else:
            f.coef = self.basis @ ((self.basis.T @ (self.X.T @ f.mean)) / (self.eigen + f.ridge))
            S = f.tau2 / (self.eigen + f.ridge)
            f.coef_cov = S
            self.prediction = self.X @ f.coef
            spread = float((S * self.eigen).sum())
            self.energy = float(f.coef @ f.coef + S.sum())
        self.residual = float(((f.mean - self.prediction) ** 2 + f.variance).sum()) + spread
        if self.joint:
            self.scales(f)
            return
        f.tau2 = (self.residual + f.ridge * self.energy) / (self.n + self.d)
        f.ridge = float(np.clip(self.d * f.tau2 / max(self.energy, 1e-300), *_RIDGE))

    def scales(self, f: Factor, stride: float = 1.0) -> None:
        """tau2 and the ridge together, given the joint posterior.

        Where features explain nearly everything tau2 goes to 0 by ever smaller steps: ``stride``
        lengthens them, on the logarithmic scale.
        """
        tau2, ridge = self.residual / self.n, f.ridge
        if self.d > 0:
            ridge = self.d * tau2 / max(self.energy, 1e-300)
            f_ridge = float(np.clip(ridge, *_RIDGE))
            if f_ridge != ridge:
                tau2 = (self.residual + f_ridge * self.energy) / (self.n + self.d)
            ridge = f_ridge
        if stride > 1:
            tau2 = f.tau2 * (tau2 / f.tau2) ** stride
            ridge = float(np.clip(f.ridge * (ridge / f.ridge) ** stride, *_RIDGE))
        f.tau2, f.ridge = float(max(tau2, 1e-12)), ridge

    def rescale(self, f: Factor) -> None:
        """Back to units in which the variance of t is 1; the bound stays."""
        c = np.sqrt(f.tau2 + (self.prediction**2).mean())
        f.loading, f.typical = f.loading * c, f.typical * c
        f.square, f.spread = f.square * c**2, f.spread * c**2
        f.coef, f.coef_cov, f.mean = f.coef / c, f.coef_cov / c**2, f.mean / c
        self.prediction = self.prediction / c
        f.tau2, self.residual, self.energy = f.tau2 / c**2, self.residual / c**2, self.energy / c**2

    def consensus(self, f: Factor) -> None:
        """The posterior of t, with that of the weights where they are kept together."""
        pull = self.Z @ f.weights
        mass = self.seen @ (f.square / f.noise)
        precision = mass + 1 / f.tau2
        if self.joint and self.d:
            share = 1 / (1 + f.tau2 * mass)
            L = np.linalg.cholesky(
                (self.X * (mass * share)[:, None]).T @ self.X + f.ridge / f.tau2 * np.eye(self.d)
            )
            half = np.linalg.solve(L, np.eye(self.d))
            f.coef_cov = half.T @ half
            f.coef = f.coef_cov @ (self.X.T @ (pull * share))
            self.prediction = self.X @ f.coef
            about = ((self.X @ half.T) ** 2).sum(axis=1)
            self.energy = float(f.coef @ f.coef + np.trace(f.coef_cov))
            self.log_det = -2 * float(np.log(np.diag(L)).sum())
        if self.constrain is None:
            f.mean = (pull + self.prediction / f.tau2) / precision
        else:
            self._constrained(f, pull, precision)
        f.variance = 1 / precision
        if not self.joint:
            return
        if self.d == 0:
            self.residual = float((f.mean**2 + f.variance).sum())
            return
        self.given_coef = f.variance
        self.residual = float(
            ((f.mean - self.prediction) ** 2 + f.variance + (mass / precision) ** 2 * about).sum()
        )
        f.variance = f.variance + about / (f.tau2 * precision) ** 2

    def _constrained(self, f: Factor, pull: Floats, precision: Floats) -> None:
        """The means of t, in the known order, and of the weights: each given the other, in turn."""
        assert self.constrain is not None
        if not self.joint or self.d == 0:
            f.mean = self.constrain((pull + self.prediction / f.tau2) / precision, precision)
            return
        A = self.X.T @ self.X + f.ridge * np.eye(self.d)
        for _ in range(_SWEEPS):
            f.coef = np.asarray(np.linalg.solve(A, self.X.T @ f.mean), np.float64)
            self.prediction = self.X @ f.coef
            f.mean = self.constrain((pull + self.prediction / f.tau2) / precision, precision)
        self.energy = float(f.coef @ f.coef + np.trace(f.coef_cov))

    def bound(self, f: Factor, prior: float) -> float:
        """The lower bound of the log likelihood, constants dropped, for the posterior held."""
        M, y = self.seen.T @ (f.mean**2 + f.variance), self.Z.T @ f.mean
        fit = (self.squares - 2 * f.loading * y + f.square * M) / f.noise
        used = self.used
        value = prior - 0.5 * float((fit + self.entries * np.log(f.noise))[used].sum())
        d = self.d
        value -= self.n / 2 * np.log(f.tau2)
        if not self.joint or d == 0:
            value += float(np.log(f.variance).sum()) / 2
            around = float(((f.mean - self.prediction) ** 2 + f.variance).sum())
            if d and self.predictor is None:
                around += float((f.coef_cov * self.eigen).sum())
                self.log_det = float(np.log(f.coef_cov).sum())
                self.energy = float(f.coef @ f.coef + f.coef_cov.sum())
            value -= around / (2 * f.tau2)
        else:
            value += float(np.log(self.given_coef).sum()) / 2 - self.residual / (2 * f.tau2)
        if d and self.predictor is None:
            value -= f.ridge * self.energy / (2 * f.tau2)
            value += d / 2 * np.log(f.ridge / f.tau2) + self.log_det / 2
        return float(value)
