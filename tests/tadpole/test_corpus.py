"""Pretraining text: a function of the seed alone, shaped as real episodes are, and foreign to pond."""

from __future__ import annotations

import ast
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

pytest.importorskip("tokenizers", reason="needs the extra `train`")

from frognano.tadpole.corpus.bugs import plant
from frognano.tadpole.corpus.episodes import Author, Habits
from frognano.tadpole.corpus.expressions import Stream
from frognano.tadpole.corpus.functions import write_function
from frognano.tadpole.corpus.library import excerpts, plant_in_library
from frognano.tasks.splits import normalised

POND = Path(str(resources.files("frognano.tadpole") / "pond" / "pond"))


def trees(source: str) -> set[str]:
    return {
        normalised(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_equal_seeds_write_equal_scripts(tmp_path: Path) -> None:
    first, second = (Author(tmp_path / name, 5, Habits()) for name in ("a", "b"))
    assert [first.write() for _ in range(5)] == [second.write() for _ in range(5)]


def test_no_generated_function_is_one_of_ponds() -> None:
    pond = {tree for path in POND.glob("*.py") for tree in trees(path.read_text(encoding="utf-8"))}
    rng = Stream("7", level=3)
    generated = {tree for _ in range(4000) for tree in trees(write_function(rng, set()).source)}
    assert len(pond) > 120
    assert len(generated) > 3000
    assert not pond & generated


def test_no_library_function_is_one_of_ponds() -> None:
    pond = {tree for path in POND.glob("*.py") for tree in trees(path.read_text(encoding="utf-8"))}
    library = {tree for _, functions in excerpts() for function in functions for tree in trees(function.source)}
    assert len(library) > 4000
    assert not pond & library


def test_a_bug_planted_in_a_library_function_is_undone_by_the_clean_line() -> None:
    rng = Stream("4", level=3)
    for _ in range(20):
        planted = plant_in_library(rng)
        assert planted.mutated == planted.mutation.apply(planted.clean) != planted.clean
        assert planted.mutated.count("\n") == planted.clean.count("\n")
        assert f"def {planted.facts.function}(" in planted.clean.split("\n")[planted.facts.line - 1]


def test_a_planted_bug_shows_in_its_examples_and_nowhere_in_the_clean_text() -> None:
    rng = Stream("3", level=3)
    for _ in range(20):
        planted = plant(rng)
        assert planted.mutated == planted.mutation.apply(planted.clean) != planted.clean
        assert all(example.actual != example.expected for example in planted.facts.examples)
        assert planted.facts.suspect in planted.mutated


def test_the_last_edit_of_a_solved_script_repairs_the_module(tmp_path: Path) -> None:
    author = Author(tmp_path, 11, Habits(wrong_change=0.0))
    for _ in range(12):
        script = author.write()
        edit = script.turns[-2]
        assert script.solved
        assert edit.calls[0].name == "Edit"
        assert edit.observations[0].text.endswith("(1 replacement).")
        assert not script.turns[-1].calls


def test_habits_say_how_often_the_scripted_solver_is_wrong(tmp_path: Path) -> None:
    author = Author(tmp_path, 2, Habits(wrong_change=0.5))
    solved = Counter(author.drill().solved for _ in range(80))
    assert 20 <= solved[False] <= 60
