"""What every record of ours is: frozen, typed, and strict about names.

A record is plain data that crosses a boundary between packages or is written to disk. It refuses unknown
fields, so that a typo fails where it is made. It protects nothing else: a record does not know whether the
file it names exists.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of all records: frozen, unknown fields refused, NaN and infinity refused in JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")
