"""The recipe's rows as settings."""

import pytest

from frognano.config.base import ConfigError
from frognano.config.train import TrainSettings, method_departures


def test_defaults_are_the_papers():
    paper = TrainSettings()
    assert (paper.updates, paper.groups, paper.group_size) == (200, 32, 8)
    assert (paper.loss.delta_high, paper.loss.delta_low, paper.loss.ratio_cap) == (0.2, 0.2, None)
    assert (paper.advantage.std, paper.advantage.eps) == ("population", 1e-6)
    assert (paper.reward.truncated, paper.reward.length_from_iteration, paper.reward.length_alpha) == (0.5, 3, None)
    optimizer = paper.optimizer
    assert (optimizer.lr, optimizer.beta1, optimizer.beta2) == (1e-6, 0.9, 0.98)
    assert (optimizer.weight_decay, optimizer.clip, optimizer.decoupled) == (0.1, 1.0, True)
    assert (paper.refill, paper.max_skipped, paper.validation_cadence, paper.patience) == (1.0, 3, 20, 5)


def test_a_small_recipe_may_change_sizes_but_not_the_method():
    small = TrainSettings.parse({"groups": 4, "optimizer": {"lr": 1e-3}, "loss": {"chunk_tokens": 512}})
    assert method_departures(small) == []
    changed = TrainSettings.parse({"loss": {"delta_high": 0.3}, "advantage": {"std": "sample"}})
    assert method_departures(changed) == ["advantage.std", "loss.delta_high"]


@pytest.mark.parametrize("values", [{"max_lag": 2}, {"group_size": 1}, {"groups": 0}, {"loss": {"delta_low": 0}}])
def test_impossible_values_are_refused(values):
    with pytest.raises(ConfigError):
        TrainSettings.parse(values)


def test_a_typo_names_the_nearest_setting():
    with pytest.raises(ConfigError, match="did you mean 'weight_decay'"):
        TrainSettings.parse({"optimizer": {"weight_decy": 0.1}})


def test_every_setting_has_its_help():
    def missing(model):
        for name, field in model.model_fields.items():
            if not field.description and name != "seed":
                yield name
            if hasattr(field.annotation, "model_fields"):
                yield from missing(field.annotation)

    assert list(missing(TrainSettings)) == []
