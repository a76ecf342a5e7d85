"""The contract that every policy keeps; it is written beside the episode loop, which calls it."""

from frognano.leaf.policy import ContextOverflow, Policy, PolicyError, Sampling, Session

__all__ = ["ContextOverflow", "Policy", "PolicyError", "Sampling", "Session"]
