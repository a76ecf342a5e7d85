"""How many episodes of each task the policy solves: for validation, for held-out tasks, for calibration.

An episode without a verdict counts neither as solved nor as failed; it is counted apart, and the rate is given with
both bounds beside it (all of them failed, all of them passed).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frognano.config.leaf import LeafSettings
from frognano.records import Record
from frognano.rollout.collect import Collector
from frognano.rollout.episodes import Attempt, PlacedTask
from frognano.rollout.seeds import seed_of


class TaskScore(Record):
    """How one task went."""

    task_id: str
    module: str = ""
    function: str = ""
    """Qualified name within its module."""
    episodes: int
    """Episodes planned; solved + failed + unscored always."""
    solved: int
    unscored: int = 0
    """Episodes without a verdict."""

    @property
    def failed(self) -> int:
        """Episodes graded and not solved."""
        return self.episodes - self.solved - self.unscored

    @property
    def rate(self) -> float | None:
        """Share of graded episodes that were solved; None when none was graded."""
        graded = self.episodes - self.unscored
        return self.solved / graded if graded else None


@dataclass(frozen=True, slots=True)
class Measure:
    """One measurement of a policy: its name and how each episode runs."""

    scope: str
    """Unique in the run; seeds follow from it."""
    episodes: int
    """Episodes of each task."""
    settings: LeafSettings
    seed: int
    """Seed of the run."""

    def attempts(self, placed: PlacedTask) -> list[Attempt]:
        """The attempts at one task."""
        name = placed.task.id
        return [
            Attempt(
                id=f"{name}.{index:03d}",
                scope=self.scope,
                placed=placed,
                seed=seed_of(self.seed, self.scope, name, index),
                settings=self.settings,
            )
            for index in range(self.episodes)
        ]


async def evaluate(collector: Collector, tasks: Sequence[PlacedTask], measure: Measure) -> list[TaskScore]:
    """Run the measure's episodes of each task and count; what the journal holds of it is not run again."""
    attempts = [attempt for placed in tasks for attempt in measure.attempts(placed)]
    entries = await collector.entries(measure.scope, attempts)
    by_task: dict[str, list[float | None]] = {}
    for entry in entries:
        by_task.setdefault(entry.task_id, []).append(entry.reward)
    return [score_of(placed, by_task.get(placed.task.id, [])) for placed in tasks]


def score_of(placed: PlacedTask, rewards: Sequence[float | None]) -> TaskScore:
    """Count the rewards of one task; a reward of 1 is a solved episode."""
    origin = placed.task.origin
    return TaskScore(
        task_id=placed.task.id,
        module=origin.module,
        function=origin.function,
        episodes=len(rewards),
        solved=sum(reward is not None and reward >= 1.0 for reward in rewards),
        unscored=sum(reward is None for reward in rewards),
    )


def mean_rate(scores: Sequence[TaskScore]) -> float | None:
    """Mean over tasks of their rates; None when nothing was graded."""
    rates = [score.rate for score in scores if score.rate is not None]
    return sum(rates) / len(rates) if rates else None


def bounds(scores: Sequence[TaskScore]) -> tuple[float, float]:
    """The mean rate if every episode without a verdict had failed, and if it had passed."""
    planned = [score for score in scores if score.episodes]
    if not planned:
        return 0.0, 1.0
    low = sum(score.solved / score.episodes for score in planned)
    high = sum((score.solved + score.unscored) / score.episodes for score in planned)
    return low / len(planned), high / len(planned)
