"""The README and the pages under docs/ say what the code does: their Python runs, their commands exist."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from rankwise.cli import build_parser

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_of_the_page_runs(page, tmp_path, monkeypatch):
    """Sessions with ``>>>`` print what they show; other blocks run; all share one namespace."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for source in blocks(page, "python"):
        if ">>>" not in source:
            exec(compile(source, page.name, "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(source, names, page.name, str(page), 0)
        failed, tried = doctest.DocTestRunner(optionflags=flags).run(test, clear_globs=False)
        names = test.globs
        assert tried > 0
        assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_of_the_page_parse(page):
    for block in blocks(page, "console"):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if line.startswith("$ rankwise "):
                build_parser().parse_args([w for w in words[1:] if w not in ("|", ">")])


def test_readme_has_its_two_commands():
    commands = re.findall(
        r"^    (python3 -m venv .*)$", (ROOT / "README.md").read_text(), flags=re.M
    )
    assert len(commands) == 2
    assert commands[0].endswith("rankwise demo")
    assert "pytest" in commands[1]


def test_links_of_the_pages_exist():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_api_page_is_current(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import make_api

    assert (ROOT / "docs" / "api.md").read_text() == make_api.page(), "run python docs/make_api.py"


def test_references_are_in_the_bibliography():
    from rankwise.metrics import METRICS

    known = set(re.findall(r"@\w+\{(\w+)", (ROOT / "docs" / "references.bib").read_text()))
    cited = " ".join(m.reference for m in METRICS.values())
    keys = set(re.findall(r"\b[a-z]+(?:19|20)\d\d[a-z]*\b", cited))
    assert keys
    assert keys <= known
