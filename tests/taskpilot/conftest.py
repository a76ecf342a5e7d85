"""A small repository with planted bad tests, and a sandbox backend shared by the package's tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from frognano.sandbox import runner as sandbox_runner
from frognano.sandbox.local import LocalBackend

Result = TypeVar("Result")

PYPROJECT = """[project]
name = "brook"
version = "1.2"
license = "MIT"

[tool.pytest.ini_options]
addopts = "--no-such-option"
"""
FLOW = '''"""Flow of water."""


def clamp(value, low, high):
    """Return value limited to low..high, both inclusive.

    Raise ValueError if low is greater than high.
    """
    if low > high:
        raise ValueError("low is greater than high")
    return max(low, min(value, high))


def drain(level, rate=2):
    """Return the levels seen while draining by rate until nothing is left."""
    seen = []
    while level > 0:
        level -= rate
        seen.append(max(level, 0))
    return seen


class Gauge:
    """Counts readings."""

    def __init__(self, start=0):
        self.total = start

    def add(self, reading):
        """Add a reading and return the total so far; negative readings count as zero."""
        if reading < 0:
            return self.total
        self.total += reading
        return self.total
'''
WORDS = '''"""Words."""


def initials(name):
    """Return the first letters of the words of name, in upper case."""
    return "".join(word[0] for word in name.split()).upper()


def pairs(text):
    """Return "key=value" parts, separated by commas, as a dict."""
    found = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        found[key.strip()] = value.strip()
    return found


LETTERS = initials("made at import")
'''
TEST_FLOW = """import pytest

from brook.flow import Gauge, clamp, drain


def test_clamp_keeps_a_value_inside():
    assert clamp(5, 1, 10) == 5


def test_clamp_limits_both_ends():
    assert clamp(0, 1, 10) == 1
    assert clamp(11, 1, 10) == 10


def test_clamp_accepts_equal_limits():
    assert clamp(9, 4, 4) == 4


def test_clamp_rejects_crossed_limits():
    with pytest.raises(ValueError):
        clamp(1, 5, 4)


@pytest.mark.parametrize("level, rate, seen", [(3, 1, [2, 1, 0]), (3, 2, [1, 0]), (0, 1, [])])
def test_drain(level, rate, seen):
    assert drain(level, rate) == seen


def test_drain_goes_by_two():
    assert drain(4) == [2, 0]


class TestGauge:
    def test_adds(self):
        assert Gauge(1).add(2) == 3

    def test_ignores_negative(self):
        assert Gauge(1).add(-2) == 1

    def test_counts_zero(self):
        gauge = Gauge()
        gauge.add(0)
        assert gauge.total == 0
"""
TEST_WORDS = """from brook.words import LETTERS, initials, pairs


def test_initials():
    assert initials("ada lovelace") == "AL"


def test_initials_of_one_word():
    assert initials("frog") == "F"


def test_letters():
    assert LETTERS == "MAI"


def test_pairs():
    assert pairs("a=1, b = 2") == {"a": "1", "b": "2"}
"""
TEST_PLANTED = """import os
import time

import pytest

from brook.flow import clamp

_seen = []


def test_flaky():
    assert clamp(ord(os.urandom(1)), 0, 255) < 128


def test_hash_seed():
    assert list({"a", "b", "c", "d", "e", "f"})[0] == list({"a": 1, "b": 2})[0]


def test_order_first():
    _seen.append(clamp(1, 0, 3))


def test_order_second():
    assert _seen and clamp(2, 0, 3) == 2


def test_order_third():
    assert len(_seen) == 1


def test_slow():
    time.sleep(0.8)
    assert clamp(1, 0, 3) == 1


def test_failing():
    assert clamp(1, 0, 3) == 2


@pytest.mark.skip
def test_skipped():
    assert clamp(1, 0, 3) == 1


@pytest.mark.xfail
def test_expected_to_fail():
    assert clamp(1, 0, 3) == 2
"""
FILES = {
    "pyproject.toml": PYPROJECT,
    "README.md": "Brook: flow and words.\n",
    "LICENSE": "MIT License\n\nPermission is hereby granted, free of charge\n",
    "src/brook/__init__.py": "",
    "src/brook/flow.py": FLOW,
    "src/brook/words.py": WORDS,
    "tests/test_flow.py": TEST_FLOW,
    "tests/test_words.py": TEST_WORDS,
    "tests/test_planted.py": TEST_PLANTED,
}


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write ``files`` below ``folder``."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="session")
def brook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's folder."""
    return write(tmp_path_factory.mktemp("sources") / "brook", FILES)


@pytest.fixture(scope="session")
def with_backend() -> Callable[[Callable[[LocalBackend], Awaitable[Result]]], Result]:
    """Run a coroutine function with an open backend."""

    def run(work: Callable[[LocalBackend], Awaitable[Result]]) -> Result:
        async def inside() -> Result:
            async with LocalBackend({"runner": Path(sandbox_runner.__file__)}, warm=0) as backend:
                return await work(backend)

        return asyncio.run(inside())

    return run
