"""Pretraining text: a function of the seed alone, shaped as real episodes are, and foreign to pond."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tokenizers", reason="needs the extra `train`")

from transformers import AutoTokenizer

from frognano.policy.chat import ChatFormat
from frognano.tadpole.corpus.bugs import plant
from frognano.tadpole.corpus.episodes import Author, Habits
from frognano.tadpole.corpus.expressions import Stream
from frognano.tadpole.corpus.functions import write_function
from frognano.tadpole.corpus.library import excerpts, plant_in_library
from frognano.tadpole.corpus.shards import CHANGE, SLIP, encode
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
        assert planted.facts.suspect in planted.mutated
        assert f"def {planted.facts.function}(" in planted.clean.split("\n")[planted.facts.line - 1]


def test_a_planted_bug_shows_in_its_examples_and_nowhere_in_the_clean_text() -> None:
    rng = Stream("3", level=3)
    for _ in range(20):
        planted = plant(rng)
        assert planted.mutated == planted.mutation.apply(planted.clean) != planted.clean
        assert all(example.actual != example.expected for example in planted.facts.examples)
        assert planted.facts.suspect in planted.mutated


def test_the_last_edit_of_a_solved_script_repairs_the_module(tmp_path: Path) -> None:
    author = Author(tmp_path, 11, Habits())
    for _ in range(12):
        script = author.write()
        edit = script.turns[-2]
        assert script.solved
        assert edit.calls[0].name == "Edit"
        assert edit.observations[0].text.endswith("(1 replacement).")
        assert not script.turns[-1].calls


def test_habits_say_how_often_the_scripted_solver_edits_another_line(tmp_path: Path) -> None:
    author = Author(tmp_path, 2, Habits(wrong_line=0.5))
    solved = Counter(author.drill().solved for _ in range(80))
    assert 20 <= solved[False] <= 60


def test_a_solver_that_gives_up_reads_and_changes_nothing(tmp_path: Path) -> None:
    author = Author(tmp_path, 2, Habits(gives_up=1.0))
    for _ in range(12):
        script = author.write()
        assert not script.solved
        assert "Edit" not in {call.name for turn in script.turns for call in turn.calls}


def test_a_slip_fails_and_is_followed_by_an_edit_that_does_not(tmp_path: Path) -> None:
    author = Author(tmp_path, 3, Habits(misread=0.0, misquote=0.5, unchanged=0.5))
    slips = 0
    for _ in range(20):
        turns = author.drill().turns
        for turn, after in itertools.pairwise(turns):
            if turn.slip:
                slips += 1
                assert turn.observations[0].failed or "ValueError" in turn.observations[0].text
                assert after.observations[0].text.endswith("(1 replacement).")
    assert slips > 10


def test_the_token_at_which_an_edit_leaves_its_old_text_is_marked(tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(POND.parents[1] / "checkpoint")
    chat = ChatFormat(tokenizer)
    author = Author(tmp_path, 5, Habits(misquote=0.5, unchanged=0.0))
    for _ in range(12):
        script = author.drill()
        sequence = encode(tokenizer, chat, script)
        edit = script.turns[-2].calls[0].arguments
        (at,) = np.flatnonzero(sequence.roles == CHANGE)
        begin = tokenizer.decode(sequence.ids[:at]).rpartition("<parameter=new_string>\n")[2]
        whole = tokenizer.decode(sequence.ids[: at + 1]).rpartition("<parameter=new_string>\n")[2]
        assert str(edit["new_string"]).startswith(begin)
        assert str(edit["old_string"]).startswith(begin)
        assert not str(edit["old_string"]).startswith(whole)
        assert (SLIP in sequence.roles) == script.turns[0].slip
