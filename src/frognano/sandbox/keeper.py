"""The keeper: a small process in its own mount namespace that makes slots and starts sandboxes in them.

The host process cannot change its own mounts without changing everybody's, so it asks the keeper over one
socket: ``build``, ``start``, ``show``, ``changes``, ``drop``. The keeper runs trusted requests only; it never
reads what a sandbox says. When the socket closes, every sandbox is killed and the keeper ends. Standard library
only; started by keeper_client.py with an isolated interpreter.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import selectors
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frognano.sandbox import linux, walk
from frognano.sandbox.cgroups import CgroupTree, enter
from frognano.sandbox.mounts import Owner, Skeleton, SlotMounts

MAX_PACKET = 1 << 18


@dataclass
class Slot:
    """One sandbox: its mounts and the process that holds its namespaces."""

    name: str
    mounts: SlotMounts
    owner: Owner
    process: int = 0
    pidfd: int = -1
    info: int = -1
    snapshot: str = ""
    copied: bool = False
    waiting: list[int] = field(default_factory=list)
    """Ids of drop requests to answer when the last process has gone."""


class Keeper:
    """Serves requests until the socket closes."""

    def __init__(self, control: socket.socket, base: Path):
        self._control = control
        self._base = base
        self._skeleton = Skeleton(base)
        self._slots: dict[str, Slot] = {}
        self._selector = selectors.DefaultSelector()
        self._rootless = os.geteuid() != 0
        self._host_ids = (os.geteuid(), os.getegid())
        self._overlay = False
        self._cgroups: CgroupTree | None = None
        self._first_uid = 1_500_000_000 + (os.getpid() % 100_000) * 1000

    def run(self) -> None:
        """Serve until the host closes the socket, then end everything."""
        self._enter_namespace()
        self._selector.register(self._control, selectors.EVENT_READ, None)
        try:
            while self._serve_once():
                pass
        finally:
            self._end()

    def _enter_namespace(self) -> None:
        if self._rootless:
            linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
            uid, gid = self._host_ids
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
            Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
        else:
            linux.unshare(linux.CLONE_NEWNS)
        linux.mount("", "/", flags=linux.MS_REC | linux.MS_SLAVE)

    def _serve_once(self) -> bool:
        for key, _ in self._selector.select():
            if key.data is not None:
                self._reap(key.data)
                continue
            packet, descriptors, _, _ = socket.recv_fds(self._control, MAX_PACKET, 4, socket.MSG_CMSG_CLOEXEC)
            if not packet:
                return False
            self._answer(json.loads(packet), list(descriptors))
        return True

    def _answer(self, request: dict[str, Any], descriptors: list[int]) -> None:
        try:
            result = getattr(self, "_do_" + request["op"])(request, descriptors)
        except Exception as error:
            # The boundary: whatever failed is told to the host, which decides; the keeper serves on.
            result = {"error": f"{type(error).__name__}: {error}"}
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if result is not None:
            self._reply(request["id"], result)

    def _reply(self, number: int, result: dict[str, Any]) -> None:
        self._control.send(json.dumps({"id": number, **result}).encode())

    def _do_build(self, request: dict[str, Any], _: list[int]) -> dict[str, Any]:
        self._skeleton.build(request["plan"])
        self._cgroups = CgroupTree.find() if request["cgroups"] else None
        self._overlay = request["overlay"] and self._overlay_works()
        version = self._cgroups.version if self._cgroups else 0
        return {"cgroup": version, "overlay": self._overlay, "rootless": self._rootless}

    def _overlay_works(self) -> bool:
        """Find out by using one: some kernels cannot shift owners, some cannot hide a removed folder."""
        lower = self._base / "probe"
        (lower / "folder").mkdir(parents=True)
        (lower / "folder" / "file").write_text("x")
        mounts = SlotMounts(self._base, "probe")
        merged = mounts.folder / "gate" / "folder"
        try:
            mounts.make(1 << 20, self._owner(0), [])
            mounts.overlay_snapshot(str(lower), self._owner(0), self._rootless)
            (merged / "file").unlink()
            merged.rmdir()
            merged.mkdir()
            return not any(merged.iterdir())
        except OSError:
            return False
        finally:
            mounts.drop()

    def _owner(self, number: int) -> Owner:
        """The user of a slot: as root one of its own, otherwise ours, which is 0 in the keeper's namespace."""
        if self._rootless:
            return Owner(0, 0)
        user = self._first_uid + number % 1000
        return Owner(user, user)

    def _do_start(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any] | None:
        name = request["slot"]
        owner = self._owner(int(name))
        slot = Slot(name, SlotMounts(self._base, name), owner)
        self._slots[name] = slot
        try:
            self._skeleton.ensure_folder(request["workdir"])
            shift = self._overlay and not self._rootless
            slot.mounts.make(request["disk_bytes"], owner, request["extra"], shift)
            entries = self._cgroups.make(name, request["memory_bytes"], request["pids"]) if self._cgroups else []
            self._launch(slot, request, descriptors, entries)
        except Exception:
            self._end_slot(slot)
            raise
        return {"pid": slot.process}

    def _launch(self, slot: Slot, request: dict[str, Any], descriptors: list[int], entries: list[str]) -> None:
        runner, errors, seccomp = descriptors
        info_r, info_w = os.pipe()
        try:
            slot.process = os.fork()
            if slot.process == 0:
                self._become_sandbox(slot.owner, request, (runner, errors, seccomp, info_w), entries)
        finally:
            os.close(info_w)
            slot.info = info_r
        slot.pidfd = os.pidfd_open(slot.process)
        self._selector.register(slot.pidfd, selectors.EVENT_READ, slot)

    def _become_sandbox(
        self, owner: Owner, request: dict[str, Any], fds: tuple[int, int, int, int], entries: list[str]
    ) -> None:
        """In the child: enter the limits, drop to the slot's user, become bwrap. Never returns."""
        try:
            linux.die_with_parent(signal.SIGKILL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            enter(entries)
            for name, value in request["rlimits"].items():
                resource.setrlimit(getattr(resource, name), (value, value))
            high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 64) for descriptor in fds]
            for place, descriptor in enumerate((high[0], high[0], high[1], high[2], high[3])):
                os.dup2(descriptor, place)
            os.closerange(5, 1 << 20)
            if not self._rootless:
                os.setgroups([])
                os.setresgid(owner.gid, owner.gid, owner.gid)
                os.setresuid(owner.uid, owner.uid, owner.uid)
                # A change of user has cleared it.
                linux.die_with_parent(signal.SIGKILL)
            os.execve(request["argv"][0], request["argv"], request["env"])
        except BaseException as error:
            os.write(2, f"cannot start the sandbox: {error}\n".encode())
        finally:
            os._exit(127)

    def _do_show(self, request: dict[str, Any], _: list[int]) -> dict[str, Any]:
        slot = self._slots[request["slot"]]
        if self._overlay:
            slot.mounts.overlay_snapshot(request["snapshot"], slot.owner, self._rootless)
        else:
            slot.mounts.copy_snapshot(request["snapshot"], slot.owner)
            slot.copied = True
        slot.snapshot = request["snapshot"]
        return {}

    def _do_changes(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        slot = self._slots[request["slot"]]
        child = os.fork()
        if child == 0:
            try:
                folder = slot.mounts.folder / ("gate" if slot.copied else "upper")
                limit, git_dir = request["max_bytes"], request["git_dir"]
                walk.send(descriptors[0], walk.Job(str(folder), slot.snapshot, slot.copied, limit, git_dir))
            finally:
                os._exit(0)
        self._selector.register(os.pidfd_open(child), selectors.EVENT_READ, child)
        return {}

    def _do_drop(self, request: dict[str, Any], _: list[int]) -> dict[str, Any] | None:
        slot = self._slots.get(request["slot"])
        if slot is None:
            return {}
        slot.waiting.append(request["id"])
        self._kill(slot)
        return None

    def _kill(self, slot: Slot) -> None:
        """Kill the first process inside, so that bwrap's end means that the whole pid namespace has gone."""
        if slot.process == 0:
            return
        inner = []
        os.set_blocking(slot.info, False)
        with suppress(OSError, ValueError, KeyError):
            inner = [int(json.loads(os.read(slot.info, 4096))["child-pid"])]
        if not inner:
            # bwrap is still starting: its child would outlive it, waiting for a word that never comes.
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(slot.process, signal.SIGSTOP)
                os.waitid(os.P_PID, slot.process, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            inner = [*_children(slot.process), slot.process]
        for process in inner:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def _reap(self, what: Slot | int) -> None:
        process = what.process if isinstance(what, Slot) else what
        for key in list(self._selector.get_map().values()):
            if key.data is what:
                self._selector.unregister(key.fileobj)
                os.close(key.fd)
        os.waitpid(process, 0)
        if isinstance(what, Slot):
            what.pidfd = -1
            self._forget(what)
            for number in what.waiting:
                self._reply(number, {})

    def _forget(self, slot: Slot) -> None:
        self._slots.pop(slot.name, None)
        slot.mounts.drop()
        if slot.info >= 0:
            os.close(slot.info)
        if self._cgroups:
            self._cgroups.remove(slot.name)

    def _end_slot(self, slot: Slot) -> None:
        self._kill(slot)
        with suppress(ChildProcessError):
            if slot.process:
                os.waitpid(slot.process, 0)
        self._forget(slot)

    def _end(self) -> None:
        for slot in self._slots.values():
            self._kill(slot)
        for slot in list(self._slots.values()):
            self._end_slot(slot)
        if self._cgroups:
            self._cgroups.close()
        os.chdir("/")
        with suppress(OSError):
            linux.unmount(str(self._base))
            self._base.rmdir()


def _children(parent: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError):
            # The parent's id is the second field after the name in brackets, which may hold anything.
            if int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(name))
    return found


def main(descriptor: int, base: str) -> None:
    """Serve on the inherited socket ``descriptor``; mounts live under the empty folder ``base``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.set_inheritable(descriptor, False)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    Keeper(socket.socket(fileno=descriptor), Path(base)).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
