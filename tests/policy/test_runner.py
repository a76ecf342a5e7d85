"""Rows of different lengths, read and stepped together, give the model's own logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.models.qwen3_5.modeling_qwen3_5 import torch_recurrent_gated_delta_rule

from frognano.policy.delta_rule import delta_rule
from frognano.policy.fused_runner import FusedRunner, make_runner
from frognano.policy.generic_runner import GenericRunner
from frognano.policy.row_state import Runner

Models = Callable[..., Any]
KINDS = ["hybrid", "qwen3"]


def _text(seed: int, length: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 400, (length,), generator=generator).tolist()


@torch.inference_mode()
def _whole(model: Any, ids: Sequence[int]) -> Tensor:
    """Logits after the last id, read in one piece."""
    return model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits[0, -1]


def _near(got: Tensor, wanted: Tensor) -> bool:
    return bool((got - wanted).abs().max() <= 2e-4 * wanted.abs().max())


@pytest.fixture(params=["fused", "generic"])
def runner_of(request: pytest.FixtureRequest) -> Callable[[Any], Runner]:
    return FusedRunner if request.param == "fused" else GenericRunner


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_rows_join_step_leave_and_come_back(model_of: Models, runner_of: Callable[[Any], Runner], kind: str) -> None:
    model = model_of(kind, 3.0)
    runner = runner_of(model)
    texts = [_text(n, length) for n, length in enumerate((3, 70, 1, 33))]
    logits = runner.join([None] * 4, texts)
    for turn in range(6):
        for row, text in enumerate(texts):
            assert _near(logits[row], _whole(model, text)), (turn, row)
        for row, text in enumerate(texts):
            text.append((17 * turn + row) % 400)
        logits = runner.step(torch.tensor([text[-1] for text in texts]))
    memory = runner.state(1)
    assert memory.length == len(texts[1])
    runner.leave(1)
    back, texts[1] = texts[1], texts.pop()
    new = _text(9, 20)
    logits = runner.join([memory, None], [new, new])
    assert _near(logits[0], _whole(model, back + new))
    assert _near(logits[1], _whole(model, new))
    texts += [back + new, list(new)]
    logits = runner.step(torch.tensor([5] * len(texts)))
    for row, text in enumerate(texts):
        assert _near(logits[row], _whole(model, [*text, 5]))


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_shared_memory_is_not_changed_by_those_who_share_it(
    model_of: Models, runner_of: Callable[[Any], Runner], kind: str
) -> None:
    model = model_of(kind, 3.0)
    runner = runner_of(model)
    prompt = _text(1, 40)
    runner.join([None], [prompt])
    memory = runner.state(0)
    runner.adopt([memory, memory])
    logits = runner.step(torch.tensor([1, 2, 3]))
    for row in range(3):
        assert _near(logits[row], _whole(model, [*prompt, row + 1]))
    assert _near(runner.join([memory], [[7, 8]])[0], _whole(model, [*prompt, 7, 8]))


@torch.inference_mode()
def test_a_model_of_linear_layers_alone_runs(model_of: Models) -> None:
    model = model_of("linear", 3.0)
    runner = FusedRunner(model)
    runner.join([None, None], [_text(1, 12), _text(2, 3)])
    assert _near(runner.step(torch.tensor([1, 2]))[1], _whole(model, [*_text(2, 3), 2]))


@torch.inference_mode()
def test_a_long_prompt_is_read_in_segments(model_of: Models) -> None:
    model = model_of("hybrid", 2.0)
    runner = FusedRunner(model)
    text = _text(3, 1500)
    assert _near(runner.join([None], [text])[0], _whole(model, text))


@torch.inference_mode()
def test_changed_weights_are_used_after_a_refresh(model_of: Models) -> None:
    model, other = model_of("hybrid", 3.0, 0), model_of("hybrid", 3.0, 1)
    runner = FusedRunner(model)
    for name, value in other.state_dict().items():
        model.state_dict()[name].copy_(value)
    runner.refresh()
    text = _text(2, 30)
    assert _near(runner.join([None], [text])[0], _whole(other, text))


@torch.inference_mode()
def test_the_fused_runner_is_used_only_where_it_agrees_with_the_model(
    model_of: Models, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = model_of("hybrid", 3.0)
    assert isinstance(make_runner(model), FusedRunner)
    model.model.layers[0].register_forward_hook(lambda module, inputs, output: output * 1.5)
    assert isinstance(make_runner(model), GenericRunner)
    assert "row by row" in caplog.text


@pytest.mark.parametrize(("tokens", "heads"), [(1, 4), (31, 4), (64, 2), (150, 2)])
@torch.inference_mode()
def test_the_delta_rule_in_chunks_equals_its_recurrence(tokens: int, heads: int) -> None:
    torch.manual_seed(tokens)
    query, key = torch.randn(2, tokens, 2, 12), torch.randn(2, tokens, 2, 12)
    value, beta = torch.randn(2, tokens, heads, 7), torch.rand(2, tokens, heads)
    decay, state = -3.0 * torch.rand(2, tokens, heads), torch.randn(2, heads, 12, 7)
    beta[1, tokens // 2 :], decay[1, tokens // 2 :] = 0.0, 0.0
    read, after = delta_rule(query, key, value, decay, beta, state=state)
    wanted, end = torch_recurrent_gated_delta_rule(
        query, key, value, decay, beta, initial_state=state, output_final_state=True, use_qk_l2norm_in_kernel=True
    )
    assert torch.allclose(read, wanted, atol=1e-5)
    assert torch.allclose(after, end, atol=1e-5)
    _, half = delta_rule(*(each[:, : tokens // 2] for each in (query, key, value, decay, beta)), state=state)
    assert torch.allclose(after[1], half[1], atol=1e-5)
