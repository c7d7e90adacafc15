"""Files of other libraries: NetworkX and igraph read what is written, and what they write is read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anden

networkx: Any = pytest.importorskip("networkx")

Edges = dict[tuple[Any, Any], dict[str, Any]]


def read_json(path: Path) -> Any:
    """The graph in a file of node-link JSON."""
    data = json.loads(path.read_text(encoding="utf-8"))
    data["links"] = data.pop("edges", data.get("links"))
    return networkx.node_link_graph(data, edges="links")


def write_json(graph: Any, path: Path, edges: str = "edges") -> None:
    """Writes node-link JSON with this name of the list of edges."""
    path.write_text(json.dumps(networkx.node_link_data(graph, edges=edges)), encoding="utf-8")


def read_pajek(path: Path) -> Any:
    """The graph in a Pajek network, without the numbers of its vertices."""
    multigraph = networkx.read_pajek(path)
    graph = networkx.DiGraph() if multigraph.is_directed() else networkx.Graph()
    graph.add_nodes_from(multigraph.nodes)
    graph.add_edges_from((s, t, data) for s, t, data in multigraph.edges(data=True))
    return graph


READERS: dict[str, Any] = {
    "graphml": networkx.read_graphml,
    "gexf": networkx.read_gexf,
    "gml": networkx.read_gml,
    "json": read_json,
    "net": read_pajek,
}
WRITERS: dict[str, Any] = {
    "graphml": networkx.write_graphml,
    "gexf": networkx.write_gexf,
    "gml": networkx.write_gml,
    "json": write_json,
    "net": networkx.write_pajek,
}


def edges_of(view: anden.View) -> Edges:
    """The edges with their properties that are not null."""
    columns = {name: values.tolist() for name, values in view.edges().to_numpy().items()}
    names = [name for name in columns if name not in ("source", "target")]
    rows = zip(*columns.values(), strict=True)
    edges: Edges = {}
    for source, target, *values in rows:
        found = dict(zip(names, values, strict=True))
        edges[source, target] = {name: value for name, value in found.items() if value is not None}
    return edges


def undirected(edges: Edges) -> Edges:
    """The edges with their ends in order."""
    return {(min(s, t), max(s, t)): data for (s, t), data in edges.items()}


def made(kind: Any) -> Any:
    """A graph with names and weights."""
    graph = kind()
    names = ["Ann", "Böb & Co", 'say "x"', "d <e>"]
    for number, name in enumerate(names):
        graph.add_node(name, size=number, share=number / 4, note=f"n°{number}")
    pairs = [(0, 1), (1, 2), (2, 0), (3, 3)]
    for number, (source, target) in enumerate(pairs):
        graph.add_edge(names[source], names[target], weight=number + 0.5, kind="a" if number else "b c")
    return graph


def plain(graph: Any) -> Any:
    """The graph with names that Pajek holds, and without properties but weights."""
    graph = networkx.relabel_nodes(graph, {'say "x"': "say x"})
    for _, data in graph.nodes(data=True):
        data.clear()
    for *_, data in graph.edges(data=True):
        del data["kind"]
    return graph


@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph])
@pytest.mark.parametrize("ending", WRITERS)
def test_graphs_of_networkx_are_read(tmp_path: Path, ending: str, kind: Any) -> None:
    graph = plain(made(kind)) if ending == "net" else made(kind)
    file = tmp_path / f"a.{ending}"
    WRITERS[ending](graph, file)
    database = anden.load(None, file, ids="string")
    view = database.view()
    assert view.directed == graph.is_directed()
    assert sorted(view.vertices().to_numpy()["key"].tolist()) == sorted(graph.nodes)
    expected = {(s, t): data for s, t, data in graph.edges(data=True)}
    found = edges_of(view)
    if not graph.is_directed():
        expected, found = undirected(expected), undirected(found)
    names = {"weight", "kind"}
    assert {edge: {n: v for n, v in data.items() if n in names} for edge, data in found.items()} == expected
    if ending == "net":
        return
    for name, data in graph.nodes(data=True):
        properties = view.vertex(name)["properties"]
        assert {key: properties[key] for key in data} == data, name


@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph])
@pytest.mark.parametrize("ending", READERS)
def test_networkx_reads_what_is_written(tmp_path: Path, ending: str, kind: Any) -> None:
    graph = plain(made(kind)) if ending == "net" else made(kind)
    source, file = tmp_path / "source.json", tmp_path / f"a.{ending}"
    write_json(graph, source, "links")
    database = anden.load(None, source, ids="string", weights=True)
    assert database.view().export(file) == graph.number_of_edges()
    back = READERS[ending](file)
    assert back.is_directed() == graph.is_directed()
    assert sorted(back.nodes) == sorted(graph.nodes)
    for name, data in graph.nodes(data=True):
        assert {key: back.nodes[name][key] for key in data} == data, (ending, name)
    for s, t, data in graph.edges(data=True):
        assert {key: back.edges[s, t][key] for key in data} == data, (ending, s, t)


def test_numbers_are_keys_of_numbers(tmp_path: Path) -> None:
    graph = networkx.karate_club_graph()
    expected = sorted((min(edge), max(edge)) for edge in graph.edges)
    for ending in ("graphml", "gexf", "gml", "json"):
        file, copy = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
        WRITERS[ending](graph, file)
        view = anden.load(None, file).view()
        assert sorted(undirected(edges_of(view))) == expected, ending
        view.export(copy)
        again = anden.load(None, copy).view()
        assert edges_of(again) == edges_of(view), ending


def test_infinite_and_missing_values(tmp_path: Path) -> None:
    file = tmp_path / "a.gml"
    graph = networkx.DiGraph()
    graph.add_edge("a", "b", cost=math.inf)
    graph.add_edge("b", "c", cost=1e300)
    graph.add_edge("c", "a")
    networkx.write_gml(graph, file)
    view = anden.load(None, file, ids="string").view()
    assert edges_of(view)["b", "c"]["cost"] == 1e300
    view.export(file)
    back = networkx.read_gml(file)
    assert back.edges["a", "b"]["cost"] == math.inf
    assert "cost" not in back.edges["c", "a"]


@pytest.mark.parametrize("ending", ["graphml", "gml", "net"])
def test_igraph_agrees(tmp_path: Path, ending: str) -> None:
    igraph: Any = pytest.importorskip("igraph")
    names, edges = ["Ann", "Bob", "c d"], [(0, 1), (1, 2), (2, 2)]
    graph = igraph.Graph(n=3, edges=edges, directed=True)
    graph.vs["label" if ending == "gml" else "name"] = names
    graph.es["weight"] = [0.5, 2.0, 3.0]
    file, copy = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    graph.write(str(file), format="pajek" if ending == "net" else ending)
    view = anden.load(None, file, weights=True, ids="string").view()
    weights = sorted(data["weight"] for data in edges_of(view).values())
    assert (view.num_vertices, weights) == (3, [0.5, 2.0, 3.0])
    if ending != "graphml":
        assert sorted(edges_of(view)) == sorted((names[s], names[t]) for s, t in edges)
    view.export(copy)
    back = igraph.Graph.Read(str(copy), format="pajek" if ending == "net" else ending)
    assert (back.vcount(), back.is_directed()) == (3, True)
    assert sorted(back.es["weight"]) == [0.5, 2.0, 3.0]
    assert sorted(edge.tuple for edge in back.es) == edges


def test_graphframes_agree_with_pyarrow(tmp_path: Path) -> None:
    pa: Any = pytest.importorskip("pyarrow")
    pq: Any = pytest.importorskip("pyarrow.parquet")
    folder, copy = tmp_path / "made", tmp_path / "written"
    (folder / "edges").mkdir(parents=True)
    pq.write_table(pa.table({"name": ["Ann", "Bob", "Cid"], "id": ["a", "b", "c"]}), folder / "vertices.parquet")
    for part, ends in enumerate([("a", "b"), ("c", "c")]):
        table = pa.table({"since": [2000 + part], "src": [ends[0]], "dst": [ends[1]], "weight": [0.5 + part]})
        pq.write_table(table, folder / "edges" / f"part-{part}.parquet")
    (folder / "edges" / "_SUCCESS").touch()
    view = anden.load(None, folder, weights=True).view()
    assert view.export(copy, format="graphframes") == 2
    edges, vertices = pq.read_table(copy / "edges").to_pydict(), pq.read_table(copy / "vertices").to_pydict()
    assert edges == {"src": ["a", "c"], "dst": ["b", "c"], "weight": [0.5, 1.5], "since": [2000, 2001]}
    names = dict(zip(vertices["id"], vertices["name"], strict=True))
    assert names == {"a": "Ann", "b": "Bob", "c": "Cid"}
    with pytest.raises(anden.Error, match="new or empty folder"):
        view.export(copy, format="graphframes")
    with pytest.raises(anden.Error, match="vertices"):
        view.export(tmp_path / "other", format="graphframes", vertices=tmp_path / "vertices.csv")


@pytest.mark.parametrize("directed", [True, False])
def test_arrow_lists_agree_with_scipy(tmp_path: Path, directed: bool) -> None:
    ipc: Any = pytest.importorskip("pyarrow.ipc")
    sparse: Any = pytest.importorskip("scipy.sparse")
    pa: Any = pytest.importorskip("pyarrow")
    edges = pa.table({"source": [10, 10, 30, 40], "target": [20, 30, 40, 40], "weight": [0.5, 1.5, 2.5, 3.5]})
    view = anden.load(None, edges, weights=True, directed=directed, undirected=not directed).view()
    file = tmp_path / "graph.arrow"
    assert view.export(file) == 4
    table = ipc.open_file(pa.memory_map(str(file))).read_all()
    arcs, n = table["arcs"].chunk(0), table.num_rows
    index, weight = arcs.values.field("index"), arcs.values.field("weight")
    matrix = sparse.csr_array((weight.to_numpy(), index.to_numpy(), arcs.offsets.to_numpy()), shape=(n, n))
    # SciPy takes the memory of the file.
    assert np.shares_memory(matrix.indices, index.to_numpy())
    assert np.shares_memory(matrix.indptr, arcs.offsets.to_numpy())
    keys = table["id"].to_pylist()
    found = {(keys[s], keys[t]): w for s, t, w in zip(*sparse.find(matrix), strict=True)}
    expected = dict(zip([(10, 20), (10, 30), (30, 40), (40, 40)], [0.5, 1.5, 2.5, 3.5], strict=True))
    assert found == expected if directed else found == expected | {(t, s): w for (s, t), w in expected.items()}
    back = anden.load(None, file, weights=True).view()
    assert (back.directed, back.num_vertices, back.num_edges) == (directed, 4, 4)
    assert sorted(back.edges().to_numpy()["weight"]) == [0.5, 1.5, 2.5, 3.5]


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_feather_of_pyarrow_and_polars_is_read(tmp_path: Path, compression: str | None) -> None:
    feather: Any = pytest.importorskip("pyarrow.feather")
    pa: Any = pytest.importorskip("pyarrow")
    pl: Any = pytest.importorskip("polars")
    table = pa.table({"src": ["a", "b"], "dst": ["b", "c"], "since": [2020, None]})
    feather.write_feather(table, str(tmp_path / "arrow.feather"), compression=compression or "uncompressed")
    pl.from_arrow(table).write_ipc(tmp_path / "polars.ipc", compression=compression or "uncompressed")
    for name in ["arrow.feather", "polars.ipc"]:
        columns = anden.load(None, tmp_path / name, ids="string").view().edges().to_numpy()
        assert list(zip(columns["source"], columns["target"], strict=True)) == [("a", "b"), ("b", "c")], name


def test_graphar_agrees_with_pyarrow(tmp_path: Path) -> None:
    pa: Any = pytest.importorskip("pyarrow")
    pq: Any = pytest.importorskip("pyarrow.parquet")
    edges = pa.table({"source": ["a", "c"], "target": ["b", "c"], "weight": [0.5, 1.5], "type": ["knows", "likes"]})
    tags = [["x", None], [], None]
    vertices = {"id": ["a", "b", "c"], "labels": ["Person", "Person", "Post"], "age": [30, None, 1], "tags": tags}
    view = anden.load(None, edges, vertices=pa.table(vertices), weights=True, ids="string").view()
    folder = tmp_path / "graph"
    assert view.export(folder, format="graphar") == 2
    people = pq.ParquetFile(folder / "vertex/Person/properties/chunk0").read().to_pydict()
    assert (people["_graphArVertexIndex"], people["labels"]) == ([0, 1], ["Person"] * 2)
    assert dict(zip(people["id"], people["age"], strict=True)) == {"a": 30, "b": None}
    assert dict(zip(people["id"], people["tags"], strict=True)) == {"a": ["x", None], "b": []}
    lists = folder / "edge/Person_knows_Person/ordered_by_source"
    ends = pq.ParquetFile(lists / "adj_list/part0/chunk0").read().to_pydict()
    assert [people["id"][ends[f"_graphAr{end}Index"][0]] for end in ("Src", "Dst")] == ["a", "b"]
    offsets = pq.ParquetFile(lists / "offset/chunk0").read().to_pydict()["_graphArOffset"]
    assert (len(offsets), offsets[0], offsets[2]) == (3, 0, 1)
    assert int.from_bytes((lists / "edge_count0").read_bytes(), "little") == 1
    back = anden.load(None, folder, weights=True).view()
    assert (back.num_vertices, back.num_edges, back.directed) == (3, 2, True)
    assert sorted(back.edges().to_numpy()["type"]) == ["knows", "likes"]
