"""Writes docs/api.md: every public name with its first sentence, read from the docstrings."""

import importlib
from pathlib import Path

import rankwise


def page() -> str:
    lines = [
        "# API",
        "",
        "Every public name, from `import rankwise as rw`; `help(rw.NAME)` shows the whole docstring.",
        "Written by `python docs/make_api.py`.",
        "",
    ]
    for module, names in rankwise._PUBLIC.items():
        head = (importlib.import_module(f"rankwise.{module}").__doc__ or "").strip()
        lines += [f"## rankwise.{module}", "", _sentence(head), ""]
        lines += [f"- `{name}`: {_about(getattr(rankwise, name))}" for name in names]
        lines.append("")
    return "\n".join(lines)


def _about(value: object) -> str:
    if isinstance(value, dict):
        return "dictionary of " + ", ".join(f"`{k}`" for k in value) + "."
    return _sentence(value.__doc__ or "")


def _sentence(text: str) -> str:
    """The first paragraph on one line, without reStructuredText marks."""
    first = " ".join(text.strip().split("\n\n")[0].split())
    return (
        first.replace("``", "`").replace(":func:", "").replace(":class:", "").replace(":mod:", "")
    )


if __name__ == "__main__":
    Path(__file__).with_name("api.md").write_text(page())
