"""Reading DuckDB's parse tree of a query, as `json_serialize_sql` gives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Tree = dict[str, Any]


def nodes(tree: Any) -> Iterator[Tree]:
    """All nodes of a tree, the root first."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from nodes(part)


def arguments(function: Tree) -> Iterator[tuple[str, Tree]]:
    """Names and expressions of the arguments of a call; the name is empty for one given by place."""
    if "arguments" in function:
        for argument in function["arguments"]:
            yield argument.get("name") or argument["expression"].get("alias") or "", argument["expression"]
    else:
        for expression in function.get("children", []):
            yield expression.get("alias") or "", expression


def named_parameters(tree: Any) -> set[str]:
    """The names of the parameters in a tree; those given by place are numbered from 1."""
    return {node["identifier"] for node in nodes(tree) if node.get("class") == "PARAMETER"}


def cte_names(tree: Tree) -> set[str]:
    """The names of all common table expressions, in lower case."""
    maps = [node["cte_map"] for node in nodes(tree) if isinstance(node.get("cte_map"), dict)]
    return {entry["key"].lower() for entries in maps for entry in entries.get("map", [])}


def named_columns(tree: Tree) -> set[str] | None:
    """The names of all columns in a query, in lower case; None if the query asks for all columns of a table."""
    columns: set[str] = set()
    for node in nodes(tree):
        if node.get("class") == "STAR":
            return None
        if node.get("class") == "COLUMN_REF":
            columns.update(name.lower() for name in node["column_names"])
        columns.update(name.lower() for name in node.get("using_columns") or [])
        if node.get("column_name_alias") or node.get("ref_type") == "NATURAL":
            # These count columns by place, or match those of equal names.
            return None
    return columns


def is_inner_join(table: Tree) -> bool:
    """Whether a join keeps exactly the pairs of rows that meet its condition."""
    if table["type"] != "JOIN" or table.get("alias") or table.get("sample"):
        return False
    return table["join_type"] == "INNER" and table["ref_type"] in ("REGULAR", "CROSS")


def joined_tables(table: Tree, is_inner: bool = True) -> Iterator[tuple[Tree, bool]]:
    """The tables of a FROM clause, and for each whether all joins around it are inner joins."""
    if table["type"] != "JOIN":
        yield table, is_inner
        return
    is_inner = is_inner and is_inner_join(table)
    for side in ("left", "right"):
        yield from joined_tables(table[side], is_inner)


def row_conditions(select: Tree) -> list[Tree]:
    """The conditions that all rows of a SELECT meet: of WHERE, and of its inner joins."""
    return [*_parts(select.get("where_clause")), *_join_conditions(select["from_table"])]


def _join_conditions(table: Tree) -> Iterator[Tree]:
    if is_inner_join(table):
        yield from _parts(table.get("condition"))
        for side in ("left", "right"):
            yield from _join_conditions(table[side])


def _parts(condition: Tree | None) -> list[Tree]:
    """The conditions that AND joins."""
    if condition is None:
        return []
    if condition["type"] == "CONJUNCTION_AND":
        return [part for child in condition["children"] for part in _parts(child)]
    return [condition]
