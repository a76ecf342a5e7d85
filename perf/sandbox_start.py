"""From asking for a sandbox to the first answered Read, warm and cold, against bubblewrap and docker run.

Run: ``python perf/sandbox_start.py [--rounds 30]``. Two repositories, small and of many files, show that the warm
start does not depend on the size. One table, wall milliseconds on this machine, rivals as multiples of our warm
start, all in the same run; on a busy machine the best time says more about the program than the median.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from frognano.leaf.profile import load_profile
from frognano.leaf.tools import run_tool
from frognano.records import ToolCall
from frognano.sandbox import runner
from frognano.sandbox.contract import SandboxSpec
from frognano.sandbox.local import LocalBackend

RUNNER = Path(runner.__file__)
READ = ToolCall(id="1", name="Read", arguments={"file_path": "code.py"})


def make_repository(folder: Path, files: int) -> None:
    """``files`` files of a kilobyte in folders of a hundred, and the one that is read."""
    for number in range(files):
        path = folder / f"d{number // 100}" / f"f{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x = 1\n" * 170)
    (folder / "code.py").write_text("def answer():\n    return 41\n")


async def ours(folder: Path, rounds: int, warm: int) -> dict[str, list[float]]:
    """Milliseconds of open and first Read together, of the patch after one edit, and of the end."""
    times: dict[str, list[float]] = {"start": [], "changes": [], "close": []}
    async with LocalBackend({"runner": RUNNER}, warm=warm, prewarm=(SandboxSpec(snapshot=folder),)) as backend:
        for _ in range(rounds):
            await backend.settled()
            began = time.perf_counter()
            sandbox = await backend.open(SandboxSpec(snapshot=folder))
            answer = await run_tool(sandbox, READ, load_profile("leaf"), sandbox.workdir)
            times["start"].append((time.perf_counter() - began) * 1e3)
            assert "return 41" in answer.text, answer.text
            await sandbox.request("edit", {"path": "code.py", "old": "41", "new": "42"}, 10)
            began = time.perf_counter()
            assert b"+    return 42" in await sandbox.changes()
            times["changes"].append((time.perf_counter() - began) * 1e3)
            began = time.perf_counter()
            await sandbox.close()
            times["close"].append((time.perf_counter() - began) * 1e3)
    return times


def _timed(command: list[str], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - began) * 1e3)
    return times


def bubblewrap(folder: Path, rounds: int) -> list[float]:
    """Overlay, bubblewrap and a Python that reads the file, all started for one read."""
    inside = f"{sys.executable} -I -S -c 'print(open(\"/mnt/code.py\").read())'"
    script = (
        "mount -t tmpfs t /tmp && mkdir /tmp/u /tmp/w /tmp/m && mount --bind $0 /tmp/m && "
        "mount -t overlay o -o lowerdir=$0,upperdir=/tmp/u,workdir=/tmp/w /tmp/m && "
        f"exec bwrap --ro-bind / / --bind /tmp/m /mnt --unshare-all --proc /proc --dev /dev {inside}"
    )
    flags = "-m" if os.geteuid() == 0 else "-Urm"
    # The repository must not lie below /tmp, which the script covers.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        shutil.copytree(folder, name, dirs_exist_ok=True)
        return _timed(["unshare", flags, "sh", "-c", script, name], rounds)


def docker_run(folder: Path, rounds: int) -> list[float] | str:
    """A container with a copy of the repository mounted, and a Python that reads the file; or why not."""
    if shutil.which("docker") is None:
        return "skipped: docker is not installed"
    image = subprocess.run(["docker", "images", "-q", "python"], capture_output=True, text=True, check=False)
    if image.returncode != 0:
        return "skipped: the docker engine does not run here"
    if not image.stdout.split():
        return "skipped: no local image named python (docker pull python:3.11)"
    command = ["docker", "run", "--rm", "--network", "none", "-v", f"{folder}:/app", image.stdout.split()[0]]
    return _timed([*command, "python3", "-c", "print(open('/app/code.py').read())"], rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--files", type=int, default=20000, help="files of the large repository")
    options = parser.parse_args()
    few = max(5, options.rounds // 3)
    rows: dict[str, list[float] | str] = {}
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        small, large = Path(one), Path(two)
        make_repository(small, 3)
        make_repository(large, options.files)
        warm = asyncio.run(ours(small, options.rounds, warm=2))
        warm_large = asyncio.run(ours(large, options.rounds, warm=2))
        cold = asyncio.run(ours(small, few, warm=0))
        rows["warm pool, small repository"] = warm["start"]
        rows[f"warm pool, {options.files} files"] = warm_large["start"]
        rows["cold (also the cost of refilling one slot)"] = cold["start"]
        rows["bubblewrap + overlay + Python, cold"] = bubblewrap(small, few)
        rows["docker run + Python"] = docker_run(small, few)
        rows["patch of one edited file, small repository"] = warm["changes"]
        rows[f"patch of one edited file, {options.files} files"] = warm_large["changes"]
        rows["close, until the last process is dead"] = warm["close"]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"Sandbox start to first answered Read (target ≤ 40 ms warm), {datetime.date.today()}, ", end="")
    print(f"commit {commit.stdout.strip() or '?'}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print("| what | median ms | best | p90 | ratio to warm |\n|---|---|---|---|---|")
    reference = statistics.median(warm["start"])
    for name, times in rows.items():
        if isinstance(times, str):
            print(f"| {name} | {times} | | | |")
            continue
        median = statistics.median(times)
        late = sorted(times)[int(len(times) * 0.9)]
        print(f"| {name} | {median:.1f} | {min(times):.1f} | {late:.1f} | {median / reference:.1f}× |")


if __name__ == "__main__":
    main()
