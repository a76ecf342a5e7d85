"""Finds the calls in a reply: the one reading of its tags in which nothing is cut short.

Values may hold any of the tags themselves, so no single closing tag decides. Every way of reading the text is a path
through a small graph: a value ends at ``</parameter>`` only where a parameter or ``</function>`` follows, a call at
``</function>`` where ``</tool_call>`` follows. A path costs one for each tag that its values leave unmatched and more
for each departure from the format; the cheapest path is the reading. Two cheapest paths that differ make the text
ambiguous: what they share is kept, the rest becomes an error and is never run.

Limit: a value that is letter for letter the end of one call and the start of another cannot be told from two calls.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from frognano.policy.arguments import ToolShape

_NAME = r"[\w.\-]+"
_TAGS = re.compile(rf"<(?:(?P<kind>/?tool_call|/function|/parameter)|(?P<open>function|parameter)=(?P<name>{_NAME}))>")
_PROSE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})|(?P<think><think>)|<tool_call>|<function=", re.MULTILINE)
_CLOSES = {"/tool_call": "tool_call", "/function": "function", "/parameter": "parameter"}
_END = "end"

# The prices order the readings; only their order matters.
_UNCLOSED = 1
_UNKNOWN_KEY = 1
_MISSING_KEY = 1
_NO_WRAPPER = 1
_LATE_PROSE = 1
_KEY_TWICE = 2
_STRAY_TAG = 2
_NO_WRAPPER_INSIDE = 3
_OFF_FRAME_KEY = 2
_OFF_FRAME_CALL = 6
_FAULT = 4
_UNFINISHED = 1000

_MOST_STEPS = 5000


@dataclass(frozen=True)
class Tag:
    """One tag: ``kind`` is its name with a slash when it closes; ``name`` of a function or parameter."""

    kind: str
    name: str
    start: int
    end: int


@dataclass(frozen=True)
class FoundCall:
    """One call in the text: its values as written, or the reason why it is none. ``start``/``end``: characters."""

    name: str
    start: int
    end: int
    values: tuple[tuple[str, str], ...] = ()
    error: str = ""
    json: object = None
    """Arguments of a call written as JSON; None for the tagged form."""
    framed: bool = True
    """Its first tags stand on lines of their own, so the others must."""


@dataclass(frozen=True)
class _Node:
    """Where a reading stands: in prose at character ``at``, or inside the value opened by tag ``at``, or at the end."""

    kind: str
    at: int
    calls: tuple[FoundCall, ...] = ()
    call: FoundCall | None = None
    wrapped: bool = True


_Step = tuple[int, _Node]


def find_calls(text: str, tools: Mapping[str, ToolShape]) -> tuple[FoundCall, ...]:
    """The calls of ``text`` (its leading reasoning taken off), in order; at most one error, as the last."""
    if "<tool_call>" not in text and "<function=" not in text:
        return ()
    return _Readings(text, tools).best()


class _Readings:
    """All readings of one text, cheapest first."""

    def __init__(self, text: str, tools: Mapping[str, ToolShape]) -> None:
        self.text = text
        self.tools = tools
        self.tags = [
            Tag(found["kind"] or found["open"], found["name"] or "", found.start(), found.end())
            for found in _TAGS.finditer(text)
        ]
        self.tags.append(Tag(_END, "", len(text), len(text)))
        self.index = {tag.start: number for number, tag in enumerate(self.tags[:-1])}

    def best(self) -> tuple[FoundCall, ...]:
        heap: list[tuple[int, int, _Node]] = [(0, 0, _Node("prose", 0))]
        first: tuple[int, tuple[FoundCall, ...]] | None = None
        pushed = 0
        while heap:
            cost, _, node = heapq.heappop(heap)
            if first is not None and cost > first[0]:
                break
            if node.kind == _END:
                if first is None:
                    first = cost, node.calls
                elif _meaning(first[1]) != _meaning(node.calls):
                    return _ambiguous(first[1], node.calls)
                continue
            for price, following in self._expand(node):
                pushed += 1
                heapq.heappush(heap, (cost + price, pushed, following))
            if pushed > _MOST_STEPS:
                start = self.text.find("<")
                return (FoundCall("", start, len(self.text), error="it holds too many tags to be read with certainty"),)
        return first[1] if first is not None else ()

    def _expand(self, node: _Node) -> Iterator[_Step]:
        return self._prose(node) if node.kind == "prose" else self._value(node)

    # Prose between calls

    def _prose(self, node: _Node) -> Iterator[_Step]:
        start, fault = self._next_start(node.at)
        stop = len(self.text) if start is None else start
        price = self._prose_price(node.at, stop) if node.calls else 0
        if start is None:
            yield price, replace(node, kind=_END)
        elif fault:
            yield price + _FAULT, self._fault(node.calls, "", start, fault)
        else:
            for more, following in self._begin(node, start):
                yield price + more, following

    def _prose_price(self, start: int, stop: int) -> int:
        text = self.text[start:stop]
        return bool(text.strip()) * _LATE_PROSE + _STRAY_TAG * len(_TAGS.findall(_without_fences(text)))

    def _next_start(self, at: int) -> tuple[int | None, str]:
        """The next place where a call begins, past code fences and thinking; with a reason when it cannot count."""
        while found := _PROSE.search(self.text, at):
            if found["fence"]:
                closing = _fence_end(self.text, found)
                if closing is None:
                    inside = re.compile(r"<tool_call>\s*<function=").search(self.text, found.end())
                    return (inside.start(), "it stands in a code fence that is never closed") if inside else (None, "")
                at = closing
            elif found["think"]:
                closed = self.text.find("</think>", found.end()) if self._line_start(found.start()) else found.end()
                if closed < 0:
                    return None, ""
                at = closed
            elif (quoted := self._inline_code_end(found.start())) > 0:
                at = quoted
            elif self._line_start(found.start()) or self._opens_call(found.start()):
                return found.start(), ""
            else:
                at = found.end()
        return None, ""

    def _inline_code_end(self, start: int) -> int:
        """Where the inline code that holds ``start`` ends; 0 when it stands in none."""
        line = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        return self.text.find("`", start) + 1 if line.count("`") % 2 else 0

    def _opens_call(self, start: int) -> bool:
        number = self.index.get(start, -1)
        return number >= 0 and self.tags[number].kind == "tool_call" and self._follows(number) == "function"

    def _line_start(self, start: int) -> bool:
        return not self.text[self.text.rfind("\n", 0, start) + 1 : start].strip()

    # A call

    def _begin(self, node: _Node, start: int) -> Iterator[_Step]:
        number = self.index.get(start, -1)
        wrapped = number >= 0 and self.tags[number].kind == "tool_call"
        if wrapped and self.text[self.tags[number].end :].lstrip().startswith("{"):
            yield self._json_call(node, self.tags[number])
            return
        function = number + wrapped
        if number < 0 or (wrapped and self._follows(number) != "function"):
            found = self._here(self.tags[number].end if wrapped else start)
            wanted = "<tool_call> must be followed by <function=NAME>" if wrapped else "expected <function=NAME>"
            yield _FAULT, self._fault(node.calls, "", start, f"{wanted}, found {found}")
            return
        after = self._follows(function)
        framed = (not wrapped or self._gap(number) == "\n") and (not after or self._gap(function) == "\n")
        call = FoundCall(self.tags[function].name, start, start, framed=framed)
        opened = _Node("value", function, node.calls, call, wrapped)
        price = 0 if wrapped else _NO_WRAPPER
        if node.calls and node.calls[0].framed != framed:
            price += _OFF_FRAME_CALL
        if after == "parameter":
            yield price + self._key_price(call, self.tags[function + 1].name), replace(opened, at=function + 1)
        elif after == "/function":
            for more, following in self._close(opened, function + 1):
                yield price + more, following
        else:
            found = self._here(self.tags[function].end)
            why = f"after <function={call.name}> expected <parameter=NAME> or </function>, found {found}"
            yield price + _FAULT, self._fault(node.calls, call.name, start, why)

    def _value(self, node: _Node) -> Iterator[_Step]:
        """Every place where the value opened by tag ``node.at`` may end."""
        assert node.call is not None
        opened: list[str] = []
        strays = 0
        for number in range(node.at + 1, len(self.tags) - 1):
            tag = self.tags[number]
            price = strays + len(opened)
            if tag.kind == "/parameter":
                yield from self._closed_value(node, number, price)
            elif tag.kind in {"parameter", "/function"}:
                yield from self._unclosed_value(node, number, price)
            if tag.kind not in _CLOSES:
                opened.append(tag.kind)
            elif opened and opened[-1] == _CLOSES[tag.kind]:
                opened.pop()
            else:
                strays += 1
        key = self.tags[node.at].name
        why = f"parameter {key!r} of {node.call.name} is not finished: no </parameter> and </function> follow"
        yield _UNFINISHED + strays + len(opened), self._fault(node.calls, node.call.name, node.call.start, why)

    def _closed_value(self, node: _Node, number: int, price: int) -> Iterator[_Step]:
        after = self._follows(number)
        call = self._with_value(node, number)
        value = self.text[self.tags[node.at].end : self.tags[number].start]
        off_frame = (len(value) < 2 or value[0] != "\n" or value[-1] != "\n") + (self._gap(number) != "\n")
        if after == "parameter":
            key = self.tags[number + 1].name
            price += off_frame * _OFF_FRAME_KEY if call.framed else 0
            yield price + self._key_price(call, key), replace(node, at=number + 1, call=call)
        elif after == "/function":
            price += off_frame * _OFF_FRAME_CALL if call.framed else 0
            for more, following in self._close(replace(node, call=call), number + 1):
                yield price + more, following
        elif after in {"/tool_call", "tool_call", "function", _END} or self._looks_like_tag(self.tags[number].end):
            found = self._here(self.tags[number].end)
            key = self.tags[node.at].name
            why = f"after </parameter> of {key!r} expected <parameter=NAME> or </function>, found {found}"
            yield price + _FAULT, self._fault(node.calls, call.name, call.start, why)

    def _unclosed_value(self, node: _Node, number: int, price: int) -> Iterator[_Step]:
        """A value without ``</parameter>``: it ends before a known parameter on its own line, or ``</function>``."""
        assert node.call is not None
        tag = self.tags[number]
        if (self.tags[number - 1].kind == "/parameter" and self._follows(number - 1)) or not self._line_start(
            tag.start
        ):
            return
        call = self._with_value(node, number)
        if tag.kind == "/function":
            for more, following in self._close(replace(node, call=call), number):
                yield price + _UNCLOSED + more, following
            return
        shape = self.tools.get(call.name)
        taken = {key for key, _ in call.values}
        if tag.name not in taken and (shape is None or tag.name in shape.properties):
            yield price + _UNCLOSED, replace(node, at=number, call=call)

    def _close(self, node: _Node, number: int) -> Iterator[_Step]:
        """The call ends at ``</function>``, tag ``number``."""
        assert node.call is not None
        after = self._follows(number)
        end, price = self.tags[number].end, 0
        if after == "/tool_call":
            end = self.tags[number + 1].end
            price = _OFF_FRAME_CALL if node.call.framed and self._gap(number) != "\n" else 0
        elif node.wrapped:
            price = _NO_WRAPPER if after in {_END, "tool_call"} else _NO_WRAPPER_INSIDE
        given = {key for key, _ in node.call.values}
        shape = self.tools.get(node.call.name)
        if shape is not None and not shape.required <= given:
            price += _MISSING_KEY
        yield price, _Node("prose", end, (*node.calls, replace(node.call, end=end)))

    def _json_call(self, node: _Node, tag: Tag) -> _Step:
        """The older form, a JSON object between the tags; its end is where JSON ends."""
        start = len(self.text) - len(self.text[tag.end :].lstrip())
        try:
            found, end = json.JSONDecoder(strict=False).raw_decode(self.text, start)
        except (ValueError, RecursionError) as error:
            return _FAULT, self._fault(node.calls, "", tag.start, f"invalid JSON in <tool_call>: {error}")
        closing = re.compile(r"\s*</tool_call>").match(self.text, end)
        name = found.get("name")
        if not isinstance(name, str) or (closing is None and self.text[end:].strip()):
            why = "<tool_call> must hold one object with name and arguments, then </tool_call>"
            return _FAULT, self._fault(node.calls, name if isinstance(name, str) else "", tag.start, why)
        stop = closing.end() if closing else end
        call = FoundCall(name, tag.start, stop, json=found.get("arguments") or {})
        return 0, _Node("prose", stop, (*node.calls, call))

    # Small questions

    def _gap(self, number: int) -> str:
        return self.text[self.tags[number].end : self.tags[number + 1].start]

    def _follows(self, number: int) -> str:
        """Kind of the next tag when only white space lies between, else nothing."""
        return "" if self._gap(number).strip() else self.tags[number + 1].kind

    def _looks_like_tag(self, at: int) -> bool:
        rest = self.text[at : at + 200].lstrip()
        return rest.startswith(("<parameter", "<function", "</function"))

    def _key_price(self, call: FoundCall, key: str) -> int:
        if any(key == taken for taken, _ in call.values):
            return _KEY_TWICE
        shape = self.tools.get(call.name)
        return _UNKNOWN_KEY if shape is not None and key not in shape.properties else 0

    def _with_value(self, node: _Node, number: int) -> FoundCall:
        assert node.call is not None
        opening = self.tags[node.at]
        value = self.text[opening.end : self.tags[number].start]
        return replace(node.call, values=(*node.call.values, (opening.name, _unframed(value))))

    def _here(self, at: int) -> str:
        rest = self.text[at:].lstrip()
        return repr(rest[:40]) if rest else "the end of the reply"

    def _fault(self, calls: tuple[FoundCall, ...], name: str, start: int, why: str) -> _Node:
        return _Node(_END, len(self.text), (*calls, FoundCall(name, start, len(self.text), error=why)))


def _meaning(calls: tuple[FoundCall, ...]) -> tuple[tuple[str, tuple[tuple[str, str], ...], bool, str], ...]:
    return tuple((call.name, call.values, bool(call.error), str(call.json)) for call in calls)


def _ambiguous(one: tuple[FoundCall, ...], other: tuple[FoundCall, ...]) -> tuple[FoundCall, ...]:
    shared = 0
    while shared < min(len(one), len(other)) and _meaning(one[shared : shared + 1]) == _meaning(
        other[shared : shared + 1]
    ):
        shared += 1
    differing = (one if shared < len(one) else other)[shared]
    why = "its tags can be read in more than one way; close every <parameter=NAME> with </parameter>"
    return (*one[:shared], FoundCall(differing.name, differing.start, max(one[-1].end, other[-1].end), error=why))


def _unframed(value: str) -> str:
    """The value without the one newline after its opening tag and the one before its closing tag."""
    return value.removeprefix("\n").removesuffix("\n")


def _fence_end(text: str, opening: re.Match[str]) -> int | None:
    mark = opening["fence"]
    closing = re.compile(rf"\n[ \t]*{re.escape(mark)}{re.escape(mark[0])}*[ \t]*(?=\n|\Z)").search(text, opening.end())
    return closing.end() if closing else None


def _without_fences(text: str) -> str:
    parts, at = [], 0
    while found := re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})", re.MULTILINE).search(text, at):
        closing = _fence_end(text, found)
        if closing is None:
            break
        parts.append(text[at : found.start()])
        at = closing
    return "".join([*parts, text[at:]])
