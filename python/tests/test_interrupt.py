"""Ctrl-C in every kind of call that may take long or wait: how soon it acts, and what it leaves.

Each case runs in a process of its own, which gets SIGINT during the call.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

#: Ctrl-C acts within half a second; a busy machine gets some leeway.
PROMPT = 0.5 + 1.0

PRELUDE = """
import os, sys, threading, time
import anden
import numpy as np

folder = sys.argv[1]
path = os.path.join(folder, "graph.anden")
fifo = os.path.join(folder, "fifo")
os.mkfifo(fifo)
up = anden.Update


def small():
    db = anden.create(path)
    db.append([1, 2], [2, 3])
    return db


def large():
    generator = np.random.default_rng(1)
    db = anden.from_numpy(*generator.integers(0, 300_000, (2, 1_500_000)), path=path)
    db.append(*generator.integers(0, 300_000, (2, 300_000)))
    return db


class Held:
    '''Keeps the commits of other threads waiting until it is released.'''

    def __init__(self, db):
        self.db, self.attempts = db, 0
        self.is_held, self.is_released = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=db.transact, args=(self.contended,))
        self.thread.start()
        self.is_held.wait()

    def contended(self, tx):
        self.attempts += 1
        is_there = tx.has_vertex(77)
        if self.attempts <= 6:
            with self.db.transaction() as other:
                other.remove_vertex(77) if is_there else other.add_vertex(77)
        else:
            self.is_held.set()
            self.is_released.wait()
        tx.add_edge(8, 9)

    def release(self):
        self.is_released.set()
        self.thread.join()


def thread_of(call, *arguments):
    def work():
        try:
            call(*arguments)
        except anden.Error:
            pass

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def fed(text):
    '''Ends a read of the pipe that an interrupted call may have left.'''
    try:
        end = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return
    os.write(end, text)
    os.close(end)


def reopened():
    '''The database, once the calls that were left to themselves have ended.'''
    for _ in range(200):
        try:
            return anden.open(path)
        except anden.Locked:
            time.sleep(0.05)
    return anden.open(path)


def started():
    print("started", flush=True)
"""

BODY = """
{setup}
try:
    started()
    {call}
    print("not interrupted", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
{check}
"""

#: The database opens, verifies, and holds the edges that it had.
UNCHANGED = """
db.close()
db = reopened()
db.verify()
assert (db.view().num_edges, len(db.snapshots())) == before, (db.view().num_edges, len(db.snapshots()), before)
"""

#: The commit was handed over, so it may take effect once it need not wait any more. Nothing else has changed.
COMMITTED = """
held.release()
pending = None
db.close()
db = reopened()
db.verify()
g = db.view()
assert g.has_edge(1, 2) and g.has_edge(8, 9) and g.num_edges in (3, 4), g.num_edges
"""


@dataclass(frozen=True)
class Case:
    """A call that SIGINT ends."""

    name: str
    setup: str
    call: str
    check: str


SMALL = "db = small(); before = (db.view().num_edges, len(db.snapshots()))"
LARGE = "db = large(); g = db.view(); before = (g.num_edges, len(db.snapshots()))"
HELD = "db = small(); held = Held(db)"


def held(name: str, call: str, setup: str = "") -> Case:
    return Case(name, f"{HELD}\n{setup}", call, COMMITTED)


def blocked(name: str, call: str, check: str = "") -> Case:
    """Waits for a pipe, for ever."""
    return Case(name, SMALL, call, f"{check}\n{UNCHANGED}")


def repeated(name: str, call: str, setup: str = "") -> Case:
    """Takes long; it may end before the signal comes, so it is repeated."""
    return Case(name, f"{LARGE}\n{setup}", f"while True: {call}", UNCHANGED)


KEPT_TRANSACTION = "tx.add_edge(1, 1)\ntx.rollback()"

CASES = [
    held("commit", "db.transact(lambda tx: tx.add_edge(5, 6))"),
    held("exit_of_with", "\n    with db.transaction() as tx: tx.add_edge(5, 6)"),
    held("wait", "pending.wait()", "pending = db.submit([up.add_edge(5, 6)])"),
    held("drop_of_pending", "del pending", "pending = db.submit([up.add_edge(5, 6)])"),
    held("full_queue", "\n    while True: pending.append(db.submit([up.add_edge(5, 6)]))", "pending = []"),
    held("apply", "db.apply([up.add_edge(5, 6)])"),
    held("append", "db.append([5], [6])"),
    held("contention", "db.transact(contended)", """
held.release()
stop = threading.Event()
def contended(tx):
    # Other commits never let this one through, until it waits for its turn alone.
    tx.add_edge(5, 6)
    is_there = tx.has_vertex(78)
    if contended.attempts < 6:
        with db.transaction() as other:
            other.remove_vertex(78) if is_there else other.add_vertex(78)
    contended.attempts += 1
    if contended.attempts == 6:
        contended.held = Held(db)
contended.attempts = 0
held = type("Later", (), {"release": lambda self: contended.held.release()})()
"""),
    Case("callback", SMALL, "db.transact(lambda tx: (tx.add_edge(5, 6), threading.Event().wait()))", UNCHANGED),
    blocked("load", "anden.load(os.path.join(folder, 'other.anden'), fifo)",
            "fed(b'1 2\\n')\nassert not os.path.exists(os.path.join(folder, 'other.anden', 'MANIFEST'))"),
    blocked("append_files", "db.append_files(fifo)", "fed(b'')"),
    blocked("apply_file", "db.apply(fifo)", "fed(b'')"),
    blocked("export", "db.view().export(fifo, format='csv')", "os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))"),
    Case("close", f"{SMALL}\ntx = db.transaction()\nthread_of(db.append_files, fifo)\ntime.sleep(0.3)",
         "db.close(); threading.Event().wait()", "fed(b'')\ndb = reopened()\ndb.verify()\n"
         "assert db.view().num_edges == before[0]"),
    repeated("kernel", "g.closeness('all')"),
    repeated("query", "g.shortest_paths(1, 2, limit=10**6); g.khop(1, 9)"),
    repeated("verify", "db.verify()"),
    repeated("checkpoint_and_window", "db.view(window=(1, 2)).num_edges; db.view(snapshot=1).wcc()"),
    repeated("diff", "d = db.diff(1, 2); d.num_added; list(d.added()); d.table()"),
    repeated("csr", "g.csr(); g.filter('1 = 1').csr()"),
    repeated("conversions", "list(g); g.keys(); g.ids(list(g)[:100_000]); g.edges().to_numpy()"),
    repeated("tables", "len(g.edges()); list(g.edges().filter('source = target')); g.wcc(details=True).table()"),
    repeated("results", "r.top(100_000); r.keys; repr(r)", "r = g.pagerank(details=True)"),
    Case("merge", LARGE, "\n    while True: db.append([1], [2]); db.merge()",
         "db.verify()\nassert db.view().num_edges in (before[0], before[0] + 1)"),
    repeated("prepare", "db.prepare('pagerank', 'triangles', 'lcc', 'scc')", "db.merge()"),
    Case("transaction_queries", f"{LARGE}\ntx = db.transaction()",
         "\n    while True: tx.khop(1, 99); tx.fof(1); tx.path(1, 2); tx.reachable(2, 1); tx.vertices()",
         f"assert tx.has_vertex(1)\n{KEPT_TRANSACTION}\n{UNCHANGED}"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_interrupt_acts_within_half_a_second(tmp_path: Path, case: Case) -> None:
    script = PRELUDE + BODY.format(setup=case.setup, call=case.call, check=case.check)
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "started\n", child.communicate()
            # The call is under way after this time on most machines; if not, the signal comes before it.
            time.sleep(0.3)
            child.send_signal(signal.SIGINT)
            sent = time.monotonic()
            assert child.stdout.readline() == "interrupted\n", child.communicate()
            taken = time.monotonic() - sent
            output, errors = child.communicate(timeout=120)
        finally:
            child.kill()
    assert (child.returncode, output) == (0, ""), errors
    assert taken < PROMPT
