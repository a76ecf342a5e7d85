"""The mounts of the keeper: one skeleton root for all sandboxes, one small writable file system for each slot.

A slot is a tmpfs of capped size; everything a sandbox writes lands in it: the overlay's upper layer, /tmp, the
home folder and shared memory. Its ``gate`` is bound at the working directory before any snapshot is known. When
the overlay is mounted on the gate later, mount propagation carries it into the running sandbox. Standard library
only: the keeper process imports it.

It does not protect the snapshot from other users of the host; it only never writes to it.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frognano.sandbox import linux

_SYSTEM = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "proc", "dev", "run"}
SLOT_FOLDERS = ("gate", "upper", "work", "lower", "tmp", "home", "shm", "extra")


@dataclass(frozen=True)
class Owner:
    """Who the slot's files belong to, as seen by the keeper."""

    uid: int
    gid: int


class Skeleton:
    """The read-only root that every sandbox gets, built once under ``base``."""

    def __init__(self, base: Path):
        self.base = base
        self.root = base / "root"
        self._reserved = {"."}

    def build(self, plan: dict[str, Any]) -> None:
        """Build folders, binds, links and small files as ``plan`` (see interior.py) says, in that order."""
        linux.mount("frognano", str(self.base), "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=0755,size=8m")
        (self.base / "own").mkdir()
        self.root.mkdir()
        for name in plan["folders"]:
            (self.root / name).mkdir(parents=True, exist_ok=True)
            self._reserved.add(name)
        for source, destination in plan["binds"]:
            self._bind(source, self.root / destination)
        for target, name in plan["links"]:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).symlink_to(target)
        for name, text in plan["files"].items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def ensure_folder(self, inside: str) -> None:
        """Make ``inside`` a place to mount on; refused where it would cover the sandbox's own system."""
        path = Path(os.path.normpath(f"{self.root}/{inside}"))
        name = str(path.relative_to(self.root)) if path.is_relative_to(self.root) else "."
        system = name.partition("/")[0] in _SYSTEM or name in self._reserved
        if system or (path.is_dir() and any(path.iterdir())):
            raise ValueError(f"the working directory {inside!r} cannot be used: it is part of the sandbox's own system")
        path.mkdir(parents=True, exist_ok=True)

    def _bind(self, source: str | None, target: Path) -> None:
        """Bind ``source`` at ``target``; without a source a new empty folder, into which more may be bound."""
        if source is None:
            own = self.base / "own" / str(len(list((self.base / "own").iterdir())))
            own.mkdir()
            target.mkdir(parents=True, exist_ok=True)
            linux.mount(str(own), str(target), flags=linux.MS_BIND)
            return
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            if os.path.isdir(source):
                target.mkdir()
            else:
                target.touch()
        linux.bind_read_only(source, str(target), recursive=True)


class SlotMounts:
    """The mounts of one slot."""

    def __init__(self, base: Path, name: str):
        self.folder = base / "slots" / name
        self._mounted: list[Path] = []

    def make(self, disk_bytes: int, owner: Owner, extra: list[str], shift: bool = False) -> None:
        """Mount the slot's own file system and bind the ``extra`` host folders into it."""
        self.folder.mkdir(parents=True)
        options = f"size={disk_bytes},nr_inodes={max(4096, disk_bytes // 4096)},mode=0755"
        linux.mount("frognano", str(self.folder), "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)
        self._mounted.append(self.folder)
        linux.mount("", str(self.folder), flags=linux.MS_SHARED)
        for name in SLOT_FOLDERS:
            path = self.folder / name
            path.mkdir()
            path.chmod(0o1777 if name in ("tmp", "shm") else 0o755)
            if name in ("gate", "home", "upper"):
                os.chown(path, owner.uid, owner.gid)
        for index, source in enumerate(extra):
            target = self.folder / "extra" / str(index)
            target.mkdir()
            _bind_as(source, target, owner, shift)
            self._mounted.append(target)

    def overlay_snapshot(self, snapshot: str, owner: Owner, rootless: bool) -> None:
        """Overlay the slot's upper layer over ``snapshot`` at the gate, at the same cost for every size.

        Files of the snapshot's owner appear as the slot's own. ``rootless``: the keeper is in a user namespace.
        """
        lower, gate = self.folder / "lower", self.folder / "gate"
        _bind_as(snapshot, lower, owner, shift=not rootless)
        self._mounted.append(lower)
        os.chmod(self.folder / "upper", os.stat(snapshot).st_mode & 0o7777)
        options = f"lowerdir={lower},upperdir={self.folder / 'upper'},workdir={self.folder / 'work'}"
        # Whatever the kernel's default: the upper layer alone must show all that changed.
        options += ",userxattr" if rootless else ",redirect_dir=off,metacopy=off"
        linux.mount("frognano", str(gate), "overlay", linux.MS_NOSUID | linux.MS_NODEV, options)
        self._mounted.append(gate)

    def copy_snapshot(self, snapshot: str, owner: Owner) -> None:
        """The slow way, for kernels that cannot overlay here: copy the snapshot to the gate."""
        gate = self.folder / "gate"
        shutil.copytree(snapshot, gate, symlinks=True, dirs_exist_ok=True)
        for folder, folders, files in os.walk(gate):
            for name in [*folders, *files]:
                os.chown(os.path.join(folder, name), owner.uid, owner.gid, follow_symlinks=False)
        os.chown(gate, owner.uid, owner.gid)

    def drop(self) -> None:
        """Detach every mount; what was written is freed with the last process."""
        for path in reversed(self._mounted):
            with suppress(OSError):
                linux.unmount(str(path))
        self._mounted.clear()
        with suppress(OSError):
            self.folder.rmdir()


def _bind_as(source: str, target: Path, owner: Owner, shift: bool) -> None:
    """Bind ``source`` read-only; with ``shift`` its files look as if they were ``owner``'s."""
    found = os.stat(source)
    if not shift or (found.st_uid, found.st_gid) == (owner.uid, owner.gid):
        linux.bind_read_only(source, str(target))
        return
    namespace = linux.mapped_namespace((found.st_uid, found.st_gid), (owner.uid, owner.gid))
    try:
        linux.bind_read_only(source, str(target), namespace)
    finally:
        os.close(namespace)
