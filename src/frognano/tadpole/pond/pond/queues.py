"""Queues, batches and fair turns."""

import heapq


class PriorityQueue:
    """Items taken out lowest priority number first, equals as added."""

    def __init__(self) -> None:
        self._heap = []
        self._added = 0

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, item: object, priority: int = 0) -> None:
        """Add item with a priority, 0 by default; the lowest leave first."""
        heapq.heappush(self._heap, (priority, self._added, item))
        self._added += 1

    def pop(self) -> object:
        """Remove and return the next item; raise IndexError if empty."""
        if not self._heap:
            raise IndexError("empty queue")
        return heapq.heappop(self._heap)[2]


def rotate(items: list, steps: int = 1) -> list:
    """Return items with the first steps moved to the end, 1 by default.

    Negative steps move from the end to the front; more steps than items
    go around. No items give [].
    """
    if not items:
        return []
    cut = steps % len(items)
    return items[cut:] + items[:cut]


def batches(items: list, size: int) -> list:
    """Return items cut into lists of size; the last one may be shorter.

    Raise ValueError if size is below 1.
    """
    if size < 1:
        raise ValueError("size must be at least 1")
    return [items[at:at + size] for at in range(0, len(items), size)]


def interleave(*queues: list) -> list:
    """Return items taken in turns, one from each queue, until all are empty.

    A queue that runs out is skipped in the later turns.
    """
    taken = []
    longest = max(map(len, queues), default=0)
    for turn in range(longest):
        for queue in queues:
            if turn < len(queue):
                taken.append(queue[turn])
    return taken


def merge_sorted(left: list, right: list) -> list:
    """Return two ascending lists merged into one ascending list.

    Of equal items those of left come first.
    """
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if right[j] < left[i]:
            merged.append(right[j])
            j += 1
        else:
            merged.append(left[i])
            i += 1
    return merged + left[i:] + right[j:]


def insert_sorted(items: list, item: object) -> list:
    """Return a new ascending list with item put in, after its equals."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if item < items[middle]:
            high = middle
        else:
            low = middle + 1
    return items[:low] + [item] + items[low:]


def assign_turns(tasks: list, workers: list) -> dict:
    """Return {worker: tasks}, dealt out in turns starting at the first.

    Every worker is in the result. Raise ValueError("no workers") for an
    empty list of workers.
    """
    if not workers:
        raise ValueError("no workers")
    turns = {worker: [] for worker in workers}
    for number, task in enumerate(tasks):
        turns[workers[number % len(workers)]].append(task)
    return turns


def push_capped(items: list, item: object, limit: int = 10) -> list:
    """Return items with item at the end, keeping only the last limit.

    Raise ValueError if limit is below 1; it is 10 by default.
    """
    if limit < 1:
        raise ValueError("limit must be at least 1")
    grown = items + [item]
    return grown[-limit:]


def retry_delays(tries: int, base: float = 1, cap: float = 60) -> list:
    """Return the waits between tries: base, then doubled, at most cap.

    There is one wait fewer than tries; one try or none gives []. base is
    1 and cap 60 by default.
    """
    delays = []
    wait = base
    for _ in range(tries - 1):
        delays.append(min(wait, cap))
        wait *= 2
    return delays


def count_out(players: list, step: int) -> list:
    """Return players in the order they leave when every step-th is out.

    Counting starts at the first player and goes on around the circle of
    those left. Raise ValueError if step is below 1.
    """
    if step < 1:
        raise ValueError("step must be at least 1")
    circle, order, at = list(players), [], 0
    while circle:
        at = (at + step - 1) % len(circle)
        order.append(circle.pop(at))
    return order
