import pytest

from pond.numerals import column_letters, digital_root, from_roman
from pond.numerals import group_digits, luhn_digit, ordinal, spell
from pond.numerals import to_base, to_roman


def test_to_roman_writes_every_letter():
    assert to_roman(1666) == "MDCLXVI"


def test_to_roman_writes_pairs():
    assert to_roman(1994) == "MCMXCIV"
    assert to_roman(449) == "CDXLIX"


def test_to_roman_at_the_limits():
    assert to_roman(1) == "I"
    assert to_roman(3999) == "MMMCMXCIX"


def test_to_roman_rejects_other_numbers():
    with pytest.raises(ValueError):
        to_roman(0)
    with pytest.raises(ValueError):
        to_roman(4000)


def test_from_roman_adds_letters():
    assert from_roman("MDCLXVI") == 1666
    assert from_roman("III") == 3


def test_from_roman_subtracts_smaller_letters():
    assert from_roman("MCMXCIV") == 1994


def test_from_roman_ignores_case():
    assert from_roman("xiv") == 14


def test_from_roman_rejects_other_letters():
    with pytest.raises(ValueError):
        from_roman("XA")


def test_from_roman_rejects_empty_text():
    with pytest.raises(ValueError):
        from_roman("")


def test_to_base_defaults_to_two():
    assert to_base(10) == "1010"


def test_to_base_uses_letters():
    assert to_base(255, 16) == "ff"
    assert to_base(35, 36) == "z"


def test_to_base_of_the_base_itself():
    assert to_base(8, 8) == "10"
    assert to_base(7, 8) == "7"


def test_to_base_keeps_the_sign():
    assert to_base(-5, 3) == "-12"
    assert to_base(-1, 3) == "-1"
    assert to_base(0, 3) == "0"


@pytest.mark.parametrize("base", [1, 37])
def test_to_base_rejects_other_bases(base):
    with pytest.raises(ValueError):
        to_base(5, base)


def test_ordinal_of_small_numbers():
    assert [ordinal(n) for n in (1, 2, 3)] == ["1st", "2nd", "3rd"]
    assert [ordinal(n) for n in (0, 4, 10)] == ["0th", "4th", "10th"]


@pytest.mark.parametrize("number", [11, 12, 13, 111, 213])
def test_ordinal_of_the_teens(number):
    assert ordinal(number) == f"{number}th"


def test_ordinal_of_greater_numbers():
    assert [ordinal(n) for n in (21, 102, 1033)] == ["21st", "102nd", "1033rd"]


def test_group_digits_defaults_to_thousands():
    assert group_digits(1234567) == "1,234,567"


def test_group_digits_of_exact_groups():
    assert group_digits(123456) == "123,456"
    assert group_digits(0) == "0"


def test_group_digits_takes_another_size():
    assert group_digits(12345, " ", 2) == "1 23 45"


def test_group_digits_keeps_the_sign():
    assert group_digits(-123) == "-123"
    assert group_digits(-1) == "-1"
    assert group_digits(-1234) == "-1,234"


def test_digital_root_sums_until_one_digit():
    assert digital_root(987) == 6


def test_digital_root_of_one_digit():
    assert digital_root(9) == 9
    assert digital_root(10) == 1


def test_digital_root_of_zero():
    assert digital_root(0) == 0


def test_digital_root_rejects_a_negative_number():
    with pytest.raises(ValueError):
        digital_root(-1)


def test_luhn_digit_of_a_known_number():
    assert luhn_digit("7992739871") == 3


def test_luhn_digit_doubles_the_last_digit():
    assert luhn_digit("1") == 8
    assert luhn_digit("10") == 9


def test_luhn_digit_reduces_above_nine():
    assert luhn_digit("5") == 9
    assert luhn_digit("9") == 1


def test_luhn_digit_of_zeros_is_zero():
    assert luhn_digit("00") == 0


def test_column_letters_of_one_letter():
    assert column_letters(1) == "A"
    assert column_letters(26) == "Z"


def test_column_letters_of_more_letters():
    assert column_letters(27) == "AA"
    assert column_letters(52) == "AZ"
    assert column_letters(703) == "AAA"


def test_column_letters_rejects_zero():
    with pytest.raises(ValueError):
        column_letters(0)


def test_spell_below_twenty():
    assert spell(0) == "zero"
    assert spell(13) == "thirteen"
    assert spell(19) == "nineteen"


def test_spell_of_full_tens():
    assert spell(20) == "twenty"
    assert spell(90) == "ninety"


def test_spell_with_a_hyphen():
    assert spell(42) == "forty-two"
    assert spell(99) == "ninety-nine"


def test_spell_rejects_other_numbers():
    with pytest.raises(ValueError):
        spell(100)
    with pytest.raises(ValueError):
        spell(-1)
