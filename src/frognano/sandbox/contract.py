"""What a sandbox is: a handful of calls, the same on every backend.

A sandbox is one sealed world with a writable copy of a read-only snapshot at ``spec.workdir``. All file and
command work goes through one resident runner inside it (``runner.py``), by framed requests. Everything that
runs inside is hostile; what comes back is data and is never executed, rendered or handed to host git.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Protocol

from frognano.records import Record


class SandboxError(RuntimeError):
    """The sandbox failed, not the code inside it: lost, refused, out of slots. Never scored as a zero."""


class OperationError(RuntimeError):
    """The runner lives and answered that an operation failed; ``kind`` is the name of the exception inside."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class ChangesTooLarge(Exception):
    """What the solver left is larger than a patch may be. Not a failure of the sandbox: the episode is scored."""


class Limits(Record):
    """What one sandbox may use; how each is enforced is reported by the backend."""

    memory_mb: int = 1024
    pids: int = 128
    disk_mb: int = 256
    """Size cap of everything written inside: the overlay's upper layer, /tmp and the home folder."""


class SandboxSpec(Record):
    """One sandbox to open."""

    snapshot: Path
    """Host folder that becomes the read-only lower layer; never written to."""
    workdir: str = "/app"
    env: dict[str, str] = {}
    limits: Limits = Limits()
    network: Literal["none"] = "none"
    """Only the sandbox's own loopback."""
    extra_paths: tuple[Path, ...] = ()
    """Host folders of packages that the repository's tests need; importable inside, read-only."""


class Sandbox(Protocol):
    """One open sandbox. Calls are made one at a time."""

    @property
    def workdir(self) -> str:
        """Where the repository stands inside; a request without ``workdir`` is given this one."""
        ...

    async def request(self, op: str, args: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Ask the resident runner and return its result; ``timeout_s`` is wall seconds.

        Raises OperationError when the runner answers with an error, SandboxError when it is lost or silent past
        the time.
        """
        ...

    async def changes(self) -> bytes:
        """The difference between snapshot and present tree as a git patch (binary, renames, modes, new files).

        Works whatever the solver did to ``.git``; nothing the solver wrote is executed on the host.
        Raises ChangesTooLarge.
        """
        ...

    async def close(self) -> None:
        """End every process inside and free the slot; safe to call twice."""
        ...


class SandboxBackend(Protocol):
    """A source of sandboxes, used as an async context manager."""

    async def __aenter__(self) -> SandboxBackend: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """Open a sandbox, from the warm pool where there is one."""
        ...

    def enforcement(self) -> dict[str, str]:
        """How each limit is enforced here, for example ``{"memory": "cgroup v1", "disk": "tmpfs size"}``."""
        ...
