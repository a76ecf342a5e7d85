"""Names of things and of people: cases, initials and sorting."""

import re


def split_words(name: str) -> list:
    """Return the lower-case words of a snake, kebab or camel case name.

    A capital after a letter that is not a capital starts a word; "_", "-"
    and blanks separate words and are dropped.
    """
    spaced = ""
    for before, char in zip(" " + name, name):
        if char.isupper() and before.islower():
            spaced += " "
        spaced += " " if char in "_-" else char
    return spaced.lower().split()


def snake_case(name: str, sep: str = "_") -> str:
    """Return the words of name in lower case, joined by sep, "_" by default.

    A result with a digit in front gets a leading "_".
    """
    joined = sep.join(split_words(name))
    return "_" + joined if joined[:1].isdigit() else joined


def camel_case(name: str, upper: bool = False) -> str:
    """Return name as one word with a capital at each word but the first.

    With upper (default False) the first word has a capital too.
    """
    words = split_words(name)
    start = 0 if upper else 1
    return "".join(words[:start] + [w.capitalize() for w in words[start:]])


def initials(name: str, most: int = 3, dots: bool = False) -> str:
    """Return the upper-case first letters of at most most words.

    most is 3 by default. With dots, which are off by default, each
    letter is followed by a dot.
    """
    letters = [word[0].upper() for word in name.split()[:most]]
    end = "." if dots else ""
    return "".join(letter + end for letter in letters)


def sort_name(name: str) -> str:
    """Return a person's name as "Last, First Middle".

    "de", "van" and "von", in lower case, belong to the last name if they
    are right before it. A single word is returned alone.
    """
    words = name.split()
    cut = len(words) - 1
    while cut > 1 and words[cut - 1] in ("de", "van", "von"):
        cut -= 1
    if cut < 1:
        return name.strip()
    return " ".join(words[cut:]) + ", " + " ".join(words[:cut])


def unique_name(name: str, taken: list) -> str:
    """Return name, or name with the first free ending "-2", "-3" and so on.

    A name is free if it is not in taken.
    """
    if name not in taken:
        return name
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def natural_sort(names: list) -> list:
    """Return names sorted without regard to case, numbers by their value.

    So "item 9" comes before "Item 10"; equals keep their order.
    """
    def key(name: str) -> list:
        parts = re.split(r"(\d+)", name.lower())
        return [int(p) if at % 2 else p for at, p in enumerate(parts)]

    return sorted(names, key=key)


def possessive(name: str) -> str:
    """Return name with "'s", or with "'" alone if it ends in s or S.

    Raise ValueError for a blank name.
    """
    if not name.strip():
        raise ValueError("blank name")
    ending = "'" if name[-1] in "sS" else "'s"
    return name + ending


def shorten(name: str, width: int) -> str:
    """Return name with given names cut to "X." until it fits in width.

    They are cut from the first on, the last name never; the result may
    still be too long. Words are joined by one space.
    """
    words = name.split()
    for index in range(len(words) - 1):
        if len(" ".join(words)) <= width:
            break
        words[index] = words[index][0] + "."
    return " ".join(words)
