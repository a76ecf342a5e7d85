"""The scripted model says its script, in this process and over HTTP alike."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from frognano.config.endpoint import EndpointSettings
from frognano.policy.contract import Policy, PolicyError, Sampling
from frognano.policy.endpoint import EndpointPolicy
from frognano.policy.scripted import ScriptedPolicy, Turn, say
from frognano.policy.scripted_server import ScriptedServer
from frognano.records import Observation

FOREVER = 1e6


async def _said(policy: Policy) -> list[str]:
    async with policy:
        session = await policy.open("s", "u", [], Sampling())
        texts = []
        for _ in range(4):
            reply = await session.reply(100, FOREVER)
            texts.append(reply.content)
            if not reply.calls:
                break
            session.observe([Observation(call_id=call.id, tool=call.name, text="seen") for call in reply.calls])
        await session.close()
        return texts


def _echo(messages: Sequence[Mapping[str, Any]]) -> Turn:
    if messages[-1]["role"] == "tool":
        return say(f"It said {messages[-1]['content']}.")
    return say("Look.", ("Read", {"file_path": "a"}))


@pytest.mark.parametrize("script", [_echo, [say("Look.", ("Read", {})), say("It said seen.")]])
def test_a_script_is_a_list_or_a_function_of_the_conversation(script: Any) -> None:
    async def served() -> list[str]:
        async with ScriptedServer(script) as server:
            return await _said(EndpointPolicy(server.base_url, "m", settings=EndpointSettings(backoff_s=0)))

    assert asyncio.run(_said(ScriptedPolicy(script))) == ["Look.", "It said seen."]
    assert asyncio.run(served()) == ["Look.", "It said seen."]


def test_after_its_script_the_model_is_done() -> None:
    assert asyncio.run(_said(ScriptedPolicy([]))) == ["Done."]


def test_every_call_must_be_answered_in_order() -> None:
    async def run() -> None:
        session = await ScriptedPolicy([say("", ("A", {}), ("B", {}))]).open("s", "u", [], Sampling())
        reply = await session.reply(1, 1)
        with pytest.raises(PolicyError, match="without an answer"):
            await session.reply(1, 1)
        with pytest.raises(PolicyError, match="wanted for"):
            session.observe([Observation(call_id=reply.calls[1].id, tool="B", text="")])

    asyncio.run(run())
