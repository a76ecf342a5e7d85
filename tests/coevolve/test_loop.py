"""The whole loop on a small repository, with real sandboxes, engine, grader and learner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from frognano.config.recipe import Recipe


def test_x(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    pass
