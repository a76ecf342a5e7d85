"""Version numbers like 1.4.2 or 2.0.0-rc1."""

import operator


def parse_version(text: str) -> tuple:
    """Return (major, minor, patch) of a version; missing numbers are 0.

    A leading "v" and all from the first "-" on are ignored. Raise
    ValueError for more than three numbers or anything not a number.
    """
    core = text.removeprefix("v").partition("-")[0]
    numbers = [int(part) for part in core.split(".")]
    if len(numbers) > 3:
        raise ValueError(f"too many numbers in {text}")
    while len(numbers) < 3:
        numbers.append(0)
    return tuple(numbers)


def prerelease(text: str) -> str:
    """Return what follows the first "-", without any "+" part, else ""."""
    text = text.partition("+")[0]
    dash = text.find("-")
    return text[dash + 1:] if dash >= 0 else ""


def compare(left: str, right: str) -> int:
    """Return -1, 0 or 1 as left is older than, equal to or newer than right.

    A prerelease is older than its release; two prereleases of the same
    version compare as text.
    """
    first, second = prerelease(left), prerelease(right)
    one = (parse_version(left), first == "", first)
    two = (parse_version(right), second == "", second)
    if one == two:
        return 0
    return -1 if one < two else 1


def bump(text: str, part: str = "patch") -> str:
    """Return the next "major.minor.patch", raising patch by default.

    The numbers after the raised one become 0 and a prerelease is
    dropped. Raise ValueError unless part is major, minor or patch.
    """
    major, minor, patch = parse_version(text)
    if part == "major":
        return f"{major + 1}.0.0"
    if part == "minor":
        return f"{major}.{minor + 1}.0"
    if part != "patch":
        raise ValueError(f"no part named {part}")
    return f"{major}.{minor}.{patch + 1}"


def latest(versions: list, stable: bool = True) -> str:
    """Return the newest version, of releases only unless stable is False.

    Of equal ones the first is returned. Raise ValueError("no version")
    if there is none.
    """
    best = ""
    for text in versions:
        if stable and prerelease(text):
            continue
        if not best or compare(text, best) > 0:
            best = text
    if not best:
        raise ValueError("no version")
    return best


def satisfies(version: str, rule: str) -> bool:
    """Return whether version meets a rule like ">=1.2", "<2" or "!=1.5.0".

    The signs are ==, !=, >=, <=, > and <, and no sign means ==. Only
    the three numbers are compared; blanks may follow the sign.
    """
    signs = {">=": operator.ge, "<=": operator.le, "!=": operator.ne}
    signs.update({"==": operator.eq, ">": operator.gt, "<": operator.lt})
    for sign, test in signs.items():
        if rule.startswith(sign):
            wanted = parse_version(rule[len(sign):].strip())
            return test(parse_version(version), wanted)
    return parse_version(version) == parse_version(rule)


def satisfies_all(version: str, rules: str) -> bool:
    """Return whether version meets every rule of a list like ">=1,<2".

    Blanks around rules are ignored; an empty list is met.
    """
    for rule in rules.split(","):
        if rule.strip() and not satisfies(version, rule.strip()):
            return False
    return True


def caret_range(text: str) -> tuple:
    """Return (lowest, limit) of the versions compatible with text.

    The limit, which is excluded, raises the first number that is not 0,
    or the patch if all are 0: 1.4.2 gives ("1.4.2", "2.0.0").
    """
    major, minor, patch = parse_version(text)
    lowest = f"{major}.{minor}.{patch}"
    if major > 0:
        return lowest, f"{major + 1}.0.0"
    if minor > 0:
        return lowest, f"0.{minor + 1}.0"
    return lowest, f"0.0.{patch + 1}"


def change_kind(old: str, new: str) -> str:
    """Return the first part that differs: "major", "minor" or "patch".

    Versions of equal numbers give "none".
    """
    pairs = zip(parse_version(old), parse_version(new))
    for name, (before, after) in zip(("major", "minor", "patch"), pairs):
        if before != after:
            return name
    return "none"
