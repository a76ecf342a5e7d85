"""Arithmetic: the wrong operator, a constant off by one, an accumulator that forgets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from frognano.taskpilot.mutate.source import Function
from frognano.taskpilot.mutate.spans import Change, between, find

_OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "%"),
    ast.Mod: ("%", "//"),
    ast.Div: ("/", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitXor: ("^", "|"),
}


def operator(function: Function) -> Iterator[Change]:
    """Another binary operator; text and format operands are left alone."""
    for node in function.body():
        if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATORS or _textual(node):
            continue
        symbol, other = _OPERATORS[type(node.op)]
        span = between(function.module, node.left, node.right, symbol)
        if span:
            yield Change(*span, other, f"{symbol} to {other}")


def _textual(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr | ast.List | ast.ListComp | ast.Tuple) for side in sides) or any(
        isinstance(side, ast.Constant) and isinstance(side.value, str | bytes) for side in sides
    )


def constant(function: Function) -> Iterator[Change]:
    """An integer off by one, in an expression or a comparison."""
    module = function.module
    for node in function.body():
        if not isinstance(node, ast.BinOp | ast.Compare | ast.Assign | ast.AugAssign):
            continue
        for child in _operands(node):
            if not (isinstance(child, ast.Constant) and type(child.value) is int and module.text(child).isdigit()):
                continue
            start, end = module.span(child)
            for value in (child.value + 1, child.value - 1):
                if value >= 0:
                    yield Change(start, end, str(value), f"{child.value} to {value}")


def _operands(node: ast.BinOp | ast.Compare | ast.Assign | ast.AugAssign) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return [node.value]


def accumulator(function: Function) -> Iterator[Change]:
    """``+=`` for ``-=``, or for a plain assignment."""
    module = function.module
    for node in function.body():
        if isinstance(node, ast.AugAssign) and type(node.op) in {ast.Add, ast.Sub}:
            symbol = "+=" if isinstance(node.op, ast.Add) else "-="
            span = find(module, module.span(node.target)[1], module.span(node.value)[0], symbol)
            if span:
                yield Change(*span, "-=" if symbol == "+=" else "+=", f"{symbol} turned")
                yield Change(*span, "=", f"{symbol} to =")
