"""Checkpoint folders: the text model of a folder is loaded and trained, everything else is carried through.

A folder is what transformers and the servers read: ``config.json``, safetensors, tokenizer, chat template. Folders of
models that also see (``Qwen3_5ForConditionalGeneration``) give their text model. Saving writes the source folder
again with the text weights replaced (in fp32, so that training resumes exactly) and every other file and tensor byte
for byte. A weight that the folder lacks is an error and never a random one. Only safetensors are read: other formats
may run code.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

import frognano

BUNDLED = "tadpole"
_OTHER_WEIGHTS = frozenset({".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx"})
_PREFIXES = ("model.language_model.", "language_model.model.", "language_model.")


class CheckpointFolderError(ValueError):
    """The folder is no checkpoint that can be used; the message says what is missing."""


@dataclass(frozen=True)
class LoadedModel:
    """A text model, its tokenizer, and the folder they came from."""

    model: Any
    tokenizer: Any
    folder: Path

    @property
    def pad_id(self) -> int:
        """Id that fills a batch; never seen by the model where it counts."""
        return int(self.tokenizer.pad_token_id or 0)


def checkpoint_folder(name: str | Path) -> Path:
    """The folder of a checkpoint: ``tadpole`` is the bundled one. Raises CheckpointFolderError."""
    bundled = Path(frognano.__file__).parent / "tadpole" / "checkpoint"
    folder = bundled if str(name) == BUNDLED else Path(name).expanduser()
    if not folder.is_dir():
        hint = "" if str(name) == BUNDLED else f"; to fetch one: hf download {name} --local-dir FOLDER"
        raise CheckpointFolderError(f"there is no checkpoint folder {folder}{hint}")
    for needed in ("config.json", "tokenizer.json"):
        if not (folder / needed).is_file():
            raise CheckpointFolderError(f"{folder} is no checkpoint folder: {needed} is missing")
    if not _weight_files(folder):
        raise CheckpointFolderError(f"{folder} holds no .safetensors; other formats are not read")
    return folder


def load_model(name: str | Path, dtype: torch.dtype = torch.float32) -> LoadedModel:
    """The text model in a checkpoint folder. Raises CheckpointFolderError."""
    folder = checkpoint_folder(name)
    config = AutoConfig.from_pretrained(folder)
    text = config.get_text_config()
    if text is not config:
        # The outer config says whether the output layer is tied; the inner one may have kept its default.
        text.tie_word_embeddings = config.tie_word_embeddings
    if not torch.cuda.is_available():
        # It advises kernels that do not exist for a CPU.
        logging.getLogger("transformers.integrations.hub_kernels").setLevel(logging.ERROR)
    disable_progress_bar()  # type: ignore[no-untyped-call]
    found: Any = AutoModelForCausalLM.from_pretrained(
        folder, config=text, dtype=dtype, use_safetensors=True, output_loading_info=True
    )
    model, report = found
    missing = sorted(report["missing_keys"])
    if missing or report["mismatched_keys"]:
        wrong = missing or sorted(str(key) for key in report["mismatched_keys"])
        raise CheckpointFolderError(f"{folder} lacks weights of its own text model: {', '.join(wrong[:5])}")
    return LoadedModel(model, AutoTokenizer.from_pretrained(folder), folder)


def checkpoint_digest(folder: Path) -> str:
    """sha256 over what decides a checkpoint's answers: weights, configuration, tokenizer and template."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in {".safetensors", ".json", ".jinja"}:
            digest.update(f"{path.name}\n{path.stat().st_size}\n".encode())
            with path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def save_model(loaded: LoadedModel, folder: Path) -> None:
    """Write the checkpoint again, with the text model's present weights, into ``folder``.

    Weights in formats that are not read stay behind: they would be the old ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = {file.name for file in _weight_files(loaded.folder)}
    for file in sorted(loaded.folder.iterdir()):
        if file.is_file() and file.name not in weights and file.suffix not in _OTHER_WEIGHTS:
            shutil.copyfile(file, folder / file.name)
    state = loaded.model.state_dict()
    written: set[int] = set()
    for name in sorted(weights):
        written |= _rewrite(loaded.folder / name, folder / name, state)
    left = sorted(name for name, tensor in state.items() if tensor.data_ptr() not in written)
    if left:
        raise CheckpointFolderError(f"{loaded.folder} has no place for {', '.join(left[:5])}")


def _rewrite(source: Path, target: Path, state: Mapping[str, Tensor]) -> set[int]:
    """Copy one file of weights, taking those of the text model from ``state``; the storages that were written."""
    tensors: dict[str, Tensor] = {}
    written: set[int] = set()
    with safe_open(source, framework="pt") as held:
        metadata = held.metadata()
        for key in held.keys():  # noqa: SIM118 (not a mapping)
            ours = state.get(_text_name(key, state))
            if ours is not None:
                written.add(ours.data_ptr())
            tensors[key] = held.get_tensor(key) if ours is None else ours.detach().contiguous().clone()
    save_file(tensors, target, metadata=metadata)
    return written


def _text_name(key: str, state: Mapping[str, Tensor]) -> str:
    """Name in the text model of a tensor in the file; the key itself where there is none."""
    if key not in state:
        for prefix in _PREFIXES:
            inner = f"model.{key.removeprefix(prefix)}"
            if key.startswith(prefix) and inner in state:
                return inner
    return key


def _weight_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))
