"""What to run on a tree, and what came of it: for baselines, validation and grading alike.

A ``TestRun`` names a snapshot, changes on top of it and the tests; a ``TestReport`` has the outcome of each. Node
ids are exact (structured reports, never log text), whatever characters a parameter holds. A report whose
``reason`` is set did not end as a test session ends; its outcomes are what was seen until then.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from frognano.records import Record, Runtime
from frognano.tasks.patch import FILE, Entry
from frognano.tasks.ruling import outcomes_of, run_fault

LIMITS = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": 1 << 28}


@dataclass(frozen=True)
class TestRun:
    """One run of tests."""

    __test__ = False

    snapshot: str
    """Digest of the tree."""
    runtime: Runtime
    files: tuple[str, ...]
    """Test files or folders given to pytest, relative to the root."""
    ids: tuple[str, ...] | None = None
    """Node ids to run; None runs everything in ``files``."""
    changes: Mapping[str, Entry | bytes | None] = field(default_factory=dict)
    """Laid over the snapshot: bytes keep nothing but mode 0644, None removes."""
    tests: Mapping[str, Entry | bytes] = field(default_factory=dict)
    """Test files placed last and checked after the run."""
    order_seed: int = 0
    """0 keeps pytest's order; anything else shuffles modules and the tests in each."""
    hash_seed: int = 0
    """PYTHONHASHSEED of the interpreter."""
    details: bool = False
    """Failure messages and output, for statements and people; verdicts do without."""
    timeout_s: float | None = None
    """Wall seconds; None takes the runtime's."""


class TestReport(Record):
    """What a run showed."""

    __test__ = False

    outcomes: dict[str, str]
    """Node id → passed, failed, error, skipped, xfailed, xpassed; missing for an id that was asked for in vain."""
    seconds: dict[str, float] = {}
    """Node id → seconds of its call."""
    messages: dict[str, str] = {}
    """Node id → failure message, when details were asked for."""
    collect_errors: dict[str, str] = {}
    """File → why it could not be collected."""
    exit_status: int = -1
    """pytest's exit status: 0, 1 tests failed, 2 interrupted, 3 internal error, 4 usage, 5 nothing collected."""
    reason: str = ""
    """Empty for a session that ended properly, else test_timeout, crashed, early_exit, tampered, leftover_processes."""
    detail: str = ""
    elapsed_s: float = 0.0
    """Wall seconds of the test process."""
    output: str = ""
    """The end of what the test process wrote, when details were asked for."""

    @property
    def sound(self) -> bool:
        """True when the session ended properly and every file could be collected: only then a failure is a failure."""
        return not self.reason and not self.collect_errors and self.exit_status in (0, 1)

    def having(self, outcome: str) -> frozenset[str]:
        """Node ids with the given outcome."""
        return frozenset(test for test, found in self.outcomes.items() if found == outcome)


def job_of(run: TestRun) -> dict[str, Any]:
    """The run as the judge reads it."""
    runtime = run.runtime
    env = {
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": str(run.hash_seed),
        **runtime.env,
    }
    plugins = [name for name in env.pop("PYTEST_PLUGINS", "").split(",") if name]
    return {
        "workdir": runtime.workdir,
        "python": runtime.python,
        "lower": "",
        "changes": {name: packed(value) for name, value in run.changes.items()},
        "tests": {name: packed(value) for name, value in run.tests.items()},
        "pythonpath": list(runtime.pythonpath),
        "env": {**env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        "plugins": plugins,
        "files": list(run.files),
        "ids": None if run.ids is None else list(run.ids),
        "order_seed": run.order_seed,
        "details": run.details,
        "timeout_s": run.timeout_s if run.timeout_s is not None else runtime.test_timeout_s,
        "limits": LIMITS,
        "filter": "",
    }


def packed(value: Entry | bytes | None) -> list[Any] | None:
    """A file as the judge reads it."""
    if value is None:
        return None
    entry = value if isinstance(value, Entry) else Entry(FILE, value)
    return [entry.mode, base64.b64encode(entry.data).decode("ascii")]


def report_of(evidence: Mapping[str, Any], ids: Iterable[str] | None) -> TestReport:
    """The evidence as a report; ``ids`` are the tests that were asked for."""
    events = evidence.get("events", [])
    outcomes = outcomes_of(events)
    outcomes.update({test: "missing" for test in ids or () if test not in outcomes})
    fault = run_fault(evidence)
    return TestReport(
        outcomes=outcomes,
        seconds={event["test"]: event["seconds"] for event in events if event.get("when") == "call"},
        messages={event["test"]: event["message"] for event in events if "test" in event and event.get("message")},
        collect_errors={e["collect"]: e["message"] for e in events if "collect" in e and e["outcome"] == "error"},
        exit_status=next((event["end"] for event in reversed(events) if "end" in event), -1),
        reason=fault[0] if fault else "",
        detail=fault[1] if fault else "",
        elapsed_s=evidence.get("seconds", 0.0),
        output=evidence.get("output", ""),
    )
