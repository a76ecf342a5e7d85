"""Pretraining: remade from the seed, resumed without a trace, and what it ships is small."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `train`")

from safetensors.torch import load_file
from transformers import AutoConfig, AutoTokenizer

from frognano.config.base import ConfigError
from frognano.tadpole.pretrain import pretrain
from frognano.tadpole.trainer import PretrainPlan

PLAN = PretrainPlan(seed=3, vocabulary=640, shards=2, scripts=6, vocabulary_scripts=20, batch_tokens=1024)
CHECKPOINT = Path(str(resources.files("frognano.tadpole") / "checkpoint"))


class Interrupted(Exception):
    pass


def stop_after_one_shard(line: str) -> None:
    if line.startswith("shard 1/"):
        raise Interrupted


@pytest.mark.slow
def test_an_interrupted_pretraining_goes_on_to_equal_weights(tmp_path: Path) -> None:
    whole = load_file(pretrain(tmp_path / "whole", PLAN, lambda _: None, ahead=1) / "model.safetensors")
    with pytest.raises(Interrupted):
        pretrain(tmp_path / "parts", PLAN, stop_after_one_shard, ahead=1)
    with pytest.raises(ConfigError, match="seed"):
        pretrain(tmp_path / "parts", PretrainPlan(seed=4), lambda _: None)
    parts = load_file(pretrain(tmp_path / "parts", PLAN, lambda _: None, ahead=1) / "model.safetensors")
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_the_shipped_checkpoint_is_a_small_qwen_of_the_stated_kind() -> None:
    config = AutoConfig.from_pretrained(CHECKPOINT)
    assert config.model_type == "qwen3_5_text"
    assert {"linear_attention", "full_attention"} == set(config.layer_types)
    assert sum(path.stat().st_size for path in CHECKPOINT.iterdir()) <= 10_000_000


def test_the_shipped_tokenizer_has_qwens_control_tokens() -> None:
    tokenizer = AutoTokenizer.from_pretrained(CHECKPOINT)
    for token in ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "<think>"):
        assert len(tokenizer.encode(token, add_special_tokens=False)) == 1
