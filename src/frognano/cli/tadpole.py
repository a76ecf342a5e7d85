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
    cycles: Annotated[list[int] | None, typer.Option(help="Shards of each learning-rate cycle.")] = None,
    tiny: Annotated[bool, typer.Option("--tiny", help="A few steps, to see that it works; it learns nothing.")] = False,
) -> None:
    """Make Tadpole again from its seed, on one CPU thread; about 45 minutes on a quiet core."""
    from frognano.tadpole.trainer import PretrainPlan
    from frognano.tadpole.pretrain import pretrain as run

    plan = PretrainPlan(scripts=scripts, cycles=tuple(cycles)) if cycles else PretrainPlan(scripts=scripts)
    if tiny:
        plan = PretrainPlan(vocabulary=640, cycles=(1,), scripts=6, vocabulary_scripts=20)
    typer.echo(f"checkpoint: {run(folder, plan, typer.echo)}")
