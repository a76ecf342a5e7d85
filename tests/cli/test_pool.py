"""From a repository to tasks, to their check, to a measure of a policy on them: the commands on one small package."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("torch", reason="needs the extra `train`")

from frognano.policy.scripted import Turn, say
from frognano.taskpilot.draft import load_draft
from frognano.tasks.folder import read_task
from perf.coin import make_checkpoint, make_repository
from tests.cli.conftest import BROKEN, Done, command, invoke, serving

pytestmark = pytest.mark.slow
Frognano = Callable[..., Done]
SMALL = (
    "taskpilot.calibration.episodes=2",
    "train.updates=1",
    "train.groups=1",
    "train.group_size=2",
    "train.max_lag=0",
    "train.validation_cadence=0",
    "evaluation.episodes=1",
    "leaf.max_turns=2",
    "leaf.max_tokens_per_turn=8",
    "evaluation.max_turns=4",
    "evaluation.max_tokens_per_turn=64",
    "evaluation.max_context_tokens=8000",
)
SETS = tuple(word for value in SMALL for word in ("--set", value))


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool of a few tasks, made by the command."""
    folder = tmp_path_factory.mktemp("made")
    source = make_repository(folder / "pad")
    wanted = ("--train", "2", "--validation", "0", "--held-out", "2")
    done = invoke("tasks", "make", "--repo", str(source), "--pool", str(folder / "pool"), *wanted)
    assert done.code == 0, done.out + done.err
    assert "validate" in done.out, "the funnel is printed"
    return folder / "pool"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_checkpoint(tmp_path_factory.mktemp("checkpoint")))


def ids(pool: Path) -> list[str]:
    return sorted(place.name for place in (pool / "tasks").iterdir() if (place / "frognano.json").is_file())


def test_tasks_are_listed_and_shown_without_what_is_hidden(pool: Path, frognano: Frognano) -> None:
    listed = frognano("tasks", "list", str(pool))
    assert all(name in listed.out for name in ids(pool))
    first = ids(pool)[0]
    shown = frognano("tasks", "show", str(pool), first)
    assert shown.code == 0
    assert "diff --git" not in shown.out
    assert "diff --git" in frognano("tasks", "show", str(pool), first, "--gold").out


def test_every_task_is_sound_and_a_damaged_one_is_found(pool: Path, frognano: Frognano) -> None:
    done = frognano("tasks", "check", str(pool))
    assert done.code == 0, done.out + done.err
    assert f"{len(ids(pool))} of {len(ids(pool))} tasks are sound" in done.out
    first = ids(pool)[0]
    gold = pool / "tasks" / first / "solution" / "gold.patch"
    kept = gold.read_bytes()
    try:
        gold.write_bytes(b"")
        done = frognano("tasks", "check", str(pool), first)
    finally:
        gold.write_bytes(kept)
    assert done.code == 1
    assert f"BAD {first}" in done.out


def test_a_patch_is_graded_test_by_test(pool: Path, frognano: Frognano, tmp_path: Path) -> None:
    first = ids(pool)[0]
    gold = pool / "tasks" / first / "solution" / "gold.patch"
    done = frognano("tasks", "grade", str(pool), first, "--patch", str(gold))
    assert done.code == 0
    assert "reward 1.0" in done.out
    (tmp_path / "empty.diff").write_bytes(b"")
    done = frognano("tasks", "grade", str(pool), first, "--patch", str(tmp_path / "empty.diff"))
    assert done.code == 1
    assert "reward 0.0" in done.out


def repairer(pool: Path) -> Callable[[Sequence[Mapping[str, Any]]], Turn]:
    """A model that knows the right edit for each statement."""
    places = [pool / "tasks" / name for name in ids(pool)]
    drafts = {read_task(place).statement: load_draft(place) for place in places}

    def script(messages: Sequence[Mapping[str, Any]]) -> Turn:
        draft = drafts[messages[1]["content"]]
        if len(messages) > 2:
            return say("Done.")
        edit = {"file_path": draft.facts.file, "old_string": draft.facts.suspect, "new_string": draft.clean_line}
        return say("", ("Edit", edit))

    return script


def test_eval_of_an_endpoint_gives_a_rate_with_an_interval(pool: Path, frognano: Frognano, tmp_path: Path) -> None:
    with serving(repairer(pool)) as server:
        where = ("--pool", str(pool), "--run", str(tmp_path / "run"), "--split", "held-out")
        done = frognano("eval", *where, "--base-url", server.base_url, "--model", "scripted", *SETS)
        again = frognano("eval", *where, "--base-url", server.base_url, "--model", "scripted", *SETS)
    assert done.code == 0, done.out + done.err
    assert "100.0 % [100.0, 100.0]" in done.out
    assert again.out.splitlines()[-1] == done.out.splitlines()[-1], "what was measured is not measured again"


def test_calibrate_train_and_eval_run_a_checkpoint(
    pool: Path, checkpoint: str, frognano: Frognano, tmp_path: Path
) -> None:
    common = ("--pool", str(pool), "--checkpoint", checkpoint, *SETS)
    done = frognano("calibrate", *common, "--run", str(tmp_path / "calibrated"))
    assert done.code == 0, done.out + done.err
    assert "tasks admitted" in done.out
    done = frognano("train", *common, "--run", str(tmp_path / "climb"))
    assert done.code == 0, done.out + done.err
    assert "best checkpoint:" in done.out
    done = frognano("eval", *common, "--run", str(tmp_path / "eval"))
    assert done.code == 0, done.out + done.err
    assert "95 % interval" in done.out
    shown = frognano("report", str(tmp_path / "eval"))
    assert shown.code == 0
    assert "episodes" in shown.out
    logs = frognano("report", str(tmp_path / "eval"), "--episodes").out.split()
    assert "statement:" in frognano("report", str(tmp_path / "eval"), "--episode", logs[0]).out


def test_a_changed_recipe_is_refused_with_the_keys(
    pool: Path, checkpoint: str, frognano: Frognano, tmp_path: Path
) -> None:
    common = ("--pool", str(pool), "--checkpoint", checkpoint, "--run", str(tmp_path / "run"))
    assert frognano("eval", *common, *SETS).code == 0
    done = frognano("eval", *common, *SETS, "--set", "evaluation.episodes=2")
    assert done.code == 2
    assert "evaluation.episodes" in done.err


def test_what_is_no_pool_is_named_with_the_command_that_makes_one(frognano: Frognano, tmp_path: Path) -> None:
    done = frognano("tasks", "list", str(tmp_path))
    assert done.code == 2
    assert f"frognano tasks make --repo DIR --pool {tmp_path}" in done.err


def test_a_folder_that_cannot_be_a_source_is_refused(frognano: Frognano, tmp_path: Path) -> None:
    done = frognano("tasks", "make", "--repo", str(tmp_path), "--pool", str(tmp_path / "pool"))
    assert done.code == 2
    assert "no-package" in done.err or "no-tests" in done.err


def test_the_model_server_serves_a_script_until_ctrl_c(
    tmp_path: Path, frognano: Frognano, surroundings: dict[str, str]
) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "calc.py").write_text(BROKEN)
    script = tmp_path / "script.yaml"
    edit = ["Edit", {"file_path": "calc.py", "old_string": "x + 3", "new_string": "x + x"}]
    script.write_text(yaml.safe_dump([{"content": "I mend it.", "calls": [edit]}, {"content": "Done."}]))
    line = command("model-server", str(script), "--fault", "rate_limited")
    server = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings)
    assert server.stdout is not None
    said = server.stdout.readline().split()
    model = ("--base-url", said[said.index("--base-url") + 1], "--model", "scripted")
    done = frognano("solve", "--repo", str(repo), "--issue", "double is wrong", *model)
    server.send_signal(signal.SIGINT)
    server.communicate()
    assert done.code == 0, done.err
    assert server.returncode == 130


def test_an_unknown_fault_and_a_bad_script_are_refused(frognano: Frognano, tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("- contents: x\n")
    assert "contents" in frognano("model-server", str(script)).err
    assert "known are" in frognano("model-server", str(script), "--fault", "earthquake").err


def test_doctor_says_how_each_limit_is_enforced(frognano: Frognano) -> None:
    done = frognano("doctor")
    assert done.code == 0
    assert "isolation" in done.out
    assert "memory" in done.out
