"""Tables as Arrow streams, and lists as NumPy arrays."""

from __future__ import annotations

import datetime
import gc
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anden


@pytest.fixture
def db() -> anden.Database:
    edges = {
        "source": ["ann", "ben", "ann"],
        "target": ["ben", "cleo", "cleo"],
        "weight": [1.5, 2.5, 3.5],
        "kind": ["knows", None, "likes"],
    }
    vertices = {"": {"key": ["ann", "dan"], "age": [30, 40]}}
    return anden.load(None, edges, ids="string", weights=True, vertices=vertices)


def test_edges_have_ends_weights_and_properties(db: anden.Database) -> None:
    edges = db.view().edges()
    assert edges.columns == ["source", "target", "weight", "kind"]
    assert (len(edges), edges.num_rows, bool(edges)) == (3, 3, True)
    columns = edges.to_numpy()
    rows = sorted(zip(*(columns[name].tolist() for name in edges.columns), strict=True), key=str)
    assert rows == [
        ("ann", "ben", 1.5, "knows"),
        ("ann", "cleo", 3.5, "likes"),
        ("ben", "cleo", 2.5, None),
    ]
    assert edges.types["weight"] == "Float64"
    assert "source LargeUtf8" in repr(edges)
    assert edges._repr_html_().count("<tr>") == 4


def test_columns_are_chosen_by_name(db: anden.Database) -> None:
    view = db.view()
    assert view.edges(["target", "weight"]).columns == ["target", "weight"]
    assert view.edges().select(["kind"]).columns == ["kind"]
    assert view.vertices("age").columns == ["age"]
    with pytest.raises(anden.NotFound, match="weigth.*weight"):
        view.edges(["weigth"])
    with pytest.raises(anden.InvalidInput, match="columns is empty"):
        view.edges([])
    with pytest.raises(TypeError, match="columns is a list of names, not int"):
        view.edges(7)  # type: ignore[arg-type]


def test_vertices_and_degrees(db: anden.Database) -> None:
    columns = db.view().vertices().to_numpy()
    ages = dict(zip(columns["key"].tolist(), columns["age"].tolist(), strict=True))
    assert ages == {"ann": 30, "ben": None, "cleo": None, "dan": 40}
    degrees = db.view().degrees().to_numpy()
    assert dict(zip(degrees["key"].tolist(), degrees["in_degree"].tolist(), strict=True))["cleo"] == 2


def test_large_tables_come_in_batches() -> None:
    number = 200_000
    view = anden.from_numpy(np.arange(number), np.arange(1, number + 1), ids="dense").view()
    sizes = [len(batch) for batch in view.edges()]
    assert len(sizes) > 2 and sum(sizes) == number and max(sizes) <= 1 << 16
    # A table can be read again, and two reads do not meet.
    first, second = iter(view.edges()), iter(view.edges())
    assert next(first).to_numpy()["target"][0] == next(second).to_numpy()["target"][0] == 1


def test_results_are_tables(db: anden.Database) -> None:
    view = db.view()
    hops = view.bfs("ann", details=True).table().to_numpy()
    assert dict(zip(hops["key"].tolist(), hops["value"].tolist(), strict=True)) == {
        "ann": 0,
        "ben": 1,
        "cleo": 1,
        "dan": None,
    }
    assert view.pagerank(details=True).table().columns == ["key", "value"]
    with pytest.raises(anden.Error, match="no values by vertex"):
        view.triangles(details=True).table()


def test_snapshots_and_changes_are_tables(db: anden.Database) -> None:
    db.append(["dan"], ["ann"], weights=[9.0], name="later")
    snapshots = db.snapshots_table().to_numpy()
    assert snapshots["number"].tolist() == [1, 2]
    assert snapshots["name"].tolist() == [None, "later"]
    assert snapshots["as_of"].tolist() == [None, None]
    changes = db.diff(1, 2).table().to_numpy()
    assert [changes[name].tolist() for name in ("change", "source", "target", "weight")] == [
        ["added"],
        ["dan"],
        ["ann"],
        [9.0],
    ]


def test_pyarrow_pandas_and_polars_read_tables(db: anden.Database) -> None:
    pa = pytest.importorskip("pyarrow")
    view = db.view()
    assert pa.table(view.edges()).num_rows == 3
    assert pa.schema(view.edges()).names == ["source", "target", "weight", "kind"]
    assert view.to_arrow().column_names == ["source", "target", "weight", "kind"]
    assert pa.table(view.bfs("ann", details=True)).column_names == ["key", "value"]
    reader = pa.RecordBatchReader.from_stream(view.edges(["weight"]))
    assert sum(batch.num_rows for batch in reader) == 3
    pandas = pytest.importorskip("pandas")
    assert isinstance(view.to_pandas(), pandas.DataFrame)
    assert view.edges().to_pandas()["weight"].sum() == 7.5
    polars = pytest.importorskip("polars")
    assert view.to_polars()["weight"].sum() == 7.5
    assert polars.DataFrame(view.vertices()).height == 4


def test_duckdb_joins_tables_and_results(db: anden.Database) -> None:
    duckdb = pytest.importorskip("duckdb")
    view = db.view()
    edges, ranks = view.edges(), view.pagerank(details=True)
    query = "SELECT source, target FROM edges JOIN ranks ON target = key ORDER BY value DESC, source"
    rows = duckdb.sql(query).fetchall()
    assert len(rows) == 3 and rows[0][1] == "cleo"
    del edges, ranks


def test_tables_of_a_closed_database_say_so(db: anden.Database) -> None:
    edges = db.view().edges()
    batches = iter(edges)
    db.close()
    for use in (edges.__len__, edges.to_numpy, batches.__next__, edges.__arrow_c_stream__):
        with pytest.raises(anden.Error, match="closed"):
            use()


def test_csr_shows_the_stored_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, 1000, (2, 20_000), dtype=np.uint32)
    for path in (None, tmp_path / "graph"):
        db = anden.from_numpy(src, dst, np.ones(20_000, np.float32), path=path, ids="dense")
        view = db.view()
        offsets, targets, weights = view.csr()
        again = db.view(snapshot=1).csr()[1]
        # The pointer is the same: nothing was copied.
        assert targets.ctypes.data == again.ctypes.data
        assert not targets.flags.writeable and not weights.flags.writeable
        assert (targets.dtype, weights.dtype, offsets.dtype) == (np.uint32, np.float32, np.int64)
        for vertex in (0, 17, 999):
            assert targets[offsets[vertex] : offsets[vertex + 1]].tolist() == view.neighbors(vertex)
        expected = targets.copy()
        # The arrays live longer than the view and the database.
        db.close()
        del view, db, again
        gc.collect()
        assert np.array_equal(targets, expected)


def test_csr_copies_lists_in_several_places() -> None:
    db = anden.from_edges([(0, 1), (0, 2), (2, 1)], ids="dense")
    before = db.view().csr()[1].ctypes.data
    with db.transaction() as tx:
        tx.add_edge(1, 0)
    offsets, targets = db.view().csr()
    assert targets.ctypes.data != before
    assert (offsets.tolist(), targets.tolist()) == ([0, 2, 3, 4], [1, 2, 0, 1])
    offsets, sources = db.view().csr("in")
    assert (offsets.tolist(), sources.tolist()) == ([0, 1, 3, 4], [1, 0, 2, 0])
    with pytest.raises(anden.InvalidInput, match="'both' is not one of"):
        db.view().csr("both")


def test_csr_without_in_edges_says_what_is_missing() -> None:
    view = anden.from_edges([(0, 1)], out_only=True).view()
    with pytest.raises(anden.Unsupported, match="out_only"):
        view.csr("in")


@pytest.mark.parametrize("kind", ["empty", "filtered"])
def test_csr_of_special_views(kind: str) -> None:
    options: dict[str, Any] = {"ids": "dense"}
    if kind == "empty":
        offsets, targets = anden.from_edges([], **options).view().csr()
        assert (offsets.tolist(), targets.tolist()) == ([0], [])
    else:
        view = anden.from_edges([(0, 1, 1.0), (0, 2, 5.0)], **options).view().filter(edges="weight > 2")
        offsets, targets, weights = view.csr()
        assert (offsets.tolist(), targets.tolist(), weights.tolist()) == ([0, 1, 1, 1], [2], [5.0])


def test_lists_come_back_as_lists() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"source": [1, 2], "target": [2, 3], "tags": [["a", None], []], "sizes": [[1, 2], None]})
    g = anden.from_arrow(table).view()
    edge = g.edges_between(1, 2)[0]
    assert (edge["tags"], edge["sizes"]) == (["a", None], [1, 2])
    assert g.edges_between(2, 3)[0]["tags"] == []
    assert g.edge_properties == {"tags": "string[]", "sizes": "i64[]"}
    assert g.edge_property("sizes").tolist() == [[1, 2], None]


def test_lists_leave_as_lists(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    days = [[datetime.date(2024, 2, 29), None], None, []]
    times = [[datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc)], [], None]
    columns = {
        "tags": [["a;b", None, ""], [], None],
        "sizes": [[1, -2], None, []],
        "shares": [[0.5, math.inf], [None], None],
        "flags": [[True, False], None, []],
        "days": days,
        "times": times,
    }
    table = pa.table({"source": [1, 2, 3], "target": [2, 3, 4], **columns})
    db = anden.from_arrow(table)
    edges = db.view().edges()
    assert (edges.types["tags"], edges.types["sizes"]) == ("LargeList(LargeUtf8)", "LargeList(Int64)")
    found = edges.to_arrow()
    assert {name: found[name].to_pylist() for name in columns} == columns
    assert pa.types.is_large_list(found.schema.field("days").type)
    assert edges.to_numpy()["tags"].tolist() == columns["tags"]
    assert [row for batch in edges for row in batch.to_numpy()["sizes"].tolist()] == columns["sizes"]
    # A predicate compares the text of a list, also in memory.
    for rows in (edges, db.view().edges_from(1)):
        assert rows.filter("tags = '[\"a;b\",null,\"\"]'").to_numpy()["source"].tolist() == [1]
        assert rows.filter("tags = '[]'").num_rows == (1 if rows is edges else 0)
    assert "a;b" in edges._repr_html_()
    again = anden.from_arrow(edges).view()
    assert again.edge_properties == db.view().edge_properties
    pq = pytest.importorskip("pyarrow.parquet")
    db.view().export(tmp_path / "edges.parquet")
    stored = pq.read_table(tmp_path / "edges.parquet")
    assert {name: stored[name].to_pylist() for name in columns} == columns
    assert pa.types.is_list(stored.schema.field("tags").type)
    db.view().export(tmp_path / "graph.arrow")
    loaded = anden.load(None, tmp_path / "graph.arrow").view()
    assert loaded.edge_properties == db.view().edge_properties
    assert loaded.edge_property("times").tolist() == columns["times"]


def test_lists_leave_as_lists_in_frames() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"source": [1, 2], "target": [2, 3], "tags": [["a", "b"], []]})
    view = anden.from_pandas(frame).view()
    assert view.edge_properties == {"tags": "string[]"}
    assert [list(tags) for tags in view.to_pandas()["tags"]] == [["a", "b"], []]
    pl = pytest.importorskip("polars")
    assert view.to_polars()["tags"].to_list() == [["a", "b"], []]
    assert view.to_polars().schema["tags"] == pl.List(pl.String)


def test_changed_lists_are_lists() -> None:
    db = anden.create(None)
    with db.transaction() as tx:
        tx.set(1, "tags", ["a"])
        tx.set(1, "name", "[]")
    db.checkpoint()
    with db.transaction() as tx:
        tx.set(1, "tags", ["a", None])
        tx.set(1, "name", "x")
    db.checkpoint()
    changes = {change["name"]: (change["old"], change["new"]) for change in db.diff(2, 3).changed_properties()}
    assert changes == {"tags": (["a"], ["a", None]), "name": ("[]", "x")}
