"""The command line of the comparison: `python -m anden.bench`."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from . import TASKS, graphs
from .lines import Line
from .picture import plot_lines
from .tools import TOOLS, Input, Tool

#: Answers of floating-point tasks may differ by this share of the largest value.
CLOSE = 1e-6
#: The sum of absolute differences up to which PageRanks agree, as tools stop after different iterations.
CLOSE_RANKS = 0.05


def main(arguments: list[str] | None = None) -> int:
    """Runs the comparison. Returns 1 if an answer differs from that of Anden."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="anden-bench-", dir=options.folder) as folder:
        given = _input(options, Path(folder))
        lines = [line for tool in _chosen(options) for line in _run(tool, given, options)]
        _print(lines)
        differing = _differences(lines)
    if options.json is not None:
        options.json.write_text(json.dumps([vars(line) for line in lines], indent=1) + "\n")
    if options.plot is not None:
        plot_lines(lines, options.plot)
    for text in differing:
        print(f"differs: {text}", file=sys.stderr)
    return 1 if differing else 0


def _parser() -> argparse.ArgumentParser:
    names = [tool.__name__.lower() for tool in TOOLS]
    parser = argparse.ArgumentParser(prog="python -m anden.bench", description="Compare graph libraries of Python.")
    parser.add_argument("--scale", type=int, default=20, help="R-MAT: 2^SCALE vertices (default 20)")
    parser.add_argument("--degree", type=int, default=16, help="R-MAT: edges for each vertex (default 16)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the graph and its weights (default 1)")
    parser.add_argument("--edges", type=Path, metavar="FILE", help="measure on this edge list instead")
    parser.add_argument("--tools", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument("--tasks", default=",".join(TASKS), help=f"of {', '.join(TASKS)}")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each task, the best counts (default 3)")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="for each task (default 300)")
    parser.add_argument("--folder", type=Path, help="where to put files (default: the temporary folder)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the lines to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the times into this file (Matplotlib)")
    return parser


def _input(options: argparse.Namespace, folder: Path) -> Input:
    if options.edges is not None:
        pairs, name = graphs.read(options.edges), options.edges.name
    else:
        pairs = graphs.rmat(options.scale, options.degree, options.seed)
        name = f"R-MAT scale {options.scale} degree {options.degree}"
    pairs = graphs.simplify(pairs)
    given = graphs.write(pairs, folder, options.seed)
    print(
        f"{name}: {given.num_vertices:,} vertices, {len(pairs):,} undirected edges; {os.cpu_count()} cores", flush=True
    )
    return given


def _names(text: str, known: list[str], what: str) -> list[str]:
    chosen = text.lower().split(",")
    for name in chosen:
        if name not in known:
            raise SystemExit(f"there is no {what} {name!r}: there are {', '.join(known)}")
    return chosen


def _chosen(options: argparse.Namespace) -> Iterator[type[Tool]]:
    chosen = _names(options.tools, [tool.__name__.lower() for tool in TOOLS], "tool")
    for tool in TOOLS:
        if tool.__name__.lower() not in chosen:
            continue
        if importlib.util.find_spec(tool.module.partition(".")[0]) is None:
            print(f"skipped: {tool.__name__}, because {tool.module} is not installed", flush=True)
            continue
        yield tool


def _run(tool: type[Tool], given: Input, options: argparse.Namespace) -> Iterator[Line]:
    """The lines of one tool. After a task beyond the limit, a new process loads again and goes on."""
    left = [task for task in _names(options.tasks, list(TASKS), "task") if task != "load"]
    is_first = True
    while True:
        num_done = 0
        for line in _worker(tool, given, ["load", *left], options):
            if line.task != "load" or is_first:
                print(f"  {_text(line)}", flush=True)
                yield line
            num_done += line.task != "load"
        left = left[num_done:]
        if not left or num_done == 0:
            return
        is_first = False


def _worker(tool: type[Tool], given: Input, tasks: list[str], options: argparse.Namespace) -> Iterator[Line]:
    name = tool.__name__
    command = [sys.executable, "-m", "anden.bench.worker", name, str(given.folder), str(options.repeat), *tasks]
    environment = os.environ | {"NETWORKX_BACKEND_PRIORITY": ""}
    output = subprocess.PIPE
    with subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, text=True, env=environment) as process:
        assert process.stdout is not None
        answers: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=_read_lines, args=(process.stdout, answers))
        reader.start()
        try:
            for task in tasks:
                line = _next_line(name, task, answers, options.limit * options.repeat)
                yield line
                if line.is_last or (task == "load" and line.seconds is None):
                    return
        finally:
            process.kill()
            reader.join()


def _read_lines(output: IO[str], answers: queue.Queue[str]) -> None:
    for text in output:
        answers.put(text)
    # An empty line says that the process has ended.
    answers.put("")


def _next_line(tool: str, task: str, answers: queue.Queue[str], limit: float) -> Line:
    try:
        text = answers.get(timeout=limit)
    except queue.Empty:
        return Line(tool, task, missing="beyond the time limit", is_last=True)
    if not text:
        return Line(tool, task, missing="the process ended", is_last=True)
    found = json.loads(text)
    if "missing" in found:
        return Line(tool, task, missing=found["missing"])
    return Line(tool, task, min(found["seconds"]), found["peak_bytes"], found["answer"])


def _text(line: Line) -> str:
    head = f"{line.tool:<10} {line.task:<12}"
    if line.seconds is None or line.peak_bytes is None:
        return f"{head} {line.missing}"
    return f"{head} {line.seconds:10.4f} s {line.peak_bytes / 1e6:8.0f} MB"


def _print(lines: list[Line]) -> None:
    """The table: a row for each task and tool, with its time as a multiple of the first tool's."""
    ours = _references(lines)
    print(f"\n| task | tool | seconds | times the first | peak MB | answer |\n|{' --- |' * 6}")
    for task in TASKS:
        for line in lines:
            if line.task == task and line.seconds is not None and line.peak_bytes is not None:
                own = ours.get(task)
                ratio = f"{line.seconds / own.seconds:.1f}" if own is not None and own.seconds else ""
                cells = (task, line.tool, f"{line.seconds:.4f}", ratio, f"{line.peak_bytes / 1e6:.0f}")
                print(f"| {' | '.join(cells)} | {compare(own, line)[1]} |")


def _references(lines: list[Line]) -> dict[str, Line]:
    """The line of each task that the others are compared with: the first tool's, which is Anden unless left out."""
    references: dict[str, Line] = {}
    for line in lines:
        if line.seconds is not None:
            references.setdefault(line.task, line)
    return references


def _differences(lines: list[Line]) -> list[str]:
    ours = _references(lines)
    compared = [(line, *compare(ours.get(line.task), line)) for line in lines if line.seconds is not None]
    return [f"{line.tool}, {line.task}: {text}" for line, is_equal, text in compared if not is_equal]


def compare(own: Line | None, other: Line) -> tuple[bool, str]:
    """Whether two answers agree, and a text that says how."""
    if own is None or own.seconds is None or own is other:
        return True, ""
    if not isinstance(own.answer, str):
        is_equal = own.answer == other.answer
        return is_equal, "equal" if is_equal else f"{other.answer}, not {own.answer}"
    a, b = np.load(own.answer), np.load(other.answer)
    if a.shape != b.shape:
        return False, f"{b.shape[0]} values, not {a.shape[0]}"
    if other.task == "pagerank":
        distance = float(np.abs(a - b).sum())
        return distance < CLOSE_RANKS, f"L1 distance {distance:.1e}"
    if (np.isinf(a) != np.isinf(b)).any():
        return False, "other vertices are unreached"
    finite = np.isfinite(a)
    largest = float(np.abs(a[finite] - b[finite]).max(initial=0)) / max(float(np.abs(a[finite]).max(initial=0)), 1.0)
    return largest <= CLOSE, "equal" if largest == 0 else f"largest difference {largest:.1e}"


if __name__ == "__main__":
    sys.exit(main())
