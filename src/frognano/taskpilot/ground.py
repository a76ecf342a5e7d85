"""The ground that tasks grow on: the clean repository, stored, measured and mapped."""

from __future__ import annotations

from dataclasses import dataclass

from frognano.records import Runtime
from frognano.taskpilot.baseline import Baseline
from frognano.taskpilot.coverage_map import CoverageMap, Reach, body_lines
from frognano.taskpilot.mutate import Module
from frognano.taskpilot.repository import Repository
from frognano.tasks.snapshot import SnapshotStore


class Modules:
    """The repository's parsed modules, and which tests reach each."""

    def __init__(self, repository: Repository, coverage: CoverageMap) -> None:
        self.parsed = {path: Module(repository.read(path)) for path in repository.modules}
        self.reach = Reach(coverage)
        self.calls = coverage.calls
        self._tests: dict[str, tuple[str, ...]] = {}

    def tests_of_function(self, path: str, name: str) -> tuple[str, ...]:
        """Stable tests that execute the body of a function."""
        bodies = {f.name: body_lines(f) for f in self.parsed[path].functions() if f.name == name}
        return self.reach.of_module(path, bodies)

    def tests_of(self, path: str) -> tuple[str, ...]:
        """Stable tests that execute a function of the module."""
        if path not in self._tests:
            bodies = {function.name: body_lines(function) for function in self.parsed[path].functions()}
            self._tests[path] = self.reach.of_module(path, bodies)
        return self._tests[path]


@dataclass(frozen=True)
class Ground:
    """One repository at one state."""

    repository: Repository
    store: SnapshotStore
    base: str
    """Digest of the clean snapshot."""
    runtime: Runtime
    baseline: Baseline
    modules: Modules
