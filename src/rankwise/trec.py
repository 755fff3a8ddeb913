"""TREC runs and qrels as columns: reading, writing, joining, evaluating.

A *run* lists the documents a system retrieved for each topic, one line each
(``qid Q0 doc rank score tag``); *qrels* hold the judgements (``qid iteration doc label``).
:func:`read_run` and :func:`read_qrels` read such files, :class:`Run` and :class:`Qrels` also come
from arrays, frames and dictionaries. :func:`join` brings both together in the form that every
metric of rankwise takes; :mod:`rankwise.evaluation` does that for whole runs and files.

>>> import rankwise as rw
>>> qrels = rw.Qrels.from_dict({"q1": {"d1": 1, "d2": 0, "d3": 2}, "q2": {"d1": 1}})
>>> run = rw.Run.from_dict({"q1": {"d3": 1.5, "d9": 1.2, "d1": 0.3}})
>>> judged = rw.join(qrels, run)
>>> judged.y_true[:4], judged.y_score[:4]
(array([ 2., nan,  1.,  0.]), array([ 1.5,  1.2,  0.3, -inf]))
>>> judged.n_missing  # the run does not answer q2: it counts there, with nothing retrieved
1

What is decided
---------------
==============================  ==================================================================
scores and ranks                Scores rule, as in trec_eval; ``rank_conflicts`` counts documents
                                whose stated rank puts them above one with a higher score.
equal scores                    The metric's ``ties`` decides. Joined lists hold documents with
                                equal scores by descending id, which is trec_eval's order.
a document twice in a topic     An error that names both lines.
NaN or infinite scores          An error. A run lists what was retrieved, so -inf is refused too.
label below 0                   In the pool but not judged, as in trec_eval: NaN in ``y_true``.
document without judgement      NaN in ``y_true``: not relevant for most metrics, left out by those
                                that look at judged documents only.
judged topic, not in the run    Counts, with nothing retrieved (``trec_eval -c``).
topic of the run, not judged    Left out; ``n_unjudged`` says how many.
labels                          Any number; 1.5 stays 1.5.
text                            Fields are separated by any white space. Blank lines and lines that
                                start with ``#`` are passed over, fields behind the tag ignored.
==============================  ==================================================================

Ids are text and compared byte by byte. Bytes that are not UTF-8 survive reading and writing (they
are Python's surrogate escapes in between).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise import _core, _files, _validate
from rankwise.data import Groups, group_rows

Source = _files.Source


@dataclass(frozen=True, eq=False, repr=False)
class Ids:
    """A column of strings in one piece of memory: UTF-8 bytes, and where each string starts.

    Indexing with an integer gives a ``str``, with anything else (a slice, a mask, positions)
    another ``Ids``; ``np.asarray`` gives an array of ``str``, which takes four bytes for every
    character of the longest string.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def from_values(cls, values: ArrayLike, *, where: str = "Ids", name: str = "ids") -> Ids:
        """Ids from strings or integers."""
        if isinstance(values, Ids):
            return values
        if hasattr(values, "to_numpy"):
            values = values.to_numpy()
        array = np.asarray(values)
        if array.ndim != 1:
            raise ValueError(f"{where}: {name} must be one id per row, got shape {array.shape}")
        if array.dtype.kind in "iu":
            array = array.astype(str)
        if array.dtype.kind == "U" and len(array):
            points = np.ascontiguousarray(array).view(np.uint32).reshape(len(array), -1)
            packed = _core.narrow_strings(points)
            if packed is not None:
                return cls(*packed)._checked(where, name)
        texts = array.tolist()
        for row, text in enumerate(texts):
            if isinstance(text, bool) or not isinstance(text, str | int):
                raise TypeError(
                    f"{where}: {name} must be strings or integers, got {text!r} at row {row}"
                )
        encoded = [str(t).encode("utf-8", "surrogateescape") for t in texts]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(b) for b in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)._checked(where, name)

    def _checked(self, where: str, name: str) -> Ids:
        """Ids that a file can hold: not empty, without white space or control characters."""
        bad = np.flatnonzero(self.data <= 32)
        empty = np.flatnonzero(np.diff(self.offsets) == 0)
        if len(bad) or len(empty):
            at = [int(np.searchsorted(self.offsets, b, side="right")) - 1 for b in bad[:1]]
            row = min([*at, *empty[:1].tolist()])
            raise ValueError(
                f"{where}: {name} must not be empty or hold white space, got {self[row]!r} "
                f"at row {row}"
            )
        return self

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        shown = ", ".join(repr(self[i]) for i in range(min(3, len(self))))
        return f"Ids({len(self)}: {shown}{', ...' if len(self) > 3 else ''})"

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int | np.integer):
            i = range(len(self))[int(index)]
            raw = self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()
            return raw.decode("utf-8", "surrogateescape")
        return self.take(np.arange(len(self))[index])

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype)

    def take(self, rows: NDArray[np.int64]) -> Ids:
        """The ids at the given positions."""
        rows = np.ascontiguousarray(rows, np.int64)
        return Ids(*_core.pick_strings(self.data, self.offsets, *_NO_IDS, rows))

    def tolist(self) -> list[str]:
        """The ids as Python strings."""
        raw, ends = self.data.tobytes(), self.offsets.tolist()
        if raw.isascii():
            text = raw.decode("ascii")
            return [text[a:b] for a, b in pairwise(ends)]
        return [raw[a:b].decode("utf-8", "surrogateescape") for a, b in pairwise(ends)]

    def to_numpy(self) -> NDArray[np.str_]:
        """The ids as an array of ``str``."""
        if len(self) == 0:
            return np.empty(0, "U1")
        if self.data.tobytes().isascii() if len(self.data) < 4096 else self.data.max() < 128:
            points = _core.widen_strings(self.data, self.offsets)
            return cast(NDArray[np.str_], points.view(f"U{points.shape[1]}")[:, 0])
        return np.array(self.tolist())

    @property
    def _columns(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return self.data, self.offsets


_NO_IDS = (np.empty(0, np.uint8), np.zeros(1, np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class _Table:
    """What runs and qrels share: rows of documents, grouped by topic."""

    topics: Ids
    offsets: NDArray[np.int64]
    docs: Ids

    @property
    def n_docs(self) -> int:
        return len(self.docs)

    @property
    def n_queries(self) -> int:
        return len(self.topics)

    @cached_property
    def ids(self) -> NDArray[np.str_]:
        """Topic ids, in order of first appearance."""
        return self.topics.to_numpy()

    @property
    def groups(self) -> Groups:
        """The grouping of the rows by topic."""
        return Groups(self.offsets, self.ids)

    @cached_property
    def qid(self) -> NDArray[np.str_]:
        """Topic id of each row."""
        return np.repeat(self.ids, np.diff(self.offsets))

    @cached_property
    def doc(self) -> NDArray[np.str_]:
        """Document id of each row."""
        return self.docs.to_numpy()

    def __len__(self) -> int:
        return self.n_queries

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_queries} topics, {self.n_docs} documents)"

    def _nested(self, values: NDArray[np.float64]) -> dict[str, dict[str, float]]:
        docs, numbers, cuts = self.docs.tolist(), values.tolist(), self.offsets.tolist()
        return {
            topic: dict(zip(docs[a:b], numbers[a:b], strict=True))
            for topic, (a, b) in zip(self.topics.tolist(), pairwise(cuts), strict=True)
        }


def _table(
    where: str, qid: Any, doc: Any, extra: Any, **values: Any
) -> tuple[Ids, NDArray[np.int64], Ids, Ids | None, list[NDArray[np.float64]]]:
    """Columns in any order, grouped by topic; a document must appear once in a topic."""
    qids = Ids.from_values(qid, where=where, name="qid")
    docs = Ids.from_values(doc, where=where, name="doc")
    extras = None if extra is None else Ids.from_values(extra, where=where, name="subtopic")
    columns = {name: _validate.vector(where, name, v) for name, v in values.items()}
    n = _validate.same_length(where, qid=qids, doc=docs, subtopic=extras, **columns)
    if n == 0:
        raise ValueError(f"{where}: at least one row is needed, got none")
    groups = group_rows(qids.to_numpy(), where=where)
    topics = Ids.from_values(groups.ids, where=where, name="qid")
    comment = [t for t in topics.tolist() if t.startswith("#")]
    if comment:
        raise ValueError(
            f"{where}: qid must not start with '#', which starts a comment in files, "
            f"got {comment[0]!r}"
        )
    for name, column in columns.items():
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            raise ValueError(
                f"{where}: {name} must be finite, got {column[bad[0]]} at row {bad[0]} "
                f"({len(bad)} such rows)"
            )
    if groups.order is not None:
        docs = docs.take(groups.order)
        extras = None if extras is None else extras.take(groups.order)
    more = (None, None) if extras is None else extras._columns
    twice = _core.first_duplicate(groups.offsets, *docs._columns, *more)
    if twice is not None:
        topic = int(np.searchsorted(groups.offsets, twice[0], side="right")) - 1
        rows = twice if groups.order is None else sorted(groups.order[list(twice)].tolist())
        raise ValueError(
            f"{where}: a document must appear once in a topic{' and subtopic' if extras else ''}, "
            f"got {docs[twice[0]]!r} in topic {topics[topic]!r} at rows {rows[0]} and {rows[1]}"
        )
    return topics, groups.offsets, docs, extras, [groups.gather(c) for c in columns.values()]


def _flatten(where: str, nested: Mapping[Any, Mapping[Any, float]]) -> tuple[list[Any], ...]:
    qid: list[Any] = []
    doc: list[Any] = []
    value: list[Any] = []
    for topic, entries in nested.items():
        if not isinstance(entries, Mapping):
            raise TypeError(
                f"{where}: a mapping of topics to mappings of documents is needed, "
                f"got {type(entries).__name__} for topic {topic!r}"
            )
        qid.extend([topic] * len(entries))
        doc.extend(entries.keys())
        value.extend(entries.values())
    return qid, doc, value


def _frame_columns(where: str, frame: Any, names: Sequence[str]) -> list[NDArray[Any]]:
    import narwhals.stable.v1 as nw

    table = nw.from_native(frame, eager_only=True)
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise ValueError(
            f"{where}: the frame must have a column {missing[0]!r}, "
            f"got {', '.join(map(repr, table.columns))}; name yours by keyword"
        )
    return [table[name].to_numpy() for name in names]


def _to_frame(columns: dict[str, NDArray[Any]], backend: str) -> Any:
    import narwhals.stable.v1 as nw

    _validate.choice("to_frame", "backend", backend, ("pandas", "polars", "pyarrow"))
    return nw.from_dict(columns, backend=cast(Any, backend)).to_native()


@dataclass(frozen=True, eq=False, repr=False)
class Run(_Table):
    """Documents that a system retrieved, with their scores.

    Attributes
    ----------
    topics : Ids of length n_queries
        Topic ids, in order of first appearance (``ids`` gives them as an array).
    offsets : int64 array of shape (n_queries + 1,)
        Topic ``i`` owns the rows ``offsets[i]:offsets[i+1]``.
    docs : Ids of length n_docs
        Document ids (``doc`` gives them as an array, ``qid`` the topic of each row).
    score : float64 array of shape (n_docs,)
        Finite scores, higher is better.
    tag : str or None
        Name of the system; the last one where a file holds several, as in trec_eval.
    rank_conflicts : int
        Documents whose rank in the file puts them above one with a higher score. Ranks are
        otherwise not used.

    Examples
    --------
    >>> import rankwise as rw
    >>> run = rw.Run.from_arrays(["q2", "q1", "q2"], ["b", "a", "c"], [0.5, 2.0, 0.7], tag="mine")
    >>> run
    Run(2 topics, 3 documents, tag 'mine')
    >>> run.qid, run.doc
    (array(['q2', 'q2', 'q1'], dtype='<U2'), array(['b', 'c', 'a'], dtype='<U1'))
    """

    score: NDArray[np.float64]
    tag: str | None = None
    rank_conflicts: int = 0

    @classmethod
    def from_arrays(
        cls, qid: ArrayLike, doc: ArrayLike, score: ArrayLike, *, tag: str | None = None
    ) -> Run:
        """A run from one topic id, document id and score per row, in any order.

        Raises
        ------
        ValueError
            If lengths differ, an id is empty or holds white space, a score is not finite, or a
            document appears twice in a topic.
        """
        topics, offsets, docs, _, (scores,) = _table("Run", qid, doc, None, score=score)
        return cls(topics, offsets, docs, scores, tag)

    @classmethod
    def from_dict(cls, nested: Mapping[Any, Mapping[Any, float]], *, tag: str | None = None) -> Run:
        """A run from ``{qid: {doc: score}}``, the form pytrec_eval and ranx take."""
        return cls.from_arrays(*_flatten("Run", nested), tag=tag)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        qid: str = "qid",
        doc: str = "doc",
        score: str = "score",
        tag: str | None = None,
    ) -> Run:
        """A run from a pandas, polars or pyarrow frame; the keywords name its columns."""
        return cls.from_arrays(*_frame_columns("Run", frame, [qid, doc, score]), tag=tag)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """``{qid: {doc: score}}``."""
        return self._nested(self.score)

    def to_frame(self, backend: str = "pandas") -> Any:
        """A pandas, polars or pyarrow frame (by name) with the columns qid, doc and score."""
        return _to_frame({"qid": self.qid, "doc": self.doc, "score": self.score}, backend)

    def __repr__(self) -> str:
        tag = "" if self.tag is None else f", tag {self.tag!r}"
        return f"Run({self.n_queries} topics, {self.n_docs} documents{tag})"


@dataclass(frozen=True, eq=False, repr=False)
class Qrels(_Table):
    """Relevance judgements.

    Attributes
    ----------
    topics, offsets, docs
        As in :class:`Run`.
    label : float64 array of shape (n_docs,)
        Labels, larger is more relevant; below 0 the document is in the pool but was not judged.
    subtopics : Ids of length n_docs or None
        The second column of diversity qrels, where a document has one label for each subtopic.

    Examples
    --------
    >>> import rankwise as rw
    >>> qrels = rw.Qrels.from_dict({"q1": {"a": 1, "b": 0}})
    >>> qrels
    Qrels(1 topics, 2 documents)
    >>> qrels.to_dict()
    {'q1': {'a': 1.0, 'b': 0.0}}
    """

    label: NDArray[np.float64]
    subtopics: Ids | None = None

    @classmethod
    def from_arrays(
        cls, qid: ArrayLike, doc: ArrayLike, label: ArrayLike, *, subtopic: ArrayLike | None = None
    ) -> Qrels:
        """Qrels from one topic id, document id and label per row, in any order.

        Raises
        ------
        ValueError
            If lengths differ, an id is empty or holds white space, a label is not finite, or a
            document appears twice in a topic (with ``subtopic``: twice in a subtopic).
        """
        topics, offsets, docs, subtopics, (labels,) = _table(
            "Qrels", qid, doc, subtopic, label=label
        )
        return cls(topics, offsets, docs, labels, subtopics)

    @classmethod
    def from_dict(cls, nested: Mapping[Any, Mapping[Any, float]]) -> Qrels:
        """Qrels from ``{qid: {doc: label}}``, the form pytrec_eval and ranx take."""
        return cls.from_arrays(*_flatten("Qrels", nested))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        qid: str = "qid",
        doc: str = "doc",
        label: str = "label",
        subtopic: str | None = None,
    ) -> Qrels:
        """Qrels from a pandas, polars or pyarrow frame; the keywords name its columns."""
        names = [qid, doc, label] + ([] if subtopic is None else [subtopic])
        columns = _frame_columns("Qrels", frame, names)
        return cls.from_arrays(*columns[:3], subtopic=None if subtopic is None else columns[3])

    def to_dict(self) -> dict[str, dict[str, float]]:
        """``{qid: {doc: label}}``; not for qrels with subtopics."""
        return self._plain("Qrels.to_dict")._nested(self.label)

    def to_frame(self, backend: str = "pandas") -> Any:
        """A frame with the columns qid, doc, label and, where there are some, subtopic."""
        columns: dict[str, NDArray[Any]] = {"qid": self.qid, "doc": self.doc, "label": self.label}
        if self.subtopics is not None:
            columns["subtopic"] = self.subtopics.to_numpy()
        return _to_frame(columns, backend)

    def without_subtopics(self) -> Qrels:
        """One judgement per document: its largest label over the subtopics.

        Notes
        -----
        O(n log n) in the number of judgements.
        """
        if self.subtopics is None:
            return self
        keys = np.char.add(np.char.add(self.qid, " "), self.doc)
        unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        best = np.full(len(unique), -np.inf)
        np.maximum.at(best, inverse.ravel(), self.label)
        order = np.argsort(first, kind="stable")
        rows = first[order]
        return Qrels.from_arrays(self.qid[rows], self.docs.take(rows), best[order])

    def _plain(self, where: str) -> Qrels:
        if self.subtopics is not None:
            raise ValueError(
                f"{where}: one judgement per document is needed, got qrels with subtopics; "
                "take qrels.without_subtopics()"
            )
        return self

    @cached_property
    def _index(self) -> _core.Judgements:
        return _core.Judgements(
            *self.topics._columns, self.offsets, *self.docs._columns, self.label
        )


@dataclass(frozen=True, eq=False, repr=False)
class Judged:
    """A run joined with judgements: what every metric takes.

    Attributes
    ----------
    y_true : float64 array of shape (n_docs,)
        Labels; NaN for a document that was not judged.
    y_score : float64 array of shape (n_docs,)
        The run's scores; -inf for a judged document that it did not retrieve.
    groups : Groups
        One query for each judged topic, in the order of the qrels; pass it as ``qid``. Inside a
        query documents with equal scores stand by descending id (``docs_descending``).
    docs : Ids of length n_docs
        Document ids.
    pooled : bool array of shape (n_docs,) or None
        True for documents that the qrels list with a label below 0: in the pool, not judged.
        None where there are none. (infAP is the metric that asks.)
    n_missing : int
        Judged topics that the run does not answer; every document of theirs is -inf.
    n_unjudged : int
        Topics of the run without judgements, left out.
    """

    y_true: NDArray[np.float64]
    y_score: NDArray[np.float64]
    groups: Groups
    docs: Ids
    pooled: NDArray[np.bool_] | None
    n_missing: int
    n_unjudged: int

    @property
    def qid(self) -> NDArray[np.str_]:
        """Topic id of each row."""
        return np.repeat(self.groups.ids, self.groups.sizes)

    def __repr__(self) -> str:
        return f"Judged({len(self.groups)} topics, {len(self.y_true)} documents)"


def join(qrels: Qrels, run: Run, *, n_threads: int = 0) -> Judged:
    """Brings a run and judgements together, topic by topic.

    Every judged topic becomes a query: first the documents that the run retrieved, best first,
    with their label or NaN where there is none; then the judged documents that it missed, scored
    -inf. Neither argument is changed.

    Parameters
    ----------
    qrels : Qrels
    run : Run
    n_threads : int
        0 for the default of the machine. The result does not depend on it.

    Returns
    -------
    Judged

    Raises
    ------
    ValueError
        If no topic of the run is judged, which hints at ids of another kind, or the qrels have
        subtopics.

    Notes
    -----
    O(n) for runs stored best first, O(n log n) otherwise.

    Examples
    --------
    >>> import rankwise as rw
    >>> qrels = rw.Qrels.from_dict({"q": {"a": 1, "b": 1}})
    >>> judged = rw.join(qrels, rw.Run.from_dict({"q": {"x": 2.0, "a": 1.0}}))
    >>> judged.docs.tolist(), judged.y_true, judged.y_score
    (['x', 'a', 'b'], array([nan,  1.,  1.]), array([  2.,   1., -inf]))
    """
    if not isinstance(qrels, Qrels) or not isinstance(run, Run):
        raise TypeError(
            f"join: a Qrels and a Run are needed, in this order, got {type(qrels).__name__} "
            f"and {type(run).__name__}"
        )
    joined = _join(qrels._plain("join"), run, True, n_threads)
    _, offsets, label, score, source, n_pooled, n_missing, n_unjudged = joined
    pooled = label == -1 if n_pooled else None
    return Judged(
        label if pooled is None else np.where(pooled, np.nan, label),
        score,
        Groups(offsets, qrels.ids, None, docs_descending=True),
        Ids(*_core.pick_strings(*run.docs._columns, *qrels.docs._columns, source)),
        pooled,
        n_missing,
        n_unjudged,
    )


def _join(qrels: Qrels, run: Run, keep_source: bool, n_threads: int) -> tuple[Any, ...]:
    """The kernel's own form of a join: unjudged documents of the pool have label -1."""
    columns = (*run.topics._columns, run.offsets, *run.docs._columns, run.score)
    joined: tuple[Any, ...] = qrels._index.join_columns(*columns, keep_source, n_threads)
    if joined[-2] == qrels.n_queries:
        raise _nothing_common("join", qrels, run.n_queries)
    return joined


def _nothing_common(where: str, qrels: Qrels, n_topics: int) -> ValueError:
    return ValueError(
        f"{where}: at least one topic of the run must be judged, got none of its {n_topics}; "
        f"are they of another kind than those of the qrels, such as {qrels.topics[0]!r}?"
    )


# ---------------------------------------------------------------------------------------- files


def read_run(source: Source, *, n_threads: int = 0) -> Run:
    """Reads a TREC run: lines ``qid Q0 doc rank score tag``.

    Parameters
    ----------
    source : path or binary file object
        Plain text or compressed (gzip, xz, bzip2, zstd, told by its first bytes); ``"-"`` is
        standard input. A path that ends in ``.json`` holds ``{qid: {doc: score}}``, ranx's form.
    n_threads : int
        0 for the default of the machine. The result does not depend on it.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        With file and line: fewer than six fields, a score that is not a finite number, a document
        twice in a topic, bytes that are not text; or an empty file, or a truncated archive.

    Notes
    -----
    Rows of a topic need not be together; the run holds them together, topics in order of first
    appearance. O(n).

    Examples
    --------
    >>> import io, rankwise as rw
    >>> rw.read_run(io.BytesIO(b"q1 Q0 d7 1 2.5 bm25"))
    Run(1 topics, 1 documents, tag 'bm25')
    """
    return _parse_run(*_load(source), n_threads)


def _parse_run(data: NDArray[np.uint8], name: str, n_threads: int) -> Run:
    if _is_json(name):
        return Run.from_dict(_json(data, name), tag=os.path.basename(name).split(".json")[0])
    topics, offsets, docs, score, _, tag, conflicts = _core.read_run(data, name, n_threads)
    text = tag.decode("utf-8", "surrogateescape")
    return Run(Ids(*topics), offsets, Ids(*docs), score, text, conflicts)


def read_qrels(source: Source, *, subtopics: bool = False, n_threads: int = 0) -> Qrels:
    """Reads TREC qrels: lines ``qid iteration doc label``.

    Parameters
    ----------
    source : path or file object
        As in :func:`read_run`.
    subtopics : bool
        Whether the second field is a subtopic, so that a document may have one label for each.
        Otherwise it is not used.
    n_threads : int
        0 for the default of the machine. The result does not depend on it.

    Returns
    -------
    Qrels

    Raises
    ------
    ValueError
        With file and line, as in :func:`read_run`; a line must hold exactly four fields.

    Examples
    --------
    >>> import io, rankwise as rw
    >>> rw.read_qrels(io.BytesIO(b"q1 0 d7 1\\nq1 0 d8 0")).label
    array([1., 0.])
    """
    data, name = _load(source)
    if _is_json(name):
        return Qrels.from_dict(_json(data, name))
    topics, offsets, docs, label, extra, _, _ = _core.read_qrels(data, name, subtopics, n_threads)
    return Qrels(Ids(*topics), offsets, Ids(*docs), label, Ids(*extra) if subtopics else None)


def write_run(run: Run, path: str | os.PathLike[str], *, tag: str | None = None) -> None:
    """Writes a run as TREC text, best document first in each topic, ranks from 1.

    Scores are written with as many digits as reading them back exactly takes. The file appears
    under its name only when it is complete. A path that ends in ``.gz``, ``.xz``, ``.bz2`` or
    ``.zst`` is compressed.

    Parameters
    ----------
    run : Run
    path : path
    tag : str, optional
        The last field of each line; the run's own, or ``rankwise`` where it has none.
    """
    name = tag if tag is not None else run.tag or "rankwise"
    tags = Ids.from_values([name], where="write_run", name="tag")
    text = _core.format_run(
        *run.topics._columns, run.offsets, *run.docs._columns, run.score, tags.data
    )
    with _files.atomic_write(path) as file:
        file.write(text)


def write_qrels(qrels: Qrels, path: str | os.PathLike[str]) -> None:
    """Writes qrels as TREC text; the second field is 0 or the subtopic. See :func:`write_run`."""
    more = (None, None) if qrels.subtopics is None else qrels.subtopics._columns
    text = _core.format_qrels(
        *qrels.topics._columns, qrels.offsets, *qrels.docs._columns, qrels.label, *more
    )
    with _files.atomic_write(path) as file:
        file.write(text)


def _load(source: Source) -> tuple[NDArray[np.uint8], str]:
    """All bytes of a source, unpacked, and the name that messages use for it."""
    with _files.opened(source) as file:
        return file.text(), file.name


def _is_json(name: str) -> bool:
    stem, suffix = os.path.splitext(name)
    return (os.path.splitext(stem)[1] if suffix in _files.COMPRESSED else suffix) == ".json"


def _json(data: NDArray[np.uint8], name: str) -> Any:
    import json

    try:
        nested = json.loads(data.tobytes())
    except ValueError as error:
        raise ValueError(f"{name}: expected JSON, got something else ({error})") from None
    if not isinstance(nested, dict):
        raise ValueError(f"{name}: expected an object of topics, got {type(nested).__name__}")
    return nested
