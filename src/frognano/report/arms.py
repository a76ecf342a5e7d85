"""Comparing arms of an experiment on the same held-out tasks: lifts over a shared base, and differences of lifts.

A task's value is the mean over seeds, so seeds are averaged and not counted as further tasks; intervals are drawn over
functions, then tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from frognano.records import Record
from frognano.rollout.bootstrap import Interval, clustered, lift
from frognano.rollout.evaluate import TaskScore
from frognano.rollout.ladder import by_function, table

Rates = Mapping[str, Mapping[str, float]]
"""Function → task → solve rate."""


class ArmResult(Record):
    """One arm: what it gained over the base."""

    name: str
    seeds: tuple[int, ...]
    after: float
    """Mean solve rate after."""
    lift: Interval
    by_seed: dict[int, Interval]
    seconds: dict[int, float] = {}
    """Seed → wall seconds."""
    trained_on: dict[int, tuple[int, ...]] = {}
    """Seed → tasks of each climb."""


def arm_result(
    name: str,
    base: Sequence[TaskScore],
    after: Mapping[int, Sequence[TaskScore]],
    seconds: Mapping[int, float],
    trained_on: Mapping[int, Sequence[int]],
) -> ArmResult:
    """The lifts of one arm; ``after`` is seed → scores of its last iteration."""
    before = by_function(base)
    rates = mean_rates([by_function(scores) for scores in after.values()])
    return ArmResult(
        name=name,
        seeds=tuple(after),
        after=fmean(rate for tasks in rates.values() for rate in tasks.values()),
        lift=clustered(lift(before, rates)),
        by_seed={seed: clustered(lift(before, by_function(scores))) for seed, scores in after.items()},
        seconds=dict(seconds),
        trained_on={seed: tuple(counts) for seed, counts in trained_on.items()},
    )


def mean_rates(seeds: Sequence[Rates]) -> dict[str, dict[str, float]]:
    """Mean over seeds of each task's rate; tasks that some seed has no rate of are left out."""
    first = seeds[0]
    found: dict[str, dict[str, float]] = {}
    for function, tasks in first.items():
        for task in tasks:
            rates = [rates[function][task] for rates in seeds if task in rates.get(function, {})]
            if len(rates) == len(seeds):
                found.setdefault(function, {})[task] = fmean(rates)
    return found


def difference(one: Mapping[int, Sequence[TaskScore]], other: Mapping[int, Sequence[TaskScore]]) -> Interval:
    """Mean rate of ``one`` − that of ``other``, on the tasks both have."""
    rates = [mean_rates([by_function(scores) for scores in arm.values()]) for arm in (other, one)]
    return clustered(lift(rates[0], rates[1]))


def arms_text(base: Interval, arms: Sequence[ArmResult]) -> str:
    """The table of an experiment."""
    rows = [("arm", "seed", "after", "lift in points, 95 %", "tasks trained on", "minutes")]
    rows.append(("base", "–", f"{100 * base.mean:.1f} %", "–", "–", "–"))
    for arm in arms:
        total = sum(arm.seconds.values()) / 60
        rows.append((arm.name, "all", f"{100 * arm.after:.1f} %", arm.lift.signed(), "", f"{total:.1f}"))
        for seed in arm.seeds:
            counts = "+".join(map(str, arm.trained_on.get(seed, ()))) or "–"
            minutes = f"{arm.seconds[seed] / 60:.1f}" if seed in arm.seconds else "–"
            after = base.mean + arm.by_seed[seed].mean
            rows.append((arm.name, str(seed), f"{100 * after:.1f} %", arm.by_seed[seed].signed(), counts, minutes))
    return f"{table(rows)}\n{base.tasks} held-out tasks of {base.functions} functions; base {base.text()}"
