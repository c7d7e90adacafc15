"""The comparison script runs, and its answers agree."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anden
import numpy as np
import pytest
from anden.bench import ITERATIONS, TASKS, graphs, processes, table
from anden.bench.__main__ import main
from anden.bench.lines import Line, compare
from anden.bench.tools import Anden, NetworkX


def bench(options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anden.bench", *options.split()]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_tools_give_equal_answers(tmp_path: Path) -> None:
    for module in ("networkx", "scipy", "matplotlib"):
        pytest.importorskip(module)
    file, page, picture = (tmp_path / name for name in ("lines.json", "table.md", "lines.svg"))
    options = "--scale 8 --degree 6 --repeat 2 --tools anden,networkx,scipy,duckdb,polars"
    done = bench(f"{options} --json {file} --markdown {page} --plot {picture}")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = json.loads(file.read_text())
    finished = {(line["tool"], line["task"]) for line in lines if line["seconds"] is not None}
    assert finished >= {(tool, task) for tool in ("anden", "networkx") for task in TASKS}
    text = page.read_text()
    assert text in done.stdout and "All answers agree." in text
    assert [row.split(" | ")[0].strip("| ") for row in text.splitlines() if row.startswith("| ")][2:] == [
        *TASKS,
        "peak, MB",
    ]
    assert 1_000 < picture.stat().st_size < 60_000
    # The tools take turns.
    loads = [line.split() for line in done.stdout.splitlines() if line.startswith("round") and " load " in line]
    names = ["anden", "networkx", "scipy", "duckdb", "polars"]
    assert [tool for _, number, tool, *_ in loads if number == "1"] == [name for name in names if name in done.stdout]
    assert [tool for _, number, tool, *_ in loads] == 2 * [tool for _, number, tool, *_ in loads if number == "1"]


def test_files_of_any_format_and_missing_tools(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("# a comment\n5,7,1.5\n7,5,2\n9,9,3\n7,9,1\n")
    options = f"--edges {tmp_path}/edges.csv --tools anden --repeat 1 --tasks"
    done = bench(f"{options} components")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 vertices, 2 undirected edges" in done.stdout
    assert "no task 'colors'" in bench(f"{options} colors").stderr


def test_overhead_of_each_kernel_is_printed() -> None:
    done = bench("--overhead --scale 8 --degree 4")
    assert done.returncode == 0, done.stderr
    kernels, calls = done.stdout.split("\n\n")
    assert [line for line in calls.splitlines() if "from NumPy to a view" in line and "1,024 edges" in line]
    rows = [line.split() for line in kernels.splitlines()[2:]]
    assert {row[0] for row in rows} == set(anden.kernels())
    assert all(0 < float(engine) < float(details) for _, engine, _, details, *_ in rows)


def test_rmat_is_simple_and_reproducible() -> None:
    pairs = graphs.simplify(graphs.rmat(8, 4, seed=3))
    assert (pairs == graphs.simplify(graphs.rmat(8, 4, seed=3))).all()
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs)) == pairs.max() + 1


def test_tolerance_ends_networkx_after_the_iterations() -> None:
    nx = pytest.importorskip("networkx")
    pytest.importorskip("scipy")
    pairs = graphs.simplify(graphs.rmat(8, 4, seed=3))
    tolerance, graph = graphs.tolerance(pairs, np.bincount(pairs.ravel())), nx.Graph(pairs.tolist())
    assert nx.pagerank(graph, tol=tolerance, max_iter=ITERATIONS, backend="networkx")
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(graph, tol=tolerance, max_iter=ITERATIONS - 1, backend="networkx")


def test_limit_is_for_one_run(tmp_path: Path) -> None:
    given = graphs.write(np.array([[0, 1], [1, 2]]), tmp_path, seed=1)
    # The interpreter alone takes longer to start.
    start = time.monotonic()
    lines = list(processes.run(Anden, given, ["load", "bfs"], limit=0.001))
    assert time.monotonic() - start < 10
    assert [(line.task, line.seconds, line.missing) for line in lines] == [("load", None, "> 0.001 s")]


def test_process_goes_on_after_a_task_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, started = graphs.write(np.array([[0, 1]]), tmp_path, seed=1), []

    def process(tool: Any, given: Any, tasks: list[str], limit: float) -> Any:
        started.append(tasks)
        for task in tasks:
            if task == "bfs":
                yield Line("anden", task, missing="> 1 s")
                return
            yield Line("anden", task, 0.1, 1)

    monkeypatch.setattr(processes, "_process", process)
    lines = list(processes.run(Anden, given, ["load", "pagerank", "bfs", "kcore"], limit=1))
    assert [line.task for line in lines] == ["load", "pagerank", "bfs", "kcore"]
    assert started == [["load", "pagerank", "bfs", "kcore"], ["load", "kcore"]]


def test_long_tasks_are_not_repeated(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []

    def run(tool: Any, given: Any, tasks: list[str], limit: float) -> Any:
        asked.append(tasks)
        for task in ["load", *tasks[1:]] if tasks[0] == "load" else ["load", *tasks]:
            yield Line("anden", task, 9.0 if task == "kcore" else 1 / len(asked), len(asked), 1)

    monkeypatch.setattr(processes, "run", run)
    options = "--scale 3 --degree 2 --tools anden --tasks load,bfs,kcore --repeat 2"
    assert main(options.split()) == 0
    assert asked == [["load", "bfs", "kcore"], ["load", "bfs"]]
    assert "| bfs | 0.5 |" in capsys.readouterr().out


def test_differing_answers_are_told(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(ours, np.array([0, 1, np.inf]))
    np.save(theirs, np.array([0, 2, np.inf]))
    own = Line("anden", "bfs", 1.0, 1, str(ours))
    assert compare(own, Line("Other", "bfs", 1.0, 1, str(ours))) == (True, "equal")
    assert compare(own, Line("Other", "bfs", 1.0, 1, str(theirs)))[0] is False
    np.save(theirs, np.array([0, 1, 2.0]))
    assert compare(own, Line("Other", "bfs", 1.0, 1, str(theirs)))[1] == "other vertices are unreached"
    assert compare(Line("anden", "triangles", 1.0, 1, 3), Line("Other", "triangles", 1.0, 1, 4)) == (False, "4, not 3")


def test_table_has_multiples_limits_and_failures() -> None:
    lines = [
        Line("anden", "bfs", 0.002, 40_000_000, 1),
        Line("networkx", "bfs", 2.5, 90_000_000, 1),
        Line("anden", "kcore", 0.5, 50_000_000, 2),
        Line("networkx", "kcore", missing="> 300 s"),
        Line("anden", "sssp", 0.5, 1, 2),
        Line("networkx", "sssp", missing="ValueError: no"),
    ]
    text = table.markdown("A graph", [Anden, NetworkX], {(line.tool, line.task): line for line in lines})
    assert "|  | anden, s | networkx, × |" in text
    assert "| bfs | 0.002 | 1,250 |" in text
    assert "| kcore | 0.5 | > 300 s |" in text
    assert "| sssp | 0.5 | failed |" in text and "networkx, sssp: ValueError: no." in text
    assert "| peak, MB | 50 | 90 |" in text
