import pytest

from pond.timespan import add_months, ago, days_in_month, format_clock
from pond.timespan import format_span, is_leap, is_open, minutes_between
from pond.timespan import parse_clock, parse_span, stopwatch, to_seconds


def test_to_seconds_adds_the_parts():
    assert to_seconds(1, 2, 3) == 3723


def test_to_seconds_defaults_to_zero():
    assert to_seconds() == 0
    assert to_seconds(minutes=90) == 5400
    assert to_seconds(hours=1) == 3600


def test_to_seconds_takes_parts_by_name():
    assert to_seconds(seconds=75) == 75
    assert to_seconds(seconds=75, minutes=1) == 135


def test_to_seconds_rejects_a_negative_part():
    with pytest.raises(ValueError):
        to_seconds(1, -1)


def test_parse_span_reads_every_unit():
    assert parse_span("1d1h1m1s") == 90061


def test_parse_span_allows_blanks_and_any_order():
    assert parse_span("10s 2h") == 7210


def test_parse_span_adds_repeated_units():
    assert parse_span("12m3m") == 900


def test_parse_span_of_nothing_is_zero():
    assert parse_span("") == 0


def test_parse_span_rejects_another_unit():
    with pytest.raises(ValueError):
        parse_span("3w")


def test_parse_span_rejects_a_unit_alone():
    with pytest.raises(ValueError):
        parse_span("1hm")


def test_parse_span_rejects_a_number_alone():
    with pytest.raises(ValueError):
        parse_span("1h30")


def test_format_span_uses_the_two_greatest_units():
    assert format_span(93784) == "1d 2h"
    assert format_span(5400) == "1h 30m"


def test_format_span_skips_zero_units():
    assert format_span(3605) == "1h 5s"
    assert format_span(60) == "1m"


def test_format_span_takes_another_limit():
    assert format_span(93784, 4) == "1d 2h 3m 4s"
    assert format_span(119, 1) == "1m"


def test_format_span_of_zero():
    assert format_span(0) == "0s"


def test_parse_clock_reads_hours_and_minutes():
    assert parse_clock("7:05") == 425
    assert parse_clock("00:00") == 0


def test_parse_clock_reads_the_last_minute():
    assert parse_clock("23:59") == 1439


def test_parse_clock_rejects_times_past_the_end():
    with pytest.raises(ValueError):
        parse_clock("24:00")
    with pytest.raises(ValueError):
        parse_clock("1:60")


def test_parse_clock_rejects_short_minutes():
    with pytest.raises(ValueError):
        parse_clock("1:5")


def test_format_clock_pads_with_zeros():
    assert format_clock(425) == "07:05"


def test_format_clock_goes_around_midnight():
    assert format_clock(1439) == "23:59"
    assert format_clock(1440) == "00:00"
    assert format_clock(1501) == "01:01"


def test_format_clock_of_a_negative_time():
    assert format_clock(-1) == "23:59"


def test_minutes_between_on_one_day():
    assert minutes_between("9:30", "11:15") == 105


def test_minutes_between_past_midnight():
    assert minutes_between("23:50", "0:10") == 20


def test_minutes_between_equal_times_is_zero():
    assert minutes_between("8:00", "08:00") == 0


def test_stopwatch_below_an_hour():
    assert stopwatch(65) == "1:05"
    assert stopwatch(3599) == "59:59"


def test_stopwatch_from_an_hour_on():
    assert stopwatch(3600) == "1:00:00"
    assert stopwatch(7384) == "2:03:04"


def test_stopwatch_of_zero():
    assert stopwatch(0) == "0:00"


def test_stopwatch_of_a_negative_time():
    assert stopwatch(-1) == "-0:01"
    assert stopwatch(-3661) == "-1:01:01"


def test_is_open_includes_the_opening_only():
    assert is_open(540, 540, 1020) is True
    assert is_open(1020, 540, 1020) is False


def test_is_open_is_false_before():
    assert is_open(539, 540, 1020) is False
    assert is_open(1019, 540, 1020) is True


def test_is_open_past_midnight():
    assert is_open(1320, 1320, 120) is True
    assert is_open(119, 1320, 120) is True
    assert is_open(120, 1320, 120) is False
    assert is_open(1319, 1320, 120) is False


def test_is_open_always_for_equal_times():
    assert is_open(5, 60, 60) is True
    assert is_open(60, 60, 60) is True


def test_ago_below_a_minute():
    assert ago(0) == "just now"
    assert ago(59) == "just now"


def test_ago_uses_the_singular():
    assert ago(60) == "1 minute ago"
    assert ago(3600) == "1 hour ago"
    assert ago(86400) == "1 day ago"


def test_ago_uses_the_plural_and_rounds_down():
    assert ago(3599) == "59 minutes ago"
    assert ago(7200) == "2 hours ago"
    assert ago(345599) == "3 days ago"


def test_is_leap_every_fourth_year():
    assert is_leap(2024) is True
    assert is_leap(2023) is False
    assert is_leap(2022) is False


def test_is_leap_not_for_most_hundreds():
    assert is_leap(1900) is False
    assert is_leap(2200) is False


def test_is_leap_for_every_fourth_hundred():
    assert is_leap(2000) is True


def test_days_in_month_of_february():
    assert days_in_month(2024, 2) == 29
    assert days_in_month(2023, 2) == 28


@pytest.mark.parametrize("month", [1, 3, 5, 7, 8, 10, 12])
def test_days_in_month_of_long_months(month):
    assert days_in_month(2023, month) == 31


@pytest.mark.parametrize("month", [4, 6, 9, 11])
def test_days_in_month_of_short_months(month):
    assert days_in_month(2023, month) == 30


def test_days_in_month_rejects_other_months():
    with pytest.raises(ValueError):
        days_in_month(2023, 0)
    with pytest.raises(ValueError):
        days_in_month(2023, 13)


def test_add_months_defaults_to_one():
    assert add_months(2024, 5) == (2024, 6)


def test_add_months_goes_into_the_next_year():
    assert add_months(2024, 12) == (2025, 1)
    assert add_months(2024, 1, 11) == (2024, 12)
    assert add_months(2024, 11, 26) == (2027, 1)


def test_add_months_goes_back():
    assert add_months(2024, 1, -1) == (2023, 12)
    assert add_months(2024, 7, 0) == (2024, 7)
