"""What a call of the model asks of the runner: arguments checked and turned into one request.

A call that cannot be understood raises BadCall with words for the model, and nothing runs. ``reference`` reads
arguments as the published harness does (aliases, coercion, milliseconds); ``leaf`` refuses what it would guess at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from frognano.leaf.profile import Profile
from frognano.records import Record, ToolCall

NAMES = ("Read", "Write", "Edit", "Glob", "Bash")


class BadCall(ValueError):
    """A call that is answered and not run; the message is the answer."""


class Request(Record):
    """One operation of the resident runner."""

    op: str
    args: dict[str, Any]
    timeout_s: float = 120.0
    """Wall seconds that the operation itself may take."""


def prepare(call: ToolCall, profile: Profile) -> Request:
    """The request for ``call``; raises BadCall."""
    maker = _MAKERS.get(call.name)
    if maker is None:
        known = "" if profile.is_reference else f". The tools are {', '.join(NAMES)}."
        raise BadCall(f"Unknown tool: {call.name}{known}")
    if call.error and not profile.is_reference:
        raise BadCall(f"The call could not be read and was not run: {call.error}")
    # The reference runs a malformed call without arguments; each tool then refuses it for want of one.
    return maker({} if call.error else call.arguments, profile)


def _read(arguments: dict[str, Any], profile: Profile) -> Request:
    args = {
        "path": _path(arguments),
        "offset": max(1, _integer(arguments, "offset", 1, profile)),
        "limit": max(0, _integer(arguments, "limit", 0, profile)),
        "max_chars": profile.read_chars,
        "universal": profile.is_reference,
    }
    return Request(op="read", args=args)


def _write(arguments: dict[str, Any], profile: Profile) -> Request:
    path = _path(arguments)
    if profile.is_reference and "content" not in arguments:
        return Request(op="write", args={"path": path, "content": ""})
    return Request(op="write", args={"path": path, "content": _text(arguments, "content")})


def _edit(arguments: dict[str, Any], profile: Profile) -> Request:
    path = _path(arguments)
    if arguments.get("old_string") in (None, ""):
        raise BadCall("ValueError: old_string must be non-empty")
    old = _text(arguments, "old_string")
    if profile.is_reference and arguments.get("new_string") is None:
        new = ""
    else:
        new = _text(arguments, "new_string")
    if old == new and not profile.is_reference:
        raise BadCall("ValueError: old_string and new_string are equal; there is nothing to change")
    return Request(op="edit", args={"path": path, "old": old, "new": new, "all": _truthy(arguments.get("replace_all"))})


def _glob(arguments: dict[str, Any], profile: Profile) -> Request:
    pattern = arguments.get("pattern")
    if not pattern:
        raise BadCall("ValueError: pattern is required")
    args = {
        "pattern": _text(arguments, "pattern"),
        "path": _text(arguments, "path") if arguments.get("path") else ".",
        "limit": profile.glob_limit,
        "hidden": not profile.is_reference,
    }
    return Request(op="glob", args=args)


def _bash(arguments: dict[str, Any], profile: Profile) -> Request:
    if not arguments.get("command"):
        raise BadCall("ValueError: command is required")
    timeout = _reference_timeout(arguments, profile) if profile.is_reference else _leaf_timeout(arguments, profile)
    args = {
        "command": _text(arguments, "command"),
        "timeout_s": timeout,
        "max_chars": profile.bash_chars,
        "login": profile.is_reference,
        "universal": profile.is_reference,
    }
    return Request(op="bash", args=args, timeout_s=timeout)


_MAKERS: dict[str, Callable[[dict[str, Any], Profile], Request]] = {
    "Read": _read,
    "Write": _write,
    "Edit": _edit,
    "Glob": _glob,
    "Bash": _bash,
}


def _leaf_timeout(arguments: dict[str, Any], profile: Profile) -> float:
    """Seconds, whatever their size; what lies outside the rule is refused with the rule."""
    rule = f"timeout is in seconds, above 0 and at most {profile.bash_ceiling_s:.0f}"
    if arguments.get("timeout_ms") is not None:
        raise BadCall(f"ValueError: {rule}; timeout_ms is not taken. The command was not run.")
    raw = arguments.get("timeout")
    if raw is None or raw == "":
        return profile.bash_timeout_s
    try:
        value = math.nan if isinstance(raw, bool) else float(raw)
    except (TypeError, ValueError):
        value = math.nan
    if not 0 < value <= profile.bash_ceiling_s:
        raise BadCall(f"ValueError: {rule}; {raw!r} was given. The command was not run.")
    return value


def _reference_timeout(arguments: dict[str, Any], profile: Profile) -> float:
    """As the published harness: ``timeout_ms``, else ``timeout``, which above 1000 is taken for milliseconds."""
    raw, scale = arguments.get("timeout_ms"), 1000.0
    if raw is None:
        raw, scale = arguments.get("timeout"), 1.0
        if raw is None:
            return profile.bash_timeout_s
    try:
        value = float(raw) / scale
    except (TypeError, ValueError) as error:
        raise BadCall(f"{type(error).__name__}: {error}") from None
    if not math.isfinite(value):
        raise BadCall(f"ValueError: timeout must be finite, got {raw!r}")
    value = value / 1000.0 if scale == 1.0 and value > 1000 else value
    return min(max(0.1, value), profile.bash_ceiling_s)


def _path(arguments: dict[str, Any]) -> str:
    key = "file_path" if arguments.get("file_path") else "path"
    if not arguments.get(key):
        raise BadCall("ValueError: file_path is required")
    return _text(arguments, key)


def _text(arguments: dict[str, Any], key: str) -> str:
    value = arguments.get(key)
    if value is None:
        raise BadCall(f"ValueError: {key} is required")
    if not isinstance(value, str):
        raise BadCall(f"ValueError: {key} must be a string, got {type(value).__name__}")
    return value


def _integer(arguments: dict[str, Any], key: str, default: int, profile: Profile) -> int:
    value = arguments.get(key)
    if value is None or value == "":
        return default
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        if profile.is_reference:
            raise BadCall(f"{type(error).__name__}: {error}") from None
        raise BadCall(f"ValueError: {key} must be a whole number, got {value!r}") from None


def _truthy(value: Any) -> bool:
    return value if isinstance(value, bool) else str(value or "").strip().lower() in {"1", "true", "yes", "on"}
