"""Swapping the code of one function in a running interpreter.

Every live function object made from a module's source is found once; a plan then gives each the code that the
changed source would have given it. Refused (``NotSwappable``) when the change shows outside function bodies
(defaults, decorators, class bodies), when free variables differ, or when the function is not loaded: such
candidates need a fresh import. What ran at import time with the old code keeps its results.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, Tuple

Key = Tuple[str, int, str]


class NotSwappable(ValueError):
    """This change needs a fresh import; the message says why."""


class Plan:
    """Which functions get which code."""

    def __init__(self, pairs: list[tuple[FunctionType, CodeType]]) -> None:
        self._pairs = pairs

    def carry_out(self) -> None:
        """Give each function its new code; cannot be undone, so do it in a fork."""
        for function, code in self._pairs:
            function.__code__ = code


class Index:
    """Live functions by where their code stands."""

    def __init__(self, files: list[str]) -> None:
        wanted = set(files)
        self._functions: dict[Key, list[FunctionType]] = {}
        self._compiled: dict[str, tuple[str, CodeType]] = {}
        for thing in gc.get_objects():
            if type(thing) is FunctionType and thing.__code__.co_filename in wanted:
                self._functions.setdefault(_key(thing.__code__), []).append(thing)

    def plan(self, path: str, clean: str, changed: str) -> Plan:
        """The swap that turns ``clean`` into ``changed``. Raises NotSwappable."""
        old = self._clean(path, clean)
        try:
            new = compile(changed, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise NotSwappable(f"does not compile: {error}") from error
        pairs: list[tuple[FunctionType, CodeType]] = []
        for before, after in _changed_functions(old, new):
            live = self._functions.get(_key(before), [])
            if before.co_freevars != after.co_freevars:
                raise NotSwappable(f"{before.co_name}: other free variables")
            pairs.extend((function, after) for function in live)
        if not pairs:
            raise NotSwappable("no live function has this code")
        return Plan(pairs)

    def _clean(self, path: str, clean: str) -> CodeType:
        text, code = self._compiled.get(path, (None, None))
        if text != clean or code is None:
            code = compile(clean, path, "exec", dont_inherit=True)
            self._compiled[path] = (clean, code)
        return code


def _key(code: CodeType) -> Key:
    return (code.co_filename, code.co_firstlineno, code.co_name)


def _changed_functions(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Pairs of function code that differ, the outer before the inner."""
    if _shell(old) != _shell(new):
        if not old.co_flags & 0x1:
            raise NotSwappable(f"{old.co_name}: the change shows outside function bodies")
        yield old, new
    elif old != new and old.co_flags & 0x1:
        yield old, new
    before, after = _inner(old), _inner(new)
    if len(before) != len(after):
        raise NotSwappable(f"{old.co_name}: another number of inner functions")
    for left, right in zip(before, after):
        if left.co_name != right.co_name:
            raise NotSwappable(f"{left.co_name}: inner functions differ")
        if left != right:
            yield from _changed_functions(left, right)


def _inner(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _shell(code: CodeType) -> tuple[Any, ...]:
    """A code object without its inner code and line numbers."""
    plain = [(type(constant), repr(constant)) for constant in code.co_consts if not isinstance(constant, CodeType)]
    return (code.co_code, plain, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
