"""A short run of the fuzzer of the text readers, where a compiler with sanitizers is at hand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "native" / "fuzz" / "run.sh"


@pytest.mark.slow
def test_damaged_files_are_refused_with_a_sentence(tmp_path):
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        pytest.skip("no C++ compiler")
    probe = tmp_path / "probe.cpp"
    probe.write_text("int main() {}\n")
    linked = subprocess.run(
        [
            compiler,
            "-march=x86-64-v2",
            "-fsanitize=address,undefined",
            "-o",
            tmp_path / "probe",
            probe,
        ],
        capture_output=True,
        check=False,
    )
    if linked.returncode != 0:
        pytest.skip("the compiler has no sanitizers for this machine")
    run = subprocess.run(
        [SCRIPT, "20000"],
        env={**os.environ, "FUZZ_BUILD": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    counts = re.match(r"(\d+) inputs .* (\d+) refused with a sentence, (\d+) read", run.stdout)
    assert counts, run.stdout
    total, refused, read = map(int, counts.groups())
    assert total == 20_000
    # Neither side of the claim is empty: files are refused, and files are read.
    assert refused > 1000
    assert read > 1000
