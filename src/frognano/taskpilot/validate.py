"""Validation: a built task is confirmed by the grader that will grade episodes, in fresh sandboxes.

The untouched snapshot is graded several times, each in another order and with another hash seed: every
fail-to-pass test must fail and every pass-to-pass test pass each time, and the score is 0. The gold patch must score
1; with it the tree is byte for byte the clean repository, so its further runs are those of the clean tree, made once
for all tasks with the same tests. Tests that no change of a group is known to reach are run once on all changes of
the group together, so damage elsewhere is seen at the price of one run. A test that disagrees with itself is
quarantined. What it cannot exclude: a flaky test that agreed in every run there was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from frognano.config.taskpilot import SynthesisSettings
from frognano.records import Record, Verdict
from frognano.taskpilot.build import Built
from frognano.taskpilot.candidates import Candidate
from frognano.taskpilot.funnel import Code
from frognano.taskpilot.ground import Ground
from frognano.tasks.grader import Grader, NoVerdict
from frognano.tasks.patch import apply_patch
from frognano.tasks.testrun import TestRun

VERDICT_TRIES = 3
"""How often a round without a verdict is tried."""
REACHED_SHARE = 0.25
"""A group of changes may reach this share of the suite; the rest is what its run checks."""


class Pass(Record):
    """One round of runs of one task: same order, same hash seed."""

    empty_reward: float | None
    empty_reason: str
    broken: dict[str, str] = {}
    """Tests that did not pass on the untouched snapshot, with their outcome."""
    gold_reward: float | None
    gold_reason: str
    failing: dict[str, str] = {}
    """Tests that did not pass with the gold patch."""
    detail: str = ""


class Confirmation(Record):
    """What the runs of one task showed."""

    key: str
    code: Code | None = None
    """Why it was rejected; None when it was confirmed."""
    detail: str = ""
    runs: int = 0
    """Rounds of runs."""
    unsteady: tuple[str, ...] = ()
    """Tests that disagreed with themselves."""


class Confirmer:
    """Runs the rounds; runs of the clean tree are shared between tasks with the same tests."""

    def __init__(self, grader: Grader, ground: Ground, settings: SynthesisSettings) -> None:
        self._grader, self._ground, self._settings = grader, ground, settings
        self._clean: dict[tuple[tuple[str, ...], int], asyncio.Task[dict[str, str]]] = {}
        self.graded_runs = 0

    async def round(self, built: Built, folder: Path, seed: int) -> Pass:
        """One round; where there is no verdict, because a sandbox was lost, it is tried again."""
        for _ in range(VERDICT_TRIES):
            made = await self._round(built, folder, seed)
            if made.empty_reward is not None and made.gold_reward is not None:
                break
        return made

    async def _round(self, built: Built, folder: Path, seed: int) -> Pass:
        """Grade the empty patch, and the gold patch (seed 0) or the clean tree that it gives."""
        task = built.task
        empty = await self._grader.grade(task, folder, b"", order_seed=seed, hash_seed=seed)
        self.graded_runs += 1
        if seed and self._restores(built):
            gold = await self._clean_run((*task.tests.f2p, *task.tests.p2p), seed)
        else:
            gold = await self._grader.grade(task, folder, built.content.gold, order_seed=seed, hash_seed=seed)
            self.graded_runs += 1
        return Pass(
            empty_reward=empty.reward,
            empty_reason=empty.reason,
            broken=_not_passed(empty),
            gold_reward=gold.reward,
            gold_reason=gold.reason,
            failing=_not_passed(gold),
            detail=(empty.detail or gold.detail)[:300],
        )

    def _restores(self, built: Built) -> bool:
        """True when snapshot, gold patch and grading tests together are the clean tree."""
        store, task = self._ground.store, built.task
        gold = apply_patch(lambda name: store.entry(task.snapshot, name), built.content.gold)
        return store.derive(task.snapshot, {**gold, **built.content.tests}) == self._ground.base

    async def _clean_run(self, tests: tuple[str, ...], seed: int) -> Verdict:
        """The clean tree's verdict by ``tests``, run once; a run without a verdict is not kept."""
        key = (tuple(sorted(tests)), seed)
        run = self._clean.get(key)
        if run is None:
            run = self._clean[key] = asyncio.create_task(self._run_clean(key[0], seed))
        try:
            failing = await run
        except NoVerdict as error:
            if self._clean.get(key) is run:
                del self._clean[key]
            return Verdict(reward=None, reason="no_verdict", detail=str(error))
        return Verdict(reward=float(not failing), reason="failed" if failing else "passed", outcomes=failing)

    async def _run_clean(self, tests: tuple[str, ...], seed: int) -> dict[str, str]:
        run = TestRun(
            snapshot=self._ground.base,
            runtime=self._ground.runtime,
            files=tuple(sorted({test.split("::", 1)[0] for test in tests})),
            ids=tests,
            order_seed=seed,
            hash_seed=seed,
            timeout_s=self._settings.suite_timeout_s,
        )
        report = await self._grader.run_tests(run)
        return {test: report.outcomes[test] for test in tests if report.outcomes[test] != "passed"}


def _not_passed(verdict: Verdict) -> dict[str, str]:
    return {test: outcome for test, outcome in verdict.outcomes.items() if outcome != "passed"}


def conclude(built: Built, passes: Sequence[Pass]) -> Confirmation | None:
    """What the rounds so far say: a rejection, or None while nothing is wrong."""
    tests, last = built.task.tests, passes[-1]
    code, detail = _fault(tests.f2p, tests.p2p, passes)
    if code is None:
        return None
    unsteady: set[str] = set()
    if code is Code.UNSTABLE:
        unsteady = {test for run in passes for test in run.failing}
        for test in {test for run in passes for test in run.broken}:
            if len({run.broken.get(test, "passed") for run in passes}) > 1:
                unsteady.add(test)
    return Confirmation(
        key=built.candidate.key,
        code=code,
        detail=f"{detail} {last.detail}"[:300],
        runs=len(passes),
        unsteady=tuple(sorted(unsteady)),
    )


def _fault(f2p: Sequence[str], p2p: Sequence[str], passes: Sequence[Pass]) -> tuple[Code | None, str]:
    """What is wrong with the rounds so far."""
    first, last = passes[0], passes[-1]
    if last.empty_reward is None or last.gold_reward is None:
        return Code.NO_VERDICT, ""
    if last.empty_reason in ("collection_error", "early_exit", "crashed"):
        return Code.IMPORT, last.empty_reason
    if last.empty_reason == "test_timeout":
        return Code.HANG, ""
    if last.empty_reward > 0:
        return Code.EMPTY_PASSES, "the untouched snapshot passes"
    wrong = [test for test in f2p if last.broken.get(test) != "failed"]
    wrong += [test for test in p2p if test in last.broken]
    if wrong and last is first:
        return Code.UNCONFIRMED, f"{last.empty_reason}: {wrong[0]} {last.broken.get(wrong[0], 'passed')}"
    if wrong or last.broken != first.broken:
        return Code.UNSTABLE, f"another outcome in run {len(passes)}: {wrong[:3]}"
    if last.gold_reward < 1:
        code = Code.UNSTABLE if last.failing else Code.ORACLE
        return code, f"gold: {last.gold_reason} {list(last.failing)[:3]}"
    return None, ""


@dataclass
class Group:
    """Changes that are run together, in different functions, and the tests that reach any of them."""

    members: list[Candidate] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)

    def takes(self, candidate: Candidate, reached: set[str], suite: int) -> bool:
        """True when the candidate fits: another function, and enough tests stay unreached."""
        apart = all(candidate.place != member.place for member in self.members)
        return apart and (not self.members or len(self.reached | reached) <= REACHED_SHARE * suite)


def grouped(candidates: Sequence[Candidate], ground: Ground) -> list[Group]:
    """Groups of candidates for common runs of the suite, first fit."""
    modules, suite = ground.modules, len(ground.baseline.stable)
    groups: list[Group] = []
    for candidate in candidates:
        reached = set(modules.tests_of_function(candidate.module, candidate.mutation.function))
        group = next((group for group in groups if group.takes(candidate, reached, suite)), None)
        if group is None:
            group = Group()
            groups.append(group)
        group.members.append(candidate)
        group.reached |= reached
    return groups


async def outside_damage(
    grader: Grader, ground: Ground, candidates: Sequence[Candidate], settings: SynthesisSettings
) -> dict[str, tuple[str, ...]]:
    """Tests outside its reach that each candidate breaks, by key; candidates that break none are left out."""
    run = _Suite(grader, ground, settings)

    async def of_group(group: Group) -> dict[str, tuple[str, ...]]:
        rest = [test for test in ground.baseline.stable if test not in group.reached]
        broken = await run.broken(group.members, rest)
        if not broken:
            return {}
        if len(group.members) == 1:
            return {group.members[0].key: broken}
        alone = {member.key: await run.broken([member], rest) for member in group.members}
        return {key: tests for key, tests in alone.items() if tests}

    groups = grouped(candidates, ground)
    results = await asyncio.gather(*(of_group(group) for group in groups))
    return {key: tests for result in results for key, tests in result.items()}


class _Suite:
    """Runs parts of the suite on the clean tree with some changes in it."""

    def __init__(self, grader: Grader, ground: Ground, settings: SynthesisSettings) -> None:
        self._grader, self._ground, self._settings = grader, ground, settings

    async def broken(self, members: Sequence[Candidate], tests: Sequence[str]) -> tuple[str, ...]:
        """Those of ``tests`` that do not pass; all of them when the session does not end properly."""
        if not tests:
            return ()
        texts: dict[str, str] = {}
        # From the last change of a file to its first, so that offsets stay right.
        for member in sorted(members, key=lambda candidate: -candidate.mutation.start):
            clean = texts.get(member.module, self._ground.modules.parsed[member.module].source)
            texts[member.module] = member.mutation.apply(clean)
        run = TestRun(
            snapshot=self._ground.base,
            runtime=self._ground.runtime,
            files=tuple(sorted({test.split("::", 1)[0] for test in tests})),
            ids=tuple(tests),
            changes={path: text.encode() for path, text in texts.items()},
            timeout_s=self._settings.suite_timeout_s,
        )
        try:
            report = await self._grader.run_tests(run)
        except NoVerdict:
            return tuple(tests)
        return tuple(test for test in tests if report.outcomes.get(test) != "passed")
