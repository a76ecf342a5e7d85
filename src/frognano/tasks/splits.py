"""Splits come first: whole repositories drawn from a seed, and the check that holds every split to its word.

A split is clean when no held-out function is imported, called or duplicated by a module that trains. The check
reads source text alone and knows nothing of how the split was drawn, so it can hold any synthesis to it. It sees
imports by name (``from``, relative ones, re-exports by packages, attributes of imported packages); it does not see
a function that is reached through a registry or ``getattr``.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from frognano.records import Split


@dataclass(frozen=True)
class Breach:
    """A training module that touches a held-out function."""

    module: str
    held_out: str
    """Module that holds the function."""
    function: str
    how: Literal["imported", "called", "duplicated"]


def draw_splits(names: Sequence[str], shares: Mapping[Split, float], seed: int) -> dict[str, Split]:
    """Name (of a repository) → split; each split but train gets its share, at least one where the share is above 0.

    Equal names and seed give equal splits, whatever the order of ``names``.
    """
    ordered = sorted(set(names))
    random.Random(f"splits:{seed}").shuffle(ordered)
    found: dict[str, Split] = dict.fromkeys(ordered, "train")
    waiting = iter(ordered)
    for split, share in sorted(shares.items()):
        if split == "train" or share <= 0:
            continue
        for _ in range(min(max(1, round(share * len(ordered))), len(ordered) - 1)):
            name = next(waiting, None)
            if name is not None:
                found[name] = split
    return found


def breaches(
    sources: Mapping[str, str], splits: Mapping[str, Split], pythonpath: Sequence[str] = (".",)
) -> list[Breach]:
    """Every way in which a training module touches a held-out function; empty when the split is clean.

    ``sources``: path → text of every module of the repository; ``splits``: path → split of those that have one.
    """
    trees = {path: ast.parse(text) for path, text in sources.items()}
    dotted = {path: _dotted(path, pythonpath) for path in sources}
    held = [path for path in sources if splits.get(path) == "held-out"]
    secret = _Secret(
        {name: path for path, name in dotted.items()},
        frozenset(held),
        {name: path for path in held for name in _top_level(trees[path])},
    )
    shapes = {shape: (path, function) for path in held for function, shape in _shapes(trees[path])}
    found: list[Breach] = []
    for path in sources:
        if splits.get(path, "train") != "train" or PurePosixPath(path).name == "__init__.py":
            continue
        found += _touched(path, trees[path], dotted[path], secret)
        found += [Breach(path, *shapes[shape], "duplicated") for _, shape in _shapes(trees[path]) if shape in shapes]
    return sorted(set(found), key=lambda breach: (breach.module, breach.held_out, breach.function, breach.how))


@dataclass(frozen=True)
class _Secret:
    """What a training module must not touch."""

    modules: Mapping[str, str]
    """Dotted name → path, of every module of the repository."""
    held_out: frozenset[str]
    owners: Mapping[str, str]
    """Held-out function or class → the path that holds it."""


def _touched(path: str, tree: ast.Module, own: str, secret: _Secret) -> Iterator[Breach]:
    """Imports of held-out modules and names, and calls through imported packages."""
    packages: set[str] = set()
    for origin, name, alias in _imports(tree, own):
        whole = f"{origin}.{name}" if name else origin
        for module in (origin, whole):
            if secret.modules.get(module) in secret.held_out:
                yield Breach(path, secret.modules[module], name or origin, "imported")
        if whole in secret.modules or any(known.startswith(f"{whole}.") for known in secret.modules):
            packages.add(alias)
        elif name in secret.owners and origin in secret.modules:
            yield Breach(path, secret.owners[name], name, "imported")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in secret.owners:
            base, _, _ = ast.unparse(node.value).partition(".")
            if base in packages:
                yield Breach(path, secret.owners[node.attr], node.attr, "called")


def _imports(tree: ast.Module, own: str) -> Iterator[tuple[str, str, str]]:
    """(module, name or empty, name it is bound to) of every import, relative ones resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, "", alias.asname or alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            above = own.split(".")[: -node.level] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield origin, alias.name, alias.asname or alias.name


def _dotted(path: str, pythonpath: Sequence[str]) -> str:
    for entry in sorted(pythonpath, key=len, reverse=True):
        prefix = "" if entry in (".", "") else entry.strip("/") + "/"
        if path.startswith(prefix):
            path = path[len(prefix) :]
            break
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _top_level(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def _shapes(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name, normalised syntax tree) of every function that does something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _does_nothing(node):
            yield node.name, normalised(node)


def _does_nothing(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    rest = [part for part in node.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    return all(isinstance(part, ast.Pass | ast.Raise) for part in rest)


def normalised(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The function's syntax tree without its name, docstring, decorators and annotations, own variables numbered."""
    node = ast.parse(ast.unparse(function)).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    node.returns, node.decorator_list = None, []
    own = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
    own |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    numbers: dict[str, str] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.arg):
            part.annotation = None
            part.arg = numbers.setdefault(part.arg, f"v{len(numbers)}")
        elif isinstance(part, ast.Name) and part.id in own:
            part.id = numbers.setdefault(part.id, f"v{len(numbers)}")
        elif isinstance(part, ast.AnnAssign):
            part.annotation = ast.Constant(None)
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return ast.dump(ast.FunctionDef("f", node.args, body, []))
