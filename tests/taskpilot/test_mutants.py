"""Every mutation of every module of pond parses and changes one function."""

from __future__ import annotations

import ast

import pytest

from frognano.taskpilot.mutate import FAMILIES, mutations
from frognano.taskpilot.repository import open_repository

POND = open_repository("pond")


@pytest.mark.parametrize("path", [path for path in POND.modules if not path.endswith("__init__.py")])
def test_mutated_modules_parse_and_change_one_function(path: str) -> None:
    source = POND.read(path)
    clean = _functions(source)
    for mutation in mutations(source):
        changed = _functions(mutation.apply(source))
        assert [name for name in clean if clean[name] != changed.get(name)] == [mutation.function]


def _functions(source: str) -> dict[str, str]:
    found = {}
    for node in ast.parse(source).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        outer = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for member in members:
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                found[outer + member.name] = ast.dump(member)
    return found


def test_pond_sees_at_least_eight_families() -> None:
    seen = {mutation.family for path in POND.modules for mutation in mutations(POND.read(path))}
    assert len(seen) >= 8
    assert seen <= set(FAMILIES)
