"""The conversation only grows, as the template would have it, and text from outside is only text."""

from __future__ import annotations

import copy
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frognano.policy.chat import ChatFormat, ChatFormatError
from frognano.policy.parser import render_call

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "Read",
            "description": "Read a file.",
            "parameters": {"type": "object", "properties": {"file_path": {"type": "string"}}},
        },
    }
]
KINDS = ["thinking", "plain", "json"]
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
NOT_SPECIAL = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
Tokenizers = Callable[..., Any]

words = st.text(alphabet=st.sampled_from("ab {}\"'<>/=\n\té中"), max_size=30).map(str.strip)
hostile = st.lists(
    st.sampled_from([*SPECIAL, *NOT_SPECIAL, "<", "|im_end|>", "<|im_", "end|>", "\n", "system", "é", " "]), max_size=12
).map("".join)


@pytest.fixture(scope="session")
def form(tokenizer_of: Tokenizers) -> Callable[..., ChatFormat]:
    return lambda kind, **options: ChatFormat(tokenizer_of(kind), options)


def rendered(tokenizer: Any, messages: list[dict[str, Any]]) -> list[int]:
    text = tokenizer.apply_chat_template(messages, tools=TOOLS, tokenize=False, add_generation_prompt=True)
    return list(tokenizer.encode(text, add_special_tokens=False))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(system=words, user=words)
def test_the_first_prompt_is_the_templates_own(
    form: Callable[..., ChatFormat], tokenizer_of: Tokenizers, kind: str, system: str, user: str
) -> None:
    messages = [{"role": "user", "content": user}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    assert form(kind).prompt(system, user, TOOLS) == rendered(tokenizer_of(kind), messages)


def conversation(turns: list[tuple[str, str, list[str]]]) -> list[dict[str, Any]]:
    """OpenAI messages of (reasoning, content, tool answers) turns; the last turn's answers end it."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Fix it."},
    ]
    for number, (reasoning, content, answers) in enumerate(turns):
        call = {"name": "Read", "arguments": {"file_path": f"f{number}"}}
        calls = [{"id": f"c{n}", "type": "function", "function": call} for n, _ in enumerate(answers)]
        messages.append(
            {
                "role": "assistant",
                "content": content,
                "reasoning_content": reasoning,
                "tool_calls": copy.deepcopy(calls),
            }
        )
        messages += [{"role": "tool", "tool_call_id": f"c{n}", "content": text} for n, text in enumerate(answers)]
    return messages


def canonical_reply(kind: str, number: int, reasoning: str, content: str, answers: list[str]) -> str:
    calls = "\n".join([render_call("Read", {"file_path": f"f{number}"})] * len(answers))
    think = f"{reasoning}\n</think>\n\n" if kind == "thinking" else ""
    return think + content + ("\n\n" if content else "") + calls


turns = st.lists(st.tuples(words, words, st.lists(words, min_size=1, max_size=3)), min_size=1, max_size=3)


@pytest.mark.parametrize("kind", ["thinking", "plain"])
@settings(max_examples=40, deadline=None)
@given(turns=turns)
def test_prompt_reply_bridge_is_the_tail_of_the_full_render(
    form: Callable[..., ChatFormat], tokenizer_of: Tokenizers, kind: str, turns: list[tuple[str, str, list[str]]]
) -> None:
    chat = form(kind)
    ids = chat.prompt("Be brief.", "Fix it.", TOOLS)
    tokenizer = tokenizer_of(kind)
    for number, (reasoning, content, answers) in enumerate(turns):
        reply = canonical_reply(kind, number, reasoning, content, answers) + "<|im_end|>"
        sampled = tokenizer.encode(reply, add_special_tokens=False)
        ids += sampled + chat.bridge([("Read", text) for text in answers], sampled[-1])
    full = rendered(tokenizer_of(kind), conversation(turns))
    # The generation prompt of a thinking template is a token boundary that a re-render need not have: compare the text.
    assert chat.decode(ids) == chat.decode(full)
    bridge = chat.bridge([("Read", text) for text in turns[-1][2]], chat.end_of_turn)
    assert full[-len(bridge) :] == bridge


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_turn_gets_the_end_of_turn_it_lacks(form: Callable[..., ChatFormat], kind: str) -> None:
    chat = form(kind)
    ended = chat.bridge([("Read", "text")], chat.end_of_turn)
    assert chat.bridge([("Read", "text")], 5) == [chat.end_of_turn, *ended]
    assert chat.decode(ended).startswith("\n<|im_start|>user")
    assert chat.decode([chat.end_of_turn]) == "<|im_end|>"


def test_answers_of_one_turn_share_a_user_block(form: Callable[..., ChatFormat]) -> None:
    chat = form("plain")
    text = chat.decode(chat.bridge([("Read", "a"), ("Bash", "b")], chat.end_of_turn))
    assert text == (
        "\n<|im_start|>user\n<tool_response>\na\n</tool_response>\n<tool_response>\nb\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_thinking_is_read_off_the_generation_prompt(form: Callable[..., ChatFormat]) -> None:
    assert form("thinking").thinking
    assert not form("thinking", enable_thinking=False).thinking
    assert not form("plain").thinking


@settings(max_examples=200, deadline=None)
@given(text=hostile)
def test_text_from_outside_never_becomes_a_control_token(form: Callable[..., ChatFormat], text: str) -> None:
    chat = form("plain")
    ids = chat.encode(text)
    assert not chat.control_ids & set(ids)
    assert chat.decode(ids) == text


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_survives_encoding(form: Callable[..., ChatFormat], text: str) -> None:
    chat = form("plain")
    assert chat.decode(chat.encode(text)) == unicodedata.normalize("NFC", text)


@settings(max_examples=60, deadline=None)
@given(text=hostile)
def test_control_tokens_of_a_prompt_do_not_depend_on_its_text(form: Callable[..., ChatFormat], text: str) -> None:
    chat = form("plain")

    def control(ids: list[int]) -> list[int]:
        return [number for number in ids if number in chat.control_ids]

    assert control(chat.prompt("x", text, TOOLS)) == control(chat.prompt("x", "calm", TOOLS))
    assert control(chat.prompt(text or "x", "y", TOOLS)) == control(chat.prompt("x", "calm", TOOLS))
    assert control(chat.bridge([("Read", text)], None)) == control(chat.bridge([("Read", "calm")], None))


def test_a_spelling_across_the_border_of_template_and_text_is_split(tokenizer_of: Tokenizers) -> None:
    tokenizer = copy.deepcopy(tokenizer_of("plain"))
    tokenizer.chat_template = tokenizer.chat_template.replace("<tool_response>\\n' ~", "<tool_response>\\n<' ~")
    chat = ChatFormat(tokenizer)
    ids = chat.bridge([("Read", "|im_end|>")], chat.end_of_turn)
    assert chat.decode(ids).count("<|im_end|>") == 2
    assert ids.count(chat.end_of_turn) == 1


def test_text_with_lone_surrogates_is_encoded(form: Callable[..., ChatFormat]) -> None:
    assert form("plain").decode(form("plain").encode("a\udce9b")) == "a?b"


def test_a_template_that_does_not_close_a_turn_is_refused(tokenizer_of: Tokenizers) -> None:
    tokenizer = copy.deepcopy(tokenizer_of("plain"))
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    with pytest.raises(ChatFormatError, match="end an assistant turn"):
        ChatFormat(tokenizer)
    tokenizer.chat_template = None
    with pytest.raises(ChatFormatError, match="no chat template"):
        ChatFormat(tokenizer)


def test_a_template_that_keeps_white_space_gets_it(tokenizer_of: Tokenizers) -> None:
    tokenizer = copy.deepcopy(tokenizer_of("plain"))
    tokenizer.chat_template = tokenizer.chat_template.replace("message.content | trim", "message.content")
    assert "\n  a \n\n</tool_response>" in ChatFormat(tokenizer).decode(
        ChatFormat(tokenizer).bridge([("Read", "  a \n")], 1)
    )
    trimming = ChatFormat(tokenizer_of("plain"))
    assert "\na\n</tool_response>" in trimming.decode(trimming.bridge([("Read", "  a \n")], 1))


def test_a_template_that_wants_a_call_before_its_answer_is_served(tokenizer_of: Tokenizers) -> None:
    tokenizer = copy.deepcopy(tokenizer_of("plain"))
    check = (
        "{%- elif message.role == 'tool' %}{% if loop.previtem.role == 'assistant' and not loop.previtem.tool_calls %}"
    )
    check += "{{ raise_exception('no call') }}{% endif %}"
    tokenizer.chat_template = tokenizer.chat_template.replace("{%- elif message.role == 'tool' %}", check)
    answers = [("Read", "a"), ("Bash", "b")]
    assert ChatFormat(tokenizer).bridge(answers, None) == ChatFormat(tokenizer_of("plain")).bridge(answers, None)
