from pond.sets import common, covers, difference, exclusive, majority
from pond.sets import repeated, similarity, subsets, unique


def test_unique_keeps_the_first_of_equals():
    assert unique([3, 1, 3, 2, 1]) == [3, 1, 2]


def test_unique_compares_by_key():
    assert unique(["Hop", "hop", "Frog"], key=str.lower) == ["Hop", "Frog"]


def test_unique_of_nothing_is_empty():
    assert unique([]) == []


def test_common_keeps_what_all_have():
    assert common([4, 1, 2, 3], [1, 2, 4], [4, 2, 9]) == [4, 2]


def test_common_drops_repeats():
    assert common([1, 1, 2], [1]) == [1]


def test_common_of_a_single_list():
    assert common([2, 1, 2]) == [2, 1]
    assert common([], [1]) == []


def test_difference_removes_one_for_each():
    assert difference([1, 2, 1, 3], [1, 3]) == [2, 1]
    assert difference([1, 2, 1], [1, 1]) == [2]


def test_difference_ignores_other_items():
    assert difference([1, 2], [5, 2]) == [1]


def test_difference_with_an_empty_list():
    assert difference([1, 1], []) == [1, 1]
    assert difference([], [1]) == []


def test_exclusive_takes_left_then_right():
    assert exclusive([3, 1, 2], [5, 2, 4]) == [3, 1, 5, 4]


def test_exclusive_keeps_repeats():
    assert exclusive([1, 1], [2, 2]) == [1, 1, 2, 2]


def test_exclusive_of_equal_lists_is_empty():
    assert exclusive([1, 2], [2, 1]) == []


def test_similarity_is_a_share():
    assert similarity([1, 2, 3], [2, 3, 4]) == 0.5
    assert similarity([1, 1, 2], [2]) == 0.5


def test_similarity_at_both_ends():
    assert similarity([1, 2], [2, 1]) == 1
    assert similarity([1], [2]) == 0


def test_similarity_of_empty_lists_is_one():
    assert similarity([], []) == 1
    assert similarity([], [1]) == 0


def test_subsets_defaults_to_pairs():
    assert subsets([1, 2, 3]) == [[1], [2], [3], [1, 2], [1, 3], [2, 3]]


def test_subsets_of_all_sizes():
    assert subsets(["b", "a"], 3) == [["b"], ["a"], ["b", "a"]]
    assert subsets([1, 2, 3], 3)[-1] == [1, 2, 3]


def test_subsets_of_nothing_is_empty():
    assert subsets([]) == []
    assert subsets([1, 2], 0) == []


def test_majority_is_more_than_half():
    assert majority([1, 2, 2]) == 2
    assert majority(["a", "b", "a", "c", "a"]) == "a"


def test_majority_is_not_just_half():
    assert majority([1, 1, 2, 2]) is None
    assert majority([1, 1, 2, 3], 0) == 0


def test_majority_of_nothing_is_the_default():
    assert majority([]) is None
    assert majority([], 5) == 5


def test_repeated_defaults_to_twice():
    assert repeated([1, 2, 2, 3, 1, 1]) == [2, 1]


def test_repeated_takes_another_number():
    assert repeated([1, 2, 1, 2, 1], 3) == [1]
    assert repeated([1, 2, 1], 1) == [1, 2]


def test_repeated_of_distinct_items_is_empty():
    assert repeated([1, 2, 3]) == []


def test_covers_ignores_the_order():
    assert covers([3, 1, 2], [2, 3]) is True
    assert covers([1, 2], [1, 4]) is False


def test_covers_counts_repeats():
    assert covers([1, 2], [1, 1]) is False
    assert covers([1, 1, 2], [1, 1]) is True


def test_covers_an_empty_part():
    assert covers([], []) is True
    assert covers([], [1]) is False
