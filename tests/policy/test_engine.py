"""The engine records what it really sampled, whoever shares a batch with whom."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from frognano.config.engine import EngineSettings
from frognano.policy.chat import ChatFormat
from frognano.policy.checkpoint import load_model
from frognano.policy.contract import ContextOverflow, PolicyError, Sampling
from frognano.policy.engine import TorchEngine
from frognano.policy.generation import Conversation, Generation
from frognano.policy.token_policy import TokenPolicy, checkpoint_policy
from frognano.records import Observation, TokenRow

Models = Callable[..., Any]
FOREVER = 1e6
NEVER: frozenset[int] = frozenset()


def _text(seed: int, length: int) -> list[int]:
    return torch.randint(0, 400, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def _teacher(model: Any, ids: Sequence[int], temperature: float = 1.0) -> list[float]:
    """Log-probability of every token after the first, from one plain forward pass."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits[0].float() / temperature
    found = torch.log_softmax(logits[:-1], dim=-1)
    return found.gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()


def _gaps(model: Any, row: TokenRow, shift: int = 0) -> tuple[float, float]:
    """Mean and largest |log p − log q| over the sampled tokens; ``shift`` misplaces q on purpose."""
    wanted = [0.0, *_teacher(model, row.ids)]
    places = [place for place, sampled in enumerate(row.mask) if sampled]
    gaps = [abs(wanted[min(place + shift, len(wanted) - 1)] - row.logprobs[place]) for place in places]
    return sum(gaps) / len(gaps), max(gaps)


class Talk:
    """Several turns of one conversation on an engine; keeps the row."""

    def __init__(self, engine: TorchEngine, sampling: Sampling) -> None:
        self.engine, self.conversation = engine, engine.open(sampling)
        self.ids: list[int] = []
        self.mask: list[int] = []
        self.logprobs: list[float] = []

    def say(self, new: list[int], most: int, stop: frozenset[int] = NEVER) -> Any:
        self.ids, self.mask = self.ids + new, self.mask + [0] * len(new)
        self.logprobs += [0.0] * len(new)
        return self.engine.submit(self.conversation, new, most, stop)

    def hear(self, generation: Generation) -> Generation:
        self.ids, self.mask = self.ids + list(generation.ids), self.mask + [1] * len(generation.ids)
        self.logprobs += generation.logprobs
        return generation

    def row(self) -> TokenRow:
        return TokenRow(ids=tuple(self.ids), mask=tuple(self.mask), logprobs=tuple(self.logprobs))


def _after_steps(engine: TorchEngine, steps: int) -> None:
    while engine.stats().steps < steps:
        threading.Event().wait(0.002)


@pytest.fixture
def engine_of(model_of: Models) -> Any:
    engines: list[TorchEngine] = []

    def build(kind: str = "hybrid", enlarge: float = 3.0, **settings: Any) -> TorchEngine:
        engine = TorchEngine(model_of(kind, enlarge), EngineSettings(**settings))
        engines.append(engine)
        engine.start()
        return engine

    yield build
    for engine in engines:
        engine.stop()


@pytest.mark.parametrize("kind", ["hybrid", "qwen3"])
def test_at_lag_zero_the_recorded_log_probabilities_are_the_models(engine_of: Any, model_of: Models, kind: str) -> None:
    engine = engine_of(kind, max_rows=5)
    talks = [Talk(engine, Sampling(seed=n)) for n in range(8)]
    for turn in range(3):
        answers = [talk.say(_text(10 * turn + n % 3, 5 + 7 * (n % 3)), 3 + 2 * n) for n, talk in enumerate(talks)]
        for talk, answer in zip(talks, answers, strict=True):
            assert talk.hear(answer.result()).finish == "length"
    plain = model_of(kind, 3.0)
    for talk in talks:
        mean, most = _gaps(plain, talk.row())
        assert mean <= 1e-4
        assert most <= 1e-2
        shifted, _ = _gaps(plain, talk.row(), shift=1)
        assert shifted > 0.1


def test_what_a_conversation_samples_does_not_depend_on_its_neighbours(engine_of: Any) -> None:
    def sampled(engine: TorchEngine, others: int) -> tuple[int, ...]:
        talk = Talk(engine, Sampling(seed=7))
        crowd = [Talk(engine, Sampling(seed=100 + n)) for n in range(others)]
        answers = [each.say(_text(n, 9 + n), 10 + n) for n, each in enumerate(crowd)]
        first = talk.hear(talk.say(_text(50, 20), 20).result())
        second = talk.hear(talk.say(_text(51, 6), 20).result())
        for answer in answers:
            answer.result()
        return first.ids + second.ids

    alone = sampled(engine_of(), 0)
    assert sampled(engine_of(), 6) == alone
    assert sampled(engine_of(max_rows=2), 6) == alone


def test_equal_seeds_sample_alike_and_different_ones_differ(engine_of: Any) -> None:
    engine = engine_of()
    talks = [Talk(engine, Sampling(seed=seed)) for seed in (1, 1, 2)]
    one, two, three = (answer.result().ids for answer in [talk.say(_text(1, 30), 30) for talk in talks])
    assert one == two != three


def test_equal_prompts_are_read_once(engine_of: Any) -> None:
    engine = engine_of(wave=True)
    engine.announce(6)
    talks = [Talk(engine, Sampling(seed=n)) for n in range(6)]
    for answer in [talk.say(_text(1, 30), 3) for talk in talks]:
        answer.result()
    assert engine.stats().read_tokens == 30
    assert engine.stats().shared_tokens == 150
    assert engine.stats().sampled_tokens == 18


def test_a_turn_ends_at_a_stop_id_and_keeps_it(engine_of: Any) -> None:
    talk = Talk(engine_of(), Sampling(seed=3))
    free = Talk(talk.engine, Sampling(seed=3)).say(_text(1, 10), 30).result().ids
    stopped = talk.say(_text(1, 10), 30, frozenset({free[11]})).result()
    assert stopped.finish == "stop"
    assert stopped.ids == free[: free.index(free[11]) + 1]


def test_the_context_limit_cuts_a_turn_and_then_overflows(engine_of: Any) -> None:
    talk = Talk(engine_of(max_context=40), Sampling(seed=3))
    generation = talk.say(_text(1, 30), 100).result()
    assert (generation.finish, len(generation.ids)) == ("length", 10)
    with pytest.raises(ContextOverflow):
        talk.say([1, 2], 5)


def test_new_weights_come_in_between_two_steps_and_each_token_knows_its_version(
    engine_of: Any, model_of: Models
) -> None:
    engine = engine_of()
    talk = Talk(engine, Sampling(seed=3))
    answer = talk.say(_text(1, 30), 400)
    _after_steps(engine, 5)
    engine.update(model_of("hybrid", 3.0, 1).state_dict(), 1).result()
    generation = answer.result()
    assert [span.version for span in generation.spans] == [0, 1]
    assert 5 <= generation.spans[1].start < 400
    assert engine.version == 1


@pytest.mark.parametrize("keep", ["keep", "recompute"])
def test_after_an_update_nothing_is_served_from_old_prompts(engine_of: Any, model_of: Models, keep: str) -> None:
    engine = engine_of(kv_on_sync=keep)
    other = model_of("hybrid", 3.0, 1)
    old = Talk(engine, Sampling(seed=5))
    old.hear(old.say(_text(1, 40), 5).result())
    engine.update(other.state_dict(), 1).result()
    fresh = Talk(engine, Sampling(seed=6))
    fresh.hear(fresh.say(_text(1, 40), 20).result())
    assert _gaps(other, fresh.row())[1] <= 1e-2
    old.hear(old.say(_text(2, 5), 20).result())
    later = old.row().model_copy(update={"mask": (0,) * 50 + (1,) * 20})
    assert (_gaps(other, later)[1] <= 1e-2) == (keep == "recompute")


def test_rows_in_flight_are_read_again_when_asked(engine_of: Any, model_of: Models) -> None:
    engine = engine_of(kv_on_sync="recompute")
    other = model_of("hybrid", 3.0, 1)
    talks = [Talk(engine, Sampling(seed=n)) for n in range(3)]
    answers = [talk.say(_text(n, 20 + n), 300) for n, talk in enumerate(talks)]
    _after_steps(engine, 5)
    engine.update(other.state_dict(), 1).result()
    for talk, answer in zip(talks, answers, strict=True):
        generation = talk.hear(answer.result())
        start = len(talk.ids) - 300 + generation.spans[1].start
        row = talk.row().model_copy(update={"mask": (0,) * start + (1,) * (len(talk.ids) - start)})
        assert _gaps(other, row)[1] <= 1e-2


def test_weights_of_another_model_are_refused_and_change_nothing(engine_of: Any, model_of: Models) -> None:
    engine = engine_of()
    before = Talk(engine, Sampling(seed=1)).say(_text(1, 9), 9).result().ids
    with pytest.raises(ValueError, match="not the weights"):
        engine.update(model_of("qwen3").state_dict(), 1).result()
    assert engine.version == 0
    assert Talk(engine, Sampling(seed=1)).say(_text(1, 9), 9).result().ids == before


def test_weights_that_are_not_finite_end_the_turn_with_an_error(engine_of: Any, model_of: Models) -> None:
    engine = engine_of()
    broken = {name: value * float("nan") for name, value in model_of("hybrid").state_dict().items()}
    engine.update(broken, 1).result()
    with pytest.raises(PolicyError, match="not finite"):
        Talk(engine, Sampling()).say([1, 2], 5).result()
    engine.update(model_of("hybrid").state_dict(), 2).result()
    assert len(Talk(engine, Sampling()).say([1, 2], 5).result().ids) == 5


def _waves(engine: TorchEngine, shuffle: int) -> dict[int, tuple[tuple[int, ...], tuple[float, ...]]]:
    """Two turns of 7 conversations that arrive in an order of their own; one ends after the first turn."""
    engine.announce(7)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(shuffle)).tolist()
    talks = {n: Talk(engine, Sampling(seed=n)) for n in order}
    found: dict[int, tuple[tuple[int, ...], tuple[float, ...]]] = {}
    for turn in range(2):
        answers = {n: talk.say(_text(n + turn, 4 + 3 * n), 3 + 2 * n) for n, talk in talks.items()}
        for n, answer in answers.items():
            talks[n].hear(answer.result())
            found[n] = tuple(talks[n].ids), tuple(talks[n].logprobs)
        if turn == 0:
            engine.close(talks.pop(3).conversation)
    return found


def test_in_waves_results_are_bit_equal_in_whatever_order_conversations_arrive(engine_of: Any) -> None:
    first = _waves(engine_of(wave=True, max_rows=4), 1)
    assert _waves(engine_of(wave=True, max_rows=4), 2) == first


def test_a_wave_waits_for_everyone_who_is_open_or_announced(engine_of: Any) -> None:
    engine = engine_of(wave=True)
    engine.announce(2)
    one = Talk(engine, Sampling(seed=1))
    answer = one.say([1, 2], 3)
    assert not answer.done()
    two = Talk(engine, Sampling(seed=2))
    assert not answer.done()
    engine.close(two.conversation)
    assert len(answer.result().ids) == 3
    engine.announce(1)
    answer = one.say([1, 2], 3)
    engine.announce(-1)
    assert len(answer.result().ids) == 3


def test_stopping_ends_waiting_turns_and_the_engine_can_start_again(engine_of: Any) -> None:
    engine = engine_of()
    answer = Talk(engine, Sampling()).say([1], 1500)
    engine.stop()
    with pytest.raises(PolicyError, match="stopped"):
        answer.result()
    with pytest.raises(PolicyError, match="not running"):
        Talk(engine, Sampling()).say([1], 5)
    engine.start()
    assert len(Talk(engine, Sampling()).say([1], 5).result().ids) == 5


# Sessions


TOOLS = [
    {
        "type": "function",
        "function": {"name": "Read", "parameters": {"type": "object", "properties": {"file_path": {"type": "string"}}}},
    }
]


@pytest.fixture
def policy_of(engine_of: Any, tokenizer_of: Callable[..., Any]) -> Callable[..., TokenPolicy]:
    def build(kind: str = "hybrid", template: str = "plain", **settings: Any) -> TokenPolicy:
        return TokenPolicy(engine_of(kind, **settings), ChatFormat(tokenizer_of(template)), "frog")

    return build


async def _episode(policy: TokenPolicy, seed: int, turns: int = 3) -> TokenRow:
    session = await policy.open("Be brief.", f"Fix {seed % 2}.", TOOLS, Sampling(seed=seed))
    for turn in range(turns):
        reply = await session.reply(6 + seed, FOREVER)
        assert reply.usage.completion_tokens <= 6 + seed
        session.observe([Observation(call_id="x", tool="Read", text=f"<|im_end|> {turn}")])
    assert session.context_tokens == len(session.tokens().ids)
    await session.close()
    await session.close()
    return session.tokens()


async def _run(policy: TokenPolicy) -> list[TokenRow]:
    async with policy:
        return await asyncio.gather(*[_episode(policy, seed) for seed in range(6)])


@pytest.mark.parametrize("template", ["plain", "thinking"])
def test_sessions_keep_the_sampled_tokens_and_mask_the_rest(
    policy_of: Callable[..., TokenPolicy], model_of: Models, template: str
) -> None:
    policy = policy_of("hybrid", template)
    rows = asyncio.run(_run(policy))
    plain, chat = model_of("hybrid", 3.0), policy.chat
    for row in rows:
        mean, most = _gaps(plain, row)
        assert mean <= 1e-4
        assert most <= 1e-2
        assert all(number == 0.0 for number, sampled in zip(row.logprobs, row.mask, strict=True) if not sampled)
        ended = chat.decode(row.ids).count("<|im_end|>") - 3  # as text in the observations
        assert ended == 2 + 3 + 3  # system and user, three turns, three observations
        assert row.oldest_version == 0
    assert sum(map(sum, (row.mask for row in rows))) == policy.stats().sampled_tokens
    assert policy.name == "frog@0"


def test_a_reply_that_takes_too_long_is_cut_and_its_tokens_are_kept(policy_of: Callable[..., TokenPolicy]) -> None:
    async def run() -> tuple[TokenRow, bool]:
        async with policy_of() as policy:
            session = await policy.open("s", "u", TOOLS, Sampling(max_tokens=10_000))
            task = asyncio.create_task(session.reply(10_000, 0.05))
            with pytest.raises(TimeoutError):
                await task
            again = await policy.open("s", "u", TOOLS, Sampling(seed=3))
            await again.reply(3, FOREVER)
            return session.tokens(), True

    row, worked = asyncio.run(run())
    assert worked
    assert row.sampled < 2048


def test_a_cancelled_reply_leaves_the_engine_free(policy_of: Callable[..., TokenPolicy]) -> None:
    async def run() -> int:
        async with policy_of() as policy:
            session = await policy.open("s", "u", TOOLS, Sampling())
            task = asyncio.create_task(session.reply(1500, 600))
            while not policy.stats().steps:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await session.close()
            again = await policy.open("s", "u", TOOLS, Sampling(seed=3))
            return (await again.reply(3, FOREVER)).usage.completion_tokens

    assert asyncio.run(run()) <= 3


def test_a_session_overflows_its_context(policy_of: Callable[..., TokenPolicy]) -> None:
    async def run() -> None:
        async with policy_of(max_context=60) as policy:
            session = await policy.open("s", "u", [], Sampling())
            await session.reply(1000, FOREVER)
            session.observe([Observation(call_id="x", tool="Read", text="much")])
            with pytest.raises(ContextOverflow):
                await session.reply(10, FOREVER)

    asyncio.run(run())


def test_at_lag_zero_whole_episodes_of_the_bundled_model_agree_with_a_plain_forward_pass() -> None:
    policy = checkpoint_policy("tadpole", EngineSettings(wave=True))

    async def episode(seed: int) -> TokenRow:
        session = await policy.open(
            "Fix the issue.", "total in src/pad/sums.py is off by one.", [], Sampling(seed=seed)
        )
        for _ in range(4):
            reply = await session.reply(90, FOREVER)
            text = "src/pad/sums.py\n1. def total(values):\n2.     return sum(values) - 1"
            session.observe([Observation(call_id=call.id, tool=call.name, text=text) for call in reply.calls])
        await session.close()
        return session.tokens()

    async def run() -> list[TokenRow]:
        policy.announce(8)
        async with policy:
            return await asyncio.gather(*[episode(seed) for seed in range(8)])

    plain = load_model("tadpole").model.eval()
    rows = asyncio.run(run())
    assert sum(row.sampled for row in rows) > 300
    gaps = [_gaps(plain, row) for row in rows]
    assert max(mean for mean, _ in gaps) <= 1e-4
    assert max(most for _, most in gaps) <= 1e-2
    assert min(_gaps(plain, row, shift=1)[0] for row in rows) > 1e-2


def test_a_conversation_knows_what_it_has_not_read() -> None:
    assert Conversation(Sampling(), ids=[1, 2]).unread == [1, 2]
