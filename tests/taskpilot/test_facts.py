"""Examples are chosen from observed outcomes: different, stable, short; drafts leak nothing."""

from __future__ import annotations

from frognano.config.taskpilot import SynthesisSettings
from frognano.taskpilot.draft import hidden_names
from frognano.taskpilot.facts import Call, Question, calls_from, choose
from frognano.taskpilot.requirements import Requirement

SETTINGS = SynthesisSettings(example_chars=20, example_limit=60)


def call(text: str) -> Call:
    return Call(prelude="from m import f", text=text)


def chosen(*rows: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    question = Question(
        id=0, file="m.py", start=0, end=1, text="", function="f", calls=tuple(call(row[0]) for row in rows)
    )
    actual, expected = {call(r[0]): r[1] for r in rows}, {call(r[0]): r[2] for r in rows}
    return [(e.call, e.actual, e.expected) for e in choose(question, actual, expected, SETTINGS)]


def test_only_calls_that_differ_are_examples() -> None:
    assert chosen(("f(1)", "1", "1"), ("f(2)", "3", "2")) == [("f(2)", "3", "2")]


def test_short_ones_come_first_and_those_that_call_the_function() -> None:
    rows = [("f('" + "x" * 30 + "')", "1", "2"), ("g(1)", "1", "2"), ("f(100)", "1", "2")]
    assert [row[0] for row in chosen(*rows)] == ["f(100)", "g(1)", rows[0][0]]


def test_addresses_long_and_missing_outcomes_are_refused() -> None:
    rows = [
        ("f(1)", "<Box object at 0x7f00aa>", "2"),
        ("f(2)", "'" + "y" * 80 + "'", "2"),
        ("f(3)", "", "2"),
        ("f(4)", "raises ValueError", ""),
    ]
    assert chosen(*rows) == []


def test_calls_come_shortest_first_without_those_too_long() -> None:
    found = [Requirement(test="t.py::a", call=text) for text in ("f(123456)", "f(1)", "", "f('" + "x" * 90 + "')")]
    assert [item.text for item in calls_from(found, {"t.py": "import m"}, 60)] == ["f(1)", "f(123456)"]


def test_hidden_names_are_function_names() -> None:
    assert hidden_names(["t.py::TestA::test_b[1]", "t.py::TestA::test_b[2]"]) == ("test_b",)
