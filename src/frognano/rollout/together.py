"""Episodes in lock-step: a cohort whose batches are the same in every run.

What a model computes for one conversation depends, in the last bits, on the others in its batch. Where a run must be
repeatable to the bit, episodes therefore run in cohorts of fixed members: all sandboxes open first, the conversations
open in order, and none speaks before all are open; the engine's wave mode does the rest. A cohort is finished or it
never was: the caller journals it as a whole. It costs the speed of its slowest member.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from frognano.policy.contract import Policy, Sampling, Session


class Turnstile:
    """Lets ``count`` conversations open one after another, and none go on before all have opened or given up."""

    def __init__(self, count: int) -> None:
        self._passed = [asyncio.Event() for _ in range(count)]

    async def my_turn(self, place: int) -> None:
        """Wait until everybody before ``place`` has passed."""
        for event in self._passed[:place]:
            await event.wait()

    def passed(self, place: int) -> None:
        """``place`` has opened, or never will."""
        self._passed[place].set()

    async def all_passed(self) -> None:
        """Wait until everybody has passed."""
        for event in self._passed:
            await event.wait()


class OrderedPolicy:
    """A policy whose one conversation opens at its ``place`` of a turnstile."""

    def __init__(self, inner: Policy, turnstile: Turnstile, place: int) -> None:
        self._inner, self._turnstile, self._place = inner, turnstile, place

    @property
    def name(self) -> str:
        return self._inner.name

    async def __aenter__(self) -> OrderedPolicy:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    async def open(self, system: str, user: str, tools: Sequence[dict[str, Any]], sampling: Sampling) -> Session:
        """Open in order; a later try of the same episode finds the turnstile open."""
        await self._turnstile.my_turn(self._place)
        try:
            session = await self._inner.open(system, user, tools, sampling)
        finally:
            self._turnstile.passed(self._place)
        await self._turnstile.all_passed()
        return session
