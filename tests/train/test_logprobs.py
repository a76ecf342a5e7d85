"""Log-probabilities without full logits: values, gradients, and what is never allocated."""

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from frognano.train.logprobs import FUSED, mean_entropy, split_model, token_logprobs

WAYS = [pytest.param(True, marks=pytest.mark.skipif(not FUSED, reason="this torch has no fused operator")), False]


def head_and_hidden(vocabulary=97, tokens=50, bias=True, dtype=torch.float64):
    torch.manual_seed(0)
    head = nn.Linear(16, vocabulary, bias=bias, dtype=dtype)
    hidden = torch.randn(tokens, 16, dtype=dtype, requires_grad=True)
    return head, hidden, torch.randint(vocabulary, (tokens,))


@pytest.mark.parametrize("fused", WAYS)
@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("chunk", [7, 50, 128])
def test_values_and_gradients_equal_those_of_plain_log_softmax(fused, temperature, bias, chunk):
    head, hidden, targets = head_and_hidden(bias=bias)
    weights = torch.randn(50, dtype=torch.float64)
    plain = (head(hidden) / temperature).log_softmax(1).gather(1, targets[:, None])[:, 0]
    inputs = [hidden, *head.parameters()]
    expected = torch.autograd.grad((plain * weights).sum(), inputs)
    ours = token_logprobs(hidden, head, targets, temperature=temperature, chunk=chunk, fused=fused)
    found = torch.autograd.grad((ours * weights).sum(), inputs)
    torch.testing.assert_close(ours, plain)
    for ours_gradient, gradient in zip(found, expected, strict=True):
        torch.testing.assert_close(ours_gradient, gradient)


def largest_allocation(action):
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        action()
    events = record.profiler.kineto_results.events()
    return max(event.nbytes() for event in events if event.name() == "[memory]")


@pytest.mark.parametrize("fused", WAYS)
def test_no_tensor_of_tokens_by_vocabulary_ever_exists(fused):
    head, hidden, targets = head_and_hidden(vocabulary=3000, tokens=2000, bias=False, dtype=torch.float32)
    full = 2000 * 3000 * 4

    def ours():
        token_logprobs(hidden, head, targets, chunk=64, fused=fused).sum().backward()

    def plain():
        head(hidden).log_softmax(1).gather(1, targets[:, None]).sum().backward()

    assert largest_allocation(plain) >= full, "the instrument must see the tensor where it exists"
    assert largest_allocation(ours) <= 2 * 64 * 3000 * 4


@pytest.mark.parametrize("fused", WAYS)
def test_no_token_is_an_empty_result_with_a_gradient(fused):
    head, _, _ = head_and_hidden()
    hidden = torch.zeros(0, 16, dtype=torch.float64, requires_grad=True)
    found = token_logprobs(hidden, head, torch.zeros(0, dtype=torch.int64), fused=fused)
    assert found.shape == (0,)
    found.sum().backward()


def test_entropy_by_hand():
    head = nn.Linear(2, 4, bias=False)
    nn.init.zeros_(head.weight)
    assert mean_entropy(torch.randn(5, 2), head) == pytest.approx(1.3862943611)
    assert mean_entropy(torch.zeros(0, 2), head) == 0.0


@pytest.mark.parametrize("kind", ["qwen3", "hybrid"])
def test_backbone_and_head_make_the_model(tiny_model, kind):
    model = tiny_model(kind)
    backbone, head = split_model(model)
    ids = torch.randint(64, (1, 12))
    torch.testing.assert_close(head(backbone(input_ids=ids).last_hidden_state), model(input_ids=ids).logits)


def test_a_model_that_bends_its_logits_is_refused(tiny_model):
    model = tiny_model()
    model.config.final_logit_softcapping = 30.0
    with pytest.raises(ValueError, match="soft-caps"):
        split_model(model)
