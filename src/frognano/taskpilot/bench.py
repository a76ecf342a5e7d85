"""Benches: sandboxes with the clean repository and one trusted program each (see ``inside/frog_bench.py``).

A bench answers questions about the repository: run the suite, trace it, screen candidates, evaluate expressions.
What it says is a screening; tasks are admitted by the grader alone. A bench that is lost raises SandboxError.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from frognano.sandbox.contract import Limits, Sandbox, SandboxBackend, SandboxError, SandboxSpec
from frognano.taskpilot.repository import Repository

PROGRAMS = Path(__file__).parent / "inside"
_PLACE = "/tmp/frog-bench"
_WORKDIR = "/app"
_ANSWER_BYTES = 64 << 20
_LIMITS = Limits(memory_mb=3072, pids=256, disk_mb=512)

Answer = dict[str, Any]
Item = TypeVar("Item")
Result = TypeVar("Result")


class BenchError(RuntimeError):
    """The bench program ended without a complete answer; the message holds the end of what it wrote."""


class Bench:
    """One sandbox with the bench program in it."""

    def __init__(self, sandbox: Sandbox, repository: Repository) -> None:
        self._sandbox = sandbox
        self._common = {
            "workdir": _WORKDIR,
            "pythonpath": list(repository.pythonpath),
            "modules": list(repository.modules),
            "tests": list(repository.test_files),
        }

    async def prepare(self) -> None:
        """Put the programs into the sandbox."""
        for path in sorted(PROGRAMS.glob("frog_*.py")):
            content = base64.b64encode(path.read_bytes()).decode()
            place = {"workdir": "/", "path": f"{_PLACE}/{path.name}", "content_b64": content}
            await self._sandbox.request("put", place, 30.0)

    async def ask(self, mode: str, timeout_s: float, hash_seed: int = 0, **details: Any) -> list[Answer]:
        """The answers of one run in ``mode``. Raises BenchError, and SandboxError when the sandbox is lost."""
        request = json.dumps({"mode": mode, **self._common, **details}).encode()
        ran = await self._sandbox.request(
            "exec",
            {
                "workdir": "/",
                "argv": ["python3", f"{_PLACE}/frog_bench.py"],
                "env": {
                    "PYTHONHASHSEED": str(hash_seed),
                    "PYTHONDONTWRITEBYTECODE": "",
                    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                },
                "timeout_s": timeout_s,
                "stdin_b64": base64.b64encode(request).decode(),
                "max_bytes": _ANSWER_BYTES,
            },
            timeout_s + 30.0,
        )
        said = base64.b64decode(ran["stdout_b64"])
        if ran["timed_out"] or ran["code"] != 0 or not said.endswith(b"\n"):
            why = f"no end after {timeout_s:g} s" if ran["timed_out"] else f"exit code {ran['code']}"
            tail = base64.b64decode(ran["stderr_b64"])[-2000:].decode(errors="replace")
            raise BenchError(f"{mode}: {why}\n{tail}".rstrip())
        return [json.loads(line) for line in said.splitlines()]

    async def close(self) -> None:
        """Free the sandbox."""
        await self._sandbox.close()


class Benches:
    """Several benches; work is handed to whichever is free."""

    def __init__(self, benches: Sequence[Bench]) -> None:
        self._free: asyncio.Queue[Bench] = asyncio.Queue()
        for bench in benches:
            self._free.put_nowait(bench)

    async def each(
        self, items: Iterable[Item], work: Callable[[Bench, Item], Awaitable[Result]]
    ) -> AsyncIterator[tuple[Item, Result]]:
        """``work`` on every item, results as they come. The first error cancels the rest and is raised."""

        async def one(item: Item) -> tuple[Item, Result]:
            bench = await self._free.get()
            try:
                return item, await work(bench, item)
            finally:
                self._free.put_nowait(bench)

        running = [asyncio.create_task(one(item)) for item in items]
        try:
            for done in asyncio.as_completed(running):
                yield await done
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


@asynccontextmanager
async def open_benches(
    backend: SandboxBackend, snapshot: Path, repository: Repository, count: int
) -> AsyncIterator[Benches]:
    """``count`` benches on the clean tree at ``snapshot``, closed at the end."""
    benches: list[Bench] = []
    try:
        for _ in range(count):
            sandbox = await backend.open(SandboxSpec(snapshot=snapshot, workdir=_WORKDIR, limits=_LIMITS))
            benches.append(Bench(sandbox, repository))
            await benches[-1].prepare()
        yield Benches(benches)
    finally:
        for bench in benches:
            try:
                await bench.close()
            except SandboxError:
                # The sandbox is gone already; what it was asked has told so.
                continue
