"""``frognano coevolve``: the whole loop, live, resumable with the same command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frognano.cli.main import new_app
from frognano.cli.options import Checkpoint, Overrides, RecipeName, Repository, RunFolder, recipe_from
from frognano.config.recipe import Recipe
from frognano.config.train import method_departures

app = new_app("")


@app.command()
def coevolve(
    *,
    recipe: RecipeName = "tadpole",
    run: RunFolder = Path("runs/coevolve"),
    repo: Repository = "",
    checkpoint: Checkpoint = "",
    pool: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Take tasks from here, or make them here; default: in the run.")
    ] = None,
    set_: Overrides = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the recipe, show the plan, run nothing.")] = False,
) -> None:
    """The whole loop: make tasks, calibrate, train, again.

    Ends with the ladder of held-out solve rates. Ctrl-C stops within seconds; the same command goes on.
    """
    chosen = recipe_from(recipe, set_, checkpoint=checkpoint, repo=repo)
    chosen.check_budget()
    if dry_run:
        typer.echo(plan_text(chosen))
        return
    from frognano.coevolve.loop import run as run_loop
    from frognano.coevolve.progress import watching

    with watching(chosen) as watch:
        outcome = run_loop(chosen, run, watch=watch, pool=pool)
    typer.echo(outcome.text())


def plan_text(recipe: Recipe) -> str:
    """What a recipe would do: where from, with what, how many episodes at most in each phase."""
    total = sum(recipe.plan.values())
    lines = [f"repository  {recipe.source.repository}", f"checkpoint  {recipe.model.checkpoint}", "episodes at most:"]
    lines += [f"{count:10d}  {phase}" for phase, count in recipe.plan.items()]
    lines.append(f"{total:10d}  in all")
    departures = sorted({key for number in _iterations(recipe) for key in method_departures(recipe.at(number).train)})
    lines.append(f"departs from the paper's method in: {', '.join(departures) or 'nothing'}")
    return "\n".join(lines)


def _iterations(recipe: Recipe) -> range:
    return range(1, recipe.coevolve.iterations + 1)
