"""Random small functions with a docstring: what Tadpole is pretrained on.

They are drawn move by move over a typed scope, so they run and mostly mean something, and none of them is
copied from anywhere. ``sample_arguments`` draws calls for them.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from frognano.tadpole.corpus.draft import ERRORS, HINT, KEYWORDS, Draft, identifier, word
from frognano.tadpole.corpus.expressions import SEPARATORS, SUFFIXES, Stream
from frognano.tadpole.corpus.moves import MOVES


@dataclass(frozen=True)
class Written:
    """A finished function: its source, and its parameters with their types."""

    name: str
    source: str
    parameters: tuple[tuple[str, str], ...]


_SMALL_WORDS = (
    *("the", "a", "of", "in", "is", "and", "to", "if", "or", "not", "as", "each"),
    *("no", "than", "both", "all", "at", "by", "from", "for", "with", "it", "are", "without"),
)


def write_function(rng: Stream, taken: set[str]) -> Written:
    """Draw one function whose name is not in ``taken`` (the name is added)."""
    draft = Draft(rng)
    name = _function_name(rng, taken)
    kinds = [
        rng.choice(("int", "str", "ints", "strs", "ints", "str", "map")) for _ in range(rng.choice((1, 1, 2, 2, 3)))
    ]
    for kind in kinds:
        draft.scope[draft.fresh(kind)] = kind
    parameters = tuple(draft.scope.items())
    signature = _signature(draft, name, parameters)
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        _guard(draft)
    for _ in range(rng.choice((1, 2, 2, 3) if rng.long else (0, 1, 1, 2))):
        rng.choice(MOVES)(draft)
    _finish(draft)
    doc = _docstring(draft, parameters)
    source = "\n".join([signature, *(f"    {line}" for line in [*doc, *draft.lines])]) + "\n"
    rng.helpers.append((name, tuple(kind for _, kind in parameters)))
    return Written(name, source, parameters)


def _function_name(rng: Stream, taken: set[str]) -> str:
    while True:
        name = identifier(rng, rng.choice((1, 2, 2, 2, 3)))
        if name not in taken and name not in KEYWORDS:
            taken.add(name)
            return name


def _signature(draft: Draft, name: str, parameters: tuple[tuple[str, str], ...]) -> str:
    rng = draft.rng
    parts = []
    hints = rng.random() < 0.7
    seen_default = False
    for position, (parameter, kind) in enumerate(parameters):
        text = f"{parameter}: {HINT[kind]}" if hints else parameter
        if position and kind in {"int", "str"} and (seen_default or rng.random() < 0.4):
            value = draft.make.number() if kind == "int" else draft.make.separator()
            text += f" = {value}" if hints else f"={value}"
            seen_default = True
        elif seen_default:
            text += " = None" if hints else "=None"
        parts.append(text)
    arrow = rng.choice(("", " -> int", " -> str", " -> list")) if hints else ""
    return f"def {name}({', '.join(parts)}){arrow}:"


def _guard(draft: Draft) -> None:
    rng, make = draft.rng, draft.make
    condition = make.condition()
    if condition == "True":
        return
    if rng.random() < 0.55:
        error = rng.choice(ERRORS)
        subject = rng.choice(list(draft.scope))
        said = " ".join(word(rng) for _ in range(rng.choice((1, 2, 3, 4))))
        message = rng.choice((f"bad {subject}", f"{subject} is empty", f"{subject} out of range", said, said))
        call = f'{error}("{message}")' if rng.random() < 0.8 else error
        draft.lines += [f"if {condition}:", f"    raise {call}"]
        draft.notes.append(f"Raises {error} if {_words(condition)}.")
    else:
        value = (
            make.draw(rng.choice(("int", "str", "ints")), 0)
            if rng.random() < 0.7
            else rng.choice(("[]", "None", '""', "0", "True", "False"))
        )
        draft.lines += [f"if {condition}:", f"    return {value}"]
        draft.notes.append(f"Returns {value} if {_words(condition)}.")


def _words(condition: str) -> str:
    swaps = (
        (" <= ", " is at most "),
        (" >= ", " is at least "),
        (" < ", " is below "),
        (" > ", " is above "),
        (" == ", " is "),
        (" != ", " is not "),
    )
    for symbol, words in swaps:
        condition = condition.replace(symbol, words)
    return condition


def _finish(draft: Draft) -> None:
    rng, make = draft.rng, draft.make
    newest = list(draft.scope)[-1]
    choice = rng.random()
    if choice < 0.3:
        value = newest
    elif choice < 0.42:
        value = make.condition()
    elif choice < 0.5:
        value = f"{make.draw('int', 1)}, {newest}"
    else:
        value = make.draw(draft.scope[newest] if rng.random() < 0.7 else rng.choice(("int", "str", "ints")), 2)
    draft.lines.append(f"return {value}")
    if len(value) < 40 and rng.random() < 0.4:
        note = f"Return {value}."
    else:
        verb, what = rng.choice(("Return", "Get", "Compute")), " ".join(word(rng) for _ in range(rng.choice((2, 3, 5))))
        note = f"{verb} the {what} of {next(iter(draft.scope))}."
    draft.notes.insert(0, note)


def _docstring(draft: Draft, parameters: tuple[tuple[str, str], ...]) -> list[str]:
    notes = draft.notes
    if draft.rng.long and draft.rng.random() < 0.8:
        return _prose(draft)
    rest = notes[1:]
    if draft.rng.random() < 0.15 or not rest:
        return [f'"""{notes[0]}"""']
    if draft.rng.random() < 0.5:
        return [f'"""{notes[0]}', "", *rest, '"""']
    return [f'"""{" ".join(notes)}"""'] if len(" ".join(notes)) < 90 else [f'"""{notes[0]}', *rest, '"""']


def _prose(draft: Draft) -> list[str]:
    rng = draft.rng
    said = draft.notes[1:]
    for _ in range(rng.choice((0, 1, 1, 2))):
        words = [rng.choice((*_SMALL_WORDS, word(rng), word(rng), *draft.scope)) for _ in range(rng.randint(5, 14))]
        said.insert(rng.randint(0, len(said)), " ".join(words).capitalize() + ".")
    lines = textwrap.wrap(" ".join(said), rng.choice((64, 70, 76)))
    return [f'"""{draft.notes[0]}', "", *lines, '"""'] if lines else [f'"""{draft.notes[0]}"""']


def sample_arguments(rng: Stream, parameters: tuple[tuple[str, str], ...]) -> list[object]:
    """Draw arguments for a call."""
    return [sample_value(rng, kind) for _, kind in parameters]


def sample_value(rng: Stream, kind: str) -> object:
    """A value of a type."""
    if kind == "int":
        return rng.choice((0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 15, 16, 20, 31, 60, 100, -1, -3))
    if kind == "str":
        pieces = [
            rng.choice((word(rng), word(rng), *SUFFIXES[:3], "A", "B7", "12", "Zed", " x"))
            for _ in range(rng.choice((0, 1, 1, 2, 3)))
        ]
        return rng.choice(SEPARATORS).join(pieces)
    if kind == "ints":
        return [
            rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 12, -2, -5, 30)) for _ in range(rng.choice((0, 1, 2, 3, 4, 5)))
        ]
    if kind == "strs":
        return [rng.choice((word(rng), word(rng), *SUFFIXES[:2], "", "A")) for _ in range(rng.choice((0, 1, 2, 3, 4)))]
    return {word(rng): rng.randint(0, 9) for _ in range(rng.choice((0, 1, 2, 3)))}
