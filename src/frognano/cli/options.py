"""What several commands ask for in the same words: the recipe, overrides of it, the run folder, the pool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from frognano.cli.errors import InputError
from frognano.config.recipe import Recipe, load_recipe

RecipeName = Annotated[str, typer.Option("--recipe", metavar="NAME|FILE", help="A bundled recipe or a recipe file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a setting (see 'frognano settings'); repeatable."),
]
RunFolder = Annotated[
    Path, typer.Option("--run", metavar="DIR", help="Folder of the run; the same command goes on with it.")
]
PoolFolder = Annotated[
    Path, typer.Option("--pool", metavar="DIR", help="Folder of tasks made by 'tasks make', or of a run.")
]
Checkpoint = Annotated[
    str, typer.Option("--checkpoint", metavar="DIR", help="Checkpoint folder, or 'tadpole'; the recipe's by default.")
]
Repository = Annotated[
    str,
    typer.Option("--repo", metavar="DIR", help="Repository to make tasks from, or 'pond'; the recipe's by default."),
]


def recipe_from(name: str, overrides: list[str] | None, *, checkpoint: str = "", repo: str = "") -> Recipe:
    """The recipe with what the options change. Raises ConfigError."""
    said = {"model.checkpoint": checkpoint, "source.repository": repo}
    shorthand = [f"{key}={json.dumps(value)}" for key, value in said.items() if value]
    return load_recipe(name, [*shorthand, *(overrides or ())])


def pool_folder(given: Path) -> Path:
    """The folder that holds ``tasks`` and ``snapshots``: the given one, or the pool of the given run."""
    for place in (given, given / "pool"):
        if (place / "tasks").is_dir() and (place / "snapshots").is_dir():
            return place
    raise InputError(f"{given}: no pool of tasks is there. Make one:  frognano tasks make --repo DIR --pool {given}")
