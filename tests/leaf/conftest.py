"""A real resident runner in its own process, and scripted policies; the folder is the host's, no sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from frognano.leaf.profile import load_profile
from frognano.leaf.tools import run_tool
from frognano.policy.contract import Sampling
from frognano.records import Observation, Reply, TokenRow, ToolCall, Usage
from frognano.sandbox import runner
from frognano.sandbox.contract import OperationError, SandboxError


class HostSandbox:
    """The sandbox contract over a runner process that works on a host folder."""

    def __init__(self, home: Path) -> None:
        command = [sys.executable, "-I", "-S", "-u", runner.__file__]
        # An empty home: login shells must not run this machine's profile.
        env = {**os.environ, "HOME": str(home)}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.requests: list[str] = []
        self.patch = b"the patch"
        self._lock = threading.Lock()

    def ask(self, op: str, args: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(op)
        payload = json.dumps({"id": 7, "op": op, "args": args}).encode()
        with self._lock:
            assert self.process.stdin
            assert self.process.stdout
            try:
                self.process.stdin.write(struct.pack(">I", len(payload)) + payload)
                self.process.stdin.flush()
                header = self.process.stdout.read(4)
            except OSError:
                header = b""
            if len(header) < 4:
                raise SandboxError("the runner is gone")
            answer = json.loads(self.process.stdout.read(struct.unpack(">I", header)[0]))
        assert answer["id"] == 7
        if not answer["ok"]:
            raise OperationError(answer["error"]["type"], answer["error"]["message"])
        return dict(answer["result"])

    async def request(self, op: str, args: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        return await asyncio.to_thread(self.ask, op, args)

    async def changes(self) -> bytes:
        if self.process.poll() is not None:
            raise SandboxError("the runner is gone")
        return self.patch

    async def close(self) -> None:
        self.stop()

    def stop(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class ScriptedSession:
    """Plays replies in order; an exception is raised, a callable is awaited."""

    def __init__(self, script: Sequence[Any], system: str, user: str, sampling: Sampling) -> None:
        self.script = list(script)
        self.sampling = sampling
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": system},
            {"role": "user", "content": user},
        ]
        self.context_tokens = 100
        self.asked: list[tuple[int, float]] = []
        self.observed: list[tuple[Observation, ...]] = []
        self.closed = 0
        self.row: TokenRow | None = None

    async def reply(self, max_tokens: int, timeout_s: float) -> Reply:
        self.asked.append((max_tokens, timeout_s))
        turn = self.script.pop(0) if self.script else Reply(content="done")
        if callable(turn):
            turn = await turn(self)
        if isinstance(turn, BaseException):
            raise turn
        self.context_tokens += turn.usage.completion_tokens
        self.messages.append({"role": "assistant", "content": turn.content})
        return turn

    def observe(self, observations: Sequence[Observation]) -> None:
        self.observed.append(tuple(observations))
        self.context_tokens += sum(len(answer.text) for answer in observations)
        for answer in observations:
            self.messages.append({"role": "tool", "tool_call_id": answer.call_id, "content": answer.text})

    def tokens(self) -> TokenRow | None:
        return self.row

    async def close(self) -> None:
        self.closed += 1


class ScriptedPolicy:
    """Opens one scripted session and keeps it for the test to look at."""

    name = "scripted"

    def __init__(self, script: Sequence[Any]) -> None:
        self.script = script
        self.session: ScriptedSession | None = None

    async def __aenter__(self) -> ScriptedPolicy:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    async def open(
        self, system: str, user: str, tools: Sequence[dict[str, Any]], sampling: Sampling
    ) -> ScriptedSession:
        self.session = ScriptedSession(self.script, system, user, sampling)
        return self.session


@pytest.fixture(scope="session")
def _shared_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostSandbox]:
    sandbox = HostSandbox(tmp_path_factory.mktemp("home"))
    yield sandbox
    sandbox.stop()


@pytest.fixture
def sandbox(_shared_sandbox: HostSandbox) -> HostSandbox:
    _shared_sandbox.requests.clear()
    return _shared_sandbox


@pytest.fixture
def own_sandbox(tmp_path: Path) -> Iterator[HostSandbox]:
    """A runner that the test may kill."""
    sandbox = HostSandbox(tmp_path)
    yield sandbox
    sandbox.stop()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder of the repository."""
    folder = tmp_path / "app"
    folder.mkdir()
    return folder


@pytest.fixture
def tool(sandbox: HostSandbox, work: Path) -> Callable[..., str]:
    """``tool("Read", file_path=…)`` → the text the model reads."""

    def run(tool_name: str, /, profile: Any = "leaf", **arguments: Any) -> str:
        call = ToolCall(id="c1", name=tool_name, arguments=arguments)
        answer = asyncio.run(run_tool(sandbox, call, load_profile(profile), str(work)))
        assert answer.call_id == "c1"
        return answer.text

    return run


@pytest.fixture
def scripted() -> Callable[..., ScriptedPolicy]:
    """``scripted(reply, reply, …)`` → a policy that plays them."""
    return lambda *script: ScriptedPolicy(script)


@pytest.fixture
def says() -> Callable[..., Reply]:
    """``says("text", ("Bash", {…}), …)`` → a reply with these calls."""

    def make(content: str = "", *calls: Any, finish: Any = None, tokens: int = 10, prompt: int = 100) -> Reply:
        made = tuple(
            call if isinstance(call, ToolCall) else ToolCall(id=f"call-{index}", name=call[0], arguments=call[1])
            for index, call in enumerate(calls)
        )
        reason = finish or ("tool_calls" if made else "stop")
        usage = Usage(prompt_tokens=prompt, completion_tokens=tokens)
        return Reply(content=content, calls=made, finish_reason=reason, usage=usage)

    return make


SCENE: list[tuple[str, dict[str, Any]]] = [
    ("Read", {"file_path": "src/rings.py"}),
    ("Read", {"file_path": "src/rings.py", "offset": 2, "limit": 1}),
    ("Read", {"file_path": "src/rings.py", "offset": 99}),
    ("Read", {"file_path": "missing.py"}),
    ("Read", {"file_path": "src"}),
    ("Read", {"file_path": "pipe"}),
    ("Read", {"file_path": "odd.txt"}),
    ("Read", {"file_path": "empty.txt"}),
    ("Read", {"file_path": "image.bin"}),
    ("Read", {"file_path": "many.txt", "offset": 1990}),
    ("Read", {}),
    ("Write", {"file_path": "new/note.md", "content": "# N\u00f6te\n"}),
    ("Write", {"file_path": "new/note.md", "content": None}),
    ("Write", {"file_path": "src", "content": "x"}),
    ("Edit", {"file_path": "src/rings.py", "old_string": "return n", "new_string": "return n + 1"}),
    ("Edit", {"file_path": "src/rings.py", "old_string": "def", "new_string": "async def"}),
    ("Edit", {"file_path": "src/rings.py", "old_string": "def", "new_string": "async def", "replace_all": True}),
    ("Edit", {"file_path": "src/rings.py", "old_string": "2.     return n + 1", "new_string": "x"}),
    ("Edit", {"file_path": "src/rings.py", "old_string": "  return n + 1", "new_string": "x"}),
    ("Edit", {"file_path": "src/rings.py", "old_string": "async def grow( n ):", "new_string": "x"}),
    ("Edit", {"file_path": "src/rings.py", "old_string": "async def area(width):", "new_string": "x"}),
    ("Edit", {"file_path": "src/rings.py", "old_string": "", "new_string": "x"}),
    ("Edit", {"file_path": "src/rings.py", "old_string": "zzzzzzzz", "new_string": "x"}),
    ("Edit", {"file_path": "missing.py", "old_string": "a", "new_string": "b"}),
    ("Glob", {"pattern": "**/*.py"}),
    ("Glob", {"pattern": "*", "path": "src"}),
    ("Glob", {"pattern": "*.rs"}),
    ("Glob", {"pattern": "*", "path": "nowhere"}),
    ("Glob", {}),
    ("Bash", {"command": "echo out; echo err >&2; exit 2"}),
    ("Bash", {"command": "no_such_command"}),
    ("Bash", {"command": "echo partial; sleep 100", "timeout": 2}),
    ("Bash", {"command": "true", "timeout": "soon"}),
    ("Bash", {"command": "seq 30000", "timeout": 60}),
    ("Bash", {}),
    ("Grep", {"pattern": "x"}),
]


@pytest.fixture
def golden_scene(work: Path) -> tuple[Path, list[tuple[str, dict[str, Any]]], Callable[[str], str], dict[str, str]]:
    """A folder, the calls made on it in order, how long texts are shortened, and the golden texts by profile."""
    (work / "src").mkdir()
    (work / "src/rings.py").write_text("def grow(n):\n    return n\n\n\ndef area(w):\n    return w * w\n")
    (work / "odd.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\x0cthree\r\ncaf\xe9")
    (work / "empty.txt").write_text("")
    (work / "image.bin").write_bytes(b"\x89PNG\0\0")
    (work / "many.txt").write_text("".join(f"{number} " + "-" * 90 + "\n" for number in range(1, 3001)))
    os.mkfifo(work / "pipe")
    golden = Path(__file__).parent / "golden"
    expected = {name: (golden / f"{name}.txt").read_text(encoding="utf-8") for name in ("leaf", "reference")}
    return work, SCENE, shortened, expected


def shortened(text: str) -> str:
    """Long runs of lines as their first and last two, so that the golden file can be read."""
    lines = text.replace("\0", "<NUL>").split("\n")
    if len(lines) < 40:
        return "\n".join(lines)
    notes = [f"@{index} {line}" for index, line in enumerate(lines) if "cut" in line or "truncated" in line]
    return "\n".join([*lines[:5], f"@@ {len(lines)} lines, {len(text)} characters", *notes, *lines[-5:]])
