"""Rewards of a graded episode: the raw one decides the filter, the shaped one the advantage.

Both are pure. An episode without a verdict has no reward (None), never a zero; whether a budget cut an episode
is read from its recorded exit reason, never guessed from its last token.
"""

from __future__ import annotations

import math

from frognano.config.train import RewardSettings
from frognano.records import NO_VERDICT, Trajectory


def raw_reward(trajectory: Trajectory) -> float | None:
    """1.0 when every grading test passes, truncated or not; 0.0 when not; None without a verdict."""
    verdict = trajectory.verdict
    if verdict is None or verdict.reward is None or trajectory.exit_reason in NO_VERDICT:
        return None
    return 1.0 if verdict.passed else 0.0


def shaped_reward(trajectory: Trajectory, settings: RewardSettings, iteration: int = 1) -> float | None:
    """Reward for the advantage (FrogNano, reward and truncation paragraphs).

    Failure 0; success cut by a budget ``settings.truncated``, without a length term; other successes
    ``length_term`` from ``settings.length_from_iteration`` on, else 1. Departure: the floor of the length term.
    """
    raw = raw_reward(trajectory)
    if raw is None or raw == 0.0:
        return raw
    if trajectory.truncated:
        return settings.truncated
    alpha, target = settings.length_alpha, settings.length_target
    if alpha is None or target is None or iteration < settings.length_from_iteration:
        return 1.0
    if trajectory.tokens is None:
        raise ValueError(f"trajectory {trajectory.id}: the length reward needs its tokens, and it carries none")
    return length_term(trajectory.tokens.sampled, alpha, target, settings.length_floor)


def length_term(generated: int, alpha: float, target: int, floor: float) -> float:
    """1 if n ≤ N, else max(floor, 1 − α ln(n/N)); n counts the tokens the model generated."""
    if generated <= target:
        return 1.0
    return max(floor, 1.0 - alpha * math.log(generated / target))
