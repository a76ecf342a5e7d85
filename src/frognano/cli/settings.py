"""``frognano settings``: every key of a recipe, its default, and the docstring that is its meaning."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator
from typing import Annotated

import typer

from frognano.cli.errors import InputError
from frognano.cli.main import new_app
from frognano.config.base import Settings
from frognano.config.recipe import Recipe, load_recipe

app = new_app("")


@app.command()
def settings(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY]…", help="Sections or keys; all by default.")
    ] = None,
    recipe: Annotated[str, typer.Option(help="Show the values of this recipe instead of the defaults.")] = "",
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a setting.")] = None,
) -> None:
    """Every setting of a recipe with its value and meaning: --set KEY=VALUE takes these keys."""
    values = load_recipe(recipe, set_ or ()) if recipe else Recipe.parse({})
    rows = list(rows_of(values))
    for wanted in keys or [""]:
        found = [row for row in rows if not wanted or row[0] == wanted or row[0].startswith(f"{wanted}.")]
        if not found:
            near = difflib.get_close_matches(wanted, _names(rows), n=1, cutoff=0.4)
            raise InputError(f"there is no setting {wanted!r}" + (f": did you mean {near[0]!r}?" if near else ""))
        for key, value, meaning in found:
            typer.echo(f"{key} = {value!r}")
            typer.echo(textwrap.indent(textwrap.fill(meaning, 100), "    "))


def rows_of(values: Settings, prefix: str = "") -> Iterator[tuple[str, object, str]]:
    """Key, value and meaning of every setting, sections opened."""
    for name, field in type(values).model_fields.items():
        value = getattr(values, name)
        if isinstance(value, Settings):
            yield from rows_of(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value, " ".join((field.description or "").split())


def _names(rows: list[tuple[str, object, str]]) -> list[str]:
    names = {key for key, _, _ in rows}
    return sorted(names | {key.rsplit(".", 1)[0] for key in names if "." in key})
