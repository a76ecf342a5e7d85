"""A learner that works in another process, so that updates and generation really use two cores.

It stands where ``train.update.Learner`` stands: ``step`` takes groups and blocks its thread, not the event loop; new
weights come back as a file. Groups travel as token rows, rewards and advantages; messages and steps stay here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from frognano.coevolve.channel import Channel, ChannelClosed
from frognano.config.train import TrainSettings
from frognano.train.batch import Group
from frognano.train.checkpoint import CheckpointStore
from frognano.train.update import UpdateError, UpdateReport, UpdateStopped


class LearnerProcess:
    """A learner and its checkpoints, elsewhere; a context manager that ends the process."""

    def __init__(self, start: Path, checkpoints: Path, settings: TrainSettings, version: int = 0) -> None:
        self.version = version
        self._guard = threading.Lock()
        self._stopped = False
        folder = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
        self._scratch = tempfile.TemporaryDirectory(prefix="frognano-weights-", dir=folder)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "frognano.coevolve.learner_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": str(settings.threads)},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._channel = Channel(self._process.stdout, self._process.stdin)  # type: ignore[arg-type]
        weights = Path(self._scratch.name) / "weights.safetensors"
        self._begin = ("begin", (start, checkpoints, settings, version, weights))
        self._begun = False

    def step(self, groups: Sequence[Group]) -> UpdateReport:
        """One update. Raises UpdateError, UpdateStopped, BatchError."""
        report: UpdateReport = self._ask("step", [_slim(group) for group in groups])
        self.version = report.version
        return report

    def stop(self) -> None:
        """End the process where it stands: what it had not finished was never journaled."""
        self._stopped = True
        self._process.kill()

    def weights(self) -> Mapping[str, Tensor]:
        """A copy of the present weights, by parameter name; tied ones once."""
        from safetensors.torch import load_file

        return load_file(self._ask("weights"))

    def write(self, climb: str, number: int) -> str:
        """Write a checkpoint; its name."""
        return str(self._ask("write", climb, number))

    def restore(self, name: str) -> None:
        """Take up a checkpoint."""
        self.version = int(self._ask("restore", name))

    def close(self) -> None:
        """End the process; safe to call twice."""
        self._process.kill()
        self._process.wait()
        self._channel.close()
        self._scratch.cleanup()

    def __enter__(self) -> LearnerProcess:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _ask(self, operation: str, *arguments: Any) -> Any:
        with self._guard:
            if not self._begun:
                self._begun = True
                self._exchange(*self._begin)
            return self._exchange(operation, arguments)

    def _exchange(self, operation: str, arguments: Any) -> Any:
        try:
            self._channel.send((operation, arguments))
            fine, answer = self._channel.receive()
        except ChannelClosed:
            if self._stopped:
                raise UpdateStopped("the update was stopped before its optimizer step") from None
            code = self._process.wait()
            how = f"signal {-code}, perhaps for lack of memory" if code < 0 else f"exit code {code}"
            raise UpdateError(f"the learner process ended by itself ({how})") from None
        if not fine:
            raise answer
        return answer


class RemoteCheckpoints(CheckpointStore):
    """Checkpoints that the learner's process writes and reads itself."""

    def __init__(self, root: Path, learner: LearnerProcess) -> None:
        super().__init__(root, _elsewhere, _elsewhere)
        self._learner = learner

    def write(self, climb: str, number: int, learner: Any) -> str:
        return self._learner.write(climb, number)

    def restore(self, name: str, learner: Any) -> None:
        self._learner.restore(name)

    def clean(self, climb: str, keep: Collection[str]) -> None:
        """Called only while no checkpoint is being written."""
        super().clean(climb, keep)


def _elsewhere(*_: Any) -> Any:
    raise AssertionError("models are written and read in the learner's process")


def _slim(group: Group) -> Group:
    """A group without what an update does not read."""
    bare = tuple(one.model_copy(update={"messages": (), "steps": (), "patch": ""}) for one in group.trajectories)
    return replace(group, trajectories=bare)
