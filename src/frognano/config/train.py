"""Settings of training: every row of the recipe is one, and its default is the paper's.

Where the paper is silent the docstring says so and names our choice. The sections ``advantage``, ``reward``
and ``loss`` are the method itself: a small recipe leaves them alone (``method_departures`` lists what it did not).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from frognano.config.base import Settings


class RewardSettings(Settings):
    """What a graded episode is worth to the update; the filter looks at the raw 0 or 1 instead."""

    truncated: float = Field(default=0.5, ge=0.0, le=1.0)
    """Reward of an episode that passes although a budget cut it (context, turns, tokens per turn or time)."""
    length_alpha: float | None = Field(default=None, gt=0.0)
    """α of the length term 1 − α ln(n/N); the paper does not disclose it, so it is off until set."""
    length_target: int | None = Field(default=None, gt=0)
    """N of the length term, in generated tokens; undisclosed, off until set."""
    length_from_iteration: int = Field(default=3, ge=1)
    """First iteration in which the length term counts, given that α and N are set."""
    length_floor: float = Field(default=0.5, ge=0.0, le=1.0)
    """Least reward of an untruncated success under the length term; ours, the paper names no floor."""


class AdvantageSettings(Settings):
    """How rewards of one group become advantages."""

    std: Literal["population", "sample"] = "population"
    """Which standard deviation divides; the paper does not say, ours is the population's."""
    eps: float = Field(default=1e-6, gt=0.0)
    """Added to the standard deviation."""
    permute_rewards: bool = False
    """Ablation only: shuffle the shaped rewards within each kept group, so that nothing can be learned from them."""


class LossSettings(Settings):
    """DPPO with the asymmetric binary total-variation mask."""

    delta_high: float = Field(default=0.2, gt=0.0, le=1.0)
    """Tokens with A > 0 are dropped when p − q exceeds this."""
    delta_low: float = Field(default=0.2, gt=0.0, le=1.0)
    """Tokens with A ≤ 0 are dropped when q − p exceeds this."""
    ratio_cap: float | None = Field(default=None, gt=0.0)
    """Cap on the weight p/q of a token; the recipe has none."""
    temperature: float = Field(default=1.0, gt=0.0)
    """Temperature the rollouts were sampled at; p is computed at the same one."""
    chunk_tokens: int = Field(default=128, ge=1)
    """Tokens whose full-vocabulary logits exist at once."""
    entropy_tokens: int = Field(default=128, ge=0)
    """Tokens per update on which entropy is measured; it is a metric only, never a bonus. 0 turns it off."""


class OptimizerSettings(Settings):
    """Adam with weight decay, a constant rate, no schedule."""

    lr: float = Field(default=1e-6, gt=0.0)
    """Learning rate, constant."""
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    """First-moment decay."""
    beta2: float = Field(default=0.98, ge=0.0, lt=1.0)
    """Second-moment decay."""
    eps: float = Field(default=1e-8, gt=0.0)
    """Added to the root of the second moment; not disclosed, the usual value."""
    weight_decay: float = Field(default=0.1, ge=0.0)
    """Weight decay."""
    decoupled: bool = True
    """True is AdamW; False adds the decay to the gradient. The paper does not say which."""
    decay_vectors: bool = False
    """Decay norm gains, biases and gates too; the paper does not say, ours leaves them out as is usual."""
    clip: float = Field(default=1.0, gt=0.0)
    """Greatest norm of the whole gradient."""


class TrainSettings(Settings):
    """One climb of reinforcement learning."""

    updates: int = Field(default=200, ge=1)
    """Updates of one climb."""
    groups: int = Field(default=32, ge=1)
    """Groups (tasks) of one update."""
    group_size: int = Field(default=8, ge=2)
    """Trajectories of one group."""
    max_lag: Literal[0, 1, 3] = 1
    """S: how many versions older than the one being updated a token may be. 0 alternates strictly."""
    refill: float = Field(default=1.0, ge=0.0)
    """Replacements allowed per update for groups without raw variance, as a multiple of ``groups``."""
    max_skipped: int = Field(default=3, ge=1)
    """Updates in a row without one kept group after which the climb ends."""
    validation_cadence: int = Field(default=20, ge=0)
    """Validate after every so many updates, and after the last; 0 never. The paper does not disclose it."""
    patience: int = Field(default=5, ge=1)
    """Validations without gain after which the climb ends. The paper does not disclose it."""
    micro_batch_tokens: int = Field(default=4096, ge=1)
    """Tokens, padding included, of one forward and backward pass; a longer trajectory stands alone."""
    threads: int = Field(default=1, ge=1)
    """CPU threads of the update."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic of the two passes; weights and optimizer stay float32, bfloat16 would lose a step of 1e-6."""
    activation_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a quarter slower."""
    seed: int = 0
    """Seeds the order of tasks."""
    advantage: AdvantageSettings = AdvantageSettings()
    """How rewards become advantages."""
    reward: RewardSettings = RewardSettings()
    """What an episode is worth."""
    loss: LossSettings = LossSettings()
    """The loss."""
    optimizer: OptimizerSettings = OptimizerSettings()
    """The optimizer."""


_NOT_METHOD = frozenset({"loss.chunk_tokens", "loss.entropy_tokens", "reward.length_alpha", "reward.length_target"})


def method_departures(settings: TrainSettings) -> list[str]:
    """Keys of reward, advantage and loss that differ from the paper's; a small recipe must return none."""
    found = []
    for section in ("advantage", "reward", "loss"):
        ours, paper = getattr(settings, section), getattr(TrainSettings(), section)
        for key in type(ours).model_fields:
            name = f"{section}.{key}"
            if name not in _NOT_METHOD and getattr(ours, key) != getattr(paper, key):
                found.append(name)
    return found
