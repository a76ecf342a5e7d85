"""Edit: bytes outside the replacement never change, and a miss says where to look."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Tool = Callable[..., str]
PROFILES = pytest.mark.parametrize("profile", ["leaf", "reference"])


@PROFILES
@pytest.mark.parametrize(
    "case",
    [
        (b"a = 1\r\nb = 2\r\n", "a = 1", "a = 9", b"a = 9\r\nb = 2\r\n"),
        (
            b"def f():\r\n    return 1\r\n",
            "def f():\n    return 1",
            "def f():\n    return 2",
            b"def f():\r\n    return 2\r\n",
        ),
        (
            b"def f():\r\n    return 1\r\n",
            "f():\r\n    return 1",
            "g():\r\n    return 1",
            b"def g():\r\n    return 1\r\n",
        ),
        (b"a\r\nb\nc\r\n", "b", "B", b"a\r\nB\nc\r\n"),
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nb\nX\nc\nd", b"a\r\nb\nX\r\nc\r\nd\n"),
        (b"a\r\nb\nc\r\n", "b\nc", "b2\nc2", b"a\r\nb2\nc2\r\n"),
        (b"a\r\nb\r\n", "a", "a\nnew", b"a\r\nnew\r\nb\r\n"),
        (b"a\nb\n", "a", "a\r\nnew", b"a\r\nnew\nb\n"),
        (b"a\nb\n", "a\r\nb", "c", b"c\n"),
        (b"a\rb\n", "b", "c", b"a\rc\n"),
    ],
)
def test_line_endings_stay(tool: Tool, work: Path, profile: str, case: tuple[bytes, str, str, bytes]) -> None:
    before, old, new, after = case
    (work / "f").write_bytes(before)
    assert tool("Edit", profile, file_path="f", old_string=old, new_string=new) == "Edited f (1 replacement)."
    assert (work / "f").read_bytes() == after


@PROFILES
@pytest.mark.parametrize("before", [b"a\nb", b"a\nb\n", b"a\nb\n\n"])
def test_final_newlines_stay_through_repeated_edits(tool: Tool, work: Path, profile: str, before: bytes) -> None:
    (work / "f").write_bytes(before)
    for old, new in [("a", "c"), ("c", "d"), ("d", "a")]:
        tool("Edit", profile, file_path="f", old_string=old, new_string=new)
    assert (work / "f").read_bytes() == before


@PROFILES
def test_byte_order_mark_and_foreign_bytes_stay(tool: Tool, work: Path, profile: str) -> None:
    (work / "f").write_bytes(b"\xef\xbb\xbfhello\ncaf\xe9\n\x00\xff\n")
    tool("Edit", profile, file_path="f", old_string="hello", new_string="hello2 é")
    assert (work / "f").read_bytes() == b"\xef\xbb\xbfhello2 \xc3\xa9\ncaf\xe9\n\x00\xff\n"


@PROFILES
def test_the_replacement_is_no_template(tool: Tool, work: Path, profile: str) -> None:
    (work / "f").write_text('log("done")\n')
    new = r'log("$& $$ \1 \d+ \\n \g<0>")'
    tool("Edit", profile, file_path="f", old_string='log("done")', new_string=new)
    assert (work / "f").read_text() == new + "\n"


@PROFILES
def test_a_link_stays_a_link_and_its_target_changes(tool: Tool, work: Path, profile: str) -> None:
    (work / "real.py").write_text("x=1\n")
    (work / "link.py").symlink_to("real.py")
    assert tool("Edit", profile, file_path="link.py", old_string="x=1", new_string="x=2").startswith("Edited real.py")
    assert (work / "link.py").is_symlink()
    assert (work / "real.py").read_text() == "x=2\n"


def test_link_cycles_and_dangling_links_are_clean_errors(tool: Tool, work: Path) -> None:
    (work / "a").symlink_to("b")
    (work / "b").symlink_to("a")
    (work / "c").symlink_to("nowhere")
    assert tool("Edit", file_path="a", old_string="x", new_string="y").startswith("OSError: [Errno 40]")
    assert tool("Edit", file_path="c", old_string="x", new_string="y").startswith("FileNotFoundError: ")


def test_the_mode_stays(tool: Tool, work: Path) -> None:
    (work / "run.sh").write_text("#!/bin/sh\necho a\n")
    (work / "run.sh").chmod(0o755)
    tool("Edit", file_path="run.sh", old_string="echo a", new_string="echo b")
    assert (work / "run.sh").stat().st_mode & 0o777 == 0o755


def test_several_matches_change_nothing_and_name_every_line(tool: Tool, work: Path) -> None:
    (work / "f").write_text("a\nb\nTOKEN = 1\n" + "filler line\n" * 30_000 + "TOKEN = 1\n")
    before = (work / "f").read_bytes()
    assert tool("Edit", file_path="f", old_string="TOKEN = 1", new_string="TOKEN = 2") == (
        "ValueError: old_string matched 2 times, at lines 3, 30004; use a longer old_string "
        "(Read with offset shows each place) or set replace_all=true"
    )
    assert tool("Edit", "reference", file_path="f", old_string="TOKEN = 1", new_string="TOKEN = 2") == (
        "ValueError: old_string matched 2 times; set replace_all=true or use a more specific old_string"
    )
    assert (work / "f").read_bytes() == before


@pytest.mark.parametrize("yes", [True, "true", "1", "yes", "on", 1])
def test_replace_all_counts_its_replacements(tool: Tool, work: Path, yes: object) -> None:
    (work / "f").write_text("x x x\n")
    text = tool("Edit", file_path="f", old_string="x", new_string="y", replace_all=yes)
    assert text == "Edited f (3 replacements)."
    assert (work / "f").read_text() == "y y y\n"


def test_matches_do_not_overlap(tool: Tool, work: Path) -> None:
    (work / "f").write_text("aaaa\n")
    assert tool("Edit", file_path="f", old_string="aa", new_string="b", replace_all=True).endswith("(2 replacements).")


def test_a_line_in_both_kinds_of_ending_is_two_matches(tool: Tool, work: Path) -> None:
    (work / "f").write_bytes(b"a\r\nb\r\na\nb\n")
    assert "matched 2 times" in tool("Edit", file_path="f", old_string="a\nb", new_string="c")


def test_equal_strings_are_refused_by_leaf(tool: Tool, work: Path) -> None:
    (work / "f").write_text("x\n")
    text = tool("Edit", file_path="f", old_string="x", new_string="x")
    assert text == "ValueError: old_string and new_string are equal; there is nothing to change"
    assert tool("Edit", "reference", file_path="f", old_string="x", new_string="x") == "Edited f (1 replacement)."


def test_missing_strings_are_named(tool: Tool, work: Path) -> None:
    (work / "f").write_text("x\n")
    assert tool("Edit", file_path="f", old_string="", new_string="y") == "ValueError: old_string must be non-empty"
    assert tool("Edit", file_path="f", old_string="x") == "ValueError: new_string is required"
    assert tool("Edit", file_path="f", old_string="x", new_string=None) == "ValueError: new_string is required"
    assert tool("Edit", "reference", file_path="f", old_string="x") == "Edited f (1 replacement)."


def test_the_line_number_gutter_is_named_and_never_written(tool: Tool, work: Path) -> None:
    (work / "f").write_text("alpha\nbeta\n")
    expected = (
        "ValueError: old_string was not found; leave out the line numbers that Read shows, "
        "the text without them stands at line 2"
    )
    for gutter in ("2. ", "     2: ", "2\t", "  2|"):
        assert tool("Edit", file_path="f", old_string=f"{gutter}beta", new_string=f"{gutter}gamma") == expected
    assert (work / "f").read_text() == "alpha\nbeta\n"


def test_a_file_that_really_holds_numbers_is_edited(tool: Tool, work: Path) -> None:
    (work / "f").write_text("     2: beta\n")
    assert tool("Edit", file_path="f", old_string="     2: beta", new_string="x") == "Edited f (1 replacement)."


def test_a_miss_in_blanks_shows_the_text_as_it_stands(tool: Tool, work: Path) -> None:
    (work / "f").write_text("def f():\n\tif x:\n\t\treturn 1\n")
    assert tool("Edit", file_path="f", old_string="    if x:\n        return 1", new_string="pass") == (
        "ValueError: old_string was not found; line 2 differs from it only in spaces or tabs:\n"
        "2. \tif x:\n3. \t\treturn 1"
    )


def test_a_near_miss_shows_the_nearest_text(tool: Tool, work: Path) -> None:
    (work / "f").write_text("import os\n\ndef total(values):\n    return sum(values) + 1\n")
    text = tool("Edit", file_path="f", old_string="    return sum(value) + 1", new_string="    return sum(values)")
    assert text == (
        "ValueError: old_string was not found; the nearest text begins at line 4:\n4.     return sum(values) + 1"
    )
    assert tool("Edit", file_path="f", old_string="zebra", new_string="y") == "ValueError: old_string was not found"
    reference = tool("Edit", "reference", file_path="f", old_string="return sum(value)", new_string="y")
    assert reference == "ValueError: old_string was not found"


def test_bytes_that_cannot_be_typed_are_named(tool: Tool, work: Path) -> None:
    (work / "f").write_bytes(b"name = 'caf\xe9 noir'\n")
    text = tool("Edit", file_path="f", old_string="name = 'caf\ufffd noir'", new_string="name = ''")
    assert "there are bytes that are not UTF-8" in text


def test_an_edit_cannot_create_a_file(tool: Tool, work: Path) -> None:
    text = tool("Edit", file_path="new", old_string="a", new_string="b")
    assert text == f"FileNotFoundError: [Errno 2] No such file or directory: '{work}/new'"


def test_special_files_are_refused(tool: Tool, work: Path) -> None:
    os.mkfifo(work / "p")
    assert "not a regular file" in tool("Edit", file_path="p", old_string="a", new_string="b")


def test_a_huge_file_with_many_near_lines_is_answered(tool: Tool, work: Path) -> None:
    (work / "f").write_text("".join(f"value_{number} = {number}\n" for number in range(25_000)))
    assert "not found" in tool("Edit", file_path="f", old_string="value_x = 70000", new_string="b")


@pytest.fixture
def small_disk(work: Path) -> Iterator[Path]:
    """A disk of 64 KiB; needs the right to mount."""
    folder = work / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("no right to mount a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


@PROFILES
def test_a_full_disk_leaves_the_old_bytes(tool: Tool, small_disk: Path, profile: str) -> None:
    before = b"marker\n" + b"x" * 40_000
    (small_disk / "f").write_bytes(before)
    for name, args in [
        ("Edit", {"old_string": "marker", "new_string": "y" * 40_000}),
        ("Write", {"content": "y" * 80_000}),
    ]:
        assert tool(name, profile, file_path="disk/f", **args).startswith("OSError: [Errno 28]")
        assert (small_disk / "f").read_bytes() == before
        assert os.listdir(small_disk) == ["f"]
