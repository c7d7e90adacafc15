"""The time that a call from Python takes beyond the kernel: arguments, threads, the answer as an array.

The engine measures the kernel itself, and a call is timed here, so the difference is the overhead.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from .. import View, convert
from . import graphs

#: Calls of a kernel; the median counts.
NUM_CALLS = 51
#: The overhead is to be at most this many microseconds, or this share of the kernel.
MOST_MICROSECONDS, MOST_SHARE = 50.0, 0.05


def calls(view: View) -> dict[str, Callable[..., Any]]:
    """A call of each kernel, by name."""
    source = view.key(0)
    return {
        "pagerank": lambda **options: view.pagerank(iterations=10, **options),
        "bfs": lambda **options: view.bfs(source, **options),
        "sssp": lambda **options: view.sssp(source, **options),
        "wcc": lambda **options: view.wcc(**options),
        "scc": lambda **options: view.scc(**options),
        "bc": lambda **options: view.bc(source=[source], **options),
        "closeness": lambda **options: view.closeness(source=[source], **options),
        "triangles": lambda **options: view.triangles(**options),
        "lcc": lambda **options: view.lcc(**options),
        "cdlp": lambda **options: view.cdlp(iterations=5, **options),
        "kcore": lambda **options: view.kcore(**options),
    }


def table(scale: int, degree: int, seed: int) -> str:
    """A line for each kernel on an R-MAT graph, as text."""
    pairs = graphs.simplify(graphs.rmat(scale, degree, seed))
    weights = (pairs[:, 0] % 7 + 1).astype("f8")
    view = convert.from_numpy(pairs[:, 0], pairs[:, 1], weights, directed=False).view()
    lines = [f"{view.num_vertices:,} vertices, {view.num_edges:,} edges: microseconds, medians of {NUM_CALLS} calls"]
    lines.append(f"{'kernel':<12}{'engine':>12}{'array':>12}{'details':>12}{'overhead':>10}{'share':>8}")
    for name, call in calls(view).items():
        engine, plain, detailed = _measured(call)
        extra = plain - engine
        share = extra / engine
        mark = "" if extra <= MOST_MICROSECONDS or share <= MOST_SHARE else "  above the limit"
        lines.append(f"{name:<12}{engine:>12.1f}{plain:>12.1f}{detailed:>12.1f}{extra:>10.1f}{share:>8.1%}{mark}")
    return "\n".join(lines)


def _measured(call: Callable[..., Any]) -> tuple[float, float, float]:
    """Microseconds of the engine, of a call for an array and of one for a result, in turns."""
    engine, plain, detailed = [], [], []
    for _ in range(NUM_CALLS):
        start = time.perf_counter()
        result = call(details=True)
        detailed.append(time.perf_counter() - start)
        engine.append(result.seconds)
        start = time.perf_counter()
        call()
        plain.append(time.perf_counter() - start)
    engine_time, plain_time, detailed_time = (1e6 * statistics.median(times) for times in (engine, plain, detailed))
    return engine_time, plain_time, detailed_time
