"""The moves that a function is built of: each appends a few lines and may add a variable to the scope."""

from __future__ import annotations

from collections.abc import Callable

from frognano.tadpole.corpus.draft import KEYWORDS, WORDS, Draft


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
        body += ["else:", f"    {total} = {make.number()}"] if body[0].startswith("if ") else []
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
        order = rng.choice(("==", "!=", "<", "<=", ">", ">="))
        test = f"{source}[i] {order} {source}[{rng.choice(('0', '-1', 'i - 1', 'i + 1'))}]"
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
    first, second = rng.sample([w for w in WORDS if w not in draft.scope and w not in KEYWORDS], 2)
    draft.lines.append(f"{first}, {second} = divmod({make.name('int')}, {rng.choice((7, 10, 12, 16, 24, 60, 100))})")
    draft.scope[first] = draft.scope[second] = "int"
    return None


MOVES: tuple[Callable[[Draft], None], ...] = (
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
