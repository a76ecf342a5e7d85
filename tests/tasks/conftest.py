"""A tiny repository with one bug, its task, and one sandbox backend for all tests of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from frognano.records import GradingTests, Origin, Runtime, Task, Verdict
from frognano.sandbox import runner as sandbox_runner
from frognano.sandbox.local import LocalBackend
from frognano.tasks.diff import make_patch
from frognano.tasks.folder import TaskContent, write_task
from frognano.tasks.forked import ForkedJudge
from frognano.tasks.grader import Grader
from frognano.tasks.patch import FILE, Entry
from frognano.tasks.snapshot import SnapshotStore

FIXED = b'''"""Measures."""


def clamp(value, low, high):
    """Limit value to [low, high]."""
    return max(low, min(value, high))


def parts(text, sep=","):
    """Split and strip; empty text has no parts."""
    if not text:
        return []
    return [part.strip() for part in text.split(sep)]


def check(flag):
    """Raise unless flag."""
    if not flag:
        raise ValueError("no flag")
    return flag
'''
BROKEN = FIXED.replace(b"min(value, high)", b"min(value, low)")
TEST_CLAMP = b"""import pytest

from gauge.core import clamp


@pytest.mark.parametrize(("value", "wanted"), [(5, 3), (2, 2)], ids=["a - b]", "1 + 1"])
def test_upper(value, wanted):
    assert clamp(value, 0, 3) == wanted


def test_inside_the_limits():
    result = clamp(2, 1, 3)
    assert result == 2


class TestLow:
    def test_lower(self):
        assert clamp(-1, 0, 3) == 0
"""
VISIBLE_CLAMP = b"""from gauge.core import clamp


class TestLow:
    def test_lower(self):
        assert clamp(-1, 0, 3) == 0
"""
TEST_PARTS = b"""import unittest

import pytest

from gauge.core import check, parts


def test_parts():
    assert parts("a, b") == ["a", "b"]


def test_check():
    with pytest.raises(ValueError):
        check(False)


@pytest.mark.skip(reason="not here")
def test_skipped():
    assert False


class PartsCase(unittest.TestCase):
    def test_empty(self):
        self.assertEqual(parts(""), [])
"""
FILES: dict[str, bytes] = {
    "gauge/__init__.py": b"",
    "gauge/core.py": BROKEN,
    "gauge/crlf.py": b"A = 1\r\nB = 2\r\n",
    "tests/conftest.py": b"import pytest\n\n\n@pytest.fixture\ndef three():\n    return 3\n",
    "tests/test_clamp.py": VISIBLE_CLAMP,
    "tests/test_parts.py": TEST_PARTS,
    "pyproject.toml": b'[tool.pytest.ini_options]\naddopts = "-ra"\n',
    "README.md": b"Gauge\n",
}
F2P = (
    "tests/test_clamp.py::test_upper[a - b]]",
    "tests/test_clamp.py::test_upper[1 + 1]",
    "tests/test_clamp.py::test_inside_the_limits",
)
P2P = (
    "tests/test_clamp.py::TestLow::test_lower",
    "tests/test_parts.py::test_parts",
    "tests/test_parts.py::test_check",
    "tests/test_parts.py::PartsCase::test_empty",
)


def without_names(detail: str) -> str:
    """Names of planted tests are drawn anew for every run."""
    return detail.split(": ", 1)[0] if detail.startswith("planted") else detail


@dataclass
class Case:
    """The task, and grading as plain calls."""

    fixed = FIXED
    broken = BROKEN
    store: SnapshotStore
    task: Task
    folder: Path
    gold: bytes
    grader: Grader
    """Cold grading."""
    forked: Grader
    """Grading by the forked judge."""
    wait: Callable[[Any], Any]

    def patch(self, changes: Mapping[str, bytes | Entry | None]) -> bytes:
        """A patch that writes (or removes) the given files of the snapshot."""
        before = self.store.files(self.task.snapshot)
        after = dict(before)
        for name, value in changes.items():
            if value is None:
                del after[name]
            else:
                after[name] = value if isinstance(value, Entry) else Entry(FILE, value)
        return make_patch(before, after)

    def write(self, task: Task, gold: bytes, tests: Mapping[str, Entry]) -> Path:
        """Another task beside this one."""
        return write_task(self.folder.parent, task, TaskContent(gold, tests), self.store)

    def grade(self, patch: bytes, task: Task | None = None, **options: int) -> Verdict:
        """The verdict of the forked judge, after the cold judge has said the same."""
        verdicts: list[Verdict] = []
        for grader in (self.grader, self.forked):
            verdict = self.wait(grader.grade(task or self.task, self.folder, patch, **options))
            # How far a run came before its time was up depends on the machine.
            outcomes = {} if verdict.reason == "test_timeout" else verdict.outcomes
            plain = {"elapsed_s": 0.0, "detail": without_names(verdict.detail), "outcomes": outcomes}
            verdicts.append(verdict.model_copy(update=plain))
        assert verdicts[0] == verdicts[1]
        return verdict


@pytest.fixture(scope="session")
def loop_runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def backend(loop_runner: asyncio.Runner) -> Iterator[LocalBackend]:
    made = LocalBackend({"runner": Path(sandbox_runner.__file__)}, warm=1)
    loop_runner.run(made.__aenter__())
    yield made
    loop_runner.run(made.__aexit__())


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> SnapshotStore:
    return SnapshotStore(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def task(store: SnapshotStore) -> Task:
    snapshot = store.add_files({name: Entry(FILE, data) for name, data in FILES.items()})
    return Task(
        id="gauge-core-clamp-1",
        statement="clamp() returns the lower limit too often.\n",
        snapshot=snapshot,
        runtime=Runtime(test_timeout_s=20.0),
        tests=GradingTests(f2p=F2P, p2p=P2P, files=("tests/test_clamp.py", "tests/test_parts.py")),
        origin=Origin(repository="gauge", base=snapshot, module="gauge/core.py", function="clamp"),
    )


@pytest.fixture(scope="session")
def content(task: Task, store: SnapshotStore) -> TaskContent:
    before = store.files(task.snapshot)
    gold = make_patch(before, {**before, "gauge/core.py": Entry(FILE, FIXED)})
    tests = {"tests/test_clamp.py": Entry(FILE, TEST_CLAMP), "tests/test_parts.py": Entry(FILE, TEST_PARTS)}
    return TaskContent(gold, tests)


@pytest.fixture(scope="session")
def judge(store: SnapshotStore, loop_runner: asyncio.Runner) -> Iterator[ForkedJudge]:
    made = ForkedJudge(store)
    loop_runner.run(made.__aenter__())
    yield made
    loop_runner.run(made.__aexit__())


@pytest.fixture(scope="session")
def case(  # noqa: PLR0917
    task: Task,
    content: TaskContent,
    store: SnapshotStore,
    backend: LocalBackend,
    judge: ForkedJudge,
    loop_runner: asyncio.Runner,
    tmp_path_factory: pytest.TempPathFactory,
) -> Case:
    folder = write_task(tmp_path_factory.mktemp("pool"), task, content, store)
    graders = Grader(backend, store), Grader(None, store, judge=judge)
    return Case(store, task, folder, content.gold, *graders, loop_runner.run)
