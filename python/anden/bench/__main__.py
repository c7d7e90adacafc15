"""The command line of the comparison: `python -m anden.bench`."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import TASKS, calls, graphs, overhead, processes
from .lines import Line, compare
from .picture import plot_lines
from .table import Lines, differences, markdown, reference
from .tool import Input, Tool
from .tools import TOOLS
from .worker import LONG_SECONDS

#: The edges of a conversion on a graph that is not small.
MANY_EDGES = 10_000_000
#: A tool that takes longer than this to load is not started again: its short tasks have run twice by then.
LONG_LOAD_SECONDS = 30.0


def main(arguments: list[str] | None = None) -> int:
    """Runs the comparison. Returns 1 if an answer differs from that of the first tool."""
    options = _parser().parse_args(arguments)
    if options.overhead:
        print(overhead.table(options.scale, options.degree, options.seed))
        print()
        print(calls.table(MANY_EDGES if options.scale >= 16 else options.degree << options.scale))
        return 0
    tasks = [task for task in TASKS if task in _names(options.tasks, TASKS, "task")]
    tools = list(_chosen(options.tools))
    with tempfile.TemporaryDirectory(prefix="anden-bench-", dir=options.folder) as folder:
        title, given = _input(options, Path(folder))
        print(title, flush=True)
        lines = _measure(tools, tasks, given, options)
        table = markdown(title, tools, lines)
        differing = differences(lines)
    print(f"\n{table}")
    if options.markdown is not None:
        options.markdown.write_text(table)
    if options.json is not None:
        options.json.write_text(json.dumps([vars(line) for line in lines.values()], indent=1) + "\n")
    if options.plot is not None:
        plot_lines(list(lines.values()), title, options.plot)
    for text in differing:
        print(f"differs: {text}", file=sys.stderr)
    return 1 if differing else 0


def _parser() -> argparse.ArgumentParser:
    names = [tool.name for tool in TOOLS]
    parser = argparse.ArgumentParser(prog="python -m anden.bench", description="Compare graph libraries of Python.")
    parser.add_argument("--scale", type=int, default=20, help="R-MAT: 2^SCALE vertices (default 20)")
    parser.add_argument("--degree", type=int, default=16, help="R-MAT: edges for each vertex (default 16)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the graph and its weights (default 1)")
    parser.add_argument("--edges", type=Path, metavar="FILE", help="measure on this file, in any format, instead")
    parser.add_argument("--tools", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument("--tasks", default=",".join(TASKS), help=f"of {', '.join(TASKS)}")
    parser.add_argument("--repeat", type=int, default=3, metavar="ROUNDS", help="the fastest run counts (default 3)")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="for a run of a task (default 300)")
    parser.add_argument("--folder", type=Path, help="where to put files (default: the temporary folder)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table to this file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--overhead", action="store_true", help="only the time of our calls, beyond our kernels and alone")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the times, as .svg or .png (Matplotlib)")
    return parser


def _input(options: argparse.Namespace, folder: Path) -> tuple[str, Input]:
    if options.edges is not None:
        pairs, name = graphs.read(options.edges), options.edges.name
    else:
        pairs = graphs.rmat(options.scale, options.degree, options.seed)
        name = f"R-MAT scale {options.scale} degree {options.degree}"
    pairs = graphs.simplify(pairs)
    given = graphs.write(pairs, folder, options.seed)
    title = f"{name}: {given.num_vertices:,} vertices, {len(pairs):,} undirected edges; {os.cpu_count()} cores"
    return title, given


def _names(text: str, known: Sequence[str], what: str) -> list[str]:
    chosen = text.lower().split(",")
    for name in chosen:
        if name not in known:
            raise SystemExit(f"there is no {what} {name!r}: there are {', '.join(known)}")
    return chosen


def _chosen(text: str) -> Iterator[type[Tool]]:
    chosen = _names(text, [tool.name for tool in TOOLS], "tool")
    for tool in TOOLS:
        if tool.name not in chosen:
            continue
        if importlib.util.find_spec(tool.module.partition(".")[0]) is None:
            print(f"skipped: {tool.name}, because {tool.module} is not installed", flush=True)
            continue
        yield tool


def _measure(tools: list[type[Tool]], tasks: list[str], given: Input, options: argparse.Namespace) -> Lines:
    """The best line of each tool and task. Each round starts every tool that has a task to run."""
    lines: Lines = {}
    for number in range(options.repeat):
        for tool in tools:
            due = [task for task in tasks if _is_due(lines.get((tool.name, task)))]
            load = lines.get((tool.name, "load"))
            if number > 0 and (not due or load is None or (load.seconds or 0) > LONG_LOAD_SECONDS):
                continue
            for line in processes.run(tool, given, due, options.limit):
                key = (line.tool, line.task)
                lines[key] = line.better(lines.get(key))
                print(_text(number, line, lines), flush=True)
    return lines


def _is_due(line: Line | None) -> bool:
    """Whether a task is to run: in the first round, or again because it is short."""
    return line is None or (line.seconds is not None and line.seconds < LONG_SECONDS)


def _text(number: int, line: Line, lines: Lines) -> str:
    head = f"round {number + 1}  {line.tool:<16} {line.task:<12}"
    if line.seconds is None:
        return f"{head} {line.missing}"
    answer = compare(reference(lines, line.task), line)[1]
    return f"{head} {line.seconds:10.4f} s {line.peak_bytes / 1e6:8.0f} MB  {answer}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
