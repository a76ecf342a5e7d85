"""Processes and namespaces of the judge: fresh worlds, dropped privileges, nothing left alive.

Thin calls of the kernel, Linux only. Who calls them in which order is the judge's business. Standard library only;
Python 3.6 and later.
"""

import ctypes
import fcntl
import os
import shutil
import signal
import socket
import struct
import time
from typing import Any, Dict, List

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 22, 36, 38
NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 0x1000, 0x4000, 0x40000
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40
GRACE_S = 0.5
"""How long helpers of the tests may outlive them before they count as left over."""

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    arguments = source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), os.fsencode(data)
    if _libc.mount(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, "mount %s on %s: %s" % (kind, target, os.strerror(code)))


def die_first() -> None:
    """When memory runs out, this process and its children are the ones to go, not those that watch."""
    with open("/proc/self/oom_score_adj", "w") as stream:
        stream.write("1000")


def drop_privileges(program: bytes) -> None:
    """Give up every capability for good, then accept the system-call filter ``program`` (empty: none)."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    for number in range(41):
        prctl(PR_CAPBSET_DROP, number)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _libc.capset(header, (ctypes.c_uint32 * 6)())
    if program:
        code = ctypes.create_string_buffer(program, len(program))
        filter_ = _Program(len(program) // 8, ctypes.addressof(code))
        if _libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.byref(filter_), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "the system-call filter was refused")


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def enter_namespaces(job: Dict[str, Any]) -> None:
    """Fresh namespaces, the snapshot under a writable overlay at the working directory; returns as process 1."""
    uid, gid = os.geteuid(), os.getegid()
    prctl(PR_SET_DUMPABLE, 1)
    if _libc.unshare(NEWUSER | NEWNS | NEWPID | NEWNET | NEWIPC) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (uid, uid)), ("gid_map", "%d %d 1" % (gid, gid))):
        with open("/proc/self/" + name, "w") as stream:
            stream.write(text)
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        os._exit(0)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
    _mount_disk(job)
    # The overlay keeps its own lower layer; no other tree may be seen, for the clean one may be among them.
    _mount("tmpfs", job["hide"], "tmpfs", MS_NOSUID | MS_NODEV, "size=4k,mode=0555")
    _loopback_up()


def _mount_disk(job: Dict[str, Any]) -> None:
    """One file system of capped size for everything that is written."""
    scratch = job["scratch"]
    _mount("tmpfs", scratch, "tmpfs", MS_NOSUID | MS_NODEV, "size=%dm,mode=0755" % job["disk_mb"])
    for index, target in enumerate(job["writable"]):
        source = os.path.join(scratch, str(index))
        os.mkdir(source)
        _mount(source, target, "", MS_BIND)
    upper, work = os.path.join(scratch, "upper"), os.path.join(scratch, "work")
    os.mkdir(work)
    if not job["copy"]:
        os.mkdir(upper)
        layers = "lowerdir=%s,upperdir=%s,workdir=%s,userxattr" % (job["lower"], upper, work)
        _mount("overlay", job["workdir"], "overlay", MS_NOSUID | MS_NODEV, layers)
        return
    shutil.copytree(job["lower"], upper, symlinks=True)
    _mount(upper, job["workdir"], "", MS_BIND)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", IFF_UP | IFF_RUNNING)
        fcntl.ioctl(control, SIOCSIFFLAGS, request)


def end_rest() -> bool:
    """Reap every process below this one; True when some had to be killed."""
    deadline = time.time() + GRACE_S
    pause = 0.001
    while time.time() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
    while True:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        time.sleep(0.005)


def descendants(top: int) -> List[Any]:
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as stream:
                    parents[int(name)] = int(stream.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found = [top]
    for pid in found:
        found.extend(child for child, parent in parents.items() if parent == pid)
    return found[1:]


def kill_tree(top: int) -> None:
    """Stop, then kill everything below ``top``, and ``top``: nothing can fork its way out."""
    for _ in range(50):
        below = descendants(top)
        for pid in [top] + below:
            try:
                os.kill(pid, signal.SIGSTOP)
            except OSError:
                pass
        if set(descendants(top)) == set(below):
            break
    for pid in descendants(top) + [top]:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
