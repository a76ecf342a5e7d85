"""Hiding tests: the breaking test functions are taken out of the test files, one by one.

Everything else in a file stays byte for byte: other tests, fixtures, imports, formatting. A parametrised test goes
as a whole. A class left without a test goes too unless others in it remain; a file left without any statement but
imports and documentation is removed. Grading writes the clean files back. Names that only a hidden test used stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import libcst as cst


class HideError(ValueError):
    """A test function cannot be taken out, because it is not written where its id says."""


def function_of(test_id: str) -> tuple[str, tuple[str, ...]]:
    """File and name parts of the function behind a pytest node id, parameters dropped.

    ``tests/test_a.py::TestB::test_c[x::y]`` gives ``("tests/test_a.py", ("TestB", "test_c"))``.
    """
    path, _, rest = test_id.partition("::")
    return path, tuple(rest.split("[", 1)[0].split("::"))


def hide(files: Mapping[str, str], test_ids: Iterable[str]) -> dict[str, str | None]:
    """The changed test files without the functions behind ``test_ids``; None where a file is left empty.

    Raises HideError when a function is inherited, generated or otherwise not written in its file.
    """
    wanted: dict[str, set[tuple[str, ...]]] = {}
    for test_id in test_ids:
        path, name = function_of(test_id)
        wanted.setdefault(path, set()).add(name)
    hidden: dict[str, str | None] = {}
    for path, names in wanted.items():
        if path not in files:
            raise HideError(f"{path}: no such test file")
        hidden[path] = _without(path, files[path], names)
    return hidden


def _without(path: str, source: str, names: set[tuple[str, ...]]) -> str | None:
    module, parts = _parts(source)
    remover = _Remover(names)
    kept: list[tuple[cst.BaseStatement | None, str]] = []
    for node, code in parts:
        if not isinstance(node, cst.FunctionDef | cst.BaseCompoundStatement):
            kept.append((node, code))
            continue
        changed = node.visit(remover)
        if changed is node:
            kept.append((node, code))
        elif isinstance(changed, cst.BaseStatement):
            kept.append((changed, module.code_for_node(changed)))
    missing = names - remover.removed
    if missing:
        listed = ", ".join("::".join(name) for name in sorted(missing))
        raise HideError(f"{path}: {listed} is not written there (inherited or generated)")
    if all(node is None or _idle(node) for node, _ in kept):
        return None
    text = "".join(code for _, code in kept)
    return text if source.endswith("\n") else text.removesuffix("\n")


@lru_cache(maxsize=256)
def _parts(source: str) -> tuple[cst.Module, tuple[tuple[cst.BaseStatement | None, str], ...]]:
    """A file's top-level statements with their text; the texts joined are the file."""
    ended = source if source.endswith("\n") else source + "\n"
    module = cst.parse_module(ended)
    head = "".join(module.code_for_node(line) for line in module.header)
    foot = "".join(module.code_for_node(line) for line in module.footer)
    statements = [(node, module.code_for_node(node)) for node in module.body]
    parts: list[tuple[cst.BaseStatement | None, str]] = [(None, head), *statements, (None, foot)]
    if "".join(code for _, code in parts) != ended:
        raise HideError("the file cannot be taken apart and put together again")
    return module, tuple(parts)


class _Remover(cst.CSTTransformer):
    """Removes the functions whose path of names is wanted."""

    def __init__(self, names: set[tuple[str, ...]]) -> None:
        self._names = names
        self._stack: list[str] = []
        self.removed: set[tuple[str, ...]] = set()

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:  # noqa: N802 - libcst's name
        self._stack.append(node.name.value)
        return True

    def leave_ClassDef(  # noqa: N802 - libcst's name
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef | cst.RemovalSentinel:
        own = tuple(self._stack)
        self._stack.pop()
        touched = any(name[: len(own)] == own for name in self.removed)
        body = updated_node.body
        if not touched or not isinstance(body, cst.IndentedBlock):
            return updated_node
        if all(_idle(statement) for statement in body.body):
            return cst.RemoveFromParent()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:  # noqa: N802 - libcst's name
        self._stack.append(node.name.value)
        return False

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:  # noqa: N802 - libcst's name
        return False

    def leave_FunctionDef(  # noqa: N802 - libcst's name
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef | cst.RemovalSentinel:
        own = tuple(self._stack)
        self._stack.pop()
        if own not in self._names:
            return updated_node
        self.removed.add(own)
        return cst.RemoveFromParent()


def _idle(statement: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    """True for imports, documentation and ``pass``: what is left of a file or class without tests."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    return all(
        isinstance(part, cst.Import | cst.ImportFrom | cst.Pass)
        or (isinstance(part, cst.Expr) and isinstance(part.value, cst.SimpleString | cst.ConcatenatedString))
        for part in statement.body
    )
