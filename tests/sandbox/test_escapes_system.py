"""Attempts on other processes, on the kernel and on the host's resources: each works outside and fails inside.

A script prints ESCAPED when it succeeds; names in braces are filled in by the fixture ``planted``. ``{victim}`` is
the runner (process 1) inside a sandbox and a process of the same user outside.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

PROCESS = {
    "kill-host-process": "kill -0 {host_pid} && echo ESCAPED",
    "kill-victim": "kill -9 {victim} && sleep 0.2 && ! (ps -o stat= {victim} | grep -qv Z) && echo ESCAPED",
    "interrupt-victim": "kill -INT {victim}; sleep 0.2; (ps -o stat= {victim} | grep -qv Z) || echo ESCAPED",
    "stop-victim": "kill -STOP {victim} && sleep 0.1 && grep -q '^State:.T' /proc/{victim}/status && echo ESCAPED",
    "starve-victim-by-rlimit": "prlimit --pid {victim} --nofile=1:1 && echo ESCAPED",
    "forge-frames-through-proc-fd": "printf x > /proc/{victim}/fd/1 && echo ESCAPED",
    "read-victim-memory": "head -c0 /proc/{victim}/mem && echo ESCAPED",
    "ptrace-attach": (
        "#py\n"
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "print('ESCAPED' if libc.ptrace(0x4206, {victim}, 0, 0) >= 0 else 'refused')"
    ),
    "ptrace-own-child": (
        "#py\n"
        "import ctypes, os\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os.execv('/bin/sleep', ['sleep', '5'])\n"
        "print('ESCAPED' if ctypes.CDLL(None).ptrace(0x4206, pid, 0, 0) == 0 else 'refused')\n"
        "os.kill(pid, 9)"
    ),
    "steal-descriptor": (
        "#py\n"
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "print('ESCAPED' if libc.syscall(438, libc.syscall(434, {victim}, 0), 1, 0) >= 0 else 'refused')"
    ),
    "become-root": "python3 -c 'import os; os.setuid(0)' && echo ESCAPED",
    "set-uid-program": "cp /bin/true t && chmod 4755 t && chown 0 t && echo ESCAPED",
}

KERNEL = {
    "mount": "mkdir m && unshare -m mount -t tmpfs none m && echo ESCAPED",
    "unshare-user": "unshare -Ur true && echo ESCAPED",
    "unshare-user-and-mount": "mkdir m && unshare -Urm mount -t tmpfs none m && echo ESCAPED",
    "clone-user-namespace": (
        "#py\n"
        "import ctypes, os, signal\n"
        "pid = ctypes.CDLL(None).syscall(56, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)\n"
        "if pid == 0:\n"
        "    os._exit(0)\n"
        "print('ESCAPED' if pid > 0 else 'refused')"
    ),
    "chroot": "mkdir -p c && chroot c /nothing; [ $? = 127 ] && echo ESCAPED",
    "device-node": "mknod disk b 254 0 && echo ESCAPED",
    "keyring": (
        "#py\n"
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "print('ESCAPED' if libc.syscall(250, 1, 0) >= 0 else 'refused')"
    ),
    "io-uring": (
        "#py\n"
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "print('ESCAPED' if libc.syscall(425, 1, ctypes.create_string_buffer(120)) >= 0 else 'refused')"
    ),
    "handle-of-file": (
        "#py\n"
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "handle, mount = (ctypes.c_int * 40)(128), (ctypes.c_int * 1)()\n"
        "print('ESCAPED' if libc.syscall(303, -100, b'/usr', handle, mount, 0) >= 0 else 'refused')"
    ),
    "enter-namespace": "nsenter -t {victim} -m true && echo ESCAPED",
    "trace-kernel": "ls /sys/kernel/debug /sys/kernel/tracing && echo ESCAPED",
}

EXHAUST = {
    "fork-bomb": (
        "#py\n"
        "import os, time\n"
        "children = []\n"
        "try:\n"
        "    while len(children) < 200:\n"
        "        pid = os.fork()\n"
        "        if pid == 0:\n"
        "            time.sleep(30)\n"
        "            os._exit(0)\n"
        "        children.append(pid)\n"
        "    print('ESCAPED')\n"
        "except OSError as error:\n"
        "    print(error)\n"
        "for pid in children:\n"
        "    os.kill(pid, 9)"
    ),
    "thread-bomb": (
        "#py\n"
        "import threading\n"
        "threading.stack_size(65536)\n"
        "gate = threading.Event()\n"
        "threads = []\n"
        "try:\n"
        "    while len(threads) < 200:\n"
        "        threads.append(threading.Thread(target=gate.wait))\n"
        "        threads[-1].start()\n"
        "    print('ESCAPED')\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
        "gate.set()"
    ),
    "memory-hog": ("#py\nb = bytearray(b'x') * (400 << 20)\nprint('ESCAPED')"),
    "memory-hog-in-many-processes": (
        "#py\n"
        "import os, signal, select\n"
        "ready, done = os.pipe()\n"
        "pids, held, lost = [], 0, 0\n"
        "for _ in range(10):\n"
        "    pids.append(os.fork())\n"
        "    if pids[-1] == 0:\n"
        "        block = bytearray(b'x') * (40 << 20)\n"
        "        os.write(done, b'x')\n"
        "        signal.pause()\n"
        "while held < 10 and not lost:\n"
        "    if select.select([ready], [], [], 0.05)[0]:\n"
        "        held += len(os.read(ready, 1))\n"
        "    lost = os.waitpid(-1, os.WNOHANG)[0]\n"
        "print('ESCAPED' if held == 10 else 'one was killed')\n"
        "for pid in pids:\n"
        "    os.kill(pid, 9)\n"
    ),
    "memory-hog-by-memfd": (
        "#py\n"
        "import os\n"
        "fd = os.memfd_create('hog')\n"
        "for _ in range(400):\n"
        "    os.write(fd, b'x' * (1 << 20))\n"
        "print('ESCAPED')"
    ),
    "memory-hog-that-wants-to-live": (
        "#py\n"
        "open('/proc/self/oom_score_adj', 'w').write('0')\n"
        "held = [bytearray(b'x' * (1 << 20)) for _ in range(400)]\n"
        "print('ESCAPED')"
    ),
    "full-disk": "head -c 40M /dev/zero > big && echo ESCAPED; rm -f big",
    "full-disk-in-tmp": "head -c 40M /dev/zero > /tmp/frog-big && echo ESCAPED; rm -f /tmp/frog-big",
    "full-disk-in-home": "head -c 40M /dev/zero > ~/frog-big && echo ESCAPED; rm -f ~/frog-big",
    "full-disk-in-shm": "head -c 40M /dev/zero > /dev/shm/frog-big && echo ESCAPED; rm -f /dev/shm/frog-big",
    "many-files": (
        "#py\n"
        "import os\n"
        "os.mkdir('many')\n"
        "for i in range(6000):\n"
        "    os.close(os.open(f'many/{{i}}', 65))\n"
        "print('ESCAPED')"
    ),
}

ROOT_ONLY = {"mount", "set-uid-program", "become-root", "trace-kernel", "chroot", "enter-namespace", "device-node"}


ATTACKS = {**PROCESS, **KERNEL, **EXHAUST}


@pytest.mark.parametrize("name", ATTACKS)
def test_it_works_outside_and_fails_inside(name: str, attempt: Callable[..., None]) -> None:
    attempt(ATTACKS[name], as_root=name in ROOT_ONLY)
