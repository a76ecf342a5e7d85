"""What the commands take from the environment of the process: keys, folders, git's and the libraries' settings."""

from __future__ import annotations

import os
from pathlib import Path

from frognano.config.base import ConfigError


def secret(name: str) -> str:
    """The value of the variable ``name``, for example an API key.

    Raises ConfigError, without the value, when it is unset, empty, or nothing that an HTTP header can hold.
    """
    value = os.environ.get(name, "").strip()
    if not value:
        raise ConfigError(f"the environment variable {name} is not set; export it, or leave out --api-key-env")
    if not all("!" <= char <= "~" for char in value):
        raise ConfigError(f"the environment variable {name} holds blanks, line ends or letters that no key has")
    return value


def state_folder() -> Path:
    """Where what commands leave behind is kept for this user."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state") / "frognano"


def quiet_libraries() -> None:
    """Have the libraries below keep their hints to themselves, in this process and those it starts."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def git_environment() -> dict[str, str]:
    """The environment without what would point git elsewhere, and with git's optional writes off."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
