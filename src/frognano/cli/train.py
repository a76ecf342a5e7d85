"""``frognano train``: one climb of reinforcement learning on the train tasks of a pool."""

from __future__ import annotations

from pathlib import Path

import typer

from frognano.cli.main import new_app
from frognano.cli.options import Checkpoint, Overrides, PoolFolder, RecipeName, RunFolder, pool_folder, recipe_from

app = new_app("")


@app.command()
def train(
    *,
    pool: PoolFolder,
    run: RunFolder = Path("runs/train"),
    recipe: RecipeName = "tadpole",
    checkpoint: Checkpoint = "",
    set_: Overrides = None,
) -> None:
    """One climb of reinforcement learning on every train task of a pool; its validation tasks choose the checkpoint."""
    place, chosen = pool_folder(pool), recipe_from(recipe, set_, checkpoint=checkpoint)
    from frognano.coevolve.pieces import train as run_climb
    from frognano.coevolve.progress import watching

    with watching(chosen, only=["iteration 1: climb", "iteration 1: validation"]) as watch:
        outcome, best = run_climb(chosen, run, place, watch=watch)
    score = "not validated" if outcome.score is None else f"validation {100 * outcome.score:.1f} %"
    typer.echo(f"ended: {outcome.reason}; {outcome.updates} updates on {outcome.tasks} tasks; {score}")
    typer.echo(f"best checkpoint: {best}")
