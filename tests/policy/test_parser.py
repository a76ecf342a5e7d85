"""The parser runs a call as it was written or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frognano.policy.arguments import tool_shapes
from frognano.policy.parser import CUT, ParsedReply, parse_arguments, parse_reply, render_call


def _tool(name: str, required: tuple[str, ...], **properties: str) -> dict[str, Any]:
    fields = {key: {"type": kind} for key, kind in properties.items()}
    parameters = {"type": "object", "properties": fields, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


TOOLS = [
    _tool("Read", ("file_path",), file_path="string", offset="integer", limit="integer"),
    _tool("Write", ("file_path", "content"), file_path="string", content="string"),
    _tool(
        "Edit",
        ("file_path", "old_string", "new_string"),
        file_path="string",
        old_string="string",
        new_string="string",
        replace_all="boolean",
    ),
    _tool("Bash", ("command",), command="string", description="string", timeout="number"),
]


def read(text: str, **options: Any) -> ParsedReply:
    return parse_reply(text, TOOLS, **options)


def only(text: str, **options: Any) -> dict[str, Any]:
    (call,) = read(text, **options).calls
    assert not call.error, call.error
    return call.arguments


def error_of(text: str, **options: Any) -> str:
    (call,) = read(text, **options).calls
    assert call.error
    assert not call.arguments
    return call.error


def write(content: str) -> str:
    return render_call("Write", {"file_path": "a.md", "content": content})


def test_a_plain_call_is_read_with_the_prose_before_it() -> None:
    reply = read("Let me look.\n\n" + render_call("Bash", {"command": "ls -la\nls"}))
    assert reply.content == "Let me look."
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        ("call_0", "Bash", {"command": "ls -la\nls"})
    ]


def test_several_calls_keep_their_order() -> None:
    text = "\n".join([render_call("Read", {"file_path": name}) for name in ("a", "b", "c")])
    assert [call.arguments["file_path"] for call in read(text).calls] == ["a", "b", "c"]


def test_a_call_without_parameters_is_a_call() -> None:
    (call,) = read("<tool_call>\n<function=Glob>\n</function>\n</tool_call>").calls
    assert (call.name, call.arguments, call.error) == ("Glob", {}, "")


@pytest.mark.parametrize(
    "value",
    [
        "see </parameter> tag",
        "<parameter=a>\n1\n</parameter>",
        "x\n<parameter=file_path>\n1\n</parameter>\ny",
        "text </tool_call> text",
        "a\n</function>\nb",
        "x\n</parameter>\n</function>\n</tool_call>\ny",
        "x\n</parameter>\n</function>\ny",
        "</parameter>\n</function>\n</tool_call>",
        render_call("Bash", {"command": "rm -rf /"}),
        "Run:\n"
        + render_call("Bash", {"command": "ls"})
        + "\nThen:\n"
        + render_call("Bash", {"command": "rm x"})
        + "\n",
        render_call("Write", {"file_path": "b", "content": render_call("Bash", {"command": "ls"})}),
        "<tool_call>\n<function=Bash>\n<parameter=command>\nls",
        "```\n" + render_call("Bash", {"command": "ls"}) + "\n```",
        "<think>x</think>",
        "",
        "\n",
        "\n\n  lead and trail \n\n",
        '{"a": "b"}',
        "\r\nx\r\n",
    ],
)
def test_a_value_that_holds_tags_is_recovered_in_full(value: str) -> None:
    assert only(write(value)) == {"file_path": "a.md", "content": value}


def test_tags_in_one_of_several_calls_do_not_disturb_the_others() -> None:
    calls = read(write("see </parameter> tag") + "\n" + render_call("Bash", {"command": "ls"})).calls
    assert [call.arguments.get("content", call.arguments.get("command")) for call in calls] == [
        "see </parameter> tag",
        "ls",
    ]


def test_an_ambiguous_text_is_an_error_and_never_a_shortened_call() -> None:
    opened = "<tool_call>\n<function=Bash>\n<parameter=command>\nls"
    assert "more than one way" in error_of(write(opened) + "\n" + render_call("Bash", {"command": "ls"}))
    assert "more than one way" in error_of(
        "<tool_call>\n<function=Bash>\n<parameter=command>\ncat\n<parameter=description>\nfoo\nEOF\n"
        "</parameter>\n</function>\n</tool_call>"
    )


SNIPPETS = [
    "<tool_call>",
    "</tool_call>",
    "<function=Bash>",
    "</function>",
    "<parameter=command>",
    "<parameter=content>",
    "<parameter=other>",
    "</parameter>",
    "\n",
    "x",
    " ",
    "```",
    "<think>",
    "</think>",
    "`",
]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.lists(st.sampled_from(SNIPPETS), max_size=8)), min_size=1, max_size=3))
def test_whatever_runs_is_letter_for_letter_what_was_written(parts: list[tuple[bool, list[str]]]) -> None:
    calls = [
        ("Write", {"file_path": "f", "content": "".join(value)}) if long else ("Bash", {"command": "".join(value)})
        for long, value in parts
    ]
    text = "\n".join(render_call(name, arguments) for name, arguments in calls)
    found = parse_reply(text, TOOLS).calls
    assert found
    if not any(call.error for call in found):
        assert "\n".join(render_call(call.name, call.arguments) for call in found) == text


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab</>=\n &é"), max_size=40), st.integers(-(10**6), 10**6), st.booleans())
def test_render_and_parse_are_inverse(text: str, offset: int, flag: bool) -> None:
    assert only(render_call("Read", {"file_path": text, "offset": offset})) == {"file_path": text, "offset": offset}
    edit = {"file_path": "a", "old_string": text, "new_string": text[::-1], "replace_all": flag}
    assert only(render_call("Edit", edit)) == edit


def test_a_missing_closing_parameter_is_tolerated() -> None:
    assert only("<tool_call>\n<function=Bash>\n<parameter=command>\nls -la\n</function>\n</tool_call>") == {
        "command": "ls -la"
    }
    assert only(
        "<tool_call>\n<function=Write>\n<parameter=file_path>\na.py\n<parameter=content>\nx\n</parameter>\n"
        "</function>\n</tool_call>"
    ) == {"file_path": "a.py", "content": "x"}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("<function=Bash>\n<parameter=\nls\n</parameter>\n</function>\n</tool_call>", "<parameter="),
        ("<function=Bash>\n<parameter>\nls\n</parameter>\n</function>\n</tool_call>", "<parameter>"),
        ("<function=>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>", "<function=>"),
        ("<function=Bash>\n<parameter=command>\nls\n</parameter>\n</tool_call>", "</tool_call>"),
        ("<function=Bash>\nls\n</function>\n</tool_call>", "<parameter=NAME>"),
        ("<function=Bash>\n<parameter=command>\nls", "</parameter>"),
        ("<functoin=Bash>\n</function>\n</tool_call>", "<functoin"),
        ("", "<function=NAME>"),
    ],
)
def test_a_malformed_tag_is_named(body: str, named: str) -> None:
    error = error_of("<tool_call>\n" + body)
    assert named in error
    assert "not run" in error


def test_a_malformed_call_does_not_take_a_good_one_before_it_along() -> None:
    text = render_call("Bash", {"command": "ls"}) + "\n<tool_call>\n<function=Bash>\n<parameter=\nx\n</parameter>"
    good, bad = read(text + "\n</function>\n</tool_call>").calls
    assert good.arguments == {"command": "ls"}
    assert "<parameter=" in bad.error


def test_a_key_given_twice_is_an_error() -> None:
    body = "<parameter=command>\nls\n</parameter>\n<parameter=command>\nrm\n</parameter>\n"
    assert error_of(f"<tool_call>\n<function=Bash>\n{body}</function>\n</tool_call>")


def test_calls_inside_thinking_are_not_executed() -> None:
    call = render_call("Bash", {"command": "rm x"})
    assert read(f"I could {call}\n</think>\n\nDone.", thinking=True).calls == ()
    assert read(f"<think>\n{call}\n</think>\n\nDone.").content == "Done."
    assert read(f"<think>\n{call}").calls == ()
    after = read(f"hm {call}</think>\n\n{render_call('Bash', {'command': 'ls'})}", thinking=True)
    assert [call.arguments for call in after.calls] == [{"command": "ls"}]
    assert read(f"First.\n<think>\n{call}\n</think>\nDone.").calls == ()


def test_reasoning_is_split_at_the_closing_tag() -> None:
    reply = read("reason</think>answer", thinking=True)
    assert (reply.reasoning, reply.content) == ("reason", "answer")
    assert read("reason</think>answer").reasoning == "reason"


def test_a_closing_think_tag_inside_a_value_is_text() -> None:
    assert only(write("a</think>b"))["content"] == "a</think>b"


def test_a_call_in_a_closed_code_fence_is_talk() -> None:
    call = render_call("Bash", {"command": "ls"})
    reply = read(f"The format is:\n```xml\n{call}\n```\nUse it.")
    assert reply.calls == ()
    assert call in reply.content
    assert read(f"Write `{call}` to call.").calls == ()


def test_a_call_after_a_code_fence_runs_and_an_unclosed_fence_is_an_error() -> None:
    call = render_call("Bash", {"command": "ls"})
    assert only(f"```python\nx = 1\n```\n{call}") == {"command": "ls"}
    assert "code fence" in error_of(f"```bash\n{call}")


def test_prose_that_names_the_tags_calls_nothing() -> None:
    for text in ("Use the <tool_call> tag.", "It ends with </tool_call>.", "A `<function=Bash>` line.", "<tool>"):
        assert read(text).calls == ()
        assert read(text).content == text


def test_a_call_squeezed_into_one_line_or_without_wrapper_is_read() -> None:
    squeezed = "Look: <tool_call><function=Bash><parameter=command>ls</parameter></function></tool_call>"
    assert only(squeezed) == {"command": "ls"}
    assert only("<function=Bash>\n<parameter=command>\nls\n</parameter>\n</function>") == {"command": "ls"}


def test_nothing_of_a_reply_cut_by_length_runs() -> None:
    whole = render_call("Bash", {"command": "ls"})
    calls = read(whole + "\n<tool_call>\n<function=Bash>\n<parameter=command>\nrm -rf build", cut=True).calls
    assert [call.error for call in calls] == [CUT, CUT]
    assert [call.arguments for call in calls] == [{}, {}]


def test_values_are_typed_by_the_schema_and_strings_never_decoded() -> None:
    assert only(render_call("Read", {"file_path": "12", "offset": 3, "limit": 10})) == {
        "file_path": "12",
        "offset": 3,
        "limit": 10,
    }
    text = "<tool_call>\n<function=Edit>\n<parameter=file_path>\nnull\n</parameter>\n<parameter=replace_all>\nTrue\n"
    assert only(text + "</parameter>\n</function>\n</tool_call>") == {"file_path": "null", "replace_all": True}
    assert only(render_call("Bash", {"command": "x", "timeout": 1.5}))["timeout"] == 1.5
    assert only(render_call("Bash", {"command": "x", "timeout": "soon"}))["timeout"] == "soon"
    assert only(render_call("Bash", {"command": "x", "timeout": "NaN"}))["timeout"] == "NaN"


def test_json_between_the_tags_is_read_too() -> None:
    text = (
        '<tool_call>\n{"name": "Write", "arguments": {"file_path": "a", "content": "</tool_call> {x}"}}\n</tool_call>'
    )
    assert only(text) == {"file_path": "a", "content": "</tool_call> {x}"}
    assert "JSON" in error_of('<tool_call>\n{"name": "Write", "arguments": {"file_path": \n</tool_call>')


def test_a_document_full_of_examples_is_read_quickly_and_in_full() -> None:
    value = "\n".join(f"{n}\n" + render_call("Bash", {"command": f"echo {n}"}) for n in range(300))
    assert only(write(value))["content"] == value


def test_hopelessly_tangled_tags_end_in_an_error() -> None:
    tangled = "<parameter=content>\n</parameter>\n<parameter=file_path>\n" * 200
    assert all(call.error for call in read(write(tangled)).calls)


SHAPES = tool_shapes(TOOLS)


@pytest.mark.parametrize(
    "raw",
    [
        '{"command": "ls"}',
        '"{\\"command\\": \\"ls\\"}"',
        {"command": "ls"},
        '\\n{"command": \\n"ls"\\n}',
    ],
)
def test_json_arguments_are_unwrapped_and_repaired_outside_strings(raw: object) -> None:
    assert parse_arguments(raw, SHAPES["Bash"]) == ({"command": "ls"}, "")


def test_json_contents_of_a_string_field_survive() -> None:
    raw = '{"file_path": "a.json", "content": "{\\"a\\": 1}\\\\n"}'
    assert parse_arguments(raw, SHAPES["Write"]) == ({"file_path": "a.json", "content": '{"a": 1}\\n'}, "")
    repaired = parse_arguments('{"a": "x\\ny", "b": \\n[1, 2]}')
    assert repaired == ({"a": "x\ny", "b": [1, 2]}, "")


def test_absent_arguments_are_no_arguments() -> None:
    assert parse_arguments(None) == parse_arguments("") == parse_arguments("{}") == ({}, "")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"command": "a', "character"),
        ("[1, 2]", "list"),
        ("3", "int"),
        ('{"a": 1, "a": 2}', "more than once"),
        ('{"a": NaN}', "NaN"),
        ("[" * 100_000, "nested"),
    ],
)
def test_broken_json_arguments_say_what_is_wrong(raw: str, said: str) -> None:
    arguments, error = parse_arguments(raw)
    assert arguments == {}
    assert said in error
