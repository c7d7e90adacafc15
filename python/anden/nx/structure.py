"""Degrees, clustering and cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from .graph import Graph, Node
from .registry import Arguments, implements, only_default, simple, undirected

# Degrees.


@implements(is_linear=True)
def isolates(G: Graph) -> Iterator[Node]:
    return iter(G.names(np.flatnonzero(G.degrees == 0).tolist()))


@implements(is_linear=True)
def number_of_isolates(G: Graph) -> int:
    return int((G.degrees == 0).sum())


def _known_node(arguments: Arguments) -> str | None:
    # NetworkX's error for an unknown node depends on the version.
    return None if arguments["n"] in arguments["G"] else "the node is not in the graph"


@implements(_known_node, is_linear=True)
def is_isolate(G: Graph, n: Node) -> bool:
    return bool(G.degrees[G.place(n)] == 0)


@implements(is_linear=True)
def is_empty(G: Graph) -> bool:
    return len(G.arcs.targets) == 0


@implements(is_linear=True)
def number_of_selfloops(G: Graph) -> int:
    return G.num_loops


@implements(is_linear=True)
def is_regular(G: Graph) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Graph has no nodes.")
    degrees = (G.in_degrees, G.out_degrees) if G.is_directed() else (G.degrees,)
    return all(bool((values == values[0]).all()) for values in degrees)


# Triangles and clustering. Loops do not count.


def _triangles(G: Graph) -> NDArray[np.int64]:
    if len(G) == 0:
        return np.zeros(0, dtype=np.int64)
    return np.asarray(G.view.triangles(per_vertex=True), dtype=np.int64)


def _pairs_of_neighbors(G: Graph) -> NDArray[np.int64]:
    degrees = np.diff(G.arcs.offsets) - G.loops
    return degrees * (degrees - 1)


def _selected(G: Graph, nodes: Any, values: dict[Node, Any]) -> Any:
    """The values of `nodes`: one node, several, or all for none."""
    if nodes is None:
        return values
    if nodes in G:
        return values[nodes]
    return {node: values[node] for node in G.nbunch_iter(nodes)}


@implements(undirected, simple)
def triangles(G: Graph, nodes: Any = None) -> Any:
    return _selected(G, nodes, G.by_node(_triangles(G)))


_unweighted = only_default(weight=None)


@implements(undirected, simple, _unweighted)
def clustering(G: Graph, nodes: Any = None, weight: None = None) -> Any:
    return _selected(G, nodes, _coefficients(G))


def _coefficients(G: Graph) -> dict[Node, float]:
    counts, pairs = _triangles(G).tolist(), _pairs_of_neighbors(G).tolist()
    return {node: 2 * t / p if t else 0 for node, t, p in zip(G, counts, pairs, strict=True)}


@implements(undirected, simple, _unweighted)
def average_clustering(G: Graph, nodes: Any = None, weight: None = None, count_zeros: bool = True) -> float:
    values = list(clustering(G, nodes).values())
    if not count_zeros:
        values = [value for value in values if abs(value) > 0]
    return sum(values) / len(values)


@implements(undirected, simple)
def transitivity(G: Graph) -> float:
    num_corners = 2 * int(_triangles(G).sum())
    return num_corners / int(_pairs_of_neighbors(G).sum()) if num_corners else 0


# Cores.


def _cores(G: Graph) -> dict[Node, int]:
    if G.num_loops > 0:
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return G.by_node(np.asarray(G.view.kcore())) if len(G) else {}


@implements(undirected, simple)
def core_number(G: Graph) -> dict[Node, int]:
    return _cores(G)


def _subgraph(
    G: Graph, cores: dict[Node, int] | None, k: int | None, below: int, is_kept: Callable[[int, int], bool]
) -> nx.Graph[Any]:
    cores = _cores(G) if cores is None else cores
    limit = max(cores.values()) - below if k is None else k
    return G.to_networkx().subgraph(node for node, core in cores.items() if is_kept(core, limit)).copy()


@implements(undirected, simple)
def k_core(G: Graph, k: int | None = None, core_number: dict[Node, int] | None = None) -> nx.Graph[Any]:
    return _subgraph(G, core_number, k, 0, lambda core, limit: core >= limit)


@implements(undirected, simple)
def k_shell(G: Graph, k: int | None = None, core_number: dict[Node, int] | None = None) -> nx.Graph[Any]:
    return _subgraph(G, core_number, k, 0, lambda core, limit: core == limit)


@implements(undirected, simple)
def k_crust(G: Graph, k: int | None = None, core_number: dict[Node, int] | None = None) -> nx.Graph[Any]:
    return _subgraph(G, core_number, k, 1, lambda core, limit: core <= limit)
