import pytest

from pond.ranges import clamp, countdown, format_ranges, missing
from pond.ranges import nearest_multiple, page_bounds, page_count
from pond.ranges import parse_ranges, resolve_slice, window, wrap


def test_clamp_keeps_a_value_inside_the_limits():
    assert clamp(5, 1, 10) == 5
    assert clamp(9, 4, 4) == 4


def test_clamp_limits_both_ends():
    assert clamp(0, 1, 10) == 1
    assert clamp(11, 1, 10) == 10


def test_clamp_rejects_crossed_limits():
    with pytest.raises(ValueError):
        clamp(1, 5, 4)


def test_wrap_keeps_a_value_inside_the_limits():
    assert wrap(3, 1, 12) == 3
    assert wrap(12, 1, 12) == 12
    assert wrap(9, 4, 4) == 4


def test_wrap_goes_around_at_both_ends():
    assert wrap(13, 1, 12) == 1
    assert wrap(0, 1, 12) == 12


def test_wrap_rejects_crossed_limits():
    with pytest.raises(ValueError):
        wrap(1, 5, 3)


def test_page_count_counts_a_short_last_page():
    assert page_count(41, 20) == 3


def test_page_count_of_full_pages():
    assert page_count(40, 20) == 2
    assert page_count(3, 1) == 3
    assert page_count(0, 5) == 0


def test_page_count_defaults_to_twenty_a_page():
    assert page_count(20) == 1
    assert page_count(21) == 2


def test_page_count_rejects_sizes_too_small():
    with pytest.raises(ValueError):
        page_count(-1, 5)
    with pytest.raises(ValueError):
        page_count(1, 0)


def test_page_bounds_of_a_middle_page():
    assert page_bounds(2, 25, 10) == (10, 20)


def test_page_bounds_cuts_the_last_page():
    assert page_bounds(3, 25, 10) == (20, 25)


def test_page_bounds_defaults_to_twenty_a_page():
    assert page_bounds(1, 50) == (0, 20)


def test_page_bounds_of_nothing():
    assert page_bounds(1, 0, 10) == (0, 0)


def test_page_bounds_rejects_a_page_past_the_end():
    with pytest.raises(IndexError):
        page_bounds(3, 20, 10)
    with pytest.raises(IndexError):
        page_bounds(2, 10, 10)


def test_page_bounds_rejects_page_zero():
    with pytest.raises(IndexError):
        page_bounds(0, 20, 10)


def test_parse_ranges_reads_ranges_and_single_numbers():
    assert parse_ranges("1-3,7") == [1, 2, 3, 7]


def test_parse_ranges_sorts_and_drops_repeats():
    assert parse_ranges("5,2-3,3") == [2, 3, 5]


def test_parse_ranges_skips_blank_parts():
    assert parse_ranges(" 4 ,, ") == [4]
    assert parse_ranges("") == []


def test_parse_ranges_accepts_a_range_of_one():
    assert parse_ranges("4-4") == [4]


def test_parse_ranges_rejects_a_backwards_range():
    with pytest.raises(ValueError, match="backwards range: 5-4"):
        parse_ranges("1, 5-4")


def test_format_ranges_joins_neighbours():
    assert format_ranges([1, 2, 3, 7]) == "1-3,7"


def test_format_ranges_of_two_neighbours():
    assert format_ranges([1, 4, 5]) == "1,4-5"


def test_format_ranges_keeps_a_gap_of_two_apart():
    assert format_ranges([1, 3, 5]) == "1,3,5"


def test_format_ranges_of_nothing_is_empty():
    assert format_ranges([]) == ""


def test_countdown_defaults_to_zero_by_ones():
    assert countdown(3) == [3, 2, 1, 0]


def test_countdown_never_passes_the_stop():
    assert countdown(9, 2, 3) == [9, 6, 3]
    assert countdown(9, 3, 3) == [9, 6, 3]


def test_countdown_from_below_the_stop_is_empty():
    assert countdown(1, 2) == []


def test_countdown_rejects_a_step_of_zero():
    with pytest.raises(ValueError):
        countdown(3, 0, 0)


def test_nearest_multiple_goes_to_the_closer_side():
    assert nearest_multiple(12, 5) == 10
    assert nearest_multiple(13, 5) == 15


def test_nearest_multiple_sends_a_tie_up():
    assert nearest_multiple(6, 4) == 8
    assert nearest_multiple(-6, 4) == -4


def test_nearest_multiple_keeps_a_multiple():
    assert nearest_multiple(8, 4) == 8
    assert nearest_multiple(7, 1) == 7


def test_nearest_multiple_rejects_a_step_of_zero():
    with pytest.raises(ValueError):
        nearest_multiple(8, 0)


def test_missing_lists_the_gaps_in_order():
    assert missing([7, 2, 4]) == [3, 5, 6]


def test_missing_of_neighbours_is_empty():
    assert missing([1, 2, 3]) == []


def test_missing_of_nothing_is_empty():
    assert missing([]) == []


def test_window_is_centered():
    assert window(5, 3, 10) == (4, 7)


def test_window_of_even_size_leans_back():
    assert window(5, 4, 10) == (3, 7)


def test_window_moves_to_stay_inside():
    assert window(0, 3, 10) == (0, 3)
    assert window(9, 3, 10) == (7, 10)


def test_window_is_cut_to_the_total():
    assert window(1, 8, 5) == (0, 5)


def test_resolve_slice_reads_both_ends():
    assert resolve_slice("2:5", 10) == (2, 5)


def test_resolve_slice_fills_missing_ends():
    assert resolve_slice("3:", 10) == (3, 10)
    assert resolve_slice(":", 4) == (0, 4)


def test_resolve_slice_counts_negative_ends_from_the_end():
    assert resolve_slice("-3:-1", 10) == (7, 9)
    assert resolve_slice("0:2", 10) == (0, 2)


def test_resolve_slice_limits_both_ends():
    assert resolve_slice("-20:20", 10) == (0, 10)


def test_resolve_slice_rejects_a_spec_without_colon():
    with pytest.raises(ValueError):
        resolve_slice("5", 10)
