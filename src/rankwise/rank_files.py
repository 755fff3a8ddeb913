"""Reading rank lists from files: PrefLib profiles, CSV and JSON.

=====================  =======================================================================
``.soc .soi .toc .toi`` PrefLib: comment lines with names, then ``count: 3,1,{2,4}``
``.csv``                one ranking per line, best first; or a table with the header
                        ``list,item,score`` or ``list,item,rank``
``.json``               ``[["a", "b"], ["b", ["a", "c"]]]``, an inner list holds tied items; or an
                        object with ``rankings`` and, if wanted, ``count`` and ``items``
=====================  =======================================================================

>>> import io, rankwise as rw
>>> lists = rw.read_rankings(io.BytesIO(b"# ALTERNATIVE NAME 1: tea\\n3: 1,{2,3}\\n2: 2"), format="toi")
>>> lists
RankLists(3 items, 2 lists, 4 entries)
>>> lists.items, lists.count
(array(['tea', '2', '3'], dtype='<U3'), array([3., 2.]))
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from rankwise import _files, _validate
from rankwise._rank_lists import RankLists

Source = _files.Source

_PREFLIB = ("soc", "soi", "toc", "toi")
FORMATS = (*_PREFLIB, "csv", "json")


def read_rankings(source: Source, *, format: str | None = None) -> RankLists:
    """Rank lists from a file.

    Parameters
    ----------
    source : path or binary file object
        Plain or compressed; ``"-"`` is standard input.
    format : {"soc", "soi", "toc", "toi", "csv", "json"}, optional
        By the ending of the name where it is not given.

    Returns
    -------
    RankLists
        One query; ``items`` are the names, ``count`` the voters of each order (PrefLib).

    Raises
    ------
    ValueError
        With file and line for text that is not of the format, an item twice in a ranking, or a
        file without rankings.

    Examples
    --------
    >>> import io, rankwise as rw
    >>> lists = rw.read_rankings(io.BytesIO(b"a,b,c\\nb,a\\n"), format="csv")
    >>> lists.ranking(rw.borda(lists))
    ['a', 'b', 'c']
    """
    with _files.opened(source) as file:
        name = file.name
        kind = _validate.choice(name, "format", format or _kind_of(name), FORMATS)
        try:
            text = file.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}: expected text in UTF-8, got byte {error.start} that is not"
            ) from None
    readers: dict[str, Callable[[str, str], RankLists]] = {"csv": _csv, "json": _json}
    return readers.get(kind, _preflib)(name, text)


def _kind_of(name: str) -> str:
    stem, suffix = os.path.splitext(name)
    if suffix in _files.COMPRESSED:
        suffix = os.path.splitext(stem)[1]
    kind = suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise ValueError(
            f"{name}: the ending must say the format ({', '.join('.' + f for f in FORMATS)}), "
            f"got {suffix!r}; name it with format="
        )
    return kind


_ORDER = re.compile(r"\{[^{}]*\}|[^,{}]+")
_NAME = re.compile(r"#\s*ALTERNATIVE NAME\s+(\S+?)\s*:\s*(.*)", re.IGNORECASE)


def _preflib(name: str, text: str) -> RankLists:
    names: dict[str, str] = {}
    rankings: list[list[Any]] = []
    counts: list[float] = []
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line:
            continue
        if line.startswith("#"):
            found = _NAME.match(line)
            if found:
                names[found[1]] = found[2].strip()
            continue
        head, colon, order = line.partition(":")
        try:
            count = float(head)
        except ValueError:
            count = -1.0
        # What is left of a well-formed order without its places are commas.
        rest = _ORDER.sub("", order).replace(" ", "")
        if not colon or count <= 0 or rest.strip(","):
            raise ValueError(
                f"{name}:{number}: expected 'count: item,item,{{tied,tied}}', got {line[:60]!r}"
            )
        rankings.append([_place(p) for p in _ORDER.findall(order) if p.strip(" {}")])
        counts.append(count)
    # Names may repeat or be missing; then the numbers stay.
    shown = names if len(set(names.values())) == len(names) else {}
    every = dict.fromkeys([*names, *(i for r in rankings for p in r for i in _items(p))])
    label = {item: shown.get(item, item) for item in every}
    named = [
        [[label[i] for i in p] if isinstance(p, list) else label[p] for p in ranking]
        for ranking in rankings
    ]
    return _made(name, named, counts, list(label.values()))


def _place(text: str) -> Any:
    items = [part.strip() for part in text.strip().strip("{}").split(",") if part.strip()]
    return items if text.strip().startswith("{") else items[0]


def _items(place: Any) -> list[Any]:
    return place if isinstance(place, list) else [place]


def _made(
    name: str, rankings: list[Any], count: Any = None, items: list[Any] | None = None
) -> RankLists:
    if not rankings:
        raise ValueError(f"{name}: at least one ranking is needed, got none")
    try:
        return RankLists.from_rankings(rankings, count=count, items=items)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: {str(error).removeprefix('RankLists: ')}") from None


def _csv(name: str, text: str) -> RankLists:
    import csv
    import io

    rows = [[field.strip() for field in row] for row in csv.reader(io.StringIO(text))]
    header = [field.lower() for field in rows[0]] if rows else []
    if {"list", "item"} <= set(header):
        return _table(name, rows, header)
    return _made(name, [[field for field in row if field] for row in rows if any(row)])


def _table(name: str, rows: list[list[str]], header: list[str]) -> RankLists:
    """Rows of ``list, item`` and ``score`` (higher is better) or ``rank`` (lower is)."""
    value = next((word for word in ("score", "rank") if word in header), None)
    if value is None:
        raise ValueError(
            f"{name}:1: a table of lists needs a column 'score' or 'rank', got {', '.join(header)}"
        )
    columns = [header.index(word) for word in ("list", "item", value)]
    lists: dict[str, int] = {}
    items: dict[str, int] = {}
    cells: dict[tuple[int, int], float] = {}
    for number, row in enumerate(rows[1:], start=2):
        if not any(row):
            continue
        try:
            one, item, amount = (row[c] for c in columns)
            score = float(amount) if value == "score" else -float(amount)
        except (IndexError, ValueError):
            raise ValueError(
                f"{name}:{number}: expected a list, an item and a number, got {','.join(row)!r}"
            ) from None
        if not np.isfinite(score):
            raise ValueError(f"{name}:{number}: {value} must be finite, got {amount}")
        cell = (items.setdefault(item, len(items)), lists.setdefault(one, len(lists)))
        if cell in cells:
            raise ValueError(
                f"{name}:{number}: an item must appear once in a list, got {item!r} twice in "
                f"{one!r}"
            )
        cells[cell] = score
    if not cells:
        raise ValueError(f"{name}: at least one ranking is needed, got none")
    R = np.full((len(items), len(lists)), np.nan)
    for (i, j), score in cells.items():
        R[i, j] = score
    return RankLists.from_matrix(R, items=list(items))


def _json(name: str, text: str) -> RankLists:
    import json

    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}: expected JSON, got something else ({error})") from None
    if isinstance(value, dict):
        unknown = sorted(set(value) - {"rankings", "count", "items"})
        if unknown or "rankings" not in value:
            raise ValueError(
                f"{name}: an object of rank lists holds 'rankings' and may hold 'count' and "
                f"'items', got {', '.join(map(repr, value))}"
            )
        return _made(name, value["rankings"], value.get("count"), value.get("items"))
    if not isinstance(value, list):
        raise ValueError(f"{name}: expected a list of rankings, got {type(value).__name__}")
    return _made(name, value)
