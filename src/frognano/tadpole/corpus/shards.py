"""Pretraining text as token shards on disk: each a function of its number alone, written once, atomically.

A shard holds scripts encoded exactly as an episode would be: prompt, sampled replies, bridges. ``weights`` is 1
where the model would have sampled the token, ``SLIP`` where that was a mistake not to be learned, and 0 elsewhere.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from frognano.leaf.profile import load_profile
from frognano.policy.chat import ChatFormat
from frognano.policy.parser import render_call
from frognano.tadpole.corpus.episodes import Author, Habits, Script

SLIP = 2
VOCABULARY_SHARD = 1_000_000
"""Number of the scripts that the vocabulary is learned from."""
DRILL_SHARDS = 2
"""Shards that are all drills; later ones hold one in ten."""
PLAIN_SHARDS = 1
"""Shards of plain generated text; a small model learns to copy there. Later ones are rich and hold library code."""


@dataclass(frozen=True)
class Sequence:
    """One script as tokens."""

    ids: np.ndarray
    weights: np.ndarray


def reply_text(script: Script, turn: int) -> str:
    """What the model writes in one turn."""
    step = script.turns[turn]
    calls = "\n".join(render_call(call.name, call.arguments) for call in step.calls)
    return f"{step.content}\n\n{calls}" if step.content and calls else step.content + calls


def encode(tokenizer: PreTrainedTokenizerFast, chat: ChatFormat, script: Script) -> Sequence:
    """Tokens and weights of a script."""
    profile = load_profile("leaf")
    ids = list(chat.prompt(profile.system, script.user, profile.tools))
    weights = [0] * len(ids)
    for number, step in enumerate(script.turns):
        said = [*tokenizer.encode(reply_text(script, number), add_special_tokens=False), chat.end_of_turn]
        ids += said
        weights += [SLIP if step.slip else 1] * len(said)
        if step.observations:
            bridge = chat.bridge([(seen.tool, seen.text) for seen in step.observations], said[-1])
            ids += bridge
            weights += [0] * len(bridge)
    return Sequence(np.asarray(ids, dtype=np.uint16), np.asarray(weights, dtype=np.uint8))


def scripts(number: int, seed: int, count: int) -> Iterator[Script]:
    """``count`` scripts of shard ``number``."""
    with tempfile.TemporaryDirectory() as folder:
        plain = number < PLAIN_SHARDS
        habits = replace(Habits(), library=0.0) if plain else Habits()
        author = Author(Path(folder), seed * 100_003 + number, habits, level=0 if plain else 3)
        for index in range(count):
            yield author.drill() if number < DRILL_SHARDS or index % 10 == 0 else author.write()


def write_shard(path: Path, texts: Iterable[Script], tokenizer: PreTrainedTokenizerFast) -> Path:
    """Write a shard of ``texts`` unless it is there; returns its path."""
    if path.exists():
        return path
    chat = ChatFormat(tokenizer)
    sequences = [encode(tokenizer, chat, script) for script in texts]
    lengths = np.asarray([len(sequence.ids) for sequence in sequences], dtype=np.int32)
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as file:
        np.savez_compressed(
            file,
            ids=np.concatenate([sequence.ids for sequence in sequences]),
            weights=np.concatenate([sequence.weights for sequence in sequences]),
            lengths=lengths,
        )
    part.replace(path)
    return path


def read_shard(path: Path) -> list[Sequence]:
    """The sequences of a shard."""
    with np.load(path) as data:
        ends = np.cumsum(data["lengths"])
        pairs = zip(np.split(data["ids"], ends[:-1]), np.split(data["weights"], ends[:-1]), strict=True)
        return [Sequence(ids, weights) for ids, weights in pairs]
