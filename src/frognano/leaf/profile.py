"""The two profiles of tool texts: which words and limits the model meets.

``reference`` keeps the published harness's limits, truncation and timeout rules, so that scores compare; it departs
only where those damage files, lose output or hang. ``leaf`` is the default elsewhere. Prompt and tool schemas
are data files under ``prompts/`` and part of what a policy was trained on: changing one means training again.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any, Literal

from frognano.records import Record

ProfileName = Literal["leaf", "reference"]

_SCHEMA_FILES: dict[str, str] = {"leaf": "tools.json", "reference": "tools.reference.json"}


class Profile(Record):
    """Everything of a profile that is data."""

    name: ProfileName = "leaf"
    system: str
    """System prompt."""
    tools: tuple[dict[str, Any], ...]
    """OpenAI tool schemas."""
    read_chars: int = 20_000
    """Characters of one answer of Read."""
    bash_chars: int = 30_000
    """Characters of one answer of Bash."""
    glob_limit: int = 1_000
    """Files that one answer of Glob lists."""
    bash_timeout_s: float = 120.0
    """Wall seconds of a Bash call that names no timeout."""
    bash_ceiling_s: float = 3_600.0
    """Largest timeout: ``leaf`` refuses more, ``reference`` cuts down to it, so that no call runs for ever."""

    @property
    def is_reference(self) -> bool:
        """True for the published harness's texts."""
        return self.name == "reference"


@functools.cache
def load_profile(name: ProfileName = "leaf") -> Profile:
    """The profile with its prompt and schemas, read once."""
    folder = resources.files("frognano.leaf") / "prompts"
    system = (folder / "system.txt").read_text(encoding="utf-8").strip()
    tools = json.loads((folder / _SCHEMA_FILES[name]).read_text(encoding="utf-8"))
    return Profile(name=name, system=system, tools=tuple(tools))
