"""Candidates: which mutations are tried, in which order.

Every mutation of every function is listed once, without those that no stable test reaches and those whose module
would have the same syntax tree as another's. The order goes round the functions of a split, one mutation each, the
rarest families first, so that any prefix of it is varied. It depends on the seed alone.
"""

from __future__ import annotations

import ast
import hashlib
import random
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from frognano.config.taskpilot import SynthesisSettings
from frognano.records import Record, Split
from frognano.taskpilot.coverage_map import body_lines, changed_lines
from frognano.taskpilot.funnel import Code, Funnel
from frognano.taskpilot.ground import Ground, Modules
from frognano.taskpilot.mutate import FAMILIES, Function, Mutation, mutations_of


class Candidate(Record):
    """One mutation and the tests that reach it."""

    key: str
    """Stable name, from module and change."""
    module: str
    split: Split
    mutation: Mutation
    function_line: int
    """1-based line of the ``def``."""
    docstring: str = ""
    tests: tuple[str, ...]
    """Stable tests that execute the changed statement."""
    at_import: bool = False
    """The changed code runs while the tests are imported."""

    @property
    def place(self) -> str:
        """Module and function."""
        return f"{self.module}::{self.mutation.function}"

    def span(self) -> dict[str, object]:
        """The change, as the bench reads it."""
        mutation = self.mutation
        return {"file": self.module, "start": mutation.start, "end": mutation.end, "text": mutation.text}


def propose(
    ground: Ground, splits: Mapping[str, Split], settings: SynthesisSettings, funnel: Funnel
) -> list[Candidate]:
    """Every candidate in the order in which to try them."""
    proposer = _Proposer(ground.modules, settings, funnel)
    by_function: dict[str, list[Candidate]] = {}
    for path, module in ground.modules.parsed.items():
        if path not in splits:
            continue
        for function in module.functions():
            found = list(proposer.of_function(path, function, splits[path]))
            if found:
                by_function[f"{path}::{function.name}"] = found
    return list(_ordered(by_function, settings.seed))


class _Proposer:
    """Lists the candidates of functions, each syntax tree once."""

    def __init__(self, modules: Modules, settings: SynthesisSettings, funnel: Funnel) -> None:
        self._modules, self._settings, self._funnel = modules, settings, funnel
        self._shapes: set[str] = set()

    def of_function(self, path: str, function: Function, split: Split) -> Iterator[Candidate]:
        """Candidates that change ``function``."""
        families, reach = self._settings.families, self._modules.reach
        for mutation in mutations_of(function, families or FAMILIES):
            tests = reach.tests(path, changed_lines(function, mutation.line))
            if not tests:
                self._funnel.rejected("propose", Code.UNCOVERED)
                continue
            shape = f"{path}:{_shape(function, mutation)}"
            if shape in self._shapes:
                self._funnel.rejected("propose", Code.DUPLICATE)
                continue
            self._shapes.add(shape)
            self._funnel.passed("propose")
            change = f"{path}:{mutation.function}:{mutation.start}:{mutation.end}:{mutation.text}"
            yield Candidate(
                key=hashlib.sha256(change.encode()).hexdigest()[:10],
                module=path,
                split=split,
                mutation=mutation,
                function_line=function.node.lineno,
                docstring=function.docstring(),
                tests=tests,
                at_import=reach.at_import(path, body_lines(function)),
            )


def _shape(function: Function, mutation: Mutation) -> str:
    """The changed function's syntax tree; other functions of a module stay as they are."""
    first, last = function.module.lines_of(function.node)
    longer = len(mutation.text) - (mutation.end - mutation.start)
    changed = mutation.apply(function.module.source)[first : last + longer]
    return f"{function.name}:{ast.dump(ast.parse(textwrap.dedent(changed)))}"


def _ordered(by_function: Mapping[str, list[Candidate]], seed: int) -> Iterable[Candidate]:
    """Round after round over all functions in a seeded order; in each the rarest family so far."""
    draw = random.Random(f"candidates:{seed}")
    places = sorted(by_function)
    draw.shuffle(places)
    waiting: dict[str, list[Candidate]] = {}
    for place in places:
        waiting[place] = sorted(by_function[place], key=lambda candidate: candidate.key)
        draw.shuffle(waiting[place])
    used: Counter[str] = Counter()
    while waiting:
        for place in places:
            if place not in waiting:
                continue
            chosen = min(waiting[place], key=lambda candidate: used[candidate.mutation.family])
            waiting[place].remove(chosen)
            if not waiting[place]:
                del waiting[place]
            used[chosen.mutation.family] += 1
            yield chosen
