"""The run journal: nothing twice, nothing lost, one owner, one recipe."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from frognano.records import TokenRow, Trajectory, Verdict, VersionSpan
from frognano.rollout.journal import (
    DiskFull,
    GroupEntry,
    Journal,
    JournalError,
    RecipeChanged,
    RunLocked,
    UpdateEntry,
    ValidationEntry,
)

RECIPE = {"name": "small", "train": {"groups": 4, "loss": {"delta_high": 0.2}}, "workers": 2}


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "run", RECIPE) as opened:
        yield opened


def trajectory(name, reward=1.0, patch=""):
    row = TokenRow(
        ids=(1, 2), mask=(0, 1), logprobs=(0.0, -0.1234567891234567), spans=(VersionSpan(start=0, version=3),)
    )
    return Trajectory(
        id=name, task_id="t", exit_reason="agent", tokens=row, verdict=Verdict(reward=reward, reason="x"), patch=patch
    )


def entry(seq, version=0):
    return GroupEntry(seq=seq, id=f"c-{seq}", task_id=f"t{seq}", version=version)


def test_a_run_keeps_its_recipe_and_digest(tmp_path):
    with Journal(tmp_path, RECIPE) as first:
        digest = first.digest
    with Journal(tmp_path, RECIPE) as again:
        assert again.recipe == RECIPE
        assert again.digest == digest


def test_a_changed_recipe_is_refused_with_the_keys_that_differ(tmp_path):
    Journal(tmp_path, RECIPE).close()
    changed = {"name": "small", "train": {"groups": 8, "loss": {}}, "workers": 2, "seed": 1}
    with pytest.raises(RecipeChanged, match=r"train\.groups: begun with 4, now 8") as refused:
        Journal(tmp_path, changed)
    assert refused.value.keys == ("seed", "train.groups", "train.loss", "train.loss.delta_high")
    Journal(tmp_path, RECIPE).close()


def test_settings_named_as_free_may_change(tmp_path):
    Journal(tmp_path, RECIPE).close()
    Journal(tmp_path, {**RECIPE, "workers": 16}, free=["workers"]).close()
    with pytest.raises(RecipeChanged):
        Journal(tmp_path, {**RECIPE, "workers": 16}, free=["work"])


def test_a_second_process_is_refused_and_told_who_owns_the_folder(journal):
    code = "import sys, pathlib, frognano.rollout.journal as j; j.Journal(pathlib.Path(sys.argv[1]), {})"
    done = subprocess.run(
        [sys.executable, "-c", code, str(journal.folder)], capture_output=True, text=True, check=False
    )
    assert f"in use by process {os.getpid()}" in done.stderr
    with pytest.raises(RunLocked):
        Journal(journal.folder, RECIPE)


def test_the_lock_dies_with_its_process(tmp_path):
    def hold():
        Journal(tmp_path, RECIPE)
        os.kill(os.getpid(), signal.SIGKILL)

    process = multiprocessing.get_context("fork").Process(target=hold)
    process.start()
    process.join()
    Journal(tmp_path, RECIPE).close()


def test_an_update_and_its_groups_enter_together_or_not_at_all(journal):
    for seq in range(3):
        journal.start_group("c", entry(seq))
    journal.commit_update("c", UpdateEntry(number=1, version=1, checkpoint="u1", metrics={"loss": 0.5}), [0, 1])
    with pytest.raises(JournalError, match="trained on or dropped before"):
        journal.commit_update("c", UpdateEntry(number=2, version=2, checkpoint="u2"), [2, 1])
    assert [update.number for update in journal.updates("c")] == [1]
    assert [group.state for group in journal.groups("c")] == ["consumed", "consumed", "started"]
    assert journal.updates("c")[0].metrics == {"loss": 0.5}


def test_no_update_happens_twice_and_none_is_left_out(journal):
    journal.commit_update("c", UpdateEntry(number=1, version=1, checkpoint="u1"), [])
    for number in (1, 3):
        with pytest.raises(JournalError, match="cannot follow update 1"):
            journal.commit_update("c", UpdateEntry(number=number, version=2, checkpoint="u"), [])
    journal.commit_update("other", UpdateEntry(number=1, version=1, checkpoint="u1"), [])


def test_a_dropped_group_keeps_its_reason_and_is_never_trained_on(journal):
    journal.start_group("c", entry(0))
    journal.drop_group("c", 0, "all_solved", number=1)
    assert journal.groups("c")[0].reason == "all_solved"
    assert journal.groups("c")[0].number == 1
    with pytest.raises(JournalError):
        journal.commit_update("c", UpdateEntry(number=1, version=1, checkpoint="u1"), [0])
    with pytest.raises(JournalError):
        journal.drop_group("c", 0, "all_solved", number=1)


def test_a_group_started_again_after_a_kill_is_the_same_group(journal):
    journal.start_group("c", entry(0, version=1))
    journal.start_group("c", entry(0, version=2))
    assert journal.groups("c") == [entry(0, version=1)]


def test_finished_episodes_survive_to_the_last_bit_until_they_were_trained_on(journal):
    journal.start_group("c", entry(0))
    done = [trajectory("a"), trajectory("b", 0.0, patch="bytes \udc80\udcff"), trajectory("c", None)]
    for one in done:
        journal.add_episode("c-0", one)
    assert journal.trajectories("c-0") == done
    journal.commit_update("c", UpdateEntry(number=1, version=1, checkpoint="u1"), [0])
    assert journal.trajectories("c-0") == []
    assert [(one.id, one.reward, one.sampled) for one in journal.episodes("c-0")] == [
        ("a", 1, 1),
        ("b", 0, 1),
        ("c", None, 1),
    ]


def test_episodes_may_be_journaled_without_their_trajectory(journal):
    journal.add_episode("calibration", trajectory("a"), keep=False)
    assert journal.trajectories("calibration") == []
    assert len(journal.episodes("calibration")) == 1
    journal.add_episode("calibration", trajectory("a"))
    journal.drop_payloads("calibration")
    assert journal.trajectories("calibration") == []


def test_facts_phases_and_validations_are_remembered(tmp_path):
    with Journal(tmp_path, RECIPE) as first:
        first.put("calibration", "base/t1", {"solved": 2, "episodes": 8})
        first.put_many(
            "calibration", {"base/t2": {"solved": 0, "episodes": 8}, "base/t1": {"solved": 3, "episodes": 8}}
        )
        first.finish_phase("synthesis", {"tasks": 40})
        first.add_validation("c", ValidationEntry(number=20, version=20, score=0.5))
    with Journal(tmp_path, RECIPE) as again:
        assert list(again.values("calibration")) == ["base/t1", "base/t2"]
        assert again.get("calibration", "base/t1") == {"solved": 3, "episodes": 8}
        assert again.get("calibration", "base/t3") is None
        assert again.phase_done("synthesis")
        assert not again.phase_done("climb")
        assert again.validations("c")[0].score == 0.5


def write_until_killed(folder, started):
    with Journal(folder, RECIPE) as journal:
        for number in range(1, 10_000):
            journal.start_group("c", entry(number))
            journal.add_episode(f"c-{number}", trajectory(f"e{number}"))
            journal.commit_update("c", UpdateEntry(number=number, version=number, checkpoint=f"u{number}"), [number])
            started.put(number)


@pytest.mark.parametrize("after", [1, 7, 23])
def test_a_kill_at_any_moment_leaves_whole_updates(tmp_path, after):
    context = multiprocessing.get_context("fork")
    started = context.SimpleQueue()
    process = context.Process(target=write_until_killed, args=(tmp_path, started))
    process.start()
    while started.get() < after:
        pass
    process.kill()
    process.join()
    with Journal(tmp_path, RECIPE) as journal:
        updates, groups = journal.updates("c"), journal.groups("c")
        assert len(updates) >= after
        assert {group.seq for group in groups if group.state == "consumed"} == {update.number for update in updates}
        assert len(groups) - len(updates) in {0, 1}


def test_a_full_disk_is_a_clear_error_and_loses_nothing(tmp_path):
    journal = Journal(tmp_path, RECIPE)
    journal.put("facts", "before", 1)
    pages = journal._first("PRAGMA page_count")[0]
    journal._first(f"PRAGMA max_page_count = {pages + 8}")
    with pytest.raises(DiskFull, match="what was journaled is intact"):
        journal.put("facts", "big", "x" * 200_000)
    assert journal.values("facts") == {"before": 1}
    journal.close()
    with Journal(tmp_path, RECIPE) as again:
        assert again.values("facts") == {"before": 1}
        again.put("facts", "after", 2)


def test_a_file_that_is_no_journal_is_a_clear_error(tmp_path):
    (tmp_path / "journal.sqlite").write_bytes(b"not a database " * 100)
    with pytest.raises(JournalError, match="cannot be used"):
        Journal(tmp_path, RECIPE)


def test_a_folder_of_another_version_is_refused(tmp_path):
    Journal(tmp_path, RECIPE).close()
    with sqlite3.connect(tmp_path / "journal.sqlite") as db:
        db.execute("UPDATE run SET value = '0' WHERE key = 'schema'")
    with pytest.raises(JournalError, match="another version"):
        Journal(tmp_path, RECIPE)


def test_the_journal_needs_no_torch():
    code = "import sys, frognano.rollout.journal; sys.exit('torch' in sys.modules)"
    source = Path(__file__).resolve().parents[2] / "src"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(source)}, check=False).returncode == 0
