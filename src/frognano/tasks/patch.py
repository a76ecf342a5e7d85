"""Patches in git's format, read and applied without git.

``apply_patch`` turns a patch and a way to read the base tree into the changed files, in memory: text, binary
(literal and delta), new and deleted files, renames, copies, modes, symbolic links, CRLF, odd names, a missing
final newline. The bytes of a patch are never stripped or re-encoded; ``diff.make_patch`` is its inverse.

Only the standard library is used, because this file is also shipped inside task folders, where it applies the
gold patch in images without git. It does not protect from a patch that changes the wrong thing; it does refuse
names that leave the tree or reach into ``.git``.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

FILE, EXECUTABLE, LINK, SUBMODULE = 0o100644, 0o100755, 0o120000, 0o160000
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
ESCAPES = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}


class PatchError(ValueError):
    """The patch is damaged, does not fit its base, or names a path outside the tree."""


class Entry(NamedTuple):
    """One file as git sees it: mode (file, executable or symbolic link) and bytes (a link's are its target)."""

    mode: int
    data: bytes


Changes = dict[str, Entry | None]
"""Path → new content; None where the path is removed. Names are decoded with surrogateescape."""


class _Section:
    """One file's part of a patch while it is read."""

    def __init__(self, header: bytes) -> None:
        self.old, self.new = _header_names(header)
        self.old_mode: int | None = None
        self.new_mode: int | None = None
        self.created = self.deleted = self.copied = self.renamed = False
        self.hunks: list[tuple[int, list[bytes], list[bytes]]] = []
        self.binary: tuple[bytes, bytes] | None = None
        self.blobs: tuple[bytes, bytes] | None = None


def apply_patch(read: Callable[[str], Entry | None], patch: bytes) -> Changes:
    """The files that ``patch`` changes in the tree that ``read`` reads. Raises PatchError."""
    changes: Changes = {}
    written: set[str] = set()
    for section in _sections(patch):
        if SUBMODULE in (section.old_mode, section.new_mode):
            continue
        for name in (section.old, section.new):
            check_name(name)
        base = None if section.created else read(section.old)
        if base is None and not section.created:
            raise PatchError(f"{section.old}: the patch changes a file that is not there")
        entry = _patched(section, base)
        _check_blobs(section, base, entry)
        if (section.deleted or section.renamed) and section.old not in written:
            changes[section.old] = None
        if section.deleted:
            continue
        if section.new in written:
            raise PatchError(f"{section.new}: the patch writes this file twice")
        changes[section.new] = entry
        written.add(section.new)
        if section.created and read(section.new) is not None:
            _expect_removed(patch, section.new)
    _check_parents(read, changes)
    return changes


def _check_blobs(section: _Section, base: Entry | None, entry: Entry) -> None:
    """Where the patch names the content it starts from and it is ours, its result must be the one it names."""
    if section.blobs is None:
        return
    old, new = section.blobs
    empty = not section.hunks and section.binary is None
    if (empty or blob_name(base).startswith(old)) and new.strip(b"0") and not blob_name(entry).startswith(new):
        raise PatchError(f"{section.new}: the patch is damaged: it does not give the content that it names")


def _expect_removed(patch: bytes, name: str) -> None:
    removed = any((s.deleted or s.renamed) and s.old == name for s in _sections(patch))
    if not removed:
        raise PatchError(f"{name}: the patch creates a file that is already there")


def check_name(name: str) -> None:
    """Refuse a repository path that is absolute, leaves the tree, or reaches into ``.git``."""
    parts = name.split("/")
    if not name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise PatchError(f"{name!r}: not a path inside the tree")
    if any(part.lower() == ".git" for part in parts):
        raise PatchError(f"{name!r}: reaches into .git")


def _check_parents(read: Callable[[str], Entry | None], changes: Changes) -> None:
    for name, entry in changes.items():
        parts = name.split("/")
        for depth in range(1, len(parts)) if entry is not None else ():
            parent = "/".join(parts[:depth])
            there = changes[parent] if parent in changes else read(parent)
            if there is not None:
                raise PatchError(f"{name}: {parent} is a file or a link, not a folder")


# --- reading -------------------------------------------------------------------------------------------------


def _sections(patch: bytes) -> Iterator[_Section]:
    """The parts of ``patch``, file by file; text before the first part is ignored as git ignores it."""
    lines = patch.splitlines(keepends=True) if b"\r" not in patch else split_lines(patch)
    at = 0
    while at < len(lines):
        if not lines[at].startswith(b"diff --git "):
            at += 1
            continue
        section = _Section(lines[at])
        at = _read_extended(section, lines, at + 1)
        at = _read_hunks(section, lines, at)
        yield section


def split_lines(data: bytes) -> list[bytes]:
    """Lines with their newline; only ``\\n`` ends a line."""
    return [line for line in re.split(rb"(?<=\n)", data) if line]


def _read_extended(section: _Section, lines: list[bytes], at: int) -> int:
    while at < len(lines):
        line = lines[at]
        word, _, rest = line.rstrip(b"\n").partition(b" ")
        if line.startswith(b"old mode "):
            section.old_mode = _mode(line[9:])
        elif line.startswith(b"new mode "):
            section.new_mode = _mode(line[9:])
        elif line.startswith(b"deleted file mode "):
            section.deleted, section.old_mode = True, _mode(line[18:])
        elif line.startswith(b"new file mode "):
            section.created, section.new_mode = True, _mode(line[14:])
        elif word in (b"rename", b"copy"):
            _read_move(section, word, rest)
        elif word == b"index":
            tail = rest.split(b" ")
            old, _, new = tail[0].partition(b"..")
            section.blobs = (old, new)
            section.old_mode = _mode(tail[1]) if len(tail) > 1 else section.old_mode
        elif line.startswith(b"--- "):
            return _read_names(section, lines, at)
        elif line == b"GIT binary patch\n":
            return _read_binary(section, lines, at + 1)
        elif line.startswith(b"Binary files "):
            raise PatchError(f"{section.new}: binary change without its content")
        elif word not in (b"similarity", b"dissimilarity"):
            return at
        at += 1
    return at


def _read_move(section: _Section, word: bytes, rest: bytes) -> None:
    side, _, name = rest.partition(b" ")
    section.renamed = section.renamed or word == b"rename"
    section.copied = section.copied or word == b"copy"
    if side == b"from":
        section.old = _name(name)
    else:
        section.new = _name(name)


def _read_names(section: _Section, lines: list[bytes], at: int) -> int:
    if at + 1 >= len(lines) or not lines[at + 1].startswith(b"+++ "):
        raise PatchError(f"{section.new}: '---' without '+++'")
    for line, prefix, side in ((lines[at], b"a/", "old"), (lines[at + 1], b"b/", "new")):
        raw = line[4:].rstrip(b"\n")
        # git ends a name that holds a space with a tab, quoted or not.
        raw = raw.removesuffix(b"\t") if raw.startswith(b'"') else raw.split(b"\t", 1)[0]
        if raw == b"/dev/null":
            continue
        name = _unquote(raw)
        if not name.startswith(prefix):
            raise PatchError(f"{os.fsdecode(raw)}: expected the prefix {prefix.decode()}")
        setattr(section, side, os.fsdecode(name[2:]))
    return at + 2


def _read_hunks(section: _Section, lines: list[bytes], at: int) -> int:
    while at < len(lines) and (found := _HUNK.match(lines[at])):
        start, old_left, new_left = int(found[1]), int(found[2] or 1), int(found[4] or 1)
        before: list[bytes] = []
        after: list[bytes] = []
        at += 1
        last: list[list[bytes]] = []
        while old_left > 0 or new_left > 0:
            if at >= len(lines) or not lines[at].endswith(b"\n"):
                raise PatchError(f"{section.new}: the patch ends inside a hunk")
            kind, text = (lines[at][:1], lines[at][1:]) if lines[at] != b"\n" else (b" ", b"\n")
            if kind == b"\\":
                _drop_newline(last)
            elif kind in (b" ", b"-", b"+"):
                last = [side for side, kinds in ((before, b" -"), (after, b" +")) if kind in kinds]
                for side in last:
                    side.append(text)
                old_left -= kind in b" -"
                new_left -= kind in b" +"
            else:
                raise PatchError(f"{section.new}: damaged hunk")
            at += 1
        if at < len(lines) and lines[at].startswith(b"\\"):
            _drop_newline(last)
            at += 1
        section.hunks.append((start, before, after))
    return at


def _drop_newline(sides: list[list[bytes]]) -> None:
    for side in sides:
        side[-1] = side[-1][:-1]


def _read_binary(section: _Section, lines: list[bytes], at: int) -> int:
    """The forward part of a binary patch; the reverse part, where there is one, is skipped."""
    kind, _, size = lines[at].rstrip(b"\n").partition(b" ") if at < len(lines) else (b"", b"", b"")
    if kind not in (b"literal", b"delta") or not size.isdigit():
        raise PatchError(f"{section.new}: damaged binary patch")
    packed, at = _read_base85(section, lines, at + 1)
    try:
        unpacked = zlib.decompress(packed)
    except zlib.error:
        raise PatchError(f"{section.new}: damaged binary patch") from None
    if len(unpacked) != int(size):
        raise PatchError(f"{section.new}: damaged binary patch")
    section.binary = (kind, unpacked)
    if at < len(lines) and lines[at].startswith((b"literal ", b"delta ")):
        _, at = _read_base85(section, lines, at + 1)
    return at


def _read_base85(section: _Section, lines: list[bytes], at: int) -> tuple[bytes, int]:
    packed = bytearray()
    while at < len(lines) and lines[at] != b"\n":
        line = lines[at].rstrip(b"\n")
        count = line[0] - 64 if line[0] <= 90 else line[0] - 70
        try:
            packed += base64.b85decode(line[1:])[:count]
        except ValueError:
            raise PatchError(f"{section.new}: damaged binary patch") from None
        at += 1
    if at >= len(lines):
        raise PatchError(f"{section.new}: the patch ends inside a binary file")
    return bytes(packed), at + 1


def _header_names(line: bytes) -> tuple[str, str]:
    """Names of a ``diff --git`` line; later lines of the section may correct them."""
    rest = line[11:].rstrip(b"\n")
    if rest.startswith(b'"') or rest.endswith(b'"'):
        names = re.fullmatch(rb'("(?:[^"\\]|\\.)*"|\S.*?) ("(?:[^"\\]|\\.)*"|.*)', rest)
        if names is None:
            raise PatchError("damaged 'diff --git' line")
        return _name(_unquote(names[1])[2:], False), _name(_unquote(names[2])[2:], False)
    half = len(rest) // 2
    if rest[2:half] == rest[half + 3 :]:
        return os.fsdecode(rest[2:half]), os.fsdecode(rest[2:half])
    old, _, new = rest.partition(b" b/")
    return os.fsdecode(old[2:]), os.fsdecode(new)


def _name(raw: bytes, quoted: bool = True) -> str:
    return os.fsdecode(_unquote(raw) if quoted else raw)


def _unquote(raw: bytes) -> bytes:
    if not raw.startswith(b'"'):
        return raw
    if len(raw) < 2 or not raw.endswith(b'"'):
        raise PatchError("damaged quoted name")

    def value(found: re.Match[bytes]) -> bytes:
        code = found[1]
        number = int(code, 8) if code.isdigit() else ESCAPES.get(code, -1)
        if not 0 <= number < 256:
            raise PatchError("damaged quoted name")
        return bytes([number])

    return re.sub(rb"\\([0-7]{3}|.)", value, raw[1:-1])


def _mode(raw: bytes) -> int:
    try:
        return int(raw, 8)
    except ValueError:
        raise PatchError("damaged mode line") from None


# --- applying ------------------------------------------------------------------------------------------------


def blob_name(entry: Entry | None) -> bytes:
    """Git's name of the entry's content; zeros where there is none."""
    if entry is None:
        return b"0" * 40
    return hashlib.sha1(b"blob %d\0" % len(entry.data) + entry.data).hexdigest().encode()


def _patched(section: _Section, base: Entry | None) -> Entry:
    data = base.data if base is not None else b""
    mode = section.new_mode or (base.mode if base is not None else FILE)
    if mode not in (FILE, EXECUTABLE, LINK):
        mode = EXECUTABLE if mode & 0o111 else FILE
    if section.binary is not None:
        kind, content = section.binary
        return Entry(mode, content if kind == b"literal" else _delta(section.new, data, content))
    if not section.hunks:
        return Entry(mode, data)
    lines = split_lines(data)
    result: list[bytes] = []
    done = 0
    for start, before, after in section.hunks:
        at = _locate(lines, before, max(start - 1, 0) if before else start, done)
        if at is None:
            raise PatchError(f"{section.new}: the hunk at line {start} does not fit")
        result += lines[done:at] + after
        done = at + len(before)
    result += lines[done:]
    return Entry(mode, b"".join(result))


def _locate(lines: list[bytes], before: list[bytes], wanted: int, low: int) -> int | None:
    """Index where ``before`` stands, nearest to ``wanted`` and not before ``low``."""
    last = len(lines) - len(before)
    for distance in range(max(wanted - low, last - wanted) + 1):
        for at in (wanted - distance, wanted + distance):
            if low <= at <= last and lines[at : at + len(before)] == before:
                return at
    return None


def _delta(name: str, source: bytes, delta: bytes) -> bytes:
    """Apply a git delta (copy and insert operations)."""
    try:
        size, at = _varint(delta, 0)
        wanted, at = _varint(delta, at)
        out = bytearray()
        while at < len(delta):
            op = delta[at]
            at += 1
            if op & 0x80:
                offset, length, at = _copy(delta, at, op)
                out += source[offset : offset + (length or 0x10000)]
            else:
                out += delta[at : at + op]
                at += op
    except IndexError:
        raise PatchError(f"{name}: damaged binary delta") from None
    if size != len(source) or wanted != len(out):
        raise PatchError(f"{name}: the binary delta does not fit")
    return bytes(out)


def _copy(delta: bytes, at: int, op: int) -> tuple[int, int, int]:
    """Offset and length of a copy operation, and where the next one begins."""
    offset = length = 0
    for bit in range(7):
        if not op >> bit & 1:
            continue
        if bit < 4:
            offset |= delta[at] << 8 * bit
        else:
            length |= delta[at] << 8 * (bit - 4)
        at += 1
    return offset, length, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


# --- as a script: apply a patch file to a folder -------------------------------------------------------------


def read_entry(root: str, name: str) -> Entry | None:
    """The file ``name`` below ``root`` as an entry; None when there is no file or link of that name."""
    path = os.path.join(root, name)
    if os.path.islink(path):
        return Entry(LINK, os.fsencode(os.readlink(path)))
    if not os.path.isfile(path) or _through_link(root, name):
        return None
    with open(path, "rb") as stream:
        return Entry(EXECUTABLE if os.stat(path).st_mode & 0o100 else FILE, stream.read())


def _through_link(root: str, name: str) -> bool:
    parts = name.split("/")
    return any(os.path.islink(os.path.join(root, *parts[:depth])) for depth in range(1, len(parts)))


def write_changes(root: str, changes: Changes) -> None:
    """Write changed files below ``root``: removals first; a link is replaced, never followed."""
    for name, entry in sorted(changes.items(), key=lambda item: item[1] is not None):
        path = os.path.join(root, name)
        if os.path.lexists(path):
            os.unlink(path)
        if entry is None:
            _drop_empty_folders(root, name)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if entry.mode == LINK:
            os.symlink(os.fsdecode(entry.data), path)
            continue
        with open(path, "wb") as stream:
            stream.write(entry.data)
        os.chmod(path, 0o755 if entry.mode == EXECUTABLE else 0o644)


def _drop_empty_folders(root: str, name: str) -> None:
    parts = name.split("/")
    for depth in range(len(parts) - 1, 0, -1):
        try:
            os.rmdir(os.path.join(root, *parts[:depth]))
        except OSError:
            return


def main(folder: str, patch_file: str) -> None:
    """Apply ``patch_file`` to ``folder``."""
    with open(patch_file, "rb") as stream:
        patch = stream.read()
    write_changes(folder, apply_patch(lambda name: read_entry(folder, name), patch))


if __name__ == "__main__":
    main(*sys.argv[1:3])
