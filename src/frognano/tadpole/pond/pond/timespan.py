"""Spans of time, clock times and a little calendar; never the clock."""

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_NAMES = {"day": 86400, "hour": 3600, "minute": 60}


def to_seconds(hours: int = 0, minutes: int = 0, seconds: int = 0) -> int:
    """Return the span in seconds; every part is 0 by default.

    Parts may be 60 or more. Raise ValueError if any is negative.
    """
    if min(hours, minutes, seconds) < 0:
        raise ValueError("negative span")
    return (hours * 60 + minutes) * 60 + seconds


def parse_span(text: str) -> int:
    """Return the seconds in a span like "1h30m" or "2d 4h 10s".

    Units are d, h, m and s, in any order; empty text is 0. Raise
    ValueError for another unit or a number or unit standing alone.
    """
    total, digits = 0, ""
    for char in text.replace(" ", ""):
        if char.isdigit():
            digits += char
        elif digits and char in _UNITS:
            total += int(digits) * _UNITS[char]
            digits = ""
        else:
            raise ValueError(f"bad span: {text}")
    if digits:
        raise ValueError(f"no unit after {digits}")
    return total


def format_span(seconds: int, limit: int = 2) -> str:
    """Return a span like "1h 30m" of its limit greatest non-zero units.

    limit is 2 by default, units are d, h, m and s. What is smaller is
    cut off, not rounded. 0 seconds are "0s".
    """
    parts = []
    for unit, size in _UNITS.items():
        count, seconds = divmod(seconds, size)
        if count and len(parts) < limit:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0s"


def parse_clock(text: str) -> int:
    """Return the minutes since midnight of a time like "7:05" or "23:59".

    Raise ValueError if hours exceed 23, minutes exceed 59 or the minutes
    do not have two digits.
    """
    hours, _, minutes = text.partition(":")
    if len(minutes) != 2 or int(hours) > 23 or int(minutes) > 59:
        raise ValueError(f"bad time: {text}")
    return int(hours) * 60 + int(minutes)


def format_clock(minutes: int) -> str:
    """Return minutes since midnight as "HH:MM", going around midnight.

    1440 is "00:00" again and -1 is "23:59".
    """
    hours, rest = divmod(minutes % 1440, 60)
    return f"{hours:02d}:{rest:02d}"


def minutes_between(start: str, end: str) -> int:
    """Return the minutes from clock time start to end, both "HH:MM".

    An end before start is on the next day; equal times are 0 apart.
    """
    begin, finish = parse_clock(start), parse_clock(end)
    if finish < begin:
        finish += 24 * 60
    return finish - begin


def stopwatch(seconds: int) -> str:
    """Return "M:SS", or "H:MM:SS" from one hour on; "-" leads a negative."""
    sign = "-" if seconds < 0 else ""
    minutes, secs = divmod(abs(seconds), 60)
    if minutes < 60:
        return f"{sign}{minutes}:{secs:02d}"
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02d}:{secs:02d}"


def is_open(now: int, opens: int, closes: int) -> bool:
    """Return whether opens <= now < closes, in minutes since midnight.

    If closes is before opens the span goes past midnight; if they are
    equal it is always open.
    """
    if opens < closes:
        return opens <= now < closes
    return now >= opens or now < closes


def ago(seconds: int) -> str:
    """Return a rough age like "1 hour ago" or "3 days ago", rounded down.

    The unit is the greatest of day, hour and minute that fits; less than
    a minute is "just now".
    """
    for name, size in _NAMES.items():
        count = seconds // size
        if count > 0:
            ending = "s" if count > 1 else ""
            return f"{count} {name}{ending} ago"
    return "just now"


def is_leap(year: int) -> bool:
    """Return whether year has 366 days: every fourth year does.

    Of the hundreds, only those divisible by 400 do.
    """
    if year % 100 == 0:
        return year % 400 == 0
    return year % 4 == 0


def days_in_month(year: int, month: int) -> int:
    """Return the number of days of month, 1 to 12, in year.

    Raise ValueError for any other month.
    """
    if not 1 <= month <= 12:
        raise ValueError(f"no month {month}")
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def add_months(year: int, month: int, count: int = 1) -> tuple:
    """Return the (year, month) that is count months later, 1 by default.

    Months are 1 to 12; a negative count goes back.
    """
    total = year * 12 + (month - 1) + count
    year, index = divmod(total, 12)
    return year, index + 1
