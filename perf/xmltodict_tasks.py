"""Validated, graded tasks from xmltodict's own source distribution, with the funnel printed.

    python perf/xmltodict_tasks.py [--tasks 12] [--out DIR] [--source DIR]

The distribution is fetched by pip into a temporary folder unless ``--source`` names an unpacked one; nothing of it
is kept in this repository. Exits with 1 when fewer than ten tasks are confirmed, with 2 when it cannot be fetched.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from frognano.config.taskpilot import SynthesisSettings
from frognano.sandbox import runner
from frognano.sandbox.local import LocalBackend
from frognano.taskpilot.pilot import synthesise
from frognano.taskpilot.report import SynthesisReport
from frognano.taskpilot.repository import open_repository, unpack
from frognano.tasks.snapshot import SnapshotStore

NAME = "xmltodict==1.0.4"
WANTED = 10


def fetch(folder: Path) -> Path:
    """Download and unpack the source distribution. Exits with 2 when pip cannot."""
    options = ["--no-binary", ":all:", "--no-deps", "--no-build-isolation", "-q", "-d", str(folder)]
    done = subprocess.run([sys.executable, "-m", "pip", "download", *options, NAME], check=False)
    archives = list(folder.glob("xmltodict-*.tar.gz"))
    if done.returncode or not archives:
        print(f"{NAME} cannot be fetched here", file=sys.stderr)
        sys.exit(2)
    return unpack(archives[0], folder / "source")


async def make(source: Path, out: Path, tasks: int) -> SynthesisReport:
    """Synthesise ``tasks`` tasks with the forked judge."""
    repository = open_repository(source)
    settings = SynthesisSettings(train_tasks=tasks, validation_tasks=0, held_out_tasks=0)
    store = SnapshotStore(out / "store")
    residents = {"runner": Path(runner.__file__)}
    async with LocalBackend(residents) as backend:
        return await synthesise(repository, settings, backend, store, out / "pool", progress=tell)


def tell(phase: str, done: int, total: int) -> None:
    """One line per phase on a terminal."""
    print(f"\r{phase} {done}/{total or '?'}   ", end="", file=sys.stderr, flush=True)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Make tasks from xmltodict's source distribution.")
    parser.add_argument("--tasks", type=int, default=12, help="validated tasks wanted")
    parser.add_argument("--out", type=Path, help="folder for pool and snapshots (default: temporary)")
    parser.add_argument("--source", type=Path, help="unpacked source distribution")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        source = options.source or fetch(Path(name) / "download")
        report = asyncio.run(make(source, options.out or Path(name), options.tasks))
    print(f"\n{report.text()}\nwall seconds: {time.monotonic() - began:.1f}")
    sys.exit(0 if report.count >= WANTED else 1)


if __name__ == "__main__":
    main()
