"""The judge: a parent outside the test process that places the tests, starts it, watches it and ends it.

One line of JSON in, one line out. For every job it forks a keeper (in fresh namespaces where the kernel allows
them: process ids, network, mounts, IPC) and the keeper forks the test process. The judge imported pytest before
any of the solver's files were visible, so a job costs a fork, not a start. Placed test files are checked before
and after the run. Whatever is still alive when the tests have ended is killed and reported. The judge gives
evidence (events, exit status, what was left over); ``frognano.tasks.ruling`` decides.

Without namespaces the test process could kill the judge; then its caller sees it killed and rules so. Standard
library only; Python 3.6 and later; Linux.
"""

import base64
import gc
import json
import os
import pathlib
import resource
import select
import signal
import struct
import sys
import time
from typing import Any, Dict, List, NamedTuple, Set

from frognano.tasks.inside import cage, files

OUTPUT_BYTES = 20000
MAX_EVENT_BYTES = 8 << 20


class Unfit(Exception):
    """The job could not be set up: no verdict."""


class Tools(NamedTuple):
    """What the judge was given: how to run a session, and the fingerprint of the test machinery before any."""

    run_session: Any
    before: List[Any]


class Ends(NamedTuple):
    """One side of the three pipes between the judge and what it forks."""

    events: int
    output: int
    status: int

    def close(self) -> None:
        """Close all three."""
        for end in self:
            os.close(end)


# --- processes -----------------------------------------------------------------------------------------------


def keep(job: Dict[str, Any], ends: Ends, secret: bytes, tools: Tools) -> None:
    """The keeper: set the world up, start the test process, wait, see what is left. Never returns."""
    report: Dict[str, Any] = {}
    try:
        cage.prctl(cage.PR_SET_DUMPABLE, 0)
        cage.prctl(cage.PR_SET_CHILD_SUBREAPER, 1)
        try:
            files.place(job["workdir"], job["changes"])
        except OSError as error:
            # The solver's own doing: too long a path, too much for the disk.
            report["unplaced"] = str(error)
            return
        files.place(job["workdir"], job["tests"])
        if not files.intact(job["workdir"], job["tests"]):
            raise Unfit("the grading tests could not be placed")
        started = time.time()
        child = os.fork()
        if child == 0:
            os.close(ends.status)
            become_tests(job, ends)
            tools.run_session(job, ends.events, secret, tools.before)
        os.close(ends.events)
        os.close(ends.output)
        _, code = os.waitpid(child, 0)
        report["seconds"] = time.time() - started
        report["left_over"] = cage.end_rest()
        report["status"] = code
        report["intact"] = files.intact(job["workdir"], job["tests"])
    except BaseException as error:
        # The boundary of the keeper: whatever went wrong is told, and is no verdict.
        report["error"] = "%s: %s" % (type(error).__name__, error)
    finally:
        os.write(ends.status, json.dumps(report).encode("ascii"))
        os._exit(0)


def become_tests(job: Dict[str, Any], ends: Ends) -> None:
    """In the test process: own session, nothing inherited but the event channel, limits, no privileges."""
    os.setsid()
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(ends.output, 1)
    os.dup2(ends.output, 2)
    os.closerange(3, ends.events)
    os.closerange(ends.events + 1, 4096)
    for name, value in job["limits"].items():
        code = getattr(resource, name)
        hard = resource.getrlimit(code)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(code, (limit, limit))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cage.prctl(cage.PR_SET_DUMPABLE, 1)
    cage.die_first()
    cage.drop_privileges(base64.b64decode(job["filter"]))


# --- one job -------------------------------------------------------------------------------------------------


def run(job: Dict[str, Any], tools: Tools) -> Dict[str, Any]:
    """Run one job; the evidence as a plain dict. ``error`` in it means that there is no verdict."""
    secret = os.urandom(16).hex().encode("ascii") + b" "
    pipes = [os.pipe() for _ in range(3)]
    ours, theirs = Ends(*[pipe[0] for pipe in pipes]), Ends(*[pipe[1] for pipe in pipes])
    top = os.fork()
    if top == 0:
        try:
            ours.close()
            if job["lower"]:
                cage.enter_namespaces(job)
        except BaseException as error:
            os.write(theirs.status, json.dumps({"error": "%s: %s" % (type(error).__name__, error)}).encode("ascii"))
            os._exit(0)
        keep(job, theirs, secret, tools)
    theirs.close()
    try:
        return watch(job, top, secret, ours)
    finally:
        ours.close()


def watch(job: Dict[str, Any], top: int, secret: bytes, ends: Ends) -> Dict[str, Any]:
    """Read events, output and the keeper's report until the keeper has ended or time is up."""
    buffers = {end: bytearray() for end in ends}
    open_ends = set(ends)
    deadline = time.monotonic() + job["timeout_s"]
    timed_out = overflow = False
    while ends.status in open_ends:
        left = deadline - time.monotonic()
        if left <= 0 or overflow:
            timed_out = not overflow
            break
        for reader in select.select(list(open_ends), [], [], left)[0]:
            overflow = _read(reader, buffers[reader], open_ends, reader == ends.output) or overflow
    if timed_out or overflow:
        cage.kill_tree(top)
    _reap(top)
    for reader in (ends.events, ends.output):
        _drain(reader, buffers[reader], open_ends, reader == ends.output)
    output = buffers[ends.output].decode("utf-8", "replace")
    result: Dict[str, Any] = {"timed_out": timed_out, "overflow": overflow, "output": output}
    result.update(_events(bytes(buffers[ends.events]), secret))
    raw = bytes(buffers[ends.status])
    if raw:
        result.update(json.loads(raw.decode("ascii")))
    result["keeper_lost"] = not raw and not timed_out and not overflow
    return result


def _read(reader: int, buffer: bytearray, open_ends: Set[int], tail_only: bool) -> bool:
    """One read; True when there is more than anybody may say."""
    data = os.read(reader, 1 << 16)
    if not data:
        open_ends.discard(reader)
    buffer += data
    if tail_only and len(buffer) > 2 * OUTPUT_BYTES:
        del buffer[:-OUTPUT_BYTES]
    return len(buffer) > MAX_EVENT_BYTES


def _drain(reader: int, buffer: bytearray, open_ends: Set[int], tail_only: bool) -> None:
    """What is already in the pipe; a process that escaped and keeps it open is not waited for."""
    while reader in open_ends and select.select([reader], [], [], 0)[0]:
        if _read(reader, buffer, open_ends, tail_only):
            return


def _reap(top: int) -> None:
    os.waitpid(top, 0)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _events(raw: bytes, secret: bytes) -> Dict[str, Any]:
    events, forged = [], 0
    for line in raw.split(b"\n"):
        if line.startswith(secret):
            try:
                events.append(json.loads(line[len(secret) :].decode("ascii")))
                continue
            except ValueError:
                pass
        forged += bool(line)
    return {"events": events, "forged": forged}


# --- start ---------------------------------------------------------------------------------------------------


def warm(options: List[str]) -> None:
    """Import everything that pytest needs before any job's files are visible, and begin what every session begins.

    ``options`` are the first options of every session.
    """
    import importlib

    from _pytest import config

    for name in config.default_plugins:
        _show_less(importlib.import_module(name if name.startswith("_pytest") else "_pytest." + name))
    late = "pytest unittest.mock doctest difflib pprint _pytest.assertion.rewrite ast inspect zipfile runpy"
    for name in late.split():
        importlib.import_module(name)
    if hasattr(config, "get_config"):
        _start_ahead(config, options)


def _show_less(plugin: Any) -> None:
    """Let ``dir()`` of a plugin of pytest name its hooks and fixtures alone: pytest looks through it at every start."""
    shown = ["__dir__"]
    for name, value in vars(plugin).items():
        fixture = type(value).__name__ == "FixtureFunctionDefinition" or hasattr(value, "_pytestfixturefunction")
        if name.startswith("pytest_") or fixture:
            shown.append(name)
    plugin.__dir__ = lambda: shown


def _start_ahead(config: Any, options: List[str]) -> None:
    """Make the plugin manager of the next session now, where a fork inherits it instead of making its own."""
    make = config.get_config
    ready = [make(list(options))]

    def get_config(args: Any = None, plugins: Any = None, **more: Any) -> Any:
        if not ready or list(args or ())[: len(options)] != options:
            return make(args, plugins, **more)
        found = ready.pop()
        found.invocation_params = type(found.invocation_params)(args=args, plugins=plugins, dir=pathlib.Path.cwd())
        return found

    config.get_config = get_config


def prepare(probe: Any, path: List[Any]) -> Tools:
    """Protect this process, import the test tools, and note what they are."""
    cage.prctl(cage.PR_SET_DUMPABLE, 0)
    cage.prctl(cage.PR_SET_CHILD_SUBREAPER, 1)
    sys.path += path
    sys.dont_write_bytecode = True
    warm(probe.FIRST_OPTIONS)
    tools = Tools(probe.run_session, probe.fingerprint())
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()
    return tools


def answer(text: bytes, tools: Tools) -> Dict[str, Any]:
    """The evidence of one job."""
    try:
        return run(json.loads(text.decode("ascii")), tools)
    except Exception as error:
        # The boundary of the judge: a job that breaks it has no verdict; the next job may go well.
        return {"error": "%s: %s" % (type(error).__name__, error)}


def serve(probe: Any, path: List[Any]) -> None:
    """Answer jobs from standard input, a line each, until it closes."""
    cage.prctl(cage.PR_SET_PDEATHSIG, signal.SIGKILL)
    tools = prepare(probe, path)
    answers = os.fdopen(os.dup(1), "wb")
    for line in iter(sys.stdin.buffer.readline, b""):
        answers.write(json.dumps(answer(line, tools)).encode("ascii") + b"\n")
        answers.flush()


def reside(probe: Any) -> None:
    """As a resident: framed requests on standard input (4 bytes of length, JSON), one answer for each."""
    tools = prepare(probe, [])
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(empty, descriptor)
    while True:
        head = source.read(4)
        if len(head) < 4:
            return
        request = json.loads(source.read(struct.unpack(">I", head)[0]).decode("utf-8"))
        job = request["args"].get("job")
        result = {} if job is None else answer(job.encode("ascii"), tools)
        frame = json.dumps({"id": request["id"], "ok": True, "result": result}).encode("ascii")
        sink.write(struct.pack(">I", len(frame)) + frame)
        sink.flush()
