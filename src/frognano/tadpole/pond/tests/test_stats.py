import pytest

from pond.stats import histogram, max_drop, mean, median, modes
from pond.stats import moving_average, quantile, ranks, rescale
from pond.stats import variance, weighted_mean


def test_mean_of_several_values():
    assert mean([1, 2, 6]) == 3


def test_mean_of_one_value():
    assert mean([2.5]) == 2.5


def test_mean_rejects_no_values():
    with pytest.raises(ValueError, match="no values"):
        mean([])


def test_median_of_an_odd_count():
    assert median([9, 1, 5]) == 5
    assert median([9, 1, 5, 2, 7]) == 5


def test_median_of_an_even_count():
    assert median([8, 1, 3, 4]) == 3.5
    assert median([1, 2]) == 1.5


def test_median_of_one_value():
    assert median([7]) == 7


def test_median_rejects_no_values():
    with pytest.raises(ValueError, match="no values"):
        median([])


def test_modes_finds_the_most_frequent():
    assert modes([3, 1, 3, 2]) == [3]


def test_modes_sorts_equals():
    assert modes([5, 2, 2, 5, 1]) == [2, 5]
    assert modes([2, 1]) == [1, 2]


def test_modes_of_nothing_is_empty():
    assert modes([]) == []


def test_variance_defaults_to_a_sample():
    assert variance([1, 3, 5]) == 4
    assert variance([1, 3]) == 2


def test_variance_of_a_population():
    assert variance([1, 3], sample=False) == 1
    assert variance([4], sample=False) == 0


def test_variance_rejects_a_sample_of_one():
    with pytest.raises(ValueError):
        variance([1])


def test_variance_rejects_an_empty_population():
    with pytest.raises(ValueError):
        variance([], sample=False)


def test_quantile_defaults_to_the_middle():
    assert quantile([5, 1, 3]) == 3


def test_quantile_interpolates():
    assert quantile([10, 20, 30, 40, 50], 0.125) == 15
    assert quantile([0, 10], 0.25) == 2.5


def test_quantile_reaches_both_ends():
    assert quantile([4, 2, 9], 0) == 2
    assert quantile([4, 2, 9], 1) == 9


def test_quantile_rejects_a_share_outside_its_limits():
    with pytest.raises(ValueError):
        quantile([1, 2], 1.01)
    with pytest.raises(ValueError):
        quantile([1, 2], -0.01)


def test_quantile_rejects_no_values():
    with pytest.raises(ValueError):
        quantile([], 0.5)


def test_histogram_counts_per_bin():
    assert histogram([1, 2, 2, 7], [0, 2, 5, 9]) == [1, 2, 1]
    assert histogram([1, 3], [0, 2]) == [1]


def test_histogram_puts_an_edge_in_the_upper_bin():
    assert histogram([0, 5], [0, 5, 9]) == [1, 1]


def test_histogram_keeps_the_last_edge():
    assert histogram([9, 9], [0, 5, 9]) == [0, 2]


def test_histogram_leaves_out_values_outside():
    assert histogram([-1, 10], [0, 5, 9]) == [0, 0]


def test_histogram_rejects_a_single_edge():
    with pytest.raises(ValueError):
        histogram([1], [0])


def test_moving_average_defaults_to_three():
    assert moving_average([1, 2, 3, 7]) == [2, 4]


def test_moving_average_of_size_one():
    assert moving_average([1, 4], 1) == [1, 4]


def test_moving_average_of_too_few_values():
    assert moving_average([1, 2], 3) == []


def test_moving_average_rejects_size_zero():
    with pytest.raises(ValueError):
        moving_average([1], 0)


def test_weighted_mean_counts_weights():
    assert weighted_mean([10, 20], [3, 1]) == 12.5


def test_weighted_mean_ignores_a_weight_of_zero():
    assert weighted_mean([10, 99], [2, 0]) == 10


def test_weighted_mean_rejects_other_lengths():
    with pytest.raises(ValueError, match="lengths differ"):
        weighted_mean([1, 2], [1])


def test_weighted_mean_rejects_weights_of_zero():
    with pytest.raises(ValueError, match="weights sum to 0"):
        weighted_mean([1, 2], [0, 0])


def test_ranks_puts_the_greatest_first():
    assert ranks([10, 30, 20]) == [3, 1, 2]


def test_ranks_shares_and_skips():
    assert ranks([9, 7, 7, 5]) == [1, 2, 2, 4]


def test_ranks_of_nothing_is_empty():
    assert ranks([]) == []


def test_rescale_defaults_to_zero_and_one():
    assert rescale([2, 6, 4]) == [0, 1, 0.5]


def test_rescale_to_other_limits():
    assert rescale([0, 5, 10], 10, 30) == [10, 20, 30]


def test_rescale_of_equal_values_gives_low():
    assert rescale([4, 4]) == [0, 0]
    assert rescale([4], 2, 3) == [2]


def test_rescale_of_nothing_is_empty():
    assert rescale([]) == []


def test_max_drop_finds_the_greatest_fall():
    assert max_drop([3, 8, 5, 9, 2, 4]) == 7
    assert max_drop([-1, -4]) == 3


def test_max_drop_looks_only_forward():
    assert max_drop([1, 5, 4]) == 1


def test_max_drop_of_rising_values_is_zero():
    assert max_drop([1, 2, 2]) == 0


def test_max_drop_of_nothing_is_zero():
    assert max_drop([]) == 0
