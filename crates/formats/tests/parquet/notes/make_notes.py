"""Writes the files of this folder with pyarrow: columns that are left out, or read with a loss.

usage: make_notes.py (needs the package pyarrow)
"""

import datetime
import decimal
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

here = pathlib.Path(__file__).parent
number = decimal.Decimal
maps = pa.map_(pa.string(), pa.int64())
place = pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))])
noon = datetime.datetime(2024, 2, 29, 12)

types = pa.table(
    {
        "source": pa.array([1, 2], pa.int64()),
        "target": pa.array([2, 3], pa.int64()),
        "tags": pa.array([["a", "b"], []], pa.list_(pa.string())),
        "grades": pa.array([[("a", 1)], None], maps),
        "place": pa.array([{"x": 7, "tags": ["t"]}, {"x": 8, "tags": None}], place),
        "price": pa.array([number("0.10"), number("12345678901234567.89")], pa.decimal128(20, 2)),
        "count": pa.array([number(7), None], pa.decimal128(9, 0)),
        "wide": pa.array([number(1), number(2)], pa.decimal128(30, 0)),
        "nanos": pa.array([noon, noon], pa.timestamp("ns")),
        "clock": pa.array([datetime.time(1, 2), None], pa.time64("us")),
    }
)
pq.write_table(types, here / "types.parquet")

ids = pa.array([number(1), number(2**64 - 1)], pa.decimal128(20, 0))
pq.write_table(pa.table({"source": ids, "target": pa.array([2, 3], pa.int64())}), here / "decimal_ids.parquet")
negative = pa.array([number(1), number(-5)], pa.decimal128(9, 0))
pq.write_table(pa.table({"source": negative, "target": ids}), here / "negative_ids.parquet")

floats = {"source": pa.array([1.0, -3.0, 2.0**53]), "target": pa.array([2.0, 1.5, None])}
pq.write_table(pa.table(floats), here / "float_ids.parquet")
