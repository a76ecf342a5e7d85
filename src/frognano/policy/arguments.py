"""Arguments of a call: typed by the tool's schema, read from JSON, written back as a call.

A field whose schema says string is never decoded, whatever its text looks like. A value that does not fit its
declared type stays the string it was, so that the tool can say what it wanted. What this does NOT do: check that
required arguments are there; that is the tool's to say.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_INTEGER = re.compile(r"[+-]?\d{1,400}")
_OUTSIDE = re.compile(r'"(?:[^"\\]|\\.)*"|\\[nrt]', re.DOTALL)
_UNWRAPS = 3
_QUOTED = 60


@dataclass(frozen=True)
class ToolShape:
    """What the schema of one tool says: its parameters and which of them must be given."""

    name: str
    properties: Mapping[str, Mapping[str, Any]]
    required: frozenset[str]


def tool_shapes(tools: Sequence[Mapping[str, Any]]) -> dict[str, ToolShape]:
    """Name → shape, from OpenAI tool schemas."""
    shapes: dict[str, ToolShape] = {}
    for tool in tools:
        function = tool.get("function", tool)
        parameters = function.get("parameters") or {}
        name = str(function["name"])
        shapes[name] = ToolShape(name, parameters.get("properties") or {}, frozenset(parameters.get("required") or ()))
    return shapes


def typed(value: str, schema: Mapping[str, Any] | None) -> Any:
    """``value`` converted to the type its schema declares; unchanged where it is a string or does not fit."""
    types = _types(schema or {})
    if not types or "string" in types:
        return value
    text = value.strip()
    if "null" in types and text in {"null", "None"}:
        return None
    if "boolean" in types and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if types & {"integer", "number"} and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in types:
        return _finite(text, value)
    if types & {"object", "array"}:
        try:
            return json.loads(text, strict=False)
        except ValueError:
            return value
    return value


def _finite(text: str, otherwise: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return otherwise
    return number if math.isfinite(number) else otherwise


def _types(schema: Mapping[str, Any]) -> frozenset[str]:
    declared = schema.get("type")
    if isinstance(declared, str):
        return frozenset({declared})
    if isinstance(declared, list):
        return frozenset(str(item) for item in declared)
    branches = schema.get("anyOf") or schema.get("oneOf") or ()
    return frozenset(kind for branch in branches for kind in _types(branch))


def parse_arguments(raw: object, shape: ToolShape | None = None) -> tuple[dict[str, Any], str]:
    """Arguments as an OpenAI server sends them → (arguments, error); one of the two is empty.

    Takes JSON text, JSON encoded more than once, an object, nothing at all. Backslash-n between tokens is taken as
    the white space it was meant to be; text inside strings is never touched.
    """
    value: object = {} if raw is None or raw == "" else raw
    try:
        for _ in range(_UNWRAPS):
            if not isinstance(value, str):
                break
            value = _load(value)
    except ValueError as error:
        return {}, str(error)
    if not isinstance(value, dict):
        return {}, f"the arguments must be one JSON object, got {type(value).__name__}: {_quote(json.dumps(value))}"
    properties = shape.properties if shape is not None else {}
    return {
        str(key): typed(item, properties.get(key)) if isinstance(item, str) else item for key, item in value.items()
    }, ""


def _load(text: str) -> object:
    try:
        return _decode(text)
    except json.JSONDecodeError as first:
        repaired = _OUTSIDE.sub(lambda match: "  " if match[0][0] == "\\" else match[0], text)
        if repaired != text:
            try:
                return _decode(repaired)
            except json.JSONDecodeError:
                pass
        place = _quote(text[max(0, first.pos - 20) : first.pos + 20])
        raise ValueError(
            f"the arguments are not valid JSON: {first.msg} at character {first.pos}, near {place}"
        ) from None
    except RecursionError:
        raise ValueError("the arguments are not valid JSON: nested too deeply") from None


def _decode(text: str) -> object:
    return json.loads(text, strict=False, object_pairs_hook=_once, parse_constant=_no_constant)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"the arguments give {twice!r} more than once")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"the arguments are not valid JSON: {name} is no JSON number")


def _quote(text: str) -> str:
    return repr(text if len(text) <= _QUOTED else text[:_QUOTED] + "…")


def value_text(value: object) -> str:
    """One argument as the text that stands in a call; the inverse of ``typed``."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def render_call(name: str, arguments: Mapping[str, Any]) -> str:
    """The call as the model writes it; the inverse of the parser."""
    parameters = "".join(f"<parameter={key}>\n{value_text(value)}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"
