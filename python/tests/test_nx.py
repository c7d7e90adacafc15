"""The NetworkX backend gives NetworkX's results, in its order, with its exceptions."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

nx = pytest.importorskip("networkx")

import anden
from _anden_nx import FUNCTIONS as DESCRIBED
from anden.nx import BackendInterface, Graph
from anden.nx.registry import FUNCTIONS, can_run, should_run

#: Functions whose results NetworkX gives in another order.
UNORDERED = {
    "all_pairs_bellman_ford_path_length",
    "all_pairs_dijkstra_path_length",
    "attracting_components",
    "single_source_bellman_ford_path_length",
    "single_source_dijkstra_path_length",
    "single_target_shortest_path",
    "single_target_shortest_path_length",
    "strongly_connected_components",
}


def _random(kind: type, *, seed: int, has_loops: bool = False, weights: tuple[Any, ...] = ()) -> Any:
    graph = kind(nx.gnm_random_graph(40, 70, seed=seed, directed=kind().is_directed()))
    if has_loops:
        graph.add_edges_from((node, node) for node in range(0, 40, 7))
    for place, (_, _, data) in enumerate(graph.edges(data=True)):
        if weights:
            data["weight"] = weights[place % len(weights)]
    return graph


def _parallel(kind: type) -> Any:
    graph = kind([("a", "b"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "c"), ("c", "c"), ("d", "e")])
    graph.add_node("f")
    return graph


GRAPHS: dict[str, Callable[[], Any]] = {
    "empty": nx.Graph,
    "empty directed": nx.DiGraph,
    "one node": lambda: nx.empty_graph(1),
    "one loop": lambda: nx.Graph([("a", "a")]),
    "no edges": lambda: nx.empty_graph(5),
    "path of strings": lambda: nx.path_graph(list("gfedcba")),
    "tree": lambda: nx.balanced_tree(2, 3),
    "arborescence": lambda: nx.DiGraph([(3, 1), (3, 2), (1, 0), (1, 4)]),
    "cycle": lambda: nx.cycle_graph(6, create_using=nx.DiGraph),
    "complete": lambda: nx.complete_graph(6),
    "star": lambda: nx.star_graph(30),
    "karate": nx.karate_club_graph,
    "random": lambda: _random(nx.Graph, seed=1),
    "random with loops": lambda: _random(nx.Graph, seed=2, has_loops=True),
    "random directed": lambda: _random(nx.DiGraph, seed=3),
    "random directed with loops": lambda: _random(nx.DiGraph, seed=4, has_loops=True),
    "whole weights": lambda: _random(nx.DiGraph, seed=5, weights=(1, 7, 2, 9, 4)),
    "floating weights": lambda: _random(nx.Graph, seed=6, weights=(0.5, 2.25, 1, 0.125)),
    "negative weight": lambda: _random(nx.DiGraph, seed=7, weights=(3, -1, 5)),
    "parallel edges": lambda: _parallel(nx.MultiGraph),
    "parallel arcs": lambda: _parallel(nx.MultiDiGraph),
    "dense": lambda: nx.gnp_random_graph(60, 0.5, seed=8),
}


def _arguments(name: str, graph: Any) -> Iterator[dict[str, Any]]:
    """Calls that a function is tried with: all that have its parameters."""
    parameters = set(inspect.signature(FUNCTIONS[name].call).parameters)
    nodes = [*list(graph)[:3], *list(graph)[-1:], "missing"]
    ends = {"source", "target", "u", "v", "n"} & parameters
    required = [p.name for p in inspect.signature(FUNCTIONS[name].call).parameters.values() if p.default is p.empty]
    if set(required) == {"G"}:
        yield {}
    if name == "pagerank" and len(graph) > 2:
        yield {"personalization": dict.fromkeys(nodes[:2], 0.5)}
        yield {"alpha": 0.5, "max_iter": 3}
    if "nodes" in parameters or name == "eccentricity":
        yield {"nodes" if "nodes" in parameters else "v": nodes[:2]}
    for end in sorted(ends):
        others = {other: nodes[0] for other in required if other not in ("G", end)}
        for node in nodes:
            yield {**others, end: node}
    if {"source", "target"} <= parameters and len(graph) > 1:
        yield {"source": nodes[0], "target": nodes[-2]}
    if "cutoff" in parameters:
        yield from ({**({"source": nodes[0]} if "source" in parameters else {}), "cutoff": cut} for cut in (0, 1.5, 2))
    if "wf_improved" in parameters:
        yield {"wf_improved": False}
    if name == "betweenness_centrality" and len(graph) > 3:
        yield from ({"k": k, "seed": 1, "normalized": normalized} for k in (1, 3) for normalized in (False, True))
    if "weight" in parameters and "source" in parameters and "method" in parameters:
        yield {"source": nodes[0], "weight": "weight"}
        yield {"target": nodes[0], "weight": "weight"}
    if name == "bfs_layers":
        yield {"sources": nodes[0]}
    if name == "descendants_at_distance":
        yield from ({"source": nodes[0], "distance": distance} for distance in (0, 2, 99))


def _outcome(call: Callable[..., Any], graph: Any, arguments: dict[str, Any]) -> tuple[str, Any]:
    try:
        result = call(graph, **arguments)
        if isinstance(result, Iterator):
            result = list(result)
    except NotImplementedError:
        return "refused", None
    except Exception as error:
        return "error", (type(error), str(error))
    return "result", result


def _same(ours: Any, theirs: Any, *, is_ordered: bool) -> bool:
    if isinstance(theirs, nx.Graph):
        return nx.utils.graphs_equal(ours, theirs)
    if isinstance(theirs, (int, float)) and not isinstance(theirs, bool):
        # In sums of mixed weights, some of NetworkX's are integers.
        is_number = isinstance(ours, (int, float)) and not isinstance(ours, bool)
        is_close = is_number and math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)
        return is_close or (is_number and math.isnan(ours) and math.isnan(theirs))
    if isinstance(theirs, dict):
        has_same_keys = list(ours) == list(theirs) if is_ordered else ours.keys() == theirs.keys()
        return has_same_keys and all(_same(ours[key], theirs[key], is_ordered=is_ordered) for key in theirs)
    if isinstance(theirs, (list, tuple)):
        if not is_ordered and all(isinstance(item, set) for item in theirs):
            return sorted(map(sorted, ours)) == sorted(map(sorted, theirs))
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(_same(a, b, is_ordered=is_ordered) for a, b in pairs)
    return type(ours) is type(theirs) and ours == theirs


def _original(name: str) -> Any:
    return nx.utils.backends._registered_algorithms[name]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_results_equal_networkx(name: str) -> None:
    num_results = 0
    for title, build in GRAPHS.items():
        graph = build()
        for arguments in _arguments(name, graph):
            if can_run(name, (graph,), arguments) is not True:
                continue
            dispatched = getattr(nx, name, None) or _original(name)
            expected = _outcome(partial(dispatched, backend="networkx"), graph, arguments)
            found = _outcome(partial(dispatched, backend="anden"), graph, arguments)
            if found[0] == "refused":
                continue
            where = f"{name}({title}, {arguments}): {found}, not {expected}"
            assert found[0] == expected[0], where
            if found[0] == "error":
                assert found[1] == expected[1], where
            else:
                is_ordered = name not in UNORDERED and "weight" not in arguments
                assert _same(found[1], expected[1], is_ordered=is_ordered), where
                num_results += 1
    assert num_results >= 3, f"{name} answered {num_results} calls"


def test_description_lists_every_function() -> None:
    assert sorted(DESCRIBED) == sorted(FUNCTIONS)
    assert all(hasattr(BackendInterface, name) for name in DESCRIBED)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_parameters_are_those_of_networkx(name: str) -> None:
    ours = list(inspect.signature(FUNCTIONS[name].call).parameters.values())
    theirs = inspect.signature(_original(name).orig_func).parameters
    for parameter in ours:
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in theirs:
            # A keyword of newer versions.
            continue
        assert parameter.default == theirs[parameter.name].default, parameter.name


def test_import_of_networkx_leaves_anden_out() -> None:
    code = "import sys, networkx; sys.exit('anden' in sys.modules or 'anden' not in networkx.config.backends)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_unknown_keywords_are_refused() -> None:
    graph = nx.path_graph(3)
    assert "do not" not in str(can_run("pagerank", (graph,), {"tol": 1e-8}))
    assert "does not take" in str(can_run("pagerank", (graph,), {"method": "new"}))
    assert "no hits" in str(can_run("hits", (graph,), {}))
    with pytest.raises(NotImplementedError):
        nx.betweenness_centrality(graph, weight="weight", backend="anden")


def test_weight_functions_and_weights_without_numbers_are_refused() -> None:
    graph = nx.path_graph(3)
    assert can_run("dijkstra_path_length", (graph, 0, 2), {"weight": lambda *_: 1}) is not True
    graph.add_edge(0, 1, weight="heavy")
    with pytest.raises(NotImplementedError):
        nx.dijkstra_path_length(graph, 0, 2, backend="anden")
    for weight in (-1, math.nan, math.inf, 1 << 40):
        graph.add_edge(0, 1, weight=weight)
        with pytest.raises(NotImplementedError):
            nx.dijkstra_path_length(graph, 0, 2, backend="anden")


def test_conversion_is_kept_until_the_graph_changes() -> None:
    graph = nx.path_graph(4)
    assert nx.has_path(graph, 0, 3, backend="anden")
    (kept,) = graph.__networkx_cache__["backends"]["anden"].values()
    assert isinstance(kept, Graph)
    with pytest.warns(UserWarning, match="cached"):
        assert nx.diameter(graph, backend="anden") == 3
    graph.remove_edge(1, 2)
    assert not nx.has_path(graph, 0, 3, backend="anden")


def test_should_run_weighs_the_conversion() -> None:
    large = nx.gnm_random_graph(1_000, 3_000, seed=1)
    assert should_run("pagerank", (large,), {}) is True
    assert "conversion" in str(should_run("is_connected", (large,), {}))
    assert "fewer than" in str(should_run("pagerank", (nx.path_graph(5),), {}))
    nx.is_connected(large, backend="anden")
    assert should_run("is_connected", (large,), {}) is True


def test_views_are_graphs_without_conversion() -> None:
    view = anden.from_edges([("a", "b"), ("b", "c"), ("x", "y")], ids="string", directed=False).view()
    graph = Graph.of_view(view)
    assert list(nx.connected_components(graph)) == [{"a", "b", "c"}, {"x", "y"}]
    assert nx.degree(graph, "b") == 2
    assert nx.density(graph) == pytest.approx(0.3)
    assert nx.shortest_path_length(graph, "a", "c") == 2
    # A function that the backend lacks.
    with nx.config(fallback_to_nx=True):
        assert sorted(map(sorted, nx.bridges(graph))) == [["a", "b"], ["b", "c"], ["x", "y"]]


def test_priority_runs_large_graphs_on_the_backend(caplog: pytest.LogCaptureFixture) -> None:
    small, large = nx.path_graph(5), nx.gnm_random_graph(1_000, 3_000, seed=1)
    with nx.config(backend_priority=["anden"]), caplog.at_level("DEBUG", logger="networkx"):
        nx.pagerank(small)
        assert "Using backend 'anden'" not in caplog.text
        ranks = nx.pagerank(large)
        assert "Using backend 'anden'" in caplog.text
        # A keyword value that the backend refuses: NetworkX itself runs.
        assert list(nx.betweenness_centrality(small, weight="weight")) == list(small)
    assert ranks == pytest.approx(nx.pagerank(large), abs=1e-9)


def test_views_without_some_vertices_are_refused() -> None:
    db = anden.from_edges([(1, 2), (2, 3)])
    with db.transaction() as tx:
        tx.remove_vertex(2)
    with pytest.raises(anden.InvalidInput, match="to_networkx"):
        Graph.of_view(db.view())
    assert sorted(db.view().to_networkx()) == [1, 3]
