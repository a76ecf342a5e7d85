"""Validation: a built task is confirmed by the grader that will grade episodes, in fresh sandboxes.

The untouched snapshot is graded several times, each in another order and with another hash seed: every
fail-to-pass test must fail and every pass-to-pass test pass each time, and the score is 0. The gold patch must score
1 as often. Tests that no change of a group is known to reach are run once on all changes of the group together, so
damage elsewhere is seen at the price of one run. A test that disagrees with itself is quarantined, and tasks that
already hold it are withdrawn. What it cannot exclude: a flaky test that agreed in every run there was.
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
from frognano.tasks.testrun import TestRun

REACHED_SHARE = 0.25
"""A group of changes may reach this share of the suite; the rest is what its run checks."""


class Confirmation(Record):
    """What the runs of one task showed."""

    key: str
    code: Code | None = None
    """Why it was rejected; None when it was confirmed."""
    detail: str = ""
    runs: int = 0
    """Graded runs, with and without the gold patch."""
    unsteady: tuple[str, ...] = ()
    """Tests that disagreed with themselves."""
    elapsed_s: float = 0.0


async def confirm(grader: Grader, built: Built, folder: Path, settings: SynthesisSettings) -> Confirmation:
    """Grade the empty and the gold patch of the task written in ``folder``, ``settings.confirm_runs`` times each."""
    key, task = built.candidate.key, built.task
    seeds = range(settings.confirm_runs)
    empty: list[Verdict] = []
    gold: list[Verdict] = []
    for seed in seeds:
        for verdicts, patch in ((empty, b""), (gold, built.content.gold)):
            verdicts.append(await grader.grade(task, folder, patch, order_seed=seed, hash_seed=seed))
        fault = _fault(task.tests.f2p, task.tests.p2p, empty, gold)
        if fault is not None:
            code, detail = fault
            unsteady = _unsteady(empty) | _unsteady(gold) if code is Code.UNSTABLE else set()
            return Confirmation(
                key=key, code=code, detail=detail[:300], runs=2 * (seed + 1), unsteady=tuple(sorted(unsteady))
            )
    spent = sum(verdict.elapsed_s for verdict in (*empty, *gold))
    return Confirmation(key=key, runs=2 * len(seeds), elapsed_s=spent)


def _fault(
    f2p: Sequence[str], p2p: Sequence[str], empty: Sequence[Verdict], gold: Sequence[Verdict]
) -> tuple[Code, str] | None:
    """What is wrong with the verdicts so far."""
    first, last, right = empty[0], empty[-1], gold[-1]
    if last.reward is None or right.reward is None:
        return Code.NO_VERDICT, last.detail or right.detail
    if last.reason in ("collection_error", "early_exit", "crashed"):
        return Code.IMPORT, f"{last.reason}: {last.detail}"
    if last.reason == "test_timeout":
        return Code.HANG, last.detail
    if last.reward > 0:
        return Code.EMPTY_PASSES, "the untouched snapshot passes"
    wrong = [test for test in f2p if last.outcomes.get(test) != "failed"]
    wrong += [test for test in p2p if last.outcomes.get(test) != "passed"]
    if wrong and last is first:
        seen = last.outcomes.get(wrong[0])
        return Code.UNCONFIRMED, f"{last.reason}: {wrong[0]} {seen} {last.detail}"
    if wrong or last.outcomes != first.outcomes:
        return Code.UNSTABLE, f"another outcome in run {len(empty)}: {wrong[:3]}"
    if right.reward < 1:
        failing = [test for test, outcome in right.outcomes.items() if outcome != "passed"]
        code = Code.UNSTABLE if failing else Code.ORACLE
        return code, f"{right.reason}: {failing[:3]} {right.detail}"
    return None


def _unsteady(verdicts: Sequence[Verdict]) -> set[str]:
    """Tests whose outcome differs between runs of the same tree, or that fail with the gold patch."""
    seen: dict[str, set[str]] = {}
    for verdict in verdicts:
        for test, outcome in verdict.outcomes.items():
            seen.setdefault(test, set()).add(outcome)
    return {test for test, outcomes in seen.items() if len(outcomes) > 1}


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
