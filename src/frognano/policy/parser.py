"""Reads a reply of the model: reasoning, content, calls (the Qwen3-Coder call format, and JSON in the same tags).

A call is run as it was written or not at all: values are recovered in full whatever tags they hold, and a text that
cannot be read with certainty becomes a call with ``error``. Calls inside thinking or inside a code fence are talk, not
acts. A reply that was cut by the token limit runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frognano.policy.arguments import ToolShape, parse_arguments, render_call, tool_shapes, typed
from frognano.policy.call_grammar import FoundCall, find_calls
from frognano.records import ToolCall

__all__ = ["CUT", "ParsedReply", "parse_arguments", "parse_reply", "render_call", "split_reasoning"]

CUT = "the reply was cut by the token limit, so this call was not run; do the work in smaller calls"
"""Answer to every call of a reply that ended by length."""

_ADVICE = "The call was not run. Write it again: <tool_call>, <function=NAME>, <parameter=KEY>, value, and each closed."


@dataclass(frozen=True)
class ParsedReply:
    """One reply, taken apart."""

    content: str
    reasoning: str
    calls: tuple[ToolCall, ...]


def parse_reply(
    text: str,
    tools: Sequence[Mapping[str, Any]],
    *,
    thinking: bool = False,
    cut: bool = False,
    id_prefix: str = "call",
) -> ParsedReply:
    """Take ``text`` apart.

    ``thinking``: the prompt already opened ``<think>``. ``cut``: the reply ended by its token limit.
    Call ids are ``id_prefix`` and the call's number.
    """
    shapes = tool_shapes(tools)
    reasoning, body = split_reasoning(text, thinking)
    found = find_calls(body, shapes)
    calls = tuple(
        _call(call, shapes.get(call.name), f"{id_prefix}_{number}", body[call.start : call.end], cut)
        for number, call in enumerate(found)
    )
    content, at = "", 0
    for call in found:
        content, at = content + body[at : call.start], call.end
    return ParsedReply((content + body[at:]).strip(), reasoning.strip(), calls)


def split_reasoning(text: str, thinking: bool) -> tuple[str, str]:
    """(reasoning, rest). A ``</think>`` counts when thinking was open or no call came before it."""
    start = text.lstrip()
    if start.startswith("<think>"):
        thinking, text = True, start.removeprefix("<think>")
    before, closed, after = text.partition("</think>")
    if thinking:
        return before, after
    if closed and "<tool_call>" not in before and "`" not in before.rsplit("\n", 1)[-1]:
        return before, after
    return "", text


def _call(found: FoundCall, shape: ToolShape | None, call_id: str, raw: str, cut: bool) -> ToolCall:
    if cut:
        return ToolCall(id=call_id, name=found.name, raw=raw, error=CUT)
    arguments, error = _arguments(found, shape)
    if error:
        return ToolCall(id=call_id, name=found.name, raw=raw, error=f"malformed tool call: {error}. {_ADVICE}")
    return ToolCall(id=call_id, name=found.name, arguments=arguments, raw=raw)


def _arguments(found: FoundCall, shape: ToolShape | None) -> tuple[dict[str, Any], str]:
    if found.error:
        return {}, found.error
    if found.json is not None:
        return parse_arguments(found.json, shape)
    properties = shape.properties if shape is not None else {}
    arguments: dict[str, Any] = {}
    for key, value in found.values:
        if key in arguments:
            return {}, f"parameter {key!r} is given more than once"
        arguments[key] = typed(value, properties.get(key))
    return arguments, ""
