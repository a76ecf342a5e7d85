"""A module with one planted bug, and how the bug is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from frognano.tadpole.corpus.draft import word
from frognano.tadpole.corpus.expressions import Stream
from frognano.taskpilot.mutate import FAMILIES, Function, Module, Mutation, mutations_of
from frognano.taskpilot.state import Example, Facts


@dataclass(frozen=True)
class Planted:
    """A module with one bug: path, clean and mutated source, the mutation, and what it breaks."""

    path: str
    clean: str
    mutated: str
    mutation: Mutation
    facts: Facts


def planted_in(function: Function, path: str, mutation: Mutation, examples: tuple[Example, ...]) -> Planted:
    """The module of ``function``, to stand at ``path``, with ``mutation`` and what is known of it."""
    clean = function.module.source
    mutated = mutation.apply(clean)
    facts = Facts(
        function=function.name,
        file=path,
        line=function.node.lineno,
        contract=function.docstring(),
        examples=examples,
        suspect=Module(mutated).line_text(mutation.line).strip(),
    )
    return Planted(path, clean, mutated, mutation, facts)


def module_text(rng: Stream, imports: tuple[str, ...], sources: Iterable[str]) -> str:
    """A module: a title of a few words, one of ``imports`` or none, the functions."""
    title = f'"""{" ".join(word(rng) for _ in range(rng.randint(2, 6))).capitalize()}."""\n'
    return "\n\n".join([title + rng.choice(("", "", *(f"\n{line}\n" for line in imports))), *sources])


def named(clean: str, name: str) -> Function:
    """The function called ``name`` of a module."""
    return next(item for item in Module(clean).functions() if item.name == name)


def bugs(rng: Stream, function: Function) -> Iterator[Mutation]:
    """Mutations that keep the number of lines: one of each family that has any, the families in random order."""
    families = list(FAMILIES)
    rng.shuffle(families)
    for family in families:
        found = [mutation for mutation in mutations_of(function, (family,)) if keeps_lines(function, mutation)]
        if found:
            yield rng.choice(found)


def keeps_lines(function: Function, mutation: Mutation) -> bool:
    """Whether the mutated module has as many lines as the module."""
    source = function.module.source
    return mutation.text.count("\n") == source.count("\n", mutation.start, mutation.end)
