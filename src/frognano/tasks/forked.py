"""The forked judge: a resident that imported pytest once, and for every job forks into fresh namespaces.

A resident lives in a sandbox of its own, where no solver's file is ever visible to it. For each job it forks;
the fork gets new user, process, mount, network and IPC namespaces, the snapshot under a fresh overlay, no
capability and the sandbox's system-call filter. Verdicts equal those of the cold judge (tests compare them, all
attacks included) at a fraction of the cost. A resident that is lost or does not answer is replaced; the job that
it had has no verdict.

Jobs share the resident's limits on memory and processes, one job at a time. Kernel faults in namespaces are a
wider surface here than in the cold judge, whose sandbox may not make any.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections import OrderedDict
from pathlib import Path

from frognano.records import Runtime
from frognano.sandbox import seccomp
from frognano.sandbox.contract import Limits, Sandbox, SandboxError, SandboxSpec
from frognano.sandbox.local import LocalBackend, Resident
from frognano.tasks import inside
from frognano.tasks.inside import boot
from frognano.tasks.judging import SLACK_S, Evidence, Job
from frognano.tasks.patch import FILE, Entry
from frognano.tasks.snapshot import SnapshotStore
from frognano.tasks.testrun import TestRun, job_of

TREES = "/opt/extra/0"
"""Where the store's trees stand in a resident's sandbox: its first extra folder."""
WRITABLE = ("/tmp", "/dev/shm", "/home/frog")
SCRATCH = "/var/tmp"

Shape = tuple[str, int]
"""What residents differ by: the working directory and the hash seed."""


class ForkedJudge:
    """Residents on demand, at most ``idle`` kept; an async context manager. Jobs run in ``store``'s snapshots only."""

    def __init__(
        self, store: SnapshotStore, limits: Limits | None = None, extra_paths: tuple[Path, ...] = (), idle: int = 4
    ) -> None:
        self._store, self._trees = store, store.root / "trees"
        self._limits = limits or Limits()
        self._extra, self._idle_limit = extra_paths, idle
        self._idle: OrderedDict[Shape, list[Sandbox]] = OrderedDict()
        self._filter = base64.b64encode(seccomp.program()).decode("ascii")
        folder = Path(inside.__file__).parent
        scripts: dict[str, Path | Resident] = {name: folder / f"{name}.py" for name in boot.MODULES}
        scripts["boot"] = Resident(script=folder / "boot.py", flags=("-s", "-u"), nests=True)
        self._backend = LocalBackend(scripts, warm=0)
        self._nothing = tempfile.TemporaryDirectory(prefix="frognano-")
        self._copy = False

    async def __aenter__(self) -> ForkedJudge:
        """Start, and try one job. Raises SandboxError where namespaces cannot be nested."""
        await self._backend.__aenter__()
        try:
            await self._probe()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._idle.clear()
        await self._backend.__aexit__(*exc)
        self._nothing.cleanup()

    async def run(self, job: Job, snapshot: Path, hash_seed: int) -> Evidence:
        """Run one job in a resident that has nothing else to do. Raises SandboxError when it is lost."""
        shape = (job["workdir"], hash_seed)
        resident = await self._take(shape)
        job = {
            **job,
            "lower": f"{TREES}/{snapshot.name}",
            "hide": TREES,
            "copy": self._copy,
            "scratch": SCRATCH,
            "writable": WRITABLE,
            "disk_mb": self._limits.disk_mb,
            "filter": self._filter,
        }
        try:
            evidence = await resident.request("judge", {"job": json.dumps(job)}, job["timeout_s"] + SLACK_S)
        except BaseException:
            await resident.close()
            raise
        await self._give_back(shape, resident)
        return evidence

    async def _probe(self) -> None:
        """Find out whether overlays can be written here; elsewhere trees are copied for each job."""
        snapshot = self._store.add_files({"folder/file": Entry(FILE, b"old")})
        new = Entry(FILE, b"new")
        run = TestRun(snapshot, Runtime(), ("folder",), (), {"folder/file": new, "folder/other": new})
        for self._copy in (False, True):
            evidence = await self.run(job_of(run), self._store.path(snapshot), 0)
            if not evidence.get("error"):
                return
        raise SandboxError(f"the forked judge cannot work here: {evidence['error']}")

    async def _take(self, shape: Shape) -> Sandbox:
        idle = self._idle.get(shape)
        if idle:
            return idle.pop()
        workdir, hash_seed = shape
        spec = SandboxSpec(
            snapshot=Path(self._nothing.name),
            workdir=workdir,
            env={"PYTHONHASHSEED": str(hash_seed)},
            limits=self._limits,
            extra_paths=(self._trees, *self._extra),
        )
        return await self._backend.open(spec, "boot")

    async def _give_back(self, shape: Shape, resident: Sandbox) -> None:
        self._idle.setdefault(shape, []).append(resident)
        self._idle.move_to_end(shape)
        while sum(map(len, self._idle.values())) > self._idle_limit:
            oldest = next(iter(self._idle))
            surplus = self._idle[oldest].pop()
            if not self._idle[oldest]:
                del self._idle[oldest]
            await surplus.close()
