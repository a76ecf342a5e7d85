"""The resident runner: one standard-library file (Python 3.6+) that lives inside a sandbox and serves its tools.

Started as ``python3 -I -S -u runner.py``. Frames on stdin and stdout: four bytes of big-endian length, then JSON:
``{"id", "op", "args"}`` is answered by ``{"id", "ok", "result"}`` or ``{"id", "ok", "error": {"type", "message"}}``.
Results are facts; the words a model reads are made by the host. The functions in ``OPS`` may also be called directly.

It keeps: an existing file is replaced whole or not at all, and no byte outside an edit changes; memory stays bounded
whatever a file or a command yields; a call past its time leaves no process. It does NOT confine anything: the
sandbox around it is the wall. It holds no folder, so the snapshot may be mounted after its start.
"""

import base64
import codecs
import fnmatch
import io
import json
import os
import re
import select
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

SCAN_LIMIT = 256 * 1024 * 1024  # bytes of a file that Read looks through
LOAD_LIMIT = 64 * 1024 * 1024  # bytes of a file that Edit takes into memory
GET_LIMIT = 16 * 1024 * 1024  # bytes of a file that get sends at once; base64 adds a third, and a frame is limited
READ_LIMIT = 4 * 1024 * 1024  # characters that Read sends at most; JSON may make six bytes of each
WHOLE_LIMIT = 4 * 1024 * 1024  # bytes of a file that Read takes at once; more is read piece by piece
FRAME_LIMIT = 512 * 1024 * 1024
MATCH_LIMIT = 100000  # places where Edit replaces
ARGV_LIMIT = 100_000  # bytes; the kernel refuses one argument above 128 KiB
GLOB_LIMIT = 100_000  # matches that are counted exactly
BOM = codecs.BOM_UTF8
QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "TERM": "dumb",
}
"""So that nothing waits for a person; the sandbox's own environment wins."""

Result = Dict[str, Any]

resident = False  # serving inside a sandbox, and parent of every orphan there
held_pipes = []  # type: List[int]  # output of background jobs, drained so that they never block or die on it


# --- files ---------------------------------------------------------------------------------------------------------


def locate(workdir: str, path: str) -> str:
    """Absolute form of a path as a model writes it: ``~`` expanded, relative to ``workdir``."""
    if "\0" in path:
        raise ValueError("embedded null byte")
    return os.path.join(workdir, os.path.expanduser(path))


def shown(workdir: str, path: str) -> str:
    """The path as answers show it: links resolved and relative to ``workdir`` where it lies inside."""
    real, root = os.path.realpath(path), os.path.realpath(workdir)
    if real == root:
        return "."
    return real[len(root) + 1 :] if real.startswith(root.rstrip("/") + "/") else os.path.normpath(path)


def open_regular(path: str) -> int:
    """Descriptor of a regular file for reading; refuses folders, FIFOs, sockets and devices without waiting."""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        raise ValueError("not a regular file: %s" % path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "Is a directory", path)
    raise ValueError("not a regular file: %s" % path)


def load(path: str) -> bytes:
    """Whole content of a regular file; one too large for memory is refused."""
    with os.fdopen(open_regular(path), "rb") as stream:
        data = stream.read(LOAD_LIMIT + 1)
    if len(data) > LOAD_LIMIT:
        raise ValueError("file is larger than %d bytes; use Bash" % LOAD_LIMIT)
    return data


def replace_file(path: str, data: bytes, mode: Optional[int] = None) -> None:
    """Write beside the target, then rename over it, so that a full disk or a kill leaves the old bytes."""
    old = os.lstat(path) if os.path.lexists(path) else None
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(21, "Is a directory", path)
    folder = os.path.dirname(path)
    fd, temporary = tempfile.mkstemp(prefix=".frognano-", dir=folder)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
            stream.flush()
            if mode is None:
                mode = stat.S_IMODE(old.st_mode) if old is not None else 0o666 & ~_umask()
            if old is not None and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                _keep_owner(stream.fileno(), old)
            os.fchmod(stream.fileno(), mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _keep_owner(fd: int, old: os.stat_result) -> None:
    try:
        os.fchown(fd, old.st_uid, old.st_gid)
    except OSError:
        pass


def real_target(path: str) -> str:
    """The file that a write to ``path`` must replace: links followed, special files refused."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return os.path.realpath(path)
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ValueError("not a regular file: %s" % path)
    return os.path.realpath(path)


def op_read(
    workdir: str, path: str, *, offset: int = 1, limit: int = 0, max_chars: int = 20000, universal: bool = False
) -> Result:
    """Lines ``offset``… of a text file, at most ``limit`` (0: all) and about ``max_chars`` characters of them.

    Only a newline separates lines, as for git, grep and sed; ``universal`` also splits where Python's splitlines
    does, and shows a byte order mark (in files up to ``WHOLE_LIMIT``). ``rest_chars`` counts what was asked for and
    not returned, gutters included.
    """
    full = locate(workdir, path)
    taken = _Lines(max(1, offset), limit, min(max_chars, READ_LIMIT) if max_chars > 0 else READ_LIMIT)
    with os.fdopen(open_regular(full), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        first = stream.peek(8192)[:8192]
        if size <= WHOLE_LIMIT:
            data = stream.read()
            final = taken.load(data.decode("utf-8", "replace"), universal)
        else:
            final = taken.scan(stream)
    return {
        "path": shown(workdir, full),
        "first": taken.first,
        "lines": taken.lines,
        "rest_lines": taken.rest_lines,
        "rest_chars": taken.rest_chars,
        "line_rest": taken.line_rest,
        "total_lines": taken.number,
        "complete": taken.complete,
        "final_newline": final,
        "crlf": taken.crlf,
        "binary": b"\0" in first,
        "size": size,
    }


class _Lines:
    """Collects the wanted lines up to a budget of characters and counts the others."""

    def __init__(self, first: int, limit: int, budget: int) -> None:
        self.first = first
        self.last = first + limit - 1 if limit > 0 else sys.maxsize
        self.budget = budget
        self.lines = []  # type: List[str]
        self.rest_lines = 0
        self.rest_chars = 0
        self.line_rest = 0  # characters missing at the end of the last returned line
        self.number = 0
        self.crlf = 0
        self.complete = True
        self._open = False
        self._kept = False

    def load(self, text: str, universal: bool) -> bool:
        """Take the lines of a whole text; returns whether it ends with a newline."""
        if universal:
            lines = text.splitlines()
            final = not text or text[-1] in "\r\n"
        else:
            lines = (text[1:] if text.startswith("\ufeff") else text).split("\n")
            final = not lines[-1]
            if final:
                lines.pop()
        self.number = len(lines)
        wanted = lines[self.first - 1 : self.last]
        for index, whole in enumerate(wanted):
            line = whole
            if self.budget <= 0:
                wanted = wanted[index:]
                break
            if not universal and line.endswith("\r") and (final or self.first + index < len(lines)):
                line = line[:-1]
                self.crlf += 1
            self.budget -= len(str(self.first + index)) + 3
            room = max(0, self.budget)
            self.budget -= len(line)
            self.line_rest = max(0, len(line) - room)
            self.lines.append(line[:room])
        else:
            wanted = []
        number = self.first + len(self.lines)
        self.rest_lines = len(wanted)
        self.rest_chars = self.line_rest + sum(map(len, wanted)) + gutters(number, number + len(wanted) - 1)
        return final

    def add(self, text: str) -> None:
        """Append ``text`` to the current line, beginning one where none is open."""
        if not self._open:
            self._open = True
            self.number += 1
            wanted = self.first <= self.number <= self.last
            self._kept = wanted and self.budget > 0
            if self._kept:
                self.lines.append("")
                self.budget -= len(str(self.number)) + 3
            elif wanted:
                self.rest_lines += 1
                self.rest_chars += len(str(self.number)) + 3
        if self._kept:
            room = max(0, self.budget)
            self.lines[-1] += text[:room]
            self.budget -= len(text)
            missing = max(0, len(text) - room)
            self.line_rest += missing
            self.rest_chars += missing
        elif self.first <= self.number <= self.last:
            self.rest_chars += len(text)

    def end(self) -> None:
        """Close the current line."""
        self._open = False

    def scan(self, stream: Any) -> bool:
        """Read ``stream`` line by line in bounded pieces; returns whether it ends with a newline."""
        if stream.peek(3)[:3] == BOM:
            stream.read(3)
        scanned, final, decoder = 0, True, codecs.getincrementaldecoder("utf-8")("replace")
        while scanned < SCAN_LIMIT:
            piece = stream.readline(65536)
            if not piece:
                break
            scanned += len(piece)
            final = piece.endswith(b"\n")
            if self.first <= self.number + (not self._open) <= self.last:
                if piece.endswith(b"\r\n"):
                    self.crlf += 1
                    piece = piece[:-2]
                self.add(decoder.decode(piece[:-1] if piece.endswith(b"\n") else piece, final))
            elif not self._open:
                self._open, self._kept = True, False
                self.number += 1
            if final:
                self.end()
        else:
            self.complete = not stream.read(1)
        tail = decoder.decode(b"", True)
        if tail:
            self.add(tail)
        return final


def gutters(first: int, last: int) -> int:
    """Characters of the line numbers ``first`` to ``last``, each with its ``. `` and its newline."""
    digits = sum(max(0, last - max(first, int("1" + "0" * more)) + 1) for more in range(18))
    return digits + 3 * max(0, last - first + 1)


def op_write(workdir: str, path: str, content: str) -> Result:
    """Create or replace a file, making its folders; bytes are stored as given."""
    full = real_target(locate(workdir, path))
    data = content.encode("utf-8", "surrogatepass")
    if not os.path.isdir(os.path.dirname(full)):
        os.makedirs(os.path.dirname(full))
    replace_file(full, data)
    return {"path": shown(workdir, full), "bytes": len(data), "chars": len(content)}


# --- edit ----------------------------------------------------------------------------------------------------------


def op_edit(workdir: str, path: str, old: str, new: str, all: bool = False) -> Result:
    """Replace ``old`` by ``new`` on the bytes of a file: every other byte stays, whatever its encoding.

    A newline in ``old`` also matches CRLF, and new lines take the ending used where they are put. Several matches
    without ``all``, or none, change nothing: ``replaced`` is 0, ``lines`` holds the matching lines, ``near`` the
    closest text.
    """
    full = real_target(locate(workdir, path))
    data = load(full)
    old_bytes, new_bytes = old.encode("utf-8", "surrogatepass"), new.encode("utf-8", "surrogatepass")
    if not old_bytes:
        raise ValueError("old_string must be non-empty")
    spans = find_spans(data, old_bytes)
    result = {"path": shown(workdir, full), "matches": len(spans), "replaced": 0, "lines": [], "near": None}  # type: Result
    if not spans:
        result["near"] = nearest(data, old)
    elif len(spans) > 1 and not all:
        result["lines"] = line_numbers(data, [start for start, _ in spans[:1000]])
    else:
        replace_file(full, splice(data, spans, new_bytes))
        result["replaced"] = len(spans)
    return result


def find_spans(data: bytes, old: bytes) -> List[Tuple[int, int]]:
    """Where ``old`` stands, left to right without overlap; its newlines match either kind of line ending."""
    if data.count(old) > MATCH_LIMIT:
        raise ValueError("old_string stands there more than %d times; use Bash" % MATCH_LIMIT)
    spans = []  # type: List[Tuple[int, int]]
    mixed = b"\r\n" in data and b"\n" in old and b"\r\n" not in old
    at = -1 if mixed else data.find(old)
    while at >= 0:
        spans.append((at, at + len(old)))
        at = data.find(old, at + len(old))
    if spans or not (mixed or b"\r\n" in old):
        return spans
    pattern = b"\r?\n".join(re.escape(part) for part in old.replace(b"\r\n", b"\n").split(b"\n"))
    for match in re.finditer(pattern, data):
        spans.append(match.span())
        if len(spans) > MATCH_LIMIT:
            raise ValueError("old_string stands there more than %d times; use Bash" % MATCH_LIMIT)
    return spans


def line_numbers(data: bytes, offsets: List[int]) -> List[int]:
    """1-based line of each of the ascending ``offsets``."""
    numbers, line, last = [], 1, 0
    for offset in offsets:
        line += data.count(b"\n", last, offset)
        last = offset
        numbers.append(line)
    return numbers


def splice(data: bytes, spans: List[Tuple[int, int]], new: bytes) -> bytes:
    """``data`` with every span replaced; line endings of kept lines stay, new lines take their neighbours'."""
    parts, last = [], 0
    plain = b"\r\n" not in data or b"\n" not in new
    for start, end in spans:
        parts.append(data[last:start])
        parts.append(new if plain else with_endings(data, start, end, new))
        last = end
    parts.append(data[last:])
    return b"".join(parts)


def with_endings(data: bytes, start: int, end: int, new: bytes) -> bytes:
    """``new`` with the endings that fit the text it replaces; an explicit CRLF in it stays."""
    before = re.findall(b"[^\n]*\n|[^\n]+", data[start:end])
    after = re.findall(b"[^\n]*\n|[^\n]+", new)
    bare = [line.rstrip(b"\r\n") for line in before]
    head, most = 0, min(len(before), len(after))
    while head < most and bare[head] == after[head].rstrip(b"\r\n"):
        head += 1
    tail = 0
    while tail < most - head and bare[-1 - tail] == after[-1 - tail].rstrip(b"\r\n"):
        tail += 1
    style = ending_at(data, start, end)
    aligned = len(before) == len(after)
    for index, line in enumerate(after):
        if not line.endswith(b"\n") or line.endswith(b"\r\n"):
            continue
        source = index if index < head or aligned else index - len(after) + len(before)
        kept = index < head or index >= len(after) - tail or aligned
        theirs = before[source] if kept else b""
        crlf = theirs.endswith(b"\r\n") if theirs.endswith(b"\n") else style == b"\r\n"
        after[index] = line[:-1] + b"\r\n" if crlf else line
    return b"".join(after)


def ending_at(data: bytes, start: int, end: int) -> bytes:
    """The line ending in use at a span: inside it, else of its line, else of the line before."""
    at = data.find(b"\n", start)
    if at < 0:
        at = data.rfind(b"\n", 0, start)
    return b"\r\n" if at > 0 and data[at - 1 : at] == b"\r" else b"\n"


GUTTER = re.compile(r"^[ \t]*\d+(?:\.|:|\||\t|\u2192)[ \t]?", re.M)


def nearest(data: bytes, old: str) -> Optional[Result]:
    """The text of the file that ``old`` was perhaps meant to be: kind, first line, lines; None when nothing is near."""
    wanted = old.replace("\r\n", "\n").split("\n")
    filled = [line for line in wanted if line.strip()]
    if not filled:
        return None
    if all(GUTTER.match(line) for line in filled):
        bare = GUTTER.sub("", old)
        spans = find_spans(data, bare.encode("utf-8", "surrogatepass")) if bare.strip() else []
        if spans:
            return {"kind": "gutter", "line": line_numbers(data, [spans[0][0]])[0], "lines": []}
    lines = [line.rstrip("\r") for line in data[: 4 * 1024 * 1024].decode("utf-8", "replace").split("\n")]
    at, kind = _same_but_blanks(lines, wanted), "whitespace"
    if at < 0:
        at, kind = _most_alike(lines, filled), "similar"
    if at < 0:
        return None
    found = [line[:300] for line in lines[at : at + min(len(wanted), 8)]]
    if "\ufffd" in old and any("\ufffd" in line for line in found):
        kind = "undecodable"
    return {"kind": kind, "line": at + 1, "lines": found}


def _same_but_blanks(lines: List[str], wanted: List[str]) -> int:
    """Index where ``wanted`` stands if spaces and tabs do not count; -1 when nowhere."""
    packed = ["".join(line.split()) for line in wanted]
    bare = ["".join(line.split()) for line in lines]
    for at in range(len(bare) - len(packed) + 1):
        if bare[at] == packed[0] and bare[at : at + len(packed)] == packed:
            return at
    return -1


def _most_alike(lines: List[str], filled: List[str]) -> int:
    """Index of the line most like the longest wanted line, moved up to where the wanted text would begin."""
    import difflib

    key_at = max(range(min(len(filled), 20)), key=lambda i: len(filled[i]))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(filled[key_at].strip()[:300])
    best, best_ratio = -1, 0.6
    for at, line in enumerate(lines[:20000]):
        matcher.set_seq1(line.strip()[:300])
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best, best_ratio = at, ratio
    return max(0, best - key_at) if best >= 0 else -1


# --- glob ----------------------------------------------------------------------------------------------------------


def op_glob(
    workdir: str, pattern: str, path: str = ".", limit: int = 1000, hidden: bool = True, *, timeout_s: float = 60.0
) -> Result:
    """Regular files that match ``pattern`` under the literal folder ``path``, sorted by path.

    ``**`` means any number of folders and does not follow links. ``.git`` is never shown; other names that begin
    with a dot only if ``hidden``. A name equal to its piece of the pattern matches even where that holds ``[``.
    After ``timeout_s`` it answers what was found, marked as incomplete.
    """
    base, root = os.path.realpath(locate(workdir, path)), os.path.realpath(workdir)
    walk = _Walk(hidden, os.path.join(root, ""), time.monotonic() + timeout_s)
    for choice in expand_braces(pattern):
        pieces = [piece for piece in choice.split("/") if piece not in ("", ".")]
        walk.seen.clear()
        walk.go(os.sep if choice.startswith("/") else os.path.join(base, ""), pieces)
    inside = len(walk.root)
    names = sorted(name[inside:] if name.startswith(walk.root) else name for name in walk.found)
    complete = len(names) < GLOB_LIMIT and time.monotonic() < walk.deadline
    return {"files": names[:limit], "total": len(names), "complete": complete, "folder_exists": os.path.isdir(base)}


def expand_braces(pattern: str) -> List[str]:
    """``a/{b,c}`` as ``a/b`` and ``a/c``; braces without a comma stay as they are; at most 100 patterns."""
    done, todo = [], [pattern]  # type: List[str], List[str]
    while todo and len(done) + len(todo) < 100:
        text = todo.pop()
        match = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if match is None:
            done.append(text)
        else:
            todo.extend(text[: match.start()] + part + text[match.end() :] for part in match.group(1).split(","))
    return done + todo


class _Walk:
    """Collects the files that match, at most ``GLOB_LIMIT``."""

    def __init__(self, hidden: bool, root: str, deadline: float) -> None:
        self.hidden = hidden
        self.root = root
        self.deadline = deadline
        self.seen = set()  # type: Set[Tuple[str, Tuple[str, ...]]]
        self.found = set()  # type: Set[str]
        self._last = ("", {})  # type: Tuple[str, Dict[str, Any]]

    def go(self, folder: str, pieces: List[str]) -> None:
        """Find what matches ``pieces`` under ``folder``, which ends with a slash."""
        if not pieces or len(self.found) >= GLOB_LIMIT or time.monotonic() > self.deadline:
            return
        # Several ``**`` reach the same folder in many ways.
        if (folder, tuple(pieces)) in self.seen:
            return
        self.seen.add((folder, tuple(pieces)))
        piece, rest = pieces[0], pieces[1:]
        if piece == "**":
            self.go(folder, rest or ["*"])
            for name, entry in self.entries(folder).items():
                if (self.hidden or name[0] != ".") and entry.is_dir(follow_symlinks=False):
                    self.go(folder + name + "/", pieces)
        elif not re.search(r"[*?\[]", piece):
            # A plain name is not looked up, so that hidden files and ".." can be named.
            target = self.real(folder + piece) if piece == ".." or os.path.islink(folder + piece) else folder + piece
            if rest and piece != ".git":
                self.go(os.path.join(target, ""), rest)
            elif piece != ".git" and os.path.isfile(target):
                self.found.add(target)
        else:
            match = re.compile(fnmatch.translate(piece)).match
            for name, entry in self.entries(folder).items():
                if (match(name) and (self.hidden or name[0] != "." or piece[0] == ".")) or name == piece:
                    self._take(folder + name, entry, rest)

    def real(self, path: str) -> str:
        """Where a link leads, if that is inside; else the path as it is."""
        target = os.path.realpath(path)
        return target if target.startswith(self.root) or os.path.basename(path) == ".." else path

    def _take(self, path: str, entry: Any, rest: List[str]) -> None:
        if entry.is_symlink():
            path = self.real(path)
        if rest:
            if entry.is_dir():
                self.go(path + "/", rest)
        elif entry.is_file() and len(self.found) < GLOB_LIMIT:
            self.found.add(path)

    def entries(self, folder: str) -> Dict[str, Any]:
        """What ``folder`` holds, by name, ``.git`` aside; nothing where it cannot be listed."""
        # The last listing is kept, because ``**`` looks at each folder twice in a row.
        if self._last[0] != folder:
            try:
                with os.scandir(folder) as scan:
                    names = {entry.name: entry for entry in scan if entry.name != ".git"}
            except OSError:
                names = {}
            self._last = (folder, {name: names[name] for name in sorted(names)})
        return self._last[1]


# --- processes -----------------------------------------------------------------------------------------------------


class Sink:
    """The first and the last ``limit`` characters (bytes, without a decoder) of a stream, and how many there were."""

    def __init__(self, limit: int, decoder: Any = None) -> None:
        self.limit = max(1, limit)
        self.decoder = decoder
        self.head = self.tail = "" if decoder else b""  # type: Any
        self.size = 0

    def feed(self, data: bytes, final: bool = False) -> None:
        """Take the next bytes of the stream."""
        piece = self.decoder.decode(data, final) if self.decoder else data  # type: Any
        self.size += len(piece)
        room = self.limit - len(self.head)
        if room > 0:
            self.head += piece[:room]
            piece = piece[room:]
        if piece:
            self.tail += piece
            if len(self.tail) > 4 * self.limit:
                self.tail = self.tail[-self.limit :]

    def result(self) -> Result:
        """What is kept, and the size of the whole."""
        return {"head": self.head, "tail": self.tail[-self.limit :], "size": self.size}


def op_bash(
    workdir: str,
    command: str,
    *,
    timeout_s: float = 120.0,
    max_chars: int = 30000,
    login: bool = False,
    universal: bool = False,
) -> Result:
    """Run ``command`` in a new bash: no terminal, stdin empty, nothing kept but files and background jobs.

    A background job does not hold the answer. Past ``timeout_s`` everything the call started is killed. Bytes that
    are not UTF-8 are replaced; ``universal`` turns CR and CRLF into newlines.
    """
    if "\0" in command:
        raise ValueError("embedded null byte")
    script = command.encode("utf-8", "surrogateescape")
    flag, held, text = "-lc" if login else "-c", [], command  # type: Tuple[str, List[int], str]
    if not login or len(script) > ARGV_LIMIT:
        fd = script_file(script)
        held.append(fd)
        text = "IFS= read -rd '' -u %d REPLY; exec %d<&-; eval \"$REPLY\"" % (fd, fd)
    sinks = []
    for _ in range(2):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")  # type: Any
        sinks.append(Sink(max_chars, io.IncrementalNewlineDecoder(decoder, True) if universal else decoder))
    try:
        env = dict(QUIET, **os.environ)
        code, timed_out, elapsed = run(["/bin/bash", flag, text], workdir, env, timeout_s, sinks, held=held)
    finally:
        for fd in held:
            os.close(fd)
    streams = {"stdout": sinks[0].result(), "stderr": sinks[1].result()}
    return dict(streams, code=code, timed_out=timed_out, elapsed_s=elapsed)


def script_file(script: bytes) -> int:
    """A descriptor that holds ``script`` and nothing on disk: no argument is too long, no process list shows it."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("script", 0)
    else:
        with tempfile.TemporaryFile() as stream:
            fd = os.dup(stream.fileno())
    view = memoryview(script)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def op_exec(
    workdir: str,
    argv: List[str],
    *,
    env: Optional[Dict[str, str]] = None,
    cwd: str = "",
    timeout_s: float = 120.0,
    stdin_b64: str = "",
    max_bytes: int = 1 << 20,
) -> Result:
    """Run a program for the host itself; ``env`` is laid over the sandbox's. Nothing it started lives on.

    Of each stream the first ``max_bytes`` bytes come back, and ``…_size`` says how many there were.
    """
    sinks = [Sink(max_bytes), Sink(max_bytes)]
    whole = dict(os.environ, **(env or {}))
    stdin = base64.b64decode(stdin_b64)
    folder = os.path.join(workdir, cwd)
    code, timed_out, elapsed = run(argv, folder, whole, timeout_s, sinks, stdin=stdin, keep_jobs=False)
    result = {"code": code, "timed_out": timed_out, "elapsed_s": elapsed}  # type: Result
    for name, sink in zip(("stdout", "stderr"), sinks):
        result[name + "_b64"] = base64.b64encode(sink.head).decode("ascii")
        result[name + "_size"] = sink.size
    return result


def run(
    argv: List[str],
    cwd: str,
    env: Dict[str, str],
    timeout_s: float,
    sinks: List[Sink],
    *,
    stdin: bytes = b"",
    held: Optional[List[int]] = None,
    keep_jobs: bool = True,
) -> Tuple[int, bool, float]:
    """Run a program in a session of its own; returns its exit code (negative: signal), whether it ran out of time,
    and the wall seconds."""
    began = time.monotonic()
    before = set(_pids()) if resident else set()
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=held or (),
    )
    _prefer_as_oom_victim(process.pid)
    call = _Call(process, sinks, stdin)
    try:
        finished = call.wait(began + max(0.0, timeout_s))
        if not finished or not keep_jobs:
            kill_family(process, before)
            call.drain(0.2)
        return process.wait(), not finished, time.monotonic() - began
    finally:
        call.close(keep_jobs and resident)


class _Call:
    """The pipes of one running program, served until it ends."""

    def __init__(self, process: Any, sinks: List[Sink], stdin: bytes) -> None:
        self.process = process
        self.stdin = memoryview(stdin)
        self.outputs = {process.stdout.fileno(): sinks[0], process.stderr.fileno(): sinks[1]}
        self.poller = select.poll()
        for fd in self.outputs:
            os.set_blocking(fd, False)
            self.poller.register(fd, select.POLLIN)
        if stdin:
            os.set_blocking(process.stdin.fileno(), False)
            self.poller.register(process.stdin.fileno(), select.POLLOUT)
        for fd in held_pipes:
            self.poller.register(fd, select.POLLIN)
        self.exit_fd = _exit_descriptor(process.pid)
        if self.exit_fd >= 0:
            self.poller.register(self.exit_fd, select.POLLIN)

    def wait(self, deadline: float) -> bool:
        """Serve until the program has ended and its output is taken; False when the deadline came first."""
        quiet_until = 0.0
        while self.process.poll() is None or self.outputs:
            now = time.monotonic()
            ended = self.process.returncode is not None
            if ended and not quiet_until:
                quiet_until = now + 0.05
            if ended and (now >= quiet_until or now >= deadline):
                break  # a background job holds the pipes
            if now >= deadline:
                return False
            # Without an exit descriptor the end is seen by looking again.
            pause = quiet_until - now if ended else deadline - now
            self._serve(pause if self.exit_fd >= 0 or not self._blind() else min(pause, 0.01))
        return True

    def _blind(self) -> bool:
        return self.process.returncode is None

    def _serve(self, pause: float) -> None:
        for fd, event in self.poller.poll(min(pause, 3600.0) * 1000 + 0.5):
            if fd == self.exit_fd:
                self.poller.unregister(fd)
            elif fd in self.outputs:
                self._take(fd)
            elif fd in held_pipes:
                _discard(fd, self.poller)
            else:
                self._give(fd, event)

    def _take(self, fd: int) -> None:
        try:
            data = os.read(fd, 65536)
        except BlockingIOError:
            return
        if data:
            self.outputs[fd].feed(data)
        else:
            self.poller.unregister(fd)
            self.outputs.pop(fd).feed(b"", True)

    def _give(self, fd: int, event: int) -> None:
        try:
            self.stdin = self.stdin[os.write(fd, self.stdin[:65536]) :]
        except BlockingIOError:
            return
        except OSError:
            self.stdin = memoryview(b"")
        if not self.stdin:
            self.poller.unregister(fd)
            self.process.stdin.close()

    def drain(self, seconds: float) -> None:
        """Take what is left in the pipes of killed processes."""
        deadline = time.monotonic() + seconds
        while self.outputs and time.monotonic() < deadline:
            self._serve(0.02)

    def close(self, keep: bool) -> None:
        """Close everything; with ``keep`` the outputs still open stay, to be drained for the jobs that hold them."""
        if self.exit_fd >= 0:
            os.close(self.exit_fd)
        for sink in self.outputs.values():
            sink.feed(b"", True)
        for stream in (self.process.stdout, self.process.stderr):
            if keep and stream.fileno() in self.outputs:
                held_pipes.append(os.dup(stream.fileno()))
            stream.close()
        if self.process.stdin:
            self.process.stdin.close()


def _discard(fd: int, poller: Any) -> None:
    """Read and drop what a background job writes."""
    try:
        if os.read(fd, 65536):
            return
    except BlockingIOError:
        return
    poller.unregister(fd)
    held_pipes.remove(fd)
    os.close(fd)


def _exit_descriptor(pid: int) -> int:
    try:
        return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
    except OSError:
        return -1


def _prefer_as_oom_victim(pid: int) -> None:
    """When memory runs out the program goes, not the runner."""
    if resident:
        try:
            with open("/proc/%d/oom_score_adj" % pid, "w") as stream:
                stream.write("1000")
        except OSError:
            pass


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _living(pid: int) -> Optional[Tuple[int, int]]:
    """Parent and session of a process; None when it is gone or a zombie."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return (int(fields[1]), int(fields[3])) if fields[0] not in (b"Z", b"X") else None


def family(leader: int, before: Set[int]) -> Set[int]:
    """Living processes of a call: its session, all descendants, and orphans that came to us since it began."""
    me, table = os.getpid(), {}
    for pid in _pids():
        facts = _living(pid) if pid != me else None
        if facts:
            table[pid] = facts
    found = {
        pid
        for pid, (parent, session) in table.items()
        if leader in (pid, session) or (resident and parent == me and pid not in before)
    }
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in table.items() if parent in found} - found
        grown = bool(more)
        found |= more
    return found


def kill_family(process: Any, before: Set[int]) -> None:
    """Kill a call with all it started, however it hid: frozen first, so that nothing is born meanwhile."""
    frozen = set()  # type: Set[int]
    for _ in range(20):
        new = family(process.pid, before) - frozen
        if not new:
            break
        for pid in new:
            _signal(pid, signal.SIGSTOP)
        frozen |= new
    alive = family(process.pid, before)
    while alive:
        for pid in alive:
            _signal(pid, signal.SIGKILL)
        process.poll()
        time.sleep(0.001)
        alive = family(process.pid, before)
    process.wait()
    reap()


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def reap() -> None:
    """Collect orphans that have ended; only the resident runner has any."""
    try:
        while resident and os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


# --- transfer and service ------------------------------------------------------------------------------------------


def op_put(workdir: str, path: str, content_b64: str, mode: int = 0o644) -> Result:
    """Place a file for the host, making its folders; a link that stands there is replaced, not followed."""
    full = os.path.join(workdir, path)
    data = base64.b64decode(content_b64)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    replace_file(full, data, mode)
    return {"bytes": len(data)}


def op_get(workdir: str, path: str, max_bytes: int = GET_LIMIT) -> Result:
    """At most ``max_bytes`` of a regular file, its whole size and its mode."""
    with os.fdopen(open_regular(os.path.join(workdir, path)), "rb") as stream:
        info = os.fstat(stream.fileno())
        data = stream.read(min(max_bytes, GET_LIMIT))
    return {
        "content_b64": base64.b64encode(data).decode("ascii"),
        "size": info.st_size,
        "mode": stat.S_IMODE(info.st_mode),
    }


def op_ping(workdir: str = "/") -> Result:
    """That the runner lives, and under which Python."""
    return {"pid": os.getpid(), "python": list(sys.version_info[:3])}


OPS = {
    "ping": op_ping,
    "read": op_read,
    "write": op_write,
    "edit": op_edit,
    "glob": op_glob,
    "bash": op_bash,
    "exec": op_exec,
    "put": op_put,
    "get": op_get,
}  # type: Dict[str, Any]


def answer(frame: bytes) -> bytes:
    """The reply to one request; whatever goes wrong inside an operation becomes an error with type and message."""
    ident = None
    try:
        request = json.loads(frame.decode("utf-8"))
        ident = request["id"]
        operation = OPS.get(request["op"])
        if operation is None:
            raise ValueError("unknown operation: %s" % request["op"])
        reply = {"id": ident, "ok": True, "result": operation(**request["args"])}
    except Exception as error:  # the boundary: the runner outlives every request
        reply = {"id": ident, "ok": False, "error": {"type": type(error).__name__, "message": str(error)}}
    return json.dumps(reply).encode("ascii")


def serve(source: int, sink: int) -> None:
    """Answer frames until the host closes its end."""
    while True:
        _await_request(source)
        header = _read_exactly(source, 4)
        if header is None:
            return
        size = struct.unpack(">I", header)[0]
        frame = _read_exactly(source, size) if size <= FRAME_LIMIT else None
        if frame is None:
            return
        reap()
        reply = answer(frame)
        view = memoryview(struct.pack(">I", len(reply)) + reply)
        while view:
            view = view[os.write(sink, view) :]


def _await_request(source: int) -> None:
    """Wait for the host, and meanwhile take what background jobs write."""
    while held_pipes:
        poller = select.poll()
        for fd in [source] + held_pipes:
            poller.register(fd, select.POLLIN)
        ready = {fd for fd, _ in poller.poll()}
        for fd in ready - {source}:
            _discard(fd, poller)
        if source in ready:
            return


def _read_exactly(source: int, size: int) -> Optional[bytes]:
    data = bytearray()
    while len(data) < size:
        piece = os.read(source, min(size - len(data), 1 << 20))
        if not piece:
            return None
        data += piece
    return bytes(data)


def _settle() -> None:
    """Become parent of every orphan here, and unreadable to the processes served."""
    global resident  # noqa: PLW0603 (one process, one role)
    try:
        import ctypes

        libc = ctypes.CDLL(None)
        adopts = libc.prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER
        libc.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    except (ImportError, OSError, AttributeError):
        adopts = False
    resident = adopts or os.getpid() == 1


def main() -> None:
    """Take stdin and stdout for the host alone, then serve."""
    # The kernel drops signals from inside to process 1, but only those that it has no handler for.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    source, sink = os.dup(0), os.dup(1)  # not inheritable
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    _settle()
    serve(source, sink)


if __name__ == "__main__":
    main()
