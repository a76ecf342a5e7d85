"""What ``solve`` shows and leaves behind: the episode turn by turn, the patch, and what to do with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from frognano.cli.errors import RunFailed
from frognano.cli.workspace import Workspace, apply_to
from frognano.leaf.transcript import plain, turn_text
from frognano.records import NO_VERDICT, Step, Trajectory
from frognano.tasks.patch import Changes, PatchError, apply_patch

SHOWN_LINES = 200
_BROKE_OFF = {
    "llm_query_error": "the model could not be asked: check --base-url, --model, the key and the server",
    "tool_error": "the sandbox was lost",
    "infrastructure_error": "the sandbox was lost",
}
_RUNS_BY_ITSELF = ("conftest.py", "setup.py", "Makefile", ".envrc", ".pre-commit-config.yaml", "sitecustomize.py")
_RUNS_BELOW = (".github/", ".gitlab-ci", ".circleci/", ".vscode/", ".husky/", ".devcontainer/")


class Outcome:
    """One call of ``solve`` as the user sees it."""

    def __init__(self, folder: Path, workspace: Workspace, patch: Path | None) -> None:
        self.folder, self.workspace = folder, workspace
        self.log = folder / "steps.jsonl"
        self.patches = [folder / "patch.diff", *([patch] if patch is not None else [])]

    def announce(self, policy: str, isolation: bool) -> None:
        """What will happen, before anything does."""
        here = self.workspace
        typer.echo(f"repository  {plain(str(here.folder))}, {len(here.files)} files")
        if here.changed or here.untracked:
            typer.echo(
                f"            not as committed: {here.changed} changed, {here.untracked} untracked; "
                "the model sees them, and the patch is against what stands there now"
            )
        for notice in here.notices:
            typer.echo(f"            {plain(notice)}")
        typer.echo(f"model       {plain(policy)}")
        if not isolation:
            typer.echo("sandbox     NONE: the model's commands run as you, with your files and network in reach")

    def sandbox_is(self, enforcement: Mapping[str, str]) -> None:
        """How the sandbox is enforced on this machine."""
        typer.echo(f"sandbox     {'; '.join(f'{what}: {how}' for what, how in enforcement.items())}")

    def step(self, step: Step) -> None:
        """One turn, as soon as it is over."""
        typer.echo(f"\n{turn_text(step)}")

    def stopped(self) -> None:
        """After Ctrl-C."""
        typer.echo(f"\nstopped; the repository was not touched. The turns so far: {self.log}")

    def finish(self, trajectory: Trajectory, apply: bool) -> int:
        """Write and show the patch, apply it if asked; the exit code. Raises RunFailed when the episode broke off."""
        typer.echo(f"\nended: {trajectory.exit_reason}")
        typer.echo(f"the turns: {self.log}")
        patch = trajectory.patch.encode("utf-8", "surrogateescape")
        broke_off = trajectory.exit_reason in NO_VERDICT
        if patch.strip():
            self._show(patch, self._changes(patch))
            self._deliver(patch, apply and not broke_off)
        else:
            typer.echo("there is no patch: the model changed nothing. The repository was not touched.")
        if broke_off:
            what = _BROKE_OFF.get(trajectory.exit_reason, "the episode broke off")
            kept = " What it had changed by then is in the patch, which was not applied." if patch.strip() else ""
            raise RunFailed(f"{what} ({trajectory.error or trajectory.exit_reason}).{kept}")
        return 0 if patch.strip() else 1

    def _deliver(self, patch: bytes, apply: bool) -> None:
        for place in self.patches:
            place.write_bytes(patch)
            typer.echo(f"patch:   {place.absolute()}")
        folder = plain(str(self.workspace.folder))
        if apply:
            typer.echo(f"applied to {folder}: {len(apply_to(self.workspace, patch))} files")
        else:
            typer.echo(
                f"the repository was not touched; to apply:\n    git -C {folder} apply {self.patches[-1].absolute()}"
            )
        typer.echo("A model wrote this patch. A person must review it before it is used.")

    def _changes(self, patch: bytes) -> Changes:
        try:
            return apply_patch(self.workspace.files.get, patch)
        except PatchError as error:
            raise PatchError(f"the model left a change that cannot be kept as a patch: {error}") from None

    def _show(self, patch: bytes, changes: Changes) -> None:
        lines = plain(patch.decode("utf-8", "surrogateescape")).rstrip("\n").split("\n")
        typer.echo("\n" + "\n".join(lines[:SHOWN_LINES]))
        if len(lines) > SHOWN_LINES:
            typer.echo(f"[… {len(lines) - SHOWN_LINES} more lines in the patch file]")
        typer.echo("")
        for name, entry in sorted(changes.items()):
            what = "removed" if entry is None else "changed" if name in self.workspace.files else "new"
            typer.echo(f"{what:8} {plain(name)}{'  (can run by itself: look closely)' if runs_by_itself(name) else ''}")


def runs_by_itself(name: str) -> bool:
    """True for files that tools run without being asked: test set-up, builds, hooks, continuous integration."""
    return name.rsplit("/", 1)[-1] in _RUNS_BY_ITSELF or name.startswith(_RUNS_BELOW)
