"""What a model remembers of one conversation, and the calls every model runner answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor


@dataclass(frozen=True)
class RowState:
    """Memory of the first ``length`` tokens; never changed in place, so several conversations may share it."""

    length: int
    layers: tuple[Any, ...]


class Runner(Protocol):
    """Runs a model over a batch of rows. Rows are numbered from 0 without gaps; new ones come last."""

    @property
    def rows(self) -> int:
        """How many rows the batch holds."""
        ...

    def join(self, states: Sequence[RowState | None], ids: Sequence[Sequence[int]]) -> Tensor:
        """Add rows that remember ``states`` and read ``ids`` (at least one each) → logits [new rows, vocabulary]."""
        ...

    def adopt(self, states: Sequence[RowState]) -> None:
        """Add rows that remember ``states`` and have nothing to read."""
        ...

    def step(self, ids: Tensor) -> Tensor:
        """Every row reads one id: [rows] → logits [rows, vocabulary]."""
        ...

    def state(self, row: int) -> RowState:
        """A copy of what the row remembers."""
        ...

    def leave(self, row: int) -> None:
        """Take the row out; the last row takes its number."""
        ...

    def refresh(self) -> None:
        """The model's weights were changed in place."""
        ...
