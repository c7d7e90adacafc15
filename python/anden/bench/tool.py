"""What the compared tools have in common."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

#: Rounds of a loop that ends by itself on every connected graph of practical depth.
MAX_ROUNDS = 1_000


class Input:
    """The files of the graph, and the vertices that tasks start from."""

    def __init__(self, folder: Path, scratch: Path | None = None) -> None:
        self.folder = folder
        #: Where a tool puts its files. They are removed with its process.
        self.scratch = folder if scratch is None else scratch
        #: `source target` a line.
        self.edges = folder / "edges.txt"
        #: `source target weight` a line.
        self.weighted = folder / "weighted.txt"
        self.sources: list[int] = np.load(folder / "sources.npy").tolist()
        self.num_vertices = int(np.load(folder / "size.npy")[0])
        #: NetworkX and rustworkx end after the chosen number of iterations with this tolerance for a vertex.
        self.tolerance = float(np.load(folder / "tolerance.npy")[0])

    @property
    def source(self) -> int:
        """The vertex that single-source tasks start from."""
        return self.sources[0]

    def rows(self) -> np.ndarray:
        """The edges, for tools that read arrays only."""
        return _read_rows(self.edges, 2)

    def weighted_rows(self) -> np.ndarray:
        """The edges and their weights."""
        return _read_rows(self.weighted, 3)


class Tool:
    """One of the compared libraries.

    A method is named like its task and returns the answer as the tool gives it. A second method `as_…` turns the
    answer into an array or a number to compare, outside the measured time. A tool without a method lacks the task.
    `load` ends with every form of the graph that the tasks need. Only the weighted graph is loaded outside the
    measured time, by `load_weighted`, when the other graph is gone.
    """

    #: The name of the package.
    name: ClassVar[str]
    #: The module that must be importable.
    module: ClassVar[str]
    #: In which regard a figure is not comparable.
    note: ClassVar[str] = ""

    def __init__(self, given: Input) -> None:
        self.given = given
        self.graph: Any = None
        # The time of `load` begins after the import.
        self.peer: Any = importlib.import_module(self.module)

    def task(self, name: str) -> Callable[[], Any] | None:
        """The method for a task; none if the tool lacks it."""
        return getattr(self, name, None)

    def load_weighted(self) -> None:
        """Replaces the graph by the weighted one."""

    def comparable(self, name: str, answer: Any) -> Any:
        """The answer as an array or a number."""
        convert = getattr(self, f"as_{name}", None)
        return answer if convert is None else convert(answer)

    def by_vertex(self, answer: Any) -> np.ndarray:
        """An array from a dictionary by vertex; a missing vertex is unreached."""
        return np.array([answer.get(vertex, np.inf) for vertex in range(self.given.num_vertices)], dtype=np.float64)

    def spread(self, vertices: Any, values: Any) -> np.ndarray:
        """An array from two columns; a missing vertex is unreached."""
        array = np.full(self.given.num_vertices, np.inf)
        array[np.asarray(vertices)] = np.asarray(values)
        return array


def _read_rows(path: Path, num_columns: int) -> np.ndarray:
    return np.fromfile(path, dtype=np.int64, sep=" ").reshape(-1, num_columns)
