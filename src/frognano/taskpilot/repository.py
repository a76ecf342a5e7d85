"""A source of tasks: one pure-Python package with a pytest suite, found and described without running it.

Takes the bundled ``pond``, a local git or plain folder, or an unpacked source distribution; finds modules, tests,
import paths and licence. A folder that does not fit is refused with a code and what would help. Whether the suite
passes is for ``baseline`` to say.
"""

from __future__ import annotations

import configparser
import tarfile
import tomllib
from collections.abc import Iterator, Sequence
from email.parser import HeaderParser
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

import frognano
from frognano.records import Record

POND = Path(frognano.__file__).parent / "tadpole" / "pond"
"""The bundled repository."""

Code = Literal["no-folder", "no-package", "no-tests", "compiled", "ambiguous", "archive"]

_TEST_FOLDERS = ("tests", "test", "testing")
_NOT_SOURCE = {"docs", "doc", "examples", "example", "benchmarks", "bench", "scripts", "tools", "build", "dist"}
_NOT_MODULES = {"setup.py", "conftest.py", "noxfile.py", "tasks.py", "fabfile.py", "conf.py"}
_COMPILED = {".pyx", ".pxd", ".so", ".pyd", ".c", ".cpp", ".rs"}
_MARKS = (
    ("mit license", "MIT"),
    ("apache license", "Apache-2.0"),
    ("bsd 3-clause", "BSD-3-Clause"),
    ("redistribution and use in source", "BSD"),
    ("mozilla public license", "MPL-2.0"),
    ("permission is hereby granted, free of charge", "MIT"),
    ("gnu general public license", "GPL"),
)


class RepositoryError(ValueError):
    """The folder cannot be a source of tasks; ``code`` says why in one word."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Repository(Record):
    """One source: where it lies and what in it is what. Paths are relative to ``folder``, with slashes."""

    name: str
    version: str = ""
    folder: Path
    pythonpath: tuple[str, ...] = (".",)
    modules: tuple[str, ...]
    """Files that may be changed."""
    test_files: tuple[str, ...]
    licence: str = ""
    readme: str = ""
    """Path of the README, or empty."""

    def read(self, path: str) -> str:
        """Text of a file; line endings stay as they are."""
        return (self.folder / path).read_bytes().decode()

    def readme_text(self) -> str:
        """Text of the README, or empty."""
        return (self.folder / self.readme).read_text(errors="replace") if self.readme else ""


def open_repository(source: Path | str) -> Repository:
    """Describe ``source``: the word ``pond`` or a folder. Raises RepositoryError."""
    folder = POND if str(source) == "pond" else Path(source).expanduser()
    if not folder.is_dir():
        raise RepositoryError("no-folder", f"{folder} is not a folder; unpack a source distribution first")
    folder = _descend(folder.resolve())
    project = _pyproject(folder)
    metadata = _metadata(folder)
    options = _pytest_options(folder, project)
    pythonpath = _pythonpath(folder, options)
    tests = tuple(sorted(_test_files(folder, options)))
    modules = tuple(sorted(_modules(folder, pythonpath, set(tests))))
    if not modules:
        raise RepositoryError("no-package", f"no importable package or module below {folder} ({', '.join(pythonpath)})")
    if not tests:
        raise RepositoryError("no-tests", f"no test_*.py or *_test.py below {folder}; TaskPilot needs a pytest suite")
    _refuse_compiled(folder, modules)
    about = project.get("project", {})
    return Repository(
        name=str(about.get("name") or metadata.get("Name") or folder.name),
        version=str(about.get("version") or metadata.get("Version") or ""),
        folder=folder,
        pythonpath=pythonpath,
        modules=modules,
        test_files=tests,
        licence=_licence(folder, about, metadata),
        readme=next((p.name for p in sorted(folder.iterdir()) if p.name.lower().startswith("readme")), ""),
    )


def unpack(archive: Path, into: Path) -> Path:
    """Unpack a source distribution's tar archive below ``into``; the folder it made.

    Members that leave the folder, links out of it and special files are refused before anything is used.
    """
    try:
        with tarfile.open(archive) as bundle:
            names = {member.name.split("/")[0] for member in bundle.getmembers()}
            if len(names) != 1:
                raise RepositoryError("archive", f"{archive.name} does not hold exactly one folder")
            into.mkdir(parents=True, exist_ok=True)
            bundle.extractall(into, filter="data")
    except (tarfile.TarError, OSError) as error:
        raise RepositoryError("archive", f"{archive.name} cannot be unpacked: {error}") from error
    return into / names.pop()


def _descend(folder: Path) -> Path:
    """The repository's root: ``folder``, or its only subfolder where that holds the project."""
    if any((folder / name).exists() for name in ("pyproject.toml", "setup.py", "setup.cfg")):
        return folder
    inner = [child for child in folder.iterdir() if child.is_dir() and (child / "pyproject.toml").exists()]
    if len(inner) > 1:
        names = ", ".join(sorted(child.name for child in inner))
        raise RepositoryError("ambiguous", f"{folder} holds several projects: {names}; name one")
    return inner[0] if inner else folder


def _pyproject(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / "pyproject.toml").read_text())
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def _metadata(folder: Path) -> dict[str, str]:
    try:
        return dict(HeaderParser().parsestr((folder / "PKG-INFO").read_text(errors="replace")).items())
    except OSError:
        return {}


def _pytest_options(folder: Path, project: dict[str, Any]) -> dict[str, list[str]]:
    """``pythonpath``, ``testpaths`` and ``python_files`` from whichever file configures pytest."""
    found: dict[str, Any] = {}
    for name, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string((folder / name).read_text())
        except (OSError, configparser.Error):
            continue
        if parser.has_section(section):
            found = dict(parser[section])
            break
    tool = project.get("tool", {}).get("pytest", {})
    found = found or tool.get("ini_options", {})
    keys = ("pythonpath", "testpaths", "python_files")
    return {key: _words(found[key]) for key in keys if key in found}


def _words(value: Any) -> list[str]:
    return value.split() if isinstance(value, str) else [str(item) for item in value]


def _pythonpath(folder: Path, options: dict[str, list[str]]) -> tuple[str, ...]:
    asked = [path.strip("/") or "." for path in options.get("pythonpath", []) if (folder / path).is_dir()]
    paths = [path for path in asked if _importable(folder / path)]
    if not paths and (folder / "src").is_dir() and _importable(folder / "src"):
        paths = ["src"]
    return tuple(dict.fromkeys([*(paths or ["."]), *asked]))


def _importable(folder: Path) -> list[Path]:
    """Packages and modules directly below ``folder`` that are the project's own."""
    found = []
    for child in sorted(folder.iterdir()):
        if child.is_dir():
            known = child.name in _NOT_SOURCE or child.name in _TEST_FOLDERS
            if (child / "__init__.py").exists() and not known:
                found.append(child)
        elif child.suffix == ".py" and child.name not in _NOT_MODULES and not _named_test(child.name):
            found.append(child)
    return found


def _named_test(name: str, patterns: list[str] | None = None) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns or ["test_*.py", "*_test.py"])


def _test_files(folder: Path, options: dict[str, list[str]]) -> Iterator[str]:
    roots = [folder / path for path in options.get("testpaths", []) if (folder / path).exists()]
    roots = roots or [folder / name for name in _TEST_FOLDERS if (folder / name).is_dir()]
    patterns = options.get("python_files")
    for root in roots or [folder]:
        for path in [root] if root.is_file() else root.rglob("*.py"):
            inside = path.relative_to(folder)
            hidden = any(part.startswith(".") or part in _NOT_SOURCE for part in inside.parts[:-1])
            if not hidden and _named_test(path.name, patterns):
                yield inside.as_posix()


def _modules(folder: Path, pythonpath: tuple[str, ...], tests: set[str]) -> Iterator[str]:
    for root in pythonpath:
        for found in _importable(folder / root):
            for path in [found] if found.is_file() else found.rglob("*.py"):
                inside = path.relative_to(folder)
                apart = any(part in _TEST_FOLDERS for part in inside.parts[:-1])
                if not apart and inside.as_posix() not in tests and path.name != "conftest.py":
                    yield inside.as_posix()


def _refuse_compiled(folder: Path, modules: tuple[str, ...]) -> None:
    for package in {Path(module).parent for module in modules if "/" in module}:
        for path in (folder / package).iterdir():
            if path.suffix in _COMPILED:
                raise RepositoryError("compiled", f"{package / path.name}: only pure-Python packages are supported")


def _licence(folder: Path, about: dict[str, Any], metadata: dict[str, str]) -> str:
    stated = about.get("license") or metadata.get("License-Expression") or metadata.get("License")
    if isinstance(stated, dict):
        stated = stated.get("text")
    if isinstance(stated, str) and 0 < len(stated) < 60:
        return stated
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.lower().startswith(("licen", "copying")):
            text = path.read_text(errors="replace").lower()
            return next((name for mark, name in _MARKS if mark in text), "")
    return ""


def module_name(path: str, pythonpath: Sequence[str]) -> str:
    """Dotted name of a module file."""
    for root in sorted(pythonpath, key=len, reverse=True):
        prefix = "" if root == "." else root.rstrip("/") + "/"
        if path.startswith(prefix):
            parts = path[len(prefix) :].removesuffix(".py").split("/")
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return path
