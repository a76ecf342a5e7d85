"""Draws one token per row: all rows at once, each from its own stream of random numbers.

The number a row draws with is a function of its seed and of how many tokens it has drawn, so what a row samples does
not depend on its neighbours except through the rounding of the logits. The log-probability is that of the drawn token
under softmax(logits / temperature) over the full vocabulary in fp32; top-p and top-k only narrow what may be drawn.
At temperature 0 the most likely token is taken, and its log-probability is that at temperature 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from frognano.policy.contract import Sampling

_WHOLE_VOCABULARY_ELEMENTS = 1 << 22
_AHEAD = 16


def uniforms(seeds: np.ndarray, counters: np.ndarray) -> np.ndarray:
    """One number in [0, 1) for each (seed, counter), both uint64; a SplitMix64 finaliser over their mix."""
    with np.errstate(over="ignore"):
        mixed = _scramble(seeds + np.uint64(0x9E3779B97F4A7C15))
        mixed = _scramble(mixed + (counters + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))
    return np.asarray((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _scramble(value: np.ndarray) -> np.ndarray:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(value ^ (value >> np.uint64(31)))


class RowSampler:
    """Sampling settings and streams of the rows of one batch, in row order."""

    def __init__(self, rows: Sequence[Sampling], drawn: Sequence[int], device: torch.device) -> None:
        """``drawn``: how many tokens each row has drawn before."""
        self._seeds = np.array([row.seed % 2**64 for row in rows], dtype=np.uint64)
        self._counters = np.array(drawn, dtype=np.uint64)
        self._step = 0
        self._block = torch.empty(0)
        self._device = device
        self._greedy = [row.temperature <= 0 for row in rows]
        heat = [row.temperature if row.temperature > 0 else 1.0 for row in rows]
        self._divisor = torch.tensor(heat, device=device)[:, None] if any(value != 1.0 for value in heat) else None
        self._narrow = any(row.top_p < 1.0 or row.top_k > 0 for row in rows)
        self._top_p = torch.tensor([row.top_p for row in rows], device=device, dtype=torch.float64)[:, None]
        self._top_k = torch.tensor([row.top_k or 2**31 for row in rows], device=device)[:, None]
        self._any_greedy = any(self._greedy)
        self._greedy_rows = torch.tensor(self._greedy, device=device)

    def draw(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [rows, vocabulary] → ids [rows] (int64) and log-probabilities [rows] (fp32)."""
        numbers = self._numbers()
        rows, vocabulary = logits.shape
        many = max(1, _WHOLE_VOCABULARY_ELEMENTS // vocabulary)
        if rows <= many:
            return self._draw(logits, numbers, slice(None))
        parts = [slice(low, low + many) for low in range(0, rows, many)]
        drawn = [self._draw(logits[part], numbers[part], part) for part in parts]
        return torch.cat([ids for ids, _ in drawn]), torch.cat([logprobs for _, logprobs in drawn])

    def _numbers(self) -> Tensor:
        """The next number of every row, made for several steps at once."""
        place = self._step % _AHEAD
        if place == 0:
            ahead = np.arange(self._step, self._step + _AHEAD, dtype=np.uint64)[:, None]
            found = uniforms(self._seeds[None], self._counters[None] + ahead)
            # A little below 1, so that rounding never lifts a number to the whole sum of the probabilities.
            self._block = torch.from_numpy(found * (1 - 2.0**-40)).to(self._device)
        self._step += 1
        return self._block[place]

    def _draw(self, logits: Tensor, numbers: Tensor, part: slice) -> tuple[Tensor, Tensor]:
        logits = logits.float()
        if self._divisor is not None:
            logits = logits / self._divisor[part]
        logprobs = torch.log_softmax(logits, dim=-1)
        probabilities = logprobs.exp()
        if self._narrow:
            probabilities, order = probabilities.sort(dim=-1, descending=True, stable=True)
            ids = order.gather(1, self._invert(self._narrowed(probabilities, part), numbers))
        else:
            ids = self._invert(probabilities.to(torch.float64).cumsum(dim=-1), numbers)
        if self._any_greedy:
            ids = torch.where(self._greedy_rows[part, None], logits.argmax(dim=-1, keepdim=True), ids)
        return ids[:, 0], logprobs.gather(1, ids)[:, 0]

    def _narrowed(self, ordered: Tensor, part: slice) -> Tensor:
        """Cumulative sums of the probabilities that top-k and top-p leave, highest first."""
        exact = ordered.to(torch.float64)
        before = exact.cumsum(dim=-1) - exact
        ranks = torch.arange(ordered.shape[-1], device=ordered.device)[None, :]
        kept = (ranks < self._top_k[part]) & ((before < self._top_p[part]) | (ranks == 0))
        return torch.where(kept, exact, 0.0).cumsum(dim=-1)

    @staticmethod
    def _invert(cumulative: Tensor, numbers: Tensor) -> Tensor:
        """First index whose cumulative probability passes the row's number; never an index of probability 0."""
        wanted = numbers[:, None] * cumulative[:, -1:]
        return torch.searchsorted(cumulative, wanted, right=True).clamp_(max=cumulative.shape[-1] - 1)
