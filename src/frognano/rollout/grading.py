"""Verdicts for trajectories: graded once per distinct patch, never guessed.

A verdict is a function of the task's snapshot, its tests and the patch, because tests that disagree with themselves
were refused when the task was made. So attempts of equal patches share one graded run. An empty patch is a zero
without a run: every task was confirmed to score 0 on its untouched snapshot. No verdict is never shared: it is
asked for again.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from frognano.records import NO_VERDICT, Task, Trajectory, Verdict
from frognano.tasks.grader import Grader


class Gradings:
    """Grades trajectories with one grader; ``reuse`` False runs the tests every time."""

    def __init__(self, grader: Grader, reuse: bool = True) -> None:
        self._grader, self._reuse = grader, reuse
        self._known: dict[str, Verdict] = {}
        self._busy: dict[str, asyncio.Lock] = {}
        self.runs = 0
        """Graded runs so far."""
        self.reused = 0
        """Verdicts taken from an equal patch."""

    async def graded(self, trajectory: Trajectory, task: Task, folder: Path) -> Trajectory:
        """The trajectory with its verdict; one that ended for reasons of ours has none and runs nothing."""
        if trajectory.exit_reason in NO_VERDICT:
            verdict = Verdict(reward=None, reason="no_verdict", detail=trajectory.error)
        else:
            verdict = await self.verdict(task, folder, trajectory.patch.encode("utf-8", "surrogateescape"))
        return trajectory.model_copy(update={"verdict": verdict})

    async def verdict(self, task: Task, folder: Path, patch: bytes) -> Verdict:
        """The verdict on ``patch``."""
        if not patch.strip():
            return Verdict(reward=0.0, reason="empty_patch")
        if not self._reuse:
            return await self._run(task, folder, patch)
        key = _key(task, patch)
        async with self._busy.setdefault(key, asyncio.Lock()):
            known = self._known.get(key)
            if known is not None:
                self.reused += 1
                return known
            verdict = await self._run(task, folder, patch)
            if verdict.reward is not None:
                # Outcomes of single tests are long; what is shared keeps to what the reward needs.
                self._known[key] = verdict.model_copy(update={"outcomes": {}})
            return verdict

    async def _run(self, task: Task, folder: Path, patch: bytes) -> Verdict:
        self.runs += 1
        return await self._grader.grade(task, folder, patch)


def _key(task: Task, patch: bytes) -> str:
    """Tasks that differ in their statement alone share verdicts."""
    tests = hashlib.sha256(task.tests.model_dump_json().encode()).hexdigest()
    return f"{task.snapshot}/{tests}/{hashlib.sha256(patch).hexdigest()}"
