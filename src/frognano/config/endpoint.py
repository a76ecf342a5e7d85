"""Settings of a chat endpoint."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from frognano.config.base import Settings


class EndpointSettings(Settings):
    """How an OpenAI-compatible chat endpoint is asked."""

    stream: bool = True
    """Ask for a stream: a reply that breaks off is then noticed."""
    retries: int = Field(default=5, ge=0)
    """Further attempts after a passing failure: 429, 5xx, a broken connection or stream, an answer without choices."""
    backoff_s: float = Field(default=1.0, ge=0.0)
    """Wait before the first further attempt; doubled each time, at most ``most_backoff_s``."""
    most_backoff_s: float = Field(default=60.0, ge=0.0)
    """Longest wait between two attempts; a server's Retry-After may ask for up to five times as long."""
    token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Name of the field that bounds a reply; the other one is tried when the server refuses this one."""
    parallel_tool_calls: bool = True
    """Let one reply hold several calls."""
    send_reasoning: bool = True
    """Send earlier reasoning back as ``reasoning_content``; what the server's template does with it is its own."""
    send_seed: bool = True
    """Send the sampling seed."""
    check_prompt: bool = True
    """Fail when the server reports to have read far less than was sent (a prompt that was cut in silence)."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every request."""
