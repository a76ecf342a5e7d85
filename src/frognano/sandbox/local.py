"""The local backend: Linux namespaces by bubblewrap, an overlay over the snapshot, a warm resident runner.

One keeper process holds the mounts; each sandbox is one slot in it, used once. Warm slots have their resident
running before any snapshot is known; opening one mounts the overlay and hands it over. It refuses to run where
it cannot isolate, unless ``no_isolation`` was chosen.

It does not protect from faults of the kernel that can be reached through ordinary system calls, nor from
measuring other load on the machine.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frognano.records import Record
from frognano.sandbox import interior, namespaces, seccomp
from frognano.sandbox.changes import git_folder, make_patch, read_changes
from frognano.sandbox.contract import SandboxError, SandboxSpec
from frognano.sandbox.keeper_client import KeeperClient
from frognano.sandbox.plain import PlainSandbox
from frognano.sandbox.pool import WarmPool
from frognano.sandbox.transport import Connection

START_TIMEOUT_S = 120.0
MAX_CHANGE_BYTES = 64 << 20
MAX_PATCH_BYTES = 16 << 20
_OWN_PROCESSES = 2


class Resident(Record):
    """A program that stays inside a sandbox and answers framed requests on its standard input and output."""

    script: Path
    flags: tuple[str, ...] = ("-I", "-S", "-u")
    """Options of its Python; without ``-S`` it can import pytest."""
    nests: bool = False
    """It makes namespaces of its own and puts a system-call filter on what runs in them; it gets none itself."""


@dataclass(frozen=True)
class Shape:
    """Everything of a sandbox but its snapshot."""

    resident: str
    spec: str
    """The sandbox's spec with an empty snapshot, as JSON."""

    @classmethod
    def of(cls, spec: SandboxSpec, resident: str) -> Shape:
        return cls(resident, spec.model_copy(update={"snapshot": Path()}).model_dump_json())


def _allow_descriptors() -> None:
    """Each sandbox needs two descriptors of this process; many systems start with a soft limit of 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 8192:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))


@dataclass(eq=False)
class Slot:
    """A started slot: its resident answers, it has no snapshot yet."""

    name: str
    connection: Connection
    errors: int
    """Read end of the runner's standard error; read only when something fails."""


class LocalSandbox:
    """One open sandbox."""

    def __init__(self, backend: LocalBackend, slot: Slot, spec: SandboxSpec):
        self._backend, self._slot, self._spec = backend, slot, spec
        self._closed = False

    @property
    def workdir(self) -> str:
        return self._spec.workdir

    async def request(self, op: str, args: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        try:
            return await self._slot.connection.request(op, {"workdir": self.workdir, **args}, timeout_s)
        except BaseException:
            if self._slot.connection.lost:
                await asyncio.shield(self.close())
            raise

    async def changes(self) -> bytes:
        if self._closed:
            raise SandboxError("the sandbox is closed")
        return await self._backend.changes_of(self._slot)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._backend.end(self._slot)


class LocalBackend:
    """A source of sandboxes on this machine; ``warm`` is the number of idle slots kept ready.

    ``residents`` maps names to programs; ``open(spec, resident)`` picks one, "runner" by default. ``prewarm`` are
    specs (their snapshot is ignored) whose shapes are filled at start. ``cgroups`` and ``overlay``: False does
    without, as on a machine that does not grant them.
    """

    def __init__(
        self,
        residents: Mapping[str, Path | Resident],
        *,
        warm: int = 4,
        no_isolation: bool = False,
        cache: Path | None = None,
        prewarm: tuple[SandboxSpec, ...] = (),
        cgroups: bool = True,
        overlay: bool = True,
    ):
        self._residents = {
            name: value if isinstance(value, Resident) else Resident(script=value) for name, value in residents.items()
        }
        self._cache = cache or interior.default_cache()
        self._no_isolation = no_isolation
        self._warm, self._prewarm = warm, prewarm
        self._cgroups, self._overlay = cgroups, overlay
        self._keeper: KeeperClient | None = None
        self._pool: WarmPool[Shape, Slot] | None = None
        self._abilities: dict[str, Any] = {}
        self._bwrap = ""
        self._count = 0
        self._plain: set[PlainSandbox] = set()
        self._slots: set[Slot] = set()

    async def __aenter__(self) -> LocalBackend:
        if self._no_isolation:
            return self
        self._bwrap = namespaces.bwrap_path()
        _allow_descriptors()
        scripts = {name: resident.script for name, resident in self._residents.items()}
        plan = await asyncio.to_thread(interior.skeleton_plan, self._cache, scripts)
        self._keeper = KeeperClient()
        try:
            self._abilities = await self._keeper.ask("build", plan=plan, cgroups=self._cgroups, overlay=self._overlay)
        except SandboxError as error:
            await self._keeper.close()
            raise SandboxError(namespaces.explain(str(error))) from None
        self._pool = WarmPool(self._start, self.end, lambda slot: not slot.connection.lost, self._warm)
        for spec in self._prewarm:
            self._pool.warm(Shape.of(spec, "runner"))
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._pool is not None:
            await self._pool.close()
        await asyncio.gather(*(self.end(slot) for slot in list(self._slots)))
        for sandbox in list(self._plain):
            await sandbox.close()
        if self._keeper is not None:
            await self._keeper.close()
        self._keeper, self._pool = None, None

    async def open(self, spec: SandboxSpec, resident: str = "runner") -> LocalSandbox | PlainSandbox:
        """Open a sandbox over ``spec.snapshot`` with the named resident in it."""
        if resident not in self._residents:
            raise SandboxError(f"no resident named {resident!r}; known: {', '.join(sorted(self._residents))}")
        if not spec.snapshot.is_dir():
            raise SandboxError(f"the snapshot {spec.snapshot} is not a folder")
        if not spec.workdir.startswith("/"):
            raise SandboxError(f"the working directory {spec.workdir!r} is not absolute")
        if self._no_isolation:
            program = [*self._residents[resident].flags, str(self._residents[resident].script)]
            return await PlainSandbox.open(program, spec, self._plain)
        if self._pool is None or self._keeper is None:
            raise SandboxError("the backend is not open; use it as an async context manager")
        slot = await self._pool.take(Shape.of(spec, resident))
        try:
            await self._keeper.ask("show", slot=slot.name, snapshot=str(spec.snapshot.resolve()))
        except BaseException:
            await self.end(slot)
            raise
        return LocalSandbox(self, slot, spec)

    def enforcement(self) -> dict[str, str]:
        """How each limit is enforced here."""
        if self._no_isolation:
            return dict.fromkeys(("isolation", "memory", "processes", "disk", "network"), "NONE (--no-isolation)")
        if not self._abilities:
            return {}
        version = self._abilities["cgroup"]
        return {
            "isolation": "bubblewrap namespaces" + (", as an ordinary user" if self._abilities["rootless"] else ""),
            "memory": f"cgroup v{version}" if version else "rlimit (address space of each process)",
            "processes": f"cgroup v{version}" if version else "rlimit (processes of the sandbox's user)",
            "disk": "tmpfs size",
            "network": "own namespace, loopback only",
            "snapshot": "overlay" if self._abilities["overlay"] else "copy",
            "system calls": "seccomp filter" if seccomp.program() else "not filtered",
        }

    async def settled(self) -> None:
        """Wait until the pool is as full as it gets; for measurements."""
        if self._pool is not None:
            await self._pool.settled()

    async def end(self, slot: Slot) -> None:
        """Kill everything in a slot, wait until it is dead, free its memory."""
        if slot not in self._slots:
            return
        self._slots.discard(slot)
        os.close(slot.errors)
        slot.connection.close()
        if self._keeper is not None:
            with suppress(SandboxError):
                await self._keeper.ask("drop", slot=slot.name)

    async def changes_of(self, slot: Slot) -> bytes:
        """The patch of one slot's sandbox."""
        assert self._keeper is not None
        reading, writing = os.pipe()
        with git_folder() as git_dir, os.fdopen(reading, "rb") as stream:
            try:
                await self._keeper.ask(
                    "changes", [writing], slot=slot.name, max_bytes=MAX_CHANGE_BYTES, git_dir=str(git_dir)
                )
            finally:
                os.close(writing)
            found = await asyncio.to_thread(read_changes, stream, MAX_CHANGE_BYTES)
            return await asyncio.to_thread(make_patch, found, git_dir, MAX_PATCH_BYTES)

    async def _start(self, shape: Shape) -> Slot:
        assert self._keeper is not None
        spec = SandboxSpec.model_validate_json(shape.spec)
        self._count += 1
        name = str(self._count)
        ours, theirs = socket.socketpair()
        errors_r, errors_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(errors_w, True)
        connection = await Connection.over(ours)
        slot = Slot(name, connection, errors_r)
        self._slots.add(slot)
        # One file for each start: bwrap reads it from its present position, which copies of a descriptor share.
        program = os.memfd_create("frognano-filter", os.MFD_CLOEXEC)
        os.write(program, seccomp.program())
        os.lseek(program, 0, os.SEEK_SET)
        try:
            await self._keeper.ask(
                "start", [theirs.fileno(), errors_w, program], **self._start_request(name, spec, shape.resident)
            )
            theirs.close()
            await connection.request("ping", {}, START_TIMEOUT_S)
        except BaseException as error:
            words = await self._last_words(slot)
            await self.end(slot)
            if isinstance(error, SandboxError):
                raise SandboxError(namespaces.explain(words or str(error))) from None
            raise
        finally:
            theirs.close()
            os.close(errors_w)
            os.close(program)
        return slot

    def _start_request(self, name: str, spec: SandboxSpec, resident: str) -> dict[str, Any]:
        assert self._keeper is not None
        limits = spec.limits
        flags = self._residents[resident].flags
        command = [str(interior.base_python()), *flags, f"{interior.RESIDENTS}/{resident}.pyc"]
        if not self._abilities["cgroup"]:
            # Set inside, because the kernel counts the processes of a user in each user namespace on its own.
            command = ["/bin/bash", "-c", 'ulimit -u "$0" && exec "$@"', str(limits.pids + _OWN_PROCESSES), *command]
        filtered = bool(seccomp.program()) and not self._residents[resident].nests
        options = namespaces.arguments(self._keeper.base, name, spec.workdir, filtered, command)
        return {
            "slot": name,
            "argv": [self._bwrap, *options],
            "env": {**interior.ENVIRONMENT, **spec.env},
            "workdir": spec.workdir,
            "extra": [str(path.resolve()) for path in spec.extra_paths],
            "disk_bytes": limits.disk_mb << 20,
            "memory_bytes": (limits.memory_mb + limits.disk_mb) << 20,
            "pids": limits.pids + _OWN_PROCESSES,
            "rlimits": self._rlimits(spec),
        }

    def _rlimits(self, spec: SandboxSpec) -> dict[str, int]:
        # No file outgrows the disk: one in memory alone (a memfd) would fill the sandbox for no process's account, and
        # the kernel would end the runner for it.
        limits = {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": 4096, "RLIMIT_FSIZE": (spec.limits.disk_mb + 1) << 20}
        if not self._abilities.get("cgroup"):
            limits["RLIMIT_AS"] = spec.limits.memory_mb << 20
        return limits

    async def _last_words(self, slot: Slot) -> str:
        await asyncio.sleep(0.02)
        with suppress(BlockingIOError):
            return os.read(slot.errors, 4096).decode(errors="replace")
        return ""
