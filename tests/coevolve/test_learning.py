"""``perf/learning.py``: its short form over the coin policy, resumed, and what its claims ask for."""

from __future__ import annotations

import sqlite3
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from frognano.config.recipe import Recipe, dump_recipe
from frognano.rollout.bootstrap import Interval
from frognano.rollout.evaluate import TaskScore

FEW = [
    "taskpilot.synthesis.train_tasks=4",
    "taskpilot.synthesis.held_out_tasks=2",
    "taskpilot.calibration.episodes=6",
    "coevolve.tasks_per_iteration=4",
]


def episodes(folder: Path) -> int:
    with sqlite3.connect(f"file:{folder / 'journal.sqlite'}?mode=ro", uri=True) as db:
        return int(db.execute("SELECT COUNT(*) FROM episodes").fetchone()[0])


@pytest.mark.slow
def test_the_short_form_runs_every_arm_once(recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import learning
    from coin import coin_policy

    from frognano.coevolve import loop, pieces

    def with_coin(whole: Any) -> Any:
        def call(made: Recipe, folder: Path, *places: Path, pool: Path | None = None, **more: Any) -> Any:
            where = pool or places[0]
            return whole(made, folder, where, policy_of=coin_policy(where, folder), **more)

        return call

    def run(made: Recipe, folder: Path, where: Path, **more: Any) -> Any:
        return whole_loop(made, folder, pool=where, **more)

    whole_loop = loop.run
    monkeypatch.setattr(loop, "run", with_coin(run))
    monkeypatch.setattr(pieces, "evaluate_start", with_coin(partial(pieces.evaluate_start)))
    (tmp_path / "coin.yaml").write_text(dump_recipe(recipe()))
    chosen = [part for change in FEW for part in ("--set", change)]
    command = ["learning.py", "--short", "--recipe", str(tmp_path / "coin.yaml"), "--work", str(tmp_path / "work")]
    monkeypatch.setattr(sys, "argv", [*command, *chosen])
    assert learning.main() == 0
    folders = [tmp_path / "work/short" / f"{arm}-0" for arm in learning.ARMS]
    table = (tmp_path / "work/short/table.txt").read_text()
    assert all(arm in table for arm in learning.ARMS)
    before = [episodes(folder) for folder in folders]
    assert min(before) > 0
    assert learning.main() == 0
    assert [episodes(folder) for folder in folders] == before


def scores(tasks: int, episodes: int = 4, functions: int = 25) -> list[TaskScore]:
    return [
        TaskScore(task_id=f"t{n}", module="m.py", function=f"f{n % functions}", episodes=episodes, solved=1)
        for n in range(tasks)
    ]


@pytest.mark.parametrize(
    ("base", "seeds", "low", "failing"),
    [
        (scores(100), 3, 1.0, 0),
        (scores(99), 3, 1.0, 1),
        (scores(100, episodes=3), 3, 1.0, 1),
        (scores(100, functions=19), 3, 1.0, 1),
        (scores(100), 2, 1.0, 1),
        (scores(100), 3, -1.0, 1),
    ],
)
def test_claims_fail_where_the_experiment_falls_short(
    base: list[TaskScore], seeds: int, low: float, failing: int
) -> None:
    import learning

    from frognano.report.arms import ArmResult

    lift = Interval(mean=5.0, low=low, high=9.0, functions=25, tasks=100)
    arm = ArmResult(name="real", seeds=tuple(range(seeds)), after=0.4, lift=lift, by_seed={})
    held = learning.claims(base, {"real": {0: base}}, {"real": arm})
    assert list(held.values()).count(False) == failing
