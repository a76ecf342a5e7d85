"""The outer loop: tasks at the edge of what the policy can do, a climb on them, and again with the better policy.

Weights carry over from one iteration to the next; optimizer and random state start fresh. Every phase is journaled:
a run that was stopped or killed goes on with the same call. What it does NOT do: choose its own held-out tasks.
Those were set apart by module before the first task was made.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from frognano.coevolve import events
from frognano.coevolve.climbing import climbed
from frognano.coevolve.outcome import Outcome, write_outcome
from frognano.coevolve.phases import calibrated, held_out, make_pool
from frognano.coevolve.workbench import PolicyOf, Workbench, open_workbench, token_policy
from frognano.config.recipe import Recipe

T = TypeVar("T")


class NothingToTrain(RuntimeError):
    """The loop cannot go on: no task is left that the policy could learn from."""


def run(
    recipe: Recipe,
    folder: Path,
    *,
    watch: events.Watch = events.silent,
    pool: Path | None = None,
    policy_of: PolicyOf = token_policy,
) -> Outcome:
    """Run the whole loop in ``folder``, or go on with it; ``pool`` may be shared with other runs.

    Raises KeyboardInterrupt when it was stopped (Ctrl-C, SIGTERM): the same call goes on; ConfigError for a plan
    that is over its budget.
    """
    recipe.check_budget()

    async def work() -> Outcome:
        async with open_workbench(recipe, folder, watch, pool, policy_of) as bench:
            return await coevolve(bench)

    return stoppable(work())


async def coevolve(bench: Workbench) -> Outcome:
    """The loop itself."""
    recipe = bench.recipe
    pool = await make_pool(bench)
    if not pool.train:
        raise NothingToTrain(f"no task for training came out of {recipe.source.repository}; see {bench.tasks}")
    checkpoint = bench.start
    rungs = await held_out(bench, pool, checkpoint, 0) if recipe.evaluation.start else []
    for iteration in range(1, recipe.coevolve.iterations + 1):
        tasks = await calibrated(bench, pool, iteration, checkpoint)
        if not tasks and iteration > 1:
            bench.watch(events.Told(text=f"iteration {iteration}: no task is in the band, so the loop ends here"))
            break
        if not tasks:
            raise NothingToTrain(
                f"iteration {iteration}: of the calibrated tasks none is in the band "
                f"({recipe.at(iteration).taskpilot.band}); see {bench.folder / 'tasks'}"
            )
        outcome = await climbed(bench, pool, iteration, checkpoint, tasks)
        checkpoint = bench.checkpoint(outcome.checkpoint)
        rungs += await held_out(bench, pool, checkpoint, iteration, trained_on=outcome.tasks, updates=outcome.updates)
    return await asyncio.to_thread(write_outcome, bench, rungs, checkpoint)


def stoppable(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` so that Ctrl-C and SIGTERM end it in order, sandboxes closed, journal whole; KeyboardInterrupt."""

    async def main() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
