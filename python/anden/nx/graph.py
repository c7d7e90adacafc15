"""The graph of the backend: nodes of NetworkX, numbered in their order, over a view of Anden.

The arcs are held twice: in the order of NetworkX, for results whose order depends on it, and in a view in memory, on
which the kernels run. The view is made at the first kernel.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import anden

Node: TypeAlias = Hashable
Ints: TypeAlias = NDArray[np.int64]

#: The hop count of a vertex that the kernel did not reach.
UNREACHED = int(np.iinfo(np.uint32).max)
#: Sums of larger integer weights may exceed 64 bits.
LARGEST_WEIGHT = 1 << 31
#: A frontier with fewer nodes is cheaper to expand in Python than in NumPy.
SMALL_FRONTIER = 16


class Arcs:
    """Adjacency lists as arrays: the arcs of vertex `v` are `targets[offsets[v]:offsets[v + 1]]`."""

    def __init__(self, offsets: Ints, targets: Ints) -> None:
        self.offsets = offsets
        self.targets = targets

    @cached_property
    def sources(self) -> Ints:
        """The source of each arc."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def reversed(self) -> Arcs:
        """The arcs by target, in the order of the sources."""
        order = np.argsort(self.targets, kind="stable")
        counts = np.bincount(self.targets, minlength=len(self.offsets) - 1)
        return Arcs(np.concatenate(([0], np.cumsum(counts))), self.sources[order])

    def levels(self, sources: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
        """A breadth-first search in the order of the lists: the vertices of each level, and their parents.

        The first level is `sources`. NetworkX finds the vertices in the same order.
        """
        seen = bytearray(len(self.offsets) - 1)
        seen_array = np.frombuffer(seen, dtype=np.uint8)
        for source in sources:
            seen[source] = 1
        level, parents = list(sources), list(sources)
        while level:
            yield level, parents
            if len(level) < SMALL_FRONTIER:
                level, parents = self._expand_singly(level, seen)
            else:
                level, parents = self._expand(np.array(level), seen_array)

    def _expand_singly(self, level: list[int], seen: bytearray) -> tuple[list[int], list[int]]:
        found, parents = [], []
        # Slices of memoryviews cost less than those of arrays.
        offsets, targets = self.offsets.data, self.targets.data
        for vertex in level:
            for target in targets[offsets[vertex] : offsets[vertex + 1]].tolist():
                if not seen[target]:
                    seen[target] = 1
                    found.append(target)
                    parents.append(vertex)
        return found, parents

    def _expand(self, level: Ints, seen: NDArray[np.uint8]) -> tuple[list[int], list[int]]:
        starts = self.offsets[level]
        counts = self.offsets[level + 1] - starts
        # Positions of the lists of the level, one after the other.
        skipped = starts - (np.cumsum(counts) - counts)
        positions = np.repeat(skipped, counts) + np.arange(int(counts.sum()))
        targets, parents = self.targets[positions], np.repeat(level, counts)
        is_new = seen[targets] == 0
        targets, parents = targets[is_new], parents[is_new]
        # The first occurrence wins: of repeated indices, NumPy keeps the last assignment.
        ranks = np.arange(len(targets))
        first = np.empty(len(self.offsets) - 1, dtype=np.int64)
        first[targets[::-1]] = ranks[::-1]
        is_first = first[targets] == ranks
        targets, parents = targets[is_first], parents[is_first]
        seen[targets] = 1
        return targets.tolist(), parents.tolist()


class Graph:
    """A graph that NetworkX's functions accept in place of one of their own, without a conversion.

    Examples
    --------
    >>> import anden, networkx
    >>> from anden.nx import Graph
    >>> view = anden.from_edges([("a", "b"), ("b", "c")], ids="string").view()
    >>> networkx.has_path(Graph.of_view(view), "a", "c")
    True
    """

    __networkx_backend__ = "anden"

    def __init__(
        self,
        nodes: list[Node],
        arcs: Arcs,
        *,
        is_directed: bool,
        weights: NDArray[Any] | None = None,
        degrees: Ints | None = None,
        original: nx.Graph[Any] | None = None,
    ) -> None:
        self.nodes = nodes
        self.arcs = arcs
        self.weights = weights
        self._is_directed = is_directed
        #: The number of edges in each adjacency list; in a multigraph, more than neighbors.
        self._list_lengths = np.diff(arcs.offsets) if degrees is None else degrees
        self._original = original
        self._source_view: anden.View | None = None

    @classmethod
    def of_networkx(cls, graph: nx.Graph[Any], weight: tuple[str, Any] | None = None) -> Graph:
        """Converts a graph of NetworkX; `weight` is an edge attribute and its default."""
        nodes = list(graph)
        # The length of a filtered list may count neighbors that it does not show, so it becomes a dictionary.
        lists = [
            neighbors if type(neighbors) is dict else {node: neighbors[node] for node in neighbors}
            for _, neighbors in graph.adjacency()
        ]
        counts = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        offsets = np.concatenate(([0], np.cumsum(counts)))
        flat: Iterable[Any] = chain.from_iterable(lists)
        if nodes != list(range(len(nodes))):
            index = {node: place for place, node in enumerate(nodes)}
            flat = map(index.__getitem__, flat)
        targets = np.fromiter(flat, dtype=np.int64, count=int(offsets[-1]))
        degrees = None
        if graph.is_multigraph():
            per_list = (sum(map(len, neighbors.values())) for neighbors in lists)
            degrees = np.fromiter(per_list, dtype=np.int64, count=len(lists))
        weights = None if weight is None else _weights(graph, lists, weight)
        is_directed = graph.is_directed()
        arcs = Arcs(offsets, targets)
        return cls(nodes, arcs, is_directed=is_directed, weights=weights, degrees=degrees, original=graph)

    @classmethod
    def of_view(cls, view: anden.View) -> Graph:
        """Wraps a view. NetworkX's functions see its keys as nodes."""
        if view.num_vertices != view.vertex_bound:
            raise anden.InvalidInput("vertices were removed or filtered out; use view.to_networkx() instead")
        offsets, targets, *weights = view.csr()
        arcs = Arcs(np.asarray(offsets, dtype=np.int64), np.asarray(targets, dtype=np.int64))
        kept = np.asarray(weights[0]) if weights else None
        graph = cls(list(view.keys().tolist()), arcs, is_directed=view.directed, weights=kept)
        graph._source_view = view
        return graph

    def to_networkx(self) -> nx.Graph[Any]:
        """The graph as one of NetworkX; without a copy if it came from there."""
        if self._original is not None:
            return self._original
        assert self._source_view is not None
        return self._source_view.to_networkx()

    # What NetworkX's functions without dispatch ask of a graph.

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self._is_directed

    def is_multigraph(self) -> bool:
        """Whether a pair of nodes may have several edges."""
        return self._original is not None and self._original.is_multigraph()

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        try:
            return node in self._index
        except TypeError:
            return False

    def __repr__(self) -> str:
        return f"anden.nx.Graph({len(self)} nodes, {self.number_of_edges()} edges)"

    def number_of_nodes(self) -> int:
        """The number of nodes."""
        return len(self.nodes)

    order = number_of_nodes

    def number_of_edges(self) -> int:
        """The number of edges."""
        total = int(self._list_lengths.sum())
        return total if self._is_directed else (total + self._num_loop_edges) // 2

    def degree(self, nbunch: Any = None, weight: str | None = None) -> Any:
        """The degree of a node, or pairs of nodes and degrees."""
        if weight is not None:
            return self.to_networkx().degree(nbunch, weight)
        if nbunch in self:
            return int(self.degrees[self.place(nbunch)])
        pairs = zip(self.nodes, self.degrees.tolist(), strict=True)
        if nbunch is None:
            return list(pairs)
        wanted = set(nbunch)
        return [(node, degree) for node, degree in pairs if node in wanted]

    @cached_property
    def _index(self) -> dict[Node, int]:
        return {node: place for place, node in enumerate(self.nodes)}

    def place(self, node: Node) -> int:
        """The number of a node."""
        return self._index[node]

    def names(self, places: Iterable[int]) -> list[Node]:
        """The nodes with these numbers."""
        return list(map(self.nodes.__getitem__, places))

    def by_node(self, values: NDArray[Any]) -> dict[Node, Any]:
        """A dictionary from nodes to values, in the order of the nodes."""
        return dict(zip(self.nodes, values.tolist(), strict=True))

    def nbunch_iter(self, nbunch: Any = None) -> Iterable[Node]:
        """The nodes that `nbunch` names, by NetworkX's rules."""
        if nbunch is None:
            return iter(self.nodes)
        if nbunch in self:
            return iter([nbunch])
        try:
            iterator = iter(nbunch)
        except TypeError as error:
            raise nx.NetworkXError("nbunch is not a node or a sequence of nodes.") from error
        return self._known(iterator)

    def _known(self, nbunch: Iterator[Any]) -> Iterator[Node]:
        for node in nbunch:
            try:
                is_known = node in self._index
            except TypeError as error:
                raise nx.NetworkXError(f"Node {node} in sequence nbunch is not a valid node.") from error
            if is_known:
                yield node

    @cached_property
    def loops(self) -> NDArray[np.bool_]:
        """Whether each vertex has an edge to itself."""
        has_loop = np.zeros(len(self), dtype=bool)
        has_loop[self.arcs.targets[self.arcs.sources == self.arcs.targets]] = True
        return has_loop

    @cached_property
    def _num_loop_edges(self) -> int:
        if not self.is_multigraph():
            return int(self.loops.sum())
        assert self._original is not None
        return sum(self._original.number_of_edges(node, node) for node in self.names(np.flatnonzero(self.loops)))

    @property
    def num_loops(self) -> int:
        """The number of edges that join a node to itself."""
        return self._num_loop_edges

    @cached_property
    def out_degrees(self) -> Ints:
        """The number of out-edges of each vertex. A loop counts once, also in an undirected graph."""
        return self._list_lengths

    @cached_property
    def in_degrees(self) -> Ints:
        """The number of in-edges of each vertex of a directed graph."""
        if self.is_multigraph():
            assert self._original is not None
            return np.fromiter((d for _, d in self._original.in_degree()), dtype=np.int64, count=len(self))
        return np.bincount(self.arcs.targets, minlength=len(self))

    @cached_property
    def degrees(self) -> Ints:
        """The degree of each vertex as NetworkX counts it: a loop counts twice."""
        if self._is_directed:
            return self.out_degrees + self.in_degrees
        if self.is_multigraph():
            assert self._original is not None
            return np.fromiter((d for _, d in self._original.degree()), dtype=np.int64, count=len(self))
        return self.out_degrees + self.loops

    # Kernels.

    @cached_property
    def view(self) -> anden.View:
        """The graph as a view in memory. The key of a vertex is its number."""
        return self._view_of(self.arcs.sources, self.arcs.targets)

    @cached_property
    def reverse_view(self) -> anden.View:
        """The graph with all edges turned round."""
        return self._view_of(self.arcs.targets, self.arcs.sources) if self._is_directed else self.view

    @cached_property
    def reverse_arcs(self) -> Arcs:
        """The arcs with all edges turned round."""
        return self.arcs.reversed() if self._is_directed else self.arcs

    def _view_of(self, sources: Ints, targets: Ints) -> anden.View:
        weights = self.weights
        if not self._is_directed:
            # An undirected edge is given once.
            is_given = sources <= targets
            sources, targets = sources[is_given], targets[is_given]
            weights = None if weights is None else weights[is_given]
        db = anden.from_numpy(
            sources.astype(np.uint32),
            targets.astype(np.uint32),
            weights=weights,
            directed=self._is_directed,
            ids="dense",
            num_vertices=len(self),
        )
        return db.view()

    def hops(self, source: int, *, is_reverse: bool = False) -> NDArray[np.uint32]:
        """The number of steps from a vertex to each other; `UNREACHED`: none lead there."""
        return (self.reverse_view if is_reverse else self.view).bfs(source)

    def distances(self, source: int, *, is_reverse: bool = False) -> NDArray[Any]:
        """The least sum of weights from a vertex to each other; the largest or an infinite value: unreached."""
        return (self.reverse_view if is_reverse else self.view).sssp(source)


def _weights(graph: nx.Graph[Any], lists: list[Any], weight: tuple[str, Any]) -> NDArray[Any]:
    """The weight of each arc: of parallel edges, the smallest."""
    name, default = weight
    data = chain.from_iterable(neighbors.values() for neighbors in lists)
    values: list[Any]
    if graph.is_multigraph():
        values = [min(edge.get(name, default) for edge in edges.values()) for edges in data]
    else:
        values = [edge.get(name, default) for edge in data]
    kinds = set(map(type, values))
    if all(issubclass(kind, (int, np.integer)) for kind in kinds):
        if values and max(values) > LARGEST_WEIGHT:
            raise NotImplementedError(f"the weight {max(values)} is too large: at most {LARGEST_WEIGHT}")
        if not values or min(values) >= 0:
            return np.array(values, dtype=np.uint32)
        return np.array(values, dtype=np.int64)
    if all(issubclass(kind, (int, float, np.integer, np.floating)) for kind in kinds):
        return np.array(values, dtype=np.float64)
    raise NotImplementedError(f"the weights must be integers or floating-point numbers, in attribute {name!r}")
