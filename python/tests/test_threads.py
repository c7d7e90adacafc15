"""Threads share every kind of object: no lost answer, no borrow error, no deadlock, with and without a GIL."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anden
import numpy as np
import pytest

NUM_THREADS = 4


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    """The answers of `work`, which all threads begin together."""
    together, answers, errors = threading.Barrier(NUM_THREADS), [], []

    def run(number: int) -> None:
        together.wait()
        try:
            answers.append(work(number))
        except BaseException as error:  # noqa: BLE001 (raised again below)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(NUM_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return answers


@pytest.fixture
def db(tmp_path: Path) -> anden.Database:
    generator = np.random.default_rng(1)
    db = anden.from_numpy(*generator.integers(0, 2_000, (2, 20_000)), path=tmp_path / "graph.anden")
    db.append([1], [1])
    return db


def test_module_needs_no_gil() -> None:
    is_enabled = getattr(sys, "_is_gil_enabled", None)
    if is_enabled is None or "free-threading" not in sys.version:
        pytest.skip("this interpreter has a GIL")
    assert not is_enabled(), "the import of anden has switched the GIL on"


def test_threads_share_views_and_results(db: anden.Database) -> None:
    g = db.view()
    result = g.pagerank(details=True)

    def work(_: int) -> Any:
        # The first of these calls fill caches of the objects.
        part = g.filter(vertices=None, edges=None)
        keys = [result.keys.sum(), g.keys().sum(), len(list(g))]
        return keys, result.top(3), g.wcc().sum(), part.num_edges, g.csr()[1].sum(), repr(g), len(g.edges())

    answers = in_threads(work)
    assert all(answer == answers[0] for answer in answers)


def test_threads_share_one_iterator(db: anden.Database) -> None:
    g, diff = db.view(), db.diff(1, 2)
    keys = iter(g)
    assert sorted(key for keys in in_threads(lambda _: list(keys)) for key in keys) == sorted(g)
    batches = iter(g.edges())
    assert sum(in_threads(lambda _: sum(len(batch) for batch in batches))) == g.num_edges

    edges, refused = diff.added(), []

    def take(_: int) -> int:
        taken = 0
        while True:
            try:
                next(edges)
                taken += 1
            except StopIteration:
                return taken
            except anden.Error as error:
                # Only one thread at a time may be in this iterator.
                refused.append(str(error))

    assert sum(in_threads(take)) == diff.num_added
    assert all("in use by another thread" in text for text in refused)


def test_threads_change_one_database(db: anden.Database) -> None:
    num_edges = db.view().num_edges

    def work(number: int) -> None:
        first = 10_000 * (number + 1)
        for key in range(first, first + 20):
            with db.transaction() as tx:
                tx.add_edge(key, key + 1)
            db.submit([anden.Update.add_edge(key, first - 1)]).wait()
            db.transact(lambda tx: tx.set(1, "count", (tx.get(1, "count") or 0) + 1))
        db.append([first - 2], [first - 3])
        db.checkpoint()
        db.view(snapshot=1).wcc()

    in_threads(work)
    g = db.view()
    assert g.num_edges == num_edges + NUM_THREADS * 41
    assert g.vertex(1)["properties"]["count"] == NUM_THREADS * 20
    assert db.verify()["edges"] == g.num_edges


def test_threads_wait_for_one_commit(db: anden.Database) -> None:
    pending = db.submit([anden.Update.add_edge(7, 8)])
    assert len(set(in_threads(lambda _: pending.wait()))) == 1
    assert pending.done()


def test_threads_close_one_database(db: anden.Database, tmp_path: Path) -> None:
    db.apply([anden.Update.add_edge(90_000, 90_001)])

    def work(number: int) -> None:
        try:
            db.view().wcc() if number == 0 else db.close()
        except anden.Error as error:
            assert "was closed" in str(error)

    in_threads(work)
    # Each close has waited for the first one.
    assert anden.open(tmp_path / "graph.anden").view().has_edge(90_000, 90_001)
