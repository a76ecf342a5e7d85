"""Limits hold with and without control groups, and what breaks against them leaves the host well."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from frognano.sandbox import interior
from frognano.sandbox.contract import Limits, OperationError, SandboxError, SandboxSpec
from frognano.sandbox.local import LocalBackend

SMALL = Limits(memory_mb=128, pids=32, disk_mb=16)
FORKS = """
import os, time
made = 0
try:
    while made < 200:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made)
"""
MEMORY = """
blocks = []
try:
    while len(blocks) < 60:
        blocks.append(bytearray(b"x") * (10 << 20))
        print(len(blocks), flush=True)
except MemoryError:
    pass
"""


@pytest.fixture(scope="module", params=[True, False], ids=["cgroups", "rlimits"])
def limited(request: pytest.FixtureRequest, wait: Any, start_backend: Any) -> Any:
    backend = wait(start_backend(warm=0, cgroups=request.param))
    if request.param and "cgroup" not in backend.enforcement()["memory"]:
        wait(backend.__aexit__())
        pytest.skip("no control group may be made on this machine")
    yield backend
    wait(backend.__aexit__())


def _python(backend: LocalBackend, snapshot: Path, wait: Any, code: str) -> str:
    async def use() -> str:
        sandbox = await backend.open(SandboxSpec(snapshot=snapshot, limits=SMALL))
        args = {"argv": ["python3", "-c", code], "timeout_s": 20}
        done = await sandbox.request("exec", args, 40)
        assert (await sandbox.request("ping", {}, 20))["pid"] == 1
        await sandbox.close()
        return base64.b64decode(done["stdout_b64"]).decode()

    said: str = wait(use())
    return said


def test_no_more_processes_than_allowed(limited: LocalBackend, snapshot: Path, wait: Any) -> None:
    assert 0 < int(_python(limited, snapshot, wait, FORKS)) < 40


def test_no_more_memory_than_allowed(limited: LocalBackend, snapshot: Path, wait: Any) -> None:
    taken = int(_python(limited, snapshot, wait, MEMORY).split()[-1]) * 10
    assert 50 < taken <= 128 + 16


def test_a_true_fork_bomb_ends_with_its_sandbox(limited: LocalBackend, snapshot: Path, wait: Any) -> None:
    async def use() -> None:
        sandbox = await limited.open(SandboxSpec(snapshot=snapshot, limits=SMALL))
        bomb = (
            "printf '#!/bin/sh\\n$0 frog-bomb & $0 frog-bomb\\n' > /tmp/bomb; chmod +x /tmp/bomb; /tmp/bomb frog-bomb"
        )
        # Any answer will do; what counts is what is left.
        with suppress(OperationError, SandboxError):
            await sandbox.request("bash", {"command": bomb, "timeout_s": 1.0}, 20)
        await sandbox.close()
        assert "frog-bomb" not in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout
        again = await limited.open(SandboxSpec(snapshot=snapshot, limits=SMALL))
        assert (await again.request("bash", {"command": "echo ok", "timeout_s": 9}, 20))["stdout"]["head"] == "ok\n"
        await again.close()

    wait(use())


def test_a_full_disk_is_an_answer_and_room_comes_back(sandbox: Any, wait: Any, bash: Any) -> None:
    said = wait(bash(sandbox, "head -c 40M /dev/zero > big; stat -c %s big"))
    assert "No space left on device" in said
    assert int(said.split()[-1] if said.split()[-1].isdigit() else said.split()[0]) <= 16 << 20
    with pytest.raises(OperationError) as failure:
        wait(sandbox.request("write", {"path": "more.txt", "content": "x" * 8192}, 10))
    assert failure.value.kind == "OSError"
    assert wait(bash(sandbox, "rm big; ls -A; echo x > more.txt; cat more.txt")) == "pkg\nx\n"


ORDINARY_USER = """
import asyncio, sys
from pathlib import Path
from frognano.sandbox.contract import SandboxSpec
from frognano.sandbox.local import LocalBackend
async def main():
    async with LocalBackend({"runner": Path(sys.argv[1])}, warm=1, cache=Path(sys.argv[3])) as backend:
        assert backend.enforcement()["isolation"].endswith("as an ordinary user")
        sandbox = await backend.open(SandboxSpec(snapshot=Path(sys.argv[2])))
        script = "id -u; rm -r pkg; mkdir pkg; echo new > pkg/new; chmod 000 pkg/new; touch /usr/x /etc/x 2>&1 | wc -l"
        result = await sandbox.request("bash", {"command": script, "timeout_s": 20}, 40)
        print(result["stdout"]["head"].split(), flush=True)
        sys.stdout.buffer.write(await sandbox.changes())
asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: every other test already runs as an ordinary user")
def test_it_works_for_an_ordinary_user(tmp_path: Path) -> None:
    packages = [path for path in sys.path if path.endswith("site-packages")]
    source = str(Path(interior.__file__).parents[2])
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        runner = folder / "runner.py"
        shutil.copy(Path(interior.__file__).parent / "runner.py", runner)
        (folder / "repository" / "pkg").mkdir(parents=True)
        (folder / "repository" / "pkg" / "code.py").write_text("x = 1\n")
        built = interior.lean_site(interior.default_cache())
        shutil.copytree(built, folder / "cache" / "packages" / built.name)
        subprocess.run(["chown", "-R", "65534:65534", name], check=True)
        environment = {"PATH": os.defpath, "HOME": name, "PYTHONPATH": ":".join([source, *packages])}
        become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        for python in (str(interior.base_python()), shutil.which(version, path="/usr/bin:/usr/local/bin") or version):
            probe = subprocess.run(
                [*become, python, "-c", "import pydantic, frognano, pytest"], env=environment, check=False
            )
            if probe.returncode == 0:
                break
        else:
            pytest.skip("no Python of this version that an ordinary user may start with our packages")
        arguments = [str(runner), str(folder / "repository"), str(folder / "cache")]
        command = [*become, python, "-c", ORDINARY_USER, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "No isolation on this machine" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.stdout.startswith("['1000', '2']"), done.stdout + done.stderr
    assert "deleted file" in done.stdout
    assert "+new" in done.stdout
