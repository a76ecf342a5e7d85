"""Whatever a resident sends, the host gets one answer to one request, or a lost sandbox."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

import pytest

from frognano.sandbox.contract import OperationError, SandboxError
from frognano.sandbox.transport import MAX_FRAME, Connection


def framed(answer: Any) -> bytes:
    text = json.dumps(answer).encode()
    return struct.pack(">I", len(text)) + text


def exchange(*pieces: bytes, ask: int = 1, timeout_s: float = 30) -> Any:
    """Ask ``ask`` times; after the first request the other side sends ``pieces``, then closes if one is empty."""

    async def main() -> Any:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        connection = await Connection.over(ours)
        loop = asyncio.get_running_loop()
        result: Any = None
        try:
            for number in range(ask):
                asking = asyncio.ensure_future(connection.request("op", {}, timeout_s))
                await loop.sock_recv(theirs, 1 << 16)
                for piece in pieces if number == 0 else ():
                    if piece:
                        await loop.sock_sendall(theirs, piece)
                    else:
                        theirs.close()
                    await asyncio.sleep(0)
                result = await asking
                await asyncio.sleep(0.01)
            return result
        finally:
            connection.close()
            theirs.close()

    return asyncio.run(main())


GOOD = framed({"id": 1, "ok": True, "result": {"x": 1}})


def test_an_answer_arrives_however_it_is_cut() -> None:
    assert exchange(GOOD) == {"x": 1}
    assert exchange(*(GOOD[i : i + 1] for i in range(len(GOOD)))) == {"x": 1}


def test_an_error_answer_is_the_operations_not_the_sandboxes() -> None:
    with pytest.raises(OperationError) as failure:
        exchange(framed({"id": 1, "ok": False, "error": {"type": "OSError", "message": "full"}}))
    assert (failure.value.kind, failure.value.message) == ("OSError", "full")


BAD = {
    "another request's answer": framed({"id": 7, "ok": True, "result": {}}),
    "no object": framed([1, 2]),
    "a result that is no object": framed({"id": 1, "ok": True, "result": "x"}),
    "no JSON": struct.pack(">I", 3) + b"{{{",
    "no UTF-8": struct.pack(">I", 3) + b"\xff\xfe\xfd",
    "deep nesting": struct.pack(">I", 200000) + b"[" * 200000,
    "a swarm of lists": struct.pack(">I", 3_000_001 * 3) + b"[" + b"[]," * 3_000_000 + b"0]",
    "a huge announcement": struct.pack(">I", MAX_FRAME + 1),
    "two answers at once": GOOD + GOOD,
    "text": b"Traceback (most recent call last):\n",
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_a_wrong_answer_loses_the_sandbox(answer: bytes) -> None:
    with pytest.raises(SandboxError):
        exchange(answer)


def test_a_closed_stream_loses_the_sandbox() -> None:
    with pytest.raises(SandboxError, match="gone"):
        exchange(GOOD[:6], b"")


def test_output_that_nobody_asked_for_loses_the_sandbox() -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        connection = await Connection.over(ours)
        theirs.sendall(GOOD)
        await asyncio.sleep(0.02)
        with pytest.raises(SandboxError, match="nobody asked for"):
            await connection.request("op", {}, 5)
        theirs.close()

    asyncio.run(main())


def test_silence_ends_with_the_time_and_loses_the_sandbox() -> None:
    with pytest.raises(SandboxError, match=r"did not answer 'op' within 0\.05 s"):
        exchange(timeout_s=0.05)


def test_a_frame_that_never_ends_is_bounded_by_what_was_announced() -> None:
    with pytest.raises(SandboxError):
        exchange(struct.pack(">I", 100) + b"x" * 50, b"x" * 1000)


def test_two_requests_at_once_are_refused_without_harm() -> None:
    async def main() -> Any:
        ours, theirs = socket.socketpair()
        connection = await Connection.over(ours)
        first = asyncio.ensure_future(connection.request("op", {}, 5))
        await asyncio.sleep(0)
        with pytest.raises(SandboxError, match="one at a time"):
            await connection.request("op", {}, 5)
        theirs.sendall(GOOD)
        result = await first
        connection.close()
        theirs.close()
        return result

    assert asyncio.run(main()) == {"x": 1}
