"""The few Linux system calls that Python lacks: mounts, namespaces, id-mapped mounts, process attributes.

Standard library only and free of our other packages, because the keeper process imports it. Every call raises
OSError with the kernel's errno. It checks nothing else: which calls are safe to make is the caller's business.
"""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MS_SLAVE = 1 << 19
MS_SHARED = 1 << 20
MNT_DETACH = 2

_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_OPEN_TREE_CLONE = 1
_OPEN_TREE_CLOEXEC = os.O_CLOEXEC
_MOVE_MOUNT_F_EMPTY_PATH = 4
_MOUNT_ATTR_RDONLY = 0x1
_MOUNT_ATTR_NOSUID = 0x2
_MOUNT_ATTR_NODEV = 0x4
_MOUNT_ATTR_IDMAP = 0x00100000
# These numbers are the same on every architecture.
_SYS_OPEN_TREE = 428
_SYS_MOVE_MOUNT = 429
_SYS_MOUNT_SETATTR = 442
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttr(ctypes.Structure):
    _fields_ = [
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    ]


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2)."""
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        os.fsencode(data) if data else None,
    )
    _check(result, f"mount {kind or 'bind'} on {target}")


def unmount(target: str) -> None:
    """Detach a mount at once; the kernel frees it when its last user has gone."""
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH), f"unmount {target}")


def unshare(flags: int) -> None:
    """unshare(2); the calling process must have one thread for a user namespace."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send ``signal_number`` to this process when the thread that started it ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number), 0, 0, 0), "prctl PDEATHSIG")


def bind_read_only(source: str, target: str, user_namespace: int | None = None, recursive: bool = False) -> None:
    """Mount ``source`` read-only on ``target``, owners shifted by ``user_namespace`` (an open namespace file).

    Uses the mount-by-descriptor calls (Linux 5.12), so no name is parsed as a mount option.
    """
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | (0x8000 if recursive else 0)
    tree = _check(_libc.syscall(_SYS_OPEN_TREE, _AT_FDCWD, os.fsencode(source), flags), f"open_tree {source}")
    try:
        attributes = _MountAttr(attr_set=_MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV)
        if user_namespace is not None:
            attributes.attr_set |= _MOUNT_ATTR_IDMAP
            attributes.userns_fd = user_namespace
        at_flags = _AT_EMPTY_PATH | (0x8000 if recursive else 0)
        size = ctypes.c_size_t(ctypes.sizeof(attributes))
        result = _libc.syscall(_SYS_MOUNT_SETATTR, tree, b"", at_flags, ctypes.byref(attributes), size)
        _check(result, f"mount_setattr {source}")
        result = _libc.syscall(
            _SYS_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), ctypes.c_uint(_MOVE_MOUNT_F_EMPTY_PATH)
        )
        _check(result, f"move_mount {target}")
    finally:
        os.close(tree)


def mapped_namespace(inside: tuple[int, int], outside: tuple[int, int]) -> int:
    """Open a user namespace that maps one (uid, gid) ``inside`` to one ``outside``; the caller closes it.

    Needs root. The namespace lives as long as the descriptor.
    """
    ready_r, ready_w = os.pipe()
    hold_r, hold_w = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(hold_w)
            unshare(CLONE_NEWUSER)
            os.write(ready_w, b"x")
            os.read(hold_r, 1)
        finally:
            os._exit(0)
    try:
        os.close(ready_w)
        if os.read(ready_r, 1) != b"x":
            raise OSError(1, "unshare: no user namespace")
        for name, index in (("uid_map", 0), ("gid_map", 1)):
            with open(f"/proc/{child}/{name}", "w") as file:
                file.write(f"{inside[index]} {outside[index]} 1")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for descriptor in (ready_r, hold_r, hold_w):
            os.close(descriptor)
        os.waitpid(child, 0)
