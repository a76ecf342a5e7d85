"""``frognano eval``: the solve rate of one policy on one split of a pool, with its interval."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from frognano.cli.errors import InputError
from frognano.cli.main import new_app
from frognano.cli.models import ModelChoice, open_policy
from frognano.cli.options import Checkpoint, Overrides, PoolFolder, RecipeName, RunFolder, pool_folder, recipe_from
from frognano.config.recipe import FREE, Recipe

app = new_app("")
SPLITS = ("held-out", "validation", "train")


@app.command()
def evaluate(
    *,
    pool: PoolFolder,
    run: RunFolder = Path("runs/eval"),
    split: Annotated[str, typer.Option(metavar="SPLIT", help="held-out, validation or train.")] = "held-out",
    recipe: RecipeName = "tadpole",
    checkpoint: Checkpoint = "",
    base_url: Annotated[str, typer.Option(help="Ask this chat endpoint instead of a checkpoint.")] = "",
    model: Annotated[str, typer.Option(help="Name of the model at the endpoint.")] = "",
    api_key_env: Annotated[str, typer.Option(metavar="NAME", help="Environment variable with the key.")] = "",
    set_: Overrides = None,
) -> None:
    """Solve rate of a policy on a split of a pool, with its interval, by the recipe's evaluation settings."""
    if split not in SPLITS:
        raise InputError(f"--split {split}: known are {', '.join(SPLITS)}")
    place, chosen = pool_folder(pool), recipe_from(recipe, set_, checkpoint=checkpoint)
    from frognano.coevolve import pieces
    from frognano.coevolve.progress import watching

    if not base_url:
        with watching(chosen, only=[f"evaluation: {split}"]) as watch:
            result = pieces.evaluate(chosen, run, place, split, watch=watch)  # type: ignore[arg-type]
        typer.echo(result.text())
        return
    choice = ModelChoice(base_url=base_url, model=model, api_key_env=api_key_env)
    scores = asyncio.run(_with_endpoint(chosen, run, place, split, choice))
    typer.echo(pieces.evaluation(split, scores, run).text())


async def _with_endpoint(recipe: Recipe, run: Path, pool: Path, split: str, choice: ModelChoice) -> Sequence[Any]:
    """The scores of a model behind a chat endpoint; journaled in ``run`` like every evaluation."""
    from frognano.rollout.collect import Collector
    from frognano.rollout.episodes import EpisodeRunner, read_pool
    from frognano.rollout.evaluate import Measure, evaluate
    from frognano.rollout.grading import Gradings
    from frognano.rollout.journal import Journal
    from frognano.sandbox import runner as resident
    from frognano.sandbox.contract import Limits
    from frognano.sandbox.local import LocalBackend
    from frognano.tasks.grader import open_grader
    from frognano.tasks.snapshot import SnapshotStore

    tasks = [placed for placed in read_pool(pool / "tasks").values() if placed.task.split == split]
    if not tasks:
        raise InputError(f"the pool {pool} has no {split} tasks")
    sandbox, policy, store = recipe.sandbox, open_policy(choice), SnapshotStore(pool / "snapshots")
    about = {
        **recipe.model_dump(mode="json"),
        "endpoint": {"base_url": without_user(choice.base_url), "model": choice.model},
    }
    backend = LocalBackend({"runner": Path(resident.__file__)}, warm=sandbox.warm, no_isolation=not sandbox.isolation)
    with Journal(run, about, FREE) as journal:
        async with backend, policy, open_grader(backend, store) as grader:
            runner = EpisodeRunner(
                backend=backend,
                store=store,
                gradings=Gradings(grader, recipe.rollout.reuse_verdicts),
                policy=policy,
                limits=Limits(memory_mb=sandbox.memory_mb, pids=sandbox.pids, disk_mb=sandbox.disk_mb),
                concurrency=recipe.rollout.concurrency,
                retries=recipe.rollout.retries,
                logs=run / "episodes",
                on_episode=lambda attempt, trajectory: typer.echo(f"{attempt.id}: {_verdict(trajectory)}"),
            )
            settings = recipe.evaluation.applied(recipe.leaf)
            measure = Measure(f"evaluation-{split}", recipe.evaluation.episodes, settings, recipe.coevolve.seed)
            async with Collector(runner, journal) as collector:
                return await evaluate(collector, tasks, measure)


def without_user(url: str) -> str:
    """The address without a name and password, which must not be written down."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _verdict(trajectory: Any) -> str:
    verdict = trajectory.verdict
    if verdict is None or verdict.reward is None:
        return f"no verdict ({trajectory.exit_reason})"
    return "solved" if verdict.passed else f"not solved ({verdict.reason})"
