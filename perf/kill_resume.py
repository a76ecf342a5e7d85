"""Kills a short loop with -9 at random moments and resumes it; the end must be that of an undisturbed run.

At lag bound 0 (one thread, lock-step) ladder, journal and weights are compared bit by bit; above 0 the invariants are:
as many updates as planned, no group trained on twice, no task skipped, no lag over the bound. Then: a changed recipe is
refused with its keys, a full disk and a second process end in clear errors and lose nothing.

    python perf/kill_resume.py                       # twenty kills, lag 0, then twenty at lag 1, then the refusals
    python perf/kill_resume.py --kills 3 --lag 0     # a short form

The policy is a random tiny model that tosses a coin (``coin.py``): the journal cannot tell it from a good one. Runs are
forked from this process, which has loaded the libraries once and computed nothing.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn

import torch
from coin import coin_policy, coin_recipe, make_checkpoint, make_repository

from frognano.coevolve.events import Event
from frognano.coevolve.loop import run
from frognano.config.recipe import dump_recipe, load_recipe
from frognano.rollout.journal import JournalError
from frognano.train.admission import task_at
from frognano.train.checkpoint import CheckpointError

REFUSED = 3
"""Exit code of a run that ended with an error of the journal or a checkpoint."""
SMALL_DISKS = (400, 900, 1400)
"""Kilobytes."""
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REMOUNT, MS_REC, MS_PRIVATE = 0x20, 0x4000, 0x40000


def main() -> int:
    """Run what was asked for; 0 when everything held."""
    options = _options()
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory(prefix="frognano-kill-") as made:
        work = Path(options.work or made)
        work.mkdir(parents=True, exist_ok=True)
        faults = []
        for lag in options.lag:
            faults += killed_runs(work, lag, options.kills, options.seed)
        if not options.no_refusals:
            faults += refusals(work)
    for fault in faults:
        print(f"FAILED: {fault}")
    print("everything held" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=20, help="kills of each disturbed run")
    parser.add_argument("--lag", type=int, action="append", choices=(0, 1, 3), help="lag bounds; default 0 and 1")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments")
    parser.add_argument("--work", help="folder to work in; default one that is removed")
    parser.add_argument("--no-refusals", action="store_true", help="no changed recipe, full disk, second process")
    options = parser.parse_args()
    options.lag = options.lag or [0, 1]
    return options


# The run that is killed


class Run:
    """One run, or the rest of one, in a forked process; ``ready`` returns when it does its first step."""

    def __init__(self, recipe: Path, folder: Path) -> None:
        self.log = recipe.with_suffix(f".{time.monotonic_ns()}.log")
        self._reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _child(recipe, folder, writing, self.log)
        os.close(writing)
        self._code: int | None = None

    def ready(self) -> None:
        """Wait for the first event, or the end."""
        os.read(self._reading, 1)

    def wait(self, seconds: float | None = None) -> int | None:
        """Exit code; None when it still runs after ``seconds``."""
        until = None if seconds is None else time.monotonic() + seconds
        while self._code is None:
            found, status = os.waitpid(self.pid, 0 if until is None else os.WNOHANG)
            if found:
                self._code = os.waitstatus_to_exitcode(status)
                os.close(self._reading)
            elif until is not None and time.monotonic() >= until:
                return None
            else:
                time.sleep(0.005)
        return self._code

    def kill(self) -> bool:
        """Kill -9; whether it still ran."""
        if self._code is not None:
            return False
        os.kill(self.pid, signal.SIGKILL)
        return self.wait() == -signal.SIGKILL

    @property
    def errors(self) -> str:
        """The end of what it said."""
        return self.log.read_text(errors="replace")[-1500:] if self.log.exists() else ""


def _child(recipe: Path, folder: Path, ready: int, log: Path) -> NoReturn:
    """Run and leave; never returns into the script."""
    code = 1
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        code = _work(recipe, folder, ready)
    except BaseException:  # a child must not run the parent's handlers
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _work(recipe: Path, folder: Path, ready: int) -> int:
    told = False

    def watch(_event: Event) -> None:
        nonlocal told
        if not told:
            os.write(ready, b"r")
            told = True

    pool = recipe.parent / "pool"
    try:
        run(load_recipe(recipe), folder, watch=watch, pool=pool, policy_of=coin_policy(pool, folder))
    except (JournalError, CheckpointError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return REFUSED
    return 0


def _prepare(work: Path, lag: int, name: str = "", **train: Any) -> Path:
    """The recipe file of a run; source, checkpoint and pool are shared by all."""
    if not (work / "pad").exists():
        make_repository(work / "pad")
        make_checkpoint(work / "checkpoint")
    recipe = coin_recipe(
        work / "pad", work / "checkpoint", train={"max_lag": lag, **train}, model={"engine": {"wave": lag == 0}}
    )
    path = work / f"lag-{lag}{name}.yaml"
    path.write_text(dump_recipe(recipe))
    return path


def _finish(recipe: Path, folder: Path) -> Run:
    done = Run(recipe, folder)
    done.wait()
    return done


def killed_runs(work: Path, lag: int, kills: int, seed: int) -> list[str]:
    """One undisturbed and one disturbed run; what differs that must not."""
    recipe = _prepare(work, lag)
    calm, disturbed = work / f"calm-{lag}", work / f"killed-{lag}"
    for folder in (calm, disturbed):
        shutil.rmtree(folder, ignore_errors=True)
    if not (work / "pool" / "made.json").exists():
        _finish(_prepare(work, 0, "-pool", updates=1), work / "pool-maker")
    began = time.monotonic()
    done = _finish(recipe, calm)
    seconds = time.monotonic() - began
    if done.wait():
        return [f"lag {lag}: the undisturbed run failed: {done.errors}"]
    print(f"lag {lag}: undisturbed {seconds:.1f} s", flush=True)
    count = _kill_again_and_again(recipe, disturbed, kills, seconds, random.Random(f"{seed}:{lag}"))
    done = _finish(recipe, disturbed)
    if done.wait():
        return [f"lag {lag}: the killed run did not end: {done.errors}"]
    print(f"lag {lag}: killed {count} times", flush=True)
    faults = [f"lag {lag}: {fault}" for fault in broken_invariants(disturbed, lag)]
    if count < kills:
        faults.append(f"lag {lag}: only {count} of {kills} kills met a living run")
    if lag == 0:
        faults += [f"lag 0: {fault}" for fault in differences(calm, disturbed)]
    return faults


def _kill_again_and_again(recipe: Path, folder: Path, kills: int, seconds: float, moments: random.Random) -> int:
    """Start, wait a random while, kill -9; the number of kills that met a living run."""
    met = 0
    for number in range(kills):
        run = Run(recipe, folder)
        # Every fourth kill comes while the run is still opening; the others anywhere in what is left of it.
        if number % 4 != 3:
            run.ready()
        run.wait(moments.uniform(0, seconds / max(kills, 1)))
        met += run.kill()
    return met


# What must hold


def broken_invariants(folder: Path, lag: int) -> list[str]:
    """What the journal of a finished run says that it must not."""
    db = sqlite3.connect(f"file:{folder / 'journal.sqlite'}?mode=ro", uri=True)
    recipe = json.loads(db.execute("SELECT value FROM run WHERE key = 'recipe'").fetchone()[0])
    train, faults = recipe["train"], []
    facts = {key: json.loads(value) for key, value in db.execute("SELECT key, value FROM facts WHERE kind = 'phase'")}
    for (climb,) in db.execute("SELECT DISTINCT climb FROM updates").fetchall():
        tasks = facts[f"iteration {climb.removeprefix('iteration-')}: calibration"]
        numbers = [row[0] for row in db.execute("SELECT number FROM updates WHERE climb = ? ORDER BY number", (climb,))]
        if numbers != list(range(1, train["updates"] + 1)):
            faults.append(f"{climb}: updates {numbers}")
        groups = db.execute(
            "SELECT seq, id, state, number, task_id FROM groups WHERE climb = ? ORDER BY seq", (climb,)
        ).fetchall()
        planned = [task_at(tasks, group[0], train["seed"]) for group in groups]
        if planned != [group[4] for group in groups]:
            faults.append(f"{climb}: a task was skipped or came twice")
        if [group[0] for group in groups] != list(range(len(groups))):
            faults.append(f"{climb}: groups are missing from the sequence")
        faults += [f"{climb}: group {group[1]} was left {group[2]}" for group in groups if group[2] == "started"]
        trained = Counter(group[3] for group in groups if group[2] == "consumed")
        over = {number: count for number, count in trained.items() if count > train["groups"]}
        if over:
            faults.append(f"{climb}: more groups than an update takes: {over}")
        for _, name, state, _, _ in groups:
            count = db.execute("SELECT COUNT(*) FROM episodes WHERE scope = ?", (name,)).fetchone()[0]
            if state == "consumed" and count != train["group_size"]:
                faults.append(f"{climb}: {name} was trained on with {count} episodes")
        for number, metrics in db.execute("SELECT number, metrics FROM updates WHERE climb = ?", (climb,)):
            found = json.loads(metrics)
            if found["lag_max"] > lag:
                faults.append(f"{climb}: update {number} has lag {found['lag_max']}")
            if found["groups"] != trained.get(number, 0):
                faults.append(
                    f"{climb}: update {number} names {found['groups']} groups, {trained.get(number, 0)} are its"
                )
    db.close()
    return faults


_EXACT = {
    "groups": "SELECT climb, seq, id, task_id, version, state, reason, number FROM groups ORDER BY climb, seq",
    "updates": "SELECT climb, number, version, checkpoint FROM updates ORDER BY climb, number",
    "validations": "SELECT climb, number, version, score FROM validations ORDER BY climb, number",
    "episodes": "SELECT scope, id, task_id, reward, reason, exit_reason, sampled, context_tokens FROM episodes"
    " ORDER BY scope, id",
}


def differences(calm: Path, disturbed: Path) -> list[str]:
    """Where two runs differ that must be equal: journal, ladder, every file of every checkpoint."""
    faults = []
    rows = [_rows(folder) for folder in (calm, disturbed)]
    for table in _EXACT:
        if rows[0][table] != rows[1][table]:
            pair = next((a, b) for a, b in zip_longest(rows[0][table], rows[1][table]) if a != b)
            faults.append(f"{table} differ: {pair}")
    hashes = [_hashes(folder / "checkpoints") for folder in (calm, disturbed)]
    if hashes[0] != hashes[1] or not hashes[0]:
        names = sorted(key for key in hashes[0].keys() | hashes[1].keys() if hashes[0].get(key) != hashes[1].get(key))
        faults.append(f"checkpoints differ: {names or 'there are none'}")
    ladders = [_ladder(folder) for folder in (calm, disturbed)]
    if ladders[0] != ladders[1]:
        faults.append("ladders differ")
    return faults


def _rows(folder: Path) -> dict[str, list[Any]]:
    db = sqlite3.connect(f"file:{folder / 'journal.sqlite'}?mode=ro", uri=True)
    found = {table: db.execute(query).fetchall() for table, query in _EXACT.items()}
    db.close()
    return found


def _hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _ladder(folder: Path) -> list[Any]:
    rungs: list[Any] = json.loads((folder / "ladder.json").read_text())
    return [{key: value for key, value in rung.items() if key != "checkpoint"} for rung in rungs]


# Refusals


def refusals(work: Path) -> list[str]:
    """A changed recipe, two processes, a full disk."""
    return [*changed_recipe(work), *two_processes(work), *full_disk(work)]


def changed_recipe(work: Path) -> list[str]:
    """A run goes on only with its own recipe; the keys that differ are named."""
    folder = work / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    first = _finish(_prepare(work, 0, "-own", updates=1), folder)
    other = _finish(_prepare(work, 0, "-other", updates=2, groups=1), folder)
    again = _finish(_prepare(work, 0, "-own", updates=1), folder)
    named = all(key in other.errors for key in ("train.updates", "train.groups"))
    faults = [] if other.wait() == REFUSED and named else [f"a changed recipe was not refused: {other.errors}"]
    if first.wait() or again.wait():
        faults.append(f"the run with its own recipe failed: {first.errors}{again.errors}")
    return faults


def two_processes(work: Path) -> list[str]:
    """The second one is refused and the first one goes on."""
    folder, recipe = work / "twice", _prepare(work, 1)
    shutil.rmtree(folder, ignore_errors=True)
    first = Run(recipe, folder)
    first.ready()
    second = _finish(recipe, folder)
    faults = []
    if second.wait() != REFUSED or f"in use by process {first.pid}" not in second.errors:
        faults.append(f"a second process was not refused: {second.errors}")
    if first.wait():
        faults.append(f"the first process did not go on: {first.errors}")
    return faults + [f"two processes: {fault}" for fault in broken_invariants(folder, 1)]


def full_disk(work: Path) -> list[str]:
    """On a disk of a few hundred kilobytes the run ends with DiskFull; with room it goes on to the same end."""
    calm, small, saved = work / "calm-0", work / "small", work / "small.saved"
    recipe = _prepare(work, 0)
    shutil.rmtree(saved, ignore_errors=True)
    small.mkdir(exist_ok=True)
    if not calm.exists():
        _finish(recipe, calm)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "w") as answer:
            answer.write("\n".join(_on_a_small_disk(recipe, small, saved)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        faults = answer.read().splitlines()
    os.waitpid(child, 0)
    if faults and faults[0].startswith("left out"):
        print(f"full disk: {faults[0]}")
        return []
    return [f"full disk: {fault}" for fault in faults or differences(calm, saved)]


def _on_a_small_disk(recipe: Path, small: Path, saved: Path) -> list[str]:
    """In a mount namespace of its own, so that nothing is left behind: runs on a disk that grows."""
    libc = ctypes.CDLL(None, use_errno=True)
    user = 0 if os.geteuid() == 0 else CLONE_NEWUSER
    if libc.unshare(CLONE_NEWNS | user) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        return [f"left out, no mount namespace here: {os.strerror(ctypes.get_errno())}"]
    if libc.mount(b"none", os.fsencode(small), b"tmpfs", 0, b"size=400k"):
        return [f"left out, no small disk here: {os.strerror(ctypes.get_errno())}"]
    ends = []
    for size in SMALL_DISKS:
        libc.mount(b"none", os.fsencode(small), b"tmpfs", MS_REMOUNT, f"size={size}k".encode())
        ends.append(_finish(recipe, small / "run"))
    libc.mount(b"none", os.fsencode(small), b"tmpfs", MS_REMOUNT, b"size=500m")
    last = _finish(recipe, small / "run")
    if last.wait():
        return [f"with room again the run did not go on: {last.errors!r}"]
    shutil.copytree(small / "run", saved)
    unclear = [end for end in ends if end.wait() and not (end.wait() == REFUSED and "DiskFull" in end.errors)]
    return [f"no clear error: {end.errors!r}" for end in unclear] or (
        [] if any(end.wait() for end in ends) else ["no disk was too small"]
    )


if __name__ == "__main__":
    sys.exit(main())
