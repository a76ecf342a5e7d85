"""One call, one answer: the five tools as the agent meets them.

Whatever a tool does, the answer is text the model can use; only a lost sandbox raises. ``run_tool_locally`` gives
the same texts on a host folder, for making training data from commands of our own: it is NOT a sandbox.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frognano.leaf import texts
from frognano.leaf.arguments import BadCall, Request, prepare
from frognano.leaf.profile import Profile
from frognano.records import Observation, ToolCall
from frognano.sandbox import runner
from frognano.sandbox.contract import OperationError, Sandbox

GRACE_S = 15.0
"""Wall seconds beyond an operation's own time after which a silent runner counts as lost."""


async def run_tool(
    sandbox: Sandbox, call: ToolCall, profile: Profile, workdir: str, deadline_s: float | None = None
) -> Observation:
    """Run one call in ``sandbox`` and answer it; ``deadline_s`` is what is left of the episode's wall seconds.

    Raises SandboxError when the sandbox is lost; every other failure is an answer.
    """
    began = time.monotonic()
    try:
        request = prepare(call, profile)
        if deadline_s is not None and deadline_s < request.timeout_s:
            request = _shorter(request, max(0.1, deadline_s))
        result = await sandbox.request(request.op, {**request.args, "workdir": workdir}, request.timeout_s + GRACE_S)
        text, failed = _answer(request, result, profile)
    except BadCall as error:
        text, failed = str(error), True
    except OperationError as error:
        text, failed = texts.format_error(error.kind, error.message), True
    elapsed = time.monotonic() - began
    return Observation(call_id=call.id, tool=call.name, text=texts.sendable(text), failed=failed, elapsed_s=elapsed)


def run_tool_locally(root: Path, name: str, arguments: dict[str, Any], profile: Profile) -> str:
    """The answer of one call made on the host folder ``root``, without a sandbox.

    For trusted, generated calls only: Bash runs in the host's own shell. File tools refuse paths outside ``root``.
    """
    try:
        request = prepare(ToolCall(id="local", name=name, arguments=arguments), profile)
        _stay_inside(root, request)
        result = runner.OPS[request.op](workdir=str(root), **request.args)
        return texts.sendable(_answer(request, result, profile)[0])
    except BadCall as error:
        return str(error)
    except (OSError, ValueError) as error:
        return texts.format_error(type(error).__name__, str(error))


def _stay_inside(root: Path, request: Request) -> None:
    wall = os.path.realpath(root)
    for key in ("path", "pattern"):
        if key in request.args:
            real = os.path.realpath(runner.locate(wall, request.args[key]))
            if real != wall and not real.startswith(wall + os.sep):
                raise PermissionError(f"{request.args[key]} lies outside the folder")


def _shorter(request: Request, timeout_s: float) -> Request:
    args = {**request.args, "timeout_s": timeout_s} if request.op in {"bash", "glob"} else request.args
    return Request(op=request.op, args=args, timeout_s=timeout_s)


def _answer(request: Request, result: dict[str, Any], profile: Profile) -> tuple[str, bool]:
    """The text of a result, and whether the tool failed."""
    if request.op == "bash":
        failed = result["timed_out"] or result["code"] != 0
        return texts.format_bash(result, request.timeout_s, profile), failed
    if request.op == "glob":
        return texts.format_glob(result, request.args["path"], profile), not result["folder_exists"]
    formatter, failed = _FORMATTERS[request.op]
    return formatter(result, profile), failed(result)


_FORMATTERS: dict[str, tuple[Callable[[dict[str, Any], Profile], str], Callable[[dict[str, Any]], bool]]] = {
    "read": (texts.format_read, lambda result: bool(result["binary"])),
    "write": (texts.format_write, lambda result: False),
    "edit": (texts.format_edit, lambda result: not result["replaced"]),
}
