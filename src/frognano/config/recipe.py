"""A recipe: one whole experiment as one short file. What it leaves out is the paper's.

YAML, strict: an unknown or repeated key fails and the nearest known one is named. The resolved recipe is saved beside
the run, and a run goes on only with the recipe it was begun with. ``budget_episodes`` bounds the work: a recipe whose
loop may need more is refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from frognano.config.base import ConfigError, Settings
from frognano.config.engine import EngineSettings
from frognano.config.leaf import LeafSettings
from frognano.config.taskpilot import TaskPilotSettings
from frognano.config.train import TrainSettings


class ModelSettings(Settings):
    """The policy."""

    checkpoint: str = "Qwen/Qwen3.5-4B"
    """Folder of the starting checkpoint, or ``tadpole`` for the bundled one."""
    engine: EngineSettings = EngineSettings()
    """How it samples."""


class SourceSettings(Settings):
    """Where tasks come from."""

    repository: str = "pond"
    """The bundled ``pond``, or the folder of a pure-Python package with a pytest suite."""


class SandboxSettings(Settings):
    """What one sandbox may use, and how many there are."""

    memory_mb: int = Field(default=1024, ge=64)
    """Memory of one sandbox."""
    pids: int = Field(default=128, ge=8)
    """Processes of one sandbox."""
    disk_mb: int = Field(default=256, ge=8)
    """Disk space of one sandbox."""
    warm: int = Field(default=4, ge=0)
    """Idle sandboxes kept ready."""
    isolation: bool = True
    """False runs the model's commands without any protection; only inside a machine that may be lost."""


class RolloutSettings(Settings):
    """How many episodes run at once, and what becomes of those that fail for reasons of ours."""

    concurrency: int = Field(default=256, ge=1)
    """Episodes at once."""
    graders: int = Field(default=2, ge=1)
    """Verdicts worked on at once."""
    grading: Literal["auto", "forked", "cold"] = "auto"
    """Tests run in a warm forked interpreter, in one cold sandbox for each verdict, or forked where it works."""
    retries: int = Field(default=2, ge=0)
    """Further tries of an episode that ended without a verdict; another exit is never repeated."""
    reuse_verdicts: bool = True
    """Grade equal patches of one task once."""
    logs: bool = True
    """Write a step log of every episode."""


class EvaluationSettings(Settings):
    """How validation and held-out episodes run; the paper's evaluation."""

    episodes: int = Field(default=3, ge=1)
    """Episodes of each held-out task (Avg@3)."""
    validation_episodes: int = Field(default=1, ge=1)
    """Episodes of each validation task at each validation; the paper does not disclose it."""
    start: bool = True
    """Evaluate the starting checkpoint too; False where its scores are known already."""
    temperature: float = Field(default=0.6, ge=0)
    """Sampling temperature; 0 is greedy."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus sampling; 1 keeps every token."""
    top_k: int = Field(default=20, ge=0)
    """Keep only this many likeliest tokens; 0 keeps all."""
    max_turns: int = Field(default=150, ge=1)
    """Replies of the model in one episode."""
    max_context_tokens: int = Field(default=131_072, ge=0)
    """Tokens of the whole conversation."""
    max_tokens_per_turn: int = Field(default=8_192, ge=1)
    """Tokens of one reply."""
    max_time_s: float | None = Field(default=10_800.0, gt=0)
    """Wall seconds of one episode."""

    def applied(self, leaf: LeafSettings) -> LeafSettings:
        """The settings of an episode that is evaluated."""
        names = set(LeafSettings.model_fields) & set(type(self).model_fields)
        return leaf.model_copy(update={name: getattr(self, name) for name in names})


class CoevolveSettings(Settings):
    """The outer loop."""

    iterations: int = Field(default=5, ge=1)
    """Rounds of calibrate and climb."""
    tasks_per_iteration: int = Field(default=300, ge=1)
    """Fresh tasks calibrated in each iteration; when the pool is used up it is gone through again."""
    seed: int = 0
    """Seed of every episode and of the order of tasks."""
    rewards: Literal["real", "permuted"] = "real"
    """Ablation: ``permuted`` shuffles rewards within each group after the filter, so nothing can be learned."""
    tasks: Literal["calibrated", "random"] = "calibrated"
    """Ablation: ``random`` trains on as many tasks as calibration admits, drawn from those that were calibrated."""
    budget_episodes: int = Field(default=0, ge=0)
    """Most full episodes that the plan may need; 0 sets no bound."""


_PAPER_LAST: dict[int, dict[str, Any]] = {
    5: {
        "leaf": {"max_turns": 150, "max_context_tokens": 131_072},
        "taskpilot": {"band": {"high": 0.5, "high_included": True}},
    }
}


class Recipe(Settings):
    """One experiment."""

    about: str = ""
    """What it is for, in a sentence."""
    model: ModelSettings = ModelSettings()
    """The policy."""
    source: SourceSettings = SourceSettings()
    """Where tasks come from."""
    leaf: LeafSettings = LeafSettings()
    """How an episode runs in training and calibration."""
    taskpilot: TaskPilotSettings = TaskPilotSettings()
    """How tasks are made, measured, refined and admitted."""
    train: TrainSettings = TrainSettings()
    """One climb."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """How progress is measured."""
    coevolve: CoevolveSettings = CoevolveSettings()
    """The outer loop."""
    rollout: RolloutSettings = RolloutSettings()
    """Many episodes at once."""
    sandbox: SandboxSettings = SandboxSettings()
    """Where code runs."""
    by_iteration: dict[int, dict[str, Any]] = _PAPER_LAST
    """Sections that differ from some iteration on: number → the part of the recipe that changes."""

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        for iteration in {*range(1, self.coevolve.iterations + 1), *self.by_iteration}:
            self._on_policy(self.at(iteration))
        return self

    def check_budget(self) -> None:
        """Raises ConfigError when the whole loop may need more episodes than ``coevolve.budget_episodes``."""
        needed, bound = sum(self.plan.values()), self.coevolve.budget_episodes
        if bound and needed > bound:
            raise ConfigError(f"the plan may need {needed} episodes, more than coevolve.budget_episodes ({bound})")

    def _on_policy(self, sections: Sections) -> None:
        """The loss divides by the probability that a token was drawn with, so both must be of one distribution."""
        leaf, temperature = sections.leaf, sections.train.loss.temperature
        if leaf.temperature != temperature or leaf.top_p != 1.0 or leaf.top_k:
            raise ValueError(
                f"leaf.temperature ({leaf.temperature:g}) must equal train.loss.temperature ({temperature:g}), with "
                "leaf.top_p 1 and leaf.top_k 0: the loss divides by the probability that a token was drawn with"
            )

    def at(self, iteration: int) -> Sections:
        """The sections that an iteration works with: the recipe's, and every change up to it."""
        values = {name: getattr(self, name).model_dump() for name in Sections.model_fields}
        for number in sorted(self.by_iteration):
            if number <= iteration:
                values = _merged(values, self.by_iteration[number])
        if self.coevolve.rewards == "permuted":
            values = _merged(values, {"train": {"advantage": {"permute_rewards": True}}})
        return Sections.parse(values, f"by_iteration.{iteration}")

    @cached_property
    def plan(self) -> dict[str, int]:
        """Phase → the most episodes it may need, retries apart."""
        synthesis = self.taskpilot.synthesis
        held_out = synthesis.held_out_tasks * self.evaluation.episodes
        validation = synthesis.validation_tasks * self.evaluation.validation_episodes
        tasks = self.coevolve.tasks_per_iteration
        plan = {"start: held-out": held_out} if self.evaluation.start else {}
        for iteration in range(1, self.coevolve.iterations + 1):
            sections, name = self.at(iteration), f"iteration {iteration}"
            train, taskpilot = sections.train, sections.taskpilot
            refined = taskpilot.refinement.rounds * min(taskpilot.refinement.max_tasks or tasks, tasks)
            cadence = train.validation_cadence
            validations = 1 + -(-train.updates // cadence) if cadence else 0
            groups = train.updates * train.groups * (1 + train.refill)
            plan[f"{name}: calibration"] = (tasks + refined) * taskpilot.calibration.episodes
            plan[f"{name}: climb"] = round(groups) * train.group_size
            plan[f"{name}: validation"] = validations * validation
            plan[f"{name}: held-out"] = held_out
        return plan


class Sections(Settings):
    """What an iteration may change."""

    leaf: LeafSettings
    """How an episode runs."""
    taskpilot: TaskPilotSettings
    """How tasks are made."""
    train: TrainSettings
    """One climb."""


FREE = ("about", "rollout.concurrency", "rollout.graders", "rollout.logs", "sandbox.warm", "coevolve.budget_episodes")
"""Settings that may change between two starts of one run: they bear on speed, not on results."""


def load_recipe(source: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, or a bundled one by name; ``overrides`` are ``section.key=value`` with YAML values.

    Raises ConfigError.
    """
    path = find_recipe(source)
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), Loader=_Strict)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"recipe {path} cannot be read: {error}") from None
    if not isinstance(values or {}, dict):
        raise ConfigError(f"recipe {path} must be a mapping of sections")
    return parse_recipe(values or {}, overrides)


def parse_recipe(values: Mapping[str, Any], overrides: Sequence[str] = ()) -> Recipe:
    """A recipe from plain values. Raises ConfigError."""
    changed = dict(values)
    for override in overrides:
        key, sign, text = override.partition("=")
        if not sign or not key.strip():
            raise ConfigError(f"{override!r}: write a setting as section.key=value")
        try:
            value = yaml.load(text, Loader=_Strict)
        except yaml.YAMLError as error:
            raise ConfigError(f"{override!r}: the value cannot be read: {error}") from None
        for part in reversed(key.strip().split(".")):
            value = {part: value}
        changed = _merged(changed, value)
    return Recipe.parse(changed)


def recipe_folder() -> Path:
    """Where the bundled recipes lie: in the installed package, else beside the sources."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parents[1] / "recipes"


def recipe_names() -> list[str]:
    """Names of the bundled recipes."""
    return sorted(path.stem for path in recipe_folder().glob("*.yaml"))


def find_recipe(source: str | Path) -> Path:
    """The file of a recipe given by path or name. Raises ConfigError with the known names."""
    path = Path(source)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        if path.is_file():
            return path
        raise ConfigError(f"there is no recipe file {path}")
    bundled = recipe_folder() / f"{source}.yaml"
    if bundled.is_file():
        return bundled
    raise ConfigError(f"there is no recipe {str(source)!r}; bundled are {', '.join(recipe_names())}, or give a file")


def dump_recipe(recipe: Recipe) -> str:
    """The resolved recipe as YAML."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


class _Strict(yaml.SafeLoader):
    """YAML that refuses a repeated key."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for name, _ in node.value:
            key = self.construct_object(name, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} cannot be a key", name.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} stands twice", name.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)
