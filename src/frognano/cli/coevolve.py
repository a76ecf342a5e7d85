"""``frognano coevolve``: the whole loop by a recipe, live, resumable with the same command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frognano.cli.main import new_app
from frognano.config.recipe import dump_recipe, load_recipe

app = new_app("")


@app.command()
def coevolve(
    recipe: Annotated[str, typer.Option(help="A bundled recipe by name, or a YAML file.")] = "tadpole",
    run: Annotated[Path, typer.Option(help="Folder of the run; one that is there already goes on.")] = Path(
        "runs/tadpole"
    ),
    pool: Annotated[Path | None, typer.Option(help="Folder of validated tasks to share between runs.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a setting.")] = None,
    dry_run: Annotated[bool, typer.Option(help="Print the resolved recipe and stop.")] = False,
) -> None:
    """Make tasks, measure them, climb, and again: the loop of the paper. `frognano settings` lists all keys."""
    resolved = load_recipe(recipe, set_ or ())
    if dry_run:
        typer.echo(dump_recipe(resolved))
        return
    from frognano.coevolve.loop import run as run_loop
    from frognano.coevolve.progress import watching

    with watching(resolved) as watch:
        outcome = run_loop(resolved, run, watch=watch, pool=pool)
    typer.echo(outcome.text())
