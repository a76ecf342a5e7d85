"""Graphs as {node: [nodes it leads to]}; every node is a key."""


def from_edges(edges: list, directed: bool = False) -> dict:
    """Return the graph of (from, to) edges, both ways unless directed.

    Nodes and neighbours are in order of appearance; repeats are kept.
    """
    graph = {}
    for start, end in edges:
        graph.setdefault(start, []).append(end)
        back = graph.setdefault(end, [])
        if not directed:
            back.append(start)
    return graph


def in_degrees(graph: dict) -> dict:
    """Return {node: number of edges that lead to it}, nodes in order.

    Repeated edges count as often as they are there.
    """
    degrees = {node: 0 for node in graph}
    for targets in graph.values():
        for target in targets:
            degrees[target] += 1
    return degrees


def reachable(graph: dict, start: str) -> list:
    """Return start and all nodes it leads to, nearest first.

    Equally near ones are in the order found. Raise KeyError if start is
    not in graph.
    """
    found = [start]
    for node in found:
        for target in graph[node]:
            if target not in found:
                found.append(target)
    return found


def shortest_path(graph: dict, start: str, end: str) -> list:
    """Return the nodes of a path with the fewest edges, both ends included.

    A start equal to end gives [start]; no path gives [].
    """
    paths, seen = [[start]], {start}
    while paths:
        path = paths.pop(0)
        if path[-1] == end:
            return path
        for target in graph[path[-1]]:
            if target not in seen:
                seen.add(target)
                paths.append([*path, target])
    return []


def topological(graph: dict) -> list:
    """Return all nodes so that every edge leads to a later one.

    Of several possible next nodes the least comes first. Raise
    ValueError("cycle") if the graph has a cycle.
    """
    order, left = [], set(graph)
    while left:
        blocked = {target for node in left for target in graph[node]}
        free = left - blocked
        if not free:
            raise ValueError("cycle")
        order.append(min(free))
        left.remove(min(free))
    return order


def components(graph: dict) -> list:
    """Return the sorted node groups of an undirected graph.

    Groups are in the order of their first node in graph.
    """
    groups, seen = [], set()
    for node in graph:
        if node not in seen:
            group = reachable(graph, node)
            seen.update(group)
            groups.append(sorted(group))
    return groups


def cheapest_costs(costs: dict, start: str) -> dict:
    """Return {node: least total cost from start} of nodes start leads to.

    costs is {node: {next node: cost}}, with costs of 0 or more. Nodes
    are in order of their total cost.
    """
    best, done = {start: 0}, {}
    while best:
        node = min(best, key=best.get)
        done[node] = best.pop(node)
        for target, cost in costs.get(node, {}).items():
            total = done[node] + cost
            if target not in done and total < best.get(target, total + 1):
                best[target] = total
    return done


def two_colors(graph: dict) -> dict:
    """Return {node: 0 or 1} with neighbours differing, {} if impossible.

    The first node of each component is 0; the graph is undirected.
    """
    colors = {}
    for first in graph:
        colors.setdefault(first, 0)
        for node in reachable(graph, first):
            for target in graph[node]:
                color = colors.setdefault(target, 1 - colors[node])
                if color == colors[node]:
                    return {}
    return colors


def busiest(graph: dict, count: int = 1) -> list:
    """Return the count nodes (default 1) with the most neighbours.

    The most come first, equals in the order of graph.
    """
    ranked = sorted(graph, key=lambda node: -len(graph[node]))
    return ranked[:count]
