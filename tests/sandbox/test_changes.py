"""The patch of a sandbox: everything that git can carry survives, and nothing of the solver's is trusted."""

from __future__ import annotations

import base64
import json
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frognano.sandbox import local, walk
from frognano.sandbox.changes import git_folder, make_patch, read_changes
from frognano.sandbox.contract import ChangesTooLarge, Limits, SandboxSpec
from frognano.sandbox.local import LocalBackend
from frognano.tasks.patch import Entry, apply_patch

LIMITS = Limits(memory_mb=128, pids=32, disk_mb=16)
Tree = dict[str, tuple[int, bytes]]


def read_tree(root: Path) -> Tree:
    """Path → (git mode, content), without .git."""
    found: Tree = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        folders[:] = [name for name in folders if name != b".git"]
        for raw in [
            *(name for name in files if name != b".git"),
            *(name for name in folders if os.path.islink(os.path.join(folder, name))),
        ]:
            path = os.path.join(folder, raw)
            info = os.lstat(path)
            name = os.fsdecode(os.path.relpath(path, os.fsencode(root)))
            if stat.S_ISLNK(info.st_mode):
                found[name] = (0o120000, os.readlink(path))
            elif stat.S_ISREG(info.st_mode):
                found[name] = (0o100755 if info.st_mode & 0o100 else 0o100644, Path(os.fsdecode(path)).read_bytes())
    return found


def write_tree(root: Path, tree: Tree) -> None:
    for name, (mode, content) in tree.items():
        path = os.path.join(os.fsencode(root), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if mode == 0o120000:
            os.symlink(content, path)
        else:
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, mode & 0o777)


def applied(snapshot: Path, patch: bytes) -> Tree:
    """The tree that ``git apply`` makes of a clean copy."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "copy"
        shutil.copytree(snapshot, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        if patch:
            command = ["git", "apply", "--binary", "--whitespace=nowarn", "-"]
            done = subprocess.run(command, input=patch, cwd=copy, capture_output=True, check=False)
            assert done.returncode == 0, done.stderr.decode(errors="replace")
        return read_tree(copy)


@pytest.fixture
def after(backend: LocalBackend, wait: Any, snapshot: Path) -> Any:
    """Runs a script in a sandbox over ``snapshot``; returns the patch."""

    def run(script: str) -> bytes:
        async def use() -> bytes:
            sandbox = await backend.open(SandboxSpec(snapshot=snapshot, limits=LIMITS))
            try:
                result = await sandbox.request("bash", {"command": script, "timeout_s": 30}, 60)
                assert result["code"] == 0, result
                return await sandbox.changes()
            finally:
                await sandbox.close()

        patch: bytes = wait(use())
        return patch

    return run


@pytest.fixture
def repository(snapshot: Path) -> Path:
    """The snapshot with one commit and files of every sort."""
    write_tree(
        snapshot,
        {
            "b.txt": (0o100644, b"b\n"),
            "crlf.txt": (0o100644, b"one\r\ntwo\r\nthree\r\n"),
            "no-end.txt": (0o100644, b"a\nb"),
            "tool.sh": (0o100755, b"#!/bin/sh\n"),
            "link": (0o120000, b"b.txt"),
            "data.bin": (0o100644, bytes(range(256)) * 4),
            "folder/deep/file.txt": (0o100644, b"deep\n"),
            "latin1.txt": (0o100644, b"caf\xe9\n"),
            ".gitignore": (0o100644, b"*.log\nbuild/\n!keep.log\n"),
            "tracked.log": (0o100644, b"a file that the snapshot has\n"),
        },
    )
    git = "git init -q . && git add -A -f && git -c user.name=a -c user.email=a@b commit -qm base"
    subprocess.run(["bash", "-c", git], cwd=snapshot, check=True)
    return snapshot


CHANGES = {
    "nothing": "true",
    "edit": "echo more >> b.txt",
    "new-file": "echo new > new.txt; mkdir -p x/y; echo z > x/y/z.py",
    "staged": "echo new > new.txt; git add new.txt; echo s >> b.txt; git add b.txt",
    "committed": "echo c >> b.txt; git commit -qam wip; echo n > n.py; git add n.py; git commit -qm more",
    "stashed-and-popped": "echo c >> b.txt; git stash -q; git stash pop -q",
    "git-deleted": "rm -rf .git; echo c >> b.txt",
    "git-made-anew": "rm -rf .git; git init -q .; git add -A; git commit -qm all; echo c >> b.txt",
    "git-is-a-file": "rm -rf .git; echo gitdir: /nowhere > .git; echo c >> b.txt",
    "binary": "printf '\\0\\1\\2\\377' >> data.bin; cat data.bin data.bin > new.bin; printf '\\0' >> new.bin",
    "renamed": "mv b.txt c.txt; mv folder other",
    "renamed-by-git": "git mv b.txt c.txt",
    "deleted": "rm b.txt; rm -r folder",
    "folder-made-anew": "rm -r folder; mkdir -p folder/deep; echo 1 > folder/deep/other",
    "file-becomes-folder": "rm b.txt; mkdir b.txt; echo 1 > b.txt/inner",
    "folder-becomes-file": "rm -r folder; echo 1 > folder",
    "file-becomes-link": "rm b.txt; ln -s crlf.txt b.txt",
    "link-becomes-file": "rm link; echo real > link",
    "link-becomes-folder": "rm link; mkdir link; echo 1 > link/x",
    "folder-becomes-link": "rm -r folder; ln -s pkg folder",
    "mode": "chmod +x b.txt; chmod -x tool.sh",
    "touched-only": "touch b.txt; cat crlf.txt > t; cat t > crlf.txt; rm t",
    "crlf-line": "sed -i 's/two/2/' crlf.txt",
    "final-newline": "printf '\\n' >> no-end.txt; printf end >> b.txt",
    "odd-names": "for n in 'a b' $'new\\nline' '\"q\"' -dash $'\\xff\\xfe' 'é' 'back\\slash' $'tab\\t'; "
    'do echo 1 > "./$n"; done',
    "odder-names": "for n in ' lead' 'trail ' ':(top)x' '#c' '!n' '*' '[a]'; do echo 1 > \"$n\"; done; "
    "mkdir 'd d'; echo 5 > 'd d/e'",
    "links": "ln -s /etc/passwd abs; ln -s nowhere dangling; ln -s . self; ln -s ../.. up",
    "unreadable": "echo s > secret; chmod 000 secret; mkdir shut; echo 1 > shut/in; chmod 000 shut",
    "latin1": "printf 'caf\\xe9 \\xff\\n' > latin1.txt",
    "empty-file": ": > empty; : > b.txt",
}


@pytest.mark.parametrize("script", CHANGES.values(), ids=CHANGES)
def test_the_patch_makes_the_tree_that_the_solver_left(after: Any, repository: Path, script: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        expected = Path(name) / "copy"
        shutil.copytree(repository, expected, symlinks=True)
        identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a"}
        environment = {**os.environ, **identity, "GIT_COMMITTER_EMAIL": "a@b"}
        subprocess.run(["bash", "-c", script], cwd=expected, check=True, env=environment)
        if os.geteuid() != 0:
            subprocess.run(["chmod", "-R", "u+rwX", str(expected)], check=False)
        exports = "; ".join(f"export {key}=a" for key in (*identity, "GIT_COMMITTER_EMAIL"))
        assert applied(repository, after(f"{exports}; {script}")) == read_tree(expected)


LEFT_OUT = {
    "ignored": "echo 1 > x.log; mkdir build; echo 2 > build/out",
    "caches": "mkdir -p pkg/__pycache__ .pytest_cache; touch pkg/__pycache__/a.pyc .pytest_cache/x b.pyc",
    "nested-git": "mkdir sub; cd sub; git init -q .; rm -rf ../sub/hooks",
    "git-like-names": "mkdir -p .GIT 'git~1'; echo 1 > .GIT/config; echo 2 > 'git~1/x'",
    "fifo-and-socket": "mkfifo pipe; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"",
    "deep": "d=.; for i in $(seq 150); do d=$d/d; done; mkdir -p $d; echo 1 > $d/x",
    "empty-folder": "mkdir -p e/e",
}


@pytest.mark.parametrize("script", LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_a_patch_must_not_carry_is_left_out(after: Any, repository: Path, script: str) -> None:
    assert after(script) == b""


def test_a_file_that_the_snapshot_has_is_kept_though_ignored(after: Any, repository: Path) -> None:
    patch = after("echo more >> tracked.log; echo new > keep.log; printf '*\\n' > .gitignore; echo n > fresh.py")
    names = {line.split(b" b/")[1] for line in patch.splitlines() if line.startswith(b"diff --git")}
    assert names == {b"tracked.log", b"keep.log", b".gitignore", b"fresh.py"}


def test_a_link_to_a_secret_is_carried_as_a_link(after: Any, repository: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("host secret")
    patch = after(f"ln -s {tmp_path}/secret stolen; rm -r folder; ln -s {tmp_path} folder; ln -s {tmp_path} new")
    assert b"host secret" not in patch
    assert applied(repository, patch)["stolen"] == (0o120000, os.fsencode(tmp_path / "secret"))


def test_settings_of_git_that_name_programs_are_never_run(after: Any, repository: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    program = f"/bin/sh -c 'echo ran > {marker}; cat'"
    patch = after(
        f"""git config core.fsmonitor "{program}"; git config filter.evil.clean "{program}"
        git config diff.evil.textconv "{program}"; git config diff.external "{program}"
        git config core.hooksPath .hooks; git config core.attributesFile .evil; mkdir .hooks
        printf '#!/bin/sh\\necho ran > {marker}\\n' > .hooks/post-checkout; chmod +x .hooks/post-checkout
        printf '* filter=evil diff=evil\\n' > .gitattributes; cp .gitattributes .git/info/attributes
        cp .gitattributes .evil; rm -f {marker}; echo changed > b.txt"""
    )
    assert b"+changed" in patch
    assert not marker.exists()


def test_attributes_do_not_change_how_content_is_compared(after: Any, repository: Path) -> None:
    patch = after("printf '* -diff binary\\n*.txt text eol=crlf\\n' > .gitattributes; echo more >> b.txt")
    assert b"+more\n" in patch


@pytest.mark.parametrize("script", ["head -c 5M /dev/zero > big", "head -c 900K /dev/urandom > big"])
def test_too_much_is_an_outcome_of_its_own_that_names_the_cause(
    after: Any, repository: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "MAX_CHANGE_BYTES", 4 << 20)
    monkeypatch.setattr(local, "MAX_PATCH_BYTES", 1 << 20)
    with pytest.raises(ChangesTooLarge, match="big"):
        after(script)


NAMES = st.sampled_from(
    ["a", "b", "c.py", "d d", "-e", "f\nf", '"g"', "\udcff\udcfe", "é", "h\\h", ".i", "GIT", "git~2", "j\t", "k'", "%l"]
)
CONTENTS = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from([b"x\n", b"y\r\n", b"z", b"\n", b"--- a/b\n", b"\\ No newline\n"])).map(b"".join),
)
FILES = st.tuples(st.sampled_from([0o100644, 0o100755]), CONTENTS)
LINKS = st.tuples(st.just(0o120000), st.sampled_from([b"a", b"../x", b"/etc/passwd", b"\xff", b"new\nline"]))


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """A random tree without a path that is both file and folder."""
    tree: Tree = {}
    for parts in draw(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=8)):
        name = "/".join(parts)
        above = {"/".join(parts[:depth]) for depth in range(1, len(parts))}
        if not (above & tree.keys() or any(other.startswith(name + "/") for other in tree)):
            tree[name] = draw(st.one_of(FILES, FILES, LINKS))
    return tree


REPLACE = """
import base64, json, os, shutil, sys
for name in os.listdir("."):
    shutil.rmtree(name) if os.path.isdir(name) and not os.path.islink(name) else os.unlink(name)
for raw, (mode, content) in json.load(sys.stdin).items():
    path, content = base64.b64decode(raw), base64.b64decode(content)
    os.makedirs(os.path.dirname(path) or b".", exist_ok=True)
    if mode == 0o120000:
        os.symlink(content, path)
    else:
        open(path, "wb").write(content)
        os.chmod(path, mode & 0o777)
"""


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=trees(), after_=trees())
def test_any_tree_becomes_any_other_by_its_patch(backend: LocalBackend, wait: Any, before: Tree, after_: Tree) -> None:
    def coded(data: bytes) -> str:
        return base64.b64encode(data).decode()

    with tempfile.TemporaryDirectory() as name:
        write_tree(Path(name), before)
        wanted = {coded(os.fsencode(path)): (mode, coded(data)) for path, (mode, data) in after_.items()}
        args = {"argv": ["python3", "-c", REPLACE], "stdin_b64": coded(json.dumps(wanted).encode()), "timeout_s": 30}

        async def use() -> bytes:
            sandbox = await backend.open(SandboxSpec(snapshot=Path(name), limits=LIMITS))
            try:
                done = await sandbox.request("exec", args, 60)
                assert done["code"] == 0, done
                return await sandbox.changes()
            finally:
                await sandbox.close()

        assert applied(Path(name), wait(use())) == after_


@settings(max_examples=40, deadline=None)
@given(before=trees(), after_=trees())
def test_two_whole_trees_are_compared_alike_and_our_own_reader_applies_the_patch(before: Tree, after_: Tree) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two, git_folder() as git_dir:
        write_tree(Path(one), before)
        write_tree(Path(two), after_)
        with tempfile.TemporaryFile() as stream:
            walk.send(stream.fileno(), walk.Job(two, one, True, 1 << 20, str(git_dir)))
            stream.seek(0)
            patch = make_patch(read_changes(stream, 1 << 20), git_dir, 1 << 20)
        assert applied(Path(one), patch) == after_
        changed = apply_patch(lambda name: Entry(*before[name]) if name in before else None, patch)
        left = {**before, **{name: tuple(entry) if entry else None for name, entry in changed.items()}}
        assert {name: entry for name, entry in left.items() if entry} == after_
