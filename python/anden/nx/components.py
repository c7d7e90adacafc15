"""Components, and the kinds of graphs that components tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from .graph import Graph, Node
from .registry import directed, implements, simple

Labels: TypeAlias = NDArray[np.uint32]


def _groups(G: Graph, labels: Labels) -> Iterator[set[Node]]:
    """The components in the order of their first nodes. A label is the smallest number in the component."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order])) + 1
    if len(order):
        for vertices in np.split(order, starts):
            yield set(G.names(vertices.tolist()))


def _num_components(labels: Labels) -> int:
    return int((labels == np.arange(len(labels))).sum())


def _is_one_component(G: Graph, labels: Labels) -> bool:
    return bool((labels == 0).all())


def _require_nodes(G: Graph) -> None:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")


@implements(is_linear=True)
def connected_components(G: Graph) -> Iterator[set[Node]]:
    yield from _groups(G, G.view.wcc())


@implements(is_linear=True)
def number_connected_components(G: Graph) -> int:
    return _num_components(G.view.wcc())


@implements(is_linear=True)
def is_connected(G: Graph) -> bool:
    _require_nodes(G)
    return _is_one_component(G, G.view.wcc())


@implements(is_linear=True)
def node_connected_component(G: Graph, n: Node) -> set[Node]:
    # NetworkX looks the node up in a dictionary, so a missing one is a KeyError.
    place, labels = G.place(n), G.view.wcc()
    return set(G.names(np.flatnonzero(labels == labels[place]).tolist()))


@implements(is_linear=True)
def weakly_connected_components(G: Graph) -> Iterator[set[Node]]:
    yield from _groups(G, G.view.wcc())


@implements(is_linear=True)
def number_weakly_connected_components(G: Graph) -> int:
    return _num_components(G.view.wcc())


@implements(is_linear=True)
def is_weakly_connected(G: Graph) -> bool:
    _require_nodes(G)
    return _is_one_component(G, G.view.wcc())


@implements()
def strongly_connected_components(G: Graph) -> Iterator[set[Node]]:
    labels = G.view.scc()
    groups = dict(zip(np.unique(labels).tolist(), _groups(G, labels), strict=True))
    for label in _depth_first(groups, _arcs_between(G, labels)):
        yield groups[label]


def _arcs_between(G: Graph, labels: Labels) -> dict[int, list[int]]:
    """The components that each component has arcs to, in the order of the arcs."""
    sources, targets = labels[G.arcs.sources].astype(np.int64), labels[G.arcs.targets]
    _, first = np.unique(sources * len(G) + targets, return_index=True)
    first = np.sort(first)
    first = first[sources[first] != targets[first]]
    lists: dict[int, list[int]] = {}
    for source, target in zip(sources[first].tolist(), targets[first].tolist(), strict=True):
        lists.setdefault(source, []).append(target)
    return lists


def _depth_first(roots: Iterable[int], lists: dict[int, list[int]]) -> Iterator[int]:
    """The vertices of an acyclic graph, each after all that it leads to, as Tarjan's algorithm finds components."""
    seen: set[int] = set()
    for root in roots:
        stack = [] if root in seen else [(root, iter(lists.get(root, ())))]
        seen.add(root)
        while stack:
            vertex, targets = stack[-1]
            target = next((target for target in targets if target not in seen), None)
            if target is None:
                stack.pop()
                yield vertex
            else:
                seen.add(target)
                stack.append((target, iter(lists.get(target, ()))))


@implements()
def number_strongly_connected_components(G: Graph) -> int:
    return _num_components(G.view.scc())


@implements()
def is_strongly_connected(G: Graph) -> bool:
    _require_nodes(G)
    return _is_one_component(G, G.view.scc())


def _attracting(G: Graph) -> Iterator[set[Node]]:
    labels = G.view.scc()
    sources, targets = labels[G.arcs.sources], labels[G.arcs.targets]
    is_left = np.zeros(len(G), dtype=bool)
    is_left[sources[sources != targets]] = True
    return (nodes for nodes in _groups(G, labels) if not is_left[labels[G.place(next(iter(nodes)))]])


@implements()
def attracting_components(G: Graph) -> Iterator[set[Node]]:
    yield from _attracting(G)


@implements()
def number_attracting_components(G: Graph) -> int:
    return sum(1 for _ in _attracting(G))


@implements()
def is_attracting_component(G: Graph) -> bool:
    components = list(_attracting(G))
    return len(components) == 1 and len(components[0]) == len(G)


@implements(directed)
def has_cycle(G: Graph) -> bool:
    return G.num_loops > 0 or _num_components(G.view.scc()) < len(G)


@implements()
def is_directed_acyclic_graph(G: Graph) -> bool:
    return G.is_directed() and not has_cycle(G)


def _require_any_node(G: Graph) -> None:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("G has no nodes.")


@implements(is_linear=True)
def is_tree(G: Graph) -> bool:
    _require_any_node(G)
    return len(G) - 1 == G.number_of_edges() and _is_one_component(G, G.view.wcc())


@implements(is_linear=True)
def is_forest(G: Graph) -> bool:
    _require_any_node(G)
    # Every component has at least as many edges as a tree, so the sums tell.
    return len(G) - _num_components(G.view.wcc()) == G.number_of_edges()


@implements(is_linear=True)
def is_arborescence(G: Graph) -> bool:
    return is_tree(G) and int(G.in_degrees.max()) <= 1


@implements(is_linear=True)
def is_branching(G: Graph) -> bool:
    return is_forest(G) and int(G.in_degrees.max()) <= 1


@implements(simple, is_linear=True)
def overall_reciprocity(G: Graph) -> float:
    num_edges = G.number_of_edges()
    if num_edges == 0:
        raise nx.NetworkXError("Not defined for empty graphs")
    low = np.minimum(G.arcs.sources, G.arcs.targets)
    pairs = low * len(G) + np.maximum(G.arcs.sources, G.arcs.targets)
    return (num_edges - len(np.unique(pairs))) * 2 / num_edges
