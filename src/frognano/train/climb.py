"""The climb: updates on one set of tasks until they are done, validation stops rising, or nothing is left to learn.

Episodes run while the trainer works, as far as the lag bound allows. An update, its checkpoint and the groups it
used enter the journal together, so a killed climb goes on where it was and trains on no group twice. With lag
bound 0 and one thread the whole climb is deterministic, given a deterministic source. It does not run episodes,
copy weights or score validation itself: the source does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from frognano.config.train import TrainSettings
from frognano.rollout.journal import Journal, UpdateEntry, ValidationEntry
from frognano.train.batch import Group
from frognano.train.checkpoint import CheckpointStore
from frognano.train.generation import ClimbPlan, Generation
from frognano.train.metrics import Event, Tally, update_metrics
from frognano.train.source import GroupSource
from frognano.train.update import UpdateReport


class Updater(Protocol):
    """A learner, here or in another process."""

    version: int

    def step(self, groups: Sequence[Group]) -> UpdateReport:
        """One update; see ``frognano.train.update.Learner``."""
        ...

    def stop(self) -> None:
        """Ask a running ``step`` to raise UpdateStopped soon."""
        ...


@dataclass(frozen=True, slots=True)
class ClimbResult:
    """How a climb ended."""

    reason: Literal["updates_done", "validation_saturated", "nothing_to_learn"]
    updates: int
    """Updates journaled, skipped ones included."""
    version: int
    last: str
    """Name of the last checkpoint; empty when no update was applied."""
    best: str
    """Name of the best checkpoint on validation, the last one without validation; empty means the starting weights."""
    best_score: float | None


@dataclass
class Climb:
    """One climb; ``run`` it once."""

    plan: ClimbPlan
    settings: TrainSettings
    learner: Updater
    source: GroupSource
    journal: Journal
    store: CheckpointStore
    on_update: Callable[[UpdateEntry], None] = lambda _entry: None
    """Called after every update, for live progress."""
    trace: list[Event] = field(default_factory=list)
    """Who worked when."""

    async def run(self) -> ClimbResult:
        """Climb, or go on climbing. Raises UpdateError, BatchError, JournalError or what the source raises."""
        generation = Generation(self.plan, self.settings, self.source, self.journal, self.trace)
        number = self._restore()
        await self._hand_over()
        try:
            await self._validate(number)
            generation.resume(number + 1)
            while not (reason := self._end(number)):
                waiting = time.monotonic()
                batch = await generation.next_batch(self.learner.version)
                waited, number = time.monotonic() - waiting, number + 1
                tally = generation.begin_update(list(batch))
                if batch:
                    entry = await self._update(number, batch, tally, waited)
                    await self._hand_over()
                else:
                    entry = self._skip(number, tally, waited)
                self.on_update(entry)
                await self._validate(number)
            await generation.end()
            return self._result(reason, number)
        finally:
            await generation.close()

    def _restore(self) -> int:
        """Load the journaled state; returns the number of the last update."""
        updates = self.journal.updates(self.plan.name)
        last = updates[-1].checkpoint if updates else ""
        self.store.clean(self.plan.name, keep={last, self._best()[0]})
        if last:
            self.store.restore(last, self.learner)
        return len(updates)

    async def _update(self, number: int, batch: dict[int, Group], tally: Tally, waited: float) -> UpdateEntry:
        work = asyncio.create_task(asyncio.to_thread(self._apply, number, batch, tally, waited))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # The thread owns the weights: ask it to stop, and leave only when it has.
            self.learner.stop()
            await asyncio.gather(work, return_exceptions=True)
            raise

    def _apply(self, number: int, batch: dict[int, Group], tally: Tally, waited: float) -> UpdateEntry:
        start = time.monotonic()
        groups = list(batch.values())
        report = self.learner.step(groups)
        self.trace.append(Event("update", start, time.monotonic(), number))
        metrics = update_metrics(groups, report, tally, self.settings, waited)
        name = self.store.write(self.plan.name, number, self.learner)
        entry = UpdateEntry(number=number, version=report.version, checkpoint=name, metrics=metrics)
        self.journal.commit_update(self.plan.name, entry, list(batch))
        self.store.clean(self.plan.name, keep={name, self._best()[0]})
        return entry

    def _skip(self, number: int, tally: Tally, waited: float) -> UpdateEntry:
        metrics = update_metrics([], None, tally, self.settings, waited)
        entry = UpdateEntry(number=number, version=self.learner.version, checkpoint=self._last(), metrics=metrics)
        self.journal.commit_update(self.plan.name, entry, [])
        return entry

    async def _hand_over(self) -> None:
        start, version = time.monotonic(), self.learner.version
        await self.source.hand_over(version)
        self.trace.append(Event("hand_over", start, time.monotonic(), version))

    async def _validate(self, number: int) -> None:
        """Score the present weights when it is time and it was not done before."""
        cadence, last = self.settings.validation_cadence, number == self.settings.updates
        due = cadence > 0 and (last or number % cadence == 0)
        if not due or any(done.number == number for done in self.journal.validations(self.plan.name)):
            return
        start = time.monotonic()
        score = await self.source.validate(self.learner.version)
        self.trace.append(Event("validate", start, time.monotonic(), number))
        if score is not None:
            entry = ValidationEntry(number=number, version=self.learner.version, score=score)
            self.journal.add_validation(self.plan.name, entry)

    def _end(self, number: int) -> Any:
        """Why the climb is over, or an empty string."""
        updates = self.journal.updates(self.plan.name)
        scores = [entry.score for entry in self.journal.validations(self.plan.name)]
        if scores and len(scores) - 1 - scores.index(max(scores)) >= self.settings.patience:
            return "validation_saturated"
        recent = updates[-self.settings.max_skipped :]
        if len(recent) == self.settings.max_skipped and all(entry.skipped for entry in recent):
            return "nothing_to_learn"
        return "updates_done" if number >= self.settings.updates else ""

    def _last(self) -> str:
        updates = self.journal.updates(self.plan.name)
        return updates[-1].checkpoint if updates else ""

    def _best(self) -> tuple[str, float | None]:
        """Checkpoint and score of the first of the best validations; the last checkpoint when there is none."""
        validations = self.journal.validations(self.plan.name)
        if not validations:
            return self._last(), None
        best = max(validations, key=lambda entry: (entry.score, -entry.number))
        names = {entry.number: entry.checkpoint for entry in self.journal.updates(self.plan.name)}
        return names.get(best.number, ""), best.score

    def _result(self, reason: Any, number: int) -> ClimbResult:
        best, score = self._best()
        return ClimbResult(reason, number, self.learner.version, self._last(), best, score)
