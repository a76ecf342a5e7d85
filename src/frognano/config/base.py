"""Settings: typed, frozen, strict. A field's docstring is its help text; an unknown key names the nearest one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError


class ConfigError(ValueError):
    """A setting that cannot be used; the message names the key and the fix."""


class Settings(BaseModel):
    """Base of all settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, strict=False)

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str = "") -> Self:
        """Validate ``values``; raises ConfigError with one line per fault, each naming key, value and remedy."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            lines = [_explain(cls, fault, where) for fault in error.errors()]
            raise ConfigError("\n".join(lines)) from None


def _explain(model: type[BaseModel], fault: Any, where: str) -> str:
    path = [str(part) for part in fault["loc"]]
    key = ".".join(([where] if where else []) + path)
    if fault["type"] == "extra_forbidden":
        known = _fields_at(model, path[:-1])
        near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(known))}"
        return f"unknown setting {key!r}: {hint}"
    if fault["type"] == "value_error":
        # A rule between several settings says itself which they are.
        rule = fault["msg"].removeprefix("Value error, ")
        return f"setting {key!r}: {rule}" if key else rule
    return f"setting {key!r}: {fault['msg']} (got {fault['input']!r})"


def _fields_at(model: type[BaseModel], path: list[str]) -> list[str]:
    current: Any = model
    for part in path:
        field = current.model_fields.get(part) if isinstance(current, type) and issubclass(current, BaseModel) else None
        current = field.annotation if field is not None else None
    if isinstance(current, type) and issubclass(current, BaseModel):
        return list(current.model_fields)
    return []
