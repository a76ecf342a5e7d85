"""Intervals over functions, then tasks."""

from __future__ import annotations

import numpy as np
import pytest

from frognano.rollout.bootstrap import clustered, lift
from frognano.rollout.evaluate import TaskScore
from frognano.rollout.ladder import by_function, histogram, histogram_text, ladder_text, rung


def scores(rates: dict[str, list[float]], episodes: int = 4) -> list[TaskScore]:
    return [
        TaskScore(
            task_id=f"{function}-{number}", module="m.py", function=function, episodes=episodes,
            solved=round(rate * episodes),
        )
        for function, values in rates.items()
        for number, rate in enumerate(values)
    ]  # fmt: skip


def test_the_mean_is_over_tasks_and_constant_values_have_no_width() -> None:
    found = clustered({"a": [1.0, 0.0, 0.0], "b": [1.0]})
    assert found.mean == 0.5
    assert (found.functions, found.tasks) == (2, 4)
    flat = clustered({"a": [0.25, 0.25], "b": [0.25]})
    assert (flat.low, flat.high) == (0.25, 0.25)


def test_equal_inputs_give_equal_intervals() -> None:
    values = {"a": [0.0, 1.0], "b": [0.5]}
    assert clustered(values, seed=3) == clustered(dict(reversed(values.items())), seed=3)


def test_tasks_of_one_function_count_less_than_tasks_of_many() -> None:
    together = clustered({"a": [1.0] * 8, "b": [0.0] * 8})
    apart = clustered({f"f{number}": [float(number % 2)] for number in range(16)})
    assert together.mean == apart.mean == 0.5
    assert together.high - together.low > 1.5 * (apart.high - apart.low)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    draw = np.random.default_rng(0)
    hits = 0
    for _ in range(100):
        truths = draw.beta(2, 2, size=30)
        values = {f"f{n}": list(draw.binomial(8, p, size=3) / 8) for n, p in enumerate(truths)}
        found = clustered(values, draws=300)
        hits += found.low <= 0.5 <= found.high
    assert hits >= 85


def test_no_task_is_an_error() -> None:
    with pytest.raises(ValueError, match="no task was scored"):
        clustered({})


def test_a_lift_is_taken_task_by_task_where_both_have_one() -> None:
    before = {"f": {"a": 0.25, "b": 0.5}, "g": {"c": 0.0}}
    after = {"f": {"a": 0.75}, "g": {"c": 0.0}}
    assert lift(before, after) == {"f": [0.5], "g": [0.0]}


def test_the_ladder_shows_rate_interval_and_what_has_no_verdict() -> None:
    rows = scores({"f": [0.5, 0.25], "g": [0.0]})
    lost = rows[0].model_copy(update={"unscored": 2, "solved": 1})
    text = ladder_text([rung(0, "start", rows), rung(1, "one", [lost, *rows[1:]], trained_on=40, updates=12)])
    assert "start" in text
    assert "25.0 %" in text
    assert "3 held-out tasks of 2 functions" in text
    assert "2 episodes had no verdict" in text


def test_the_histogram_keeps_never_and_always_apart() -> None:
    assert histogram([0.0, 0.01, 0.5, 0.99, 1.0]) == [1, 1, 0, 0, 1, 0, 0, 1, 1]
    assert histogram_text([0.0, 0.5, 0.5]).splitlines()[4].split()[:2] == ["0.50", "2"]
    assert "no calibrated task" in histogram_text([])


def test_tasks_without_any_verdict_enter_no_rate() -> None:
    lost = TaskScore(task_id="x", module="m.py", function="f", episodes=2, solved=0, unscored=2)
    assert by_function([lost]) == {}
