import pytest

from pond.version import bump, caret_range, change_kind, compare, latest
from pond.version import parse_version, prerelease, satisfies
from pond.version import satisfies_all


def test_parse_version_reads_three_numbers():
    assert parse_version("1.20.3") == (1, 20, 3)


def test_parse_version_fills_with_zeros():
    assert parse_version("2") == (2, 0, 0)
    assert parse_version("2.5") == (2, 5, 0)


def test_parse_version_ignores_prefix_and_prerelease():
    assert parse_version("v1.2.3-rc.1-x") == (1, 2, 3)


def test_parse_version_rejects_four_numbers():
    with pytest.raises(ValueError):
        parse_version("1.2.3.4")


def test_parse_version_rejects_other_text():
    with pytest.raises(ValueError):
        parse_version("1.x")


def test_prerelease_follows_the_dash():
    assert prerelease("1.0.0-rc1") == "rc1"


def test_prerelease_keeps_later_dashes():
    assert prerelease("1.0.0-a-b") == "a-b"


def test_prerelease_leaves_out_the_build():
    assert prerelease("1.0.0-rc1+b-5") == "rc1"
    assert prerelease("1.0.0+b-5") == ""


def test_prerelease_of_a_release_is_empty():
    assert prerelease("1.0.0") == ""


def test_compare_uses_numbers_not_text():
    assert compare("1.10", "1.9") == 1
    assert compare("1.9.9", "2") == -1


def test_compare_of_equal_versions():
    assert compare("v1.2", "1.2.0") == 0


def test_compare_puts_a_prerelease_before_its_release():
    assert compare("1.0-rc1", "1.0") == -1
    assert compare("1.0", "1.0-rc1") == 1


def test_compare_orders_prereleases_as_text():
    assert compare("1.0-beta", "1.0-alpha") == 1
    assert compare("1.0-a", "1.0-a") == 0


def test_bump_defaults_to_patch():
    assert bump("1.2.3") == "1.2.4"


def test_bump_resets_the_numbers_after():
    assert bump("1.2.3", "minor") == "1.3.0"
    assert bump("1.2.3", "major") == "2.0.0"


def test_bump_drops_a_prerelease():
    assert bump("1.2.3-rc1", "patch") == "1.2.4"


def test_bump_rejects_another_part():
    with pytest.raises(ValueError):
        bump("1.2.3", "build")


def test_latest_finds_the_newest():
    assert latest(["1.9", "1.10", "1.2"]) == "1.10"


def test_latest_skips_prereleases_by_default():
    assert latest(["1.0", "2.0-rc1"]) == "1.0"
    assert latest(["1.0", "2.0-rc1"], stable=False) == "2.0-rc1"


def test_latest_returns_the_first_of_equals():
    assert latest(["1.0", "v1.0", "1.0.0"]) == "1.0"


def test_latest_rejects_no_versions():
    with pytest.raises(ValueError, match="no version"):
        latest(["1.0-rc1"])


def test_satisfies_at_the_boundary():
    assert satisfies("1.2", ">=1.2") is True
    assert satisfies("1.2", "<=1.2.0") is True
    assert satisfies("1.2", ">1.2") is False
    assert satisfies("1.2", "< 1.2") is False


def test_satisfies_beside_the_boundary():
    assert satisfies("1.3", ">1.2") is True
    assert satisfies("1.1", ">=1.2") is False
    assert satisfies("1.10", "<1.9") is False
    assert satisfies("1.3", "<=1.2") is False


def test_satisfies_equal_and_unequal():
    assert satisfies("1.5", "==1.5.0") is True
    assert satisfies("1.5", "!=1.5.0") is False
    assert satisfies("1.5.1", "!=1.5.0") is True


def test_satisfies_without_a_sign_means_equal():
    assert satisfies("1.5.0", "1.5") is True
    assert satisfies("1.5.1", "1.5") is False


def test_satisfies_all_needs_every_rule():
    assert satisfies_all("1.5", ">=1, <2") is True
    assert satisfies_all("2.0", ">=1, <2") is False
    assert satisfies_all("0.9", ">=1, <2") is False


def test_satisfies_all_skips_blank_rules():
    assert satisfies_all("1.5", " ,>1, ") is True


def test_satisfies_all_of_no_rules_is_true():
    assert satisfies_all("1.5", "") is True


def test_caret_range_raises_the_major():
    assert caret_range("1.4.2") == ("1.4.2", "2.0.0")


def test_caret_range_raises_the_minor_below_one():
    assert caret_range("0.4.2") == ("0.4.2", "0.5.0")
    assert caret_range("0.1") == ("0.1.0", "0.2.0")


def test_caret_range_raises_the_patch_last():
    assert caret_range("0.0.3") == ("0.0.3", "0.0.4")
    assert caret_range("0") == ("0.0.0", "0.0.1")


def test_change_kind_is_the_first_difference():
    assert change_kind("1.2.3", "2.2.4") == "major"
    assert change_kind("1.2.3", "1.3.0") == "minor"


def test_change_kind_of_a_patch():
    assert change_kind("1.2.3", "1.2.2") == "patch"


def test_change_kind_of_equal_versions_is_none():
    assert change_kind("1.2", "v1.2.0") == "none"
