"""The host's side of the keeper: starts it, sends requests with descriptors, matches answers to requests."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import frognano
from frognano.sandbox import interior
from frognano.sandbox.contract import SandboxError
from frognano.sandbox.keeper import MAX_PACKET

_START = (
    "import sys; sys.path.insert(0, sys.argv[3]); from frognano.sandbox import keeper; "
    "keeper.main(int(sys.argv[1]), sys.argv[2])"
)


class KeeperClient:
    """One running keeper. Used from one event loop."""

    def __init__(self) -> None:
        # As root the sandboxes run as other users, who must be able to reach the folder: /tmp, not $TMPDIR.
        place = "/tmp" if os.geteuid() == 0 and os.path.isdir("/tmp") else None
        self.base = Path(tempfile.mkdtemp(prefix="frognano-pool-", dir=place))
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        source = str(Path(frognano.__file__).resolve().parent.parent)
        command = [str(interior.base_python()), "-I", "-S", "-c", _START, str(theirs.fileno()), str(self.base), source]
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        theirs.close()
        asyncio.get_running_loop().add_reader(self._control, self._read)

    async def ask(self, op: str, descriptors: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
        """Send one request and wait for the answer; raises SandboxError with the keeper's words."""
        self._number += 1
        number = self._number
        packet = json.dumps({"id": number, "op": op, **fields}).encode()
        if len(packet) > MAX_PACKET:
            raise SandboxError(f"the request {op!r} is too large ({len(packet)} bytes)")
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            await self._send(packet, descriptors)
            result = await answer
        finally:
            self._answers.pop(number, None)
        if "error" in result:
            raise SandboxError(result["error"])
        return result

    async def close(self) -> None:
        """End the keeper and with it every sandbox; safe to call twice."""
        if self._control.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()
        try:
            await asyncio.to_thread(self._process.wait, 20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        self._give_up("the keeper was closed")
        if self._process.stderr:
            self._process.stderr.close()
        with suppress(OSError):
            self.base.rmdir()

    async def _send(self, packet: bytes, descriptors: Sequence[int]) -> None:
        while True:
            try:
                socket.send_fds(self._control, [packet], list(descriptors))
                return
            except BlockingIOError:
                await asyncio.sleep(0.001)
            except OSError as error:
                raise SandboxError(f"the keeper has gone: {error}") from None

    def _read(self) -> None:
        with suppress(BlockingIOError):
            while True:
                packet = self._control.recv(MAX_PACKET)
                if not packet:
                    asyncio.get_running_loop().remove_reader(self._control)
                    self._give_up(f"the keeper has gone{self._last_words()}")
                    return
                result = json.loads(packet)
                answer = self._answers.get(result.pop("id"))
                if answer is not None and not answer.done():
                    answer.set_result(result)

    def _last_words(self) -> str:
        if self._process.stderr is None:
            return ""
        os.set_blocking(self._process.stderr.fileno(), False)
        lines = (self._process.stderr.read() or b"").decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def _give_up(self, reason: str) -> None:
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(SandboxError(reason))
