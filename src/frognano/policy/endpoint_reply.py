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
    index: int | None = None
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
        if not isinstance(message, Mapping):
            return
        self.content += _text(message.get("content"))
        self.reasoning += _text(message.get("reasoning_content") or message.get("reasoning"))
        calls = message.get("tool_calls")
        parts = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
        for number, part in enumerate(parts):
            self._add_call(part, number if len(parts) > 1 else -1, whole="message" in choice)

    def _add_call(self, part: Mapping[str, Any], number: int, whole: bool) -> None:
        """Add a call of a whole message, or a piece of one that is streamed.

        Servers number streamed calls from 0, from 1, all alike or not at all, and repeat ids or send them once: a
        piece belongs to the last call of its index unless it brings a new id; without an index its id counts, and
        without either its ``number`` in the chunk.
        """
        index = part.get("index")
        call_id = str(part.get("id") or "")
        known = None
        if not whole and isinstance(index, int):
            known = next((call for call in reversed(self.calls) if call.index == index), None)
            if known is not None and call_id and known.id and call_id != known.id:
                known = None
        elif not whole and call_id:
            known = next((call for call in self.calls if call.id == call_id), None)
        elif not whole and self.calls and number < len(self.calls):
            known = self.calls[number]
        if known is None:
            known = _Call(index=index if isinstance(index, int) else None)
            self.calls.append(known)
        known.id = known.id or call_id
        function = part.get("function")
        if not isinstance(function, Mapping):
            return
        name = str(function.get("name") or "")
        if name and name != known.name:
            known.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            known.arguments += arguments
        elif arguments is not None:
            known.whole = arguments


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
    text, thought = _paired(done.content), _paired(done.reasoning)
    if done.calls:
        reasoning, content = split_reasoning(text, thinking=False)
        calls = _calls(done.calls, shapes, set(taken), prefix, cut)
    else:
        parsed = parse_reply(text, tools, cut=cut, id_prefix=prefix)
        reasoning, content, calls = parsed.reasoning, parsed.content, parsed.calls
        if calls:
            _log.info("the server left %d calls in the text of its reply; they were read there", len(calls))
    return Reply(
        content=content.strip(),
        reasoning=(thought or reasoning).strip(),
        calls=calls,
        finish_reason="length" if cut else "tool_calls" if calls else "stop",
        usage=done.usage,
    )


def _calls(
    found: Sequence[_Call], shapes: Mapping[str, ToolShape], taken: set[str], prefix: str, cut: bool
) -> tuple[ToolCall, ...]:
    calls = []
    for number, call in enumerate(found):
        call_id = _paired(call.id)
        if not call_id or call_id in taken:
            call_id = f"{prefix}_{number}"
        taken.add(call_id)
        name, raw = _paired(call.name), _paired(call.arguments)
        arguments, error = parse_arguments(raw if call.whole is None else call.whole, shapes.get(name))
        arguments = _paired(arguments)  # JSON inside JSON: the escapes of a pair only meet here
        if not name:
            arguments, error = {}, "the call names no tool"
        if cut:
            arguments, error = {}, CUT
        calls.append(
            ToolCall(
                id=call_id, name=name, arguments=arguments, raw=raw or _paired(str(call.whole)), error=_paired(error)
            )
        )
    return tuple(calls)


def _paired(value: Any) -> Any:
    """The value with surrogates that came in two pieces joined and lone ones replaced, in all of its strings."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_paired(item) for item in value]
    if isinstance(value, dict):
        return {_paired(key): _paired(item) for key, item in value.items()}
    return value


def _text(value: object) -> str:
    """Text of a content field: a string, or parts with text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, Mapping))
    return ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
