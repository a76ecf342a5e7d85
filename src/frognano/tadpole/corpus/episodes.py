"""Scripted Leaf episodes over planted bugs: the texts that Tadpole is pretrained on.

An episode looks exactly as the harness would make it: the frozen prompt, a statement, calls, the tools' own
answers. The scripted solver is not perfect on purpose: ``Habits`` says how often it gives up or edits another line,
as the transcripts of many people would, so that training has something to choose from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from frognano.leaf.profile import load_profile
from frognano.leaf.tools import run_tool_locally
from frognano.records import Observation, ToolCall
from frognano.tadpole.corpus.bugs import plant
from frognano.tadpole.corpus.draft import word
from frognano.tadpole.corpus.expressions import Stream
from frognano.tadpole.corpus.library import plant_in_library
from frognano.tadpole.corpus.planted import Planted, bugs, named
from frognano.taskpilot.mutate import Module
from frognano.taskpilot.state import LEVELS, statement

READ_LINES = 16
"""Lines the scripted solver reads from the function's first line on."""
_TOLD = (*LEVELS, "suspect", "suspect", "suspect", "suspect")
"""What statements tell; a small model learns most from those that name the line."""


@dataclass(frozen=True)
class Habits:
    """Shares of the scripted solver's behaviours."""

    gives_up: float = 0.0
    """The solver has read the function and ends without an edit."""
    wrong_line: float = 0.0
    """A change of another line of the function."""
    misread: float = 0.08
    """The first path is wrong; the error is read and the function looked for. The slip itself is not learned."""
    misquote: float = 0.08
    """The first ``old_string`` is slightly wrong; the error is read and the edit repeated. Not learned either."""
    unchanged: float = 0.08
    """The first edit changes nothing; the error is read and the edit repeated. Not learned either."""
    library: float = 0.6
    """Bugs planted in functions of the standard library instead of generated ones."""


@dataclass(frozen=True)
class Turn:
    """One turn: the calls of the model (none: the final answer) and what the tools answered."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    observations: tuple[Observation, ...] = ()
    slip: bool = False
    """A mistake to recover from, which the model should read and not write."""


@dataclass(frozen=True)
class Script:
    """One episode: the user's message and the turns; ``solved`` tells whether the final change is the right one."""

    user: str
    turns: tuple[Turn, ...]
    solved: bool


class Author:
    """Writes scripts in a scratch folder, deterministically from one seed."""

    def __init__(self, folder: Path, seed: int, habits: Habits, level: int = 3) -> None:
        self.folder = folder
        self.rng = Stream(f"tadpole:{seed}", level)
        self.habits = habits
        self.profile = load_profile("leaf")

    def drill(self) -> Script:
        """A short script: the suspicious line is named and edited without reading, which teaches copying first."""
        planted = self._plant()
        facts = planted.facts.model_copy(update={"contract": "", "examples": planted.facts.examples[:1]})
        user = statement(facts, "suspect", self.rng.randrange(1 << 30))
        path = self._place(planted)
        solved, edits = self._edits(planted, planted.path)
        path.unlink()
        return Script(user, (*edits, Turn(f"Fixed {facts.function}.")), solved)

    def _plant(self) -> Planted:
        return plant_in_library(self.rng) if self.rng.random() < self.habits.library else plant(self.rng)

    def _place(self, planted: Planted) -> Path:
        path = self.folder / planted.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(planted.mutated, encoding="utf-8")
        return path

    def write(self) -> Script:
        """The next script."""
        planted = self._plant()
        level = self.rng.choice(_TOLD)
        user = statement(planted.facts, level, self.rng.randrange(1 << 30))
        path = self._place(planted)
        where = {"offset": planted.facts.line, "limit": READ_LINES}
        turns: list[Turn] = []
        location = planted.path
        lost = level != "symptom" and self.rng.random() < self.habits.misread
        if lost:
            turns.append(self._turn("Read", {"file_path": self._elsewhere(location), **where}, slip=True))
        if lost or level == "symptom":
            turns.append(self._turn("Bash", {"command": f'grep -rn "def {planted.facts.function}(" .'}))
            location = f"./{location}"
        turns.append(self._turn("Read", {"file_path": location, **where}))
        if self.rng.random() < self.habits.gives_up:
            solved = False
            turns.append(Turn(f"Found nothing wrong with {planted.facts.function}."))
        else:
            solved, edits = self._edits(planted, location)
            turns += [*edits, Turn(f"Fixed {planted.facts.function}.")]
        path.unlink()
        return Script(user, tuple(turns), solved)

    def _elsewhere(self, path: str) -> str:
        """A path near ``path`` where nothing stands."""
        folder, _, file = path.rpartition("/")
        found = self.rng.choice((f"{word(self.rng)}/{file}", f"{folder}/{word(self.rng)}.py"))
        return found if found != path else f"{folder}/no_{file}"

    def _turn(self, name: str, arguments: Mapping[str, object], slip: bool = False) -> Turn:
        text = run_tool_locally(self.folder, name, dict(arguments), self.profile)
        # The scratch folder has another name every time; this is a sandbox's.
        text = text.replace(f"{self.folder}/", "/app/")
        call = ToolCall(id="call", name=name, arguments=dict(arguments))
        return Turn("", (call,), (Observation(call_id="call", tool=name, text=text),), slip)

    def _edits(self, planted: Planted, location: str) -> tuple[bool, list[Turn]]:
        """Whether the last edit is the right one, and the edits, slips among them."""
        rng, habits = self.rng, self.habits
        wrong = self._elsewhere_in(planted) if rng.random() < habits.wrong_line else None
        line = wrong[0] if wrong else planted.mutation.line
        new = wrong[1] if wrong else Module(planted.clean).line_text(line).strip()
        old, new = _unique(planted.mutated, line, Module(planted.mutated).line_text(line).strip(), new)
        slip, misquoted = rng.random(), _misquoted(rng, old)
        first = ""
        if slip < habits.unchanged:
            first = old
        elif slip < habits.unchanged + habits.misquote and misquoted not in planted.mutated:
            first = misquoted
        turns: list[Turn] = []
        if first:
            wanted = {"file_path": location, "old_string": first, "new_string": old if first == old else new}
            turns.append(self._turn("Edit", wanted, slip=True))
        turns.append(self._turn("Edit", {"file_path": location, "old_string": old, "new_string": new}))
        return wrong is None, turns

    def _elsewhere_in(self, planted: Planted) -> tuple[int, str] | None:
        """Number and new text of another line of the function, changed plausibly; None where there is none."""
        for mutation in bugs(self.rng, named(planted.mutated, planted.facts.function)):
            if mutation.line != planted.mutation.line and "\n" not in mutation.text:
                return mutation.line, Module(mutation.apply(planted.mutated)).line_text(mutation.line).strip()
        return None


def _unique(source: str, line: int, old: str, new: str) -> tuple[str, str]:
    """Add the next line, or the one before, until ``old`` stands once in the source."""
    lines = source.split("\n")
    first = last = line - 1
    while source.count(old) > 1 and (last + 1 < len(lines) or first > 0):
        if last + 1 < len(lines) and lines[last + 1].strip():
            last += 1
            old, new = f"{old}\n{lines[last]}", f"{new}\n{lines[last]}"
        elif first > 0:
            first -= 1
            old = f"{lines[first].strip()}\n{lines[first + 1]}" + old[len(lines[first + 1].strip()) :]
            indent = lines[first + 1][: len(lines[first + 1]) - len(lines[first + 1].lstrip())]
            new = f"{lines[first].strip()}\n{indent}{new}"
        else:
            break
    return old, new


def _misquoted(rng: Stream, text: str) -> str:
    """``text`` with one word or sign missing."""
    parts = text.split(" ")
    if len(parts) < 2:
        return text + " "
    del parts[rng.randrange(len(parts))]
    return " ".join(parts)
