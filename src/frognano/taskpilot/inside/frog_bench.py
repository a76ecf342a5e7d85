"""One trusted interpreter that has pytest ready and answers a batch of questions about a repository.

Reads one JSON request from standard input and writes JSON lines to standard output. Modes: ``suite`` runs the
tests once in a given order; ``trace`` runs them and tells which lines each one executes; ``hot`` collects once, then
forks per candidate, swaps the changed function's code and runs the tests asked for; ``cold`` forks per candidate,
writes the changed file and lets pytest import everything anew; ``evaluate`` forks likewise and reports what
expressions give. Every fork has a limit on its processor time, a memory limit and its own process group; one that
only waits is ended by the clock, so a slow machine does not turn a slow test into a hang.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import json
import os
import random
import re
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Dict

import frog_swap
import frog_tracer
import pytest

Json = Dict[str, Any]
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
MESSAGE_CHARS = 300
REPR_CHARS = 1000
IDLE_LOOKS = 5
"""How often, 0.2 seconds apart, a child past its time is seen idle before it is given up."""


class Outcomes:
    """Pytest plug-in that keeps one outcome, message and duration per test."""

    def __init__(self) -> None:
        self.tests: dict[str, str] = {}
        self.messages: dict[str, str] = {}
        self.durations: dict[str, float] = {}
        self.errors: list[str] = []

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.errors.append(f"{report.nodeid}: {str(report.longrepr)[-500:]}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid
        self.durations[name] = self.durations.get(name, 0.0) + report.duration
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "xfailed" if report.skipped else "xpassed"
        elif report.failed and report.when != "call":
            outcome = "error"
        before = self.tests.get(name, "passed")
        if before == "passed":
            self.tests[name] = outcome
            if outcome not in ("passed", "skipped"):
                self.messages[name] = _message(report)


def _message(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(getattr(crash, "message", report.longrepr))
    return _ADDRESS.sub("0x", text)[:MESSAGE_CHARS]


class Order:
    """Pytest plug-in that leaves out the tests set aside and shuffles the rest by a seed (0 keeps their order)."""

    def __init__(self, seed: int, left_out: list[str]) -> None:
        self._seed = seed
        self._left_out = set(left_out)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid not in self._left_out]
        if self._seed:
            random.Random(self._seed).shuffle(items)


class Hot:
    """Pytest plug-in that answers candidates in place of running the collected session."""

    def __init__(self, request: Json, say: Callable[[Json], None]) -> None:
        self._request = request
        self._say = say

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        items = {item.nodeid: item for item in session.items}
        index = frog_swap.Index([os.path.abspath(path) for path in self._request["modules"]])
        gc.collect()
        gc.freeze()
        for candidate in self._request["candidates"]:
            self._say(self._answer(session, items, index, candidate))
        return True

    def _answer(self, session: Any, items: Json, index: frog_swap.Index, candidate: Json) -> Json:
        path = os.path.abspath(candidate["file"])
        try:
            plan = index.plan(path, read_text(path), changed_text(path, candidate))
        except frog_swap.NotSwappable as error:
            return {"id": candidate["id"], "state": "cold", "detail": str(error)}
        chosen = [items[name] for name in candidate["tests"] if name in items]

        def work(tell: Callable[[Json], None]) -> None:
            plan.carry_out()
            outcomes = Outcomes()
            session.config.pluginmanager.register(outcomes)
            for item, following in zip(chosen, [*chosen[1:], None]):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            tell(told(outcomes))

        return {"id": candidate["id"], **in_fork(work, candidate["timeout_s"])}


def told(outcomes: Outcomes) -> Json:
    """What a run says: only the tests that did not pass, and how many ran."""
    broken = {name: outcome for name, outcome in outcomes.tests.items() if outcome != "passed"}
    return {
        "state": "import" if outcomes.errors else "ran",
        "ran": len(outcomes.tests),
        "broken": broken,
        "messages": outcomes.messages,
        "detail": outcomes.errors[0] if outcomes.errors else "",
    }


def in_fork(work: Callable[[Callable[[Json], None]], None], timeout_s: float) -> Json:
    """Run ``work`` in a forked child; the last thing it tells, or ``hang`` or ``died``.

    ``timeout_s`` bounds processor seconds, and wall seconds after which nothing in the child runs any more.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(work, writing, timeout_s)
    os.close(writing)
    try:
        data, late = _listen(reading, child, timeout_s)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    late = late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF)
    lines = data.splitlines()
    if late:
        last = json.loads(lines[-1]) if lines and data.endswith(b"\n") else {}
        return {**last, "state": "hang"}
    return json.loads(lines[-1]) if lines else {"state": "died"}


def _child(work: Callable[[Callable[[Json], None]], None], writing: int, timeout_s: float) -> None:
    status = 1
    try:
        with contextlib.suppress(OSError):
            os.setsid()
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, timeout_s)
        work(lambda result: _write_all(writing, json.dumps(result).encode() + b"\n"))
        status = 0
    except BaseException as error:
        # The boundary of a fork: whatever happened, this process must not go on as its parent would.
        with contextlib.suppress(OSError):
            detail = f"{type(error).__name__}: {error}"[:MESSAGE_CHARS]
            _write_all(writing, json.dumps({"state": "died", "detail": detail}).encode() + b"\n")
    finally:
        os._exit(status)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _listen(descriptor: int, child: int, timeout_s: float) -> tuple[bytes, bool]:
    """Everything the child says until it ends; True when it was given up as only waiting."""
    data = b""
    deadline = time.monotonic() + timeout_s
    idle, before = 0, -1.0
    while True:
        wait = max(deadline - time.monotonic(), 0.2)
        if not select.select([descriptor], [], [], wait)[0]:
            runs, spent = _activity(child)
            idle = 0 if runs or spent != before else idle + 1
            before = spent
            if idle >= IDLE_LOOKS:
                return data, True
            continue
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            return data, False
        data += piece


def _activity(process: int) -> tuple[bool, float]:
    """Whether any thread of a process can run, and the processor time it has used (in ticks)."""
    runs, spent = False, 0.0
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/stat") as stream:
                fields = stream.read().rsplit(")", 1)[1].split()
            runs = runs or fields[0] in "RD"
            spent += float(fields[11]) + float(fields[12])
    except OSError:
        return False, spent
    return runs, spent


def read_text(path: str) -> str:
    """A source file's text, line endings kept."""
    with open(path, "rb") as stream:
        data: bytes = stream.read()
    return data.decode()


def changed_text(path: str, candidate: Json) -> str:
    """The file's text with the candidate's span replaced."""
    text = read_text(path)
    return text[: candidate["start"]] + str(candidate["text"]) + text[candidate["end"] :]


@contextlib.contextmanager
def written(candidate: Json) -> Iterator[None]:
    """The candidate's file holds the change inside this block; its time differs, so no bytecode fits it."""
    if candidate.get("file") is None:
        yield
        return
    path = os.path.abspath(candidate["file"])
    clean, changed = read_text(path), changed_text(path, candidate)
    times = os.stat(path)
    try:
        with open(path, "wb") as stream:
            stream.write(changed.encode())
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 7_000_000_000))
        yield
    finally:
        with open(path, "wb") as stream:
            stream.write(clean.encode())
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def pytest_arguments(request: Json) -> list[str]:
    """Options of every run: no repository-wide options, no cache, no capture by descriptor."""
    return ["-q", "-s", "-p", "no:cacheprovider", "-o", "addopts=", "--tb=short", "--rootdir", os.getcwd()]


def run_suite(request: Json, say: Callable[[Json], None]) -> None:
    """One run of the whole suite: every outcome and duration."""
    outcomes = Outcomes()
    order = Order(request.get("order", 0), request.get("left_out", []))
    code = pytest.main([*pytest_arguments(request), *request["tests"]], plugins=[outcomes, order])
    say(
        {
            "code": int(code),
            "outcomes": outcomes.tests,
            "durations": outcomes.durations,
            "messages": outcomes.messages,
            "errors": outcomes.errors,
        }
    )


def run_trace(request: Json, say: Callable[[Json], None]) -> None:
    """Which lines each test executes, and calls with plain arguments."""
    tracer = frog_tracer.Tracer({os.path.abspath(path): path for path in request["modules"]})
    order = Order(0, request.get("left_out", []))
    tracer.start("")
    pytest.main([*pytest_arguments(request), *request["tests"]], plugins=[tracer, order])
    tracer.stop()
    say({"tests": tracer.tests, "imported": tracer.imported, "calls": tracer.calls})


def run_hot(request: Json, say: Callable[[Json], None]) -> None:
    """Candidates by swapped code in forks of the collected session."""
    order = Order(0, request.get("left_out", []))
    pytest.main([*pytest_arguments(request), *request["tests"]], plugins=[Hot(request, say), order])


def run_cold(request: Json, say: Callable[[Json], None]) -> None:
    """Candidates by a changed file and a fresh import."""
    for candidate in request["candidates"]:

        def work(tell: Callable[[Json], None], candidate: Json = candidate) -> None:
            sys.dont_write_bytecode = True
            outcomes = Outcomes()
            # An id may hold any character, so a test function is named as pytest names it and no parameter is.
            names = sorted({name.split("[", 1)[0] for name in candidate["tests"]})
            pytest.main([*pytest_arguments(request), *names], plugins=[outcomes])
            tell(told(outcomes))

        with written(candidate):
            say({"id": candidate["id"], **in_fork(work, candidate["timeout_s"])})


def run_evaluate(request: Json, say: Callable[[Json], None]) -> None:
    """What each expression gives, with the candidate's change in place (or none)."""
    for candidate in request["candidates"]:

        def work(tell: Callable[[Json], None], candidate: Json = candidate) -> None:
            sys.dont_write_bytecode = True
            results: list[str] = []
            for prelude, expression in candidate["expressions"]:
                results.append(evaluated(prelude, expression))
                tell({"state": "ran", "results": results})

        with written(candidate):
            say({"id": candidate["id"], "results": [], **in_fork(work, candidate["timeout_s"])})


def evaluated(prelude: str, expression: str) -> str:
    """``repr`` of an expression's value, or ``raises NAME``; empty when the prelude cannot be imported."""
    names: Json = {"__name__": "example"}
    try:
        exec(compile(prelude, "<prelude>", "exec"), names)
        code = compile(ast.parse(expression, mode="eval"), "<example>", "eval")
    except Exception:
        # The prelude is a test file's imports; any failure there means the expression cannot be used.
        return ""
    try:
        text: str = repr(eval(code, names))
        return text[:REPR_CHARS]
    except Exception as error:
        # What the repository's code raises is the answer.
        return f"raises {type(error).__name__}"


MODES = {"suite": run_suite, "trace": run_trace, "hot": run_hot, "cold": run_cold, "evaluate": run_evaluate}


def main() -> None:
    """Serve one request."""
    request = json.load(sys.stdin)
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.chdir(request["workdir"])
    sys.path[:0] = [os.path.abspath(path) for path in request["pythonpath"]]
    MODES[request["mode"]](request, lambda answer: _write_all(answers, json.dumps(answer).encode() + b"\n"))


if __name__ == "__main__":
    main()
