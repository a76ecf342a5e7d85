"""What a test enforces is read from its source."""

from __future__ import annotations

import textwrap

from frognano.taskpilot.requirements import Requirement, TestFile


def read(body: str, head: str = "from m import f, Box") -> list[Requirement]:
    source = f"import pytest\n{head}\n\n" + textwrap.dedent(body)
    file = TestFile("t.py", source)
    return [found for test in file.tests() for found in file.requirements(tuple(test.split("::")[1:]))]


def pairs(body: str, head: str = "from m import f, Box") -> list[tuple[str, str]]:
    return [(found.call, found.outcome) for found in read(body, head)]


def test_an_equality_gives_call_and_value() -> None:
    assert pairs("def test_a():\n    assert f(1, x=2) == [3]\n") == [("f(1, x=2)", "[3]")]


def test_sides_may_be_swapped() -> None:
    assert pairs("def test_a():\n    assert 'x' == f(1)\n") == [("f(1)", "'x'")]


def test_truth_and_its_negation() -> None:
    assert pairs("def test_a():\n    assert f(1)\n    assert not f(2)\n    assert f(3) is None\n") == [
        ("f(1)", "True"),
        ("f(2)", "False"),
        ("f(3)", "None"),
    ]


def test_raises_gives_the_exception_and_its_pattern() -> None:
    found = read("def test_a():\n    with pytest.raises(ValueError, match='too low'):\n        f(1)\n")
    assert [(item.call, item.outcome, item.match) for item in found] == [("f(1)", "raises ValueError", "too low")]


def test_local_names_are_replaced_by_what_they_stand_for() -> None:
    body = """
    def test_a():
        text = "abc"
        box = Box(text)
        assert box.size() == 3
    """
    assert pairs(body) == [("Box('abc').size()", "3")]


def test_a_name_changed_by_a_call_is_no_longer_known() -> None:
    body = """
    def test_a():
        box = Box()
        box.put(1)
        assert box.size() == 1
    """
    assert pairs(body) == [("", "1")]


def test_parameters_are_written_out() -> None:
    body = """
    @pytest.mark.parametrize("x, y", [(1, 2), pytest.param(3, 4, id="b")])
    def test_a(x, y):
        assert f(x) == y
    """
    assert pairs(body) == [("f(1)", "2"), ("f(3)", "4")]


def test_loops_over_written_values_are_written_out() -> None:
    assert pairs("def test_a():\n    for x, y in [(1, 2), (3, 4)]:\n        assert f(x) == y\n") == [
        ("f(1)", "2"),
        ("f(3)", "4"),
    ]


def test_fixtures_do_not_stand_alone() -> None:
    assert pairs("def test_a(tmp_path):\n    assert f(tmp_path) == 1\n") == [("", "1")]


def test_a_local_name_that_hides_a_builtin_does_not_stand_alone() -> None:
    assert pairs("def test_a(input):\n    assert f(input) == 1\n") == [("", "1")]


def test_unittest_assertions_are_read() -> None:
    body = """
    class TestA:
        def test_a(self):
            self.assertEqual(f(1), 2)
            self.assertTrue(f(3))
            self.assertRaises(KeyError, f, 4)
            with self.assertRaises(TypeError):
                f(5)
    """
    assert pairs(body) == [("f(1)", "2"), ("f(3)", "True"), ("f(4)", "raises KeyError"), ("f(5)", "raises TypeError")]


def test_module_constants_are_known() -> None:
    assert pairs("WORD = 'x'\n\ndef test_a():\n    assert f(WORD) == 1\n") == [("f('x')", "1")]
