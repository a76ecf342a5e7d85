"""A repository with exactly one commit, written directly in git's on-disk format.

No git process runs, so no configuration, hook, filter or template of the host can reach the result, and the
bytes do not depend on the clock or the machine: fixed author, date and message, one branch, one commit, every
object reachable, no reflog, remote, hook or stash. The committed bytes are the tree's bytes, without line-ending
conversion.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zlib
from pathlib import Path

from frognano.tasks.patch import Entry
from frognano.tasks.tree import Tree

BRANCH = "main"
_AUTHOR = b"FrogNano <frognano@localhost> 946684800 +0000"
_MESSAGE = b"Snapshot\n"
_CONFIG = (
    b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = false\n"
    b"[user]\n\tname = FrogNano\n\temail = frognano@localhost\n[gc]\n\tauto = 0\n"
)


def seal(folder: Path, tree: Tree) -> str:
    """Write ``folder/.git`` with one commit that holds ``tree`` (already written to ``folder``); its commit id."""
    git = folder / ".git"
    for sub in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (git / sub).mkdir(parents=True)
    blobs = {name: _store(git, b"blob", entry.data) for name, entry in tree.items()}
    root = _store_folders(git, tree, blobs)
    commit = _store(
        git, b"commit", b"tree %b\nauthor %b\ncommitter %b\n\n%b" % (root.hex().encode(), _AUTHOR, _AUTHOR, _MESSAGE)
    )
    (git / "HEAD").write_bytes(f"ref: refs/heads/{BRANCH}\n".encode())
    (git / "config").write_bytes(_CONFIG)
    (git / "refs/heads" / BRANCH).write_bytes(commit.hex().encode() + b"\n")
    (git / "index").write_bytes(_index(folder, tree, blobs))
    return commit.hex()


def _store(git: Path, kind: bytes, data: bytes) -> bytes:
    whole = b"%b %d\0" % (kind, len(data)) + data
    name = hashlib.sha1(whole).digest()
    path = git / "objects" / name.hex()[:2] / name.hex()[2:]
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(zlib.compress(whole, 1))
        path.chmod(0o444)
    return name


def _store_folders(git: Path, tree: Tree, blobs: dict[str, bytes]) -> bytes:
    """Store one tree object per folder, deepest first; the root's id."""
    folders: dict[str, list[tuple[bytes, int, bytes]]] = {"": []}
    for name in tree:
        parts = name.split("/")
        for depth in range(1, len(parts)):
            folders.setdefault("/".join(parts[:depth]), [])
    for name, entry in tree.items():
        parent, _, leaf = name.rpartition("/")
        folders[parent].append((os.fsencode(leaf), entry.mode, blobs[name]))
    for folder in sorted(folders, key=lambda path: path.count("/") + bool(path), reverse=True):
        rows = sorted(folders[folder], key=lambda row: row[0] + (b"/" if row[1] == 0o40000 else b""))
        stored = _store(git, b"tree", b"".join(b"%o %b\0%b" % (mode, leaf, name) for leaf, mode, name in rows))
        if not folder:
            return stored
        parent, _, leaf = folder.rpartition("/")
        folders[parent].append((os.fsencode(leaf), 0o40000, stored))
    raise AssertionError("a tree always has a root")


def _index(folder: Path, tree: Tree, blobs: dict[str, bytes]) -> bytes:
    rows = [_index_row(folder, name, tree[name], blobs[name]) for name in sorted(tree, key=os.fsencode)]
    body = struct.pack(">4sLL", b"DIRC", 2, len(rows)) + b"".join(rows)
    return body + hashlib.sha1(body).digest()


def _index_row(folder: Path, name: str, entry: Entry, blob: bytes) -> bytes:
    """One index entry. Times and inode are zero, so git compares content once and then knows."""
    raw = os.fsencode(name)
    size = os.lstat(folder / name).st_size if stat.S_ISREG(entry.mode) else len(entry.data)
    head = struct.pack(">10L20sH", 0, 0, 0, 0, 0, 0, entry.mode, 0, 0, size, blob, min(len(raw), 0xFFF))
    return head + raw + b"\0" * (8 - (len(head) + len(raw)) % 8)
