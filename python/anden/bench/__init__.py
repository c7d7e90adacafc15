"""Compares Anden with the graph libraries of Python that are installed, in one run.

``python -m anden.bench`` generates an R-MAT graph, loads it by each tool in a process of its own, runs each task,
compares the answers with those of Anden, and prints a line for each. ``python -m anden.bench --help`` lists the
options.
"""

from __future__ import annotations

#: The tasks in the order in which a tool runs them.
TASKS = ("load", "pagerank", "bfs", "components", "sssp", "triangles", "betweenness", "kcore")

#: PageRank runs this many iterations where the tool lets the caller choose.
ITERATIONS = 10
#: Betweenness takes paths from this many vertices.
NUM_SOURCES = 8
