"""The rules of the house: imports point one way, the tail stays short, nothing of this machine is in the tree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "frognano"
POND = SOURCE / "tadpole" / "pond"

ORDER = (
    *("records", "config", "sandbox", "tasks", "leaf", "policy", "rollout", "benchmarks", "taskpilot", "train"),
    *("tadpole", "coevolve", "select", "consolidate", "audit", "report", "cli"),
)
"""The tree of the README: a row may import only rows above it."""

LONG_FILES = {
    "src/frognano/sandbox/runner.py": "one file, because it is sent into the sandbox as it is",
    "src/frognano/tasks/patch.py": "one file, because it is shipped inside task folders",
    "src/frognano/tasks/inside/judge.py": "one file, because it runs alone inside the sandbox",
}
LONG_FUNCTIONS: dict[str, str] = {
    "src/frognano/cli/solve.py:solve": "a list of options",
}
MOST_LINES, MOST_FUNCTION_LINES, MOST_NESTING = 400, 60, 4


def modules() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if POND not in path.parents]


def tracked() -> list[Path]:
    """Files that git tracks or would; in a copy without git every file that is not a leftover."""
    asked = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if asked.returncode:
        pytest.skip("not a git repository")
    names = [name.decode() for name in asked.stdout.split(b"\0") if name]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def imported(tree: ast.AST) -> Iterator[str]:
    """Every ``frognano`` module that is imported anywhere in the file, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "frognano")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "frognano":
                yield from (f"frognano.{alias.name}" for alias in node.names)
            elif node.module and node.module.startswith("frognano."):
                yield node.module


def test_a_row_of_the_tree_imports_only_rows_above_it() -> None:
    wrong = []
    for path in modules():
        row = path.relative_to(SOURCE).parts[0]
        if row not in ORDER:
            continue
        for name in imported(ast.parse(path.read_text())):
            target = f"{name}.".split(".")[1]
            upward = target in ORDER and ORDER.index(target) > ORDER.index(row)
            if upward:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_every_package_is_a_row_of_the_tree() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages <= set(ORDER), sorted(packages - set(ORDER))


def test_every_module_opens_with_its_promise() -> None:
    silent = [str(path.relative_to(ROOT)) for path in modules() if not ast.get_docstring(ast.parse(path.read_text()))]
    assert not silent, silent


def test_files_stay_short() -> None:
    lengths = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in modules()}
    long = {name: lines for name, lines in lengths.items() if lines > MOST_LINES and name not in LONG_FILES}
    assert not long, f"longer than {MOST_LINES} lines; split by what it does: {long}"


def functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.name}", node


def test_functions_stay_short() -> None:
    long = {
        name: node.end_lineno - node.lineno + 1
        for path in modules()
        for name, node in functions(path)
        if node.end_lineno and node.end_lineno - node.lineno + 1 > MOST_FUNCTION_LINES and name not in LONG_FUNCTIONS
    }
    assert not long, f"longer than {MOST_FUNCTION_LINES} lines: {long}"


BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)


def depth(node: ast.AST) -> int:
    """Blocks within blocks below ``node``; an ``elif`` is no deeper than its ``if``."""
    deepest = 0
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            is_elif = isinstance(node, ast.If) and field == "orelse" and isinstance(child, ast.If)
            deepest = max(deepest, depth(child) + (isinstance(child, BLOCKS) and not is_elif))
    return deepest


def test_blocks_are_not_nested_deeply() -> None:
    deep = {name: depth(node) for path in modules() for name, node in functions(path) if depth(node) > MOST_NESTING}
    assert not deep, f"nested deeper than {MOST_NESTING}: {deep}"


def test_nothing_of_a_machine_is_in_the_tree() -> None:
    needles = [str(ROOT).encode()] + [str(Path.home()).encode() + b"/"] * (Path.home() != Path("/root"))
    found = [
        str(path.relative_to(ROOT))
        for path in tracked()
        if path.stat().st_size < 2_000_000 and any(needle in path.read_bytes() for needle in needles)
    ]
    assert not found, found


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]).lower()


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    assert all(re.fullmatch(r"[A-Za-z0-9_.\-]+==[^\s+]+", line) for line in lines), "exact versions, no local ones"
    pinned = {_name(line) for line in lines}
    assert not {_name(one) for one in wanted} - pinned
    assert "torch==2.13.0" in lines


@pytest.mark.slow
def test_the_bundled_repository_passes_its_own_suite() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pyproject.toml"],
        cwd=POND,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stdout[-2000:]
