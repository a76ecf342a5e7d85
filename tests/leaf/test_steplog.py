"""The step log: appended as things happen, readable after a kill, and the source of the reference's JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frognano.leaf.steplog import (
    LogEnd,
    LogStart,
    StepLog,
    read_step_log,
    read_tokens,
    reference_trajectory,
    tokens_path,
)
from frognano.records import Observation, Reply, Step, TokenRow, ToolCall, VersionSpan

START = LogStart(
    id="t1--0", task_id="t1", seed=3, policy="p", profile="leaf", system="sys", statement="fix", tools=({"x": 1},)
)


def step(number: int) -> Step:
    call = ToolCall(id=f"c{number}", name="Bash", arguments={"command": "ls"})
    reply = Reply(content=f"turn {number}", calls=(call,), finish_reason="tool_calls")
    answer = Observation(call_id=call.id, tool="Bash", text="Exit code: 0")
    return Step(step=number, reply=reply, observations=(answer,), context_tokens=10 * number, elapsed_s=1.5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "log.jsonl"


def written(path: Path, steps: int, end: LogEnd | None = None) -> StepLog:
    log = StepLog(path)
    log.begin(START)
    for number in range(1, steps + 1):
        log.step(step(number))
    if end is not None:
        log.end(end)
    return log


def test_every_step_is_on_disk_when_it_returns(path: Path) -> None:
    log = StepLog(path)
    log.begin(START)
    for number in (1, 2, 3):
        log.step(step(number))
        assert [logged.step for logged in read_step_log(path).steps] == list(range(1, number + 1))


def test_what_is_read_is_what_was_written(path: Path) -> None:
    end = LogEnd(exit_reason="agent", final_message="done", patch="a\udce9b\ud800", elapsed_s=4.0)
    written(path, 2, end)
    logged = read_step_log(path)
    assert (logged.start, logged.steps, logged.end, logged.notice) == (START, (step(1), step(2)), end, "")


@pytest.mark.parametrize("cut", [1, 7, 60])
def test_a_torn_last_line_is_dropped_with_a_notice(path: Path, cut: int) -> None:
    written(path, 3)
    path.write_bytes(path.read_bytes()[:-cut])
    logged = read_step_log(path)
    expected = 3 if cut == 1 else 2
    assert len(logged.steps) == expected
    assert bool(logged.notice) == (cut > 1)
    assert reference_trajectory(logged)["partial"] is True


def test_damage_elsewhere_is_an_error(path: Path) -> None:
    written(path, 2)
    lines = path.read_bytes().split(b"\n")
    lines[1] = b"{broken"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ValueError, match="line 2 is not JSON"):
        read_step_log(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="no start"):
        read_step_log(path)


def test_fields_of_a_later_version_are_ignored(path: Path) -> None:
    written(path, 1)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[1]["mood"] = "good"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"type": "hint"}]))
    assert read_step_log(path).steps == (step(1),)


def test_an_older_log_is_moved_aside(path: Path) -> None:
    written(path, 1)
    written(path, 2)
    written(path, 3)
    assert [len(read_step_log(path.with_name(name)).steps) for name in ("log.jsonl.1", "log.jsonl.2", "log.jsonl")] == [
        1,
        2,
        3,
    ]


def test_tokens_lie_beside_it_step_by_step(path: Path) -> None:
    log = StepLog(path)
    log.begin(START)
    first = TokenRow(
        ids=(1, 2, 3), mask=(0, 1, 1), logprobs=(0.0, -0.1, -1 / 3), spans=(VersionSpan(start=1, version=4),)
    )
    spans = (*first.spans, VersionSpan(start=4, version=5))
    second = TokenRow(ids=(1, 2, 3, 4, 5), mask=(0, 1, 1, 0, 1), logprobs=(0.0, -0.1, -1 / 3, 0.0, -2.5), spans=spans)
    log.step(step(1), first)
    assert read_tokens(path) == first
    log.step(step(2), second)
    assert read_tokens(path) == second
    rows = [json.loads(line) for line in tokens_path(path).read_text().splitlines()]
    assert [row["ids"] for row in rows] == [[1, 2, 3], [4, 5]]


def test_no_tokens_no_file(path: Path) -> None:
    written(path, 1)
    assert read_tokens(path) is None


def test_the_reference_json_has_its_exact_keys(path: Path) -> None:
    written(path, 1, LogEnd(exit_reason="agent", final_message="done", context_tokens=9, elapsed_s=2.0, patch="p"))
    made = reference_trajectory(read_step_log(path))
    assistant: dict[str, Any] = {
        "role": "assistant",
        "content": "turn 1",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}}
        ],
    }
    assert made == {
        "trajectory_format": "leaf-function-calling",
        "trajectory_id": "t1--0",
        "instance_id": "t1",
        "seed": 3,
        "messages": [
            {"role": "system", "content": "sys"},
            {"role": "user", "content": "fix"},
            assistant,
            {"role": "tool", "tool_call_id": "c1", "content": "Exit code: 0"},
        ],
        "tools": [{"x": 1}],
        "steps": [
            {"step": 1, "assistant": assistant, "observations": [{"tool": "Bash", "observation": "Exit code: 0"}]}
        ],
        "n_steps": 1,
        "exit_reason": "agent",
        "error": None,
        "final_message": "done",
        "context_tokens": 9,
        "elapsed_sec": 2.0,
        "output_patch": "p",
        "partial": False,
    }


def test_a_malformed_call_leaves_valid_json_in_the_messages(path: Path) -> None:
    call = ToolCall(id="c", name="Bash", raw='{"cmd": "a', error="unclosed string")
    log = StepLog(path)
    log.begin(START)
    log.step(Step(step=1, reply=Reply(calls=(call,)), observations=(Observation(call_id="c", tool="Bash", text="no"),)))
    logged = read_step_log(path)
    assert json.loads(reference_trajectory(logged)["messages"][2]["tool_calls"][0]["function"]["arguments"]) == {}
    assert logged.steps[0].reply.calls[0].raw == '{"cmd": "a'


def test_without_a_path_steps_are_only_watched() -> None:
    seen: list[int] = []
    log = StepLog(watch=lambda done: seen.append(done.step))
    log.begin(START)
    log.step(step(1))
    log.end(LogEnd(exit_reason="agent"))
    assert seen == [1]
