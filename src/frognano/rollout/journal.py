"""The run journal: one SQLite file (WAL) that says what a run has done, so that it can be killed at any instant.

Every method that writes is one transaction and is on the disk when it returns. What may be lost by a kill is what
was never handed in: the episodes in flight. An update enters together with its checkpoint's name, after the
checkpoint itself is on the disk, so a row never names a checkpoint that is not there. One process at a time owns
a run folder; a second one, and a changed recipe, are refused with the reason. The journal needs no torch and no
other file; it does not protect from somebody editing it, nor from two machines on one network folder without locks.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from frognano.records import Record, Trajectory
from frognano.rollout.run_folder import (
    DiskFull,
    JournalError,
    RecipeChanged,
    RunLocked,
    connect,
    differing_keys,
    disk_errors,
    lock,
)

__all__ = [
    "DiskFull",
    "EpisodeEntry",
    "GroupEntry",
    "Journal",
    "JournalError",
    "RecipeChanged",
    "RunLocked",
    "UpdateEntry",
    "ValidationEntry",
]

_VERSION = "1"
_REMEMBER = """INSERT INTO facts VALUES (?, ?, ?, ?)
    ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, at = excluded.at"""
_ADD_EPISODE = "INSERT OR REPLACE INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DROP = "UPDATE groups SET state = 'dropped', reason = ?, number = ? WHERE climb = ? AND seq = ? AND state = 'started'"
_CONSUME = "UPDATE groups SET state = 'consumed', number = ? WHERE climb = ? AND seq = ? AND state = 'started'"


class GroupEntry(Record):
    """One group of a climb: ``seq`` counts them in the order they were started."""

    seq: int
    id: str
    task_id: str
    version: int
    """Policy version when it was started."""
    state: Literal["started", "consumed", "dropped"] = "started"
    reason: str = ""
    """Why it was dropped."""
    number: int | None = None
    """The update that consumed it, or during which it was dropped."""


class UpdateEntry(Record):
    """One update of a climb; a skipped one has the version and checkpoint of the one before it."""

    number: int
    version: int
    """Policy version after it."""
    checkpoint: str
    """Name of the checkpoint folder; empty when no update was applied yet."""
    metrics: dict[str, Any] = {}

    @property
    def skipped(self) -> bool:
        """True when it found no group to train on."""
        return bool(self.metrics.get("skipped"))


class ValidationEntry(Record):
    """A score on the validation set after an update; number 0 is the start."""

    number: int
    version: int
    score: float


class EpisodeEntry(Record):
    """What is kept of a finished episode for good; its trajectory is dropped once it was trained on."""

    scope: str
    id: str
    task_id: str
    reward: float | None
    reason: str
    exit_reason: str
    sampled: int
    context_tokens: int
    elapsed_s: float


class Journal:
    """The journal of one run folder; a context manager. All methods may be called from any thread."""

    def __init__(self, folder: Path, recipe: Mapping[str, Any], free: Collection[str] = ()) -> None:
        """Open or begin the run in ``folder``.

        ``free`` names settings (or whole sections, by their dotted prefix) that may change between starts,
        such as how many episodes run at once. Raises RunLocked, RecipeChanged, DiskFull or JournalError.
        """
        self.folder = folder
        self._guard = threading.RLock()
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock_fd = lock(folder)
        try:
            with disk_errors(folder):
                self._db = connect(folder / "journal.sqlite")
                self._identify(recipe, free)
        except BaseException:
            os.close(self._lock_fd)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the run folder back; safe to call twice."""
        with self._guard:
            if self._lock_fd >= 0:
                self._db.close()
                os.close(self._lock_fd)
                self._lock_fd = -1

    # The run

    @property
    def recipe(self) -> dict[str, Any]:
        """The resolved recipe the run was begun with."""
        found: dict[str, Any] = json.loads(self._one("SELECT value FROM run WHERE key = 'recipe'")[0])
        return found

    @property
    def digest(self) -> str:
        """SHA-256 of the recipe the run was begun with."""
        return str(self._one("SELECT value FROM run WHERE key = 'digest'")[0])

    def _identify(self, recipe: Mapping[str, Any], free: Collection[str]) -> None:
        text = json.dumps(recipe, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        rows = dict(self._all("SELECT key, value FROM run"))
        if not rows:
            with self._write() as db:
                pairs = {"schema": _VERSION, "recipe": text, "digest": digest, "begun": str(time.time())}
                db.executemany("INSERT INTO run VALUES (?, ?)", list(pairs.items()))
            return
        if rows["schema"] != _VERSION:
            raise JournalError(f"{self.folder} was written by another version of frognano (schema {rows['schema']})")
        differing = differing_keys(json.loads(rows["recipe"]), json.loads(text), free)
        if differing:
            lines = [f"  {key}: begun with {ours!r}, now {theirs!r}" for key, ours, theirs in differing]
            raise RecipeChanged(
                [key for key, _, _ in differing],
                f"{self.folder} was begun with other settings; use them again, or another folder:\n" + "\n".join(lines),
            )

    # Facts: whatever a phase must not do twice

    def put(self, kind: str, key: str, value: Any) -> None:
        """Remember ``value`` (JSON) under ``kind`` and ``key``; a later one replaces it."""
        with self._write() as db:
            db.execute(_REMEMBER, (kind, key, json.dumps(value), time.time()))

    def put_many(self, kind: str, values: Mapping[str, Any]) -> None:
        """Remember several values in one transaction."""
        now = time.time()
        rows = [(kind, key, json.dumps(value), now) for key, value in values.items()]
        with self._write() as db:
            db.executemany(_REMEMBER, rows)

    def get(self, kind: str, key: str) -> Any | None:
        """The value remembered, or None."""
        row = self._first("SELECT value FROM facts WHERE kind = ? AND key = ?", kind, key)
        return None if row is None else json.loads(row[0])

    def values(self, kind: str) -> dict[str, Any]:
        """All values of a kind, in the order they were first remembered."""
        rows = self._all("SELECT key, value FROM facts WHERE kind = ? ORDER BY rowid", kind)
        return {key: json.loads(value) for key, value in rows}

    def finish_phase(self, name: str, result: Any = None) -> None:
        """Mark a phase as done, with what later phases need of it."""
        self.put("phase", name, result)

    def phase_done(self, name: str) -> bool:
        """True when ``finish_phase`` was reached in this run."""
        return self._first("SELECT 1 FROM facts WHERE kind = 'phase' AND key = ?", name) is not None

    # Episodes

    def add_episode(self, scope: str, trajectory: Trajectory, *, keep: bool = True) -> None:
        """Journal a finished episode under ``scope`` (a group id, a calibration round, an evaluation).

        With ``keep`` the whole trajectory stays until it was trained on or ``drop_payloads`` is called. Adding an
        episode again replaces it.
        """
        self.add_episodes([(scope, trajectory, keep)])

    def add_episodes(self, items: Sequence[tuple[str, Trajectory, bool]]) -> None:
        """Journal several episodes, each as (scope, trajectory, keep), all or nothing."""
        rows = [_episode_row(scope, trajectory, keep) for scope, trajectory, keep in items]
        with self._write() as db:
            db.executemany(_ADD_EPISODE, rows)

    def trajectories(self, scope: str) -> list[Trajectory]:
        """The whole trajectories still kept under ``scope``, by id."""
        rows = self._all("SELECT payload FROM episodes WHERE scope = ? AND payload IS NOT NULL ORDER BY id", scope)
        return [_unpack(row[0]) for row in rows]

    def episodes(self, scope: str) -> list[EpisodeEntry]:
        """What is kept for good of the episodes under ``scope``, by id."""
        names = ", ".join(EpisodeEntry.model_fields)
        rows = self._all(f"SELECT {names} FROM episodes WHERE scope = ? ORDER BY id", scope)
        return [EpisodeEntry(**dict(zip(EpisodeEntry.model_fields, row, strict=True))) for row in rows]

    def drop_payloads(self, scope: str) -> None:
        """Let go of the trajectories under ``scope``; verdicts and counts stay."""
        with self._write() as db:
            db.execute("UPDATE episodes SET payload = NULL WHERE scope = ?", (scope,))

    # A climb

    def start_group(self, climb: str, group: GroupEntry) -> None:
        """A group's episodes begin; on a resume it is the same entry again."""
        row = (climb, group.seq, group.id, group.task_id, group.version, "started", "", None)
        with self._write() as db:
            db.execute("INSERT OR IGNORE INTO groups VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def drop_group(self, climb: str, seq: int, reason: str, number: int) -> None:
        """A group was filtered while update ``number`` was being filled; it is never trained on."""
        with self._write() as db:
            changed = db.execute(
                _DROP,
                (reason, number, climb, seq),
            ).rowcount
            if changed != 1:
                raise JournalError(f"group {seq} of {climb} is not running and cannot be dropped")
            _forget(db, climb, [seq])

    def commit_update(self, climb: str, entry: UpdateEntry, consumed: Sequence[int]) -> None:
        """Journal an update, its checkpoint and the groups it trained on, all or nothing.

        Call it only when the checkpoint is on the disk. Raises JournalError for an update that was journaled
        before or a group that was trained on before, so that neither can happen twice.
        """
        with self._write() as db:
            last = db.execute("SELECT MAX(number) FROM updates WHERE climb = ?", (climb,)).fetchone()[0] or 0
            if entry.number != last + 1:
                raise JournalError(f"update {entry.number} of {climb} cannot follow update {last}")
            metrics = json.dumps(entry.metrics)
            row = (climb, entry.number, entry.version, entry.checkpoint, metrics, time.time())
            db.execute("INSERT INTO updates VALUES (?, ?, ?, ?, ?, ?)", row)
            for seq in consumed:
                changed = db.execute(
                    _CONSUME,
                    (entry.number, climb, seq),
                ).rowcount
                if changed != 1:
                    raise JournalError(f"group {seq} of {climb} was trained on or dropped before")
            _forget(db, climb, consumed)

    def add_validation(self, climb: str, entry: ValidationEntry) -> None:
        """Journal a validation score."""
        row = (climb, entry.number, entry.version, entry.score, time.time())
        with self._write() as db:
            db.execute("INSERT OR REPLACE INTO validations VALUES (?, ?, ?, ?, ?)", row)

    def groups(self, climb: str) -> list[GroupEntry]:
        """Every group ever started, in order."""
        rows = self._all(
            "SELECT seq, id, task_id, version, state, reason, number FROM groups WHERE climb = ? ORDER BY seq", climb
        )
        return [GroupEntry(**dict(zip(GroupEntry.model_fields, row, strict=True))) for row in rows]

    def updates(self, climb: str) -> list[UpdateEntry]:
        """Every update, applied or skipped, in order."""
        rows = self._all(
            "SELECT number, version, checkpoint, metrics FROM updates WHERE climb = ? ORDER BY number", climb
        )
        return [UpdateEntry(number=n, version=v, checkpoint=c, metrics=json.loads(m)) for n, v, c, m in rows]

    def validations(self, climb: str) -> list[ValidationEntry]:
        """Every validation, in order."""
        rows = self._all("SELECT number, version, score FROM validations WHERE climb = ? ORDER BY number", climb)
        return [ValidationEntry(number=number, version=version, score=score) for number, version, score in rows]

    # SQLite

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._guard, disk_errors(self.folder):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._guard:
            return self._db.execute(query, values).fetchall()

    def _first(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        rows = self._all(query, *values)
        return rows[0] if rows else None

    def _one(self, query: str) -> tuple[Any, ...]:
        row = self._first(query)
        if row is None:
            raise JournalError(f"{self.folder} holds no run")
        return row


def _episode_row(scope: str, trajectory: Trajectory, keep: bool) -> tuple[Any, ...]:
    verdict, tokens = trajectory.verdict, trajectory.tokens
    return (
        scope,
        trajectory.id,
        trajectory.task_id,
        verdict.reward if verdict else None,
        verdict.reason if verdict else "no_verdict",
        trajectory.exit_reason,
        tokens.sampled if tokens else 0,
        trajectory.context_tokens,
        trajectory.elapsed_s,
        time.time(),
        _pack(trajectory) if keep else None,
    )


def _forget(db: sqlite3.Connection, climb: str, seqs: Sequence[int]) -> None:
    """Let go of the trajectories of groups that are done with; their verdicts and counts stay."""
    db.executemany(
        "UPDATE episodes SET payload = NULL WHERE scope = (SELECT id FROM groups WHERE climb = ? AND seq = ?)",
        [(climb, seq) for seq in seqs],
    )


def _pack(trajectory: Trajectory) -> bytes:
    # Through plain json, because a patch may hold lone surrogates, which pydantic's own writer refuses.
    return zlib.compress(json.dumps(trajectory.model_dump(mode="python")).encode("ascii"), 1)


def _unpack(payload: bytes) -> Trajectory:
    return Trajectory.model_validate(json.loads(zlib.decompress(payload)))
