"""From graded groups to tensors: rewards, the raw filter, one row per trajectory, micro-batches.

A row is one whole trajectory; rows are padded on the right and never packed together, because packing leaks state
between sequences in models with linear attention. What is trained is read from the recorded mask alone, so a
sampled end-of-turn token counts and an appended one does not, whatever the padding id is. A row whose sampling
log-probabilities are missing or impossible is refused.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from frognano.config.train import TrainSettings
from frognano.records import Trajectory
from frognano.train.advantage import group_advantages, has_variance
from frognano.train.reward import raw_reward, shaped_reward


class BatchError(ValueError):
    """A row that must not be trained; the message names its task and trajectory."""


@dataclass(frozen=True, slots=True)
class Group:
    """All graded attempts of one task in one update, with their rewards and advantages."""

    id: str
    task_id: str
    trajectories: tuple[Trajectory, ...]
    raw: tuple[float | None, ...]
    shaped: tuple[float | None, ...]
    advantages: tuple[float | None, ...]

    @property
    def drop_reason(self) -> str:
        """Why the filter drops it (``no_verdict``, ``all_solved``, ``none_solved``); empty when it is kept."""
        present = [reward for reward in self.raw if reward is not None]
        if len(present) < 2:
            return "no_verdict"
        if has_variance(self.raw):
            return ""
        return "all_solved" if present[0] > 0 else "none_solved"

    @property
    def oldest_version(self) -> int:
        """Oldest policy version among its trainable rows."""
        versions = [
            trajectory.tokens.oldest_version
            for trajectory, reward in zip(self.trajectories, self.raw, strict=True)
            if trajectory.tokens is not None and reward is not None
        ]
        return min(versions, default=0)


@dataclass(frozen=True, slots=True)
class Row:
    """One trajectory as the trainer reads it."""

    task_id: str
    trajectory_id: str
    ids: Tensor  # [L] int64
    targets: Tensor  # [K] int64, positions of the sampled tokens
    logq: Tensor  # [K] float32
    advantage: float
    oldest_version: int

    @property
    def name(self) -> str:
        return f"task {self.task_id}, trajectory {self.trajectory_id}"


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Rows of similar length, padded on the right."""

    rows: tuple[Row, ...]
    ids: Tensor  # [B, L]
    predicting: Tensor  # [K] positions in the flattened [B·L] whose next token is trainable
    targets: Tensor  # [K] token ids
    logq: Tensor  # [K]
    advantage: Tensor  # [K]
    row_of: Tensor  # [K] index into ``rows``


def make_group(
    group_id: str, task_id: str, trajectories: Sequence[Trajectory], settings: TrainSettings, iteration: int = 1
) -> Group:
    """Reward and weigh the attempts of one task."""
    raw = [raw_reward(trajectory) for trajectory in trajectories]
    shaped = [shaped_reward(trajectory, settings.reward, iteration) for trajectory in trajectories]
    if settings.advantage.permute_rewards:
        shaped = _permuted(shaped, f"{settings.seed}/{group_id}")
    advantages = group_advantages(shaped, settings.advantage.std, settings.advantage.eps)
    return Group(group_id, task_id, tuple(trajectories), tuple(raw), tuple(shaped), tuple(advantages))


def _permuted(rewards: list[float | None], seed: str) -> list[float | None]:
    present = [reward for reward in rewards if reward is not None]
    random.Random(seed).shuffle(present)
    shuffled = iter(present)
    return [None if reward is None else next(shuffled) for reward in rewards]


def rows_of(groups: Sequence[Group]) -> list[Row]:
    """Rows of every member that has a verdict, in order.

    Members with A = 0 stay: they count in the denominator. A member that ended before it sampled a token shaped its
    group's baseline and has nothing to train.
    """
    return [
        make_row(trajectory, advantage)
        for group in groups
        for trajectory, advantage in zip(group.trajectories, group.advantages, strict=True)
        if advantage is not None and not (trajectory.tokens is not None and trajectory.tokens.sampled == 0)
    ]


def make_row(trajectory: Trajectory, advantage: float) -> Row:
    """Check one trajectory's tokens and turn them into a row."""
    name = f"task {trajectory.task_id}, trajectory {trajectory.id}"
    tokens = trajectory.tokens
    if tokens is None:
        raise BatchError(f"{name}: no token row; the rollout engine must return token ids and log-probabilities")
    targets = [position for position, sampled in enumerate(tokens.mask) if sampled]
    if not targets:
        raise BatchError(f"{name}: no sampled token")
    if targets[0] == 0:
        raise BatchError(f"{name}: its first token is marked as sampled, but nothing stands before it")
    for position in targets:
        logq = tokens.logprobs[position]
        if not math.isfinite(logq) or logq > 1e-3:
            raise BatchError(
                f"{name}: token {position} was sampled with log-probability {logq}; "
                "it is missing or impossible, and the loss has no substitute for it"
            )
    return Row(
        task_id=trajectory.task_id,
        trajectory_id=trajectory.id,
        ids=torch.tensor(tokens.ids, dtype=torch.int64),
        targets=torch.tensor(targets, dtype=torch.int64),
        logq=torch.tensor([tokens.logprobs[position] for position in targets], dtype=torch.float32),
        advantage=advantage,
        oldest_version=tokens.oldest_version,
    )


def trainable_tokens(rows: Sequence[Row]) -> int:
    """T, the denominator of the loss: every sampled token of the whole batch."""
    return sum(row.targets.numel() for row in rows)


def micro_batches(rows: Sequence[Row], token_budget: int, pad_id: int = 0) -> list[MicroBatch]:
    """Longest rows first, as many to a micro-batch as fit the budget with padding; ties keep their order."""
    ordered = sorted(rows, key=lambda row: -row.ids.numel())
    batches: list[MicroBatch] = []
    start = 0
    while start < len(ordered):
        width = ordered[start].ids.numel()
        count = max(1, token_budget // width)
        batches.append(pad_rows(ordered[start : start + count], pad_id))
        start += count
    return batches


def pad_rows(rows: Sequence[Row], pad_id: int = 0) -> MicroBatch:
    """One micro-batch; the last column needs no forward pass, so a row of L tokens takes L − 1."""
    width = max(row.ids.numel() for row in rows) - 1
    ids = torch.full((len(rows), width), pad_id, dtype=torch.int64)
    for index, row in enumerate(rows):
        ids[index, : row.ids.numel() - 1] = row.ids[:-1]
    return MicroBatch(
        rows=tuple(rows),
        ids=ids,
        predicting=torch.cat([row.targets - 1 + index * width for index, row in enumerate(rows)]),
        targets=torch.cat([row.ids[row.targets] for row in rows]),
        logq=torch.cat([row.logq for row in rows]),
        advantage=torch.cat([torch.full((row.targets.numel(),), row.advantage) for row in rows]),
        row_of=torch.cat([torch.full((row.targets.numel(),), index) for index, row in enumerate(rows)]),
    )
