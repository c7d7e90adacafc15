"""Pictures by Matplotlib, which is imported when a picture is drawn."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .neighborhood import MAX_VERTICES, Neighborhood, neighborhood, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anden import Database, Result, View

Points: TypeAlias = NDArray[np.float64]

#: More labels cover each other.
MAX_LABELS = 60
#: Up to this size, every pair of vertices repels. In larger pictures, each vertex is repelled by a sample.
MAX_EXACT_LAYOUT = 1_000
ROUNDS = 80
#: Kernels whose values are names of groups.
GROUPING = ("wcc", "scc", "cdlp")


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("pictures need Matplotlib: pip install 'anden[plot]'") from error
    return pyplot.subplots()[1]


def plot_degrees(view: View, *, direction: Literal["out", "in", "both"] = "out", ax: Axes | None = None) -> Axes:
    """Draws the degree distribution: the share of vertices with at least each degree, on logarithmic axes.

    Parameters
    ----------
    direction : {"out", "in", "both"}
        Which edges of a vertex count.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import anden
    >>> g = anden.from_edges([(1, 2), (1, 3), (2, 3)]).view()
    >>> g.plot_degrees().get_xlabel()
    'out-degree'
    """
    if direction not in ("out", "in", "both"):
        raise ValueError(f"direction must be 'out', 'in' or 'both', not {direction!r}")
    axes = _axes(ax)
    counts = np.array(view.degree_statistics(direction)["counts"], dtype=np.int64).reshape(-1, 2)
    # The number of vertices with at least each degree.
    reversed_sums = counts[::-1, 1].cumsum()[::-1]
    axes.plot(counts[:, 0], reversed_sums / max(view.num_vertices, 1), marker=".", linewidth=1)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_yscale("log")
    axes.set_xlabel(f"{direction}-degree" if view.directed and direction != "both" else "degree")
    axes.set_ylabel("share of vertices with at least this degree")
    axes.set_title(f"{view.num_vertices:,} vertices, {view.num_edges:,} edges")
    return axes


def plot_history(db: Database, *, ax: Axes | None = None) -> Axes:
    """Draws vertices, edges and bytes of each snapshot.

    Examples
    --------
    >>> import anden
    >>> db = anden.from_edges([(1, 2), (1, 3)])
    >>> db.plot_history().get_xlabel()
    'snapshot'
    """
    axes = _axes(ax)
    snapshots = db.snapshots()
    numbers = [snapshot.number for snapshot in snapshots]
    axes.plot(numbers, [snapshot.vertices for snapshot in snapshots], marker="o", label="vertices")
    axes.plot(numbers, [snapshot.edges for snapshot in snapshots], marker="o", label="edges")
    bytes_axes = axes.twinx()
    bytes_axes.bar(numbers, [snapshot.bytes for snapshot in snapshots], alpha=0.2, color="gray", label="bytes")
    bytes_axes.set_ylabel("bytes of the snapshot (bars)")
    axes.set_xticks(numbers, [snapshot.name or str(snapshot.number) for snapshot in snapshots])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("snapshot")
    axes.legend(loc="lower right")
    return axes


def plot(
    view: View,
    vertices: Any = None,
    *,
    hops: int = 1,
    color: Any = None,
    size: Any = None,
    labels: bool | None = None,
    limit: int = MAX_VERTICES,
    seed: int = 1,
    ax: Axes | None = None,
) -> Axes:
    """Draws the neighborhood of some vertices.

    Parameters
    ----------
    vertices : key or keys, optional
        The center of the picture; the whole graph by default.
    hops : int
        How many steps around `vertices` are shown.
    color, size : array, result, dict or str, optional
        Values by vertex id, values by key, or the name of a vertex property.
    labels : bool, optional
        Whether to write the keys; by default in small pictures.
    limit : int
        The most vertices, up to 10,000. A larger neighborhood is shown as a sample, and the title says so.
    seed : int
        Equal seeds give equal pictures.

    Examples
    --------
    >>> import anden
    >>> g = anden.from_edges([("ann", "ben"), ("ben", "cleo")], ids="string").view()
    >>> g.plot("ann", hops=2, color=g.pagerank()).get_title()
    '3 vertices, 2 edges'
    """
    shown = neighborhood(view, vertices, hops=hops, limit=limit, seed=seed)
    axes = _axes(ax)
    points = layout(len(shown.keys), shown.edges, seed=seed)
    _draw_edges(axes, points, shown)
    colors = _color_numbers(values_of(view, shown.keys, color, "color")) if color is not None else None
    areas = _areas(values_of(view, shown.keys, size, "size")) if size is not None else 40.0
    scale = None if colors is None else "viridis"
    axes.scatter(points[:, 0], points[:, 1], s=areas, c=colors, cmap=scale, zorder=2)
    if labels or (labels is None and len(shown.keys) <= MAX_LABELS):
        for key, (x, y) in zip(shown.keys, points, strict=True):
            axes.annotate(str(key), (x, y), xytext=(3, 3), textcoords="offset points", fontsize=8)
    axes.set_title(shown.title)
    axes.set_axis_off()
    return axes


def _draw_edges(axes: Axes, points: Points, shown: Neighborhood) -> None:
    from matplotlib.collections import LineCollection

    width = 0.8 if len(shown.edges) < 1_000 else 0.2
    axes.add_collection(LineCollection(list(points[shown.edges]), colors="lightgray", linewidths=width, zorder=1))


def _color_numbers(values: list[Any]) -> list[float]:
    """Numbers as they are; other values numbered in their order."""
    if all(isinstance(value, (int, float)) for value in values):
        return values
    names = {name: number for number, name in enumerate(sorted(set(map(str, values))))}
    return [names[str(value)] for value in values]


def _areas(values: list[Any]) -> Points:
    sizes = np.array([0 if value is None else value for value in values], dtype=np.float64)
    sizes[~np.isfinite(sizes)] = 0
    span = float(np.ptp(sizes)) if len(sizes) else 0.0
    return 20 + 280 * (sizes - sizes.min()) / span if span > 0 else np.full(len(sizes), 40.0)


def layout(num_vertices: int, edges: NDArray[np.int64], *, seed: int = 1) -> Points:
    """Positions by igraph if it is installed, else by a force layout of our own."""
    try:
        import igraph
    except ImportError:
        return force_layout(num_vertices, edges, seed=seed)
    if num_vertices == 0:
        return np.empty((0, 2))
    start = np.random.default_rng(operator.index(seed)).random((num_vertices, 2)).tolist()
    graph = igraph.Graph(n=num_vertices, edges=edges.tolist())
    return np.array(graph.layout_fruchterman_reingold(seed=start, grid="auto").coords).reshape(-1, 2)


def force_layout(num_vertices: int, edges: NDArray[np.int64], *, seed: int = 1) -> Points:
    """The layout of T. Fruchterman and E. Reingold, Graph Drawing by Force-directed Placement, 1991."""
    generator = np.random.default_rng(operator.index(seed))
    points = generator.random((num_vertices, 2))
    if num_vertices < 2:
        return points
    ideal = 1 / np.sqrt(num_vertices)
    for step in np.linspace(0.1, 0.002, ROUNDS):
        moves = _repulsion(points, ideal, generator)
        sources, targets = edges[:, 0], edges[:, 1]
        pull = points[targets] - points[sources]
        pull *= np.linalg.norm(pull, axis=1, keepdims=True) / ideal
        np.add.at(moves, sources, pull)
        np.add.at(moves, targets, -pull)
        lengths = np.maximum(np.linalg.norm(moves, axis=1, keepdims=True), 1e-9)
        points += moves / lengths * np.minimum(lengths, step)
    return points


def _repulsion(points: Points, ideal: float, generator: np.random.Generator) -> Points:
    num_vertices = len(points)
    is_exact = num_vertices <= MAX_EXACT_LAYOUT
    others = points if is_exact else points[generator.choice(num_vertices, MAX_EXACT_LAYOUT // 5, replace=False)]
    difference = points[:, None, :] - others[None, :, :]
    squares = np.maximum((difference**2).sum(axis=2), 1e-6)
    return (difference * (ideal**2 / squares)[:, :, None]).sum(axis=1) * (num_vertices / len(others))


def plot_result(result: Result, *, ax: Axes | None = None) -> Axes:
    """Draws a result: the distribution of its values, or the sizes of its groups.

    Examples
    --------
    >>> import anden
    >>> g = anden.from_edges([(1, 2), (3, 4)]).view()
    >>> g.wcc(details=True).plot().get_ylabel()
    'vertices in the group'
    """
    axes = _axes(ax)
    values = np.asarray(result.values)
    if result.kernel in GROUPING:
        sizes = np.sort(np.unique(values, return_counts=True)[1])[::-1]
        axes.plot(np.arange(1, len(sizes) + 1), sizes, marker=".", linewidth=1)
        axes.set_xscale("log")
        axes.set_xlabel("group, the largest first")
        axes.set_ylabel("vertices in the group")
    else:
        reached = values[np.isfinite(values) if values.dtype.kind == "f" else values != np.iinfo(values.dtype).max]
        # Scores often span several orders of magnitude.
        is_wide = len(reached) > 0 and values.dtype.kind == "f" and 0 < 100 * reached.min() < reached.max()
        axes.hist(reached, bins=np.geomspace(reached.min(), reached.max(), 50).tolist() if is_wide else 50)
        axes.set_xscale("log" if is_wide else "linear")
        axes.set_xlabel(result.name)
        axes.set_ylabel("vertices")
    axes.set_yscale("log")
    axes.set_title(f"{result.kernel}: {len(values):,} vertices")
    return axes
