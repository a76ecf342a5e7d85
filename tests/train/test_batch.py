"""Groups, rows and micro-batches."""

import pytest
import torch

from frognano.config.train import AdvantageSettings, RewardSettings, TrainSettings
from frognano.train.batch import BatchError, make_group, make_row, micro_batches, pad_rows, rows_of, trainable_tokens
from frognano.train.lean import LeanBackbone
from frognano.train.logprobs import split_model

PAPER = TrainSettings()


def test_the_filter_looks_at_the_raw_reward(trajectory):
    cut = [trajectory("a-0"), trajectory("a-1", exit_reason="max_turns")]
    group = make_group("g", "a", cut, PAPER)
    assert group.shaped == (1.0, 0.5)
    assert group.drop_reason == "all_solved"


def test_drop_reasons(trajectory):
    def reason(*rewards):
        return make_group("g", "a", [trajectory(f"a-{i}", r) for i, r in enumerate(rewards)], PAPER).drop_reason

    assert reason(1.0, 0.0, None) == ""
    assert reason(0.0, 0.0) == "none_solved"
    assert reason(1.0, 1.0) == "all_solved"
    assert reason(1.0, None) == "no_verdict"
    assert reason(None, None) == "no_verdict"


def test_advantages_come_from_the_shaped_reward(trajectory):
    settings = TrainSettings(reward=RewardSettings(truncated=0.5))
    members = [trajectory("a-0"), trajectory("a-1", exit_reason="max_time"), trajectory("a-2", reward=0.0)]
    group = make_group("g", "a", members, settings)
    assert group.advantages == pytest.approx((0.5 / (1 / 6**0.5 + 1e-6), 0.0, -0.5 / (1 / 6**0.5 + 1e-6)))
    assert len(rows_of([group])) == 3, "a member with A = 0 stays in the batch and in the denominator"


def test_members_without_a_verdict_are_no_rows(trajectory):
    group = make_group("g", "a", [trajectory("a-0"), trajectory("a-1", None), trajectory("a-2", 0.0)], PAPER)
    assert [row.trajectory_id for row in rows_of([group])] == ["a-0", "a-2"]


def test_permuted_rewards_are_the_same_rewards_in_another_order(trajectory):
    settings = TrainSettings(advantage=AdvantageSettings(permute_rewards=True))
    members = [trajectory(f"a-{index}", float(index < 3)) for index in range(8)]
    groups = [make_group(f"g{number}", "a", members, settings) for number in range(20)]
    assert all(sorted(group.shaped) == [0.0] * 5 + [1.0] * 3 for group in groups)
    assert len({group.shaped for group in groups}) > 5
    assert groups[0].shaped == make_group("g0", "a", members, settings).shaped
    assert all(group.raw[:3] == (1.0, 1.0, 1.0) for group in groups)


def test_an_attempt_that_sampled_nothing_shapes_the_baseline_and_is_no_row(trajectory):
    members = [trajectory("a-0"), trajectory("a-1", 0.0, mask=(0,) * 6, exit_reason="max_context_len")]
    group = make_group("g", "a", members, PAPER)
    assert group.advantages[0] > 0
    assert [row.trajectory_id for row in rows_of([group])] == ["a-0"]


def test_what_is_trained_is_what_was_recorded_as_sampled(trajectory):
    # 9 is the end of a turn and the padding: sampled at position 3, appended at 5, sampled at 7.
    row = make_row(trajectory(ids=(1, 2, 3, 9, 4, 9, 5, 9), mask=(0, 0, 1, 1, 0, 0, 1, 1)), 1.0)
    assert row.targets.tolist() == [2, 3, 6, 7]
    batch = pad_rows([row], pad_id=9)
    assert batch.targets.tolist() == [3, 9, 5, 9]
    assert batch.predicting.tolist() == [1, 2, 5, 6]
    assert trainable_tokens([row]) == 4


def test_an_episode_cut_by_length_trains_its_last_token_and_appends_none(trajectory):
    row = make_row(trajectory(ids=(1, 2, 3), mask=(0, 1, 1), exit_reason="max_tokens_per_turn"), 1.0)
    assert pad_rows([row], pad_id=9).targets.tolist() == [2, 3]


@pytest.mark.parametrize("logprob", [float("nan"), float("-inf"), float("inf"), 0.5])
def test_a_token_without_a_possible_log_probability_is_refused_by_name(trajectory, logprob):
    with pytest.raises(BatchError, match="task a, trajectory a-3: token 2"):
        make_row(trajectory("a-3", ids=(1, 2, 3), mask=(0, 0, 1), logprobs=(0.0, 0.0, logprob)), 1.0)


def test_rows_without_tokens_are_refused(trajectory):
    with pytest.raises(BatchError, match="no token row"):
        make_row(trajectory().model_copy(update={"tokens": None}), 1.0)
    with pytest.raises(BatchError, match="no sampled token"):
        make_row(trajectory(mask=(0,) * 6), 1.0)
    with pytest.raises(BatchError, match="nothing stands before it"):
        make_row(trajectory(mask=(1,) * 6), 1.0)


def test_micro_batches_hold_every_row_once_within_the_budget(random_groups):
    rows = rows_of(random_groups(4, 6))
    batches = micro_batches(rows, token_budget=100)
    assert sorted(row.trajectory_id for batch in batches for row in batch.rows) == sorted(r.trajectory_id for r in rows)
    assert all(batch.ids.numel() <= 100 for batch in batches)
    assert sum(batch.targets.numel() for batch in batches) == trainable_tokens(rows)
    assert len(micro_batches(rows, token_budget=1)) == len(rows)


def test_flattened_positions_point_at_the_token_before_the_target(random_groups):
    rows = rows_of(random_groups(2, 4))
    for batch in micro_batches(rows, token_budget=150):
        for place, index, target in zip(batch.predicting, batch.row_of, batch.targets, strict=True):
            row, position = batch.rows[int(index)], int(place) - int(index) * batch.ids.shape[1]
            assert batch.ids.flatten()[place] == row.ids[position]
            assert row.ids[position + 1] == target
            assert position + 1 in row.targets


@pytest.mark.parametrize("kind", ["qwen3", "hybrid"])
def test_right_padding_never_reaches_a_real_token(tiny_model, random_groups, kind):
    backbone = LeanBackbone(split_model(tiny_model(kind))[0], whole=False)
    rows = rows_of(random_groups(2, 4))
    padded = pad_rows(rows, pad_id=3)
    together = backbone(padded.ids, padded.predicting)
    singles = [pad_rows([row]) for row in rows]
    alone = torch.cat([backbone(single.ids, single.predicting) for single in singles])
    torch.testing.assert_close(together, alone, atol=2e-5, rtol=1e-4)
