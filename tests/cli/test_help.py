"""Help comes at once, and mistakes are answered with what would be right."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from frognano.cli.main import COMMANDS

HEAVY = ("torch", "transformers", "docker", "ray", "kubernetes", "pydantic", "rich", "httpx", "frognano.records")
_PROBE = """
import json, resource, sys
from frognano.cli.main import main
try:
    main()
except SystemExit as end:
    code = end.code
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([code, used.ru_utime + used.ru_stime, sorted(sys.modules)]), file=sys.stderr)
"""


def probe(*arguments: str) -> tuple[int, float, set[str], str]:
    """Exit code, CPU seconds, imported modules and output of one call in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", _PROBE, *arguments], capture_output=True, text=True, check=True)
    code, seconds, modules = json.loads(done.stderr.strip().splitlines()[-1])
    return code or 0, seconds, set(modules), done.stdout


def test_help_imports_nothing_heavy_and_lists_every_command() -> None:
    code, _, modules, out = probe("--help")
    assert code == 0
    assert not modules & set(HEAVY)
    assert all(f"\n  {name} " in out for name in COMMANDS)


def test_help_takes_less_than_three_tenths_of_a_second_of_processor_time() -> None:
    assert min(probe("--help")[1] for _ in range(5)) < 0.3


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_does_not_import_an_engine(command: str) -> None:
    code, _, modules, out = probe(command, "--help")
    assert code == 0
    assert out.startswith(f"Usage: frognano {command}")
    assert not modules & {"torch", "transformers", "docker", "ray", "kubernetes"}


def test_an_unknown_command_is_told_the_nearest() -> None:
    done = subprocess.run([sys.executable, "-c", _PROBE, "slove"], capture_output=True, text=True, check=True)
    assert "there is no command 'slove': did you mean 'solve'?" in done.stderr
    assert "Traceback" not in done.stderr
