"""Tiny tokenizers and models, made on the spot: the shapes of Qwen3, Qwen3.5 and a minimal format of our own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
)

torch.set_num_threads(1)

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
NOT_SPECIAL = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")

_HEAD = """
{%- set system = messages[0].content | trim if messages[0].role == 'system' else '' %}
{%- if tools %}
    {{- '<|im_start|>system\\n# Tools\\n' }}
    {%- for tool in tools %}{{- (tool | tojson) ~ '\\n' }}{%- endfor %}
    {{- 'Call as <tool_call>...</tool_call>.' ~ ('\\n\\n' ~ system if system else '') ~ '<|im_end|>\\n' }}
{%- elif system %}
    {{- '<|im_start|>system\\n' ~ system ~ '<|im_end|>\\n' }}
{%- endif %}
"""

_BODY = """
{%- for message in messages %}
    {%- set content = message.content | trim %}
    {%- if message.role == 'user' %}
        {{- '<|im_start|>user\\n' ~ content ~ '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' ~ @THINK@ ~ content }}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n' if not loop.first else ('\\n\\n' if content else '') }}
            {{- '<tool_call>\\n' }}
            @CALL@
            {{- '</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '' if loop.previtem.role == 'tool' else '<|im_start|>user' }}
        {{- '\\n<tool_response>\\n' ~ content ~ '\\n</tool_response>' }}
        {{- '<|im_end|>\\n' if loop.last or loop.nextitem.role != 'tool' else '' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' ~ @OPEN@ }}{%- endif %}
"""

_TAGGED = """
{{- '<function=' ~ call.function.name ~ '>\\n' }}
{%- for key, value in call.function.arguments | items %}
    {{- '<parameter=' ~ key ~ '>\\n' ~ value ~ '\\n</parameter>\\n' }}
{%- endfor %}
{{- '</function>\\n' }}
"""

_THINK = "'<think>\\n' ~ message.reasoning_content | default('') | trim ~ '\\n</think>\\n\\n'"
_OPEN = "('<think>\\n' if enable_thinking | default(true) else '<think>\\n\\n</think>\\n\\n')"


def _template(think: str = "''", open_: str = "''", call: str = _TAGGED) -> str:
    return _HEAD + _BODY.replace("@THINK@", think).replace("@OPEN@", open_).replace("@CALL@", call)


TEMPLATES = {
    "thinking": _template(_THINK, _OPEN),
    "plain": _template(),
    "json": _template(call="{{- (call.function | tojson) ~ '\\n' }}"),
}

_CORPUS = [
    "def total(values):\n    return sum(value for value in values)\n",
    "<|im_start|>user\nThe function total returns the wrong sum for an empty list.<|im_end|>\n",
    "<tool_call>\n<function=Read>\n<parameter=file_path>\nsrc/pond/ranges.py\n</parameter>\n</function>\n</tool_call>",
    "1. import re\n2. \n3. class Frog:\n4.     pass\nExit code: 0\nSTDOUT:\nok\nSTDERR:\n",
]


@pytest.fixture(scope="session")
def tokenizer_of() -> Callable[..., Any]:
    """Template name → tokenizer, made once."""
    return _tokenizer


@cache
def _tokenizer(template: str = "plain", vocab: int = 400) -> Any:
    """A byte-level BPE tokenizer with Qwen's control tokens, special and not."""
    core = Tokenizer(models.BPE())
    core.normalizer = normalizers.NFC()
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(_CORPUS * 4, trainers.BpeTrainer(vocab_size=vocab - 9, initial_alphabet=alphabet))
    core.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    core.add_tokens([AddedToken(text, special=False, normalized=False) for text in NOT_SPECIAL])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>", clean_up_tokenization_spaces=False
    )
    tokenizer.chat_template = TEMPLATES[template]
    return tokenizer


def _rope(rotary: int) -> dict[str, Any]:
    return {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": rotary / 16,
        "mrope_section": [rotary // 2 - 2, 1, 1],
        "mrope_interleaved": True,
    }


def _hybrid(layers: list[str], **changes: Any) -> Any:
    values: dict[str, Any] = {
        "vocab_size": 400,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": len(layers),
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 12,
        "linear_value_head_dim": 8,
        "layer_types": layers,
        "rope_parameters": _rope(8),
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
    }
    return Qwen3_5TextConfig(**{**values, **changes})


def _model(kind: str, enlarge: float = 1.0, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    linear, full = "linear_attention", "full_attention"
    if kind == "qwen3":
        model: Any = Qwen3ForCausalLM(
            Qwen3Config(
                vocab_size=400,
                hidden_size=48,
                intermediate_size=80,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                head_dim=16,
                attention_bias=True,
                max_position_embeddings=2048,
            )
        )
    else:
        model = Qwen3_5ForCausalLM(_hybrid({"hybrid": [linear, full, linear, full], "linear": [linear] * 2}[kind]))
    for parameter in model.parameters():
        parameter.data.mul_(enlarge) if parameter.dim() > 1 else parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


@pytest.fixture(scope="session")
def model_of() -> Callable[..., Any]:
    """Kind (hybrid, linear, qwen3), factor on the weights, seed → a new random model."""
    return _model
