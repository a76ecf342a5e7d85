"""What the tests of the loop share: a small repository, a tiny checkpoint, and the coin policy of ``perf/coin.py``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from frognano.config.recipe import Recipe

sys.path.insert(0, str(Path(__file__).parents[2] / "perf"))


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from coin import make_repository

    return make_repository(tmp_path_factory.mktemp("source") / "pad")


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from coin import make_checkpoint

    return make_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture
def recipe(repository: Path, checkpoint: Path) -> Any:
    """Make a short recipe; keyword arguments are merged in as sections."""
    from coin import coin_recipe

    def make(**changes: Any) -> Recipe:
        return coin_recipe(repository, checkpoint, **changes)

    return make
