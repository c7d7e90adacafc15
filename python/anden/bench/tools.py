"""How each tool does each task. The vertices of the graph are 0 to n - 1, the edges are undirected and unique.

A method is named like its task and returns the answer as the tool gives it. A second method `as_…` turns the answer
into an array or a number to compare, outside the measured time. A tool without a method does not have the task.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from . import ITERATIONS

#: Rounds of a loop that ends by itself on every connected graph of practical depth.
MAX_ROUNDS = 1_000


class Input:
    """The files of the graph, and the vertices that tasks start from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: `source target` a line.
        self.edges = folder / "edges.txt"
        #: `source target weight` a line.
        self.weighted = folder / "weighted.txt"
        self.sources: list[int] = np.load(folder / "sources.npy").tolist()
        self.num_vertices = int(np.load(folder / "size.npy")[0])

    @property
    def source(self) -> int:
        """The vertex that single-source tasks start from."""
        return self.sources[0]


class Tool:
    """One of the compared libraries."""

    #: The module that must be importable.
    module: ClassVar[str]

    def __init__(self, given: Input) -> None:
        self.given = given
        self.graph: Any = None
        # The time of `load` begins after the import.
        self.peer: Any = importlib.import_module(self.module)

    def task(self, name: str) -> Callable[[], Any] | None:
        """The method for a task; none if the tool lacks it."""
        return getattr(self, name, None)

    def prepare(self, name: str) -> None:
        """Makes the form of the graph that only one task needs, outside the measured time."""
        make = getattr(self, f"prepare_{name}", None)
        if make is not None:
            make()

    def comparable(self, name: str, answer: Any) -> Any:
        """The answer as an array or a number."""
        convert = getattr(self, f"as_{name}", None)
        return answer if convert is None else convert(answer)

    def by_vertex(self, answer: Any) -> np.ndarray:
        """An array from a dictionary by vertex; a missing vertex is unreached."""
        return np.array([answer.get(vertex, np.inf) for vertex in range(self.given.num_vertices)], dtype=np.float64)


class Anden(Tool):
    module = "anden"

    def load(self) -> Any:
        self.db = self.peer.load(self.given.folder / "graph.anden", self.given.edges, undirected=True, ids="dense")
        self.graph = self.db.view()
        return self.graph.num_vertices, self.graph.num_edges

    def pagerank(self) -> Any:
        return self.graph.pagerank(iterations=ITERATIONS)

    def bfs(self) -> Any:
        return self.graph.bfs(self.given.source)

    def as_bfs(self, answer: Any) -> np.ndarray:
        return np.where(answer == np.iinfo(answer.dtype).max, np.inf, answer)

    def components(self) -> Any:
        return self.graph.wcc()

    def as_components(self, answer: Any) -> int:
        return len(np.unique(answer))

    def prepare_sssp(self) -> None:
        path = self.given.folder / "weighted.anden"
        self.weighted_db = self.peer.load(path, self.given.weighted, undirected=True, ids="dense", weights=True)
        self.weighted = self.weighted_db.view()

    def sssp(self) -> Any:
        return self.weighted.sssp(self.given.source)

    def as_sssp(self, answer: Any) -> np.ndarray:
        largest = np.inf if answer.dtype.kind == "f" else np.iinfo(answer.dtype).max
        return np.where(answer == largest, np.inf, answer.astype(np.float64))

    def triangles(self) -> Any:
        return self.graph.triangles()

    def betweenness(self) -> Any:
        return self.graph.bc(self.given.sources)

    def kcore(self) -> Any:
        return self.graph.kcore()


class NetworkX(Tool):
    module = "networkx"

    def load(self) -> Any:
        self.graph = self.peer.read_edgelist(self.given.edges, nodetype=int, data=False)
        return self.graph.number_of_nodes(), self.graph.number_of_edges()

    def pagerank(self) -> Any:
        # NetworkX raises an error after a fixed number of iterations, so its own tolerance ends them.
        return self.peer.pagerank(self.graph)

    as_pagerank = Tool.by_vertex

    def bfs(self) -> Any:
        return self.peer.single_source_shortest_path_length(self.graph, self.given.source)

    as_bfs = Tool.by_vertex

    def components(self) -> Any:
        return self.peer.number_connected_components(self.graph)

    def prepare_sssp(self) -> None:
        data = [("weight", int)]
        self.weighted = self.peer.read_edgelist(self.given.weighted, nodetype=int, data=data)

    def sssp(self) -> Any:
        return self.peer.single_source_dijkstra_path_length(self.weighted, self.given.source)

    as_sssp = Tool.by_vertex

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


class Igraph(Tool):
    module = "igraph"

    def load(self) -> Any:
        self.graph = self.peer.Graph.Read_Edgelist(str(self.given.edges), directed=False)
        return self.graph.vcount(), self.graph.ecount()

    def pagerank(self) -> Any:
        return self.graph.pagerank()

    def bfs(self) -> Any:
        return self.graph.distances(source=[self.given.source])[0]

    def components(self) -> Any:
        return len(self.graph.connected_components())

    def prepare_sssp(self) -> None:
        rows = _read_rows(self.given.weighted, 3)
        self.weighted = self.peer.Graph(n=self.given.num_vertices, edges=rows[:, :2])
        self.weights = rows[:, 2].tolist()

    def sssp(self) -> Any:
        return self.weighted.distances(source=[self.given.source], weights=self.weights)[0]

    def triangles(self) -> Any:
        return len(self.graph.list_triangles())

    def betweenness(self) -> Any:
        return self.graph.betweenness(directed=False, sources=self.given.sources, targets=None)

    def as_betweenness(self, answer: Any) -> np.ndarray:
        return 2 * np.array(answer)

    def kcore(self) -> Any:
        return self.graph.coreness()


class NetworKit(Tool):
    module = "networkit"

    def load(self) -> Any:
        reader = self.peer.graphio.EdgeListReader(" ", 0, "#", True, False)
        self.graph = reader.read(str(self.given.edges))
        return self.graph.numberOfNodes(), self.graph.numberOfEdges()

    def pagerank(self) -> Any:
        ranks = self.peer.centrality.PageRank(self.graph, damp=0.85)
        ranks.maxIterations = ITERATIONS
        return ranks.run().scores()

    def bfs(self) -> Any:
        search = self.peer.distance.BFS(self.graph, self.given.source, storePaths=False)
        return search.run().getDistances()

    as_bfs = staticmethod(lambda answer: _unreached(answer))

    def components(self) -> Any:
        return self.peer.components.ParallelConnectedComponents(self.graph).run().numberOfComponents()

    def prepare_sssp(self) -> None:
        rows = _read_rows(self.given.weighted, 3)
        data = (rows[:, 2].astype(np.float64), (rows[:, 0], rows[:, 1]))
        self.weighted = self.peer.GraphFromCoo(data, n=self.given.num_vertices, weighted=True, directed=False)

    def sssp(self) -> Any:
        search = self.peer.distance.Dijkstra(self.weighted, self.given.source, storePaths=False)
        return search.run().getDistances()

    as_sssp = staticmethod(lambda answer: _unreached(answer))

    def triangles(self) -> Any:
        self.graph.indexEdges()
        return sum(self.peer.sparsification.TriangleEdgeScore(self.graph).run().scores()) // 3

    def kcore(self) -> Any:
        return self.peer.centrality.CoreDecomposition(self.graph).run().scores()


class Rustworkx(Tool):
    module = "rustworkx"

    def load(self) -> Any:
        self.graph = self.peer.PyGraph.read_edge_list(str(self.given.edges))
        return self.graph.num_nodes(), self.graph.num_edges()

    def bfs(self) -> Any:
        return self.peer.dijkstra_shortest_path_lengths(self.graph, self.given.source, lambda _: 1.0)

    def as_bfs(self, answer: Any) -> np.ndarray:
        return self.by_vertex({**dict(answer), self.given.source: 0.0})

    def components(self) -> Any:
        return self.peer.number_connected_components(self.graph)

    def prepare_sssp(self) -> None:
        self.weighted = self.peer.PyGraph()
        self.weighted.add_nodes_from(range(self.given.num_vertices))
        rows = _read_rows(self.given.weighted, 3)
        self.weighted.add_edges_from(list(map(tuple, rows.tolist())))

    def sssp(self) -> Any:
        return self.peer.dijkstra_shortest_path_lengths(self.weighted, self.given.source, float)

    as_sssp = as_bfs

    def kcore(self) -> Any:
        return self.peer.core_number(self.graph)

    def as_kcore(self, answer: Any) -> np.ndarray:
        return self.by_vertex(dict(answer))


class SciPy(Tool):
    module = "scipy.sparse"

    def load(self) -> Any:
        self.graph = self._matrix(_read_rows(self.given.edges, 2))
        return self.graph.shape[0], self.graph.nnz // 2

    def _matrix(self, rows: np.ndarray) -> Any:
        n = self.given.num_vertices
        weights = rows[:, 2].astype(np.float64) if rows.shape[1] == 3 else np.ones(len(rows))
        half = self.peer.coo_array((weights, (rows[:, 0], rows[:, 1])), shape=(n, n))
        return (half + half.T).tocsr()

    def pagerank(self) -> Any:
        return _power_iterations(self.given.num_vertices, self.graph.sum(axis=1), lambda x: self.graph @ x)

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

    def prepare_sssp(self) -> None:
        self.weighted = self._matrix(_read_rows(self.given.weighted, 3))

    def sssp(self) -> Any:
        return self.peer.csgraph.dijkstra(self.weighted, indices=self.given.source)

    def triangles(self) -> Any:
        lower = self.peer.tril(self.graph, k=-1, format="csr")
        return int((lower @ lower).multiply(lower).sum())


class GraphBLAS(Tool):
    module = "graphblas"

    def __init__(self, given: Input) -> None:
        super().__init__(given)
        # The library starts with the first matrix.
        self.peer.Matrix(int, 1, 1)

    def load(self) -> Any:
        self.graph = self._matrix(_read_rows(self.given.edges, 2))
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
            rank = pulled.apply(gb.binary.times, right=0.85).apply(gb.binary.plus, right=0.15 / n).new()
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

    def prepare_sssp(self) -> None:
        self.weighted = self._matrix(_read_rows(self.given.weighted, 3))

    def sssp(self) -> Any:
        gb, n = self.peer, self.given.num_vertices
        distances = gb.Vector.from_coo([self.given.source], [0.0], size=n)
        for _ in range(MAX_ROUNDS):
            before = distances.dup()
            distances(gb.binary.min) << distances.vxm(self.weighted, gb.semiring.min_plus)
            if distances.isequal(before):
                break
        return distances

    def as_sssp(self, answer: Any) -> np.ndarray:
        return answer.to_dense(fill_value=np.inf)

    def triangles(self) -> Any:
        gb = self.peer
        lower = gb.select.tril(self.graph, -1).new()
        counts = lower.mxm(lower.T, gb.semiring.plus_pair).new(mask=lower.S)
        return int(counts.reduce_scalar(gb.monoid.plus).new().value)


class GraphMate(Tool):
    module = "graph_mate"

    def load(self) -> Any:
        self.graph = self._load("Graph", self.given.edges)
        return self.graph.node_count(), self.graph.edge_count()

    def _load(self, kind: str, path: Path) -> Any:
        gm = self.peer
        return getattr(gm, kind).load(str(path), gm.Layout.Sorted, gm.FileFormat.EdgeList)

    def prepare_pagerank(self) -> None:
        # PageRank and components are functions of directed graphs, so each edge leads both ways.
        path = self.given.folder / "arcs.txt"
        with path.open("w") as file:
            for line in self.given.edges.open():
                source, target = line.split()
                file.write(f"{source} {target}\n{target} {source}\n")
        self.directed = self._load("DiGraph", path)

    def pagerank(self) -> Any:
        return self.directed.page_rank(max_iterations=ITERATIONS, tolerance=0.0, damping_factor=0.85)

    def as_pagerank(self, answer: Any) -> np.ndarray:
        return np.asarray(answer.scores())

    prepare_components = prepare_pagerank

    def components(self) -> Any:
        return self.directed.wcc().components()

    def as_components(self, answer: Any) -> int:
        return len(np.unique(np.asarray(answer)))

    def triangles(self) -> Any:
        # The first repetition also orders the lists by degree.
        self.graph.make_degree_ordered()
        return self.graph.global_triangle_count()

    def as_triangles(self, answer: Any) -> int:
        return int(getattr(answer, "triangles", answer))


class GraphTool(Tool):
    """graph-tool, which no package registry of Python serves."""

    module = "graph_tool.all"

    def load(self) -> Any:
        options = {"delimiter": " "}
        read = self.peer.load_graph_from_csv
        self.graph = read(str(self.given.edges), directed=False, hashed=False, csv_options=options)
        return self.graph.num_vertices(), self.graph.num_edges()

    def pagerank(self) -> Any:
        return self.peer.pagerank(self.graph, damping=0.85, epsilon=0, max_iter=ITERATIONS)

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


class DuckDB(Tool):
    module = "duckdb"

    def load(self) -> Any:
        self.graph = self.peer.connect(str(self.given.folder / "graph.duckdb"))
        self.graph.execute("SET enable_progress_bar = false")
        columns = "columns = {'u': 'INTEGER', 'v': 'INTEGER'}, header = false, delim = ' '"
        self.graph.execute(f"CREATE TABLE half AS FROM read_csv('{self.given.edges}', {columns})")
        self.graph.execute("CREATE TABLE e AS SELECT u, v FROM half UNION ALL SELECT v, u FROM half")
        return self._one("SELECT count(DISTINCT u) FROM e"), self._one("SELECT count(*) FROM half")

    def _one(self, query: str) -> Any:
        return self.graph.execute(query).fetchone()[0]

    def pagerank(self) -> Any:
        run, n = self.graph.execute, self.given.num_vertices
        run("CREATE OR REPLACE TABLE d AS SELECT u, count(*) AS degree FROM e GROUP BY u")
        run(f"CREATE OR REPLACE TABLE r AS SELECT u, 1.0::DOUBLE / {n} AS rank FROM d")
        for _ in range(ITERATIONS):
            run(
                f"CREATE OR REPLACE TABLE r AS SELECT e.v AS u, {0.15 / n} + 0.85 * sum(rank / degree) AS rank "
                "FROM e JOIN r ON e.u = r.u JOIN d ON e.u = d.u GROUP BY e.v"
            )
        return self.graph.execute("SELECT u, rank FROM r").fetchnumpy()

    def as_pagerank(self, answer: Any) -> np.ndarray:
        ranks = np.zeros(self.given.num_vertices)
        ranks[answer["u"]] = answer["rank"]
        return ranks

    def bfs(self) -> Any:
        run = self.graph.execute
        run(f"CREATE OR REPLACE TABLE seen AS SELECT {self.given.source} AS v, 0 AS hops")
        for level in range(1, MAX_ROUNDS):
            found = run(
                f"INSERT INTO seen SELECT DISTINCT e.v, {level} FROM e JOIN seen ON e.u = seen.v "
                f"WHERE seen.hops = {level - 1} AND e.v NOT IN (SELECT v FROM seen)"
            ).fetchone()[0]
            if found == 0:
                break
        return run("SELECT v, hops FROM seen").fetchnumpy()

    def as_bfs(self, answer: Any) -> np.ndarray:
        hops = np.full(self.given.num_vertices, np.inf)
        hops[answer["v"]] = answer["hops"]
        return hops

    def components(self) -> Any:
        run = self.graph.execute
        run("CREATE OR REPLACE TABLE c AS SELECT DISTINCT u, u AS label FROM e")
        before = -1
        for _ in range(MAX_ROUNDS):
            run(
                "CREATE OR REPLACE TABLE c AS SELECT c.u, least(c.label, min(other.label)) AS label "
                "FROM c JOIN e ON c.u = e.u JOIN c AS other ON e.v = other.u GROUP BY c.u, c.label"
            )
            total = self._one("SELECT sum(label) FROM c")
            if total == before:
                break
            before = total
        return self._one("SELECT count(DISTINCT label) FROM c")

    def triangles(self) -> Any:
        return self._one(
            "SELECT count(*) FROM e a JOIN e b ON a.v = b.u JOIN e c ON b.v = c.u AND c.v = a.u "
            "WHERE a.u < a.v AND b.u < b.v"
        )


class Polars(Tool):
    module = "polars"

    def load(self) -> Any:
        pl = self.peer
        half = pl.read_csv(self.given.edges, separator=" ", has_header=False, new_columns=["u", "v"])
        self.graph = pl.concat([half, half.select(u="v", v="u")])
        return self.graph["u"].n_unique(), len(half)

    def pagerank(self) -> Any:
        pl, n = self.peer, self.given.num_vertices
        arcs = self.graph.join(self.graph.group_by("u").len("degree"), on="u")
        ranks = arcs.select("u").unique().with_columns(rank=pl.lit(1 / n))
        for _ in range(ITERATIONS):
            shares = arcs.join(ranks, on="u").select(u="v", share=pl.col("rank") / pl.col("degree"))
            ranks = shares.group_by("u").agg(rank=0.15 / n + 0.85 * pl.col("share").sum())
        return ranks

    def as_pagerank(self, answer: Any) -> np.ndarray:
        return answer.sort("u")["rank"].to_numpy()


class Raphtory(Tool):
    module = "raphtory"

    def load(self) -> Any:
        self.graph = self.peer.Graph()
        for source, target in _read_rows(self.given.edges, 2).tolist():
            self.graph.add_edge(0, source, target)
        return self.graph.count_nodes(), self.graph.count_edges()

    def components(self) -> Any:
        return self.peer.algorithms.weakly_connected_components(self.graph)

    def as_components(self, answer: Any) -> int:
        return len({found["component_id"] for found in answer.values()})

    def triangles(self) -> Any:
        count = self.peer.algorithms.local_triangle_count
        return sum(count(self.graph, node) for node in self.graph.nodes.id) // 3


class Ladybug(Tool):
    """The maintained fork of Kùzu."""

    module = "ladybug"

    def load(self) -> Any:
        kuzu = self.peer
        self.graph = kuzu.Connection(kuzu.Database(str(self.given.folder / f"graph.{self.module}")))
        vertices = self.given.folder / f"{self.module}-vertices.csv"
        vertices.write_text("\n".join(map(str, range(self.given.num_vertices))) + "\n")
        self.graph.execute("CREATE NODE TABLE V(id INT64, PRIMARY KEY(id))")
        self.graph.execute("CREATE REL TABLE E(FROM V TO V)")
        self.graph.execute(f"COPY V FROM '{vertices}'")
        self.graph.execute(f"COPY E FROM '{self.given.edges}' (DELIM=' ', HEADER=false, file_format='csv')")
        counts = ("MATCH (v:V) RETURN count(*)", "MATCH ()-[e:E]->() RETURN count(*)")
        return tuple(self.graph.execute(query).get_next()[0] for query in counts)

    def triangles(self) -> Any:
        query = "MATCH (a:V)-[:E]-(b:V)-[:E]-(c:V)-[:E]-(a) WHERE a.id < b.id AND b.id < c.id RETURN count(*)"
        return self.graph.execute(query).get_next()[0]


class Kuzu(Ladybug):
    """Kùzu, whose last release is of October 2025."""

    module = "kuzu"


TOOLS: tuple[type[Tool], ...] = (
    Anden, NetworkX, Igraph, NetworKit, Rustworkx, SciPy, GraphBLAS, GraphMate, GraphTool, Raphtory, DuckDB, Polars,
    Ladybug, Kuzu,
)  # fmt: skip


def _read_rows(path: Path, num_columns: int) -> np.ndarray:
    return np.fromfile(path, dtype=np.int64, sep=" ").reshape(-1, num_columns)


def _unreached(answer: Any) -> np.ndarray:
    distances = np.array(answer)
    return np.where(distances > 1e300, np.inf, distances)


def _power_iterations(n: int, degrees: Any, multiply: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    rank = np.full(n, 1 / n)
    for _ in range(ITERATIONS):
        rank = 0.15 / n + 0.85 * multiply(rank / degrees)
    return rank
