"""A deterministic model that says what a script says, in this process. For tests and for trying the machinery.

A script is a list of turns, said in order in every conversation, or a function from the conversation's messages to the
next turn. After the last turn of a list the model says ``Done.``. The same scripts drive ``ScriptedServer``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frognano.policy.contract import PolicyError, Sampling
from frognano.policy.messages import assistant_message, tool_messages
from frognano.records import Observation, Record, Reply, ToolCall, Usage

_CHARACTERS_PER_TOKEN = 4


class Turn(Record):
    """One turn of a scripted model."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    """(tool, arguments) in order."""
    cut: bool = False
    """The turn ends by its token limit."""


Script = Sequence[Turn] | Callable[[Sequence[Mapping[str, Any]]], Turn]


def say(content: str = "", *calls: tuple[str, dict[str, Any]], reasoning: str = "") -> Turn:
    """A turn with these calls: ``say("Let me look.", ("Read", {"file_path": "a.py"}))``."""
    return Turn(content=content, reasoning=reasoning, calls=calls)


def next_turn(script: Script, messages: Sequence[Mapping[str, Any]]) -> Turn:
    """What the script says to this conversation; it depends on nothing else."""
    if callable(script):
        return script(messages)
    said = sum(message.get("role") == "assistant" for message in messages)
    return script[said] if said < len(script) else Turn(content="Done.")


def tokens_of(messages: Sequence[Mapping[str, Any]]) -> int:
    """A token count: four characters a token."""
    text = "".join(f"{message.get('content')}{message.get('tool_calls') or ''}" for message in messages)
    return len(text) // _CHARACTERS_PER_TOKEN + 1


class ScriptedPolicy:
    """Sessions that follow a script; ``sessions`` keeps them for a look afterwards."""

    def __init__(self, script: Script, name: str = "scripted") -> None:
        self._script = script
        self._name = name
        self.sessions: list[ScriptedSession] = []

    @property
    def name(self) -> str:
        return self._name

    async def __aenter__(self) -> ScriptedPolicy:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Nothing is held."""

    async def open(
        self, system: str, user: str, tools: Sequence[dict[str, Any]], sampling: Sampling
    ) -> ScriptedSession:
        session = ScriptedSession(self._script, system, user)
        self.sessions.append(session)
        return session


class ScriptedSession:
    """One scripted conversation."""

    def __init__(self, script: Script, system: str, user: str) -> None:
        self._script = script
        self._messages: list[dict[str, Any]] = [
            {"role": "system", "content": system},
            {"role": "user", "content": user},
        ]
        self._unanswered: list[str] = []
        self._turn = 0
        self.closed = False

    @property
    def context_tokens(self) -> int:
        return tokens_of(self._messages)

    @property
    def messages(self) -> Sequence[dict[str, Any]]:
        return self._messages

    async def reply(self, max_tokens: int, timeout_s: float) -> Reply:
        if self._unanswered:
            raise PolicyError(f"calls without an answer: {', '.join(self._unanswered)}")
        turn = next_turn(self._script, self._messages)
        calls = tuple(
            ToolCall(id=f"call_{self._turn}_{number}", name=name, arguments=arguments)
            for number, (name, arguments) in enumerate(turn.calls)
        )
        self._turn += 1
        reply = Reply(
            content=turn.content,
            reasoning=turn.reasoning,
            calls=calls,
            finish_reason="length" if turn.cut else "tool_calls" if calls else "stop",
            usage=Usage(prompt_tokens=self.context_tokens, completion_tokens=tokens_of([{"content": turn.content}])),
        )
        self._unanswered = [call.id for call in calls]
        self._messages.append(assistant_message(reply))
        return reply

    def observe(self, observations: Sequence[Observation]) -> None:
        answered = [each.call_id for each in observations]
        if answered != self._unanswered:
            raise PolicyError(f"answers for {answered}, wanted for {self._unanswered}")
        self._unanswered = []
        self._messages += tool_messages(observations)

    def tokens(self) -> None:
        return None

    async def close(self) -> None:
        self.closed = True
