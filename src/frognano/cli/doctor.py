"""``frognano doctor``: what this machine can isolate, and what each lack costs."""

from __future__ import annotations

import asyncio
import importlib.util
import platform
import shutil
from pathlib import Path

import typer

from frognano.cli.main import new_app

app = new_app("")
_COSTS = {
    "NONE": "everything a model runs can reach all that you can",
    "rlimit": "limits hold for each process, not for the sandbox as a whole",
    "copy": "opening a sandbox takes as long as copying the repository",
    "not filtered": "more of the kernel is in reach from inside",
}


@app.command()
def doctor() -> None:
    """What this machine can isolate, and what each lack costs; exit code 1 when it cannot isolate at all."""
    typer.echo(f"python       {platform.python_version()} on {platform.system()} {platform.release()}")
    typer.echo(f"git          {shutil.which('git') or 'missing: solve works on folders without git only'}")
    for extra, package in (("train", "torch"), ("train", "transformers"), ("report", "matplotlib")):
        there = importlib.util.find_spec(package) is not None
        typer.echo(f"{package:12} {'there' if there else f'missing: pip install frognano[{extra}]'}")
    for what, how in asyncio.run(_enforcement()).items():
        cost = next((f" — {text}" for word, text in _COSTS.items() if how.startswith(word)), "")
        typer.echo(f"{what:12} {how}{cost}")


async def _enforcement() -> dict[str, str]:
    from frognano.sandbox import runner
    from frognano.sandbox.local import LocalBackend

    async with LocalBackend({"runner": Path(runner.__file__)}, warm=0) as backend:
        return backend.enforcement()
