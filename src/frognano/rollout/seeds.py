"""Seeds that are a function of what they are for, so that a resumed run draws what the undisturbed one would have."""

from __future__ import annotations

import hashlib

BITS = 48


def seed_of(run_seed: int, *parts: str | int) -> int:
    """A seed of 48 bits for ``parts`` (names and numbers) of the run seeded with ``run_seed``."""
    text = "\x1f".join(str(part) for part in (run_seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[: BITS // 8], "big")
