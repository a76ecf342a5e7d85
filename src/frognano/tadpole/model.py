"""Tadpole's architecture: transformers' own Qwen3.5 text classes, made small."""

from __future__ import annotations

import torch
from transformers import PreTrainedTokenizerFast
from transformers.models.qwen3_5 import Qwen3_5ForCausalLM, Qwen3_5TextConfig

LAYERS = ("linear_attention", "full_attention", "full_attention", "full_attention")
WIDTH = 128


def build_model(tokenizer: PreTrainedTokenizerFast, seed: int, layers: tuple[str, ...] = LAYERS) -> Qwen3_5ForCausalLM:
    """A randomly initialised Tadpole for a tokenizer's vocabulary."""
    torch.manual_seed(seed)
    config = Qwen3_5TextConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=3 * WIDTH,
        num_hidden_layers=len(layers),
        layer_types=list(layers),
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=32,
        linear_value_head_dim=32,
        max_position_embeddings=4096,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 0.5,
            "mrope_section": [4, 2, 2],
            "mrope_interleaved": True,
        },
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.02,
    )
    return Qwen3_5ForCausalLM(config).float()
