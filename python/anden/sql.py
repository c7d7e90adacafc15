"""SQL over views and databases, by DuckDB, or by Polars where DuckDB is not installed.

The tables are `edges`, `vertices`, `degrees` and `snapshots`. With DuckDB, kernels and queries are functions that
return tables: ``pagerank(iterations := 20)``, ``bfs('ann')``, ``wcc()``, ``khop('ann', 2)``, ``diff(1, 2)``.

Nothing of SQL is written here. DuckDB's own parser gives the query as a tree. The calls in it are run and replaced by
the names of their results. Only the columns that the query names are read from the graph, and of edges and vertices
only the rows that simple conditions of the query let through. DuckDB then reads the tables as Arrow streams, in
batches, applies the whole query, and its relation is the result.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._anden import Database, InvalidInput, Result, Table, View, kernels, table_of
from ._sql_predicates import LONGEST_PREDICATE, Condition, condition_of, has_times, is_compared, literal
from ._sql_tree import Tree, arguments, cte_names, joined_tables, named_columns, named_parameters, nodes, row_conditions

Parameters = Sequence[Any] | Mapping[str, Any] | None

#: The tables that conditions of a query narrow. The others are in memory, where DuckDB filters as fast.
NARROWED = ("edges", "vertices", "degrees")
#: Queries about single vertices, by name, with the column of their answer.
QUERIES = {
    "neighbors": "key",
    "khop": "key",
    "fof": "key",
    "common_neighbors": "key",
    "top_degrees": "key",
    "path": "key",
    "find_vertices": "key",
}
#: Queries that give pairs of a key and a number: the argument that asks for them, if any, and the column of the number.
PAIRS = {"khop": ("depths", "depth"), "fof": ("ranked", "count"), "top_degrees": (None, "degree")}

_shared = threading.local()


def view_sql(view: View, query: str, params: Parameters = None, *, connection: Any = None) -> Any:
    """Run SQL on the graph, by DuckDB; by Polars, with the tables only, where DuckDB is not installed.

    Tables are `edges`, `vertices`, `degrees` and `snapshots`. Kernels and queries are functions that return tables:
    ``pagerank()``, ``bfs('ann')``, ``khop('ann', 2)``, ``diff(1, 2)``. ``edges AT (VERSION => 3)`` is a snapshot.

    Parameters
    ----------
    query : str
        A SELECT statement of DuckDB. Names that the graph does not have are Python variables, such as data frames.
    params : sequence or dict, optional
        Values of the parameters of the query.
    connection : duckdb.DuckDBPyConnection, optional
        The connection whose tables the query may join.

    Returns
    -------
    duckdb.DuckDBPyRelation
        DuckDB's relation, with ``df()``, ``pl()``, ``arrow()``, ``fetchall()``.

    Examples
    --------
    >>> import anden
    >>> g = anden.from_edges([("ann", "ben"), ("ben", "cleo")]).view()
    >>> g.sql("SELECT key FROM khop('ann', 2) ORDER BY key").fetchall()
    [('ben',), ('cleo',)]
    """
    return _run(_Names(view), query, params, connection)


def database_sql(
    database: Database,
    query: str,
    params: Parameters = None,
    *,
    snapshot: Any = None,
    window: Any = None,
    connection: Any = None,
) -> Any:
    """Run SQL on the graph: on everything committed, on a snapshot, or on a window of snapshots. See `View.sql`.

    Examples
    --------
    >>> import anden
    >>> db = anden.from_edges([(1, 2)])
    >>> _ = db.append([2], [3])
    >>> db.sql("SELECT count(*) FROM edges", snapshot=1).fetchall()
    [(1,)]
    """
    view = database.view(snapshot=snapshot, window=window)
    return _run(_Names(view, database), query, params, connection)


class _Names:
    """What the names of a query mean."""

    def __init__(self, view: View, database: Database | None = None) -> None:
        self.view = view
        self.database = database
        self.tables: dict[str, Callable[[], Table]] = {
            "edges": view.edges,
            "vertices": view.vertices,
            "degrees": view.degrees,
            "snapshots": view.snapshots_table,
        }

    def version(self, snapshot: Any) -> _Names:
        """The names at a snapshot."""
        database = self.database or self.view.database
        return _Names(database.view(snapshot=snapshot), database)

    def is_function(self, name: str) -> bool:
        return name in QUERIES or name == "diff" or name in kernels()

    def call(self, name: str, arguments: list[Any], named: dict[str, Any]) -> Table:
        """The table that a function returns."""
        if name == "diff":
            return (self.database or self.view.database).diff(*arguments, **named).table()
        if name not in QUERIES:
            if name == "triangles":
                named = {"per_vertex": True, **named}
            result: Result = getattr(self.view, name)(*arguments, details=True, **named)
            return result.table()
        keys = getattr(self.view, name)(*arguments, **named) or []
        columns: dict[str, Any] = {QUERIES[name]: keys}
        option, column = PAIRS.get(name, ("", ""))
        if option is None or named.get(option):
            columns = {QUERIES[name]: [key for key, _ in keys], column: [number for _, number in keys]}
        if name == "path":
            columns = {"step": list(range(len(keys))), **columns}
        return table_of(columns)


def _run(names: _Names, query: str, params: Parameters, connection: Any) -> Any:
    if not isinstance(query, str):
        raise TypeError(f"query is a str, not {type(query).__name__}")
    try:
        import duckdb
    except ImportError:
        return _run_polars(names, query, params)
    cursor = connection.cursor() if connection is not None else _connection(duckdb).cursor()
    tree = _parsed(cursor, query)
    if tree is None:
        # DuckDB reports what is wrong, or runs a statement that is no query of tables.
        for name, table in names.tables.items():
            cursor.register(name, table())
        return cursor.sql(query, params=params)
    statement = _Statement(cursor, names, tree, params)
    statement.resolve()
    return cursor.sql(statement.text(), params=statement.parameters())


def _connection(duckdb: Any) -> Any:
    """DuckDB's connection of this thread. Names of Python variables are found in all frames."""
    if not hasattr(_shared, "connection"):
        _shared.connection = duckdb.connect(config={"python_scan_all_frames": True})
    return _shared.connection


def _scalar(cursor: Any, query: str, params: Any) -> Any:
    """The only value of a query. All rows are fetched, so that the cursor is free again."""
    return cursor.execute(query, params).fetchall()[0][0]


def _parsed(cursor: Any, query: str) -> Tree | None:
    """The tree of one query; None if the query does not parse, or is another statement."""
    tree = json.loads(_scalar(cursor, "SELECT json_serialize_sql(?)", [query]))
    return None if tree.get("error") or len(tree["statements"]) != 1 else tree


def _by_name(params: Parameters, num_parameters: int) -> dict[str, Any]:
    """Parameters by name. Those given by place have their numbers as names, as in the tree."""
    if params is None or isinstance(params, Mapping):
        return dict(params or {})
    if len(params) != num_parameters:
        raise InvalidInput(f"params: the query has {num_parameters} parameters, but {len(params)} values are given")
    return {str(place): value for place, value in enumerate(params, 1)}


class _Scan:
    """A table of a FROM clause, and the conditions of the query on its columns."""

    def __init__(self, node: Tree) -> None:
        self.node = node
        self.name = str(node.get("table_name") or "").lower()
        self.alias = str(node.get("alias") or self.name).lower()
        #: Of a table of the graph: what its names mean, and a suffix that tells its version from others.
        self.names: _Names | None = None
        self.version = ""
        #: The exact names of the columns by those in lower case; None if they are not known.
        self.columns: dict[str, str] | None = None
        self.conditions: list[tuple[str, Condition]] = []

    def read(self, names: _Names, version: str) -> None:
        """Makes this the scan of a table of the graph."""
        self.names, self.version = names, version
        columns = self.rows().columns
        # DuckDB renames the second of two columns whose names differ only in case.
        by_name = {name.lower(): name for name in columns}
        self.columns = by_name if len(by_name) == len(columns) else None

    def rows(self) -> Table:
        assert self.names is not None
        return self.names.tables[self.name]()

    def add(self, condition: Condition, scans: Sequence[_Scan]) -> None:
        """Takes a condition if its column is of this table, and of no other one."""
        *table, column = condition.column
        rivals = [scan for scan in scans if not table or scan.alias == table[0]]
        holders = [scan for scan in rivals if scan.columns is None or column in scan.columns]
        if holders == [self] and self.columns is not None:
            self.conditions.append((self.columns[column], condition))

    def lookup(self, column: str) -> Callable[[Any], Table] | None:
        """The call that reads the rows with one value of a column: the edges of a source, or one vertex."""
        assert self.names is not None
        view = self.names.view
        # A property of this name hides the column, and an undirected edge has its vertices in either column.
        if (self.name, column) == ("edges", "source") and view.directed and column not in view.edge_properties:
            return view.edges_from
        if (self.name, column) == ("vertices", "key") and column not in view.vertex_properties:
            return view.vertex_row
        return None


class _Statement:
    """A query whose tables and calls are resolved one after the other."""

    def __init__(self, cursor: Any, names: _Names, tree: Tree, params: Parameters) -> None:
        self.cursor = cursor
        self.names = names
        self.tree = tree
        self.params = _by_name(params, len(named_parameters(tree)))
        self.ctes = cte_names(tree)
        self.columns = named_columns(tree)
        self.known: dict[str, str] = {}

    def resolve(self) -> None:
        """Registers each table that the query names, and replaces each call by the name of its result."""
        for node in list(nodes(self.tree)):
            if node.get("type") == "SELECT_NODE":
                self._narrow(node)
            elif node.get("type") == "BASE_TABLE":
                self._resolve_table(node)
            elif node.get("type") == "TABLE_FUNCTION":
                self._resolve_call(node)

    def _resolve_table(self, node: Tree) -> None:
        if not self._is_ours(node):
            return
        name, (names, version) = node["table_name"].lower(), self._version(node)
        made = self._register(f"{name}{version}", lambda: self._projected(names.tables[name]()))
        if version:
            self._replace(node, made, name)

    def _version(self, node: Tree) -> tuple[_Names, str]:
        """The names at the version of a table, and a suffix that tells it from others."""
        clause = node.get("at_clause")
        if not clause:
            return self.names, ""
        snapshot = self._value(clause.get("expr") or clause["expression"])
        return self.names.version(snapshot), f"_at_{snapshot}"

    def _narrow(self, select: Tree) -> None:
        """Reads only the rows of our tables that can meet the conditions of a SELECT. DuckDB then applies all of it."""
        conditions = [condition for tree in row_conditions(select) if (condition := condition_of(tree))]
        # A sample is taken before the conditions apply.
        if not conditions or select.get("sample"):
            return
        found = [(_Scan(node), is_inner) for node, is_inner in joined_tables(select["from_table"])]
        scans = [scan for scan, _ in found]
        for scan in scans:
            if scan.node["type"] == "BASE_TABLE" and self._is_ours(scan.node) and not scan.node["column_name_alias"]:
                scan.read(*self._version(scan.node))
        for scan, is_inner in found:
            if is_inner and scan.name in NARROWED and not scan.node["sample"]:
                for condition in conditions:
                    scan.add(condition, scans)
                self._narrow_scan(scan)

    def _narrow_scan(self, scan: _Scan) -> None:
        predicate = ""
        used: set[str] = set()
        for column, condition in scan.conditions:
            values, literals = self._constants(scan.rows().types[column], condition)
            if len(literals) < len(condition.constants):
                continue
            read = scan.lookup(column) if condition.operator == "=" else None
            if read is not None:
                self._narrow_to(scan, f" {values[0]!r}", read(values[0]))
                return
            longer = f"{predicate} AND {condition.predicate(column, literals)}".removeprefix(" AND ")
            if len(longer.encode()) <= LONGEST_PREDICATE:
                predicate = longer
                used.add(column)
        if predicate and self._saves(scan, used):
            self._narrow_to(scan, f" WHERE {predicate}", scan.rows().filter(predicate))

    def _saves(self, scan: _Scan, used: set[str]) -> bool:
        """Whether a predicate on these columns spares the reading of others, or of text and lists, which are copied.

        Numbers that are read anyway are compared faster by DuckDB.
        """
        types = scan.rows().types
        wanted = {name for name in types if self.columns is None or name.lower() in self.columns}
        return bool(wanted - used) or any("Utf8" in types[name] or "List" in types[name] for name in used)

    def _narrow_to(self, scan: _Scan, suffix: str, table: Table) -> None:
        made = self._register(f"{scan.name}{scan.version}{suffix}", lambda: self._projected(table))
        self._replace(scan.node, made, scan.name)

    def _constants(self, column_type: str, condition: Condition) -> tuple[Sequence[Any], list[str]]:
        """The values of a condition's constants, and those of them that predicates compare with the column."""
        import duckdb

        expressions = [expression | {"alias": f"c{place}"} for place, expression in enumerate(condition.constants)]
        if not expressions:
            return [], []
        try:
            query, params = self._select(expressions)
            found = self.cursor.sql(query, params=params)
            if not all(is_compared(column_type, str(kind)) for kind in found.types):
                return [], []
            if has_times(column_type):
                # DuckDB converts both sides to the type of our column, by the time zone of its session.
                found = found.project(", ".join(f"epoch_us(CAST({name} AS TIMESTAMPTZ))" for name in found.columns))
            values = found.fetchall()[0]
        except (duckdb.Error, InvalidInput):
            # The query itself meets the same fault, and reports it.
            return [], []
        if isinstance(values[0], str) and not self._compares_bytes():
            return [], []
        literals = [literal(column_type, value, condition.operator) for value in values]
        return values, [text for text in literals if text is not None]

    def _compares_bytes(self) -> bool:
        """Whether DuckDB compares text byte by byte, as predicates do, and not by a collation."""
        return not _scalar(self.cursor, "SELECT current_setting('default_collation')", None)

    def _is_ours(self, node: Tree) -> bool:
        """Whether a table is one of the view."""
        name = node["table_name"].lower()
        is_named = bool(node["schema_name"] or node["catalog_name"])
        return name in self.names.tables and name not in self.ctes and not is_named

    def _resolve_call(self, node: Tree) -> None:
        function = node["function"]
        name = function["function_name"].lower()
        if function.get("schema") or not self.names.is_function(name):
            return
        given, named = [], {}
        for key, expression in arguments(function):
            if key:
                named[key.lower()] = self._value(expression)
            else:
                given.append(self._value(expression))
        key = f"{name}{given!r}{sorted(named.items())!r}"
        self._replace(node, self._register(key, lambda: self.names.call(name, given, named)), name)

    def _register(self, key: str, table: Callable[[], Table]) -> str:
        """Registers a table once. A name that is no SQL identifier becomes one."""
        if key not in self.known:
            name = key if key.isidentifier() else f"anden_{len(self.known)}"
            self.cursor.register(name, table())
            self.known[key] = name
        return self.known[key]

    def _replace(self, node: Tree, table: str, alias: str) -> None:
        """Makes a node the scan of a table, as the parser would."""
        scan = _parsed(self.cursor, f"SELECT * FROM {table}")
        assert scan is not None
        scan = scan["statements"][0]["node"]["from_table"]
        kept = {key: node[key] for key in ("sample", "query_location", "column_name_alias") if key in node}
        alias = node["alias"] or alias
        node.clear()
        node.update(scan | kept | {"alias": alias})

    def _projected(self, table: Table) -> Table:
        """The table with the columns that the query names, at least one."""
        if self.columns is None:
            return table
        wanted = [name for name in table.columns if name.lower() in self.columns]
        return table.select(wanted or table.columns[:1])

    def _value(self, expression: Tree) -> Any:
        """The value of an argument, which DuckDB computes."""
        place = expression.get("identifier", "")
        if place in self.params:
            return self.params[place]
        return _scalar(self.cursor, *self._select([expression | {"alias": ""}]))

    def _select(self, expressions: list[Tree]) -> tuple[str, Any]:
        """A query for the values of expressions, and its parameters."""
        tree = _parsed(self.cursor, "SELECT 1")
        assert tree is not None
        tree["statements"][0]["node"]["select_list"] = expressions
        return self._sql(tree), self._given(named_parameters(expressions))

    def _given(self, identifiers: set[str]) -> Any:
        missing = sorted(identifiers - set(self.params))
        if missing:
            raise InvalidInput(f"params: the query names ${missing[0]}, which is not given")
        return {name: self.params[name] for name in identifiers} or None

    def parameters(self) -> Any:
        """The parameters that are left after the calls."""
        return self._given(named_parameters(self.tree))

    def text(self) -> str:
        return self._sql(self.tree)

    def _sql(self, tree: Tree) -> str:
        return str(_scalar(self.cursor, "SELECT json_deserialize_sql(?::JSON)", [json.dumps(tree)]))


def _run_polars(names: _Names, query: str, params: Parameters) -> Any:
    try:
        import polars
    except ImportError as error:
        raise ImportError("SQL needs DuckDB: pip install 'anden[sql]'") from error
    if params is not None:
        raise InvalidInput("params: Polars takes no parameters in SQL; install DuckDB: pip install 'anden[sql]'")
    context = polars.SQLContext()
    words = query.lower()
    for name, table in names.tables.items():
        if name in words:
            context.register(name, table().to_polars())
    return context.execute(query)
