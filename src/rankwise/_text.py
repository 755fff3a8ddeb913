"""Values as text: ``name``, or ``name(option=value, ...)`` with the options that differ from
their defaults, as printed in result tables and written on the command line.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from typing import Any


def call_text(name: str, value: Any) -> str:
    """The text form of a frozen dataclass: its name and the fields not at their default."""
    changed = [
        f"{field.name}={_literal(getattr(value, field.name))}"
        for field in dataclasses.fields(value)
        if getattr(value, field.name) != field.default
    ]
    return f"{name}({', '.join(changed)})" if changed else name


def parse_call(where: str, text: str) -> tuple[str, dict[str, Any]]:
    """Name and options of a text form; an option that is no literal stays text (``ndcg@10``)."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        tree = None
    if isinstance(tree, ast.Name):
        return tree.id, {}
    ok = isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and not tree.args
    if not ok or any(keyword.arg is None for keyword in tree.keywords):  # type: ignore[union-attr]
        raise ValueError(
            f"{where}: must have the form name or name(option=value, ...), got {text!r}"
        )
    assert isinstance(tree, ast.Call)
    assert isinstance(tree.func, ast.Name)
    options: dict[str, Any] = {}
    for keyword in tree.keywords:
        try:
            value = ast.literal_eval(keyword.value)
        except ValueError:
            value = ast.get_source_segment(text.strip(), keyword.value)
        options[str(keyword.arg)] = value
    return tree.func.id, options


def words(params: Mapping[str, Any]) -> str:
    """Parameters as ``name=value`` words."""
    return " ".join(
        f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in params.items()
    )


def split_names(text: str) -> list[str]:
    """Cuts a comma-separated list at the commas outside brackets.

    >>> split_names("ndcg(gain=(0, 1, 3), ties='worst'), ap")
    ["ndcg(gain=(0, 1, 3), ties='worst')", 'ap']
    """
    parts, level, start = [], 0, 0
    for i, c in enumerate(text):
        level += (c in "([{") - (c in ")]}")
        if c == "," and level == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


def _literal(value: Any) -> str:
    if isinstance(value, bool | int | str | type(None)):
        return repr(value)
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)
