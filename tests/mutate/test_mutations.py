"""Mutations: each family makes the change it promises, and every one parses and differs."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frognano.taskpilot.mutate import FAMILIES, mutations

CASES = {
    "boundary": ("if a < b: return a", "if a <= b: return a"),
    "direction": ("if a >= b: return a", "if a <= b: return a"),
    "equality": ("if a == b: return a", "if a != b: return a"),
    "membership": ("if a not in b: return a", "if a in b: return a"),
    "negation": ("if not a: return b", "if a: return b"),
    "connective": ("return a and b", "return a or b"),
    "clause": ("return a and b", "return a"),
    "operator": ("return a // b", "return a % b"),
    "constant": ("a = b + 1", "a = b + 2"),
    "accumulator": ("a += b", "a = b"),
    "slice": ("return a[1:]", "return a[2:]"),
    "index": ("return a[0]", "return a[-1]"),
    "literal": ("return ','.join(a)", "return ';'.join(a)"),
    "sibling": ("return a.lstrip()", "return a.rstrip()"),
    "argument": ("return a.replace(b, 'x')", "return a.replace('x', b)"),
    "return": ("return True", "return False"),
    "exception": ("raise ValueError(a)", "raise TypeError(a)"),
    "loop": ("for i in range(a): b(i)", "for i in range(a - 1): b(i)"),
    "await": ("return await a(b)", "return a(b)"),
}


@pytest.mark.parametrize("family", sorted(CASES))
def test_a_family_makes_the_change_it_promises(family: str) -> None:
    before, after = CASES[family]
    head = "async def f(a, b):\n    " if family == "await" else "def f(a, b):\n    "
    made = {m.apply(head + before) for m in mutations(head + before) if m.family == family}
    assert head + after in made


def test_a_default_changes_in_the_signature() -> None:
    source = "def f(a, b=3, c=True, d=','):\n    return a\n"
    made = {m.apply(source).split("\n")[0] for m in mutations(source) if m.family == "default"}
    assert made == {
        "def f(a, b=4, c=True, d=','):",
        "def f(a, b=2, c=True, d=','):",
        "def f(a, b=3, c=False, d=','):",
        "def f(a, b=3, c=True, d=';'):",
    }


def test_every_family_has_a_case() -> None:
    assert set(FAMILIES) == set(CASES) | {"default"}


def test_docstrings_annotations_and_decorators_are_left_alone() -> None:
    source = '@d(1 < 2)\ndef f(a: "x" = None) -> "1 < 2":\n    """1 < 2"""\n    return a\n'
    assert list(mutations(source)) == []


def test_offsets_are_right_after_text_that_is_not_ascii() -> None:
    source = 'def f(a, b):\n    c = "é→" + a if a < b else "ü"\n    return c\n'
    made = [m.apply(source) for m in mutations(source) if m.family == "boundary"]
    assert made == [source.replace("a < b", "a <= b")]


_OPERANDS = st.sampled_from(["a", "b", "len(a)", "a[0]", "3", "(a + b)"])
_LINES = st.builds(
    lambda left, op, right, tail: f"    if {left} {op} {right}:\n        return {tail}",
    _OPERANDS,
    st.sampled_from(["<", "<=", "==", "in", "is not"]),
    _OPERANDS,
    st.sampled_from(["a[1:]", "a, b", "not a", "max(a, b)", "a.strip()", "True"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_LINES, min_size=1, max_size=4))
def test_every_mutation_parses_differs_and_stays_on_one_line(lines: list[str]) -> None:
    source = "def f(a, b):\n" + "\n".join(lines) + "\n"
    found = list(mutations(source))
    assert found
    assert len({m.apply(source) for m in found}) == len(found)
    for mutation in found:
        mutated = mutation.apply(source)
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(source))
        before, after = source.split("\n"), mutated.split("\n")
        assert [i for i, (x, y) in enumerate(zip(before, after, strict=True), 1) if x != y] == [mutation.line]
