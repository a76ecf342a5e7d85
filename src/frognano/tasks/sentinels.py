"""Planted tests: copies of real tests, changed so that no correct code can pass them.

A report in which a planted test passes was forged or was bought with objects that equal everything; it is void.
Copies stand beside their originals under names drawn anew for every run, so that only code that understands each
test could tell them apart. An honest wrong solution fails them like an honest right one. They do not help against
code that reads and understands the test file while it runs.
"""

from __future__ import annotations

import ast
import io
import random
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass, field

MAX_COPIES = 6
MAX_PARAMETERS = 24
_SUFFIXES = ("again", "more", "other", "too", "still", "as_well", "here", "then", "once", "anew", "alike", "further")
_PLAIN_MARKS = {"skip", "skipif", "xfail", "timeout", "flaky"}


@dataclass(frozen=True)
class Planted:
    """A test file with planted tests, and their node ids."""

    source: bytes
    must_fail: tuple[str, ...] = ()
    must_pass: tuple[str, ...] = ()


@dataclass
class _Copy:
    after_line: int
    text: str
    ids: list[str] = field(default_factory=list)


def plant(path: str, source: bytes, tests: Sequence[str], draw: random.Random, plain: bool = True) -> Planted:
    """Plant tests in the file ``path``; ``tests`` are the node ids of real tests in it that are worth copying.

    ``plain`` adds short tests, one for each way in which pytest says no; one file of a run needs them.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
        module = ast.parse(text)
    except (SyntaxError, ValueError, LookupError):
        return Planted(source)
    taken = {node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef)}
    copies = _copies(module, tests, taken, draw)
    tail, fails, passes = _plain(taken, draw) if plain else ("", [], [])
    planted = _insert(text, copies) + tail
    try:
        compile(planted.encode(encoding), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return Planted(source)
    must_fail = [test for copy in copies for test in copy.ids] + [f"{path}::{name}" for name in fails]
    return Planted(planted.encode(encoding), tuple(must_fail), tuple(f"{path}::{name}" for name in passes))


def _copies(module: ast.Module, tests: Sequence[str], taken: set[str], draw: random.Random) -> list[_Copy]:
    by_function: dict[str, list[str]] = {}
    for test in tests:
        by_function.setdefault(test.split("[", 1)[0], []).append(test)
    found: list[_Copy] = []
    for function, ids in sorted(by_function.items()):
        node = _find(module, function.split("::")[1:])
        if node is None or not _copyable(node) or len(ids) > MAX_PARAMETERS:
            continue
        name = _fresh(node.name, taken, draw)
        renamed = function[: -len(node.name)] + name
        text = _spoiled(node, name, draw)
        copied = [renamed + test[len(function) :] for test in ids]
        found.append(_Copy(node.end_lineno or node.lineno, text, copied))
        if len(found) == MAX_COPIES:
            break
    return found


def _find(module: ast.Module, names: Sequence[str]) -> ast.FunctionDef | None:
    body: Sequence[ast.stmt] = module.body
    for name in names[:-1]:
        classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
        if not classes:
            return None
        body = classes[-1].body
    found = [node for node in body if isinstance(node, ast.FunctionDef) and names and node.name == names[-1]]
    return found[-1] if found else None


def _copyable(node: ast.FunctionDef) -> bool:
    """True when appending a failing statement surely makes the copy fail."""
    inner = [child for statement in node.body for child in _own_nodes(statement)]
    if any(isinstance(child, (ast.Return, ast.Yield, ast.YieldFrom)) for child in inner):
        return False
    return all(_harmless(decorator) for decorator in node.decorator_list)


def _own_nodes(node: ast.AST) -> list[ast.AST]:
    """The node and everything below it, without the bodies of nested functions and classes."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return []
    return [node] + [inner for child in ast.iter_child_nodes(node) for inner in _own_nodes(child)]


def _harmless(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    words = ast.unparse(called).split(".")
    if words[:2] == ["pytest", "mark"]:
        return words[-1] not in _PLAIN_MARKS
    return "patch" in words


def _spoiled(node: ast.FunctionDef, name: str, draw: random.Random) -> str:
    """Text of the copy: its last plain equality asks for a value that nothing equals, or a failing end is added."""
    copy = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(copy, ast.FunctionDef)
    copy.name = name
    for place in range(len(copy.body) - 1, -1, -1):
        if _spoil_variable(copy, place, draw) or _spoil(copy.body[place], draw):
            break
    else:
        endings = ("assert object() == 0", "raise AssertionError", "assert [object()] == [1]", "assert not [None]")
        copy.body.append(ast.parse(draw.choice(endings)).body[0])
    lines = ast.unparse(ast.fix_missing_locations(copy)).split("\n")
    indent = " " * node.col_offset
    return "\n" + "\n".join(indent + line if line else line for line in lines) + "\n"


def _spoil_variable(function: ast.FunctionDef, place: int, draw: random.Random) -> bool:
    """Give the variable that is compared with another value, so that who looks it up in the caller is found out."""
    compare = _asserted_equality(function.body[place])
    if compare is None:
        return False
    for side, other in ((compare.comparators[0], compare.left), (compare.left, compare.comparators[0])):
        if isinstance(side, ast.Name) and not isinstance(other, ast.Name) and not _is_literal(other):
            known = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == side.id]
            loads = sum(isinstance(node.ctx, ast.Load) for node in known)
            parameter = any(isinstance(one, ast.arg) and one.arg == side.id for one in ast.walk(function.args))
            if loads == 1 and (parameter or len(known) > 1):
                changed = f"{side.id} = ({side.id}, {draw.randrange(10**6)})"
                function.body.insert(0 if parameter and len(known) == 1 else place, ast.parse(changed).body[0])
                return True
    return False


def _asserted_equality(statement: ast.stmt) -> ast.Compare | None:
    """The comparison of ``assert left == right``; None for every other statement."""
    compare = statement.test if isinstance(statement, ast.Assert) else None
    if isinstance(compare, ast.Compare) and len(compare.ops) == 1 and isinstance(compare.ops[0], ast.Eq):
        return compare
    return None


def _spoil(statement: ast.stmt, draw: random.Random) -> bool:
    compare = _asserted_equality(statement)
    if compare is not None:
        if _is_literal(compare.left):
            compare.left = _other_than(compare.left, draw)
        else:
            compare.comparators = [_other_than(compare.comparators[0], draw)]
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and ast.unparse(call.func) == "self.assertEqual" and len(call.args) >= 2:
        which = 0 if _is_literal(call.args[0]) else 1
        call.args[which] = _other_than(call.args[which], draw)
        return True
    return False


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _other_than(node: ast.expr, draw: random.Random) -> ast.expr:
    """An expression near ``node`` whose value differs: near, because an object may claim to equal what is near."""
    value = ast.literal_eval(node) if _is_literal(node) else object()
    try:
        other = ast.parse(repr(_near(value, draw)), mode="eval").body
    except SyntaxError:
        other = ast.parse("object()", mode="eval").body
    return other


def _near(value: object, draw: random.Random) -> object:
    """A value of the same kind that differs in one place; an object without a literal form where there is none."""
    odd = draw.randrange(1, 4)
    match value:
        case bool() | None:
            return not value
        case int() | float():
            return value + odd if value + odd != value else object()
        case str():
            place = draw.randrange(len(value) + 1)
            return value[:place] + draw.choice("abcdefgh") + value[place:]
        case bytes():
            return value + b"%d" % odd
        case list() | tuple() if value:
            place = draw.randrange(len(value))
            changed = [_near(item, draw) if at == place else item for at, item in enumerate(value)]
            return changed if isinstance(value, list) else tuple(changed)
        case list():
            return [odd]
        case tuple():
            return (odd,)
        case dict() if value:
            key = draw.choice(list(value))
            return {**value, key: _near(value[key], draw)}
        case dict():
            return {odd: odd}
        case _:
            return object()


def _fresh(name: str, taken: set[str], draw: random.Random) -> str:
    words = list(_SUFFIXES)
    draw.shuffle(words)
    words.append(f"{draw.randrange(10**6):x}")
    for word in words:
        if f"{name}_{word}" not in taken:
            taken.add(f"{name}_{word}")
            return f"{name}_{word}"
    raise AssertionError("every name is taken")


def _plain(taken: set[str], draw: random.Random) -> tuple[str, list[str], list[str]]:
    """Short planted tests for the ways in which pytest says no, and one that must pass."""
    bodies = [
        'import pytest\n    with pytest.raises(ValueError):\n        int("{0}")',
        'import unittest\n    unittest.TestCase().assertEqual(str({0}), "{0}0")',
        'assert int("{0}") == {0}0',
        'import pytest\n    pytest.fail("{0}")',
        'assert int("{0}") == {0}',
    ]
    out, names = "", []
    for body in bodies:
        name = _fresh("test_value", taken, draw)
        names.append(name)
        out += f"\n\ndef {name}():\n    {body.format(draw.randrange(10, 10**4))}\n"
    return out, names[:-1], names[-1:]


def _insert(text: str, copies: Sequence[_Copy]) -> str:
    lines = text.split("\n")
    for copy in sorted(copies, key=lambda item: item.after_line, reverse=True):
        lines.insert(copy.after_line, copy.text)
    return "\n".join(lines) + "\n"
