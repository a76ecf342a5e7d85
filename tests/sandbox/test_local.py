"""The local backend: a sealed world over a snapshot, warm and cold."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from frognano.sandbox import runner
from frognano.sandbox.contract import OperationError, SandboxError, SandboxSpec
from frognano.sandbox.local import LocalBackend, LocalSandbox

RUNNER = Path(runner.__file__)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    folder = tmp_path / "snapshot"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "code.py").write_text("def answer():\n    return 41\n")
    return folder


def in_sandbox(snapshot: Path, use: Callable[[LocalSandbox], Awaitable[Any]], **spec: Any) -> Any:
    """Run ``use`` with one cold sandbox."""

    async def main() -> Any:
        async with LocalBackend({"runner": RUNNER}, warm=0) as backend:
            sandbox = await backend.open(SandboxSpec(snapshot=snapshot, **spec))
            return await use(sandbox)

    return asyncio.run(main())


async def bash(sandbox: LocalSandbox, command: str, timeout_s: float = 20) -> str:
    """Standard output and error of one command."""
    result = await sandbox.request("bash", {"command": command, "timeout_s": timeout_s}, timeout_s + 20)
    return str(result["stdout"]["head"] + result["stderr"]["head"])


def test_a_change_inside_is_seen_inside_and_never_in_the_snapshot(snapshot: Path) -> None:
    async def use(sandbox: LocalSandbox) -> str:
        await sandbox.request("edit", {"path": "pkg/code.py", "old": "41", "new": "42"}, 10)
        return await bash(sandbox, "cat pkg/code.py")

    assert "return 42" in in_sandbox(snapshot, use)
    assert "return 41" in (snapshot / "pkg" / "code.py").read_text()


def test_python_and_pytest_run_inside_and_our_package_is_not_there(snapshot: Path) -> None:
    (snapshot / "test_code.py").write_text("from pkg.code import answer\n\ndef test_it():\n    assert answer() == 41\n")

    async def use(sandbox: LocalSandbox) -> tuple[str, str]:
        passed = await bash(sandbox, "python -m pytest -q -p no:cacheprovider test_code.py")
        return passed, await bash(sandbox, "python3 -c 'import frognano'; python3 -c 'import pydantic'")

    passed, missing = in_sandbox(snapshot, use)
    assert "1 passed" in passed
    assert "No module named 'frognano'" in missing
    assert "No module named 'pydantic'" in missing


def test_the_user_inside_is_not_root_and_has_no_capability(snapshot: Path) -> None:
    async def use(sandbox: LocalSandbox) -> str:
        return await bash(sandbox, "id -u; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status")

    lines = in_sandbox(snapshot, use).split()
    assert lines == ["1000", "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]


def test_a_failed_operation_leaves_the_sandbox_usable(snapshot: Path) -> None:
    async def use(sandbox: LocalSandbox) -> str:
        with pytest.raises(OperationError) as failure:
            await sandbox.request("read", {"path": "nowhere.py"}, 10)
        assert failure.value.kind == "FileNotFoundError"
        return await bash(sandbox, "echo still here")

    assert in_sandbox(snapshot, use) == "still here\n"


def test_a_silent_runner_is_lost_and_its_slot_is_killed(snapshot: Path) -> None:
    async def use(sandbox: LocalSandbox) -> None:
        with pytest.raises(SandboxError, match="did not answer 'bash' within"):
            await sandbox.request("bash", {"command": "sleep 100", "timeout_s": 100}, 0.2)
        with pytest.raises(SandboxError):
            await sandbox.request("ping", {}, 5)

    in_sandbox(snapshot, use)
