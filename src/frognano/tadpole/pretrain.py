"""Pretraining of Tadpole: from a seed to a checkpoint folder, on CPU threads, resumable at any moment.

Everything lies in one work folder: tokenizer, shards, ``state.pt`` (model, optimizer, step), a log. The same seed on
the same machine and libraries gives the same weights; other libraries may round differently.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

import torch

from frognano.config.base import ConfigError
from frognano.sandbox.linux import die_with_parent
from frognano.tadpole.corpus.bugs import limit_memory
from frognano.tadpole.corpus.shards import VOCABULARY_SHARD, read_shard, reply_text, scripts, write_shard
from frognano.tadpole.tokenizer import train_tokenizer
from frognano.tadpole.trainer import PretrainPlan, Trainer, announce, load_tokenizer, peers, shard_path

Report = Callable[[str], None]


def pretrain(folder: Path, plan: PretrainPlan, report: Report, ahead: int = 2) -> Path:
    """Run or go on with a pretraining in ``folder``; returns the checkpoint folder. ``ahead`` processes write
    shards meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    _same_plan(folder, plan)
    spawn, last = get_context("spawn"), (signal.SIGKILL,)
    with ProcessPoolExecutor(ahead, spawn, initializer=die_with_parent, initargs=last) as workers:
        if not (folder / "tokenizer").exists():
            report("learning the vocabulary")
            workers.submit(_vocabulary_job, folder, plan).result()
        with peers(folder, plan):
            trainer = Trainer(load_tokenizer(folder), plan, 0)
            trainer.load(folder / "state.pt")
            for number, path in _shards(workers, folder, plan, trainer.shard, ahead):
                started = time.monotonic()
                announce(number, plan)
                loss, tokens = trainer.epoch(read_shard(path))
                trainer.save(folder / "state.pt")
                report(_logged(folder, trainer, loss, tokens / (time.monotonic() - started)))
            announce(plan.shards, plan)
    return trainer.export(folder / "checkpoint")


def _shards(
    workers: ProcessPoolExecutor, folder: Path, plan: PretrainPlan, first: int, ahead: int
) -> Iterator[tuple[int, Path]]:
    """Number and file of every shard from ``first`` on, in order; the next few are written meanwhile."""
    pending: dict[int, Future[Path]] = {}
    for number in range(first, plan.shards):
        for future in range(number, min(number + 2 + ahead, plan.shards)):
            if future not in pending:
                pending[future] = workers.submit(_shard_job, folder, future, plan)
        yield number, pending.pop(number).result()


def _logged(folder: Path, trainer: Trainer, loss: float, speed: float) -> str:
    """Append a line to the log; returns it for people."""
    line = {"shard": trainer.shard - 1, "step": trainer.step, "loss": round(loss, 4), "tokens": trainer.tokens}
    with (folder / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps({**line, "tokens_per_s": round(speed)}) + "\n")
    total = trainer.plan.shards
    left = (total - trainer.shard) * trainer.tokens / trainer.shard / speed / 60
    return f"shard {trainer.shard}/{total}  loss {loss:.3f}  {speed:.0f} tokens/s  {left:.0f} min left"


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


def _shard_job(folder: Path, number: int, plan: PretrainPlan) -> Path:
    torch.set_num_threads(1)
    limit_memory()
    tokenizer = load_tokenizer(folder)
    return write_shard(shard_path(folder, number), scripts(number, plan.seed, plan.scripts), tokenizer)
