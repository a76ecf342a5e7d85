"""Files placed below a root, whatever stands in the way, and the check that they are still what was placed.

Standard library only; Python 3.6 and later.
"""

import base64
import os
import shutil
import stat
from typing import Any, Dict


def place(root: str, files: Dict[str, Any]) -> None:
    """Write ``files`` (path → [mode, base64] or null) below ``root``; whatever stands in the way goes first."""
    for name, entry in sorted(files.items(), key=lambda item: item[1] is not None):
        path = os.path.join(os.fsencode(root), os.fsencode(name))
        if entry is None:
            _remove(path)
            continue
        _clear_way(os.fsencode(root), os.fsencode(name))
        _remove(path)
        mode, data = entry[0], base64.b64decode(entry[1])
        if stat.S_ISLNK(mode):
            os.symlink(data, path)
            continue
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            os.fchmod(stream.fileno(), 0o755 if mode & 0o100 else 0o644)


def _remove(path: bytes) -> None:
    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)
    elif os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _clear_way(root: bytes, name: bytes) -> None:
    """Make every parent of ``name`` a real folder, never a link."""
    path = root
    for part in name.split(b"/")[:-1]:
        path = os.path.join(path, part)
        if os.path.islink(path) or not os.path.isdir(path):
            _remove(path)
            os.mkdir(path, 0o755)


def intact(root: str, files: Dict[str, Any]) -> bool:
    """True when every placed file is still exactly what was placed."""
    for name, entry in files.items():
        path = os.path.join(os.fsencode(root), os.fsencode(name))
        if entry is None:
            if os.path.lexists(path):
                return False
            continue
        if os.path.realpath(path) != path and not stat.S_ISLNK(entry[0]):
            return False
        try:
            with open(path, "rb") as stream:
                if not stat.S_ISLNK(entry[0]) and stream.read() != base64.b64decode(entry[1]):
                    return False
        except OSError:
            return False
    return True
