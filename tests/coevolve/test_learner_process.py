"""A learner in a process of its own gives what one in this process gives, and ends when it must."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from frognano.coevolve.climbing import trainer
from frognano.coevolve.learner_process import LearnerProcess
from frognano.config.train import OptimizerSettings, TrainSettings
from frognano.records import TokenRow, Trajectory, Verdict, VersionSpan
from frognano.train.batch import BatchError, Group, make_group
from frognano.train.update import UpdateError, UpdateStopped


def settings(lag: int) -> TrainSettings:
    return TrainSettings(max_lag=lag, optimizer=OptimizerSettings(lr=1e-3))  # type: ignore[arg-type]


def group(logprob: float = -5.0) -> Group:
    members = []
    for number in range(4):
        ids = (*range(10, 30), 40 + number)
        mask = (0,) * 20 + (1,)
        row = TokenRow(ids=ids, mask=mask, logprobs=(0.0,) * 20 + (logprob,), spans=(VersionSpan(start=20, version=0),))
        verdict = Verdict(reward=float(number % 2))
        members.append(Trajectory(id=f"g-{number}", task_id="t", exit_reason="agent", tokens=row, verdict=verdict))
    return make_group("g", "t", members, TrainSettings())


def test_both_learners_make_the_same_update_and_the_same_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    weights: list[dict[str, Any]] = []
    for lag in (0, 1):
        with trainer(checkpoint, tmp_path / str(lag), settings(lag)) as work:
            assert work.learner.step([group()]).version == 1
            name = work.store.write("c", 1, work.learner)
            work.learner.step([group()])
            work.store.restore(name, work.learner)
            assert work.learner.version == 1
            weights.append({key: value.clone() for key, value in work.weights().items()})
    here, there = weights
    assert all(torch.equal(here[key], value) for key, value in there.items())
    files = [(tmp_path / lag / "c-u00001/model/model.safetensors").read_bytes() for lag in "01"]
    assert files[0] == files[1]


def test_errors_of_an_update_come_back_as_themselves(checkpoint: Path, tmp_path: Path) -> None:
    with LearnerProcess(checkpoint, tmp_path, settings(1)) as learner:
        with pytest.raises(BatchError, match="impossible"):
            learner.step([group(logprob=2.0)])
        assert learner.step([group()]).version == 1


def test_a_stopped_learner_says_so_and_a_dead_one_too(checkpoint: Path, tmp_path: Path) -> None:
    with LearnerProcess(checkpoint, tmp_path, settings(1)) as learner:
        learner.stop()
        with pytest.raises(UpdateStopped):
            learner.step([group()])
    with LearnerProcess(checkpoint, tmp_path, settings(1)) as learner:
        learner.weights()
        os.kill(learner._process.pid, signal.SIGKILL)
        with pytest.raises(UpdateError, match="signal 9"):
            learner.step([group()])


def test_the_learner_dies_with_the_process_that_started_it(checkpoint: Path, tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal\n"
        "from frognano.coevolve.learner_process import LearnerProcess\n"
        "from frognano.config.train import TrainSettings\n"
        f"start, work = pathlib.Path({str(checkpoint)!r}), pathlib.Path({str(tmp_path)!r})\n"
        "learner = LearnerProcess(start, work, TrainSettings())\n"
        "learner.weights()\n"
        "print(learner._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    worker = int(done.stdout)
    while _alive(worker):
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
