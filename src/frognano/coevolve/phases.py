"""The phases of the outer loop, each of them journaled: what was finished is read back and not run again."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frognano.coevolve import events
from frognano.coevolve.making import SYNTHESIS, Tools, synthesised
from frognano.coevolve.workbench import Workbench
from frognano.records import Task, Trajectory, Verdict
from frognano.rollout.episodes import PlacedTask
from frognano.rollout.evaluate import Measure, TaskScore, evaluate, mean_rate
from frognano.rollout.journal import EpisodeEntry, Journal
from frognano.rollout.ladder import Rung, rung
from frognano.taskpilot.admit import Admission, admit
from frognano.taskpilot.calibrate import Solve
from frognano.taskpilot.refine import RefinementReport, calibrate_and_refine
from frognano.tasks.folder import read_task


@dataclass(frozen=True)
class PoolTasks:
    """Ids of the validated tasks by split."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    held_out: tuple[str, ...]

    def candidates(self, iteration: int, count: int, seed: int) -> list[str]:
        """``count`` tasks for one iteration: fresh ones while there are any, then the pool again."""
        order = list(self.train)
        random.Random(f"candidates:{seed}").shuffle(order)
        first = (iteration - 1) * count
        return [order[(first + place) % len(order)] for place in range(min(count, len(order)))]


async def make_pool(bench: Workbench) -> PoolTasks:
    """Snapshot and synthesis, journaled."""
    journal = bench.journal
    if not journal.phase_done(SYNTHESIS):
        tools = Tools(bench.backend, bench.store, bench.grader)
        journal.finish_phase(SYNTHESIS, await synthesised(bench.recipe, bench.pool, tools, bench.watch))
    tasks = (journal.get("phase", SYNTHESIS) or {})["tasks"]
    return PoolTasks(*(tuple(tasks.get(split, ())) for split in ("train", "validation", "held-out")))


async def held_out(
    bench: Workbench, pool: PoolTasks, checkpoint: Path, iteration: int, *, trained_on: int = 0, updates: int = 0
) -> list[Rung]:
    """The rung of the ladder that a checkpoint stands on; iteration 0 is the start. None without held-out tasks."""
    name = held_out_phase(iteration)
    if not pool.held_out:
        return []
    await bench.use(checkpoint)
    scores = await scored(bench, name, pool.held_out, bench.recipe.evaluation.episodes)
    found = rung(iteration, str(checkpoint), scores, trained_on, updates)
    bench.watch(events.Climbed(rung=found))
    return [found]


def held_out_phase(iteration: int) -> str:
    """Name of a held-out evaluation."""
    return "start: held-out" if iteration == 0 else f"iteration {iteration}: held-out"


async def scored(
    bench: Workbench, name: str, ids: Sequence[str], episodes: int, *, told: bool = True
) -> list[TaskScore]:
    """Scores of the policy in the engine on raw tasks; the phase ``name`` is run once. Raises NoScore if ``told``."""
    journal = bench.journal
    kept = journal.get("scores", name)
    if kept is not None:
        return [TaskScore.model_validate(row) for row in kept]
    if told:
        bench.watch(events.PhaseBegan(name=name, total=len(ids) * episodes))
    placed = [placed_task(bench.tasks, task_id) for task_id in ids]
    settings = bench.recipe.evaluation.applied(bench.recipe.leaf)
    measure = Measure(scope_of(name), episodes, settings, bench.recipe.coevolve.seed)
    scores = await evaluate(bench.collector, placed, measure)
    rate = mean_rate(scores)
    if rate is None:
        if told:
            raise no_score(bench.folder)
        return scores
    journal.put("scores", name, [score.model_dump() for score in scores])
    if told:
        bench.watch(events.PhaseEnded(name=name, text=f"solved {100 * rate:.1f} %"))
    return scores


class NoScore(RuntimeError):
    """An evaluation in which nothing could be graded."""


def no_score(folder: Path) -> NoScore:
    """The error of a run in which no episode had a verdict."""
    return NoScore(
        f"no episode ended with a verdict, so there is no score; the episodes in {folder / 'episodes'} say why. "
        "The same command tries them again"
    )


async def calibrated(bench: Workbench, pool: PoolTasks, iteration: int, checkpoint: Path) -> list[PlacedTask]:
    """The tasks that an iteration climbs on: measured with the present policy, refined, admitted."""
    name, journal = f"iteration {iteration}: calibration", bench.journal
    folder = bench.folder / "tasks" / f"iteration-{iteration}"
    if not journal.phase_done(name):
        loop = bench.recipe.coevolve
        wanted = pool.candidates(iteration, loop.tasks_per_iteration, loop.seed)
        settings = bench.recipe.at(iteration).taskpilot
        bench.watch(
            events.PhaseBegan(name=name, iteration=iteration, total=len(wanted) * settings.calibration.episodes)
        )
        await bench.use(checkpoint)
        await asyncio.to_thread(_link_tasks, bench.tasks, folder, wanted)
        report = await calibrate_and_refine(
            folder,
            wanted,
            _solver(bench, folder, iteration),
            settings,
            bench.store,
            journal=_PilotJournal(journal, name),
            policy=checkpoint_name(bench, checkpoint),
        )
        admission = admit(folder, report, settings, {"train": wanted})
        admission.save(folder)
        _tell_calibration(bench, iteration, report, admission)
        chosen = [item.id for item in admission.admitted]
        if loop.tasks == "random":
            draw = random.Random(f"random tasks:{loop.seed}:{iteration}")
            chosen = sorted(draw.sample(wanted, min(len(chosen), len(wanted))))
        journal.finish_phase(name, chosen)
        bench.watch(events.PhaseEnded(name=name, text=f"{len(chosen)} of {len(wanted)} tasks go into the climb"))
    return [placed_task(folder, task_id) for task_id in journal.get("phase", name) or ()]


def _tell_calibration(bench: Workbench, iteration: int, report: RefinementReport, admission: Admission) -> None:
    rates = tuple(measure.p_hat for measure in report.first() if measure.episodes)
    bench.watch(events.Calibrated(iteration=iteration, rates=rates, admitted=len(admission.admitted)))
    bench.journal.put("rates", str(iteration), list(rates))
    refined = sum(report.count(direction)[0] for direction in ("too hard", "too easy"))
    bench.journal.put("refinement", str(iteration), {"refined": refined, "text": report.text()})
    bench.watch(events.Told(text=report.text()))


def _solver(bench: Workbench, folder: Path, iteration: int) -> Solve:
    """What calibration calls to have episodes run; fresh seeds give fresh episodes."""
    settings = bench.recipe.at(iteration).leaf

    async def solve(task: Task, episodes: int, seed: int) -> list[Trajectory]:
        scope = f"iteration-{iteration}-calibration/{task.id}/{seed:012x}"
        measure = Measure(scope, episodes, settings, bench.recipe.coevolve.seed)
        entries = await bench.collector.entries("calibration", measure.attempts(placed_task(folder, task.id)))
        return [_outcome(entry) for entry in entries]

    return solve


def _outcome(entry: EpisodeEntry) -> Trajectory:
    """What is kept of an episode, as far as calibration asks."""
    verdict = Verdict(reward=entry.reward, reason=entry.reason)
    exit_reason: Any = entry.exit_reason
    return Trajectory(id=entry.id, task_id=entry.task_id, exit_reason=exit_reason, verdict=verdict)


class _PilotJournal:
    """TaskPilot's memory, in the run's journal."""

    def __init__(self, journal: Journal, name: str) -> None:
        self._journal, self._name = journal, name

    def get(self, stage: str, key: str) -> Any | None:
        return self._journal.get(f"{self._name}/{stage}", key)

    def put(self, stage: str, key: str, value: Any) -> None:
        self._journal.put(f"{self._name}/{stage}", key, value)


def placed_task(pool: Path, task_id: str) -> PlacedTask:
    """A task of a pool folder. Raises TaskFolderError."""
    return PlacedTask(read_task(pool / task_id), pool / task_id)


def scope_of(name: str) -> str:
    """A phase's name as the name of a folder."""
    return name.replace(": ", "-").replace(" ", "-")


def checkpoint_name(bench: Workbench, checkpoint: Path) -> str:
    """``start``, or the name of a checkpoint of this run."""
    return "start" if checkpoint == bench.start else checkpoint.parent.name


def _link_tasks(pool: Path, folder: Path, ids: Sequence[str]) -> None:
    """A view of raw tasks that an iteration may refine: files are shared until one is replaced."""
    for task_id in ids:
        target = folder / task_id
        if target.exists():
            continue
        partial = folder / f".partial-{task_id}"
        shutil.rmtree(partial, ignore_errors=True)
        for source in sorted((pool / task_id).rglob("*")):
            place = partial / source.relative_to(pool / task_id)
            place.parent.mkdir(parents=True, exist_ok=True)
            if not source.is_dir():
                _link_or_copy(source, place)
        partial.rename(target)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        # Another file system, or one without hard links.
        shutil.copy2(source, target, follow_symlinks=False)
