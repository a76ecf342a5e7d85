"""A function being written: its scope, lines and notes, and the words that names are made of."""

from __future__ import annotations

import keyword
from dataclasses import dataclass, field
from importlib import resources

from frognano.tadpole.corpus.expressions import Expressions, Stream, made_up

WORDS: tuple[str, ...] = tuple((resources.files(__package__) / "words.txt").read_text(encoding="utf-8").split())
NOUNS = {
    "int": (
        "n",
        "k",
        "size",
        "limit",
        "count",
        "start",
        "stop",
        "step",
        "width",
        "low",
        "high",
        "value",
        "index",
        "total",
        "a",
        "b",
    ),
    "str": ("text", "s", "name", "word", "line", "key", "prefix", "label", "path", "sep", "char", "raw", "token"),
    "ints": ("xs", "values", "numbers", "items", "data", "scores", "nums", "sizes", "seq", "row"),
    "strs": ("words", "names", "lines", "parts", "keys", "tokens", "labels", "fields", "rows"),
    "map": ("table", "counts", "mapping", "index_of", "lookup", "prices", "d"),
}
ERRORS = ("ValueError", "TypeError", "KeyError", "IndexError")
HINT = {"int": "int", "str": "str", "ints": "list", "strs": "list", "map": "dict"}


def word(rng: Stream) -> str:
    """A word for names and texts: known or made up, half and half."""
    if rng.shared and rng.theme and rng.random() < 0.5:
        return rng.choice(rng.theme)
    return rng.choice(WORDS) if rng.random() < 0.5 else made_up(rng)


def identifier(rng: Stream, words: int) -> str:
    """A snake-case name that is no keyword."""
    while True:
        name = "_".join(word(rng) for _ in range(words))
        if not keyword.iskeyword(name):
            return name


@dataclass
class Draft:
    """A function being written."""

    rng: Stream
    scope: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def make(self) -> Expressions:
        """Expressions over the present scope."""
        return Expressions(self.rng, self.scope)

    def fresh(self, kind: str) -> str:
        """A new variable name of a type, not yet in scope."""
        free = [name for name in (*NOUNS[kind], "result", "out", "found", "best") if name not in self.scope]
        if not free or self.rng.random() < 0.45:
            name = identifier(self.rng, self.rng.choice((1, 1, 2)))
            return name if name not in self.scope and name not in KEYWORDS else f"{name}_{len(self.scope)}"
        return self.rng.choice(free)


KEYWORDS = {
    "all",
    "bin",
    "list",
    "map",
    "max",
    "min",
    "len",
    "open",
    "round",
    "set",
    "sum",
    "filter",
    "next",
    "sorted",
}
