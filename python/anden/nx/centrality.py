"""Centrality, PageRank and measures of distance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from .components import _is_one_component
from .graph import UNREACHED, Graph, Node
from .paths import _hops_or_error, _require
from .registry import Arguments, implements, named_weight, only_default, simple, undirected

Scores: TypeAlias = dict[Node, Any]


def _equal_shares(arguments: Arguments) -> str | None:
    personalization = arguments["personalization"]
    if personalization is None:
        return None
    graph = arguments["G"]
    shares = {share for node, share in personalization.items() if node in graph and share != 0}
    if len(shares) != 1 or min(shares) < 0:
        return "the shares of personalization differ"
    return None


@implements(simple, named_weight, only_default(nstart=None, dangling=None), _equal_shares)
def pagerank(
    G: Graph,
    alpha: float = 0.85,
    personalization: dict[Node, float] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: None = None,
    weight: str | None = "weight",
    dangling: None = None,
) -> Scores:
    if len(G) == 0:
        return {}
    if max_iter < 1 or not 0 <= alpha <= 1:
        raise NotImplementedError("max_iter or alpha is out of bounds")
    options: dict[str, Any] = {"damping": alpha, "iterations": max_iter, "tolerance": len(G) * tol}
    if personalization is not None:
        options["source"] = [G.place(node) for node, share in personalization.items() if node in G and share != 0]
    if _has_various_weights(G):
        options["weight"] = "weight"
    result = G.view.pagerank(details=True, **options)
    if result.summary["delta"] >= len(G) * tol:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return G.by_node(result.values)


def _has_various_weights(G: Graph) -> bool:
    """Whether weights change the ranks. Negative weights and infinite ones are left to NetworkX."""
    weights = G.weights
    if weights is None or len(weights) == 0:
        return False
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise NotImplementedError("a weight is negative, infinite or no number")
    return bool(weights.min() != weights.max() or weights.min() == 0)


@implements(only_default(weight=None, endpoints=False))
def betweenness_centrality(
    G: Graph,
    k: int | None = None,
    normalized: bool = True,
    weight: None = None,
    endpoints: bool = False,
    seed: Any = None,
) -> Scores:
    if k == len(G):
        k = None
    if len(G) == 0:
        return {}
    sources = None if k is None else list(map(G.place, seed.sample(G.nodes, k)))
    if sources == []:
        raise NotImplementedError("no sources")
    scores = np.asarray(G.view.bc("all" if sources is None else sources))
    return G.by_node(_rescaled(scores, sources, is_normalized=normalized, is_directed=G.is_directed()))


def _rescaled(
    scores: NDArray[np.float64], sources: list[int] | None, *, is_normalized: bool, is_directed: bool
) -> NDArray[np.float64]:
    """The scale of NetworkX. A source is no inner vertex of its own paths, so a sample misses it once."""
    n = len(scores)
    if n < 3:
        return scores
    correction = 1 if is_directed else 2
    num_sources = n - 1 if sources is None else len(sources)
    if sources is None:
        # A product, as in NetworkX: a quotient would differ in the last digit.
        return scores * (1 / (num_sources * (n - 2)) if is_normalized else (n - 1) / (num_sources * correction))
    top, pairs = (1, n - 2) if is_normalized else (n - 1, correction)
    scale = np.full(n, top / (num_sources * pairs))
    scale[sources] = top / ((num_sources - 1) * pairs) if num_sources > 1 else math.nan
    return scores * scale


@implements(only_default(distance=None, sp=None))
def closeness_centrality(
    G: Graph, u: Node = None, distance: None = None, wf_improved: bool = True, *, sp: None = None
) -> Any:
    if u is not None:
        place = _require(G, u, f"Source {u} is not in G")
        return _closeness(G, place, wf_improved=wf_improved)
    if not wf_improved:
        return {node: _closeness(G, place, wf_improved=False) for place, node in enumerate(G)}
    if len(G) == 0:
        return {}
    return G.by_node(np.asarray(G.view.closeness("all")))


def _closeness(G: Graph, place: int, *, wf_improved: bool) -> float:
    hops = G.hops(place, is_reverse=True)
    reached = hops[hops != UNREACHED]
    total = int(reached.sum(dtype=np.int64))
    if total == 0 or len(G) <= 1:
        return 0.0
    others = len(reached) - 1.0
    return others / total * (others / (len(G) - 1) if wf_improved else 1.0)


def _hops_from_each(G: Graph) -> Iterator[NDArray[np.uint32]]:
    return (G.hops(place) for place in range(len(G)))


@implements(only_default(nbunch=None, distance=None, sources=None))
def harmonic_centrality(G: Graph, nbunch: None = None, distance: None = None, sources: None = None) -> Scores:
    centrality = np.zeros(len(G))
    for hops in _hops_from_each(G):
        is_other = (hops != UNREACHED) & (hops != 0)
        centrality[is_other] += 1 / hops[is_other]
    scores = G.by_node(centrality)
    # NetworkX gives the nodes in the order of a set.
    return {node: scores[node] for node in set(G)}


def _degree_centrality(G: Graph, degrees: NDArray[np.int64]) -> Scores:
    if len(G) <= 1:
        return dict.fromkeys(G, 1)
    return G.by_node(degrees * (1.0 / (len(G) - 1.0)))


@implements(is_linear=True)
def degree_centrality(G: Graph) -> Scores:
    return _degree_centrality(G, G.degrees)


@implements(is_linear=True)
def in_degree_centrality(G: Graph) -> Scores:
    return _degree_centrality(G, G.in_degrees)


@implements(is_linear=True)
def out_degree_centrality(G: Graph) -> Scores:
    return _degree_centrality(G, G.out_degrees)


# Measures of distance: a breadth-first search from each node.


def _eccentricity(G: Graph, place: int) -> int:
    hops = G.hops(place)
    if (hops == UNREACHED).any():
        kind = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
        raise nx.NetworkXError(f"Found infinite path length because the {kind}")
    return int(hops.max())


def _has_nodes(arguments: Arguments) -> str | None:
    # The error depends on the version of NetworkX.
    return None if len(arguments["G"]) else "the graph has no nodes"


@implements(_has_nodes, only_default(sp=None, weight=None))
def eccentricity(G: Graph, v: Any = None, sp: None = None, weight: None = None) -> Any:
    if v in G:
        return _eccentricity(G, G.place(v))
    return {node: _eccentricity(G, G.place(node)) for node in G.nbunch_iter(v)}


_plain = only_default(e=None, usebounds=False, weight=None)


@implements(_has_nodes, _plain)
def diameter(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> int:
    return max(eccentricity(G).values())


@implements(_has_nodes, _plain)
def radius(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> int:
    return min(eccentricity(G).values())


@implements(_has_nodes, _plain)
def center(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> list[Node]:
    eccentricities = eccentricity(G)
    least = min(eccentricities.values())
    return [node for node, value in eccentricities.items() if value == least]


@implements(_has_nodes, _plain)
def periphery(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> list[Node]:
    eccentricities = eccentricity(G)
    most = max(eccentricities.values())
    return [node for node, value in eccentricities.items() if value == most]


def _connected(G: Graph) -> bool:
    return _is_one_component(G, G.view.scc() if G.is_directed() else G.view.wcc())


def _sum_of_hops(G: Graph) -> int:
    return sum(int(hops.sum(dtype=np.int64)) for hops in _hops_from_each(G))


@implements(only_default(weight=None, method=None))
def average_shortest_path_length(G: Graph, weight: None = None, method: None = None) -> float:
    n = len(G)
    if n == 0:
        message = "the null graph has no paths, thus there is no average shortest path length"
        raise nx.NetworkXPointlessConcept(message)
    if n == 1:
        return 0
    if not _connected(G):
        raise nx.NetworkXError(f"Graph is not {'strongly ' if G.is_directed() else ''}connected.")
    return _sum_of_hops(G) / (n * (n - 1))


@implements(only_default(weight=None))
def wiener_index(G: Graph, weight: None = None) -> float:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    if not _connected(G):
        return math.inf
    total = _sum_of_hops(G)
    return total if G.is_directed() else total / 2


@implements(undirected, is_linear=True)
def efficiency(G: Graph, u: Node, v: Node) -> float:
    try:
        return 1 / _hops_or_error(G, u, v)
    except nx.NetworkXNoPath:
        return 0


@implements(undirected)
def global_efficiency(G: Graph) -> float:
    n = len(G)
    if n <= 1:
        return 0
    total = 0.0
    for hops in _hops_from_each(G):
        others = hops[(hops != UNREACHED) & (hops != 0)]
        total += float((1 / others).sum())
    return total / (n * (n - 1))
