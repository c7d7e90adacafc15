"""Shortest paths, reachability and breadth-first traversals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from .graph import UNREACHED, Arcs, Graph, Node
from .registry import Arguments, implements, named_weight, only_default

Lengths: TypeAlias = dict[Node, Any]


def _last_level(cutoff: float | None) -> float:
    """The deepest level that NetworkX visits: it enters a level while the one before is below the cutoff."""
    return math.inf if cutoff is None else max(math.ceil(cutoff), 0) if math.isfinite(cutoff) else cutoff


def _levels(arcs: Arcs, sources: list[int], last: float = math.inf) -> Iterator[tuple[int, list[int], list[int]]]:
    for level, (vertices, parents) in enumerate(arcs.levels(sources)):
        if level > max(last, 0):
            return
        yield level, vertices, parents


def _require(G: Graph, node: Node, message: str) -> int:
    if node not in G:
        raise nx.NodeNotFound(message)
    return G.place(node)


def _known_neighbors(G: Graph, node: Node) -> int:
    """The number of a node whose neighbors NetworkX would list."""
    if node not in G:
        raise nx.NetworkXError(f"The node {node} is not in the {'digraph' if G.is_directed() else 'graph'}.")
    return G.place(node)


# Without weights.


def _lengths(G: Graph, arcs: Arcs, source: int, cutoff: float | None = None) -> Lengths:
    lengths: Lengths = {}
    for level, vertices, _ in _levels(arcs, [source], _last_level(cutoff)):
        lengths.update(dict.fromkeys(G.names(vertices), level))
    return lengths


@implements(is_linear=True)
def single_source_shortest_path_length(G: Graph, source: Node, cutoff: float | None = None) -> Lengths:
    return _lengths(G, G.arcs, _require(G, source, f"Source {source} is not in G"), cutoff)


@implements(is_linear=True)
def single_target_shortest_path_length(G: Graph, target: Node, cutoff: float | None = None) -> Lengths:
    return _lengths(G, G.reverse_arcs, _require(G, target, f"Target {target} is not in G"), cutoff)


@implements()
def all_pairs_shortest_path_length(G: Graph, cutoff: float | None = None) -> Iterator[tuple[Node, Lengths]]:
    for place, node in enumerate(G):
        yield node, _lengths(G, G.arcs, place, cutoff)


def _paths(G: Graph, arcs: Arcs, source: int, cutoff: float | None, *, is_reverse: bool) -> dict[Node, list[Node]]:
    start = G.nodes[source]
    paths: dict[Node, list[Node]] = {start: [start]}
    for level, vertices, parents in _levels(arcs, [source], _last_level(cutoff)):
        if level == 0:
            continue
        for node, parent in zip(G.names(vertices), G.names(parents), strict=True):
            paths[node] = [node, *paths[parent]] if is_reverse else [*paths[parent], node]
    return paths


@implements(is_linear=True)
def single_source_shortest_path(G: Graph, source: Node, cutoff: float | None = None) -> dict[Node, list[Node]]:
    return _paths(G, G.arcs, _require(G, source, f"Source {source} not in G"), cutoff, is_reverse=False)


@implements(is_linear=True)
def single_target_shortest_path(G: Graph, target: Node, cutoff: float | None = None) -> dict[Node, list[Node]]:
    return _paths(G, G.reverse_arcs, _require(G, target, f"Target {target} not in G"), cutoff, is_reverse=True)


@implements()
def all_pairs_shortest_path(G: Graph, cutoff: float | None = None) -> Iterator[tuple[Node, dict[Node, list[Node]]]]:
    for node in G:
        yield node, single_source_shortest_path(G, node, cutoff)


def _one_end(arguments: Arguments) -> str | None:
    if arguments["method"] not in ("dijkstra", "bellman-ford"):
        return "the method is unknown"
    has_both = arguments["source"] is not None and arguments["target"] is not None
    # NetworkX searches from both ends at once, and finds another of the shortest paths.
    return "source and target are given" if has_both else None


@implements(only_default(weight=None), _one_end)
def shortest_path(
    G: Graph, source: Node = None, target: Node = None, weight: None = None, method: str = "dijkstra"
) -> Any:
    if source is not None:
        return single_source_shortest_path(G, source)
    if target is None:
        return all_pairs_shortest_path(G)
    return _paths(G, G.reverse_arcs, _require(G, target, f"Source {target} not in G"), None, is_reverse=True)


@implements(is_linear=True)
def has_path(G: Graph, source: Node, target: Node) -> bool:
    return _num_hops(G, source, target) is not None


def _num_hops(G: Graph, source: Node, target: Node) -> int | None:
    start = _require(G, source, f"Source {source} is not in G")
    end = _require(G, target, f"Target {target} is not in G")
    hops = int(G.hops(start)[end])
    return None if hops == UNREACHED else hops


def _hops_or_error(G: Graph, source: Node, target: Node) -> int:
    hops = _num_hops(G, source, target)
    if hops is None:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return hops


# With weights.


def _check_weights(G: Graph) -> None:
    """Leaves to NetworkX: a graph with negative weights, and weights that are no number or infinite."""
    weights = G.weights
    if weights is None or len(weights) == 0:
        return
    if weights.dtype.kind == "f" and not np.isfinite(weights).all():
        raise NotImplementedError("a weight is infinite or no number")
    if weights.min() < 0:
        raise NotImplementedError("a weight is negative")


def _distances(G: Graph, source: int, *, is_reverse: bool = False) -> NDArray[Any]:
    _check_weights(G)
    if G.weights is None or len(G.weights) == 0:
        hops = G.hops(source, is_reverse=is_reverse)
        return np.where(hops == UNREACHED, np.inf, hops)
    return G.distances(source, is_reverse=is_reverse)


def _is_reached(distances: NDArray[Any]) -> NDArray[np.bool_]:
    if distances.dtype.kind == "f":
        return np.isfinite(distances)
    return distances != np.iinfo(distances.dtype).max


def _weighted_lengths(G: Graph, source: int, cutoff: float | None = None, *, is_reverse: bool = False) -> Lengths:
    """The lengths by distance, as Dijkstra's algorithm finds them."""
    distances = _distances(G, source, is_reverse=is_reverse)
    reached = np.flatnonzero(_is_reached(distances))
    reached = reached[np.argsort(distances[reached], kind="stable")]
    lengths: Lengths = {G.nodes[source]: 0}
    found = distances[reached]
    if cutoff is not None:
        is_near = found <= cutoff
        reached, found = reached[is_near], found[is_near]
    for node, distance in zip(G.names(reached.tolist()), found.tolist(), strict=True):
        lengths.setdefault(node, distance)
    return lengths


def _known(G: Graph, node: Node) -> int:
    return _require(G, node, f"Node {node} not found in graph")


@implements(named_weight)
def single_source_dijkstra_path_length(
    G: Graph, source: Node, cutoff: float | None = None, weight: str = "weight"
) -> Lengths:
    return _weighted_lengths(G, _known(G, source), cutoff)


@implements(named_weight)
def dijkstra_path_length(G: Graph, source: Node, target: Node, weight: str = "weight") -> Any:
    start = _known(G, source)
    return 0 if source == target else _weighted_length(G, start, target, f"Node {target} not reachable from {source}")


def _weighted_length(G: Graph, source: int, target: Node, message: str) -> Any:
    distances = _distances(G, source)
    if target not in G or not _is_reached(distances)[G.place(target)]:
        raise nx.NetworkXNoPath(message)
    return distances[G.place(target)].item()


@implements(named_weight)
def all_pairs_dijkstra_path_length(
    G: Graph, cutoff: float | None = None, weight: str = "weight"
) -> Iterator[tuple[Node, Lengths]]:
    _check_weights(G)
    return ((node, _weighted_lengths(G, place, cutoff)) for place, node in enumerate(G))


@implements(named_weight)
def single_source_bellman_ford_path_length(G: Graph, source: Node, weight: str = "weight") -> Lengths:
    return _weighted_lengths(G, _require(G, source, f"Source {source} not in G"))


@implements(named_weight)
def bellman_ford_path_length(G: Graph, source: Node, target: Node, weight: str = "weight") -> Any:
    if source == target:
        _known(G, source)
        return 0
    start = _require(G, source, f"Source {source} not in G")
    return _weighted_length(G, start, target, f"node {target} not reachable from {source}")


@implements(named_weight)
def all_pairs_bellman_ford_path_length(G: Graph, weight: str = "weight") -> Iterator[tuple[Node, Lengths]]:
    _check_weights(G)
    return ((node, _weighted_lengths(G, place)) for place, node in enumerate(G))


@implements(named_weight)
def shortest_path_length(
    G: Graph, source: Node = None, target: Node = None, weight: str | None = None, method: str = "dijkstra"
) -> Any:
    if method not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")
    if weight is None:
        return _unweighted_length(G, source, target)
    if source is None and target is None:
        return all_pairs_dijkstra_path_length(G)
    is_dijkstra = method == "dijkstra"
    if source is not None and target is not None:
        length = dijkstra_path_length if is_dijkstra else bellman_ford_path_length
        return length(G, source, target)
    end = target if source is None else source
    message = f"Node {end} not found in graph" if is_dijkstra else f"Source {end} not in G"
    return _weighted_lengths(G, _require(G, end, message), is_reverse=source is None)


def _unweighted_length(G: Graph, source: Node, target: Node) -> Any:
    if source is None and target is None:
        return all_pairs_shortest_path_length(G)
    if source is None:
        return _lengths(G, G.reverse_arcs, _require(G, target, f"Source {target} is not in G"))
    if target is None:
        return single_source_shortest_path_length(G, source)
    return _hops_or_error(G, source, target)


# Reachability and traversals.


@implements(is_linear=True)
def descendants(G: Graph, source: Node) -> set[Node]:
    return _reached(G, G.hops(_known_neighbors(G, source)))


@implements(is_linear=True)
def ancestors(G: Graph, source: Node) -> set[Node]:
    return _reached(G, G.hops(_known_neighbors(G, source), is_reverse=True))


def _reached(G: Graph, hops: NDArray[np.uint32]) -> set[Node]:
    return set(G.names(np.flatnonzero((hops != UNREACHED) & (hops != 0)).tolist()))


@implements(is_linear=True)
def descendants_at_distance(G: Graph, source: Node, distance: int) -> set[Node]:
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    hops = G.hops(G.place(source))
    return set(G.names(np.flatnonzero((hops == distance) & (hops != UNREACHED)).tolist()))


@implements(is_linear=True)
def bfs_layers(G: Graph, sources: Any) -> Iterator[list[Node]]:
    nodes = [sources] if sources in G else list(set(sources))
    for node in nodes:
        if node not in G:
            raise nx.NetworkXError(f"The node {node} is not in the graph.")
    for _, vertices, _ in _levels(G.arcs, list(map(G.place, nodes))):
        yield G.names(vertices)


@implements(only_default(reverse=False, sort_neighbors=None), is_linear=True)
def bfs_edges(
    G: Graph, source: Node, reverse: bool = False, depth_limit: int | None = None, sort_neighbors: None = None
) -> Iterator[tuple[Node, Node]]:
    start = _known_neighbors(G, source)
    last = len(G) if depth_limit is None else depth_limit
    for level, vertices, parents in _levels(G.arcs, [start], last):
        if level > 0:
            yield from zip(G.names(parents), G.names(vertices), strict=True)


@implements(only_default(sort_neighbors=None), is_linear=True)
def bfs_predecessors(
    G: Graph, source: Node, depth_limit: int | None = None, sort_neighbors: None = None
) -> Iterator[tuple[Node, Node]]:
    for parent, child in bfs_edges(G, source, depth_limit=depth_limit):
        yield child, parent


@implements(only_default(sort_neighbors=None), is_linear=True)
def bfs_successors(
    G: Graph, source: Node, depth_limit: int | None = None, sort_neighbors: None = None
) -> Iterator[tuple[Node, list[Node]]]:
    current = source
    children: list[Node] = []
    for parent, child in bfs_edges(G, source, depth_limit=depth_limit):
        if parent != current:
            yield current, children
            current, children = parent, []
        children.append(child)
    yield current, children
