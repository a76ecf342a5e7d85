"""Sources of tasks are found, described, or refused with a code."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from frognano.taskpilot.repository import RepositoryError, module_name, open_repository, unpack

from .conftest import FILES, write


def test_a_src_layout_is_described(brook: Path) -> None:
    found = open_repository(brook)
    assert (found.name, found.version, found.licence, found.readme) == ("brook", "1.2", "MIT", "README.md")
    assert found.pythonpath == ("src",)
    assert found.modules == ("src/brook/__init__.py", "src/brook/flow.py", "src/brook/words.py")
    assert found.test_files == ("tests/test_flow.py", "tests/test_planted.py", "tests/test_words.py")


def test_pond_is_bundled() -> None:
    found = open_repository("pond")
    assert "pond/ranges.py" in found.modules
    assert "tests/test_ranges.py" in found.test_files
    assert found.licence == "MIT"


def test_a_single_module_with_a_root_test_file_is_described(tmp_path: Path) -> None:
    write(tmp_path, {"frog.py": "def f():\n    return 1\n", "test_frog.py": "", "setup.py": "", "conftest.py": ""})
    found = open_repository(tmp_path)
    assert (found.modules, found.test_files, found.pythonpath) == (("frog.py",), ("test_frog.py",), (".",))


def test_the_licence_is_read_from_its_file_when_nothing_states_it(tmp_path: Path) -> None:
    write(tmp_path, {"frog.py": "", "test_frog.py": "", "LICENSE": FILES["LICENSE"]})
    assert open_repository(tmp_path).licence == "MIT"


def test_metadata_of_a_source_distribution_names_it(tmp_path: Path) -> None:
    write(tmp_path, {"frog.py": "", "test_frog.py": "", "PKG-INFO": "Name: Frog\nVersion: 2\nLicense: BSD\n\nLong\n"})
    found = open_repository(tmp_path)
    assert (found.name, found.version, found.licence) == ("Frog", "2", "BSD")


def test_pytest_settings_of_setup_cfg_are_followed(tmp_path: Path) -> None:
    config = "[tool:pytest]\ntestpaths = checks\npython_files = check_*.py\n"
    write(tmp_path, {"frog.py": "", "checks/check_frog.py": "", "tests/test_not_this.py": "", "setup.cfg": config})
    assert open_repository(tmp_path).test_files == ("checks/check_frog.py",)


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"README": ""}, "no-package"),
        ({"frog.py": ""}, "no-tests"),
        ({"a/pyproject.toml": "", "b/pyproject.toml": ""}, "ambiguous"),
        ({"frog/__init__.py": "", "frog/fast.pyx": "", "test_frog.py": ""}, "compiled"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_code(tmp_path: Path, files: dict[str, str], code: str) -> None:
    write(tmp_path, files)
    with pytest.raises(RepositoryError) as caught:
        open_repository(tmp_path)
    assert caught.value.code == code


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="no-folder"):
        open_repository(tmp_path / "nothing")


def _archive(place: Path, *members: tuple[str, bytes | None]) -> Path:
    with tarfile.open(place, "w:gz") as bundle:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            if data is None:
                entry.type, entry.linkname = tarfile.SYMTYPE, "/etc"
                bundle.addfile(entry)
            else:
                entry.size = len(data)
                bundle.addfile(entry, io.BytesIO(data))
    return place


def test_a_source_distribution_is_unpacked(tmp_path: Path) -> None:
    archive = _archive(tmp_path / "x.tar.gz", ("frog-1/frog.py", b""), ("frog-1/tests/test_frog.py", b""))
    assert open_repository(unpack(archive, tmp_path / "out")).modules == ("frog.py",)


@pytest.mark.parametrize("member", [("frog-1/../../out.py", b""), ("frog-1/link", None)])
def test_an_archive_that_reaches_out_is_refused(tmp_path: Path, member: tuple[str, bytes | None]) -> None:
    archive = _archive(tmp_path / "x.tar.gz", ("frog-1/frog.py", b""), member)
    with pytest.raises(RepositoryError, match="archive"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out.py").exists()


def test_module_names_follow_the_import_path() -> None:
    assert module_name("src/brook/flow.py", ("src",)) == "brook.flow"
    assert module_name("brook/__init__.py", (".",)) == "brook"
    assert module_name("frog.py", (".", "tests")) == "frog"
