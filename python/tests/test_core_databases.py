"""Databases: opening, creating, loading, changing, comparing, closing."""

from __future__ import annotations

import datetime
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anden
import numpy as np
import pytest


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n2 3\n3 1\n3 4\n")
    return path


@pytest.fixture
def db(tmp_path: Path, edges: Path) -> anden.Database:
    return anden.load(tmp_path / "graph.anden", edges)


def test_load_open_and_close(tmp_path: Path, edges: Path) -> None:
    path = tmp_path / "graph.anden"
    with anden.load(path, edges, undirected=True) as db:
        assert db.path == path and not db.closed and not db.read_only
        assert (db.report["vertices"], db.report["edges"]) == (4, 4)
        assert db.options["directed"] is False
    assert db.closed and "closed" in repr(db)
    with anden.open(path, read_only=True, threads=1, memory="64M") as reader:
        assert reader.read_only and reader.report is None
        assert reader.options["memory"] == 64 << 20 and reader.options["threads"] == 1
        assert reader.view().num_edges == 4
        with pytest.raises(anden.ReadOnly):
            reader.checkpoint()
        with pytest.raises(anden.ReadOnly):
            reader.transaction()


def test_load_options_have_the_names_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "payments.csv"
    path.write_text("from,to,amount,cost\na,b,5,0.5\na,b,7,0.25\n")
    db = anden.load(
        None,
        path,
        ids="string",
        multigraph=True,
        weight_column="cost",
        properties=["amount"],
        property_types={"amount": "f64"},
        name="first",
    )
    g = db.view()
    assert [edge["weight"] for edge in g.edges_between("a", "b")] == [0.5, 0.25]
    assert g.edge_property("amount").dtype == np.float64
    assert db.snapshots()[0].name == "first"
    assert db.report["source_column"] == "from" and db.report["properties"] == ["amount"]


def test_load_takes_a_delimiter(tmp_path: Path) -> None:
    (tmp_path / "edges.dat").write_text("source~target\n1~2\n2~3\n")
    db = anden.load(None, tmp_path / "edges.dat", delimiter="~")
    assert db.view().num_edges == 2
    with pytest.raises(anden.InvalidInput, match="punctuation"):
        anden.load(None, tmp_path / "edges.dat", delimiter="ab")


def test_load_takes_null_words_and_epochs(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target,n,time\n1,2,NA,1300000000\n2,3,7,NULL\n")
    options = {"null": ["NA", "NULL"], "property_types": {"time": "epoch_s"}}
    g = anden.load(None, tmp_path / "edges.csv", **options).view()
    assert g.edges_between(1, 2)[0].get("n") is None and g.edges_between(2, 3)[0]["n"] == 7
    assert g.edge_property("time").dtype == np.dtype("datetime64[us]")
    assert anden.load(None, tmp_path / "edges.csv", null="NA").view().edge_property("n").dtype == np.int64


def test_empty_text_is_a_key_by_option(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\n,a\n")
    with pytest.raises(anden.InvalidInput, match="edges.csv:3: expected a source, .*empty_ids"):
        anden.load(None, tmp_path / "edges.csv", ids="string")
    with pytest.raises(anden.InvalidInput, match="empty_ids .*ids.*string"):
        anden.load(None, tmp_path / "edges.csv", empty_ids=True)
    db = anden.load(None, tmp_path / "edges.csv", ids="string", empty_ids=True)
    assert db.view().neighbors("") == ["a"]
    with pytest.raises(anden.InvalidInput, match="empty_ids"):
        db.append(["b"], [""])
    db.append(["b"], [""], empty_ids=True)
    assert db.view().neighbors("b") == [""]
    assert anden.from_edges([("", "x")], empty_ids=True).view().has_edge("", "x")


def test_names_of_edges_of_neptune_are_kept(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("~id,~from,~to,~label\ne1,a,b,knows\n")
    g = anden.load(None, tmp_path / "edges.csv").view()
    assert g.edges_between("a", "b")[0]["~id"] == "e1"
    g.export(tmp_path / "back.csv", format="neptune", vertices=tmp_path / "vertices.csv")
    assert (tmp_path / "back.csv").read_text() == "~from,~to,~id,~label\na,b,e1,knows\n"


def test_files_of_neo4j_and_neptune_come_back(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id:ID(P),name:string,:LABEL\n1,Ann,Person\n2,Bob,Person;Admin\n")
    (tmp_path / "posts.csv").write_text(":ID(Post),:LABEL\n1,Post\n")
    (tmp_path / "likes.csv").write_text(":START_ID(P),:END_ID(Post),:TYPE,since:int\n1,1,LIKES,2020\n2,1,LIKES,\n")
    files = [tmp_path / name for name in ("likes.csv", "people.csv", "posts.csv")]
    g = anden.load(None, *files).view()
    assert sorted(g.neighbors("Post:1", direction="in")) == ["P:1", "P:2"]
    assert g.vertex("P:2")["properties"]["labels"] == "Person;Admin"
    for form in ("neo4j", "neptune"):
        edges, vertices = tmp_path / f"{form}-edges.csv", tmp_path / f"{form}-vertices.csv"
        g.export(edges, format=form, vertices=vertices)
        again = anden.load(None, edges, vertices).view()
        assert again.num_vertices == 3 and again.vertex("P:1")["properties"] == {"name": "Ann", "labels": "Person"}
        assert again.edges_between("P:1", "Post:1")[0]["since"] == 2020


def test_pandas_and_networkx_read_files_of_neo4j(tmp_path: Path) -> None:
    pandas, nx = pytest.importorskip("pandas"), pytest.importorskip("networkx")
    (tmp_path / "likes.csv").write_text(":START_ID(P),:END_ID(Post),:TYPE,since:int\n1,1,LIKES,2020\n2,1,LIKES,\n")
    anden.load(None, tmp_path / "likes.csv").view().export(tmp_path / "edges.csv", format="neo4j")
    frame = pandas.read_csv(tmp_path / "edges.csv")
    assert list(frame.columns) == [":START_ID", ":END_ID", ":TYPE", "since:long"]
    graph = nx.from_pandas_edgelist(frame, ":START_ID", ":END_ID", ":TYPE", nx.DiGraph)
    assert dict(graph.edges["P:2", "Post:1"]) == {":TYPE": "LIKES"} and graph.number_of_edges() == 2


@pytest.mark.parametrize("order", ["auto", "input", "degree", "hub", "bfs"])
def test_answers_do_not_depend_on_the_order_of_ids(edges: Path, order: str) -> None:
    g = anden.load(None, edges, order=order).view()
    first = {"auto": 1, "input": 1, "degree": 3, "hub": 3, "bfs": 3}[order]
    assert g.keys()[0] == first and g.id(first) == 0
    assert list(g.neighbors(3)) == [1, 4] and list(g.neighbors(3, "both")) == [1, 2, 4]
    hops = g.bfs(1)
    assert {int(key): int(hops[g.id(int(key))]) for key in g.keys()} == {1: 0, 2: 1, 3: 2, 4: 3}
    assert [key for key, _ in g.kcore(details=True).top(3)] == [1, 2, 3]


def test_contradicting_orders_of_ids_are_refused(edges: Path) -> None:
    assert list(anden.load(None, edges, order="input", io_order=True).view().keys()) == [1, 2, 3, 4]
    with pytest.raises(anden.InvalidInput, match="io_order=True.*order='bfs'"):
        anden.load(None, edges, order="bfs", io_order=True)
    with pytest.raises(anden.InvalidInput, match="order degree.*ids dense"):
        anden.load(None, edges, order="degree", ids="dense")
    with pytest.raises(anden.InvalidInput, match="fixed when a graph is loaded"):
        anden.load(None, edges).append_files(edges, order="hub")


def test_create_in_memory_and_on_disk(tmp_path: Path) -> None:
    with anden.create(tmp_path / "a.anden", directed=False, weight_type="u32", ids="dense", out_only=False) as db:
        db.append([0, 1], [1, 2], weights=[4, 5])
        assert db.view().weight_type == "u32"
    with pytest.raises(anden.Exists):
        anden.create(tmp_path / "a.anden")
    assert anden.create().path is None


def test_append_arrays_of_all_kinds() -> None:
    db = anden.create(None, weighted=True)
    report = db.append(np.array([1, 2], dtype=np.int32), np.array([2, 3], dtype=np.uint64), weights=[0.5, 1])
    assert (report["added"], report["edges"]) == (2, 2)
    strided = np.arange(20, dtype=np.int64)[::2]
    db.append(strided, strided + 1, weights=np.ones(10, dtype=np.float32)[:])
    fixed = np.array([30, 31])
    fixed.flags.writeable = False
    report = db.append(fixed, fixed + 1, weights=(1.0, 2.0), removed=([1], [2]), name="third")
    assert report["removed"] == 1 and db.snapshots()[-1].name == "third"
    assert db.append(removed=([30], [31]))["removed"] == 1
    assert not db.view().has_edge(30, 31)


def test_append_files_and_apply_files(db: anden.Database, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("4 5\n")
    (tmp_path / "gone.txt").write_text("1 2\n")
    report = db.append_files(tmp_path / "more.txt", remove=tmp_path / "gone.txt", name="second")
    assert (report["added"], report["removed"]) == (1, 1)
    (tmp_path / "updates.txt").write_text("+ 7 8\n- 2 3\nv+ 9\np 9 name nine\n")
    report = db.apply(tmp_path / "updates.txt", batch=2, durability="none")
    assert (report["updates"], report["transactions"]) == (4, 2)
    g = db.view()
    assert g.has_edge(7, 8) and not g.has_edge(2, 3) and g.vertex(9)["properties"] == {"name": "nine"}
    (tmp_path / "bad.txt").write_text("+ 1\n")
    with pytest.raises(anden.InvalidInput, match="bad.txt"):
        db.apply(tmp_path / "bad.txt")


def test_snapshots_merge_drop_and_retain(db: anden.Database) -> None:
    for i in range(5):
        db.append([10 + i], [11 + i])
    with db.transaction() as tx:
        tx.add_edge(50, 51)
    made = db.checkpoint(name="named")
    assert made.name == "named" and db.snapshots()[-1] == made
    assert db.merge(newest=2)["bytes_written"] > 0
    assert db.merge()["deltas_after"] == 0
    assert db.drop(2, "named") == [2, made.number]
    assert db.retention == "all"
    dropped = db.retain("last:2")
    assert len(dropped) > 0 and len(db.snapshots()) <= 3
    assert db.retain("days:30", force=True) == [] and db.retention == "days:30"
    assert db.held_back_snapshots == []
    with db.transaction() as tx:
        tx.add_edge(60, 61)
    # A commit that no snapshot has counts too; each edge is in an out-list and an in-list.
    report = db.verify()
    assert report["edges"] == db.view().num_edges and report["arcs"] == 2 * report["edges"]
    stats = db.stats()
    assert stats["storage"]["bytes"] > 0 and stats["commits"]["commits"] == 2


def test_replica_follows_by_the_change_feed(tmp_path: Path) -> None:
    primary = anden.create(tmp_path / "primary", ids="string", weighted=True, edge_properties=True, multigraph=True)
    primary.set_keep_wal("8M")
    assert (primary.keep_wal, primary.epoch, primary.oldest_epoch) == (8 << 20, 0, 0)
    with primary.transaction() as tx:
        tx.add_edge("a", "b", 1.5, kind="road")
    with primary.transaction() as tx:
        tx.set("a", "size", 3)
        tx.remove_vertex("b")
    primary.checkpoint()
    sets = list(primary.changes())
    assert [one.epoch for one in sets] == [1, 2] and repr(sets[0]) == "ChangeSet(epoch=1)"
    edge = {"op": "add_edge", "source": "a", "target": "b", "weight": 1.5, "number": 0, "row": 0}
    assert sets[0].changes()[-1] == edge | {"properties": {"kind": "road"}}
    assert sets[1].changes() == [
        {"op": "new_property", "of": "vertices", "name": "size", "type": "i64"},
        {"op": "set_vertex_property", "vertex": "a", "name": "size", "value": 3},
        {"op": "remove_vertex", "vertex": "b"},
    ]
    replica = anden.create(tmp_path / "replica", ids="string", weighted=True, edge_properties=True, multigraph=True)
    with pytest.raises(anden.InvalidInput, match="those of epoch 1 come first"):
        replica.apply_changes(sets[1])
    assert [replica.apply_changes(one) for one in primary.changes(since=replica.epoch)] == [True, True]
    assert not replica.apply_changes(sets[1])
    assert list(replica.view()) == list(primary.view()) and replica.epoch == primary.epoch == 2
    reader = anden.open(tmp_path / "primary", read_only=True)
    assert [one.epoch for one in reader.changes(since=1)] == [2]


def test_replica_follows_over_appends_and_checkpoints(tmp_path: Path) -> None:
    kind: dict[str, Any] = {"weighted": True, "edge_properties": True, "multigraph": True}
    primary = anden.create(tmp_path / "primary", **kind)
    replica = anden.create(tmp_path / "replica", **kind)
    with primary.transaction() as tx:
        tx.add_edge(1, 2, 1.5, kind="road")
        tx.add_edge(1, 2, 2.5)
    primary.append([2, 3], [3, 4], weights=[1.0, 2.0])
    with primary.transaction() as tx:
        tx.set(1, "size", 3)
        tx.remove_vertex(4)
    primary.checkpoint()
    sets = list(primary.changes(since=0))
    assert [(one.epoch, one.net) for one in sets] == [(1, True), (2, True), (3, True)]
    assert repr(sets[0]) == "ChangeSet(epoch=1, net)" and primary.oldest_epoch == 3
    edge = {"op": "add_edge", "source": 1, "target": 2, "weight": 1.5, "number": 0, "row": 0}
    assert sets[0].changes()[3] == edge | {"properties": {"kind": "road"}}
    with pytest.raises(anden.InvalidInput, match="the net changes since epoch 1, and this database has epoch 0"):
        replica.apply_changes(sets[1])
    assert [replica.apply_changes(one) for one in sets] == [True, True, True]
    assert replica.epoch == 3 and list(replica.view()) == list(primary.view())
    assert replica.view().vertex(1) == primary.view().vertex(1)
    assert [snapshot.epoch for snapshot in replica.snapshots()] == [0, 1, 2, 3]


def test_lost_changes_are_named(tmp_path: Path) -> None:
    db = anden.create(tmp_path / "db")
    db.apply([anden.Update.add_edge(1, 2)])
    assert len(list(db.changes(since=0))) == 1
    db.append([2], [3])
    assert [snapshot.epoch for snapshot in db.snapshots()] == [0, 1, 2]
    db.drop(2)
    with pytest.raises(anden.EpochGone, match="since epoch 1") as gone:
        next(db.changes(since=1))
    assert (gone.value.since, gone.value.earlier, gone.value.later) == (1, 0, 2)
    assert list(db.changes()) == []
    with pytest.raises(anden.InvalidInput, match="the last commit has epoch 2"):
        db.changes(since=3)
    with pytest.raises(anden.InvalidInput, match="in memory"):
        anden.create(None).changes(since=0)


def test_lease_keeps_a_snapshot_from_drops(tmp_path: Path) -> None:
    db = anden.create(tmp_path / "db")
    for key in range(3):
        db.append([key], [key + 1], name=f"day {key}")
    reader = anden.open(tmp_path / "db", read_only=True)
    with reader.lease("day 0") as lease:
        assert lease.snapshot == 2
        reader.close()
        held = db.leases()
        assert [(one["snapshot"], one["process"]) for one in held] == [(2, os.getpid())]
        with pytest.raises(anden.Locked, match="cannot drop snapshot 2: process"):
            db.drop(2)
    assert db.leases() == [] and repr(lease) == "Lease(snapshot=2, released)"
    lease.release()
    with pytest.raises(anden.Error, match="was released"), lease:
        pass
    db.drop(2)
    with pytest.raises(anden.NotFound):
        db.lease(2)


def test_lease_of_a_killed_process_ends(tmp_path: Path) -> None:
    db = anden.create(tmp_path / "db")
    db.append([1], [2])
    code = "import anden, sys; a = anden.open(sys.argv[1], read_only=True).lease(1); print(1, flush=True); input()"
    command = [sys.executable, "-c", code, str(tmp_path / "db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "1\n"
        assert [one["process"] for one in db.leases()] == [process.pid]
        with pytest.raises(anden.Locked, match=str(process.pid)):
            db.drop(1)
        process.kill()
    db.drop(1)


def test_metrics_count_commits_and_gauge_sizes(tmp_path: Path) -> None:
    db = anden.create(tmp_path / "db")
    for key in range(3):
        db.apply([anden.Update.add_edge(key, key + 1)])
    metrics = db.metrics()
    assert (metrics["epoch"], metrics["snapshots"], metrics["read_only"]) == (3, 1, False)
    assert (metrics["commits"]["commits"], metrics["memtable"]["added"]) == (3, 3)
    latencies = metrics["commits"]["latency_seconds"]
    assert latencies["sync"]["count"] == 3 and latencies["none"]["count"] == 0
    buckets = list(latencies["sync"]["buckets"].items())
    assert buckets[-1] == (float("inf"), 3) and buckets == sorted(buckets)
    assert metrics["wal"]["syncs"] > 0 and metrics["wal"]["sync_seconds"] > 0
    assert metrics["checkpoints"]["running"] is None and metrics["write_error"] is None
    text = db.prometheus({"database": 'a "b"'})
    assert 'anden_commits_total{database="a \\"b\\""} 3\n' in text
    assert "# TYPE anden_commit_latency_seconds histogram\n" in db.prometheus()
    db.checkpoint()
    stats = db.stats()
    assert stats["checkpoints"]["succeeded"] == 1 and stats["storage"]["deltas"] == 1
    reader = anden.open(tmp_path / "db", read_only=True)
    assert reader.metrics()["read_only"] and "anden_commits_total" not in reader.prometheus()


def test_diff_between_snapshots_and_databases(db: anden.Database) -> None:
    first = db.snapshots()[-1]
    db.append([8], [9], removed=([1], [2]))
    changes = db.diff(first, db.snapshots()[-1])
    assert (changes.num_added, changes.num_removed) == (1, 1)
    assert list(changes.added()) == [(8, 9)] and list(changes.removed()) == [(1, 2)]
    assert changes.added_vertices() == [8, 9] and changes.removed_vertices() == []
    db.apply([anden.Update.set_vertex(1, "age", 3)])
    db.checkpoint()
    numbers = [one.number for one in db.snapshots()]
    assert db.diff(numbers[-2], numbers[-1]).changed_properties() == [
        {"vertex": 1, "name": "age", "old": None, "new": 3}
    ]
    other = anden.create(None)
    other.append([1], [2])
    across = db.diff(first, other.snapshots()[-1], other=other)
    assert (across.num_added, across.num_removed) == (0, 3)
    weighted = anden.create(None, weighted=True)
    weighted.append([1], [2], weights=[2.5])
    assert list(weighted.diff(1, weighted.snapshots()[-1]).added()) in ([(1, 2, 2.5)], [])


def test_reader_follows_a_writer(tmp_path: Path, edges: Path) -> None:
    writer = anden.load(tmp_path / "graph.anden", edges)
    reader = anden.open(tmp_path / "graph.anden", read_only=True)
    with pytest.raises(anden.Locked):
        anden.open(tmp_path / "graph.anden")
    writer.append([7], [8])
    assert 7 not in reader.view()
    assert reader.refresh() and 7 in reader.view()
    assert not reader.refresh()


def test_prepared_forms_are_stored_and_used(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    with anden.from_numpy(random.integers(0, 99, 999), random.integers(0, 99, 999), path=tmp_path / "db") as db:
        wanted = db.view().lcc()
        report = db.prepare("lcc", "bfs")
        assert report["without"] == ["bfs"] and len(report["forms"]) == 1
        form = report["forms"][0]
        assert (form["form"], form["kernels"], form["stored_before"]) == ("oriented", ["lcc"], False)
        assert form["bytes"] > 0 and form["seconds"] >= 0
        assert all(form["stored_before"] for form in db.prepare("lcc")["forms"])
    with anden.open(tmp_path / "db", read_only=True) as db:
        assert (db.view().lcc() == wanted).all() and db.verify()["files"] > 0
        with pytest.raises(anden.ReadOnly):
            db.prepare()


def test_backups_name_their_parents(tmp_path: Path) -> None:
    with anden.create(tmp_path / "db") as db:
        db.append([1, 2], [2, 3])
        full = db.backup(tmp_path / "full")
        assert full["parent"] is None and full["bytes"] == full["state_bytes"]
        increment = db.backup(tmp_path / "increment.tar.zst", since=tmp_path / "full", limit_rate="1G")
        assert increment["parent"] == full["backup"] and increment["bytes"] < full["bytes"]
        with pytest.raises(anden.Error, match="exists already"):
            db.backup(tmp_path / "full")
    backups = [tmp_path / "full", tmp_path / "increment.tar.zst"]
    with anden.restore(tmp_path / "restored", *backups, threads=1) as restored:
        assert list(restored.view().neighbors(2)) == [3]
        restored.append([3], [4])
    with pytest.raises(anden.Error, match="not named before it"):
        anden.restore(tmp_path / "other", backups[1])
    with pytest.raises(anden.InvalidInput, match="needs a backup"):
        anden.restore(tmp_path / "other")


def test_repairs_list_what_is_lost(tmp_path: Path) -> None:
    with anden.create(tmp_path / "db") as db:
        db.append([1, 2], [2, 3])
        db.checkpoint()
    report = anden.repair(tmp_path / "db", tmp_path / "whole", threads=1)
    assert report["losses"] == [] and report["edges"] == 2
    with anden.open(tmp_path / "whole") as whole:
        assert list(whole.view().neighbors(2)) == [3]
    for file in (tmp_path / "db").glob("delta-*"):
        file.unlink()
    report = anden.repair(tmp_path / "db", tmp_path / "part")
    assert {loss["kind"] for loss in report["losses"]} == {"snapshot"} and report["edges"] == 0
    assert all(loss["text"].startswith("snapshot ") for loss in report["losses"])
    with pytest.raises(anden.Exists):
        anden.repair(tmp_path / "db", tmp_path / "part")


def test_closed_databases_raise(db: anden.Database) -> None:
    g, tx = db.view(), db.transaction()
    changes = db.diff(1, 1)
    result = g.pagerank(details=True)
    ranks = result.values
    db.close()
    db.close()
    calls: list[Callable[[], Any]] = [
        lambda: db.view(),
        db.snapshots,
        db.transaction,
        db.merge,
        db.prepare,
        db.verify,
        db.stats,
        db.metrics,
        db.prometheus,
        db.__enter__,
        lambda: db.append([1], [2]),
        lambda: db.submit([]),
        lambda: db.options,
        lambda: g.num_edges,
        lambda: g.neighbors(1),
        g.wcc,
        g.keys,
        lambda: list(g),
        lambda: 1 in g,
        lambda: len(g),
        lambda: g.filter(),
        lambda: g._repr_html_(),
        changes.added,
        lambda: changes.num_added,
        lambda: result.top(),
        lambda: result[1],
        lambda: result.keys,
    ]
    for call in calls:
        with pytest.raises(anden.Error, match="was closed"):
            call()
    with pytest.raises(anden.Error, match="ended: its database was closed"):
        tx.add_edge(1, 2)
    assert ranks.sum() > 0 and "closed" in repr(g)


def test_view_keeps_its_database_open(tmp_path: Path, edges: Path) -> None:
    anden.load(tmp_path / "graph.anden", edges).close()
    g = anden.open(tmp_path / "graph.anden").view()
    gc.collect()
    assert g.num_edges == 4
    del g
    gc.collect()
    anden.open(tmp_path / "graph.anden").close()


def test_forgotten_handle_closes_cleanly(tmp_path: Path, edges: Path) -> None:
    code = (
        "import anden, sys; db = anden.load(sys.argv[1], sys.argv[2]); tx = db.transaction(); tx.add_edge(8, 9);"
        "tx.commit(); left = db.transaction(); g = db.view()"
    )
    path = tmp_path / "graph.anden"
    subprocess.run([sys.executable, "-c", code, str(path), str(edges)], check=True, timeout=60)
    with anden.open(path, snapshots_only=True) as db:
        assert db.view().has_edge(8, 9), "the exit made a snapshot"


HOSTILE: list[tuple[Callable[[anden.Database, Path], Any], type[BaseException], str]] = [
    (lambda db, tmp: anden.open(tmp / "missing"), anden.NotFound, "missing"),
    (lambda db, tmp: anden.open(5), TypeError, "int"),
    (lambda db, tmp: anden.open(tmp, red_only=True), TypeError, "did you mean 'read_only'"),
    (lambda db, tmp: anden.open(db.path, read_only=True, memory="12Q"), anden.InvalidInput, "12Q"),
    (lambda db, tmp: anden.open(db.path, read_only=True, memory=-1), anden.InvalidInput, "-1"),
    (lambda db, tmp: anden.open(db.path, read_only=True, threads=-1), (OverflowError, anden.InvalidInput), "threads"),
    (lambda db, tmp: anden.open(db.path, read_only=True, threads=10**6), anden.InvalidInput, "1000000"),
    (lambda db, tmp: anden.open(db.path, read_only=True, io="mmpa"), anden.InvalidInput, "did you mean 'mmap'"),
    (lambda db, tmp: anden.create(None, ids="intger"), anden.InvalidInput, "did you mean 'integer'"),
    (lambda db, tmp: anden.create(None, weight_type="f16"), anden.InvalidInput, "f16"),
    (lambda db, tmp: anden.create(None, directed="yes"), TypeError, "directed"),
    (lambda db, tmp: anden.create(None, directed=False, ordered=True), anden.InvalidInput, "ordered"),
    (lambda db, tmp: anden.load(None), anden.InvalidInput, "needs a file"),
    (lambda db, tmp: anden.load(None, tmp / "missing.txt"), anden.NotFound, "missing.txt"),
    (lambda db, tmp: anden.load(None, 7), TypeError, "int"),
    (lambda db, tmp: anden.load(None, tmp / "edges.txt", format="cvs"), anden.InvalidInput, "did you mean 'csv'"),
    (lambda db, tmp: anden.load(None, tmp / "edges.txt", directed=True, undirected=True), anden.InvalidInput, "both"),
    (lambda db, tmp: anden.load(None, tmp / "edges.txt", weights=True), anden.InvalidInput, "edges.txt"),
    (lambda db, tmp: anden.load(None, edges=tmp / "edges.txt"), TypeError, "dict"),
    (lambda db, tmp: anden.load(None, tmp / "edges.txt", property_types={"a": "i7"}), anden.InvalidInput, "i7"),
    (lambda db, tmp: db.append([1, 2], [3]), anden.InvalidInput, "one length|values"),
    (lambda db, tmp: db.append([1], [-3]), anden.InvalidInput, "-3"),
    (lambda db, tmp: db.append([1], [2**80]), (anden.InvalidInput, TypeError, OverflowError), ""),
    (lambda db, tmp: db.append([1], [1.5]), anden.InvalidInput, "1.5"),
    (lambda db, tmp: db.append(["x"], ["y"]), anden.InvalidInput, "x"),
    (lambda db, tmp: db.append([1], [2], weights=[1.0]), anden.Error, "weight"),
    (lambda db, tmp: db.append(np.zeros((2, 2), dtype=int), np.zeros((2, 2), dtype=int)), anden.InvalidInput, "dimen"),
    (lambda db, tmp: db.append(np.array([1j]), [2]), TypeError, "complex"),
    (lambda db, tmp: db.append([1]), TypeError, ""),
    (lambda db, tmp: db.append(), TypeError, "sources"),
    (lambda db, tmp: db.append([1], [2], name="12"), anden.InvalidInput, "12"),
    (lambda db, tmp: db.append([1], [2], removed=([1],)), TypeError, "removed"),
    (lambda db, tmp: db.submit([1]), TypeError, r"updates\[0\]"),
    (lambda db, tmp: db.submit(3), TypeError, "int"),
    (lambda db, tmp: db.submit([], durability="x"), anden.InvalidInput, "x"),
    (lambda db, tmp: db.apply(tmp / "missing"), anden.NotFound, "missing"),
    (lambda db, tmp: db.apply([], batch=0), anden.InvalidInput, "batch"),
    (lambda db, tmp: db.transact(5), TypeError, "5"),
    (lambda db, tmp: db.checkpoint(name="1"), anden.InvalidInput, ""),
    (lambda db, tmp: db.merge(newest=0), anden.InvalidInput, "newest"),
    (lambda db, tmp: db.prepare(1), TypeError, "kernels"),
    (lambda db, tmp: db.prepare("pagerang"), anden.InvalidInput, "pagerang"),
    (lambda db, tmp: db.drop(), TypeError, "snapshots"),
    (lambda db, tmp: db.drop(17), anden.NotFound, "17"),
    (lambda db, tmp: db.drop(-1), anden.InvalidInput, "-1"),
    (lambda db, tmp: db.drop(1.5), TypeError, "float"),
    (lambda db, tmp: db.retain("last:0"), anden.InvalidInput, "last:0"),
    (lambda db, tmp: db.retain(3), TypeError, ""),
    (lambda db, tmp: db.diff(1, 99), anden.NotFound, "99"),
    (lambda db, tmp: db.diff(1, 1, other="x"), TypeError, "other"),
    (lambda db, tmp: db.view(window=3), TypeError, "window"),
    (lambda db, tmp: db.view(window=(5, 6)), anden.NotFound, "5"),
    (lambda db, tmp: db.view(snapshot=2.5), TypeError, "float"),
    (lambda db, tmp: db.rolling(0), anden.InvalidInput, "0"),
    (lambda db, tmp: db.create_index("edge", "x"), anden.Unsupported, "edge"),
    (lambda db, tmp: db.create_index("vertex", "x"), anden.NotFound, "x"),
    (lambda db, tmp: db.drop_index("vertex", "x"), anden.NotFound, "x"),
    (lambda db, tmp: db.view().vertex_property(5), TypeError, ""),
    (lambda db, tmp: db.view().key(10**12), anden.InvalidInput, "1000000000000"),
    (lambda db, tmp: db.view().key("x"), TypeError, "'x'"),
    (lambda db, tmp: db.view().key(77), anden.NotFound, "77"),
    (lambda db, tmp: db.view().ids([1, "zzz"]), anden.NotFound, "zzz"),
    (lambda db, tmp: db.view().types("x"), anden.InvalidInput, "types"),
    (lambda db, tmp: db.view().with_prefetch("of"), anden.InvalidInput, "did you mean 'off'"),
    (lambda db, tmp: db.view().find_vertices("name", 1), anden.NotFound, "name"),
    (lambda db, tmp: db.view().export(tmp / "no" / "x.csv"), anden.Error, ""),
    (lambda db, tmp: db.view().export(5), TypeError, "int"),
    (lambda db, tmp: anden.View(), TypeError, ""),
    (lambda db, tmp: anden.set_progress(5), TypeError, ""),
]


@pytest.mark.parametrize(("call", "error", "text"), HOSTILE)
def test_hostile_arguments_of_databases(
    db: anden.Database, tmp_path: Path, call: Callable[[anden.Database, Path], Any], error: Any, text: str
) -> None:
    before = db.view().num_edges
    with pytest.raises(error, match=text or None):
        call(db, tmp_path)
    assert db.view().num_edges == before


def test_nan_weights_are_refused() -> None:
    db = anden.create(None, weighted=True)
    with pytest.raises(anden.InvalidInput, match="(?i)nan"):
        db.append([1], [2], weights=[float("nan")])
    with pytest.raises(anden.InvalidInput, match="(?i)nan"), db.transaction() as tx:
        tx.add_edge(1, 2, float("nan"))
    assert db.view().num_edges == 0


def test_damage_is_corrupt(tmp_path: Path, edges: Path) -> None:
    path = tmp_path / "graph.anden"
    anden.load(path, edges).close()
    manifest = path / "MANIFEST"
    data = bytearray(manifest.read_bytes())
    data[len(data) // 2] ^= 0xFF
    manifest.write_bytes(data)
    with pytest.raises(anden.Corrupt):
        anden.open(path)


def test_exceptions_are_standard_ones_too() -> None:
    assert issubclass(anden.NotFound, LookupError) and issubclass(anden.InvalidInput, ValueError)
    assert issubclass(anden.Io, OSError) and issubclass(anden.MemoryLimit, MemoryError)
    for name in anden.__all__:
        found = getattr(anden, name)
        if isinstance(found, type) and issubclass(found, Exception):
            assert issubclass(found, anden.Error) and found.__module__ == "anden" and found.__doc__


def test_snapshot_of_another_database_is_refused(db: anden.Database) -> None:
    other = anden.create(None)
    other.append([1], [2])
    foreign = other.snapshots()[0]
    calls: list[Callable[[], Any]] = [
        lambda: db.view(snapshot=foreign),
        lambda: db.view(window=(1, foreign)),
        lambda: db.diff(1, foreign),
        lambda: db.diff(foreign, 1),
        lambda: db.drop(foreign),
    ]
    for call in calls:
        with pytest.raises(anden.InvalidInput, match="belongs to another database"):
            call()
    assert db.diff(1, foreign, other=other).snapshots == (1, 1)


def test_snapshots_get_other_names() -> None:
    db = anden.create(None)
    db.append([1], [2])
    db.append([2], [3])
    numbers = [snapshot.number for snapshot in db.snapshots()]
    assert db.rename(numbers[-1], "monday") == numbers[-1]
    assert db.view(snapshot="monday").num_edges == 2
    with pytest.raises(anden.Error, match="monday"):
        db.rename(numbers[-2], "monday")
    db.rename("monday", None)
    with pytest.raises(anden.NotFound, match="monday"):
        db.view(snapshot="monday")


def test_snapshots_have_times_of_their_data() -> None:
    db = anden.create(None)
    db.append([1], [2], as_of="2012-04-30")
    db.checkpoint(as_of=datetime.date(2012, 5, 31))
    zone = datetime.timezone(datetime.timedelta(hours=2))
    db.checkpoint(as_of=datetime.datetime(2012, 6, 30, 18, tzinfo=zone))
    utc = datetime.timezone.utc
    assert [snapshot.as_of for snapshot in db.snapshots()] == [
        None,
        datetime.datetime(2012, 4, 30, tzinfo=utc),
        datetime.datetime(2012, 5, 31, tzinfo=utc),
        datetime.datetime(2012, 6, 30, 16, tzinfo=utc),
    ]
    assert db.view(snapshot="2012-04").num_edges == 1
    assert repr(db.view(snapshot=datetime.date(2012, 5, 30))) == repr(db.view(snapshot=2))
    assert repr(db.view(snapshot=datetime.datetime(2012, 6, 30, 18, tzinfo=zone))) == repr(db.view(snapshot=4))
    assert repr(db.view(window=("2012-05", "2012-06"))) == repr(db.view(window=(3, 4)))
    with pytest.raises(anden.NotFound, match="no snapshot is of 2012-03"):
        db.view(snapshot="2012-03")
    with pytest.raises(anden.InvalidInput, match="2012-05'|2012-05\""):
        db.checkpoint(as_of="2012-05")
    with pytest.raises(TypeError, match="as_of"):
        db.checkpoint(as_of=5)  # type: ignore[arg-type]


def test_each_month_of_a_column_becomes_a_snapshot(tmp_path: Path) -> None:
    mails = tmp_path / "mails.txt"
    mails.write_text("1 2 1326974400\n2 3 1328011200\n3 4 1328616000\n1 2 1333281600\n")
    options: dict[str, Any] = {"columns": ["from", "to", "time"], "property_types": {"time": "epoch_s"}}
    db = anden.load(None, mails, multigraph=True, snapshot_by="time:month", **options)
    assert [snapshot.name for snapshot in db.snapshots()] == ["2012-01", "2012-02", "2012-04"]
    assert [db.view(snapshot=month).num_edges for month in ("2012-01", "2012-03", "2012-04")] == [2, 3, 4]
    window = db.view(window=("2012-02", "2012-02"))
    assert (window.num_vertices, window.num_edges, list(window)) == (2, 1, [3, 4])
    assert window.pagerank()[2:].sum() == pytest.approx(1) and 2 not in window
    with pytest.raises(anden.NotFound, match="vertex 2 has no edge in window 2..2"):
        window.neighbors(2)
    everyone = db.view(window=("2012-02", "2012-02"), isolated=True)
    assert (everyone.num_vertices, everyone.num_edges, everyone.neighbors(2)) == (4, 1, [])
    assert everyone.without_isolated().num_vertices == 2
    with pytest.raises(anden.InvalidInput, match="isolated"):
        db.view(snapshot="2012-02", isolated=True)
    with pytest.raises(anden.InvalidInput, match="snapshot_by.*hour, day, week, month"):
        anden.load(None, mails, snapshot_by="time:year", **options)
    with pytest.raises(anden.InvalidInput, match="snapshot_by"):
        anden.load(None, mails, snapshot_by="time:month", name="april", **options)
