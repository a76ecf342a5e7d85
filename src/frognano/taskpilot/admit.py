"""Admission: which measured tasks a climb trains on, and the record that says so.

In the band, complete, one version per root, one task per snapshot; where there are more than wanted, those nearest
to the target, ties by seed. Validation and held-out tasks are never admitted to training: they are listed as made.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from frognano.config.taskpilot import TaskPilotSettings
from frognano.records import Record, Task
from frognano.taskpilot.calibrate import Measure, histogram
from frognano.taskpilot.draft import load_draft
from frognano.taskpilot.refine import RefinementReport
from frognano.tasks.folder import read_task

ADMISSION = "admission.json"


class AdmittedTask(Record):
    """One task of a climb."""

    id: str
    root: str
    p_hat: float
    low: float
    high: float
    episodes: int
    words: int
    changes: tuple[str, ...] = ()
    """Refinements that led to it."""


class Admission(Record):
    """What was admitted and out of what: enough to make it again."""

    schema_version: int = 1
    policy: str
    seeds: dict[str, int]
    settings: dict[str, object]
    repositories: dict[str, str]
    """Repository → digest of its clean snapshot."""
    licences: dict[str, str] = {}
    admitted: tuple[AdmittedTask, ...]
    left_out: dict[str, int] = {}
    """Code → tasks measured and not admitted."""
    splits: dict[str, tuple[str, ...]] = {}
    """Ids of every raw validated task by split."""
    p_hat: dict[str, int] = {}
    """Histogram of the raw tasks' p̂."""
    entered: dict[str, tuple[int, int]] = {}
    """Direction → tasks refined, tasks that entered the band."""

    def save(self, folder: Path) -> Path:
        """Write ``admission.json`` atomically."""
        place, partial = folder / ADMISSION, folder / f".{ADMISSION}"
        partial.write_text(json.dumps(self.model_dump(), indent=1) + "\n")
        os.replace(partial, place)
        return place


def admit(
    pool_dir: Path,
    report: RefinementReport,
    settings: TaskPilotSettings,
    splits: Mapping[str, Sequence[str]] | None = None,
) -> Admission:
    """Choose the tasks of a climb from what was measured; ``splits`` lists the raw pool for the record."""
    left_out: Counter[str] = Counter()
    snapshots: set[str] = set()
    chosen: list[AdmittedTask] = []
    tasks: list[Task] = []
    for way in report.tasks:
        task = read_task(pool_dir / way.versions[-1])
        code = _refusal(pool_dir, task, way.last, settings, snapshots)
        if code:
            left_out[code] += 1
            continue
        snapshots.add(task.snapshot)
        tasks.append(task)
        measure = way.last
        chosen.append(
            AdmittedTask(
                id=task.id,
                root=way.root,
                p_hat=measure.p_hat,
                low=measure.low,
                high=measure.high,
                episodes=measure.episodes,
                words=len(task.statement.split()),
                changes=way.changes,
            )
        )
    draw = random.Random(f"admit:{settings.synthesis.seed}")
    draw.shuffle(chosen)
    chosen.sort(key=lambda item: abs(item.p_hat - settings.band.target))
    left_out["not-needed"] += max(0, len(chosen) - settings.admit)
    admitted = sorted(chosen[: settings.admit], key=lambda item: item.id)
    return Admission(
        policy=report.policy,
        seeds={"synthesis": settings.synthesis.seed, "calibration": settings.calibration.seed},
        settings=settings.model_dump(mode="json"),
        repositories={task.origin.repository: task.origin.base for task in tasks},
        licences={task.origin.repository: task.origin.licence for task in tasks},
        admitted=tuple(admitted),
        left_out={code: count for code, count in left_out.items() if count},
        splits={split: tuple(ids) for split, ids in (splits or by_split(pool_dir)).items()},
        p_hat=dict(histogram(report.first())),
        entered={"too hard": report.count("too hard"), "too easy": report.count("too easy")},
    )


def _refusal(
    pool_dir: Path, task: Task, measure: Measure, settings: TaskPilotSettings, snapshots: Iterable[str]
) -> str:
    """Why a task is not admitted; empty when it may be."""
    if task.split != "train":
        return "not-train"
    if measure.episodes == 0:
        return "no-verdict"
    if not settings.band.holds(measure.p_hat):
        return "too-hard" if measure.p_hat <= settings.band.low else "too-easy"
    if task.snapshot in snapshots:
        return "duplicate"
    if not load_draft(pool_dir / task.id).completeness().complete:
        return "incomplete"
    return ""


def by_split(pool_dir: Path) -> dict[str, tuple[str, ...]]:
    """Ids of the pool's raw tasks by split."""
    found: dict[str, list[str]] = {}
    for folder in sorted(pool_dir.iterdir()):
        if (folder / "frognano.json").is_file():
            task = read_task(folder)
            if task.lineage is None:
                found.setdefault(task.split, []).append(task.id)
    return {split: tuple(ids) for split, ids in found.items()}
