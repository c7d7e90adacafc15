"""Views: counts, queries, properties, filters, snapshots and windows, on graphs with known answers."""

from __future__ import annotations

import datetime
from pathlib import Path

import anden
import numpy as np
import pytest

UNREACHED = 2**32 - 1


@pytest.fixture
def chain() -> anden.View:
    """1 → 2 → 3 → 4, and 5 alone."""
    db = anden.create(None)
    db.append([1, 2, 3], [2, 3, 4])
    with db.transaction() as tx:
        tx.add_vertex(5)
    return db.view()


@pytest.fixture
def payments() -> anden.Database:
    """A multigraph with properties and string keys."""
    db = anden.create(None, ids="string", multigraph=True, edge_properties=True)
    with db.transaction() as tx:
        tx.add_edge("ann", "ben", amount=5, kind="card")
        tx.add_edge("ann", "ben", amount=70, kind="wire")
        tx.add_edge("ben", "cleo", amount=9, kind="wire")
        tx.add_vertex("ann", age=31, born=datetime.date(1995, 3, 1))
        tx.add_vertex("cleo", age=28)
    return db


def test_counts_and_container_manners(chain: anden.View) -> None:
    assert (chain.num_vertices, chain.num_edges, len(chain)) == (5, 3, 5)
    assert chain.directed and not chain.weighted and not chain.multigraph
    assert list(chain) == [1, 2, 3, 4, 5]
    assert 3 in chain and 9 not in chain and -1 not in chain
    assert chain[2] == chain.neighbors(2) == [3]
    assert bool(anden.create(None).view())


def test_neighbors_in_all_directions(chain: anden.View) -> None:
    assert chain.neighbors(2, "in") == [1]
    assert chain.neighbors(2, direction="both") == [1, 3]
    assert [chain.degree(2, way) for way in ("out", "in", "both")] == [1, 1, 2]
    with pytest.raises(anden.InvalidInput, match="did you mean 'both'"):
        chain.neighbors(2, "bth")


def test_ids_and_keys_translate(chain: anden.View) -> None:
    keys = chain.keys()
    assert keys.dtype == np.uint64
    assert [chain.key(chain.id(key)) for key in keys.tolist()] == keys.tolist()
    assert chain.ids([1, 4]).tolist() == [chain.id(1), chain.id(4)]
    with pytest.raises(anden.NotFound, match="vertex 77 does not exist") as error:
        chain.id(77)
    assert error.value.vertex == 77


def test_keys_of_removed_vertices_are_masked() -> None:
    db = anden.create(None)
    db.append([1, 2], [2, 3])
    with db.transaction() as tx:
        tx.remove_vertex(2)
    keys = db.view().keys()
    assert isinstance(keys, np.ma.MaskedArray)
    assert sorted(keys.compressed().tolist()) == [1, 3]


def test_paths_and_reach(chain: anden.View) -> None:
    assert chain.path(1, 4) == [1, 2, 3, 4]
    assert chain.path(4, 1) is None
    assert chain.path(3, 3) == [3]
    assert chain.reachable(1, 3) and not chain.reachable(3, 1)
    assert chain.khop(1, 2) == [2, 3]
    assert chain.fof(1) == [3]
    assert chain.shortest_paths(1, 3) == [[1, 2, 3]]
    assert chain.shortest_paths(5, 1) == []


def test_weighted_path_prefers_light_edges() -> None:
    db = anden.create(None, weighted=True)
    db.append([1, 1, 2], [3, 2, 3], weights=[10.0, 1.0, 2.0])
    g = db.view()
    assert g.path(1, 3) == [1, 3]
    assert g.path(1, 3, weighted=True) == [1, 2, 3]
    assert g.edge(1, 2) == {"weight": 1.0}
    assert g.weight_type == "f64"


def test_parallel_edges_with_properties(payments: anden.Database) -> None:
    g = payments.view()
    first, second = g.edges_between("ann", "ben")
    assert (first["amount"], second["amount"], second["kind"]) == (5, 70, "wire")
    assert first["number"] != second["number"]
    assert g.edge("ben", "cleo")["kind"] == "wire"
    with pytest.raises(anden.NotFound, match="no edge from cleo to ann"):
        g.edge("cleo", "ann")


def test_vertex_as_a_dict(payments: anden.Database) -> None:
    ann = payments.view().vertex("ann")
    assert (ann["key"], ann["out_degree"], ann["in_degree"]) == ("ann", 2, 0)
    assert ann["properties"] == {"age": 31, "born": datetime.date(1995, 3, 1)}


def test_property_columns(payments: anden.Database) -> None:
    g = payments.view()
    ages = g.vertex_property("age")
    assert isinstance(ages, np.ma.MaskedArray)
    assert ages[g.id("ann")] == 31 and ages.mask[g.id("ben")]
    born = g.vertex_property("born")
    assert born.dtype == np.dtype("datetime64[D]") and born[g.id("ann")] == np.datetime64("1995-03-01")
    assert sorted(g.edge_property("amount").tolist()) == [5, 9, 70]
    assert sorted(g.edge_property("kind").tolist()) == ["card", "wire", "wire"]
    assert g.vertex_properties == {"age": "i64", "born": "date"}
    assert g.edge_properties == {"amount": "i64", "kind": "string"}
    with pytest.raises(anden.NotFound, match='did you mean "age"'):
        g.vertex_property("agee")


def test_filters_chain(payments: anden.Database) -> None:
    g = payments.view()
    wires = g.filter(edges="kind = 'wire'")
    assert (wires.num_edges, g.num_edges) == (2, 3)
    large = wires.filter(edges="amount > 50")
    assert large.num_edges == 1 and large.neighbors("ann") == ["ben"]
    young = g.filter(vertices="age < 30")
    assert list(young) == ["cleo"]
    with pytest.raises(anden.NotFound, match="a filter leaves it out"):
        young.neighbors("ann")
    with pytest.raises(anden.InvalidInput):
        g.filter(edges="amount >")


def test_properties_serve_as_weights(payments: anden.Database) -> None:
    g = payments.view().with_weight("amount")
    assert g.weighted and g.path("ann", "cleo", weighted=True) == ["ann", "ben", "cleo"]
    distances = payments.view().sssp("ann", weight="amount")
    assert distances[g.id("cleo")] == 14
    with pytest.raises(anden.NotFound):
        g.with_weight("amounts")


def test_types_and_labels(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n2,Ben\n")
    (tmp_path / "cities.csv").write_text("id,name\n7,Rome\n")
    (tmp_path / "knows.csv").write_text("source,target\n1,2\n")
    (tmp_path / "lives.csv").write_text("source,target\n1,7\n2,7\n")
    db = anden.load(
        None,
        edges={"KNOWS": tmp_path / "knows.csv", "LIVES": tmp_path / "lives.csv"},
        vertices={"Person": tmp_path / "people.csv", "City": [tmp_path / "cities.csv"]},
    )
    g = db.view()
    assert g.known_types() == ["KNOWS", "LIVES"] and g.known_labels() == ["City", "Person"]
    assert g.types("KNOWS").num_edges == 1
    assert g.types(["KNOWS", "LIVES"]).num_edges == 3
    assert list(g.labels("Person")) == [1, 2]


def test_key_spaces_are_tuples(tmp_path: Path) -> None:
    (tmp_path / "likes.csv").write_text("source,target\n1,1\n2,1\n")
    db = anden.load(None, edges={"LIKES:person:message": tmp_path / "likes.csv"})
    g = db.view()
    assert g.neighbors(("person", 1)) == ["message:1"]
    assert ("person", "2") in g and ("city", 2) not in g
    with pytest.raises(anden.InvalidInput, match="key space"):
        g.neighbors(("a:b", 1))


def test_snapshots_by_number_name_and_object() -> None:
    db = anden.create(None)
    db.append([1], [2], name="monday")
    db.append([2], [3])
    first, second = db.snapshots()[-2:]
    assert (first.name, first.edges, second.edges, second.added) == ("monday", 1, 2, 1)
    assert first.time.tzinfo is not None
    for which in ("monday", first.number, first):
        assert db.view(snapshot=which).num_edges == 1
    window = db.view(window=(second.number, second))
    assert window.num_edges == 1 and window.neighbors(2) == [3]
    with pytest.raises(anden.NotFound, match="tuesday"):
        db.view(snapshot="tuesday")
    with pytest.raises(anden.InvalidInput):
        db.view(snapshot=1, window=(1, 2))


def test_rolling_windows() -> None:
    db = anden.create(None)
    for i in range(4):
        db.append([i], [i + 1])
    windows = db.rolling(2)
    # The first snapshot is the empty graph.
    assert len(windows) == 4
    assert [w.num_edges for w in windows] == [1, 2, 2, 2]


def test_views_do_not_change() -> None:
    db = anden.create(None)
    db.append([1], [2])
    before = db.view()
    with db.transaction() as tx:
        tx.add_edge(2, 3)
    assert (before.num_edges, db.view().num_edges) == (1, 2)


def test_exports_by_name_and_by_format(chain: anden.View, tmp_path: Path) -> None:
    assert chain.export(tmp_path / "edges.txt") == 3
    assert (tmp_path / "edges.txt").read_text().split() == ["1", "2", "2", "3", "3", "4"]
    chain.export(str(tmp_path / "edges.dat"), format="csv", vertices=tmp_path / "vertices.csv")
    assert (tmp_path / "edges.dat").read_text().splitlines()[0] == "source,target"
    assert len((tmp_path / "vertices.csv").read_text().split()) == 6
    with pytest.raises(anden.InvalidInput, match="did you mean 'csv'"):
        chain.export(tmp_path / "x", format="csvv")
    with pytest.raises(anden.InvalidInput, match="one file"):
        chain.export(tmp_path / "x.csv", vertices=tmp_path / "x.csv")


def test_degree_statistics(chain: anden.View) -> None:
    statistics = chain.degree_statistics()
    assert (statistics["max"], statistics["mean"]) == (1, 0.6)
    assert statistics["counts"] == [(0, 2), (1, 3)]


def test_reprs_answer_the_first_question(chain: anden.View, payments: anden.Database) -> None:
    assert "5 vertices, 3 edges" in repr(chain)
    page = chain._repr_html_()
    assert "<svg" in page and "5 vertices" in page
    assert "string keys" in repr(payments) and "<table>" in payments._repr_html_()
    assert "a part of" in repr(payments.view().filter(edges="amount > 1"))
    assert "Snapshot" in repr(payments.checkpoint(name="<b>"))
    assert "&lt;b&gt;" in payments._repr_html_()


@pytest.fixture
def friends() -> anden.View:
    """Two recommendations for 1: 8 by two neighbors, 7 by one."""
    db = anden.create(None)
    db.append([1, 1, 2, 2, 3, 8], [2, 3, 7, 8, 8, 1])
    return db.view()


def test_hops_have_directions_and_depths(friends: anden.View) -> None:
    assert friends.khop(8, 1, direction="in") == [2, 3]
    assert friends.khop(1, 1, direction="both") == [2, 3, 8]
    assert friends.khop(1, 2, depths=True) == [(2, 1), (3, 1), (7, 2), (8, 2)]
    assert friends.fof(1) == [7, 8] and friends.fof(1, depth=1) == [2, 3]
    assert friends.fof(1, ranked=True) == [(8, 2), (7, 1)]
    assert friends.common_neighbors(2, 3) == [8] and friends.common_neighbors(2, 3, "both") == [1, 8]
    assert friends.top_degrees(2) == [(1, 2), (2, 2)] and friends.top_degrees(1, "in") == [(8, 2)]
    with pytest.raises(anden.InvalidInput, match="depth 2"):
        friends.fof(1, depth=3, ranked=True)
    with pytest.raises(anden.InvalidInput, match="direction"):
        friends.khop(1, 1, direction="up")


def test_paths_have_directions_and_bounds(friends: anden.View) -> None:
    assert friends.path(7, 1) is None and friends.path(7, 1, direction="in") == [7, 2, 1]
    assert friends.path(1, 8, max_depth=1) is None and friends.path(1, 7, max_depth=2) == [1, 2, 7]
    assert friends.reachable(7, 1, direction="both") and not friends.reachable(1, 7, max_depth=1)
    assert friends.shortest_paths(8, 1, direction="in") == [[8, 2, 1], [8, 3, 1]]
    with pytest.raises(anden.InvalidInput, match="max_depth"):
        friends.path(1, 7, weighted=True, max_depth=1)


def test_induced_subgraphs_are_views(friends: anden.View) -> None:
    ego = friends.ego(1)
    assert sorted(ego) == [1, 2, 3] and ego.num_edges == 2
    assert friends.ego(7, 2, direction="in").num_edges == 2
    part = friends.subgraph([2, 7, 8])
    assert part.num_vertices == 3 and part.neighbors(2) == [7, 8] and 1 not in part
    assert part.wcc(details=True).sizes() == [(2, 3)]
    with pytest.raises(anden.NotFound, match="99"):
        friends.subgraph([1, 99])
