"""The comparison script runs, and its answers agree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anden.bench import TASKS, graphs
from anden.bench.__main__ import compare
from anden.bench.lines import Line

MODULES = {"networkx": "networkx", "scipy": "scipy"}


def test_tools_give_equal_answers(tmp_path: Path) -> None:
    for module in (*MODULES.values(), "matplotlib"):
        pytest.importorskip(module)
    file = tmp_path / "lines.json"
    options = f"--scale 8 --degree 6 --repeat 1 --tools anden,networkx,scipy --json {file} --plot {tmp_path}/lines.png"
    command = [sys.executable, "-m", "anden.bench", *options.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = json.loads(file.read_text())
    finished = {(line["tool"], line["task"]) for line in lines if line["seconds"] is not None}
    assert finished >= {(tool, task) for tool in ("Anden", "NetworkX") for task in TASKS}
    assert "| kcore | NetworkX |" in done.stdout
    assert (tmp_path / "lines.png").stat().st_size > 1_000


def test_edge_list_of_a_file_and_missing_tools(tmp_path: Path) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("# a comment\n5 7\n7 5\n9 9\n7 9\n")
    command = [sys.executable, "-m", "anden.bench", "--edges", str(file), "--tools", "anden", "--tasks", "components"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 vertices, 2 undirected edges" in done.stdout
    wrong = subprocess.run([*command[:-1], "colors"], capture_output=True, text=True, check=False)
    assert "no task 'colors'" in wrong.stderr


def test_rmat_is_simple_and_reproducible() -> None:
    pairs = graphs.simplify(graphs.rmat(8, 4, seed=3))
    assert (pairs == graphs.simplify(graphs.rmat(8, 4, seed=3))).all()
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs)) == pairs.max() + 1


def test_differing_answers_are_told(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(ours, np.array([0, 1, np.inf]))
    np.save(theirs, np.array([0, 2, np.inf]))
    own = Line("Anden", "bfs", 1.0, 1, str(ours))
    assert compare(own, Line("Other", "bfs", 1.0, 1, str(ours))) == (True, "equal")
    assert compare(own, Line("Other", "bfs", 1.0, 1, str(theirs)))[0] is False
    np.save(theirs, np.array([0, 1, 2.0]))
    assert compare(own, Line("Other", "bfs", 1.0, 1, str(theirs)))[1] == "other vertices are unreached"
    assert compare(Line("Anden", "triangles", 1.0, 1, 3), Line("Other", "triangles", 1.0, 1, 4)) == (False, "4, not 3")
