"""The episodes of one run, journaled: what finished is never run again, what was cut is.

Two ways of running. Free: every episode is journaled when it ends, and a kill loses what was in flight. In lock-step
(for runs that must be repeatable to the bit): what is asked for at the same time forms cohorts of fixed members, and
a cohort enters the journal as a whole or is run again as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from frognano.records import Trajectory
from frognano.rollout.episodes import Attempt, EpisodeRunner, all_of
from frognano.rollout.journal import EpisodeEntry, Journal

P = TypeVar("P")
T = TypeVar("T")

QUIET_S = 0.05
"""A cohort is complete when nothing more was asked for during this time."""


@dataclass
class _Request:
    kind: str
    attempts: Sequence[Attempt]
    keep: bool
    answer: asyncio.Future[list[Trajectory]]


class Collector:
    """Finishes attempts; an async context manager, so that nothing runs on after the run."""

    def __init__(self, runner: EpisodeRunner, journal: Journal, lockstep: bool = False) -> None:
        self.runner, self.journal, self.lockstep = runner, journal, lockstep
        self._waiting: list[_Request] = []
        self._driver: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Collector:
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._driver is not None:
            self._driver.cancel()
            with suppress(asyncio.CancelledError):
                await self._driver

    async def trajectories(self, kind: str, attempts: Sequence[Attempt]) -> list[Trajectory]:
        """Whole trajectories, in order; they stay in the journal until they were trained on."""
        done: dict[str, Trajectory] = {}
        for scope in {attempt.scope for attempt in attempts}:
            done.update({found.id: found for found in await self._read(self.journal.trajectories, scope)})
        missing = [attempt for attempt in attempts if attempt.id not in done]
        done.update({found.id: found for found in await self._finish(kind, missing, keep=True)})
        return [done[attempt.id] for attempt in attempts]

    async def entries(self, kind: str, attempts: Sequence[Attempt]) -> list[EpisodeEntry]:
        """What counts of each episode, in order. One that ended without a verdict before is tried again."""
        scopes = {attempt.scope for attempt in attempts}
        before = await self._read(self._entries, scopes)
        done = {name for name, entry in before.items() if entry.reward is not None}
        await self._finish(kind, [attempt for attempt in attempts if attempt.id not in done], keep=False)
        after = await self._read(self._entries, scopes)
        return [after[attempt.id] for attempt in attempts]

    async def _read(self, look: Callable[[P], T], what: P) -> T:
        """Look into the journal; in lock-step within the loop, so that what is asked together stays together."""
        return look(what) if self.lockstep else await asyncio.to_thread(look, what)

    def _entries(self, scopes: set[str]) -> dict[str, EpisodeEntry]:
        return {entry.id: entry for scope in scopes for entry in self.journal.episodes(scope)}

    async def _finish(self, kind: str, attempts: Sequence[Attempt], keep: bool) -> list[Trajectory]:
        if not attempts:
            return []
        if not self.lockstep:
            return await all_of([self._one(attempt, keep) for attempt in attempts])
        request = _Request(kind, attempts, keep, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        if self._driver is None or self._driver.done():
            self._driver = asyncio.create_task(self._drive(), name="cohorts")
        return await request.answer

    async def _one(self, attempt: Attempt, keep: bool) -> Trajectory:
        trajectory = await self.runner.run(attempt)
        await asyncio.to_thread(self.journal.add_episode, attempt.scope, trajectory, keep=keep)
        # What is only counted need not be held until the last of its fellows is done.
        return trajectory if keep else trajectory.model_copy(update={"messages": (), "steps": (), "tokens": None})

    # Lock-step

    async def _drive(self) -> None:
        """Answer requests, cohort by cohort, until none is left."""
        while self._waiting:
            await self._quiet()
            kind = min(request.kind for request in self._waiting)
            taken = [request for request in self._waiting if request.kind == kind]
            self._waiting = [request for request in self._waiting if request.kind != kind]
            try:
                await self._answer([request for request in taken if not request.answer.done()])
            except Exception as error:
                # Whoever asked must hear of it; the driver itself has no caller.
                for request in taken:
                    if not request.answer.done():
                        request.answer.set_exception(error)

    async def _quiet(self) -> None:
        count = -1
        while count != len(self._waiting):
            count = len(self._waiting)
            await asyncio.sleep(QUIET_S)

    async def _answer(self, requests: Sequence[_Request]) -> None:
        keep = {attempt.id: request.keep for request in requests for attempt in request.attempts}
        wanted = [attempt for request in requests for attempt in request.attempts]
        wanted.sort(key=lambda attempt: (attempt.scope, attempt.id))
        done: dict[str, Trajectory] = {}
        for start in range(0, len(wanted), self.runner.concurrency):
            cohort = wanted[start : start + self.runner.concurrency]
            found = await self.runner.run_together(cohort)
            items = [(one.scope, trajectory, keep[one.id]) for one, trajectory in zip(cohort, found, strict=True)]
            await asyncio.to_thread(self.journal.add_episodes, items)
            done.update({trajectory.id: trajectory for trajectory in found})
        for request in requests:
            if not request.answer.done():
                request.answer.set_result([done[attempt.id] for attempt in request.attempts])
