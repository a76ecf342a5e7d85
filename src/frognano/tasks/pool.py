"""A pool: a folder of task folders and a manifest that says what is in it and where it came from.

Only what the manifest lists is in the pool: a folder that a killed process left half made is not. No two tasks of
a pool are the same work: equal snapshot, gold patch, tests and statement are refused under any name. The manifest
is replaced atomically; two processes that add at the same moment are kept apart by a lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from frognano.records import Record, Split, Task
from frognano.tasks.folder import TaskContent, TaskFolderError, read_content, read_task, write_task
from frognano.tasks.snapshot import SnapshotStore

MANIFEST = "manifest.json"


class PoolError(ValueError):
    """The pool cannot be used or the task cannot enter it; the message says why."""


class PoolEntry(Record):
    """One task of the pool."""

    id: str
    split: Split
    snapshot: str
    digest: str
    """Hash over snapshot, statement, gold patch, test files and expected tests: what makes two tasks the same."""


class PoolManifest(Record):
    """What is in a pool and how it was made."""

    format: int = 1
    seeds: dict[str, int] = {}
    """Name of a drawing → its seed: enough, with the settings, to make the pool again."""
    settings: dict[str, Any] = {}
    """Resolved settings of whatever made the pool."""
    tasks: tuple[PoolEntry, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Number of tasks of each split."""
        found = Counter(entry.split for entry in self.tasks)
        return {split: found[split] for split in get_args(Split)}


class Pool:
    """The tasks below ``folder`` that its manifest lists, in the order they were added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def create(cls, folder: Path, seeds: Mapping[str, int], settings: Mapping[str, Any] | None = None) -> Pool:
        """Begin an empty pool; refuses a folder that already is one."""
        pool = cls(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with pool._locked():
            if (folder / MANIFEST).exists():
                raise PoolError(f"{folder} already is a pool; open it, or choose another folder")
            pool._write(PoolManifest(seeds=dict(seeds), settings=dict(settings or {})))
        return pool

    @property
    def manifest(self) -> PoolManifest:
        """The manifest as it is on disk. Raises PoolError."""
        try:
            raw = json.loads((self.folder / MANIFEST).read_bytes())
            raw.pop("counts", None)
            return PoolManifest.model_validate(raw)
        except FileNotFoundError:
            raise PoolError(f"{self.folder} is not a pool: it has no {MANIFEST}") from None
        except (ValueError, AttributeError) as error:
            raise PoolError(f"{self.folder / MANIFEST} cannot be read: {error}") from None

    def __len__(self) -> int:
        return len(self.manifest.tasks)

    def ids(self, split: Split | None = None) -> tuple[str, ...]:
        """Ids of all tasks, or of one split."""
        return tuple(entry.id for entry in self.manifest.tasks if split in (None, entry.split))

    def tasks(self, split: Split | None = None) -> Iterator[tuple[Task, Path]]:
        """Records and folders of all tasks, or of one split."""
        for name in self.ids(split):
            yield read_task(self.folder / name), self.folder / name

    def task(self, name: str) -> tuple[Task, Path]:
        """Record and folder of one task. Raises PoolError when the pool does not hold it."""
        if name not in self.ids():
            raise PoolError(f"{self.folder} holds no task {name!r}")
        return read_task(self.folder / name), self.folder / name

    def add(self, task: Task, content: TaskContent, store: SnapshotStore) -> Path:
        """Write a task and list it; refuses a taken id and a duplicate under another id."""
        with self._locked():
            self._refuse_duplicate(task, content)
            folder = write_task(self.folder, task, content, store)
            self._list(task, content)
        return folder

    def adopt(self, name: str) -> None:
        """List a task whose folder already stands in the pool; refuses duplicates like ``add``."""
        with self._locked():
            folder = self.folder / name
            task, content = read_task(folder), read_content(folder)
            if task.id != name:
                raise PoolError(f"{folder}: holds the task {task.id!r}")
            self._refuse_duplicate(task, content)
            self._list(task, content)

    def verify(self) -> list[str]:
        """What is wrong with the pool: missing or changed tasks; empty when all is well."""
        faults = []
        for entry in self.manifest.tasks:
            try:
                folder = self.folder / entry.id
                task = read_task(folder)
                if (task.id, task.split, digest_of(task, read_content(folder))) != (
                    entry.id,
                    entry.split,
                    entry.digest,
                ):
                    faults.append(f"{entry.id}: changed since it was added")
            except TaskFolderError as error:
                faults.append(str(error))
        return faults

    def _refuse_duplicate(self, task: Task, content: TaskContent) -> None:
        digest = digest_of(task, content)
        for entry in self.manifest.tasks:
            if entry.id == task.id:
                raise PoolError(f"{task.id}: the pool already has a task of this name")
            if entry.digest == digest:
                raise PoolError(f"{task.id}: the same task as {entry.id}")

    def _list(self, task: Task, content: TaskContent) -> None:
        manifest = self.manifest
        entry = PoolEntry(id=task.id, split=task.split, snapshot=task.snapshot, digest=digest_of(task, content))
        self._write(manifest.model_copy(update={"tasks": (*manifest.tasks, entry)}))

    def _write(self, manifest: PoolManifest) -> None:
        text = json.dumps({**manifest.model_dump(mode="json"), "counts": manifest.counts}, indent=1)
        handle, partial = tempfile.mkstemp(dir=self.folder, prefix=".manifest-")
        with os.fdopen(handle, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(handle)
        os.chmod(partial, 0o644)
        os.replace(partial, self.folder / MANIFEST)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.folder / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def digest_of(task: Task, content: TaskContent) -> str:
    """What the task asks for, as one hash; ids, splits and calibration do not enter."""
    parts: list[Any] = [task.snapshot, task.statement, sorted(task.tests.f2p), sorted(task.tests.p2p)]
    parts.append(hashlib.sha256(content.gold).hexdigest())
    parts += [[name, e.mode, hashlib.sha256(e.data).hexdigest()] for name, e in sorted(content.tests.items())]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
