"""Conditions of SQL as predicates of `Table.filter`, where both mean the same.

DuckDB applies every condition itself, so a predicate may keep too many rows, and never too few. A condition whose
constant DuckDB would compare in another type than the column's has no predicate.
"""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from typing import Any, NamedTuple

from ._sql_tree import Tree, arguments, nodes

#: Each value of an IN list is one comparison of the whole column; DuckDB looks values up.
MOST_VALUES = 8
#: Bytes. A longer predicate is left to DuckDB, because the language of predicates has limits.
LONGEST_PREDICATE = 4_000
#: The integers that a floating-point number holds without a gap.
EXACT_INTEGERS = 1 << 53

COMPARISONS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
NULL_TESTS = {"OPERATOR_IS_NULL": "IS NULL", "OPERATOR_IS_NOT_NULL": "IS NOT NULL"}
PATTERNS = {"~~": "LIKE", "!~~": "NOT LIKE"}

INTEGER_RANGES = {"Int64": (-(1 << 63), (1 << 63) - 1), "UInt64": (0, (1 << 64) - 1)}
INTEGERS = {f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")}
NUMBERS = INTEGERS | {"DECIMAL", "FLOAT", "DOUBLE"}
#: DuckDB's types of constants, without parameters, that compare with columns of an Arrow type. Predicates compare the
#: text of a list, and DuckDB its items, so columns of lists are compared by DuckDB alone.
COMPARED = {
    "Boolean": {"BOOLEAN"},
    "Int64": INTEGERS,
    "UInt64": INTEGERS,
    "Float32": NUMBERS,
    "Float64": NUMBERS,
    "Date32": {"DATE"},
    "Timestamp": {"DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"},
    "LargeUtf8": {"VARCHAR"},
}


class Condition(NamedTuple):
    """A condition on one column."""

    #: The name of the column, perhaps after that of its table, in lower case.
    column: list[str]
    operator: str
    #: The expressions that the column is compared with.
    constants: list[Tree]

    def predicate(self, column: str, literals: list[str]) -> str:
        """The predicate over a column, with these values of the constants."""
        name = '"' + column.replace('"', '""') + '"'
        if self.operator == "IN":
            return f"{name} IN ({', '.join(literals)})"
        return f"{name} {self.operator} {' AND '.join(literals)}".rstrip()


def condition_of(tree: Tree) -> Condition | None:
    """The condition on a column that a tree states; None if it states something else."""
    kind, sides, operator = tree["type"], tree.get("children") or [], ""
    if kind in COMPARISONS:
        sides, operator = [tree["left"], tree["right"]], COMPARISONS[kind]
        if not _column(sides[0]):
            sides, operator = sides[::-1], MIRRORED[operator]
    elif kind in NULL_TESTS:
        operator = NULL_TESTS[kind]
    elif kind == "COMPARE_IN" and len(sides) <= MOST_VALUES + 1:
        operator = "IN"
    elif kind == "COMPARE_BETWEEN":
        sides, operator = [tree["input"], tree["lower"], tree["upper"]], "BETWEEN"
    elif kind == "FUNCTION" and tree["is_operator"] and tree["function_name"] in PATTERNS:
        sides, operator = [side for _, side in arguments(tree)], PATTERNS[tree["function_name"]]
    column = _column(sides[0]) if operator else []
    return Condition(column, operator, sides[1:]) if column and all(map(_is_constant, sides[1:])) else None


def _column(tree: Tree) -> list[str]:
    names = tree["column_names"] if tree.get("class") == "COLUMN_REF" else []
    return [name.lower() for name in names] if len(names) <= 2 else []


def _is_constant(tree: Tree) -> bool:
    """Whether an expression has one value, whatever the row and the time."""

    def is_constant(node: Tree) -> bool:
        # Some versions of DuckDB parse -5 as a call.
        is_sign = node.get("is_operator") and node.get("function_name") in ("-", "+")
        return bool(is_sign) or node["class"] in ("CONSTANT", "CAST", "TYPE", "PARAMETER")

    return all(is_constant(node) for node in nodes(tree) if "class" in node)


def has_times(column_type: str) -> bool:
    """Whether an Arrow type is that of timestamps."""
    return _kind(column_type) == "Timestamp"


def is_compared(column_type: str, constant_type: str) -> bool:
    """Whether a column of an Arrow type compares with a constant of a type of DuckDB."""
    return _kind(constant_type) in COMPARED.get(_kind(column_type), set())


def _kind(data_type: str) -> str:
    """A type without its parameters."""
    return data_type.partition("(")[0]


def literal(column_type: str, value: Any, operator: str = "=") -> str | None:
    """A constant in the language of predicates, if it compares with the column as in DuckDB; None if it may not.

    Parameters
    ----------
    column_type : str
        The Arrow type of the column.
    value
        The constant, of a type that compares with it. A time is in microseconds since 1970.
    operator : str, optional
        The operator between them.
    """
    if value is None:
        return None
    if column_type in INTEGER_RANGES:
        least, most = INTEGER_RANGES[column_type]
        return str(value) if least <= value <= most else None
    if column_type in ("Float32", "Float64"):
        return _real(column_type, value)
    if column_type == "LargeUtf8":
        return _text(value, operator)
    if column_type == "Boolean":
        return str(value).upper()
    return _date(value) if column_type == "Date32" else _timestamp(value)


def _real(column_type: str, value: float | decimal.Decimal) -> str | None:
    if isinstance(value, int) and abs(value) > EXACT_INTEGERS:
        return None
    if isinstance(value, decimal.Decimal):
        # Of a number of at most 15 digits, every conversion gives the nearest floating-point number.
        _, digits, exponent = value.as_tuple()
        if len(digits) > 15 or not -15 <= int(exponent) <= 0:
            return None
    number = float(value)
    # DuckDB compares in 32 or in 64 bits, by the type of the constant. Of a number of 32 bits, both say the same.
    if not math.isfinite(number) or (column_type == "Float32" and not _has_32_bits(number)):
        return None
    return repr(number)


def _has_32_bits(number: float) -> bool:
    try:
        return bool(struct.unpack("f", struct.pack("f", number))[0] == number)
    except OverflowError:
        return False


def _text(value: str, operator: str) -> str | None:
    # In a pattern, the backslash is a character for DuckDB, and an escape for us.
    if operator in PATTERNS.values() and "\\" in value:
        return None
    return "'" + value.replace("'", "''") + "'"


def _date(value: Any) -> str | None:
    # DuckDB gives days outside these years as text, and the infinite ones as the first and the last day.
    return f"'{value}'" if isinstance(value, datetime.date) and 1 < value.year < 9999 else None


def _timestamp(micros: int) -> str | None:
    try:
        time = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)
    except OverflowError:
        return None
    return f"'{time.isoformat()}Z'"
