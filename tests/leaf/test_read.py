"""Read: numbered lines that mean the same to every tool, bounded memory, no waiting on special files."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Tool = Callable[..., str]


def test_lines_are_numbered_from_the_offset(tool: Tool, work: Path) -> None:
    (work / "a.py").write_text("one\ntwo\nthree\n")
    assert tool("Read", file_path="a.py") == "a.py\n1. one\n2. two\n3. three"
    assert tool("Read", file_path="a.py", offset=2, limit=1) == "a.py\n2. two"


@pytest.mark.parametrize("breaker", ["\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\r"])
def test_only_a_newline_separates_lines(tool: Tool, work: Path, breaker: str) -> None:
    (work / "f").write_bytes(f"a\n{breaker}b{breaker}\nc\n".encode())
    by_sed = subprocess.run(["sed", "-n", "3p", "f"], cwd=work, capture_output=True, text=True, check=True).stdout
    assert tool("Read", file_path="f", offset=3, limit=1) == f"f\n3. {by_sed.strip()}"


def test_the_reference_splits_where_the_published_harness_does(tool: Tool, work: Path) -> None:
    (work / "f").write_bytes(b"a\n\x0cb\nc\n")
    assert tool("Read", "reference", file_path="f", offset=3, limit=1) == "f\n3. b"


def test_a_byte_order_mark_is_not_text(tool: Tool, work: Path) -> None:
    (work / "f").write_bytes(b"\xef\xbb\xbfhello\n")
    assert tool("Read", file_path="f") == "f\n1. hello"
    assert tool("Read", "reference", file_path="f") == "f\n1. \ufeffhello"


def test_crlf_is_told_and_not_shown(tool: Tool, work: Path) -> None:
    (work / "f").write_bytes(b"a\r\nb\r\n")
    assert tool("Read", file_path="f") == "f\n1. a\n2. b\n[line endings: CRLF]"
    (work / "g").write_bytes(b"a\r\nb\nc\nd\n")
    assert tool("Read", file_path="g").endswith("[line endings: CRLF on some lines]")
    assert tool("Read", "reference", file_path="f") == "f\n1. a\n2. b"


def test_a_missing_final_newline_is_told(tool: Tool, work: Path) -> None:
    (work / "f").write_text("a\nb")
    assert tool("Read", file_path="f") == "f\n1. a\n2. b\n[no newline at the end of the file]"
    assert tool("Read", file_path="f", limit=1) == "f\n1. a"


def test_an_empty_file_and_an_offset_past_the_end_are_told(tool: Tool, work: Path) -> None:
    (work / "f").write_text("")
    (work / "g").write_text("a\nb\n")
    assert tool("Read", file_path="f") == "f\n[the file is empty]"
    assert tool("Read", file_path="g", offset=9) == "g\n[the file has 2 lines; line 9 is past its end]"
    assert tool("Read", "reference", file_path="f") == "f\n"
    assert tool("Read", "reference", file_path="g", offset=9) == "g\n"


def test_a_cut_answer_says_how_to_go_on(tool: Tool, work: Path) -> None:
    (work / "f").write_text("".join(f"line {number} of the file\n" for number in range(1, 5001)))
    text = tool("Read", file_path="f")
    last = text.splitlines()[-1]
    assert len(text) < 20_200
    shown = int(last.split("-")[1].split(" ")[0])
    assert last == f"[lines 1-{shown} of 5000; go on with offset={shown + 1}]"
    assert tool("Read", file_path="f", offset=shown + 1, limit=1) == f"f\n{shown + 1}. line {shown + 1} of the file"


def test_the_reference_keeps_the_head_and_counts_the_rest(tool: Tool, work: Path) -> None:
    lines = [f"line {number} é" for number in range(1, 5001)]
    (work / "f").write_text("\n".join(lines) + "\n")
    whole = "f\n" + "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))
    expected = f"{whole[:20000]}\n[truncated {len(whole) - 20000} chars]"
    assert tool("Read", "reference", file_path="f") == expected


@pytest.mark.parametrize("length", [19_990, 20_000, 70_000, 200_001])
def test_the_reference_cuts_one_long_line_exactly(tool: Tool, work: Path, length: int) -> None:
    (work / "f").write_text("é" * length)
    whole = "f\n1. " + "é" * length
    expected = whole if len(whole) <= 20000 else f"{whole[:20000]}\n[truncated {len(whole) - 20000} chars]"
    assert tool("Read", "reference", file_path="f") == expected


def test_one_endless_line_is_cut_with_the_command_for_the_rest(tool: Tool, work: Path) -> None:
    (work / "f").write_bytes(b"x" * 50_000_000 + b"\nlast\n")
    text = tool("Read", file_path="f")
    assert len(text) < 20_400
    assert "[line 1 is cut after 19996 of 50000000 characters; the rest: sed -n 1p FILE | cut -c 19997-]" in text
    assert text.endswith("[lines 1-1 of 2; go on with offset=2]")


def test_the_tail_of_a_big_file_is_within_reach(tool: Tool, work: Path) -> None:
    (work / "f").write_text("TOKEN = 0\n" * 40_000 + "TOKEN = 1\n")
    assert tool("Read", file_path="f", offset=40_001) == "f\n40001. TOKEN = 1"


@pytest.mark.parametrize("profile", ["leaf", "reference"])
def test_special_files_are_refused_without_waiting(tool: Tool, work: Path, profile: str) -> None:
    os.mkfifo(work / "p")
    (work / "d").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        old = Path.cwd()
        os.chdir(work)
        server.bind("s")
        os.chdir(old)
        assert "not a regular file" in tool("Read", profile, file_path="p")
        assert "not a regular file" in tool("Read", profile, file_path="/dev/zero")
        assert tool("Read", profile, file_path="s").startswith(("ValueError: not a regular file", "OSError"))
    assert tool("Read", profile, file_path="d") == f"IsADirectoryError: [Errno 21] Is a directory: '{work}/d'"
    missing = f"FileNotFoundError: [Errno 2] No such file or directory: '{work}/nope'"
    assert tool("Read", profile, file_path="nope") == missing


def test_a_nul_in_a_path_is_an_answer(tool: Tool) -> None:
    assert tool("Read", file_path="f\0.py") == "ValueError: embedded null byte"


def test_a_binary_file_is_named_not_shown(tool: Tool, work: Path) -> None:
    (work / "f").write_bytes(b"\x7fELF\0\0\1\2")
    assert tool("Read", file_path="f") == "ValueError: f is a binary file of 8 bytes; look at it with Bash"


def test_bytes_that_are_not_utf8_are_replaced(tool: Tool, work: Path) -> None:
    (work / "f").write_bytes(b"caf\xe9\n")
    assert tool("Read", file_path="f") == "f\n1. caf\ufffd"


def test_a_path_is_shown_resolved_and_relative(tool: Tool, work: Path, tmp_path: Path) -> None:
    (work / "sub").mkdir()
    (work / "sub" / "a").write_text("x\n")
    (work / "link").symlink_to("sub/a")
    (tmp_path / "out").write_text("y\n")
    assert tool("Read", file_path="link").startswith("sub/a\n")
    assert tool("Read", file_path=f"{work}/sub/a").startswith("sub/a\n")
    assert tool("Read", path="sub/a").startswith("sub/a\n")
    assert tool("Read", file_path=f"{tmp_path}/out") == f"{tmp_path}/out\n1. y"


def test_numbers_may_come_as_strings_and_nonsense_is_named(tool: Tool, work: Path) -> None:
    (work / "f").write_text("a\nb\nc\n")
    assert tool("Read", file_path="f", offset="2", limit="1") == "f\n2. b"
    assert tool("Read", file_path="f", offset="", limit=None) == tool("Read", file_path="f")
    assert tool("Read", file_path="f", offset=-3, limit=0) == tool("Read", file_path="f")
    assert tool("Read", file_path="f", offset="x") == "ValueError: offset must be a whole number, got 'x'"
    expected = "ValueError: invalid literal for int() with base 10: 'x'"
    assert tool("Read", "reference", file_path="f", offset="x") == expected


def test_a_name_that_is_not_utf8_gives_text_that_can_be_sent(tool: Tool, work: Path) -> None:
    with open(os.fsencode(work) + b"/n\xe9.txt", "w") as stream:
        stream.write("x\n")
    listed = tool("Glob", pattern="*.txt")
    assert listed == "n\ufffd.txt"
    listed.encode()
