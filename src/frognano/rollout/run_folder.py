"""A run folder: owned by one process, and honest about a full disk.

The lock is the kernel's, so it is given back when the process ends, however it ends. Errors of the file system and
of SQLite become the few that a user can act on. Not safe on network file systems without locks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS facts (
    kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (kind, key));
CREATE TABLE IF NOT EXISTS episodes (
    scope TEXT NOT NULL, id TEXT NOT NULL, task_id TEXT NOT NULL, reward REAL, reason TEXT NOT NULL,
    exit_reason TEXT NOT NULL, sampled INTEGER NOT NULL, context_tokens INTEGER NOT NULL, elapsed_s REAL NOT NULL,
    at REAL NOT NULL, payload BLOB, PRIMARY KEY (scope, id));
CREATE TABLE IF NOT EXISTS groups (
    climb TEXT NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, task_id TEXT NOT NULL, version INTEGER NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', number INTEGER, PRIMARY KEY (climb, seq));
CREATE TABLE IF NOT EXISTS updates (
    climb TEXT NOT NULL, number INTEGER NOT NULL, version INTEGER NOT NULL, checkpoint TEXT NOT NULL,
    metrics TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (climb, number));
CREATE TABLE IF NOT EXISTS validations (
    climb TEXT NOT NULL, number INTEGER NOT NULL, version INTEGER NOT NULL, score REAL NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (climb, number));
"""


class JournalError(RuntimeError):
    """The journal cannot be used or written; the message says what to do."""


class RunLocked(JournalError):
    """Another process is working in this run folder."""


class RecipeChanged(JournalError):
    """The run was begun with other settings; ``keys`` names those that differ."""

    def __init__(self, keys: Sequence[str], message: str) -> None:
        super().__init__(message)
        self.keys = tuple(keys)


class DiskFull(JournalError):
    """No space left. What was journaled before is intact; make room and start again."""


def differing_keys(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], free: Collection[str] = ()
) -> list[tuple[str, Any, Any]]:
    """Dotted keys whose values differ, with both values (``(absent)`` where there is none), ``free`` ones left out."""
    flat_ours, flat_theirs = dict(_flatten(ours)), dict(_flatten(theirs))
    found = []
    for key in sorted(flat_ours.keys() | flat_theirs.keys()):
        if any(key == name or key.startswith(name + ".") for name in free):
            continue
        left, right = flat_ours.get(key, "(absent)"), flat_theirs.get(key, "(absent)")
        if left != right:
            found.append((key, left, right))
    return found


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def lock(folder: Path) -> int:
    """Take the folder's lock, which the kernel gives back when the process ends, however it ends."""
    path = folder / "LOCK"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise RunLocked(f"{folder} is in use by process {owner}; wait for it, stop it, or use another folder") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30.0)
    db.execute("PRAGMA journal_mode = WAL")
    # FULL, not NORMAL: old checkpoints are deleted once the row is in, so the row must survive a power cut too.
    db.execute("PRAGMA synchronous = FULL")
    db.executescript(_SCHEMA)
    return db


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise _full(folder) from error
        raise JournalError(f"the journal in {folder} cannot be used: {error}") from error
    except sqlite3.DatabaseError as error:
        raise JournalError(f"the journal in {folder} cannot be used: {error}") from error
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise _full(folder) from error
        raise


def _full(folder: Path) -> DiskFull:
    return DiskFull(f"no space left for {folder}; what was journaled is intact: make room and start again")
