"""Patches in git's format, written without git: the change from one tree to another.

``apply_patch(base.get, make_patch(base, work))`` gives exactly the difference of the two trees, and git applies
the patch alike. Renames are written as a removal and a new file; lines are compared as bytes.
"""

from __future__ import annotations

import base64
import difflib
import os
import zlib
from collections.abc import Mapping

from frognano.tasks.patch import ESCAPES, LINK, Entry, blob_name, check_name, split_lines

_NO_NEWLINE = b"\\ No newline at end of file\n"


def make_patch(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> bytes:
    """The change from one tree to the other as a git patch; paths in both with equal entries are left out."""
    parts: list[bytes] = []
    for name in sorted(before.keys() | after.keys(), key=os.fsencode):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        check_name(name)
        if old is not None and new is not None and (old.mode == LINK) != (new.mode == LINK):
            parts += [_section(name, old, None), _section(name, None, new)]
        else:
            parts.append(_section(name, old, new))
    return b"".join(parts)


def _section(name: str, old: Entry | None, new: Entry | None) -> bytes:
    a, b = _quote(b"a/" + os.fsencode(name)), _quote(b"b/" + os.fsencode(name))
    out = [b"diff --git %b %b\n" % (a, b)]
    if old is None and new is not None:
        out.append(b"new file mode %o\n" % new.mode)
    elif new is None and old is not None:
        out.append(b"deleted file mode %o\n" % old.mode)
    elif old is not None and new is not None and old.mode != new.mode:
        out.append(b"old mode %o\nnew mode %o\n" % (old.mode, new.mode))
    before, after = old.data if old else b"", new.data if new else b""
    if before == after:
        return b"".join(out)
    same_mode = b" %o" % new.mode if old and new and old.mode == new.mode else b""
    out.append(b"index %b..%b%b\n" % (blob_name(old), blob_name(new), same_mode))
    if b"\0" in before or b"\0" in after:
        out.append(b"GIT binary patch\n" + _literal(after) + b"\n" + _literal(before) + b"\n")
        return b"".join(out)
    tab_a, tab_b = (b"\t" if b" " in x and not x.startswith(b'"') else b"" for x in (a, b))
    out.append(b"--- %b\n" % (a + tab_a if old else b"/dev/null"))
    out.append(b"+++ %b\n" % (b + tab_b if new else b"/dev/null"))
    return b"".join(out) + _hunks(split_lines(before), split_lines(after))


def _hunks(old: list[bytes], new: list[bytes]) -> bytes:
    out: list[bytes] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(3):
        i1, i2, j1, j2 = group[0][1], group[-1][2], group[0][3], group[-1][4]
        out.append(b"@@ -%b +%b @@\n" % (_range(i1, i2), _range(j1, j2)))
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                out += [_line(b" ", line) for line in old[a1:a2]]
                continue
            out += [_line(b"-", line) for line in old[a1:a2]]
            out += [_line(b"+", line) for line in new[b1:b2]]
    return b"".join(out)


def _line(kind: bytes, line: bytes) -> bytes:
    return kind + line if line.endswith(b"\n") else kind + line + b"\n" + _NO_NEWLINE


def _range(start: int, end: int) -> bytes:
    count = end - start
    return b"%d,%d" % (start + 1 if count else start, count)


def _literal(data: bytes) -> bytes:
    out = [b"literal %d\n" % len(data)]
    packed = zlib.compress(data)
    for at in range(0, len(packed), 52):
        chunk = packed[at : at + 52]
        length = bytes([len(chunk) + 64 if len(chunk) <= 26 else len(chunk) + 70])
        out.append(length + base64.b85encode(chunk, pad=True) + b"\n")
    return b"".join(out)


def _quote(name: bytes) -> bytes:
    if all(32 <= byte < 127 and byte not in b'"\\' for byte in name):
        return name
    letters = {value: key for key, value in ESCAPES.items()}
    return (
        b'"'
        + b"".join(
            b"\\" + letters[byte] if byte in letters else (bytes([byte]) if 32 <= byte < 127 else b"\\%03o" % byte)
            for byte in name
        )
        + b'"'
    )
