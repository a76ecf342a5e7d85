"""Shows a run while it goes on: a live panel on a terminal, plain lines elsewhere.

Both are fed by events and show the same board. Nothing that a model or a tool wrote is shown here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from frognano.coevolve import events
from frognano.coevolve.board import Board
from frognano.config.recipe import Recipe
from frognano.rollout.ladder import histogram, ladder_text

_BARS = " ▁▂▃▄▅▆▇█"
TASK_WEIGHT = 3.0
"""Episodes that one validated task costs, about."""
QUIET_S = 10.0
"""Plain lines: least seconds between two lines of the same phase."""


def clock_text(seconds: float | None) -> str:
    """``3 min 20 s``."""
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def spark(values: list[float]) -> str:
    """Values between 0 and 1 as one character each."""
    return "".join(_BARS[round(min(max(value, 0.0), 1.0) * (len(_BARS) - 1))] for value in values)


def status(board: Board) -> list[str]:
    """The board as lines of text."""
    counted = f"  {board.done}/{board.total} {board.unit}" if board.total else ""
    step = f", {board.step}" if board.step else ""
    lines = [f"{board.phase or 'starting'}{step}{counted}"]
    update = board.update
    if update is not None:
        lines.append(
            f"update {update.number}/{update.of}  raw reward {update.raw_reward:.2f}  solved {update.solve_rate:.2f}"
            f"  groups kept {update.groups}, dropped {update.dropped}  lag {update.lag:.1f}"
        )
        lines.append(f"solved by update  {spark(board.rewards[-60:])}")
    if board.validation is not None:
        lines.append(f"validation {100 * board.validation:.1f} %")
    if board.rates:
        counts = histogram(board.rates)
        lines.append(f"p̂ 0 {spark([count / max(counts) for count in counts])} 1  ({len(board.rates)} tasks)")
    lines.append(
        f"{board.tokens_per_s:.0f} tokens/s  {board.episodes} episodes"
        f"{f', {board.unscored} without a verdict' if board.unscored else ''}"
        f"  {clock_text(board.elapsed_s)} so far, about {clock_text(board.left_s)} left"
    )
    return lines


class PlainLines:
    """Prints a line when something worth it happens, and now and then while a phase goes on."""

    def __init__(self, board: Board, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._board, self._stream, self._clock = board, stream, clock
        self._last = -QUIET_S
        self._shown: set[str] = set()

    def __call__(self, event: events.Event) -> None:
        self._board(event)
        board = self._board
        match event:
            case events.PhaseBegan():
                self._say(f"[{clock_text(board.elapsed_s)}] {event.name}")
            case events.PhaseEnded() if event.text:
                self._say(f"  {event.text}")
            case events.Told():
                self._say(event.text)
            case events.Climbed():
                self._say(ladder_text(board.rungs))
            case events.Validated():
                self._say(f"  validation after update {event.number}: {100 * event.score:.1f} %")
            case _:
                if self._clock() - self._last >= QUIET_S:
                    lines = status(board)
                    self._say("\n".join(f"  {line}" for line in lines if line not in self._shown))
                    self._shown = set(lines)

    def _say(self, text: str) -> None:
        self._last = self._clock()
        print(text, file=self._stream, flush=True)


class LivePanel:
    """Redraws one panel; texts for people scroll by above it."""

    def __init__(self, board: Board, console: Console) -> None:
        self._board, self._console = board, console
        self.live = Live(console=console, get_renderable=self._panel, refresh_per_second=4, transient=True)

    def __call__(self, event: events.Event) -> None:
        self._board(event)
        match event:
            case events.Told():
                self._console.print(Text(event.text))
            case events.PhaseEnded() if event.text:
                self._console.print(Text(f"{event.name}: {event.text}"))
            case events.Climbed():
                self._console.print(Text(ladder_text(self._board.rungs)))

    def _panel(self) -> Panel:
        return Panel(Group(*(Text(line) for line in status(self._board))), title="frognano", title_align="left")


def shares(recipe: Recipe) -> dict[str, float]:
    """What each phase of the loop weighs in the estimate of time, in episodes; a task to make weighs a few."""
    synthesis = recipe.taskpilot.synthesis
    tasks = synthesis.train_tasks + synthesis.validation_tasks + synthesis.held_out_tasks
    return {"synthesis": TASK_WEIGHT * tasks, **recipe.plan}


@contextmanager
def watching(recipe: Recipe, stream: TextIO | None = None, only: Sequence[str] = ()) -> Iterator[events.Watch]:
    """A watcher for the terminal or file that ``stream`` (standard output) is; ``only`` names the phases that run."""
    out = stream or sys.stdout
    weights = shares(recipe)
    board = Board({name: weights.get(name, 1.0) for name in only or weights})
    if not out.isatty():
        yield PlainLines(board, out)
        return
    panel = LivePanel(board, Console(file=out))
    with panel.live:
        yield panel
