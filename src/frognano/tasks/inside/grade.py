"""The verifier of an exported task folder: restores the tests, runs them under the judge, writes the reward.

Runs as ``/tests/grade.py`` beside its modules (boot and the judge's, protect, ruling) and ``files/``. The reward
file says 1 or 0; where there is no verdict it is left unwritten, which the caller sees as such. It grades the
folder as it stands after the solver, so processes and files outside the repository that the solver left are not
undone here.
"""

import base64
import importlib.util
import json
import os
import subprocess
import sys
from typing import Any, Dict, List

HERE = os.path.dirname(os.path.abspath(__file__))
REWARD = "/logs/verifier/reward.txt"


def load(name: str) -> Any:
    """A module that stands beside this file, under its own name."""
    spec = importlib.util.spec_from_file_location("frognano_" + name, os.path.join(HERE, name + ".py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def read(name: str) -> str:
    """The text of a module that stands beside this file."""
    with open(os.path.join(HERE, name + ".py"), encoding="utf-8") as stream:
        return stream.read()


def entries(folder: str) -> Dict[str, Any]:
    """Every file below ``folder`` in the judge's form."""
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            if os.path.islink(path):
                found[os.path.relpath(path, folder)] = [
                    0o120000,
                    base64.b64encode(os.fsencode(os.readlink(path))).decode(),
                ]
                continue
            with open(path, "rb") as stream:
                mode = 0o100755 if os.stat(path).st_mode & 0o100 else 0o100644
                found[os.path.relpath(path, folder)] = [mode, base64.b64encode(stream.read()).decode()]
    return found


def present(workdir: str) -> List[Any]:
    """Every path of the solver's tree, without version control."""
    found = []
    for base, folders, names in os.walk(workdir):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if os.path.islink(os.path.join(base, name))]
        found += [os.path.relpath(os.path.join(base, name), workdir) for name in names + links]
    return found


def job(grading: Dict[str, Any], protect: Any) -> Dict[str, Any]:
    """The judge's job: what the solver may not decide is removed or restored, then the tests are placed."""
    workdir = grading["workdir"]
    tests = entries(os.path.join(HERE, "files"))
    restored: Dict[str, Any] = {}
    for name, (mode, text) in grading["restored"].items():
        restored[name] = [mode, base64.b64encode(text.encode("latin-1")).decode()]
    sealed = set(grading["sealed"])
    added = {name: None for name in present(workdir) if name not in sealed}
    changes = dict.fromkeys(protect.sift(added, sealed, list(tests), grading["pythonpath"]).left_out)  # type: Dict[str, Any]
    changes.update(restored)
    return {
        "workdir": workdir,
        "lower": "",
        "changes": changes,
        "tests": tests,
        "pythonpath": grading["pythonpath"],
        "env": dict(os.environ, **dict(grading["env"], PYTHONDONTWRITEBYTECODE="1")),
        "plugins": [],
        "files": sorted({test.split("::")[0] for test in grading["expected"]}),
        "ids": grading["expected"],
        "order_seed": 0,
        "details": True,
        "timeout_s": grading["timeout_s"],
        "limits": {},
        "filter": "",
    }


def main(reward_file: str = REWARD) -> None:
    """Grade and write the reward."""
    with open(os.path.join(HERE, "grading.json")) as stream:
        grading = json.load(stream)
    ruling = load("ruling")
    program, texts = read("boot"), {name: read(name) for name in ("files", "cage", "judge", "probe")}
    lines = [json.dumps(dict(texts, path=[])), json.dumps(job(grading, load("protect")))]
    given = "".join(line + "\n" for line in lines).encode("ascii")
    command = [sys.executable, "-s", "-c", program, "lines"]
    done = subprocess.run(command, check=False, input=given, stdout=subprocess.PIPE, cwd="/")
    if done.returncode < 0:
        evidence: Dict[str, Any] = {"keeper_lost": True}
    elif not done.stdout.strip():
        evidence = {"error": "the judge did not answer (exit code %d)" % done.returncode}
    else:
        evidence = json.loads(done.stdout.decode("ascii"))
    verdict = ruling.rule(evidence, ruling.Demands(grading["expected"]))
    print(evidence.get("output", ""))
    print("%s %s" % (verdict.reason, verdict.detail))
    for test, outcome in sorted(verdict.outcomes.items()):
        print("%-8s %s" % (outcome, test))
    if verdict.reward is None:
        sys.exit(3)
    os.makedirs(os.path.dirname(reward_file), exist_ok=True)
    with open(reward_file, "w") as stream:
        stream.write("%d\n" % verdict.reward)


if __name__ == "__main__":
    main(*sys.argv[1:2])
