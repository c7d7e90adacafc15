"""One tool in a process of its own: prints a line of JSON for each task.

usage: python -m anden.bench.worker TOOL FOLDER REPEAT TASK…
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .tools import TOOLS, Input, Tool

#: A task that takes longer than this is not repeated.
LONG_SECONDS = 5.0


def peak_bytes() -> int:
    """The most memory that this process had since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def reset_peak() -> None:
    """Lowers the peak to the memory in use."""
    Path("/proc/self/clear_refs").write_text("5")


def measure(tool: Tool, name: str, repeat: int) -> dict[str, Any]:
    """Runs a task and returns its times, its peak and its answer."""
    run = tool.task(name)
    if run is None:
        return {"task": name, "missing": "no such function"}
    tool.prepare(name)
    reset_peak()
    seconds: list[float] = []
    answer = None
    while len(seconds) < (1 if name == "load" else repeat) and (not seconds or seconds[0] < LONG_SECONDS):
        start = time.perf_counter()
        answer = run()
        seconds.append(time.perf_counter() - start)
    peak = peak_bytes()
    return {"task": name, "seconds": seconds, "peak_bytes": peak, "answer": _kept(tool, name, answer)}


def _kept(tool: Tool, name: str, answer: Any) -> Any:
    """The answer as JSON can hold it: an array goes into a file."""
    answer = tool.comparable(name, answer)
    if name == "load" or np.isscalar(answer):
        return np.asarray(answer).tolist()
    path = tool.given.folder / f"{type(tool).__name__}-{name}.npy"
    np.save(path, np.asarray(answer, dtype=np.float64))
    return str(path)


def main(arguments: list[str]) -> None:
    """Runs the tasks of the command line."""
    name, folder, repeat, *tasks = arguments
    tool = next(kind for kind in TOOLS if kind.__name__ == name)(Input(Path(folder)))
    for task in tasks:
        try:
            line = measure(tool, task, int(repeat))
        except Exception as error:
            line = {"task": task, "missing": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(line), flush=True)
        if task == "load" and "missing" in line:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
