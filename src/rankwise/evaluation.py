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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rankwise import _core, _validate
from rankwise._metric import SPECS, Mean, Metric, evaluate, parse_metric, parse_metrics
from rankwise.data import Groups
from rankwise.trec import (
    Qrels,
    Run,
    Source,
    _is_json,
    _join,
    _load,
    _nothing_common,
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
        For each run: judged topics it does not answer, topics of it without judgements, and
        documents whose rank contradicts their score (see :class:`Run`).
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
    wanted = _wanted(metrics, preset)
    qrels = qrels._plain("evaluate_run")
    if isinstance(runs, Run):
        runs = [runs]
    if isinstance(runs, Mapping):
        names, listed = [str(name) for name in runs], list(runs.values())
    else:
        listed = list(runs)
        names = _distinct([run.tag or f"run{i + 1}" for i, run in enumerate(listed)])
    answers = [_evaluate_columns(qrels, run, wanted, n_threads) for run in listed]
    return _collect(qrels, names, answers, wanted, preset)


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
    qrels : path or binary file object
    runs : path or binary file object, or a sequence of them
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
    >>> qrels = io.BytesIO(b"q1 0 a 1\\nq1 0 b 0")
    >>> run = io.BytesIO(b"q1 Q0 b 1 9.5 mine\\nq1 Q0 a 2 9.1 mine")
    >>> rw.evaluate_files(qrels, run, "rr").means("rr")
    [Mean(value=0.5, n_queries=1, n_skipped=0)]
    """
    wanted = _wanted(metrics, preset)
    judgements = read_qrels(qrels, n_threads=n_threads)
    one = isinstance(runs, str | os.PathLike) or hasattr(runs, "read")
    sources = cast(list[Source], [runs] if one else list(cast(Sequence[Source], runs)))
    files, answers = [], []
    for source in sources:
        data, name = _load(source)
        files.append(name)
        answers.append(_evaluate_text(judgements, data, name, wanted, n_threads))
    tags = [answer.tag or file for answer, file in zip(answers, files, strict=True)]
    names = tags if len(set(tags)) == len(tags) else _distinct(files)
    return _collect(judgements, names, answers, wanted, preset)


_WORTH_THREADS = 4 << 20  # bytes: a smaller file is evaluated before other threads are up


class _Answer(NamedTuple):
    """What one run gives: values of shape (n_metrics, n_queries), and what was noticed."""

    values: NDArray[np.float64]
    n_missing: int
    n_unjudged: int
    rank_conflicts: int
    tag: str | None


def _wanted(metrics: Any, preset: str | None) -> list[Metric]:
    return list(dict.fromkeys(parse_metrics(metrics, preset=preset)))


def _evaluate_columns(qrels: Qrels, run: Run, metrics: list[Metric], n_threads: int) -> _Answer:
    joined = _join(qrels, run, False, n_threads)
    values = _values(qrels, joined[:6], metrics, n_threads)
    return _Answer(values, joined[6], joined[7], run.rank_conflicts, run.tag)


def _evaluate_text(
    qrels: Qrels, data: NDArray[np.uint8], name: str, metrics: list[Metric], n_threads: int
) -> _Answer:
    """Evaluates a run block by block; through its columns where topics are interleaved."""
    if _is_json(name):
        return _evaluate_columns(qrels, _parse_run(data, name, n_threads), metrics, n_threads)
    if n_threads == 0 and len(data) < _WORTH_THREADS:
        n_threads = 1
    values = np.empty((len(metrics), qrels.n_queries))
    blocks = _core.RunBlocks(qrels._index, data, name, n_threads)
    while (block := blocks.next()) is not None:
        values[:, block[0]] = _values(qrels, block, metrics, n_threads)
    if not blocks.contiguous:
        return _evaluate_columns(qrels, _parse_run(data, name, n_threads), metrics, n_threads)
    missing = blocks.missing()
    n_missing = len(missing[0])
    if n_missing == qrels.n_queries:
        raise _nothing_common(name, qrels, blocks.n_unjudged)
    if n_missing:
        values[:, missing[0]] = _values(qrels, missing, metrics, n_threads)
    tag = blocks.tag.decode("utf-8", "surrogateescape")
    return _Answer(values, n_missing, blocks.n_unjudged, blocks.rank_conflicts, tag)


def _values(
    qrels: Qrels, joined: tuple[Any, ...], metrics: list[Metric], n_threads: int
) -> NDArray[np.float64]:
    """Metrics of joined topics; those that tell the pool's unjudged documents get to see them."""
    topics, offsets, label, score, _, n_pooled = joined
    groups = Groups(offsets, topics, None, docs_descending=True)
    if not n_pooled:
        return np.array(
            list(evaluate(metrics, label, score, qid=groups, n_threads=n_threads).values())
        )
    plain = np.where(label < 0, np.nan, label)
    rows = {}
    for labels, asks in ((label, True), (plain, False)):
        part = [m for m in metrics if SPECS[m.name].pooled == asks]
        if part:
            rows.update(evaluate(part, labels, score, qid=groups, n_threads=n_threads))
    return np.array([rows[str(m)] for m in metrics])


def _collect(
    qrels: Qrels,
    names: Sequence[str],
    answers: Sequence[_Answer],
    metrics: list[Metric],
    preset: str | None,
) -> Evaluation:
    if not answers:
        raise ValueError("evaluate: at least one run is needed, got none")
    table = np.stack([answer.values for answer in answers], axis=1)
    return Evaluation(
        tuple(metrics),
        tuple(names),
        qrels.ids,
        {str(metric): rows for metric, rows in zip(metrics, table, strict=True)},
        tuple(answer.n_missing for answer in answers),
        tuple(answer.n_unjudged for answer in answers),
        tuple(answer.rank_conflicts for answer in answers),
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
