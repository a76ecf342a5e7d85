"""Parts of the loop on their own: one evaluation, one calibration, one climb, on tasks that are there already.

Each works in a run folder of its own, is journaled like the loop and goes on with the same call. ``pool`` is a folder
with ``tasks`` and ``snapshots``, as the loop and ``frognano tasks`` write it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeVar

from frognano.coevolve import events
from frognano.coevolve.climbing import ClimbOutcome, climbed
from frognano.coevolve.loop import NothingToTrain, stoppable
from frognano.coevolve.phases import PoolTasks, calibrated, make_pool, no_score, placed_task, scored
from frognano.coevolve.workbench import PolicyOf, Workbench, open_workbench, token_policy
from frognano.config.base import ConfigError
from frognano.config.recipe import Recipe
from frognano.records import Record, Split
from frognano.rollout.bootstrap import Interval
from frognano.rollout.evaluate import TaskScore
from frognano.rollout.ladder import histogram_text, interval_of, table
from frognano.taskpilot.admit import by_split

T = TypeVar("T")


class Evaluation(Record):
    """Scores of one policy on the tasks of a split."""

    split: str
    scores: tuple[TaskScore, ...]
    interval: Interval

    def text(self) -> str:
        """One row for each task, and the rate with its interval."""
        rows = [("task", "solved", "episodes", "no verdict")]
        rows += [(row.task_id, str(row.solved), str(row.episodes), str(row.unscored)) for row in self.scores]
        where = f"{self.interval.tasks} {self.split} tasks of {self.interval.functions} functions"
        return f"{table(rows)}\n{where}: {self.interval.text()}, 95 % interval over functions, then tasks"


class CalibrationOutcome(Record):
    """p̂ of the tasks of a pool under one policy."""

    rates: tuple[float, ...]
    admitted: tuple[str, ...]
    """Ids of the tasks, raw or refined, that lie in the band."""
    folder: Path
    """Where they lie, each with its calibration and lineage."""
    refined: int
    """Tasks out of the band that were refined."""
    refinement: str
    """What became of the tasks out of the band, on fresh episodes."""

    def text(self) -> str:
        """The histogram and the counts."""
        admitted = f"{len(self.admitted)} of {len(self.rates)} tasks admitted: {self.folder}"
        return f"{histogram_text(self.rates)}\n{self.refinement}\n{admitted}"


def evaluate(
    recipe: Recipe,
    folder: Path,
    pool: Path,
    split: Split = "held-out",
    *,
    watch: events.Watch = events.silent,
    policy_of: PolicyOf = token_policy,
) -> Evaluation:
    """Solve rate of the recipe's checkpoint on a split, by the recipe's evaluation settings."""

    async def work(bench: Workbench) -> Evaluation:
        ids = by_split(bench.tasks).get(split, ())
        if not ids:
            raise ConfigError(f"the pool {pool} has no {split} tasks")
        scores = await scored(bench, f"evaluation: {split}", ids, recipe.evaluation.episodes)
        return evaluation(split, scores, folder)

    return _opened(open_workbench(recipe, folder, watch, pool, policy_of), work)


def evaluation(split: str, scores: Sequence[TaskScore], folder: Path) -> Evaluation:
    """The scores with their interval, also written as ``report.txt`` of the run. Raises NoScore."""
    if not any(score.rate is not None for score in scores):
        raise no_score(folder)
    found = Evaluation(split=split, scores=tuple(scores), interval=interval_of(scores))
    (folder / "report.txt").write_text(found.text() + "\n", encoding="utf-8")
    return found


def evaluate_start(
    recipe: Recipe, folder: Path, pool: Path, *, watch: events.Watch = events.silent, policy_of: PolicyOf = token_policy
) -> list[TaskScore]:
    """Make the pool if it is not there, and score the starting checkpoint on its held-out tasks: what arms share."""

    async def work(bench: Workbench) -> list[TaskScore]:
        tasks = await make_pool(bench)
        return await scored(bench, "start: held-out", tasks.held_out, recipe.evaluation.episodes)

    return _opened(open_workbench(recipe, folder, watch, pool, policy_of), work)


def calibrate(
    recipe: Recipe, folder: Path, pool: Path, *, watch: events.Watch = events.silent, policy_of: PolicyOf = token_policy
) -> CalibrationOutcome:
    """Measure, refine and admit the train tasks of a pool with the recipe's checkpoint."""

    async def work(bench: Workbench) -> CalibrationOutcome:
        tasks = await calibrated(bench, _pool_tasks(bench), 1, bench.start)
        rates = bench.journal.values("rates").get("1", [])
        where = bench.folder / "tasks" / "iteration-1"
        refinement = bench.journal.values("refinement")["1"]
        found = CalibrationOutcome(
            rates=tuple(rates),
            admitted=tuple(placed.task.id for placed in tasks),
            folder=where,
            refined=refinement["refined"],
            refinement=refinement["text"],
        )
        (folder / "report.txt").write_text(found.text() + "\n", encoding="utf-8")
        return found

    return _opened(open_workbench(recipe, folder, watch, pool, policy_of), work)


def train(
    recipe: Recipe, folder: Path, pool: Path, *, watch: events.Watch = events.silent, policy_of: PolicyOf = token_policy
) -> tuple[ClimbOutcome, Path]:
    """One climb on every train task of a pool, as they are; its validation tasks choose the checkpoint.

    Returns also the model folder of the best checkpoint.
    """

    async def work(bench: Workbench) -> tuple[ClimbOutcome, Path]:
        tasks = _pool_tasks(bench)
        if not tasks.train:
            raise NothingToTrain(f"the pool {pool} has no train tasks")
        placed = [placed_task(bench.tasks, task_id) for task_id in tasks.train]
        outcome = await climbed(bench, tasks, 1, bench.start, placed)
        return outcome, bench.checkpoint(outcome.checkpoint)

    return _opened(open_workbench(recipe, folder, watch, pool, policy_of), work)


def _pool_tasks(bench: Workbench) -> PoolTasks:
    found = by_split(bench.tasks)
    return PoolTasks(*(found.get(split, ()) for split in ("train", "validation", "held-out")))


def _opened(bench: AbstractAsyncContextManager[Workbench], work: Callable[[Workbench], Awaitable[T]]) -> T:
    async def main() -> T:
        async with bench as opened:
            return await work(opened)

    return stoppable(main())
