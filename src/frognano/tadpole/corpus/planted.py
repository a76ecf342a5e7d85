"""A module with one planted bug."""

from __future__ import annotations

from dataclasses import dataclass

from frognano.taskpilot.mutate import Mutation
from frognano.taskpilot.state import Facts


@dataclass(frozen=True)
class Planted:
    """A module with one bug: path, clean and mutated source, the mutation, and what it breaks."""

    path: str
    clean: str
    mutated: str
    mutation: Mutation
    facts: Facts
