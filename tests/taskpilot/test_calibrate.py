"""p̂ by episodes: counting, early stops, lost verdicts, resume, intervals."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from frognano.config.taskpilot import BandSettings, CalibrationSettings
from frognano.records import GradingTests, Origin, Task, Trajectory, Verdict
from frognano.taskpilot.beta import beta_interval, cumulative
from frognano.taskpilot.calibrate import Measure, calibrate, histogram, histogram_text
from frognano.taskpilot.journal import FileJournal

TASK = Task(
    id="t-1",
    statement="wrong",
    snapshot="0",
    tests=GradingTests(f2p=("t.py::a",)),
    origin=Origin(repository="r", base="0"),
)


class Scripted:
    """Plays given rewards in order; remembers what was asked."""

    def __init__(self, rewards: Sequence[float | None]) -> None:
        self._rewards = list(rewards)
        self.asked: list[tuple[int, int]] = []

    async def __call__(self, task: Task, episodes: int, seed: int) -> Sequence[Trajectory]:
        self.asked.append((episodes, seed))
        played = [self._rewards.pop(0) for _ in range(episodes)]
        return [
            Trajectory(id=str(n), task_id=task.id, exit_reason="agent", verdict=Verdict(reward=reward))
            for n, reward in enumerate(played)
        ]


def measure(rewards: Sequence[float | None], folder: Path, **settings: object) -> tuple[Measure, Scripted]:
    solve = Scripted(rewards)
    journal = FileJournal(folder / "journal")
    found = asyncio.run(calibrate([TASK], solve, CalibrationSettings.parse(settings), journal, policy="p"))
    return found["t-1"], solve


def test_p_hat_is_the_share_of_solved_episodes(tmp_path: Path) -> None:
    found, _ = measure([1, 0, 0, 1], tmp_path, episodes=4)
    assert (found.p_hat, found.episodes, found.solved) == (0.5, 4, 2)
    assert found.low < 0.5 < found.high


def test_equal_outcomes_from_the_start_stop_early(tmp_path: Path) -> None:
    assert measure([0, 0], tmp_path, episodes=8, early_stop=2)[0].episodes == 2
    assert measure([1, 0, *[1] * 6], tmp_path / "b", episodes=8, early_stop=2)[0].episodes == 8


def test_episodes_without_a_verdict_are_run_again_and_counted_apart(tmp_path: Path) -> None:
    found, solve = measure([1, None, 0, None, 1, None], tmp_path, episodes=4)
    assert (found.episodes, found.solved, found.without_verdict) == (3, 2, 3)
    assert solve.asked[1][0] == 2
    assert solve.asked[1][1] != solve.asked[0][1]


def test_a_task_without_any_verdict_has_no_p(tmp_path: Path) -> None:
    found, _ = measure([None] * 4, tmp_path, episodes=2)
    assert (found.episodes, found.p_hat, found.low, found.high) == (0, 0.0, 0.0, 1.0)


def test_a_finished_measurement_is_not_repeated_and_another_round_is_fresh(tmp_path: Path) -> None:
    measure([1, 0], tmp_path, episodes=2)
    again, solve = measure([], tmp_path, episodes=2)
    assert (again.p_hat, solve.asked) == (0.5, [])
    fresh = Scripted([1, 1])
    journal = FileJournal(tmp_path / "journal")
    settings = CalibrationSettings(episodes=2)
    found = asyncio.run(calibrate([TASK], fresh, settings, journal, policy="p", round_=1))
    assert found["t-1"].p_hat == 1
    assert found["t-1"].seed != again.seed


def test_the_interval_agrees_with_known_values() -> None:
    assert cumulative(0.5, 2.0, 2.0) == pytest.approx(0.5)
    assert cumulative(0.3, 1.0, 1.0) == pytest.approx(0.3)
    assert cumulative(0.2, 3.0, 1.0) == pytest.approx(0.2**3)
    low, high = beta_interval(4, 8)
    assert low == pytest.approx(1 - high)
    assert beta_interval(0, 8)[0] == 0.0
    assert beta_interval(8, 8)[1] == 1.0


def test_the_histogram_keeps_the_ends_apart(tmp_path: Path) -> None:
    base, _ = measure([1, 0], tmp_path, episodes=2)
    measures = [base, base.model_copy(update={"solved": 0}), base.model_copy(update={"solved": 2})]
    counts = dict(histogram(measures))
    assert (counts["0"], counts["0.50-0.62"], counts["1"]) == (1, 1, 1)
    assert "#" in histogram_text(measures)


def test_the_band_is_open_unless_its_upper_end_is_included() -> None:
    assert [BandSettings().holds(p) for p in (0.0, 0.1, 1.0)] == [False, True, False]
    last = BandSettings(high=0.5, high_included=True)
    assert [last.holds(p) for p in (0.0, 0.5, 0.6)] == [False, True, False]
    with pytest.raises(ValueError, match="below high"):
        BandSettings(low=0.5, high=0.4)
