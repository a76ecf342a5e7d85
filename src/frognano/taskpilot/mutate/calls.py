"""Calls: arguments swapped or forgotten, the sibling of a method or built-in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from frognano.taskpilot.mutate.source import Function
from frognano.taskpilot.mutate.spans import Change

_SIBLINGS = {
    "lstrip": "rstrip",
    "rstrip": "lstrip",
    "strip": "rstrip",
    "lower": "upper",
    "upper": "lower",
    "title": "capitalize",
    "capitalize": "title",
    "startswith": "endswith",
    "endswith": "startswith",
    "find": "rfind",
    "rfind": "find",
    "index": "rindex",
    "split": "rsplit",
    "rsplit": "split",
    "partition": "rpartition",
    "rpartition": "partition",
    "append": "extend",
    "extend": "append",
    "ljust": "rjust",
    "rjust": "ljust",
    "keys": "values",
    "values": "keys",
    "isalpha": "isalnum",
    "isalnum": "isalpha",
    "isdigit": "isalnum",
    "removeprefix": "removesuffix",
    "removesuffix": "removeprefix",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
    "union": "intersection",
    "intersection": "union",
}
_SWAPPABLE = {"append", "print", "isinstance", "len"}


def sibling(function: Function) -> Iterator[Change]:
    """A method or built-in of the same shape that does the opposite or the neighbour's work."""
    module = function.module
    for node in function.body():
        if not isinstance(node, ast.Call):
            continue
        target = node.func
        if isinstance(target, ast.Attribute) and target.attr in _SIBLINGS:
            end = module.span(target)[1]
            yield Change(end - len(target.attr), end, _SIBLINGS[target.attr], f"{target.attr} to sibling")
        elif isinstance(target, ast.Name) and target.id in _SIBLINGS:
            start, end = module.span(target)
            yield Change(start, end, _SIBLINGS[target.id], f"{target.id} to sibling")


def argument(function: Function) -> Iterator[Change]:
    """Two neighbouring arguments swapped, or a keyword argument forgotten."""
    module = function.module
    for node in function.body():
        if not isinstance(node, ast.Call):
            continue
        plain = [value for value in node.args if not isinstance(value, ast.Starred)]
        if len(plain) == len(node.args) == 2 and not _called(node, _SWAPPABLE):
            first, second = module.text(plain[0]), module.text(plain[1])
            start, end = module.span(plain[0])[0], module.span(plain[1])[1]
            if first != second and "\n" not in module.source[start:end]:
                gap = module.source[module.span(plain[0])[1] : module.span(plain[1])[0]]
                yield Change(start, end, second + gap + first, "swap arguments")
        for keyword in node.keywords[-1:]:
            if keyword.arg is not None and (node.args or len(node.keywords) > 1):
                before = node.keywords[-2] if len(node.keywords) > 1 else node.args[-1]
                start, end = module.span(before)[1], module.span(keyword)[1]
                if "\n" not in module.source[start:end]:
                    yield Change(start, end, "", f"drop {keyword.arg}=")


def _called(node: ast.Call, names: set[str]) -> bool:
    target = node.func
    name = target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
    return name in names
