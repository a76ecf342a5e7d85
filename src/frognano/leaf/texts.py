"""The words a model reads: what the runner found, told in one profile's way. Pure functions.

``reference`` keeps the head of a long answer and counts the rest, as the published harness does. ``leaf`` says
what is missing and how to get it. Golden tests hold every text: they are part of what a policy was trained on.
"""

from __future__ import annotations

from typing import Any

from frognano.leaf.profile import Profile


def format_read(result: dict[str, Any], profile: Profile) -> str:
    """Header line with the path, then ``N. line``."""
    first, lines = result["first"], result["lines"]
    if profile.is_reference:
        body = "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=first))
        text = f"{result['path']}\n{body}"
        return head_only(text, profile.read_chars, len(text) + result["rest_chars"])
    if result["binary"]:
        return f"ValueError: {result['path']} is a binary file of {result['size']} bytes; look at it with Bash"
    if result["line_rest"] and len(lines) > 1:
        lines = lines[:-1]  # only a line that is longer than a whole answer is shown in part
    shown, used = [], 0
    for number, line in enumerate(lines, start=first):
        shown.append(f"{number}. {line}")
        used += len(shown[-1]) + 1
        if used > profile.read_chars and len(shown) > 1:
            shown.pop()
            break
    return "\n".join([result["path"], *shown, *_read_notes(result, len(shown), profile)])


def _read_notes(result: dict[str, Any], shown: int, profile: Profile) -> list[str]:
    """What the lines themselves do not tell: where they stop, how they end."""
    first, total = result["first"], result["total_lines"]
    last = first + shown - 1
    if total == 0:
        return ["[the file is empty]"]
    if not shown:
        return [f"[the file has {total} lines; line {first} is past its end]"]
    notes = []
    line_rest = result["line_rest"] if shown == len(result["lines"]) == 1 else 0
    if line_rest:
        kept = len(result["lines"][-1])
        command = f"sed -n {last}p FILE | cut -c {kept + 1}-"
        notes.append(f"[line {last} is cut after {kept} of {kept + line_rest} characters; the rest: {command}]")
    if result["rest_lines"] or shown < len(result["lines"]):
        of = total if result["complete"] else f"more than {total}"
        notes.append(f"[lines {first}-{last} of {of}; go on with offset={last + 1}]")
    if result["crlf"]:
        notes.append("[line endings: CRLF]" if result["crlf"] >= shown - 1 else "[line endings: CRLF on some lines]")
    if last == total and not result["final_newline"] and not line_rest:
        notes.append("[no newline at the end of the file]")
    return notes


def format_write(result: dict[str, Any], profile: Profile) -> str:
    """The reference counts characters and calls them bytes."""
    count = result["chars"] if profile.is_reference else result["bytes"]
    return f"Wrote {result['path']} ({count} bytes)."


def format_edit(result: dict[str, Any], profile: Profile) -> str:
    """Done, or why not and where to look."""
    count = result["replaced"]
    if count:
        return f"Edited {result['path']} ({count} replacement{'s' if count != 1 else ''})."
    matches = result["matches"]
    if profile.is_reference:
        if not matches:
            return "ValueError: old_string was not found"
        return f"ValueError: old_string matched {matches} times; set replace_all=true or use a more specific old_string"
    if not matches:
        return f"ValueError: old_string was not found{_near(result['near'])}"
    lines = ", ".join(map(str, result["lines"])) + (", ..." if matches > len(result["lines"]) else "")
    return (
        f"ValueError: old_string matched {matches} times, at lines {lines}; use a longer old_string "
        "(Read with offset shows each place) or set replace_all=true"
    )


def _near(near: dict[str, Any] | None) -> str:
    if near is None:
        return ""
    line = near["line"]
    if near["kind"] == "gutter":
        return f"; leave out the line numbers that Read shows, the text without them stands at line {line}"
    reason = {
        "whitespace": f"; line {line} differs from it only in spaces or tabs:",
        "similar": f"; the nearest text begins at line {line}:",
        "undecodable": f"; near line {line} there are bytes that are not UTF-8, shown as \ufffd; leave them out:",
    }[near["kind"]]
    return "\n".join([reason, *(f"{number}. {text}" for number, text in enumerate(near["lines"], start=line))])


def format_glob(result: dict[str, Any], folder: str, profile: Profile) -> str:
    """One path a line."""
    files, total = result["files"], result["total"]
    if not profile.is_reference and not result["folder_exists"]:
        return f"FileNotFoundError: no such folder: {folder}"
    if not files:
        return "No files matched."
    rest = total - len(files)
    if not rest:
        return "\n".join(files)
    if profile.is_reference:
        return "\n".join(files) + f"\n... {rest} more files"
    more = f"{rest}" if result["complete"] else f"at least {rest}"
    return "\n".join(files) + f"\n... {more} more files; use a narrower pattern or path"


def format_bash(result: dict[str, Any], timeout_s: float, profile: Profile) -> str:
    """Exit code, or that the time is over; then both streams."""
    head = f"Timed out after {timeout_s:.1f}s" if result["timed_out"] else f"Exit code: {result['code']}"
    out, err = result["stdout"], result["stderr"]
    frame = len(head) + len("\nSTDOUT:\n\nSTDERR:\n")
    whole = frame + out["size"] + err["size"]
    limit = profile.bash_chars
    if profile.is_reference:
        # A stream longer than its head is longer than the limit, so nothing after its head is shown.
        text = f"{head}\nSTDOUT:\n{out['head']}\nSTDERR:\n{err['head']}"
        return head_only(text, limit, whole)
    if whole > limit:
        room = limit - frame
        small = min(out["size"], err["size"], room // 2)
        room_out = room - small if out["size"] >= err["size"] else small
        return f"{head}\nSTDOUT:\n{_both_ends(out, room_out)}\nSTDERR:\n{_both_ends(err, room - room_out)}"
    return f"{head}\nSTDOUT:\n{out['head'] + out['tail']}\nSTDERR:\n{err['head'] + err['tail']}"


def _both_ends(stream: dict[str, Any], room: int) -> str:
    """The first and the last characters of a stream, and between them what is missing."""
    if stream["size"] <= room:
        return str(stream["head"] + stream["tail"])
    kept = stream["head"] + stream["tail"]
    first, last = kept[: room // 3], kept[-(room - room // 3) :]
    cut = stream["size"] - len(first) - len(last)
    return f"{first}\n[{cut} characters cut; to see them, send the output to a file and Read that]\n{last}"


def head_only(text: str, limit: int, whole: int) -> str:
    """The reference's truncation: the first ``limit`` characters of a text that had ``whole``."""
    if whole <= limit:
        return text
    return f"{text[:limit]}\n[truncated {whole - limit} chars]"


def format_error(kind: str, message: str) -> str:
    """An exception as the model reads it."""
    return f"{kind}: {message}"


def sendable(text: str) -> str:
    """Text that any encoder takes: lone surrogates, from names that are not UTF-8, become replacement characters."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if _escaped(text) else _scrub(text)
    return text


def _escaped(text: str) -> bool:
    return all(not "\ud800" <= char <= "\udfff" or "\udc80" <= char <= "\udcff" for char in text)


def _scrub(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
