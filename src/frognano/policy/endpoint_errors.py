"""What a failed request means: ask again, the context is full, or give up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from frognano.policy.contract import ContextOverflow, PolicyError

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|reduce the length|prompt is too long"
    r"|input is too long|longer than (the model's|the maximum|the model) "
    r"|(context|model) (length|size|window).{0,80}exceed"
    r"|exceed.{0,80}(context|maximum model) (length|size|window)",
    re.IGNORECASE | re.DOTALL,
)
_TRANSIENT = frozenset({408, 409, 425, 429})
_SHOWN = 500


class Transient(PolicyError):
    """A failure that may pass. ``wait_s``: how long the server asks to wait, None when it does not say."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Refused(PolicyError):
    """The server refuses the request as it is. ``text``: what it said, where a changed request may do."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class PromptCut(PolicyError):
    """The server read far less than was sent: its context is smaller than the conversation, and it did not say so."""


def failure(status: int, headers: Mapping[str, str], text: str, said: str) -> PolicyError:
    """The error for an HTTP status; ``text`` is the whole body, ``said`` what of it may be shown."""
    said = said[:_SHOWN]
    if status in {400, 413, 422, 500} and _OVERFLOW.search(text):
        return ContextOverflow(f"the server says that the context is full: {said}")
    if status in _TRANSIENT or status >= 500:
        return Transient(f"HTTP {status}: {said}", _retry_after(headers.get("retry-after", "")))
    hint = ""
    if status in {401, 403}:
        hint = "; check the API key"
    elif status == 404:
        hint = "; check the model's name and the base URL (it usually ends in /v1)"
    may_adapt = text if status in {400, 422} else ""
    return Refused(f"the server refuses the request with HTTP {status}{hint}: {said}", may_adapt)


def _retry_after(value: str) -> float | None:
    """Seconds of a Retry-After header: a number or a date."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
