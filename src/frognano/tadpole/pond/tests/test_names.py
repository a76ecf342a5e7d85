import pytest

from pond.names import camel_case, initials, natural_sort, possessive
from pond.names import shorten, snake_case, sort_name, split_words
from pond.names import unique_name


def test_split_words_of_every_case():
    assert split_words("frog_pond-name") == ["frog", "pond", "name"]
    assert split_words("FrogPond name") == ["frog", "pond", "name"]


def test_split_words_keeps_capitals_together():
    assert split_words("readHTTP") == ["read", "http"]
    assert split_words("aB") == ["a", "b"]


def test_split_words_of_nothing_is_empty():
    assert split_words("_-") == []


def test_snake_case_joins_by_underscores():
    assert snake_case("FrogPond") == "frog_pond"


def test_snake_case_takes_another_separator():
    assert snake_case("frogPond name", "-") == "frog-pond-name"


def test_snake_case_marks_a_digit_in_front():
    assert snake_case("2 frogs") == "_2_frogs"
    assert snake_case("") == ""


def test_camel_case_starts_small():
    assert camel_case("frog_pond-name") == "frogPondName"


def test_camel_case_can_start_with_a_capital():
    assert camel_case("frog_pond", upper=True) == "FrogPond"


def test_camel_case_of_a_single_word():
    assert camel_case("frog") == "frog"
    assert camel_case("") == ""


def test_initials_are_capitals():
    assert initials("ada king Lovelace") == "AKL"


def test_initials_defaults_to_three_at_most():
    assert initials("a b c d") == "ABC"
    assert initials("a b c d", 2) == "AB"


def test_initials_can_have_dots():
    assert initials("ada lovelace", dots=True) == "A.L."
    assert initials("", dots=True) == ""


def test_sort_name_puts_the_last_name_first():
    assert sort_name("Ada King Lovelace") == "Lovelace, Ada King"


def test_sort_name_keeps_particles():
    assert sort_name("Ana de Souza") == "de Souza, Ana"
    assert sort_name("Jan van de Berg") == "van de Berg, Jan"
    assert sort_name("Max von Au") == "von Au, Max"
    assert sort_name("de Souza") == "Souza, de"


def test_sort_name_of_a_single_word():
    assert sort_name(" Plato ") == "Plato"
    assert sort_name("") == ""


def test_unique_name_keeps_a_free_name():
    assert unique_name("a", ["b", "a-2"]) == "a"


def test_unique_name_starts_at_two():
    assert unique_name("a", ["a"]) == "a-2"


def test_unique_name_finds_the_first_free_number():
    assert unique_name("a", ["a", "a-2", "a-3", "a-5"]) == "a-4"
    assert unique_name("a", ["a", "a-2"]) == "a-3"


def test_natural_sort_compares_numbers_by_value():
    assert natural_sort(["a10", "a9", "a1b"]) == ["a1b", "a9", "a10"]


def test_natural_sort_ignores_case():
    assert natural_sort(["b", "C", "A"]) == ["A", "b", "C"]


def test_natural_sort_keeps_the_order_of_equals():
    assert natural_sort(["b1", "B01", "a"]) == ["a", "b1", "B01"]
    assert natural_sort([]) == []


def test_possessive_adds_an_s():
    assert possessive("Ada") == "Ada's"


def test_possessive_after_an_s():
    assert possessive("James") == "James'"
    assert possessive("BOSS") == "BOSS'"


def test_possessive_rejects_a_blank_name():
    with pytest.raises(ValueError):
        possessive(" ")


def test_shorten_cuts_from_the_first():
    assert shorten("Ada King Lovelace", 16) == "A. King Lovelace"
    assert shorten("Ada King Lovelace", 15) == "A. K. Lovelace"


def test_shorten_keeps_a_name_that_fits():
    assert shorten("Ada  King Lovelace", 17) == "Ada King Lovelace"


def test_shorten_never_cuts_the_last_name():
    assert shorten("Ada Lovelace", 3) == "A. Lovelace"
    assert shorten("Lovelace", 2) == "Lovelace"
