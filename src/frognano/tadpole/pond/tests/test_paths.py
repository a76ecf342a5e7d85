import pytest

from pond.paths import depth, join, matches, normalize, parent
from pond.paths import relative_to, safe_name, split_parts, stem
from pond.paths import suffix, with_suffix


def test_split_parts_of_a_relative_path():
    assert split_parts("a/b/c") == ["a", "b", "c"]


def test_split_parts_marks_an_absolute_path():
    assert split_parts("/a/b") == ["/", "a", "b"]
    assert split_parts("/") == ["/"]


def test_split_parts_drops_dots_and_doubled_slashes():
    assert split_parts("./a//b/.") == ["a", "b"]


def test_split_parts_of_nothing_is_empty():
    assert split_parts("") == []


def test_join_puts_one_slash_between_parts():
    assert join("a", "b", "c") == "a/b/c"


def test_join_does_not_double_a_slash():
    assert join("a/", "b") == "a/b"
    assert join("/", "b") == "/b"


def test_join_restarts_at_an_absolute_part():
    assert join("a", "/b", "c") == "/b/c"


def test_join_skips_empty_parts():
    assert join("", "a", "", "b", "") == "a/b"
    assert join() == ""


def test_parent_drops_the_last_part():
    assert parent("a/b/c") == "a/b"


def test_parent_of_one_part():
    assert parent("a") == "."
    assert parent("/a") == "/"


def test_parent_ignores_a_trailing_slash():
    assert parent("a/b/") == "a"


def test_parent_of_the_root_is_the_root():
    assert parent("/") == "/"


def test_suffix_is_the_last_one():
    assert suffix("a/b.tar.gz") == ".gz"


def test_suffix_ignores_a_leading_dot():
    assert suffix(".env") == ""
    assert suffix("a.d/.env") == ""
    assert suffix("a.py") == ".py"


def test_suffix_ignores_a_final_dot():
    assert suffix("name.") == ""
    assert suffix("name.c") == ".c"


def test_suffix_of_a_plain_name_is_empty():
    assert suffix("a.d/name") == ""


def test_stem_drops_all_suffixes():
    assert stem("a/b.tar.gz") == "b"
    assert stem("x.y") == "x"


def test_stem_keeps_a_leading_dot():
    assert stem(".env") == ".env"
    assert stem("a/.env.local") == ".env"


def test_stem_of_a_plain_name():
    assert stem("a.d/name") == "name"


def test_with_suffix_replaces_the_last_one():
    assert with_suffix("a/b.tar.gz", ".xz") == "a/b.tar.xz"


def test_with_suffix_adds_a_missing_one():
    assert with_suffix("a.d/b", ".txt") == "a.d/b.txt"


def test_with_suffix_removes_for_an_empty_one():
    assert with_suffix("b.txt", "") == "b"


def test_with_suffix_rejects_one_without_dot():
    with pytest.raises(ValueError):
        with_suffix("b", "txt")


def test_normalize_resolves_dots():
    assert normalize("a/./b//../c") == "a/c"


def test_normalize_keeps_leading_parents_when_relative():
    assert normalize("../../a/../b") == "../../b"


def test_normalize_stops_at_the_root():
    assert normalize("/../a/../../b") == "/b"
    assert normalize("//") == "/"


def test_normalize_gives_a_dot_for_nothing():
    assert normalize("a/..") == "."
    assert normalize("") == "."


def test_relative_to_drops_the_base():
    assert relative_to("a/b/c", "a") == "b/c"


def test_relative_to_itself_is_a_dot():
    assert relative_to("a/b", "a/b") == "."


def test_relative_to_accepts_a_trailing_slash():
    assert relative_to("/a/b", "/a/") == "b"
    assert relative_to("/a", "/") == "a"


def test_relative_to_rejects_a_sibling():
    with pytest.raises(ValueError):
        relative_to("ab/c", "a")


def test_depth_counts_parts():
    assert depth("a/b/c") == 3
    assert depth("/a") == 1


def test_depth_of_the_top_is_zero():
    assert depth(".") == 0
    assert depth("/") == 0


def test_depth_goes_up_at_parents():
    assert depth("a/b/../c") == 2
    assert depth("../../a") == 1


def test_matches_a_star_with_any_text():
    assert matches("test_a.py", "test_*.py") is True
    assert matches("a.pyc", "*.py") is False
    assert matches("best_a.py", "test_*.py") is False


def test_matches_a_star_with_no_text():
    assert matches("ab", "a*b") is True
    assert matches("aba", "ab*ba") is False


def test_matches_exactly_without_a_star():
    assert matches("a", "a") is True
    assert matches("ab", "a") is False


def test_matches_rejects_two_stars():
    with pytest.raises(ValueError):
        matches("abc", "*b*")


def test_safe_name_keeps_plain_names():
    assert safe_name("a-b_c.9") == "a-b_c.9"


def test_safe_name_replaces_other_characters():
    assert safe_name("a b/c") == "a_b_c"


def test_safe_name_drops_leading_dots():
    assert safe_name("..hidden.txt") == "hidden.txt"


def test_safe_name_is_cut_to_the_limit():
    assert safe_name(".abcdef", 3) == "abc"
    assert safe_name("x" * 40) == "x" * 32


def test_safe_name_of_nothing_is_an_underscore():
    assert safe_name("..") == "_"
