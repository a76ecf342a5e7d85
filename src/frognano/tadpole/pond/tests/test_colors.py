import pytest

from pond.colors import brightness, gradient, hue, invert, is_dark, mix
from pond.colors import nearest, parse_hex, parse_rgb, saturation, shade
from pond.colors import to_hex

BLACK = (0, 0, 0)
WHITE = (255, 255, 255)


def test_parse_hex_reads_six_digits():
    assert parse_hex("#ff8001") == (255, 128, 1)


def test_parse_hex_doubles_three_digits():
    assert parse_hex("#1aF") == (17, 170, 255)


def test_parse_hex_needs_no_mark():
    assert parse_hex("102030") == (16, 32, 48)


def test_parse_hex_rejects_another_length():
    with pytest.raises(ValueError):
        parse_hex("#1234")
    with pytest.raises(ValueError):
        parse_hex("#11223344")


def test_parse_hex_rejects_other_digits():
    with pytest.raises(ValueError):
        parse_hex("#gg0000")


def test_to_hex_pads_with_zeros():
    assert to_hex((255, 10, 0)) == "#ff0a00"


def test_to_hex_can_use_upper_case():
    assert to_hex((171, 205, 239), upper=True) == "#ABCDEF"


def test_to_hex_rejects_channels_out_of_range():
    with pytest.raises(ValueError):
        to_hex((0, 0, 256))
    with pytest.raises(ValueError):
        to_hex((-1, 255, 0))


def test_parse_rgb_reads_three_channels():
    assert parse_rgb("rgb(12,34,56)") == (12, 34, 56)


def test_parse_rgb_allows_blanks_and_limits():
    assert parse_rgb("rgb( 0, 255 ,1 )") == (0, 255, 1)


def test_parse_rgb_rejects_another_form():
    with pytest.raises(ValueError):
        parse_rgb("hsl(1,2,3)")
    with pytest.raises(ValueError):
        parse_rgb("rgb(1,2,33")


def test_parse_rgb_rejects_bad_channels():
    with pytest.raises(ValueError):
        parse_rgb("rgb(1,2,256)")
    with pytest.raises(ValueError):
        parse_rgb("rgb(-1,2,3)")
    with pytest.raises(ValueError):
        parse_rgb("rgb(1,2)")


def test_invert_flips_each_channel():
    assert invert((10, 20, 200)) == (245, 235, 55)


def test_invert_swaps_black_and_white():
    assert invert(BLACK) == WHITE


def test_invert_of_a_single_channel():
    assert invert((255, 0, 0)) == (0, 255, 255)


def test_mix_defaults_to_half():
    assert mix((0, 100, 200), (100, 0, 210)) == (50, 50, 205)


def test_mix_takes_the_share_of_the_second():
    assert mix((0, 0, 100), (100, 40, 0), 0.25) == (25, 10, 75)


def test_mix_rounds_a_half_up():
    assert mix((0, 0, 3), (1, 3, 0)) == (1, 2, 2)


def test_mix_reaches_both_colors():
    assert mix(BLACK, WHITE, 0) == BLACK
    assert mix(BLACK, WHITE, 1) == WHITE


def test_mix_rejects_a_weight_outside_its_limits():
    with pytest.raises(ValueError):
        mix(BLACK, WHITE, 1.5)
    with pytest.raises(ValueError):
        mix(BLACK, WHITE, -0.5)


def test_shade_moves_to_white():
    assert shade((55, 155, 255), 50) == (155, 205, 255)
    assert shade((1, 2, 3), 0) == (1, 2, 3)


def test_shade_moves_to_black():
    assert shade((100, 200, 51), -50) == (50, 100, 25)


def test_shade_reaches_white_and_black():
    assert shade((1, 2, 3), 100) == WHITE
    assert shade((1, 2, 3), -100) == BLACK


def test_brightness_weights_the_channels():
    assert brightness((100, 100, 100)) == 100
    assert brightness((200, 100, 50)) == 124
    assert brightness((255, 0, 0)) == 76
    assert brightness((0, 255, 0)) == 149
    assert brightness((0, 0, 255)) == 29


def test_brightness_counts_exact_thousandths():
    assert brightness((1000, 0, 0)) == 299
    assert brightness((0, 1000, 0)) == 587
    assert brightness((0, 0, 1000)) == 114
    assert brightness((0, 10, 80)) == 14


def test_brightness_reaches_both_ends():
    assert brightness(BLACK) == 0
    assert brightness(WHITE) == 255


def test_is_dark_below_the_limit():
    assert is_dark((127, 128, 128)) is True
    assert is_dark((0, 0, 255)) is True


def test_is_dark_is_false_at_the_limit():
    assert is_dark((128, 128, 128)) is False
    assert is_dark((0, 255, 255)) is False


def test_is_dark_takes_another_limit():
    assert is_dark((40, 50, 60), 51) is True
    assert is_dark((40, 50, 60), 50) is False


def test_hue_of_the_three_primaries():
    assert hue((255, 0, 0)) == 0
    assert hue((0, 255, 0)) == 120
    assert hue((0, 0, 255)) == 240


def test_hue_between_primaries():
    assert hue((200, 100, 0)) == 30
    assert hue((0, 200, 50)) == 135
    assert hue((90, 0, 180)) == 270


def test_hue_with_a_background_of_gray():
    assert hue((60, 110, 10)) == 90
    assert hue((10, 60, 110)) == 210


def test_hue_wraps_below_red():
    assert hue((255, 0, 255)) == 300


def test_hue_of_gray_is_zero():
    assert hue((80, 80, 80)) == 0


def test_saturation_of_a_pure_color():
    assert saturation((0, 9, 0)) == 100


def test_saturation_rounds_down():
    assert saturation((200, 100, 150)) == 50
    assert saturation((3, 2, 2)) == 33


def test_saturation_of_black_is_zero():
    assert saturation(BLACK) == 0


def test_saturation_of_almost_black():
    assert saturation((1, 0, 0)) == 100


def test_nearest_picks_the_closest():
    palette = {"black": BLACK, "white": WHITE, "red": (255, 0, 0)}
    assert nearest((200, 30, 20), palette) == "red"


def test_nearest_prefers_the_first_of_equals():
    palette = {"a": (0, 0, 0), "b": (2, 0, 0)}
    assert nearest((1, 0, 0), palette) == "a"


def test_nearest_squares_the_differences():
    palette = {"far": (4, 0, 0), "near": (2, 2, 1)}
    assert nearest(BLACK, palette) == "near"


def test_nearest_rejects_an_empty_palette():
    with pytest.raises(ValueError):
        nearest(BLACK, {})


def test_gradient_of_two_steps_is_both_ends():
    assert gradient((1, 2, 3), (9, 8, 7), 2) == [(1, 2, 3), (9, 8, 7)]


def test_gradient_is_evenly_spaced():
    expected = [(0, 90, 5), (10, 60, 5), (20, 30, 5), (30, 0, 5)]
    assert gradient((0, 90, 5), (30, 0, 5), 4) == expected


def test_gradient_rounds_down():
    assert gradient((0, 0, 0), (1, 3, 5), 3)[1] == (0, 1, 2)


def test_gradient_rejects_a_single_step():
    with pytest.raises(ValueError):
        gradient(BLACK, WHITE, 1)
