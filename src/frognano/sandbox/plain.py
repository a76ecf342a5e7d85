"""Running WITHOUT isolation: the runner as an ordinary process on a copy of the snapshot.

For machines that cannot isolate and code that is trusted completely. It protects from nothing: what runs here
can read and write everything that the user can, and reach every network. Only ``--no-isolation`` chooses it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from frognano.sandbox import interior, walk
from frognano.sandbox.changes import git_folder, make_patch, read_changes
from frognano.sandbox.contract import SandboxError, SandboxSpec
from frognano.sandbox.transport import Connection

_MAX_BYTES = 64 << 20
_MAX_PATCH_BYTES = 16 << 20


class PlainSandbox:
    """One copy of a snapshot and one runner process; nothing more."""

    def __init__(self, process: subprocess.Popen[bytes], connection: Connection, folder: Path, spec: SandboxSpec):
        self._process, self._connection, self._folder, self._spec = process, connection, folder, spec
        self._registry: set[PlainSandbox] | None = None

    @classmethod
    async def open(cls, program: Sequence[str], spec: SandboxSpec, registry: set[PlainSandbox]) -> PlainSandbox:
        """Copy the snapshot and start the resident, ``program`` being its Python's options and its script.

        The sandbox stays in ``registry`` until it is closed.
        """
        folder = Path(tempfile.mkdtemp(prefix="frognano-plain-"))
        ours, theirs = socket.socketpair()
        (folder / "home").mkdir()
        await asyncio.to_thread(shutil.copytree, spec.snapshot, folder / "work", symlinks=True)
        own = {"PATH": os.environ.get("PATH", os.defpath), "HOME": f"{folder}/home"}
        environment = {**interior.ENVIRONMENT, **own, **spec.env}
        if spec.extra_paths:
            paths = [environment.get("PYTHONPATH", ""), *map(str, spec.extra_paths)]
            environment["PYTHONPATH"] = ":".join(path for path in paths if path)
        process = subprocess.Popen(
            [sys.executable, *program],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=environment,
            start_new_session=True,
        )
        theirs.close()
        sandbox = cls(process, await Connection.over(ours), folder, spec)
        sandbox._registry = registry
        registry.add(sandbox)
        return sandbox

    @property
    def workdir(self) -> str:
        return str(self._folder / "work")

    async def request(self, op: str, args: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        if args.get("workdir", self._spec.workdir) == self._spec.workdir:
            args = {**args, "workdir": self.workdir}
        return await self._connection.request(op, args, timeout_s)

    async def changes(self) -> bytes:
        if self._connection.lost:
            raise SandboxError("the sandbox is closed")
        return await asyncio.to_thread(self._patch)

    async def close(self) -> None:
        self._connection.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)
        await asyncio.to_thread(shutil.rmtree, self._folder, True)
        if self._registry is not None:
            self._registry.discard(self)

    def _patch(self) -> bytes:
        with git_folder() as git_dir, tempfile.TemporaryFile() as stream:
            job = walk.Job(self.workdir, str(self._spec.snapshot), True, _MAX_BYTES, str(git_dir))
            walk.send(stream.fileno(), job)
            stream.seek(0)
            return make_patch(read_changes(stream, _MAX_BYTES), git_dir, _MAX_PATCH_BYTES)
