"""What the user is told when something expected goes wrong: one line that names the thing and the fix.

The error classes are named, not imported, so that this file costs nothing: an error that was raised has its module
loaded already. Anything that is not in the table is a defect of ours and is not explained away.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130

_EXPECTED: dict[str, int] = {
    "frognano.cli.errors.InputError": BAD_INPUT,
    "frognano.cli.errors.RunFailed": FAILED,
    "frognano.config.base.ConfigError": BAD_INPUT,
    "frognano.tasks.tree.TreeError": BAD_INPUT,
    "frognano.tasks.patch.PatchError": BAD_INPUT,
    "frognano.tasks.folder.TaskFolderError": BAD_INPUT,
    "frognano.tasks.pool.PoolError": BAD_INPUT,
    "frognano.coevolve.loop.NothingToTrain": FAILED,
    "frognano.coevolve.phases.NoScore": FAILED,
    "frognano.tasks.snapshot.SnapshotError": FAILED,
    "frognano.tasks.grader.NoVerdict": FAILED,
    "frognano.taskpilot.repository.RepositoryError": BAD_INPUT,
    "frognano.taskpilot.baseline.BaselineError": BAD_INPUT,
    "frognano.leaf.policy.PolicyError": FAILED,
    "frognano.policy.chat.ChatFormatError": BAD_INPUT,
    "frognano.policy.checkpoint.CheckpointFolderError": BAD_INPUT,
    "frognano.sandbox.contract.SandboxError": FAILED,
    "frognano.sandbox.contract.ChangesTooLarge": FAILED,
    "frognano.rollout.run_folder.RecipeChanged": BAD_INPUT,
    "frognano.rollout.run_folder.JournalError": FAILED,
    "frognano.train.checkpoint.CheckpointError": FAILED,
    "frognano.train.update.UpdateError": FAILED,
}


class InputError(ValueError):
    """Something the user gave cannot be used; the message names it and the fix."""


class RunFailed(RuntimeError):
    """The command did what it could and did not succeed; the message says why."""


def explain(error: BaseException) -> int | None:
    """Tell the user and return the exit code; None, and no word, when the error is not an expected one."""
    for one in _leaves(error):
        code = _code(one)
        if code is not None:
            tell(_message(one))
            return code
    return None


def interrupted(argv: Sequence[str]) -> int:
    """Say that the command was stopped and how to go on."""
    tell(f"stopped. The same command goes on or begins again:  {shlex.join(['frognano', *argv[1:]])}")
    return INTERRUPTED


def tell(message: str) -> None:
    """One message on standard error; control characters that came from elsewhere are spelled out."""
    from frognano.leaf.transcript import plain

    sys.stderr.write(f"frognano: {plain(message).strip()}\n")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _code(error: BaseException) -> int | None:
    for kind in type(error).__mro__:
        code = _EXPECTED.get(f"{kind.__module__}.{kind.__qualname__}")
        if code is not None:
            return code
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return BAD_INPUT
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("frognano"):
        return FAILED
    return None


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, ModuleNotFoundError):
        return f"the package {error.name!r} is not installed. Run:  pip install 'frognano[train]'"
    return str(error)
