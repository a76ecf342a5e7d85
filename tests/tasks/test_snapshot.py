"""Snapshots: named by content, sealed as one commit, cheap to derive."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
from pathlib import Path

import pytest

from frognano.tasks.patch import EXECUTABLE, FILE, LINK, Entry
from frognano.tasks.snapshot import SnapshotError, SnapshotStore
from frognano.tasks.tree import TreeError, write_tree

FILES = {
    "pkg/__init__.py": Entry(FILE, b""),
    "pkg/core.py": Entry(FILE, b"def f():\r\n    return 1\r\n"),
    "pkg.py": Entry(FILE, b"x"),
    "bin/run": Entry(EXECUTABLE, b"#!/bin/sh\n"),
    "d\u00e9j\u00e0 vu.txt": Entry(FILE, b"\xff\0"),
    "link": Entry(LINK, b"pkg/core.py"),
    ".gitattributes": Entry(FILE, b"* -text\n"),
}


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "store")


def git(folder: Path, *args: str) -> str:
    command = ["git", "-c", "safe.directory=*", *args]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout.decode("latin-1")


def test_leftovers_and_history_are_no_part_of_a_snapshot(store: SnapshotStore, tmp_path: Path) -> None:
    junk = [".git/config", "pkg/__pycache__/core.cpython-311.pyc", "old.pyc", ".pytest_cache/v", "build/lib/core.py"]
    junk += ["pkg.egg-info/RECORD", ".venv/lib/x.py", "dist/a.whl"]
    write_tree(tmp_path / "clean", FILES)
    write_tree(tmp_path / "dirty", FILES)
    for name in junk:
        path = tmp_path / "dirty" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"junk")
    assert store.add(tmp_path / "dirty") == store.add(tmp_path / "clean")


def test_the_name_depends_on_bytes_modes_and_links_and_on_nothing_else(store: SnapshotStore) -> None:
    digest = store.add_files(FILES)
    assert store.add_files(dict(reversed(FILES.items()))) == digest
    assert store.add_files({**FILES, "bin/run": Entry(FILE, b"#!/bin/sh\n")}) != digest
    assert store.add_files({**FILES, "link": Entry(FILE, b"pkg/core.py")}) != digest
    assert store.files(digest) == FILES


def test_a_sealed_tree_has_one_commit_and_nothing_else(store: SnapshotStore) -> None:
    folder = store.path(store.add_files(FILES))
    assert git(folder, "status", "--porcelain", "--ignored") == ""
    assert git(folder, "rev-list", "--all", "--count").strip() == "1"
    assert git(folder, "fsck", "--full", "--strict", "--unreachable", "--no-reflogs") == ""
    assert git(folder, "reflog") == git(folder, "stash", "list") == git(folder, "remote") == git(folder, "tag") == ""
    assert git(folder, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
    assert not (folder / ".git/hooks").exists()
    assert git(folder, "log", "--format=%an %ad %s").startswith("FrogNano ")
    store.verify(folder.name)


def test_a_derived_snapshot_holds_nothing_of_the_version_it_came_from(store: SnapshotStore) -> None:
    clean = store.add_files({**FILES, "pkg/core.py": Entry(FILE, b"def f():\n    return 'the fix'\n")})
    buggy = store.derive(clean, {"pkg/core.py": b"def f():\n    return 'the bug'\n"})
    folder = store.path(buggy)
    objects = git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    for name in objects:
        assert "the fix" not in git(folder, "cat-file", "-p", name)
    assert all(b"the fix" not in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_deriving_changes_removes_and_keeps_modes(store: SnapshotStore) -> None:
    digest = store.derive(store.add_files(FILES), {"bin/run": b"new", "link": None, "n/new.py": b"n"})
    expected = {**FILES, "bin/run": Entry(EXECUTABLE, b"new"), "n/new.py": Entry(FILE, b"n")}
    del expected["link"]
    assert store.files(digest) == expected
    with pytest.raises(SnapshotError, match="not in snapshot"):
        store.derive(digest, {"link": None})


def test_an_equal_seal_is_made_twice(tmp_path: Path) -> None:
    heads = set()
    for place in ("one", "two"):
        store = SnapshotStore(tmp_path / place)
        heads.add(git(store.path(store.add_files(FILES)), "rev-parse", "HEAD"))
    assert len(heads) == 1


def test_links_out_of_the_repository_and_special_files_are_refused(store: SnapshotStore, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    os.symlink("../../outside", tmp_path / "a/link")
    with pytest.raises(TreeError, match="leaves the repository"):
        store.add(tmp_path / "a")
    (tmp_path / "b").mkdir()
    os.mkfifo(tmp_path / "b/pipe")
    with pytest.raises(TreeError, match="neither"):
        store.add(tmp_path / "b")


def _open_all(root: Path, digest: str) -> None:
    store = SnapshotStore(root)
    store.verify(digest)
    assert store.add_files(FILES) == digest


def test_several_processes_may_open_the_same_snapshot_at_once(store: SnapshotStore) -> None:
    digest = store.add_files(FILES)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_open_all, args=(store.root, digest)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert list((store.root / "partial").iterdir()) == []


def test_a_damaged_tree_is_noticed(store: SnapshotStore) -> None:
    digest = store.add_files(FILES)
    (store.path(digest) / "pkg.py").write_bytes(b"changed")
    with pytest.raises(SnapshotError, match="changed on disk"):
        store.verify(digest)
