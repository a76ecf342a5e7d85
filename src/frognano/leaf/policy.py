"""Who acts, as the episode loop sees it: a policy opens sessions; a session is one conversation that only grows.

The contract stands beside the loop that calls it, because a row of the tree imports only rows above it. Chat
endpoints and token engines stand behind the same calls, so the loop does not know which it talks to. A session of a
token engine also keeps the exact tokens; a chat endpoint returns None there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from frognano.records import Observation, Record, Reply, TokenRow


class PolicyError(RuntimeError):
    """The model could not be asked (network, server, bad answer) after the allowed retries."""


class ContextOverflow(PolicyError):
    """The server or the engine says that the conversation no longer fits its context."""


class Sampling(Record):
    """How replies are sampled; the defaults are the paper's training settings."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0 means no limit."""
    max_tokens: int = 8192
    """Tokens per turn."""
    seed: int = 0
    """Seeds the whole conversation; two sessions with equal seeds and inputs sample alike where the engine can."""


class Session(Protocol):
    """One conversation."""

    @property
    def context_tokens(self) -> int:
        """Tokens of the conversation so far, counted where possible, else estimated."""
        ...

    @property
    def messages(self) -> Sequence[dict[str, Any]]:
        """The conversation as OpenAI-shaped messages, for the trajectory."""
        ...

    async def reply(self, max_tokens: int, timeout_s: float) -> Reply:
        """Sample the next turn of at most ``max_tokens`` within ``timeout_s`` wall seconds.

        Raises ContextOverflow, or PolicyError. On timeout raises TimeoutError.
        """
        ...

    def observe(self, observations: Sequence[Observation]) -> None:
        """Append the answers to the calls of the last reply: exactly one for each call id, in order."""
        ...

    def tokens(self) -> TokenRow | None:
        """The exact tokens so far; None where the engine does not give them."""
        ...

    async def close(self) -> None:
        """Free what the session holds; safe to call twice."""
        ...


class Policy(Protocol):
    """A source of sessions, used as an async context manager."""

    @property
    def name(self) -> str:
        """Name for logs and calibration, for example ``tadpole@12``."""
        ...

    async def __aenter__(self) -> Policy: ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def open(self, system: str, user: str, tools: Sequence[dict[str, Any]], sampling: Sampling) -> Session:
        """Begin a conversation: system prompt, user message, OpenAI tool schemas."""
        ...
