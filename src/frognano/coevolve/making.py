"""Making the tasks of a pool: sandboxes, snapshots and a grader, and no policy, so that it needs no torch.

A pool is a folder with ``tasks`` and ``snapshots``; ``made.json`` beside them says what the finished pool was made
with. The loop and ``frognano tasks`` make pools in the same way, so either takes what the other made.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frognano.coevolve import events
from frognano.config.recipe import Recipe
from frognano.rollout.run_folder import lock
from frognano.sandbox import runner as resident
from frognano.sandbox.contract import Limits, SandboxBackend
from frognano.sandbox.local import LocalBackend
from frognano.taskpilot.pilot import synthesise
from frognano.taskpilot.progress import Progress
from frognano.taskpilot.repository import open_repository
from frognano.tasks.grader import Grader, GraderSettings, open_grader
from frognano.tasks.snapshot import SnapshotStore

SYNTHESIS = "synthesis"
SYNTHESIS_STEPS = ("baseline", "coverage", "screen", "facts", "validate")


@dataclass(frozen=True)
class Tools:
    """What making and grading tasks needs."""

    backend: SandboxBackend
    store: SnapshotStore
    grader: Grader


@asynccontextmanager
async def open_tools(recipe: Recipe, pool: Path) -> AsyncIterator[Tools]:
    """The tools for the tasks of ``pool``. Raises SandboxError."""
    store = SnapshotStore(pool / "snapshots")
    async with backend_of(recipe) as backend, open_grader(backend, store, grading_of(recipe)) as grader:
        yield Tools(backend, store, grader)


async def make_tasks(recipe: Recipe, pool: Path, watch: events.Watch = events.silent) -> dict[str, list[str]]:
    """Make or complete the pool in ``pool`` from the recipe's repository; split → ids."""
    async with open_tools(recipe, pool) as tools:
        found = await synthesised(recipe, pool, tools, watch)
    return {split: list(ids) for split, ids in found["tasks"].items()}


async def synthesised(recipe: Recipe, pool: Path, tools: Tools, watch: events.Watch) -> dict[str, Any]:
    """Split → ids below ``tasks``, the funnel below ``text``. A pool that is there goes on, a finished one is taken."""
    made = pool / "made.json"
    repository, settings = open_repository(recipe.source.repository), recipe.taskpilot.synthesis
    base = await asyncio.to_thread(tools.store.add, repository.folder)
    about = settings.model_dump(mode="json", exclude={"workers"}) | {"repository": str(repository.folder), "base": base}
    finished = json.loads(made.read_text()) if made.exists() else {}
    if finished.get("about") != about:
        watch(events.PhaseBegan(name=SYNTHESIS, unit="tasks"))
        with _held(pool):
            report = await synthesise(
                repository,
                settings,
                tools.backend,
                tools.store,
                pool / "tasks",
                progress=_progress(watch),
                grader=tools.grader,
            )
        watch(events.Told(text=report.text()))
        watch(events.PhaseEnded(name=SYNTHESIS, text=f"{report.count} validated tasks"))
        finished = {"about": about, "tasks": report.tasks, "text": report.text()}
        partial = made.with_name(f".{made.name}.partial")
        partial.write_text(json.dumps(finished, indent=1) + "\n")
        os.replace(partial, made)
    return {"tasks": finished["tasks"], "text": finished["text"]}


@contextmanager
def _held(pool: Path) -> Iterator[None]:
    """Nobody else makes tasks in this pool meanwhile. Raises RunLocked."""
    pool.mkdir(parents=True, exist_ok=True)
    descriptor = lock(pool)
    try:
        yield
    finally:
        os.close(descriptor)


def _progress(watch: events.Watch) -> Progress:
    """TaskPilot's counts as events; its steps are taken to be about equally long."""

    def tell(phase: str, done: int, total: int) -> None:
        part = done / total if total else 0.0
        place = SYNTHESIS_STEPS.index(phase) if phase in SYNTHESIS_STEPS else 0
        fraction = (place + part) / len(SYNTHESIS_STEPS)
        watch(events.PhaseAdvanced(name=SYNTHESIS, done=done, total=total, step=phase, fraction=fraction))

    return tell


def backend_of(recipe: Recipe) -> LocalBackend:
    """The sandboxes of a recipe, not yet entered."""
    settings = recipe.sandbox
    residents = {"runner": Path(resident.__file__)}
    return LocalBackend(residents, warm=settings.warm, no_isolation=not settings.isolation)


def limits_of(recipe: Recipe) -> Limits:
    """What one sandbox may use."""
    settings = recipe.sandbox
    return Limits(memory_mb=settings.memory_mb, pids=settings.pids, disk_mb=settings.disk_mb)


def grading_of(recipe: Recipe) -> GraderSettings:
    """How verdicts are had."""
    limits = limits_of(recipe)
    return GraderSettings(
        mode=recipe.rollout.grading,
        workers=recipe.rollout.graders,
        memory_mb=limits.memory_mb,
        pids=limits.pids,
        disk_mb=limits.disk_mb,
    )
