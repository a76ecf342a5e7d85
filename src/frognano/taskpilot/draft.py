"""A draft: everything a task's statement was worded from, kept beside the task so that rewording runs nothing.

It lies in the task's folder, which a solver never sees: it holds the hidden requirements and the clean line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from frognano.records import Record
from frognano.taskpilot import state
from frognano.taskpilot.complete import Completeness, Enforced, completeness
from frognano.taskpilot.hide import function_of
from frognano.taskpilot.state import Facts

NAME = "facts.json"


class Draft(Record):
    """A statement and what it may yet say or leave out."""

    facts: Facts
    """Everything known, with every observed example, best first."""
    level: str
    """How much the statement tells."""
    shown: int = 1
    """Examples it shows, at most two."""
    seed: int = 0
    """Chooses between equal wordings."""
    enforced: tuple[Enforced, ...] = ()
    """What the hidden tests enforce."""
    clean_line: str = ""
    """The line that the gold patch restores; a statement never shows it."""
    hidden: tuple[str, ...] = ()
    """Names of the hidden test functions; a statement never shows them."""

    def statement(self) -> str:
        """The wording."""
        shown = self.facts.examples[: self.shown]
        return state.statement(self.facts.model_copy(update={"examples": shown}), self.level, self.seed)

    def completeness(self) -> Completeness:
        """How complete the wording is."""
        return completeness(self.enforced, self.statement())

    def leaks(self) -> str:
        """What the wording gives away: the fixed line or a hidden test's name; empty when nothing."""
        text = self.statement()
        quoted = [line.strip() for line in text.splitlines()]
        if self.clean_line and self.clean_line in quoted:
            return "it shows the fixed line"
        for name in self.hidden:
            if re.search(rf"\b{re.escape(name)}\b", text):
                return f"it names the hidden test {name}"
        return ""

    def words(self) -> int:
        """Words of the statement."""
        return len(self.statement().split())

    def save(self, folder: Path) -> None:
        """Write the draft beside the task in ``folder``."""
        (folder / NAME).write_text(self.model_dump_json(indent=1) + "\n")


def load_draft(folder: Path) -> Draft:
    """The draft beside the task in ``folder``. Raises FileNotFoundError where the task has none."""
    return Draft.model_validate_json((folder / NAME).read_text())


def hidden_names(test_ids: Iterable[str]) -> tuple[str, ...]:
    """Function names behind test ids."""
    return tuple(dict.fromkeys(function_of(test_id)[1][-1] for test_id in test_ids))
