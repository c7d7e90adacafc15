"""How calls behave: Ctrl-C, threads, forks, progress, and the end of a database in use."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anden
import numpy as np
import pytest

#: Ctrl-C acts within half a second; a busy machine gets some leeway.
PROMPT = 0.5 + 1.0


@pytest.fixture(scope="module")
def large() -> Iterator[anden.View]:
    """A random graph on which closeness from all vertices takes minutes."""
    generator = np.random.default_rng(7)
    sources, targets = generator.integers(0, 50_000, (2, 400_000))
    db = anden.from_numpy(sources, targets)
    yield db.view()
    db.close()


def interrupt_soon(delay: float = 0.2) -> threading.Timer:
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_interrupt_ends_a_kernel_at_once(large: anden.View) -> None:
    timer = interrupt_soon()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        large.closeness("all")
    assert time.monotonic() - start < 0.2 + PROMPT
    timer.join()
    assert large.wcc().max() >= 0, "the view works on"


def test_interrupt_leaves_other_threads_alone(large: anden.View) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(large.closeness(500, seed=3)))
    thread.start()
    timer = interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        large.closeness("all")
    timer.join()
    thread.join()
    assert len(found) == 1 and found[0].max() > 0


def test_handler_that_does_not_raise_cancels_nothing(large: anden.View) -> None:
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(time.monotonic()))
    try:
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        deadline = time.monotonic() + 60
        # The signal comes during one of these calls, at any speed of the machine.
        while timer.is_alive() or not seen:
            assert time.monotonic() < deadline, "the handler was not called"
            large.closeness(300, seed=3)
        ended = time.monotonic()
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(seen) == 1 and seen[0] <= ended


def test_cancelled_load_leaves_nothing(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    sources, targets = generator.integers(0, 2**40, (2, 2_000_000))

    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    anden.set_progress(stop)
    try:
        with pytest.raises(Stop):
            anden.from_numpy(sources, targets, path=tmp_path / "graph.anden")
    finally:
        anden.set_progress(None)
    assert list(tmp_path.iterdir()) == []


def test_cancelled_append_changes_nothing(tmp_path: Path) -> None:
    db = anden.create(tmp_path / "graph.anden")
    db.append([1], [2])
    generator = np.random.default_rng(1)
    sources, targets = generator.integers(0, 2**40, (2, 1_000_000))
    timer = interrupt_soon(0.1)
    try:
        db.append(sources, targets)
        interrupted = False
        timer.join()
        time.sleep(1)
    except KeyboardInterrupt:
        interrupted = True
    assert interrupted
    assert (db.view().num_edges, len(db.snapshots())) == (1, 2)
    assert db.verify()["edges"] == 1


def test_progress_is_reported_and_ends(large: anden.View) -> None:
    reports: list[tuple[Any, ...]] = []
    anden.set_progress(lambda *report: reports.append(report))
    try:
        generator = np.random.default_rng(1)
        anden.from_numpy(*generator.integers(0, 2**40, (2, 1_000_000)))
    finally:
        anden.set_progress(None)
    stages = [stage for stage, *_ in reports]
    assert stages[-1] is None and all(isinstance(stage, str) for stage in stages[:-1]) and len(stages) > 1
    assert all(done >= 0 and seconds >= 0 for _, done, _, seconds in reports)


def test_gil_is_released_in_kernels(large: anden.View) -> None:
    started, count, is_over = threading.Event(), [0], threading.Event()

    def tick() -> None:
        started.set()
        while not is_over.is_set():
            count[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    started.wait()
    seconds, ticks, sources = 0.0, 0, 100
    # One call that takes long on any machine.
    while seconds < 0.3:
        before, start = count[0], time.monotonic()
        large.closeness(sources, seed=1)
        seconds, ticks = time.monotonic() - start, count[0] - before
        sources *= 2
    is_over.set()
    thread.join()
    assert ticks > seconds * 50


def test_threads_share_a_view(large: anden.View) -> None:
    expected = large.pagerank(iterations=5)
    results: list[Any] = []

    def work() -> None:
        for _ in range(5):
            results.append(large.pagerank(iterations=5))
            results.append(large.neighbors(large.key(1)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 40
    assert all(np.array_equal(expected, found) for found in results if isinstance(found, np.ndarray))


def test_close_during_a_call_of_another_thread() -> None:
    generator = np.random.default_rng(7)
    db = anden.from_numpy(*generator.integers(0, 20_000, (2, 200_000)))
    g, found, errors = db.view(), [], []

    def work() -> None:
        try:
            for _ in range(1000):
                found.append(g.closeness(20, seed=1))
        except anden.Error as error:
            errors.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    while not found and thread.is_alive():
        time.sleep(0.001)
    db.close()
    thread.join()
    assert len(errors) == 1 and "was closed" in errors[0]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_reads_and_gets_clear_errors(tmp_path: Path) -> None:
    db = anden.create(tmp_path / "graph.anden")
    db.append([1, 2], [2, 3])
    g = db.view()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answers = []
        try:
            answers.append(str(g.neighbors(1)))
            answers.append(str(g.wcc().tolist()))
            for call in (db.transaction, lambda: db.append([5], [6]), db.checkpoint):
                try:
                    call()
                    answers.append("no error")
                except anden.Locked:
                    answers.append("locked")
        except Exception as error:  # noqa: BLE001 (the child must end here)
            answers.append(repr(error))
        os.write(writer, "\n".join(answers).encode())
        os._exit(0)
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    text = os.read(reader, 10_000).decode()
    os.close(reader)
    assert text.splitlines() == ["[2]", "[0, 0, 0]", "locked", "locked", "locked"]
    assert db.append([5], [6])["added"] == 1, "the parent goes on"


def test_open_handles_end_in_any_order() -> None:
    db = anden.create(None)
    db.append([1], [2])
    g, tx, pending = db.view(), db.transaction(), db.submit([anden.Update.add_edge(3, 4)])
    result, changes = g.pagerank(details=True), db.diff(1, 2)
    added = changes.added()
    del db
    del g
    assert list(added) == [(1, 2)]
    tx.add_edge(5, 6)
    tx.commit()
    assert pending.wait() > 0
    assert len(result.top()) == 2
