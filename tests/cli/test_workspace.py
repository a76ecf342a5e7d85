"""A repository is read as it stands and written all or nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from frognano.cli.errors import InputError
from frognano.cli.workspace import Workspace, apply_to, read_workspace
from frognano.tasks.diff import make_patch
from frognano.tasks.patch import EXECUTABLE, FILE, Entry, PatchError


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "a.py").write_text("x = 1\n")
    (folder / "run.sh").write_text("echo\n")
    (folder / "run.sh").chmod(0o755)
    (folder / ".gitignore").write_text("secret.txt\nout\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "secret.txt").write_text("key\n")
    return folder


def image(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below ``folder``, ``.git`` too."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def changed(workspace: Workspace, files: dict[str, Entry | None]) -> bytes:
    """The patch that gives the workspace these files."""
    work = {**workspace.files, **files}
    return make_patch(workspace.files, {name: entry for name, entry in work.items() if entry is not None})


def test_a_clean_repository_is_read_without_ignored_files(repo: Path) -> None:
    workspace = read_workspace(repo)
    assert sorted(workspace.files) == [".gitignore", "pkg/a.py", "run.sh"]
    assert (workspace.changed, workspace.untracked, workspace.notices) == (0, 0, ())
    assert workspace.files["run.sh"].mode == EXECUTABLE


def test_a_dirty_tree_is_read_as_it_stands_and_counted(repo: Path) -> None:
    (repo / "pkg" / "a.py").write_text("x = 2\n")
    (repo / "run.sh").unlink()
    (repo / "new.py").write_text("y = 1\n")
    workspace = read_workspace(repo)
    assert workspace.files["pkg/a.py"].data == b"x = 2\n"
    assert "run.sh" not in workspace.files
    assert (workspace.changed, workspace.untracked) == (2, 1)


def test_reading_changes_no_byte_and_runs_nothing_of_the_repository(repo: Path) -> None:
    marker = repo.parent / "ran"
    for key in ("core.fsmonitor", "filter.evil.clean", "core.pager", "diff.external", "core.sshCommand"):
        git(repo, "config", key, f"touch {marker}; cat")
    (repo / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (repo / "pkg" / "a.py").write_text("x = 3\n")
    before = image(repo)
    read_workspace(repo)
    assert image(repo) == before
    assert not marker.exists()


def test_a_folder_without_git_is_read_without_caches(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x\n")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_bytes(b"1")
    assert list(read_workspace(tmp_path).files) == ["a.py"]


def test_a_folder_of_a_repository_is_read_alone(repo: Path) -> None:
    assert list(read_workspace(repo / "pkg").files) == ["a.py"]


def test_links_that_leave_and_repositories_within_are_left_out_and_said(repo: Path) -> None:
    (repo / "escape").symlink_to("/etc/passwd")
    (repo / "inside").symlink_to("pkg/a.py")
    (repo / "nested").mkdir()
    git(repo / "nested", "init", "-q")
    workspace = read_workspace(repo)
    assert "inside" in workspace.files
    assert "escape" not in workspace.files
    assert any("escape" in notice for notice in workspace.notices)
    assert any("nested/" in notice for notice in workspace.notices)


@pytest.mark.parametrize("name", ["missing", "pkg/a.py"])
def test_what_is_no_folder_is_refused_by_name(repo: Path, name: str) -> None:
    with pytest.raises(InputError, match=name):
        read_workspace(repo / name)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no files"):
        read_workspace(tmp_path)


def test_a_patch_is_applied_with_the_modes_that_files_have(repo: Path) -> None:
    (repo / "pkg" / "a.py").chmod(0o600)
    workspace = read_workspace(repo)
    new = {"pkg/a.py": Entry(FILE, b"x = 9\r\n"), "deep/er/b.sh": Entry(EXECUTABLE, b"\x00\xff"), "run.sh": None}
    assert apply_to(workspace, changed(workspace, new)) == ["deep/er/b.sh", "pkg/a.py", "run.sh"]
    assert (repo / "pkg" / "a.py").read_bytes() == b"x = 9\r\n"
    assert (repo / "pkg" / "a.py").stat().st_mode & 0o777 == 0o600
    assert os.access(repo / "deep" / "er" / "b.sh", os.X_OK)
    assert not (repo / "run.sh").exists()
    assert not list(repo.glob(".frognano-*"))


def test_a_file_may_become_a_folder_and_a_folder_a_file(repo: Path) -> None:
    workspace = read_workspace(repo)
    new = {"run.sh": None, "run.sh/in": Entry(FILE, b"1\n"), "pkg/a.py": None, "pkg": Entry(FILE, b"2\n")}
    apply_to(workspace, changed(workspace, new))
    assert (repo / "run.sh" / "in").read_bytes() == b"1\n"
    assert (repo / "pkg").read_bytes() == b"2\n"


def test_a_tree_that_changed_meanwhile_is_not_touched(repo: Path) -> None:
    workspace = read_workspace(repo)
    (repo / "other.py").write_text("later\n")
    before = image(repo)
    with pytest.raises(InputError, match="changed while the model worked"):
        apply_to(workspace, changed(workspace, {"pkg/a.py": Entry(FILE, b"x = 9\n")}))
    assert image(repo) == before


def test_an_ignored_file_is_not_overwritten(repo: Path) -> None:
    workspace = read_workspace(repo)
    with pytest.raises((InputError, PatchError), match=r"secret\.txt"):
        apply_to(workspace, changed(workspace, {"secret.txt": Entry(FILE, b"mine\n")}))
    assert (repo / "secret.txt").read_text() == "key\n"


def test_a_patch_does_not_go_through_an_ignored_link(repo: Path) -> None:
    (repo / "out").symlink_to(repo.parent)
    workspace = read_workspace(repo)
    with pytest.raises(PatchError, match="out"):
        apply_to(workspace, changed(workspace, {"out/evil": Entry(FILE, b"1\n")}))
    assert not (repo.parent / "evil").exists()


def test_when_the_disk_refuses_everything_is_as_before(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = read_workspace(repo)
    before = image(repo)
    patch = changed(workspace, {"pkg/a.py": Entry(FILE, b"x = 9\n"), "zz.py": Entry(FILE, b"1\n")})
    real = os.replace

    def refuse(source: str, target: str) -> None:
        if target.endswith("zz.py"):
            raise OSError(28, "No space left on device", target)
        real(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        apply_to(workspace, patch)
    monkeypatch.undo()
    assert image(repo) == before
