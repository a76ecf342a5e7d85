"""Framed requests to a resident: 4 bytes of length (big endian), then JSON; one answer for one request.

The resident can be attacked by what it serves, so its answers are data of bounded size: an oversized frame, an
answer to another request, broken JSON or a byte that nobody asked for ends the connection. After that every
request raises SandboxError.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

from frognano.sandbox.contract import OperationError, SandboxError

MAX_FRAME = 32 << 20
"""Bytes of the largest answer; the resident cuts its outputs far below."""

MAX_PARTS = 2_000_000
"""Separators in the largest answer: each part costs far more memory here than bytes in the frame."""

_LENGTH = struct.Struct(">I")


class Connection(asyncio.Protocol):
    """One stream to one resident; requests are made one at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self._number = 0
        self.lost = ""
        """Why the connection cannot be used any more; empty while it can."""

    @classmethod
    async def over(cls, sock: socket.socket) -> Connection:
        """Take over a connected stream socket."""
        sock.setblocking(False)
        _, connection = await asyncio.get_running_loop().create_connection(cls, sock=sock)
        return connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            self._fail("the runner sent something that nobody asked for")
            return
        self._buffer += data
        if len(self._buffer) < _LENGTH.size:
            return
        (size,) = _LENGTH.unpack_from(self._buffer)
        if size > MAX_FRAME:
            self._fail(f"the runner announced an answer of {size} bytes")
        elif len(self._buffer) == size + _LENGTH.size:
            frame = bytes(memoryview(self._buffer)[_LENGTH.size :])
            self._buffer = bytearray()
            if not self._answer.done():
                self._answer.set_result(frame)
            self._answer = None
        elif len(self._buffer) > size + _LENGTH.size:
            self._fail("the runner sent more than one answer")

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(self.lost or "the runner has gone")

    def eof_received(self) -> None:
        self._fail("the runner has gone")

    async def request(self, op: str, args: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Send one request and wait for its answer. Raises OperationError, or SandboxError after which all is over."""
        if self.lost:
            raise SandboxError(self.lost)
        if self._answer is not None:
            raise SandboxError("a request is already under way; requests are made one at a time")
        self._number += 1
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._answer = answer
        self._send({"id": self._number, "op": op, "args": args})
        try:
            frame = await asyncio.wait_for(answer, timeout_s)
        except TimeoutError:
            self._fail(f"the runner did not answer {op!r} within {timeout_s:g} s")
            raise SandboxError(self.lost) from None
        except asyncio.CancelledError:
            self._fail(f"the request {op!r} was given up")
            raise
        return self._opened(frame)

    def close(self) -> None:
        """Close the stream; safe to call twice."""
        self._fail("the sandbox is closed")

    def _send(self, request: dict[str, Any]) -> None:
        assert self._transport is not None
        text = json.dumps(request).encode()
        self._transport.write(_LENGTH.pack(len(text)) + text)

    def _opened(self, frame: bytes) -> dict[str, Any]:
        try:
            if frame.count(b",") + frame.count(b"[") + frame.count(b"{") > MAX_PARTS:
                raise ValueError("too many parts")
            answer = json.loads(frame)
            number, good = answer["id"], answer["ok"]
            content = answer["result"] if good else answer["error"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self._fail(f"the runner's answer cannot be read ({type(error).__name__})")
            raise SandboxError(self.lost) from None
        if number != self._number or not isinstance(content, dict):
            self._fail("the runner's answer belongs to another request")
            raise SandboxError(self.lost)
        if not good:
            raise OperationError(str(content.get("type", "")), str(content.get("message", "")))
        return content

    def _fail(self, reason: str) -> None:
        self.lost = self.lost or reason
        self._buffer = bytearray()
        if self._transport is not None:
            self._transport.abort()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(SandboxError(self.lost))
        self._answer = None
