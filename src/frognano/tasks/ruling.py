"""From the judge's evidence to a verdict. Pure functions on plain data; the standard library only.

Nothing that the test process says counts unless it fits everything else: each expected test must have reported
set-up, call and tear-down as passed, planted tests that must fail must have failed, the exit status must be the
one that such a session has, no event may be forged, no part of pytest changed, no placed file altered, no process
left over. A missing, skipped or expectedly failing test is a failure. Evidence with an error is no verdict.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TESTS_FAILED = 1
"""pytest's exit status when every test ran and some failed."""


@dataclass(frozen=True)
class Ruling:
    """A reward (None: no verdict), its reason, each expected test's outcome, and what was noticed."""

    reward: float | None
    reason: str
    outcomes: dict[str, str] = field(default_factory=dict)
    detail: str = ""


@dataclass(frozen=True)
class Demands:
    """What a run must show."""

    expected: Sequence[str]
    must_fail: Collection[str] = ()
    must_pass: Collection[str] = ()


def outcomes_of(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Node id → passed, failed, error, skipped, xfailed or xpassed, for every test that started."""
    reports: dict[str, list[Mapping[str, Any]]] = {}
    stopped: set[str] = set()
    for event in events:
        if "start" in event:
            reports.setdefault(event["start"], [])
        elif "test" in event:
            reports.setdefault(event["test"], []).append(event)
        elif "stop" in event:
            stopped.add(event["stop"])
    return {test: _outcome(found) if test in stopped else "error" for test, found in reports.items()}


def _outcome(reports: Sequence[Mapping[str, Any]]) -> str:
    phases = [report["when"] for report in reports]
    if any(report["outcome"] == "failed" for report in reports):
        return "failed" if any(r["outcome"] == "failed" and r["when"] == "call" for r in reports) else "error"
    if any(report["outcome"] == "skipped" for report in reports):
        return "xfailed" if any(report.get("xfail") for report in reports) else "skipped"
    if phases.count("setup") != 1 or phases.count("teardown") != 1 or "call" not in phases:
        return "error"
    return "xpassed" if any(report.get("xfail") for report in reports) else "passed"


def rule(evidence: Mapping[str, Any], demands: Demands) -> Ruling:
    """The verdict on one run."""
    if evidence.get("error"):
        return Ruling(None, "no_verdict", detail=str(evidence["error"]))
    events = evidence.get("events", [])
    found = outcomes_of(events)
    outcomes = {test: found.get(test, "missing") for test in demands.expected}
    broken = run_fault(evidence)
    if broken:
        return Ruling(0.0, broken[0], outcomes, broken[1])
    suspicion = _planted(events, found, demands)
    if suspicion:
        return Ruling(0.0, "tampered", outcomes, suspicion)
    if any(outcome != "passed" for outcome in outcomes.values()):
        broken_files = sorted({event["collect"] for event in events if event.get("outcome") == "error"})
        reason = "collection_error" if broken_files else "failed"
        return Ruling(0.0, reason, outcomes, _failures(outcomes))
    end = events[-1]["end"]
    if end != (TESTS_FAILED if demands.must_fail else 0):
        return Ruling(0.0, "tampered", outcomes, f"every test passed but the session ended with {end}")
    return Ruling(1.0, "passed", outcomes)


def run_fault(evidence: Mapping[str, Any]) -> tuple[str, str] | None:
    """Reason and detail when the run as such cannot count; None for a session that ended properly."""
    events: Sequence[Mapping[str, Any]] = evidence.get("events", [])
    if evidence.get("unplaced"):
        return "patch_failed", f"the changes cannot be placed: {evidence['unplaced']}"
    if evidence.get("timed_out"):
        return "test_timeout", "the tests did not end in time"
    if evidence.get("overflow"):
        return "tampered", "the test process wrote without end"
    if evidence.get("keeper_lost"):
        return "tampered", "the process that watches the tests was killed"
    if evidence.get("forged"):
        return "tampered", "events that the reporter did not write"
    if not evidence.get("intact"):
        return "tampered", "a placed test file was changed during the run"
    status = evidence["status"]
    if os.WIFSIGNALED(status):
        return "crashed", f"the test process died of signal {os.WTERMSIG(status)}"
    finish = [event for event in events if "finish" in event]
    if len(finish) != 1 or not events or "end" not in events[-1] or events[-2] is not finish[0]:
        return "early_exit", f"the test process left with {os.WEXITSTATUS(status)} before its session ended"
    if not events[-1]["end"] == finish[0]["finish"] == os.WEXITSTATUS(status):
        return "tampered", "the exit status is not the session's"
    changed = [*finish[0]["changed"], *events[-1]["changed"]]
    if changed:
        return "tampered", "changed test machinery: " + ", ".join(changed)
    if evidence.get("left_over"):
        return "leftover_processes", "processes outlived the tests"
    return None


def _planted(events: Sequence[Mapping[str, Any]], found: Mapping[str, str], demands: Demands) -> str:
    """Why the planted tests void the report; empty when they do not."""
    passed = sorted(test for test in demands.must_fail if found.get(test) in ("passed", "xpassed"))
    if passed:
        return "planted tests that must fail passed: " + ", ".join(passed[:3])
    broken_files = {event["collect"].split("::")[0] for event in events if event.get("outcome") == "error"}
    gone = [test for test in (*demands.must_fail, *demands.must_pass) if test not in found]
    gone = [test for test in gone if test.split("::")[0] not in broken_files]
    collected = any("collected" in event and event["collected"] for event in events)
    if gone and collected:
        return "planted tests vanished: " + ", ".join(sorted(gone)[:3])
    return ""


def _failures(outcomes: Mapping[str, str]) -> str:
    bad = [f"{test}: {outcome}" for test, outcome in outcomes.items() if outcome != "passed"]
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    return "; ".join(bad[:5]) + more
