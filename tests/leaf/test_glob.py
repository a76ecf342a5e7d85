"""Glob: literal folders, everything but .git, one stated order, a counted rest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Tool = Callable[..., str]


def make(work: Path, *names: str) -> None:
    for name in names:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("")


@pytest.mark.parametrize("profile", ["leaf", "reference"])
def test_folders_with_brackets_are_found(tool: Tool, work: Path, profile: str) -> None:
    make(work, "app/[id]/page.py", "app/(group)/x.py")
    assert tool("Glob", profile, pattern="*.py", path="app/[id]") == "app/[id]/page.py"
    assert tool("Glob", profile, pattern="app/[id]/*.py") == "app/[id]/page.py"
    assert tool("Glob", profile, pattern="app/(group)/*.py") == "app/(group)/x.py"


def test_ignored_and_hidden_files_are_shown_and_git_is_not(tool: Tool, work: Path) -> None:
    make(work, "dist/bundle.js", ".github/ci.yml", ".git/config", "a/.git/x", ".env", "main.js")
    (work / ".gitignore").write_text("dist/\n")
    assert tool("Glob", pattern="dist/bundle.js") == "dist/bundle.js"
    assert tool("Glob", pattern="**/bundle.js") == "dist/bundle.js"
    expected = ".env\n.github/ci.yml\n.gitignore\ndist/bundle.js\nmain.js"
    assert tool("Glob", pattern="**") == expected
    assert tool("Glob", pattern="**/*") == expected
    assert tool("Glob", pattern=".git/*") == "No files matched."


def test_the_reference_hides_what_begins_with_a_dot(tool: Tool, work: Path) -> None:
    make(work, "a.py", ".b.py", ".c/d.py", "e/f.py")
    assert tool("Glob", "reference", pattern="**/*.py") == "a.py\ne/f.py"
    assert tool("Glob", "reference", pattern=".*.py") == ".b.py"


def test_paths_are_sorted_and_the_rest_is_counted(tool: Tool, work: Path) -> None:
    for number in range(7):
        (work / f"d{number}").mkdir()
    for number in range(1, 1203):
        os.mknod(work / f"d{number % 7}/f{number:04}.txt", 0o600)
    lines = tool("Glob", pattern="**/*.txt").splitlines()
    assert lines[:-1] == sorted(lines[:-1])
    assert len(lines) == 1001
    assert lines[-1] == "... 202 more files; use a narrower pattern or path"
    assert tool("Glob", "reference", pattern="**/*.txt").splitlines()[-1] == "... 202 more files"


def test_only_files_match_and_one_star_stays_in_its_folder(tool: Tool, work: Path) -> None:
    make(work, "a/b.py", "top.py")
    assert tool("Glob", pattern="*") == "top.py"
    assert tool("Glob", pattern="a") == "No files matched."
    assert tool("Glob", pattern="*/*.py") == "a/b.py"
    assert tool("Glob", pattern="*.{js,py}") == "top.py"


def test_a_missing_folder_is_no_empty_one(tool: Tool, work: Path) -> None:
    assert tool("Glob", pattern="*", path="nope") == "FileNotFoundError: no such folder: nope"
    assert tool("Glob", "reference", pattern="*", path="nope") == "No files matched."
    assert tool("Glob", pattern="") == "ValueError: pattern is required"


def test_absolute_patterns_and_folders_outside_are_shown_whole(tool: Tool, work: Path, tmp_path: Path) -> None:
    make(work, "a.py")
    (tmp_path / "out.py").write_text("")
    assert tool("Glob", pattern=f"{work}/*.py") == "a.py"
    assert tool("Glob", pattern="*.py", path=str(tmp_path)) == f"{tmp_path}/out.py"
    assert tool("Glob", pattern="../*.py") == f"{tmp_path}/out.py"


def test_link_cycles_end(tool: Tool, work: Path) -> None:
    make(work, "a/b.py")
    (work / "a" / "loop").symlink_to("..")
    (work / "dangling.py").symlink_to("nowhere")
    assert tool("Glob", pattern="**/*.py") == "a/b.py"
