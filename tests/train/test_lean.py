"""Fewer passes, the same values and gradients."""

import copy

import pytest
import torch

from frognano.train.lean import LeanBackbone, _RmsNorm, lean_norms
from frognano.train.logprobs import split_model

POSITIONS = torch.tensor([1, 5, 6, 13, 20])


def hidden_and_gradients(model, held, norms):
    backbone = LeanBackbone(split_model(model)[0], whole=not held)
    ids = torch.arange(24).view(2, 12)
    model.zero_grad()
    if norms:
        with lean_norms(model):
            hidden = backbone(ids, POSITIONS)
            hidden.pow(3).sum().backward()
    else:
        hidden = backbone(ids, POSITIONS)
        hidden.pow(3).sum().backward()
    return hidden.detach(), {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("kind", ["qwen3", "hybrid"])
@pytest.mark.parametrize(("held", "norms"), [(True, False), (False, True), (True, True)])
def test_values_and_gradients_are_the_models_own(tiny_model, kind, held, norms):
    model = tiny_model(kind).double()
    for name, parameter in model.named_parameters():
        if "norm" in name:
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    model = model.float()
    hidden, gradients = hidden_and_gradients(copy.deepcopy(model), held, norms)
    expected, expected_gradients = hidden_and_gradients(model, held=False, norms=False)
    torch.testing.assert_close(hidden, expected, atol=1e-5, rtol=1e-4)
    for name, gradient in expected_gradients.items():
        assert (gradients[name] - gradient).abs().max() <= 1e-2 * gradient.abs().max(), name


def test_the_norm_by_finite_differences():
    x = torch.randn(3, 2, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: _RmsNorm.apply(a, b, 1e-6), (x, weight))


def test_the_model_is_its_own_again_afterwards(tiny_model):
    model = tiny_model("hybrid")
    hidden_and_gradients(model, held=True, norms=True)
    assert not any("forward" in module.__dict__ for module in model.modules())


def test_a_backbone_of_another_shape_runs_as_it_is(tiny_model):
    model = tiny_model()
    backbone = split_model(model)[0]
    backbone.layers[-1].feed_forward = backbone.layers[-1].mlp
    expected = LeanBackbone(backbone, whole=True)(torch.arange(24).view(2, 12), POSITIONS)
    other = torch.nn.Module()
    other.forward = backbone.forward
    torch.testing.assert_close(LeanBackbone(other, whole=False)(torch.arange(24).view(2, 12), POSITIONS), expected)
