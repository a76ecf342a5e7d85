"""How bubblewrap is called: which namespaces, mounts and user a sandbox gets, and what is missing when it cannot.

Own user, pid, network (loopback only, up), ipc, uts, cgroup and mount namespaces; a new session; no
capabilities; no new privileges; the resident runner is process 1, so no signal from inside can end it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from frognano.sandbox import interior
from frognano.sandbox.contract import SandboxError

_FORBIDDEN = ("creating new namespace failed", "no permissions to create", "uid map", "permissionerror", "unshare")
SECCOMP_FD = 3
INFO_FD = 4


def bwrap_path() -> str:
    """Where bubblewrap is; raises SandboxError with the command that installs it."""
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxError(unavailable("bubblewrap (bwrap) is not installed.", "apt-get install -y bubblewrap"))
    return found


def unavailable(what: str, command: str) -> str:
    """The message for a machine on which the local backend cannot isolate."""
    return (
        f"No isolation on this machine: {what} Run: {command}\n"
        "For code that you trust completely there is --no-isolation."
    )


def explain(complaint: str) -> str:
    """Turn what bubblewrap or the keeper said into the message for the user."""
    text = complaint.strip() or "the sandbox ended without a word"
    if not any(word in text.lower() for word in _FORBIDDEN):
        return f"the sandbox could not start: {text}"
    if os.geteuid() == 0:
        return unavailable(
            f"this process may not make namespaces and mounts ({text}); in a container it needs more rights.",
            "docker run --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined …",
        )
    return unavailable(
        f"user namespaces are not allowed here ({text}).",
        "sudo sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0",
    )


def arguments(base: Path, slot: str, workdir: str, filtered: bool, command: Sequence[str]) -> list[str]:
    """bubblewrap's options for one slot, and the command; ``filtered`` says that a system-call filter is passed."""
    folder = base / "slots" / slot
    options = [
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--new-session", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL"),
        *("--uid", str(interior.USER_ID), "--gid", str(interior.USER_ID), "--hostname", "frog"),
        *("--info-fd", str(INFO_FD)),
        *("--ro-bind", str(base / "root"), "/"),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--bind", str(folder / "shm"), "/dev/shm", "--remount-ro", "/dev"),
        *("--bind", str(folder / "tmp"), "/tmp", "--bind", str(folder / "home"), interior.HOME),
        *("--ro-bind", str(folder / "extra"), interior.EXTRA),
        *("--bind", str(folder / "gate"), workdir),
    ]
    if filtered:
        options += ["--seccomp", str(SECCOMP_FD)]
    return [*options, "--chdir", "/", "--", *command]
