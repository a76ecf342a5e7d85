"""Everything that one run holds open: journal, snapshots, sandboxes, grader, engine; opened and closed together.

The journal comes first, so that a folder in use or a changed recipe is refused before anything else happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from frognano.coevolve import events
from frognano.coevolve.making import backend_of, grading_of, limits_of
from frognano.config.recipe import FREE, Recipe, dump_recipe
from frognano.policy.chat import ChatFormat
from frognano.policy.checkpoint import LoadedModel, checkpoint_digest, checkpoint_folder, load_model
from frognano.policy.engine import TorchEngine
from frognano.policy.token_policy import TokenPolicy
from frognano.records import Trajectory
from frognano.rollout.collect import Collector
from frognano.rollout.episodes import Attempt, EpisodeRunner
from frognano.rollout.grading import Gradings
from frognano.rollout.journal import Journal
from frognano.rollout.run_folder import disk_errors
from frognano.sandbox.local import LocalBackend
from frognano.tasks.grader import Grader, open_grader
from frognano.tasks.snapshot import SnapshotStore


@dataclass
class Workbench:
    """The open parts of one run."""

    recipe: Recipe
    folder: Path
    """The run folder."""
    pool: Path
    """Folder of the tasks and snapshots that the run draws on; several runs may share one."""
    watch: events.Watch
    journal: Journal
    store: SnapshotStore
    backend: LocalBackend
    grader: Grader
    policy: TokenPolicy
    collector: Collector
    present: Path
    """Checkpoint folder of the weights in the engine."""

    @property
    def tasks(self) -> Path:
        """Folder of the raw validated tasks."""
        return self.pool / "tasks"

    @property
    def logs(self) -> Path:
        """Folder of the step logs."""
        return self.folder / "episodes"

    @property
    def start(self) -> Path:
        """Folder of the starting checkpoint."""
        return checkpoint_folder(self.recipe.model.checkpoint)

    def checkpoint(self, name: str) -> Path:
        """Model folder of a checkpoint of this run; "" names the recipe's own."""
        return self.folder / "checkpoints" / name / "model" if name else self.start

    def checkpoint_name(self, folder: Path) -> str:
        """The name that ``checkpoint`` turns into this model folder."""
        return "" if folder == self.start else folder.parent.name

    async def use(self, checkpoint: Path) -> None:
        """Put the weights of a checkpoint folder into the engine."""
        if checkpoint != self.present:
            state = await asyncio.to_thread(_state_of, checkpoint)
            await self.policy.update(state, 0)
            self.present = checkpoint

    async def hand_over(self, state: Mapping[str, Tensor], version: int) -> None:
        """Put a learner's weights into the engine."""
        await self.policy.update(state, version)
        self.present = Path()


def _state_of(checkpoint: Path) -> Mapping[str, Tensor]:
    state: Mapping[str, Tensor] = load_model(checkpoint).model.state_dict()
    return state


PolicyOf = Callable[[Recipe, LoadedModel], TokenPolicy]


def token_policy(recipe: Recipe, loaded: LoadedModel) -> TokenPolicy:
    """The in-process engine on a loaded model."""
    engine = TorchEngine(loaded.model, recipe.model.engine)
    return TokenPolicy(engine, ChatFormat(loaded.tokenizer), Path(recipe.model.checkpoint).name)


@asynccontextmanager
async def open_workbench(
    recipe: Recipe,
    folder: Path,
    watch: events.Watch = events.silent,
    pool: Path | None = None,
    policy_of: PolicyOf = token_policy,
) -> AsyncIterator[Workbench]:
    """Open the run in ``folder``; raises RunLocked, RecipeChanged, CheckpointFolderError, SandboxError."""
    async with AsyncExitStack() as stack:
        stack.enter_context(_clear_errors(folder))
        weights = await asyncio.to_thread(checkpoint_digest, checkpoint_folder(recipe.model.checkpoint))
        about = {**recipe.model_dump(mode="json"), "weights": weights}
        journal = stack.enter_context(Journal(folder, about, FREE))
        (folder / "recipe.yaml").write_text(dump_recipe(recipe), encoding="utf-8")
        pool = pool or folder / "pool"
        store = SnapshotStore(pool / "snapshots")
        limits = limits_of(recipe)
        loaded = await asyncio.to_thread(load_model, recipe.model.checkpoint)
        backend = await stack.enter_async_context(backend_of(recipe))
        grader = await stack.enter_async_context(open_grader(backend, store, grading_of(recipe)))
        policy = await stack.enter_async_context(policy_of(recipe, loaded))
        runner = EpisodeRunner(
            backend=backend,
            store=store,
            gradings=Gradings(grader, recipe.rollout.reuse_verdicts),
            policy=policy,
            limits=limits,
            concurrency=recipe.rollout.concurrency,
            retries=recipe.rollout.retries,
            logs=folder / "episodes" if recipe.rollout.logs else None,
            on_episode=lambda attempt, trajectory: watch(_ended(attempt, trajectory)),
        )
        collector = await stack.enter_async_context(Collector(runner, journal, recipe.model.engine.wave))
        yield Workbench(recipe, folder, pool, watch, journal, store, backend, grader, policy, collector, loaded.folder)


@contextmanager
def _clear_errors(folder: Path) -> Iterator[None]:
    """A full disk is named as such, wherever it was met; of several errors at once the first is raised."""
    with disk_errors(folder):
        try:
            yield
        except BaseExceptionGroup as group:
            raise _first(group) from group


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _ended(attempt: Attempt, trajectory: Trajectory) -> events.EpisodeEnded:
    verdict, tokens = trajectory.verdict, trajectory.tokens
    graded = verdict is not None and verdict.reward is not None
    return events.EpisodeEnded(
        scope=attempt.scope,
        task_id=trajectory.task_id,
        solved=verdict.passed if graded and verdict is not None else None,
        exit_reason=trajectory.exit_reason,
        sampled=tokens.sampled if tokens else 0,
        context=trajectory.context_tokens,
    )
