"""Flow: wrong returns, exception types, loop bounds, a forgotten await."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from frognano.taskpilot.mutate.source import Function
from frognano.taskpilot.mutate.spans import Change

_EXCEPTIONS = {
    "ValueError": "TypeError",
    "TypeError": "ValueError",
    "KeyError": "IndexError",
    "IndexError": "KeyError",
    "AttributeError": "KeyError",
    "ZeroDivisionError": "ValueError",
    "LookupError": "KeyError",
    "OverflowError": "ValueError",
}


def returned(function: Function) -> Iterator[Change]:
    """The wrong thing returned: a truth value turned, a pair swapped, a parameter handed back untouched."""
    module = function.module
    parameters = [argument.arg for argument in function.node.args.args if argument.arg not in {"self", "cls"}]
    for node in function.body():
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        start, end = module.span(node.value)
        text = module.source[start:end]
        if "\n" in text:
            continue
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
            yield Change(start, end, str(not node.value.value), "return turned")
        elif isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            first, second = (module.text(part) for part in node.value.elts)
            if first != second:
                inner = f"{second}, {first}"
                yield Change(start, end, f"({inner})" if text.startswith("(") else inner, "return swapped")
        elif isinstance(node.value, ast.Name):
            for other in parameters[:2]:
                if other != node.value.id:
                    yield Change(start, end, other, f"return {other}")


def exception(function: Function) -> Iterator[Change]:
    """A neighbouring exception type, raised or caught."""
    module = function.module
    for node in function.body():
        names: list[ast.expr] = []
        if isinstance(node, ast.Raise) and node.exc is not None:
            names = [node.exc.func if isinstance(node.exc, ast.Call) else node.exc]
        elif isinstance(node, ast.ExceptHandler) and node.type is not None:
            names = list(node.type.elts) if isinstance(node.type, ast.Tuple) else [node.type]
        for name in names:
            if isinstance(name, ast.Name) and name.id in _EXCEPTIONS:
                yield Change(*module.span(name), _EXCEPTIONS[name.id], f"{name.id} to {_EXCEPTIONS[name.id]}")


def loop(function: Function) -> Iterator[Change]:
    """A loop one short or one late; ``break`` for ``continue``."""
    module = function.module
    for node in function.body():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            yield from _range(function, node)
        elif isinstance(node, ast.Break):
            yield Change(*module.span(node), "continue", "break to continue")
        elif isinstance(node, ast.Continue):
            yield Change(*module.span(node), "break", "continue to break")


def _range(function: Function, node: ast.Call) -> Iterator[Change]:
    module = function.module
    if len(node.args) == 1:
        start, end = module.span(node.args[0])
        yield Change(start, start, "1, ", "range starts at 1")
        yield Change(end, end, " - 1", "range one short")
    elif len(node.args) >= 2:
        stop = node.args[1]
        start, end = module.span(stop)
        if isinstance(stop, ast.BinOp) and isinstance(stop.right, ast.Constant) and stop.right.value == 1:
            yield Change(start, end, module.text(stop.left), "range bound loses its offset")
        elif isinstance(stop, ast.Name | ast.Call):
            yield Change(end, end, " - 1", "range one short")


def awaited(function: Function) -> Iterator[Change]:
    """An ``await`` forgotten."""
    module = function.module
    for node in function.body():
        if isinstance(node, ast.Await):
            yield Change(module.span(node)[0], module.span(node.value)[0], "", "drop await")
