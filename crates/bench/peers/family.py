"""Kernels of Python libraries, for `anden-bench family`.

`list` prints one JSON object: for each library its kernels, or the reason why it cannot be imported.
`serve LIBRARY SG WSG UNDIRECTED_SG THREADS` answers one line of JSON for each line of standard input.
A question has "kernel", "source" and "trials". An answer has "seconds", a list with one entry for each trial, and
"answer", the figures that must agree with those of the other sides, or "error".
The graphs are serialized graphs of GAP. A form of the graph is made before the clock starts.
"""

import functools
import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

ITERATIONS, DAMPING, TOP = 10, 0.85, 5
Answer = dict[str, Any]
Run = Callable[[], Any]
# Prepares a kernel: returns what is timed, and what makes the comparable figures of its result.
Kernel = Callable[["Graphs", int], tuple[Run, Callable[[Any], Answer]]]


class Graphs:
    """The graphs of one question, as compressed rows. Each is read once."""

    def __init__(self, plain: str, weighted: str, undirected: str, threads: int) -> None:
        self.paths = {"plain": plain, "weighted": weighted, "undirected": undirected}
        self.threads = threads
        self.forms: dict[str, Any] = {}

    def rows(self, which: str) -> tuple[bool, Any, Any, Any]:
        """Whether edges are directed, and offsets, targets and weights of the out-lists."""
        return self.form("rows of " + which, lambda: self.read(which))

    def read(self, which: str) -> tuple[bool, Any, Any, Any]:
        import numpy as np

        weighted = which == "weighted"
        with open(self.paths[which], "rb") as file:
            directed = file.read(1) == b"\1"
            arcs, vertices = np.fromfile(file, "<i8", 2)
            offsets = np.fromfile(file, "<i8", vertices + 1)
            values = np.fromfile(file, "<i4", arcs * (2 if weighted else 1))
        targets, weights = (values[::2].copy(), values[1::2].copy()) if weighted else (values, None)
        return directed, offsets, targets, weights

    def num_vertices(self) -> int:
        return len(self.rows("plain")[1]) - 1

    def pairs(self, which: str, each_once: bool) -> tuple[Any, Any, Any]:
        """Sources, targets and weights of all arcs; with `each_once`, one arc for each undirected edge."""
        import numpy as np

        directed, offsets, targets, weights = self.rows(which)
        sources = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
        if directed or not each_once:
            return sources, targets, weights
        kept = sources <= targets
        return sources[kept], targets[kept], None if weights is None else weights[kept]

    def form(self, name: str, make: Callable[[], Any]) -> Any:
        """The form of a graph that a library reads, made at the first request."""
        if name not in self.forms:
            self.forms[name] = make()
        return self.forms[name]


def top(scores: Any, by_largest: bool = False) -> Answer:
    """The largest scores, as shares of the largest one if that is all that sides agree on."""
    import numpy as np

    scores = np.asarray(scores, dtype=float)
    largest = np.sort(np.partition(scores, -min(TOP, len(scores)))[-TOP:])[::-1]
    if by_largest:
        return {} if largest[0] == 0 else {"top": (largest / largest[0]).tolist()}
    return {"top": largest.tolist()}


def hops(distances: Any) -> Answer:
    """Figures of a search by hops; distances beyond the number of vertices mark what is not reached."""
    reached = reached_of(distances)
    return {"reached": len(reached), "depth": int(reached.max())}


def lengths(distances: Any) -> Answer:
    """Figures of a search by weights."""
    reached = reached_of(distances, 1e18)
    return {"reached": len(reached), "farthest": int(reached.max()), "sum": int(reached.sum())}


def reached_of(distances: Any, bound: float | None = None) -> Any:
    import numpy as np

    distances = np.asarray(distances, dtype=float).ravel()
    return distances[(distances >= 0) & (distances < (len(distances) if bound is None else bound))]


# NetworKit


def nk_graph(graphs: Graphs, which: str = "plain") -> Any:
    import networkit as nk

    def make() -> Any:
        nk.setNumberOfThreads(graphs.threads)
        sources, targets, weights = graphs.pairs(which, each_once=True)
        sources, targets = sources.astype("u8"), targets.astype("u8")
        directed, weighted = graphs.rows(which)[0], weights is not None
        data = (weights.astype(float), (sources, targets)) if weighted else (sources, targets)
        return nk.GraphFromCoo(data, n=graphs.num_vertices(), weighted=weighted, directed=directed)

    return graphs.form(which, make)


def nk_pagerank(graphs: Graphs, _source: int) -> Any:
    import networkit as nk

    graph = nk_graph(graphs)

    def run() -> Any:
        kernel = nk.centrality.PageRank(graph, damp=DAMPING, tol=0.0)
        kernel.maxIterations = ITERATIONS
        return kernel.run()

    # It divides the scores by their sum at the end, so they differ from those of others.
    return run, lambda _: {}


def nk_bfs(graphs: Graphs, source: int) -> Any:
    import networkit as nk

    graph = nk_graph(graphs)
    return (lambda: nk.distance.BFS(graph, source, False).run()), lambda done: hops(done.getDistances())


def nk_sssp(graphs: Graphs, source: int) -> Any:
    import networkit as nk

    graph = nk_graph(graphs, "weighted")
    return (lambda: nk.distance.Dijkstra(graph, source, False).run()), lambda done: lengths(done.getDistances())


def nk_wcc(graphs: Graphs, _source: int) -> Any:
    import networkit as nk

    graph = nk_graph(graphs)
    components = nk.components
    kernel = components.WeaklyConnectedComponents if graph.isDirected() else components.ParallelConnectedComponents
    return (lambda: kernel(graph).run()), lambda done: {"components": done.numberOfComponents()}


def nk_triangles(graphs: Graphs, _source: int) -> Any:
    import networkit as nk

    graph = nk_graph(graphs, "undirected")
    graph.indexEdges()
    return nk.sparsification.TriangleEdgeScore(graph).run, lambda done: {"triangles": int(sum(done.scores())) // 3}


# igraph


def ig_graph(graphs: Graphs, which: str = "plain") -> Any:
    import igraph
    import numpy as np

    def make() -> Any:
        sources, targets, weights = graphs.pairs(which, each_once=True)
        directed, edges = graphs.rows(which)[0], np.column_stack([sources, targets])
        graph = igraph.Graph(n=graphs.num_vertices(), edges=edges, directed=directed)
        if weights is not None:
            graph.es["weight"] = weights.tolist()
        return graph

    return graphs.form(which, make)


def ig_bfs(graphs: Graphs, source: int) -> Any:
    graph = ig_graph(graphs)
    return (lambda: graph.distances([source], mode="out")), lambda found: hops(found[0])


def ig_sssp(graphs: Graphs, source: int) -> Any:
    graph = ig_graph(graphs, "weighted")
    return (lambda: graph.distances([source], weights="weight", mode="out")), lambda found: lengths(found[0])


def ig_wcc(graphs: Graphs, _source: int) -> Any:
    graph = ig_graph(graphs)
    return (lambda: graph.connected_components(mode="weak")), lambda found: {"components": len(found)}


def ig_bc(graphs: Graphs, source: int) -> Any:
    graph = ig_graph(graphs)
    return (lambda: graph.betweenness(sources=[source])), lambda scores: top(scores, by_largest=True)


def ig_triangles(graphs: Graphs, _source: int) -> Any:
    graph = ig_graph(graphs, "undirected")
    # The share of closed paths of two edges; igraph has no count that makes no list.
    num_paths = sum(degree * (degree - 1) // 2 for degree in graph.degree())
    return graph.transitivity_undirected, lambda share: {"triangles": round(share * num_paths / 3) if num_paths else 0}


# SciPy


def sp_matrix(graphs: Graphs, which: str = "plain") -> Any:
    import numpy as np
    import scipy.sparse

    def make() -> Any:
        _, offsets, targets, weights = graphs.rows(which)
        values = np.ones(len(targets)) if weights is None else weights.astype(float)
        shape = (len(offsets) - 1, len(offsets) - 1)
        return scipy.sparse.csr_matrix((values, targets, offsets), shape=shape)

    return graphs.form(which, make)


def sp_pagerank(graphs: Graphs, _source: int, precision: str = "f8") -> Any:
    import numpy as np

    matrix = sp_matrix(graphs)
    incoming = graphs.form("incoming " + precision, lambda: matrix.T.tocsr().astype(precision))
    degrees = np.diff(matrix.indptr).astype(precision)
    number = matrix.shape[0]

    def run() -> Any:
        scores = np.full(number, 1 / number, dtype=precision)
        shares = np.where(degrees > 0, DAMPING / np.maximum(degrees, 1), 0).astype(precision)
        for _ in range(ITERATIONS):
            scores = incoming @ (scores * shares)
            scores += (1 - DAMPING) / number
        return scores

    return run, top


def sp_bfs(graphs: Graphs, source: int) -> Any:
    from scipy.sparse import csgraph

    matrix = sp_matrix(graphs)
    run = functools.partial(csgraph.breadth_first_order, matrix, source, return_predecessors=False)
    return run, lambda order: {"reached": len(order)}


def sp_sssp(graphs: Graphs, source: int) -> Any:
    from scipy.sparse import csgraph

    matrix = sp_matrix(graphs, "weighted")
    return (lambda: csgraph.dijkstra(matrix, indices=source)), lengths


def sp_wcc(graphs: Graphs, _source: int) -> Any:
    from scipy.sparse import csgraph

    matrix = sp_matrix(graphs)
    run = functools.partial(csgraph.connected_components, matrix, connection="weak")
    return run, lambda found: {"components": int(found[0])}


# graph-mate


def gm_graph(graphs: Graphs) -> Any:
    import graph_mate
    import numpy as np

    def make() -> Any:
        sources, targets, _ = graphs.pairs("plain", each_once=False)
        edges = np.column_stack([sources, targets]).astype(np.uint32)
        return graph_mate.DiGraph.from_numpy(edges, graph_mate.Layout.Sorted)

    return graphs.form("plain", make)


def gm_pagerank(graphs: Graphs, _source: int) -> Any:
    graph = gm_graph(graphs)
    run = functools.partial(graph.page_rank, max_iterations=ITERATIONS, tolerance=0.0, damping_factor=DAMPING)
    # It updates scores in place, so they differ from those of others after ten iterations.
    return run, lambda _: {}


def gm_wcc(graphs: Graphs, _source: int) -> Any:
    import numpy as np

    graph = gm_graph(graphs)

    def components(found: Any) -> Answer:
        # Its vertices end with the last one that has an edge.
        missing = graphs.num_vertices() - graph.node_count()
        return {"components": len(np.unique(found.components())) + missing}

    return graph.wcc, components


def gm_triangles(graphs: Graphs, _source: int) -> Any:
    import graph_mate
    import numpy as np

    def make() -> Any:
        sources, targets, _ = graphs.pairs("undirected", each_once=True)
        edges = np.column_stack([sources, targets]).astype(np.uint32)
        graph = graph_mate.Graph.from_numpy(edges, graph_mate.Layout.Deduplicated)
        graph.make_degree_ordered()
        return graph

    graph = graphs.form("undirected", make)
    return graph.global_triangle_count, lambda found: {"triangles": found.triangles}


# python-graphblas


def gb_matrix(graphs: Graphs, which: str = "plain") -> Any:
    import graphblas as gb

    def make() -> Any:
        gb.ss.config["nthreads"] = graphs.threads
        _, offsets, targets, weights = graphs.rows(which)
        number, offsets, targets = len(offsets) - 1, offsets.astype("u8"), targets.astype("u8")
        if weights is not None:
            return gb.Matrix.from_csr(offsets, targets, weights, ncols=number)
        return gb.Matrix.from_csr(offsets, targets, 1.0, ncols=number)

    return graphs.form(which, make)


def gb_pagerank(graphs: Graphs, _source: int, precision: str = "FP64") -> Any:
    import graphblas as gb

    matrix = gb_matrix(graphs)
    # A mask of the arcs alone: the semiring never reads their values.
    incoming = graphs.form("incoming", lambda: matrix.T.new())
    number = matrix.nrows
    degrees = matrix.reduce_rowwise(gb.monoid.plus).new(dtype=precision)

    def run() -> Any:
        shares = degrees.apply(gb.binary.truediv, left=DAMPING).new(dtype=precision)
        scores = gb.Vector(precision, size=number)
        scores[:] = 1 / number
        for _ in range(ITERATIONS):
            spread = scores.ewise_mult(shares, gb.binary.times).new()
            scores[:] = (1 - DAMPING) / number
            scores(gb.binary.plus) << incoming.mxv(spread, gb.semiring.plus_second[precision])
        scores.wait()
        return scores

    return run, lambda scores: top(scores.to_dense(0))


def gb_bfs(graphs: Graphs, source: int) -> Any:
    import graphblas as gb

    matrix = gb_matrix(graphs)

    def run() -> Any:
        levels = gb.Vector(gb.dtypes.INT32, size=matrix.nrows)
        frontier = gb.Vector(gb.dtypes.BOOL, size=matrix.nrows)
        frontier[source] = True
        level = 0
        while frontier.nvals:
            levels(frontier.S)[:] = level
            frontier(~levels.S, replace=True) << frontier.vxm(matrix, gb.semiring.any_pair[bool])
            level += 1
        return levels

    return run, lambda levels: {"reached": levels.nvals, "depth": int(levels.reduce(gb.monoid.max).new().value)}


def gb_triangles(graphs: Graphs, _source: int) -> Any:
    import graphblas as gb

    matrix = gb_matrix(graphs, "undirected")

    def run() -> Any:
        lower = gb.select.tril(matrix, -1).new()
        counts = gb.Matrix(gb.dtypes.INT64, matrix.nrows, matrix.ncols)
        counts(lower.S) << lower.mxm(lower.T, gb.semiring.plus_pair[gb.dtypes.INT64])
        return counts.reduce_scalar(gb.monoid.plus).new().value

    return run, lambda found: {"triangles": int(found or 0)}


LIBRARIES: dict[str, tuple[str, dict[str, Kernel]]] = {
    "NetworKit": (
        "networkit",
        {"pagerank f64": nk_pagerank, "bfs": nk_bfs, "wcc": nk_wcc, "sssp": nk_sssp, "triangles": nk_triangles},
    ),
    "igraph": ("igraph", {"bfs": ig_bfs, "wcc": ig_wcc, "sssp": ig_sssp, "bc": ig_bc, "triangles": ig_triangles}),
    "SciPy": (
        "scipy.sparse",
        {
            "pagerank f64": sp_pagerank,
            "pagerank f32": functools.partial(sp_pagerank, precision="f4"),
            "bfs": sp_bfs,
            "wcc": sp_wcc,
            "sssp": sp_sssp,
        },
    ),
    "graph-mate": ("graph_mate", {"pagerank f32": gm_pagerank, "wcc": gm_wcc, "triangles": gm_triangles}),
    "python-graphblas": (
        "graphblas",
        {
            "pagerank f64": gb_pagerank,
            "pagerank f32": functools.partial(gb_pagerank, precision="FP32"),
            "bfs": gb_bfs,
            "triangles": gb_triangles,
        },
    ),
}


def listed() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (module, kernels) in LIBRARIES.items():
        try:
            importlib.import_module(module)
            importlib.import_module("numpy")
            found[name] = {"kernels": list(kernels)}
        except Exception as error:  # a broken installation must not end the benchmark
            found[name] = {"missing": str(error)}
    return found


def answered(kernels: dict[str, Kernel], graphs: Graphs, question: dict[str, Any]) -> Answer:
    run, figures = kernels[question["kernel"]](graphs, question["source"])
    seconds, result = [], None
    for _ in range(question["trials"]):
        result = None  # freed before the clock starts
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "answer": figures(result)}


def serve(library: str, plain: str, weighted: str, undirected: str, threads: str) -> None:
    module, kernels = LIBRARIES[library]
    importlib.import_module(module)
    graphs = Graphs(plain, weighted, undirected, int(threads))
    for line in sys.stdin:
        try:
            answer = answered(kernels, graphs, json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if sys.argv[1] == "list":
    print(json.dumps(listed()))
else:
    serve(*sys.argv[2:])
