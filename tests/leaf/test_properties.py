"""What holds for any file: an edit touches nothing else, and line numbers agree with a count of newlines."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from frognano.leaf.profile import load_profile
from frognano.leaf.tools import run_tool_locally
from frognano.sandbox import runner

PIECES = st.sampled_from(
    [b"a", b"b", b" ", b"\n", b"\r\n", b"\r", b"\x0c", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf", b"\0"]
)
FILES = st.lists(PIECES, max_size=40).map(b"".join)
TEXTS = st.text(alphabet="ab \n\ré\\$1", max_size=12)


def edited(data: bytes, old: str, new: str, all_of_them: bool) -> tuple[bytes, int]:
    """What Edit makes of ``data``, and the number of matches."""
    spans = runner.find_spans(data, old.encode())
    if len(spans) != 1 and not all_of_them:
        return data, len(spans)
    return runner.splice(data, spans, new.encode()), len(spans)


@settings(max_examples=100, deadline=None)
@given(before=FILES, target=st.text(alphabet="xyz\n", min_size=1, max_size=8), after=FILES, new=TEXTS)
def test_bytes_outside_the_replacement_never_change(before: bytes, target: str, after: bytes, new: str) -> None:
    old = f"<{target}>"
    for ending in (b"\n", b"\r\n"):
        data = before + old.encode().replace(b"\n", ending) + after
        result, _ = edited(data, old, new, all_of_them=False)
        assert result.startswith(before)
        assert result.endswith(after)
        middle = result[len(before) : len(result) - len(after)]
        assert middle.replace(b"\r\n", b"\n") == new.encode().replace(b"\r\n", b"\n")


@settings(max_examples=40, deadline=None)
@given(data=FILES, old=st.text(alphabet="ab \n", min_size=1, max_size=3), new=TEXTS)
def test_an_edit_on_disk_is_all_or_nothing(data: bytes, old: str, new: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "f").write_bytes(data)
        facts = runner.op_edit(folder, "f", old, new)
        result = Path(folder, "f").read_bytes()
    expected, matches = edited(data, old, new, all_of_them=False)
    assert result == expected
    assert facts["matches"] == matches
    assert facts["replaced"] == (matches == 1)


@settings(max_examples=80, deadline=None)
@given(data=st.lists(PIECES.filter(lambda piece: piece != b"\r\n"), max_size=40).map(b"".join), new=TEXTS)
def test_replacing_every_match_is_what_bytes_replace_does(data: bytes, new: str) -> None:
    if b"\r\n" in data or b"a" not in data:
        return
    result, _ = edited(data, "a", new, all_of_them=True)
    assert result == data.replace(b"a", new.encode())


@settings(max_examples=60, deadline=None)
@given(data=FILES.map(lambda data: data.replace(b"\0", b"")), offset=st.integers(1, 12), limit=st.integers(0, 5))
def test_line_numbers_agree_with_a_count_of_newlines(data: bytes, offset: int, limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "f").write_bytes(data)
        arguments = {"file_path": "f", "offset": offset, "limit": limit}
        text = run_tool_locally(Path(folder), "Read", arguments, load_profile("leaf"))
        facts = runner.op_read(folder, "f", offset=offset, limit=limit)
    bare = data[3:] if data.startswith(b"\xef\xbb\xbf") else data
    lines = bare.split(b"\n")
    if not lines[-1]:
        lines.pop()
    assert facts["total_lines"] == len(lines)
    wanted = [line.removesuffix(b"\r") if bare.count(b"\n") > i else line for i, line in enumerate(lines)]
    wanted = wanted[offset - 1 :][: limit or None]
    numbered = [f"{n}. {line.decode('utf-8', 'replace')}" for n, line in enumerate(wanted, start=offset)]
    assert text.split("\n")[1 : 1 + len(numbered)] == numbered


@settings(max_examples=60, deadline=None)
@given(data=st.lists(st.sampled_from(["word ", "é", "\n", "\x0c", "\u2028", "\r\n"]), max_size=60).map("".join))
def test_the_reference_numbers_lines_as_the_published_harness(data: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "f").write_bytes(data.encode())
        text = run_tool_locally(Path(folder), "Read", {"file_path": "f"}, load_profile("reference"))
    assert text == "f\n" + "\n".join(f"{n}. {line}" for n, line in enumerate(data.splitlines(), start=1))
