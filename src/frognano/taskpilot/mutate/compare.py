"""Comparisons: boundaries, equality, membership and identity. Peers never mutate these in Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from frognano.taskpilot.mutate.source import Function
from frognano.taskpilot.mutate.spans import Change, between

_BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_DIRECTION = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_EQUALITY = {"==": "!=", "!=": "=="}
_MEMBERSHIP = {"in": "not in", "not in": "in", "is": "is not", "is not": "is"}
_SYMBOLS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}


def _swaps(function: Function, table: dict[str, str]) -> Iterator[Change]:
    for node in function.body():
        if not isinstance(node, ast.Compare):
            continue
        left: ast.expr = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            symbol = _SYMBOLS[type(operator)]
            if symbol in table:
                span = between(function.module, left, right, symbol)
                if span:
                    yield Change(*span, table[symbol], f"{symbol} to {table[symbol]}")
            left = right


def boundary(function: Function) -> Iterator[Change]:
    """``<`` for ``<=`` and the like: the off-by-one of conditions."""
    return _swaps(function, _BOUNDARY)


def direction(function: Function) -> Iterator[Change]:
    """``<`` for ``>``: the comparison the wrong way round."""
    return _swaps(function, _DIRECTION)


def equality(function: Function) -> Iterator[Change]:
    """``==`` for ``!=``."""
    return _swaps(function, _EQUALITY)


def membership(function: Function) -> Iterator[Change]:
    """``in`` for ``not in``, ``is`` for ``is not``."""
    return _swaps(function, _MEMBERSHIP)
