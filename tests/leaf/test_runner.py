"""The resident runner: frames, transfer, and that it outlives what it serves."""

from __future__ import annotations

import ast
import base64
import os
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from frognano.sandbox import runner
from frognano.sandbox.contract import OperationError


def test_an_unknown_operation_and_a_wrong_argument_are_errors_with_a_type(sandbox: Any) -> None:
    with pytest.raises(OperationError, match="ValueError: unknown operation: dance"):
        sandbox.ask("dance", {})
    with pytest.raises(OperationError) as caught:
        sandbox.ask("read", {"workdir": "/", "colour": "red"})
    assert caught.value.kind == "TypeError"
    assert sandbox.ask("ping", {})["pid"] == sandbox.process.pid


def test_it_holds_no_folder(sandbox: Any, work: Path) -> None:
    sandbox.ask("bash", {"workdir": str(work), "command": "true"})
    assert Path(os.readlink(f"/proc/{sandbox.process.pid}/cwd")) != work


def test_put_and_get_carry_any_bytes(sandbox: Any, work: Path) -> None:
    data = bytes(range(256)) * 10
    args = {"workdir": str(work), "path": "a/b.bin", "content_b64": base64.b64encode(data).decode(), "mode": 0o755}
    sandbox.ask("put", args)
    got = sandbox.ask("get", {"workdir": str(work), "path": "a/b.bin"})
    assert base64.b64decode(got["content_b64"]) == data
    assert (got["size"], got["mode"]) == (2560, 0o755)
    part = sandbox.ask("get", {"workdir": str(work), "path": "a/b.bin", "max_bytes": 3})
    assert (base64.b64decode(part["content_b64"]), part["size"]) == (b"\0\1\2", 2560)


def test_put_replaces_a_link_and_does_not_follow_it(sandbox: Any, work: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("safe")
    (work / "f").symlink_to(tmp_path / "victim")
    sandbox.ask("put", {"workdir": str(work), "path": "f", "content_b64": base64.b64encode(b"new").decode()})
    assert not (work / "f").is_symlink()
    assert (tmp_path / "victim").read_text() == "safe"


def test_exec_gives_bytes_feeds_stdin_and_leaves_nothing_behind(sandbox: Any, work: Path) -> None:
    data = bytes(range(256)) * 4000
    script = "cat; (sleep 1000 & echo $! >&2); exit 7"
    args = {"argv": ["sh", "-c", script], "stdin_b64": base64.b64encode(data).decode(), "env": {"A": "1"}}
    result = sandbox.ask("exec", {"workdir": str(work), **args, "max_bytes": 1000})
    assert (result["code"], result["timed_out"]) == (7, False)
    assert base64.b64decode(result["stdout_b64"]) == data[:1000]
    assert result["stdout_size"] == len(data)
    job = int(base64.b64decode(result["stderr_b64"]))
    assert not Path(f"/proc/{job}").exists()


def test_exec_stops_at_its_time(sandbox: Any, work: Path) -> None:
    result = sandbox.ask("exec", {"workdir": str(work), "argv": ["sleep", "1000"], "timeout_s": 0.2})
    assert (result["code"], result["timed_out"]) == (-9, True)


def test_a_program_that_takes_no_input_does_not_stop_it(sandbox: Any, work: Path) -> None:
    big = base64.b64encode(b"x" * 1_000_000).decode()
    result = sandbox.ask("exec", {"workdir": str(work), "argv": ["true"], "stdin_b64": big})
    assert result["code"] == 0


def test_children_see_none_of_its_descriptors(sandbox: Any, work: Path) -> None:
    result = sandbox.ask("bash", {"workdir": str(work), "command": "ls -l /proc/self/fd; cat <&0"})
    lines = [line for line in result["stdout"]["head"].splitlines() if "->" in line]
    targets = [line.split("-> ")[1] for line in lines]
    assert targets[0] == "/dev/null"
    assert all(target.startswith(("/dev/null", "pipe:", "/proc/")) for target in targets)
    assert len(targets) == 4


def test_its_memory_cannot_be_read_by_what_it_serves(sandbox: Any) -> None:
    status = Path(f"/proc/{sandbox.process.pid}/status").read_text()
    assert "\nName:\t" in "\n" + status
    assert os.stat(f"/proc/{sandbox.process.pid}/environ").st_uid == 0


def test_it_leaves_when_the_host_does(own_sandbox: Any) -> None:
    own_sandbox.process.stdin.close()
    assert own_sandbox.process.wait() == 0


def test_a_broken_frame_is_answered_and_an_oversized_one_ends_it(own_sandbox: Any) -> None:
    process = own_sandbox.process
    process.stdin.write(struct.pack(">I", 3) + b"{]}")
    process.stdin.flush()
    size = struct.unpack(">I", process.stdout.read(4))[0]
    assert b'"ok": false' in process.stdout.read(size)
    process.stdin.write(struct.pack(">I", 0xFFFFFFFF))
    process.stdin.flush()
    process.stdin.flush()
    assert process.wait() == 0


def test_a_hundred_dead_jobs_leave_no_zombies(sandbox: Any, work: Path) -> None:
    command = "for i in $(seq 100); do (sleep 0 &) ; done; sleep 0.1"
    sandbox.ask("bash", {"workdir": str(work), "command": command})
    sandbox.ask("ping", {})
    children = Path(f"/proc/{sandbox.process.pid}/task/{sandbox.process.pid}/children")
    assert children.read_text().split() == []


def test_it_is_one_file_that_old_pythons_can_read() -> None:
    tree = ast.parse(Path(runner.__file__).read_text(encoding="utf-8"), feature_version=(3, 6))
    imported = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= set(sys.stdlib_module_names)
