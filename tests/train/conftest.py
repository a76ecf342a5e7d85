"""What the training tests share: tiny models and hand-made trajectories."""

import asyncio
import copy
import random
import zlib
from typing import Any

import pytest
import torch
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig, Qwen3Config, Qwen3ForCausalLM

from frognano.config.train import TrainSettings
from frognano.records import TokenRow, Trajectory, Verdict, VersionSpan
from frognano.rollout.journal import Journal
from frognano.train.batch import make_group
from frognano.train.checkpoint import CheckpointStore
from frognano.train.climb import Climb
from frognano.train.generation import ClimbPlan
from frognano.train.update import Learner

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


class SamplingSource:
    """A bandit: one token sampled from the model after a prompt that names the task, solved in the lower half.

    It samples from a copy of the weights, and with ``journaled`` keeps what it finished, as a rollout service does.
    """

    def __init__(self, learner: Any, journal: Any, settings: TrainSettings) -> None:
        self.learner, self.journal, self.settings = learner, journal, settings
        self.policy = copy.deepcopy(learner.model)
        self.version = -1
        self.started: list[str] = []
        self.scores: list[float | None] = []
        self.delay_s = 0.0
        self.journaled = False

    async def hand_over(self, version: int) -> None:
        self.policy.load_state_dict(self.learner.model.state_dict())
        self.version = version

    async def validate(self, version: int) -> float | None:
        return self.scores.pop(0) if self.scores else None

    async def group(self, task_id: str, group_id: str, version: int) -> list[Trajectory]:
        self.started.append(task_id)
        await asyncio.sleep(self.delay_s)
        done = {one.id: one for one in self.journal.trajectories(group_id)}
        prompt = (1, 2, 3, 32 + int(task_id[1:]))
        with torch.no_grad():
            logp = self.policy(input_ids=torch.tensor([prompt])).logits[0, -1].log_softmax(0)
        for index in range(self.settings.group_size):
            name = f"{group_id}-{index}"
            if name not in done:
                done[name] = self.episode(task_id, name, prompt, logp)
                if self.journaled:
                    self.journal.add_episode(group_id, done[name])
        return [done[name] for name in sorted(done)]

    def episode(self, task_id: str, name: str, prompt: tuple[int, ...], logp: Any) -> Trajectory:
        dice = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        token = int(torch.multinomial(logp.exp(), 1, generator=dice))
        row = TokenRow(
            ids=(*prompt, token, 9), mask=(0, 0, 0, 0, 1, 0), logprobs=(0.0,) * 4 + (float(logp[token]), 0.0),
            spans=(VersionSpan(start=4, version=self.version),),
        )  # fmt: skip
        verdict = Verdict(reward=float(token < VOCAB // 2))
        return Trajectory(id=name, task_id=task_id, exit_reason="agent", tokens=row, verdict=verdict)


@pytest.fixture
def make_climb(tiny_model, tmp_path):
    """Make a climb in ``tmp_path`` with a source that samples from the model; call it again to resume there."""
    opened: list[Journal] = []

    def make(settings: TrainSettings, tasks: int = 6, learner_type: type[Learner] = Learner) -> Climb:
        for journal in opened:
            journal.close()
        journal = Journal(tmp_path / "run", {"train": settings.model_dump()})
        opened.append(journal)
        learner = learner_type(tiny_model(), settings)
        store = CheckpointStore(
            tmp_path / "run" / "checkpoints",
            lambda model, folder: model.save_pretrained(folder),
            Qwen3ForCausalLM.from_pretrained,
        )
        plan = ClimbPlan("one", [f"t{index}" for index in range(tasks)])
        return Climb(plan, settings, learner, SamplingSource(learner, journal, settings), journal, store)

    yield make
    for journal in opened:
        journal.close()
