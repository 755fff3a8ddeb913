"""Reading and writing judged lists.

:func:`read` and :func:`write` go by the name of the file: LETOR / SVMlight text with query ids
(``.txt``, ``.svm``, anything unknown), CSV (``.csv``, ``.tsv``), Parquet (``.parquet``) and NumPy's
``.npz``; text may be compressed (``.gz``, ``.xz``, ``.bz2``, ``.zst``). All of them give
:class:`~rankwise.Queries`.

A line of LETOR text is one document::

    2 qid:10032 1:0.056537 2:0.000000 5:1 # docid = GX029-35-5894638

a label, the query, features counted from 1 in ascending order, and perhaps a comment. Features
that are not there are 0 (or NaN with ``absent=float("nan")``); ``NULL``, ``nan`` and ``NA`` are
missing values, NaN. The rows of a query need not be together.

>>> import io
>>> import rankwise as rw
>>> text = io.BytesIO(b"1 qid:a 1:0.5 2:3 # d1\\n0 qid:a 2:NULL # d2\\n2 qid:b 1:1 # d3\\n")
>>> queries = rw.read(text)
>>> queries
Queries(2 queries, 3 documents, 2 features, dense float64)
>>> queries.X.tolist(), queries.docs.tolist()
([[0.5, 3.0], [0.0, nan], [1.0, 0.0]], ['d1', 'd2', 'd3'])
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankwise import _files, _validate, tables
from rankwise._files import Source
from rankwise.data import Groups, Queries, group_rows


def read(source: Source, format: str | None = None, **options: Any) -> Queries:
    """Judged lists from a file in any of the formats.

    Parameters
    ----------
    source : path, "-" or binary file object
        ``"-"`` is standard input.
    format : {"letor", "csv", "parquet", "npz"}, optional
        By the ending of the name unless set; LETOR text for unknown endings and file objects.
    **options
        Those of :func:`read_letor`, :func:`read_csv` or :func:`read_parquet`.

    Returns
    -------
    Queries

    Raises
    ------
    ValueError
        For a bad file, with its name, the line and what was expected there.
    """
    return _READERS[_format(source, format)](source, **options)


def write(
    queries: Queries, path: str | os.PathLike[str], format: str | None = None, **options: Any
) -> None:
    """Writes judged lists, in a form that :func:`read` turns into the same values.

    Parameters
    ----------
    queries : Queries
    path : path or "-"
        The old file, if there is one, stays until the new one is complete.
    format : {"letor", "csv", "parquet", "npz"}, optional
        By the ending of the name unless set.

    Raises
    ------
    ValueError
        When the ending is that of no format and none is given.
    OSError
        When the path cannot be written.
    """
    if format is None and str(path) != "-" and _ending(path) not in _ENDINGS:
        raise ValueError(
            f"{os.fspath(path)}: the format must be known by the ending, one of "
            f"{', '.join(sorted(e for e in _ENDINGS if e))}; give format="
        )
    _WRITERS[_format(path, format)](queries, path, **options)


# ---------------------------------------------------------------- LETOR text


def read_letor(
    source: Source,
    *,
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
    n_features: int | None = None,
    absent: float = 0.0,
    unjudged: str = "refuse",
    docs: bool = True,
    query: str | os.PathLike[str] | None = None,
    weight: str | os.PathLike[str] | None = None,
    n_threads: int = 0,
) -> Queries:
    """Judged lists from LETOR / SVMlight text.

    Values are those of Python's ``float()`` to the last bit, rounded once more for float32.

    Parameters
    ----------
    source : path, "-" or binary file object
        Plain or compressed (gzip, xz, bzip2; zstd with the extra ``zstd``).
    sparse : bool
        A CSR matrix instead of a dense one; zeros are not stored.
    dtype : float64 or float32
        Type of the features.
    n_features : int, optional
        Number of features; the largest index in the file unless set. Give it to read files of one
        collection to equal widths.
    absent : 0.0 or nan
        Value of a feature that a row does not name (dense only).
    unjudged : {"refuse", "ignore"}
        ``"ignore"`` keeps documents whose label is missing or -1 as unjudged, with the label NaN.
    docs : bool
        Keep the comments as document ids: X of a comment that begins ``docid = X``, otherwise the
        whole comment.
    query : path, optional
        LightGBM's file of query sizes, for text without ``qid:``. The file ``<source>.query``
        is used by itself when it is there and the text has no query ids.
    weight : path, optional
        LightGBM's file of document weights, one a line; ``<source>.weight`` is used by itself.
    n_threads : int
        0 is all. The result does not depend on it.

    Returns
    -------
    Queries
        Query ids are integers when all of them are, and strings otherwise.

    Raises
    ------
    ValueError
        For the first bad line of the file.

    Notes
    -----
    O(size of the text). Besides the result it holds a few megabytes; a sparse matrix is copied
    once when the rows of some query are not together.
    """
    where = "read_letor"
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"{where}: dtype must be float32 or float64, got {kind}")
    _validate.choice(where, "unjudged", unjudged, ("refuse", "ignore"))
    if not (absent == 0 or absent != absent):
        raise ValueError(f"{where}: absent must be 0 or nan, got {absent!r}")
    if sparse and absent != 0:
        raise ValueError(
            f"{where}: a sparse matrix holds 0 for absent features; use sparse=False with "
            "absent=nan"
        )
    width = 0
    if n_features is not None:
        width = int(
            _validate.number(where, "n_features", n_features, low=1, high=2**31 - 1, integer=True)
        )
    query = query if query is not None else _beside(source, ".query")
    weight = weight if weight is not None else _beside(source, ".weight")
    reader_type = _core().LetorReader32 if kind == np.float32 else _core().LetorReader64
    with _files.opened(source) as text:
        reader = reader_type(
            sparse=sparse,
            absent_nan=absent != absent,
            unjudged=unjudged == "ignore",
            docs=docs,
            qid_optional=query is not None,
            n_features=width,
            total_text=text.size,
            n_threads=n_threads,
        )
        try:
            text.feed(reader.feed)
        except _core().LineError as error:
            raise ValueError(f"{text.name}:{error}") from None
        return _assemble(text.name, reader, sparse, query, weight)


def _assemble(name: str, reader: Any, sparse: bool, query: Any, weight: Any) -> Queries:
    n, width = reader.n_rows, reader.n_features
    if n == 0:
        raise ValueError(f"{name}: expected at least one document, got an empty file")
    if width == 0:
        raise ValueError(f"{name}: expected at least one feature, got rows with labels only")
    if reader.has_qid:
        groups = _groups(name, reader, n)
    else:
        sizes = _sizes(query, n)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        groups = Groups(offsets, np.arange(1, len(sizes) + 1))
    weights = None if weight is None else _weights(weight, n)
    if sparse:
        import scipy.sparse as sp

        starts = reader.take_starts()
        if starts[-1] <= np.iinfo(np.int32).max:
            starts = starts.astype(np.int32)
        X = sp.csr_matrix(
            (reader.take_values(), reader.take_columns(), starts), shape=(n, width), copy=False
        )
        X.has_canonical_format = True
    else:
        X = reader.take_values().reshape(n, width)
        if groups.order is not None:
            _core().permute_rows(X, groups.order)
    docs = _docs(reader, n)
    y = reader.take_labels()
    return Queries(
        groups.gather(X) if sparse else X,
        groups.gather(y),
        groups.offsets,
        groups.ids,
        None if docs is None else groups.gather(docs),
        None if weights is None else groups.gather(weights),
        order=groups.order,
    )


def _groups(name: str, reader: Any, n: int) -> Groups:
    """The grouping, from the rows where another id begins."""
    starts, ids = reader.run_rows(), reader.run_ids()
    if isinstance(ids, list):
        try:
            ids = np.array([i.decode() for i in ids])
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}: query ids must be UTF-8 text, got {error.object!r}"
            ) from None
    if len(np.unique(ids)) == len(ids):
        return Groups(np.append(starts, n), ids)
    return group_rows(np.repeat(ids, np.diff(np.append(starts, n))), where=name)


def _docs(reader: Any, n: int) -> NDArray[Any] | None:
    if not reader.has_docs:
        return None
    codes = reader.docs_matrix()
    if codes is None:
        docs = np.empty(n, object)
        docs[:] = [reader.doc(i).decode("utf-8", "replace") for i in range(n)]
        return docs
    return codes.view(f"<U{codes.shape[1]}")[:, 0]  # type: ignore[no-any-return]


def _beside(source: Source, ending: str) -> Path | None:
    """The side file of a source, if it has one."""
    if not isinstance(source, str | os.PathLike) or os.fspath(source) == "-":
        return None
    path = Path(os.fspath(source) + ending)
    return path if path.is_file() else None


def _side_numbers(path: Any, what: str, parse: Callable[[str], float]) -> list[float]:
    """One number a line; blank lines are passed over."""
    numbers = []
    with _files.opened(path) as text:
        lines = text.read().decode("utf-8", "replace").splitlines()
        for i, line in enumerate(lines, 1):
            if line.strip():
                try:
                    value = parse(line)
                except ValueError:
                    value = -1.0
                if not 0 <= value < np.inf:
                    raise ValueError(f"{text.name}:{i}: expected {what}, got {line.strip()[:40]!r}")
                numbers.append(value)
    return numbers


def _sizes(path: Any, n: int) -> NDArray[np.int64]:
    sizes = np.array(_side_numbers(path, "the number of documents of a query", int), dtype=np.int64)
    if sizes.sum() != n:
        raise ValueError(
            f"{os.fspath(path)}: the sizes of the queries must sum to the {n} documents, "
            f"got {sizes.sum()}"
        )
    return sizes[sizes > 0]


def _weights(path: Any, n: int) -> NDArray[np.float64]:
    weights = np.array(_side_numbers(path, "a weight of at least 0", float), dtype=np.float64)
    if len(weights) != n:
        raise ValueError(
            f"{os.fspath(path)}: expected one weight for each of the {n} documents, "
            f"got {len(weights)}"
        )
    return weights


# ---------------------------------------------------------------- writing LETOR text


def write_letor(queries: Queries, path: str | os.PathLike[str], *, n_threads: int = 0) -> None:
    """Writes judged lists as LETOR text.

    Every number has the fewest digits that read back to the same value. Document ids become
    comments (``#docid = X``), weights go to LightGBM's side file ``<path>.weight``. Of a sparse
    matrix only the values that are not zero are written, and the last feature of the first row,
    which keeps the width.

    Parameters
    ----------
    queries : Queries
    path : path or "-"
        Compressed when it ends in .gz, .xz, .bz2 or .zst.
    n_threads : int
        0 is all.

    Raises
    ------
    ValueError
        If an id cannot be written as text, or a value is infinite.
    OSError
        When the path cannot be written.
    """
    where = "write_letor"
    X = queries.X
    sparse = hasattr(X, "nnz")
    values = X.data if sparse else X
    if np.isinf(values).any() or np.isinf(queries.y).any():
        raise ValueError(f"{where}: features and labels must be finite or NaN, got infinity")
    _check_weight_file(where, queries, path)
    ids = _id_texts(where, queries)
    labels = np.ascontiguousarray(queries.y, dtype=np.float64)
    if not sparse:
        X = np.ascontiguousarray(X)
    step = max(1, (4 << 20) // (10 * max(queries.n_features, 1)))
    of_row = np.repeat(np.arange(queries.n_queries), queries.sizes)
    with _files.atomic_write(path) as file:
        for begin in range(0, queries.n_docs, step):
            end = min(begin + step, queries.n_docs)
            qid = b"\n".join([ids[q] for q in of_row[begin:end]])
            comments = _comments(where, queries, begin, end)
            if sparse:
                text = _core().format_letor_csr(
                    X.data,
                    X.indices,
                    X.indptr,
                    queries.n_features,
                    labels,
                    qid,
                    comments,
                    begin,
                    end,
                    n_threads,
                )
            else:
                text = _core().format_letor(X, labels, qid, comments, begin, end, n_threads)
            file.write(text)
    if queries.weight is not None:
        with _files.atomic_write(os.fspath(path) + ".weight", "w") as file:
            file.writelines(f"{float(w)!r}\n" for w in queries.weight)


def _check_weight_file(where: str, queries: Queries, path: str | os.PathLike[str]) -> None:
    name = os.fspath(path)
    if queries.weight is None and _beside(path, ".weight") is not None:
        raise ValueError(
            f"{where}: {name}.weight would be read as the weights of the new file; remove it first"
        )
    if queries.weight is not None and name == "-":
        raise ValueError(
            f"{where}: weights need a side file, got standard output; write to a path, or as CSV"
        )


def _id_texts(where: str, queries: Queries) -> list[bytes]:
    texts = [str(i) for i in queries.ids]
    for text in texts:
        if not text or any(c in text for c in " \t\r\n\v\f#"):
            raise ValueError(
                f"{where}: query ids must not be empty or hold white space or '#', got {text!r}"
            )
    return [text.encode() for text in texts]


def _comments(where: str, queries: Queries, begin: int, end: int) -> bytes:
    if queries.docs is None:
        return b""
    return "\n".join([_comment(where, str(d)) for d in queries.docs[begin:end]]).encode()


def _comment(where: str, doc: str) -> str:
    """A comment that reads back as the document id."""
    if not doc:
        return ""
    if not any(c in doc for c in _BLANKS):
        return f"#docid = {doc}"
    named = doc.startswith("docid") and doc[5:].lstrip(" \t\r\v\f").startswith("=")
    if "\n" in doc or doc.strip(_BLANKS) != doc or named:
        raise ValueError(
            f"{where}: a document id must fit a comment (one line, no white space around it, "
            f"not beginning 'docid ='), got {doc!r}"
        )
    return f"# {doc}"


_BLANKS = " \t\r\n\v\f"


# ---------------------------------------------------------------- .npz


def read_scores(source: Source, n_docs: int | None = None) -> NDArray[np.float64]:
    """Scores from a text file with one number per line; blank lines are passed over.

    Parameters
    ----------
    source : path, "-" or binary file object
    n_docs : int, optional
        How many scores there must be.

    Returns
    -------
    float64 array of shape (n_docs,), in the order of the file.
    """
    with _files.opened(source) as text:
        name, lines = text.name, text.read().split(b"\n")
    scores = []
    for number, line in enumerate(lines, 1):
        if word := line.strip():
            try:
                scores.append(float(word))
            except ValueError:
                shown = word.decode("utf-8", "replace")
                raise ValueError(f"{name}:{number}: expected one score, got {shown!r}") from None
    if n_docs is not None and len(scores) != n_docs:
        raise ValueError(
            f"{name}: expected one score for each of the {n_docs} documents, got {len(scores)}"
        )
    return np.array(scores)


def write_scores(y_score: NDArray[np.float64], path: str | os.PathLike[str]) -> None:
    """Writes one score per line, with the digits that reading them back exactly takes."""
    with _files.atomic_write(path, "w") as out:
        out.writelines(f"{score!r}\n" for score in y_score.tolist())


def read_npz(source: Source) -> Queries:
    """Judged lists from NumPy's ``.npz``: as :func:`write` leaves them, or ``X``, ``y``, ``qid``.

    Parameters
    ----------
    source : path or binary file object

    Returns
    -------
    Queries
    """
    with _files.opened(source) as text:
        name, data = text.name, text.read()
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = dict(stored) if hasattr(stored, "files") else {}
    except (
        ValueError,
        OSError,
        EOFError,
        KeyError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
    ) as error:
        raise ValueError(
            f"{name}: expected NumPy's .npz, got other or damaged data ({error})"
        ) from None
    needed = {"y"} | ({"X"} if "data" not in arrays else {"data", "indices", "indptr", "shape"})
    needed |= {"qid"} if "offsets" not in arrays else {"ids"}
    if not needed <= set(arrays):
        raise ValueError(
            f"{name}: expected the arrays {', '.join(sorted(needed))}, "
            f"got {', '.join(sorted(arrays)) or 'none'}"
        )
    try:
        X = arrays.get("X")
        if X is None:
            import scipy.sparse as sp

            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            X = sp.csr_matrix(parts, shape=tuple(arrays["shape"]))
            X.check_format(full_check=True)
        qid: Any = arrays.get("qid")
        if qid is None:
            qid = np.repeat(arrays["ids"], np.diff(arrays["offsets"]))
        names = arrays.get("feature_names")
        return Queries.from_arrays(
            X,
            arrays["y"],
            qid,
            docs=arrays.get("docs"),
            weight=arrays.get("weight"),
            feature_names=None if names is None else tuple(names.tolist()),
        )
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{name}: {str(error).removeprefix('Queries: ')}") from None


def write_npz(queries: Queries, path: str | os.PathLike[str]) -> None:
    """Judged lists as NumPy's ``.npz``, without pickle: the fastest form to read again."""
    X = queries.X
    arrays: dict[str, Any]
    if hasattr(X, "nnz"):
        arrays = {
            "data": X.data,
            "indices": X.indices,
            "indptr": X.indptr,
            "shape": np.array(X.shape),
        }
    else:
        arrays = {"X": X}
    arrays |= {"y": queries.y, "offsets": queries.offsets, "ids": _without_pickle(queries.ids)}
    if queries.docs is not None:
        arrays["docs"] = _without_pickle(queries.docs)
    if queries.weight is not None:
        arrays["weight"] = queries.weight
    if queries.feature_names is not None:
        arrays["feature_names"] = np.array(queries.feature_names, dtype=str)
    with _files.atomic_write(path) as file:
        np.savez(file, **arrays)


def _without_pickle(ids: NDArray[Any]) -> NDArray[Any]:
    return ids.astype(str) if ids.dtype.kind == "O" else ids


def _core() -> Any:
    from rankwise import _core

    return _core


def _format(source: Any, format: str | None) -> str:
    if format is not None:
        if format not in _READERS:
            raise _validate.unknown("format", format, _READERS)
        return format
    if not isinstance(source, str | os.PathLike):
        return "letor"
    return _ENDINGS.get(_ending(source), "letor")


def _ending(path: str | os.PathLike[str]) -> str:
    name = Path(path)
    if name.suffix in _files.COMPRESSED:
        name = name.with_suffix("")
    return name.suffix.lower()


_ENDINGS = {
    "": "letor",
    ".txt": "letor",
    ".letor": "letor",
    ".dat": "letor",
    ".svm": "letor",
    ".libsvm": "letor",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
}
_READERS: dict[str, Callable[..., Queries]] = {
    "letor": read_letor,
    "csv": tables.read_csv,
    "parquet": tables.read_parquet,
    "npz": read_npz,
}
_WRITERS: dict[str, Callable[..., None]] = {
    "letor": write_letor,
    "csv": tables.write_csv,
    "parquet": tables.write_parquet,
    "npz": write_npz,
}
