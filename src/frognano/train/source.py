"""What a climb asks of the side that runs episodes; it stands above training and knows nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from frognano.records import Trajectory


class GroupSource(Protocol):
    """Runs and grades episodes of the current policy. Called from one event loop; calls overlap."""

    async def group(self, task_id: str, group_id: str, version: int) -> Sequence[Trajectory]:
        """Run all attempts at one task and grade them, each with its tokens and version spans.

        ``version`` is what the policy samples from now; a hand-over may happen meanwhile, and the spans say so.
        Asked again with the id of a group that was under way when the run was killed, it returns the attempts that
        had finished and runs the others. An attempt without a verdict is returned as such, after the allowed retries.
        """
        ...

    async def hand_over(self, version: int) -> None:
        """Sample from the trainer's present weights from now on; no update runs during this call."""
        ...

    async def validate(self, version: int) -> float | None:
        """Score on the validation set of the weights handed over last; None where there is no such set."""
        ...
