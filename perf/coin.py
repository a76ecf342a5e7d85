"""A stand-in for a model that learns in seconds: a random tiny one, a small repository, and a coin toss.

The coin policy samples a few tokens from the real engine and reads the first one: in the lower half of the vocabulary
it makes the right edit, in the upper half it makes none. So a random model solves half of what it tries, and one that
learns from rewards solves more. Everything else (sandbox, tools, grader, tokens, updates, journal) is the real thing.
It measures the machinery; it says nothing about any model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from frognano.coevolve.workbench import token_policy
from frognano.config.recipe import Recipe
from frognano.policy.contract import Sampling
from frognano.policy.token_policy import TokenPolicy
from frognano.records import Observation, Reply, TokenRow, ToolCall, Usage
from frognano.taskpilot.draft import Draft, load_draft

TEMPLATE = """
{%- for message in messages %}
    {{- '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
MODULES = {
    "lengths": [("clamp", "value, low, high", "max(low, min(value, high))", [("5, 0, 3", "3"), ("-1, 0, 3", "0")]),
                ("middle", "low, high", "(low + high) / 2", [("1, 3", "2.0"), ("0, 5", "2.5")])],
    "words": [("initials", "text", "''.join(word[0] for word in text.split())", [("'big frog'", "'bf'"), ("''", "''")]),
              ("shout", "text", "text.upper() + '!'", [("'hop'", "'HOP!'"), ("''", "'!'")])],
    "lists": [("ends", "values", "(values[0], values[-1])", [("[1, 2, 3]", "(1, 3)"), ("[4]", "(4, 4)")]),
              ("gaps", "values", "[b - a for a, b in zip(values, values[1:])]", [("[1, 4, 6]", "[3, 2]"), ("[1]", "[]")])],  # noqa: E501
    "times": [("minutes", "hours, rest", "hours * 60 + rest", [("2, 5", "125"), ("0, 7", "7")]),
              ("late", "now, due", "now > due", [("3, 2", "True"), ("2, 2", "False")])],
    "money": [("change", "paid, price", "paid - price", [("10, 7", "3"), ("7, 7", "0")]),
              ("share", "total, people", "total // people", [("9, 3", "3"), ("7, 2", "3")])],
}  # fmt: skip


def make_repository(root: Path) -> Path:
    """A package of five modules with ten functions, each with two tests, in ``root``."""
    (root / "pad").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "pad/__init__.py").write_text('"""Pads for frogs."""\n')
    (root / "pyproject.toml").write_text('[project]\nname = "pad"\nversion = "1"\nlicense = "MIT"\n')
    for module, functions in MODULES.items():
        source, tests = [f'"""Functions about {module}."""\n'], [f"from pad import {module}\n"]
        for name, arguments, body, cases in functions:
            source.append(
                f'def {name}({arguments}):\n    """Compute {name}."""\n    result = {body}\n    return result\n'
            )
            for number, (given, wanted) in enumerate(cases):
                tests.append(f"def test_{name}_{number}():\n    assert {module}.{name}({given}) == {wanted}\n")
        (root / f"pad/{module}.py").write_text("\n\n".join(source))
        (root / f"tests/test_{module}.py").write_text("\n\n".join(tests))
    return root


def make_checkpoint(folder: Path) -> Path:
    """A random model of two layers and a byte tokenizer, in ``folder``."""
    tokenizer = _tokenizer()
    torch.manual_seed(3)
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, tie_word_embeddings=True, max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@cache
def _tokenizer() -> Any:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={letter: n for n, letter in enumerate(alphabet)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(
        [AddedToken(text, special=True) for text in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = TEMPLATE
    return tokenizer


class CoinPolicy:
    """Tosses with the engine's first token; ``drafts`` tells what the right edit is, by statement."""

    def __init__(self, inner: TokenPolicy, drafts: Callable[[], dict[str, Draft]]) -> None:
        self.inner, self._drafts = inner, drafts

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def __aenter__(self) -> CoinPolicy:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.inner.__aexit__(*exc)

    async def open(self, system: str, user: str, tools: Sequence[Any], sampling: Sampling) -> CoinSession:
        # A short prompt that still tells the tasks apart keeps the toss cheap.
        session = await self.inner.open("", user[:12], [], sampling)
        return CoinSession(session, self._drafts()[user])


class CoinSession:
    """One toss, one edit or none, one answer."""

    def __init__(self, session: Any, draft: Draft) -> None:
        self._session, self._draft, self._turn = session, draft, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def reply(self, max_tokens: int, timeout_s: float) -> Reply:
        self._turn += 1
        if self._turn == 2:
            return Reply(content="Done.")
        before = self._session.context_tokens
        await self._session.reply(2, timeout_s)
        toss = self._session.tokens().ids[before]
        if toss >= 128:
            return Reply(content="I cannot.")
        facts = self._draft.facts
        arguments = {"file_path": facts.file, "old_string": facts.suspect, "new_string": self._draft.clean_line}
        call = ToolCall(id="call_0", name="Edit", arguments=arguments)
        return Reply(calls=(call,), finish_reason="tool_calls", usage=Usage(completion_tokens=2))

    def observe(self, observations: Sequence[Observation]) -> None:
        return None

    def tokens(self) -> TokenRow:
        row: TokenRow = self._session.tokens()
        return row


def coin_policy(pool: Path, run: Path) -> Callable[[Recipe, Any], Any]:
    """What ``open_workbench`` calls; drafts are looked up in the pool and in what the run refined."""
    known: dict[str, Draft] = {}
    read: set[Path] = set()

    def drafts() -> dict[str, Draft]:
        for place in [*pool.glob("tasks/*/facts.json"), *run.glob("tasks/*/*/facts.json")]:
            if place not in read and not place.parent.name.startswith("."):
                draft = load_draft(place.parent)
                known[draft.statement()] = draft
                read.add(place)
        return known

    return lambda recipe, loaded: CoinPolicy(token_policy(recipe, loaded), drafts)


def coin_recipe(repository: Path, checkpoint: Path, **changes: Any) -> Recipe:
    """A short recipe; keyword arguments are merged in as sections."""
    values: dict[str, Any] = {
        "model": {"checkpoint": str(checkpoint), "engine": {"max_rows": 32}},
        "source": {"repository": str(repository)},
        "leaf": {"max_turns": 3, "max_context_tokens": 2048, "max_tokens_per_turn": 64, "min_reply_tokens": 2},
        "taskpilot": {
            "synthesis": {
                "train_tasks": 4, "validation_tasks": 1, "held_out_tasks": 2, "validation_share": 0.2,
                "held_out_share": 0.2, "confirm_runs": 1, "baseline_runs": 2, "max_family_share": 1.0,
                "whole_suite": False, "time_floor_s": 60.0,
            },
            "calibration": {"episodes": 4, "concurrency": 64},
            "refinement": {"rounds": 1},
        },
        "train": {
            "updates": 3, "groups": 2, "group_size": 4, "max_lag": 0, "validation_cadence": 2,
            "optimizer": {"lr": 3e-3}, "loss": {"entropy_tokens": 8},
        },
        "evaluation": {
            "episodes": 2, "temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_turns": 3,
            "max_context_tokens": 2048, "max_tokens_per_turn": 64,
        },
        "coevolve": {"iterations": 1, "tasks_per_iteration": 4},
        "rollout": {"concurrency": 16},
        "sandbox": {"warm": 1},
        "by_iteration": {},
    }  # fmt: skip
    for section, change in changes.items():
        values[section] = _merge(values.get(section, {}), change)
    return Recipe.parse(values)


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        merged[key] = _merge(merged[key], value) if isinstance(value, dict) and key in merged else value
    return merged
