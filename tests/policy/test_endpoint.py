"""The endpoint client against a real HTTP server with every fault it is meant to bear."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx
import pytest

from frognano.config.endpoint import EndpointSettings
from frognano.policy.contract import ContextOverflow, PolicyError, Sampling
from frognano.policy.endpoint import EndpointPolicy, EndpointSession
from frognano.policy.endpoint_errors import PromptCut
from frognano.policy.parser import CUT
from frognano.policy.scripted import Script, Turn, say
from frognano.policy.scripted_server import Fault, ScriptedServer
from frognano.records import Observation, Reply

FOREVER = 1e6
KEY = "sk-secret-123"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "Bash",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string"}, "timeout": {"type": "number"}},
                "required": ["command"],
            },
        },
    }
]
LOOK = say("Let me look.", ("Bash", {"command": "ls\n</parameter>", "timeout": 5}), reasoning="Hm, a list.")
Body = Callable[[EndpointSession, ScriptedServer], Awaitable[Any]]


def talk(script: Script, faults: Sequence[Fault], body: Body, stream: bool = True, **settings: Any) -> Any:
    async def run() -> Any:
        chosen = EndpointSettings(**{"backoff_s": 0.0, "stream": stream, **settings})
        async with ScriptedServer(script, faults) as server:
            async with EndpointPolicy(server.base_url, "scripted", KEY, chosen) as policy:
                session = await policy.open("Be brief.", "Fix it.", TOOLS, Sampling(seed=3))
                try:
                    return await body(session, server)
                finally:
                    await session.close()

    return asyncio.run(run())


async def first(session: EndpointSession, server: ScriptedServer) -> tuple[Reply, int]:
    return await session.reply(100, FOREVER), len(server.requests)


def answers(reply: Reply, text: str = "ok") -> list[Observation]:
    return [Observation(call_id=call.id, tool=call.name, text=text) for call in reply.calls]


streams = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@streams
def test_a_conversation_of_two_turns(stream: bool) -> None:
    async def body(session: EndpointSession, server: ScriptedServer) -> None:
        reply = await session.reply(100, FOREVER)
        assert (reply.content, reply.reasoning, reply.finish_reason) == ("Let me look.", "Hm, a list.", "tool_calls")
        assert reply.calls[0].arguments == {"command": "ls\n</parameter>", "timeout": 5}
        assert reply.usage.prompt_tokens > 0
        before = session.context_tokens
        session.observe(answers(reply))
        assert session.context_tokens > before
        last = await session.reply(100, FOREVER)
        assert (last.content, last.calls, last.finish_reason) == ("Fixed.", (), "stop")
        assert session.tokens() is None
        sent = server.requests[1]["messages"]
        assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
        assert sent[2]["reasoning_content"] == "Hm, a list."
        assert set(server.keys) == {KEY}
        assert server.requests[0]["max_tokens"] == 100
        assert server.requests[0]["seed"] == 3
        assert [message["role"] for message in session.messages][-1] == "assistant"

    talk([LOOK, say("Fixed.")], [], body, stream)


TRANSIENT: list[Fault] = [
    "rate_limited",
    "rate_limited_dated",
    "server_error",
    "unavailable",
    "cut_stream",
    "empty_choices",
    "empty_reply",
    "not_json",
    "error_in_stream",
]


@streams
@pytest.mark.parametrize("fault", TRANSIENT)
def test_what_may_pass_is_tried_again(fault: Fault, stream: bool) -> None:
    wholes = 0 if fault == "error_in_stream" and not stream else 1
    reply, requests = talk([LOOK], [fault, fault] if wholes else [], first, stream)
    assert reply.content == "Let me look."
    assert requests == 1 + 2 * wholes


def test_what_does_not_pass_ends_after_the_allowed_attempts() -> None:
    with pytest.raises(PolicyError, match=r"HTTP 503.*after 3 attempts"):
        talk([LOOK], ["unavailable"] * 9, first, retries=2)


@pytest.mark.parametrize(
    ("fault", "said"), [("unauthorized", "API key"), ("not_found", "/v1"), ("refused_history", "position 3")]
)
def test_a_refusal_is_not_tried_again(fault: Fault, said: str) -> None:
    async def body(session: EndpointSession, server: ScriptedServer) -> None:
        with pytest.raises(PolicyError, match=said):
            await session.reply(100, FOREVER)
        assert len(server.requests) == 1

    talk([LOOK], [fault, fault], body)


def test_a_full_context_ends_at_once() -> None:
    async def body(session: EndpointSession, server: ScriptedServer) -> None:
        with pytest.raises(ContextOverflow):
            await session.reply(100, FOREVER)
        assert len(server.requests) == 1

    talk([LOOK], ["context_overflow"] * 3, body)


def test_a_refused_field_is_renamed_and_stays_so() -> None:
    async def body(session: EndpointSession, server: ScriptedServer) -> None:
        session.observe(answers(await session.reply(100, FOREVER)))
        await session.reply(100, FOREVER)
        assert ["max_completion_tokens" in request for request in server.requests] == [False, True, True]

    talk([LOOK], ["refused_field", "refused_field"], body)


@streams
@pytest.mark.parametrize("fault", ["doubled_arguments", "object_arguments", "call_as_text", "wrong_finish", "no_ids"])
def test_calls_are_found_however_the_server_puts_them(fault: Fault, stream: bool) -> None:
    async def body(session: EndpointSession, server: ScriptedServer) -> None:
        reply = await session.reply(100, FOREVER)
        (call,) = reply.calls
        assert (call.name, call.error) == ("Bash", "")
        assert call.arguments == {"command": "ls\n</parameter>", "timeout": 5}
        assert reply.finish_reason == "tool_calls"
        assert reply.content == "Let me look."
        session.observe(answers(reply))
        assert (await session.reply(100, FOREVER)).content == "Done."

    talk([LOOK], [fault], body, stream)


def test_malformed_arguments_are_an_error_and_do_not_spoil_the_history() -> None:
    async def body(session: EndpointSession, server: ScriptedServer) -> None:
        reply = await session.reply(100, FOREVER)
        (call,) = reply.calls
        assert "not valid JSON" in call.error
        assert call.arguments == {}
        assert call.raw.startswith('{"command": ')
        session.observe(answers(reply, call.error))
        assert (await session.reply(100, FOREVER)).content == "Done."
        assert len(server.requests) == 2

    talk([LOOK], ["broken_arguments"], body)


def test_several_calls_without_ids_get_different_ones() -> None:
    async def body(session: EndpointSession, server: ScriptedServer) -> None:
        for _ in range(2):
            reply = await session.reply(100, FOREVER)
            session.observe(answers(reply))
        ids = [call["id"] for message in session.messages for call in message.get("tool_calls", ())]
        assert len(set(ids)) == 4

    twice = say("", ("Bash", {"command": "a"}), ("Bash", {"command": "b"}))
    talk([twice, twice], ["no_ids", "no_ids"], body)


@streams
def test_nothing_of_a_cut_reply_runs(stream: bool) -> None:
    turn = Turn(content="x", calls=(("Bash", {"command": "rm -rf build"}),), cut=True)
    reply, _ = talk([turn], [], first, stream)
    assert reply.finish_reason == "length"
    assert [call.error for call in reply.calls] == [CUT]


def test_thinking_in_the_text_is_taken_as_reasoning() -> None:
    reply, _ = talk([say("<think>\nplan\n</think>\n\nDone."), say("x")], [], first)
    assert (reply.reasoning, reply.content) == ("plan", "Done.")


def test_a_prompt_that_was_cut_in_silence_is_noticed() -> None:
    async def body(session: EndpointSession, server: ScriptedServer) -> None:
        reply = await session.reply(100, FOREVER)
        session.observe(answers(reply, "long " * 4000))
        with pytest.raises(PromptCut, match="num_ctx"):
            await session.reply(100, FOREVER)

    talk([LOOK], ["", "cut_prompt"], body)
    talk([LOOK], ["cut_prompt"], first)


def test_a_reply_does_not_outlast_its_wall_time() -> None:
    async def body(session: EndpointSession, server: ScriptedServer) -> None:
        with pytest.raises(TimeoutError):
            await session.reply(100, 0.2)

    talk([LOOK], ["hang"], body)


def test_a_server_that_is_not_there_is_tried_again_then_named() -> None:
    async def run() -> None:
        settings = EndpointSettings(backoff_s=0.0, retries=1)
        async with EndpointPolicy("http://127.0.0.1:9/v1", "m", KEY, settings) as policy:
            session = await policy.open("s", "u", [], Sampling())
            with pytest.raises(PolicyError, match="after 2 attempts"):
                await session.reply(10, FOREVER)

    asyncio.run(run())


@pytest.mark.parametrize("fault", ["unauthorized", "not_found", "server_error"])
def test_the_key_stands_in_no_error_log_or_repr(fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(PolicyError) as caught:
        talk([LOOK], [fault] * 2, first, retries=0)
    chain: list[str] = []
    error: BaseException | None = caught.value
    while error is not None:
        chain.append(f"{error!r} {error} {error.__dict__}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    policy = EndpointPolicy("http://me:pass-word@host/v1", "m", KEY)
    for text in (*chain, caplog.text, repr(policy), str(policy)):
        assert KEY not in text
        assert "pass-word" not in text


def test_the_server_lists_its_model_and_refuses_a_bad_history() -> None:
    async def run() -> None:
        async with ScriptedServer([LOOK]) as server, httpx.AsyncClient() as client:
            listed = await client.get(f"{server.base_url}/models")
            assert listed.json()["data"][0]["id"] == "scripted"
            call = {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": '{"cmd": "a'}}
            history = [{"role": "assistant", "content": "", "tool_calls": [call]}]
            refused = await client.post(f"{server.base_url}/chat/completions", json={"messages": history})
            assert refused.status_code == 400
            assert (await client.get(f"{server.base_url}/nothing")).status_code == 404

    asyncio.run(run())
