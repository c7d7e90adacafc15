"""What NetworkX asks about the backend when it is imported.

This package stands beside `anden`, because an import of `anden.…` loads the native module. Programs that import
NetworkX alone must not pay for that.
"""

from __future__ import annotations

from typing import Any

#: The functions of the backend, with their differences from NetworkX in results, if there are any.
FUNCTIONS: dict[str, str] = {
    "all_pairs_bellman_ford_path_length": "Vertices are ordered by distance.",
    "all_pairs_dijkstra_path_length": "Vertices at equal distance are in node order.",
    "all_pairs_shortest_path": "",
    "all_pairs_shortest_path_length": "",
    "ancestors": "",
    "attracting_components": "Components are in the order of their first node.",
    "average_clustering": "Undirected graphs without `weight`.",
    "average_shortest_path_length": "Without `weight`.",
    "bellman_ford_path_length": "Without negative weights.",
    "betweenness_centrality": "Without `weight` and `endpoints`.",
    "bfs_edges": "Without `reverse` and `sort_neighbors`.",
    "bfs_layers": "",
    "bfs_predecessors": "Without `sort_neighbors`.",
    "bfs_successors": "Without `sort_neighbors`.",
    "center": "Without `weight`, `e` and `usebounds`.",
    "closeness_centrality": "Without `distance` and `sp`.",
    "clustering": "Undirected graphs without `weight`.",
    "connected_components": "",
    "core_number": "Undirected graphs.",
    "degree_centrality": "",
    "descendants": "",
    "descendants_at_distance": "",
    "diameter": "Without `weight`, `e` and `usebounds`.",
    "dijkstra_path_length": "Numeric weights that are not negative.",
    "eccentricity": "Without `weight` and `sp`.",
    "efficiency": "",
    "global_efficiency": "",
    "harmonic_centrality": "Without `nbunch`, `distance` and `sources`.",
    "has_cycle": "Directed graphs.",
    "has_path": "",
    "in_degree_centrality": "",
    "is_arborescence": "",
    "is_attracting_component": "",
    "is_branching": "",
    "is_connected": "",
    "is_directed_acyclic_graph": "",
    "is_empty": "",
    "is_forest": "",
    "is_isolate": "",
    "is_regular": "",
    "is_strongly_connected": "",
    "is_tree": "",
    "is_weakly_connected": "",
    "isolates": "",
    "k_core": "Undirected graphs.",
    "k_crust": "Undirected graphs.",
    "k_shell": "Undirected graphs.",
    "node_connected_component": "",
    "number_attracting_components": "",
    "number_connected_components": "",
    "number_of_isolates": "",
    "number_of_selfloops": "",
    "number_strongly_connected_components": "",
    "number_weakly_connected_components": "",
    "out_degree_centrality": "",
    "overall_reciprocity": "",
    "pagerank": "Without `nstart` and `dangling`; `personalization` with equal shares.",
    "periphery": "Without `weight`, `e` and `usebounds`.",
    "radius": "Without `weight`, `e` and `usebounds`.",
    "shortest_path": "From one source, or to one target, without `weight`.",
    "shortest_path_length": "",
    "single_source_bellman_ford_path_length": "Without negative weights. Vertices are ordered by distance.",
    "single_source_dijkstra_path_length": "Vertices at equal distance are in node order.",
    "single_source_shortest_path": "",
    "single_source_shortest_path_length": "",
    "single_target_shortest_path": "",
    "single_target_shortest_path_length": "",
    "strongly_connected_components": "A component comes after all that it leads to.",
    "transitivity": "Undirected graphs.",
    "triangles": "",
    "weakly_connected_components": "",
    "wiener_index": "Without `weight`.",
}

#: NetworkX computes faster on a graph with fewer nodes and edges than this, because the call does not convert it.
SMALLEST_GRAPH = 2_000


def get_info() -> dict[str, Any]:
    """The description of the backend, for NetworkX."""
    return {
        "backend_name": "anden",
        "project": "anden",
        "package": "anden",
        "url": "https://pypi.org/project/anden",
        "short_summary": "Fast kernels in Rust, on all cores.",
        "default_config": {"smallest_graph": SMALLEST_GRAPH},
        "functions": {name: {"additional_docs": text} if text else {} for name, text in FUNCTIONS.items()},
    }
