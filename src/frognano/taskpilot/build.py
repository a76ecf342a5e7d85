"""From a screened candidate to a task: hidden tests taken out, statement worded, gold patch made.

A task that would leak the fix, or ask for what its solver cannot know, is not built; the code says why. Nothing
runs here.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from frognano.config.taskpilot import SynthesisSettings
from frognano.records import GradingTests, Origin, Task
from frognano.taskpilot.candidates import Candidate
from frognano.taskpilot.complete import Enforced, Visible, VisibleTests, enforced, remedy
from frognano.taskpilot.draft import Draft, hidden_names
from frognano.taskpilot.facts import MOST_CALLS, Call, Question, calls_from
from frognano.taskpilot.funnel import Code
from frognano.taskpilot.ground import Ground
from frognano.taskpilot.hide import HideError, function_of, hide
from frognano.taskpilot.mutate import Module
from frognano.taskpilot.repository import module_name
from frognano.taskpilot.requirements import Requirement, test_file
from frognano.taskpilot.state import Example, Facts
from frognano.tasks.diff import make_patch
from frognano.tasks.folder import TaskContent
from frognano.tasks.patch import Entry


class Rejected(Exception):
    """A candidate cannot become a task."""

    def __init__(self, code: Code, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


@dataclass(frozen=True)
class Built:
    """A task and its parts, not yet written."""

    candidate: Candidate
    task: Task
    content: TaskContent
    draft: Draft


class Builder:
    """Builds the tasks of one repository."""

    def __init__(self, ground: Ground) -> None:
        repository = ground.repository
        self.quarantined: set[str] = set()
        """Tests since seen to be flaky: no new task is graded by them."""
        self._ground, self._store, self._base = ground, ground.store, ground.base
        self._repository, self._modules, self._baseline = repository, ground.modules, ground.baseline
        self._sources = {path: repository.read(path) for path in repository.test_files}
        files = [test_file(path, source) for path, source in self._sources.items()]
        self._files = {file.path: file for file in files}
        sources = {path: module.source for path, module in ground.modules.parsed.items()}
        self._visible = Visible(sources, repository.readme_text())
        every = (self._requirements_of(test) for file in files for test in file.tests())
        self._tests = VisibleTests(requirement for found in every for requirement in found)

    def question(
        self, number: int, candidate: Candidate, broken: Sequence[str], settings: SynthesisSettings
    ) -> Question:
        """The calls that may show the fault: asserted by breaking tests, then seen in tests that reach it."""
        preludes = {path: file.prelude for path, file in self._files.items()}
        calls = calls_from(self.requirements(broken), preludes, settings.example_limit)
        if len(calls) < MOST_CALLS:
            calls += self._traced(candidate, settings)
        span = candidate.span()
        function = candidate.mutation.function.rsplit(".", 1)[-1]
        return Question.model_validate({**span, "id": number, "function": function, "calls": calls[:MOST_CALLS]})

    def requirements(self, tests: Sequence[str]) -> list[Requirement]:
        """What the functions behind ``tests`` enforce."""
        functions = dict.fromkeys("::".join((path, *name)) for path, name in map(function_of, tests))
        return [requirement for function in functions for requirement in self._requirements_of(function)]

    def _requirements_of(self, test: str) -> list[Requirement]:
        path, name = function_of(test)
        return self._files[path].requirements(name) if path in self._files else []

    def _traced(self, candidate: Candidate, settings: SynthesisSettings) -> list[Call]:
        """Calls of a plain function that tests were seen to make, written with an import of it."""
        name = candidate.mutation.function
        if "." in name:
            return []
        prelude = f"from {module_name(candidate.module, self._repository.pythonpath)} import {name}"
        texts = [
            f"{name}({call.arguments})"
            for call in self._modules.calls
            if call.file == candidate.module and call.name == name and call.line <= candidate.function_line
        ]
        short = sorted((text for text in dict.fromkeys(texts) if len(text) <= settings.example_limit), key=len)
        return [Call(prelude=prelude, text=text) for text in short[:MOST_CALLS]]

    def build(
        self, candidate: Candidate, broken: Sequence[str], examples: Sequence[Example], settings: SynthesisSettings
    ) -> Built:
        """The task. Raises Rejected."""
        if not examples:
            raise Rejected(Code.NO_EXAMPLE)
        broken = [test for test in broken if test not in self.quarantined]
        if not broken:
            raise Rejected(Code.FLAKY_TEST)
        try:
            hidden = hide(self._sources, broken)
        except HideError as error:
            raise Rejected(Code.CANNOT_HIDE, str(error)) from error
        draft = self._draft(candidate, broken, examples, settings)
        clean = self._store.entry(self._base, candidate.module)
        assert clean is not None
        changed = Entry(clean.mode, candidate.mutation.apply(self._modules.parsed[candidate.module].source).encode())
        tests = {path: self._entry(path) for path in hidden}
        guards = self._baseline.stable if settings.p2p == "suite" else self._modules.tests_of(candidate.module)
        f2p = tuple(test for test in self._baseline.stable if test in set(broken))
        task = Task(
            id=task_id(self._repository.name, candidate),
            statement=draft.statement(),
            snapshot=self._store.derive(
                self._base,
                {candidate.module: changed, **{path: _bytes(text) for path, text in hidden.items()}},
            ),
            runtime=self._ground.runtime.model_copy(update={"test_timeout_s": self._limit([*f2p, *guards], settings)}),
            tests=GradingTests(
                f2p=f2p, p2p=tuple(sorted(set(guards) - set(f2p) - self.quarantined)), files=tuple(sorted(tests))
            ),
            origin=Origin(
                repository=self._repository.name,
                base=self._base,
                generator=f"mutation:{candidate.mutation.family}",
                module=candidate.module,
                function=candidate.mutation.function,
                line=candidate.mutation.line,
                seed=settings.seed,
                level=draft.level,
                licence=self._repository.licence,
            ),
            split=candidate.split,
        )
        gold = make_patch({candidate.module: changed}, {candidate.module: clean})
        return Built(candidate, task, TaskContent(gold, tests), draft)

    def _entry(self, path: str) -> Entry:
        entry = self._store.entry(self._base, path)
        assert entry is not None
        return entry

    def _limit(self, tests: Sequence[str], settings: SynthesisSettings) -> float:
        usual = sum(self._baseline.seconds.get(test, 0.0) for test in tests)
        return round(max(10.0, settings.time_factor * usual), 1)

    def _draft(
        self, candidate: Candidate, broken: Sequence[str], examples: Sequence[Example], settings: SynthesisSettings
    ) -> Draft:
        mutation, module = candidate.mutation, self._modules.parsed[candidate.module]
        mutated = mutation.apply(module.source).split("\n")
        default = self._default(candidate)
        found: tuple[Enforced, ...] = enforced(self.requirements(broken), self._visible, self._tests, default)
        draft = Draft(
            facts=Facts(
                function=mutation.function,
                file=candidate.module,
                line=candidate.function_line,
                contract=candidate.docstring,
                examples=tuple(examples),
                suspect=mutated[mutation.line - 1].strip(),
            ),
            level=_level(candidate, settings),
            shown=min(settings.examples, len(examples)),
            seed=settings.seed,
            enforced=found,
            clean_line=module.line_text(mutation.line).strip(),
            hidden=hidden_names(broken),
        )
        note = remedy(found, draft.statement(), default)
        if note is None:
            raise Rejected(Code.INCOMPLETE, ", ".join(draft.completeness().gaps))
        draft = draft.model_copy(update={"facts": draft.facts.model_copy(update={"note": note})})
        if draft.leaks():
            raise Rejected(Code.LEAK, draft.leaks())
        return draft

    def _default(self, candidate: Candidate) -> tuple[str, str] | None:
        """The parameter whose default was changed, and its clean value."""
        mutation, module = candidate.mutation, self._modules.parsed[candidate.module]
        if mutation.family != "default":
            return None
        for function in module.functions():
            if function.name == mutation.function:
                return _parameter(function.node.args, module, mutation.start)
        return None


def _parameter(arguments: ast.arguments, module: Module, start: int) -> tuple[str, str] | None:
    """The parameter whose default stands at offset ``start``, and that default's text."""
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    for name, value in pairs:
        if value is not None and module.span(value)[0] == start:
            return name.arg, module.text(value)
    return None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _level(candidate: Candidate, settings: SynthesisSettings) -> str:
    draw = random.Random(f"level:{settings.seed}:{candidate.key}")
    return draw.choices(list(settings.levels), weights=list(settings.levels.values()))[0]


def task_id(repository: str, candidate: Candidate) -> str:
    """``pond-ranges-clamp-1f3a9c0d2b``."""
    parts = (repository, PurePosixPath(candidate.module).stem, candidate.mutation.function)
    named = "-".join(re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-").lower() for part in parts)
    return f"{named[:100].strip('-')}-{candidate.key}"
