"""The funnel: how many candidates entered each stage, how many left it, and why the others did not.

Every rejection has a code; the sum of accepted and rejected is always what entered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from frognano.records import Record


class Code(StrEnum):
    """Why a candidate was rejected."""

    UNCOVERED = "uncovered"
    """No stable test executes the changed line."""
    DUPLICATE = "duplicate"
    """Its module has the same syntax tree as another candidate's, or as the clean one."""
    GREEN = "green"
    """Every test still passes."""
    HANG = "hang"
    """Its tests do not end within their time."""
    IMPORT = "import-error"
    """The change breaks import or collection."""
    CRASH = "crash"
    """The test process dies."""
    TOO_BROAD = "too-broad"
    """It breaks too large a share of the suite."""
    NEAR_DUPLICATE = "near-duplicate"
    """Another candidate makes the same function fail the same tests with the same outcomes."""
    FUNCTION_FULL = "function-full"
    """Its function has as many tasks as it may have."""
    NOT_NEEDED = "not-needed"
    """Its split has what was asked for."""
    FAMILY_FULL = "family-full"
    """Its family fills its share of the split already."""
    NO_EXAMPLE = "no-example"
    """No short, stable call shows the fault."""
    CANNOT_HIDE = "cannot-hide"
    """A breaking test is inherited or generated and cannot be taken out."""
    INCOMPLETE = "incomplete"
    """A hidden test enforces what is neither stated nor visible."""
    LEAK = "leak"
    """The statement would show the fix or name a hidden test."""
    UNCONFIRMED = "unconfirmed"
    """The grader does not see what screening saw."""
    UNSTABLE = "unstable"
    """Its tests do not agree over order and hash seed."""
    OUTSIDE = "outside-damage"
    """It breaks tests that were not seen to reach it."""
    EMPTY_PASSES = "empty-passes"
    """The untouched snapshot is not graded 0."""
    ORACLE = "oracle"
    """The gold patch is not graded 1."""
    FLAKY_TEST = "flaky-test"
    """One of its tests was later seen to be flaky."""
    NO_VERDICT = "no-verdict"
    """Grading failed for reasons that are not the candidate's."""


class Stage(Record):
    """One stage's counts."""

    name: str
    entered: int
    left: int
    codes: dict[str, int] = {}


class Funnel:
    """Counts by stage, in the order in which stages first appear."""

    def __init__(self) -> None:
        self._passed: Counter[str] = Counter()
        self._rejected: dict[str, Counter[str]] = {}

    def passed(self, stage: str, count: int = 1) -> None:
        """``count`` candidates left ``stage`` for the next."""
        self._rejected.setdefault(stage, Counter())
        self._passed[stage] += count

    def rejected(self, stage: str, code: Code, count: int = 1) -> None:
        """``count`` candidates ended at ``stage``."""
        if count:
            self._rejected.setdefault(stage, Counter())[code.value] += count

    def withdrawn(self, stage: str, code: Code) -> None:
        """One candidate that had passed ``stage`` is rejected after all."""
        self._passed[stage] -= 1
        self.rejected(stage, code)

    def stages(self) -> tuple[Stage, ...]:
        """The counts so far."""
        return tuple(
            Stage(
                name=name,
                entered=self._passed[name] + codes.total(),
                left=self._passed[name],
                codes=dict(sorted(codes.items())),
            )
            for name, codes in self._rejected.items()
        )


def funnel_text(stages: Iterable[Stage]) -> str:
    """The funnel as a table of plain text."""
    rows = [("stage", "entered", "left", "rejected because")]
    for stage in stages:
        why = ", ".join(f"{code} {count}" for code, count in sorted(stage.codes.items(), key=lambda row: -row[1]))
        rows.append((stage.name, str(stage.entered), str(stage.left), why))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in rows
    )
