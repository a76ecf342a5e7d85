"""Screening in a sandbox: swapped code and fresh imports agree, hangs end, coverage and outcomes are right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frognano.config.taskpilot import SynthesisSettings
from frognano.taskpilot.baseline import Baseline
from frognano.taskpilot.bench import Answer, Bench, BenchError, open_benches
from frognano.taskpilot.coverage_map import CoverageMap, Reach, changed_lines
from frognano.taskpilot.facts import Call, Question, observe
from frognano.taskpilot.mutate import Module, mutations
from frognano.taskpilot.repository import open_repository

PLANTED = ["tests/test_planted.py"]
LEFT_OUT = [f"tests/test_planted.py::test_{name}" for name in ("flaky", "hash_seed", "order_third", "failing")]


def ask(brook: Path, with_backend: Callable[..., Any], mode: str, **details: Any) -> list[Answer]:
    repository = open_repository(brook)

    async def work(backend: Any) -> list[Answer]:
        async with open_benches(backend, brook, repository, 1) as benches:

            async def one(bench: Bench, item: str) -> list[Answer]:
                return await bench.ask(item, 120.0, **details)

            results = [answers async for _, answers in benches.each([mode], one)]
            return results.pop()

    found: list[Answer] = with_backend(work)
    return found


@pytest.fixture(scope="module")
def coverage(brook: Path, with_backend: Callable[..., Any]) -> CoverageMap:
    answers = ask(brook, with_backend, "trace", left_out=[f"{PLANTED[0]}::test_slow"])
    return CoverageMap.model_validate(answers[-1])


def test_coverage_tells_which_test_executes_which_line(brook: Path, coverage: CoverageMap) -> None:
    source = (brook / "src/brook/flow.py").read_text().splitlines()
    raising = next(n for n, line in enumerate(source, 1) if "raise ValueError" in line)
    reach = Reach(coverage)
    assert reach.tests("src/brook/flow.py", range(raising, raising + 1)) == (
        "tests/test_flow.py::test_clamp_rejects_crossed_limits",
    )
    assert "tests/test_planted.py::test_slow" not in coverage.tests


def test_what_runs_at_import_belongs_to_no_test(brook: Path, coverage: CoverageMap) -> None:
    module = Module((brook / "src/brook/words.py").read_text())
    initials = next(function for function in module.functions() if function.name == "initials")
    reach = Reach(coverage)
    assert reach.at_import("src/brook/words.py", changed_lines(initials, initials.node.end_lineno or 0))


def test_plain_calls_are_noted(coverage: CoverageMap) -> None:
    assert any(call.name == "clamp" and call.arguments == "11, 1, 10" for call in coverage.calls)


def test_swapped_code_and_a_fresh_import_give_the_same_verdicts(
    brook: Path, with_backend: Callable[..., Any], coverage: CoverageMap
) -> None:
    candidates = []
    for path in ("src/brook/flow.py", "src/brook/words.py"):
        for number, mutation in enumerate(mutations((brook / path).read_text())):
            span = {"file": path, "start": mutation.start, "end": mutation.end, "text": mutation.text}
            tests = [test for test in coverage.tests if "planted" not in test]
            candidates.append({"id": f"{path}:{number}", "tests": tests, "timeout_s": 2.0, **span})
    chosen = candidates[::3]
    hot = {answer["id"]: answer for answer in ask(brook, with_backend, "hot", candidates=chosen)}
    cold = {answer["id"]: answer for answer in ask(brook, with_backend, "cold", candidates=chosen)}
    swapped = [name for name in hot if hot[name]["state"] != "cold" and "words.py" not in name]
    assert len(swapped) > len(chosen) / 3
    for name in swapped:
        seen = (hot[name]["state"], hot[name].get("broken"))
        assert seen == (cold[name]["state"], cold[name].get("broken"))


def test_an_endless_loop_ends_as_a_hang_and_the_next_candidate_is_answered(
    brook: Path, with_backend: Callable[..., Any]
) -> None:
    source = (brook / "src/brook/flow.py").read_text()
    at = source.index("level -= rate")
    loop = {"file": "src/brook/flow.py", "start": at, "end": at + len("level -= rate"), "text": "level -= 0"}
    same = {**loop, "text": "level -= rate + 0"}
    rest = {"tests": ["tests/test_flow.py::test_drain_goes_by_two"], "timeout_s": 1.0}
    candidates = [{"id": "loop", **loop, **rest}, {"id": "same", **same, **rest}]
    answers = ask(brook, with_backend, "hot", candidates=candidates)
    assert [(answer["id"], answer["state"]) for answer in answers] == [("loop", "hang"), ("same", "ran")]


def test_a_change_that_breaks_import_is_told_apart_from_failing_tests(
    brook: Path, with_backend: Callable[..., Any]
) -> None:
    source = (brook / "src/brook/words.py").read_text()
    at = source.index("word[0]")
    broken = {"id": "x", "file": "src/brook/words.py", "start": at, "end": at + 7, "text": "word[99]"}
    tests = ["tests/test_words.py::test_pairs"]
    (answer,) = ask(brook, with_backend, "cold", candidates=[{**broken, "tests": tests, "timeout_s": 20.0}])
    assert answer["state"] == "import"


def test_examples_are_observed_with_and_without_the_change(brook: Path, with_backend: Callable[..., Any]) -> None:
    source = (brook / "src/brook/flow.py").read_text()
    at = source.index("max(low")
    calls = tuple(
        Call(prelude="from brook.flow import clamp", text=text)
        for text in ("clamp(0, 1, 10)", "clamp(5, 1, 10)", "clamp(1, 5, 4)")
    )
    question = Question(id=7, file="src/brook/flow.py", start=at, end=at + 3, text="min", function="clamp", calls=calls)
    repository = open_repository(brook)

    async def work(backend: Any) -> Any:
        async with open_benches(backend, brook, repository, 1) as benches:

            async def one(bench: Bench, item: Question) -> Any:
                return await observe(bench, [item], SynthesisSettings())

            results = [found async for _, found in benches.each([question], one)]
            return results.pop()

    (example, *others) = with_backend(work)[7]
    assert (example.call, example.actual, example.expected) == ("clamp(0, 1, 10)", "0", "1")
    assert [other.call for other in others] == ["clamp(5, 1, 10)"]


def test_a_program_that_fails_says_what_it_wrote(brook: Path, with_backend: Callable[..., Any]) -> None:
    with pytest.raises(BenchError, match="no-such-mode"):
        ask(brook, with_backend, "no-such-mode")


def test_a_baseline_is_a_record_that_survives_the_journal() -> None:
    made = Baseline(stable=("a",), set_aside={"b": "slow"}, seconds={"a": 0.1}, runs=3, suite_s=1.0)
    assert Baseline.model_validate_json(made.model_dump_json()) == made
    assert asyncio.iscoroutinefunction(Bench.ask)
