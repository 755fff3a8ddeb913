"""Examples in docstrings run and print what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rankwise

MODULES = sorted(m.name for m in pkgutil.iter_modules(rankwise.__path__, "rankwise."))


@pytest.mark.parametrize("name", [n for n in MODULES if not n.endswith("._core")])
def test_docstring_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0


def test_public_names_import_and_have_docstrings():
    for name in rankwise.__all__:
        value = getattr(rankwise, name)
        assert isinstance(value, dict) or value.__doc__, name
    assert set(rankwise.__all__) <= set(dir(rankwise))


def test_import_stays_light():
    import subprocess
    import sys

    code = (
        "import sys, rankwise, rankwise.cli, rankwise.metrics, rankwise.trec, rankwise.commands\n"
        "heavy = {'sklearn', 'lightgbm', 'scipy', 'matplotlib', 'pandas', 'rich', 'narwhals'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
