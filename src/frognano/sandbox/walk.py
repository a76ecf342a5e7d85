"""What a solver changed: every differing path between the snapshot and the present tree, with both contents.

Names, links and files here are hostile. Folders are opened by descriptor and never through a link, contents are
only copied, and nothing that the solver wrote (``.git``, ``.gitignore``, attributes) decides anything. With an
overlay only its upper layer is read, so the cost follows the size of the change, not of the repository.
Standard library only: it runs in a child of the keeper, which may read what the solver made unreadable.

Not kept, because a git patch cannot carry them: empty folders, owners, times, modes other than executable.
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

MAX_DEPTH = 128
LINK = 0o120000
MAX_PATHS = 100_000
_HEADER = struct.Struct(">I")
# The names git itself refuses in a tree (core.protectNTFS is on by default everywhere).
_REFUSED = re.compile(r"(^|\\)(\.git|git~1)[. ]*([:\\]|$)", re.IGNORECASE)
_REFUSED_LINK = re.compile(r"^(\.gitmodules|gitmod~\d|gi7eba~\d)[. ]*(:|$)", re.IGNORECASE)
_DEBRIS = re.compile(r"(^|/)(__pycache__|\.pytest_cache)(/|$)|\.pyc$")


@dataclass
class Pair:
    """One differing path; a git mode of 0 means that the side has no file there."""

    path: str
    old_mode: int = 0
    new_mode: int = 0
    may_ask: bool = True
    """False where git could not be asked about the path, because the snapshot has a link above it."""


@dataclass
class Scan:
    """All differing paths of one tree, and those that no patch can carry."""

    pairs: dict[str, Pair] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


class TooMuch(Exception):
    """The change is larger than allowed."""


@dataclass(frozen=True)
class Job:
    """What to compare: ``tree`` is the overlay's upper layer, or with ``whole`` a full copy of the snapshot."""

    tree: str
    snapshot: str
    whole: bool
    max_bytes: int
    git_dir: str
    """An empty bare repository, for asking git about ignored names."""


@dataclass(frozen=True)
class Place:
    """One folder on both sides, as open descriptors."""

    upper: int
    lower: int | None
    prefix: str
    whole: bool
    """True where the upper side is complete: what it lacks is gone."""
    may_ask: bool = True
    depth: int = 0


def send(target: int, job: Job) -> None:
    """Write the changes as records to the descriptor ``target``: length, JSON header, old bytes, new bytes.

    The last header has ``end``, or ``too_much`` where the change is larger than the job allows.
    """
    with os.fdopen(target, "wb", closefd=False) as out:
        try:
            scan = compare(job)
            leave_out(scan, job.snapshot, job.git_dir)
            left = job.max_bytes
            for pair in sorted(scan.pairs.values(), key=lambda pair: pair.path):
                old = _content(job.snapshot, pair.path, pair.old_mode, left)
                try:
                    new = _content(job.tree, pair.path, pair.new_mode, left - len(old))
                except OSError:
                    scan.skipped.append(pair.path)
                    continue
                left -= len(old) + len(new)
                if (old, pair.old_mode) != (new, pair.new_mode):
                    header = {"path": pair.path, "old_mode": pair.old_mode, "new_mode": pair.new_mode}
                    _record(out.write, {**header, "old_size": len(old), "new_size": len(new)})
                    out.write(old)
                    out.write(new)
            _record(out.write, {"end": True, "skipped": scan.skipped[:1000]})
        except TooMuch as error:
            _record(out.write, {"too_much": str(error)})


def compare(job: Job) -> Scan:
    """List the differing paths; contents of paths present on both sides are not compared yet."""
    scan = Scan()
    with _opened(job.tree, None) as upper, _opened(job.snapshot, None) as lower:
        _visit(scan, Place(upper, lower, "", job.whole))
    return scan


def leave_out(scan: Scan, snapshot: str, git_dir: str) -> None:
    """Drop new files that the snapshot's own .gitignore ignores, and caches of Python and pytest."""
    for path, pair in list(scan.pairs.items()):
        if not pair.old_mode and _DEBRIS.search(path):
            del scan.pairs[path]
    new = [path for path, pair in scan.pairs.items() if not pair.old_mode and pair.may_ask]
    for path in _ignored(new, snapshot, git_dir):
        scan.pairs.pop(path, None)


def _visit(scan: Scan, place: Place) -> None:
    names = sorted(os.listdir(place.upper))
    if place.whole and place.lower is not None:
        for name in sorted(set(os.listdir(place.lower)) - set(names)):
            _deleted(scan, place.lower, place.prefix + name, place.depth)
    for name in names:
        if len(scan.pairs) > MAX_PATHS:
            raise TooMuch(f"more than {MAX_PATHS} paths changed")
        try:
            _visit_name(scan, place, name)
        except OSError:
            # What still runs inside may remove or swap a name while it is looked at; it is left as it was.
            scan.skipped.append(place.prefix + name)


def _visit_name(scan: Scan, place: Place, name: str) -> None:
    path = place.prefix + name
    found = os.stat(name, dir_fd=place.upper, follow_symlinks=False)
    if _REFUSED.search(name):
        if name != ".git":
            scan.skipped.append(path)
    elif _whiteout(found) and not place.whole:
        _deleted(scan, place.lower, path, place.depth)
    elif stat.S_ISDIR(found.st_mode):
        _visit_folder(scan, place, name)
    else:
        _file(scan, place, name, found)


def _visit_folder(scan: Scan, place: Place, name: str) -> None:
    path = place.prefix + name
    if place.depth >= MAX_DEPTH:
        scan.skipped.append(path)
        return
    before = _lstat(name, place.lower)
    with _opened(name, place.upper) as inner:
        down = replace(
            place,
            upper=inner,
            lower=None,
            prefix=path + "/",
            whole=place.whole or _opaque(inner),
            may_ask=place.may_ask and not (before is not None and stat.S_ISLNK(before.st_mode)),
            depth=place.depth + 1,
        )
        if before is not None and stat.S_ISDIR(before.st_mode):
            with _opened(name, place.lower) as below:
                _visit(scan, replace(down, lower=below))
            return
        _deleted(scan, place.lower, path, place.depth)
        _visit(scan, down)


def _file(scan: Scan, place: Place, name: str, found: os.stat_result) -> None:
    path = place.prefix + name
    before = _lstat(name, place.lower)
    old_mode = _git_mode(before) if before is not None else 0
    new_mode = _git_mode(found)
    if new_mode == LINK and _REFUSED_LINK.search(name):
        new_mode = 0
    if not new_mode:
        scan.skipped.append(path)
    if before is not None and stat.S_ISDIR(before.st_mode):
        _deleted(scan, place.lower, path, place.depth)
    if new_mode or old_mode:
        pair = scan.pairs.setdefault(path, Pair(path, may_ask=place.may_ask))
        pair.old_mode, pair.new_mode = old_mode, new_mode


def _deleted(scan: Scan, lower: int | None, path: str, depth: int) -> None:
    """Everything at and below ``path`` in the snapshot is gone; ``lower`` is the folder that held it."""
    name = path.rpartition("/")[2]
    before = _lstat(name, lower)
    if before is None or _REFUSED.search(name) or depth > MAX_DEPTH:
        return
    if stat.S_ISDIR(before.st_mode):
        with _opened(name, lower) as inner:
            for child in sorted(os.listdir(inner)):
                _deleted(scan, inner, f"{path}/{child}", depth + 1)
    elif _git_mode(before):
        scan.pairs.setdefault(path, Pair(path)).old_mode = _git_mode(before)


def _whiteout(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def _git_mode(found: os.stat_result) -> int:
    if stat.S_ISLNK(found.st_mode):
        return LINK
    if stat.S_ISREG(found.st_mode):
        return 0o100755 if found.st_mode & 0o100 else 0o100644
    return 0


def _lstat(name: str, folder: int | None) -> os.stat_result | None:
    if folder is None:
        return None
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextmanager
def _opened(name: str, folder: int | None) -> Iterator[int]:
    nofollow = os.O_NOFOLLOW if folder is not None else 0
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | nofollow, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _opaque(folder: int) -> bool:
    for name in ("trusted.overlay.opaque", "user.overlay.opaque"):
        with suppress(OSError):
            if os.getxattr(folder, name) == b"y":
                return True
    return False


def _content(root: str, path: str, mode: int, limit: int) -> bytes:
    """The bytes of one file or the target of one link below ``root``; links above it are not followed."""
    if not mode:
        return b""
    *folders, name = path.split("/")
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            os.close(current)
            current = inner
        if mode == LINK:
            return os.fsencode(os.readlink(name, dir_fd=current))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=current), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise TooMuch(f"{path!r} ({size} bytes) makes the change too large")
            return file.read(limit + 1)
    finally:
        os.close(current)


def _ignored(paths: list[str], snapshot: str, git_dir: str) -> list[str]:
    """Which of the new ``paths`` the snapshot's .gitignore files ignore; git reads no configuration here."""
    if not paths:
        return []
    command = ["git", "check-ignore", "--no-index", "--stdin", "-z"]
    environment = {**git_environment(git_dir), "GIT_WORK_TREE": snapshot}
    # With "./" no name is taken for one of git's path patterns.
    text = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    done = subprocess.run(command, input=text, env=environment, cwd=snapshot, capture_output=True, check=False)
    return [os.fsdecode(path)[2:] for path in done.stdout.split(b"\0") if path]


def git_environment(git_dir: str) -> dict[str, str]:
    """An environment in which git sees no configuration, attributes or ignore rules but those in ``git_dir``."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": git_dir,
        "GIT_DIR": git_dir,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def _record(write: Callable[[bytes], int], header: dict[str, object]) -> None:
    text = json.dumps(header).encode()
    write(_HEADER.pack(len(text)) + text)
