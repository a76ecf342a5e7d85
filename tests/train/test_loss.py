"""The DPPO loss: each mask rule token by token, value and gradient by hand."""

import math

import pytest
import torch

from frognano.train.loss import TokenSums, TokenTerms, dppo_keep, dppo_loss, token_sums


def terms(p, q, advantage):
    """Terms from probabilities; log p carries the gradient."""
    logp = torch.tensor(p, dtype=torch.float64).log().requires_grad_()
    return TokenTerms(logp, torch.tensor(q, dtype=torch.float64).log(), torch.tensor(advantage, dtype=torch.float64))


def kept(p, q, advantage, high=0.2, low=0.2):
    as_tensors = (torch.tensor([value], dtype=torch.float64) for value in (p, q, advantage))
    return bool(dppo_keep(*as_tensors, high, low)[0])


MASK_CASES = [
    (0.75, 0.5, 1.0, False, "A > 0 and p rose too far: dropped"),
    (0.75, 0.5, -1.0, True, "A < 0 and p rose: moving back is never dropped"),
    (0.25, 0.5, -1.0, False, "A < 0 and p fell too far: dropped"),
    (0.25, 0.5, 1.0, True, "A > 0 and p fell: moving back is never dropped"),
    (0.003, 0.001, 1.0, True, "ratio 3, total variation 0.002: kept"),
    (0.75, 0.5, 0.0, True, "A = 0 and p rose: the second rule looks downwards only"),
    (0.25, 0.5, 0.0, False, "A = 0 falls under the second rule"),
    (0.9, 1.0, 1.0, True, "q = 1"),
    (1.0, 0.9, 1.0, True, "p = 1"),
    (0.5, 0.5, 1.0, True, "no gap"),
]


@pytest.mark.parametrize(("p", "q", "advantage", "expected", "rule"), MASK_CASES, ids=[case[4] for case in MASK_CASES])
def test_the_mask_rule(p, q, advantage, expected, rule):
    assert kept(p, q, advantage) is expected, rule


def test_the_bound_itself_is_kept():
    assert kept(0.75, 0.5, 1.0, high=0.25)
    assert kept(0.25, 0.5, -1.0, low=0.25)


def test_the_two_bounds_are_apart():
    assert not kept(0.75, 0.5, 1.0, high=0.2, low=0.9)
    assert kept(0.25, 0.5, -1.0, high=0.2, low=0.9)
    assert kept(0.75, 0.5, 1.0, high=0.9, low=0.2)


def test_value_and_gradient_by_hand():
    batch = terms([0.4, 0.75, 0.25, 0.5], [0.5, 0.5, 0.5, 0.4], [1.0, 1.0, -2.0, -2.0])
    loss = dppo_loss(batch, denominator=8)
    # Tokens 2 and 3 are dropped; they stay in the denominator.
    assert loss.item() == pytest.approx(-(1.0 * 0.8 + -2.0 * 1.25) / 8)
    loss.backward()
    assert batch.logp.grad.tolist() == pytest.approx([-0.8 / 8, 0.0, 0.0, 2.0 * 1.25 / 8])


def test_the_gradient_is_that_of_the_plain_ratio():
    batch, plain = (terms([0.4, 0.3, 0.6], [0.5, 0.2, 0.5], [1.0, -1.0, 0.5]) for _ in range(2))
    dppo_loss(batch, 3).backward()
    (-(plain.advantage * (plain.logp - plain.logq).exp()).sum() / 3).backward()
    torch.testing.assert_close(batch.logp.grad, plain.logp.grad)


def test_dropped_tokens_have_exactly_zero_gradient():
    batch = terms([0.9, 0.05], [0.5, 0.5], [1.0, -1.0])
    dppo_loss(batch, 2).backward()
    assert batch.logp.grad.tolist() == [0.0, 0.0]


def test_probabilities_at_one_are_finite():
    batch = terms([1.0, 0.9], [0.9, 1.0], [1.0, -1.0])
    loss = dppo_loss(batch, 2)
    loss.backward()
    assert math.isfinite(loss.item())
    assert torch.isfinite(batch.logp.grad).all()


def test_the_ratio_is_not_capped_by_default_and_a_cap_keeps_the_gradient():
    free, capped = (terms([0.19], [0.001], [1.0]) for _ in range(2))
    dppo_loss(free, 1).backward()
    loss = dppo_loss(capped, 1, ratio_cap=20.0)
    loss.backward()
    assert free.logp.grad.item() == pytest.approx(-190.0)
    assert capped.logp.grad.item() == loss.item() == pytest.approx(-20.0)


def test_the_denominator_is_the_whole_batch_over_micro_batches():
    # Losses per token 1, 1 and 3 × 8: the batch's mean is 2.6, the mean of the micro-batches' means 2.0.
    first, second = terms([0.5] * 2, [0.5] * 2, [-1.0] * 2), terms([0.5] * 8, [0.5] * 8, [-3.0] * 8)
    assert (dppo_loss(first, 10) + dppo_loss(second, 10)).item() == pytest.approx(2.6)


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_gradients_do_not_depend_on_the_number_of_micro_batches(parts):
    p, q, a = [0.3, 0.5, 0.7, 0.2, 0.4, 0.6, 0.9, 0.1], [0.4] * 8, [1.0, -1.0] * 4
    whole = terms(p, q, a)
    dppo_loss(whole, 8).backward()
    gradients = []
    for start in range(0, 8, 8 // parts):
        part = terms(*(values[start : start + 8 // parts] for values in (p, q, a)))
        dppo_loss(part, 8).backward()
        gradients += part.logp.grad.tolist()
    assert gradients == pytest.approx(whole.logp.grad.tolist())


def test_two_ranks_add_up_to_one():
    # Each rank divides by the count of both; summing (not averaging) gradients gives the batch's.
    w = torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64, requires_grad=True)
    logq, advantage = torch.full((3,), -1.0, dtype=torch.float64), torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
    dppo_loss(TokenTerms(w - 1.0, logq, advantage), 3).backward()
    whole, w.grad = w.grad.clone(), None
    for rank in (slice(0, 1), slice(1, 3)):
        dppo_loss(TokenTerms(w[rank] - 1.0, logq[rank], advantage[rank]), 3).backward()
    torch.testing.assert_close(w.grad, whole)


def test_missing_rollout_log_probabilities_are_an_error():
    with pytest.raises(ValueError, match="cannot be trained"):
        TokenTerms(torch.zeros(3), torch.zeros(2), torch.zeros(3))


def test_a_batch_without_trainable_tokens_is_an_error():
    with pytest.raises(ValueError, match="no trainable token"):
        dppo_loss(terms([], [], []), 0)


def test_the_metrics_count_by_sign_and_before_the_mask():
    sums = token_sums(terms([0.75, 0.4, 0.25, 0.5, 0.1], [0.5, 0.5, 0.5, 0.02, 0.5], [1.0, 1.0, -1.0, -1.0, 0.0]))
    assert (sums.tokens, sums.positive, sums.negative) == (5, 2, 2)
    assert (sums.masked_positive, sums.masked_negative) == (1, 1)
    assert sums.gap_sum == pytest.approx(0.25 + 0.1 + 0.25 + 0.48 + 0.4)
    assert sums.gap_max == pytest.approx(0.48)
    assert sums.ratio_max == pytest.approx(25.0)
    assert sums.ratio_alarms == 1
    ratios = [1.5, 0.8, 0.5, 25.0, 0.2]
    assert sums.mismatch_kl_sum == pytest.approx(sum(r - math.log(r) - 1 for r in ratios))


def test_metrics_of_micro_batches_add_up():
    p, q, a = [0.75, 0.4, 0.25, 0.5], [0.5, 0.5, 0.5, 0.02], [1.0, 1.0, -1.0, -1.0]
    halves = [token_sums(terms(p[part], q[part], a[part])) for part in (slice(0, 2), slice(2, 4))]
    joined, whole = halves[0] + halves[1], token_sums(terms(p, q, a))
    for name in TokenSums.__slots__:
        assert getattr(joined, name) == pytest.approx(getattr(whole, name))
    assert token_sums(terms([], [], [])) == TokenSums()
