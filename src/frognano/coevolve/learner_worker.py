"""The learner in a process of its own: ``python -m frognano.coevolve.learner_worker``, started by ``learner_process``.

It holds model and optimizer, and answers one request at a time. It ends with the process that started it, however
that one ends, so that no orphan writes into a run folder that somebody else has taken up.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from frognano.coevolve.channel import Channel, ChannelClosed
from frognano.sandbox.linux import die_with_parent


def main() -> None:
    """Serve until the other end closes."""
    _die_with_parent()
    reading = os.fdopen(os.dup(0), "rb")
    writing = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not get between the messages.
    os.dup2(2, 1)
    channel = Channel(reading, writing)
    try:
        worker = None
        while True:
            operation, arguments = channel.receive()
            try:
                if operation == "begin":
                    worker = _Worker(*arguments)
                    channel.send((True, None))
                else:
                    channel.send((True, getattr(worker, operation)(*arguments)))
            except ChannelClosed:
                raise
            except Exception as error:  # the caller decides what it means
                channel.send((False, _portable(error)))
    except ChannelClosed:
        return


class _Worker:
    """One learner and its checkpoints."""

    def __init__(self, start: Path, checkpoints: Path, settings: Any, version: int, weights: Path) -> None:
        # Imported here, after the parent's death was provided for: these take seconds.
        from frognano.policy.checkpoint import load_model, save_model
        from frognano.train.checkpoint import CheckpointStore
        from frognano.train.update import Learner

        loaded = load_model(start)
        self._learner = Learner(loaded.model, settings, version, loaded.pad_id)
        self._store = CheckpointStore(
            checkpoints, lambda _model, folder: save_model(loaded, folder), lambda folder: load_model(folder).model
        )
        self._weights = weights

    def step(self, groups: Any) -> Any:
        return self._learner.step(groups)

    def write(self, climb: str, number: int) -> str:
        return self._store.write(climb, number, self._learner)

    def restore(self, name: str) -> int:
        self._store.restore(name, self._learner)
        return self._learner.version

    def weights(self) -> str:
        """Write the present weights where the parent reads them."""
        from safetensors.torch import save_file

        state = self._learner.model.state_dict()
        unique: dict[int, str] = {}
        for name, tensor in state.items():
            unique.setdefault(tensor.data_ptr(), name)
        partial = self._weights.with_suffix(".partial")
        save_file({name: state[name].contiguous() for name in unique.values()}, partial)
        partial.replace(self._weights)
        return str(self._weights)


def _die_with_parent() -> None:
    parent = os.getppid()
    die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getppid() != parent:
        os._exit(1)


def _portable(error: Exception) -> Exception:
    import pickle

    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an error that cannot travel goes as its words
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


if __name__ == "__main__":
    main()
    sys.exit(0)
