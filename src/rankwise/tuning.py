"""Choose hyperparameters on validation queries: grids, random search, TPE.

:func:`tune` fits a ranker with one set of parameters after another and keeps the best by a metric on
queries it was not fitted to: validation queries, or folds of whole queries. What it returns, a
:class:`Tuned`, holds the best parameters with the interval of their value, every trial, and the
ranker fitted with them. Test queries play no part; measure the ranker on them afterwards, as the
best of many trials always looks a little better on the queries it was chosen on.

>>> import rankwise as rw
>>> train, valid = rw.make_queries(n_queries=60).split([0.5, 0.5])
>>> tuned = rw.tune("ranknet", train, valid, method="random", n_trials=5)
>>> len(tuned.trials), sorted(tuned.params)
(5, ['alpha'])
>>> tuned.model.predict(valid).shape
(900,)

Which method? ``"grid"`` tries every combination of a few values and is repeatable by reading it.
``"random"`` draws from ranges: of several parameters few matter, and it tries a new value of each
in every trial. ``"tpe"`` (Optuna's, the extra ``tune``) draws where earlier trials went well and
needs fewer trials when one of them is costly.

Trial ``i`` depends on ``random_state``, ``i`` and the results of the trials before it, and on
nothing else. So a search that was stopped and resumed from its ``study`` file ends with the same
trials, to the last bit, as one that ran through.
"""

from __future__ import annotations

import copy
import itertools
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise import _validate
from rankwise._study import Study, described
from rankwise._text import words
from rankwise.data import Queries, query_of
from rankwise.metrics import Metric, parse_metric
from rankwise.recipes import Given, Request, parse_ranker
from rankwise.space import Range, checked_space

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankwise._estimator import Ranker
    from rankwise.stats import Interval

Floats = NDArray[np.float64]
Part = tuple[Queries, Queries]
Progress = Callable[[int, int, str], None]

N_TRIALS = 50


@dataclass(frozen=True, eq=False)
class Trial:
    """One set of parameters and what came of it.

    Attributes
    ----------
    number : int
        From 0.
    params : dict
    value : float
        The metric's mean over all validation queries; NaN if the fit failed.
    seconds : float
        Time of its fits.
    per_query : float64 array of shape (n_valid_queries,)
        The metric on each validation query, fold after fold; empty if the fit failed.
    stopped : tuple of dict
        For each fold, the parameters that reproduce an early stop without validation queries.
    error : str
        Why the fit failed, in the ranker's words; empty otherwise.
    """

    number: int
    params: dict[str, Any]
    value: float
    seconds: float
    per_query: Floats = field(repr=False)
    stopped: tuple[dict[str, Any], ...] = ()
    error: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Tuned:
    """What a search found. Made by :func:`tune`; ``print`` shows it in a few lines.

    Attributes
    ----------
    ranker : str
        What was tuned, such as ``"lambdamart(learning_rate=0.1)"``.
    chosen : str
        The same with the best parameters fixed; :func:`rankwise.make_ranker` reads it.
    metric : Metric
    method : str
    space : dict
        What was searched.
    trials : tuple of Trial
        In order of their numbers.
    best : Trial
        The first of those with the largest value.
    n_queries, n_folds : int
        Validation queries, and the folds they came in (1: given apart).
    model : Ranker or None
        Fitted with the best parameters to the training queries; None for ``refit=False`` and for
        a list of folds.
    """

    ranker: str
    chosen: str
    metric: Metric
    method: str
    space: dict[str, Any]
    trials: tuple[Trial, ...]
    best: Trial
    n_queries: int
    n_folds: int
    model: Ranker | None

    @property
    def params(self) -> dict[str, Any]:
        """The best parameters."""
        return self.best.params

    @property
    def value(self) -> float:
        """The metric's mean over the validation queries with the best parameters."""
        return self.best.value

    @cached_property
    def interval(self) -> Interval | None:
        """The bootstrap interval of the best value, had the parameters been chosen elsewhere.

        None where the metric is no plain mean of two queries or more.
        """
        from rankwise.stats import bootstrap_interval

        values = self.best.per_query
        plain = self.metric.average(values).value if len(values) else float("nan")
        if np.count_nonzero(~np.isnan(values)) < 2 or not np.isclose(plain, np.nanmean(values)):
            return None
        interval = bootstrap_interval(values)
        return interval if np.isclose(interval.mean, self.value, rtol=1e-9) else None

    @property
    def seconds(self) -> float:
        """Time of all fits of all trials."""
        return sum(t.seconds for t in self.trials)

    def plot(self, *, path: str | os.PathLike[str] | None = None) -> Figure:
        """A picture of the search; see :func:`rankwise.plot_search`."""
        from rankwise.plots import plot_search

        return plot_search(self, path=path)

    def to_optuna(self) -> Any:
        """The trials as an Optuna study in memory, for its own analyses and pictures."""
        return _optuna_study(self.space, self.trials)

    def __repr__(self) -> str:
        return f"Tuned({self.ranker!r}, {len(self.trials)} trials, {self.metric} {self.value:.4f})"

    def __str__(self) -> str:
        failed = sum(bool(t.error) for t in self.trials)
        folds = f" in {self.n_folds} folds" if self.n_folds > 1 else ""
        lines = [
            f"{self.ranker}: {len(self.trials)} trials ({self.method}), {self.seconds:.1f} s of fits, "
            f"{self.metric} on {self.n_queries} validation queries{folds}"
        ]
        if failed:
            lines.append(f"  {failed} trials failed, the first one: {self._first_error()}")
        interval = self.interval
        around = "" if interval is None else f" [{interval.low:.4f}, {interval.high:.4f}]"
        lines.append(f"  best      {self.value:.4f}{around}  trial {self.best.number}")
        if self.method != "grid" and self.trials[0].number != self.best.number:
            lines.append(
                f"  defaults  {self.trials[0].value:.4f}  trial 0, as near as the space allows"
            )
        lines.append(f"  {words(self.params)}" if self.params else "  nothing to choose")
        return "\n".join(lines)

    def _first_error(self) -> str:
        return next(t.error for t in self.trials if t.error)


def tune(
    ranker: str | Request | Ranker,
    train: Queries | Sequence[Part],
    valid: Queries | None = None,
    *,
    cv: Any = None,
    space: dict[str, Any] | None = None,
    metric: Metric | str = "ndcg@10",
    method: str = "tpe",
    n_trials: int | None = None,
    timeout: float | None = None,
    random_state: int = 0,
    study: str | os.PathLike[str] | None = None,
    refit: bool = True,
    progress: Progress | None = None,
) -> Tuned:
    """Search for the hyperparameters that are best on validation queries.

    Parameters
    ----------
    ranker : str or Ranker
        Name of a recipe with the parameters to fix, such as ``"lambdamart(learning_rate=0.1)"``, or
        a ranker, whose ``space`` must then be given.
    train : Queries, or list of (train, valid)
        A list of pairs, such as those of a published collection, is searched for one set of
        parameters that is best over all folds.
    valid : Queries, optional
        What the trials are measured on, and early stopping goes by.
    cv : int or splitter, optional
        Without ``valid``: folds of whole queries of ``train`` (5 unless given), or a splitter such as
        :class:`~rankwise.QueryKFold`. A trial's value is the mean over all queries, each scored by
        the ranker that was not fitted to it.
    space : dict of str to Range or list, optional
        What to search: a :class:`~rankwise.Range`, a list of values, or for ``"random"`` a
        distribution of SciPy. The recipe's own unless given; what the recipe does not vary (such
        as the rounds of boosting) stays as it says. ``"grid"`` takes lists only.
    metric : Metric or str
        Larger is better.
    method : {"tpe", "random", "grid"}
        ``"tpe"`` needs Optuna: ``pip install "rankwise[tune]"``.
    n_trials : int, optional
        Trials in all, those of an earlier run of the ``study`` included; 50 unless given. A grid has
        as many as it has combinations.
    timeout : float, optional
        Seconds after which no further trial starts.
    random_state : int
        Seed of the search, and of rankers that take one and were not given their own.
    study : path, optional
        SQLite file that keeps every finished trial. A search that was stopped goes on from it; more
        trials can be added later. It refuses other data and other searches.
    refit : bool
        Whether to return the ranker fitted with the best parameters: to ``train``, with ``valid`` to
        stop by; after folds to all of ``train``, stopping where the folds stopped on average. For a
        list of pairs there is none.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before each trial.

    Returns
    -------
    Tuned

    Raises
    ------
    ValueError
        For an unknown parameter or method, an empty space, a file that holds another search, or if
        the first three trials fail.
    ImportError
        For ``method="tpe"`` without Optuna.

    Notes
    -----
    Trial 0 of ``"random"`` and ``"tpe"`` is the ranker with its defaults, or the nearest values that
    the space holds. A combination tried before is not tried again: the search ends early when a space of lists
    is used up. Trials share binned features and kernel maps where the ranker offers it; a grid
    without a ``study`` also starts the solver of each fit of a linear ranker where the fit before it ended.

    Trials are not stopped half-way: rankers with early stopping end themselves, and the others
    are fitted at once.

    References
    ----------
    bergstra2011, bergstra2012, akiba2019

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_queries(n_queries=60)
    >>> space = {"C": rw.Range(1e-4, 1, log=True)}
    >>> tuned = rw.tune(rw.RankSVM(), queries, cv=3, space=space, method="random", n_trials=4)
    >>> tuned.n_queries, len(tuned.trials), 1e-4 <= tuned.params["C"] <= 1
    (60, 4, True)
    """
    where = "tune"
    request = _requested(ranker)
    _validate.choice(where, "method", method, METHODS)
    seed = int(_validate.number(where, "random_state", random_state, low=0, integer=True))
    if timeout is not None:
        _validate.number(where, "timeout", timeout, low=0)
    by = parse_metric(metric)
    searched = _space(where, request, space, method)
    total = _count(where, method, searched, n_trials)
    parts = _parts(where, train, valid, cv)
    fits = _Fits(request, parts, by, seed)
    done: list[Trial] = []
    record: Study | None = None
    if study is not None:
        identity = described(request.text, searched, by, method, seed, parts)
        record = Study(study, identity)
        done = [_restored(Trial(*row), searched) for row in record.trials()]
    # A warm start depends on the fit before it, which a resumed search does not have.
    fits.warm = method == "grid" and record is None
    try:
        trials = _search(
            fits, METHODS[method](request, searched, seed), done, total, timeout, record, progress,
            searched,
        )  # fmt: skip
    finally:
        if record is not None:
            record.close()
    if progress is not None:
        progress(total, total, "done")
    best = best_of(trials)
    if best.error:
        raise ValueError(
            f"{where}: no trial could be fitted; the first one says: {trials[0].error}"
        )
    model = fits.refit(best, train) if refit and isinstance(train, Queries) else None
    return Tuned(
        request.text,
        request.chosen(best.params),
        by,
        method,
        searched,
        tuple(trials),
        best,
        sum(part.n_queries for _, part in parts),
        len(parts),
        model,
    )


def best_of(trials: Sequence[Trial]) -> Trial:
    """The first trial with the largest value; one without a value only if none has one."""
    return max(trials, key=lambda t: (not t.error, -np.inf if np.isnan(t.value) else t.value))


# --- the fits --------------------------------------------------------------------------------


class _Fits:
    """Fits the trials of one search: holds the data, what the fits share, and the best rankers."""

    def __init__(
        self, request: Request | Given, parts: Sequence[Part], by: Metric, seed: int
    ) -> None:
        self.latest: list[Ranker] = []
        self.request, self.parts, self.by, self.seed = request, parts, by, seed
        self.warm = False
        self.shared: list[dict[Any, Any]] = [{} for _ in parts]
        self.previous: list[Ranker | None] = [None] * len(parts)
        self.weights = _query_weights(parts)
        self.kept: tuple[int, list[Ranker]] = (-1, [])

    def trial(self, number: int, params: dict[str, Any]) -> Trial:
        """Fit and measure; what the ranker refuses is a failed trial."""
        seconds, models, values = 0.0, [], []
        for i, (train, valid) in enumerate(self.parts):
            start = time.perf_counter()
            try:
                # Parameters may be refused when they are set, or when they are used.
                model = self._make(params, self.previous[i])
                model.fit_in_search(train, valid, self.shared[i])
                seconds += time.perf_counter() - start
                y_score = model.predict(valid)
            except (ValueError, ArithmeticError) as error:
                seconds += time.perf_counter() - start
                return Trial(number, params, np.nan, seconds, np.zeros(0), (), str(error))
            self.previous[i] = model
            models.append(model)
            values.append(self.by.per_query(valid.y, y_score, qid=valid.groups))
        per_query = np.concatenate(values)
        value = self.by.average(per_query, self.weights).value
        stopped = tuple(m._stopped_at() for m in models)
        self.latest = models
        return Trial(number, params, value, seconds, per_query, stopped)

    def keep(self, trial: Trial) -> None:
        """Remember the rankers of the trial just fitted."""
        self.kept = (trial.number, self.latest)

    def _make(self, params: dict[str, Any], previous: Ranker | None) -> Ranker:
        model = self.request.make(params, metric=self.by, random_state=self.seed)
        if not self.warm or previous is None or not model._warm_path:
            return model
        settings = model.get_params(deep=False)
        started = copy.deepcopy(previous)
        started.set_params(**{**settings, "warm_start": True})
        return started

    def refit(self, best: Trial, train: Queries) -> Ranker:
        """The ranker of the best trial, fitted to the training queries."""
        if len(self.parts) == 1 and self.parts[0][0] is train:
            number, models = self.kept
            if number != best.number:
                model = self.request.make(best.params, metric=self.by, random_state=self.seed)
                return model.fit_in_search(*self.parts[0], self.shared[0])
            return self._cooled(models[0], best)
        params = {**best.params, **_on_average(best.stopped)}
        model = self.request.make(metric=self.by, random_state=self.seed)
        model.set_params(**params)
        return model.fit(train)

    def _cooled(self, model: Ranker, best: Trial) -> Ranker:
        """The ranker with ``warm_start`` as the user had it."""
        if model._warm_path:
            model.set_params(warm_start=self.request.make(best.params).get_params()["warm_start"])
        return model


def _on_average(stopped: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Where the folds stopped: the mean of whole numbers, what they agree on otherwise."""
    result: dict[str, Any] = {}
    for name in stopped[0] if stopped else ():
        values = [s[name] for s in stopped]
        counts = all(isinstance(v, int) and not isinstance(v, bool) for v in values)
        result[name] = max(1, round(sum(values) / len(values))) if counts else values[0]
    return result


def _query_weights(parts: Sequence[Part]) -> Floats | None:
    """The mean document weight of every validation query, or None where none has weights."""
    from rankwise._estimator import query_weights

    if all(valid.weight is None for _, valid in parts):
        return None
    columns = [query_weights(valid.groups, valid.weight) for _, valid in parts]
    return np.concatenate(
        [
            np.ones(valid.n_queries) if column is None else column
            for column, (_, valid) in zip(columns, parts, strict=True)
        ]
    )


# --- the search ------------------------------------------------------------------------------

# Parameters of trial `number` given the trials before it; None when nothing is left to try.
Proposer = Callable[[int, Sequence[Trial]], dict[str, Any] | None]

_ATTEMPTS = 50  # draws before a search counts as used up
_PATIENCE = 3  # trials that fail before any succeeds


def _search(
    fits: _Fits,
    propose: Proposer,
    done: list[Trial],
    total: int,
    timeout: float | None,
    record: Study | None,
    progress: Progress | None,
    space: dict[str, Any],
) -> list[Trial]:
    """Trials up to ``total``, after those already done."""
    start = time.perf_counter()
    trials = list(done[:total])
    for number in range(len(trials), total):
        late = timeout is not None and time.perf_counter() - start >= timeout
        if late and len(trials) > 0:
            break
        params = propose(number, trials)
        if params is None:
            break
        if progress is not None:
            progress(number, total, f"{fits.request.text} {words(params)}".strip())
        trial = fits.trial(number, params)
        if not trial.error and (not trials or best_of([*trials, trial]) is trial):
            fits.keep(trial)
        trials.append(trial)
        if record is not None:
            record.add(
                number, _labelled(params, space), trial.value, trial.seconds,
                trial.per_query, trial.stopped, trial.error,
            )  # fmt: skip
        if len(trials) >= min(_PATIENCE, total) and all(t.error for t in trials):
            raise ValueError(trials[0].error)
    return trials


def _grid(request: Request | Given, space: dict[str, Any], seed: int) -> Proposer:
    combinations = [dict(zip(space, v, strict=True)) for v in itertools.product(*space.values())]
    return lambda number, _: combinations[number] if number < len(combinations) else None


def _random(request: Request | Given, space: dict[str, Any], seed: int) -> Proposer:
    from sklearn.model_selection import ParameterSampler

    def draw(seed: int, _: Sequence[Trial]) -> dict[str, Any]:
        drawn = next(iter(ParameterSampler(space, 1, random_state=seed)))
        return {name: _plain(drawn[name]) for name in space}

    return _drawn(request, space, seed, draw)


def _tpe(request: Request | Given, space: dict[str, Any], seed: int) -> Proposer:
    optuna = _optuna()
    distributions = _distributions(space)

    def draw(seed: int, trials: Sequence[Trial]) -> dict[str, Any]:
        study = _optuna_study(space, trials)
        study.sampler = optuna.samplers.TPESampler(seed=seed)
        return _unlabelled(study.ask(distributions).params, space)

    return _drawn(request, space, seed, draw)


METHODS: dict[str, Callable[[Request | Given, dict[str, Any], int], Proposer]] = {
    "tpe": _tpe,
    "random": _random,
    "grid": _grid,
}


def _drawn(
    request: Request | Given,
    space: dict[str, Any],
    seed: int,
    draw: Callable[[int, Sequence[Trial]], dict[str, Any]],
) -> Proposer:
    """The defaults first, then draws that were not tried before, each from a seed of its own."""
    first = _defaults(request, space)

    def propose(number: int, trials: Sequence[Trial]) -> dict[str, Any] | None:
        if number == 0:
            return first
        tried = {repr(t.params) for t in trials}
        for attempt in range(_ATTEMPTS):
            own = np.random.SeedSequence([seed, number, attempt]).generate_state(1)[0]
            params = draw(int(own), trials)
            if repr(params) not in tried:
                return params
        return None

    return propose


def _defaults(request: Request | Given, space: dict[str, Any]) -> dict[str, Any]:
    """The ranker's own values of what is searched, or the nearest that the space holds."""
    known = request.make().get_params()
    return {name: _nearest(values, known[name]) for name, values in space.items()}


def _nearest(values: Any, value: Any) -> Any:
    if isinstance(values, tuple):
        return value if value in values else values[0]
    if isinstance(values, Range):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        inside = min(max(value, values.low), values.high) if number else values.low
        return int(inside) if values.integer else float(inside)
    return value


def _plain(value: Any) -> Any:
    """A NumPy number as Python's, for texts and files."""
    return value.item() if isinstance(value, np.generic) else value


# --- parameters as files and Optuna take them ------------------------------------------------


def _labels(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Listed values in a form that files and Optuna take: themselves, or else their texts."""
    plain = all(v is None or isinstance(v, bool | int | float | str) for v in values)
    return values if plain else tuple(str(v) for v in values)


def _labelled(params: dict[str, Any], space: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _labels(values)[values.index(params[name])]
        if isinstance(values, tuple)
        else params[name]
        for name, values in space.items()
    }


def _unlabelled(labelled: dict[str, Any], space: dict[str, Any]) -> dict[str, Any]:
    return {
        name: values[_labels(values).index(labelled[name])]
        if isinstance(values, tuple)
        else labelled[name]
        for name, values in space.items()
    }


def _restored(trial: Trial, space: dict[str, Any]) -> Trial:
    return replace(trial, params=_unlabelled(trial.params, space))


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ImportError(
            "tune: method 'tpe' needs Optuna; pip install \"rankwise[tune]\", or choose "
            "method 'random' or 'grid'"
        ) from None
    return optuna


def _distributions(space: dict[str, Any]) -> dict[str, Any]:
    d = _optuna().distributions
    result = {}
    for name, values in space.items():
        if isinstance(values, Range):
            kind = d.IntDistribution if values.integer else d.FloatDistribution
            result[name] = kind(values.low, values.high, log=values.log)
        else:
            result[name] = d.CategoricalDistribution(_labels(values))
    return result


def _optuna_study(space: dict[str, Any], trials: Sequence[Trial]) -> Any:
    """Optuna's study of the trials, in memory."""
    optuna = _optuna()
    distributions = _distributions(space)
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(direction="maximize")
    finally:
        optuna.logging.set_verbosity(verbosity)
    states = optuna.trial.TrialState
    for t in trials:
        failed = bool(t.error) or np.isnan(t.value)
        study.add_trial(
            optuna.trial.create_trial(
                params=_labelled(t.params, space),
                distributions=distributions,
                value=None if failed else t.value,
                state=states.FAIL if failed else states.COMPLETE,
            )
        )
    return study


# --- what the user gives ---------------------------------------------------------------------


def _requested(ranker: Any) -> Request | Given:
    if isinstance(ranker, Request):
        return ranker
    if isinstance(ranker, str):
        return parse_ranker(ranker)
    from rankwise._estimator import Ranker

    if not isinstance(ranker, Ranker):
        raise TypeError(
            f"tune: ranker must be the name of a recipe or a Ranker, got {type(ranker).__name__}; "
            "for pipelines use scikit-learn's searches (docs/scikit-learn.md)"
        )
    return Given(ranker)


def _space(
    where: str, request: Request | Given, space: dict[str, Any] | None, method: str
) -> dict[str, Any]:
    """What is searched, in order; parameters with a single value come along as they are."""
    if space is None:
        if isinstance(request, Given):
            raise ValueError(
                f"{where}: space must be given for a ranker of your own, got None; "
                'for example space={"alpha": rankwise.Range(1e-2, 1e4, log=True)}'
            )
        return dict(request.recipe.grid_of(request.fixed) if method == "grid" else request.space())
    given = checked_space(where, space, request.make().get_params())
    fixed = getattr(request, "fixed", {})
    for name, values in given.items():
        if name in fixed:
            raise ValueError(
                f"{where}: {name} must be fixed or searched, got both; leave it out of "
                f"{request.text} or of space"
            )
        if method == "grid" and not isinstance(values, tuple):
            raise ValueError(
                f"{where}: the space of a grid must be lists of values, got {values} for {name}; "
                "Range.values(n) makes a list"
            )
        if method == "tpe" and not isinstance(values, Range | tuple):
            raise TypeError(
                f"{where}: the space of 'tpe' must be lists and Ranges, got {type(values).__name__} "
                f"for {name}; use method='random' for other distributions"
            )
    constant = {
        name: values
        for name, values in request.space().items()
        if isinstance(values, tuple) and len(values) == 1 and name not in given
    }
    return {**constant, **given}


def _count(where: str, method: str, space: dict[str, Any], n_trials: int | None) -> int:
    if method == "grid":
        size = int(np.prod([len(v) for v in space.values()], dtype=object))
        if n_trials is not None:
            raise ValueError(
                f"{where}: n_trials must be left out for a grid, which has {size} combinations, "
                f"got {n_trials}; use method='random' to try fewer"
            )
        return size
    if n_trials is None:
        return N_TRIALS
    return int(_validate.number(where, "n_trials", n_trials, low=1, integer=True))


def _parts(where: str, train: Any, valid: Any, cv: Any) -> list[Part]:
    """What each trial is fitted to and measured on."""
    if isinstance(train, list | tuple) and len(train):
        return _pairs(where, train, valid, cv)
    for name, queries in (("train", train), ("valid", valid)):
        if not isinstance(queries, Queries) and not (name == "valid" and queries is None):
            raise TypeError(
                f"{where}: {name} must be a Queries, got {type(queries).__name__}; "
                "make one with Queries.from_arrays(X, y, qid)"
            )
    if valid is not None:
        if cv is not None:
            raise ValueError(f"{where}: valid and cv must not be given together; leave one out")
        return [(train, valid)]
    return _split(where, train, cv)


def _pairs(where: str, folds: Sequence[Any], valid: Any, cv: Any) -> list[Part]:
    """The folds that the user gives."""
    if valid is not None or cv is not None:
        raise ValueError(f"{where}: a list of folds must come alone, got valid or cv as well")
    for fold in folds:
        pair = isinstance(fold, list | tuple) and len(fold) == 2
        if not pair or not all(isinstance(part, Queries) for part in fold):
            raise TypeError(
                f"{where}: folds must be pairs (train, valid) of Queries, got {type(fold).__name__}"
            )
        shared = np.intersect1d(fold[0].ids, fold[1].ids)
        if len(shared):
            raise ValueError(
                f"{where}: train and valid of a fold must hold different queries, got "
                f"{len(shared)} in both, such as {shared[0]}"
            )
    return [(fold[0], fold[1]) for fold in folds]


def _split(where: str, train: Queries, cv: Any) -> list[Part]:
    """Folds of whole queries."""
    from rankwise.prepare import QueryKFold

    splitter = 5 if cv is None else cv
    if not hasattr(splitter, "split"):
        splitter = QueryKFold(int(_validate.number(where, "cv", splitter, low=2, integer=True)))
    query = query_of(train.offsets)
    parts = []
    for rows, tested in splitter.split(train.X, train.y, train.qid):
        inside, outside = np.unique(query[rows]), np.unique(query[tested])
        if np.isin(outside, inside).any() or train.sizes[outside].sum() != len(tested):
            raise ValueError(
                f"{where}: cv must not cut queries apart, got {type(splitter).__name__}, which does; "
                "use rankwise.QueryKFold"
            )
        parts.append((train.take(inside), train.take(outside)))
    return parts
