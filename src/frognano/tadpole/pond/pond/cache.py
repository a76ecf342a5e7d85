"""Caches in plain dicts; the time, where needed, is passed in."""


class LRUCache:
    """At most limit values; the one not used for longest goes first."""

    def __init__(self, limit: int = 2) -> None:
        """Raise ValueError if limit, 2 by default, is below 1."""
        if limit < 1:
            raise ValueError("limit must be at least 1")
        self.limit = limit
        self._values = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str, default: object = None) -> object:
        """Return the value of key and mark it used, else default (None)."""
        if key not in self._values:
            return default
        self._values[key] = self._values.pop(key)
        return self._values[key]

    def put(self, key: str, value: object) -> None:
        """Set the value of key, dropping another one if it is too many."""
        self._values.pop(key, None)
        self._values[key] = value
        if len(self._values) > self.limit:
            del self._values[next(iter(self._values))]


def make_key(name: str, *args: object, **options: object) -> str:
    """Return a key like "name(1, 'a', x=2)", options sorted by name.

    Options that are None are left out.
    """
    parts = [repr(arg) for arg in args]
    for key in sorted(options):
        if options[key] is not None:
            parts.append(f"{key}={options[key]!r}")
    return f"{name}({', '.join(parts)})"


def hit_rate(hits: int, misses: int) -> int:
    """Return the hits in percent of all, rounded down; 0 of none is 0.

    Raise ValueError if either is negative.
    """
    if hits < 0 or misses < 0:
        raise ValueError("negative count")
    if hits == 0:
        return 0
    return 100 * hits // (hits + misses)


def is_fresh(stored: int, now: int, ttl: int = 60) -> bool:
    """Return whether less than ttl (default 60) has passed since stored.

    A ttl of 0 means forever. What was stored after now is not fresh.
    """
    age = now - stored
    if age < 0:
        return False
    return ttl == 0 or age < ttl


def purge(entries: dict, now: int, grace: int = 0) -> list:
    """Remove what is due from entries, {key: time}; return the keys removed.

    An entry is due when its time plus grace (default 0) is at or before
    now. The keys are in the order of their times, equals as in entries.
    """
    due = [key for key, time in entries.items() if time + grace <= now]
    due.sort(key=entries.get)
    for key in due:
        del entries[key]
    return due


def shrink(sizes: dict, limit: int) -> list:
    """Remove the first keys of sizes until the sum is at most limit.

    Return the keys removed, in order.
    """
    removed = []
    total = sum(sizes.values())
    for key in list(sizes):
        if total <= limit:
            break
        total -= sizes.pop(key)
        removed.append(key)
    return removed


def get_or_make(store: dict, key: str, make: object) -> object:
    """Return store[key], first set to make(key) if it is missing.

    A result of None is returned but not stored.
    """
    if key in store:
        return store[key]
    value = make(key)
    if value is not None:
        store[key] = value
    return value


def lookup(layers: list, key: str, default: object = None) -> object:
    """Return the value of key in the first of layers, dicts, that has it.

    It is also stored in all layers before that one. If none has it,
    return default (None) and store nothing.
    """
    for index, layer in enumerate(layers):
        if key in layer:
            for earlier in layers[:index]:
                earlier[key] = layer[key]
            return layer[key]
    return default


def drop_prefix(store: dict, prefix: str) -> int:
    """Remove all keys that start with prefix; return how many there were."""
    before = len(store)
    for key in list(store):
        if key.startswith(prefix):
            store.pop(key)
    return before - len(store)
