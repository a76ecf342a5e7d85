"""``frognano model-server``: a scripted model behind a real chat endpoint on the loopback, faults on demand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
import yaml

from frognano.cli.errors import InputError
from frognano.cli.main import new_app

app = new_app("")


@app.command()
def model_server(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="YAML: a list of turns, said in order.")],
    fault: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="The n-th request suffers the n-th fault; repeatable.")
    ] = None,
) -> None:
    """A scripted model behind a real chat endpoint, for trying things out; Ctrl-C ends it.

    A turn is a mapping with 'content', 'reasoning' and 'calls', a list of [tool, {argument: value}].
    """
    from frognano.policy.scripted_server import Fault

    known = [name for name in get_args(Fault) if name]
    unknown = [name for name in fault or () if name not in known]
    if unknown:
        raise InputError(f"--fault {unknown[0]}: known are {', '.join(known)}")
    asyncio.run(_serve(read_script(script), fault or []))


def read_script(path: Path) -> list[Any]:
    """The turns in a script file. Raises InputError."""
    from pydantic import ValidationError

    from frognano.policy.scripted import Turn

    try:
        rows = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not YAML: {error}") from None
    if not isinstance(rows, list):
        raise InputError(f"{path}: must be a list of turns, each with 'content' or 'calls'")
    try:
        return [Turn.model_validate(row) for row in rows]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {where or 'a turn'}: {first['msg']}") from None


async def _serve(turns: list[Any], faults: list[Any]) -> None:
    from frognano.policy.scripted_server import ScriptedServer

    async with ScriptedServer(turns, faults) as server:
        typer.echo(f"frognano solve --base-url {server.base_url} --model scripted --issue …")
        await asyncio.Event().wait()
