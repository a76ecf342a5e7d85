"""What a test enforces, read from its source: calls and the outcomes asserted of them.

Local names, loops over written-out values and parameters are replaced by their values, so that a call stands alone
and can be run or quoted. Nothing here runs the code; an outcome is what the test says, not what was observed. A
test that checks something else (files, state, output) gives requirements without a call.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache

from frognano.records import Record

_BUILTINS = frozenset(dir(builtins))
_EQUAL = {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual"}
_TRUTH = {"assertTrue": "True", "assertFalse": "False", "assertIsNone": "None"}
_WAYS = 6
"""At most this many sets of parameters or rounds of a loop are written out."""

Names = dict[str, ast.expr | None]
"""Local name → the expression it stands for; None where that is not known."""


class Requirement(Record):
    """One asserted fact."""

    test: str
    """Node id of the test function, without parameters."""
    call: str = ""
    """A self-contained expression, or empty when there is none."""
    outcome: str = ""
    """Source of the expected value, ``raises NAME``, or empty when only truth or another relation is asked."""
    match: str = ""
    """Pattern that the exception's message must match."""
    text: str = ""
    """The assertion as it is written."""


class TestFile:
    """One test file, parsed."""

    __test__ = False

    def __init__(self, path: str, source: str) -> None:
        """Raises SyntaxError when ``source`` does not parse."""
        self.path = path
        tree = ast.parse(source)
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        self.prelude = "\n".join(ast.unparse(node) for node in imports)
        self._imported = {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}
        self._constants: Names = {}
        for node in tree.body:
            _note_assignment(node, self._constants)
        self._functions = dict(_functions(tree.body, ()))

    def tests(self) -> list[str]:
        """Node ids of every function that is written in the file and named like a test."""
        found = ("::".join((self.path, *name)) for name in self._functions if name[-1].startswith("test"))
        return list(found)

    def requirements(self, name: tuple[str, ...]) -> list[Requirement]:
        """What the test function ``name`` (class and function) enforces; empty when it is not written here."""
        node = self._functions.get(name)
        if node is None:
            return []
        test = "::".join((self.path, *name))
        found: list[Requirement] = []
        for names in _parameter_sets(node, self._constants):
            reader = _Reader(test, self._known)
            reader.read(node.body, {**self._constants, **names})
            found.extend(reader.found)
        return list(dict.fromkeys(found))

    def _known(self, name: str) -> bool:
        return name in self._imported or name in _BUILTINS


@lru_cache(maxsize=256)
def test_file(path: str, source: str) -> TestFile:
    """The parsed file, kept for the next question about it."""
    return TestFile(path, source)


def _functions(
    body: list[ast.stmt], outer: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (*outer, node.name), node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, (*outer, node.name))
        elif isinstance(node, ast.If | ast.Try):
            yield from _functions(node.body, outer)


def _parameter_sets(node: ast.FunctionDef | ast.AsyncFunctionDef, constants: Names) -> list[Names]:
    """Values of the parameters for a few of the written-out cases; one set without values otherwise."""
    sets: list[Names] = [dict.fromkeys(argument.arg for argument in node.args.args)]
    for mark in node.decorator_list:
        if not (isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith("parametrize") and len(mark.args) >= 2):
            continue
        names, cases = _parameter_names(mark.args[0]), _elements(mark.args[1], constants)
        rows = [row for row in (_row(names, case) for case in cases) if row]
        sets = [{**old, **row} for old, row in itertools.islice(itertools.product(sets, rows), _WAYS)] or sets
    return sets


def _parameter_names(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    elements = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    return [part.value for part in elements if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def _elements(node: ast.expr, constants: Names) -> list[ast.expr]:
    if isinstance(node, ast.Name):
        node = constants.get(node.id) or node
    return list(node.elts) if isinstance(node, ast.List | ast.Tuple) else []


def _row(names: list[str], case: ast.expr) -> Names:
    if isinstance(case, ast.Call) and ast.unparse(case.func).endswith("param"):
        case = case.args[0] if len(names) == 1 and case.args else ast.Tuple(list(case.args), ast.Load())
    if len(names) == 1:
        return {names[0]: case}
    values = case.elts if isinstance(case, ast.Tuple | ast.List) else []
    return dict(zip(names, values, strict=False)) if len(values) == len(names) else {}


def _note_assignment(node: ast.stmt, names: Names) -> None:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        names[node.targets[0].id] = _substitute(node.value, names)
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        names[node.target.id] = _substitute(node.value, names)


class _Reader:
    """Walks the statements of one test in order."""

    def __init__(self, test: str, known: Callable[[str], bool]) -> None:
        self._test = test
        self._known = known
        self.found: list[Requirement] = []

    def read(self, body: list[ast.stmt], names: Names) -> None:
        """Collect from ``body``; ``names`` follows its assignments."""
        for node in body:
            if isinstance(node, ast.Assert):
                self._assertion(node.test, names)
            elif isinstance(node, ast.With):
                self._with(node, names)
            elif isinstance(node, ast.For):
                self._loop(node, names)
            elif isinstance(node, ast.If | ast.While | ast.Try):
                self.read(node.body, names)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self._expression(node.value, names)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                names[node.name] = None
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self._assignment(node, names)
            elif isinstance(node, ast.AugAssign | ast.Delete):
                _forget(node, names)

    def _assignment(self, node: ast.Assign | ast.AnnAssign, names: Names) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            _forget(target, names)
        _note_assignment(node, names)

    def _loop(self, node: ast.For, names: Names) -> None:
        rounds = _elements(node.iter, names)[:_WAYS]
        loop = _parameter_names(ast.Constant(ast.unparse(node.target).strip("()")))
        rows = [row for row in (_row(loop, case) for case in rounds) if row]
        if not rows:
            _forget(node.target, names)
            rows = [{}]
        for row in rows:
            self.read(node.body, {**names, **row})

    def _with(self, node: ast.With, names: Names) -> None:
        context = node.items[0].context_expr
        function = ast.unparse(context.func) if isinstance(context, ast.Call) else ""
        if isinstance(context, ast.Call) and function.endswith(("raises", "assertRaises", "assertRaisesRegex")):
            self._raises(node, context, names)
            return
        for item in node.items:
            if item.optional_vars is not None:
                _forget(item.optional_vars, names)
        self.read(node.body, names)

    def _raises(self, node: ast.With, context: ast.Call, names: Names) -> None:
        error = _error_name(context.args[0]) if context.args else ""
        pattern = next((word.value for word in context.keywords if word.arg == "match"), None)
        if ast.unparse(context.func).endswith("Regex") and len(context.args) > 1:
            pattern = context.args[1]
        match = pattern.value if isinstance(pattern, ast.Constant) and isinstance(pattern.value, str) else ""
        self.read(node.body[:-1], names)
        last = node.body[-1]
        value = last.value if isinstance(last, ast.Expr | ast.Assign) else None
        self._add(value, names, f"raises {error}", ast.unparse(node), match)

    def _expression(self, call: ast.Call, names: Names) -> None:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        text = ast.unparse(call)
        if name in _EQUAL and len(call.args) >= 2:
            self._equal(call.args[0], call.args[1], names, text)
        elif name in _TRUTH and call.args:
            self._add(call.args[0], names, _TRUTH[name], text)
        elif name == "assertRaises" and len(call.args) >= 2:
            inner = ast.Call(call.args[1], call.args[2:], call.keywords)
            self._add(inner, names, f"raises {_error_name(call.args[0])}", text)
        elif name.startswith("assert"):
            self._add(None, names, "", text)
        elif isinstance(call.func, ast.Attribute):
            # A method called for its effect: what its object stands for is no longer one expression.
            _forget(call.func.value, names)

    def _assertion(self, node: ast.expr, names: Names) -> None:
        text = ast.unparse(node)
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for part in node.values:
                self._assertion(part, names)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.Is):
            self._equal(node.left, node.comparators[0], names, text)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._add(node.operand, names, "False", text)
        else:
            self._add(node, names, "" if isinstance(node, ast.Compare) else "True", text)

    def _equal(self, left: ast.expr, right: ast.expr, names: Names, text: str) -> None:
        if not _calls_something(_substitute(left, names)) and _calls_something(_substitute(right, names)):
            left, right = right, left
        self._add(left, names, ast.unparse(_substitute(right, names)), text)

    def _add(self, node: ast.expr | None, names: Names, outcome: str, text: str, match: str = "") -> None:
        call = ""
        if node is not None:
            whole = _substitute(node, names)
            if _calls_something(whole) and self._stands_alone(whole, names):
                call = ast.unparse(whole)
        self.found.append(Requirement(test=self._test, call=call, outcome=outcome, match=match, text=text))

    def _stands_alone(self, node: ast.expr, names: Names) -> bool:
        bound = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        bound |= {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        free = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - bound
        return all(name not in names and self._known(name) for name in free)


def _error_name(node: ast.expr) -> str:
    if isinstance(node, ast.Tuple) and node.elts:
        node = node.elts[0]
    return ast.unparse(node).split(".")[-1]


def _calls_something(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _forget(node: ast.AST, names: Names) -> None:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            names[part.id] = None


class _Substitution(ast.NodeTransformer):
    def __init__(self, names: Names) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._names.get(node.id) or node


def _substitute(node: ast.expr, names: Names) -> ast.expr:
    """A copy of ``node`` with known names replaced by what they stand for."""
    copy = ast.parse(ast.unparse(node), mode="eval").body
    changed = _Substitution(names).visit(copy)
    assert isinstance(changed, ast.expr)
    return changed
