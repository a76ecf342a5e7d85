"""Attempts to read, write and reach what lies outside: each works without the sandbox and fails inside it.

A script prints ESCAPED when it succeeds; names in braces are filled in by the fixture ``planted``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

READ = {
    "read-host-home": "cat {home}/diary.txt && echo ESCAPED",
    "read-ssh-key": "cat {home}/.ssh/id_ed25519 && echo ESCAPED",
    "read-hidden-tests": "cat {task}/tests/test_hidden.py && echo ESCAPED",
    "read-gold-patch": "cat {task}/solution/gold.patch && echo ESCAPED",
    "find-gold-patch": "find {search} -name gold.patch 2>/dev/null | grep -q gold && echo ESCAPED",
    "grep-for-the-answer": "grep -rqs 'the-gold-answer' {search} --include=*.patch && echo ESCAPED",
    "read-snapshot-on-host": "cat {snapshot}/pkg/code.py && echo ESCAPED",
    "read-through-symlink": "ln -s {task}/solution/gold.patch link && cat link && echo ESCAPED",
    "read-through-dotdot": "cat ../../../../../../../../../..{home}/diary.txt && echo ESCAPED",
    "read-through-hard-link": "ln {task}/solution/gold.patch hard && cat hard && echo ESCAPED",
    "read-through-proc-root": "cat /proc/{victim}/root{home}/diary.txt && echo ESCAPED",
    "read-through-proc-cwd": "cat /proc/{victim}/cwd{home}/diary.txt && echo ESCAPED",
    "environment-secret": "env | grep -q planted-secret && echo ESCAPED",
    "environment-of-victim": "tr '\\0' '\\n' < /proc/{victim}/environ | grep -q = && echo ESCAPED",
    "environment-of-others": "cat /proc/[0-9]*/environ 2>/dev/null | grep -qa planted-secret && echo ESCAPED",
    "command-lines-of-others": "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -qa host-victi[m] && echo ESCAPED",
    "host-accounts": "grep -q '^{user}:' /etc/passwd && test -e /etc/{etc} && echo ESCAPED",
    "host-var": "ls -d /var/lib /var/log && echo ESCAPED",
    "host-sysfs": "ls /sys/kernel && echo ESCAPED",
    "kernel-log": "dmesg && echo ESCAPED",
    "raw-disk-device": "ls /dev/[vsn][dv]* /dev/mem /dev/kmsg 2>/dev/null | grep -q . && echo ESCAPED",
    "import-our-package": "python3 -c 'import frognano' && echo ESCAPED",
    "pond-clean-source": "python3 -c 'import frognano.tadpole.pond' && echo ESCAPED",
    "pond-source-in-site-packages": (
        "#py\n"
        "import sys, pathlib\n"
        "print(*('ESCAPED' for p in sys.path if pathlib.Path(p, 'frognano', 'tadpole').exists()))"
    ),
    "host-packages": "python3 -c 'import pydantic' && echo ESCAPED",
    "bytecode-of-the-fix": "grep -rqs fixed_by_the_patch {search} --include=*.pyc && echo ESCAPED",
    "other-slot-through-keeper": "ls /proc/{keeper}/root/{slots} && echo ESCAPED",
    "other-slot-files": "ls /proc/[0-9]*/root/{slots} 2>/dev/null | grep -q . && echo ESCAPED",
    "overlay-upper-layer": "ls -d {upper} && echo ESCAPED",
}

WRITE = {
    "write-host-folder": "echo x > {outside}/written && echo ESCAPED",
    "write-outside-by-symlink": "ln -s {outside} out && echo x > out/written && echo ESCAPED",
    "write-system": "touch {system}/frognano-was-here && rm {system}/frognano-was-here && echo ESCAPED",
    "write-runner-file": "echo '#' >> {runner} && echo ESCAPED",
    "replace-runner-file": "cp {runner} copy && mv -f copy {runner} && echo ESCAPED",
    "write-interpreter": "touch $(dirname $(python3 -c 'import os; print(os.__file__)'))/evil.py && echo ESCAPED",
    "write-pytest": "touch {site}/evil.py && echo ESCAPED",
    "write-core-pattern": "exec 3>>/proc/sys/kernel/core_pattern && echo ESCAPED",
    "write-kernel-switch": "exec 3>/proc/sys/vm/drop_caches && echo ESCAPED",
    "enter-other-cgroup": "exec 3>>{cgroup}/cgroup.procs && echo ESCAPED",
    "write-dev": "touch /dev/evil && rm /dev/evil && echo ESCAPED",
}

NETWORK = {
    "host-loopback-server": "exec 3<>/dev/tcp/127.0.0.1/{port} && echo ESCAPED",
    "host-loopback-server-v6": "exec 3<>/dev/tcp/localhost/{port} && echo ESCAPED",
    "host-address": "exec 3<>/dev/tcp/{address}/{port} && echo ESCAPED",
    "route-outside": "[ $(wc -l < /proc/net/route) -gt 1 ] && echo ESCAPED",
    "abstract-socket": ("#py\nimport socket\nsocket.socket(socket.AF_UNIX).connect('\\0{abstract}')\nprint('ESCAPED')"),
    "socket-file": ("#py\nimport socket\nsocket.socket(socket.AF_UNIX).connect('{socket}')\nprint('ESCAPED')"),
    "system-v-shared-memory": (
        "#py\n"
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "print('ESCAPED' if libc.shmget({shm_key}, 1, 0) >= 0 else 'refused')"
    ),
    "posix-shared-memory": "cat /dev/shm/{shm_name} && echo ESCAPED",
}

ROOT_ONLY = {
    "write-kernel-switch",
    "write-system",
    "kernel-log",
    "write-core-pattern",
    "write-dev",
    "enter-other-cgroup",
}


ATTACKS = {**READ, **WRITE, **NETWORK}


@pytest.mark.parametrize("name", ATTACKS)
def test_it_works_outside_and_fails_inside(name: str, attempt: Callable[..., None]) -> None:
    attempt(ATTACKS[name], as_root=name in ROOT_ONLY)
