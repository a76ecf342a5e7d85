"""Statements: what the solver is told, written from behaviour and at several levels of detail.

A statement names what goes wrong by examples that were obtained by running the code, and, level by level, where
the function stands, what its documentation promises, and which line looks suspicious. It never shows the fix.
Harder means less location, never a hidden contract: what the hidden tests enforce must be stated or follow from
the visible documentation (see ``frognano.taskpilot.complete``). The texts are part of Tadpole's training
distribution: changing them means training it again.
"""

from __future__ import annotations

import random

from frognano.records import Record

LEVELS = ("symptom", "located", "contract", "suspect")
"""From the least to the most that is told; each level tells all that the one before tells."""


class Example(Record):
    """One call whose outcome was observed: what it does, and what it should do.

    Outcomes are either the ``repr`` of the returned value or ``raises NAME``.
    """

    call: str
    actual: str
    expected: str


class Facts(Record):
    """What is known of one fault."""

    function: str
    """Qualified name, for example ``clamp``."""
    file: str
    """Repository path."""
    line: int
    """1-based line of the ``def``."""
    contract: str = ""
    """The function's documentation."""
    examples: tuple[Example, ...] = ()
    suspect: str = ""
    """Source line that looks wrong, stripped."""
    note: str = ""
    """A contract that the documentation lacks, added by refinement."""


def statement(facts: Facts, level: str, seed: int = 0) -> str:
    """The statement of ``facts`` at ``level``; ``seed`` chooses between equal wordings.

    Raises ValueError for an unknown level or facts without an example.
    """
    if level not in LEVELS:
        raise ValueError(f"unknown statement level {level!r}; one of {', '.join(LEVELS)}")
    if not facts.examples:
        raise ValueError(f"{facts.file}:{facts.function}: a statement needs at least one observed example")
    rng = random.Random(f"{seed}:{facts.file}:{facts.function}:{facts.examples[0].call}")
    depth = LEVELS.index(level)
    parts = [f"{_title(facts, rng)}\n", *(_example(example) for example in facts.examples[:2])]
    if depth >= 1:
        parts.append(f"\nDefined at:\n{facts.file}:{facts.line}")
    if depth >= 2 and facts.contract:
        parts.append(f"\nDocumented as:\n{facts.contract}")
    if facts.note:
        parts.append(f"\nRequired: {facts.note}")
    if depth >= 3 and facts.suspect:
        parts.append(f"\nSuspicious line:\n```\n{facts.suspect}\n```")
    return "\n".join(parts) + "\n"


def _title(facts: Facts, rng: random.Random) -> str:
    raised = facts.examples[0].actual.startswith("raises")
    name = facts.function
    if raised:
        return rng.choice([f"{name} raises an error", f"{name} fails"])
    return rng.choice([f"{name} is wrong", f"wrong result of {name}", f"{name} returns the wrong value"])


def _example(example: Example) -> str:
    return f">>> {example.call}\ngot: {example.actual}\nexpected: {example.expected}"
