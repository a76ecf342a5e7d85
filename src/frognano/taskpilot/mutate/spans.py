"""Finding the text of an operator or keyword that the syntax tree has no position for."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from frognano.taskpilot.mutate.source import Module


class Change(NamedTuple):
    """A span to replace, the new text, and what that does."""

    start: int
    end: int
    text: str
    operator: str


def between(module: Module, left: ast.expr, right: ast.expr, symbol: str) -> tuple[int, int] | None:
    """Offsets of ``symbol`` between two neighbouring expressions; None when it does not stand there once."""
    start, end = module.span(left)[1], module.span(right)[0]
    return find(module, start, end, symbol)


def find(module: Module, start: int, end: int, symbol: str) -> tuple[int, int] | None:
    """Offsets of the one occurrence of ``symbol`` in ``source[start:end]``, as a whole operator or word."""
    pattern = r"\s+".join(re.escape(part) for part in symbol.split())
    if symbol[0].isalpha():
        pattern = rf"\b{pattern}\b"
    gap = module.source[start:end]
    if "#" in gap:
        return None
    hits = list(re.finditer(pattern, gap))
    if len(hits) != 1:
        return None
    return start + hits[0].start(), start + hits[0].end()
