"""From the solver's sandbox to the graded tree: whatever git was made to do, the change arrives byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frognano.sandbox.contract import SandboxSpec
from frognano.tadpole import pond
from frognano.tasks.diff import make_patch
from frognano.tasks.patch import FILE, Entry, apply_patch
from frognano.tasks.testrun import TestRun

FIX = "sed -i 's/min(value, low)/min(value, high)/' gauge/core.py\n"
ENDINGS = {
    "uncommitted": FIX,
    "staged": FIX + "git add gauge/core.py\n",
    "committed": FIX + "git commit -qam wip\n",
    "committed on a new branch with history rewritten": FIX
    + "git checkout -qb other && git commit -qam wip && git commit -q --amend -m again && git branch -D main -q\n",
    "staged, then edited again": FIX + "git add -A && echo >> README.md\n",
    "with .git deleted": FIX + "rm -rf .git\n",
    "with .git made anew": FIX + "rm -rf .git && git init -q && git add -A && git commit -qm new\n",
    "with hostile git settings": FIX
    + "git config core.fsmonitor false; git config filter.x.clean 'echo bad'; git config diff.noprefix true\n"
    + "git config core.autocrlf true; printf '* filter=x text=auto\\n' > .gitattributes\n",
    "with the fix hidden by .gitignore": FIX + "printf 'gauge/\\n*\\n' > .gitignore\n",
}


async def solve(case: Any, backend: Any, script: str) -> bytes:
    sandbox = await backend.open(SandboxSpec(snapshot=case.store.path(case.task.snapshot)))
    try:
        answer = await sandbox.request("bash", {"command": script, "timeout_s": 30.0}, 60)
        assert answer["code"] == 0, answer
        patch: bytes = await sandbox.changes()
        return patch
    finally:
        await sandbox.close()


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_fix_is_graded_when_it_was_left(case: Any, backend: Any, ending: str) -> None:
    patch = case.wait(solve(case, backend, ENDINGS[ending]))
    assert case.wait(case.forked.grade(case.task, case.folder, patch)).reward == 1.0


def test_every_kind_of_change_arrives_exactly(case: Any, backend: Any) -> None:
    script = """set -e
printf 'A = 1\\r\\nB = 3\\r\\n' > gauge/crlf.py
head -c 5000 /dev/zero | tr '\\0' '\\377' > blob.bin
mkdir -p 'new dir' && printf 'no newline' > $'new dir/t\\tab \\303\\251".txt'
git mv README.md 'READ ME.md' && git commit -qam rename
printf '#!/bin/sh\\n' > run.sh && chmod +x run.sh && git add run.sh
ln -s gauge/core.py link
rm tests/test_parts.py
: > empty
"""
    before = case.store.files(case.task.snapshot)
    patch = case.wait(solve(case, backend, script))
    changes = apply_patch(before.get, patch)
    after = {name: entry for name, entry in {**before, **changes}.items() if entry is not None}
    assert after["gauge/crlf.py"] == Entry(FILE, b"A = 1\r\nB = 3\r\n")
    assert after["blob.bin"] == Entry(FILE, b"\xff" * 5000)
    assert after['new dir/t\tab \u00e9".txt'] == Entry(FILE, b"no newline")
    assert after["READ ME.md"] == before["README.md"]
    assert after["run.sh"] == Entry(0o100755, b"#!/bin/sh\n")
    assert after["link"] == Entry(0o120000, b"gauge/core.py")
    assert after["empty"] == Entry(FILE, b"")
    assert not {"README.md", "tests/test_parts.py"} & after.keys()
    kept = before.keys() - {"README.md", "tests/test_parts.py", "gauge/crlf.py"}
    assert all(after[name] == before[name] for name in kept)


def test_a_bug_in_pond_is_a_task_that_only_its_gold_solves(case: Any) -> None:
    store, module, tests = case.store, "pond/ranges.py", "tests/test_ranges.py"
    base = store.add(Path(str(pond.__path__[0])))
    source = store.read(base, module)
    broken = source.replace(b" < ", b" >= ", 1)
    run = TestRun(base, case.task.runtime, (tests,))
    clean = case.wait(case.forked.run_tests(run))
    bugged = case.wait(case.forked.run_tests(TestRun(base, case.task.runtime, (tests,), changes={module: broken})))
    f2p = tuple(sorted(clean.having("passed") - bugged.having("passed")))
    assert f2p
    assert bugged.sound
    snapshot = store.derive(base, {module: broken})
    grading = case.task.tests.model_copy(
        update={"f2p": f2p, "p2p": tuple(sorted(bugged.having("passed"))), "files": (tests,)}
    )
    task = case.task.model_copy(update={"id": "pond-ranges", "snapshot": snapshot, "tests": grading})
    gold = make_patch({module: Entry(FILE, broken)}, {module: Entry(FILE, source)})
    folder = case.write(task, gold, {tests: store.entry(base, tests)})
    for seed in range(3):
        verdict = case.wait(case.forked.grade(task, folder, gold, order_seed=seed, hash_seed=seed))
        assert verdict.reward == 1.0, verdict.detail
    assert case.wait(case.forked.grade(task, folder, b"")).reward == 0.0
