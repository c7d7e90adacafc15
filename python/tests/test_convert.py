"""Databases from arrays, tables and graphs of other libraries, and back."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anden

Edges = list[tuple[Any, ...]]


def edges_of(view: anden.View) -> Edges:
    """The edges as sorted tuples."""
    columns = view.edges().to_numpy()
    return sorted(zip(*(values.tolist() for values in columns.values()), strict=True))


@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", "f8"])
@pytest.mark.parametrize("ids", ["integer", "dense", "string"])
def test_arrays_of_every_dtype_are_keys(dtype: str, ids: str) -> None:
    src, dst = np.array([0, 0, 1], dtype), np.array([1, 2, 2], dtype)
    key = str if ids == "string" else int
    expected = [(key(s), key(t)) for s, t in ((0, 1), (0, 2), (1, 2))]
    assert edges_of(anden.from_numpy(src, dst, ids=ids).view()) == expected


def test_strided_reversed_and_read_only_arrays() -> None:
    both = np.array([[0, 1], [0, 2], [1, 2]])
    both.flags.writeable = False
    expected = [(0, 1), (0, 2), (1, 2)]
    assert edges_of(anden.from_numpy(both[:, 0], both[:, 1]).view()) == expected
    assert edges_of(anden.from_numpy(both[::-1, 0], both[::-1, 1]).view()) == expected


@pytest.mark.parametrize(
    ("dtype", "weight_type"),
    [("u4", "u32"), ("i8", "i64"), ("f4", "f32"), ("f8", "f64"), ("i4", "i64"), ("f2", "f32")],
)
def test_the_dtype_of_weights_decides_their_type(dtype: str, weight_type: str) -> None:
    view = anden.from_numpy([1, 2], [2, 3], np.array([5, 7], dtype)).view()
    assert view.weight_type == weight_type
    assert edges_of(view) == [(1, 2, 5), (2, 3, 7)]
    assert anden.from_numpy([1], [2], [3], weight_type="f32").view().weight_type == "f32"


def test_properties_and_vertices_of_arrays(tmp_path: Path) -> None:
    properties = {"kind": ["a", None], "day": np.array(["2024-05-01", "NaT"], "M8[D]"), "good": [True, False]}
    db = anden.from_numpy([1, 2], [2, 3], properties=properties, num_vertices=6, path=tmp_path / "db")
    view = db.view()
    assert len(view) == 6
    assert view.edge(1, 2)["kind"] == "a" and view.edge(2, 3)["good"] is False
    assert "kind" not in view.edge(2, 3)
    assert view.edges().types["day"].startswith("Timestamp")


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"src": [1, -1], "dst": [2, 3]}, anden.InvalidInput, "source.*found -1"),
    ({"src": [1, 2**63], "dst": [2, -3]}, anden.InvalidInput, "target.*found -3"),
    ({"src": [1, 2**70], "dst": [2, 3]}, anden.InvalidInput, "source"),
    ({"src": [1], "dst": [2, 3]}, anden.InvalidInput, "'target' has 2 values, but 'source' has 1"),
    ({"src": [1.5], "dst": [2]}, anden.InvalidInput, "source.*found 1.5"),
    ({"src": [float("nan")], "dst": [2]}, anden.InvalidInput, "source.*found NaN"),
    ({"src": [2**40], "dst": [2], "ids": "dense"}, anden.InvalidInput, "dense id.*found 1099511627776"),
    ({"src": [1], "dst": [2], "weights": [float("nan")]}, anden.InvalidInput, "found NaN"),
    ({"src": [1], "dst": [2], "weights": [-1], "weight_type": "u32"}, anden.InvalidInput, "found -1"),
    ({"src": [1], "dst": [2], "weights": ["x"]}, anden.InvalidInput, "weight.*numbers"),
    ({"src": [[1]], "dst": [[2]]}, anden.InvalidInput, "'source'"),
    ({"src": 1, "dst": 2}, TypeError, "'source' is an array or a list"),
    ({"src": "ab", "dst": "bc"}, TypeError, "'source' is an array or a list"),
    ({"src": [1, "a"], "dst": [2, 3]}, TypeError, "'source' holds values of several types"),
    ({"src": [object()], "dst": [2]}, TypeError, "'source' holds values of several types"),
    ({"src": np.array([1j]), "dst": [2]}, TypeError, "'source' has the dtype complex128"),
    ({"src": np.ma.array([1, 2], mask=[True, False]), "dst": [2, 3]}, anden.InvalidInput, "source.*found null"),
    ({"src": [True], "dst": [False]}, anden.InvalidInput, "Boolean"),
    ({"src": ["a"], "dst": ["b"], "ids": "integer"}, anden.InvalidInput, "source.*found 'a'"),
    ({"src": [1], "dst": [2], "idz": "dense"}, TypeError, "idz.*ids"),
    ({"src": [1], "dst": [2], "ids": "dens"}, anden.InvalidInput, "dense"),
    ({"src": [1], "dst": [2], "num_vertices": -1}, anden.InvalidInput, "num_vertices"),
    ({"src": [1], "dst": [2], "properties": {"source": [1]}}, anden.InvalidInput, "'source' is the name"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), BAD)
def test_bad_arrays_are_refused(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        anden.from_numpy(**arguments)


def test_edges_of_iterables() -> None:
    assert edges_of(anden.from_edges(iter([("a", "b"), ("b", "c")])).view()) == [("a", "b"), ("b", "c")]
    assert edges_of(anden.from_edges([(1, 2, 0.5)]).view()) == [(1, 2, 0.5)]
    assert len(anden.from_edges([]).view()) == 0
    with pytest.raises(anden.InvalidInput, match=r"edges: .*found \(1, 2, 3\)"):
        anden.from_edges([(1, 2), (1, 2, 3)])
    with pytest.raises(anden.InvalidInput, match=r"found \(1,\)"):
        anden.from_edges([(1,)])


def test_arrow_tables() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({
        "from": pa.array(["a", "b"]).dictionary_encode(),
        "to": pa.array(["b", "c"], pa.string_view()),
        "weight": pa.array([1, 2], pa.int16()),
        "when": pa.array([1, None], pa.timestamp("ns")),
    })
    view = anden.from_arrow(table, vertices={"Person": pa.table({"id": ["a"], "age": [7]})}).view()
    assert view.weight_type == "i64"
    assert edges_of(view)[1][:3] == ("b", "c", 2)
    assert view.vertex("a")["properties"]["age"] == 7
    assert view.known_labels() == ["Person"]
    plain = anden.from_arrow(table, weights=False).view()
    assert not plain.weighted and plain.edge_properties["weight"] == "i64"
    assert anden.from_arrow(view.edges()).view().num_edges == 2


def test_bad_arrow_tables() -> None:
    pa = pytest.importorskip("pyarrow")
    structs = pa.table({"source": [1], "target": [2], "tags": [{"x": 1}]})
    with pytest.raises(anden.InvalidInput, match="column .?tags.*Struct"):
        anden.from_arrow(structs)
    assert anden.from_arrow(structs, properties="none").view().num_edges == 1
    with pytest.raises(anden.InvalidInput, match="source_column"):
        anden.from_arrow(pa.table({"a": [1], "b": [2], "c": [3]}))
    with pytest.raises(anden.InvalidInput, match="found null"):
        anden.from_arrow(pa.table({"source": [None, 1], "target": [1, 2]}))
    with pytest.raises(TypeError, match="__arrow_c_stream__, not int"):
        anden.from_arrow(7)
    with pytest.raises(anden.InvalidInput, match="weights: no column"):
        anden.from_arrow(pa.table({"source": [1], "target": [2]}), weights=True)


def test_frames_of_pandas_and_polars() -> None:
    pandas = pytest.importorskip("pandas")
    data = {"source": [1, 2], "target": [2, 3], "weight": [0.5, 1.5]}
    assert edges_of(anden.from_pandas(pandas.DataFrame(data)).view()) == [(1, 2, 0.5), (2, 3, 1.5)]
    words = pandas.DataFrame({"source": ["x", "y"], "target": ["y", "z"], "kind": ["k", None]})
    people = pandas.DataFrame({"key": ["x"], "age": [3]})
    view = anden.from_pandas(words, vertices=people).view()
    assert (view.edge("x", "y"), view.vertex("x")["properties"]["age"]) == ({"kind": "k"}, 3)
    with pytest.raises(anden.InvalidInput, match="names of columns are text, found 0"):
        anden.from_pandas(pandas.DataFrame([[1, 2]]))
    polars = pytest.importorskip("polars")
    assert edges_of(anden.from_polars(polars.DataFrame(data)).view()) == [(1, 2, 0.5), (2, 3, 1.5)]
    assert anden.from_polars(polars.LazyFrame(data)).view().num_edges == 2


def test_matrices_of_scipy() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 2], [1, 1, 0])), shape=(4, 4))
    view = anden.from_scipy(matrix).view()
    assert (len(view), edges_of(view)) == (4, [(0, 1, 3.0), (2, 0, 4.0)])
    back = view.to_scipy()
    assert (back != matrix.tocsr()).nnz == 0
    # Indices and values are the stored bytes.
    offsets, targets, weights = view.csr()
    assert back.indices.ctypes.data == targets.ctypes.data and back.data.ctypes.data == weights.ctypes.data
    assert (back @ np.ones(4)).tolist() == [3.0, 0.0, 4.0, 0.0]
    assert anden.from_scipy(matrix, weights=False).view().to_scipy().data.tolist() == [1.0, 1.0]
    with pytest.raises(anden.InvalidInput, match="2 rows and 3 columns"):
        anden.from_scipy(sparse.coo_array((2, 3)))
    with pytest.raises(TypeError, match="matrix is a sparse matrix"):
        anden.from_scipy(np.eye(2))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
def test_graphs_of_networkx_come_back(kind: str) -> None:
    nx = pytest.importorskip("networkx")
    graph = getattr(nx, kind)()
    graph.add_node("lone", size=3)
    graph.add_edge("a", "b", weight=1.5, kind="x")
    graph.add_edge("b", "a" if "Di" in kind else "c", weight=2.5)
    graph.add_edge("c", "c", weight=0.5)
    if "Multi" in kind:
        graph.add_edge("a", "b", weight=4.5)
    back = anden.from_networkx(graph).view().to_networkx()
    assert type(back) is type(graph)
    assert nx.utils.nodes_equal(back.nodes(data=True), graph.nodes(data=True))
    assert sorted(map(str, map(sorted_ends, back.edges(data=True)))) == sorted(
        map(str, map(sorted_ends, graph.edges(data=True)))
    )


def test_lists_of_networkx_come_back() -> None:
    nx = pytest.importorskip("networkx")
    graph = nx.DiGraph()
    graph.add_node(1, tags=["a", None], sizes=[1, 2], odd=[1, "a"], nested=[[1]])
    graph.add_node(2, tags=[], sizes=[3, 4])
    graph.add_edge(1, 2, shares=[1, 0.5])
    view = anden.from_networkx(graph).view()
    assert view.vertex_properties == {"tags": "string[]", "sizes": "i64[]"}
    back = view.to_networkx()
    assert dict(back.nodes(data=True)) == {
        1: {"tags": ["a", None], "sizes": [1, 2]},
        2: {"tags": [], "sizes": [3, 4]},
    }
    assert list(back.edges(data=True)) == [(1, 2, {"shares": [1.0, 0.5]})]


def test_columns_may_hold_lists() -> None:
    properties = {"tags": [["a"], None, ()], "sizes": [[1], [2.5], [None]], "none": [[], [], []]}
    view = anden.from_numpy([1, 2, 3], [2, 3, 4], properties=properties).view()
    assert view.edge_properties == {"tags": "string[]", "sizes": "f64[]", "none": "string[]"}
    assert view.edge_property("tags").tolist() == [["a"], None, []]
    assert view.edge_property("sizes").tolist() == [[1.0], [2.5], [None]]
    refused: list[tuple[list[Any], str]] = [([["a"], [1], []], "'x' holds lists of"), ([["a"], "b", []], "'x' holds")]
    for values, text in refused:
        with pytest.raises(TypeError, match=text):
            anden.from_numpy([1, 2, 3], [2, 3, 4], properties={"x": values})


def sorted_ends(edge: tuple[str, str, dict[str, Any]]) -> tuple[Any, ...]:
    return (*sorted(edge[:2]), sorted(edge[2].items()))


def test_graphs_of_networkx_without_weights() -> None:
    with pytest.raises(TypeError, match="graph is a graph of NetworkX, not list"):
        anden.from_networkx([])  # type: ignore[arg-type]
    nx = pytest.importorskip("networkx")
    view = anden.from_networkx(nx.path_graph(3)).view()
    assert (view.directed, view.weighted, sorted(view)) == (False, False, [0, 1, 2])
    assert len(anden.from_networkx(nx.Graph()).view()) == 0
    assert sorted(anden.from_networkx(nx.Graph([((0, 1), (0, 2))])).view()) == ["(0, 1)", "(0, 2)"]


def test_tables_are_appended() -> None:
    db = anden.from_numpy([1, 2], [2, 3])
    more = {"source": np.array([3, 4]), "target": np.array([4, 5])}
    report = db.append_files(more, remove={"source": [1], "target": [2]})
    assert report["snapshot"] == 2
    assert edges_of(db.view()) == [(2, 3), (3, 4), (4, 5)]
    pa = pytest.importorskip("pyarrow")
    db.append_files(pa.table({"source": [9], "target": [1]}))
    assert db.view().has_edge(9, 1)


def command() -> list[str]:
    """The command `anden` of this environment."""
    script = Path(sys.executable).with_name("anden")
    return [str(script)] if script.exists() else [sys.executable, "-m", "anden._cli"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_command_and_leave_nothing(tmp_path: Path, number: signal.Signals) -> None:
    arguments = [*command(), "load", str(tmp_path / "db"), "-"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        # More than a pipe holds, so the write ends only once the load reads.
        process.stdin.write(b"1 2\n" * 100_000)
        process.stdin.flush()
        process.send_signal(number)
        assert process.wait(10) == 130
        assert process.stderr.read().startswith(b"anden: interrupted")
    assert list(tmp_path.iterdir()) == []


def test_the_command_runs_in_process(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("1 2\n2 3\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command(), *arguments], cwd=tmp_path, capture_output=True, text=True)

    assert run("load", "db", "edges.txt", "--quiet").returncode == 0
    told = run("query", "db", "neighbors", "2")
    assert (told.returncode, told.stdout.strip()) == (0, "3")
    assert anden.open(tmp_path / "db", read_only=True).view().num_edges == 2
    missing, unknown = run("info", "nowhere"), run("frobnicate")
    assert (missing.returncode, unknown.returncode) == (1, 2)
    assert missing.stderr.startswith("anden: ") and unknown.stderr.startswith("anden: ")
    assert anden.__version__ in run("--version").stdout
