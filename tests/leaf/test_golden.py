"""Every text that a model meets, byte for byte: they are part of what a policy was trained on.

A change here is a change of the training distribution. ``golden/*.txt`` are compared, never rewritten by a test.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frognano.leaf.profile import load_profile

GOLDEN = Path(__file__).parent / "golden"

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
    ("Bash", {"command": "echo partial; sleep 100", "timeout": 0.3}),
    ("Bash", {"command": "true", "timeout": "soon"}),
    ("Bash", {"command": "seq 30000", "timeout": 60}),
    ("Bash", {}),
    ("Grep", {"pattern": "x"}),
]


@pytest.fixture
def scene(work: Path) -> Path:
    (work / "src").mkdir()
    (work / "src/rings.py").write_text("def grow(n):\n    return n\n\n\ndef area(w):\n    return w * w\n")
    (work / "odd.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\x0cthree\r\ncaf\xe9")
    (work / "empty.txt").write_text("")
    (work / "image.bin").write_bytes(b"\x89PNG\0\0")
    (work / "many.txt").write_text("".join(f"{number} " + "-" * 90 + "\n" for number in range(1, 3001)))
    os.mkfifo(work / "pipe")
    return work


@pytest.mark.parametrize("profile", ["leaf", "reference"])
def test_texts_stand_as_written(tool: Callable[..., str], scene: Path, profile: str) -> None:
    parts = []
    for name, arguments in SCENE:
        text = tool(name, profile, **arguments).replace(str(scene), "/app")
        parts.append(f"=== {name} {json.dumps(arguments)}\n{shortened(text)}\n")
    assert "".join(parts) == (GOLDEN / f"{profile}.txt").read_text(encoding="utf-8")


def shortened(text: str) -> str:
    """Long runs of lines as their first and last two, so that the golden file can be read."""
    lines = text.replace("\0", "<NUL>").split("\n")
    if len(lines) < 40:
        return "\n".join(lines)
    notes = [f"@{index} {line}" for index, line in enumerate(lines) if "cut" in line or "truncated" in line]
    return "\n".join([*lines[:5], f"@@ {len(lines)} lines, {len(text)} characters", *notes, *lines[-5:]])


def test_prompt_and_schemas_stand_as_written() -> None:
    expected = json.loads((GOLDEN / "prompts.json").read_text(encoding="utf-8"))
    for name in ("leaf", "reference"):
        profile = load_profile(name)  # type: ignore[arg-type]
        assert {"system": profile.system, "tools": list(profile.tools)} == expected[name]


def test_every_schema_names_its_required_arguments() -> None:
    required = {tool["function"]["name"]: tool["function"]["parameters"]["required"] for tool in load_profile().tools}
    assert required == {
        "Read": ["file_path"],
        "Write": ["file_path", "content"],
        "Edit": ["file_path", "old_string", "new_string"],
        "Glob": ["pattern"],
        "Bash": ["command"],
    }
