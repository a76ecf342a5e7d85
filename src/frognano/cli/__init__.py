"""The ``frognano`` command."""
