"""Functions of Python's own standard library: how people really name, write and document things.

Generated functions run and their calls are true, but their words and idioms are thin. Here the text is real and the
calls are made up. The library lies beside every interpreter, so nothing is shipped or fetched; another Python
release makes other texts.
"""

from __future__ import annotations

import ast
import functools
import keyword
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from frognano.tadpole.corpus.draft import identifier, word
from frognano.tadpole.corpus.expressions import Stream
from frognano.tadpole.corpus.functions import sample_value
from frognano.tadpole.corpus.planted import Planted
from frognano.taskpilot.mutate import Module, Mutation, mutations_of
from frognano.taskpilot.state import Example, Facts

_LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "encodings", "pydoc_data"}
_SHORTEST, _LONGEST, _WIDEST = 3, 21, 100
"""Lines of a function, and characters of a line."""
_NEIGHBOURS = (1, 2, 3, 4, 6, 8, 10)
_KINDS = ("int", "str", "ints", "strs", "map", "str", "ints")
_RAISED = ("ValueError", "TypeError", "IndexError", "KeyError", "AttributeError")


@dataclass(frozen=True)
class Excerpt:
    """A function as it stands in a library module, at column 0."""

    name: str
    source: str
    parameters: int


@functools.cache
def excerpts() -> tuple[tuple[str, tuple[Excerpt, ...]], ...]:
    """Module stem and its functions, for every module of the library that has any; sorted by path."""
    root = Path(sysconfig.get_path("stdlib"))
    found = []
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if not _LEFT_OUT & set(inside.parts) and not inside.stem.startswith("test"):
            held = _functions(path)
            if held:
                found.append((inside.stem.strip("_").lower(), held))
    return tuple(found)


def _functions(path: Path) -> tuple[Excerpt, ...]:
    try:
        text = path.read_text(encoding="ascii")
        tree = ast.parse(text)
    except (UnicodeDecodeError, SyntaxError):
        return ()
    lines = text.expandtabs().split("\n")
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and not node.decorator_list]
    excerpts: dict[str, Excerpt] = {}
    for node in sorted(nodes, key=lambda node: node.lineno):
        excerpt = _excerpt(node, lines[node.lineno - 1 : node.end_lineno])
        if excerpt is not None:
            excerpts.setdefault(excerpt.name, excerpt)
    return tuple(excerpts.values())


def _excerpt(node: ast.FunctionDef, lines: list[str]) -> Excerpt | None:
    """The function without its indentation and without ``self``; None if it does not suit."""
    column = node.col_offset
    if not _SHORTEST <= len(lines) <= _LONGEST or node.name.startswith("__"):
        return None
    if any(line[:column].strip() for line in lines):
        return None
    source = "\n".join(line[column:].rstrip() for line in lines) + "\n"
    arguments = node.args.args
    if arguments and arguments[0].arg in {"self", "cls"}:
        source = re.sub(r"\b(?:self|cls)\.", "", re.sub(r"\((?:self|cls)(?:, *)?", "(", source, count=1))
        arguments = arguments[1:]
    try:
        ast.parse(source)
    except SyntaxError:
        return None
    if max(map(len, source.split("\n"))) > _WIDEST:
        return None
    return Excerpt(node.name, source, len(arguments))


def plant_in_library(rng: Stream) -> Planted:
    """A module of neighbouring library functions with one bug in one of them."""
    modules = excerpts()
    total = sum(len(functions) for _, functions in modules)
    while True:
        at = rng.randrange(total)
        for stem, functions in modules:  # noqa: B007
            if at < len(functions):
                break
            at -= len(functions)
        target = functions[at]
        rng.theme[:] = rng.sample(_words(target) or ["value"], min(4, len(_words(target)) or 1))
        count = rng.choice(_NEIGHBOURS)
        first = rng.randint(max(0, at - count), at)
        chosen = functions[first : max(first + count, at + 1)]
        clean = _text(rng, chosen)
        mutation = _mutation(rng, clean, target)
        if mutation is not None:
            return _planted(rng, _path(rng, stem, target), clean, target, mutation)


def _text(rng: Stream, functions: tuple[Excerpt, ...]) -> str:
    title = f'"""{" ".join(word(rng) for _ in range(rng.randint(2, 6))).capitalize()}."""\n'
    imports = rng.choice(("", "", "\nimport re\n", "\nimport operator\n", "\nfrom collections import deque\n"))
    return "\n\n".join([title + imports, *(function.source for function in functions)])


def _path(rng: Stream, stem: str, target: Excerpt) -> str:
    """A file named after what it holds, mostly."""
    name = rng.choice((stem, *rng.theme[:2], identifier(rng, 1)))
    return f"{rng.choice(('', '', '', 'src/'))}{rng.choice((word(rng), stem))}/{name}.py"


def _words(target: Excerpt) -> list[str]:
    """The words that the function is made of, each once; keywords left out."""
    words = dict.fromkeys(text for text in re.findall(r"[a-z]{3,11}", target.source) if not keyword.iskeyword(text))
    return list(words)


def _mutation(rng: Stream, clean: str, target: Excerpt) -> Mutation | None:
    function = next(item for item in Module(clean).functions() if item.name == target.name)
    by_family: dict[str, list[Mutation]] = {}
    for mutation in mutations_of(function):
        if mutation.apply(clean).count("\n") == clean.count("\n"):
            by_family.setdefault(mutation.family, []).append(mutation)
    return rng.choice(by_family[rng.choice(sorted(by_family))]) if by_family else None


def _planted(rng: Stream, path: str, clean: str, target: Excerpt, mutation: Mutation) -> Planted:
    mutated = mutation.apply(clean)
    function = next(item for item in Module(clean).functions() if item.name == target.name)
    facts = Facts(
        function=target.name,
        file=path,
        line=function.node.lineno,
        contract=function.docstring(),
        examples=tuple(_example(rng, target) for _ in range(rng.choice((1, 1, 2)))),
        suspect=Module(mutated).line_text(mutation.line).strip(),
    )
    return Planted(path, clean, mutated, mutation, facts)


def _example(rng: Stream, target: Excerpt) -> Example:
    """A made-up call; what it gives is of one type mostly."""
    arguments = [sample_value(rng, rng.choice(_KINDS)) for _ in range(target.parameters)]
    kind = rng.choice((*_KINDS, "bool", "bool", "none", "pair"))
    actual, expected = _result(rng, kind), _result(rng, kind)
    if actual == expected or rng.random() < 0.15:
        actual = f"raises {rng.choice(_RAISED)}"
    elif rng.random() < 0.1:
        expected = f"raises {rng.choice(_RAISED)}"
    return Example(call=f"{target.name}({', '.join(map(repr, arguments))})", actual=actual, expected=expected)


def _result(rng: Stream, kind: str) -> str:
    if kind == "bool":
        return rng.choice(("True", "False"))
    if kind == "none":
        return rng.choice(("None", repr(sample_value(rng, rng.choice(_KINDS)))))
    if kind == "pair":
        return repr((sample_value(rng, "int"), sample_value(rng, rng.choice(("int", "str")))))
    return repr(sample_value(rng, kind))
