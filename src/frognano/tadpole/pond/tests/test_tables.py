import pytest

from pond.tables import column_widths, columns, fill_missing, format_row
from pond.tables import group_rows, join_rows, parse_row, pivot
from pond.tables import sort_rows, total_by, where


def test_columns_keeps_the_order_of_appearance():
    assert columns([{"b": 1, "a": 2}, {"c": 3, "a": 4}]) == ["b", "a", "c"]


def test_columns_lists_each_key_once():
    assert columns([{"a": 1}, {"a": 2}]) == ["a"]


def test_columns_of_nothing_is_empty():
    assert columns([]) == []


def test_where_keeps_matching_rows():
    rows = [{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}]
    assert where(rows, a=1) == [{"a": 1, "b": 1}, {"a": 1, "b": 2}]


def test_where_needs_all_values():
    rows = [{"a": 1, "b": 1}, {"a": 1, "b": 2}]
    assert where(rows, a=1, b=2) == [{"a": 1, "b": 2}]


def test_where_leaves_out_rows_without_the_key():
    assert where([{"b": 1}, {"a": None}], a=None) == [{"a": None}]


def test_where_of_nothing_wanted_keeps_all():
    assert where([{"a": 1}, {}]) == [{"a": 1}, {}]


def test_sort_rows_is_ascending():
    rows = [{"n": 3}, {"n": 1}, {"n": 2}]
    assert sort_rows(rows, "n") == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_sort_rows_can_be_reversed():
    rows = [{"n": 1}, {}, {"n": 2}]
    assert sort_rows(rows, "n", reverse=True) == [{"n": 2}, {"n": 1}, {}]


def test_sort_rows_puts_rows_without_key_last():
    rows = [{"m": 1}, {"n": 5}, {}]
    assert sort_rows(rows, "n") == [{"n": 5}, {"m": 1}, {}]


def test_sort_rows_keeps_the_order_of_equals():
    rows = [{"n": 1, "i": 1}, {"n": 0, "i": 2}, {"n": 1, "i": 3}]
    assert [row["i"] for row in sort_rows(rows, "n")] == [2, 1, 3]


def test_group_rows_collects_by_value():
    a, b, c = {"k": 1}, {"k": 2}, {"k": 1, "x": 0}
    assert group_rows([a, b, c], "k") == {1: [a, c], 2: [b]}


def test_group_rows_keeps_the_order_of_appearance():
    groups = group_rows([{"k": "z"}, {"k": "a"}], "k")
    assert list(groups) == ["z", "a"]


def test_group_rows_leaves_out_rows_without_key():
    assert group_rows([{"x": 1}], "k") == {}


def test_total_by_adds_up_per_key():
    rows = [{"k": "a", "n": 2}, {"k": "b", "n": 5}, {"k": "a", "n": 3}]
    assert total_by(rows, "k", "n") == {"a": 5, "b": 5}


def test_total_by_counts_a_missing_field_as_zero():
    assert total_by([{"k": "a"}, {"k": "a", "n": 4}], "k", "n") == {"a": 4}
    assert total_by([{"k": "a"}], "k", "n") == {"a": 0}


def test_total_by_rejects_a_row_without_key():
    with pytest.raises(KeyError):
        total_by([{"n": 1}], "k", "n")


def test_total_by_of_no_rows_is_empty():
    assert total_by([], "k", "n") == {}


def test_fill_missing_adds_every_key():
    rows = [{"a": 1}, {"b": 2}]
    assert fill_missing(rows) == [{"a": 1, "b": ""}, {"a": "", "b": 2}]


def test_fill_missing_takes_another_default():
    assert fill_missing([{"a": 1}, {}], 0) == [{"a": 1}, {"a": 0}]


def test_fill_missing_replaces_none_only():
    assert fill_missing([{"a": None, "b": 0}], "-") == [{"a": "-", "b": 0}]


def test_fill_missing_of_no_rows_is_empty():
    assert fill_missing([]) == []


def test_join_rows_merges_equal_keys():
    left = [{"id": 1, "a": "x"}, {"id": 2, "a": "y"}]
    merged = {"id": 2, "a": "y", "b": "z"}
    assert join_rows(left, [{"id": 2, "b": "z"}], "id") == [merged]


def test_join_rows_gives_every_pair_in_order():
    left = [{"k": 1, "a": 1}, {"k": 1, "a": 2}]
    right = [{"k": 1, "b": 1}, {"k": 1, "b": 2}]
    pairs = [(r["a"], r["b"]) for r in join_rows(left, right, "k")]
    assert pairs == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_join_rows_lets_the_right_one_win():
    joined = join_rows([{"k": 1, "v": "l"}], [{"k": 1, "v": "r"}], "k")
    assert joined == [{"k": 1, "v": "r"}]


def test_join_rows_of_nothing_is_empty():
    assert join_rows([{"k": 1}], [], "k") == []


def test_pivot_builds_rows_and_columns():
    rows = [{"d": 1, "c": "x", "v": 5}, {"d": 1, "c": "y", "v": 6}]
    assert pivot(rows, "d", "c", "v") == {1: {"x": 5, "y": 6}}


def test_pivot_separates_rows():
    rows = [{"d": 2, "c": "x", "v": 5}, {"d": 1, "c": "x", "v": 6}]
    assert pivot(rows, "d", "c", "v") == {2: {"x": 5}, 1: {"x": 6}}


def test_pivot_rejects_a_cell_filled_twice():
    rows = [{"d": 1, "c": "x", "v": 5}, {"d": 1, "c": "x", "v": 5}]
    with pytest.raises(ValueError, match="cell filled twice"):
        pivot(rows, "d", "c", "v")


def test_pivot_of_no_rows_is_empty():
    assert pivot([], "d", "c", "v") == {}


def test_column_widths_takes_the_longest_cell():
    assert column_widths([["a", "bbb"], ["cc", "d"]]) == [2, 3]
    assert column_widths([["a"], ["b", "cc"], ["ddd"]]) == [3, 2]


def test_column_widths_measures_numbers_as_text():
    assert column_widths([[1000, 2]]) == [4, 1]


def test_column_widths_has_a_least_width():
    assert column_widths([["", "ab"]]) == [1, 2]
    assert column_widths([["abc", "abcdef"]], 5) == [5, 6]


def test_column_widths_of_nothing_is_empty():
    assert column_widths([]) == []


def test_format_row_pads_text_to_the_right():
    assert format_row(["a", "b"], [3, 1]) == "a   | b"


def test_format_row_aligns_numbers_right():
    assert format_row([5, 2.5, "x"], [3, 4, 1]) == "  5 |  2.5 | x"


def test_format_row_strips_the_end():
    assert format_row(["a", "b"], [1, 9], sep="  ") == "a  b"


def test_format_row_keeps_long_cells():
    assert format_row(["long", 1], [2, 1], ";") == "long;1"


def test_format_row_rejects_other_lengths():
    with pytest.raises(ValueError):
        format_row(["a"], [1, 2])


def test_parse_row_splits_at_commas():
    assert parse_row("a,b,,c") == ["a", "b", "", "c"]


def test_parse_row_keeps_quoted_separators():
    assert parse_row('a,"b,c",d') == ["a", "b,c", "d"]


def test_parse_row_takes_another_separator():
    assert parse_row("a;b,c", ";") == ["a", "b,c"]


def test_parse_row_of_nothing_is_one_empty_cell():
    assert parse_row("") == [""]


def test_parse_row_rejects_an_open_quote():
    with pytest.raises(ValueError, match="open quote"):
        parse_row('a,"b')
