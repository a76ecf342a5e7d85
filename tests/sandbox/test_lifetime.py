"""Nothing outlives a sandbox, nothing inside ends its runner, and a killed host leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from frognano.sandbox import interior, runner
from frognano.sandbox.contract import SandboxError, SandboxSpec
from frognano.sandbox.local import LocalBackend
from frognano.tasks.seal import seal
from frognano.tasks.tree import read_tree

RUNNER = Path(runner.__file__)
DAEMON = (
    'python3 -c "import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); time.sleep(%s)"'
)


def _alive(mark: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "cmdline").read_text():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_a_daemon_survives_a_plain_process_but_not_the_end_of_its_sandbox(sandbox: Any, wait: Any, bash: Any) -> None:
    outside, inside = f"77.{os.getpid()}1", f"77.{os.getpid()}2"
    subprocess.run(["bash", "-c", DAEMON % outside], check=True, timeout=20)
    time.sleep(0.2)
    survivors = _alive(f"time.sleep({outside})")
    for process in survivors:
        os.kill(process, signal.SIGKILL)
    assert survivors
    wait(bash(sandbox, DAEMON % inside + "; sleep 0.2"))
    assert _alive(f"time.sleep({inside})")
    wait(sandbox.close())
    assert not _alive(f"time.sleep({inside})")


@pytest.mark.parametrize(
    "script", ["kill -9 -1", "kill -9 1", "kill -INT 1; kill -TERM 1; kill -HUP 1", "kill -STOP 1"]
)
def test_signals_to_everybody_do_not_end_the_runner(sandbox: Any, wait: Any, bash: Any, script: str) -> None:
    wait(bash(sandbox, f"{script}; sleep 0.1"))
    assert wait(bash(sandbox, "echo alive")) == "alive\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="the control makes a pid namespace of its own, which needs root")
def test_the_same_signal_ends_a_runner_that_is_not_process_one() -> None:
    ours, theirs = socket.socketpair()
    command = ["unshare", "--pid", "--fork", "--kill-child", "bash", "-c", f"{sys.executable} -I -S -u {RUNNER}; true"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs)
    theirs.close()
    with ours:
        for number, command in enumerate(["echo up", "kill -9 -1; sleep 1"]):
            args = {"workdir": "/", "command": command, "timeout_s": 20}
            text = json.dumps({"id": number, "op": "bash", "args": args}).encode()
            ours.sendall(struct.pack(">I", len(text)) + text)
            answer = ours.recv(1 << 16)
            assert bool(answer) == (number == 0)
    process.wait(20)


def test_history_and_bytecode_hold_the_fix_before_sealing_and_not_inside(
    backend: LocalBackend, tmp_path: Path, wait: Any, bash: Any
) -> None:
    script = (
        "{ git log --all -p; git reflog; git stash list; git fsck --unreachable --no-reflogs --lost-found;"
        " git cat-file --batch-check --batch-all-objects | cut -d' ' -f1 | git cat-file --batch;"
        " find . -name '*.pyc' -exec cat {} +; } 2>/dev/null | grep -qa 'the_fixed_line' && echo ESCAPED"
    )
    repository = tmp_path / "repository"
    repository.mkdir()
    prepare = (
        "git init -q . && echo the_fixed_line = 1 > a.py && python3 -m compileall -q . && git add a.py &&"
        " git -c user.name=a -c user.email=a@b commit -qm fix && echo broken = 1 > a.py"
    )
    subprocess.run(["bash", "-c", prepare], cwd=repository, check=True)
    control = subprocess.run(["bash", "-c", script], cwd=repository, capture_output=True, text=True, check=False)
    assert "ESCAPED" in control.stdout
    sealed = tmp_path / "sealed"
    sealed.mkdir()
    (sealed / "a.py").write_text("broken = 1\n")
    seal(sealed, read_tree(sealed))

    async def use() -> str:
        sandbox = await backend.open(SandboxSpec(snapshot=sealed))
        said: str = await bash(sandbox, f"git log --oneline; {script}")
        await sandbox.close()
        return said

    said = wait(use())
    assert "Snapshot" in said
    assert "ESCAPED" not in said


def test_a_killed_host_leaves_no_process_and_no_folder(snapshot: Path, tmp_path: Path) -> None:
    mark = f"88.{os.getpid()}"
    script = f"""
import asyncio, sys
from pathlib import Path
from frognano.sandbox.contract import SandboxSpec
from frognano.sandbox.local import LocalBackend
async def main():
    async with LocalBackend({{"runner": Path({str(RUNNER)!r})}}, warm=1) as backend:
        sandbox = await backend.open(SandboxSpec(snapshot=Path({str(snapshot)!r})))
        print(backend._keeper.base, flush=True)
        await sandbox.request("bash", {{"command": "sleep {mark}", "timeout_s": 60}}, 60)
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(interior.__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    base = process.stdout.readline().strip()
    if not base:
        process.wait()
        pytest.skip("no isolation on this machine")
    _until(lambda: bool(_alive(f"sleep {mark}")) or f"sleep\0{mark}" in _commands())
    process.kill()
    process.wait()
    process.stdout.close()
    _until(lambda: f"sleep\0{mark}" not in _commands() and not Path(base).exists())


def _commands() -> str:
    text = ""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text += (folder / "cmdline").read_text() + "\n"
        except OSError:
            continue
    return text


def _until(condition: Any) -> None:
    """Wait for something that must become true; the suite's own time-out bounds it."""
    while not condition():
        time.sleep(0.02)


def test_leaving_the_backend_ends_open_sandboxes(start_backend: Any, snapshot: Path, wait: Any, bash: Any) -> None:
    async def use() -> None:
        backend = await start_backend(warm=1)
        sandbox = await backend.open(SandboxSpec(snapshot=snapshot))
        await bash(sandbox, f"setsid sleep 99.{os.getpid()} & true")
        assert f"99.{os.getpid()}" in _commands()
        await backend.__aexit__()
        assert f"99.{os.getpid()}" not in _commands()
        with pytest.raises(SandboxError):
            await sandbox.request("ping", {}, 5)

    wait(use())


def test_a_backend_that_is_left_while_slots_start_leaves_no_process(
    start_backend: Any, snapshot: Path, wait: Any
) -> None:
    async def use() -> list[str]:
        bases = []
        for pause in range(12):
            backend = await start_backend(warm=4, prewarm=(SandboxSpec(snapshot=snapshot),))
            bases.append(str(backend._keeper.base))
            await asyncio.sleep(pause * 0.01)
            await backend.__aexit__()
        return bases

    bases = wait(use())
    assert not [base for base in bases if base in _commands() or Path(base).exists()]


def test_what_a_killed_keeper_left_is_gone_when_the_next_one_starts(
    start_backend: Any, snapshot: Path, wait: Any, bash: Any
) -> None:
    async def use() -> None:
        backend = await start_backend(warm=1)
        sandbox = await backend.open(SandboxSpec(snapshot=snapshot))
        keeper, base = backend._keeper._process, str(backend._keeper.base)
        keeper.kill()
        with pytest.raises(SandboxError):
            await sandbox.changes()
        await backend.__aexit__()
        await (await start_backend(warm=0)).__aexit__()
        _until(lambda: base not in _commands())
        assert not list(Path("/sys/fs/cgroup").glob(f"*/frognano-*-{keeper.pid}"))

    wait(use())
