import pytest

from pond.bits import bit_positions, count_ones, distance, get_field
from pond.bits import next_power, reverse_bits, rotate_left, set_field
from pond.bits import to_flags, to_signed


def test_count_ones_counts_set_bits():
    assert count_ones(0b1011) == 3
    assert count_ones(256) == 1


def test_count_ones_of_zero_is_zero():
    assert count_ones(0) == 0


def test_count_ones_rejects_a_negative_value():
    with pytest.raises(ValueError):
        count_ones(-1)


def test_get_field_defaults_to_one_bit():
    assert get_field(0b1010, 1) == 1
    assert get_field(0b1101, 1) == 0
    assert get_field(0b11, 0) == 1


def test_get_field_takes_several_bits():
    assert get_field(0b110100, 2, 3) == 0b101


def test_get_field_beyond_the_value_is_zero():
    assert get_field(0b11, 5, 4) == 0


def test_set_field_replaces_bits():
    assert set_field(0b111111, 1, 3, 0b010) == 0b110101
    assert set_field(0, 4, 2, 3) == 0b110000


def test_set_field_accepts_the_limits():
    assert set_field(0b1011, 0, 2, 0) == 0b1000
    assert set_field(0b1000, 0, 2, 3) == 0b1011


def test_set_field_rejects_a_field_too_great():
    with pytest.raises(ValueError):
        set_field(0, 0, 2, 4)
    with pytest.raises(ValueError):
        set_field(0, 0, 2, -1)


def test_bit_positions_is_ascending():
    assert bit_positions(0b101001) == [0, 3, 5]


def test_bit_positions_of_a_single_bit():
    assert bit_positions(8) == [3]


def test_bit_positions_of_zero_is_empty():
    assert bit_positions(0) == []


def test_reverse_bits_defaults_to_eight():
    assert reverse_bits(0b00000001) == 0b10000000
    assert reverse_bits(0b00001101) == 0b10110000


def test_reverse_bits_of_another_width():
    assert reverse_bits(0b110, 3) == 0b011


def test_reverse_bits_drops_higher_bits():
    assert reverse_bits(0b1001, 2) == 0b10


def test_rotate_left_defaults_to_eight_bits():
    assert rotate_left(0b10000001, 1) == 0b00000011


def test_rotate_left_of_another_width():
    assert rotate_left(0b0011, 3, 4) == 0b1001
    assert rotate_left(0b10011, 1, 4) == 0b0110


def test_rotate_left_by_nothing_or_backwards():
    assert rotate_left(0b101, 3, 3) == 0b101
    assert rotate_left(0b001, -1, 3) == 0b100


def test_to_signed_defaults_to_eight_bits():
    assert to_signed(255) == -1
    assert to_signed(256) == 0


def test_to_signed_at_the_boundary():
    assert to_signed(127) == 127
    assert to_signed(128) == -128


def test_to_signed_of_another_width():
    assert to_signed(0b1100, 4) == -4
    assert to_signed(0b10011, 4) == 3


def test_next_power_rounds_up():
    assert next_power(5) == 8
    assert next_power(9) == 16


def test_next_power_keeps_a_power():
    assert next_power(8) == 8
    assert next_power(2) == 2


def test_next_power_is_at_least_one():
    assert next_power(0) == 1
    assert next_power(1) == 1


def test_distance_counts_differing_bits():
    assert distance(0b1010, 0b0110) == 2


def test_distance_of_different_lengths():
    assert distance(0b1, 0b10000) == 2
    assert distance(0, 7) == 3
    assert distance(7, 0) == 3


def test_distance_of_equal_values_is_zero():
    assert distance(77, 77) == 0


def test_to_flags_names_the_set_bits():
    assert to_flags(0b101, ["read", "write", "run"]) == ["read", "run"]


def test_to_flags_of_zero_is_empty():
    assert to_flags(0, ["read"]) == []


def test_to_flags_rejects_unknown_bits():
    with pytest.raises(ValueError):
        to_flags(0b101, ["read", "write"])
    with pytest.raises(ValueError):
        to_flags(0b10, ["read", ""])
