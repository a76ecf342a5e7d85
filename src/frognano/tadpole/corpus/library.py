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
import tokenize
from dataclasses import dataclass
from pathlib import Path

from frognano.tadpole.corpus.draft import identifier, word
from frognano.tadpole.corpus.expressions import Stream
from frognano.tadpole.corpus.functions import sample_value
from frognano.tadpole.corpus.planted import Planted, bugs, module_text, named, planted_in
from frognano.taskpilot.state import Example

_LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "encodings", "pydoc_data"}
_SHORTEST, _LONGEST, _WIDEST = 3, 21, 100
"""Lines of a function, and characters of a line."""
_NEIGHBOURS = (1, 2, 3, 4, 6, 8, 10)
_KINDS = ("int", "str", "ints", "strs", "map", "str", "ints")
_IMPORTS = ("import re", "import operator", "from collections import deque")
_HINTS = ("list", "str", "int", "list", "str", "int", "tuple", "dict", "bool", "float", "object")
_HINTED = 0.7
"""Share of modules whose heads have type hints."""
_RAISED = ("ValueError", "TypeError", "IndexError", "KeyError", "AttributeError")


@dataclass(frozen=True)
class Excerpt:
    """A function as it stands in a library module, at column 0."""

    name: str
    source: str
    parameters: tuple[tuple[str, str], ...]
    """Name and default of each parameter; an empty default where there is none."""
    simple: bool
    """Whether its head is one line of parameters alone."""

    def hinted(self, rng: Stream) -> str:
        """The source with type hints in its head, made up where no default tells them."""
        if not self.simple:
            return self.source
        parts = (f"{name}: {_hint(rng, default)}{' = ' * bool(default)}{default}" for name, default in self.parameters)
        head = f"def {self.name}({', '.join(parts)}) -> {rng.choice(_HINTS)}:"
        return head + self.source[self.source.index("\n") :]


def _hint(rng: Stream, default: str) -> str:
    if default.isdigit():
        return "int"
    if default in {"True", "False"}:
        return "bool"
    return "str" if default[:1] in set("'\"") else rng.choice(_HINTS)


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


@functools.cache
def _places() -> tuple[tuple[str, tuple[Excerpt, ...], int], ...]:
    """Every excerpt by the stem, the functions and the position that it has there."""
    return tuple((stem, held, at) for stem, held in excerpts() for at in range(len(held)))


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
    try:
        source = _double_quoted(source)
        found = ast.parse(source).body[0]
    except (SyntaxError, tokenize.TokenError):
        return None
    if not isinstance(found, ast.FunctionDef) or max(map(len, source.split("\n"))) > _WIDEST:
        return None
    defaults = [ast.get_source_segment(source, default) or "" for default in found.args.defaults]
    names = [argument.arg for argument in (*found.args.posonlyargs, *found.args.args)]
    parameters = zip(names, [""] * (len(names) - len(defaults)) + defaults, strict=True)
    special = (found.args.posonlyargs, found.args.vararg, found.args.kwonlyargs, found.args.kwarg, found.returns)
    simple = not any(special) and found.body[0].lineno > 1 and source.split("\n")[0].endswith("):")
    return Excerpt(node.name, source, tuple(parameters), simple)


def _double_quoted(source: str) -> str:
    """Plain strings in double quotes, as formatters write them."""
    lines = source.split("\n")
    for token in reversed(list(tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__))):
        row, start, end = token.start[0] - 1, token.start[1], token.end[1]
        plain = token.type == tokenize.STRING and re.fullmatch(r"[bru]?'[^'\"\\\n]*'", token.string)
        if plain:
            lines[row] = lines[row][:start] + token.string.replace("'", '"') + lines[row][end:]
    return "\n".join(lines)


def plant_in_library(rng: Stream) -> Planted:
    """A module of neighbouring library functions with one bug in one of them."""
    while True:
        stem, functions, at = rng.choice(_places())
        target = functions[at]
        rng.theme[:] = rng.sample(_words(target) or ["value"], min(4, len(_words(target)) or 1))
        count = rng.choice(_NEIGHBOURS)
        first = rng.randint(max(0, at - count), at)
        hints = rng.random() < _HINTED
        chosen = functions[first : max(first + count, at + 1)]
        sources = [each.hinted(rng) if hints else each.source for each in chosen]
        function = named(module_text(rng, _IMPORTS, sources), target.name)
        mutation = next(bugs(rng, function), None)
        if mutation is not None:
            examples = tuple(_example(rng, target) for _ in range(rng.choice((1, 1, 2))))
            return planted_in(function, _path(rng, stem, target), mutation, examples)


def _path(rng: Stream, stem: str, target: Excerpt) -> str:
    """A file named after what it holds, mostly."""
    name = rng.choice((stem, *rng.theme[:2], identifier(rng, 1)))
    return f"{rng.choice(('', '', '', 'src/'))}{rng.choice((word(rng), stem))}/{name}.py"


def _words(target: Excerpt) -> list[str]:
    """The words that the function is made of, each once; keywords left out."""
    words = dict.fromkeys(text for text in re.findall(r"[a-z]{3,11}", target.source) if not keyword.iskeyword(text))
    return list(words)


def _example(rng: Stream, target: Excerpt) -> Example:
    """A made-up call; what it gives is of one type mostly."""
    arguments = [sample_value(rng, rng.choice(_KINDS)) for _ in target.parameters]
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
