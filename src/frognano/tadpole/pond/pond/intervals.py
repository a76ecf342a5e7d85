"""Intervals as (start, end) pairs; the start is in, the end is not."""


def overlaps(left: tuple, right: tuple) -> bool:
    """Return whether two intervals share a point.

    Touching ones do not, and an empty one overlaps nothing.
    """
    start = max(left[0], right[0])
    end = min(left[1], right[1])
    return start < end


def merge(intervals: list) -> list:
    """Return the intervals sorted, those that overlap or touch made one.

    Empty ones, with an end not after the start, are dropped.
    """
    merged = []
    for start, end in sorted(intervals):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            start, last = merged.pop()
            end = max(end, last)
        merged.append((start, end))
    return merged


def gaps(intervals: list, low: int, high: int) -> list:
    """Return the parts of (low, high) that no interval covers, ascending."""
    free = []
    for start, end in sorted(intervals):
        if start > low:
            free.append((low, min(start, high)))
        low = max(low, end)
        if low >= high:
            return free
    return free + [(low, high)]


def subtract(whole: tuple, removed: tuple) -> list:
    """Return the none, one or two parts of whole outside removed.

    An empty removed, and one that only touches, leave the whole.
    """
    start, end = max(whole[0], removed[0]), min(whole[1], removed[1])
    if start >= end:
        return [whole]
    parts = [(whole[0], start), (end, whole[1])]
    return [part for part in parts if part[0] < part[1]]


def covered(intervals: list) -> int:
    """Return the length that intervals cover, overlaps counted once."""
    total = 0
    for start, end in merge(intervals):
        total += end - start
    return total


def most_at_once(intervals: list) -> int:
    """Return the greatest number of intervals that share one point.

    Touching ones do not share a point; no intervals give 0.
    """
    steps = [(start, 1) for start, _ in intervals]
    steps += [(end, -1) for _, end in intervals]
    most = current = 0
    for _, change in sorted(steps):
        current += change
        most = max(most, current)
    return most


def first_slot(busy: list, length: int, start: int, end: int) -> object:
    """Return the earliest point from start on with length free after it.

    The slot must end at or before end and overlap nothing in busy, which
    is in any order. Return None if there is no such slot.
    """
    at = start
    for begin, finish in sorted(busy):
        if begin - at >= length:
            break
        at = max(at, finish)
    return at if at + length <= end else None


def locate(intervals: list, point: int) -> int:
    """Return the index of the interval that holds point, else -1.

    Intervals must be sorted and must not overlap.
    """
    low, high = 0, len(intervals) - 1
    while low <= high:
        middle = (low + high) // 2
        start, end = intervals[middle]
        if start <= point < end:
            return middle
        if point < start:
            high = middle - 1
        else:
            low = middle + 1
    return -1
