"""Recipes: strict, short, the paper's where they are silent."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from frognano.cli.main import app
from frognano.config.base import ConfigError
from frognano.config.recipe import Recipe, dump_recipe, find_recipe, load_recipe, parse_recipe, recipe_names
from frognano.config.train import method_departures


def test_what_a_recipe_leaves_out_is_the_papers() -> None:
    recipe = Recipe()
    train, evaluation = recipe.train, recipe.evaluation
    assert (recipe.coevolve.iterations, recipe.coevolve.tasks_per_iteration, train.updates) == (5, 300, 200)
    assert (train.groups, train.group_size, train.optimizer.lr) == (32, 8, 1e-6)
    assert (evaluation.episodes, evaluation.temperature, evaluation.top_p, evaluation.top_k) == (3, 0.6, 0.95, 20)
    assert (recipe.leaf.max_turns, recipe.leaf.max_context_tokens) == (75, 65_536)


def test_the_papers_last_iteration_has_other_budgets_and_another_band() -> None:
    recipe = Recipe()
    fourth, fifth = recipe.at(4), recipe.at(5)
    assert (fourth.leaf.max_turns, fifth.leaf.max_turns) == (75, 150)
    assert fourth.taskpilot.band.holds(0.75)
    assert fifth.taskpilot.band.holds(0.5)
    assert not fifth.taskpilot.band.holds(0.75)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"trian": {}}, "unknown setting 'trian': did you mean 'train'?"),
        ({"train": {"optimizer": {"lrr": 1}}}, "unknown setting 'train.optimizer.lrr': did you mean 'lr'?"),
        ({"leaf": {"temperature": "0,6"}}, "leaf.temperature"),
        ({"by_iteration": {2: {"train": {"updatez": 1}}}}, "did you mean 'updates'?"),
        (
            {"by_iteration": {2: {"model": {}}}},
            "unknown setting 'by_iteration.2.model': known keys: leaf, taskpilot, train",
        ),
    ],
)
def test_a_recipe_that_cannot_be_meant_is_refused_by_name(values: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_recipe(values)
    assert words in str(refused.value)


def test_a_plan_over_its_budget_can_be_read_and_not_run() -> None:
    recipe = parse_recipe({"coevolve": {"budget_episodes": 10}})
    with pytest.raises(ConfigError, match=r"more than coevolve.budget_episodes \(10\)"):
        recipe.check_budget()
    refused = CliRunner().invoke(app, ["coevolve", "--set", "coevolve.budget_episodes=10", "--dry-run"])
    assert refused.exit_code == 2


def test_settings_given_with_the_command_win() -> None:
    recipe = parse_recipe({"train": {"updates": 5}}, ["train.updates=3", "train.optimizer.lr=1e-3", "about=short"])
    assert (recipe.train.updates, recipe.train.optimizer.lr, recipe.about) == (3, 1e-3, "short")


@pytest.mark.parametrize("override", ["train.updates", "=3", "train.updates=[", "train.updatez=3"])
def test_a_setting_that_cannot_be_read_is_refused(override: str) -> None:
    with pytest.raises(ConfigError):
        parse_recipe({}, [override])


def test_a_repeated_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("train:\n  updates: 3\n  updates: 4\n")
    with pytest.raises(ConfigError, match="'updates' stands twice"):
        load_recipe(path)


def test_the_resolved_recipe_reads_back_equal(tmp_path: Path) -> None:
    recipe = load_recipe("frognano-4b")
    path = tmp_path / "resolved.yaml"
    path.write_text(dump_recipe(recipe))
    assert load_recipe(path) == recipe


def test_bundled_recipes_are_found_by_name_and_others_are_named() -> None:
    assert {"tadpole", "frognano-4b"} <= set(recipe_names())
    with pytest.raises(ConfigError, match=r"bundled are .*tadpole"):
        find_recipe("frog")
    with pytest.raises(ConfigError, match="no recipe file"):
        find_recipe("frog.yaml")


def test_the_small_recipe_changes_nothing_of_the_method() -> None:
    recipe = load_recipe("tadpole")
    for iteration in range(1, recipe.coevolve.iterations + 1):
        assert method_departures(recipe.at(iteration).train) == []
    assert recipe.coevolve.iterations >= 2
    assert 0 < sum(recipe.plan.values()) <= recipe.coevolve.budget_episodes


def test_permuted_rewards_are_an_ablation_of_the_loop() -> None:
    recipe = parse_recipe({"coevolve": {"rewards": "permuted"}})
    assert recipe.at(1).train.advantage.permute_rewards
    assert not Recipe().at(1).train.advantage.permute_rewards
