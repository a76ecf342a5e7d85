"""Replies and observations as OpenAI-shaped messages, valid for the strictest server.

Arguments of a malformed call are replayed as valid JSON (its raw text in one field), so that a server which parses
past calls does not refuse the rest of the conversation; the raw text itself stays in the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from frognano.records import Observation, Reply, ToolCall

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def assistant_message(reply: Reply) -> dict[str, Any]:
    """The reply as it stands in the history."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [_call(call) for call in reply.calls]
    return message


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = {"malformed": call.raw} if call.error else call.arguments
    name = call.name if _NAME.fullmatch(call.name) else "malformed"
    text = json.dumps(arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": text}}


def tool_messages(observations: Sequence[Observation]) -> list[dict[str, Any]]:
    """One message for each answer."""
    return [{"role": "tool", "tool_call_id": each.call_id, "content": each.text} for each in observations]
