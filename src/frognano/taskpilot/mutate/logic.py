"""Boolean logic: negations, connectives, and forgotten clauses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from frognano.taskpilot.mutate.source import Function
from frognano.taskpilot.mutate.spans import Change, between


def negation(function: Function) -> Iterator[Change]:
    """A ``not`` forgotten, or one too many in front of a plain condition."""
    module = function.module
    for node in function.body():
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            start, _ = module.span(node)
            yield Change(start, module.span(node.operand)[0], "", "drop not")
        elif isinstance(node, ast.If | ast.While | ast.IfExp) and isinstance(
            node.test, ast.Name | ast.Call | ast.Attribute
        ):
            start, _ = module.span(node.test)
            yield Change(start, start, "not ", "add not")


def connective(function: Function) -> Iterator[Change]:
    """``and`` for ``or``."""
    for node in function.body():
        if isinstance(node, ast.BoolOp):
            symbol, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            span = between(function.module, node.values[0], node.values[1], symbol)
            if span and len(node.values) == 2:
                yield Change(*span, other, f"{symbol} to {other}")


def clause(function: Function) -> Iterator[Change]:
    """One operand of ``and`` or ``or`` forgotten."""
    module = function.module
    for node in function.body():
        if isinstance(node, ast.BoolOp):
            first, second = node.values[0], node.values[1]
            yield Change(module.span(first)[0], module.span(second)[0], "", "drop first clause")
            last, before = node.values[-1], node.values[-2]
            yield Change(module.span(before)[1], module.span(last)[1], "", "drop last clause")
