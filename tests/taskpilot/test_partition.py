"""Splits are drawn by module before anything is made, and nothing held out leaks into train."""

from __future__ import annotations

from frognano.taskpilot.mutate import Module
from frognano.taskpilot.partition import partition
from frognano.taskpilot.repository import open_repository
from frognano.tasks.splits import breaches

SHARES = {"validation": 0.1, "held-out": 0.3}


def _modules(**sources: str) -> dict[str, Module]:
    return {f"p/{name}.py": Module(source) for name, source in sources.items()}


def _functions(*names: str) -> str:
    return "".join(f"def {name}(x):\n    return x + {len(name) * 7}, '{name}'\n" for name in names)


def test_modules_that_import_each_other_stay_together() -> None:
    modules = _modules(
        a=_functions("a", "b"), b="from p.a import a\n" + _functions("c"), c="from . import b\n" + _functions("d")
    )
    assert len(set(partition(modules, (".",), {"held-out": 0.5}, 0).values())) == 1


def test_modules_with_an_equal_function_stay_together() -> None:
    copy = "def {}(left, right):\n    total = left + right\n    return total * 2\n"
    renamed = 'def other(a: int, b: int) -> int:\n    """Doc."""\n    c = a + b\n    return c * 2\n'
    modules = _modules(a=_functions("a", "b", "c"), b=copy.format("first"), c=renamed)
    found = partition(modules, (".",), {"held-out": 0.5}, 0)
    assert found["p/b.py"] == found["p/c.py"]


def test_pond_has_every_split_and_no_import_across() -> None:
    pond = open_repository("pond")
    modules = {path: Module(pond.read(path)) for path in pond.modules}
    found = partition(modules, pond.pythonpath, SHARES, 0)
    sizes: dict[str, int] = {}
    for path, split in found.items():
        sizes[split] = sizes.get(split, 0) + sum(1 for _ in modules[path].functions())
    total = sum(sizes.values())
    assert 0.2 < sizes["held-out"] / total < 0.45
    assert 0.04 < sizes["validation"] / total < 0.2
    assert breaches({path: module.source for path, module in modules.items()}, found, pond.pythonpath) == []


def test_the_seed_decides_alone() -> None:
    pond = open_repository("pond")
    modules = {path: Module(pond.read(path)) for path in pond.modules}
    assert partition(modules, (".",), SHARES, 1) == partition(modules, (".",), SHARES, 1)
    assert len({str(partition(modules, (".",), SHARES, seed)) for seed in range(4)}) > 1


def test_one_module_is_all_train() -> None:
    assert set(partition(_modules(a=_functions("a")), (".",), SHARES, 0).values()) == {"train"}
