"""Arms of an experiment against their shared base."""

from __future__ import annotations

import pytest

from frognano.report.arms import arm_result, arms_text, difference
from frognano.rollout.evaluate import TaskScore
from frognano.rollout.ladder import interval_of


def scores(rates: dict[str, list[float]], episodes: int = 4) -> list[TaskScore]:
    return [
        TaskScore(
            task_id=f"{function}-{number}", module="m.py", function=function, episodes=episodes,
            solved=round(rate * episodes),
        )
        for function, values in rates.items()
        for number, rate in enumerate(values)
    ]  # fmt: skip


def test_an_arm_is_compared_with_the_base_task_by_task() -> None:
    base = scores({"f": [0.25, 0.25], "g": [0.0, 0.5], "h": [0.25]})
    after = {0: scores({"f": [0.75, 0.5], "g": [0.25, 0.75], "h": [0.5]}), 1: base}
    arm = arm_result("real", base, after, {0: 60.0, 1: 30.0}, {0: [40, 38]})
    assert arm.by_seed[1].mean == 0.0
    assert arm.by_seed[0].low > 0
    assert arm.lift.mean == pytest.approx(arm.by_seed[0].mean / 2)
    assert difference(after, {0: base}).mean == pytest.approx(arm.lift.mean)
    text = arms_text(interval_of(base), [arm])
    assert "40+38" in text
    assert "1.5" in text
