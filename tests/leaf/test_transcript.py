"""An episode as plain text: whole, cut where long, and harmless to a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from frognano.leaf.steplog import LogEnd, LogStart, StepLog
from frognano.leaf.transcript import episode_text_of, plain
from frognano.records import Observation, Reply, Step, ToolCall


def log(path: Path, answer: str = "ok", *, ended: bool = True) -> Path:
    writer = StepLog(path)
    start = LogStart(
        id="e", task_id="t", seed=0, policy="p", profile="leaf", system="s", statement="Fix it.\n", tools=()
    )
    writer.begin(start)
    call = ToolCall(id="c", name="Bash", arguments={"command": "ls", "timeout": 3})
    observation = Observation(call_id="c", tool="Bash", text=answer)
    writer.step(Step(step=1, reply=Reply(content="Looking.", calls=(call,)), observations=(observation,)))
    if ended:
        writer.end(LogEnd(exit_reason="agent", patch="--- a\n+++ b\n"))
    return path


def test_every_turn_is_shown_with_its_calls_and_answers(tmp_path: Path) -> None:
    text = episode_text_of(log(tmp_path / "e.jsonl"), "passed")
    order = [
        "Fix it.",
        "turn 1",
        "Looking.",
        "calls Bash",
        "command: ls",
        "timeout: 3",
        "is answered",
        "ended: agent",
        "+++ b",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2J\x1b[31mred", "\\x1b[2J\\x1b[31mred"),
        ("over\rwritten\x08", "over\\x0dwritten\\x08"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\u200bhidden\U000e0041", "\\u200bhidden\\U000e0041"),
        ("lone \udcff surrogate", "lone \\udcff surrogate"),
    ],
)
def test_control_characters_are_spelled_out(tmp_path: Path, hostile: str, shown: str) -> None:
    text = episode_text_of(log(tmp_path / "e.jsonl", hostile))
    assert shown in text
    assert all(char.isprintable() or char == "\n" for char in text)


def test_ordinary_text_of_any_language_is_left_alone() -> None:
    assert plain("π̂ ≤ 1\tжаба 蛙 🐸\n") == "π̂ ≤ 1\tжаба 蛙 🐸\n"


def test_long_answers_are_cut_in_the_middle(tmp_path: Path) -> None:
    text = episode_text_of(log(tmp_path / "e.jsonl", "\n".join(f"line {n}" for n in range(500))))
    assert "line 0" in text
    assert "line 499" in text
    assert "[… 476 lines …]" in text
    assert "line 250" not in text


def test_an_episode_that_was_cut_by_a_kill_is_shown_as_far_as_it_went(tmp_path: Path) -> None:
    path = log(tmp_path / "e.jsonl", ended=False)
    with path.open("ab") as stream:
        stream.write(b'{"type": "st')
    text = episode_text_of(path)
    assert "was not finished" in text
    assert "torn" in text
