"""Advantages within a group."""

import math

import pytest

from frognano.train.advantage import group_advantages, has_variance


def test_one_success_in_four_by_hand():
    assert group_advantages([1.0, 0.0, 0.0, 0.0]) == pytest.approx(
        [0.75 / (math.sqrt(3) / 4 + 1e-6), *[-0.25 / (math.sqrt(3) / 4 + 1e-6)] * 3]
    )


def test_the_sample_deviation_divides_by_one_less():
    sample = 0.5 / (math.sqrt(0.5) + 1e-6)
    assert group_advantages([1.0, 0.0], std="sample") == pytest.approx([sample, -sample])
    assert group_advantages([1.0, 0.0]) == pytest.approx([0.5 / (0.5 + 1e-6), -0.5 / (0.5 + 1e-6)])


def test_eps_is_added_to_the_deviation():
    assert group_advantages([1.0, 0.0], eps=0.5) == [0.5, -0.5]


@pytest.mark.parametrize("rewards", [[1.0] * 8, [0.1] * 8, [0.1 + 0.2, 0.3], [1.0], [0.0], [0.7, None, 0.7]])
def test_constant_groups_have_exactly_zero_advantage(rewards):
    assert all(advantage in (0.0, None) for advantage in group_advantages(rewards))
    assert not has_variance(rewards)


def test_members_without_a_reward_leave_before_the_statistics():
    with_gap = group_advantages([1.0, 0.0, None])
    assert with_gap[2] is None
    assert with_gap[:2] == group_advantages([1.0, 0.0])


def test_groups_of_nothing_are_empty():
    assert group_advantages([]) == []
    assert group_advantages([None, None]) == [None, None]
    assert not has_variance([None, 1.0])


def test_advantages_of_a_group_sum_to_zero():
    assert sum(group_advantages([1.0, 0.5, 0.0, 0.93, 0.0])) == pytest.approx(0.0, abs=1e-12)
