"""Hidden tests are taken out function by function; everything else stays byte for byte."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frognano.taskpilot.hide import HideError, function_of, hide
from frognano.taskpilot.repository import open_repository

SOURCE = '''"""Doc."""
# a comment
import pytest

X = 1   # odd   spacing


# about a
@pytest.mark.parametrize("x",[1])
def test_a(x):
    assert x


class TestB:
    """Doc."""
    def test_c(self): pass
    def test_d(self):
        assert 1


class TestE:
    def test_f(self):
        assert 1

    def helper(self):
        return 2
'''


def _without(*ids: str) -> str | None:
    return hide({"t.py": SOURCE}, [f"t.py::{name}" for name in ids])["t.py"]


def test_a_parametrised_function_goes_as_a_whole_with_its_decorator_and_comment() -> None:
    left = _without("test_a[1]")
    assert left is not None
    assert "test_a" not in left
    assert "parametrize" not in left
    assert "about a" not in left
    assert "X = 1   # odd   spacing" in left


def test_a_method_goes_and_its_class_stays_while_a_test_is_in_it() -> None:
    left = _without("TestB::test_c")
    assert left is not None
    assert "test_c" not in left
    assert "def test_d(self):" in left


def test_a_class_without_tests_goes_unless_it_holds_something_else() -> None:
    left = _without("TestB::test_c", "TestB::test_d", "TestE::test_f")
    assert left is not None
    assert "TestB" not in left
    assert "def helper" in left


def test_a_file_left_with_imports_alone_is_removed() -> None:
    source = '"""Doc."""\nimport os\n\ndef test_a():\n    pass\n'
    assert hide({"t.py": source}, ["t.py::test_a"]) == {"t.py": None}


def test_a_function_inside_a_condition_goes() -> None:
    source = "import sys\nif sys:\n    def test_a():\n        pass\nY = 1\n"
    left = hide({"t.py": source}, ["t.py::test_a"])["t.py"]
    assert left is not None
    assert "test_a" not in left
    ast.parse(left)


def test_an_inherited_or_missing_test_is_refused() -> None:
    with pytest.raises(HideError, match="TestB::test_x"):
        _without("TestB::test_x")
    with pytest.raises(HideError, match="no such test file"):
        hide({}, ["t.py::test_a"])


def test_parameters_may_hold_any_character() -> None:
    assert function_of("t.py::TestB::test_c[x::y[0]]") == ("t.py", ("TestB", "test_c"))


def test_a_missing_final_newline_stays_missing() -> None:
    left = hide({"t.py": "def test_a():\n    pass\ndef test_b():\n    pass"}, ["t.py::test_a"])["t.py"]
    assert left == "def test_b():\n    pass"


POND = open_repository("pond")
FILES = {path: POND.read(path) for path in POND.test_files}
TESTS = [
    f"{path}::{node.name}"
    for path, source in FILES.items()
    for node in ast.parse(source).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
]


@settings(max_examples=25, deadline=None)
@given(st.sets(st.sampled_from(TESTS), max_size=12))
def test_what_is_not_hidden_is_unchanged(chosen: set[str]) -> None:
    for path, left in hide(FILES, chosen).items():
        names = {test.split("::")[1] for test in chosen if test.startswith(f"{path}::")}
        text = left or ""
        kept = [node for node in ast.parse(FILES[path]).body if getattr(node, "name", "") not in names]
        for node in kept:
            assert left is None or (ast.get_source_segment(FILES[path], node) or "") in text
        assert not names & {getattr(node, "name", "") for node in ast.parse(text).body}
