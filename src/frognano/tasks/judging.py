"""Who runs a judge: the contract, and the cold judge, one fresh sandbox for one job.

The judge's program travels as text on standard input, so that nothing of it lies on a disk that the solver's code
can see, and the grading tests reach the sandbox only when the solver's last process has been gone for good: in a
sandbox that the solver never had. What comes back is data.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from frognano.sandbox.contract import Limits, OperationError, SandboxBackend, SandboxError, SandboxSpec
from frognano.tasks import inside
from frognano.tasks.inside import boot

Job = dict[str, Any]
Evidence = dict[str, Any]

ANSWER_BYTES = 16 << 20
SLACK_S = 60.0
"""How much longer than the tests the judge as a whole may take."""


class Judge(Protocol):
    """Runs one job and returns the evidence; ``error`` in it, or SandboxError, means that there is no verdict."""

    async def run(self, job: Job, snapshot: Path, hash_seed: int) -> Evidence:
        """``snapshot`` is the sealed tree; the job's ``workdir`` says where it stands while the tests run."""
        ...


@cache
def sources() -> tuple[str, bytes]:
    """The program for ``python -c``, and its first input line: the modules' texts."""
    folder = Path(inside.__file__).parent
    texts = {name: (folder / f"{name}.py").read_text() for name in boot.MODULES}
    return Path(boot.__file__).read_text(), json.dumps({**texts, "path": []}).encode("ascii") + b"\n"


class ColdJudge:
    """One fresh sandbox for each job, through the sandbox backend's ordinary calls."""

    def __init__(
        self, backend: SandboxBackend, limits: Limits, extra_paths: tuple[Path, ...] = (), python: str = "python3"
    ) -> None:
        self._backend, self._limits, self._extra, self._python = backend, limits, extra_paths, python

    async def run(self, job: Job, snapshot: Path, hash_seed: int) -> Evidence:
        """Open, run, close. A judge that was killed while the sandbox lives was killed from inside."""
        spec = SandboxSpec(snapshot=snapshot, workdir=job["workdir"], limits=self._limits, extra_paths=self._extra)
        sandbox = await self._backend.open(spec)
        try:
            job = {**job, "workdir": sandbox.workdir, "lower": ""}
            program, first = sources()
            lines = first + json.dumps(job).encode("ascii") + b"\n"
            seconds = job["timeout_s"] + SLACK_S
            arguments = {
                "argv": [job["python"] or self._python, "-s", "-c", program, "lines"],
                "env": {"PYTHONHASHSEED": str(hash_seed)},
                "cwd": "/",
                "timeout_s": seconds,
                "stdin_b64": base64.b64encode(lines).decode("ascii"),
                "max_bytes": ANSWER_BYTES,
            }
            answer = await sandbox.request("exec", arguments, seconds + SLACK_S)
        except OperationError as error:
            raise SandboxError(f"the judge could not be started: {error}") from None
        finally:
            await sandbox.close()
        return _evidence(answer)


def _evidence(answer: dict[str, Any]) -> Evidence:
    if answer["code"] < 0 or answer["timed_out"]:
        return {"keeper_lost": True}
    try:
        found = json.loads(base64.b64decode(answer["stdout_b64"]))
    except ValueError:
        words = base64.b64decode(answer["stderr_b64"]).decode("utf-8", "replace")[-800:]
        raise SandboxError(f"the judge did not answer (exit code {answer['code']}): {words}") from None
    if not isinstance(found, dict):
        raise SandboxError("the judge's answer cannot be read")
    return found
