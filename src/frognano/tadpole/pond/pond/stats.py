"""Descriptive statistics over plain lists of numbers."""


def mean(values: list) -> float:
    """Return the arithmetic mean.

    Raise ValueError("no values") for an empty list.
    """
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)


def median(values: list) -> float:
    """Return the middle value, or the mean of the two middle ones.

    Raise ValueError("no values") for an empty list.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def modes(values: list) -> list:
    """Return the most frequent values, ascending; [] for no values."""
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    top = max(counts.values(), default=0)
    return sorted(value for value, count in counts.items() if count == top)


def variance(values: list, sample: bool = True) -> float:
    """Return the sample variance, or that of a whole population.

    The sum of squares is divided by one less than the count for a sample
    (the default). Raise ValueError if the divisor would be 0 or less.
    """
    divisor = len(values) - 1 if sample else len(values)
    if divisor <= 0:
        raise ValueError("too few values")
    center = sum(values) / len(values)
    return sum((value - center) ** 2 for value in values) / divisor


def quantile(values: list, share: float = 0.5) -> float:
    """Return the value below which share of the sorted values lie.

    share is 0.5 by default. Between two values it interpolates linearly.
    Raise ValueError if share is not in 0..1 or there are no values.
    """
    if not values or not 0 <= share <= 1:
        raise ValueError("bad quantile")
    ordered = sorted(values)
    whole, part = divmod(share * (len(ordered) - 1), 1)
    low = ordered[int(whole)]
    high = ordered[min(int(whole) + 1, len(ordered) - 1)]
    return low + (high - low) * part


def histogram(values: list, edges: list) -> list:
    """Return counts per bin, each from an edge up to but not the next.

    The last bin also holds its upper edge. Values outside all bins are
    left out. Raise ValueError for fewer than two edges.
    """
    if len(edges) < 2:
        raise ValueError("need two edges")
    counts = [0] * (len(edges) - 1)
    for value in values:
        for index in range(len(counts)):
            if edges[index] <= value < edges[index + 1]:
                counts[index] += 1
    counts[-1] += sum(1 for value in values if value == edges[-1])
    return counts


def moving_average(values: list, size: int = 3) -> list:
    """Return the means of every size (default 3) neighbours, in order.

    Fewer than size values give []. Raise ValueError if size is below 1.
    """
    if size < 1:
        raise ValueError("size must be at least 1")
    starts = range(len(values) - size + 1)
    return [sum(values[start:start + size]) / size for start in starts]


def weighted_mean(values: list, weights: list) -> float:
    """Return the mean of values, each counted with its weight.

    Raise ValueError("lengths differ") if the lists do, and
    ValueError("weights sum to 0") if they do.
    """
    if len(values) != len(weights):
        raise ValueError("lengths differ")
    total = sum(weights)
    if total == 0:
        raise ValueError("weights sum to 0")
    return sum(v * w for v, w in zip(values, weights)) / total


def ranks(values: list) -> list:
    """Return each value's rank, 1 for the greatest.

    Equal values share the better rank and the next ranks are skipped:
    9, 7, 7, 5 have the ranks 1, 2, 2, 4.
    """
    ordered = sorted(values, reverse=True)
    return [ordered.index(value) + 1 for value in values]


def rescale(values: list, low: float = 0.0, high: float = 1.0) -> list:
    """Return values stretched so the least is low, the greatest high.

    low is 0 and high 1 by default. When all values are equal, each
    becomes low. No values give [].
    """
    least = min(values, default=0)
    spread = max(values, default=0) - least
    if spread == 0:
        return [low for _ in values]
    return [low + (v - least) * (high - low) / spread for v in values]


def max_drop(values: list) -> float:
    """Return the greatest fall from a value to a later one.

    Values that never fall, and fewer than two values, give 0.
    """
    worst = 0
    peak = None
    for value in values:
        if peak is None or value > peak:
            peak = value
        worst = max(worst, peak - value)
    return worst
