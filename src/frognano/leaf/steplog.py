"""The step log: JSON Lines, one row for the start, one for each step, one for the end, flushed as they happen.

A kill at any moment loses at most the row being written: a torn last line is dropped with a notice. Rows are only
appended; a log that already stands at the path is moved aside, never overwritten. Tokens lie beside it
(``….tokens.jsonl``), one row a step with what that step added. The published harness's trajectory JSON is assembled
from the log. It does not protect from a host that loses power: rows reach the kernel, not the platter.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from frognano.records import ExitReason, Record, Reply, Step, TokenRow, VersionSpan


class LogStart(Record):
    """First row: what the episode is."""

    schema_version: Literal[1] = 1
    id: str
    task_id: str
    seed: int
    policy: str
    profile: str
    system: str
    statement: str
    tools: tuple[dict[str, Any], ...]


class LogEnd(Record):
    """Last row: how it ended."""

    exit_reason: ExitReason
    error: str = ""
    final_message: str = ""
    context_tokens: int = 0
    elapsed_s: float = 0.0
    patch: str = ""


class LoggedEpisode(Record):
    """A log as read back; ``end`` is None while the episode runs or when it was killed."""

    start: LogStart
    steps: tuple[Step, ...] = ()
    end: LogEnd | None = None
    notice: str = ""
    """What was wrong with the file, empty when nothing was."""


class StepLog:
    """Writes one episode; without a path it only tells ``watch`` of each step."""

    def __init__(self, path: Path | None = None, watch: Callable[[Step], None] | None = None) -> None:
        self.path = path
        self._watch = watch
        self._tokens_written = 0

    def begin(self, start: LogStart) -> None:
        """Write the first row, moving an older log aside."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _move_aside(self.path)
            self._append(self.path, {"type": "start", **start.model_dump()})

    def step(self, step: Step, tokens: TokenRow | None = None) -> None:
        """Append one step, and what it added to the tokens."""
        if self.path is not None:
            self._append(self.path, {"type": "step", **step.model_dump()})
            if tokens is not None:
                self._append_tokens(step.step, tokens)
        if self._watch is not None:
            self._watch(step)

    def end(self, end: LogEnd) -> None:
        """Append the last row."""
        if self.path is not None:
            self._append(self.path, {"type": "end", **end.model_dump()})

    def _append_tokens(self, step: int, tokens: TokenRow) -> None:
        assert self.path is not None
        first, self._tokens_written = self._tokens_written, len(tokens.ids)
        row = {
            "step": step,
            "start": first,
            "ids": tokens.ids[first:],
            "mask": tokens.mask[first:],
            "logprobs": tokens.logprobs[first:],
            "spans": [[span.start, span.version] for span in tokens.spans],
        }
        self._append(tokens_path(self.path), row)

    @staticmethod
    def _append(path: Path, row: dict[str, Any]) -> None:
        # Opened for each row: hundreds of episodes at once would else use up the process's descriptors.
        with path.open("ab", buffering=0) as stream:
            line = json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n"
            if stream.write(line) != len(line):
                raise OSError(errno.ENOSPC, "the disk took only a part of a row", str(path))


def tokens_path(path: Path) -> Path:
    """Where the tokens of the log at ``path`` lie."""
    return path.with_suffix(".tokens.jsonl")


def _move_aside(path: Path) -> None:
    for old in (path, tokens_path(path)):
        if old.exists():
            number = 1
            while (target := old.with_name(f"{old.name}.{number}")).exists():
                number += 1
            old.rename(target)


def _rows(path: Path) -> tuple[list[dict[str, Any]], str]:
    """Whole rows of a JSON Lines file, and a notice where the last one is torn."""
    rows: list[dict[str, Any]] = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            rows.append(json.loads(line))
        except ValueError:
            if number < len(lines):
                raise ValueError(f"{path}: line {number} is not JSON") from None
            return rows, f"{path.name}: the last line is torn and was dropped"
    return rows, ""


def read_step_log(path: Path) -> LoggedEpisode:
    """Read a log, also one that is still being written or was cut by a kill. Fields of later versions are ignored."""
    rows, notice = _rows(path)
    if not rows or rows[0].get("type") != "start":
        raise ValueError(f"{path}: no start of an episode in this log")
    steps = tuple(Step.model_validate(_known(row, Step)) for row in rows if row.get("type") == "step")
    ends = [LogEnd.model_validate(_known(row, LogEnd)) for row in rows if row.get("type") == "end"]
    start = LogStart.model_validate(_known(rows[0], LogStart))
    return LoggedEpisode(start=start, steps=steps, end=ends[-1] if ends else None, notice=notice)


def _known(row: dict[str, Any], record: type[Record]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key in record.model_fields}


def read_tokens(path: Path) -> TokenRow | None:
    """The tokens beside the log at ``path``; None where the engine gave none."""
    beside = tokens_path(path)
    if not beside.exists():
        return None
    rows, _ = _rows(beside)
    spans = rows[-1]["spans"] if rows else []
    return TokenRow(
        ids=tuple(value for row in rows for value in row["ids"]),
        mask=tuple(value for row in rows for value in row["mask"]),
        logprobs=tuple(value for row in rows for value in row["logprobs"]),
        spans=tuple(VersionSpan(start=start, version=version) for start, version in spans),
    )


def assistant_message(reply: Reply) -> dict[str, Any]:
    """A reply as an OpenAI-shaped message; a malformed call is shown with empty, valid arguments."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in reply.calls
        ]
    return message


def _messages(start: LogStart, steps: Iterable[Step]) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": start.system}, {"role": "user", "content": start.statement}]
    for step in steps:
        messages.append(assistant_message(step.reply))
        messages += [
            {"role": "tool", "tool_call_id": answer.call_id, "content": answer.text} for answer in step.observations
        ]
    return messages


def reference_trajectory(episode: LoggedEpisode) -> dict[str, Any]:
    """The published harness's trajectory JSON: its keys and meanings, nothing beside them."""
    start, end, last = episode.start, episode.end, episode.steps[-1] if episode.steps else None
    return {
        "trajectory_format": "leaf-function-calling",
        "trajectory_id": start.id,
        "instance_id": start.task_id,
        "seed": start.seed,
        "messages": _messages(start, episode.steps),
        "tools": list(start.tools),
        "steps": [
            {
                "step": step.step,
                "assistant": assistant_message(step.reply),
                "observations": [{"tool": answer.tool, "observation": answer.text} for answer in step.observations],
            }
            for step in episode.steps
        ],
        "n_steps": len(episode.steps),
        "exit_reason": end.exit_reason if end else "unknown",
        "error": end.error or None if end else None,
        "final_message": end.final_message if end else "",
        "context_tokens": end.context_tokens if end else (last.context_tokens if last else 0),
        "elapsed_sec": end.elapsed_s if end else sum(step.elapsed_s for step in episode.steps),
        "output_patch": end.patch if end else "",
        "partial": end is None,
    }
