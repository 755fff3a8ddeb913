r"""Rank aggregation with object features: what the experts share, and what X says of it.

Experts rank items; each item has features. An item that few experts place well may still be good if
the features of good items say so, and an expert that no one agrees with may be right if X agrees.
:class:`RetargetedAggregation` finds the consensus, a weight for every expert and a linear score of the
features together, without any label.

>>> import numpy as np
>>> import rankwise as rw
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(60, 5))
>>> truth = X @ [2.0, -1.0, 1.0, 0.5, 0.0]
>>> R = np.column_stack([truth + 4 * rng.normal(size=60) for _ in range(8)]
...                     + [rng.normal(size=60) for _ in range(12)])  # 12 of 20 know nothing
>>> model = rw.RetargetedAggregation().fit(X, R)
>>> from scipy.stats import kendalltau
>>> tau = lambda s: round(float(kendalltau(truth, s).statistic), 1)
>>> tau(rw.borda(R)), tau(model.scores_), tau(model.predict(X))
(0.5, 1.0, 1.0)

Two formulations, ``method=``: ``"factor"`` integrates the common vector out (a factor model with
features; the default), ``"permutation"`` takes it as fixed values in a common order, which is literal
retargeting and allows any of the divergences. ``docs/retarget.md`` has the mathematics and the
experiments behind every default.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from rankwise import _core, _validate
from rankwise._common_permutation import MODELS, CommonPermutation
from rankwise._inputs import features_of, note_features, qid_of, same_features
from rankwise._known_order import KnownOrder
from rankwise._rank_scores import (
    Evidence,
    agreement_means,
    borda_means,
    prepare,
    query_means,
    ranked,
    rearranged,
    uniform_values,
)
from rankwise._shared_factor import SharedFactor
from rankwise.data import Groups, Pairs, group_rows

Floats = NDArray[np.float64]

_FLAT = 1e-6  # spread of a consensus that says nothing


class RetargetedAggregation(BaseEstimator):
    r"""Aggregates rank lists of items that have features.

    ``"factor"``: ``t_i = x_i w + e_i``, ``z_ij = a_j t_i + f_ij``; the consensus is the posterior
    mean ``m_i = (sum_j (a_j / s2_j) z_ij + x_i w / tau2) / (1 / tau2 + sum_j E a_j^2 / s2_j)``

    ``"permutation"``: ``min over one order t of  sum_j n_j log(u_j + cap) + n log(u_x + cap)``, with
    ``u`` the divergence of ``t`` from the best scaled list ``j``, or from the best ``X w``

    Lists enter by their places (``z``: standardised within a query), so that an increasing transform
    of a list changes nothing. Weights of experts and features are shared by all queries.

    Parameters
    ----------
    method : {"factor", "permutation"}
    missing : {"ignore", "last"} or None
        What NaN in ``R`` means: nothing is known (ratings), or ranked behind all that the list
        holds (cut result lists). No default: needed when ``R`` holds NaN.
    scores : {"rank", "raw"}
        Places, or the given values (standardised per list and query).
    signed : bool
        Factor: whether a list may count against itself, as reversed lists should. Otherwise weights
        are at least 0. Permutation: always at least 0.
    min_noise : float
        Factor: smallest noise variance of a list, 0 to 1: near-copies must not outweigh the rest.
    posterior : {"joint", "factorised"}
        Factor: whether consensus and feature weights keep their dependence. ``"joint"`` is better,
        ``"factorised"`` cheaper per round.
    divergence, feature_divergence : {"squared", "logistic", "kl"}
        Permutation: how a list, and how the features, explain the order; the second is the first
        unless given.
    cap : float
        Permutation: added to each ``u``; ``1 / cap`` is the largest weight.
    ridge : float
        Permutation: strength of the features' penalty per item. Factor: learned from the data.
    l1 : float
        Permutation: penalty on each list's slope per entry. With ``"squared"``, a list whose
        correlation with the consensus is at most ``l1`` is discarded: its weight is 0.
    regressor : estimator, transformer or None
        None is ridge on the features. A transformer (:class:`~rankwise.Nystroem`, splines) maps
        them first. A regressor (trees) predicts the consensus from them, each fold of queries (of
        items where there is one query) by a model of the others; then no bound is promised.
    start : str, callable, array or None
        Where to begin: an aggregator of :mod:`rankwise.aggregate` by name, a function of the score
        columns (and ``qid``), or a score per item. None tries Borda, Borda of lists weighted by
        agreement, and Borda regressed on X, and keeps the best objective.
    max_iter : int
    tol : float
        Factor: stop when the bound rises by less than ``tol`` per item.

    Attributes
    ----------
    scores_ : float64 array of shape (n_items,)
        The consensus, higher is better; comparable inside a query only.
    variance_ : float64 array of shape (n_items,)
        Its posterior variance (factor).
    expert_weights_ : float64 array of shape (n_lists,)
        What a standardised place in each list counts in the consensus.
    loadings_, noise_ : float64 arrays of shape (n_lists,)
        ``a_j`` and ``s2_j`` (factor); ``b_j`` and ``u_j`` scaled (permutation).
    keep_ : float64 array of shape (n_lists,)
        Chance that a list is of use (factor).
    coef_ : float64 array of shape (n_features,)
        Weights of the features as given; of the mapped ones with a transformer. Scores ``X coef_``
        compare inside a query.
    unexplained_ : float
        Share of the consensus' variance that features do not explain (factor: ``tau2``).
    ridge_ : float
    candidates_ : dict of str to float64 array
        What else could be the answer: ``"rbar"`` and ``"zbar"`` (the retargeted vectors of the
        lists' and of the features' side), ``"lists"`` (``R beta``), ``"features"`` (``X omega``),
        ``"consensus"``.
    objective_ : float64 array
        The bound (factor, never falls) or the objective (permutation, never rises) by round.
    n_iter_ : int
    converged_ : bool
    start_ : str
        The start that was kept.
    fallback_ : bool
        Whether the consensus came out flat and Borda was taken.

    Raises
    ------
    ValueError
        If ``R`` holds infinity, or NaN without ``missing``; if no list orders any query; if an item
        has some of its features (none at all is an item without features).

    Warns
    -----
    UserWarning
        If the consensus is flat (Borda is returned), or half of the signed weight is negative.
    ConvergenceWarning
        If ``max_iter`` rounds do not suffice.

    Notes
    -----
    Factor: a round costs ``O(n (p + d^2))`` with gaps in the lists. Permutation: ``O(n (p + d^2) +
    n log n)``. What all experts and X agree on is taken for the truth: if most of the strength of
    the lists is reversed, so is the answer; known labels or pairs turn it back.

    References
    ----------
    bhowmik2016

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise as rw
    >>> R = np.array([[5, 5, 2, 5, 4], [4, 4, 5, 1, 1], [3, 3, 3, 2, 2], [2, 1, 4, 4, 5], [1, 2, 1, 3, 3]])
    >>> X = np.array([[2.0], [1], [0], [-1], [-2]])
    >>> rw.borda(R)  # item 4 before item 2
    array([16., 10.,  8., 11.,  5.])
    >>> model = rw.RetargetedAggregation("permutation", start="borda").fit(X, R)
    >>> model.scores_.round(3), model.loadings_.round(1)
    (array([ 0.879,  0.479, -0.008, -0.533, -0.817]), array([1. , 0.9, 0.3, 0.1, 0. ]))
    """

    def __init__(
        self,
        method: str = "factor",
        *,
        missing: str | None = None,
        scores: str = "rank",
        signed: bool = False,
        min_noise: float = 0.5,
        posterior: str = "joint",
        divergence: str = "squared",
        feature_divergence: str | None = None,
        cap: float = 1.0,
        ridge: float = 0.01,
        l1: float = 0.0,
        regressor: Any = None,
        start: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-6,
    ) -> None:
        self.method = method
        self.missing = missing
        self.scores = scores
        self.signed = signed
        self.min_noise = min_noise
        self.posterior = posterior
        self.divergence = divergence
        self.feature_divergence = feature_divergence
        self.cap = cap
        self.ridge = ridge
        self.l1 = l1
        self.regressor = regressor
        self.start = start
        self.max_iter = max_iter
        self.tol = tol

    _found: tuple[Any, ...]

    # --- fitting -------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        R: ArrayLike,
        *,
        qid: ArrayLike | Groups | None = None,
        y: ArrayLike | None = None,
        pairs: Pairs | None = None,
    ) -> Self:
        """Find the consensus of the lists.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features), frame, Queries, or None
            Features; a row of NaN alone is an item without features. None for lists alone.
        R : array-like of shape (n_items, n_lists)
            A column of scores per expert, higher is better: ranks turned round, other systems'
            scores, single features. NaN where a list does not hold the item.
        qid : array-like of shape (n_items,), optional
            Query of each item; one query unless given.
        y : array-like of shape (n_items,), optional
            Known labels, NaN elsewhere. Items with a larger label come no later in the consensus.
        pairs : Pairs, optional
            Known preferences between items, instead of ``y``; weights and targets are not read.

        Returns
        -------
        self
        """
        where = "RetargetedAggregation.fit"
        self._check_options(where)
        lists = _columns(where, R, self.missing)
        groups = _groups(where, X, qid, len(lists))
        grouped = np.ascontiguousarray(groups.gather(lists))
        evidence = prepare(
            grouped, groups.offsets, missing=self.missing or "ignore", scores=self.scores
        )
        if not evidence.seen.any():
            raise ValueError(
                f"{where}: some list must order the items of some query, got {lists.shape[1]} lists "
                "whose entries are all tied, alone or missing"
            )
        known = KnownOrder.of(where, y, pairs, groups)
        features, names = self._features(where, X, groups)
        self.n_lists_ = lists.shape[1]
        starts = self._starts(where, grouped, groups, evidence, features, known)
        run = self._factor if self.method == "factor" else self._permutation
        run(evidence, features, starts, known)
        self._output(groups, evidence, known)
        if names is not None or X is not None:
            note_features(self, features_of(where, X)[0].shape[1], names)
        return self

    def _factor(self, evidence: Evidence, X: Any, starts: dict[str, Floats], known: Any) -> None:
        predictor = self._predictor(X, evidence)
        model = SharedFactor(
            evidence,
            X if predictor is None else None,
            signed=self.signed,
            min_noise=self.min_noise,
            posterior=self.posterior,
            constrain=None if known is None else known.nearest,
            predictor=predictor,
        )
        best = None
        for name, start in starts.items():
            s = rearranged(
                uniform_values(evidence.offsets), start, evidence.offsets, even_ties=True
            )
            found = model.fit(s, max_iter=self.max_iter, tol=self.tol)
            if best is None or found.bounds[-1] > best.bounds[-1]:
                best, self.start_, prediction = found, name, model.prediction
        assert best is not None
        self.expert_weights_, self.loadings_, self.noise_ = best.weights, best.loading, best.noise
        self.square_loadings_ = best.square
        self.keep_ = np.where(model.used, best.keep.sum(axis=1), 0.0)
        self.unexplained_, self.ridge_ = float(best.tau2), float(best.ridge)
        self._note(best.bounds, best.converged)
        self._coefficients(best.coef, best.mean, X)
        lists = evidence.Z @ best.weights
        self._found = best.mean, best.variance, lists, prediction, None, None

    def _permutation(
        self, evidence: Evidence, X: Any, starts: dict[str, Floats], known: Any
    ) -> None:
        predictor = self._predictor(X, evidence)
        model = self._alternation(evidence, X, known, predictor)
        best = None
        for name, start in starts.items():
            found = model.fit(start, max_iter=self.max_iter)
            if best is None or found.objectives[-1] < best.objectives[-1]:
                best, self.start_ = found, name
        assert best is not None
        self.loadings_ = best.slopes
        self.expert_weights_ = best.slopes * best.list_weights
        self.square_loadings_ = best.list_weights
        self.noise_ = 1 / np.maximum(best.list_weights * model.d0, 1e-300)
        self.keep_ = (best.slopes > 0).astype(np.float64)
        self.unexplained_ = 1.0
        self.ridge_ = float(self.ridge)
        self.feature_weight_ = float(best.feature_weight)
        prediction = np.zeros(evidence.n_items)
        if best.prediction is not None:
            self.unexplained_ = float(1 / (best.feature_weight * model.d0x) - self.cap)
            prediction = best.prediction
        self._note(best.objectives, best.converged)
        self._coefficients(best.coef, best.values, X)
        lists = evidence.Z @ self.expert_weights_
        self._found = best.score, None, lists, prediction, best.values, best.feature_values

    def _alternation(
        self, evidence: Evidence, X: Any, known: KnownOrder | None, predictor: Any
    ) -> CommonPermutation:
        return CommonPermutation(
            evidence,
            None if predictor is not None else X,
            divergence=self.divergence,
            feature_divergence=self.feature_divergence or self.divergence,
            cap=self.cap,
            ridge=self.ridge,
            l1=self.l1,
            constrain=None if known is None else known.nearest,
            predictor=predictor,
        )

    def _note(self, objectives: list[float], converged: bool) -> None:
        self.objective_ = np.array(objectives, dtype=np.float64)
        self.n_iter_, self.converged_ = len(objectives), bool(converged)
        if converged:
            return
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"RetargetedAggregation.fit: {self.max_iter} rounds did not reach the tolerance "
            f"{self.tol:g}; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=5,
        )

    def _output(self, groups: Groups, evidence: Evidence, known: KnownOrder | None) -> None:
        """The answer and the candidates, in input order."""
        consensus, variance, lists, prediction, rbar, zbar = self._found
        del self._found
        self.fallback_ = bool(np.std(consensus - query_means(consensus, groups.offsets)) < _FLAT)
        if self.fallback_:
            warnings.warn(
                "RetargetedAggregation.fit: the lists have nothing in common, so the consensus is "
                "flat; scores_ are the Borda means",
                UserWarning,
                stacklevel=3,
            )
            consensus = borda_means(evidence) - 0.5
        weights = self.expert_weights_
        if (
            known is None
            and self.signed
            and np.minimum(weights, 0).sum() < -0.5 * np.abs(weights).sum()
        ):
            warnings.warn(
                "RetargetedAggregation.fit: most of the lists' weight is negative, so which end is "
                "the best is not settled; give a trusted list twice, or y or pairs",
                UserWarning,
                stacklevel=3,
            )
        if known is not None:
            consensus = known.separated(known.nearest(consensus, np.ones(len(consensus))))
        if rbar is None:
            rbar, zbar = (_retargeted(v, consensus, groups.offsets) for v in (lists, prediction))
        self.scores_ = groups.scatter(np.ascontiguousarray(consensus))
        if variance is not None:
            self.variance_ = groups.scatter(np.ascontiguousarray(variance))
        found = {
            "consensus": consensus, "rbar": rbar, "zbar": zbar, "lists": lists,
            "features": prediction,
        }  # fmt: skip
        self.candidates_ = {k: groups.scatter(np.ascontiguousarray(v)) for k, v in found.items()}

    # --- new items -----------------------------------------------------------------------------

    def predict(self, X: Any, *, qid: Any = None) -> Floats:
        """Scores of items by their features alone, ``X coef_``: no list is needed.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features), frame or Queries
            A row of NaN is an item without features; it gets the training items' mean.
        qid : ignored

        Returns
        -------
        float64 array of shape (n_items,), comparable inside a query
        """
        where = "RetargetedAggregation.predict"
        check_is_fitted(self, "expert_weights_")
        if not hasattr(self, "n_features_in_"):
            raise ValueError(
                f"{where}: needs a model fitted with features, got one fitted without X"
            )
        features, names = features_of(where, X)
        values = _dense(same_features(where, self, features, names)).astype(np.float64)
        unknown = _without_features(where, values)
        values = np.where(unknown[:, None], self.feature_means_, values)
        if hasattr(self, "map_"):
            values = _dense(self.map_.transform(values))
        if hasattr(self, "regressor_"):
            return np.asarray(self.regressor_.predict(values), dtype=np.float64)
        return np.asarray(values @ self.coef_)

    def aggregate(self, X: Any, R: ArrayLike, *, qid: ArrayLike | Groups | None = None) -> Floats:
        """Consensus scores of new items, or queries, that the same experts ranked.

        Parameters
        ----------
        X, R, qid
            As for :meth:`fit`, with as many features and lists.

        Returns
        -------
        float64 array of shape (n_items,)

        Notes
        -----
        One step with everything learned held fixed.
        """
        where = "RetargetedAggregation.aggregate"
        check_is_fitted(self, "expert_weights_")
        lists = _columns(where, R, self.missing)
        if lists.shape[1] != self.n_lists_:
            raise ValueError(
                f"{where}: R must have the {self.n_lists_} lists of fit, got {lists.shape[1]}"
            )
        groups = _groups(where, X, qid, len(lists))
        grouped = np.ascontiguousarray(groups.gather(lists))
        evidence = prepare(
            grouped, groups.offsets, missing=self.missing or "ignore", scores=self.scores
        )
        prediction = np.zeros(len(lists))
        if X is not None:
            prediction = groups.gather(self.predict(X))
            prediction = prediction - query_means(prediction, groups.offsets)
        if self.method == "permutation":
            score = self._alternation(evidence, None, None, None).scores(
                self.loadings_, self.square_loadings_, self.feature_weight_,
                None if X is None else prediction,
            )  # fmt: skip
            return groups.scatter(np.ascontiguousarray(score))
        precision = evidence.seen @ (self.square_loadings_ / self.noise_) + 1 / self.unexplained_
        score = (evidence.Z @ self.expert_weights_ + prediction / self.unexplained_) / precision
        return groups.scatter(np.ascontiguousarray(score))

    # --- parts ---------------------------------------------------------------------------------

    def _check_options(self, where: str) -> None:
        _validate.choice(where, "method", self.method, ("factor", "permutation"))
        if self.missing is not None:
            _validate.choice(where, "missing", self.missing, ("ignore", "last"))
        _validate.choice(where, "scores", self.scores, ("rank", "raw"))
        _validate.choice(where, "posterior", self.posterior, ("joint", "factorised"))
        _validate.choice(where, "divergence", self.divergence, MODELS)
        if self.feature_divergence is not None:
            _validate.choice(where, "feature_divergence", self.feature_divergence, MODELS)
        _validate.number(where, "min_noise", self.min_noise, low=0, high=1, open_low=True)
        _validate.number(where, "cap", self.cap, low=0, open_low=True)
        _validate.number(where, "ridge", self.ridge, low=0, open_low=True)
        _validate.number(where, "l1", self.l1, low=0)
        _validate.number(where, "max_iter", self.max_iter, low=1, integer=True)
        _validate.number(where, "tol", self.tol, low=0)
        if self.method == "factor" and self.l1:
            raise ValueError(
                f"{where}: l1 needs method='permutation', got l1={self.l1:g} with 'factor', which "
                "discards lists by their chance to be of use (keep_)"
            )
        if self.method == "permutation" and self.signed:
            raise ValueError(f"{where}: signed=True needs method='factor', got 'permutation'")

    def _features(self, where: str, X: Any, groups: Groups) -> tuple[Any, Any]:
        """Features of grouped items, centred per query and scaled; what that took is kept."""
        for name in ("map_", "regressor_", "coef_", "feature_means_"):
            if hasattr(self, name):
                delattr(self, name)
        if X is None:
            return None, None
        features, names = features_of(where, X)
        dense = _dense(_validate.matrix(where, features)).astype(np.float64)
        if len(dense) != groups.n_docs:
            raise ValueError(
                f"{where}: X must have one row per item of R, got {len(dense)} for {groups.n_docs}"
            )
        unknown = groups.gather(_without_features(where, dense))
        dense = groups.gather(dense)
        self.feature_means_ = dense[~unknown].mean(axis=0)
        dense = np.where(unknown[:, None], self.feature_means_, dense)
        if hasattr(self.regressor, "transform"):
            self.map_ = clone(self.regressor).fit(dense)
            dense = _dense(self.map_.transform(dense))
        self._raw = dense
        known = (~unknown)[:, None]
        count = query_means(known.astype(np.float64), groups.offsets)
        centre = query_means(np.where(known, dense, 0.0), groups.offsets) / np.maximum(count, 1e-9)
        centred = np.where(known, dense - centre, 0.0)
        deviation = np.sqrt((centred**2).mean(axis=0))
        # What differs by rounding alone is constant.
        size = np.sqrt((dense**2).mean(axis=0))
        self._scale = np.where(deviation > 1e-12 * size, deviation, np.inf)
        return np.ascontiguousarray(centred / self._scale), names

    def _coefficients(self, coef: Floats, target: Floats, X: Any) -> None:
        """Weights of the features as given, or the regressor fitted to all of the consensus."""
        if X is None:
            return
        if self.regressor is not None and not hasattr(self, "map_"):
            self.regressor_ = clone(self.regressor).fit(self._raw, target)
        else:
            self.coef_ = np.asarray(coef / self._scale)
        del self._raw, self._scale

    def _predictor(self, X: Any, evidence: Evidence) -> Callable[[Floats], Floats] | None:
        """Predictions of a regressor for items it has not seen."""
        if X is None or self.regressor is None or hasattr(self, "map_"):
            return None
        if not hasattr(self.regressor, "fit") or not hasattr(self.regressor, "predict"):
            raise TypeError(
                "RetargetedAggregation.fit: regressor must be a scikit-learn regressor or "
                f"transformer, got {self.regressor!r}"
            )
        raw, query = self._raw, evidence.query
        one = len(evidence.sizes) < _FOLDS
        fold = np.arange(len(query)) % _FOLDS if one else query % _FOLDS

        def predict(target: Floats) -> Floats:
            out = np.zeros(len(target))
            for k in range(_FOLDS):
                inside = fold == k
                if inside.any() and not inside.all():
                    model = clone(self.regressor).fit(raw[~inside], target[~inside])
                    out[inside] = model.predict(raw[inside])
            return np.asarray(out - query_means(out, evidence.offsets))

        return predict

    def _starts(
        self, where: str, R: Floats, groups: Groups, evidence: Evidence, X: Any, known: Any
    ) -> dict[str, Floats]:
        means = borda_means(evidence)
        if known is not None:
            return {"known": known.separated(known.start(evidence, means))}
        if self.start is None:
            starts = {"borda": means, "agreement": agreement_means(evidence, means)}
            if X is not None:
                target = means - query_means(means, evidence.offsets)
                A = X.T @ X + 1e-3 * len(X) * np.eye(X.shape[1])
                starts["features"] = X @ np.linalg.solve(A, X.T @ target)
            return starts
        if isinstance(self.start, str):
            from rankwise import aggregate

            known_names = aggregate.AGGREGATORS
            name = _validate.choice(where, "start", self.start, known_names)
            return {name: _start_of(where, known_names[name], R, groups)}
        if callable(self.start):
            return {"given": _start_of(where, self.start, R, groups)}
        values = _validate.vector(where, "start", self.start)
        if len(values) != len(R) or np.isnan(values).any():
            raise ValueError(
                f"{where}: start must hold one score per item, got {len(values)} for {len(R)}"
            )
        return {"given": groups.gather(values)}


_FOLDS = 5


def _start_of(where: str, function: Callable[..., Any], R: Floats, groups: Groups) -> Floats:
    query = np.repeat(np.arange(len(groups)), groups.sizes)
    out = _validate.vector(where, "start", function(R, qid=query))
    if len(out) != len(R) or np.isnan(out).any():
        raise ValueError(
            f"{where}: start must give one score per item, got {len(out)} for {len(R)}"
        )
    return out


def _columns(where: str, R: ArrayLike, missing: str | None) -> Floats:
    try:
        lists = np.asarray(R, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{where}: R must be numbers, one column per list") from None
    if lists.ndim != 2 or 0 in lists.shape:
        raise ValueError(
            f"{where}: R must be two-dimensional, (n_items, n_lists), got shape {lists.shape}"
        )
    if np.isinf(lists).any():
        row = int(np.flatnonzero(np.isinf(lists).any(axis=1))[0])
        raise ValueError(
            f"{where}: R must be finite or NaN (not in the list), got {lists[row]} at row {row}"
        )
    if missing is None and np.isnan(lists).any():
        raise ValueError(
            f"{where}: missing must say what NaN in R means, got None; 'ignore': nothing is known "
            "(ratings), 'last': ranked behind all that the list holds (cut result lists)"
        )
    return lists


def _groups(where: str, X: Any, qid: Any, n_items: int) -> Groups:
    own = None if X is None else qid_of(X)
    if own is not None and qid is not None:
        raise TypeError(f"{where}: the query ids must be given once, got qid and those of X")
    ids = own if own is not None else qid
    if ids is None:
        return Groups(np.array([0, n_items], np.int64), np.zeros(1, np.int64))
    groups = group_rows(ids, where=where)
    if groups.n_docs != n_items:
        raise ValueError(
            f"{where}: qid must have one entry per item, got {groups.n_docs} for {n_items} items"
        )
    return groups


def _without_features(where: str, X: Floats) -> NDArray[np.bool_]:
    """Rows whose features are all unknown; some of them alone are refused."""
    gaps = np.isnan(X)
    none = np.asarray(gaps.all(axis=1))
    part = np.flatnonzero(gaps.any(axis=1) & ~none)
    if len(part):
        raise ValueError(
            f"{where}: an item must have all of its features or none, got a row with "
            f"{int(gaps[part[0]].sum())} of {X.shape[1]} missing at row {part[0]}; fill them in first"
        )
    if none.all():
        raise ValueError(
            f"{where}: some item must have features, got NaN for all {len(X)}; pass X=None"
        )
    return none


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "nnz") else np.asarray(X)


def _retargeted(values: Floats, order_of: Floats, offsets: NDArray[np.int64]) -> Floats:
    """The nearest vector to the values in the order of other ones (ties by the values)."""
    order = ranked(order_of, offsets, values)
    out = np.empty(len(values))
    out[order] = -_core.isotonic(np.ascontiguousarray(-values[order]), offsets)
    return out
