"""One climb in the outer loop: a fresh learner, the groups it asks for, the validation set, the best checkpoint.

With a lag bound above 0 the learner works in a process of its own, so that updates and generation overlap on two
cores; with 0 it works here, because nothing could overlap and nothing need travel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from frognano.coevolve import events
from frognano.coevolve.learner_process import LearnerProcess, RemoteCheckpoints
from frognano.coevolve.phases import PoolTasks, scored
from frognano.coevolve.workbench import Workbench
from frognano.config.train import TrainSettings
from frognano.policy.checkpoint import load_model, save_model
from frognano.records import Record
from frognano.rollout.episodes import PlacedTask
from frognano.rollout.evaluate import mean_rate
from frognano.rollout.groups import Groups
from frognano.rollout.journal import UpdateEntry
from frognano.train.checkpoint import CheckpointStore
from frognano.train.climb import Climb, Updater
from frognano.train.generation import ClimbPlan
from frognano.train.metrics import Event, overlap
from frognano.train.update import Learner


class ClimbOutcome(Record):
    """What came of a climb."""

    reason: str
    updates: int
    checkpoint: str
    """Name of the best checkpoint; the one begun with where no update was better, "" for the recipe's."""
    score: float | None
    """Its validation score."""
    tasks: int
    overlap_s: float = 0.0
    """Seconds in which groups were generated while an update ran, since the last start."""


@dataclass(frozen=True)
class Trainer:
    """A learner, its checkpoints, and how its weights are had."""

    learner: Updater
    store: CheckpointStore
    weights: Callable[[], Mapping[str, Tensor]]


@contextmanager
def trainer(start: Path, checkpoints: Path, settings: TrainSettings) -> Iterator[Trainer]:
    """A fresh learner on the weights in ``start``, here or in a process of its own."""
    if settings.max_lag > 0:
        with LearnerProcess(start, checkpoints, settings) as remote:
            yield Trainer(remote, RemoteCheckpoints(checkpoints, remote), remote.weights)
        return
    loaded = load_model(start)
    learner = Learner(loaded.model, settings, 0, loaded.pad_id)
    store = CheckpointStore(
        checkpoints, lambda _model, folder: save_model(loaded, folder), lambda folder: load_model(folder).model
    )
    yield Trainer(learner, store, loaded.model.state_dict)


async def climbed(
    bench: Workbench, pool: PoolTasks, iteration: int, start: Path, tasks: Sequence[PlacedTask]
) -> ClimbOutcome:
    """Run or go on with the climb of an iteration; a finished one is read back."""
    name, journal = f"iteration {iteration}: climb", bench.journal
    if journal.phase_done(name):
        return ClimbOutcome.model_validate(journal.get("phase", name))
    settings = bench.recipe.at(iteration).train
    bench.watch(events.PhaseBegan(name=name, iteration=iteration, total=settings.updates, unit="updates"))
    climb_name = f"iteration-{iteration}"
    plan = ClimbPlan(climb_name, [placed.task.id for placed in tasks], iteration)
    with trainer(start, bench.folder / "checkpoints", settings) as work:
        source = _source(bench, pool, iteration, tasks, work)
        trace: list[Event] = []
        on_update = _teller(bench, iteration, settings.updates)
        climb = Climb(plan, settings, work.learner, source, journal, work.store, on_update, trace)
        result = await climb.run()
        best = work.store.folder(result.best).name if result.best else bench.checkpoint_name(start)
    outcome = ClimbOutcome(
        reason=result.reason,
        updates=result.updates,
        checkpoint=best,
        score=result.best_score,
        tasks=len(tasks),
        overlap_s=overlap(trace),
    )
    journal.finish_phase(name, outcome.model_dump())
    bench.watch(events.PhaseEnded(name=name, text=f"{result.updates} updates, ended because: {result.reason}"))
    return outcome


def _source(bench: Workbench, pool: PoolTasks, iteration: int, tasks: Sequence[PlacedTask], work: Trainer) -> Groups:
    evaluation, sections = bench.recipe.evaluation, bench.recipe.at(iteration)

    async def load(version: int) -> None:
        await bench.hand_over(await asyncio.to_thread(work.weights), version)

    async def score(version: int) -> float | None:
        if not pool.validation:
            return None
        name = f"iteration {iteration}: validation {version:05d}"
        found = await scored(bench, name, pool.validation, evaluation.validation_episodes, told=False)
        rate = mean_rate(found)
        if rate is not None:
            bench.watch(events.Validated(iteration=iteration, number=version, score=rate))
        return rate

    return Groups(
        collector=bench.collector,
        tasks={placed.task.id: placed for placed in tasks},
        settings=sections.leaf,
        size=sections.train.group_size,
        seed=bench.recipe.coevolve.seed,
        load=load,
        score=score,
    )


def _teller(bench: Workbench, iteration: int, of: int) -> Callable[[UpdateEntry], None]:
    def tell(entry: UpdateEntry) -> None:
        metrics: dict[str, Any] = entry.metrics
        dropped = sum(value for key, value in metrics.items() if key.startswith("dropped_"))
        bench.watch(
            events.Updated(
                iteration=iteration,
                number=entry.number,
                of=of,
                skipped=entry.skipped,
                raw_reward=metrics["reward_raw"],
                solve_rate=metrics["solve_rate"],
                groups=metrics["groups"],
                dropped=dropped,
                lag=metrics["lag_mean"],
                update_s=metrics["update_s"],
                waited_s=metrics["waited_s"],
            )
        )

    return tell
