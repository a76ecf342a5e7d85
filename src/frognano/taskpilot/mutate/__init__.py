"""Semantic mutations of Python functions: small, plausible mistakes, each one replaced span of text.

``FAMILIES`` lists them; ``mutations`` offers every one for a module, in a fixed order. Whether a mutation
changes behaviour is for the tests to say.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterable, Iterator

from frognano.taskpilot.mutate import arithmetic, calls, compare, data, flow, logic
from frognano.taskpilot.mutate.source import Function, Module, Mutation
from frognano.taskpilot.mutate.spans import Change

FAMILIES: dict[str, Callable[[Function], Iterator[Change]]] = {
    "boundary": compare.boundary,
    "direction": compare.direction,
    "equality": compare.equality,
    "membership": compare.membership,
    "negation": logic.negation,
    "connective": logic.connective,
    "clause": logic.clause,
    "operator": arithmetic.operator,
    "constant": arithmetic.constant,
    "accumulator": arithmetic.accumulator,
    "default": data.default,
    "slice": data.slice_bound,
    "index": data.index,
    "literal": data.literal,
    "sibling": calls.sibling,
    "argument": calls.argument,
    "return": flow.returned,
    "exception": flow.exception,
    "loop": flow.loop,
    "await": flow.awaited,
}

__all__ = ["FAMILIES", "Function", "Module", "Mutation", "mutations", "mutations_of"]


def mutations_of(function: Function, families: Iterable[str] = tuple(FAMILIES)) -> Iterator[Mutation]:
    """Every mutation of one function that parses and changes its syntax tree, without duplicates.

    ``families`` restricts them to those named; KeyError for an unknown one.
    """
    module = function.module
    first, last = module.lines_of(function.node)
    original = _shape(module.source[first:last])
    seen: set[tuple[int, int, str]] = set()
    for family in families:
        for change in FAMILIES[family](function):
            key = (change.start, change.end, change.text)
            if key in seen:
                continue
            seen.add(key)
            mutation = Mutation(
                family=family,
                operator=change.operator,
                function=function.name,
                start=change.start,
                end=change.end,
                text=change.text,
                line=module.line_of(change.start),
            )
            changed = mutation.apply(module.source)[first : last + len(change.text) - (change.end - change.start)]
            if _shape(changed) not in (original, ""):
                yield mutation


def mutations(source: str) -> Iterator[Mutation]:
    """Every mutation of every function of a module. Raises SyntaxError when the module does not parse."""
    for function in Module(source).functions():
        yield from mutations_of(function)


def _shape(text: str) -> str:
    """The syntax tree of one function's lines as text; empty when they do not parse."""
    try:
        return ast.dump(ast.parse(textwrap.dedent(text)))
    except SyntaxError:
        return ""
