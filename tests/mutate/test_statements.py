"""Statements: each level tells all that the one before tells; none shows the fix."""

from __future__ import annotations

import itertools

import pytest

from frognano.taskpilot.state import LEVELS, Example, Facts, statement

FACTS = Facts(
    function="clamp",
    file="pond/ranges.py",
    line=4,
    contract="Return value limited to low..high.",
    examples=(Example(call="clamp(5, 0, 3)", actual="0", expected="3"),),
    suspect="return min(low, min(value, high))",
)


def test_the_texts_are_frozen() -> None:
    assert statement(FACTS, "suspect", seed=1) == (
        "clamp returns the wrong value\n\n>>> clamp(5, 0, 3)\ngot: 0\nexpected: 3\n\n"
        "Defined at:\npond/ranges.py:4\n\nDocumented as:\nReturn value limited to low..high.\n\n"
        "Suspicious line:\n```\nreturn min(low, min(value, high))\n```\n"
    )


def test_each_level_extends_the_one_before() -> None:
    texts = [statement(FACTS, level, seed=3).rstrip() for level in LEVELS]
    for shorter, longer in itertools.pairwise(texts):
        assert longer.startswith(shorter)
        assert len(longer) > len(shorter)


def test_the_vaguest_level_names_no_place() -> None:
    assert "pond/ranges.py" not in statement(FACTS, "symptom")


@pytest.mark.parametrize(
    ("facts", "level", "word"),
    [(FACTS, "loud", "loud"), (FACTS.model_copy(update={"examples": ()}), "symptom", "example")],
)
def test_what_cannot_be_stated_is_refused_by_name(facts: Facts, level: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        statement(facts, level)
