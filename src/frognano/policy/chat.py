"""Chat format of a token engine: the ids of a prompt, and the ids that join one turn to the next.

Everything is derived from the tokenizer's own chat template, rendered with placeholders, so Qwen3, Qwen3.5 and other
templates need no special cases. The conversation only grows: a bridge is appended after the sampled ids, nothing is
rendered again or decoded and encoded again. Text from outside (statement, tool output) can never become a control
token: where it spells one, it is split inside the spelling and the parts are encoded apart.

Limit: a template whose later turns depend on the words of earlier ones is followed only as far as its shape goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_OPEN, _SHUT = "\ue000", "\ue001"
_SLOT = re.compile(f"{_OPEN}(\\w+){_SHUT}")


class ChatFormatError(ValueError):
    """The tokenizer's chat template cannot be used for a conversation that only grows."""


def _slot(name: str) -> str:
    return f"{_OPEN}{name}{_SHUT}"


class ChatFormat:
    """Prompt and bridges of one tokenizer. ``options`` go to its template (for example ``enable_thinking``)."""

    def __init__(self, tokenizer: Any, options: Mapping[str, Any] | None = None) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ChatFormatError("the tokenizer has no chat template")
        self._tokenizer = tokenizer
        self._options = dict(options or {})
        added: dict[str, int] = {
            token.content: number for number, token in tokenizer.added_tokens_decoder.items() if token.content
        }
        self._control = added
        self._control_ids = frozenset(added.values())
        longest_first = sorted(added, key=len, reverse=True)
        self._spelling = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._bridges: dict[int, str] = {}
        self._calls_needed = False
        self._calls_needed = self._refuses_bare_answers()
        self._trims = {role: self._template_trims(role) for role in ("system", "user", "tool")}
        self.end_of_turn = self._find_end_of_turn()
        """Id that closes an assistant turn."""
        eos = tokenizer.eos_token_id
        self.stop_ids: frozenset[int] = frozenset({self.end_of_turn} | ({eos} if eos is not None else set()))
        """Ids after which a reply is over."""
        generation = self._bridge_text(0)
        self.thinking: bool = generation.rfind("<think>") > generation.rfind("</think>")
        """Whether the generation prompt leaves ``<think>`` open."""

    @property
    def control_ids(self) -> frozenset[int]:
        """Ids of all added tokens, special or not; text from outside never holds one."""
        return self._control_ids

    def prompt(self, system: str, user: str, tools: Sequence[Mapping[str, Any]]) -> list[int]:
        """Ids of the first prompt, up to where the assistant speaks."""
        messages = [{"role": "user", "content": _slot("user")}]
        values = {"user": self._fitted("user", user)}
        if system.strip():
            messages.insert(0, {"role": "system", "content": _slot("system")})
            values["system"] = self._fitted("system", system)
        return self._fill(self._render(messages, tools=list(tools) or None, add_generation_prompt=True), values)

    def bridge(self, answers: Sequence[tuple[str, str]], last_id: int | None) -> list[int]:
        """Ids between a reply and the next one: the tool ``answers`` as (tool, text), then the generation prompt.

        ``last_id`` is the last sampled id; where it is not the end of turn (the reply was cut), that id leads.
        """
        values: dict[str, str] = {}
        for number, (tool, text) in enumerate(answers):
            values[f"tool{number}"] = self._fitted("tool", text)
            values[f"name{number}"] = tool
        ids = self._fill(self._bridge_text(len(answers)), values)
        return ids if last_id == self.end_of_turn else [self.end_of_turn, *ids]

    def encode(self, text: str) -> list[int]:
        """Ids of text from outside; never a control token. ``decode`` gives the text back (in the tokenizer's form)."""
        return self._encode([(text, False)])

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids, control tokens spelled out."""
        text = self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return str(text)

    # Rendering

    def _render(self, messages: list[dict[str, Any]], **options: Any) -> str:
        try:
            text = self._tokenizer.apply_chat_template(messages, tokenize=False, **self._options, **options)
        except Exception as error:  # a template raises whatever its author chose
            raise ChatFormatError(f"the chat template refuses a plain conversation: {error}") from error
        return str(text)

    def _conversation(self, tools: int, content: str = _slot("reply")) -> list[dict[str, Any]]:
        calls = [
            {"id": f"call_{n}", "type": "function", "function": {"name": _slot(f"name{n}"), "arguments": {}}}
            for n in range(tools)
        ]
        assistant: dict[str, Any] = {"role": "assistant", "content": content}
        answers = [
            {"role": "tool", "tool_call_id": f"call_{n}", "name": _slot(f"name{n}"), "content": _slot(f"tool{n}")}
            for n in range(tools)
        ]
        if calls and self._calls_needed:
            assistant["tool_calls"] = calls
        return [{"role": "user", "content": _slot("user")}, assistant, *answers]

    def _refuses_bare_answers(self) -> bool:
        """Some templates accept a tool message only after an assistant message with calls."""
        try:
            self._render(self._conversation(1), add_generation_prompt=True)
        except ChatFormatError:
            return True
        return False

    def _after_reply(self, tools: int) -> str:
        """What the template puts behind the assistant's words, from the end of turn on."""
        text = self._render(self._conversation(tools), add_generation_prompt=True)
        _, found, after = text.partition(_slot("reply"))
        if not found:
            raise ChatFormatError("the chat template does not show the assistant's words")
        if tools and self._calls_needed:
            bare = self._after_reply(0)
            closing = self._spelling.match(bare)
            after = after[after.index(closing[0]) :] if closing else after
        return after

    def _find_end_of_turn(self) -> int:
        closing = self._spelling.match(self._after_reply(0))
        if closing is None:
            raise ChatFormatError("the chat template does not end an assistant turn with a control token")
        return self._control[closing[0]]

    def _bridge_text(self, tools: int) -> str:
        if tools not in self._bridges:
            after = self._after_reply(tools)
            closing = self._spelling.match(after)
            self._bridges[tools] = after[closing.end() :] if closing else after
        return self._bridges[tools]

    def _template_trims(self, role: str) -> bool:
        """Whether the template strips white space around the text of ``role``; ours is fitted the same way."""
        wide = f"\n \n{_slot('probe')}\n \n"
        messages: list[dict[str, Any]] = [{"role": "user", "content": _slot("user")}]
        if role == "tool":
            messages = self._conversation(1)
            messages[-1]["content"] = wide
        elif role == "system":
            messages.insert(0, {"role": "system", "content": wide})
        else:
            messages[0]["content"] = wide
        return wide not in self._render(messages)

    def _fitted(self, role: str, text: str) -> str:
        return text.strip() if self._trims[role] else text

    # Encoding

    def _fill(self, text: str, values: Mapping[str, str]) -> list[int]:
        segments: list[tuple[str, bool]] = []
        seen: set[str] = set()
        at = 0
        for slot in _SLOT.finditer(text):
            segments += [(text[at : slot.start()], True), (values.get(slot[1], ""), False)]
            seen.add(slot[1])
            at = slot.end()
        # A template may stand for the system prompt in its own way; words of the user and of tools must appear.
        missing = {name for name in values if not name.startswith("name") and name != "system"} - seen
        if missing:
            raise ChatFormatError(f"the chat template leaves out: {', '.join(sorted(missing))}")
        return self._encode([*segments, (text[at:], True)])

    def _encode(self, segments: Sequence[tuple[str, bool]]) -> list[int]:
        """Ids of (text, trusted) segments: control tokens only where trusted text spells them."""
        text = "".join(_unpaired(part) for part, _ in segments)
        trusted, at = [], 0
        for part, ours in segments:
            if ours:
                trusted.append((at, at + len(part)))
            at += len(part)
        cuts, wanted = self._cuts(text, trusted)
        ids = self._encode_parts(text, cuts)
        if [number for number in ids if number in self._control_ids] != wanted:
            outside = set(range(len(text) + 1)) - {n for low, high in trusted for n in range(low + 1, high)}
            ids = self._encode_parts(text, sorted(outside))
            if [number for number in ids if number in self._control_ids] != wanted:
                raise ChatFormatError("the tokenizer makes control tokens of text that does not spell them")
        return ids

    def _cuts(self, text: str, trusted: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
        """Where to split so that no spelling outside trusted text is whole; and the control ids that remain."""
        cuts, wanted, at, span = [], [], 0, 0
        while found := self._spelling.search(text, at):
            while span < len(trusted) and trusted[span][1] < found.end():
                span += 1
            if span < len(trusted) and trusted[span][0] <= found.start():
                wanted.append(self._control[found[0]])
                at = found.end()
            else:
                at = found.start() + 1
                cuts.append(at)
        return cuts, wanted

    def _encode_parts(self, text: str, cuts: Sequence[int]) -> list[int]:
        ids: list[int] = []
        for low, high in zip([0, *cuts], [*cuts, len(text)], strict=True):
            if low < high:
                ids += self._tokenizer.encode(text[low:high], add_special_tokens=False)
        return ids


def _unpaired(text: str) -> str:
    """Text a tokenizer can take: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
