"""Puts a chat completion together, streamed or not, and reads it as a reply.

Servers differ in where they put things; whatever arrives, every call has an id of its own and either arguments or an
error, calls that a server left in the text are found there, and a reply that was cut runs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from frognano.policy.arguments import ToolShape, parse_arguments
from frognano.policy.parser import CUT, parse_reply, split_reasoning
from frognano.records import Reply, ToolCall, Usage

_LENGTH = frozenset({"length", "max_tokens", "max_new_tokens"})
_log = logging.getLogger(__name__)


@dataclass
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""
    whole: object = None
    """Arguments that came as an object."""


@dataclass
class Completion:
    """What has arrived of one completion. ``choices``: whether any choice was seen."""

    content: str = ""
    reasoning: str = ""
    finish: str = ""
    choices: bool = False
    usage: Usage = field(default_factory=Usage)
    calls: list[_Call] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Nothing was said at all."""
        return not (self.content.strip() or self.reasoning.strip() or self.calls)

    def add(self, body: Mapping[str, Any]) -> None:
        """Add a whole response or one chunk of a stream."""
        usage = body.get("usage")
        if isinstance(usage, Mapping):
            self.usage = Usage(
                prompt_tokens=_count(usage.get("prompt_tokens")),
                completion_tokens=_count(usage.get("completion_tokens")),
            )
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            return
        self.choices = True
        choice = choices[0]
        self.finish = str(choice.get("finish_reason") or self.finish)
        message = choice.get("delta") or choice.get("message") or {}
        self.content += _text(message.get("content"))
        self.reasoning += _text(message.get("reasoning_content") or message.get("reasoning"))
        for number, call in enumerate(message.get("tool_calls") or ()):
            if isinstance(call, Mapping):
                self._add_call(call, number)

    def _add_call(self, part: Mapping[str, Any], number: int) -> None:
        place = part.get("index")
        call_id = str(part.get("id") or "")
        known = next((call for call in self.calls if call_id and call.id == call_id), None)
        if isinstance(place, int) and 0 <= place <= len(self.calls):
            number = place
        elif known is None and call_id:
            number = len(self.calls)
        while known is None and len(self.calls) <= number:
            self.calls.append(_Call())
        call = known or self.calls[number]
        call.id = call.id or call_id
        function = part.get("function") or {}
        name = str(function.get("name") or "")
        if name and name != call.name:
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments += arguments
        elif arguments is not None:
            call.whole = arguments


def read_completion(
    done: Completion,
    tools: Sequence[Mapping[str, Any]],
    shapes: Mapping[str, ToolShape],
    taken: Collection[str],
    prefix: str,
) -> Reply:
    """The reply. ``taken``: call ids that the conversation already uses; ``prefix`` names calls without a good one."""
    cut = done.finish in _LENGTH
    calls: tuple[ToolCall, ...]
    if done.calls:
        reasoning, content = split_reasoning(done.content, thinking=False)
        calls = _calls(done.calls, shapes, set(taken), prefix, cut)
    else:
        parsed = parse_reply(done.content, tools, cut=cut, id_prefix=prefix)
        reasoning, content, calls = parsed.reasoning, parsed.content, parsed.calls
        if calls:
            _log.info("the server left %d calls in the text of its reply; they were read there", len(calls))
    return Reply(
        content=content.strip(),
        reasoning=(done.reasoning or reasoning).strip(),
        calls=calls,
        finish_reason="length" if cut else "tool_calls" if calls else "stop",
        usage=done.usage,
    )


def _calls(
    found: Sequence[_Call], shapes: Mapping[str, ToolShape], taken: set[str], prefix: str, cut: bool
) -> tuple[ToolCall, ...]:
    calls = []
    for number, call in enumerate(found):
        call_id = call.id if call.id and call.id not in taken else f"{prefix}_{number}"
        taken.add(call_id)
        raw = call.arguments
        arguments, error = parse_arguments(raw if call.whole is None else call.whole, shapes.get(call.name))
        if not call.name:
            arguments, error = {}, "the call names no tool"
        if cut:
            arguments, error = {}, CUT
        calls.append(ToolCall(id=call_id, name=call.name, arguments=arguments, raw=raw or str(call.whole), error=error))
    return tuple(calls)


def _text(value: object) -> str:
    """Text of a content field: a string, or parts with text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, Mapping))
    return ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
