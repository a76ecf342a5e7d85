"""The rows that are being sampled: who joins, one token for each, who leaves. One thread only."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from frognano.config.engine import EngineSettings
from frognano.policy.contract import PolicyError
from frognano.policy.fused_runner import make_runner
from frognano.policy.generation import EngineStats, Request
from frognano.policy.row_state import RowState
from frognano.policy.sampler import RowSampler

_ALONE = 1024


class Batch:
    """Between two calls every row has read all its tokens, and ``_logits`` say what it may draw next."""

    def __init__(self, model: Any, settings: EngineSettings, version: int) -> None:
        self._model = model
        self._settings = settings
        self._runner = make_runner(model)
        self._logits = torch.empty((0, model.config.vocab_size), device=model.device)
        self._sampler: RowSampler | None = None
        self._prompts: OrderedDict[tuple[int, ...], tuple[RowState, Tensor]] = OrderedDict()
        self._sampled = self._read = self._shared = self._steps = self._row_steps = self._updates = 0
        self.rows: list[Request] = []
        self.version = version

    def stats(self, busy_s: float) -> EngineStats:
        return EngineStats(
            sampled_tokens=self._sampled,
            read_tokens=self._read,
            shared_tokens=self._shared,
            steps=self._steps,
            rows_per_step=self._row_steps / self._steps if self._steps else 0.0,
            busy_s=busy_s,
            updates=self._updates,
        )

    # Joining

    def join(self, requests: Sequence[Request]) -> None:
        """Read what each request's conversation has not read; equal first prompts are read once."""
        readers: list[Request] = []
        sharers: list[Request] = []
        first: set[tuple[int, ...]] = set(self._prompts)
        for request in requests:
            self._forget_if_stale(request)
            prompt = tuple(request.conversation.ids)
            if request.conversation.drawn or prompt not in first:
                readers.append(request)
                first |= set() if request.conversation.drawn else {prompt}
            else:
                sharers.append(request)
        wanted = {tuple(request.conversation.ids) for request in sharers}
        for group in self._groups(readers):
            self._join_readers(group, wanted)
        if sharers:
            self._join_sharers(sharers)
        while len(self._prompts) > self._settings.prompt_cache:
            self._prompts.popitem(last=False)
        self._sampler = None

    def _forget_if_stale(self, request: Request) -> None:
        conversation = request.conversation
        if self._settings.kv_on_sync == "recompute" and conversation.memory_version != self.version:
            conversation.memory = None

    def _groups(self, requests: Sequence[Request]) -> Iterator[list[Request]]:
        """Requests of like length together, at most ``max_read_tokens`` in one pass; long ones alone."""
        group: list[Request] = []
        for request in sorted(requests, key=lambda request: len(request.conversation.unread)):
            size = len(request.conversation.unread)
            if group and (size > _ALONE or size * (len(group) + 1) > self._settings.max_read_tokens):
                yield group
                group = []
            group.append(request)
        if group:
            yield group

    def _join_readers(self, group: Sequence[Request], wanted: set[tuple[int, ...]]) -> None:
        memories = [request.conversation.memory for request in group]
        new = [request.conversation.unread for request in group]
        logits = self._runner.join(memories, new)
        self._logits = torch.cat((self._logits, logits.to(self._logits.dtype)))
        for row, request in enumerate(group, len(self.rows)):
            request.conversation.memory = None
            prompt = tuple(request.conversation.ids)
            if not request.conversation.drawn and (self._settings.prompt_cache or prompt in wanted):
                self._prompts[prompt] = self._runner.state(row), self._logits[row].clone()
        self.rows += group
        self._read += sum(map(len, new))

    def _join_sharers(self, sharers: Sequence[Request]) -> None:
        known = [self._prompts[tuple(request.conversation.ids)] for request in sharers]
        self._runner.adopt([state for state, _ in known])
        self._logits = torch.cat((self._logits, torch.stack([logits for _, logits in known])))
        for request in sharers:
            self._prompts.move_to_end(tuple(request.conversation.ids))
        self.rows += sharers
        self._shared += sum(len(request.conversation.ids) for request in sharers)

    # Sampling

    def sample(self) -> None:
        """Draw one token for every row, answer the turns that end, let the others read it."""
        if self._sampler is None:
            drawn = [request.conversation.drawn for request in self.rows]
            self._sampler = RowSampler(
                [request.conversation.sampling for request in self.rows], drawn, self._logits.device
            )
        ids, logprobs = self._sampler.draw(self._logits)
        over: list[tuple[int, Literal["stop", "length", "broken"]]] = []
        drawn_ids = zip(self.rows, ids.tolist(), logprobs.tolist(), strict=True)
        for row, (request, token, logprob) in enumerate(drawn_ids):
            if not math.isfinite(logprob):
                over.append((row, "broken"))
                continue
            request.add(token, logprob, self.version)
            if token in request.stop_ids:
                over.append((row, "stop"))
            elif len(request.ids) >= request.max_tokens:
                over.append((row, "length"))
        self._sampled += len(self.rows) - sum(finish == "broken" for _, finish in over)
        self._steps += 1
        self._row_steps += len(self.rows)
        order = list(range(len(self.rows)))
        for row, finish in reversed(over):
            request = self._take_out(row)
            order[row] = order[-1]
            order.pop()
            if finish == "broken":
                request.answer.set_exception(PolicyError("the model's log-probabilities are not finite"))
            else:
                request.settle(finish)
        self._logits = self._runner.step(ids if not over else ids[order]) if self.rows else self._logits[:0]

    def cancel(self) -> None:
        """Take out the rows whose turn was cancelled and answer with what they have."""
        for row in reversed(range(len(self.rows))):
            if self.rows[row].cancelled:
                self._drop_logits(row)
                self._take_out(row).settle("cancelled")

    def clear(self, error: Exception) -> None:
        """Take out every row and answer with ``error``."""
        while self.rows:
            row = len(self.rows) - 1
            self._runner.leave(row)
            self.rows.pop().answer.set_exception(error)
        self._logits = self._logits[:0]

    def _take_out(self, row: int) -> Request:
        """The row leaves with its memory; the last row takes its number."""
        request = self.rows[row]
        request.conversation.memory = self._runner.state(row)
        request.conversation.memory_version = self.version
        self._runner.leave(row)
        self.rows[row] = self.rows[-1]
        self.rows.pop()
        self._sampler = None
        return request

    def _drop_logits(self, row: int) -> None:
        self._logits[row] = self._logits[-1]
        self._logits = self._logits[:-1]

    # Weights

    def forget_prompts(self) -> None:
        self._prompts.clear()

    def update(self, state: Mapping[str, Tensor], version: int) -> None:
        """Other weights from now on. Raises ValueError, with nothing changed, when they are not this model's."""
        own = self._model.state_dict()
        tied = set(getattr(self._model, "all_tied_weights_keys", None) or ())
        missing = sorted(set(own) - set(state) - tied)
        alien = sorted(set(state) - set(own))
        wrong = sorted(name for name in set(state) & set(own) if state[name].shape != own[name].shape)
        if missing or alien or wrong:
            raise ValueError(
                f"these are not the weights of this model: missing {missing[:3]}, unknown {alien[:3]}, "
                f"of another shape {wrong[:3]}"
            )
        for name, value in state.items():
            own[name].copy_(value)
        self.version = version
        self._updates += 1
        self._runner.refresh()
        self._prompts.clear()
        if self._settings.kv_on_sync == "recompute" and self.rows:
            rows, self.rows = self.rows, []
            for row in reversed(range(len(rows))):
                self._runner.leave(row)
            self._logits = self._logits[:0]
            self.join(rows)
