"""Random small functions with a docstring: what Tadpole is pretrained on.

They are drawn move by move over a typed scope, so they run and mostly mean something, and none of them is
copied from anywhere. ``sample_arguments`` draws calls for them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from frognano.tadpole.corpus.expressions import SEPARATORS, SUFFIXES, Expressions

WORDS = tuple(
    [
        "add",
        "age",
        "all",
        "amount",
        "area",
        "arg",
        "array",
        "base",
        "batch",
        "bin",
        "block",
        "body",
        "bound",
        "box",
        "buffer",
        "bucket",
        "byte",
        "call",
        "card",
        "cell",
        "chain",
        "char",
        "check",
        "chunk",
        "city",
        "clean",
        "clip",
        "code",
        "col",
        "column",
        "common",
        "cost",
        "count",
        "cursor",
        "cut",
        "cycle",
        "data",
        "date",
        "day",
        "default",
        "delta",
        "depth",
        "diff",
        "digit",
        "dot",
        "draft",
        "drop",
        "edge",
        "element",
        "end",
        "entry",
        "even",
        "event",
        "extra",
        "factor",
        "fee",
        "field",
        "file",
        "fill",
        "filter",
        "final",
        "first",
        "fit",
        "fix",
        "flag",
        "flat",
        "fold",
        "form",
        "frame",
        "free",
        "gap",
        "get",
        "goal",
        "grade",
        "grid",
        "group",
        "guess",
        "half",
        "head",
        "height",
        "hint",
        "hour",
        "index",
        "init",
        "inner",
        "item",
        "join",
        "jump",
        "keep",
        "key",
        "kind",
        "label",
        "last",
        "layer",
        "lead",
        "left",
        "len",
        "length",
        "letter",
        "level",
        "limit",
        "line",
        "link",
        "list",
        "load",
        "loop",
        "low",
        "lower",
        "main",
        "make",
        "map",
        "mark",
        "mask",
        "match",
        "max",
        "mean",
        "merge",
        "mid",
        "min",
        "minute",
        "mix",
        "mode",
        "month",
        "move",
        "name",
        "near",
        "nested",
        "next",
        "node",
        "norm",
        "note",
        "num",
        "number",
        "odd",
        "offset",
        "old",
        "open",
        "order",
        "outer",
        "pack",
        "pad",
        "page",
        "pair",
        "part",
        "past",
        "path",
        "peak",
        "pick",
        "piece",
        "pivot",
        "place",
        "plain",
        "point",
        "pool",
        "pos",
        "prefix",
        "price",
        "prev",
        "prime",
        "quote",
        "rank",
        "rate",
        "ratio",
        "raw",
        "read",
        "real",
        "rest",
        "right",
        "root",
        "round",
        "row",
        "rule",
        "run",
        "safe",
        "sample",
        "scale",
        "scan",
        "score",
        "seed",
        "seen",
        "seq",
        "set",
        "shape",
        "share",
        "shift",
        "short",
        "side",
        "sign",
        "size",
        "skip",
        "slot",
        "small",
        "sort",
        "span",
        "split",
        "square",
        "stack",
        "start",
        "stem",
        "step",
        "stop",
        "store",
        "strip",
        "sub",
        "suffix",
        "sum",
        "swap",
        "tag",
        "tail",
        "take",
        "target",
        "term",
        "test",
        "text",
        "tick",
        "tile",
        "time",
        "title",
        "token",
        "top",
        "total",
        "trim",
        "turn",
        "unit",
        "unique",
        "upper",
        "use",
        "user",
        "value",
        "view",
        "wait",
        "walk",
        "week",
        "weight",
        "width",
        "window",
        "word",
        "wrap",
        "year",
        "zero",
        "zone",
    ]
)
NOUNS = {
    "int": (
        "n",
        "k",
        "size",
        "limit",
        "count",
        "start",
        "stop",
        "step",
        "width",
        "low",
        "high",
        "value",
        "index",
        "total",
        "a",
        "b",
    ),
    "str": ("text", "s", "name", "word", "line", "key", "prefix", "label", "path", "sep", "char", "raw", "token"),
    "ints": ("xs", "values", "numbers", "items", "data", "scores", "nums", "sizes", "seq", "row"),
    "strs": ("words", "names", "lines", "parts", "keys", "tokens", "labels", "fields", "rows"),
    "map": ("table", "counts", "mapping", "index_of", "lookup", "prices", "d"),
}
_ERRORS = ("ValueError", "TypeError", "KeyError", "IndexError")
_HINT = {"int": "int", "str": "str", "ints": "list", "strs": "list", "map": "dict"}


@dataclass
class Draft:
    """A function being written."""

    rng: random.Random
    scope: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def make(self) -> Expressions:
        """Expressions over the present scope."""
        return Expressions(self.rng, self.scope)

    def fresh(self, kind: str) -> str:
        """A new variable name of a type, not yet in scope."""
        free = [name for name in (*NOUNS[kind], "result", "out", "found", "best") if name not in self.scope]
        if not free or self.rng.random() < 0.3:
            name = "_".join(self.rng.sample(WORDS, self.rng.choice((1, 1, 2))))
            return name if name not in self.scope and name not in _KEYWORDS else f"{name}_{len(self.scope)}"
        return self.rng.choice(free)


_KEYWORDS = {
    "all",
    "bin",
    "list",
    "map",
    "max",
    "min",
    "len",
    "open",
    "round",
    "set",
    "sum",
    "filter",
    "next",
    "sorted",
}


@dataclass(frozen=True)
class Written:
    """A finished function: its source, and its parameters with their types."""

    name: str
    source: str
    parameters: tuple[tuple[str, str], ...]


def write_function(rng: random.Random, taken: set[str]) -> Written:
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
    for _ in range(rng.choice((0, 1, 1, 2))):
        rng.choice(_MOVES)(draft)
    _finish(draft)
    doc = _docstring(draft, parameters)
    source = "\n".join([signature, *(f"    {line}" for line in [*doc, *draft.lines])]) + "\n"
    return Written(name, source, parameters)


def _function_name(rng: random.Random, taken: set[str]) -> str:
    while True:
        name = "_".join(rng.sample(WORDS, rng.choice((1, 2, 2, 2, 3))))
        if name not in taken and name not in _KEYWORDS:
            taken.add(name)
            return name


def _signature(draft: Draft, name: str, parameters: tuple[tuple[str, str], ...]) -> str:
    rng = draft.rng
    parts = []
    hints = rng.random() < 0.7
    seen_default = False
    for position, (parameter, kind) in enumerate(parameters):
        text = f"{parameter}: {_HINT[kind]}" if hints else parameter
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
        error = rng.choice(_ERRORS)
        subject = rng.choice(list(draft.scope))
        message = rng.choice((f"bad {subject}", f"{subject} is empty", f"{subject} out of range", f"no {subject}"))
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


def _assign(draft: Draft) -> None:
    kind = draft.rng.choice(("int", "str", "ints", "strs", "int", "str"))
    value = draft.make.draw(kind)
    name = draft.fresh(kind)
    draft.lines.append(f"{name} = {value}")
    draft.scope[name] = kind


def _collect(draft: Draft) -> None:
    rng, make = draft.rng, draft.make
    kind = "ints" if make.names("ints") else "strs" if make.names("strs") else ""
    if not kind:
        return _assign(draft)
    item, out = make.fresh(), draft.fresh(kind)
    source = make.draw(kind, 1)
    inner = dict(draft.scope)
    draft.scope[item] = "int" if kind == "ints" else "str"
    make = draft.make
    body = [f"if {make.condition()}:", f"    {rng.choice(('continue', 'break'))}"] if rng.random() < 0.5 else []
    value = make.draw(draft.scope[item], 1) if rng.random() < 0.6 else item
    tail = (
        [f"if {make.condition()}:", f"    {out}.append({value})"]
        if not body and rng.random() < 0.6
        else [f"{out}.append({value})"]
    )
    draft.lines += [f"{out} = []", f"for {item} in {source}:", *(f"    {line}" for line in body + tail)]
    draft.scope.clear()
    draft.scope.update(inner)
    draft.scope[out] = kind
    return None


def _accumulate(draft: Draft) -> None:
    rng, make = draft.rng, draft.make
    total = draft.fresh("int")
    if make.names("ints") and rng.random() < 0.7:
        item, source = make.fresh(), make.draw("ints", 1)
        kind = "int"
    elif make.names("str"):
        item, source = make.fresh(), make.name("str")
        kind = "str"
    else:
        item, source = make.fresh(), f"range({make.draw('int', 0)})"
        kind = "int"
    outer = dict(draft.scope)
    draft.scope[item] = kind
    draft.scope[total] = "int"
    make = draft.make
    change = f"{total} {rng.choice(('+=', '+=', '-='))} {make.draw('int', 1)}"
    body = [f"if {make.condition()}:", f"    {change}"] if rng.random() < 0.6 else [change]
    if rng.random() < 0.2:
        body += ["else:", f"    {total} = {make.number()}"] if body[0].startswith("if") else []
    draft.lines += [f"{total} = {draft.make.number()}", f"for {item} in {source}:", *(f"    {line}" for line in body)]
    draft.scope.clear()
    draft.scope.update(outer)
    draft.scope[total] = "int"


def _indexed(draft: Draft) -> None:
    rng, make = draft.rng, draft.make
    kind = "ints" if make.names("ints") else "strs" if make.names("strs") else "str" if make.names("str") else ""
    if not kind:
        return _assign(draft)
    source, out = make.name(kind), draft.fresh("ints")
    style = rng.random()
    if style < 0.5:
        head = f"for i, item in enumerate({source}{rng.choice(('', '', ', 1'))}):"
        test = "item" if kind != "ints" else f"item {make.order()} {make.number()}"
    else:
        head = f"for i in range({rng.choice(('', '1, '))}len({source}){rng.choice(('', ' - 1'))}):"
        test = f"{source}[i] {rng.choice(('==', '!=', '<', '<=', '>', '>='))} {source}[{rng.choice(('0', '-1', 'i - 1', 'i + 1'))}]"
    draft.lines += [f"{out} = []", head, f"    if {test}:", f"        {out}.append({rng.choice(('i', 'i + 1'))})"]
    draft.scope[out] = "ints"
    return None


def _while(draft: Draft) -> None:
    rng, make = draft.rng, draft.make
    if not make.names("int"):
        return _assign(draft)
    name, base = make.name("int"), draft.rng.randint(2, 10)
    out = draft.fresh("ints")
    if rng.random() < 0.5:
        draft.lines += [f"{out} = []", f"while {name} {rng.choice(('> 0', f'>= {base}', '> 1'))}:"]
        draft.lines += [f"    {out}.append({name} % {base})", f"    {name} //= {base}"]
    else:
        step = rng.choice(("1", "2", str(base)))
        stop = make.number()
        draft.lines += [
            f"{out} = []",
            f"while {name} {rng.choice(('<', '<='))} {stop}:",
            f"    {out}.append({name})",
            f"    {name} += {step}",
        ]
    draft.scope[out] = "ints"
    return None


def _tally(draft: Draft) -> None:
    rng, make = draft.rng, draft.make
    source = make.draw("strs", 1) if make.names("strs") or make.names("str") else make.draw("ints", 1)
    out, item = draft.fresh("map"), make.fresh()
    text = make.names("strs") or make.names("str")
    key = rng.choice((item, f"{item}.lower()", f"{item}[:1]", f"len({item})")) if text else item
    style = rng.choice(
        (
            [f"{out}[{key}] = {out}.get({key}, 0) + 1"],
            [f"{out}.setdefault({key}, []).append({item})"],
            [f"if {key} not in {out}:", f"    {out}[{key}] = {make.number()}", f"{out}[{key}] += 1"],
        )
    )
    draft.lines += [f"{out} = {{}}", f"for {item} in {source}:", *(f"    {line}" for line in style)]
    draft.scope[out] = "map"


def _attempt(draft: Draft) -> None:
    rng, make = draft.rng, draft.make
    out = draft.fresh("int")
    risky, error = rng.choice(
        (
            (f"int({make.name('str')})" if make.names("str") else "int(None)", "ValueError"),
            (f"{make.name('ints')}[{make.draw('int', 0)}]" if make.names("ints") else "int(None)", "IndexError"),
            (f"{make.name('map')}[{make.separator()}]" if make.names("map") else "int(None)", "KeyError"),
        )
    )
    if risky == "int(None)":
        return _assign(draft)
    handler = f"    {out} = {make.number()}" if rng.random() < 0.6 else f"    return {make.number()}"
    draft.lines += ["try:", f"    {out} = {risky}", f"except {error}:", handler]
    draft.notes.append(f"Falls back on {error}.")
    draft.scope[out] = "int"
    return None


def _branch(draft: Draft) -> None:
    kind = draft.rng.choice(("int", "str"))
    make, name = draft.make, draft.fresh(kind)
    first, second = make.draw(kind, 1), make.draw(kind, 1)
    if draft.rng.random() < 0.5:
        draft.lines.append(f"{name} = {first} if {make.condition()} else {second}")
    else:
        draft.lines += [f"if {make.condition()}:", f"    {name} = {first}", "else:", f"    {name} = {second}"]
    draft.scope[name] = kind


def _pairwise(draft: Draft) -> None:
    rng, make = draft.rng, draft.make
    if not make.names("ints"):
        return _collect(draft)
    out, source = draft.fresh("ints"), make.name("ints")
    operator = rng.choice(("-", "+", "*"))
    draft.lines.append(f"{out} = [b {operator} a for a, b in zip({source}, {source}[1:])]")
    draft.scope[out] = "ints"
    return None


def _divide(draft: Draft) -> None:
    make, rng = draft.make, draft.rng
    if not make.names("int"):
        return _assign(draft)
    first, second = rng.sample([w for w in WORDS if w not in draft.scope and w not in _KEYWORDS], 2)
    draft.lines.append(f"{first}, {second} = divmod({make.name('int')}, {rng.choice((7, 10, 12, 16, 24, 60, 100))})")
    draft.scope[first] = draft.scope[second] = "int"
    return None


_MOVES: tuple[Callable[[Draft], None], ...] = (
    _assign,
    _assign,
    _collect,
    _collect,
    _accumulate,
    _accumulate,
    _indexed,
    _while,
    _tally,
    _attempt,
    _branch,
    _pairwise,
    _divide,
)


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
    draft.notes.insert(
        0,
        f"Return {value}."
        if len(value) < 40 and rng.random() < 0.4
        else f"{rng.choice(('Return', 'Get', 'Compute'))} the {' '.join(rng.sample(WORDS, 2))} of {list(draft.scope)[0]}.",
    )


def _docstring(draft: Draft, parameters: tuple[tuple[str, str], ...]) -> list[str]:
    notes = draft.notes
    rest = notes[1:]
    if draft.rng.random() < 0.15 or not rest:
        return [f'"""{notes[0]}"""']
    if draft.rng.random() < 0.5:
        return [f'"""{notes[0]}', "", *rest, '"""']
    return [f'"""{" ".join(notes)}"""'] if len(" ".join(notes)) < 90 else [f'"""{notes[0]}', *rest, '"""']


def sample_arguments(rng: random.Random, parameters: tuple[tuple[str, str], ...]) -> list[object]:
    """Draw arguments for a call."""
    return [_value(rng, kind) for _, kind in parameters]


def _value(rng: random.Random, kind: str) -> object:
    if kind == "int":
        return rng.choice((0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 15, 16, 20, 31, 60, 100, -1, -3))
    if kind == "str":
        pieces = [
            rng.choice((*WORDS[:80], *SUFFIXES, "A", "B7", "12", "Zed", " x"))
            for _ in range(rng.choice((0, 1, 1, 2, 3)))
        ]
        return rng.choice(SEPARATORS).join(pieces)
    if kind == "ints":
        return [
            rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 12, -2, -5, 30)) for _ in range(rng.choice((0, 1, 2, 3, 4, 5)))
        ]
    if kind == "strs":
        return [rng.choice((*WORDS[:60], *SUFFIXES, "", "A")) for _ in range(rng.choice((0, 1, 2, 3, 4)))]
    return {rng.choice((*WORDS[:30], *SUFFIXES)): rng.randint(0, 9) for _ in range(rng.choice((0, 1, 2, 3)))}
