"""The file of a search: every finished trial, and what was searched on which data.

SQLite writes a trial wholly or not at all, so a search that is killed loses the trial it was at and
nothing else. While a search runs, it holds the file for itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.data import Queries

_FORMAT = "rankwise search 1"
_TABLES = """
CREATE TABLE search (name TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE trial (
    number INTEGER PRIMARY KEY, params TEXT NOT NULL, value REAL, seconds REAL NOT NULL,
    per_query BLOB NOT NULL, stopped TEXT NOT NULL, error TEXT NOT NULL
);
"""


def described(
    ranker: str,
    space: dict[str, Any],
    metric: Any,
    method: str,
    seed: int,
    parts: Sequence[tuple[Queries, Queries]],
) -> dict[str, str]:
    """What a file must agree on to go on with a search."""
    return {
        "format": _FORMAT,
        "ranker": ranker,
        "metric": str(metric),
        "method": method,
        "space": "; ".join(f"{k}={_space_text(v)}" for k, v in space.items()),
        "random_state": str(seed),
        "data": _fingerprint(parts),
    }


def _space_text(values: Any) -> str:
    return repr(values) if isinstance(values, tuple) else str(values)


def _fingerprint(parts: Sequence[tuple[Queries, Queries]]) -> str:
    """A hash of features, labels, weights and queries of all parts."""
    digest = hashlib.blake2b(digest_size=16)
    for queries in (q for part in parts for q in part):
        for field in dataclasses.fields(queries):
            if field.name in ("docs", "order", "feature_names", "ids"):
                continue
            value = getattr(queries, field.name)
            arrays = [value.data, value.indices, value.indptr] if hasattr(value, "nnz") else [value]
            for array in arrays:
                if isinstance(array, np.ndarray):
                    digest.update(f"{field.name} {array.shape} {array.dtype}".encode())
                    digest.update(np.ascontiguousarray(array).view(np.uint8).data)
                else:
                    digest.update(f"{field.name} {array!r}".encode())
    return digest.hexdigest()


class Study:
    """The trials in a file. ``identity`` says what the search is; a file of another is refused."""

    def __init__(self, path: str | os.PathLike[str], identity: dict[str, str]) -> None:
        self.path = os.fspath(path)
        with self._errors():
            self._file = sqlite3.connect(self.path, timeout=0.5)
            try:
                self._open(identity)
            except BaseException:
                self._file.close()
                raise

    def _open(self, identity: dict[str, str]) -> None:
        self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._file.execute("BEGIN EXCLUSIVE")
        names = {row[0] for row in self._file.execute("SELECT name FROM sqlite_master")}
        if names and not {"search", "trial"} <= names:
            raise self._refused("a database of something else")
        if not names:
            for statement in _TABLES.split(";"):
                self._file.execute(statement)
            self._file.executemany("INSERT INTO search VALUES (?, ?)", identity.items())
        stored = dict(self._file.execute("SELECT name, content FROM search"))
        self._file.commit()
        for name, wanted in identity.items():
            if stored.get(name) != wanted:
                if name == "data":
                    raise self._refused("a search on other data")
                raise self._refused(f"a search with {name} {stored.get(name)}, wanted {wanted}")

    def _refused(self, what: str) -> ValueError:
        return ValueError(
            f"{self.path}: a study must hold the search it is to go on with, got {what}; "
            "name a new file"
        )

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """SQLite's errors in words."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise ValueError(
                    f"{self.path}: a study must be used by one search at a time, got a file that "
                    "another one holds; wait for it, or name a new file"
                ) from None
            raise OSError(f"{self.path}: cannot read or write the study ({error})") from None
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"{self.path}: a study must be a SQLite file, got another ({error}); "
                "name a new file"
            ) from None

    def trials(self) -> list[tuple[Any, ...]]:
        """Rows ``(number, params, value, seconds, per_query, stopped, error)`` from number 0 on."""
        with self._errors():
            rows = self._file.execute("SELECT * FROM trial ORDER BY number").fetchall()
        return [
            (
                number,
                json.loads(params),
                np.nan if value is None else value,
                seconds,
                np.frombuffer(per_query, dtype="<f8").astype(np.float64),
                tuple(json.loads(stopped)),
                error,
            )
            for number, params, value, seconds, per_query, stopped, error in rows
        ]

    def add(
        self,
        number: int,
        params: dict[str, Any],
        value: float,
        seconds: float,
        per_query: NDArray[np.float64],
        stopped: Sequence[dict[str, Any]],
        error: str,
    ) -> None:
        """Keep a finished trial."""
        row = (
            number,
            json.dumps(params),
            None if np.isnan(value) else value,
            seconds,
            per_query.astype("<f8").tobytes(),
            json.dumps(list(stopped)),
            error,
        )
        with self._errors(), self._file:
            self._file.execute("INSERT INTO trial VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        self._file.close()
