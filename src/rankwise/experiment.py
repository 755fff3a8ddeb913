"""Honest comparison of rankers: chosen on validation queries, measured once on test queries.

A :class:`Fold` holds training, validation and test queries. :func:`run_experiment` fits every ranker on
every fold; where a recipe has hyperparameters that the user did not fix, it fits each combination
of the stated grid on the training queries (or as many as a random or model-based search may draw)
and keeps the one whose ``select`` metric is best on the validation queries. Test queries are scored
once, by the ranker that was kept: the search is nested in the comparison.

>>> import rankwise as rw
>>> q = rw.make_queries(n_queries=60)
>>> folds = [rw.Fold(*q.split((0.5, 0.25, 0.25)))]
>>> experiment = rw.run_experiment(["random", "ranksvm"], folds, ["ndcg@5"])
>>> [o.name for o in experiment.outcomes]
['random', 'ranksvm']
>>> experiment.outcomes[1].choices[0].tried
16
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._conventions import conventions
from rankwise.data import Queries
from rankwise.metrics import Metric, evaluate, parse_metric
from rankwise.recipes import RECIPES, Request, parse_ranker
from rankwise.tuning import N_TRIALS
from rankwise.tuning import tune as search

if TYPE_CHECKING:
    from rankwise._estimator import Ranker
    from rankwise.comparison import Comparison

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class Fold:
    """Queries to learn from, to choose by, and to measure on; no query may be in two of them."""

    train: Queries
    valid: Queries | None
    test: Queries

    def __post_init__(self) -> None:
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        given = {name: part for name, part in parts.items() if part is not None}
        for a, b in (("train", "valid"), ("train", "test"), ("valid", "test")):
            if a in given and b in given:
                shared = np.intersect1d(given[a].ids, given[b].ids)
                if len(shared):
                    raise ValueError(
                        f"Fold: {a} and {b} must hold different queries, got {len(shared)} in both, "
                        f"such as {shared[0]}; split by query"
                    )
        widths = {name: part.n_features for name, part in given.items()}
        if len(set(widths.values())) > 1:
            raise ValueError(
                "Fold: all parts must have the same number of features, got "
                + ", ".join(f"{n} in {name}" for name, n in widths.items())
                + "; give the readers n_features"
            )


@dataclass(frozen=True, eq=False)
class Choice:
    """The ranker kept among those fitted.

    Attributes
    ----------
    ranker : Ranker
        Fitted on the training queries.
    params : dict
        Hyperparameters chosen on the validation queries; empty if nothing was to choose.
    tried : int
        Combinations fitted.
    value : float or None
        The metric on the validation queries, if there are any.
    fit_seconds, tune_seconds : float
        The fit that was kept, and all fits together.
    """

    ranker: Ranker
    params: dict[str, Any]
    tried: int
    value: float | None
    fit_seconds: float
    tune_seconds: float


def choose(
    ranker: str | Request,
    train: Queries,
    valid: Queries | None,
    metric: Metric | str,
    *,
    tune: bool = True,
    method: str = "grid",
    n_trials: int | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Choice:
    """Fit a recipe with several sets of hyperparameters, keep the best on the validation queries.

    Parameters
    ----------
    ranker : str
        Name of a recipe with the parameters to fix, such as ``"ranksvm"`` or ``"ranksvm(C=0.1)"``.
    train : Queries
    valid : Queries or None
        Without validation queries there is one fit, with the ranker's defaults.
    metric : Metric or str
        What the choice and early stopping go by; the first combination that is best is kept.
    tune : bool
        False makes one fit with the defaults, even with validation queries.
    method : {"grid", "random", "tpe"}
        Every combination of the recipe's grid, or ``n_trials`` draws from its ranges; see
        :func:`rankwise.tune`.
    n_trials : int, optional
        For ``"random"`` and ``"tpe"``, 50 unless given.
    random_state : int
        Seed of the draws, passed to a ranker that takes one and was not given its own.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before each fit.
    """
    request = ranker if isinstance(ranker, Request) else parse_ranker(ranker)
    by = parse_metric(metric)
    if valid is not None and tune:
        found = search(
            request, train, valid,
            metric=by, method=method, n_trials=n_trials, random_state=random_state, progress=progress,
        )  # fmt: skip
        assert found.model is not None
        return Choice(
            found.model,
            found.params,
            len(found.trials),
            found.value,
            found.best.seconds,
            found.seconds,
        )
    if progress is not None:
        progress(0, 1, request.text)
    only = request.make(metric=by, random_state=random_state)
    start = time.perf_counter()
    only.fit(train, eval_set=valid)
    seconds = time.perf_counter() - start
    return Choice(only, {}, 1, None if valid is None else only.score(valid), seconds, seconds)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one ranker did, fold after fold.

    Attributes
    ----------
    name : str
        The request's text, such as ``lambdamart(num_leaves=31)``.
    per_query : dict of str to array of shape (n_test_queries,)
        Values of each metric on the test queries of all folds, in order.
    scores : list of array
        Test scores of each fold.
    choices : list of Choice
        What was kept in each fold.
    score_seconds : float
        Scoring the test queries of all folds.
    """

    name: str
    per_query: dict[str, NDArray[np.float64]]
    scores: list[NDArray[np.float64]]
    choices: list[Choice]
    score_seconds: float

    @property
    def fit_seconds(self) -> float:
        """Fitting the rankers that were kept."""
        return sum(c.fit_seconds for c in self.choices)

    @property
    def tune_seconds(self) -> float:
        """All fits together."""
        return sum(c.tune_seconds for c in self.choices)


@dataclass(frozen=True, eq=False)
class Experiment:
    """Outcomes of several rankers on the same folds.

    Attributes
    ----------
    outcomes : list of Outcome
    metrics : list of Metric
    select : Metric or None
        What hyperparameters were chosen by; None if nothing was chosen.
    fold_sizes : list of int
        Test queries of each fold.
    ids : array of shape (n_test_queries,)
        Ids of the test queries of all folds, in order.
    """

    outcomes: list[Outcome]
    metrics: list[Metric]
    select: Metric | None
    fold_sizes: list[int]
    ids: NDArray[Any]

    def renamed(self, names: Mapping[str, str]) -> Experiment:
        """The same outcomes under other names."""
        outcomes = [replace(o, name=names.get(o.name, o.name)) for o in self.outcomes]
        return replace(self, outcomes=outcomes)

    def fold_means(self, metric: Metric | str) -> dict[str, NDArray[np.float64]]:
        """Mean of a metric in each fold, per ranker; LETOR publishes the mean of these."""
        cuts = np.cumsum(self.fold_sizes)[:-1]
        text = str(parse_metric(metric))
        return {
            o.name: np.array([_mean(part) for part in np.split(o.per_query[text], cuts)])
            for o in self.outcomes
        }

    def compare(
        self,
        *,
        metric_names: Mapping[str, str] | None = None,
        notes: Sequence[str] = (),
        **options: Any,
    ) -> Comparison:
        """The comparison of all rankers.

        Parameters
        ----------
        metric_names : mapping of str to str, optional
            Headings for metrics, by their text.
        notes : sequence of str
            Lines under the table, after the conventions of the metrics.
        **options
            As in :func:`rankwise.compare`.
        """
        from rankwise.comparison import compare

        return compare(
            {
                (metric_names or {}).get(str(m), str(m)): {
                    o.name: o.per_query[str(m)] for o in self.outcomes
                }
                for m in self.metrics
            },
            columns={
                "train [s]": {o.name: o.fit_seconds for o in self.outcomes},
                "score [s]": {o.name: o.score_seconds for o in self.outcomes},
            },
            ids=self.ids,
            notes=[conventions(self.metrics), *notes],
            **options,
        )


def run_experiment(
    rankers: Sequence[str | Request],
    folds: Sequence[Fold],
    metrics: Sequence[Metric | str],
    *,
    select: Metric | str | None = None,
    tune: bool = True,
    method: str = "grid",
    n_trials: int | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Experiment:
    """Fit rankers on folds and measure them on the test queries.

    Parameters
    ----------
    rankers : sequence of str
        Names of recipes with the parameters to fix, such as ``"ranksvm"`` or ``"ranksvm(C=0.1)"``.
    folds : sequence of Fold
    metrics : sequence of Metric or str
    select : Metric or str, optional
        What hyperparameters and early stopping go by on the validation queries; the first of
        ``metrics`` unless set.
    tune : bool
        False fits every ranker once with its defaults and the fixed parameters.
    method : {"grid", "random", "tpe"}
        How hyperparameters are searched in each fold; see :func:`rankwise.tune`.
    n_trials : int, optional
        Trials per ranker and fold for ``"random"`` and ``"tpe"``, 50 unless given: the same budget
        for every ranker.
    random_state : int
        Seed of the search, passed to every ranker that takes one and that was not given its own.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before each fit.

    Returns
    -------
    Experiment
    """
    requests = [r if isinstance(r, Request) else parse_ranker(r) for r in rankers]
    measured = [parse_metric(m) for m in metrics]
    _check_plan(folds, requests, measured)
    by = parse_metric(select) if select is not None else measured[0]
    if method != "grid" or n_trials is not None:
        lacking = "tune=False" if not tune else "a fold without any"
        if not tune or any(f.valid is None for f in folds):
            raise ValueError(
                "run_experiment: method and n_trials are for a search on validation queries, "
                f"got {lacking}; leave them out"
            )
    _check_missing(requests, folds)

    def size(request: Request, fold: Fold) -> int:
        """Fits of a ranker in a fold, for the progress."""
        if not tune or fold.valid is None:
            return 1
        return (n_trials or N_TRIALS) if method != "grid" else len(list(request.combinations()))

    total, done = sum(size(r, f) for r in requests for f in folds), 0

    def chosen_in(request: Request, number: int) -> Choice:
        nonlocal done

        def step(i: int, n: int, text: str) -> None:
            if progress is not None and i < n:
                which = f" (fold {number + 1}/{len(folds)})" if len(folds) > 1 else ""
                progress(done + i, total, text + which)

        fold = folds[number]
        choice = choose(
            request, fold.train, fold.valid, by,
            tune=tune, method=method, n_trials=n_trials, random_state=random_state, progress=step,
        )  # fmt: skip
        done += size(request, fold)
        return choice

    outcomes = [_outcome(request, folds, measured, chosen_in) for request in requests]
    if progress is not None:
        progress(total, total, "done")
    chosen = any(c.tried > 1 for o in outcomes for c in o.choices)
    return Experiment(
        outcomes,
        measured,
        by if chosen else None,
        [f.test.n_queries for f in folds],
        np.concatenate([f.test.ids for f in folds]),
    )


def _outcome(
    request: Request,
    folds: Sequence[Fold],
    measured: Sequence[Metric],
    chosen_in: Callable[[Request, int], Choice],
) -> Outcome:
    """One ranker chosen in every fold, and what it does on the test queries."""
    choices, scores, values = [], [], []
    score_seconds = 0.0
    for number, fold in enumerate(folds):
        choice = chosen_in(request, number)
        start = time.perf_counter()
        y_score = choice.ranker.predict(fold.test)
        score_seconds += time.perf_counter() - start
        choices.append(choice)
        scores.append(y_score)
        values.append(evaluate(measured, fold.test.y, y_score, qid=fold.test.groups))
    per_query = {str(m): np.concatenate([v[str(m)] for v in values]) for m in measured}
    return Outcome(request.text, per_query, scores, choices, score_seconds)


def _check_plan(
    folds: Sequence[Fold], requests: Sequence[Request], measured: Sequence[Metric]
) -> None:
    if not folds:
        raise ValueError("run_experiment: at least one fold is needed, got none")
    names = [r.text for r in requests]
    if not requests or len(set(names)) != len(names):
        raise ValueError(
            "run_experiment: rankers must be different and at least one, "
            f"got {', '.join(names) or 'none'}"
        )
    ids = np.concatenate([f.test.ids for f in folds])
    if len(np.unique(ids)) < len(ids):
        raise ValueError(
            "run_experiment: each query must be in the test part of one fold only, got repeated ids"
        )
    if not measured:
        raise ValueError("run_experiment: at least one metric is needed, got none")


def _check_missing(requests: Sequence[Request], folds: Sequence[Fold]) -> None:
    """Says before the first fit which rankers cannot take the data."""
    unable = [r.text for r in requests if not r.recipe.missing]
    parts = [p for f in folds for p in (f.train, f.valid, f.test) if p is not None]
    if unable and any(np.isnan(p.X.data if hasattr(p.X, "nnz") else p.X).any() for p in parts):
        able = [name for name, recipe in RECIPES.items() if recipe.missing]
        raise ValueError(
            f"run_experiment: the features must not be missing (NaN) for {', '.join(unable)}; fill them "
            f"in first, or leave these rankers out ({', '.join(able)} take missing values)"
        )


def _mean(values: NDArray[np.float64]) -> float:
    kept = values[~np.isnan(values)]
    return float(kept.mean()) if len(kept) else float("nan")
