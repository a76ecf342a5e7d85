"""Runs any Hugging Face causal model, one row at a time: right for every architecture, and slow."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from frognano.policy.row_state import RowState


class GenericRunner:
    """Each row is its own batch with the model's own cache."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._caches: list[Any] = []
        self._lengths: list[int] = []

    @property
    def rows(self) -> int:
        return len(self._caches)

    def join(self, states: Sequence[RowState | None], ids: Sequence[Sequence[int]]) -> Tensor:
        logits = []
        for state, new in zip(states, ids, strict=True):
            self._add(state)
            logits.append(self._read(len(self._caches) - 1, torch.tensor([list(new)], device=self._model.device)))
        return torch.cat(logits)

    def adopt(self, states: Sequence[RowState]) -> None:
        for state in states:
            self._add(state)

    def _add(self, state: RowState | None) -> None:
        cache = DynamicCache(config=self._model.config) if state is None else copy.deepcopy(state.layers[0])
        self._caches.append(cache)
        self._lengths.append(0 if state is None else state.length)

    def step(self, ids: Tensor) -> Tensor:
        return torch.cat([self._read(row, ids[row].reshape(1, 1)) for row in range(self.rows)])

    def _read(self, row: int, ids: Tensor) -> Tensor:
        start = self._lengths[row]
        output = self._model(
            input_ids=ids,
            position_ids=torch.arange(start, start + ids.shape[1], device=ids.device)[None],
            cache=self._caches[row],
            use_cache=True,
            logits_to_keep=1,
        )
        self._lengths[row] += ids.shape[1]
        logits: Tensor = output.logits[:, -1]
        return logits

    def state(self, row: int) -> RowState:
        return RowState(self._lengths[row], (copy.deepcopy(self._caches[row]),))

    def leave(self, row: int) -> None:
        self._caches[row], self._lengths[row] = self._caches[-1], self._lengths[-1]
        self._caches.pop()
        self._lengths.pop()

    def refresh(self) -> None:
        """Nothing is derived from the weights."""
