"""Completeness: everything a hidden test enforces is stated, or follows from what the solver can see.

Each requirement is matched by the statement (its call is quoted there), by visible documentation (docstring of what
is called, README), by a visible test of the same function, or by visible source (an exception's message). What is
left is a gap with a code; ``remedy`` turns gaps into a contract to state. The rules read words, not meaning: a
docstring that names the function's behaviour wrongly or vaguely still counts as documentation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache

from frognano.records import Record
from frognano.taskpilot.requirements import Requirement

ENOUGH_WORDS = 4
"""A shorter docstring documents nothing."""

GAPS = ("exception-unstated", "message-unstated", "default-unstated", "behaviour-undocumented")


class Enforced(Record):
    """A requirement and what it follows from, the statement apart."""

    requirement: Requirement
    follows: str = ""
    """``documentation``, ``visible test`` or ``visible source``; empty when only a statement can match it."""
    gap: str = ""
    """Code of what is missing where nothing else matches it."""


class Completeness(Record):
    """How much of what the hidden tests enforce the solver can know."""

    requirements: int
    stated: int
    follows: int
    gaps: tuple[str, ...] = ()
    """Codes, one per unmatched requirement."""

    @property
    def complete(self) -> bool:
        """True when nothing is missing."""
        return not self.gaps

    @property
    def share(self) -> float:
        """Share of requirements that are matched; 1 when there is none."""
        return 1 - len(self.gaps) / self.requirements if self.requirements else 1.0


class Visible:
    """What a solver can read about a repository: docstrings by name, README, source, and the tests that stay."""

    def __init__(self, modules: Mapping[str, str], readme: str) -> None:
        self._docs: dict[str, list[str]] = {}
        self._source = "\n".join(modules.values())
        self.readme = readme
        for source in modules.values():
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    self._docs.setdefault(node.name, []).append(ast.get_docstring(node) or "")

    def documentation(self, names: Iterable[str]) -> list[str]:
        """Docstrings of what is called ``names``, long enough to say something."""
        found = (text for name in names for text in self._docs.get(name, []))
        return [text for text in found if len(text.split()) >= ENOUGH_WORDS]

    def says(self, text: str) -> bool:
        """True when the source holds ``text``."""
        return text in self._source


class VisibleTests:
    """What the repository's tests assert, by the name of what they call."""

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._by_name: dict[str, list[Requirement]] = {}
        for requirement in requirements:
            for name in called(requirement):
                self._by_name.setdefault(name, []).append(requirement)

    def about(self, names: Iterable[str], hidden: Container[str]) -> list[Requirement]:
        """Assertions about ``names`` in tests that stay."""
        return [test for name in names for test in self._by_name.get(name, []) if test.test not in hidden]


def enforced(
    requirements: Sequence[Requirement],
    visible: Visible,
    tests: VisibleTests,
    default: tuple[str, str] | None = None,
) -> tuple[Enforced, ...]:
    """What each requirement of the hidden tests follows from.

    ``default`` is a parameter and its clean default, where that was changed.
    """
    hidden = {requirement.test for requirement in requirements}
    return tuple(
        _enforced(requirement, visible, tests.about(called(requirement), hidden), default)
        for requirement in requirements
    )


def _enforced(
    requirement: Requirement, visible: Visible, tests: Sequence[Requirement], default: tuple[str, str] | None
) -> Enforced:
    names = called(requirement)
    docs = visible.documentation(names)
    if requirement.match and not _message_known(requirement.match, docs, visible):
        return Enforced(requirement=requirement, gap="message-unstated")
    if requirement.outcome.startswith("raises "):
        error = requirement.outcome.removeprefix("raises ")
        if any(_word(error, text) for text in [*docs, visible.readme]):
            return Enforced(requirement=requirement, follows="documentation")
        if any(test.outcome == requirement.outcome for test in tests):
            return Enforced(requirement=requirement, follows="visible test")
        return Enforced(requirement=requirement, gap="exception-unstated")
    if default is not None and not _default_known(default, docs, visible.readme, tests):
        return Enforced(requirement=requirement, gap="default-unstated")
    if docs or any(_word(name, visible.readme) for name in names):
        return Enforced(requirement=requirement, follows="documentation")
    if tests:
        return Enforced(requirement=requirement, follows="visible test")
    return Enforced(requirement=requirement, gap="behaviour-undocumented")


def called(requirement: Requirement) -> list[str]:
    """Last names of everything the requirement calls, without builtins' and tests' own helpers told apart."""
    return list(_called(requirement.call, requirement.text))


@lru_cache(maxsize=16384)
def _called(call: str, text: str) -> tuple[str, ...]:
    found: list[str] = []
    for source in (call, text):
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                found.append(node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func))
    return tuple(dict.fromkeys(found))


def _message_known(pattern: str, docs: Sequence[str], visible: Visible) -> bool:
    words = [part for part in re.split(r"[^\w ]+", pattern) if part.strip()]
    return all(visible.says(part) or any(part in text for text in docs) for part in words)


def _default_known(default: tuple[str, str], docs: Sequence[str], readme: str, tests: Sequence[Requirement]) -> bool:
    parameter, value = default
    bare = value.strip("'\"")
    written = bare.strip() or {" ": "space", "": "empty"}.get(bare, bare)
    stated = any(
        _word(written, text) for text in [*docs, readme] if _word(parameter, text) or "default" in text.lower()
    )
    return stated or any("default" in test.test for test in tests)


def _word(word: str, text: str) -> bool:
    return bool(word) and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def completeness(found: Sequence[Enforced], statement: str) -> Completeness:
    """How far ``statement`` and what is visible match the requirements."""
    quoted = {_normal(line[4:]) for line in statement.splitlines() if line.startswith(">>> ")}
    stated = follows = 0
    gaps: list[str] = []
    for item in found:
        requirement = item.requirement
        if (requirement.call and _normal(requirement.call) in quoted) or _noted(item, statement):
            stated += 1
        elif item.follows:
            follows += 1
        else:
            gaps.append(item.gap)
    return Completeness(requirements=len(found), stated=stated, follows=follows, gaps=tuple(gaps))


def _noted(item: Enforced, statement: str) -> bool:
    required = next((line for line in statement.splitlines() if line.startswith("Required: ")), "")
    if not required:
        return False
    outcome = item.requirement.outcome
    if item.gap == "default-unstated":
        return "by default" in required
    if outcome.startswith("raises "):
        return _word(outcome.removeprefix("raises "), required)
    return bool(item.requirement.call) and item.requirement.call in required


def _normal(call: str) -> str:
    try:
        return ast.unparse(ast.parse(call, mode="eval"))
    except SyntaxError:
        return call.strip()


def remedy(found: Sequence[Enforced], statement: str, default: tuple[str, str] | None, limit: int = 3) -> str | None:
    """A contract that closes the gaps of ``statement``: empty when there is none, None when they are too many."""
    said: list[str] = []
    for item in found:
        if completeness([item], statement).complete:
            continue
        requirement = item.requirement
        if item.gap == "default-unstated" and default is not None:
            said.append(f"{default[0]} is {default[1]} by default")
        elif not requirement.call or not requirement.outcome or item.gap == "message-unstated":
            return None
        elif requirement.outcome.startswith("raises "):
            said.append(f"{requirement.call} {requirement.outcome}")
        else:
            said.append(f"{requirement.call} gives {requirement.outcome}")
    said = list(dict.fromkeys(said))
    return "; ".join(said) if len(said) <= limit else None
