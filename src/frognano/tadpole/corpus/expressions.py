"""Typed random expressions: the raw material of generated functions.

A scope maps variable names to one of a few types; ``Expressions`` draws expressions of a wanted type over it.
Everything is a function of the random stream given, so the same seed makes the same code.
"""

from __future__ import annotations

import random
from collections.abc import Callable

TYPES = ("int", "str", "ints", "strs", "map")
SEPARATORS = ("", " ", ",", ", ", ";", "-", "_", ".", ":", "=", "/", "|", "+", "#")
_ONSETS = (*"bcdfghjklmnprstvwz", "", "ch", "sh", "th", "st", "tr", "pl", "gr", "br", "qu", "cl", "fr", "sp", "str")
_VOWELS = ("a", "e", "i", "o", "u", "a", "e", "i", "o", "ea", "ou", "ai", "ee", "oo", "y")
_CODAS = ("", "", "", "n", "r", "l", "s", "t", "d", "m", "ng", "nd", "st", "ck", "x", "p", "rt", "nk", "ss", "b", "g")
_LETTERS = "eeeeaaaiiiooouuttnnsshhrrddllccmmwwffggyyppbbvvkkxjqz"
SUFFIXES = ("py", "txt", "x", "ab", "end", "s", "ed", "re", "un", "id", "no", "to")


class Stream(random.Random):
    """A random stream that also says how rich the text drawn from it is: the curriculum begins plain.

    ``level`` 0: short modules, easy names; 1: long modules, odd names, more idioms; 2: prose in the documentation,
    longer functions that call each other; 3: names of one module share a few words, its path among them.
    """

    def __init__(self, seed: str, level: int = 0) -> None:
        super().__init__(seed)
        self.rich, self.long, self.shared = level >= 1, level >= 2, level >= 3
        self.theme: list[str] = []
        """Words that the names of this module share."""
        self.helpers: list[tuple[str, tuple[str, ...]]] = []
        """Functions written so far in this module: name and parameter types."""


def made_up(rng: Stream) -> str:
    """A word nobody has seen: names in real code are not all in the vocabulary."""
    if rng.rich and rng.random() < 0.5:
        return "".join(rng.choices(_LETTERS, k=rng.choice((2, 3, 4, 5, 6, 7, 8, 9))))
    parts = (rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(rng.choice((1, 2, 2, 3))))
    return "".join(parts)


class Expressions:
    """Draws expressions over ``scope`` (name → type)."""

    def __init__(self, rng: Stream, scope: dict[str, str]) -> None:
        self.rng = rng
        self.scope = scope

    def names(self, kind: str) -> list[str]:
        """Variables of one type, newest last."""
        return [name for name, held in self.scope.items() if held == kind]

    def name(self, kind: str) -> str:
        """One variable of a type; newer ones are likelier."""
        names = self.names(kind)
        return self.rng.choice(names + names[-1:])

    def separator(self) -> str:
        """A quoted short separator."""
        return f'"{self.rng.choice(SEPARATORS)}"'

    def word(self) -> str:
        """A quoted short word."""
        return f'"{self.rng.choice(SUFFIXES) if self.rng.random() < 0.4 else made_up(self.rng)}"'

    def number(self) -> str:
        """A small non-negative integer."""
        return str(self.rng.choice((0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 7, 8, 10, 12, 16, 26, 60, 64, 99, 100, 255, 1000)))

    def small(self) -> str:
        """An integer from 1 to 4."""
        return str(self.rng.randint(1, 4))

    def draw(self, kind: str, depth: int = 2) -> str:
        """An expression of type ``kind``: int, str, ints, strs, map or bool."""
        makers: dict[str, Callable[[int], str]] = {
            "int": self._int,
            "str": self._str,
            "ints": self._ints,
            "strs": self._strs,
            "map": self._map,
            "bool": self.condition,
        }
        return makers[kind](depth)

    def _pick(self, options: list[Callable[[], str]]) -> str:
        return self.rng.choice(options)()

    def _int(self, depth: int) -> str:
        leaf: list[Callable[[], str]] = [self.number]
        if self.names("int"):
            leaf = [lambda: self.name("int")] * 4 + leaf
        if depth <= 0:
            return self._pick(leaf)
        options = list(leaf)
        for kind in ("ints", "strs", "str", "map"):
            if self.names(kind):
                options += [lambda kind=kind: f"len({self.name(kind)})"]  # type: ignore[misc]
        if self.names("int"):
            options += [
                lambda: f"{self.name('int')} + {self._int(0)}",
                lambda: f"{self.name('int')} - {self._int(0)}",
                lambda: f"{self.name('int')} * {self._int(0)}",
                lambda: f"{self.name('int')} // {self.rng.randint(2, 10)}",
                lambda: f"{self.name('int')} % {self.rng.randint(2, 12)}",
                lambda: f"max({self.name('int')}, {self._int(0)})",
                lambda: f"min({self.name('int')}, {self._int(0)})",
                lambda: f"abs({self.name('int')} - {self._int(0)})",
                lambda: f"({self.name('int')} + {self.number()}) // {self.rng.randint(2, 9)}",
            ]
        if self.names("ints"):
            options += [
                lambda: f"sum({self.name('ints')})",
                lambda: f"max({self.name('ints')})",
                lambda: f"min({self.name('ints')}, default={self.number()})",
                lambda: f"{self.name('ints')}[0]",
                lambda: f"{self.name('ints')}[-1]",
                lambda: f"{self.name('ints')}.count({self._int(0)})",
                lambda: (
                    f"sum(1 for {self.fresh()} in {self.name('ints')} if {self.last} {self.order()} {self._int(0)})"
                ),
                lambda: f"sum({self.fresh()} * {self.small()} for {self.last} in {self.name('ints')})",
            ]
        if self.names("str"):
            options += [
                lambda: f"{self.name('str')}.find({self.separator()})",
                lambda: f"{self.name('str')}.count({self.separator()})",
                lambda: f"ord({self.name('str')}[0])",
            ]
        if self.names("map") and self.names("str"):
            options += [lambda: f"{self.name('map')}.get({self.name('str')}, {self.number()})"]
        if self.rng.rich and self.rng.random() < 0.3:
            return self._pick(self._rich_ints())
        return self._pick(options)

    def _rich_ints(self) -> list[Callable[[], str]]:
        options: list[Callable[[], str]] = [lambda: f"{self.number()} ** {self.small()}"]
        if self.names("int"):
            options += [
                lambda: f"round({self.name('int')} / {self.rng.randint(2, 9)}, {self.small()})",
                lambda: f"{self.name('int')} ** {self.rng.randint(2, 3)}",
                lambda: f"-{self.name('int')} // {self.rng.randint(2, 9)}",
                lambda: f"{self.name('int')} * {self.small()} - {self.small()}",
                lambda: f"{self.name('int')} / {self.rng.randint(2, 100)}",
                lambda: f"({self.name('int')} - {self.small()}) % {self.rng.randint(2, 60)} + {self.small()}",
                lambda: f"{self.name('int')} >> {self.small()} & {self.rng.choice((1, 3, 7, 15, 255))}",
                lambda: f"{self.name('int')} << {self.small()} | {self.small()}",
            ]
        if self.names("ints"):
            options += [
                lambda: f"sorted({self.name('ints')})[len({self.name('ints')}) // 2]",
                lambda: f"{self.name('ints')}.index(max({self.name('ints')}))",
                lambda: f"sum(x * y for x, y in zip({self.name('ints')}, {self.name('ints')}[1:]))",
                lambda: f"len(set({self.name('ints')}))",
                lambda: f"max({self.name('ints')}) - min({self.name('ints')})",
            ]
        if self.names("map"):
            options += [
                lambda: f"sum({self.name('map')}.values())",
                lambda: f"max({self.name('map')}.values(), default={self.number()})",
            ]
        if self.names("str"):
            options += [lambda: f"int({self.name('str')}, {self.rng.choice((2, 8, 16))})"]
        return options

    def _str(self, depth: int) -> str:
        leaf: list[Callable[[], str]] = [self.separator, self.word]
        if self.names("str"):
            leaf = [lambda: self.name("str")] * 5 + leaf
        if depth <= 0:
            return self._pick(leaf)
        options = list(leaf)
        if self.names("str"):
            method = self.rng.choice
            options += [
                lambda: f"{self.name('str')}.{method(('strip', 'lower', 'upper', 'lstrip', 'rstrip', 'title'))}()",
                lambda: f"{self.name('str')}.{method(('strip', 'lstrip', 'rstrip'))}({self.separator()})",
                lambda: f"{self.name('str')}[{self.small()}:]",
                lambda: f"{self.name('str')}[:{self._int(0)}]",
                lambda: f"{self.name('str')}[::-1]",
                lambda: f"{self.name('str')}[0]",
                lambda: f"{self.name('str')}.replace({self.separator()}, {self.separator()})",
                lambda: f"{self.name('str')} + {self._str(0)}",
                lambda: f"{self.name('str')}.split({self.separator()})[0]",
                lambda: f"{self.name('str')}.split({self.separator()})[-1]",
                lambda: f"{self.name('str')}.{method(('ljust', 'rjust', 'zfill'))}({self.rng.randint(2, 9)})",
                lambda: f"{self.name('str')}.removesuffix({self.word()})",
                lambda: f"{self.name('str')}.removeprefix({self.word()})",
                lambda: f'f"{{{self.name("str")}}}{self.rng.choice(SEPARATORS)}{{{self._leaf_name()}}}"',
            ]
        if self.names("strs"):
            options += [
                lambda: f"{self.separator()}.join({self.name('strs')})",
                lambda: f"{self.name('strs')}[0]",
                lambda: f"{self.name('strs')}[-1]",
                lambda: f"max({self.name('strs')}, key=len)",
            ]
        if self.rng.long and self.rng.helpers and self.rng.random() < 0.2:
            return self.helper()
        if self.rng.rich and self.names("str"):
            options += [
                lambda: f"{self.name('str')}.partition({self.separator_full()})[{self.rng.choice((0, 2))}]",
                lambda: f"{self.name('str')}[:{self.small()}] + {self.name('str')}[{self.small()}:]",
                lambda: f'"".join(reversed({self.name("str")}))',
                lambda: f'"".join({self.fresh()} for {self.last} in {self.name("str")} if {self.last}.isalnum())',
                lambda: f"{self.name('str')} or {self.word()}",
                lambda: f"{self.name('str')}[{self.small()}:-{self.small()}]",
                lambda: f"{self.name('str')}.strip({self.word()}).lower()",
            ]
        if self.rng.rich and self.names("int"):
            options += [
                lambda: f'f"{{{self.name("int")}:0{self.small()}d}}"',
                lambda: f'f"{{{self.name("int")}}}{made_up(self.rng)[:2]}"',
                lambda: f"chr(ord({self.word()}[0]) + {self.name('int')})",
            ]
        if self.names("int"):
            options += [lambda: f"str({self.name('int')})", lambda: f"{self.separator()} * {self.name('int')}"]
        return self._pick(options)

    def _leaf_name(self) -> str:
        return self.rng.choice(self.names("str") + self.names("int"))

    def _ints(self, depth: int) -> str:
        if not self.names("ints"):
            if self.names("strs"):
                return f"[len({self.fresh()}) for {self.last} in {self.name('strs')}]"
            return f"list(range({self._int(0)}))"
        if depth <= 0:
            return self.name("ints")
        return self._pick(
            [
                lambda: self.name("ints"),
                lambda: f"sorted({self.name('ints')})",
                lambda: f"sorted({self.name('ints')}, reverse=True)",
                lambda: f"sorted(set({self.name('ints')}))",
                lambda: f"{self.name('ints')}[{self.small()}:]",
                lambda: f"{self.name('ints')}[:-1]",
                lambda: f"{self.name('ints')}[:{self._int(0)}]",
                lambda: f"{self.name('ints')}[::{self.rng.randint(2, 3)}]",
                lambda: f"{self.name('ints')}[::-1]",
                lambda: f"[{self.fresh()} {self.arith()} {self._int(0)} for {self.last} in {self.name('ints')}]",
                lambda: (
                    f"[{self.fresh()} for {self.last} in {self.name('ints')} "
                    f"if {self.last} {self.order()} {self._int(0)}]"
                ),
                lambda: (
                    f"[{self.fresh()} for {self.last} in {self.name('ints')} "
                    f"if {self.last} % {self.rng.randint(2, 4)} == 0]"
                ),
                lambda: f"{self.name('ints')} + [{self._int(0)}]",
                lambda: f"list(range({self.rng.randint(0, 1)}, {self._int(0)} + 1))",
            ]
        )

    def _strs(self, depth: int) -> str:
        options: list[Callable[[], str]] = []
        if self.names("str"):
            options += [
                lambda: f"{self.name('str')}.split({self.separator_full()})",
                lambda: f"{self.name('str')}.split()",
                lambda: f"list({self.name('str')})",
                lambda: f"{self.name('str')}.splitlines()",
                lambda: f"{self.name('str')}.rsplit({self.separator_full()}, {self.small()})",
            ]
        if self.names("strs"):
            options += [
                lambda: self.name("strs"),
                lambda: f"sorted({self.name('strs')})",
                lambda: f"sorted({self.name('strs')}, key=len)",
                lambda: f"[{self.fresh()}.strip() for {self.last} in {self.name('strs')}]",
                lambda: f"[{self.fresh()} for {self.last} in {self.name('strs')} if {self.last}]",
                lambda: (
                    f"[{self.fresh()} for {self.last} in {self.name('strs')} "
                    f"if len({self.last}) {self.order()} {self._int(0)}]"
                ),
                lambda: f"{self.name('strs')}[{self.small()}:]",
                lambda: f"{self.name('strs')}[:-1]",
            ]
        if not options:
            return f"[str({self.fresh()}) for {self.last} in range({self._int(0)})]"
        return self._pick(options)

    def separator_full(self) -> str:
        """A quoted separator that is not empty."""
        return f'"{self.rng.choice(SEPARATORS[1:])}"'

    def _map(self, depth: int) -> str:
        if self.names("map"):
            return self.name("map")
        if self.names("strs"):
            return f"{{{self.fresh()}: len({self.last}) for {self.last} in {self.name('strs')}}}"
        return "{}"

    def helper(self) -> str:
        """A call of a function written before."""
        name, kinds = self.rng.choice(self.rng.helpers)
        return f"{name}({', '.join(self.draw(kind, self.rng.choice((0, 0, 1))) for kind in kinds)})"

    last = "x"

    def fresh(self) -> str:
        """A short loop variable that the scope does not hold; also kept as ``last``."""
        free = [name for name in ("x", "v", "item", "n", "part", "value", "e", "c", "k") if name not in self.scope]
        self.last = self.rng.choice(free)
        return self.last

    def order(self) -> str:
        """An ordering operator."""
        return self.rng.choice(("<", "<=", ">", ">="))

    def arith(self) -> str:
        """An arithmetic operator."""
        return self.rng.choice(("+", "-", "*"))

    def condition(self, depth: int = 1) -> str:
        """A truth-valued expression."""
        options: list[Callable[[], str]] = []
        if self.names("int"):
            options += [
                lambda: f"{self.name('int')} {self.order()} {self._int(0)}",
                lambda: f"{self.name('int')} {self.order()} {self.number()}",
                lambda: f"{self.name('int')} {self.rng.choice(('==', '!='))} {self._int(0)}",
                lambda: f"{self.name('int')} % {self.rng.randint(2, 6)} {self.rng.choice(('==', '!='))} 0",
                lambda: (
                    f"{self.number()} {self.rng.choice(('<', '<='))} {self.name('int')} "
                    f"{self.rng.choice(('<', '<='))} {self.number()}"
                ),
            ]
        if self.names("str"):
            options += [
                lambda: f"not {self.name('str')}",
                lambda: self.name("str"),
                lambda: f"{self.name('str')} {self.rng.choice(('==', '!='))} {self._str(0)}",
                lambda: f"{self.separator()} {self.rng.choice(('in', 'not in'))} {self.name('str')}",
                lambda: f"{self.name('str')}.{self.rng.choice(('startswith', 'endswith'))}({self.word()})",
                lambda: f"{self.name('str')}.{self.rng.choice(('isdigit', 'isalpha', 'isupper', 'islower'))}()",
                lambda: f"len({self.name('str')}) {self.order()} {self._int(0)}",
            ]
        for kind in ("ints", "strs"):
            if self.names(kind):
                options += [
                    lambda kind=kind: f"not {self.name(kind)}",  # type: ignore[misc]
                    lambda kind=kind: f"len({self.name(kind)}) {self.order()} {self._int(0)}",  # type: ignore[misc]
                    lambda kind=kind: f"len({self.name(kind)}) == {self.number()}",  # type: ignore[misc]
                ]
        if self.names("ints") and self.names("int"):
            options += [lambda: f"{self.name('int')} {self.rng.choice(('in', 'not in'))} {self.name('ints')}"]
        if self.names("ints"):
            options += [
                lambda: (
                    f"{self.rng.choice(('any', 'all'))}({self.fresh()} {self.order()} {self.number()} "
                    f"for {self.last} in {self.name('ints')})"
                )
            ]
        if self.names("map") and self.names("str"):
            options += [lambda: f"{self.name('str')} {self.rng.choice(('in', 'not in'))} {self.name('map')}"]
        if self.rng.long and self.rng.helpers and self.rng.random() < 0.2:
            return self.rng.choice(("", "not ")) + self.helper()
        if self.rng.rich:
            anyone = self.rng.choice(list(self.scope))
            options += [
                lambda: f"{anyone} is {self.rng.choice(('', 'not '))}None",
                lambda: f"isinstance({anyone}, {self.rng.choice(('int', 'str', 'list', 'dict', 'bool'))})",
                lambda: f"not {anyone}",
            ]
        if not options:
            return "True"
        if depth > 0 and self.rng.random() < 0.25:
            return f"{self._pick(options)} {self.rng.choice(('and', 'or'))} {self._pick(options)}"
        return self._pick(options)
