"""Quotas: how many tasks each split, function, family and behaviour may still have, so that a pool is varied."""

from __future__ import annotations

import math
from collections import Counter

from frognano.config.taskpilot import SynthesisSettings
from frognano.records import Split
from frognano.taskpilot.candidates import Candidate
from frognano.taskpilot.funnel import Code
from frognano.taskpilot.screen import Screened

SPARE = 48
"""Candidates screened beyond the share that the settings allow, so that a small pool has a fair chance."""


class Quota:
    """Counts of what was taken; what is rejected later is given back."""

    def __init__(self, settings: SynthesisSettings) -> None:
        self._settings = settings
        self._wanted: dict[Split, int] = {
            "train": settings.train_tasks,
            "validation": settings.validation_tasks,
            "held-out": settings.held_out_tasks,
        }
        self._splits: Counter[str] = Counter()
        self._functions: Counter[str] = Counter()
        self._families: Counter[tuple[str, str]] = Counter()
        self._behaviours: Counter[str] = Counter()

    def need(self, split: Split) -> int:
        """Tasks that a split still lacks."""
        return self._wanted[split] - self._splits[split]

    def refusal(self, candidate: Candidate, screened: Screened) -> Code | None:
        """Why the candidate is not taken, its split's number apart; None when it may be."""
        if self._behaviours[screened.signature] >= self._settings.same_behaviour:
            return Code.NEAR_DUPLICATE
        return self.full(candidate)

    def full(self, candidate: Candidate) -> Code | None:
        """Why the candidate need not even be screened; None when it may be taken."""
        if self._functions[candidate.place] >= self._settings.max_per_function:
            return Code.FUNCTION_FULL
        share = math.ceil(self._settings.max_family_share * self._wanted[candidate.split])
        if self._families[candidate.split, candidate.mutation.family] >= share:
            return Code.FAMILY_FULL
        return None

    def take(self, candidate: Candidate, screened: Screened, count: int = 1) -> None:
        """Count the candidate; -1 gives it back."""
        self._splits[candidate.split] += count
        self._functions[candidate.place] += count
        self._families[candidate.split, candidate.mutation.family] += count
        self._behaviours[screened.signature] += count

    def next_wave(self, waiting: list[Candidate], screened_so_far: Counter[str]) -> list[Candidate]:
        """Take from ``waiting`` what is worth screening next: somewhat more than each split lacks."""
        room: dict[str, int] = {}
        for split, wanted in self._wanted.items():
            budget = math.ceil(self._settings.oversampling * wanted) + SPARE - screened_so_far[split]
            need = self.need(split)
            room[split] = min(budget, math.ceil(need * 1.25) + 2) if need > 0 else 0
        wave: list[Candidate] = []
        functions = Counter(self._functions)
        for candidate in waiting:
            spare = functions[candidate.place] < self._settings.max_per_function
            if room[candidate.split] > 0 and spare and self.full(candidate) is None:
                room[candidate.split] -= 1
                functions[candidate.place] += 1
                wave.append(candidate)
        taken = {candidate.key for candidate in wave}
        waiting[:] = [candidate for candidate in waiting if candidate.key not in taken]
        screened_so_far.update(candidate.split for candidate in wave)
        return wave
