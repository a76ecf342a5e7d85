"""Refinement moves tasks into the band by the statement alone; admission takes what lies in it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from frognano.config.taskpilot import TaskPilotSettings
from frognano.records import GradingTests, Origin, Task, Trajectory, Verdict
from frognano.taskpilot.admit import admit
from frognano.taskpilot.complete import Enforced
from frognano.taskpilot.draft import Draft, load_draft
from frognano.taskpilot.journal import FileJournal
from frognano.taskpilot.refine import calibrate_and_refine, easier, harder
from frognano.taskpilot.requirements import Requirement
from frognano.taskpilot.state import Example, Facts
from frognano.tasks.diff import make_patch
from frognano.tasks.folder import TaskContent, read_content, read_task, write_task
from frognano.tasks.patch import Entry
from frognano.tasks.snapshot import SnapshotStore

CLEAN, BROKEN = b"def f(x):\n    return x + 1\n", b"def f(x):\n    return x - 1\n"
TEST = b"from m import f\n\n\ndef test_f():\n    assert f(1) == 2\n"
EXAMPLES = tuple(Example(call=f"f({n})", actual=str(n - 1), expected=str(n + 1)) for n in (1, 2, 3))


def draft(level: str, shown: int = 1, contract: str = "Return the number after x, for any x.") -> Draft:
    asked = Requirement(test="tests/test_m.py::test_f", call="f(1)", outcome="2")
    facts = Facts(function="f", file="m.py", line=1, contract=contract, examples=EXAMPLES, suspect="return x - 1")
    return Draft(
        facts=facts,
        level=level,
        shown=shown,
        enforced=(Enforced(requirement=asked, follows="documentation"),),
        clean_line="return x + 1",
        hidden=("test_f",),
    )


def names(moves: object) -> list[str]:
    return [move.name for move in moves]  # type: ignore[attr-defined]


def test_too_hard_states_the_contract_first_and_the_line_last() -> None:
    assert names(easier(draft("symptom"))) == ["state-contract", "add-example", "name-line", "state-behaviour"]
    assert names(easier(draft("suspect", shown=2))) == ["state-behaviour"]
    assert names(easier(draft("symptom", contract="")))[0] == "state-location"


def test_too_easy_takes_away_the_line_then_the_contract_then_the_place() -> None:
    assert names(harder(draft("suspect", shown=2)))[0] == "drop-line"
    assert names(harder(draft("contract", shown=2)))[0] == "drop-contract"
    assert names(harder(draft("located")))[0] == "drop-location"
    assert names(harder(draft("symptom", shown=2))) == ["drop-example"]
    assert names(harder(draft("symptom"))) == []


def test_what_is_needed_is_never_taken_away() -> None:
    asked = Requirement(test="t.py::test_f", call="f(2)", outcome="3")
    needed = draft("symptom", shown=2).model_copy(
        update={"enforced": (Enforced(requirement=asked, gap="behaviour-undocumented"),)}
    )
    assert needed.completeness().complete
    assert names(harder(needed)) == []


def test_a_statement_that_shows_the_fix_or_a_hidden_test_is_never_made() -> None:
    leaking = draft("symptom").model_copy(update={"clean_line": "return x - 1"})
    assert "name-line" not in names(easier(leaking))
    naming = draft("located", contract="See test_f for more of this.")
    assert "state-contract" not in names(easier(naming))


class Policy:
    """Solves a task with a chance that its statement's words decide; fresh by seed."""

    def __init__(self, chances: dict[str, float]) -> None:
        self._chances = chances
        self.statements: list[str] = []

    async def __call__(self, task: Task, episodes: int, seed: int) -> Sequence[Trajectory]:
        self.statements.append(task.statement)
        draw = random.Random(seed)
        chance = next(p for word, p in self._chances.items() if word in task.statement)
        return [
            Trajectory(
                id=f"{task.id}-{seed}-{n}",
                task_id=task.id,
                exit_reason="agent",
                verdict=Verdict(reward=float(draw.random() < chance)),
            )
            for n in range(episodes)
        ]


CHANCES = {"Suspicious": 1.0, "Documented": 0.5, "Defined at": 0.0, "": 0.0}


def write_pool(folder: Path, levels: Sequence[str], split: str = "train") -> tuple[SnapshotStore, list[str]]:
    """Tasks that differ in level and snapshot."""
    store = SnapshotStore(folder / "store")
    ids = []
    for number, level in enumerate(levels):
        made = draft(level)
        base = store.add_files({"m.py": Entry(0o100644, CLEAN), "n.txt": Entry(0o100644, str(number).encode())})
        task = Task(
            id=f"r-m-f-{number}",
            statement=made.statement(),
            snapshot=store.derive(base, {"m.py": BROKEN}),
            tests=GradingTests(f2p=("tests/test_m.py::test_f",), files=("tests/test_m.py",)),
            origin=Origin(repository="r", base=base, level=level, licence="MIT"),
            split=split,  # type: ignore[arg-type]
        )
        gold = make_patch({"m.py": Entry(0o100644, BROKEN)}, {"m.py": Entry(0o100644, CLEAN)})
        content = TaskContent(gold, {"tests/test_m.py": Entry(0o100644, TEST)})
        made.save(write_task(folder / "pool", task, content, store))
        ids.append(task.id)
    return store, ids


SETTINGS = TaskPilotSettings.parse({"calibration": {"episodes": 16}, "refinement": {"rounds": 2}})


def test_tasks_out_of_the_band_enter_it_from_both_sides(tmp_path: Path) -> None:
    store, ids = write_pool(tmp_path, ["suspect", "symptom", "contract"])
    journal = FileJournal(tmp_path / "journal")
    report = asyncio.run(
        calibrate_and_refine(tmp_path / "pool", ids, Policy(CHANCES), SETTINGS, store, journal=journal, policy="p0")
    )
    assert report.count("too easy") == (1, 1)
    assert report.count("too hard") == (1, 1)
    assert [way.changes for way in report.tasks] == [("drop-line",), ("state-contract",), ()]
    root, child = (read_task(tmp_path / "pool" / name) for name in report.tasks[0].versions)
    assert child.lineage is not None
    assert (child.lineage.parent, child.lineage.change, child.lineage.p_before) == (root.id, "drop-line", 1.0)
    assert child.lineage.p_after == report.tasks[0].last.p_hat
    assert (child.snapshot, child.tests) == (root.snapshot, root.tests)
    pool = tmp_path / "pool"
    assert read_content(pool / child.id) == read_content(pool / root.id)
    assert load_draft(pool / child.id).level == "contract"


def test_refinement_goes_on_where_it_stopped(tmp_path: Path) -> None:
    store, ids = write_pool(tmp_path, ["suspect", "symptom"])

    def run(policy: Policy) -> str:
        return asyncio.run(
            calibrate_and_refine(
                tmp_path / "pool", ids, policy, SETTINGS, store, journal=FileJournal(tmp_path / "j"), policy="p0"
            )
        ).model_dump_json()

    first, again = Policy(CHANCES), Policy(CHANCES)
    assert run(first) == run(again)
    assert again.statements == []


def test_a_task_that_cannot_be_changed_is_stuck(tmp_path: Path) -> None:
    store, ids = write_pool(tmp_path, ["symptom"])
    journal, solve = FileJournal(tmp_path / "j"), Policy({"": 1.0})
    report = asyncio.run(
        calibrate_and_refine(tmp_path / "pool", ids, solve, SETTINGS, store, journal=journal, policy="p")
    )
    assert report.tasks[0].stuck
    assert "1 stuck" in report.text()


@pytest.mark.parametrize("wanted", [1, 5])
def test_admission_takes_the_nearest_to_the_target_and_writes_a_manifest(tmp_path: Path, wanted: int) -> None:
    store, ids = write_pool(tmp_path, ["suspect", "contract", "contract", "symptom"])
    settings = SETTINGS.model_copy(
        update={"admit": wanted, "refinement": SETTINGS.refinement.model_copy(update={"rounds": 0})}
    )
    report = asyncio.run(
        calibrate_and_refine(
            tmp_path / "pool", ids, Policy(CHANCES), settings, store, journal=FileJournal(tmp_path / "j"), policy="p"
        )
    )
    manifest = admit(tmp_path / "pool", report, settings)
    assert len(manifest.admitted) == min(wanted, 2)
    assert all(0 < item.p_hat < 1 for item in manifest.admitted)
    expected = {"too-easy": 1, "too-hard": 1, **({"not-needed": 1} if wanted == 1 else {})}
    assert manifest.left_out == expected
    saved = json.loads(manifest.save(tmp_path / "pool").read_text())
    assert saved["seeds"] == {"synthesis": 0, "calibration": 0}
    assert saved["splits"] == {"train": ids}
    assert sum(saved["p_hat"].values()) == 4


def test_held_out_tasks_are_never_admitted(tmp_path: Path) -> None:
    store, ids = write_pool(tmp_path, ["contract"], split="held-out")
    report = asyncio.run(
        calibrate_and_refine(
            tmp_path / "pool", ids, Policy(CHANCES), SETTINGS, store, journal=FileJournal(tmp_path / "j"), policy="p"
        )
    )
    manifest = admit(tmp_path / "pool", report, SETTINGS)
    assert (manifest.admitted, manifest.left_out) == ((), {"not-train": 1})
