"""How each graph library does each task. The vertices of the graph are 0 to n - 1, the edges undirected and unique."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import DAMPING, ITERATIONS
from .engines import DuckDB, Ladybug, Polars
from .tool import MAX_ROUNDS, Input, Tool


class Anden(Tool):
    name = "anden"
    module = "anden"

    def load(self) -> Any:
        path = self.given.scratch / "graph.anden"
        self.db = self.peer.load(path, self.given.edges, undirected=True, ids="dense")
        self.graph = self.db.view()
        return self.graph.num_vertices, self.graph.num_edges

    def pagerank(self) -> Any:
        return self.graph.pagerank(iterations=ITERATIONS, tolerance=0.0, damping=DAMPING)

    def bfs(self) -> Any:
        return self.graph.bfs(self.given.source)

    def as_bfs(self, answer: Any) -> np.ndarray:
        return np.where(answer == np.iinfo(answer.dtype).max, np.inf, answer)

    def components(self) -> Any:
        return self.graph.wcc()

    def as_components(self, answer: Any) -> int:
        return len(np.unique(answer))

    def triangles(self) -> Any:
        return self.graph.triangles()

    def betweenness(self) -> Any:
        return self.graph.bc(self.given.sources)

    def kcore(self) -> Any:
        return self.graph.kcore()

    def load_weighted(self) -> None:
        self.db.close()
        path = self.given.scratch / "weighted.anden"
        self.db = self.peer.load(path, self.given.weighted, undirected=True, ids="dense", weights=True)
        self.graph = self.db.view()

    def sssp(self) -> Any:
        return self.graph.sssp(self.given.source)

    def as_sssp(self, answer: Any) -> np.ndarray:
        largest = np.inf if answer.dtype.kind == "f" else np.iinfo(answer.dtype).max
        return np.where(answer == largest, np.inf, answer.astype(np.float64))


class NetworkX(Tool):
    name = "networkx"
    module = "networkx"

    def load(self) -> Any:
        self.graph = self.peer.read_edgelist(self.given.edges, nodetype=int, data=False)
        return self.graph.number_of_nodes(), self.graph.number_of_edges()

    def pagerank(self) -> Any:
        return self.peer.pagerank(self.graph, alpha=DAMPING, tol=self.given.tolerance)

    as_pagerank = Tool.by_vertex

    def bfs(self) -> Any:
        return self.peer.single_source_shortest_path_length(self.graph, self.given.source)

    as_bfs = Tool.by_vertex

    def components(self) -> Any:
        return self.peer.number_connected_components(self.graph)

    def triangles(self) -> Any:
        return sum(self.peer.triangles(self.graph).values()) // 3

    def betweenness(self) -> Any:
        sources = self.given.sources
        return self.peer.betweenness_centrality_subset(self.graph, sources, list(self.graph))

    def as_betweenness(self, answer: Any) -> np.ndarray:
        # NetworkX halves the sums of an undirected graph.
        return 2 * self.by_vertex(answer)

    def kcore(self) -> Any:
        return self.peer.core_number(self.graph)

    as_kcore = Tool.by_vertex

    def load_weighted(self) -> None:
        data = [("weight", int)]
        self.graph = self.peer.read_edgelist(self.given.weighted, nodetype=int, data=data)

    def sssp(self) -> Any:
        return self.peer.single_source_dijkstra_path_length(self.graph, self.given.source)

    as_sssp = Tool.by_vertex


class Igraph(Tool):
    name = "igraph"
    module = "igraph"
    note = "igraph has no number of iterations for PageRank: it runs until convergence"

    def load(self) -> Any:
        self.graph = self.peer.Graph.Read_Edgelist(str(self.given.edges), directed=False)
        return self.graph.vcount(), self.graph.ecount()

    def pagerank(self) -> Any:
        return self.graph.pagerank(damping=DAMPING)

    def bfs(self) -> Any:
        return self.graph.distances(source=[self.given.source])[0]

    def components(self) -> Any:
        return len(self.graph.connected_components())

    def triangles(self) -> Any:
        return _closed(self.graph.transitivity_undirected(), self.graph.degree())

    def betweenness(self) -> Any:
        return self.graph.betweenness(directed=False, sources=self.given.sources, targets=None)

    def as_betweenness(self, answer: Any) -> np.ndarray:
        # The sums of an undirected graph are halved.
        return 2 * np.array(answer)

    def kcore(self) -> Any:
        return self.graph.coreness()

    def load_weighted(self) -> None:
        rows = self.given.weighted_rows()
        self.graph = self.peer.Graph(n=self.given.num_vertices, edges=rows[:, :2])
        self.weights = rows[:, 2].tolist()

    def sssp(self) -> Any:
        return self.graph.distances(source=[self.given.source], weights=self.weights)[0]


class NetworKit(Tool):
    name = "networkit"
    module = "networkit"

    def load(self) -> Any:
        reader = self.peer.graphio.EdgeListReader(" ", 0, "#", True, False)
        self.graph = reader.read(str(self.given.edges))
        # Triangles need numbered edges.
        self.graph.indexEdges()
        return self.graph.numberOfNodes(), self.graph.numberOfEdges()

    def pagerank(self) -> Any:
        ranks = self.peer.centrality.PageRank(self.graph, damp=DAMPING, tol=0.0)
        ranks.maxIterations = ITERATIONS
        return ranks.run().scores()

    def bfs(self) -> Any:
        search = self.peer.distance.BFS(self.graph, self.given.source, storePaths=False)
        return search.run().getDistances()

    def components(self) -> Any:
        return self.peer.components.ParallelConnectedComponents(self.graph).run().numberOfComponents()

    def triangles(self) -> Any:
        return int(sum(self.peer.sparsification.TriangleEdgeScore(self.graph).run().scores())) // 3

    def kcore(self) -> Any:
        return self.peer.centrality.CoreDecomposition(self.graph).run().scores()

    def load_weighted(self) -> None:
        rows = self.given.weighted_rows()
        data = (rows[:, 2].astype(np.float64), (rows[:, 0], rows[:, 1]))
        self.graph = self.peer.GraphFromCoo(data, n=self.given.num_vertices, weighted=True, directed=False)

    def sssp(self) -> Any:
        search = self.peer.distance.Dijkstra(self.graph, self.given.source, storePaths=False)
        return search.run().getDistances()

    def as_bfs(self, answer: Any) -> np.ndarray:
        # The largest number stands for an unreached vertex.
        distances = np.array(answer)
        return np.where(distances > 1e300, np.inf, distances)

    as_sssp = as_bfs


class Rustworkx(Tool):
    name = "rustworkx"
    module = "rustworkx"

    def load(self) -> Any:
        self.graph = self.peer.PyGraph.read_edge_list(str(self.given.edges))
        # PageRank is a function of directed graphs.
        self.directed = self.graph.to_directed()
        return self.graph.num_nodes(), self.graph.num_edges()

    def pagerank(self) -> Any:
        return self.peer.pagerank(self.directed, alpha=DAMPING, tol=self.given.tolerance)

    def bfs(self) -> Any:
        return self.peer.bfs_layers(self.graph, [self.given.source])

    def as_bfs(self, answer: Any) -> np.ndarray:
        layers = [(vertex, hops) for hops, layer in enumerate(answer) for vertex in layer]
        return self.spread(*zip(*layers, strict=True))

    def components(self) -> Any:
        return self.peer.number_connected_components(self.graph)

    def triangles(self) -> Any:
        degrees = [self.graph.degree(vertex) for vertex in self.graph.node_indices()]
        return _closed(self.peer.transitivity(self.graph), degrees)

    def kcore(self) -> Any:
        return self.peer.core_number(self.graph)

    def load_weighted(self) -> None:
        self.directed = None
        self.graph = self.peer.PyGraph()
        self.graph.add_nodes_from(range(self.given.num_vertices))
        self.graph.add_edges_from(list(map(tuple, self.given.weighted_rows().tolist())))

    def sssp(self) -> Any:
        return self.peer.dijkstra_shortest_path_lengths(self.graph, self.given.source, float)

    def as_pagerank(self, answer: Any) -> np.ndarray:
        return self.by_vertex(dict(answer))

    as_kcore = as_pagerank

    def as_sssp(self, answer: Any) -> np.ndarray:
        return self.by_vertex({**dict(answer), self.given.source: 0.0})


class SciPy(Tool):
    name = "scipy"
    module = "scipy.sparse"

    def load(self) -> Any:
        self.graph = self._matrix(self.given.rows())
        return self.graph.shape[0], self.graph.nnz // 2

    def _matrix(self, rows: np.ndarray) -> Any:
        n = self.given.num_vertices
        weights = rows[:, 2].astype(np.float64) if rows.shape[1] == 3 else np.ones(len(rows))
        half = self.peer.coo_array((weights, (rows[:, 0], rows[:, 1])), shape=(n, n))
        return (half + half.T).tocsr()

    def pagerank(self) -> Any:
        n, degrees = self.given.num_vertices, self.graph.sum(axis=1)
        rank = np.full(n, 1 / n)
        for _ in range(ITERATIONS):
            rank = (1 - DAMPING) / n + DAMPING * (self.graph @ (rank / degrees))
        return rank

    def bfs(self) -> Any:
        return self.peer.csgraph.breadth_first_order(self.graph, self.given.source, directed=True)

    def as_bfs(self, answer: Any) -> np.ndarray:
        order, predecessors = answer
        hops = np.full(self.given.num_vertices, np.inf)
        hops[self.given.source] = 0
        for vertex in order[1:].tolist():
            hops[vertex] = hops[predecessors[vertex]] + 1
        return hops

    def components(self) -> Any:
        return self.peer.csgraph.connected_components(self.graph, directed=False)[0]

    def triangles(self) -> Any:
        # Edges lead from the smaller degree to the larger one, which keeps the product small.
        order = np.argsort(self.graph.sum(axis=1))
        up = self.peer.triu(self.graph[order][:, order], k=1, format="csr")
        return int((up.T.tocsr() @ up).multiply(up).sum())

    def load_weighted(self) -> None:
        self.graph = self._matrix(self.given.weighted_rows())

    def sssp(self) -> Any:
        return self.peer.csgraph.dijkstra(self.graph, indices=self.given.source)


class GraphBLAS(Tool):
    name = "python-graphblas"
    module = "graphblas"

    def __init__(self, given: Input) -> None:
        super().__init__(given)
        # The library starts with the first matrix.
        self.peer.Matrix(int, 1, 1)

    def load(self) -> Any:
        self.graph = self._matrix(self.given.rows())
        return self.graph.nrows, self.graph.nvals // 2

    def _matrix(self, rows: np.ndarray) -> Any:
        n = self.given.num_vertices
        sources, targets = np.concatenate((rows[:, 0], rows[:, 1])), np.concatenate((rows[:, 1], rows[:, 0]))
        values = np.tile(rows[:, 2].astype(np.float64), 2) if rows.shape[1] == 3 else 1.0
        return self.peer.Matrix.from_coo(sources, targets, values, nrows=n, ncols=n)

    def pagerank(self) -> Any:
        gb = self.peer
        degrees = self.graph.reduce_rowwise(gb.monoid.plus).new()
        n = self.given.num_vertices
        rank = gb.Vector.from_scalar(1 / n, n)
        for _ in range(ITERATIONS):
            share = rank.ewise_mult(degrees, gb.binary.truediv).new()
            pulled = self.graph.mxv(share, gb.semiring.plus_second).new()
            rank = pulled.apply(gb.binary.times, right=DAMPING).apply(gb.binary.plus, right=(1 - DAMPING) / n).new()
        return rank

    def as_pagerank(self, answer: Any) -> np.ndarray:
        return answer.to_dense(fill_value=0.0)

    def bfs(self) -> Any:
        gb, n = self.peer, self.given.num_vertices
        hops = gb.Vector(int, n)
        frontier = gb.Vector.from_coo([self.given.source], [True], size=n)
        for level in range(MAX_ROUNDS):
            hops(frontier.S) << level
            frontier(~hops.S, replace=True) << frontier.vxm(self.graph, gb.semiring.any_pair)
            if frontier.nvals == 0:
                break
        return hops

    def as_bfs(self, answer: Any) -> np.ndarray:
        return answer.dup(dtype=float).to_dense(fill_value=np.inf)

    def triangles(self) -> Any:
        gb = self.peer
        lower = gb.select.tril(self.graph, -1).new()
        counts = lower.mxm(lower.T, gb.semiring.plus_pair).new(mask=lower.S)
        return int(counts.reduce_scalar(gb.monoid.plus).new().value)

    def load_weighted(self) -> None:
        self.graph = self._matrix(self.given.weighted_rows())

    def sssp(self) -> Any:
        gb, n = self.peer, self.given.num_vertices
        distances = gb.Vector.from_coo([self.given.source], [0.0], size=n)
        for _ in range(MAX_ROUNDS):
            before = distances.dup()
            distances(gb.binary.min) << distances.vxm(self.graph, gb.semiring.min_plus)
            if distances.isequal(before):
                break
        return distances

    def as_sssp(self, answer: Any) -> np.ndarray:
        return answer.to_dense(fill_value=np.inf)


class GraphMate(Tool):
    name = "graph-mate"
    module = "graph_mate"

    def load(self) -> Any:
        gm = self.peer
        self.graph = gm.Graph.load(str(self.given.edges), gm.Layout.Sorted, gm.FileFormat.EdgeList)
        counts = self.graph.node_count(), self.graph.edge_count()
        # Triangles need lists in the order of degrees.
        self.graph.make_degree_ordered()
        # PageRank and components are functions of directed graphs, so each edge leads both ways.
        rows = self.given.rows().astype(np.uint32)
        self.directed = gm.DiGraph.from_numpy(np.concatenate((rows, rows[:, ::-1])), gm.Layout.Sorted)
        return counts

    def pagerank(self) -> Any:
        return self.directed.page_rank(max_iterations=ITERATIONS, tolerance=0.0, damping_factor=DAMPING)

    def as_pagerank(self, answer: Any) -> np.ndarray:
        return np.asarray(answer.scores())

    def components(self) -> Any:
        return self.directed.wcc().components()

    def as_components(self, answer: Any) -> int:
        return len(np.unique(np.asarray(answer)))

    def triangles(self) -> Any:
        return self.graph.global_triangle_count()

    def as_triangles(self, answer: Any) -> int:
        return int(getattr(answer, "triangles", answer))


class GraphTool(Tool):
    """graph-tool, which no package registry of Python serves."""

    name = "graph-tool"
    module = "graph_tool.all"

    def load(self) -> Any:
        options = {"delimiter": " "}
        read = self.peer.load_graph_from_csv
        self.graph = read(str(self.given.edges), directed=False, hashed=False, csv_options=options)
        return self.graph.num_vertices(), self.graph.num_edges()

    def pagerank(self) -> Any:
        return self.peer.pagerank(self.graph, damping=DAMPING, epsilon=0, max_iter=ITERATIONS)

    def as_pagerank(self, answer: Any) -> np.ndarray:
        return np.asarray(answer.a)

    as_kcore = as_pagerank

    def bfs(self) -> Any:
        return self.peer.shortest_distance(self.graph, source=self.graph.vertex(self.given.source))

    def as_bfs(self, answer: Any) -> np.ndarray:
        hops = np.asarray(answer.a)
        return np.where(hops == np.iinfo(hops.dtype).max, np.inf, hops)

    def components(self) -> Any:
        return len(self.peer.label_components(self.graph)[1])

    def triangles(self) -> Any:
        return int(self.peer.global_clustering(self.graph, ret_counts=True)[2])

    def betweenness(self) -> Any:
        return self.peer.betweenness(self.graph, pivots=self.given.sources, norm=False)[0]

    def as_betweenness(self, answer: Any) -> np.ndarray:
        # The sums of an undirected graph are halved.
        return 2 * np.asarray(answer.a)

    def kcore(self) -> Any:
        return self.peer.kcore_decomposition(self.graph)


class Raphtory(Tool):
    name = "raphtory"
    module = "raphtory"
    note = "Raphtory's BFS and SSSP also return the path to each vertex"

    def load(self) -> Any:
        self._load_arcs(self.given.rows())
        return self.graph.count_nodes(), self.graph.count_edges() // 2

    def _load_arcs(self, rows: np.ndarray) -> None:
        # Its edges have a direction, and its PageRank follows it. So each edge leads both ways.
        import pyarrow

        names = ["u", "v", "weight"][: rows.shape[1]]
        columns = dict(zip(names, rows.T, strict=True)) | {"time": np.zeros(len(rows), dtype=np.int64)}
        table = pyarrow.table({name: np.ascontiguousarray(column) for name, column in columns.items()})
        self.graph = self.peer.Graph()
        for source, target in (("u", "v"), ("v", "u")):
            self.graph.load_edges(table, "time", source, target, properties=names[2:])

    def pagerank(self) -> Any:
        pagerank = self.peer.algorithms.pagerank
        return pagerank(self.graph, ITERATIONS, max_diff=0.0, use_l2_norm=False, damping_factor=DAMPING)

    def as_pagerank(self, answer: Any) -> np.ndarray:
        return self._column(answer, "pagerank_score")

    def _column(self, answer: Any, name: str) -> np.ndarray:
        # Its dictionaries cannot hold paths of ids of different sizes.
        import pyarrow.compute
        import pyarrow.parquet

        path = self.given.scratch / "answer.parquet"
        answer.to_parquet(str(path), "id")
        table = pyarrow.parquet.read_table(path)
        column = table[name]
        values = pyarrow.compute.list_value_length(column) if name == "path" else column
        return self.spread(table["id"].to_numpy().astype(np.int64), values.to_numpy())

    def bfs(self) -> Any:
        return self.peer.algorithms.single_source_shortest_path(self.graph, self.given.source)

    def as_bfs(self, answer: Any) -> np.ndarray:
        return self._column(answer, "path") - 1

    def components(self) -> Any:
        return self.peer.algorithms.weakly_connected_components(self.graph)

    def as_components(self, answer: Any) -> int:
        return len(np.unique(self._column(answer, "component_id")))

    def triangles(self) -> Any:
        found = self.peer.algorithms
        return round(found.global_clustering_coefficient(self.graph) * found.triplet_count(self.graph) / 3)

    def load_weighted(self) -> None:
        self._load_arcs(self.given.weighted_rows())

    def sssp(self) -> Any:
        targets = list(range(self.given.num_vertices))
        return self.peer.algorithms.dijkstra_single_source_shortest_paths(self.graph, self.given.source, targets)

    def as_sssp(self, answer: Any) -> np.ndarray:
        return self._column(answer, "distance")


#: Anden is the first, which the others are compared with.
TOOLS: tuple[type[Tool], ...] = (
    Anden, NetworkX, Igraph, NetworKit, Rustworkx, SciPy, GraphBLAS, GraphMate, GraphTool, Raphtory, DuckDB, Polars,
    Ladybug,
)  # fmt: skip


def _closed(transitivity: float, degrees: list[int]) -> int:
    """The number of triangles, from the share of paths of two edges that a third edge closes."""
    array = np.array(degrees, dtype=np.int64)
    return round(transitivity * int((array * (array - 1) // 2).sum()) / 3)
