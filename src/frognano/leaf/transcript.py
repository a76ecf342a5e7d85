"""One episode turn by turn as plain text.

What a model or a tool wrote is shown with control characters spelled out, so that it cannot move the cursor, set
colours or hide lines of the terminal it is printed on.
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

from frognano.leaf.steplog import LoggedEpisode, read_step_log
from frognano.records import Step, ToolCall

_KEPT = frozenset("\n\t")
_SPELLED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
MOST_LINES = 24


def plain(text: str) -> str:
    """``text`` with every control, format and private character spelled as ``\\xNN`` or ``\\uNNNN``."""
    if text.isprintable():
        return text
    return "".join(
        char if char in _KEPT or unicodedata.category(char) not in _SPELLED else _spelled(char) for char in text
    )


def _spelled(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def episode_text(episode: LoggedEpisode, verdict: str = "", most_lines: int = MOST_LINES) -> str:
    """The statement, every turn with its calls and answers, and how it ended; long texts are cut in the middle."""
    start, end = episode.start, episode.end
    parts = [
        f"task {plain(start.task_id)}  policy {plain(start.policy)}",
        _block("statement", start.statement, most_lines),
    ]
    parts += [turn_text(step, most_lines) for step in episode.steps]
    if end is None:
        parts.append("the log ends here: the episode was not finished")
    else:
        parts.append(f"--- ended: {end.exit_reason}{f', {plain(verdict)}' if verdict else ''} ---")
        parts.append(_block("patch", end.patch or "(none)", 4 * most_lines))
    if episode.notice:
        parts.append(plain(episode.notice))
    return "\n".join(parts)


def turn_text(step: Step, most_lines: int = MOST_LINES) -> str:
    """One turn: what the model said, its calls and their answers."""
    reply, parts = step.reply, [f"--- turn {step.step} ---"]
    if reply.reasoning:
        parts.append(_block("thinks", reply.reasoning, most_lines))
    if reply.content:
        parts.append(_block("says", reply.content, most_lines))
    answers = {answer.call_id: answer for answer in step.observations}
    for call in reply.calls:
        parts.append(_block(f"calls {plain(call.name)}", _arguments(call), most_lines))
        if call.id in answers:
            parts.append(_block("is answered", answers[call.id].text, most_lines))
    return "\n".join(parts)


def episode_text_of(path: Path, verdict: str = "") -> str:
    """The episode in the step log at ``path``. Raises ValueError for a file that is none, OSError."""
    return episode_text(read_step_log(path), verdict)


def _arguments(call: ToolCall) -> str:
    if call.error:
        return f"(malformed: {call.error})\n{call.raw}"
    lines = []
    for key, value in call.arguments.items():
        text = value if isinstance(value, str) else json.dumps(value)
        lines.append(f"{key}:\n{text}" if "\n" in text else f"{key}: {text}")
    return "\n".join(lines) or "(no arguments)"


def _block(title: str, text: str, most_lines: int) -> str:
    lines = plain(text).rstrip("\n").split("\n")
    if len(lines) > most_lines:
        head, tail = most_lines // 2, most_lines - most_lines // 2
        lines = [*lines[:head], f"[… {len(lines) - most_lines} lines …]", *lines[-tail:]]
    return "\n".join([f"{title}:", *(f"    {line}" for line in lines)])
