"""The whole loop on a small repository, real at every joint but the model, which tosses a coin."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frognano.coevolve import events, pieces
from frognano.coevolve.loop import NothingToTrain, run
from frognano.coevolve.outcome import read_scores
from frognano.config.recipe import Recipe, load_recipe
from frognano.rollout.journal import RecipeChanged

Make = Callable[..., Recipe]


@pytest.fixture(scope="session")
def pool(repository: Path, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Validated tasks, made once and shared by the tests, as arms of an experiment share theirs."""
    from coin import coin_policy, coin_recipe

    folder = tmp_path_factory.mktemp("pool")
    base = tmp_path_factory.mktemp("base")
    scores = pieces.evaluate_start(
        coin_recipe(repository, checkpoint), base, folder, policy_of=coin_policy(folder, base)
    )
    assert scores
    return folder


@pytest.fixture
def go(pool: Path, tmp_path: Path) -> Callable[..., Any]:
    """Run the loop, or go on with it, in the test's folder."""
    from coin import coin_policy

    def start(recipe: Recipe, watch: events.Watch = events.silent) -> Any:
        folder = tmp_path / "run"
        return run(recipe, folder, watch=watch, pool=pool, policy_of=coin_policy(pool, folder))

    return start


def test_the_loop_ends_with_a_ladder_the_paths_and_a_solved_episode(recipe: Make, go: Any) -> None:
    seen: list[events.Event] = []
    short = recipe(train={"max_lag": 1, "updates": 2})
    outcome = go(short, seen.append)
    assert [row.iteration for row in outcome.rungs] == [0, 1]
    assert all(path.exists() for path in outcome.paths.values())
    assert (outcome.checkpoint / "config.json").is_file()
    assert load_recipe(outcome.paths["resolved recipe"]) == short
    assert set(read_scores(outcome.folder)) == {0, 1}
    text = outcome.text()
    assert "held-out tasks of" in text
    assert ("calls Edit" in text and "--- ended: agent" in text) or "No held-out episode was solved" in text
    kinds = {type(event) for event in seen}
    assert {events.PhaseBegan, events.EpisodeEnded, events.Calibrated, events.Updated, events.Climbed} <= kinds

    again: list[events.Event] = []
    assert go(short, again.append) == outcome
    assert not [event for event in again if isinstance(event, events.EpisodeEnded | events.Updated)]

    with pytest.raises(RecipeChanged, match=r"train\.groups"):
        go(recipe(train={"max_lag": 1, "updates": 2, "groups": 1}))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_loop_goes_on_with_the_same_call(recipe: Make, go: Any, how: signal.Signals) -> None:
    short = recipe(train={"max_lag": 1, "updates": 2, "validation_cadence": 0}, evaluation={"start": False})
    updates: list[int] = []

    def stop(event: events.Event) -> None:
        if isinstance(event, events.Updated):
            updates.append(event.number)
            os.kill(os.getpid(), how)

    with pytest.raises(KeyboardInterrupt):
        go(short, stop)
    assert updates == [1]
    rest: list[int] = []
    outcome = go(short, lambda event: rest.append(event.number) if isinstance(event, events.Updated) else None)
    assert rest == [2]
    assert [row.updates for row in outcome.rungs] == [2]


def test_random_tasks_are_as_many_as_calibration_admits(recipe: Make, go: Any) -> None:
    short = recipe(
        train={"updates": 1, "validation_cadence": 0}, coevolve={"tasks": "random"}, evaluation={"start": False}
    )
    seen: list[events.Event] = []
    outcome = go(short, seen.append)
    admitted = next(event.admitted for event in seen if isinstance(event, events.Calibrated))
    assert outcome.rungs[0].trained_on == admitted > 0


def test_tasks_out_of_the_band_leave_nothing_to_train_on(recipe: Make, go: Any) -> None:
    short = recipe(
        taskpilot={"band": {"low": 0.98, "high": 0.99, "target": 0.985}, "refinement": {"rounds": 0}},
        evaluation={"start": False},
    )
    with pytest.raises(NothingToTrain, match="none is in the band"):
        go(short)


def test_parts_of_the_loop_run_on_their_own(recipe: Make, pool: Path, tmp_path: Path) -> None:
    from coin import coin_policy

    def policy(name: str) -> Any:
        return coin_policy(pool, tmp_path / name)

    short = recipe(train={"updates": 1, "validation_cadence": 0})
    found = pieces.evaluate(short, tmp_path / "eval", pool, policy_of=policy("eval"))
    assert found.interval.tasks == len(found.scores) > 0
    assert "held-out tasks of" in found.text()
    measured = pieces.calibrate(short, tmp_path / "calibrate", pool, policy_of=policy("calibrate"))
    assert len(measured.rates) == 4
    assert str(len(measured.admitted)) in measured.text()
    climbed, best = pieces.train(short, tmp_path / "train", pool, policy_of=policy("train"))
    assert (climbed.updates, climbed.tasks) == (1, 4)
    assert (best / "config.json").is_file()
