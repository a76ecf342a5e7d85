"""A task on disk: a folder that is also a valid Harbor task (schema 1.4).

``write_task`` writes it beside its place and moves it in, ``read_task`` gives back an equal record. Harbor's
oracle scores 1 on it and its nop agent 0: ``tests/test.sh`` restores the test configuration and the grading
tests and runs them under the same judge as our own grader; ``solution/solve.sh`` applies the gold patch, in
images without git. Harbor's own agents run with the network mode ``public`` (its Docker backend refuses sealed
tasks); sealing is what our sandbox does. The folder holds the hidden tests and the gold patch: a solver must
never see it.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from frognano.records import Task
from frognano.tasks import inside, patch, protect, ruling
from frognano.tasks.inside import boot
from frognano.tasks.patch import Entry
from frognano.tasks.snapshot import SnapshotStore
from frognano.tasks.tree import read_tree, write_tree

RECORD = "frognano.json"
GOLD = "solution/gold.patch"
FILES = "tests/files"
PYTEST = "9.0.2"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class TaskFolderError(ValueError):
    """The folder is not a task of ours, or the task cannot be written; the message says why."""


@dataclass(frozen=True)
class TaskContent:
    """The parts of a task that are bytes."""

    gold: bytes
    """The gold patch, relative to the task's snapshot."""
    tests: Mapping[str, Entry]
    """Repository path → file, for every path in ``task.tests.files``."""


def _dump(task: Task) -> bytes:
    """JSON by the standard library: it writes lone surrogates (names that are not UTF-8) as escapes."""
    return json.dumps({"format": 1, "task": task.model_dump()}, indent=2).encode("ascii") + b"\n"


def write_task(pool: Path, task: Task, content: TaskContent, store: SnapshotStore) -> Path:
    """Write the task as ``pool/<task.id>``; refuses an id that is taken or unsafe as a folder name."""
    check_id(task.id)
    if set(content.tests) != set(task.tests.files):
        raise TaskFolderError(f"{task.id}: the test files given are not those that the task names")
    place = pool / task.id
    pool.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".partial-", dir=pool))
    try:
        made.chmod(0o755)
        _fill(made, task, content, store)
        if place.exists():
            raise TaskFolderError(f"{task.id}: the pool already has a task of this name")
        os.rename(made, place)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return place


def rewrite_record(folder: Path, task: Task) -> None:
    """Replace the record of a written task; only what lies outside its files may differ (split, calibration)."""
    old = read_task(folder)
    kept = {"calibration": old.calibration, "split": old.split, "lineage": old.lineage}
    if task.model_copy(update=kept) != old:
        raise TaskFolderError(f"{task.id}: a written task may only change its split, calibration and lineage")
    _replace(folder / RECORD, _dump(task))
    _replace(folder / "task.toml", _toml(task).encode())


def read_task(folder: Path) -> Task:
    """The record of the task in ``folder``. Raises TaskFolderError."""
    try:
        stored = json.loads((folder / RECORD).read_bytes())
        if stored["format"] != 1:
            raise ValueError(f"format {stored['format']} is not known")
        return Task.model_validate(stored["task"])
    except OSError as error:
        raise TaskFolderError(f"{folder} is not a task folder: {error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise TaskFolderError(f"{folder / RECORD} cannot be read: {error}") from None


def read_content(folder: Path) -> TaskContent:
    """Gold patch and grading test files of the task in ``folder``."""
    try:
        return TaskContent((folder / GOLD).read_bytes(), read_tree(folder / FILES))
    except OSError as error:
        raise TaskFolderError(f"{folder} is not a whole task folder: {error}") from None


def check_id(name: str) -> None:
    """Refuse a task id that is not safe as a folder name everywhere."""
    if not _ID.fullmatch(name) or name.endswith("."):
        raise TaskFolderError(f"{name!r} cannot name a folder: use letters, digits, '.', '_', '-' (at most 128)")


def harbor_config(folder: Path) -> dict[str, object]:
    """The parsed ``task.toml`` of a task folder."""
    return tomllib.loads((folder / "task.toml").read_text())


def _fill(folder: Path, task: Task, content: TaskContent, store: SnapshotStore) -> None:
    for sub in ("environment", "tests", "solution"):
        (folder / sub).mkdir()
    (folder / RECORD).write_bytes(_dump(task))
    (folder / "task.toml").write_text(_toml(task))
    (folder / "instruction.md").write_bytes(task.statement.encode("utf-8", "surrogateescape"))
    (folder / "environment/Dockerfile").write_text(_dockerfile(task))
    (folder / "environment/repo.tar.gz").write_bytes(_archive(store.path(task.snapshot)))
    (folder / GOLD).write_bytes(content.gold)
    _script(
        folder / "solution/solve.sh", f'python3 "$(dirname "$0")/apply_patch.py" {_sh(task.runtime.workdir)} ' + _HERE
    )
    shutil.copyfile(patch.__file__, folder / "solution/apply_patch.py")
    write_tree(folder / FILES, content.tests)
    _script(folder / "tests/test.sh", 'python3 -s "$(dirname "$0")/grade.py"')
    (folder / "tests/grading.json").write_text(json.dumps(_grading(task, store), indent=1))
    for name in ("grade", "boot", *boot.MODULES):
        shutil.copyfile(Path(inside.__file__).with_name(f"{name}.py"), folder / f"tests/{name}.py")
    for module in (protect, ruling):
        source = Path(str(module.__file__))
        shutil.copyfile(source, folder / "tests" / source.name)


_HERE = '"$(dirname "$0")/gold.patch"'


def _grading(task: Task, store: SnapshotStore) -> dict[str, object]:
    """What the standalone grader needs: expected tests, how to run them, and the snapshot's test files."""
    runtime, tests = task.runtime, task.tests
    manifest = store.manifest(task.snapshot)
    held = {
        name: [entry.mode, entry.data.decode("latin-1")]
        for name in manifest
        if protect.is_protected(name)
        and name not in (*tests.files, task.origin.module)
        and (entry := store.entry(task.snapshot, name))
    }
    return {
        "workdir": runtime.workdir,
        "pythonpath": list(runtime.pythonpath),
        "env": runtime.env,
        "timeout_s": runtime.test_timeout_s,
        "expected": [*tests.f2p, *tests.p2p],
        "sealed": list(manifest),
        "restored": held,
    }


def _toml(task: Task) -> str:
    origin = task.origin
    rows = [
        'schema_version = "1.4"',
        "",
        "[task]",
        f"name = {_q('frognano/' + task.id)}",
        f"description = {_q(f'{task.kind} in {origin.repository}')}",
        f"keywords = {json.dumps([task.kind, 'synthetic'])}",
        "",
        "[metadata]",
        f"category = {_q(task.kind)}",
        f"split = {_q(task.split)}",
        "",
        "[metadata.frognano]",
        "sealed = true",
        f"snapshot = {_q(task.snapshot)}",
        f"repository = {_q(origin.repository)}",
        f"base = {_q(origin.base)}",
        f"generator = {_q(origin.generator)}",
        f"level = {_q(origin.level)}",
        f"licence = {_q(origin.licence)}",
        f"f2p = {len(task.tests.f2p)}",
        f"p2p = {len(task.tests.p2p)}",
        "",
        "[agent]",
        "timeout_sec = 3600.0",
        'network_mode = "public"',
        "",
        "[verifier]",
        f"timeout_sec = {max(600.0, 4 * task.runtime.test_timeout_s)!r}",
        'network_mode = "public"',
        "",
        "[environment]",
        "build_timeout_sec = 600.0",
        "cpus = 1",
        "memory_mb = 2048",
        f"workdir = {_q(task.runtime.workdir)}",
        'network_mode = "public"',
    ]
    return "\n".join(rows) + "\n"


def _dockerfile(task: Task) -> str:
    workdir = task.runtime.workdir
    image = task.runtime.image or "python:3.11-slim-bookworm"
    env = "".join(f"ENV {key}={json.dumps(value)}\n" for key, value in sorted(task.runtime.env.items()))
    return (
        f"FROM {image}\n"
        f"RUN python3 -m pip install --no-cache-dir pytest=={PYTEST}\n"
        f"{env}ADD repo.tar.gz {json.dumps([workdir + '/'])[1:-1]}\n"
        f"WORKDIR {workdir}\n"
    )


def _archive(folder: Path) -> bytes:
    """The sealed tree as a reproducible tar.gz."""
    raw = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for path in sorted(folder.rglob("*")):
            tar.add(path, arcname=str(path.relative_to(folder)), recursive=False, filter=_anonymous)
    return raw.getvalue()


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 946684800
    return member


def _script(path: Path, command: str) -> None:
    path.write_text(f"#!/bin/sh\nset -e\n{command}\n")
    path.chmod(0o755)


def _sh(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _q(text: str) -> str:
    """A TOML basic string; JSON's escapes are a subset of TOML's except for DEL and lone surrogates."""
    safe = text.encode("utf-8", "replace").decode()
    return json.dumps(safe, ensure_ascii=False).replace("\x7f", "\\u007F")


def _replace(path: Path, data: bytes) -> None:
    handle, partial = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
    os.chmod(partial, 0o644)
    os.replace(partial, path)
