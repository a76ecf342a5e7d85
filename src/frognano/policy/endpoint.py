"""A policy behind an OpenAI-compatible chat endpoint.

Transient failures (429, 5xx, a connection or stream that breaks off, an answer without choices) are tried again with
growing waits; a full context ends at once as ContextOverflow; everything else the server refuses is an error at once.
A reply never outlasts its wall time. The API key goes into the request's header and nowhere else.

What it does NOT give: token ids, so no training; and what the server's chat template keeps of earlier reasoning is
the server's doing.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx

from frognano.config.endpoint import EndpointSettings
from frognano.policy.arguments import tool_shapes
from frognano.policy.contract import PolicyError, Sampling
from frognano.policy.endpoint_errors import PromptCut, Refused, Transient, failure
from frognano.policy.endpoint_reply import Completion, read_completion
from frognano.policy.messages import assistant_message, tool_messages
from frognano.records import Observation, Reply

_CHARACTERS_PER_TOKEN = 4
_LINE_END = re.compile(rb"\r\n|\r|\n")
_CUT_SHARE = 0.4
_CUT_LEAST_TOKENS = 1500
_EMPTY_RETRIES = 2
_OTHER_FIELD = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_OPTIONAL = ("stream_options", "parallel_tool_calls", "seed", "top_k", "tool_choice", "reasoning_content")


class EndpointPolicy:
    """Sessions on one chat endpoint."""

    def __init__(self, base_url: str, model: str, api_key: str = "", settings: EndpointSettings | None = None) -> None:
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._model = model
        self._key = api_key
        self.settings = settings or EndpointSettings()
        self._client: httpx.AsyncClient | None = None
        self._dropped: set[str] = set()
        self._token_field: str = self.settings.token_field

    def __repr__(self) -> str:
        return f"EndpointPolicy({self._shown(self._url)!r}, {self._model!r})"

    @property
    def name(self) -> str:
        """The model's name at the endpoint."""
        return self._model

    async def __aenter__(self) -> EndpointPolicy:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        local = urlsplit(self._url).hostname in {"localhost", "127.0.0.1", "::1"}
        self._client = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(None, connect=30.0),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=not local,
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def open(
        self, system: str, user: str, tools: Sequence[dict[str, Any]], sampling: Sampling
    ) -> EndpointSession:
        messages = [{"role": "system", "content": system}] if system.strip() else []
        return EndpointSession(self, [*messages, {"role": "user", "content": user}], tools, sampling)

    async def complete(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]], sampling: Sampling, max_tokens: int
    ) -> Completion:
        """One completion, after as many attempts as are allowed. Raises ContextOverflow, PolicyError."""
        attempt, empty = 0, 0
        noise = random.Random(sampling.seed)
        while True:
            try:
                done = await self._ask(self._body(messages, tools, sampling, max_tokens))
            except Transient as error:
                if attempt >= self.settings.retries:
                    raise PolicyError(f"{error} (after {attempt + 1} attempts)") from None
                await asyncio.sleep(self._wait(attempt, error.wait_s, noise))
                attempt += 1
            except Refused as error:
                if not self._adapt(error.text):
                    raise
            else:
                if not done.empty or empty >= min(_EMPTY_RETRIES, self.settings.retries):
                    return done
                empty += 1

    def _wait(self, attempt: int, asked: float | None, noise: random.Random) -> float:
        if asked is not None:
            return min(asked, 5 * self.settings.most_backoff_s)
        return min(self.settings.most_backoff_s, self.settings.backoff_s * 2.0**attempt) * noise.uniform(0.5, 1.0)

    def _adapt(self, text: str) -> bool:
        """Leave out or rename an optional field that the server names in its refusal; whether there was one."""
        if self._token_field in text and _OTHER_FIELD[self._token_field] not in self._dropped:
            self._dropped.add(self._token_field)
            self._token_field = _OTHER_FIELD[self._token_field]
            return True
        named = next((name for name in _OPTIONAL if name in text and name not in self._dropped), None)
        if named is None:
            return False
        self._dropped.add(named)
        return True

    def _body(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]], sampling: Sampling, max_tokens: int
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": list(messages),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            self._token_field: max_tokens,
        }
        if tools:
            body |= {"tools": list(tools), "tool_choice": "auto"}
            body["parallel_tool_calls"] = self.settings.parallel_tool_calls
        if sampling.top_k > 0:
            body["top_k"] = sampling.top_k
        if self.settings.send_seed:
            body["seed"] = sampling.seed % 2**31
        if self.settings.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if not self.settings.send_reasoning or "reasoning_content" in self._dropped:
            body["messages"] = [
                {key: value for key, value in message.items() if key != "reasoning_content"} for message in messages
            ]
        return {key: value for key, value in body.items() if key not in self._dropped} | self.settings.extra_body

    async def _ask(self, body: Mapping[str, Any]) -> Completion:
        if self._client is None:
            raise PolicyError("the endpoint is used outside its context manager")
        done = Completion()
        try:
            async with self._client.stream("POST", self._url, json=body) as response:
                if response.status_code != 200:
                    text = (await response.aread()).decode("utf-8", "replace")
                    raise failure(response.status_code, response.headers, text, self._shown(text))
                if "text/event-stream" in response.headers.get("content-type", ""):
                    await self._read_stream(response, done)
                else:
                    self._take(await response.aread(), done)
        except httpx.HTTPError as error:
            raise Transient(self._shown(f"{type(error).__name__}: {error}")) from None
        if not done.choices:
            raise Transient("the server answered without choices")
        return done

    async def _read_stream(self, response: httpx.Response, done: Completion) -> None:
        ended = False
        async for line in _lines(response):
            if not line.startswith(b"data:"):
                continue
            data = line.removeprefix(b"data:").strip()
            if data == b"[DONE]":
                ended = True
                break
            self._take(data, done)
        if not ended and not done.finish:
            raise Transient("the stream broke off before the reply was finished")

    def _take(self, data: bytes, done: Completion) -> None:
        try:
            body = json.loads(data)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise Transient("the server's answer is no JSON object")
        error = body.get("error")
        if error:
            text = json.dumps(error)
            code = error.get("code") if isinstance(error, dict) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 500
            raise failure(status, {}, text, self._shown(text))
        done.add(body)

    def _shown(self, text: str) -> str:
        """Text from outside without the key or a password in a URL."""
        parts = urlsplit(self._url)
        for secret in (self._key, parts.password):
            if secret:
                text = text.replace(secret, "***")
        return text


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """The lines of an event stream. Only CR and LF end one: JSON may hold U+2028 or U+0085 as they are."""
    rest = b""
    async for piece in response.aiter_bytes():
        *lines, rest = _LINE_END.split(rest + piece)
        for line in lines:
            yield line
    yield rest


class EndpointSession:
    """One conversation with a chat endpoint."""

    def __init__(
        self,
        policy: EndpointPolicy,
        messages: list[dict[str, Any]],
        tools: Sequence[dict[str, Any]],
        sampling: Sampling,
    ) -> None:
        self._policy, self._messages, self._tools, self._sampling = policy, messages, tools, sampling
        self._shapes = tool_shapes(tools)
        self._turn = 0
        self._ids: set[str] = set()
        self._counted = 0
        self._last_prompt = 0
        self._uncounted = _characters(messages)

    @property
    def context_tokens(self) -> int:
        """As the server counted, and four characters a token for what it has not seen."""
        return self._counted + -(-self._uncounted // _CHARACTERS_PER_TOKEN)

    @property
    def messages(self) -> Sequence[dict[str, Any]]:
        return self._messages

    async def reply(self, max_tokens: int, timeout_s: float) -> Reply:
        limit = min(max_tokens, self._sampling.max_tokens)
        async with asyncio.timeout(timeout_s):
            done = await self._policy.complete(self._messages, self._tools, self._sampling, limit)
        reply = read_completion(done, self._tools, self._shapes, self._ids, f"call_{self._turn}")
        self._check_prompt(reply.usage.prompt_tokens)
        self._turn += 1
        self._ids |= {call.id for call in reply.calls}
        self._messages.append(assistant_message(reply))
        if reply.usage.prompt_tokens:
            self._counted, self._uncounted = reply.usage.prompt_tokens + reply.usage.completion_tokens, 0
        else:
            self._uncounted += _characters(self._messages[-1:])
        return reply

    def _check_prompt(self, read: int) -> None:
        """Raise PromptCut when the server read far less than was sent, or less than the turn before."""
        if not read or not self._policy.settings.check_prompt:
            return
        sent = _characters(self._messages) // _CHARACTERS_PER_TOKEN
        if (sent >= _CUT_LEAST_TOKENS and read < _CUT_SHARE * sent) or read < 0.9 * self._last_prompt:
            raise PromptCut(
                f"the server read {read} tokens of a conversation of about {max(sent, self._last_prompt)}: it cut the "
                "prompt without saying so. Give it a larger context (Ollama: PARAMETER num_ctx 65536 in a Modelfile; "
                "llama.cpp: --ctx-size), or switch check_prompt off if its count is wrong"
            )
        self._last_prompt = read

    def observe(self, observations: Sequence[Observation]) -> None:
        messages = tool_messages(observations)
        self._messages += messages
        self._uncounted += _characters(messages)

    def tokens(self) -> None:
        return None

    async def close(self) -> None:
        """Nothing is held."""


def _characters(messages: Sequence[Mapping[str, Any]]) -> int:
    """Characters of what the model reads in these messages."""
    total = 0
    for message in messages:
        total += len(str(message.get("content") or ""))
        total += sum(len(call["function"]["arguments"]) for call in message.get("tool_calls") or ())
    return total
