"""A bounded pool of warm slots: started ahead of need, used once, replaced in the background.

Slots are alike when their shape is equal (everything of a sandbox but its snapshot). The pool keeps up to
``size`` idle slots of the shapes asked for last; a shape that nobody asks for any more gives way. It knows
nothing of sandboxes: it is given one function that starts a slot and one that ends it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

S = TypeVar("S")
K = TypeVar("K", bound=Hashable)


class WarmPool(Generic[K, S]):
    """Idle slots by shape."""

    def __init__(
        self,
        start: Callable[[K], Awaitable[S]],
        end: Callable[[S], Awaitable[None]],
        alive: Callable[[S], bool],
        size: int,
        at_once: int = 2,
    ):
        self._start, self._end, self._alive = start, end, alive
        self._size = size
        self._idle: OrderedDict[K, list[S]] = OrderedDict()
        self._refills: dict[asyncio.Task[None], K] = {}
        self._gate = asyncio.Semaphore(at_once)
        self._closed = False

    async def take(self, shape: K) -> S:
        """A slot of this shape: a warm one, or else a new one."""
        slot: S | None = None
        while self._idle.get(shape) and slot is None:
            candidate = self._idle[shape].pop(0)
            if self._alive(candidate):
                slot = candidate
            else:
                await self._end(candidate)
        if slot is None:
            slot = await self._start(shape)
        self._note(shape)
        return slot

    def warm(self, shape: K) -> None:
        """Begin to fill the pool with slots of this shape."""
        self._note(shape)

    async def settled(self) -> None:
        """Wait until no refill is under way."""
        while self._refills:
            await asyncio.wait(list(self._refills))

    @property
    def idle(self) -> int:
        """Number of idle slots."""
        return sum(map(len, self._idle.values()))

    async def close(self) -> None:
        """Stop refilling and end every idle slot."""
        self._closed = True
        refills = list(self._refills)
        for task in refills:
            task.cancel()
        await asyncio.gather(*refills, return_exceptions=True)
        slots = [slot for group in self._idle.values() for slot in group]
        self._idle.clear()
        await asyncio.gather(*(self._end(slot) for slot in slots))

    def _note(self, shape: K) -> None:
        """Remember that ``shape`` was asked for last, and plan what is missing of it."""
        if self._closed or self._size <= 0:
            return
        self._idle.setdefault(shape, [])
        self._idle.move_to_end(shape)
        planned = sum(1 for other in self._refills.values() if other == shape)
        for _ in range(self._share() - len(self._idle[shape]) - planned):
            task = asyncio.ensure_future(self._refill(shape))
            self._refills[task] = shape
            task.add_done_callback(lambda done: self._refills.pop(done, None))

    def _share(self) -> int:
        """Shapes in use share the pool; with few of them each may have it whole until others need room."""
        return max(1, self._size // max(1, min(len(self._idle), 4)))

    async def _refill(self, shape: K) -> None:
        async with self._gate:
            if self._closed:
                return
            # A refill that fails is not reported here: the next take() of the shape starts cold and meets the cause.
            with suppress(Exception):
                slot = await self._start(shape)
                if self._closed:
                    await self._end(slot)
                    return
                self._idle.setdefault(shape, []).append(slot)
                await self._trim()

    async def _trim(self) -> None:
        while self.idle > self._size:
            shape, group = next(item for item in self._idle.items() if item[1])
            slot = group.pop(0)
            if not group:
                del self._idle[shape]
            await self._end(slot)
