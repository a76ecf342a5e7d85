"""The git patch between a snapshot and what a solver left, made without trusting anything of the solver's.

The differing files come as plain bytes from walk.py. They are put into an empty object store of our own and
compared there: no configuration, attribute, filter, hook or ``.git`` of the solver's is ever read. Renames are
written as a deletion and a new file, so that every path stands on its own for whoever filters the patch.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from frognano.sandbox import walk
from frognano.sandbox.contract import ChangesTooLarge, SandboxError

_HEADER = struct.Struct(">I")
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsync = none\n\tattributesFile = /dev/null\n"
_COMMIT = b"commit refs/heads/%s\ncommitter frog <frog@localhost> 0 +0000\ndata 0\n"


@dataclass(frozen=True)
class Change:
    """One path that differs; a mode of 0 means that there is no file on that side."""

    path: str
    """Relative to the repository root; bytes that are not UTF-8 as surrogate escapes."""
    old_mode: int
    new_mode: int
    old: bytes
    new: bytes


@contextmanager
def git_folder() -> Iterator[Path]:
    """An empty bare repository for one comparison, in memory where there is a place for it."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="frognano-git-", dir=memory) as name:
        folder = Path(name)
        os.chmod(folder, 0o755)
        for part in ("objects", "refs"):
            (folder / part).mkdir()
        (folder / "HEAD").write_text("ref: refs/heads/none\n")
        (folder / "config").write_text(_CONFIG)
        yield folder


def read_changes(stream: BinaryIO, max_bytes: int) -> list[Change]:
    """Read what walk.py sent. Raises ChangesTooLarge, or SandboxError when the stream ends early."""
    changes: list[Change] = []
    while True:
        header = json.loads(_exactly(stream, _HEADER.unpack(_exactly(stream, _HEADER.size))[0]))
        if "too_much" in header:
            raise ChangesTooLarge(header["too_much"])
        if "end" in header:
            return changes
        sizes = header.pop("old_size"), header.pop("new_size")
        if sum(sizes) > max_bytes:
            raise SandboxError("changes: a record larger than announced")
        changes.append(Change(**header, old=_exactly(stream, sizes[0]), new=_exactly(stream, sizes[1])))


def make_patch(changes: list[Change], git_dir: Path, max_bytes: int) -> bytes:
    """The changes as a patch that ``git apply --binary`` takes; empty when nothing changed."""
    if not changes:
        return b""
    environment = walk.git_environment(str(git_dir))
    _git(["git", "fast-import", "--quiet", "--force"], environment, git_dir, b"".join(_import_stream(changes)))
    command = ["git", "diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-color"]
    patch = _git([*command, "--no-ext-diff", "--no-textconv", "old", "new"], environment, git_dir, b"")
    if len(patch) > max_bytes:
        largest = max(changes, key=lambda change: len(change.old) + len(change.new))
        raise ChangesTooLarge(
            f"the patch has {len(patch)} bytes, {max_bytes} are allowed; most of it is {largest.path!r}"
        )
    return patch


def _import_stream(changes: list[Change]) -> Iterator[bytes]:
    yield _COMMIT % b"old"
    for change in changes:
        if change.old_mode:
            yield from _put(change.path, change.old_mode, change.old)
    yield _COMMIT % b"new" + b"from refs/heads/old\n"
    for change in changes:
        if change.old_mode:
            yield b"D " + _quoted(change.path) + b"\n"
    for change in changes:
        if change.new_mode:
            yield from _put(change.path, change.new_mode, change.new)
    yield b"done\n"


def _put(path: str, mode: int, content: bytes) -> Iterator[bytes]:
    yield b"M %o inline %s\ndata %d\n" % (mode, _quoted(path), len(content))
    yield content
    yield b"\n"


def _quoted(path: str) -> bytes:
    plain = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/ ")
    return b'"' + b"".join(b"%c" % c if c in plain else b"\\%03o" % c for c in os.fsencode(path)) + b'"'


def _git(command: list[str], environment: dict[str, str], folder: Path, text: bytes) -> bytes:
    done = subprocess.run(command, input=text, env=environment, cwd=folder, capture_output=True, check=False)
    if done.returncode != 0:
        raise SandboxError(f"{' '.join(command[:2])} failed: {done.stderr.decode(errors='replace').strip()[:500]}")
    return done.stdout


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise SandboxError("changes: the walk ended early")
    return data
