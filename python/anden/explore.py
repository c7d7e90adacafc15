"""An interactive picture in a notebook, by ipysigma."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .neighborhood import MAX_VERTICES, neighborhood, values_of

if TYPE_CHECKING:
    from anden import View


def explore(
    view: View,
    vertices: Any = None,
    *,
    hops: int = 1,
    color: Any = None,
    size: Any = None,
    limit: int = MAX_VERTICES,
    seed: int = 1,
) -> Any:
    """An interactive widget of the neighborhood of some vertices. It needs ``pip install 'anden[explore]'``.

    The parameters are those of `plot`. A neighborhood of more than `limit` vertices is shown as a sample, and the name
    of the widget says so.
    """
    try:
        import networkx
        from ipysigma import Sigma
    except ImportError as error:
        raise ImportError("g.explore needs ipysigma: pip install 'anden[explore]'") from error
    shown = neighborhood(view, vertices, hops=hops, limit=limit, seed=seed)
    graph = networkx.DiGraph() if view.directed else networkx.Graph()
    graph.add_nodes_from(shown.keys)
    graph.add_edges_from((shown.keys[source], shown.keys[target]) for source, target in shown.edges.tolist())
    options: dict[str, Any] = {"name": shown.title}
    if color is not None:
        options["node_color"] = values_of(view, shown.keys, color, "color")
        if all(isinstance(value, (int, float)) for value in options["node_color"]):
            options["node_color_gradient"] = "Viridis"
    if size is not None:
        options["node_size"] = values_of(view, shown.keys, size, "size")
    return Sigma(graph, **options)
