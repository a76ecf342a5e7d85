"""The same tools and the same loop in real sandboxes: what the other tests show on a host folder holds there too."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from frognano.leaf.episode import EpisodeSpec, run_episode
from frognano.leaf.profile import Profile, load_profile
from frognano.leaf.steplog import StepLog, read_step_log, reference_trajectory
from frognano.leaf.tools import run_tool
from frognano.records import Reply, ToolCall
from frognano.sandbox import runner
from frognano.sandbox.contract import SandboxSpec
from frognano.sandbox.local import LocalBackend

Says = Callable[..., Reply]
Inside = Callable[[Path, Callable[[Any], Awaitable[Any]]], Any]
pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture
def snapshot(work: Path) -> Path:
    (work / "rings.py").write_text("def grow(n):\n    return n - 1\n")
    (work / "test_rings.py").write_text("from rings import grow\n\ndef test_grow():\n    assert grow(1) == 2\n")
    return work


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[asyncio.Runner, LocalBackend]]:
    """One event loop with one open backend for all tests here."""
    backend = LocalBackend({"runner": Path(runner.__file__)}, warm=1)
    with asyncio.Runner() as loop:
        loop.run(backend.__aenter__())
        yield loop, backend
        loop.run(backend.__aexit__(None, None, None))


@pytest.fixture
def inside(world: tuple[asyncio.Runner, LocalBackend]) -> Inside:
    """``inside(folder, act)`` runs ``act(sandbox)`` in a fresh sandbox over ``folder``."""
    loop, backend = world

    async def once(folder: Path, act: Callable[[Any], Awaitable[Any]]) -> Any:
        sandbox = await backend.open(SandboxSpec(snapshot=folder))
        try:
            return await act(sandbox)
        finally:
            await sandbox.close()

    return lambda folder, act: loop.run(once(folder, act))


async def ask(sandbox: Any, name: str, profile: Profile | None = None, **arguments: Any) -> str:
    call = ToolCall(id="c", name=name, arguments=arguments)
    return (await run_tool(sandbox, call, profile or load_profile(), "/app")).text


def test_an_episode_mends_a_bug(inside: Inside, snapshot: Path, tmp_path: Path, scripted: Any, says: Says) -> None:
    policy = scripted(
        says("", ("Read", {"file_path": "rings.py"}), ("Bash", {"command": "python3 -m pytest -q 2>&1 | tail -1"})),
        says("", ("Edit", {"file_path": "rings.py", "old_string": "n - 1", "new_string": "n + 1"})),
        says("", ("Bash", {"command": "python3 -m pytest -q 2>&1 | tail -1"})),
        says("grow added the wrong way; mended."),
    )
    spec = EpisodeSpec(id="e--0", task_id="t", statement="grow(1) must be 2.")
    log = StepLog(tmp_path / "log.jsonl")
    done = inside(snapshot, lambda sandbox: run_episode(spec, policy, sandbox, log))
    assert done.exit_reason == "agent"
    texts = [answer.text for step in done.steps for answer in step.observations]
    assert texts[0] == "rings.py\n1. def grow(n):\n2.     return n - 1"
    assert "1 failed" in texts[1]
    assert texts[2] == "Edited rings.py (1 replacement)."
    assert "1 passed" in texts[3]
    assert "-    return n - 1\n+    return n + 1\n" in done.patch
    assert (snapshot / "rings.py").read_text() == "def grow(n):\n    return n - 1\n"
    made = reference_trajectory(read_step_log(tmp_path / "log.jsonl"))
    assert (made["n_steps"], made["exit_reason"], made["output_patch"]) == (4, "agent", done.patch)


@pytest.mark.parametrize("name", ["leaf", "reference"])
def test_texts_are_those_of_the_golden_files(inside: Inside, golden_scene: Any, name: Any) -> None:
    folder, calls, shortened, expected = golden_scene
    profile = load_profile(name)

    async def act(sandbox: Any) -> str:
        parts = []
        for tool, arguments in calls:
            text = await ask(sandbox, tool, profile, **arguments)
            parts.append(f"=== {tool} {json.dumps(arguments)}\n{shortened(text)}\n")
        return "".join(parts)

    assert inside(folder, act) == expected[name]


def test_a_timeout_leaves_no_process_and_the_sandbox_usable(inside: Inside, snapshot: Path) -> None:
    async def act(sandbox: Any) -> tuple[str, str]:
        sleeper = "python3 -c 'import time; time.sleep(600)'"
        command = f"echo begun; setsid {sleeper} & (setsid {sleeper} &); nohup {sleeper} & {sleeper}"
        first = await ask(sandbox, "Bash", command=command, timeout=2)
        count = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'time[.]sleep'"
        return first, await ask(sandbox, "Bash", command=count)

    first, second = inside(snapshot, act)
    assert first == "Timed out after 2.0s\nSTDOUT:\nbegun\n\nSTDERR:\n"
    assert second == "Exit code: 1\nSTDOUT:\n0\n\nSTDERR:\n"


def test_a_fork_bomb_ends_with_its_time(inside: Inside, snapshot: Path) -> None:
    async def act(sandbox: Any) -> tuple[str, str]:
        first = await ask(sandbox, "Bash", command="bomb() { bomb | bomb & }; bomb; sleep 100", timeout=2)
        return first, await ask(sandbox, "Bash", command="echo alive")

    first, second = inside(snapshot, act)
    assert first.startswith(("Timed out after 2.0s", "Exit code: "))
    assert second == "Exit code: 0\nSTDOUT:\nalive\n\nSTDERR:\n"


def test_a_full_disk_leaves_the_old_bytes(inside: Inside, snapshot: Path) -> None:
    async def act(sandbox: Any) -> tuple[str, str]:
        await ask(sandbox, "Bash", command="head -c 2000000000 /dev/zero > fill")
        text = await ask(sandbox, "Edit", file_path="rings.py", old_string="n - 1", new_string="n" * 3_000_000)
        return text, await ask(sandbox, "Read", file_path="rings.py")

    failed, text = inside(snapshot, act)
    assert failed.startswith("OSError: [Errno 28]")
    assert text == "rings.py\n1. def grow(n):\n2.     return n - 1"


def test_killing_everything_does_not_reach_the_runner(inside: Inside, snapshot: Path) -> None:
    async def act(sandbox: Any) -> str:
        await ask(sandbox, "Bash", command="kill -9 -1; kill -9 1; kill -9 $PPID")
        return await ask(sandbox, "Bash", command="echo alive")

    assert inside(snapshot, act) == "Exit code: 0\nSTDOUT:\nalive\n\nSTDERR:\n"


def test_sixteen_episodes_at_once_keep_apart(world: Any, snapshot: Path, scripted: Any, says: Says) -> None:
    loop, backend = world

    async def one(number: int) -> str:
        sandbox = await backend.open(SandboxSpec(snapshot=snapshot))
        try:
            policy = scripted(
                says("", ("Write", {"file_path": "mine", "content": f"{number}\n"})),
                says("", ("Bash", {"command": "cat mine"})),
                says("done"),
            )
            spec = EpisodeSpec(id=f"e{number}", task_id="t", statement="s")
            done = await run_episode(spec, policy, sandbox)
            return str(done.steps[1].observations[0].text)
        finally:
            await sandbox.close()

    async def main() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(16)))

    assert loop.run(main()) == [f"Exit code: 0\nSTDOUT:\n{number}\n\nSTDERR:\n" for number in range(16)]


def test_more_than_can_be_handed_in_is_an_ending_without_a_patch(
    inside: Inside, snapshot: Path, tmp_path: Path, scripted: Any, says: Says
) -> None:
    policy = scripted(says("", ("Bash", {"command": "head -c 70000000 /dev/urandom > big"})), says("Done."))
    spec = EpisodeSpec(id="e--0", task_id="t", statement="Anything.")
    log = StepLog(tmp_path / "log.jsonl")
    done = inside(snapshot, lambda sandbox: run_episode(spec, policy, sandbox, log))
    assert (done.exit_reason, done.patch) == ("agent", "")
    assert "large" in done.error or "more than" in done.error
    assert reference_trajectory(read_step_log(tmp_path / "log.jsonl"))["exit_reason"] == "agent"


def test_costly_calls_leave_the_sandbox_usable(inside: Inside, snapshot: Path) -> None:
    async def act(sandbox: Any) -> list[str]:
        await ask(sandbox, "Bash", command="mkdir -p $(printf 'd/%.0s' $(seq 30)); head -c 9000000 /dev/zero > zeros")
        found = await ask(sandbox, "Glob", pattern="/".join(["**"] * 7) + "/y")
        edited = await ask(sandbox, "Edit", file_path="zeros", old_string="\0", new_string="1", replace_all=True)
        return [found, edited, await ask(sandbox, "Bash", command="echo alive")]

    found, edited, alive = inside(snapshot, act)
    assert "rings" not in found
    assert edited.startswith("ValueError: old_string stands there more than")
    assert "alive" in alive
