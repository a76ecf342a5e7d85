"""What is shown while a run goes on."""

from __future__ import annotations

import io

from rich.console import Console

from frognano.coevolve import events
from frognano.coevolve.board import Board
from frognano.coevolve.progress import LivePanel, PlainLines, clock_text, status, watching
from frognano.config.recipe import Recipe
from frognano.rollout.bootstrap import Interval
from frognano.rollout.ladder import Rung


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def episode(solved: bool | None = True, sampled: int = 100) -> events.EpisodeEnded:
    return events.EpisodeEnded(scope="s", task_id="t", solved=solved, exit_reason="agent", sampled=sampled, context=300)


def update(number: int, of: int = 4) -> events.Updated:
    return events.Updated(
        iteration=1, number=number, of=of, skipped=False, raw_reward=0.5, solve_rate=0.25, groups=8, dropped=2,
        lag=1.0, update_s=0.1, waited_s=0.2,
    )  # fmt: skip


def rung() -> Rung:
    interval = Interval(mean=0.25, low=0.2, high=0.3, functions=3, tasks=9)
    return Rung(iteration=1, checkpoint="c", interval=interval, episodes=36)


def test_time_left_follows_from_the_plan_and_the_pace() -> None:
    clock = Clock()
    board = Board({"start: held-out": 10, "iteration 1: climb": 40}, clock)
    assert board.left_s is None
    board(events.PhaseBegan(name="start: held-out", total=10))
    clock.now = 5.0
    for _ in range(5):
        board(episode())
    assert board.left_s == 45.0
    clock.now = 10.0
    board(events.PhaseEnded(name="start: held-out"))
    assert board.left_s == 40.0
    board(events.PhaseBegan(name="iteration 1: climb", total=4, unit="updates"))
    clock.now = 20.0
    board(update(2))
    assert board.left_s is not None
    assert 10.0 < board.left_s < 20.0


def test_a_resumed_run_does_not_count_what_was_done_before() -> None:
    clock = Clock()
    board = Board({"a": 100, "b": 10}, clock)
    board(events.PhaseBegan(name="b", total=10))
    clock.now = 10.0
    for _ in range(5):
        board(episode())
    assert board.left_s == 10.0


def test_tokens_per_second_are_those_of_the_last_half_minute() -> None:
    clock = Clock()
    board = Board({}, clock)
    board(episode(sampled=10_000))
    for second in range(40, 51):
        clock.now = float(second)
        board(episode(sampled=100))
    assert board.tokens_per_s == 110.0


def test_the_status_shows_phase_update_reward_histogram_pace_and_time_left() -> None:
    clock = Clock()
    board = Board({"iteration 1: climb": 4}, clock)
    board(events.Calibrated(iteration=1, rates=(0.0, 0.5, 1.0), admitted=1))
    board(events.PhaseBegan(name="iteration 1: climb", total=4, unit="updates"))
    clock.now = 10.0
    board(episode(solved=None))
    board(update(2))
    text = "\n".join(status(board))
    for part in ("iteration 1: climb", "update 2/4", "raw reward 0.50", "p̂ 0", "tokens/s", "without a verdict", "left"):
        assert part in text


def test_without_a_terminal_there_are_plain_lines() -> None:
    stream = io.StringIO()
    with watching(Recipe(), stream) as watch:
        assert isinstance(watch, PlainLines)
        watch(events.PhaseBegan(name="start: held-out", total=1))
        watch(events.Told(text="a funnel"))
        watch(events.Climbed(rung=rung()))
    text = stream.getvalue()
    assert "start: held-out" in text
    assert "a funnel" in text
    assert "25.0 %" in text
    assert "\x1b" not in text


def test_on_a_terminal_one_panel_is_redrawn() -> None:
    stream = io.StringIO()
    panel = LivePanel(Board({"a": 1}), Console(file=stream, force_terminal=True, width=100))
    with panel.live:
        panel(events.PhaseBegan(name="a", total=1))
        panel(episode())
        panel.live.refresh()
    assert "1/1 episodes" in stream.getvalue()


def test_clock_texts() -> None:
    assert [clock_text(value) for value in (None, 59.4, 61, 3700)] == ["unknown", "59 s", "1 min 01 s", "1 h 01 min"]
