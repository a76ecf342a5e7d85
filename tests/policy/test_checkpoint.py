"""A saved checkpoint is its source with other text weights, and every loader takes it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Qwen3_5Config, Qwen3_5ForConditionalGeneration

from frognano.policy.checkpoint import CheckpointFolderError, checkpoint_folder, load_model, save_model

IDS = torch.tensor([[1, 5, 9, 200, 7]])
Fixture = Callable[..., Any]


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory, tokenizer_of: Fixture, model_of: Fixture) -> Fixture:
    """Kind → a folder as a publisher would lay it out."""

    def build(kind: str) -> Path:
        folder = tmp_path_factory.mktemp(kind) / "source"
        model = _seeing(model_of("hybrid").config) if kind == "seeing" else model_of(kind)
        model.save_pretrained(folder, max_shard_size="60KB")
        tokenizer_of("plain").save_pretrained(folder)
        (folder / "LICENSE").write_bytes(b"as it was\r\n")
        return folder

    return build


def _seeing(text: Any) -> Any:
    """A multimodal model with the text model's shape and a small vision tower."""
    torch.manual_seed(5)
    vision = {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 24, "out_hidden_size": 48}
    config = Qwen3_5Config(
        text_config=text.to_dict(),
        vision_config={**vision, "patch_size": 4, "num_position_embeddings": 16},
        image_token_id=390,
        video_token_id=391,
        vision_start_token_id=392,
        vision_end_token_id=393,
        tie_word_embeddings=True,
    )
    return Qwen3_5ForConditionalGeneration(config).eval()


def _train_a_step(model: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loss: torch.Tensor = model(input_ids=IDS, labels=IDS).loss
    torch.autograd.backward(loss)
    optimizer.step()


@torch.no_grad()
def _logits(model: Any) -> torch.Tensor:
    return model.eval()(input_ids=IDS).logits


def _tensors(folder: Path) -> dict[str, torch.Tensor]:
    return {key: value for file in sorted(folder.glob("*.safetensors")) for key, value in load_file(file).items()}


@pytest.mark.parametrize("kind", ["hybrid", "qwen3", "seeing"])
def test_a_trained_text_model_is_saved_and_loads_everywhere(folder_of: Fixture, tmp_path: Path, kind: str) -> None:
    source, target = folder_of(kind), tmp_path / "out"
    loaded = load_model(source)
    _train_a_step(loaded.model)
    trained = _logits(loaded.model)
    save_model(loaded, target)
    assert torch.equal(_logits(load_model(target).model), trained)
    assert torch.allclose(_logits(AutoModelForCausalLM.from_pretrained(target)), trained, atol=1e-6)
    before, after = _tensors(source), _tensors(target)
    assert before.keys() == after.keys()
    changed = {key for key in before if not torch.equal(before[key], after[key])}
    assert len(changed) > 10
    assert not any("visual" in key for key in changed)
    weights = {file.name for file in source.glob("*.safetensors")}
    assert len(weights) > 1
    for file in source.iterdir():
        assert file.name in weights or (target / file.name).read_bytes() == file.read_bytes()


def test_the_released_shape_still_sees_after_training(folder_of: Fixture, tmp_path: Path) -> None:
    source, target = folder_of("seeing"), tmp_path / "out"
    loaded = load_model(source)
    assert type(loaded.model).__name__ == "Qwen3_5ForCausalLM"
    _train_a_step(loaded.model)
    save_model(loaded, target)
    whole = Qwen3_5ForConditionalGeneration.from_pretrained(target)
    assert torch.allclose(_logits(whole), _logits(loaded.model), atol=1e-5)
    visual = [key for key in _tensors(source) if "visual" in key]
    assert visual
    for key in visual:
        assert torch.equal(_tensors(source)[key], _tensors(target)[key])


def test_tied_weights_are_written_where_the_source_has_them(folder_of: Fixture, tmp_path: Path) -> None:
    source = folder_of("hybrid")
    assert "lm_head.weight" not in _tensors(source)
    loaded = load_model(source)
    _train_a_step(loaded.model)
    save_model(loaded, tmp_path / "out")
    assert "lm_head.weight" not in _tensors(tmp_path / "out")
    with safe_open(tmp_path / "out" / sorted(p.name for p in source.glob("*.safetensors"))[0], "pt") as file:
        assert file.metadata() == {"format": "pt"}


def test_stale_weights_of_other_formats_are_not_carried_along(folder_of: Fixture, tmp_path: Path) -> None:
    source = shutil.copytree(folder_of("qwen3"), tmp_path / "source")
    (source / "pytorch_model.bin").write_bytes(b"old")
    save_model(load_model(source), tmp_path / "out")
    assert not (tmp_path / "out/pytorch_model.bin").exists()


def test_a_folder_that_lacks_something_is_refused_by_name(folder_of: Fixture, tmp_path: Path) -> None:
    source = shutil.copytree(folder_of("qwen3"), tmp_path / "source")
    shard = sorted(source.glob("*.safetensors"))[0]
    tensors = load_file(shard)
    gone = sorted(tensors)[0]
    save_file({key: value for key, value in tensors.items() if key != gone}, shard, {"format": "pt"})
    with pytest.raises(CheckpointFolderError, match="lacks weights"):
        load_model(source)
    with pytest.raises(CheckpointFolderError, match="no checkpoint folder"):
        checkpoint_folder(tmp_path / "nowhere")
    (source / "config.json").unlink()
    with pytest.raises(CheckpointFolderError, match=r"config\.json is missing"):
        load_model(source)
