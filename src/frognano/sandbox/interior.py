"""What stands inside a sandbox: which host files are shown, where Python comes from, which packages it sees.

The host's tools (/usr, /lib, …) and the base interpreter are shown read-only. Site-packages of every kind are
covered: the interpreter sees only pytest and what pytest needs, copied once into a cache folder named by its
content. So neither our own package nor anything else of the host's environment can be imported inside.

It does not hide which distribution or kernel the host runs.
"""

from __future__ import annotations

import compileall
import hashlib
import importlib.metadata
import importlib.util
import os
import py_compile
import re
import shutil
import site
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from frognano.sandbox.contract import SandboxError

USER_ID = 1000
HOME = "/home/frog"
EXTRA_SLOTS = 16
EXTRA = "/opt/extra"
"""Extra folders stand here as 0, 1, …; a path file makes those that exist importable."""
RESIDENTS = "/opt/frog/residents"
_TOOLS = "/opt/frog/bin"
_FORMAT = "1"
_BYTECODE = f"{sys.implementation.cache_tag} {importlib.util.MAGIC_NUMBER.hex()}"
_SYSTEM_FILES = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/services",
    "/etc/protocols",
)
_FILES = {
    "etc/passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nfrog:x:{USER_ID}:{USER_ID}:frog:{HOME}:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": f"root:x:0:\nfrog:x:{USER_ID}:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost frog\n::1 localhost\n",
    "etc/hostname": "frog\n",
    "etc/resolv.conf": "",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
    "etc/gitconfig": "[user]\n\tname = frog\n\temail = frog@localhost\n[init]\n\tdefaultBranch = main\n"
    "[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n[advice]\n\tdetachedHead = false\n",
}

ENVIRONMENT = {
    "PATH": f"{_TOOLS}:/usr/bin:/bin:/usr/sbin:/sbin",
    "HOME": HOME,
    "USER": "frog",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "TMPDIR": "/tmp",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
}
"""The whole environment of a sandbox; nothing is taken over from the host's."""


def base_python() -> Path:
    """The interpreter outside every virtual environment."""
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    versioned = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return versioned.resolve() if versioned.exists() else base


def skeleton_plan(cache: Path, residents: dict[str, Path]) -> dict[str, Any]:
    """The plan of the root that all sandboxes share, as mounts.Skeleton.build takes it.

    ``binds`` are (host path or None for a folder of its own, path inside without leading slash).
    """
    folders = [
        "etc",
        "proc",
        "dev",
        "tmp",
        "run",
        "var/tmp",
        "home/frog",
        "opt/frog/bin",
        "opt/frog/residents",
        "opt/extra",
    ]
    binds: list[tuple[str | None, str]] = [("/usr", "usr")]
    links: list[tuple[str, str]] = []
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/") / name
        if path.is_symlink():
            links.append((os.readlink(path), name))
        elif path.is_dir():
            binds.append((str(path), name))
    binds += [(path, path[1:]) for path in _SYSTEM_FILES if Path(path).exists()]
    binds += _covers()
    binds += _python(lean_site(cache))
    python = str(base_python())
    links += [(python, f"opt/frog/bin/{name}") for name in ("python", "python3")]
    links.append(("/proc/mounts", "etc/mtab"))
    for name, path in residents.items():
        binds.append((str(path.resolve()), f"{RESIDENTS[1:]}/{name}.py"))
        binds.append((str(_compiled(cache, name, path)), f"{RESIDENTS[1:]}/{name}.pyc"))
    return {"folders": folders, "binds": binds, "links": links, "files": _FILES}


def _compiled(cache: Path, name: str, script: Path) -> Path:
    """The script's bytecode, made once: a script named on the command line would be compiled at every start."""
    digest = hashlib.sha256(f"{_BYTECODE} {name} {script.read_text()}".encode()).hexdigest()[:24]
    target = cache / "residents" / f"{digest}.pyc"
    if not target.is_file():
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        shown = f"{RESIDENTS}/{name}.py"
        py_compile.compile(str(script), str(target), dfile=shown, doraise=True, invalidation_mode=mode)
    return target


def _covers() -> list[tuple[str | None, str]]:
    """Empty folders over everything below /usr that may hold installed packages or local tools."""
    found: list[tuple[str | None, str]] = [(None, "usr/local")] if Path("/usr/local").is_dir() else []
    if Path("/usr/src").is_dir():
        found.append((None, "usr/src"))
    for library in ("/usr/lib", "/usr/lib64", "/usr/share"):
        for pattern in ("python3*/dist-packages", "python3*/site-packages", "pypy3*/dist-packages"):
            found += [(None, str(path)[1:]) for path in sorted(Path(library).glob(pattern)) if not path.is_symlink()]
    return found


def _python(lean: Path) -> list[tuple[str | None, str]]:
    """The base interpreter at its own place, with ``lean`` where its site-packages would be."""
    prefix = Path(sys.base_prefix).resolve()
    library = Path(os.__file__).resolve().parent
    found: list[tuple[str | None, str]] = []
    if prefix != Path("/usr"):
        python = base_python()
        found.append((str(python), str(python)[1:]))
        if prefix == Path("/usr/local"):
            found += [(str(path), str(path)[1:]) for path in sorted((prefix / "lib").glob("libpython*"))]
            found.append((str(library), str(library)[1:]))
        else:
            found.append((str(prefix / "lib"), str(prefix / "lib")[1:]))
            if not library.is_relative_to(prefix / "lib"):
                found.append((str(library), str(library)[1:]))
    places = [Path(place) for place in site.getsitepackages([str(prefix)])]
    usable = [p for p in places if p.is_dir() or (p.is_relative_to("/usr/local") and prefix == Path("/usr"))]
    if not usable:
        raise SandboxError(f"no site-packages folder found for {prefix}; looked at {', '.join(map(str, places))}")
    found += [(None, str(place)[1:]) for place in usable[1:] if place.is_dir()]
    found.append((str(lean), str(usable[0])[1:]))
    return found


def lean_site(cache: Path) -> Path:
    """The folder that stands as site-packages inside: pytest, what it needs, and the extra folders' path file."""
    lines = "".join(f"{EXTRA}/{index}\n" for index in range(EXTRA_SLOTS))
    return package_folder(cache, ("pytest",), {"extra.pth": lines})


def package_folder(cache: Path, names: Sequence[str], files: dict[str, str] | None = None) -> Path:
    """A read-only folder below ``cache`` with the installed distributions ``names`` and what they require.

    Named by its content, built once, compiled. Also serves as an ``extra_paths`` entry of a sandbox.
    """
    distributions = _closure(names)
    digest = hashlib.sha256(f"{_FORMAT} {_BYTECODE} {sorted((files or {}).items())}".encode())
    for distribution in distributions:
        digest.update(f"{distribution.name}=={distribution.version}\n{distribution.read_text('RECORD')}".encode())
    folder = cache / "packages" / digest.hexdigest()[:24]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".build-") as name:
        build = Path(name) / "site"
        build.mkdir()
        for distribution in distributions:
            _copy_distribution(distribution, build)
        for file, text in (files or {}).items():
            (build / file).write_text(text)
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(build, quiet=2, invalidation_mode=mode, stripdir=str(build))
        for path in [build, *build.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        try:
            build.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    return folder


def _closure(names: Sequence[str]) -> list[importlib.metadata.Distribution]:
    found: dict[str, importlib.metadata.Distribution] = {}
    todo = list(names)
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise SandboxError(f"the package {name!r} is not installed; run: pip install {name}") from None
        for requirement in found[name].requires or []:
            parsed = Requirement(requirement)
            if parsed.marker is None or parsed.marker.evaluate({"extra": ""}):
                todo.append(parsed.name)
    return [found[name] for name in sorted(found)]


def _copy_distribution(distribution: importlib.metadata.Distribution, target: Path) -> None:
    if not distribution.files:
        raise SandboxError(
            f"{distribution.name} does not list its files; reinstall it: pip install {distribution.name}"
        )
    for file in distribution.files:
        source = Path(str(distribution.locate_file(file)))
        if ".." in file.parts or file.suffix == ".pyc" or not source.is_file():
            continue
        destination = target / file
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, destination)


def default_cache() -> Path:
    """Where built folders are kept when nothing else is said."""
    return Path.home() / ".cache" / "frognano"
