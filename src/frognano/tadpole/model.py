"""Tadpole's architecture: transformers' own Qwen3.5 text classes, made small, and started so that it can copy.

A model this small finds out late, if at all, how to copy identifiers from its context. So the two layers that do it
in trained models are laid out at the start: the short convolution of the first Gated DeltaNet layer hands on the two
tokens before, and the first attention layer looks for places where they stood before and passes on what followed.
Everything stays trainable. The idea of such starts: A. Trockman and J. Z. Kolter, "Mimetic Initialization of
Self-Attention Layers" (2023); here it is laid out for an induction head.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast
from transformers.models.qwen3_5 import Qwen3_5ForCausalLM, Qwen3_5TextConfig

LAYERS = ("linear_attention", "full_attention", "full_attention", "full_attention")
WIDTH, HEAD, SKETCH = 128, 32, 64
_EMBEDDING = 0.06
_CONSTANT = 2
"""Embedding dimensions that hold a constant, which weights without biases need."""


def build_model(tokenizer: PreTrainedTokenizerFast, seed: int, layers: tuple[str, ...] = LAYERS) -> Qwen3_5ForCausalLM:
    """A Tadpole before training, for a tokenizer's vocabulary."""
    torch.manual_seed(seed)
    config = Qwen3_5TextConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=3 * WIDTH,
        num_hidden_layers=len(layers),
        layer_types=list(layers),
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=HEAD,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=HEAD,
        linear_value_head_dim=SKETCH,
        max_position_embeddings=4096,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [2, 1, 1],
            "mrope_interleaved": True,
        },
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.02,
    )
    model: Qwen3_5ForCausalLM = Qwen3_5ForCausalLM(config).to(torch.float32)  # type: ignore[arg-type]
    with torch.no_grad():
        _start(model.model)
    return model


def _start(model: Any) -> None:
    """Lay out the copying layers; every other block starts as the identity."""
    nn.init.normal_(model.embed_tokens.weight, std=_EMBEDDING)
    model.embed_tokens.weight[:, :_CONSTANT] = 4 * _EMBEDDING
    for layer in model.layers:
        for name, parameter in layer.named_parameters():
            if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")):
                parameter.zero_()
            elif name.endswith("proj.weight"):
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
    projection = _rows(SKETCH, WIDTH)
    rows = _rows(WIDTH, WIDTH)
    first, second = rows[:SKETCH], rows[SKETCH:]
    _remember(model.layers[0].linear_attn, projection, first, second)
    _match(model.layers[1].self_attn, projection, first, second)


def _rows(count: int, width: int) -> Tensor:
    """Random orthonormal rows [count, width] that ignore the constant dimensions."""
    matrix = torch.randn(count, width)
    matrix[:, :_CONSTANT] = 0.0
    orthonormal: Tensor = torch.linalg.qr(matrix.T).Q.T.contiguous()
    return orthonormal


def _constant(rows: int, value: float) -> Tensor:
    """Weights [rows, width] whose output is about ``value`` for every token."""
    weight = torch.zeros(rows, WIDTH)
    weight[:, :_CONSTANT] = value / (3.5 * _CONSTANT)
    return weight


def _remember(block: Any, projection: Tensor, first: Tensor, second: Tensor) -> None:
    """Head 0 writes a sketch of the token before into ``first``, head 1 of the one before that into ``second``."""
    keys = 2 * 2 * HEAD
    block.in_proj_qkv.weight[:keys] = _constant(keys, 2.0)
    block.in_proj_qkv.weight[keys : keys + SKETCH] = 2 * projection
    block.in_proj_qkv.weight[keys + SKETCH :] = 2 * projection
    block.conv1d.weight.zero_()
    block.conv1d.weight[:keys, 0, 3] = 1.0
    block.conv1d.weight[keys : keys + SKETCH, 0, 2] = 1.0
    block.conv1d.weight[keys + SKETCH :, 0, 1] = 1.0
    block.in_proj_z.weight.copy_(_constant(2 * SKETCH, 2.0))
    block.in_proj_b.weight.copy_(_constant(2, 4.0))
    block.in_proj_a.weight.zero_()
    block.A_log.fill_(2.5)
    block.out_proj.weight.copy_(torch.cat([first, second]).T * _EMBEDDING * 0.7)


def _match(block: Any, projection: Tensor, first: Tensor, second: Tensor) -> None:
    """Heads 0 and 1 look for the present token one place back, heads 2 and 3 for the last two tokens in order."""
    one, half, other = _rows_plain(HEAD), _rows_plain(HEAD // 2), _rows_plain(HEAD // 2)
    keys = [one @ first, torch.cat([half @ first, other @ second])]
    queries = [one @ projection, torch.cat([half @ projection, other @ first])]
    for head in range(4):
        rows = slice(2 * HEAD * head, 2 * HEAD * head + HEAD)
        gates = slice(2 * HEAD * head + HEAD, 2 * HEAD * (head + 1))
        block.q_proj.weight[rows] = queries[head // 2]
        block.q_proj.weight[gates] = 0.0
    block.k_proj.weight.copy_(torch.cat(keys))
    block.q_norm.weight.fill_(2.0)
    values = _rows(2 * HEAD, WIDTH)
    block.v_proj.weight.copy_(values)
    for head in range(4):
        part = values[HEAD * (head // 2) : HEAD * (head // 2 + 1)]
        block.o_proj.weight[:, HEAD * head : HEAD * (head + 1)] = part.T * _EMBEDDING * 3


def _rows_plain(count: int) -> Tensor:
    """Random orthonormal rows [count, sketch]."""
    orthonormal: Tensor = torch.linalg.qr(torch.randn(SKETCH, count)).Q.T.contiguous()
    return orthonormal
