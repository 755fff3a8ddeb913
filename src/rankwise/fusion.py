"""Fusion of runs: several systems' answers to the same topics become one run.

:func:`fuse` gives every topic's documents to one of :data:`~rankwise.AGGREGATORS` and returns what
it was given: a :class:`~rankwise.Run` for runs, a dictionary for dictionaries, columns for columns
of integer ids. :func:`tune_weights` finds weights of the runs on judged topics.

>>> import rankwise as rw
>>> r1 = rw.Run.from_dict({"q": {"A": 0.9, "B": 0.5, "C": 0.1}})
>>> r2 = rw.Run.from_dict({"q": {"B": 0.8, "C": 0.7, "D": 0.2}})
>>> r3 = rw.Run.from_dict({"q": {"A": 0.4, "B": 0.3}})
>>> fused = rw.fuse([r1, r2, r3], "rrf")
>>> fused
Run(1 topics, 4 documents, tag 'rrf')
>>> fused.doc, fused.score.round(4)
(array(['B', 'A', 'C', 'D'], dtype='<U1'), array([0.0487, 0.0328, 0.032 , 0.0159]))
>>> rw.fuse([r1, r2, r3], "comb_mnz", norm="minmax", k=2).to_dict()
{'q': {'B': 4.5, 'A': 4.0}}

A topic is fused over the runs that answer it: a run without the topic is an empty list there and
takes no part. Documents that a run did not retrieve follow the aggregator's ``missing=`` rule.
Equal scores in a run share their places unless ``ties="stable"`` keeps the order of its rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _validate
from rankwise._rank_lists import RankLists
from rankwise.aggregate import AGGREGATORS, normalised
from rankwise.data import Groups, group_rows
from rankwise.trec import Ids, Run

if TYPE_CHECKING:
    from rankwise.metrics import Metric
    from rankwise.trec import Qrels

Floats = NDArray[np.float64]
Columns = tuple[NDArray[Any], NDArray[np.int64], Floats]


def fuse(
    runs: Sequence[Any] | Mapping[str, Any],
    method: str | Callable[..., Floats] = "rrf",
    *,
    norm: str | None = None,
    weights: ArrayLike | Mapping[str, float] | None = None,
    k: int | None = None,
    tag: str | None = None,
    n_threads: int = 0,
    **options: Any,
) -> Any:
    """One run out of several, topic by topic.

    Parameters
    ----------
    runs : sequence or mapping by name
        :class:`Run` objects; or dictionaries ``{qid: {doc: score}}``; or triples of columns
        ``(qid, doc, score)`` with integer documents. All of one kind, at least one.
    method : str or callable
        A name of :data:`AGGREGATORS`, with options in brackets if any
        (``"rrf(rank_constant=10)"``), or a function that takes :class:`RankLists` and returns
        their scores.
    norm : str, optional
        How each run's scores are normalised first, topic by topic; see :func:`normalise_scores`.
        Without it CombSUM and its family add the runs' scores as they are.
    weights : array-like of shape (n_runs,), or mapping by name, optional
        Weights of the runs, at least 0.
    k : int, optional
        Documents to keep of each topic; all without it.
    tag : str, optional
        Name of the fused run; the method without it.
    n_threads : int
        0 for the default of the machine. The result does not depend on it.
    **options
        Passed to the aggregator, such as ``missing="last"`` or ``rank_constant=10``.

    Returns
    -------
    Run, dict or tuple of columns
        What ``runs`` are, documents of each topic best first. Topics stand in order of first
        appearance over the runs, documents with equal scores too.

    Raises
    ------
    ValueError
        For an unknown method or option, scores that are not finite, a document that stands twice
        in a topic, or no run at all.
    TypeError
        If runs are not all of one of the kinds above.

    Notes
    -----
    O(n) in the number of documents to bring the lists together, plus the aggregator and a sort.

    Examples
    --------
    >>> import rankwise as rw
    >>> rw.fuse([{"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 9.0}, "p": {"c": 1.0}}], "borda")
    {'q': {'a': 1.0, 'b': 1.0}, 'p': {'c': 0.0}}
    >>> import numpy as np
    >>> one, two = np.array([7, 7]), np.array([7])
    >>> columns = [(one, [10, 11], [2.0, 1.0]), (two, [11], [5.0])]
    >>> [column.tolist() for column in rw.fuse(columns, "rrf", rank_constant=0)]
    [[7, 7], [11, 10], [1.5, 1.0]]
    """
    names, listed = _named(runs)
    aligned = _aligned(listed, n_threads)
    name, function, given = _method(method)
    weight = _weights(weights, names)
    scores = _scores(aligned.lists, function, {**given, **options}, norm, weight, n_threads)
    return aligned.output(scores, k, tag or name, n_threads)


def align_runs(runs: Sequence[Any] | Mapping[str, Any], *, n_threads: int = 0) -> RankLists:
    """The documents of several runs as rank lists, one query per topic.

    Parameters
    ----------
    runs
        As :func:`fuse` takes them.

    Returns
    -------
    RankLists
        ``items`` are the documents, ``groups.ids`` the topics; what any aggregator takes.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.align_runs([{"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 9.0}}])
    >>> lists.matrix()
    array([[ 2., nan],
           [ 1.,  9.]])
    """
    return _aligned(_named(runs)[1], n_threads, with_items=True).lists


# --- Reading what was given -------------------------------------------------------------------


def _named(runs: Any) -> tuple[list[str] | None, list[Any]]:
    if isinstance(runs, Run):
        raise TypeError("fuse: runs must be a sequence or a mapping of runs, got one Run")
    if isinstance(runs, Mapping):
        values = list(runs.values())
        # A mapping by name holds runs; a single {qid: {doc: score}} holds numbers two levels down.
        if values and all(isinstance(v, Run | tuple) or _is_nested(v) for v in values):
            return [str(name) for name in runs], values
        raise TypeError(
            "fuse: runs must be a sequence of runs or a mapping of names to runs, got a mapping of "
            f"{type(values[0]).__name__ if values else 'nothing'}; put a single run into a list"
        )
    listed = list(runs)
    if not listed:
        raise ValueError("fuse: at least one run is needed, got none")
    return None, listed


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(v, Mapping) for v in value.values())


@dataclass(frozen=True)
class _Aligned:
    """Rank lists of the topics, and how scores of their items become a run again."""

    lists: RankLists
    build: Callable[[NDArray[np.int64], NDArray[np.int64], Floats, str], Any]

    def output(self, scores: Floats, k: int | None, tag: str, n_threads: int) -> Any:
        depth = _validate.depth("fuse", k)
        rows, cuts = _core.best_rows(scores, self.lists.groups.offsets, depth, n_threads)
        return self.build(rows, cuts, scores, tag)


def _aligned(runs: list[Any], n_threads: int, with_items: bool = False) -> _Aligned:
    if all(isinstance(run, Run) for run in runs):
        return _align_runs(runs, n_threads, with_items)
    if all(isinstance(run, Mapping) for run in runs):
        return _align_dicts(runs, with_items)
    if all(isinstance(run, tuple) and len(run) == 3 for run in runs):
        return _align_columns(runs, n_threads)
    kinds = ", ".join(dict.fromkeys(type(run).__name__ for run in runs))
    raise TypeError(
        "fuse: runs must all be Run, all dictionaries, or all (qid, doc, score) columns, "
        f"got {kinds}"
    )


def _slices(
    topics: list[list[Any]], offsets: list[NDArray[np.int64]]
) -> tuple[list[Any], NDArray[np.int64], NDArray[np.int64]]:
    """All topics by first appearance, and the rows of each in every run."""
    number: dict[Any, int] = {}
    for ids in topics:
        for name in ids:
            number.setdefault(name, len(number))
    begin = np.zeros((len(topics), len(number)), np.int64)
    end = np.zeros_like(begin)
    for run, (ids, cuts) in enumerate(zip(topics, offsets, strict=True)):
        columns = [number[name] for name in ids]
        begin[run, columns], end[run, columns] = cuts[:-1], cuts[1:]
    return list(number), begin, end


def _lists(
    groups: Groups, arrays: tuple[Any, ...], n_runs: int, items: NDArray[Any] | None
) -> RankLists:
    _, starts, item, score = arrays[:4]
    return RankLists(groups, n_runs, starts, item, score, items)


def _align_runs(runs: list[Run], n_threads: int, with_items: bool) -> _Aligned:
    topics, begin, end = _slices([r.topics.tolist() for r in runs], [r.offsets for r in runs])
    data, cuts = [r.docs.data for r in runs], [r.docs.offsets for r in runs]
    found: Any = _core.align_names(data, cuts, [r.score for r in runs], begin, end, n_threads)
    _refuse_repeats(found, lambda run, row: runs[run].docs[row])
    offsets, run_of, row_of = found[0], found[4], found[5]
    ids = Ids.from_values(topics, where="fuse", name="qid")
    items = None
    if with_items:
        items = Ids(*_core.gather_names(data, cuts, run_of, row_of)).to_numpy()
    lists = _lists(Groups(offsets, np.array(topics)), found, len(runs), items)

    def build(rows: NDArray[np.int64], kept: NDArray[np.int64], scores: Floats, tag: str) -> Run:
        docs = Ids(*_core.gather_names(data, cuts, run_of[rows], row_of[rows]))
        return Run(ids, kept, docs, scores[rows], tag)

    return _Aligned(lists, build)


def _align_dicts(runs: list[Mapping[Any, Any]], with_items: bool) -> _Aligned:
    plain = [run if type(run) is dict else dict(run) for run in runs]
    topics = list(dict.fromkeys(topic for run in plain for topic in run))
    offsets, starts, item, score, docs = _core.dict_lists(plain, topics)
    _finite(score)
    ids = np.empty(len(topics), object)
    ids[:] = topics
    items = None
    if with_items:
        items = np.empty(len(docs), object)
        items[:] = docs
    lists = _lists(Groups(offsets, ids), (offsets, starts, item, score), len(runs), items)

    def build(rows: NDArray[np.int64], kept: NDArray[np.int64], scores: Floats, tag: str) -> Any:
        return _core.nested(topics, docs, rows, kept, scores)

    return _Aligned(lists, build)


def _align_columns(runs: list[tuple[Any, Any, Any]], n_threads: int) -> _Aligned:
    groups, docs, scores = [], [], []
    for number, (qid, doc, score) in enumerate(runs):
        where = f"fuse: run {number}"
        group = group_rows(qid, where=where)
        ids = np.asarray(doc)
        if ids.dtype.kind not in "iu" or ids.ndim != 1:
            raise TypeError(
                f"{where}: documents of columns must be integers, got {ids.dtype}; "
                "Run.from_arrays takes strings"
            )
        values = _validate.vector(where, "score", score)
        _validate.same_length(where, qid=range(group.n_docs), doc=ids, score=values)
        _finite(values)
        groups.append(group)
        docs.append(np.ascontiguousarray(group.gather(ids), np.int64))
        scores.append(np.ascontiguousarray(group.gather(values)))
    topics, begin, end = _slices([g.ids.tolist() for g in groups], [g.offsets for g in groups])
    found: Any = _core.align_integers(docs, scores, begin, end, n_threads)
    _refuse_repeats(found, lambda run, row: int(docs[run][row]))
    ids, items = np.array(topics), found[4]
    lists = _lists(Groups(found[0], ids), found, len(runs), items)

    def build(rows: NDArray[np.int64], kept: NDArray[np.int64], out: Floats, tag: str) -> Columns:
        return np.repeat(ids, np.diff(kept)), items[rows], out[rows]

    return _Aligned(lists, build)


def _refuse_repeats(found: tuple[Any, ...], name: Callable[[int, int], Any]) -> None:
    if len(found) == 3:
        run, first, second = found
        raise ValueError(
            f"fuse: a document must appear once in a topic, got {name(run, second)!r} at rows "
            f"{first} and {second} of run {run}"
        )


def _finite(score: Floats) -> None:
    # A sum is finite only if all terms are, and costs one pass; look closer only otherwise.
    with np.errstate(all="ignore"):
        total = score.sum()
    if np.isfinite(total):
        return
    bad = np.flatnonzero(~np.isfinite(score))
    if len(bad):
        raise ValueError(
            f"fuse: scores must be finite, got {score[bad[0]]} ({len(bad)} such documents); "
            "leave out what a run did not retrieve"
        )


# --- Aggregating ------------------------------------------------------------------------------


def _method(
    method: str | Callable[..., Floats],
) -> tuple[str, Callable[..., Floats], dict[str, Any]]:
    """Name, function and options of a method as text or function."""
    if callable(method):
        return getattr(method, "__name__", "fused"), method, {}
    from rankwise._text import parse_call

    name, options = parse_call("fuse", method)
    if name not in AGGREGATORS:
        raise _validate.unknown("aggregator", name, AGGREGATORS)
    return name, AGGREGATORS[name], options


def _scores(
    lists: RankLists,
    function: Callable[..., Floats],
    options: dict[str, Any],
    norm: str | None,
    weights: Floats | None,
    n_threads: int,
) -> Floats:
    where = getattr(function, "__name__", "fuse")
    if norm is not None:
        lists = normalised("fuse", lists, norm, n_threads)
    known = inspect.signature(function).parameters
    for name in options:
        if name not in known:
            offered = [p for p in known if p not in ("R", "qid", "norm", "weights", "n_threads")]
            raise _validate.unknown(f"option of {where}", name, offered)
    if weights is not None:
        if "weights" not in known:
            raise ValueError(f"fuse: {where} takes no weights; leave them out")
        options = {**options, "weights": weights}
    if "n_threads" in known:
        options = {**options, "n_threads": n_threads}
    scores = _validate.vector("fuse", "scores", function(lists, **options))
    if len(scores) != lists.n_items or np.isnan(scores).any():
        raise ValueError(
            f"fuse: {where} must return one number per item, {lists.n_items}, got {len(scores)} "
            f"({int(np.isnan(scores).sum())} of them NaN)"
        )
    return scores


def _weights(weights: Any, names: list[str] | None) -> Floats | None:
    if isinstance(weights, FusionWeights):
        weights = (
            dict(zip(weights.names, weights.weights, strict=True)) if names else weights.weights
        )
    if isinstance(weights, Mapping):
        if names is None:
            raise TypeError("fuse: weights by name need runs by name; pass {name: run, ...}")
        missing = [name for name in names if name not in weights]
        extra = [name for name in weights if name not in names]
        if missing or extra:
            raise ValueError(
                f"fuse: weights must name every run once, got none for {missing} "
                f"and {extra} that are no runs"
            )
        weights = [weights[name] for name in names]
    return None if weights is None else np.asarray(weights, np.float64)


# --- Weights ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FusionWeights:
    """Weights of runs, found by :func:`tune_weights`; ``fuse(..., weights=)`` takes it.

    Attributes
    ----------
    names : tuple of str
    weights : float64 array of shape (n_runs,)
        At least 0, summing to 1.
    value : float
        The metric's mean over the training topics with these weights.
    equal_value : float
        The same with equal weights.
    n_queries : int
        Training topics that the mean covers.
    n_fusions : int
        Fusions that were tried.
    """

    names: tuple[str, ...]
    weights: Floats
    value: float
    equal_value: float
    n_queries: int
    n_fusions: int


_FACTORS = (0.0, 0.25, 0.5, 0.8, 1.25, 2.0, 4.0)


def tune_weights(
    runs: Sequence[Run] | Mapping[str, Run],
    qrels: Qrels,
    metric: Metric | str = "ap",
    method: str | Callable[..., Floats] = "comb_sum",
    *,
    norm: str | None = None,
    topics: Iterable[str] | None = None,
    preset: str | None = None,
    max_rounds: int = 10,
    n_threads: int = 0,
    **options: Any,
) -> FusionWeights:
    """Weights of the runs under which fusion is best on judged topics, by any metric.

    Coordinate search: from equal weights, one run's weight at a time is multiplied by 0, 1/4, 1/2,
    .8, 1.25, 2 and 4 and the best is kept, until a round over all runs changes nothing. Ties keep
    what there is, so that the result is one and the same every time.

    Parameters
    ----------
    runs : sequence or mapping by name of Run
    qrels : Qrels
    metric : Metric or str
        What to maximise; a larger value must be better.
    method, norm, **options
        As in :func:`fuse`; the method must take weights.
    topics : iterable of str, optional
        Training topics; all judged ones without it. Measure on others.
    preset : str, optional
        Conventions of a metric given as text.
    max_rounds : int
        Rounds at most.

    Returns
    -------
    FusionWeights

    Raises
    ------
    ValueError
        If a topic is not judged, or the metric is undefined on all topics.

    Notes
    -----
    O(rounds * n_runs * 7) fusions and evaluations.

    Examples
    --------
    >>> import rankwise as rw
    >>> qrels = rw.Qrels.from_dict({"q": {"a": 1}})
    >>> good, bad = ({"q": {"a": 1.0, "b": 0.5}}, {"q": {"b": 1.0, "a": 0.9}})
    >>> runs = {"good": rw.Run.from_dict(good), "bad": rw.Run.from_dict(bad)}
    >>> found = rw.tune_weights(runs, qrels, "rr", "comb_sum", norm="minmax")
    >>> found.weights.round(3), found.value, found.equal_value
    (array([0.556, 0.444]), 1.0, 0.75)
    """
    from rankwise.evaluation import evaluate_run
    from rankwise.metrics import parse_metric

    wanted = parse_metric(metric, preset=preset)
    names, listed = _named(runs)
    aligned = _aligned(listed, n_threads)
    _, function, given = _method(method)
    lists = aligned.lists if norm is None else normalised("fuse", aligned.lists, norm, n_threads)
    chosen = _training(qrels, topics)
    tried = 0

    def value(weights: Floats) -> tuple[float, int]:
        nonlocal tried
        tried += 1
        scores = _scores(lists, function, {**given, **options}, None, weights, n_threads)
        fused = aligned.output(scores, None, "fused", n_threads)
        mean = wanted.average(evaluate_run(qrels, fused, wanted).per_query(wanted)[0][chosen])
        return mean.value, mean.n_queries

    weights = np.ones(len(listed))
    best, n_queries = equal, _ = value(weights)
    if n_queries == 0:
        raise ValueError(f"tune_weights: {wanted} must be defined on a training topic, got none")
    for _ in range(
        int(_validate.number("tune_weights", "max_rounds", max_rounds, low=1, integer=True))
    ):
        changed = False
        for run in range(len(listed)):
            start = weights[run] or 1.0
            for factor in _FACTORS:
                trial = weights.copy()
                trial[run] = start * factor
                if not trial.any():
                    continue
                new = value(trial)[0]
                if new > best + 1e-12:
                    best, weights, changed = new, trial, True
        if not changed:
            break
    if names is None:
        names = [getattr(run, "tag", None) or f"run{i + 1}" for i, run in enumerate(listed)]
    return FusionWeights(tuple(names), weights / weights.sum(), best, equal, n_queries, tried)


def _training(qrels: Qrels, topics: Iterable[str] | None) -> NDArray[np.bool_]:
    if topics is None:
        return np.ones(len(qrels.ids), bool)
    wanted = {str(topic) for topic in topics}
    unknown = sorted(wanted - set(qrels.ids.tolist()))
    if unknown:
        raise ValueError(
            f"tune_weights: training topics must be judged, got {unknown[0]!r} without judgements"
        )
    return np.isin(qrels.ids, sorted(wanted))
