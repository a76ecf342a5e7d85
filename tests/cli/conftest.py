"""A small repository with a fault, a scripted model that mends it over real HTTP, and the real command."""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from frognano.cli.main import app
from frognano.policy.scripted import Script, Turn, say
from frognano.policy.scripted_server import Fault, ScriptedServer

BROKEN = "def double(x):\n    return x + 3\n"
MENDED = "def double(x):\n    return x + x\n"
MEND: tuple[Turn, ...] = (
    say("I look first.", ("Read", {"file_path": "calc.py"}), reasoning="Where is it?"),
    say("", ("Edit", {"file_path": "calc.py", "old_string": "x + 3", "new_string": "x + x"})),
    say("`double` now doubles."),
)


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def image(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below ``folder``, ``.git`` too."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "calc.py").write_text(BROKEN)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@contextmanager
def serving(script: Script = MEND, faults: Sequence[Fault] = ()) -> Iterator[ScriptedServer]:
    """The scripted model server on a thread of its own, so that a command in another process can talk to it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = ScriptedServer(script, faults)
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from frognano.cli.main import main; main()", *arguments]


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    """An environment in which what a command leaves behind lies below the test's own folder."""
    return {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "FROG_KEY": "sk-very-secret"}


def invoke(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> Done:
    """The command in this process; tests that send signals or look at processes start their own."""
    result = CliRunner().invoke(app, list(arguments), input=stdin, env=env, prog_name="frognano")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def frognano(surroundings: dict[str, str]) -> Callable[..., Done]:
    """The command in surroundings of the test's own."""
    return functools.partial(invoke, env=surroundings)
