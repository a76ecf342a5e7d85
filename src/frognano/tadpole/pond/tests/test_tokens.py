import pytest

from pond.tokens import eval_postfix, is_balanced, parse_pairs, split_top
from pond.tokens import strip_comment, to_postfix, tokenize, unquote


def test_tokenize_separates_signs():
    assert tokenize("a1+(22*b_c)") == ["a1", "+", "(", "22", "*", "b_c", ")"]


def test_tokenize_drops_blanks_but_splits_there():
    assert tokenize(" 1  2\t- ") == ["1", "2", "-"]


def test_tokenize_of_nothing_is_empty():
    assert tokenize("") == []


def test_is_balanced_accepts_nested_brackets():
    assert is_balanced("f(a[1], {b: (c)})") is True
    assert is_balanced("") is True


def test_is_balanced_rejects_crossed_brackets():
    assert is_balanced("([)]") is False
    assert is_balanced("{(})") is False


@pytest.mark.parametrize("text", ["(()", "())", "]", "a{"])
def test_is_balanced_rejects_missing_brackets(text):
    assert is_balanced(text) is False


def test_to_postfix_puts_products_first():
    assert to_postfix(list("1+2*3")) == list("123*+")
    assert to_postfix(list("1*2+3")) == list("12*3+")


def test_to_postfix_takes_equals_from_the_left():
    assert to_postfix(list("8-3+2")) == list("83-2+")
    assert to_postfix(list("8/4*2")) == list("84/2*")
    assert to_postfix(list("9-8/4*2")) == list("984/2*-")


def test_to_postfix_of_a_single_number():
    assert to_postfix(["12"]) == ["12"]


def test_eval_postfix_computes_in_order():
    assert eval_postfix(["10", "4", "-", "3", "*"]) == 18
    assert eval_postfix(["2", "3", "+"]) == 5


def test_eval_postfix_divides_rounding_down():
    assert eval_postfix(["7", "2", "/"]) == 3
    assert eval_postfix(["-7", "2", "/"]) == -4


def test_eval_postfix_rejects_a_missing_operand():
    with pytest.raises(ValueError, match="missing operand for -"):
        eval_postfix(["1", "-"])


def test_eval_postfix_rejects_values_left_over():
    with pytest.raises(ValueError):
        eval_postfix(["1", "2"])
    with pytest.raises(ValueError):
        eval_postfix([])


def test_eval_postfix_rejects_division_by_zero():
    with pytest.raises(ZeroDivisionError):
        eval_postfix(["1", "0", "/"])


def test_split_top_ignores_separators_in_brackets():
    assert split_top("a, f(b, c), [d, {e, g}], h")[1] == "f(b, c)"
    assert split_top("a,[d, {e, g}],h") == ["a", "[d, {e, g}]", "h"]


def test_split_top_takes_another_separator():
    assert split_top("a,b ; c", ";") == ["a,b", "c"]


def test_split_top_keeps_empty_parts():
    assert split_top("a,,b,") == ["a", "", "b", ""]


def test_split_top_of_blank_text_is_empty():
    assert split_top("  ") == []


def test_unquote_removes_either_quote():
    assert unquote('"a b"') == "a b"
    assert unquote("'it'") == "it"


def test_unquote_removes_only_one_pair():
    assert unquote("''a''") == "'a'"
    assert unquote('""') == ""


def test_unquote_keeps_other_text():
    assert unquote("'a\"") == "'a\""
    assert unquote("xax") == "xax"
    assert unquote('"') == '"'


def test_strip_comment_cuts_at_the_marker():
    assert strip_comment("x = 1  # one # two") == "x = 1"
    assert strip_comment("# all") == ""


def test_strip_comment_keeps_a_quoted_marker():
    assert strip_comment('a "#1" b # c') == 'a "#1" b'


def test_strip_comment_takes_another_marker():
    assert strip_comment("a # b // c", "//") == "a # b"
    assert strip_comment("plain  ", "//") == "plain"


def test_parse_pairs_reads_names_and_values():
    assert parse_pairs("a=1 b=x=y") == {"a": "1", "b": "x=y"}


def test_parse_pairs_reads_flags_and_empty_values():
    assert parse_pairs("flag b=") == {"flag": True, "b": ""}
    assert parse_pairs("") == {}


def test_parse_pairs_rejects_repeated_and_empty_names():
    with pytest.raises(ValueError):
        parse_pairs("a=1 a=2")
    with pytest.raises(ValueError):
        parse_pairs("=1")
