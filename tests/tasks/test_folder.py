"""Task folders: what is written is read back, and the folder is a task that Harbor can run."""

from __future__ import annotations

import base64
import json
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frognano.records import Calibration, GradingTests, Lineage, Origin, Runtime, Task
from frognano.sandbox.contract import SandboxSpec
from frognano.tasks.folder import (
    TaskContent,
    TaskFolderError,
    harbor_config,
    read_content,
    read_task,
    rewrite_record,
    write_task,
)
from frognano.tasks.patch import FILE, Entry
from frognano.tasks.snapshot import SnapshotStore

ODD = st.text(st.characters(codec=None, exclude_characters="\0"), max_size=40)
TEXT = st.one_of(
    ODD, st.sampled_from(['"""', "'''", "\\", "\x7f\x00 x", "a\r\nb", "]]>", "${HOME}", "\u2028", "\udcff"])
)
IDS = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,30}[A-Za-z0-9]\Z")
TASKS = st.builds(
    Task,
    id=IDS,
    statement=TEXT,
    snapshot=st.just("filled in"),
    runtime=st.builds(Runtime, env=st.dictionaries(IDS, TEXT, max_size=2), test_timeout_s=st.floats(0.1, 1e6)),
    tests=st.builds(
        GradingTests, f2p=st.lists(TEXT, min_size=1, max_size=3).map(tuple), files=st.just(("t/test a.py",))
    ),
    origin=st.builds(Origin, repository=TEXT, base=TEXT, generator=TEXT, function=TEXT, licence=TEXT),
    lineage=st.none() | st.builds(Lineage, parent=IDS, change=TEXT, p_before=st.floats(0, 1)),
    calibration=st.none() | st.builds(Calibration, policy=TEXT, episodes=st.just(8), solved=st.integers(0, 8)),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(task=TASKS, gold=st.binary(max_size=50))
def test_any_task_is_read_back_equal(tmp_path_factory: Any, store: SnapshotStore, task: Task, gold: bytes) -> None:
    task = task.model_copy(update={"snapshot": store.add_files({"a.py": Entry(FILE, b"a\n")})})
    content = TaskContent(gold, {"t/test a.py": Entry(FILE, b"\xff\r\n")})
    folder = write_task(tmp_path_factory.mktemp("pool"), task, content, store)
    assert read_task(folder) == task
    assert read_content(folder) == content
    assert harbor_config(folder)["metadata"]["frognano"]["snapshot"] == task.snapshot  # type: ignore[index]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a b", "x" * 200, ".hidden", "end.", "d\u00e9j\u00e0"])
def test_an_id_that_cannot_name_a_folder_is_refused(tmp_path: Path, case: Any, name: str) -> None:
    with pytest.raises(TaskFolderError, match="cannot name a folder"):
        write_task(tmp_path, case.task.model_copy(update={"id": name}), read_content(case.folder), case.store)
    assert list(tmp_path.iterdir()) == []


def test_a_taken_id_is_refused_and_the_task_there_is_untouched(case: Any) -> None:
    before = sorted(path.stat().st_mtime_ns for path in case.folder.rglob("*"))
    with pytest.raises(TaskFolderError, match="already has"):
        write_task(case.folder.parent, case.task, read_content(case.folder), case.store)
    assert sorted(path.stat().st_mtime_ns for path in case.folder.rglob("*")) == before
    assert [path for path in case.folder.parent.iterdir() if path.name.startswith(".partial")] == []


def test_only_split_calibration_and_lineage_of_a_written_task_may_change(tmp_path: Path, case: Any) -> None:
    folder = write_task(tmp_path, case.task, read_content(case.folder), case.store)
    changed = case.task.model_copy(update={"calibration": Calibration(policy="p", episodes=8, solved=3)})
    rewrite_record(folder, changed)
    assert read_task(folder) == changed
    with pytest.raises(TaskFolderError, match="may only change"):
        rewrite_record(folder, changed.model_copy(update={"statement": "another"}))


def test_the_folder_has_harbors_shape(case: Any) -> None:
    config = tomllib.loads((case.folder / "task.toml").read_text())
    assert config["schema_version"] == "1.4"
    assert config["task"]["name"] == f"frognano/{case.task.id}"
    phases = ("agent", "verifier", "environment")
    assert [config[phase]["network_mode"] for phase in phases] == ["public"] * 3
    assert config["environment"]["workdir"] == "/app"
    assert (case.folder / "instruction.md").read_text() == case.task.statement
    for script in ("tests/test.sh", "solution/solve.sh"):
        assert (case.folder / script).stat().st_mode & 0o111
    dockerfile = (case.folder / "environment/Dockerfile").read_text()
    assert dockerfile.startswith("FROM python:")
    assert "ADD repo.tar.gz" in dockerfile


def test_the_solvers_archive_holds_one_commit_and_neither_tests_nor_fix(tmp_path: Path, case: Any) -> None:
    with tarfile.open(case.folder / "environment/repo.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    assert (tmp_path / ".git/HEAD").exists()
    assert (tmp_path / "gauge/core.py").read_bytes() == case.broken
    assert all(b"test_inside_the_limits" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


HARBOR = """
import os, pathlib, shutil, subprocess, sys
folder, solve = pathlib.Path("/tmp/task"), sys.argv[1]
shutil.copytree(folder / "tests", "/tmp/tests")
if solve == "oracle":
    subprocess.run(["sh", str(folder / "solution/solve.sh")], check=True)
elif solve == "cheat":
    pathlib.Path("conftest.py").write_text(sys.argv[2])
    pathlib.Path("tests/test_clamp.py").write_text("def test_upper(): pass")
done = subprocess.run([sys.executable, "-s", "/tmp/tests/grade.py", "/tmp/logs/reward.txt"], capture_output=True)
sys.stdout.buffer.write(done.stdout + done.stderr)
print("REWARD", pathlib.Path("/tmp/logs/reward.txt").read_text())
"""
CHEAT = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""


@pytest.mark.parametrize(("agent", "reward"), [("oracle", "1"), ("nop", "0"), ("cheat", "0")])
def test_the_folders_own_scripts_score_the_oracle_one_and_nothing_else(
    case: Any, backend: Any, agent: str, reward: str
) -> None:
    async def play() -> str:
        sandbox = await backend.open(SandboxSpec(snapshot=case.store.path(case.task.snapshot)))
        try:
            for path in sorted(case.folder.rglob("*")):
                if path.is_file() and "environment" not in path.parts:
                    data = base64.b64encode(path.read_bytes()).decode()
                    place = f"/tmp/task/{path.relative_to(case.folder)}"
                    await sandbox.request("put", {"path": place, "content_b64": data}, 10)
            arguments = {"argv": ["python3", "-c", HARBOR, agent, CHEAT], "timeout_s": 60.0}
            answer = await sandbox.request("exec", arguments, 90)
            return base64.b64decode(answer["stdout_b64"]).decode()
        finally:
            await sandbox.close()

    output = case.wait(play())
    assert f"REWARD {reward}" in output, output


def test_the_record_is_json_that_names_its_format(case: Any) -> None:
    stored = json.loads((case.folder / "frognano.json").read_bytes())
    assert stored["format"] == 1
    assert stored["task"]["id"] == case.task.id
