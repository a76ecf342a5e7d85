"""Pretraining text as token shards on disk: each a function of its number alone, written once, atomically.

A shard holds scripts encoded exactly as an episode would be: prompt, sampled replies, bridges. ``roles`` tells what
each token is: read, written by the model, written but a mistake not to be learned, or the one that turns an edit.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from frognano.leaf.profile import load_profile
from frognano.policy.chat import ChatFormat
from frognano.policy.parser import render_call
from frognano.tadpole.corpus.episodes import Author, Habits, Script, Turn

READ, WRITTEN, SLIP, CHANGE = range(4)
"""Roles of tokens. A change is the token at which an edit's new text leaves its old text."""
VOCABULARY_SHARD = 1_000_000
"""Number of the scripts that the vocabulary is learned from."""
DRILL_SHARDS = 2
"""Shards that are all drills; later ones hold one in ten."""
PLAIN_SHARDS = 1
"""Shards of plain generated text; a small model learns to copy there. Later ones are rich and hold library code."""
MIXED_FROM = 38
"""From this shard on the scripted solvers are of mixed skill: some give up, some edit another line."""
MIXED = Habits(gives_up=0.15, wrong_line=0.15)


@dataclass(frozen=True)
class Sequence:
    """One script as tokens."""

    ids: np.ndarray
    roles: np.ndarray


def reply_text(script: Script, turn: int) -> str:
    """What the model writes in one turn."""
    step = script.turns[turn]
    calls = "\n".join(render_call(call.name, call.arguments) for call in step.calls)
    return f"{step.content}\n\n{calls}" if step.content and calls else step.content + calls


def encode(tokenizer: PreTrainedTokenizerFast, chat: ChatFormat, script: Script) -> Sequence:
    """Tokens of a script and their roles."""
    profile = load_profile("leaf")
    ids = list(chat.prompt(profile.system, script.user, profile.tools))
    roles = [READ] * len(ids)
    for number, step in enumerate(script.turns):
        text = reply_text(script, number)
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        said = [*encoded["input_ids"], chat.end_of_turn]
        ids += said
        if step.slip:
            roles += [SLIP] * len(said)
        else:
            at = _change(step, text)
            spans = encoded["offset_mapping"]
            roles += [*(CHANGE if start <= at < end else WRITTEN for start, end in spans), WRITTEN]
        if step.observations:
            bridge = chat.bridge([(seen.tool, seen.text) for seen in step.observations], said[-1])
            ids += bridge
            roles += [READ] * len(bridge)
    return Sequence(np.asarray(ids, dtype=np.uint16), np.asarray(roles, dtype=np.uint8))


def _change(turn: Turn, text: str) -> int:
    """Where in ``text``, the turn's reply, its edit's new text leaves the old one; -1 for other turns."""
    arguments = turn.calls[0].arguments if turn.calls else {}
    old, new = str(arguments.get("old_string", "")), str(arguments.get("new_string", ""))
    if old == new:
        return -1
    alike = (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other)
    return text.rindex(new) + next(alike, min(len(old), len(new)))


def scripts(number: int, seed: int, count: int) -> Iterator[Script]:
    """``count`` scripts of shard ``number``."""
    with tempfile.TemporaryDirectory() as folder:
        plain = number < PLAIN_SHARDS
        habits = Habits(library=0.0) if plain else MIXED if number >= MIXED_FROM else Habits()
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
            roles=np.concatenate([sequence.roles for sequence in sequences]),
            lengths=lengths,
        )
    part.replace(path)
    return path


def read_shard(path: Path) -> list[Sequence]:
    """The sequences of a shard."""
    with np.load(path) as data:
        ends = np.cumsum(data["lengths"])
        pairs = zip(np.split(data["ids"], ends[:-1]), np.split(data["roles"], ends[:-1]), strict=True)
        return [Sequence(ids, roles) for ids, roles in pairs]
