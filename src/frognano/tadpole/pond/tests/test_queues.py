import pytest

from pond.queues import PriorityQueue, assign_turns, batches, count_out
from pond.queues import insert_sorted, interleave, merge_sorted
from pond.queues import push_capped, retry_delays, rotate


def test_priority_queue_pops_the_lowest_number_first():
    queue = PriorityQueue()
    for item, priority in (("b", 2), ("a", 1), ("c", 3)):
        queue.push(item, priority)
    assert [queue.pop() for _ in range(3)] == ["a", "b", "c"]


def test_priority_queue_keeps_the_order_of_equals():
    queue = PriorityQueue()
    for item in ("z", "y", "x"):
        queue.push(item)
    queue.push("w", 0)
    queue.push("first", -1)
    assert [queue.pop() for _ in range(5)] == ["first", "z", "y", "x", "w"]


def test_priority_queue_knows_its_length():
    queue = PriorityQueue()
    queue.push("a")
    assert len(queue) == 1


def test_priority_queue_rejects_pop_when_empty():
    with pytest.raises(IndexError, match="empty queue"):
        PriorityQueue().pop()


def test_rotate_defaults_to_one_step():
    assert rotate([1, 2, 3]) == [2, 3, 1]


def test_rotate_back_for_negative_steps():
    assert rotate([1, 2, 3, 4], -1) == [4, 1, 2, 3]


def test_rotate_goes_around():
    assert rotate([1, 2, 3], 5) == [3, 1, 2]
    assert rotate([1, 2, 3], 3) == [1, 2, 3]


def test_rotate_of_nothing_is_empty():
    assert rotate([], 2) == []


def test_batches_leaves_a_short_last_one():
    assert batches([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]


def test_batches_of_full_size():
    assert batches([1, 2, 3], 3) == [[1, 2, 3]]
    assert batches([1, 2], 1) == [[1], [2]]


def test_batches_of_nothing_is_empty():
    assert batches([], 3) == []


def test_batches_rejects_size_zero():
    with pytest.raises(ValueError):
        batches([1], 0)
    with pytest.raises(ValueError):
        batches([1], -1)


def test_interleave_takes_turns():
    assert interleave([1, 2], ["a", "b"]) == [1, "a", 2, "b"]


def test_interleave_skips_a_queue_that_ran_out():
    assert interleave([1], [2, 3, 4], [5, 6]) == [1, 2, 5, 3, 6, 4]


def test_interleave_of_nothing_is_empty():
    assert interleave() == []
    assert interleave([], []) == []


def test_merge_sorted_keeps_the_order():
    assert merge_sorted([1, 4, 6], [2, 3, 7, 8]) == [1, 2, 3, 4, 6, 7, 8]


def test_merge_sorted_takes_equals_from_the_left_first():
    merged = merge_sorted([1.0, 2.0], [1, 2])
    assert [type(item) for item in merged] == [float, int, float, int]


def test_merge_sorted_with_an_empty_list():
    assert merge_sorted([], [1, 2]) == [1, 2]
    assert merge_sorted([3], []) == [3]


def test_insert_sorted_finds_the_place():
    assert insert_sorted([1, 3, 5, 7], 4) == [1, 3, 4, 5, 7]


def test_insert_sorted_at_both_ends():
    assert insert_sorted([2, 3], 1) == [1, 2, 3]
    assert insert_sorted([2, 3], 4) == [2, 3, 4]


def test_insert_sorted_goes_after_equals():
    placed = insert_sorted([1, 2, 2, 3], 2.0)
    assert [type(item) for item in placed] == [int, int, int, float, int]


def test_insert_sorted_into_nothing():
    assert insert_sorted([], 1) == [1]


def test_assign_turns_deals_in_order():
    turns = assign_turns([1, 2, 3, 4, 5], ["a", "b"])
    assert turns == {"a": [1, 3, 5], "b": [2, 4]}


def test_assign_turns_lists_idle_workers():
    assert assign_turns([1], ["a", "b"]) == {"a": [1], "b": []}


def test_assign_turns_rejects_no_workers():
    with pytest.raises(ValueError, match="no workers"):
        assign_turns([1], [])


def test_push_capped_drops_the_oldest():
    assert push_capped([1, 2, 3], 4, 3) == [2, 3, 4]
    assert push_capped([1, 2], 3, 1) == [3]


def test_push_capped_adds_while_there_is_room():
    assert push_capped([], 1, 2) == [1]
    assert push_capped([1], 2, 2) == [1, 2]


def test_push_capped_defaults_to_ten():
    assert push_capped([0] * 10, 1) == [0] * 9 + [1]


def test_push_capped_rejects_limit_zero():
    with pytest.raises(ValueError):
        push_capped([1], 2, 0)


def test_retry_delays_doubles_each_wait():
    assert retry_delays(4) == [1, 2, 4]


def test_retry_delays_is_capped():
    assert retry_delays(8)[-2:] == [32, 60]
    assert retry_delays(4, 5, 10) == [5, 10, 10]


def test_retry_delays_of_one_try_is_empty():
    assert retry_delays(1) == []
    assert retry_delays(0) == []


def test_count_out_takes_every_third():
    assert count_out([1, 2, 3, 4, 5], 3) == [3, 1, 5, 2, 4]


def test_count_out_by_one_keeps_the_order():
    assert count_out(["a", "b", "c"], 1) == ["a", "b", "c"]


def test_count_out_of_nobody_is_empty():
    assert count_out([], 2) == []


def test_count_out_rejects_step_zero():
    with pytest.raises(ValueError):
        count_out([1], 0)
