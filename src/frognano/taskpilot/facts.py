"""Facts for statements: failing examples obtained by running the mutated and the clean code.

Calls come from the hidden tests' own assertions where they stand alone, else from calls that tests were seen to
make. Each is run with the change and without it; kept are calls whose outcomes differ, are the same under another
hash seed, name no memory address and are short. An example is therefore always true of the code; whether it says
enough is for ``complete`` to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from frognano.config.taskpilot import SynthesisSettings
from frognano.records import Record
from frognano.taskpilot.bench import Bench
from frognano.taskpilot.requirements import Requirement
from frognano.taskpilot.state import Example

MOST_CALLS = 12
"""Calls tried per candidate."""
KEPT_EXAMPLES = 4
_UNSTABLE = re.compile(r"0x[0-9a-fA-F]{4,}| object at ")
_CUT = 1000
"""Where the bench cuts a ``repr``."""
_CLEAN = -1


class Call(Record):
    """An expression and the imports it needs."""

    prelude: str
    text: str


class Question(Record):
    """A change and the calls that may show it."""

    id: int
    file: str
    start: int
    end: int
    text: str
    """What stands at ``start:end`` instead."""
    function: str
    """Last name of the changed function."""
    calls: tuple[Call, ...]


def calls_from(requirements: Iterable[Requirement], preludes: Mapping[str, str], limit: int) -> list[Call]:
    """Calls asserted by tests, shortest first, without those longer than ``limit`` characters."""
    found = {
        Call(prelude=preludes[requirement.test.split("::", 1)[0]], text=requirement.call): None
        for requirement in requirements
        if requirement.call and len(requirement.call) <= limit
    }
    return sorted(found, key=lambda call: len(call.text))


async def observe(
    bench: Bench, questions: Sequence[Question], settings: SynthesisSettings
) -> dict[int, tuple[Example, ...]]:
    """Examples for each question, best first; none where no call shows the change."""
    clean = list(dict.fromkeys(call for question in questions for call in question.calls))
    first = await _run(bench, questions, clean, settings, hash_seed=0)
    kept = [question for question in questions if first.get(question.id)]
    examples = {question.id: choose(question, first[question.id], first[_CLEAN], settings) for question in kept}
    again = await _run(bench, _only(kept, examples), clean, settings, hash_seed=1)
    steady: dict[int, tuple[Example, ...]] = {}
    for question in kept:
        outcomes = again.get(question.id, {})
        same = [
            example
            for example in examples[question.id]
            if any(
                call.text == example.call
                and outcomes.get(call) == example.actual
                and again.get(_CLEAN, {}).get(call) == example.expected
                for call in question.calls
            )
        ]
        steady[question.id] = tuple(same[:KEPT_EXAMPLES])
    return steady


def _only(questions: Sequence[Question], examples: Mapping[int, Sequence[Example]]) -> list[Question]:
    """The questions with nothing but the calls that became examples."""
    reduced = []
    for question in questions:
        wanted = {example.call for example in examples[question.id]}
        calls = tuple(call for call in question.calls if call.text in wanted)
        if calls:
            reduced.append(question.model_copy(update={"calls": calls}))
    return reduced


async def _run(
    bench: Bench, questions: Sequence[Question], clean: Sequence[Call], settings: SynthesisSettings, hash_seed: int
) -> dict[int, dict[Call, str]]:
    """Outcome of every call, per question and for the clean tree."""
    if not questions:
        return {}
    asked: dict[int, Sequence[Call]] = {question.id: question.calls for question in questions}
    asked[_CLEAN] = clean
    limit = settings.time_floor_s * 2
    candidates = [
        {
            **({} if question is None else question.model_dump(include={"file", "start", "end", "text"})),
            "id": _CLEAN if question is None else question.id,
            "expressions": [(call.prelude, call.text) for call in asked[_CLEAN if question is None else question.id]],
            "timeout_s": limit if question else limit + len(clean),
        }
        for question in [None, *questions]
    ]
    total = 60.0 + len(clean) + limit * len(candidates)
    answers = await bench.ask("evaluate", total, hash_seed=hash_seed, candidates=candidates)
    return {answer["id"]: dict(zip(asked[answer["id"]], answer.get("results", []), strict=False)) for answer in answers}


def choose(
    question: Question, actual: Mapping[Call, str], expected: Mapping[Call, str], settings: SynthesisSettings
) -> list[Example]:
    """Examples that differ and can be shown: short ones first, those that call the function before others."""
    found: dict[str, Example] = {}
    for call in question.calls:
        got, wanted = actual.get(call, ""), expected.get(call, "")
        usable = got and wanted and got != wanted and not any(_UNSTABLE.search(text) for text in (got, wanted))
        if usable and max(len(got), len(wanted)) < min(_CUT, settings.example_limit + 1):
            found.setdefault(call.text, Example(call=call.text, actual=got, expected=wanted))

    def rank(example: Example) -> tuple[bool, bool, int]:
        sides = (example.call, example.actual, example.expected)
        named = re.search(rf"\b{re.escape(question.function)}\b", example.call) is not None
        return max(map(len, sides)) > settings.example_chars, not named, sum(map(len, sides))

    return sorted(found.values(), key=rank)
