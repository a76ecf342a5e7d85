"""The whole synthesis, in real sandboxes: planted bad tests are in no task, tasks are confirmed, work is resumed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frognano.config.base import ConfigError
from frognano.config.taskpilot import SynthesisSettings
from frognano.records import Task
from frognano.taskpilot.draft import load_draft
from frognano.taskpilot.funnel import Code
from frognano.taskpilot.pilot import synthesise
from frognano.taskpilot.report import SynthesisReport
from frognano.taskpilot.repository import open_repository, unpack
from frognano.tasks.folder import read_content, read_task
from frognano.tasks.pool import Pool
from frognano.tasks.snapshot import SnapshotStore

SETTINGS = SynthesisSettings(
    train_tasks=6, validation_tasks=0, held_out_tasks=2, slow_test_s=0.5, max_family_share=0.5, screen_batch=16
)
PLANTED = ("flaky", "hash_seed", "order_first", "order_second", "order_third", "slow", "failing", "skipped")


def make(
    source: Path | str, folder: Path, with_backend: Callable[..., Any], settings: SynthesisSettings, **more: Any
) -> SynthesisReport:
    """Synthesise ``source`` below ``folder``."""
    store = SnapshotStore(folder / "store")

    async def work(backend: Any) -> SynthesisReport:
        return await synthesise(open_repository(source), settings, backend, store, folder / "pool", **more)

    found: SynthesisReport = with_backend(work)
    return found


@pytest.fixture(scope="module")
def made(
    brook: Path, with_backend: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, SynthesisReport]:
    folder = tmp_path_factory.mktemp("made")
    return folder, make(brook, folder, with_backend, SETTINGS)


def tasks_of(folder: Path, report: SynthesisReport) -> list[Task]:
    return [read_task(folder / "pool" / name) for ids in report.tasks.values() for name in ids]


def test_tasks_are_made_and_the_funnel_adds_up(made: tuple[Path, SynthesisReport]) -> None:
    _, report = made
    assert report.count >= 5
    stages = {stage.name: stage for stage in report.stages}
    assert stages["validate"].left == report.count
    for name, following in (("screen", "choose"), ("choose", "build"), ("build", "suite"), ("suite", "validate")):
        assert stages[name].left == stages[following].entered
    codes = {str(code.value) for code in Code}
    assert all(set(stage.codes) <= codes for stage in report.stages)
    assert "validated tasks" in report.text()


def test_planted_tests_are_set_aside_and_grade_no_task(made: tuple[Path, SynthesisReport]) -> None:
    folder, report = made
    assert report.set_aside["slow"] == 1
    assert report.set_aside["failing"] >= 1
    assert report.set_aside["skipped"] == 1
    assert report.set_aside["flaky"] >= 2
    for task in tasks_of(folder, report):
        graded = " ".join((*task.tests.f2p, *task.tests.p2p))
        assert not any(f"test_{name}" in graded for name in PLANTED if not name.startswith("order"))


def test_hidden_tests_are_gone_function_by_function(made: tuple[Path, SynthesisReport]) -> None:
    folder, report = made
    store = SnapshotStore(folder / "store")
    for task in tasks_of(folder, report):
        clean = read_content(folder / "pool" / task.id).tests
        for path in task.tests.files:
            entry = store.entry(task.snapshot, path)
            left = entry.data.decode() if entry else ""
            for test in task.tests.f2p:
                name = test.split("[")[0].split("::")[-1]
                assert f"def {name}(" in clean[path].data.decode() or not test.startswith(path)
                assert f"def {name}(" not in left
        assert any("def test_" in store.read(task.snapshot, "tests/test_words.py").decode() for _ in (0,))


def test_statements_tell_what_was_observed_and_leak_nothing(made: tuple[Path, SynthesisReport]) -> None:
    folder, report = made
    for task in tasks_of(folder, report):
        draft = load_draft(folder / "pool" / task.id)
        assert task.statement == draft.statement()
        assert draft.completeness().complete
        assert draft.leaks() == ""
        assert draft.clean_line not in [line.strip() for line in task.statement.splitlines()]
        for example in draft.facts.examples:
            assert example.actual != example.expected


def test_no_two_tasks_are_the_same(made: tuple[Path, SynthesisReport]) -> None:
    folder, report = made
    made_tasks = tasks_of(folder, report)
    assert len({task.snapshot for task in made_tasks}) == len(made_tasks)
    pool = Pool(folder / "pool")
    assert set(pool.ids()) == {task.id for task in made_tasks}
    assert pool.verify() == []


def test_a_second_call_repeats_nothing_and_other_settings_are_refused(
    made: tuple[Path, SynthesisReport], brook: Path, with_backend: Callable[..., Any]
) -> None:
    folder, report = made
    again = make(brook, folder, with_backend, SETTINGS)
    assert again.tasks == report.tasks
    assert again.stages == report.stages
    assert again.graded_runs == 0
    other = SETTINGS.model_copy(update={"seed": 1})
    with pytest.raises(ConfigError, match="seed"):
        make(brook, folder, with_backend, other)


def test_splits_are_by_module(made: tuple[Path, SynthesisReport]) -> None:
    folder, report = made
    modules: dict[str, set[str]] = {}
    for task in tasks_of(folder, report):
        modules.setdefault(task.split, set()).add(task.origin.module)
    assert not modules.get("train", set()) & modules.get("held-out", set())


def test_pond_gives_tasks_of_every_split(tmp_path: Path, with_backend: Callable[..., Any]) -> None:
    settings = SynthesisSettings(train_tasks=6, validation_tasks=2, held_out_tasks=4, baseline_runs=2, workers=1)
    report = make("pond", tmp_path, with_backend, settings)
    assert {split: len(ids) for split, ids in report.tasks.items()} == {"train": 6, "validation": 2, "held-out": 4}
    assert report.matched_share == 1.0
    assert len(report.families) >= 8


@pytest.mark.optional
def test_xmltodict_gives_tasks_from_its_source_distribution(tmp_path: Path, with_backend: Callable[..., Any]) -> None:
    options = ["--no-binary", ":all:", "--no-deps", "--no-build-isolation", "-q", "-d", str(tmp_path)]
    command = [sys.executable, "-m", "pip", "download", *options, "xmltodict==1.0.4"]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    archives = list(tmp_path.glob("xmltodict-*.tar.gz"))
    if fetched.returncode or not archives:
        pytest.skip(f"xmltodict's source distribution cannot be fetched: {fetched.stderr.strip()[-200:]}")
    settings = SynthesisSettings(
        train_tasks=3, validation_tasks=0, held_out_tasks=0, baseline_runs=2, max_per_function=3, workers=1
    )
    report = make(unpack(archives[0], tmp_path / "source"), tmp_path, with_backend, settings)
    assert report.count == 3
    assert report.text().startswith("xmltodict: 3 validated tasks")
