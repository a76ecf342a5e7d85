"""Planted tests: no correct code passes them, every one reports, and originals are left as they are."""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import Any

import pytest

from frognano.records import Runtime
from frognano.tasks import inside
from frognano.tasks.inside import boot
from frognano.tasks.sentinels import plant
from frognano.tasks.testrun import TestRun

SOURCE = b"""# coding: latin-1
import unittest
import pytest

NAME = "\xe9"


def test_number():
    assert 1 + 1 == 2


def test_text_on_the_left():
    assert "ab" == "a" + "b"


def test_several():
    x = [1]
    assert x == [1]
    with pytest.raises(ZeroDivisionError):
        1 / 0


def test_truth():
    assert NAME
    assert not []


@pytest.mark.parametrize("x", [1, 2])
def test_each(x): assert {x: 1} == {x: 1}


def test_returns():
    if NAME:
        return
    assert False


@pytest.mark.skip
def test_skipped():
    assert 0 == 0


class TestClass:
    def test_method(self):
        assert (1, 2) == (1, 2)


class Case(unittest.TestCase):
    def test_unit(self):
        self.assertEqual(str(1), "1")
"""
TESTS = [
    "t.py::test_number",
    "t.py::test_text_on_the_left",
    "t.py::test_several",
    "t.py::test_truth",
    "t.py::test_each[1]",
    "t.py::test_each[2]",
    "t.py::test_returns",
    "t.py::test_skipped",
    "t.py::TestClass::test_method",
    "t.py::Case::test_unit",
]


@pytest.mark.parametrize("seed", range(3))
def test_every_planted_test_does_what_it_is_planted_for(case: Any, seed: int) -> None:
    for half in (TESTS[:5], TESTS[5:]):
        planted = plant("t.py", SOURCE, half, random.Random(seed))
        run = TestRun(case.task.snapshot, Runtime(), ("t.py",), tests={"t.py": planted.source})
        outcomes = case.wait(case.forked.run_tests(run)).outcomes
        assert {outcomes[test] for test in planted.must_fail} == {"failed"}
        assert {outcomes[test] for test in planted.must_pass} == {"passed"}
        assert {test: outcomes[test] for test in TESTS if test != "t.py::test_skipped"} == {
            test: "passed" for test in TESTS if test != "t.py::test_skipped"
        }


def test_tests_that_could_pass_when_copied_are_not_copied() -> None:
    planted = plant("t.py", SOURCE, ["t.py::test_returns", "t.py::test_skipped"], random.Random(0), plain=False)
    assert planted.must_fail == ()


def test_names_differ_from_run_to_run_and_never_hide_a_real_test() -> None:
    drawn = [plant("t.py", SOURCE, TESTS, random.Random(seed)) for seed in range(5)]
    assert len({planted.must_fail for planted in drawn}) == 5
    for planted in drawn:
        names = [node.name for node in ast.parse(planted.source).body if isinstance(node, ast.FunctionDef)]
        assert len(names) == len(set(names))


def test_a_file_that_is_not_python_is_left_alone() -> None:
    assert plant("t.py", b"def broken(:\n", ["t.py::test_x"], random.Random(0)).source == b"def broken(:\n"


@pytest.mark.parametrize("name", [*boot.MODULES, "boot", "grade"])
def test_files_that_run_inside_sandboxes_are_python_3_6(name: str) -> None:
    ast.parse(Path(inside.__file__).with_name(f"{name}.py").read_text(), feature_version=(3, 6))
