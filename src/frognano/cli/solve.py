"""``frognano solve``: one episode on the user's own repository and issue, live, ending in a patch.

The model works on a copy inside a sandbox. The repository is read and, unless ``--apply`` is given, never written.
Whatever the model wrote is shown as text and never run outside the sandbox; a person must review the patch.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from frognano.cli.errors import InputError
from frognano.cli.main import new_app
from frognano.cli.models import ModelChoice
from frognano.config.endpoint import EndpointSettings
from frognano.config.leaf import LeafSettings
from frognano.sandbox.contract import Limits

app = new_app("")
_LIMITS = Limits()
_DEFAULTS = LeafSettings(max_turns=150, max_context_tokens=131_072, max_time_s=10_800, temperature=0.6, top_p=0.95)


def _setting(name: str) -> Any:
    """An option whose help is the setting's own docstring."""
    return typer.Option(help=LeafSettings.model_fields[name].description)


@dataclass(frozen=True)
class Job:
    """Everything of one call of ``solve``."""

    repo: Path
    issue: str
    model: ModelChoice
    settings: LeafSettings
    limits: Limits
    packages: tuple[Path, ...] = ()
    isolation: bool = True
    apply: bool = False
    patch: Path | None = None


@app.command()
def solve(
    *,
    repo: Annotated[Path, typer.Option(help="The repository, or a folder of one.")] = Path("."),
    issue: Annotated[str, typer.Option(metavar="FILE|TEXT", help="The issue: a file, its text, or - for stdin.")],
    base_url: Annotated[str, typer.Option(help="Endpoint of an OpenAI-compatible chat server, http://…/v1.")] = "",
    model: Annotated[str, typer.Option(help="Name of the model at the endpoint.")] = "",
    api_key_env: Annotated[str, typer.Option(metavar="NAME", help="Environment variable with the key.")] = "",
    retries: Annotated[
        int, typer.Option(min=0, help=EndpointSettings.model_fields["retries"].description)
    ] = EndpointSettings().retries,
    checkpoint: Annotated[str, typer.Option(metavar="DIR", help="Run this checkpoint here; or 'tadpole'.")] = "",
    apply: Annotated[bool, typer.Option("--apply", help="Apply the patch to the repository at the end.")] = False,
    patch: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the patch to this file too.")] = None,
    no_isolation: Annotated[
        bool, typer.Option("--no-isolation", help="Run the model's commands WITHOUT protection, as you, on a copy.")
    ] = False,
    packages: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Packages the repository needs, importable inside, read-only; repeatable."),
    ] = None,
    profile: Annotated[str, _setting("profile")] = _DEFAULTS.profile,
    max_turns: Annotated[int, _setting("max_turns")] = _DEFAULTS.max_turns,
    max_context_tokens: Annotated[int, _setting("max_context_tokens")] = _DEFAULTS.max_context_tokens,
    max_tokens_per_turn: Annotated[int, _setting("max_tokens_per_turn")] = _DEFAULTS.max_tokens_per_turn,
    max_time_s: Annotated[float | None, _setting("max_time_s")] = _DEFAULTS.max_time_s,
    bash_timeout_s: Annotated[float, _setting("bash_timeout_s")] = _DEFAULTS.bash_timeout_s,
    temperature: Annotated[float, _setting("temperature")] = _DEFAULTS.temperature,
    top_p: Annotated[float, _setting("top_p")] = _DEFAULTS.top_p,
    top_k: Annotated[int, _setting("top_k")] = _DEFAULTS.top_k,
    memory_mb: Annotated[int, typer.Option(min=64, help="Memory of the sandbox, in MiB.")] = _LIMITS.memory_mb,
    pids: Annotated[int, typer.Option(min=8, help="Processes of the sandbox.")] = _LIMITS.pids,
    disk_mb: Annotated[int, typer.Option(min=8, help="What may be written inside, in MiB.")] = _LIMITS.disk_mb,
) -> None:
    """Work on an issue in your repository and show the patch; nothing is written to it without --apply.

    Exit code 0 when there is a patch, 1 when there is none, 2 for bad input, 130 after Ctrl-C.
    """
    settings = LeafSettings.parse(
        {
            "profile": profile,
            "max_turns": max_turns,
            "max_context_tokens": max_context_tokens,
            "max_tokens_per_turn": max_tokens_per_turn,
            "max_time_s": max_time_s,
            "bash_timeout_s": bash_timeout_s,
            "temperature": temperature,
            "top_p": top_p,
            "top_k": top_k,
        }
    )
    job = Job(
        repo=repo,
        issue=read_issue(issue),
        model=ModelChoice(
            base_url=base_url, model=model, checkpoint=checkpoint, api_key_env=api_key_env, retries=retries
        ),
        settings=settings,
        limits=Limits(memory_mb=memory_mb, pids=pids, disk_mb=disk_mb),
        packages=tuple(packages or ()),
        isolation=not no_isolation,
        apply=apply,
        patch=patch,
    )
    raise typer.Exit(run(job))


def read_issue(given: str) -> str:
    """The text of the issue. Raises InputError when there is none."""
    if given == "-":
        text, where = sys.stdin.read(), "standard input"
    elif _is_file(given):
        text, where = Path(given).read_text(encoding="utf-8", errors="replace"), given
    elif given.strip() and " " not in given.strip() and "\n" not in given.strip():
        raise InputError(f"--issue {given}: there is no such file; an issue's text has more than one word")
    else:
        text, where = given, "--issue"
    if not text.strip():
        raise InputError(f"{where}: the issue is empty; give a file or a text that says what is wrong")
    return text


def _is_file(given: str) -> bool:
    try:
        return Path(given).is_file()
    except (OSError, ValueError):  # a text can be too long for a path, or hold what no path can
        return False


def run(job: Job) -> int:
    """Run the episode; the exit code."""
    from frognano.cli.models import open_policy
    from frognano.cli.outcome import Outcome
    from frognano.cli.workspace import read_workspace

    workspace = read_workspace(job.repo)
    for folder in job.packages:
        if not folder.is_dir():
            raise InputError(f"--packages {folder}: there is no such folder")
    policy = open_policy(job.model)
    outcome = Outcome(_place(workspace.folder), workspace, job.patch)
    outcome.announce(policy.name, job.isolation)
    try:
        trajectory = asyncio.run(_episode(job, outcome, policy))
    except KeyboardInterrupt:
        outcome.stopped()
        raise
    return outcome.finish(trajectory, job.apply)


def _place(repo: Path) -> Path:
    """A new folder for what this call leaves behind, outside the repository."""
    from frognano.config.environment import state_folder

    parent = state_folder() / "solve"
    if parent.resolve().is_relative_to(repo):
        parent = Path(tempfile.gettempdir()) / f"frognano-{os.getuid()}" / "solve"
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Path(tempfile.mkdtemp(prefix=f"{repo.name}-{time.strftime('%Y%m%d-%H%M%S')}-", dir=parent))


async def _episode(job: Job, outcome: Any, policy: Any) -> Any:
    """Snapshot, sandbox, episode."""
    from frognano.leaf.episode import EpisodeSpec, run_episode
    from frognano.leaf.steplog import StepLog
    from frognano.sandbox import runner
    from frognano.sandbox.contract import SandboxSpec
    from frognano.sandbox.local import LocalBackend
    from frognano.tasks.snapshot import SnapshotStore

    backend = LocalBackend({"runner": Path(runner.__file__)}, warm=0, no_isolation=not job.isolation)
    with tempfile.TemporaryDirectory(prefix="frognano-solve-") as scratch:
        store = SnapshotStore(Path(scratch))
        snapshot = await asyncio.to_thread(lambda: store.path(store.add_files(outcome.workspace.files)))
        spec = SandboxSpec(snapshot=snapshot, env=_environment(job), limits=job.limits, extra_paths=job.packages)
        async with policy, backend:
            outcome.sandbox_is(backend.enforcement())
            sandbox = await backend.open(spec)
            try:
                episode = EpisodeSpec(
                    id=outcome.folder.name,
                    task_id=outcome.workspace.folder.name,
                    statement=job.issue,
                    workdir=sandbox.workdir,
                    settings=job.settings,
                )
                return await run_episode(episode, policy, sandbox, StepLog(outcome.log, outcome.step))
            finally:
                await sandbox.close()


def _environment(job: Job) -> dict[str, str]:
    """The repository's own folders on the path of its Python; nothing of the host's environment."""
    workdir = SANDBOX_WORKDIR
    folders = [workdir, f"{workdir}/src"] if (job.repo / "src").is_dir() else [workdir]
    return {"PYTHONPATH": ":".join(folders)}


SANDBOX_WORKDIR = "/app"
