"""How long one tool call takes through the whole stack, against one Python process per call and docker exec.

Run: ``python perf/tool_call.py [--calls 200]``. Prints one table: wall milliseconds on this machine, and the rivals
as multiples of ours, taken in the same run. Nothing is compared across runs; on a busy machine the best time says
more about the program, the median more about the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frognano.leaf.profile import load_profile
from frognano.leaf.tools import run_tool
from frognano.records import ToolCall
from frognano.sandbox import runner
from frognano.sandbox.contract import SandboxSpec
from frognano.sandbox.local import LocalBackend

RUNNER = Path(runner.__file__)
TARGET_MS = {"Read": 1.0, "Edit": 1.0, "Glob": 1.0, "Bash": 4.0}


def calls(number: int) -> dict[str, dict[str, Any]]:
    """One call of each tool; the edit goes back and forth."""
    old, new = ("value = 1", "value = 2") if number % 2 == 0 else ("value = 2", "value = 1")
    return {
        "Read": {"file_path": "pkg/m1.py"},
        "Edit": {"file_path": "pkg/m2.py", "old_string": old, "new_string": new},
        "Glob": {"pattern": "pkg/*.py"},
        "Bash": {"command": "true"},
    }


def make_repository(folder: Path) -> None:
    """Forty modules of sixty lines."""
    (folder / "pkg").mkdir()
    for number in range(40):
        body = "".join(f"def f{line}(x):\n    return x + {line}\n" for line in range(30))
        (folder / "pkg" / f"m{number}.py").write_text(f"value = 1\n{body}")


async def ours(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each call, from the call's arguments to the text the model reads."""
    times: dict[str, list[float]] = {name: [] for name in TARGET_MS}
    async with LocalBackend({"runner": RUNNER}, warm=0) as backend:
        sandbox = await backend.open(SandboxSpec(snapshot=folder))
        for number in range(rounds):
            for name, arguments in calls(number).items():
                call = ToolCall(id="1", name=name, arguments=arguments)
                began = time.perf_counter()
                answer = await run_tool(sandbox, call, load_profile("leaf"), sandbox.workdir)
                times[name].append((time.perf_counter() - began) * 1e3)
                assert not answer.failed, answer.text
    return times


PROCESS_PER_CALL = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("runner", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
request = json.load(sys.stdin)
print(json.dumps(module.OPS[request["op"]](**request["args"])))
"""


def operations(folder: str, number: int) -> dict[str, dict[str, Any]]:
    """The same four calls as the runner's operations."""
    edit = calls(number)["Edit"]
    return {
        "Read": {"op": "read", "args": {"workdir": folder, "path": "pkg/m1.py"}},
        "Edit": {
            "op": "edit",
            "args": {"workdir": folder, "path": "pkg/m2.py", "old": edit["old_string"], "new": edit["new_string"]},
        },
        "Glob": {"op": "glob", "args": {"workdir": folder, "pattern": "pkg/*.py", "path": "."}},
        "Bash": {"op": "bash", "args": {"workdir": folder, "command": "true", "timeout_s": 20}},
    }


def one_process_per_call(folder: Path, rounds: int, prefix: list[str], script: str) -> dict[str, list[float]]:
    """Milliseconds of each call when every call starts a Python of its own (behind ``prefix``)."""
    times: dict[str, list[float]] = {name: [] for name in TARGET_MS}
    for number in range(rounds):
        for name, request in operations(str(folder), number).items():
            began = time.perf_counter()
            subprocess.run(
                [*prefix, "-I", "-S", "-c", PROCESS_PER_CALL, script],
                input=json.dumps(request).encode(),
                stdout=subprocess.DEVNULL,
                check=True,
            )
            times[name].append((time.perf_counter() - began) * 1e3)
    return times


def docker_exec(rounds: int) -> dict[str, list[float]] | str:
    """The same in a running container, or why not."""
    if shutil.which("docker") is None:
        return "skipped: docker is not installed"
    image = subprocess.run(["docker", "images", "-q", "python"], capture_output=True, text=True, check=False)
    if image.returncode != 0:
        return "skipped: the docker engine does not run here"
    if not image.stdout.split():
        return "skipped: no local image named python (docker pull python:3.11)"
    start = ["docker", "run", "-d", "--rm", "--network", "none", image.stdout.split()[0], "sleep", "600"]
    container = subprocess.run(start, capture_output=True, text=True, check=True).stdout.strip()
    try:
        with tempfile.TemporaryDirectory() as name:
            make_repository(Path(name))
            shutil.copy(RUNNER, name)
            subprocess.run(["docker", "cp", f"{name}/.", f"{container}:/app"], check=True, capture_output=True)
        prefix = ["docker", "exec", "-i", container, "python3"]
        return one_process_per_call(Path("/app"), rounds, prefix, "/app/runner.py")
    finally:
        subprocess.run(["docker", "rm", "-f", container], check=False, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200, help="calls of each tool")
    rounds = parser.parse_args().calls
    few = max(5, rounds // 10)
    rivals: dict[str, Callable[[Path], dict[str, list[float]] | str]] = {
        "one Python process per call": lambda f: one_process_per_call(f, few, [sys.executable], str(RUNNER)),
        "docker exec": lambda _: docker_exec(few),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_repository(folder)
        own = asyncio.run(ours(folder, rounds))
        others = {rival: measure(folder) for rival, measure in rivals.items()}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(
        f"Tool calls, {datetime.date.today()}, commit {commit.stdout.strip() or '?'}, {os.cpu_count()} cores, ", end=""
    )
    print(f"load {os.getloadavg()[0]:.1f}, {rounds} calls of each tool, wall milliseconds\n")
    print("| tool | median | best | p90 | target | " + " | ".join(f"{rival} (ratio)" for rival in others) + " |")
    print("|---|---|---|---|---|" + "---|" * len(others))
    for tool, times in own.items():
        median = statistics.median(times)
        cells = [
            f"{median:.2f}",
            f"{min(times):.2f}",
            f"{sorted(times)[int(len(times) * 0.9)]:.2f}",
            f"≤ {TARGET_MS[tool]:g}",
        ]
        for found in others.values():
            if isinstance(found, str):
                cells.append(found)
            else:
                theirs = statistics.median(found[tool])
                cells.append(f"{theirs:.1f} ({theirs / median:.0f}×)")
        print(f"| {tool} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
