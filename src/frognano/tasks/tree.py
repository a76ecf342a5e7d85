"""A repository's files as data: walked deterministically, named by the hash of their content.

What is not source is left out: version control, bytecode, caches, build leftovers and package metadata, any of
which could carry the clean version of a file into a task. Symbolic links are kept as links and must stay inside
the tree; devices, sockets and fifos are refused. Empty folders are not part of a tree, as in git.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from frognano.tasks.patch import EXECUTABLE, FILE, LINK, Entry, check_name

_FOLDERS = {
    ".git",
    ".hg",
    ".svn",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".tox",
    ".nox",
    ".venv",
    "venv",
    ".eggs",
    "node_modules",
    "htmlcov",
}
_FILES = {".git", ".coverage", ".DS_Store"}
_SUFFIXES = (".pyc", ".pyo", ".egg-info", ".egg", ".dist-info")
_AT_ROOT = {"build", "dist"}
"""Left out at the root of the repository, unless they are importable packages."""

Tree = Mapping[str, Entry]
"""Path relative to the root → entry."""


class TreeError(ValueError):
    """The folder holds something that cannot be part of a snapshot; the message names it."""


def read_tree(folder: Path) -> dict[str, Entry]:
    """Every source file below ``folder``, in sorted order. Raises TreeError."""
    return {name: _read(folder, name) for name in sorted(_walk(folder, ""), key=os.fsencode)}


def tree_digest(files: Iterable[tuple[str, int, str]]) -> str:
    """The name of a tree: a hash over (path, mode, content hash), independent of order and of the clock."""
    total = hashlib.sha256(b"frognano tree 1\n")
    for name, mode, content in sorted(files, key=lambda item: os.fsencode(item[0])):
        total.update(b"%o %b %b\0" % (mode, content.encode(), os.fsencode(name)))
    return total.hexdigest()


def is_source(name: str) -> bool:
    """False for paths that a snapshot leaves out (caches, bytecode, version control, build leftovers)."""
    parts = name.split("/")
    if any(part in _FOLDERS or part.endswith(_SUFFIXES) for part in parts):
        return False
    return parts[-1] not in _FILES


def _walk(folder: Path, prefix: str) -> Iterator[str]:
    with os.scandir(os.path.join(folder, prefix)) as found:
        entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        name = f"{prefix}{entry.name}"
        if not is_source(name):
            continue
        if entry.is_dir(follow_symlinks=False):
            leftover = not prefix and entry.name in _AT_ROOT and not os.path.exists(f"{entry.path}/__init__.py")
            if not leftover:
                yield from _walk(folder, f"{name}/")
        else:
            yield name


def _read(folder: Path, name: str) -> Entry:
    path = os.path.join(folder, name)
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        target = os.readlink(path)
        check_link(name, target)
        return Entry(LINK, os.fsencode(target))
    if not stat.S_ISREG(mode):
        raise TreeError(f"{name}: neither a file, a folder nor a link")
    with open(path, "rb") as stream:
        return Entry(EXECUTABLE if mode & 0o100 else FILE, stream.read())


def check_link(name: str, target: str) -> None:
    """Refuse a symbolic link that leaves the tree."""
    landing = os.path.normpath(os.path.join(os.path.dirname(name), target))
    if os.path.isabs(target) or landing == ".." or landing.startswith("../"):
        raise TreeError(f"{name}: the link to {target} leaves the repository")


def write_tree(folder: Path, tree: Tree) -> None:
    """Write ``tree`` into the empty or absent ``folder``; modes are 0644 and 0755 whatever the umask."""
    made: set[str] = set()
    for name, entry in tree.items():
        check_name(name)
        path = os.path.join(folder, name)
        parent = os.path.dirname(path)
        if parent not in made:
            os.makedirs(parent, exist_ok=True)
            made.add(parent)
        if entry.mode == LINK:
            os.symlink(os.fsdecode(entry.data), path)
            continue
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(entry.data)
            os.fchmod(handle, 0o755 if entry.mode == EXECUTABLE else 0o644)
