"""Recomputed log-probabilities line up with the sampled ones, and a shift by one token shows."""

import pytest
import torch

from frognano.train.mismatch import mismatch, recomputed


def sampled(model, trajectory, name, turns=3):
    """An episode of the model itself: three turns of six tokens, with other text between them."""
    dice = torch.Generator().manual_seed(len(name))
    ids, mask, logprobs = [1, 2, 3], [0] * 3, [0.0] * 3
    for turn in range(turns):
        for _ in range(6):
            logp = model(input_ids=torch.tensor([ids])).logits[0, -1].log_softmax(0)
            token = int(torch.multinomial(logp.exp(), 1, generator=dice))
            ids, mask, logprobs = [*ids, token], [*mask, 1], [*logprobs, float(logp[token])]
        ids, mask, logprobs = [*ids, 40 + turn, 50], [*mask, 0, 0], [*logprobs, 0.0, 0.0]
    return trajectory(name, ids=tuple(ids), mask=tuple(mask), logprobs=tuple(logprobs))


@pytest.mark.parametrize("kind", ["qwen3", "hybrid"])
@torch.no_grad()
def test_what_was_sampled_is_what_is_trained(tiny_model, trajectory, kind):
    model = tiny_model(kind).eval()
    for parameter in model.parameters():
        parameter.mul_(3.0)
    episodes = [sampled(model, trajectory, "a-0"), sampled(model, trajectory, "b-12", turns=2)]
    found = mismatch(model, episodes)
    assert found.tokens == 30
    assert found.mean <= 1e-4
    assert found.max <= 1e-2
    assert recomputed(model, episodes)["b-12"].shape == (12,)
    shifted = [
        one.model_copy(update={"tokens": one.tokens.model_copy(update={"ids": (*one.tokens.ids[1:], 0)})})
        for one in episodes
    ]
    assert mismatch(model, shifted).max > 0.1
    assert "trajectory" in mismatch(model, shifted).where
