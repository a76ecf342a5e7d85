"""Lists treated as sets that keep their order; items are hashable."""


def unique(items: list, key: object = None) -> list:
    """Return items without repeats; the first of equals stays.

    With a key (default None) items are equal if key(item) is equal.
    """
    kept = {}
    for item in items:
        mark = item if key is None else key(item)
        if mark not in kept:
            kept[mark] = item
    return list(kept.values())


def common(first: list, *others: list) -> list:
    """Return the items of first that are in all others, without repeats."""
    shared = []
    for item in first:
        if item not in shared and all(item in other for other in others):
            shared.append(item)
    return shared


def difference(items: list, removed: list) -> list:
    """Return items less one equal item for each in removed.

    The earliest equal items go: [1, 2, 1] less [1] is [2, 1]. What is
    not in items is ignored.
    """
    left = list(items)
    for item in removed:
        if item in left:
            left.remove(item)
    return left


def exclusive(left: list, right: list) -> list:
    """Return what is in only one of the lists: those of left come first.

    Repeats within a list are kept.
    """
    only_left = [item for item in left if item not in right]
    only_right = [item for item in right if item not in left]
    return only_left + only_right


def similarity(left: list, right: list) -> float:
    """Return the share of distinct items that are in both, from 0 to 1.

    Two empty lists have 1.
    """
    one, two = set(left), set(right)
    total = len(one | two)
    if total == 0:
        return 1.0
    return len(one & two) / total


def subsets(items: list, largest: int = 2) -> list:
    """Return the sublists of 1 to largest items (default 2).

    Shorter ones come first; each keeps the order of items.
    """
    found = []
    sized = [([], 0)]
    for _ in range(largest):
        grown = []
        for chosen, start in sized:
            for index in range(start, len(items)):
                grown.append((chosen + [items[index]], index + 1))
        found.extend(chosen for chosen, _ in grown)
        sized = grown
    return found


def majority(items: list, default: object = None) -> object:
    """Return the item that makes more than half of items, else default.

    The default is None unless given.
    """
    for item in items:
        if 2 * items.count(item) > len(items):
            return item
    return default


def repeated(items: list, times: int = 2) -> list:
    """Return the items that occur at least times (default 2), each once.

    They are in the order in which they reached that number.
    """
    seen, found = {}, []
    for item in items:
        seen[item] = seen.get(item, 0) + 1
        if seen[item] == times:
            found.append(item)
    return found


def covers(whole: list, part: list) -> bool:
    """Return whether whole has every item of part as often as part does.

    Order does not matter; an empty part is covered.
    """
    for item in part:
        if part.count(item) > whole.count(item):
            return False
    return True
