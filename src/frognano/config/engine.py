"""Settings of the in-process token engine."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from frognano.config.base import Settings


class EngineSettings(Settings):
    """How the in-process engine samples."""

    max_rows: int = Field(default=64, ge=1)
    """Conversations that are sampled in one batch."""
    max_context: int = Field(default=0, ge=0)
    """Tokens a conversation may hold; 0 takes the model's own limit."""
    max_read_tokens: int = Field(default=4096, ge=1)
    """New tokens that are read in one pass."""
    prompt_cache: int = Field(default=64, ge=0)
    """First prompts whose memory is kept for the other rollouts of their group; 0 keeps none."""
    kv_on_sync: Literal["keep", "recompute"] = "keep"
    """What becomes of remembered tokens when the weights change: kept as they are, or read again."""
    wave: bool = False
    """Generate only when every open conversation waits, so that batches are a function of the inputs."""
    threads: int = Field(default=1, ge=1)
    """Threads of one matrix product."""
