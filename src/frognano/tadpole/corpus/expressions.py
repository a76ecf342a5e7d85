"""Typed random expressions: the raw material of generated functions.

A scope maps variable names to one of a few types; ``Expressions`` draws expressions of a wanted type over it.
Everything is a function of the random stream given, so the same seed makes the same code.
"""

from __future__ import annotations

import random
from collections.abc import Callable

TYPES = ("int", "str", "ints", "strs", "map")
SEPARATORS = ("", " ", ",", ", ", ";", "-", "_", ".", ":", "=", "/", "|", "+", "#")
SUFFIXES = ("py", "txt", "x", "ab", "end", "s", "ed", "re", "un", "id", "no", "to")


class Expressions:
    """Draws expressions over ``scope`` (name → type)."""

    def __init__(self, rng: random.Random, scope: dict[str, str]) -> None:
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
        return f'"{self.rng.choice(SUFFIXES)}"'

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
        return self._pick(options)

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
        if not options:
            return "True"
        if depth > 0 and self.rng.random() < 0.25:
            return f"{self._pick(options)} {self.rng.choice(('and', 'or'))} {self._pick(options)}"
        return self._pick(options)
