"""SQL over views and databases, by DuckDB, or by Polars where DuckDB is not installed.

The tables are `edges`, `vertices`, `degrees` and `snapshots`. With DuckDB, kernels and queries are functions that
return tables: ``pagerank(iterations := 20)``, ``bfs('ann')``, ``wcc()``, ``khop('ann', 2)``, ``diff(1, 2)``.

Nothing of SQL is written here. DuckDB's own parser gives the query as a tree. The calls in it are run and replaced by
the names of their results, and only the columns that the query names are read from the graph. DuckDB then reads the
tables as Arrow streams, in batches, and its relation is the result.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ._anden import Database, InvalidInput, Result, Table, View, kernels, table_of

Tree = dict[str, Any]
Parameters = Sequence[Any] | Mapping[str, Any] | None

#: Queries about single vertices, by name, with the column of their answer.
QUERIES = {"neighbors": "key", "khop": "key", "fof": "key", "path": "key", "find_vertices": "key"}

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


def _nodes(tree: Any) -> Iterator[Tree]:
    """All nodes of a tree, the root first."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from _nodes(part)


class _Statement:
    """A query whose tables and calls are resolved one after the other."""

    def __init__(self, cursor: Any, names: _Names, tree: Tree, params: Parameters) -> None:
        self.cursor = cursor
        self.names = names
        self.tree = tree
        self.params = params
        self.ctes = {entry["key"].lower() for node in _nodes(tree) for entry in _cte_entries(node)}
        self.columns = _columns(tree)
        self.known: dict[str, str] = {}

    def resolve(self) -> None:
        """Registers each table that the query names, and replaces each call by the name of its result."""
        for node in list(_nodes(self.tree)):
            if node.get("type") == "SELECT_NODE":
                self._look_up(node)
            elif node.get("type") == "BASE_TABLE":
                self._resolve_table(node)
            elif node.get("type") == "TABLE_FUNCTION":
                self._resolve_call(node)

    def _resolve_table(self, node: Tree) -> None:
        if not self._is_ours(node):
            return
        name = node["table_name"].lower()
        version = node.get("at_clause")
        if not version:
            self._register(name, lambda: self._projected(self.names.tables[name]()))
            return
        snapshot = self._value(version.get("expr") or version["expression"])
        names = self.names.version(snapshot)
        made = self._register(f"{name}_at_{snapshot}", lambda: self._projected(names.tables[name]()))
        self._replace(node, made, name)

    def _look_up(self, node: Tree) -> None:
        """Reads one list, in place of all edges, for ``FROM edges WHERE source = …``; likewise one vertex by its key.

        DuckDB then applies the whole condition to these rows.
        """
        table = node.get("from_table") or {}
        name = table.get("table_name", "").lower()
        end = {"edges": "source", "vertices": "key"}.get(name)
        is_ours = table.get("type") == "BASE_TABLE" and self._is_ours(table)
        is_plain = is_ours and not (table.get("at_clause") or table.get("sample"))
        if end is None or not is_plain:
            return
        # A property of this name hides the column, and an undirected edge has its vertices in either column.
        view = self.names.view
        hidden = view.vertex_properties if end == "key" else view.edge_properties
        if end in hidden or (end == "source" and not view.directed):
            return
        for condition in _conditions(node.get("where_clause")):
            value = _compared(condition, end, {name, table["alias"].lower()})
            if value is None:
                continue
            key = self._value(value)
            # DuckDB compares text with numbers by a conversion, which a lookup does not make.
            has_text = view.database.options["ids"] == "string"
            if isinstance(key, str) if has_text else type(key) is int and key >= 0:
                read = view.edges_from if end == "source" else view.vertex_row
                made = self._register(f"{name} {key!r}", lambda: self._projected(read(key)))
                self._replace(table, made, name)
            return

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
        arguments, named = [], {}
        for key, expression in _arguments(function):
            if key:
                named[key.lower()] = self._value(expression)
            else:
                arguments.append(self._value(expression))
        key = f"{name}{arguments!r}{sorted(named.items())!r}"
        self._replace(node, self._register(key, lambda: self.names.call(name, arguments, named)), name)

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
        if place.isdigit() and isinstance(self.params, Sequence) and int(place) <= len(self.params):
            return self.params[int(place) - 1]
        tree = _parsed(self.cursor, "SELECT 1")
        assert tree is not None
        tree["statements"][0]["node"]["select_list"] = [expression | {"alias": ""}]
        text = self._sql(tree)
        params = self._given(_named(expression))
        return _scalar(self.cursor, text, params)

    def _given(self, identifiers: set[str]) -> Any:
        if not identifiers:
            return None
        if not isinstance(self.params, Mapping):
            raise InvalidInput("params: name the parameters of functions, such as $source, and give a dict")
        missing = sorted(identifiers - set(self.params))
        if missing:
            raise InvalidInput(f"params: the query names ${missing[0]}, which is not given")
        return {name: self.params[name] for name in identifiers}

    def parameters(self) -> Any:
        """The parameters that are left after the calls."""
        left = _named(self.tree)
        if self.params is None or (not isinstance(self.params, Mapping) and len(left) == len(self.params)):
            return self.params
        return self._given(left)

    def text(self) -> str:
        return self._sql(self.tree)

    def _sql(self, tree: Tree) -> str:
        return str(_scalar(self.cursor, "SELECT json_deserialize_sql(?::JSON)", [json.dumps(tree)]))


def _arguments(function: Tree) -> Iterator[tuple[str, Tree]]:
    """Names and expressions of the arguments of a call; the name is empty for one given by place."""
    if "arguments" in function:
        for argument in function["arguments"]:
            yield argument.get("name") or argument["expression"].get("alias") or "", argument["expression"]
    else:
        for expression in function.get("children", []):
            yield expression.get("alias") or "", expression


def _conditions(tree: Tree | None) -> list[Tree]:
    """The conditions that all rows of a query meet."""
    if tree is None:
        return []
    if tree["type"] == "CONJUNCTION_AND":
        return [condition for part in tree["children"] for condition in _conditions(part)]
    return [tree]


def _compared(condition: Tree, column: str, tables: set[str]) -> Tree | None:
    """The expression that equals a column of one of the tables; None if the condition says something else."""
    if condition["type"] != "COMPARE_EQUAL":
        return None
    sides: list[Tree] = [condition["left"], condition["right"]]
    for side, other in (sides, sides[::-1]):
        names = [name.lower() for name in side.get("column_names", [])]
        is_column = names == [column] or (len(names) == 2 and names[1] == column and names[0] in tables)
        is_constant = not any(node.get("class") in ("COLUMN_REF", "SUBQUERY", "FUNCTION") for node in _nodes(other))
        if is_column and is_constant:
            return other
    return None


def _cte_entries(node: Tree) -> list[Tree]:
    entries = node.get("cte_map")
    return entries.get("map", []) if isinstance(entries, dict) else []


def _named(tree: Any) -> set[str]:
    """The names of the parameters in a tree."""
    return {node["identifier"] for node in _nodes(tree) if node.get("class") == "PARAMETER"}


def _columns(tree: Tree) -> set[str] | None:
    """The names of all columns in a query, in lower case; None if the query asks for all columns of a table."""
    columns: set[str] = set()
    for node in _nodes(tree):
        if node.get("class") == "STAR":
            return None
        if node.get("class") == "COLUMN_REF":
            columns.update(name.lower() for name in node["column_names"])
        columns.update(name.lower() for name in node.get("using_columns") or [])
        if node.get("column_name_alias") or node.get("ref_type") == "NATURAL":
            # These count columns by place, or match those of equal names.
            return None
    return columns


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
