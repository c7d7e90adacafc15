"""Anden as a backend of NetworkX.

NetworkX runs a function of this backend when the caller asks for it:

>>> import networkx as nx
>>> G = nx.path_graph(["a", "b", "c"])
>>> nx.has_path(G, "a", "c", backend="anden")
True

`nx.config.backend_priority = ["anden"]` asks for it in all calls. NetworkX converts a graph at the first call, and
keeps the converted graph with the original one. A change by a method of the graph drops it.
"""

from __future__ import annotations

from typing import Any

from . import centrality, components, paths, structure  # noqa: F401 (each enters its functions)
from .graph import Graph
from .registry import FUNCTIONS, can_run, should_run

__all__ = ["BackendInterface", "Graph"]


class BackendInterface:
    """The object that NetworkX loads: one attribute for each function, and the conversions."""

    can_run = staticmethod(can_run)
    should_run = staticmethod(should_run)

    @staticmethod
    def convert_from_nx(graph: Any, *, edge_attrs: dict[str, Any] | None = None, **_: Any) -> Graph:
        """Converts a graph of NetworkX. `edge_attrs` names the weight and its default."""
        if isinstance(graph, Graph):
            return graph
        if edge_attrs is not None and len(edge_attrs) > 1:
            raise NotImplementedError("the backend takes one edge attribute")
        weight = next(iter(edge_attrs.items()), None) if edge_attrs else None
        return Graph.of_networkx(graph, weight)

    @staticmethod
    def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
        """Converts a graph of the backend; other results pass through."""
        return result.to_networkx() if isinstance(result, Graph) else result


for _name, _function in FUNCTIONS.items():
    setattr(BackendInterface, _name, staticmethod(_function.call))
