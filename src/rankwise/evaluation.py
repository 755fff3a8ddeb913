"""Evaluating runs against judgements: every metric, topic by topic, for one or several runs.

:func:`evaluate_run` takes what :mod:`rankwise.trec` read; :func:`evaluate_files` takes the files
themselves and never keeps the runs.

>>> import rankwise as rw
>>> qrels = rw.Qrels.from_dict({"q1": {"a": 2, "b": 0}, "q2": {"c": 1}})
>>> runs = {
...     "old": rw.Run.from_dict({"q1": {"b": 2.0, "a": 1.0}, "q2": {"c": 3.0}}),
...     "new": rw.Run.from_dict({"q1": {"a": 9.0, "b": 8.0}}),
... }
>>> result = rw.evaluate_run(qrels, runs, "rr,ndcg@10")
>>> result.runs, result.ids
(('old', 'new'), array(['q1', 'q2'], dtype='<U2'))
>>> result.per_query("rr")
array([[0.5, 1. ],
       [1. , 0. ]])
>>> result.means("rr")[1]  # new does not answer q2, which counts
Mean(value=0.5, n_queries=2, n_skipped=0)
>>> result.n_missing
(0, 1)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankwise import _validate
from rankwise._metric import Mean, Metric, evaluate, parse_metric, parse_metrics
from rankwise.trec import (
    Judged,
    Qrels,
    Run,
    Source,
    _join,
    _judged,
    _load,
    _parse_run,
    read_qrels,
)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Values of metrics, topic by topic, for one or several runs.

    Attributes
    ----------
    metrics : tuple of Metric
        In the order asked for, with the conventions they were computed under.
    runs : tuple of str
        Names of the runs.
    ids : array of shape (n_queries,)
        The judged topics, in the order of the qrels: the same for every run.
    values : dict of str to float64 array of shape (n_runs, n_queries)
        Per-query values by the metric's text; NaN where its convention skips a query.
    n_missing, n_unjudged, rank_conflicts : tuple of int
        For each run, as in :class:`Judged`.
    preset : str or None
        The conventions under which metrics given as text were read.
    """

    metrics: tuple[Metric, ...]
    runs: tuple[str, ...]
    ids: NDArray[np.str_]
    values: dict[str, NDArray[np.float64]]
    n_missing: tuple[int, ...]
    n_unjudged: tuple[int, ...]
    rank_conflicts: tuple[int, ...]
    preset: str | None = None

    def per_query(self, metric: Metric | str) -> NDArray[np.float64]:
        """Values of a metric, of shape (n_runs, n_queries); text is read as when evaluating."""
        text = str(parse_metric(metric, preset=self.preset))
        if text not in self.values:
            raise _validate.unknown("metric", str(metric), self.values)
        return self.values[text]

    def means(self, metric: Metric | str) -> list[Mean]:
        """For each run the metric's mean, and how many queries it covers and skips."""
        wanted = parse_metric(metric, preset=self.preset)
        return [wanted.average(row) for row in self.per_query(wanted)]

    def __repr__(self) -> str:
        return (
            f"Evaluation({len(self.metrics)} metrics, {len(self.runs)} runs, "
            f"{len(self.ids)} topics)"
        )


def evaluate_run(
    qrels: Qrels,
    runs: Run | Sequence[Run] | Mapping[str, Run],
    metrics: Any,
    *,
    preset: str | None = None,
    n_threads: int = 0,
) -> Evaluation:
    """Metrics of one or several runs, aligned by topic.

    Parameters
    ----------
    qrels : Qrels
    runs : Run, sequence of Run, or mapping of names to Run
        Without a mapping the runs are named by their tags.
    metrics : str, Metric, or sequence of them
        As :func:`rankwise.parse_metric` takes them.
    preset : str, optional
        Conventions to use, such as ``"trec_eval"``; see :mod:`rankwise.metrics`.
    n_threads : int
        0 for the default of the machine. The result does not depend on it.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import rankwise as rw
    >>> qrels = rw.Qrels.from_dict({"q1": {"a": 1, "b": 0}, "q2": {"c": 1}})
    >>> run = rw.Run.from_dict({"q1": {"b": 2.0, "a": 1.0}}, tag="mine")
    >>> result = rw.evaluate_run(qrels, run, ["ap", "rr"])
    >>> result.per_query("ap")
    array([[0.5, 0. ]])
    >>> result.means("ap")
    [Mean(value=0.25, n_queries=2, n_skipped=0)]
    """
    wanted = parse_metrics(metrics, preset=preset)
    qrels = qrels._plain("evaluate_run")
    if isinstance(runs, Run):
        runs = [runs]
    if isinstance(runs, Mapping):
        names, listed = [str(name) for name in runs], list(runs.values())
    else:
        listed = list(runs)
        names = _distinct([run.tag or f"run{i + 1}" for i, run in enumerate(listed)])
    judged = (_join(qrels, run, False, n_threads) for run in listed)
    return _evaluate(qrels, names, judged, wanted, preset, n_threads)


def evaluate_files(
    qrels: Source,
    runs: Source | Sequence[Source],
    metrics: Any,
    *,
    preset: str | None = None,
    n_threads: int = 0,
) -> Evaluation:
    """Metrics of run files against a qrels file, without keeping the runs.

    The judgements are read once. A run goes from its text straight into the joined lists of
    :func:`join`; documents that were not judged are never stored by name. Runs are named by their
    tags, or by their files where tags repeat.

    Parameters
    ----------
    qrels : path or file object
    runs : path or file object, or a sequence of them
        See :func:`read_run` for what they may be.
    metrics, preset, n_threads
        As in :func:`evaluate_run`.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        As :func:`read_run`, :func:`read_qrels` and :func:`join` do.

    Examples
    --------
    >>> import io, rankwise as rw
    >>> qrels = io.StringIO("q1 0 a 1\\nq1 0 b 0")
    >>> run = io.StringIO("q1 Q0 b 1 9.5 mine\\nq1 Q0 a 2 9.1 mine")
    >>> rw.evaluate_files(qrels, run, "rr").means("rr")
    [Mean(value=0.5, n_queries=1, n_skipped=0)]
    """
    wanted = parse_metrics(metrics, preset=preset)
    judgements = read_qrels(qrels, n_threads=n_threads)
    one = isinstance(runs, str | os.PathLike) or hasattr(runs, "read")
    sources = cast(list[Source], [runs] if one else list(cast(Sequence[Source], runs)))
    tags: list[str] = []
    files: list[str] = []

    def judged() -> Iterator[Judged]:
        for source in sources:
            data, name = _load(source)
            files.append(name)
            lists = _join_text(judgements, data, name, n_threads)
            tags.append(lists.tag or name)
            yield lists

    result = _evaluate(judgements, files, judged(), wanted, preset, n_threads)
    return replace(result, runs=tuple(tags if len(set(tags)) == len(tags) else _distinct(files)))


def _join_text(qrels: Qrels, data: NDArray[np.uint8], name: str, n_threads: int) -> Judged:
    """Joins a run straight from its text; through its columns where topics are interleaved."""
    if not name.endswith(".json"):
        joined = qrels._index.join_text(data, name, n_threads)
        together: bool = joined[-1]
        if together:
            return _judged(name, qrels, None, joined)
    return _join(qrels, _parse_run(data, name, n_threads), False, n_threads)


def _evaluate(
    qrels: Qrels,
    names: Sequence[str],
    judged: Iterable[Judged],
    metrics: list[Metric],
    preset: str | None,
    n_threads: int,
) -> Evaluation:
    rows: list[NDArray[np.float64]] = []
    counts: list[tuple[int, int, int]] = []
    for one in judged:
        values = evaluate(metrics, one.y_true, one.y_score, qid=one.groups, n_threads=n_threads)
        rows.append(np.array(list(values.values())))
        counts.append((one.n_missing, one.n_unjudged, one.rank_conflicts))
    if not rows:
        raise ValueError("evaluate: at least one run is needed, got none")
    table = np.stack(rows, axis=1)
    missing, unjudged, conflicts = zip(*counts, strict=True)
    return Evaluation(
        tuple(dict.fromkeys(metrics)),
        tuple(names),
        qrels.ids,
        dict(zip(values, table, strict=True)),
        missing,
        unjudged,
        conflicts,
        preset,
    )


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, numbered where one repeats."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result
