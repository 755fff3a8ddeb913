"""Cross-validation folds as collections publish them.

A LETOR collection is a folder with ``Fold1`` to ``Fold5``, each holding ``train.txt``, ``vali.txt``
and ``test.txt``; or its five parts ``S1.txt`` to ``S5.txt``, which rotate; or the five test files
``Fold1-test.txt`` to ``Fold5-test.txt``, which rotate as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwise import _files
from rankwise.data import Queries, concatenate
from rankwise.formats import read


@dataclass(frozen=True)
class FoldPaths:
    """The files of one fold.

    Attributes
    ----------
    name : str
        ``"Fold1"`` and so on.
    train : tuple of Path
        One file, or the parts to put together.
    valid, test : Path
    """

    name: str
    train: tuple[Path, ...]
    valid: Path
    test: Path


def fold_paths(folder: str | os.PathLike[str]) -> list[FoldPaths]:
    """The folds of a collection's folder.

    Parameters
    ----------
    folder : path
        Holds ``Fold1/``, ``Fold2/``, ... with train, vali and test files; or the parts ``S1.txt``,
        ``S2.txt``, ...: fold i tests on S(i-1) and validates on S(i-2), counted in a circle, as
        LETOR 4.0; or the files ``Fold1-test.txt``, ...: fold i tests on its own and validates on
        the one before. What is left trains, in ascending order. Files may be compressed.

    Returns
    -------
    list of FoldPaths

    Raises
    ------
    ValueError
        If the folder has none of the three forms, or a file is missing.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f"fold_paths: expected a folder, got {os.fspath(folder)!r}")
    folds = _numbered(root, r"Fold(\d+)")
    folders = {i: path for i, path in folds.items() if path.is_dir()}
    if folders:
        return [
            FoldPaths(
                f"Fold{i}",
                (_named(path, "train"),),
                _named(path, "vali", "valid", "validation"),
                _named(path, "test"),
            )
            for i, path in sorted(folders.items())
        ]
    for pattern, test_shift in ((r"S(\d+)(?:\.txt)?", -1), (r"Fold(\d+)-test(?:\.txt)?", 0)):
        parts = _numbered(root, pattern)
        if len(parts) < 3:
            continue
        n = len(parts)
        if sorted(parts) != list(range(1, n + 1)):
            raise ValueError(
                f"fold_paths: the parts in {root} must be numbered from 1 without gaps, "
                f"got {', '.join(map(str, sorted(parts)))}"
            )
        found = []
        for i in range(n):
            test, valid = (i + test_shift) % n, (i + test_shift - 1) % n
            train = tuple(parts[j + 1] for j in range(n) if j not in (test, valid))
            found.append(FoldPaths(f"Fold{i + 1}", train, parts[valid + 1], parts[test + 1]))
        return found
    raise ValueError(
        f"fold_paths: expected Fold1/, Fold2/, ..., or S1.txt, S2.txt, ..., or Fold1-test.txt, ... "
        f"in {root}, got none of them"
    )


def read_folds(
    folder: str | os.PathLike[str], **options: Any
) -> Iterator[tuple[Queries, Queries, Queries]]:
    """``(train, valid, test)`` of each fold, with as many features in all three.

    Parameters
    ----------
    folder : path
        As for :func:`fold_paths`.
    **options
        Those of :func:`rankwise.read`.

    Yields
    ------
    tuple of Queries

    Notes
    -----
    Parts that rotate are read once and kept; the files of ``Fold1/`` and so on are read when their
    fold comes.
    """
    folds = fold_paths(folder)
    shared = len({fold.test for fold in folds} & {p for fold in folds for p in fold.train}) > 0
    kept: dict[Path, Queries] = {}

    def part(path: Path) -> Queries:
        if path in kept:
            return kept[path]
        queries = read(path, **options)
        if shared:
            kept[path] = queries
        return queries

    for fold in folds:
        parts = same_width(
            [part(p) for p in (*fold.train, fold.valid, fold.test)], options.get("absent", 0.0)
        )
        train = parts[0] if len(fold.train) == 1 else concatenate(parts[:-2])
        yield train, parts[-2], parts[-1]


def _numbered(root: Path, pattern: str) -> dict[int, Path]:
    found = {}
    for path in sorted(root.iterdir()):
        name = path.stem if path.suffix in _files.COMPRESSED else path.name
        match = re.fullmatch(pattern, name)
        if match:
            found[int(match[1])] = path
    return found


def _named(root: Path, *stems: str) -> Path:
    for stem in stems:
        for ending in ("", *_files.COMPRESSED):
            path = root / f"{stem}.txt{ending}"
            if path.is_file():
                return path
    raise ValueError(f"fold_paths: expected {stems[0]}.txt in {root}, got no such file")


def same_width(parts: list[Queries], absent: float = 0.0) -> list[Queries]:
    """The parts with as many features as the widest: what a file never names is absent in its rows."""
    width = max(p.n_features for p in parts)
    return [p if p.n_features == width else _widened(p, width, absent) for p in parts]


def _widened(queries: Queries, width: int, absent: float) -> Queries:
    X = queries.X
    if hasattr(X, "nnz"):
        import scipy.sparse as sp

        wide: Any = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    else:
        wide = np.full((X.shape[0], width), absent, X.dtype)
        wide[:, : X.shape[1]] = X
    return queries.with_features(wide)
