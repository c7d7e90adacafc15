"""What small calls, conversions and the import take, each with its limit."""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import Update, convert, create

#: Commits in flight at one time.
IN_FLIGHT = 1_000
ROUNDS = 7


class CallTime(NamedTuple):
    """A measured time or rate, and its limit."""

    what: str
    value: float
    unit: str
    limit: float
    #: Whether the limit is the smallest value, not the largest.
    is_rate: bool = False

    @property
    def is_met(self) -> bool:
        return self.value >= self.limit if self.is_rate else self.value <= self.limit


def table(num_edges: int) -> str:
    """A line for each call; conversions take `num_edges` edges."""
    lines = [f"{'call':<44}{'median':>12}  {'limit':>8}"]
    for one in [*_small_calls(), *_conversions(num_edges), _import()]:
        mark = "" if one.is_met else "  above the limit" if not one.is_rate else "  below the limit"
        relation = "≥" if one.is_rate else "≤"
        lines.append(f"{one.what:<44}{one.value:>9.2f} {one.unit:<3}{relation} {one.limit:g}{mark}")
    return "\n".join(lines)


def _median(call: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Seconds of a call."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        kept = call()
        seconds.append(time.perf_counter() - start)
        # Freed before the clock starts again.
        del kept
    return statistics.median(seconds)


def _small_calls() -> list[CallTime]:
    db = create(None)
    keys = range(10_000)
    db.append(np.arange(10_000), np.arange(10_000) + 1)
    view = db.view()
    neighbors = _median(lambda: [view.neighbors(key) for key in keys]) / len(keys)

    def additions() -> None:
        with db.transaction() as tx:
            for key in keys:
                tx.add_edge(key, key + 7)

    added = _median(additions) / len(keys)

    def commits() -> None:
        pending = [db.submit([Update.add_edge(key, key + 9)]) for key in range(IN_FLIGHT)]
        for one in pending:
            one.wait()

    rate = IN_FLIGHT / _median(commits) / 1e3
    return [
        CallTime("g.neighbors(v)", 1e6 * neighbors, "µs", 2),
        CallTime("tx.add_edge(u, v), its share of the commit too", 1e6 * added, "µs", 2),
        CallTime("commits of one edge, 1,000 in flight", rate, "k/s", 200, is_rate=True),
    ]


def _conversions(num_edges: int) -> list[CallTime]:
    ends = np.random.default_rng(1).integers(0, max(num_edges // 10, 1), (2, num_edges), dtype=np.int64)
    seconds = _median(lambda: convert.from_numpy(ends[0], ends[1], ids="dense", out_only=True).view(), 3)
    times = [CallTime(f"{num_edges:,} edges from NumPy to a view", seconds, "s", 1)]
    if importlib.util.find_spec("scipy") is not None:
        sparse = importlib.import_module("scipy.sparse")
        ones, shape = np.ones(num_edges, dtype=np.float32), (num_edges // 10 + 1,) * 2
        other = _median(lambda: sparse.coo_array((ones, (ends[0], ends[1])), shape=shape).tocsr(), 3)
        times.append(CallTime("the same over SciPy's COO to CSR", seconds / other, "×", 1.2))
    return times


def _import() -> CallTime:
    """The import of the package, beyond that of NumPy, in fresh processes."""
    code = "import time, numpy; start = time.perf_counter(); import anden; print(time.perf_counter() - start)"
    seconds = []
    for _ in range(ROUNDS):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        seconds.append(float(run.stdout))
    return CallTime("import anden", 1e3 * statistics.median(seconds), "ms", 50)
