"""Plain-text helpers: cutting, wrapping, counting and masking."""


def truncate(text: str, width: int, marker: str = "...") -> str:
    """Return text cut to width characters, ending in marker if cut.

    marker is "..." by default. Text of exactly width characters is kept.
    Raise ValueError if width is less than the length of marker.
    """
    if width < len(marker):
        raise ValueError("width is less than the marker")
    if len(text) <= width:
        return text
    return text[: width - len(marker)] + marker


def squeeze(text: str, keep_lines: bool = False) -> str:
    """Return text with ends stripped and runs of whitespace made one space.

    With keep_lines (default False) each line is squeezed by itself.
    """
    if not keep_lines:
        return " ".join(text.split())
    lines = text.split("\n")
    return "\n".join(" ".join(line.split()) for line in lines)


def indent(text: str, width: int = 4, first: bool = True) -> str:
    """Return text with width spaces (default 4) before every line not blank.

    Unless first (default True), the first line is left as it is.
    """
    lines = []
    for number, line in enumerate(text.split("\n")):
        if line.strip() and (first or number > 0):
            line = " " * width + line
        lines.append(line)
    return "\n".join(lines)


def wrap_words(text: str, width: int = 60) -> list:
    """Return the words of text filled into lines of at most width.

    width is 60 by default; a longer word has its own line. [] for none.
    """
    lines = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def common_prefix(words: list) -> str:
    """Return the longest prefix all words share, "" for no words."""
    if not words:
        return ""
    shortest = min(words, key=len)
    for index, letter in enumerate(shortest):
        if any(word[index] != letter for word in words):
            return shortest[:index]
    return shortest


def between(text: str, start: str, end: str) -> str:
    """Return the text between the first start and the next end after it.

    Raise ValueError("missing X") if the marker X is not there.
    """
    begin = text.find(start)
    if begin < 0:
        raise ValueError(f"missing {start}")
    begin += len(start)
    stop = text.find(end, begin)
    if stop < 0:
        raise ValueError(f"missing {end}")
    return text[begin:stop]


def word_counts(text: str, least: int = 1) -> dict:
    """Return {word: count} of lower-cased words seen least times or more.

    least is 1 by default. Any of ".,;:!?" at the ends of a word are cut,
    and a word of only those is left out. The commonest come first,
    equals alphabetically.
    """
    counts = {}
    for word in text.lower().split():
        word = word.strip(".,;:!?")
        if word:
            counts[word] = counts.get(word, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {word: count for word, count in ranked if count >= least}


def is_palindrome(text: str) -> bool:
    """Return whether text reads the same both ways.

    Only letters and digits count, case is ignored; none at all is True.
    """
    letters = [char.lower() for char in text if char.isalnum()]
    left, right = 0, len(letters) - 1
    while left < right:
        if letters[left] != letters[right]:
            return False
        left += 1
        right -= 1
    return True


def mask(secret: str, keep: int = 4, char: str = "*") -> str:
    """Return secret with all but its last keep characters made char.

    keep is 4 and char "*" by default; a secret not longer is all masked.
    """
    hidden = len(secret) - keep
    if hidden <= 0:
        return char * len(secret)
    return char * hidden + secret[hidden:]


def expand_tabs(line: str, size: int = 8) -> str:
    """Return line with each tab made spaces up to a multiple of size.

    size is 8 by default and a tab gives at least one space. Raise
    ValueError if size is below 1.
    """
    if size < 1:
        raise ValueError("size must be at least 1")
    out = ""
    for char in line:
        out += " " * (size - len(out) % size) if char == "\t" else char
    return out


def sentences(text: str) -> list:
    """Return text split after words that end in ".", "!" or "?".

    Words are joined by one space; a last part without a mark is kept.
    """
    done, current = [], []
    for word in text.split():
        current.append(word)
        if word[-1] in ".!?":
            done.append(" ".join(current))
            current = []
    if current:
        done.append(" ".join(current))
    return done
