"""Slash-separated paths, as strings; the file system is never asked."""


def split_parts(path: str) -> list:
    """Return the parts of path, leaving out empty and "." ones.

    An absolute path has "/" as its first part.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/"):
        parts.insert(0, "/")
    return parts


def join(*parts: str) -> str:
    """Return the parts joined by one slash each, "" for none.

    Empty parts are skipped; a part with a leading slash replaces all
    that came before it.
    """
    joined = ""
    for part in parts:
        if part.startswith("/"):
            joined = part
        elif part and joined and not joined.endswith("/"):
            joined += "/" + part
        else:
            joined += part
    return joined


def parent(path: str) -> str:
    """Return path without its last part; a trailing slash is ignored.

    A single relative part gives "."; "/" and "/name" give "/".
    """
    head = path.rstrip("/").rpartition("/")[0]
    if head:
        return head
    return "/" if path.startswith("/") else "."


def suffix(path: str) -> str:
    """Return the last suffix of the file name with its dot, else "".

    A dot at the start or the end of the name makes no suffix.
    """
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    if 0 < dot < len(name) - 1:
        return name[dot:]
    return ""


def stem(path: str) -> str:
    """Return the file name without any of its suffixes.

    The name is cut at its first dot, but never at a leading one.
    """
    name = path.split("/")[-1]
    dot = name.find(".", 1)
    return name if dot == -1 else name[:dot]


def with_suffix(path: str, new: str) -> str:
    """Return path with its last suffix replaced, or with new added.

    An empty new removes the suffix. Raise ValueError if new is neither
    empty nor starts with a dot.
    """
    if new and new[0] != ".":
        raise ValueError(f"bad suffix: {new}")
    old = suffix(path)
    return path[: len(path) - len(old)] + new


def normalize(path: str) -> str:
    """Return path without "." parts and extra slashes, ".." resolved.

    ".." above the root is dropped, a relative path keeps it in front.
    When nothing is left the result is ".".
    """
    root = "/" if path.startswith("/") else ""
    kept = []
    for part in path.split("/"):
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif part == ".." and not root:
            kept.append(part)
        elif part not in ("", ".", ".."):
            kept.append(part)
    return root + "/".join(kept) or "."


def relative_to(path: str, base: str) -> str:
    """Return path as seen from the folder base, "." if they are equal.

    base may end in a slash. Raise ValueError if path is neither base nor
    below it.
    """
    if path == base:
        return "."
    prefix = base.rstrip("/") + "/"
    if not path.startswith(prefix):
        raise ValueError(f"{path} is not below {base}")
    return path[len(prefix):]


def depth(path: str) -> int:
    """Return how many folders down path leads; "." and "/" are 0.

    A ".." part goes one up, but never above 0.
    """
    level = 0
    for part in path.split("/"):
        if part == "..":
            level = max(0, level - 1)
        elif part and part != ".":
            level += 1
    return level


def matches(name: str, pattern: str) -> bool:
    """Return whether name fits pattern, where "*" is any text or none.

    Without a star they must be equal. Raise ValueError for two stars.
    """
    head, star, tail = pattern.partition("*")
    if "*" in tail:
        raise ValueError("more than one star")
    if not star:
        return name == pattern
    long_enough = len(name) >= len(head) + len(tail)
    return long_enough and name.startswith(head) and name.endswith(tail)


def safe_name(name: str, limit: int = 32) -> str:
    """Return name with all but letters, digits and "._-" made "_".

    Leading dots are dropped, then it is cut to limit characters, 32 by
    default. When nothing is left the result is "_".
    """
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    safe = safe.lstrip(".")[:limit]
    return safe or "_"
