"""Progress: phases and counts told to whoever shows them, and the wall time of each phase."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Told what is being done; must return at once."""

    def __call__(self, phase: str, done: int, total: int) -> None:
        """``total`` is 0 while it is not known."""
        ...


def silent(phase: str, done: int, total: int) -> None:
    """Shows nothing."""


class Timer:
    """Adds up seconds per phase and passes progress on."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._phase = ""
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the block as ``name``; phases may come back."""
        began, self._phase = time.monotonic(), name
        self._progress(name, 0, 0)
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began

    def of(self, total: int) -> Callable[[int], None]:
        """A callback for the present phase that takes the number done."""
        phase = self._phase
        return lambda done: self._progress(phase, done, total)
