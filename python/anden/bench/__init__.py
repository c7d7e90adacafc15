"""Compares Anden with the graph libraries of Python that are installed, in one run.

``python -m anden.bench`` generates an R-MAT graph or reads a file, loads it by each tool in a process of its own, runs
each task, compares the answers with those of Anden, and prints a table. The tools alternate: each round starts every
tool once. ``python -m anden.bench --overhead`` measures what a call costs beyond the kernel that it runs. ``python -m
anden.bench --help`` lists the options.
"""

from __future__ import annotations

#: The tasks in the order in which a tool runs them. `sssp` is last, because a tool then replaces its graph by the
#: weighted one.
TASKS = ("load", "pagerank", "bfs", "components", "triangles", "betweenness", "kcore", "sssp")

#: PageRank runs this many iterations.
ITERATIONS = 10
#: PageRank follows an edge with this probability.
DAMPING = 0.85
#: Betweenness takes paths from this many vertices.
NUM_SOURCES = 8
