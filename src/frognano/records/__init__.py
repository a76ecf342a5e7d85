"""The records that cross boundaries: frozen, typed, versioned; they import nothing of ours."""

from frognano.records.base import Record
from frognano.records.episode import (
    NO_VERDICT,
    TRUNCATED,
    ExitReason,
    Observation,
    Reply,
    Step,
    TokenRow,
    ToolCall,
    Trajectory,
    Usage,
    Verdict,
    VersionSpan,
)
from frognano.records.task import Calibration, GradingTests, Kind, Lineage, Origin, Runtime, Split, Task

__all__ = [
    "NO_VERDICT",
    "TRUNCATED",
    "Calibration",
    "ExitReason",
    "GradingTests",
    "Kind",
    "Lineage",
    "Observation",
    "Origin",
    "Record",
    "Reply",
    "Runtime",
    "Split",
    "Step",
    "Task",
    "TokenRow",
    "ToolCall",
    "Trajectory",
    "Usage",
    "Verdict",
    "VersionSpan",
]
