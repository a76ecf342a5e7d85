"""A scripted model behind real HTTP: ``/v1/chat/completions`` (streamed or not) and ``/v1/models``, with faults.

It answers from a script alone (see ``scripted``), so requests may repeat, and it is as strict as the strictest server:
a history in which a call has no answer, or arguments that are no JSON object, is refused with 400. Faults come on
demand: the n-th request suffers the n-th entry of ``faults``. It listens on the loopback and speaks HTTP/1.1 with one
request a connection; it is no server for anything but tests and trials.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from frognano.policy.parser import render_call
from frognano.policy.scripted import Script, Turn, next_turn, tokens_of

Fault = Literal[
    "",
    "rate_limited",
    "rate_limited_dated",
    "server_error",
    "unavailable",
    "cut_stream",
    "cut_body",
    "empty_reply",
    "empty_choices",
    "not_json",
    "broken_arguments",
    "doubled_arguments",
    "object_arguments",
    "call_as_text",
    "wrong_finish",
    "no_ids",
    "refused_history",
    "refused_field",
    "context_overflow",
    "cut_prompt",
    "unauthorized",
    "not_found",
    "error_in_stream",
    "hang",
]

_MESSAGES: dict[str, tuple[int, str]] = {
    "rate_limited": (429, "Rate limit reached."),
    "rate_limited_dated": (429, "Rate limit reached."),
    "server_error": (500, "Internal error."),
    "unavailable": (503, "Overloaded."),
    "refused_history": (400, "Invalid message at position 3."),
    "refused_field": (400, "Unsupported parameter: 'max_tokens' is not supported; use 'max_completion_tokens'."),
    "context_overflow": (400, "This model's maximum context length is 4096 tokens (context_length_exceeded)."),
    "unauthorized": (401, "Incorrect API key provided: KEY."),
    "not_found": (404, "The model does not exist."),
}
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


class ScriptedServer:
    """The server; an async context manager. ``requests`` holds the bodies received, ``keys`` the keys shown."""

    def __init__(self, script: Script, faults: Sequence[Fault] = (), model: str = "scripted") -> None:
        self._script = script
        self._faults = tuple(faults)
        self._model = model
        self._server: asyncio.Server | None = None
        self._at_work: set[asyncio.Task[None]] = set()
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        if self._server is None:
            raise RuntimeError("the server has not been started")
        port: int = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/v1"

    async def __aenter__(self) -> ScriptedServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 26)
        return self

    async def __aexit__(self, *exc: object) -> None:
        server, self._server = self._server, None
        for task in self._at_work:
            task.cancel()
        await asyncio.gather(*self._at_work, return_exceptions=True)
        if server is not None:
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._at_work.add(task)
        try:
            await self._answer(reader, _Wire(writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away
        finally:
            self._at_work.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, wire: _Wire) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        method, path, *_ = first.split(" ")
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.keys.append(headers.get("authorization", "").removeprefix("Bearer "))
        if method == "GET" and path == "/v1/models":
            await wire.json(200, {"object": "list", "data": [{"id": self._model, "object": "model"}]})
        elif method == "POST" and path == "/v1/chat/completions":
            await self._complete(json.loads(body), wire)
        else:
            await wire.json(404, {"error": {"message": f"no such path: {path}"}})

    async def _complete(self, request: dict[str, Any], wire: _Wire) -> None:
        number = len(self.requests)
        self.requests.append(request)
        fault: Fault = self._faults[number] if number < len(self._faults) else ""
        complaint = _complaint(request.get("messages") or [])
        if complaint:
            await wire.json(400, {"error": {"message": complaint, "type": "invalid_request_error"}})
        elif fault == "hang":
            await asyncio.Event().wait()
        elif fault == "refused_field" and "max_tokens" not in request:
            await self._say(request, "", wire)
        elif fault in _MESSAGES:
            status, text = _MESSAGES[fault]
            wait = {"rate_limited": "0", "rate_limited_dated": "Thu, 01 Jan 1970 00:00:00 GMT"}.get(fault)
            extra = {"Retry-After": wait} if wait is not None else {}
            await wire.json(status, {"error": {"message": text.replace("KEY", self.keys[-1])}}, extra)
        else:
            await self._say(request, fault, wire)

    async def _say(self, request: Mapping[str, Any], fault: Fault, wire: _Wire) -> None:
        messages = request["messages"]
        turn = Turn() if fault == "empty_reply" else next_turn(self._script, messages)
        said = sum(message.get("role") == "assistant" for message in messages)
        message, finish = _message(turn, fault, said)
        prompt = 16 if fault == "cut_prompt" else tokens_of(messages)
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens_of([message])}
        if request.get("stream"):
            await _stream(wire, message, finish, usage, fault)
            return
        choices = [] if fault == "empty_choices" else [{"index": 0, "message": message, "finish_reason": finish}]
        whole = {"object": "chat.completion", "model": self._model, "choices": choices, "usage": usage}
        if fault in {"cut_body", "cut_stream"}:
            await wire.begin("application/json", {"Content-Length": "100000"})
            await wire.write(json.dumps(whole)[:40].encode())
        elif fault == "not_json":
            await wire.text(200, "<html>gateway</html>")
        else:
            await wire.json(200, whole)


class _Wire:
    """One response."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def begin(self, kind: str, extra: Mapping[str, str] | None = None, status: int = 200) -> None:
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}", f"Content-Type: {kind}", "Connection: close"]
        lines += [f"{key}: {value}" for key, value in (extra or {}).items()]
        await self.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def text(
        self, status: int, text: str, extra: Mapping[str, str] | None = None, kind: str = "text/html"
    ) -> None:
        data = text.encode()
        await self.begin(kind, {"Content-Length": str(len(data)), **(extra or {})}, status)
        await self.write(data)

    async def json(self, status: int, body: Mapping[str, Any], extra: Mapping[str, str] | None = None) -> None:
        await self.text(status, json.dumps(body), extra, "application/json")

    async def event(self, body: Mapping[str, Any]) -> None:
        await self.write(f"data: {json.dumps(body)}\n\n".encode())


def _message(turn: Turn, fault: Fault, said: int) -> tuple[dict[str, Any], str]:
    """(assistant message, finish reason) as the faulty server puts them."""
    finish = "length" if turn.cut else "tool_calls" if turn.calls else "stop"
    message: dict[str, Any] = {"role": "assistant", "content": turn.content}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if fault == "call_as_text":
        calls = "\n".join(render_call(name, arguments) for name, arguments in turn.calls)
        return message | {"content": f"{turn.content}\n{calls}"}, "stop"
    if fault == "wrong_finish":
        finish = "stop" if turn.calls else "tool_calls"
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": "" if fault == "no_ids" else f"call_{said}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": _arguments(arguments, fault)},
            }
            for number, (name, arguments) in enumerate(turn.calls)
        ]
    return message, finish


def _arguments(arguments: Mapping[str, Any], fault: Fault) -> object:
    text = json.dumps(arguments)
    if fault == "broken_arguments":
        return text[: len(text) // 2]
    if fault == "doubled_arguments":
        return json.dumps(text)
    return arguments if fault == "object_arguments" else text


async def _stream(wire: _Wire, message: Mapping[str, Any], finish: str, usage: Mapping[str, int], fault: Fault) -> None:
    if fault == "not_json":
        await wire.text(200, "<html>gateway</html>")
        return
    await wire.begin("text/event-stream")

    async def chunk(delta: Mapping[str, Any], ending: str | None = None) -> None:
        choices = [{"index": 0, "delta": delta, "finish_reason": ending}]
        await wire.event({"object": "chat.completion.chunk", "choices": choices})

    await wire.event({"object": "chat.completion.chunk", "choices": []})
    if fault == "error_in_stream":
        await wire.event({"error": {"message": "worker died", "code": 503}})
        return
    if fault != "empty_choices":
        await chunk({"role": "assistant", "content": ""})
        for key in ("reasoning_content", "content"):
            for part in _pieces(str(message.get(key) or "")):
                await chunk({key: part})
        if fault in {"cut_stream", "cut_body"}:
            return
        for number, call in enumerate(message.get("tool_calls") or ()):
            function = call["function"]
            opening = {"name": function["name"], "arguments": ""}
            await chunk({"tool_calls": [{"index": number, "id": call["id"], "type": "function", "function": opening}]})
            arguments = function["arguments"]
            for part in _pieces(arguments) if isinstance(arguments, str) else [arguments]:
                await chunk({"tool_calls": [{"index": number, "function": {"arguments": part}}]})
        await chunk({}, finish)
    await wire.event({"object": "chat.completion.chunk", "choices": [], "usage": usage})
    await wire.write(b"data: [DONE]\n\n")


def _pieces(text: str, size: int = 7) -> list[str]:
    return [text[low : low + size] for low in range(0, len(text), size)]


def _complaint(messages: Sequence[Mapping[str, Any]]) -> str:
    """Why a strict server refuses this history; empty when it does not."""
    wanted: list[str] = []
    for place, message in enumerate(messages):
        if message.get("role") == "tool":
            if not wanted or message.get("tool_call_id") != wanted.pop(0):
                return f"message {place} answers no call"
            continue
        if wanted:
            return f"message {place}: calls without an answer: {', '.join(wanted)}"
        for call in message.get("tool_calls") or ():
            wanted.append(call["id"])
            try:
                arguments = json.loads(call["function"]["arguments"])
            except ValueError:
                arguments = None
            if not isinstance(arguments, dict):
                return f"message {place}: the arguments of {call['id']} are no JSON object"
    return f"calls without an answer: {', '.join(wanted)}" if wanted else ""
