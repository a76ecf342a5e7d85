"""Write: bytes as given, folders made, files replaced whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Tool = Callable[..., str]


def test_a_file_is_created_with_its_folders(tool: Tool, work: Path) -> None:
    assert tool("Write", file_path="a/b/c.py", content="x = 1\n") == "Wrote a/b/c.py (6 bytes)."
    assert (work / "a/b/c.py").read_bytes() == b"x = 1\n"


def test_leaf_counts_bytes_and_the_reference_characters(tool: Tool) -> None:
    assert tool("Write", file_path="a", content="é\n") == "Wrote a (3 bytes)."
    assert tool("Write", "reference", file_path="a", content="é\n") == "Wrote a (2 bytes)."


@pytest.mark.parametrize("profile", ["leaf", "reference"])
@pytest.mark.parametrize("content", [None, {"a": 1}, ["x"], 3])
def test_content_that_is_no_string_never_reaches_the_file(
    tool: Tool, work: Path, profile: str, content: object
) -> None:
    (work / "a").write_text("keep\n")
    assert tool("Write", profile, file_path="a", content=content).startswith("ValueError: content ")
    assert (work / "a").read_text() == "keep\n"


def test_missing_content_is_refused_by_leaf_and_empty_in_the_reference(tool: Tool, work: Path) -> None:
    assert tool("Write", file_path="a") == "ValueError: content is required"
    assert tool("Write", "reference", file_path="a") == "Wrote a (0 bytes)."
    assert (work / "a").read_bytes() == b""


def test_nul_and_line_endings_are_stored_as_given(tool: Tool, work: Path) -> None:
    tool("Write", file_path="a", content="x\0y\r\nz\n\ufeff")
    assert (work / "a").read_bytes() == b"x\0y\r\nz\n\xef\xbb\xbf"


def test_five_megabytes_are_written(tool: Tool, work: Path) -> None:
    assert tool("Write", file_path="big", content="x" * 5_000_000) == "Wrote big (5000000 bytes)."
    assert (work / "big").stat().st_size == 5_000_000


def test_a_link_keeps_pointing_and_the_mode_stays(tool: Tool, work: Path) -> None:
    (work / "real.sh").write_text("old")
    (work / "real.sh").chmod(0o750)
    (work / "link").symlink_to("real.sh")
    tool("Write", file_path="link", content="new")
    assert (work / "link").is_symlink()
    assert (work / "real.sh").read_text() == "new"
    assert (work / "real.sh").stat().st_mode & 0o777 == 0o750


def test_special_files_and_folders_are_refused(tool: Tool, work: Path) -> None:
    os.mkfifo(work / "p")
    (work / "d").mkdir()
    assert "not a regular file" in tool("Write", file_path="p", content="x")
    assert tool("Write", file_path="d", content="x").startswith("IsADirectoryError: ")
    (work / "f").write_text("")
    assert tool("Write", file_path="f/x", content="x").startswith(("NotADirectoryError", "FileExistsError"))
    assert list(work.glob(".frognano-*")) == []


def test_a_path_is_required(tool: Tool) -> None:
    assert tool("Write", content="x") == "ValueError: file_path is required"
