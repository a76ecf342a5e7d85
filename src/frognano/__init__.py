"""FrogNano: train small coding agents on tasks at the edge of what they can solve."""

__version__ = "0.1.0"
