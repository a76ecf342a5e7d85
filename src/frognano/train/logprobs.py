"""Log-probabilities of sampled tokens, without the logits of a batch ever existing.

The output head is applied only where the next token is trainable, a chunk of tokens at a time, and the backward
pass recomputes each chunk instead of keeping it: at most ``chunk`` × vocabulary logits exist at once. Where torch
has ``linear_cross_entropy`` that fused operator does the work; else checkpointed chunks do, with the same result.
Models that bend their logits after the head (soft-capping) are refused, since the head alone is used.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

FUSED = hasattr(F, "linear_cross_entropy") and hasattr(nn, "LinearCrossEntropyOptions")
"""Whether this torch has the fused operator."""


def split_model(model: Any) -> tuple[nn.Module, nn.Linear]:
    """A causal language model as its backbone (ids → hidden states) and its output head."""
    head = model.get_output_embeddings()
    if not isinstance(head, nn.Linear):
        raise TypeError(f"{type(model).__name__} has no linear output head")
    config = getattr(model.config, "text_config", model.config)
    if getattr(config, "final_logit_softcapping", None):
        raise ValueError(f"{type(model).__name__} soft-caps its logits; training it is not supported")
    backbone = model.base_model
    if backbone is model:
        raise TypeError(f"{type(model).__name__} has no backbone apart from its head")
    return backbone, head


def token_logprobs(
    hidden: Tensor,  # [K, H]
    head: nn.Linear,
    targets: Tensor,  # [K]
    *,
    temperature: float = 1.0,
    chunk: int = 128,
    fused: bool = FUSED,
) -> Tensor:
    """log p of ``targets`` given the hidden states that predict them: [K], differentiable once, in the head's dtype."""
    scaled = hidden.to(head.weight.dtype)
    if temperature != 1.0:
        # Dividing logits by the temperature is dividing the hidden state, as long as the bias is divided too.
        scaled = scaled / temperature
    bias = None if head.bias is None else head.bias / temperature
    if hidden.shape[0] == 0:
        return scaled.sum(dim=1)
    if fused:
        options = nn.LinearCrossEntropyOptions(batch_chunk_size=chunk, chunking_method=None)
        return -F.linear_cross_entropy(
            scaled, head.weight, targets, linear_bias=bias, reduction="none", options=options
        )
    parts = [
        checkpoint(_chunk_logprobs, rows, head.weight, bias, wanted, use_reentrant=False)
        for rows, wanted in zip(torch.split(scaled, chunk), torch.split(targets, chunk), strict=True)
    ]
    return torch.cat(parts)


def _chunk_logprobs(rows: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    logits = F.linear(rows, weight, bias)  # [chunk, V]
    return logits.gather(1, targets[:, None]).squeeze(1) - logits.logsumexp(dim=1)


def mean_entropy(hidden: Tensor, head: nn.Linear, temperature: float = 1.0, chunk: int = 128) -> float:
    """Mean entropy in nats of the next-token distributions; a metric, without gradient."""
    if hidden.shape[0] == 0:
        return 0.0
    total = 0.0
    with torch.no_grad():
        for rows in torch.split(hidden.to(head.weight.dtype), chunk):
            logp = (head(rows) / temperature).log_softmax(dim=1)  # [chunk, V]
            total -= float((logp.exp() * logp).sum())
    return total / hidden.shape[0]
