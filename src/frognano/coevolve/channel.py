"""Messages between this process and one that it started: pickles with a length before them, over two pipes.

Both ends are ours and of one version; nothing of a model's or a sandbox's doing is ever read by this.
"""

from __future__ import annotations

import pickle
import struct
from typing import Any, BinaryIO

_LENGTH = struct.Struct(">Q")


class ChannelClosed(EOFError):
    """The other end is gone."""


class Channel:
    """One end."""

    def __init__(self, reading: BinaryIO, writing: BinaryIO) -> None:
        self._reading, self._writing = reading, writing

    def send(self, message: Any) -> None:
        """Raises ChannelClosed."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        try:
            self._writing.write(_LENGTH.pack(len(data)))
            self._writing.write(data)
            self._writing.flush()
        except (BrokenPipeError, ValueError):
            raise ChannelClosed("the other process is gone") from None

    def receive(self) -> Any:
        """The next message. Raises ChannelClosed."""
        return pickle.loads(self._exactly(_LENGTH.unpack(self._exactly(_LENGTH.size))[0]))

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            part = self._reading.read(count)
            if not part:
                raise ChannelClosed("the other process is gone")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close both pipes."""
        for stream in (self._writing, self._reading):
            try:
                stream.close()
            except OSError:
                # A pipe whose other end died with data in it; closed is closed.
                continue
