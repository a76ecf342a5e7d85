"""Admission: the lag bound holds whatever the order in which groups finish, and nothing is thrown away for its age."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frognano.train.admission import Slot, capacity, choose, task_at


def test_lag_bound_zero_opens_one_update_at_a_time():
    assert capacity(groups=4, max_lag=0, updates_left=10) == 4
    assert capacity(groups=4, max_lag=1, updates_left=10) == 8
    assert capacity(groups=4, max_lag=3, updates_left=10) == 16


def test_no_group_is_started_that_no_update_could_use():
    assert capacity(groups=4, max_lag=3, updates_left=2) == 8
    assert capacity(groups=4, max_lag=3, updates_left=0) == 0


def slots(*entries):
    return [Slot(seq, version, finished) for seq, (version, finished) in enumerate(entries)]


def test_the_oldest_finished_groups_are_taken():
    assert choose(slots((0, True), (0, True), (0, True)), version=0, groups=2, max_lag=1) == [0, 1]
    assert choose(slots((0, False), (0, True), (0, True)), version=0, groups=2, max_lag=1) == [1, 2]


def test_an_update_waits_until_it_is_full():
    assert choose(slots((0, True), (0, False)), version=0, groups=2, max_lag=1) is None


def test_a_group_that_would_grow_too_old_is_waited_for():
    # At version 1 the group of version 0 can be trained on now and never again.
    assert choose(slots((0, False), (1, True), (1, True)), version=1, groups=2, max_lag=1) is None
    assert choose(slots((0, True), (1, True), (1, True)), version=1, groups=2, max_lag=1) == [0, 1]
    assert choose(slots((0, False), (1, True), (1, True)), version=1, groups=2, max_lag=3) == [1, 2]


def test_more_old_groups_than_the_next_update_can_take_are_waited_for():
    # Three groups fall due at the next update, which holds two.
    late = slots((0, False), (0, False), (0, False), (1, True), (1, True))
    assert choose(late, version=2, groups=2, max_lag=3) is None


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([0, 1, 3]), st.integers(1, 5), st.integers(0, 2**32), st.floats(0, 0.6))
def test_no_group_is_ever_older_than_the_bound_and_every_update_is_filled(max_lag, groups, seed, drop):
    source, open_slots, updates = random.Random(seed), {}, 12
    version, next_seq, used = 0, 0, []

    def admit(updating, left):
        nonlocal next_seq
        while len(open_slots) + updating < capacity(groups, max_lag, left):
            open_slots[next_seq] = Slot(next_seq, version, False)
            next_seq += 1

    def finish_some():
        running = [slot for slot in open_slots.values() if not slot.finished]
        for slot in source.sample(running, source.randint(min(1, len(running)), len(running))):
            if source.random() < drop:
                del open_slots[slot.seq]
            else:
                open_slots[slot.seq] = Slot(slot.seq, slot.version, True)

    while version < updates:
        admit(0, updates - version)
        taken = choose(list(open_slots.values()), version, groups, max_lag)
        if taken is None:
            assert any(not slot.finished for slot in open_slots.values()), "waiting must have something to wait for"
            finish_some()
            continue
        assert len(taken) == groups
        assert all(0 <= version - open_slots[seq].version <= max_lag for seq in taken)
        used += taken
        for seq in taken:
            del open_slots[seq]
        admit(groups, updates - version)
        if source.random() < 0.5 and open_slots:
            finish_some()
        version += 1
    assert len(used) == len(set(used)) == updates * groups
    assert not open_slots


def test_every_task_comes_once_before_any_comes_again():
    tasks = [f"t{index}" for index in range(7)]
    order = [task_at(tasks, seq, seed=3) for seq in range(21)]
    assert [sorted(order[start : start + 7]) for start in (0, 7, 14)] == [tasks] * 3
    assert order[:7] != order[7:14]
    assert order == [task_at(tasks, seq, seed=3) for seq in range(21)]
    assert order != [task_at(tasks, seq, seed=4) for seq in range(21)]


@pytest.mark.parametrize("max_lag", [0, 1, 3])
def test_strict_alternation_only_at_lag_bound_zero(max_lag):
    room_during_an_update = capacity(4, max_lag, 10) - 4
    assert (room_during_an_update == 0) is (max_lag == 0)
