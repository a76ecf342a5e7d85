"""Every text that a model meets, byte for byte: they are part of what a policy was trained on.

A change here is a change of the training distribution. ``golden/*.txt`` are compared, never rewritten by a test.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frognano.leaf.profile import load_profile

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("profile", ["leaf", "reference"])
def test_texts_stand_as_written(tool: Callable[..., str], golden_scene: Any, profile: str) -> None:
    folder, calls, shortened, expected = golden_scene
    parts = []
    for name, arguments in calls:
        text = tool(name, profile, **arguments).replace(str(folder), "/app")
        parts.append(f"=== {name} {json.dumps(arguments)}\n{shortened(text)}\n")
    assert "".join(parts) == expected[profile]


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
