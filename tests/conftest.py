"""Where tests find the real data sets, and the profile hypothesis runs under."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A machine that is busy with other work is no reason to fail.
settings.register_profile("rankwise", deadline=None)
settings.load_profile("rankwise")


@pytest.fixture(scope="session")
def letor_data() -> Path:
    """The folder of real data sets; the tests that need it (marked ``letor``) skip without it."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("RANKWISE_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}; set RANKWISE_DATA to their folder")
    return folder
