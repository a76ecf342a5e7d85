"""What an episode is made of: calls, observations, replies, token rows, the trajectory.

Token rows are the truth of training: ``ids`` are what the model read and sampled, in order, never decoded and
encoded again; ``mask`` is 1 exactly where a token was sampled; ``logprobs`` holds the sampler's log-probability
there (0.0 elsewhere); ``spans`` say which policy version sampled from which position on.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from frognano.records.base import Record

ExitReason = Literal[
    "agent",
    "max_turns",
    "max_context_len",
    "max_tokens_per_turn",
    "max_time",
    "llm_query_error",
    "tool_error",
    "unknown",
    "cancelled",
    "infrastructure_error",
    "internal_error",
]
"""Why an episode ended; the reference harness's names."""

TRUNCATED: frozenset[str] = frozenset({"max_turns", "max_context_len", "max_tokens_per_turn", "max_time"})
"""Endings by a budget: graded, and worth less when they pass (RECIPE: truncation)."""

NO_VERDICT: frozenset[str] = frozenset(
    {"llm_query_error", "tool_error", "unknown", "cancelled", "infrastructure_error", "internal_error"}
)
"""Endings that say nothing about the policy: retried, counted apart, never a zero."""


class ToolCall(Record):
    """One call as the model wrote it. ``error`` is set and ``arguments`` empty when it could not be parsed."""

    id: str
    name: str
    arguments: dict[str, Any] = {}
    raw: str = ""
    """The argument text as received, kept for the record."""
    error: str = ""
    """Why the call is malformed; such a call is answered with this text and never run."""


class Observation(Record):
    """The one answer to one call."""

    call_id: str
    tool: str
    text: str
    failed: bool = False
    elapsed_s: float = 0.0


class Usage(Record):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Reply(Record):
    """One turn of the model."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish_reason: Literal["stop", "tool_calls", "length"] = "stop"
    usage: Usage = Usage()


class VersionSpan(Record):
    """Tokens from ``start`` on were sampled by policy ``version``, until the next span."""

    start: int
    version: int


class TokenRow(Record):
    """One trajectory as tokens; all four sequences describe the same positions."""

    ids: tuple[int, ...]
    mask: tuple[int, ...]
    logprobs: tuple[float, ...]
    spans: tuple[VersionSpan, ...] = ()

    @model_validator(mode="after")
    def _lengths_agree(self) -> TokenRow:
        if not len(self.ids) == len(self.mask) == len(self.logprobs):
            raise ValueError(
                f"token row: {len(self.ids)} ids, {len(self.mask)} mask entries and "
                f"{len(self.logprobs)} log-probabilities; they must be equally many"
            )
        return self

    @property
    def oldest_version(self) -> int:
        """The oldest policy version that sampled a token of this row."""
        return min((span.version for span in self.spans), default=0)

    @property
    def sampled(self) -> int:
        """Number of sampled tokens."""
        return sum(self.mask)


class Step(Record):
    """One turn and its observations, as appended to the step log."""

    step: int
    reply: Reply
    observations: tuple[Observation, ...] = ()
    context_tokens: int = 0
    elapsed_s: float = 0.0


class Verdict(Record):
    """What grading said. ``reward`` is None when there is no verdict (an infrastructure failure)."""

    reward: float | None
    reason: str = ""
    """Short code: ``passed``, ``failed``, ``test_timeout``, ``tampered``, ``no_verdict``…"""
    outcomes: dict[str, str] = {}
    """Node id → passed, failed, error, skipped, missing."""
    detail: str = ""
    elapsed_s: float = 0.0

    @property
    def passed(self) -> bool:
        """True when every grading test passed."""
        return self.reward is not None and self.reward >= 1.0


class Trajectory(Record):
    """A whole episode: how it went, how it ended, what it changed, how it was graded."""

    schema_version: Literal[1] = 1
    id: str
    task_id: str
    seed: int = 0
    policy: str = ""
    profile: str = "leaf"
    """Tool text profile: ``leaf`` or ``reference``."""
    messages: tuple[dict[str, Any], ...] = ()
    """OpenAI-shaped chat messages, as sent and received."""
    steps: tuple[Step, ...] = ()
    exit_reason: ExitReason
    error: str = ""
    final_message: str = ""
    context_tokens: int = 0
    elapsed_s: float = 0.0
    patch: str = ""
    """The change as a git patch; bytes that are not UTF-8 are kept with surrogateescape."""
    tokens: TokenRow | None = None
    verdict: Verdict | None = None

    @property
    def truncated(self) -> bool:
        """True when a budget ended the episode."""
        return self.exit_reason in TRUNCATED
