"""Compare systems on the same queries: means, intervals, gaps, corrected p-values, one table.

:func:`compare` takes the per-query values of every metric and system, as :func:`rankwise.evaluate`
returns them, and gives a :class:`Comparison`, a value that prints itself for the terminal,
Markdown, LaTeX, CSV and JSON. :mod:`rankwise.plots` draws it.

Each system is tested against a baseline: by default the best system of each metric, or one that
is named. What the table states, and what it does not:

* The interval beside a mean tells how far the mean would move with other queries. Two intervals
  that overlap do not show that two systems are alike: the systems share the queries, and only
  the gap, computed query by query, sees that.
* The p-values of *all* systems and metrics in the table form one family for the correction.
  Intervals are not corrected.
* The best system was chosen on the queries it is then compared on. Its mean is a little too
  high, and so are the gaps to it (in size): tests against it err on the side of claiming a
  difference. Name the baseline beforehand where the claim matters.

>>> import numpy as np, rankwise as rw
>>> rng = np.random.default_rng(0)
>>> easy = rng.beta(2, 2, size=50)
>>> table = rw.compare({"ap": {"new": np.clip(easy + 0.05, 0, 1), "old": easy}})
>>> gap = table.results["ap"]["old"].gap
>>> round(gap.mean, 3), gap.baseline, gap.p_corrected < 0.001
(-0.05, 'new', True)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _render, _validate
from rankwise.stats import (
    CORRECTIONS,
    TESTS,
    Interval,
    Seed,
    differences,
    effect_size,
    intervals,
    win_tie_loss,
)

Floats = NDArray[np.float64]

N_BOOTSTRAP = 9_999
BEST = "best"


@dataclass(frozen=True)
class Gap:
    """A system minus the baseline, on the queries where both have a value.

    Attributes
    ----------
    baseline : str
        The system it is compared with.
    interval : Interval
        Mean difference (negative: worse than the baseline) with its confidence interval, not
        corrected for the number of comparisons.
    p_value, p_corrected : float
        Two-sided; NaN where fewer than two queries are shared.
    effect_size : float
        Mean difference over its standard deviation (:func:`rankwise.effect_size`).
    wins, ties, losses : int
        Queries on which the system is better than, equal to and worse than the baseline.
    """

    baseline: str
    interval: Interval
    p_value: float
    p_corrected: float
    effect_size: float
    wins: int
    ties: int
    losses: int

    @property
    def mean(self) -> float:
        return self.interval.mean

    @property
    def n_queries(self) -> int:
        return self.interval.n_queries


@dataclass(frozen=True)
class Result:
    """One system under one metric.

    Attributes
    ----------
    interval : Interval
        Mean over the queries with a value, its interval and their number.
    gap : Gap or None
        None for the baseline itself.
    """

    interval: Interval
    gap: Gap | None

    @property
    def mean(self) -> float:
        return self.interval.mean

    @property
    def n_queries(self) -> int:
        return self.interval.n_queries


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Systems compared under some metrics. Made by :func:`compare`; ``print`` shows the table.

    Attributes
    ----------
    results : mapping of metric to mapping of system to Result
        In the order they were given.
    per_query : mapping of metric to mapping of system to float64 array of shape (n_queries,)
    ids : array of shape (n_queries,)
        Query ids, 0 to n - 1 unless given.
    baseline : str
        A system, or ``"best"``: the best system of each metric.
    test, correction : str, str or None
    n_tests : int
        Size of the family the correction runs over.
    n_resamples : int
        Sign patterns of the randomization test.
    interval : str
    confidence : float
    seed : int
    columns : mapping of title to mapping of system to number or str
        Further facts about the systems, such as training time or chosen hyperparameters.
    notes : tuple of str
        Lines printed under the table.
    """

    results: Mapping[str, Mapping[str, Result]]
    per_query: Mapping[str, Mapping[str, Floats]]
    ids: NDArray[Any]
    baseline: str
    test: str
    correction: str | None
    n_tests: int
    n_resamples: int
    interval: str
    confidence: float
    seed: int
    columns: Mapping[str, Mapping[str, float | str]]
    notes: tuple[str, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(self.results)

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(next(iter(self.results.values())))

    @property
    def n_queries(self) -> int:
        return len(self.ids)

    def baseline_of(self, metric: str) -> str | None:
        """The system the others are compared with under a metric; None where no mean is defined."""
        for system, result in self._row(metric).items():
            if result.gap is not None:
                return result.gap.baseline
            if self.baseline in (system, BEST) and result.n_queries:
                return system
        return None

    def _row(self, metric: str) -> Mapping[str, Result]:
        if metric not in self.results:
            raise _validate.unknown("metric", metric, self.results)
        return self.results[metric]

    def __repr__(self) -> str:
        return (
            f"Comparison({len(self.systems)} systems, {len(self.metrics)} metrics, "
            f"{self.n_queries} queries)"
        )

    def __str__(self) -> str:
        return self.to_text()

    def __rich_console__(self, console: Any, options: Any) -> Iterable[Any]:
        return _render.rich(self, options.max_width)

    def to_text(self, *, layout: str = "wide", width: int = 100) -> str:
        """The table as plain text.

        Parameters
        ----------
        layout : {"wide", "long"}
            ``"wide"``: a row per system and a block per metric: mean and gap, below them the
            interval of the mean and the corrected p-value. ``"long"``: a row per metric and
            system with everything known.
        width : int
            Characters a line may take; a wide table with more metrics continues below.
        """
        return _render.text(self, layout, width)

    def show(self, *, layout: str = "wide", file: IO[str] | None = None) -> None:
        """Print the table: in colour on a terminal, as plain text 100 wide elsewhere."""
        _render.show(self, layout, file)

    def to_markdown(self, *, layout: str = "wide") -> str:
        """The table in GitHub's Markdown."""
        return _render.markdown(self, layout)

    def to_latex(self, *, layout: str = "wide") -> str:
        r"""The table in LaTeX; the preamble needs ``\usepackage{booktabs}``."""
        return _render.latex(self, layout)

    def to_csv(self) -> str:
        """All numbers, unrounded: one line per metric and system, empty where undefined."""
        return _render.csv(self)

    def to_json(self, *, per_query: bool = False) -> str:
        """All numbers, unrounded, with how they were made; null where undefined.

        Parameters
        ----------
        per_query : bool
            Whether to add the query ids and the values of every query.
        """
        return _render.json(self, per_query)


def compare(
    per_query: Mapping[str, Mapping[str, ArrayLike]],
    *,
    ids: ArrayLike | None = None,
    baseline: str = BEST,
    test: str = "randomization",
    correction: str | None = "holm",
    interval: str = "bca",
    confidence: float = 0.95,
    n_resamples: int = 100_000,
    columns: Mapping[str, Mapping[str, float | str]] | None = None,
    notes: Sequence[str] = (),
    rng: Seed = 0,
) -> Comparison:
    """Compare systems with a baseline, query by query, under one or more metrics.

    Parameters
    ----------
    per_query : mapping of metric to mapping of system to array of shape (n_queries,)
        One value per query, larger is better, NaN for a query the metric skips. All metrics must
        name the same systems, and all arrays the same queries in the same order.
    ids : array-like of shape (n_queries,), optional
        Query ids, all different; kept with the values.
    baseline : str
        A system, or ``"best"``: for each metric the system with the largest mean, the first of
        those that tie. Its own row has no gap and no p-value.
    test : {"randomization", "t", "wilcoxon", "sign"}
        Paired and two-sided, on the queries where both systems have a value.
    correction : {"holm", "bh"} or None
        Applied once to the p-values of all systems and metrics.
    interval : {"bca", "t"}
        How the intervals of means and of mean differences are made. With fewer than about 100
        queries ``"t"`` covers a mean difference better (measured in docs/compare.md).
    confidence : float
        Nominal coverage of the intervals; a star marks corrected p-values below one minus it.
    n_resamples : int
        Sign patterns the randomization test draws. Intervals use 9,999 resamples.
    columns : mapping of title to mapping of system to number or str, optional
        Further facts to show; put the unit into the title: ``{"train [s]": {"ranknet": 1.2}}``.
    notes : sequence of str
        Further lines to print under the table, such as the conventions of the metrics.
    rng : int, Generator or None
        Seed. A number compared with another does not depend on what else is in the table, except
        through the correction.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        For no metric or system, arrays of different lengths, infinite values, metrics that name
        different systems, ids that repeat, an unknown baseline, test or correction.

    Notes
    -----
    A metric under which fewer than two queries have a value still has its mean; interval and
    p-value are NaN and the table says so. Systems that agree on every query have gap 0 and p = 1.

    O(n_queries * (n_resamples / 8 + n_metrics * 9999)) per system at worst: seconds for 10,000
    queries, milliseconds for 100.

    Examples
    --------
    >>> import numpy as np, rankwise as rw
    >>> rng = np.random.default_rng(1)
    >>> topic = rng.beta(2, 3, size=40)
    >>> values = {name: np.clip(topic + rng.normal(shift, 0.1, 40), 0, 1)
    ...           for name, shift in [("bm25", 0.0), ("ranknet", 0.08), ("lambdamart", 0.1)]}
    >>> print(rw.compare({"ndcg@10": values}, baseline="bm25"))  # doctest: +SKIP
    """
    where = "compare"
    names, systems = _checked_names(where, per_query)
    values = {
        m: {s: _validate.per_query(where, f"{m} of {s}", per_query[m][s]) for s in systems}
        for m in names
    }
    n_queries = _validate.same_length(
        where, **{f"{m} of {s}": x for m, row in values.items() for s, x in row.items()}
    )
    if n_queries == 0:
        raise ValueError(f"{where}: at least one query is needed, got 0")
    query_ids = _checked_ids(where, ids, n_queries)
    _check_baseline(where, baseline, systems)
    _validate.choice(where, "test", test, TESTS)
    if correction is not None:
        _validate.choice(where, "correction", correction, CORRECTIONS)
    _validate.choice(where, "interval", interval, ("bca", "t"))
    level = _validate.fraction(where, "confidence", confidence)
    draws = int(_validate.number(where, "n_resamples", n_resamples, low=1, integer=True))
    facts = _checked_columns(where, columns or {}, systems)
    # One seed for every test and interval, so that none depends on its neighbours.
    seed = rng if isinstance(rng, int) else int(np.random.default_rng(rng).integers(2**63))

    results = {
        m: _compare_one(values[m], baseline, test, interval, level, draws, seed) for m in names
    }
    tested = [
        (m, s, r.gap) for m, row in results.items() for s, r in row.items() if r.gap is not None
    ]
    p = np.array([gap.p_value for _, _, gap in tested])
    corrected = CORRECTIONS[correction](p) if correction else p
    for (m, s, gap), p_corrected in zip(tested, corrected, strict=True):
        gap = replace(gap, p_corrected=float(p_corrected))
        results[m][s] = replace(results[m][s], gap=gap)
    return Comparison(
        results,
        values,
        query_ids,
        baseline,
        test,
        correction,
        int(np.count_nonzero(~np.isnan(p))),
        draws,
        interval,
        level,
        seed,
        facts,
        tuple(notes),
    )


def _compare_one(
    values: Mapping[str, Floats],
    baseline: str,
    test: str,
    interval: str,
    confidence: float,
    n_resamples: int,
    seed: int,
) -> dict[str, Result]:
    """The results of one metric, p-values not yet corrected."""
    systems = list(values)
    means = np.array([_mean(x) for x in values.values()])
    reference = baseline
    if baseline == BEST:
        reference = systems[int(np.nanargmax(means))] if not np.isnan(means).all() else ""
    gaps = {
        s: differences(x, values[reference])
        for s, x in values.items()
        if reference and s != reference
    }
    found = _intervals([*values.values(), *gaps.values()], interval, confidence, seed)
    of_mean = dict(zip(values, found, strict=False))
    of_gap = dict(zip(gaps, found[len(values) :], strict=True))
    options = {"n_resamples": n_resamples, "rng": seed} if test == "randomization" else {}
    results = {}
    for s, x in values.items():
        gap = None
        if s in gaps:
            shared = of_gap[s].n_queries
            enough = shared >= 2
            against = values[reference]
            p_value = TESTS[test](x, against, **options).p_value if enough else np.nan
            outcome = win_tie_loss(x, against)
            gap = Gap(
                reference,
                of_gap[s],
                p_value,
                np.nan,
                effect_size(x, against) if enough else np.nan,
                outcome.wins,
                outcome.ties,
                outcome.losses,
            )
        results[s] = Result(of_mean[s], gap)
    return results


def _mean(x: Floats) -> float:
    kept = x[~np.isnan(x)]
    return float(kept.mean()) if len(kept) else np.nan


def _intervals(columns: list[Floats], method: str, confidence: float, seed: int) -> list[Interval]:
    """The interval of each column; columns with the same queries share their resamples."""
    by_queries: dict[bytes, list[int]] = {}
    for i, x in enumerate(columns):
        by_queries.setdefault(np.isnan(x).tobytes(), []).append(i)
    found: dict[int, Interval] = {}
    for members in by_queries.values():
        kept = ~np.isnan(columns[members[0]])
        rows = np.stack([columns[i][kept] for i in members])
        n = rows.shape[1]
        if n < 2:
            made = [Interval(_mean(x), np.nan, np.nan, confidence, method, n) for x in rows]
        else:
            made = intervals(rows, method, confidence, N_BOOTSTRAP, seed)
        found.update(zip(members, made, strict=True))
    return [found[i] for i in range(len(columns))]


def _checked_names(
    where: str, per_query: Mapping[str, Mapping[str, ArrayLike]]
) -> tuple[list[str], list[str]]:
    if not isinstance(per_query, Mapping) or not all(
        isinstance(row, Mapping) for row in per_query.values()
    ):
        raise TypeError(
            f"{where}: per_query must map each metric to a mapping of system to values, "
            f"got {type(per_query).__name__}; for example {{'ndcg@10': {{'bm25': values}}}}"
        )
    names = list(per_query)
    if not names or not per_query[names[0]]:
        raise ValueError(f"{where}: at least one metric and one system are needed, got none")
    systems = list(per_query[names[0]])
    for m in names[1:]:
        differing = set(systems) ^ set(per_query[m])
        if differing:
            raise ValueError(
                f"{where}: every metric must name the same systems, "
                f"got {min(map(str, differing))!r} under only one of {names[0]!r} and {m!r}"
            )
    return names, systems


def _checked_ids(where: str, ids: ArrayLike | None, n_queries: int) -> NDArray[Any]:
    if ids is None:
        return np.arange(n_queries)
    query_ids = np.asarray(ids)
    if query_ids.shape != (n_queries,):
        raise ValueError(
            f"{where}: ids must name each of the {n_queries} queries, got shape {query_ids.shape}"
        )
    unique, counts = np.unique(query_ids, return_counts=True)
    if len(unique) < n_queries:
        repeated = unique[counts > 1][0]
        raise ValueError(f"{where}: ids must be all different, got {repeated!r} more than once")
    return query_ids


def _check_baseline(where: str, baseline: str, systems: list[str]) -> None:
    if baseline == BEST and BEST in systems:
        raise ValueError(
            f"{where}: baseline 'best' means the best system, but a system has that name; rename it"
        )
    if baseline != BEST and baseline not in systems:
        raise _validate.unknown("baseline", baseline, [BEST, *systems])


def _checked_columns(
    where: str, columns: Mapping[str, Mapping[str, float | str]], systems: list[str]
) -> dict[str, dict[str, float | str]]:
    for title, facts in columns.items():
        for system in facts:
            if system not in systems:
                raise _validate.unknown(f"system in column {title!r}:", system, systems)
    return {title: dict(facts) for title, facts in columns.items()}
