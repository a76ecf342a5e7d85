"""The ``frognano`` command: a table of commands, loaded one at a time, and the one boundary for errors.

``frognano --help`` reads only this file and typer, so it answers at once. A command's module is imported when the
command is named, and what is heavy (torch, the engines) only when it runs. Expected failures end in one line that
names the thing and the fix; anything else is a defect of ours and keeps its traceback.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS: dict[str, tuple[str, str]] = {
    "solve": ("frognano.cli.solve", "Work on an issue in your repository and show the patch."),
    "tasks": ("frognano.cli.tasks", "Make, list, show and check tasks."),
    "calibrate": ("frognano.cli.calibrate", "How often a policy solves each task of a pool."),
    "train": ("frognano.cli.train", "One climb of reinforcement learning on a pool."),
    "coevolve": ("frognano.cli.coevolve", "The whole loop: make tasks, calibrate, train, again."),
    "eval": ("frognano.cli.evaluate", "Solve rate of a policy on a pool, with its interval."),
    "report": ("frognano.cli.report", "What a run has come to: ladder, tasks, episodes."),
    "settings": ("frognano.cli.settings", "Every setting of a recipe with its default and meaning."),
    "tadpole": ("frognano.cli.tadpole", "The bundled micro-policy and how it is made."),
    "model-server": ("frognano.cli.model_server", "A scripted model behind a chat endpoint, to try with."),
    "doctor": ("frognano.cli.doctor", "What this machine can isolate, what each lack costs."),
}
"""Name → the module that holds it as ``app``, and its line in the list of commands."""


class Commands(TyperGroup):
    """The commands of the table, each imported when it is named."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        from frognano.config.environment import quiet_libraries

        quiet_libraries()
        return typer.main.get_command(importlib.import_module(COMMANDS[cmd_name][0]).app)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in COMMANDS or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        import difflib

        near = difflib.get_close_matches(args[0], COMMANDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(COMMANDS)}"
        ctx.fail(f"there is no command {args[0]!r}: {hint}")

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            from frognano.cli.errors import interrupted

            raise typer.Exit(interrupted(sys.argv)) from None
        except Exception as error:
            from frognano.cli.errors import explain

            code = explain(error)
            if code is None:
                raise
            raise typer.Exit(code) from None


def new_app(help: str) -> typer.Typer:
    """A command or group with the house's manners: plain help, real tracebacks for real defects."""
    return typer.Typer(
        help=help, rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False, no_args_is_help=False
    )


app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _frognano() -> None:
    """Train small coding agents on tasks at the edge of what they can solve, and use them on your issues."""


def main() -> None:
    """Entry point of the ``frognano`` script."""
    app(prog_name="frognano")
