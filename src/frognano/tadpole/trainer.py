"""The optimizer steps of Tadpole's pretraining, shared by a few ranks: processes of one thread each."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from frognano.config.base import ConfigError
from frognano.sandbox.linux import die_with_parent
from frognano.tadpole.corpus.shards import READ, SLIP, Sequence, read_shard
from frognano.tadpole.model import build_model
from frognano.tadpole.muon import Muon


@dataclass(frozen=True)
class PretrainPlan:
    """What decides the result."""

    seed: int = 7
    vocabulary: int = 2048
    shards: int = 44
    scripts: int = 400
    """Scripts in one shard."""
    vocabulary_scripts: int = 2400
    """Scripts that the vocabulary is learned from."""
    batch_tokens: int = 1536
    """Tokens, padding included, that one rank reads for a step."""
    ranks: int = 2
    """Processes of one thread each that share a step's gradient; more than there are cores gains nothing."""
    learning_rate: float = 3e-3
    muon_rate: float = 1e-2
    warmup: int = 50
    context_weight: float = 0.3
    """Loss weight of tokens that the model reads but does not write."""
    sharpness: float = 1.4
    """The finished model's logits are multiplied by this: so small a model gives too much to the unlikely."""
    change_weight: float = 2.5
    """Loss weight of the token at which an edit leaves what it copies."""
    context_stride: int = 2
    """Of those tokens one in so many counts."""

    def rate(self, at: float) -> float:
        """Factor of the learning rates after ``at`` shards: flat, then linear to 2 % over the last 40 %."""
        return min(1.0, max(0.02, (1 - at / self.shards) / 0.4))


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The vocabulary that lies in a work folder."""
    return cast(PreTrainedTokenizerFast, AutoTokenizer.from_pretrained(folder / "tokenizer"))


def shard_path(folder: Path, number: int) -> Path:
    """Where a shard lies in a work folder."""
    return folder / f"shard-{number:04d}.npz"


@contextmanager
def peers(folder: Path, plan: PretrainPlan) -> Iterator[None]:
    """Run the other ranks beside this one, which is rank 0; they end with the context."""
    if plan.ranks == 1:
        yield
        return
    for left in folder.glob("meeting-*"):
        left.unlink(missing_ok=True)
    meeting = folder / f"meeting-{os.getpid()}"
    context = get_context("spawn")
    others = [
        context.Process(target=_peer, args=(folder, plan, rank, meeting), daemon=True) for rank in range(1, plan.ranks)
    ]
    for other in others:
        other.start()
    try:
        _meet(meeting, plan, 0)
        yield
        for other in others:
            other.join()
    finally:
        for other in others:
            other.kill()
        if dist.is_initialized():
            dist.destroy_process_group()
        meeting.unlink(missing_ok=True)


def _meet(meeting: Path, plan: PretrainPlan, rank: int) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=plan.ranks)


def announce(number: int, plan: PretrainPlan) -> None:
    """Tell the other ranks which shard comes next; the plan's number of shards means the end."""
    if plan.ranks > 1:
        dist.broadcast(torch.tensor([number]), 0)


def _peer(folder: Path, plan: PretrainPlan, rank: int, meeting: Path) -> None:
    die_with_parent(signal.SIGKILL)
    _meet(meeting, plan, rank)
    trainer = Trainer(load_tokenizer(folder), plan, rank)
    trainer.load(folder / "state.pt")
    while True:
        number = torch.tensor([0])
        dist.broadcast(number, 0)
        if int(number) == plan.shards:
            return
        trainer.epoch(read_shard(shard_path(folder, int(number))))


class Trainer:
    """Model, optimizers and counts of one rank."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, plan: PretrainPlan, rank: int) -> None:
        torch.set_num_threads(1)
        self.rank = rank
        self.tokenizer = tokenizer
        self.plan = plan
        self.model = build_model(tokenizer, plan.seed)
        matrices: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for name, parameter in self.model.named_parameters():
            inner = parameter.ndim == 2 and "embed" not in name and min(parameter.shape) >= 16
            (matrices if inner else others).append(parameter)
        self.optimizers: list[torch.optim.Optimizer] = [
            Muon(matrices, rate=plan.muon_rate),
            torch.optim.AdamW(others, lr=plan.learning_rate, betas=(0.9, 0.98), weight_decay=0.0),
        ]
        self.step, self.shard, self.tokens = 0, 0, 0

    def epoch(self, sequences: list[Sequence]) -> tuple[float, int]:
        """One pass over a shard, shared among the ranks.

        Returns this rank's mean loss over written tokens and the number of tokens that all ranks read.
        """
        rng = np.random.default_rng([self.plan.seed, self.shard])
        ranks = self.plan.ranks
        batches = _batches(sequences, self.plan.batch_tokens, rng)
        batches = batches[: len(batches) // ranks * ranks]
        if not batches:
            raise ConfigError(f"a shard has fewer batches than there are ranks ({ranks}); more scripts, or one rank")
        total, written = 0.0, 0.0
        for position in range(self.rank, len(batches), ranks):
            loss, count = self._update(batches[position], self.plan.rate(self.shard + position / len(batches)))
            total, written = total + loss * count, written + count
        tokens = sum(len(sequence.ids) for batch in batches for sequence in batch)
        self.tokens += tokens
        self.shard += 1
        return total / max(written, 1), tokens

    def _update(self, batch: list[Sequence], rate: float) -> tuple[float, float]:
        width = max(len(sequence.ids) for sequence in batch)
        ids = torch.zeros(len(batch), width, dtype=torch.long)
        roles = torch.full((len(batch), width), SLIP)
        for row, sequence in enumerate(batch):
            size = len(sequence.ids)
            ids[row, :size] = torch.from_numpy(sequence.ids.astype(np.int64))
            roles[row, :size] = torch.from_numpy(sequence.roles.astype(np.int64))
        skipped = torch.arange(width) % self.plan.context_stride != 0
        table = torch.tensor([self.plan.context_weight, 1.0, 0.0, self.plan.change_weight])
        weights = table[roles].masked_fill((roles == READ) & skipped, 0.0)[:, 1:]
        used = weights > 0
        hidden = self.model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
        losses = nn.functional.cross_entropy(self.model.lm_head(hidden[used]), ids[:, 1:][used], reduction="none")
        weights = weights[used]
        written = roles[:, 1:][used] != READ
        (losses * weights).sum().div(weights.sum()).backward()  # type: ignore[no-untyped-call]
        self._share_gradients()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        scale = min(1.0, (self.step + 1) / self.plan.warmup) * rate
        for optimizer, peak in zip(self.optimizers, (self.plan.muon_rate, self.plan.learning_rate), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = peak * scale
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        loss = float(losses.detach()[written].mean())
        if not math.isfinite(loss):
            raise RuntimeError(f"loss is {loss} at step {self.step}")
        return loss, float(written.sum())

    def _share_gradients(self) -> None:
        """Replace every gradient by its mean over the ranks."""
        if self.plan.ranks == 1:
            return
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        flat /= self.plan.ranks
        for gradient, mean in zip(gradients, torch.split(flat, [each.numel() for each in gradients]), strict=True):
            gradient.copy_(mean.view_as(gradient))

    def save(self, path: Path) -> None:
        """Write everything that going on needs, atomically."""
        state: dict[str, Any] = {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "counts": [self.step, self.shard, self.tokens],
        }
        part = path.with_suffix(".part")
        torch.save(state, part)
        part.replace(path)

    def load(self, path: Path) -> None:
        """Go on from what ``save`` wrote, if it is there."""
        if not path.exists():
            return
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimizer, held in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(held)
        self.step, self.shard, self.tokens = state["counts"]

    def export(self, folder: Path) -> Path:
        """Write a checkpoint folder; returns it."""
        # The last norm multiplies by one plus its weight.
        sharp = {**self.model.state_dict()}
        sharp["model.norm.weight"] = (1 + sharp["model.norm.weight"]) * self.plan.sharpness - 1
        self.model.save_pretrained(folder, state_dict=sharp)
        self.tokenizer.save_pretrained(folder)
        return folder


def _batches(sequences: list[Sequence], tokens: int, rng: np.random.Generator) -> list[list[Sequence]]:
    """Batches of about ``tokens`` padded tokens of alike lengths, in random order."""
    order = sorted(range(len(sequences)), key=lambda index: len(sequences[index].ids) + rng.uniform(0, 40))
    batches: list[list[Sequence]] = [[]]
    for index in order:
        width = max([len(sequences[index].ids), *(len(item.ids) for item in batches[-1])])
        if batches[-1] and width * (len(batches[-1]) + 1) > tokens:
            batches.append([])
        batches[-1].append(sequences[index])
    rng.shuffle(batches)
    return batches
