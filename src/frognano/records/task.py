"""A task: what the solver is told, where it works, and what decides whether it did the work.

The paper's five parts (statement, snapshot, runtime, gold patch, grading tests) are named here; their bytes
lie in the task's folder (see ``frognano.tasks``). Test ids are pytest node ids relative to the repository root.
"""

from __future__ import annotations

from typing import Literal

from frognano.records.base import Record

Kind = Literal["bug-fix", "feature", "refactor", "performance", "migration"]
Split = Literal["train", "validation", "held-out"]


class Runtime(Record):
    """How the repository runs inside a sandbox."""

    workdir: str = "/app"
    """Where the repository stands inside the sandbox."""
    pythonpath: tuple[str, ...] = (".",)
    """Folders put on PYTHONPATH, relative to ``workdir``."""
    env: dict[str, str] = {}
    """Further environment variables."""
    image: str = ""
    """Container image, for backends that use one."""
    python: str = ""
    """Interpreter inside the sandbox; empty means the sandbox's own Python with pytest."""
    test_timeout_s: float = 60.0
    """Wall seconds for the grading tests of one verdict."""


class GradingTests(Record):
    """The tests that decide: F2P are hidden from the solver, P2P guard what worked before."""

    f2p: tuple[str, ...]
    """Fail on the snapshot, pass with the gold patch."""
    p2p: tuple[str, ...] = ()
    """Pass on the snapshot and with the gold patch, stably."""
    files: tuple[str, ...] = ()
    """Repository paths of every test file that is restored before grading."""


class Origin(Record):
    """Where a synthetic task comes from: enough to make it again."""

    repository: str
    """Name of the repository, for example ``pond``."""
    base: str
    """Digest of the clean base snapshot."""
    generator: str = ""
    """Generator and operator, for example ``mutation:boundary``."""
    module: str = ""
    """Repository path of the changed module."""
    function: str = ""
    """Qualified name of the changed function."""
    line: int = 0
    """1-based line of the change in the snapshot."""
    seed: int = 0
    level: str = ""
    """How much the statement tells (see ``frognano.taskpilot.state``)."""
    licence: str = ""


class Lineage(Record):
    """How a refined task came from its parent; only the statement may differ."""

    parent: str
    change: str
    """Name of the change, for example ``state-contract`` or ``drop-location``."""
    p_before: float
    """p̂ of the parent when it was refined."""
    p_after: float | None = None
    """p̂ on fresh episodes after the change; None until measured."""


class Calibration(Record):
    """p̂ of one task under one policy: ``solved`` of ``episodes`` full rollouts passed every grading test."""

    policy: str
    episodes: int
    solved: int

    @property
    def p_hat(self) -> float:
        """Share of solved episodes; 0 when none was run."""
        return self.solved / self.episodes if self.episodes else 0.0


class Task(Record):
    """One executable task. Its files lie in a folder that is also a valid Harbor task."""

    schema_version: Literal[1] = 1
    id: str
    """Unique, stable, safe as a folder name: ``pond-ranges-clamp-1f3a9c``."""
    kind: Kind = "bug-fix"
    statement: str
    snapshot: str
    """Digest of the sealed tree the solver starts from."""
    runtime: Runtime = Runtime()
    tests: GradingTests
    origin: Origin
    split: Split = "train"
    lineage: Lineage | None = None
    calibration: Calibration | None = None
