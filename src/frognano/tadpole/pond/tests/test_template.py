import pytest

from pond.template import bullet_list, fill, join_words, number_lines
from pond.template import pad_field, placeholders, plural, section


def test_placeholders_lists_each_name_once():
    assert placeholders("{b} and {a}, {b}") == ["b", "a"]


def test_placeholders_ignores_an_open_brace():
    assert placeholders("{a} {b") == ["a"]


def test_placeholders_of_plain_text_is_empty():
    assert placeholders("a } b") == []


def test_fill_replaces_names():
    assert fill("{a}-{b}{a}", {"a": 1, "b": "x"}) == "1-x1"
    assert fill("{a}", {"a": 2}, "?") == "2"


def test_fill_uses_the_default():
    assert fill("hi {name}!", {}, "you") == "hi you!"
    assert fill("hi {name}!", {}, "") == "hi !"


def test_fill_rejects_an_unknown_name():
    with pytest.raises(KeyError, match="name"):
        fill("hi {name}!", {"other": 1})


def test_fill_keeps_an_open_brace():
    assert fill("a {b", {"b": 1}) == "a {b"


def test_plural_of_one_is_singular():
    assert plural(1, "frog") == "1 frog"
    assert plural(-1, "frog", "frogs") == "-1 frog"


def test_plural_adds_an_ending():
    assert plural(2, "frog") == "2 frogs"
    assert plural(0, "box") == "0 boxes"
    assert plural(3, "bus") == "3 buses"


def test_plural_takes_another_word():
    assert plural(2, "mouse", "mice") == "2 mice"


def test_join_words_of_several():
    assert join_words(["a", "b", "c"]) == "a, b and c"


def test_join_words_of_two():
    assert join_words(["a", "b"], "or") == "a or b"


def test_join_words_of_one_or_none():
    assert join_words(["a"]) == "a"
    assert join_words([]) == ""


def test_number_lines_defaults_to_one():
    assert number_lines("a\nb") == "1: a\n2: b"


def test_number_lines_pads_to_the_last_number():
    assert number_lines("a\nb", 9) == " 9: a\n10: b"
    assert number_lines("a\nb", 8) == "8: a\n9: b"


def test_number_lines_of_nothing_is_one_line():
    assert number_lines("") == "1: "


def test_pad_field_to_either_side():
    assert pad_field("ab", "<4") == "ab  "
    assert pad_field("ab", ">4") == "  ab"


def test_pad_field_centered():
    assert pad_field("ab", "^4") == " ab "
    assert pad_field("ab", "^7") == "  ab   "


def test_pad_field_keeps_long_text():
    assert pad_field("abc", ">2") == "abc"


def test_pad_field_rejects_another_sign():
    with pytest.raises(ValueError):
        pad_field("ab", "=4")


def test_section_keeps_by_default():
    assert section("a[x]b[/x]c", "x") == "abc"


def test_section_can_be_dropped():
    assert section("a[x]b[/x]c[x]d[/x]", "x", keep=False) == "ac[x]d[/x]"


def test_section_needs_both_tags():
    assert section("a[x]b", "x") == "a[x]b"
    assert section("a[/x]b", "x", keep=False) == "a[/x]b"
    assert section("ab", "x", keep=False) == "ab"


def test_bullet_list_marks_each_item():
    assert bullet_list(["a", 2]) == ["- a", "- 2"]


def test_bullet_list_nests():
    nested = ["a", ["b", ["c"]], "d"]
    assert bullet_list(nested, "*") == ["* a", "  * b", "    * c", "* d"]


def test_bullet_list_starts_at_a_level():
    assert bullet_list(["a"], "+", 1) == ["  + a"]
    assert bullet_list([]) == []
