"""Databases from arrays, tables and graphs of other libraries, and views as these.

Each `from_…` function makes a database: in memory, or at ``path``. All of them take the keywords of `load` that
concern the graph: ``directed``, ``ids``, ``weight_type``, ``duplicates``, ``multigraph``, ``ordered``, ``out_only``,
``name``, ``threads`` and ``memory``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from . import _anden
from ._anden import Database, InvalidInput, View, table_types

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

Path = str | os.PathLike[str] | None

#: Arrow types of text, which make string keys.
TEXT = ("Utf8", "LargeUtf8", "Utf8View")
#: The type of weights for an Arrow type.
WEIGHT_TYPES = {
    "UInt8": "u32", "UInt16": "u32", "UInt32": "u32", "UInt64": "i64",
    "Int8": "i64", "Int16": "i64", "Int32": "i64", "Int64": "i64",
    "Float16": "f32", "Float32": "f32", "Float64": "f64",
}  # fmt: skip
WEIGHT = "weight"


def from_numpy(
    src: ArrayLike,
    dst: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    path: Path = None,
    properties: Mapping[str, ArrayLike] | None = None,
    num_vertices: int | None = None,
    **options: Any,
) -> Database:
    """Make a database from arrays of sources and targets.

    Contiguous arrays of integers are read where they are. Do not write to them during the call.

    Parameters
    ----------
    src, dst : array_like
        The keys of the two ends of each edge: integers of any width from 0 on, or text.
    weights : array_like, optional
        The weight of each edge. Their dtype decides the type of the weights, unless ``weight_type`` does.
    path : str or os.PathLike, optional
        The directory of the new database; by default in memory.
    properties : mapping of str to array_like, optional
        Properties of the edges, by name.
    num_vertices : int, optional
        The vertices 0 to ``num_vertices - 1`` exist, with and without edges.
    **options
        As for `load`: ``directed``, ``ids`` ("integer", or "string" for text), ``duplicates`` and so on.

    Examples
    --------
    >>> import anden
    >>> db = anden.from_numpy([0, 0, 1], [1, 2, 2], weights=[0.5, 1.5, 2.5])
    >>> db.view().num_edges
    3
    """
    edges: dict[str, Any] = {"source": src, "target": dst}
    for name, values in (properties or {}).items():
        if name in ("source", "target", WEIGHT):
            raise InvalidInput(f"properties: '{name}' is the name of a column of every edge; choose another name")
        edges[name] = values
    if weights is not None:
        edges[WEIGHT] = weights
    if num_vertices is not None:
        options["vertices"] = _numbered(num_vertices, options.get("ids"))
    return _loaded(path, edges, has_weights=weights is not None, options=options)


def from_arrow(table: Any, *, path: Path = None, vertices: Any = None, **options: Any) -> Database:
    """Make a database from an Arrow table of edges: any object with ``__arrow_c_stream__``.

    The columns of the ends are found by their names, such as `source` and `target`, `src` and `dst` or `from` and
    `to`; ``source_column`` and ``target_column`` name others. A column `weight` of numbers, or ``weight_column``, is
    the weight; ``weights=False`` makes it a property. All other columns are edge properties;
    ``properties=["kind"]`` chooses some.

    Parameters
    ----------
    table : object with ``__arrow_c_stream__``
        The edges: a pyarrow table, a Polars or pandas frame, a table of Anden, a DuckDB relation.
    path : str or os.PathLike, optional
        The directory of the new database; by default in memory.
    vertices : object with ``__arrow_c_stream__`` or mapping, optional
        The vertices: a column of keys, and properties. A mapping gives tables by label.
    **options
        As for `load`.
    """
    types = table_types(table)
    if vertices is not None:
        options["vertices"] = vertices
    asked = options.pop("weights", None)
    named = options.get("weight_column")
    weight = named or (WEIGHT if types.get(WEIGHT) in WEIGHT_TYPES else None)
    if asked and weight is None:
        raise InvalidInput(f"weights: no column of numbers is named '{WEIGHT}'; weight_column names another")
    has_weights = weight is not None and asked is not False
    if has_weights and named is None:
        options["weight_column"] = weight
    return _loaded(path, table, has_weights=has_weights, options=options, types=types)


def from_pandas(frame: Any, *, path: Path = None, vertices: Any = None, **options: Any) -> Database:
    """Make a database from a ``pandas.DataFrame`` of edges. Columns and options as for `from_arrow`.

    Examples
    --------
    >>> import anden, pandas
    >>> edges = pandas.DataFrame({"source": ["ann", "ben"], "target": ["ben", "cleo"], "weight": [1.0, 2.0]})
    >>> anden.from_pandas(edges).view().neighbors("ann")
    ['ben']
    """
    vertices = _columns_of_pandas(vertices)
    if isinstance(vertices, dict) and all(isinstance(values, np.ndarray) for values in vertices.values()):
        # A mapping would give tables by label.
        vertices = {"": vertices}
    return from_arrow(_columns_of_pandas(frame), path=path, vertices=vertices, **options)


def from_polars(frame: Any, *, path: Path = None, vertices: Any = None, **options: Any) -> Database:
    """Make a database from a ``polars.DataFrame`` or ``LazyFrame`` of edges. Otherwise as `from_arrow`."""
    if hasattr(frame, "collect") and not hasattr(frame, "__arrow_c_stream__"):
        frame = frame.collect()
    return from_arrow(frame, path=path, vertices=vertices, **options)


def from_scipy(
    matrix: Any,
    *,
    path: Path = None,
    weights: bool = True,
    **options: Any,
) -> Database:
    """Make a database from a square sparse matrix of SciPy: an entry (i, j) is an edge from i to j.

    The keys are dense ids. The values are weights; ``weights=False`` leaves them out. Values of one entry that the
    matrix stores several times are summed, as SciPy does.
    """
    if not hasattr(matrix, "tocoo"):
        raise TypeError(f"matrix is a sparse matrix of SciPy, not {type(matrix).__name__}")
    rows, columns = matrix.shape
    if rows != columns:
        raise InvalidInput(f"matrix has {rows} rows and {columns} columns; a graph needs as many rows as columns")
    entries = matrix.tocoo()
    values = None
    if weights:
        options.setdefault("duplicates", "sum")
        values = entries.data
        if values.dtype == np.bool_:
            values = values.astype(np.uint32)
    options.setdefault("ids", "dense")
    return from_numpy(entries.row, entries.col, values, path=path, num_vertices=rows, **options)


def from_edges(edges: Iterable[tuple[Any, ...]], *, path: Path = None, **options: Any) -> Database:
    """Make a database from an iterable of edges: (source, target), or (source, target, weight).

    Examples
    --------
    >>> import anden
    >>> db = anden.from_edges([("ann", "ben", 2.5), ("ben", "cleo", 1.0)])
    >>> db.view().weight_type
    'f64'
    """
    rows = [tuple(edge) for edge in edges]
    lengths = {len(row) for row in rows}
    if not lengths <= {2} and not lengths <= {3}:
        odd = next(row for row in rows if len(row) not in (2, 3) or len(row) != len(rows[0]))
        raise InvalidInput(f"edges: all items are (source, target), or all are (source, target, weight), found {odd!r}")
    if not rows:
        options.pop("weights", None)
        return _loaded(path, _empty(), has_weights=False, options=options)
    columns = list(zip(*rows, strict=True))
    return from_numpy(list(columns[0]), list(columns[1]), *map(list, columns[2:]), path=path, **options)


def from_networkx(
    graph: networkx.Graph[Any],
    *,
    path: Path = None,
    weight: str | None = WEIGHT,
    ids: str | None = None,
    **options: Any,
) -> Database:
    """Make a database from a graph of NetworkX, with its nodes and attributes.

    Nodes are keys: integers from 0 on, or text. Other nodes become text. The attribute ``weight`` of the edges is the
    weight if every edge has it. Attributes whose values are of one type are properties, as are lists whose items are;
    others are left out.

    Examples
    --------
    >>> import anden, networkx
    >>> db = anden.from_networkx(networkx.path_graph(4))
    >>> db.view().path(0, 3)
    [0, 1, 2, 3]
    """
    if not hasattr(graph, "nodes") or not hasattr(graph, "is_multigraph"):
        raise TypeError(f"graph is a graph of NetworkX, not {type(graph).__name__}")
    nodes = list(graph.nodes)
    integers = all(type(node) is int and node >= 0 for node in nodes)
    ids = ids or ("integer" if integers else "string")
    key = (lambda node: node) if ids != "string" else str
    ends = list(graph.edges(data=True))
    edges: dict[str, Any] = {
        "source": [key(source) for source, _, _ in ends],
        "target": [key(target) for _, target, _ in ends],
    }
    attributes = _attributes([data for _, _, data in ends], {"source", "target"})
    values = attributes.pop(weight, None) if weight else None
    has_weights = values is not None and all(isinstance(value, (int, float)) for value in values)
    if values is not None:
        edges[WEIGHT if has_weights else str(weight)] = values
    edges |= {name: values for name, values in attributes.items() if name not in edges}
    vertices = {"key": [key(node) for node in nodes]}
    vertices |= _attributes([data for _, data in graph.nodes(data=True)], {"key"})
    options = {"directed": graph.is_directed(), "multigraph": graph.is_multigraph(), **options, "ids": ids}
    if nodes:
        options["vertices"] = {"": vertices}
    return _loaded(path, edges if ends else _empty(ids), has_weights=has_weights and bool(ends), options=options)


def to_scipy(view: View, *, weights: bool = True) -> scipy.sparse.csr_array:
    """The adjacency matrix as a ``scipy.sparse.csr_array``: the entry (i, j) is the weight of the edge, or 1.

    Rows and columns are vertex ids. The column indices, and the values of a graph with weights, are not copied if the
    view is one base (see `csr`). They are then read-only.
    """
    from scipy.sparse import csr_array

    offsets, targets, *values = view.csr()
    n = view.vertex_bound
    if n <= np.iinfo(np.int32).max:
        targets = targets.view(np.int32)
    if not (weights and values):
        values = [np.ones(len(targets), dtype=np.float64)]
    if len(targets) <= np.iinfo(np.int32).max and targets.dtype == np.int32:
        offsets = offsets.astype(np.int32)
    return csr_array((values[0], targets, offsets), shape=(n, n), copy=False)


def to_networkx(view: View) -> networkx.Graph[Any]:
    """The graph as a graph of NetworkX: nodes are keys, weights and properties are attributes, lists among them."""
    import networkx

    kinds = {
        (False, False): networkx.Graph,
        (True, False): networkx.DiGraph,
        (False, True): networkx.MultiGraph,
        (True, True): networkx.MultiDiGraph,
    }
    graph = kinds[view.directed, view.multigraph]()
    for keys, rows in _rows(view.vertices(), ["key"]):
        graph.add_nodes_from(zip(keys["key"], rows, strict=True))
    for ends, rows in _rows(view.edges(), ["source", "target"]):
        graph.add_edges_from(zip(ends["source"], ends["target"], rows, strict=True))
    return graph


def _rows(table: Any, keys: list[str]) -> Iterable[tuple[dict[str, list[Any]], list[dict[str, Any]]]]:
    """The rows of a table, some at a time: the columns of keys, and a dict of the other values that are not null."""
    for batch in table:
        columns = {name: values.tolist() for name, values in batch.to_numpy().items()}
        ends = {name: columns.pop(name) for name in keys}
        columns.pop("number", None)
        names = list(columns)
        values = zip(*columns.values(), strict=True) if names else ((),) * len(ends[keys[0]])
        yield ends, [{n: v for n, v in zip(names, row, strict=True) if v is not None} for row in values]


def _loaded(
    path: Path,
    edges: Any,
    *,
    has_weights: bool,
    options: dict[str, Any],
    types: dict[str, str] | None = None,
) -> Database:
    """Loads edges with options whose defaults follow from the types of the columns."""
    types = table_types(edges) if types is None else types
    if has_weights:
        column = options.setdefault("weight_column", WEIGHT)
        usual = WEIGHT_TYPES.get(types.get(column, ""))
        if usual is not None:
            options.setdefault("weight_type", usual)
        options["weights"] = True
    if options.get("ids") is None and any(_is_text(types, options, end) for end in ("source", "target")):
        options["ids"] = "string"
    return _anden.load(path, edges, **options)


def _is_text(types: dict[str, str], options: dict[str, Any], end: str) -> bool:
    """Whether the column of an end holds text. Without a column of that name, any column of text tells."""
    name = options.get(f"{end}_column") or end
    kinds = [types[name]] if name in types else list(types.values())[:2]
    return any(text in kind for kind in kinds for text in TEXT)


def _empty(ids: str | None = None) -> dict[str, Any]:
    dtype = object if ids == "string" else np.uint64
    return {"source": np.empty(0, dtype), "target": np.empty(0, dtype)}


def _numbered(num_vertices: int, ids: str | None) -> dict[str, Any]:
    """The vertices below a number."""
    if not isinstance(num_vertices, (int, np.integer)) or num_vertices < 0:
        raise InvalidInput(f"num_vertices is an int from 0 on, not {num_vertices!r}")
    if ids == "dense":
        # The last id tells that all others exist.
        keys = np.arange(max(num_vertices - 1, 0), num_vertices, dtype=np.uint64)
    else:
        keys = np.arange(num_vertices, dtype=np.uint64)
    return {"": {"key": keys}}


def _attributes(rows: list[dict[str, Any]], reserved: set[str]) -> dict[str, list[Any]]:
    """Attributes by name, with None where a row has none. Names and values that no property holds are left out."""
    names = dict.fromkeys(name for row in rows for name in row if isinstance(name, str) and name not in reserved)
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        kinds = {type(value) for value in values if value is not None}
        is_listed = bool(kinds) and kinds <= {list, tuple}
        if is_listed:
            kinds = {type(item) for value in values if value is not None for item in value if item is not None}
        if kinds <= {int, float} or (len(kinds) == 1 and kinds <= ({str, bool} if is_listed else {str, bool, bytes})):
            columns[name] = values
    return columns


def _columns_of_pandas(frame: Any) -> Any:
    """A frame as NumPy columns where its columns are plain arrays, so that no copy and no pyarrow is needed."""
    if frame is None or not hasattr(frame, "dtypes") or not hasattr(frame, "columns"):
        return frame
    if not all(isinstance(name, str) for name in frame.columns):
        names = [name for name in frame.columns if not isinstance(name, str)]
        raise InvalidInput(f"frame: names of columns are text, found {names[0]!r}")
    if all(isinstance(dtype, np.dtype) and dtype.kind in "iufbM" for dtype in frame.dtypes):
        return {name: frame[name].to_numpy() for name in frame.columns}
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            import pyarrow  # noqa: F401  (pandas exports Arrow by pyarrow)

            return frame
        except ImportError:
            pass
    return {name: frame[name].to_numpy() for name in frame.columns}
