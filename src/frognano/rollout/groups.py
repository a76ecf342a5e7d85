"""Groups for training: all attempts at one task, with seeds that follow from the group's name.

This is the running side that a climb asks; it knows nothing of losses. The climb's own hooks (new weights, the
validation score) are given to it as calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from frognano.config.leaf import LeafSettings
from frognano.records import Trajectory
from frognano.rollout.collect import Collector
from frognano.rollout.episodes import Attempt, PlacedTask
from frognano.rollout.seeds import seed_of


@dataclass(frozen=True)
class Groups:
    """The source of one climb's groups."""

    collector: Collector
    tasks: Mapping[str, PlacedTask]
    settings: LeafSettings
    size: int
    """Attempts of one group."""
    seed: int
    """Seed of the run."""
    load: Callable[[int], Awaitable[None]]
    """Makes the policy sample from the trainer's present weights, named by their version."""
    score: Callable[[int], Awaitable[float | None]]
    """Scores the policy on the validation set."""

    async def group(self, task_id: str, group_id: str, version: int) -> Sequence[Trajectory]:
        """All attempts at a task, graded. Asked again after a kill it runs only those that had not finished."""
        placed = self.tasks[task_id]
        attempts = [
            Attempt(
                id=f"{group_id}-{index:02d}",
                scope=group_id,
                placed=placed,
                seed=seed_of(self.seed, task_id, group_id, index),
                settings=self.settings,
            )
            for index in range(self.size)
        ]
        return await self.collector.trajectories("groups", attempts)

    async def hand_over(self, version: int) -> None:
        """Sample from the trainer's present weights from now on."""
        await self.load(version)

    async def validate(self, version: int) -> float | None:
        """Score of the weights handed over last."""
        return await self.score(version)
