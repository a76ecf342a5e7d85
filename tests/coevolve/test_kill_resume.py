"""The short form of ``perf/kill_resume.py``: a few kills, and the refusals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "perf/kill_resume.py"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_killed_loop_ends_as_an_undisturbed_one_and_what_must_not_be_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--kills", "3", "--work", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything held" in done.stdout
