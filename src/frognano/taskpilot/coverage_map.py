"""The coverage map: which test executes which lines, and calls that tests make with plain arguments.

Traced inside a sandbox by ``inside/frog_tracer.py``. What runs while the tests are imported belongs to no test and
is kept apart. Work done in child processes is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from frognano.config.taskpilot import SynthesisSettings
from frognano.records import Record
from frognano.taskpilot.baseline import Baseline
from frognano.taskpilot.bench import Answer, Bench, Benches
from frognano.taskpilot.journal import Journal
from frognano.taskpilot.mutate import Function


class TracedCall(Record):
    """A call of a repository function whose arguments can be written down."""

    file: str
    line: int
    """First line of the function, decorators included."""
    name: str
    arguments: str
    test: str


class CoverageMap(Record):
    """Lines by test and file."""

    tests: dict[str, dict[str, tuple[int, ...]]]
    imported: dict[str, tuple[int, ...]] = {}
    calls: tuple[TracedCall, ...] = ()


async def map_coverage(
    benches: Benches, baseline: Baseline, settings: SynthesisSettings, journal: Journal
) -> CoverageMap:
    """Trace one run of the stable tests, or take what the journal kept."""
    kept = journal.get("coverage", "")
    if kept is None:

        async def trace(bench: Bench, left_out: list[str]) -> list[Answer]:
            return await bench.ask("trace", settings.suite_timeout_s, left_out=left_out)

        async for _, answers in benches.each([list(baseline.set_aside)], trace):
            kept = answers[-1]
            journal.put("coverage", "", kept)
    stable = set(baseline.stable)
    traced = CoverageMap.model_validate(kept)
    return traced.model_copy(update={"tests": {test: found for test, found in traced.tests.items() if test in stable}})


class Reach:
    """Answers by line: which stable tests execute it, and whether it runs at import time."""

    def __init__(self, coverage: CoverageMap) -> None:
        self._by_line: dict[tuple[str, int], list[str]] = {}
        for test, files in coverage.tests.items():
            for file, lines in files.items():
                for line in lines:
                    self._by_line.setdefault((file, line), []).append(test)
        self._imported = {(file, line) for file, lines in coverage.imported.items() for line in lines}

    def tests(self, file: str, lines: range) -> tuple[str, ...]:
        """Tests that execute any of ``lines``."""
        found = (test for line in lines for test in self._by_line.get((file, line), []))
        return tuple(dict.fromkeys(found))

    def at_import(self, file: str, lines: range) -> bool:
        """True when any of ``lines`` runs while the tests are imported."""
        return any((file, line) in self._imported for line in lines)

    def of_module(self, file: str, bodies: Mapping[str, range]) -> tuple[str, ...]:
        """Tests that execute the body of any function of the module."""
        found = (test for lines in bodies.values() for test in self.tests(file, lines))
        return tuple(dict.fromkeys(found))


def body_lines(function: Function) -> range:
    """Lines of a function's body, its header apart."""
    node = function.node
    assert node.end_lineno is not None
    return range(node.body[0].lineno, node.end_lineno + 1)


def changed_lines(function: Function, line: int) -> range:
    """Lines that run when the change at ``line`` runs: its statement, or the whole body for a change in the header."""
    body = body_lines(function)
    if line < body.start:
        return body
    best = body
    for node in ast.walk(function.node):
        if isinstance(node, ast.stmt) and node is not function.node and node.end_lineno is not None:
            end = node.body[0].lineno - 1 if isinstance(node, _BLOCKS) else node.end_lineno
            if node.lineno <= line <= max(end, node.lineno):
                best = range(node.lineno, max(end, node.lineno) + 1)
    return best


_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.AsyncWith)
