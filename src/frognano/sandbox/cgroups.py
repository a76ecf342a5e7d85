"""Limits on memory and processes by control groups, v2 or v1, where this process may make them.

Which one works is found by trying: a group is made, a limit written, a process moved in. Groups are always made
below our own (or, with v2, below the nearest ancestor that hands its controllers down), so whatever bounds us
bounds the sandboxes too. Where neither works, `CgroupTree.find` returns None and rlimits remain. Standard
library only: the keeper process imports it.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_MEMORY = {1: "memory.limit_in_bytes", 2: "memory.max"}


class CgroupTree:
    """A place for one group per slot; ``roots`` maps each controller to its folder."""

    def __init__(self, version: int, roots: dict[str, Path]):
        self.version = version
        self._roots = roots

    @classmethod
    def find(cls) -> CgroupTree | None:
        """Make a tree for this process where memory and pids can be limited, or return None."""
        # The process space is part of the name: a process id says nothing outside it.
        space = f"frognano-{os.stat('/proc/self/ns/pid').st_ino}-"
        for version, roots in _candidates():
            _sweep(roots, space)
            tree = cls(version, {controller: root / f"{space}{os.getpid()}" for controller, root in roots.items()})
            if tree._usable():
                return tree
        return None

    def make(self, slot: str, memory_bytes: int, pids: int) -> list[str]:
        """Make one slot's group; returns the files into which its first process writes ``0``."""
        entries = []
        for controller, root in self._roots.items():
            group = root / slot
            group.mkdir(exist_ok=True)
            if controller in ("memory", "unified"):
                (group / _MEMORY[self.version]).write_text(str(memory_bytes))
                _without_swap(group, self.version, memory_bytes)
            if controller in ("pids", "unified"):
                (group / "pids.max").write_text(str(pids))
            entries.append(str(group / "cgroup.procs"))
        return entries

    def remove(self, slot: str) -> None:
        """Remove one slot's group; its processes are gone or about to go."""
        for root in self._roots.values():
            _remove(root / slot)

    def close(self) -> None:
        """Remove everything that was made."""
        for root in set(self._roots.values()):
            with suppress(OSError):
                for group in list(root.iterdir()):
                    if group.is_dir():
                        _remove(group)
            _remove(root)

    def _usable(self) -> bool:
        try:
            for root in set(self._roots.values()):
                root.mkdir(exist_ok=True)
                if self.version == 2:
                    (root / "cgroup.subtree_control").write_text("+memory +pids")
            entries = self.make("probe", 64 << 20, 16)
            if not _can_enter(entries):
                raise PermissionError("no process may be moved in")
            self.remove("probe")
        except OSError:
            self.close()
            return False
        return True


def _candidates() -> list[tuple[int, dict[str, Path]]]:
    mounts = _mount_points()
    own = _own_groups()
    found: list[tuple[int, dict[str, Path]]] = []
    if all(controller in mounts and controller in own for controller in ("memory", "pids")):
        found.append((1, {c: mounts[c] / own[c].lstrip("/") for c in ("memory", "pids")}))
    if "" in mounts and "" in own:
        group = mounts[""] / own[""].lstrip("/")
        while group.is_relative_to(mounts[""]):
            with suppress(OSError):
                if {"memory", "pids"} <= set((group / "cgroup.subtree_control").read_text().split()):
                    found.append((2, {"unified": group}))
                    break
            group = group.parent
    return found


def _sweep(roots: dict[str, Path], space: str) -> None:
    """End and remove what keepers left that were killed before they could; the name ends with the keeper's pid."""
    for root in set(roots.values()):
        with suppress(OSError):
            for tree in root.glob(f"{space}*"):
                if not Path("/proc", tree.name.rpartition("-")[2]).exists():
                    _end_all(tree)
                    CgroupTree(0, {"": tree}).close()


def _end_all(tree: Path) -> None:
    for process in {int(line) for file in tree.glob("*/cgroup.procs") for line in file.read_text().split()}:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _mount_points() -> dict[str, Path]:
    """Controller → where its hierarchy is mounted; the empty name is version 2."""
    points: dict[str, Path] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, options = line.split(" ")[:4]
        if kind == "cgroup2":
            points.setdefault("", Path(point))
        elif kind == "cgroup":
            for option in options.split(","):
                points.setdefault(option, Path(point))
    return points


def _own_groups() -> dict[str, str]:
    groups: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def _without_swap(group: Path, version: int, memory_bytes: int) -> None:
    with suppress(OSError):
        if version == 2:
            (group / "memory.swap.max").write_text("0")
        else:
            (group / "memory.memsw.limit_in_bytes").write_text(str(memory_bytes))


def _can_enter(entries: list[str]) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            enter(entries)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def enter(entries: list[str]) -> None:
    """Move the calling process into a slot's group."""
    for entry in entries:
        descriptor = os.open(entry, os.O_WRONLY)
        try:
            os.write(descriptor, b"0")
        finally:
            os.close(descriptor)


def _remove(group: Path) -> None:
    for _ in range(20):
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.005)
