"""What a verdict costs: cold and forked, on a pond task of about ten tests, with the same answer.

CPU is that of every process we started (sandboxes included), by the slope between a short and a long run, so
start-up does not enter. The machine's speed of the moment is printed beside it: CPU seconds of a fixed loop,
before and after. Run: ``python perf/verdicts.py [verdicts]``.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from frognano.records import GradingTests, Origin, Runtime, Task
from frognano.sandbox import runner
from frognano.sandbox.local import LocalBackend
from frognano.tadpole import pond
from frognano.tasks.diff import make_patch
from frognano.tasks.folder import TaskContent, write_task
from frognano.tasks.forked import ForkedJudge
from frognano.tasks.grader import Grader, GraderSettings
from frognano.tasks.patch import FILE, Entry
from frognano.tasks.snapshot import SnapshotStore
from frognano.tasks.testrun import TestRun

MODULE, TESTS = "pond/ranges.py", "tests/test_ranges.py"
RIGHT, WRONG = b"<", b"<="
WANTED = 10


def calibration() -> float:
    """CPU seconds of a fixed loop."""
    began = time.process_time()
    sum(number * number for number in range(2_000_000))
    return time.process_time() - began


@asynccontextmanager
async def cold(store: SnapshotStore) -> AsyncIterator[Grader]:
    async with LocalBackend({"runner": Path(runner.__file__)}, warm=1) as backend:
        yield Grader(backend, store, GraderSettings(workers=1))


@asynccontextmanager
async def forked(store: SnapshotStore) -> AsyncIterator[Grader]:
    async with ForkedJudge(store) as judge:
        yield Grader(None, store, GraderSettings(workers=1), judge)


async def make_task(store: SnapshotStore, place: Path) -> tuple[Task, Path, bytes]:
    """The first change of one comparison in the module that breaks tests, as a task."""
    base = store.add(Path(str(pond.__path__[0])))
    source = store.read(base, MODULE)
    async with forked(store) as grader:
        clean = await grader.run_tests(TestRun(base, Runtime(), (TESTS,)))
        at = -1
        while (at := source.find(b" < ", at + 1)) >= 0:
            broken = source[:at] + b" <= " + source[at + 3 :]
            report = await grader.run_tests(TestRun(base, Runtime(), (TESTS,), changes={MODULE: broken}))
            f2p = sorted(clean.having("passed") - report.having("passed"))
            if f2p and report.sound:
                break
    p2p = sorted(report.having("passed"))[: WANTED - len(f2p)]
    snapshot = store.derive(base, {MODULE: broken})
    gold = make_patch({MODULE: Entry(FILE, broken)}, {MODULE: Entry(FILE, source)})
    task = Task(
        id="pond-ranges",
        statement="A limit is wrong.\n",
        snapshot=snapshot,
        tests=GradingTests(f2p=tuple(f2p), p2p=tuple(p2p), files=(TESTS,)),
        origin=Origin(repository="pond", base=base, module=MODULE),
    )
    content = TaskContent(gold, {TESTS: Entry(FILE, store.read(base, TESTS))})
    return task, write_task(place, task, content, store), gold


async def verdicts(
    how: object, store: SnapshotStore, made: tuple[Task, Path, bytes], count: int
) -> tuple[float, float]:
    """(wall seconds, CPU seconds) of ``count`` verdicts, gold and empty in turn; start and end included in the CPU."""
    task, folder, gold = made
    before = _cpu()
    async with AsyncExitStack() as stack:
        grader = await stack.enter_async_context(how(store))  # type: ignore[operator]
        began = time.perf_counter()
        for number in range(count):
            verdict = await grader.grade(task, folder, gold if number % 2 else b"")
            assert verdict.reward == number % 2, verdict
        wall = time.perf_counter() - began
    return wall, _cpu() - before


def _cpu() -> float:
    ours, theirs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return ours.ru_utime + ours.ru_stime + theirs.ru_utime + theirs.ru_stime


async def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        store = SnapshotStore(Path(name) / "store")
        made = await make_task(store, Path(name) / "pool")
        tests = made[0].tests
        print(f"{len(tests.f2p)} hidden and {len(tests.p2p)} guarding tests of {TESTS}")
        print(f"fixed loop: {calibration():.3f} CPU s")
        costs = {}
        for label, how, few, many in (("cold", cold, 2, 2 + count // 5), ("forked", forked, 4, 4 + count)):
            wall_few, cpu_few = await verdicts(how, store, made, few)
            wall_many, cpu_many = await verdicts(how, store, made, many)
            wall, cpu = (wall_many - wall_few) / (many - few), (cpu_many - cpu_few) / (many - few)
            costs[label] = cpu
            print(f"{label:7} {1000 * cpu:7.1f} CPU ms, {1000 * wall:7.1f} wall ms per verdict ({many - few} verdicts)")
        print(f"ratio   {costs['cold'] / costs['forked']:7.1f}")
        print(f"fixed loop: {calibration():.3f} CPU s")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
