"""The README keeps what it shows: every command runs, the tree is the tree, the first result stands early."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from frognano.policy.scripted import say
from perf.coin import make_repository
from tests.cli.conftest import Done, invoke, serving
from tests.test_house import ORDER, ROOT, SOURCE

README = (ROOT / "README.md").read_text()
TINY = {
    "tasks make": "--set taskpilot.synthesis.baseline_runs=2",
    "eval": "--set evaluation.episodes=1 --set evaluation.max_turns=2",
    "calibrate": "--set taskpilot.calibration.episodes=2 --set leaf.max_turns=2",
    "train": "--set train.updates=1 --set train.groups=1 --set train.group_size=2 --set leaf.max_turns=2",
    "coevolve": "--dry-run",
    "tadpole pretrain": "--tiny",
}
"""Command → the budget under which it is run here; what a loop does is tested in tests/coevolve."""
FINE = {"solve": (0, 1)}
"""Exit codes of success, where they are not only 0: Tadpole may find nothing to mend."""


def commands() -> list[str]:
    """Every command line of the README's console blocks, without its comment."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.S)
    lines = [line.split("  #")[0].split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


OURS = [line for line in commands() if line.startswith("frognano ")]
MAKE = [line for line in commands() if line.startswith("make ")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader has it: a small package, an issue."""
    folder = make_repository(tmp_path_factory.mktemp("reader") / "pad")
    (folder / "issue.md").write_text("money.change(7, 7) gives 7 and should give 0\n")
    return folder


def adapted(line: str, base_url: str) -> list[str]:
    """The command as it is run here: small counts, the scripted model's address, a tiny budget."""
    words = shlex.split(line)[1:]
    words = [base_url if word.startswith("http://localhost") else word for word in words]
    for flag, count in (("--train", "2"), ("--held-out", "2")):
        if flag in words:
            words[words.index(flag) + 1] = count
    name = next((name for name in TINY if " ".join(words).startswith(name)), "")
    return words + shlex.split(TINY.get(name, "")) * ("--dry-run" not in words)


def test_there_is_nothing_else_in_the_console_blocks() -> None:
    assert sorted(OURS + MAKE) == sorted(commands())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_command_of_the_readme_runs(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    edit = ("Edit", {"file_path": "pad/money.py", "old_string": "paid - price", "new_string": "paid + price"})
    with serving((say("", edit), say("Done."))) as server:
        for line in OURS:
            words = adapted(line, server.base_url)
            if words[0] == "report":
                shutil.copytree(place / "runs" / "mine-eval", words[1])
            done: Done = invoke(*words, env=environment)
            assert done.code in FINE.get(words[0], (0,)), f"{line}\n{done.out}\n{done.err}"


@pytest.mark.parametrize("line", MAKE)
def test_every_make_target_is_there(line: str) -> None:
    done = subprocess.run([*shlex.split(line), "-n"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ".venv" in done.stdout


def test_the_tree_of_the_readme_is_the_tree() -> None:
    shown = re.findall(r"^  (\w+)/ ", README, re.M)
    there = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert set(shown) == there
    assert shown == [name for name in ORDER if name in there]


def test_the_first_result_stands_by_line_40() -> None:
    lines = README.splitlines()
    assert next(number for number, line in enumerate(lines, 1) if "FIRST RESULT" in line) < 40


def test_links_of_the_documents_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_paths_of_the_paper_map_exist() -> None:
    for name in re.findall(
        r"`((?:src|perf|recipes|tests|[a-z_]+)/[\w/.\-]*)`", (ROOT / "docs" / "paper.md").read_text()
    ):
        assert (ROOT / name).exists() or (SOURCE / name).exists(), name
