import pytest

from pond.money import add_percent, cheapest, discount, format_cents
from pond.money import make_change, months_to_pay, parse_cents
from pond.money import split_bill, tier_price


def test_parse_cents_reads_whole_and_part():
    assert parse_cents("1,234.50") == 123450
    assert parse_cents("7") == 700


def test_parse_cents_fills_one_decimal():
    assert parse_cents("0.5") == 50
    assert parse_cents("3.05") == 305


def test_parse_cents_keeps_the_sign():
    assert parse_cents("-0.5") == -50
    assert parse_cents("-2.25") == -225


def test_parse_cents_rejects_three_decimals():
    with pytest.raises(ValueError):
        parse_cents("1.005")


def test_format_cents_groups_thousands():
    assert format_cents(123450) == "$1,234.50"


def test_format_cents_pads_with_zeros():
    assert format_cents(5) == "$0.05"
    assert format_cents(0) == "$0.00"


def test_format_cents_puts_the_sign_first():
    assert format_cents(-105, "EUR ") == "-EUR 1.05"
    assert format_cents(-1) == "-$0.01"


def test_split_bill_puts_greater_shares_first():
    assert split_bill(1000, 3) == [334, 333, 333]
    assert split_bill(11, 4) == [3, 3, 3, 2]


def test_split_bill_of_equal_shares():
    assert split_bill(900, 3) == [300, 300, 300]
    assert split_bill(5, 1) == [5]


def test_split_bill_rejects_nobody():
    with pytest.raises(ValueError):
        split_bill(100, 0)


def test_add_percent_raises_an_amount():
    assert add_percent(1000, 19) == 1190


def test_add_percent_sends_a_half_up():
    assert add_percent(10, 5) == 11
    assert add_percent(49, 1) == 49
    assert add_percent(50, 1) == 51


def test_add_percent_rejects_a_negative_percent():
    assert add_percent(80, 0) == 80
    with pytest.raises(ValueError):
        add_percent(80, -1)


def test_discount_rounds_the_reduction_down():
    assert discount(1000, 25) == 750
    assert discount(99, 10) == 90


def test_discount_is_limited():
    assert discount(1000, 50, 200) == 800
    assert discount(1000, 50, 1) == 999
    assert discount(1000, 10, 200) == 900


def test_discount_rejects_other_percents():
    assert discount(70, 0) == 70
    assert discount(70, 100) == 0
    with pytest.raises(ValueError):
        discount(70, 101)
    with pytest.raises(ValueError):
        discount(70, -1)


def test_make_change_takes_greatest_coins():
    assert make_change(288) == {200: 1, 50: 1, 20: 1, 10: 1, 5: 1, 2: 1, 1: 1}
    assert make_change(540) == {200: 2, 100: 1, 20: 2}


def test_make_change_sorts_the_coins():
    assert make_change(30, (5, 25)) == {25: 1, 5: 1}
    assert make_change(0) == {}


def test_make_change_rejects_a_rest():
    with pytest.raises(ValueError):
        make_change(26, (5, 25))


def test_tier_price_applies_to_all_pieces():
    assert tier_price(12, {1: 100, 10: 90, 50: 80}) == 1080


def test_tier_price_at_the_edge_of_a_tier():
    assert tier_price(9, {10: 90, 1: 100}) == 900
    assert tier_price(10, {10: 90, 1: 100}) == 900
    assert tier_price(11, {10: 90, 1: 100}) == 990


def test_tier_price_rejects_too_few_pieces():
    with pytest.raises(ValueError):
        tier_price(4, {5: 90})


def test_months_to_pay_without_interest():
    assert months_to_pay(100, 25) == 4
    assert months_to_pay(101, 25) == 5


def test_months_to_pay_with_interest():
    assert months_to_pay(100, 60, 10) == 2
    assert months_to_pay(100, 58, 10) == 2
    assert months_to_pay(100, 57, 10) == 3
    assert months_to_pay(10000, 11000, 10) == 1


def test_months_to_pay_of_nothing_is_zero():
    assert months_to_pay(0, 10, 5) == 0
    assert months_to_pay(0, 0) == 0


def test_months_to_pay_rejects_a_small_payment():
    with pytest.raises(ValueError):
        months_to_pay(100, 10, 10)
    with pytest.raises(ValueError):
        months_to_pay(1, 0)
    assert months_to_pay(10, 2, 10) == 6
    assert months_to_pay(1000, 101, 10) == 45


def test_cheapest_compares_price_per_amount():
    assert cheapest({"small": (200, 1), "big": (350, 2)}) == "big"


def test_cheapest_prefers_the_first_in_the_alphabet():
    assert cheapest({"b": (1, 1), "a": (2, 2), "c": (3, 2)}) == "a"


def test_cheapest_rejects_no_offers():
    with pytest.raises(ValueError, match="no offers"):
        cheapest({})
