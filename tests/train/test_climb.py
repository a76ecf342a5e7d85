"""The climb: what overlaps, what is dropped and why, when it ends, and that it learns."""

import asyncio
import time
from collections import Counter

import pytest

from frognano.config.train import OptimizerSettings, TrainSettings
from frognano.train.metrics import Event, overlap
from frognano.train.update import Learner


def settings(**changes):
    values = {"updates": 4, "groups": 3, "group_size": 6, "max_lag": 0, "validation_cadence": 0}
    return TrainSettings(optimizer=OptimizerSettings(lr=1e-2), **(values | changes))


class SlowLearner(Learner):
    def step(self, groups):
        time.sleep(0.1)
        return super().step(groups)


def lag_histogram(climb):
    total = Counter()
    for entry in climb.journal.updates("one"):
        total.update(entry.metrics["lag_histogram"])
    return total


def run_traced(make_climb, max_lag, updates=5):
    climb = make_climb(settings(max_lag=max_lag, updates=updates), learner_type=SlowLearner)
    climb.source.delay_s = 0.02
    result = asyncio.run(climb.run())
    return climb, result


def overlaps_at_lag_one(climb):
    """What a run that generates while it updates must show, and a sequential one cannot."""
    return overlap(climb.trace) > 0 and lag_histogram(climb)["1"] > 0


def test_generation_and_update_overlap_at_lag_one(make_climb):
    climb, result = run_traced(make_climb, max_lag=1)
    assert result.reason == "updates_done"
    assert overlaps_at_lag_one(climb)
    histogram = lag_histogram(climb)
    assert set(histogram) == {"0", "1"}
    assert histogram["1"] > histogram["0"]
    assert all(entry.metrics["lag_over"] == 0 for entry in climb.journal.updates("one"))


def test_a_sequential_run_fails_that_test(make_climb):
    climb, _ = run_traced(make_climb, max_lag=0)
    assert not overlaps_at_lag_one(climb)
    assert overlap(climb.trace) == 0
    assert set(lag_histogram(climb)) == {"0"}


def test_lag_three_stays_within_three(make_climb):
    climb, _ = run_traced(make_climb, max_lag=3, updates=6)
    histogram = lag_histogram(climb)
    assert max(map(int, histogram)) in {1, 2, 3}
    assert all(entry.metrics["lag_over"] == 0 for entry in climb.journal.updates("one"))


def test_overlap_counts_seconds():
    trace = [Event("group", 0.0, 2.0, 0), Event("update", 1.0, 3.0, 1), Event("group", 3.0, 4.0, 1)]
    assert overlap(trace) == 1.0


def test_the_reward_rises(make_climb):
    climb = make_climb(settings(updates=12, groups=4, group_size=8))
    result = asyncio.run(climb.run())
    rates = [entry.metrics["solve_rate"] for entry in climb.journal.updates("one")]
    assert sum(rates[:3]) / 3 < 0.6
    assert sum(rates[-3:]) / 3 > sum(rates[:3]) / 3 + 0.25, rates
    assert result.reason in {"updates_done", "nothing_to_learn"}


def test_every_update_has_the_same_metrics(make_climb):
    climb = make_climb(settings(updates=3))
    asyncio.run(climb.run())
    keys = [set(entry.metrics) for entry in climb.journal.updates("one")]
    assert keys[0] == keys[1] == keys[2]
    assert {"reward_raw", "mismatch_kl", "gap_mean", "mask_rate_positive", "grad_norm", "waited_s"} <= keys[0]
    first = climb.journal.updates("one")[0].metrics
    assert first["gap_max"] < 1e-5, "at lag 0 the sampler's and the trainer's probabilities are the same"
    assert first["trajectories"] == 18
    assert first["trained_tokens"] == 18


def test_groups_without_raw_variance_are_replaced_until_the_budget_is_spent(make_climb):
    climb = make_climb(settings(updates=1, refill=1.0))
    rewarding = climb.source.group

    async def some_solved(task_id, group_id, version):
        members = await rewarding(task_id, group_id, version)
        if task_id != "t1":
            return [
                one.model_copy(update={"verdict": one.verdict.model_copy(update={"reward": 1.0})}) for one in members
            ]
        mixed = [float(index % 2) for index in range(len(members))]
        return [
            one.model_copy(update={"verdict": one.verdict.model_copy(update={"reward": reward})})
            for one, reward in zip(members, mixed, strict=True)
        ]

    climb.source.group = some_solved
    result = asyncio.run(climb.run())
    metrics = climb.journal.updates("one")[0].metrics
    states = Counter((group.state, group.reason) for group in climb.journal.groups("one"))
    assert result.updates == 1
    # Three groups and three replacements: every task once, one of them learnable.
    assert states == {("consumed", ""): 1, ("dropped", "all_solved"): 5}
    assert (metrics["groups"], metrics["replaced"], metrics["dropped_all_solved"]) == (1, 3, 5)


def constant(climb, reward):
    sampled = climb.source.group

    async def group(task_id, group_id, version):
        members = await sampled(task_id, group_id, version)
        return [
            one.model_copy(update={"verdict": one.verdict.model_copy(update={"reward": reward})}) for one in members
        ]

    climb.source.group = group


@pytest.mark.parametrize(("reward", "reason"), [(0.0, "none_solved"), (1.0, "all_solved"), (None, "no_verdict")])
@pytest.mark.parametrize("max_lag", [0, 1])
def test_three_skipped_updates_in_a_row_end_the_climb_with_the_reason(make_climb, reward, reason, max_lag):
    climb = make_climb(settings(updates=10, groups=2, max_lag=max_lag))
    constant(climb, reward)
    result = asyncio.run(climb.run())
    assert result.reason == "nothing_to_learn"
    assert result.updates == 3
    assert result.version == 0
    assert result.last == ""
    assert all(entry.skipped for entry in climb.journal.updates("one"))
    assert {group.reason for group in climb.journal.groups("one") if group.state == "dropped"} <= {
        reason,
        "climb_ended",
    }
    assert climb.journal.updates("one")[0].metrics[f"dropped_{reason}"] >= 4


def test_skipping_leaves_weights_and_optimizer_alone(make_climb):
    climb = make_climb(settings(updates=2, groups=2))
    before = {name: tensor.clone() for name, tensor in climb.learner.model.state_dict().items()}
    constant(climb, 0.0)
    asyncio.run(climb.run())
    assert all((tensor == before[name]).all() for name, tensor in climb.learner.model.state_dict().items())
    assert not climb.learner.optimizer.state


def test_validation_keeps_the_best_and_the_last_checkpoint(make_climb):
    climb = make_climb(settings(updates=6, validation_cadence=2))
    climb.source.scores = [0.1, 0.3, 0.2, 0.25]
    result = asyncio.run(climb.run())
    assert (result.best, result.best_score, result.last) == ("one-u00002", 0.3, "one-u00006")
    assert sorted(folder.name for folder in climb.store.root.iterdir()) == ["one-u00002", "one-u00006"]
    assert [(entry.number, entry.score) for entry in climb.journal.validations("one")] == [
        (0, 0.1), (2, 0.3), (4, 0.2), (6, 0.25),
    ]  # fmt: skip


def test_the_start_can_be_the_best(make_climb):
    climb = make_climb(settings(updates=2, validation_cadence=1))
    climb.source.scores = [0.5, 0.4, 0.5]
    result = asyncio.run(climb.run())
    assert (result.best, result.best_score) == ("", 0.5)


def test_validations_without_gain_end_the_climb(make_climb):
    climb = make_climb(settings(updates=50, validation_cadence=1, patience=2))
    climb.source.scores = [0.1, 0.2, 0.2, 0.1, 0.9]
    result = asyncio.run(climb.run())
    assert result.reason == "validation_saturated"
    assert result.updates == 3
    assert result.best == "one-u00001"


def test_the_last_update_is_validated_off_the_cadence(make_climb):
    climb = make_climb(settings(updates=3, validation_cadence=2))
    climb.source.scores = [0.1, 0.2, 0.3]
    assert asyncio.run(climb.run()).best == "one-u00003"


def test_without_validation_the_best_is_the_last(make_climb):
    result = asyncio.run(make_climb(settings(updates=2)).run())
    assert result.best == result.last == "one-u00002"
    assert result.best_score is None


def test_members_without_a_verdict_are_left_out_and_counted(make_climb):
    climb = make_climb(settings(updates=1, groups=2))
    sampled = climb.source.group

    async def group(task_id, group_id, version):
        members = await sampled(task_id, group_id, version)
        rewards = [None, *(float(index % 2) for index in range(len(members) - 1))]
        return [
            one.model_copy(update={"verdict": one.verdict.model_copy(update={"reward": reward})})
            for one, reward in zip(members, rewards, strict=True)
        ]

    climb.source.group = group
    asyncio.run(climb.run())
    metrics = climb.journal.updates("one")[0].metrics
    assert (metrics["trajectories"], metrics["unscored"]) == (10, 2)


def test_what_a_source_raises_ends_the_climb(make_climb):
    climb = make_climb(settings())

    async def group(task_id, group_id, version):
        raise ConnectionError("the engine is gone")

    climb.source.group = group
    with pytest.raises(ConnectionError, match="the engine is gone"):
        asyncio.run(climb.run())


def test_a_cancelled_climb_leaves_nothing_running_and_can_be_resumed(make_climb):
    climb = make_climb(settings(max_lag=1), learner_type=SlowLearner)

    async def cancel_in_the_second_update():
        task = asyncio.create_task(climb.run())
        climb.on_update = lambda _entry: asyncio.get_running_loop().call_later(0.03, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        return [other for other in asyncio.all_tasks() if other is not asyncio.current_task()]

    assert asyncio.run(cancel_in_the_second_update()) == []
    assert asyncio.run(make_climb(settings(max_lag=1)).run()).updates == 4


def test_groups_left_open_at_the_end_are_accounted_for(make_climb):
    climb = make_climb(settings(updates=50, validation_cadence=1, patience=1, max_lag=3))
    climb.source.scores = [0.2, 0.1]
    asyncio.run(climb.run())
    groups = climb.journal.groups("one")
    assert all(group.state != "started" for group in groups)
    assert {group.reason for group in groups if group.state == "dropped"} <= {
        "climb_ended", "none_solved", "all_solved",
    }  # fmt: skip


def test_two_climbs_of_one_run_do_not_meet(make_climb):
    first = make_climb(settings(updates=1))
    asyncio.run(first.run())
    second = make_climb(settings(updates=1))
    second.plan = type(second.plan)("two", second.plan.tasks)
    asyncio.run(second.run())
    assert sorted(folder.name for folder in second.store.root.iterdir()) == ["one-u00001", "two-u00001"]
