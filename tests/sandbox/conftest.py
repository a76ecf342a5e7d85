"""One event loop and one local backend for the tests of this folder."""

from __future__ import annotations

import asyncio
import base64
import ctypes
import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from frognano.sandbox import interior, runner
from frognano.sandbox.contract import Limits, Sandbox, SandboxError, SandboxSpec
from frognano.sandbox.local import LocalBackend

T = TypeVar("T")
RUNNER = Path(runner.__file__)
SMALL = Limits(memory_mb=128, pids=32, disk_mb=16)


class Loop(Protocol):
    def __call__(self, work: Coroutine[Any, Any, T]) -> T: ...


class Bash(Protocol):
    async def __call__(self, sandbox: Sandbox, command: str, timeout_s: float = 30) -> str: ...


@pytest.fixture(scope="session")
def wait() -> Iterator[Loop]:
    """Runs a coroutine to its end, always on the same loop."""
    with asyncio.Runner() as running:
        yield running.run


async def opened(**options: Any) -> LocalBackend:
    """A started backend; the test is skipped where this machine cannot isolate."""
    try:
        return await LocalBackend({"runner": RUNNER}, **options).__aenter__()
    except SandboxError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def backend(wait: Loop) -> Iterator[LocalBackend]:
    """A backend with warm slots of the small limits; the tests are skipped where this machine cannot isolate."""
    local = wait(opened(warm=2, prewarm=(SandboxSpec(snapshot=Path(), limits=SMALL),)))
    yield local
    wait(local.__aexit__())


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    folder = tmp_path / "snapshot"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "code.py").write_text("def answer():\n    return 41\n")
    return folder


KINDS: dict[str, dict[str, Any]] = {
    "namespaces": {},
    "namespaces-with-rlimits-and-copies": {"cgroups": False, "overlay": False},
    "no-isolation": {"no_isolation": True},
}


@pytest.fixture(scope="session", params=KINDS)
def any_backend(request: pytest.FixtureRequest, wait: Loop) -> Iterator[LocalBackend]:
    """Each way to run a sandbox on this machine, for what must hold on all of them."""
    local = wait(opened(warm=0, **KINDS[request.param]))
    yield local
    wait(local.__aexit__())


@pytest.fixture
def sandbox(wait: Loop, backend: LocalBackend, snapshot: Path) -> Iterator[Sandbox]:
    """One open sandbox with the small limits."""
    one = wait(backend.open(SandboxSpec(snapshot=snapshot, limits=SMALL)))
    yield one
    wait(one.close())


@pytest.fixture(scope="session")
def bash() -> Bash:
    """Runs one command in a sandbox: its standard output and error."""
    return _bash


@pytest.fixture(scope="session")
def start_backend() -> Callable[..., Coroutine[Any, Any, LocalBackend]]:
    """Starts a backend of one's own: ``await start_backend(warm=0)``, then ``async with`` it is not needed twice."""
    return opened


async def _bash(sandbox: Sandbox, command: str, timeout_s: float = 30) -> str:
    """Standard output and error of one command."""
    result = await sandbox.request("bash", {"command": command, "timeout_s": timeout_s}, timeout_s + 30)
    return str(result["stdout"]["head"] + result["stderr"]["head"])


@dataclass
class Planted:
    """What an attacker would like to reach, planted on the host, under the names that the scripts use."""

    names: dict[str, Any]
    victim: subprocess.Popen[bytes]


@pytest.fixture
def planted(tmp_path: Path, snapshot: Path, backend: LocalBackend) -> Iterator[Planted]:
    """Plants secrets, a victim process, servers and shared memory on the host."""
    files = {
        "home/diary.txt": "secret",
        "home/.ssh/id_ed25519": "planted key",
        "task/tests/test_hidden.py": "hidden",
        "task/solution/gold.patch": "the-gold-answer",
        "task/build/__pycache__/code.pyc": "fixed_by_the_patch",
        "outside/here": "",
        "runner.py": "#\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    victim = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)  # host-victim"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, "FROG_SECRET": "planted-secret"},
        cwd="/",
    )
    mark = f"frog-{os.getpid()}-{victim.pid}"
    shared = Path("/dev/shm") / mark
    shared.write_text("secret")
    libc = ctypes.CDLL(None, use_errno=True)
    key = 0x46000000 + victim.pid % 0xFFFFFF
    segment = libc.shmget(key, 64, 0o1666)
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as file:
        server.bind(("0.0.0.0", 0))
        abstract.bind(f"\0{mark}")
        file.bind(str(tmp_path / "s"))
        for listener in (server, abstract, file):
            listener.listen()
        names = {
            **{name: tmp_path / name for name in ("home", "task", "outside")},
            **{"search": tmp_path, "snapshot": snapshot, "host_pid": victim.pid, "victim": victim.pid},
            **{"runner": tmp_path / "runner.py", "site": tmp_path, "etc": _host_only_in_etc()},
            **{"user": pwd.getpwuid(2).pw_name, "system": "/usr/share", "cgroup": "/sys/fs/cgroup/pids"},
            **{"port": server.getsockname()[1], "address": _address(), "abstract": mark, "socket": tmp_path / "s"},
            **{"shm_key": key, "shm_name": mark, **_keeper_names(backend)},
        }
        yield Planted(names, victim)
    victim.kill()
    victim.wait()
    shared.unlink()
    libc.shmctl(segment, 0, None)


@pytest.fixture
def attempt(wait: Loop, planted: Planted, sandbox: Sandbox, tmp_path: Path) -> Callable[..., None]:
    """Runs one attack outside, where it must succeed, then inside, where it must fail and leave the runner well."""

    def check(script: str, as_root: bool) -> None:
        outside = tmp_path / "control"
        outside.mkdir()
        inside = {**planted.names, "victim": 1, "search": "/", "site": "/usr/local"}
        inside["runner"] = f"{interior.RESIDENTS}/runner.pyc"
        if os.geteuid() == 0 or not as_root:
            environment = {**os.environ, "FROG_SECRET": "planted-secret", "HOME": str(outside)}
            environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            environment["PYTHONPATH"] = str(Path(interior.__file__).parents[2])
            control = _command(script, planted.names)
            done = subprocess.run(control, cwd=outside, env=environment, capture_output=True, text=True, check=False)
            assert "ESCAPED" in done.stdout, f"the attack does not work outside: {done.stdout}{done.stderr}"
        argv = _command(script, inside)
        result = wait(sandbox.request("exec", {"argv": argv, "timeout_s": 40}, 60))
        said = base64.b64decode(result["stdout_b64"]).decode(errors="replace")
        assert "ESCAPED" not in said
        assert wait(_bash(sandbox, "echo $((6 * 7))")) == "42\n"

    return check


def _command(script: str, names: dict[str, Any]) -> list[str]:
    text = script.format(**names)
    if text.startswith("#py\n"):
        return ["python3", "-c", text]
    return ["bash", "-c", text]


def _address() -> str:
    """An address of this host that is not loopback, where there is one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _host_only_in_etc() -> str:
    return next(
        name for name in ("fstab", "shadow", "machine-id", "os-release", "passwd-") if Path("/etc", name).exists()
    )


def _keeper_names(backend: LocalBackend) -> dict[str, Any]:
    keeper = backend._keeper
    assert keeper is not None
    slots = f"{keeper.base}/slots"
    slot = next(iter(backend._slots), None)
    upper = f"/proc/{keeper._process.pid}/root{slots}/{slot.name if slot else ''}/upper"
    return {"keeper": keeper._process.pid, "slots": slots, "upper": upper}
