"""One tool in a process of its own: prints a line of JSON for each task.

usage: python -m anden.bench.worker TOOL FOLDER SCRATCH TASK…

An empty object says that the preparation or a run has ended; the time limit begins anew.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .lines import NO_FUNCTION
from .tool import Input, Tool
from .tools import TOOLS

#: A task that takes longer than this is not repeated.
LONG_SECONDS = 5.0
#: Runs of a short task in one process. The first one also builds what a tool keeps.
NUM_RUNS = 2


def peak_bytes() -> int:
    """The most memory that this process had since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def reset_peak() -> None:
    """Lowers the peak to the memory in use."""
    Path("/proc/self/clear_refs").write_text("5")


def measure(tool: Tool, name: str) -> dict[str, Any]:
    """Runs a task and returns its best time, its peak and its answer."""
    run = tool.task(name)
    if run is None:
        return {"task": name, "missing": NO_FUNCTION}
    if name == "sssp":
        tool.graph = None
        gc.collect()
        tool.load_weighted()
    reset_peak()
    report({})
    seconds: list[float] = []
    answer = None
    while len(seconds) < (1 if name == "load" else NUM_RUNS) and (not seconds or seconds[0] < LONG_SECONDS):
        start = time.perf_counter()
        answer = run()
        seconds.append(time.perf_counter() - start)
        report({})
    peak = peak_bytes()
    return {"task": name, "seconds": min(seconds), "peak_bytes": peak, "answer": _kept(tool, name, answer)}


def _kept(tool: Tool, name: str, answer: Any) -> Any:
    """The answer as JSON can hold it: an array goes into a file."""
    answer = tool.comparable(name, answer)
    if name == "load" or np.isscalar(answer):
        return np.asarray(answer).tolist()
    path = tool.given.folder / f"{tool.name}-{name}.npy"
    np.save(path, np.asarray(answer, dtype=np.float64))
    return str(path)


def report(line: dict[str, Any]) -> None:
    """Tells the comparison."""
    print(json.dumps(line), flush=True)


def main(arguments: list[str]) -> None:
    """Runs the tasks of the command line."""
    name, folder, scratch, *tasks = arguments
    tool = next(kind for kind in TOOLS if kind.name == name)(Input(Path(folder), Path(scratch)))
    for task in tasks:
        try:
            line = measure(tool, task)
        except BaseException as error:  # noqa: BLE001 (panics of libraries in Rust are no `Exception`)
            line = {"task": task, "missing": f"{type(error).__name__}: {error}"[:200]}
        report(line)
        if task == "load" and "missing" in line:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
