"""The embedded micro-policy, how it was made, and pond, the bundled repository."""
