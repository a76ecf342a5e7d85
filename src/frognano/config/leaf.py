"""Settings of one Leaf episode: what the model meets and when the episode must end."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from frognano.config.base import Settings


class LeafSettings(Settings):
    """How an episode runs."""

    profile: Literal["leaf", "reference"] = "leaf"
    """Tool texts: ``leaf``, or ``reference`` for scores that compare with the published harness."""
    max_turns: int = Field(default=75, ge=1)
    """Replies of the model in one episode."""
    max_context_tokens: int = Field(default=65_536, ge=0)
    """Tokens of the whole conversation; 0 leaves the limit to the model."""
    max_tokens_per_turn: int = Field(default=8_192, ge=1)
    """Tokens of one reply; a reply cut here ends the episode and its calls are not run."""
    min_reply_tokens: int = Field(default=64, ge=1)
    """With less room than this left in the context no further reply is asked for (profile ``leaf``)."""
    max_time_s: float | None = Field(default=None, gt=0)
    """Wall seconds of the episode, the model request and the tool call in flight included; none by default."""
    model_timeout_s: float = Field(default=7_200.0, gt=0)
    """Wall seconds of one model request."""
    bash_timeout_s: float = Field(default=120.0, gt=0, le=3_600)
    """Wall seconds of a Bash call that names no timeout."""
    temperature: float = Field(default=1.0, ge=0)
    """Sampling temperature; 0 is greedy."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus sampling; 1 keeps every token."""
    top_k: int = Field(default=0, ge=0)
    """Keep only this many likeliest tokens; 0 keeps all."""
    length_retries: int = Field(default=0, ge=0)
    """Cut replies in a row whose calls are answered with the reason instead of ending the episode."""
    repeat_limit: int = Field(default=0, ge=0)
    """Equal turns with equal answers in a row that end the episode; 0 never ends it for that."""
