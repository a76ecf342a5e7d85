"""The running side of a climb: starts groups as admission allows, filters what comes back, replaces what was dropped.

A started group is trained on unless the filter drops it; every drop is journaled with its reason. It lives in one
event loop and touches no weights.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from frognano.config.train import TrainSettings
from frognano.records import NO_VERDICT
from frognano.rollout.journal import EpisodeEntry, GroupEntry, Journal
from frognano.train.admission import Slot, capacity, choose, task_at
from frognano.train.batch import Group, make_group
from frognano.train.metrics import Event, Tally
from frognano.train.source import GroupSource


@dataclass(frozen=True)
class ClimbPlan:
    """What a climb works on."""

    name: str
    """Unique in the run, for example ``iteration-1``; prefixes group ids and checkpoints."""
    tasks: Sequence[str]
    """Ids of the calibrated tasks."""
    iteration: int = 1
    """Number of the outer iteration; the length reward starts with a later one."""


class Generation:
    """All open groups of one climb."""

    def __init__(
        self, plan: ClimbPlan, settings: TrainSettings, source: GroupSource, journal: Journal, trace: list[Event]
    ) -> None:
        if not plan.tasks:
            raise ValueError(f"climb {plan.name} has no tasks")
        self.plan, self.settings, self.source, self.journal, self.trace = plan, settings, source, journal, trace
        self.version = 0
        """Policy version that new groups start at."""
        self.number = 1
        """The update that is being filled."""
        self.updating = 0
        """Groups' worth of room held by an update that is being computed."""
        self.tally = Tally()
        self._entries: dict[int, GroupEntry] = {}
        self._finished: dict[int, Group] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._next_seq = 0
        self._failure: Exception | None = None
        self._closed = False
        self._changed = asyncio.Event()

    def resume(self, number: int) -> None:
        """Take up the journaled groups: those without an end are begun again, counts of this update restored."""
        self.number = number
        entries = self.journal.groups(self.plan.name)
        self._next_seq = len(entries)
        for entry in entries:
            if entry.state == "dropped" and entry.number == number:
                self._count_drop(entry.reason)
                self.tally.count([_raw(done) for done in self.journal.episodes(entry.id)])
            elif entry.state == "started":
                self._start(entry)

    async def next_batch(self, version: int) -> dict[int, Group]:
        """Groups for the update of ``version`` by sequence number.

        Fewer than asked for, or none, once the refill budget is spent and nothing more can come.
        """
        self.version, self.updating = version, 0
        while True:
            self._admit()
            if self._failure is not None:
                raise self._failure
            slots = [Slot(seq, entry.version, seq in self._finished) for seq, entry in self._entries.items()]
            taken = choose(slots, self.version, self.settings.groups, self.settings.max_lag)
            if taken is None and not self._tasks:
                taken = sorted(self._finished)[: self.settings.groups]
            if taken is not None:
                return {seq: self._finished[seq] for seq in taken}
            self._changed.clear()
            await self._changed.wait()

    def begin_update(self, batch: Sequence[int]) -> Tally:
        """The batch leaves for the trainer; generation goes on filling the update after it."""
        for seq in batch:
            del self._entries[seq], self._finished[seq]
        tally, self.tally = self.tally, Tally()
        self.number += 1
        self.updating = self.settings.groups
        self._admit()
        return tally

    async def close(self) -> None:
        """Cancel what still runs and wait until it is gone; safe to call twice."""
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def end(self) -> None:
        """The climb is over: close, and journal that no update will use the groups still open."""
        await self.close()
        for seq in sorted(self._entries):
            self.journal.drop_group(self.plan.name, seq, "climb_ended", self.number)
        self._entries.clear()

    def _admit(self) -> None:
        left = self.settings.updates - self.number + 1 + (1 if self.updating else 0)
        room = capacity(self.settings.groups, self.settings.max_lag, left)
        while len(self._entries) + self.updating + self.tally.lost < room and not self._closed:
            seq, self._next_seq = self._next_seq, self._next_seq + 1
            task_id = task_at(self.plan.tasks, seq, self.settings.seed)
            entry = GroupEntry(seq=seq, id=f"{self.plan.name}-g{seq:05d}", task_id=task_id, version=self.version)
            self.journal.start_group(self.plan.name, entry)
            self._start(entry)

    def _start(self, entry: GroupEntry) -> None:
        self._entries[entry.seq] = entry
        self._tasks[entry.seq] = asyncio.create_task(self._run(entry), name=entry.id)

    async def _run(self, entry: GroupEntry) -> None:
        start = time.monotonic()
        try:
            trajectories = await self.source.group(entry.task_id, entry.id, self.version)
            group = make_group(entry.id, entry.task_id, trajectories, self.settings, self.plan.iteration)
            self._take(entry.seq, group)
        except Exception as error:
            # Whatever a source raises ends the climb, and it must surface there and not in a forgotten task.
            self._failure = self._failure or error
            self._closed = True
        finally:
            self.trace.append(Event("group", start, time.monotonic(), entry.seq))
            del self._tasks[entry.seq]
            self._changed.set()
        self._admit()

    def _take(self, seq: int, group: Group) -> None:
        self.tally.count(group.raw)
        reason = group.drop_reason
        if not reason:
            self._finished[seq] = group
            return
        self.journal.drop_group(self.plan.name, seq, reason, self.number)
        del self._entries[seq]
        self._count_drop(reason)

    def _count_drop(self, reason: str) -> None:
        self.tally.dropped[reason] += 1
        if self.tally.replaced < self.settings.refill * self.settings.groups:
            self.tally.replaced += 1
        else:
            self.tally.lost += 1


def _raw(episode: EpisodeEntry) -> float | None:
    """Raw reward of a journaled episode, as ``frognano.train.reward.raw_reward`` has it."""
    if episode.reward is None or episode.exit_reason in NO_VERDICT:
        return None
    return 1.0 if episode.reward >= 1.0 else 0.0
