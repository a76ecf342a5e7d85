"""``frognano calibrate``: p̂ of a pool's train tasks under a policy, refined towards the band and admitted."""

from __future__ import annotations

from pathlib import Path

import typer

from frognano.cli.main import new_app
from frognano.cli.options import Checkpoint, Overrides, PoolFolder, RecipeName, RunFolder, pool_folder, recipe_from

app = new_app("")


@app.command()
def calibrate(
    *,
    pool: PoolFolder,
    run: RunFolder = Path("runs/calibrate"),
    recipe: RecipeName = "tadpole",
    checkpoint: Checkpoint = "",
    set_: Overrides = None,
) -> None:
    """Measure how often a policy solves each train task of a pool, refine statements, admit those in the band."""
    place, chosen = pool_folder(pool), recipe_from(recipe, set_, checkpoint=checkpoint)
    from frognano.coevolve.pieces import calibrate as run_calibration
    from frognano.coevolve.progress import watching

    with watching(chosen, only=["iteration 1: calibration"]) as watch:
        outcome = run_calibration(chosen, run, place, watch=watch)
    typer.echo(outcome.text())
