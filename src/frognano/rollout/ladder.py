"""The ladder: held-out solve rate after each iteration, with its interval, as records and as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frognano.records import Record
from frognano.rollout.bootstrap import Interval, clustered
from frognano.rollout.evaluate import TaskScore, bounds


class Rung(Record):
    """One row of the ladder; iteration 0 is the starting checkpoint."""

    iteration: int
    checkpoint: str
    interval: Interval
    episodes: int
    unscored: int = 0
    low_bound: float = 0.0
    """Rate if every episode without a verdict had failed."""
    high_bound: float = 1.0
    """Rate if every episode without a verdict had passed."""
    trained_on: int = 0
    """Tasks admitted to the climb before it."""
    updates: int = 0


def by_function(scores: Iterable[TaskScore]) -> dict[str, dict[str, float]]:
    """Function → task → solve rate, of the tasks that were graded at all."""
    found: dict[str, dict[str, float]] = {}
    for score in scores:
        if score.rate is not None:
            found.setdefault(f"{score.module}:{score.function}", {})[score.task_id] = score.rate
    return found


def interval_of(scores: Sequence[TaskScore], seed: int = 0) -> Interval:
    """Mean solve rate over tasks with its interval. Raises ValueError when nothing was graded."""
    return clustered({name: list(tasks.values()) for name, tasks in by_function(scores).items()}, seed)


def rung(iteration: int, checkpoint: str, scores: Sequence[TaskScore], trained_on: int = 0, updates: int = 0) -> Rung:
    """A row from the scores of held-out tasks."""
    low, high = bounds(scores)
    return Rung(
        iteration=iteration,
        checkpoint=checkpoint,
        interval=interval_of(scores),
        episodes=sum(score.episodes for score in scores),
        unscored=sum(score.unscored for score in scores),
        low_bound=low,
        high_bound=high,
        trained_on=trained_on,
        updates=updates,
    )


def ladder_text(rungs: Sequence[Rung]) -> str:
    """The ladder as a table of plain text."""
    if not rungs:
        return "no held-out evaluation yet"
    rows = [("iteration", "held-out", "95 % interval", "episodes", "tasks trained on", "updates")]
    for row in rungs:
        interval = row.interval
        name = "start" if row.iteration == 0 else str(row.iteration)
        rows.append(
            (
                name,
                f"{100 * interval.mean:.1f} %",
                f"{100 * interval.low:.1f} – {100 * interval.high:.1f}",
                str(row.episodes),
                str(row.trained_on or "–"),
                str(row.updates or "–"),
            )
        )
    text = table(rows)
    first = rungs[0].interval
    text += f"\n{first.tasks} held-out tasks of {first.functions} functions; intervals over functions, then tasks"
    unscored = sum(row.unscored for row in rungs)
    if unscored:
        spread = ", ".join(
            f"{row.iteration}: {100 * row.low_bound:.1f}–{100 * row.high_bound:.1f}" for row in rungs if row.unscored
        )
        text += f"\n{unscored} episodes had no verdict and are left out; bounds if all had failed or passed: {spread}"
    return text


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in columns; the first row is the head, numbers stand right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if not column else cell.rjust(width) for column, (cell, width) in _cells(row, widths)
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _cells(row: Sequence[str], widths: Sequence[int]) -> Iterable[tuple[int, tuple[str, int]]]:
    return enumerate(zip(row, widths, strict=True))


def histogram_text(rates: Sequence[float], bins: int = 9, width: int = 40) -> str:
    """p̂ of the calibrated tasks: one line for each of ``bins`` values between 0 and 1, 0 and 1 on their own."""
    if not rates:
        return "no calibrated task yet"
    counts = histogram(rates, bins)
    most = max(counts)
    lines = []
    for number, count in enumerate(counts):
        bar = "#" * max(round(width * count / most), 1 if count else 0)
        lines.append(f"{number / (bins - 1):5.2f}  {count:4d}  {bar}".rstrip())
    return "\n".join(lines)


def histogram(rates: Sequence[float], bins: int = 9) -> list[int]:
    """Counts of rates at the nearest of ``bins`` evenly spaced values from 0 to 1; 0 and 1 hold exact ones only."""
    counts = [0] * bins
    for rate in rates:
        place = round(rate * (bins - 1))
        if 0.0 < rate < 1.0:
            place = min(max(place, 1), bins - 2)
        counts[place] += 1
    return counts
