"""``frognano tasks``: make tasks from a repository, list and show them, check that they are what they claim."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from frognano.cli.errors import InputError, RunFailed
from frognano.cli.main import new_app
from frognano.cli.options import Overrides, RecipeName, Repository, pool_folder, recipe_from
from frognano.config.recipe import Recipe

app = new_app("Make, list, show and check tasks.")
PoolArgument = Annotated[Path, typer.Argument(metavar="POOL", help="Folder made by 'tasks make', or a run folder.")]


@app.callback()
def _tasks() -> None:
    """Make, list, show and check tasks."""


@app.command()
def make(
    *,
    pool: Annotated[Path, typer.Option(metavar="DIR", help="Where to put them; the same command goes on.")],
    repo: Repository = "",
    recipe: RecipeName = "tadpole",
    train: Annotated[int | None, typer.Option(min=0, help="Tasks wanted for training.")] = None,
    validation: Annotated[int | None, typer.Option(min=0, help="Tasks wanted for validation.")] = None,
    held_out: Annotated[int | None, typer.Option(min=0, help="Tasks wanted for the held-out measure.")] = None,
    set_: Overrides = None,
) -> None:
    """Make validated tasks from a repository and print the funnel."""
    wanted = {"train_tasks": train, "validation_tasks": validation, "held_out_tasks": held_out}
    counts = [f"taskpilot.synthesis.{key}={count}" for key, count in wanted.items() if count is not None]
    chosen = recipe_from(recipe, [*counts, *(set_ or ())], repo=repo)
    from frognano.coevolve.making import make_tasks
    from frognano.coevolve.progress import watching

    with watching(chosen, only=["synthesis"]) as watch:
        found = asyncio.run(make_tasks(chosen, pool, watch))
    typer.echo(f"{sum(map(len, found.values()))} tasks: {pool / 'tasks'}")


@app.command(name="list")
def list_(
    pool: PoolArgument,
    split: Annotated[str, typer.Option(help="Only this split: train, validation or held-out.")] = "",
) -> None:
    """One line for each task: split, kind, place, p̂ where it was measured."""
    from frognano.rollout.episodes import read_pool
    from frognano.rollout.ladder import table

    rows = [("task", "split", "kind", "place", "p̂")]
    for placed in read_pool(pool_folder(pool) / "tasks").values():
        task = placed.task
        if split in ("", task.split):
            p_hat = f"{task.calibration.p_hat:.2f}" if task.calibration else "–"
            rows.append((task.id, task.split, task.kind, f"{task.origin.module}:{task.origin.function}", p_hat))
    typer.echo(table(rows))
    typer.echo(f"{len(rows) - 1} tasks")


@app.command()
def show(
    pool: PoolArgument,
    task: Annotated[str, typer.Argument(metavar="TASK", help="Id of the task.")],
    gold: Annotated[bool, typer.Option("--gold", help="Show the hidden parts too: gold patch and tests.")] = False,
) -> None:
    """The statement of one task and what decides it."""
    placed = _placed(pool, task)
    record = placed.task
    from frognano.leaf.transcript import plain
    from frognano.tasks.folder import read_content

    typer.echo(f"{record.id}  {record.split}  {record.kind}  {record.origin.module}:{record.origin.function}")
    typer.echo(f"made by {record.origin.generator}, level {record.origin.level}, seed {record.origin.seed}")
    typer.echo(f"{len(record.tests.f2p)} tests must pass and fail now; {len(record.tests.p2p)} pass and must stay so")
    typer.echo(f"\n{plain(record.statement)}")
    if gold:
        typer.echo("\nfail to pass:\n  " + "\n  ".join(record.tests.f2p))
        typer.echo("\n" + plain(read_content(placed.folder).gold.decode("utf-8", "surrogateescape")))


@app.command()
def check(
    pool: PoolArgument,
    tasks: Annotated[list[str] | None, typer.Argument(metavar="[TASK]…", help="Ids; all by default.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Gold runs, each in another order and with another hash seed.")] = 1,
) -> None:
    """Grade the gold patch and the empty patch of each task: 1 and 0, or the task is not sound."""
    place = pool_folder(pool)
    known = [placed for name, placed in _pool(place).items() if not tasks or name in tasks]
    missing = sorted(set(tasks or ()) - {placed.task.id for placed in known})
    if missing:
        raise InputError(f"{pool} has no task {missing[0]!r}; list them:  frognano tasks list {pool}")
    unsound = asyncio.run(_check(place, known, runs))
    typer.echo(f"{len(known) - unsound} of {len(known)} tasks are sound")
    if unsound:
        raise RunFailed(f"{unsound} tasks of {pool} are not sound")


@app.command()
def grade(
    pool: PoolArgument,
    task: Annotated[str, typer.Argument(metavar="TASK", help="Id of the task.")],
    patch: Annotated[Path, typer.Option(metavar="FILE", help="Patch to grade, in git's format.")],
) -> None:
    """Grade one patch: the verdict and the outcome of every grading test."""
    placed, data = _placed(pool, task), patch.read_bytes()
    verdict = asyncio.run(_grade(pool_folder(pool), placed, data))
    from frognano.leaf.transcript import plain

    for test, outcome in verdict.outcomes.items():
        typer.echo(f"{outcome:8} {plain(test)}")
    typer.echo(f"reward {verdict.reward}  {verdict.reason}  {plain(verdict.detail)}".rstrip())
    raise typer.Exit(0 if verdict.passed else 1)


def _pool(place: Path) -> Any:
    from frognano.rollout.episodes import read_pool

    return read_pool(place / "tasks")


def _placed(pool: Path, task: str) -> Any:
    found = _pool(pool_folder(pool)).get(task)
    if found is None:
        raise InputError(f"{pool} has no task {task!r}; list them:  frognano tasks list {pool}")
    return found


async def _check(place: Path, tasks: list[Any], runs: int) -> int:
    """Grade each task's own patches; how many tasks are not sound."""
    from frognano.coevolve.making import open_tools
    from frognano.tasks.folder import read_content

    unsound = 0
    async with open_tools(Recipe.parse({}), place) as tools:
        for placed in tasks:
            gold = read_content(placed.folder).gold
            verdicts = [
                await tools.grader.grade(placed.task, placed.folder, gold, order_seed=seed, hash_seed=seed)
                for seed in range(runs)
            ]
            empty = await tools.grader.grade(placed.task, placed.folder, b"")
            sound = all(verdict.passed for verdict in verdicts) and empty.reward == 0.0
            unsound += not sound
            said = ", ".join(f"{verdict.reward}" for verdict in verdicts)
            typer.echo(f"{'ok ' if sound else 'BAD'} {placed.task.id}  gold {said}  empty {empty.reward}")
    return unsound


async def _grade(place: Path, placed: Any, patch: bytes) -> Any:
    from frognano.coevolve.making import open_tools

    async with open_tools(Recipe.parse({}), place) as tools:
        return await tools.grader.grade(placed.task, placed.folder, patch)
