"""Grading: the oracle scores 1, nothing else does; what cannot be graded has no verdict."""

from __future__ import annotations

from typing import Any

import pytest

from frognano.records import Runtime
from frognano.sandbox.contract import SandboxError
from frognano.tasks.diff import make_patch
from frognano.tasks.grader import Grader, GraderSettings, NoVerdict, open_grader
from frognano.tasks.patch import EXECUTABLE, FILE, Entry, apply_patch
from frognano.tasks.testrun import TestRun


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_gold_patch_scores_one_in_any_order_and_hash_seed(case: Any, seed: int) -> None:
    verdict = case.grade(case.gold, order_seed=seed, hash_seed=seed)
    assert verdict.detail == ""
    assert (verdict.reward, verdict.reason) == (1.0, "passed")
    assert verdict.outcomes == dict.fromkeys(case.task.tests.f2p + case.task.tests.p2p, "passed")


def test_the_empty_patch_scores_zero(case: Any) -> None:
    verdict = case.grade(b"")
    assert (verdict.reward, verdict.reason) == (0.0, "failed")
    assert {test for test, outcome in verdict.outcomes.items() if outcome != "passed"} == set(case.task.tests.f2p)


@pytest.mark.parametrize("which", ["grader", "forked"])
def test_a_run_reports_every_outcome_under_its_exact_id(case: Any, which: str) -> None:
    text = b"""import pytest

@pytest.mark.parametrize("x", ["1 + 1", "a - b", "a]b", "d\xc3\xa9j\xc3\xa0", "::", "[x]"])
def test_p(x):
    assert x != "a - b", "boom - bang"

@pytest.mark.xfail
def test_expected(): assert False

@pytest.mark.xfail
def test_unexpected(): pass

@pytest.mark.skip
def test_skipped(): pass

@pytest.fixture
def broken(): raise OSError

def test_error(broken): pass
"""
    run = TestRun(case.task.snapshot, Runtime(), ("t.py",), tests={"t.py": text}, details=True)
    report = case.wait(getattr(case, which).run_tests(run))
    ids = {test.partition("::")[2]: outcome for test, outcome in report.outcomes.items()}
    odd = "test_p[d\\xe9j\\xe0]"
    passed = dict.fromkeys(["test_p[1 + 1]", "test_p[a]b]", odd, "test_p[::]", "test_p[[x]]"], "passed")
    others = {"test_expected": "xfailed", "test_unexpected": "xpassed", "test_skipped": "skipped"}
    assert ids == {**passed, **others, "test_p[a - b]": "failed", "test_error": "error"}
    assert "boom - bang" in report.messages["t.py::test_p[a - b]"]
    assert report.sound


def test_a_missing_id_is_missing_and_a_broken_file_is_no_failure(case: Any) -> None:
    tests = {"ok.py": b"def test_a(): pass\n", "bad.py": b"import nothing_here\ndef test_b(): pass\n"}
    ids = ("ok.py::test_a", "ok.py::test_gone", "bad.py::test_b")
    run = TestRun(case.task.snapshot, Runtime(), ("ok.py", "bad.py"), ids, tests=tests, details=True)
    report = case.wait(case.forked.run_tests(run))
    assert report.outcomes == {ids[0]: "passed", ids[1]: "missing", ids[2]: "missing"}
    assert "nothing_here" in report.collect_errors["bad.py"]
    assert not report.sound


def test_order_and_hash_seed_reach_the_tests(case: Any) -> None:
    text = b"""import pathlib, sys
for n in range(6):
    exec(f"def test_{n}(): print({n}, file=sys.__stderr__)")
def test_hash(): assert hash("a") == int(pathlib.Path("wanted").read_text())
"""
    outputs = []
    for seed in (0, 1, 1, 2):
        run = TestRun(case.task.snapshot, Runtime(), ("t.py",), tests={"t.py": text}, order_seed=seed, details=True)
        outputs.append([x for x in case.wait(case.forked.run_tests(run)).output.split() if x.isdigit()][:6])
    assert outputs[0] == sorted(outputs[0])
    assert outputs[1] == outputs[2] != outputs[0]
    assert outputs[3] not in outputs[:3]
    for which in (case.grader, case.forked):
        hashes = []
        for seed in (0, 7):
            code = b"def test_hash(): raise SystemError(hash('a'))\n"
            run = TestRun(case.task.snapshot, Runtime(), ("h.py",), tests={"h.py": code}, hash_seed=seed, details=True)
            hashes.append(case.wait(which.run_tests(run)).messages["h.py::test_hash"])
        assert hashes[0] != hashes[1]


def test_a_patch_that_does_not_fit_is_a_zero_and_a_lost_sandbox_is_no_verdict(case: Any) -> None:
    verdict = case.grade(case.gold.replace(b"min(value, low)", b"min(value, mid)"))
    assert (verdict.reward, verdict.reason) == (0.0, "patch_failed")

    class Lost:
        tried = 0

        async def run(self, job: Any, snapshot: Any, hash_seed: int) -> Any:
            self.tried += 1
            raise SandboxError("gone")

    judge = Lost()
    grader = Grader(None, case.store, GraderSettings(attempts=3), judge)
    verdict = case.wait(grader.grade(case.task, case.folder, case.gold))
    assert (verdict.reward, verdict.reason, judge.tried) == (None, "no_verdict", 3)
    with pytest.raises(NoVerdict):
        case.wait(grader.run_tests(TestRun(case.task.snapshot, Runtime(), ("tests",))))


def test_crlf_new_binary_renamed_and_oddly_named_files_reach_the_tests(case: Any) -> None:
    files = case.store.files(case.task.snapshot)
    after = {**files, "gauge/core.py": Entry(FILE, case.fixed), "gauge/crlf.py": Entry(FILE, b"A = 1\r\nB = 3\r\n")}
    after |= {"new/d\u00e9j\u00e0 vu.bin": Entry(FILE, bytes(range(256))), "run.sh": Entry(EXECUTABLE, b"#!/bin/sh\n")}
    after["READ ME.md"] = after.pop("README.md")
    patch = make_patch(files, after)
    task = case.task
    code = b"""import os, pathlib
def test_files():
    assert pathlib.Path("gauge/crlf.py").read_bytes() == b"A = 1\\r\\nB = 3\\r\\n"
    assert pathlib.Path("new/d\xc3\xa9j\xc3\xa0 vu.bin").read_bytes() == bytes(range(256))
    assert os.access("run.sh", os.X_OK) and pathlib.Path("READ ME.md").exists()
    assert not pathlib.Path("README.md").exists()
"""
    changes = apply_patch(lambda name: case.store.entry(task.snapshot, name), patch)
    run = TestRun(task.snapshot, Runtime(), ("f.py",), changes=changes, tests={"f.py": code})
    for which in (case.grader, case.forked):
        assert case.wait(which.run_tests(run)).outcomes == {"f.py::test_files": "passed"}
    assert case.grade(patch).reward == 1.0


def test_the_grader_takes_the_mode_it_is_told(case: Any, backend: Any) -> None:
    async def verdict(mode: str) -> Any:
        async with open_grader(backend, case.store, GraderSettings.parse({"mode": mode})) as grader:
            return await grader.grade(case.task, case.folder, case.gold)

    for mode in ("auto", "cold", "forked"):
        assert case.wait(verdict(mode)).reward == 1.0


def test_a_package_may_keep_its_code_in_a_folder_called_test(case: Any) -> None:
    task = case.task.model_copy(update={"origin": case.task.origin.model_copy(update={"module": "gauge/test/core.py"})})
    snapshot = case.store.derive(
        task.snapshot,
        {
            "gauge/test/__init__.py": b"",
            "gauge/test/core.py": case.broken,
            "gauge/core.py": b"from gauge.test.core import *\n",
        },
    )
    task = task.model_copy(update={"id": "in-test", "snapshot": snapshot})
    files = case.store.files(snapshot)
    gold = make_patch(files, {**files, "gauge/test/core.py": Entry(FILE, case.fixed)})
    assert case.wait(case.forked.grade(task, case.folder, gold)).reward == 1.0


def test_a_test_that_forks_speaks_once(case: Any) -> None:
    text = b"""import os
def test_fork():
    pid = os.fork()
    assert pid and os.waitpid(pid, 0)
def test_after(): pass
"""
    report = case.wait(case.forked.run_tests(TestRun(case.task.snapshot, Runtime(), ("t.py",), tests={"t.py": text})))
    assert report.outcomes == {"t.py::test_fork": "passed", "t.py::test_after": "passed"}
    assert report.sound


def test_subprocesses_of_tests_find_python_and_the_package(case: Any) -> None:
    text = b"""import subprocess, socket
def test_child():
    subprocess.run(["python3", "-c", "import gauge.core"], check=True)
def test_loopback():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()): pass
def test_writing(tmp_path):
    open("gauge/core.py", "a").write("#"); open("gauge/new.py", "w"); (tmp_path / "x").write_text("x")
"""
    run = TestRun(case.task.snapshot, Runtime(), ("t.py",), tests={"t.py": text}, details=True)
    for which in (case.grader, case.forked):
        report = case.wait(which.run_tests(run))
        assert set(report.outcomes.values()) == {"passed"}, report.messages
