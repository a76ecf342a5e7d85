"""What has been done, so that it is not done twice: finished stages and items, in an append-only file.

A line is written only when its work is complete; a torn last line is dropped when the journal is opened. One
process at a time writes a journal. It does not keep the settings of different runs apart: ``pin`` refuses a changed
value and names the keys that differ.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol

from frognano.config.base import ConfigError


class Journal(Protocol):
    """A memory of finished work by stage and key."""

    def get(self, stage: str, key: str) -> Any | None:
        """What was kept for ``key``, or None."""
        ...

    def put(self, stage: str, key: str, value: Any) -> None:
        """Keep a finished result (JSON data)."""
        ...


class FileJournal:
    """A journal as JSON lines."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._kept: dict[tuple[str, str], Any] = {}
        whole = 0
        if path.exists():
            for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    entry = json.loads(line)
                except ValueError:
                    raise ConfigError(f"{path} is damaged at line {number}; make the pool in a new folder") from None
                self._kept[entry["stage"], entry["key"]] = entry["value"]
                whole += len(line)
            os.truncate(path, whole)

    def get(self, stage: str, key: str) -> Any | None:
        return self._kept.get((stage, key))

    def put(self, stage: str, key: str, value: Any) -> None:
        line = json.dumps({"stage": stage, "key": key, "value": value}) + "\n"
        with open(self._path, "a", encoding="utf-8") as stream:
            stream.write(line)
        self._kept[stage, key] = json.loads(line)["value"]


def pin(journal: Journal, values: dict[str, Any]) -> None:
    """Keep the settings of a run, or refuse others. Raises ConfigError naming the keys that differ."""
    before = journal.get("settings", "")
    if before is None:
        journal.put("settings", "", values)
        return
    now = json.loads(json.dumps(values))
    differing = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    if differing:
        listed = ", ".join(f"{key} ({before.get(key)!r} before, {now.get(key)!r} now)" for key in differing)
        raise ConfigError(f"this pool was begun with other settings: {listed}; use another folder or the old values")
