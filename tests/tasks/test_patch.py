"""Patches survive: what git writes we apply, what we write git applies, byte for byte."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frognano.tasks.diff import make_patch
from frognano.tasks.patch import EXECUTABLE, FILE, LINK, Entry, PatchError, apply_patch, write_changes
from frognano.tasks.tree import read_tree, write_tree

NAMES = [
    "a.py",
    "dir/b c.txt",
    "dir/d\u00e9j\u00e0.py",
    'odd"name\\x.txt',
    "tab\tname",
    "x/y/z.bin",
    "b/b.txt",
    "\udcff.raw",
]
LINES = st.lists(
    st.sampled_from([b"", b" ", b"one", b"two\t", b"\r", b"three\r", b"\x0c", b"-- ", b"+++ x", b"\\ No"]), max_size=30
)
TEXT = st.builds(lambda rows, tail: b"\n".join(rows) + tail, LINES, st.sampled_from([b"", b"\n", b"\n\n"]))
DATA = st.one_of(TEXT, st.binary(max_size=200), st.builds(lambda x: b"\0" + x * 9, st.binary(max_size=200)))
ENTRY = st.one_of(
    st.builds(Entry, st.sampled_from([FILE, EXECUTABLE]), DATA),
    st.builds(Entry, st.just(LINK), st.sampled_from([b"a.py", b"dir/b c.txt", b"nowhere"])),
)
TREE = st.dictionaries(st.sampled_from(NAMES), ENTRY, max_size=6)
FEW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def git(folder: Path, *args: str, stdin: bytes | None = None) -> bytes:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "core.autocrlf=false", *args]
    return subprocess.run(command, cwd=folder, input=stdin, check=True, capture_output=True).stdout


def fresh(tmp_path_factory: pytest.TempPathFactory, tree: dict[str, Entry]) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    write_tree(folder, tree)
    return folder


def updated(base: dict[str, Entry], changes: dict[str, Entry | None]) -> dict[str, Entry]:
    both = {**base, **changes}
    return {name: entry for name, entry in both.items() if entry is not None}


@FEW
@given(base=TREE, work=TREE)
def test_the_patch_of_two_random_trees_made_by_git_gives_the_second_tree(
    tmp_path_factory: pytest.TempPathFactory, base: dict[str, Entry], work: dict[str, Entry]
) -> None:
    folder = fresh(tmp_path_factory, base)
    git(folder, "init", "-q")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-qm", "base", "--allow-empty")
    git(folder, "rm", "-rq", "--ignore-unmatch", ".")
    write_tree(folder, work)
    git(folder, "add", "-A", "-f")
    patch = git(folder, "diff", "--cached", "--binary", "-M", "HEAD")
    assert updated(base, apply_patch(base.get, patch)) == work


@FEW
@given(base=TREE, work=TREE)
def test_our_patch_of_two_random_trees_is_applied_alike_by_git_and_by_us(
    tmp_path_factory: pytest.TempPathFactory, base: dict[str, Entry], work: dict[str, Entry]
) -> None:
    patch = make_patch(base, work)
    assert updated(base, apply_patch(base.get, patch)) == work
    folder = fresh(tmp_path_factory, base)
    if patch:
        git(folder, "apply", "-", stdin=patch)
    assert read_tree(folder) == work


def test_a_renamed_and_edited_file_moves(tmp_path: Path) -> None:
    body = b"".join(b"line %d\n" % n for n in range(40))
    write_tree(tmp_path, {"old.py": Entry(FILE, body)})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "base")
    git(tmp_path, "mv", "old.py", "new name.py")
    (tmp_path / "new name.py").write_bytes(body.replace(b"line 7", b"seven"))
    git(tmp_path, "add", "-A")
    patch = git(tmp_path, "diff", "--cached", "-M", "HEAD")
    assert b"rename from" in patch
    changes = apply_patch({"old.py": Entry(FILE, body)}.get, patch)
    assert changes == {"old.py": None, "new name.py": Entry(FILE, body.replace(b"line 7", b"seven"))}


def test_a_binary_delta_is_applied(tmp_path: Path) -> None:
    body = bytes(range(256)) * 40
    write_tree(tmp_path, {"x.bin": Entry(FILE, body)})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "base")
    (tmp_path / "x.bin").write_bytes(body[:5000] + b"changed" + body[5000:])
    patch = git(tmp_path, "diff", "--binary", "HEAD")
    assert b"\ndelta " in patch
    changes = apply_patch({"x.bin": Entry(FILE, body)}.get, patch)
    assert changes["x.bin"] == Entry(FILE, body[:5000] + b"changed" + body[5000:])


CRLF = Entry(FILE, b"a\r\nb\r\nc")


def test_a_crlf_file_without_final_newline_keeps_every_other_byte() -> None:
    work = {"f": Entry(FILE, b"a\r\nB\r\nc")}
    assert apply_patch({"f": CRLF}.get, make_patch({"f": CRLF}, work)) == work


@pytest.mark.parametrize(
    ("old", "new", "damage"),
    [
        pytest.param(b"l1\nl2\n\n", b"L1\nl2\n\n", lambda p: p[:-1], id="last newline dropped"),
        pytest.param(b"l1\nl2\n\n", b"L1\nl2\n\n", lambda p: p.rstrip(), id="stripped"),
        pytest.param(
            CRLF.data, b"a\r\nB\r\nc", lambda p: p.replace(b"\\ No newline at end of file\n", b""), id="marker"
        ),
        pytest.param(CRLF.data, b"a\r\nB\r\nc", lambda p: p.replace(b"-b\r", b"-b"), id="CR lost"),
        pytest.param(CRLF.data, b"a\r\nB\r\nc", lambda p: p[: len(p) - 30], id="cut"),
        pytest.param(b"\0old", b"\0new", lambda p: p[: len(p) // 2], id="binary cut"),
    ],
)
def test_a_damaged_patch_is_refused(old: bytes, new: bytes, damage: Callable[[bytes], bytes]) -> None:
    base, work = {"f": Entry(FILE, old)}, {"f": Entry(FILE, new)}
    patch = make_patch(base, work)
    assert apply_patch(base.get, patch) == work
    with pytest.raises(PatchError):
        apply_patch(base.get, damage(patch))


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", ".git/hooks/pre-commit", "a/.GIT/config", "a//b"])
def test_a_patch_that_leaves_the_tree_is_refused(name: str) -> None:
    patch = b"diff --git a/%b b/%b\nnew file mode 100644\n--- /dev/null\n+++ b/%b\n@@ -0,0 +1 @@\n+x\n"
    with pytest.raises(PatchError):
        apply_patch({}.get, patch % ((name.encode(),) * 3))


def test_a_patch_through_a_link_is_refused() -> None:
    link = make_patch({}, {"out": Entry(LINK, b"/tmp")})
    file = make_patch({}, {"out/x": Entry(FILE, b"x\n")})
    with pytest.raises(PatchError, match="not a folder"):
        apply_patch({}.get, link + file)


def test_writing_replaces_links_and_removes_empty_folders(tmp_path: Path) -> None:
    write_tree(tmp_path, {"keep": Entry(FILE, b"k"), "d/e/f": Entry(FILE, b"f"), "l": Entry(LINK, b"keep")})
    write_changes(str(tmp_path), {"d/e/f": None, "d": Entry(FILE, b"now a file"), "l": Entry(FILE, b"new")})
    assert read_tree(tmp_path) == {
        "d": Entry(FILE, b"now a file"),
        "keep": Entry(FILE, b"k"),
        "l": Entry(FILE, b"new"),
    }
