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
import ctypes
import gc
import json
import os
import resource
import select
import shutil
import signal
import stat
import sys
import time
from typing import Any, Dict, List, NamedTuple, Set

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 2, 4, 0x4000, 0x40000
GRACE_S = 0.5
"""How long helpers of the tests may outlive them before they count as left over."""
OUTPUT_BYTES = 20000
MAX_EVENT_BYTES = 64 << 20

_libc = ctypes.CDLL(None, use_errno=True)


class Unfit(Exception):
    """The job could not be set up: no verdict."""


class Tools(NamedTuple):
    """What the judge was given: how to run a session, and the fingerprint of the test machinery before any."""

    run_session: Any
    before: Dict[str, Any]


class Ends(NamedTuple):
    """One side of the three pipes between the judge and what it forks."""

    events: int
    output: int
    status: int

    def close(self) -> None:
        """Close all three."""
        for end in self:
            os.close(end)


def _prctl(option: int, value: int) -> None:
    _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    arguments = source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), os.fsencode(data)
    if _libc.mount(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, "mount %s on %s: %s" % (kind, target, os.strerror(code)))


# --- files ---------------------------------------------------------------------------------------------------


def place(root: str, files: Dict[str, Any]) -> None:
    """Write ``files`` (path → [mode, base64] or null) below ``root``; whatever stands in the way goes first."""
    for name, entry in sorted(files.items(), key=lambda item: item[1] is not None):
        path = os.path.join(os.fsencode(root), os.fsencode(name))
        if entry is None:
            _remove(path)
            continue
        _clear_way(os.fsencode(root), os.fsencode(name))
        _remove(path)
        mode, data = entry[0], base64.b64decode(entry[1])
        if stat.S_ISLNK(mode):
            os.symlink(data, path)
            continue
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            os.fchmod(stream.fileno(), 0o755 if mode & 0o100 else 0o644)


def _remove(path: bytes) -> None:
    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)
    elif os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _clear_way(root: bytes, name: bytes) -> None:
    """Make every parent of ``name`` a real folder, never a link."""
    path = root
    for part in name.split(b"/")[:-1]:
        path = os.path.join(path, part)
        if os.path.islink(path) or not os.path.isdir(path):
            _remove(path)
            os.mkdir(path, 0o755)


def intact(root: str, files: Dict[str, Any]) -> bool:
    """True when every placed file is still exactly what was placed."""
    for name, entry in files.items():
        path = os.path.join(os.fsencode(root), os.fsencode(name))
        if entry is None:
            if os.path.lexists(path):
                return False
            continue
        if os.path.realpath(path) != path and not stat.S_ISLNK(entry[0]):
            return False
        try:
            with open(path, "rb") as stream:
                if not stat.S_ISLNK(entry[0]) and stream.read() != base64.b64decode(entry[1]):
                    return False
        except OSError:
            return False
    return True


# --- processes -----------------------------------------------------------------------------------------------


def keep(job: Dict[str, Any], ends: Ends, secret: bytes, tools: Tools) -> None:
    """The keeper: set the world up, start the test process, wait, see what is left. Never returns."""
    report: Dict[str, Any] = {}
    try:
        _prctl(PR_SET_DUMPABLE, 0)
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        place(job["workdir"], job["changes"])
        place(job["workdir"], job["tests"])
        if not intact(job["workdir"], job["tests"]):
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
        report["left_over"] = end_rest()
        report["status"] = code
        report["intact"] = intact(job["workdir"], job["tests"])
    except BaseException as error:
        # The boundary of the keeper: whatever went wrong is told, and is no verdict.
        report["error"] = "%s: %s" % (type(error).__name__, error)
    finally:
        os.write(ends.status, json.dumps(report).encode("ascii"))
        os._exit(0)


def end_rest() -> bool:
    """Reap every process below this one; True when some had to be killed."""
    deadline = time.time() + GRACE_S
    pause = 0.001
    while time.time() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
    while True:
        for pid in _descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        time.sleep(0.005)


def _descendants(top: int) -> List[Any]:
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as stream:
                    parents[int(name)] = int(stream.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found = [top]
    for pid in found:
        found.extend(child for child, parent in parents.items() if parent == pid)
    return found[1:]


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
    drop_privileges()
    _prctl(PR_SET_DUMPABLE, 1)


def drop_privileges() -> None:
    """Give up every capability for good."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    for number in range(64):
        _prctl(PR_CAPBSET_DROP, number)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _libc.capset(header, (ctypes.c_uint32 * 6)())


def enter_namespaces(job: Dict[str, Any]) -> None:
    """Fresh namespaces and a writable overlay of the snapshot at the working directory; becomes their first process."""
    uid, gid = os.geteuid(), os.getegid()
    _prctl(PR_SET_DUMPABLE, 1)
    if _libc.unshare(NEWUSER | NEWNS | NEWPID | NEWNET | NEWIPC) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (uid, uid)), ("gid_map", "%d %d 1" % (gid, gid))):
        with open("/proc/self/" + name, "w") as stream:
            stream.write(text)
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        os._exit(0)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
    scratch = job["scratch"]
    size = "size=%dm,mode=0755" % job["disk_mb"]
    _mount("tmpfs", scratch, "tmpfs", MS_NOSUID | MS_NODEV, size)
    for name in ("upper", "work", "tmp"):
        os.mkdir(os.path.join(scratch, name))
    _mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, size)
    layers = "lowerdir=%s,upperdir=%s/upper,workdir=%s/work,userxattr" % (job["lower"], scratch, scratch)
    _mount("overlay", job["workdir"], "overlay", MS_NOSUID | MS_NODEV, layers)


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
                enter_namespaces(job)
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
        _kill_tree(top)
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


def _kill_tree(top: int) -> None:
    """Stop, then kill everything below ``top``, and ``top``: nothing can fork its way out."""
    for _ in range(50):
        below = _descendants(top)
        for pid in [top] + below:
            try:
                os.kill(pid, signal.SIGSTOP)
            except OSError:
                pass
        if set(_descendants(top)) == set(below):
            break
    for pid in _descendants(top) + [top]:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


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


def warm() -> None:
    """Import everything that pytest needs before any job's files are visible."""
    import importlib

    from _pytest import config

    for name in config.default_plugins:
        importlib.import_module(name if name.startswith("_pytest") else "_pytest." + name)
    for name in (
        "pytest",
        "unittest.mock",
        "doctest",
        "difflib",
        "pprint",
        "_pytest.assertion.rewrite",
        "ast",
        "inspect",
    ):
        importlib.import_module(name)


def serve(run_session: Any, fingerprint: Any, path: List[Any]) -> None:
    """Answer jobs from standard input, a line each, until it closes."""
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.path[:] = [entry for entry in sys.path if entry not in ("", ".")] + path
    sys.dont_write_bytecode = True
    warm()
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()
    tools = Tools(run_session, fingerprint())
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    for line in iter(source.readline, b""):
        try:
            result = run(json.loads(line.decode("ascii")), tools)
        except Exception as error:
            # The boundary of the judge: a job that breaks it has no verdict; the next job may go well.
            result = {"error": "%s: %s" % (type(error).__name__, error)}
        answers.write(json.dumps(result).encode("ascii") + b"\n")
        answers.flush()
