"""Judged lists as tables with named columns: data frames, CSV and Parquet.

A table has one row per document: a column for the label, one for the query, perhaps one for the
document id and one for weights, and every other column is a feature. pandas, polars and pyarrow
frames are read and made through narwhals.

>>> import pandas as pd
>>> import rankwise as rw
>>> frame = pd.DataFrame({"qid": ["a", "a", "b"], "label": [1, 0, 2], "bm25": [3.5, 1.0, 2.0]})
>>> queries = rw.from_frame(frame)
>>> queries.feature_names, queries.ids.tolist()
(('bm25',), ['a', 'b'])
>>> rw.to_frame(queries, "polars").columns
['label', 'qid', 'bm25']
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankwise import _files, _validate
from rankwise._files import Source
from rankwise.data import Queries

_MISSING = frozenset({"", "nan", "null", "na", "-nan", "+nan"})


def from_frame(
    frame: Any,
    *,
    label: str = "label",
    qid: str = "qid",
    doc: str | None = "doc",
    weight: str | None = "weight",
    features: Sequence[str] | None = None,
    dtype: DTypeLike | None = None,
    unjudged: str = "refuse",
) -> Queries:
    """Judged lists from a data frame.

    Parameters
    ----------
    frame : pandas, polars or pyarrow frame
        Anything narwhals takes as an eager frame.
    label, qid : str
        Names of the columns that must be there.
    doc, weight : str or None
        Names of the columns that are used when they are there.
    features : sequence of str, optional
        The feature columns and their order; all other columns unless set.
    dtype : float64 or float32, optional
        float32 when every feature is, float64 otherwise.
    unjudged : {"refuse", "ignore"}
        ``"ignore"`` keeps rows without a label as unjudged.

    Returns
    -------
    Queries
        Missing values (null or NaN) of features are NaN.

    Raises
    ------
    ValueError
        If a column is missing, or a value is not allowed.
    TypeError
        If a feature column does not hold numbers, or ``frame`` is no frame.
    """
    import narwhals.stable.v1 as nw

    where = "from_frame"
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise TypeError(
            f"{where}: frame must be a pandas, polars or pyarrow frame, got "
            f"{type(frame).__name__}; collect a lazy frame first"
        ) from None
    doc, weight, names = _columns(where, list(table.columns), label, qid, doc, weight, features)
    kind = _feature_type(where, table, names, dtype)
    X = np.empty((len(table), len(names)), kind)
    for j, name in enumerate(names):
        X[:, j] = _floats(table[name])
    return _queries(
        where,
        X,
        _numeric(where, table, label),
        _ids(where, table, qid),
        docs=None if doc is None else _ids(where, table, doc),
        weight=None if weight is None else _numeric(where, table, weight),
        names=names,
        unjudged=unjudged,
    )


def to_frame(
    queries: Queries,
    backend: str = "pandas",
    *,
    label: str = "label",
    qid: str = "qid",
    doc: str = "doc",
    weight: str = "weight",
) -> Any:
    """Judged lists as a data frame, one row per document.

    Parameters
    ----------
    queries : Queries
    backend : {"pandas", "polars", "pyarrow"}
    label, qid, doc, weight : str
        Names of the columns.

    Returns
    -------
    frame
        Columns label, qid, then doc and weight where there are any, then the features under
        their names (``f1``, ``f2``, ... without names).
    """
    import narwhals.stable.v1 as nw

    where = "to_frame"
    _validate.choice(where, "backend", backend, ("pandas", "polars", "pyarrow"))
    try:
        __import__(backend)
    except ImportError:
        raise ImportError(f"{where}: {backend} must be installed; pip install {backend}") from None
    if hasattr(queries.X, "nnz"):
        raise TypeError(
            f"{where}: a table holds dense features, got a sparse matrix; "
            "use queries.with_features(queries.X.toarray()) if that fits into memory"
        )
    names = _names(queries)
    columns: dict[str, Any] = {label: queries.y, qid: _plain(queries.qid)}
    if queries.docs is not None:
        columns[doc] = _plain(queries.docs)
    if queries.weight is not None:
        columns[weight] = queries.weight
    clash = set(columns) & set(names)
    if clash or len(set(names)) != len(names):
        raise ValueError(
            f"{where}: every column must have its own name, got {sorted(clash) or names} twice"
        )
    for j, name in enumerate(names):
        columns[name] = np.ascontiguousarray(queries.X[:, j])
    return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]


# ---------------------------------------------------------------- files


def read_csv(source: Source, *, separator: str | None = None, **options: Any) -> Queries:
    """Judged lists from a CSV file with a header line.

    Parameters
    ----------
    source : path, "-" or binary file object
        Plain or compressed text.
    separator : str, optional
        A comma, or a tab for names that end in ``.tsv``, unless set.
    **options
        Those of :func:`from_frame`.

    Returns
    -------
    Queries
        Empty cells, ``nan``, ``NULL`` and ``NA`` are missing values. Query ids are integers when
        all of them are, and strings otherwise; document ids are strings.

    Notes
    -----
    Uses pyarrow where it is installed (the extra ``parquet``) and Python's csv module otherwise;
    both give the same values.
    """
    with _files.opened(source) as text:
        name = text.name
        data = text.read()
    if separator is None:
        separator = "\t" if name.removesuffix(".gz").endswith(".tsv") else ","
    if len(separator) != 1:
        raise ValueError(f"read_csv: separator must be one character, got {separator!r}")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if _has("pyarrow"):
        table = _arrow_csv(data, separator, options)
        if table is not None:
            return table
        # Something is wrong in the file: the slow reader knows in which line.
    return _slow_csv(name, data, separator, **options)


def write_csv(
    queries: Queries, path: str | os.PathLike[str], *, separator: str | None = None
) -> None:
    """Judged lists as CSV with a header line; numbers have the digits that read back equal."""
    if separator is None:
        separator = "\t" if os.fspath(path).endswith(".tsv") else ","
    if _has("pyarrow"):
        from pyarrow import csv as arrow_csv

        table = to_frame(queries, "pyarrow")
        options = arrow_csv.WriteOptions(delimiter=separator, quoting_style="needed")
        with _files.atomic_write(path) as file:
            arrow_csv.write_csv(table, file, options)
        return
    dense = _dense("write_csv", queries)
    columns = {
        "label": queries.y,
        "qid": queries.qid,
        "doc": queries.docs,
        "weight": queries.weight,
    }
    kept = {name: column for name, column in columns.items() if column is not None}
    with _files.atomic_write(path, "w", newline="") as file:
        out = csv.writer(file, delimiter=separator, lineterminator="\n")
        out.writerow([*kept, *_names(queries)])
        for i in range(queries.n_docs):
            # str() of a NumPy number has the shortest digits of its type.
            out.writerow([*(str(c[i]) for c in kept.values()), *map(str, dense[i])])


def read_parquet(source: Source, **options: Any) -> Queries:
    """Judged lists from a Parquet file; options as for :func:`from_frame`."""
    name = (
        os.fspath(source)
        if isinstance(source, str | os.PathLike)
        else str(getattr(source, "name", "<file>"))
    )
    pa, parquet = _parquet(name)
    try:
        if name == "-":
            with _files.opened(source) as text:
                table = parquet.read_table(io.BytesIO(text.read()))
        else:
            table = parquet.read_table(source)
    except pa.ArrowException as error:
        raise ValueError(f"{name}: expected a Parquet file, got other bytes ({error})") from None
    return _at(name, table, options)


def write_parquet(queries: Queries, path: str | os.PathLike[str]) -> None:
    """Judged lists as a Parquet file."""
    _, parquet = _parquet(os.fspath(path))
    table = to_frame(queries, "pyarrow")
    with _files.atomic_write(path) as file:
        parquet.write_table(table, file)


def _parquet(name: str) -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f"{name}: Parquet files need pyarrow; pip install 'rankwise[parquet]'"
        ) from None
    return pa, parquet


# ---------------------------------------------------------------- columns


def _queries(
    where: str,
    X: NDArray[Any],
    y: NDArray[np.float64],
    qid: NDArray[Any],
    *,
    docs: NDArray[Any] | None,
    weight: NDArray[np.float64] | None,
    names: Sequence[str],
    unjudged: str,
) -> Queries:
    _validate.choice(where, "unjudged", unjudged, ("refuse", "ignore"))
    if unjudged == "refuse" and np.isnan(y).any():
        row = int(np.flatnonzero(np.isnan(y))[0])
        raise ValueError(
            f'{where}: labels must not be missing, got none in row {row}; say unjudged="ignore" '
            "to keep unjudged documents"
        )
    return Queries.from_arrays(X, y, qid, docs=docs, weight=weight, feature_names=tuple(names))


def _feature_type(where: str, table: Any, names: Sequence[str], dtype: DTypeLike | None) -> Any:
    import narwhals.stable.v1 as nw

    schema = table.schema
    for name in names:
        kind = schema[name]
        if not (kind.is_numeric() or kind == nw.Boolean):
            raise TypeError(
                f"{where}: feature columns must hold numbers, got {name!r} of type {kind}; "
                "leave it out with features=[...]"
            )
    if dtype is None:
        return np.float32 if all(schema[name] == nw.Float32 for name in names) else np.float64
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"{where}: dtype must be float32 or float64, got {kind}")
    return kind


def _floats(series: Any) -> NDArray[Any]:
    """A numeric column as floats, null as NaN."""
    import narwhals.stable.v1 as nw

    if series.dtype not in (nw.Float32, nw.Float64):
        series = series.cast(nw.Float64)
    if series.is_null().any():
        series = series.fill_null(float("nan"))
    return np.asarray(
        series.to_numpy(), dtype=np.float32 if series.dtype == nw.Float32 else np.float64
    )


def _numeric(where: str, table: Any, name: str) -> NDArray[np.float64]:
    import narwhals.stable.v1 as nw

    series = table[name]
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        raise TypeError(f"{where}: column {name!r} must hold numbers, got type {series.dtype}")
    return _floats(series).astype(np.float64)


def _ids(where: str, table: Any, name: str) -> NDArray[Any]:
    """An id column as integers or strings."""
    series = table[name]
    if series.is_null().any():
        row = int(np.flatnonzero(series.is_null().to_numpy())[0])
        raise ValueError(f"{where}: column {name!r} must not be missing, got none in row {row}")
    if series.dtype.is_integer():
        return np.asarray(series.to_numpy())
    return np.array([str(v) for v in series.to_list()])


def _columns(
    where: str,
    columns: Sequence[str],
    label: str,
    qid: str,
    doc: str | None,
    weight: str | None,
    features: Sequence[str] | None,
) -> tuple[str | None, str | None, list[str]]:
    """The document and weight columns if they are there, and the feature columns."""
    for name in (label, qid):
        if name not in columns:
            raise ValueError(
                f"{where}: a column {name!r} must be there, got {_listed(columns)}; "
                "name the columns with label= and qid="
            )
    doc = doc if doc in columns else None
    weight = weight if weight in columns else None
    special = {label, qid, doc, weight}
    names = [c for c in columns if c not in special] if features is None else list(features)
    for name in names:
        if name not in columns:
            raise ValueError(f"{where}: a column {name!r} must be there, got {_listed(columns)}")
    if not names:
        raise ValueError(f"{where}: expected at least one feature column, got {_listed(columns)}")
    return doc, weight, names


def _at(name: str, table: Any, options: dict[str, Any]) -> Queries:
    """from_frame with the name of the file in its messages."""
    try:
        return from_frame(table, **options)
    except (ValueError, TypeError) as error:
        text = str(error).removeprefix("from_frame: ").removeprefix("Queries: ")
        raise type(error)(f"{name}: {text}") from None


def _arrow_csv(data: bytes, separator: str, options: dict[str, Any]) -> Queries | None:
    """The queries of a CSV file, or None when pyarrow or a check refuses it."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    text_columns = [options.get("qid", "qid"), options.get("doc", "doc")]
    words = {form for word in _MISSING for form in (word, word.upper(), word.capitalize())}
    words |= {"NaN", "-NaN", "+NaN"}
    try:
        first = data.split(b"\n", 1)[0].decode().rstrip("\r")
        header = next(csv.reader([first], delimiter=separator))
        table = arrow_csv.read_csv(
            io.BytesIO(data),
            parse_options=arrow_csv.ParseOptions(delimiter=separator),
            convert_options=arrow_csv.ConvertOptions(
                column_types={
                    c: pa.string() if c in text_columns else pa.float64() for c in header
                },
                null_values=sorted(words),
                strings_can_be_null=False,
            ),
        )
        at = table.column_names.index(text_columns[0])
        ids = table.column(at).to_pylist()
        if "" in ids:
            return None
        table = table.set_column(at, text_columns[0], pa.array(_typed_ids(ids)))
        return from_frame(table, **options)
    except (pa.ArrowException, ValueError, StopIteration):
        return None


def _slow_csv(
    where: str,
    data: bytes,
    separator: str,
    *,
    label: str = "label",
    qid: str = "qid",
    doc: str | None = "doc",
    weight: str | None = "weight",
    features: Sequence[str] | None = None,
    dtype: DTypeLike | None = None,
    unjudged: str = "refuse",
) -> Queries:
    """The same by Python's csv module; a bad line is named."""
    _validate.choice(where, "unjudged", unjudged, ("refuse", "ignore"))
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        bad = data[error.start : error.start + 4]
        raise ValueError(f"{where}:{line}: expected UTF-8 text, got {bad!r}") from None
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        header = next(lines, [])
        doc, weight, names = _columns(where, header, label, qid, doc, weight, features)
        numeric = [name for name in (label, weight, *names) if name is not None]
        texts = [name for name in (qid, doc) if name is not None]
        at = {name: i for i, name in enumerate(header)}
        columns: dict[str, list[Any]] = {name: [] for name in (*numeric, *texts)}
        for row in lines:
            place = f"{where}:{lines.line_num}"
            if not row:
                continue
            if len(row) != len(header):
                raise ValueError(
                    f"{place}: expected {len(header)} fields as in the header, got {len(row)}"
                )
            for name in texts:
                columns[name].append(row[at[name]])
            for name in numeric:
                columns[name].append(_cell(place, name, row[at[name]]))
            _check_row(place, columns, label, qid, weight, unjudged)
    except csv.Error as error:
        raise ValueError(f"{where}:{lines.line_num}: expected CSV, got {error}") from None
    if not columns[label]:
        raise ValueError(f"{where}: expected at least one document, got a header alone")
    X = np.array([columns[name] for name in names], dtype=dtype or np.float64).T
    return _queries(
        where,
        np.ascontiguousarray(X),
        np.array(columns[label]),
        _typed_ids(columns[qid]),
        docs=None if doc is None else np.array(columns[doc]),
        weight=None if weight is None else np.array(columns[weight]),
        names=names,
        unjudged=unjudged,
    )


def _check_row(
    place: str,
    columns: dict[str, list[Any]],
    label: str,
    qid: str,
    weight: str | None,
    unjudged: str,
) -> None:
    """What a row must hold besides numbers."""
    value = columns[label][-1]
    if value != value and unjudged == "refuse":
        raise ValueError(
            f'{place}: labels must not be missing; say unjudged="ignore" to keep unjudged documents'
        )
    if value < 0:
        raise ValueError(f"{place}: labels must be at least 0, got {value:g}")
    if not columns[qid][-1]:
        raise ValueError(f"{place}: expected a query id in column {qid!r}, got nothing")
    if weight is not None and not columns[weight][-1] >= 0:
        raise ValueError(f"{place}: weights must be at least 0, got {columns[weight][-1]:g}")


def _cell(place: str, column: str, text: str) -> float:
    text = text.strip()
    if text.lower() in _MISSING:
        return np.nan
    try:
        value = float("" if "_" in text else text)
    except ValueError:
        raise ValueError(
            f"{place}: expected a number in column {column!r}, got {text[:40]!r}"
        ) from None
    if not np.isfinite(value):
        raise ValueError(f"{place}: column {column!r} must be finite, got {text[:40]!r}")
    return value


def _typed_ids(texts: list[str]) -> NDArray[Any]:
    """Texts as integers when each is one in its shortest form."""
    try:
        numbers = np.array([int(t) for t in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(texts)
    shortest = all(str(n) == t for n, t in zip(numbers.tolist(), texts, strict=True))
    return numbers if shortest else np.array(texts)


def _has(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None


def _names(queries: Queries) -> list[str]:
    if queries.feature_names is not None:
        return list(queries.feature_names)
    return [f"f{j + 1}" for j in range(queries.n_features)]


def _dense(where: str, queries: Queries) -> NDArray[Any]:
    if hasattr(queries.X, "nnz"):
        raise TypeError(
            f"{where}: a table holds dense features, got a sparse matrix; write LETOR text (.txt) "
            "or .npz instead"
        )
    return np.asarray(queries.X)


def _plain(ids: NDArray[Any]) -> Any:
    """Ids as narwhals takes them: integers as they are, strings as a list."""
    return ids if ids.dtype.kind in "iu" else [str(v) for v in ids]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return f"{shown}, ... ({len(names)} columns)" if len(names) > 8 else shown or "no columns"
