"""The Beta interval of a share: equal-tailed, Jeffreys prior, open-ended where no or every trial succeeded."""

from __future__ import annotations

from math import exp, lgamma, log

_STEPS = 200


def beta_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of the success probability; (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    a, b = successes + 0.5, trials - successes + 0.5
    low = 0.0 if successes == 0 else _quantile(tail, a, b)
    high = 1.0 if successes == trials else _quantile(1 - tail, a, b)
    return low, high


def _quantile(share: float, a: float, b: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if cumulative(middle, a, b) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def cumulative(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - cumulative(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    tiny = 1e-300
    above, below, total = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny), 0.0
    total = below
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            below = 1 / (1 + term * below or tiny)
            above = 1 + term / above or tiny
            total *= above * below
        if abs(above * below - 1) < 1e-12:
            break
    return front * total
