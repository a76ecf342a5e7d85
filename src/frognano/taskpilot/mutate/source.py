"""A module's source with its syntax tree and exact offsets, so that a mutation is one replaced span of text.

Formatting outside the span stays as it was; a mutated module parses, or the mutation is not offered. Nothing
here runs the code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from frognano.records import Record


class Mutation(Record):
    """One semantic change: replace ``source[start:end]`` by ``text``."""

    family: str
    operator: str
    """What was done, for example ``< to <=``."""
    function: str
    """Qualified name of the outermost function or method that holds the change."""
    start: int
    end: int
    text: str
    line: int
    """1-based line of the change."""

    def apply(self, source: str) -> str:
        """The mutated source."""
        return source[: self.start] + self.text + source[self.end :]


@dataclass(frozen=True)
class Function:
    """One top-level function or method: its node, qualified name and module."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    name: str
    module: Module

    def body(self) -> Iterator[ast.AST]:
        """Every node whose change is a semantic one: no docstrings, decorators, annotations or f-string parts."""
        for statement in self.node.body:
            if not is_docstring(statement):
                yield from _walk(statement)

    def docstring(self) -> str:
        """The cleaned docstring, or an empty string."""
        return ast.get_docstring(self.node) or ""


class Module:
    """Parsed source with conversion from the tree's positions to character offsets."""

    def __init__(self, source: str) -> None:
        """Raises SyntaxError when ``source`` does not parse."""
        self.source = source
        self.tree = ast.parse(source)
        self._starts = [0]
        for line in source.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._ascii = source.isascii()
        self._text_lines = source.split("\n")

    def offset(self, line: int, column: int) -> int:
        """Character offset of a 1-based line and a UTF-8 byte column."""
        if not self._ascii:
            column = len(self._text_lines[line - 1].encode()[:column].decode())
        return self._starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> tuple[int, int]:
        """Start and end offset of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def text(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> str:
        """Source text of a node."""
        start, end = self.span(node)
        return self.source[start:end]

    def line_text(self, line: int) -> str:
        """Text of a 1-based line."""
        return self._text_lines[line - 1]

    def line_of(self, offset: int) -> int:
        """1-based line of an offset."""
        return self.source.count("\n", 0, offset) + 1

    def lines_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, int]:
        """Start and end offset of the whole lines a function stands on, decorators included."""
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        assert node.end_lineno is not None
        return self._starts[first - 1], self._starts[node.end_lineno] - 1

    def functions(self) -> Iterator[Function]:
        """Top-level functions and the methods of top-level classes, in order."""
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield Function(node, node.name, self)
            elif isinstance(node, ast.ClassDef):
                for member in node.body:
                    if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                        yield Function(member, f"{node.name}.{member.name}", self)


def is_docstring(node: ast.AST) -> bool:
    """True for a bare string statement."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.JoinedStr) or is_docstring(node):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "type_comment"}:
            continue
        children = value if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.AST):
                yield from _walk(child)
