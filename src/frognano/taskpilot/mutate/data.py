"""Values: defaults, slices and indices, string literals."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from frognano.taskpilot.mutate.source import Function
from frognano.taskpilot.mutate.spans import Change

_TEXT = {"": " ", " ": "", ",": ";", ", ": ",", ";": ",", "-": "_", "_": "-", ".": ",", ":": "=", "=": ":", "/": "\\\\"}


def _integers(value: int, text: str) -> list[str]:
    if text.isdigit():
        return [str(value + 1)] + ([str(value - 1)] if value else [])
    return []


def default(function: Function) -> Iterator[Change]:
    """Another default value of a parameter."""
    module = function.module
    arguments = function.node.args
    for node in [*arguments.defaults, *(value for value in arguments.kw_defaults if value is not None)]:
        if not isinstance(node, ast.Constant):
            continue
        start, end = module.span(node)
        old = module.source[start:end]
        for new in _other_constants(node.value, old):
            yield Change(start, end, new, f"default {old} to {new}")


def _other_constants(value: object, text: str) -> list[str]:
    if isinstance(value, bool):
        return [str(not value)]
    if isinstance(value, int):
        return _integers(value, text)
    if isinstance(value, str) and value in _TEXT and "\\" not in text:
        return [text[0] + _TEXT[value] + text[0]]
    return []


def slice_bound(function: Function) -> Iterator[Change]:
    """A slice bound off by one, lost, or a step that turns."""
    module = function.module
    for node in function.body():
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
            continue
        for bound in (node.slice.lower, node.slice.upper):
            if bound is None:
                continue
            start, end = module.span(bound)
            if isinstance(bound, ast.Constant) and type(bound.value) is int:
                for new in _integers(bound.value, module.source[start:end]):
                    yield Change(start, end, new, "slice bound off by one")
            elif isinstance(bound, ast.Name | ast.BinOp):
                yield Change(end, end, " + 1", "slice bound plus one")
            if node.slice.step is None:
                yield Change(start, end, "", "slice bound lost")


def index(function: Function) -> Iterator[Change]:
    """The neighbour's index: ``[0]`` for ``[-1]``, ``[i]`` for ``[i + 1]``."""
    module = function.module
    for node in function.body():
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            continue
        start, end = module.span(node.slice)
        text = module.source[start:end]
        swaps = {"0": ["-1", "1"], "-1": ["0"], "1": ["0"]}
        for new in swaps.get(text, []):
            yield Change(start, end, new, f"[{text}] to [{new}]")


def literal(function: Function) -> Iterator[Change]:
    """Another separator or text constant of the same kind."""
    module = function.module
    for node in function.body():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in _TEXT:
            start, end = module.span(node)
            text = module.source[start:end]
            if text[0] in "'\"" and len(text) == len(node.value) + 2:
                new = text[0] + _TEXT[node.value] + text[0]
                yield Change(start, end, new, f"{text} to {new}")
