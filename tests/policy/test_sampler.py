"""Every row draws from its own stream, and from exactly the distribution it was asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frognano.policy import sampler
from frognano.policy.contract import Sampling
from frognano.policy.sampler import RowSampler, uniforms

CPU = torch.device("cpu")


def _rows(logits: list[float], count: int) -> torch.Tensor:
    return torch.tensor(logits).repeat(count, 1)


def _shares(logits: list[float], count: int = 4000, **settings: float) -> list[float]:
    rows = [Sampling(seed=seed, **settings) for seed in range(count)]
    ids, _ = RowSampler(rows, [0] * count, CPU).draw(_rows(logits, count))
    return (torch.bincount(ids, minlength=len(logits)) / count).tolist()


def test_numbers_depend_on_seed_and_counter_alone_and_fill_the_interval() -> None:
    seeds = np.arange(2000, dtype=np.uint64)
    found = uniforms(seeds, np.zeros(2000, np.uint64))
    assert np.array_equal(found[5:9], uniforms(seeds[5:9], np.zeros(4, np.uint64)))
    along = uniforms(np.zeros(2000, np.uint64), seeds)
    for numbers in (found, along):
        assert len(set(numbers.tolist())) == 2000
        assert 0.0 <= numbers.min() < 0.01
        assert 0.99 < numbers.max() < 1.0
        assert abs(numbers.mean() - 0.5) < 0.03
        assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.08


def test_shares_follow_the_probabilities_and_the_temperature() -> None:
    logits = [2.0, 1.0, 0.0, -1.0]
    for temperature in (1.0, 0.5, 2.0):
        wanted = torch.softmax(torch.tensor(logits) / temperature, dim=-1).tolist()
        assert _shares(logits, temperature=temperature) == pytest.approx(wanted, abs=0.03)


def test_top_k_and_top_p_leave_the_most_likely_tokens() -> None:
    logits = [0.0, 2.0, 1.0, -1.0]
    kept = _shares(logits, top_k=2)
    assert kept[0] == kept[3] == 0.0
    assert kept[1] == pytest.approx(np.e / (1 + np.e), abs=0.03)
    narrow = _shares(logits, top_p=0.5)
    assert narrow == [0.0, 1.0, 0.0, 0.0]
    both = _shares(logits, top_p=0.95, top_k=3)
    assert both[3] == 0.0 < both[0]


def test_the_log_probability_is_that_of_the_full_vocabulary_at_the_temperature() -> None:
    logits = _rows([0.0, 2.0, 1.0, -1.0], 50)
    rows = [Sampling(seed=seed, temperature=0.7, top_k=2) for seed in range(50)]
    ids, logprobs = RowSampler(rows, [0] * 50, CPU).draw(logits)
    wanted = torch.log_softmax(logits / 0.7, dim=-1).gather(1, ids[:, None])[:, 0]
    assert torch.equal(logprobs, wanted)


def test_at_temperature_zero_the_most_likely_token_is_taken() -> None:
    ids, logprobs = RowSampler([Sampling(temperature=0.0), Sampling(seed=1)], [0, 0], CPU).draw(
        _rows([0.0, 30.0, 1.0], 2)
    )
    assert ids.tolist() == [1, 1]
    assert logprobs.tolist() == pytest.approx([0.0, 0.0], abs=1e-6)


def test_a_stream_goes_on_where_it_stood_whoever_is_in_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(0))
    whole = RowSampler([Sampling(seed=n) for n in (4, 5, 6)], [0, 0, 0], CPU)
    drawn = [whole.draw(logits)[0].tolist() for _ in range(40)]
    later = RowSampler([Sampling(seed=6), Sampling(seed=4)], [30, 7], CPU)
    assert later.draw(logits[[2, 0]])[0].tolist() == [drawn[30][2], drawn[7][0]]
    monkeypatch.setattr(sampler, "_WHOLE_VOCABULARY_ELEMENTS", 60)
    parts = RowSampler([Sampling(seed=n) for n in (4, 5, 6)], [0, 0, 0], CPU)
    assert [parts.draw(logits)[0].tolist() for _ in range(5)] == drawn[:5]


def test_a_token_of_probability_zero_is_never_drawn() -> None:
    logits = _rows([float("-inf"), 0.0, float("-inf"), 0.0, float("-inf")], 3000)
    ids, _ = RowSampler([Sampling(seed=seed) for seed in range(3000)], [0] * 3000, CPU).draw(logits)
    assert set(ids.tolist()) == {1, 3}
