import pytest

from pond.text import between, common_prefix, expand_tabs, indent
from pond.text import is_palindrome, mask, sentences, squeeze, truncate
from pond.text import word_counts, wrap_words


def test_truncate_cuts_long_text():
    assert truncate("hello world", 8) == "hello..."


def test_truncate_keeps_text_of_exactly_the_width():
    assert truncate("hello", 5) == "hello"
    assert truncate("hello!", 5) == "he..."


def test_truncate_ends_in_the_marker():
    assert truncate("abcdef", 4, "~") == "abc~"
    assert truncate("abcdef", 3) == "..."


def test_truncate_rejects_a_width_below_the_marker():
    with pytest.raises(ValueError):
        truncate("abcdef", 2)


def test_squeeze_makes_runs_one_space():
    assert squeeze("  a \t b  ") == "a b"


def test_squeeze_joins_lines_by_default():
    assert squeeze("a\n\n b") == "a b"


def test_squeeze_can_keep_lines():
    assert squeeze(" a  b \n\n c", keep_lines=True) == "a b\n\nc"


def test_squeeze_of_blanks_is_empty():
    assert squeeze(" \t\n") == ""


def test_indent_defaults_to_four_spaces():
    assert indent("a\nb") == "    a\n    b"


def test_indent_leaves_blank_lines():
    assert indent("a\n\nb", 2) == "  a\n\n  b"
    assert indent("", 3) == ""


def test_indent_can_leave_the_first_line():
    assert indent("a\nb\nc", 1, first=False) == "a\n b\n c"


def test_wrap_words_fills_lines():
    assert wrap_words("aa bb cc dd", 5) == ["aa bb", "cc dd"]


def test_wrap_words_breaks_one_over_the_width():
    assert wrap_words("aa bb cc", 4) == ["aa", "bb", "cc"]


def test_wrap_words_keeps_a_long_word_alone():
    assert wrap_words("a toolong b", 3) == ["a", "toolong", "b"]


def test_wrap_words_defaults_to_sixty():
    word = "x" * 29
    assert wrap_words(f"{word} {word}x") == [f"{word} {word}x"]
    assert wrap_words(f"{word} {word}xx") == [word, word + "xx"]


def test_wrap_words_of_nothing_is_empty():
    assert wrap_words("  ") == []


def test_common_prefix_of_several_words():
    assert common_prefix(["flower", "flow", "flight"]) == "fl"


def test_common_prefix_can_be_a_word_or_nothing():
    assert common_prefix(["pond", "po", "pot"]) == "po"
    assert common_prefix(["a", "b"]) == ""


def test_common_prefix_of_no_words_is_empty():
    assert common_prefix([]) == ""


def test_between_finds_the_first_pair():
    assert between("a [b] [c]", "[", "]") == "b"


def test_between_takes_the_end_after_the_start():
    assert between("] <<x] >> y", "<<", "]") == "x"


def test_between_handles_adjacent_markers():
    assert between("()", "(", ")") == ""


def test_between_names_a_missing_start():
    with pytest.raises(ValueError, match="missing <"):
        between("a>", "<", ">")


def test_between_names_a_missing_end():
    with pytest.raises(ValueError, match="missing >"):
        between("><a", "<", ">")


def test_word_counts_ignores_case_and_marks():
    assert word_counts("Hop, hop! Frog?") == {"hop": 2, "frog": 1}


def test_word_counts_puts_the_commonest_first():
    counts = word_counts("b a c c")
    assert list(counts) == ["c", "a", "b"]


def test_word_counts_drops_rare_words():
    assert word_counts("a a b b b c", 2) == {"b": 3, "a": 2}


def test_word_counts_skips_bare_marks():
    assert word_counts(" ... ! ") == {}


def test_is_palindrome_ignores_case_and_spaces():
    assert is_palindrome("Never odd, or even!") is True


def test_is_palindrome_sees_a_difference():
    assert is_palindrome("frog") is False
    assert is_palindrome("abca") is False
    assert is_palindrome("ab") is False


def test_is_palindrome_of_no_letters_is_true():
    assert is_palindrome("?!") is True


def test_mask_keeps_the_last_four():
    assert mask("12345678") == "****5678"
    assert mask("12345") == "*2345"


def test_mask_hides_a_short_secret():
    assert mask("1234") == "****"
    assert mask("abc", 5) == "***"


def test_mask_takes_another_count_and_character():
    assert mask("secret", 1, "#") == "#####t"
    assert mask("abc", 0) == "***"


def test_mask_of_nothing_is_empty():
    assert mask("") == ""


def test_expand_tabs_defaults_to_eight():
    assert expand_tabs("ab\tc") == "ab      c"


def test_expand_tabs_goes_to_the_next_stop():
    assert expand_tabs("abcd\te", 4) == "abcd    e"
    assert expand_tabs("\ta\tb", 2) == "  a b"
    assert expand_tabs("a\tb", 1) == "a b"


def test_expand_tabs_rejects_size_zero():
    with pytest.raises(ValueError):
        expand_tabs("a\tb", 0)


def test_sentences_splits_after_marks():
    assert sentences("Hi there. Who? Me!") == ["Hi there.", "Who?", "Me!"]


def test_sentences_keeps_an_open_end():
    assert sentences("One. and  two") == ["One.", "and two"]


def test_sentences_does_not_split_inside_words():
    assert sentences("v1.2 is out.") == ["v1.2 is out."]


def test_sentences_of_nothing_is_empty():
    assert sentences("") == []
