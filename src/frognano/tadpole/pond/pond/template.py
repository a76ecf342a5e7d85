"""Filling text templates with {names}, and wording lists and counts."""


def placeholders(text: str) -> list:
    """Return the names in braces in text, each once, in order.

    A brace that is never closed is plain text.
    """
    names = []
    for piece in text.split("{")[1:]:
        name, brace, _ = piece.partition("}")
        if brace and name not in names:
            names.append(name)
    return names


def fill(text: str, values: dict, default: str | None = None) -> str:
    """Return text with each {name} replaced by its value as text.

    A name not in values gets default. If that is None, as it is unless
    given, raise KeyError(name). A brace that is never closed is kept.
    """
    filled, *pieces = text.split("{")
    for piece in pieces:
        name, brace, rest = piece.partition("}")
        if not brace:
            filled += "{" + piece
        elif name in values:
            filled += str(values[name]) + rest
        elif default is not None:
            filled += default + rest
        else:
            raise KeyError(name)
    return filled


def plural(count: int, word: str, many: str = "") -> str:
    """Return the count and word, in the plural unless count is 1 or -1.

    The plural is many, or if that is "", the default, word with "s", or
    with "es" after s or x.
    """
    if abs(count) == 1:
        return f"{count} {word}"
    ending = "es" if word[-1] in "sx" else "s"
    return f"{count} {many or word + ending}"


def join_words(words: list, last: str = "and") -> str:
    """Return words as "a", "a and b" or "a, b and c"; no words give "".

    The word before the last one is "and" by default.
    """
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + f" {last} {words[-1]}"


def number_lines(text: str, start: int = 1) -> str:
    """Return text with "N: " put before each line, counting from start.

    start is 1 by default. Numbers are padded on the left to the width of
    the last one.
    """
    lines = text.split("\n")
    width = len(str(start + len(lines) - 1))
    for index, line in enumerate(lines):
        lines[index] = f"{start + index:>{width}}: {line}"
    return "\n".join(lines)


def pad_field(text: str, spec: str) -> str:
    """Return text padded by a spec like "<8", ">8" or "^8".

    The sign says left, right or centered and the number the width; an
    odd blank goes right. Raise ValueError for another sign.
    """
    sign, width = spec[0], int(spec[1:])
    if sign not in "<>^":
        raise ValueError(f"bad sign: {sign}")
    blanks = max(0, width - len(text))
    left = {"<": 0, ">": blanks, "^": blanks // 2}[sign]
    return " " * left + text + " " * (blanks - left)


def section(text: str, name: str, keep: bool = True) -> str:
    """Return text with the tags [name] and [/name] removed.

    Unless keep (default True), what is between them goes too. Only the
    first pair counts; without one, text is returned as it is.
    """
    before, opening, rest = text.partition(f"[{name}]")
    inner, closing, after = rest.partition(f"[/{name}]")
    if not opening or not closing:
        return text
    return before + inner + after if keep else before + after


def bullet_list(items: list, mark: str = "-", level: int = 0) -> list:
    """Return one line per item, with mark, "-" by default, and a space.

    Each level puts two blanks before that. The first is 0 by default; a
    list among the items is one level deeper.
    """
    lines = []
    for item in items:
        if isinstance(item, list):
            lines.extend(bullet_list(item, mark, level + 1))
        else:
            lines.append("  " * level + f"{mark} {item}")
    return lines
