"""``frognano tadpole``: the embedded micro-policy and how it is made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from frognano.cli.main import new_app

app = new_app("Tadpole, the embedded micro-policy.")


@app.callback()
def tadpole() -> None:
    """Tadpole, the embedded micro-policy."""


@app.command()
def pretrain(
    folder: Annotated[Path, typer.Argument(help="Work folder; one that is there already goes on.")],
    scripts: Annotated[
        int | None,
        typer.Option(help="Scripts in one shard; fewer make a toy for trying out.", show_default="the plan's"),
    ] = None,
    shards: Annotated[int | None, typer.Option(help="Shards in all.", show_default="the plan's")] = None,
    tiny: Annotated[bool, typer.Option("--tiny", help="A few steps, to see that it works; it learns nothing.")] = False,
) -> None:
    """Make Tadpole again from its seed, on two CPU threads; about 25 minutes on two quiet cores."""
    from frognano.tadpole.pretrain import pretrain as run
    from frognano.tadpole.trainer import PretrainPlan

    plan = PretrainPlan()
    plan = replace(plan, scripts=scripts or plan.scripts, shards=shards or plan.shards)
    if tiny:
        plan = PretrainPlan(vocabulary=640, shards=1, ranks=1, scripts=6, vocabulary_scripts=20)
    typer.echo(f"checkpoint: {run(folder, plan, typer.echo)}")
