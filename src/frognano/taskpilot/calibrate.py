"""Calibration: p̂ of a task is the share of full episodes of the current policy that pass every grading test.

An episode cut by a budget counts as solved when its final state passes. Episodes without a verdict say nothing: they
are run again a bounded number of times and counted apart. A finished task is journaled and not measured again. p̂
from few episodes is rough; the Beta interval says how rough.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol

from frognano.config.taskpilot import CalibrationSettings
from frognano.records import Calibration, Record, Task, Trajectory
from frognano.taskpilot.beta import beta_interval
from frognano.taskpilot.journal import Journal
from frognano.taskpilot.progress import Progress, silent

STAGE = "calibrate"


class Solve(Protocol):
    """Runs full episodes of the current policy and grades them."""

    async def __call__(self, task: Task, episodes: int, seed: int) -> Sequence[Trajectory]:
        """``episodes`` graded trajectories of ``task``; other seeds give fresh episodes."""
        ...


class Measure(Record):
    """What the episodes of one task showed."""

    task_id: str
    policy: str
    seed: int
    episodes: int
    """Episodes with a verdict."""
    solved: int
    without_verdict: int = 0
    low: float
    high: float
    """Beta interval of the solve probability."""

    @property
    def p_hat(self) -> float:
        """Share of solved episodes; 0 when none has a verdict."""
        return self.solved / self.episodes if self.episodes else 0.0

    def record(self) -> Calibration:
        """As kept in a task's record."""
        return Calibration(policy=self.policy, episodes=self.episodes, solved=self.solved)


async def calibrate(
    tasks: Sequence[Task],
    solve: Solve,
    settings: CalibrationSettings,
    journal: Journal,
    *,
    policy: str,
    round_: int = 0,
    progress: Progress = silent,
) -> dict[str, Measure]:
    """Measure every task; ``round_`` makes the episodes fresh ones. Raises what ``solve`` raises."""
    gate = asyncio.Semaphore(settings.concurrency)
    found: dict[str, Measure] = {}
    stage = f"{STAGE}:{policy}:{round_}"

    async def one(task: Task) -> None:
        kept = journal.get(stage, task.id)
        if kept is None:
            async with gate:
                measure = await measure_task(task, solve, settings, policy, fresh_seed(settings.seed, round_, task.id))
            journal.put(stage, task.id, measure.model_dump())
        else:
            measure = Measure.model_validate(kept)
        found[task.id] = measure
        progress(STAGE, len(found), len(tasks))

    async with asyncio.TaskGroup() as group:
        for task in tasks:
            group.create_task(one(task))
    return {task.id: found[task.id] for task in tasks}


def fresh_seed(seed: int, round_: int, task_id: str) -> int:
    """A seed of its own for each measurement of each task."""
    digest = hashlib.sha256(f"{seed}:{round_}:{task_id}".encode()).digest()
    return int.from_bytes(digest[:6], "big")


async def measure_task(task: Task, solve: Solve, settings: CalibrationSettings, policy: str, seed: int) -> Measure:
    """Run the task's episodes, stopping early where the settings say so."""
    solved = done = lost = 0
    portions = [settings.episodes]
    if 0 < settings.early_stop < settings.episodes:
        portions = [settings.early_stop, settings.episodes - settings.early_stop]
    draw = seed
    for number, portion in enumerate(portions):
        if number and solved in (0, done):
            break
        wanted = portion
        for _ in range(settings.retries + 1):
            rewards = [t.verdict.reward if t.verdict else None for t in await solve(task, wanted, draw)]
            draw += wanted
            graded = [reward for reward in rewards if reward is not None]
            solved += sum(reward >= 1.0 for reward in graded)
            done += len(graded)
            lost += len(rewards) - len(graded)
            wanted -= len(graded)
            if wanted <= 0:
                break
    low, high = beta_interval(solved, done, settings.confidence)
    return Measure(
        task_id=task.id,
        policy=policy,
        seed=seed,
        episodes=done,
        solved=solved,
        without_verdict=lost,
        low=low,
        high=high,
    )


def histogram(measures: Iterable[Measure], bins: int = 8) -> tuple[tuple[str, int], ...]:
    """Counts of p̂: exactly 0, ``bins`` equal steps between, exactly 1."""
    values = [measure.p_hat for measure in measures]
    edges = [step / bins for step in range(bins + 1)]
    rows = [("0", sum(value == 0 for value in values))]
    for low, high in pairwise(edges):
        inside = sum(max(low, 1e-12) <= value < high for value in values)
        rows.append((f"{low:.2f}-{high:.2f}", inside))
    rows.append(("1", sum(value == 1 for value in values)))
    return tuple(rows)


def histogram_text(measures: Iterable[Measure], bins: int = 8, width: int = 40) -> str:
    """The histogram as bars of text."""
    rows = histogram(measures, bins)
    most = max((count for _, count in rows), default=0) or 1
    return "\n".join(f"{label:>9} {count:>4} {'#' * round(width * count / most)}".rstrip() for label, count in rows)
