"""NetworkX's own tests of the functions that the backend has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

nx = pytest.importorskip("networkx")
pytest.importorskip("scipy")

#: The test files of NetworkX with tests of our functions.
FILES = (
    "algorithms/centrality/tests/test_betweenness_centrality.py",
    "algorithms/centrality/tests/test_closeness_centrality.py",
    "algorithms/centrality/tests/test_degree_centrality.py",
    "algorithms/centrality/tests/test_harmonic_centrality.py",
    "algorithms/components/tests",
    "algorithms/link_analysis/tests/test_pagerank.py",
    "algorithms/shortest_paths/tests",
    "algorithms/tests/test_cluster.py",
    "algorithms/tests/test_core.py",
    "algorithms/tests/test_dag.py",
    "algorithms/tests/test_distance_measures.py",
    "algorithms/tests/test_efficiency.py",
    "algorithms/tests/test_isolate.py",
    "algorithms/tests/test_reciprocity.py",
    "algorithms/tests/test_regular.py",
    "algorithms/tests/test_wiener.py",
    "algorithms/traversal/tests/test_bfs.py",
    "algorithms/tree/tests/test_recognition.py",
    "classes/tests/test_function.py",
)


@pytest.mark.timeout(900)
def test_networkx_tests_of_our_functions_pass() -> None:
    root = Path(nx.__file__).parent
    missing = [name for name in FILES if not (root / name).exists()]
    assert not missing, f"NetworkX {nx.__version__} has no {missing}"
    # Without the fallback, NetworkX marks each test that builds its graph by a generator as an expected failure.
    environment = os.environ | {"NETWORKX_TEST_BACKEND": "anden", "NETWORKX_FALLBACK_TO_NX": "True"}
    # These tests compare `usebounds`, which the backend leaves to NetworkX, and convert a graph some hundred times.
    left_out = "not use_bounds"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", left_out, *FILES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
