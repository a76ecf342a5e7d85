"""In-process token engine: many conversations, one model, one worker thread.

A conversation only grows, and what the model remembers of it is kept between turns. The worker reads new tokens, then
samples for all waiting conversations together; they join and leave between two steps. What the sampler really used is
what is recorded: the log-probability of each drawn token and the policy version that drew it.

With ``wave`` the worker starts to generate only when every open conversation waits for it and nobody announced is
missing, so that who shares a batch is a function of the inputs alone. Without it nothing waits.

What it does NOT do: share the model with a trainer. It owns the model; weights come in through ``update``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import torch
from torch import Tensor

from frognano.config.engine import EngineSettings
from frognano.policy.batch import Batch
from frognano.policy.contract import ContextOverflow, PolicyError, Sampling
from frognano.policy.generation import Conversation, EngineStats, Generation, Request

_log = logging.getLogger(__name__)
_PATIENCE = 4
_COMPANY = 8


class TorchEngine:
    """The worker and its queue; every public call may come from any thread."""

    def __init__(self, model: Any, settings: EngineSettings | None = None, version: int = 0) -> None:
        self.settings = settings or EngineSettings()
        model.eval().requires_grad_(False)
        limit = int(getattr(model.config, "max_position_embeddings", 0) or 2**31)
        self.max_context = min(self.settings.max_context or limit, limit)
        ends = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
        self.stop_ids = frozenset([ends] if isinstance(ends, int) else ends or ())
        """Ids that end a turn by the model's own generation settings."""
        with torch.inference_mode():
            self._batch = Batch(model, self.settings, version)
        self._wake = threading.Condition()
        self._commands: deque[Callable[[], None]] = deque()
        self._waiting: list[Request] = []
        self._wave: deque[Request] = deque()
        self._open = 0
        self._announced = 0
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._busy_s = 0.0
        self._patience = 0
        self._failure: Exception | None = None

    @property
    def version(self) -> int:
        """Version of the weights in use."""
        return self._batch.version

    def start(self) -> None:
        """Start the worker; a second call does nothing."""
        with self._wake:
            if self._thread is None:
                self._stopping = False
                self._thread = threading.Thread(target=self._work, name="frognano-engine", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Stop the worker; waiting turns end with PolicyError."""
        with self._wake:
            thread, self._thread = self._thread, None
            self._stopping = True
            self._wake.notify_all()
        if thread is not None:
            thread.join()

    def announce(self, conversations: int) -> None:
        """Say that so many conversations are about to open (negative: will not); a wave waits for them."""
        with self._wake:
            self._announced = max(0, self._announced + conversations)
            self._wake.notify_all()

    def open(self, sampling: Sampling) -> Conversation:
        """A new conversation; where some were announced, it is one of them."""
        with self._wake:
            self._open += 1
            self._announced = max(0, self._announced - 1)
        return Conversation(sampling)

    def close(self, conversation: Conversation) -> None:
        """Forget the conversation; to be called once."""
        with self._wake:
            self._open -= 1
            conversation.memory = None
            self._wake.notify_all()

    def submit(
        self, conversation: Conversation, new: Sequence[int], max_tokens: int, stop_ids: frozenset[int]
    ) -> Future[Generation]:
        """Append ``new`` and sample a turn. Raises ContextOverflow when nothing more fits."""
        length = len(conversation.ids) + len(new)
        if length >= self.max_context:
            raise ContextOverflow(f"a conversation of {length} tokens leaves no room in {self.max_context}")
        if not new or max_tokens < 1:
            raise ValueError("a turn needs a new token and room for one")
        conversation.ids.extend(new)
        answer: Future[Generation] = Future()
        answer.set_running_or_notify_cancel()  # from here on only the worker settles it
        request = Request(conversation, min(max_tokens, self.max_context - length), stop_ids, answer)
        with self._wake:
            if self._failure is not None or self._thread is None:
                raise PolicyError(f"the engine is not running: {self._failure or 'it was not started'}")
            self._waiting.append(request)
            self._wake.notify_all()
        return answer

    def cancel(self, answer: Future[Generation]) -> None:
        """End the turn where it stands; its answer is what was sampled so far."""

        def mark() -> None:
            with self._wake:
                everyone = [*self._waiting, *self._wave, *self._batch.rows]
            for request in everyone:
                if request.answer is answer:
                    request.cancelled = True

        self._command(mark)

    def update(self, state: Mapping[str, Tensor], version: int) -> Future[None]:
        """Swap the weights between two steps. ``state`` must not change until the answer is there."""
        done: Future[None] = Future()

        def swap() -> None:
            try:
                with torch.inference_mode():
                    self._batch.update(state, version)
                done.set_result(None)
            except ValueError as error:
                done.set_exception(error)

        self._command(swap)
        return done

    def stats(self) -> EngineStats:
        return self._batch.stats(self._busy_s)

    def _command(self, command: Callable[[], None]) -> None:
        """Let the worker run ``command`` between two steps; without a worker run it now."""
        with self._wake:
            if self._thread is not None:
                self._commands.append(command)
                self._wake.notify_all()
                return
        command()

    # The worker

    def _work(self) -> None:
        torch.set_num_threads(self.settings.threads)
        # Decayed states fill up with numbers too small for the fast path of a CPU; for this thread they are zero.
        torch.set_flush_denormal(True)
        reason = PolicyError("the engine was stopped")
        try:
            with torch.inference_mode():
                while self._turn():
                    pass
        except Exception as error:  # whatever broke the model: every waiting conversation must hear of it
            _log.exception("the engine failed")
            self._failure = error
            reason = PolicyError(f"the engine failed: {error}")
        with self._wake:
            left = [*self._wave, *self._waiting]
            commands, self._commands = self._commands, deque()
            self._waiting, self._wave = [], deque()
            self._thread = None
        self._batch.clear(reason)
        for request in left:
            request.answer.set_exception(reason)
        for command in commands:
            command()

    def _turn(self) -> bool:
        """One round: commands, newcomers, one token for every row. False when the worker is to stop."""
        with self._wake:
            while not (self._stopping or self._commands or self._batch.rows or self._wave or self._may_start()):
                self._wake.wait()
            if self._stopping:
                return False
            commands, self._commands = self._commands, deque()
        started = time.perf_counter()
        for command in commands:
            command()
        self._drop_cancelled()
        joining = self._joining()
        if joining:
            self._batch.join(joining)
        if self._batch.rows:
            self._batch.sample()
        self._busy_s += time.perf_counter() - started
        return True

    def _may_start(self) -> bool:
        if not self.settings.wave:
            return bool(self._waiting)
        return bool(self._waiting) and not self._announced and len(self._waiting) >= self._open

    def _drop_cancelled(self) -> None:
        with self._wake:
            gone = [request for request in (*self._waiting, *self._wave) if request.cancelled]
            self._waiting = [request for request in self._waiting if not request.cancelled]
            self._wave = deque(request for request in self._wave if not request.cancelled)
        for request in gone:
            request.settle("cancelled")
        self._batch.cancel()

    def _joining(self) -> list[Request]:
        """Who joins now: whoever waits while there is room; in a wave only those it began with.

        A pass over new tokens costs much the same for one conversation as for several. So while others are being
        sampled a newcomer waits a few steps for company.
        """
        room = self.settings.max_rows - len(self._batch.rows)
        with self._wake:
            if not self.settings.wave:
                self._patience = self._patience + 1 if self._waiting and room else 0
                few = len(self._waiting) < min(room, len(self._batch.rows) / _COMPANY)
                if few and self._patience <= _PATIENCE:
                    return []
                self._patience = 0
                joining, self._waiting = self._waiting[:room], self._waiting[room:]
                return joining
            if not self._wave and not self._batch.rows and self._may_start():
                self._wave = deque(sorted(self._waiting, key=_order))
                self._waiting = []
                self._batch.forget_prompts()
            return [self._wave.popleft() for _ in range(min(room, len(self._wave)))]


def _order(request: Request) -> tuple[int, list[int]]:
    return request.conversation.sampling.seed, request.conversation.ids
