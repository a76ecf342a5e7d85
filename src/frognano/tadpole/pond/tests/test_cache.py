import pytest

from pond.cache import LRUCache, drop_prefix, get_or_make, hit_rate
from pond.cache import is_fresh, lookup, make_key, purge, shrink


def test_lru_cache_drops_what_was_not_used_for_longest():
    cache = LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_lru_cache_replaces_a_value():
    cache = LRUCache()
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        cache.put(key, value)
    assert (len(cache), cache.get("a"), cache.get("b", 0)) == (2, 3, 0)


def test_lru_cache_rejects_limit_zero():
    assert LRUCache(1).limit == 1
    with pytest.raises(ValueError):
        LRUCache(0)


def test_make_key_lists_arguments():
    assert make_key("load", 1, "a") == "load(1, 'a')"


def test_make_key_sorts_options():
    assert make_key("f", z=1, a="x") == "f(a='x', z=1)"


def test_make_key_leaves_out_none():
    assert make_key("f", None, a=None, b=0) == "f(None, b=0)"
    assert make_key("f") == "f()"


def test_hit_rate_rounds_down():
    assert hit_rate(2, 1) == 66
    assert hit_rate(3, 1) == 75


def test_hit_rate_at_both_ends():
    assert hit_rate(1, 0) == 100
    assert hit_rate(0, 4) == 0
    assert hit_rate(0, 0) == 0


def test_hit_rate_rejects_negative_counts():
    with pytest.raises(ValueError):
        hit_rate(-1, 5)
    with pytest.raises(ValueError):
        hit_rate(0, -1)


def test_is_fresh_until_the_ttl():
    assert is_fresh(10, 14, 5) is True
    assert is_fresh(10, 15, 5) is False


def test_is_fresh_defaults_to_sixty():
    assert is_fresh(0, 59) is True
    assert is_fresh(0, 60) is False


def test_is_fresh_forever_but_not_before():
    assert is_fresh(0, 9999, 0) is True
    assert is_fresh(5, 5, 1) is True
    assert is_fresh(5, 4, 0) is False


def test_purge_returns_keys_by_time():
    assert purge({"a": 3, "b": 1, "c": 9, "d": 1}, 5) == ["b", "d", "a"]


def test_purge_includes_now():
    assert purge({"a": 5, "b": 6}, 5) == ["a"]
    assert purge({}, 5) == []


def test_purge_allows_a_time_of_grace():
    assert purge({"a": 3, "b": 2, "c": 1}, 5, 3) == ["c", "b"]


def test_purge_removes_the_entries():
    entries = {"a": 1, "b": 6}
    purge(entries, 5)
    assert entries == {"b": 6}


def test_shrink_removes_the_first_keys():
    assert shrink({"a": 5, "b": 3, "c": 4}, 4) == ["a", "b"]


def test_shrink_stops_at_the_limit():
    assert shrink({"a": 5, "b": 3}, 8) == []
    assert shrink({"a": 5, "b": 3}, 7) == ["a"]
    assert shrink({}, 0) == []


def test_shrink_changes_the_dict():
    sizes = {"a": 5, "b": 3, "c": 4}
    shrink(sizes, 7)
    assert sizes == {"b": 3, "c": 4}


def test_get_or_make_returns_what_is_stored():
    assert get_or_make({"a": 1}, "a", len) == 1
    assert get_or_make({"a": None}, "a", len) is None


def test_get_or_make_stores_what_it_makes():
    store = {}
    assert get_or_make(store, "abc", len) == 3
    assert store == {"abc": 3}


def test_get_or_make_does_not_store_none():
    store = {}
    assert get_or_make(store, "a", {}.get) is None
    assert store == {}


def test_lookup_takes_the_first_layer():
    assert lookup([{"b": 0}, {"a": 1}, {"a": 2}], "a") == 1


def test_lookup_fills_the_layers_before():
    layers = [{}, {"b": 0}, {"a": 2}, {}]
    lookup(layers, "a")
    assert layers == [{"a": 2}, {"b": 0, "a": 2}, {"a": 2}, {}]


def test_lookup_falls_back_to_the_default():
    assert lookup([{}, {"b": 1}], "a") is None
    assert lookup([], "a", 7) == 7


def test_drop_prefix_returns_the_number():
    assert drop_prefix({"a:1": 1, "a:2": 2, "b:a:": 3}, "a:") == 2


def test_drop_prefix_removes_the_keys():
    store = {"a:1": 1, "b:1": 2}
    drop_prefix(store, "a:")
    assert store == {"b:1": 2}


def test_drop_prefix_of_nothing_found():
    assert drop_prefix({"a": 1}, "b") == 0
    assert drop_prefix({}, "") == 0
