"""Calls of a database inside the function of `transact`, and functions that raise."""

from __future__ import annotations

from pathlib import Path

import anden
import pytest


def database() -> anden.Database:
    db = anden.create(None, weighted=True, edge_properties=True, multigraph=True)
    with db.transaction() as tx:
        tx.add_edge(1, 2, 0.5, amount=3)
        tx.add_edge(2, 3, 1.5, amount=4)
        tx.add_vertex(1, size=3)
    db.checkpoint()
    return db


NESTED = {
    "commit": lambda db, tx: nested_commit(db),
    "transact": lambda db, tx: db.transact(lambda other: other.add_edge(7, 8, 1.0)),
    "apply": lambda db, tx: db.apply([anden.Update.add_edge(7, 8, 1.0)]),
    "submit": lambda db, tx: db.submit([anden.Update.add_edge(7, 8, 1.0)]).wait(),
    "checkpoint": lambda db, tx: db.checkpoint(),
    "merge": lambda db, tx: db.merge(),
    "verify": lambda db, tx: db.verify(),
    "create_index": lambda db, tx: db.create_index("vertex", "size") if not db.indexes() else None,
    "kernel": lambda db, tx: db.view().pagerank(),
    "drop": lambda db, tx: db.drop(1) if len(db.snapshots()) > 1 else None,
}


def nested_commit(db: anden.Database) -> None:
    with db.transaction() as other:
        other.add_edge(7, 8, 1.0)


@pytest.mark.parametrize("num_conflicts", [0, 6], ids=["first", "alone"])
@pytest.mark.parametrize("name", NESTED)
@pytest.mark.timeout(60)
def test_calls_inside_transact_end(tmp_path: Path, name: str, num_conflicts: int) -> None:
    db = anden.create(tmp_path / "graph.anden", weighted=True)
    db.append([1, 2], [2, 3], [1.0, 1.0])
    db.apply([anden.Update.set_vertex(1, "size", 3)])
    attempts = []

    def function(tx: anden.Transaction) -> None:
        attempts.append(tx.has_vertex(50))
        if len(attempts) <= num_conflicts:
            with db.transaction() as other:
                other.add_vertex(50) if not attempts[-1] else other.remove_vertex(50)
        else:
            NESTED[name](db, tx)
        tx.add_edge(5, 6, 2.0)

    db.transact(function)
    g = db.view()
    assert g.has_edge(5, 6) and g.has_edge(1, 2) and len(attempts) == num_conflicts + 1
    assert db.verify()["edges"] == g.num_edges


@pytest.mark.timeout(60)
def test_append_is_refused_while_transact_runs_alone(tmp_path: Path) -> None:
    db = anden.create(tmp_path / "graph.anden")
    db.append([1, 2], [2, 3])
    attempts = []

    def function(tx: anden.Transaction) -> None:
        attempts.append(tx.has_vertex(50))
        if len(attempts) <= 6:
            with db.transaction() as other:
                other.add_vertex(50) if not attempts[-1] else other.remove_vertex(50)
        else:
            with pytest.raises(anden.Error, match="cannot append inside transact"):
                db.append([8], [9])
        tx.add_edge(5, 6)

    db.transact(function)
    db.append([8], [9])
    assert db.view().has_edge(5, 6) and db.view().has_edge(8, 9)


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, GeneratorExit, StopIteration, anden.Conflict])
def test_callback_that_raises_changes_nothing(error: type[BaseException]) -> None:
    db = database()
    calls = []

    def function(tx: anden.Transaction) -> None:
        calls.append(tx)
        tx.add_edge(5, 6, 2.0)
        raise error("no")

    with pytest.raises(error, match="no"):
        db.transact(function)
    assert len(calls) == 1 and 5 not in db.view() and not calls[0].is_open


def test_close_inside_transact_ends_its_transaction(tmp_path: Path) -> None:
    db = anden.create(tmp_path / "graph.anden")

    def function(tx: anden.Transaction) -> None:
        tx.add_edge(5, 6)
        db.close()

    with pytest.raises(anden.Error, match="its database was closed"):
        db.transact(function)
    assert anden.open(tmp_path / "graph.anden").view().num_edges == 0
