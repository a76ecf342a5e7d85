"""What a synthesis made: counts, funnel, and figures of the tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

from frognano.records import Record, Task
from frognano.taskpilot.complete import Completeness
from frognano.taskpilot.draft import Draft
from frognano.taskpilot.funnel import Stage, funnel_text

REPORT = "synthesis.json"


class SynthesisReport(Record):
    """A finished synthesis."""

    repository: str
    base: str
    """Digest of the clean snapshot."""
    seed: int
    tests: int
    """Stable tests."""
    set_aside: dict[str, int] = {}
    """Tests set aside, by reason."""
    stages: tuple[Stage, ...]
    tasks: dict[str, tuple[str, ...]]
    """Split → ids of validated tasks."""
    families: dict[str, int] = {}
    levels: dict[str, int] = {}
    functions: int = 0
    """Different functions that tasks are about."""
    f2p_median: float = 0.0
    words_mean: float = 0.0
    """Words per statement."""
    requirements_mean: float = 0.0
    """Explicit requirements per task."""
    matched_share: float = 1.0
    """Share of requirements that are stated or follow from what is visible."""
    graded_runs: int = 0
    seconds: dict[str, float] = {}
    """Wall seconds by phase."""

    @property
    def count(self) -> int:
        """All validated tasks."""
        return sum(map(len, self.tasks.values()))

    def save(self, folder: Path) -> None:
        """Write the report into the pool as ``synthesis.json``."""
        (folder / REPORT).write_text(self.model_dump_json(indent=1) + "\n")

    def text(self) -> str:
        """The report for people."""
        aside = ", ".join(f"{count} {reason}" for reason, count in self.set_aside.items()) or "none"
        splits = ", ".join(f"{split} {len(ids)}" for split, ids in self.tasks.items())
        families = ", ".join(f"{name} {count}" for name, count in sorted(self.families.items(), key=lambda x: -x[1]))
        levels = ", ".join(f"{name} {count}" for name, count in self.levels.items())
        seconds = ", ".join(f"{phase} {spent:.1f}" for phase, spent in self.seconds.items())
        return "\n".join(
            [
                f"{self.repository}: {self.count} validated tasks ({splits}) about {self.functions} functions",
                f"stable tests: {self.tests}; set aside: {aside}",
                funnel_text(self.stages),
                f"families: {families}",
                f"statement levels: {levels}; words: {self.words_mean:.0f} on average",
                f"fail-to-pass tests: median {self.f2p_median:g}; requirements: {self.requirements_mean:.1f} a task, "
                f"{self.matched_share:.0%} stated or visible",
                f"seconds: {seconds}; graded runs: {self.graded_runs}",
            ]
        )


def figures(tasks: Sequence[Task], drafts: Sequence[Draft]) -> dict[str, object]:
    """The figures of a report that follow from its tasks."""
    complete: list[Completeness] = [draft.completeness() for draft in drafts]
    matched = sum(item.stated + item.follows for item in complete)
    every = sum(item.requirements for item in complete)
    return {
        "families": dict(Counter(task.origin.generator.split(":")[-1] for task in tasks)),
        "levels": dict(sorted(Counter(task.origin.level for task in tasks).items())),
        "functions": len({(task.origin.module, task.origin.function) for task in tasks}),
        "f2p_median": float(median([len(task.tests.f2p) for task in tasks] or [0])),
        "words_mean": float(mean([draft.words() for draft in drafts] or [0])),
        "requirements_mean": every / len(drafts) if drafts else 0.0,
        "matched_share": matched / every if every else 1.0,
    }
