"""Edges that transactions add: properties in one update, and the numbers of new edges."""

from __future__ import annotations

import threading
from typing import Any

import anden
import pytest


@pytest.fixture
def multigraph() -> anden.Database:
    return anden.create(None, multigraph=True, edge_properties=True)


def numbers(db: anden.Database, source: int, target: int) -> list[int]:
    return [edge["number"] for edge in db.view().edges_between(source, target)]


def properties(edges: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in edge.items() if name != "number"} for edge in edges]


def new_edge(tx: anden.Transaction, source: int, target: int) -> anden.NewEdge:
    edge = tx.add_edge(source, target)
    assert edge is not None
    return edge


def test_a_simple_graph_returns_no_handle() -> None:
    db = anden.create(None)
    assert db.transact(lambda tx: tx.add_edge(1, 2)) is None


def test_new_edge_has_its_number_after_the_block(multigraph: anden.Database) -> None:
    with multigraph.transaction() as tx:
        first, second = new_edge(tx, 1, 2), new_edge(tx, 1, 2)
        with pytest.raises(anden.Error, match="no number: the transaction is not committed yet"):
            assert first.number
        assert "not committed yet" in repr(first)
    assert [first.number, second.number] == numbers(multigraph, 1, 2)
    assert repr(first) == f"<anden.NewEdge, number {first.number}>"
    with multigraph.transaction() as tx:
        tx.set_edge(1, 2, "kind", "wire", number=second.number)
        tx.remove_edge(1, 2, number=first.number)
    assert multigraph.view().edges_between(1, 2) == [{"number": second.number, "kind": "wire"}]


def test_new_edge_has_its_number_after_commit_and_transact(multigraph: anden.Database) -> None:
    tx = multigraph.transaction()
    edge = new_edge(tx, 3, 4)
    tx.commit()
    del tx
    assert [edge.number] == numbers(multigraph, 3, 4)
    other = multigraph.transact(lambda tx: new_edge(tx, 3, 4))
    assert [edge.number, other.number] == numbers(multigraph, 3, 4)


def test_new_edge_tells_why_it_has_no_number(multigraph: anden.Database) -> None:
    rolled_back = multigraph.transaction()
    edges = {"it was rolled back": new_edge(rolled_back, 1, 2)}
    rolled_back.rollback()
    submitted = multigraph.transaction()
    edges["it was submitted"] = new_edge(submitted, 1, 2)
    submitted.submit().wait()
    dropped = multigraph.transaction()
    edges["it was dropped without a commit"] = new_edge(dropped, 1, 2)
    del dropped
    with pytest.raises(anden.Conflict), multigraph.transaction() as loser:
        loser.has_edge(5, 6)
        edges["it lost a conflict"] = new_edge(loser, 5, 6)
        multigraph.apply([anden.Update.add_edge(5, 6)])
    with pytest.raises(RuntimeError), multigraph.transaction() as failed:
        edges["it was rolled back "] = new_edge(failed, 1, 2)
        raise RuntimeError
    closed = multigraph.transaction()
    edges["its database was closed"] = new_edge(closed, 1, 2)
    multigraph.close()
    for why, edge in edges.items():
        with pytest.raises(anden.Error, match=f"no number: the transaction has ended: {why.strip()}"):
            assert edge.number
        assert why.strip() in repr(edge)


def test_loop_of_an_ordered_graph_has_no_number() -> None:
    db = anden.create(None, multigraph=True, ordered=True)
    with db.transaction() as tx:
        loop, edge = new_edge(tx, 2, 2), new_edge(tx, 2, 1)
    assert [edge.number] == numbers(db, 2, 1)
    with pytest.raises(anden.Error, match="an ordered graph does not store a loop"):
        assert loop.number


def test_retries_leave_the_handle_of_the_last_attempt(multigraph: anden.Database) -> None:
    handles = []

    def contended(tx: anden.Transaction) -> anden.NewEdge:
        tx.has_edge(8, 9)
        handles.append(new_edge(tx, 8, 9))
        if len(handles) == 1:
            multigraph.apply([anden.Update.add_edge(8, 9)])
        return handles[-1]

    edge = multigraph.transact(contended)
    assert len(handles) == 2 and edge is handles[1]
    assert edge.number == numbers(multigraph, 8, 9)[-1]
    with pytest.raises(anden.Error, match="it lost a conflict"):
        assert handles[0].number


@pytest.mark.parametrize("is_multigraph", [False, True])
def test_additions_with_properties_read_nothing(is_multigraph: bool) -> None:
    db = anden.create(None, multigraph=is_multigraph, edge_properties=True)
    db.apply([anden.Update.add_edge(1, 2, kind="card")])
    with db.transaction() as tx:
        tx.add_edge(1, 2, amount=7)
        seen = properties(tx.edges_between(1, 2))
    with db.transaction() as tx:
        tx.add_edge(1, 2, amount=8)
        # A read of the pair would lose against this commit.
        db.apply([anden.Update.set_edge(1, 2, "kind", "wire")])
    found = properties(db.view().edges_between(1, 2))
    if is_multigraph:
        assert seen == [{"kind": "card"}, {"amount": 7}]
        assert found == [{"kind": "card"}, {"kind": "wire", "amount": 7}, {"amount": 8}]
    else:
        assert seen == [{"kind": "card", "amount": 7}]
        assert found == [{"kind": "wire", "amount": 8}]


def test_handles_of_many_threads_have_numbers_of_their_own(multigraph: anden.Database) -> None:
    handles: list[anden.NewEdge] = []

    def work() -> None:
        for _ in range(20):
            handles.append(multigraph.transact(lambda tx: new_edge(tx, 1, 2)))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(edge.number for edge in handles) == numbers(multigraph, 1, 2)
