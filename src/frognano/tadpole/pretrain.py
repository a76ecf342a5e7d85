"""Pretraining of Tadpole: from a seed to a checkpoint folder, on one CPU thread, resumable at any moment.

Everything lies in one work folder: tokenizer, shards, ``state.pt`` (model, optimizer, step), a log. The same seed on
the same machine and libraries gives the same weights; other libraries may round differently.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from frognano.config.base import ConfigError
from frognano.tadpole.corpus.bugs import limit_memory
from frognano.tadpole.corpus.shards import VOCABULARY_SHARD, Sequence, read_shard, reply_text, scripts, write_shard
from frognano.tadpole.model import build_model
from frognano.tadpole.muon import Muon
from frognano.tadpole.tokenizer import train_tokenizer


@dataclass(frozen=True)
class PretrainPlan:
    """What decides the result."""

    seed: int = 7
    vocabulary: int = 1280
    cycles: tuple[int, ...] = (18, 6)
    """Shards of each cycle; the learning rates fall to nothing at its end and begin the next one lower."""
    scripts: int = 400
    """Scripts in one shard."""
    vocabulary_scripts: int = 1200
    """Scripts that the vocabulary is learned from."""
    batch_tokens: int = 1536
    learning_rate: float = 3e-3
    muon_rate: float = 1e-2
    warmup: int = 50
    context_weight: float = 0.3
    """Loss weight of tokens that the model reads but does not write."""
    context_stride: int = 2
    """Of those tokens one in so many counts."""

    @property
    def total(self) -> int:
        """Shards in all."""
        return sum(self.cycles)

    def rate(self, at: float) -> float:
        """Factor of the learning rates after ``at`` shards: flat, then linear to 2 % over a cycle's last 40 %."""
        for number, length in enumerate(self.cycles):
            if at < length or number == len(self.cycles) - 1:
                return float(0.6**number * min(1.0, max(0.02, (1 - at / length) / 0.4)))
            at -= length
        return 0.0


Report = Callable[[str], None]


def pretrain(folder: Path, plan: PretrainPlan, report: Report, ahead: int = 1) -> Path:
    """Run or go on with a pretraining in ``folder``; returns the checkpoint folder. ``ahead`` processes write
    shards meanwhile."""
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    _same_plan(folder, plan)
    with ProcessPoolExecutor(ahead, mp_context=get_context("spawn")) as workers:
        if not (folder / "tokenizer").exists():
            report("learning the vocabulary")
            workers.submit(_vocabulary_job, folder, plan).result()
        trainer = _Trainer(_load_tokenizer(folder), plan)
        trainer.load(folder / "state.pt")
        pending: dict[int, Future[Path]] = {}
        for number in range(trainer.shard, plan.total):
            for future in range(number, min(number + 2 + ahead, plan.total)):
                if future not in pending:
                    pending[future] = workers.submit(_shard_job, folder, future, plan)
            started = time.monotonic()
            loss, tokens = trainer.epoch(read_shard(pending.pop(number).result()))
            trainer.shard = number + 1
            trainer.save(folder / "state.pt")
            seconds = time.monotonic() - started
            line = {"shard": number, "step": trainer.step, "loss": round(loss, 4), "tokens": trainer.tokens}
            line["tokens_per_s"] = round(tokens / seconds)
            with (folder / "log.jsonl").open("a", encoding="utf-8") as log:
                log.write(json.dumps(line) + "\n")
            left = (plan.total - number - 1) * seconds / 60
            speed = f"{line['tokens_per_s']} tokens/s  {left:.0f} min left"
            report(f"shard {number + 1}/{plan.total}  loss {loss:.3f}  {speed}")
    return trainer.export(folder / "checkpoint")


def _same_plan(folder: Path, plan: PretrainPlan) -> None:
    path = folder / "plan.json"
    if not path.exists():
        path.write_text(json.dumps(asdict(plan), indent=2), encoding="utf-8")
    before, now = json.loads(path.read_text(encoding="utf-8")), json.loads(json.dumps(asdict(plan)))
    differing = [key for key, value in now.items() if before.get(key) != value]
    if differing:
        raise ConfigError(
            f"{folder} holds a pretraining with other settings: {', '.join(differing)}; use another folder"
        )


def _vocabulary_job(folder: Path, plan: PretrainPlan) -> None:
    limit_memory()
    part = folder / "tokenizer.part"
    train_tokenizer(list(_texts(plan)), plan.vocabulary).save_pretrained(part)
    part.rename(folder / "tokenizer")


def _texts(plan: PretrainPlan) -> Iterator[str]:
    for script in scripts(VOCABULARY_SHARD, plan.seed, plan.vocabulary_scripts):
        yield script.user
        for number, turn in enumerate(script.turns):
            yield reply_text(script, number)
            yield from (observation.text for observation in turn.observations)


def _load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    return cast(PreTrainedTokenizerFast, AutoTokenizer.from_pretrained(folder / "tokenizer"))


def _shard_job(folder: Path, number: int, plan: PretrainPlan) -> Path:
    torch.set_num_threads(1)
    limit_memory()
    tokenizer = _load_tokenizer(folder)
    return write_shard(folder / f"shard-{number:04d}.npz", scripts(number, plan.seed, plan.scripts), tokenizer)


class _Trainer:
    def __init__(self, tokenizer: PreTrainedTokenizerFast, plan: PretrainPlan) -> None:
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
        """One pass over a shard; returns the mean loss over written tokens and the number of tokens."""
        rng = np.random.default_rng([self.plan.seed, self.shard])
        batches = _batches(sequences, self.plan.batch_tokens, rng)
        total, written, tokens = 0.0, 0.0, 0
        for position, batch in enumerate(batches):
            loss, count = self._update(batch, self.plan.rate(self.shard + position / len(batches)))
            total, written = total + loss * count, written + count
            tokens += sum(len(sequence.ids) for sequence in batch)
        self.tokens += tokens
        return total / max(written, 1), tokens

    def _update(self, batch: list[Sequence], rate: float) -> tuple[float, float]:
        width = max(len(sequence.ids) for sequence in batch)
        ids = torch.zeros(len(batch), width, dtype=torch.long)
        weights = torch.zeros(len(batch), width)
        inside = torch.zeros(len(batch), width)
        for row, sequence in enumerate(batch):
            size = len(sequence.ids)
            ids[row, :size] = torch.from_numpy(sequence.ids.astype(np.int64))
            weights[row, :size] = torch.from_numpy(sequence.weights.astype(np.float32))
            inside[row, :size] = 1.0
        inside[:, torch.arange(width) % self.plan.context_stride != 0] = 0.0
        weights = torch.maximum(weights, inside * self.plan.context_weight)[:, 1:]
        used = weights > 0
        hidden = self.model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
        losses = nn.functional.cross_entropy(self.model.lm_head(hidden[used]), ids[:, 1:][used], reduction="none")
        weights = weights[used]
        written = weights == 1
        (losses * weights).sum().div(weights.sum()).backward()  # type: ignore[no-untyped-call]
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

    def save(self, path: Path) -> None:
        state: dict[str, Any] = {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "counts": [self.step, self.shard, self.tokens],
        }
        part = path.with_suffix(".part")
        torch.save(state, part)
        part.replace(path)

    def load(self, path: Path) -> None:
        if not path.exists():
            return
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimizer, held in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(held)
        self.step, self.shard, self.tokens = state["counts"]

    def export(self, folder: Path) -> Path:
        self.model.save_pretrained(folder)
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
