"""The baseline: the untouched suite, several times, each run in another order and with another hash seed.

A test counts only when it passed every run in good time; all others are set aside by name with a reason. A flaky
test that happens to pass every run is not found here: later disagreement quarantines it (see ``validate``).
"""

from __future__ import annotations

from collections.abc import Sequence

from frognano.config.taskpilot import SynthesisSettings
from frognano.records import Record, Runtime
from frognano.taskpilot.repository import Repository
from frognano.tasks.grader import Grader
from frognano.tasks.testrun import TestReport, TestRun


class BaselineError(RuntimeError):
    """The suite cannot serve: it does not run, or too little of it passes."""


class Baseline(Record):
    """What is known of the clean suite."""

    stable: tuple[str, ...]
    """Node ids that passed every run, in the suite's own order."""
    set_aside: dict[str, str] = {}
    """Node id → flaky, failing, error, skipped, xfailed or slow."""
    seconds: dict[str, float] = {}
    """Longest observed duration of each stable test."""
    runs: int
    suite_s: float
    """Wall seconds of the longest run."""


async def measure_baseline(
    grader: Grader, base: str, runtime: Runtime, repository: Repository, settings: SynthesisSettings
) -> Baseline:
    """Run the suite ``settings.baseline_runs`` times on the snapshot ``base``. Raises BaselineError."""
    reports = []
    for seed in range(settings.baseline_runs):
        run = TestRun(
            snapshot=base,
            runtime=runtime,
            files=repository.test_files,
            order_seed=seed,
            hash_seed=seed,
            timeout_s=settings.suite_timeout_s,
        )
        report = await grader.run_tests(run)
        if report.reason or not report.outcomes:
            why = f"{report.reason} {report.detail}".strip() or "no test was collected"
            errors = "; ".join(f"{file}: {text[-300:]}" for file, text in list(report.collect_errors.items())[:3])
            raise BaselineError(f"the suite of {repository.name} does not run: {why}. {errors}".rstrip())
        reports.append(report)
    return judge(reports, settings)


def judge(reports: Sequence[TestReport], settings: SynthesisSettings) -> Baseline:
    """Which tests are stable over ``reports``, and why the others are not. Raises BaselineError when none is."""
    stable: list[str] = []
    aside: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for test in dict.fromkeys(test for report in reports for test in report.outcomes):
        outcomes = {report.outcomes.get(test, "missing") for report in reports}
        seconds[test] = max(report.seconds.get(test, 0.0) for report in reports)
        if outcomes != {"passed"}:
            names = {"failed": "failing", "xpassed": "xfailed"}
            only = next(iter(outcomes))
            aside[test] = "flaky" if len(outcomes) > 1 else names.get(only, only)
        elif seconds[test] > settings.slow_test_s:
            aside[test] = "slow"
        else:
            stable.append(test)
    if not stable:
        raise BaselineError(f"no test passes every run: {dict(list(aside.items())[:5])}")
    return Baseline(
        stable=tuple(stable),
        set_aside=aside,
        seconds={test: seconds[test] for test in stable},
        runs=len(reports),
        suite_s=max(report.elapsed_s for report in reports),
    )
