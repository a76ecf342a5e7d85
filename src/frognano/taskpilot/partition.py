"""Which modules train, validate and are held out: drawn before anything is made, whole modules at a time.

Modules that import each other, or that hold the same function under whatever name, stay together, and the check of
``frognano.tasks.splits`` must find nothing: no held-out function is imported, called or duplicated by a training
task's module. Package ``__init__`` files that only pass
names on bind nothing together. A repository of one module is all train.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from frognano.records import Split
from frognano.taskpilot.mutate import Module
from frognano.taskpilot.repository import module_name
from frognano.tasks.splits import breaches, normalised


def partition(
    modules: Mapping[str, Module], pythonpath: Sequence[str], shares: Mapping[Split, float], seed: int
) -> dict[str, Split]:
    """Module path → split. ``shares`` are the shares of functions wanted for each split but train."""
    sizes = {path: sum(1 for _ in module.functions()) for path, module in modules.items()}
    islands = [sorted(island) for island in _islands(modules, pythonpath)]
    draw = random.Random(f"splits:{seed}")
    islands.sort()
    draw.shuffle(islands)
    total = sum(sizes.values())
    left = {split: share * total for split, share in shares.items() if split != "train" and share > 0}
    found: dict[str, Split] = dict.fromkeys(modules, "train")
    if len(islands) < 2:
        return found
    # The largest group of modules always trains; of the others each goes where it fits best.
    islands.sort(key=lambda island: -sum(sizes[path] for path in island))
    for island in islands[1:]:
        size = sum(sizes[path] for path in island)
        fitting = [split for split, room in left.items() if room > 0 and size <= room * 1.5]
        if size and fitting:
            split = max(fitting, key=lambda name: left[name])
            left[split] -= size
            found.update(dict.fromkeys(island, split))
    return _without_breaches(modules, pythonpath, found, islands)


def _without_breaches(
    modules: Mapping[str, Module], pythonpath: Sequence[str], splits: dict[str, Split], islands: Sequence[list[str]]
) -> dict[str, Split]:
    """Take from train, group by group, what the check of ``frognano.tasks.splits`` still finds."""
    sources = {path: module.source for path, module in modules.items()}
    for _ in islands:
        found = breaches(sources, splits, pythonpath)
        if not found:
            break
        touching = {breach.module for breach in found}
        for island in islands:
            if touching.intersection(island):
                splits.update(dict.fromkeys(island, "held-out"))
    return splits


def _islands(modules: Mapping[str, Module], pythonpath: Sequence[str]) -> Iterable[set[str]]:
    """Groups of modules bound together by imports or equal functions."""
    names = {module_name(path, pythonpath): path for path in modules}
    island = {path: {path} for path in modules}

    def join(one: str, other: str) -> None:
        if island[one] is not island[other]:
            island[one] |= island[other]
            for path in island[other]:
                island[path] = island[one]

    owners: dict[str, str] = {}
    for path, module in modules.items():
        if PurePosixPath(path).name != "__init__.py" or any(True for _ in module.functions()):
            for name in _imports(module, module_name(path, pythonpath), path):
                if name in names and PurePosixPath(names[name]).name != "__init__.py":
                    join(path, names[name])
        for function in module.functions():
            join(path, owners.setdefault(normalised(function.node), path))
    unique: dict[int, set[str]] = {id(group): group for group in island.values()}
    return unique.values()


def _imports(module: Module, own: str, path: str) -> Iterable[str]:
    """Dotted names that a module may import, relative ones resolved."""
    package = own.split(".") if PurePosixPath(path).name == "__init__.py" else own.split(".")[:-1]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)
