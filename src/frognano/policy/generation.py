"""What a token engine is asked and answers: conversations, sampled turns, statistics."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal

from frognano.policy.contract import Sampling
from frognano.policy.row_state import RowState
from frognano.records import Record, VersionSpan


class EngineStats(Record):
    """What the engine did since it started."""

    sampled_tokens: int = 0
    read_tokens: int = 0
    shared_tokens: int = 0
    """Prompt tokens that were not read because another conversation had read them."""
    steps: int = 0
    rows_per_step: float = 0.0
    """Mean rows of a step."""
    busy_s: float = 0.0
    """Seconds in which the worker read or sampled."""
    updates: int = 0

    @property
    def tokens_per_s(self) -> float:
        """Sampled tokens per busy second."""
        return self.sampled_tokens / self.busy_s if self.busy_s else 0.0


@dataclass(frozen=True)
class Generation:
    """One sampled turn. ``spans`` count from the first sampled token."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    spans: tuple[VersionSpan, ...]
    finish: Literal["stop", "length", "cancelled"]


@dataclass(eq=False)
class Conversation:
    """Handle of one conversation in the engine; while a turn is being sampled the worker alone touches it."""

    sampling: Sampling
    ids: list[int] = field(default_factory=list)
    """All tokens, read or not."""
    drawn: int = 0
    """Tokens sampled so far: the place in its stream of random numbers."""
    memory: RowState | None = None
    """What the model remembers between turns."""
    memory_version: int = 0

    @property
    def unread(self) -> list[int]:
        """Tokens the model has not read yet."""
        return self.ids[self.memory.length :] if self.memory is not None else self.ids


@dataclass(eq=False)
class Request:
    """A turn that is being sampled."""

    conversation: Conversation
    max_tokens: int
    stop_ids: frozenset[int]
    answer: Future[Generation]
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    spans: list[VersionSpan] = field(default_factory=list)
    cancelled: bool = False

    def add(self, token: int, logprob: float, version: int) -> None:
        """Record a sampled token."""
        if not self.spans or self.spans[-1].version != version:
            self.spans.append(VersionSpan(start=len(self.ids), version=version))
        self.ids.append(token)
        self.logprobs.append(logprob)
        self.conversation.ids.append(token)
        self.conversation.drawn += 1

    def settle(self, finish: Literal["stop", "length", "cancelled"]) -> None:
        """Give the answer."""
        self.answer.set_result(Generation(tuple(self.ids), tuple(self.logprobs), tuple(self.spans), finish))
