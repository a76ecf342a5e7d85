"""What is known of a run while it goes on: phase, update, raw reward, p̂ histogram, tokens per second, time left.

The board only listens and counts; the renderers of ``progress`` show it. Time left is an estimate: what the plan
still holds, at the pace of what was done so far. A phase that ends early takes the rest of its share with it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from frognano.coevolve import events
from frognano.rollout.ladder import Rung

WINDOW_S = 30.0


@dataclass
class Share:
    """One phase's part of the whole."""

    weight: float
    """Episodes it is planned to need."""
    fraction: float = 0.0
    """How much of it is done."""


@dataclass
class Board:
    """The state that events add up to."""

    plan: Mapping[str, float]
    """Phase → episodes it is expected to need."""
    clock: Callable[[], float] = time.monotonic
    phase: str = ""
    step: str = ""
    """Part of the phase, where it has parts."""
    done: int = 0
    total: int = 0
    unit: str = "episodes"
    update: events.Updated | None = None
    validation: float | None = None
    rewards: list[float] = field(default_factory=list)
    """Solve rate of each update of the present climb."""
    rates: tuple[float, ...] = ()
    """p̂ of the last calibration."""
    rungs: list[Rung] = field(default_factory=list)
    episodes: int = 0
    unscored: int = 0

    def __post_init__(self) -> None:
        self.shares = {name: Share(weight) for name, weight in self.plan.items()}
        self._recent: deque[tuple[float, int, int]] = deque()
        self._began = self.clock()
        self._paced_s = 0.0
        self._paced_weight = 0.0
        self._phase_began = self._began
        self._phase_start = 0.0

    def __call__(self, event: events.Event) -> None:
        """Take an event in."""
        match event:
            case events.PhaseBegan():
                self._begin(event)
            case events.PhaseAdvanced():
                self.done, self.total, self.step = event.done, event.total, event.step
                done = event.done / event.total if event.total else 0.0
                self._advance(event.name, done if event.fraction is None else event.fraction)
            case events.PhaseEnded():
                self._advance(event.name, 1.0)
                self._pace()
            case events.EpisodeEnded():
                self._episode(event)
            case events.Updated():
                self.update, self.done = event, event.number
                self.rewards.append(event.solve_rate)
                self._advance(self.phase, event.number / event.of)
            case events.Validated():
                self.validation = event.score
            case events.Calibrated():
                self.rates = event.rates
            case events.Climbed():
                self.rungs.append(event.rung)

    def _begin(self, event: events.PhaseBegan) -> None:
        self.phase, self.step, self.unit = event.name, "", event.unit
        self.total, self.done = event.total, 0
        self.rewards, self.update = [], None
        for name in self.shares:
            # Whatever stands before this phase in the plan is done, here or before the run was resumed.
            if name == event.name:
                break
            self.shares[name].fraction = 1.0
        self._phase_began = self.clock()
        share = self.shares.get(event.name)
        self._phase_start = share.fraction if share else 0.0

    def _advance(self, name: str, fraction: float) -> None:
        share = self.shares.get(name)
        if share is not None:
            share.fraction = max(share.fraction, min(fraction, 1.0))

    def _pace(self) -> None:
        share = self.shares.get(self.phase)
        if share is not None:
            self._paced_s += self.clock() - self._phase_began
            self._paced_weight += share.weight * (share.fraction - self._phase_start)

    def _episode(self, event: events.EpisodeEnded) -> None:
        self.episodes += 1
        self.unscored += event.solved is None
        now = self.clock()
        self._recent.append((now, event.sampled, event.context))
        while self._recent and self._recent[0][0] < now - WINDOW_S:
            self._recent.popleft()
        if self.unit == "episodes" and self.total:
            self.done = min(self.done + 1, self.total)
            self._advance(self.phase, self.done / self.total)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start of this process's part of the run."""
        return self.clock() - self._began

    @property
    def tokens_per_s(self) -> float:
        """Tokens that the policy wrote, per second, over the last half minute."""
        if not self._recent:
            return 0.0
        now = self.clock()
        span = max(now - max(self._recent[0][0], now - WINDOW_S), 1.0)
        return sum(sampled for at, sampled, _ in self._recent if at >= now - WINDOW_S) / span

    @property
    def left_s(self) -> float | None:
        """Seconds left; None while there is nothing to go by."""
        seconds, weight = self._paced_s, self._paced_weight
        share = self.shares.get(self.phase)
        if share is not None and share.fraction < 1.0:
            seconds += self.clock() - self._phase_began
            weight += share.weight * (share.fraction - self._phase_start)
        if weight <= 0 or seconds < 1.0:
            return None
        rest = sum(share.weight * (1.0 - share.fraction) for share in self.shares.values())
        return rest * seconds / weight
