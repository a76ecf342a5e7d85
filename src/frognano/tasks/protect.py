"""What a solver may not decide: how its own work is tested.

A patch is sifted before grading. Changes to the configuration of the test run, to start-up hooks, to bytecode,
to test files, and new top-level modules that would hide the standard library or the test tools are left out, and
the task's sealed version stays. Each one left out is reported, for the audit. Everything else is kept, junk
included. A project file (``pyproject.toml``, ``setup.cfg``) keeps its sealed version as a whole: a solution whose
point is a change there cannot be graded by tests that read it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

CONFIGURATION = {
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
}
START_UP = {"sitecustomize.py", "usercustomize.py", "pyvenv.cfg"}
_BYTECODE = (".pyc", ".pyo", ".pth")
_METADATA = (".egg-info", ".dist-info")
TOOLS = {
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "py",
    "exceptiongroup",
    "tomli",
    "coverage",
    "hypothesis",
    "attr",
    "attrs",
    "sitecustomize",
    "usercustomize",
}
TEST_FOLDERS = {"test", "tests"}

Value = TypeVar("Value")


@dataclass(frozen=True)
class Sifted(Generic[Value]):
    """What is left of a change, and what was left out: path → why."""

    kept: dict[str, Value]
    left_out: dict[str, str]


def is_test_path(name: str) -> bool:
    """True for files in a test folder and for files named like tests."""
    *folders, leaf = name.split("/")
    named = leaf.endswith(".py") and (leaf.startswith("test_") or leaf.endswith("_test.py"))
    return named or any(folder in TEST_FOLDERS for folder in folders)


def is_protected(name: str) -> bool:
    """True for files of the snapshot that decide how tests run: configuration, start-up hooks, test files."""
    return is_test_path(name) or name.rsplit("/", maxsplit=1)[-1] in CONFIGURATION | START_UP


def sift(
    changes: Mapping[str, Value],
    sealed: Collection[str],
    grading_files: Iterable[str],
    pythonpath: Iterable[str],
    module: str = "",
) -> Sifted[Value]:
    """Split ``changes`` to a tree whose files are ``sealed`` into what is graded and what is left out.

    ``module``, where the bug lies, is graded wherever it stands: a package may have a folder called ``test``.
    """
    graded = set(grading_files)
    roots = [entry.strip("/") if entry not in (".", "") else "" for entry in pythonpath]
    known = {_top(name, root) for name in sealed for root in roots}
    kept: dict[str, Value] = {}
    left_out: dict[str, str] = {}
    for name, value in changes.items():
        reason = "" if name == module else _reason(name, graded, roots, known)
        if reason:
            left_out[name] = reason
        else:
            kept[name] = value
    return Sifted(kept, left_out)


def _reason(name: str, graded: set[str], roots: list[str], known: set[str | None]) -> str:
    parts = name.split("/")
    leaf = parts[-1]
    if leaf in CONFIGURATION:
        return "test configuration"
    if leaf in START_UP or leaf.endswith(_BYTECODE) or "__pycache__" in parts:
        return "start-up hook or bytecode"
    if any(part.endswith(_METADATA) for part in parts):
        return "package metadata"
    if name in graded or is_test_path(name):
        return "test file"
    # A file where a test file's folder must stand.
    if any(test.startswith(f"{name}/") for test in graded):
        return "test file"
    for root in roots:
        top = _top(name, root)
        if top is not None and top not in known and (top in TOOLS or top in sys.stdlib_module_names):
            return "hides a module of the standard library or of the test tools"
    return ""


def _top(name: str, root: str) -> str | None:
    """The importable top-level name that a path below ``root`` belongs to."""
    if root and not name.startswith(f"{root}/"):
        return None
    first, _, _ = name[len(root) + 1 if root else 0 :].partition("/")
    return first.partition(".")[0]
