"""Loads every graph file of the given folders, and compares with what other libraries read in it.

usage: python -m anden.corpus FOLDER... [--largest BYTES] [--formats NAME,...]

For each file, the number of vertices and edges and the sizes of the components are compared with those that SciPy
(Matrix Market), NetworkX (GraphML, GML, GEXF, Pajek, node-link JSON), pandas (text, CSV, JSON lines) or DuckDB
(Parquet) find in it. Then the graph is exported to each format, loaded again and compared, edge by edge. A line for
each file says what was compared, what was refused and why, and what differs. The exit status is 1 if anything differs.

NumPy, pandas and SciPy are needed; a file whose other reader is not installed is compared with its exports alone.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anden
import numpy as np

pd: Any = importlib.import_module("pandas")

#: The formats of exports but the CSV of bulk loaders, and the ending of their files.
FORMATS = {
    "edgelist": ".txt",
    "csv": ".csv",
    "mtx": ".mtx",
    "parquet": ".parquet",
    "arrow": ".arrow",
    "graphml": ".graphml",
    "gexf": ".gexf",
    "gml": ".gml",
    "pajek": ".net",
    "json": ".json",
    "jsonl": ".jsonl",
    "gapbs": ".sg",
    "bvgraph": ".graph",
    "graphframes": "",
    "graphar": "",
}
#: Formats whose vertices are numbers of rows: line N of the file of vertices is row N.
NUMBERED = {"mtx", "gapbs", "bvgraph"}
#: Formats that hold no weights.
WITHOUT_WEIGHTS = {"bvgraph"}
#: Formats that hold vertices without edges themselves.
WITH_VERTICES = {"arrow", "graphml", "gexf", "gml", "pajek", "json", "graphframes", "graphar"}
#: Formats that hold properties of edges.
WITH_PROPERTIES = {"csv", "parquet", "arrow", "graphml", "gexf", "gml", "json", "jsonl", "graphframes", "graphar"}
#: The bytes of the largest file that is read, unless the command says otherwise.
LARGEST = 200_000_000


@dataclass
class Reading:
    """What another library finds in a file: pairs of keys as text, and vertices without edges."""

    reader: str
    sources: np.ndarray[Any, Any]
    targets: np.ndarray[Any, Any]
    alone: int = 0

    def facts(self, *, directed: bool, multigraph: bool) -> dict[str, Any]:
        """The counts, without repeated edges unless it is a multigraph."""
        keys, ids = np.unique(np.concatenate([self.sources, self.targets]), return_inverse=True)
        sources, targets = ids[: len(self.sources)], ids[len(self.sources) :]
        if not directed:
            sources, targets = np.minimum(sources, targets), np.maximum(sources, targets)
        edges = len(sources) if multigraph else len(np.unique(sources.astype(np.int64) * len(keys) + targets))
        sizes = component_sizes(sources, targets, len(keys)) + [1] * self.alone
        vertices, largest = len(keys) + self.alone, max(sizes, default=0)
        return {"vertices": vertices, "edges": edges, "components": len(sizes), "largest": largest}


def component_sizes(sources: np.ndarray[Any, Any], targets: np.ndarray[Any, Any], num_vertices: int) -> list[int]:
    """Sizes of the weakly connected components, by SciPy."""
    sparse, csgraph = importlib.import_module("scipy.sparse"), importlib.import_module("scipy.sparse.csgraph")
    matrix = sparse.coo_array((np.ones(len(sources), dtype=np.int8), (sources, targets)), shape=(num_vertices,) * 2)
    labels = csgraph.connected_components(matrix, directed=False)[1]
    return [int(size) for size in np.bincount(labels)] if num_vertices else []


def text(values: Any) -> np.ndarray[Any, Any]:
    return np.asarray(values).astype(str)


def read_matrix(path: Path, _: dict[str, Any]) -> Reading:
    matrix = importlib.import_module("scipy.io").mmread(path, spmatrix=False)
    shift = 0 if matrix.shape[0] == matrix.shape[1] else matrix.shape[0]
    num_vertices = matrix.shape[0] + shift * matrix.shape[1] // max(shift, 1)
    used = len(np.unique(np.concatenate([matrix.row, matrix.col + shift])))
    return Reading("SciPy", text(matrix.row), text(matrix.col + shift), num_vertices - used)


def by_networkx(read: str) -> Callable[[Path, dict[str, Any]], Reading]:
    """A reader of NetworkX, by the name of the function."""

    def reading(path: Path, _: dict[str, Any]) -> Reading:
        nx = importlib.import_module("networkx")
        graph = nx.node_link_graph(json.loads(path.read_text())) if read == "node_link" else getattr(nx, read)(path)
        edges = [(str(edge[0]), str(edge[1])) for edge in graph.edges()]
        alone = sum(1 for _ in nx.isolates(graph))
        return Reading("NetworkX", text([edge[0] for edge in edges]), text([edge[1] for edge in edges]), alone)

    return reading


def read_text(path: Path, report: dict[str, Any]) -> Reading:
    """Lists and CSV, with the columns that our report names."""
    named = [report["source_column"], report["target_column"]]
    common: dict[str, Any] = {"dtype": str, "keep_default_na": False}
    if ".csv" in path.suffixes or ".tsv" in path.suffixes:
        first = str(pd.read_csv(path, sep="\x01", header=None, nrows=1, dtype=str).iloc[0, 0])
        common |= {"sep": max(",;\t|", key=first.count)}
    else:
        common |= {"sep": r"\s+", "comment": "#"}
    if all(name is None or name.isdigit() for name in named):
        places = [int(name or place) - 1 for place, name in enumerate(named, start=1)]
        table = pd.read_csv(path, header=None, usecols=places, **common)
        # A first line with # is a comment or an edge; the number of edges tells.
        if str(table.iloc[0, 0]).startswith("#"):
            table = table.iloc[len(table) - report["edges_read"] :]
    else:
        table = pd.read_csv(path, **common)
        # Of two columns with one name, the first is the source.
        table = table[[named[0], named[1] if named[0] != named[1] else f"{named[1]}.1"]]
    rows = table.dropna()
    return Reading("pandas", text(rows.iloc[:, 0]), text(rows.iloc[:, 1]))


def read_dimacs(path: Path, _: dict[str, Any]) -> Reading:
    lines = pd.read_csv(path, sep="\x01", header=None, dtype=str)[0]
    problem = lines[lines.str.startswith("p ")].str.split().iloc[0]
    edges = lines[lines.str.startswith(("a ", "e "))].str.split(expand=True)
    used = len(set(edges[1]) | set(edges[2]))
    return Reading("pandas", text(edges[1]), text(edges[2]), int(problem[2]) - used)


def read_parquet(path: Path, report: dict[str, Any]) -> Reading:
    duckdb = importlib.import_module("duckdb")
    names = ", ".join(f'"{report[name]}"::VARCHAR' for name in ("source_column", "target_column"))
    rows = duckdb.sql(f"SELECT {names} FROM read_parquet('{path}')").fetchnumpy()
    sources, targets = rows.values()
    return Reading("DuckDB", text(sources), text(targets))


READERS: dict[str, Callable[[Path, dict[str, Any]], Reading]] = {
    ".mtx": read_matrix,
    ".graphml": by_networkx("read_graphml"),
    ".gml": by_networkx("read_gml"),
    ".gexf": by_networkx("read_gexf"),
    ".net": by_networkx("read_pajek"),
    ".json": by_networkx("node_link"),
    ".txt": read_text,
    ".el": read_text,
    ".csv": read_text,
    ".tsv": read_text,
    ".gr": read_dimacs,
    ".col": read_dimacs,
    ".parquet": read_parquet,
}


def loaded(path: Path) -> anden.Database:
    """The graph of a file, with the kind of keys and edges that it needs."""
    options: dict[str, Any] = {}
    while True:
        try:
            return anden.load(None, path, **options)
        except anden.InvalidInput as error:
            if "ids string" in str(error) and "ids" not in options:
                options["ids"] = "string"
            elif "duplicates keep" in str(error) and "duplicates" not in options:
                options["duplicates"] = "keep"
            else:
                raise


def facts(view: anden.View) -> dict[str, Any]:
    sizes = np.unique(view.wcc(), return_counts=True)[1]
    largest = int(sizes.max()) if len(sizes) else 0
    return {"vertices": view.num_vertices, "edges": view.num_edges, "components": len(sizes), "largest": largest}


def rows(
    view: anden.View, *, properties: bool, weights: bool, keys: list[str] | None = None
) -> list[tuple[str, ...]]:
    """The edges as sorted rows of text; `keys` translates ids."""
    columns = view.edges().to_numpy()
    keys_and_weight = ("source", "target", "weight") if weights else ("source", "target")
    # A format without a schema drops a property that no edge has.
    names = [
        name
        for name in columns
        if name in keys_and_weight or (properties and not set(text(columns[name])) <= {"None", "nan", "NaT"})
    ]
    as_text = [text(columns[name]) for name in names]
    if keys is not None:
        as_text[:2] = [np.array(keys)[column.astype(int)] for column in as_text[:2]]
    if not view.directed:
        # Either end may come first.
        low, high = as_text[:2]
        as_text[:2] = np.where(low < high, low, high), np.where(low < high, high, low)
    return sorted(zip(*as_text, strict=True))


def row_keys(view: anden.View, name: str) -> list[str]:
    """The key of each row of a format whose vertices are numbers."""
    keys = [str(key) for key in view.keys()]
    if view.database.options["ids"] == "string":
        return keys
    # Integer keys that are numbers of rows stay as they are, in whatever order the ids have.
    for first in {"mtx": [1], "bvgraph": [0, 1]}.get(name, []):
        numbers = [str(first + row) for row in range(len(keys))]
        if set(keys) == set(numbers):
            return numbers
    return keys


def again(view: anden.View, name: str, folder: Path) -> Iterator[str]:
    """Exports to a format and loads the result. Yields what differs."""
    file, vertices = folder / f"graph{FORMATS[name]}", folder / "vertices.csv"
    if name == "gapbs" and view.weighted:
        file = file.with_suffix(".wsg")
    view.export(file, format=name, vertices=None if not FORMATS[name] else vertices)
    is_text = view.database.options["ids"] == "string"
    options: dict[str, Any] = {"directed": view.directed, "undirected": not view.directed, "format": name}
    options |= {"ids": "dense" if name in NUMBERED else "string" if is_text else "integer"}
    weights = name not in WITHOUT_WEIGHTS
    if view.weighted and weights:
        options |= {"weights": True, "weight_type": view.weight_type}
    # Both arcs of an undirected edge stand in a BVGraph, which has no parallel edges.
    if view.multigraph and name != "bvgraph":
        options |= {"duplicates": "keep", "multigraph": True}
    if name not in NUMBERED | WITH_VERTICES:
        options |= {"vertices": vertices}
    if name == "edgelist":
        options |= {"header": "none"}
    back = anden.load(None, file, **options).view()
    keys = row_keys(view, name) if name in NUMBERED else None
    has_properties = name in WITH_PROPERTIES
    if back.num_vertices != view.num_vertices:
        yield f"{name}: {back.num_vertices} vertices in place of {view.num_vertices}"
    ours = rows(view, properties=has_properties, weights=weights)
    theirs = rows(back, properties=has_properties, weights=weights, keys=keys)
    if ours != theirs:
        pairs = zip(ours, theirs, strict=False)
        first = next((pair for pair in pairs if pair[0] != pair[1]), (len(ours), len(theirs)))
        yield f"{name}: the edges differ: {first[1]} in place of {first[0]}"


def check(path: Path, formats: list[str]) -> tuple[str, list[str]]:
    """What was compared, and what differs."""
    try:
        database = loaded(path)
    except anden.Error as error:
        return f"refused: {error}", []
    view, differing = database.view(), []
    ours = facts(view)
    done = f"{ours['vertices']:,} vertices, {ours['edges']:,} edges"
    suffix = next((suffix for suffix in reversed(path.suffixes) if suffix in READERS), None)
    if suffix is not None:
        try:
            reading = READERS[suffix](path, database.report or {})
        except Exception as error:  # noqa: BLE001 (whatever another library raises is its answer)
            done += f"; other reader: {type(error).__name__}: {str(error)[:80]}"
        else:
            theirs = reading.facts(directed=view.directed, multigraph=view.multigraph)
            done += f"; compared with {reading.reader}"
            unlike = [name for name in ours if theirs[name] != ours[name]]
            differing += [f"{reading.reader}: {theirs[name]} {name} in place of {ours[name]}" for name in unlike]
    for name in formats:
        with tempfile.TemporaryDirectory() as folder:
            try:
                differing += again(view, name, Path(folder))
            except anden.Error as error:
                done += f"; {name}: {error}"
    return done, differing


def main() -> int:
    description = "Compare what Anden and other libraries read in graph files."
    parser = argparse.ArgumentParser(prog="python -m anden.corpus", description=description)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--largest", type=int, default=LARGEST, metavar="BYTES", help="leave out larger files")
    parser.add_argument("--formats", default=",".join(FORMATS), help=f"formats of exports, of {', '.join(FORMATS)}")
    options = parser.parse_args()
    num_differing = 0
    for path in sorted(path for folder in options.folders for path in folder.rglob("*") if path.is_file()):
        if path.stat().st_size > options.largest:
            print(f"{path}: left out, larger than {options.largest:,} bytes")
            continue
        done, differing = check(path, options.formats.split(","))
        num_differing += len(differing)
        print(f"{path}: {done}", *(f"    DIFFERS {line}" for line in differing), sep="\n", flush=True)
    return 1 if num_differing else 0


if __name__ == "__main__":
    sys.exit(main())
