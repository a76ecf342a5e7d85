"""Refinement: moving tasks into the band by their statement alone, and measuring each on fresh episodes.

Too hard: a missing contract is stated, an example added, at last the suspicious line named. Too easy: the line, the
contract, the place, an example are taken away. Snapshot, gold patch and tests stay what they are; a statement that
would be incomplete or would leak is never made. Every version is a task of its own with its lineage.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from frognano.config.taskpilot import BandSettings, TaskPilotSettings
from frognano.records import Lineage, Record, Task
from frognano.taskpilot.calibrate import Measure, Solve, calibrate
from frognano.taskpilot.draft import Draft, load_draft
from frognano.taskpilot.journal import Journal
from frognano.taskpilot.progress import Progress, silent
from frognano.taskpilot.state import LEVELS
from frognano.tasks.folder import read_content, read_task, rewrite_record, write_task
from frognano.tasks.pool import MANIFEST, Pool
from frognano.tasks.snapshot import SnapshotStore

Direction = Literal["too hard", "too easy"]
WRITING = ".writing"
_VERSION = re.compile(r"-r\d+$")


class Move(Record):
    """One change of a statement."""

    name: str
    draft: Draft


def easier(draft: Draft) -> Iterator[Move]:
    """Statements that tell more, the smallest step that helps first."""
    if draft.facts.contract and LEVELS.index(draft.level) < LEVELS.index("contract"):
        yield from _allowed(draft, "state-contract", level="contract")
    elif LEVELS.index(draft.level) < LEVELS.index("located"):
        yield from _allowed(draft, "state-location", level="located")
    if draft.shown < min(2, len(draft.facts.examples)):
        yield from _allowed(draft, "add-example", shown=draft.shown + 1)
    if draft.level != "suspect" and draft.facts.suspect:
        yield from _allowed(draft, "name-line", level="suspect")
    if not draft.facts.note:
        yield from _noted(draft)


def _noted(draft: Draft) -> Iterator[Move]:
    """State one more observed outcome as a contract."""
    spare = draft.facts.examples[draft.shown :]
    if spare:
        verb = "" if spare[0].expected.startswith("raises ") else "gives "
        facts = draft.facts.model_copy(update={"note": f"{spare[0].call} {verb}{spare[0].expected}"})
        yield from _allowed(draft, "state-behaviour", facts=facts)


def harder(draft: Draft) -> Iterator[Move]:
    """Statements that tell less, the smallest step first; a contract that is needed is never dropped."""
    order = {"suspect": "drop-line", "contract": "drop-contract", "located": "drop-location"}
    lower = [level for level in reversed(LEVELS) if LEVELS.index(level) < LEVELS.index(draft.level)]
    for level in lower:
        above = LEVELS[LEVELS.index(level) + 1]
        yield from _allowed(draft, order[above], level=level)
    if draft.shown > 1:
        yield from _allowed(draft, "drop-example", shown=1)


def _allowed(draft: Draft, name: str, **changes: object) -> Iterator[Move]:
    changed = draft.model_copy(update=changes)
    if changed.statement() != draft.statement() and changed.completeness().complete and not changed.leaks():
        yield Move(name=name, draft=changed)


class Refined(Record):
    """One task's way: its first measurement, its versions, where it ended."""

    root: str
    direction: Direction | None = None
    """Why it was refined; None when it was in the band at once."""
    versions: tuple[str, ...]
    """Ids, the root first."""
    changes: tuple[str, ...] = ()
    measures: tuple[Measure, ...]
    """One per version, each on fresh episodes."""
    entered: bool = False
    """A refined version lies in the band."""
    stuck: bool = False
    """No further change was possible."""

    @property
    def last(self) -> Measure:
        """The last version's measurement."""
        return self.measures[-1]


class RefinementReport(Record):
    """What calibration and refinement showed."""

    policy: str
    tasks: tuple[Refined, ...]

    def count(self, direction: Direction) -> tuple[int, int]:
        """Tasks that were out of the band on this side and refined, and how many entered it."""
        refined = [task for task in self.tasks if task.direction == direction and task.changes]
        return len(refined), sum(task.entered for task in refined)

    def first(self) -> list[Measure]:
        """Measurements of the raw tasks."""
        return [task.measures[0] for task in self.tasks]

    def text(self) -> str:
        """The counts for people."""
        lines = []
        directions: tuple[Direction, ...] = ("too hard", "too easy")
        for direction in directions:
            out = sum(task.direction == direction for task in self.tasks)
            refined, entered = self.count(direction)
            stuck = sum(task.direction == direction and task.stuck for task in self.tasks)
            fate = f"{refined} refined, {entered} of them entered the band on fresh episodes, {stuck} stuck"
            lines.append(f"{direction}: {out} tasks, {fate}")
        return "\n".join(lines)


async def calibrate_and_refine(
    pool_dir: Path,
    task_ids: Sequence[str],
    solve: Solve,
    settings: TaskPilotSettings,
    store: SnapshotStore,
    *,
    journal: Journal,
    policy: str,
    progress: Progress = silent,
) -> RefinementReport:
    """Measure the tasks, refine those out of the band round by round, measure each version on fresh episodes.

    Versions are written to the pool as tasks of their own. Finished measurements come from ``journal``.
    """
    tasks = [read_task(pool_dir / task_id) for task_id in task_ids]
    first = await calibrate(tasks, solve, settings.calibration, journal, policy=policy, progress=progress)
    ways = {
        task.id: Refined(
            root=task.id,
            direction=side(first[task.id], settings.band),
            versions=(task.id,),
            measures=(first[task.id],),
        )
        for task in tasks
    }
    _keep(pool_dir, tasks, first)
    for round_ in range(1, settings.refinement.rounds + 1):
        made = _versions(pool_dir, ways, settings, store)
        if not made:
            break
        versions = [task for task, _ in made.values()]
        measures = await calibrate(
            versions, solve, settings.calibration, journal, policy=policy, round_=round_, progress=progress
        )
        _keep(pool_dir, versions, measures)
        for root, (task, change) in made.items():
            way, measure = ways[root], measures[task.id]
            ways[root] = way.model_copy(
                update={
                    "versions": (*way.versions, task.id),
                    "changes": (*way.changes, change),
                    "measures": (*way.measures, measure),
                    "entered": side(measure, settings.band) is None and measure.episodes > 0,
                }
            )
    return RefinementReport(policy=policy, tasks=tuple(ways.values()))


def side(measure: Measure, band: BandSettings) -> Direction | None:
    """On which side of the band a measurement lies; None inside it or without a verdict."""
    if measure.episodes == 0 or band.holds(measure.p_hat):
        return None
    return "too hard" if measure.p_hat <= band.low else "too easy"


def _versions(
    pool_dir: Path, ways: dict[str, Refined], settings: TaskPilotSettings, store: SnapshotStore
) -> dict[str, tuple[Task, str]]:
    """The next version of every task that is out of the band, by root."""
    made: dict[str, tuple[Task, str]] = {}
    for root, way in ways.items():
        direction = side(way.last, settings.band)
        if direction is None or way.stuck:
            continue
        if settings.refinement.max_tasks and len(made) >= settings.refinement.max_tasks:
            break
        parent = read_task(pool_dir / way.versions[-1])
        draft = load_draft(pool_dir / parent.id)
        move = next(easier(draft) if direction == "too hard" else harder(draft), None)
        if move is None:
            ways[root] = way.model_copy(update={"stuck": True})
            continue
        made[root] = _write(pool_dir, parent, move, way.last, store), move.name
    return made


def _write(pool_dir: Path, parent: Task, move: Move, measure: Measure, store: SnapshotStore) -> Task:
    """The parent with another statement, as a task of its own; one that is there already is taken."""
    root = _VERSION.sub("", parent.id)
    number = int(parent.id[len(root) + 2 :] or 0) + 1
    name = f"{root}-r{number}"
    task = parent.model_copy(
        update={
            "id": name,
            "statement": move.draft.statement(),
            "origin": parent.origin.model_copy(update={"level": move.draft.level}),
            "lineage": Lineage(parent=parent.id, change=move.name, p_before=measure.p_hat),
            "calibration": None,
        }
    )
    if (pool_dir / name).exists():
        there = read_task(pool_dir / name)
        if there.statement == task.statement:
            _list(pool_dir, name)
            return there
        raise FileExistsError(f"{pool_dir / name} holds another statement; use another pool for another policy")
    content = read_content(pool_dir / parent.id)
    checked = pool_dir / WRITING
    shutil.rmtree(checked / name, ignore_errors=True)
    folder = write_task(checked, task, content, store)
    move.draft.save(folder)
    folder.rename(pool_dir / name)
    _list(pool_dir, name)
    return task


def _list(pool_dir: Path, name: str) -> None:
    """Enter a version into the pool's manifest, where there is one."""
    if (pool_dir / MANIFEST).exists() and name not in Pool(pool_dir).ids():
        Pool(pool_dir).adopt(name)


def _keep(pool_dir: Path, tasks: Sequence[Task], measures: Mapping[str, Measure]) -> None:
    """Write p̂ into the tasks' records."""
    for task in tasks:
        measure = measures[task.id]
        lineage = task.lineage
        if lineage is not None:
            lineage = lineage.model_copy(update={"p_after": measure.p_hat})
        kept = task.model_copy(update={"calibration": measure.record(), "lineage": lineage})
        rewrite_record(pool_dir / task.id, kept)
