"""Whole-number ranges: limits, pages, windows and range specs."""


def clamp(value: int, low: int, high: int) -> int:
    """Return value limited to low..high, both inclusive.

    Raise ValueError if low is greater than high; they may be equal.
    """
    if low > high:
        raise ValueError("low is greater than high")
    return max(low, min(value, high))


def wrap(value: int, low: int, high: int) -> int:
    """Return value wrapped around into low..high, both inclusive.

    One above high gives low and one below low gives high. Raise
    ValueError if low is greater than high; they may be equal.
    """
    if low > high:
        raise ValueError("low is greater than high")
    size = high - low + 1
    return low + (value - low) % size


def page_count(total: int, per_page: int = 20) -> int:
    """Return how many pages hold total items; 0 items need 0 pages.

    per_page is 20 by default. Raise ValueError if total is below 0 or
    per_page is below 1.
    """
    if total < 0 or per_page < 1:
        raise ValueError("bad page size")
    full, rest = divmod(total, per_page)
    return full + 1 if rest else full


def page_bounds(page: int, total: int, per_page: int = 20) -> tuple:
    """Return (start, stop) of a page, counted from 1; stop is exclusive.

    per_page is 20 by default; the last page may be short. Page 1 of no
    items is (0, 0). Raise IndexError for any other page without items.
    """
    start = (page - 1) * per_page
    if page < 1 or (page > 1 and start >= total):
        raise IndexError(f"no page {page}")
    return start, min(start + per_page, total)


def parse_ranges(spec: str) -> list:
    """Return the integers named by a spec like "1-3,7", ascending.

    Both ends of a range count, repeats are dropped and blank parts are
    skipped. Raise ValueError("backwards range: 3-1") for one like that.
    """
    found = set()
    for part in spec.split(","):
        if not part.strip():
            continue
        first, dash, last = part.partition("-")
        start = int(first)
        stop = int(last) if dash else start
        if start > stop:
            raise ValueError(f"backwards range: {part.strip()}")
        found.update(range(start, stop + 1))
    return sorted(found)


def format_ranges(numbers: list) -> str:
    """Return ascending, distinct integers as a spec like "1-3,7".

    Two or more neighbours become "first-last". No numbers give "".
    """
    parts = []
    index = 0
    while index < len(numbers):
        first = last = numbers[index]
        while index < len(numbers) and numbers[index] - last <= 1:
            last = numbers[index]
            index += 1
        parts.append(f"{first}-{last}" if last > first else f"{first}")
    return ",".join(parts)


def countdown(start: int, stop: int = 0, step: int = 1) -> list:
    """Return start, start - step, ... as long as they are not below stop.

    stop is 0 and step 1 by default; a start below stop gives []. Raise
    ValueError if step is below 1.
    """
    if step < 1:
        raise ValueError("step must be at least 1")
    values = []
    while start >= stop:
        values.append(start)
        start -= step
    return values


def nearest_multiple(value: int, step: int) -> int:
    """Return the multiple of step nearest to value; a tie goes up.

    Raise ValueError unless step is positive.
    """
    if step <= 0:
        raise ValueError("step must be positive")
    above = value % step
    return value - above + (step if 2 * above >= step else 0)


def missing(numbers: list) -> list:
    """Return the integers absent between the least and the greatest.

    The result is ascending; no numbers give [].
    """
    if not numbers:
        return []
    present = set(numbers)
    low, high = min(present), max(present)
    return [number for number in range(low, high) if number not in present]


def window(center: int, size: int, total: int) -> tuple:
    """Return (start, stop) of size items around center; stop is exclusive.

    With an even size the odd one out is before center. The window is
    moved, not cut, to stay in 0..total; size is cut to total.
    """
    size = min(size, total)
    start = center - size // 2
    start = max(0, min(start, total - size))
    return start, start + size


def resolve_slice(spec: str, length: int) -> tuple:
    """Return (start, stop) for a spec like "2:5", ":-1" or "3:".

    A missing end is 0 or length, a negative one counts from the end, and
    both are limited to 0..length. Raise ValueError without a colon.
    """
    left, colon, right = spec.partition(":")
    if not colon:
        raise ValueError(f"no colon in {spec}")
    ends = []
    for part, default in ((left, 0), (right, length)):
        end = int(part) if part else default
        end = end + length if end < 0 else end
        ends.append(max(0, min(end, length)))
    return ends[0], ends[1]
