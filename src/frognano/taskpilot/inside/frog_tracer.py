"""Which lines of the repository each test executes, by ``sys.settrace``; and calls with plain arguments.

A pytest plug-in. Lines that run while the tests are imported are kept apart. Threads started by a test are traced
too; child processes are not. ``frog_bench`` starts it before pytest imports the tests.
"""

from __future__ import annotations

import math
import sys
import threading
from types import CodeType, FrameType
from typing import Any

import pytest

CALLS_PER_FUNCTION = 24
ARGUMENT_CHARS = 120
_PLAIN = (int, float, str, bytes, bool, type(None))


class Tracer:
    """Lines per test and file, and for each function a few calls that can be written down."""

    def __init__(self, files: dict[str, str]) -> None:
        """``files``: absolute path → the path to report."""
        self._files = files
        self._lines: dict[str, set[int]] = {}
        self._seen: dict[CodeType, set[str]] = {}
        self._test = ""
        self.tests: dict[str, dict[str, list[int]]] = {}
        self.imported: dict[str, list[int]] = {}
        self.calls: list[dict[str, Any]] = []

    def start(self, test: str) -> None:
        """Lines from now on belong to ``test``; the empty name is import time."""
        self._test = test
        self._lines = {}
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def stop(self) -> None:
        """Keep what was traced since ``start``; repeated runs of one test add up."""
        sys.settrace(None)
        threading.settrace(None)
        into = self.tests.setdefault(self._test, {}) if self._test else self.imported
        for path, lines in self._lines.items():
            into[path] = sorted(lines.union(into.get(path, [])))

    def pytest_collection_finish(self) -> None:
        self.stop()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        self.start(item.nodeid)
        yield
        self.stop()

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        path = self._files.get(frame.f_code.co_filename)
        if path is None:
            return None
        lines = self._lines.setdefault(path, set())
        lines.add(frame.f_lineno)
        if self._test:
            self._note_call(path, frame)

        def local(inner: FrameType, kind: str, value: Any) -> Any:
            lines.add(inner.f_lineno)
            return local

        return local

    def _note_call(self, path: str, frame: FrameType) -> None:
        code = frame.f_code
        seen = self._seen.setdefault(code, set())
        if len(seen) >= CALLS_PER_FUNCTION or code.co_flags & 0x0C or code.co_name.startswith("<"):
            return
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[:count]
        values = [frame.f_locals.get(name) for name in names]
        if not all(plain(value) for value in values):
            return
        positional = [repr(value) for value in values[: code.co_argcount]]
        named = [f"{name}={value!r}" for name, value in zip(names, values)]
        text = ", ".join(positional + named[code.co_argcount :])
        if len(text) <= ARGUMENT_CHARS and text not in seen:
            seen.add(text)
            call = {"file": path, "line": code.co_firstlineno, "name": code.co_name, "arguments": text}
            self.calls.append({**call, "test": self._test})


def plain(value: Any, depth: int = 3) -> bool:
    """True for values whose ``repr`` makes them again: numbers, text, and containers of such."""
    kind = type(value)
    if kind in _PLAIN:
        return not (kind is float and (math.isnan(value) or value in (float("inf"), float("-inf"))))
    if depth and kind in (list, tuple, set):
        return len(value) <= 20 and bool(value or kind is not set) and all(plain(part, depth - 1) for part in value)
    if depth and kind is dict:
        return len(value) <= 20 and all(plain(part, depth - 1) for pair in value.items() for part in pair)
    return False
