"""Intervals for solve rates: tasks of one function hang together, so functions are drawn first, then their tasks.

Pure functions of their inputs and a seed. What is drawn are whole tasks with all their episodes; the spread of
episodes within a task therefore enters through the tasks' rates. With fewer than about ten functions the interval is
a rough guide, and ``Interval.functions`` says how many there were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from frognano.records import Record

DRAWS = 4000


class Interval(Record):
    """A mean and the interval that holds the middle ``level`` of its bootstrap draws."""

    mean: float
    low: float
    high: float
    level: float = 0.95
    functions: int
    tasks: int

    def text(self) -> str:
        """``31.2 % [27.0, 35.6]``."""
        return f"{100 * self.mean:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"

    def signed(self) -> str:
        """The same with a sign, for differences in percentage points."""
        return f"{100 * self.mean:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


def clustered(
    values: Mapping[str, Sequence[float]], seed: int = 0, draws: int = DRAWS, level: float = 0.95
) -> Interval:
    """Mean over tasks, with its interval; ``values`` are the tasks' values by function.

    Every draw takes as many functions as there are, with replacement, then as many tasks of each as it has, with
    replacement, and averages over the tasks drawn. Raises ValueError when there is no task.
    """
    groups = [np.asarray(values[name], dtype=np.float64) for name in sorted(values) if len(values[name])]
    if not groups:
        raise ValueError("no task was scored, so there is no rate")
    means = _draws(groups, np.random.default_rng(seed), draws)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    every = np.concatenate(groups)
    return Interval(
        mean=float(every.mean()),
        low=float(low),
        high=float(high),
        level=level,
        functions=len(groups),
        tasks=int(every.size),
    )


def _draws(groups: Sequence[NDArray[np.float64]], draw: np.random.Generator, draws: int) -> NDArray[np.float64]:
    sizes = np.array([group.size for group in groups])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    every = np.concatenate(groups)
    means = np.empty(draws)
    for number in range(draws):
        chosen = draw.integers(len(groups), size=len(groups))
        lengths = sizes[chosen]
        within = draw.random(int(lengths.sum())) * np.repeat(lengths, lengths)
        means[number] = every[np.repeat(starts[chosen], lengths) + within.astype(np.int64)].mean()
    return means


def lift(before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
    """After − before for each task that has both, by function; both arguments are function → task → rate."""
    return {
        function: [after[function][task] - rate for task, rate in sorted(tasks.items()) if task in after[function]]
        for function, tasks in before.items()
        if function in after
    }
