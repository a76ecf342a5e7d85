"""Every setting explains itself, and a wrong key is told the right one."""

from __future__ import annotations

from typer.testing import CliRunner

from frognano.cli.main import app
from frognano.cli.settings import rows_of
from frognano.config.recipe import Recipe


def frognano(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_every_setting_has_a_docstring() -> None:
    silent = [key for key, _, meaning in rows_of(Recipe.parse({})) if not meaning.endswith(".")]
    assert not silent


def test_one_key_is_shown_with_its_default_and_meaning() -> None:
    code, out, _ = frognano("settings", "train.optimizer.lr")
    assert code == 0
    assert out == "train.optimizer.lr = 1e-06\n    Learning rate, constant.\n"


def test_a_section_shows_its_keys() -> None:
    code, out, _ = frognano("settings", "train.loss")
    assert code == 0
    assert "train.loss.delta_high = 0.2" in out
    assert "train.optimizer" not in out


def test_an_unknown_key_is_told_the_nearest() -> None:
    code, _, err = frognano("settings", "train.optimizer.learning")
    assert code == 2
    assert "did you mean 'train.optimizer" in err
