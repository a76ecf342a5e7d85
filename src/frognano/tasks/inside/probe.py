"""The test process: runs pytest on chosen tests and reports every step to the parent that watches it.

It runs in the same process as the solver's code, so nothing it says is believed by itself: the parent demands
that planted tests which must fail did fail, that every expected test reported, and that the process ended as
its report says. It keeps its tools as early-bound references, takes a fingerprint of pytest before any of the
solver's files can be imported, and compares it at the end. It does not protect from code that finds this
reporter in memory and forges a whole consistent report, planted tests included.

Standard library and pytest only; Python 3.6 and later.
"""

import builtins
import json
import os
import random
import sys
import types
from typing import Any, Dict, List, NamedTuple, Set

WATCHED = ("_pytest", "pytest", "pluggy", "unittest")
_UNUSED = "cacheprovider faulthandler pastebin junitxml stepwise setuponly setupplan unraisableexception"
FIRST_OPTIONS = [part for name in _UNUSED.split() for part in ("-p", "no:" + name)]
"""Plugins of pytest that change no outcome here and cost time at every start are left out."""
MESSAGE_CHARS = 6000
MAX_MESSAGES = 50


class Mark(NamedTuple):
    """One thing of the test machinery, where it stands and what it is."""

    place: Any
    key: str
    value: Any
    function: Any
    code: Any
    defaults: Any
    label: str


def fingerprint() -> List[Mark]:
    """Every function and class attribute of the test machinery and every builtin, as it is now."""
    marks: List[Mark] = []
    for name, module in sorted(sys.modules.items()):
        if name.split(".")[0] in WATCHED and isinstance(module, types.ModuleType):
            _mark(marks, name, vars(module), module)
    for key, value in vars(builtins).items():
        # The interactive ``_`` is set by displayhook and gettext, and belongs to nobody.
        if key != "_":
            marks.append(Mark(vars(builtins), key, value, None, None, None, "builtins." + key))
    return marks


def _mark(marks: List[Mark], name: str, place: Any, module: Any) -> None:
    for key, value in list(place.items()):
        label = name + "." + key
        plain = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if isinstance(plain, types.FunctionType):
            marks.append(Mark(place, key, value, plain, plain.__code__, plain.__defaults__, label))
        elif isinstance(value, property):
            marks.append(Mark(place, key, value, None, None, None, label))
        elif isinstance(value, type) and module is not None and value.__module__ == name:
            marks.append(Mark(place, key, value, None, None, None, label))
            _mark(marks, label, vars(value), None)


def changed(marks: List[Mark]) -> List[str]:
    """Names of marked things that are not what they were."""
    return [
        mark.label
        for mark in marks
        if mark.place.get(mark.key) is not mark.value
        or (
            mark.function is not None
            and (mark.function.__code__ is not mark.code or mark.function.__defaults__ is not mark.defaults)
        )
    ]


def make_plugin(emit: Any, wanted: Any, order_seed: int, details: bool) -> Any:
    """The pytest plugin. ``wanted``: node ids to run, or None for all; ``order_seed`` 0 keeps the order."""
    known: List[Any] = []
    messages = [0]

    def message(report: Any) -> str:
        messages[0] += 1
        if not details or messages[0] > MAX_MESSAGES:
            return ""
        return str(report.longreprtext)[-MESSAGE_CHARS:]

    class Probe:
        def pytest_collection(self, session: Any) -> None:
            known.extend(id(plugin) for plugin in session.config.pluginmanager.get_plugins())

        def pytest_collection_modifyitems(self, session: Any, config: Any, items: Any) -> None:
            if wanted is not None:
                chosen = set(wanted)
                items[:] = [item for item in items if item.nodeid in chosen]
            if order_seed:
                _shuffle(items, order_seed)

        def pytest_collection_finish(self, session: Any) -> None:
            emit({"collected": [item.nodeid for item in session.items]})

        def pytest_collectreport(self, report: Any) -> None:
            if report.outcome == "failed":
                emit({"collect": report.nodeid, "outcome": "error", "message": message(report)})
            elif report.outcome == "skipped":
                emit({"collect": report.nodeid, "outcome": "skipped", "message": ""})

        def pytest_runtest_logstart(self, nodeid: Any, location: Any) -> None:
            emit({"start": nodeid})

        def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
            return None if details else plain_report(item, call)

        def pytest_runtest_logreport(self, report: Any) -> None:
            event = {"test": report.nodeid, "when": report.when, "outcome": report.outcome}
            event["seconds"] = round(report.duration, 6)
            if hasattr(report, "wasxfail"):
                event["xfail"] = True
            if report.outcome == "failed":
                event["message"] = message(report)
            emit(event)

        def pytest_runtest_logfinish(self, nodeid: Any, location: Any) -> None:
            emit({"stop": nodeid})

        def pytest_sessionfinish(self, session: Any, exitstatus: Any) -> None:
            found = _new_plugins(session, known)
            if sys.gettrace() is not None or sys.getprofile() is not None:
                found.append("sys.settrace")
            emit({"finish": int(exitstatus), "changed": found[:20]})

    return Probe()


def plain_report(item: Any, call: Any) -> Any:
    """pytest's report without the picture of the failure, which nobody reads and which costs most of the time."""
    from _pytest.outcomes import skip
    from _pytest.reports import TestReport

    outcome: Any = "passed"
    picture: Any = None
    if call.excinfo is not None:
        skipped = isinstance(call.excinfo.value, skip.Exception)
        outcome, picture = ("skipped", (str(item.path), 0, "")) if skipped else ("failed", "failed")
    return TestReport(
        item.nodeid,
        item.location,
        dict.fromkeys(item.keywords, 1),
        outcome,
        picture,
        call.when,
        duration=call.duration,
        start=call.start,
        stop=call.stop,
    )


def _new_plugins(session: Any, known: List[Any]) -> List[Any]:
    """Plugins registered after the session began, by anything but a conftest file or a test module's own list."""
    manager = session.config.pluginmanager
    declared: Set[str] = set()
    for item in session.items:
        names = getattr(getattr(item, "module", None), "pytest_plugins", ())
        declared.update([names] if isinstance(names, str) else names)
    found = []
    for plugin in manager.get_plugins():
        path = os.path.basename(getattr(plugin, "__file__", None) or "")
        name = str(manager.get_name(plugin))
        if id(plugin) not in known and path != "conftest.py" and name not in declared:
            found.append("plugin " + name[:80])
    return found


def _shuffle(items: List[Any], seed: int) -> None:
    """Shuffle whole modules, then the tests inside each, so that module fixtures are still set up once."""
    draw = random.Random(seed)
    groups: Dict[str, Any] = {}
    for item in items:
        groups.setdefault(item.nodeid.split("::")[0], []).append(item)
    order = list(groups)
    draw.shuffle(order)
    for name in order:
        draw.shuffle(groups[name])
    items[:] = [item for name in order for item in groups[name]]


def run_session(job: Dict[str, Any], channel: int, secret: bytes, before: List[Mark]) -> None:
    """Run pytest as ``job`` says, events as lines on ``channel``; never returns."""
    import pytest

    write, leave, dumps, main, own = os.write, os._exit, json.dumps, pytest.main, os.getpid
    process = own()

    def emit(event: Dict[str, Any]) -> None:
        # A test may fork; only the process that runs the session speaks for it.
        if own() != process:
            return
        data = secret + dumps(event).encode("ascii") + b"\n"
        while data:
            data = data[write(channel, data) :]

    code = 70
    try:
        plugin = make_plugin(emit, job["ids"], job["order_seed"], job["details"])
        arguments = _prepare(job)
        code = int(main(arguments, plugins=[plugin]))
        # pytest itself replaces a few of its methods while it is configured, so the comparison comes after it all.
        emit({"end": code, "changed": changed(before)[:20]})
    except BaseException as error:
        emit({"crash": "%s: %s" % (type(error).__name__, error)})
    finally:
        leave(code)


def _prepare(job: Dict[str, Any]) -> List[Any]:
    """Enter the repository and build pytest's arguments; nothing of the repository was importable before."""
    os.chdir(job["workdir"])
    places = [os.path.normpath(os.path.join(job["workdir"], entry)) for entry in job["pythonpath"]]
    search = os.environ.get("PATH", os.defpath)
    os.environ.clear()
    os.environ.update({"PATH": search, "PYTHONPATH": os.pathsep.join(places)})
    os.environ.update(job["env"])
    sys.dont_write_bytecode = True
    sys.argv = ["pytest"]
    sys.path[:0] = [place for place in places if place not in sys.path]
    if not job["details"]:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    options = FIRST_OPTIONS + ["--rootdir", job["workdir"], "-o", "addopts=", "--continue-on-collection-errors"]
    options += ["-q", "-q", "--no-header", "--no-summary", "--color=no", "--capture=sys"]
    options += ["--assert=rewrite", "--tb=short"] if job["details"] else ["--assert=plain", "--tb=no"]
    for plugin in job["plugins"]:
        options += ["-p", plugin]
    return options + ["--"] + list(job["files"])
