import pytest

from pond.graph import busiest, cheapest_costs, components, from_edges
from pond.graph import in_degrees, reachable, shortest_path, topological
from pond.graph import two_colors


def test_from_edges_goes_both_ways():
    graph = from_edges(["ab", "bc"])
    assert graph == {"a": ["b"], "b": ["a", "c"], "c": ["b"]}


def test_from_edges_can_be_directed():
    graph = from_edges(["ab", "ac"], directed=True)
    assert graph == {"a": ["b", "c"], "b": [], "c": []}


def test_from_edges_keeps_the_order_of_appearance():
    assert list(from_edges(["cb", "ac"])) == ["c", "b", "a"]


def test_from_edges_of_nothing_is_empty():
    assert from_edges([]) == {}


def test_in_degrees_counts_edges():
    graph = {"a": ["b", "c"], "b": ["c"], "c": []}
    assert in_degrees(graph) == {"a": 0, "b": 1, "c": 2}


def test_in_degrees_counts_repeats_and_loops():
    assert in_degrees({"a": ["a", "b", "b"], "b": []}) == {"a": 1, "b": 2}


def test_in_degrees_of_nothing_is_empty():
    assert in_degrees({}) == {}


def test_reachable_lists_the_nearest_first():
    graph = {"a": ["c", "b"], "b": ["e"], "c": ["d"], "d": [], "e": []}
    assert reachable(graph, "a") == ["a", "c", "b", "d", "e"]


def test_reachable_stops_at_cycles():
    graph = {"a": ["b"], "b": ["a"], "c": ["a"]}
    assert reachable(graph, "a") == ["a", "b"]


def test_reachable_rejects_an_unknown_start():
    with pytest.raises(KeyError):
        reachable({"a": []}, "z")


def test_shortest_path_has_the_fewest_edges():
    graph = {"a": ["b", "c"], "b": ["d"], "c": ["e"], "d": ["e"], "e": []}
    assert shortest_path(graph, "a", "e") == ["a", "c", "e"]
    graph = {"a": ["b", "c"], "b": ["e"], "c": ["d"], "d": ["e"], "e": []}
    assert shortest_path(graph, "a", "e") == ["a", "b", "e"]


def test_shortest_path_to_the_start():
    assert shortest_path({"a": ["a"]}, "a", "a") == ["a"]


def test_shortest_path_is_empty_without_a_way():
    graph = {"a": ["b"], "b": ["a"], "c": ["a"]}
    assert shortest_path(graph, "a", "c") == []


def test_topological_follows_the_edges():
    graph = {"a": ["c"], "b": ["a"], "c": []}
    assert topological(graph) == ["b", "a", "c"]


def test_topological_prefers_the_least():
    assert topological({"c": [], "b": ["d"], "a": [], "d": []}) == list("abcd")
    assert topological({}) == []


def test_topological_rejects_a_cycle():
    with pytest.raises(ValueError, match="cycle"):
        topological({"a": ["b"], "b": ["a"], "c": ["a"]})


def test_components_are_sorted_groups():
    graph = {"d": ["c"], "c": ["d"], "b": ["a"], "a": ["b"]}
    assert components(graph) == [["c", "d"], ["a", "b"]]


def test_components_of_a_single_node():
    assert components({"a": []}) == [["a"]]


def test_components_of_nothing_is_empty():
    assert components({}) == []


def test_cheapest_costs_adds_up_steps():
    costs = {"a": {"b": 7, "c": 2}, "c": {"b": 3}, "b": {"a": 1}}
    assert cheapest_costs(costs, "a") == {"a": 0, "c": 2, "b": 5}


def test_cheapest_costs_orders_by_cost():
    costs = {"a": {"b": 4, "c": 1}, "c": {"d": 2, "b": 4}, "b": {"d": 9}}
    assert list(cheapest_costs(costs, "a").items())[2:] == [("d", 3), ("b", 4)]


def test_cheapest_costs_from_a_dead_end():
    assert cheapest_costs({"a": {"b": 1}}, "b") == {"b": 0}


def test_two_colors_alternates():
    graph = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}
    assert two_colors(graph) == {"a": 0, "b": 1, "c": 0}


def test_two_colors_starts_each_component_at_zero():
    graph = {"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]}
    assert two_colors(graph) == {"a": 0, "b": 1, "c": 0, "d": 1}


def test_two_colors_is_impossible_for_a_triangle():
    graph = {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}
    assert two_colors(graph) == {}


def test_busiest_defaults_to_one():
    assert busiest({"a": ["b"], "b": ["a", "c"], "c": ["b"]}) == ["b"]


def test_busiest_keeps_the_order_of_equals():
    graph = {"c": ["a"], "a": ["c", "b"], "b": ["a"]}
    assert busiest(graph, 3) == ["a", "c", "b"]


def test_busiest_of_nothing_is_empty():
    assert busiest({}) == []
    assert busiest({"a": []}, 0) == []
