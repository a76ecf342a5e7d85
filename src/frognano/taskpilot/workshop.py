"""The steps of one wave of candidates: pick, word, build, validate. Shared state of a synthesis stands here.

Every candidate that enters a step is counted as passed or rejected with a code. Built tasks are written beside the
pool and moved into it only when they are confirmed.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from frognano.config.taskpilot import SynthesisSettings
from frognano.taskpilot.bench import Bench, Benches
from frognano.taskpilot.build import Builder, Built, Rejected
from frognano.taskpilot.candidates import Candidate
from frognano.taskpilot.facts import Question, observe
from frognano.taskpilot.funnel import Code, Funnel
from frognano.taskpilot.ground import Ground
from frognano.taskpilot.journal import Journal
from frognano.taskpilot.progress import Timer
from frognano.taskpilot.quota import Quota
from frognano.taskpilot.report import SynthesisReport, figures
from frognano.taskpilot.screen import Screened
from frognano.taskpilot.state import Example
from frognano.taskpilot.validate import Confirmation, Confirmer, Pass, conclude, outside_damage
from frognano.tasks.folder import write_task
from frognano.tasks.grader import Grader
from frognano.tasks.pool import MANIFEST, Pool

QUESTIONS = 48
"""Candidates per bench program when examples are observed."""
CHECKING = ".checking"


@dataclass
class Workshop:
    """One synthesis at work."""

    grader: Grader
    ground: Ground
    builder: Builder
    settings: SynthesisSettings
    journal: Journal
    pool: Path
    funnel: Funnel
    quota: Quota
    timer: Timer
    accepted: dict[str, Built] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.confirmer = Confirmer(self.grader, self.ground, self.settings)

    def pick(self, wave: Sequence[Candidate], screened: Mapping[str, Screened]) -> list[Candidate]:
        """Those of the wave that break tests, are new, and are still wanted."""
        picked = []
        for candidate in wave:
            found = screened[candidate.key]
            code = found.rejection(self.ground.baseline, self.settings)
            if code is not None:
                self.funnel.rejected("screen", code)
                continue
            self.funnel.passed("screen")
            code = self.quota.refusal(candidate, found)
            if code is not None:
                self.funnel.rejected("choose", code)
            elif self.quota.need(candidate.split) > 0:
                self.funnel.passed("choose")
                self.quota.take(candidate, found)
                picked.append(candidate)
            else:
                self.funnel.rejected("choose", Code.NOT_NEEDED)
        return picked

    async def build(
        self, benches: Benches, picked: Sequence[Candidate], screened: Mapping[str, Screened]
    ) -> list[Built]:
        """Observe failing examples and build the tasks."""
        examples = await self._observed(benches, picked, screened)
        built = []
        for candidate in picked:
            found = screened[candidate.key]
            try:
                made = await asyncio.to_thread(
                    self.builder.build, candidate, found.broken, examples[candidate.key], self.settings
                )
            except Rejected as rejected:
                self._refuse("build", candidate, found, rejected.code)
                continue
            self.funnel.passed("build")
            built.append(made)
        return built

    async def _observed(
        self, benches: Benches, picked: Sequence[Candidate], screened: Mapping[str, Screened]
    ) -> dict[str, tuple[Example, ...]]:
        found: dict[str, tuple[Example, ...]] = {}
        questions: list[Question] = []
        for number, candidate in enumerate(picked):
            kept = self.journal.get("observe", candidate.key)
            if kept is not None:
                found[candidate.key] = tuple(Example.model_validate(example) for example in kept)
            else:
                questions.append(
                    self.builder.question(number, candidate, screened[candidate.key].broken, self.settings)
                )
        batches = [questions[start : start + QUESTIONS] for start in range(0, len(questions), QUESTIONS)]
        tell = self.timer.of(len(picked))

        async def work(bench: Bench, batch: Sequence[Question]) -> dict[int, tuple[Example, ...]]:
            return await observe(bench, batch, self.settings)

        async for batch, results in benches.each(batches, work):
            for question in batch:
                key = picked[question.id].key
                found[key] = results.get(question.id, ())
                self.journal.put("observe", key, [example.model_dump() for example in found[key]])
            tell(len(found))
        return found

    async def validate(self, built: Sequence[Built], screened: Mapping[str, Screened]) -> None:
        """Confirm the tasks by grading, quarantine unsteady tests, and move what is confirmed into the pool."""
        waiting: list[Built] = []
        for made in await self._without_damage(built, screened):
            kept = self.journal.get("confirm", made.candidate.key)
            if kept is not None and (kept["code"] is not None or (self.pool / made.task.id).exists()):
                self._settle(made, Confirmation.model_validate(kept), screened)
            else:
                await asyncio.to_thread(self._write, made)
                waiting.append(made)
        passes: dict[str, list[Pass]] = {made.candidate.key: [] for made in waiting}
        # Round by round over all tasks: one hash seed at a time is one kind of interpreter at a time.
        for seed in range(self.settings.confirm_runs):
            waiting = await self._round(waiting, passes, seed, screened)
        for made in waiting:
            self._settle(made, Confirmation(key=made.candidate.key, runs=self.settings.confirm_runs), screened)
        self._withdraw(screened)

    def _write(self, made: Built) -> None:
        checking = self.pool / CHECKING
        shutil.rmtree(checking / made.task.id, ignore_errors=True)
        made.draft.save(write_task(checking, made.task, made.content, self.ground.store))

    async def _round(
        self, waiting: Sequence[Built], passes: dict[str, list[Pass]], seed: int, screened: Mapping[str, Screened]
    ) -> list[Built]:
        """One round of runs over ``waiting``; those that are still sound."""
        gate = asyncio.Semaphore(2 * self.settings.workers)
        tell = self.timer.of(len(waiting) * self.settings.confirm_runs)
        finished = seed * len(waiting)

        async def one(made: Built) -> None:
            nonlocal finished
            async with gate:
                folder = self.pool / CHECKING / made.task.id
                passes[made.candidate.key].append(await self.confirmer.round(made, folder, seed))
            finished += 1
            tell(finished)

        await asyncio.gather(*(one(made) for made in waiting))
        sound = []
        for made in waiting:
            verdict = conclude(made, passes[made.candidate.key])
            if verdict is None:
                sound.append(made)
            else:
                self._settle(made, verdict, screened)
        return sound

    def _settle(self, made: Built, result: Confirmation, screened: Mapping[str, Screened]) -> None:
        """Accept or reject for good, and journal it."""
        folder, place = self.pool / CHECKING / made.task.id, self.pool / made.task.id
        self.builder.quarantined.update(result.unsteady)
        if result.code is not None:
            shutil.rmtree(folder, ignore_errors=True)
            self._refuse("validate", made.candidate, screened[made.candidate.key], result.code)
        else:
            if folder.exists():
                shutil.rmtree(place, ignore_errors=True)
                folder.rename(place)
            self.funnel.passed("validate")
            self.accepted[made.candidate.key] = made
        # A lost sandbox says nothing of the task: it may be tried again.
        if result.code is not Code.NO_VERDICT:
            self.journal.put("confirm", made.candidate.key, result.model_dump())

    async def _without_damage(self, built: Sequence[Built], screened: Mapping[str, Screened]) -> list[Built]:
        """Those that break nothing outside their reach, by one run of the suite per group of changes."""
        if not self.settings.whole_suite:
            return list(built)
        known = {made.candidate.key: self.journal.get("suite", made.candidate.key) for made in built}
        asked = [made.candidate for made in built if known[made.candidate.key] is None]
        damage = await outside_damage(self.grader, self.ground, asked, self.settings)
        for candidate in asked:
            known[candidate.key] = list(damage.get(candidate.key, ()))
            self.journal.put("suite", candidate.key, known[candidate.key])
        sound = []
        for made in built:
            if known[made.candidate.key]:
                self._refuse("suite", made.candidate, screened[made.candidate.key], Code.OUTSIDE)
            else:
                self.funnel.passed("suite")
                sound.append(made)
        return sound

    def _withdraw(self, screened: Mapping[str, Screened]) -> None:
        """Take back tasks that are graded by a test since seen to be flaky."""
        for key, made in list(self.accepted.items()):
            tests = made.task.tests
            if self.builder.quarantined.isdisjoint((*tests.f2p, *tests.p2p)):
                continue
            del self.accepted[key]
            shutil.rmtree(self.pool / made.task.id, ignore_errors=True)
            self.funnel.withdrawn("validate", Code.FLAKY_TEST)
            if key in screened:
                self.quota.take(made.candidate, screened[key], -1)

    def _refuse(self, stage: str, candidate: Candidate, found: Screened, code: Code) -> None:
        self.funnel.rejected(stage, code)
        self.quota.take(candidate, found, -1)

    def list_tasks(self) -> None:
        """Enter the accepted tasks into the pool's manifest."""
        seeds, settings = {"synthesis": self.settings.seed}, self.settings.model_dump(mode="json")
        listed = (self.pool / MANIFEST).exists()
        pool = Pool(self.pool) if listed else Pool.create(self.pool, seeds, settings)
        there = set(pool.ids())
        for name in sorted(made.task.id for made in self.accepted.values()):
            if name not in there:
                pool.adopt(name)
        shutil.rmtree(self.pool / CHECKING, ignore_errors=True)

    def report(self) -> SynthesisReport:
        """What was made."""
        made = [self.accepted[key] for key in sorted(self.accepted)]
        tasks: dict[str, tuple[str, ...]] = {}
        for split in ("train", "validation", "held-out"):
            tasks[split] = tuple(sorted(item.task.id for item in made if item.task.split == split))
        aside: dict[str, int] = {}
        for reason in self.ground.baseline.set_aside.values():
            aside[reason] = aside.get(reason, 0) + 1
        return SynthesisReport.model_validate(
            {
                "repository": self.ground.repository.name,
                "base": self.ground.base,
                "seed": self.settings.seed,
                "tests": len(self.ground.baseline.stable),
                "set_aside": aside,
                "stages": self.funnel.stages(),
                "tasks": tasks,
                "graded_runs": self.confirmer.graded_runs,
                "seconds": self.timer.seconds,
                **figures([item.task for item in made], [item.draft for item in made]),
            }
        )
