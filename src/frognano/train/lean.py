"""The model's own functions in fewer passes over memory, for models so small that memory passes are the cost.

Two changes while the context is open, neither of them to what is computed: root-mean-square norms run as one
operator with a hand-written backward, and what follows the attention of the last layer (norm, feed-forward, final
norm) runs only where the next token is trainable. Models of other shapes, lower precision and recomputed
activations go the model's own way. Values differ from it by rounding alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5RMSNorm


class _RmsNorm(torch.autograd.Function):
    """y = x · w / sqrt(mean(x²) + eps) over the last dimension."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        squares = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_()
        inverse = squares.div_(x.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, inverse)
        y: Tensor = (x * inverse).mul_(weight)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        # With r = 1/sqrt(mean(x²) + eps): dx = r w g − x r³ mean(w g x), dw = Σ r g x.
        x, weight, inverse = ctx.saved_tensors
        product = (grad * x).flatten(0, -2)  # [N, D]
        of_weight = inverse.flatten() @ product
        along = (product @ weight).view(inverse.shape).mul_(inverse.pow(3)).div_(x.shape[-1])
        of_x = (grad * weight).mul_(inverse).addcmul_(x, along, value=-1.0)
        return of_x, of_weight, None


def _norm(module: Any) -> Any:
    """The module's forward, by the one operator where it applies."""
    own, eps = module.forward, getattr(module, "eps", getattr(module, "variance_epsilon", 0.0))
    shift = 1.0 if isinstance(module, Qwen3_5RMSNorm) else 0.0

    def forward(x: Tensor) -> Tensor:
        if x.dtype is not torch.float32 or module.weight.dtype is not torch.float32:
            return own(x)  # type: ignore[no-any-return]
        weight = module.weight + shift if shift else module.weight
        return _RmsNorm.apply(x, weight, eps)  # type: ignore[no-untyped-call, no-any-return]

    return forward


class LeanBackbone:
    """A backbone whose last feed-forward is held back until it is known where it is needed."""

    def __init__(self, backbone: nn.Module, whole: bool) -> None:
        self._backbone: Any = backbone
        layers = getattr(backbone, "layers", None)
        last: Any = layers[-1] if isinstance(layers, nn.ModuleList) and len(layers) else None
        parts = ("post_attention_layernorm", "mlp")
        fits = last is not None and all(isinstance(getattr(last, part, None), nn.Module) for part in parts)
        self._last = last if fits and isinstance(getattr(backbone, "norm", None), nn.Module) and not whole else None

    def __call__(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Hidden states [K, H] at ``positions`` of the flattened rows ``ids`` [B, L].

        No attention mask: under causal attention and a causal recurrence a right-padded row never sees what stands
        behind it, so padding cannot reach a real token, and the unmasked kernels are the fast ones.
        """
        if self._last is None:
            whole: Tensor = self._backbone(input_ids=ids, use_cache=False).last_hidden_state
            return whole.flatten(0, 1)[positions]
        held: list[Tensor] = []
        norm, mlp, final = self._last.post_attention_layernorm, self._last.mlp, self._backbone.norm

        def hold(x: Tensor) -> Tensor:
            held.append(x)
            return x

        with _replaced({norm: hold, mlp: lambda x: x, final: lambda x: x}):
            self._backbone(input_ids=ids, use_cache=False)
        hidden = held[0].flatten(0, 1)[positions]
        hidden = hidden + mlp(norm(hidden))
        out: Tensor = final(hidden)
        return out


@contextmanager
def lean_norms(backbone: nn.Module) -> Iterator[None]:
    """Run the norms of ``backbone`` as one operator each inside the context."""
    norms = [module for module in backbone.modules() if type(module) in (Qwen3RMSNorm, Qwen3_5RMSNorm)]
    with _replaced({module: _norm(module) for module in norms}):
        yield


@contextmanager
def _replaced(forwards: dict[nn.Module, Any]) -> Iterator[None]:
    """Other ``forward``s for some modules, undone on the way out."""
    before = {module: module.__dict__.get("forward") for module in forwards}
    try:
        for module, forward in forwards.items():
            module.forward = forward
        yield
    finally:
        for module, own in before.items():
            if own is None:
                module.__dict__.pop("forward", None)
            else:
                module.forward = own
