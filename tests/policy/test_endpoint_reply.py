"""How pieces of a completion become calls and text, whatever a server does with ids, indices and surrogates."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from frognano.policy.endpoint import _lines
from frognano.policy.endpoint_reply import Completion, read_completion
from frognano.policy.messages import assistant_message
from frognano.records import Reply


def part(name: str = "", arguments: object = None, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, "arguments": arguments}}


def reply_of(*bodies: dict[str, Any]) -> Reply:
    done = Completion()
    for body in bodies:
        done.add({"choices": [body]})
    return read_completion(done, (), {}, (), "call_0")


def streamed(*chunks: list[dict[str, Any]]) -> Reply:
    return reply_of(*({"delta": {"tool_calls": chunk}} for chunk in chunks))


TWO = [("Read", {"path": "a"}), ("Bash", {"command": "ls"})]
READ, LS = '{"path": "a"}', '{"command": "ls"}'


@pytest.mark.parametrize(
    "reply",
    [
        streamed([part("Read", READ, index=0, id="a")], [part("Bash", LS, index=1, id="b")]),
        streamed([part("Read", READ, index=0, id="a")], [part("Bash", LS, index=0, id="b")]),
        streamed([part("Read", READ, index=0, id="c")], [part("Bash", LS, index=1, id="c")]),
        streamed([part("Read", READ[:5], index=1, id="a")], [part("", READ[5:], index=1)], [part("Bash", LS, index=2)]),
        streamed([part("Read", READ, id="a")], [part("Bash", LS[:4], id="b")], [part("", LS[4:])]),
        streamed([part("Read", READ[:5], id="a")], [part("", READ[5:], id="a")], [part("Bash", LS, id="b")]),
        streamed([part("Read", READ), part("Bash", LS)]),
        reply_of({"message": {"tool_calls": [part("Read", READ, id="c"), part("Bash", LS, id="c")]}}),
        reply_of({"message": {"tool_calls": [part("Read", {"path": "a"}, index=0), part("Bash", LS, index=0)]}}),
    ],
    ids=["plain", "all 0", "one id", "from 1", "no index", "id again", "neither", "whole, one id", "whole, all 0"],
)
def test_two_calls_stay_two(reply: Reply) -> None:
    assert [(call.name, call.arguments) for call in reply.calls] == TWO
    assert [call.error for call in reply.calls] == ["", ""]
    assert len({call.id for call in reply.calls}) == 2


@pytest.mark.parametrize(
    "body", [{"message": "hi"}, {"delta": 3}, {"delta": {"tool_calls": "x"}}, {"delta": {"tool_calls": [3]}}]
)
def test_a_shape_that_is_none_says_nothing(body: dict[str, Any]) -> None:
    assert reply_of(body).calls == ()


def test_a_function_that_is_none_is_a_call_without_name() -> None:
    (call,) = reply_of({"message": {"tool_calls": [{"id": "a", "function": "Read"}]}}).calls
    assert call.error == "the call names no tool"


def test_surrogates_are_joined_or_replaced() -> None:
    high, low = "\ud83d", "\ude00"
    inner = json.dumps({"path": "\U0001f600", "lone": high})
    chunks = [{"delta": {"content": high}}, {"delta": {"content": f"{low} {low}"}}]
    chunks += [{"delta": {"tool_calls": [part("Read", inner, index=0, id=low)]}}]
    reply = reply_of(*chunks)
    assert reply.content == "\U0001f600 \ufffd"
    assert reply.calls[0].arguments == {"path": "\U0001f600", "lone": "\ufffd"}
    json.dumps(assistant_message(reply), ensure_ascii=False).encode()
    reply.model_dump_json()


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_only_line_ends_end_a_line(size: int) -> None:
    body = 'data: "a\u2028b\x85c"\r\n\ndata: 2\r\r\ndata: [DONE]'.encode()

    async def pieces() -> list[bytes]:
        async def stream() -> Any:
            for at in range(0, len(body), size):
                yield body[at : at + size]

        return [line async for line in _lines(httpx.Response(200, content=stream()))]

    lines = [line for line in asyncio.run(pieces()) if line]
    assert lines == ['data: "a\u2028b\x85c"'.encode(), b"data: 2", b"data: [DONE]"]
