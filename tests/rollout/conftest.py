"""One small task, real sandboxes and a real grader, shared by the tests of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from frognano.config.leaf import LeafSettings
from frognano.policy.scripted import ScriptedPolicy
from frognano.records import GradingTests, Origin, Runtime, Task
from frognano.rollout.episodes import Attempt, EpisodeRunner, PlacedTask
from frognano.rollout.grading import Gradings
from frognano.sandbox import runner as resident
from frognano.sandbox.local import LocalBackend
from frognano.tasks.diff import make_patch
from frognano.tasks.folder import TaskContent, write_task
from frognano.tasks.grader import Grader, open_grader
from frognano.tasks.patch import FILE, Entry
from frognano.tasks.snapshot import SnapshotStore

BROKEN = b"def hop(n):\n    return n - 1\n"


class World:
    """What an episode needs; ``wait`` runs a coroutine in the one event loop."""

    def __init__(self, loop: asyncio.Runner, backend: LocalBackend, grader: Grader, store: SnapshotStore) -> None:
        self.wait: Callable[[Any], Any] = loop.run
        self.backend, self.grader, self.store = backend, grader, store

    def runner(self, script: Any, **options: Any) -> EpisodeRunner:
        values: dict[str, Any] = {"backend": self.backend, "store": self.store, "gradings": Gradings(self.grader)}
        policy = script if hasattr(script, "open") else ScriptedPolicy(script)
        return EpisodeRunner(**(values | {"policy": policy} | options))


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    store = SnapshotStore(tmp_path_factory.mktemp("store"))
    with asyncio.Runner() as loop:
        backend = LocalBackend({"runner": Path(resident.__file__)}, warm=1)
        loop.run(backend.__aenter__())
        graders = open_grader(backend, store)
        yield World(loop, backend, loop.run(graders.__aenter__()), store)
        loop.run(graders.__aexit__(None, None, None))
        loop.run(backend.__aexit__())


@pytest.fixture(scope="session")
def placed(world: World, tmp_path_factory: pytest.TempPathFactory) -> PlacedTask:
    files = {"pad.py": Entry(FILE, BROKEN), "tests/test_other.py": Entry(FILE, b"def test_other():\n    pass\n")}
    snapshot = world.store.add_files(files)
    hidden = {"tests/test_hop.py": Entry(FILE, b"from pad import hop\n\n\ndef test_hop():\n    assert hop(1) == 2\n")}
    task = Task(
        id="pad-hop-1",
        statement="hop(1) gives 0 and should give 2.\n",
        snapshot=snapshot,
        runtime=Runtime(test_timeout_s=60.0),
        tests=GradingTests(f2p=("tests/test_hop.py::test_hop",), files=tuple(hidden)),
        origin=Origin(repository="pad", base=snapshot, module="pad.py", function="hop"),
    )
    gold = make_patch(files, {**files, "pad.py": Entry(FILE, BROKEN.replace(b"n - 1", b"n + 1"))})
    folder = write_task(tmp_path_factory.mktemp("pool"), task, TaskContent(gold, hidden), world.store)
    return PlacedTask(task, folder)


@pytest.fixture
def attempts(placed: PlacedTask) -> Callable[..., list[Attempt]]:
    def make(count: int = 1, scope: str = "g") -> list[Attempt]:
        settings = LeafSettings(max_turns=4)
        return [Attempt(f"{scope}-{n}", scope, placed, n, settings) for n in range(count)]

    return make
