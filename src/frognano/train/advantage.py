"""Group-relative advantages: A = (R − mean) / (std + eps) within the group.

Source: FrogNano's advantage paragraph (GRPO, arXiv 2402.03300, eq. 3). Departures: a group whose rewards are
equal gets exactly 0 (found by max − min, because a rounded std is not 0), and members without a reward leave
before the statistics. The baseline is per trajectory, never per token or row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

TOLERANCE = 1e-9
"""Rewards closer together than this are equal."""


def has_variance(rewards: Sequence[float | None]) -> bool:
    """True when at least two members have a reward and they differ; call it with RAW rewards to filter."""
    present = [reward for reward in rewards if reward is not None]
    return len(present) > 1 and max(present) - min(present) > TOLERANCE


def group_advantages(
    rewards: Sequence[float | None], std: Literal["population", "sample"] = "population", eps: float = 1e-6
) -> list[float | None]:
    """Advantage of each member, in order; None where the reward is None."""
    present = [reward for reward in rewards if reward is not None]
    if not has_variance(rewards):
        return [None if reward is None else 0.0 for reward in rewards]
    mean = math.fsum(present) / len(present)
    degrees = len(present) - (1 if std == "sample" else 0)
    deviation = math.sqrt(math.fsum((reward - mean) ** 2 for reward in present) / degrees)
    return [None if reward is None else (reward - mean) / (deviation + eps) for reward in rewards]
