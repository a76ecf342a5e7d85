"""One episode from end to end: a sandbox, the agent, the grader, the verdict; and many of them at once.

An admission gate bounds the sandboxes that are open at the same time; everything else waits in a queue of small
records. An episode that ended without a verdict (a lost sandbox, a model that could not be asked) is tried again a
bounded number of times with the same seed and counted apart; an episode that ended by itself or by its budget is
never repeated. The step log lies in the run folder from the first step on. Nothing here decides what an episode is
worth, and nothing here is journaled: the callers do both.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from frognano.config.leaf import LeafSettings
from frognano.leaf.episode import EpisodeSpec, run_episode
from frognano.leaf.steplog import StepLog
from frognano.policy.contract import Policy
from frognano.records import NO_VERDICT, Task, Trajectory
from frognano.rollout.grading import Gradings
from frognano.rollout.together import OrderedPolicy, Turnstile
from frognano.sandbox.contract import Limits, SandboxBackend, SandboxError, SandboxSpec
from frognano.tasks.folder import read_task
from frognano.tasks.snapshot import SnapshotStore

T = TypeVar("T")
_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class PlacedTask:
    """A task and the folder that holds its hidden parts."""

    task: Task
    folder: Path


@dataclass(frozen=True, slots=True)
class Attempt:
    """One episode that is wanted."""

    id: str
    """Unique in the run, and the name of its step log."""
    scope: str
    """What it belongs to: a group, a calibration, an evaluation."""
    placed: PlacedTask
    seed: int
    settings: LeafSettings


@dataclass
class EpisodeRunner:
    """Runs attempts; safe to call many times at once from one event loop."""

    backend: SandboxBackend
    store: SnapshotStore
    gradings: Gradings
    policy: Policy
    limits: Limits = _LIMITS
    concurrency: int = 64
    """Sandboxes of episodes open at once."""
    retries: int = 2
    """Further tries of an episode that ended without a verdict."""
    logs: Path | None = None
    """Folder of the step logs; None writes none."""
    on_episode: Callable[[Attempt, Trajectory], None] = lambda _attempt, _trajectory: None
    """Called with every finished episode."""
    retried: Counter[str] = field(default_factory=Counter)
    """Tries that ended without a verdict, by exit reason."""

    def __post_init__(self) -> None:
        self._gate = asyncio.Semaphore(self.concurrency)

    async def run(self, attempt: Attempt) -> Trajectory:
        """The finished, graded episode; its verdict's reward is None when every try ended without one."""
        return await self._run(attempt, self.policy, Turnstile(1), 0)

    async def run_together(self, attempts: Sequence[Attempt]) -> list[Trajectory]:
        """Run one cohort in lock-step, at most ``concurrency`` attempts; their trajectories in order."""
        if len(attempts) > self.concurrency:
            raise ValueError(f"a cohort of {len(attempts)} does not fit {self.concurrency} sandboxes")
        gate = Turnstile(len(attempts))
        policies = [OrderedPolicy(self.policy, gate, place) for place in range(len(attempts))]
        pairs = zip(attempts, policies, strict=True)
        return await all_of([self._run(one, policy, gate, place) for place, (one, policy) in enumerate(pairs)])

    async def _run(self, attempt: Attempt, policy: Policy, turnstile: Turnstile, place: int) -> Trajectory:
        for left in range(self.retries, -1, -1):
            async with self._gate:
                try:
                    trajectory = await self._act(attempt, policy)
                finally:
                    turnstile.passed(place)
            trajectory = await self.gradings.graded(trajectory, attempt.placed.task, attempt.placed.folder)
            if trajectory.verdict is not None and trajectory.verdict.reward is not None:
                break
            reason = trajectory.exit_reason if trajectory.exit_reason in NO_VERDICT else "grading"
            self.retried[reason] += 1 if left else 0
        self.on_episode(attempt, trajectory)
        return trajectory

    async def _act(self, attempt: Attempt, policy: Policy) -> Trajectory:
        task = attempt.placed.task
        try:
            snapshot = await asyncio.to_thread(self.store.path, task.snapshot)
            sandbox = await self.backend.open(self._sandbox_spec(task, snapshot))
        except SandboxError as error:
            return _not_begun(attempt, str(error))
        try:
            spec = EpisodeSpec(
                id=attempt.id,
                task_id=task.id,
                statement=task.statement,
                seed=attempt.seed,
                workdir=sandbox.workdir,
                settings=attempt.settings,
            )
            return await run_episode(spec, policy, sandbox, StepLog(self.log_of(attempt)))
        finally:
            await sandbox.close()

    def _sandbox_spec(self, task: Task, snapshot: Path) -> SandboxSpec:
        env = {**task.runtime.env, "PYTHONPATH": _pythonpath(task)}
        return SandboxSpec(snapshot=snapshot, workdir=task.runtime.workdir, env=env, limits=self.limits)

    def log_of(self, attempt: Attempt) -> Path | None:
        """Where the attempt's step log lies."""
        return None if self.logs is None else self.logs / attempt.scope / f"{attempt.id}.jsonl"


async def all_of(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once; when one fails, end the others and raise what it raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _pythonpath(task: Task) -> str:
    workdir = task.runtime.workdir
    return ":".join(workdir if entry == "." else f"{workdir}/{entry}" for entry in task.runtime.pythonpath)


def _not_begun(attempt: Attempt, error: str) -> Trajectory:
    return Trajectory(
        id=attempt.id,
        task_id=attempt.placed.task.id,
        seed=attempt.seed,
        profile=attempt.settings.profile,
        exit_reason="infrastructure_error",
        error=error,
    )


def read_pool(folder: Path) -> Mapping[str, PlacedTask]:
    """Every task below ``folder`` by id, in the order of ids; whatever is not a task folder is passed over."""
    places = sorted(place for place in folder.iterdir() if (place / "frognano.json").is_file())
    return {task.id: PlacedTask(task, place) for place in places if (task := read_task(place))}
