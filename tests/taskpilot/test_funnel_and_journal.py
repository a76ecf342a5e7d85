"""The funnel adds up; the journal survives a torn line and refuses other settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from frognano.config.base import ConfigError
from frognano.taskpilot.funnel import Code, Funnel, funnel_text
from frognano.taskpilot.journal import FileJournal, pin


def test_what_enters_a_stage_is_what_leaves_it_or_is_rejected() -> None:
    funnel = Funnel()
    funnel.passed("screen", 3)
    funnel.rejected("screen", Code.GREEN, 2)
    funnel.rejected("screen", Code.HANG)
    funnel.withdrawn("screen", Code.FLAKY_TEST)
    (stage,) = funnel.stages()
    assert (stage.entered, stage.left) == (6, 2)
    assert stage.codes == {"flaky-test": 1, "green": 2, "hang": 1}
    assert "green 2" in funnel_text([stage])


def test_finished_work_is_found_again(tmp_path: Path) -> None:
    FileJournal(tmp_path / "j").put("screen", "a", {"x": 1})
    again = FileJournal(tmp_path / "j")
    assert again.get("screen", "a") == {"x": 1}
    assert again.get("screen", "b") is None


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "j")
    journal.put("s", "a", 1)
    with open(tmp_path / "j", "a") as stream:
        stream.write('{"stage": "s", "key": "b", "va')
    again = FileJournal(tmp_path / "j")
    again.put("s", "c", 3)
    last = FileJournal(tmp_path / "j")
    assert [last.get("s", key) for key in "abc"] == [1, None, 3]


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "j")
    pin(journal, {"seed": 1, "levels": {"symptom": 1.0}})
    pin(FileJournal(tmp_path / "j"), {"seed": 1, "levels": {"symptom": 1.0}})
    with pytest.raises(ConfigError, match=r"seed \(1 before, 2 now\)"):
        pin(journal, {"seed": 2, "levels": {"symptom": 1.0}})
