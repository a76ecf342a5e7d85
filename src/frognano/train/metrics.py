"""What is recorded of every update: one flat set of keys, the same in each, and a trace of who worked when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from frognano.config.train import TrainSettings
from frognano.train.batch import Group
from frognano.train.update import UpdateReport


@dataclass(frozen=True, slots=True)
class Event:
    """A span of work, in seconds of the monotonic clock."""

    kind: Literal["group", "update", "hand_over", "validate"]
    start: float
    end: float
    number: int
    """Sequence number of a group, number of an update or validation, version handed over."""


def overlap(trace: Iterable[Event], ours: str = "group", theirs: str = "update") -> float:
    """Seconds during which events of both kinds were under way, counted per pair of events."""
    events = list(trace)
    return sum(
        max(0.0, min(one.end, other.end) - max(one.start, other.start))
        for one in events
        if one.kind == ours
        for other in events
        if other.kind == theirs
    )


@dataclass
class Tally:
    """What happened to groups while one update was being filled."""

    dropped: Counter[str] = field(default_factory=Counter)
    replaced: int = 0
    """Dropped groups for which another one was started."""
    lost: int = 0
    """Dropped groups that were not replaced, the refill budget being spent."""
    solved: int = 0
    graded: int = 0
    """Attempts with a verdict, those of dropped groups included."""
    unscored: int = 0
    """Attempts without a verdict."""

    def count(self, raw: Sequence[float | None]) -> None:
        """Count the attempts of a finished group by their raw rewards."""
        present = [reward for reward in raw if reward is not None]
        self.graded += len(present)
        self.solved += sum(reward > 0 for reward in present)
        self.unscored += len(raw) - len(present)


def lags(groups: Sequence[Group], version: int) -> Counter[int]:
    """How many trained rows are how many versions older than the one being updated."""
    found: Counter[int] = Counter()
    for group in groups:
        for trajectory, advantage in zip(group.trajectories, group.advantages, strict=True):
            if advantage is not None and trajectory.tokens is not None:
                found[version - trajectory.tokens.oldest_version] += 1
    return found


def update_metrics(
    groups: Sequence[Group], report: UpdateReport | None, tally: Tally, settings: TrainSettings, waited_s: float
) -> dict[str, Any]:
    """The record of one update; a skipped one (``report`` None) has the same keys."""
    members = [
        (trajectory, raw, shaped)
        for group in groups
        for trajectory, raw, shaped in zip(group.trajectories, group.raw, group.shaped, strict=True)
        if raw is not None and shaped is not None
    ]
    histogram = lags(groups, report.version - 1) if report else Counter()
    kept = {
        "skipped": report is None,
        "groups": len(groups),
        "trajectories": len(members),
        "reward_raw": _mean([raw for _, raw, _ in members]),
        "reward_shaped": _mean([shaped for _, _, shaped in members]),
        "solve_rate": tally.solved / max(tally.graded, 1),
        "unscored": tally.unscored,
        "truncated": _mean([float(trajectory.truncated) for trajectory, _, _ in members]),
        "turns": _mean([float(len(trajectory.steps)) for trajectory, _, _ in members]),
        "dropped_none_solved": tally.dropped["none_solved"],
        "dropped_all_solved": tally.dropped["all_solved"],
        "dropped_no_verdict": tally.dropped["no_verdict"],
        "replaced": tally.replaced,
        "lag_mean": sum(lag * rows for lag, rows in histogram.items()) / max(histogram.total(), 1),
        "lag_max": max(histogram, default=0),
        "lag_over": sum(rows for lag, rows in histogram.items() if lag > settings.max_lag),
        "lag_histogram": {str(lag): histogram[lag] for lag in sorted(histogram)},
        "waited_s": waited_s,
        "lr": settings.optimizer.lr,
    }
    return kept | _loss_metrics(report)


def _loss_metrics(report: UpdateReport | None) -> dict[str, Any]:
    sums = report.sums if report else None
    tokens = max(sums.tokens, 1) if sums else 1
    return {
        "tokens": report.tokens if report else 0,
        "trained_tokens": report.trained if report else 0,
        "loss": report.loss if report else 0.0,
        "grad_norm": report.grad_norm if report else 0.0,
        "entropy": report.entropy if report else 0.0,
        "mask_rate_positive": sums.masked_positive / max(sums.positive, 1) if sums else 0.0,
        "mask_rate_negative": sums.masked_negative / max(sums.negative, 1) if sums else 0.0,
        "gap_mean": sums.gap_sum / tokens if sums else 0.0,
        "gap_max": sums.gap_max if sums else 0.0,
        "ratio_max": sums.ratio_max if sums else 0.0,
        "mismatch_kl": sums.mismatch_kl_sum / tokens if sums else 0.0,
        "logprob_gap_mean": sums.logprob_gap_sum / tokens if sums else 0.0,
        "update_s": report.seconds if report else 0.0,
        "tokens_per_s": report.tokens / max(report.seconds, 1e-9) if report else 0.0,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
