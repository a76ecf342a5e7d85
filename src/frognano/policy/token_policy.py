"""A policy over a token engine: sessions that keep the exact tokens.

The ids that were sampled are the ids of the row; a turn is joined to the next by the chat format's bridge, with mask 0,
as is an end of turn that the model did not sample itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from torch import Tensor

from frognano.config.engine import EngineSettings
from frognano.policy.chat import ChatFormat
from frognano.policy.checkpoint import load_model
from frognano.policy.contract import PolicyError, Sampling
from frognano.policy.engine import TorchEngine
from frognano.policy.generation import EngineStats, Generation
from frognano.policy.messages import assistant_message, tool_messages
from frognano.policy.parser import parse_reply
from frognano.records import Observation, Reply, TokenRow, Usage, VersionSpan


def checkpoint_policy(name: str | Path, settings: EngineSettings | None = None) -> TokenPolicy:
    """A policy on the model of a checkpoint folder (``tadpole``: the bundled one). Raises CheckpointFolderError."""
    loaded = load_model(name)
    return TokenPolicy(TorchEngine(loaded.model, settings), ChatFormat(loaded.tokenizer), loaded.folder.name)


class TokenPolicy:
    """Sessions on one engine; entering starts the engine, leaving stops it."""

    def __init__(self, engine: TorchEngine, chat: ChatFormat, label: str = "model") -> None:
        self.engine = engine
        self.chat = chat
        self._label = label

    @property
    def name(self) -> str:
        """``label@version``."""
        return f"{self._label}@{self.engine.version}"

    async def __aenter__(self) -> TokenPolicy:
        self.engine.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self.engine.stop)

    async def open(self, system: str, user: str, tools: Sequence[dict[str, Any]], sampling: Sampling) -> TokenSession:
        prompt = self.chat.prompt(system, user, tools)
        messages = [{"role": "system", "content": system}] if system.strip() else []
        return TokenSession(self, prompt, [*messages, {"role": "user", "content": user}], tools, sampling)

    def announce(self, sessions: int) -> None:
        """Sessions about to open (negative: that will not); only an engine in waves needs to know."""
        self.engine.announce(sessions)

    async def update(self, state: Mapping[str, Tensor], version: int) -> None:
        """Swap the weights between two steps; ``state`` must not change meanwhile."""
        await asyncio.wrap_future(self.engine.update(state, version))

    def stats(self) -> EngineStats:
        return self.engine.stats()


class TokenSession:
    """One conversation with its exact tokens."""

    def __init__(
        self,
        policy: TokenPolicy,
        prompt: list[int],
        messages: list[dict[str, Any]],
        tools: Sequence[dict[str, Any]],
        sampling: Sampling,
    ) -> None:
        self._engine, self._chat, self._tools = policy.engine, policy.chat, tools
        self._sampling = sampling
        self._conversation = policy.engine.open(sampling)
        self._messages = messages
        self._ids: list[int] = []
        self._mask: list[int] = []
        self._logprobs: list[float] = []
        self._spans: list[VersionSpan] = []
        self._new: list[int] = []
        self._turn = 0
        self._closed = False
        self._append(prompt)

    @property
    def context_tokens(self) -> int:
        return len(self._ids)

    @property
    def messages(self) -> Sequence[dict[str, Any]]:
        return self._messages

    async def reply(self, max_tokens: int, timeout_s: float) -> Reply:
        if not self._new:
            raise PolicyError("the last reply was not answered")
        before = len(self._ids)
        limit = min(max_tokens, self._sampling.max_tokens)
        stop_ids = self._chat.stop_ids | self._engine.stop_ids
        answer = self._engine.submit(self._conversation, self._new, limit, stop_ids)
        self._new = []
        generation = await self._wait(answer, timeout_s)
        self._record(generation)
        if generation.finish == "cancelled":
            raise TimeoutError(f"no whole reply within {timeout_s:g} s")
        cut = generation.finish == "length"
        parsed = parse_reply(
            self._chat.decode(generation.ids[:-1] if generation.finish == "stop" else generation.ids),
            self._tools,
            thinking=self._chat.thinking,
            cut=cut,
            id_prefix=f"call_{self._turn}",
        )
        self._turn += 1
        reply = Reply(
            content=parsed.content,
            reasoning=parsed.reasoning,
            calls=parsed.calls,
            finish_reason="length" if cut else "tool_calls" if parsed.calls else "stop",
            usage=Usage(prompt_tokens=before, completion_tokens=len(generation.ids)),
        )
        self._messages.append(assistant_message(reply))
        return reply

    async def _wait(self, answer: Future[Generation], timeout_s: float) -> Generation:
        waiting = asyncio.wrap_future(answer)
        try:
            return await asyncio.wait_for(asyncio.shield(waiting), timeout_s)
        except TimeoutError:
            self._engine.cancel(answer)
            return await waiting
        except asyncio.CancelledError:
            self._engine.cancel(answer)
            # Nobody waits for it any more; an engine that stops now has told whom it could.
            waiting.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise

    def observe(self, observations: Sequence[Observation]) -> None:
        self._messages += tool_messages(observations)
        self._append(self._chat.bridge([(each.tool, each.text) for each in observations], self._ids[-1]))

    def _append(self, ids: Sequence[int]) -> None:
        """Tokens that were not sampled."""
        self._ids += ids
        self._mask += [0] * len(ids)
        self._logprobs += [0.0] * len(ids)
        self._new += ids

    def _record(self, generation: Generation) -> None:
        start = len(self._ids)
        for span in generation.spans:
            if not self._spans or self._spans[-1].version != span.version:
                self._spans.append(VersionSpan(start=start + span.start, version=span.version))
        self._ids += generation.ids
        self._mask += [1] * len(generation.ids)
        self._logprobs += generation.logprobs

    def tokens(self) -> TokenRow:
        return TokenRow(
            ids=tuple(self._ids), mask=tuple(self._mask), logprobs=tuple(self._logprobs), spans=tuple(self._spans)
        )

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._engine.close(self._conversation)
