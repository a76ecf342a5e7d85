"""What finished is never run again: groups, calibrations and evaluations over a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frognano.config.leaf import LeafSettings
from frognano.policy.scripted import ScriptedPolicy, say
from frognano.rollout.collect import Collector
from frognano.rollout.episodes import Attempt, PlacedTask
from frognano.rollout.evaluate import Measure, TaskScore, bounds, evaluate, mean_rate
from frognano.rollout.groups import Groups
from frognano.rollout.journal import Journal
from frognano.rollout.seeds import seed_of

Attempts = Callable[..., list[Attempt]]
RIGHT = say("", ("Edit", {"file_path": "pad.py", "old_string": "n - 1", "new_string": "n + 1"}))
WRONG = say("", ("Edit", {"file_path": "pad.py", "old_string": "n - 1", "new_string": "n + 2"}))


async def nothing(_version: int) -> None:
    return None


def groups(collector: Collector, placed: PlacedTask, size: int = 3) -> Groups:
    return Groups(collector, {placed.task.id: placed}, LeafSettings(max_turns=4), size, 5, nothing, nothing)


class Cut(ScriptedPolicy):
    """Cancels the whole run when the conversation ``at`` opens and ``ready`` holds, as a kill would."""

    def __init__(self, at: int, ready: Callable[[], bool] = lambda: True) -> None:
        super().__init__([RIGHT])
        self.at = at
        self.ready = ready

    async def open(self, *arguments: Any) -> Any:
        if len(self.sessions) == self.at:
            while not self.ready():
                await asyncio.sleep(0.01)
            raise RuntimeError("killed")
        return await super().open(*arguments)


def test_a_group_has_its_attempts_with_seeds_that_follow_from_its_name(
    world: Any, placed: PlacedTask, tmp_path: Path
) -> None:
    with Journal(tmp_path, {}) as journal:
        source = groups(Collector(world.runner([RIGHT]), journal), placed)
        first = world.wait(source.group(placed.task.id, "c-g00001", 0))
        again = world.wait(source.group(placed.task.id, "c-g00001", 4))
        other = world.wait(source.group(placed.task.id, "c-g00002", 4))
    assert [one.seed for one in first] == [seed_of(5, placed.task.id, "c-g00001", n) for n in range(3)]
    assert list(again) == list(first)
    assert not {one.seed for one in first} & {one.seed for one in other}
    assert all(one.verdict is not None and one.verdict.passed for one in first)


def test_a_killed_group_runs_only_what_had_not_finished(world: Any, placed: PlacedTask, tmp_path: Path) -> None:
    with Journal(tmp_path, {}) as journal:
        kill = Cut(2, lambda: len(journal.trajectories("c-g00001")) == 2)
        cut = Collector(world.runner(kill, concurrency=1), journal)
        with pytest.raises(RuntimeError, match="killed"):
            world.wait(groups(cut, placed).group(placed.task.id, "c-g00001", 0))
        assert len(journal.trajectories("c-g00001")) == 2
        rest = ScriptedPolicy([WRONG])
        found = world.wait(groups(Collector(world.runner(rest), journal), placed).group(placed.task.id, "c-g00001", 1))
    assert [one.verdict.passed for one in found] == [True, True, False]
    assert len(rest.sessions) == 1


def test_in_lock_step_a_cohort_is_journaled_whole_or_not_at_all(world: Any, placed: PlacedTask, tmp_path: Path) -> None:
    async def two_groups(source: Groups, collector: Collector) -> list[Any]:
        async with collector:
            return list(await asyncio.gather(*(source.group(placed.task.id, f"c-g{number}", 0) for number in (1, 2))))

    with Journal(tmp_path, {}) as journal:
        cut = Collector(world.runner(Cut(4), concurrency=8), journal, lockstep=True)
        with pytest.raises(RuntimeError, match="killed"):
            world.wait(two_groups(groups(cut, placed), cut))
        assert not journal.trajectories("c-g1") + journal.trajectories("c-g2")
        whole = Collector(world.runner([RIGHT], concurrency=4), journal, lockstep=True)
        found = world.wait(two_groups(groups(whole, placed), whole))
        assert [[one.id for one in group] for group in found] == [
            [f"c-g{number}-{index:02d}" for index in range(3)] for number in (1, 2)
        ]
        assert len(journal.trajectories("c-g2")) == 3


def test_an_evaluation_counts_and_is_not_repeated(world: Any, placed: PlacedTask, tmp_path: Path) -> None:
    measure = Measure("held-out", 3, LeafSettings(max_turns=4), 0)
    with Journal(tmp_path, {}) as journal:
        first = world.wait(evaluate(Collector(world.runner([RIGHT]), journal), [placed], measure))
        silent = ScriptedPolicy([WRONG])
        again = world.wait(evaluate(Collector(world.runner(silent), journal), [placed], measure))
        assert not journal.trajectories("held-out")
    assert first == again == [
        TaskScore(task_id=placed.task.id, module="pad.py", function="hop", episodes=3, solved=3)
    ]  # fmt: skip
    assert not silent.sessions


def score(solved: int, unscored: int, episodes: int = 4) -> TaskScore:
    return TaskScore(task_id="t", episodes=episodes, solved=solved, unscored=unscored)


def test_episodes_without_a_verdict_are_left_out_and_bounded() -> None:
    scores = [score(1, 2), score(4, 0)]
    assert scores[0].rate == 0.5
    assert scores[0].failed == 1
    assert mean_rate(scores) == 0.75
    assert bounds(scores) == ((1 / 4 + 1) / 2, (3 / 4 + 1) / 2)


def test_a_task_without_any_verdict_has_no_rate() -> None:
    assert score(0, 4).rate is None
    assert mean_rate([score(0, 4)]) is None


def test_seeds_differ_by_every_part_and_repeat() -> None:
    parts = [(0, "a", 1), (0, "a", 2), (0, "b", 1), (1, "a", 1), (0, "a", "1", "")]
    assert len({seed_of(*each) for each in parts}) == len(parts)  # type: ignore[arg-type]
    assert seed_of(0, "a", 1) == seed_of(0, "a", 1) < 2**48
