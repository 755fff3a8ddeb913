r"""Coordinate ascent: linear scores that make a metric itself large, one weight at a time.

A metric depends on the order of the documents only, so as one weight moves it stays constant, jumps
where two documents change places, and is constant again: no gradient leads anywhere, but all jumps
along one line can be found and the best stretch between them taken, or many steps tried at once.
:class:`CoordinateAscent` does that for one feature after the other, for any metric, until a round
over the features brings nothing more.

>>> import rankwise as rw
>>> queries = rw.make_queries()
>>> train, test = queries.take(range(300)), queries.take(range(300, 1300))
>>> model = rw.CoordinateAscent("ndcg@5", metric="ndcg@5", random_state=0).fit(train)
>>> model.score(test) > 0.63
True

A good choice for few features (some dozens) and a metric that no loss stands for. With many features
or lists it is slow beside :class:`~rankwise.LinearRanker`, and it fits the training queries closely:
give it validation queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from rankwise import _core, _validate
from rankwise._estimator import Ranker
from rankwise._inputs import column_of
from rankwise._metric import SPECS
from rankwise._progress import Progress
from rankwise.boosting import _Target, _threads
from rankwise.data import Queries
from rankwise.metrics import Metric, parse_metric

Floats = NDArray[np.float64]


class CoordinateAscent(Ranker):
    r"""Linear scores ``s = X w``, with ``w`` changed one weight at a time to raise a metric.

    .. math:: \max_w \; \frac{1}{n} \sum_q M_q(Xw) - \alpha \, |w - w^0|, \qquad \sum_j |w_j| = 1

    where ``w0`` is the start, equal weights. A pass goes over the features in random order and moves
    each weight to the best value found along its line; a start ends with the first pass that gains
    at most ``tol``.

    Parameters
    ----------
    objective : str or Metric, optional
        What is made large: any metric. None is ``metric``.
    search : {"steps", "exact"}
        How one weight is searched. ``"steps"`` tries ``2 n_steps + 1`` values: 0, and steps in both
        directions that start at .05 of the weight (.001 for a weight of 0) and double.
        ``"exact"`` finds every place where the objective changes and takes the middle of the best
        stretch; it costs the more, the more documents are relevant.
    n_restarts : int
        Starts. The first is from equal weights; the others from weights drawn uniformly from -1 to 1.
    max_iter : int
        Most passes of one start.
    n_steps : int
        Steps in each direction of ``search="steps"``.
    alpha : float
        Strength of the penalty on the distance from equal weights, 0 or more.
    tol : float
        Smallest gain of a pass that another one follows.
    scale : {"std", None}
        ``"std"`` works on features divided by their standard deviation, so that "equal weights"
        means something for features of any size. Reported coefficients belong to the features as
        given.
    early_stopping_rounds : int, optional
        End a start when ``metric`` on ``eval_set`` has not risen for this many passes.
    metric : str or Metric
        Watched on ``eval_set`` and used by ``score``.
    random_state : int, RandomState or None
        Order of the features and starts; equal seeds give equal models.
    verbose : bool
        Show progress on standard error.
    n_jobs : int, optional
        Threads; None or -1 uses all. The model does not depend on it.

    Attributes
    ----------
    coef_ : float64 array of shape (n_features,)
        Weights of the features as given.
    objective_ : float
        Mean training ``objective`` of ``coef_``, without the penalty.
    train_scores_ : float64 array of shape (n_passes,)
        The same after each pass of the start that was kept.
    validation_scores_ : float64 array of shape (n_passes,) or None
        ``metric`` on ``eval_set`` after each of those passes.
    restart_scores_ : float64 array of shape (n_restarts,)
        What each start reached: the best of ``metric`` on ``eval_set`` where given, else the
        training objective less the penalty. The largest one is kept.
    n_iter_ : int
        Passes of the start that was kept, up to the weights kept.

    Raises
    ------
    ValueError
        If features are missing (NaN), no training query has a value of ``objective``, or a parameter
        is out of range.

    Notes
    -----
    ``"exact"``: a query of n documents, m of them with a label above 0, changes at no more than
    ``n m`` places, so a line costs O(n m log n) per query plus one sort of the places where the
    objective changes. ``"steps"`` costs ``2 n_steps + 1`` evaluations, O(n log n) each. Queries are
    dealt to threads; sums are in their order. A new weight is kept only if the objective, evaluated
    again at it, is larger.

    Sparse features are used column by column as dense ones.

    References
    ----------
    metzler2007

    Examples
    --------
    >>> import rankwise as rw
    >>> X, y = [[1.0, 3.0], [2.0, 1.0], [3.0, 0.0]], [2, 0, 0]
    >>> model = rw.CoordinateAscent(random_state=0).fit(X, y, qid=[1, 1, 1])
    >>> model.objective_
    1.0
    """

    coef_: Floats
    objective_: float
    train_scores_: Floats
    validation_scores_: Floats | None
    restart_scores_: Floats
    n_iter_: int

    def __init__(
        self,
        objective: str | Metric | None = None,
        *,
        search: str = "steps",
        n_restarts: int = 5,
        max_iter: int = 25,
        n_steps: int = 25,
        alpha: float = 0.0,
        tol: float = 1e-3,
        scale: str | None = "std",
        early_stopping_rounds: int | None = None,
        metric: str | Metric = "ndcg@10",
        random_state: Any = None,
        verbose: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.objective = objective
        self.search = search
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.n_steps = n_steps
        self.alpha = alpha
        self.tol = tol
        self.scale = scale
        self.early_stopping_rounds = early_stopping_rounds
        self.metric = metric
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def _fit(self, train: Queries, valid: Queries | None) -> None:
        where = "CoordinateAscent.fit"

        def whole(name: str) -> int:
            return int(_validate.number(where, name, getattr(self, name), low=1, integer=True))

        restarts, passes, n_steps = whole("n_restarts"), whole("max_iter"), whole("n_steps")
        patience = _validate.patience(where, self.early_stopping_rounds, valid)
        tol = _validate.number(where, "tol", self.tol, low=0)
        alpha = _validate.number(where, "alpha", self.alpha, low=0)
        _validate.choice(where, "search", self.search, _SEARCHES)
        if self.scale is not None:
            _validate.choice(where, "scale", self.scale, ["std"])
        objective = parse_metric(self.metric if self.objective is None else self.objective)
        lines = _Lines(where, train, objective, self.scale, _threads(where, self.n_jobs))
        shown = None if valid is None else _Shown(valid, parse_metric(self.metric), lines.inverse)
        rng = check_random_state(self.random_state)
        search = _SEARCHES[self.search]
        ended: list[tuple[float, _Path]] = []
        with Progress(quiet=not self.verbose) as progress:
            for start in range(restarts):
                path = _Path()
                for pass_ in _climb(lines, start, rng, search, n_steps, alpha, tol, passes):
                    path.add(pass_, None if shown is None else shown(pass_.w))
                    done = start * passes + len(path.passes)
                    text = f"coordinate ascent, {objective} {pass_.value:.4f}"
                    progress(done, restarts * passes, text)
                    if patience is not None and path.age() >= patience:
                        break
                ended.append((path.reached(), path))
        reached = np.array([value for value, _ in ended])
        self._keep(ended[int(np.argmax(reached))][1], lines)
        self.restart_scores_ = reached

    def _keep(self, path: _Path, lines: _Lines) -> None:
        kept = path.passes[path.best]
        self.n_iter_ = path.best + 1
        self.coef_ = kept.w * lines.inverse
        self.objective_ = kept.value
        self.train_scores_ = np.array([p.value for p in path.passes])
        self.validation_scores_ = np.array(path.shown) if path.shown else None

    def _score(self, X: Any) -> Floats:
        from rankwise._linear_problem import features_of

        return np.asarray(features_of(X).scores(self.coef_))


class _Pass(NamedTuple):
    """Weights after one pass, the objective, and the objective less the penalty."""

    w: Floats
    value: float
    penalised: float


class _Path:
    """The passes of one start and which of them to keep: the best shown, or the last."""

    def __init__(self) -> None:
        self.passes: list[_Pass] = []
        self.shown: list[float] = []

    def add(self, pass_: _Pass, shown: float | None) -> None:
        self.passes.append(pass_)
        if shown is not None:
            self.shown.append(shown)

    @property
    def best(self) -> int:
        return int(np.nanargmax(self.shown)) if self.shown else len(self.passes) - 1

    def age(self) -> int:
        return len(self.passes) - 1 - self.best

    def reached(self) -> float:
        return self.shown[self.best] if self.shown else self.passes[-1].penalised


class _Shown:
    """The watched metric on the validation queries."""

    def __init__(self, valid: Queries, metric: Metric, inverse: Floats) -> None:
        from rankwise._linear_problem import features_of

        self.features, self.metric, self.inverse = features_of(valid.X), metric, inverse
        self.y, self.groups = valid.y, valid.groups

    def __call__(self, w: Floats) -> float:
        scores = self.features.scores(w * self.inverse)
        return self.metric.mean(self.y, scores, qid=self.groups)


class _Lines:
    """The objective on the training queries along each feature."""

    def __init__(
        self, where: str, train: Queries, metric: Metric, scale: str | None, threads: int
    ) -> None:
        from rankwise._linear_problem import _moments, features_of

        self.target = _Target(where, metric, train)
        self.d, self.offsets, self.threads = train.n_features, train.offsets, threads
        features = features_of(train.X)
        varies = np.asarray(features.varying_within(train.offsets))
        deviation = (
            _moments(features, train.n_docs, self.d)[1] if scale == "std" else np.ones(self.d)
        )
        self.inverse = np.zeros(self.d)
        np.divide(1.0, deviation, out=self.inverse, where=varies & (deviation > 0))
        # Features that no order depends on keep the weight 0.
        self.useful = np.flatnonzero(self.inverse)
        if not len(self.useful):
            raise ValueError(
                f"{where}: some feature must differ inside some query, got {self.d} features that "
                "are constant in each; there is no order to learn"
            )
        self.columns = {int(j): column_of(train.X, int(j)) * self.inverse[j] for j in self.useful}
        options = metric.options
        self.ties = "average" if options["ties"] == "together" else options["ties"]
        spec = SPECS[metric.name]
        longest = int(train.sizes.max())
        self.asked = (
            spec.request(metric.name, metric.k, options, longest),
            self.ties,
            spec.needs_all,
            spec.pooled,
            train.y,
        )

    def scores(self, w: Floats) -> Floats:
        total = np.zeros(len(self.target.y))
        for j, column in self.columns.items():
            if w[j] != 0:
                total += w[j] * column
        return total

    def value(self, scores: Floats) -> float:
        return self.target.mean(self.target.values(scores))

    def at(self, scores: Floats, j: int, steps: Floats) -> Floats:
        """The objective at each step along feature ``j``."""
        values = _core.metric_along(
            *self.asked, scores, self.columns[j], self.offsets, steps, self.threads
        )
        weight = self.target.weight
        used = weight > 0
        return np.asarray((values[:, used] * weight[used]).sum(axis=1) / self.target.total)

    def stretches(self, scores: Floats, j: int) -> tuple[Floats, Floats, Floats]:
        """Every stretch of the line on which the objective is constant: where, width, value."""
        weight = self.target.weight
        at, change, first = _core.metric_breaks(
            *self.asked, scores, self.columns[j], self.offsets, weight, self.threads
        )
        left = float((np.where(weight > 0, first, 0.0) * weight).sum())
        values = np.concatenate([[left], left + np.cumsum(change)]) / self.target.total
        if not len(at):
            return np.zeros(1), np.full(1, np.inf), values
        reach = 2 * max(abs(at[0]), abs(at[-1])) + 1
        ends = np.concatenate([[-reach], at, [reach]])
        inside = ends[:-1] * (1 - _MIDDLE) + ends[1:] * _MIDDLE
        return inside, np.diff(ends), values


def _climb(
    lines: _Lines,
    start: int,
    rng: Any,
    search: Any,
    n_steps: int,
    alpha: float,
    tol: float,
    passes: int,
) -> Iterator[_Pass]:
    """One start: the weights after each pass."""
    equal = np.zeros(lines.d)
    equal[lines.useful] = 1 / len(lines.useful)
    w = equal.copy()
    if start > 0:
        w[lines.useful] = rng.uniform(-1, 1, len(lines.useful))
        w /= np.abs(w).sum()

    def penalty(w: Floats) -> float:
        return alpha * float(np.sqrt(((w / np.abs(w).sum() - equal) ** 2).sum())) if alpha else 0.0

    scores = lines.scores(w)
    value = lines.value(scores)
    best = value - penalty(w)
    for _ in range(passes):
        before = best
        for j in rng.permutation(lines.useful):
            step = search(lines, scores, w, int(j), best, penalty, n_steps)
            if step == 0 or not np.isfinite(step):
                continue
            trial = w.copy()
            trial[j] += step
            size = np.abs(trial).sum()
            if size == 0:
                continue
            trial /= size
            moved = lines.scores(trial)
            now = lines.value(moved)
            if now - penalty(trial) > best + _ROUNDING:
                w, scores, value, best = trial, moved, now, now - penalty(trial)
        yield _Pass(w, value, best)
        if best - before <= tol:
            return


# Just off the middle of a stretch: at the middle itself, documents of one label may meet when
# features are round numbers, and their tie is worth something else than either order.
_MIDDLE = float(np.sqrt(0.24))

# Gains below are rounding of the sums.
_ROUNDING = 1e-12


def _by_steps(
    lines: _Lines, scores: Floats, w: Floats, j: int, best: float, penalty: Any, n_steps: int
) -> float:
    """The best of: no weight, and doubling steps to both sides."""
    base = 0.05 * abs(w[j]) if abs(w[j]) > 0.002 else 0.001
    ahead = base * (np.exp2(np.arange(1, n_steps + 1)) - 1)
    steps = np.concatenate([[-w[j]], ahead, -ahead])
    values = lines.at(scores, j, steps) - _penalties(w, j, steps, penalty)
    return _first_above(steps, values, best)


def _exactly(
    lines: _Lines, scores: Floats, w: Floats, j: int, best: float, penalty: Any, n_steps: int
) -> float:
    """The middle of the widest stretch with the largest value."""
    middle, width, values = lines.stretches(scores, j)
    # Stretches as narrow as rounding are points where several documents meet.
    wide = width > 1e-9 * (1 + np.abs(middle))
    middle, width, values = middle[wide], width[wide], values[wide]
    values = values - _penalties(w, j, middle, penalty)
    top = np.flatnonzero(values >= values.max() - _ROUNDING)
    pick = top[np.argmax(width[top])]
    return float(middle[pick]) if values[pick] > best + _ROUNDING else 0.0


def _penalties(w: Floats, j: int, steps: Floats, penalty: Any) -> Floats:
    if penalty(w) == 0 and penalty(-w) == 0:
        return np.zeros(len(steps))
    out = np.zeros(len(steps))
    for i, step in enumerate(steps):
        moved = w.copy()
        moved[j] += step
        out[i] = penalty(moved) if np.abs(moved).sum() > 0 else np.inf
    return out


def _first_above(steps: Floats, values: Floats, best: float) -> float:
    pick = int(np.argmax(values >= values.max() - _ROUNDING))
    return float(steps[pick]) if values[pick] > best + _ROUNDING else 0.0


_SEARCHES = {"exact": _exactly, "steps": _by_steps}
