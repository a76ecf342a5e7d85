"""How far the trainer's log-probabilities lie from those recorded at sampling, token by token.

At lag 0 both are of the same weights, so what is left is rounding: a larger gap means that the rows do not line up
with what was sampled (a shifted token, another template, stale weights in the engine). It changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frognano.records import Trajectory
from frognano.train.batch import make_row, micro_batches
from frognano.train.lean import LeanBackbone
from frognano.train.logprobs import split_model, token_logprobs


@dataclass(frozen=True, slots=True)
class Mismatch:
    """|log p − log q| over every sampled token."""

    tokens: int
    mean: float
    max: float
    where: str
    """Task, trajectory and position of the largest gap."""


@torch.no_grad()
def recomputed(model: Any, trajectories: Sequence[Trajectory], token_budget: int = 4096) -> dict[str, Tensor]:
    """log p of the sampled tokens of each trajectory, by trajectory id: [K], in the order they were sampled."""
    backbone, head = split_model(model)
    lean, device = LeanBackbone(backbone, whole=False), head.weight.device
    rows = [make_row(trajectory, 0.0) for trajectory in trajectories]
    found: dict[str, Tensor] = {}
    for batch in micro_batches(rows, token_budget):
        hidden = lean(batch.ids.to(device), batch.predicting.to(device))
        logp = token_logprobs(hidden, head, batch.targets.to(device)).cpu()
        for index, row in enumerate(batch.rows):
            found[row.trajectory_id] = logp[batch.row_of == index]
    return found


def mismatch(model: Any, trajectories: Sequence[Trajectory], token_budget: int = 4096) -> Mismatch:
    """Compare the recorded log-probabilities of ``trajectories`` with those of ``model`` at temperature 1."""
    logps = recomputed(model, trajectories, token_budget)
    tokens, total, largest, where = 0, 0.0, 0.0, ""
    for trajectory in trajectories:
        row = make_row(trajectory, 0.0)
        gaps = (logps[trajectory.id] - row.logq).abs()
        tokens += gaps.numel()
        total += float(gaps.double().sum())
        worst = int(gaps.argmax())
        if float(gaps[worst]) > largest:
            largest, where = float(gaps[worst]), f"{row.name}, token {int(row.targets[worst])}"
    return Mismatch(tokens, total / max(tokens, 1), largest, where)
