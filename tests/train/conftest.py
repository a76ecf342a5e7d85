"""What the training tests share: tiny models and hand-made trajectories."""

import random
from typing import Any

import pytest
import torch
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig, Qwen3Config, Qwen3ForCausalLM

from frognano.config.train import TrainSettings
from frognano.records import TokenRow, Trajectory, Verdict, VersionSpan
from frognano.train.batch import make_group

VOCAB = 64


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def tiny_model():
    """Make a random model: ``qwen3``, or ``hybrid``, a Qwen3.5 of linear and full attention."""

    def make(kind: str = "qwen3", seed: int = 0) -> Any:
        torch.manual_seed(seed)
        common: dict[str, Any] = {
            "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2,
            "num_key_value_heads": 1, "head_dim": 16, "tie_word_embeddings": True, "max_position_embeddings": 512,
        }  # fmt: skip
        if kind == "qwen3":
            return Qwen3ForCausalLM(Qwen3Config(num_hidden_layers=2, **common))
        config = Qwen3_5TextConfig(
            num_hidden_layers=2, layer_types=["linear_attention", "full_attention"], linear_num_value_heads=2,
            linear_num_key_heads=2, linear_key_head_dim=16, linear_value_head_dim=16, **common,
        )  # fmt: skip
        return Qwen3_5ForCausalLM(config)

    return make


@pytest.fixture
def trajectory():
    """Make one graded trajectory; without tokens given, a short one with two sampled spans."""

    def make(
        name: str = "a-0",
        reward: float | None = 1.0,
        ids: tuple[int, ...] = (5, 6, 7, 8, 9, 10),
        mask: tuple[int, ...] = (0, 0, 1, 1, 0, 1),
        logprobs: tuple[float, ...] | None = None,
        *,
        exit_reason: Any = "agent",
        version: int = 0,
    ) -> Trajectory:
        if logprobs is None:
            logprobs = tuple(-4.0 if sampled else 0.0 for sampled in mask)
        row = TokenRow(ids=ids, mask=mask, logprobs=logprobs, spans=(VersionSpan(start=0, version=version),))
        return Trajectory(
            id=name, task_id=name.partition("-")[0], exit_reason=exit_reason, tokens=row, verdict=Verdict(reward=reward)
        )

    return make


@pytest.fixture
def random_groups(trajectory):
    """Make ``count`` groups of random trajectories of 8 to 40 tokens, half of them solved."""

    def make(count: int = 2, size: int = 4, settings: TrainSettings | None = None, seed: int = 0) -> list[Any]:
        source, groups = random.Random(seed), []
        for index in range(count):
            members = []
            for member in range(size):
                length = source.randint(8, 40)
                mask = (0, 0, 0, *(source.randint(0, 1) for _ in range(length - 4)), 1)
                ids = tuple(source.randrange(VOCAB) for _ in range(length))
                logprobs = tuple(source.uniform(-4.5, -3.8) if sampled else 0.0 for sampled in mask)
                members.append(trajectory(f"t{index}-{member}", float(member % 2), ids, mask, logprobs))
            groups.append(make_group(f"g{index}", f"t{index}", members, settings or TrainSettings()))
        return groups

    return make
