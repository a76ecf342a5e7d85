"""The system-call filter of a sandbox: calls that no test suite needs and that widen the kernel's surface.

Denied calls fail with EPERM (``clone3`` with ENOSYS, so that the C library falls back to ``clone``, whose flags
can be read). The namespaces hold without this filter; it is the second wall: no new namespaces or mounts, no
tracing of other processes, no kernel keyrings, no BPF, no io_uring.
"""

from __future__ import annotations

import errno
import platform
import struct

# name: (x86_64, aarch64)
_DENIED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "syslog": (103, 116),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
}
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_CLONE = (56, 220)
_CLONE3 = 435
_PRLIMIT = (302, 261)
_IOCTL = (16, 29)
_NEW_NAMESPACES = 0x7E020000
_TIOCSTI = 0x5412
_X32_BIT = 0x40000000

_LOAD, _EQUAL, _GREATER, _SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCH, _ARGUMENT_0, _ARGUMENT_1 = 0, 4, 16, 24


def program() -> bytes:
    """The compiled filter for this machine, as bwrap's ``--seccomp`` reads it; empty on unknown machines."""
    if platform.machine() not in _MACHINES:
        return b""
    column, architecture = _MACHINES[platform.machine()]
    denied = sorted(numbers[column] for numbers in _DENIED.values())
    code = [
        _op(_LOAD, _ARCH),
        _op(_EQUAL, architecture, 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER),
        _op(_GREATER, _X32_BIT, 0, 1),
        _op(_RETURN, _ERRNO | errno.ENOSYS),
        _op(_EQUAL, _CLONE3, 0, 1),
        _op(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    for number in denied:
        code += [_op(_EQUAL, number, 0, 1), _op(_RETURN, _ERRNO | errno.EPERM)]
    code += [
        _op(_EQUAL, _CLONE[column], 0, 3),
        _op(_LOAD, _ARGUMENT_0),
        _op(_SET, _NEW_NAMESPACES, 4, 0),
        _op(_RETURN, _ALLOW),
        # Limits of another process: the resident runs as the same user, and could be starved by it.
        _op(_EQUAL, _PRLIMIT[column], 0, 3),
        _op(_LOAD, _ARGUMENT_0),
        _op(_EQUAL, 0, 5, 0),
        _op(_RETURN, _ERRNO | errno.EPERM),
        _op(_EQUAL, _IOCTL[column], 0, 3),
        _op(_LOAD, _ARGUMENT_1),
        _op(_EQUAL, _TIOCSTI, 0, 1),
        _op(_RETURN, _ERRNO | errno.EPERM),
        _op(_RETURN, _ALLOW),
    ]
    return b"".join(code)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
