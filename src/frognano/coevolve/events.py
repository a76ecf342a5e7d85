"""What a run tells whoever watches it: small records, in the order in which things happen."""

from __future__ import annotations

from collections.abc import Callable

from frognano.records import Record
from frognano.rollout.ladder import Rung


class Event(Record):
    """Base of all events."""


class PhaseBegan(Event):
    """A phase starts; one that was finished before the run was resumed is passed over in silence."""

    name: str
    """For example ``iteration 2: climb``; the names are those of the recipe's plan."""
    iteration: int = 0
    total: int = 0
    """Steps it will take, in the phase's own unit; 0 while that is not known."""
    unit: str = "episodes"


class PhaseAdvanced(Event):
    """So many steps are done."""

    name: str
    done: int
    total: int
    step: str = ""
    """Part of the phase that is meant, where it has parts."""
    fraction: float | None = None
    """Share of the whole phase that is done, where ``done`` counts a part of it."""


class PhaseEnded(Event):
    """A phase is finished."""

    name: str
    text: str = ""
    """What came of it, in a line."""


class EpisodeEnded(Event):
    """One episode is finished and graded."""

    scope: str
    task_id: str
    solved: bool | None
    """None without a verdict."""
    exit_reason: str
    sampled: int
    """Tokens the model wrote."""
    context: int
    """Tokens of the whole conversation."""


class Updated(Event):
    """One update of a climb."""

    iteration: int
    number: int
    of: int
    skipped: bool
    raw_reward: float
    """Mean raw reward of the rows that were trained on."""
    solve_rate: float
    """Share solved of every attempt graded for this update, dropped groups included."""
    groups: int
    dropped: int
    lag: float
    update_s: float
    waited_s: float


class Validated(Event):
    """The validation set was scored."""

    iteration: int
    number: int
    score: float


class Calibrated(Event):
    """p̂ of the tasks of one round, and how many of them are admitted."""

    iteration: int
    rates: tuple[float, ...]
    admitted: int


class Climbed(Event):
    """A row of the ladder."""

    rung: Rung


class Told(Event):
    """A text for people: the funnel, a warning."""

    text: str


Watch = Callable[[Event], None]
"""Takes every event and returns at once."""


def silent(_event: Event) -> None:
    """Watches nothing."""
