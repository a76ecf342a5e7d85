"""The warm pool: used once, refilled in the background, bounded, closed properly."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from frognano.sandbox.contract import Limits, SandboxError, SandboxSpec
from frognano.sandbox.pool import WarmPool


class Slots:
    """Counts what a pool does with its slots."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended: list[str] = []
        self.dead: set[str] = set()
        self.failing = False

    async def start(self, shape: str) -> str:
        await asyncio.sleep(0)
        if self.failing:
            raise SandboxError("no")
        self.started.append(f"{shape}{len(self.started)}")
        return self.started[-1]

    async def end(self, slot: str) -> None:
        self.ended.append(slot)

    def pool(self, size: int) -> WarmPool[str, str]:
        return WarmPool(self.start, self.end, lambda slot: slot not in self.dead, size)


def test_a_taken_slot_is_replaced_and_never_given_twice() -> None:
    async def main() -> None:
        slots = Slots()
        pool = slots.pool(2)
        taken = []
        for _ in range(5):
            taken.append(await pool.take("a"))
            await pool.settled()
        assert len(set(taken)) == 5
        assert pool.idle == 2
        await pool.close()
        assert set(slots.ended) == set(slots.started) - set(taken)

    asyncio.run(main())


def test_a_dead_idle_slot_is_not_given() -> None:
    async def main() -> None:
        slots = Slots()
        pool = slots.pool(1)
        pool.warm("a")
        await pool.settled()
        slots.dead.add("a0")
        assert await pool.take("a") == "a1"
        assert slots.ended == ["a0"]
        await pool.close()

    asyncio.run(main())


def test_many_shapes_share_the_pool_and_old_ones_give_way() -> None:
    async def main() -> None:
        slots = Slots()
        pool = slots.pool(3)
        for shape in "abcdefgh":
            await pool.take(shape)
            await pool.settled()
            assert pool.idle <= 3
        assert (await pool.take("h")).startswith("h")
        await pool.close()

    asyncio.run(main())


def test_a_pool_of_size_zero_starts_cold_every_time() -> None:
    async def main() -> None:
        slots = Slots()
        pool = slots.pool(0)
        assert await pool.take("a") == "a0"
        await pool.settled()
        assert (pool.idle, slots.started) == (0, ["a0"])
        await pool.close()

    asyncio.run(main())


def test_a_failing_start_is_told_to_the_one_who_asks() -> None:
    async def main() -> None:
        slots = Slots()
        slots.failing = True
        pool = slots.pool(2)
        pool.warm("a")
        await pool.settled()
        with pytest.raises(SandboxError):
            await pool.take("a")
        await pool.close()

    asyncio.run(main())


def test_a_warm_sandbox_had_its_runner_before_its_snapshot(start_backend: Any, snapshot: Any, wait: Any) -> None:
    spec = SandboxSpec(snapshot=snapshot, limits=Limits(memory_mb=64, disk_mb=8))

    async def use() -> None:
        backend = await start_backend(warm=2)
        for _ in range(3):
            sandbox = await backend.open(spec)
            assert "41" in (await sandbox.request("read", {"path": "pkg/code.py"}, 10))["lines"][1]
            await sandbox.close()
            await backend.settled()
        assert backend._pool.idle == 2
        sandboxes = await asyncio.gather(*(backend.open(spec) for _ in range(6)))
        assert len({sandbox._slot.name for sandbox in sandboxes}) == 6
        await backend.__aexit__()

    wait(use())
