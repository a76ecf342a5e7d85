"""Muon for a small CPU run: momentum, made orthogonal by Newton-Schulz iterations, in fp32.

torch's own Muon iterates in bfloat16, which a CPU without bfloat16 units emulates: several times slower here.
Source: K. Jordan and others, "Muon: an optimizer for hidden layers in neural networks" (2024), quintic iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

_A, _B, _C = 3.4445, -4.7750, 2.0315


class Muon(torch.optim.Optimizer):
    """Nesterov momentum and an orthogonal update for matrices, scaled by sqrt(max(1, rows / columns))."""

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": rate, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Apply one update to every parameter that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                held = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
                held.lerp_(parameter.grad, 1 - group["momentum"])
                direction = orthogonal(parameter.grad.lerp(held, group["momentum"]))
                scale = max(1.0, parameter.shape[0] / parameter.shape[1]) ** 0.5
                parameter.add_(direction, alpha=-group["lr"] * scale)


def orthogonal(matrix: Tensor, steps: int = 5) -> Tensor:
    """The nearest semi-orthogonal matrix to ``matrix`` [rows, columns], approximately."""
    tall = matrix.shape[0] > matrix.shape[1]
    value = matrix.T if tall else matrix
    value = value / (value.norm() + 1e-7)
    for _ in range(steps):
        square = value @ value.T
        value = torch.addmm(value, torch.addmm(square, square, square, beta=_B, alpha=_C), value, beta=_A)
    return value.T if tall else value
