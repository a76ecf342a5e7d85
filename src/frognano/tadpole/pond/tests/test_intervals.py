from pond.intervals import covered, first_slot, gaps, locate, merge
from pond.intervals import most_at_once, overlaps, subtract


def test_overlaps_when_a_point_is_shared():
    assert overlaps((1, 5), (4, 8)) is True
    assert overlaps((4, 8), (1, 5)) is True
    assert overlaps((1, 9), (3, 4)) is True


def test_overlaps_is_false_when_touching():
    assert overlaps((1, 4), (4, 8)) is False
    assert overlaps((6, 8), (1, 4)) is False


def test_overlaps_is_false_for_an_empty_one():
    assert overlaps((2, 2), (1, 5)) is False


def test_merge_joins_overlapping_ones():
    assert merge([(5, 8), (1, 3), (2, 4)]) == [(1, 4), (5, 8)]
    assert merge([(1, 9), (2, 4)]) == [(1, 9)]


def test_merge_joins_touching_ones():
    assert merge([(1, 3), (3, 5), (6, 7)]) == [(1, 5), (6, 7)]
    assert merge([(1, 3), (5, 6), (6, 7)]) == [(1, 3), (5, 7)]


def test_merge_drops_empty_ones():
    assert merge([(4, 4), (9, 8), (1, 2)]) == [(1, 2)]
    assert merge([]) == []


def test_gaps_lists_what_is_free():
    assert gaps([(6, 7), (2, 4)], 0, 10) == [(0, 2), (4, 6), (7, 10)]


def test_gaps_is_limited_to_low_and_high():
    assert gaps([(0, 3), (12, 15)], 2, 10) == [(3, 10)]
    assert gaps([(1, 5), (2, 3), (8, 10)], 1, 10) == [(5, 8)]


def test_gaps_when_nothing_is_free_or_taken():
    assert gaps([(0, 5), (5, 9)], 1, 9) == []
    assert gaps([], 1, 9) == [(1, 9)]


def test_subtract_leaves_two_parts():
    assert subtract((1, 9), (3, 5)) == [(1, 3), (5, 9)]


def test_subtract_leaves_one_part():
    assert subtract((1, 9), (0, 5)) == [(5, 9)]
    assert subtract((1, 9), (5, 9)) == [(1, 5)]


def test_subtract_leaves_nothing():
    assert subtract((1, 9), (1, 9)) == []
    assert subtract((1, 9), (0, 10)) == []


def test_subtract_of_nothing_leaves_the_whole():
    assert subtract((1, 9), (9, 12)) == [(1, 9)]
    assert subtract((1, 9), (11, 12)) == [(1, 9)]
    assert subtract((1, 9), (4, 4)) == [(1, 9)]


def test_covered_counts_overlaps_once():
    assert covered([(1, 5), (3, 8), (10, 12)]) == 9


def test_covered_of_touching_ones():
    assert covered([(1, 3), (3, 4)]) == 3


def test_covered_of_nothing_is_zero():
    assert covered([]) == 0
    assert covered([(5, 5)]) == 0


def test_most_at_once_counts_shared_points():
    assert most_at_once([(1, 5), (2, 6), (4, 9), (7, 8)]) == 3
    assert most_at_once([(0, 9), (1, 2), (3, 5), (4, 6)]) == 3


def test_most_at_once_does_not_count_touching_ones():
    assert most_at_once([(1, 3), (3, 5), (5, 6)]) == 1


def test_most_at_once_of_nothing_is_zero():
    assert most_at_once([]) == 0


def test_first_slot_fits_between():
    assert first_slot([(5, 8), (0, 3)], 2, 0, 20) == 3
    assert first_slot([(5, 8), (0, 3)], 3, 0, 20) == 8


def test_first_slot_begins_at_the_start_or_later():
    assert first_slot([(0, 1), (6, 7)], 2, 4, 20) == 4
    assert first_slot([(1, 9), (2, 3)], 1, 1, 20) == 9


def test_first_slot_ends_by_the_end():
    assert first_slot([(0, 6)], 4, 0, 10) == 6
    assert first_slot([(0, 7)], 4, 0, 10) is None
    assert first_slot([], 2, 5, 7) == 5


def test_locate_finds_the_index():
    assert locate([(0, 2), (4, 6), (6, 9)], 5) == 1
    assert locate([(0, 2), (4, 6), (6, 9)], 8) == 2
    assert locate([(0, 2), (4, 6), (6, 9), (9, 11)], 1) == 0


def test_locate_includes_the_start_only():
    assert locate([(0, 2), (4, 6), (6, 9)], 0) == 0
    assert locate([(0, 2), (4, 6), (6, 9)], 6) == 2


def test_locate_gives_minus_one_outside():
    assert locate([(0, 2), (4, 6)], 2) == -1
    assert locate([(0, 2), (4, 6)], 6) == -1
    assert locate([], 1) == -1
