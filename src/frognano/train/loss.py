"""The DPPO loss: an importance-weighted policy gradient under an asymmetric trust-region mask.

Source: DPPO (binary total variation) as FrogNano states it. p = π_θ(a|s) now, q = the rollout policy's recorded
probability, ρ = p/q, A the advantage:

    drop a token when A > 0 and p − q > δ_high, or A ≤ 0 and p − q < −δ_low   (strictly)
    loss = −(1/T) Σ_{kept} A ρ,   T = every trainable token of the whole batch, kept or not

Departures: none in the formula; a cap on the weight ρ is a setting, off by default. The mask carries no gradient
and anchors on the ROLLOUT policy: there is no fallback, a token without q is an error. Everything here is pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

RATIO_ALARM = 20.0
"""Ratios above this are counted in the metrics; several public trainers cap there."""


@dataclass(frozen=True, slots=True)
class TokenTerms:
    """What the loss needs of K trainable tokens; four tensors of shape [K]."""

    logp: Tensor
    """log p of the sampled token under the policy being updated; carries the gradient."""
    logq: Tensor
    """log q recorded when it was sampled."""
    advantage: Tensor

    def __post_init__(self) -> None:
        shapes = {tuple(self.logp.shape), tuple(self.logq.shape), tuple(self.advantage.shape)}
        if len(shapes) != 1:
            raise ValueError(
                f"log p, log q and advantages must be of one length, got {sorted(shapes)}: "
                "a token without the rollout policy's log-probability cannot be trained"
            )


@dataclass(frozen=True, slots=True)
class TokenSums:
    """Sums and maxima over tokens, so that micro-batches add up to the batch; all are before the mask."""

    tokens: int = 0
    positive: int = 0
    """Tokens with A > 0."""
    negative: int = 0
    """Tokens with A < 0; A = 0 counts in neither, it has no gradient."""
    masked_positive: int = 0
    masked_negative: int = 0
    gap_sum: float = 0.0
    """Σ |p − q|."""
    gap_max: float = 0.0
    logprob_gap_sum: float = 0.0
    """Σ |log p − log q|."""
    logprob_gap_max: float = 0.0
    ratio_max: float = 0.0
    ratio_alarms: int = 0
    """Tokens whose p/q exceeds 20."""
    mismatch_kl_sum: float = 0.0
    """Σ (ρ − log ρ − 1), an estimate of KL(q ‖ p) per sampled token."""

    def __add__(self, other: TokenSums) -> TokenSums:
        joined: dict[str, float] = {}
        for name in self.__slots__:
            ours, theirs = getattr(self, name), getattr(other, name)
            joined[name] = max(ours, theirs) if name.endswith("_max") else ours + theirs
        return TokenSums(**joined)  # type: ignore[arg-type]


def dppo_keep(p: Tensor, q: Tensor, advantage: Tensor, delta_high: float, delta_low: float) -> Tensor:
    """True where a token stays in the sum. A = 0 falls under the second rule, as the formula has it."""
    gap = p - q
    up = advantage > 0
    return ~((up & (gap > delta_high)) | (~up & (gap < -delta_low)))


def dppo_loss(
    terms: TokenTerms, denominator: int, delta_high: float = 0.2, delta_low: float = 0.2, ratio_cap: float | None = None
) -> Tensor:
    """This micro-batch's share of the batch's loss: shares of all micro-batches and ranks add up to it.

    ``denominator`` is T of the WHOLE batch. With a cap the weight is sg(min(ρ, cap)) on log p, so a capped
    token keeps a gradient.
    """
    if denominator < 1:
        raise ValueError("the batch has no trainable token")
    with torch.no_grad():
        keep = dppo_keep(terms.logp.exp(), terms.logq.exp(), terms.advantage, delta_high, delta_low)
        weight = (terms.logp - terms.logq).exp()
        if ratio_cap is not None:
            weight = weight.clamp(max=ratio_cap)
        coefficient = torch.where(keep, terms.advantage * weight, torch.zeros_like(weight))
    # 1 + log p − sg(log p) has the value 1 and the gradient of log p, so a term has value A ρ and gradient A ∇ρ.
    surrogate = coefficient * (1.0 + terms.logp - terms.logp.detach())
    return -surrogate.sum() / denominator


@torch.no_grad()
def token_sums(terms: TokenTerms, delta_high: float = 0.2, delta_low: float = 0.2) -> TokenSums:
    """The metrics of one micro-batch; empty sums for no token."""
    if terms.logp.numel() == 0:
        return TokenSums()
    p, q = terms.logp.exp(), terms.logq.exp()
    log_ratio = (terms.logp - terms.logq).double()
    ratio = log_ratio.exp()
    dropped = ~dppo_keep(p, q, terms.advantage, delta_high, delta_low)
    positive, negative = terms.advantage > 0, terms.advantage < 0
    return TokenSums(
        tokens=terms.logp.numel(),
        positive=int(positive.sum()),
        negative=int(negative.sum()),
        masked_positive=int((dropped & positive).sum()),
        masked_negative=int((dropped & negative).sum()),
        gap_sum=float((p - q).abs().double().sum()),
        gap_max=float((p - q).abs().max()),
        logprob_gap_sum=float(log_ratio.abs().sum()),
        logprob_gap_max=float(log_ratio.abs().max()),
        ratio_max=float(ratio.max()),
        ratio_alarms=int((ratio > RATIO_ALARM).sum()),
        mismatch_kl_sum=float((ratio - log_ratio - 1.0).sum()),
    )
