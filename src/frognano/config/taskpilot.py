"""Settings of TaskPilot: how tasks are made, confirmed, calibrated, refined and admitted.

Everything random follows from ``seed``. The defaults serve a small package on two cores; numbers that the paper
does not disclose (episodes per calibration, rounds of refinement, repeats against flakiness) are ours.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from frognano.config.base import Settings
from frognano.records import Split

Level = Literal["symptom", "located", "contract", "suspect"]


class SynthesisSettings(Settings):
    """From a repository to validated tasks."""

    seed: int = 0
    """Seed of everything that is drawn: candidates, levels, wordings, orders of tests."""
    train_tasks: int = Field(default=200, ge=0)
    """Validated tasks wanted from train modules."""
    validation_tasks: int = Field(default=40, ge=0)
    """Validated tasks wanted from validation modules."""
    held_out_tasks: int = Field(default=120, ge=0)
    """Validated tasks wanted from held-out modules."""
    validation_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the modules' functions that goes to validation, before anything is made."""
    held_out_share: float = Field(default=0.3, ge=0, lt=1)
    """Share of the modules' functions that is held out, before anything is made."""
    families: tuple[str, ...] = ()
    """Mutation families to use; empty means all."""
    max_per_function: int = Field(default=4, ge=1)
    """Validated tasks per function, so that the pool is varied."""
    max_family_share: float = Field(default=0.25, gt=0, le=1)
    """Largest share of a split that one mutation family may fill."""
    same_behaviour: int = Field(default=1, ge=1)
    """Tasks kept of those whose function fails the same tests with the same outcomes."""
    oversampling: float = Field(default=2.5, ge=1)
    """Candidates screened per wanted task, at most; 48 more are allowed in any case."""
    max_broken_share: float = Field(default=0.34, gt=0, le=1)
    """A candidate that breaks more of the suite than this is refused as too broad."""
    baseline_runs: int = Field(default=3, ge=1)
    """Runs of the untouched suite, each in another order and with another hash seed."""
    slow_test_s: float = Field(default=2.0, gt=0)
    """A test slower than this is set aside."""
    suite_timeout_s: float = Field(default=600.0, gt=0)
    """Wall seconds for one run of the whole suite."""
    confirm_runs: int = Field(default=3, ge=1)
    """Runs that must agree for every fail-to-pass and pass-to-pass test, with and without the gold patch."""
    p2p: Literal["module", "suite"] = "module"
    """Pass-to-pass tests: those that execute the changed module, or every stable test of the suite."""
    whole_suite: bool = True
    """Run the whole suite once on each candidate, so that damage outside its own module is seen."""
    time_factor: float = Field(default=10.0, ge=1)
    """A candidate's tests may take this many times their usual time."""
    time_floor_s: float = Field(default=1.0, gt=0)
    """Wall seconds a candidate's tests always get."""
    screen_batch: int = Field(default=64, ge=1)
    """Candidates per screening process; finished batches are not repeated on resume."""
    workers: int = Field(default=2, ge=1)
    """Sandboxes used at once."""
    levels: dict[Level, float] = {"suspect": 3.0, "contract": 3.0, "located": 2.0, "symptom": 2.0}
    """Weights from which the statement level of a raw task is drawn."""
    example_chars: int = Field(default=60, ge=10)
    """Preferred length of an example's call and of its outcomes."""
    example_limit: int = Field(default=160, ge=20)
    """An example longer than this on any side is not used."""
    examples: int = Field(default=2, ge=1, le=2)
    """Examples shown by a raw statement, where as many were found."""

    @field_validator("levels")
    @classmethod
    def _some_level(cls, levels: dict[Level, float]) -> dict[Level, float]:
        if not levels or min(levels.values()) < 0 or sum(levels.values()) <= 0:
            raise ValueError("weights must not be negative and one must be above 0")
        return levels

    def shares(self) -> dict[Split, float]:
        """Shares of functions by split, train apart; 0 where no task is wanted."""
        return {
            "validation": self.validation_share if self.validation_tasks else 0.0,
            "held-out": self.held_out_share if self.held_out_tasks else 0.0,
        }

    @model_validator(mode="after")
    def _shares_leave_train(self) -> SynthesisSettings:
        if self.validation_share + self.held_out_share >= 1:
            raise ValueError("validation_share + held_out_share must leave a share for train: below 1")
        return self


class BandSettings(Settings):
    """Which p̂ makes a task worth training on."""

    low: float = Field(default=0.0, ge=0, lt=1)
    """p̂ must be above this."""
    high: float = Field(default=1.0, gt=0, le=1)
    """p̂ must be below this, or at most this where ``high_included``."""
    high_included: bool = False
    """True for a closed upper end, as in the paper's last iteration: (0, 0.5]."""
    target: float = Field(default=0.5, gt=0, lt=1)
    """The p̂ aimed at: where more tasks are in the band than wanted, the nearest are taken."""

    @model_validator(mode="after")
    def _ordered(self) -> BandSettings:
        if self.low >= self.high:
            raise ValueError(f"low ({self.low}) must be below high ({self.high})")
        return self

    def holds(self, p_hat: float) -> bool:
        """True when ``p_hat`` lies in the band."""
        return self.low < p_hat and (p_hat <= self.high if self.high_included else p_hat < self.high)


class CalibrationSettings(Settings):
    """p̂ by full episodes of the current policy."""

    episodes: int = Field(default=8, ge=1)
    """Episodes per task."""
    early_stop: int = Field(default=0, ge=0)
    """Stop a task after this many equal outcomes from the start; 0 runs every episode."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Of the Beta interval printed beside p̂."""
    retries: int = Field(default=1, ge=0)
    """Times that episodes without a verdict are run again."""
    concurrency: int = Field(default=16, ge=1)
    """Tasks calibrated at once."""
    seed: int = 0
    """Seed of the first calibration; every later measure draws fresh seeds from it."""


class RefinementSettings(Settings):
    """Moving tasks into the band: only the statement changes."""

    rounds: int = Field(default=2, ge=0)
    """Refine-and-measure rounds per task."""
    max_tasks: int = Field(default=0, ge=0)
    """Out-of-band tasks refined per round; 0 means all."""


class TaskPilotSettings(Settings):
    """All of TaskPilot."""

    synthesis: SynthesisSettings = SynthesisSettings()
    calibration: CalibrationSettings = CalibrationSettings()
    refinement: RefinementSettings = RefinementSettings()
    band: BandSettings = BandSettings()
    admit: int = Field(default=300, ge=1)
    """Tasks admitted to one climb, at most."""
