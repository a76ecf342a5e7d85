"""Reward of a trajectory, raw and shaped."""

import math

import pytest

from frognano.config.train import RewardSettings
from frognano.records import NO_VERDICT, TRUNCATED
from frognano.train.reward import length_term, raw_reward, shaped_reward

TERM = RewardSettings(length_alpha=0.5, length_target=2)


def test_a_success_is_worth_one_and_a_failure_nothing(trajectory):
    assert raw_reward(trajectory(reward=1.0)) == shaped_reward(trajectory(reward=1.0), RewardSettings()) == 1.0
    assert raw_reward(trajectory(reward=0.0)) == shaped_reward(trajectory(reward=0.0), RewardSettings()) == 0.0


@pytest.mark.parametrize("reason", sorted(TRUNCATED))
def test_a_success_cut_by_a_budget_is_one_half_for_the_advantage_and_one_for_the_filter(trajectory, reason):
    cut = trajectory(exit_reason=reason)
    assert raw_reward(cut) == 1.0
    assert shaped_reward(cut, TERM, iteration=3) == 0.5
    assert shaped_reward(cut, RewardSettings(truncated=0.3)) == 0.3


@pytest.mark.parametrize("reason", sorted(TRUNCATED))
def test_a_failure_cut_by_a_budget_is_a_failure(trajectory, reason):
    assert shaped_reward(trajectory(exit_reason=reason, reward=0.0), RewardSettings()) == 0.0


@pytest.mark.parametrize("reason", sorted(NO_VERDICT))
def test_an_episode_that_says_nothing_about_the_policy_has_no_reward(trajectory, reason):
    assert raw_reward(trajectory(exit_reason=reason, reward=0.0)) is None
    assert shaped_reward(trajectory(exit_reason=reason), RewardSettings()) is None


def test_no_verdict_is_not_a_zero(trajectory):
    assert raw_reward(trajectory(reward=None)) is None
    assert raw_reward(trajectory().model_copy(update={"verdict": None})) is None


def test_the_length_term_counts_generated_tokens_and_starts_with_the_third_iteration(trajectory):
    three_sampled = trajectory()
    assert shaped_reward(three_sampled, TERM, iteration=2) == 1.0
    assert shaped_reward(three_sampled, TERM, iteration=3) == pytest.approx(1 - 0.5 * math.log(1.5))


def test_the_length_term_is_off_until_both_constants_are_set(trajectory):
    assert shaped_reward(trajectory(), RewardSettings(length_alpha=0.5), iteration=5) == 1.0
    assert shaped_reward(trajectory(), RewardSettings(length_target=1), iteration=5) == 1.0


def test_the_length_term_by_hand():
    assert length_term(100, 0.5, 100, 0.5) == 1.0
    assert length_term(200, 0.5, 100, 0.5) == pytest.approx(1 - 0.5 * 0.6931471805599453)
    assert length_term(10_000, 0.5, 100, 0.5) == 0.5
    assert length_term(10_000, 0.5, 100, 0.0) == 0.0
    assert length_term(1, 0.5, 100, 0.5) == 1.0
