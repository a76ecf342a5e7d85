"""The user's repository as `solve` meets it: read as it stands, never written unless a patch is to be applied.

Reading takes tracked and untracked files, not ignored ones, and asks git for their names alone, with the settings
off by which a repository can make git run programs. Applying is all or nothing as far as one file system allows:
everything is staged beside its place first, then moved in. Nothing of the repository (hooks, filters, attributes)
ever runs here. It does not protect from another process that writes to the repository in the same moment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from frognano.cli.errors import InputError
from frognano.config.environment import git_environment
from frognano.tasks.patch import EXECUTABLE, LINK, Changes, Entry, apply_patch, read_entry
from frognano.tasks.tree import TreeError, check_link, is_source, read_tree

MOST_BYTES = 1 << 30
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "core.hooksPath=/dev/null")


@dataclass(frozen=True)
class Workspace:
    """One reading of a repository."""

    folder: Path
    files: Mapping[str, Entry]
    changed: int = 0
    """Tracked files that differ from the last commit, deleted ones included."""
    untracked: int = 0
    notices: tuple[str, ...] = ()
    """What the model does not see, and why."""

    def same_as(self, other: Workspace) -> bool:
        """True when both readings found the same files."""
        return dict(self.files) == dict(other.files)


@dataclass
class _Listing:
    tracked: dict[str, str] = field(default_factory=dict)
    """Path → blob in the index."""
    untracked: list[str] = field(default_factory=list)
    committed: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


def read_workspace(folder: Path) -> Workspace:
    """Read the repository at ``folder``. Raises InputError, TreeError."""
    if not folder.exists():
        raise InputError(f"{folder}: there is no such folder; give the repository with --repo")
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; --repo takes the repository's top folder")
    folder = folder.resolve()
    listing = _list(folder) if _in_git(folder) else _Listing()
    names = [*listing.tracked, *listing.untracked]
    if not names:
        # No repository, or one of a parent folder that ignores this one.
        files = read_tree(folder)
        _refuse_empty(folder, files)
        return Workspace(folder, files)
    _refuse_large(folder, names)
    files = {}
    for name in sorted(names, key=os.fsencode):
        entry = _entry(folder, name, listing.notices)
        if entry is not None:
            files[name] = entry
    _refuse_empty(folder, files)
    return Workspace(
        folder=folder,
        files=files,
        changed=_changed(listing, files),
        untracked=sum(name in files for name in listing.untracked),
        notices=tuple(listing.notices),
    )


def _in_git(folder: Path) -> bool:
    return any((place / ".git").exists() for place in (folder, *folder.parents))


def _refuse_empty(folder: Path, files: Mapping[str, Entry]) -> None:
    if not files:
        raise InputError(f"{folder} holds no files that the model could see (ignored ones are left out)")


def _refuse_large(folder: Path, names: Iterable[str]) -> None:
    total = 0
    for name in names:
        with suppress(OSError):
            total += os.lstat(folder / name).st_size
    if total > MOST_BYTES:
        raise InputError(f"{folder} holds more than {MOST_BYTES >> 30} GiB; add data folders to .gitignore")


def _list(folder: Path) -> _Listing:
    found = _Listing()
    for row in _git(folder, "ls-files", "-z", "--stage"):
        meta, _, name = row.partition("\t")
        mode, blob, _stage = meta.split(" ")
        if mode == "160000":
            found.notices.append(f"{name}: a submodule, left out")
        else:
            found.tracked[name] = blob
    for name in _git(folder, "ls-files", "-z", "--others", "--exclude-standard"):
        if name.endswith("/"):
            found.notices.append(f"{name}: a repository of its own, left out")
        elif is_source(name):
            found.untracked.append(name)
    if _git(folder, "rev-parse", "--verify", "--quiet", "HEAD", check=False):
        for row in _git(folder, "ls-tree", "-r", "-z", "HEAD"):
            meta, _, name = row.partition("\t")
            mode, _kind, blob = meta.split(" ")
            if mode != "160000":
                found.committed[name] = blob
    return found


def _git(folder: Path, *arguments: str, check: bool = True) -> list[str]:
    if shutil.which("git") is None:
        raise InputError(f"{folder} is a git repository and git is not installed. Run:  sudo apt-get install git")
    done = subprocess.run(
        [*_GIT, "-C", str(folder), *arguments], capture_output=True, env=git_environment(), check=False
    )
    if done.returncode and check:
        said = os.fsdecode(done.stderr).strip().splitlines()
        raise InputError(f"git cannot read {folder}: {said[0] if said else 'it gave no reason'}")
    return [os.fsdecode(row) for row in done.stdout.split(b"\0") if row]


def _entry(folder: Path, name: str, notices: list[str]) -> Entry | None:
    """A file's entry; None where it was deleted, is no longer a file, or is a link that leaves the repository."""
    entry = read_entry(str(folder), name)
    if entry is not None and entry.mode == LINK:
        try:
            check_link(name, os.fsdecode(entry.data))
        except TreeError:
            notices.append(f"{name}: a link that leaves the repository, left out")
            return None
    return entry


def _changed(listing: _Listing, files: Mapping[str, Entry]) -> int:
    names = listing.tracked.keys() | listing.committed.keys()
    algorithm = "sha256" if any(len(blob) == 64 for blob in listing.tracked.values()) else "sha1"
    return sum(
        name not in files
        or listing.tracked.get(name) != listing.committed.get(name)
        or listing.tracked.get(name) != _blob(files[name], algorithm)
        for name in names
    )


def _blob(entry: Entry, algorithm: str) -> str:
    return hashlib.new(algorithm, b"blob %d\0" % len(entry.data) + entry.data).hexdigest()


# --- applying ------------------------------------------------------------------------------------------------


def apply_to(workspace: Workspace, patch: bytes) -> list[str]:
    """Apply ``patch`` to the repository; the changed paths.

    Raises InputError and changes nothing when the repository is no longer as it was read, PatchError when the patch
    does not fit, OSError when the file system refuses.
    """
    if not read_workspace(workspace.folder).same_as(workspace):
        raise InputError(f"{workspace.folder} changed while the model worked; the patch was not applied")
    root = str(workspace.folder)
    changes = apply_patch(lambda name: read_entry(root, name), patch)
    for name, entry in changes.items():
        if entry is not None and name not in workspace.files and _is_file(os.path.join(root, name)):
            raise InputError(f"{name}: the patch creates this file and it exists, ignored by git; nothing was applied")
    _write(root, changes)
    return sorted(changes)


def _is_file(path: str) -> bool:
    """True for anything but a folder; a link to a folder is a file here."""
    return os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path))


def _write(root: str, changes: Changes) -> None:
    """Stage every new file, move the old ones aside, move the new ones in; on failure put everything back."""
    stage = tempfile.mkdtemp(prefix=".frognano-", dir=root)
    aside: list[tuple[str, str]] = []
    placed: list[tuple[str, str]] = []
    try:
        staged = {
            name: _stage(os.path.join(stage, f"new{number}"), os.path.join(root, name), entry)
            for number, (name, entry) in enumerate(changes.items())
            if entry is not None
        }
        for number, name in enumerate(changes):
            path = os.path.join(root, name)
            if _is_file(path):
                aside.append((os.path.join(stage, f"old{number}"), path))
                os.replace(path, aside[-1][0])
                _drop_empty(root, name)
        for name, partial in staged.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            placed.append((partial, path))
            os.replace(partial, path)
    except BaseException as error:  # Ctrl-C too: what was moved aside exists nowhere else
        _put_back(stage, aside, placed, error)
        raise
    shutil.rmtree(stage, ignore_errors=True)


def _put_back(
    stage: str, aside: Sequence[tuple[str, str]], placed: Sequence[tuple[str, str]], cause: BaseException
) -> None:
    """Undo the moves that were made; where that fails, ``stage`` stays and the error names it."""
    try:
        for partial, path in placed:
            if not os.path.lexists(partial):
                os.unlink(path)
        for old, path in aside:
            if os.path.lexists(old):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.replace(old, path)
    except OSError as error:
        raise OSError(f"{error}; files that could not be put back are kept in {stage}") from cause
    shutil.rmtree(stage, ignore_errors=True)


def _stage(partial: str, path: str, entry: Entry) -> str:
    """Write the new content to ``partial``, with the mode that the file at ``path`` should have."""
    if entry.mode == LINK:
        os.symlink(os.fsdecode(entry.data), partial)
        return partial
    with open(partial, "xb") as stream:
        stream.write(entry.data)
        os.fchmod(stream.fileno(), _mode(path, entry.mode))
        stream.flush()
        os.fsync(stream.fileno())
    return partial


def _mode(path: str, wanted: int) -> int:
    """Permissions of a changed file: those it has, with the executable bits that the patch says."""
    old = os.stat(path).st_mode & 0o777 if os.path.isfile(path) and not os.path.islink(path) else 0o644
    return old | (old & 0o444) >> 2 if wanted == EXECUTABLE else old & ~0o111


def _drop_empty(root: str, name: str) -> None:
    folder = os.path.dirname(name)
    while folder:
        try:
            os.rmdir(os.path.join(root, folder))
        except OSError:
            return
        folder = os.path.dirname(folder)
