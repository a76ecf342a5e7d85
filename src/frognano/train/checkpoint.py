"""Checkpoints of a climb: written whole or not at all, the best and the last kept.

A checkpoint is a folder with the model and tokenizer as any loader expects them (``model/``), the optimizer and
random state beside them, and a manifest of sizes and hashes. It is written under another name, synced to the disk,
then renamed; a half-written one is recognised by its name, a damaged one by its manifest. Which checkpoint counts
is the journal's word, not the folder's.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import torch

from frognano.policy.checkpoint import LoadedModel, load_model, save_model
from frognano.rollout.journal import DiskFull

_PARTIAL = ".partial-"
_MANIFEST = "manifest.json"
_STATE = "trainer.pt"


class CheckpointError(RuntimeError):
    """A checkpoint is missing, damaged or cannot be written; the message names it."""


class CheckpointStore:
    """The checkpoints of one run folder."""

    def __init__(self, root: Path, save_model: Callable[[Any, Path], None], load_model: Callable[[Path], Any]) -> None:
        self.root = root
        self._save_model, self._load_model = save_model, load_model

    @classmethod
    def of(cls, root: Path, loaded: LoadedModel) -> CheckpointStore:
        """Checkpoints in the format of the folder ``loaded`` came from, which must stay where it is."""
        return cls(root, lambda _model, folder: save_model(loaded, folder), lambda folder: load_model(folder).model)

    def folder(self, name: str) -> Path:
        """Where the checkpoint ``name`` lies; its model is in ``model/``."""
        return self.root / name

    def write(self, climb: str, number: int, learner: Any) -> str:
        """Write the learner after update ``number`` and return the checkpoint's name; it is on the disk then."""
        name = f"{climb}-u{number:05d}"
        partial, final = self.root / f"{_PARTIAL}{name}", self.root / name
        try:
            # What is already there was written by a process that died before it could journal it.
            for stale in (partial, final):
                shutil.rmtree(stale, ignore_errors=True)
            (partial / "model").mkdir(parents=True)
            self._save_model(learner.model, partial / "model")
            torch.save(learner.state(), partial / _STATE)
            _write_manifest(partial)
            _sync(partial)
            partial.rename(final)
            _sync_folder(self.root)
        except Exception as error:
            # Model writers wrap a failed write in errors of their own; whatever it was, no half checkpoint stays.
            shutil.rmtree(partial, ignore_errors=True)
            raise _write_error(self.root, error) from error
        return name

    def restore(self, name: str, learner: Any) -> None:
        """Load weights, optimizer and random state of a checkpoint into ``learner``."""
        folder = self.folder(name)
        check_manifest(folder)
        source = self._load_model(folder / "model")
        learner.model.load_state_dict(source.state_dict())
        learner.restore(torch.load(folder / _STATE, weights_only=True))

    def clean(self, climb: str, keep: Collection[str]) -> None:
        """Remove the climb's checkpoints that are not in ``keep``, and every half-written one."""
        if not self.root.is_dir():
            return
        for folder in self.root.iterdir():
            ours = folder.name.startswith(f"{climb}-u") and folder.name not in keep
            if ours or folder.name.startswith(_PARTIAL):
                shutil.rmtree(folder, ignore_errors=True)


def check_manifest(folder: Path) -> None:
    """Raise CheckpointError unless every file of the checkpoint is there as it was written."""
    try:
        manifest: dict[str, Any] = json.loads((folder / _MANIFEST).read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"checkpoint {folder} is missing or incomplete: {error}") from error
    for path, expected in manifest.items():
        file = folder / path
        if not file.is_file() or file.stat().st_size != expected["bytes"] or _digest(file) != expected["sha256"]:
            raise CheckpointError(f"checkpoint {folder} is damaged: {path} is not what was written")


def _write_manifest(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": _digest(path)} for path in files
    }
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    for path in [*(found for found in folder.rglob("*") if found.is_dir()), folder]:
        _sync_folder(path)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_error(root: Path, error: Exception) -> Exception:
    full = isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    # Others than the standard library report a full disk in the system's words only, torch not even in those.
    if full or "No space left" in str(error) or (root.is_dir() and shutil.disk_usage(root).free < 1 << 16):
        return DiskFull(
            f"no space left for a checkpoint in {root}; the one before it is intact: make room and start again"
        )
    return CheckpointError(f"cannot write a checkpoint in {root}: {error}")
