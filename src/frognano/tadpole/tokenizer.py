"""Tadpole's tokenizer: a small byte-level BPE with Qwen's control tokens.

The lines of the frozen prompt are tokens of their own (plain text, not control tokens), which keeps a small
model's context short; everything else is learned from the pretraining text.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from frognano.leaf.profile import load_profile

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
_SPLIT = r"</?[a-z]+(?:=[A-Za-z_]+)?>\n?|\n+ *| ?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+\n?|\s+"


def chat_template() -> str:
    """Tadpole's chat template: Qwen3.5's turn and call format, with the tools listed by signature."""
    return (resources.files("frognano.tadpole") / "chat_template.jinja").read_text(encoding="utf-8")


def prompt_lines() -> list[str]:
    """The lines of the frozen prompt that become tokens."""
    profile = load_profile("leaf")
    signatures = [
        f"{tool['function']['name']}({', '.join(tool['function']['parameters']['properties'])})"
        for tool in profile.tools
    ]
    return ["# Tools", *signatures]


def train_tokenizer(texts: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """Learn a vocabulary of ``size`` ids (control tokens and prompt lines included) from ``texts``."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    lines = prompt_lines()
    special = [END_OF_TEXT, TURN_START, TURN_END]
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(MARKS) - len(lines),
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in (*MARKS, *lines)])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=END_OF_TEXT,
        additional_special_tokens=[TURN_START],
        chat_template=chat_template(),
        clean_up_tokenization_spaces=False,
        model_max_length=4096,
    )
