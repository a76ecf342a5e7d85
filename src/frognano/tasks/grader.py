"""The grader: a fresh sandbox, the snapshot, the solver's patch, then the grading tests, restored last.

The oracle scores 1, the empty patch 0. A solver cannot decide how it is tested (``protect``), the run is watched
by a parent outside the test process (``inside/judge.py``), planted tests void a forged report (``sentinels``),
and the evidence is ruled on outside the sandbox (``ruling``). An infinite loop is a zero (``test_timeout``), a
patch that does not apply is a zero (``patch_failed``); a lost sandbox is no verdict: reward None, to be retried.

What it cannot exclude: code that, inside the test process, reads and understands each test and forges a whole
consistent report, planted tests included.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

from frognano.config.base import Settings
from frognano.records import Task, Verdict
from frognano.sandbox.contract import Limits, SandboxBackend, SandboxError
from frognano.sandbox.local import LocalBackend
from frognano.tasks.folder import TaskContent, read_content
from frognano.tasks.forked import ForkedJudge
from frognano.tasks.judging import ColdJudge, Evidence, Judge
from frognano.tasks.patch import Changes, Entry, PatchError, apply_patch
from frognano.tasks.protect import sift
from frognano.tasks.ruling import Demands, rule
from frognano.tasks.sentinels import plant
from frognano.tasks.snapshot import SnapshotStore
from frognano.tasks.testrun import TestReport, TestRun, job_of, report_of

COPIED_P2P = 2
"""How many guard tests of each file are copied as planted tests, beside every hidden one."""


class NoVerdict(RuntimeError):
    """The tests could not be run: nothing is known about the code."""


class GraderSettings(Settings):
    """How grading runs."""

    mode: Literal["auto", "forked", "cold"] = "auto"
    """A warm forked interpreter, one cold sandbox for each verdict, or forked where this machine allows it."""
    workers: int = 2
    """How many verdicts are worked on at once."""
    attempts: int = 2
    """How often a run is tried when the sandbox is lost."""
    memory_mb: int = 1024
    """Memory of one grading sandbox."""
    pids: int = 128
    """Processes of one grading sandbox."""
    disk_mb: int = 256
    """Disk space of one grading sandbox."""
    extra_paths: tuple[Path, ...] = ()
    """Folders of packages that the tests need beside pytest."""

    @property
    def limits(self) -> Limits:
        """Limits of one grading sandbox."""
        return Limits(memory_mb=self.memory_mb, pids=self.pids, disk_mb=self.disk_mb)


@asynccontextmanager
async def open_grader(
    backend: SandboxBackend, store: SnapshotStore, settings: GraderSettings | None = None
) -> AsyncIterator[Grader]:
    """A grader of the mode that the settings name. Raises SandboxError when that mode cannot work here."""
    settings = settings or GraderSettings()
    async with AsyncExitStack() as stack:
        judge: Judge | None = None
        isolated = isinstance(backend, LocalBackend) and not backend.enforcement()["isolation"].startswith("NONE")
        if settings.mode == "forked" or (settings.mode == "auto" and isolated):
            try:
                forked = ForkedJudge(store, settings.limits, settings.extra_paths, 2 * settings.workers)
                judge = await stack.enter_async_context(forked)
            except SandboxError:
                if settings.mode == "forked":
                    raise
        yield Grader(backend, store, settings, judge)


class Grader:
    """Runs tests and rules on patches; safe to share between tasks of one event loop."""

    def __init__(
        self,
        backend: SandboxBackend | None,
        store: SnapshotStore,
        settings: GraderSettings | None = None,
        judge: Judge | None = None,
    ) -> None:
        self._settings = settings or GraderSettings()
        if judge is None and backend is None:
            raise ValueError("a grader needs a sandbox backend or a judge")
        self._judge = judge or ColdJudge(backend, self._settings.limits, self._settings.extra_paths)  # type: ignore[arg-type]
        self._store = store
        self._gate = asyncio.Semaphore(self._settings.workers)

    async def grade(
        self, task: Task, folder: Path, patch: bytes, *, order_seed: int = 0, hash_seed: int = 0
    ) -> Verdict:
        """Grade ``patch``, a change to the task's snapshot, by the task in ``folder``."""
        try:
            changes = apply_patch(lambda name: self._store.entry(task.snapshot, name), patch)
        except PatchError as error:
            return Verdict(reward=0.0, reason="patch_failed", detail=str(error))
        content = await asyncio.to_thread(read_content, folder)
        return await self._judged(task, content, changes, order_seed, hash_seed)

    async def run_tests(self, run: TestRun) -> TestReport:
        """Run tests without ruling on them. Raises NoVerdict when they could not be run."""
        try:
            evidence = await self._evidence(run)
        except SandboxError as error:
            raise NoVerdict(str(error)) from error
        return report_of(evidence, run.ids)

    async def _judged(
        self, task: Task, content: TaskContent, changes: Changes, order_seed: int, hash_seed: int
    ) -> Verdict:
        sealed = self._store.manifest(task.snapshot)
        sifted = sift(changes, sealed, task.tests.files, task.runtime.pythonpath, task.origin.module)
        expected = (*task.tests.f2p, *task.tests.p2p)
        tests, demands = self._planted(task, content, expected)
        run = TestRun(
            snapshot=task.snapshot,
            runtime=task.runtime,
            files=tuple(sorted({test.split("::", 1)[0] for test in expected})),
            ids=(*expected, *demands.must_fail, *demands.must_pass),
            changes=sifted.kept,
            tests=tests,
            order_seed=order_seed,
            hash_seed=hash_seed,
        )
        left_out = "".join(f"\nleft out: {name} ({why})" for name, why in sorted(sifted.left_out.items()))
        try:
            evidence = await self._evidence(run)
        except SandboxError as error:
            return Verdict(reward=None, reason="no_verdict", detail=f"{error}{left_out}")
        ruling = rule(evidence, demands)
        detail = f"{ruling.detail}{left_out}".strip()
        return Verdict(
            reward=ruling.reward,
            reason=ruling.reason,
            outcomes=ruling.outcomes,
            detail=detail,
            elapsed_s=evidence["elapsed"],
        )

    def _planted(self, task: Task, content: TaskContent, expected: tuple[str, ...]) -> tuple[dict[str, Entry], Demands]:
        """Every file that holds an expected test, as sealed with the task, with planted tests in it."""
        tests: dict[str, Entry] = dict(content.tests)
        for file in {test.split("::", 1)[0] for test in expected} - tests.keys():
            found = self._store.entry(task.snapshot, file)
            if found is not None:
                tests[file] = found
        draw = random.Random(os.urandom(16))
        must_fail: list[str] = []
        must_pass: list[str] = []
        for file, chosen in _worth_copying(task).items():
            if file not in tests:
                continue
            planted = plant(file, tests[file].data, chosen, draw, plain=not must_pass)
            tests[file] = Entry(tests[file].mode, planted.source)
            must_fail += planted.must_fail
            must_pass += planted.must_pass
        return tests, Demands(expected, frozenset(must_fail), frozenset(must_pass))

    async def _evidence(self, run: TestRun) -> Evidence:
        """One run, tried again in a new sandbox when one is lost. Raises SandboxError."""
        job = job_of(run)
        snapshot = await asyncio.to_thread(self._store.path, run.snapshot)
        for attempt in range(self._settings.attempts):
            try:
                async with self._gate:
                    began = time.monotonic()
                    evidence = await self._judge.run(job, snapshot, run.hash_seed)
                if not evidence.get("error"):
                    return {**evidence, "elapsed": time.monotonic() - began}
                raise SandboxError(str(evidence["error"]))
            except SandboxError:
                if attempt + 1 == self._settings.attempts:
                    raise
        raise AssertionError("at least one attempt is made")


def _worth_copying(task: Task) -> dict[str, list[str]]:
    """Test file → the tests to copy: every hidden test of it and a few that guard."""
    chosen: dict[str, list[str]] = {}
    for test in task.tests.f2p:
        chosen.setdefault(test.split("::", 1)[0], []).append(test)
    guards: dict[str, set[str]] = {}
    for test in sorted(task.tests.p2p):
        file, function = test.split("::", 1)[0], test.split("[", 1)[0]
        seen = guards.setdefault(file, set())
        if function in seen or len(seen) < COPIED_P2P:
            seen.add(function)
            chosen.setdefault(file, []).append(test)
    return chosen
