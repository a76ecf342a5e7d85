"""``frognano tadpole``: the embedded micro-policy and how it is made."""

from __future__ import annotations

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
    scripts: Annotated[int, typer.Option(help="Scripts in one shard; fewer make a toy for trying out.")] = 400,
    shards: Annotated[int, typer.Option(help="Shards in all.")] = 36,
    tiny: Annotated[bool, typer.Option("--tiny", help="A few steps, to see that it works; it learns nothing.")] = False,
) -> None:
    """Make Tadpole again from its seed, on two CPU threads; about 35 minutes on two quiet cores."""
    from frognano.tadpole.pretrain import pretrain as run
    from frognano.tadpole.trainer import PretrainPlan

    plan = PretrainPlan(scripts=scripts, shards=shards)
    if tiny:
        plan = PretrainPlan(vocabulary=640, shards=1, ranks=1, scripts=6, vocabulary_scripts=20)
    typer.echo(f"checkpoint: {run(folder, plan, typer.echo)}")
