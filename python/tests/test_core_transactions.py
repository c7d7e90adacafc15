"""Transactions, submitted commits and retries."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anden
import pytest


@pytest.fixture
def db() -> anden.Database:
    db = anden.create(None)
    db.append([1], [2])
    return db


def test_clean_exit_commits(db: anden.Database) -> None:
    with db.transaction() as tx:
        tx.add_edge(2, 3)
        assert tx.neighbors(2) == [3] and tx[2] == [3]
        assert tx.has_edge(2, 3) and 3 in tx and not tx.has_vertex(9)
    assert db.view().has_edge(2, 3)
    assert not tx.is_open and "committed" in repr(tx)


def test_exception_rolls_back(db: anden.Database) -> None:
    with pytest.raises(RuntimeError, match="enough"), db.transaction() as tx:
        tx.add_edge(2, 3)
        raise RuntimeError("enough")
    assert db.view().num_edges == 1
    assert "rolled back" in repr(tx)


def test_rollback_and_second_ends(db: anden.Database) -> None:
    tx = db.transaction()
    tx.add_edge(5, 6)
    tx.rollback()
    tx.rollback()
    for use in (tx.commit, tx.submit, lambda: tx.add_edge(1, 2), lambda: tx.num_edges, tx.__enter__):
        with pytest.raises(anden.Error, match="ended: it was rolled back"):
            use()
    assert 5 not in db.view()


def test_conflict_changes_nothing(db: anden.Database) -> None:
    first, second = db.transaction(), db.transaction()
    for tx in (first, second):
        if not tx.has_edge(2, 1):
            tx.add_edge(2, 1)
    assert first.commit() > 0
    with pytest.raises(anden.Conflict):
        second.commit()
    with pytest.raises(anden.Error, match="ended"):
        second.commit()


def test_properties_and_weights_of_a_transaction() -> None:
    db = anden.create(None, weighted=True, edge_properties=True, ids="string")
    with db.transaction() as tx:
        tx.add_edge("a", "b", 2.5, kind="wire")
        assert tx.weight("a", "b") == 2.5 and tx.get_edge("a", "b", "kind") == "wire"
        tx.set_weight("a", "b", 3)
        tx.set_edge("a", "b", "kind", None)
        tx.add_vertex("c", name="Cleo", age=28)
        tx.set("c", "age", 29)
        assert tx.get("c", "age") == 29 and tx.get("a", "age") is None
        assert tx.find("name", "Cleo") == ["c"]
        assert tx.insert_edge("b", "c", 1.0) and not tx.insert_edge("b", "c", 7.0)
        assert tx.insert_vertex("d") and not tx.insert_vertex("d")
        assert (tx.num_vertices, tx.num_edges) == (4, 2)
        assert tx.path("a", "c") == ["a", "b", "c"] and tx.reachable("a", "c")
        assert tx.path("a", "c", weighted=True) == ["a", "b", "c"]
        assert tx.khop("a", 2) == ["b", "c"] and tx.fof("a") == ["c"]
        assert tx.degree("b") == 1 and tx.degree("b", "both") == 2
    g = db.view()
    assert g.edge("a", "b") == {"weight": 3.0}
    assert g.find_vertices("age", 29) == ["c"]


def test_edges_of_a_multigraph_have_numbers() -> None:
    db = anden.create(None, multigraph=True, weighted=True)
    with db.transaction() as tx:
        tx.add_edge(1, 2, 1.0)
        tx.add_edge(1, 2, 2.0)
    first, second = db.view().edges_between(1, 2)
    with db.transaction() as tx:
        tx.remove_edge(1, 2, number=first["number"])
        tx.set_weight(1, 2, 9.0, number=second["number"])
    assert [edge["weight"] for edge in db.view().edges_between(1, 2)] == [9.0]
    with pytest.raises(anden.NotFound), db.transaction() as tx:
        tx.remove_edge(1, 2, number=first["number"])


def test_transact_returns_and_retries() -> None:
    db = anden.create(None)
    db.transact(lambda tx: tx.set(1, "count", 0))
    calls = []

    def increment(tx: anden.Transaction) -> int:
        calls.append(1)
        count = tx.get(1, "count") + 1
        tx.set(1, "count", count)
        return count

    def work() -> None:
        for _ in range(25):
            db.transact(increment)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.transact(lambda tx: tx.get(1, "count")) == 100
    assert len(calls) >= 100


def test_exception_in_transact_passes_through(db: anden.Database) -> None:
    def refuse(tx: anden.Transaction) -> None:
        tx.add_edge(8, 9)
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        db.transact(refuse)
    assert 8 not in db.view()


def test_transaction_that_outlives_transact_has_ended(db: anden.Database) -> None:
    kept = []
    db.transact(kept.append)
    with pytest.raises(anden.Error, match="ended: it was committed"):
        kept[0].add_edge(1, 2)


def test_function_may_not_end_its_transaction(db: anden.Database) -> None:
    with pytest.raises(anden.Error, match="ended: it was rolled back"):
        db.transact(lambda tx: tx.rollback())


def test_transact_under_constant_conflict_ends(db: anden.Database) -> None:
    attempts = []

    def contended(tx: anden.Transaction) -> None:
        attempts.append(tx.has_vertex(50))
        # Another commit changes what this one read, until the transaction runs alone.
        if len(attempts) <= 6:
            with db.transaction() as other:
                other.add_vertex(50) if not attempts[-1] else other.remove_vertex(50)
        tx.add_edge(60, 61)

    db.transact(contended)
    assert len(attempts) == 7 and db.view().has_edge(60, 61)


def test_submitted_commits_keep_their_order(db: anden.Database) -> None:
    pending = [db.submit([anden.Update.add_edge(i, i + 1)]) for i in range(10, 30)]
    pending.append(db.submit([anden.Update.remove_edge(10, 11), anden.Update.add_vertex(99)]))
    epochs = [commit.wait() for commit in pending]
    assert epochs == sorted(epochs) and all(commit.done() for commit in pending)
    assert pending[0].wait() == epochs[0]
    g = db.view()
    assert not g.has_edge(10, 11) and g.has_edge(29, 30) and 99 in g


def test_done_drives_a_commit_to_its_end(db: anden.Database) -> None:
    pending = db.submit([anden.Update.add_edge(3, 4)])
    ended = threading.Event()

    def ask() -> None:
        while not pending.done():
            pass
        ended.set()

    threading.Thread(target=ask, daemon=True).start()
    assert ended.wait(10)
    assert db.view().has_edge(3, 4)


def test_error_of_a_submitted_commit_is_raised_by_wait() -> None:
    db = anden.create(None, ids="dense", weighted=True)
    pending = db.submit([anden.Update.add_edge(1, 2, 1.0), anden.Update.set_edge(1, 2, "kind", 3)])
    for _ in range(2):
        with pytest.raises(anden.Error):
            pending.wait()
    assert db.view().num_edges == 0


def test_transaction_submits_itself(db: anden.Database) -> None:
    tx = db.transaction()
    tx.add_edge(7, 8)
    assert tx.submit().wait() > 0
    assert db.view().has_edge(7, 8)


def test_dropped_pending_still_commits(db: anden.Database) -> None:
    db.submit([anden.Update.add_edge(7, 8)])
    assert db.view().has_edge(7, 8)


def test_apply_of_updates_is_one_transaction(db: anden.Database) -> None:
    up = anden.Update
    report = db.apply([up.add_edge(1, 3), up.set_vertex(3, "name", "three"), up.remove_edge(1, 2)])
    assert (report["updates"], report["transactions"]) == (3, 1)
    with pytest.raises(anden.NotFound) as error:
        db.apply([up.add_vertex(1), up.remove_edge(8, 9)], strict=True)
    assert error.value.update == 1


def test_unique_index_refuses_equal_values(db: anden.Database) -> None:
    db.apply([anden.Update.set_vertex(1, "email", "ann@example.org")])
    db.create_index("vertex", "email", unique=True)
    assert db.indexes()[0]["unique"] is True
    with pytest.raises(anden.UniqueViolation) as error, db.transaction() as tx:
        tx.set(2, "email", "ann@example.org")
    assert (error.value.property, error.value.vertex, error.value.holder) == ("email", 2, 1)
    assert db.view().find_vertices("email", "ann@example.org") == [1]
    db.drop_index("vertex", "email")
    assert db.indexes() == []


def test_threads_do_not_share_a_transaction_at_once(db: anden.Database) -> None:
    tx = db.transaction()
    errors = []

    def work() -> None:
        try:
            for i in range(300):
                tx.add_edge(i, i + 1)
        except anden.Error as error:
            errors.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("in use by another thread" in text for text in errors)
    tx.commit()


HOSTILE: list[tuple[Callable[[anden.Transaction], Any], type[BaseException], str]] = [
    (lambda tx: tx.add_edge(1), TypeError, "target"),
    (lambda tx: tx.add_edge(None, 2), TypeError, "NoneType"),
    (lambda tx: tx.add_edge(1, -2), anden.InvalidInput, "-2"),
    (lambda tx: tx.add_edge(1, 2**64), anden.InvalidInput, "18446744073709551616"),
    (lambda tx: tx.add_edge(1, 2.0), TypeError, "float"),
    (lambda tx: tx.add_edge(1, b"x"), TypeError, "bytes"),
    (lambda tx: tx.add_edge(1, 2, 0.5), anden.Error, "weight"),
    (lambda tx: tx.add_edge(1, 2, weight="heavy"), TypeError, "weight"),
    (lambda tx: tx.add_edge(1, 2, kind="x"), anden.Error, "propert"),
    (lambda tx: tx.add_edge("one", 2), anden.InvalidInput, "one"),
    (lambda tx: tx.set(1, "p", object()), TypeError, "object"),
    (lambda tx: tx.set(1, "p", 2**70), anden.InvalidInput, "1180591620717411303424"),
    (lambda tx: tx.set(1, 5, 1), TypeError, "name"),
    (lambda tx: tx.get(77, "p"), anden.NotFound, "77"),
    (lambda tx: tx.neighbors(77), anden.NotFound, "77"),
    (lambda tx: tx.neighbors(1, "up"), anden.InvalidInput, "up"),
    (lambda tx: tx.khop(1, -1), OverflowError, ""),
    (lambda tx: tx.find("nothing", 1), anden.NotFound, "nothing"),
    (lambda tx: tx.set_weight(1, 2, 1.0), anden.Error, "weight"),
    (lambda tx: tx.remove_edge(1, 2, number=3), anden.Error, ""),
    (lambda tx: tx.set_durability("never"), anden.InvalidInput, "never"),
    (lambda tx: tx.set_durability(5), TypeError, ""),
]


@pytest.mark.parametrize(("call", "error", "text"), HOSTILE)
def test_hostile_arguments_of_transactions(
    db: anden.Database, call: Callable[[anden.Transaction], Any], error: type[BaseException], text: str
) -> None:
    tx = db.transaction()
    with pytest.raises(error, match=text or None):
        call(tx)
    tx.add_edge(2, 3)
    tx.commit()
    assert db.view().num_edges == 2


HOSTILE_UPDATES: list[tuple[Callable[[], Any], type[BaseException], str]] = [
    (lambda: anden.Update(), TypeError, ""),
    (lambda: anden.Update.add_edge(1), TypeError, "target"),
    (lambda: anden.Update.add_edge(1, -1), anden.InvalidInput, "-1"),
    (lambda: anden.Update.add_edge([], 1), TypeError, "list"),
    (lambda: anden.Update.add_edge(1, 2, "x"), TypeError, "weight"),
    (lambda: anden.Update.add_edge(1, 2, kind={}), TypeError, "dict"),
    (lambda: anden.Update.set_weight(1, 2, None), TypeError, "NoneType"),
    (lambda: anden.Update.remove_edge(1, 2, number=-1), OverflowError, ""),
    (lambda: anden.Update.add_vertex(1.5), TypeError, "1.5"),
    (lambda: anden.Update.set_vertex(1, None, 2), TypeError, "name"),
    (lambda: anden.Update.set_edge(1, 2, "p", 1j), TypeError, "complex"),
    (lambda: anden.Pending(), TypeError, ""),
    (lambda: anden.Transaction(), TypeError, ""),
    (lambda: anden.Snapshot(), TypeError, ""),
    (lambda: anden.Diff(), TypeError, ""),
    (lambda: anden.Result(), TypeError, ""),
]


@pytest.mark.parametrize(("call", "error", "text"), HOSTILE_UPDATES)
def test_hostile_arguments_of_updates(call: Callable[[], Any], error: type[BaseException], text: str) -> None:
    with pytest.raises(error, match=text or None):
        call()


def test_updates_show_their_lines() -> None:
    up = anden.Update
    shown = [repr(one) for one in (up.add_edge(1, 2, 0.5), up.remove_edge("a", "b", number=7), up.add_vertex(9))]
    assert shown == ["<anden.Update + 1 2 0.5>", "<anden.Update - a b #7>", "<anden.Update v+ 9>"]


def test_lists_come_back_as_lists(db: anden.Database) -> None:
    import datetime

    day = datetime.date(2024, 2, 29)
    lists: dict[str, list[object]] = {
        "tags": ["a", 'b "x"', "é;\n", ""],
        "sizes": [1, -2, None],
        "shares": [0.5, 2],
        "flags": [True, False],
        "days": [day],
        "none": [],
    }
    with db.transaction() as tx:
        for name, values in lists.items():
            tx.set(1, name, values)
        assert tx.get(1, "tags") == lists["tags"]
    found = db.view()
    assert found.vertex(1)["properties"] == lists
    types = {"tags": "string[]", "sizes": "i64[]", "shares": "f64[]", "flags": "boolean[]", "days": "date[]"}
    assert found.vertex_properties == {**types, "none": "string[]"}
    assert found.vertex_property("sizes")[found.id(1)] == [1, -2, None]
    assert found.find_vertices("tags", lists["tags"]) == [1]
    db.apply([anden.Update.set_vertex(1, "shares", (1, 2)), anden.Update.set_vertex(1, "tags", '[ "x" ]')])
    changed = db.view().vertex(1)["properties"]
    assert (changed["shares"], changed["tags"]) == ([1.0, 2.0], ["x"])
    with db.transaction() as tx:
        assert tx.get(1, "tags") == ["x"]
        refused: list[tuple[Any, str]] = [("x", "list of texts"), ([1], "list of texts"), (5, "string")]
        for value, text in refused:
            with pytest.raises(anden.InvalidInput, match=text):
                tx.set(1, "tags", value)
        mixed: list[Any] = [[1, "a"], [b"x"], [[1]], [{}]]
        for wrong in mixed:
            with pytest.raises((TypeError, anden.InvalidInput)):
                tx.set(1, "tags", wrong)


def test_values_of_all_types_come_back(db: anden.Database) -> None:
    import datetime

    import numpy as np

    utc = datetime.UTC
    time = datetime.datetime(2026, 11, 29, 12, 30, 1, 5, tzinfo=utc)
    values = {
        "flag": True,
        "whole": -5,
        "large": 2**63,
        "real": 0.5,
        "text": "ü",
        "raw": b"\x00\xff",
        "day": datetime.date(1969, 12, 31),
        "time": time,
        "none": None,
    }
    with db.transaction() as tx:
        tx.add_vertex(1, **values)
        tx.set(2, "text", np.str_("numpy"))
        tx.set(2, "whole", np.int16(7))
        tx.set(2, "real", np.float32(0.25))
        tx.set(2, "time", np.datetime64("2026-11-29T12:30:01.000005", "us"))
    found = db.view().vertex(1)["properties"]
    assert found == {name: value for name, value in values.items() if value is not None}
    other = db.view().vertex(2)["properties"]
    assert (other["text"], other["whole"], other["real"], other["time"]) == ("numpy", 7, 0.25, time)
