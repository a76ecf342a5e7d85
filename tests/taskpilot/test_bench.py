"""Screening in a sandbox: swapped code and fresh imports agree, hangs end, coverage and outcomes are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from frognano.config.taskpilot import SynthesisSettings
from frognano.taskpilot.bench import Answer, Bench, BenchError, open_benches
from frognano.taskpilot.coverage_map import CoverageMap, Reach, changed_lines
from frognano.taskpilot.facts import Call, Question, observe
from frognano.taskpilot.mutate import Module, mutations
from frognano.taskpilot.repository import open_repository
from frognano.taskpilot.state import Example

FLOW, WORDS = "src/brook/flow.py", "src/brook/words.py"
SLOW = "tests/test_planted.py::test_slow"


@dataclass
class Said:
    """Everything that one bench was asked, in one sandbox."""

    coverage: CoverageMap
    hot: dict[str, Answer]
    cold: dict[str, Answer]
    looped: list[Answer]
    waiting: list[Answer]
    broken: list[Answer]
    examples: tuple[Example, ...]
    failure: str


def replaced(brook: Path, file: str, old: str, new: str) -> dict[str, Any]:
    """A change of the one place where ``old`` stands."""
    at = (brook / file).read_text().index(old)
    return {"file": file, "start": at, "end": at + len(old), "text": new}


def spans(brook: Path, tests: list[str]) -> list[dict[str, Any]]:
    """Every fourth mutation of both modules."""
    found = []
    for file in (FLOW, WORDS):
        for number, mutation in enumerate(mutations((brook / file).read_text())):
            span = {"file": file, "start": mutation.start, "end": mutation.end, "text": mutation.text}
            found.append({"id": f"{file}:{number}", "tests": tests, "timeout_s": 8.0, **span})
    return found[::4]


@pytest.fixture(scope="module")
def said(brook: Path, with_backend: Callable[..., Any]) -> Said:
    repository = open_repository(brook)

    async def questions(bench: Bench, _: int) -> Said:
        coverage = CoverageMap.model_validate((await bench.ask("trace", 300.0, left_out=[SLOW]))[-1])
        many = spans(brook, [test for test in coverage.tests if "planted" not in test])
        rest = {"tests": ["tests/test_flow.py::test_drain_goes_by_two"], "timeout_s": 1.0}
        loop = replaced(brook, FLOW, "level -= rate", "level -= 0")
        same = replaced(brook, FLOW, "level -= rate", "level -= rate + 0")
        sleep = replaced(brook, FLOW, "level -= rate", "__import__('time').sleep(600)")
        index = replaced(brook, WORDS, "word[0]", "word[99]")
        clamp = Question(**replaced(brook, FLOW, "max(low", "min(low"), id=7, function="clamp", calls=CALLS)
        pairs = {"tests": ["tests/test_words.py::test_pairs"], "timeout_s": 30.0}
        try:
            await bench.ask("no-such-mode", 60.0)
            failure = ""
        except BenchError as error:
            failure = str(error)
        return Said(
            coverage=coverage,
            hot={answer["id"]: answer for answer in await bench.ask("hot", 600.0, candidates=many)},
            cold={answer["id"]: answer for answer in await bench.ask("cold", 600.0, candidates=many)},
            looped=await bench.ask(
                "hot", 300.0, candidates=[{"id": "loop", **loop, **rest}, {"id": "same", **same, **rest}]
            ),
            waiting=await bench.ask("hot", 300.0, candidates=[{"id": "sleep", **sleep, **rest}]),
            broken=await bench.ask("cold", 300.0, candidates=[{"id": "x", **index, **pairs}]),
            examples=(await observe(bench, [clamp], SynthesisSettings()))[7],
            failure=failure,
        )

    async def work(backend: Any) -> Said:
        async with open_benches(backend, brook, repository, 1) as benches:
            answers = [found async for _, found in benches.each([0], questions)]
            return answers.pop()

    found: Said = with_backend(work)
    return found


CALLS = tuple(
    Call(prelude="from brook.flow import clamp", text=text)
    for text in ("clamp(0, 1, 10)", "clamp(5, 1, 10)", "clamp(1, 5, 4)")
)


def test_coverage_tells_which_test_executes_which_line(brook: Path, said: Said) -> None:
    source = (brook / FLOW).read_text().splitlines()
    raising = next(n for n, line in enumerate(source, 1) if "raise ValueError" in line)
    only = ("tests/test_flow.py::test_clamp_rejects_crossed_limits",)
    assert Reach(said.coverage).tests(FLOW, range(raising, raising + 1)) == only
    assert SLOW not in said.coverage.tests


def test_what_runs_at_import_belongs_to_no_test(brook: Path, said: Said) -> None:
    functions = {function.name: function for function in Module((brook / WORDS).read_text()).functions()}
    reach = Reach(said.coverage)
    initials, pairs = functions["initials"], functions["pairs"]
    assert reach.at_import(WORDS, changed_lines(initials, initials.node.end_lineno or 0))
    assert not reach.at_import(WORDS, changed_lines(pairs, pairs.node.end_lineno or 0))


def test_plain_calls_are_noted(said: Said) -> None:
    assert any(call.name == "clamp" and call.arguments == "11, 1, 10" for call in said.coverage.calls)


def test_swapped_code_and_a_fresh_import_give_the_same_verdicts(said: Said) -> None:
    swapped = [name for name in said.hot if said.hot[name]["state"] != "cold" and WORDS not in name]
    assert len(swapped) > len(said.hot) / 3
    for name in swapped:
        hot, cold = said.hot[name], said.cold[name]
        assert (hot["state"], hot.get("broken")) == (cold["state"], cold.get("broken"))


def test_an_endless_loop_ends_as_a_hang_and_the_next_candidate_is_answered(said: Said) -> None:
    assert [(answer["id"], answer["state"]) for answer in said.looped] == [("loop", "hang"), ("same", "ran")]


def test_a_test_that_waits_for_ever_is_given_up(said: Said) -> None:
    assert [answer["state"] for answer in said.waiting] == ["hang"]


def test_a_change_that_breaks_import_is_told_apart_from_failing_tests(said: Said) -> None:
    assert [answer["state"] for answer in said.broken] == ["import"]


def test_examples_are_observed_with_and_without_the_change(said: Said) -> None:
    first, *others = said.examples
    assert (first.call, first.actual, first.expected) == ("clamp(0, 1, 10)", "0", "1")
    assert [other.call for other in others] == ["clamp(5, 1, 10)"]


def test_a_program_that_fails_says_what_it_wrote(said: Said) -> None:
    assert "no-such-mode" in said.failure
