"""Pools and splits: no duplicates, nothing half made, and held-out functions stay unseen."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from frognano.tasks.folder import read_content
from frognano.tasks.pool import Pool, PoolError
from frognano.tasks.splits import Breach, breaches, draw_splits


@pytest.fixture
def pool(tmp_path: Path, case: Any) -> Pool:
    made = Pool.create(tmp_path / "pool", {"splits": 7}, {"repository": "gauge"})
    content = read_content(case.folder)
    for name, split in (("one", "train"), ("two", "held-out"), ("three", "train")):
        task = case.task.model_copy(update={"id": name, "split": split, "statement": f"Statement {name}.\n"})
        made.add(task, content, case.store)
    return made


def test_a_pool_lists_its_tasks_by_split_and_counts_them(pool: Pool) -> None:
    again = Pool(pool.folder)
    assert again.ids() == ("one", "two", "three")
    assert again.ids("train") == ("one", "three")
    assert [task.id for task, _ in again.tasks("held-out")] == ["two"]
    assert again.manifest.counts == {"train": 2, "validation": 0, "held-out": 1}
    assert again.manifest.seeds == {"splits": 7}
    assert again.verify() == []


def test_the_same_work_under_another_name_is_refused(pool: Pool, case: Any) -> None:
    content = read_content(case.folder)
    same = case.task.model_copy(update={"id": "four", "statement": "Statement one.\n"})
    with pytest.raises(PoolError, match="the same task as one"):
        pool.add(same, content, case.store)
    with pytest.raises(PoolError, match="already has a task of this name"):
        pool.add(case.task.model_copy(update={"id": "two"}), content, case.store)
    assert len(pool) == 3


def test_a_folder_that_is_not_listed_is_not_in_the_pool_until_it_is_adopted(pool: Pool, case: Any) -> None:
    shutil.copytree(case.folder, pool.folder / case.task.id)
    assert case.task.id not in pool.ids()
    pool.adopt(case.task.id)
    assert case.task.id in pool.ids()


def test_changed_and_missing_tasks_are_noticed(pool: Pool) -> None:
    shutil.rmtree(pool.folder / "one")
    (pool.folder / "two/solution/gold.patch").write_bytes(b"")
    faults = pool.verify()
    assert len(faults) == 2
    assert "changed since" in faults[1]


def test_a_folder_without_manifest_is_no_pool_and_a_pool_is_not_begun_twice(pool: Pool, tmp_path: Path) -> None:
    with pytest.raises(PoolError, match="no manifest"):
        Pool(tmp_path).ids()
    with pytest.raises(PoolError, match="already is a pool"):
        Pool.create(pool.folder, {})


def test_drawn_splits_depend_on_seed_and_names_alone() -> None:
    names = [f"repository-{n}" for n in range(20)]
    shares = {"held-out": 0.3, "validation": 0.1}
    drawn = draw_splits(names, shares, 1)  # type: ignore[arg-type]
    assert drawn == draw_splits(names[::-1], shares, 1)  # type: ignore[arg-type]
    assert drawn != draw_splits(names, shares, 2)  # type: ignore[arg-type]
    found = list(drawn.values())
    assert (found.count("held-out"), found.count("validation"), found.count("train")) == (6, 2, 12)


SECRET = "def secret(a, b):\n    c = a + b\n    return c * 2\n"


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("from pkg.held import secret\n", "imported"),
        ("from .held import secret\n", "imported"),
        ("from . import held\n", "imported"),
        ("import pkg.held as h\n", "imported"),
        ("from pkg import secret\n", "imported"),
        ("import pkg\n\ndef f():\n    return pkg.secret(1, 2)\n", "called"),
        ('def other(x, y: int) -> int:\n    """Doc."""\n    z = x + y\n    return z * 2\n', "duplicated"),
    ],
)
def test_a_training_module_that_touches_a_held_out_function_is_found(text: str, how: str) -> None:
    sources = {"pkg/__init__.py": "from pkg.held import secret\n", "pkg/held.py": SECRET, "pkg/train.py": text}
    found = breaches(sources, {"pkg/held.py": "held-out", "pkg/train.py": "train"})
    assert {(breach.module, breach.held_out, breach.how) for breach in found} == {("pkg/train.py", "pkg/held.py", how)}


def test_a_clean_split_has_no_breach() -> None:
    train = "import os\n\ndef secret_of_mine(a, b):\n    c = a - b\n    return c * 2\n\ndef stub():\n    pass\n"
    sources = {
        "src/pkg/__init__.py": "",
        "src/pkg/held.py": SECRET + "def stub():\n    pass\n",
        "src/pkg/train.py": train,
    }
    assert breaches(sources, {"src/pkg/held.py": "held-out"}, ("src",)) == []
    assert Breach("a", "b", "c", "called") != Breach("a", "b", "c", "imported")
